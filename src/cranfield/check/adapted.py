"""The rows of a file as somebody asked to see them: on another scale, by the ids of topics, each document once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cranfield.collection import without_duplicates
from cranfield.columns import counted
from cranfield.errors import CranfieldError
from cranfield.formats.by_text import ids_of_texts, joined_in_words, renamed
from cranfield.formats.format import USUAL
from cranfield.formats.grades import counted_as
from cranfield.formats.tables import DETECTED, Dialect
from cranfield.hearing import say, tell_used

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cranfield.check.file import File
    from cranfield.collection import Duplicates
    from cranfield.findings import Finding
    from cranfield.formats.format import Fields


class CheckedAs(NamedTuple):
    """How files are read for a check, as far as somebody said so."""

    fields: Fields = USUAL
    dialect: Dialect = DETECTED
    grades: Mapping[float, float] | None = None
    duplicates: Duplicates | None = None
    queries: Mapping[str, str] | None = None
    ignore_case: bool = False

    def adapt(self, file: File) -> Iterator[Finding]:
        """Change the rows of a file; what cannot be changed is a finding, and leaves nothing to look at."""
        if file.kind is None or not len(file.rows.topic):
            return
        if self.grades is not None and file.kind == "qrels":
            tell_used("grades")
            values, other = counted_as(file.rows.value, self.grades)
            if other.any():
                odd = ", ".join(f"{grade:g}" for grade in sorted({*file.rows.value[other].tolist()})[:5])
                named = ", ".join(f"{grade:g}" for grade in sorted(self.grades))
                what = f"{counted(int(other.sum()), 'grade')} that --grades does not name: {odd}; it names {named}"
                yield file.of_row("unreadable", what, int(other.sum()), int(other.argmax()))
                file.kind = None
                return
            file.rows = replace(file.rows, value=values)
        if self.queries is not None:
            try:
                ids = ids_of_texts(file.rows.topics.text(), self.queries, file.where, self.ignore_case)
            except CranfieldError as error:
                yield file.finding("unreadable", str(error).removeprefix(f"{file.where}: "))
                file.kind = None
                return
            if ids is not None:
                say([joined_in_words(file.where, len(ids))])
                file.rows = renamed(file.rows, ids)
        if self.duplicates not in (None, "error"):
            file.rows = without_duplicates(file.rows, self.duplicates)
