"""What a measure is: a class with a formula, parameters with ranges, and the names people type for it.

Everything said about a measure (help, docs, name parsing, promise tests) comes from its class. The
grammar is the one the field already types: `nDCG@10`, `AP(rel=2)@100`, `RBP(p=0.8)`; the names of
trec_eval, ir_measures and ranx are read as well, and `str(measure)` reads back to the same measure.
`gmean(AP)` is AP with its topics made one number by the geometric mean, `micro(R@50)` R@50 with its topics added up first.
"""

from __future__ import annotations

import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from cranfield.errors import MeasureError, UnknownMeasureError
from cranfield.hits import ratio
from cranfield.parameters import Choice, Flag, Parameter, Parametrised, Real, real, shortened, shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.hits import Hits, Judgments
    from cranfield.kernels.table import Floats

REGISTRY: dict[str, type[Measure]] = {}  # complete after load_all
GROUP = "cranfield.measures"  # the package of ours, and the entry points of others
GREEK = {"alpha": "α", "beta": "β"}  # how formulas write these parameters
WITHOUT_CUT = {
    "@k": "",
    "is at ranks 1…k": "is at any rank",
    "answered at ranks 1…k": "answered at any rank",
    "ranks 1…k": "all ranks",
    ", both cut at k": "",
}  # what a formula says where there is no cut-off
LAST = ("depth", "k", "judged_only")  # parameters that are named behind all others, whichever class declares them
Gains: TypeAlias = "str | tuple[tuple[float, float], ...]"
_loaded: list[str] = []


def load_all() -> dict[str, type[Measure]]:
    """Import every family there is a file of, and hand out every measure, those of a family side by side."""
    if not _loaded:
        import importlib
        import pkgutil

        for module in pkgutil.iter_modules(importlib.import_module(GROUP).__path__):
            importlib.import_module(f"{GROUP}.{module.name}")
        ordered = sorted(REGISTRY.items(), key=lambda item: item[1].__module__)
        REGISTRY.clear()
        REGISTRY.update(ordered)
        _loaded.append(GROUP)
    return REGISTRY


class Gain(Parameter[Gains]):
    """What a grade is worth: the grade itself, 2^grade - 1, or a table such as {1:3, 2:9} (other grades: themselves).

    A negative grade is worth 0, or with `signed` and `signed-exp2` less than that, as in Elasticsearch and Quepid.
    """

    NAMES = ("linear", "exp2", "signed", "signed-exp2")

    def __init__(self) -> None:
        super().__init__("linear", "what a grade is worth")

    @property
    def range(self) -> str:
        return f"{' | '.join(self.NAMES)} | a table {{grade:gain, …}}"

    def read(self, given: Any) -> Gains:
        if isinstance(given, str) and given.startswith("{") and given.endswith("}"):
            given = [pair.split(":") for pair in split(given[1:-1], ",")]
        if isinstance(given, Mapping):
            given = list(given.items())
        if isinstance(given, (list, tuple)):
            table = {real(grade): real(gain) for grade, gain in given}
            if len(table) != len(given):
                raise ValueError
            return tuple(sorted(table.items()))
        if given not in self.NAMES:
            raise ValueError
        return str(given)

    def show(self, value: Gains) -> str:
        if isinstance(value, str):
            return value
        return "{" + ",".join(f"{shown(grade)}:{shown(gain)}" for grade, gain in value) + "}"

    def in_formula(self, value: Gains) -> str:
        if not isinstance(value, str):
            return ", ".join(f"{shown(gain)} for grade {shown(grade)}" for grade, gain in value)
        worth = "2^grade − 1" if value.endswith("exp2") else "grade"
        return f"{worth}, below 0 for grades below 0" if Gain.signed(value) else worth

    @staticmethod
    def of(value: Gains, grade: Floats) -> Floats:
        """The gain of each grade."""
        gain = (grade if Gain.signed(value) else np.maximum(grade, 0)).astype(np.float64)
        if isinstance(value, str):
            return np.exp2(gain) - 1 if value.endswith("exp2") else gain
        for level, worth in value:
            gain[grade == level] = worth
        return gain

    @staticmethod
    def ideal(value: Gains, hits: Hits, lowest: float = 0.0) -> tuple[Hits, Floats]:
        """The hits of the best possible run for these gains, those above `lowest` only, and the gain of each."""
        plain = value in ("linear", "exp2")
        best = hits.ideal if plain else hits.judgments.best(Gain.of(value, hits.judgments.grade), lowest)
        return best, Gain.of(value, best.grade)

    @staticmethod
    def signed(value: Gains) -> bool:
        """Whether a negative grade is a loss."""
        return isinstance(value, str) and value.startswith("signed")


