"""What a program or a page sends: a body of JSON or of JSON lines, as far as it may go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio

from cranfield.web.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

SLOWEST = 30.0  # seconds for a body
JSON = ("application/json", "text/plain", "")  # navigator.sendBeacon sends text as text/plain
LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


async def read_body(request: Request, largest: int) -> bytes:
    """The bytes of a body; 413 where they are too many, 408 where they do not come."""
    _refuse_large(announced(request) or 0, largest)
    body = bytearray()
    try:
        with anyio.fail_after(SLOWEST):
            async for piece in request.stream():
                body += piece
                _refuse_large(len(body), largest)
    except TimeoutError:
        raise Refusal(f"the body did not come within {SLOWEST:g} seconds", 408) from None
    return bytes(body)


def announced(request: Request) -> int | None:
    """How large a body will be, where the request says so."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isdecimal() and len(said) < 19 else None


def _refuse_large(size: int, largest: int) -> None:
    if size > largest:
        raise Refusal(
            f"what was sent is larger than {largest:,} bytes", 413, advice="Send the events in smaller batches."
        )


def kind_of(request: Request) -> str:
    """What a body is said to hold, json or lines; 415 where it is something else, packed, or not in UTF-8."""
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
    """The value of JSON, or of lines a list of numbers of rows and their values; a Refusal names the row."""
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
        return json.loads(text)
    except RecursionError:
        raise Refusal(f"{where}expected JSON, found lists within lists without end") from None
    except ValueError as error:
        raise Refusal(f"{where}expected JSON, found {text[:40]!r} ({error})") from None
