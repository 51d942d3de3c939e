"""Findings: problems of known kinds, each with how often it occurs, where first, and what to do about it.

The severity, the meaning and the advice of a kind of problem stand in findings.toml and nowhere else; docs/check.md and
docs/collections.md show the same tables. `check` reports findings, and so does every verb that scores (doubts.py).
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cranfield.packaged import data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
SHOWN = 5  # how many lines or names a finding shows


@dataclass(frozen=True)
class Code:
    """A kind of problem: how grave it is, what it is, and why it matters and what to do."""

    severity: Severity
    what: str
    advice: str


_tables = tomllib.loads(data("findings.toml").decode())
CODES, COLLECTION_CODES = (
    {name: Code(**entry) for name, entry in _tables[about].items()} for about in ("files", "collections")
)


@dataclass(frozen=True)
class Finding:
    """One kind of problem in one file: how often, where first, and what to do about it."""

    file: str
    line: int | None
    severity: Severity
    code: str
    message: str
    count: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        code: str,
        file: str,
        detail: str,
        count: int | None = None,
        *,
        names: Sequence[str] = (),
        line: int | None = None,
        examples: Iterable[str] = (),
    ) -> Finding:
        """A problem of a known kind: what exactly was found, how often, and the first of the ids that it concerns."""
        kind = CODES.get(code) or COLLECTION_CODES[code]
        exactly = ": ".join(filter(None, (kind.what, detail, some(names))))
        number = (len(names) or 1) if count is None else count
        return cls(file, line, kind.severity, code, f"{exactly}. {kind.advice}", number, tuple(examples))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**asdict(self), "examples": list(self.examples)}

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.severity} [{self.code}] {self.message}"

    def lines(self) -> Iterator[str]:
        """It, and its first lines below."""
        yield str(self)
        yield from (f"    {example}" for example in self.examples)
        if self.examples and self.count > len(self.examples):
            yield f"    … {self.count - len(self.examples):,} more"


def show(text: str) -> str:
    """An id or a line as a message quotes it."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few names, quoted, and a sign that there are more."""
    return ", ".join(map(show, names[:most])) + (" …" if len(names) > most else "")
