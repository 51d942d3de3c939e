"""Verbs on collections and single files: import, show, stamp; check, convert."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.errors import ConventionError
from cranfield.workspace.logs import expanded, judgments_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.check import Findings
    from cranfield.describe.show import Shown
    from cranfield.formats.convert import Converted
    from cranfield.formats.format import Fields
    from cranfield.importers import Imported


def import_collection(
    source: str, dest: str, *, files: Mapping[str, Sequence[str]], meta: Mapping[str, str | None], **options: Any
) -> Imported:
    """Make a collection's folder from files in another layout. `options` are those of the library's function."""
    from cranfield.importers import import_collection
    from cranfield.importers.source import Files

    known = {key: value for key, value in meta.items() if value is not None}
    return import_collection(source, dest, meta=known, files=Files(**files), **options)


def show(collection: str, topic: str | None = None, document: str | None = None) -> Shown:
    """What a collection says of itself, or one of its topics or documents in full."""
    from cranfield.describe.show import show, show_document, show_topic

    opened = cranfield.read_collection(collection)
    if topic is not None:
        return show_topic(opened, topic)
    return show(opened) if document is None else show_document(opened, document)


def stamp(collection: str) -> str:
    """Write a collection's counts and hashes into its collection.toml, and give its path."""
    from cranfield.formats.folder import META, stamp

    opened = cranfield.read_collection(collection)
    stamp(opened)
    return os.path.join(opened.path or collection, META)


def check(
    files: Sequence[str],
    qrels: str | None = None,
    kind: Any = None,
    fields: Fields | None = None,
    topics_file: str | None = None,
    **how: Any,
) -> Findings:
    """What is wrong or suspicious in files (or patterns of them). `how` is what the library's function takes."""
    from cranfield.check import check
    from cranfield.formats.tables import Dialect
    from cranfield.workspace.inputs import given_runs
    from cranfield.workspace.logs import named
    from cranfield.workspace.topics import queries_of

    logs = {word: judgments_of(word) for word in files if named(word) is not None}
    read = [one.file for one in given_runs([word for word in files if word not in logs])]
    said = Dialect(how.get("delimiter"), how.get("encoding"), how.get("decimal"))
    queries = queries_of(topics_file, None, fields, said, bool(how.get("lenient")))
    judged = None if qrels is None else judgments_of(qrels)
    return check([*read, *logs.values()], judged, kind, fields, queries=queries, **how)


def convert(sources: Sequence[str], target: str, *, kind: Any = None, **options: Any) -> Converted:
    """Write files (or patterns of them) in another format. `options` are those of the library's function."""
    from cranfield.formats.convert import convert

    if kind not in (None, "run", "qrels"):
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    return convert(expanded(sources), target, kind=kind, **options)
