"""Whether a model still answers as it did: some of its first questions are asked again before each run.

The check uses the first questions that a model with a prompt answered by a grade and that can be asked again unchanged.
The run stops before it asks for a label unless the answers, the model and its fingerprint are the same as before. After
a user accepts a change, later checks compare with the accepted answers. The log holds everything: the definition of a
series says which answers its check was compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import distinct, func, select

from cranfield.base.results import as_dicts
from cranfield.judging.llm.question_store import ANSWERED, DRIFT, LABEL, rows_of, series_of, stored_answers
from cranfield.judging.llm.questions import Asker, LlmQuestion, Subject
from cranfield.store.tables import questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection, Row

    from cranfield.judging.llm.question_store import Series, StoredAnswer
    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction

LOOKED_AT = 1000  # first answers, for some that can be asked again
SAME_RUN = timedelta(hours=1)
WHAT_TO_DO = (
    "give the model another name (--model, as the server calls it) or the prompt another version, so that new labels stay "
    "apart from the earlier ones; or go on with --accept-drift, which is recorded"
)


class Served(NamedTuple):
    """The model and fingerprint that the server reported."""

    model: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.model} {self.fingerprint}".strip() or "unnamed"


class ChangedAnswer(NamedTuple):
    """A question whose answer changed; a grade is None if an answer had none, and its problem says why."""

    topic: str
    document: str
    other: str
    before: float | None
    after: float | None
    problem_before: str
    problem: str

    @property
    def grades_in_words(self) -> tuple[str, str]:
        """The earlier and the current answer, as text."""
        pairs = ((self.before, self.problem_before), (self.after, self.problem))
        before, after = (problem if grade is None else f"{grade:g}" for grade, problem in pairs)
        return before, after


@dataclass(frozen=True)
class DriftCheck:
    """The result of a drift check."""

    series: str
    at: str
    asked: int
    answered: int
    changed: list[ChangedAnswer]
    before: list[Served]
    after: list[Served]
    allowed: int  # answers that may differ
    accept: bool  # whether drift was to be accepted
    unable: int = 0  # earlier labels, if none of them can be asked again
    tried: bool = True  # whether any of it was asked, or nothing could be

    @property
    def strangers(self) -> list[Served]:
        """Models and fingerprints that have not answered before."""
        models = {each.model for each in self.before}
        marks = {"", *(each.fingerprint for each in self.before)}
        unmarked = marks == {""}
        return [each for each in self.after if each.model not in models or not (unmarked or each.fingerprint in marks)]

    @property
    def enough(self) -> bool:
        """Whether at least half of the questions were answered."""
        return 2 * self.answered >= self.asked

    @property
    def drifted(self) -> bool:
        """Whether the model has changed, or cannot be compared because no earlier question can be asked again."""
        return bool(self.strangers) or len(self.changed) > self.allowed or self.unable > 0

    @property
    def accepted(self) -> bool:
        """Whether the user accepted the drift."""
        return self.accept and self.enough and self.drifted

    @property
    def passed(self) -> bool:
        """Whether the run may continue: enough answers, and no drift unless it was accepted."""
        return self.enough and (self.accept or not self.drifted)

    def differences(self) -> Iterator[str]:
        """What differs from before, as sentences."""
        if not self.enough:
            yield f"{self.answered:,} of {self.asked:,} questions that are asked again before a run (--drift) got an answer"
        if self.unable:
            none = f"none of the {self.unable:,} first labels can be asked again, because their texts have changed"
            yield f"{none} (another --text-limit or collection?): it is unknown whether the model is still the same"
        if self.changed:
            yield f"{len(self.changed):,} of {self.answered:,} answers differ from the earlier ones"
        if self.strangers:
            now, then = (", ".join(map(str, each)) for each in (self.strangers, self.before))
            yield f"another model or fingerprint answers: {now}, before: {then}"

    def plain(self) -> dict[str, Any]:
        """The check as values for JSON."""
        derived = {name: getattr(self, name) for name in ("enough", "drifted", "accepted", "passed")}
        values: dict[str, Any] = as_dicts(self)
        return values | derived | {"said": list(self.differences())}


def drift_checks(log: Log, assessor: str) -> list[DriftCheck]:
    """Every check of a model with a prompt (MODEL/PROMPT-VERSION), in the order of their times."""
    with log.reading() as transaction:
        connection = transaction.connection
        every = [check_of(connection, each) for each in series_of(connection, assessor) if each.definition.get(DRIFT)]
    return [each for each in every if each.tried]  # a budget may have ended a run before


def check_of(connection: Connection, series: Series) -> DriftCheck:
    """The result of the drift check of a series."""
    how = series.definition[DRIFT]
    conditions = questions.c.series == series.id, questions.c.purpose == DRIFT
    tried = connection.execute(select(func.count()).select_from(questions).where(*conditions)).scalar_one()
    now = _answers(connection, series)
    then = {row.id: row for row in rows_of(connection, "id", how["bases"].values())}
    pairs = [(then[base], now[hash]) for hash, base in how["bases"].items() if hash in now]
    changed = [
        ChangedAnswer(new.topic, new.document, new.other, old.grade, new.grade, old.problem, new.problem)
        for old, new in pairs
        if (old.grade, old.problem) != (new.grade, new.problem)
    ]
    served = _served(then.values()), _served(now.values())
    terms = how["allowed"], how["accept"], how.get("unable", 0), bool(tried or not how["bases"])
    return DriftCheck(series.id, series.created, len(how["bases"]), len(now), changed, *served, *terms)


def _answers(connection: Connection, series: Series) -> dict[str, Row[Any]]:
    """The answers of a check, by the hash of the question."""
    rows_by_question: dict[str, Row[Any]] = {}
    for row in rows_of(connection, "series", [series.id], questions.c.purpose == DRIFT, questions.c.state == ANSWERED):
        rows_by_question.setdefault(row.question, row)
    return rows_by_question


def _served(rows: Any) -> list[Served]:
    return list(dict.fromkeys(Served(row.returned, row.fingerprint) for row in rows))


class Planned(NamedTuple):
    """A drift check to make: its questions, and the id of the earlier answer to compare each with.

    `unable` is the number of earlier labels if none of them can be asked again.
    """

    questions: list[LlmQuestion]
    bases: dict[str, str]
    unable: int = 0


NO_CHECK = Planned([], {})


def planned(transaction: Transaction, asker: Asker, n: int, definition: dict[str, Any]) -> Planned:
    """The drift check before a run; NO_CHECK if a recent check still holds, or there are no earlier answers."""
    connection, every = transaction.connection, series_of(transaction.connection, asker.assessor)
    if not (n and every) or _goes_on(transaction, every, definition):
        return NO_CHECK
    accepted = [each for each in every if each.definition.get(DRIFT) and check_of(connection, each).accepted]
    newest: dict[str, str] = {}
    for series in accepted:
        newest |= {hash: row.id for hash, row in _answers(connection, series).items()}
    blind = [place for place, each in enumerate(every) if each in accepted and each.definition[DRIFT].get("unable")]
    plan, rows = Planned([], {}), _first(connection, every[blind[-1] :] if blind else every)
    for row in rows:
        question = _same(asker, row)
        if question is not None and question.hash not in plan.bases:
            plan.questions.append(question)
            plan.bases[question.hash] = newest.get(question.hash, row.id)
        if len(plan.questions) == n:
            break
    return plan if plan.questions else Planned([], {}, len(rows))


def answers_so_far(log: Log, assessor: str, due: Sequence[LlmQuestion]) -> tuple[dict[str, StoredAnswer], str]:
    """The answers that a log holds to some questions, by their hashes, and the time when drift was last accepted.

    The time is empty if drift was never accepted.
    """
    with log.reading() as transaction:
        answers = stored_answers(transaction.connection, [each.hash for each in due])
    return answers, max((each.at for each in drift_checks(log, assessor) if each.accepted), default="")


def _first(connection: Connection, every: list[Series]) -> list[Row[Any]]:
    """The first labels, in the order in which they were answered."""
    c = questions.c
    mine = c.series.in_([each.id for each in every]), c.state == ANSWERED, c.purpose == LABEL, c.grade.is_not(None)
    columns = select(c.id, c.question, c.topic, c.document, c.other)
    return list(connection.execute(columns.where(*mine).order_by(c.answered, c.id).limit(LOOKED_AT)))


def _same(asker: Asker, row: Row[Any]) -> LlmQuestion | None:
    """The question of a row, to ask again; None if its texts are missing or have changed."""
    subject = Subject(row.topic, row.document, row.other)
    if subject.topic not in asker.topics:
        return None
    as_then = asker.question(subject)
    return asker.question(subject, DRIFT) if as_then is not None and as_then.hash == row.question else None


def _goes_on(transaction: Transaction, every: list[Series], definition: dict[str, Any]) -> bool:
    """Whether a run continues the last, unfinished one within an hour of its check.

    The very first run has no earlier answers to compare with: its hour counts from its beginning.
    """
    connection, last = transaction.connection, every[-1]
    start = max((place for place, each in enumerate(every) if each.definition.get(DRIFT)), default=0)
    same = all(_run(each.definition) == _run(definition) for each in every[start:])
    if not same or "due" not in last.definition:
        return False
    begun = every[start]
    c = questions.c
    if begun.definition.get(DRIFT):
        query = select(func.count()).where(c.series == begun.id, c.purpose != DRIFT)
        if not (check_of(connection, begun).passed and connection.execute(query).scalar_one()):
            return False  # it was stopped by its check, or in the midst of it
    mine = c.series == last.id, c.purpose != DRIFT, c.state == ANSWERED
    done = connection.execute(select(func.count(distinct(c.question))).where(*mine)).scalar_one()
    recent = datetime.fromisoformat(transaction.now) - datetime.fromisoformat(begun.created) < SAME_RUN
    return recent and done < last.definition["due"]


def _run(definition: dict[str, Any]) -> list[Any]:
    """The settings that are equal in two calls of the same run."""
    schema = definition.get("terms", {}).get("schema")
    return [*(definition.get(name) for name in ("pool", "purpose", "endpoint", "collection", "text_limit")), schema]
