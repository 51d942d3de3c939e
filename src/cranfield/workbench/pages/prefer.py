"""Preferences: assessors choose between two lists or documents; the lead opens comparisons and sees who is ahead.

Assessors learn neither the names of runs nor what others chose: a pair is a number, and its sides are left and right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.card import document_title
from cranfield.base.errors import DataError
from cranfield.base.passages import best_passage, marks
from cranfield.base.results import Answer, Layout, Part, Table
from cranfield.judging.comparisons import (
    LEFT,
    PairComparison,
    PreferencePair,
    all_comparisons,
    answer_counts,
    answered_pairs,
    find_comparison,
    open_comparison,
    preferences_in,
    set_comparison,
)
from cranfield.judging.event import Event, new_id
from cranfield.judging.round_plan import OPEN
from cranfield.stats.sample_ratio import SIGN_CONCENTRATION, anytime_p, anytime_share, exact_share, sign_p
from cranfield.workbench.access_control import ASSESSOR, LEAD
from cranfield.workbench.assessment import (
    Documents,
    DocumentView,
    ScriptReply,
    Subject,
    document_view,
    image_hosts,
    needs_of,
)
from cranfield.workbench.browser_events import refuse_first, refuse_withdrawal, script_events, submit_rows
from cranfield.workbench.keyboard_shortcuts import keys_on
from cranfield.workbench.links import link
from cranfield.workbench.rendering import marked
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.card import CardPart, CardTemplate
    from cranfield.base.run import Run
    from cranfield.inputs.workspace import Bench
    from cranfield.judging.event_intake import EventOutcome, Refusal
    from cranfield.judging.log import Transaction


AHEAD = 2  # pairs sent at once
BATCH = 50  # pairs whose preferences are counted at once
SNIPPET = 240  # characters
DEEPEST, MOST_PAIRS = 50, 20_000
GRADES = {"left": 1.0, "right": -1.0, "same": 0.0}
ROW_FIELDS = ("pair", "topic", "said", "note")


class ListEntry(NamedTuple):
    """A document in a list: its title, and the passage that fits the query best."""

    document: str
    title: str
    text: str
    marks: Sequence[tuple[int, int]]


class PairSide(NamedTuple):
    """One side of a pair: the text of a document, or a list."""

    title: str = ""
    text: str = ""
    marks: Sequence[tuple[int, int]] = ()
    opens_at: int = 0
    document: str = ""  # its id; empty for a list
    found: bool = True
    length: int = 0
    above: Sequence[CardPart] = ()
    below: Sequence[CardPart] = ()
    text_label: str = ""
    entries: Sequence[ListEntry] = ()


class PairView(NamedTuple):
    """A pair as one assessor sees it."""

    pair: int
    topic: str
    left: PairSide
    right: PairSide


class ComparisonChoice(NamedTuple):
    """A comparison of the assessor, with the progress."""

    name: str
    kind: str
    state: str
    mine: int
    pairs: int


@dataclass(frozen=True)
class PreferenceWork(ScriptReply):
    """The reply to an assessor: pairs to compare, progress, and outcomes of submitted preferences."""

    comparison: str = ""
    kind: str = ""
    why: str = ""  # why there is nothing to compare
    comparisons: Sequence[ComparisonChoice] = ()
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pairs: Sequence[PairView] = ()
    mine: int = 0
    all: int = 0
    outcomes: Sequence[EventOutcome] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.why or f"{self.comparison}: {self.mine:,} of {self.all:,} pairs compared"
        if self.comparisons:
            rows = [list(map(str, each)) for each in self.comparisons]
            yield Table(["comparison", "kind", "state", "mine", "pairs"], rows)


# opening a comparison


def open_comparison_of_runs(
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
) -> PairComparison:
    """Open a comparison of two runs: of their lists, or of documents that only one of them ranks at the top."""
    from cranfield.inputs.inputs import Inputs

    if one == other:
        raise DataError(f"a comparison is of two runs, found {one!r:.60} twice")
    limits = ("depth", depth, DEEPEST), ("pairs per topic", per_topic, 100), ("people per pair", overlap, 100)
    for what, value, most in limits:
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
    plan = PairComparison(
        name=name,
        kind=kind,
        one=names[0],
        other=names[1],
        pairs=tuple(pairs),
        depth=depth,
        overlap=overlap,
        assessors=tuple(assessors),
        seed=seed,
        hashes=(bench.hashes.of(files[0].path), bench.hashes.of(files[1].path)),
    )
    open_comparison(bench.log, plan)
    return plan


def _pairs(
    runs: Sequence[Run], names: tuple[str, str], topic: str, kind: str, depth: int, most: int
) -> Iterator[PreferencePair]:
    """The pairs of a topic; none if both lists are the same."""
    one, other = (tuple(document for document, _ in run[topic][:depth]) for run in runs)
    if kind == "lists":
        if one != other:
            yield PreferencePair(topic, *names, (one, other))
        return
    only_one, only_other = [each for each in one if each not in other], [each for each in other if each not in one]
    for first, second in list(zip(only_one, only_other, strict=False))[:most]:
        yield PreferencePair(topic, first, second)


# comparing


def next_pairs(request: PageRequest, name: str) -> PreferenceWork:
    """The next pairs of an assessor, in a named comparison or in the only open one."""
    comparisons = comparisons_of(request.site.bench, request.name)
    open_names = [each.name for each in comparisons if each.state == OPEN]
    if not name and len(open_names) != 1:
        why = f"{len(open_names)} comparisons are open: choose one" if open_names else "there is nothing to compare"
        return PreferenceWork(why=why, comparisons=comparisons)
    return _work(request, *_comparison(request, name or open_names[0]), AHEAD, comparisons=comparisons)


def _comparison(request: PageRequest, name: str) -> tuple[PairComparison, str]:
    """A comparison of the assessor, and its state."""
    with request.site.bench.log.reading() as transaction:
        plan, state = find_comparison(transaction, name)
    plan.refuse(request.name)
    return plan, state


def submit_preferences(
    request: PageRequest, name: str, rows: Sequence[Any], n: int, have: Sequence[int] = ()
) -> PreferenceWork:
    """Add preferences or withdraw them; return the outcome of each and the next pairs."""
    plan, state = _comparison(request, name)

    def make(row: Mapping[str, Any], base: dict[str, Any]) -> Event:
        return _event(plan, request.name, row, base)

    def refuse(transaction: Transaction, event: Event) -> Refusal | None:
        if event.kind != "withdrawal":
            return ("event", f"comparison {plan.name!r:.60} is {state}") if state != OPEN else None
        return refuse_withdrawal(transaction, event, "preference", "preference")

    site = request.site
    outcomes, _ = submit_rows(site.bench.log, request.name, rows, ROW_FIELDS, make, refuse, site.known_ids())
    return _work(request, plan, state, n, have, outcomes=outcomes)


def _event(plan: PairComparison, assessor: str, row: Mapping[str, Any], base: dict[str, Any]) -> Event:
    """The event of a preference: `document` was on the left, `other` on the right."""
    place, choice = row.get("pair"), row.get("said")
    if type(place) is not int or not 0 <= place < len(plan.pairs):
        raise DataError(f"expected a pair of 0 to {len(plan.pairs) - 1}, found {place!r:.60}")
    if choice not in GRADES:
        raise DataError(f"expected {', '.join(GRADES)} as said, found {choice!r:.60}")
    pair = plan.pairs[place]
    if row.get("topic", pair.topic) != pair.topic:
        raise DataError(f"pair {place} is of topic {pair.topic!r:.60}, found {row['topic']!r:.60}")
    left, right = (pair.other, pair.one) if plan.swapped(assessor, place) else (pair.one, pair.other)
    about = {"topic": pair.topic, "document": left, "other": right, "grade": GRADES[choice], "aspect": plan.aspect}
    note = {"note": row["note"]} if row.get("note") is not None else {}
    return Event.of({"kind": "preference", **about, **note, "list": f"comparison {plan.name}: {LEFT}"}, **base)


def comparisons_of(bench: Bench, assessor: str) -> list[ComparisonChoice]:
    """The comparisons of an assessor, open ones first."""
    with bench.log.reading() as transaction:
        comparisons = all_comparisons(transaction)
        mine = [each for each in comparisons if not each[0].assessors or assessor in each[0].assessors]
        done = {plan.aspect: answered_pairs(transaction, plan, assessor) for plan, _ in mine}
    rows = []
    for plan, state in sorted(mine, key=lambda each: each[1] != OPEN):
        count = sum(pair.things in done[plan.aspect] for pair in plan.pairs)
        rows.append(ComparisonChoice(plan.name, plan.kind, state, count, len(plan.pairs)))
    return rows


def _work(
    request: PageRequest, plan: PairComparison, state: str, n: int, have: Sequence[int] = (), **more: Any
) -> PreferenceWork:
    bench, assessor = request.site.bench, request.name
    with bench.log.reading() as transaction:
        done = answered_pairs(transaction, plan, assessor)
        todo = [place for place in plan.order(assessor) if plan.pairs[place].things not in done]
        next_places = [] if state != OPEN else _next_places(transaction, plan, todo, n, have)
    mine = len(plan.pairs) - len(todo)
    why = ""
    if not next_places and not have:
        why = f"comparison {plan.name} is {state}" if state != OPEN else "nothing is left for you to compare"
    needs = needs_of(bench, [plan.pairs[place].topic for place in next_places])
    queries = {topic: need["title"] for topic, need in needs.items()}
    card = bench.card()
    views, entries = (
        partial(document_view, request.site.document, template=card),
        partial(_entry, request.site.document, card),
    )
    pairs = [_pair_view(entries, views, plan, assessor, place, queries) for place in next_places]
    return PreferenceWork(plan.name, plan.kind, why, needs=needs, pairs=pairs, mine=mine, all=len(plan.pairs), **more)


def _next_places(
    transaction: Transaction, plan: PairComparison, todo: Sequence[int], n: int, have: Sequence[int]
) -> list[int]:
    """The first n pairs to do that still need preferences."""
    answer: list[int] = []
    for start in range(0, len(todo), BATCH):
        part = todo[start : start + BATCH]
        preference_counts = answer_counts(transaction, plan, [plan.pairs[place].topic for place in part])
        for place in part:
            if len(answer) >= n:
                return answer
            if place not in have and preference_counts.get(plan.pairs[place].things, 0) < plan.overlap:
                answer.append(place)
    return answer[:n]


def _pair_view(
    entries: Callable[[str, str], ListEntry],
    views: Callable[[Subject, str], DocumentView],
    plan: PairComparison,
    assessor: str,
    place: int,
    queries: Mapping[str, str],
) -> PairView:
    """A pair with its sides in the random order drawn for an assessor."""
    pair = plan.pairs[place]
    query = queries[pair.topic]
    if plan.kind == "lists":
        sides = [PairSide(entries=[entries(each, query) for each in ranking]) for ranking in pair.lists]
    else:
        sides = [_side(views((pair.topic, each), query)) for each in (pair.one, pair.other)]
    left, right = reversed(sides) if plan.swapped(assessor, place) else sides
    return PairView(place, pair.topic, left, right)


def _side(item: DocumentView) -> PairSide:
    fields = {name: getattr(item, name) for name in PairSide._fields if name in DocumentView._fields}
    return PairSide(**fields)


def _entry(documents: Documents, template: CardTemplate | None, document: str, query: str) -> ListEntry:
    content = documents(document)
    if content is None:
        return ListEntry(document, document, "(the collection does not have it)", ())
    start, end = best_passage(content.text, query, SNIPPET)
    text = " ".join(content.text[start:end].split())
    text = f"{'… ' if start else ''}{text}{' …' if end < len(content.text) else ''}"
    return ListEntry(document, document_title(template, content) or document, text, marks(text, query) if query else ())


# results


class ByTopic(NamedTuple):
    """How often each of two runs was preferred on a topic."""

    topic: str
    one: int
    other: int
    even: int


@dataclass(frozen=True)
class ComparisonResult(Answer):
    """Which of two runs people prefer: the run with more preferences wins a topic."""

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
        """The number of topics that the first run won, that the second run won, and of ties."""
        signs = [(each.one > each.other) - (each.one < each.other) for each in self.topics]
        return signs.count(1), signs.count(-1), signs.count(0)

    @property
    def complete(self) -> bool:
        """Whether all planned preferences are in: only then was their number fixed in advance."""
        return sum(self.people.values()) >= self.pairs * self.overlap

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the leader's share of decided topics; always valid while preferences are missing."""
        less, more = sorted(self.wins[:2])
        return (exact_share if self.complete else anytime_share)(more, less, self.level)

    @property
    def p(self) -> float:
        """The p-value of the sign test over topics; always valid while preferences are missing."""
        one, other, _ = self.wins
        return sign_p(one, other) if self.complete else anytime_p([one, other], [0.5, 0.5], SIGN_CONCENTRATION)

    def content(self, how: Layout) -> Iterable[Part]:
        yield self._verdict()
        if self.topics:
            rows = [[each.topic, f"{each.one}", f"{each.other}", f"{each.even}"] for each in self.topics]
            yield Table(["topic", f"for {self.one}", f"for {self.other}", "neither"], rows, names=1)
        if self.people:
            rows = [[name, f"{count:,}"] for name, count in self.people.items()]
            yield Table(["person", "preferences"], rows, names=1)

    def _verdict(self) -> str:
        one, other, even = self.wins
        if not one + other:
            return f"nobody prefers {self.one} or {self.other} yet"
        ahead, wins = (self.one, one) if one >= other else (self.other, other)
        low, high = self.interval
        lead = f"{ahead} preferred on {wins} of {one + other} decided topics ({wins / (one + other):.0%}"
        test = "sign test" if self.complete else "sequential sign test"
        interval = f"{self.level:.0%} interval {low:.0%} to {high:.0%}; {test} p = {self.p:.3g})"
        rest = f"; {even} {'topic is' if even == 1 else 'topics are'} tied" if even else ""
        return f"{lead}, {interval}{rest}"

    def plain(self, how: Layout) -> dict[str, Any]:
        one, other, even = self.wins
        low, high = self.interval
        names = ("name", "kind", "one", "other", "state", "pairs", "overlap", "level")
        about = {name: getattr(self, name) for name in names}
        test = {"wins": {"one": one, "other": other, "even": even}, "interval": [low, high], "p": self.p}
        test["complete"] = self.complete
        sides = {"left": self.left, "right": self.right}
        more = {"verdict": self._verdict(), "people": dict(self.people), "sides": sides}
        return {**about, **test, **more, "topics": [each._asdict() for each in self.topics]}

    def records(self, how: Layout) -> Iterable[tuple[Any, ...]]:
        yield "topic", self.one, self.other, "neither"
        yield from (tuple(each) for each in self.topics)

    def notes(self, shell: bool = False) -> list[str]:
        notes = []
        done, planned = sum(self.people.values()), self.pairs * self.overlap
        if not self.complete:
            method = "interval and p are always valid: they hold however often one looks before the end"
            notes.append(f"{done:,} of {planned:,} preferences are in; {method}")
        if self.left + self.right:
            sides = f"the left side was preferred {self.left:,} times and the right {self.right:,}"
            notes.append(f"{sides}; sides are random")
        if self.kind == "documents":
            notes.append("people compared documents that only one run ranks at the top, not whole lists")
        return notes


