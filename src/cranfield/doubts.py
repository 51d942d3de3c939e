"""The sanity checks: what could make scores meaningless, found in one place for the library and for every command.

Arguments that are swapped, scores that are upside down, ids or topics that do not match, few judged documents, grades
without a 0 or beyond a measure's scale, ties that decide, and orders that depend on more than single precision.

`check` and every verb that scores ask here, so both say the same. An evaluation hands over what it has in hand; healthy
data costs it a few sums a run, and findings.py, ids and the collection are looked at only where something is wrong.

Ids are in doubt where a run returns fewer than 1 in 100 of the judged documents that it could have returned. Real runs
lie above: the least of those tried, from TREC and older collections, returned 4 in 100. Topics are in doubt where fewer
than half match, of the run's or of the judged ones, whichever are fewer; the least of those tried was 83 in 100.
Few documents are judged where Judged@10 is below 0.2: the least of 31 real runs, over judgments that name non-relevant
documents too, was 0.30.
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

from cranfield.errors import DataWarning, UnjudgedWarning
from cranfield.hits import Judgments
from cranfield.kernels import Order, Table, decode, parse
from cranfield.measures.measure import takes_topics_alone
from cranfield.orders import Loose, tied
from cranfield.run import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.collection import Qrels
    from cranfield.findings import Finding
    from cranfield.hits import Hits, Mask
    from cranfield.kernels import Found
    from cranfield.kernels.table import Floats, Ints
    from cranfield.measures import Measure
    from cranfield.run import Run
    from cranfield.scores import Scores

FEW = 0.01  # of the judged documents that could have been returned
FEW_TOPICS = 0.5  # of the topics that could have matched
MANY = 100  # returned documents from which on it is no accident that none of them is known
MOVED = 0.01  # how far ties may move a mean without a word
DIGITS = 0.0005  # how far digits beyond single precision may move a mean without a word
LITTLE_JUDGED, TOP = 0.2, 10  # the share of the first ranks below which little is judged
STARS = 4  # the highest grade from which on a scale without a 0 looks like stars
LEVELS, HIGHEST = 8, 20  # grades have at most so many levels, up to this
DISTINCT = 0.9  # the share of values within topics that differ from all others, if they are scores
ACCIDENT = log(1000)  # an order with a chance of less than 1 in so many is no accident
LOOKED_AT = 1 << 16  # bytes of a run whose scores are looked at first
FEW_RUNS, HEAVY = 20, 0.05  # where runs are more, only those are tried in which ties leave so much open
NAMED_RUNS = 3  # whose means ties move
LOOKED_UP = 1000  # returned ids that are looked for in the collection
STOPPING = (
    "no-common-topic",
    "no-judged-document",
    "no-document-of-collection",
)  # findings of documents of which none is known
RULES = {
    "document-descending": "by document id, descending",
    "document-ascending": "by document id, ascending",
    "input-order": "in the order given",
}


# saying so


def warn(findings: Iterable[Finding]) -> None:
    """Warn of each finding; those that stop a command come last, so that the others are heard."""
    for finding in sorted(findings, key=_stops):
        kind = UnjudgedWarning if _stops(finding) else DataWarning
        warnings.warn(kind(f"{finding.file}: {finding.message}"), stacklevel=_depth_of_caller())


def _stops(finding: Finding) -> bool:
    return finding.code in STOPPING and finding.count >= MANY


def _depth_of_caller() -> int:
    """How many calls above `warn` the code of the user is: the first outside this package."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("cranfield."):
        frame, depth = frame.f_back, depth + 1
    return depth


# swapped arguments


def looks_like_scores(qrels: Qrels, source: Any = None) -> bool:
    """Whether judgments look like a run's scores: fractions, numbers above any grade, or floats, hardly two alike.

    Real runs have ties: where fractions or high numbers have many levels, they need not differ. Whole numbers of more
    levels than grades have, all different within a topic, are ranks or counts.
    """
    grade = qrels.grade
    if bool((grade != np.floor(grade)).any()) or bool(grade.max(initial=0) > HIGHEST):
        return len(np.unique(grade)) > MANY or _distinct(qrels.topic, grade)
    several = np.ptp(grade) >= LEVELS and len(np.unique(grade)) > LEVELS
    return (several or _all_floats(source)) and _distinct(qrels.topic, grade)


