"""Sanity checks: problems that could make scores meaningless, detected in one place for the library and all commands.

They detect swapped arguments, upside-down scores, ids or topics that do not match, few judged documents, grades without
a 0 or beyond a measure's scale, ties that decide, and orders that need more than single precision.

`check` and every command that scores call these functions, so both report the same. An evaluation passes what it has
computed anyway; healthy data costs a few sums per run. Ids and the collection are read only if something is wrong.

Thresholds come from real runs of TREC and older collections. Ids are reported if a run returns less than 1 % of the
judged documents that it could have returned (lowest real run: 4 %). Topics are reported if fewer than half match, of the
run's or of the judged topics, whichever are fewer (lowest: 83 %). Few documents are judged if Judged@10 is below 0.2
(lowest of 31 runs over judgments with non-relevant documents: 0.30).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from math import lgamma, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataWarning, UnjudgedWarning
from cranfield.base.kernels import Order, RowTable, decode, parse
from cranfield.base.run import TextSource
from cranfield.base.text_layout import counted
from cranfield.evaluation.hits import Judgments
from cranfield.evaluation.measures.definition import is_mean
from cranfield.evaluation.tie_orders import DecisiveTies, extreme_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.base.findings import Finding
    from cranfield.base.kernels import HitRows, Strings
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Qrels
    from cranfield.base.run import Run
    from cranfield.evaluation.hits import Hits, Mask
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.scores import Scores

FEW = 0.01  # least share of the judged documents that could have been returned
FEW_TOPICS = 0.5  # least share of the topics that could have matched
MANY = 100  # with so many returned documents, it is no accident that none is judged
MOVED = 0.01  # how far ties may change a mean without a warning
DIGITS = 0.0005  # how far digits beyond single precision may change a mean without a warning
LITTLE_JUDGED, TOP = 0.2, 10  # least share of judged documents within the first ranks
STARS = 4  # a scale without a 0 and with this highest grade or more looks like stars
LEVELS, HIGHEST = 8, 20  # grades have at most so many levels, and at most this value
DISTINCT = 0.9  # least share of distinct values within topics, if they are scores
ACCIDENT = log(1000)  # an order with a probability below 1 in 1000 is no accident
LOOKED_AT = 1 << 16  # bytes of a run whose scores are checked first
FEW_RUNS, HEAVY = 20, 0.05  # with more runs, only those are checked in which ties leave so much open
NAMED_RUNS = 3  # most runs to name in a warning about ties
LOOKED_UP = 1000  # most returned ids to look up in the collection
# findings where no returned document is known
STOPPING = ("no-common-topic", "no-judged-document", "no-document-of-collection")
RULES = {
    "document-descending": "by document id, descending",
    "document-ascending": "by document id, ascending",
    "input-order": "in the order given",
}


# warnings


def warn(findings: Iterable[Finding]) -> None:
    """Warn of each finding; those that stop a command come last, so that the others are still printed."""
    for finding in sorted(findings, key=_stops):
        kind = UnjudgedWarning if _stops(finding) else DataWarning
        warnings.warn(kind(f"{finding.file}: {finding.message}"), stacklevel=_depth_of_caller())


def _finding(code: str, where: str, detail: str, count: int | None = None) -> Finding:
    """A finding; the table of all kinds is loaded only if there is something to report."""
    from cranfield.base.findings import Finding

    return Finding.of(code, where, detail, count)


def _first_ids(strings: Strings) -> str:
    """The first ids of a file, in quotes."""
    from cranfield.base.findings import some

    return some([decode(strings[i]) for i in range(min(4, len(strings)))], 3)


def _stops(finding: Finding) -> bool:
    return finding.code in STOPPING and finding.count >= MANY


def _depth_of_caller() -> int:
    """How many calls above `warn` the user's code is: the first frame outside this package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("cranfield."):
        frame, depth = frame.f_back, depth + 1
    return depth


# swapped arguments


