"""What is known of the topics: the one place that looks it up.

A topics file that was named comes first, then the collection that the judgments were named by. Nothing is read before
somebody asks: a run without a collection or a topics file pays nothing, nor does a table that names no topic.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cranfield.collection import Queries
from cranfield.formats.tables import DETECTED, Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.formats.format import Fields
    from cranfield.formats.topics import TopicTable


def topic_table(
    file: str | None,
    collection: str | None,
    fields: Fields | None = None,
    dialect: Dialect = DETECTED,
    lenient: bool = False,
) -> TopicTable | None:
    """The topics' queries and columns; None where neither a topics file nor a collection is known."""
    if file is not None:
        return read_topics_file(file, fields, dialect, lenient)
    return None if collection is None else topics_of_collection(collection)


def queries_of(
    file: str | None,
    collection: str | None,
    fields: Fields | None = None,
    dialect: Dialect = DETECTED,
    lenient: bool = False,
) -> Queries | None:
    """The text of each topic's query; None where it cannot be known.

    A file is read at once, so that one which cannot be read is refused, whoever asks; a collection when it is first asked for.
    """
    if file is None and collection is None:
        return None

    def read() -> Mapping[str, str]:
        table = topic_table(file, collection, fields, dialect, lenient)
        return {} if table is None else table.queries

    queries = Queries(read)
    if file is not None:
        len(queries)
    return queries


def topics_of_collection(path: str) -> TopicTable:
    """The topics of a collection's folder, or of a bundled one."""
    from cranfield.formats.folder import TOPICS, file_in, folder_of, read_collection
    from cranfield.formats.topics import table_of_topics

    return table_of_topics(read_collection(path).topics, file_in(folder_of(path), TOPICS))


def read_topics_file(
    path: str, fields: Fields | None = None, dialect: Dialect = DETECTED, lenient: bool = False
) -> TopicTable:
    """A topics file: a table (TSV, CSV, JSON lines, Parquet), TREC's topics, or a collection's folder or name."""
    from cranfield.formats.reading import qrels_in
    from cranfield.formats.topics import read_topic_table, table_of_topics

    if path != "-" and qrels_in(path) != path:
        return topics_of_collection(path)
    if path == "-" or not os.path.isfile(path):
        return read_topic_table(path, fields, dialect, lenient)
    from cranfield.importers.layouts.tables import Parquet
    from cranfield.importers.layouts.trec_text import Trec
    from cranfield.importers.source import Files, Options

    for layout in (Parquet, Trec):
        if layout.asks(path):
            columns = {
                ours: theirs if isinstance(theirs, str) else theirs[0] for ours, theirs in (fields or {}).items()
            }
            return table_of_topics(layout(Files(topics=[path]), Options(fields=columns)).topics(), path)
    return read_topic_table(path, fields, dialect, lenient)