class Inner(Parameter["Measure"]):
    """A measure that another one is made from: URisk(of=nDCG@20)."""

    def __init__(self, default: Any, meaning: str) -> None:
        super().__init__(default, meaning)

    @property
    def default(self) -> Any:
        """The measure, read when it is first asked for: its class may be registered after this one."""
        return self._default if self._default is ... else measure(str(self._default))

    @default.setter
    def default(self, given: Any) -> None:
        self._default = given

    @property
    def range(self) -> str:
        return "a measure"

    @property
    def example(self) -> str:
        return "nDCG@10"

    def read(self, given: Any) -> Measure:
        return given if isinstance(given, Measure) else measure(str(given))


def _total(values: Floats) -> float:
    """Add up in the order given, as trec_eval does, so that the last digit of a mean agrees; infinite beyond doubles."""
    with np.errstate(over="ignore"):
        return float(np.cumsum(values)[-1])


def _mean(values: Floats) -> float:
    total = _total(values)
    return total / len(values) if math.isfinite(total) else _total(values / len(values))


def _sum(values: Floats) -> float:
    total = _total(values)
    if math.isinf(total) and np.isfinite(values).all():
        raise MeasureError("the values of all topics add up to more than a number can hold")
    return total


def _geometric(values: Floats) -> float:
    return math.exp(_total(np.log(np.maximum(values, 1e-5))) / len(values))  # the floor is trec_eval's


def _harmonic(values: Floats) -> float:
    """0 if any value is; undefined below 0."""
    if (values <= 0).any():
        return 0.0 if (values >= 0).all() else math.nan
    return len(values) / _total(1 / values)


AGGREGATES: dict[str, Callable[[Floats], float]] = {
    "mean": _mean,
    "gmean": _geometric,
    "median": lambda values: float(np.median(values)),
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    "hmean": _harmonic,
    "sum": _sum,
}
"""How the values of all topics become one number. `gmean` lifts values below 0.00001 to that, as trec_eval does."""


