"""Archives from outside, unpacked into a new folder: .zip, .tar, and .tar packed as .gz, .bz2, .xz or .zst.

An archive may be hostile. Only plain files and folders are taken, under relative names that stay inside the folder.
What is counted against the limits is what comes out of the archive, not what its headers claim. Nothing is left behind
if the archive is refused.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import CranfieldError, DataError, FormatError, TooLargeError
from cranfield.base.parameters import shortened
from cranfield.formats.streams import packing_of, read_errors, reason, unpacker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE = 1 << 20  # bytes
HEADERS = 1 << 20  # bytes of the header of one member
LONGEST_PATH = 240  # bytes of one name in a path
DEEPEST = 20  # folders within each other
PAX_TYPES = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
TAR_MARK = slice(257, 262)  # where a tar archive says `ustar`


class ArchiveLimits(NamedTuple):
    """How much an archive may unpack to."""

    size: int = 4 << 30  # bytes
    files: int = 100_000


LIMITS = ArchiveLimits()


def is_archive(path: str) -> bool:
    """Whether the first bytes of a file are those of an archive; a single compressed file does not count as one."""
    with read_errors(path), open(path, "rb") as file:
        head = file.read(10)
        packing = packing_of(head)
        if packing == "zip":
            return True
        file.seek(0)
        if packing is None:
            return file.read(512)[TAR_MARK] == b"ustar"
        try:
            with unpacker(packing).open(file, "rb") as content:
                return bytes(content.read(512))[TAR_MARK] == b"ustar"
        except Exception:  # each codec has its own error; the reader of the file reports the damage
            return False


def unpack(
    path: str,
    folder: str,
    limits: ArchiveLimits = LIMITS,
    progress: Callable[[int, int | None], None] | None = None,
    name: str = "",
) -> list[str]:
    """Unpack an archive into a folder that must not exist, and return the relative paths of its files.

    `name` is what messages call the archive. A refused archive leaves no folder.
    """
    target = _Target(folder, name or path, limits)
    os.mkdir(folder, 0o700)
    try:
        with read_errors(name or path), _damage(name or path), open(path, "rb") as file:
            _unpack_into(target, file, os.path.getsize(path), progress)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return target.files


def _unpack_into(
    target: _Target, file: IO[bytes], total: int, progress: Callable[[int, int | None], None] | None
) -> None:
    head = file.read(10)
    file.seek(0)
    packing = packing_of(head)
    for name, content in _zipped(file, target) if packing == "zip" else _tarred(file, packing, target):
        target.write(name, content)
        if progress is not None:
            progress(min(file.tell(), total), total)
    if not target.files:
        raise FormatError(f"{target.name}: expected an archive with files, found none in it")


class _Target:
    """The folder that an archive is unpacked into, with what has come out of the archive so far."""

    def __init__(self, folder: str, name: str, limits: ArchiveLimits) -> None:
        self.folder, self.name, self.limits = folder, name, limits
        self.files: list[str] = []
        self.size = 0
        self._names: set[str] = set()

    def count(self, bytes_read: int) -> None:
        """Count bytes that came out of the archive; TooLargeError beyond the limit."""
        self.size += bytes_read
        if self.size > self.limits.size:
            raise TooLargeError(
                f"{self.name}: unpacks to more than {self.limits.size / 1e6:,.4g} MB; nothing was taken"
            )

    def path_of(self, name: str) -> str:
        """The relative path of a member; DataError if it leaves the folder, or cannot be a file name everywhere."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        outside = name.startswith("/") or ".." in parts or "\\" in name or (len(name) > 1 and name[1] == ":")
        if outside or not parts or "\0" in name:
            raise DataError(f"{self.name}: {shortened(name)!r} would be written outside its folder; nothing was taken")
        if len(parts) > DEEPEST or any(len(os.fsencode(part)) > LONGEST_PATH for part in parts):
            raise DataError(f"{self.name}: the name {shortened(name)!r} is too long; nothing was taken")
        return os.path.join(*parts)

    def write(self, name: str, content: IO[bytes]) -> None:
        """Write one file."""
        relative = self.path_of(name)
        if len(self.files) >= self.limits.files:
            raise TooLargeError(f"{self.name}: holds more than {self.limits.files:,} files; nothing was taken")
        if relative.casefold() in self._names:
            raise DataError(f"{self.name}: {shortened(name)!r} is in the archive twice; nothing was taken")
        self._names.add(relative.casefold())
        path = os.path.join(self.folder, relative)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            file = open(path, "xb")  # noqa: SIM115
        except (FileExistsError, NotADirectoryError):
            raise DataError(f"{self.name}: {shortened(name)!r} is a file and a folder; nothing was taken") from None
        with file:
            while piece := content.read(PIECE):
                self.count(len(piece))
                file.write(piece)
        self.files.append(relative)


def _zipped(file: IO[bytes], target: _Target) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                target.path_of(member.filename)
                continue
            if kind not in (0, stat.S_IFREG):
                raise _not_plain(target, member.filename)
            if member.flag_bits & 1:
                raise DataError(f"{target.name}: {shortened(member.filename)!r} is encrypted; nothing was taken")
            with archive.open(member) as content:
                yield member.filename, content


class _PlainMember(tarfile.TarInfo):
    """A member of a tar archive whose headers are short: a long one would be read into memory as a whole."""

    def _proc_member(self, archive: Any) -> Any:
        is_header = self.type in (*PAX_TYPES, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if self.type == tarfile.GNUTYPE_SPARSE or (is_header and self.size > HEADERS):
            raise DataError(f"{archive.name}: a header of {self.size:,} bytes; nothing was taken")
        return super()._proc_member(archive)  # type: ignore[misc]


class _MeasuredStream:
    """A stream whose bytes are counted: a header that repeats for ever ends at the limit as well."""

    def __init__(self, stream: Any, target: _Target) -> None:
        self.stream, self.left, self.target = stream, target.limits.size + (64 << 20), target

    def read(self, size: int) -> bytes:
        try:
            piece: bytes = self.stream.read(size)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # each codec has its own
            raise EOFError(error) from None
        self.left -= len(piece)
        if self.left < 0:
            self.target.count(self.target.limits.size + 1)
        return piece


def _tarred(file: IO[bytes], packing: str | None, target: _Target) -> Iterator[tuple[str, IO[bytes]]]:
    if packing is None and (file.read(512)[TAR_MARK] != b"ustar" or file.seek(0)):
        expected = "expected an archive (.zip, .tar, .tar.gz, .tar.bz2, .tar.xz, .tar.zst)"
        raise FormatError(f"{target.name}: {expected}, found another file")
    stream = file if packing is None else unpacker(packing).open(file, "rb")
    measured = _MeasuredStream(stream, target)
    with tarfile.open(fileobj=measured, mode="r|", tarinfo=_PlainMember) as archive:  # type: ignore[call-overload]
        archive.name = target.name
        for member in archive:
            archive.members = []  # a list of all members would grow with an archive of empty ones
            if member.isdir():
                target.path_of(member.name)
                continue
            if not member.isreg():
                raise _not_plain(target, member.name)
            yield member.name, archive.extractfile(member)
    while measured.read(PIECE):  # the checksum comes at the end of the stream
        pass


def _not_plain(target: _Target, name: str) -> DataError:
    return DataError(f"{target.name}: {shortened(name)!r} is a link or a device, no file; nothing was taken")


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """Turn the errors of all packing libraries into one sentence."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, CranfieldError):
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{name}: {reason(error)}") from None
        raise FormatError(f"{name}: the archive is damaged: {error}") from None
