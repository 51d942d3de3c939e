"""Runs → pool: which documents assessors judge, in which order, and who judges them; pool and labels → qrels.

A pool is the beginning of a judging session: without labels the strategy's first documents, with a file of labels the
next batch. The file is shuffled by default, so that its order does not influence assessors.

The labels are the whole state of a session. A resumed session replays its pickers with the labels of the file, so it
continues where it stopped and stores nothing but the labels and the seed.
"""

from __future__ import annotations

import fnmatch
import gc
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import Order, encode
from cranfield.base.parameters import refuse_below
from cranfield.base.qrels import Extras, Qrels
from cranfield.base.results import Answer, Table, plain
from cranfield.formats import as_runs, write_qrels
from cranfield.formats.label_files import latest
from cranfield.formats.pool_files import PoolItem, SheetTexts, pool_lines, sheet_lines
from cranfield.pooling.strategy import STRATEGIES, Picker, Rankings, rankings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.collection import Collection
    from cranfield.base.results import Layout, Part
    from cranfield.formats.label_files import Judgment
    from cranfield.pooling.strategy import Candidates, Strategy


Labels = dict[str, dict[str, float]]


@dataclass
class _Desk:
    """The state of one topic: its picker, and its documents that are picked, leased or labelled."""

    picker: Picker
    leased: int = 0
    waiting: list[int] = field(default_factory=list)  # picked, leased next
    out: set[int] = field(default_factory=set)  # leased, no label yet
    turn: dict[int, int] = field(default_factory=dict)  # the order of the first lease


class Session:
    """Leases documents to assessors, with one strategy over all topics.

    >>> from cranfield import Run
    >>> from cranfield.pooling.strategy import rankings
    >>> session = Session(rankings([Run({"q": {"a": 3, "b": 2}}, "one"), Run({"q": {"c": 9}}, "two")]), "depth")
    >>> [item.document for item in session.take(2)]
    ['a', 'c']
    >>> session.judge("q", "a", 1)
    >>> session.judged, session.relevant, session.left
    (1, 1, 1)
    """

    def __init__(
        self,
        rankings: Rankings,
        strategy: str | Strategy = "move-to-front",
        *,
        seed: int = 0,
        rel: float = 1,
        judged: Mapping[str, Mapping[str, float]] | None = None,
        labels: Iterable[Judgment] = (),
        budget: int | None = None,
        tiers: Sequence[int] = (),
        texts: Any = None,
    ) -> None:
        refuse_below(0, seed=seed)
        self.rankings = rankings
        self.strategy = STRATEGIES.named(strategy)
        self.seed = seed
        self.rel = rel
        self.labels: Labels = latest(labels)
        self.budget = budget
        self._desks: dict[str, _Desk] = {}
        for topic, candidates in rankings.candidates.items():
            rng = np.random.default_rng([seed, zlib.crc32(encode(topic))])
            if len(set(tiers)) < 2:
                picker = self.strategy.start(candidates, rng, texts)
            else:
                picker = Tiered(self.strategy, candidates, rng, tiers, texts)
            desk = self._desks[topic] = _Desk(picker)
            self._prepare(desk, (judged or {}).get(topic, {}), self.labels.get(topic, {}))

    def _prepare(self, desk: _Desk, before: Mapping[str, float], labels: Mapping[str, float]) -> None:
        """Pass labels to a picker: earlier ones at once, the session's own in reply to its picks."""
        picker, candidates = desk.picker, desk.picker.candidates
        for document, grade in before.items():
            if grade >= 0 and document in candidates.number and document not in labels:
                picker.know(candidates.number[document], grade >= self.rel)
        replayed: set[int] = set()
        while picker.replays and len(replayed) < len(labels) and (number := picker.pick()) is not None:
            label = labels.get(candidates.documents[number])
            if label is None:
                desk.waiting.append(number)
                break
            picker.tell(number, label >= self.rel)
            replayed.add(number)
        for document, grade in labels.items():  # labels in another order, or from elsewhere
            number = candidates.number.get(document)
            if number is not None and number not in replayed:
                picker.know(number, grade >= self.rel)
                if number in desk.waiting:
                    desk.waiting.remove(number)

    @property
    def judged(self) -> int:
        """The number of labels of the session."""
        return sum(map(len, self.labels.values()))

    @property
    def relevant(self) -> int:
        """The number of labels that say relevant."""
        return sum(grade >= self.rel for grades in self.labels.values() for grade in grades.values())

    @property
    def left(self) -> int:
        """The number of documents that can still be leased; leased documents without a label do not count."""
        return self._allowed(sum(desk.picker.rest + len(desk.waiting) for desk in self._desks.values()))

    def _allowed(self, n: int) -> int:
        """n, or as many as the budget still allows."""
        return n if self.budget is None else min(n, max(0, self.budget - self.judged - self.outstanding))

    @property
    def outstanding(self) -> int:
        """The number of leased documents without a label."""
        return sum(len(desk.out) for desk in self._desks.values())

    def next(self, topic: str | None = None) -> PoolItem | None:
        """Lease the next document of a topic, by default of the topic with the fewest leases; None if none is left."""
        topics = [topic] if topic is not None else sorted(self._desks, key=lambda name: self._desks[name].leased)
        return next((item for name in topics for item in self.take(1, name)), None)

    def take(self, n: int, topic: str | None = None) -> list[PoolItem]:
        """Lease up to n documents of one topic or of all topics, without waiting for labels in between."""
        if topic is None:
            return list(islice(iter(self.next, None), max(n, 0)))
        candidates, desk, n = self.rankings[topic], self._desks[topic], self._allowed(n)
        numbers, desk.waiting = desk.waiting[:n], desk.waiting[n:]
        numbers += desk.picker.pick_many(n - len(numbers))
        items = candidates.items(numbers, count(desk.leased + 1))
        desk.leased += len(numbers)
        desk.out.update(numbers)
        for number in numbers:
            desk.turn.setdefault(number, len(desk.turn))
        return items

    def give_back(self, topic: str, document: str) -> None:
        """Return a leased document without a label: it is leased again before any new one.

        The strategy is not informed and continues as if the document had not been leased.
        """
        desk, number = self._desks.get(topic), self.rankings[topic].number.get(document)
        if desk is None or number not in desk.out:
            raise DataError(f"topic {topic!r}: {document!r} is not with an assessor, so it cannot be given back")
        desk.out.remove(number)
        desk.leased -= 1
        desk.waiting.append(number)
        desk.waiting.sort(key=lambda each: desk.turn.get(each, len(desk.turn)))

    def judge(self, topic: str, document: str, grade: float) -> None:
        """Submit a label. The document must be a candidate but need not be leased."""
        number = self.rankings[topic].number.get(document)
        if number is None:
            raise DataError(f"topic {topic!r}: no run returned {document!r} within its depth")
        desk = self._desks[topic]
        desk.out.discard(number)
        again = document in self.labels.get(topic, {})
        self.labels.setdefault(topic, {})[document] = grade
        if number in desk.waiting:
            desk.waiting.remove(number)
        if not again:  # a changed label does not undo the first one
            desk.picker.know(number, grade >= self.rel)


