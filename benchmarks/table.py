"""Rows of results, as text for the terminal, as plain values for the history, as Markdown for the pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEAD = ("what", "set", "cranfield", "", "against", "", "result", "bar", "")


@dataclass(frozen=True)
class Row:
    """Ours beside another: `result` is what the bar is about, in `unit`."""

    what: str
    set: str
    ours: str
    mine: Spread
    against: str
    other: Spread | None
    result: float
    unit: str = "×"  # of the result: × or ms or MB
    measured: str = "s"  # of both sides: s or ms or MB
    sign: str = ""  # ≥ or ≤, where there is a bar
    bar: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the bar is met; empty where there is none."""
        if self.bar is None:
            return ""
        met = self.result >= self.bar if self.sign == "≥" else self.result <= self.bar
        return "met" if met else "missed"

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        sides = {"mine": self.mine.plain(), "other": self.other.plain() if self.other else None}
        return {**self.__dict__, **sides, "result": round(self.result, 4), "verdict": self.verdict}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Row:
        """Back from plain values."""
        given = {key: value for key, value in plain.items() if key != "verdict"}
        sides = {key: Spread(**given[key]) if given[key] else None for key in ("mine", "other")}
        return cls(**{**given, **sides})

    def cells(self) -> list[str]:
        """As the cells of a table."""
        bar = "" if self.bar is None else f"{self.sign} {_number(self.bar)} {self.unit}"
        other = _spread(self.other, self.measured) if self.other else ""
        result = f"{_number(self.result)} {self.unit}"
        mine = _spread(self.mine, self.measured)
        return [self.what, self.set, self.ours, mine, self.against, other, result, bar, self.verdict]


def _number(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 100 or value == int(value) else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _spread(spread: Spread, unit: str) -> str:
    scale = {"s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9, "MB": 1e-6}[unit]
    digits = 3 if unit == "s" and spread.median < 10 else 1
    median, low, high = (f"{value * scale:.{digits}f}" for value in (spread.median, spread.low, spread.high))
    return f"{median} {unit}" if spread.count < 2 else f"{median} {unit} ({low}–{high})"


def together(rows: Sequence[Row]) -> list[Row]:
    """Rows about the same thing next to each other."""
    order = list(dict.fromkeys(row.what for row in rows))
    return sorted(rows, key=lambda row: order.index(row.what))


def text(rows: Sequence[Row]) -> str:
    """A table for the terminal."""
    cells = [list(HEAD), *(row.cells() for row in rows)]
    for i in range(len(cells) - 1, 1, -1):  # what repeats is said once
        if cells[i][0] == cells[i - 1][0]:
            cells[i][0] = ""
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def markdown(entry: dict[str, Any]) -> str:
    """An entry of the history as Markdown: the machine, the sets, the table."""
    peers = ", ".join(f"{name} {version}" for name, version in entry["peers"].items()) or "none"
    lines = [
        f"Measured {entry['date'][:10]} with cranfield {entry['version']} ({entry['kernel']}) on {describe(entry['machine'])};",
        f"peers: {peers}.",
        "",
        *(f"- {line}" for line in entry["sets"]),
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
        *("| " + " | ".join(Row.read(plain).cells()) + " |" for plain in entry["rows"]),
    ]
    return "\n".join(lines)


def describe(machine: dict[str, Any]) -> str:
    """The machine in a few words."""
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}, NumPy {machine['numpy']}"
    )


def append(history: Path, entry: dict[str, Any]) -> None:
    """Add an entry to the history: one line of JSON."""
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def last(history: Path) -> dict[str, Any]:
    """The newest entry of the history."""
    lines = history.read_text(encoding="utf-8").splitlines() if history.exists() else []
    if not lines:
        raise FileNotFoundError(f"{history.name}: nothing measured yet; run `make bench` first")
    entry: dict[str, Any] = json.loads(lines[-1])
    return entry
