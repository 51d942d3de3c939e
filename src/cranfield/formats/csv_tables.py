"""Tables of separated values: the one reader of CSV and its dialects, for labels, runs, topics, sheets and documents.

The reader detects the delimiter (comma, semicolon, tab, pipe), the encoding (UTF-8, UTF-16, Windows-1252), the
decimal sign and quoted line breaks. One note reports an unusual dialect. An ambiguous table is refused until a
`Dialect` says how to read it: a wrong guess would silently change ids or grades.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from cranfield.base.errors import BadLineError, ConventionError, FormatError
from cranfield.base.notifications import say, tell_used
from cranfield.formats.streams import BOM, Opened, opened, plain_ending, wide_encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
DECIMALS = {".": "point", ",": "comma"}
ENCODINGS = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "windows-1252": "Windows-1252"}
WINDOWS = "windows-1252"
HEAD = 65536  # bytes that the delimiter is detected in
LONGEST = 1 << 27  # characters in one cell
LOOKED_AT = 200  # rows that the delimiter is detected in

DECIMAL_COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"
GROUPED = r"[+-]?[1-9]\d{0,2},\d{3}"  # 1,234 may be 1.234 or 1234
UTF_8_SIGN = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
# These two are compiled when a table is neither UTF-8 nor marked.
NOT_WINDOWS = (  # signs of another encoding: long runs, letters of Mac, DOS or Central Europe, signs in words
    rb"[\x80-\xff]{4}|[\x81\x83\x86-\x8a\x8d-\x90\x98\x9a\x9d-\x9f\xff]|[A-Za-z][\xa1-\xac\xae-\xb6\xb8-\xbf][A-Za-z]"
)


class DialectOptions(TypedDict, total=False):
    """The options that make a `Dialect`, for type checkers."""

    delimiter: str | None
    encoding: str | None
    decimal: str | None


@dataclass(frozen=True)
class Dialect:
    """The dialect of a table as the user gave it; None means that the value is detected.

    >>> Dialect(delimiter="semicolon").delimiter
    ';'
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    recoded_from: str = ""  # the encoding of a file that was recoded when it was opened

    def __post_init__(self) -> None:
        if self.encoding is not None:
            known_encoding(self.encoding)
        for name, typed, words in (("delimiter", self.delimiter, DELIMITERS), ("decimal", self.decimal, DECIMALS)):
            signs = {"\\t": "\t"} | {word: sign for sign, word in words.items()}
            sign = typed if typed is None else signs.get(typed, typed)
            if sign is not None and sign not in words:
                expected = f"{', '.join(words.values())} or the sign itself"
                raise ConventionError(f"{name} must be {expected}, got {typed!r}")
            object.__setattr__(self, name, sign)

    def of(self, file: Opened) -> Dialect:
        """The same dialect for a file that may have been recoded when it was opened."""
        return replace(self, recoded_from=file.encoding) if file.encoding else self

    @property
    def options(self) -> DialectOptions:
        """The options that make this dialect."""
        return {"delimiter": self.delimiter, "encoding": self.encoding, "decimal": self.decimal}

    def tell_used(self) -> None:
        """Report that the dialect options were used, for the check of unused options."""
        tell_used(*(name for name, value in self.options.items() if value is not None))


DETECTED = Dialect()


class TableRow(NamedTuple):
    """The cells of a row, its first and its last line: a quoted cell may contain line breaks."""

    line: int
    last: int
    cells: list[str]


# encodings


def known_encoding(name: str) -> str:
    """The canonical name of an encoding; ConventionError if Python does not know it."""
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise ConventionError(f"no encoding {name!r}; utf-8, utf-16, windows-1252 and latin-1 are usual ones") from None


def is_wide(encoding: str) -> bool:
    """Whether an encoding has several bytes for each character; ConventionError if Python does not know it."""
    return known_encoding(encoding).startswith(("utf-16", "utf-32"))


