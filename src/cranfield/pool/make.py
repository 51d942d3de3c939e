"""Runs → pool: the documents that go before assessors, in which order, and before whom; pool and labels → qrels.

A pool is a session cut off: without labels it takes what the strategy names first, with a file of labels the next
batch. The order in the file is shuffled unless asked otherwise, so that rank tells an assessor nothing.
"""

from __future__ import annotations

import fnmatch
import gc
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.answer import Answer, Table, plain
from cranfield.collection import Extras, Qrels
from cranfield.errors import ConventionError, DataError
from cranfield.formats import as_runs, write_qrels
from cranfield.formats.judgments import latest
from cranfield.formats.pools import Item, pool_lines
from cranfield.formats.sheets import Texts, sheet_lines
from cranfield.kernels import Order, encode
from cranfield.pool.rankings import Rankings, rankings
from cranfield.pool.session import Session
from cranfield.pool.strategy import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.answer import Layout, Part
    from cranfield.collection import Collection
    from cranfield.formats.judgments import Judgment
    from cranfield.pool.strategy import Strategy


ORDERS = ("shuffled", "priority", "document")


@dataclass(repr=False, eq=False)
class Pool(Answer):
    """Documents to judge. `items` come in the order in which assessors are to see them, topic by topic."""

    items: list[Item]
    session: Session
    seed: int

    @property
    def rankings(self) -> Rankings:
        """The tops of the runs that the pool is made of."""
        return self.session.rankings

    @property
    def topics(self) -> list[str]:
        """The topics with something to judge."""
        return list(dict.fromkeys(map(itemgetter(0), self.items)))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __getitem__(self, topic: str) -> list[str]:
        """The documents to judge for a topic, in order."""
        return [item.document for item in self.items if item.topic == topic]

    def notes(self, shell: bool = False) -> list[str]:
        """How it came about, a sentence each."""
        session, tops = self.session, self.rankings
        drawn = sum(item.priority > 0 for item in self.items) if session.strategy.samples else len(self)
        of = f" drawn of {len(self)}" if drawn < len(self) else ""
        size = f"{drawn} documents{of} for {len(self.topics)} of {len(tops.topics)} topics from {len(tops.runs)} runs"
        labels = f"labels so far: {session.judged}, {session.relevant} of them relevant"
        return [f"{size} by {session.strategy}; seed {self.seed}", *([labels] if session.judged else [])]

    def lines(self, queries: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The pool as JSON lines, with what each topic asks where that is known."""
        return pool_lines(self.items, queries)

    def sheet(self, collection: Collection | None = None) -> Iterator[bytes]:
        """The pool as CSV for a spreadsheet: an empty column for grades, and what a collection's topics and documents say."""
        asked = [
            (item.topic, item.document, item.assessor) for item in self.items if item.priority > 0
        ]  # that were drawn
        return sheet_lines(asked, None if collection is None else self._texts(collection))

    def _texts(self, collection: Collection) -> Texts:
        wanted = {item.document for item in self.items}
        documents = {each.id: (each.title, each.text) for each in collection.documents() if each.id in wanted}
        return Texts({topic.id: topic.title for topic in collection.topics}, documents)

    def content(self, how: Layout) -> list[Part]:
        rows = [[topic, document, str(rank), ", ".join(runs)] for topic, document, rank, runs, *_ in self.items]
        return [
            Table(["topic", "document", "best rank", "returned by"], rows, 2, tail=True, title="Documents to judge")
        ]

    def records(self, how: Layout) -> list[list[Any]]:
        """A header and a row an item, all that is known of it."""
        rows = ([*item[:3], " ".join(item.runs), *item[4:]] for item in self.items)
        return [list(Item._fields), *rows]

    def plain(self, how: Layout) -> Any:
        """An object an item, as in the file."""
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
    """A judging session over the tops of runs: ask it for the `next` document, tell it how that was judged.

    `budget` is the most labels in all. `labels` are those of this session so far; `qrels` were there before, and their
    documents are not asked for again unless `keep_judged`. `priorities` order runs or teams (1 is pooled first), by name
    or pattern; `teams` map runs, by name or pattern, to who sent them in. `texts` are for strategies that read.

    >>> going = session({"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 9, "a": 1}}})
    >>> item = going.next()
    >>> going.judge(item.topic, item.document, 1)
    >>> going.judged, going.left
    (1, 2)
    """
    chosen = STRATEGIES.named(strategy)
    if budget is not None and budget < 1:
        raise ConventionError(f"budget must be 1 or more, got {budget}")
    if chosen.reads and texts is None:
        raise ConventionError(f"{chosen.name} reads documents: say where they are (texts, --collection FOLDER)")
    tops = runs if isinstance(runs, Rankings) else rankings(as_runs(runs), depth, depths, tie_rule, progress)
    if topics is not None:
        tops = replace(tops, candidates={topic: tops[topic] for topic in topics})
    return Session(
        tops,
        chosen,
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
    """Choose what to judge from the tops of runs; `options` are those of `session`.

    `cap` is the most documents a topic; a `budget` is spread evenly over topics; `next` is the size of the next batch of a
    topic for strategies that adapt to `labels`. Whole topics go to `assessors`, evenly.

    >>> made = pool({"one": {"q": {"a": 3, "b": 2}}, "two": {"q": {"c": 9, "a": 1}}}, depth=1, order="priority")
    >>> made["q"]
    ['a', 'c']
    """
    chosen = STRATEGIES.named(strategy)
    if order is not None and order not in ORDERS:
        raise ConventionError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    _refuse(chosen, {"cap": cap, "next": next, "budget": options.get("budget")}, options)
    going = session(runs, strategy=chosen, seed=seed, **options)
    most = min(n for n in (cap, next, len(going.rankings) + 1) if n is not None)
    order = order or ("priority" if chosen.adaptive else "shuffled")
    with uncollected():
        taken = _taken(going, most)
        items = [item for topic, part in taken.items() for item in _ordered(part, order, topic, seed)]
    return Pool(_assigned(items, assessors), going, seed)


@contextmanager
def uncollected() -> Iterator[None]:
    """Make many small things that all stay: looking for cycles among them takes as long as making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # and back: they are old now, and the next look at what is new passes them over
        gc.unfreeze()
        if was:
            gc.enable()


def _refuse(chosen: Strategy, limits: Mapping[str, int | None], options: Mapping[str, Any]) -> None:
    """Refuse limits that are none, and whatever would spoil what a strategy promises."""
    for name, value in limits.items():
        if value is not None and value < 1:
            raise ConventionError(f"{name} must be 1 or more, got {value}")
    if chosen.adaptive and limits["next"] is None:
        raise ConventionError(
            f"{chosen.name} adapts to labels: say how many documents of a topic to hand out now (next, --next N), have "
            "them judged, and come back with the labels"
        )
    if not chosen.samples:
        return
    if any(value is not None for value in limits.values()):
        raise ConventionError(
            f"{chosen.name} says itself how many it draws; cap, next and budget would spoil the sample"
        )
    if (options.get("qrels") and not options.get("keep_judged")) or options.get("priorities"):
        raise ConventionError(
            f"{chosen.name} draws from the whole pool: leaving out judged documents (qrels without keep_judged) or putting "
            "runs first (priorities) would spoil the sample"
        )


def tiers_of(runs: Sequence[str], priorities: Mapping[str, int], teams: Mapping[str, str]) -> list[int] | None:
    """One number a run, 1 first; runs that nothing is said of come last. Patterns match runs or their teams.

    >>> tiers_of(["a1", "a2", "b1"], {"a*": 1}, {})
    [1, 1, 2]
    """
    if not priorities:
        return None

    def fits(pattern: str, run: str) -> bool:
        own = (team for wanted, team in teams.items() if fnmatch.fnmatchcase(run, wanted))
        return any(fnmatch.fnmatchcase(name, pattern) for name in (run, *own))

    fitting = {run: [pattern for pattern in priorities if fits(pattern, run)] for run in runs}
    for pattern in priorities:
        if not any(pattern in patterns for patterns in fitting.values()):
            raise DataError(f"priority for {pattern!r}: no run or team is called that; runs are {', '.join(runs)}")
    last = max(priorities.values()) + 1
    return [min((priorities[pattern] for pattern in fitting[run]), default=last) for run in runs]


def _taken(session: Session, most: int) -> dict[str, list[Item]]:
    """What each topic gets: all it may, or an even share of the budget, what one leaves over going to the others."""
    topics = session.rankings.topics
    if session.budget is None:
        taken = {topic: session.take(most, topic) for topic in topics}
    else:
        taken = {topic: [] for topic in topics}
        open_topics = list(topics)
        while open_topics and session.left:
            for topic in list(open_topics):
                item = session.next(topic) if len(taken[topic]) < most else None
                if item is None:
                    open_topics.remove(topic)
                else:
                    taken[topic].append(item)
    return {topic: _with_chances(session, topic, items) for topic, items in taken.items() if items}


def _with_chances(session: Session, topic: str, items: list[Item]) -> list[Item]:
    candidates = session.rankings[topic]
    chances = session.strategy.chances(candidates, len(items))
    strata = session.strategy.strata_of(candidates)
    if (chances == 1).all() and strata is None:
        return items
    names = [""] * len(candidates) if strata is None else strata

    def known(item: Item) -> Item:
        number = candidates.number[item.document]
        return item._replace(probability=float(chances[number]), stratum=names[number])

    rest: list[Item] = []
    if session.strategy.samples:  # what could have been drawn and was not, so that estimates know the whole pool
        drawn = {item.document for item in items}
        others = [i for i in np.flatnonzero(chances > 0).tolist() if candidates.documents[i] not in drawn]
        rest = candidates.items(others, repeat(0))
    return [known(item) for item in (*items, *rest)]


def _ordered(items: list[Item], order: str, topic: str, seed: int) -> list[Item]:
    if order == "priority":
        return items
    if order == "document":
        return sorted(items, key=lambda item: item.document)
    rng = np.random.default_rng([seed, zlib.crc32(encode(topic)), 1])
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def _assigned(items: list[Item], assessors: Sequence[str]) -> list[Item]:
    """The items with whole topics given to assessors: the largest topic left to whoever has the least."""
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


# labels come back: qrels


@dataclass(frozen=True)
class Collected:
    """Qrels made of labels; `missing` documents were to be judged and are not."""

    qrels: Qrels
    labels: int
    missing: int
    sampled: bool
    strange: tuple[tuple[str, str], ...] = ()  # topics and documents that have a label and are not in the pool


def collect(pool: Sequence[Item], labels: Iterable[Judgment]) -> Collected:
    """The labels as qrels. Of a sampled pool, what was not drawn stands with grade -1, as infAP and xinfAP want it."""
    standing = latest(labels)
    if not any(standing.values()):
        raise DataError("no label yet, so there are no qrels to write")
    grades = {topic: dict(judged) for topic, judged in standing.items()}
    known: dict[tuple[str, str], tuple[float, str]] = {}
    sampled = any(item.priority == 0 for item in pool)
    missing = 0
    for item in pool:
        judged = grades.setdefault(item.topic, {})
        known[item.topic, item.document] = item.probability, item.stratum
        if item.document not in judged:
            missing += item.priority > 0
            if sampled:
                judged[item.document] = -1.0
    qrels = Qrels({topic: judged for topic, judged in grades.items() if judged})
    if sampled:
        qrels.extras = Extras(probabilities=known)
    strange = tuple(
        (topic, each) for topic, judged in standing.items() for each in judged if (topic, each) not in known
    )
    return Collected(qrels, sum(map(len, standing.values())), missing, sampled, strange)


def write_collected(collected: Collected, path: str, format: str | None = None) -> None:
    """Write the qrels. `prels`, for statAP, hold what was drawn alone; `strata`, for xinfAP, the whole pool."""
    qrels = collected.qrels
    if format == "prels":
        if collected.missing:
            raise DataError(
                f"{collected.missing} documents of the sample have no label: statAP needs all of them, as the "
                "probabilities are those of the whole sample (strata, for xinfAP, count what was judged)"
            )
        drawn = {
            topic: {document: grade for document, grade in grades.items() if grade >= 0}
            for topic, grades in qrels.to_dict().items()
        }
        known = qrels.extras.probabilities or {}
        methods = {key: (chance, "1" if chance < 1 else "0") for key, (chance, _) in known.items()}  # drawn, or certain
        qrels = Qrels({topic: grades for topic, grades in drawn.items() if grades})
        qrels.extras = Extras(probabilities=methods)
    write_qrels(qrels, path, format)
