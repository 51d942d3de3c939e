"""Whatever holds a run or judgments → `Run` and `Qrels`, and back: files, frames, rows, mappings, lists of them.

TREC files are recognised here and handed to the kernels as they are; the other formats are loaded only
when a file is not TREC's, so that the common case imports next to nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cranfield.collection import Duplicates, Qrels
from cranfield.errors import DataError, DataWarning, FormatError
from cranfield.formats.format import NOUNS, USUAL, Head
from cranfield.formats.known.trec import TREC
from cranfield.formats.streams import is_source, is_url, write_bytes
from cranfield.formats.tables import DETECTED, Dialect, open_table
from cranfield.kernels import Table
from cranfield.lists import is_list, is_pair
from cranfield.run import Run, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.formats.format import Fields, Format, Kind
    from cranfield.formats.streams import Opened


# reading


def read_run(
    source: Any,
    format: str | None = None,
    lenient: bool = False,
    name: str | None = None,
    fields: Fields | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Run:
    """Read a run from a file (a path, `-` for standard input, an open file, bytes), a frame or a list of rows.

    The format is recognised by content; `format` overrules that. `lenient` passes over malformed lines and counts them.
    `fields` says what columns are called: {"topic": "search", "document": "sku", "score": "points"}.
    `delimiter`, `encoding` and `decimal` say how a table of separated values is written, where detection is refused.

    >>> read_run(b"301 Q0 FBIS3-1 1 9.5 bm25")["301"]
    [('FBIS3-1', 9.5)]
    """
    if not is_source(source):
        return _told_if_empty(Run(_table(source, "run", fields), name or "run"), "the frame")
    dialect = Dialect(delimiter, encoding, decimal)
    file = open_table(source, encoding)
    chosen = _format_of(file, "run", format, fields, dialect)
    run = Run(chosen.read(file.buffer, "run", file.where, lenient), name or file.name)
    return run if isinstance(run.source, Text) and Head(file.buffer).lines else _told_if_empty(run, file.where)


def _told_if_empty(run: Run, where: str) -> Run:
    """The run, with a warning where it holds nothing: every verb that reads runs reports it."""
    if not len(run):
        warnings.warn(f"{where}: the run is empty: it returns no document for any topic", DataWarning, stacklevel=3)
    return run


def read_qrels(
    source: Any,
    format: str | None = None,
    lenient: bool = False,
    name: str | None = None,
    fields: Fields | None = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    duplicates: Duplicates = "error",
    grades: Mapping[float, float] | str | None = None,
) -> Qrels:
    """Read judgments from whatever `read_run` reads runs from, or from a collection: its folder, or a bundled one's name.

    `duplicates` (error, first, last, best) says which grade counts of a document that is judged twice for a topic.
    `grades` gives each grade of the file another: {1: 0, 2: 0, 3: 1, 4: 2, 5: 3}, or "1=0,2=0,3=1,4=2,5=3".

    >>> read_qrels(b'{"301": {"FBIS3-1": 1}}')["301"]
    {'FBIS3-1': 1.0}
    """
    if not is_source(source):
        return _with_grades(Qrels(_table(source, "qrels", fields), name or "qrels", duplicates), grades)
    path = qrels_in(source)
    dialect = Dialect(delimiter, encoding, decimal)
    file = open_table(path, encoding)
    usual = file.name if file.where != "<bytes>" else "qrels"
    chosen = _format_of(file, "qrels", format, fields, dialect)
    qrels = _with_grades(chosen.read_qrels(file, name or usual, lenient, duplicates), grades)
    if path is not source:
        from cranfield.formats.folder import read_collection

        collection = read_collection(source)
        least, qrels.corpus = collection.relevant_from, collection.documents
        qrels.relevant_from, qrels.explained = None if least == 1 else least, collection.explains_grades
    return qrels


def qrels_in(source: Any) -> Any:
    """The qrels in a collection's folder, or in the bundled collection of that name; anything else as it is."""
    if not isinstance(source, (str, os.PathLike)) or os.path.isfile(source) or os.fspath(source) == "-":
        return source
    from cranfield.formats.folder import QRELS, bundled_names, file_in, folder_of

    path = os.fspath(source)
    if os.path.isdir(path) or (not os.path.exists(path) and path in bundled_names()):
        return file_in(folder_of(path), QRELS)
    return source


def detect(source: Any) -> tuple[str | None, tuple[Kind, ...]]:
    """The format of a file and what it may hold, by content; (None, ()) if nothing fits.

    >>> detect(b"301 0 FBIS3-1 1")
    ('trec', ('qrels',))
    """
    from cranfield.formats.registry import strongest

    file = open_table(source)
    match = strongest(Head(file.buffer), file.where, dialect=DETECTED.of(file))
    return (match[0].name, tuple(sorted(match[1]))) if match else (None, ())


