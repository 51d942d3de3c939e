"""Preferring one of two: what a lead opens, what somebody is asked next, and who won.

An assessor learns neither a run's name nor what anybody else said: a pair is a number, and its sides are left and right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.answer import Answer, Table, plain
from cranfield.errors import DataError
from cranfield.judge.event import Event
from cranfield.judge.pairs import (
    LEFT,
    Comparison,
    Pair,
    all_comparisons,
    answered,
    counts,
    find_comparison,
    open_comparison,
    preferred,
)
from cranfield.judge.plan import OPEN
from cranfield.passages import best_passage, marks
from cranfield.workspace.assessing import item_of, needs_of
from cranfield.workspace.sending import keep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.answer import Layout, Part
    from cranfield.collection import Document
    from cranfield.judge.records import Transaction
    from cranfield.judge.rounds import Outcome
    from cranfield.run import Run
    from cranfield.workspace.bench import Bench

Documents = Callable[[str], "Document | None"]  # by id
AHEAD = 2  # pairs given at once
LOOKED_AT = 50  # pairs whose answers are counted at once
SNIPPET = 240  # characters
DEEPEST, MOST_PAIRS = 50, 20_000
SAYS = {"left": 1.0, "right": -1.0, "same": 0.0}
SAID = ("pair", "topic", "said", "note")


class Entry(NamedTuple):
    """A document in a list: its title, and the passage that fits the need best."""

    document: str
    title: str
    text: str
    marks: Sequence[tuple[int, int]]


class Side(NamedTuple):
    """What stands on one side: a document's text, or a list."""

    title: str = ""
    text: str = ""
    marks: Sequence[tuple[int, int]] = ()
    opens_at: int = 0
    document: str = ""  # its id; empty for a list
    found: bool = True
    length: int = 0
    entries: Sequence[Entry] = ()


class Shown(NamedTuple):
    """A pair as somebody sees it."""

    pair: int
    topic: str
    left: Side
    right: Side


class Listed(NamedTuple):
    """A comparison that can be chosen."""

    name: str
    kind: str
    state: str
    mine: int
    pairs: int


