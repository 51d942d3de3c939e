"""What a report is made of: a comparison, and beside it the leaderboard, the curves, the files and the command.

Nothing here is computed again. The systems are the comparison's: a group of runs counts as one system. The same report
gives the same bytes each time, so it holds no date; the hashes of its inputs and the printed command say what it is of.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.closeup import closeups
from cranfield.collection import Qrels
from cranfield.columns import joined, listed
from cranfield.compare.comparison import versions
from cranfield.compare.leaderboard import leaderboard
from cranfield.curves import curves
from cranfield.errors import CranfieldError, DataError
from cranfield.formats import qrels_in, run_name
from cranfield.formats.folder import document_rows
from cranfield.formats.known.trec import TREC
from cranfield.report.texts import documents_file, words_of_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.closeup import Closeup
    from cranfield.compare import Comparison, Pair
    from cranfield.compare.leaderboard import Leaderboard
    from cranfield.curves import Curves
    from cranfield.formats.topics import TopicTable
    from cranfield.kernels.table import Floats


MOST = 1000  # pairs that a page can list
SHALLOW, DEEP = 10, 20  # ranks of a topic that a page shows: as far as a measure looks, within these
PLACES = 30_000  # ranks of all topics and systems that a page holds; of more, the shallow lists alone
TOO_MANY = 100_000  # of more than so many places, none


@dataclass(frozen=True)
class Input:
    """A file that was read, as it was given (packed, if it is), and its SHA-256."""

    role: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Report:
    """All that a page, a Markdown file or a LaTeX table shows."""

    comparison: Comparison
    title: str = "Comparison of runs"
    leaderboards: Mapping[str, Leaderboard] = field(default_factory=dict)  # one a measure, ranked by it
    curves: Curves | None = None
    inputs: tuple[Input, ...] = ()
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    digits: int = 4
    topics: TopicTable | None = None  # what was asked
    documents: str | None = None  # where the documents lie whose texts a page shows

    @property
    def measures(self) -> list[str]:
        """Their names: those that were compared, in the order of the scores."""
        compared = {pair.measure for pair in self.comparison.pairs}
        return [name for name in self.comparison.scores.measures if name in compared]

    @cached_property
    def systems(self) -> list[str]:
        """Groups and runs that stand alone, best first by the first measure."""
        group_of = {run: group.name for group in self.comparison.groups for run in group.runs}
        names = list(dict.fromkeys(group_of.get(run, run) for run in self.comparison.scores.runs))
        if not self.measures:
            return names
        first = self.measures[0]
        turn = 1 if self.lower_is_better(first) else -1
        return sorted(names, key=lambda name: _last(turn * self.mean(name, first)))

    @property
    def reference(self) -> str:
        """The system to compare the others with: the first baseline, the first of two, or the best of many."""
        if self.comparison.baselines:
            return self.comparison.baselines[0]
        return self.comparison.pairs[0].one if len(self.systems) == 2 else self.systems[0]

    def mean(self, system: str, measure: str) -> float:
        """A system's mean over its topics, by weights where they have any; a group's is the mean over its runs."""
        scores = self.comparison.scores
        means = scores.ranking(list(scores.measures).index(measure))
        return float(np.mean([means[scores.runs.index(run)] for run in self.comparison.runs_of(system)]))

    def values(self, system: str, measure: str) -> Floats:
        """A system's value of each topic, to six decimals; NaN where there is none."""
        return np.round(self.comparison.values(system, measure), 6) + 0.0

    def lower_is_better(self, measure: str) -> bool:
        """Whether a low value is a good one."""
        return self.comparison.lower_is_better(measure)

    def domain(self, measure: str) -> tuple[float, float] | None:
        """From the lowest to the highest value that a measure can have, where both exist and are shown whole."""
        known = self.comparison.scores.measures[measure]
        return (0.0, 1.0) if (known.low, known.high) == (0.0, 1.0) else None

    def pair(self, measure: str, one: str, other: str) -> Pair | None:
        """The comparison of two systems, whichever of them it calls `one`; None if they were not compared."""
        return self._pairs.get((measure, one, other)) or self._pairs.get((measure, other, one))

    @cached_property
    def _pairs(self) -> dict[tuple[str, str, str], Pair]:
        return {(pair.measure, pair.one, pair.other): pair for pair in self.pairs}

    @property
    def _best_first(self) -> bool:
        """Whether the better system is the `one` of each pair; it is the `other` of the two that are looked at first."""
        sided = self.comparison.alternative != "two-sided"
        return len(self.systems) > 2 and not self.comparison.baselines and not sided

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs, by measure, and all the same way round where sides do not matter.

        `one` is the reference where it takes part; of many systems, the one that stands first.
        """
        if self.comparison.alternative != "two-sided":
            return list(self.comparison.pairs)
        place = {name: i for i, name in enumerate(self.systems)}

        def against(pair: Pair) -> bool:
            return place[pair.one] > place[pair.other] if self._best_first else pair.other == self.reference

        return [pair.turned() if against(pair) else pair for pair in self.comparison.pairs]

    @cached_property
    def listed(self) -> list[Pair]:
        """The pairs that a page or a text lists: all of them, or where they are thousands those with the reference."""
        if len(self.pairs) <= MOST:
            return self.pairs
        return [pair for pair in self.pairs if self.reference in (pair.one, pair.other)]

    def shown_pair(self, one: str | None = None, other: str | None = None) -> tuple[str, str]:
        """The two systems to look at first: those asked for, or those that differ most by the first measure."""
        for name in (one, other):
            if name is not None and name not in self.systems:
                raise DataError(f"no system {name!r}; there are {listed(self.systems, most=20)}")
        if one is None and other is None:
            first = [pair for pair in self.pairs if pair.measure == self.measures[0]]
            known = [pair for pair in first if pair.difference == pair.difference]
            widest = max(known or first, key=lambda pair: abs(pair.difference))
            return (widest.other, widest.one) if self._best_first else (widest.one, widest.other)
        start = one if one is not None else self.reference if self.reference != other else None
        rest = [name for name in self.systems if name not in (start, other)]
        start = start if start is not None else rest[0]
        return start, other if other is not None else rest[0]

    @property
    def queries(self) -> Mapping[str, str]:
        """What was asked, by topic, as far as it is known."""
        return self.comparison.scores.queries if self.topics is None else self.topics.queries

    @property
    def depth(self) -> int:
        """How many ranks of a topic a page shows."""
        scores = self.comparison.scores
        cuts = [k for name in self.measures if isinstance(k := scores.measures[name].values.get("k"), int)]
        wanted = min(max([SHALLOW, *cuts]), DEEP)
        return wanted if wanted * len(self.systems) * len(scores.topics) <= PLACES else SHALLOW

    @cached_property
    def closeups(self) -> list[Closeup]:
        """The top of each system, topic by topic; of a group, its first run's. Empty where runs are not at hand, or too many."""
        if self.depth * len(self.systems) * len(self.comparison.scores.topics) > TOO_MANY:
            return []
        runs = [self.comparison.runs_of(system)[0] for system in self.systems]
        return closeups(self.comparison.scores, runs, self.depth)

    @cached_property
    def shown_documents(self) -> dict[str, tuple[str, str]]:
        """Title and first words of each document that is shown, where texts are known."""
        if self.documents is None:
            return {}
        shown = {document for seen in self.closeups for listed in seen.documents for document in listed}
        return words_of_documents(document_rows(documents_file(self.documents)), shown)

    @property
    def size_of_texts(self) -> int:
        """How many bytes of a page are what documents say."""
        return sum(len("".join(parts).encode("utf-8", "replace")) for parts in self.shown_documents.values())

    def better(self, measure: str, one: str, other: str) -> int:
        """1 where `other` is significantly better than `one`, -1 where it is worse, else 0."""
        pair = self.pair(measure, one, other)
        if pair is None or not self.comparison.significant(pair):
            return 0
        ahead = {"one": pair.one, "other": pair.other}.get(pair.better)
        return 0 if ahead is None else 1 if ahead == other else -1

    def torn(self, measure: str, one: str, other: str) -> bool:
        """Whether the test settles a pair, but not in favour of the one that the mean puts ahead."""
        pair = self.pair(measure, one, other)
        return pair is not None and self.comparison.torn(pair)

    def sentence(self, pair: Pair) -> str:
        """A pair in words, with what was found about the margin where there is one."""
        sides = {pair.one, pair.other}
        given = next(p for p in self.comparison.pairs if p.measure == pair.measure and {p.one, p.other} == sides)
        return ". ".join(text for text in (self.comparison.sentence(given), given.margin_sentence()) if text)