def comparison_result(bench: Bench, name: str) -> ComparisonResult:
    """The preferences of a comparison, counted by topic, person and side."""
    with bench.log.reading() as transaction:
        plan, state = find_comparison(transaction, name)
        events = preferences_in(transaction, plan)
    first = {pair.things: pair.one for pair in plan.pairs}
    votes: dict[str, Counter[int]] = {}
    for event in events:
        is_first = event.document == first[event.topic, *sorted((event.document, event.other))]  # type: ignore[index]
        votes.setdefault(event.topic, Counter())[int(event.grade or 0) * (1 if is_first else -1)] += 1
    topics = [ByTopic(topic, votes[topic][1], votes[topic][-1], votes[topic][0]) for topic in sorted(votes)]
    people = dict(sorted(Counter(event.assessor for event in events).items()))
    sides = Counter(event.grade for event in events if event.list.endswith(f": {LEFT}"))
    about = (plan.name, plan.kind, plan.one, plan.other, state, len(plan.pairs), plan.overlap)
    return ComparisonResult(*about, topics, people, sides[1.0], sides[-1.0])


@page("/prefer", ASSESSOR, "next_pairs", menu=("judge", 20, "Prefer"), reveals=NOTHING)
def compare_next(request: PageRequest) -> Page:
    """The next two documents or result lists to compare, on random sides."""
    answer = next_pairs(request, request.text("comparison"))
    scripts = ("prefer.js",) if answer.comparison else ()
    hosts = image_hosts(request.site.bench)
    return Page(
        "Prefer", "prefer.html", answer.to_dict(), _context(request, answer), scripts=scripts, image_hosts=hosts
    )


