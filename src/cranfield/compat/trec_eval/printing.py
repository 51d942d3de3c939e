"""The lines: a name padded to 22 characters, a topic or `all`, and a value with four decimals.

Sums are added up one topic after the other in the order of printing, so that the last digit agrees.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compat.trec_eval.values import LOWEST

if TYPE_CHECKING:
    from cranfield.compat.trec_eval.catalogue import Kind
    from cranfield.compat.trec_eval.evaluation import Column, Evaluation


def _shape(kind: Kind, z: bool) -> str:
    """How one value of a measure is written."""
    if kind.name == "relstring":
        return "'%s'"
    return "%d" if kind.total == "sum" and not z else "%6.4f"


def _name(name: str, kind: Kind, z: bool) -> str:
    return f"Z{name:<22}" if z and kind.total != "none" else f"{name:<22}"


def topic_lines(evaluation: Evaluation) -> list[str]:
    """One block of lines for each topic."""
    z, topics = evaluation.zscores is not None, evaluation.topics
    names = [evaluation.inputs.judged.topics[topic] for topic in topics]
    columns = [(column.name, column.asked.kind, column.values) for column in evaluation.columns]
    shown = [
        column for column in columns if column[1].name not in ("runid", "num_q") and column[1].total != "geometric"
    ]
    block = "".join(f"{_name(name, kind, z).replace('%', '%%')}\t%s\t{_shape(kind, z)}\n" for name, kind, _ in shown)
    chosen = [
        [values[topic] for topic in topics] if isinstance(values, list) else values[topics].tolist()
        for _, _, values in shown
    ]
    gaps = np.any([np.isnan(values[topics]) for _, kind, values in shown if kind.name != "relstring"], axis=0)
    lines = []
    for name, gap, row in zip(names, np.broadcast_to(gaps, len(names)), zip(*chosen, strict=True), strict=False):
        if gap:
            shapes = zip(shown, row, strict=True)
            lines += [f"{_name(n, k, z)}\t{name}\t{_text(k, value, z)}\n" for (n, k, _), value in shapes]
        else:
            lines.append(block % tuple(part for value in row for part in (name, value)))
    return lines


def _text(kind: Kind, value: Any, z: bool) -> str:
    """One value; a NaN shows its sign, as in C."""
    if value != value:
        return "  -nan" if math.copysign(1.0, value) < 0 else "   nan"
    text: str = _shape(kind, z) % value
    return text


def summary(evaluation: Evaluation) -> list[str]:
    """One line for each measure over all topics."""
    z = evaluation.zscores is not None
    judged, evaluated = len(evaluation.ids), len(evaluation.topics)
    topics = judged if evaluation.options.complete else evaluated
    lines = []
    for column in evaluation.columns:
        kind = column.asked.kind
        if kind.name == "runid":
            lines.append(f"{'runid':<22}\tall\t{evaluation.inputs.tag}\n")
        elif kind.name == "num_q":
            lines.append(f"Z{'num_q':<22}\tall\t{topics:.4f}\n" if z else f"{'num_q':<22}\tall\t{topics}\n")
        elif kind.total != "none":
            value = _total(evaluation, column, topics, topics - evaluated)
            lines.append(f"{_name(column.name, kind, z)}\tall\t{_text(kind, value, z)}\n")
    return lines


def _total(evaluation: Evaluation, column: Column, topics: int, unseen: int) -> float:
    """The mean, the sum of a count, or the geometric mean, of one measure."""
    kind = column.asked.kind
    if kind.name == "num_rel" and evaluation.options.complete:  # counted anew, whatever -l says
        return float((np.trunc(evaluation.qrels.grade) > 0).sum())
    values = column.values[evaluation.topics]
    added = float(np.cumsum(values)[-1])
    if kind.total == "sum":
        return added
    if kind.total == "geometric":
        return math.exp((added + unseen * math.log(LOWEST)) / topics)
    return added / topics