def looks_like_scores(qrels: Qrels, source: Any = None) -> bool:
    """Whether judgments look like scores: fractions, numbers above any grade, or floats, nearly all different.

    Real runs have ties, so fractions or high numbers with many levels need not differ. Whole numbers with more levels
    than grades have, all different within a topic, are ranks or counts.
    """
    grade = qrels.grade
    if bool((grade != np.floor(grade)).any()) or bool(grade.max(initial=0) > HIGHEST):
        return len(np.unique(grade)) > MANY or _distinct(qrels.topic, grade)
    several = np.ptp(grade) >= LEVELS and len(np.unique(grade)) > LEVELS
    return (several or _all_floats(source)) and _distinct(qrels.topic, grade)


def _all_floats(source: Any) -> bool:
    """Whether the first numbers of a mapping are all floats, as scores usually are and grades seldom."""
    if not isinstance(source, Mapping):
        return False
    topics = [documents for documents in islice(source.values(), LOOKED_UP) if isinstance(documents, Mapping)]
    numbers = [number for documents in topics for number in islice(documents.values(), LEVELS)]
    return bool(numbers) and all(isinstance(number, float) for number in numbers)


def _distinct(topic: Ints, value: Floats) -> bool:
    """Whether topics have several values that nearly all differ."""
    several = np.bincount(topic)[topic] > 1
    pairs = np.stack([topic[several], value[several]], axis=1)
    return bool(several.any()) and len(np.unique(pairs, axis=0)) >= DISTINCT * len(pairs)


def looks_like_grades(run: Run) -> bool:
    """Whether a run's scores look like grades: few levels, whole and small, and with a 0, with ties, or all equal."""
    value, topic = run.table.value, run.table.topic
    if not len(value) or value.min() < -LEVELS or value.max() > HIGHEST or (value != np.floor(value)).any():
        return False
    levels = np.unique(value)
    tied = len(np.unique(np.stack([topic, value], axis=1), axis=0)) < len(value)
    return len(levels) <= LEVELS and (tied or len(levels) == 1 or 0 in levels)


def swapped(run: Run, qrels: Qrels) -> Finding:
    """The finding that judgments look like scores and a run looks like grades."""
    grade, score = qrels.grade, run.table.value
    what = f"judged from {grade.min():g} to {grade.max():g}; scores are whole numbers from {score.min():g} to {score.max():g}"
    return _finding("swapped-arguments", f"{qrels.name}, {run.name}", what, len(grade))


# scores that are upside down


def rise_only(same: Mask, score: Floats) -> bool:
    """Whether scores never fall from line to line and rise somewhere; `same` marks lines with the topic of the line above."""
    above, below = score[:-1][same], score[1:][same]
    return len(above) > 1 and bool((below >= above).all()) and bool((below > above).any())


def upside_down(run: Run, hits: Hits) -> Iterator[Finding]:
    """A finding if scores rise down the lines of a run and its relevant documents are nearer the other end."""
    if _falls_at_once(run):
        return
    for whole in (False, True):  # one fall among the first lines settles it
        topic, score = _by_topic(run.table.topic, run.table.value) if whole else _first_rows(run)
        same = topic[1:] == topic[:-1]
        if not rise_only(same, score):
            return
    rises = np.bincount(topic[1:][same & (score[1:] > score[:-1])], minlength=int(topic.max()) + 1)
    relevant = hits.relevant(1)
    from_the_end = relevant.retrieved[relevant.topic] + 1 - relevant.rank
    both = [float((1 / np.log2(rank + 1.0)).sum()) for rank in (relevant.rank, from_the_end)]
    if sum(lgamma(number + 2) for number in rises.tolist()) < ACCIDENT or both[1] <= both[0]:
        return
    topics = int(np.count_nonzero(rises))
    as_read, turned = (total / max(topics, 1) for total in both)
    what = f"{topics:,} topics; binary DCG is {as_read:.4f}, and {turned:.4f} from the other end"
    yield _finding("scores-reversed", run.name, what, topics)


def _falls_at_once(run: Run) -> bool:
    """Whether scores fall within the first documents of a mapping's first topic, as in most runs."""
    documents = {} if isinstance(run.source, (TextSource, RowTable)) else next(iter(run.source.values()), {})
    scores = list(map(float, islice(documents.values(), TOP)))
    return any(below < above for above, below in pairwise(scores))


