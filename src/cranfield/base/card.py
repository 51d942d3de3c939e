"""The judging card of a document: which of its fields assessors see, in which order, and how.

collection.toml holds the template under [card]: `kind`, the name of a ready-made template (cards.toml), or `fields`. A
template is data. It names fields of documents.jsonl and their types; nothing in it is HTML, and nothing is run. The card of
a document is made here, as texts and addresses, so that the page, its script and the terminal show the same.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal, NamedTuple, Protocol, get_args
from urllib.parse import quote, urlsplit

from cranfield.base.errors import DataError
from cranfield.base.package_files import data
from cranfield.base.parameters import real, shortened
from cranfield.base.schemas import Between, Expected, OneOf, Text, TomlFile
from cranfield.base.schemas import check as check_schema

FieldType = Literal["title", "text", "link", "image", "number", "date"]
TITLE, TEXT, LINK, IMAGE, NUMBER, DATE = get_args(FieldType)
TYPE_OF_OPTION = {"unit": NUMBER, "unit_from": NUMBER, "decimals": NUMBER, "prefix": LINK, "alt": IMAGE}
READY_MADE = tomllib.loads(data("base/cards.toml").decode())
LONGEST_LABEL = 100  # characters
LONGEST_VALUE = 20_000  # characters of one value; the text of the document has no limit here
LONGEST_ADDRESS = 2_000  # characters
MOST_VALUES = 12  # of a list that are shown
NO_MARKUP = re.compile(r"[^<>\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*\Z")
HOST = re.compile(
    r"(?=.{1,253}(?::|\Z))[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?)*(:\d{1,5})?\Z"
)
ADDRESS = re.compile(r"https?://[^\s\\@\x00-\x1f\x7f]+\Z", re.IGNORECASE)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|\\")
YEAR, MONTH = re.compile(r"\d{4}\Z"), re.compile(r"(\d{4})-(0[1-9]|1[0-2])\Z")
MONTHS = "January February March April May June July August September October November December".split()


# the template


@dataclass(frozen=True)
class WithoutMarkup:
    """Short text without angle brackets and control characters."""

    def holds(self, value: Any) -> bool:
        """Whether the text is short and has no markup."""
        return len(value) <= LONGEST_LABEL and NO_MARKUP.match(value) is not None

    def words(self, kind: str) -> str:
        """The expected value, for a message."""
        return f"text of at most {LONGEST_LABEL} characters without HTML"


@dataclass(frozen=True)
class Matching:
    """Text of a pattern."""

    pattern: re.Pattern[str]
    text: str

    def holds(self, value: Any) -> bool:
        """Whether the text has the pattern."""
        return self.pattern.match(value) is not None

    def words(self, kind: str) -> str:
        """The expected value, for a message."""
        return self.text


Label = Annotated[str, WithoutMarkup()]
Host = Annotated[str, Matching(HOST, "the name of a host in lower case, as in img.shop.example")]
Prefix = Annotated[
    str, Matching(re.compile(r"https?://[\w.-]+(:\d+)?/[^\s<>\"'\\]*\Z"), "an address such as https://doi.org/")
]
Kind = Annotated[str, OneOf(tuple(READY_MADE))]


@dataclass(frozen=True)
class CardField:
    """A field of a card: the name of the field in documents.jsonl, and how its values are shown."""

    name: Annotated[Text, WithoutMarkup()]
    type: FieldType = "text"
    label: Label | None = None  # default: the name
    unit: Label = ""
    unit_from: str = ""  # the field that holds the unit
    decimals: Annotated[int, Between(0, 10)] | None = None
    prefix: Prefix | None = None  # of the address, if a value is not an address itself
    alt: str = ""  # the field that holds texts for people who do not see the images

    @property
    def title(self) -> str:
        """The label, or the name as a label."""
        spaced = self.name.replace("_", " ").strip()
        return f"{spaced[:1].upper()}{spaced[1:]}" if self.label is None else self.label


@dataclass(frozen=True)
class CardTemplate:
    """The template of a collection's cards."""

    kind: Kind | None = None
    fields: Annotated[
        tuple[CardField, ...], Expected('a list of fields, as in [{name = "price", type = "number"}]')
    ] = ()
    image_hosts: Annotated[tuple[Host, ...], Expected('a list of hosts, as in ["img.shop.example"]')] = ()

    @property
    def shown_fields(self) -> Sequence[CardField]:
        """The fields of the ready-made template, or the template's own."""
        return self.fields if self.kind is None else ready_made(self.kind)


@dataclass(frozen=True)
class CollectionFile:
    """The part of collection.toml that this module reads."""

    card: CardTemplate


@cache
def ready_made(kind: str) -> tuple[CardField, ...]:
    """The fields of a ready-made template."""
    return check_schema(READY_MADE[kind], CardTemplate, f"cards.toml: {kind}").fields


def read_template(path: str, keys: Iterable[str]) -> CardTemplate:
    """The template in a collection.toml with these keys; BadLineError names the line that is wrong."""
    file = TomlFile(path, CollectionFile, also=tuple(keys))
    if (mismatch := template_problem(file.value.card)) is not None:
        file.refuse(mismatch[0], "card", *mismatch[1])
    return file.value.card


