"""ir_measures on cranfield's core: `import cranfield.compat.ir_measures`, and ir_measures and PyTerrier run on, only faster.

The import puts a provider into the default pipeline of ir_measures, behind the measures that users define and before all
others. It takes every measure to which the preset `ir_measures` gives the number of ir_measures; what is left (Compat,
RBP with p above 0.97) goes to the providers behind it. Tables are read column by column and topics are never compared
as Python objects, which is where the time goes otherwise. `uninstall` takes the provider out again.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
from ir_measures import providers
from ir_measures.util import CalcResults, Metric

from cranfield.errors import MeasureError
from cranfield.evaluate import Evaluator as Scorer
from cranfield.formats import read_run
from cranfield.measures import Measure
from cranfield.measures import measure as measure_named
from cranfield.peers import PEERS
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.kernels.table import Floats

__all__ = ["Evaluator", "Provider", "install", "provider", "uninstall"]

UTIL: Any = ir_measures.util  # it has no types
PRESET = "ir_measures"
COLUMNS = {"topic": "query_id", "document": "doc_id", "score": "score"}
FAMILY_OF_SUBTOPICS = "diversity"
DECIMALS_OF_GDEVAL = 5  # it prints so many, and ir_measures reads what is printed
WITHOUT_DEFAULT = {"Accuracy"}  # a topic without a value has none in ir_measures either


class Evaluator(providers.Evaluator):
    """Judgments indexed once, ready to score runs."""

    def __init__(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> None:
        asked = {one: _named(str(one)) for one in measures}
        diverse = [one for one, ours in asked.items() if ours is not None and ours.family == FAMILY_OF_SUBTOPICS]
        plain = [one for one in asked if one not in diverse]
        rows = None if isinstance(qrels, dict) else list(UTIL.QrelsConverter(qrels).as_namedtuple_iter())
        judged = qrels if rows is None else UTIL.QrelsConverter(rows).as_dict_of_dict()
        super().__init__(list(asked), set(judged))
        both = (plain, judged), (diverse, judged if rows is None else rows)
        self._parts = [_Part(some, source if any(judged.values()) else None) for some, source in both if some]

    def iter_calc(self, run: Any) -> Iterator[Metric]:
        """The value of each measure for each judged topic; a topic that the run lacks has the measure's default."""
        for measure, values in self._values(run):
            for topic, value in values.items():
                yield Metric(query_id=topic, measure=measure, value=value)

    def calc_aggregate(self, run: Any) -> dict[ir_measures.Measure, float | int]:
        """One number for each measure, put together by the measure's own aggregator."""
        return {measure: _aggregate(measure, values) for measure, values in self._values(run)}

    def calc(self, run: Any) -> CalcResults:
        """Both."""
        every = list(self._values(run))
        metrics = [Metric(topic, measure, value) for measure, values in every for topic, value in values.items()]
        return CalcResults({measure: _aggregate(measure, values) for measure, values in every}, metrics)

    def _values(self, run: Any) -> Iterator[tuple[ir_measures.Measure, dict[str, float]]]:
        answers = _run(run)
        for part in self._parts:
            for measure, topics, values in part.scored(answers):
                known = {t: value for t, value in zip(topics, values.tolist(), strict=True) if not math.isnan(value)}
                absent = [] if measure.NAME in WITHOUT_DEFAULT else sorted(self.qrel_qids - known.keys())
                yield measure, known | dict.fromkeys(absent, measure.DEFAULT)


class _Part:
    """Some measures over the same judgments: with their subtopics, or the last grade of each document."""

    def __init__(self, measures: list[ir_measures.Measure], qrels: Any | None) -> None:
        self.measures = measures
        self.scorer = Scorer(qrels, list(map(str, measures)), conventions=PRESET, warn=False) if qrels else None

    def scored(self, run: Run) -> Iterator[tuple[ir_measures.Measure, list[str], Floats]]:
        """Each measure with the topics and their values."""
        if self.scorer is None:
            yield from ((measure, [], np.empty(0)) for measure in self.measures)
            return
        scores = self.scorer.evaluate(run)
        for measure, values in zip(self.measures, scores.values[0], strict=True):
            yield measure, scores.topics, values.round(DECIMALS_OF_GDEVAL) if _by_gdeval(measure) else values


class Provider(providers.Provider):
    """Every measure that another provider of the default pipeline has, if the preset gives the number that it gives."""

    NAME = "cranfield"

    def supports(self, measure: Any) -> bool:
        """Whether the measure's number here is the one that it has without this provider."""
        measure.validate_params()
        ours = _named(str(measure))
        if ours is None or PEERS[PRESET].has_another_number(ours):
            return False
        return any(other.supports(measure) for other in _others())

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> Evaluator:
        return Evaluator(measures, qrels)


provider: Any = Provider()  # type: ignore[no-untyped-call, unused-ignore]


def install() -> None:
    """Put the provider into ir_measures, behind the measures that users define; done when this module is imported."""
    pipeline = ir_measures.DefaultPipeline.providers
    if provider not in pipeline:
        pipeline.insert(pipeline.index(ir_measures.runtime) + 1, provider)
        providers.registry[provider.NAME] = provider


def uninstall() -> None:
    """Take the provider out again: ir_measures computes as it did before."""
    if provider in ir_measures.DefaultPipeline.providers:
        ir_measures.DefaultPipeline.providers.remove(provider)
        del providers.registry[provider.NAME]


def _others() -> list[providers.Provider]:
    """The providers whose numbers are given: all but ranx, the last, which has other tie rules for what it shares."""
    own = (provider, ir_measures.runtime, ir_measures.ranx)
    return [one for one in ir_measures.DefaultPipeline.providers if one not in own]


@cache
def _named(text: str) -> Measure | None:
    """The measure of ours that has a name of ir_measures; None if there is none."""
    try:
        return measure_named(text, preset=PRESET)
    except MeasureError:
        return None


def _run(given: Any) -> Run:
    """A run from whatever ir_measures takes: a frame, a dict of dicts, named tuples one by one."""
    if isinstance(given, dict):
        return Run(given)
    if hasattr(given, "itertuples"):
        return read_run(given, fields=COLUMNS) if len(given) else Run({})
    return Run(UTIL.RunConverter(given).as_dict_of_dict())


def _by_gdeval(measure: ir_measures.Measure) -> bool:
    return measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2"


def _aggregate(measure: ir_measures.Measure, values: dict[str, float]) -> float | int:
    aggregator = measure.aggregator()
    for value in values.values():
        aggregator.add(value)
    return aggregator.result()


install()
