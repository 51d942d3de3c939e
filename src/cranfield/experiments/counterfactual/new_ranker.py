"""The new ranker: a run, the uniform policy, or a table of probabilities.

Estimators ask two things of it: how likely it begins a page with the documents that the log shows there, and where it puts
every document. Documents that the log never showed for the query have no pair; their pair is -1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import shortened
from cranfield.formats.csv_tables import DETECTED, Dialect, SeparatedValues, header_text, open_table
from cranfield.formats.query_text import normalised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.base.kernels.table import Floats
    from cranfield.experiments.clicks.result_pages import Numbers
    from cranfield.experiments.counterfactual.logged_pages import LoggedPages

UNIFORM = "uniform"
PROBABILITY = "probability"
SUM_TO_1 = 1e-3  # how far probabilities of one rank may be from a sum of 1: they may be rounded


class Placements(NamedTuple):
    """Where a ranker puts documents: the probability of each (query, document, rank). Pair -1: never shown for the query."""

    query: Numbers
    pair: Numbers
    rank: Numbers
    probability: Floats


class NewRanker(ABC):
    """A ranker whose clicks are to be estimated."""

    name: str

    @abstractmethod
    def answers(self, queries: Sequence[str]) -> list[bool]:
        """Whether the ranker answers each query of the log."""

    @abstractmethod
    def beginning(self, log: LoggedPages) -> Floats | str:
        """For each row: the probability that the ranker's list begins like the page does, down to this row.

        A sentence instead says why that is unknown.
        """

    @abstractmethod
    def placements(self, log: LoggedPages) -> Placements:
        """Where the ranker puts documents, down to the length of each query's longest page."""


def longest_pages(log: LoggedPages) -> Numbers:
    """The number of documents on the longest page of each query."""
    longest = np.zeros(len(log.queries), np.int64)
    np.maximum.at(longest, log.query, log.pages.lengths)
    return longest


def pair_numbers(log: LoggedPages) -> dict[tuple[str, str], int]:
    """The pairs that the pages show, by query and document."""
    names = log.pages.pairs.names()
    return {names[pair]: pair for pair in np.unique(log.pages.pair).tolist()}


@dataclass(frozen=True, eq=False)
class RankedLists(NewRanker):
    """A run: one list for each query of the log, by its text."""

    name: str
    lists: Mapping[str, Sequence[str]]

    def answers(self, queries: Sequence[str]) -> list[bool]:
        return [bool(self.lists.get(query)) for query in queries]

    def placements(self, log: LoggedPages) -> Placements:
        pairs = pair_numbers(log)
        rows = [
            (number, pairs.get((query, document), -1), rank)
            for number, (query, depth) in enumerate(zip(log.queries, longest_pages(log).tolist(), strict=True))
            for rank, document in enumerate(self.lists.get(query, ())[:depth], 1)
        ]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return Placements(table[:, 0], table[:, 1], table[:, 2], np.ones(len(table)))

    def beginning(self, log: LoggedPages) -> Floats | str:
        names, documents = log.pages.pairs, log.pages.pairs.documents
        at: dict[tuple[int, int], int] = {}
        numbers = {document: number for number, document in enumerate(documents)}
        for number, (query, depth) in enumerate(zip(log.queries, longest_pages(log).tolist(), strict=True)):
            for rank, document in enumerate(self.lists.get(query, ())[:depth], 1):
                at[number, rank] = numbers.get(document, -1)
        deepest = int(log.rank.max(initial=0))
        expected = np.full((len(log.queries), deepest + 1), -1, np.int64)
        for (number, rank), document_number in at.items():
            expected[number, rank] = document_number
        same = expected[log.query[log.page], log.rank] == names.document[log.pages.pair]
        differing = np.cumsum(~same)
        before = np.concatenate(([0], differing))[log.pages.start[:-1]]
        return np.asarray(differing == before[log.page], np.float64)


@dataclass(frozen=True, eq=False)
class UniformPolicy(NewRanker):
    """Every order of the documents that the log shows for a query, equally likely."""

    name: str = UNIFORM

    def answers(self, queries: Sequence[str]) -> list[bool]:
        return [True] * len(queries)

    def placements(self, log: LoggedPages) -> Placements:
        pairs, depth = np.unique(log.pages.pair).astype(np.int64), longest_pages(log)
        query = log.pages.pairs.query[pairs]
        documents = np.bincount(query, minlength=len(log.queries))
        times = np.minimum(depth, documents)[query]
        rank = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times) + 1
        query = np.repeat(query, times)
        return Placements(query, np.repeat(pairs, times), rank, 1.0 / documents[query])

    def beginning(self, log: LoggedPages) -> Floats | str:
        pairs = np.unique(log.pages.pair)
        documents = np.bincount(log.pages.pairs.query[pairs], minlength=len(log.queries))[log.query[log.page]]
        probability = np.ones(len(log.rank))
        for rank in range(1, int(log.rank.max(initial=0)) + 1):
            rows = np.flatnonzero(log.rank == rank)
            above = probability[rows - 1] if rank > 1 else 1.0
            probability[rows] = above / (documents[rows] - rank + 1)
        return probability


