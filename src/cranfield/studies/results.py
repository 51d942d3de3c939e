"""Results of a study: success, time and questionnaires by system, comparisons of systems, and effects of order.

The participant is the unit: times and scores are averaged within a participant first, and systems are compared within
participants. Times are those of successful tasks, unless `every_time` is set; they are averaged as logarithms, so that
their mean is the geometric one, their difference a ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.results import Answer, Cell, Layout, Lines, Part, Table, as_dicts, plain
from cranfield.base.text_layout import counted
from cranfield.stats.correction import correct
from cranfield.stats.interval_limits import EffectInterval
from cranfield.stats.paired import mean_and_error, t_limits
from cranfield.stats.proportions import adjusted_wald
from cranfield.stats.tests_by_name import test as test_named
from cranfield.studies.forms import StudyAnswers, StudyQuestion
from cranfield.studies.plan import Questionnaire, Turn, cronbach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.stats.tests_by_name import Test

SUCCESS, SECONDS = "success", "seconds"
NAN = math.nan


class OutcomeLevel(NamedTuple):
    """The value of an outcome for one system, with an interval and the sample size."""

    outcome: str
    system: str
    value: float
    low: float
    high: float
    number: int  # tasks for success, else participants
    alpha: float = math.nan  # Cronbach's, of a questionnaire


class Versus(NamedTuple):
    """A within-participant comparison of two systems: the second minus the first; for seconds the ratio minus 1."""

    outcome: str
    one: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    corrected: float  # by Holm, over the pairs of an outcome
    participants: int
    reason: str


class PositionResult(NamedTuple):
    """Success and time at one position in the order of tasks."""

    position: int
    tasks: int
    success: float
    seconds: float  # the geometric mean


@dataclass(frozen=True)
class StudyResults(Answer):
    """Outcomes by system, comparisons of systems, and effects of order."""

    name: str
    participants: int
    levels: tuple[OutcomeLevel, ...]
    pairs: tuple[Versus, ...]
    places: tuple[PositionResult, ...]
    learning: Versus | None  # change of seconds from one task to the next
    missing: int
    test: str
    level: float
    every_time: bool
    uneven: tuple[str, ...]

    def content(self, how: Layout) -> Iterable[Part]:
        people = counted(self.participants, "participant")
        yield Lines([*self._verdicts(), f"{people}; intervals of {100 * self.level:g}%"])
        head = ["outcome", "system", "value", "low", "high", "n", "alpha"]
        rows: list[list[Cell | str]] = []
        for own in self.levels:
            numbers = map(how.cell, (own.value, own.low, own.high))
            rows.append([own.outcome, own.system, *numbers, str(own.number), how.cell(own.alpha)])
        yield Table(head, rows, names=2, left=2, title="outcomes by system")
        head = ["outcome", "systems", "difference", "low", "high", "p", "corrected"]
        rows = []
        for each in self.pairs:
            signed = (how.cell(number, signed=True) for number in (each.difference, each.low, each.high))
            chances = map(how.cell, (each.p, each.corrected))
            rows.append([each.outcome, f"{each.other} - {each.one}", *signed, *chances])
        yield Table(head, rows, names=2, left=2, caption="within participants", notes=["seconds: ratio less 1"])
        rows = [[str(at.position), str(at.tasks), how.cell(at.success), how.cell(at.seconds)] for at in self.places]
        yield Table(["position", "tasks", "success", "seconds"], rows, caption="by position in the order of tasks")
        yield Lines([self._learned()])

    def _verdicts(self) -> list[str]:
        sentences = []
        for each in self.pairs:
            if each.corrected < 1 - self.level:
                by = f"{each.difference:+.1%}" if each.outcome in (SECONDS, SUCCESS) else f"{each.difference:+.3g}"
                systems = f"{each.other} differs from {each.one}"
                sentences.append(f"{each.outcome}: {systems} by {by} (p = {each.corrected:.3g})")
        return sentences or ["No difference between systems is shown."]

    def _learned(self) -> str:
        if self.learning is None:
            return "Learning: too few times to tell"
        each = self.learning
        change = f"people get {'faster' if each.difference < 0 else 'slower'}"
        verdict = change if each.p < 1 - self.level else "not shown"
        exists = EffectInterval(each.difference, each.low, each.high).exists
        interval = f"[{each.low:+.1%}, {each.high:+.1%}]" if exists else "(no interval)"
        return f"Learning: seconds change by {each.difference:+.1%} {interval} from one task to the next: {verdict}"

    def notes(self, shell: bool = False) -> list[str]:
        notes = [f"{each.outcome}, {each.one} and {each.other}: {each.reason}" for each in self.pairs if each.reason]
        if self.missing:
            notes.append(f"{counted(self.missing, 'question')} not answered")
        if self.uneven:
            unbalanced = "the order is not balanced, so learning may look like a difference between systems"
            notes.append(f"{unbalanced} ({'; '.join(self.uneven)})")
        if not self.every_time:
            notes.append("times are those of tasks that succeeded")
        if len({each.outcome for each in self.pairs}) > 1:
            notes.append("p-values are corrected over the pairs of an outcome, not over outcomes")
        return [*notes, "the interval of success treats all tasks as independent; those of one participant may not be"]

    def plain(self, how: Layout) -> Any:
        values = {
            "study": self.name,
            "participants": self.participants,
            "level": self.level,
            "test": self.test,
            "outcomes": as_dicts(self.levels),
            "pairs": as_dicts(self.pairs),
            "positions": as_dicts(self.places),
            "learning": as_dicts(self.learning),
            "missing": self.missing,
            "uneven": self.uneven,
        }
        return plain(values, how.digits)


def analyze(answers: StudyAnswers, *, test: str = "t", level: float = 0.95, every_time: bool = False) -> StudyResults:
    """Success, time and questionnaires by system, paired tests of each two systems, and effects of order."""
    if not 0.5 <= level < 1:
        raise DataError(f"level must be at least 0.5 and below 1, got {level:g}")
    paired_test = test_named(test)
    if not paired_test.paired or paired_test.bayesian or paired_test.binary:
        raise DataError(f"{paired_test.name}: expected a test of paired numbers, such as t, wilcoxon or randomisation")
    study = answers.schedule.study
    tables = {SUCCESS: _by_person(answers, SUCCESS), SECONDS: _by_person(answers, SECONDS, every_time)}
    levels = [_success(answers, system, level) for system in study.systems]
    levels += [_mean(SECONDS, system, column, level, np.exp) for system, column in _columns(answers, tables[SECONDS])]
    for each in study.questionnaires:
        tables_about = [_about(answers, each, system) for system in study.systems]
        tables[each.name] = np.array([[each.score(row) for row in table] for table in tables_about], np.float64).T
        for (system, column), table in zip(_columns(answers, tables[each.name]), tables_about, strict=True):
            turned = each.turned(table)
            complete = turned[~np.isnan(turned).any(axis=1)]
            levels.append(_mean(each.name, system, column, level)._replace(alpha=cronbach(complete)))
    pairs = [pair for name, table in tables.items() for pair in _pairs(name, study.systems, table, paired_test, level)]
    return StudyResults(
        study.name,
        len({question.participant for question in answers.values}),
        tuple(levels),
        tuple(pairs),
        tuple(_places(answers, every_time)),
        _learning(answers, every_time, level),
        answers.missing,
        paired_test.name,
        level,
        every_time,
        tuple(answers.schedule.uneven()),
    )


def _answers(answers: StudyAnswers, turns: Iterable[Turn], name: str) -> dict[Turn, float]:
    """The answers to a question about the tasks of some turns; turns without an answer are left out."""
    return {turn: value for turn in turns if (value := answers.of(turn, name)) is not None}


def _times(answers: StudyAnswers, every_time: bool) -> Mapping[Turn, float]:
    """The logarithm of each time by turn; of successful tasks only, unless `every_time`."""
    turns = answers.schedule.rows
    success, seconds = _answers(answers, turns, SUCCESS), _answers(answers, turns, SECONDS)
    return {turn: math.log(time) for turn, time in seconds.items() if every_time or success.get(turn)}


def _by_person(answers: StudyAnswers, outcome: str, every_time: bool = True) -> Floats:
    """Means over a participant's tasks with each system: participants × systems; NaN without tasks."""
    study = answers.schedule.study
    turns = answers.schedule.rows
    values = _times(answers, every_time) if outcome == SECONDS else _answers(answers, turns, outcome)
    cells: dict[tuple[str, str], list[float]] = {}
    for turn, value in values.items():
        cells.setdefault((turn.participant, turn.system), []).append(value)
    rows = [[np.mean(cells.get((person, system), [np.nan])) for system in study.systems] for person in study.people]
    return np.array(rows, np.float64)