def _first_rows(run: Run) -> tuple[Ints, Floats]:
    """Topic and score of the first lines of a run (or the first topics of a mapping), ordered by topic."""
    source = run.source
    if isinstance(source, TextSource):
        start = bytes(source.buffer[:LOOKED_AT])
        table = parse(start[: start.rfind(b"\n") + 1] or start, source.layout, lenient=True)
    elif isinstance(source, RowTable):
        table = source
    else:
        topics = islice(source.values(), TOP)
        several = [np.fromiter(map(float, islice(each.values(), LOOKED_UP)), np.float64) for each in topics]
        numbers = np.repeat(np.arange(len(several), dtype=np.int32), list(map(len, several)))
        return numbers, np.concatenate([*several, np.zeros(0)])
    return _by_topic(table.topic[:LOOKED_AT], table.value[:LOOKED_AT])


def _by_topic(topic: Ints, score: Floats) -> tuple[Ints, Floats]:
    if (topic[1:] < topic[:-1]).any():
        order = np.argsort(topic, kind="stable")
        topic, score = topic[order], score[order]
    return topic, score


# ids and topics


class IdOverlap(NamedTuple):
    """How far the ids and topics of a run and of judgments overlap."""

    returned: int  # documents for judged topics
    judged: int  # returned documents that are judged
    judgeable: int  # judged documents that could have been returned
    topics: int  # judged topics
    answered: int  # judged topics that the run answers
    others: int  # answered topics that are not judged

    @classmethod
    def of(cls, match: HitRows, judgments: Judgments) -> IdOverlap:
        """The overlap, from the kernel's match of a run with the judgments."""
        judged = judgments.once("judged", lambda: np.bincount(judgments.topic, minlength=judgments.size))
        returned, answered = int(match.retrieved.sum()), int(np.count_nonzero(match.retrieved))
        judgeable = int(np.minimum(judged, match.retrieved).sum())
        return cls(returned, len(match.topic), judgeable, judgments.size, answered, len(match.others))

    @property
    def ids_apart(self) -> bool:
        """Whether no or hardly any returned ids are judged."""
        return self.returned > 0 and self.judged < max(1, FEW * self.judgeable)

    @property
    def topics_apart(self) -> bool:
        """Whether no or few topics match."""
        return self.answered < FEW_TOPICS * min(self.topics, self.answered + self.others)


def id_mismatches(run: Run, qrels: Qrels, overlap: IdOverlap) -> Iterator[Finding]:
    """Findings about ids and topics that do not match."""
    if overlap.topics_apart:
        yield _topics_apart(run, qrels, overlap)
    if overlap.ids_apart:
        yield _ids_apart(run, qrels, overlap)


def _topics_apart(run: Run, qrels: Qrels, overlap: IdOverlap) -> Finding:
    from cranfield.base.findings import some

    judged = set(qrels.topics)
    others = [topic for topic in run.topics if topic not in judged]
    answered = set(run.topics)
    missing = [topic for topic in qrels.topics if topic not in answered]
    what = f"it answers {some(others, 3)}; judged are {some(missing, 3)}{would_match(others, missing)}"
    if not overlap.answered:
        return _finding("no-common-topic", run.name, what, len(run))
    both = f"{overlap.answered:,} of {overlap.answered + overlap.others:,} answered and {overlap.topics:,} judged"
    return _finding("few-common-topics", run.name, f"{both}; {what}", overlap.answered)


def would_match(answered: Sequence[str], judged: Sequence[str]) -> str:
    """A hint how topics could be made to match (ignoring case, leading zeros …); empty if nothing simple works."""
    ways: dict[str, Callable[[str], str]] = {
        "ignoring case": str.casefold,
        "without leading zeros": lambda topic: topic.lstrip("0"),
        "by their digits alone": lambda topic: "".join(filter(str.isdigit, topic)).lstrip("0"),
    }
    for words, fold in ways.items():
        both = {fold(topic) for topic in answered} & {fold(topic) for topic in judged} - {""}
        if both:
            return f" ({len(both):,} would match {words})"
    return ""


def _ids_apart(run: Run, qrels: Qrels, overlap: IdOverlap) -> Finding:
    what = f"it returns {_first_ids(run.table.documents)}; judged are {_first_ids(qrels.documents)}"
    there = _in_collection(run, qrels)
    if there is not None:
        what += f"; of the first {there[1]:,} ids that it returns the collection has {there[0]:,}"
    if not overlap.judged and not (there and there[0]):
        return _finding("no-judged-document", run.name, what, overlap.returned)
    few = f"{overlap.judged:,} of {overlap.returned:,}, where {overlap.judgeable:,} could be"
    return _finding("few-judged-documents", run.name, f"{few}; {what}", overlap.returned - overlap.judged)