class Measure(Parametrised, ABC):
    """One way to score one run on one topic. Subclass it, name the parameters, write `score`.

    The docstring's first paragraph is the definition, a doctest in it the worked example.
    """

    refusal = MeasureError
    family: ClassVar[str]
    formula: ClassVar[str]
    reference: ClassVar[str]
    rewrites: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """What a parameter changes in `formula`: "divide=found" → (the part that goes, the part that comes in its place).

    A key without a value holds for all values but the default. An empty first part puts the second at the end. A class
    has those of its bases, too."""
    at: ClassVar[str | None] = "k"  # the parameter that stands behind the @; None if there is none
    aggregate: str = "mean"  # or "sum", for counts; gmean(AP) and the like change it for one measure
    needs: ClassVar[tuple[str, ...]] = ()  # what it must know beyond hits: see evaluate.NEEDS
    may_use: ClassVar[tuple[str, ...]] = ()  # what it takes from there if it is known
    # What the class promises, for grades from 0 to `max` and the first of each choice; tests hold it to that.
    low: float = 0.0  # a measure may widen these three where its parameters ask for something else
    high: float = 1.0
    ideal_is_best: ClassVar[bool] = True  # no ranking of the same documents beats the ideal one
    normalised: ClassVar[bool] = False  # a run of all relevant documents and no others, best first, scores 1
    monotone: ClassVar[bool] = True  # moving a better document up never lowers the score
    empty_is_zero: bool = True  # a topic without an answer scores 0
    shares_alone: ClassVar[bool] = True  # what a hit adds (`shares`) depends on no judgment but its own
    lower_is_better: bool = False  # a rank or a rate of error
    undefined: ClassVar[str] = ""  # when a topic has no value (NaN, left out of the mean), in words; "" if never

    peers: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Peers' spellings. `{k}` stands for a parameter; a fixed one follows `=`: "ndcg_burges = nDCG(gain=exp2)".

    Under the key "--as beir" stand names that mean something else elsewhere: they are read under that preset only.
    """
    level: ClassVar[str] = "rel"  # the parameter that ranx's suffix sets: map-l2 is AP(rel=2)
    synonyms: ClassVar[Mapping[str, str]] = {}
    """Peers' spellings of a parameter ("gains": "gain"), or of one with its value ("dcg=log2": "gain=linear")."""

    judged_only = Flag("take unjudged documents out of the run first (the condensed list)")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in LAST:
            if name in cls.parameters:
                cls.parameters[name] = cls.parameters.pop(name)
        cls.rewrites = {key: pair for base in reversed(cls.__mro__) for key, pair in _own_rewrites(base)}
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if hasattr(cls, "family") and not cls.__name__.startswith("_"):  # _Walk: what the measures of a family share
            ours = cls.__module__.startswith(f"{GROUP}.")
            known = (REGISTRY if ours else load_all()).get(cls.name)
            if known is not None and known.__module__ != cls.__module__:
                raise MeasureError(f"{cls.__module__}: a measure {cls.name} exists already, in {known.__module__}")
            REGISTRY[cls.name] = cls
            _aliases.cache_clear()

    def lacking(self, key: str) -> str:
        return f"{self.name}@{self.parameters[key].example}" if key == self.at else super().lacking(key)

    def __call__(self, hits: Hits) -> Floats:
        """One value a topic, of the run or, with `judged_only`, of its condensed list."""
        try:
            with np.errstate(over="raise"):
                return self.score(hits.condensed() if self.judged_only else hits)
        except FloatingPointError:
            with self.within_doubles(hits.judgments):
                raise

    def within_doubles(self, judgments: Judgments) -> AbstractContextManager[None]:
        """Stop where grades are so high that a number on the way would be infinite."""
        gains = isinstance(self.parameters.get("gain"), Gain)
        return within_doubles(str(self), judgments, "give gains: gain={grade:gain, …}" if gains else "use smaller ones")

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """One value a topic."""

    def pooled(self, hits: Hits) -> tuple[Floats, Floats] | None:
        """What each topic adds above and below the line of a micro average; None where topics are averaged (macro)."""
        return None

    def expected(self, hits: Hits) -> Floats | None:
        """One value a topic: the mean of the score over all orders of tied documents; None if no formula is known."""
        return None

    def shares(self, hits: Hits) -> Floats | None:
        """What each hit adds to the score of its topic, where that is a sum over hits; None where it is not."""
        return None

    def assumed(self, highest: float) -> str:
        """What is taken for granted that these judgments, up to this grade, do not show; empty if nothing is."""
        return ""

    def beyond(self, highest: float) -> str:
        """What becomes of judgments up to this grade, where it is above the scale of the measure; empty where it is not."""
        return ""

    # how `explain` shows it

    def formula_with_values(self) -> str:
        """The formula of the class with this measure's parameters in it.

        Choices rewrite parts of it. Then follow the values of what it names, and all other values that are not as usual,
        with their meaning.

        >>> measure("DCG(discount=jk, gain=exp2)@5").formula_with_values()
        'Σ over ranks 1…k of gain / max(1, log(rank) / log(base)),  gain = 2^grade − 1,  base = 2,  k = 5'
        """
        text, settled = self._rewritten()
        values: list[str] = []
        for key, parameter in self.parameters.items():
            value = self.values[key]
            if key in settled or value is None:
                continue
            name = next((name for name in (key, GREEK.get(key, key)) if _uses(text + "".join(values), name)), "")
            if name and not isinstance(parameter, (Choice, Flag)):
                values.append(f",  {name} = {parameter.in_formula(value)}")
            elif value != parameter.default or isinstance(parameter, Inner):
                values.append(f",  {key} = {parameter.in_formula(value)} ({parameter.meaning})")
        return text + "".join(values)

    def _rewritten(self) -> tuple[str, set[str]]:
        """The formula with the parts changed that its choices change, and the parameters that did so."""
        text, settled = self.formula, set()
        uncut = "k" in self.values and self.values["k"] is None
        for key, parameter in self.parameters.items():
            value = self.values[key]
            pair = self.rewrites.get(f"{key}={parameter.show(value)}")
            if pair is None and value != parameter.default:
                pair = self.rewrites.get(key)
            if pair is None or (uncut and _uses(_uncut(pair[1]), "k")):  # a list that is not cut has no k to speak of
                continue
            assert pair[0] in text, f"{self.name}: {key} rewrites {pair[0]!r}, which its formula does not have"
            text = text.replace(*pair) if pair[0] else text + pair[1]
            if isinstance(parameter, (Choice, Flag)):
                settled.add(key)
        return _uncut(text) if uncut else text, settled

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """What the calculation does with each hit: named columns, NaN where a hit plays no part.

        A column called `contribution` adds up to the score.
        """
        return {}

    def ideal_hits(self, hits: Hits) -> Hits | None:
        """The ideal ranking that the score is compared with, if it is."""
        return None

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """The last line of the calculation, such as "{DCG} / {ideal DCG}", and its numbers: one each, or one a topic."""
        return "", {}

    def summarise(self, values: Floats) -> float:
        """One number for all topics; NaN where there are none, 0 for a sum."""
        if not len(values):
            return 0.0 if self.aggregate == "sum" else math.nan
        return AGGREGATES[self.aggregate](values)

    def summarise_runs(self, values: Floats) -> Floats | None:
        """One number a run where that depends on the other runs: `values` are runs × topics. None: `summarise` each."""
        return None

    def __str__(self) -> str:
        text = self.spelt(self.changed())
        return text if self.aggregate == type(self).aggregate else f"{self.aggregate}({text})"

    def spelt(self, changed: Mapping[str, Any]) -> str:
        """Its name with the parameters that are not as usual, whatever becomes of the topics."""
        typed = ", ".join(f"{key}={value}" for key, value in changed.items() if key != self.at)
        text = f"{self.name}({typed})" if typed else self.name
        at = self.values.get(self.at) if self.at else None
        return text if at is None else f"{text}@{self.parameters[str(self.at)].show(at)}"

    def with_values(self, **changes: Any) -> Measure:
        """The same measure with other values for some of its parameters."""
        answer = type(self)(**{**self.values, **changes})
        answer.aggregate, answer.typed = self.aggregate, self.typed | set(changes)
        return answer

    def __repr__(self) -> str:
        return f"measure({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Measure) and type(other) is type(self) and other.values == self.values
        return same and isinstance(other, Measure) and other.aggregate == self.aggregate

    def __hash__(self) -> int:
        return hash((type(self), self.aggregate, tuple(self.values.items())))


