"""The lead's pages: plan a round, see what it costs, open it, watch it, pause and close it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.answer import plain
from cranfield.http.refusal import Refusal
from cranfield.judge.plan import STATES, find_round
from cranfield.judge.rounds import set_state
from cranfield.judge.status import Status, round_statuses
from cranfield.pool.strategy import STRATEGIES
from cranfield.registry import about
from cranfield.web.asking import ask
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.render import link
from cranfield.web.roles import ASSESSOR, LEAD, may
from cranfield.workspace.opening import Manning, begin
from cranfield.workspace.verbs.pool_plan import PoolPlan

if TYPE_CHECKING:
    from cranfield.judge.status import RoundStatus
    from cranfield.web.visit import Visit

POOL = ("strategy", "depth", "cap", "overlap", "double", "sample", "seed")  # what a pool is asked by
USUAL = {"strategy": "depth", "depth": "20", "overlap": "1", "lease": "30", "gold_count": "20"}


@page("/rounds", LEAD, "judge.status", table=True, menu=(30, "Rounds"))
def rounds(visit: Visit) -> Page:
    """Every round: how far it is, who is at work, what is left."""
    log = visit.site.bench.log
    found = Status(log.name, log.place(), round_statuses(log))
    values = {"rounds": [_round(each) for each in found.rows]}
    table = found.to_csv(spreadsheet=True)
    return Page("Rounds", "rounds.html", values, table=table, scripts=("rounds.js",))


def _round(each: RoundStatus) -> dict[str, Any]:
    """A round as plain values, with how long it will take at the pace of its people."""
    paces = [person.seconds for person in each.people if person.seconds is not None]
    hours = each.left * (sum(paces) / len(paces)) / 3600 if paces else None
    values: dict[str, Any] = plain({**vars(each), "people": [vars(person) for person in each.people]})
    return {**values, "hours_left": None if hours is None else round(hours, 2)}


@page("/rounds/new", LEAD, "workspace.pool-plan", table=True)
def new_round(visit: Visit) -> Page:
    """Choose runs, strategy and depth, and see size, overlap and hours before starting."""
    bench = visit.site.bench
    runs = [run.name for run in bench.runs()]
    wanted = {name: visit.text(name, USUAL.get(name, "")) for name in (*POOL, *USUAL)}
    chosen = [name for name in visit.texts("runs") if name in runs] or runs
    asked = None
    if runs and visit.text("look"):
        asked = ask(visit, "pool-plan", runs=chosen, **{name: wanted[name] for name in POOL if wanted[name]})
    known = [account for account in visit.site.accounts.all() if may(account.role, ASSESSOR) and account.active]
    shown = {
        "asked": asked,
        "wanted": wanted,
        "chosen": chosen,
        "strategies": [(name, about(each).split(". ")[0], each.adaptive) for name, each in STRATEGIES.items()],
        "people": [account.name for account in known],
        "sources": [*(["collection"] if bench.qrels else []), *(f"log@{each.name}" for each in bench.versions())],
        "qualifying": [each.name for each in bench.rounds()],
        "guideline": bool(bench.guideline()),
        "grades": bench.grades(),
        "name": visit.text("name") or f"{len(bench.rounds()) + 1}",
    }
    values = {"runs": runs, "plan": None if asked is None else asked.values()}
    return Page("Plan a round", "round_new.html", values, shown, asked.table if asked else None, ("live.js",))


@action("/rounds/new", LEAD, "workspace.opening.begin")
def begin_round(visit: Visit) -> Done:
    """Open a round as it was planned."""
    pool = PoolPlan(
        runs=visit.all_said("runs"), **{name: visit.said(name) for name in POOL if visit.said(name).strip()}
    )
    people = [*visit.all_said("assessors"), *visit.said("more_assessors").replace(",", " ").split()]
    manning = Manning(
        name=visit.said("name"),
        assessors=[name for name in people if name],
        lease=60 * (visit.number("lease", 30) or 30),
        gold=visit.said("gold"),
        gold_count=int(visit.number("gold_count", 20) or 20),
        gold_share=_share(visit, "gold_share"),
        repeat_share=_share(visit, "repeat_share"),
        passing=_share(visit, "passing") or None,
        after=visit.said("after"),
    )
    plan = begin(visit.site.bench, pool, manning)
    return Done(link("/round", name=plan.name), {"name": plan.name})


def _share(visit: Visit, name: str) -> float:
    """A percentage as a share."""
    value = visit.number(name, 0.0) or 0.0
    if not 0 <= value <= 100:
        raise Refusal(f"expected 0 to 100 percent as {name}, found {value:g}")
    return value / 100


@page("/round", LEAD, "judge.status")
def one_round(visit: Visit) -> Page:
    """One round: who is where, what is out, what is left, and whether it may stop."""
    name = visit.needed("name")
    log = visit.site.bench.log
    [row] = round_statuses(log, name)
    with log.reading() as transaction:
        plan, _ = find_round(transaction.connection, name)
    about_plan = {
        "overlap": plan.overlap,
        "lease_minutes": plan.lease / 60,
        "gold_share": plan.gold_share,
        "repeat_share": plan.repeat_share,
        "strategy": plan.strategy,
        "sample": plan.sample,
        "assessors": list(plan.assessors),
        "passing": plan.passing,
        "after": plan.after,
        "scale": list(plan.scale),
    }
    values = {**_round(row), "plan": about_plan, "advice": _advice(row)}
    return Page(f"Round {name}", "round.html", values, scripts=("rounds.js",))


def _advice(row: RoundStatus) -> str:
    """Whether it may stop."""
    if row.state == "closed":
        return "It is closed: no more documents are handed out."
    if row.strategy and not row.left:
        return (
            f"{row.strategy} names more documents as labels come; cranfield pool stop says how many are left to find."
        )
    if not row.left and not row.out:
        return "Every label is there: it can be closed."
    if not row.left:
        return f"All is handed out, {row.out} of it not labelled yet."
    return f"{row.left} of {row.places} labels are still to be given."


@action("/round", LEAD, "judge.set_state")
def set_round(visit: Visit) -> Done:
    """Pause a round, go on with it, or close it; refused where somebody else changed it meanwhile."""
    name, state, before = visit.said("name"), visit.said("state"), visit.said("before")
    if state not in STATES:
        raise Refusal(f"expected a state of {', '.join(STATES)}, found {state[:20]!r}")
    log = visit.site.bench.log
    with log.reading() as transaction:
        now = find_round(transaction.connection, name)[1]
    if before and now != before:
        raise Refusal(
            f"round {name!r} is {now} by now: somebody else changed it", 409, advice="Look at it again, then decide."
        )
    set_state(log, name, state)
    return Done(link("/round", name=name), {"name": name, "state": state})
