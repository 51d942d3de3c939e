"""The lead's pages on rounds: plan a round, see its cost, open it, follow it, pause and close it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.registry import about
from cranfield.base.results import as_dicts, plain
from cranfield.commands.judging import hash_of_file, lists_of
from cranfield.http.refusal import Refusal
from cranfield.inputs.selection import judgment_source, qrels_of
from cranfield.judging.round_plan import PRIORITY, SHUFFLED, STATES, Round, RoundItem, plan_items
from cranfield.judging.round_status import RoundStatus, Status, round_statuses
from cranfield.judging.rounds import open_round, set_state
from cranfield.pooling.strategy import STRATEGIES
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.job_answers import ask
from cranfield.workbench.links import link
from cranfield.workbench.questions.pools import PoolPlanQuestion
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.inputs.workspace import Bench


def open_planned_round(
    bench: Bench, pool: PoolPlanQuestion, name: str, gold: str, gold_count: int, **settings: Any
) -> Round:
    """Open a round; an adaptive strategy chooses documents as labels come in, any other chooses them now.

    `gold` is the source of gold labels (collection, log@NAME, or empty); `settings` are further fields of the round.
    """
    pool.refuse(bench)
    if not name:
        raise DataError("a round needs a name")
    learns = STRATEGIES.named(pool.strategy).adaptive
    documents, _, frame = ([], 0, {}) if learns else pool.documents(bench)
    if not documents and not learns:
        raise DataError("there is nothing to judge: every document of this pool has a label; pool deeper")
    lists = lists_of([file.path for file in pool.files(bench)], pool.depth, None) if learns else {}
    guideline = bench.guideline_file()
    plan = Round(
        name=name,
        overlap=pool.overlap,
        seed=pool.seed,
        order=PRIORITY if learns else settings.pop("order", SHUFFLED),
        strategy=pool.strategy if learns else "",
        rel=bench.relevant_from,
        lists=lists,
        cap=pool.cap if learns else 0,
        sample=f"{pool.sample} documents at random, seed {pool.seed}" if pool.sample else "",
        frame=frame,
        guideline="" if guideline is None else hash_of_file(guideline),
        scale=tuple(bench.grades()),
        **settings,
    )
    open_round(bench.log, plan, [*documents, *_gold(bench, gold, gold_count, documents, pool.seed)])
    return plan


def _gold(bench: Bench, source: str, count: int, documents: Sequence[RoundItem], seed: int) -> list[RoundItem]:
    """Gold documents: a random sample of judged documents that the pool does not hold; empty without a source."""
    if not source:
        return []
    inside = {(each.topic, each.document) for each in documents}
    judged: dict[str, Any] = qrels_of(bench, judgment_source(bench, source)).to_dict()
    labels = [(topic, document, grade) for topic, grades in judged.items() for document, grade in grades.items()]
    free = [label for label in labels if label[:2] not in inside]
    if not free:
        raise DataError(f"gold: every judgment of {source} is in the pool; take another source, or no gold")
    sample = random.Random(seed).sample(free, min(count, len(free)))
    gold: dict[str, dict[str, float]] = {}
    for topic, document, grade in sample:
        gold.setdefault(topic, {})[document] = grade
    return plan_items([], gold=gold)


POOL = ("strategy", "depth", "cap", "overlap", "double", "sample", "seed")  # parameters of the pool
USUAL = {"strategy": "depth", "depth": "20", "overlap": "1", "lease": "30", "gold_count": "20"}


@page("/rounds", LEAD, "judging.round_statuses", table=True, menu=("manage", 10, "Rounds"))
def rounds(request: PageRequest) -> Page:
    """Every round: its progress, who is at work, what is left."""
    log = request.site.bench.log
    status = Status(log.name, log.place(), round_statuses(log))
    values = {"rounds": [_round(each) for each in status.rows]}
    table = status.to_csv(spreadsheet=True)
    return Page("Rounds", "rounds.html", values, table=table, scripts=("rounds.js",))


def _round(each: RoundStatus) -> dict[str, Any]:
    """A round as plain values."""
    values: dict[str, Any] = plain(as_dicts([each])[0])
    return {**values, "hours_left": round(each.hours_left, 2)}


@page("/rounds/new", LEAD, "jobs.ask pool-plan", table=True, menu=("manage", 20, "Plan a round"))
def new_round(request: PageRequest) -> Page:
    """Choose runs, strategy and depth, and see size, overlap and hours before starting."""
    bench = request.site.bench
    runs = [run.name for run in bench.runs()]
    plan_values = {name: request.text(name, USUAL.get(name, "")) for name in (*POOL, *USUAL)}
    selection = [name for name in request.texts("runs") if name in runs] or runs
    job = None
    if runs and request.text("look"):
        pool = {name: plan_values[name] for name in POOL if plan_values[name]}
        job = ask(request, "pool-plan", runs=selection, **pool)
    context = {
        "job": job,
        "plan_values": plan_values,
        "selection": selection,
        "strategies": [(name, about(each).split(". ")[0], each.adaptive) for name, each in STRATEGIES.items()],
        "people": request.assessors(),
        "sources": [*(["collection"] if bench.qrels else []), *(f"log@{each.name}" for each in bench.versions())],
        "qualifying": [each.name for each in bench.rounds()],
        "guideline": bool(bench.guideline()),
        "grades": bench.grades(),
        "name": request.text("name") or f"{len(bench.rounds()) + 1}",
    }
    values = {"runs": runs, "plan": None if job is None else job.values()}
    return Page("Plan a round", "round_new.html", values, context, job.table if job else None, ("live.js",))


@action("/rounds/new", LEAD, "open_planned_round")
def begin_round(request: PageRequest) -> ActionResult:
    """Open a round as it was planned."""
    pool = PoolPlanQuestion(
        runs=request.form_fields("runs"),
        **{name: request.form_field(name) for name in POOL if request.form_field(name).strip()},
    )
    people = [*request.form_fields("assessors"), *request.form_field("more_assessors").replace(",", " ").split()]
    plan = open_planned_round(
        request.site.bench,
        pool,
        request.form_field("name").strip(),
        request.form_field("gold"),
        int(request.number("gold_count", 20) or 20),
        assessors=tuple(dict.fromkeys(filter(None, people))),
        lease=60 * (request.number("lease", 30) or 30),
        gold_share=_share(request, "gold_share"),
        repeat_share=_share(request, "repeat_share"),
        passing=_share(request, "passing") or None,
        after=request.form_field("after"),
    )
    request.site.trainer.want(plan)
    return ActionResult(link("/round", name=plan.name), {"name": plan.name})


def _share(request: PageRequest, name: str) -> float:
    """A field in percent, as a share."""
    value = request.number(name, 0.0) or 0.0
    if not 0 <= value <= 100:
        raise Refusal(f"expected 0 to 100 percent as {name}, found {value:g}")
    return value / 100


@page("/round", LEAD, "judging.round_statuses", menu=("manage", 10, ""))
def one_round(request: PageRequest) -> Page:
    """One round: progress of each person, leased documents, what is left, and whether to close it."""
    name = request.required("name")
    log = request.site.bench.log
    [row] = round_statuses(log, name)
    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
    names = ("overlap", "gold_share", "repeat_share", "strategy", "sample", "passing", "after")
    about_plan = {name: getattr(plan, name) for name in names} | {"lease_minutes": plan.lease / 60}
    about_plan |= {"assessors": list(plan.assessors), "scale": list(plan.scale)}
    values = {**_round(row), "plan": about_plan, "advice": _advice(row)}
    return Page(f"Round {name}", "round.html", values, scripts=("rounds.js",))


def _advice(row: RoundStatus) -> str:
    """A sentence on whether the round can be closed."""
    if row.state == "closed":
        return "The round is closed: no more documents are assigned."
    if row.strategy and not row.left:
        return f"{row.strategy} chooses more documents as labels come in; cranfield pool stop says how many are left to find."
    if not row.left and not row.out:
        return "All labels are in: the round can be closed."
    if not row.left:
        return f"All documents are assigned; {row.out} are not labelled yet."
    return f"{row.left} of {row.places} labels are still missing."


@action("/round", LEAD, "judging.set_state")
def set_round(request: PageRequest) -> ActionResult:
    """Pause, reopen or close a round; refused if somebody else has changed its state meanwhile."""
    name, state, before = request.form_field("name"), request.form_field("state"), request.form_field("before")
    if state not in STATES:
        raise Refusal(f"expected a state of {', '.join(STATES)}, found {state[:20]!r}")
    log = request.site.bench.log
    with log.reading() as transaction:
        now = transaction.find_round(name)[1]
    if before and now != before:
        problem = f"round {name!r} is {now} by now: someone else changed it"
        raise Refusal(problem, 409, advice="Load the page again, then decide.")
    set_state(log, name, state)
    return ActionResult(link("/round", name=name), {"name": name, "state": state})
