"""Schemas of stored data: a class declares the keys of a table or record and their types, and reading checks them.

A shape is a dataclass or a NamedTuple, and its declaration is the only list of keys. `Annotated` narrows a type: `Between`,
`OneOf`, `TEXT`. An unknown key is refused together with the nearest known one; true is not a number, and a number is finite.
A value of the type Any may be nested `DEEPEST` deep. A message says where the error is: file, line and key; items of a list
count from #1.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import reprlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.parameters import LARGEST, LONGEST, real, shortened

T = TypeVar("T")
Part = TypeVar("Part")
BOM = b"\xef\xbb\xbf"
DEEPEST = 32  # maximum nesting of a value of type Any
MOST_BYTES = 16_000_000  # of a TOML file
Keys = tuple[str | int, ...]
Read = Callable[[Any], Any]


class Mismatch(ValueError):
    """A value that does not fit the schema: what was expected, the value, and its keys."""

    def __init__(self, expected: str, value: Any = None, keys: Keys = ()) -> None:
        super().__init__(expected)
        self.expected, self.value, self.keys = expected, value, keys

    @property
    def place(self) -> Keys:
        """The keys that locate the error in the file; the message names their line."""
        return self.keys

    def within(self, key: str | int) -> Mismatch:
        """The same mismatch with one more outer key."""
        return type(self)(self.expected, self.value, (key, *self.keys))

    def __str__(self) -> str:
        subject = f"{dotted(self.keys)} as " if self.keys else ""
        return f"expected {subject}{self.expected}, found {value_text(self.value)}"


class UnknownKey(Mismatch):
    """An unknown key (`value`) in the table under `keys`; the message names the nearest known key."""

    @property
    def place(self) -> Keys:
        return (*self.keys, self.value)

    def __str__(self) -> str:
        near = nearest(self.value, self.expected.split(", "))
        hint = f"; did you mean {near!r}?" if near else ""
        where = f" in [{dotted(self.keys)}]" if self.keys else ""
        return f"expected keys of {self.expected}{where}, found {shortened(self.value)!r}{hint}"


class MissingValue:
    """Marks a missing value."""


def nearest(key: str, keys: Sequence[str]) -> str | None:
    """The known key with the most similar spelling; None if none is similar."""
    near = difflib.get_close_matches(key[:LONGEST], keys, n=1, cutoff=0.6)
    return near[0] if near else None


def dotted(keys: Keys) -> str:
    """Keys as text for a message.

    >>> dotted(("primary", 1, "margin"))
    'primary#2.margin'
    """
    text = "".join(f"#{key + 1}" if isinstance(key, int) else f".{shortened(key)}" for key in keys)
    return text.removeprefix(".")


def value_text(value: Any) -> str:
    """A value as short text for a message.

    >>> value_text(None), value_text("x"), value_text([1, True]), value_text(MissingValue)
    ('null', "'x'", '[1, True]', 'none')
    """
    if value is MissingValue:
        return "none"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = LONGEST
    try:
        return shortened(brief.repr(value))
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"


# what narrows a type


@dataclass(frozen=True)
class Between:
    """A number in a range; `above` excludes the lower end, `below` the upper end."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    def holds(self, value: Any) -> bool:
        """Whether the number lies in the range."""
        low = self.low < value if self.above else self.low <= value
        return bool(low and (value < self.high if self.below else value <= self.high))

    def words(self, kind: str) -> str:
        """The range, for a message."""
        if self.high == math.inf:
            return f"{kind} above {self.low:.15g}" if self.above else f"{kind} of {self.low:.15g} or more"
        if self.above or self.below:
            return f"{kind} between {self.low:.15g} and {self.high:.15g}"
        return f"{kind} from {self.low:.15g} to {self.high:.15g}"


@dataclass(frozen=True)
class OneOf:
    """One of several words."""

    values: tuple[str, ...]

    def holds(self, value: Any) -> bool:
        """Whether the value is one of the words."""
        return value in self.values

    def words(self, kind: str) -> str:
        """The words, for a message."""
        return f"one of {', '.join(self.values)}"


@dataclass(frozen=True)
class NonBlank:
    """Text that is not blank and contains no NUL, which neither ids in files nor databases can store."""

    def holds(self, value: Any) -> bool:
        """Whether the text is not blank."""
        return bool(value.strip()) and "\0" not in value

    def words(self, kind: str) -> str:
        """The expected value, for a message."""
        return kind


