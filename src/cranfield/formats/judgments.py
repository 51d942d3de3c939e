"""Labels as they come back from assessors: JSON lines of topic, document, grade, assessor and time, or plain qrels.

The file is a log: lines are only ever added, and a later label of the same document replaces an earlier one. Each
label is on disk before it is acknowledged; a line torn by a crash was not, and is cut off before the next is added.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cranfield.errors import BadLineError, DataError
from cranfield.formats.reading import read_qrels
from cranfield.formats.streams import open_buffer, reason

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Judgment:
    """One label: who said when how relevant a document is to a topic."""

    topic: str
    document: str
    grade: float
    assessor: str = ""
    time: str = ""

    def line(self) -> str:
        """The label as one line of JSON; what is empty is left out, whole grades are whole numbers."""
        filled = {name: value for name, value in asdict(self).items() if value != ""}
        filled["grade"] = int(self.grade) if self.grade == int(self.grade) else self.grade
        return json.dumps(filled, ensure_ascii=False)


def read_judgments(path: str | os.PathLike[str]) -> list[Judgment]:
    """Every label in a file, in the order given. Qrels of any format are read too; they name no assessor."""
    where = os.fspath(path)
    raw = bytes(open_buffer(where)).removeprefix(b"\xef\xbb\xbf")
    if not raw.strip() or _torn_alone(raw):
        return []
    if not _is_log(raw):
        return [
            Judgment(topic, document, grade)
            for topic, documents in read_qrels(where).to_dict().items()
            for document, grade in documents.items()
        ]
    lines = raw.split(b"\n")
    torn = bool(lines[-1].strip()) and _row(lines[-1]) is None
    answer = []
    for number, line in enumerate(lines[: len(lines) - torn], 1):
        if line.strip():
            answer.append(_judgment(line, where, number))
    return answer


def _is_log(raw: bytes) -> bool:
    """Whether a file holds labels, by its first line, and not qrels."""
    return raw.lstrip()[:1] == b"{" and b'"document"' in raw.lstrip().split(b"\n", 1)[0]


def _torn_alone(raw: bytes) -> bool:
    """Whether a file holds the beginning of a first label and nothing else."""
    return raw.startswith(b'{"topic"'[: len(raw)]) and b"\n" not in raw and _row(raw) is None


def _row(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _judgment(line: bytes, where: str, number: int) -> Judgment:
    row = _row(line)
    wanted = "expected a JSON object with topic, document and grade"
    if not isinstance(row, dict):
        raise BadLineError(where, number, f"{wanted}, found {line[:60]!r}")
    for name in ("topic", "document"):
        if not isinstance(row.get(name), (str, int)) or isinstance(row.get(name), bool) or row[name] == "":
            raise BadLineError(where, number, f"{wanted}, found {name} {row.get(name)!r}")
    grade = row.get("grade")
    if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not abs(grade) <= sys.float_info.max:
        raise BadLineError(where, number, f"expected a finite number as grade, found {grade!r:.60}")
    return Judgment(
        str(row["topic"]), str(row["document"]), float(grade), str(row.get("assessor", "")), str(row.get("time", ""))
    )


def latest(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """The labels that stand: `{topic: {document: grade}}`, the last of several.

    >>> latest([Judgment("q", "d", 0), Judgment("q", "d", 2)])
    {'q': {'d': 2}}
    """
    answer: dict[str, dict[str, float]] = {}
    for each in judgments:
        answer.setdefault(each.topic, {})[each.document] = each.grade
    return answer


def append_judgments(path: str | os.PathLike[str], judgments: Iterable[Judgment]) -> None:
    """Add labels to the end of a file; they are on disk when this returns."""
    where = os.fspath(path)
    text = "".join(each.line() + "\n" for each in judgments)
    try:
        with open(where, "a+b") as file:
            _mend(file, where)
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(f"{where}: cannot be written: {reason(error)}") from error


def _mend(file: Any, where: str) -> None:
    """Cut off a last line that a crash tore, or end one that lacks only its newline."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(0)
    head = file.read(65536).removeprefix(b"\xef\xbb\xbf")
    if head.strip() and not _is_log(head) and not _torn_alone(head):
        wanted = "JSON lines of topic, document, grade"
        raise DataError(f"{where}: labels are added to {wanted}, and this is something else; name another file")
    file.seek(max(0, size - 65536))
    tail = file.read()
    last = tail.rpartition(b"\n")[2]
    if last == b"":
        return
    if _row(last) is None:
        file.truncate(size - len(last))
    else:
        file.write(b"\n")
    file.seek(0, os.SEEK_END)
