"""Asking a model: every question is written down with the most it may cost before it is sent, and its reply after.

Threads take question after question. A reply that may be over in a moment is asked again, as another question with a cost
of its own. What is over budget waits for the replies that are under way, which mostly cost less than was set aside for
them, and ends the series when none is. Under a budget questions go one by one until the first is answered, so that a server
which does not keep to `max_tokens` is found out by one.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.judge.event import new_id
from cranfield.judge.models.chat import HOPELESS, ODD_REQUEST, TOO_LONG, Manner, read_answer
from cranfield.judge.models.drifting import NO_CHECK, check_of, planned
from cranfield.judge.models.kept import (
    ANSWERED,
    DRIFT,
    FAILED,
    LABEL,
    NO_LIMIT,
    Budget,
    Known,
    OverBudgetError,
    Series,
    Spent,
    answered,
    failed_before,
    lost,
    record,
    relabelled,
    series_of,
    spent,
    unpriced,
)
from cranfield.judge.models.questioning import Failure, Questioning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.engine import Connection

    from cranfield.judge.log import Log
    from cranfield.judge.models.chat import Endpoint, Reply
    from cranfield.judge.models.drifting import Check
    from cranfield.judge.models.prompt import Prompt
    from cranfield.judge.models.questions import Asker, Question
    from cranfield.judge.records import Transaction

OVERHEAD = 256  # tokens that a server's own template may add
LONGEST_PAUSE = 600.0  # seconds, however long a server asks to wait
SHOWN_FAILURES = 1000


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a series is asked."""

    price_in: float = 0.0  # for a million tokens
    price_out: float = 0.0
    budget: Budget = NO_LIMIT
    max_tokens: int = 64
    clients: int = 4
    retries: int = 3
    backoff: float = 1.0  # seconds before the first try again
    give_up: int = 10
    schema: bool = True  # ask for JSON of a schema, unless the server refuses
    drift: int = 0  # questions of before that are asked again first
    drift_allowed: int = 0  # of them, that may be answered differently
    accept_drift: bool = False

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """In money."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


@dataclass
class Tally:
    """What came of a series so far."""

    labelled: int = 0
    sent: int = 0
    cut: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    returned: Counter[tuple[str, str]] = field(default_factory=Counter)  # model and fingerprint
    stopped: str = ""


def most_tokens(messages: Sequence[dict[str, str]], prompt: Prompt, manner: Manner) -> int:
    """The most tokens that messages can be: one a byte, those of the schema and of the server's template too."""
    schema = len(str(prompt.schema())) if manner.schema else 0
    return OVERHEAD + schema + sum(len(each["content"].encode("utf-8", "replace")) for each in messages)


def foresee(
    log: Log | None, asker: Asker, questions: Sequence[Question], terms: Terms, definition: dict[str, Any]
) -> Questioning:
    """What would be asked, and the most that it would cost; nothing is sent or written."""
    known: dict[str, Known] = {}
    total, without_reply, replaced, check = Spent(), 0, 0, NO_CHECK
    if log is not None:
        with log.reading() as transaction:
            known = answered(transaction.connection, [each.hash for each in questions], terms.max_tokens)
            early = _at_prices(transaction.connection, asker.model, terms)
            total = spent(transaction.connection, asker.model).plus(early)
            without_reply = lost(transaction.connection, asker.model)
            if any(each.hash not in known for each in questions):
                check = planned(transaction, asker, terms.drift, definition)
                replaced = _replaced(transaction, asker, questions, known)
    due = {each.hash: each for each in questions if each.hash not in known}
    manner = Manner(schema=terms.schema)
    sizes = [
        most_tokens(asker.prompt.messages(asker.values(each.subject, purpose=each.purpose)[0]), asker.prompt, manner)
        for each in (*check.questions, *due.values())
    ]
    return Questioning(
        log="" if log is None else log.name,
        series="",
        assessor=asker.assessor,
        prompt=asker.prompt.hash,
        pairs=len(questions),
        known=sum(_graded(known.get(each.hash)) for each in questions),
        left=sum(each.hash in due for each in questions),
        lost=without_reply,
        replaced=replaced,
        cut=sum(each.shown < each.length and asker.prompt.kind != "passage" for each in due.values()),
        spent_tokens=total.tokens,
        spent=total.cost,
        budget=terms.budget,
        asked_first=len(check.questions),
        foreseen=Spent(
            sum(sizes) + len(sizes) * terms.max_tokens, terms.cost(sum(sizes), len(sizes) * terms.max_tokens)
        ),
    )