@dataclass(frozen=True)
class Identifier(NonBlank):
    """An id: text that is not blank, or a whole number, which is converted to text."""

    def prepared(self, value: Any) -> Any:
        """A whole number as text."""
        return str(value) if type(value) is int and abs(value) <= LARGEST else value


@dataclass(frozen=True)
class Expected:
    """A description of the expected value, used in messages instead of the type's name."""

    text: str

    def holds(self, value: Any) -> bool:
        """Always True: the class only describes."""
        return True

    def words(self, kind: str) -> str:
        """The description instead of the type's name."""
        return self.text


Text = Annotated[str, NonBlank()]
Id = Annotated[str, Identifier()]
Count = Annotated[int, Between(1)]
Share = Annotated[float, Between(0, 1)]
Texts = Annotated[tuple[Text, ...], Expected('a list of texts, as in ["a", "b"]')]


# readers of declared types


@cache
def reader_of(hint: Any) -> Read:
    """A function that reads a value of a type, or raises Mismatch."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _narrowed(inside[0], inside[1:])
    if hint in PLAIN:
        return _plain(hint)
    if hint is Any:
        return _anything
    if origin is Literal:
        return _narrowed(str, (OneOf(inside),))
    if origin in (Union, UnionType):
        return _one_of_types(inside)
    if origin in (list, tuple):
        return _list(origin, inside)
    if origin is dict:
        return _table(*inside)
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _Shape(hint)
    raise TypeError(f"no reader for {hint!r}")


PLAIN: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    date: "a date such as 2026-03-01",
    NoneType: "null",
}


def described(hint: Any) -> str:
    """The name of a type, for a message."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        text = described(inside[0])
        for narrow in inside[1:]:
            text = narrow.words(text)
        return text
    if origin in (Union, UnionType):
        return " or ".join(described(each) for each in inside if each is not NoneType)
    if origin is Literal:
        return OneOf(inside).words("text")
    if origin in (list, tuple):
        return "a list"
    return PLAIN.get(hint, "any value" if hint is Any else "a table")


def _plain(kind: Any) -> Read:
    words = PLAIN[kind]
    if kind is float:

        def number(value: Any) -> Any:
            if type(value) is float and value - value == 0:  # finite
                return value
            if type(value) is int and abs(value) <= LARGEST:
                return float(value)
            raise Mismatch(words, value)

        return number
    if kind is int:

        def whole(value: Any) -> Any:
            if type(value) is int and abs(value) <= LARGEST:
                return value
            raise Mismatch(words, value)

        return whole

    def plain(value: Any) -> Any:
        if isinstance(value, kind) and not isinstance(value, datetime):  # which is a date to Python
            return value
        raise Mismatch(words, value)

    return plain


def _narrowed(hint: Any, narrows: tuple[Any, ...]) -> Read:
    read, words = reader_of(hint), described(Annotated[(hint, *narrows)])
    prepare = [narrow.prepared for narrow in narrows if isinstance(narrow, Identifier)]

    def narrowed(value: Any) -> Any:
        try:
            answer = read(prepare[0](value) if prepare else value)
        except Mismatch as error:
            if error.keys or isinstance(error, UnknownKey):
                raise
            raise Mismatch(words, value) from None
        if all(narrow.holds(answer) for narrow in narrows):
            return answer
        raise Mismatch(words, value)

    return narrowed


def _anything(value: Any, depth: int = 1) -> Any:
    """A value of any type with limited nesting and without NaN or infinity."""
    if depth > DEEPEST:
        raise Mismatch(f"values nested {DEEPEST} deep at the most", value)
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        try:
            _anything(each, depth + 1)
        except Mismatch as error:
            raise error.within(key) if depth == 1 else error from None
    if isinstance(value, float) and not math.isfinite(value):
        raise Mismatch("a finite number", value)
    if type(value) is int and abs(value) > LARGEST:
        raise Mismatch("a number of 64 bits", value)
    if not isinstance(value, (dict, list, str, int, float, NoneType)):  # bool is an int; dates of TOML are left
        raise Mismatch("what JSON can hold", value)
    return value


def _one_of_types(hints: tuple[Any, ...]) -> Read:
    words = described(Union[hints])  # noqa: UP007
    reads = [reader_of(each) for each in hints]

    def one(value: Any) -> Any:
        deepest = None
        for read in reads:
            try:
                return read(value)
            except Mismatch as error:
                deepest = error if error.keys or isinstance(error, UnknownKey) else deepest
        raise deepest or Mismatch(words, value)

    return one


