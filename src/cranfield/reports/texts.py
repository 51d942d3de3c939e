"""The queries and document texts of a report, from a collection or a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Collection
from cranfield.formats.topic_tables import read_topic_table, table_of_topics

if TYPE_CHECKING:
    from collections.abc import Collection as Some
    from collections.abc import Iterable, Mapping

    from cranfield.base.collection import Document
    from cranfield.formats.topic_tables import TopicTable


ROOM = 2_500_000  # the maximum number of letters of documents on a page
LETTERS = (80, 240)  # letters per document: if there are very many, and if there are few
VALUES = 24  # a column with more distinct values is not a category
WIDEST = 40  # letters of a category


def collection_of(source: Any) -> Collection | None:
    """The collection that the judgments are named by: itself, its folder, or a bundled name."""
    if isinstance(source, Collection):
        return source
    if not isinstance(source, (str, os.PathLike)) or os.path.isfile(source):
        return None
    from cranfield.formats.collection_folder import DOCUMENTS, bundled_names, file_in, read_collection

    path = os.fspath(source)
    is_collection = os.path.isfile(file_in(path, DOCUMENTS)) or (not os.path.exists(path) and path in bundled_names())
    return read_collection(path) if is_collection else None


def topics_of(collection: Collection | None, topics_file: str | None, *reading: Any) -> TopicTable | None:
    """The topics from a topics file, or else from the collection; `reading` are options of `read_topic_table`."""
    if topics_file is not None:
        return read_topic_table(topics_file, *reading)
    return None if collection is None else table_of_topics(collection.topics, collection.name)


def documents_of(qrels: Any, name: str | None = None) -> str | None:
    """The source of the documents: as given, or the collection that names the judgments."""
    if name is not None:
        return name
    collection = collection_of(qrels)
    return None if collection is None else collection.path


def documents_file(source: str) -> str:
    """The file of documents in a collection, or the given file like a documents.jsonl."""
    from cranfield.formats.collection_folder import DOCUMENTS, file_in, folder_of

    return source if os.path.isfile(source) else file_in(folder_of(source), DOCUMENTS)


def categories(topics: TopicTable, topics_shown: Some[str]) -> dict[str, Mapping[str, str]]:
    """The columns with few distinct values, which divide topics into categories.

    >>> from cranfield.formats.topic_tables import TopicTable
    >>> known = TopicTable("t", {}, {"kind": {"1": "brand", "2": "brand", "3": "need"}, "query": {"1": "x", "2": "y"}})
    >>> list(categories(known, ["1", "2", "3"]))
    ['kind']
    """
    columns = {}
    for name, column in topics.columns.items():
        values = [column.get(topic, "") for topic in topics_shown]
        kinds = set(values) - {""}
        short = all(len(value) <= WIDEST and value[:1] not in "[{" for value in kinds)
        if short and 1 < len(kinds) <= VALUES and 2 * len(kinds) <= len(list(filter(None, values))) + 1:
            columns[name] = column
    return columns


def words_of_documents(documents: Iterable[Document], ids: Some[str]) -> dict[str, tuple[str, str]]:
    """Title and first words of the documents on the page, as long as there is room."""
    least, most = LETTERS
    letters = max(least, min(most, ROOM // max(len(ids), 1)))
    return {each.id: _shortened(each, letters) for each in documents if each.id in ids}


def _shortened(document: Document, letters: int) -> tuple[str, str]:
    """A title, and as much of the text as fits; the first words replace a missing title."""
    title, text = " ".join(document.title.split()), " ".join(document.text.split())
    if not title:
        return first_words(text, letters), ""
    if text.startswith(title):  # some collections repeat the title in the text
        text = text[len(title) :].lstrip(" .")
    title = first_words(title, letters)
    return title, first_words(text, letters - len(title)) if letters - len(title) >= LETTERS[0] // 2 else ""


def first_words(text: str, letters: int) -> str:
    """The beginning of a text, cut between words if possible.

    >>> first_words("boundary layer flow", 12), first_words("flow", 12)
    ('boundary…', 'flow')
    """
    if len(text) <= letters:
        return text
    start = text[: letters - 1]
    return (start.rpartition(" ")[0] or start).rstrip(" ,;:.–-") + "…"
