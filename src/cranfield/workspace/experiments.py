"""Verbs of online experiments: design, analyze."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError
from cranfield.online import design as planning
from cranfield.parameters import real, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.online.analyze import Analysis
    from cranfield.online.design import ExperimentPlan, Guardrail, Spread


def design(
    *,
    mean: float | None = None,
    ratio: float | None = None,
    sd: float | None = None,
    sd_after: float | None = None,
    proportion: float | None = None,
    wins: float | None = None,
    losses: float | None = None,
    guardrails: Iterable[str] = (),
    sizes: str | None = None,
    **question: Any,
) -> ExperimentPlan:
    """Plan an experiment from given numbers: a mean or a ratio with its sd, a proportion, or wins and losses.

    A guardrail is typed as NAME=MARGIN/SD, or NAME=MARGIN/PROPORTION% for a proportion of units.
    """
    primary = _spread(mean, ratio, (sd, sd_after), proportion, wins, losses)
    try:
        numbers = None if sizes is None else [whole(size) for size in sizes.replace(",", " ").split()]
    except ValueError:
        raise ConventionError(f"sizes: expected numbers of units, as in 1000,5000, found {sizes!r}") from None
    rails = [_guardrail(each) for each in guardrails]
    return planning.design(primary, guardrails=rails, sizes=numbers, **question)


def analyze(
    log: str,
    plan: str,
    *,
    at: str | None = None,
    now: datetime | None = None,
    seed: int = 0,
    history: bool = False,
    memory: str | None = None,
    expected: str | None = None,
) -> Analysis:
    """The verdict on an experiment, by its log and its plan; `at` an earlier time, what it would have been then."""
    from cranfield.online.analyze import analyze
    from cranfield.online.event import instant
    from cranfield.online.log import Log
    from cranfield.online.plan import read_plan

    clock = now or datetime.now(UTC)
    then = None if at is None else datetime.fromisoformat(instant(at))
    chosen = read_plan(plan)
    with Log(log) as opened:
        return analyze(opened, chosen, clock, at=then, seed=seed, history=history, memory=memory, expected=expected)


def _spread(
    mean: float | None,
    ratio: float | None,
    sds: tuple[float | None, float | None],
    proportion: float | None,
    wins: float | None,
    losses: float | None,
) -> Spread:
    sd, sd_after = sds
    given = [mean is not None, ratio is not None, proportion is not None, wins is not None or losses is not None]
    if sum(given) != 1:
        raise ConventionError("expected one of: a mean or a ratio with its sd, a proportion, or wins and losses")
    if proportion is not None:
        spread = planning.proportion(proportion)
    elif mean is None and ratio is None:
        spread = planning.preference(wins or 0.0, losses or 0.0)
    elif sd is None:
        raise ConventionError("a mean or a ratio needs its sd, the standard deviation between units")
    elif mean is not None:
        return planning.mean(mean, sd, sd_after=sd_after)
    else:
        return planning.mean(ratio or 0.0, sd, "ratio", sd_after)
    if sd is not None or sd_after is not None:
        raise ConventionError(f"the sd of a {spread.kind} follows from it; leave sd out")
    return spread


def _guardrail(typed: str) -> Guardrail:
    name, _, numbers = typed.partition("=")
    margin, _, spread = numbers.partition("/")
    try:
        if spread.endswith("%"):
            return planning.Guardrail(name, planning.proportion(real(spread[:-1]) / 100), real(margin))
        return planning.Guardrail(name, planning.mean(0.0, real(spread)), real(margin))
    except ConventionError as error:
        raise ConventionError(f"guardrail {typed!r}: {error}") from None
    except ValueError:
        raise ConventionError(
            f"guardrail: expected NAME=MARGIN/SD or NAME=MARGIN/PROPORTION%, found {typed!r}"
        ) from None
