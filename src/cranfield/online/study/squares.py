"""Latin squares: orders in which everything comes in every place equally often.

A Williams square also has everything right before everything else equally often; with an odd number of things it takes
twice as many orders. A pair of orthogonal squares (Graeco-Latin) has every pair of things equally often; there is none
of 2 or 6 things.
"""

from __future__ import annotations

Square = list[tuple[int, ...]]


def latin(n: int) -> Square:
    """The cyclic square.

    >>> latin(3)
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    return [tuple((row + place) % n for place in range(n)) for row in range(n)]


def williams(n: int) -> Square:
    """A square balanced for what comes right before (Williams, 1949); of odd n, two squares.

    >>> williams(4)
    [(0, 3, 1, 2), (1, 0, 2, 3), (2, 1, 3, 0), (3, 2, 0, 1)]
    """
    zigzag = [(place // 2) if place % 2 == 0 else n - 1 - place // 2 for place in range(n)]
    square = [tuple((row + first) % n for first in zigzag) for row in range(n)]
    return square if n % 2 == 0 or n == 1 else [*square, *(tuple(reversed(row)) for row in square)]


def graeco_latin(n: int) -> tuple[Square, Square] | None:
    """Two orthogonal squares: with an odd number, or 4, 8 or 16; None where none is known here.

    >>> graeco_latin(3)
    ([(0, 1, 2), (1, 2, 0), (2, 0, 1)], [(0, 2, 1), (1, 0, 2), (2, 1, 0)])
    """
    if n % 2:
        return latin(n), [tuple((row + 2 * place) % n for place in range(n)) for row in range(n)]
    if n not in POLYNOMIALS:
        return None
    one, other = (
        [tuple(row ^ _product(factor, place, n) for place in range(n)) for row in range(n)] for factor in (1, 2)
    )
    return one, other


POLYNOMIALS = {4: 0b111, 8: 0b1011, 16: 0b10011}  # irreducible over GF(2), by the order of their fields


def _product(a: int, b: int, n: int) -> int:
    """The product in the field of n elements."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
        a ^= POLYNOMIALS[n] if a & n else 0
    return product