def _last(value: float) -> float:
    """A value to sort by: what is undefined comes last."""
    return value if value == value else float("inf")


# from a comparison


def report_of(
    comparison: Comparison,
    options: Mapping[str, Any] | None = None,
    others: Iterable[str | None] = (),
    *,
    title: str | None = None,
    command: str = "",
    digits: int = 4,
    topics: TopicTable | None = None,
    documents: str | None = None,
    judged: Qrels | None = None,
) -> Report:
    """A report of a comparison. `options` are those of `evaluate`, and `others` are further files that were read.

    `topics` and `documents` (a collection, or a file of its shape) are what a page can say beside ids. `judged` are the
    qrels where they come from no file but from a log.
    """
    settings: dict[str, Any] = {"alpha": comparison.alpha, "level": comparison.level, "seed": comparison.seed}
    compared = {pair.measure for pair in comparison.pairs}
    measures = [name for name in comparison.scores.measures if name in compared]
    scores, drawn = comparison.scores, None
    if options is not None and all(map(scores.holds, scores.runs)):
        opened = [scores.opened(run) for run in scores.runs]
        try:
            drawn = curves(opened[0][0].qrels, [run for _, run in opened], "pr11", **{**options, "warn": False})
        except CranfieldError as error:
            comparison = replace(comparison, remarks=[*comparison.remarks, f"no precision-recall curves: {error}"])
    return Report(
        comparison,
        title=title or _title(comparison),
        leaderboards={name: leaderboard(comparison.scores, sort=name, **settings) for name in measures},
        curves=drawn,
        inputs=_hashes(comparison, others, documents, judged),
        command=command,
        versions=versions(),
        digits=digits,
        topics=topics,
        documents=documents,
    )


