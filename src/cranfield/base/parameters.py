"""Parameters: the numbers and words that configure a measure, a test, a strategy, a fusion method or a system.

A parameter is a descriptor of the class that has it: default, meaning, range. A `Parametrised` class reads typed
values, refuses values out of range with one kind of message, and prints itself as a user would type it.
"""

from __future__ import annotations

import math
import operator
import re
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from cranfield.base.errors import ConventionError, CranfieldError

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
LARGEST_SCORE = 1e100  # in a comparison: sums of larger squares overflow
LARGEST = 2**63 - 1  # the largest count without a narrower limit: 64 bits
LIMITS = {
    "resamples": 10_000_000,
    "trials": 1_000_000,
    "searches": 100_000,  # of each topic
    "days": 36_500,
    "before": 36_500,  # days
    "trials times resamples": 1_000_000_000,
    "draws": 100_000,
    "label_draws": 100_000,
    "samples": 1_000_000,
    "clients": 1_000,
    "passes": 10_000,
    "retries": 100,
    "threads": 1_024,
    "digits": 100,
    "the number of topics": 10_000_000,
    "systems": 100_000,
    "the number of steps": 1_000,
}
"""The largest allowed value of each count, by its name: a larger one would run for days."""
# Both are compiled when a text is read as a number.
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
WHOLE = r"[+-]?[0-9]{1,30}"  # a longer number has more than 64 bits and is slow to read
LONGEST = 60  # characters of a value in a message


def real(raw: Any) -> float:
    """A finite number from a number or a text in plain digits; ValueError for anything else.

    `float` alone takes nan, infinity, 1_000 and the digits of other scripts for numbers.

    >>> real("0.5"), real(".5e-1"), real(2)
    (0.5, 0.05, 2.0)
    """
    if isinstance(raw, str) and not re.fullmatch(NUMBER, raw.strip(" ")):
        raise ValueError(raw)
    try:
        value = float(raw)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(raw)
    return value


def whole(raw: Any) -> int:
    """A whole number of at most 64 bits from a number or a text in plain digits; ValueError for anything else.

    >>> whole("25"), whole(" 3 "), whole(2.0)
    (25, 3, 2)
    """
    if isinstance(raw, str) and not re.fullmatch(WHOLE, raw.strip(" ")):
        raise ValueError(raw)
    value = int(raw) if isinstance(raw, (str, int)) else int(real(raw))
    if abs(value) > LARGEST or (not isinstance(raw, str) and value != raw):
        raise ValueError(raw)
    return value


def refuse_below(least: int, **counts: int | None) -> None:
    """Raise ConventionError if a count is below `least` or above its limit; None is not checked."""
    for name, count in counts.items():
        if count is None:
            continue
        try:
            operator.index(count)
        except TypeError:
            raise ConventionError(f"{name} must be a whole number, {least} or more, got {shortened(count)}") from None
        most = LIMITS.get(name, LARGEST)
        if count < least:
            raise ConventionError(f"{name} must be {least} or more, got {count}")
        if count > most:
            raise ConventionError(f"{name} must be {most:,} at the most, got {shortened(count)}")


PASSWORD = (  # compiled when a text has one
    r"(?i)(?<=://)(?![^/@:\s]*:\d+/[^@\s]*(?:@[^@/\s]*)?(?:\s|$))"  # digits before a / are a port, unless a host follows
    r"([^/@:\s]*):(?:\S*@(?=\S*/)|\S*@)|(?<=password=)[^&\s]+"
)


def masked(text: str) -> str:
    """The text with the passwords of its URLs replaced by ***, including passwords that contain @ or /.

    >>> masked("cannot open postgresql://ann:secret@db/work@spring")
    'cannot open postgresql://ann:***@db/work@spring'
    """
    if "://" not in text and "password=" not in text.lower():
        return text
    return re.sub(PASSWORD, lambda match: "***" if match[1] is None else f"{match[1]}:***@", text)


