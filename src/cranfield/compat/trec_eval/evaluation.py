"""The evaluation as trec_eval does it: the topics and their order, the value of every printed name, and the lines.

Topics come in the byte order of their ids. The values of all topics are computed at once; an error that stops the
original at a topic ends the list of topics there. A line is a name padded to 22 characters, a topic or `all`, and a
value with four decimals. Sums add up topics in the order of printing, so that the last digit agrees.

The 14 preference measures are those of `cranfield.evaluation.measures.preferences`, except `Rnonrel`: it should count as
many nonrelevant documents as relevant ones, but pairs too many of them, which only this module repeats.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.conventions import Conventions
from cranfield.base.errors import ContradictionError, DataError, MeasureError
from cranfield.base.kernels import encode
from cranfield.compat.trec_eval.catalogue import HEAD
from cranfield.compat.trec_eval.inputs import ABORTED, StopError
from cranfield.compat.trec_eval.values import LOWEST, MeasureInput, by_group, relevance_strings, values
from cranfield.evaluation.hits import Judgments, join
from cranfield.evaluation.measures import measure
from cranfield.evaluation.measures.preferences import ONLY, lines_of_run, with_first_nonrelevant
from cranfield.formats.extras import PreferenceLevels

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.base.qrels import Qrels
    from cranfield.compat.trec_eval.catalogue import Kind, Request
    from cranfield.compat.trec_eval.inputs import TrecEvalInputs, TrecEvalOptions, ZScores
    from cranfield.evaluation.measures.preferences import PreferenceLines, TopicPreferences


UNKNOWN_Z = -1000000.0


@dataclass(frozen=True)
class OutputColumn:
    """The values of one printed name: one for each judged topic."""

    request: Request
    name: str
    values: Any  # floats, or texts for relstring


class Evaluation:
    """All values, the evaluated topics, and the reason if they end early."""

    def __init__(
        self, options: TrecEvalOptions, requests: list[Request], inputs: TrecEvalInputs, zscores: ZScores | None
    ) -> None:
        self.options, self.requests, self.inputs, self.zscores = options, requests, inputs, zscores
        self.ids = [encode(topic) for topic in inputs.judged.topics]
        self.stop: StopError | None = None
        self.preferences: dict[str, Floats] = {}
        self.missing = inputs.match.retrieved == 0
        self.lines: PreferenceLines | None = None
        if isinstance(inputs.judged, PreferenceLevels):
            lines = lines_of_run(inputs.judged, inputs.match, options.deepest)
            level = lines.level.astype(np.float32).astype(np.float64) if options.version == 9 else lines.level
            self.lines = replace(lines, names=inputs.judged.documents, level=level)  # numbered as trec_eval does
        self.topics = self._topics()
        self.columns = self._columns()

    @property
    def qrels(self) -> Qrels:
        """The judgments; only for grades, not for preferences."""
        judged: Any = self.inputs.judged
        return judged  # type: ignore[no-any-return]

    # which topics

    def _topics(self) -> list[int]:
        """The evaluated topics, in order; `stop` is set if the next topic cannot be evaluated."""
        options, needs = self.options, {one.kind.needs for one in self.requests} - {"nothing"}
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
            wrong = next(one.kind for one in self.requests if one.kind.needs not in ("nothing", _format(options)))
            return StopError(4, f"{wrong.name} needs -R {wrong.needs}, found -R {options.judgments}")
        for one in self.requests:
            if one.kind.name == "utility" and len(one.numbers) != 4:
                return StopError(4, f"-m utility expects 4 weights, found {len(one.numbers)}")
        if topic in self.inputs.twice:
            return StopError(4, self.inputs.twice[topic])
        if needs == {"qrels"} and first and (self.qrels.grade[self.qrels.topic == topic] <= -1).all():
            return StopError(4, f"topic {name!r} has no judgment of 0 or more")
        return self._compare(topic) if needs == {"prefs"} else None

    def _compare(self, topic: int) -> StopError | None:
        """Compute a topic's preference measures, unless its preferences contradict each other."""
        try:
            compared = self.lines.topic_preferences(topic) if self.lines else None
        except DataError as error:
            code = ABORTED if isinstance(error, ContradictionError) else 4
            return StopError(code, f"topic {self.inputs.judged.topics[topic]!r}: {error}")
        assert compared is not None  # a topic is there because it has a line
        for name in (one.kind.name for one in self.requests if one.kind.needs == "prefs"):
            self.preferences.setdefault(name, np.zeros(len(self.ids)))[topic] = preference_value(name, compared)
        return None

    # which values

    def _columns(self) -> list[OutputColumn]:
        if not self.topics:
            return []
        columns = []
        view: Any = None
        for one in self.requests:
            if one.kind.name in HEAD:
                columns.append(OutputColumn(one, one.kind.name, None))
                continue
            view = view or self._view()
            for name, computed in zip(one.names, self._values(one, view), strict=True):
                corrected = self._correct_missing(name, computed)
                columns.append(OutputColumn(one, name, corrected if self.zscores is None else self._z(name, corrected)))
        return columns

    def _view(self) -> MeasureInput | None:
        """The input of the measures: hits for qrels, hits of each group for judgment groups, None for preferences."""
        options, match = self.options, self.inputs.match
        if options.version >= 10 and options.complete:  # a missing topic is scored as one unjudged document
            match.retrieved = np.where(self.missing, 1, match.retrieved).astype(np.int32)
        if _format(options) == "prefs":
            return None
        topics = None
        if options.judgments == "qrels_jg":
            hits, topics = by_group(self.qrels, match)
        else:
            self.qrels.grade = np.trunc(self.qrels.grade)
            hits = join(match, Judgments.of(self.qrels), Conventions())
        hits = hits.top(options.deepest)
        hits = hits.condensed() if options.judged_only else hits
        return MeasureInput(hits, options.rel, options.version, options.documents, topics)

    def _values(self, one: Request, view: Any) -> list[Any]:
        try:
            if one.kind.needs == "prefs":
                return [self.preferences[one.kind.name]]
            if one.kind.name == "relstring":
                return [relevance_strings(view.hits, one.numbers[0])]
            return values(one, view)
        except MeasureError as error:
            raise StopError(2, f"-m {one.kind.name}: {error}") from error

    def _correct_missing(self, name: str, values: Any) -> Any:
        """Version 10 resets missing topics, which it scores as one unjudged document, but only under these names."""
        if self.options.version < 10 or not self.missing.any():
            return values
        if name == "relstring":
            return ["" if gone else text for gone, text in zip(self.missing, values, strict=True)]
        taken_back = name in ("num_ret", "utility", "rbp_resid") or name.startswith("unj")
        return np.where(self.missing, 0.0, values) if taken_back else values

    def _z(self, name: str, values: Any) -> Any:
        """Deviations from the mean of other runs, in standard deviations."""
        if isinstance(values, list):
            return values
        answer = values.astype(float)
        for topic in self.topics:
            mean, spread = (self.zscores or {}).get(self.ids[topic], {}).get(name, (None, 0.0))
            value = answer[topic]
            if mean is None or (not spread and value != mean):
                answer[topic] = UNKNOWN_Z
            else:
                answer[topic] = (value - mean) / spread if spread else 0.0
        return answer