@dataclass(frozen=True)
class Preferring(Answer):
    """What `work` and `prefer` return."""

    comparison: str = ""
    kind: str = ""
    why: str = ""  # there is nothing to compare
    comparisons: Sequence[Listed] = ()
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pairs: Sequence[Shown] = ()
    mine: int = 0
    all: int = 0
    outcomes: Sequence[Outcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.why or f"{self.comparison}: {self.mine:,} of {self.all:,} pairs compared"
        if self.comparisons:
            yield Table(
                ["comparison", "kind", "state", "mine", "pairs"], [list(map(str, each)) for each in self.comparisons]
            )

    def plain(self, how: Layout) -> dict[str, Any]:
        return {name: plain(_row(value)) for name, value in vars(self).items()}


def _row(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _row(part) for name, part in value._asdict().items()}
    return [_row(each) for each in value] if isinstance(value, (list, tuple)) else value


# what a lead opens


def begin(
    bench: Bench,
    name: str,
    kind: str,
    one: str,
    other: str,
    *,
    topics: Sequence[str] = (),
    depth: int = 10,
    per_topic: int = 3,
    overlap: int = 1,
    assessors: Sequence[str] = (),
    seed: int = 0,
) -> Comparison:
    """Open a comparison of two runs: their lists, or documents that only one of them has among its first."""
    from cranfield.workspace.inputs import Inputs

    if one == other:
        raise DataError(f"a comparison is of two runs, found {one!r:.60} twice")
    for what, value, most in (
        ("depth", depth, DEEPEST),
        ("pairs a topic", per_topic, 100),
        ("people a pair", overlap, 100),
    ):
        if not 1 <= value <= most:
            raise DataError(f"expected {what} of 1 to {most}, found {value}")
    files = bench.run(one), bench.run(other)
    runs = Inputs(runs=[file.path for file in files]).open_runs()
    shared = [topic for topic in runs[0].topics if topic in set(runs[1].topics)]
    unknown = [topic for topic in topics if topic not in set(shared)]
    if unknown:
        raise DataError(f"topic {unknown[0]!r:.60} is not in both runs")
    names = files[0].name, files[1].name
    pairs = [pair for topic in topics or shared for pair in _pairs(runs, names, topic, kind, depth, per_topic)]
    if len(pairs) > MOST_PAIRS:
        raise DataError(f"{len(pairs):,} pairs are more than {MOST_PAIRS:,}: name fewer topics")
    plan = Comparison(
        name=name,
        kind=kind,
        one=names[0],
        other=names[1],
        pairs=tuple(pairs),
        depth=depth,
        overlap=overlap,
        assessors=tuple(assessors),
        seed=seed,
        hashes=(bench.hash_of(files[0]), bench.hash_of(files[1])),
    )
    open_comparison(bench.log, plan)
    return plan


def _pairs(runs: Sequence[Run], names: tuple[str, str], topic: str, kind: str, depth: int, most: int) -> Iterator[Pair]:
    """What is to be compared of a topic; nothing where both lists are the same."""
    one, other = (tuple(document for document, _ in run[topic][:depth]) for run in runs)
    if kind == "lists":
        if one != other:
            yield Pair(topic, *names, (one, other))
        return
    only_one, only_other = [each for each in one if each not in other], [each for each in other if each not in one]
    for first, second in list(zip(only_one, only_other, strict=False))[:most]:
        yield Pair(topic, first, second)


# what somebody is asked


def work(bench: Bench, documents: Documents, assessor: str, name: str = "", n: int = AHEAD) -> Preferring:
    """What somebody compares next, in the comparison that is named or the only one open to them."""
    found = _listed(bench, assessor)
    opened = [each.name for each in found if each.state == OPEN]
    if not name and len(opened) != 1:
        why = f"{len(opened)} comparisons are open: choose one" if opened else "nothing is to be compared"
        return Preferring(why=why, comparisons=found)
    with bench.log.reading() as transaction:
        plan, state = find_comparison(transaction.connection, name or opened[0])
    return _asked(bench, documents, assessor, plan, state, n, comparisons=found)


def prefer(
    bench: Bench,
    documents: Documents,
    assessor: str,
    name: str,
    said: Sequence[Any],
    n: int = AHEAD,
    have: Sequence[int] = (),
) -> Preferring:
    """Keep what somebody prefers, or takes back, and give what became of each with the next pairs."""
    with bench.log.reading() as transaction:
        plan, state = find_comparison(transaction.connection, name)
    plan.refuse(assessor)

    def make(row: Mapping[str, Any], base: dict[str, Any]) -> Event:
        return _event(plan, assessor, row, base)

    def refuse(transaction: Transaction, event: Event) -> str:
        if event.kind != "withdrawal":
            return f"comparison {plan.name!r:.60} is {state}" if state != OPEN else ""
        there = transaction.known([event.refers]).get(event.refers)
        return "" if there is not None and there.kind == "preference" else "there is no such preference to take back"

    outcomes, _ = keep(bench.log, assessor, said, SAID, make, refuse)
    return _asked(bench, documents, assessor, plan, state, n, have, outcomes=outcomes)


def _event(plan: Comparison, assessor: str, row: Mapping[str, Any], base: dict[str, Any]) -> Event:
    """A preference as the log has it: `document` was on the left, `other` on the right."""
    place, said = row.get("pair"), row.get("said")
    if type(place) is not int or not 0 <= place < len(plan.pairs):
        raise DataError(f"expected a pair of 0 to {len(plan.pairs) - 1}, found {place!r:.60}")
    if said not in SAYS:
        raise DataError(f"expected {', '.join(SAYS)} as said, found {said!r:.60}")
    pair = plan.pairs[place]
    if row.get("topic", pair.topic) != pair.topic:
        raise DataError(f"pair {place} is of topic {pair.topic!r:.60}, found {row['topic']!r:.60}")
    left, right = (pair.other, pair.one) if plan.swapped(assessor, place) else (pair.one, pair.other)
    about = {"topic": pair.topic, "document": left, "other": right, "grade": SAYS[said], "aspect": plan.aspect}
    note = {"note": row["note"]} if row.get("note") is not None else {}
    return Event.of({"kind": "preference", **about, **note, "list": f"comparison {plan.name}: {LEFT}"}, **base)


def _listed(bench: Bench, assessor: str) -> list[Listed]:
    """The comparisons that somebody is asked for, those that are open first."""
    with bench.log.reading() as transaction:
        connection = transaction.connection
        mine = [
            (plan, state)
            for plan, state in all_comparisons(connection)
            if not plan.assessors or assessor in plan.assessors
        ]
        done = {plan.aspect: answered(connection, plan, assessor) for plan, _ in mine}
    rows = [
        Listed(
            plan.name, plan.kind, state, sum(pair.things in done[plan.aspect] for pair in plan.pairs), len(plan.pairs)
        )
        for plan, state in mine
    ]
    return sorted(rows, key=lambda row: row.state != OPEN)


def _asked(
    bench: Bench,
    documents: Documents,
    assessor: str,
    plan: Comparison,
    state: str,
    n: int,
    have: Sequence[int] = (),
    **more: Any,
) -> Preferring:
    plan.refuse(assessor)
    with bench.log.reading() as transaction:
        done = answered(transaction.connection, plan, assessor)
        todo = [place for place in plan.order(assessor) if plan.pairs[place].things not in done]
        found = [] if state != OPEN else _wanted(transaction, plan, todo, n, have)
    mine = len(plan.pairs) - len(todo)
    why = ""
    if not found and not have:
        why = f"comparison {plan.name} is {state}" if state != OPEN else "nothing is left for you to compare"
    needs = needs_of(bench, [plan.pairs[place].topic for place in found])
    pairs = [_shown(documents, plan, assessor, place, needs[plan.pairs[place].topic]["title"]) for place in found]
    about: dict[str, Any] = {"comparison": plan.name, "kind": plan.kind, "why": why, "needs": needs, "pairs": pairs}
    return Preferring(**about, mine=mine, all=len(plan.pairs), **more)


def _wanted(transaction: Transaction, plan: Comparison, todo: Sequence[int], n: int, have: Sequence[int]) -> list[int]:
    """The first n pairs of those to do that fewer people than wished have answered."""
    answer: list[int] = []
    for start in range(0, len(todo), LOOKED_AT):
        part = todo[start : start + LOOKED_AT]
        said = counts(transaction.connection, plan, [plan.pairs[place].topic for place in part])
        for place in part:
            if len(answer) >= n:
                return answer
            if place not in have and said.get(plan.pairs[place].things, 0) < plan.overlap:
                answer.append(place)
    return answer[:n]


def _shown(documents: Documents, plan: Comparison, assessor: str, place: int, query: str) -> Shown:
    """A pair on the sides that were drawn for somebody."""
    pair = plan.pairs[place]
    if plan.kind == "lists":
        sides = [Side(entries=[_entry(documents, each, query) for each in found]) for found in pair.lists]
    else:
        sides = [_side(documents, pair.topic, each, query) for each in (pair.one, pair.other)]
    left, right = reversed(sides) if plan.swapped(assessor, place) else sides
    return Shown(place, pair.topic, left, right)


def _side(documents: Documents, topic: str, document: str, query: str) -> Side:
    item = item_of(documents, (topic, document), query)
    return Side(item.title, item.text, item.marks, item.opens_at, document, item.found, item.length)


def _entry(documents: Documents, document: str, query: str) -> Entry:
    found = documents(document)
    if found is None:
        return Entry(document, document, "(the collection does not have it)", ())
    start, end = best_passage(found.text, query, SNIPPET)
    text = " ".join(found.text[start:end].split())
    text = f"{'… ' if start else ''}{text}{' …' if end < len(found.text) else ''}"
    return Entry(document, found.title or document, text, marks(text, query) if query else ())


# who won


class ByTopic(NamedTuple):
    """How often each of two runs was preferred on a topic."""

    topic: str
    one: int
    other: int
    even: int


@dataclass(frozen=True)
class Preferences(Answer):
    """Which of two runs people prefer: a topic goes to the run that more preferences on it are for."""

    name: str
    kind: str
    one: str
    other: str
    state: str
    pairs: int
    overlap: int
    topics: Sequence[ByTopic]
    people: Mapping[str, int]
    left: int  # preferences for the left side
    right: int
    level: float = 0.95

    @property
    def wins(self) -> tuple[int, int, int]:
        """Topics that went to the one, to the other, and to neither."""
        signs = [(each.one > each.other) - (each.one < each.other) for each in self.topics]
        return signs.count(1), signs.count(-1), signs.count(0)

    @property
    def complete(self) -> bool:
        """Whether all that was planned is said: only then was the number of preferences not chosen on the way."""
        return sum(self.people.values()) >= self.pairs * self.overlap

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share of the decided topics that went to the run ahead; before all is said, one that holds at any time."""
        from cranfield.stats.shares import anytime_share, exact_share

        less, more = sorted(self.wins[:2])
        return (exact_share if self.complete else anytime_share)(more, less, self.level)

    @property
    def p(self) -> float:
        """Of the sign test over topics; before all is said, of one that may be looked at any time."""
        from cranfield.stats.shares import SIGN_CONCENTRATION, anytime_p, sign_p

        one, other, _ = self.wins
        return sign_p(one, other) if self.complete else anytime_p([one, other], [0.5, 0.5], SIGN_CONCENTRATION)

    def content(self, how: Layout) -> Iterable[Part]:
        yield self._verdict()
        if self.topics:
            rows = [[each.topic, f"{each.one}", f"{each.other}", f"{each.even}"] for each in self.topics]
            yield Table(["topic", f"for {self.one}", f"for {self.other}", "neither"], rows, names=1)
        if self.people:
            yield Table(
                ["person", "preferences"], [[name, f"{count:,}"] for name, count in self.people.items()], names=1
            )

    def _verdict(self) -> str:
        one, other, even = self.wins
        if not one + other:
            return f"nobody prefers {self.one} or {self.other} yet"
        ahead, wins = (self.one, one) if one >= other else (self.other, other)
        low, high = self.interval
        told = f"{ahead} preferred on {wins} of {one + other} topics that are decided ({wins / (one + other):.0%}"
        test = "sign test" if self.complete else "sequential sign test"
        sure = f"{self.level:.0%} interval {low:.0%} to {high:.0%}; {test} p = {self.p:.3g})"
        rest = f"; {even} {'topic is' if even == 1 else 'topics are'} even" if even else ""
        return f"{told}, {sure}{rest}"

    def plain(self, how: Layout) -> dict[str, Any]:
        one, other, even = self.wins
        low, high = self.interval
        about = {
            key: getattr(self, key) for key in ("name", "kind", "one", "other", "state", "pairs", "overlap", "level")
        }
        found = {"wins": {"one": one, "other": other, "even": even}, "interval": [low, high], "p": self.p}
        found["complete"] = self.complete
        sides = {"left": self.left, "right": self.right}
        more = {"verdict": self._verdict(), "people": dict(self.people), "sides": sides}
        return {**about, **found, **more, "topics": [each._asdict() for each in self.topics]}

    def records(self, how: Layout) -> Iterable[tuple[Any, ...]]:
        yield "topic", self.one, self.other, "neither"
        yield from (tuple(each) for each in self.topics)

    def notes(self, shell: bool = False) -> list[str]:
        said = []
        given, wanted = sum(self.people.values()), self.pairs * self.overlap
        if not self.complete:
            told = "interval and p are wider so that they hold however often one looks before the end"
            said.append(f"{given:,} of {wanted:,} preferences are given; {told}")
        if self.left + self.right:
            said.append(
                f"the left side was preferred {self.left:,} times and the right {self.right:,}; sides are drawn by lot"
            )
        if self.kind == "documents":
            said.append("these are documents that only one run has among its first, not whole lists")
        return said


def preferences(bench: Bench, name: str) -> Preferences:
    """Who won a comparison, topic by topic."""
    with bench.log.reading() as transaction:
        plan, state = find_comparison(transaction.connection, name)
        said = preferred(transaction.connection, plan)
    first = {pair.things: pair.one for pair in plan.pairs}
    votes: dict[str, Counter[int]] = {}
    for event in said:
        is_first = event.document == first[event.topic, *sorted((event.document, event.other))]  # type: ignore[index]
        votes.setdefault(event.topic, Counter())[int(event.grade or 0) * (1 if is_first else -1)] += 1
    topics = [ByTopic(topic, votes[topic][1], votes[topic][-1], votes[topic][0]) for topic in sorted(votes)]
    people = dict(sorted(Counter(event.assessor for event in said).items()))
    sides = Counter(event.grade for event in said if event.list.endswith(f": {LEFT}"))
    about = (plan.name, plan.kind, plan.one, plan.other, state, len(plan.pairs), plan.overlap)
    return Preferences(*about, topics, people, sides[1.0], sides[-1.0])


def every_comparison(bench: Bench) -> list[Preferences]:
    """Every comparison with who is ahead, the newest first."""
    with bench.log.reading() as transaction:
        names = [plan.name for plan, _ in all_comparisons(transaction.connection)]
    return [preferences(bench, name) for name in reversed(names)]
