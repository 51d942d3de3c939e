"""The text of a file: its encoding, its line ends, what kind of file it is, and the lines that cannot be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from cranfield.check.file import IS_WHITE, SHOWN, bytes_among, n_of, show
from cranfield.collection import Qrels
from cranfield.errors import CranfieldError
from cranfield.formats.format import Head
from cranfield.formats.known.trec import QRELS, RUN, TREC
from cranfield.formats.registry import strongest
from cranfield.kernels import Layout, Table, decode, parse
from cranfield.run import Run, Text

if TYPE_CHECKING:
    from cranfield.check.file import Array, File, Kind
    from cranfield.formats.format import Format, Kinds, Source


IS_CONTROL = bytes_among([*range(9), 11, 12, *range(14, 32), 127])
INVISIBLE = (
    rb"\xc2[\x85\xa0\xad]|\xe1\x9a\x80|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xe2\x81[\x9f-\xa4]|\xe3\x80\x80|\xef\xbb\xbf"
)
# no-break and soft hyphens and spaces of Latin-1; ogham space; the spaces and marks of U+2000; ideographic space; mark
LAYOUTS: dict[Kind, Layout] = {"run": RUN, "qrels": QRELS}


def look_at_bytes(file: File) -> None:
    """Report an odd encoding and odd line ends."""
    if bytes(file.buffer[:4]) == b"PAR1":  # Parquet is no text
        return None
    head = bytes(file.data[:4])
    counts = file.histogram
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or counts[0] * 5 > len(file.data):
        return file.add(
            "utf-16", f"{n_of(int(counts[0]), 'zero byte')} in {n_of(len(file.data), 'byte')}", int(counts[0])
        )
    if counts.sum() == counts[IS_WHITE].sum():
        return file.add("empty", "")
    _look_at_encoding(file)
    _look_at_line_ends(file)
    return None


def _look_at_encoding(file: File) -> None:
    counts = file.histogram
    if counts[IS_CONTROL].any():
        which = " ".join(f"{byte:#04x}" for byte in np.flatnonzero(IS_CONTROL & (counts > 0)))
        lines = file.line_starts_at(file.where_bytes(*np.flatnonzero(IS_CONTROL)))
        file.add("control-characters", f"{n_of(len(lines), 'line')} with {which}", len(lines), _raw(file, lines))
    if not counts[128:].any():
        return
    lines, mixed = _undecodable(file)
    if len(lines):
        also = " beside others in UTF-8, so the file mixes encodings" if mixed else ", perhaps Latin-1 or Windows-1252"
        file.add("not-utf-8", f"{n_of(len(lines), 'line')} not in UTF-8{also}", len(lines), _raw(file, lines))
    if counts[[0xC2, 0xE1, 0xE2, 0xE3, 0xEF]].any():
        _look_for_invisible(file)


def _raw(file: File, starts: Array) -> list[tuple[int, str]]:
    """The first lines as they are, with escapes for whatever cannot be shown."""
    return [(int(start), ascii(decode(file.text(int(start)).rstrip(b"\r")[:80]))) for start in starts[:SHOWN]]


def _undecodable(file: File) -> tuple[Array, bool]:
    """The lines that are not UTF-8, and whether others hold proper UTF-8 beyond ASCII."""
    bad, mixed = [], False
    for start in file.line_starts_at(np.concatenate([np.flatnonzero(p >= 128) + at for at, p in file.chunks()])):
        try:
            file.text(int(start)).decode()
            mixed = True
        except UnicodeDecodeError:
            bad.append(int(start))
    return np.array(bad, np.int64), mixed


def _look_for_invisible(file: File) -> None:
    import re

    offsets = np.array([match.start() for match in re.finditer(INVISIBLE, file.buffer) if match.start()], np.int64)
    if len(offsets):
        lines = file.line_starts_at(offsets)
        file.add("invisible-characters", f"{n_of(len(lines), 'line')} ", len(lines), _raw(file, lines))


def _look_at_line_ends(file: File) -> None:
    lf = int(file.histogram[10])
    if file.histogram[13]:
        returns = file.where_bytes(13)
        following = file.data[np.minimum(returns + 1, len(file.data) - 1)]
        following[returns + 1 == len(file.data)] = 10  # the file's last byte ends its line
        alone = returns[(following != 10) & (following != 13)]
        paired = returns[following == 10]
        if len(alone):
            what = f"{n_of(len(alone), 'carriage return')} without a line feed"
            file.add("lone-cr", what, len(alone), [(int(alone[0]), "")])
        if len(paired) >= lf > 0:
            file.add("crlf", f"all {n_of(lf, 'line')} end in CR LF", lf)
        elif lf and len(paired):
            what = f"{len(paired):,} of {n_of(lf, 'line')} end in CR LF"
            file.add("mixed-line-ends", what, len(paired), [(int(paired[0]), "")])
    if file.data[-1] != 10:
        file.add("no-final-newline", "", at=[(len(file.data) - 1, "")])


def recognise(file: File, kind: Kind | None) -> None:
    """Find out what the file holds, and read its rows leniently."""
    found, evidence = strongest(Head(file.buffer), file.where)
    kinds = evidence.kinds if evidence else frozenset()
    if found is None or found.name == TREC.name:
        _choose_layout(file, kind)
    elif "prefs" not in kinds:  # preferences have neither grades nor scores to look at
        _read_other(file, found, kind, kinds)


def _choose_layout(file: File, kind: Kind | None) -> None:
    """Columns: a run if more of the first lines have six columns than four, else qrels."""
    widths: dict[int, int] = {}
    for start in file.line_starts[:1000]:
        fields = file.text(int(start)).split()
        if fields and not fields[0].startswith(b"#"):
            widths[len(fields)] = widths.get(len(fields), 0) + 1
    runs, qrels = widths.get(6, 0), widths.get(4, 0)
    seen: Kind | None = None if not runs + qrels else "run" if runs >= qrels else "qrels"
    if kind is None and seen is None and widths:
        usual = max(widths, key=widths.__getitem__)
        return file.add("unknown-kind", f"most lines have {n_of(usual, 'column')}")
    if seen is not None:
        _refuse_other_kind(file, kind, seen, f"{6 if seen == 'run' else 4} columns")
    file.kind = seen or kind
    if file.kind is None:
        return file.add("empty", "only comments")
    file.layout = LAYOUTS[file.kind]
    file.rows = parse(file.buffer, file.layout, True)
    return None


def _refuse_other_kind(file: File, kind: Kind | None, seen: Kind, how: str) -> None:
    if kind is not None and kind != seen:
        words = {"run": "a run", "qrels": "qrels"}
        file.add("wrong-kind", f"expected {words[kind]}, found {how}: {words[seen]}")


def _read_other(file: File, found: Format, kind: Kind | None, kinds: Kinds) -> None:
    """Another format than TREC's. Where it could be either, a name with `qrel` in it decides."""
    named: Kind = "qrels" if "qrel" in os.path.basename(file.where).lower() else "run"
    likely = kind or named
    chosen: Kind = likely if likely in kinds else "qrels" if "qrels" in kinds else "run"
    _refuse_other_kind(file, kind, chosen, found.name)
    try:
        source = found.read(file.buffer, chosen, file.where, True)
        file.rows = _rows(source, chosen)
    except CranfieldError as error:
        return file.add("unreadable", str(error).removeprefix(f"{file.where}: "))
    file.kind = chosen
    file.layout = source.layout if isinstance(source, Text) else None
    return None


