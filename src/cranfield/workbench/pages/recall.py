"""The recall of a round, for leads: relevant documents found by label, what is left, and what the strategy has learned."""

from __future__ import annotations

from typing import Any

from cranfield.judging.adaptive_choice import find_models
from cranfield.judging.round_recall import model_values
from cranfield.pooling.strategy import STRATEGIES
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.routes import Page, PageRequest, page


@page("/recall", LEAD, "jobs.ask recall", table=True, menu=("manage", 10, ""))
def recall(request: PageRequest) -> Page:
    """Recall of a round with the bound of `pool stop`, and the models of a strategy that reads documents."""
    name, topic = request.required("round"), request.text("topic")
    with request.site.bench.log.reading() as transaction:
        plan, _ = transaction.find_round(name)
        models = find_models(transaction, name, [topic] if topic else None)
    reads = bool(plan.strategy) and STRATEGIES.named(plan.strategy).reads
    trainer = request.site.trainer
    if reads and plan.name not in trainer.why:
        trainer.want(plan)
    job = ask(request, "recall", round=name, topic=topic)
    training: dict[str, Any] = {"busy": trainer.busy, "progress": trainer.progress, "why": trainer.why.get(name, "")}
    training["why"] = request.site.public_text(training["why"])
    values: dict[str, Any] = {"round": name, "topic": topic, "strategy": plan.strategy, "training": training}
    values |= {"models": [model_values(each) for each in models]}
    context = {"reads": reads}
    return answer_page(request, f"Recall of round {name}", "recall.html", values, context, job)
