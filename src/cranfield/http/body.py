"""Request bodies of JSON or JSON lines, with limits on size, time and nesting."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from cranfield.http.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from cranfield.http.connections import Reserved

STRANGER_BYTES = 64_000  # of a body from a client that is not signed in
STRANGER_SECONDS = 5.0
DEEPEST = 50  # maximum nesting of lists and objects
JSON = ("application/json", "text/plain", "")  # navigator.sendBeacon sends text as text/plain
LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


async def read_body(
    request: Request, largest: int, seconds: float, reserved: Reserved | None = None, advice: str = ""
) -> bytes:
    """The bytes of a body. The Refusal is 413 for too many bytes, 408 for a timeout; `reserved` accounts for the memory."""
    _refuse_large(announced(request) or 0, largest, advice)
    body = bytearray()
    with patience(seconds, f"the body did not come within {seconds:g} seconds"):
        async for piece in request.stream():
            _refuse_large(len(body) + len(piece), largest, advice)
            if reserved is not None:
                reserved.take(len(piece))
            body += piece
    return bytes(body)


@contextmanager
def patience(seconds: float, problem: str) -> Iterator[None]:
    """Refuse the request with 408 if the block takes longer."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise Refusal(problem, 408) from None


def announced(request: Request) -> int | None:
    """The size of the body in the Content-Length header; None without one."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < 19 else None


def _refuse_large(size: int, largest: int, advice: str) -> None:
    if size > largest:
        raise Refusal(f"the body is larger than {largest:,} bytes", 413, advice=advice)


def kind_of(request: Request) -> str:
    """The type of a body by its headers, json or lines; 415 for other types, compressed bodies and other encodings."""
    kind, _, rest = request.headers.get("content-type", "").lower().partition(";")
    charset = rest.partition("charset=")[2].strip(" \"'").partition(";")[0]
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise Refusal(f"expected UTF-8, found {charset[:40]!r}", 415)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("expected a body that is not compressed", 415)
    if kind.strip() in JSON:
        return "json"
    if kind.strip() in LINES:
        return "lines"
    raise Refusal(f"expected application/json or application/x-ndjson, found {kind.strip()[:60]!r}", 415)


def parsed(body: bytes, kind: str) -> Any:
    """The value of a JSON body, or a list of (row number, value) of JSON lines; a Refusal names the row."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        row, byte = body.count(b"\n", 0, error.start) + 1, body[error.start]
        where = f"row {row}: " if kind == "lines" else ""
        raise Refusal(f"{where}expected UTF-8, found byte {byte:#04x} at {error.start:,} of the body") from None
    if kind == "json":
        return _value(text, "")
    rows = enumerate(text.split("\n"), 1)
    return [(row, _value(line, f"row {row}: ")) for row, line in rows if line.strip()]


def _value(text: str, where: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        raise Refusal(f"{where}expected JSON, found {DEEP}") from None
    except ValueError as error:
        raise Refusal(f"{where}expected JSON, found {text[:40]!r} ({error})") from None
    if is_deep(value):
        raise Refusal(f"{where}expected JSON, found {DEEP}")
    return value


DEEP = f"lists or objects nested more than {DEEPEST} deep"


def is_deep(value: Any) -> bool:
    """Whether a value is nested too deep for code that handles it recursively."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        inside = (each for one in level for each in (one.values() if isinstance(one, dict) else one))
        level = [each for each in inside if isinstance(each, (dict, list))]
    return bool(level)