def _own_rewrites(base: type) -> Iterable[tuple[str, tuple[str, str]]]:
    """What a class itself declares that its parameters change in its formula."""
    own: Mapping[str, tuple[str, str]] = vars(base).get("rewrites", {})
    return own.items()


def _uncut(formula: str) -> str:
    """A formula of the first k ranks as one of the whole list."""
    for cut, whole in WITHOUT_CUT.items():
        formula = formula.replace(cut, whole)
    return formula


def _uses(formula: str, symbol: str) -> bool:
    """Whether a formula uses a symbol: 2T names T, max(a, b) does not name the parameter max."""
    return re.search(rf"(?<![^\W\d_]){re.escape(symbol)}(?![A-Za-z0-9_(])", formula) is not None


@contextmanager
def within_doubles(what: str, judgments: Judgments, hint: str = "use smaller ones") -> Iterator[None]:
    """Stop where grades are so high that a number on the way would be infinite."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError:
        highest = float(np.abs(judgments.grade).max(initial=0))
        raise MeasureError(f"{what}: grades up to {highest:g} make numbers too large to compute; {hint}") from None


def traced(seen: npt.NDArray[np.bool_], columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """Columns for `Measure.trace`: NaN but for the hits that play a part."""
    return {name: np.where(seen, values, np.nan) for name, values in columns.items()}


class Binary(Measure):
    """A measure that asks of a document only whether it is relevant."""

    rel = Real(1, "the lowest relevant grade")


MICRO = "micro"


class Ratio(Measure):
    """A measure that is one number over another, so that topics can be averaged in two ways.

    The macro average is the mean of the topics' ratios: each topic counts alike. The micro average adds up what stands
    above the line and what stands below it over all topics, and then divides: a topic counts by what it has below.
    """

    average = Choice("macro", "the mean of the topics' ratios, or the ratio of the topics' sums", MICRO)
    rewrites = {"average=micro": ("", ",  both sides of the line added up over all topics first")}
    rel = Real(1, "the lowest relevant grade")

    @abstractmethod
    def parts(self, hits: Hits) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """What stands above and below the line, one value a topic each."""

    def spelt(self, changed: Mapping[str, Any]) -> str:
        text = super().spelt({key: value for key, value in changed.items() if key != "average"})
        return f"{MICRO}({text})" if self.average == MICRO else text

    def score(self, hits: Hits) -> Floats:
        return ratio(*self.parts(hits))

    def pooled(self, hits: Hits) -> tuple[Floats, Floats] | None:
        if self.average != MICRO:
            return None
        above, below = self.parts(hits.condensed() if self.judged_only else hits)
        return np.asarray(above, np.float64), np.asarray(below, np.float64)


def takes_topics_alone(measure: Measure) -> bool:
    """Whether its number for all topics is made in the usual way: of each topic's value, and of one run."""
    own = type(measure)
    return own.summarise is Measure.summarise and own.summarise_runs is Measure.summarise_runs


