"""Where qrels or labels are read, a log may stand: LOG, or LOG@NAME for a version that was frozen.

The one place that tells such a name from a file's: NAME follows the last `@` after the last `/`, and an existing file of
that name wins. A file that is no log costs a look at its name. What is said of a log (labels that contradict each
other) goes to whoever listens, once, before anything is made of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import DataError
from cranfield.hearing import say
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.collection import Qrels
    from cranfield.formats.judgments import Judgment

SERVERS = ("postgresql://", "postgres://")
FILES = (".db", ".sqlite", ".sqlite3")
TAIL = 1 << 16  # bytes that hold a file's first or last line


class Named(NamedTuple):
    """A log, and the version of it that is meant; None: what stands now."""

    log: str
    version: str | None = None


def named(word: str | None) -> Named | None:
    """The log that a word on the command line means; None for a file or a collection.

    >>> named("postgresql://ann@db/work@spring"), named("qrels.txt")
    (Named(log='postgresql://ann@db/work', version='spring'), None)
    """
    if word is None or word == "-":
        return None
    served = word.startswith(SERVERS)
    if not served and ("@" not in word or os.path.exists(word)):
        return Named(word) if _is_log(word) else None
    start = word.find("/", word.index("//") + 2) if served else 0  # behind user@host
    log, at, version = word.rpartition("@")
    if start < 0 or not at or not version or len(log) < max(start, word.rfind("/")):
        return Named(word) if served else None
    return Named(log, version) if served or os.path.isfile(log) else None


def _is_log(path: str) -> bool:
    """Whether a file is a database, or JSON lines with events in it; labels of five fields are read as they always were."""
    if path.lower().endswith(FILES):
        return True
    return path.endswith(".jsonl") and any(map(_is_event, _ends(path)))


def _ends(path: str) -> list[bytes]:
    """The first line of a file, and the last whole one."""
    try:
        with open(path, "rb") as file:
            first = file.read(TAIL)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            last = file.read().rstrip(b"\n")
    except OSError:
        return []
    return [first.partition(b"\n")[0], last.rpartition(b"\n")[2]]


def _is_event(line: bytes) -> bool:
    import json

    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and ("record" in row or {"id", "time"} <= row.keys())


def exists(location: str) -> bool:
    """Whether there is something at a log's location; a server is asked when it is opened.

    What cannot be looked at (no permission, a name that is too long) is not taken for missing: labels would be left out.
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
    """The qrels that a word means: those of a log, opened, or the name of the file as it is."""
    log = named(word)
    if log is None:
        return word
    from cranfield.judge.reading import qrels

    opened = qrels(*log)
    say(opened.remarks)
    return opened


def expanded(words: Iterable[str]) -> list[str | Qrels]:
    """Files and patterns of files by name, the qrels of logs among them opened."""
    from cranfield.formats import expand

    answer: list[str | Qrels] = []
    for word in words:
        answer += expand([word]) if named(word) is None else [judgments_of(word)]
    return answer


def labels_in(word: str) -> list[Judgment]:
    """The labels in a log, or in whatever file holds some, the last word of each document last."""
    log = named(word)
    if log is None:
        from cranfield.formats.judgments import read_judgments

        labels = read_judgments(word)
        say(contradictions((each.topic, each.document, each.assessor, each.grade) for each in labels))
        return labels
    if log.version is not None:
        return _as_labels(judgments_of(word))
    from cranfield.judge import open_log
    from cranfield.judge.policy import decide

    opened = open_log(log.log, new=False)
    try:
        say(decide(opened.standing()).notes())
        return opened.labels()
    finally:
        opened.close()


def _as_labels(qrels: Any) -> list[Judgment]:
    from cranfield.formats.judgments import Judgment

    return [
        Judgment(topic, document, grade)
        for topic, grades in qrels.to_dict().items()
        for document, grade in grades.items()
    ]


def contradictions(labels: Iterable[tuple[str, str, str, float]]) -> list[str]:
    """What is to be said of labels (topic, document, who, grade) whose people disagree, where the latest counts."""
    said: dict[tuple[str, str], dict[str, float]] = {}
    for topic, document, assessor, grade in labels:
        said.setdefault((topic, document), {})[assessor] = grade
    count = sum(len(set(grades.values())) > 1 for grades in said.values())
    if not count:
        return []
    from cranfield.judge.policy import contradicting

    return [contradicting(count, "latest")]
