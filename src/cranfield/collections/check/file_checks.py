"""Checks of a single file: encoding, line ends, kind of file, bad lines, odd or similar ids, contradictions, ranks, ties."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import CranfieldError
from cranfield.base.findings import SHOWN, Finding, show, some
from cranfield.base.kernels import RowTable, Strings, decode, parse
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run, TextSource
from cranfield.base.text_layout import counted
from cranfield.collections.check.file import IS_WHITE, byte_counts, bytes_among, keys, spread, words
from cranfield.evaluation.sanity_checks import rise_only, without_zero
from cranfield.formats.files.trec import TREC
from cranfield.formats.format import NOUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.collections.check.file import Array, CheckedFile, Kind
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


def look_at_bytes(file: CheckedFile, quoted: bool = False) -> Iterator[Finding]:
    """Findings about encoding and line ends; if `quoted`, line breaks inside double quotes do not count."""
    counts, size = file.histogram, len(file.data)
    if bytes(file.data[:2]) in (b"\xff\xfe", b"\xfe\xff") or counts[0] * 5 > size:
        zeros = int(counts[0])
        yield file.finding("utf-16", f"{counted(zeros, 'zero byte')} in {counted(size, 'byte')}", zeros)
    elif counts.sum() == counts[IS_WHITE].sum():
        yield file.finding("empty", "")
    else:
        yield from _look_at_encoding(file)
        yield from _look_at_line_ends(file, quoted)


def _look_at_encoding(file: CheckedFile) -> Iterator[Finding]:
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
        also = "; other lines are UTF-8, so the file mixes encodings" if mixed else ", perhaps Latin-1 or Windows-1252"
        yield _of_lines(file, "not-utf-8", lines, f"not in UTF-8{also}")
    if counts[[0xC2, 0xE1, 0xE2, 0xE3, 0xEF]].any():
        offsets = [match.start() for match in re.finditer(INVISIBLE, file.buffer) if match.start()]
        if offsets:
            yield _of_lines(file, "invisible-characters", np.array(offsets, np.int64), "")


def _of_lines(file: CheckedFile, code: str, offsets: Array, what: str) -> Finding:
    """A finding about the lines at these offsets; the first lines are quoted with escapes."""
    starts = file.line_starts_at(offsets)
    examples = [(int(start), ascii(decode(file.text(int(start)).rstrip(b"\r")[:80]))) for start in starts[:SHOWN]]
    return file.finding(code, f"{counted(len(starts), 'line')} {what}", len(starts), examples)


def _undecodable(file: CheckedFile) -> tuple[Array, bool]:
    """The lines that are not UTF-8, and whether others hold proper UTF-8 beyond ASCII."""
    bad, mixed = [], False
    for start in file.line_starts_at(np.concatenate([np.flatnonzero(p >= 128) + at for at, p in file.chunks()])):
        try:
            file.text(int(start)).decode()
            mixed = True
        except UnicodeDecodeError:
            bad.append(int(start))
    return np.array(bad, np.int64), mixed


def _look_at_line_ends(file: CheckedFile, quoted: bool) -> Iterator[Finding]:
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


def _ends(file: CheckedFile, byte: int, quoted: bool) -> Array:
    """Where a byte ends a line: spreadsheets write LF within quotes and CR LF after each row."""
    offsets = file.where_bytes(byte)
    spans = [match.span() for match in re.finditer(QUOTED, file.buffer)] if quoted and file.histogram[34] else []
    edges = np.array([edge for span in spans for edge in span], np.int64)
    outside: Array = offsets[np.searchsorted(edges, offsets) % 2 == 0]
    return outside


# what it is


def recognise(file: CheckedFile, kind: Kind | None, match: tuple[Format, Kinds] | None) -> Iterator[Finding]:
    """Recognise whether the file is a run or qrels, and read its rows leniently."""
    if match is None or match[0].name == TREC.name:
        yield from _read_columns(file, kind)
    elif "prefs" not in match[1]:  # preferences have neither grades nor scores to look at
        yield from _read_other(file, kind, *match)


def _read_columns(file: CheckedFile, kind: Kind | None) -> Iterator[Finding]:
    """Read TREC columns: a run if more of the first lines have six columns than four, else qrels."""
    rows = (file.text(int(start)).split() for start in file.line_starts[:1000])
    widths = Counter(len(row) for row in rows if row and not row[0].startswith(b"#"))
    runs, qrels = (widths[TREC.layouts[each].fewest] for each in ("run", "qrels"))
    guess: Kind | None = None if not runs + qrels else "run" if runs >= qrels else "qrels"
    if kind is None and guess is None and widths:
        yield file.finding("unknown-kind", f"most lines have {counted(widths.most_common(1)[0][0], 'column')}")
        return
    if guess is not None:
        yield from _other_kind(file, kind, guess, f"{TREC.layouts[guess].fewest} columns")
    file.kind = guess or kind
    if file.kind is None:
        yield file.finding("empty", "only comments")
        return
    file.layout = TREC.layouts[file.kind]
    file.rows = parse(file.buffer, file.layout, True)


def _other_kind(file: CheckedFile, kind: Kind | None, actual: Kind, how: str) -> Iterator[Finding]:
    if kind is not None and kind != actual:
        yield file.finding("wrong-kind", f"expected {NOUNS[kind]}, found {how}: {NOUNS[actual]}")


def _read_other(file: CheckedFile, kind: Kind | None, format: Format, kinds: Kinds) -> Iterator[Finding]:
    """Read a format other than TREC's. If it may be a run or qrels, a file name with `qrel` decides."""
    named: Kind = "qrels" if "qrel" in os.path.basename(file.where).lower() else "run"
    likely = kind or named
    held: Kind = likely if likely in kinds else "qrels" if "qrels" in kinds else "run"
    yield from _other_kind(file, kind, held, format.name)
    try:
        source = format.read(file.buffer, held, file.where, True)
        file.rows = _rows(source, held)
    except CranfieldError as error:
        yield file.finding("unreadable", str(error).removeprefix(f"{file.where}: "))
        return
    file.kind = held
    file.layout = source.layout if isinstance(source, TextSource) else None


