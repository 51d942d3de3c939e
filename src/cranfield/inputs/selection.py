"""The inputs that a question reads from a workspace: runs by name, and judgments by a word.

The word is `log` (the one set of judgments: people's labels by a policy, and the collection's own judgments of all other
documents), `log@NAME` (a frozen version) or `collection` (its own qrels.txt alone). The default is `log`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import say
from cranfield.base.qrels import Qrels
from cranfield.formats.collection_folder import META, TOPICS
from cranfield.inputs.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.formats.run_files import RunFile
    from cranfield.inputs.workspace import Bench

LOG, COLLECTION = "log", "collection"


class JudgmentSource(NamedTuple):
    """The source of judgments: the word, and the version if it names one."""

    word: str
    version: str = ""

    @property
    def in_words(self) -> str:
        """The source in words that end a sentence about judgments."""
        if self.word == COLLECTION:
            return "from the collection's own file"
        return f"from version {self.version}" if self.version else "as they are now"

    @property
    def depends_on_labels(self) -> bool:
        """Whether a new label changes the judgments."""
        return self.word == LOG and not self.version


def judgment_source(bench: Bench, word: str = "") -> JudgmentSource:
    """The source that a word names in a workspace; DataError if it has no judgments.

    The log is brought up to date with the collection's file first, so that the place of an answer includes that.
    """
    if word in ("", LOG):
        bench.import_judgments()
    if not word:
        if problem := nothing_judged(bench):
            raise DataError(problem)
        return JudgmentSource(LOG)
    name, at, version = word.partition("@")
    if name == LOG and (version or not at):
        return JudgmentSource(LOG, version)
    if word != COLLECTION:
        raise ConventionError(f"judgments must be log, log@NAME or collection, got {word!r:.60}")
    if bench.qrels is None:
        raise DataError("the collection has no judgments of its own (qrels.txt); say judgments=log")
    return JudgmentSource(COLLECTION)


def nothing_judged(bench: Bench) -> str:
    """What a workspace lacks if it has no judgments at all; empty if it has some."""
    if bench.qrels is not None or has_labels(bench):
        return ""
    return "nothing is judged yet: the log has no label of a person, and the collection has no qrels.txt"


def has_labels(bench: Bench) -> bool:
    """Whether the log has a current label of a person."""
    from cranfield.judging.log_queries import has_labels_of_people

    return has_labels_of_people(bench.database)


def qrels_of(bench: Bench, which: JudgmentSource, policy: str = "latest") -> Qrels:
    """The judgments of a source, with the lowest relevant grade of the collection."""
    from cranfield.judging.log_queries import decide_log
    from cranfield.judging.versions import gold_grades, thaw

    if which.word == COLLECTION or (which.depends_on_labels and _is_unlabelled(bench, policy)):
        return _own(bench)
    if which.version:
        decided, name = thaw(bench.log, which.version), f"log@{which.version}"
    else:
        decided, name = decide_log(bench.log, policy, gold=gold_grades(bench.log)), LOG
    if not len(decided):
        raise DataError(f"{name}: no label of a person counts by the policy {policy}")
    qrels = Qrels(decided.grades, name)
    qrels.remarks = decided.notes()
    say(qrels.remarks)
    qrels.relevant_from = None if bench.relevant_from == 1 else bench.relevant_from
    return qrels


def _is_unlabelled(bench: Bench, policy: str) -> bool:
    """Whether nobody has labelled anything yet: then the collection's own file is the whole set of judgments."""
    from cranfield.judging.policies import goes_by_labels

    return bench.qrels is not None and goes_by_labels(policy) and not has_labels(bench)


def _own(bench: Bench) -> Qrels:
    qrels = bench.own_judgments()
    if qrels is None:
        raise DataError("the collection has no judgments of its own (qrels.txt)")
    return qrels


def basis(bench: Bench, which: JudgmentSource, policy: str) -> dict[str, str]:
    """Hashes of everything the judgments depend on, except new labels."""
    meta = bench.file(META)
    about = {} if meta is None else {"collection.toml": bench.hashes.of(meta)}
    if which.word == COLLECTION:
        return {"qrels": bench.hashes.of(str(bench.qrels)), **about}
    if which.version:
        from cranfield.judging.versions import find_version

        return {f"log@{which.version}": find_version(bench.log, which.version).hash, **about}
    own = {} if bench.qrels is None else {"qrels": bench.hashes.of(bench.qrels)}
    return {"log": policy, "gold": _gold(bench), **own, **about}


def _gold(bench: Bench) -> str:
    from hashlib import sha256

    from cranfield.judging.versions import gold_of

    with bench.log.reading() as transaction:
        gold = sorted((*subject, grade) for subject, grade in gold_of(transaction).items())
    return sha256(repr(gold).encode("utf-8", "surrogateescape")).hexdigest() if gold else ""


def of_runs(bench: Bench, runs: Sequence[RunFile]) -> dict[str, str]:
    """The hashes of runs, by name, and of the topics."""
    topics = bench.file(TOPICS)
    hashes = {f"run {run.name}": bench.hashes.of(run.path) for run in runs}
    return hashes if topics is None else {**hashes, "topics": bench.hashes.of(topics)}


@dataclass(frozen=True)
class WorkspaceInputs(Inputs):
    """Inputs of a command: runs are names of listed files, and judgments are in memory."""

    paths: Mapping[str, str] = field(default_factory=dict)  # by the names of runs
    loaded: Qrels | None = None
    folder: str | None = None  # of the collection
    only: Sequence[str] | None = None  # topics; None: all

    def files(self, *more: str | None) -> dict[str, str]:
        return {name: self.paths[name] for name in self.runs}

    @cached_property
    def judgments(self) -> str | Qrels:
        """The judgments in memory."""
        if self.loaded is None:
            raise DataError("expected judgments, found none")
        return self.loaded

    @property
    def collection(self) -> str | None:
        """The folder with the documents, topics and judgments; None if the workspace has no collection."""
        return self.folder

    def chosen_topics(self) -> list[str] | None:
        return None if self.only is None else list(self.only)


def inputs_of(bench: Bench, runs: Sequence[RunFile], qrels: Qrels | None = None, **more: Any) -> WorkspaceInputs:
    """The inputs of a command for some runs of a workspace."""
    paths = {run.name: run.path for run in bench.runs()} | {run.name: run.path for run in runs}
    return WorkspaceInputs(
        qrels=None if qrels is None else qrels.name,
        runs=[run.name for run in runs],
        paths=paths,
        loaded=qrels,
        folder=bench.collection,
        **more,
    )
