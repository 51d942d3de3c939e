"""The definition of a measure: a class with a formula, parameters with ranges, and the names that users type.

Help, docs, name parsing and promise tests read everything from the class. The grammar is the usual one of the field:
`nDCG@10`, `AP(rel=2)@100`, `RBP(p=0.8)`. Names of trec_eval, ir_measures and ranx are understood as well, and
`str(measure)` reads back to the same measure. `gmean(AP)` takes the geometric mean of AP over topics; `micro(R@50)`
adds up numerators and denominators over topics before it divides.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from cranfield.base.errors import MeasureError, UnknownMeasureError
from cranfield.base.parameters import Choice, Flag, Parameter, Parametrised, Real, number_text, real, shortened
from cranfield.base.registry import Registry
from cranfield.evaluation.hits import ratio

if TYPE_CHECKING:
    import numpy.typing as npt

    from cranfield.base.kernels.table import Floats
    from cranfield.evaluation.hits import Hits, Judgments

FAMILIES = "cranfield.evaluation.measures"  # our own package, one file per family
COMMON = ("counts", "incomplete_judgments", "precision", "user_models")  # families to load before all the others
REGISTRY: Registry[type[Measure]] = Registry(
    "measure", "measures", FAMILIES, refusal=UnknownMeasureError, listing="cranfield measures"
)
GREEK = {"alpha": "α", "beta": "β"}  # spellings of parameters in formulas
WITHOUT_CUT = {
    "@k": "",
    "is at ranks 1…k": "is at any rank",
    "answered at ranks 1…k": "answered at any rank",
    "ranks 1…k": "all ranks",
    ", both cut at k": "",
}  # replacements in a formula without a cut-off
LAST = ("depth", "k", "judged_only")  # parameters that are listed last, whichever class declares them
Gains: TypeAlias = "str | tuple[tuple[float, float], ...]"


class Gain(Parameter[Gains]):
    """The gain of a grade: the grade itself, 2^grade - 1, or a table such as {1:3, 2:9} (other grades: themselves).

    A negative grade has gain 0; with `signed` and `signed-exp2` a negative gain, as in Elasticsearch and Quepid.
    """

    NAMES = ("linear", "exp2", "signed", "signed-exp2")

    def __init__(self) -> None:
        super().__init__("linear", "the gain of a grade")

    @property
    def range(self) -> str:
        return f"{' | '.join(self.NAMES)} | a table {{grade:gain, …}}"

    def read(self, value: Any) -> Gains:
        if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
            value = [pair.split(":") for pair in split(value[1:-1], ",")]
        if isinstance(value, Mapping):
            value = list(value.items())
        if isinstance(value, (list, tuple)):
            table = {real(grade): real(gain) for grade, gain in value}
            if len(table) != len(value):
                raise ValueError
            return tuple(sorted(table.items()))
        if value not in self.NAMES:
            raise ValueError
        return str(value)

    def show(self, value: Gains) -> str:
        if isinstance(value, str):
            return value
        return "{" + ",".join(f"{number_text(grade)}:{number_text(gain)}" for grade, gain in value) + "}"

    def in_formula(self, value: Gains) -> str:
        if not isinstance(value, str):
            return ", ".join(f"{number_text(gain)} for grade {number_text(grade)}" for grade, gain in value)
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
        """The hits of the best possible run for these gains (those above `lowest`), and the gain of each."""
        plain = value in ("linear", "exp2")
        best = hits.ideal if plain else hits.judgments.best(Gain.of(value, hits.judgments.grade), lowest)
        return best, Gain.of(value, best.grade)

    @staticmethod
    def signed(value: Gains) -> bool:
        """Whether negative grades have negative gains."""
        return isinstance(value, str) and value.startswith("signed")


class Inner(Parameter["Measure"]):
    """A parameter that is itself a measure: URisk(of=nDCG@20)."""

    def __init__(self, default: Any, meaning: str) -> None:
        super().__init__(default, meaning)

    @property
    def default(self) -> Any:
        """The default measure, read on first use: its class may be registered after this one."""
        return self._default if self._default is ... else measure(str(self._default))

    @default.setter
    def default(self, value: Any) -> None:
        self._default = value

    @property
    def range(self) -> str:
        return "a measure"

    @property
    def example(self) -> str:
        return "nDCG@10"

    def read(self, value: Any) -> Measure:
        return value if isinstance(value, Measure) else measure(str(value))


def _total(values: Floats) -> float:
    """Add up in the order given, as trec_eval does, so that the last digit of a mean agrees; infinite on overflow."""
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
    """The harmonic mean: 0 if any value is 0, undefined if any value is below 0."""
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
"""How the values of all topics become one number. `gmean` raises values below 0.00001 to that, as trec_eval does."""


class Measure(Parametrised, ABC):
    """One way to score a run on a topic. To define one, subclass this, declare the parameters and write `score`.

    The first paragraph of the docstring is the definition; a doctest in it is the worked example.
    """

    refusal = MeasureError
    family: ClassVar[str]
    formula: ClassVar[str]
    reference: ClassVar[str]
    rewrites: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """How a parameter changes `formula`: "divide=found" → (the part that is replaced, its replacement).

    A key without a value holds for all values except the default. With an empty first part, the second is appended. A
    class inherits the entries of its bases."""
    at: ClassVar[str | None] = "k"  # the parameter that follows the @; None if there is none
    aggregate: str = "mean"  # or "sum" for counts; gmean(AP) etc. change it for one measure
    needs: ClassVar[tuple[str, ...]] = ()  # data it needs beyond hits: see evaluate.NEEDS
    may_use: ClassVar[tuple[str, ...]] = ()  # data it uses if there is any
    # Promises for grades from 0 to `max` and the default of each choice; tests check them.
    low: float = 0.0  # a measure may widen these bounds depending on its parameters
    high: float = 1.0
    ideal_is_best: ClassVar[bool] = True  # no ranking of the same documents beats the ideal one
    normalised: ClassVar[bool] = False  # a run of all relevant documents and no others, best first, scores 1
    monotone: ClassVar[bool] = True  # moving a better document up never lowers the score
    empty_is_zero: bool = True  # a topic without an answer scores 0
    shares_alone: ClassVar[bool] = True  # what a hit adds (`shares`) depends only on its own judgment
    lower_is_better: bool = False  # a rank or a rate of error
    undefined: ClassVar[str] = ""  # when a topic has no value (NaN, left out of the mean), in words; "" if never

    peers: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names in other programs. `{k}` stands for a parameter; fixed ones follow `=`: "ndcg_burges = nDCG(gain=exp2)".

    Names under a key such as "--as beir" mean something else in other programs; only that preset reads them.
    """
    level: ClassVar[str] = "rel"  # the parameter that ranx's suffix sets: map-l2 is AP(rel=2)
    synonyms: ClassVar[Mapping[str, str]] = {}
    """Other programs' names of a parameter ("gains": "gain"), or of one with its value ("dcg=log2": "gain=linear")."""

    judged_only = Flag("remove unjudged documents from the run first (the condensed list)")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in LAST:
            if name in cls.parameters:
                cls.parameters[name] = cls.parameters.pop(name)
        own = (vars(base).get("rewrites", {}) for base in reversed(cls.__mro__))
        cls.rewrites = {key: pair for rewrites in own for key, pair in rewrites.items()}
        if "name" not in vars(cls):
            cls.name = cls.__name__
        # _RankWalk: what the measures of a family share
        if hasattr(cls, "family") and not cls.__name__.startswith("_"):
            REGISTRY.add(cls)

    def lacking(self, key: str) -> str:
        return f"{self.name}@{self.parameters[key].example}" if key == self.at else super().lacking(key)

    def __call__(self, hits: Hits) -> Floats:
        """One value per topic, for the run or, with `judged_only`, for its condensed list."""
        try:
            with np.errstate(over="raise"):
                return self.score(hits.condensed() if self.judged_only else hits)
        except FloatingPointError:
            with self.within_doubles(hits.judgments):
                raise

    def within_doubles(self, judgments: Judgments) -> AbstractContextManager[None]:
        """Raise MeasureError if grades are so high that an intermediate number would be infinite."""
        gains = isinstance(self.parameters.get("gain"), Gain)
        return within_doubles(str(self), judgments, "give gains: gain={grade:gain, …}" if gains else "use smaller ones")

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """One value per topic."""

    def pooled(self, hits: Hits) -> tuple[Floats, Floats] | None:
        """Numerator and denominator of each topic for a micro average; None if topics are averaged (macro)."""
        return None

    def expected(self, hits: Hits) -> Floats | None:
        """One value per topic: the mean score over all orders of tied documents; None if there is no formula."""
        return None

    def shares(self, hits: Hits) -> Floats | None:
        """What each hit adds to the score of its topic; None if the score is not a sum over hits."""
        return None

    def assumed(self, highest: float) -> str:
        """An assumption that these judgments, up to this grade, do not confirm, in words; empty if there is none."""
        return ""

    def beyond(self, highest: float) -> str:
        """What happens to judgments up to this grade if it exceeds the measure's scale, in words; else empty."""
        return ""

    # for `explain`

    def formula_with_values(self) -> str:
        """The formula of the class with this measure's parameters.

        Choices rewrite parts of it. Then follow the values of the symbols in it, and all other values that differ from
        their defaults, with their meaning.

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
        """The formula after the rewrites of its choices, and the parameters that caused them."""
        text, settled = self.formula, set()
        uncut = "k" in self.values and self.values["k"] is None
        for key, parameter in self.parameters.items():
            value = self.values[key]
            pair = self.rewrites.get(f"{key}={parameter.show(value)}")
            if pair is None and value != parameter.default:
                pair = self.rewrites.get(key)
            # without a cut-off there is no k in the formula
            if pair is None or (uncut and _uses(_uncut(pair[1]), "k")):
                continue
            assert pair[0] in text, f"{self.name}: {key} rewrites {pair[0]!r}, which its formula does not have"
            text = text.replace(*pair) if pair[0] else text + pair[1]
            if isinstance(parameter, (Choice, Flag)):
                settled.add(key)
        return _uncut(text) if uncut else text, settled

    def trace(self, hits: Hits) -> dict[str, Floats]:
        """The steps of the calculation for each hit: named columns, NaN for hits that do not count.

        A column named `contribution` adds up to the score.
        """
        return {}

    def ideal_hits(self, hits: Hits) -> Hits | None:
        """The ideal ranking that the score is compared with, if there is one."""
        return None

    def worked(self, hits: Hits) -> tuple[str, dict[str, Any]]:
        """The last line of the calculation, such as "{DCG} / {ideal DCG}", and its numbers: one, or one per topic."""
        return "", {}

    def summarise(self, values: Floats) -> float:
        """One number for all topics; without topics NaN, or 0 for a sum."""
        if not len(values):
            return 0.0 if self.aggregate == "sum" else math.nan
        return AGGREGATES[self.aggregate](values)

    def summarise_runs(self, values: Floats) -> Floats | None:
        """One number per run if it depends on the other runs (`values`: runs × topics); None: call `summarise` for each."""
        return None

    def __str__(self) -> str:
        text = self.spelt(self.changed())
        return text if self.aggregate == type(self).aggregate else f"{self.aggregate}({text})"

    def spelt(self, changed: Mapping[str, Any]) -> str:
        """The name with the parameters that differ from their defaults, without the aggregate."""
        typed = ", ".join(f"{key}={value}" for key, value in changed.items() if key != self.at)
        text = f"{self.name}({typed})" if typed else self.name
        at = self.values.get(self.at) if self.at else None
        return text if at is None else f"{text}@{self.parameters[str(self.at)].show(at)}"

    def with_values(self, **changes: Any) -> Measure:
        """The same measure with other values for some parameters."""
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


def _uncut(formula: str) -> str:
    """A formula for the first k ranks, rewritten for the whole list."""
    for cut, whole in WITHOUT_CUT.items():
        formula = formula.replace(cut, whole)
    return formula


def _uses(formula: str, symbol: str) -> bool:
    """Whether a formula uses a symbol: 2T uses T, max(a, b) does not use the parameter max."""
    return re.search(rf"(?<![^\W\d_]){re.escape(symbol)}(?![A-Za-z0-9_(])", formula) is not None


@contextmanager
def within_doubles(what: str, judgments: Judgments, hint: str = "use smaller ones") -> Iterator[None]:
    """Raise MeasureError if grades are so high that an intermediate number would be infinite."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError:
        highest = float(np.abs(judgments.grade).max(initial=0))
        raise MeasureError(f"{what}: grades up to {highest:g} make numbers too large to compute; {hint}") from None


