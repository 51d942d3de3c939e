"""Verbs on collections and single files: import, show, list, stamp; check, convert."""

from __future__ import annotations

import os
from itertools import groupby
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.answer import Drawing, Lines, Table
from cranfield.errors import ConventionError
from cranfield.workspace.listing import Listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.answer import Part
    from cranfield.check import Finding
    from cranfield.formats.convert import Converted
    from cranfield.formats.importing import Imported


def import_collection(
    source: str, dest: str, *, files: Mapping[str, Sequence[str]], meta: Mapping[str, str | None], **options: Any
) -> Imported:
    """Make a collection's folder from files in another layout. `options` are those of the library's function."""
    from cranfield.formats.importing import import_collection
    from cranfield.formats.sources.source import Files

    known = {key: value for key, value in meta.items() if value is not None}
    return import_collection(source, dest, meta=known, files=Files(**files), **options)


def show(collection: str, topic: str | None = None, document: str | None = None) -> Listing:
    """What a collection says of itself, or one of its topics or documents in full."""
    from cranfield.describe.show import show, show_document, show_topic

    opened = cranfield.read_collection(collection)
    if topic is not None:
        page = show_topic(opened, topic)
    else:
        page = show(opened) if document is None else show_document(opened, document)
    said = {key: value for key, value in page.items() if value not in (None, "", [], {})}
    parts: list[Part] = []
    for sections, items in groupby(said.items(), lambda item: isinstance(item[1], dict)):
        if sections:
            parts += [
                Drawing(key, [f"  {name}: {_line(each)}" for name, each in value.items()]) for key, value in items
            ]
        else:
            parts.append(Lines([f"{key}: {_line(value)}" for key, value in items]))
    return Listing(page, parts)


def _line(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(
            f"{key}: {_line(each)}" if key != "label" else str(each) for key, each in value.items() if each
        )
    if isinstance(value, list):
        return ", ".join(map(_line, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def known_collections() -> Listing:
    """The collections that lectures name, what they should hold, and where each can be had."""
    from cranfield.catalogue import CATALOGUE, COUNTS

    entries = list(CATALOGUE.values())
    cells = [entry.cells() for entry in entries]
    wide = max(len(row[-1]) for row in cells)
    table = Table(["name", *COUNTS.values(), "from".ljust(wide)], [[*row[:-1], row[-1].ljust(wide)] for row in cells])
    rows = [list(entries[0].row()), *(list(entry.row().values()) for entry in entries)]
    return Listing([entry.to_dict() for entry in entries], [table], rows)


def stamp(collection: str) -> str:
    """Write a collection's counts and hashes into its collection.toml, and give its path."""
    from cranfield.formats.folder import META, stamp

    opened = cranfield.read_collection(collection)
    stamp(opened)
    return os.path.join(opened.path or collection, META)


def check(files: Sequence[str], qrels: str | None = None, kind: Any = None) -> list[Finding]:
    """What is wrong or suspicious in files (or patterns of them)."""
    from cranfield.check import check
    from cranfield.formats import expand

    return check(expand(files), qrels, kind)


def convert(sources: Sequence[str], target: str, *, kind: Any = None, **options: Any) -> Converted:
    """Write files (or patterns of them) in another format. `options` are those of the library's function."""
    from cranfield.formats import expand
    from cranfield.formats.convert import convert

    if kind not in (None, "run", "qrels"):
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    return convert(expand(sources), target, kind=kind, **options)