def foreign_documents(run: Run, qrels: Qrels) -> Iterator[Finding]:
    """A finding if the ids of a run do not match the collection that it was made for."""
    if len(qrels):
        overlap = IdOverlap.of(run.hits(qrels.index, Order()), Judgments.of(qrels))
        if overlap.returned:
            yield from [_ids_apart(run, qrels, overlap)] if overlap.ids_apart else []
            return
    there = _in_collection(run, qrels)
    if there is None or there[0] >= FEW * there[1]:
        return
    ids = _first_ids(run.table.documents)
    has = next(iter(qrels.corpus())) if qrels.corpus is not None else ""
    what = f"{there[0]:,} of the first {there[1]:,} ids; it returns {ids}; the collection has {has!r} …"
    code = "few-documents-of-collection" if there[0] else "no-document-of-collection"
    yield _finding(code, run.name, what, len(run) - there[0])


def _in_collection(run: Run, qrels: Qrels) -> tuple[int, int] | None:
    """How many of the first ids of a run are in the collection, and how many were tried; None without a collection."""
    if qrels.corpus is None:
        return None
    first = {decode(run.table.documents[i]) for i in range(min(LOOKED_UP, len(run)))}
    left = set(first)
    for document in qrels.corpus():
        left.discard(document)
        if not left:
            break
    return len(first) - len(left), len(first)


# few judged documents


def little_judged(run: Run, hits: Hits, topics: Mask, rel: float = 1) -> Iterator[Finding]:
    """A finding if few of a run's first documents are judged; none if judgments list relevant documents only."""
    if hits.judgments.only_relevant(rel):
        return
    top = hits.top(TOP)
    answered = topics & (top.retrieved > 0)
    shares = top.judged().count()[answered] / top.retrieved[answered]
    if not len(shares) or shares.mean() >= LITTLE_JUDGED:
        return
    share = f"{shares.mean():.1%} of the first {TOP}, on average over {len(shares):,} topics"
    yield _finding("little-judged", run.name, share, len(shares))


# grades


def without_zero(grades: Floats, where: str) -> Iterator[Finding]:
    """A finding for grades from 1 to 4 or more without a 0, like stars."""
    grade = grades[grades >= 0]
    if not len(grade) or grade.min() != 1 or grade.max() < STARS:
        return
    what = f"{counted(len(grade), 'judgment')} from 1 to {grade.max():g}"
    yield _finding("grades-without-zero", where, what, len(grade))


def beyond_scale(measures: Mapping[str, Measure], highest: float, where: str) -> Iterator[Finding]:
    """Findings for measures whose scale ends below the highest grade."""
    for name, measure in measures.items():
        words = measure.beyond(highest)
        if words:
            yield _finding("grades-beyond-scale", where, f"{name}: {words}")


# ties


def tie_ranges(measures: Iterable[Measure | None], hits: Hits, values: Floats, runs: int) -> Floats | None:
    """How far the order of ties can lower and raise each value: 2 × measures × topics; None if it changes nothing.

    The measures are computed again, which costs too much for one of many `runs` unless its ties leave much open.

    Both ends are attained: relevant documents come last in their ties, or first. None in place of a measure skips it.
    """
    loose = DecisiveTies.of(hits)
    if not len(loose.topic) or (runs > FEW_RUNS and loose.weight(hits.size) <= HEAVY):
        return None
    answer = np.zeros((2, *values.shape))
    views: dict[float, _OpenTies] = {}
    deepest = hits.retrieved.max(initial=0)
    for i, measure in enumerate(measures):
        if measure is None or not is_mean(measure):
            continue
        depth = float(measure.values.get("k") or np.inf) if measure.at == "k" else np.inf
        depth = depth if depth < deepest else np.inf
        if depth not in views:
            views[depth] = _OpenTies(hits, loose.topics(hits.size, depth), depth)
        at = views[depth].topics
        if not at.any():
            continue
        try:
            both = views[depth].ends(measure, values[i])
        except TypeError:  # a few measures need the run, which reordered hits do not have
            continue
        moved = np.nan_to_num(both - values[i, at])
        answer[0, i, at] = np.minimum(moved.min(axis=0), 0)
        answer[1, i, at] = np.maximum(moved.max(axis=0), 0)
    return answer if answer.any() else None


