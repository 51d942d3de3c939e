"""The commands of `cranfield online`: event logs, assignment, design, analysis, interleaving, simulation, user studies."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError, TopicError
from cranfield.base.parameters import real, whole
from cranfield.base.text_layout import counted
from cranfield.experiments import design as planning
from cranfield.experiments import privacy
from cranfield.experiments.event import instant
from cranfield.experiments.log import EventLog
from cranfield.experiments.plan import read_plan, read_plans
from cranfield.experiments.simulated_world import Audience, World, users_named
from cranfield.formats.streams import write_bytes
from cranfield.inputs.inputs import Inputs, path_of, refuse_second_stdin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.experiments.analyze import Analysis
    from cranfield.experiments.assignment import Assignments
    from cranfield.experiments.counterfactual.estimate import Counterfactual
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages
    from cranfield.experiments.counterfactual.new_ranker import NewRanker
    from cranfield.experiments.design import ExperimentDesign, Guardrail, Spread
    from cranfield.experiments.ingest import IngestResult
    from cranfield.experiments.interleaving import Interleaved
    from cranfield.experiments.offline_agreement import Bridge
    from cranfield.experiments.privacy import Erasure, Pseudonyms
    from cranfield.experiments.simulation import SimulatedLog
    from cranfield.studies.plan import StudySchedule
    from cranfield.studies.results import StudyResults


def ingest(
    log: str, files: Sequence[str], *, time: str | None = None, key: str | None = None, **options: Any
) -> IngestResult:
    """Add the events of files to a log, which is made if missing; `key` is a file with the key of pseudonyms.

    `options` are format, lenient, and the time `now`.
    """
    from cranfield.experiments.ingest import ingest

    refuse_second_stdin(*files)
    options |= {"time": None if time is None else instant(time), "now": options.get("now") or datetime.now(UTC)}
    with EventLog(log, create=True) as opened:
        return ingest(opened, files, pseudonyms=_pseudonyms(key), **options)


def export(log: str, *, format: str | None = None, output: str = "-") -> Iterator[bytes]:
    """The events of a log, by time, as the bytes of a file; the format follows `format` or the output's ending."""
    from cranfield.formats.event_files.format import format_to_write

    writer = format_to_write(output, format)
    with EventLog(log) as opened:
        yield from writer.write(opened.events())


def erase(log: str, units: Sequence[str], *, key: str | None = None) -> Erasure:
    """Erase all events of these units from a log; with a key, those of their pseudonyms."""
    if not all(units):
        raise ConventionError("expected units to erase, found an empty text")
    pseudonyms = _pseudonyms(key)
    with EventLog(log) as opened:
        return privacy.erase(opened, units, pseudonyms)


def retain(log: str, days: int) -> Erasure:
    """Erase all events that are older than a number of days."""
    with EventLog(log) as opened:
        return privacy.retain(opened, days, datetime.now(UTC))


def assign(plans: Sequence[str], units: Sequence[str]) -> Assignments:
    """The experiments and variants of units, by plans in files and folders."""
    from cranfield.experiments.assignment import assignments

    return assignments(read_plans(plans), units)


def _pseudonyms(key: str | None) -> Pseudonyms | None:
    return None if key is None else privacy.Pseudonyms.from_file(key)


SPREAD = ("mean", "ratio", "sd", "sd_after", "proportion", "wins", "losses")


def design(*, guardrails: Iterable[str] = (), sizes: str | None = None, **question: Any) -> ExperimentDesign:
    """Plan an experiment from numbers: a mean or a ratio with its sd, a proportion, or wins and losses.

    A guardrail is NAME=MARGIN/SD, or NAME=MARGIN/PROPORTION% for a proportion of units.
    """
    primary = _spread(*(question.pop(name, None) for name in SPREAD))
    try:
        numbers = None if sizes is None else [whole(size) for size in sizes.replace(",", " ").split()]
    except ValueError:
        raise ConventionError(f"sizes: expected numbers of units, as in 1000,5000, found {sizes!r}") from None
    rails = [_guardrail(each) for each in guardrails]
    return planning.design(primary, guardrails=rails, sizes=numbers, **question)


