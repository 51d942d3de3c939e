"""What documents say: titles or first words, of the few that are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cranfield.collection import Document
    from cranfield.formats.shelf import Shelf

FIRST_WORDS = 120  # characters


def titles(collection: str | Shelf, documents: Iterable[str]) -> dict[str, str]:
    """The title of each document, or the first words of its text; a collection is read until all are found, a shelf is not."""
    wanted = dict.fromkeys(documents)
    found = _read(collection, set(wanted)) if isinstance(collection, str) else map(collection.get, wanted)
    return {
        document.id: " ".join((document.title or document.text[:FIRST_WORDS]).split())
        for document in found
        if document is not None
    }


def _read(collection: str, wanted: set[str]) -> Iterator[Document]:
    from cranfield.formats.folder import read_collection

    for document in read_collection(collection).documents() if wanted else ():
        if document.id in wanted:
            yield document
            wanted.remove(document.id)
            if not wanted:
                return
