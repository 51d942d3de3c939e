"""Find out how good a search system is, and whether a new one is really better.

The public names, in the order of the flow. Each is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # a type checker takes it for True; importing typing would cost more than all the rest here

if TYPE_CHECKING:
    from typing import Any

    from cranfield import experiments as experiments
    from cranfield.base.collection import Collection as Collection
    from cranfield.base.collection import Document as Document
    from cranfield.base.collection import Topic as Topic
    from cranfield.base.conventions import PRESETS as PRESETS
    from cranfield.base.conventions import Conventions as Conventions
    from cranfield.base.errors import CranfieldError as CranfieldError
    from cranfield.base.errors import DataWarning as DataWarning
    from cranfield.base.qrels import Extras as Extras
    from cranfield.base.qrels import Qrels as Qrels
    from cranfield.base.run import Run as Run
    from cranfield.comparison.compare import Comparison as Comparison
    from cranfield.comparison.compare import compare as compare
    from cranfield.comparison.correlate import correlate as correlate
    from cranfield.comparison.design import design as design
    from cranfield.comparison.gate.gate import Gate as Gate
    from cranfield.comparison.gate.gate import gate as gate
    from cranfield.comparison.leaderboard import Leaderboard as Leaderboard
    from cranfield.comparison.leaderboard import leaderboard as leaderboard
    from cranfield.comparison.reproduce import reproduce as reproduce
    from cranfield.comparison.stability import stability as stability
    from cranfield.evaluation.bounds import bounds as bounds
    from cranfield.evaluation.curves import curves as curves
    from cranfield.evaluation.evaluate import Evaluator as Evaluator
    from cranfield.evaluation.evaluate import evaluate as evaluate
    from cranfield.evaluation.explain import explain as explain
    from cranfield.evaluation.explain import explain_as as explain_as
    from cranfield.evaluation.hits import Hits as Hits
    from cranfield.evaluation.measures import Measure as Measure
    from cranfield.evaluation.measures import measure as measure
    from cranfield.evaluation.measures import measures as measures
    from cranfield.evaluation.scores import Scores as Scores
    from cranfield.evaluation.side_by_side import side_by_side as side_by_side
    from cranfield.evaluation.slices import slices as slices
    from cranfield.evaluation.topics import DesignWeights as DesignWeights
    from cranfield.formats import read_qrels as read_qrels
    from cranfield.formats import read_run as read_run
    from cranfield.formats.collection_folder import read_collection as read_collection
    from cranfield.pooling.pool import Pool as Pool
    from cranfield.pooling.pool import pool as pool
    from cranfield.pooling.pool import session as session
    from cranfield.pooling.reuse import reuse as reuse
    from cranfield.pooling.simulation import simulate as simulate
    from cranfield.reports.report import report as report
    from cranfield.retrieval.fusion import fuse as fuse
    from cranfield.retrieval.tune import tune as tune
    from cranfield.stats.overlap import rbo as rbo

__version__ = "0.1.0"

_HOMES = {
    "Document": "base.collection",
    "Topic": "base.collection",
    "Collection": "base.collection",
    "read_collection": "formats.collection_folder",
    "Qrels": "base.qrels",
    "Extras": "base.qrels",
    "Run": "base.run",
    "read_qrels": "formats",
    "read_run": "formats",
    "Hits": "evaluation.hits",
    "Measure": "evaluation.measures",
    "measure": "evaluation.measures",
    "measures": "evaluation.measures",
    "Conventions": "base.conventions",
    "PRESETS": "base.conventions",
    "Evaluator": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "Scores": "evaluation.scores",
    "DesignWeights": "evaluation.topics",
    "bounds": "evaluation.bounds",
    "curves": "evaluation.curves",
    "fuse": "retrieval.fusion",
    "tune": "retrieval.tune",
    "slices": "evaluation.slices",
    "explain": "evaluation.explain",
    "explain_as": "evaluation.explain",
    "side_by_side": "evaluation.side_by_side",
    "correlate": "comparison.correlate",
    "rbo": "stats.overlap",
    "reproduce": "comparison.reproduce",
    "compare": "comparison.compare",
    "Comparison": "comparison.compare",
    "leaderboard": "comparison.leaderboard",
    "Leaderboard": "comparison.leaderboard",
    "stability": "comparison.stability",
    "design": "comparison.design",
    "gate": "comparison.gate.gate",
    "Gate": "comparison.gate.gate",
    "pool": "pooling.pool",
    "Pool": "pooling.pool",
    "session": "pooling.pool",
    "simulate": "pooling.simulation",
    "reuse": "pooling.reuse",
    "report": "reports.report",
    "CranfieldError": "base.errors",
    "DataWarning": "base.errors",
}

_ROOMS = ("experiments",)  # reached by their own names, as in cranfield.experiments.interleave

if not TYPE_CHECKING:
    __all__ = list(_HOMES)  # a type checker takes the names imported above, as each is imported under its own name


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _ROOMS:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}")
    import importlib

    if name in _ROOMS:
        return importlib.import_module(f"cranfield.{name}")
    value = getattr(importlib.import_module(f"cranfield.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def _draw_chart(result: Any) -> str:
    """The chart of a result as HTML, empty if it has none.

    Results call this function, so that they need not import `reports`.
    """
    import importlib

    chart: str = importlib.import_module("cranfield.reports.result_charts").picture(result)
    return chart


def _open_judgments(word: str) -> Any:
    """The judgments of a log, a version or a workspace; any other word unchanged.

    `formats` calls this function, so that it need not import `inputs` and `judging`.
    """
    import importlib

    return importlib.import_module("cranfield.inputs.logs").judgments_of(word)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_ROOMS])
