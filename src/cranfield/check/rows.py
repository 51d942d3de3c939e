"""The rows of a file: ids that are odd or alike, judgments that contradict, ranks and scores that disagree, ties, depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.check.file import IS_WHITE, byte_counts, bytes_among, keys, spread, words
from cranfield.columns import counted
from cranfield.doubts import rise_only, without_zero
from cranfield.findings import SHOWN, Finding, show, some
from cranfield.kernels import Strings, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cranfield.check.file import Array, File
    from cranfield.kernels.table import Floats


PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/#"
IS_ODD = bytes_among(set(range(33, 127)) - set(PLAIN))
MANY = 100  # judgments from which on a grade that occurs once is odd
LARGE = 20  # a grade above this is hardly a grade: 2^20 is a million
DEEP = 1000  # the depth that TREC asks for
PART = 200_000  # rows whose columns are read again in one go


# ids


def look_at_ids(file: File) -> Iterator[Finding]:
    """Ids that are odd, or too much like others."""
    rows = file.rows
    yield from _look_for_odd(file, "topic", rows.topics, np.unique(rows.topic, return_index=True)[1])
    yield from _look_for_odd(file, "document", rows.documents, np.arange(len(rows.topic)))
    if file.kind == "run" and len(rows.labels):
        yield from _look_for_odd(file, "tag", rows.labels, np.unique(rows.label, return_index=True)[1])
    yield from _look_for_alike(file, "topic", list(rows.topics))
    yield from _look_for_alike(file, "document", _suspects(file))


def _look_for_odd(file: File, name: str, strings: Strings, row: Array) -> Iterator[Finding]:
    block = np.frombuffer(strings.block, np.uint8)
    odd = np.flatnonzero(IS_ODD & (byte_counts(block) > 0))
    if not len(odd):
        return
    where = np.unique(np.searchsorted(strings.offsets, np.flatnonzero(bytes_among(odd)[block]), "right") - 1)
    which = " ".join(chr(byte) for byte in odd)
    what = f"{counted(len(where), name + ' id' if name != 'tag' else 'tag')} with {which}"
    ids = {int(row[i]): decode(strings[int(i)]) for i in where[:SHOWN]}
    yield file.of_rows("odd-characters", what, row[where], lambda r: f"{name} {show(ids[r])}")


def _suspects(file: File) -> list[bytes]:
    """The document ids among which two may be spellings of one: equal but for case, beyond ASCII, or with leading zeros."""
    documents = file.rows.documents
    block = np.frombuffer(documents.block, np.uint8)
    counts = byte_counts(block)
    mixed = bool(counts[ord("A") : ord("Z") + 1].any() and counts[ord("a") : ord("z") + 1].any())
    long = np.flatnonzero(np.diff(documents.offsets) > 1)
    zero = long[block[documents.offsets[long]] == ord("0")]
    if not (mixed or counts[128:].any() or len(zero)):
        return []
    _, once = np.unique(file.keys, return_index=True)
    chosen = _case_twins(file, once) if mixed else set()
    if counts[128:].any():
        rows = np.unique(np.searchsorted(documents.offsets, np.flatnonzero(block >= 128), "right") - 1)
        chosen.update(documents[int(row)] for row in np.intersect1d(rows, once))
    led = [raw for raw in (documents[int(row)] for row in np.intersect1d(zero, once)) if raw.isdigit()]
    bare = [raw.lstrip(b"0") or b"0" for raw in led]
    known = np.isin(keys(Strings.of(bare)), file.keys) if bare else np.zeros(0, bool)
    return sorted({*chosen, *led, *(raw for raw, there in zip(bare, known.tolist(), strict=True) if there)})


def _case_twins(file: File, once: Array) -> set[bytes]:
    """Ids that another equals but for case; `once` is a row of each id."""
    folded = keys(file.rows.documents, folded=True)[once]
    order = np.argsort(folded)
    same = folded[order][1:] == folded[order][:-1]
    twins = np.r_[same, False] | np.r_[False, same]
    return {file.rows.documents[int(row)] for row in once[order[twins]]}


def _look_for_alike(file: File, name: str, ids: Sequence[bytes]) -> Iterator[Finding]:
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
            what = (
                f"{counted(len(pairs), 'group')} of {name} ids that differ in nothing else: {'; '.join(pairs[:SHOWN])}"
            )
            yield file.finding(f"ids-differ-in-{kind}", what, len(pairs))


def look_for_scattered(file: File) -> Iterator[Finding]:
    """Topics whose lines stand in several places."""
    topic = file.rows.topic
    starts = np.flatnonzero(np.r_[True, topic[1:] != topic[:-1]])
    if len(starts) > len(file.rows.topics):
        again = starts[np.setdiff1d(np.arange(len(starts)), np.unique(topic[starts], return_index=True)[1])]
        what = f"{counted(len(np.unique(topic[again])), 'topic')} in several places"
        yield file.of_rows("topics-scattered", what, again, lambda row: f"topic {show(file.topic(row))} again")


def _look_at_second(
    file: File, values: dict[bytes, tuple[int, int]], code: str, usual: tuple[bytes, ...]
) -> Iterator[Finding]:
    """Values of the second column other than the usual; `values` holds how often each occurs and its first row."""
    other = {value: seen for value, seen in values.items() if value not in usual}
    if other:
        count = sum(n for n, _ in other.values())
        what = f"{counted(count, 'line')} with {some([decode(value) for value in other])}"
        yield file.of_row(code, what, count, min(row for _, row in other.values()))


# judgments


def look_at_qrels(file: File) -> Iterator[Finding]:
    """What is wrong with judgments by themselves."""
    rows = file.rows
    again, first = file.repeats(rows.label) if len(rows.labels) else file.repeats()
    line = dict(zip(again.tolist(), first.tolist(), strict=True))
    equal = rows.value[again] == rows.value[first]
    for code, which in (("judged-twice", again[equal]), ("judged-in-conflict", again[~equal])):
        if len(which):
            what = f"{counted(len(which), 'line')} that judge a document of their topic again"
            text = lambda r: (  # noqa: E731
                f"{file.pair(r)}: {rows.value[r]:g}, and {rows.value[line[r]]:g} on line {file.line_of_row(line[r]):,}"
            )
            yield file.of_rows(code, what, which, text)
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


def _look_at_grades(file: File) -> Iterator[Finding]:
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
        if wrong.any():
            text = lambda row: f"{file.pair(row)}: {grade[row]:g}"  # noqa: E731
            yield file.of_rows(code, f"{counted(int(wrong.sum()), 'judgment')} {what}", np.flatnonzero(wrong), text)
    if low >= 0 and high <= 1 and ((levels > 0) & (levels < 1)).any():
        yield file.finding("grades-below-one", f"all grades lie between {low:g} and {high:g}", len(grade))
    if len(levels) == 1:
        yield file.finding("grades-constant", f"all {counted(len(grade), 'judgment')} say {low:g}", len(grade))
    yield from without_zero(grade, file.where)
    positive = levels > 0
    if positive.sum() >= 3 and not (levels == 0).any() and counts[positive][0] == counts[positive].min():
        shown = ", ".join(
            f"{counted(int(n), 'judgment')} of {level:g}" for level, n in zip(levels, counts, strict=True)
        )
        yield file.finding("grades-reversed", shown, len(grade))


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
        """How many topics these rows are of, in words."""
        return counted(len(np.unique(self.topic[where])), "topic")


def look_at_run(file: File) -> Iterator[Finding]:
    """What is wrong with a run by itself."""
    again, first = file.repeats()
    if len(again):
        line = dict(zip(again.tolist(), first.tolist(), strict=True))
        yield file.of_rows(
            "duplicate-documents",
            f"{counted(len(again), 'line')} that repeat a document of their topic.",
            again,
            lambda row: f"{file.pair(row)}, as on line {file.line_of_row(line[row]):,}",
        )
    grouped = _Grouped(file.rows.topic)
    if file.layout is not None and "Q0" in file.layout.columns:  # the columns that the kernels do not read
        columns = _Columns(file)
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


class _Columns:
    """What the kernels do not read: the second column, the ranks, and how the scores are written."""

    def __init__(self, file: File) -> None:
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


def _look_at_ranks(file: File, grouped: _Grouped, rank: Floats) -> Iterator[Finding]:
    whole = np.isfinite(rank) & (rank == np.floor(rank))
    if not whole.all():
        rows = np.flatnonzero(~whole)
        text = lambda row: show(decode(file.text(int(file.rows.start[row])).split()[3]))  # noqa: E731
        yield file.of_rows("ranks-not-whole", counted(len(rows), "line"), rows, text)
    if not np.isfinite(rank).all():
        return
    here = rank[grouped.order]
    down = np.flatnonzero(grouped.same & (here[1:] < here[:-1])) + 1
    if len(down):
        what = f"{counted(len(down), 'line')} in {grouped.topics(down)}"
        text = lambda row: f"topic {show(file.topic(row))}, rank {rank[row]:g}"  # noqa: E731
        yield file.of_rows("ranks-not-ascending", what, grouped.row[down], text)
    score = file.rows.value[grouped.order]
    row = grouped.row
    if len(down) or (here[1:] == here[:-1])[grouped.same].any():
        order = np.lexsort((-score, here, grouped.topic))
        here, score, row = here[order], score[order], row[order]
    yield from _look_at_sorted_ranks(file, grouped, here, score, row)


def _look_at_sorted_ranks(file: File, grouped: _Grouped, rank: Array, score: Array, row: Array) -> Iterator[Finding]:
    """Rows by topic and rank: gaps, ties, starts, and whether the scores agree."""
    step = rank[1:] - rank[:-1]
    whole = not file.rows.skipped  # a line that could not be read leaves a gap that says nothing
    for code, wrong in (
        ("ranks-not-consecutive", grouped.same & (step > 1) & whole),
        ("ranks-tied", grouped.same & (step == 0)),
        ("ranks-contradict-scores", grouped.same & (step > 0) & (score[1:] > score[:-1])),
    ):
        where = np.flatnonzero(wrong) + 1
        if len(where):
            yield file.of_rows(code, _affected(file, grouped, where), np.sort(row[where]), file.pair)
    top = np.r_[True, ~grouped.same]
    start, first = rank[top], row[top]
    kinds = np.unique(start)
    if whole and (not np.isin(kinds, (0, 1)).all() or len(kinds) > 1):
        odd = first[start != (1 if (start == 1).sum() >= (start == 0).sum() else 0)]
        shown = ", ".join(f"{kind:g}" for kind in kinds[:SHOWN]) + (" …" if len(kinds) > SHOWN else "")
        yield file.of_rows("ranks-start", f"topics start at rank {shown}", np.sort(odd), file.pair)


def _affected(file: File, grouped: _Grouped, where: Array) -> str:
    return f"{counted(len(where), 'line')} in {grouped.topics(where)} of {len(file.rows.topics):,}"


def _look_at_scores(file: File, grouped: _Grouped) -> Iterator[Finding]:
    score = file.rows.value[grouped.order]
    infinite = np.flatnonzero(np.isinf(file.rows.value))
    if len(infinite):
        yield file.of_rows("scores-infinite", counted(len(infinite), "line"), infinite, file.pair)
    up = grouped.same & (score[1:] > score[:-1])
    if up.any():
        where = np.flatnonzero(up) + 1
        code = "scores-reversed" if rise_only(grouped.same, score) else "scores-not-descending"
        yield file.of_rows(code, _affected(file, grouped, where), grouped.row[where], file.pair)
        score = score[np.lexsort((-score, grouped.topic))]
    yield from _look_for_ties(file, grouped, score)


def _look_for_ties(file: File, grouped: _Grouped, score: Floats) -> Iterator[Finding]:
    """Scores by topic, best first."""
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


def _look_at_tags(file: File) -> Iterator[Finding]:
    if len(file.rows.labels) > 1:
        values, first, counts = np.unique(file.rows.label, return_index=True, return_counts=True)
        tags = [show(decode(file.rows.labels[int(v)])) for v in values]
        shown = ", ".join(f"{tag} {counted(int(n), 'line')}" for tag, n in zip(tags[:SHOWN], counts, strict=False))
        what = f"{counted(len(tags), 'tag')}: {shown}{' …' if len(tags) > SHOWN else ''}"
        yield file.of_row("mixed-tags", what, len(tags), sorted(first)[1])


def look_at_depth(file: File, deepest: int) -> Iterator[Finding]:
    """A run that is cut off early, by itself or beside others."""
    depth = int(file.depth.max())
    if depth < max(deepest, DEEP):
        other = f"; another run goes down to {deepest:,}" if depth < deepest else ""
        yield file.finding("shallow-run", f"no topic has more than {counted(depth, 'document')}{other}")
