from typing import Any

Buffer = Any
Names = tuple[bytes, bytes]
Rows = tuple[Names, bytes, tuple[bytes, bytes], bytes, Names, bytes]
Scanned = tuple[int, int, int, bytes, bytes, Names, bytes, bytes | None]

def parse(buffer: Buffer, layout: tuple[int, ...], lenient: bool) -> tuple[int, int, Rows, bytes, bytes]: ...
def named(
    buffer: Buffer, start: int, separator: bytes, count: int, keys: tuple[bytes, ...], wanted: tuple[Any, ...]
) -> Rows | None: ...
def lines(*texts_and_columns: Buffer) -> bytes: ...
def tops(
    buffer: Buffer, layout: tuple[int, ...], order: tuple[Any, ...], depth: int, lenient: bool
) -> tuple[int, int, Names, bytes, bytes, bytes, tuple[bytes, bytes], bytes] | None: ...
def dicts(source: dict[str, Any], finite: bool) -> tuple[bytes, list[str], bytes, bytes, bytes] | None: ...
def index(
    names: Buffer, name_offsets: Buffer, topic: Buffer, text: Buffer, offsets: Buffer
) -> tuple[object, bytes]: ...
def scan(
    index: object, buffer: Buffer, start: int, stop: int, layout: tuple[int, ...], order: tuple[Any, ...], lenient: bool
) -> Scanned: ...
def gather(
    index: object,
    topic: int,
    buffer: Buffer,
    stretches: Buffer,
    layout: tuple[int, ...],
    order: tuple[Any, ...],
    lenient: bool,
) -> Scanned: ...
def boundary(buffer: Buffer, offset: int) -> int: ...
def columns(
    index: object, topics: Buffer, places: Buffer, text: Buffer, offsets: Buffer, value: Buffer, order: tuple[Any, ...]
) -> tuple[int, bytes, bytes]: ...
def mapping(
    index: object, topics: list[str], documents: list[str], run: dict[str, Any], order: tuple[Any, ...]
) -> tuple[bytes, bytes]: ...
