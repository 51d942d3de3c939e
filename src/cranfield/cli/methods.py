"""How statistical methods are listed and explained. Everything shown comes from the methods' classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.answer import as_json
from cranfield.cli.output import put, screen_width, style
from cranfield.columns import aligned, folded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Page = dict[str, Any]


def show_all(pages: list[Page], columns: Sequence[str], shape: str, output: str | None) -> None:
    """List methods: a row each with these columns, and what each is about."""
    if shape == "json":
        put(as_json(pages), output)
        return
    limit = screen_width(output)
    rows = [[*map(_spaced, columns), "."], *([*(page[column] for column in columns), "."] for page in pages)]
    starts = [line.removesuffix(".") for line in aligned(rows, left=len(rows[0]))]
    texts = ["about", *(page["about"] for page in pages)]
    lines = [folded(start + text, limit, len(start)) for start, text in zip(starts, texts, strict=True)]
    put("\n".join(lines), output)


def show_one(page: Page, shape: str, output: str | None) -> None:
    """Explain a method: what it is about, then whatever else is known of it."""
    put(as_json(page) if shape == "json" else _explained(page, screen_width(output), style(output)), output)


def _explained(page: Page, limit: int | None, paint: Callable[[str, str], str] | None) -> str:
    facts = {key: value for key, value in page.items() if key not in ("name", "title", "about", "parameters")}
    margin = max(map(len, facts)) + 2
    lines = [f"{paint('head', page['name']) if paint else page['name']}  ({page['title']})", ""]
    lines += [folded(page["about"], limit), ""]
    lines += [folded(_spaced(key).ljust(margin) + _shown(value), limit, margin) for key, value in facts.items()]
    for each in page["parameters"]:
        text = f"{each['name']}: {each['meaning']}; {each['range']} (default {each['default']:g})"
        lines.append(folded("parameter".ljust(margin) + text, limit, margin))
    return "\n".join(lines)


def _spaced(key: str) -> str:
    return key.replace("_", " ")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (value if isinstance(value, str) else ", ".join(value)) or "-"
