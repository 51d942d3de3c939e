"""Find out how good a search system is, and whether a new one is really better.

The public names, in the order of the flow. Each is loaded when it is first used.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # a type checker takes it for True; importing typing would cost more than all the rest here

if TYPE_CHECKING:
    from typing import Any

    from cranfield.bounds import bounds
    from cranfield.collection import Collection, Document, Extras, Qrels, Topic
    from cranfield.compare import Comparison, compare
    from cranfield.compare.leaderboard import Leaderboard, leaderboard
    from cranfield.conventions import PRESETS, Conventions
    from cranfield.correlate import correlate
    from cranfield.curves import curves
    from cranfield.design import design
    from cranfield.errors import CranfieldError
    from cranfield.evaluate import Evaluator, evaluate
    from cranfield.explain import explain, explain_as
    from cranfield.formats import read_qrels, read_run
    from cranfield.formats.folder import read_collection
    from cranfield.fuse import fuse
    from cranfield.gate import Gate, gate
    from cranfield.hits import Hits
    from cranfield.measures import Measure, measure, measures
    from cranfield.pool import Pool, pool
    from cranfield.pool.make import session
    from cranfield.pool.reuse import reuse
    from cranfield.pool.simulate import simulate
    from cranfield.reproduce import reproduce
    from cranfield.run import Run
    from cranfield.scores import Scores
    from cranfield.slices import slices
    from cranfield.stability import stability
    from cranfield.tune import tune

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
    "CranfieldError": "errors",
}

__all__ = [
    "PRESETS",
    "Collection",
    "Comparison",
    "Conventions",
    "CranfieldError",
    "Document",
    "Evaluator",
    "Extras",
    "Gate",
    "Hits",
    "Leaderboard",
    "Measure",
    "Pool",
    "Qrels",
    "Run",
    "Scores",
    "Topic",
    "bounds",
    "compare",
    "correlate",
    "curves",
    "design",
    "evaluate",
    "explain",
    "explain_as",
    "fuse",
    "gate",
    "leaderboard",
    "measure",
    "measures",
    "pool",
    "rbo",
    "read_collection",
    "read_qrels",
    "read_run",
    "reproduce",
    "reuse",
    "session",
    "simulate",
    "slices",
    "stability",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cranfield' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"cranfield.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its name after running it; where a function shares
        # its module's name (evaluate, measures), the function is what people mean by it.
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
