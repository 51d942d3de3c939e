"""Writes the formats into docs/formats.md, from their classes. `make docs` runs it, a test checks the result."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cranfield.formats import FORMATS
from cranfield.formats.format import Format, Head, Strength

PAGE = Path(__file__).with_name("formats.md")
PART = re.compile(r"(<!-- (\w+), written by docs/generate_formats\.py -->\n).*?(<!-- end -->\n)", re.DOTALL)


def page() -> str:
    """The whole page: what is written by hand, with what comes from the classes in its place."""
    parts = {"evidence": evidence(), "formats": table() + "".join(map(section, FORMATS.values()))}
    return PART.sub(lambda part: f"{part[1]}\n{parts[part[2]]}\n{part[3]}", PAGE.read_text(encoding="utf-8"))


def evidence() -> str:
    """A row for each strength of evidence, the strongest first, with the formats whose examples show it."""
    lines = ["| evidence | what speaks for the format | who has it |", "|---|---|---|"]
    for strength in sorted(Strength, reverse=True):
        names = ", ".join(f"`{each.name}`" for each in FORMATS.values() if strength in strengths(each))
        lines.append(f"| {strength.name.lower()} | {strength.meaning} | {names or '–'} |")
    return "\n".join(lines) + "\n"


def strengths(each: Format) -> set[Strength]:
    """How strongly its examples speak for a format."""
    examples = each.examples.values() if each.is_text else [b"PAR1\x15"]
    return {found.strength for example in examples if (found := each.sniff(Head(example))) is not None}


def table() -> str:
    """A row a format."""
    head = "| name | holds | what it looks like |\n|---|---|---|\n"
    return head + "".join(f"| `{each.name}` | {', '.join(each.kinds)} | {each.about} |\n" for each in FORMATS.values())


def section(each: Format) -> str:
    """A format in its own words, with what its files end in and an example of each kind."""
    lines = [f"\n### {each.name}", inspect.getdoc(type(each)) or ""]
    if each.endings:
        lines.append(f"Written to files that end in {', '.join(f'`{ending}`' for ending in each.endings)}.")
    lines += [f"```text\n{example.decode().rstrip()}\n```" for example in each.examples.values()]
    return "\n\n".join(lines) + "\n"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