class _OpenTies:
    """The topics with decisive ties down to a depth, each tie in its worst and in its best order.

    Most measures depend on relevant documents only, which are few. A measure whose value does not change without the
    other documents is computed on relevant ones alone.
    """

    def __init__(self, hits: Hits, topics: Mask, depth: float) -> None:
        self.topics, self.hits = topics, hits
        self.mask = topics[hits.topic] & (hits.tied_from <= depth)

    @cached_property
    def relevant(self) -> Hits:
        return self.hits.where(self.mask & (self.hits.grade > 0))

    @cached_property
    def orders_of_relevant(self) -> tuple[Hits, Hits]:
        return extreme_order(self.relevant, best=False), extreme_order(self.relevant, best=True)

    @cached_property
    def orders(self) -> tuple[Hits, Hits]:
        part = self.hits.where(self.mask)
        return extreme_order(part, best=False), extreme_order(part, best=True)

    def ends(self, measure: Measure, now: Floats) -> Floats:
        """The worst and the best values that the order of ties allows, 2 × topics; `now` holds the current values."""
        alike = np.array_equal(measure(self.relevant)[self.topics], now[self.topics])
        orders = self.orders_of_relevant if alike else self.orders
        return np.stack([measure(order)[self.topics] for order in orders])


def ties_that_decide(scores: Scores, swings: Sequence[Floats | None], requested: Iterable[str]) -> Iterator[Finding]:
    """Findings for means that the order of ties can change much, and runs that it can swap; `swings`: one per run."""
    rule = RULES.get(scores.conventions.ties)
    columns = [m for m, name in enumerate(scores.measures) if name in set(requested) and name not in scores.pooled]
    if rule is None or not columns or all(each is None for each in swings):
        return
    there = scores.counted[:, None, :] & ~np.isnan(scores.values)
    number = np.maximum(there.sum(axis=2), 1)
    nothing = np.zeros((2, *scores.values.shape[1:]))
    moved = np.stack([nothing if each is None else each for each in swings], axis=1)
    low, high = scores.summary + (moved * there).sum(axis=3) / number
    yield from _unstable_means(scores, moved, low, high, columns, rule)
    yield from _unstable_orders(scores, low, high, columns, rule)


def _unstable_means(
    scores: Scores, moved: Floats, low: Floats, high: Floats, columns: list[int], rule: str
) -> Iterator[Finding]:
    width = high - low
    far = [r for r in range(len(scores.runs)) if width[r, columns].max() > MOVED]
    far.sort(key=lambda r: -float(width[r, columns].max()))
    if not far:
        return
    names = list(scores.measures)
    most = [columns[int(np.argmax(width[r, columns]))] for r in far]  # the measure that moves most
    r, m = far[0], most[0]
    span = moved[1, r, m] - moved[0, r, m]
    what = mean_range_in_words(names[m], float(low[r, m]), float(scores.summary[r, m]), float(high[r, m]), rule, span)
    named = [scores.runs[r] for r in far[:NAMED_RUNS]]
    for r, m in zip(far[1:NAMED_RUNS], most[1:], strict=False):
        what += f"; {names[m]} of {scores.runs[r]} between {low[r, m]:.4f} and {high[r, m]:.4f}"
    if len(far) > NAMED_RUNS:
        what += f"; and {len(far) - NAMED_RUNS:,} more runs"
    yield _finding("tie-order", ", ".join(named), what, int(np.count_nonzero(span)))


def mean_range_in_words(name: str, low: float, now: float, high: float, rule: str, span: Floats) -> str:
    """The range of a mean over the orders of ties; `span` is the range of each topic."""
    topics = f"{counted(int((span > 1e-12).sum()), 'topic')} of {len(span):,}"
    return f"mean {name} lies between {low:.4f} and {high:.4f} ({now:.4f} with ties {rule}; {topics})"


