"""Documents as features of a model: the stems of their words with TF-IDF weights.

A stem is hashed to one of four million columns, so memory does not grow with the vocabulary, and counts of a large
collection fit into memory-mapped files (`open_features`). Only the rows of a topic's documents are ever made into a
matrix. The stemmer is Porter's, written here: the features must not depend on which packages are installed.
"""

from __future__ import annotations

import os
import re
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.formats.collection_folder import DOCUMENTS, document_rows, file_in, read_collection
from cranfield.formats.document_index import Shelf, mapped, open_index, open_shelf, write_about
from cranfield.formats.streams import lines, synced_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    import numpy.typing as npt

    from cranfield.base.collection import Collection, Document, Topic
    from cranfield.formats.collection_folder import Progress

COLUMNS = 1 << 22
MOST = 65_535  # occurrences of a stem that are counted
VERSION = 1  # of the files of an index
STARTS, TERMS, COUNTS, HOLDERS = "starts", "terms", "counts", "holders"


# words and stems

CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without blanks: pairs of characters are its words
WORD = re.compile(rf"[{CJK}]+|[^\W{CJK}]+")
KNOWN_WORDS = 1_000_000  # words whose columns are remembered


def words_of(text: str) -> Iterator[str]:
    """The words of a text in lower case; of Chinese, Japanese and Korean each pair of characters.

    >>> list(words_of("The wing's LIFT, 風洞実験"))
    ['the', 'wing', 's', 'lift', '風洞', '洞実', '実験']
    """
    for word in WORD.findall(text.casefold()):
        if word[0] < "\u3040" or len(word) < 3 or not re.match(f"[{CJK}]", word):
            yield word
        else:
            yield from map("".join, zip(word, word[1:], strict=False))


class WordColumns(dict[str, int]):
    """The column of each word: that of its stem."""

    def __missing__(self, word: str) -> int:
        if len(self) >= KNOWN_WORDS:
            self.clear()
        column = self[word] = column_of(stem(word))
        return column


