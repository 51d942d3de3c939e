"""SMART's files (Cranfield, CACM, CISI, MED, ADI, OHSUMED): `.I 1` starts a document or topic, `.T .A .B .W` its fields.

The files are not as clean as the rule. A field may come twice (a second `.W` in Cranfield's 576, an `.A` for each
author in CISI) and is then joined; `.W` may be missing (CACM); a marker may carry trailing blanks; a last `.I` may
stand without a number. Judgments are columns whose third may be a code (Cranfield) or nothing at all (the `.REL` of
CISI and ADI: `topic document 0 0.000000`), and topics may be counted by position instead of by `.I`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cranfield.collection import Document, Grade, Topic
from cranfield.errors import BadLineError
from cranfield.formats.sources.source import (
    Files,
    Judgment,
    Options,
    Source,
    gathered,
    head_of,
    named_like,
    squeezed,
    text_lines,
    without_zeros,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.collection import Qrels


MARKER = re.compile(r"\.([A-Z])\s*\Z")
START = re.compile(r"\.I(?:\s+(\S+))?\s*\Z")
FIELDS = {
    "A": "author",
    "B": "bibliography",
    "C": "categories",
    "K": "keywords",
    "M": "subjects",
    "N": "entry",
    "P": "type",
    "S": "source",
    "X": "references",
}
LISTS = {"A", "X"}  # one item a line

CRANFIELD_GRADES: dict[float, Grade] = {
    5: Grade(
        "source paper", "The paper that the question came from; marked -1 in the original, without a word about it."
    ),
    4: Grade("complete answer", "References which are a complete answer to the question."),
    3: Grade(
        "highly relevant",
        "References of a high degree of relevance, the lack of which either would have made the research impracticable "
        "or would have resulted in a considerable amount of extra work.",
    ),
    2: Grade(
        "useful",
        "References which were useful, as general background or as suggesting methods of tackling certain aspects.",
    ),
    1: Grade(
        "minimum interest", "References of minimum interest, for example those included from an historical viewpoint."
    ),
    0: Grade("of no interest", "References of no interest; none is in the judgments."),
}


class Smart(Source):
    """Documents, topics and judgments in the files of the SMART system."""

    name = "smart"
    about = "SMART: .I starts a document or topic, .T .A .B .W its fields (Cranfield, CACM, CISI, MED, ADI, OHSUMED)"
    family = "smart"
    grades = "auto"
    topic_ids = "auto"

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """A folder with the usual names (cran.all.1400, cacm.all, MED.ALL, ohsumed.87), or a file that starts with `.I`."""
        if not os.path.isdir(path):
            return Files([path]) if _is_marked(path) else None
        documents = [name for name in named_like(path, r".*\.all(\.\d+)?", r"ohsumed\.\d+") if _is_marked(name)]
        if not documents:
            return None
        topics = [name for name in named_like(path, r".*\.(qry|que)", r"quer(y|ies)\.te?xt") if _is_marked(name)]
        qrels = named_like(path, r"cranqrel", r"qrels\.te?xt", r".*\.rel", r".*qrels?(\.txt)?")
        return Files(documents, topics, qrels)

    def documents(self) -> Iterator[Document]:
        """One for each `.I`; OHSUMED's `.U` is the id where there is one."""
        for path in self.files.documents:
            for identifier, line, fields in _records(path, self.options.encoding, self.notes):
                others = {
                    FIELDS.get(key, key.lower()): _field(key, value)
                    for key, value in fields.items()
                    if key not in "TWU"
                }
                self.at = (path, line)
                text = "\n".join(fields.get("W", [])).strip("\n")
                title = squeezed(" ".join(fields.get("T", [])))
                shown = squeezed(" ".join(fields.get("U", []))) or identifier
                yield Document(shown, title, text, {key: value for key, value in others.items() if value})

    def topics(self) -> Iterator[Topic]:
        """The question in `.W`; where there is a title as well (CISI's later ones), the text describes it."""
        for path in self.files.topics:
            for identifier, _, fields in _records(path, self.options.encoding, self.notes):
                title, text = (squeezed(" ".join(fields.get(key, []))) for key in "TW")
                others = {
                    FIELDS.get(key, key.lower()): _field(key, value) for key, value in fields.items() if key not in "TW"
                }
                rest = {key: value for key, value in others.items() if value}
                yield Topic(identifier, title or text, text if title else "", fields=rest)

    def judgments(self) -> Qrels | None:
        """Two to four columns: topic, document, and a code or zeros; a file in TREC's own columns is read as such."""
        if not self.files.qrels:
            return None
        return gathered(
            (one for path in self.files.qrels for one in _judgments(path, self.options.encoding)), self.notes
        )


def _is_marked(path: str) -> bool:
    first = next((line for line in head_of(path).splitlines() if line.strip()), b"")
    return START.match(first.decode("latin-1")) is not None


def _records(path: str, encoding: str, notes: list[str]) -> Iterator[tuple[str, int, dict[str, list[str]]]]:
    """The id, the line and the fields of each record, a field being its lines."""
    identifier, fields, current = "", {}, None  # type: ignore[var-annotated]
    begun = 0  # the line of the last .I
    for number, line in text_lines(path, encoding):
        start = START.match(line)
        if start:
            if identifier:
                yield identifier, begun, fields
            identifier, begun, fields, current = without_zeros(start[1] or ""), number, {}, None
            continue
        if not identifier:
            if line.strip():
                found = ".I" if begun else line
                raise BadLineError(path, begun or number, f"expected .I and a number, found {found!r:.60}")
            continue
        marker = MARKER.match(line)
        if marker:
            current = marker[1]
            if current in fields and current == "W":
                notes.append(f"{os.path.basename(path)}:{number}: {identifier} has a second .W; the two are joined")
            fields.setdefault(current, [])
        elif current is not None:
            fields[current].append(line)
        elif line.strip():
            raise BadLineError(
                path, number, f"expected a field (.T, .A, .B, .W …) after .I {identifier}, found {line!r:.60}"
            )
    if identifier:
        yield identifier, begun, fields


def _field(key: str, value: list[str]) -> str | list[str]:
    if key in LISTS:
        return [squeezed(line) for line in value if line.strip()]
    return squeezed(" ".join(value))


def _judgments(path: str, encoding: str) -> Iterator[Judgment]:
    rows = [(number, line.split()) for number, line in text_lines(path, encoding) if line.strip()]
    in_trec = bool(rows) and all(len(row) == 4 and _is_trec(row) for _, row in rows[:50])
    for number, row in rows:
        if not 2 <= len(row) <= 5:
            raise BadLineError(
                path, number, f"expected topic, document and perhaps a code, found {' '.join(row)!r:.60}"
            )
        document, grade = (row[2], row[3]) if in_trec else (row[1], row[2] if len(row) == 3 else "1")
        try:
            value = float(grade)
        except ValueError:
            raise BadLineError(path, number, f"expected a code, found {grade!r:.60}") from None
        yield Judgment(without_zeros(row[0]), without_zeros(document), value, path, number)


def _is_trec(row: list[str]) -> bool:
    """Whether four columns are `topic 0 document grade` (MED) and not SMART's `topic document 0 0.000000`."""
    return row[1] == "0" and "." not in row[3]