def field_of(text: str, where: str) -> CardField:
    """The field of a card in a line such as `{name = "price", type = "number"}`; DataError for any other line."""
    try:
        values = tomllib.loads(f"field = {text.strip().removesuffix(',')}")
    except (ValueError, RecursionError):
        values = {}
    if not isinstance(values.get("field"), dict) or len(values) > 1:
        raise DataError(
            f'{where}: expected a field such as {{name = "price", type = "number"}}, found {shortened(text)!r}'
        )
    return check_schema(values["field"], CardField, where)


def template_table(template: CardTemplate) -> dict[str, Any]:
    """A template as the table `[card]` of collection.toml, without what is empty or the default."""
    fields = [
        {each.name: value for each in dataclass_fields(field) if (value := getattr(field, each.name)) != each.default}
        for field in template.fields
    ]
    table = {"kind": template.kind, "image_hosts": list(template.image_hosts), "fields": fields}
    return {name: value for name, value in table.items() if value}


def template_problem(template: CardTemplate) -> tuple[str, tuple[str | int, ...]] | None:
    """What is wrong with a template whose values have the right types, and its keys; None if all is well."""
    if (template.kind is None) == (not template.fields):
        keys = "both" if template.fields else "neither"
        return f"expected a kind ({', '.join(READY_MADE)}) or a list of fields, found {keys}", ()
    names: set[str] = set()
    for number, field in enumerate(template.fields):
        if field.name in names:
            return f"the field {field.name!r} occurs twice", ("fields", number, "name")
        names.add(field.name)
        if (problem := _problem_of(field)) is not None:
            return problem[0], ("fields", number, problem[1])
    if sum(field.type == TITLE for field in template.fields) > 1:
        return "expected one field of the type title, found several", ("fields",)
    return None


def _problem_of(field: CardField) -> tuple[str, str] | None:
    """What is wrong with a field, and the key; None if all is well."""
    if field.name == TEXT and field.type != TEXT:
        return f"text is the text that assessors judge; its type cannot be {field.type}", "type"
    for option, kind in TYPE_OF_OPTION.items():
        if getattr(field, option) not in ("", None) and field.type != kind:
            return f"{option} is for fields of the type {kind}, found {field.type}", option
    return None


# the card of one document


class CardSource(Protocol):
    """The parts of a document that a card shows; every `Document` has them."""

    @property
    def id(self) -> str:
        """The id, as runs and judgments name it."""

    @property
    def title(self) -> str:
        """The title; may be empty."""

    @property
    def text(self) -> str:
        """The text that assessors judge; may be empty."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The other fields by name."""


class CardValue(NamedTuple):
    """A value as text; `url` is the target of a link, `image` the address of an image (the text is its alternative)."""

    text: str
    url: str = ""
    image: str = ""


class CardPart(NamedTuple):
    """The values of one field of a document."""

    name: str
    type: str
    label: str
    values: Sequence[CardValue]


class DocumentCard(NamedTuple):
    """What a card shows besides the text of the document: its title, and the fields above and below the text."""

    title: str
    above: Sequence[CardPart] = ()
    below: Sequence[CardPart] = ()
    text_label: str = ""


LocalImage = Callable[[str, int], str]  # the address of an image of the workspace, by field and position


def document_card(
    template: CardTemplate | None, document: CardSource, local_image: LocalImage | None = None
) -> DocumentCard:
    """The card of a document; without a template, the title alone. Without `local_image`, images have their paths.

    >>> from cranfield.base.collection import Document
    >>> tea = Document("d1", "Tea", "Black tea.", {"price": 3.5, "currency": "EUR", "url": "javascript:alert(1)"})
    >>> [(part.label, *part.values[0]) for part in document_card(CardTemplate("product"), tea).above]
    [('Price', '3.50 EUR', '', '')]
    >>> [(part.label, *part.values[0]) for part in document_card(CardTemplate("product"), tea).below]
    [('Page', 'javascript:alert(1)', '', '')]
    """
    if template is None:
        return DocumentCard(document.title)
    row = _row(document)
    text_label = ""
    above: list[CardPart] = []
    below: list[CardPart] = []
    parts = above
    for field in template.shown_fields:
        if field.name == TEXT:
            parts, text_label = below, field.label or ""
        if field.type == TITLE or field.name in (TEXT, TITLE):
            continue
        images = field.type == IMAGE
        all_values = _images(document, field, row, template.image_hosts, local_image) if images else _values(field, row)
        if values := list(islice(all_values, MOST_VALUES)):
            parts.append(CardPart(field.name, field.type, field.title, values))
    return DocumentCard(document_title(template, document), above, below, text_label)


def document_title(template: CardTemplate | None, document: CardSource) -> str:
    """The title of a document's card, alone: lists name the document by it, too."""
    field = None if template is None else next((each for each in template.shown_fields if each.type == TITLE), None)
    values = [] if field is None else _listed(_row(document).get(field.name))
    return " ".join(map(_plain, values)) or document.title


