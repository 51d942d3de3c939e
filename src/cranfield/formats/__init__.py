"""Files and frames → Run and Qrels, and back. One self-describing module per format; detected by content.

TREC files are recognised here and handed to the kernels as they are; the other formats are loaded only
when a file is not TREC's, so that the common case imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cranfield.collection import Qrels
from cranfield.errors import DataError, FormatError
from cranfield.formats.streams import is_source, open_buffer, opened, run_name
from cranfield.formats.trec import TREC
from cranfield.kernels import Table
from cranfield.run import Run, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.formats.format import Format, Kind
    from cranfield.formats.registry import FORMATS as FORMATS
    from cranfield.formats.streams import Opened

__all__ = [
    "FORMATS",
    "as_qrels",
    "as_runs",
    "detect",
    "expand",
    "open_buffer",
    "qrels_in",
    "read_qrels",
    "read_run",
    "run_name",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name != "FORMATS":
        raise AttributeError(f"module 'cranfield.formats' has no attribute {name!r}")
    from cranfield.formats.registry import FORMATS

    return FORMATS


# reading


def read_run(given: Any, format: str | None = None, lenient: bool = False, name: str | None = None) -> Run:
    """Read a run from a file (a path, `-` for standard input, an open file, bytes), a frame or a list of rows.

    The format is recognised by content; `format` overrules that. `lenient` passes over malformed lines and counts them.

    >>> read_run(b"301 Q0 FBIS3-1 1 9.5 bm25")["301"]
    [('FBIS3-1', 9.5)]
    """
    if not is_source(given):
        return Run(_table(given, "run"), name or "run")
    file = opened(given)
    return Run(_chosen(file, "run", format).read(file.buffer, "run", file.where, lenient), name or file.name)


def read_qrels(given: Any, format: str | None = None, lenient: bool = False, name: str | None = None) -> Qrels:
    """Read judgments from whatever `read_run` reads runs from, or from a collection: its folder, or a bundled one's name.

    >>> read_qrels(b'{"301": {"FBIS3-1": 1}}')["301"]
    {'FBIS3-1': 1.0}
    """
    if not is_source(given):
        return Qrels(_table(given, "qrels"), name or "qrels")
    file = opened(qrels_in(given))
    chosen = _chosen(file, "qrels", format)
    source = chosen.read(file.buffer, "qrels", file.where, lenient)
    qrels = Qrels(source, name or (file.name if file.where != "<bytes>" else "qrels"))
    qrels.extras = chosen.known(file.buffer, file.where, lenient)
    qrels.relevant_from = _relevant_from(given)
    if not len(qrels):
        raise DataError(f"{file.where}: no judgments{'' if len(file.buffer) else ' (the file is empty)'}")
    return qrels


def qrels_in(given: Any) -> Any:
    """The qrels in a collection's folder, or in the bundled collection of that name; anything else as it is."""
    if not isinstance(given, (str, os.PathLike)) or os.path.isfile(given) or os.fspath(given) == "-":
        return given
    from cranfield.formats.folder import QRELS, bundled_names, file_in, folder_of

    path = os.fspath(given)
    if os.path.isdir(path) or (not os.path.exists(path) and path in bundled_names()):
        return file_in(folder_of(path), QRELS)
    return given


def _relevant_from(given: Any) -> float | None:
    """From which grade on a document is relevant, where a collection is given and says anything but 1."""
    if qrels_in(given) is given:
        return None
    from cranfield.formats.folder import read_collection

    least = read_collection(given).relevant_from
    return None if least == 1 else least


def detect(given: Any) -> tuple[str | None, tuple[Kind, ...]]:
    """The format of a file and what it may hold, by content; (None, ()) if nothing fits.

    >>> detect(b"301 0 FBIS3-1 1")
    ('trec', ('qrels',))
    """
    from cranfield.formats.registry import HEAD, kinds_in

    found, kinds = kinds_in(bytes(opened(given).buffer[:HEAD]))
    return (found.name if found else None), tuple(sorted(kinds))


def _chosen(file: Opened, kind: Kind, name: str | None) -> Format:
    if name is None:
        head = bytes(file.buffer[:4096])
        fields = head.split(b"\n", 1)[0].split() if b"\n" in head else []
        if kind in TREC.sniff(b" ".join(fields)):  # the first line will do
            return TREC
        from cranfield.formats.registry import recognise

        return recognise(file.buffer, kind, file.where)
    from cranfield.formats.registry import format_named

    return format_named(name, kind)


# frames, rows and mappings


def _table(given: Any, kind: Kind) -> Table:
    from cranfield.formats.frames import is_frame, table_of_frame
    from cranfield.formats.rows import table_of_rows

    if is_frame(given):
        return table_of_frame(given, kind, "frame")
    if _is_rows(given):
        return table_of_rows(enumerate(given, 1), kind, "rows")
    expected = "a path, {topic: {document: number}}, a frame or rows with named columns"
    raise FormatError(f"expected {'a run' if kind == 'run' else 'qrels'} as {expected}, found {given!r:.60}")


