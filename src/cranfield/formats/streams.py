"""Bytes in, bytes out: files, standard input and output, compression, byte order marks.

A plain file is memory-mapped and never copied. Compression is recognised by the first bytes when reading and by the
file's ending when writing; the unpacked size is limited. A file is written under a temporary name next to its target
and renamed when it is complete, so that a full disk leaves the old file unchanged. Temporary files of killed
processes are removed when the same file is written again.
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
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from cranfield.base.errors import (
    BadLineError,
    ConventionError,
    CranfieldError,
    DataError,
    FormatError,
    MissingExtraError,
    TooLargeError,
)
from cranfield.base.notifications import tell_writing, tell_written
from cranfield.base.text_layout import legible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cranfield.base.kernels.table import Buffer


COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
NAMELESS = (".run", ".txt", ".res", ".trec")  # endings that are not part of a run's name
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
QUICKER = {"gzip": "isal.igzip"}  # for unpacking, if installed: about twice as fast
LIMIT_NAME = "CRANFIELD_MAX_UNPACKED"
# the limit of an unpacked file: bytes, or a multiple of its packed size if that is more
LIMIT, LIMIT_RATIO = 512_000_000, 12
LINES = 8  # the divisor for the limit of a single line: 64 MB
SMALL = 16_000_000  # bytes of a small file that is not data: a plan, a prompt, a key
DEVICE = 64_000_000  # bytes of a device, which may have no end
UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
PIECE = 1 << 24  # bytes unpacked in one go
SLICE = 1 << 20  # packed bytes handed to zlib in one go
BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # the bytes after BZh and a digit; an id may start with BZh too
A_DAY = 86_400.0  # seconds
BUFFER = 1 << 18  # bytes that are collected before they are written
BOM = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")


class Opened(NamedTuple):
    """The content of a file, the file's name for messages, and the name of a run that is read from it."""

    buffer: Buffer
    where: str
    name: str
    encoding: str = ""  # the encoding of a table that was recoded to UTF-8 when it was opened


def run_name(path: str | os.PathLike[str]) -> str:
    """A run's name: its file name without folder, compression and `.run`/`.txt`/`.res`/`.trec`.

    >>> run_name("runs/bm25.v2.run.gz")
    'bm25.v2'
    """
    name = os.path.basename(os.fspath(path))
    for endings in (tuple(COMPRESSED), NAMELESS):
        name = name.removesuffix(next((each for each in endings if name.endswith(each) and name != each), ""))
    return name


def plain_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file name without that of its compression, in lower case.

    >>> plain_ending("dev.JSONL.zst")
    '.jsonl'
    """
    base, ending = os.path.splitext(os.fspath(path))
    return os.path.splitext(base)[1].lower() if ending.lower() in COMPRESSED else ending.lower()


def is_source(value: Any) -> bool:
    """Whether a value is a file or its content: a path, `-`, an object with `read`, bytes, or `Opened`."""
    return isinstance(value, (str, os.PathLike, bytes, bytearray, memoryview, Opened)) or (
        hasattr(value, "read") and not hasattr(value, "columns") and not hasattr(value, "__arrow_c_stream__")
    )


def opened(
    source: Any, recode: Callable[[bytes, str], tuple[bytes, str]] | None = None, always: bool = False
) -> Opened:
    """The content of a file, unpacked and without byte order mark; UTF-16 is refused unless `recode` handles it.

    `recode` turns UTF-16 into UTF-8 and names the encoding, or returns nothing; `always` applies it to any text.
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
    """The content of a file, unpacked but otherwise unchanged."""
    buffer, where, *_ = _raw(source)
    buffer = _unpacked(buffer, where)
    _refuse_long_line(buffer, where)
    return buffer


def data_lines(buffer: Buffer) -> Iterator[tuple[int, bytes]]:
    """The numbered lines that are neither blank nor comments."""
    for number, line in enumerate(bytes(buffer).splitlines(), start=1):
        if line.strip() and not line.startswith(b"#"):
            yield number, line


def lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file of any size, one by one, unpacked and without byte order mark."""
    where = os.fspath(path)
    with read_errors(where):
        raw = open(where, "rb")  # noqa: SIM115
    with raw:
        packing = packing_of(raw.peek(10)[:10])  # a pipe cannot be rewound
        with _unpacking(packing, where):
            file = raw if packing is None else unpacker(packing).open(raw, "rb")
            short = packing is None and 0 < os.fstat(raw.fileno()).st_size <= most_unpacked() // LINES
            rows = iter(file) if short else _limited_lines(file, where)
            first = next(rows, b"")
            _refuse_wide(first[:64], where)
            if first:
                yield first.removeprefix(BOM)
            yield from rows


def _limited_lines(file: Any, where: str) -> Iterator[bytes]:
    """The lines of a file; a line beyond the limit is an error, so that an endless line is not kept in memory."""
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
    """Raise BadLineError for a line of text beyond the limit, before it is copied."""
    limit, start = most_unpacked() // LINES, 0
    if len(buffer) <= limit or not hasattr(buffer, "rfind") or _needs_no_lines(bytes(buffer[:64])):
        return
    while len(buffer) - start > limit:
        end = buffer.rfind(b"\n", start, start + limit)  # from the back: usually a line ends near the end of each block
        if end < 0:
            before = sum(bytes(buffer[at : min(at + PIECE, start)]).count(b"\n") for at in range(0, start, PIECE))
            raise _long_line(where, before + 1, limit)
        start = end + 1


def _needs_no_lines(head: bytes) -> bool:
    """Whether a file may be one long line: JSON, or no text at all."""
    return head.lstrip(b" \t\r\n" + BOM)[:1] in (b"{", b"[") or head.startswith(b"PAR1")


def read_small(file: Any, where: str) -> bytes:
    """The content of a file that must be small; DataError if it is not."""
    content: bytes = file.read(SMALL + 1)
    if len(content) > SMALL:
        raise DataError(f"{where}: expected a file of at most {SMALL / 1e6:g} MB, found a larger one")
    return content


def read_stream(file: Any, where: str, number: int = 1) -> bytes:
    """The rest of a pipe, a device or a file; `number` is its first line. Endless devices and lines are errors."""
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
    """A line as text; a line in another encoding is refused, with advice if the encoding was not given."""
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
    """The JSON objects of a file with their line numbers; blank lines are skipped.

    `source` has the lines if another function reads the file.
    """
    import json

    decoder = json.JSONDecoder()
    decode, scan = decoder.decode, decoder.raw_decode  # `decode` also skips white space, at twice the cost
    for number, line in enumerate(lines(path) if source is None else source, 1):
        text = decoded(line, encoding, path, number, advice)
        try:
            row, end = scan(text) if text.startswith("{") else (decode(text), len(text))
            if end < len(text) - 1 and not text[end:].isspace():
                decode(text)  # raises the error that says what is wrong
        except ValueError as error:
            if not line.strip():
                continue
            excerpt = line.strip()[:60].decode(errors="replace")
            raise BadLineError(path, number, f"expected {what}, found {excerpt!r} ({error})") from None
        except RecursionError:
            raise BadLineError(path, number, f"expected {what}, found one nested too deeply") from None
        if type(row) is not dict:
            raise BadLineError(path, number, f"expected {what}, found {type(row).__name__}")
        yield number, row


def wide_encoding(head: bytes) -> str | None:
    """utf-16-le or utf-16-be for a text with this start (a mark, or every other byte is 0); else None."""
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
    if isinstance(source, Opened):  # opened before
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
    """Whether a file or system argument is a web address."""
    return isinstance(text, str) and text.startswith(("http://", "https://"))


def endpoint_advice(url: str) -> str:
    """How to describe and query an endpoint, as a command to paste."""
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
        why = endpoint_advice(os.fspath(path)) if is_url(os.fspath(path)) else reason(error)
        raise DataError(f"{os.fspath(path)}: {why}") from error
    except CranfieldError:
        raise
    except ValueError as error:  # a null character
        raise DataError(f"{os.fspath(path)!r}: no file's name ({error})") from error


def _standard_input() -> bytes:
    """All of standard input, which may be closed."""
    if sys.stdin is None:
        raise DataError("standard input is closed; give a file, or a pipe")
    try:
        return read_stream(sys.stdin.buffer, "<stdin>")
    except io.UnsupportedOperation:  # not a file: a program replaced standard input
        return sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(f"standard input cannot be read: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Why the system refused, as the end of a sentence."""
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def packing_of(head: bytes) -> str | None:
    """The compression of a file with this start; None if it is not compressed."""
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
                size = f"{limit / 1e9:,.4g} GB" if limit >= 1e9 else f"{limit / 1e6:,.4g} MB"
                allows = f"if that is right, {LIMIT_NAME} (such as 8G) allows more"
                raise DataError(f"{where}: it unpacks to more than {size}; {allows}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _parts(packing: str, packed: memoryview, first: int | None = None) -> Iterator[bytes]:
    """The unpacked content in pieces; the `first` may be large."""
    module = unpacker(packing)
    if module.__name__ == "gzip":
        yield from _gunzipped(packed)
        return
    with module.open(io.BufferedReader(_Viewed(packed), SLICE), "rb") as file:
        size = first or 8 * len(packed) + SLICE  # most files need one piece: joining pieces takes a third longer
        while part := file.read(size):
            yield part
            size = PIECE


def _gunzipped(packed: memoryview) -> Iterator[bytes]:
    """The members of a gzip file, unpacked by zlib directly: gzip.open takes a quarter longer, with pieces of 8 kB."""
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
    """The limit for the unpacked size of a file with so many packed bytes; the environment variable overrides it."""
    setting = os.environ.get(LIMIT_NAME, "").strip()
    if not setting:
        return max(LIMIT, LIMIT_RATIO * packed)
    number, unit = (setting[:-1], UNITS[setting[-1]]) if setting[-1] in UNITS else (setting, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 19) or int(number) == 0:
        raise ConventionError(f"{LIMIT_NAME}: expected a number of bytes such as 2000000000 or 2G, found {setting!r}")
    return int(number) * unit


def refuse_larger(path: str, limit: int, where: str) -> None:
    """Raise TooLargeError for a compressed file that unpacks to more than `limit` bytes; nothing is kept in memory."""
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
    """The part of a damaged compressed file that can be unpacked; empty if it is not compressed or too large."""
    with open(path, "rb") as raw:
        packing = packing_of(raw.peek(10)[:10])
        if packing not in MODULES:
            return b""
        parts, room = [], most_unpacked(os.fstat(raw.fileno()).st_size)
        with unpacker(packing).open(raw, "rb") as packed:
            try:
                while part := packed.read1(1 << 16):
                    parts.append(part)
                    room -= len(part)
                    if room < 0:
                        return b""
            except Exception:  # each codec has its own error; the damage was reported before
                pass
        return b"".join(parts)


@contextmanager
def _unpacking(packing: str | None, where: str) -> Iterator[None]:
    """Turn errors of a codec or of the system into sentences."""
    if packing == "zip":
        raise FormatError(f"{where}: a zip archive; unpack it first")
    try:
        yield
    except EOFError as error:
        raise DataError(f"{where}: {packing} stream ends early (truncated file?)") from error
    except (CranfieldError, MemoryError):
        raise
    except Exception as error:  # each codec has its own error: zlib.error, LZMAError, ZstdError, OSError, ValueError
        if packing is None and isinstance(error, OSError):
            raise DataError(f"{where}: {reason(error)}") from error
        if packing is None:
            raise
        if "end-of-stream" in str(error) or "incomplete" in str(error):
            raise DataError(f"{where}: {packing} stream ends early (truncated file?)") from error
        raise DataError(f"{where}: corrupt {packing} stream ({error})") from error


def unpacker(packing: str) -> Any:
    """The fastest module that unpacks this compression."""
    try:
        return importlib.import_module(QUICKER.get(packing, MODULES[packing]))
    except ImportError:
        return _codec(packing)


def _codec(packing: str) -> Any:
    """The module for this compression; imported only when a file needs it."""
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
        file = (own if pending is None else pending).enter_context(_output_file(os.fspath(path)))
        with _packed(file, os.fspath(path)) as packed:
            for chunk in chunks:
                packed.write(chunk)
        with write_errors(os.fspath(path)):
            file.flush()


_pending: ContextVar[ExitStack | None] = ContextVar("pending", default=None)
"""The files that are written but not yet in their places; None where each is put there at once."""


class _DiscardedError(Exception):
    """Signals pending files that they must be discarded."""


@contextmanager
def all_or_none() -> Iterator[None]:
    """Rename all files written in this block at its end; after an error none of them."""
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
def read_errors(path: str) -> Iterator[None]:
    """Turn an error of the operating system while a file is read into a sentence that names the path."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from error


@contextmanager
def write_errors(path: str, refusal: type[CranfieldError] = DataError) -> Iterator[None]:
    """Turn an error of the operating system while a file is written into a sentence that names the path."""
    try:
        yield
    except OSError as error:
        raise refusal(f"{path}: cannot be written: {reason(error)}") from error


def _for_eyes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Text for a terminal: escape sequences in ids are defused."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    for chunk in (*chunks, b""):
        yield legible(decoder.decode(chunk, final=not chunk)).encode()


def write_together(files: Mapping[str, bytes]) -> None:
    """Write several files: all of them, or none if one cannot be opened or filled."""
    with all_or_none():
        for path, data in files.items():
            write_bytes(path, [data])


@contextmanager
def _packed(file: Any, path: str) -> Iterator[Any]:
    packing = COMPRESSED.get(os.path.splitext(path)[1].lower())
    if packing is None:
        yield file
        return
    codec = _codec(packing)
    is_gzip = packing == "gzip"  # without time and name, so that the same rows give the same bytes
    with codec.GzipFile("", "wb", fileobj=file, mtime=0) if is_gzip else codec.open(file, "wb") as packed:
        yield packed


@contextmanager
def replacement(target: str, label: str = "", refusal: type[CranfieldError] = DataError) -> Iterator[str]:
    """The path for a new version of a file or folder, which takes the place of `target` when the block ends.

    All code of cranfield that replaces files does so here. After an error the new version is removed and `target` is as it
    was. An error of the operating system becomes a `refusal` that calls the target by its `label`.
    """
    with write_errors(label or target, refusal), unfinished(target) as beside:
        yield beside
        os.replace(beside, target)


@contextmanager
def unfinished(target: str) -> Iterator[str]:
    """A hidden path next to a file or folder, for its new version; removed at the end unless it was moved elsewhere."""
    beside = name_beside(target)
    try:
        yield beside
    finally:
        if os.path.lexists(beside):
            _remove(beside)


@contextmanager
def synced_file(path: str) -> Iterator[BinaryIO]:
    """A new file to write to; its bytes are on disk when the block ends."""
    with open(path, "xb", buffering=BUFFER) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: str) -> None:
    """Wait until the names in a folder are on disk as well."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def name_beside(target: str) -> str:
    """A hidden name for the new version of a file or folder; leftovers of killed processes are removed first."""
    folder, base = os.path.split(target)
    with suppress(OSError):  # a folder that cannot be listed says so when it is written to
        sweep(folder or ".", rf"\.{re.escape(base)}\.")
    return os.path.join(folder, f".{base}.{own_mark()}{os.urandom(4).hex()}")


def own_mark() -> str:
    """The part of a hidden name that tells its process: the process id and a hash of the machine's name.

    Several machines may share a disk.
    """
    import platform
    import zlib

    return f"{os.getpid()}.{zlib.crc32(platform.node().encode()):08x}"


def sweep(folder: str, before: str) -> None:
    """Remove unfinished files and folders whose process has ended; those of other machines after a day.

    `before` is a pattern for the part of their names before the process id.
    """
    left = re.compile(rf"{before}([0-9]{{1,10}})\.([0-9a-f]{{8}})[^.]*")
    for name in os.listdir(folder):
        match = left.fullmatch(name)
        if match and _abandoned(os.path.join(folder, name), int(match[1]), own_mark().endswith(match[2])):
            _remove(os.path.join(folder, name))


def _abandoned(path: str, pid: int, ours: bool) -> bool:
    """Whether no process works on a file any more; False if that cannot be decided."""
    try:
        if not ours:
            return time.time() - os.stat(path).st_mtime > A_DAY
        if os.name == "posix":
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
    """Raise DataError that says why a path cannot be written."""
    try:
        yield
    except OSError as error:
        name = path if len(path) < 1_000 else f"{path[:60]}…"
        raise DataError(f"{name}: cannot be written: {reason(error)}") from error
    except ValueError as error:  # a null character
        raise DataError(f"{path!r}: no file's name ({error})") from error


@contextmanager
def _output_file(path: str) -> Iterator[BinaryIO]:
    """A file to write to. A regular file is replaced at the end; a pipe or a device is written to directly."""
    target = os.path.realpath(path)  # a link stays a link
    if os.path.exists(target) and not os.path.isfile(target):
        with write_errors(path), open(target, "wb") as file:
            yield file
        return
    with replacement(target, path) as beside:
        with synced_file(beside) as file:
            yield file
        if os.path.exists(target):
            os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
    tell_written(path)


def files_in(paths: Iterable[str], ending: str, what: str) -> list[str]:
    """The files in `paths`; a folder stands for its files with this ending, sorted. A folder without any is an error."""
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


PRIVATE = 0o600


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that only its owner may read; DataError if others can."""
    where = os.fspath(path)
    with read_errors(where), open(where, "rb") as file:
        refuse_readable(where, os.fstat(file.fileno()))
        return read_small(file, where)


def refuse_readable(path: str | os.PathLike[str], about: os.stat_result | None = None) -> None:
    """Raise DataError if others than the owner can read or change a file that holds a key.

    A file of root may be readable by its group, because that is how systems pass keys to services.
    """
    if os.name != "posix":
        return
    where = os.fspath(path)
    with read_errors(where):
        about = about or os.stat(where)
    handed = about.st_uid == 0 and os.geteuid() != 0
    if stat.S_IMODE(about.st_mode) & (0o037 if handed else 0o077):
        import shlex

        raise DataError(f"{where}: others can read it; chmod 600 {shlex.quote(where)}")