def _rows(source: Source, kind: Kind) -> Table:
    if isinstance(source, Text):
        return parse(source.buffer, source.layout, True)  # type: ignore[no-any-return]
    return source if isinstance(source, Table) else Run(source).table if kind == "run" else Qrels(source).table


def look_at_lines(file: File) -> None:
    """Report lines that cannot be read, and those that hold nothing."""
    faults, layout = file.rows.skipped, file.layout
    if layout is None:  # rows with names: the fault's offset is the row's number
        if faults:
            shown = ", ".join(f"{fault.offset:,}" for fault in faults[:SHOWN]) + (" …" if len(faults) > SHOWN else "")
            file.report("bad-rows", f"{n_of(len(faults), 'row')}: {shown}", len(faults), faults[0].offset, [])
        return
    first = next(iter(file.rows.start[:1].tolist()), len(file.data))
    if faults and faults[0].offset < first and _is_header(file.text(faults[0].offset)):
        file.add("header", "", at=[(faults[0].offset, _shown(file, faults[0].offset))])
        faults = faults[1:]
    wrong = [fault.offset for fault in faults if fault.why == "columns"]
    if wrong:
        found = sorted({len(file.text(offset).split()) for offset in wrong[:10000]})
        numbers = " or ".join(map(str, found[:4])) + (" or more" if len(found) > 4 else "")
        what = f"{n_of(len(wrong), 'line')} of {numbers} columns; expected {layout.fewest} ({layout.columns})"
        file.add("columns", what, len(wrong), [(offset, _shown(file, offset)) for offset in wrong[:SHOWN]])
    wrong = [fault.offset for fault in faults if fault.why == "value"]
    if wrong:
        name = layout.columns.split()[layout.value]
        what = f"{n_of(len(wrong), 'line')} without a number in column {layout.value + 1} ({name})"
        at = [(offset, show(decode(file.text(offset).split()[layout.value]))) for offset in wrong[:SHOWN]]
        file.add(f"{'score' if file.kind == 'run' else 'grade'}-not-a-number", what, len(wrong), at)
    _look_for_gaps(file, len(file.rows.skipped))


def _shown(file: File, offset: int) -> str:
    return show(decode(file.text(offset).rstrip(b"\r")))


HEADINGS = (
    "qid query query-id query_id topic topic_id q0 0 iter iteration docid doc_id docno doc document corpus-id corpus_id "
    "rank score relevance rel grade label tag run runid system name"
)


def _is_header(line: bytes) -> bool:
    known = HEADINGS.split()
    return all(field in known for field in decode(line).lower().split())


def _look_for_gaps(file: File, faults: int) -> None:
    """Comments and blank lines: the lines that are neither rows nor faults."""
    starts = file.line_starts
    if len(starts) == len(file.rows.topic) + faults:
        return
    comments = starts[file.data[starts] == ord("#")]
    if len(comments):
        file.add("comments", f"{n_of(len(comments), 'line')}", len(comments), [(int(comments[0]), "")])
    used = np.concatenate(
        [comments, file.rows.start, np.array([fault.offset for fault in file.rows.skipped], np.int64)]
    )
    blank = np.setdiff1d(starts, used)
    if len(blank):
        file.add("blank-lines", f"{n_of(len(blank), 'line')}", len(blank), [(int(blank[0]), "")])
