"""What models were asked in a log, and what came of it: every series, what it cost, and what is no label, as it came.

All of it is read from counts that are kept on the way (`kept`), so that it takes no longer with a million questions.
Failures lie in blocks, a series and a reason each, whose sizes are known: a page of them is found without the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.answer import Cell, Lines, Rows, Table, fitted
from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.judge.models.kept import ANSWERED, DRIFT, FAILED, LABEL, SENT, Budget, Spent, definition_of
from cranfield.judge.models.questioning import meaning
from cranfield.parameters import masked, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.answer import Layout, Part
    from cranfield.judge.log import Log

ASK = "cranfield judge ask LOG --pool FILE --collection FOLDER --endpoint URL --model NAME --prompt graded"
NAMES = 10_000  # models and fingerprints as returned, of all series together
EXCERPT = 4000  # characters of what came back
SHORT = 19  # characters of a hash
AT_ONCE = 50  # failures
LISTED = 10  # models in a message


@dataclass(frozen=True)
class Counts:
    """What came of questions, by their number."""

    questions: int = 0  # that were sent, those asked again too
    labels: int = 0  # answers that are one
    probes: int = 0  # answers to questions that were asked for another purpose
    unusable: dict[str, int] = field(default_factory=dict)  # answers that are no label, by why
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
        """Every reason, whether the pair was asked again or not."""
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
        """What it was for: a label, probes, a check of drift before them; empty where nothing was asked yet."""
        kinds = (each if each in (LABEL, DRIFT) else "probes" for each in self.purposes)
        return ", ".join(dict.fromkeys(kinds))


@dataclass(frozen=True)
class ModelJudge:
    """A model with a prompt: whose labels they are, and what it took."""

    assessor: str
    model: str
    runs: int
    labels: int  # in the log, also where its answers came from elsewhere
    counts: Counts


@dataclass(frozen=True, repr=False)
class ModelRuns(Rows[ModelRun]):
    """Every call of `judge ask` in a log, the newest first, and each model with what it has cost."""

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
        """All of it in a sentence."""
        labels = sum(each.labels for each in self.judges)
        money = sum(each.cost for each in self.spent.values())
        failures = sum(sum(each.counts.failures.values()) for each in self.judges)
        runs = f" in {counted(len(self.rows), 'run')}" if self.rows else ""
        cost = f", cost {money:.6g}" if money else ""
        return f"{counted(labels, 'label')} of {counted(len(self.judges), 'model')}{runs}, {counted(failures, 'failure')}{cost}"

    def _judge(self, each: ModelJudge) -> list[Cell | str]:
        counts = each.counts
        return [
            each.assessor,
            _count(each.runs),
            _count(each.labels),
            *_numbers(counts),
            *_tokens(counts),
            _money(counts),
        ]

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
        """A row a run."""
        yield [
            *("time", "assessor", "model", "prompt", "kind", "hash", "purposes", "pairs", "questions", "labels"),
            *("no_label", "no_answer", "no_reply", "tokens_in", "tokens_out", "cost", "seconds", "budget_money"),
            *("budget_tokens", "answered_by", "endpoint", "pool", "series"),
        ]
        for each in self.rows:
            counts = each.counts
            yield [
                *(each.time, each.assessor, each.model, each.prompt, each.kind, each.hash, " ".join(each.purposes)),
                *(each.pairs, counts.questions, counts.labels, sum(counts.unusable.values())),
                *(sum(counts.unanswered.values()), counts.open, counts.tokens_in, counts.tokens_out, counts.cost),
                *(counts.seconds, *each.budget, _returned(each), each.endpoint, each.pool, each.series),
            ]


def _numbers(counts: Counts) -> list[Cell]:
    return [
        _count(number)
        for number in (*(sum(each.values()) for each in (counts.unusable, counts.unanswered)), counts.open)
    ]


def _tokens(counts: Counts) -> list[Cell]:
    return [_count(counts.tokens_in), _count(counts.tokens_out)]


def _money(counts: Counts) -> Cell:
    unpriced = not counts.cost and counts.tokens_in + counts.tokens_out > 0
    return Cell("–") if unpriced else Cell(f"{counts.cost:.6g}", counts.cost)


def _count(number: float) -> Cell:
    return Cell(f"{number:,.0f}", number)


def _run(each: ModelRun) -> list[Cell | str]:
    counts, pairs = each.counts, Cell("–") if each.pairs is None else _count(each.pairs)
    numbers = [pairs, _count(counts.questions), _count(counts.labels), *_numbers(counts), _money(counts)]
    return [moment(each.time), each.assessor, each.purpose, *numbers, budget(each), _returned(each)]


def moment(time: str) -> str:
    """A time as a table shows it, to the minute.

    >>> moment("2026-03-01T10:00:12.000000Z")
    '2026-03-01 10:00'
    """
    return time[:16].replace("T", " ")


def budget(each: ModelRun) -> str:
    """The most that a model might cost when a run was begun."""
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
    own |= {
        "budget": each.budget._asdict(),
        "returned": [dict(zip(names, one, strict=True)) for one in each.returned],
    }
    return own | _plain(each.counts)


class ModelFailure(NamedTuple):
    """A question without a label, why, and what came back."""

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
    """Questions without a label, from one of them on: the newest series first, by reason."""

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
            [
                moment(each.asked),
                each.assessor,
                each.topic,
                each.document,
                *[each.other] * paired,
                each.problem,
                each.raw,
            ]
            for each in self.rows
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
    """What models were asked in a log: all of them, or one by its name, with its prompt (NAME/PROMPT-VERSION) or without."""
    found = _every(log)
    if not model:
        return found
    judges = [each for each in found.judges if model in (each.assessor, each.model)]
    if not judges:
        there = ", ".join(repr(shortened(each.assessor)) for each in found.judges[:LISTED]) or "none"
        raise DataError(f"{log.name}: there is no model {shortened(model)!r}; there are: {there}")
    names, models = {each.assessor for each in judges}, {each.model for each in judges}
    spent = {name: each for name, each in found.spent.items() if name in models}
    return ModelRuns(log.name, [each for each in found.rows if each.assessor in names], judges, spent)


def _every(log: Log) -> ModelRuns:
    if not log.has_records():  # only events, which need no tables
        labels = Counter(event.assessor for event in log.events() if event.source == "model")
        return ModelRuns(log.name, [], _judges([], labels), {})
    with log.reading() as transaction:
        connection = transaction.connection
        rows, spent, labels = _runs(connection), _spent(connection), _labels(connection)
    return ModelRuns(log.name, rows, _judges(rows, labels), spent)


def _runs(connection: Connection) -> list[ModelRun]:
    from sqlalchemy import select

    from cranfield.store.tables import series

    counts, returned = _counts(connection), _all_returned(connection)
    query = select(series).order_by(series.c.created.desc(), series.c.id.desc())
    return [
        _model_run(
            row.id,
            row.model,
            row.created,
            definition_of(connection, row.definition, row.id),
            counts.get(row.id, []),
            returned,
        )
        for row in connection.execute(query).all()
    ]


def _model_run(
    name: str,
    model: str,
    created: str,
    definition: dict[str, Any],
    counts: list[Any],
    returned: dict[str, list[tuple[str, str, int]]],
) -> ModelRun:
    prompt = definition.get("prompt", {})
    return ModelRun(
        series=name,
        time=created,
        model=model,
        assessor=definition.get("assessor", model),
        prompt=f"{prompt.get('name', '')} {prompt.get('version', '')}".strip(),
        kind=prompt.get("kind", ""),
        hash=prompt.get("hash", ""),
        endpoint=masked(definition.get("endpoint", "")),
        pool=definition.get("pool", {}).get("file", ""),
        purposes={row.purpose: row.questions for row in counts if row.state == SENT},
        pairs=definition.get("due"),
        budget=Budget(**definition.get("budget", {})),
        returned=returned.get(name, []),
        counts=_of_series(counts),
    )


def _counts(connection: Connection) -> dict[str, list[Any]]:
    """What came of the questions of each series."""
    from sqlalchemy import func, select

    from cranfield.judge.models.kept import SUMS
    from cranfield.store.tables import tallies

    c = tallies.c
    keys = c.series, c.purpose, c.state, c.problem
    sums = [func.sum(c[name]).label(name) for name in ("questions", *SUMS)]
    answer: dict[str, list[Any]] = {}
    for row in connection.execute(select(*keys, *sums, func.max(c.last).label("last")).group_by(*keys).order_by(*keys)):
        answer.setdefault(row.series, []).append(row)
    return answer


def beside_labels(log: Log) -> int:
    """How many questions were asked for another purpose than a label: probes, and checks of drift."""
    from sqlalchemy import func, select

    from cranfield.store.tables import tallies

    query = select(func.sum(tallies.c.questions)).where(tallies.c.purpose != LABEL)
    with log.reading() as transaction:
        return int(transaction.connection.execute(query).scalar() or 0)


def _of_series(rows: Iterable[Any]) -> Counts:
    every = list(rows)
    good = [row for row in every if row.state == ANSWERED and not row.problem]
    replies = [row for row in every if row.state != SENT]
    reasons: dict[str, Counter[str]] = {ANSWERED: Counter(), FAILED: Counter()}
    for row in replies:
        if row.problem:
            reasons[row.state][row.problem] += int(row.questions)
    return Counts(
        questions=sum(int(row.questions) for row in every if row.state == SENT),
        labels=sum(int(row.questions) for row in good if row.purpose == LABEL),
        probes=sum(int(row.questions) for row in good if row.purpose != LABEL),
        unusable=dict(reasons[ANSWERED]),
        unanswered=dict(reasons[FAILED]),
        tokens_in=sum(row.tokens_in for row in replies),
        tokens_out=sum(row.tokens_out for row in replies),
        cost=sum(row.cost for row in replies),
        seconds=sum(row.seconds for row in replies),
        last=max((row.last for row in every), default=""),
    )


def _all_returned(connection: Connection) -> dict[str, list[tuple[str, str, int]]]:
    """Which models and fingerprints answered in each series, the most frequent first."""
    from sqlalchemy import func, select

    from cranfield.store.tables import tallies

    c = tallies.c
    answers = func.sum(c.questions).label("answers")
    query = (
        select(c.series, c.returned, c.fingerprint, answers)
        .where(c.state == ANSWERED)
        .group_by(c.series, c.returned, c.fingerprint)
        .order_by(answers.desc(), c.returned, c.fingerprint)
        .limit(NAMES)
    )
    found: dict[str, list[tuple[str, str, int]]] = {}
    for row in connection.execute(query):
        found.setdefault(row.series, []).append((row.returned, row.fingerprint, int(row.answers)))
    return found


def _spent(connection: Connection) -> dict[str, Spent]:
    from sqlalchemy import select

    from cranfield.store.tables import spending

    rows = connection.execute(select(spending).order_by(spending.c.model))
    return {row.model: Spent(row.tokens, row.cost) for row in rows}


def _labels(connection: Connection) -> Counter[str]:
    """How many labels of each model are in the log."""
    from sqlalchemy import func, literal_column, select

    from cranfield.store.tables import events

    query = select(events.c.assessor, func.count().label("labels"))
    query = query.where(events.c.source == literal_column("'model'")).group_by(
        events.c.assessor
    )  # as the index says it
    return Counter({row.assessor: row.labels for row in connection.execute(query)})


def _judges(rows: Sequence[ModelRun], labels: Counter[str]) -> list[ModelJudge]:
    """Each model with a prompt, the one that was asked last first; behind them those whose labels were added."""
    by_name: dict[str, list[ModelRun]] = {}
    for run in rows:
        by_name.setdefault(run.assessor, []).append(run)
    asked = [
        ModelJudge(name, own[0].model, len(own), labels.pop(name, 0), _summed([run.counts for run in own]))
        for name, own in by_name.items()
    ]
    return [*asked, *(ModelJudge(name, name, 0, count, Counts()) for name, count in sorted(labels.items()))]


def _summed(every: Sequence[Counts]) -> Counts:
    numbers = ("questions", "labels", "probes", "tokens_in", "tokens_out", "cost", "seconds")
    sums: dict[str, Any] = {name: sum(getattr(each, name) for each in every) for name in numbers}
    for name in ("unusable", "unanswered"):
        sums[name] = dict(sum((Counter(getattr(each, name)) for each in every), Counter[str]()))
    return Counts(**sums, last=max(each.last for each in every))


class _Block(NamedTuple):
    """The failures of a series for one reason."""

    series: str
    problem: str
    size: int


def model_failures(
    log: Log, model: str = "", reason: str = "", first: int = 0, n: int = AT_ONCE, cut: int | None = EXCERPT
) -> ModelFailures:
    """Questions without a label, of a model (with its prompt or without) and for a reason, from one of them on."""
    runs = model_runs(log, model).rows
    blocks = [_Block(run.series, why, size) for run in runs for why, size in run.counts.failures.items()]
    reasons = Counter[str]()
    for block in blocks:
        reasons[block.problem] += block.size
    wanted = [block for block in blocks if reason in ("", block.problem)]
    assessors = {run.series: run.assessor for run in runs}
    rows: list[ModelFailure] = []
    before = first
    if wanted:
        with log.reading() as transaction:
            for block in wanted:
                if len(rows) < n and before < block.size:
                    rows += _of_block(transaction.connection, block, assessors, before, n - len(rows), cut)
                before = max(0, before - block.size)
    return ModelFailures(log.name, rows, sum(block.size for block in wanted), first, dict(sorted(reasons.items())))


def model_failure(log: Log, id: str) -> ModelFailure:
    """One question without a label, with all that came back."""
    from cranfield.store.tables import questions

    with log.reading() as transaction:
        rows = _failures(transaction.connection, None, questions.c.id == id)
        if not rows:
            raise DataError(f"{log.name}: there is no question {shortened(id)!r} without a label")
    assessors = {run.series: run.assessor for run in model_runs(log).rows}
    return rows[0]._replace(assessor=assessors.get(rows[0].series, ""))


def _of_block(
    connection: Connection, block: _Block, assessors: dict[str, str], before: int, n: int, cut: int | None
) -> list[ModelFailure]:
    from cranfield.store.tables import questions

    c = questions.c
    rows = _failures(connection, cut, c.series == block.series, c.problem == block.problem, before=before, n=n)
    return [row._replace(assessor=assessors[block.series]) for row in rows]


def _failures(
    connection: Connection, cut: int | None, *where: Any, before: int = 0, n: int | None = None
) -> list[ModelFailure]:
    from sqlalchemy import Text, func, literal_column, select, type_coerce

    from cranfield.store.exact import length_of, plain_start
    from cranfield.store.tables import questions

    c = questions.c
    stored = type_coerce(c.raw, Text)
    raw = stored if cut is None else func.substr(stored, 1, cut)
    names = (
        "id",
        "series",
        "purpose",
        "topic",
        "document",
        "other",
        "asked",
        "problem",
        "state",
        "returned",
        "fingerprint",
    )
    query = select(*(c[name] for name in names), raw.label("text"), length_of(c.raw).label("characters"))
    query = query.where(*where, c.problem != literal_column("''")).order_by(c.id.desc()).offset(before).limit(n)
    return [
        ModelFailure(
            **{name: getattr(row, name) for name in names if name != "state"},
            assessor="",
            answered=row.state == ANSWERED,
            raw=plain_start(row.text),
            characters=row.characters,
        )
        for row in connection.execute(query)
    ]
