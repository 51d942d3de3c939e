"""Writes docs/test-list.md: every significance test and every correction, from their classes. `make docs` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield.commands.listings import corrections, tests

PAGE = Path(__file__).with_name("test-list.md")

HEAD = """# Tests and corrections, one by one

<!-- Written by docs/generate_tests.py; change the classes, then `make docs`. -->

The values of `--test` and `--correction`. `cranfield tests NAME` and `cranfield corrections NAME` show the same as this
page. Which test to choose, and how often each raises a false alarm: see [tests.md](tests.md); tests of all systems
at once are in [many.md](many.md). In the words of statistics, systems are groups and topics are blocks.
"""

LABELS = {  # what a property is called on the page
    "short": "name in sentences",
    "samples": "kind of samples",
    "p_from": "source of the p-value",
    "weighable": "accepts weights",
    "binary": "only for values 0 and 1",
    "discrete": "few possible p-values",
    "sampled": "draws random resamples",
    "needs_spread": "undefined if all differences are equal",
    "bayesian": "probabilities instead of a p-value",
    "too_sure": "too many false alarms with",
    "false_alarms": "rate of false alarms there, at 5 %",
    "shares_draws": "pairs share random draws",
    "pairs": "tests pairs",
    "with_it": "run together with",
    "interval": "interval of the mean difference",
}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, pages in (("Tests", tests().values), ("Corrections", corrections().values)):
        parts += [f"## {title}", *map(section, pages)]
    return "\n".join(parts) + "\n"


def section(each: dict[str, Any]) -> str:
    """One test or correction: what it is about, and all that is known of it."""
    lines = [f"\n### {each['name']}\n", f"{each['title']}. {each['about']}\n"]
    lines += [
        f"- {LABELS.get(key, key.replace('_', ' '))}: {shown(value)}"
        for key, value in each.items()
        if key not in ("name", "title", "about", "parameters") and value not in ("", [])
    ]
    lines += [
        f"- parameter `{one['name']}`: {one['meaning']}; {one['range']} (default {one['default']:g})"
        for one in each["parameters"]
    ]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A value in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else ", ".join(f"`{one}`" for one in value)


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