def _is_rows(given: Any) -> bool:
    from cranfield.formats.rows import is_row

    return isinstance(given, (list, tuple)) and bool(given) and is_row(given[0])


def _is_topics(given: Any) -> bool:
    """Whether it maps topics to documents: {topic: {document: number}}, and not names to runs."""
    if not isinstance(given, Mapping) or not all(isinstance(value, Mapping) for value in given.values()):
        return False
    inner = next((value for documents in given.values() for value in documents.values()), 0)
    return not isinstance(inner, (Mapping, list, tuple)) and not hasattr(inner, "__array__") | hasattr(inner, "columns")


def as_qrels(given: Any, format: str | None = None, lenient: bool = False) -> Qrels:
    """Qrels from whatever holds judgments: a path, a mapping, a frame, rows, `Qrels`."""
    if isinstance(given, Qrels):
        return given
    if is_source(given):
        return read_qrels(given, format, lenient)
    given = _listed(given)
    if isinstance(given, (Table, Text)) or (isinstance(given, Mapping) and not _is_columns(given)):
        return Qrels(given)
    return read_qrels(given)


def as_runs(given: Any, format: str | None = None, lenient: bool = False) -> list[Run]:
    """Runs from whatever holds one or several: a path or a glob, a mapping, a frame, rows, `Run`; a list, or names to these."""
    if isinstance(given, Run):
        return [given]
    if isinstance(given, str) and given != "-" and any(sign in given for sign in "*?[") and not os.path.exists(given):
        return [read_run(path, format, lenient) for path in expand([given])]
    if is_source(given):
        return [read_run(given, format, lenient)]
    given = _listed(given)
    if isinstance(given, (Table, Text)) or _is_topics(given):
        return [Run(given)]
    if isinstance(given, Mapping) and not _is_columns(given):
        return [_named(str(name), value, format, lenient) for name, value in given.items()]
    if isinstance(given, (list, tuple)) and not _is_rows(given):
        _refuse_bare_rows(given)
        return [run for item in given for run in as_runs(item, format, lenient)]
    return [read_run(given)]


def _listed(given: Any) -> Any:
    """Rows that come one by one as a list; a reader of record batches is a frame."""
    return list(given) if hasattr(given, "__next__") and not hasattr(given, "__arrow_c_stream__") else given


def _is_columns(given: Mapping[Any, Any]) -> bool:
    from cranfield.formats.frames import is_frame

    return is_frame(given)


def _named(name: str, given: Any, format: str | None, lenient: bool) -> Run:
    runs = as_runs(given, format, lenient)
    if len(runs) != 1:
        raise FormatError(f"{name!r} stands for {len(runs)} runs, expected one; give each its own name")
    return runs[0].renamed(name)


def _refuse_bare_rows(given: list[Any] | tuple[Any, ...]) -> None:
    first = given[0] if given else None
    if isinstance(first, (list, tuple)) and len(first) > 2 and isinstance(first[-1], (int, float)):
        names = "named tuples or mappings with query_id, doc_id, score"
        raise FormatError(f"rows need names for their columns: expected {names}, found {first!r:.60}")


def expand(patterns: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Paths from paths and globs, the matches of each glob in sorted order; a glob that matches nothing is an error."""
    paths: list[str] = []
    for pattern in [os.fspath(one) for one in patterns]:
        if not any(sign in pattern for sign in "*?[") or os.path.exists(pattern):
            paths.append(pattern)
            continue
        import glob

        matches = sorted(path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path))
        if not matches:
            raise DataError(f"{pattern}: no file matches")
        paths += matches
    return paths


# writing


def write_run(run: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a run in rank order: the format and the compression by the ending, or as `format` says; `-` is standard output.

    The file is written whole or not at all.
    """
    [one] = as_runs(run)
    tag = one.tag or "_".join(one.name.split()) or "run"
    from cranfield.formats.registry import format_for, format_named
    from cranfield.formats.streams import write_bytes

    chosen = format_named(format, "run") if format else format_for(path, "run")
    chosen.refuse(one.table, "run", one.name)
    write_bytes(path, chosen.write(one.table, "run", tag))


def write_qrels(qrels: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write judgments: the format and the compression by the ending, or as `format` says; `-` is standard output."""
    from cranfield.formats.registry import format_for, format_named
    from cranfield.formats.streams import write_bytes

    one = as_qrels(qrels)
    chosen = format_named(format, "qrels") if format else format_for(path, "qrels")
    chosen.refuse(one.table, "qrels", one.name)
    write_bytes(path, chosen.write_known(one.table, one.extras))