def _format_of(
    file: Opened, kind: Kind, name: str | None, fields: Fields | None, dialect: Dialect = DETECTED
) -> Format:
    dialect = (DETECTED if dialect == DETECTED else dialect).of(file)
    if name is None:
        start = bytes(file.buffer[:4096]).lstrip()
        line, end, _ = start.partition(b"\n")
        evidence = TREC.sniff(Head(line)) if end and line[:1] not in b"{[" and dialect.delimiter is None else None
        # JSON may have columns too
        if evidence is not None and kind in evidence.kinds:  # the first line will do
            return TREC
        from cranfield.formats.registry import recognise

        return recognise(file.buffer, kind, file.where, fields or USUAL, dialect)
    from cranfield.formats.registry import format_named

    return format_named(name, kind, fields or USUAL, dialect)


# frames, rows and mappings


def _table(source: Any, kind: Kind, fields: Fields | None) -> Table:
    from cranfield.formats.frames import is_frame, table_of_frame
    from cranfield.formats.named import table_of_rows

    if is_frame(source):
        return table_of_frame(source, kind, "frame", fields or USUAL)
    if _is_rows(source):
        return table_of_rows(enumerate(source, 1), kind, "rows", fields=fields or USUAL)
    expected = "a path, {topic: {document: number}}, a frame or rows with named columns"
    raise FormatError(f"expected {NOUNS[kind]} as {expected}, found {source!r:.60}")


def _is_rows(source: Any) -> bool:
    from cranfield.formats.named import is_row

    return isinstance(source, (list, tuple)) and bool(source) and is_row(source[0])


def _is_topics(source: Any) -> bool:
    """Whether it maps topics to documents: {topic: {document: number}}, and not names to runs."""
    if not isinstance(source, Mapping):
        return False
    if not all(type(value) is dict or isinstance(value, Mapping) for value in source.values()):
        return False
    inner = next((value for documents in source.values() for value in documents.values()), 0)
    return not isinstance(inner, (Mapping, list, tuple)) and not hasattr(inner, "__array__") | hasattr(inner, "columns")


def _is_names(source: Any) -> bool:
    """Whether it is a mapping, and not one of columns."""
    from cranfield.formats.frames import is_frame

    return isinstance(source, Mapping) and not is_frame(source)


def _is_lists(source: Any, fields: Fields | None) -> bool:
    """Whether it maps topics to ranked lists or pairs, and neither names to rows nor the names of columns to columns."""
    if not isinstance(source, Mapping) or not source or not all(map(is_list, source.values())):
        return False
    from cranfield.formats.named import is_row, names_columns

    firsts = [value[0] for value in source.values() if len(value)]
    ids_only = all(isinstance(first, str) or is_pair(first) for first in firsts)
    return not names_columns(source, ids_only, fields or USUAL) and not any(
        is_row(first) and not is_pair(first) for first in firsts
    )


def _in_ranx(source: Any, kind: Kind) -> dict[str, dict[str, float]] | None:
    """What ranx's `Run` holds as `run` and its `Qrels` as `qrels`, typed dictionaries, as plain ones."""
    held = None if isinstance(source, Mapping) else getattr(source, kind, None)
    if isinstance(source, type) or not isinstance(held, Mapping):
        return None
    return {topic: dict(documents.items()) for topic, documents in held.items()}


def as_qrels(
    source: Any, format: str | None = None, lenient: bool = False, fields: Fields | None = None, **table: Any
) -> Qrels:
    """Qrels from whatever holds judgments: a path, a mapping, a frame, rows, `Qrels`. `table` is what `read_qrels` takes."""
    grades = table.get("grades")
    if isinstance(source, Qrels):
        return source if grades is None else _with_grades(source, grades)
    if is_source(source):
        return read_qrels(source, format, lenient, fields=fields, **table)
    held = _in_ranx(source, "qrels")
    if held is not None:
        return _with_grades(Qrels(held, getattr(source, "name", None) or "qrels"), grades)
    source = _listed(source)
    _refuse_other_kind(source, "qrels", fields)
    if isinstance(source, (Table, Text)) or _is_names(source):
        return _with_grades(Qrels(source, "qrels", table.get("duplicates", "error")), grades)
    return read_qrels(source, fields=fields, **table)


def _refuse_other_kind(source: Any, kind: Kind, fields: Fields | None = None) -> None:
    """Stop at a run where judgments are expected, or at judgments where a run is: objects say what they are."""
    if kind == "qrels":
        wrong = (
            isinstance(source, Run)
            or _in_ranx(source, "run") is not None
            or _is_lists(source, fields)
            or _is_several(source)
        )
    else:
        wrong = isinstance(source, Qrels) or _in_ranx(source, "qrels") is not None
    if wrong:
        found = NOUNS["run" if kind == "qrels" else "qrels"]
        order = "the judgments come first, as in evaluate(qrels, runs, measures)"
        raise FormatError(f"expected {NOUNS[kind]}, found {found} ({source!r:.60}); {order}", kind)