def column_of(term: str) -> int:
    """The column of a stem."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % COLUMNS


VOWEL, CONSONANT = "(?:[aeiou]|(?<=[^aeiou])y)", "(?:[bcdfghjklmnpqrstvwxz]|(?<![^aeiou])y)"
SYLLABLE = re.compile(f"{VOWEL}+{CONSONANT}+")
HAS_VOWEL = re.compile(VOWEL)
SHORT = re.compile(f"{CONSONANT}{VOWEL}(?![wxy]){CONSONANT}$")
DOUBLE = re.compile(r"([^aeiouylsz])\1$")
ENGLISH = re.compile("[a-z]{3,}")
SECOND = dict(
    pair.split(":")
    for pair in (
        "ational:ate tional:tion enci:ence anci:ance izer:ize abli:able alli:al entli:ent eli:e ousli:ous ization:ize ation:ate "
        "ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
    ).split()
)
THIRD = dict(pair.split(":") for pair in "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:".split())
FOURTH = dict.fromkeys("al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(), "")


def stem(word: str) -> str:
    """The stem of an English word in lower case (Porter 1980); other words stay as they are.

    >>> [stem(word) for word in ("wings", "conditional", "hopping", "stability", "is", "größe")]
    ['wing', 'condit', 'hop', 'stabil', 'is', 'größe']
    """
    if not ENGLISH.fullmatch(word):
        return word
    word = _without_plural(word)
    word = _without_past(word)
    if word.endswith("y") and HAS_VOWEL.search(word[:-1]):
        word = f"{word[:-1]}i"
    for endings, least in ((SECOND, 1), (THIRD, 1), (FOURTH, 2)):
        word = _replaced(word, endings, least)
    if word.endswith("e"):
        size = _syllables(word[:-1])
        word = word[:-1] if size > 1 or (size == 1 and not SHORT.search(word[:-1])) else word
    return word[:-1] if word.endswith("ll") and _syllables(word) > 1 else word


def _syllables(word: str) -> int:
    """Porter's measure of a word: how often consonants follow vowels."""
    return len(SYLLABLE.findall(word))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _syllables(word[:-3]) else word
    ending = next((each for each in ("ed", "ing") if word.endswith(each)), "")
    rest = word.removesuffix(ending)
    if not ending or not HAS_VOWEL.search(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if DOUBLE.search(rest):
        return rest[:-1]
    return f"{rest}e" if _syllables(rest) == 1 and SHORT.search(rest) else rest


def _replaced(word: str, endings: Mapping[str, str], least: int) -> str:
    """The word with its longest listed ending replaced, if what is before has at least so many syllables."""
    ending = max((each for each in endings if word.endswith(each)), key=len, default="")
    rest = word.removesuffix(ending)
    if not ending or _syllables(rest) < least or (ending == "ion" and not rest.endswith(("s", "t"))):
        return word
    return rest + endings[ending]


# counts


class FeatureRows(NamedTuple):
    """Weights as a SciPy sparse matrix with only the columns that occur, and the number of each in `TermCounts`."""

    matrix: Any
    columns: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TermCounts:
    """How often each document contains each stem; the arrays may be memory-mapped files."""

    starts: npt.NDArray[np.uint64]  # of each document in the next two; one more than there are documents
    terms: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint16]
    holders: npt.NDArray[np.uint32]  # by column: the number of documents that contain it

    @classmethod
    def of(cls, texts: Iterable[str]) -> TermCounts:
        """Count the stems of texts, in memory."""
        starts, terms, counts = array("Q", [0]), array("I"), array("H")
        holders = np.zeros(COLUMNS, np.uint32)
        columns = WordColumns()
        for text in texts:
            here = _counts(text, columns)
            terms.extend(here)
            counts.extend(here.values())
            starts.append(len(terms))
        np.add.at(holders, np.frombuffer(terms, np.uint32), 1) if terms else None
        arrays = np.frombuffer(starts, np.uint64), np.array(terms, np.uint32), np.array(counts, np.uint16)
        return cls(*arrays, holders)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, documents: Sequence[int], texts: Sequence[str] = ()) -> FeatureRows:
        """Documents by number, then texts, as rows of length 1: (1 + log tf) · log(N / df).

        Words of the texts that no document contains are ignored.
        """
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]

        words = WordColumns()
        added = [{c: n for c, n in _counts(text, words).items() if self.holders[c]} for text in texts]
        parts = [slice(int(self.starts[i]), int(self.starts[i + 1])) for i in documents]
        columns = np.concatenate([*(self.terms[part] for part in parts), *(list(each) for each in added), []])
        counts = np.concatenate([*(self.counts[part] for part in parts), *(list(each.values()) for each in added), []])
        sizes = [*(part.stop - part.start for part in parts), *map(len, added)]
        unique, place = np.unique(columns.astype(np.int64), return_inverse=True)
        rarity = np.log(max(1, len(self)) / np.maximum(self.holders[unique], 1)) + 1e-9
        weights = (1 + np.log(counts)) * rarity[place]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        row = np.repeat(np.arange(len(sizes)), sizes)
        lengths = np.sqrt(np.bincount(row, weights**2, len(sizes)))
        weights /= np.where(lengths > 0, lengths, 1)[row]
        return FeatureRows(csr_matrix((weights, place, ends), shape=(len(sizes), len(unique))), unique)


def _counts(text: str, columns: WordColumns) -> dict[int, int]:
    """How often a text contains each stem, by column."""
    counts = Counter(map(columns.__getitem__, words_of(text)))
    return {column: min(n, MOST) for column, n in counts.items()}


# the texts of a collection


class TextFeatures(ABC):
    """The documents and topics of a collection, as a learning strategy reads them."""

    topics: Mapping[str, str]

    @property
    @abstractmethod
    def terms(self) -> TermCounts:
        """The counts of all documents."""

    @abstractmethod
    def row(self, document: str) -> int | None:
        """The row of a document in the counts; None if the collection does not have it."""

    @abstractmethod
    def text(self, document: str) -> str:
        """The text of a document; empty if the collection does not have it."""

    def rows(self, documents: Iterable[str]) -> list[int]:
        """The rows of documents; DataError for one that the collection does not have."""
        answer = []
        for document in documents:
            row = self.row(document)
            if row is None:
                raise DataError(f"document {document!r} is not among the {len(self.terms)} of the collection")
            answer.append(row)
        return answer

    def topic(self, topic: str) -> str:
        """The text of a topic; DataError if the collection does not have it."""
        if topic not in self.topics:
            raise DataError(f"topic {topic!r} is not among the {len(self.topics)} of the collection")
        return self.topics[topic]

    def names(self, columns: Sequence[int], texts: Iterable[str]) -> dict[int, str]:
        """The most frequent word of each column in these texts."""
        column_of_word, needed = WordColumns(), set(columns)
        words: dict[int, Counter[str]] = {column: Counter() for column in columns}
        for word in chain.from_iterable(map(words_of, texts)):
            if column_of_word[word] in needed:
                words[column_of_word[word]][word] += 1
        return {column: counts.most_common(1)[0][0] for column, counts in words.items() if counts}


