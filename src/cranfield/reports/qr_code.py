"""QR codes (ISO/IEC 18004) of texts such as links: byte mode, error correction level M, the smallest version that fits.

Nothing is installed for it, and the code is drawn as one path of SVG, which needs neither styles nor scripts. The steps are
those of the standard: data bits, Reed-Solomon codewords, modules in zigzag, the mask with the lowest penalty.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Grid = list[list[bool]]

CORRECTION = (10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, *[28] * 19)
BLOCKS = tuple(
    map(
        int,
        "1 1 1 2 2 4 4 4 5 5 5 8 9 9 10 10 11 13 14 16 17 17 18 20 21 23 25 26 28 29 31 33 35 37 38 40 43 45 47 49".split(),
    )
)
"""Codewords of error correction per block, and blocks, for versions 1 to 40 at level M."""
QUIET = 4  # light modules around the code
MASKS: tuple[Callable[[int, int], bool], ...] = (
    lambda x, y: (x + y) % 2 == 0,
    lambda x, y: y % 2 == 0,
    lambda x, y: x % 3 == 0,
    lambda x, y: (x + y) % 3 == 0,
    lambda x, y: (x // 3 + y // 2) % 2 == 0,
    lambda x, y: x * y % 2 + x * y % 3 == 0,
    lambda x, y: (x * y % 2 + x * y % 3) % 2 == 0,
    lambda x, y: ((x + y) % 2 + x * y % 3) % 2 == 0,
)
LIKE_FINDER = (True, False, True, True, True, False, True)  # the pattern that scanners look for


def qr_code(text: str) -> Grid:
    """The modules of a code, row by row; True is dark. DataError if the text is longer than any code holds."""
    data = text.encode()
    version = next((each for each in range(1, 41) if _capacity(each) >= 4 + _length_bits(each) + 8 * len(data)), None)
    if version is None:
        raise DataError(f"a QR code holds at most 2,331 bytes, found {len(data):,}")
    codewords = _interleaved(_data_codewords(data, version), version)
    grid, fixed = _function_patterns(version)
    _place(grid, fixed, codewords)
    return min((_masked(grid, fixed, mask) for mask in range(8)), key=_penalty)


def qr_svg(text: str, label: str) -> str:
    """A code as SVG; `label` is what screen readers say."""
    from html import escape

    grid = qr_code(text)
    size = len(grid) + 2 * QUIET
    runs = "".join(
        f"M{x + QUIET} {y + QUIET}h1v1h-1z" for y, row in enumerate(grid) for x, dark in enumerate(row) if dark
    )
    return (
        f'<svg class="qr" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" role="img" '
        f'aria-label="{escape(label)}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{runs}" fill="#000"/></svg>'
    )


def _length_bits(version: int) -> int:
    return 8 if version < 10 else 16


def _modules(version: int) -> int:
    """The number of modules that hold codewords: all modules without those of the patterns."""
    count = (16 * version + 128) * version + 64
    if version >= 2:
        alignments = version // 7 + 2
        count -= (25 * alignments - 10) * alignments - 55
        count -= 36 if version >= 7 else 0
    return count


def _capacity(version: int) -> int:
    """The number of data bits that a version holds."""
    return 8 * (_modules(version) // 8 - CORRECTION[version - 1] * BLOCKS[version - 1])


def _data_codewords(data: bytes, version: int) -> list[int]:
    """Mode, length, data and padding as bytes."""
    capacity = _capacity(version)
    bits = f"0100{len(data):0{_length_bits(version)}b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, capacity - len(bits))
    bits += "0" * (-len(bits) % 8)
    codewords = [int(bits[place : place + 8], 2) for place in range(0, len(bits), 8)]
    padding = capacity // 8 - len(codewords)
    return codewords + [(0xEC, 0x11)[number % 2] for number in range(padding)]


def _interleaved(data: list[int], version: int) -> list[int]:
    """The codewords of all blocks by turns, the data first, then the error correction."""
    blocks, correction = BLOCKS[version - 1], CORRECTION[version - 1]
    short, longer = divmod(len(data), blocks)
    parts, place = [], 0
    for number in range(blocks):
        size = short + (number >= blocks - longer)
        parts.append(data[place : place + size])
        place += size
    checks = [_remainder(part, _divisor(correction)) for part in parts]
    mixed = [part[number] for number in range(short + 1) for part in parts if number < len(part)]
    return mixed + [check[number] for number in range(correction) for check in checks]


def _multiplied(one: int, other: int) -> int:
    """The product in the field of 256 elements with the polynomial 0x11D."""
    product = 0
    for bit in range(7, -1, -1):
        product = (product << 1) ^ (product >> 7) * 0x11D
        product ^= (other >> bit & 1) * one
    return product


@cache
def _divisor(degree: int) -> tuple[int, ...]:
    """The generator polynomial of Reed-Solomon codes, without its leading 1."""
    coefficients, root = [0] * (degree - 1) + [1], 1
    for _ in range(degree):
        for place in range(degree):
            following = coefficients[place + 1] if place + 1 < degree else 0
            coefficients[place] = _multiplied(coefficients[place], root) ^ following
        root = _multiplied(root, 2)
    return tuple(coefficients)


def _remainder(data: list[int], divisor: tuple[int, ...]) -> list[int]:
    remainder = [0] * len(divisor)
    for byte in data:
        factor = byte ^ remainder[0]
        remainder = [*remainder[1:], 0]
        remainder = [value ^ _multiplied(part, factor) for value, part in zip(remainder, divisor, strict=True)]
    return remainder


def _alignment_places(version: int) -> list[int]:
    if version == 1:
        return []
    count = version // 7 + 2
    step = (version * 8 + count * 3 + 5) // (count * 4 - 4) * 2
    places = [version * 4 + 10 - number * step for number in range(count - 1)]
    return [6, *reversed(places)]


def _function_patterns(version: int) -> tuple[Grid, Grid]:
    """A grid with the patterns that do not depend on the data, and where they are."""
    size = version * 4 + 17
    grid, fixed = [[False] * size for _ in range(size)], [[False] * size for _ in range(size)]

    def put(x: int, y: int, dark: bool) -> None:
        if 0 <= x < size and 0 <= y < size:
            grid[y][x], fixed[y][x] = dark, True

    for place in range(size):
        put(6, place, place % 2 == 0)
        put(place, 6, place % 2 == 0)
    for x, y in ((3, 3), (size - 4, 3), (3, size - 4)):
        for down in range(-4, 5):
            for right in range(-4, 5):
                put(x + right, y + down, max(abs(right), abs(down)) not in (2, 4))
    places = _alignment_places(version)
    corners = {(6, 6), (6, size - 7), (size - 7, 6)}
    for x, y in ((x, y) for x in places for y in places if (x, y) not in corners):
        for down in range(-2, 3):
            for right in range(-2, 3):
                put(x + right, y + down, max(abs(right), abs(down)) != 1)
    for x, y, dark in (*_format_modules(size, 0), *_version_modules(version, size)):
        put(x, y, dark)
    return grid, fixed


def _format_modules(size: int, mask: int) -> Iterator[tuple[int, int, bool]]:
    """Level M and the mask, protected by a BCH code, twice."""
    rest = mask
    for _ in range(10):
        rest = (rest << 1) ^ (rest >> 9) * 0x537
    bits = (mask << 10 | rest) ^ 0x5412
    first = [*((8, y) for y in range(6)), (8, 7), (8, 8), (7, 8), *((14 - number, 8) for number in range(9, 15))]
    second = [*((size - 1 - number, 8) for number in range(8)), *((8, size - 15 + number) for number in range(8, 15))]
    for places in (first, second):
        for number, (x, y) in enumerate(places):
            yield x, y, bool(bits >> number & 1)
    yield 8, size - 8, True


def _version_modules(version: int, size: int) -> Iterator[tuple[int, int, bool]]:
    if version < 7:
        return
    rest = version
    for _ in range(12):
        rest = (rest << 1) ^ (rest >> 11) * 0x1F25
    bits = version << 12 | rest
    for number in range(18):
        dark, one, other = bool(bits >> number & 1), size - 11 + number % 3, number // 3
        yield one, other, dark
        yield other, one, dark


def _place(grid: Grid, fixed: Grid, codewords: list[int]) -> None:
    """Put the bits of the codewords into the free modules, in columns of two, upwards and downwards by turns."""
    size = len(grid)
    bits = iter("".join(f"{each:08b}" for each in codewords))
    for number, right in enumerate([*range(size - 1, 6, -2), 5, 3, 1]):
        rows = range(size) if number % 2 else range(size - 1, -1, -1)
        for y in rows:
            for x in (right, right - 1):
                if not fixed[y][x]:
                    grid[y][x] = next(bits, "0") == "1"


def _masked(grid: Grid, fixed: Grid, mask: int) -> Grid:
    turns = MASKS[mask]
    masked = [[dark != (not fixed[y][x] and turns(x, y)) for x, dark in enumerate(row)] for y, row in enumerate(grid)]
    for x, y, dark in _format_modules(len(grid), mask):
        masked[y][x] = dark
    return masked


def _penalty(grid: Grid) -> int:
    """How hard a code is to read, by the four rules of the standard."""
    size = len(grid)
    penalty = 0
    for line in (*grid, *map(list, zip(*grid, strict=True))):
        length = 1
        for before, here in zip(line, [*line[1:], None], strict=True):
            if before is here:
                length += 1
                continue
            penalty += length - 2 if length >= 5 else 0
            length = 1
        padded = [False] * 4 + line + [False] * 4
        for place in range(4, len(padded) - 10):
            if tuple(padded[place : place + 7]) == LIKE_FINDER:
                light = not any(padded[place - 4 : place]), not any(padded[place + 7 : place + 11])
                penalty += 40 * sum(light)
    for y in range(size - 1):
        for x in range(size - 1):
            penalty += 3 * (len({grid[y][x], grid[y][x + 1], grid[y + 1][x], grid[y + 1][x + 1]}) == 1)
    dark = sum(map(sum, grid))
    return penalty + 10 * (abs(20 * dark - 10 * size * size) // (size * size))
