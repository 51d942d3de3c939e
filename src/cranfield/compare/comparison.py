"""Comparison: the differences between systems, pair by pair and measure by measure, and what to know about them.

A pair holds one difference, `other` minus `one` (the baseline), over the topics for which both have a value. `better`
already knows whether lower is better; the difference and its interval do not, they are plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.compare.efficiency import Efficiency
    from cranfield.compare.groups import Group
    from cranfield.kernels.table import Floats
    from cranfield.scores import Scores


NAN = float("nan")


@dataclass(frozen=True)
class Pair:
    """One difference: `other` against `one` (the baseline) by a measure."""

    measure: str
    one: str
    other: str
    n: int  # topics for which both have a value
    mean_one: float
    mean_other: float
    difference: float  # other − one
    low: float  # the interval of the mean difference
    high: float
    effect: float  # d_z, the mean difference in standard deviations; NaN where there is no spread
    wins: int  # topics on which other is better; where lower is better a lower value wins
    ties: int
    losses: int
    p: float  # of the test that decides; NaN with a `reason`
    corrected: float
    outcomes: Mapping[str, Any] = field(default_factory=dict)  # all tests that were made, by name
    reason: str = ""
    better: Literal["one", "other", "neither"] = "neither"  # by the mean, whatever the p-value
    test: str = ""  # the test that decides for this pair: groups of runs have their own
    left_out: int = 0  # topics for which one of the two has no value
    equivalence: Any = None  # what TOST and the test of non-inferiority say, where a margin was given

    def sentence(self, correction: str = "", alpha: float = 0.05, lower_is_better: bool = False) -> str:
        """The pair in plain words; `Comparison.sentence` knows what to fill in."""
        from cranfield.compare.sentences import in_words

        return in_words(self, correction, alpha, lower_is_better=lower_is_better)


@dataclass(frozen=True)
class Caution:
    """What a statistician would warn of: a code for programs, a sentence for people, and what it is about."""

    code: str
    text: str
    measure: str | None = None
    runs: tuple[str, ...] = ()


@dataclass(repr=False)
class Comparison:
    """What `compare` returns: pairs with their differences, intervals and p-values, and what to beware of.

    >>> from cranfield import compare
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
    >>> runs = {"old": {"q1": {"b": 1}, "q2": {"a": 1}}, "new": {"q1": {"a": 1}, "q2": {"b": 1}}}
    >>> found = compare(qrels, runs, "RR")
    >>> found.pair("old", "new").difference, [caution.code for caution in found.cautions]
    (1.0, ['few-topics', 'coarse'])
    """

    scores: Scores
    pairs: list[Pair]
    tests: list[str]  # the first of them decides
    correction: str = "holm"
    alpha: float = 0.05
    level: float = 0.95
    interval: str = "t"
    resamples: int = 100_000
    seed: int = 0
    alternative: str = "two-sided"
    baselines: list[str] = field(default_factory=list)
    family: int = 0  # how many p-values the correction covers
    many: dict[str, dict[str, Any]] = field(default_factory=dict)  # measure → test → what it says of all runs at once
    groups: list[Group] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # what was left out
    rope: float | None = None
    margin: float | None = None
    judged: dict[str, dict[str, float]] = field(default_factory=dict)  # Judged@k → run → the share that was judged
    micro: dict[str, dict[str, float]] = field(default_factory=dict)  # a ratio → run → the ratio of the topics' sums
    inputs: dict[str, Any] = field(default_factory=dict)  # the names of files, where files were read
    efficiency: Efficiency | None = None  # what the runs cost, where that was measured

    @property
    def test(self) -> str:
        """The test that decides."""
        return self.tests[0]

    def pair(self, one: str, other: str, measure: str | None = None) -> Pair:
        """The pair of two runs, as `one` and `other`, by a measure."""
        found = [p for p in self.pairs if (p.one, p.other) == (one, other) and measure in (None, p.measure)]
        if len(found) != 1:
            known = "; ".join(f"{p.one}, {p.other}, {p.measure}" for p in self.pairs[:6])
            raise DataError(f"no single pair {one}, {other}, {measure}; there are {known}")
        return found[0]

    def significant(self, pair: Pair) -> bool:
        """Whether the corrected p-value is at most alpha."""
        return pair.corrected <= self.alpha

    def best_first(self) -> list[Pair]:
        """The pairs of the best systems first, measure by measure; against baselines, the best of the others first."""

        def place(pair: Pair) -> tuple[float, ...]:
            turn = 1.0 if self.lower_is_better(pair.measure) else -1.0
            means = [turn * mean if mean == mean else np.inf for mean in (pair.mean_one, pair.mean_other)]
            rank = (means[1],) if self.baselines else (min(means), max(means))
            return (order[pair.measure], *rank)

        order = {measure: m for m, measure in enumerate(self.scores.measures)}
        return sorted(self.pairs, key=place)

    def lower_is_better(self, measure: str) -> bool:
        """Whether a lower value of this measure is better."""
        return self.scores.measures[measure].lower_is_better

    def runs_of(self, name: str) -> tuple[str, ...]:
        """The runs of a group, or the run of that name."""
        return next((group.runs for group in self.groups if group.name == name), (name,))

    def table(self, name: str, measure: str) -> Floats:
        """Topics × runs: the values of a run, or of all runs of a group; NaN where there is none."""
        index = list(self.scores.measures).index(measure)
        rows = [self.scores.runs.index(run) for run in self.runs_of(name)]
        return self.scores.values[rows, index].T

    def values(self, name: str, measure: str) -> Floats:
        """The value of each topic of a run, or the mean over the runs of a group; NaN where one of them has none."""
        answer: Floats = self.table(name, measure).mean(axis=1)
        return answer

    def differences(self, pair: Pair) -> tuple[list[str], Floats]:
        """The topics of a pair and other − one for each, in the order of the scores."""
        difference = self.values(pair.other, pair.measure) - self.values(pair.one, pair.measure)
        kept = np.flatnonzero(~np.isnan(difference))
        return [self.scores.topics[t] for t in kept.tolist()], difference[kept]

    # in words

    @property
    def named_correction(self) -> str:
        """The correction as a sentence names it; empty where nothing was corrected."""
        from cranfield.stats.correction import CORRECTIONS
        from cranfield.stats.testing import TESTS_OF_MANY

        corrects = self.family > 1 and self.test not in TESTS_OF_MANY
        return CORRECTIONS[self.correction].short if corrects else ""

    def sentence(self, pair: Pair) -> str:
        """A pair in plain words."""
        return pair.sentence(self.named_correction, self.alpha, self.lower_is_better(pair.measure))

    def sentences(self) -> list[str]:
        """Every pair in plain words."""
        return [self.sentence(pair) for pair in self.pairs]

    def notes(self) -> list[str]:
        """What was left out, and what to beware of, a sentence each."""
        return [*self.remarks, *(f"caution: {caution.text}" for caution in self.cautions)]

    def to_text(self, **options: Any) -> str:
        """Table, sentences, bars, cautions: see `compare.text.to_text` for `bars`, `digits`, `limit`, `every`."""
        from cranfield.compare.text import to_text

        return to_text(self, **options)

    def to_markdown(self, digits: int = 4, every: bool = False) -> str:
        """The same in Markdown, without bars."""
        from cranfield.compare.text import to_markdown

        return to_markdown(self, digits, every)

    def __repr__(self) -> str:
        return self.to_text(bars=False)

    # going out

    def to_dict(self, per_topic: bool = False, digits: int | None = None) -> dict[str, Any]:
        """Plain values, with all that is needed to make them again; a number that does not exist is None."""
        answer: dict[str, Any] = {
            "test": self.test,
            "tests": self.tests,
            "correction": self.correction,
            "family": self.family,
            "alpha": self.alpha,
            "level": self.level,
            "interval": self.interval,
            "alternative": self.alternative,
            "resamples": self.resamples,
            "seed": self.seed,
            "rope": self.rope,
            "margin": self.margin,
            "runs": self.scores.runs,
            "baselines": self.baselines,
            "groups": {group.name: list(group.runs) for group in self.groups},
            "measures": list(self.scores.measures),
            "topics": len(self.scores.topics),
            "pairs": [self._pair_to_dict(pair, per_topic, digits) for pair in self.pairs],
            "spread": self._spread(digits),
            "many": {
                measure: {name: _plain(one, digits) for name, one in of.items()} for measure, of in self.many.items()
            },
            "judged": {name: _plain(shares, digits) for name, shares in self.judged.items()},
            "micro": {name: _plain(means, digits) for name, means in self.micro.items()},
            "cautions": [_plain(asdict(caution), digits) for caution in self.cautions],
            "remarks": self.remarks,
            "efficiency": None if self.efficiency is None else _plain(self.efficiency.to_dict(), digits),
            "inputs": self.inputs,
            "conventions": None if self.scores.elsewhere else self.scores.conventions.to_dict(),
            "versions": versions(),
        }
        return {name: value for name, value in answer.items() if value not in ({}, None)}

    def _pair_to_dict(self, pair: Pair, per_topic: bool, digits: int | None) -> dict[str, Any]:
        row = {each.name: getattr(pair, each.name) for each in fields(pair)}
        answer = {name: _plain(value, digits) for name, value in row.items() if value is not None}
        answer["significant"] = self.significant(pair)
        answer["sentence"] = self.sentence(pair)
        if per_topic:
            topics, differences = self.differences(pair)
            answer["per_topic"] = dict(zip(topics, _plain(differences, digits), strict=True))
        return answer

    def _spread(self, digits: int | None) -> dict[str, Any]:
        """Of each group and measure: the mean of each run, their mean and standard deviation."""
        from cranfield.compare.groups import spread

        answer: dict[str, Any] = {}
        for group in self.groups:
            for measure in self.scores.measures:
                means, mean, deviation = spread(self.scores, group, measure)
                row = {"runs": dict(zip(group.runs, means.tolist(), strict=True)), "mean": mean, "sd": deviation}
                answer.setdefault(group.name, {})[measure] = _plain(row, digits)
        return answer

    def to_json(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_dict` as JSON; bytes of an id that are no text come out as `\\udcXX`."""
        import json

        given = self.to_dict(per_topic, digits)
        text = json.dumps(given, indent=2, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(given, indent=2)
        return text

    def to_csv(self, per_topic: bool = False, digits: int | None = None, delimiter: str = ",") -> str:
        """A header and a row a pair, or a row a pair and topic; numbers in full unless `digits` are given."""
        import csv
        import io

        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows(self._topic_rows(digits) if per_topic else self._pair_rows(digits))
        return file.getvalue()

    def to_tsv(self, per_topic: bool = False, digits: int | None = None) -> str:
        """`to_csv` with tabs."""
        return self.to_csv(per_topic, digits, delimiter="\t")

    def _pair_rows(self, digits: int | None) -> Iterator[list[str]]:
        columns = [each.name for each in fields(Pair) if each.name not in ("outcomes", "equivalence")]
        others = [name for name in self.tests if any(name in pair.outcomes for pair in self.pairs)]
        yield [*columns, "significant", *(f"p {name}" for name in others if name != self.test)]
        for pair in self.pairs:
            row = [_cell(getattr(pair, name), digits) for name in columns]
            outcomes = [pair.outcomes.get(name) for name in others if name != self.test]
            tested = ["" if one is None else _cell(one.p, digits) for one in outcomes]
            yield [*row, "yes" if self.significant(pair) else "no", *tested]

    def _topic_rows(self, digits: int | None) -> Iterator[list[str]]:
        yield ["measure", "one", "other", "topic", "value one", "value other", "difference"]
        for pair in self.pairs:
            a, b = self.values(pair.one, pair.measure), self.values(pair.other, pair.measure)
            for topic, x, y in zip(self.scores.topics, a.tolist(), b.tolist(), strict=True):
                if x == x and y == y:
                    yield [pair.measure, pair.one, pair.other, topic, *(_cell(v, digits) for v in (x, y, y - x))]

    def _repr_html_(self) -> str:
        from cranfield.compare.notebook import to_html

        return to_html(self)


def versions() -> dict[str, str]:
    """What computed the numbers."""
    import platform
    from importlib.metadata import version

    return {
        "cranfield": version("cranfield"),
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "python": platform.python_version(),
    }


def _plain(value: Any, digits: int | None) -> Any:
    """Plain values of anything that a pair holds: NaN and infinity become None."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return None if not np.isfinite(number) else number if digits is None else round(number, digits)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), digits)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, digits) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, digits) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name), digits) for each in fields(value)}
    return value


def _cell(value: Any, digits: int | None) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if value != value else repr(value) if digits is None else f"{value:.{digits}f}"
