"""The test collections that lectures name: what they should hold, and where each can be had.

`lecture` is what is taught, `published` what the files or their keepers say; where the two differ both are shown, and
neither is taken for the truth. `check` compares a collection with both and reports a difference without refusing it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


COUNTS = {
    "documents": "documents",
    "topics": "topics",
    "megabytes": "MB",
    "terms": "terms/doc",
    "judgments": "judgments",
}
"""What is counted, and how a table heads it."""


@dataclass(frozen=True)
class Entry:
    """One collection: counts as taught and as published, and how to get it."""

    name: str
    title: str
    about: str
    lecture: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    layout: str = ""  # what `cranfield import --from` takes
    ir_datasets: str = ""
    files: str = ""
    stems: str = ""  # what its files' names start with, as a pattern
    remark: str = ""
    above: tuple[str, ...] = ()  # what is taught as "more than"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "lecture": dict(self.lecture),
            "published": dict(self.published),
            "layout": self.layout,
            "ir_datasets": self.ir_datasets,
            "files": self.files,
            "remark": self.remark,
            "source": self.source,
            "differences": self.differences(),
        }

    def row(self) -> dict[str, Any]:
        """Its row for a program: one plain number a cell, as taught and as published; None where none is known."""
        counts = {
            f"{what}_{word}": side.get(what)
            for what in COUNTS
            for word, side in (("taught", self.lecture), ("published", self.published))
        }
        return {"name": self.name, **counts, "from": self.source}

    def cells(self) -> list[str]:
        """Its row in a table: name, counts as taught / as published, where to get it."""
        shown = []
        for what in COUNTS:
            sides = [side[what] for side in (self.lecture, self.published) if what in side]
            figures = [f"{value:,.0f}" if value == int(value) else f"{value:,g}" for value in sides]
            if what in self.above:
                figures[0] = f">{figures[0]}"
            shown.append(" / ".join(dict.fromkeys(figures)))
        return [self.name, *(text or "–" for text in shown), self.source]

    @property
    def source(self) -> str:
        """Where it can be had, in a few words."""
        known = f"ir_datasets:{self.ir_datasets}" if self.ir_datasets else ""
        files = f"{self.layout} files ({self.files})" if self.layout and self.files else self.files
        return "; ".join(part for part in (known, files) if part) or "no public copy is known"

    def differences(self) -> list[str]:
        """Where the taught and the published counts differ."""
        return [
            f"{what}: {self.lecture[what]:,.0f} taught, {self.published[what]:,.0f} published"
            for what in self.lecture
            if what in self.published and self.lecture[what] != self.published[what]
        ]


def _counts(
    documents: float | None = None,
    topics: float | None = None,
    megabytes: float | None = None,
    terms: float | None = None,
    judgments: float | None = None,
) -> dict[str, float]:
    given = {"documents": documents, "topics": topics, "megabytes": megabytes, "terms": terms, "judgments": judgments}
    return {name: value for name, value in given.items() if value is not None}


CATALOGUE: dict[str, Entry] = {
    each.name: each
    for each in (
        Entry(
            "adi",
            "ADI",
            "papers of the American Documentation Institute",
            _counts(82, 35),
            _counts(82, 35, judgments=170),
            "smart",
            files="ADI.ALL, ADI.QRY, ADI.REL",
            stems="adi",
        ),
        Entry(
            "ait",
            "AIT",
            "a small collection with many judgments a topic",
            _counts(2109, 14, 2, 400, 10000),
            remark="the lectures give more than 10,000 judgments",
            above=("judgments",),
        ),
        Entry(
            "cacm",
            "CACM",
            "titles and abstracts of Communications of the ACM, 1958-1979",
            _counts(3204, 64, 2, 24.5),
            _counts(3204, 64, judgments=796),
            "smart",
            files="cacm.all, query.text, qrels.text",
            stems="cacm",
            remark="52 of the 64 topics are judged; more than half of the documents have a title only",
        ),
        Entry(
            "cisi",
            "CISI",
            "information science abstracts",
            _counts(1460, 112, 2, 46.5),
            _counts(1460, 112, judgments=3114),
            "smart",
            files="CISI.ALL, CISI.QRY, CISI.REL",
            stems="cisi",
            remark="76 of the 112 topics are judged",
        ),
        Entry(
            "cranfield",
            "Cranfield",
            "aerodynamics abstracts, judged exhaustively by those who asked",
            _counts(1400, 225, 2, 53.1),
            _counts(1400, 225, judgments=1837),
            "smart",
            "cranfield",
            "cran.all.1400, cran.qry, cranqrel",
            stems="cran",
            remark="judgments count the topics by position, codes run from 1 (best) to 4, and -1 marks the source paper",
        ),
        Entry(
            "gov2",
            "GOV2",
            "a crawl of the .gov domain, 2004",
            _counts(25_000_000, 10_000, 426_000, 956, 1_000),
            _counts(25_205_179, 150, 426_000, judgments=135_352),
            "trec",
            "gov2/trec-tb-2004",
            "distributed by the University of Glasgow for a fee",
            stems="gov2",
            remark="published: the ad hoc topics of three Terabyte tracks (gov2/trec-tb-2004, -2005, -2006)",
        ),
        Entry(
            "lisa",
            "LISA",
            "Library and Information Science Abstracts, 1982",
            _counts(5872, 35, 3),
            _counts(6004, 35),
            "lisa",
            files="LISA0.001 …, LISA.QUE, LISA.REL",
            stems="lisa",
            remark="copies differ in the number of documents",
        ),
        Entry(
            "medline",
            "Medline",
            "medical abstracts (MED)",
            _counts(1033, 30, 1),
            _counts(1033, 30, judgments=696),
            "smart",
            files="MED.ALL, MED.QRY, MED.REL",
            stems="med",
        ),
        Entry(
            "npl",
            "NPL",
            "titles and abstracts from electronics (Vaswani)",
            _counts(11429, 93, 3),
            _counts(11429, 93, judgments=2083),
            "npl",
            "vaswani",
            "doc-text, query-text, rlv-ass",
            stems="doc-text|query-text|rlv-ass|npl|vaswani",
        ),
        Entry(
            "ohsumed",
            "OHSUMED",
            "references of MEDLINE, 1987-1991",
            _counts(348_566, 106, 400, 250, 16_140),
            _counts(348_566, 106, judgments=16_140),
            "smart",
            files="ohsumed.87 … ohsumed.91",
            stems="ohsumed",
            remark="the judgments name documents by .U, which is the id here",
        ),
        Entry(
            "reuters",
            "Reuters",
            "newswire of 1987 (Reuters-21578)",
            _counts(21_578, 672, 28, 131),
            _counts(21_578),
            files="reut2-000.sgm …",
            stems="reut",
            remark="made for classification: the 672 are categories; convert the stories to JSON lines first",
        ),
        Entry(
            "time",
            "TIME",
            "articles of TIME magazine, 1963",
            {},
            _counts(423, 83, judgments=324),
            "time",
            files="TIME.ALL, TIME.QUE, TIME.REL",
            stems="time",
            remark="its letter speaks of 425 documents; TIME.REL holds 253 judgments, TIME.REL.ALL 324, by position",
        ),
    )
}


def recognised(layout: str, names: Iterable[str]) -> str:
    """The collection that files of this layout and these names are known to be of, or nothing.

    >>> recognised("smart", ["cran.all.1400", "cran.qry", "cranqrel"]), recognised("jsonl", ["time.jsonl"])
    ('cranfield', '')
    """
    if layout == "ir_datasets":
        asked = {name.removeprefix("ir_datasets:") for name in names}
        return next(
            (entry.name for entry in CATALOGUE.values() if entry.ir_datasets in asked and entry.ir_datasets), ""
        )
    fitting = [
        entry.name
        for entry in CATALOGUE.values()
        if entry.layout == layout and any(re.match(rf"(?:{entry.stems})(?![a-pr-z])", name.lower()) for name in names)
    ]
    return fitting[0] if len(fitting) == 1 else ""
