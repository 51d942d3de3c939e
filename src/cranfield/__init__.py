"""Find out how good a search system is, and whether a new one is really better.

The public names, in the order of the flow. Each is loaded when it is first used.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # a type checker takes it for True; importing typing would cost more than all the rest here

if TYPE_CHECKING:
    from typing import Any

    from cranfield import online as online
    from cranfield.bounds import bounds as bounds
    from cranfield.collection import Collection as Collection
    from cranfield.collection import Document as Document
    from cranfield.collection import Extras as Extras
    from cranfield.collection import Qrels as Qrels
    from cranfield.collection import Topic as Topic
    from cranfield.compare import Comparison as Comparison
    from cranfield.compare import compare as compare
    from cranfield.compare.leaderboard import Leaderboard as Leaderboard
    from cranfield.compare.leaderboard import leaderboard as leaderboard
    from cranfield.conventions import PRESETS as PRESETS
    from cranfield.conventions import Conventions as Conventions
    from cranfield.correlate import correlate as correlate
    from cranfield.curves import curves as curves
    from cranfield.design import design as design
    from cranfield.errors import CranfieldError as CranfieldError
    from cranfield.errors import DataWarning as DataWarning
    from cranfield.evaluate import Evaluator as Evaluator
    from cranfield.evaluate import evaluate as evaluate
    from cranfield.explain import explain as explain
    from cranfield.explain import explain_as as explain_as
    from cranfield.formats import read_qrels as read_qrels
    from cranfield.formats import read_run as read_run
    from cranfield.formats.folder import read_collection as read_collection
    from cranfield.fuse import fuse as fuse
    from cranfield.gate import Gate as Gate
    from cranfield.gate import gate as gate
    from cranfield.hits import Hits as Hits
    from cranfield.measures import Measure as Measure
    from cranfield.measures import measure as measure
    from cranfield.measures import measures as measures
    from cranfield.pool import Pool as Pool
    from cranfield.pool import pool as pool
    from cranfield.pool.make import session as session
    from cranfield.pool.reuse import reuse as reuse
    from cranfield.pool.simulate import simulate as simulate
    from cranfield.report import report as report
    from cranfield.reproduce import reproduce as reproduce
    from cranfield.run import Run as Run
    from cranfield.scores import Scores as Scores
    from cranfield.sides import side_by_side as side_by_side
    from cranfield.slices import slices as slices
    from cranfield.stability import stability as stability
    from cranfield.stats.overlap import rbo as rbo
    from cranfield.tune import tune as tune

__version__ = "0.1.0"

_HOMES = {
    "Document": "collection",
    "Topic": "collection",
    "Collection": "collection",
    "read_collection": "formats.folder",
    "Qrels": "collection",
    "Extras": "collection",
    "Run": "run",
    "read_qrels": "formats",
    "read_run": "formats",
    "Hits": "hits",
    "Measure": "measures",
    "measure": "measures",
    "measures": "measures",
    "Conventions": "conventions",
    "PRESETS": "conventions",
    "Evaluator": "evaluate",
    "evaluate": "evaluate",
    "Scores": "scores",
    "bounds": "bounds",
    "curves": "curves",
    "fuse": "fuse",
    "tune": "tune",
    "slices": "slices",
    "explain": "explain",
    "explain_as": "explain",
    "side_by_side": "sides",
    "correlate": "correlate",
    "rbo": "stats.overlap",
    "reproduce": "reproduce",
    "compare": "compare",
    "Comparison": "compare",
    "leaderboard": "compare.leaderboard",
    "Leaderboard": "compare.leaderboard",
    "stability": "stability",
    "design": "design",
    "gate": "gate",
    "Gate": "gate",
    "pool": "pool",
    "Pool": "pool",
    "session": "pool.make",
    "simulate": "pool.simulate",
    "reuse": "pool.reuse",
    "report": "report",
    "CranfieldError": "errors",
    "DataWarning": "errors",
}

_ROOMS = ("online",)  # reached by their own names, as cranfield.online.interleave

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


def _picture(answer: Any) -> Any:
    import importlib

    return importlib.import_module("cranfield.report.notebook").picture(answer)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_ROOMS])


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its name after running it; where a function shares
        # its module's name (evaluate, measures), the function is what people mean by it.
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        if name == "answer":
            value.picture = _picture  # a room above draws what results show in notebooks; only the door may name it
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