class Tiered(Picker):
    """One picker per tier of runs; the next tier starts when all documents of the one before were picked."""

    def __init__(
        self, strategy: Strategy, candidates: Candidates, rng: np.random.Generator, tiers: Sequence[int], texts: Any
    ) -> None:
        super().__init__(candidates)
        best = np.full(len(candidates), np.iinfo(np.int64).max)
        np.minimum.at(best, candidates.document, np.asarray(tiers, np.int64)[candidates.run])
        levels, self.part_of = np.unique(best, return_inverse=True)
        self.parts: list[tuple[np.ndarray[Any, Any], Picker]] = []
        self.place = np.zeros(len(candidates), np.int64)
        for part in range(len(levels)):
            mask = self.part_of == part
            self.parts.append((np.flatnonzero(mask), strategy.start(candidates.keep(mask), rng, texts)))
            self.place[mask] = np.arange(mask.sum())

    def choose(self) -> int:
        for numbers, picker in self.parts:
            for number in np.flatnonzero(self.picked[numbers] & ~picker.picked).tolist():
                picker.mark(number)
            document = picker.pick()
            if document is not None:
                return int(numbers[document])
        raise AssertionError("a document is left")

    def tell(self, document: int, relevant: bool) -> None:
        self.parts[int(self.part_of[document])][1].tell(int(self.place[document]), relevant)


ORDERS = ("shuffled", "priority", "document")


