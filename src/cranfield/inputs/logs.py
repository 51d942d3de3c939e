"""A log or a workspace in place of qrels or labels: LOG or FOLDER, with @NAME for a frozen version.

Only `named` decides whether a word names a log or a file: NAME follows the last `@` after the last `/`, and an existing
file of the whole name wins. `formats.log_kind` decides which files are logs. The log of a workspace is its work.db; named
by its own path or by the folder, it stands for the one set of judgments, with the collection's own judgments. Reading
never writes: judgments that were not imported yet are added in memory. A note about a log (labels that contradict each
other) is printed once, before the labels are used.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.notifications import say
from cranfield.base.parameters import shortened
from cranfield.formats.log_kind import SERVERS, WORK_DB, log_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.base.qrels import Qrels
    from cranfield.formats.label_files import Judgment
    from cranfield.judging.log import Log


class Named(NamedTuple):
    """A log, the name of a version (None: the current judgments), and the workspace that the log belongs to."""

    log: str
    version: str | None = None
    workspace: str | None = None


def named(word: str | None) -> Named | None:
    """The log that an argument names, itself or by its workspace; None for a file or a collection.

    >>> named("postgresql://ann@db/work@spring"), named("qrels.txt")
    (Named(log='postgresql://ann@db/work', version='spring', workspace=None), None)
    """
    if word is None or word == "-":
        return None
    served = word.startswith(SERVERS)
    if not served and ("@" not in word or os.path.exists(word)):
        return _log_at(word)
    start = word.find("/", word.index("//") + 2) if served else 0  # after user@host
    log, at, version = word.rpartition("@")
    if start < 0 or not at or not version or len(log) < max(start, word.rfind("/")):
        return Named(word) if served else None
    if served:
        return Named(log, version)
    place = _log_at(log) if os.path.isdir(log) else Named(log, None, workspace_of(log)) if os.path.isfile(log) else None
    return None if place is None else place._replace(version=version)


def _log_at(path: str) -> Named | None:
    """The log at a path, or in the workspace at a path."""
    if os.path.isdir(path):
        log = os.path.join(path, WORK_DB)
        return Named(log, None, path) if os.path.isfile(log) else None
    return Named(path, None, workspace_of(path)) if log_kind(path) is not None else None


def workspace_of(log: str) -> str | None:
    """The workspace whose log this is: its folder was served, or holds documents; None for any other log."""
    folder, name = os.path.split(os.path.abspath(log))
    if name != WORK_DB:
        return None
    from cranfield.formats.collection_folder import may_hold_log

    return folder if may_hold_log(folder) else None


def workspace_at(location: str) -> str | None:
    """The workspace that a log, or a word for one, belongs to; also of a workspace that has no log yet."""
    word = named(location)
    return word.workspace if word is not None else location if os.path.isdir(location) else workspace_of(location)


def exists(location: str) -> bool:
    """Whether a log's location exists; always true for a server, which is not asked before it is opened.

    An unreadable location (no permission, a name that is too long) does not count as missing: labels would be lost.
    """
    if location.startswith(SERVERS):
        return True
    try:
        os.stat(location)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        from cranfield.formats.streams import reason

        raise DataError(f"{shortened(location)}: cannot be read: {reason(error)}") from error
    return True


def judgments_of(word: str) -> str | Qrels:
    """The qrels that an argument names: those of a log or workspace, or the file name unchanged."""
    log = named(word)
    if log is None:
        return _file_in(word)
    from cranfield.judging.log_queries import qrels

    opened = qrels(log.log, log.version, own_judgments(log.workspace))
    if log.workspace is not None:
        _describe(opened, log.workspace)
    say(opened.remarks)
    return opened


def file_or_qrels(word: str) -> str | Qrels:
    """As `judgments_of`, for readers of files: the folder of a collection is its file of judgments."""
    opened = judgments_of(word)
    if not isinstance(opened, str) or not os.path.isdir(opened):
        return opened
    from cranfield.formats.collection_folder import QRELS, collection_home

    path = collection_home(opened)[1].get(QRELS)
    if path is None:
        raise DataError(f"{opened}: expected judgments, found a folder without {QRELS} and without labels")
    return path


def _file_in(word: str) -> str:
    """The file of judgments of a folder that has no log and no documents; any other word unchanged."""
    if not os.path.isdir(word):
        return word
    from cranfield.formats.collection_folder import DOCUMENTS, QRELS, collection_home

    home, files = collection_home(word)
    return files.get(QRELS, word) if home is not None and DOCUMENTS not in files else word


def own_judgments(workspace: str | None) -> Qrels | None:
    """The judgments of a workspace's collection as its file says them now, none if the file is gone.

    None if there is no collection: then those count that its log holds.
    """
    if workspace is None:
        return None
    from cranfield.base.qrels import Qrels
    from cranfield.formats.collection_folder import QRELS, collection_home
    from cranfield.formats.runs_and_qrels import read_qrels

    home, files = collection_home(workspace)
    path = files.get(QRELS)
    if path is not None and os.path.getsize(path):
        return read_qrels(path)
    return None if home is None else Qrels({}, workspace)


def _describe(qrels: Qrels, workspace: str) -> None:
    """Add facts of a workspace's collection to qrels: lowest relevant grade, corpus size, whether grades have meanings."""
    from cranfield.formats.collection_folder import DOCUMENTS, collection_home, read_collection

    qrels.workspace = workspace
    home, files = collection_home(workspace)
    if home is not None and DOCUMENTS in files:
        collection = read_collection(home)
        qrels.relevant_from = None if collection.relevant_from == 1 else collection.relevant_from
        qrels.corpus, qrels.explained = collection.document_ids, collection.explains_grades