def detect_encoding(raw: bytes, where: str) -> str:
    """The encoding of a table: utf-8, utf-16-le, utf-16-be or windows-1252; any other is refused, with its line.

    >>> detect_encoding("query;sku\\nMüsli;A1\\n".encode("cp1252"), "labels.csv")
    'windows-1252'
    """
    if wide := wide_encoding(raw[:64]):
        return wide
    if raw.isascii():
        return "utf-8"
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte {raw[error.start]:#04x}"
        if re.search(UTF_8_SIGN, raw):
            problem = f"expected UTF-8 as elsewhere in the file, found {byte}"
        elif re.search(NOT_WINDOWS, raw):
            problem = f"expected UTF-8, UTF-16 or Windows-1252, found {byte}"
        else:
            return WINDOWS
        raise BadLineError(where, line, f"{problem}; encoding=… names another") from None
    return "utf-8"


def as_utf8(raw: bytes, where: str, encoding: str | None = None) -> tuple[bytes, str]:
    """A table's text in UTF-8 without byte order mark, and the encoding that was detected or given."""
    name = detect_encoding(raw, where) if encoding is None else known_encoding(encoding)
    if name == "utf-8" and encoding is None:
        return raw.removeprefix(BOM), name
    try:
        text = raw.decode(name)
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(name, "ignore").count("\n") + 1
        problem = f"expected {encoding or ENCODINGS.get(name, name)}, found byte {raw[error.start]:#04x}"
        raise BadLineError(where, line, problem) from None
    return text.removeprefix("\ufeff").encode("utf-8", "surrogatepass"), name


def open_table(source: object, encoding: str | None = None) -> Opened:
    """Open a file that may be a table. UTF-16 is recoded to UTF-8 if the first line has columns."""
    wide = encoding is not None and is_wide(encoding)

    def recode(raw: bytes, where: str) -> tuple[bytes, str]:
        text, name = as_utf8(raw, where, encoding)
        first = text.lstrip().partition(b"\n")[0]  # text without columns is not a table and stays refused
        return (text, name) if any(sign.encode() in first for sign in DELIMITERS) else (b"", "")

    return opened(source, recode, wide)


# delimiters


def header_text(head: bytes, encoding: str | None = None) -> str:
    """The first line of a file as text; bytes of an unknown encoding are kept as they are."""
    line = head.removeprefix(BOM).lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
    for name in ("utf-8", known_encoding(encoding)) if encoding else ("utf-8", WINDOWS):
        try:
            return line.decode(name)
        except UnicodeDecodeError:
            continue
    return line.decode("utf-8", "surrogateescape")


def split_header(line: str, delimiter: str) -> list[str]:
    """The names in a header line; empty if the delimiter does not occur in it.

    >>> split_header('"query, as typed";sku', ";")
    ['query, as typed', 'sku']
    """
    if delimiter not in line:
        return []
    import csv

    try:
        names = [name.strip().strip('"').strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []
    return names if len(names) > 1 else []


def choose_delimiter(
    head: bytes,
    where: str,
    is_header: Callable[[list[str]], bool],
    dialect: Dialect,
    among: Iterable[str],
) -> str:
    """The delimiter of a table that begins with `head`; `is_header` says which names make sense.

    The header decides. If several delimiters fit it, every row must have as many cells as the header; else the table is
    refused.
    """
    if dialect.delimiter is not None:
        return dialect.delimiter
    line = header_text(head, dialect.encoding)
    present = {sign: names for sign in among if (names := split_header(line, sign))}
    if len(present) < 2:
        return next(iter([*present, *among]))
    fitting = [sign for sign, names in present.items() if is_header(names)] or list(present)
    if len(fitting) > 1:
        text = head.decode("utf-8", "replace")
        fitting = [sign for sign in fitting if _is_even(text, sign, len(present[sign]))] or fitting
    if len(fitting) > 1:
        words = " or ".join(f"{DELIMITERS[sign]}s" for sign in fitting)
        raise FormatError(f"{where}:1: {words} may separate the columns; delimiter=… says which")
    return fitting[0]


def _is_even(text: str, delimiter: str, width: int) -> bool:
    """Whether every complete row of a text has `width` cells."""
    import csv

    whole = text if len(text) < HEAD // 4 else text[: text.rfind("\n")]
    try:
        rows = list(islice(csv.reader(io.StringIO(whole, newline=""), delimiter=delimiter), LOOKED_AT))
    except csv.Error:
        return False
    return all(len(row) == width for row in rows if row)


# rows


def rows_of(lines: Iterable[str], where: str, delimiter: str) -> Iterator[TableRow]:
    """The rows of a table without blank lines; quotes are as in RFC 4180."""
    import csv

    before = csv.field_size_limit(LONGEST)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in reader:
            if cells:
                yield TableRow(start, reader.line_num, cells)
            start = reader.line_num + 1
    except csv.Error as error:
        expected = f"expected cells with {DELIMITERS[delimiter]}s between them"
        raise BadLineError(where, start, f"{expected}, found something else ({error})") from None
    finally:
        csv.field_size_limit(before)


def rows_by_name(
    lines: Iterable[str], where: str, delimiter: str, columns: Sequence[str], more: str = ""
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The rows below a header that must have all `columns`, each with its line. A cell is None if its row is too short.

    `more` names optional columns, for the message.

    >>> list(rows_by_name(["a,b", "1"], "t.csv", ",", ["a"]))
    [(2, {'a': '1', 'b': None})]
    """
    rows = rows_of(lines, where, delimiter)
    head = next((row.cells for row in rows), [])
    if lacking := [name for name in columns if name not in head]:
        raise BadLineError(where, 1, f"expected columns {', '.join(columns)}{more}; there is no {lacking[0]}")
    for row in rows:
        yield row.last, {name: row.cells[at] if at < len(row.cells) else None for at, name in enumerate(head)}


class NumberReader:
    """Reads the numbers of a table; the first number with a decimal sign decides the sign of all others."""

    def __init__(self, decimal: str | None = None) -> None:
        self.sign = decimal
        self.detected = False
        self._line = 0  # of the number that decided

    def read(self, text: str, line: int, finite: bool = True) -> float:
        """The number in a cell; ValueError says what is wrong with it.

        >>> NumberReader().read("4,5", 2)
        4.5
        """
        from cranfield.base.kernels.twin import number

        typed = text.strip()
        if "," in typed and re.fullmatch(DECIMAL_COMMA, typed):
            if self.sign is None and re.fullmatch(GROUPED, typed):
                plain = typed.replace(",", ".")
                raise ValueError(f"{typed!r} may be {plain} or {typed.replace(',', '')}; decimal=… says which")
            self._decide(",", typed, line)
            typed = typed.replace(",", ".")
        elif "." in typed:
            self._decide(".", typed, line)
        value = number(typed.encode("utf-8", "surrogateescape"), finite)
        if value is None:
            raise ValueError(f"found {text[:60]!r}")
        return value

    def _decide(self, sign: str, typed: str, line: int) -> None:
        if self.sign is None:
            self.sign, self.detected, self._line = sign, True, line
        elif self.sign != sign:
            like = f" as on line {self._line}" if self._line else " as elsewhere" if self.detected else ""
            raise ValueError(f"found {typed[:60]!r}, expected a decimal {DECIMALS[self.sign]}{like}")


class SeparatedValues:
    """A table in memory: its text as UTF-8, its dialect, its header, and its rows one by one."""

    def __init__(
        self,
        raw: bytes,
        where: str,
        is_header: Callable[[list[str]], bool],
        dialect: Dialect = DETECTED,
        among: Iterable[str] = tuple(DELIMITERS),
    ) -> None:
        self.where = where
        self.dialect = dialect
        dialect.tell_used()
        done = dialect.recoded_from
        self.raw, self.encoding = (raw, done) if done else as_utf8(raw, where, dialect.encoding)
        self.delimiter = choose_delimiter(self.raw[:HEAD], where, is_header, replace(dialect, encoding=None), among)
        self.numbers = NumberReader(dialect.decimal)
        self.broken = False  # whether a quoted cell had a line break
        self._rows = self._all_rows()

    @cached_property
    def names(self) -> list[str]:
        """The names in the header."""
        first = next(self._rows, None)
        return [] if first is None else [name.strip() for name in first.cells]

    def _all_rows(self) -> Iterator[TableRow]:
        text = io.StringIO(self.raw.decode("utf-8", "surrogateescape"), newline="")
        for row in rows_of(text, self.where, self.delimiter):
            self.broken |= row.last > row.line
            yield row

    def __iter__(self) -> Iterator[TableRow]:
        """The rows below the header that were not read yet."""
        return self._rows if self.names else iter(())

    def report(self) -> None:
        """Report once how the table was read, if its dialect is unusual and the user did not give it."""
        say(
            dialect_in_words(
                self.where,
                self.delimiter if self.dialect.delimiter is None else ",",
                self.encoding if self.dialect.encoding is None else "utf-8",
                self.numbers.detected and self.numbers.sign == ",",
                self.broken,
            )
        )


def dialect_in_words(
    where: str, delimiter: str, encoding: str, comma: bool = False, line_breaks: bool = False
) -> list[str]:
    """A sentence on how a table was read; none if the dialect is the usual one.

    >>> dialect_in_words("labels.csv", ";", "windows-1252", True)
    ['labels.csv: detected semicolons between columns, encoding Windows-1252, decimal commas']
    """
    usual = "," if delimiter == "\t" and plain_ending(where) == ".csv" else delimiter if delimiter == "\t" else ","
    parts = [f"{DELIMITERS[delimiter]}s between columns"] if delimiter != usual else []
    parts += [f"encoding {ENCODINGS[encoding]}"] if encoding in ENCODINGS else []
    parts += ["decimal commas"] if comma else []
    parts += ["line breaks in quotes"] if parts and line_breaks else []  # line breaks alone are usual
    return [f"{where}: detected {', '.join(parts)}"] if parts else []