def refuse_other_prompt(log: Log, asker: Asker) -> None:
    """Stop where the labels of this name are of a prompt of another text, or of another model."""
    prompt = asker.prompt
    with log.reading() as transaction:
        every = series_of(transaction.connection, asker.assessor)
    for before in (each.definition["prompt"] for each in every):
        if before["hash"] == prompt.hash:
            continue
        if (before["name"], before["version"]) == (prompt.name, prompt.version):
            told = f"{log.name}: prompt {prompt.name!r} version {prompt.version!r} was another text before"
            raise DataError(f"{told} ({before['hash'][:19]}…); give the new text another version")
        told = f"{log.name}: {asker.assessor} is prompt {before['name']!r} version {before['version']!r} already"
        raise DataError(f"{told}; give the prompt another name or version")


def ask(
    log: Log,
    asker: Asker,
    endpoint: Endpoint,
    questions: Sequence[Question],
    terms: Terms,
    definition: dict[str, Any],
    *,
    progress: Callable[[int, int | None], None] | None = None,
    pause: Callable[[float], object] | None = None,
) -> Questioning:
    """Ask what has no answer yet, and write labels; `pause` waits before a try again."""
    with log.reading() as transaction:
        known = answered(transaction.connection, [each.hash for each in questions], terms.max_tokens)
        before = lost(transaction.connection, asker.model)
        replaced = _replaced(transaction, asker, questions, known)
        late = failed_before(transaction.connection, [each.hash for each in questions if each.hash not in known])
        without_price = _at_prices(transaction.connection, asker.model, terms)
    due: dict[str, list[Question]] = {}  # by their hash: the same text is asked about once
    for each in questions:
        if each.hash not in known:
            due.setdefault(each.hash, []).append(each)
    series = _Series(log, asker, endpoint, terms, progress, pause)
    series.extra, series.judges = without_price, any(map(_graded, known.values()))
    if due:
        series.begin(definition | {"due": len(due)})
    old = [each.event(asker, found) for each in questions if (found := known.get(each.hash)) and _is_label(each, found)]
    added = log.add(old).new if old and not series.tally.stopped else 0
    if due:
        series.loop(sorted(due.values(), key=lambda same: same[0].hash in late))  # what failed before comes last
    with log.reading() as transaction:
        total = spent(transaction.connection, asker.model).plus(without_price)
    earlier = Counter(known[each.hash].problem for each in questions if each.hash in known)
    del earlier[""]
    return replace(_summed(series, questions, known, added, earlier, before, total), replaced=replaced)


def _replaced(transaction: Transaction, asker: Asker, questions: Sequence[Question], known: dict[str, Known]) -> int:
    """How many pairs that are due have a label of this model with this prompt by another text."""
    due = {tuple(each.subject) for each in questions if each.purpose == LABEL and each.hash not in known}
    return relabelled(transaction.connection, asker.assessor, due) if due else 0


def _at_prices(connection: Connection, model: str, terms: Terms) -> float:
    """What questions that were asked without prices cost by those of now, where a budget is in money."""
    if terms.budget.money is None:
        return 0.0
    tokens_in, tokens_out, uncounted = unpriced(connection, model)
    return terms.cost(tokens_in, tokens_out) + max(terms.cost(uncounted, 0), terms.cost(0, uncounted))


