"""Tables of scores from other programs: one row per topic and one column per run, or the rows of `eval --per-topic`.

CSV, TSV or semicolons, compressed or not. An empty cell, NA or NaN is a missing value; any other text that is not a
number is an error with its line. The first column has the topics if its header says so or its values are words. If not,
topics are numbered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import LARGEST_SCORE
from cranfield.formats.csv_tables import DETECTED, Dialect, NumberReader, SeparatedValues, TableRow, open_table
from cranfield.formats.format import is_number

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats


TOPIC = {"", "topic", "topics", "query", "qid", "query_id", "topic_id", "queryid", "topicid", "id"}
ABSENT = {"", "-", "na", "nan", "null", "none"}


class ScoreTable(NamedTuple):
    """Runs, topics, and a table of topics × runs for each measure; "" is a measure without a name."""

    runs: list[str]
    topics: list[str]
    tables: dict[str, Floats]
    queries: dict[str, str]  # topic → query, if the file has queries


def read_score_table(path: str, dialect: Dialect = DETECTED) -> ScoreTable:
    """The scores in a file; its header decides which of the two shapes it has."""
    file = open_table(path, dialect.encoding)
    table = SeparatedValues(bytes(file.buffer), path, lambda names: names[0].casefold() in TOPIC, dialect.of(file))
    below = list(table) if table.names else []
    lines = [
        (row.line, row.cells)
        for row in [TableRow(1, 1, table.names), *below]
        if any(cell.strip() for cell in row.cells)
    ]
    if len(lines) < 2:
        raise DataError(f"{path}: expected a header and one row per topic, found {len(lines)} lines")
    (_, header), *rows = lines
    header = [name.strip() for name in header]
    for number, row in rows:
        if len(row) != len(header):
            raise BadLineError(path, number, f"expected {len(header)} columns as in the header, found {len(row)}")
    is_long = [name.casefold() for name in header[:2]] == ["run", "topic"] and len(header) > 2
    scores = (_long if is_long else _wide)(path, header, rows, table.numbers)
    table.report()
    return scores


def _wide(path: str, header: list[str], rows: list[tuple[int, list[str]]], numbers: NumberReader) -> ScoreTable:
    named = header[0].casefold() in TOPIC or any(not is_number(row[0]) and not _is_absent(row[0]) for _, row in rows)
    runs = header[1:] if named else header
    if not runs:
        raise DataError(f"{path}: expected one column per run besides the topics, found {header[0]!r} alone")
    twice = [run for run in runs if runs.count(run) > 1]
    if twice:
        raise DataError(f"{path}: expected each run once in the header, found {twice[0]!r} twice")
    topics = [row[0].strip() for _, row in rows] if named else [str(t + 1) for t in range(len(rows))]
    names: set[str] = set()
    for (number, _), topic in zip(rows, topics, strict=True):
        if topic in names:
            raise BadLineError(path, number, f"topic {topic!r} occurs twice in the table")
        names.add(topic)
    values = [[_number(path, n, cell, numbers) for cell in (row[1:] if named else row)] for n, row in rows]
    return ScoreTable(runs, topics, {"": np.array(values, np.float64)}, {})


def _long(path: str, header: list[str], rows: list[tuple[int, list[str]]], numbers: NumberReader) -> ScoreTable:
    runs = list(dict.fromkeys(row[0] for _, row in rows))
    topics = list(dict.fromkeys(row[1] for _, row in rows))
    place = {run: r for r, run in enumerate(runs)}, {topic: t for t, topic in enumerate(topics)}
    has_queries = header[2:3] == ["query"]
    first = 2 + has_queries
    tables = {name: np.full((len(topics), len(runs)), np.nan) for name in header[first:]}
    cells: set[tuple[int, int]] = set()
    for number, row in rows:
        at = place[1][row[1]], place[0][row[0]]
        if at in cells:
            raise BadLineError(path, number, f"topic {row[1]!r} of {row[0]!r} occurs twice in the table")
        cells.add(at)
        for name, cell in zip(header[first:], row[first:], strict=True):
            tables[name][at] = _number(path, number, cell, numbers)
    queries = {row[1]: row[2] for _, row in rows if row[2]} if has_queries else {}
    return ScoreTable(runs, topics, tables, queries)


def _number(path: str, line: int, cell: str, numbers: NumberReader) -> float:
    if _is_absent(cell):
        return float("nan")
    try:
        value = numbers.read(cell, line, finite=False)
    except ValueError as error:
        raise BadLineError(path, line, f"expected a number or an empty cell, {error}") from None
    if not np.isfinite(value):
        raise BadLineError(path, line, f"expected a finite number, found {cell!r}")
    if abs(value) > LARGEST_SCORE:
        raise BadLineError(path, line, f"expected a score of {LARGEST_SCORE:g} at the most, found {cell!r}")
    return value


def _is_absent(cell: str) -> bool:
    return cell.strip().casefold() in ABSENT
