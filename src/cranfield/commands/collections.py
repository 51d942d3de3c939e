"""Commands on collections and files: import, show, stamp, check, convert."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import cranfield
from cranfield.base.errors import ConventionError
from cranfield.formats.csv_tables import Dialect
from cranfield.inputs.inputs import run_arguments
from cranfield.inputs.logs import expanded, file_or_qrels, named
from cranfield.inputs.topics import queries_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collections.check import Findings
    from cranfield.collections.describe import CollectionSummary
    from cranfield.formats.convert import Converted
    from cranfield.formats.format import Fields
    from cranfield.formats.importers.collection_import import Imported


def import_collection(
    source: str, dest: str, *, files: Mapping[str, Sequence[str]], meta: Mapping[str, str | None], **options: Any
) -> Imported:
    """Write a collection folder from files in another layout; `options` go to the library function.

    If `dest` is a workspace without a collection, the collection becomes that of the workspace.
    """
    from cranfield.formats.importers.collection_import import import_collection
    from cranfield.formats.importers.source import Files
    from cranfield.inputs.workspace import is_workspace, new_collection_folder

    settings = {key: value for key, value in meta.items() if value is not None}
    if is_workspace(dest):
        settings = {"name": os.path.basename(os.path.abspath(dest)), **settings}
        dest = new_collection_folder(dest)
    return import_collection(source, dest, meta=settings, files=Files(**files), **options)


def show(collection: str, topic: str | None = None, document: str | None = None) -> CollectionSummary:
    """The summary of a collection, or one of its topics or documents in full."""
    from cranfield.collections.describe import show, show_document, show_topic

    opened = cranfield.read_collection(collection)
    if topic is not None:
        return show_topic(opened, topic)
    return show(opened) if document is None else show_document(opened, document)


def stamp(collection: str) -> str:
    """Write a collection's counts and hashes into its collection.toml; returns the path."""
    from cranfield.formats.collection_folder import META, stamp

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
    """The problems in run and qrels files, given by name or pattern; `how` goes to the library function."""
    from cranfield.collections.check import check

    logs = {word: file_or_qrels(word) for word in files if named(word) is not None or os.path.isdir(word)}
    read = [one.file for one in run_arguments([word for word in files if word not in logs])]
    dialect = Dialect(how.get("delimiter"), how.get("encoding"), how.get("decimal"))
    queries = queries_of(topics_file, None, fields, dialect, bool(how.get("lenient")))
    judged = None if qrels is None else file_or_qrels(qrels)
    return check([*read, *logs.values()], judged, kind, fields, queries=queries, **how)


def convert(sources: Sequence[str], target: str, *, kind: Any = None, **options: Any) -> Converted:
    """Convert files, given by name or pattern, to another format; `options` go to the library function."""
    from cranfield.formats.convert import convert

    if kind not in (None, "run", "qrels"):
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    return convert(expanded(sources), target, kind=kind, **options)