def _about(answers: StudyAnswers, questionnaire: Questionnaire, system: str) -> list[list[float]]:
    """The answers to a questionnaire about a system: participants × items; NaN if one is missing."""
    return [
        [answers.values.get(StudyQuestion(person, "", system, name), np.nan) for name in questionnaire.questions]
        for person in answers.schedule.study.people
    ]


def _columns(answers: StudyAnswers, table: Floats) -> Iterable[tuple[str, Floats]]:
    for system, column in zip(answers.schedule.study.systems, table.T, strict=True):
        yield system, column[~np.isnan(column)]


def _success(answers: StudyAnswers, system: str, level: float) -> OutcomeLevel:
    from scipy.special import ndtri  # type: ignore[import-untyped, unused-ignore]

    turns = (turn for turn in answers.schedule.rows if turn.system == system)
    successes = _answers(answers, turns, SUCCESS).values()
    if not successes:
        return OutcomeLevel(SUCCESS, system, NAN, NAN, NAN, 0)
    low, high = adjusted_wald(sum(successes), len(successes), float(ndtri((1 + level) / 2)))
    return OutcomeLevel(SUCCESS, system, sum(successes) / len(successes), float(low), float(high), len(successes))


def _mean(
    outcome: str, system: str, values: Floats, level: float, scale: Callable[[float], float] = float
) -> OutcomeLevel:
    """The mean over participants with Student's interval, converted by `scale` for display."""
    if len(values) < 2:
        value = scale(float(values[0])) if len(values) else math.nan
        return OutcomeLevel(outcome, system, float(value), math.nan, math.nan, len(values))
    mean, error = mean_and_error(values[None])
    tail = (1 - level) / 2
    low, high = t_limits(mean, error, len(values) - 1, (tail, tail))
    with np.errstate(over="ignore"):
        value, lower, upper = (float(scale(float(number[0]))) for number in (mean, low, high))
    return OutcomeLevel(outcome, system, *EffectInterval(value, lower, upper), len(values))


