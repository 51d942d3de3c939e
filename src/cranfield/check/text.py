"""The text of a file: its encoding, its line ends, what kind of file it is, and the lines that cannot be read."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from cranfield.check.file import IS_WHITE, bytes_among
from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.errors import CranfieldError
from cranfield.findings import SHOWN, Finding, show
from cranfield.formats.format import NOUNS
from cranfield.formats.known.trec import TREC
from cranfield.kernels import Table, decode, parse
from cranfield.run import Run, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.check.file import Array, File, Kind
    from cranfield.formats.format import Format, Kinds, Source


IS_CONTROL = bytes_among([*range(1, 9), 11, 12, *range(14, 32), 127])
INVISIBLE = (
    rb"\xc2[\x85\xa0\xad]|\xe1\x9a\x80|\xe2\x80[\x80-\x8f\xa8-\xaf]|\xe2\x81[\x9f-\xa4]|\xe3\x80\x80|\xef\xbb\xbf"
)
# no-break and soft hyphens and spaces of Latin-1; ogham space; the spaces and marks of U+2000; ideographic space; mark
QUOTED = rb'(?:^|(?<=[,;\t|\n]))"[^"]*(?:""[^"]*)*"'  # a value; quotes elsewhere stand for inches
HEADINGS = (
    "qid query query-id query_id topic topic_id q0 0 iter iteration docid doc_id docno doc document corpus-id corpus_id "
    "rank score relevance rel grade label tag run runid system name"
).split()


# bytes


def look_at_bytes(file: File, quoted: bool = False) -> Iterator[Finding]:
    """An odd encoding and odd line ends; if `quoted`, line breaks between double quotes end no line."""
    counts, size = file.histogram, len(file.data)
    if bytes(file.data[:2]) in (b"\xff\xfe", b"\xfe\xff") or counts[0] * 5 > size:
        zeros = int(counts[0])
        yield file.finding("utf-16", f"{counted(zeros, 'zero byte')} in {counted(size, 'byte')}", zeros)
    elif counts.sum() == counts[IS_WHITE].sum():
        yield file.finding("empty", "")
    else:
        yield from _look_at_encoding(file)
        yield from _look_at_line_ends(file, quoted)


def _look_at_encoding(file: File) -> Iterator[Finding]:
    counts = file.histogram
    if counts[0]:
        yield _of_lines(file, "nul", file.where_bytes(0), "with 0x00")
    if counts[IS_CONTROL].any():
        which = " ".join(f"{byte:#04x}" for byte in np.flatnonzero(IS_CONTROL & (counts > 0)))
        yield _of_lines(file, "control-characters", file.where_bytes(*np.flatnonzero(IS_CONTROL)), f"with {which}")
    if not counts[128:].any():
        return
    lines, mixed = _undecodable(file)
    if len(lines):
        also = " beside others in UTF-8, so the file mixes encodings" if mixed else ", perhaps Latin-1 or Windows-1252"
        yield _of_lines(file, "not-utf-8", lines, f"not in UTF-8{also}")
    if counts[[0xC2, 0xE1, 0xE2, 0xE3, 0xEF]].any():
        offsets = [match.start() for match in re.finditer(INVISIBLE, file.buffer) if match.start()]
        if offsets:
            yield _of_lines(file, "invisible-characters", np.array(offsets, np.int64), "")


def _of_lines(file: File, code: str, offsets: Array, what: str) -> Finding:
    """The lines that hold these offsets; the first as they are, with escapes for whatever cannot be shown."""
    starts = file.line_starts_at(offsets)
    shown = [(int(start), ascii(decode(file.text(int(start)).rstrip(b"\r")[:80]))) for start in starts[:SHOWN]]
    return file.finding(code, f"{counted(len(starts), 'line')} {what}", len(starts), shown)


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


def _look_at_line_ends(file: File, quoted: bool) -> Iterator[Finding]:
    if file.histogram[13]:
        feeds, returns = (_ends(file, byte, quoted) for byte in (10, 13))
        lf = len(feeds)
        following = file.data[np.minimum(returns + 1, len(file.data) - 1)]
        following[returns + 1 == len(file.data)] = 10  # the file's last byte ends its line
        alone = returns[(following != 10) & (following != 13)]
        paired = returns[following == 10]
        if len(alone):
            what = f"{counted(len(alone), 'carriage return')} without a line feed"
            yield file.finding("lone-cr", what, len(alone), [(int(alone[0]), "")])
        if len(paired) >= lf > 0:
            yield file.finding("crlf", f"all {counted(lf, 'line')} end in CR LF", lf)
        elif lf and len(paired):
            what = f"{len(paired):,} of {counted(lf, 'line')} end in CR LF"
            yield file.finding("mixed-line-ends", what, len(paired), [(int(paired[0]), "")])
    if file.data[-1] != 10:
        yield file.finding("no-final-newline", "", at=[(len(file.data) - 1, "")])


def _ends(file: File, byte: int, quoted: bool) -> Array:
    """Where a byte ends a line: spreadsheets write LF within quotes and CR LF after each row."""
    offsets = file.where_bytes(byte)
    spans = [match.span() for match in re.finditer(QUOTED, file.buffer)] if quoted and file.histogram[34] else []
    edges = np.array([edge for span in spans for edge in span], np.int64)
    outside: Array = offsets[np.searchsorted(edges, offsets) % 2 == 0]
    return outside


# what it is


def recognise(file: File, kind: Kind | None, match: tuple[Format, Kinds] | None) -> Iterator[Finding]:
    """Find out what the file holds, given its format and what that may hold, and read its rows leniently."""
    if match is None or match[0].name == TREC.name:
        yield from _read_columns(file, kind)
    elif "prefs" not in match[1]:  # preferences have neither grades nor scores to look at
        yield from _read_other(file, kind, *match)


def _read_columns(file: File, kind: Kind | None) -> Iterator[Finding]:
    """Columns: a run if more of the first lines have six columns than four, else qrels."""
    rows = (file.text(int(start)).split() for start in file.line_starts[:1000])
    widths = Counter(len(row) for row in rows if row and not row[0].startswith(b"#"))
    runs, qrels = (widths[TREC.layouts[each].fewest] for each in ("run", "qrels"))
    seen: Kind | None = None if not runs + qrels else "run" if runs >= qrels else "qrels"
    if kind is None and seen is None and widths:
        yield file.finding("unknown-kind", f"most lines have {counted(widths.most_common(1)[0][0], 'column')}")
        return
    if seen is not None:
        yield from _other_kind(file, kind, seen, f"{TREC.layouts[seen].fewest} columns")
    file.kind = seen or kind
    if file.kind is None:
        yield file.finding("empty", "only comments")
        return
    file.layout = TREC.layouts[file.kind]
    file.rows = parse(file.buffer, file.layout, True)


def _other_kind(file: File, kind: Kind | None, seen: Kind, how: str) -> Iterator[Finding]:
    if kind is not None and kind != seen:
        yield file.finding("wrong-kind", f"expected {NOUNS[kind]}, found {how}: {NOUNS[seen]}")


def _read_other(file: File, kind: Kind | None, chosen: Format, kinds: Kinds) -> Iterator[Finding]:
    """Another format than TREC's. Where it could be either, a name with `qrel` in it decides."""
    named: Kind = "qrels" if "qrel" in os.path.basename(file.where).lower() else "run"
    likely = kind or named
    held: Kind = likely if likely in kinds else "qrels" if "qrels" in kinds else "run"
    yield from _other_kind(file, kind, held, chosen.name)
    try:
        source = chosen.read(file.buffer, held, file.where, True)
        file.rows = _rows(source, held)
    except CranfieldError as error:
        yield file.finding("unreadable", str(error).removeprefix(f"{file.where}: "))
        return
    file.kind = held
    file.layout = source.layout if isinstance(source, Text) else None