def _rows(source: Source, kind: Kind) -> RowTable:
    if isinstance(source, TextSource):
        return parse(source.buffer, source.layout, True)
    return source if isinstance(source, RowTable) else Run(source).table if kind == "run" else Qrels(source).table


def look_at_rows(file: CheckedFile) -> Iterator[Finding]:
    """Findings about the lines, ids and values of a file whose kind is known."""
    yield from look_at_lines(file)
    if len(file.rows.topic):
        yield from look_at_ids(file)
        yield from look_for_scattered(file)
        yield from look_at_run(file) if file.kind == "run" else look_at_qrels(file)
    elif not file.rows.skipped:
        yield file.finding("empty", "only comments")


# lines


def look_at_lines(file: CheckedFile) -> Iterator[Finding]:
    """Findings about malformed, blank and comment lines."""
    faults, layout = file.rows.skipped, file.layout
    if layout is None:  # rows with names: the fault's offset is the row's number
        if faults:
            row_numbers = ", ".join(f"{fault.offset:,}" for fault in faults[:SHOWN])
            what = f"{counted(len(faults), 'row')}: {row_numbers}{' …' if len(faults) > SHOWN else ''}"
            yield Finding.of("bad-rows", file.where, what, len(faults), line=faults[0].offset)
        return
    first = next(iter(file.rows.start[:1].tolist()), len(file.data))
    if faults and faults[0].offset < first and _is_header(file.text(faults[0].offset)):
        yield file.finding("header", "", at=[(faults[0].offset, _line_text(file, faults[0].offset))])
        faults = faults[1:]
    wrong = [fault.offset for fault in faults if fault.why == "columns"]
    if wrong:
        widths = sorted({len(file.text(offset).split()) for offset in wrong[:10000]})
        numbers = " or ".join(map(str, widths[:4])) + (" or more" if len(widths) > 4 else "")
        what = f"{counted(len(wrong), 'line')} of {numbers} columns; expected {layout.fewest} ({layout.columns})"
        at = [(offset, _line_text(file, offset)) for offset in wrong[:SHOWN]]
        yield file.finding("columns", what, len(wrong), at)
    wrong = [fault.offset for fault in faults if fault.why == "value"]
    if wrong:
        name = layout.columns.split()[layout.value]
        what = f"{counted(len(wrong), 'line')} without a number in column {layout.value + 1} ({name})"
        at = [(offset, show(decode(file.text(offset).split()[layout.value]))) for offset in wrong[:SHOWN]]
        yield file.finding(f"{'score' if file.kind == 'run' else 'grade'}-not-a-number", what, len(wrong), at)
    yield from _look_for_gaps(file)


