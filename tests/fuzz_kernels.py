"""Feed mutated files to the C core, and a part of them to its NumPy twin as well.

    python tests/fuzz_kernels.py --inputs 10000000 --compare 100000 --seed 0

Every input goes through the parser and through the fused scan (one and two stretches); every compared input
must give equal tables, hits and faults in both kernels. A crash or a hang ends the process, a difference stops it
with the input printed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.kernels import native, twin
from cranfield.base.kernels.table import HitRows, LineLayout, Order, RowTable, Strings
from cranfield.formats.files.trec import QRELS, RUN

if TYPE_CHECKING:
    from collections.abc import Callable

MARCO = LineLayout("topic document rank", topic=0, document=1, value=2, descending=False, most=3)
LAYOUTS = [
    RUN,
    RUN._replace(most=None),
    RUN._replace(comments=False, blanks=False),
    QRELS,
    QRELS._replace(blanks=False),
    MARCO,
]
ORDERS = [
    Order(),
    Order(ties="ascending", duplicates="last"),
    Order(ties="input", duplicates="first"),
    Order(single=True, duplicates="best"),
    Order(collapse=b"#", drop_self=True),
    Order(ties="input", single=True, drop_self=True, duplicates="last"),
]
PIECES = [
    *(
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"\r",
        b"\x0b",
        b"\x0c",
        b"\0",
        b"\x1f",
        b"#",
        b"\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
    ),
    *(b"nan", b"inf", b"-inf", b"Infinity", b"1e", b"1e5", b"1e400", b"1e-400", b"-", b"+", b".", b"0x10", b"1_0"),
    *(b"0.1", b"12345678901234567890", b"0.30000000000000004", b"9007199254740993", b"1.7976931348623159e308"),
    *(b"2.2250738585072011e-308", b"4.35", b"16777217", b"8.41470984807896506653e-1", b"12345.678901234567"),
    *(
        b"q1",
        b"q2",
        b"d1",
        b"d2",
        b"d1#3",
        b"Q0",
        b"a-rather-long-document-identifier-of-more-than-sixty-four-bytes-in-all",
    ),
]
SEEDS = [
    b"q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.25 t\nq1 Q0 d3 3 2.25 t\nq2 Q0 d1 1 1.0 t\nq2 Q0 q2 2 0.5 t\n",
    b"q2\tQ0\td9\t1\t12.345678\trun\r\nq1\tQ0\td1\t1\t7.000001\trun\r\nq2\tQ0\td2\t2\t12.345678\trun",
    b"# comment\nq1 0 d1 1\nq1 0 d2 0\nq1 1 d3 -2\nq2 0 d1 0.5\n\nq3 0 x 3\n",
    b"q1 d1 1\nq1 d2 2\nq2 d1 1\nq1 d3 3\n",
    b"q1 Q0 d1#1 1 3 t\nq1 Q0 d1#2 2 4 t\nq1 Q0 d2 3 4 t\nq1 Q0 q1 4 9 t\nx1 Q0 d2 3 4 t\n",
]


def index_columns() -> tuple[Strings, Any, Strings]:
    topics = Strings.of([b"q1", b"q2", b"q3"])
    names = [b"d1", b"d2", b"d3", b"d1#3", b"d1", b"d2", b"q2", b"d9", b"\xff", b"d1", b"d2"]
    rows = [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    for name in (b"d%d", b"FBIS4-%05d", b"a-rather-long-identifier-of-a-document-%d", b"%07d"):
        for topic in range(3):
            names += [name % n for n in range(10, 900, 7 + topic)]
            rows += [topic] * len(range(10, 900, 7 + topic))
    order = np.argsort(rows, kind="stable")
    return topics, np.array(rows, np.int32)[order], Strings.of([names[i] for i in order])


def block(rng: random.Random) -> bytes:
    """A run of a hundred lines or more, as systems write them: what the quick reader is for, and now and then what it is not."""
    blank, end = rng.choice([b" ", b"\t"]), rng.choice([b"\n", b"\n", b"\n", b"\r\n"])
    name = rng.choice([b"d%d", b"d%d", b"FBIS4-%05d", b"a-rather-long-identifier-of-a-document-%d", b"%07d"])
    show = rng.choice(SCORES)
    topics = rng.sample([b"q1", b"q2", b"q3", b"other", b"a-topic-of-some-length"], rng.randint(1, 4))
    lines = []
    for topic in topics:
        value, step = rng.choice([9.5, 0.75, -3.0, 1e6, 12345678.0]), rng.choice([0.0, 0.001, 0.25, 1e-9, 1e-15])
        documents = rng.sample(range(900), rng.randint(30, 180))
        shuffled = rng.random() < 0.3
        rows = []
        for rank, document in enumerate(documents, 1):
            value -= step * rng.choice([0, 1, 1, 1, 3])
            tag = b"run" if rng.random() < 0.97 else b"run-of-line-%d" % rank
            rows.append(blank.join([topic, b"Q0", name % document, b"%d" % rank, show(value, rng), tag]))
        if shuffled:
            rng.shuffle(rows)
        lines += rows
    return end.join(lines) + (end if rng.random() < 0.8 else b"")


SCORES: list[Callable[[float, random.Random], bytes]] = [
    lambda value, rng: b"%.6f" % value,
    lambda value, rng: b"%.1f" % value,
    lambda value, rng: repr(value).encode(),
    lambda value, rng: b"%.17g" % value,
    lambda value, rng: b"%.*f" % (rng.randint(0, 9), value),
    lambda value, rng: b"%d" % value,
    lambda value, rng: b"%.16f" % value if rng.random() < 0.9 else b"%.3e" % value,
    lambda value, rng: b"%.15f" % (abs(value) % 99),
    lambda value, rng: b"0.%d" % (10**15 + int(value) % 3),
]
"""How systems print their scores."""


def mutate(rng: random.Random) -> bytes:
    text = bytearray(block(rng) if rng.random() < 0.02 else rng.choice(SEEDS))
    if rng.random() < 0.3:
        text += rng.choice(SEEDS)
    for _ in range(rng.randint(0, 6)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.35:
            text[at:at] = rng.choice(PIECES)
        elif kind < 0.55:
            end = at + rng.randint(1, 4)
            text[at:end] = rng.choice(PIECES)
        elif kind < 0.7:
            del text[at : at + rng.randint(1, 12)]
        elif kind < 0.85:
            if at < len(text):
                text[at] = rng.randrange(256)
        else:
            start = rng.randint(0, len(text))
            text[at:at] = text[start : start + rng.randint(1, 40)]
    return bytes(text)


def plain(value: Any) -> Any:
    """A result in a form that can be compared: arrays as bytes, strings as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Strings):
        return list(value)
    if isinstance(value, (RowTable, HitRows)):
        return {name: plain(part) for name, part in vars(value).items()}
    return value