def _format(options: TrecEvalOptions) -> str:
    return "prefs" if options.judgments == "qrels_prefs" else options.judgments


# lines


def _shape(kind: Kind, z: bool) -> str:
    """The printf format of a measure's values."""
    if kind.name == "relstring":
        return "'%s'"
    return "%d" if kind.total == "sum" and not z else "%6.4f"


def _name(name: str, kind: Kind, z: bool) -> str:
    return f"Z{name:<22}" if z and kind.total != "none" else f"{name:<22}"


def topic_lines(evaluation: Evaluation) -> list[str]:
    """One block of lines for each topic."""
    z, topics = evaluation.zscores is not None, evaluation.topics
    names = [evaluation.inputs.judged.topics[topic] for topic in topics]
    columns = [(column.name, column.request.kind, column.values) for column in evaluation.columns]
    printed = [column for column in columns if column[1].name not in HEAD and column[1].total != "geometric"]
    block = "".join(f"{_name(name, kind, z).replace('%', '%%')}\t%s\t{_shape(kind, z)}\n" for name, kind, _ in printed)
    values_of_topics = [
        [values[topic] for topic in topics] if isinstance(values, list) else values[topics].tolist()
        for _, _, values in printed
    ]
    gaps = np.any([np.isnan(values[topics]) for _, kind, values in printed if kind.name != "relstring"], axis=0)
    lines = []
    rows = zip(*values_of_topics, strict=True)
    for name, gap, row in zip(names, np.broadcast_to(gaps, len(names)), rows, strict=False):
        if gap:
            shapes = zip(printed, row, strict=True)
            lines += [f"{_name(n, k, z)}\t{name}\t{_text(k, value, z)}\n" for (n, k, _), value in shapes]
        else:
            lines.append(block % tuple(part for value in row for part in (name, value)))
    return lines


