"""Asking an LLM judge: each question is stored with its maximum cost before it is sent, and its reply afterwards.

Threads take one question after the other. A reply with a temporary problem is asked again, as a new question with its own
cost. A question beyond the budget waits for open replies, which mostly cost less than was reserved; if no reply is open,
the series ends. Under a budget the first question is asked alone, so that a server that ignores `max_tokens` is noticed
after one question.

One process at a time asks a model in a log, since a second process would count the open questions of the first as lost.
The lock is an advisory lock of a server, or a file next to the log: a process that is killed releases it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.worker_threads import retry_pause, work_through
from cranfield.judging.assignments import record
from cranfield.judging.event import new_id
from cranfield.judging.llm import question_store
from cranfield.judging.llm.ask_result import AskFailure, AskResult
from cranfield.judging.llm.chat_client import HOPELESS, ODD_REQUEST, TOO_LONG, RequestOptions, read_answer
from cranfield.judging.llm.drift import NO_CHECK, DriftCheck, check_of, planned
from cranfield.judging.llm.question_store import DRIFT, LABEL, NO_LIMIT, Budget, Spent, StoredAnswer, spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.evaluation.evaluate import Progress
    from cranfield.judging.llm.chat_client import Endpoint, Reply
    from cranfield.judging.llm.questions import Asker, LlmQuestion, Prompt
    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction
    from cranfield.store import Database

    Pause = Callable[[float], object]


ASKING = 0x6372616F  # the advisory lock of whoever asks; the model is its second number
PATIENCE = 5.0  # seconds for a server to notice that somebody was killed
GLANCE = 0.1


@contextmanager
def alone(log: Log, model: str) -> Iterator[None]:
    """Hold the lock for asking a model in a log; raise DataError if another process has it."""
    number = int.from_bytes(hashlib.sha256(model.encode("utf-8", "surrogatepass")).digest()[:4], "big", signed=True)
    database: Database | None = getattr(log, "database", None)
    if database is not None and database.dialect == "postgresql":
        held = _on_server(database, number)
    else:
        held = _beside(f"{os.path.realpath(log.name)}.asking-{number & 0xFFFFFFFF:08x}")
    with held as mine:
        if not mine:
            problem = f"{log.name}: another process is asking {shortened(model)!r}"
            raise DataError(f"{problem}; wait until it has ended, or end it. Nothing was asked or written")
        yield


@contextmanager
def _on_server(database: Database, number: int) -> Iterator[bool]:
    with database.in_words(), database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        until = time.monotonic() + PATIENCE
        take = f"SELECT pg_try_advisory_lock({ASKING}, {number})"
        while not (mine := bool(connection.exec_driver_sql(take).scalar())) and time.monotonic() < until:
            time.sleep(GLANCE)
        try:
            yield mine
        finally:
            if mine:
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({ASKING}, {number})")


@contextmanager
def _beside(path: str) -> Iterator[bool]:
    if sys.platform == "win32" or not os.access(os.path.dirname(path) or ".", os.W_OK):  # writing says why
        yield True
        return
    import fcntl

    while True:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a disk that knows no locks does without
                yield True
                return
            if not os.path.exists(path) or os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
                continue  # whoever had it has taken it away meanwhile
            try:
                yield True
            finally:
                os.unlink(path)
            return


OVERHEAD = 256  # tokens that a server's own template may add
LONGEST_PAUSE = 600.0  # seconds, however long a server asks to wait
SHOWN_FAILURES = 1000


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a series: prices, budget, clients, retries."""

    price_in: float = 0.0  # for a million tokens
    price_out: float = 0.0
    budget: Budget = NO_LIMIT
    max_tokens: int = 64
    clients: int = 4
    retries: int = 3
    backoff: float = 1.0  # seconds before the first try again
    give_up: int = 10
    schema: bool = True  # ask for JSON of a schema, unless the server refuses
    drift: int = 0  # earlier questions that are asked again first
    drift_allowed: int = 0  # of them, that may be answered differently
    accept_drift: bool = False

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """The cost in money."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


@dataclass
class SeriesTally:
    """The results of a series so far."""

    labelled: int = 0
    sent: int = 0
    cut: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    failures: list[AskFailure] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    returned: Counter[tuple[str, str]] = field(default_factory=Counter)  # model and fingerprint
    stopped: str = ""


def most_tokens(messages: Sequence[dict[str, str]], prompt: Prompt, manner: RequestOptions) -> int:
    """An upper limit for the tokens of messages: one per byte, plus schema and template."""
    schema = len(str(prompt.schema())) if manner.schema else 0
    return OVERHEAD + schema + sum(len(each["content"].encode("utf-8", "replace")) for each in messages)


def foresee(
    log: Log | None, asker: Asker, questions: Sequence[LlmQuestion], terms: Terms, definition: dict[str, Any]
) -> AskResult:
    """The number of questions that a series would ask, and their maximum cost; nothing is sent or written."""
    answers: dict[str, StoredAnswer] = {}
    total, without_reply, replaced, check = Spent(), 0, 0, NO_CHECK
    if log is not None:
        with log.reading() as transaction:
            answers = _stored(transaction, questions, terms)
            early = _at_prices(transaction.connection, asker.model, terms)
            total = spent(transaction.connection, asker.model).plus(early)
            without_reply = question_store.lost(transaction.connection, asker.model)
            if any(each.hash not in answers for each in questions):
                check = planned(transaction, asker, terms.drift, definition)
                replaced = _replaced(transaction, asker, questions, answers)
    due = {each.hash: each for each in questions if each.hash not in answers}
    manner = RequestOptions(schema=terms.schema)
    sizes = [
        most_tokens(asker.prompt.messages(asker.values(each.subject, purpose=each.purpose)[0]), asker.prompt, manner)
        for each in (*check.questions, *due.values())
    ]
    most = len(sizes) * terms.max_tokens
    return _result(
        asker,
        questions,
        answers,
        log="" if log is None else log.name,
        series="",
        left=sum(each.hash in due for each in questions),
        lost=without_reply,
        replaced=replaced,
        cut=sum(each.shown_length < each.length and asker.prompt.kind != "passage" for each in due.values()),
        spent_tokens=total.tokens,
        spent=total.cost,
        budget=terms.budget,
        asked_first=len(check.questions),
        foreseen=Spent(sum(sizes) + most, terms.cost(sum(sizes), most)),
    )


def _stored(transaction: Transaction, questions: Sequence[LlmQuestion], terms: Terms) -> dict[str, StoredAnswer]:
    hashes = [each.hash for each in questions]
    return question_store.stored_answers(transaction.connection, hashes, terms.max_tokens)


def _result(asker: Asker, questions: Sequence[LlmQuestion], answers: dict[str, StoredAnswer], **more: Any) -> AskResult:
    more["known"] = sum(_graded(answers.get(each.hash)) for each in questions)
    return AskResult(assessor=asker.assessor, prompt=asker.prompt.hash, pairs=len(questions), **more)


def refuse_other_prompt(log: Log, asker: Asker) -> None:
    """Raise DataError if the labels of this name come from another prompt text or model."""
    prompt = asker.prompt
    with log.reading() as transaction:
        every = question_store.series_of(transaction.connection, asker.assessor)
    for before in (each.definition["prompt"] for each in every):
        if before["hash"] == prompt.hash:
            continue
        if (before["name"], before["version"]) == (prompt.name, prompt.version):
            problem = f"{log.name}: prompt {prompt.name!r} version {prompt.version!r} was another text before"
            raise DataError(f"{problem} ({before['hash'][:19]}…); give the new text another version")
        problem = f"{log.name}: {asker.assessor} is prompt {before['name']!r} version {before['version']!r} already"
        raise DataError(f"{problem}; give the prompt another name or version")


def ask(
    log: Log,
    asker: Asker,
    endpoint: Endpoint,
    questions: Sequence[LlmQuestion],
    terms: Terms,
    definition: dict[str, Any],
    *,
    progress: Progress | None = None,
    pause: Pause | None = None,
) -> AskResult:
    """Ask all questions without an answer, and add the labels; `pause` waits before a retry."""
    with log.reading() as transaction:
        answers = _stored(transaction, questions, terms)
        before = question_store.lost(transaction.connection, asker.model)
        replaced = _replaced(transaction, asker, questions, answers)
        unanswered = [each.hash for each in questions if each.hash not in answers]
        late = question_store.failed_before(transaction.connection, unanswered)
        without_price = _at_prices(transaction.connection, asker.model, terms)
    due: dict[str, list[LlmQuestion]] = {}  # by their hash: the same text is asked about once
    for each in questions:
        if each.hash not in answers:
            due.setdefault(each.hash, []).append(each)
    series = _Series(log, asker, endpoint, terms, progress, pause)
    series.extra, series.judges = without_price, any(map(_graded, answers.values()))
    if due:
        series.begin(definition | {"due": len(due)})
    earlier = [(each, answers[each.hash]) for each in questions if each.hash in answers]
    old = [each.event(asker, answer) for each, answer in earlier if _is_label(each, answer)]
    added = log.add(old).new if old and not series.tally.stopped else 0
    if due:
        series.loop(sorted(due.values(), key=lambda same: same[0].hash in late))  # what failed before comes last
    with log.reading() as transaction:
        total = spent(transaction.connection, asker.model).plus(without_price)
    tally = series.tally
    returned = [(model, mark, count) for (model, mark), count in tally.returned.most_common()]
    return _result(
        asker,
        questions,
        answers,
        **vars(tally) | {"problems": dict(tally.problems), "returned": returned},
        log=log.name,
        series=series.id,
        earlier=dict(Counter(answer.problem for _, answer in earlier if answer.problem)),
        from_cache=added,
        left=series.left,
        lost=before,
        replaced=replaced,
        spent_tokens=total.tokens,
        spent=total.cost,
        unpriced=without_price,
        budget=terms.budget,
        schema="used" if series.manner.schema else "refused" if terms.schema else "not asked for",
        drift=series.check,
    )


def _replaced(
    transaction: Transaction, asker: Asker, questions: Sequence[LlmQuestion], answers: dict[str, StoredAnswer]
) -> int:
    """The number of pairs to ask that this model and prompt already labelled, from another text of the document."""
    due = {tuple(each.subject) for each in questions if each.purpose == LABEL and each.hash not in answers}
    return question_store.relabelled(transaction.connection, asker.assessor, due) if due else 0


def _at_prices(connection: Connection, model: str, terms: Terms) -> float:
    """What earlier questions that were asked without prices cost at the present prices; 0 unless the budget is in money."""
    if terms.budget.money is None:
        return 0.0
    tokens_in, tokens_out, uncounted = question_store.unpriced(connection, model)
    return terms.cost(tokens_in, tokens_out) + max(terms.cost(uncounted, 0), terms.cost(0, uncounted))


def _is_label(question: LlmQuestion, answer: StoredAnswer) -> bool:
    """Whether an answer becomes a label: it has a grade and is not a probe."""
    return answer.grade is not None and question.purpose == LABEL


def _graded(answer: StoredAnswer | None) -> bool:
    return answer is not None and answer.grade is not None


def _advice(status: int) -> str:
    """What to do about an HTTP status that ends a series."""
    if status in (401, 403):
        return "give the key by --key-env NAME; "
    address = "is this the address of an OpenAI-compatible server, such as http://localhost:8080/v1? "
    return "" if status == 402 else address


class _Series:
    """The questions of one call, and their results."""

    def __init__(
        self, log: Log, asker: Asker, endpoint: Endpoint, terms: Terms, progress: Progress | None, pause: Pause | None
    ) -> None:
        self.log, self.asker, self.endpoint, self.terms = log, asker, endpoint, terms
        self.over = threading.Event()  # whoever pauses need not go on
        self.progress, self.pause = progress, pause or self.over.wait
        self.id = new_id()
        self.manner = RequestOptions(schema=terms.schema)
        self.tally = SeriesTally()
        self.changed = threading.Condition()
        self.flying = 0  # questions that are under way
        self.landed = 0  # replies
        self.alone = terms.budget != NO_LIMIT  # one question at a time, until one is answered
        self.in_a_row = 0  # questions without a reply of the model
        self.unusable = 0  # answers that are not labels
        self.judges = False  # whether the model has given a label of this pool before
        self.extra = 0.0  # the cost of earlier questions that had no price then
        self.left = 0
        self.error: BaseException | None = None
        self.check: DriftCheck | None = None  # whether the model still answers as before

    def begin(self, definition: dict[str, Any]) -> None:
        """Store the series, and ask the questions of the drift check."""
        with self.log.reading() as transaction:
            first = planned(transaction, self.asker, self.terms.drift, definition)
        how = {"bases": first.bases, "allowed": self.terms.drift_allowed, "accept": self.terms.accept_drift}
        if first.unable:
            how["unable"] = first.unable
        whole = definition | ({DRIFT: how} if first.questions or first.unable else {})

        def work(transaction: Transaction) -> question_store.Series:
            transaction.apply(
                record("series", id=self.id, model=self.asker.model, at=transaction.now, definition=whole)
            )
            return question_store.Series(self.id, transaction.now, whole)

        series = self.log.write(work)
        if DRIFT not in whole:
            return
        if first.questions:
            self.loop([[question] for question in first.questions])
        with self.log.reading() as transaction:
            self.check = check_of(transaction.connection, series)
        if not self.check.passed:
            self._stop("; ".join(self.check.differences()))

    @property
    def ended(self) -> bool:
        """Whether the series has ended."""
        return self.error is not None or bool(self.tally.stopped)

    def loop(self, due: list[list[LlmQuestion]]) -> None:
        """Start the clients and wait for the last."""
        waiting, total = deque(due), len(due)

        def ask_one(same: list[LlmQuestion]) -> None:
            if not self._one(same):
                waiting.append(same)
            elif self.progress is not None:
                self.progress(total - len(waiting), total)

        work_through(
            lambda: waiting.popleft() if waiting else None,
            ask_one,
            min(self.terms.clients, total),
            stopped=lambda: self.ended,
            on_error=lambda error: self._stop(error=error),
            on_interrupt=lambda: self._stop("interrupted; the labels so far are written"),
        )
        self.left = sum(map(len, waiting))

    def _one(self, same: list[LlmQuestion]) -> bool:
        """Ask a question until it is answered or no retry is left; False if it was not asked at all."""
        question, tries, limit = same[0], 0, self.asker.limit
        manner = self.manner
        while True:
            reply = self._sent(same, manner, limit)
            if reply is None:
                return False
            if not reply.problem:
                with self.changed:
                    self.in_a_row = 0
                    if manner != self.manner:
                        self.manner = manner  # the server took it without what it had refused
                return True
            if reply.status in (*ODD_REQUEST, 413) and (reply.status == 413 or TOO_LONG.search(reply.raw)):
                shorter = question.shorter(limit)
                if shorter is not None:
                    limit = shorter
                    continue
            elif reply.status in ODD_REQUEST and (other := manner.without(reply.raw)) is not None:
                manner = other
                continue
            if reply.again and tries < self.terms.retries and not self.tally.stopped:
                self.pause(retry_pause(tries, self.terms.backoff, reply.after, LONGEST_PAUSE))
                tries += 1
                continue
            self._failed(same, reply)
            return True

    def _sent(self, same: list[LlmQuestion], manner: RequestOptions, limit: int) -> Reply | None:
        """Send a question once, and store it before and its reply afterwards; None if the budget does not allow it."""
        question, asker, terms = same[0], self.asker, self.terms
        values, length, shown_length = asker.values(question.subject, limit, question.purpose)
        messages = asker.prompt.messages(values)
        most_in = most_tokens(messages, asker.prompt, manner)
        intent: dict[str, Any] = {"id": new_id(), "series": self.id, "purpose": question.purpose}
        intent |= {"question": question.hash, **question.subject._asdict()}
        intent |= {"tokens_most": float(most_in + terms.max_tokens), "cost_most": terms.cost(most_in, terms.max_tokens)}
        intent |= {"length": length, "shown": shown_length, "manner": str(manner)}
        if not self._reserved(intent):
            return None
        try:
            reply = self.endpoint.ask(messages, asker.prompt, manner, terms.max_tokens)
            self._label_event(same, intent, reply)
            self._check_count(reply, most_in)
        finally:
            with self.changed:
                self.flying -= 1
                self.landed += 1
                self.changed.notify_all()
        return reply

    def _check_count(self, reply: Reply, most_in: int) -> None:
        """Stop if the server counts more tokens than reserved; after one answer, allow parallel questions."""
        limits = (
            (reply.tokens_in, most_in, "of the question were expected at most"),
            (reply.tokens_out, self.terms.max_tokens, "of an answer were allowed (--max-tokens)"),
        )
        for count, most, words in limits:
            if count is not None and count > most:
                problem = f"the server counted {count:,} tokens where {most:,} {words}"
                self._stop(f"{problem}: the cost cannot be foreseen")
        if not reply.problem:
            self.alone = False

    def _reserved(self, intent: dict[str, Any]) -> bool:
        """Store a question before it is sent if the budget allows its maximum cost; else wait for other replies."""

        def work(transaction: Transaction) -> None:
            transaction.apply(record("question", **intent, asked=transaction.now))
            if spent(transaction.connection, self.asker.model).plus(self.extra).beyond(self.terms.budget):
                raise question_store.OverBudgetError("the budget is spent")

        while True:
            with self.changed:
                self.changed.wait_for(lambda: not (self.alone and self.flying) or self.ended)
                if self.ended:
                    return False
                landed = self.landed
                self.flying += 1
            try:
                self.log.write(work)
            except BaseException as error:
                with self.changed:
                    self.flying -= 1
                    self.changed.notify_all()
                    if not isinstance(error, question_store.OverBudgetError):
                        raise
                    if self.landed == landed and not self.flying:
                        self._stop("the next question might exceed the budget")
                    if self.ended:
                        return False
                    if self.landed == landed:
                        self.changed.wait()
                continue
            with self.changed:
                self.tally.sent += 1
            return True

    def _label_event(self, same: list[LlmQuestion], intent: dict[str, Any], reply: Reply) -> None:
        """Store a reply together with its labels, and count it."""
        grade, problem = (None, reply.problem) if reply.problem else read_answer(self.asker.prompt, reply)
        tokens, cost = (0.0, 0.0) if reply.free else (intent["tokens_most"], intent["cost_most"])
        if reply.tokens_in is not None and reply.tokens_out is not None:
            tokens = float(reply.tokens_in + reply.tokens_out)
            cost = self.terms.cost(reply.tokens_in, reply.tokens_out)

        def work(transaction: Transaction) -> None:
            name, now = intent["id"], transaction.now
            answer = StoredAnswer(
                name, intent["question"], problem, grade, reply.seconds, now, intent["shown"], self.id
            )
            events = [each.event(self.asker, answer) for each in same if _is_label(each, answer)]
            state = question_store.FAILED if reply.problem else question_store.ANSWERED
            fields: dict[str, Any] = {"state": state, "problem": problem, "raw": reply.raw or reply.detail}
            fields |= {key: getattr(reply, key) for key in ("returned", "fingerprint", "tokens_in", "tokens_out")}
            fields |= {"tokens": tokens, "cost": cost, "seconds": reply.seconds, "grade": grade}
            fields |= {"label": events[0].id if events else "", "answered": now}
            transaction.apply(record("reply", id=name, **fields))
            if events:
                transaction.add(events, self.log.name)

        self.log.write(work)
        tally = self.tally
        with self.changed:
            tally.tokens_in += reply.tokens_in or 0
            tally.tokens_out += reply.tokens_out or 0
            tally.cost += cost
            tally.seconds += reply.seconds
            if reply.problem or same[0].purpose == DRIFT:
                return
            tally.returned[reply.returned, reply.fingerprint] += 1
            tally.cut += intent["shown"] < intent["length"] and self.asker.prompt.kind != "passage"
            if grade is not None:
                tally.labelled += len(same)
            else:
                self._note(same, problem, reply.raw)
                self._give_up(problem)

    def _give_up(self, problem: str) -> None:
        """Count an unusable answer; stop the series after too many of them without any label."""
        self.unusable += 1
        if self.unusable >= self.terms.give_up and not (self.tally.labelled or self.judges):
            problem_text = f"the first {self.unusable} answers are not valid labels, the last: {problem}"
            self._stop(f"{problem_text}; change the prompt and give it another version, or allow more (--give-up N)")

    def _note(self, same: list[LlmQuestion], problem: str, raw: str) -> None:
        self.tally.problems[problem] += len(same)
        if len(self.tally.failures) < SHOWN_FAILURES:
            self.tally.failures.append(AskFailure(*same[0].subject, problem, raw))

    def _failed(self, same: list[LlmQuestion], reply: Reply) -> None:
        """Record a question without a reply; end the series if the next would fail as well."""
        with self.changed:
            if same[0].purpose != DRIFT:
                self._note(same, reply.problem, reply.detail or reply.raw)
            self.in_a_row += 1
            many = self.in_a_row >= self.terms.give_up
        if reply.status in HOPELESS or 300 <= reply.status < 400:
            some = f"{self.tally.labelled:,} labels are written, the other pairs were not asked"
            so_far = some if self.tally.labelled else "nothing was labelled"
            raise DataError(f"{reply.detail}; {_advice(reply.status)}{so_far}")
        if many:
            problem = reply.detail or reply.problem
            self._stop(f"{self.in_a_row} pairs one after the other got no answer, the last: {problem}")

    def _stop(self, why: str = "", error: BaseException | None = None) -> None:
        """Note why the series ends, and wake the threads that pause or wait."""
        with self.changed:
            self.tally.stopped = self.tally.stopped or why
            self.error = self.error or error
            self.over.set()
            self.changed.notify_all()
