"""What `check` reports: all findings together as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Layout, Lines
from cranfield.columns import counted
from cranfield.findings import SEVERITIES, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Findings(Answer, list[Finding]):
    """All that was found, gravest first in each file."""

    @property
    def counts(self) -> dict[Severity, int]:
        """How many there are of each severity."""
        return {word: sum(finding.severity == word for finding in self) for word in SEVERITIES}

    def content(self, how: Layout) -> Iterator[Lines]:
        """A count, then by file, each with its first lines."""
        summary = ", ".join(counted(n, word) for word, n in self.counts.items() if n)
        yield Lines([summary or "nothing to report", *(line for finding in self for line in finding.lines())])

    def plain(self, how: Layout) -> dict[str, Any]:
        counts = {f"{word}s": n for word, n in self.counts.items()}
        return {"findings": [finding.to_dict() for finding in self], **counts}

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """One row a finding."""
        yield "file", "line", "severity", "code", "message", "count"
        for finding in self:
            yield finding.file, finding.line, finding.severity, finding.code, finding.message, finding.count


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """The gravest first, otherwise as they come."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def render(findings: Iterable[Finding]) -> str:
    """Findings as text for people."""
    return Findings(findings).to_text()


def to_dict(findings: Iterable[Finding]) -> dict[str, Any]:
    """Findings as plain values, for JSON, with how many there are of each severity."""
    values: dict[str, Any] = Findings(findings).to_dict()
    return values
