"""What was asked and what documents say, as far as a collection or a file tells: the words that a page puts beside ids."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.collection import Collection
from cranfield.formats.tables import DETECTED, Dialect
from cranfield.formats.topics import read_topic_table, table_of_topics

if TYPE_CHECKING:
    from collections.abc import Collection as Some
    from collections.abc import Iterable, Mapping

    from cranfield.collection import Document
    from cranfield.formats.format import Fields
    from cranfield.formats.topics import TopicTable


ROOM = 2_500_000  # letters of documents that a page may hold
LETTERS = (80, 240)  # of one document: where there are very many, and where there are few
VALUES = 24  # a column of more different values is no category
WIDEST = 40  # letters of a category


def collection_of(source: Any) -> Collection | None:
    """The collection that judgments were named by: itself, its folder, or the name of a bundled one."""
    if isinstance(source, Collection):
        return source
    if not isinstance(source, (str, os.PathLike)) or os.path.isfile(source):
        return None
    from cranfield.formats.folder import DOCUMENTS, bundled_names, file_in, read_collection

    path = os.fspath(source)
    known = os.path.isfile(file_in(path, DOCUMENTS)) or (not os.path.exists(path) and path in bundled_names())
    return read_collection(path) if known else None


def topics_of(
    collection: Collection | None,
    topics_file: str | None,
    fields: Fields | None = None,
    dialect: Dialect = DETECTED,
    lenient: bool = False,
) -> TopicTable | None:
    """What is known of the topics: from a file of them, or else from their collection."""
    if topics_file is not None:
        return read_topic_table(topics_file, fields, dialect, lenient)
    return None if collection is None else table_of_topics(collection.topics, collection.name)


def documents_of(qrels: Any, given: str | None = None) -> str | None:
    """Where documents lie: where it was said, or in the collection that judgments were named by."""
    if given is not None:
        return given
    collection = collection_of(qrels)
    return None if collection is None else collection.path


def documents_file(source: str) -> str:
    """The file of documents in a collection; or the file itself, which has the shape of a collection's documents.jsonl."""
    from cranfield.formats.folder import DOCUMENTS, file_in, folder_of

    return source if os.path.isfile(source) else file_in(folder_of(source), DOCUMENTS)


def categories(topics: TopicTable, shown: Some[str]) -> dict[str, Mapping[str, str]]:
    """The columns that sort topics into a few kinds.

    >>> from cranfield.formats.topics import TopicTable
    >>> known = TopicTable("t", {}, {"kind": {"1": "brand", "2": "brand", "3": "need"}, "query": {"1": "x", "2": "y"}})
    >>> list(categories(known, ["1", "2", "3"]))
    ['kind']
    """
    found = {}
    for name, column in topics.columns.items():
        values = [column.get(topic, "") for topic in shown]
        kinds = set(values) - {""}
        short = all(len(value) <= WIDEST and value[:1] not in "[{" for value in kinds)
        if short and 1 < len(kinds) <= VALUES and 2 * len(kinds) <= len(list(filter(None, values))) + 1:
            found[name] = column
    return found


def words_of_documents(documents: Iterable[Document], wanted: Some[str]) -> dict[str, tuple[str, str]]:
    """Title and first words of the documents that are shown, in as many letters as there is room for."""
    least, most = LETTERS
    letters = max(least, min(most, ROOM // max(len(wanted), 1)))
    return {each.id: _shortened(each, letters) for each in documents if each.id in wanted}


def _shortened(document: Document, letters: int) -> tuple[str, str]:
    """A title, and as much of the text as may follow; the first words stand in where there is no title."""
    title, text = " ".join(document.title.split()), " ".join(document.text.split())
    if not title:
        return first_words(text, letters), ""
    if text.startswith(title):  # some collections begin the text with the title
        text = text[len(title) :].lstrip(" .")
    title = first_words(title, letters)
    return title, first_words(text, letters - len(title)) if letters - len(title) >= LETTERS[0] // 2 else ""


def first_words(text: str, letters: int) -> str:
    """The beginning of a text, cut between words where that is possible.

    >>> first_words("boundary layer flow", 12), first_words("flow", 12)
    ('boundary…', 'flow')
    """
    if len(text) <= letters:
        return text
    start = text[: letters - 1]
    return (start.rpartition(" ")[0] or start).rstrip(" ,;:.–-") + "…"