def _context(request: PageRequest, answer: PreferenceWork) -> dict[str, Any]:
    """The template values: the first pair as HTML, and the settings of the script."""
    keys, for_script = keys_on(request.site.accounts.settings(request.name), "prefer")
    pair = answer.pairs[0] if answer.pairs else None
    script = {"comparison": answer.comparison, **for_script, "ahead": AHEAD}
    sides = [] if pair is None else [("A", "left", _marked(pair.left)), ("B", "right", _marked(pair.right))]
    need = {} if pair is None else answer.needs[pair.topic]
    return {"pair": pair, "sides": sides, "need": need, "script": script, "keys": keys, "new_id": new_id()}


def _marked(side: PairSide) -> dict[str, Any]:
    entries = [{"title": each.title, "text": marked(each.text, each.marks)} for each in side.entries]
    more = {"text": marked(side.text, side.marks), "entries": entries}
    return {**side._asdict(), **more, "empty": not side.text, "visible": len(side.text)}


@action("/prefer", ASSESSOR, "submit_preferences", reveals=NOTHING)
def post_preferences(request: PageRequest) -> ActionResult:
    """Add preferences or withdraw them, and return the next pairs; each is kept, repeated or refused."""
    name = request.form_field("of")
    if "events" in request.form:
        rows, have, n = script_events(request, AHEAD)
        answer = submit_preferences(request, name, rows, n, [each for each in have if type(each) is int])
    else:
        place = request.number("pair")
        about = {"pair": -1 if place is None else int(place), "said": request.form_field("said")}
        row = {"id": request.form_field("id") or new_id(), **about}
        answer = submit_preferences(request, name, [row], 0)
        refuse_first(answer.outcomes, "Go back to see the pair again.")
    values = {key: value for key, value in answer.to_dict().items() if key != "comparisons"}
    return ActionResult(link("/prefer", comparison=name), values)


