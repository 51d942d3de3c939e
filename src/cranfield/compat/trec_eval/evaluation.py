"""Which topics are evaluated, in which order, up to where; and the value of every printed name for each of them.

Topics come in the byte order of their ids. The values of all topics are computed at once; what stops
the original at one topic stops the list of evaluated topics there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.compat.trec_eval.options import StopError
from cranfield.compat.trec_eval.values import Groups, View, relevance_strings, values
from cranfield.errors import MeasureError
from cranfield.hits import Hits, Judgments
from cranfield.kernels import encode

if TYPE_CHECKING:
    from cranfield.collection import Qrels
    from cranfield.compat.trec_eval.catalogue import Asked
    from cranfield.compat.trec_eval.inputs import Inputs, ZScores
    from cranfield.compat.trec_eval.options import Options
    from cranfield.compat.trec_eval.preferences import Comparison
    from cranfield.kernels.table import Floats


UNKNOWN_Z = -1000000.0


@dataclass
class Column:
    """The values of one printed name: one for each judged topic."""

    asked: Asked
    name: str
    values: Any  # floats, or texts for relstring


class Evaluation:
    """All values, the topics that are evaluated, and the reason why they end early if they do."""

    def __init__(self, options: Options, wanted: list[Asked], inputs: Inputs, zscores: ZScores | None) -> None:
        self.options = options
        self.wanted = wanted
        self.inputs = inputs
        self.zscores = zscores
        self.ids = [encode(topic) for topic in inputs.judged.topics]
        self.stop: StopError | None = None
        self.preferences: dict[str, Floats] = {}
        self.missing = ~inputs.present
        self._comparison: Comparison | None = None
        self.topics = self._topics()
        self.columns = self._columns()

    @property
    def qrels(self) -> Qrels:
        """The judgments, where they are grades."""
        judged: Any = self.inputs.judged
        return judged  # type: ignore[no-any-return]

    # which topics

    def _topics(self) -> list[int]:
        """The topics evaluated, in order; `stop` is set if the next one cannot be."""
        options, needs = self.options, {one.kind.needs for one in self.wanted} - {"nothing"}
        only = None if options.only is None else os.fsencode(options.only)
        topics: list[int] = []
        for topic in sorted(range(len(self.ids)), key=self.ids.__getitem__):
            if only is not None and self.ids[topic] != only:
                continue
            if self.missing[topic] and options.version == 9:
                continue
            self.stop = self._obstacle(topic, needs, first=not topics)
            if self.stop is not None:
                return topics
            topics.append(topic)
        if not topics:
            self.stop = StopError(7, "no topic is both judged and answered")
        return topics

    def _obstacle(self, topic: int, needs: set[Any], first: bool) -> StopError | None:
        options, name = self.options, self.inputs.judged.topics[topic]
        if self.missing[topic] and not options.complete:
            return StopError(4, f"topic {name!r} is judged but missing from {options.files[1]} (-c counts it as 0)")
        if not needs:
            return None
        if needs != {_format(options)}:
            wrong = next(one.kind for one in self.wanted if one.kind.needs not in ("nothing", _format(options)))
            return StopError(4, f"{wrong.name} needs -R {wrong.needs}, found -R {options.judgments}")
        for one in self.wanted:
            if one.kind.name == "utility" and len(one.numbers) != 4:
                return StopError(4, f"-m utility expects 4 weights, found {len(one.numbers)}")
        if topic in self.inputs.twice:
            return StopError(4, self.inputs.twice[topic])
        if needs == {"qrels"} and first and (self.qrels.grade[self.qrels.topic == topic] <= -1).all():
            return StopError(4, f"topic {name!r} has no judgment of 0 or more")
        return self._compare(topic) if needs == {"prefs"} else None

    def _compare(self, topic: int) -> StopError | None:
        """Compute a topic's preference measures, unless its preferences contradict each other."""
        from cranfield.compat.trec_eval.preferences import Comparison, value

        if self._comparison is None:
            judged: Any = self.inputs.judged
            self._comparison = Comparison(judged, self.inputs.found, self.options.deepest, self.options.version)
        try:
            compared = self._comparison.topic(topic)
        except StopError as stop:
            return stop
        for name in (one.kind.name for one in self.wanted if one.kind.needs == "prefs"):
            self.preferences.setdefault(name, np.zeros(len(self.ids)))[topic] = value(name, compared)
        return None

    # which values

    def _columns(self) -> list[Column]:
        if not self.topics:
            return []
        columns = []
        view: Any = None
        for one in self.wanted:
            if one.kind.name in ("runid", "num_q"):
                columns.append(Column(one, one.kind.name, None))
                continue
            view = view or self._view()
            values = self._values(one, view)
            columns += [Column(one, name, column) for name, column in zip(one.names, values, strict=True)]
        for column in columns:
            if column.values is not None:
                self._mend(column)
                self._standardise(column)
        return columns

    def _view(self) -> Any:
        """What the measures see: hits for qrels, hits of each group for judgment groups, nothing for preferences."""
        options, found = self.options, self.inputs.found
        if options.version >= 10 and options.complete:  # a missing topic is scored as one unjudged document
            found.retrieved = np.where(self.missing, 1, found.retrieved).astype(np.int32)
        if options.judgments == "qrels_jg":
            return Groups(self.qrels, found, options)
        if options.judgments != "qrels":
            return None
        self.qrels.grade = np.trunc(self.qrels.grade)
        judgments = Judgments.of(self.qrels)
        grade = judgments.of_row[found.row]
        hits = Hits(judgments, found.topic, found.rank, grade, found.first, found.last, found.retrieved)
        hits = hits.top(options.deepest)
        hits = hits.condensed() if options.judged_only else hits
        return View(hits, options.rel, options.version, options.documents)

    def _values(self, one: Asked, view: Any) -> list[Any]:
        try:
            if one.kind.needs == "prefs":
                return [self.preferences[one.kind.name]]
            if one.kind.needs == "qrels_jg":
                inner = View(view.hits, self.options.rel, self.options.version, self.options.documents)
                return [view.mean(column) for column in values(one, inner)]
            if one.kind.name == "relstring":
                return [relevance_strings(view.hits, one.numbers[0])]
            return values(one, view)
        except MeasureError as error:
            raise StopError(2, f"-m {one.kind.name}: {error}") from error

    def _mend(self, column: Column) -> None:
        """Version 10 takes back what one unjudged document is worth to a missing topic, but only under these names."""
        if self.options.version < 10 or not self.missing.any():
            return
        if column.name == "relstring":
            column.values = ["" if gone else text for gone, text in zip(self.missing, column.values, strict=True)]
        elif column.name in ("num_ret", "utility", "rbp_resid") or column.name.startswith("unj"):
            column.values[self.missing] = 0.0

    def _standardise(self, column: Column) -> None:
        """Turn values into deviations from the mean of other runs, in standard deviations."""
        if self.zscores is None or column.asked.kind.name == "relstring":
            return
        column.values = column.values.astype(float)
        for topic in self.topics:
            mean, spread = self.zscores.get(self.ids[topic], {}).get(column.name, (None, 0.0))
            value = column.values[topic]
            if mean is None:
                column.values[topic] = UNKNOWN_Z
            elif spread:
                column.values[topic] = (value - mean) / spread
            else:
                column.values[topic] = 0.0 if value == mean else UNKNOWN_Z


def _format(options: Options) -> str:
    return "prefs" if options.judgments == "qrels_prefs" else options.judgments