def import_collection(location: str, log: Log) -> None:
    """Import the collection's judgments into a workspace's log if they changed, before a record that includes them."""
    from cranfield.formats.collection_folder import QRELS, collection_home, hash_of
    from cranfield.judging.collection_judgments import JudgmentFile, import_judgments

    workspace = workspace_at(location)
    home, files = (None, {}) if workspace is None else collection_home(workspace)
    if home is None:  # a folder without a collection says nothing about its log
        return
    path = files.get(QRELS)
    digest = "" if path is None or not os.path.getsize(path) else hash_of(path).removeprefix("sha256:")
    file = JudgmentFile(os.path.basename(path or QRELS), digest, lambda: own_judgments(workspace))
    import_judgments(log, file)


def expanded(words: Iterable[str]) -> list[str | Qrels]:
    """Files and patterns of files by name, with the qrels of logs opened."""
    from cranfield.formats import expand

    answer: list[str | Qrels] = []
    for word in words:
        answer += [file_or_qrels(word)] if named(word) is not None or os.path.isdir(word) else expand([word])
    return answer


def labels_in(word: str) -> list[Judgment]:
    """The labels in a log or in any file of labels; the latest label of each document comes last.

    The collection's own judgments of documents that no person has labelled come before the labels of people.
    """
    from cranfield.formats.label_files import Judgment, read_judgments

    log = named(word)
    if log is None:
        labels = read_judgments(str(file_or_qrels(word)))
        say(contradictions((each.topic, each.document, each.assessor, each.grade) for each in labels))
        return labels
    if log.version is not None:
        qrels: Any = judgments_of(word)
        rows = (
            (topic, document, grade) for topic, grades in qrels.to_dict().items() for document, grade in grades.items()
        )
        return [Judgment(*row) for row in rows]
    from cranfield.judging import open_log, policies
    from cranfield.judging.collection_judgments import with_judgments
    from cranfield.judging.log_queries import decide_log

    own = own_judgments(log.workspace)
    with closing(open_log(log.log, new=False)) as opened:
        say(decide_log(opened).notes())
        current = opened.current_grades()
    every = current if own is None else with_judgments(current, own)
    return policies.judgments_of(every, policies.ONE_SET)


def contradictions(labels: Iterable[tuple[str, str, str, float]]) -> list[str]:
    """A note on labels (topic, document, assessor, grade) that disagree although only the latest counts."""
    grades_of: dict[tuple[str, str], dict[str, float]] = {}
    for topic, document, assessor, grade in labels:
        grades_of.setdefault((topic, document), {})[assessor] = grade
    count = sum(len(set(grades.values())) > 1 for grades in grades_of.values())
    if not count:
        return []
    from cranfield.judging.policies import contradicting

    return [contradicting(count, "latest")]
