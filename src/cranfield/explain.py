"""How a score came about, rank by rank, and the same run under other programs' conventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Layout, Table, plain
from cranfield.conventions import Conventions
from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.evaluate import Evaluator
from cranfield.explanation import Explanation, walk
from cranfield.formats import as_qrels, as_runs
from cranfield.formats.by_text import qrels_by_id, run_by_id
from cranfield.measures import measure as measure_named
from cranfield.peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cranfield.answer import Part
    from cranfield.collection import Extras, Qrels
    from cranfield.evaluate import BasicOptions
    from cranfield.formats.format import Fields
    from cranfield.measures import Measure
    from cranfield.peers import Peer
    from cranfield.run import Run


CONVENTIONS: dict[str, dict[Any, str]] = {
    "ties": {
        "input-order": "ties keep the order given",
        "document-ascending": "ties by document id, ascending",
        "averaged": "ties averaged over their orders",
    },
    "scores": {"single": "scores compared as 32-bit floats", "rank": "ordered by the rank column"},
    "missing": {"skip": "missing topics left out", "error": "stops at a missing topic"},
    "no_relevant": {"skip": "topics without relevant documents left out"},
    "negative": {"irrelevant": "negative grades judged 0"},
    "duplicates": {"last": "the last of two equal documents counts"},
    "drop_self": {True: "the topic's own id left out"},
}
OVER_TOPICS = ("missing", "no_relevant")  # of no account where there is one topic
PARAMETERS = {
    "gain": {
        "exp2": "gain 2^grade − 1",
        "signed-exp2": "gain 2^grade − 1, negative below 0",
        "signed": "gain = grade, negative below 0",
        "topic": "gain = grade / the topic's highest",
        "grade": "gain = the grade",
        "binary": "gain 1 or 0",
    },
    "ideal": {"all": "ideal list not cut", "hits": "ideal list cut at the number of documents returned"},
    "discount": {"jk": "Järvelin and Kekäläinen's discount: log2(rank) from rank 2 on"},
    "divide": {
        "returned": "divided by the documents returned, if fewer than k",
        "found": "divided by the relevant documents found",
        "cut": "divided by at most k",
    },
    "k": {"None": "the whole list counts"},
    "stop": {"linear": "stops with probability grade / (max + 1)"},
}


def explain(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    topic: str | None = None,
    *,
    rel: float | None = None,
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    extras: Extras | None = None,
    baseline: Any = None,
    full: bool = False,
    **options: Unpack[BasicOptions],
) -> Explanation:
    """How a run came by its score on one topic, rank by rank.

    `qrels`, `run` and the options are what `evaluate` takes, or `qrels` is an `Evaluator` with this measure. The topic
    may be left out where there is only one. Long lists are folded to the ranks that matter; `full` shows all of them.

    >>> table = explain({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "nDCG@10", "q")
    >>> round(table.value, 4), table.worked
    (0.7967, 'DCG / ideal DCG = 2.8928 / 3.6309 = 0.7967')
    """
    if isinstance(qrels, Evaluator):
        evaluator = qrels
    else:
        scoring: dict[str, Any] = {"rel": rel, "conventions": conventions, "extras": extras, "baseline": baseline}
        evaluator = Evaluator(qrels, [measure], **scoring, **options)
    name = str(measure) if str(measure) in evaluator.measures else next(iter(evaluator.measures))
    preset = conventions if isinstance(conventions, str) else None
    only, chosen = _only(evaluator.open(run)), _topic(evaluator, topic)
    evaluator.warn_of(only)
    return walk(evaluator, only, name, chosen, full, preset)


def _only(runs: list[Run]) -> Run:
    if len(runs) != 1:
        raise DataError(f"expected one run to explain, found {len(runs)}")
    return runs[0]


def _topic(evaluator: Evaluator, topic: str | None) -> str:
    topics = evaluator.qrels.topics
    if topic is None and len(topics) == 1:
        return topics[0]
    if topic is None:
        raise DataError(f"which topic? {evaluator.qrels.name} judges {len(topics)}, such as {topics[0]!r}")
    if topic not in topics:
        raise DataError(f"topic {topic!r} is not judged in {evaluator.qrels.name}; there are {len(topics)} others")
    return topic


@dataclass(frozen=True)
class View:
    """One program's value: None where it has no such measure, or stops."""

    name: str
    value: float | None
    differs: str


@dataclass(frozen=True)
class Views(Answer):
    """One run's score under several programs' conventions. Prints as a table; `to_dict` is for JSON."""

    measure: str
    run: str
    topic: str | None
    ours: float
    views: list[View]
    query: str = ""  # what the topic asks, where that is known

    ends_with_notes = True

    def __getitem__(self, name: str) -> float | None:
        return {view.name: view.value for view in self.views}[name]

    def plain(self, how: Layout) -> dict[str, Any]:
        """The measure, and under `as` a value for each convention."""
        return {"measure": self.measure, "as": plain({view.name: view.value for view in self.views}, how.digits)}

    def title(self) -> str:
        """What this is, and our own value."""
        asked = f" ({self.query})" if self.query else ""
        where = "mean over topics" if self.topic is None else f"topic {self.topic}{asked}"
        return f"{self.measure} of {self.run}, {where}: {self.ours:.4f} by default"

    def notes(self, shell: bool = False) -> list[str]:
        """How far the values lie apart."""
        values = [view.value for view in self.views if view.value is not None]
        if len(values) < 2:
            return []
        kinds = len({round(value, 4) for value in values})
        if kinds == 1:
            return [f"all {len(values)} agree to four decimals"]
        return [f"{kinds} different values, from {min(values):.4f} to {max(values):.4f}"]

    def content(self, how: Layout) -> Iterator[Part]:
        rows = [[view.name, "–" if view.value is None else how.number(view.value), view.differs] for view in self.views]
        table = Table(["as", self.measure, "what differs from the default"], rows, left=3)
        if how.medium == "html":
            yield table._replace(caption=self.title())
        else:
            yield from (self.title(), table)


def explain_as(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    topic: str | None = None,
    presets: str | Iterable[str] = "all",
    *,
    rel: float | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
    fields: Fields | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    grades: Mapping[float, float] | str | None = None,
    ignore_case: bool = False,
    extras: Extras | None = None,
    baseline: Any = None,
    queries: Mapping[str, str] | None = None,
) -> Views:
    """The same run as other programs would score it: the mean over topics, or one topic.

    >>> views = explain_as({"q": {"a": 1}}, {"q": {"a": 1, "b": 1}}, "RR", presets=["trec_eval-10", "insertion-order"])
    >>> views.to_dict()
    {'measure': 'RR', 'as': {'trec_eval-10': 0.5, 'insertion-order': 1.0}}
    """
    names = list(PEERS) if presets == "all" else [presets] if isinstance(presets, str) else list(presets)
    for name in names:
        if name not in PEERS:
            raise ConventionError(f"no preset {name!r}; there are {', '.join(PEERS)}")
    dialect = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal}
    judged = as_qrels(qrels, qrels_format, lenient, fields, **dialect, grades=grades)
    only = _only(as_runs(run, run_format, lenient, fields, **dialect))
    if queries is not None:
        judged = qrels_by_id(judged, queries, ignore_case, "error") or judged
        only = run_by_id(only, queries, ignore_case) or only
    ours = measure_named(measure, rel) if isinstance(measure, str) else measure
    reading = {"lenient": lenient, "run_format": run_format, "fields": fields, **dialect}
    options: dict[str, Any] = {"extras": extras, "baseline": baseline, **reading}

    def mean(of: Measure, conventions: Conventions, warn: bool = False) -> float:
        topics = None if topic is None else [topic]
        evaluator = Evaluator(judged, [of], conventions=conventions, topics=topics, warn=warn, **options)
        return evaluator.evaluate(only).mean()

    value = mean(ours, Conventions(), warn=True)
    named = {name: measure_named(measure, rel, name) if isinstance(measure, str) else measure for name in names}
    views = [_view(name, PEERS[name], named[name], judged, mean, topic) for name in names]
    query = "" if topic is None or queries is None else queries.get(topic, "")
    return Views(str(ours), only.name, topic, value, views, query)