def traced(mask: npt.NDArray[np.bool_], columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """Columns for `Measure.trace`: NaN for hits that do not count."""
    return {name: np.where(mask, values, np.nan) for name, values in columns.items()}


class Binary(Measure):
    """A measure with binary relevance."""

    rel = Real(1, "the lowest relevant grade")


MICRO = "micro"


class Ratio(Measure):
    """A measure that is a ratio, so that topics can be averaged in two ways.

    The macro average is the mean of the topics' ratios: each topic counts the same. The micro average adds up the
    numerators and the denominators over all topics and then divides: a topic counts by its denominator.
    """

    average = Choice("macro", "the mean of the topics' ratios, or the ratio of the topics' sums", MICRO)
    rewrites = {"average=micro": ("", ",  both sides of the line added up over all topics first")}
    rel = Real(1, "the lowest relevant grade")

    @abstractmethod
    def parts(self, hits: Hits) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Numerator and denominator, one value per topic each."""

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
    """Whether the summary depends only on the topics' values of one run, by the usual aggregate."""
    own = type(measure)
    return own.summarise is Measure.summarise and own.summarise_runs is Measure.summarise_runs


def is_mean(measure: Measure) -> bool:
    """Whether the summary is the plain mean of the topics' values of one run."""
    return measure.aggregate == "mean" and takes_topics_alone(measure)


def needs_of(measure: Measure) -> set[str]:
    """The data that the measure and its inner measures need beyond hits."""
    inner = [value for value in measure.values.values() if isinstance(value, Measure)]
    return {*measure.needs, *(need for each in inner for need in needs_of(each))}


def micro_average(measure: Measure) -> Measure | None:
    """The micro average of a ratio whose macro average was requested; None for any other measure.

    >>> from cranfield.evaluation.measures import measure
    >>> str(micro_average(measure("R@5"))), micro_average(measure("AP"))
    ('micro(R@5)', None)
    """
    if measure.values.get("average") != "macro" or measure.aggregate != "mean":
        return None
    return measure.with_values(average=MICRO)


def _micro(text: str, of: Measure) -> Measure:
    """Read `micro(R@50)`; `of` is the inner measure."""
    answer = micro_average(of)
    if answer is None:
        ratios = ", ".join(name for name, cls in REGISTRY.items() if issubclass(cls, Ratio))
        why = "is one number for all topics already" if isinstance(of, Ratio) else "is not a ratio"
        raise MeasureError(f"{MICRO}({text}): {of} {why}; micro averages exist for {ratios}")
    return answer


def aggregated(measure: Measure, aggregate: str) -> Measure:
    """The same measure with another aggregate over topics.

    >>> str(aggregated(measure("AP(rel=2)"), "gmean"))
    'gmean(AP(rel=2))'
    """
    if aggregate not in AGGREGATES:
        raise MeasureError(f"aggregate must be one of {', '.join(AGGREGATES)}, got {aggregate!r}")
    if not takes_topics_alone(measure):
        raise MeasureError(f"{aggregate}({measure}): {measure.name} has its own aggregate over topics")
    if measure.aggregate != type(measure).aggregate:
        raise MeasureError(f"{aggregate}({measure}): {measure} is one number for all topics already")
    answer = measure.with_values()
    answer.aggregate = aggregate
    return answer


def split(text: str, at: str = ", \t\r\n") -> list[str]:
    """Split at commas and white space outside brackets.

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
    """The names in a text; P@5,10 stands for two measures, one per depth."""
    for word in split(text, " \t\r\n"):
        before = ""
        for part in split(word, ","):
            name = f"{before}@{part}" if before and part.isdecimal() else part
            before = name.rpartition("@")[0]
            yield name


def measures(
    names: str | Measure | Iterable[str | Measure], rel: float | None = None, preset: str = ""
) -> dict[str, Measure]:
    """Read measures: one text, or several texts and measures; the keys are the names as typed. See `measure`.

    >>> list(measures("nDCG@1,5,10 map")), str(measures("map")["map"])
    (['nDCG@1', 'nDCG@5', 'nDCG@10', 'map'], 'AP')
    """
    items = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
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


def _typed(value: Any) -> Any:
    """The name of a measure object of ir_measures; anything else unchanged."""
    return str(value) if type(value).__module__.partition(".")[0] == "ir_measures" else value


Meaning: TypeAlias = "tuple[type[Measure], dict[str, Any]]"  # the class and the parameters that a name stands for
GRAMMAR = re.compile(r"\s*([A-Za-z0-9][\w+\-]*)\s*(?:\((.*)\))?\s*(?:@\s*([0-9.]+))?\s*", re.DOTALL)
NESTED = 20  # most brackets in a name; no measure needs more than three


def measure(text: str, rel: float | None = None, preset: str = "") -> Measure:
    """Read a measure from its name. `rel` is the lowest relevant grade if the name does not give one.

    Where programs use one name for different measures, `preset` says which program is meant.

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
        raise MeasureError(f"{shortened(text)!r}: expected at most {NESTED} brackets, found {text.count('(')}")
    match = GRAMMAR.fullmatch(text)
    if match and match[1] in (*AGGREGATES, MICRO) and match[2] is not None:
        if match[3] is not None:
            raise MeasureError(f"{text}: the cut-off belongs inside the brackets: {match[1]}({match[2]}@{match[3]})")
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
    meaning = _lookup(text, preset) or _levelled(text, preset)
    if meaning is None:
        REGISTRY.load_installed()
        meaning = _lookup(text, preset)
    if meaning is None:
        raise REGISTRY.unknown(text, _aliases(preset)[0])
    return meaning


LEVELLED = r"\s*(.+)-l([0-9]+)\s*"  # compiled when a name is not one of our own


def _levelled(text: str, preset: str) -> Meaning | None:
    """Names of ranx that end with the lowest relevant grade: ndcg@10-l2, map-l2."""
    match = re.fullmatch(LEVELLED, text)
    meaning = _lookup(match[1], preset) if match else None
    if match is None or meaning is None:
        return None
    cls, arguments = meaning
    if cls.level not in cls.parameters:
        raise MeasureError(f"{text}: {cls.name} has no lowest relevant grade that -l{match[2]} could set")
    return cls, {**arguments, cls.level: match[2]}


def _lookup(text: str, preset: str) -> Meaning | None:
    match = GRAMMAR.fullmatch(text)
    if match and match[2] is None and not preset:  # no need to compile the other tools' names
        cls = _common(match[1])
        if cls is not None:
            return cls, _arguments(cls, text, None, match[3])
    REGISTRY.load()
    names, templates = _aliases(preset)
    for pattern, owner, means in templates:
        fits = pattern.fullmatch(text.strip())
        if fits:
            return owner, _filled(means, fits.groupdict())
    if match:
        name, inside, at = match.groups()
        fixed: dict[str, Any] = {}
        cls = REGISTRY.loaded().get(name)
        if cls is None and name in names:
            cls, fixed = _fitting(names[name], at is not None or re.search(CUT, inside or "") is not None)
        if cls is None:
            cls = REGISTRY.find(name, installed=False)
        if cls is not None:
            return cls, {**fixed, **_arguments(cls, text, inside, at)}
    return None


CUT = r"\b(k|cutoff)\s*="


def _common(name: str) -> type[Measure] | None:
    """The measure of that name in the families that are loaded, or in the common ones."""
    if name not in REGISTRY.loaded():
        for family in COMMON:
            importlib.import_module(f"{FAMILIES}.{family}")
    return REGISTRY.loaded().get(name)


def _fitting(meanings: list[Meaning], cut: bool) -> Meaning:
    """Of several measures with the same name, the one that takes a cut-off if one was typed, else the one without."""
    for cls, fixed in meanings:
        needs_cut = cls.at is not None and cls.parameters[cls.at].required
        if (cls.at is not None) if cut else not needs_cut:
            return cls, fixed
    return meanings[0]


def _filled(means: dict[str, Any], typed: dict[str, str]) -> dict[str, Any]:
    """The parameters that another program's name stands for, with typed values filled in, as k in GroupMean(of=P@{k})."""
    answer: dict[str, Any] = dict(typed)
    for key, value in means.items():
        for name, text in typed.items():
            if isinstance(value, str) and f"{{{name}}}" in value:
                value = value.replace(f"{{{name}}}", text)
                answer.pop(name, None)
        answer[key] = value
    return answer


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


UNDER = "--as "  # prefix of the keys of `Measure.peers` that only one preset reads


Template: TypeAlias = "tuple[re.Pattern[str], type[Measure], dict[str, Any]]"


def _aliases(preset: str) -> tuple[dict[str, list[Meaning]], list[Template]]:
    """Other programs' names of the loaded measures: plain names, and templates with a number."""
    return _compiled(preset, REGISTRY.changes)


@functools.cache
def _compiled(preset: str, changes: int) -> tuple[dict[str, list[Meaning]], list[Template]]:
    """Other programs' names, compiled again whenever a measure is added. Names that only this preset reads come first."""
    names: dict[str, list[Meaning]] = {}
    templates: list[Template] = []
    loaded = [(cls, key) for cls in REGISTRY.loaded().values() for key in cls.peers]
    owned = [each for each in loaded if each[1] == UNDER + preset]
    common = [each for each in loaded if not each[1].startswith(UNDER)]
    for cls, key in owned + common:
        for spelling in cls.peers[key]:
            shape, _, means = (part.strip() for part in spelling.partition(" = "))
            fixed = _fixed(cls, means)
            if "{" in shape:
                dotted = re.escape(shape).replace(r"_\{", r"[_.]\{")  # trec_eval asks for P.5 and prints P_5
                pattern = dotted.replace(r"\{", "(?P<").replace(r"\}", ">[0-9.]+)")
                templates.append((re.compile(pattern), cls, fixed))
            else:
                names.setdefault(shape, []).append((cls, fixed))
    return names, templates


def _fixed(cls: type[Measure], means: str) -> dict[str, Any]:
    match = GRAMMAR.fullmatch(re.sub(r"@\{.*\}$", "", means)) if means else None
    if match and match[1] in AGGREGATES and match[2] is not None:
        return {"aggregate": match[1], **_fixed(cls, match[2])}
    return _arguments(cls, means, match[2], match[3]) if match else {}


class External(Measure):
    """A measure whose values were computed elsewhere: it has a name and nothing to compute.

    It belongs to no family, so it is not registered and no name finds it.
    """

    at = None
    low, high = -np.inf, np.inf

    def __init__(self, label: str, lower_is_better: bool = False) -> None:
        super().__init__()
        self.label = label
        self.lower_is_better = lower_is_better

    def score(self, hits: Hits) -> Floats:
        """Always an error: the values come from a table."""
        raise MeasureError(f"{self.label} has values from a table only and cannot be computed; name a measure")

    def __str__(self) -> str:
        return self.label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.label, self.lower_is_better))


def measure_or_label(name: str, lower_is_better: bool | None = None) -> Measure:
    """The measure of this name, or an external measure with this label.

    >>> measure_or_label("nDCG@10"), measure_or_label("clicks"), measure_or_label("seconds", True).lower_is_better
    (measure('nDCG@10'), measure('clicks'), True)
    """
    if lower_is_better is not None:
        return External(name, lower_is_better)
    try:
        return measure(name)
    except MeasureError:
        return External(name)
