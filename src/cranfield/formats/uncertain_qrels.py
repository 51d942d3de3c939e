"""Qrels with an interval and a posterior of each value, as `cranfield online qrels` writes them.

Every reader of qrels takes such a file: it uses topic, document and grade, and ignores the other columns. The columns alpha,
beta and posterior are the distribution of the value; thresholds, the same on each line, turned values into grades, so that a
redrawn value becomes a grade in the same way.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.base.parameters import real, shortened
from cranfield.formats.csv_tables import SeparatedValues, open_table
from cranfield.formats.named_columns import DOCUMENT, PLAINLY_GRADES, TOPIC
from cranfield.formats.streams import json_rows, plain_ending
from cranfield.stats.posteriors import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.stats.posteriors import Posteriors

MARKS = ("alpha", "beta", "posterior")  # the columns by which such a file is recognised
PARAMETERS = ("alpha", "beta", "prior_alpha", "prior_beta")
TABLES = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")


def holds_columns(path: str) -> bool:
    """Whether a file of this name has columns, so that each judgment can have more than a grade."""
    return plain_ending(path) in (*TABLES, *LINES)


def as_table(path: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """The bytes of a file with columns; its ending decides between CSV, TSV and JSON lines."""
    ending = plain_ending(path)
    if ending in LINES:
        for row in rows:
            yield (json.dumps(dict(zip(head, row, strict=True)), ensure_ascii=False) + "\n").encode(
                "utf-8", "surrogateescape"
            )
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=TABLES[ending], lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    yield text.getvalue().encode("utf-8", "surrogateescape")


@dataclass(frozen=True, eq=False)
class UncertainGrades:
    """The posterior of each judged document's value, and the thresholds that turn values into grades."""

    subjects: list[tuple[str, str]]  # topic and document
    posteriors: Posteriors
    thresholds: tuple[float, ...] = ()

    def grades(self, values: Floats) -> Floats:
        """Values as grades: unchanged without thresholds, else the number of thresholds that are reached."""
        return grades_of(values, self.thresholds)


def grades_of(values: Floats, thresholds: Sequence[float]) -> Floats:
    """Values as grades: unchanged without thresholds, else the number of thresholds that are reached.

    >>> grades_of(np.array([0.1, 0.3, 0.9]), [0.3, 0.5]).tolist()
    [0.0, 1.0, 2.0]
    """
    if not len(thresholds):
        return values
    return np.searchsorted(np.asarray(thresholds, np.float64), values, side="right").astype(np.float64)


def has_posteriors(path: str) -> bool:
    """Whether the first line of a file names the columns of a posterior; False for standard input."""
    return path != "-" and names_posteriors(bytes(open_table(path).buffer[:4096]))


def names_posteriors(start: bytes) -> bool:
    """Whether a text begins with the names of the columns of a posterior.

    >>> names_posteriors(b"topic,document,grade,posterior,alpha,beta\\n"), names_posteriors(b"topic,document,grade\\n")
    (True, False)
    """
    head = start.partition(b"\n")[0].decode("utf-8", "replace").strip().lstrip("\ufeff")
    if head.startswith("{"):
        try:
            row = json.loads(head)
        except ValueError:
            return False
        return isinstance(row, dict) and {*MARKS} <= row.keys()
    names = {name.strip().strip('"').lower() for gap in ("\t", ",", ";", "|") for name in head.split(gap)}
    return {*MARKS} <= names


def read_uncertain(path: str) -> UncertainGrades:
    """The posteriors in a file; DataError names the line of an invalid value."""
    subjects: list[tuple[str, str]] = []
    numbers: list[tuple[float, ...]] = []
    families: set[str] = set()
    thresholds: set[str] = set()
    for line, row in _rows(path):
        topic, document = (_cell(row, names, path, line) for names in (TOPIC, DOCUMENT))
        _cell(row, PLAINLY_GRADES, path, line)
        subjects.append((topic, document))
        numbers.append(_parameters(row, path, line))
        families.add(str(row["posterior"]))
        thresholds.add(str(row.get("thresholds") or ""))
        if len(families) > 1 or len(thresholds) > 1:
            raise BadLineError(path, line, "expected one posterior and the same thresholds on each line, found another")
    if not subjects:
        raise DataError(f"{path}: no judgments")
    family = families.pop()
    if family not in FAMILIES:
        raise DataError(f"{path}: expected a posterior of {' or '.join(FAMILIES)}, found {shortened(family)!r}")
    table = np.array(numbers, np.float64)
    return UncertainGrades(subjects, FAMILIES[family](*table.T), _thresholds(path, thresholds.pop()))


def _rows(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if plain_ending(path) in LINES:
        for line, row in json_rows(path):
            lacking = next((name for name in MARKS if name not in row), None)
            if lacking is not None:
                raise BadLineError(path, line, f"expected alpha, beta and posterior, found no {lacking}")
            yield line, {name.lower(): value for name, value in row.items()}
        return
    file = open_table(path)
    table = SeparatedValues(bytes(file.buffer), path, lambda names: {*MARKS} <= {*map(str.lower, names)})
    names = [name.lower() for name in table.names]
    if absent := [name for name in MARKS if name not in names]:
        raise FormatError(f"{path}: expected the columns {', '.join(MARKS)}, found no {absent[0]}")
    for place in table:
        if len(place.cells) != len(names):
            raise BadLineError(path, place.line, f"expected {len(names)} columns, found {len(place.cells)}")
        yield place.line, dict(zip(names, place.cells, strict=True))


def _cell(row: Mapping[str, Any], names: Sequence[str], path: str, line: int) -> str:
    name = next((name for name in names if name in row), None)
    if name is None:
        raise BadLineError(path, line, f"expected a column {names[0]} or similar, found {', '.join(row)}")
    return str(row[name])


def _parameters(row: Mapping[str, Any], path: str, line: int) -> tuple[float, ...]:
    """The two parameters of a posterior, and the prior's part of them (0 without such columns)."""
    values: list[float] = []
    for name in PARAMETERS:
        typed = row.get(name) if name in MARKS else row.get(name) or 0
        try:
            value = real(typed)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        whole = values[-2] if name not in MARKS else float("inf")
        if not (0 <= value <= whole * (1 + 1e-9) and (value or name not in MARKS)):
            expected = f"{name} above 0" if name in MARKS else f"{name} from 0 to {whole:g}"
            raise BadLineError(path, line, f"expected {expected}, found {shortened(typed)!r}")
        values.append(value)
    return tuple(values)


def _thresholds(path: str, text: str) -> tuple[float, ...]:
    try:
        values = tuple(real(each) for each in text.split())
    except ValueError:
        raise DataError(
            f"{path}: expected thresholds as numbers with blanks between, found {shortened(text)!r}"
        ) from None
    if list(values) != sorted(set(values)):
        raise DataError(f"{path}: expected rising thresholds, found {shortened(text)!r}")
    return values