def _unstable_orders(scores: Scores, low: Floats, high: Floats, columns: list[int], rule: str) -> Iterator[Finding]:
    """A finding for runs whose order depends on ties, by their printed means."""
    pairs: list[tuple[float, int, int, int]] = []
    for m in columns:
        with np.errstate(over="ignore"):  # of means near the largest number
            now = np.round(scores.summary[:, m], 4)
        ahead = now[:, None] > now[None, :]
        overlap = high[None, :, m] - low[:, None, m]  # the lower run at its best minus the higher run at its worst
        for i, j in np.argwhere(ahead & (overlap > 1e-12)).tolist():
            pairs.append((float(overlap[i, j]), m, i, j))
    if not pairs:
        return
    _, m, i, j = max(pairs, key=lambda pair: pair[0])

    def placed(r: int) -> str:
        span = f" (from {low[r, m]:.4f} to {high[r, m]:.4f})" if high[r, m] > low[r, m] else ""
        return f"{scores.summary[r, m]:.4f}{span}"

    name, rest = list(scores.measures)[m], len(pairs) - 1
    more = f", and {counted(rest, 'more pair')} of runs by some measure" if rest else ""
    what = f"{placed(i)} and {placed(j)} by {name}, with ties {rule}{more}"
    yield _finding("tie-swap", f"{scores.runs[i]}, {scores.runs[j]}", what, len(pairs))


# digits beyond single precision


def in_single(match: HitRows) -> HitRows | None:
    """The match with scores compared as 32-bit floats, for the topics where that moves a hit; None if it moves none."""
    if not len(match.single):
        return None
    topic, row, rank, first, last = match.single.T
    concerned = np.zeros(len(match.retrieved), np.bool_)
    concerned[topic] = True
    part = np.flatnonzero(concerned[match.topic])
    by_row = part[np.argsort(match.row[part])]
    place = by_row[np.searchsorted(match.row[by_row], row)]
    if (match.rank[place] == rank).all():
        return None
    columns = {}
    for name, values in (("rank", rank), ("first", first), ("last", last)):
        columns[name] = getattr(match, name).copy()
        columns[name][place] = values
    part = part[np.lexsort((columns["rank"][part], match.topic[part]))]
    columns = {name: column[part] for name, column in columns.items()}
    return replace(match, topic=match.topic[part], row=match.row[part], **columns)


def moved_by_single(measures: Iterable[Measure | None], hits: Hits, values: Floats) -> Floats:
    """How much single precision changes each value, measures × topics; `hits` belong to the topics that it affects.

    None in place of a measure skips it.
    """
    moved = np.zeros(values.shape)
    topics = np.unique(hits.topic)
    for i, measure in enumerate(measures):
        if measure is not None and is_mean(measure):
            moved[i, topics] = np.nan_to_num(measure(hits)[topics] - values[i, topics])
    return moved


def digits_that_decide(scores: Scores, moves: Sequence[Floats | None], requested: Iterable[str]) -> Iterator[Finding]:
    """A finding for means that single precision would change; `moves`: one per run."""
    columns = [m for m, name in enumerate(scores.measures) if name in set(requested) and name not in scores.pooled]
    changes = []
    for r, moved in enumerate(moves):
        if moved is None or not columns:
            continue
        there = scores.counted[r] & ~np.isnan(scores.values[r])
        change = (moved * there).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        m = max(columns, key=lambda m: abs(float(change[m])))
        if abs(change[m]) >= DIGITS:
            changes.append((float(change[m]), r, m, int(np.count_nonzero(moved[m]))))
    if not changes:
        return
    changes.sort(key=lambda each: -abs(each[0]))
    names, parts = list(scores.measures), []
    for change, r, m, topics in changes[:NAMED_RUNS]:
        now = float(scores.summary[r, m])
        whose = f" of {scores.runs[r]}" if len(changes) > 1 else ""
        other = round(now + change, 4) + 0.0  # no -0.0000
        parts.append(f"mean {names[m]}{whose} {now:.4f}, otherwise {other:.4f} ({counted(topics, 'topic')})")
    parts += [f"and {len(changes) - NAMED_RUNS:,} more runs"] if len(changes) > NAMED_RUNS else []
    runs = ", ".join(scores.runs[r] for _, r, _, _ in changes[:NAMED_RUNS])
    yield _finding("beyond-single-precision", runs, "; ".join(parts), len(changes))
