"""The cache of frozen qrels: one file per version in the state folder of a workspace, named by the hash of the qrels.

The first line holds the counts for the notes and the page of the version, behind their own hash. The lines below are those
that the hash of the version is computed from, so the name of the file says what they must be: a file that was changed is
removed, and the qrels are computed from the log again.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError
from cranfield.formats.streams import write_bytes
from cranfield.judging.policies import DecidedGrades, Grades, PolicySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 30  # files in the folder; the least recently written go first
HASH = re.compile("sha256:([0-9a-f]{64})")
APART = ("settings", "grades", "verdict", "strengths")  # fields of `DecidedGrades` that the first line does not hold


def hash_of(grades: Grades) -> str:
    """The hash of qrels: over their lines, ordered by topic and document.

    >>> hash_of({"q2": {"d1": 1.0}, "q1": {"d2": 0.0, "d1": 2.0}}) == hash_of({"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d1": 1.0}})
    True
    """
    digest = sha256()
    for lines in _lines(grades):
        digest.update(lines)
    return f"sha256:{digest.hexdigest()}"


def _lines(grades: Grades) -> Iterator[bytes]:
    """The lines of the qrels as `json.dumps` writes them, a topic at a time; no newline at the end."""
    newline = ""
    for topic, of_topic in sorted(grades.items()):
        start = f"[{quoted(topic)}, "
        lines = [f"{start}{quoted(document)}, {float(grade)!r}]" for document, grade in sorted(of_topic.items())]
        if lines:
            yield (newline + "\n".join(lines)).encode()
            newline = "\n"


@dataclass(frozen=True)
class VersionSummary:
    """The counts of a version's page: topics, and judgments by grade; and the notes on how the grades came about."""

    topics: int
    grades: dict[str, int]
    notes: list[str]


def summary_of(decided: DecidedGrades) -> VersionSummary:
    """The summary of the grades that a policy decided."""
    counts = Counter(grade for grades in decided.grades.values() for grade in grades.values())
    return VersionSummary(
        len(decided.grades), {f"{grade:g}": n for grade, n in sorted(counts.items())}, decided.notes()
    )


class VersionCache:
    """A folder of frozen qrels."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def write(self, hash: str, decided: DecidedGrades) -> None:
        """Store the qrels of a version; without space on the disk the version has no cache, and no error is raised."""
        if decided.strengths:  # the notes need them
            return
        facts = {each.name: getattr(decided, each.name) for each in fields(decided) if each.name not in APART}
        head = json.dumps({"facts": facts, "summary": vars(summary_of(decided))}).encode()
        with suppress(CranfieldError, OSError):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            write_bytes(self._path(hash), [_digest(head), b" ", head, b"\n", *_lines(decided.grades)])
            self._sweep()

    def read(self, hash: str, settings: PolicySettings) -> DecidedGrades | None:
        """The qrels of a version, without the verdict of a consensus method; None if they are not here."""
        parts = self._checked(hash)
        if parts is None:
            return None
        facts = parts[0]["facts"]
        facts["undecided"] = [(topic, document) for topic, document in facts["undecided"]]
        grades: Grades = {}
        for topic, document, grade in json.loads(b"[" + parts[1].replace(b"\n", b",") + b"]"):
            grades.setdefault(topic, {})[document] = grade
        return DecidedGrades(settings=settings, grades=grades, **facts)

    def summary(self, hash: str) -> VersionSummary | None:
        """The summary of a version, after its qrels were compared with the hash; None if they are not here."""
        parts = self._checked(hash)
        return None if parts is None else VersionSummary(**parts[0]["summary"])

    def _checked(self, hash: str) -> tuple[dict[str, Any], bytes] | None:
        """The first line and the others of a file; None if it is missing, or does not fit its hashes."""
        path = self._path(hash)
        try:
            with open(path, "rb") as file:
                head, _, lines = file.read().partition(b"\n")
        except OSError:
            return None
        digest, _, about = head.partition(b" ")
        if digest != _digest(about) or _digest(lines).decode() != os.path.basename(path):
            with suppress(OSError):
                os.unlink(path)
            return None
        content: dict[str, Any] = json.loads(about)
        return content, lines

    def _path(self, hash: str) -> str:
        match = HASH.fullmatch(hash)
        return os.path.join(self.folder, match[1] if match else "unknown")

    def _sweep(self) -> None:
        with os.scandir(self.folder) as entries:
            files = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
        for _, path in files[:-MANY]:
            os.unlink(path)


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()
