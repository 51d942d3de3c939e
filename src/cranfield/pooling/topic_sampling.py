"""Topics drawn from the queries of a log, with the probability that each was drawn.

A design says how: `systematic` and `pareto` draw a query with probability proportional to its searches, so that the mean over
the topics describes the mean search; `uniform` draws queries alike; `top` takes the most frequent. The size is fixed. A query
with so many searches that its probability would exceed 1 is certain, and the others share the rest. The frequency and the
probability are written with each topic, because every estimate needs both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import Parametrised, Real, refuse_below, shortened
from cranfield.base.registry import Registered, Registry, page
from cranfield.base.results import Answer, Cell, Layout, Lines, Table, fitted
from cranfield.base.results import plain as plain_values
from cranfield.base.text_layout import counted, name_list
from cranfield.evaluation.topics import CERTAIN, DESIGN, FRAME_SHARE, FREQUENCY, PROBABILITY, STRATUM
from cranfield.formats.query_text import RULE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.base.results import Part

    Numbers = npt.NDArray[np.int64]

COLUMNS = ("topic", "query", FREQUENCY, PROBABILITY, DESIGN, STRATUM, FRAME_SHARE)
SHOWN = 8  # topics in a text
FIRST_MERGED = 3  # merged queries that a note names
NO_QUERY = "the search has no query"

TOPIC_DESIGNS: Registry[type[TopicDesign]] = Registry(
    "design of a sample of topics", "topic_designs", "cranfield.pooling.topic_sampling"
)


class TopicDesign(Registered, ABC):
    """How topics are drawn from queries: the probability of each query, and a draw of fixed size with these probabilities."""

    registry = TOPIC_DESIGNS
    formula: ClassVar[str]
    reference: ClassVar[str]
    represents: ClassVar[str] = "the mean search"  # what the mean over the topics describes
    proportional: ClassVar[bool] = False  # whether probabilities are proportional to traffic, so that intervals hold
    reaches_all: ClassVar[bool] = True  # whether every query can be drawn, so that weighted means describe all traffic

    @abstractmethod
    def probabilities(self, frequency: npt.ArrayLike, n: int) -> Floats:
        """The probability with which each query is among the n topics; the sum is n."""

    @abstractmethod
    def draw(self, probability: Floats, rng: np.random.Generator) -> Numbers:
        """The numbers of the queries in one sample; its size is the sum of the probabilities."""


class _ByTraffic(TopicDesign):
    """Designs whose probabilities are proportional to traffic."""

    formula = "π = n f / F; 1 where that exceeds 1, and the others share the rest"
    proportional = True

    def probabilities(self, frequency: npt.ArrayLike, n: int) -> Floats:
        """Proportional to frequency, with certain queries found again until none of the others exceeds 1."""
        size = np.asarray(frequency, np.float64)
        probability = np.zeros(len(size))
        certain = np.zeros(len(size), np.bool_)
        while True:
            rest = n - int(certain.sum())
            probability = np.where(certain, 1.0, rest * size / max(float(size[~certain].sum()), 1.0))
            more = ~certain & (probability >= CERTAIN)
            if not more.any():
                return probability
            certain |= more

    def draw(self, probability: Floats, rng: np.random.Generator) -> Numbers:
        certain = np.flatnonzero(probability >= CERTAIN)
        others = np.flatnonzero((probability > 0) & (probability < CERTAIN))
        n = round(float(probability[others].sum()))
        drawn = others[self.draw_uncertain(probability[others], n, rng)] if n else others[:0]
        return np.sort(np.concatenate([certain, drawn]))

    @abstractmethod
    def draw_uncertain(self, probability: Floats, n: int, rng: np.random.Generator) -> Numbers:
        """A sample of n queries whose probabilities are below 1 and sum to n."""


class SystematicDesign(_ByTraffic):
    """Proportional to traffic: queries in random order along a line, each as long as its probability, drawn at steps of 1.

    The inclusion probabilities are exact. The random order makes almost every pair of queries possible.
    """

    name = "systematic"
    reference = "Madow (1949), On the theory of systematic sampling, II"

    def draw_uncertain(self, probability: Floats, n: int, rng: np.random.Generator) -> Numbers:
        order = rng.permutation(len(probability))
        ends = np.cumsum(probability[order])
        points = (rng.random() + np.arange(n)) * (ends[-1] / n)  # the sum is n but for rounding
        places = np.searchsorted(ends, points, side="right").clip(max=len(order) - 1)
        return np.asarray(order[places], np.int64)


class ParetoDesign(_ByTraffic):
    """Proportional to traffic: the n queries with the smallest odds of a random number over the odds of their probability.

    The inclusion probabilities are approximate: off by 0.013 at most in samples of 3 to 8 of 12 queries, and closer in larger
    ones. Queries are drawn almost independently of each other, which is what the formula of the standard error assumes.
    """

    name = "pareto"
    reference = "Rosén (1997), On sampling with probability proportional to size"

    def draw_uncertain(self, probability: Floats, n: int, rng: np.random.Generator) -> Numbers:
        chance = rng.random(len(probability))
        ranking = chance * (1 - probability) / ((1 - chance) * probability)
        return np.argpartition(ranking, n - 1)[:n] if n < len(ranking) else np.arange(n)


class UniformDesign(TopicDesign):
    """Every query with the same probability, whatever its traffic.

    The mean over the topics describes the mean query. Means weighted by traffic are possible, but a few topics decide them.
    """

    name = "uniform"
    formula = "π = n / N"
    reference = "simple random sampling without replacement"
    represents = "the mean query"

    def probabilities(self, frequency: npt.ArrayLike, n: int) -> Floats:
        number = np.size(frequency)
        return np.full(number, n / number)

    def draw(self, probability: Floats, rng: np.random.Generator) -> Numbers:
        n = round(float(probability.sum()))
        return np.sort(rng.choice(len(probability), n, replace=False))


class TopDesign(TopicDesign):
    """The most frequent queries; among equally frequent ones, the first by their text.

    No other query can be drawn, so these topics say nothing about the rest of the traffic.
    """

    name = "top"
    formula = "π = 1 for the n most frequent queries, else 0"
    reference = "a census of the head"
    represents = "these queries alone"
    reaches_all = False

    def probabilities(self, frequency: npt.ArrayLike, n: int) -> Floats:
        first = np.argsort(-np.asarray(frequency, np.float64), kind="stable")[:n]
        probability = np.zeros(np.size(frequency))
        probability[first] = 1.0
        return probability

    def draw(self, probability: Floats, rng: np.random.Generator) -> Numbers:
        return np.flatnonzero(probability > 0)


def design_page(design: type[TopicDesign]) -> dict[str, Any]:
    """The description of a design, for listings and docs."""
    return page(design, represents=design.represents)


# the queries of a log


class LeftOut(NamedTuple):
    """Queries that are not in the sampling frame for one reason, and their searches."""

    reason: str
    queries: int
    searches: int


def few_units(least: int) -> str:
    """The reason to leave a query out that too few units searched for."""
    return f"fewer than {least} units searched for the query"


@dataclass(frozen=True, eq=False, repr=False)
class QueryTraffic:
    """The queries that topics are drawn from (the sampling frame), each with its searches.

    `forms` are the normal forms, in order of frequency, then of text; `queries` are the most frequent spellings. `repeats`
    is the mean number of searches for a query by the unit of a search: 1 if no unit searches for the same query twice.
    """

    where: str
    forms: tuple[str, ...]
    queries: tuple[str, ...]
    searches: Numbers
    spellings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of merged queries: spelling → searches
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the user's columns, by query
    left_out: tuple[LeftOut, ...] = ()
    min_units: int | None = None  # None if nothing says who searched
    repeats: float = 1.0
    others: Mapping[str, int] = field(default_factory=dict)  # the queries that were left out, for looking up known ones

    def __len__(self) -> int:
        return len(self.forms)

    def __repr__(self) -> str:  # never names queries that were left out
        return f"<QueryTraffic of {self.where}: {_queries(len(self))} with {self.total:,} searches>"

    @property
    def total(self) -> int:
        """The searches of the frame."""
        return int(self.searches.sum())

    @property
    def everything(self) -> int:
        """The searches of the frame and those that were left out."""
        return self.total + sum(each.searches for each in self.left_out)

    @property
    def rare(self) -> int:
        """The number of queries that were left out because too few units searched for them."""
        reason = few_units(self.min_units) if self.min_units else ""
        return sum(each.queries for each in self.left_out if each.reason == reason)

    @property
    def covered(self) -> float:
        """The share of all searches that the frame covers."""
        return self.total / self.everything

    def of(self, form: str) -> int:
        """The searches for a query, in the frame or not."""
        return self._by_form.get(form, 0)

    @property
    def _by_form(self) -> dict[str, int]:
        if "_index" not in self.__dict__:
            index = {**self.others, **dict(zip(self.forms, self.searches.tolist(), strict=True))}
            object.__setattr__(self, "_index", index)
        return self.__dict__["_index"]  # type: ignore[no-any-return]

    def notes(self) -> list[str]:
        """What was merged and left out. Queries that were left out are never named."""
        notes = []
        for each in sorted(self.left_out, key=lambda one: -one.searches):
            share = f"{share_text(each.searches / self.everything)} of searches"
            without = each.reason == NO_QUERY
            notes.append(
                f"{share} have no query" if without else f"{_queries(each.queries)} left out ({share}): {each.reason}"
            )
        if self.min_units is None:
            notes.append(
                f"{self.where} does not say who searched, so queries of single people may be among the topics; "
                "a column of units excludes them"
            )
        if self.spellings:
            spelt, merged = sum(map(len, self.spellings.values())), len(self.spellings)
            first = "; ".join(_merged(forms) for forms in list(self.spellings.values())[:FIRST_MERGED])
            more = " …" if len(self.spellings) > FIRST_MERGED else ""
            notes.append(f"{spelt:,} spellings were merged into {_queries(merged)} ({RULE}): {first}{more}")
        return notes


def _merged(spellings: Mapping[str, int]) -> str:
    return " = ".join(repr(shortened(each)) for each in spellings)


def _queries(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def share_text(share: float) -> str:
    """A share as text: 31 %, 0.4 %, and never 100 % of what is not all."""
    percent = round(100 * share, 6)
    if 0 < percent < 0.1:
        return "under 0.1 %"
    digits = 0 if percent >= 10 or percent == 0 else 1
    text = f"{percent:.{digits}f}"
    return f"{'over 99' if text == '100' and percent < 100 else text} %"


# strata


class TrafficStrata(Parametrised):
    """Head, torso and tail: queries by the share of traffic of more frequent queries, plus half of the equally frequent.

    Equally frequent queries are always in one stratum.
    """

    name = "traffic"
    head = Real(0.33, "share of traffic that the most frequent queries have", low=0, high=1, open=True)
    tail = Real(0.33, "share of traffic that the rarest queries have", low=0, high=1, open=True)

    def of(self, searches: npt.ArrayLike) -> list[str]:
        """The stratum of each query.

        >>> TrafficStrata().of([40, 20, 10, 10, 5, 5, 5, 5])
        ['head', 'torso', 'tail', 'tail', 'tail', 'tail', 'tail', 'tail']
        """
        if self.head + self.tail >= 1:
            raise ConventionError(f"traffic: head + tail must be below 1, got {self.head + self.tail:g}")
        sizes, group = np.unique(np.asarray(searches, np.int64), return_inverse=True)
        traffic = np.bincount(group) * sizes / np.sum(searches)
        middle = (1 - np.cumsum(traffic) + traffic / 2)[group]
        return ["head" if at < self.head else "tail" if at > 1 - self.tail else "torso" for at in middle.tolist()]


def strata_of(traffic: QueryTraffic, strata: str | None) -> list[str]:
    """The stratum of each query: empty without strata, head, torso and tail by traffic, or the values of a column."""
    if strata is None:
        return [""] * len(traffic)
    if strata in traffic.columns:
        return [value or "(none)" for value in traffic.columns[strata]]
    from cranfield.base.parameters import read_call

    name, parameters = read_call(strata)
    if name.lower() != TrafficStrata.name:
        there = f"; it has {name_list(list(traffic.columns))}" if traffic.columns else ""
        problem = f"{traffic.where}: no column {shortened(strata)!r} for strata{there}"
        raise DataError(f"{problem}; traffic makes head, torso and tail")
    return TrafficStrata(**parameters).of(traffic.searches)


def allocate(
    n: int, searches: Mapping[str, int], sizes: Mapping[str, int], counts: Mapping[str, int]
) -> dict[str, int]:
    """The number of topics of each stratum: as in `counts`, or in proportion to searches; 2 or more, at most the queries.

    Two topics of a stratum are the fewest that show its spread; if n is too small for that, each stratum has one or more.

    >>> allocate(10, {"head": 600, "tail": 400}, {"head": 4, "tail": 50}, {})
    {'head': 4, 'tail': 6}
    """
    if counts:
        return _checked_counts(n, sizes, counts)
    if n < len(sizes):
        problem = f"expected at least one topic for each of {len(sizes)} strata, got n = {n}"
        raise DataError(f"{problem}; draw more topics or use fewer strata")
    pairs = {name: min(2, size) for name, size in sizes.items()}
    answer = pairs if sum(pairs.values()) <= n else dict.fromkeys(sizes, 1)
    total = sum(searches.values())
    for _ in range(n - sum(answer.values())):  # the next topic goes where the share is furthest behind
        behind = {name: n * searches[name] / total - answer[name] for name in sizes if answer[name] < sizes[name]}
        answer[max(behind, key=behind.__getitem__)] += 1
    return answer


def _checked_counts(n: int, sizes: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    for name, count in counts.items():
        if name not in sizes:
            raise DataError(f"allocation: no stratum {shortened(name)!r}; there are {name_list(list(sizes))}")
        if not 0 < count <= sizes[name]:
            raise DataError(
                f"allocation: {name} has {_queries(sizes[name])}, so 1 to {sizes[name]} topics, got {count}"
            )
    lacking = [name for name in sizes if name not in counts]
    if lacking:
        raise DataError(
            f"allocation: expected a number of topics for each stratum, found none for {name_list(lacking)}"
        )
    if sum(counts.values()) != n:
        raise DataError(f"allocation: the strata have {sum(counts.values())} topics, and n is {n}; make them equal")
    return {name: counts[name] for name in sizes}


# the sample


class DrawnTopic(NamedTuple):
    """A topic with what a weighted mean needs; `certain` topics add no variance."""

    topic: str
    query: str
    frequency: int
    probability: float
    stratum: str = ""
    form: str = ""

    @property
    def certain(self) -> bool:
        """Whether every sample of this design contains the topic."""
        return self.probability >= CERTAIN


def topic_id(form: str) -> str:
    """The id of a topic: a hash of the query's normal form, so that a query keeps its id, and its labels, in later samples.

    >>> topic_id("usb cable")
    't2dfe5099a8b0'
    """
    import hashlib

    return "t" + hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Stratum(NamedTuple):
    """A stratum of the frame: its name, queries, searches, topics, and certain topics."""

    name: str
    queries: int
    searches: int
    topics: int
    certain: int


@dataclass(frozen=True, repr=False, eq=False)
class TopicSample(Answer):
    """Topics that were drawn from queries, and the queries that they represent."""

    traffic: QueryTraffic
    design: TopicDesign
    seed: int
    topics: tuple[DrawnTopic, ...]  # most frequent first
    strata: tuple[Stratum, ...]

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def own_share(self) -> float:
        """The share of all searches that the topics themselves have."""
        return sum(topic.frequency for topic in self.topics) / self.traffic.everything

    def verdict(self) -> str:
        """The number of topics, and the share of traffic that they represent."""
        traffic, own = self.traffic, share_text(self.own_share)
        drawn = f"{counted(len(self), 'topic')} drawn from {_queries(len(traffic))} ({self.design})"
        if not self.design.reaches_all:
            are = "it is" if len(self) == 1 else "they are"
            represent = "represents" if len(self) == 1 else "represent"
            return f"{drawn}: {are} {own} of the searches in {traffic.where} and {represent} no others."
        whole = f"{share_text(traffic.covered)} of the searches in {traffic.where}"
        if len(self) == 1:
            return f"{drawn}: it represents {whole}, and its own query makes up {own}."
        return f"{drawn}: they represent {whole}, and their own queries make up {own}."

    def content(self, how: Layout) -> Iterable[Part]:
        yield self.verdict()
        if len(self.strata) > 1:
            yield self._strata_table()
        head = ["topic", "query", "searches", "probability", *(["stratum"] if len(self.strata) > 1 else [])]
        some = self.topics if how.every or how.medium != "text" else self.topics[:SHOWN]
        rows: list[list[Cell | str]] = [
            [
                each.topic,
                each.query,
                Cell(f"{each.frequency:,}", each.frequency),
                how.cell(each.probability),
                *([each.stratum] if len(self.strata) > 1 else []),
            ]
            for each in some
        ]
        rest = "" if len(some) == len(self) else f"… {len(self) - len(some):,} more: -o topics.tsv writes all"
        table = Table(head, rows, 2, rest=rest, title="Topics")
        yield fitted(table, 1, how.limit)
        if how.verbose:
            yield Lines([f"seed {self.seed}; {self.design.formula}; {self.design.reference}"], dim=True)

    def _strata_table(self) -> Table:
        rows: list[list[Cell | str]] = [
            [
                each.name,
                Cell(f"{each.queries:,}", each.queries),
                Cell(share_text(each.searches / self.traffic.total), each.searches / self.traffic.total),
                Cell(f"{each.topics:,}", each.topics),
                Cell(f"{each.certain:,}", each.certain),
            ]
            for each in self.strata
        ]
        return Table(["stratum", "queries", "searches", "topics", "certain"], rows, title="Strata")

    def notes(self, shell: bool = False) -> list[str]:
        notes = self.traffic.notes()
        certain = sum(topic.certain for topic in self.topics)
        if certain and self.design.reaches_all and certain < len(self):
            share = share_text(sum(each.frequency for each in self.topics if each.certain) / self.traffic.total)
            notes.append(f"{counted(certain, 'topic')} with {share} of the frame's searches are in every sample")
        single = [each.name for each in self.strata if each.topics - each.certain == 1 < each.queries]
        if single and self.design.proportional:
            inside = f" of {name_list(single)}" if len(self.strata) > 1 else ""
            notes.append(
                f"only one topic{inside} was drawn by chance, so means over the topics have no interval; draw more"
            )
        if not self.design.reaches_all:
            other = "--design systematic" if shell else "design='systematic'"
            notes.append(f"a mean over these topics does not describe all traffic; {other} draws topics that do")
        elif isinstance(self.design, UniformDesign) and not certain:
            other = "--design systematic" if shell else "design='systematic'"
            notes.append(f"a mean weighted by traffic would depend on a few topics; {other} draws for such means")
        return notes

    def table(self) -> list[list[Any]]:
        """The topics file: a header, and a row for each topic with the user's columns at the end."""
        at = {form: i for i, form in enumerate(self.traffic.forms)}
        share = float(f"{self.traffic.covered:.6g}")
        more = {name: values for name, values in self.traffic.columns.items() if name not in COLUMNS}
        rows = [
            [
                *(each.topic, each.query, each.frequency, each.probability, self.design.name, each.stratum, share),
                *(values[at[each.form]] for values in more.values()),
            ]
            for each in self.topics
        ]
        return [[*COLUMNS, *more], *rows]

    def records(self, how: Layout) -> list[list[Any]]:
        """The rows of the topics file."""
        return self.table()

    def plain(self, how: Layout) -> dict[str, Any]:
        traffic = self.traffic
        head, *rows = self.table()
        return {
            "design": str(self.design),
            "seed": self.seed,
            "queries": len(traffic),
            "searches": {"frame": traffic.total, "all": traffic.everything},
            "share": plain_values({"frame": traffic.covered, "topics": self.own_share}, how.digits),
            "strata": [each._asdict() for each in self.strata] if len(self.strata) > 1 else [],
            "topics": plain_values([dict(zip(head, row, strict=True)) for row in rows], how.digits),
            "left_out": [each._asdict() for each in traffic.left_out],
            "min_units": traffic.min_units,
            "merged": [{"query": form, "spellings": dict(spellings)} for form, spellings in traffic.spellings.items()],
        }


