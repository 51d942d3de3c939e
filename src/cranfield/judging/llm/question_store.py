"""The store of the questions that models are asked: records that change the tables, and queries on them.

A series is one call of `judge ask`. A question is written before it is sent, with its maximum cost; its reply is
written into the same row. A row that stays `sent` was lost with its process, and its cost counts as spent. The results
of a series are counted as they arrive, so that no query has to read a million rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from sqlalchemy import bindparam, case, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.schemas import Between, OneOf, Text, read_json
from cranfield.judging.assignments import RecordKind
from cranfield.store.hashes import SERIES, keep_hash, refuse_changed
from cranfield.store.tables import one_of, questions, rows_with, series, spending, tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import BindParameter
    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement

CUT_OFF = "cut off"  # an answer that reached its most tokens before it was one
SENT, ANSWERED, FAILED = "sent", "answered", "failed"
LABEL = "label"  # the purpose of a question whose answer is a label; all others are probes
DRIFT = "drift"  # the purpose of one that is asked again before a run, to see whether the answer is still the same
LONGEST_NAME = 120  # characters of a model or fingerprint as returned that answers are counted by
Amount = Annotated[float, Between(0)]


class PromptRecord(NamedTuple):
    """The prompt of a series, as in its file."""

    name: Text
    version: Text
    hash: Text
    kind: str = ""
    user: str = ""
    system: str = ""
    grades: dict[str, str] = {}
    max_tokens: int = 0
    used: tuple[tuple[str, str], ...] = ()


class DriftRecord(NamedTuple):
    """The drift check of a series: the earlier answer of each question, and how many changes were allowed."""

    bases: dict[str, str]
    allowed: Annotated[int, Between(0)]
    accept: bool
    unable: int = 0


class TermsRecord(NamedTuple):
    """The terms of a series."""

    price_in: Amount = 0.0
    price_out: Amount = 0.0
    max_tokens: Annotated[int, Between(0)] = 0
    clients: int = 1
    retries: int = 0
    schema: bool = True


class Budget(NamedTuple):
    """The maximum cost of a model's questions in a log, in money or in tokens; None: no limit."""

    money: float | None = None
    tokens: float | None = None


NO_LIMIT = Budget()


class PoolRecord(NamedTuple):
    """The pool of a series."""

    file: str
    hash: str = ""


@dataclass(frozen=True)
class SeriesDefinition:
    """How a series was asked."""

    assessor: Text
    prompt: PromptRecord
    purpose: Text = LABEL
    pool: PoolRecord | None = None
    collection: str = ""
    endpoint: str = ""
    seed: int = 0
    text_limit: int | None = None
    terms: TermsRecord | None = None
    budget: Budget | None = None
    due: int = 0
    drift: DriftRecord | None = None
    probe: int = 0
    bases: dict[str, str] | None = None


class SeriesRecord(NamedTuple):
    """One call of `judge ask`, as a log stores it."""

    id: Text
    model: Text
    at: Text
    definition: SeriesDefinition


class QuestionRecord(NamedTuple):
    """A question, stored before it is sent."""

    id: Text
    series: Text
    purpose: Text
    question: Text
    topic: Text
    document: Text
    other: str
    asked: Text
    tokens_most: Amount
    cost_most: Amount
    length: Annotated[int, Between(0)]
    shown: Annotated[int, Between(0)]
    manner: str


class ReplyRecord(NamedTuple):
    """The reply to a question."""

    id: Text
    state: Annotated[str, OneOf((ANSWERED, FAILED))]
    problem: str
    raw: str
    returned: str
    fingerprint: str
    tokens_in: Amount | None
    tokens_out: Amount | None
    tokens: Amount
    cost: Amount
    seconds: Amount
    grade: float | None
    label: str
    answered: Text


BEFORE = QuestionRecord._fields
AFTER = ReplyRecord._fields[1:]
EMPTY = {"state": SENT, **dict.fromkeys(("problem", "raw", "returned", "fingerprint", "label", "answered"), "")}


class OverBudgetError(DataError):
    """A question may cost more than the budget has left."""


class Spent(NamedTuple):
    """The cost of a model's questions: actual for answered questions, maximum for open ones."""

    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, cost: float) -> Spent:
        """The total with an additional cost."""
        return self._replace(cost=self.cost + cost)

    def beyond(self, budget: Budget) -> bool:
        """Whether the cost exceeds a budget."""
        limits = ((budget.money, self.cost), (budget.tokens, self.tokens))
        return any(limit is not None and value > limit for limit, value in limits)