def _rows(source: Source, kind: Kind) -> Table:
    if isinstance(source, Text):
        return parse(source.buffer, source.layout, True)
    return source if isinstance(source, Table) else Run(source).table if kind == "run" else Qrels(source).table


# lines


def look_at_lines(file: File) -> Iterator[Finding]:
    """Lines that cannot be read, and those that hold nothing."""
    faults, layout = file.rows.skipped, file.layout
    if layout is None:  # rows with names: the fault's offset is the row's number
        if faults:
            shown = ", ".join(f"{fault.offset:,}" for fault in faults[:SHOWN]) + (" …" if len(faults) > SHOWN else "")
            what = f"{counted(len(faults), 'row')}: {shown}"
            yield Finding.of("bad-rows", file.where, what, len(faults), line=faults[0].offset)
        return
    first = next(iter(file.rows.start[:1].tolist()), len(file.data))
    if faults and faults[0].offset < first and _is_header(file.text(faults[0].offset)):
        yield file.finding("header", "", at=[(faults[0].offset, _shown(file, faults[0].offset))])
        faults = faults[1:]
    wrong = [fault.offset for fault in faults if fault.why == "columns"]
    if wrong:
        widths = sorted({len(file.text(offset).split()) for offset in wrong[:10000]})
        numbers = " or ".join(map(str, widths[:4])) + (" or more" if len(widths) > 4 else "")
        what = f"{counted(len(wrong), 'line')} of {numbers} columns; expected {layout.fewest} ({layout.columns})"
        yield file.finding("columns", what, len(wrong), [(offset, _shown(file, offset)) for offset in wrong[:SHOWN]])
    wrong = [fault.offset for fault in faults if fault.why == "value"]
    if wrong:
        name = layout.columns.split()[layout.value]
        what = f"{counted(len(wrong), 'line')} without a number in column {layout.value + 1} ({name})"
        at = [(offset, show(decode(file.text(offset).split()[layout.value]))) for offset in wrong[:SHOWN]]
        yield file.finding(f"{'score' if file.kind == 'run' else 'grade'}-not-a-number", what, len(wrong), at)
    yield from _look_for_gaps(file)


def _shown(file: File, offset: int) -> str:
    return show(decode(file.text(offset).rstrip(b"\r")))


def _is_header(line: bytes) -> bool:
    return all(field in HEADINGS for field in decode(line).lower().split())


def _look_for_gaps(file: File) -> Iterator[Finding]:
    """Comments and blank lines: the lines that are neither rows nor faults."""
    starts, faults = file.line_starts, [fault.offset for fault in file.rows.skipped]
    if len(starts) == len(file.rows.topic) + len(faults):
        return
    comments = starts[file.data[starts] == ord("#")]
    blank = np.setdiff1d(starts, np.concatenate([comments, file.rows.start, np.array(faults, np.int64)]))
    for code, lines in (("comments", comments), ("blank-lines", blank)):
        if len(lines):
            yield file.finding(code, counted(len(lines), "line"), len(lines), [(int(lines[0]), "")])