def _text_of_document(document: Document) -> str:
    return "\n".join(filter(None, (document.title, document.text)))


def _texts_of_topics(topics: Iterable[Topic]) -> dict[str, str]:
    return {each.id: "\n".join(filter(None, (each.title, each.description, each.narrative))) for each in topics}


@dataclass(eq=False, repr=False)
class DocumentTexts(TextFeatures):
    """The texts of the documents and topics of a collection, in memory, by id."""

    documents: dict[str, str]
    topics: Mapping[str, str]

    @classmethod
    def of(cls, collection: Collection) -> DocumentTexts:
        """Titles and texts of all documents; titles, descriptions and narratives of all topics."""
        documents = {each.id: _text_of_document(each) for each in collection.documents()}
        return cls(documents, _texts_of_topics(collection.topics))

    @cached_property
    def terms(self) -> TermCounts:
        return TermCounts.of(self.documents.values())

    @cached_property
    def _row(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.documents)}

    def row(self, document: str) -> int | None:
        return self._row.get(document)

    def text(self, document: str) -> str:
        return self.documents.get(document, "")


class IndexedTexts(TextFeatures):
    """The texts of a collection through two indexes on disk: where each document is, and which stems it contains."""

    def __init__(self, shelf: Shelf, terms: TermCounts, topics: Mapping[str, str]) -> None:
        self.shelf = shelf
        self._terms = terms
        self.topics = topics

    @property
    def terms(self) -> TermCounts:
        return self._terms

    def row(self, document: str) -> int | None:
        return self.shelf.row(document)

    def text(self, document: str) -> str:
        content = self.shelf.get(document)
        return "" if content is None else _text_of_document(content)


def open_features(collection: str, where: str, progress: Progress = None) -> IndexedTexts:
    """Open the features of a collection from indexes below `where`; they are made if needed.

    >>> import tempfile
    >>> texts = open_features("allotment", tempfile.mkdtemp())
    >>> len(texts.terms), texts.row("d002"), texts.terms.rows([1]).matrix.shape[0]
    (332, 1, 1)
    """
    opened = read_collection(collection)
    path = file_in(str(opened.path), DOCUMENTS)
    shelf = open_shelf(collection, where)

    def write(folder: str) -> None:
        _write_counts(path, folder, len(shelf), progress)

    counts, state = open_index(path, where, "terms", VERSION, write, _read_counts)
    if state != shelf.state:
        raise DataError(f"{path}: changed since its documents were indexed; open it again")
    return IndexedTexts(shelf, counts, _texts_of_topics(opened.topics))


def _read_counts(folder: str) -> TermCounts:
    kinds = {STARTS: np.uint64, TERMS: np.uint32, COUNTS: np.uint16, HOLDERS: np.uint32}
    return TermCounts(*(mapped(os.path.join(folder, name), kind) for name, kind in kinds.items()))


def _write_counts(path: str, folder: str, documents: int, progress: Progress) -> None:
    """Count the stems of all documents, and write the counts one document after the other."""
    holders, columns, end = np.zeros(COLUMNS, np.uint32), WordColumns(), 0
    with ExitStack() as stack:

        def file(name: str) -> BinaryIO:
            return stack.enter_context(synced_file(os.path.join(folder, name)))

        starts, terms, counts = file(STARTS), file(TERMS), file(COUNTS)
        starts.write(array("Q", [0]).tobytes())
        for number, document in enumerate(document_rows(path, lines(path)), 1):
            here = _counts(_text_of_document(document), columns)
            term = array("I", here)
            terms.write(term.tobytes())
            counts.write(array("H", here.values()).tobytes())
            holders[np.frombuffer(term, np.uint32)] += 1
            end += len(term)
            starts.write(array("Q", [end]).tobytes())
            if progress is not None and not number & 0x3FF:
                progress(number, documents)
        file(HOLDERS).write(holders.data)
    write_about(folder, path)