def _line_text(file: CheckedFile, offset: int) -> str:
    return show(decode(file.text(offset).rstrip(b"\r")))


def _is_header(line: bytes) -> bool:
    return all(field in HEADINGS for field in decode(line).lower().split())


def _look_for_gaps(file: CheckedFile) -> Iterator[Finding]:
    """Comments and blank lines: the lines that are neither rows nor faults."""
    starts, faults = file.line_starts, [fault.offset for fault in file.rows.skipped]
    if len(starts) == len(file.rows.topic) + len(faults):
        return
    comments = starts[file.data[starts] == ord("#")]
    blank = np.setdiff1d(starts, np.concatenate([comments, file.rows.start, np.array(faults, np.int64)]))
    for code, lines in (("comments", comments), ("blank-lines", blank)):
        if len(lines):
            yield file.finding(code, counted(len(lines), "line"), len(lines), [(int(lines[0]), "")])


PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/#"
IS_ODD = bytes_among(set(range(33, 127)) - set(PLAIN))
MANY = 100  # from this many judgments on, a grade that occurs once is suspicious
LARGE = 20  # a grade above this is hardly a grade: 2^20 is a million
DEEP = 1000  # the depth that TREC asks for
PART = 200_000  # rows whose columns are read again at a time


# ids


def look_at_ids(file: CheckedFile) -> Iterator[Finding]:
    """Findings about odd ids and ids that are too similar."""
    rows = file.rows
    yield from _look_for_odd(file, "topic", rows.topics, np.unique(rows.topic, return_index=True)[1])
    yield from _look_for_odd(file, "document", rows.documents, np.arange(len(rows.topic)))
    if file.kind == "run" and len(rows.labels):
        yield from _look_for_odd(file, "tag", rows.labels, np.unique(rows.label, return_index=True)[1])
    yield from _look_for_alike(file, "topic", list(rows.topics))
    yield from _look_for_alike(file, "document", _suspects(file))


def _look_for_odd(file: CheckedFile, name: str, strings: Strings, row: Array) -> Iterator[Finding]:
    block = np.frombuffer(strings.block, np.uint8)
    odd = np.flatnonzero(IS_ODD & (byte_counts(block) > 0))
    if not len(odd):
        return
    where = np.unique(np.searchsorted(strings.offsets, np.flatnonzero(bytes_among(odd)[block]), "right") - 1)
    which = " ".join(chr(byte) for byte in odd)
    what = f"{counted(len(where), name + ' id' if name != 'tag' else 'tag')} with {which}"
    ids = {int(row[i]): decode(strings[int(i)]) for i in where[:SHOWN]}
    yield from file.of_rows("odd-characters", what, row[where], lambda r: f"{name} {show(ids[r])}")


def _suspects(file: CheckedFile) -> list[bytes]:
    """Document ids that may be spellings of another: equal except for case, beyond ASCII, or with leading zeros."""
    documents = file.rows.documents
    block = np.frombuffer(documents.block, np.uint8)
    counts = byte_counts(block)
    mixed = bool(counts[ord("A") : ord("Z") + 1].any() and counts[ord("a") : ord("z") + 1].any())
    long = np.flatnonzero(np.diff(documents.offsets) > 1)
    zero = long[block[documents.offsets[long]] == ord("0")]
    if not (mixed or counts[128:].any() or len(zero)):
        return []
    _, once = np.unique(file.keys, return_index=True)
    suspects = _case_twins(file, once) if mixed else set()
    if counts[128:].any():
        rows = np.unique(np.searchsorted(documents.offsets, np.flatnonzero(block >= 128), "right") - 1)
        suspects.update(documents[int(row)] for row in np.intersect1d(rows, once))
    led = [raw for raw in (documents[int(row)] for row in np.intersect1d(zero, once)) if raw.isdigit()]
    bare = [raw.lstrip(b"0") or b"0" for raw in led]
    present = np.isin(keys(Strings.of(bare)), file.keys) if bare else np.zeros(0, bool)
    return sorted({*suspects, *led, *(raw for raw, there in zip(bare, present.tolist(), strict=True) if there)})


