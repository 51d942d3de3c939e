"""The queries and columns of the topics, from a topics file or the collection.

A topics file wins over the collection that names the judgments. Nothing is read before it is needed, so a command
without a collection or topics file loses no time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.base.qrels import Queries
from cranfield.formats.csv_tables import DETECTED, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cranfield.base.collection import Document
    from cranfield.formats.document_index import Shelf
    from cranfield.formats.format import Fields
    from cranfield.formats.topic_tables import TopicTable


FIRST_WORDS = 120  # characters


def titles(collection: str | Shelf, documents: Iterable[str]) -> dict[str, str]:
    """The title of each document, or the first words of its text; a collection is read until all are found."""
    ids = dict.fromkeys(documents)
    matches = _read(collection, set(ids)) if isinstance(collection, str) else map(collection.get, ids)
    return {
        document.id: " ".join((document.title or document.text[:FIRST_WORDS]).split())
        for document in matches
        if document is not None
    }


def _read(collection: str, ids: set[str]) -> Iterator[Document]:
    from cranfield.formats.collection_folder import read_collection

    for document in read_collection(collection).documents() if ids else ():
        if document.id in ids:
            yield document
            ids.remove(document.id)
            if not ids:
                return


def topic_table(
    file: str | None,
    collection: str | None,
    fields: Fields | None = None,
    dialect: Dialect = DETECTED,
    lenient: bool = False,
) -> TopicTable | None:
    """The topics' queries and columns; None if there is neither a topics file nor a collection.

    A topics file is a table (TSV, CSV, JSON lines, Parquet), TREC's topics, or a collection's folder or name.
    """
    from cranfield.formats.runs_and_qrels import qrels_in
    from cranfield.formats.topic_tables import read_topic_table, table_of_topics

    if file is None:
        return None if collection is None else topics_of_collection(collection)
    if file != "-" and qrels_in(file) != file:
        return topics_of_collection(file)
    if file == "-" or not os.path.isfile(file):
        return read_topic_table(file, fields, dialect, lenient)
    from cranfield.formats.importers.layouts.tables import ParquetLayout
    from cranfield.formats.importers.layouts.trec_text import TrecLayout
    from cranfield.formats.importers.source import Files, ImportOptions

    for layout in (ParquetLayout, TrecLayout):
        if layout.asks(file):
            columns = {
                ours: theirs if isinstance(theirs, str) else theirs[0] for ours, theirs in (fields or {}).items()
            }
            return table_of_topics(layout(Files(topics=[file]), ImportOptions(fields=columns)).topics(), file)
    return read_topic_table(file, fields, dialect, lenient)


def queries_of(file: str | None, collection: str | None, *reading: Any) -> Queries | None:
    """The query text of each topic; None if it is unknown. `reading` are the further arguments of `topic_table`.

    A topics file is read at once, so that an unreadable one is always refused; a collection is read when first needed.
    """
    if file is None and collection is None:
        return None

    def read() -> Mapping[str, str]:
        table = topic_table(file, collection, *reading)
        return {} if table is None else table.queries

    queries = Queries(read)
    if file is not None:
        len(queries)
    return queries


def topics_of_collection(path: str) -> TopicTable:
    """The topics of a collection's folder, or of a bundled collection."""
    from cranfield.formats.collection_folder import TOPICS, file_in, folder_of, read_collection
    from cranfield.formats.topic_tables import table_of_topics

    return table_of_topics(read_collection(path).topics, file_in(folder_of(path), TOPICS))
