"""`explain`: how a score came about, rank by rank; `explain_as`: the same run under other programs' conventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.conventions import Conventions
from cranfield.base.errors import ConventionError, CranfieldError, DataError
from cranfield.base.results import Answer, Layout, Table, plain
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.explanation import Explanation, explain_topic
from cranfield.evaluation.measures import measure as measure_named
from cranfield.evaluation.options import ReadingOptions
from cranfield.evaluation.presets import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Unpack

    from cranfield.base.results import Part
    from cranfield.base.run import Run
    from cranfield.evaluation.measures import Measure
    from cranfield.evaluation.options import OptionsWithoutWeights
    from cranfield.evaluation.presets import Peer


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
OVER_TOPICS = ("missing", "no_relevant")  # conventions that do not matter for a single topic
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
        "returned": "divided by the number of documents returned, if below k",
        "found": "divided by the relevant documents found",
        "cut": "divided by at most k documents",
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
    full: bool = False,
    **options: Unpack[OptionsWithoutWeights],
) -> Explanation:
    """Explain a run's score on one topic, rank by rank.

    `qrels`, `run` and the options are those of `evaluate`, or `qrels` is an `Evaluator` with this measure. The topic
    may be left out if there is only one. Long lists are folded to the ranks that matter; `full` shows all ranks.

    >>> table = explain({"q": {"a": 1, "b": 3}}, {"q": {"a": 3, "b": 2}}, "nDCG@10", "q")
    >>> round(table.value, 4), table.worked
    (0.7967, 'DCG / ideal DCG = 2.8928 / 3.6309 = 0.7967')
    """
    evaluator = qrels if isinstance(qrels, Evaluator) else Evaluator(qrels, [measure], **options)
    name = str(measure) if str(measure) in evaluator.measures else next(iter(evaluator.measures))
    conventions = options.get("conventions")
    preset = conventions if isinstance(conventions, str) else None
    only, topic_id = _only(evaluator.open(run)), _topic(evaluator, topic)
    evaluator.warn_of(only)
    return explain_topic(evaluator, only, name, topic_id, full, preset)


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
class PeerScore:
    """The value under one program's conventions; None if it has no such measure or fails."""

    name: str
    value: float | None
    differs: str


@dataclass(frozen=True)
class PeerScores(Answer):
    """One run's score under the conventions of several programs. Prints as a table; `to_dict` is for JSON."""

    measure: str
    run: str
    topic: str | None
    ours: float
    views: list[PeerScore]
    query: str = ""  # of the topic, if known

    ends_with_notes = True

    def __getitem__(self, name: str) -> float | None:
        return {view.name: view.value for view in self.views}[name]

    def plain(self, how: Layout) -> dict[str, Any]:
        """The measure, and under `as` the value for each preset."""
        return {"measure": self.measure, "as": plain({view.name: view.value for view in self.views}, how.digits)}

    def title(self) -> str:
        """Measure, run, topic and the value under the default conventions."""
        query = f" ({self.query})" if self.query else ""
        where = "mean over topics" if self.topic is None else f"topic {self.topic}{query}"
        return f"{self.measure} of {self.run}, {where}: {self.ours:.4f} by default"

    def notes(self, shell: bool = False) -> list[str]:
        """How far the values differ."""
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
    baseline: Any = None,
    qrels_format: str | None = None,
    run_format: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> PeerScores:
    """Score a run as other programs would: the mean over topics, or one topic. The options are those of `evaluate`.

    >>> views = explain_as({"q": {"a": 1}}, {"q": {"a": 1, "b": 1}}, "RR", presets=["trec_eval-10", "insertion-order"])
    >>> views.to_dict()
    {'measure': 'RR', 'as': {'trec_eval-10': 0.5, 'insertion-order': 1.0}}
    """
    names = list(PEERS) if presets == "all" else [presets] if isinstance(presets, str) else list(presets)
    for name in names:
        if name not in PEERS:
            raise ConventionError(f"no preset {name!r}; there are {', '.join(PEERS)}")
    unknown = [option for option in reading if option not in ReadingOptions.__annotations__]
    if unknown:
        raise TypeError(f"explain_as() got an unexpected keyword argument {unknown[0]!r}")
    options: Any = {"topics": None if topic is None else [topic], "baseline": baseline, "run_format": run_format}

    def named(preset: str) -> Measure:
        return measure_named(measure, rel, preset) if isinstance(measure, str) else measure

    ours = Evaluator(qrels, [named("")], qrels_format=qrels_format, **options, **reading)
    only = _only(ours.open(run))
    value = ours.evaluate(only).mean()
    options |= {key: value for key, value in reading.items() if key not in ("grades", "queries", "ignore_case")}

    def mean(of: Measure, conventions: Conventions) -> float:
        return Evaluator(ours.qrels, [of], conventions=conventions, warn=False, **options).evaluate(only).mean()

    highest = float(ours.qrels.grade.max(initial=0))
    views = [_peer_score(PEERS[name], named(name), highest, mean, topic) for name in names]
    query = "" if topic is None else ours.queries.get(topic, "")
    return PeerScores(str(named("")), only.name, topic, value, views, query)


def _peer_score(peer: Peer, ours: Measure, highest: float, mean: Any, topic: str | None) -> PeerScore:
    try:
        theirs = peer.measure(ours, highest)
        if theirs is None:
            return PeerScore(peer.name, None, "has no such measure")
        conventions = peer.conventions_for(ours)
        value = mean(theirs, conventions)
    except CranfieldError as error:
        return PeerScore(peer.name, None, f"gives no value: {error}")
    return PeerScore(peer.name, None if value != value else value, _differs(peer, ours, theirs, conventions, topic))


def _differs(peer: Peer, ours: Measure, theirs: Measure, conventions: Conventions, topic: str | None) -> str:
    """The differences between a program and our defaults, in words."""
    defaults, rule = Conventions(), peer.rule(ours)
    answers = {key: getattr(conventions, key) for key in CONVENTIONS if topic is None or key not in OVER_TOPICS}
    changes = {key: answer for key, answer in answers.items() if answer != getattr(defaults, key)}
    words = [CONVENTIONS[key].get(answer, f"{key}={answer}") for key, answer in changes.items()]
    for key, value in theirs.values.items():
        if value != ours.values[key]:
            text = theirs.parameters[key].show(value) if value is not None else "none"
            words.append(PARAMETERS.get(key, {}).get(str(value), f"{key}={text}"))
    words += [note for note in (rule.note if rule else "", peer.note) if note]
    words += peer.differences(ours)
    return "; ".join(words) or "nothing"
