"""Highlighting: where the words of a query occur in a text, and which passage to show first.

Two words are the same if they are equal without case, accents and points. English words are also the same if they are
equal after the first step of Porter's stemmer and without a final e, which its last step removes: wings and wing, heated
and heating, boxes and box. Stop words of a query are left out unless it has nothing else. Chinese, Japanese and Korean are
marked by pairs of characters. Thai, Lao, Khmer and Burmese are marked by the query's stretches of letters, wherever they
occur. None of these languages puts a blank at the end of each word.

All positions refer to the original text. Folding case may change the length of a word, so only single words are folded.
The time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from cranfield.base.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Hit: TypeAlias = tuple[int, int, tuple[str, ...]]  # start, end, and the query terms that match there

SIZE = 600  # characters of a passage
LONGEST = 64  # letters of a word that may have an ending

STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its may of on or "
    "such than that the their them then there these they this to was were what when where which who why will with would "
    "you your".split()
)
"""Words too common to tell documents apart; English."""

PAIRED = "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
PAIRED += "\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # Han, kana, Hangul
UNSPACED = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
POINTS = "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"  # accents; Hebrew and Arabic points
INSIDE = "\u00ad\u200c\u200d"  # soft hyphen and joiners
SIGNS = f"{POINTS}{INSIDE}\u0900-\u0963\u0966-\u0dff"  # vowel signs of India are no letters to Python

ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
WORD = re.compile(rf"[^\W_{PAIRED}{UNSPACED}][^\W_{PAIRED}{UNSPACED}]*(?:[{SIGNS}]+[^\W_{PAIRED}{UNSPACED}]*)*")
PAIRS = re.compile(rf"[{PAIRED}]+")
STRETCH = re.compile(rf"[{UNSPACED}]+")
ELIDED = re.compile(r"(?<=[^\W_])['’][^\W_]\b|\b[^\W_]['’](?=[^\W_])")  # 's, 't, l', d'
DROPPED = re.compile(f"[{POINTS}{INSIDE}]")

SENTENCE = re.compile(r"[.!?…][\"')\]»”’]*\s+|[。！？｡][」』”’）]*\s*|\n\s*\n\s*")  # ends behind it
BLANK = re.compile(r"\s+")


def marks(text: str, query: str) -> list[tuple[int, int]]:
    """The occurrences of a query's words in a text: (start, end) in order, without overlaps.

    >>> text = "Heated wings: the flutter of a wing in heat."
    >>> [text[start:end] for start, end in marks(text, "the flutter of heated wings")]
    ['Heated', 'wings', 'flutter', 'wing', 'heat']
    >>> marks("検索評価の方法", "検索評価")
    [(0, 4)]
    """
    return [(start, end) for start, end, _ in _hits(text, query)]


def best_passage(text: str, query: str, size: int = SIZE) -> tuple[int, int]:
    """The first passage of limited length with the most different words of a query, then with the most occurrences.

    It begins at the start of a sentence if one is near enough before the first occurrence, else at a word, and ends
    likewise. A text without any of the words is shown from its beginning.

    >>> text = "Nothing here. Some heat there. At last the wing flutters in heat. No more."
    >>> start, end = best_passage(text, "wing flutter heat", size=40)
    >>> text[start:end]
    'At last the wing flutters in heat.'
    """
    if size < 1:
        raise DataError(f"size: expected a number of characters above 0, got {size}")
    first, last = _densest(_hits(text, query), size)
    start = _beginning(text, first, max(0, last - size))
    return start, _ending(text, start, last, min(len(text), start + size))


# the places


@lru_cache(8)  # a page asks for the marks and the passage of a text in turn
def _hits(text: str, query: str) -> list[Hit]:
    """All occurrences of a query's words in a text, in order and without overlaps."""
    words, pieces = _terms(query)
    hits = list(_words(text, words)) if words else []
    return sorted([*hits, *_pieces(text, pieces)]) if pieces else hits


def _terms(query: str) -> tuple[set[str], set[str]]:
    """The search terms of a query: stems of whole words, and pieces that match anywhere."""
    pairs = (run[i : i + 2] for run in PAIRS.findall(query) for i in range(max(1, len(run) - 1)))
    pieces = {*pairs, *STRETCH.findall(query)}
    words = [_folded(word) for word in WORD.findall(ELIDED.sub(" ", query))]
    telling = [word for word in words if word not in STOP]
    return {_stem(word) for word in (telling if telling or pieces else words) if word}, pieces


def _words(text: str, stems: set[str]) -> Iterator[Hit]:
    stem_of_word: dict[str, tuple[str] | None] = {}  # a word as it is written → the stem it is looked for by
    for match in (ASCII_WORD if text.isascii() else WORD).finditer(text):
        word = match[0]
        if word not in stem_of_word:
            stem = _stem_of(word)
            stem_of_word[word] = (stem,) if stem in stems else None
        if (terms := stem_of_word[word]) is not None:
            yield *match.span(), terms


