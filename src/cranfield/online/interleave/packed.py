"""What a token says, in as few bytes as it takes: the plan, method, systems, and the evidence of one list.

The name of the plan, if the list belongs to one; a letter and what differs from the method's defaults; the systems' names; then
whole numbers. Those of the ranks take as many bits as the largest of them needs, others seven bits a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import ConventionError, TokenError
from cranfield.online.interleave.method import METHODS, Evidence
from cranfield.parameters import read_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.online.interleave.method import Method


PLANNED = b"\x01"  # begins what names a plan; other tokens begin with the letter of a method


class Contents(NamedTuple):
    """What a token says about one interleaved list; `plan` is empty where the token names none."""

    method: Method
    systems: tuple[str, ...]
    evidence: Evidence
    plan: str = ""


def packed(method: Method, systems: Sequence[str], evidence: Evidence, plan: str = "") -> bytes:
    """As bytes."""
    changed = ",".join(f"{key}={value}" for key, value in method.changed().items())
    flat = [number for marks in evidence.marks for number in marks]
    each = len(evidence.marks[0]) if evidence.marks else 0
    width = max(map(int.bit_length, flat), default=0)
    bits = 0
    for number in flat:
        bits = bits << width | number
    return b"".join(
        [
            *([PLANNED, _counted_text(plan)] if plan else []),
            method.letter.encode(),
            _whole(len(systems)),
            *map(_counted_text, (changed, *systems)),
            *map(_whole, (len(evidence.marks), each, width)),
            bits.to_bytes((width * len(flat) + 7) // 8, "big"),
            *map(_whole, evidence.more),
        ]
    )


def unpacked(content: bytes) -> Contents:
    """What `packed` was given."""
    try:
        return _read(content)
    except (StopIteration, UnicodeDecodeError, ConventionError) as error:
        raise TokenError("the token was sealed with this key, but by another version of cranfield") from error


def _read(content: bytes) -> Contents:
    plan, stream = "", iter(content)
    if content[:1] == PLANNED:
        next(stream)
        plan = _text(stream, _number(stream))
    letter = chr(next(stream))
    cls = next((each for each in METHODS.values() if each.letter == letter), None)
    if cls is None:
        raise TokenError(f"the token names a method {letter!r} that this version of cranfield does not know")
    systems = _number(stream)
    changed, *names = [_text(stream, _number(stream)) for _ in range(systems + 1)]
    ranks, each, width = _number(stream), _number(stream), _number(stream)
    bits = int.from_bytes(bytes(_taken(stream, (ranks * each * width + 7) // 8)), "big")
    places = range(ranks * each - 1, -1, -1)
    flat = [bits >> place * width & (1 << width) - 1 for place in places]
    marks = tuple([tuple(flat[rank * each : (rank + 1) * each]) for rank in range(ranks)])
    more = tuple([_number(stream, byte) for byte in stream])
    return Contents(cls(**read_pairs(changed, cls.name)), tuple(names), Evidence(marks, more), plan)


def _counted_text(text: str) -> bytes:
    """A text behind the number of its bytes."""
    encoded = text.encode("utf-8", "surrogatepass")
    return _whole(len(encoded)) + encoded


def _whole(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that there is more."""
    answer = bytearray()
    while number > 127:
        answer.append(number & 127 | 128)
        number >>= 7
    answer.append(number)
    return bytes(answer)


def _number(stream: Iterator[int], first: int | None = None) -> int:
    byte = next(stream) if first is None else first
    number, shift = byte & 127, 7
    while byte & 128:
        byte = next(stream)
        number |= (byte & 127) << shift
        shift += 7
    return number


def _taken(stream: Iterator[int], n: int) -> list[int]:
    return [next(stream) for _ in range(n)]


def _text(stream: Iterator[int], n: int) -> str:
    return bytes(_taken(stream, n)).decode("utf-8", "surrogatepass")