class StoredAnswer(NamedTuple):
    """An answer to a question: a label, or a problem."""

    id: str
    question: str
    problem: str
    grade: float | None
    seconds: float | None
    answered: str
    shown_length: int
    series: str


def _apply_series(connection: Connection, record: dict[str, Any]) -> None:
    definition = json.dumps(record["definition"])
    values = {"id": record["id"], "model": record["model"], "created": record["at"], "definition": definition}
    connection.execute(insert(series).values(values))
    keep_hash(connection, SERIES, record["id"], definition)


def _apply_question(connection: Connection, record: dict[str, Any]) -> None:
    connection.execute(insert(questions), {name: record[name] for name in BEFORE} | EMPTY)
    _spend(connection, record["series"], record["tokens_most"], record["cost_most"])
    more = {"series": record["series"], "purpose": record["purpose"], "state": SENT, "last": record["asked"]}
    _count(connection, more)


def _apply_reply(connection: Connection, record: dict[str, Any]) -> None:
    before = connection.execute(ASKED, {"name": record["id"]}).one()
    connection.execute(REPLIED, {"name": record["id"], **{name: record[name] for name in AFTER}})
    _spend(connection, before.series, record["tokens"] - before.tokens_most, record["cost"] - before.cost_most)
    came = {name: record[name] for name in ("state", "problem", "cost")} | {"last": record["answered"]}
    used = {name: record[name] or 0.0 for name in ("tokens_in", "tokens_out", "seconds")}
    names = {name: record[name][:LONGEST_NAME] for name in ("returned", "fingerprint")}
    _count(connection, {"series": before.series, "purpose": before.purpose, **came, **used, **names})


def _count(connection: Connection, more: dict[str, Any]) -> None:
    """Count one more question with this result."""
    connection.execute(COUNTED[connection.dialect.name], NOTHING | more)


def _count_statement(insert: Any) -> Any:
    """A statement that inserts a count of one, or adds one to an existing row."""
    row = insert(tallies)
    sums = {name: tallies.c[name] + row.excluded[name] for name in ("questions", *SUMS)}
    later = case((row.excluded.last > tallies.c.last, row.excluded.last), else_=tallies.c.last)
    return row.on_conflict_do_update(index_elements=list(tallies.primary_key), set_={**sums, "last": later})


SUMS = ("tokens_in", "tokens_out", "cost", "seconds")
NOTHING = {"questions": 1, **dict.fromkeys(("problem", "returned", "fingerprint"), ""), **dict.fromkeys(SUMS, 0.0)}
COUNTED = {"sqlite": _count_statement(sqlite.insert), "postgresql": _count_statement(postgresql.insert)}
# Built once: to build a statement for each question takes longer than to run it.
NAME: BindParameter[Any] = bindparam("name")
RESERVED = [questions.c[name] for name in ("series", "purpose", "tokens_most", "cost_most")]
ASKED = select(*RESERVED).where(questions.c.id == NAME)
REPLIED = update(questions).where(questions.c.id == NAME).values({name: bindparam(name) for name in AFTER})
MODEL = select(series.c.model).where(series.c.id == NAME)
MORE = {name: spending.c[name] + bindparam(f"more_{name}") for name in ("tokens", "cost")}
SPENT = update(spending).where(spending.c.model == NAME).values(MORE)
SPENDING = select(spending.c.tokens, spending.c.cost).where(spending.c.model == NAME)


def _spend(connection: Connection, name: str, tokens: float, cost: float) -> None:
    """Add to the cost of the model of a series."""
    model = connection.execute(MODEL, {"name": name}).scalar_one()
    if not connection.execute(SPENT, {"name": model, "more_tokens": tokens, "more_cost": cost}).rowcount:
        connection.execute(insert(spending), {"model": model, "tokens": tokens, "cost": cost})


APPLIED = {
    "series": RecordKind(SeriesRecord, _apply_series),
    "question": RecordKind(QuestionRecord, _apply_question),
    "reply": RecordKind(ReplyRecord, _apply_reply),
}


def definition_of(connection: Connection, text: str, series: str) -> dict[str, Any]:
    """The definition of a series, checked against its hash, as plain values."""
    refuse_changed(connection, SERIES, series, text)
    read_json(text, SeriesDefinition, f"series {shortened(series)!r}")
    values: dict[str, Any] = json.loads(text)
    return {name: value for name, value in values.items() if value is not None}