def _row(document: CardSource) -> dict[str, Any]:
    return {"id": document.id, **document.fields, TITLE: document.title, TEXT: document.text}


def card_text(card: DocumentCard, text: str) -> str:
    """A card as lines of text, for a terminal: an image is its text and its address."""

    def lines(parts: Iterable[CardPart]) -> Iterable[str]:
        for part in parts:
            values = ((value.text.removeprefix(f"{part.label}: "), value.url or value.image) for value in part.values)
            yield f"{part.label}: {'; '.join(t if a in ('', t) else f'{t} ({a})' for t, a in values)}"

    return "\n".join(line for line in (card.title, *lines(card.above), text, *lines(card.below)) if line)


def image_paths(document: CardSource, field: CardField) -> list[str]:
    """The images of a document in a field of its card: paths or addresses."""
    values = _listed(document.fields.get(field.name))
    return [value.strip() for value in values if isinstance(value, str) and value.strip()]


def is_address(text: str) -> bool:
    """Whether a value is an address with a scheme or a host, and so not a path in the workspace.

    >>> is_address("tea.jpg"), is_address("https://img.example/tea.jpg"), is_address("//img.example/tea.jpg")
    (False, True, True)
    """
    return SCHEME.match(text) is not None


def is_named(address: str, hosts: Sequence[str]) -> bool:
    """Whether an address has one of these hosts, over https."""
    return address.lower().startswith("https://") and host_of(address) in hosts


def host_of(address: str) -> str:
    """The host of a web address, with its port if it has one; empty unless a page may link to the address."""
    if len(address) > LONGEST_ADDRESS or not ADDRESS.match(address):
        return ""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return ""
    return parts.netloc.lower()


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _values(field: CardField, row: Mapping[str, Any]) -> Iterable[CardValue]:
    """The values of a field that holds no images, without empty ones."""
    values = [value for value in _listed(row.get(field.name)) if value not in (None, "", [], {})]
    if field.type == TEXT and len(values) > 1:
        yield CardValue(_cut(", ".join(map(_plain, values))))
        return
    unit = _plain(row.get(field.unit_from, "")) if field.unit_from else field.unit
    for value in values:
        text = _plain(value)
        if field.type == LINK:
            address = text if is_address(text) or not field.prefix else field.prefix + quote(text, safe="/:;()._-")
            yield CardValue(_cut(text), address if host_of(address) else "")
        elif field.type == NUMBER:
            yield CardValue(" ".join(filter(None, (_number(value, text, field.decimals), _cut(unit)))))
        else:
            yield CardValue(_date(text) if field.type == DATE else _cut(text))


def _images(
    document: CardSource, field: CardField, row: Mapping[str, Any], hosts: Sequence[str], local_image: LocalImage | None
) -> Iterable[CardValue]:
    """The images of a field, from the workspace or from hosts that the template names; others become links or text."""
    paths, alternatives = image_paths(document, field), [_plain(each) for each in _listed(row.get(field.alt))]
    for number, path in enumerate(paths):
        of = f" {number + 1} of {len(paths)}" if len(paths) > 1 else ""
        title = f": {row[TITLE]}" if row[TITLE] else ""
        alternative = (alternatives[number] if number < len(alternatives) else "") or f"{field.title}{of}{title}"
        if not is_address(path):
            yield CardValue(_cut(alternative), image=path if local_image is None else local_image(field.name, number))
        elif is_named(path, hosts):
            yield CardValue(_cut(alternative), image=path)
        else:
            yield CardValue(_cut(path), path if host_of(path) else "")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value).strip()


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _number(value: Any, text: str, decimals: int | None) -> str:
    """A number with separators for thousands; other text stays unchanged.

    >>> _number("1234.5", "1234.5", 2), _number(7, "7", None), _number("7 or 8", "7 or 8", 1)
    ('1,234.50', '7', '7 or 8')
    """
    if isinstance(value, bool):
        return text
    try:
        number = value if isinstance(value, (int, float)) else real(text)
        finite = math.isfinite(number)
    except (ValueError, OverflowError):  # no number, or one that no float can hold
        return _cut(text)
    if not finite:
        return _cut(text)
    if decimals is not None:
        return f"{number:,.{decimals}f}"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.12g}"


def _date(text: str) -> str:
    """A date in words; other text stays unchanged.

    >>> _date("2026"), _date("2026-03"), _date("2026-03-01"), _date("2026-03-01T10:00:00Z"), _date("in spring")
    ('2026', 'March 2026', '1 March 2026', '1 March 2026, 10:00 UTC', 'in spring')
    """
    if YEAR.match(text):
        return text
    if month := MONTH.match(text):
        return f"{MONTHS[int(month[2]) - 1]} {month[1]}"
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return _cut(text)
    day = f"{when.day} {MONTHS[when.month - 1]} {when.year}"
    return f"{day}, {when:%H:%M} {when.tzname() or ''}".rstrip() if "T" in text or ":" in text else day
