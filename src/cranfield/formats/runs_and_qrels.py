"""Files, frames, rows and mappings → `Run` and `Qrels`, and back.

TREC files are recognised here and passed to the kernels unread. Other formats are imported only if a file is
not TREC's, so that the common case starts fast.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from cranfield.base.errors import DataError, DataWarning, FormatError
from cranfield.base.kernels import RowTable
from cranfield.base.qrels import Duplicates, Qrels
from cranfield.base.run import Run, TextSource, is_list, is_pair
from cranfield.formats.csv_tables import DETECTED, Dialect, DialectOptions, open_table
from cranfield.formats.files.trec import TREC
from cranfield.formats.format import NOUNS, USUAL, Head
from cranfield.formats.streams import is_source, is_url, write_bytes

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
    **options: Unpack[DialectOptions],
) -> Run:
    """Read a run from a file (a path, `-` for standard input, an open file, bytes), a frame or a list of rows.

    The format is detected by content unless `format` names it. `lenient` skips malformed lines and counts them.
    `fields` gives the names of columns: {"topic": "search", "document": "sku", "score": "points"}. `delimiter`,
    `encoding` and `decimal` give the dialect of a delimited table if it cannot be detected.

    >>> read_run(b"301 Q0 FBIS3-1 1 9.5 bm25")["301"]
    [('FBIS3-1', 9.5)]
    """
    dialect = Dialect(**options)
    if not is_source(source):
        return _warn_if_empty(Run(_table(source, "run", fields), name or "run"), "the frame")
    file = open_table(source, dialect.encoding)
    file_format = _format_of(file, "run", format, fields, dialect)
    run = Run(file_format.read(file.buffer, "run", file.where, lenient), name or file.name)
    return run if isinstance(run.source, TextSource) and Head(file.buffer).lines else _warn_if_empty(run, file.where)


def _warn_if_empty(run: Run, where: str) -> Run:
    """The run, with a warning if it is empty."""
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
    duplicates: Duplicates = "error",
    grades: Mapping[float, float] | str | None = None,
    **options: Unpack[DialectOptions],
) -> Qrels:
    """Read judgments from anything that `read_run` reads, or from a collection (its folder or a bundled name).

    `duplicates` (error, first, last, best) decides which grade counts if a document is judged twice for a topic.
    `grades` maps each grade of the file to another: {1: 0, 2: 0, 3: 1, 4: 2, 5: 3}, or "1=0,2=0,3=1,4=2,5=3".

    >>> read_qrels(b'{"301": {"FBIS3-1": 1}}')["301"]
    {'FBIS3-1': 1.0}
    """
    dialect = Dialect(**options)
    if not is_source(source):
        return _with_grades(Qrels(_table(source, "qrels", fields), name or "qrels", duplicates), grades)
    path = qrels_in(source)
    file = open_table(path, dialect.encoding)
    usual = file.name if file.where != "<bytes>" else "qrels"
    file_format = _format_of(file, "qrels", format, fields, dialect)
    qrels = _with_grades(file_format.read_qrels(file, name or usual, lenient, duplicates), grades)
    if path is not source:
        from cranfield.formats.collection_folder import read_collection

        collection = read_collection(source)
        least, qrels.corpus = collection.relevant_from, collection.document_ids
        qrels.relevant_from, qrels.explained = None if least == 1 else least, collection.explains_grades
        qrels.workspace = os.fspath(source) if os.path.isdir(source) else None
    return qrels


def qrels_in(source: Any) -> Any:
    """The path of the qrels if `path` is a collection's folder or a bundled name; any other value unchanged."""
    if not isinstance(source, (str, os.PathLike)) or os.path.isfile(source) or os.fspath(source) == "-":
        return source
    from cranfield.formats.collection_folder import QRELS, bundled_names, file_in, folder_of

    path = os.fspath(source)
    if os.path.isdir(path) or (not os.path.exists(path) and path in bundled_names()):
        return file_in(folder_of(path), QRELS)
    return source


def detect(source: Any) -> tuple[str | None, tuple[Kind, ...]]:
    """The format of a file and what it may hold, by content; (None, ()) if nothing fits.

    >>> detect(b"301 0 FBIS3-1 1")
    ('trec', ('qrels',))
    """
    from cranfield.formats.format_registry import strongest

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
        # JSON may have columns as well
        if evidence is not None and kind in evidence.kinds:  # the first line is enough
            return TREC
        from cranfield.formats.format_registry import recognise

        return recognise(file.buffer, kind, file.where, fields or USUAL, dialect)
    from cranfield.formats.format_registry import format_named

    return format_named(name, kind, fields or USUAL, dialect)


# frames, rows and mappings


def _table(source: Any, kind: Kind, fields: Fields | None) -> RowTable:
    from cranfield.formats.frames import is_frame, table_of_frame
    from cranfield.formats.named_columns import table_of_rows

    if is_frame(source):
        return table_of_frame(source, kind, "frame", fields or USUAL)
    if _is_rows(source):
        return table_of_rows(enumerate(source, 1), kind, "rows", fields=fields or USUAL)
    expected = "a path, {topic: {document: number}}, a frame or rows with named columns"
    raise FormatError(f"expected {NOUNS[kind]} as {expected}, found {source!r:.60}")


def _is_rows(source: Any) -> bool:
    from cranfield.formats.named_columns import is_row

    return isinstance(source, (list, tuple)) and bool(source) and is_row(source[0])


def _is_topics(source: Any) -> bool:
    """Whether a value maps topics to documents, {topic: {document: number}}, and not names to runs."""
    if not isinstance(source, Mapping):
        return False
    if not all(type(value) is dict or isinstance(value, Mapping) for value in source.values()):
        return False
    inner = next((value for documents in source.values() for value in documents.values()), 0)
    return not isinstance(inner, (Mapping, list, tuple)) and not hasattr(inner, "__array__") | hasattr(inner, "columns")


