"""Files with what some measures need besides runs and judgments: preferences, reading costs, groups of documents.

Preferences come from trec_eval's `prefs` and `qrels_prefs` files; `qrels_jg` has judgment groups. A line gives a document a
level within a judgment group (one judge, one information need) and a subgroup. If two documents share a subgroup, the one
at the higher level is preferred. Levels are real numbers; only their order counts, and 0 means not relevant. There is no
preference between two documents that never share a subgroup, unless a third document links them.

Costs: a line names a document and its cost (`d17 34.5`) in seconds, words or characters, whichever the measure expects.
The cost files of cwl_eval look the same but name a type of result instead of a document.

Groups (of authors, sources, regions …): a line names a document, a group and, if the document belongs to it only in
part, its share: `d17 women 0.5`. A document may have several lines. A missing share is 1.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import BadLineError, DataError, DuplicateError
from cranfield.base.kernels import Index, RowTable, Strings, decode
from cranfield.base.run import TextSource
from cranfield.formats.files.trec import LEVELS, QRELS
from cranfield.formats.format import is_number
from cranfield.formats.streams import data_lines, open_buffer, opened

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


def read_costs(source: Any) -> dict[str, float]:
    """Read a file of costs: document and cost, separated by white space.

    >>> read_costs(b"d1 12\\nd2 3.5\\n# a comment\\n")
    {'d1': 12.0, 'd2': 3.5}
    """
    content = opened(source)
    costs: dict[str, float] = {}
    for number, line in data_lines(content.buffer):
        cells = line.split()
        if len(cells) != 2:
            raise BadLineError(content.where, number, f"expected 2 columns (document cost), found {len(cells)}")
        document, cost = decode(cells[0]), _amount(cells[1], "a cost of 0 or more", content.where, number)
        if document in costs:
            raise DuplicateError(content.where, number, f"document {document!r} has a cost already")
        costs[document] = cost
    if not costs:
        raise DataError(f"{content.where}: expected a document and its cost on each line, found none")
    return costs


def read_groups(source: Any) -> dict[str, dict[str, float]]:
    """Read a file of group labels: document, group and perhaps share, separated by white space, or all by tabs.

    >>> read_groups(b"d1 europe\\nd2 europe 0.5\\nd2 asia 0.5\\n# a comment\\n")
    {'d1': {'europe': 1.0}, 'd2': {'europe': 0.5, 'asia': 0.5}}
    """
    content = opened(source)
    groups: dict[str, dict[str, float]] = {}
    for number, line in data_lines(content.buffer):
        document, group, share = _cells(line, content.where, number)
        if group in groups.setdefault(document, {}):
            raise DuplicateError(content.where, number, f"document {document!r} is put into group {group!r} twice")
        groups[document][group] = share
    if not groups:
        raise DataError(f"{content.where}: expected a document and its group on each line, found none")
    return groups


def _cells(line: bytes, where: str, number: int) -> tuple[str, str, float]:
    """A line's document, group and share. If a line has a tab, only tabs separate, so that names may contain blanks."""
    cells = [cell.strip() for cell in line.split(b"\t")] if b"\t" in line else line.split()
    if not 2 <= len(cells) <= 3 or not all(cells):
        count = sum(map(bool, cells))
        raise BadLineError(where, number, f"expected 2 or 3 columns (document group share), found {count}")
    share = _amount(cells[2], "a share of 0 or more in column 3", where, number) if len(cells) > 2 else 1.0
    return decode(cells[0]), decode(cells[1]), share


def _amount(cell: bytes, expected: str, where: str, number: int) -> float:
    """The number in a cell; BadLineError if it is negative, infinite or not a number."""
    amount = float(cell) if is_number(cell) else math.nan
    if not 0 <= amount < math.inf:
        raise BadLineError(where, number, f"expected {expected}, found {decode(cell)!r}")
    return amount
