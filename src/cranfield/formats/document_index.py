"""Random access to the documents of a collection by id: an index on disk, made once, says where each document is.

The index is a folder `documents-PATH-STATE` of memory-mapped files:

    rows      where each document starts, how long it is, where its id starts; in the collection's order
    ids       the ids, concatenated
    hashes    64-bit hashes of the ids in ascending order, then the row of each
    documents.jsonl   a copy of the documents, if the collection's file is compressed and so has no random access
    about.json        what was indexed, and how large each file must be

PATH is a hash of the relative path of the collection's file; STATE a hash of its size, time of change, inode and the
version of this layout. An index of another state has another name: it is never used, and removed once the new index
exists. The content is not hashed, as that would read the whole file at every start. Instead, each document that is read
must have the requested id, and a file that changes while it is open is an error. The collection is never written to.

An index is written under a temporary name, synced and renamed, so a killed process leaves no incomplete index. If two
processes index at once, the first to finish wins. If several documents have the same id, the first counts.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from array import array
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, ENOTEMPTY
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.formats.collection_folder import DOCUMENTS, document_rows, file_in, read_collection
from cranfield.formats.streams import (
    BOM,
    lines,
    packing_of,
    read_errors,
    reason,
    sweep,
    sync_folder,
    synced_file,
    unfinished,
    write_errors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Self, TypeAlias

    from numpy.typing import NDArray

    from cranfield.base.collection import Document
    from cranfield.formats.collection_folder import Progress

    Numbers: TypeAlias = NDArray[np.uint64]

T = TypeVar("T")
VERSION = 1  # of the layout; part of STATE
ROWS, IDS, HASHES, ABOUT = "rows", "ids", "hashes", "about.json"
COLUMNS = 3  # of a row: start, length, start of the id
ATTEMPTS = 5  # to index a file that keeps changing


def open_shelf(collection: str, where: str, progress: Progress = None) -> Shelf:
    """Open the documents of a collection (a folder or a bundled name) by id; an index below `where` is made if needed.

    `progress` is called with done and total: bytes, or documents if the file is compressed (total None if
    collection.toml does not say it).

    >>> import tempfile
    >>> with open_shelf("allotment", tempfile.mkdtemp()) as shelf:
    ...     len(shelf), shelf.has("d002"), shelf.get("d002").title, shelf.get("nothing")
    (332, True, 'Black bottoms on my plum tomatoes', None)
    """
    opened = read_collection(collection)
    path = file_in(str(opened.path), DOCUMENTS)
    documents = opened.meta.get("counts", {}).get("documents")
    for _ in range(ATTEMPTS):
        index, state = open_index(
            path,
            where,
            "documents",
            VERSION,
            lambda folder: _write_index(path, folder, documents, progress),
            _read_index,
        )
        with read_errors(path):
            file = index.copy or _File(path)
        if file is index.copy or file.state() == state:
            return Shelf(path, state, index, file)
    raise _changing(path)


def open_index(
    path: str, where: str, name: str, version: int, write: Callable[[str], None], read: Callable[[str], T]
) -> tuple[T, State]:
    """An index of a file, in a folder `NAME-PATH-STATE` below `where`, and the state of that file.

    `write` makes it in a folder, where `write_about` is called last; `read` opens it.
    """
    family = f"{name}-{_digest(os.path.relpath(os.path.realpath(path), os.path.realpath(where)))}"
    for _ in range(ATTEMPTS):
        state = _state(path)
        target = os.path.join(where, f"{family}-{_digest(version, *state)}")
        index = _index_in(target, read)
        if index is not None:
            return index, state
        with _folder_beside(target, where, family) as folder:
            write(folder)
            if _state(path) == state:  # otherwise the index may mix two versions
                _put(folder, target, where, family)
    raise _changing(path)


def _changing(path: str) -> DataError:
    return DataError(f"{path}: changes while it is read; try again when nobody writes to it")


class Shelf:
    """Documents by id, for any number of threads; no document is kept in memory."""

    def __init__(self, path: str, state: State, index: DocumentIndex, file: _File) -> None:
        self.path = path  # the collection's own file
        self.state = state
        self._held: tuple[DocumentIndex, _File] | None = index, file

    def get(self, id: str) -> Document | None:
        """The document with this id, as in the collection's `documents()`; None if there is none."""
        index, file = self._open()
        row = index.row(_encoded(id))
        if row is None:
            return None
        start, length = index.rows[row, :2].tolist()
        if file is index.copy or file.state() == self.state:
            with suppress(BadLineError):
                for document in document_rows(self.path, [file.read(start, length)]):
                    if document.id == id:
                        return document
        raise DataError(f"{self.path}: changed since its documents were indexed; open it again")

    def has(self, id: str) -> bool:
        """Whether there is a document with this id; its text is not read."""
        return self.row(id) is not None

    def row(self, id: str) -> int | None:
        """The place of the document with this id in the collection's order, from 0; None if there is none."""
        return self._open()[0].row(_encoded(id))

    def __len__(self) -> int:
        """The number of documents, including those that repeat an id."""
        return len(self._open()[0].hashes)

    def ids(self) -> Iterator[str]:
        """The ids in the collection's order, one by one."""
        index, _ = self._open()
        for row in range(len(index.hashes)):
            yield index.id(row).decode("utf-8", "surrogatepass")

    @property
    def changed(self) -> bool:
        """Whether the collection's file has changed since the shelf was opened."""
        try:
            return _state(self.path) != self.state
        except DataError:
            return True

    def close(self) -> None:
        """Close the files; reads in progress finish."""
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> tuple[DocumentIndex, _File]:
        if self._held is None:
            raise DataError(f"{self.path}: its shelf is closed; open it again")
        return self._held