@dataclass(frozen=True, eq=False)
class PolicyTable(NewRanker):
    """The probability of each document at each rank, by query text; without ranks, of the only document of a page."""

    name: str
    probabilities: Mapping[str, Mapping[tuple[str, int], float]]
    has_ranks: bool
    for_all: str | None = None  # the key of rows without a query, which are for every query
    where: str = field(default="")

    def _of(self, query: str) -> Mapping[tuple[str, int], float]:
        key = self.for_all if self.for_all is not None else query
        return self.probabilities.get(key, {})

    def answers(self, queries: Sequence[str]) -> list[bool]:
        return [bool(self._of(query)) for query in queries]

    def _refuse_lists(self, log: LoggedPages) -> None:
        if not self.has_ranks and not log.single:
            raise DataError(
                f"{self.where}: expected a column rank, as the pages of {log.name} show several documents, found none"
            )

    def placements(self, log: LoggedPages) -> Placements:
        self._refuse_lists(log)
        pairs = pair_numbers(log)
        rows = [
            (number, pairs.get((query, document), -1), rank, probability)
            for number, (query, depth) in enumerate(zip(log.queries, longest_pages(log).tolist(), strict=True))
            for (document, rank), probability in self._of(query).items()
            if rank <= depth and probability > 0
        ]
        table = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)
        return Placements(table[:, 0], table[:, 1], table[:, 2], np.array([row[3] for row in rows], np.float64))

    def beginning(self, log: LoggedPages) -> Floats | str:
        self._refuse_lists(log)
        if not log.single:
            return f"{self.name} has the probabilities of single ranks, not of whole lists"
        names = log.pages.pairs.names()
        by_pair = np.array([self._of(query).get((document, 1), 0.0) for query, document in names], np.float64)
        return np.asarray(by_pair[log.pages.pair], np.float64)


# reading


def is_policy_table(path: str) -> bool:
    """Whether a file is a table with a column of probabilities."""
    try:
        head = header_text(bytes(open_table(path).buffer[:4096])).partition("\n")[0]
    except DataError:
        return False
    names = {name.strip().strip('"').lower() for name in head.replace("\t", ",").replace(";", ",").split(",")}
    return {"document", PROBABILITY} <= names


def read_policy_table(path: str, name: str, dialect: Dialect = DETECTED) -> PolicyTable:
    """A policy from a table: document, probability, and optionally query and rank. Each rank must sum to 1."""
    file = open_table(path, dialect.encoding)

    def is_header(names: list[str]) -> bool:
        return {"document", PROBABILITY} <= {each.strip().lower() for each in names}

    table = SeparatedValues(bytes(file.buffer), path, is_header, dialect)
    columns = {each.lower(): place for place, each in enumerate(table.names)}
    lacking = [each for each in ("document", PROBABILITY) if each not in columns]
    if lacking:
        raise BadLineError(
            path, 1, f"expected columns document, probability, and query and rank; there is no {lacking[0]}"
        )
    probabilities: dict[str, dict[tuple[str, int], float]] = {}
    for row in table:
        if len(row.cells) != len(table.names):
            raise BadLineError(path, row.line, f"expected {len(table.names)} columns, found {len(row.cells)}")
        cells = {each: row.cells[place] for each, place in columns.items()}
        document, rank = cells["document"].strip(), _rank(path, row.line, cells.get("rank", "1"))
        if not document:
            raise BadLineError(path, row.line, "expected a document, found an empty cell")
        of_query = probabilities.setdefault(normalised(cells.get("query", "")), {})
        if (document, rank) in of_query:
            raise BadLineError(
                path, row.line, f"expected each document once per query and rank, found {document!r:.60} again"
            )
        of_query[document, rank] = _probability(path, row.line, cells[PROBABILITY], table)
    table.report()
    if not probabilities:
        raise DataError(f"{path}: expected a probability on each line, found none")
    for query, of_query in probabilities.items():
        _refuse_other_sum(path, query, of_query)
    for_all = "" if "query" not in columns else None
    return PolicyTable(name, probabilities, "rank" in columns, for_all, path)


def _rank(path: str, line: int, typed: str) -> int:
    text = typed.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        raise BadLineError(path, line, f"expected a rank of 1 or more, found {shortened(typed)!r}")
    return int(text)


def _probability(path: str, line: int, typed: str, table: SeparatedValues) -> float:
    try:
        value = table.numbers.read(typed, line)
    except ValueError as error:
        raise BadLineError(path, line, f"expected a probability, {error}") from None
    if not 0 <= value <= 1:
        raise BadLineError(path, line, f"expected a probability from 0 to 1, found {shortened(typed)!r}")
    return value


def _refuse_other_sum(path: str, query: str, probabilities: Mapping[tuple[str, int], float]) -> None:
    sums: dict[int, float] = {}
    for (_, rank), probability in probabilities.items():
        sums[rank] = sums.get(rank, 0.0) + probability
    for rank, total in sums.items():
        if abs(total - 1) > SUM_TO_1:
            at = f" at rank {rank}" if len(sums) > 1 else ""
            of = f"query {shortened(query)!r}" if query else "all documents"
            raise DataError(f"{path}: expected probabilities that sum to 1 for {of}{at}, found a sum of {total:.4g}")
