"""The lead's pages on rounds: plan a round, see its cost, open it, follow it and its recall, change it, pause and close it."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.registry import about
from cranfield.base.results import as_dicts, plain
from cranfield.base.text_layout import counted
from cranfield.commands.judging import lists_of, spread_over_people
from cranfield.http.refusal import Refusal
from cranfield.inputs.selection import judgment_source, qrels_of
from cranfield.judging.adaptive_choice import find_models
from cranfield.judging.guidelines_history import keep_guidelines
from cranfield.judging.round_changes import ChangeRequest, change_round, round_documents
from cranfield.judging.round_plan import PRIORITY, SHUFFLED, STATES, Round, RoundItem, plan_items, without_judged
from cranfield.judging.round_recall import model_values
from cranfield.judging.round_status import RoundStatus, Status, round_statuses
from cranfield.judging.rounds import open_round, set_state
from cranfield.pooling.strategy import STRATEGIES
from cranfield.workbench.access_control import LEAD
from cranfield.workbench.job_answers import answer_page, ask
from cranfield.workbench.links import link
from cranfield.workbench.questions.pools import PoolPlanQuestion
from cranfield.workbench.routes import ActionResult, Page, PageRequest, action, page

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cranfield.inputs.workspace import Bench
    from cranfield.judging.policies import Subject


def open_planned_round(
    bench: Bench,
    pool: PoolPlanQuestion,
    name: str,
    gold: str,
    gold_count: int,
    spread_topics: bool = False,
    order: str = SHUFFLED,
    seed: int | None = None,
    **settings: Any,
) -> Round:
    """Open a round; an adaptive strategy chooses documents as labels come in, any other chooses them now.

    `gold` is the source of gold labels (collection, log@NAME, or empty); `settings` are further fields of the round. Without a
    seed, the order of documents and gold is drawn at random: whoever knows the seed can compute which documents are gold.
    """
    seed = secrets.randbelow(2**31) if seed is None else seed
    pool.refuse(bench)
    if not name:
        raise DataError("a round needs a name")
    learns = STRATEGIES.named(pool.strategy).adaptive
    documents, _, frame = ([], 0, {}) if learns else pool.documents(bench)
    if not documents and not learns:
        raise DataError("there is nothing to judge: every document of this pool is judged; pool deeper, or ask again")
    lists = _lists(bench, pool) if learns else {}
    plan = Round(
        name=name,
        overlap=pool.overlap,
        seed=seed,
        order=PRIORITY if learns else order,
        strategy=pool.strategy if learns else "",
        rel=bench.relevant_from,
        lists=lists,
        runs=tuple(pool.runs),
        pooling="" if learns else pool.strategy,
        depth=pool.depth,
        cap=pool.cap,
        sample=f"{pool.sample} documents at random, seed {pool.seed}" if pool.sample else "",
        frame=frame,
        guideline=keep_guidelines(bench.log, bench.guidelines()),
        scale=tuple(bench.grades()),
        **settings,
    )
    if spread_topics:
        plan = spread_over_people(plan, documents)
    open_round(bench.log, plan, [*documents, *_gold(bench, gold, gold_count, documents, seed)])
    return plan


def _lists(bench: Bench, pool: PoolPlanQuestion, there: Collection[Subject] = ()) -> dict[str, dict[str, list[str]]]:
    """The documents from which an adaptive strategy chooses; those that are `there` already stay."""
    files = [file.path for file in pool.files(bench)]
    lists, judged = lists_of(files, pool.depth, None), pool.judged(bench)
    if judged is None:
        return lists
    new = {
        topic: {document: grade for document, grade in grades.items() if (topic, document) not in there}
        for topic, grades in judged.to_dict().items()
    }
    return without_judged(lists, new)


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


TOPICS_BY = ("any", "even", "named", "choice")  # how topics find people
POOL = ("strategy", "depth", "cap", "overlap", "double", "sample", "seed", "again")  # parameters of the pool
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
    topics_by = _topics_by(request)
    people = [*request.form_fields("assessors"), *request.form_field("more_assessors").replace(",", " ").split()]
    plan = open_planned_round(
        request.site.bench,
        pool,
        request.form_field("name").strip(),
        request.form_field("gold"),
        int(request.number("gold_count", 20) or 20),
        seed=pool.seed if request.form_field("seed").strip() else None,
        assessors=tuple(dict.fromkeys(filter(None, people))),
        lease=60 * (request.number("lease", 30) or 30),
        gold_share=_share(request, "gold_share"),
        repeat_share=_share(request, "repeat_share"),
        passing=_share(request, "passing") or None,
        after=request.form_field("after"),
        order=request.form_field("order") or SHUFFLED,
        spread_topics=topics_by.pop("assign_topics", False),
        **topics_by,
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
    """One round: progress of each person, leased documents, what is left, its changes, and whether to close it."""
    name = request.required("name")
    log = request.site.bench.log
    [row] = round_statuses(log, name)
    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
    names = ("overlap", "gold_share", "repeat_share", "strategy", "sample", "passing", "after", "order", "depth")
    about_plan = {name: getattr(plan, name) for name in (*names, "choose_topics")} | {"lease_minutes": plan.lease / 60}
    about_plan |= {"assessors": list(plan.assessors), "scale": list(plan.scale), "topics": list(plan.topics)}
    about_plan["topic_people"] = {topic: list(people) for topic, people in plan.topic_people.items()}
    values = {**_round(row), "plan": about_plan, "advice": _advice(row)}
    people = list(dict.fromkeys([*request.assessors(), *plan.assessors]))
    assigned = "\n".join(f"{topic} = {', '.join(people)}" for topic, people in plan.topic_people.items())
    context = {"people_to_choose": people, "assigned": assigned, "deepens": bool(plan.runs) and not plan.sample}
    return Page(f"Round {name}", "round.html", values, context, scripts=("rounds.js",))


def _advice(row: RoundStatus) -> str:
    """A sentence on whether the round can be closed."""
    if row.state == "closed":
        return "The round is closed: no more documents are assigned."
    if row.skipped_by_all:
        return f"{counted(len(row.skipped_by_all), 'document')} skipped by everyone: decide about them below."
    if row.strategy and not row.left:
        return (
            f"{row.strategy} chooses more documents as labels come in; the page Recall says how many are left to find."
        )
    if not row.left and not row.out:
        return "All labels are in: the round can be closed."
    if not row.left:
        return f"All documents are assigned; {row.out} are not labelled yet."
    return f"{row.places - row.done} of {row.places} labels are still missing."


@action("/round/change", LEAD, "round_changes.change_round")
def alter_round(request: PageRequest) -> ActionResult:
    """Change people, labels per document, topics, order, depth or assigned topics; fields that are not sent stay as they are."""
    name, bench = request.form_field("name"), request.site.bench
    with bench.log.reading() as transaction:
        plan, _ = transaction.find_round(name)
        made = len(transaction.round_changes(plan.name))
    if request.form_field("changes", f"{made}") != f"{made}":
        problem = f"someone else changed round {name!r} meanwhile"
        raise Refusal(problem, 409, advice="Load the page again, then decide.")
    wishes: dict[str, Any] = {}
    if "assessors" in request.form or "people" in request.form:  # `people` is sent even if nobody is selected
        wishes["assessors"] = tuple(filter(None, request.form_fields("assessors")))
    if request.form_field("overlap").strip():
        wishes["overlap"] = request.whole_form_field("overlap", plan.overlap, 1, 1000)
    if "topics" in request.form:
        wishes["topics"] = tuple(_lines(request.form_fields("topics")))
    if request.form_field("order"):
        wishes["order"] = request.form_field("order")
    depth = request.whole_form_field("depth", plan.depth, 1, 100_000) if request.form_field("depth").strip() else 0
    if depth and depth != plan.depth:
        wishes |= _deeper(bench, plan, depth)
    seen = made if "changes" in request.form else None
    after = change_round(bench.log, name, ChangeRequest(**wishes, **_topics_by(request, plan)), request.name, seen)
    request.site.trainer.want(after)
    return ActionResult(link("/round", name=name), {"name": name})


def _lines(texts: Sequence[str]) -> list[str]:
    """The lines of texts that are not empty, each once."""
    return list(dict.fromkeys(line.strip() for text in texts for line in text.splitlines() if line.strip()))


def _topics_by(request: PageRequest, plan: Round | None = None) -> dict[str, Any]:
    """The fields of a change that say how topics are given to people, without those that equal the plan.

    `topics_by` is any, even, named or choice; for named, `topic_people` has a line `TOPIC = NAME, NAME` for each topic.
    """
    way = request.form_field("topics_by")
    if way not in ("", *TOPICS_BY):
        raise Refusal(f"expected topics_by to be {', '.join(TOPICS_BY)}, found {way[:20]!r}")
    if way == "even":
        return {"assign_topics": True}
    if way == "named":
        people = _people_of_topics(_lines(request.form_fields("topic_people")))
        return {} if plan is not None and people == plan.topic_people else {"topic_people": people}
    if not way or (plan is not None and way == _way(plan)):
        return {}
    return {"choose_topics": way == "choice"}


def _way(plan: Round) -> str:
    """How the topics of a round are given to people."""
    return "named" if plan.topic_people else "choice" if plan.choose_topics else "any"


def _people_of_topics(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """People by topic from lines such as `q1 = ann, bob`."""
    people = {}
    for line in lines:
        topic, equals, names = line.rpartition("=")
        if not equals or not topic.strip():
            raise Refusal(f"expected TOPIC = NAME, NAME for each topic, found {line[:60]!r}")
        people[topic.strip()] = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    return people


def _deeper(bench: Bench, plan: Round, depth: int) -> dict[str, Any]:
    """The fields of a change to another depth of the same runs; documents that have a label already are not added."""
    if not plan.runs:
        raise Refusal(f"round {plan.name!r} was not planned here; cranfield judge change changes its depth")
    strategy = plan.strategy or plan.pooling
    pool = PoolPlanQuestion(runs=list(plan.runs), strategy=strategy, depth=depth, cap=plan.cap, seed=plan.seed)
    if plan.strategy:
        there = {(topic, each) for topic, lists in plan.lists.items() for own in lists.values() for each in own}
        return {"lists": _lists(bench, pool, there), "depth": depth}
    to_judge = {(each.topic, each.document) for each in pool.documents(bench)[0]}
    there = set(round_documents(bench.log, plan.name))
    return {"pool": [each for each in pool.subjects(bench) if each in to_judge or each in there], "depth": depth}


@action("/round/skipped", LEAD, "round_changes.change_round")
def decide_skipped(request: PageRequest) -> ActionResult:
    """Decide about a document that everybody skipped: offer it again, drop it, or judge it, which takes it out of the round."""
    name, what = request.form_field("name"), request.form_field("what")
    subject = request.form_field("topic"), request.form_field("document")
    if what not in ("offer", "drop", "judge"):
        raise Refusal(f"expected offer, drop or judge, found {what[:20]!r}")
    wish = ChangeRequest(offer=[subject]) if what == "offer" else ChangeRequest(drop=[subject])
    change_round(request.site.bench.log, name, wish, request.name)
    to = link("/judge", topic=subject[0], document=subject[1]) if what == "judge" else link("/round", name=name)
    return ActionResult(to, {"name": name, "what": what})


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
