"""Bytes in, bytes out: files, standard input and output, compression, byte order marks.

A plain file is memory-mapped and never copied. Compression is recognised by its first bytes on the way in and by the
file's ending on the way out; what a few packed megabytes may unpack to has a limit. A file is written beside its target
under another name and moved over it when it is whole, so that a full disk leaves the old file as it was. What a killed
process left under such a name is removed when the same file is written again.
"""

from __future__ import annotations

import errno
import importlib
import io
import mmap
import os
import re
import stat
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.columns import legible
from cranfield.errors import (
    BadLineError,
    ConventionError,
    CranfieldError,
    DataError,
    FormatError,
    MissingExtraError,
    TooLargeError,
)
from cranfield.hearing import tell_writing, tell_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cranfield.kernels.table import Buffer


COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
NAMELESS = (".run", ".txt", ".res", ".trec")  # endings that say nothing about the system
MAGIC = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
}
MODULES = {
    "gzip": "gzip",
    "zstd": "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd",
    "xz": "lzma",
    "bzip2": "bz2",
}
QUICKER = {"gzip": "isal.igzip"}  # for unpacking, where installed: the same bytes in about half of the time
LIMIT_NAME = "CRANFIELD_MAX_UNPACKED"
LIMIT, LIMIT_RATIO = 512_000_000, 12  # a packed file may hold so many bytes, or so many times its own if that is more
LINES = 8  # one line may have this part of it: 64 MB
SMALL = 16_000_000  # bytes of a file that is read whole and is nobody's data: a plan, a prompt, a key
DEVICE = 64_000_000  # bytes of a device, which may have no end
UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
PIECE = 1 << 24  # bytes unpacked in one go
SLICE = 1 << 20  # packed bytes handed to zlib in one go
BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # what follows BZh and a digit; an id may well start with BZh
A_DAY = 86_400.0  # seconds
BOM = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")


class Opened(NamedTuple):
    """The content of a file, the name to use in messages, and the name that a run read from it gets."""

    buffer: Buffer
    where: str
    name: str
    encoding: str = ""  # the encoding of a table that was recoded to UTF-8 when it was opened


def run_name(path: str | os.PathLike[str]) -> str:
    """A run's name: its file name less folder, compression and `.run`/`.txt`/`.res`/`.trec`.

    >>> run_name("runs/bm25.v2.run.gz")
    'bm25.v2'
    """
    name = os.path.basename(os.fspath(path))
    for endings in (tuple(COMPRESSED), NAMELESS):
        for ending in endings:
            if name.endswith(ending) and name != ending:
                name = name.removesuffix(ending)
                break
    return name


def plain_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file's name, less that of its compression, in lower case.

    >>> plain_ending("dev.JSONL.zst")
    '.jsonl'
    """
    base, ending = os.path.splitext(os.fspath(path))
    return os.path.splitext(base)[1].lower() if ending.lower() in COMPRESSED else ending.lower()


def is_source(value: Any) -> bool:
    """Whether it is a file or its content: a path, `-`, something with `read`, bytes, or a file opened before."""
    return isinstance(value, (str, os.PathLike, bytes, bytearray, memoryview, Opened)) or (
        hasattr(value, "read") and not hasattr(value, "columns") and not hasattr(value, "__arrow_c_stream__")
    )


def opened(
    source: Any, recode: Callable[[bytes, str], tuple[bytes, str]] | None = None, always: bool = False
) -> Opened:
    """The content of a file, unpacked and past its byte order mark; UTF-16 is refused where nobody can recode it.

    `recode` makes UTF-8 of UTF-16 and names the encoding, or gives nothing; `always` asks it for any text.
    """
    buffer, where, name, encoding = _raw(source)
    if encoding:  # recoded before
        return Opened(buffer, where, name, encoding)
    buffer = _unpacked(buffer, where)
    _refuse_long_line(buffer, where)
    head = bytes(buffer[:64])
    if recode is not None and (always or wide_encoding(head)):
        text, encoding = recode(bytes(buffer), where)
        if text:
            return Opened(text, where, name, encoding)
    _refuse_wide(head, where)
    return Opened(memoryview(buffer)[len(BOM) :] if head.startswith(BOM) else buffer, where, name)


def open_buffer(source: Any) -> Buffer:
    """The content of a file, unpacked and otherwise as it is."""
    buffer, where, *_ = _raw(source)
    buffer = _unpacked(buffer, where)
    _refuse_long_line(buffer, where)
    return buffer


def data_lines(buffer: Buffer) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something and are no comment, with their numbers."""
    for number, line in enumerate(bytes(buffer).splitlines(), start=1):
        if line.strip() and not line.startswith(b"#"):
            yield number, line


def lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file one by one, unpacked on the way and past its byte order mark: a file of any size fits."""
    where = os.fspath(path)
    try:
        raw = open(where, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{where}: {reason(error)}") from error
    with raw:
        packing = packing_of(raw.peek(10)[:10])  # a pipe cannot be wound back
        with _unpacking(packing, where):
            file = raw if packing is None else _unpacker(packing).open(raw, "rb")
            short = packing is None and 0 < os.fstat(raw.fileno()).st_size <= most_unpacked() // LINES
            rows = iter(file) if short else _limited_lines(file, where)
            first = next(rows, b"")
            _refuse_wide(first[:64], where)
            if first:
                yield first.removeprefix(BOM)
            yield from rows


def _limited_lines(file: Any, where: str) -> Iterator[bytes]:
    """The lines of a file: there may be any number of them, but one without an end is not kept."""
    limit = most_unpacked() // LINES
    number = 1
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise _long_line(where, number, limit)
        yield line
        number += 1


def _long_line(where: str, number: int, limit: int) -> BadLineError:
    allows = f"if that is right, {LIMIT_NAME} (such as 8G) allows lines of an eighth of it"
    return BadLineError(where, number, f"expected lines of at most {limit / 1e6:,.4g} MB, found a longer one; {allows}")


def _refuse_long_line(buffer: Buffer, where: str) -> None:
    """Stop at a line of text that is longer than any data: it would be copied several times before it is refused."""
    limit, start = most_unpacked() // LINES, 0
    if len(buffer) <= limit or not hasattr(buffer, "rfind") or _needs_no_lines(bytes(buffer[:64])):
        return
    while len(buffer) - start > limit:
        end = buffer.rfind(b"\n", start, start + limit)  # from the back: near the end of each stretch there is one
        if end < 0:
            raise _long_line(where, _lines_before(buffer, start) + 1, limit)
        start = end + 1


def _needs_no_lines(head: bytes) -> bool:
    """Whether a file may well be one long line: JSON, or no text at all."""
    return head.lstrip(b" \t\r\n" + BOM)[:1] in (b"{", b"[") or head.startswith(b"PAR1")


def _lines_before(buffer: Any, end: int) -> int:
    return sum(bytes(buffer[at : min(at + PIECE, end)]).count(b"\n") for at in range(0, end, PIECE))


def read_small(file: Any, where: str) -> bytes:
    """All of a file that is small if it is what it should be; DataError where it is not."""
    content: bytes = file.read(SMALL + 1)
    if len(content) > SMALL:
        raise DataError(f"{where}: expected a file of at most {SMALL / 1e6:g} MB, found a larger one")
    return content


def read_stream(file: Any, where: str, number: int = 1) -> bytes:
    """All that a pipe, a device or a file still holds; `number` is its first line. A device and a line of text must end."""
    limit, content, line = most_unpacked() // LINES, io.BytesIO(), 0
    lineless, device = False, stat.S_ISCHR(os.fstat(file.fileno()).st_mode)
    while piece := file.read(SLICE):
        lineless = lineless or (content.tell() == 0 and (_needs_no_lines(piece[:64]) or packing_of(piece) is not None))
        content.write(piece)
        end = piece.rfind(b"\n")
        line = line + len(piece) if end < 0 else len(piece) - end - 1
        number += piece.count(b"\n")
        if line > limit and not lineless:
            raise _long_line(where, number, limit)
        if device and content.tell() > DEVICE:
            raise DataError(f"{where}: a device that has not ended after {DEVICE / 1e6:g} MB; give a file or a pipe")
    return content.getvalue()


def decoded(raw: bytes, encoding: str, path: str, number: int, advice: str = "") -> str:
    """A line as text; one that is not in the encoding is refused, with advice where the encoding was not chosen."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"expected {encoding}, found byte {raw[error.start]:#04x} at column {error.start + 1}"
        hint = f"; {advice}" if advice and encoding == "utf-8" else ""
        raise BadLineError(path, number, problem + hint) from None
    except LookupError:
        raise ConventionError(f"no encoding {encoding!r}; utf-8, latin-1 and cp1252 are usual ones") from None


def json_rows(
    path: str,
    what: str = "a JSON object",
    encoding: str = "utf-8",
    advice: str = "",
    source: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file, each with the number of its line; empty lines are passed over.

    `source` has the lines of the file where somebody else reads them.
    """
    import json

    decoder = json.JSONDecoder()
    decode, scan = decoder.decode, decoder.raw_decode  # the first looks for white space around, at twice the cost
    for number, line in enumerate(lines(path) if source is None else source, 1):
        text = decoded(line, encoding, path, number, advice)
        try:
            row, end = scan(text) if text.startswith("{") else (decode(text), len(text))
            if end < len(text) - 1 and not text[end:].isspace():
                decode(text)  # which says what is wrong
        except ValueError as error:
            if not line.strip():
                continue
            shown = line.strip()[:60].decode(errors="replace")
            raise BadLineError(path, number, f"expected {what}, found {shown!r} ({error})") from None
        except RecursionError:
            raise BadLineError(path, number, f"expected {what}, found one nested too deeply") from None
        if type(row) is not dict:
            raise BadLineError(path, number, f"expected {what}, found {type(row).__name__}")
        yield number, row


def wide_encoding(head: bytes) -> str | None:
    """utf-16-le or utf-16-be for a text that starts like this, with a mark or where every other byte is 0; else None."""
    even, odd = head[: len(head) & ~1 : 2], head[1::2]
    if head.startswith(WIDE) and b"\0" in head:
        return "utf-16-le" if head.startswith(WIDE[0]) else "utf-16-be"
    if len(odd) >= 8 and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if len(odd) >= 8 and not any(even) and all(odd) else None


def _refuse_wide(head: bytes, where: str) -> None:
    if wide_encoding(head):
        raise FormatError(f"{where}: the text is UTF-16; convert it first (iconv -f UTF-16 -t UTF-8)")


def _raw(source: Any) -> Opened:
    if isinstance(source, Opened):  # to be read once more, under its own name
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Opened(source, "<bytes>", "run")
    if isinstance(source, str) and source == "-":
        return Opened(_standard_input(), "<stdin>", "stdin")
    if isinstance(source, (str, os.PathLike)):
        return Opened(_mapped(source), os.fspath(source), run_name(source))
    content = source.read()
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogateescape")
    label = getattr(source, "name", None)
    if isinstance(label, str):
        return Opened(content, label, run_name(label))
    return Opened(content, "<stream>", "run")


def is_url(text: Any) -> bool:
    """Whether something that was given as a file or a system is a web address."""
    return isinstance(text, str) and text.startswith(("http://", "https://"))


def asked_by(url: str) -> str:
    """How an endpoint is described and asked, as a command to paste."""
    keys = f'url = "{url.partition("?")[0]}"', 'params = { q = "{query}", k = "{k}" }', 'hits = "hits"', 'id = "id"'
    lines = "".join(key + r"\n" for key in keys)
    return (
        f"an endpoint is described in a file and asked by run: printf '{lines}' > endpoint.toml && "
        "cranfield run COLLECTION --system http:endpoint.toml -o endpoint.run (hits and id are paths into its JSON; "
        "docs/run.md has the rest)"
    )


def _mapped(path: str | os.PathLike[str]) -> Buffer:
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # a pipe has no size to map
                return read_stream(file, os.fspath(path))
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if status.st_size else b""
    except OSError as error:
        told = asked_by(os.fspath(path)) if is_url(os.fspath(path)) else reason(error)
        raise DataError(f"{os.fspath(path)}: {told}") from error
    except CranfieldError:
        raise
    except ValueError as error:  # a null character
        raise DataError(f"{os.fspath(path)!r}: no file's name ({error})") from error


def _standard_input() -> bytes:
    """All of it; a program may have been started without one."""
    if sys.stdin is None:
        raise DataError("standard input is closed; give a file, or a pipe")
    try:
        return read_stream(sys.stdin.buffer, "<stdin>")
    except io.UnsupportedOperation:  # no file: what a program put in its place
        return sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(f"standard input cannot be read: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Why the system refused, to stand behind a colon."""
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def packing_of(head: bytes) -> str | None:
    """How a file that starts like this is packed, if it is."""
    for magic, name in MAGIC.items():
        if head.startswith(magic) and (name != "bzip2" or head[4:10] in BLOCKS):
            return name
    return None


def _unpacked(buffer: Buffer, where: str) -> Buffer:
    packing = packing_of(bytes(buffer[:10]))
    if packing is None:
        return buffer
    parts, room = [], (limit := most_unpacked(len(buffer)))
    with _unpacking(packing, where):
        for part in _parts(packing, memoryview(buffer)):
            parts.append(part)
            room -= len(part)
            if room < 0:
                parts.clear()  # which whoever handles the error would keep
                raise _too_much(where, limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _parts(packing: str, packed: memoryview, first: int | None = None) -> Iterator[bytes]:
    """What is packed, piece by piece; the `first` may be large."""
    module = _unpacker(packing)
    if module.__name__ == "gzip":
        yield from _gunzipped(packed)
        return
    with module.open(io.BufferedReader(_Viewed(packed), SLICE), "rb") as file:
        size = (
            first or 8 * len(packed) + SLICE
        )  # of most files that is all: to join pieces takes a third of the time again
        while part := file.read(size):
            yield part
            size = PIECE


def _gunzipped(packed: memoryview) -> Iterator[bytes]:
    """The members of a gzip file by zlib itself: gzip.open takes a quarter longer, as it hands over 8 kB at a time."""
    from zlib import MAX_WBITS, decompressobj

    member: Any = None
    for at in range(0, len(packed), SLICE):
        data: bytes | memoryview = packed[at : at + SLICE]
        while data:
            if member is None:
                data = bytes(data).lstrip(b"\0")  # files may be padded
                if not data:
                    break
                member = decompressobj(MAX_WBITS + 16)
            yield member.decompress(data, PIECE)
            data = member.unused_data if member.eof else member.unconsumed_tail
            member = None if member.eof else member
    if member is not None:
        raise EOFError


class _Viewed(io.RawIOBase):
    """A buffer as a file, without a copy."""

    def __init__(self, view: memoryview) -> None:
        self.view, self.at = view, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = min(len(target), len(self.view) - self.at)
        target[:count] = self.view[self.at : self.at + count]
        self.at += count
        return count


def most_unpacked(packed: int = 0) -> int:
    """How many bytes a file of so many packed ones may hold; the environment has the last word."""
    said = os.environ.get(LIMIT_NAME, "").strip()
    if not said:
        return max(LIMIT, LIMIT_RATIO * packed)
    number, unit = (said[:-1], UNITS[said[-1]]) if said[-1] in UNITS else (said, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 19) or int(number) == 0:
        raise ConventionError(f"{LIMIT_NAME}: expected a number of bytes such as 2000000000 or 2G, found {said!r}")
    return int(number) * unit


def _too_much(where: str, limit: int) -> DataError:
    size = f"{limit / 1e9:,.4g} GB" if limit >= 1e9 else f"{limit / 1e6:,.4g} MB"
    return DataError(
        f"{where}: it unpacks to more than {size}; if that is right, {LIMIT_NAME} (such as 8G) allows more"
    )


def refuse_larger(path: str, limit: int, where: str) -> None:
    """Stop at a packed file that holds more than so many bytes; nothing of it is kept in memory."""
    buffer = _mapped(path)
    packing, room = packing_of(bytes(buffer[:10])), limit
    if packing is None:
        return
    with _unpacking(packing, where):
        for part in _parts(packing, memoryview(buffer), PIECE):
            room -= len(part)
            if room < 0:
                raise TooLargeError(f"{where}: unpacks to more than {limit / 1e6:,.4g} MB, the most that is taken")


def salvaged(path: str) -> bytes:
    """What can be unpacked of a damaged file; nothing of one that is not packed, or holds too much."""
    with open(path, "rb") as raw:
        packing = packing_of(raw.peek(10)[:10])
        if packing not in MODULES:
            return b""
        parts, room = [], most_unpacked(os.fstat(raw.fileno()).st_size)
        with _unpacker(packing).open(raw, "rb") as packed:
            try:
                while part := packed.read1(1 << 16):
                    parts.append(part)
                    room -= len(part)
                    if room < 0:
                        return b""
            except Exception:  # each codec has its own; what it says is known already
                pass
        return b"".join(parts)


@contextmanager
def _unpacking(packing: str | None, where: str) -> Iterator[None]:
    """Say in words what a codec, or the system, stumbles over."""
    if packing == "zip":
        raise FormatError(f"{where}: a zip archive; unpack it first")
    try:
        yield
    except EOFError as error:
        raise DataError(f"{where}: {packing} stream ends early (truncated file?)") from error
    except (CranfieldError, MemoryError):
        raise
    except Exception as error:  # each codec has its own: zlib.error, LZMAError, ZstdError, OSError, ValueError
        if packing is None and isinstance(error, OSError):
            raise DataError(f"{where}: {reason(error)}") from error
        if packing is None:
            raise
        if "end-of-stream" in str(error) or "incomplete" in str(error):
            raise DataError(f"{where}: {packing} stream ends early (truncated file?)") from error
        raise DataError(f"{where}: corrupt {packing} stream ({error})") from error


def _unpacker(packing: str) -> Any:
    """The quickest module that unpacks."""
    try:
        return importlib.import_module(QUICKER.get(packing, MODULES[packing]))
    except ImportError:
        return _codec(packing)


def _codec(packing: str) -> Any:
    """The module that packs and unpacks; each is loaded only when a file needs it."""
    try:
        return importlib.import_module(MODULES[packing])
    except ImportError as error:
        advice = "pip install backports.zstd" if packing == "zstd" else f"this Python was built without {packing}"
        raise MissingExtraError(f"{packing} cannot be read or written here: {advice}") from error


def write_bytes(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Write a file, or standard output for `-`; a file is either written whole or left as it was."""
    tell_writing()
    if os.fspath(path) == "-":
        for chunk in _for_eyes(chunks) if sys.stdout.isatty() else chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    pending = _pending.get()
    with ExitStack() as own:
        file = (own if pending is None else pending).enter_context(_replacing(os.fspath(path)))
        with _packed(file, os.fspath(path)) as packed:
            for chunk in chunks:
                packed.write(chunk)
        with _refusing_to_write(os.fspath(path)):
            file.flush()


_pending: ContextVar[ExitStack | None] = ContextVar("pending", default=None)
"""The files that are written but not yet in their places; None where each is put there at once."""


class _DiscardedError(Exception):
    """Tells files that are not yet in their places to go away."""


@contextmanager
def all_or_none() -> Iterator[None]:
    """Put the files that are written within into their places at the end, and none of them after an error."""
    with ExitStack() as files:
        token = _pending.set(files)
        try:
            yield
        except BaseException:
            with suppress(_DiscardedError):
                files.__exit__(_DiscardedError, _DiscardedError(), None)
                files.pop_all()
            raise
        finally:
            _pending.reset(token)


@contextmanager
def _refusing_to_write(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {reason(error)}") from error


def _for_eyes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What a terminal may show: it would take an escape in an id for an order."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    for chunk in (*chunks, b""):
        yield legible(decoder.decode(chunk, final=not chunk)).encode()


def write_together(files: Mapping[str, bytes]) -> None:
    """Write several files: all of them, or none where one cannot be opened or filled."""
    tell_writing()
    with ExitStack() as stack:
        for path, data in files.items():
            file = stack.enter_context(_replacing(path))
            with _packed(file, path) as packed:
                packed.write(data)


@contextmanager
def _packed(file: Any, path: str) -> Iterator[Any]:
    packing = COMPRESSED.get(os.path.splitext(path)[1].lower())
    if packing is None:
        yield file
        return
    codec = _codec(packing)
    if packing == "gzip":  # no time and no name in it: the same rows give the same bytes
        with codec.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed
    else:
        with codec.open(file, "wb") as packed:
            yield packed


def name_beside(target: str) -> str:
    """A name for what is yet to become this file or folder; what killed processes left of it is removed first."""
    folder, base = os.path.split(target)
    with suppress(OSError):  # a folder that cannot be listed says so when it is written to
        sweep(folder or ".", rf"\.{re.escape(base)}\.")
    return os.path.join(folder, f".{base}.{own_mark()}{os.urandom(4).hex()}")


def own_mark() -> str:
    """What the names of this process's unfinished files hold: its number, and a mark of the machine, as others share disks."""
    import platform
    import zlib

    return f"{os.getpid()}.{zlib.crc32(platform.node().encode()):08x}"


def sweep(folder: str, before: str) -> None:
    """Remove unfinished files and folders whose process is gone, or, of other machines, that are older than a day.

    `before` is a pattern of what stands before the process's number in their names.
    """
    left = re.compile(rf"{before}([0-9]{{1,10}})\.([0-9a-f]{{8}})[^.]*")
    for name in os.listdir(folder):
        match = left.fullmatch(name)
        if match and _abandoned(os.path.join(folder, name), int(match[1]), own_mark().endswith(match[2])):
            _remove(os.path.join(folder, name))


def _abandoned(path: str, pid: int, ours: bool) -> bool:
    """Whether nobody works on it; where that cannot be told, somebody does."""
    if not ours:
        try:
            return time.time() - os.stat(path).st_mtime > A_DAY
        except OSError:
            return False
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass
    return False


def _remove(path: str) -> None:
    import shutil

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


def refuse_unwritable(path: str) -> None:
    """Raise DataError before any work is done for a file that could not be written in the end. `-` is standard output."""
    if path == "-":
        return
    with _unwritable(path):
        target = os.path.realpath(path)
        if os.path.isdir(target) or path.endswith(os.sep):
            raise _refusal(errno.EISDIR)
        with suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(os.stat(target).st_mode):  # a pipe or a device is written to, never replaced
                _refuse_without(os.W_OK, target)
                return
        folder, base = os.path.split(target)
        if not os.path.isdir(folder):
            raise _refusal(errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT)
        _refuse_without(os.W_OK | os.X_OK, folder)
        with suppress(FileNotFoundError):  # a name that leaves no room for the longer one of `name_beside` is refused
            os.stat(os.path.join(folder, f".{base}.{own_mark()}{'0' * 8}"))


def refuse_unwritable_folder(path: str) -> None:
    """Raise DataError before any work is done for a folder that could not be made or filled in the end."""
    with _unwritable(path):
        folder, to_make = os.path.realpath(path), []
        while not os.path.lexists(folder):
            folder, name = os.path.split(folder)
            to_make.append(name)
        if not os.path.isdir(folder):
            raise _refusal(errno.ENOTDIR)
        _refuse_without(os.W_OK | os.X_OK, folder)
        for name in (*to_make, os.path.join(*to_make[::-1], "")):
            with suppress(FileNotFoundError):  # one that is too long is another error
                os.stat(os.path.join(folder, name))


def _refusal(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _refuse_without(access: int, path: str) -> None:
    if not os.access(path, access):
        raise _refusal(errno.EACCES)


@contextmanager
def _unwritable(path: str) -> Iterator[None]:
    """Say of a path that it cannot be written, and why."""
    try:
        yield
    except OSError as error:
        name = path if len(path) < 1_000 else f"{path[:60]}…"
        raise DataError(f"{name}: cannot be written: {reason(error)}") from error
    except ValueError as error:  # a null character
        raise DataError(f"{path!r}: no file's name ({error})") from error


@contextmanager
def _replacing(path: str) -> Iterator[Any]:
    target = os.path.realpath(path)  # a link stays a link
    if os.path.exists(target) and not os.path.isfile(target):  # a pipe or a device is written to, never replaced
        try:
            with open(target, "wb") as file:
                yield file
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {reason(error)}") from error
        return
    beside = name_beside(target)
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(beside, target)
        tell_written(path)
    except BaseException as error:
        if os.path.exists(beside):
            os.unlink(beside)
        if isinstance(error, OSError):
            raise DataError(f"{path}: cannot be written: {reason(error)}") from error
        raise


def files_in(paths: Iterable[str], ending: str, what: str) -> list[str]:
    """Files, and those in folders that end so, in sorted order; a folder without any is an error that says what it lacks."""
    files: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(ending))
        if not inside:
            raise DataError(f"{path}: no {what}; expected files that end in {ending}")
        files += inside
    return files