def _case_twins(file: CheckedFile, once: Array) -> set[bytes]:
    """Ids that differ from another only in case; `once` holds one row per id."""
    folded = keys(file.rows.documents, folded=True)[once]
    order = np.argsort(folded)
    same = folded[order][1:] == folded[order][:-1]
    twins = np.r_[same, False] | np.r_[False, same]
    return {file.rows.documents[int(row)] for row in once[order[twins]]}


def _look_for_alike(file: CheckedFile, name: str, ids: Sequence[bytes]) -> Iterator[Finding]:
    import unicodedata

    texts = [decode(raw) for raw in ids]
    foldings: dict[str, Callable[[str], str]] = {
        "unicode": lambda text: unicodedata.normalize("NFC", text),
        "case": str.casefold,
        "zeros": lambda text: (text.lstrip("0") or "0") if text.isdigit() else text,
    }
    for kind, fold in foldings.items():
        groups: dict[str, list[str]] = {}
        for text in texts:
            groups.setdefault(fold(text), []).append(text)
        pairs = [" and ".join(map(ascii, group)) for group in groups.values() if len(group) > 1]
        if pairs:
            what = f"{counted(len(pairs), 'group')} of {name} ids that differ in nothing else"
            yield file.finding(f"ids-differ-in-{kind}", f"{what}: {'; '.join(pairs[:SHOWN])}", len(pairs))


def look_for_scattered(file: CheckedFile) -> Iterator[Finding]:
    """Topics whose lines are not contiguous."""
    topic = file.rows.topic
    starts = np.flatnonzero(np.r_[True, topic[1:] != topic[:-1]])
    if len(starts) > len(file.rows.topics):
        again = starts[np.setdiff1d(np.arange(len(starts)), np.unique(topic[starts], return_index=True)[1])]
        what = f"{counted(len(np.unique(topic[again])), 'topic')} in several places"
        yield from file.of_rows("topics-scattered", what, again, lambda row: f"topic {show(file.topic(row))} again")


def _look_at_second(
    file: CheckedFile, values: dict[bytes, tuple[int, int]], code: str, usual: tuple[bytes, ...]
) -> Iterator[Finding]:
    """Values of the second column other than the usual; `values` holds how often each occurs and its first row."""
    other = {value: occurrence for value, occurrence in values.items() if value not in usual}
    if other:
        count = sum(n for n, _ in other.values())
        what = f"{counted(count, 'line')} with {some([decode(value) for value in other])}"
        yield file.of_row(code, what, count, min(row for _, row in other.values()))


# judgments


def look_at_qrels(file: CheckedFile) -> Iterator[Finding]:
    """Findings about judgments alone."""
    rows = file.rows
    again, first = file.repeats(rows.label) if len(rows.labels) else file.repeats()
    line = dict(zip(again.tolist(), first.tolist(), strict=True))
    equal = rows.value[again] == rows.value[first]

    def in_words(row: int) -> str:
        earlier = f"{rows.value[line[row]]:g} on line {file.line_of_row(line[row]):,}"
        return f"{file.pair(row)}: {rows.value[row]:g}, and {earlier}"

    for code, which in (("judged-twice", again[equal]), ("judged-in-conflict", again[~equal])):
        what = f"{counted(len(which), 'line')} that judge a document of their topic again"
        yield from file.of_rows(code, what, which, in_words)
    if len(rows.labels):
        _, at, counts = np.unique(rows.label, return_index=True, return_counts=True)
        second = {rows.labels[i]: (int(n), int(r)) for i, (n, r) in enumerate(zip(counts, at, strict=True))}
        yield from _look_at_second(file, second, "iteration-column", (b"0", b"Q0"))
    yield from _look_at_grades(file)
    relevant = np.bincount(rows.topic[rows.value >= 1], minlength=len(rows.topics))
    for code, number in (("topics-without-relevant", 0), ("topics-with-one-relevant", 1)):
        names = [decode(rows.topics[int(t)]) for t in np.flatnonzero(relevant == number)]
        if names:
            yield Finding.of(code, file.where, f"{counted(len(names), 'topic')} of {len(relevant):,}", names=names)


