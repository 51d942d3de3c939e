"""The usage of LLM judges in a log: every series, its cost, and every reply that is not a label.

Everything is read from running counts, so that it takes no longer with a million questions. Failures are grouped by
series and reason, and the size of each group is known: a page of failures is found without reading the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Text, func, literal_column, select, type_coerce

from cranfield.base.errors import DataError
from cranfield.base.parameters import masked, shortened
from cranfield.base.results import Cell, Layout, Lines, Part, Rows, Table, fitted
from cranfield.base.text_layout import counted
from cranfield.judging.llm import question_store
from cranfield.judging.llm.ask_result import meaning
from cranfield.judging.llm.question_store import ANSWERED, DRIFT, FAILED, LABEL, SENT, Budget, Spent
from cranfield.store.tables import events, length_of, plain_start, questions, series, spending, tallies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.judging.log import Log

ASK = "cranfield judge ask LOG --pool FILE --collection FOLDER --endpoint URL --model NAME --prompt graded"
NAMES = 10_000  # models and fingerprints as returned, of all series together
EXCERPT = 4000  # characters of what came back
SHORT = 19  # characters of a hash
AT_ONCE = 50  # failures
LISTED = 10  # models in a message


@dataclass(frozen=True)
class Counts:
    """The numbers of questions by their results."""

    questions: int = 0  # that were sent, those asked again too
    labels: int = 0  # answers that are one
    probes: int = 0  # answers to questions that were asked for another purpose
    unusable: dict[str, int] = field(default_factory=dict)  # answers that are not labels, by reason
    unanswered: dict[str, int] = field(default_factory=dict)  # tries without an answer of the model, by why
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    cost: float = 0.0
    seconds: float = 0.0
    last: str = ""

    @property
    def open(self) -> int:
        """Questions without a reply: under way, or lost."""
        replies = sum(self.unusable.values()) + sum(self.unanswered.values())
        return self.questions - self.labels - self.probes - replies

    @property
    def failures(self) -> dict[str, int]:
        """The number of failures by reason, including pairs that were asked again."""
        return dict(sorted((Counter(self.unusable) + Counter(self.unanswered)).items()))


@dataclass(frozen=True)
class ModelRun:
    """One call of `judge ask`."""

    series: str
    time: str
    model: str
    assessor: str
    prompt: str  # its name and version
    kind: str
    hash: str
    endpoint: str
    pool: str
    purposes: dict[str, int]  # questions by what they were for
    pairs: int | None  # that were to be asked, each text once; None where an older version did not write it down
    budget: Budget
    returned: list[tuple[str, str, int]]  # model, fingerprint, answers
    counts: Counts

    @property
    def purpose(self) -> str:
        """The purpose of the run: labels, probes, a drift check; empty if nothing was asked yet."""
        kinds = (each if each in (LABEL, DRIFT) else "probes" for each in self.purposes)
        return ", ".join(dict.fromkeys(kinds))


@dataclass(frozen=True)
class ModelJudge:
    """An LLM judge: a model with a prompt, and its usage."""

    assessor: str
    model: str
    runs: int
    labels: int  # in the log, also where its answers came from elsewhere
    counts: Counts


@dataclass(frozen=True, repr=False)
class ModelRuns(Rows[ModelRun]):
    """Every call of `judge ask` in a log, the newest first, and the cost of each model."""

    log: str
    rows: list[ModelRun]
    judges: list[ModelJudge]
    spent: dict[str, Spent]  # by model, with what is set aside for questions without a reply

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.judges:
            yield f"{self.log}: no model was asked; ask one: {ASK}"
            return
        yield f"{self.log}: {self._in_short()}"
        head = ["assessor", "runs", "labels", "no label", "no answer", "no reply", "tokens in", "tokens out", "cost"]
        yield Table(head, [self._judge(each) for each in self.judges], spare=(6, 7), caption="Models")
        if self.rows:
            head = [
                *("time", "assessor", "for", "pairs", "asked", "labels", "no label", "no answer", "no reply"),
                *("cost", "budget", "answered by"),
            ]
            yield Table(head, [_run(each) for each in self.rows], 2, 3, caption="Runs", tail=True, spare=(10, 8, 2, 3))
        reasons: list[list[Cell | str]] = [
            [each.assessor, why, _count(count), meaning(why)]
            for each in self.judges
            for why, count in each.counts.failures.items()
        ]
        if reasons:
            yield Table(["assessor", "no label", "questions", "which is"], reasons, 2, caption="Failures", tail=True)

    def _in_short(self) -> str:
        """The usage in a sentence."""
        labels = sum(each.labels for each in self.judges)
        money = sum(each.cost for each in self.spent.values())
        failures = sum(sum(each.counts.failures.values()) for each in self.judges)
        runs = f" in {counted(len(self.rows), 'run')}" if self.rows else ""
        cost = f", cost {money:.6g}" if money else ""
        return f"{counted(labels, 'label')} of {counted(len(self.judges), 'model')}{runs}, {counted(failures, 'failure')}{cost}"

    def _judge(self, each: ModelJudge) -> list[Cell | str]:
        numbers = each.runs, each.labels, *_lacking(each.counts), each.counts.tokens_in, each.counts.tokens_out
        return [each.assessor, *map(_count, numbers), _money(each.counts)]

    def plain(self, how: Layout) -> Any:
        return {
            "log": self.log,
            "models": [
                {"assessor": each.assessor, "model": each.model, "runs": each.runs, **_plain(each.counts)}
                | {"labels": each.labels}
                for each in self.judges
            ],
            "spent": {model: each._asdict() for model, each in self.spent.items()},
            "runs": [_plain_run(each) for each in self.rows],
        }

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """One row per run."""
        yield [
            *("time", "assessor", "model", "prompt", "kind", "hash", "purposes", "pairs", "questions", "labels"),
            *("no_label", "no_answer", "no_reply", "tokens_in", "tokens_out", "cost", "seconds", "budget_money"),
            *("budget_tokens", "answered_by", "endpoint", "pool", "series"),
        ]
        for each in self.rows:
            counts = each.counts
            yield [
                *(each.time, each.assessor, each.model, each.prompt, each.kind, each.hash, " ".join(each.purposes)),
                *(each.pairs, counts.questions, counts.labels, *_lacking(counts)),
                *(counts.tokens_in, counts.tokens_out, counts.cost),
                *(counts.seconds, *each.budget, _returned(each), each.endpoint, each.pool, each.series),
            ]


def _lacking(counts: Counts) -> tuple[int, int, int]:
    """The numbers of questions without a label, without an answer, and without a reply."""
    return sum(counts.unusable.values()), sum(counts.unanswered.values()), counts.open


def _money(counts: Counts) -> Cell:
    unpriced = not counts.cost and counts.tokens_in + counts.tokens_out > 0
    return Cell("–") if unpriced else Cell(f"{counts.cost:.6g}", counts.cost)


def _count(number: float) -> Cell:
    return Cell(f"{number:,.0f}", number)


def _run(each: ModelRun) -> list[Cell | str]:
    counts, pairs = each.counts, Cell("–") if each.pairs is None else _count(each.pairs)
    numbers = [pairs, *map(_count, (counts.questions, counts.labels, *_lacking(counts))), _money(counts)]
    return [moment(each.time), each.assessor, each.purpose, *numbers, budget(each), _returned(each)]


def moment(time: str) -> str:
    """A time for a table, to the minute.

    >>> moment("2026-03-01T10:00:12.000000Z")
    '2026-03-01 10:00'
    """
    return time[:16].replace("T", " ")


def budget(each: ModelRun) -> str:
    """The budget of a model when a run began."""
    if each.budget.money is not None:
        return f"{each.budget.money:g}"
    return "none" if each.budget.tokens is None else f"{each.budget.tokens:,.0f} tokens"


def _returned(each: ModelRun) -> str:
    return "; ".join(f"{model} {mark}".strip() for model, mark, _ in each.returned)


def _plain(counts: Counts) -> dict[str, Any]:
    return {**vars(counts), "failures": counts.failures, "open": counts.open}


def _plain_run(each: ModelRun) -> dict[str, Any]:
    names = ("model", "fingerprint", "answers")
    own = {name: value for name, value in vars(each).items() if name != "counts"}
    own |= {"budget": each.budget._asdict(), "returned": [dict(zip(names, one, strict=True)) for one in each.returned]}
    return own | _plain(each.counts)


class ModelFailure(NamedTuple):
    """A question without a label: the reason, and the raw reply."""

    id: str
    assessor: str
    series: str
    purpose: str
    topic: str
    document: str
    other: str
    asked: str
    problem: str
    answered: bool  # by the model; otherwise the pair may have been asked again
    raw: str
    characters: int  # that came back
    returned: str
    fingerprint: str


@dataclass(frozen=True, repr=False)
class ModelFailures(Rows[ModelFailure]):
    """Questions without a label, from an offset on: the newest series first, by reason."""

    log: str
    rows: list[ModelFailure]
    total: int
    first: int  # how many come before
    reasons: dict[str, int]  # of all models that are looked at

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.rows:
            yield f"{self.log}: no failure{' from there on' if self.total else ''}"
            return
        yield f"{self.log}: failures {self.first + 1:,} to {self.first + len(self.rows):,} of {self.total:,}"
        paired = any(each.other for each in self.rows)
        head = ["asked", "assessor", "topic", "document", *["other"] * paired, "no label", "what came back"]
        rows = [
            [moment(row.asked), row.assessor, row.topic, row.document, *[row.other] * paired, row.problem, row.raw]
            for row in self.rows
        ]
        table = Table(head, rows, names=4, left=len(head), tail=True, spare=(0,))
        yield table if how.every else fitted(table, len(head) - 1, how.limit)
        yield Lines([f"{why}: {meaning(why)}" for why in dict.fromkeys(each.problem for each in self.rows)], dim=True)

    def plain(self, how: Layout) -> Any:
        return {**vars(self), "rows": [each._asdict() for each in self.rows]}

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        yield ModelFailure._fields
        yield from self.rows


def model_runs(log: Log, model: str = "") -> ModelRuns:
    """The usage of all LLM judges in a log, or of one.

    A judge is named with its prompt (NAME/PROMPT-VERSION), or without it for all prompts of the model.
    """
    every = _every(log)
    if not model:
        return every
    judges = [each for each in every.judges if model in (each.assessor, each.model)]
    if not judges:
        there = ", ".join(repr(shortened(each.assessor)) for each in every.judges[:LISTED]) or "none"
        raise DataError(f"{log.name}: there is no model {shortened(model)!r}; there are: {there}")
    names, models = {each.assessor for each in judges}, {each.model for each in judges}
    spent = {name: each for name, each in every.spent.items() if name in models}
    return ModelRuns(log.name, [each for each in every.rows if each.assessor in names], judges, spent)


def _every(log: Log) -> ModelRuns:
    if not log.has_records():  # only events, which need no tables
        labels = Counter(event.assessor for event in log.events() if event.source == "model")
        return ModelRuns(log.name, [], _judges([], labels), {})
    with log.reading() as transaction:
        connection = transaction.connection
        rows, labels = _runs(connection), _labels(connection)
        of_models = connection.execute(select(spending).order_by(spending.c.model))
        spent = {row.model: Spent(row.tokens, row.cost) for row in of_models}
    return ModelRuns(log.name, rows, _judges(rows, labels), spent)


def _runs(connection: Connection) -> list[ModelRun]:
    counts, returned = _counts(connection), _all_returned(connection)
    runs = []
    for row in connection.execute(select(series).order_by(series.c.created.desc(), series.c.id.desc())).all():
        definition, own = question_store.definition_of(connection, row.definition, row.id), counts.get(row.id, [])
        prompt = definition.get("prompt", {})
        run = ModelRun(
            series=row.id,
            time=row.created,
            model=row.model,
            assessor=definition.get("assessor", row.model),
            prompt=f"{prompt.get('name', '')} {prompt.get('version', '')}".strip(),
            kind=prompt.get("kind", ""),
            hash=prompt.get("hash", ""),
            endpoint=masked(definition.get("endpoint", "")),
            pool=definition.get("pool", {}).get("file", ""),
            purposes={each.purpose: each.questions for each in own if each.state == SENT},
            pairs=definition.get("due"),
            budget=Budget(**definition.get("budget", {})),
            returned=returned.get(row.id, []),
            counts=_of_series(own),
        )
        runs.append(run)
    return runs


def _counts(connection: Connection) -> dict[str, list[Any]]:
    """The results of the questions of each series."""
    c = tallies.c
    keys = c.series, c.purpose, c.state, c.problem
    sums = [func.sum(c[name]).label(name) for name in ("questions", *question_store.SUMS)]
    answer: dict[str, list[Any]] = {}
    for row in connection.execute(select(*keys, *sums, func.max(c.last).label("last")).group_by(*keys).order_by(*keys)):
        answer.setdefault(row.series, []).append(row)
    return answer


def beside_labels(log: Log) -> int:
    """The number of questions for other purposes than labels: probes and drift checks."""
    query = select(func.sum(tallies.c.questions)).where(tallies.c.purpose != LABEL)
    with log.reading() as transaction:
        return int(transaction.connection.execute(query).scalar() or 0)


def _of_series(rows: list[Any]) -> Counts:
    good = [row for row in rows if row.state == ANSWERED and not row.problem]
    replies = [row for row in rows if row.state != SENT]
    reasons: dict[str, Counter[str]] = {ANSWERED: Counter(), FAILED: Counter()}
    for row in replies:
        if row.problem:
            reasons[row.state][row.problem] += int(row.questions)
    sums: dict[str, Any] = {name: sum(getattr(row, name) for row in replies) for name in question_store.SUMS}
    return Counts(
        questions=sum(int(row.questions) for row in rows if row.state == SENT),
        labels=sum(int(row.questions) for row in good if row.purpose == LABEL),
        probes=sum(int(row.questions) for row in good if row.purpose != LABEL),
        unusable=dict(reasons[ANSWERED]),
        unanswered=dict(reasons[FAILED]),
        **sums,
        last=max((row.last for row in rows), default=""),
    )


def _all_returned(connection: Connection) -> dict[str, list[tuple[str, str, int]]]:
    """The models and fingerprints that answered in each series, the most frequent first."""
    c = tallies.c
    answers = func.sum(c.questions).label("answers")
    query = (
        select(c.series, c.returned, c.fingerprint, answers)
        .where(c.state == ANSWERED)
        .group_by(c.series, c.returned, c.fingerprint)
        .order_by(answers.desc(), c.returned, c.fingerprint)
        .limit(NAMES)
    )
    by_series: dict[str, list[tuple[str, str, int]]] = {}
    for row in connection.execute(query):
        by_series.setdefault(row.series, []).append((row.returned, row.fingerprint, int(row.answers)))
    return by_series


def _labels(connection: Connection) -> Counter[str]:
    """How many labels of each model are in the log."""
    of_models = events.c.source == literal_column("'model'")  # as the index says it
    query = select(events.c.assessor, func.count()).where(of_models).group_by(events.c.assessor)
    return Counter({row[0]: row[1] for row in connection.execute(query)})


def _judges(rows: Sequence[ModelRun], labels: Counter[str]) -> list[ModelJudge]:
    """Each model with a prompt, the last used first; then those whose labels were imported."""
    by_name: dict[str, list[ModelRun]] = {}
    for run in rows:
        by_name.setdefault(run.assessor, []).append(run)
    blocks = [
        ModelJudge(name, own[0].model, len(own), labels.pop(name, 0), _summed([run.counts for run in own]))
        for name, own in by_name.items()
    ]
    return [*blocks, *(ModelJudge(name, name, 0, count, Counts()) for name, count in sorted(labels.items()))]


def _summed(every: Sequence[Counts]) -> Counts:
    numbers = ("questions", "labels", "probes", "tokens_in", "tokens_out", "cost", "seconds")
    sums: dict[str, Any] = {name: sum(getattr(each, name) for each in every) for name in numbers}
    for name in ("unusable", "unanswered"):
        sums[name] = dict(sum((Counter(getattr(each, name)) for each in every), Counter[str]()))
    return Counts(**sums, last=max(each.last for each in every))


def model_failures(
    log: Log, model: str = "", reason: str = "", first: int = 0, n: int = AT_ONCE, cut: int | None = EXCERPT
) -> ModelFailures:
    """Questions without a label, of a model (with or without its prompt) and for a reason, from an offset on."""
    runs = model_runs(log, model).rows
    blocks = [(run, why, size) for run in runs for why, size in run.counts.failures.items()]
    reasons = sum((Counter(run.counts.failures) for run in runs), Counter[str]())
    fitting = [block for block in blocks if reason in ("", block[1])]
    rows: list[ModelFailure] = []
    before, c = first, questions.c
    if fitting:
        with log.reading() as transaction:
            for run, why, size in fitting:
                if len(rows) < n and before < size:
                    page: dict[str, Any] = {"cut": cut, "before": before, "n": n - len(rows)}
                    rows += _failures(transaction.connection, runs, c.series == run.series, c.problem == why, **page)
                before = max(0, before - size)
    total = sum(size for _, _, size in fitting)
    return ModelFailures(log.name, rows, total, first, dict(sorted(reasons.items())))


def model_failure(log: Log, id: str) -> ModelFailure:
    """One question without a label, with the whole reply."""
    runs = model_runs(log).rows
    with log.reading() as transaction:
        rows = _failures(transaction.connection, runs, questions.c.id == id)
    if not rows:
        raise DataError(f"{log.name}: there is no question {shortened(id)!r} without a label")
    return rows[0]


def _failures(
    connection: Connection,
    runs: Sequence[ModelRun],
    *where: Any,
    cut: int | None = None,
    before: int = 0,
    n: int | None = None,
) -> list[ModelFailure]:
    c, assessors = questions.c, {run.series: run.assessor for run in runs}
    stored = type_coerce(c.raw, Text)
    raw = stored if cut is None else func.substr(stored, 1, cut)
    names = "id series purpose topic document other asked problem returned fingerprint".split()
    query = select(*(c[name] for name in (*names, "state")), raw.label("text"), length_of(c.raw).label("characters"))
    query = query.where(*where, c.problem != literal_column("''")).order_by(c.id.desc()).offset(before).limit(n)
    return [
        ModelFailure(
            **{name: getattr(row, name) for name in names},
            assessor=assessors.get(row.series, ""),
            answered=row.state == ANSWERED,
            raw=plain_start(row.text),
            characters=row.characters,
        )
        for row in connection.execute(query)
    ]