def outcome(call: Any, *args: Any) -> Any:
    try:
        return plain(call(*args))
    except twin.FaultError as error:
        return ("fault", *error.fault)
    except DataError as error:
        return ("error", str(error))


def compare(text: bytes, layout: LineLayout, order: Order, lenient: bool, indexes: tuple[Any, Any]) -> None:
    """Stop with the input if the kernels differ on it."""
    fast, slow = indexes
    pairs = [
        (outcome(native.parse, text, layout, lenient), outcome(twin.parse, text, layout, lenient)),
        (
            outcome(native.hits_of_text, fast, text, layout, order, lenient, 1),
            outcome(twin.hits_of_text, slow, text, layout, order, lenient),
        ),
        (
            outcome(native.hits_of_text, fast, text, layout, order, lenient, 3),
            outcome(twin.hits_of_text, slow, text, layout, order, lenient),
        ),
    ]
    for mine, reference in pairs:
        if mine != reference:
            raise AssertionError(f"{text!r}\n{layout}\n{order} lenient={lenient}\nC:     {mine}\nNumPy: {reference}")


def fuzz(inputs: int, compared: int, seed: int, progress: bool = False) -> None:
    """Run the fuzzer."""
    native.SMALL = 0  # so that short inputs are cut into several stretches as well
    rng = random.Random(seed)
    indexes = native.Index(*index_columns()), twin.Index(*index_columns())
    every = max(1, inputs // compared) if compared else 0
    started = time.monotonic()
    for i in range(inputs):
        text = mutate(rng)
        layout, order, lenient = rng.choice(LAYOUTS), rng.choice(ORDERS), rng.random() < 0.3
        if every and i % every == 0:
            compare(text, layout, order, lenient, indexes)
        else:
            shape, rule = native._layout(layout), native._order(order)
            native._core.parse(text, shape, lenient)
            native._core.scan(indexes[0].capsule, text, 0, len(text), shape, rule, lenient)
        if progress and i % 200_000 == 0:
            print(f"{i:,} inputs, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Fuzz the C core.")
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--compare", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    fuzz(given.inputs, given.compare, given.seed, progress=True)
    print(f"{given.inputs:,} inputs read, {given.compare:,} of them equal in both kernels")