def shortened(value: Any) -> str:
    """A value as text for a message, cut if it is long."""
    try:
        text = str(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


class Parameter(ABC, Generic[T]):
    """A parameter with default, meaning and range. It is a descriptor: `self.k` is the value."""

    name: str

    def __init__(self, default: T, meaning: str) -> None:
        self.default = default
        self.meaning = meaning

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Parameter[T]: ...
    @overload
    def __get__(self, instance: Parametrised, owner: type) -> T: ...
    def __get__(self, instance: Parametrised | None, owner: type) -> Parameter[T] | T:
        return self if instance is None else instance.values[self.name]

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is ...

    @property
    @abstractmethod
    def range(self) -> str:
        """The allowed values, in words."""

    @abstractmethod
    def read(self, raw: Any) -> T:
        """Convert a typed value; ValueError if it is out of range."""

    def show(self, value: T) -> str:
        """A value as a user would type it."""
        return str(value)

    def in_formula(self, value: T) -> str:
        """A value as a formula shows it."""
        return self.show(value)

    def expected(self, raw: Any) -> str:
        """The allowed values, for the error message about `raw`."""
        return self.range

    @property
    def example(self) -> str:
        """An allowed value, for the error message about a missing one."""
        return "10"


def number_text(value: float) -> str:
    """Shortest text that reads back to the same number; 2 rather than 2.0."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


class Real(Parameter[float]):
    """A real number between `low` and `high`; `open` leaves the ends out."""

    def __init__(
        self, default: float, meaning: str, low: float = -math.inf, high: float = math.inf, open: bool = False
    ) -> None:
        super().__init__(default, meaning)
        self.low, self.high, self.open = low, high, open

    @property
    def range(self) -> str:
        if self.low == -math.inf and self.high == math.inf:
            return "any number"
        if self.high == math.inf:
            return f"above {self.low:g}" if self.open else f"{self.low:g} or more"
        return f"between {self.low:g} and {self.high:g}" + (", ends excluded" if self.open else "")

    def expected(self, raw: Any) -> str:
        """The allowed values. The message mentions excluded ends only if `raw` is one of them."""
        try:
            at_an_end = real(raw) in (self.low, self.high)
        except (TypeError, ValueError, OverflowError):
            at_an_end = False
        range = "a finite number in plain digits" if self.range == "any number" else self.range
        return range if at_an_end else range.removesuffix(", ends excluded")

    def read(self, raw: Any) -> float:
        value = real(raw)
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        if not inside:
            raise ValueError
        return value

    @property
    def example(self) -> str:
        """The middle of the range, or 1."""
        middle = (self.low + self.high) / 2
        return number_text(middle) if math.isfinite(middle) else "1"

    def show(self, value: float) -> str:
        return number_text(value)


class _Count(Parameter[T]):
    """The base class of parameters that are whole numbers of at most 64 bits."""

    def expected(self, raw: Any) -> str:
        """The allowed values, with the 64-bit limit if `raw` exceeds it."""
        try:
            beyond = float(raw) > LARGEST
        except OverflowError:
            beyond = True
        except (TypeError, ValueError):
            beyond = False
        return f"{self.range}, {LARGEST} at the most" if beyond else self.range


class Whole(_Count[int]):
    """A whole number of at least `low`, and at most `high` if there is such a bound."""

    def __init__(self, default: Any, meaning: str, low: int = 1, high: int | None = None) -> None:
        super().__init__(default, meaning)
        self.low, self.high = low, high

    @property
    def range(self) -> str:
        if self.high is not None:
            return f"a whole number between {self.low} and {self.high}"
        return f"a whole number, {self.low} or more"

    def read(self, raw: Any) -> int:
        value = whole(raw)
        if value < self.low or (self.high is not None and value > self.high):
            raise ValueError
        return value


class Depth(_Count["int | None"]):
    """An optional cut-off: None means the whole list."""

    def __init__(self, meaning: str = "the number of ranks that count (cut-off)") -> None:
        super().__init__(None, meaning)

    @property
    def range(self) -> str:
        return "a whole number, 1 or more; the whole list if left out"

    def read(self, raw: Any) -> int | None:
        if raw is None:
            return None
        value = whole(raw)
        if value < 1:
            raise ValueError
        return value


class Choice(Parameter[str]):
    """One of a few words."""

    def __init__(self, default: str, meaning: str, *others: str) -> None:
        super().__init__(default, meaning)
        self.choices = (default, *others)

    @property
    def range(self) -> str:
        return " | ".join(self.choices)

    def read(self, raw: Any) -> str:
        if raw not in self.choices:
            raise ValueError
        return str(raw)


class Text(Parameter[str]):
    """Any words: a path, a name."""

    @property
    def range(self) -> str:
        return "any text"

    def read(self, raw: Any) -> str:
        return str(raw)


class Flag(Parameter[bool]):
    """Yes or no; the default is no."""

    WORDS: ClassVar[dict[str, bool]] = {
        **dict.fromkeys(("true", "yes", "1"), True),
        **dict.fromkeys(("false", "no", "0"), False),
    }

    def __init__(self, meaning: str, default: bool = False) -> None:
        super().__init__(default, meaning)

    @property
    def range(self) -> str:
        return "True | False"

    def read(self, raw: Any) -> bool:
        if str(raw).lower() not in self.WORDS:
            raise ValueError
        return self.WORDS[str(raw).lower()]


@cache
def _declared(cls: type) -> dict[str, Parameter[Any]]:
    """The parameters in the body of a class."""
    return {name: p for name, p in vars(cls).items() if Parameter in type(p).__mro__}  # isinstance on a class is slow


class Parametrised:
    """A class with parameters: declared in its body, read by the constructor, stored in `values`."""

    name: ClassVar[str]
    refusal: ClassVar[type[CranfieldError]] = ConventionError  # the error for wrong parameters
    parameters: ClassVar[dict[str, Parameter[Any]]] = {}
    values: dict[str, Any]
    typed: frozenset[str]  # the parameters that the caller set, even to their defaults

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.parameters = {}
        for base in reversed(cls.__mro__):
            cls.parameters |= _declared(base)

    def __init__(self, **arguments: Any) -> None:
        for key in arguments:
            if key not in self.parameters:
                names = ", ".join(self.parameters) or "no parameters"
                raise self.refusal(f"{self.name}: no parameter {key!r}; it has {names}")
        self.values = {key: self._value(key, parameter, arguments) for key, parameter in self.parameters.items()}
        self.typed = frozenset(arguments)

    def _value(self, key: str, parameter: Parameter[Any], arguments: Mapping[str, Any]) -> Any:
        value = arguments.get(key, parameter.default)
        if value is ...:
            raise self.refusal(f"{self.name} needs {key}: {self.lacking(key)}")
        try:
            return parameter.read(value)
        except (TypeError, ValueError, OverflowError):
            expected = parameter.expected(value)
            raise self.refusal(f"{self.name}: {key} must be {expected}, got {shortened(value)}") from None

    def lacking(self, key: str) -> str:
        """How a user would type the name with the missing parameter."""
        return f"{self.name}({key}={self.parameters[key].example})"

    def changed(self) -> dict[str, str]:
        """The parameters that differ from their defaults, as a user would type them."""
        pairs = ((key, parameter, self.values[key]) for key, parameter in self.parameters.items())
        return {key: parameter.show(value) for key, parameter, value in pairs if value != parameter.default}

    def __str__(self) -> str:
        changes = [f"{key}={value}" for key, value in self.changed().items()]
        return f"{self.name}({', '.join(changes)})" if changes else self.name


def described(owner: type[Parametrised] | Parametrised) -> list[dict[str, Any]]:
    """Each parameter for listings: its name, meaning, range and default."""
    return [
        {"name": name, "meaning": each.meaning, "range": each.range, "default": each.default}
        for name, each in owner.parameters.items()
    ]


def read_call(typed: str) -> tuple[str, dict[str, str]]:
    """The name and the parameters of a typed call: `RRF(k=10)`, or `rrf:k=10`, which shells need not quote.

    >>> read_call("rbp(p=0.9, k=5)"), read_call("rrf:k=10"), read_call("depth")
    (('rbp', {'p': '0.9', 'k': '5'}), ('rrf', {'k': '10'}), ('depth', {}))
    """
    name, _, rest = typed.strip().removesuffix(")").replace("(", ":", 1).partition(":")
    return name.strip(), read_pairs(rest, name.strip())


def read_pairs(typed: str, where: str) -> dict[str, str]:
    """`k1=0.9,b=0.4` as pairs."""
    pairs: dict[str, str] = {}
    for part in filter(None, map(str.strip, typed.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConventionError(f"{where}: expected name=value, found {part!r}")
        if key.strip() in pairs:
            raise ConventionError(f"{where}: {key.strip()} is given twice, as {pairs[key.strip()]} and {value.strip()}")
        pairs[key.strip()] = value.strip()
    return pairs
