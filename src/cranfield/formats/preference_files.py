"""Preferences between documents, read from trec_eval's `prefs` and `qrels_prefs` files; judgment groups from `qrels_jg`.

A line gives a document a level within a judgment group (one judge, one information need) and a
subgroup. If two documents share a subgroup, the one at the higher level is preferred. Levels are
real numbers; only their order counts, and 0 means not relevant. There is no preference between two
documents that never share a subgroup, unless a third document links them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.kernels import Index, RowTable, Strings, decode
from cranfield.base.run import TextSource
from cranfield.formats.files.trec import LEVELS, QRELS
from cranfield.formats.streams import open_buffer

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints


LINES = LEVELS._replace(blanks=False)
QRELS_LINES = QRELS._replace(columns="topic group document level", blanks=False)


class PreferenceLevels:
    """Levels of documents within judgment groups and subgroups, by topic.

    Rows are ordered by topic, group and subgroup. `group` and `subgroup` number the distinct ids of the file in byte
    order, so that sums over groups do not depend on the order of the lines.
    """

    def __init__(self, table: RowTable, subgroups: Strings | None = None, subgroup: Ints | None = None) -> None:
        group = _in_byte_order(table.labels)[table.label]
        inner = np.zeros(len(group), np.int32) if subgroups is None else _in_byte_order(subgroups)[subgroup]
        order = np.lexsort((inner, group, table.topic))
        self._names = table.topics
        self.topic: Ints = table.topic[order]
        self.group: Ints = group[order]
        self.subgroup: Ints = inner[order]
        self.documents: Strings = table.documents.take(order)
        self.level: Floats = table.value[order]
        self.index = Index(self._names, self.topic, self.documents)

    @cached_property
    def topics(self) -> list[str]:
        """The topics with preferences, in the order of their first line."""
        return self._names.text()

    def __len__(self) -> int:
        return len(self.topic)

    def __repr__(self) -> str:
        return f"<Preferences: {len(self.topics)} topics, {len(self)} levels>"

    def document(self, row: int) -> str:
        """The document of a row."""
        return decode(self.documents[row])


def _in_byte_order(ids: Strings) -> Ints:
    """The place of each id among the others, sorted as bytes."""
    place = np.empty(len(ids), np.int32)
    place[sorted(range(len(ids)), key=list(ids).__getitem__)] = np.arange(len(ids), dtype=np.int32)
    return place


def read_preferences(source: Any, comments: bool = True) -> PreferenceLevels:
    """Read a `prefs` file: topic, group, subgroup, document, level.

    >>> preferences = read_preferences(b"q1 judge1 1 d1 2.0\\nq1 judge1 1 d2 0\\nq1 judge2 1 d2 1\\n")
    >>> preferences, preferences.group.tolist(), preferences.level.tolist()
    (<Preferences: 1 topics, 3 levels>, [0, 0, 1], [2.0, 0.0, 1.0])
    """
    buffer, where = open_buffer(source), _where(source)
    table = TextSource(buffer, LINES._replace(comments=comments), where).table()
    inner = TextSource(buffer, LINES._replace(label=2, comments=comments), where).table()
    return PreferenceLevels(table, inner.labels, inner.label)


def read_qrels_preferences(source: Any, comments: bool = True) -> PreferenceLevels:
    """Read qrels as preferences: the second column is the group, and each group has one subgroup.

    >>> read_qrels_preferences(b"q1 0 d1 2\\nq1 0 d2 0\\n")
    <Preferences: 1 topics, 2 levels>
    """
    layout = QRELS_LINES._replace(comments=comments)
    return PreferenceLevels(TextSource(open_buffer(source), layout, _where(source)).table())


def as_preferences(source: Any) -> PreferenceLevels:
    """Preferences from either file format: five columns (`prefs`), or four (qrels by judgment group).

    >>> as_preferences(b"q1 0 d1 2\\nq1 0 d2 0\\n"), as_preferences(b"q1 judge1 1 d1 2.0\\n")
    (<Preferences: 1 topics, 2 levels>, <Preferences: 1 topics, 1 levels>)
    """
    buffer = open_buffer(source)
    lines = (line.split() for line in bytes(buffer[:65536]).splitlines())
    first = next((words for words in lines if words and not words[0].startswith(b"#")), [])
    return read_qrels_preferences(source) if len(first) == 4 else read_preferences(source)


def _where(source: Any) -> str:
    return source if isinstance(source, str) else "<bytes>"
