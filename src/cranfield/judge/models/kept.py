"""What is kept of the questions that models are asked: records that change the tables, and looks at them.

A series is one call of `judge ask`. A question is written before it is sent, with the most that it may cost; what comes
back is written into its row. A row that stays `sent` was lost with its process, and counts as spent. What came of a
series is counted on the way, so that nobody has to look at a million rows to say it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from sqlalchemy import case, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from cranfield.errors import DataError
from cranfield.judge.places import Change
from cranfield.parameters import shortened
from cranfield.shapes import Between, OneOf, Text, read_json
from cranfield.store.hashes import SERIES, keep_hash, refuse_changed
from cranfield.store.tables import questions, series, spending, tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection, Row
    from sqlalchemy.sql import ColumnElement

CUT_OFF = "cut off"  # an answer that reached its most tokens before it was one
SENT, ANSWERED, FAILED = "sent", "answered", "failed"
LABEL = "label"  # the purpose of a question whose answer is a label; all others are probes
DRIFT = "drift"  # the purpose of one that is asked again before a run, to see whether the answer is still the same
MANY = 500  # values in one statement
LONGEST_NAME = 120  # characters of a model or fingerprint as returned that answers are counted by
Amount = Annotated[float, Between(0)]


class PromptRecord(NamedTuple):
    """The prompt of a series, as its file was."""

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
    """The check before a series: which answer each question is held against, and what was allowed."""

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


class BudgetRecord(NamedTuple):
    """The most that may be spent."""

    money: float | None = None
    tokens: float | None = None


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
    budget: BudgetRecord | None = None
    due: int = 0
    drift: DriftRecord | None = None
    probe: int = 0
    bases: dict[str, str] | None = None


class SeriesRecord(NamedTuple):
    """One call of `judge ask`, as a log writes it down."""

    id: Text
    model: Text
    at: Text
    definition: SeriesDefinition


class QuestionRecord(NamedTuple):
    """A question, before it is sent."""

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
    """What came back."""

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
    """A question that might cost more than is left."""


class Budget(NamedTuple):
    """The most that a model's questions in a log may cost, in money or in tokens; None: no limit."""

    money: float | None = None
    tokens: float | None = None


NO_LIMIT = Budget()


class Spent(NamedTuple):
    """What questions of a model have cost: of what was answered, and the most of what was sent."""

    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, cost: float) -> Spent:
        """With what was asked without prices."""
        return self._replace(cost=self.cost + cost)

    def beyond(self, budget: Budget) -> bool:
        """Whether it is more than a budget."""
        return (budget.money is not None and self.cost > budget.money) or (
            budget.tokens is not None and self.tokens > budget.tokens
        )


class Known(NamedTuple):
    """A question that was answered: by a label, or by what is none."""

    id: str
    question: str
    problem: str
    grade: float | None
    seconds: float | None
    answered: str
    shown: int
    series: str


def _apply_series(connection: Connection, record: dict[str, Any]) -> None:
    definition = json.dumps(record["definition"])
    values = {"id": record["id"], "model": record["model"], "created": record["at"], "definition": definition}
    connection.execute(insert(series).values(values))
    keep_hash(connection, SERIES, record["id"], definition)


def _apply_question(connection: Connection, record: dict[str, Any]) -> None:
    connection.execute(insert(questions).values({name: record[name] for name in BEFORE} | EMPTY))
    _spend(connection, _model_of(connection, record["series"]), record["tokens_most"], record["cost_most"])
    _count(
        connection, {"series": record["series"], "purpose": record["purpose"], "state": SENT, "last": record["asked"]}
    )


def _apply_reply(connection: Connection, record: dict[str, Any]) -> None:
    here = questions.c.id == record["id"]
    before = connection.execute(select(questions).where(here)).one()
    connection.execute(update(questions).where(here).values({name: record[name] for name in AFTER}))
    more = record["tokens"] - before.tokens_most, record["cost"] - before.cost_most
    _spend(connection, _model_of(connection, before.series), *more)
    came = {name: record[name] for name in ("state", "problem", "cost")} | {"last": record["answered"]}
    used = {name: record[name] or 0.0 for name in ("tokens_in", "tokens_out", "seconds")}
    names = {name: record[name][:LONGEST_NAME] for name in ("returned", "fingerprint")}
    _count(connection, {"series": before.series, "purpose": before.purpose, **came, **used, **names})


def _count(connection: Connection, more: dict[str, Any]) -> None:
    """One more question that came to this."""
    connection.execute(COUNTED[connection.dialect.name], NOTHING | more)


def _counted(insert: Any) -> Any:
    """A first row of its kind, or one more on the row that is there."""
    row = insert(tallies)
    sums = {name: tallies.c[name] + row.excluded[name] for name in ("questions", *SUMS)}
    later = case((row.excluded.last > tallies.c.last, row.excluded.last), else_=tallies.c.last)
    return row.on_conflict_do_update(index_elements=list(tallies.primary_key), set_={**sums, "last": later})


SUMS = ("tokens_in", "tokens_out", "cost", "seconds")
NOTHING = {"questions": 1, **dict.fromkeys(("problem", "returned", "fingerprint"), ""), **dict.fromkeys(SUMS, 0.0)}
COUNTED = {"sqlite": _counted(sqlite.insert), "postgresql": _counted(postgresql.insert)}


def _model_of(connection: Connection, name: str) -> str:
    return str(connection.execute(select(series.c.model).where(series.c.id == name)).scalar_one())


def _spend(connection: Connection, model: str, tokens: float, cost: float) -> None:
    more = {"tokens": spending.c.tokens + tokens, "cost": spending.c.cost + cost}
    if not connection.execute(update(spending).where(spending.c.model == model).values(more)).rowcount:
        connection.execute(insert(spending).values(model=model, tokens=tokens, cost=cost))