def sample_topics(
    traffic: QueryTraffic,
    n: int,
    *,
    design: str | TopicDesign = "systematic",
    strata: str | None = None,
    allocation: Mapping[str, int] | None = None,
    seed: int = 0,
) -> TopicSample:
    """Draw n topics from the queries of a log; `strata` is traffic or a column, `allocation` the topics of each stratum.

    >>> traffic = QueryTraffic("log", ("a", "b", "c"), ("a", "b", "c"), np.array([8, 1, 1]))
    >>> [(topic.query, topic.probability) for topic in sample_topics(traffic, 2, seed=3).topics]
    [('a', 1.0), ('c', 0.5)]
    """
    refuse_below(1, n=n)
    refuse_below(0, seed=seed)
    method = TOPIC_DESIGNS.named(design)
    if n > len(traffic):
        raise DataError(f"{traffic.where}: {_too_few(traffic, n)}")
    if allocation and strata is None:
        raise ConventionError("allocation is for strata, and there are none")
    names = strata_of(traffic, strata)
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    sizes = {name: len(each) for name, each in numbers.items()}
    searches = {name: int(traffic.searches[each].sum()) for name, each in numbers.items()}
    counts = allocate(n, searches, sizes, allocation or {})
    rng = np.random.default_rng(seed)
    topics: list[DrawnTopic] = []
    summary = []
    for name, each in numbers.items():
        within = np.array(each)
        probability = method.probabilities(traffic.searches[within], counts[name])
        drawn = method.draw(probability, rng)
        topics += [
            DrawnTopic(
                topic_id(traffic.forms[i]), traffic.queries[i], int(traffic.searches[i]), p, name, traffic.forms[i]
            )
            for i, p in zip(within[drawn].tolist(), probability[drawn].tolist(), strict=True)
        ]
        certain = sum(topic.certain for topic in topics if topic.stratum == name)
        summary.append(Stratum(name, sizes[name], searches[name], counts[name], certain))
    _refuse_same_ids(topics)
    topics.sort(key=lambda topic: (-topic.frequency, topic.form))
    return TopicSample(traffic, method, seed, tuple(topics), tuple(summary))


def _too_few(traffic: QueryTraffic, n: int) -> str:
    """What to do about a frame of fewer than n queries."""
    gone, rare = sum(each.queries for each in traffic.left_out), traffic.rare
    also = f" ({gone:,} more were left out)" if gone else ""
    fewer = " or fewer" if len(traffic) > 1 else ""
    advice = f"draw {counted(len(traffic), 'topic')}{fewer}"
    if len(traffic) + rare >= n:
        advice += f", or add some of the {rare:,} that fewer than {traffic.min_units} units searched for: min_units=…"
    return f"expected {_queries(n)} or more to draw from, found {len(traffic):,}{also}; {advice}"


def _refuse_same_ids(topics: Sequence[DrawnTopic]) -> None:
    (name, times), *_ = Counter(topic.topic for topic in topics).most_common(1)
    if times > 1:
        same = name_list([repr(topic.query) for topic in topics if topic.topic == name])
        raise DataError(f"the queries {same} have the same hash {name}; another seed draws other topics")