@dataclass(repr=False, eq=False)
class Pool(Answer):
    """Documents to judge. `items` are in the order in which assessors see them, topic by topic."""

    items: list[PoolItem]
    session: Session
    seed: int

    @property
    def rankings(self) -> Rankings:
        """The top-k of the runs that the pool is made from."""
        return self.session.rankings

    @property
    def topics(self) -> list[str]:
        """The topics with documents to judge."""
        return list(dict.fromkeys(map(itemgetter(0), self.items)))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[PoolItem]:
        return iter(self.items)

    def __getitem__(self, topic: str) -> list[str]:
        """The documents to judge for a topic, in order."""
        return [item.document for item in self.items if item.topic == topic]

    def notes(self, shell: bool = False) -> list[str]:
        """Sentences about how the pool was made, and about the labels so far."""
        session, tops = self.session, self.rankings
        to_judge = sum(item.priority > 0 for item in self.items) if session.strategy.samples else len(self)
        of = f" drawn of {len(self)}" if to_judge < len(self) else ""
        topics = f"{len(self.topics)} of {len(tops.topics)} topics"
        size = f"{to_judge} documents{of} for {topics} from {len(tops.runs)} runs"
        labels = f"labels so far: {session.judged}, {session.relevant} of them relevant"
        return [f"{size} by {session.strategy}; seed {self.seed}", *([labels] if session.judged else [])]

    def lines(self, queries: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The pool as JSON lines, with the queries if they are known."""
        return pool_lines(self.items, queries)

    def sheet(self, collection: Collection | None = None) -> Iterator[bytes]:
        """The pool as CSV for a spreadsheet: an empty column for grades, and the texts of topics and documents."""
        # documents that were sampled
        tasks = [(item.topic, item.document, item.assessor) for item in self.items if item.priority > 0]
        return sheet_lines(tasks, None if collection is None else self._texts(collection))

    def _texts(self, collection: Collection) -> SheetTexts:
        ids = {item.document for item in self.items}
        documents = {each.id: (each.title, each.text) for each in collection.documents() if each.id in ids}
        return SheetTexts({topic.id: topic.title for topic in collection.topics}, documents)

    def content(self, how: Layout) -> list[Part]:
        rows = [[topic, document, str(rank), ", ".join(runs)] for topic, document, rank, runs, *_ in self.items]
        head = ["topic", "document", "best rank", "returned by"]
        return [Table(head, rows, 2, tail=True, title="Documents to judge")]

    def records(self, how: Layout) -> list[list[Any]]:
        """A header and one row per item."""
        rows = ([*item[:3], " ".join(item.runs), *item[4:]] for item in self.items)
        return [list(PoolItem._fields), *rows]

    def plain(self, how: Layout) -> Any:
        """One object per item, as in the file."""
        return [plain(item._asdict(), how.digits) for item in self.items]

    def __repr__(self) -> str:
        return f"<Pool: {len(self)} documents for {len(self.topics)} topics by {self.session.strategy}>"


def session(
    runs: Any,
    *,
    depth: int = 100,
    depths: Mapping[str, int] | None = None,
    strategy: str | Strategy = "move-to-front",
    budget: int | None = None,
    topics: Iterable[str] | None = None,
    qrels: Mapping[str, Mapping[str, float]] | None = None,
    keep_judged: bool = False,
    labels: Iterable[Judgment] = (),
    rel: float = 1,
    priorities: Mapping[str, int] | None = None,
    teams: Mapping[str, str] | None = None,
    seed: int = 0,
    texts: Any = None,
    tie_rule: Order = Order(),  # noqa: B008
    progress: Callable[[int, int | None], None] | None = None,
) -> Session:
    """A judging session over the top-k of runs: get the `next` document, `judge` it, and so on.

    `budget` limits all labels. `labels` are the labels of this session so far; documents in `qrels` are not leased
    again unless `keep_judged`. `priorities` order runs or teams (1 is pooled first) by name or pattern; `teams` map
    runs, by name or pattern, to their team. `texts` are for strategies that read documents.

    >>> going = session({"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 9, "a": 1}}})
    >>> item = going.next()
    >>> going.judge(item.topic, item.document, 1)
    >>> going.judged, going.left
    (1, 2)
    """
    method = STRATEGIES.named(strategy)
    if budget is not None and budget < 1:
        raise ConventionError(f"budget must be 1 or more, got {budget}")
    if method.reads and texts is None:
        raise ConventionError(f"{method.name} reads documents: say where they are (texts, --collection FOLDER)")
    tops = runs if isinstance(runs, Rankings) else rankings(as_runs(runs), depth, depths, tie_rule, progress)
    if topics is not None:
        tops = replace(tops, candidates={topic: tops[topic] for topic in topics})
    return Session(
        tops,
        method,
        seed=seed,
        rel=rel,
        judged=None if keep_judged else qrels,
        labels=labels,
        budget=budget,
        tiers=tiers_of(tops.runs, priorities or {}, teams or {}),
        texts=texts,
    )


def pool(
    runs: Any,
    *,
    strategy: str | Strategy = "depth",
    cap: int | None = None,
    next: int | None = None,
    order: str | None = None,
    assessors: Sequence[str] = (),
    seed: int = 0,
    **options: Any,
) -> Pool:
    """Choose documents to judge from the top-k of runs; `options` are those of `session`.

    `cap` limits the documents per topic; a `budget` is spread evenly over topics; `next` is the size of the next batch
    per topic for strategies that adapt to `labels`. Whole topics are assigned to `assessors`, evenly.

    >>> made = pool({"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 9, "a": 1}}}, depth=1, order="priority")
    >>> made["q"]
    ['a', 'c']
    """
    method = STRATEGIES.named(strategy)
    if order is not None and order not in ORDERS:
        raise ConventionError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    _refuse(method, {"cap": cap, "next": next, "budget": options.get("budget")}, options)
    going = session(runs, strategy=method, seed=seed, **options)
    most = min(n for n in (cap, next, len(going.rankings) + 1) if n is not None)
    order = order or ("priority" if method.adaptive else "shuffled")
    with uncollected():
        by_topic = _documents_by_topic(going, most)
        items = [item for topic, part in by_topic.items() for item in _ordered(part, order, topic, seed)]
    return Pool(_assigned(items, assessors), going, seed)


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection while many small objects are made: collecting takes as long as making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # and back: this moves the objects to the oldest generation, which is rarely collected
        gc.unfreeze()
        if was:
            gc.enable()


def _refuse(method: Strategy, limits: Mapping[str, int | None], options: Mapping[str, Any]) -> None:
    """Raise ConventionError for limits below 1 and for options that do not fit the strategy."""
    for name, value in limits.items():
        if value is not None and value < 1:
            raise ConventionError(f"{name} must be 1 or more, got {value}")
    if method.adaptive and limits["next"] is None:
        raise ConventionError(
            f"{method.name} adapts to labels: say how many documents of a topic to hand out now (next, --next N), have "
            "them judged, and come back with the labels"
        )
    if not method.samples:
        return
    if any(value is not None for value in limits.values()):
        raise ConventionError(
            f"{method.name} sets the size of its sample itself; cap, next and budget would spoil the sample"
        )
    if (options.get("qrels") and not options.get("keep_judged")) or options.get("priorities"):
        raise ConventionError(
            f"{method.name} draws from the whole pool: leaving out judged documents (qrels without keep_judged) or putting "
            "runs first (priorities) would spoil the sample"
        )


def tiers_of(runs: Sequence[str], priorities: Mapping[str, int], teams: Mapping[str, str]) -> list[int]:
    """The tier of each run: 1 is pooled first, runs without a priority last. Patterns match runs or their teams.

    >>> tiers_of(["a1", "a2", "b1"], {"a*": 1}, {})
    [1, 1, 2]
    """

    def fits(pattern: str, run: str) -> bool:
        own = (team for team_pattern, team in teams.items() if fnmatch.fnmatchcase(run, team_pattern))
        return any(fnmatch.fnmatchcase(name, pattern) for name in (run, *own))

    fitting = {run: [pattern for pattern in priorities if fits(pattern, run)] for run in runs}
    for pattern in priorities:
        if not any(pattern in patterns for patterns in fitting.values()):
            raise DataError(f"priority for {pattern!r}: no run or team is called that; runs are {', '.join(runs)}")
    last = max(priorities.values(), default=0) + 1
    return [min((priorities[pattern] for pattern in fitting[run]), default=last) for run in runs]


def _documents_by_topic(session: Session, most: int) -> dict[str, list[PoolItem]]:
    """The documents of each topic: all, or an even share of the budget; unused shares go to the other topics."""
    topics = session.rankings.topics
    if session.budget is None:
        by_topic = {topic: session.take(most, topic) for topic in topics}
    else:
        by_topic = {topic: [] for topic in topics}
        open_topics = list(topics)
        while open_topics and session.left:
            for topic in list(open_topics):
                item = session.next(topic) if len(by_topic[topic]) < most else None
                if item is None:
                    open_topics.remove(topic)
                else:
                    by_topic[topic].append(item)
    return {topic: _with_chances(session, topic, items) for topic, items in by_topic.items() if items}


def _with_chances(session: Session, topic: str, items: list[PoolItem]) -> list[PoolItem]:
    candidates = session.rankings[topic]
    chances = session.strategy.chances(candidates, len(items))
    strata = session.strategy.strata_of(candidates)
    if (chances == 1).all() and strata is None:
        return items
    names = [""] * len(candidates) if strata is None else strata

    def with_chance(item: PoolItem) -> PoolItem:
        number = candidates.number[item.document]
        return item._replace(probability=float(chances[number]), stratum=names[number])

    rest: list[PoolItem] = []
    if session.strategy.samples:  # candidates that were not sampled, so that estimates know the whole pool
        sampled = {item.document for item in items}
        others = [i for i in np.flatnonzero(chances > 0).tolist() if candidates.documents[i] not in sampled]
        rest = candidates.items(others, repeat(0))
    return [with_chance(item) for item in (*items, *rest)]


def _ordered(items: list[PoolItem], order: str, topic: str, seed: int) -> list[PoolItem]:
    if order == "priority":
        return items
    if order == "document":
        return sorted(items, key=lambda item: item.document)
    rng = np.random.default_rng([seed, zlib.crc32(encode(topic)), 1])
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def _assigned(items: list[PoolItem], assessors: Sequence[str]) -> list[PoolItem]:
    """Assign whole topics to assessors: the largest remaining topic to the assessor with the fewest documents."""
    if not assessors:
        return items
    if len(set(assessors)) < len(assessors):
        raise ConventionError(f"assessors must have different names, got {', '.join(assessors)}")
    load = dict.fromkeys(assessors, 0)
    assessor: dict[str, str] = {}
    for topic, size in Counter(item.topic for item in items).most_common():
        assessor[topic] = min(load, key=load.__getitem__)
        load[assessor[topic]] += size
    return [item._replace(assessor=assessor[item.topic]) for item in items]


# qrels from labels


@dataclass(frozen=True)
class Collected:
    """Qrels made from labels; `missing` is the number of pooled documents without a label."""

    qrels: Qrels
    labels: int
    missing: int
    sampled: bool
    strange: tuple[tuple[str, str], ...] = ()  # labelled documents that are not in the pool


def collect(pool: Sequence[PoolItem], labels: Iterable[Judgment]) -> Collected:
    """The labels as qrels. Documents of a sampled pool that were not sampled get grade -1, for infAP and xinfAP."""
    current = latest(labels)
    if not any(current.values()):
        raise DataError("no label yet, so there are no qrels to write")
    grades = {topic: dict(judged) for topic, judged in current.items()}
    probabilities: dict[tuple[str, str], tuple[float, str]] = {}
    sampled = any(item.priority == 0 for item in pool)
    missing = 0
    for item in pool:
        judged = grades.setdefault(item.topic, {})
        probabilities[item.topic, item.document] = item.probability, item.stratum
        if item.document not in judged:
            missing += item.priority > 0
            if sampled:
                judged[item.document] = -1.0
    qrels = Qrels({topic: judged for topic, judged in grades.items() if judged})
    if sampled:
        qrels.extras = Extras(probabilities=probabilities)
    labelled = ((topic, document) for topic, judged in current.items() for document in judged)
    strange = tuple(key for key in labelled if key not in probabilities)
    return Collected(qrels, sum(map(len, current.values())), missing, sampled, strange)


def write_collected(collected: Collected, path: str, format: str | None = None) -> None:
    """Write the qrels. `prels` (for statAP) contain only the sample; `strata` (for xinfAP) the whole pool."""
    qrels = collected.qrels
    if format == "prels":
        if collected.missing:
            raise DataError(
                f"{collected.missing} documents of the sample have no label: statAP needs all of them, as the "
                "probabilities are those of the whole sample (strata, for xinfAP, count what was judged)"
            )
        sampled = {
            topic: {document: grade for document, grade in grades.items() if grade >= 0}
            for topic, grades in qrels.to_dict().items()
        }
        probabilities = qrels.extras.probabilities or {}
        # sampled, or with probability 1
        methods = {key: (chance, "1" if chance < 1 else "0") for key, (chance, _) in probabilities.items()}
        qrels = Qrels({topic: grades for topic, grades in sampled.items() if grades})
        qrels.extras = Extras(probabilities=methods)
    write_qrels(qrels, path, format)
