"""All layouts, and which of them a path is of. The first that recognises its files wins, so the particular come first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError, DataError, FormatError
from cranfield.formats.registry import load_all
from cranfield.importers import layouts
from cranfield.importers.source import DEFINED, Files, Options, Source

if TYPE_CHECKING:
    from collections.abc import Sequence


load_all(layouts)
SOURCES: dict[str, type[Source]] = {cls.name: cls for cls in sorted(DEFINED, key=lambda cls: (cls.place, cls.name))}


def open_source(path: str, layout: str | None, options: Options, files: Files | None = None) -> Source:
    """The source at a path. `files` overrules which of its files hold what, part by part."""
    chosen = _chosen(path, layout)
    identified = all(cls.prefix for cls in chosen)  # by an identifier, which is no path
    if not identified:
        _refuse_path(path, layout)
    named = files if files is not None and files.documents else None
    for cls in chosen:
        found = Files([path]) if identified else cls.find(path, options)
        if found is not None:
            return cls(_overruled(found, files), options)
        if named is not None and cls.find(named.documents[0], options) is not None:
            return _beside(cls, path, named, options)
    if layout in SOURCES and named is not None:  # said in so many words
        return _beside(SOURCES[layout], path, named, options)
    if layout in SOURCES and not os.path.isdir(path):
        return SOURCES[layout](_overruled(Files([path]), files), options)
    wanted = " or ".join(cls.name for cls in chosen) if layout else "any known layout"
    advice = "--from LAYOUT --documents FILE names the layout and the files"
    raise FormatError(f"{path}: not recognised as {wanted} ({', '.join(SOURCES)}); {advice}")


def _beside(cls: type[Source], path: str, named: Files, options: Options) -> Source:
    """Documents from files that were named; topics and judgments that are not from the folder, or a word that it has none."""
    read = cls(_overruled(cls.rest(path, options) if os.path.isdir(path) else Files(), named), options)
    for what, option, own, taken in (
        ("topics", "--topics", named.topics, read.files.topics),
        ("judgments", "--qrels", named.qrels, read.files.qrels),
    ):
        if taken and not own:
            read.notes.append(f"{what} are taken from {', '.join(map(os.path.basename, taken))}, which lies in {path}")
        if not taken:
            read.notes.append(f"no {what} of {cls.name} files in {path}: {option} FILE names them")
    return read


def open_topics(read: Source, files: Files | None) -> Source:
    """Where the topics are read: in the source itself, unless a file that was named is plainly of another layout.

    Documents in CSV and topics in TREC's XML is how some tracks hand their collections out.
    """
    if files is None or not files.topics:
        return read
    for cls in reversed(SOURCES.values()):  # what is known by its content before what is known by its ending
        if all(map(cls.asks, files.topics)) and not (cls.endings and read.own_tables):
            return read if isinstance(read, cls) else cls(Files(topics=files.topics), read.options)
    return read


def _chosen(path: str, layout: str | None) -> Sequence[type[Source]]:
    marked = [cls for cls in SOURCES.values() if cls.prefix and path.startswith(cls.prefix)]
    named = marked or [cls for cls in SOURCES.values() if layout in (None, cls.name, cls.family)]
    if not named:
        raise ConventionError(f"no layout {layout!r}; there are {', '.join(SOURCES)}")
    return named


def _refuse_path(path: str, layout: str | None) -> None:
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file or folder; a data set of ir_datasets is written ir_datasets:{path}")
    if layout is None and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FormatError(f"{path}: a pipe can be read once only, so its layout is not detected; say it with --from")


def _overruled(found: Files, named: Files | None) -> Files:
    if named is None:
        return found
    unread = () if named.qrels else found.unread
    return Files(named.documents or found.documents, named.topics or found.topics, named.qrels or found.qrels, unread)
