"""The verbs: what the command line and the web app both call. Each takes plain values and returns plain ones.

A verb opens files and puts the library's parts together; how its answer looks is the caller's affair. One file a kind of
work; a verb is loaded from its file when it is first asked for, so that scoring a run loads nothing of reports and pools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cranfield.workspace.collecting import (
        collection_check,
        collection_diff,
        collection_list,
        collection_show,
        collection_stamp,
        collection_stats,
        draw_stats,
        import_,
    )
    from cranfield.workspace.comparing import (
        compare_,
        design_,
        draw_power,
        draw_ranks,
        draw_stability,
        gate_,
        leaderboard_,
        report_,
        scored,
        stability_,
    )
    from cranfield.workspace.files import check_, convert_, draw_chart, read_topics, write_together
    from cranfield.workspace.listing import (
        explain_measure,
        list_formats,
        list_fusions,
        list_measures,
        list_strategies,
        list_systems,
        presets,
    )
    from cranfield.workspace.pooling import (
        draw_simulation,
        estimates_,
        judging,
        pool_,
        pool_qrels,
        pool_statistics,
        reuse_,
        simulate_,
        stopping_,
        strangers,
        thin_,
    )
    from cranfield.workspace.running import fuse_, run_
    from cranfield.workspace.scoring import (
        correlate_,
        correlate_systems,
        curve_,
        draw,
        eval_,
        explain_,
        explain_as_,
        reproduce_,
        slice_,
    )

__all__ = [
    "check_",
    "collection_check",
    "collection_diff",
    "collection_list",
    "collection_show",
    "collection_stamp",
    "collection_stats",
    "compare_",
    "convert_",
    "correlate_",
    "correlate_systems",
    "curve_",
    "design_",
    "draw",
    "draw_chart",
    "draw_power",
    "draw_ranks",
    "draw_simulation",
    "draw_stability",
    "draw_stats",
    "estimates_",
    "eval_",
    "explain_",
    "explain_as_",
    "explain_measure",
    "fuse_",
    "gate_",
    "import_",
    "judging",
    "leaderboard_",
    "list_formats",
    "list_fusions",
    "list_measures",
    "list_strategies",
    "list_systems",
    "pool_",
    "pool_qrels",
    "pool_statistics",
    "presets",
    "read_topics",
    "report_",
    "reproduce_",
    "reuse_",
    "run_",
    "scored",
    "simulate_",
    "slice_",
    "stability_",
    "stopping_",
    "strangers",
    "thin_",
    "write_together",
]

_HOMES = {
    "check_": "files",
    "convert_": "files",
    "draw_chart": "files",
    "read_topics": "files",
    "write_together": "files",
    "correlate_": "scoring",
    "correlate_systems": "scoring",
    "curve_": "scoring",
    "draw": "scoring",
    "eval_": "scoring",
    "explain_": "scoring",
    "explain_as_": "scoring",
    "reproduce_": "scoring",
    "slice_": "scoring",
    "compare_": "comparing",
    "design_": "comparing",
    "draw_power": "comparing",
    "draw_ranks": "comparing",
    "draw_stability": "comparing",
    "gate_": "comparing",
    "leaderboard_": "comparing",
    "report_": "comparing",
    "scored": "comparing",
    "stability_": "comparing",
    "collection_check": "collecting",
    "collection_diff": "collecting",
    "collection_list": "collecting",
    "collection_show": "collecting",
    "collection_stamp": "collecting",
    "collection_stats": "collecting",
    "draw_stats": "collecting",
    "import_": "collecting",
    "fuse_": "running",
    "run_": "running",
    "draw_simulation": "pooling",
    "estimates_": "pooling",
    "judging": "pooling",
    "pool_": "pooling",
    "pool_qrels": "pooling",
    "pool_statistics": "pooling",
    "reuse_": "pooling",
    "simulate_": "pooling",
    "stopping_": "pooling",
    "strangers": "pooling",
    "thin_": "pooling",
    "explain_measure": "listing",
    "list_formats": "listing",
    "list_fusions": "listing",
    "list_measures": "listing",
    "list_strategies": "listing",
    "list_systems": "listing",
    "presets": "listing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cranfield.workspace' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"cranfield.workspace.{_HOMES[name]}"), name)