def _is_names(source: Any) -> bool:
    """Whether a value is a mapping but not a frame."""
    from cranfield.formats.frames import is_frame

    return isinstance(source, Mapping) and not is_frame(source)


def _is_lists(source: Any, fields: Fields | None) -> bool:
    """Whether a value maps topics to ranked lists or pairs, rather than names to rows or column names to columns."""
    if not isinstance(source, Mapping) or not source or not all(map(is_list, source.values())):
        return False
    from cranfield.formats.named_columns import is_row, names_columns

    firsts = [value[0] for value in source.values() if len(value)]
    ids_only = all(isinstance(first, str) or is_pair(first) for first in firsts)
    return not names_columns(source, ids_only, fields or USUAL) and not any(
        is_row(first) and not is_pair(first) for first in firsts
    )


def _in_ranx(source: Any, kind: Kind) -> dict[str, dict[str, float]] | None:
    """The content of ranx's `Run` or `Qrels` as plain dictionaries; None for any other object."""
    held = None if isinstance(source, Mapping) else getattr(source, kind, None)
    if isinstance(source, type) or not isinstance(held, Mapping):
        return None
    return {topic: dict(documents.items()) for topic, documents in held.items()}


def as_qrels(
    source: Any, format: str | None = None, lenient: bool = False, fields: Fields | None = None, **table: Any
) -> Qrels:
    """Qrels from a path, a mapping, a frame, rows or `Qrels`; also those of a log, a version (LOG@NAME) or a workspace.

    `table` has options of `read_qrels`.
    """
    grades = table.get("grades")
    if isinstance(source, Qrels):
        return source if grades is None else _with_grades(source, grades)
    if isinstance(source, (str, os.PathLike)) and os.fspath(source) != "-":
        from cranfield import _open_judgments

        source = _open_judgments(os.fspath(source))
        if isinstance(source, Qrels):
            return _with_grades(source, grades)
    if is_source(source):
        return read_qrels(source, format, lenient, fields=fields, **table)
    held = _in_ranx(source, "qrels")
    if held is not None:
        return _with_grades(Qrels(held, getattr(source, "name", None) or "qrels"), grades)
    source = _listed(source)
    _refuse_other_kind(source, "qrels", fields)
    if isinstance(source, (RowTable, TextSource)) or _is_names(source):
        return _with_grades(Qrels(source, "qrels", table.get("duplicates", "error")), grades)
    return read_qrels(source, fields=fields, **table)


def _refuse_other_kind(source: Any, kind: Kind, fields: Fields | None = None) -> None:
    """Refuse a run if judgments are expected, and judgments if a run is expected."""
    if kind == "qrels":
        is_run = isinstance(source, Run) or _in_ranx(source, "run") is not None
        wrong = is_run or _is_lists(source, fields) or _is_several(source)
    else:
        wrong = isinstance(source, Qrels) or _in_ranx(source, "qrels") is not None
    if wrong:
        other = NOUNS["run" if kind == "qrels" else "qrels"]
        order = "the judgments come first, as in evaluate(qrels, runs, measures)"
        raise FormatError(f"expected {NOUNS[kind]}, found {other} ({source!r:.60}); {order}", kind)


def _is_several(source: Any) -> bool:
    """Whether a value holds several runs, by name or in a list."""
    some = source.values() if isinstance(source, Mapping) else source if isinstance(source, (list, tuple)) else ()
    first = next(iter(some), None)
    return isinstance(first, Run) or (
        isinstance(first, Mapping) and isinstance(next(iter(first.values()), None), Mapping)
    )


def _with_grades(qrels: Qrels, grades: Mapping[float, float] | str | None) -> Qrels:
    if grades is None:
        return qrels
    from cranfield.formats.grade_scales import regraded

    return regraded(qrels, grades)


def as_runs(
    source: Any, format: str | None = None, lenient: bool = False, fields: Fields | None = None, **dialect: str | None
) -> list[Run]:
    """Runs from a path or glob, a mapping, a frame, rows or `Run`, or from a list or mapping of these.

    `dialect` has options of `read_run`: delimiter, encoding, decimal.

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
    if isinstance(source, (RowTable, TextSource)) or _is_topics(source) or _is_lists(source, fields):
        return [Run(source)]
    if _is_names(source):
        return [_named(str(name), value, format, lenient, fields, **dialect) for name, value in source.items()]
    if isinstance(source, (list, tuple)) and not _is_rows(source):
        _refuse_bare_rows(source)
        return [run for item in source for run in as_runs(item, format, lenient, fields, **dialect)]
    return [read_run(source, fields=fields)]


def _listed(source: Any) -> Any:
    """An iterator of rows as a list; a reader of record batches is a frame and stays as it is."""
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
    """Paths from paths and globs; the matches of a glob are sorted, and a glob without matches is an error."""
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
    """Write a run in rank order; the ending decides format and compression unless `format` is given.

    `-` is standard output. The file is written whole or not at all.
    """
    from cranfield.formats.format_registry import format_for

    [one] = as_runs(run)
    tag = one.tag or "_".join(one.name.split()) or "run"
    file_format = format_for(path, "run", format)
    file_format.refuse(one.table, "run", one.name)
    write_bytes(path, file_format.write(one.table, "run", tag))


def write_qrels(qrels: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write judgments; the ending decides format and compression unless `format` is given; `-` is standard output."""
    from cranfield.formats.format_registry import format_for

    one = as_qrels(qrels)
    file_format = format_for(path, "qrels", format)
    file_format.refuse(one.table, "qrels", one.name)
    write_bytes(path, file_format.write_with_extras(one.table, one.extras))
