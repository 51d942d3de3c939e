"""What a verb reads of a workspace: runs by the names that are listed, and judgments by a word.

The word is `log` (what stands in the log by a policy), `log@NAME` (a version that was frozen) or `collection` (its own
qrels.txt). Where nobody says, it is `log` as soon as a person's label stands in the log, and `collection` before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import ConventionError, DataError
from cranfield.formats.folder import META, TOPICS
from cranfield.hearing import say
from cranfield.judge.event import RELEVANCE
from cranfield.workspace.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collection import Qrels
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile

LOG, COLLECTION = "log", "collection"


class Judged(NamedTuple):
    """Which judgments are meant, settled: the word, and the version where it names one."""

    word: str
    version: str = ""

    @property
    def in_words(self) -> str:
        """As a page says it."""
        if self.word == COLLECTION:
            return "judged by the collection's own judgments"
        return f"judged by version {self.version}" if self.version else "judged by the labels in the log"

    @property
    def moves(self) -> bool:
        """Whether a new label changes them."""
        return self.word == LOG and not self.version


def judged(bench: Bench, word: str = "") -> Judged:
    """What a word means in a workspace."""
    if not word:
        if has_labels(bench):
            return Judged(LOG)
        if bench.qrels is not None:
            return Judged(COLLECTION)
        raise DataError(
            "nothing is judged yet: no label of a person stands in the log, and the collection has no qrels.txt"
        )
    name, at, version = word.partition("@")
    if name == LOG and (version or not at):
        return Judged(LOG, version)
    if word != COLLECTION:
        raise ConventionError(f"judgments must be log, log@NAME or collection, got {word!r:.60}")
    if bench.qrels is None:
        raise DataError("the collection has no judgments of its own (qrels.txt); say judgments=log")
    return Judged(COLLECTION)


def has_labels(bench: Bench) -> bool:
    """Whether a grade of a person, or an adjudication, stands in the log: what qrels are made of."""
    from sqlalchemy import exists, literal_column, select

    from cranfield.store.tables import events, standing

    e, s = events.c, standing.c
    stands = exists().where(
        s.side.in_(["label", "adjudication"]),
        s.topic == e.topic,
        s.document == e.document,
        s.repeat == False,  # noqa: E712  a column
        s.event == e.id,
    )
    grades = e.kind.in_(["judgment", "adjudication"]), e.aspect == RELEVANCE
    people = e.source != literal_column("'model'")  # as the index says it
    query = select(e.seq).where(people, *grades, stands).limit(1)
    with bench.database.reading() as connection:
        return connection.execute(query).first() is not None


def qrels_of(bench: Bench, which: Judged, policy: str = "latest") -> Qrels:
    """The judgments themselves, with the collection's word on which grades are relevant."""
    from cranfield.collection import Qrels
    from cranfield.judge.policy import Settings, decide
    from cranfield.judge.versions import gold_of, thaw

    if which.word == COLLECTION:
        return _own(bench)
    if which.version:
        decided, name = thaw(bench.log, which.version), f"log@{which.version}"
    else:
        with bench.log.reading() as transaction:
            gold = gold_of(transaction)
        decided, name = decide(bench.log.standing(), policy, Settings(), gold), LOG
    if not len(decided):
        raise DataError(f"{name}: no label of a person stands that counts by {policy}")
    qrels = Qrels(decided.grades, name)
    qrels.remarks = decided.notes()
    say(qrels.remarks)
    qrels.relevant_from = None if bench.relevant_from == 1 else bench.relevant_from
    return qrels


def _own(bench: Bench) -> Qrels:
    from cranfield.formats.reading import as_qrels

    opened = bench.opened()
    if opened is not None:
        return opened.qrels
    if bench.qrels is None:
        raise DataError("the collection has no judgments of its own (qrels.txt)")
    return as_qrels(bench.qrels)


def basis(bench: Bench, which: Judged, policy: str) -> dict[str, str]:
    """What the judgments depend on beside new labels, as hashes."""
    meta = bench.file(META)
    about = {} if meta is None else {"collection.toml": bench.hashes.of(meta)}
    if which.word == COLLECTION:
        return {"qrels": bench.hashes.of(str(bench.qrels)), **about}
    if which.version:
        from cranfield.judge.versions import find_version

        return {f"log@{which.version}": find_version(bench.log, which.version).hash, **about}
    return {"log": policy, "gold": _gold(bench), **about}


def _gold(bench: Bench) -> str:
    from hashlib import sha256

    from cranfield.judge.versions import gold_of

    with bench.log.reading() as transaction:
        gold = sorted((*subject, grade) for subject, grade in gold_of(transaction).items())
    return sha256(repr(gold).encode("utf-8", "surrogateescape")).hexdigest() if gold else ""


def of_runs(bench: Bench, runs: Sequence[RunFile]) -> dict[str, str]:
    """The hashes of runs by their names, and of the topics."""
    topics = bench.file(TOPICS)
    return {f"run {run.name}": bench.hash_of(run) for run in runs} | (
        {} if topics is None else {"topics": bench.hashes.of(topics)}
    )


@dataclass(frozen=True)
class Chosen(Inputs):
    """Inputs whose runs are names out of `listed`, and whose judgments are at hand."""

    listed: Mapping[str, str] = field(default_factory=dict)  # name → path
    at_hand: Qrels | None = None
    folder: str | None = None  # of the collection
    only: Sequence[str] | None = None  # the topics that count

    def files(self, *more: str | None) -> dict[str, str]:
        return {name: self.listed[name] for name in self.runs}

    @cached_property
    def judgments(self) -> str | Qrels:
        """The judgments at hand."""
        if self.at_hand is None:
            raise DataError("expected judgments, found none")
        return self.at_hand

    @property
    def collection(self) -> str | None:
        """The workspace's."""
        return self.folder

    def chosen_topics(self) -> list[str] | None:
        return None if self.only is None else list(self.only)


def chosen(bench: Bench, runs: Sequence[RunFile], qrels: Qrels | None = None, **more: Any) -> Chosen:
    """The inputs of a verb."""
    listed = {run.name: run.path for run in bench.runs()} | {run.name: run.path for run in runs}
    return Chosen(
        qrels=None if qrels is None else qrels.name,
        runs=[run.name for run in runs],
        listed=listed,
        at_hand=qrels,
        folder=bench.collection,
        **more,
    )
