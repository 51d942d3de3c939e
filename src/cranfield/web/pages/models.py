"""Models that label: what they were asked, what it cost, what failed, and whether their labels can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError
from cranfield.http.refusal import NotFound, Refusal
from cranfield.judge.models.drawn import rounds_that_drew
from cranfield.judge.models.drifting import drift_checks
from cranfield.judge.models.probed import probes_of
from cranfield.judge.models.questioning import meaning
from cranfield.judge.models.told import ModelFailures, budget, model_failure, model_failures, model_runs
from cranfield.judge.plan import TOPICS
from cranfield.web.asking import ask, look
from cranfield.web.entry import Page, page
from cranfield.web.roles import LEAD
from cranfield.web.tables import csv_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.models.drifting import Check
    from cranfield.judge.models.told import ModelRuns
    from cranfield.web.asking import Asked
    from cranfield.web.visit import Visit

AT_ONCE = 10  # failures on a page
IN_TABLE = 10_000  # failures in a CSV
EXCERPT = 400  # characters of what came back
MEASURES = {True: "nDCG@10 AP", False: "P@10 DCG@10"}  # that topics, and that documents which were drawn can estimate
LAST = 2**53


@page("/models", LEAD, "judge.model_runs", table=True, menu=(55, "Models"))
def models(visit: Visit) -> Page:
    """What models were asked, what it cost, what failed; of one model calibration, probes, drift and estimates."""
    named = visit.text("model")
    found = model_runs(visit.site.bench.log)
    known = [each.assessor for each in found.judges]
    if named and named not in known:
        raise NotFound(f"there is no model {named[:60]!r}", "All of them: /models")
    if visit.twin == "csv":
        return Page("Models", "models.html", table=_table(visit, named, named or "".join(known[:1])))
    model, failures = named or "".join(known[:1]), _failures(visit, named)
    values = _told(found, named) | {"model": model, "failures": _without_log(failures.to_dict())}
    shown: dict[str, Any] = {
        "found": found,
        "listed": [each for each in found.rows if named in ("", each.assessor)],
        "named": named,
        "failed": failures,
        "reason": visit.text("reason"),
        "question": visit.text("question"),
        "at_once": AT_ONCE,
        "excerpt": EXCERPT,
        "meaning": meaning,
        "budget": budget,
    }
    asked: list[Asked | None] = []
    if model:
        more, of_model, asked = _of_model(visit, model, known)
        values |= more
        shown |= of_model
    running = any(each is not None and each.kind == "running" for each in asked)
    status = 202 if running and visit.twin == "json" else 200
    return Page("Models", "models.html", values, shown, None, ("live.js", "sort.js"), status)


def _without_log(values: dict[str, Any]) -> dict[str, Any]:
    """Where the log lies is nobody's business."""
    return {name: value for name, value in values.items() if name != "log"}


def _told(found: ModelRuns, named: str) -> dict[str, Any]:
    """What was asked, for programs."""
    plain = _without_log(found.to_dict())
    return plain | {"runs": [each for each in plain["runs"] if named in ("", each["assessor"])]}


def _of_model(
    visit: Visit, model: str, known: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any], list[Asked | None]]:
    """What there is to say of one model: for programs, for the page, and what is asked of the jobs."""
    log = visit.site.bench.log
    probes, checks = probes_of(log, model), drift_checks(log, model)
    calibrated, drawn = ask(visit, "calibrate", model=model), _drawn(visit)
    estimated = _estimated(visit, model, drawn)
    values = {
        "calibration": calibrated.values(),
        "probes": probes.to_dict(),
        "drift": [each.plain() for each in checks],
        "estimate": None if estimated is None else estimated.values(),
    }
    shown = {
        "calibrated": calibrated,
        "verdicts": {each: _verdict(visit, each) for each in known},
        "probed": probes,
        "checks": checks[::-1],
        "drawn": drawn,
        "estimated": estimated,
    }
    return values, shown, [calibrated, estimated]


def _verdict(visit: Visit, model: str) -> list[str]:
    """What a calibration says, if one was asked for; else what the probes alone say."""
    asked = look(visit, "calibrate", model=model)
    if asked is None:
        return [f"{model} {said}" for said in probes_of(visit.site.bench.log, model).findings()]
    return list(asked.answer["findings"])


def _failures(visit: Visit, named: str) -> ModelFailures:
    """Some of what is no label; or one of it, whole."""
    log, one = visit.site.bench.log, visit.text("question")
    if not one:
        return model_failures(log, named, visit.text("reason"), visit.whole("from", 0, 0, LAST), AT_ONCE)
    try:
        failure = model_failure(log, one)
    except CranfieldError:
        raise NotFound(f"there is no question {one[:60]!r} without a label", "All of them: /models") from None
    return ModelFailures(log.name, [failure], 1, 0, {failure.problem: 1})


def _drawn(visit: Visit) -> dict[str, Any]:
    """Which rounds drew at random, the one that is looked at, and by which measures: what a form offers."""
    bench, wanted = visit.site.bench, visit.text("round")
    drew = rounds_that_drew(bench.log)
    if wanted and wanted not in [each.name for each in drew]:
        raise NotFound(f"no round {wanted[:60]!r} drew at random", "All that can be estimated: /models")
    plan = next((each for each in drew if each.name == wanted), drew[-1] if drew else None)
    by_topics = plan is not None and plan.unit == TOPICS
    return {
        "rounds": [each.name for each in drew],
        "round": "" if plan is None else plan.name,
        "measures": visit.text("measures") or MEASURES[by_topics],
        "runs": [run.name for run in bench.runs()],
    }


def _estimated(visit: Visit, model: str, drawn: dict[str, Any]) -> Asked | None:
    """Scores by a model's labels, if a round drew."""
    if not (drawn["round"] and drawn["runs"]):
        return None
    return ask(visit, "estimate", model=model, round=drawn["round"], measures=drawn["measures"])


def _table(visit: Visit, named: str, model: str) -> str | None:
    """The table that the query names, as CSV."""
    log, wanted = visit.site.bench.log, visit.text("table", "runs")
    if wanted == "runs":
        return model_runs(log, named).to_csv(spreadsheet=True)
    if wanted == "failures":
        start = visit.whole("from", 0, 0, LAST)
        return model_failures(log, named, visit.text("reason"), start, IN_TABLE).to_csv(spreadsheet=True)
    if wanted not in ("calibration", "probes", "drift", "estimate"):
        names = "runs, failures, calibration, probes, drift or estimate"
        raise Refusal(f"expected {names} as table, found {wanted[:60]!r}", safe="")
    if not model:
        return None
    if wanted == "probes":
        return probes_of(log, model).to_csv(spreadsheet=True)
    if wanted == "drift":
        return _drift_table(drift_checks(log, model))
    asked = ask(visit, "calibrate", model=model) if wanted == "calibration" else _estimated(visit, model, _drawn(visit))
    return None if asked is None else asked.table


def _drift_table(checks: Sequence[Check]) -> str:
    head = ["time", "asked", "answered", "changed", "before", "after", "drifted", "accepted", "said"]
    rows = [
        [
            *(each.at, each.asked, each.answered, len(each.changed)),
            *("; ".join(map(str, served)) for served in (each.before, each.after)),
            *(each.drifted, each.accepted, "; ".join(each.said())),
        ]
        for each in checks
    ]
    return csv_of(head, rows)