def _all_floats(source: Any) -> bool:
    """Whether a mapping's first numbers are all floats, as scores are and grades seldom."""
    if not isinstance(source, Mapping):
        return False
    topics = [documents for documents in islice(source.values(), LOOKED_UP) if isinstance(documents, Mapping)]
    numbers = [number for documents in topics for number in islice(documents.values(), LEVELS)]
    return bool(numbers) and all(isinstance(number, float) for number in numbers)


def _distinct(topic: Ints, value: Floats) -> bool:
    """Whether topics have several values, nearly all of them different."""
    several = np.bincount(topic)[topic] > 1
    pairs = np.stack([topic[several], value[several]], axis=1)
    return bool(several.any()) and len(np.unique(pairs, axis=0)) >= DISTINCT * len(pairs)


def looks_like_grades(run: Run) -> bool:
    """Whether a run's scores look like grades: few levels, all whole and small, with a 0, with ties, or all the same."""
    value, topic = run.table.value, run.table.topic
    if not len(value) or value.min() < -LEVELS or value.max() > HIGHEST or (value != np.floor(value)).any():
        return False
    levels = np.unique(value)
    tied = len(np.unique(np.stack([topic, value], axis=1), axis=0)) < len(value)
    return len(levels) <= LEVELS and (tied or len(levels) == 1 or 0 in levels)


def swapped(run: Run, qrels: Qrels) -> Finding:
    """Say that judgments look like scores and a run like grades."""
    from cranfield.findings import Finding

    grade, score = qrels.grade, run.table.value
    what = f"judged from {grade.min():g} to {grade.max():g}; scores are whole numbers from {score.min():g} to {score.max():g}"
    return Finding.of("swapped-arguments", f"{qrels.name}, {run.name}", what, len(grade))


# scores that are upside down


def rise_only(same: Mask, score: Floats) -> bool:
    """Whether scores rise from line to line of each topic and never fall; `same` marks lines of the topic above."""
    above, below = score[:-1][same], score[1:][same]
    return len(above) > 1 and bool((below >= above).all()) and bool((below > above).any())


def upside_down(run: Run, hits: Hits) -> Iterator[Finding]:
    """A run whose scores rise down its lines, and whose relevant documents stand higher from the other end."""
    if _falls_at_once(run):
        return
    for look in (_first_rows, _all_rows):  # one fall among the first lines will do
        topic, score = look(run)
        same = topic[1:] == topic[:-1]
        if not rise_only(same, score):
            return
    rises = np.bincount(topic[1:][same & (score[1:] > score[:-1])], minlength=int(topic.max()) + 1)
    relevant = hits.relevant(1)
    both = [float((1 / np.log2(rank + 1.0)).sum()) for rank in (relevant.rank, _from_the_end(relevant))]
    if sum(lgamma(number + 2) for number in rises.tolist()) < ACCIDENT or both[1] <= both[0]:
        return
    from cranfield.findings import Finding

    topics = int(np.count_nonzero(rises))
    as_read, turned = (total / max(topics, 1) for total in both)
    what = f"{topics:,} topics; binary DCG is {as_read:.4f}, and {turned:.4f} from the other end"
    yield Finding.of("scores-reversed", run.name, what, topics)


def _from_the_end(hits: Hits) -> Ints:
    """The ranks of hits counted from the end of their topics' lists."""
    ranks: Ints = hits.retrieved[hits.topic] + 1 - hits.rank
    return ranks


def _falls_at_once(run: Run) -> bool:
    """Whether scores fall among the first documents of a mapping's first topic, as in most runs."""
    documents = {} if isinstance(run.source, (Text, Table)) else next(iter(run.source.values()), {})
    scores = list(map(float, islice(documents.values(), TOP)))
    return any(below < above for above, below in pairwise(scores))