def analyze(log: str, plan: str, *, at: str | None = None, now: datetime | None = None, **options: Any) -> Analysis:
    """The verdict on an experiment from its log and plan, or with `at` the verdict at an earlier time."""
    from cranfield.experiments.analyze import analyze

    clock = now or datetime.now(UTC)
    then = None if at is None else datetime.fromisoformat(instant(at))
    experiment = read_plan(plan)
    with EventLog(log) as opened:
        return analyze(opened, experiment, clock, at=then, **options)


def _spread(*numbers: float | None) -> Spread:
    """The spread of the primary metric from the numbers that `SPREAD` names."""
    mean, ratio, sd, sd_after, proportion, wins, losses = numbers
    sources = [mean is not None, ratio is not None, proportion is not None, wins is not None or losses is not None]
    if sum(sources) != 1:
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
        expected = "expected NAME=MARGIN/SD or NAME=MARGIN/PROPORTION%"
        raise ConventionError(f"guardrail: {expected}, found {typed!r}") from None


def interleave(inputs: Inputs, topic: str, k: int, method: str, seed: int) -> Interleaved:
    """One list, interleaved from the rankings of runs for one topic."""
    from cranfield.experiments.interleaving import interleave

    runs = inputs.open_runs()
    lacking = [run.name for run in runs if topic not in run]
    if lacking:
        raise TopicError(f"topic {topic!r} is missing from {', '.join(lacking)}; an empty list cannot be compared")
    rankings = {run.name: [document for document, _ in run[topic]] for run in runs}
    return interleave(rankings, k, random.Random(seed), method)


def simulate(
    inputs: Inputs,
    log: str,
    *,
    plan: str | None = None,
    method: str | None = None,
    users: str = "navigational",
    k: int = 10,
    seed: int = 0,
    before: int = 0,
    **audience: Any,
) -> SimulatedLog:
    """Let simulated users search run files, and append their events to a log, which is made if missing.

    `plan` is a file, which is written if missing; `method` is the interleaving method of a new plan.
    """
    from cranfield.experiments.simulation import plan_for, plan_text, refuse_beyond, simulate

    model, people = users_named(users), Audience(**audience)
    refuse_beyond(people, before, seed)
    world = World.of(inputs.open_qrels(), inputs.open_runs(), k, inputs.queries)
    with EventLog(log, create=True) as opened:  # refuses other folders; makes its own with the first events
        is_new = plan is not None and not os.path.exists(plan)
        experiment = plan_for(plan, world, people, method)
        done = simulate(world, opened, experiment, model, people, seed=seed, before=before)
    if plan is not None and is_new:  # a simulation that fails leaves no plan behind
        write_bytes(plan, [plan_text(world.systems, people, method).encode()])
    return done


def bridge(
    inputs: Inputs,
    *,
    preferences: str | None = None,
    users: str = "navigational",
    methods: Sequence[str] = (),
    k: int = 10,
    searches: int = 100,
    by: str | None = None,
    least: float = 0.0,
    seed: int = 0,
) -> Bridge:
    """How well measures agree with users' preferences, simulated or from a file."""
    from cranfield.commands.evaluation import scored
    from cranfield.evaluation.slices import categories
    from cranfield.experiments.offline_agreement import bridge, read_preferences, simulate_signals

    model = users_named(users)
    classes = None if by is None else categories(inputs.topic_table(f"--by {by}"), by)
    runs = inputs.open_runs(preferences)
    if len(runs) < 2:
        raise DataError(f"expected two runs or more, which make pairs, found {len(runs)}")
    scores = scored(inputs)
    if preferences is not None:
        signals = read_preferences(preferences)
    else:
        world = World.of(inputs.open_qrels(), {run.name: run for run in runs}, k)
        signals = simulate_signals(world, model, methods or ("team-draft",), searches=searches, seed=seed)
    return bridge(scores, signals, classes=classes, column=by, least=least, seed=seed)


