"""LLM judges: their requests, costs and failures, and whether their labels can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError
from cranfield.http.refusal import NotFound, Refusal
from cranfield.judging.llm.ask_result import meaning
from cranfield.judging.llm.drift import DriftCheck, drift_checks
from cranfield.judging.llm.label_sample import rounds_that_drew
from cranfield.judging.llm.probes import probes_of
from cranfield.judging.llm.usage import ModelFailures, budget, model_failure, model_failures, model_runs
from cranfield.judging.round_plan import TOPICS
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.job_answers import JobAnswer, ask, look
from cranfield.workbench.rendering import csv_of
from cranfield.workbench.routes import Page, PageRequest, page

if TYPE_CHECKING:
    from collections.abc import Sequence


AT_ONCE = 10  # failures on a page
IN_TABLE = 10_000  # failures in a CSV
EXCERPT = 400  # characters of a reply
MEASURES = {True: "nDCG@10 AP", False: "P@10 DCG@10"}  # defaults for a sample of topics, and for a sample of documents
LAST = 2**53


@page("/models", LEAD, "judging.model_runs", table=True, menu=("decide", 40, "Models"))
def models(request: PageRequest) -> Page:
    """Requests, costs and failures of LLM judges; for one of them calibration, probes, drift and estimates."""
    named = request.text("model")
    usage = model_runs(request.site.bench.log)
    judges = [each.assessor for each in usage.judges]
    if named and named not in judges:
        raise NotFound(f"there is no model {named[:60]!r}", "All of them: /models")
    if request.twin == "csv":
        return Page("Models", "models.html", table=_table(request, named, named or "".join(judges[:1])))
    model, failures = named or "".join(judges[:1]), _failures(request, named)
    values = _without_log(usage.to_dict())
    values["runs"] = [each for each in values["runs"] if named in ("", each["assessor"])]
    values |= {"model": model, "failures": _without_log(failures.to_dict())}
    context: dict[str, Any] = {
        "model_runs": usage,
        "listed": [each for each in usage.rows if named in ("", each.assessor)],
        "named": named,
        "failed": failures,
        "reason": request.text("reason"),
        "question": request.text("question"),
        "at_once": AT_ONCE,
        "excerpt": EXCERPT,
        "meaning": meaning,
        "budget": budget,
    }
    jobs: list[JobAnswer | None] = []
    if model:
        more, of_model, jobs = _of_model(request, model, judges)
        values |= more
        context |= of_model
    running = any(each is not None and each.kind == "running" for each in jobs)
    status = 202 if running and request.twin == "json" else 200
    return Page("Models", "models.html", values, context, None, ("live.js", "sort.js"), status)


def _without_log(values: dict[str, Any]) -> dict[str, Any]:
    """Values without the path of the log, which browsers must not see."""
    return {name: value for name, value in values.items() if name != "log"}


def _of_model(
    request: PageRequest, model: str, judges: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any], list[JobAnswer | None]]:
    """The page of one LLM judge: values of the JSON twin, template values, and answers of jobs."""
    log = request.site.bench.log
    probes, checks = probes_of(log, model), drift_checks(log, model)
    calibrated, sample = ask(request, "calibrate", model=model), _sample(request)
    estimated = _estimated(request, model, sample)
    values = {
        "calibration": calibrated.values(),
        "probes": probes.to_dict(),
        "drift": [each.plain() for each in checks],
        "estimate": None if estimated is None else estimated.values(),
    }
    context = {
        "calibrated": calibrated,
        "verdicts": {each: _verdict(request, each) for each in judges},
        "probed": probes,
        "checks": checks[::-1],
        "sample": sample,
        "estimated": estimated,
    }
    return values, context, [calibrated, estimated]


def _verdict(request: PageRequest, model: str) -> list[str]:
    """The findings of a cached calibration; without one, those of the probes."""
    calibration = look(request, "calibrate", model=model)
    if calibration is None:
        return [f"{model} {finding}" for finding in probes_of(request.site.bench.log, model).findings()]
    return list(calibration.answer["findings"])


def _failures(request: PageRequest, named: str) -> ModelFailures:
    """A page of failures; or one failure with its whole reply."""
    log, one = request.site.bench.log, request.text("question")
    if not one:
        return model_failures(log, named, request.text("reason"), request.whole("from", 0, 0, LAST), AT_ONCE)
    try:
        failure = model_failure(log, one)
    except CranfieldError:
        raise NotFound(f"there is no question {one[:60]!r} without a label", "All of them: /models") from None
    return ModelFailures(log.name, [failure], 1, 0, {failure.problem: 1})


def _sample(request: PageRequest) -> dict[str, Any]:
    """The rounds with a random sample, the selected one, its measures, and the runs: the values of a form."""
    bench, name = request.site.bench, request.text("round")
    drew = rounds_that_drew(bench.log)
    if name and name not in [each.name for each in drew]:
        raise NotFound(f"round {name[:60]!r} has no random sample", "All that can be estimated: /models")
    plan = next((each for each in drew if each.name == name), drew[-1] if drew else None)
    by_topics = plan is not None and plan.unit == TOPICS
    return {
        "rounds": [each.name for each in drew],
        "round": "" if plan is None else plan.name,
        "measures": request.text("measures") or MEASURES[by_topics],
        "runs": [run.name for run in bench.runs()],
    }


def _estimated(request: PageRequest, model: str, sample: dict[str, Any]) -> JobAnswer | None:
    """Prediction-powered estimates, if a round has a random sample."""
    if not (sample["round"] and sample["runs"]):
        return None
    return ask(request, "estimate", model=model, round=sample["round"], measures=sample["measures"])


def _table(request: PageRequest, named: str, model: str) -> str | None:
    """The table that the query names, as CSV."""
    log, table = request.site.bench.log, request.text("table", "runs")
    if table == "runs":
        return model_runs(log, named).to_csv(spreadsheet=True)
    if table == "failures":
        start = request.whole("from", 0, 0, LAST)
        return model_failures(log, named, request.text("reason"), start, IN_TABLE).to_csv(spreadsheet=True)
    if table not in ("calibration", "probes", "drift", "estimate"):
        names = "runs, failures, calibration, probes, drift or estimate"
        raise Refusal(f"expected {names} as table, found {table[:60]!r}", safe="")
    if not model:
        return None
    if table == "probes":
        return probes_of(log, model).to_csv(spreadsheet=True)
    if table == "drift":
        return _drift_table(drift_checks(log, model))
    if table == "calibration":
        return ask(request, "calibrate", model=model).table
    job = _estimated(request, model, _sample(request))
    return None if job is None else job.table


def _drift_table(checks: Sequence[DriftCheck]) -> str:
    head = ["time", "asked", "answered", "changed", "before", "after", "drifted", "accepted", "said"]
    rows = [
        [
            *(each.at, each.asked, each.answered, len(each.changed)),
            *("; ".join(map(str, served)) for served in (each.before, each.after)),
            *(each.drifted, each.accepted, "; ".join(each.differences())),
        ]
        for each in checks
    ]
    return csv_of(head, rows)