def _look_at_grades(file: CheckedFile) -> Iterator[Finding]:
    grade = file.rows.value
    levels, counts = np.unique(grade, return_counts=True)
    lone = np.isin(grade, levels[counts == 1]) if len(grade) >= MANY else np.zeros(len(grade), bool)
    low, high = levels[0], levels[-1]
    for code, wrong, what in (
        ("grades-negative", grade < 0, f"below 0 (lowest: {low:g})"),
        ("grades-fractional", grade != np.floor(grade), "with a fraction"),
        ("grades-large", grade > LARGE, f"above {LARGE} (highest: {high:g})"),
        ("grades-lone", lone, f"of a grade that no other of {len(grade):,} has"),
    ):
        text = lambda row: f"{file.pair(row)}: {grade[row]:g}"  # noqa: E731
        judgments = counted(int(wrong.sum()), "judgment")
        yield from file.of_rows(code, f"{judgments} {what}", np.flatnonzero(wrong), text)
    if low >= 0 and high <= 1 and ((levels > 0) & (levels < 1)).any():
        yield file.finding("grades-below-one", f"all grades lie between {low:g} and {high:g}", len(grade))
    if len(levels) == 1:
        yield file.finding("grades-constant", f"all {counted(len(grade), 'judgment')} say {low:g}", len(grade))
    yield from without_zero(grade, file.where)
    positive = levels > 0
    codes = (levels == np.floor(levels)).all()  # fractions are values, not codes
    if codes and positive.sum() >= 3 and not (levels == 0).any() and counts[positive][0] == counts[positive].min():
        parts = [f"{counted(int(n), 'judgment')} of {level:g}" for level, n in zip(levels, counts, strict=True)]
        yield file.finding("grades-reversed", ", ".join(parts), len(grade))


# runs


class _Grouped:
    """A run's rows by topic, each topic in the order of its lines."""

    def __init__(self, topic: Array) -> None:
        self.order: Any = slice(None)
        if (topic[1:] < topic[:-1]).any():
            self.order = np.argsort(topic, kind="stable")
        self.topic = topic[self.order]
        self.row = np.arange(len(topic))[self.order]
        self.same = self.topic[1:] == self.topic[:-1]  # whether a row has the topic of the row above it

    def place(self) -> Array:
        """Each row's position in its topic, from 1."""
        start = np.r_[0, np.flatnonzero(~self.same) + 1]
        place: Array = np.arange(1, len(self.topic) + 1) - np.repeat(start, np.diff(np.r_[start, len(self.topic)]))
        return place

    def topics(self, where: Array) -> str:
        """The number of topics of some rows, in words."""
        return counted(len(np.unique(self.topic[where])), "topic")


def look_at_run(file: CheckedFile) -> Iterator[Finding]:
    """Findings about a run alone."""
    again, first = file.repeats()
    line = dict(zip(again.tolist(), first.tolist(), strict=True))
    what = f"{counted(len(again), 'line')} that repeat a document of their topic."
    text = lambda row: f"{file.pair(row)}, as on line {file.line_of_row(line[row]):,}"  # noqa: E731
    yield from file.of_rows("duplicate-documents", what, again, text)
    grouped = _Grouped(file.rows.topic)
    if file.layout is not None and "Q0" in file.layout.columns:  # the columns that the kernels do not read
        columns = _TextColumns(file)
        yield from _look_at_second(file, columns.second, "q0-column", (b"Q0", b"q0"))
        if columns.scientific:
            yield file.finding("scores-scientific", counted(columns.scientific, "line"), columns.scientific)
        yield from _look_at_ranks(file, grouped, columns.rank)
    yield from _look_at_scores(file, grouped)
    yield from _look_at_tags(file)
    deepest, least = int(file.depth.max()), int(file.depth.min())
    short = np.flatnonzero(file.depth < deepest)
    if len(short):
        what = f"{counted(len(short), 'topic')} of {len(file.depth):,} with fewer than {deepest:,} documents"
        names = [decode(file.rows.topics[int(t)]) for t in short[: SHOWN + 1]]
        yield Finding.of("shallow-topics", file.where, f"{what} (fewest: {least:,})", names=names)


