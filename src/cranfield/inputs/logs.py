"""A log in place of qrels or labels: LOG, or LOG@NAME for a frozen version.

Only this module decides whether a name is that of a log or a file: NAME follows the last `@` after the last `/`, and an
existing file of the whole name wins. `formats.log_kind` decides which files are logs. A note about a log (labels that
contradict each other) is printed once, before the labels are used.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.notifications import say
from cranfield.base.parameters import shortened
from cranfield.formats.log_kind import log_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.base.collection import Qrels
    from cranfield.formats.label_files import Judgment

SERVERS = ("postgresql://", "postgres://")


class Named(NamedTuple):
    """A log and the name of a version; None means the current labels."""

    log: str
    version: str | None = None


def named(word: str | None) -> Named | None:
    """The log that an argument names; None for a file or a collection.

    >>> named("postgresql://ann@db/work@spring"), named("qrels.txt")
    (Named(log='postgresql://ann@db/work', version='spring'), None)
    """
    if word is None or word == "-":
        return None
    served = word.startswith(SERVERS)
    if not served and ("@" not in word or os.path.exists(word)):
        return Named(word) if log_kind(word) is not None else None
    start = word.find("/", word.index("//") + 2) if served else 0  # after user@host
    log, at, version = word.rpartition("@")
    if start < 0 or not at or not version or len(log) < max(start, word.rfind("/")):
        return Named(word) if served else None
    return Named(log, version) if served or os.path.isfile(log) else None


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
    """The qrels that an argument names: the qrels of a log, or the file name unchanged."""
    log = named(word)
    if log is None:
        return word
    from cranfield.judging.log_queries import qrels

    opened = qrels(*log)
    say(opened.remarks)
    return opened


def expanded(words: Iterable[str]) -> list[str | Qrels]:
    """Files and patterns of files by name, with the qrels of logs opened."""
    from cranfield.formats import expand

    answer: list[str | Qrels] = []
    for word in words:
        answer += expand([word]) if named(word) is None else [judgments_of(word)]
    return answer


def labels_in(word: str) -> list[Judgment]:
    """The labels in a log or in any file of labels; the latest label of each document comes last."""
    from cranfield.formats.label_files import Judgment, read_judgments

    log = named(word)
    if log is None:
        labels = read_judgments(word)
        say(contradictions((each.topic, each.document, each.assessor, each.grade) for each in labels))
        return labels
    if log.version is not None:
        qrels: Any = judgments_of(word)
        rows = (
            (topic, document, grade) for topic, grades in qrels.to_dict().items() for document, grade in grades.items()
        )
        return [Judgment(*row) for row in rows]
    from cranfield.judging import open_log
    from cranfield.judging.log_queries import decide_log

    with closing(open_log(log.log, new=False)) as opened:
        say(decide_log(opened).notes())
        return opened.labels()


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
