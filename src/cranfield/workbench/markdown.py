"""A small part of Markdown as HTML, for guidelines: headings, paragraphs, lists, quotes, code, emphasis and links.

Every character of the source is escaped before a tag of ours is put around it, so HTML in the source is shown as text. Links
lead to http, https and mailto addresses only. There are no images: a page loads nothing from other hosts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEEPEST = 8  # quotes and lists inside each other; what is deeper is text
HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*")
BULLET = re.compile(r"[ ]{0,3}[-*+][ \t]+(.*)")
NUMBER = re.compile(r"[ ]{0,3}\d{1,9}[.)][ \t]+(.*)")
RULE = re.compile(r"[ ]{0,3}(?:-[ \t]*){3,}|[ ]{0,3}(?:\*[ \t]*){3,}")
FENCE = "```"
INLINE = re.compile(
    r"(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|`(?P<code>[^`\n]+)`"
    r"|\[(?P<text>[^\[\]\n]{1,300})\]\((?P<address>(?:https?://|mailto:)[^\s()<>]{1,1000})\)"
    r"|\*\*(?P<strong>[^\s*](?:[^*\n]{0,500}[^\s*])?)\*\*"
    r"|(?<![\w*])\*(?P<star>[^\s*](?:[^*\n]{0,500}[^\s*])?)\*(?![\w*])"
    r"|(?<!\w)_(?P<line>[^\s_](?:[^_\n]{0,500}[^\s_])?)_(?!\w)"
)


@lru_cache(8)
def markdown(source: str, first_level: int = 3) -> Markup:
    """The HTML of a text; its highest headings have the level `first_level`.

    >>> print(markdown("# Grades\\n\\nRead **all** of it, <b>please</b>."))
    <h3>Grades</h3>
    <p>Read <strong>all</strong> of it, &lt;b&gt;please&lt;/b&gt;.</p>
    """
    return Markup("\n").join(_blocks(source.expandtabs(4).splitlines(), first_level, 0))


def _blocks(lines: Sequence[str], level: int, depth: int) -> list[Markup]:
    """The blocks of some lines, each as HTML."""
    blocks: list[Markup] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.lstrip().startswith(FENCE):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == FENCE), len(lines))
            blocks.append(_tag("pre", _tag("code", escape("\n".join(lines[at + 1 : end])))))
            at = end + 1
        elif (heading := HEADING.fullmatch(line)) is not None:
            blocks.append(_tag(f"h{min(6, level + len(heading[1]) - 1)}", inline(heading[2])))
            at += 1
        elif RULE.fullmatch(line):
            blocks.append(Markup("<hr>"))
            at += 1
        elif depth < DEEPEST and line.lstrip().startswith(">"):
            end = _end(lines, at, lambda each: each.lstrip().startswith(">"))
            inside = [each.lstrip()[1:].removeprefix(" ") for each in lines[at:end]]
            blocks.append(_tag("blockquote", Markup("\n").join(_blocks(inside, level, depth + 1))))
            at = end
        elif depth < DEEPEST and (item := BULLET.fullmatch(line) or NUMBER.fullmatch(line)) is not None:
            html, at = _list(lines, at, item.re, level, depth)
            blocks.append(html)
        else:
            end = _end(lines, at + 1, lambda each: bool(each.strip()) and not _begins_block(each, depth))
            blocks.append(_tag("p", inline("\n".join(each.strip() for each in lines[at:end]))))
            at = end
    return blocks


def _begins_block(line: str, depth: int) -> bool:
    if HEADING.fullmatch(line) or RULE.fullmatch(line) or line.lstrip().startswith(FENCE):
        return True
    nested = line.lstrip().startswith(">") or BULLET.fullmatch(line) or NUMBER.fullmatch(line)
    return depth < DEEPEST and bool(nested)


def _end(lines: Sequence[str], start: int, belongs: Callable[[str], bool]) -> int:
    """The first line from `start` on that does not belong to a block."""
    return next((i for i in range(start, len(lines)) if not belongs(lines[i])), len(lines))


def _list(lines: Sequence[str], at: int, marker: re.Pattern[str], level: int, depth: int) -> tuple[Markup, int]:
    """A list that begins at a line, and the line behind it; indented lines belong to the item above them."""
    items: list[list[str]] = []
    deepest = len(lines[at]) - len(lines[at].lstrip(" ")) + 1  # blanks before a further item; more begin a list inside
    while at < len(lines):
        item = marker.fullmatch(lines[at])
        if item is not None and len(lines[at]) - len(lines[at].lstrip(" ")) > deepest:
            item = None
        blank = not lines[at].strip()
        if item is not None:
            items.append([item[1]])
        elif blank and at + 1 < len(lines) and (marker.fullmatch(lines[at + 1]) or lines[at + 1].startswith("  ")):
            items[-1].append("")
        elif not blank and (lines[at].startswith("  ") or not _begins_block(lines[at], depth)):
            indent = len(lines[at]) - len(lines[at].lstrip(" "))
            items[-1].append(lines[at][min(indent, 2 if marker is BULLET else 3) :])
        else:
            break
        at += 1
    html = [_tag("li", _item(each, level, depth + 1)) for each in items]
    return _tag("ul" if marker is BULLET else "ol", Markup("").join(html)), at


def _item(lines: Sequence[str], level: int, depth: int) -> Markup:
    """The content of an item; a single paragraph stands without a tag of its own."""
    blocks = _blocks(lines, level, depth)
    if len(blocks) >= 1 and blocks[0].startswith("<p>") and "" not in lines:
        blocks[0] = blocks[0][3:-4]
    return Markup("\n").join(blocks)


def inline(text: str) -> Markup:
    """The HTML of a line: emphasis, code and links; everything else is escaped."""
    parts, end = [], 0
    for match in INLINE.finditer(text):
        parts += [escape(text[end : match.start()]), _span(match)]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _span(match: re.Match[str]) -> Markup:
    if match["escaped"]:
        return escape(match["escaped"][1])
    if match["code"]:
        return _tag("code", escape(match["code"]))
    if match["text"]:
        address = escape(match["address"])
        return Markup(f'<a href="{address}" rel="noopener noreferrer" target="_blank">{inline(match["text"])}</a>')
    if match["strong"]:
        return _tag("strong", inline(match["strong"]))
    return _tag("em", inline(match["star"] or match["line"]))


def _tag(name: str, content: Markup) -> Markup:
    return Markup(f"<{name}>{content}</{name}>")