def needs_of(measure: Measure) -> set[str]:
    """What the measure and those that it is made from must know beyond hits."""
    inner = [value for value in measure.values.values() if isinstance(value, Measure)]
    return {*measure.needs, *(need for each in inner for need in needs_of(each))}


def micro_average(measure: Measure) -> Measure | None:
    """The micro average of a measure that is a ratio and was asked for as the mean of ratios; None for any other.

    >>> from cranfield.measures import measure
    >>> str(micro_average(measure("R@5"))), micro_average(measure("AP"))
    ('micro(R@5)', None)
    """
    if measure.values.get("average") != "macro" or measure.aggregate != "mean":
        return None
    return measure.with_values(average=MICRO)


def _micro(text: str, of: Measure) -> Measure:
    """`micro(R@50)`, by what stands inside."""
    answer = micro_average(of)
    if answer is None:
        ratios = ", ".join(name for name, cls in load_all().items() if issubclass(cls, Ratio))
        why = "is one number for all topics already" if isinstance(of, Ratio) else "is no ratio that could be summed up"
        raise MeasureError(f"{MICRO}({text}): {of} {why}; micro averages are there of {ratios}")
    return answer


def aggregated(measure: Measure, aggregate: str) -> Measure:
    """The same measure with another way to make one number of all topics.

    >>> str(aggregated(measure("AP(rel=2)"), "gmean"))
    'gmean(AP(rel=2))'
    """
    if aggregate not in AGGREGATES:
        raise MeasureError(f"aggregate must be one of {', '.join(AGGREGATES)}, got {aggregate!r}")
    if not takes_topics_alone(measure):
        raise MeasureError(f"{aggregate}({measure}): {measure.name} makes one number of all topics in its own way")
    if measure.aggregate != type(measure).aggregate:
        raise MeasureError(f"{aggregate}({measure}): {measure} is one number for all topics already")
    answer = measure.with_values()
    answer.aggregate = aggregate
    return answer