def _first_rows(run: Run) -> tuple[Ints, Floats]:
    """Topic and score of the first lines of a run, by topic; of so many bytes, or of a mapping's first topics."""
    source = run.source
    if isinstance(source, Text):
        start = bytes(source.buffer[:LOOKED_AT])
        table = parse(start[: start.rfind(b"\n") + 1] or start, source.layout, lenient=True)
    elif isinstance(source, Table):
        table = source
    else:
        topics = islice(source.values(), TOP)
        several = [np.fromiter(map(float, islice(each.values(), LOOKED_UP)), np.float64) for each in topics]
        numbers = np.repeat(np.arange(len(several), dtype=np.int32), list(map(len, several)))
        return numbers, np.concatenate([*several, np.zeros(0)])
    return _by_topic(table.topic[:LOOKED_AT], table.value[:LOOKED_AT])


def _all_rows(run: Run) -> tuple[Ints, Floats]:
    return _by_topic(run.table.topic, run.table.value)


def _by_topic(topic: Ints, score: Floats) -> tuple[Ints, Floats]:
    if (topic[1:] < topic[:-1]).any():
        order = np.argsort(topic, kind="stable")
        topic, score = topic[order], score[order]
    return topic, score


# ids and topics


class Meeting(NamedTuple):
    """How a run and judgments meet, in numbers."""

    returned: int  # documents for judged topics
    known: int  # those of them that the judgments name
    knowable: int  # how many of these could have been returned
    topics: int  # judged
    answered: int  # of the judged ones
    others: int  # answered and not judged

    @classmethod
    def of(cls, found: Found, judgments: Judgments) -> Meeting:
        """Of what a kernel found of the judgments in a run."""
        judged = judgments.once("judged", lambda: np.bincount(judgments.topic, minlength=judgments.size))
        returned, answered = int(found.retrieved.sum()), int(np.count_nonzero(found.retrieved))
        knowable = int(np.minimum(judged, found.retrieved).sum())
        return cls(returned, len(found.topic), knowable, judgments.size, answered, len(found.others))

    @property
    def ids_apart(self) -> bool:
        """Whether none or hardly any of the returned ids are judged."""
        return self.returned > 0 and self.known < max(1, FEW * self.knowable)

    @property
    def topics_apart(self) -> bool:
        """Whether none or few of the topics match."""
        return self.answered < FEW_TOPICS * min(self.topics, self.answered + self.others)


def misfits(run: Run, qrels: Qrels, met: Meeting) -> Iterator[Finding]:
    """What is wrong with ids and topics; nothing where they match."""
    if met.topics_apart:
        yield _topics_apart(run, qrels, met)
    if met.ids_apart:
        yield _ids_apart(run, qrels, met)


def _topics_apart(run: Run, qrels: Qrels, met: Meeting) -> Finding:
    from cranfield.findings import Finding, some

    judged = set(qrels.topics)
    others = [topic for topic in run.topics if topic not in judged]
    answered = set(run.topics)
    missing = [topic for topic in qrels.topics if topic not in answered]
    what = f"it answers {some(others, 3)}; judged are {some(missing, 3)}{would_match(others, missing)}"
    if not met.answered:
        return Finding.of("no-common-topic", run.name, what, len(run))
    both = f"{met.answered:,} of {met.answered + met.others:,} answered and {met.topics:,} judged"
    return Finding.of("few-common-topics", run.name, f"{both}; {what}", met.answered)


def would_match(answered: Sequence[str], judged: Sequence[str]) -> str:
    """Say what would make the topics of both sides match, if something simple would."""
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


def _ids_apart(run: Run, qrels: Qrels, met: Meeting) -> Finding:
    from cranfield.findings import Finding, some

    ids = some([decode(run.table.documents[i]) for i in range(min(4, len(run)))], 3)
    judged = some([decode(qrels.documents[i]) for i in range(min(4, len(qrels)))], 3)
    what = f"it returns {ids}; judged are {judged}"
    there = _in_collection(run, qrels)
    if there is not None:
        what += f"; of the first {there[1]:,} ids that it returns the collection has {there[0]:,}"
    if not met.known and not (there and there[0]):
        return Finding.of("no-judged-document", run.name, what, met.returned)
    few = f"{met.known:,} of {met.returned:,}, where {met.knowable:,} could be"
    return Finding.of("few-judged-documents", run.name, f"{few}; {what}", met.returned - met.known)


