"""The options of functions that read and score runs, for type checkers.

No evaluation imports this module when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.conventions import ConventionChanges
from cranfield.formats.csv_tables import DialectOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.base.conventions import Conventions
    from cranfield.base.qrels import Extras
    from cranfield.evaluation.topics import TopicWeights
    from cranfield.formats.format import Fields


class ReadingOptions(DialectOptions, total=False):
    """How judgments and runs are read."""

    lenient: bool
    fields: Fields | None
    grades: Mapping[float, float] | str | None
    ignore_case: bool
    queries: Mapping[str, str] | None
    extras: Extras | None


class BasicOptions(ReadingOptions, ConventionChanges, total=False):
    """Options of `evaluate` and single conventions, without `rel`, `baseline` and `weights`."""

    topics: Iterable[str] | None
    conventions: Conventions | str | Mapping[str, Any] | None
    threads: int | None
    aggregate: str | None
    warn: bool
    qrels_format: str | None  # the formats of files if detection should not decide
    run_format: str | None


class OptionsWithoutRel(BasicOptions, total=False):
    """All options of `evaluate` except `rel`."""

    baseline: Any
    weights: Mapping[str, float] | TopicWeights | str | None


class OptionsWithoutBaseline(BasicOptions, total=False):
    """All options of `evaluate` except `baseline`."""

    rel: float | None
    weights: Mapping[str, float] | TopicWeights | str | None


class OptionsWithoutWeights(BasicOptions, total=False):
    """All options of `evaluate` except `weights`."""

    rel: float | None
    baseline: Any


class EvaluatorOptions(OptionsWithoutWeights, total=False):
    """All keyword options of `evaluate` and `Evaluator`, including single conventions."""

    weights: Mapping[str, float] | TopicWeights | str | None
