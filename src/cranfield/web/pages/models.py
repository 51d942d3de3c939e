"""Models that label: what they were asked, what it cost, what failed, and whether their labels can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.judge.models.drawn import rounds_that_drew
from cranfield.judge.models.questioning import meaning
from cranfield.judge.models.told import ModelFailures, budget, model_failure, model_failures, model_runs
from cranfield.judge.plan import TOPICS
from cranfield.web.asking import ask
from cranfield.web.entry import Page, page
from cranfield.web.refusal import NotFound, Refusal
from cranfield.web.roles import LEAD

if TYPE_CHECKING:
    from cranfield.judge.models.told import ModelRuns
    from cranfield.web.asking import Asked
    from cranfield.web.visit import Visit

AT_ONCE = 20  # failures on a page
IN_TABLE = 10_000  # failures in a CSV
EXCERPT = 600  # characters of what came back
MEASURES = {True: "nDCG@10 AP", False: "P@10 DCG@10"}  # that topics, and that documents which were drawn can estimate


@page("/models", LEAD, "judge.model_runs", table=True, menu=(55, "Models"))
def models(visit: Visit) -> Page:
    """What models were asked, what it cost, what failed; calibration, probes, drift and estimates of one; table=… of these."""
    log, name = visit.site.bench.log, visit.text("model")
    found = model_runs(log)
    known = [each.assessor for each in found.judges]
    if name and name not in known:
        raise NotFound(f"there is no model {name[:60]!r}", "The list of them: /models")
    chosen = name or "".join(known[:1])
    failures = _failures(visit, name)
    estimated = _estimated(visit, chosen)
    values = _told(found, name) | {
        "model": chosen,
        "failures": {key: value for key, value in failures.to_dict().items() if key != "log"},
        "estimate": estimated["asked"].values() if estimated["asked"] else None,
    }
    running = any(part and part["state"] == "running" for part in (values["estimate"],))
    table = _table(visit, found, name, estimated["asked"])
    shown = {
        "found": found,
        "listed": [each for each in found.rows if name in ("", each.assessor)],
        "named": name,
        "failed": failures,
        "reason": visit.text("reason"),
        "question": visit.text("question"),
        "at_once": AT_ONCE,
        "excerpt": EXCERPT,
        "estimated": estimated,
        "verdicts": {},
        "meaning": meaning,
        "budget": budget,
    }
    status = 202 if running and visit.twin == "json" else 200
    return Page("Models", "models.html", values, shown, table, ("live.js", "sort.js"), status)


def _told(found: ModelRuns, name: str) -> dict[str, Any]:
    """What was asked, for programs; where the log lies is nobody's business."""
    plain = found.to_dict()
    return {
        "models": plain["models"],
        "spent": plain["spent"],
        "runs": [each for each in plain["runs"] if name in ("", each["assessor"])],
    }


def _failures(visit: Visit, name: str) -> ModelFailures:
    """A page of what is no label; one of them whole."""
    log = visit.site.bench.log
    one = visit.text("question")
    if one:
        failure = model_failure(log, one)
        return ModelFailures(log.name, [failure], 1, 0, {failure.problem: 1})
    return model_failures(log, name, visit.text("reason"), visit.whole("from", 0, 0, 2**53), AT_ONCE)


def _estimated(visit: Visit, model: str) -> dict[str, Any]:
    """The estimate of scores by a model's labels, if a round drew; what its form offers."""
    bench = visit.site.bench
    drew = rounds_that_drew(bench.log)
    names = [each.name for each in drew]
    wanted = visit.text("round")
    if wanted and wanted not in names:
        raise NotFound(f"no round {wanted[:60]!r} drew at random", "The page of a model: /models")
    plan = next((each for each in drew if each.name == wanted), drew[-1] if drew else None)
    measures = visit.text("measures") or MEASURES[plan is not None and plan.unit == TOPICS]
    runs = [run.name for run in bench.runs()]
    asked = None
    if plan is not None and model and runs:
        asked = ask(visit, "estimate", model=model, round=plan.name, measures=measures)
    return {
        "asked": asked,
        "rounds": names,
        "round": "" if plan is None else plan.name,
        "measures": measures,
        "runs": runs,
    }


def _table(visit: Visit, found: ModelRuns, name: str, estimate: Asked | None) -> str | None:
    """The table that is named, as CSV."""
    if visit.twin != "csv":
        return None
    log, wanted = visit.site.bench.log, visit.text("table", "runs")
    if wanted == "runs":
        return model_runs(log, name).to_csv(spreadsheet=True)
    if wanted == "failures":
        start = visit.whole("from", 0, 0, 2**53)
        return model_failures(log, name, visit.text("reason"), start, IN_TABLE).to_csv(spreadsheet=True)
    asked = {"estimate": estimate}
    if wanted not in asked:
        raise Refusal(f"expected runs, failures, {', '.join(asked)} as table, found {wanted[:60]!r}")
    part = asked[wanted]
    return None if part is None else part.table