def strangers(run: Run, qrels: Qrels) -> Iterator[Finding]:
    """What is wrong with the ids of a run that was made for a collection, given the judgments of that."""
    if len(qrels):
        met = Meeting.of(run.hits(qrels.index, Order()), Judgments.of(qrels))
        if met.returned:
            yield from [_ids_apart(run, qrels, met)] if met.ids_apart else []
            return
    there = _in_collection(run, qrels)
    if there is None or there[0] >= FEW * there[1]:
        return
    from cranfield.findings import Finding, some

    ids = some([decode(run.table.documents[i]) for i in range(min(4, len(run)))], 3)
    has = next(iter(qrels.corpus())).id if qrels.corpus is not None else ""
    what = f"{there[0]:,} of the first {there[1]:,} ids; it returns {ids}; the collection has {has!r} …"
    code = "few-documents-of-collection" if there[0] else "no-document-of-collection"
    yield Finding.of(code, run.name, what, len(run) - there[0])


def _in_collection(run: Run, qrels: Qrels) -> tuple[int, int] | None:
    """How many of the first ids that a run returns are those of documents of the collection, if that is known."""
    if qrels.corpus is None:
        return None
    first = {decode(run.table.documents[i]) for i in range(min(LOOKED_UP, len(run)))}
    left = set(first)
    for document in qrels.corpus():
        left.discard(document.id)
        if not left:
            break
    return len(first) - len(left), len(first)


# few judged documents


def little_judged(run: Run, hits: Hits, topics: Mask, rel: float = 1) -> Iterator[Finding]:
    """A run of whose first ranks little is judged; nothing where the judgments name relevant documents only."""
    if hits.judgments.only_relevant(rel):
        return
    top = hits.top(TOP)
    answered = topics & (top.retrieved > 0)
    shares = top.judged().count()[answered] / top.retrieved[answered]
    if not len(shares) or shares.mean() >= LITTLE_JUDGED:
        return
    from cranfield.findings import Finding

    share = f"{shares.mean():.1%} of the first {TOP}, on average over {len(shares):,} topics"
    yield Finding.of("little-judged", run.name, share, len(shares))


# grades


def without_zero(grades: Floats, where: str) -> Iterator[Finding]:
    """Grades from 1 to 4 or more without a 0, as stars are."""
    grade = grades[grades >= 0]
    if not len(grade) or grade.min() != 1 or grade.max() < STARS:
        return
    from cranfield.columns import counted
    from cranfield.findings import Finding

    what = f"{counted(len(grade), 'judgment')} from 1 to {grade.max():g}"
    yield Finding.of("grades-without-zero", where, what, len(grade))


def beyond_scale(measures: Mapping[str, Measure], highest: float, where: str) -> Iterator[Finding]:
    """Measures whose scale ends below the highest grade that was given."""
    for name, measure in measures.items():
        words = measure.beyond(highest)
        if words:
            from cranfield.findings import Finding

            yield Finding.of("grades-beyond-scale", where, f"{name}: {words}")


# ties


def swing(measures: Iterable[Measure | None], hits: Hits, values: Floats, runs: int) -> Floats | None:
    """How far the order of ties can lower and raise each value: 2 × measures × topics; None where nothing is open.

    The measures are computed anew, which for one of many `runs` costs too much unless its ties leave much open.

    Both ends are attained: by relevant documents as late in their ties as can be, or as early. None stands for a measure
    that is not looked at.
    """
    loose = Loose.of(hits)
    if not len(loose.topic) or (runs > FEW_RUNS and loose.weight(hits.size) <= HEAVY):
        return None
    answer = np.zeros((2, *values.shape))
    views: dict[float, _Open] = {}
    deepest = hits.retrieved.max(initial=0)
    for i, measure in enumerate(measures):
        if measure is None or not _is_mean(measure):
            continue
        depth = float(measure.values.get("k") or np.inf) if measure.at == "k" else np.inf
        depth = depth if depth < deepest else np.inf
        if depth not in views:
            views[depth] = _Open(hits, loose.topics(hits.size, depth), depth)
        at = views[depth].topics
        if not at.any():
            continue
        try:
            both = views[depth].ends(measure, values[i])
        except TypeError:  # hits that were moved do not come from a run, which few measures ask for
            continue
        moved = np.nan_to_num(both - values[i, at])
        answer[0, i, at] = np.minimum(moved.min(axis=0), 0)
        answer[1, i, at] = np.maximum(moved.max(axis=0), 0)
    return answer if answer.any() else None