def _list(kind: Any, hints: tuple[Any, ...]) -> Read:
    many = kind is list or hints[1:] == (...,)
    reads = [reader_of(each) for each in hints[: 1 if many else None]]
    words = "a list" if many else f"a list of {len(reads)} values"

    def several(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or not (many or len(value) == len(reads)):
            raise Mismatch(words, value)
        answer = []
        for place, each in enumerate(value):
            try:
                answer.append(reads[0 if many else place](each))
            except Mismatch as error:
                raise error.within(place) from None
        return kind(answer)

    return several


def _table(names: Any, values: Any) -> Read:
    """A table with free keys; `dict[float, …]` reads the keys as numbers, `dict[Text, …]` refuses blank keys."""
    read = reader_of(values)

    def table(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Mismatch("a table", value)
        answer = {}
        for key, each in value.items():
            if "\0" in key:
                raise Mismatch("a table whose keys hold no NUL", key)
            if names is Text and not key.strip():
                raise Mismatch("a table whose keys are not blank", key)
            name = _number_of(key) if names is float else key
            try:
                answer[name] = read(each)
            except Mismatch as error:
                raise error.within(key) from None
        return answer

    return table


def _number_of(key: str) -> float:
    try:
        return real(key)
    except ValueError:
        raise Mismatch("a table whose keys are numbers", key) from None


class _Shape:
    """Reads tables or lists into one class."""

    def __init__(self, shape: type) -> None:
        self.shape = shape
        hints = get_type_hints(shape, include_extras=True)
        if is_dataclass(shape):
            named = [each for each in fields(shape) if each.init]
            self.needed = {each.name for each in named if each.default is MISSING and each.default_factory is MISSING}
            names = [each.name for each in named]
        else:
            names = list(shape._fields)  # type: ignore[attr-defined]
            self.needed = {*names} - {*shape._field_defaults}  # type: ignore[attr-defined]
        self.tuple = not is_dataclass(shape)
        self.hints = {name: hints[name] for name in names}
        self.reads = {name: reader_of(hints[name]) for name in names}

    def __call__(self, value: Any) -> Any:
        if self.tuple and isinstance(value, (list, tuple)):
            if len(value) > len(self.reads):
                raise Mismatch(f"a list of {', '.join(self.reads)}", value)
            value = dict(zip(self.reads, value, strict=False))
        elif not isinstance(value, dict):
            raise Mismatch(f"a table of {', '.join(self.reads)}", value)
        return self.shape(**self.read(value))

    def read(self, table: Mapping[str, Any], also: tuple[str, ...] = ()) -> dict[str, Any]:
        """The values of a table by name, without the keys of `also`."""
        answer = {}
        for key, value in table.items():
            read = self.reads.get(key)
            if read is None:
                if key in also:
                    continue
                raise UnknownKey(", ".join([*self.reads, *also]), key)
            try:
                answer[key] = read(value)
            except Mismatch as error:
                raise error.within(key) from None
        if not self.needed <= answer.keys():
            lacking = next(name for name in self.reads if name in self.needed and name not in answer)
            raise Mismatch(described(self.hints[lacking]), MissingValue, (lacking,))
        return answer


# files and records


def check(value: Any, shape: type[T], where: str, also: tuple[str, ...] = (), **defaults: Any) -> T:
    """A parsed value as the class that declares its shape; DataError that names `where` if it does not fit.

    Keys of `also` are allowed and ignored; `defaults` fill in missing keys.
    """
    try:
        return _checked(value, shape, also, defaults)
    except Mismatch as error:
        raise DataError(f"{where}: {error}") from None


def check_line(value: Any, shape: type[T], where: str, number: int, also: tuple[str, ...] = (), **defaults: Any) -> T:
    """`check` for a line of a file: BadLineError with the line's number."""
    try:
        return _checked(value, shape, also, defaults)
    except Mismatch as error:
        raise BadLineError(where, number, str(error)) from None


def _checked(value: Any, shape: type[T], also: tuple[str, ...], defaults: Mapping[str, Any]) -> T:
    if not isinstance(value, dict):
        raise Mismatch("a table" if is_dataclass(shape) else "a JSON object", value)
    read: Any = reader_of(shape)  # type: ignore[arg-type]
    answer: T = shape(**read.read({**defaults, **value} if defaults else value, also))
    return answer


def parse_json(text: str | bytes | bytearray) -> Any:
    """The value of a JSON text; ValueError for a repeated key in an object and for too deep nesting.

    >>> parse_json('{"grade": 1, "grade": 2}')
    Traceback (most recent call last):
    ValueError: the key 'grade' occurs twice in one object
    """
    if isinstance(text, (bytes, bytearray)):
        text = text.removeprefix(BOM).decode("utf-8", "surrogateescape")
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shortened(twice)!r} occurs twice in one object")
    return table


DECODER = json.JSONDecoder(object_pairs_hook=_once)  # schemas refuse NaN, because they know its key


def read_json(text: str | bytes, shape: type[T], where: str, **defaults: Any) -> T:
    """A JSON object as the class that declares its shape."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise DataError(f"{where}: expected JSON ({error})") from None
    return check(value, shape, where, **defaults)


class TomlFile(Generic[T]):
    """A TOML file with a schema: its value, and the line of each key. Keys of `also` are allowed and ignored."""

    def __init__(
        self, path: str | os.PathLike[str], shape: type[T], also: tuple[str, ...] = (), **defaults: Any
    ) -> None:
        self.path = os.fspath(path)
        self.text = _text_of(self.path)
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            number = int(line[1]) if line else self.text.count("\n") + 1
            raise BadLineError(self.path, number, f"expected TOML ({error})") from None
        except RecursionError:
            raise DataError(f"{self.path}: expected TOML, found values that are nested too deep") from None
        except ValueError as error:  # a whole number of thousands of digits, a date that is none
            raise DataError(f"{self.path}: expected TOML ({error})") from None
        try:
            self.value: T = _checked(self.data, shape, also, defaults)
        except Mismatch as error:
            self.refuse(str(error), *error.place)

    def part(self, value: Mapping[str, Any], shape: type[Part], *keys: str | int) -> Part:
        """A table under some keys as the class that declares its shape."""
        try:
            return _checked(dict(value), shape, (), {})
        except Mismatch as error:
            for key in reversed(keys):
                error = error.within(key)
            self.refuse(str(error), *error.place)

    def refuse(self, problem: str, *keys: str | int) -> NoReturn:
        """Raise DataError with the line of the key or of its table."""
        line = self.line(keys)
        raise BadLineError(self.path, line, problem) if line else DataError(f"{self.path}: {problem}")

    def line(self, keys: Keys) -> int | None:
        """The line of a key, or of the innermost enclosing table that has a line."""
        lines = _lines(self.text)
        return next((lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in lines), None)


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except ValueError:  # NUL in its name
        raise DataError(f"{shortened(path)!r}: expected the path of a file") from None
    if len(content) > MOST_BYTES:
        raise DataError(f"{path}: expected a TOML file of {MOST_BYTES // 1_000_000} MB at the most")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected utf-8, found byte {error.object[error.start]:#04x}") from None


KEY = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[\w-]+"
HEAD = re.compile(rf"\s*(\[\[?)\s*((?:{KEY})(?:\s*\.\s*(?:{KEY}))*)\s*\]")
PAIR = re.compile(rf"\s*((?:{KEY})(?:\s*\.\s*(?:{KEY}))*)\s*=")
QUOTES = re.compile(r'"""|\'\'\'')


