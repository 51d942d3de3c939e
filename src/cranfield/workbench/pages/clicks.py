"""Clicks: what the workspace's event log says about ranks and grades."""

from __future__ import annotations

from cranfield.experiments.clicks.click_summary import MODEL
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.workbench.access_control import VIEWER
from cranfield.workbench.job_answers import answer_page, ask, judgment_options
from cranfield.workbench.routes import Page, PageRequest, page

UNCONVERGED = "did not converge"  # in the message of `refuse_unconverged`


@page("/clicks", VIEWER, "jobs.ask clicks", table=True, menu=("look", 32, "Clicks"))
def clicks(request: PageRequest) -> Page:
    """Clicks and examination by rank, and click-through by judged grade, from the event log of the workspace."""
    model = request.text("model") or MODEL
    there = request.site.bench.has_events
    choices = {name: request.text(name) for name in ("judgments", "policy") if request.text(name)}
    job = ask(request, "clicks", model=model, **choices) if there else None
    options = {name: value for name, value in judgment_options(request).items() if name != "measures"}
    models = list(dict.fromkeys([*CLICK_MODELS, model]))  # a model with parameters is in no list
    values = {"events": there, "model": model}
    unconverged = job is not None and any(UNCONVERGED in each for each in job.notes)
    patient = with_more_iterations(model) if unconverged else ""
    context = {"models": models, "patient": patient, **options}
    return answer_page(request, "Clicks", "clicks.html", values, context, job)


def with_more_iterations(typed: str) -> str:
    """The click model with ten times as many iterations; empty if its iterations cannot be chosen.

    >>> with_more_iterations("PBM(iterations=20)"), with_more_iterations("CM")
    ('PBM(iterations=200)', '')
    """
    model = CLICK_MODELS.named(typed)
    if "iterations" not in model.parameters:
        return ""
    values = {name: model.values[name] for name in model.typed}
    return str(type(model)(**{**values, "iterations": 10 * model.values["iterations"]}))
