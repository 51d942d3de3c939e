"""Writes the kinds of plugins into docs/plugins.md, from their registries. `make docs` runs it, a test checks the result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.registry import Member
from cranfield.cli.plugins import registries

if TYPE_CHECKING:
    from cranfield.base.registry import Registry

PAGE = Path(__file__).with_name("plugins.md")
PART = re.compile(r"(<!-- written by docs/generate_plugins\.py -->\n).*?(<!-- end -->\n)", re.DOTALL)
OTHERS = {
    "cranfield.measures": "`cranfield.Measure`; see [own-measures.md](own-measures.md)",
    "cranfield.workbench_pages": "functions with `@page` or `@action` of `cranfield.workbench.routes`",
    "cranfield.commands": "a click command, or a module that holds one as `command`",
}


def page() -> str:
    """The whole page: what is written by hand, with the table of kinds in its place."""
    lines = ["| group | kind | base class |", "|---|---|---|"]
    lines += [f"| `{each.group}` | {each.kind} | {base(each)} |" for each in registries() if len(each) > 1]
    return PART.sub(lambda part: part[1] + "\n".join(lines) + "\n" + part[2], PAGE.read_text(encoding="utf-8"))


def base(registry: Registry[Any]) -> str:
    """The class that a member of a kind derives from."""
    if registry.group in OTHERS:
        return OTHERS[registry.group]
    member = next(iter(registry.built_in().values()))
    cls = member if isinstance(member, type) else type(member)
    [owner] = [each for each in cls.__mro__ if "registry" in vars(each) and each is not Member]
    return f"`{owner.__module__}.{owner.__name__}`"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