def split(text: str, at: str = ", \t\r\n") -> list[str]:
    """Split at commas and white space that stand outside brackets.

    >>> split("nDCG@10 AP(rel=2, divide=cut)@5,P@5")
    ['nDCG@10', 'AP(rel=2, divide=cut)@5', 'P@5']
    """
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char in "({[") - (char in ")}]")
        if depth == 0 and char in at:
            parts.append(part)
            part = ""
        else:
            part += char
    return [part.strip() for part in [*parts, part] if part.strip()]


def _names(text: str) -> Iterator[str]:
    """The names in a text; depths that stand behind one with commas, as in P@5,10, are as many measures."""
    for word in split(text, " \t\r\n"):
        before = ""
        for part in split(word, ","):
            name = f"{before}@{part}" if before and part.isdecimal() else part
            before = name.rpartition("@")[0]
            yield name


def measures(
    given: str | Measure | Iterable[str | Measure], rel: float | None = None, preset: str = ""
) -> dict[str, Measure]:
    """Measures by the names they were given: one text, or several texts and measures; see `measure`.

    >>> list(measures("nDCG@1,5,10 map")), str(measures("map")["map"])
    (['nDCG@1', 'nDCG@5', 'nDCG@10', 'map'], 'AP')
    """
    items = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    answer: dict[str, Measure] = {}
    for item in map(_typed, items):
        if isinstance(item, Measure):
            answer[str(item)] = item
            continue
        for text in _names(item) if isinstance(item, str) else [item]:
            answer[text] = measure(text, rel, preset)
    if not answer:
        raise MeasureError("no measure given; try nDCG@10")
    return answer


def _typed(given: Any) -> Any:
    """A measure of ir_measures as one types it; anything else as it is."""
    return str(given) if type(given).__module__.partition(".")[0] == "ir_measures" else given


Meaning: TypeAlias = "tuple[type[Measure], dict[str, Any]]"  # what a name means: a class, and its parameters
GRAMMAR = re.compile(r"\s*([A-Za-z0-9][\w+\-]*)\s*(?:\((.*)\))?\s*(?:@\s*([0-9.]+))?\s*", re.DOTALL)
NESTED = 20  # brackets in a name; no measure takes more than three