def _pieces(text: str, pieces: Iterable[str]) -> Iterator[Hit]:
    """The occurrences of pieces. Overlapping ones are joined, so that no passage begins inside one."""
    pattern = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))
    first, last = 0, 0
    terms: list[str] = []
    match = pattern.search(text)
    while match is not None:
        start, end = match.span()
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        if terms and start >= last:
            yield first, last, tuple(terms)
            terms = []
        first, last = first if terms else start, max(end, last)
        terms.append(match[0])
        match = pattern.search(text, start + 1)
    if terms:
        yield first, last, tuple(terms)


def _folded(word: str) -> str:
    """A word without case, accents and points.

    >>> _folded("İZMİR"), _folded("Straße"), _folded("Café")
    ('izmir', 'strasse', 'cafe')
    """
    if word.isascii():
        return word.lower()
    return DROPPED.sub("", unicodedata.normalize("NFKD", word.casefold())).casefold()


# the endings of English words: M. F. Porter (1980), An algorithm for suffix stripping, steps 1 and 5a

_C, _V = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"
VOWEL = re.compile(rf"(?:{_C})?[aeiouy]")
M_ABOVE_0 = re.compile(rf"(?:{_C})?{_V}{_C}")
M_ABOVE_1 = re.compile(rf"(?:{_C})?{_V}{_C}{_V}{_C}")
SHORT = re.compile(rf"{_C}[aeiouy][^aeiouwxy]\Z")  # hop, fil: m = 1, and an e is wanted
DOUBLED = re.compile(r"([^aeiouylsz])\1\Z")


@lru_cache(65_536)
def _stem_of(word: str) -> str:
    return _stem(_folded(word))


def _stem(word: str) -> str:
    """A word without its English ending.

    >>> [_stem(word) for word in ("ponies", "pony", "hopping", "hoped", "boxes", "houses", "house", "heating")]
    ['poni', 'poni', 'hop', 'hope', 'box', 'hous', 'hous', 'heat']
    """
    if not 2 < len(word) <= LONGEST or not (word.isascii() and word.isalpha()):
        return word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and VOWEL.match(word[:-1]):
        word = word[:-1] + "i"
    if word.endswith("e"):
        short = word[:-1]
        if M_ABOVE_1.match(short) or (M_ABOVE_0.match(short) and not SHORT.match(short)):
            return short
    return word


def _without_plural(word: str) -> str:
    """A word without its plural ending (Porter's step 1a); ties and dies keep their e, as in his later version."""
    if word.endswith(("sses", "ies")):
        return word[:-1] if len(word) == 4 else word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    """A word without -ed or -ing (step 1b of Porter's stemmer)."""
    if word.endswith("eed"):
        return word[:-1] if M_ABOVE_0.match(word[:-3]) else word
    for ending in ("ed", "ing"):
        short = word.removesuffix(ending)
        if short != word and VOWEL.match(short):
            if short.endswith(("at", "bl", "iz")) or SHORT.match(short):
                return short + "e"
            return short[:-1] if DOUBLED.search(short) else short
    return word


# the passage


def _densest(hits: list[Hit], size: int) -> tuple[int, int]:
    """Start and end of the window with the most different terms, then the most hits, then the fewest characters."""
    best, window = (0, 0, 0), (0, 0)
    inside: Counter[str] = Counter()
    left = 0
    for right, (_, end, terms) in enumerate(hits):
        for term in terms:
            inside[term] += 1
        while left < right and end - hits[left][0] > size:
            for term in hits[left][2]:
                inside[term] -= 1
                if not inside[term]:
                    del inside[term]
            left += 1
        start = hits[left][0]
        density = len(inside), right - left + 1, start - end
        if density > best:
            best, window = density, (start, end)
    return window


def _beginning(text: str, first: int, earliest: int) -> int:
    """Where the passage around the first occurrence begins: at a sentence, else some words before the occurrence."""
    if first <= earliest:
        return first
    sentences = [match.end() for match in SENTENCE.finditer(text, earliest, first)]
    if sentences or earliest == 0:
        return sentences[-1] if sentences else 0
    blank = BLANK.search(text, (earliest + first) // 2, first)
    return first if blank is None else blank.end()


def _ending(text: str, start: int, last: int, limit: int) -> int:
    """Where the passage around the last occurrence ends: after a sentence that fills half of it, else after a word."""
    if limit == len(text):
        return limit
    if limit > last:
        middle = max(last, (start + limit) // 2)
        sentences = [
            start + len(text[start : match.end()].rstrip()) for match in SENTENCE.finditer(text, middle, limit + 1)
        ]
        words = [match.start() for match in BLANK.finditer(text, max(last, start), limit + 1)]
        half = [end for end in sentences if middle <= end <= limit]
        if whole := [end for end in half or words if start < end <= limit]:
            return whole[-1]
    while limit > start + 1 and unicodedata.combining(text[limit]):
        limit -= 1
    return limit
