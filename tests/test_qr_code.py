"""QR codes: an independent reader reads them, in every version, and the sizes are those of the standard."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield.base.errors import DataError
from cranfield.reports.qr_code import qr_code, qr_svg

if TYPE_CHECKING:
    from cranfield.reports.qr_code import Grid

LARGEST = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504, 560, 624, 666)
LARGEST += (
    711,
    779,
    857,
    911,
    997,
    1059,
    1125,
    1190,
    1264,
    1370,
    1452,
    1538,
    1628,
    1722,
    1809,
    1911,
    1989,
    2099,
    2213,
    2331,
)
"""Bytes that versions 1 to 40 hold at level M: ISO/IEC 18004, table 7."""
CHEAP = (1, 2, 6, 7, 9, 10, 14)  # versions on both sides of what changes: alignment, version bits, length, blocks


def read_by_zxing(grid: Grid, damage: int = 0) -> list[str]:
    """What zxing reads in a code, some of whose modules are wrong."""
    zxing = pytest.importorskip("zxingcpp", reason="needs zxing-cpp")
    modules = np.array(grid)
    size = len(grid)
    for place in random.Random(1).sample(range(size * size // 4), damage):  # not in the patterns at the corners
        modules[10 + place // (size // 2), 10 + place % (size // 2)] ^= True
    image = np.kron(np.pad(~modules, 4, constant_values=True), np.ones((4, 4))) * 255
    return [each.text for each in zxing.read_barcodes(image.astype(np.uint8))]


def link_of(length: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_?=/.:"
    return "".join(random.Random(length).choices(letters, k=length))


def reads_back(version: int) -> None:
    text = link_of(LARGEST[version - 1])
    grid = qr_code(text)
    assert len(grid) == 17 + 4 * version
    assert read_by_zxing(grid) == [text]


@pytest.mark.parametrize("version", CHEAP)
def test_a_full_code_of_a_version_is_read_back(version: int) -> None:
    reads_back(version)
    assert len(qr_code(link_of(LARGEST[version - 1] + 1))) > 17 + 4 * version


@pytest.mark.slow
@pytest.mark.parametrize("version", range(1, 41))
def test_a_full_code_of_every_version_is_read_back(version: int) -> None:
    reads_back(version)


@pytest.mark.parametrize("text", ["", "x", "https://bench.example.org/garden/join?invitation=" + "a" * 43, "grün 😀"])
def test_texts_of_any_kind_are_read_back(text: str) -> None:
    assert read_by_zxing(qr_code(text)) == ([text] if text else read_by_zxing(qr_code("")))


def test_a_damaged_code_is_still_read() -> None:
    """Level M repairs 15 % of the codewords."""
    text = link_of(100)
    assert read_by_zxing(qr_code(text), damage=8) == [text]


def test_a_text_that_no_code_holds_is_refused() -> None:
    assert len(qr_code("x" * 2331)) == 177
    with pytest.raises(DataError, match=r"at most 2,331 bytes, found 2,332"):
        qr_code("x" * 2332)


def test_the_picture_has_a_quiet_zone_a_label_and_nothing_that_runs() -> None:
    svg = qr_svg("x", 'a "label" <b>')
    assert 'viewBox="0 0 29 29"' in svg
    assert 'aria-label="a &quot;label&quot; &lt;b&gt;"' in svg
    assert not re.search(r"style|script|href|url\(", svg)
    drawn = {(int(x) - 4, int(y) - 4) for x, y in re.findall(r"M(\d+) (\d+)h", svg)}
    grid: Any = qr_code("x")
    assert drawn == {(x, y) for y, row in enumerate(grid) for x, dark in enumerate(row) if dark}