def _view(name: str, peer: Peer, ours: Measure, judged: Qrels, mean: Any, topic: str | None) -> View:
    try:
        theirs = peer.measure(ours, float(judged.grade.max(initial=0)))
        if theirs is None:
            return View(name, None, "has no such measure")
        conventions = peer.conventions_for(ours)
        value = mean(theirs, conventions)
    except CranfieldError as error:
        return View(name, None, f"gives no value: {error}")
    return View(name, None if value != value else value, _differs(peer, ours, theirs, conventions, topic))


def _differs(peer: Peer, ours: Measure, theirs: Measure, conventions: Conventions, topic: str | None) -> str:
    """What a program does otherwise than we do by default, in words."""
    defaults, rule = Conventions(), peer.rule(ours)
    answers = {key: getattr(conventions, key) for key in CONVENTIONS if topic is None or key not in OVER_TOPICS}
    words = [
        CONVENTIONS[key].get(answer, f"{key}={answer}")
        for key, answer in answers.items()
        if answer != getattr(defaults, key)
    ]
    for key, value in theirs.values.items():
        if value != ours.values[key]:
            shown = theirs.parameters[key].show(value) if value is not None else "none"
            words.append(PARAMETERS.get(key, {}).get(str(value), f"{key}={shown}"))
    words += [note for note in (rule.note if rule else "", peer.note) if note]
    words += peer.differences(ours)
    return "; ".join(words) or "nothing"
