"""One score, step by step, as a table one can check with a pencil; and the same run under other programs' conventions.

It works for every measure: the running total is the measure itself, computed on the first r documents. A
measure may add columns of its own (`Measure.trace`), its ideal ranking and the last line of its formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.evaluate import Evaluator
from cranfield.explain.steps import Explanation, walk
from cranfield.explain.views import View, Views, explain_as
from cranfield.formats import as_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.collection import Extras
    from cranfield.conventions import Conventions
    from cranfield.measures import Measure
    from cranfield.run import Run

__all__ = ["Explanation", "View", "Views", "explain", "explain_as"]


def explain(
    qrels: Any,
    run: Any,
    measure: str | Measure,
    topic: str | None = None,
    *,
    rel: float | None = None,
    conventions: Conventions | str | Mapping[str, Any] | None = None,
    extras: Extras | None = None,
    full: bool = False,
    **options: Any,
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
        evaluator = Evaluator(qrels, [measure], rel=rel, conventions=conventions, extras=extras, **options)
    name = str(measure) if str(measure) in evaluator.measures else next(iter(evaluator.measures))
    preset = conventions if isinstance(conventions, str) else None
    return walk(
        evaluator,
        _only(as_runs(run, evaluator.run_format, evaluator.lenient)),
        name,
        _topic(evaluator, topic),
        full,
        preset,
    )


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
