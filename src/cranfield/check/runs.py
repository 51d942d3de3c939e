"""Runs: duplicates, ranks and scores that disagree, ties, tags and depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.check.file import IS_WHITE, SHOWN, n_of, show
from cranfield.check.ids import look_at_second
from cranfield.check.keys import spread, words
from cranfield.formats.known.trec import RUN
from cranfield.kernels import Table, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.check.file import Array, File
    from cranfield.kernels.table import Floats


DEEP = 1000  # the depth that TREC asks for


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


def look_at_run(file: File) -> None:
    """Report what is wrong with a run by itself."""
    again, first = file.repeats()
    if len(again):
        line = dict(zip(again.tolist(), first.tolist(), strict=True))
        file.add_rows(
            "duplicate-documents",
            f"{n_of(len(again), 'line')} that repeat a document of their topic.",
            again,
            lambda row: f"{file.pair(row)}, as on line {file.line_of_row(line[row]):,}",
        )
    grouped = _Grouped(file.rows.topic)
    if file.layout is RUN:
        columns = _Columns(file, file.rows)
        look_at_second(file, columns.second, "q0-column", (b"Q0", b"q0"))
        if columns.scientific:
            file.add("scores-scientific", f"{n_of(columns.scientific, 'line')}", columns.scientific)
        _look_at_ranks(file, grouped, columns)
    _look_at_scores(file, grouped)
    _look_at_tags(file)
    _look_at_depth(file)


class _Columns:
    """What the kernels do not read: the second column, the ranks, and how the scores are written."""

    def __init__(self, file: File, rows: Table) -> None:
        assert file.layout is not None
        names = file.layout.columns.split()
        self.second: dict[bytes, tuple[int, int]] = {}  # each value: how often, and the first row
        self.rank = np.full(len(rows.topic), np.nan)
        self.scientific = 0
        for low in range(0, len(rows.topic), 200_000):
            part = slice(low, min(low + 200_000, len(rows.topic)))
            self._read(file, rows, part, names)

    def _read(self, file: File, rows: Table, part: slice, names: list[str]) -> None:
        low = int(rows.start[part.start])
        high = int(rows.start[part.stop]) if part.stop < len(rows.start) else len(file.data)
        data = np.r_[file.data[low:high], np.full(8, 32, np.uint8)]
        white = IS_WHITE[data]
        begins = np.flatnonzero(~white & np.r_[True, white[:-1]])
        ends = np.flatnonzero(white & np.r_[False, ~white[:-1]])
        first = np.searchsorted(begins, rows.start[part] - low)
        self._count_second(data, begins[first + 1], ends[first + 1], part.start)
        if "rank" in names:
            at = first + names.index("rank")
            self.rank[part] = _whole_numbers(data, begins[at], ends[at])
        at = first + file.layout.value  # type: ignore[union-attr]
        tail = ends[at, None] - 1 - np.arange(6)  # an exponent starts no earlier than this
        mark = (data[tail] | 0x20 == ord("e")) & (tail >= begins[at, None])
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


def _look_at_ranks(file: File, grouped: _Grouped, columns: _Columns) -> None:
    rank = columns.rank
    whole = np.isfinite(rank) & (rank == np.floor(rank))
    if not whole.all():
        rows = np.flatnonzero(~whole)
        text = lambda row: show(decode(file.text(int(file.rows.start[row])).split()[3]))  # noqa: E731
        file.add_rows("ranks-not-whole", f"{n_of(len(rows), 'line')}", rows, text)
    if not np.isfinite(rank).all():
        return
    here = rank[grouped.order]
    down = np.flatnonzero(grouped.same & (here[1:] < here[:-1])) + 1
    if len(down):
        what = f"{n_of(len(down), 'line')} in {n_of(_topics(grouped, down), 'topic')}"
        text = lambda row: f"topic {show(file.topic(row))}, rank {rank[row]:g}"  # noqa: E731
        file.add_rows("ranks-not-ascending", what, grouped.row[down], text)
    score = file.rows.value[grouped.order]
    row = grouped.row
    if len(down) or (here[1:] == here[:-1])[grouped.same].any():
        order = np.lexsort((-score, here, grouped.topic))
        here, score, row = here[order], score[order], row[order]
    _look_at_sorted_ranks(file, grouped, here, score, row)


def _look_at_sorted_ranks(file: File, grouped: _Grouped, rank: Array, score: Array, row: Array) -> None:
    """Rows by topic and rank: gaps, ties, starts, and whether the scores agree."""
    step = rank[1:] - rank[:-1]
    text = lambda r: f"{file.pair(r)}"  # noqa: E731
    whole = not file.rows.skipped  # a line that could not be read leaves a gap that says nothing
    for code, wrong in (
        ("ranks-not-consecutive", grouped.same & (step > 1) & whole),
        ("ranks-tied", grouped.same & (step == 0)),
        ("ranks-contradict-scores", grouped.same & (step > 0) & (score[1:] > score[:-1])),
    ):
        where = np.flatnonzero(wrong) + 1
        if len(where):
            affected = f"{n_of(_topics(grouped, where), 'topic')} of {len(file.rows.topics):,}"
            file.add_rows(code, f"{n_of(len(where), 'line')} in {affected}", np.sort(row[where]), text)
    start = rank[np.r_[True, ~grouped.same]]
    kinds = np.unique(start)
    if whole and (not np.isin(kinds, (0, 1)).all() or len(kinds) > 1):
        first = row[np.r_[True, ~grouped.same]]
        odd = first[start != (1 if (start == 1).sum() >= (start == 0).sum() else 0)]
        shown = ", ".join(f"{kind:g}" for kind in kinds[:SHOWN]) + (" …" if len(kinds) > SHOWN else "")
        file.add_rows("ranks-start", f"topics start at rank {shown}", np.sort(odd), text)


def _topics(grouped: _Grouped, where: Array) -> int:
    return len(np.unique(grouped.topic[where]))


def _look_at_scores(file: File, grouped: _Grouped) -> None:
    score = file.rows.value[grouped.order]
    infinite = np.flatnonzero(np.isinf(file.rows.value))
    if len(infinite):
        file.add_rows("scores-infinite", f"{n_of(len(infinite), 'line')}", infinite, file.pair)
    up = grouped.same & (score[1:] > score[:-1])
    if up.any():
        where = np.flatnonzero(up) + 1
        falling = (grouped.same & (score[1:] < score[:-1])).any()
        pairs = int(grouped.same.sum())
        code = "scores-not-descending" if falling or pairs < 2 else "scores-reversed"
        what = f"{n_of(len(where), 'line')} in {n_of(_topics(grouped, where), 'topic')} of {len(file.rows.topics):,}"
        file.add_rows(code, what, grouped.row[where], file.pair)
        score = score[np.lexsort((-score, grouped.topic))]
    _look_for_ties(file, grouped, score)


def _look_for_ties(file: File, grouped: _Grouped, score: Floats) -> None:
    """Scores by topic, best first."""
    equal = grouped.same & (score[1:] == score[:-1])
    if equal.any():
        tied = np.r_[equal, False] | np.r_[False, equal]
        high = np.flatnonzero(equal & (grouped.place()[:-1] <= 10))
        topics = _topics(grouped, np.flatnonzero(tied))
        what = (
            f"{int(tied.sum()):,} of {n_of(len(tied), 'document')} ({tied.mean():.1%}) tie with another, in "
            f"{n_of(topics, 'topic')}; in {_topics(grouped, high):,} of them a tie reaches the top 10"
        )
        file.add("tied-scores", what, int(tied.sum()))
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    merged = grouped.same & (single[1:] == single[:-1]) & ~equal
    if merged.any():
        where = np.flatnonzero(merged)
        what = f"{n_of(len(where), 'neighbour')} in the ranking, in {n_of(_topics(grouped, where), 'topic')}"
        file.add("tied-at-32-bits", what, len(where))


def _look_at_tags(file: File) -> None:
    if len(file.rows.labels) > 1:
        values, first, counts = np.unique(file.rows.label, return_index=True, return_counts=True)
        tags = [show(decode(file.rows.labels[int(v)])) for v in values]
        shown = ", ".join(f"{tag} {n_of(int(n), 'line')}" for tag, n in zip(tags[:SHOWN], counts, strict=False))
        what = f"{n_of(len(tags), 'tag')}: {shown}{' …' if len(tags) > SHOWN else ''}"
        start = file.rows.start
        file.add("mixed-tags", what, len(tags), [(int(start[sorted(first)[1]]), "")] if len(start) else [])


def _look_at_depth(file: File) -> None:
    deepest = int(file.depth.max())
    short = np.flatnonzero(file.depth < deepest)
    if len(short):
        least = int(file.depth.min())
        what = f"{n_of(len(short), 'topic')} of {len(file.depth):,} with fewer than {deepest:,} documents (fewest: {least:,})"
        file.add_names("shallow-topics", what, [decode(file.rows.topics[int(t)]) for t in short[: SHOWN + 1]])


def compare_depths(runs: Sequence[File]) -> None:
    """Report runs that are cut off early, by themselves or beside others."""
    deepest = max((int(file.depth.max()) for file in runs), default=0)
    for file in runs:
        depth = int(file.depth.max())
        if depth < max(deepest, DEEP):
            other = f"; another run goes down to {deepest:,}" if depth < deepest else ""
            file.add("shallow-run", f"no topic has more than {n_of(depth, 'document')}{other}")
