"""SMART's files (Cranfield, CACM, CISI, MED, ADI, OHSUMED): `.I 1` starts a document or topic, `.T .A .B .W` its fields.

The files are not as clean as the rule. A field may come twice (a second `.W` in Cranfield's 576, an `.A` for each
author in CISI) and is then joined; `.W` may be missing (CACM); a marker may carry trailing blanks; a last `.I` may
stand without a number. Judgments are columns whose third may be a code (Cranfield) or nothing at all (the `.REL` of
CISI and ADI: `topic document 0 0.000000`), and topics may be counted by position instead of by `.I`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.collection import Document, Topic
from cranfield.errors import BadLineError
from cranfield.importers.source import ClassicSource, Files, Judgment, Options, head_of, squeezed, without_zeros

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class Smart(ClassicSource):
    """Documents, topics and judgments in the files of the SMART system."""

    name = "smart"
    about = "SMART: .I starts a document or topic, .T .A .B .W its fields (Cranfield, CACM, CISI, MED, ADI, OHSUMED)"
    place = 1
    grades = "auto"
    topic_ids = "auto"
    document_names = (r".*\.all(\.\d+)?", r"ohsumed\.\d+")
    topic_names = (r".*\.(qry|que)", r"quer(y|ies)\.te?xt")
    qrels_names = (r"cranqrel", r"qrels\.te?xt", r".*\.rel", r".*qrels?(\.txt)?")
    begins = re.compile(rb"(?:\s*[\r\n])?\.I(?:[^\S\r\n]+\S+)?[^\S\r\n]*(?:[\r\n]|\Z)")

    @classmethod
    def rest(cls, folder: str, options: Options) -> Files:
        """Topics begin with `.I` as documents do."""
        files = super().rest(folder, options)
        return replace(files, topics=[name for name in files.topics if cls.begins.match(head_of(name))])

    def documents_in(self, path: str) -> Iterator[Document]:
        """One for each `.I`; OHSUMED's `.U` is the id where there is one."""
        for identifier, line, fields in self._records(path):
            self.at = (path, line)
            text = "\n".join(fields.get("W", [])).strip("\n")
            shown = _joined(fields, "U") or identifier
            yield Document(shown, _joined(fields, "T"), text, _others(fields, "TWU"))

    def topics_in(self, path: str) -> Iterator[Topic]:
        """The question in `.W`; where there is a title as well (CISI's later ones), the text describes it."""
        for identifier, _, fields in self._records(path):
            title, text = _joined(fields, "T"), _joined(fields, "W")
            yield Topic(identifier, title or text, text if title else "", fields=_others(fields, "TW"))

    def judgments_in(self, path: str) -> Iterator[Judgment]:
        """Two to four columns: topic, document, and a code or zeros; a file in TREC's own columns is read as such."""
        rows = [(number, line.split()) for number, line in self.lines(path) if line.strip()]
        in_trec = bool(rows) and all(len(row) == 4 and _is_trec(row) for _, row in rows[:50])
        for number, row in rows:
            if not 2 <= len(row) <= 5:
                problem = f"expected topic, document and perhaps a code, found {' '.join(row)!r:.60}"
                raise BadLineError(path, number, problem)
            document, grade = (row[2], row[3]) if in_trec else (row[1], row[2] if len(row) == 3 else "1")
            try:
                value = float(grade)
            except ValueError:
                raise BadLineError(path, number, f"expected a code, found {grade!r:.60}") from None
            yield Judgment(without_zeros(row[0]), without_zeros(document), value, path, number)

    def _records(self, path: str) -> Iterator[tuple[str, int, dict[str, list[str]]]]:
        """The id, the line and the fields of each record, a field being its lines."""
        identifier, begun, current = "", 0, None
        fields: dict[str, list[str]] = {}
        for number, line in self.lines(path):
            if start := START.match(line):
                if identifier:
                    yield identifier, begun, fields
                identifier, begun, fields, current = without_zeros(start[1] or ""), number, {}, None
            elif not identifier:
                if line.strip():
                    found = ".I" if begun else line
                    raise BadLineError(path, begun or number, f"expected .I and a number, found {found!r:.60}")
            elif marker := MARKER.match(line):
                current = marker[1]
                if current in fields and current == "W":
                    place = f"{os.path.basename(path)}:{number}"
                    self.notes.append(f"{place}: {identifier} has a second .W; the two are joined")
                fields.setdefault(current, [])
            elif current is not None:
                fields[current].append(line)
            elif line.strip():
                problem = f"expected a field (.T, .A, .B, .W …) after .I {identifier}, found {line!r:.60}"
                raise BadLineError(path, number, problem)
        if identifier:
            yield identifier, begun, fields


def _joined(fields: dict[str, list[str]], key: str) -> str:
    return squeezed(" ".join(fields.get(key, [])))


def _others(fields: dict[str, list[str]], known: str) -> dict[str, str | list[str]]:
    """The fields but those that are known, by their names; those of one item a line as lists."""
    others: dict[str, str | list[str]] = {}
    for key, lines in fields.items():
        value = [squeezed(line) for line in lines if line.strip()] if key in LISTS else squeezed(" ".join(lines))
        if value and key not in known:
            others[FIELDS.get(key, key.lower())] = value
    return others


def _is_trec(row: list[str]) -> bool:
    """Whether four columns are `topic 0 document grade` (MED) and not SMART's `topic document 0 0.000000`."""
    return row[1] == "0" and "." not in row[3]
