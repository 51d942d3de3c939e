"""The same run under other programs' conventions, and a line for each that says what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.conventions import Conventions
from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.evaluate import Evaluator
from cranfield.explain.render import html_of, markdown_of, text_of
from cranfield.formats import as_qrels, as_runs
from cranfield.measures import measure as measure_named
from cranfield.peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.collection import Extras, Qrels
    from cranfield.measures import Measure
    from cranfield.peers import Peer


CONVENTIONS: dict[str, dict[Any, str]] = {
    "ties": {
        "input-order": "ties keep the order given",
        "document-ascending": "ties by document id, ascending",
        "averaged": "ties averaged over their orders",
    },
    "scores": {"single": "scores compared as 32-bit floats"},
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


@dataclass(frozen=True)
class View:
    """One program's value: None where it has no such measure, or stops."""

    name: str
    value: float | None
    differs: str


@dataclass(frozen=True)
class Views:
    """One run's score under several programs' conventions. Prints as a table; `to_dict` is for JSON."""

    measure: str
    run: str
    topic: str | None
    ours: float
    views: list[View]

    left = 3

    def __getitem__(self, name: str) -> float | None:
        return self.to_dict()["as"][name]  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        """The measure, and under `as` a value for each convention."""
        return {"measure": self.measure, "as": {view.name: view.value for view in self.views}}

    def title(self) -> str:
        """What this is, and our own value."""
        where = "mean over topics" if self.topic is None else f"topic {self.topic}"
        return f"{self.measure} of {self.run}, {where}: {self.ours:.4f} by default"

    def above(self) -> list[str]:
        """Nothing."""
        return []

    def notes(self) -> list[str]:
        """How far the values lie apart."""
        values = [view.value for view in self.views if view.value is not None]
        if len(values) < 2:
            return []
        kinds = len({round(value, 4) for value in values})
        if kinds == 1:
            return [f"all {len(values)} agree to four decimals"]
        return [f"{kinds} different values, from {min(values):.4f} to {max(values):.4f}"]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The table."""
        rows = [[view.name, "–" if view.value is None else f"{view.value:.4f}", view.differs] for view in self.views]
        return ["as", self.measure, "what differs from the default"], rows

    def to_text(self, limit: int | None = None) -> str:
        """For a terminal."""
        return text_of(self, limit)

    def to_markdown(self) -> str:
        """For a page or a report."""
        return markdown_of(self)

    def to_html(self, page: bool = False) -> str:
        """A table; `page` makes it a whole page."""
        return html_of(self, page)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return self.to_text()


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
    extras: Extras | None = None,
    baseline: Any = None,
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
    judged = as_qrels(qrels, qrels_format, lenient)
    runs = as_runs(run, run_format, lenient)
    if len(runs) != 1:
        raise DataError(f"expected one run to explain, found {len(runs)}")
    given = measure_named(measure, rel) if isinstance(measure, str) else measure

    def mean(what: Measure, conventions: Conventions) -> float:
        topics = None if topic is None else [topic]
        evaluator = Evaluator(
            judged,
            [what],
            conventions=conventions,
            topics=topics,
            lenient=lenient,
            run_format=run_format,
            extras=extras,
            baseline=baseline,
        )
        return evaluator.evaluate(runs).mean()

    ours = mean(given, Conventions())
    views = [_view(name, PEERS[name], given, judged, mean, topic) for name in names]
    return Views(str(given), runs[0].name, topic, ours, views)


def _view(name: str, peer: Peer, given: Measure, judged: Qrels, mean: Any, topic: str | None) -> View:
    try:
        theirs = peer.measure(given, float(judged.grade.max(initial=0)))
        if theirs is None:
            return View(name, None, "has no such measure")
        conventions = peer.conventions_for(given)
        value = mean(theirs, conventions)
    except CranfieldError as error:
        return View(name, None, f"gives no value: {error}")
    return View(name, None if value != value else value, _differs(peer, given, theirs, conventions, topic))


def _differs(peer: Peer, given: Measure, theirs: Measure, conventions: Conventions, topic: str | None) -> str:
    """What a program does otherwise than we do by default, in words."""
    usual, rule = Conventions(), peer.rule(given)
    words = [
        said.get(getattr(conventions, key), f"{key}={getattr(conventions, key)}")
        for key, said in CONVENTIONS.items()
        if getattr(conventions, key) != getattr(usual, key) and (topic is None or key not in OVER_TOPICS)
    ]
    for key, value in theirs.values.items():
        if value != given.values[key]:
            shown = theirs.parameters[key].show(value) if value is not None else "none"
            words.append(PARAMETERS.get(key, {}).get(str(value), f"{key}={shown}"))
    words += [note for note in (rule.note if rule else "", peer.note) if note]
    return "; ".join(words) or "nothing"