class _File:
    """A file for reads at given positions from several threads; closed when nobody refers to it any more."""

    def __init__(self, path: str) -> None:
        self._descriptor = -1  # so that `__del__` works if opening fails
        self._descriptor = os.open(path, os.O_RDONLY)

    def read(self, start: int, length: int) -> bytes:
        """`length` bytes from `start`, or fewer at the end of the file."""
        parts = []
        while length and (part := os.pread(self._descriptor, length, start)):
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return b"".join(parts)

    def state(self) -> State:
        """The state of the open file now."""
        return State.of(os.fstat(self._descriptor))

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


class DocumentIndex(NamedTuple):
    """The positions of documents; the arrays are memory-mapped files."""

    rows: Numbers  # one more than there are documents, so that the last id has an end
    ids: NDArray[np.uint8]
    hashes: Numbers
    order: Numbers  # the row of each hash
    copy: _File | None  # the unpacked documents, if the collection's are packed

    def row(self, identifier: bytes) -> int | None:
        """The first row with this id."""
        key = np.uint64(_hash(identifier))
        place = int(np.searchsorted(self.hashes, key))
        while place < len(self.hashes) and self.hashes[place] == key:
            row = int(self.order[place])
            if self.id(row) == identifier:
                return row
            place += 1
        return None

    def id(self, row: int) -> bytes:
        """The id of a row."""
        return self.ids[int(self.rows[row, 2]) : int(self.rows[row + 1, 2])].tobytes()