class _Open:
    """The topics whose ties are open down to a depth, with each tie in its worst and in its best order.

    Most measures see relevant documents only, which are few: one that gives the same value without the others is asked
    about these alone.
    """

    def __init__(self, hits: Hits, topics: Mask, depth: float) -> None:
        self.topics, self.hits = topics, hits
        self.mask = topics[hits.topic] & (hits.tied_from <= depth)

    @cached_property
    def part(self) -> Hits:
        return self.hits.where(self.mask)

    @cached_property
    def relevant(self) -> Hits:
        return self.hits.where(self.mask & (self.hits.grade > 0))

    @cached_property
    def orders_of_relevant(self) -> tuple[Hits, Hits]:
        return tied(self.relevant, best=False), tied(self.relevant, best=True)

    @cached_property
    def orders(self) -> tuple[Hits, Hits]:
        return tied(self.part, best=False), tied(self.part, best=True)

    def ends(self, measure: Measure, now: Floats) -> Floats:
        """The values of a measure in both orders, 2 × open topics; `now` are its values."""
        alike = np.array_equal(measure(self.relevant)[self.topics], now[self.topics])
        orders = self.orders_of_relevant if alike else self.orders
        return np.stack([measure(order)[self.topics] for order in orders])


def _is_mean(measure: Measure) -> bool:
    return measure.aggregate == "mean" and takes_topics_alone(measure)


def ties_that_decide(scores: Scores, swings: Sequence[Floats | None], asked: Iterable[str]) -> Iterator[Finding]:
    """Means that the order of ties can move far, and runs that it can swap; `swings` are those of the runs."""
    rule = RULES.get(scores.conventions.ties)
    wanted = [m for m, name in enumerate(scores.measures) if name in set(asked) and name not in scores.pooled]
    if rule is None or not wanted or all(each is None for each in swings):
        return
    there = scores.counted[:, None, :] & ~np.isnan(scores.values)
    number = np.maximum(there.sum(axis=2), 1)
    nothing = np.zeros((2, *scores.values.shape[1:]))
    moved = np.stack([nothing if each is None else each for each in swings], axis=1)
    low, high = scores.summary + (moved * there).sum(axis=3) / number
    yield from _moved(scores, moved, low, high, wanted, rule)
    yield from _swapped(scores, low, high, wanted, rule)


def _moved(scores: Scores, moved: Floats, low: Floats, high: Floats, wanted: list[int], rule: str) -> Iterator[Finding]:
    width = high - low
    far = [r for r in range(len(scores.runs)) if width[r, wanted].max() > MOVED]
    far.sort(key=lambda r: -float(width[r, wanted].max()))
    if not far:
        return
    from cranfield.findings import Finding

    names = list(scores.measures)
    most = [wanted[int(np.argmax(width[r, wanted]))] for r in far]  # the measure that moves most
    r, m = far[0], most[0]
    span = moved[1, r, m] - moved[0, r, m]
    what = in_words(names[m], float(low[r, m]), float(scores.summary[r, m]), float(high[r, m]), rule, span)
    named = [scores.runs[r] for r in far[:NAMED_RUNS]]
    for r, m in zip(far[1:NAMED_RUNS], most[1:], strict=False):
        what += f"; {names[m]} of {scores.runs[r]} between {low[r, m]:.4f} and {high[r, m]:.4f}"
    if len(far) > NAMED_RUNS:
        what += f"; and so {len(far) - NAMED_RUNS:,} more"
    yield Finding.of("tie-order", ", ".join(named), what, int(np.count_nonzero(span)))


def in_words(name: str, low: float, now: float, high: float, rule: str, span: Floats) -> str:
    """From where to where ties can move a mean; `span` is by how much they can move each topic."""
    from cranfield.columns import counted

    topics = int((span > 1e-12).sum())
    return (
        f"mean {name} lies between {low:.4f} and {high:.4f} ({now:.4f} with ties {rule}; {counted(topics, 'topic')} of "
        f"{len(span):,})"
    )


