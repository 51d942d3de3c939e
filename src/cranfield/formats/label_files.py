"""Files of labels from assessors: JSON lines of topic, document, grade, assessor and time; sheets; or plain qrels.

The file is a log: lines are only appended, and a later label of a document replaces an earlier one. Each
label is on disk before it is acknowledged. A line torn by a crash was not acknowledged and is cut off before the next.
Several processes may append to the same file; each locks it while it reads the end and writes.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import BadLineError, DataError
from cranfield.formats.csv_tables import DETECTED, HEAD, open_table
from cranfield.formats.pool_files import begins_sheet, graded
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.formats.streams import write_errors

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator


PIECE = 1 << 16
FAR = 1 << 40  # bytes: beyond the end of any file of labels


@dataclass(frozen=True, slots=True)
class Judgment:
    """One label: the grade that an assessor gave a document for a topic, and when."""

    topic: str
    document: str
    grade: float
    assessor: str = ""
    time: str = ""

    def line(self) -> str:
        """The label as one line of JSON without empty fields; whole grades are written as integers."""
        filled = {name: value for name, value in asdict(self).items() if value != ""}
        filled["grade"] = int(self.grade) if self.grade == int(self.grade) else self.grade
        return json.dumps(filled, ensure_ascii=False)


def read_judgments(path: str | os.PathLike[str]) -> list[Judgment]:
    """Every label in a file, in file order. Qrels of any format are read too; they have no assessors."""
    where = os.fspath(path)
    file = open_table(where)
    raw = bytes(file.buffer)
    if not raw.strip() or torn_alone(raw):
        return []
    if begins_sheet(raw[:HEAD]):
        return [
            Judgment(mark.topic, mark.document, mark.grade, mark.assessor)
            for mark in graded(raw, where, DETECTED.of(file))
            if mark.grade is not None
        ]
    if not _is_log(raw):
        return [
            Judgment(topic, document, grade)
            for topic, documents in read_qrels(file).to_dict().items()
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
    """Whether the first line of a file is a label in JSON; qrels are not."""
    head = raw.lstrip().split(b"\n", 1)[0]
    return head[:1] == b"{" and (b'"document"' in head or b'"kind"' in head)


def torn_alone(raw: bytes) -> bool:
    """Whether a file contains nothing but the beginning of its first label."""
    begun = any(raw.startswith(start[: len(raw)]) for start in (b'{"topic"', b'{"kind"', b'{"record"'))
    return begun and b"\n" not in raw and _row(raw) is None


def _row(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def _judgment(line: bytes, where: str, number: int) -> Judgment:
    row = _row(line)
    expected = "expected a JSON object with topic, document and grade"
    if not isinstance(row, dict):
        raise BadLineError(where, number, f"{expected}, found {line[:60]!r}")
    for name in ("topic", "document"):
        if not isinstance(row.get(name), (str, int)) or isinstance(row.get(name), bool) or row[name] == "":
            raise BadLineError(where, number, f"{expected}, found {name} {row.get(name)!r}")
    grade = row.get("grade")
    if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not abs(grade) <= sys.float_info.max:
        raise BadLineError(where, number, f"expected a finite number as grade, found {grade!r:.60}")
    return Judgment(
        str(row["topic"]), str(row["document"]), float(grade), str(row.get("assessor", "")), str(row.get("time", ""))
    )


def latest(judgments: Iterable[Judgment]) -> dict[str, dict[str, float]]:
    """The current labels as `{topic: {document: grade}}`: the last one of each document.

    >>> latest([Judgment("q", "d", 0), Judgment("q", "d", 2)])
    {'q': {'d': 2}}
    """
    answer: dict[str, dict[str, float]] = {}
    for each in judgments:
        answer.setdefault(each.topic, {})[each.document] = each.grade
    return answer


def append_judgments(path: str | os.PathLike[str], judgments: Iterable[Judgment]) -> None:
    """Append labels to a file, all or none; they are on disk when this returns. Other processes may do the same."""
    with locked_log(path) as file:
        file.add(each.line() for each in judgments)


class LockedLog:
    """A locked log: no other process can append to it."""

    def __init__(self, file: io.FileIO, size: int, unended: bool, torn: bool) -> None:
        self._file = file
        self._unended = unended
        self._torn = torn  # after the complete lines; cut off only when something is appended
        self.size = size  # of the complete lines
        self.status = os.fstat(file.fileno())

    def since(self, start: int) -> bytes:
        """The complete lines from a position on."""
        self._file.seek(start)
        return self._file.read(self.size - start)

    def add(self, lines: Iterable[str]) -> None:
        """Append lines, all or none; they are on disk when this returns."""
        data = "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")
        try:
            if self._torn:
                self._file.truncate(self.size)
            _write(self._file, b"\n" + data if self._unended else data)
        except OSError:
            with suppress(OSError):
                self._file.truncate(self.size)
            raise
        self.size += len(data) + self._unended
        self._unended = self._torn = False


@contextmanager
def locked_log(path: str | os.PathLike[str]) -> Iterator[LockedLog]:
    """Lock a log to append to it; a last line torn by a crash is overwritten."""
    where = os.fspath(path)
    with write_errors(where):
        while True:
            with open(where, "a+b", buffering=0) as file:
                _lock(file)
                if _is_replaced(file, where):  # by somebody who held the lock
                    continue
                yield LockedLog(file, *_end(file, where))
                return


def _is_replaced(file: io.FileIO, where: str) -> bool:
    """Whether another file has taken the place of an open one."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), os.stat(where))
    except FileNotFoundError:
        return True


def _write(file: io.FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())


def _lock(file: io.FileIO) -> None:
    """Wait until no other process appends; closing the file unlocks it. File systems without locks are used unlocked."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(FAR)  # Windows locks bytes
        while True:
            with suppress(OSError):  # LK_LOCK gives up after ten seconds
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise


def _end(file: io.FileIO, where: str) -> tuple[int, bool, bool]:
    """The size without a torn last line, whether the last line lacks its newline, and whether a line is torn."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        return 0, False, False
    head = _first_line(file).removeprefix(b"\xef\xbb\xbf")
    if head.strip() and not _is_log(head) and not torn_alone(head):
        expected = "JSON lines of topic, document, grade"
        raise DataError(f"{where}: labels are added to {expected}, and this is something else; name another file")
    last = _last_line(file, size)
    if not last:
        return size, False, False
    if not _is_torn(last):
        return size, True, False
    return size - len(last), False, True


def _first_line(file: io.FileIO) -> bytes:
    """The first line that is not blank, however long."""
    file.seek(0)
    head = b""
    while piece := file.read(PIECE):
        head += piece
        if b"\n" in head.lstrip():
            break
    return head.lstrip(b" \t\r\n").partition(b"\n")[0] + b"\n" * (b"\n" in head.lstrip())


def _last_line(file: io.FileIO, size: int) -> bytes:
    """The text after the last newline, however long."""
    length = 0
    while length < size:
        length = min(size, 2 * length or PIECE)
        file.seek(size - length)
        tail = file.readall()
        if b"\n" in tail:
            return tail.rpartition(b"\n")[2]
    return tail


def _is_torn(line: bytes) -> bool:
    """Whether a line is incomplete JSON."""
    try:
        json.loads(line.decode("utf-8", "surrogateescape"))
    except RecursionError:
        return False
    except ValueError:
        return True
    return False
