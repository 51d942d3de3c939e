"""Scores: one number per run × measure × topic, with what is needed to trust it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.conventions import Conventions
    from cranfield.kernels.table import Floats
    from cranfield.measures import Measure

__all__ = ["Absent", "Scores"]


@dataclass
class Absent:
    """Topics and lines that are not what one expects, by reason."""

    missing: dict[str, list[str]] = field(default_factory=dict)  # run → topics judged but not answered
    unjudged: dict[str, list[str]] = field(default_factory=dict)  # run → topics answered but not judged
    no_relevant: list[str] = field(default_factory=list)  # topics without a relevant document
    skipped: dict[str, int] = field(default_factory=dict)  # run → malformed lines passed over (lenient reading)


class Scores:
    """What `evaluate` returns. Index it by measure, by run, or by both; a topic may follow.

    >>> from cranfield import evaluate
    >>> scores = evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": {"d1": 1}, "q2": {"d1": 2, "d2": 1}}, "RR P@1")
    >>> scores["RR"]
    array([1. , 0.5])
    >>> scores["RR", "q2"], scores.mean("P@1"), scores.means()
    (0.5, 0.5, {'RR': 0.75, 'P@1': 0.5})
    """

    def __init__(
        self,
        runs: list[str],
        tags: list[str | None],
        measures: Mapping[str, Measure],
        topics: list[str],
        values: Floats,
        counted: Any,
        retrieved: Any,
        absent: Absent,
        conventions: Conventions,
    ) -> None:
        self.runs = runs
        self.tags = tags
        self.measures = dict(measures)
        self.topics = topics
        self.values = values  # runs × measures × topics
        self.counted = counted  # runs × topics: whether the topic enters the run's mean
        self.retrieved = retrieved  # runs × topics: documents returned
        self.absent = absent
        self.conventions = conventions

    # as arrays

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Runs × measures × topics."""
        return self.values.shape

    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        parts = (key,) if isinstance(key, str) else key
        index: list[Any] = [slice(None)] * 3
        axes = (self.runs, list(self.measures), self.topics)
        for part in parts:
            for axis, names in enumerate(axes):
                if index[axis] == slice(None) and part in names:
                    index[axis] = names.index(part)
                    break
            else:
                raise DataError(
                    f"no run, measure or topic {part!r}; measures are {', '.join(self.measures)}; "
                    f"runs are {', '.join(self.runs[:10])}"
                )
        if len(self.runs) == 1:
            index[0] = 0
        if len(self.measures) == 1:
            index[1] = 0
        answer = self.values[tuple(index)]
        return float(answer) if answer.ndim == 0 else answer

    # summaries

    def mean(self, measure: str | None = None, run: str | None = None) -> float:
        """The mean over topics (the sum, for counts) of one measure and one run."""
        m = self._only("measure", measure, list(self.measures))
        r = self._only("run", run, self.runs)
        return float(self._summary()[r, m])

    def means(self, run: str | None = None) -> dict[str, float]:
        """All measures' means of one run."""
        r = self._only("run", run, self.runs)
        return dict(zip(self.measures, self._summary()[r].tolist(), strict=True))

    def _only(self, what: str, name: str | None, names: list[str]) -> int:
        if name is None and len(names) == 1:
            return 0
        if name not in names:
            given = f"no {what} {name!r}" if name is not None else f"which {what}?"
            raise DataError(f"{given}; there are {', '.join(names[:20])}")
        return names.index(name)

    def _summary(self) -> Floats:
        """Runs × measures. Added up one topic after the other, as trec_eval does, so that the last digit agrees."""
        answer = np.full(self.values.shape[:2], np.nan)
        for r in range(len(self.runs)):
            kept = self.values[r][:, self.counted[r]]
            for m, measure in enumerate(self.measures.values()):
                row = kept[m][~np.isnan(kept[m])]
                if measure.aggregate == "sum":
                    answer[r, m] = row.sum()
                elif len(row):
                    answer[r, m] = np.cumsum(row)[-1] / len(row)
        return answer

    # going out

    def to_dict(self, per_topic: bool = False) -> dict[str, Any]:
        """Plain values: measures, runs with their means (and topics), conventions. An undefined value is None."""
        summary = self._summary()
        names = list(self.measures)
        runs = []
        for r, run in enumerate(self.runs):
            row: dict[str, Any] = {"run": run, "mean": dict(zip(names, map(_plain, summary[r]), strict=True))}
            if per_topic:
                row["topics"] = {
                    topic: {name: _plain(self.values[r, m, t]) for m, name in enumerate(names)}
                    for t, topic in enumerate(self.topics)
                    if self.counted[r, t]
                }
            runs.append(row)
        return {"measures": names, "runs": runs, "conventions": self.conventions.to_dict()}

    def to_json(self, per_topic: bool = False) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(per_topic), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        rows = [["run", *self.measures]]
        rows += [[n, *(f"{v:.4f}" for v in row)] for n, row in zip(self.runs, self._summary(), strict=True)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _plain(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