def spent(connection: Connection, model: str) -> Spent:
    """The cost of a model's questions so far."""
    row = connection.execute(SPENDING, {"name": model}).first()
    return Spent() if row is None else Spent(row.tokens, row.cost)


def stored_answers(connection: Connection, hashes: Sequence[str], max_tokens: int = 0) -> dict[str, StoredAnswer]:
    """The first answer to each question, also if it is not usable; failed requests do not count as answers.

    A later answer replaces one that was cut off; a cut-off answer does not count if more tokens are allowed now.
    """
    names = ("id", "question", "problem", "grade", "seconds", "answered", "shown", "series")
    query = select(*(questions.c[name] for name in names)).where(questions.c.state == ANSWERED)
    query = query.order_by(questions.c.asked, questions.c.id)
    answer: dict[str, StoredAnswer] = {}
    for row in rows_with(connection, query, questions.c.question, hashes):
        if row.question not in answer or answer[row.question].problem == CUT_OFF:
            answer[row.question] = StoredAnswer._make(row)
    short = {each.series for each in answer.values() if each.problem == CUT_OFF} if max_tokens else set()
    terms = _terms(connection, series.c.id.in_(short))
    most = {name: int(each.get("max_tokens", 0)) for name, each in terms.items()}
    return {
        name: each
        for name, each in answer.items()
        if most.get(each.series, max_tokens) >= max_tokens or each.problem != CUT_OFF
    }


def failed_before(connection: Connection, hashes: Sequence[str]) -> set[str]:
    """Questions that got no answer from the model before."""
    query = select(questions.c.question).where(questions.c.state == FAILED).distinct()
    return {row.question for row in rows_with(connection, query, questions.c.question, hashes)}


def unpriced(connection: Connection, model: str) -> tuple[float, float, float]:
    """Tokens of a model's questions that were asked without prices: in, out, and uncounted."""
    terms = _terms(connection, series.c.model == model)
    free = [name for name, settings in terms.items() if not (settings.get("price_in") or settings.get("price_out"))]
    c, total = questions.c, [0.0, 0.0, 0.0]
    used = func.coalesce(c.tokens, c.tokens_most)
    sums = select(*(func.sum(column) for column in (c.tokens_in, c.tokens_out, used)))
    for here in one_of(c.series, free):
        sums_of_part = connection.execute(sums.where(here)).one()
        total = [so_far + (more or 0.0) for so_far, more in zip(total, sums_of_part, strict=True)]
    return total[0], total[1], max(0.0, total[2] - total[0] - total[1])


class Series(NamedTuple):
    """One call of `judge ask`: its id, when it began, and how it asked."""

    id: str
    created: str
    definition: dict[str, Any]


def _series(connection: Connection, *where: ColumnElement[bool]) -> list[Series]:
    """The series that meet the conditions, by time."""
    rows = connection.execute(select(series).where(*where).order_by(series.c.created, series.c.id)).all()
    return [Series(row.id, row.created, definition_of(connection, row.definition, row.id)) for row in rows]


def _terms(connection: Connection, where: ColumnElement[bool]) -> dict[str, dict[str, Any]]:
    """The terms of the series that meet a condition; empty if a series has none."""
    return {each.id: each.definition.get("terms", {}) for each in _series(connection, where)}


def series_of(connection: Connection, assessor: str) -> list[Series]:
    """Every series of a model with a prompt, by time."""
    return [each for each in _series(connection) if each.definition.get("assessor") == assessor]


def rows_of(connection: Connection, column: str, values: Iterable[str], *where: ColumnElement[bool]) -> list[Row[Any]]:
    """The questions with one of these values in a column, in the order in which they were asked."""
    rows = rows_with(connection, select(questions).where(*where), questions.c[column], values)
    return sorted(rows, key=lambda row: (row.asked, row.id))


def lost(connection: Connection, model: str) -> int:
    """The number of a model's questions that were stored for sending and have no reply."""
    query = select(func.count()).select_from(questions).join(series, series.c.id == questions.c.series)
    return connection.execute(query.where(series.c.model == model, questions.c.state == SENT)).scalar_one()


def relabelled(connection: Connection, assessor: str, due: set[tuple[str, ...]]) -> int:
    """The number of the `due` subjects that a model with a prompt has already labelled."""
    mine = [each.id for each in series_of(connection, assessor)]
    c = questions.c
    query = select(c.topic, c.document, c.other).where(c.series.in_(mine), c.purpose == LABEL, c.grade.is_not(None))
    return len({tuple(row) for row in connection.execute(query) if tuple(row) in due}) if mine else 0