def measure(text: str, rel: float | None = None, preset: str = "") -> Measure:
    """The measure that a name means. `rel` is the lowest relevant grade where the name does not give one.

    Where programs mean different things by one name, `preset` says whose name it is.

    >>> measure("ndcg_cut_10"), measure("mrr@5"), measure("AP( rel=2 )@100")
    (measure('nDCG@10'), measure('RR@5'), measure('AP(rel=2)@100'))
    >>> measure("gmean(AP)") == measure("gm_map")
    True
    >>> measure("ndcg@10-l2"), measure("precision"), measure("precision@5"), measure("Accuracy@5", preset="beir")
    (measure('nDCG(lowest=2)@10'), measure('SetP'), measure('P@5'), measure('Success@5'))
    """
    text = _typed(text)
    if not isinstance(text, str):
        raise MeasureError(f"expected a measure's name, such as nDCG@10, found {text!r:.60}")
    if text.count("(") > NESTED:
        raise MeasureError(f"{shortened(text)!r}: expected {NESTED} brackets at the most, found {text.count('(')}")
    match = GRAMMAR.fullmatch(text)
    if match and match[1] in (*AGGREGATES, MICRO) and match[2] is not None:
        if match[3] is not None:
            raise MeasureError(f"{text}: a cut-off stands behind the measure: {match[1]}({match[2]}@{match[3]})")
        of = measure(match[2], rel, preset)
        return _micro(match[2], of) if match[1] == MICRO else aggregated(of, match[1])
    cls, arguments = _read(text, preset)
    aggregate = arguments.pop("aggregate", None)
    if rel is not None:
        if "rel" in cls.parameters:
            arguments.setdefault("rel", rel)
        for key, parameter in cls.parameters.items():
            if isinstance(parameter, Inner) and not (parameter.required and key not in arguments):
                arguments[key] = measure(str(arguments.get(key, parameter.default)), rel)
    answer = cls(**arguments)
    return answer if aggregate is None else aggregated(answer, aggregate)


def _read(text: str, preset: str) -> Meaning:
    meaning = _known(text, preset) or _levelled(text, preset) or (_known(text, preset) if load_installed() else None)
    if meaning is None:
        raise UnknownMeasureError(_unknown(text, [*REGISTRY, *_aliases(preset)[0]]))
    return meaning


LEVELLED = re.compile(r"\s*(.+)-l([0-9]+)\s*")


def _levelled(text: str, preset: str) -> Meaning | None:
    """ranx's names with the lowest relevant grade behind them: ndcg@10-l2, map-l2."""
    match = LEVELLED.fullmatch(text)
    meaning = _known(match[1], preset) if match else None
    if match is None or meaning is None:
        return None
    cls, arguments = meaning
    if cls.level not in cls.parameters:
        raise MeasureError(f"{text}: {cls.name} has no lowest relevant grade that -l{match[2]} could set")
    return cls, {**arguments, cls.level: match[2]}


def _known(text: str, preset: str) -> Meaning | None:
    match = GRAMMAR.fullmatch(text)
    if match and match[1] in REGISTRY and match[2] is None and not preset:  # no need to compile the other tools' names
        return REGISTRY[match[1]], _arguments(REGISTRY[match[1]], text, None, match[3])
    load_all()
    names, templates = _aliases(preset)
    for pattern, owner, means in templates:
        fits = pattern.fullmatch(text.strip())
        if fits:
            return owner, _filled(means, fits.groupdict())
    if match:
        name, inside, at = match.groups()
        fixed: dict[str, Any] = {}
        cls = REGISTRY.get(name)
        if cls is None and name in names:
            cls, fixed = _fitting(names[name], at is not None or CUT.search(inside or "") is not None)
        if cls is None:
            folded = [known for known in REGISTRY if known.lower() == name.lower()]
            cls = REGISTRY[folded[0]] if len(folded) == 1 else None
        if cls is not None:
            return cls, {**fixed, **_arguments(cls, text, inside, at)}
    return None


CUT = re.compile(r"\b(k|cutoff)\s*=")


def _fitting(meanings: list[Meaning], cut: bool) -> Meaning:
    """Of several measures of one name the first that takes a cut-off where there is one, or does without if not."""
    for cls, fixed in meanings:
        needs_cut = cls.at is not None and cls.parameters[cls.at].required
        if (cls.at is not None) if cut else not needs_cut:
            return cls, fixed
    return meanings[0]


def _filled(means: dict[str, Any], typed: dict[str, str]) -> dict[str, Any]:
    """The parameters that a peer's name means; what was typed may also stand inside one: GroupMean(of=P@{k})."""
    answer: dict[str, Any] = dict(typed)
    for key, value in means.items():
        for name, text in typed.items():
            if isinstance(value, str) and f"{{{name}}}" in value:
                value = value.replace(f"{{{name}}}", text)
                answer.pop(name, None)
        answer[key] = value
    return answer