def _pairs(outcome: str, systems: Sequence[str], table: Floats, test: Test, level: float) -> Iterable[Versus]:
    pairs = []
    for i, j in combinations(range(len(systems)), 2):
        both = ~np.isnan(table[:, [i, j]]).any(axis=1)
        a, b = table[both, i], table[both, j]
        interval, p, reason = EffectInterval(NAN), NAN, "fewer than two participants have both"
        if len(a) >= 2:
            result = test(a, b, level=level, rng=np.random.default_rng(0))
            interval = _on_scale(outcome, float(np.mean(b - a)), result.low, result.high)
            p, reason = result.p, result.reason
        pairs.append(Versus(outcome, systems[i], systems[j], *interval, p, NAN, len(a), reason))
    corrected = correct([each.p for each in pairs]).tolist()
    return [each._replace(corrected=p) for each, p in zip(pairs, corrected, strict=True)]


def _places(answers: StudyAnswers, every_time: bool) -> Iterable[PositionResult]:
    times = _times(answers, every_time)
    for position in range(1, len(answers.schedule.study.tasks) + 1):
        turns = [turn for turn in answers.schedule.rows if turn.position == position]
        successes = [*_answers(answers, turns, SUCCESS).values()]
        seconds = [times[turn] for turn in turns if turn in times]
        mean = math.exp(float(np.mean(seconds))) if seconds else math.nan
        yield PositionResult(position, len(successes), float(np.mean(successes)) if successes else math.nan, mean)


def _learning(answers: StudyAnswers, every_time: bool, level: float) -> Versus | None:
    """The change of log time from one task to the next: the mean of participants' slopes, with a t-test.

    The mean difference between systems is removed first.
    """
    times = _apart(_times(answers, every_time))
    slopes = []
    for person in answers.schedule.study.people:
        points = [(turn.position, times[turn]) for turn in answers.schedule.of(person) if turn in times]
        if len(points) >= 2:
            x, y = np.array(points, np.float64).T
            slopes.append(float(((x - x.mean()) * y).sum() / ((x - x.mean()) ** 2).sum()))
    if len(slopes) < 2 or np.ptp(slopes) < 1e-12:
        return None
    result = test_named("t")(np.zeros(len(slopes)), slopes, level=level, rng=np.random.default_rng(0))
    change, low, high = _on_scale(SECONDS, float(np.mean(slopes)), result.low, result.high)
    return Versus(SECONDS, "a task", "the next", change, low, high, result.p, result.p, len(slopes), result.reason)


def _apart(times: Mapping[Turn, float]) -> dict[Turn, float]:
    """Times minus the mean of their system."""
    by_system: dict[str, list[float]] = {}
    for turn, time in times.items():
        by_system.setdefault(turn.system, []).append(time)
    return {turn: time - float(np.mean(by_system[turn.system])) for turn, time in times.items()}


def _on_scale(outcome: str, difference: float, low: float, high: float) -> EffectInterval:
    """A difference and its interval; for seconds, whose logarithms are compared, as a ratio minus 1."""
    own = EffectInterval(difference, low, high)
    if outcome != SECONDS:
        return own
    with np.errstate(over="ignore"):
        return EffectInterval(*(float(np.expm1(number)) for number in own))
