"""All layouts, and which of them a path is of. The first that recognises its files wins, so the particular come first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cranfield.errors import DataError, FormatError
from cranfield.formats.sources.beir_folder import Beir
from cranfield.formats.sources.csv_text import Csv
from cranfield.formats.sources.ir_datasets_id import IrDatasets
from cranfield.formats.sources.json_lines import JsonLines
from cranfield.formats.sources.lisa import Lisa
from cranfield.formats.sources.msmarco_tables import MsMarco
from cranfield.formats.sources.npl import Npl
from cranfield.formats.sources.parquet_table import Parquet
from cranfield.formats.sources.smart import Smart
from cranfield.formats.sources.source import Files, Options, Source
from cranfield.formats.sources.time_magazine import Time
from cranfield.formats.sources.trec_text import Trec

if TYPE_CHECKING:
    from collections.abc import Sequence


SOURCES: dict[str, type[Source]] = {
    each.name: each for each in (Smart, Time, Npl, Lisa, Beir, MsMarco, JsonLines, Csv, Parquet, Trec, IrDatasets)
}


def open_source(path: str, layout: str | None, options: Options, files: Files | None = None) -> Source:
    """The source at a path. `files` overrules which of its files hold what, part by part."""
    chosen = [IrDatasets] if path.startswith(IrDatasets.prefix) else _chosen(layout)
    if IrDatasets not in chosen or layout is None:
        _present(path)
    if layout is None and os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FormatError(f"{path}: a pipe can be read once only, so its layout is not detected; say it with --from")
    named = files if files is not None and files.documents else None
    for cls in chosen:
        found = Files([path]) if cls is IrDatasets and layout else cls.find(path, options)
        if found is None and named is not None and cls.find(named.documents[0], options) is not None:
            found = named
        if found is not None:
            return cls(_overruled(found, files), options)
    if layout in SOURCES and (named is not None or not os.path.isdir(path)):  # said in so many words
        return SOURCES[layout](named or _overruled(Files([path]), files), options)
    wanted = " or ".join(cls.name for cls in chosen) if layout else "any known layout"
    advice = "--from LAYOUT --documents FILE names the layout and the files"
    raise FormatError(f"{path}: not recognised as {wanted} ({', '.join(SOURCES)}); {advice}")


def open_topics(read: Source, files: Files | None) -> Source:
    """Where the topics are read: in the source itself, unless a file that was named is plainly of another layout.

    Documents in CSV and topics in TREC's XML is how some tracks hand their collections out.
    """
    if files is None or not files.topics:
        return read
    other: type[Source] | None = None
    if all(map(Trec.asks, files.topics)):
        other = Trec
    elif isinstance(read, (Smart, Time, Npl, Lisa, Trec, JsonLines, Csv, Parquet)):
        rows = (cls for cls in (JsonLines, Csv, Parquet) if all(cls.find(path, read.options) for path in files.topics))
        other = next(rows, None)
    return read if other is None or isinstance(read, other) else other(Files(topics=files.topics), read.options)


def _chosen(layout: str | None) -> Sequence[type[Source]]:
    if layout is None:
        return list(SOURCES.values())
    found = [cls for cls in SOURCES.values() if layout in (cls.name, cls.family)]
    if not found:
        raise FormatError(f"no layout {layout!r}; there are {', '.join(SOURCES)}")
    return found


def _present(path: str) -> None:
    if not os.path.exists(path) and not path.startswith(IrDatasets.prefix):
        raise DataError(f"{path}: no such file or folder; a data set of ir_datasets is written ir_datasets:{path}")


def _overruled(found: Files, given: Files | None) -> Files:
    if given is None:
        return found
    return Files(given.documents or found.documents, given.topics or found.topics, given.qrels or found.qrels)
