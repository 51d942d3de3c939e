"""The text of a query: its normal form, and whether it looks like personal data.

Spellings that differ only in case, spaces or Unicode form are one query. The rule is fixed, so that the same query has the
same form in every log: Unicode NFKC (full-width letters, ligatures and composed accents become the usual characters), case
folding, and each run of white space as one blank, none at the ends. Accents, punctuation and the order of words stay, as
they may change what a user means.

Personal data are card numbers, phone numbers and mail addresses. The rules look at digits with their separators: years, sizes
(1920x1080), prices, EAN, UPC and ISBN codes and IMEI numbers are not personal data. A number that may be a phone number or a
part number counts as a phone number: to leave out a query costs little, to publish a number costs more.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RULE = "Unicode NFKC, case ignored, white space squeezed"


def normalised(query: str) -> str:
    """The normal form of a query.

    >>> normalised("  USB\\u00a0Cable\\t"), normalised("Straße"), normalised("ｉＰｏｄ")
    ('usb cable', 'strasse', 'ipod')
    >>> normalised("café") == normalised("CAFE\\u0301"), normalised("cafe") == normalised("café")
    (True, False)
    """
    if query.isascii():  # NFKC leaves ASCII as it is
        return " ".join(query.casefold().split())
    text = unicodedata.normalize("NFKC", query)
    # Folding can undo the normal form, and the normal form can yield capitals; Unicode (3.13) folds twice.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.split())


MAIL = re.compile(r"[^\s@<>,;:\"()]+@[^\s@<>,;:\"()]+\.[^\W\d_]{2,}")
# Digits in groups, with nothing at either end that makes them part of a word, a size, a decimal or a longer number.
NUMBER = re.compile(r"(?<![\w.,/:×*#])(?:\+|\(\+?)?\d(?:[ ()./\-–]{0,3}\d)*(?![\w×*#]|[.,/:]\d)")
ISSUERS = (  # the beginnings of card numbers and their lengths, by issuer (ISO/IEC 7812)
    (r"4", (16, 19)),  # Visa; its numbers of 13 digits are out of use, and would be EAN codes
    (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),  # Mastercard
    (r"3[47]", (15,)),  # American Express
    (r"30[0-5]|3[689]", (14, 16)),  # Diners Club
    (r"352[89]|35[3-8]", (16,)),  # JCB
    (r"50|5[6-8]|6", (16, 17, 18, 19)),  # Maestro, Discover, UnionPay
)
PHONE_GROUPS = re.compile(r"(?:\+?1[ .\-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .\-])[2-9]\d\d[ .\-]\d{4}")
NORTH_AMERICAN = re.compile(r"1?[2-9]\d\d[2-9]\d{6}")  # without separators
WITH_TRUNK = re.compile(r"0[1-9]\d{7,10}")  # the prefix 0 of calls within most other countries
INTERNATIONAL = re.compile(r"\(?\+")


def personal_data(query: str) -> str | None:
    """What a query looks like: a "mail address", a "card number" or a "phone number"; None if it is nothing of these.

    >>> personal_data("ann@example.org"), personal_data("4111 1111 1111 1111"), personal_data("call +44 20 7946 0958")
    ('mail address', 'card number', 'phone number')
    >>> [personal_data(each) for each in ("monitor 1920x1080", "9780306406157", "2019-2020 calendar", "iphone 12")]
    [None, None, None, None]
    """
    if not query.isascii():  # Arabic, Devanagari and other digits
        query = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in query)
    return next((kind for kind, looks_so in RULES.items() if looks_so(query)), None)


def _is_mail(query: str) -> bool:
    return "@" in query and MAIL.search(query) is not None


def _numbers(query: str) -> Iterator[tuple[str, str]]:
    """The numbers of a query as they are written, and their digits."""
    if sum(map(str.isdigit, query)) < 8:
        return
    for match in NUMBER.finditer(query):
        yield match[0], re.sub(r"\D", "", match[0])


def _has_card(query: str) -> bool:
    return any(_is_card(digits) for _, digits in _numbers(query))


def _is_card(digits: str) -> bool:
    """Whether digits begin like an issuer's, have one of its lengths, and pass Luhn's check.

    >>> _is_card("4111111111111111"), _is_card("4111111111111112"), _is_card("4006381333931")
    (True, False, False)
    """
    return luhn(digits) and any(len(digits) in lengths and re.match(head, digits) for head, lengths in ISSUERS)


def luhn(digits: str) -> bool:
    """Luhn's check: every second digit from the right doubled, its digits added, a sum that 10 divides (ISO/IEC 7812-1).

    >>> luhn("79927398713"), luhn("79927398710")
    (True, False)
    """
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0


def _has_phone(query: str) -> bool:
    return any(_is_phone(text, digits) for text, digits in _numbers(query))


def _is_phone(text: str, digits: str) -> bool:
    if INTERNATIONAL.match(text):
        return 8 <= len(digits) <= 15  # E.164 allows 15
    if PHONE_GROUPS.fullmatch(text):
        return True
    if is_product_code(digits):
        return False
    if digits.startswith("00"):
        return 10 <= len(digits) <= 17
    return NORTH_AMERICAN.fullmatch(text) is not None or WITH_TRUNK.fullmatch(digits) is not None


def is_product_code(digits: str) -> bool:
    """Whether digits are an EAN or UPC code (8, 12, 13 or 14 digits) or an ISBN-10, by their check digit.

    >>> is_product_code("4006381333931"), is_product_code("0306406152"), is_product_code("0306406153")
    (True, True, False)
    """
    numbers = list(map(int, digits))
    if len(numbers) == 10:
        return sum(weight * number for weight, number in zip(range(10, 0, -1), numbers, strict=True)) % 11 == 0
    threes = sum(numbers[-2::-2])
    return len(numbers) in (8, 12, 13, 14) and (sum(numbers[::-2]) + 3 * threes) % 10 == 0


RULES: dict[str, Callable[[str], bool]] = {
    "mail address": _is_mail,
    "card number": _has_card,
    "phone number": _has_phone,
}
"""The kinds of personal data, in the order in which they are looked for."""