class _TextColumns:
    """The columns that the kernels do not read: the second column, the ranks, and the texts of scores."""

    def __init__(self, file: CheckedFile) -> None:
        assert file.layout is not None
        names, start = file.layout.columns.split(), file.rows.start
        self.second: dict[bytes, tuple[int, int]] = {}  # each value: how often, and the first row
        self.rank = np.full(len(start), np.nan)
        self.scientific = 0
        for begin in range(0, len(start), PART):
            part = slice(begin, min(begin + PART, len(start)))
            low = int(start[begin])
            high = int(start[part.stop]) if part.stop < len(start) else len(file.data)
            data = np.r_[file.data[low:high], np.full(8, 32, np.uint8)]
            white = IS_WHITE[data]
            begins = np.flatnonzero(~white & np.r_[True, white[:-1]])
            ends = np.flatnonzero(white & np.r_[False, ~white[:-1]])
            first = np.searchsorted(begins, start[part] - low)
            self._count_second(data, begins[first + 1], ends[first + 1], begin)
            rank, score = first + names.index("rank"), first + file.layout.value
            self.rank[part] = _whole_numbers(data, begins[rank], ends[rank])
            tail = ends[score, None] - 1 - np.arange(6)  # an exponent starts no earlier than this
            mark = (data[tail] | 0x20 == ord("e")) & (tail >= begins[score, None])
            self.scientific += int(mark.any(axis=1).sum())

    def _count_second(self, data: Array, begin: Array, end: Array, row: int) -> None:
        key = spread(words(data, begin, end - begin), (end - begin).astype(np.uint64))
        first, counts = np.zeros(1, np.int64), np.array([len(key)])
        if (key != key[0]).any():
            _, first, counts = np.unique(key, return_index=True, return_counts=True)
        for i, count in zip(first.tolist(), counts.tolist(), strict=True):
            value = bytes(data[begin[i] : end[i]])
            before, at = self.second.get(value, (0, row + i))
            self.second[value] = before + count, at


def _whole_numbers(data: Array, begin: Array, end: Array) -> Floats:
    """Read columns as whole numbers; other numbers are read too and the rest is NaN."""
    length = end - begin
    digit = words(data, begin, length).view(np.uint8).reshape(-1, 8).astype(np.int64) - ord("0")
    inside = np.arange(8) < length[:, None]
    value = np.zeros(len(begin))
    for column in range(8):
        value = np.where(inside[:, column], value * 10 + digit[:, column], value)
    plain = ((digit >= 0) & (digit <= 9) | ~inside).all(axis=1) & (length <= 8)
    for i in np.flatnonzero(~plain):
        try:
            value[i] = float(bytes(data[begin[i] : end[i]]))
        except ValueError:
            value[i] = np.nan
    return value


def _look_at_ranks(file: CheckedFile, grouped: _Grouped, rank: Floats) -> Iterator[Finding]:
    whole = np.isfinite(rank) & (rank == np.floor(rank))
    rows = np.flatnonzero(~whole)
    text = lambda row: show(decode(file.text(int(file.rows.start[row])).split()[3]))  # noqa: E731
    yield from file.of_rows("ranks-not-whole", counted(len(rows), "line"), rows, text)
    if not np.isfinite(rank).all():
        return
    here = rank[grouped.order]
    down = np.flatnonzero(grouped.same & (here[1:] < here[:-1])) + 1
    what = f"{counted(len(down), 'line')} in {grouped.topics(down)}"
    text = lambda row: f"topic {show(file.topic(row))}, rank {rank[row]:g}"  # noqa: E731
    yield from file.of_rows("ranks-not-ascending", what, grouped.row[down], text)
    score = file.rows.value[grouped.order]
    row = grouped.row
    if len(down) or (here[1:] == here[:-1])[grouped.same].any():
        order = np.lexsort((-score, here, grouped.topic))
        here, score, row = here[order], score[order], row[order]
    yield from _look_at_sorted_ranks(file, grouped, here, score, row)