_installed: list[str] = []


def load_installed() -> bool:
    """Import the measures of installed packages, once; True if there were any. Listing packages takes time: never at start.

    A package announces them as entry points of the group `cranfield.measures`, each a module or a class. One that
    cannot be imported is left out with a warning: it must not keep anybody from the other measures.
    """
    if _installed:
        return False
    import warnings
    from importlib.metadata import entry_points

    before = len(load_all())
    _installed.append(GROUP)
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            where = f"{entry.dist.name}: " if entry.dist is not None else ""
            warnings.warn(f"{where}no measures from {entry.value} ({type(error).__name__}: {error})", stacklevel=2)
    return len(REGISTRY) > before


def _arguments(cls: type[Measure], text: str, inside: str | None, at: str | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    synonyms = {"cutoff": "k", **cls.synonyms}
    for pair in split(inside or "", ","):
        key, equals, value = (part.strip().strip("'\"") for part in pair.partition("="))
        if not equals:
            raise MeasureError(f"{text}: expected name=value inside the brackets, found {pair!r}")
        key = synonyms.get(key, key)
        if f"{key}={value}" in synonyms:
            key, _, value = synonyms[f"{key}={value}"].partition("=")
        if key in arguments:
            raise MeasureError(f"{text}: {key} is given twice, as {arguments[key]} and {value}")
        arguments[key] = value
    if at is not None:
        if cls.at is None:
            raise MeasureError(f"{text}: {cls.name} takes no cut-off")
        if cls.at in arguments:
            raise MeasureError(f"{text}: {cls.at} is given twice, as {arguments[cls.at]} and {at}")
        arguments[cls.at] = at
    return arguments


UNDER = "--as "  # how a key of `Measure.peers` begins whose names are read under one preset only


@functools.cache
def _aliases(
    preset: str,
) -> tuple[dict[str, list[Meaning]], list[tuple[re.Pattern[str], type[Measure], dict[str, Any]]]]:
    """Peers' names, plain ones and those with a place for a number; compiled once, and again after a measure was added.

    Names of the preset alone come first.
    """
    names: dict[str, list[Meaning]] = {}
    templates: list[tuple[re.Pattern[str], type[Measure], dict[str, Any]]] = []
    for owned in (True, False):
        for cls in REGISTRY.values():
            keys = [key for key in cls.peers if (key == UNDER + preset if owned else not key.startswith(UNDER))]
            _spellings(cls, [spelling for key in keys for spelling in cls.peers[key]], names, templates)
    return names, templates


def _spellings(
    cls: type[Measure],
    spellings: list[str],
    names: dict[str, list[Meaning]],
    templates: list[tuple[re.Pattern[str], type[Measure], dict[str, Any]]],
) -> None:
    """Add the names that peers have for one measure."""
    for spelling in spellings:
        shape, _, means = (part.strip() for part in spelling.partition(" = "))
        fixed = _fixed(cls, means)
        if "{" in shape:
            dotted = re.escape(shape).replace(r"_\{", r"[_.]\{")  # trec_eval asks for P.5 and prints P_5
            pattern = dotted.replace(r"\{", "(?P<").replace(r"\}", ">[0-9.]+)")
            templates.append((re.compile(pattern), cls, fixed))
        else:
            names.setdefault(shape, []).append((cls, fixed))


def _fixed(cls: type[Measure], means: str) -> dict[str, Any]:
    match = GRAMMAR.fullmatch(re.sub(r"@\{.*\}$", "", means)) if means else None
    if match and match[1] in AGGREGATES and match[2] is not None:
        return {"aggregate": match[1], **_fixed(cls, match[2])}
    return _arguments(cls, means, match[2], match[3]) if match else {}


def _unknown(text: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(re.split(r"[@(]", text)[0], dict.fromkeys(names), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no measure {shortened(text)!r}{hint} (cranfield measures lists all)"