def counterfactual(
    inputs: Inputs,
    log: str,
    *,
    estimators: Sequence[str] = (),
    format: str | None = None,
    propensity: str | None = None,
    position_bias: str | None = None,
    now: datetime | None = None,
    **options: Any,
) -> Counterfactual:
    """The clicks that runs and policies would get, from a log that they did not make: a folder, or a file of events.

    A run is a file, a table of probabilities, or `uniform`. `options` are randomised, depth and level.
    """
    from cranfield.experiments.counterfactual.estimate import counterfactual
    from cranfield.experiments.counterfactual.examination import read_examination

    if propensity is not None and options.get("randomised") is not None:
        raise ConventionError("expected propensities by --propensity or by --randomised, found both")
    refuse_second_stdin(log, position_bias, *map(path_of, inputs.runs))
    examination = None if position_bias is None else read_examination(position_bias)
    pages = _logged_pages(log, format, propensity, inputs.lenient, now or datetime.now(UTC))
    return counterfactual(pages, _rankers(inputs, pages), estimators, examination=examination, **options)


def _logged_pages(log: str, format: str | None, propensity: str | None, lenient: bool, now: datetime) -> LoggedPages:
    """The pages of a log's folder, or of a file of events in any format."""
    from cranfield.experiments.counterfactual.logged_pages import pages_of_events, pages_of_log
    from cranfield.experiments.ingest import read_events
    from cranfield.formats.event_files.format import EventReading

    if os.path.isdir(log) or not os.path.exists(log):
        if format is not None:
            raise ConventionError(f"format is for a file of events; {log} is the folder of a log")
        with EventLog(log) as opened:
            return pages_of_log(opened, log, propensity, lenient)
    passed_over: list[str] = []
    reading = EventReading(log, instant(now))  # when it was does not matter here
    events = read_events(reading, format, now=now, lenient=passed_over.append if lenient else None)
    pages = pages_of_events(log, events, propensity, lenient)
    skipped = [f"{counted(len(passed_over), 'malformed row')} skipped"] if passed_over else []
    return replace(pages, notes=(*reading.notes, *skipped, *pages.notes))


def _rankers(inputs: Inputs, log: LoggedPages) -> list[NewRanker]:
    """The runs, tables of probabilities and the uniform policy among the arguments; runs come first."""
    from cranfield.experiments.counterfactual.new_ranker import (
        UNIFORM,
        RankedLists,
        UniformPolicy,
        is_policy_table,
        read_policy_table,
    )
    from cranfield.formats.topic_tables import topics_of_normal_texts

    queries: Mapping[str, str] = inputs.queries or {}
    policies: list[NewRanker] = []
    runs: list[str] = []
    for typed in inputs.runs:
        path = path_of(typed)
        label = typed[: -len(path)].removesuffix("=")
        if path == UNIFORM and not os.path.exists(path):
            policies.append(UniformPolicy(label or UNIFORM))
        elif os.path.isfile(path) and is_policy_table(path):
            policies.append(
                read_policy_table(path, label or os.path.splitext(os.path.basename(path))[0], inputs.dialect)
            )
        else:
            runs.append(typed)
    if not runs:
        return policies
    rankers: list[NewRanker] = []
    for run in replace(inputs, runs=runs).open_runs():
        topics = topics_of_normal_texts(log.queries, run.topics, queries, run.name)
        rankers.append(
            RankedLists(run.name, {q: [document for document, _ in run[topic]] for q, topic in topics.items()})
        )
    return [*rankers, *policies]


def plan_study(study: str, participants: int | None = None) -> StudySchedule:
    """The schedule of a study: who does which task with which system, in which order."""
    from cranfield.studies.plan import read_study, schedule

    return schedule(read_study(study, participants))


def write_study_forms(study: str, folder: str, participants: int | None = None) -> list[str]:
    """Write a page for each participant and a template for answers into a folder; returns their names."""
    from cranfield.studies.forms import write_forms

    return write_forms(plan_study(study, participants), folder)


def analyze_study(
    study: str, answers: Sequence[str], *, participants: int | None = None, **options: Any
) -> StudyResults:
    """The results of a study from the answers of its participants, in files or folders."""
    from cranfield.studies.forms import read_answers
    from cranfield.studies.results import analyze as analyze_answers

    return analyze_answers(read_answers(plan_study(study, participants), answers), **options)
