"""ir_measures on cranfield's core: `import cranfield.compat.ir_measures`, and ir_measures and PyTerrier run on, only faster.

The import puts a provider into the default pipeline of ir_measures, behind the measures that users define and before all
others. It handles every measure for which the preset `ir_measures` gives the same number; the others (Compat, RBP with p
above 0.97) go to the following providers. It is fast because it reads tables column by column and never compares topics
as Python objects. `uninstall` removes the provider.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import ir_measures
from ir_measures import providers
from ir_measures.util import CalcResults, Metric

from cranfield.base.errors import MeasureError
from cranfield.base.run import Run
from cranfield.evaluation.evaluate import Evaluator as Scorer
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures import measure as measure_named
from cranfield.evaluation.presets import PEERS
from cranfield.formats import read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.base.kernels.table import Floats

__all__ = ["Provider", "ProviderEvaluator", "install", "provider", "uninstall"]

UTIL: Any = ir_measures.util  # it has no types
PRESET = "ir_measures"
COLUMNS = {"topic": "query_id", "document": "doc_id", "score": "score"}
FAMILY_OF_SUBTOPICS = "diversity"
DECIMALS_OF_GDEVAL = 5  # it prints so many, and ir_measures reads what is printed
WITHOUT_DEFAULT = {"Accuracy"}  # a topic without a value has none in ir_measures either


class ProviderEvaluator(providers.Evaluator):
    """Judgments indexed once, ready to score runs."""

    def __init__(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> None:
        ours_by_theirs = {one: _named(str(one)) for one in measures}
        ours = {one: measure for one, measure in ours_by_theirs.items() if measure is not None}
        diverse = [one for one, measure in ours.items() if measure.family == FAMILY_OF_SUBTOPICS]
        plain = [one for one in ours_by_theirs if one not in diverse]
        rows = None if isinstance(qrels, dict) else list(UTIL.QrelsConverter(qrels).as_namedtuple_iter())
        judged = qrels if rows is None else UTIL.QrelsConverter(rows).as_dict_of_dict()
        super().__init__(list(ours_by_theirs), set(judged))
        # measures of subtopics need the rows, the others the last grade of each document
        both = (plain, judged), (diverse, judged if rows is None else rows)
        self._parts = [(some, _scorer(some, source) if any(judged.values()) else None) for some, source in both if some]

    def iter_calc(self, run: Any) -> Iterator[Metric]:
        """The value of each measure for each judged topic; a topic that the run lacks has the measure's default."""
        for measure, values in self._values(run):
            for topic, value in values.items():
                yield Metric(query_id=topic, measure=measure, value=value)

    def calc_aggregate(self, run: Any) -> dict[ir_measures.Measure, float | int]:
        """One number per measure, computed by the measure's own aggregator."""
        return {measure: _aggregate(measure, values) for measure, values in self._values(run)}

    def calc(self, run: Any) -> CalcResults:
        """The aggregates and the values per topic."""
        every = list(self._values(run))
        metrics = [Metric(topic, measure, value) for measure, values in every for topic, value in values.items()]
        return CalcResults({measure: _aggregate(measure, values) for measure, values in every}, metrics)

    def _values(self, run: Any) -> Iterator[tuple[ir_measures.Measure, dict[str, float]]]:
        answers = _run(run)
        for measures, scorer in self._parts:
            scores = None if scorer is None else scorer.evaluate(answers)
            for m, measure in enumerate(measures):
                defined = {} if scores is None else _defined(measure, scores.topics, scores.values[0, m])
                absent = [] if measure.NAME in WITHOUT_DEFAULT else sorted(self.qrel_qids - defined.keys())
                yield measure, defined | dict.fromkeys(absent, measure.DEFAULT)


class Provider(providers.Provider):
    """Supports every measure of the default pipeline for which the preset gives the same number."""

    NAME = "cranfield"

    def supports(self, measure: Any) -> bool:
        """Whether the measure has the same number with and without this provider."""
        measure.validate_params()
        ours = _named(str(measure))
        if ours is None or PEERS[PRESET].has_another_number(ours):
            return False
        return any(other.supports(measure) for other in _others())

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> ProviderEvaluator:
        return ProviderEvaluator(measures, qrels)


provider: Any = Provider()  # type: ignore[no-untyped-call, unused-ignore]


def install() -> None:
    """Add the provider to ir_measures, after user-defined measures; importing this module does so."""
    pipeline = ir_measures.DefaultPipeline.providers
    if provider not in pipeline:
        pipeline.insert(pipeline.index(ir_measures.runtime) + 1, provider)
        providers.registry[provider.NAME] = provider


def uninstall() -> None:
    """Remove the provider: ir_measures computes as before."""
    if provider in ir_measures.DefaultPipeline.providers:
        ir_measures.DefaultPipeline.providers.remove(provider)
        del providers.registry[provider.NAME]


def _others() -> list[providers.Provider]:
    """The providers whose numbers must be matched: all except ranx, the last, which has other tie rules."""
    own = (provider, ir_measures.runtime, ir_measures.ranx)
    return [one for one in ir_measures.DefaultPipeline.providers if one not in own]


@cache
def _named(text: str) -> Measure | None:
    """Our measure with this name of ir_measures; None if there is none."""
    try:
        return measure_named(text, preset=PRESET)
    except MeasureError:
        return None


def _run(data: Any) -> Run:
    """A run from any input of ir_measures: a frame, a dict of dicts, or named tuples."""
    if isinstance(data, dict):
        return Run(data)
    if hasattr(data, "itertuples"):
        return read_run(data, fields=COLUMNS) if len(data) else Run({})
    return Run(UTIL.RunConverter(data).as_dict_of_dict())


def _scorer(measures: list[ir_measures.Measure], qrels: Any) -> Scorer:
    return Scorer(qrels, list(map(str, measures)), conventions=PRESET, warn=False)


def _defined(measure: ir_measures.Measure, topics: list[str], values: Floats) -> dict[str, float]:
    """The values of the topics that have one."""
    by_gdeval = measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2"
    numbers = (values.round(DECIMALS_OF_GDEVAL) if by_gdeval else values).tolist()
    return {topic: number for topic, number in zip(topics, numbers, strict=True) if not math.isnan(number)}


def _aggregate(measure: ir_measures.Measure, values: dict[str, float]) -> float | int:
    aggregator = measure.aggregator()
    for value in values.values():
        aggregator.add(value)
    return aggregator.result()


install()