@page("/preferences", LEAD, "comparison_result", table=True, menu=("decide", 30, "Preferences"))
def results(request: PageRequest) -> Page:
    """All comparisons with their results, and a form to open another one."""
    bench, name = request.site.bench, request.text("comparison")
    if name:
        result = comparison_result(bench, name)
        values = {**result.to_dict(), "notes": result.notes()}
        table = result.to_csv(spreadsheet=True)
        return Page(f"Comparison {name}", "comparison.html", values, {"result": result}, table)
    with bench.log.reading() as transaction:
        names = [plan.name for plan, _ in all_comparisons(transaction)]
    every = [comparison_result(bench, each).to_dict() for each in reversed(names)]
    runs, people = [run.name for run in bench.runs()], request.assessors()
    context = {"every": every, "runs": runs, "people": people, "name": f"{len(every) + 1}"}
    return Page("Preferences", "preferences.html", {"comparisons": every}, context)


@action("/preferences", LEAD, "open_comparison_of_runs")
def open_another(request: PageRequest) -> ActionResult:
    """Open a comparison of two runs."""
    plan = open_comparison_of_runs(
        request.site.bench,
        request.form_field("name").strip(),
        request.form_field("kind"),
        request.form_field("one"),
        request.form_field("other"),
        topics=[line.strip() for line in request.form_field("topics").splitlines() if line.strip()],
        depth=int(request.number("depth", 10) or 0),
        per_topic=int(request.number("per_topic", 3) or 0),
        overlap=int(request.number("overlap", 1) or 0),
        assessors=[name for name in request.form_fields("assessors") if name],
        seed=int(request.number("seed", 0) or 0),
    )
    return ActionResult(link("/preferences", comparison=plan.name), {"name": plan.name, "pairs": len(plan.pairs)})


@action("/preferences/state", LEAD, "judging.set_comparison")
def change_state(request: PageRequest) -> ActionResult:
    """Pause, reopen or close a comparison."""
    name, state = request.form_field("comparison"), request.form_field("state")
    set_comparison(request.site.bench.log, name, state)
    return ActionResult(link("/preferences", comparison=name), {"name": name, "state": state})