def _lines(text: str) -> dict[Keys, int]:
    """The lines of the tables and keys of a TOML file, as far as they begin their line."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    table: Keys = ()
    inside = ""  # the quotes of a text that goes over several lines
    for number, line in enumerate(text.split("\n"), 1):
        if not inside:
            if head := HEAD.match(line):
                table = _resolved(_names(head[2]), counts)
                if head[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    lines.setdefault(table, number)
                    table = (*table, counts[table])
                lines.setdefault(table, number)
            elif pair := PAIR.match(line):
                lines.setdefault((*table, *_names(pair[1])), number)
        for quotes in QUOTES.findall(line):
            inside = quotes if not inside else "" if quotes == inside else inside
    return lines


def _names(typed: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(KEY, typed)]


def _resolved(names: list[str], counts: Mapping[Keys, int]) -> Keys:
    """The keys of a table; inside an array of tables, those of its last table."""
    keys: Keys = ()
    for place, name in enumerate(names):
        keys = (*keys, name)
        if keys in counts and place < len(names) - 1:
            keys = (*keys, counts[keys])
    return keys


def read_toml(path: str | os.PathLike[str], shape: type[T], **defaults: Any) -> T:
    """A TOML file as the class that declares its schema; `defaults` fill in missing keys."""
    return TomlFile(path, shape, **defaults).value