def _text(kind: Kind, value: Any, z: bool) -> str:
    """A value as it is printed; a NaN shows its sign, as in C."""
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
        kind = column.request.kind
        if kind.name == "runid":
            lines.append(f"{'runid':<22}\tall\t{evaluation.inputs.tag}\n")
        elif kind.name == "num_q":
            lines.append(f"Z{'num_q':<22}\tall\t{topics:.4f}\n" if z else f"{'num_q':<22}\tall\t{topics}\n")
        elif kind.total != "none":
            value = _total(evaluation, column, topics, topics - evaluated)
            lines.append(f"{_name(column.name, kind, z)}\tall\t{_text(kind, value, z)}\n")
    return lines


def _total(evaluation: Evaluation, column: OutputColumn, topics: int, unseen: int) -> float:
    """The mean, the sum of a count, or the geometric mean, of one measure."""
    kind = column.request.kind
    if kind.name == "num_rel" and evaluation.options.complete:  # counted anew, whatever -l says
        return float((np.trunc(evaluation.qrels.grade) > 0).sum())
    values = column.values[evaluation.topics]
    added = float(np.cumsum(values)[-1])
    if kind.total == "sum":
        return added
    if kind.total == "geometric":
        return math.exp((added + unseen * math.log(LOWEST)) / topics)
    return added / topics


def preference_value(name: str, topic: TopicPreferences) -> float:
    """One measure of one topic, by trec_eval's name."""
    if "Rnonrel" in name:
        return _as_many_nonrelevant(topic, "ret" if name.endswith("_ret") else "")
    return _ours(name)(topic)


@cache
def _ours(name: str) -> Callable[[TopicPreferences], float]:
    ours: Any = measure(name)
    return partial(ours.value, only=ONLY[ours.pairs])


def _as_many_nonrelevant(topic: TopicPreferences, only: str) -> float:
    """Rnonrel: the mean over groups; a group without a pair makes the sum NaN, and the topic is then worth 0."""
    total = 0.0
    for group, counts in zip(topic.groups, topic.counts, strict=True):
        both = counts.filled_up(only)
        if both is None and group.copies is not None:
            both = _recount(group.copies, counts.relevant_among(only), topic.returned, only)
        elif both is None:
            both = with_first_nonrelevant(group, group.level == 0, counts.relevant, topic.returned, only)
        fulfilled, possible = both
        total += fulfilled / possible if possible else np.nan
    return total / len(topic.groups) if total > 0 else 0.0


def _recount(copies: tuple[Ints, Floats], most: int, returned: int, only: str) -> tuple[int, int]:
    """Count the pairs of a subgroup: above its lowest level, and each document with the first `most` of that level."""
    place, level = copies
    lowest = level == level[-1]
    within = place < returned if only else np.ones(len(place), bool)
    better, better_level = place[within & ~lowest], level[within & ~lowest]
    least = place[lowest][:most]
    least = least[least < returned] if only else least
    stated = better_level[:, None] > better_level[None, :]
    right = (better[:, None] < better[None, :]) & (better[:, None] < returned)
    every = place[within]
    right_too = (every[:, None] < least[None, :]) & (every[:, None] < returned)
    return int((stated & right).sum() + right_too.sum()), int(stated.sum() + len(every) * len(least))