def _is_label(question: Question, known: Known) -> bool:
    """Whether an answer becomes a label: a grade, and not that of a probe."""
    return known.grade is not None and question.purpose == LABEL


def _graded(known: Known | None) -> bool:
    return known is not None and known.grade is not None


def _summed(
    series: _Series,
    questions: Sequence[Question],
    known: dict[str, Known],
    added: int,
    earlier: Counter[str],
    before: int,
    total: Spent,
) -> Questioning:
    tally = series.tally
    return Questioning(
        log=series.log.name,
        series=series.id,
        assessor=series.asker.assessor,
        prompt=series.asker.prompt.hash,
        pairs=len(questions),
        known=sum(_graded(known.get(each.hash)) for each in questions),
        earlier=dict(earlier),
        from_cache=added,
        labelled=tally.labelled,
        sent=tally.sent,
        problems=dict(tally.problems),
        failures=tally.failures,
        left=series.left,
        cut=tally.cut,
        lost=before,
        tokens_in=tally.tokens_in,
        tokens_out=tally.tokens_out,
        cost=tally.cost,
        seconds=tally.seconds,
        spent_tokens=total.tokens,
        spent=total.cost,
        unpriced=series.extra,
        budget=series.terms.budget,
        returned=[(model, mark, count) for (model, mark), count in tally.returned.most_common()],
        schema="used" if series.manner.schema else "refused" if series.terms.schema else "not asked for",
        stopped=tally.stopped,
        drift=series.check,
    )


def _advice(status: int) -> str:
    """What to do about a status at which nothing can be asked."""
    if status in (401, 403):
        return "give the key by --key-env NAME; "
    return (
        ""
        if status == 402
        else "is this the address of an OpenAI-compatible server, such as http://localhost:8080/v1? "
    )