def _swapped(scores: Scores, low: Floats, high: Floats, wanted: list[int], rule: str) -> Iterator[Finding]:
    """The runs whose order ties decide, by what is printed of their means."""
    pairs: list[tuple[float, int, int, int]] = []
    for m in wanted:
        with np.errstate(over="ignore"):  # of means near the largest number
            now = np.round(scores.summary[:, m], 4)
        ahead = now[:, None] > now[None, :]
        overlap = high[None, :, m] - low[:, None, m]  # of the lower run at its best over the higher one at its worst
        for i, j in np.argwhere(ahead & (overlap > 1e-12)).tolist():
            pairs.append((float(overlap[i, j]), m, i, j))
    if not pairs:
        return
    from cranfield.columns import counted
    from cranfield.findings import Finding

    _, m, i, j = max(pairs, key=lambda pair: pair[0])

    def placed(r: int) -> str:
        span = f" (from {low[r, m]:.4f} to {high[r, m]:.4f})" if high[r, m] > low[r, m] else ""
        return f"{scores.summary[r, m]:.4f}{span}"

    name, rest = list(scores.measures)[m], len(pairs) - 1
    more = f", and {counted(rest, 'pair')} more by a measure" if rest else ""
    what = f"{placed(i)} and {placed(j)} by {name}, with ties {rule}{more}"
    yield Finding.of("tie-swap", f"{scores.runs[i]}, {scores.runs[j]}", what, len(pairs))


# digits beyond single precision


def in_single(found: Found) -> Found | None:
    """Hits where scores equal as 32-bit floats tie, of the topics in which that moves a hit; None where it moves none."""
    if not len(found.single):
        return None
    topic, row, rank, first, last = found.single.T
    concerned = np.zeros(len(found.retrieved), np.bool_)
    concerned[topic] = True
    part = np.flatnonzero(concerned[found.topic])
    by_row = part[np.argsort(found.row[part])]
    place = by_row[np.searchsorted(found.row[by_row], row)]
    if (found.rank[place] == rank).all():
        return None
    columns = {name: getattr(found, name).copy() for name in ("rank", "first", "last")}
    for name, values in (("rank", rank), ("first", first), ("last", last)):
        columns[name][place] = values
    part = part[np.lexsort((columns["rank"][part], found.topic[part]))]
    columns = {name: column[part] for name, column in columns.items()}
    return replace(found, topic=found.topic[part], row=found.row[part], **columns)


def moved_by_single(measures: Iterable[Measure | None], hits: Hits, values: Floats) -> Floats:
    """By how much single precision moves each value, measures × topics; `hits` are those of the topics that it moves.

    None stands for a measure that is not looked at.
    """
    moved = np.zeros(values.shape)
    topics = np.unique(hits.topic)
    for i, measure in enumerate(measures):
        if measure is not None and _is_mean(measure):
            moved[i, topics] = np.nan_to_num(measure(hits)[topics] - values[i, topics])
    return moved


def digits_that_decide(scores: Scores, moves: Sequence[Floats | None], asked: Iterable[str]) -> Iterator[Finding]:
    """Means that single precision would move; `moves` are those of the runs."""
    wanted = [m for m, name in enumerate(scores.measures) if name in set(asked) and name not in scores.pooled]
    changes = []
    for r, moved in enumerate(moves):
        if moved is None or not wanted:
            continue
        there = scores.counted[r] & ~np.isnan(scores.values[r])
        change = (moved * there).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        m = max(wanted, key=lambda m: abs(float(change[m])))
        if abs(change[m]) >= DIGITS:
            changes.append((float(change[m]), r, m, int(np.count_nonzero(moved[m]))))
    if not changes:
        return
    from cranfield.columns import counted
    from cranfield.findings import Finding

    changes.sort(key=lambda each: -abs(each[0]))
    names, said = list(scores.measures), []
    for change, r, m, topics in changes[:NAMED_RUNS]:
        now = float(scores.summary[r, m])
        whose = f" of {scores.runs[r]}" if len(changes) > 1 else ""
        other = round(now + change, 4) + 0.0  # no -0.0000
        said.append(f"mean {names[m]}{whose} {now:.4f}, else {other:.4f} ({counted(topics, 'topic')})")
    said += [f"and so {len(changes) - NAMED_RUNS:,} more"] if len(changes) > NAMED_RUNS else []
    runs = ", ".join(scores.runs[r] for _, r, _, _ in changes[:NAMED_RUNS])
    yield Finding.of("beyond-single-precision", runs, "; ".join(said), len(changes))
