"""Findings: problems of known kinds, each with how often it occurs, where first, and what to do about it.

Only findings.toml holds the severity, meaning and advice of each kind of problem; docs/check.md and docs/collections.md
show the same tables. `check` and the sanity checks of every function that computes scores report findings.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cranfield.base.package_files import data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
SHOWN = 5  # how many lines or names a finding shows


@dataclass(frozen=True)
class Code:
    """A kind of problem: its severity, its meaning, why it matters and what to do."""

    severity: Severity
    what: str
    advice: str


_tables = tomllib.loads(data("base/findings.toml").decode())
CODES, COLLECTION_CODES = (
    {name: Code(**entry) for name, entry in _tables[about].items()} for about in ("files", "collections")
)


@dataclass(frozen=True)
class Finding:
    """One kind of problem in one file: how often it occurs, its first lines, and what to do."""

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
        """A finding with the severity and advice of its code; `names` are the ids concerned."""
        kind = CODES.get(code) or COLLECTION_CODES[code]
        exactly = ": ".join(filter(None, (kind.what, detail, some(names))))
        number = (len(names) or 1) if count is None else count
        return cls(file, line, kind.severity, code, f"{exactly}. {kind.advice}", number, tuple(examples))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "examples": list(self.examples)}

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.severity} [{self.code}] {self.message}"

    def lines(self) -> Iterator[str]:
        """The text of the finding, and its first lines below."""
        yield str(self)
        yield from (f"    {example}" for example in self.examples)
        if self.examples and self.count > len(self.examples):
            yield f"    … {self.count - len(self.examples):,} more"


def show(text: str) -> str:
    """An id or a line as a message quotes it."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few names in quotes, with … if there are more."""
    return ", ".join(map(show, names[:most])) + (" …" if len(names) > most else "")