def _hashes(
    comparison: Comparison, others: Iterable[str | None], documents: str | None, judged: Qrels | None
) -> tuple[Input, ...]:
    """The files that were read, as they lie on the disk, with their SHA-256."""
    files = [("table", comparison.inputs.get("table")), ("qrels", judged or comparison.inputs.get("qrels"))]
    files += [(f"run {name}", path) for name, path in comparison.inputs.get("runs", {}).items()]
    files += [("option", path) for path in others]
    files += [("documents", documents)]
    return tuple(_hashed(role, path) for role, path in files if path is not None)


def _hashed(role: str, path: str | Qrels) -> Input:
    if isinstance(path, Qrels):  # of a log: hashed as it would be written
        lines = b"".join(TREC.write(path.table, "qrels", ""))
        return Input(role, path.name, len(lines), hashlib.sha256(lines).hexdigest())
    real = documents_file(path) if role == "documents" else qrels_in(path)  # a collection is named by its folder
    try:
        with open(real, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Input(role, path, os.path.getsize(real), digest)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _title(comparison: Comparison) -> str:
    """A title that says which runs, if they are few, and on what."""
    what = comparison.inputs.get("qrels") or comparison.inputs.get("table")
    runs = comparison.scores.runs
    start = joined(runs) if len(runs) <= 3 else f"{len(runs)} runs"
    return f"{start} on {run_name(what)}" if what else start