def _look_at_sorted_ranks(
    file: CheckedFile, grouped: _Grouped, rank: Array, score: Array, row: Array
) -> Iterator[Finding]:
    """Findings about the ranks of rows that are ordered by topic and rank: gaps, ties, starts, contradicting scores."""
    step = rank[1:] - rank[:-1]
    whole = not file.rows.skipped  # a line that could not be read leaves a gap that says nothing
    for code, wrong in (
        ("ranks-not-consecutive", grouped.same & (step > 1) & whole),
        ("ranks-tied", grouped.same & (step == 0)),
        ("ranks-contradict-scores", grouped.same & (step > 0) & (score[1:] > score[:-1])),
    ):
        where = np.flatnonzero(wrong) + 1
        yield from file.of_rows(code, _affected(file, grouped, where), np.sort(row[where]), file.pair)
    top = np.r_[True, ~grouped.same]
    start, first = rank[top], row[top]
    kinds = np.unique(start)
    if whole and (not np.isin(kinds, (0, 1)).all() or len(kinds) > 1):
        odd = first[start != (1 if (start == 1).sum() >= (start == 0).sum() else 0)]
        ranks_text = ", ".join(f"{kind:g}" for kind in kinds[:SHOWN]) + (" …" if len(kinds) > SHOWN else "")
        yield from file.of_rows("ranks-start", f"topics start at rank {ranks_text}", np.sort(odd), file.pair)


def _affected(file: CheckedFile, grouped: _Grouped, where: Array) -> str:
    return f"{counted(len(where), 'line')} in {grouped.topics(where)} of {len(file.rows.topics):,}"


def _look_at_scores(file: CheckedFile, grouped: _Grouped) -> Iterator[Finding]:
    score = file.rows.value[grouped.order]
    infinite = np.flatnonzero(np.isinf(file.rows.value))
    yield from file.of_rows("scores-infinite", counted(len(infinite), "line"), infinite, file.pair)
    up = grouped.same & (score[1:] > score[:-1])
    if up.any():
        where = np.flatnonzero(up) + 1
        code = "scores-reversed" if rise_only(grouped.same, score) else "scores-not-descending"
        yield from file.of_rows(code, _affected(file, grouped, where), grouped.row[where], file.pair)
        score = score[np.lexsort((-score, grouped.topic))]
    yield from _look_for_ties(file, grouped, score)


def _look_for_ties(file: CheckedFile, grouped: _Grouped, score: Floats) -> Iterator[Finding]:
    """Findings about ties; `score` holds the scores by topic, best first."""
    equal = grouped.same & (score[1:] == score[:-1])
    if equal.any():
        tied = np.r_[equal, False] | np.r_[False, equal]
        high = np.flatnonzero(equal & (grouped.place()[:-1] <= 10))
        what = (
            f"{int(tied.sum()):,} of {counted(len(tied), 'document')} ({tied.mean():.1%}) tie with another, in "
            f"{grouped.topics(tied)}; in {len(np.unique(grouped.topic[high])):,} of them a tie reaches the top 10"
        )
        yield file.finding("tied-scores", what, int(tied.sum()))
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    merged = np.flatnonzero(grouped.same & (single[1:] == single[:-1]) & ~equal)
    if len(merged):
        what = f"{counted(len(merged), 'neighbour')} in the ranking, in {grouped.topics(merged)}"
        yield file.finding("tied-at-32-bits", what, len(merged))


def _look_at_tags(file: CheckedFile) -> Iterator[Finding]:
    if len(file.rows.labels) > 1:
        values, first, counts = np.unique(file.rows.label, return_index=True, return_counts=True)
        tags = [show(decode(file.rows.labels[int(v)])) for v in values]
        tags_text = ", ".join(f"{tag} {counted(int(n), 'line')}" for tag, n in zip(tags[:SHOWN], counts, strict=False))
        what = f"{counted(len(tags), 'tag')}: {tags_text}{' …' if len(tags) > SHOWN else ''}"
        yield file.of_row("mixed-tags", what, len(tags), sorted(first)[1])


def look_at_depth(file: CheckedFile, deepest: int) -> Iterator[Finding]:
    """Findings about runs that are too short, alone or compared with other runs."""
    depth = int(file.depth.max())
    if depth < max(deepest, DEEP):
        other = f"; another run goes down to {deepest:,}" if depth < deepest else ""
        yield file.finding("shallow-run", f"no topic has more than {counted(depth, 'document')}{other}")
