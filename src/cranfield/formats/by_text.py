"""Judgments and runs that name a topic by what it asks, joined with topics that have ids.

Shops keep labels by the words that were typed. They are joined by the very text, or else by the text with white space
squeezed, and by nothing looser unless somebody asks: upper and lower case may be two queries. Names that are ids stay as
they are: a table is taken to go by text only where more of its names are texts than ids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.collection import Duplicates, FileRow, Qrels
from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.hearing import tell_used
from cranfield.kernels import Strings
from cranfield.run import Run, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cranfield.kernels import Table


def ids_of_texts(
    names: Iterable[str], queries: Mapping[str, str], where: str, ignore_case: bool = False
) -> dict[str, str] | None:
    """The topic that each name is the text of; None where the names are no texts. `queries` is id → text.

    `ignore_case` joins a text that differs in upper and lower case where no topic has the very text.

    >>> ids_of_texts(["usb  cable"], {"q1": "usb cable", "q2": "red shoes"}, "labels.csv")
    {'usb  cable': 'q1'}
    """
    known = list(names)
    ids, same, squeezed = 0, _by(queries, str), _by(queries, _squeezed)
    folded = _by(queries, _folded) if ignore_case else {}
    found: dict[str, list[str]] = {}
    for name in known:
        ids += name in queries
        if topics := same.get(name) or squeezed.get(_squeezed(name)) or folded.get(_folded(name)):
            found[name] = topics
    if found:
        tell_used("ignore_case", "topics_file")
    if len(found) <= ids:
        return None
    for name in known:
        if name not in found:
            lost = f"{len(known) - len(found)} of the {len(known)} queries"
            alike = _folded(name) in {_folded(text) for text in queries.values()}
            advice = "ignore_case=True joins it" if alike else "are both spelt alike?"
            raise DataError(f"{where}: no topic asks {name!r:.80} ({lost} join none); {advice}")
        if len(found[name]) > 1:
            one, other = found[name][:2]
            raise DataError(f"{where}: topics {one!r} and {other!r} both ask {name!r:.80}; name them by their ids")
    return {name: topics[0] for name, topics in found.items()}


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _folded(text: str) -> str:
    return _squeezed(text).casefold()


def _by(queries: Mapping[str, str], key: Callable[[str], str]) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for topic, text in queries.items():
        topics.setdefault(key(text), []).append(topic)
    return topics


def qrels_by_id(
    qrels: Qrels, queries: Mapping[str, str], ignore_case: bool = False, duplicates: Duplicates = "error"
) -> Qrels | None:
    """Judgments by the ids of their topics where they go by text; None where they do not.

    Two spellings may be one topic: `duplicates` says which grade counts of a document that both judge.
    """
    ids = None if qrels.from_text else ids_of_texts(qrels.topics, queries, qrels.name, ignore_case)
    if ids is None:
        return None

    def file_rows() -> list[FileRow] | None:
        rows = qrels.file_rows()
        return None if rows is None else [row._replace(topic=ids.get(row.topic, row.topic)) for row in rows]

    joined = Qrels(renamed(qrels.table, ids), qrels.name, duplicates, file_rows, qrels.where)
    joined.extras, joined.relevant_from = qrels.extras, qrels.relevant_from
    return joined


def run_by_id(run: Run, queries: Mapping[str, str], ignore_case: bool = False) -> Run | None:
    """A run by the ids of its topics where it goes by text; None where it does not."""
    if isinstance(run.source, Text):  # white space ends a TREC file's topic, so that it is never a text
        return None
    ids = ids_of_texts(run.topics, queries, run.name, ignore_case)
    return None if ids is None else Run(renamed(run.table, ids), run.name, run.tag)


def renamed(table: Table, ids: Mapping[str, str]) -> Table:
    """A table under other names of topics; two names may be one topic's."""
    places: dict[str, int] = {}
    moved = [places.setdefault(ids[name], len(places)) for name in table.topics.text()]
    return replace(table, topics=Strings.of_text(list(places)), topic=np.array(moved, np.int32)[table.topic])


def joined_in_words(name: str, number: int) -> str:
    """What was done, in a sentence."""
    return f"{name} names its {counted(number, 'topic')} by what they ask; they are joined with the topics by that text"