def _is_several(source: Any) -> bool:
    """Whether it holds runs by name or one after the other, each a mapping of topics."""
    some = source.values() if isinstance(source, Mapping) else source if isinstance(source, (list, tuple)) else ()
    first = next(iter(some), None)
    return isinstance(first, Run) or (
        isinstance(first, Mapping) and isinstance(next(iter(first.values()), None), Mapping)
    )


def _with_grades(qrels: Qrels, grades: Mapping[float, float] | str | None) -> Qrels:
    if grades is None:
        return qrels
    from cranfield.formats.grades import regraded

    return regraded(qrels, grades)


def as_runs(
    source: Any, format: str | None = None, lenient: bool = False, fields: Fields | None = None, **dialect: str | None
) -> list[Run]:
    """Runs from whatever holds one or several: a path or a glob, a mapping, a frame, rows, `Run`; a list, or names to these.

    `dialect` is what `read_run` takes: delimiter, encoding, decimal.

    >>> as_runs({"q1": ["d2", "d1"]})[0].to_dict()
    {'q1': {'d2': 2.0, 'd1': 1.0}}
    """
    if isinstance(source, Run):
        return [source]
    if isinstance(source, str) and source != "-" and _is_pattern(source):
        return [read_run(path, format, lenient, fields=fields, **dialect) for path in expand([source])]
    if is_source(source):
        return [read_run(source, format, lenient, fields=fields, **dialect)]
    held = _in_ranx(source, "run")
    if held is not None:
        return [Run(held, getattr(source, "name", None) or "run")]
    _refuse_other_kind(source, "run")
    source = _listed(source)
    if _is_topics(source) and all(type(documents) is dict for documents in source.values()):
        return [Run.unread(source)]
    if isinstance(source, (Table, Text)) or _is_topics(source) or _is_lists(source, fields):
        return [Run(source)]
    if _is_names(source):
        return [_named(str(name), value, format, lenient, fields, **dialect) for name, value in source.items()]
    if isinstance(source, (list, tuple)) and not _is_rows(source):
        _refuse_bare_rows(source)
        return [run for item in source for run in as_runs(item, format, lenient, fields, **dialect)]
    return [read_run(source, fields=fields)]


def _listed(source: Any) -> Any:
    """Rows that come one by one as a list; a reader of record batches is a frame."""
    return list(source) if hasattr(source, "__next__") and not hasattr(source, "__arrow_c_stream__") else source


def _named(
    name: str, source: Any, format: str | None, lenient: bool, fields: Fields | None, **dialect: str | None
) -> Run:
    runs = as_runs(source, format, lenient, fields, **dialect)
    if len(runs) != 1:
        raise FormatError(f"{name!r} stands for {len(runs)} runs, expected one; give each its own name")
    return runs[0].renamed(name)


def _refuse_bare_rows(rows: list[Any] | tuple[Any, ...]) -> None:
    first = rows[0] if rows else None
    if isinstance(first, (list, tuple)) and len(first) > 2 and isinstance(first[-1], (int, float)):
        names = "named tuples or mappings with query_id, doc_id, score"
        raise FormatError(f"rows need names for their columns: expected {names}, found {first!r:.60}")


def expand(patterns: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Paths from paths and globs, the matches of each glob in sorted order; a glob that matches nothing is an error."""
    paths: list[str] = []
    for pattern in [os.fspath(one) for one in patterns]:
        if not _is_pattern(pattern):
            paths.append(pattern)
            continue
        import glob

        matches = sorted(path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path))
        if not matches:
            raise DataError(f"{pattern}: no file matches")
        paths += matches
    return paths


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[") and not os.path.exists(path) and not is_url(path)


# writing


def write_run(run: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a run in rank order: the format and the compression by the ending, or as `format` says; `-` is standard output.

    The file is written whole or not at all.
    """
    from cranfield.formats.registry import format_for

    [one] = as_runs(run)
    tag = one.tag or "_".join(one.name.split()) or "run"
    chosen = format_for(path, "run", format)
    chosen.refuse(one.table, "run", one.name)
    write_bytes(path, chosen.write(one.table, "run", tag))


def write_qrels(qrels: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write judgments: the format and the compression by the ending, or as `format` says; `-` is standard output."""
    from cranfield.formats.registry import format_for

    one = as_qrels(qrels)
    chosen = format_for(path, "qrels", format)
    chosen.refuse(one.table, "qrels", one.name)
    write_bytes(path, chosen.write_known(one.table, one.extras))
