"""The test collections that lectures name: their published sizes, and where to get each.

The data is in catalogue.toml. `lecture` has the counts that are taught, `published` those of the files or their owners.
Where the two differ, both are shown, as neither is certain. `check` compares a collection with both and reports a
difference; it does not refuse the collection.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.base.package_files import data
from cranfield.base.results import Answer, Layout, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


COUNTS = {
    "documents": "documents",
    "topics": "topics",
    "megabytes": "MB",
    "terms": "terms/doc",
    "judgments": "judgments",
}
"""The counts of a collection, and the headings of their columns."""


@dataclass(frozen=True)
class CatalogueEntry:
    """One collection: counts as taught and as published, and how to get it."""

    name: str
    title: str
    about: str
    lecture: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    layout: str = ""  # the value for `cranfield import --from`
    ir_datasets: str = ""
    files: str = ""
    stems: str = ""  # a pattern for how its file names start
    remark: str = ""
    above: Sequence[str] = ()  # counts that are taught as "more than"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        facts = {name: value for name, value in asdict(self).items() if name not in ("stems", "above")}
        return {**facts, "source": self.source, "differences": self.differences()}

    def row(self) -> dict[str, Any]:
        """The entry as a row for a program: one number per cell, taught and published; None if unknown."""
        counts = {
            f"{what}_{word}": side.get(what)
            for what in COUNTS
            for word, side in (("taught", self.lecture), ("published", self.published))
        }
        return {"name": self.name, **counts, "from": self.source}

    def cells(self) -> list[str]:
        """The entry as a row of the table: name, counts (taught / published), source."""
        counts = []
        for what in COUNTS:
            sides = [side[what] for side in (self.lecture, self.published) if what in side]
            figures = [f"{value:,.0f}" if value == int(value) else f"{value:,g}" for value in sides]
            if what in self.above:
                figures[0] = f">{figures[0]}"
            counts.append(" / ".join(dict.fromkeys(figures)))
        return [self.name, *(text or "–" for text in counts), self.source]

    @property
    def source(self) -> str:
        """Where to get the collection, in a few words."""
        data_set = f"ir_datasets:{self.ir_datasets}" if self.ir_datasets else ""
        files = f"{self.layout} files ({self.files})" if self.layout and self.files else self.files
        return "; ".join(part for part in (data_set, files) if part) or "no public copy is known"

    def differences(self) -> list[str]:
        """Where the taught and the published counts differ."""
        return [
            f"{what}: {self.lecture[what]:,.0f} taught, {self.published[what]:,.0f} published"
            for what in self.lecture
            if what in self.published and self.lecture[what] != self.published[what]
        ]


class Catalogue(Answer, dict[str, CatalogueEntry]):
    """Collections by name."""

    def content(self, how: Layout) -> Iterator[Table]:
        """One row per collection."""
        head = ["name", *COUNTS.values(), "from"]
        spare = [i for i, name in enumerate(head) if name in ("MB", "terms/doc")]
        yield Table(head, [entry.cells() for entry in self.values()], tail=True, spare=spare)

    def plain(self, how: Layout) -> list[dict[str, Any]]:
        return [entry.to_dict() for entry in self.values()]

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """One row per collection, one number per cell."""
        rows = [entry.row() for entry in self.values()]
        yield list(rows[0])
        yield from (list(row.values()) for row in rows)

    def limits(self, shell: bool = False, verbose: bool = False) -> list[str]:
        return self.notes(shell)

    def notes(self, shell: bool = False) -> list[str]:
        """How to read the counts, and remarks on single collections."""
        remarks = [f"note: {entry.title}: {entry.remark}" for entry in self.values() if entry.remark]
        return ["counts: as taught / as published where the two differ", *remarks]


_entries = tomllib.loads(data("formats/catalogue.toml").decode())
CATALOGUE = Catalogue({name: CatalogueEntry(name, **facts) for name, facts in _entries.items()})


def recognised(layout: str, names: Iterable[str]) -> str:
    """The name of the collection that files of this layout and with these names belong to, or "".

    >>> recognised("smart", ["cran.all.1400", "cran.qry", "cranqrel"]), recognised("jsonl", ["time.jsonl"])
    ('cranfield', '')
    """
    if layout == "ir_datasets":
        data_sets = {name.removeprefix("ir_datasets:") for name in names}
        matches = (each for each in CATALOGUE.values() if each.ir_datasets and each.ir_datasets in data_sets)
        return next((each.name for each in matches), "")
    fitting = [
        entry.name
        for entry in CATALOGUE.values()
        if entry.layout == layout and any(re.match(rf"(?:{entry.stems})(?![a-pr-z])", name.lower()) for name in names)
    ]
    return fitting[0] if len(fitting) == 1 else ""