class State(NamedTuple):
    """The state of a file, without reading it: a change of the file changes the state."""

    size: int
    changed: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> State:
        """The state in a result of `os.stat`."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


def _state(path: str) -> State:
    with read_errors(path):
        status = os.stat(path)
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        raise DataError(f"{path}: expected a file, found a pipe; documents are read by their places")
    return State.of(status)


def _digest(*values: object) -> str:
    return blake2b(repr(values).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _encoded(identifier: str) -> bytes:
    return identifier.encode("utf-8", "surrogatepass")  # JSON can contain a lone surrogate


def _hash(identifier: bytes) -> int:
    return int.from_bytes(blake2b(identifier, digest_size=8).digest(), "little")


# finding and making an index


def _index_in(folder: str, read: Callable[[str], T]) -> T | None:
    """The index in a folder; None if there is none or it is incomplete, in which case it is removed."""
    try:
        with open(os.path.join(folder, ABOUT), encoding="utf-8") as file:
            sizes = json.load(file)["sizes"]
        if all(os.path.getsize(os.path.join(folder, name)) == size for name, size in sizes.items()):
            return read(folder)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, AttributeError, TypeError):
        pass
    except OSError as error:
        raise DataError(f"{folder}: {reason(error)}") from error
    shutil.rmtree(folder, ignore_errors=True)  # incomplete after a copy or a disk repair, or removed just now
    return None


def _read_index(folder: str) -> DocumentIndex:
    rows, hashes = (mapped(os.path.join(folder, name), np.uint64) for name in (ROWS, HASHES))
    ids = mapped(os.path.join(folder, IDS), np.uint8)
    packed = os.path.join(folder, DOCUMENTS)
    copy = _File(packed) if os.path.exists(packed) else None
    count = len(hashes) // 2
    return DocumentIndex(rows.reshape(-1, COLUMNS), ids, hashes[:count], hashes[count:], copy)


def mapped(path: str, kind: type[Any]) -> NDArray[Any]:
    """A file of numbers as an array that is read from the disk when it is used."""
    if not os.path.getsize(path):
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, "r"))


@contextmanager
def _folder_beside(target: str, where: str, family: str) -> Iterator[str]:
    """A hidden folder for a new index; removed at the end unless `_put` moved it. Leftovers are removed first."""
    with write_errors(where):
        os.makedirs(where, exist_ok=True)
        sweep(where, rf"\.{family}-[0-9a-f]+\.")
        with unfinished(target) as beside:
            os.mkdir(beside)
            yield beside


def _put(folder: str, target: str, where: str, family: str) -> None:
    """Rename a new index into place unless another process was first, and remove the indexes of former states."""
    sync_folder(folder)
    try:
        os.rename(folder, target)
    except OSError as error:
        if error.errno not in (EEXIST, ENOTEMPTY):
            raise
    sync_folder(where)
    for name in os.listdir(where):
        if name.startswith(f"{family}-") and name != os.path.basename(target):
            shutil.rmtree(os.path.join(where, name), ignore_errors=True)  # a process that has it open can still read it


def _write_index(path: str, folder: str, documents: int | None, progress: Progress) -> None:
    """Read all documents once and write where each of them starts."""
    with ExitStack() as stack:

        def file(name: str) -> BinaryIO:
            return stack.enter_context(synced_file(os.path.join(folder, name)))

        packed, start = _beginning(path)
        size = _state(path).size
        copy = file(DOCUMENTS) if packed else None
        rows, ids, hashes = file(ROWS), file(IDS), array("Q")
        places = _Places(path, start, copy)
        id_start = 0
        for number, document in enumerate(document_rows(path, places), 1):
            identifier = _encoded(document.id)
            rows.write(array("Q", (places.start, places.end - places.start, id_start)).tobytes())
            ids.write(identifier)
            hashes.append(_hash(identifier))
            id_start += len(identifier)
            if progress is not None and not number & 0x3FF:
                progress(*((number, documents) if packed else (places.end, size)))
        rows.write(array("Q", (places.end, 0, id_start)).tobytes())  # where the last id ends
        values, sorted_hashes = np.frombuffer(hashes, np.uint64), file(HASHES)
        order = np.argsort(values, kind="stable")  # among equal hashes the first row comes first
        sorted_hashes.write(values[order].data)
        sorted_hashes.write(order.astype(np.uint64).data)
    write_about(folder, path)
    if progress is not None:
        progress(*((len(hashes), len(hashes)) if packed else (size, size)))


def write_about(folder: str, path: str) -> None:
    """Write the description of the indexed file, with the sizes of the index files; an index without it is incomplete."""
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}
    with synced_file(os.path.join(folder, ABOUT)) as about:
        about.write(json.dumps({"path": os.path.realpath(path), "version": VERSION, "sizes": sizes}).encode())


class _Places:
    """The lines of a file, and the start and end of the last line; the lines are copied if the file is compressed."""

    def __init__(self, path: str, start: int, copy: BinaryIO | None) -> None:
        self.path, self.copy = path, copy
        self.start = self.end = start

    def __iter__(self) -> Iterator[bytes]:
        for line in lines(self.path):
            self.start, self.end = self.end, self.end + len(line)
            if self.copy is not None:
                self.copy.write(line)
            yield line


def _beginning(path: str) -> tuple[bool, int]:
    """Whether a file is compressed, and where its first line starts: after the byte order mark, which a copy lacks."""
    with read_errors(path), open(path, "rb") as file:
        head = file.read(10)
    return packing_of(head) is not None, len(BOM) if head.startswith(BOM) else 0
