"""What documents say: titles or first words, of the few that are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_WORDS = 120  # characters


def titles(collection: str, documents: Iterable[str]) -> dict[str, str]:
    """The title of each document, or the first words of its text; the collection is read until all are found."""
    from cranfield.formats.folder import read_collection

    wanted = set(documents)
    answer: dict[str, str] = {}
    for document in read_collection(collection).documents() if wanted else ():
        if document.id in wanted:
            answer[document.id] = " ".join((document.title or document.text[:FIRST_WORDS]).split())
            wanted.remove(document.id)
            if not wanted:
                break
    return answer