APPLIED = {
    "series": Change(SeriesRecord, _apply_series),
    "question": Change(QuestionRecord, _apply_question),
    "reply": Change(ReplyRecord, _apply_reply),
}


def definition_of(connection: Connection, text: str, series: str) -> dict[str, Any]:
    """How a series was asked, as it is stored: held against its hash, read back by its shape, given as plain values."""
    refuse_changed(connection, SERIES, series, text)
    read_json(text, SeriesDefinition, f"series {shortened(series)!r}")
    values: dict[str, Any] = json.loads(text)
    return {name: value for name, value in values.items() if value is not None}


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A record as a log keeps it."""
    return {"record": name, "kind": name, **fields}


def spent(connection: Connection, model: str) -> Spent:
    """What a model's questions have cost so far."""
    row = connection.execute(select(spending.c.tokens, spending.c.cost).where(spending.c.model == model)).first()
    return Spent() if row is None else Spent(row.tokens, row.cost)


def answered(connection: Connection, hashes: Sequence[str], max_tokens: int = 0) -> dict[str, Known]:
    """The first answer to each question that has one, whatever it is worth; what has only failed on the way has none.

    An answer that was cut off gives way to a later one, and counts as none where it may now have more tokens.
    """
    columns = [questions.c[name] for name in Known._fields]
    answer: dict[str, Known] = {}
    for start in range(0, len(hashes), MANY):
        here = questions.c.question.in_(hashes[start : start + MANY])
        query = select(*columns).where(here, questions.c.state == ANSWERED).order_by(questions.c.asked, questions.c.id)
        for row in connection.execute(query):
            if row.question not in answer or answer[row.question].problem == CUT_OFF:
                answer[row.question] = Known(*row)
    short = {each.series for each in answer.values() if each.problem == CUT_OFF} if max_tokens else set()
    most = {name: _max_tokens(connection, name) for name in short}
    return {
        name: each
        for name, each in answer.items()
        if each.problem != CUT_OFF or most.get(each.series, max_tokens) >= max_tokens
    }


def _max_tokens(connection: Connection, name: str) -> int:
    """Of an answer in a series."""
    text = connection.execute(select(series.c.definition).where(series.c.id == name)).scalar_one()
    return int(definition_of(connection, text, name).get("terms", {}).get("max_tokens", 0))


def failed_before(connection: Connection, hashes: Sequence[str]) -> set[str]:
    """Questions that got no answer of the model when they were asked."""
    found: set[str] = set()
    for start in range(0, len(hashes), MANY):
        here = questions.c.question.in_(hashes[start : start + MANY]), questions.c.state == FAILED
        found.update(connection.execute(select(questions.c.question).where(*here).distinct()).scalars())
    return found


def unpriced(connection: Connection, model: str) -> tuple[float, float, float]:
    """Tokens of a model's questions that were asked without prices: in, out, and those that nobody counted."""
    query = select(series.c.id, series.c.definition).where(series.c.model == model)
    rows = connection.execute(query).all()
    terms = {row.id: definition_of(connection, row.definition, row.id).get("terms", {}) for row in rows}
    free = [name for name, told in terms.items() if not (told.get("price_in") or told.get("price_out"))]
    c, total = questions.c, [0.0, 0.0, 0.0]
    for start in range(0, len(free), MANY):
        used = func.coalesce(c.tokens, c.tokens_most)
        sums = select(*(func.sum(column) for column in (c.tokens_in, c.tokens_out, used)))
        found = connection.execute(sums.where(c.series.in_(free[start : start + MANY]))).one()
        total = [so_far + (more or 0.0) for so_far, more in zip(total, found, strict=True)]
    return total[0], total[1], max(0.0, total[2] - total[0] - total[1])


class Series(NamedTuple):
    """One call of `judge ask`: its id, when it began, and how it asked."""

    id: str
    created: str
    definition: dict[str, Any]


def series_of(connection: Connection, assessor: str) -> list[Series]:
    """Every series of a model with a prompt, in the order of their times."""
    query = select(series.c.id, series.c.created, series.c.definition).order_by(series.c.created, series.c.id)
    rows = connection.execute(query).all()
    every = [Series(row.id, row.created, definition_of(connection, row.definition, row.id)) for row in rows]
    return [each for each in every if each.definition.get("assessor") == assessor]


def rows_of(connection: Connection, column: str, values: Iterable[str], *where: ColumnElement[bool]) -> list[Row[Any]]:
    """The questions that have one of some values in a column, in the order in which they were asked."""
    wanted = list(values)
    found: list[Row[Any]] = []
    for start in range(0, len(wanted), MANY):
        here = questions.c[column].in_(wanted[start : start + MANY])
        found += connection.execute(select(questions).where(here, *where))
    return sorted(found, key=lambda row: (row.asked, row.id))


def lost(connection: Connection, model: str) -> int:
    """How many questions of a model were sent, or were about to be, and have no reply."""
    query = select(func.count()).select_from(questions).join(series, series.c.id == questions.c.series)
    return connection.execute(query.where(series.c.model == model, questions.c.state == SENT)).scalar_one()


def relabelled(connection: Connection, assessor: str, due: set[tuple[str, ...]]) -> int:
    """How many of some subjects have a label of a model with a prompt."""
    mine = [each.id for each in series_of(connection, assessor)]
    c = questions.c
    query = select(c.topic, c.document, c.other).where(c.series.in_(mine), c.purpose == LABEL, c.grade.is_not(None))
    return len({tuple(row) for row in connection.execute(query) if tuple(row) in due}) if mine else 0
