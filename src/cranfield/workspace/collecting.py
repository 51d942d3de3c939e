"""Verbs on collections: import, show, check, stats, diff, list."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.workspace.files import draw_chart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.catalogue import Catalogue
    from cranfield.check import Findings
    from cranfield.describe import CollectionDiff, CollectionStats
    from cranfield.describe.show import Shown
    from cranfield.importers import Imported


def import_(
    source: str,
    dest: str,
    *,
    known: Mapping[str, str | None] | None = None,
    files: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Imported:
    """Make a collection's folder from files in another layout. `options` are those of `import_collection`."""
    from cranfield.importers import import_collection
    from cranfield.importers.source import Files

    meta = {key: value for key, value in (known or {}).items() if value is not None}
    return import_collection(source, dest, meta=meta, files=Files(**(files or {})), progress=progress, **options)


def collection_show(collection: str, topic: str | None = None, document: str | None = None) -> Shown:
    """What a collection says of itself, or one of its topics or documents in full."""
    from cranfield.describe.show import show, show_document, show_topic
    from cranfield.formats.folder import read_collection

    opened = read_collection(collection)
    if topic is not None:
        return show_topic(opened, topic)
    return show(opened) if document is None else show_document(opened, document)


def collection_check(collection: str, progress: Callable[[int, int | None], None] | None = None) -> Findings:
    """What would ruin experiments with a collection."""
    from cranfield.check.collection import check_collection

    return check_collection(collection, progress)


def collection_stats(collection: str, progress: Callable[[int, int | None], None] | None = None) -> CollectionStats:
    """What a collection holds, in figures."""
    from cranfield.describe import stats

    return stats(collection, progress)


def draw_stats(stats: CollectionStats, path: str) -> bool:
    """Draw a collection's distributions if the file's ending is that of a chart, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(stats), path)


def collection_diff(a: str, b: str, progress: Callable[[int, int | None], None] | None = None) -> CollectionDiff:
    """How two collections differ."""
    from cranfield.describe import diff

    return diff(a, b, progress)


def collection_list() -> Catalogue:
    """The collections that lectures name."""
    from cranfield.catalogue import CATALOGUE

    return CATALOGUE


def collection_stamp(collection: str) -> str:
    """Write a collection's counts and hashes into its collection.toml, and give its path."""
    from cranfield.formats.folder import META, read_collection, stamp

    opened = read_collection(collection)
    stamp(opened)
    return os.path.join(opened.path or collection, META)