class _Series:
    """The questions of one call, and what came of them."""

    def __init__(
        self,
        log: Log,
        asker: Asker,
        endpoint: Endpoint,
        terms: Terms,
        progress: Callable[[int, int | None], None] | None,
        pause: Callable[[float], object] | None,
    ) -> None:
        self.log, self.asker, self.endpoint, self.terms = log, asker, endpoint, terms
        self.over = threading.Event()  # whoever pauses need not go on
        self.progress, self.pause = progress, pause or self.over.wait
        self.id = new_id()
        self.manner = Manner(schema=terms.schema)
        self.tally = Tally()
        self.changed = threading.Condition()
        self.clients = 0  # threads that ask
        self.flying = 0  # questions that are under way
        self.landed = 0  # replies
        self.alone = terms.budget != NO_LIMIT  # one question at a time, until one is answered
        self.in_a_row = 0  # questions without a reply of the model
        self.unusable = 0  # answers that are no label
        self.judges = False  # whether the model has given a label of this pool before
        self.extra = 0.0  # what questions of before cost that had no price then
        self.left = 0
        self.error: BaseException | None = None
        self.check: Check | None = None  # whether the model still answers as before

    def begin(self, definition: dict[str, Any]) -> None:
        """Write down what is asked and how, and ask what shows whether the model is still the same."""
        with self.log.reading() as transaction:
            first = planned(transaction, self.asker, self.terms.drift, definition)
        how = {"bases": first.bases, "allowed": self.terms.drift_allowed, "accept": self.terms.accept_drift}
        if first.unable:
            how["unable"] = first.unable
        whole = definition | ({DRIFT: how} if first.questions or first.unable else {})

        def work(transaction: Transaction) -> Series:
            fields = {"id": self.id, "model": self.asker.model, "at": transaction.now, "definition": whole}
            transaction.apply(record("series", **fields))
            return Series(self.id, transaction.now, whole)

        series = self.log.write(work)
        if DRIFT not in whole:
            return
        if first.questions:
            self.loop([[question] for question in first.questions])
        with self.log.reading() as transaction:
            self.check = check_of(transaction.connection, series)
        if not self.check.passed:
            self._stop("; ".join(self.check.said()))

    @property
    def ended(self) -> bool:
        """Whether no more is to be asked."""
        return self.error is not None or bool(self.tally.stopped)

    def loop(self, due: list[list[Question]]) -> None:
        """Start the clients and wait for the last."""
        waiting, total = deque(due), len(due)

        def client() -> None:
            try:
                while not self.ended:
                    try:
                        same = waiting.popleft()
                    except IndexError:  # another client was faster
                        return
                    if not self._one(same):
                        waiting.append(same)
                    elif self.progress is not None:
                        self.progress(total - len(waiting), total)
            except BaseException as error:
                with self.changed:
                    self.error = self.error or error
                    self.over.set()
            finally:
                with self.changed:
                    self.clients -= 1
                    self.changed.notify_all()

        self.clients = min(self.terms.clients, total)
        for _ in range(self.clients):
            threading.Thread(target=client, daemon=True).start()
        self._wait()
        self.left = sum(map(len, waiting))
        if self.error is not None:
            raise self.error

    def _wait(self) -> None:
        """Wait for the last client; Ctrl-C lets those under way end, and a second one does not."""
        try:
            self._until_all_end()
        except KeyboardInterrupt:
            self._stop("interrupted; the labels so far are written")
            self._until_all_end()

    def _until_all_end(self) -> None:
        with self.changed:  # not by join: one that is interrupted takes its thread for ended (CPython 3.11)
            while self.clients:
                self.changed.wait()

    def _one(self, same: list[Question]) -> bool:
        """Ask a question until it is answered, or tries are over; False if it was not asked."""
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
                wait = self.terms.backoff * 2**tries if reply.after is None else reply.after
                self.pause(min(wait, LONGEST_PAUSE))
                tries += 1
                continue
            self._failed(same, reply)
            return True

    def _sent(self, same: list[Question], manner: Manner, limit: int) -> Reply | None:
        """Send a question once, written down before and after; None if the budget does not let it."""
        question, asker, terms = same[0], self.asker, self.terms
        values, length, shown = asker.values(question.subject, limit, question.purpose)
        messages = asker.prompt.messages(values)
        most_in = most_tokens(messages, asker.prompt, manner)
        intent = {
            "id": new_id(),
            "series": self.id,
            "purpose": question.purpose,
            "question": question.hash,
            **question.subject._asdict(),
            "tokens_most": float(most_in + terms.max_tokens),
            "cost_most": terms.cost(most_in, terms.max_tokens),
            "length": length,
            "shown": shown,
            "manner": str(manner),
        }
        if not self._reserved(intent):
            return None
        try:
            reply = self.endpoint.ask(messages, asker.prompt, manner, terms.max_tokens)
            self._written(same, intent, reply)
            self._check_count(reply, most_in)
        finally:
            with self.changed:
                self.flying -= 1
                self.landed += 1
                self.changed.notify_all()
        return reply

    def _check_count(self, reply: Reply, most_in: int) -> None:
        """Stop at a server that counts more than was set aside; let more than one be under way after an answer."""
        out = "of an answer were asked for at the most (--max-tokens)"
        counts = (
            (reply.tokens_in, most_in, "were thought to be the most"),
            (reply.tokens_out, self.terms.max_tokens, out),
        )
        for count, most, words in counts:
            if count is not None and count > most:
                told = f"the server counted {count:,} tokens where {most:,} {words}"
                self._stop(f"{told}: its prices cannot be foreseen")
        if not reply.problem:
            self.alone = False

    def _reserved(self, intent: dict[str, Any]) -> bool:
        """Write a question down before it is sent, if the most that it may cost is left; else wait for others' replies."""

        def work(transaction: Transaction) -> None:
            transaction.apply(record("question", **intent, asked=transaction.now))
            if spent(transaction.connection, self.asker.model).plus(self.extra).beyond(self.terms.budget):
                raise OverBudgetError("the budget is spent")

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
                    if not isinstance(error, OverBudgetError):
                        raise
                    if self.landed == landed and not self.flying:
                        self._stop("the next question might pass the budget")
                    if self.ended:
                        return False
                    if self.landed == landed:
                        self.changed.wait()
                continue
            with self.changed:
                self.tally.sent += 1
            return True

    def _written(self, same: list[Question], intent: dict[str, Any], reply: Reply) -> None:
        """Write down what came back, and the labels that it is, together."""
        terms = self.terms
        grade, problem = (None, reply.problem) if reply.problem else read_answer(self.asker.prompt, reply)
        counted = reply.tokens_in is not None and reply.tokens_out is not None
        tokens, cost = intent["tokens_most"], intent["cost_most"]
        if counted:
            tokens_in, tokens_out = reply.tokens_in or 0, reply.tokens_out or 0
            tokens, cost = float(tokens_in + tokens_out), terms.cost(tokens_in, tokens_out)
        elif reply.free:
            tokens, cost = 0.0, 0.0

        def work(transaction: Transaction) -> None:
            made = {"id": intent["id"], "question": intent["question"], "shown": intent["shown"], "series": self.id}
            known = Known(**made, problem=problem, grade=grade, seconds=reply.seconds, answered=transaction.now)
            events = [each.event(self.asker, known) for each in same if _is_label(each, known)]
            fields = {
                "id": intent["id"],
                "state": FAILED if reply.problem else ANSWERED,
                "problem": problem,
                "raw": reply.raw or reply.told,
                "returned": reply.returned,
                "fingerprint": reply.fingerprint,
                "tokens_in": reply.tokens_in,
                "tokens_out": reply.tokens_out,
                "tokens": tokens,
                "cost": cost,
                "seconds": reply.seconds,
                "grade": grade,
                "label": events[0].id if events else "",
                "answered": transaction.now,
            }
            transaction.apply(record("reply", **fields))
            if events:
                transaction.add(events, self.log.name)

        self.log.write(work)
        self._count(same, intent, reply, grade, problem, cost)

    def _count(
        self, same: list[Question], intent: dict[str, Any], reply: Reply, grade: float | None, problem: str, cost: float
    ) -> None:
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
        """Stop at a model that has never given a label."""
        self.unusable += 1
        if self.unusable >= self.terms.give_up and not (self.tally.labelled or self.judges):
            told = f"the first {self.unusable} answers are no labels, the last: {problem}"
            self._stop(f"{told}; mend the prompt and give it another version, or allow more (--give-up N)")

    def _note(self, same: list[Question], problem: str, raw: str) -> None:
        self.tally.problems[problem] += len(same)
        if len(self.tally.failures) < SHOWN_FAILURES:
            self.tally.failures.append(Failure(*same[0].subject, problem, raw))

    def _failed(self, same: list[Question], reply: Reply) -> None:
        """A question without a reply of the model; where the next would fare no better, the series ends."""
        with self.changed:
            if same[0].purpose != DRIFT:
                self._note(same, reply.problem, reply.told or reply.raw)
            self.in_a_row += 1
            many = self.in_a_row >= self.terms.give_up
        if reply.status in HOPELESS or 300 <= reply.status < 400:
            raise DataError(f"{reply.told}; {_advice(reply.status)}{self._so_far()}")
        if many:
            self._stop(
                f"{self.in_a_row} pairs one after the other got no answer, the last: {reply.told or reply.problem}"
            )

    def _so_far(self) -> str:
        labels = self.tally.labelled
        return f"{labels:,} labels are written, the other pairs were not asked" if labels else "nothing was labelled"

    def _stop(self, why: str) -> None:
        with self.changed:
            self.tally.stopped = self.tally.stopped or why
            self.over.set()
            self.changed.notify_all()
