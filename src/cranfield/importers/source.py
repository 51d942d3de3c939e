"""What a source of a collection is: files in somebody's layout, read as documents, topics and judgments.

A source reads and never decides: which of two numberings is meant and what a grade is worth is settled by
`import_collection`, and written down in the result. Every complaint names its file and line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.errors import BadLineError, DataError, DuplicateError, FormatError
from cranfield.formats.reading import read_qrels
from cranfield.formats.streams import COMPRESSED, decoded, lines
from cranfield.formats.tables import DETECTED, Dialect
from cranfield.hearing import say, tell_used

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from cranfield.collection import Document, Duplicates, Grade, Topic
    from cranfield.formats.format import Fields


HEAD = 4096  # bytes that a layout is recognised by


@dataclass(frozen=True)
class Files:
    """Which files hold what."""

    documents: Sequence[str] = ()
    topics: Sequence[str] = ()
    qrels: Sequence[str] = ()
    unread: Sequence[str] = ()  # other judgments that lie beside those

    def __iter__(self) -> Iterator[str]:
        return iter([*self.documents, *self.topics, *self.qrels])


@dataclass(frozen=True)
class Options:
    """How to read: the encoding, one of several splits, other names for the fields of a row, whether oddities are refused."""

    encoding: str | None = None  # None: UTF-8, or what a table is detected to have
    split: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)  # ours → theirs
    strict: bool = False
    dialect: Dialect = DETECTED  # of tables
    lenient: bool = False  # malformed rows of tables are left out and counted
    duplicates: Duplicates = "error"  # which grade counts where a document is judged twice
    grades: Mapping[float, float] | None = None  # what the grades of the judgments count as

    @property
    def of_judgments(self) -> Fields:
        """The names of the columns of judgments; `topic` is said of the topics, and may have a usual name here."""
        from cranfield.formats.named import TOPIC

        named = {ours: [theirs] for ours, theirs in self.fields.items() if ours in ("document", "grade", "iteration")}
        return named | ({"topic": [self.fields["topic"], *TOPIC]} if "topic" in self.fields else {})


class Judgment(NamedTuple):
    """One judgment, and where it stands."""

    topic: str
    document: str
    grade: float
    where: str
    line: int


DEFINED: list[type[Source]] = []  # every layout, in the order of definition


class Source:
    """A layout that collections come in. A subclass says how it is recognised and how its files are read."""

    name: ClassVar[str]
    about: ClassVar[str]
    place: ClassVar[float] = 100  # when it is tried, and where it stands in lists
    family: ClassVar[str] = ""  # another word that --from takes for it
    prefix: ClassVar[str] = ""  # what marks an identifier, where that and no path names a collection
    endings: ClassVar[str] = ""  # a pattern, where files of tables are known by their endings
    own_tables: ClassVar[bool] = False  # its tables end like those of other layouts, and are not read as such
    grades: ClassVar[str] = "raw"  # the convention unless one is asked for
    topic_ids: ClassVar[str] = "given"
    judged_only: ClassVar[bool] = False  # the topics of other splits are left out

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            DEFINED.append(cls)

    def __init__(self, files: Files, options: Options | None = None) -> None:
        self.files = files
        self.options = options or Options()
        self.notes: list[str] = []
        self.at: tuple[str, int] | None = None  # the file and line of the document that was read last

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """The files below a path (a folder or a file) that are of this layout; None where it is another."""
        return None

    @classmethod
    def rest(cls, folder: str, options: Options) -> Files:
        """The topics and judgments of this layout in a folder, wherever the documents are."""
        return Files()

    @classmethod
    def asks(cls, path: str) -> bool:
        """Whether a file plainly holds topics in this layout."""
        return False

    def documents(self) -> Iterator[Document]:
        """The documents, one by one, in the order of the files."""
        for path in self.files.documents:
            yield from self.documents_in(path)

    def topics(self) -> Iterator[Topic]:
        """The topics, in the order of the files."""
        for path in self.files.topics:
            yield from self.topics_in(path)

    def judgments(self) -> Qrels | None:
        """The judgments as they stand, or None where there are none."""
        return judgments_of(self.files.qrels, self.options)

    def documents_in(self, path: str) -> Iterator[Document]:
        """The documents in one file."""
        raise FormatError(f"{self.name} holds no documents")

    def topics_in(self, path: str) -> Iterator[Topic]:
        """The topics in one file."""
        return iter(())

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines of a file with their numbers, less what ends them."""
        return text_lines(path, self.options.encoding or "utf-8")

    def encoding_of(self, path: str) -> str:
        """The encoding that a file is read in."""
        return self.options.encoding or "utf-8"

    def odd(self, path: str, line: int, problem: str, reading: str) -> None:
        """What a copy that circulates has otherwise than its layout: noted with how it is read, refused by --strict."""
        if self.options.strict:
            raise BadLineError(path, line, problem)
        self.notes.append(f"{os.path.basename(path)}:{line}: {problem}; {reading}")

    def labels(self) -> dict[float, Grade]:
        """What the grades mean, where the layout says so."""
        return {}

    def told(self) -> dict[str, Any]:
        """What the layout knows for collection.toml: title, licence, provenance."""
        return {}


class ClassicSource(Source):
    """What the collections of SMART's time have in common: known names of files, and judgments of their own making."""

    family = "smart"
    document_names: ClassVar[tuple[str, ...]]  # as patterns, those that count most first
    topic_names: ClassVar[tuple[str, ...]]
    qrels_names: ClassVar[tuple[str, ...]]
    begins: ClassVar[re.Pattern[bytes]]  # how a file of documents begins

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """A folder with the usual names, or a file of documents."""
        if not os.path.isdir(path):
            return Files([path]) if cls.begins.match(head_of(path)) else None
        documents = [name for name in named_like(path, *cls.document_names) if cls.begins.match(head_of(name))]
        if not documents:
            return None
        return replace(cls.rest(path, options), documents=documents)

    @classmethod
    def rest(cls, folder: str, options: Options) -> Files:
        return Files((), named_like(folder, *cls.topic_names), named_like(folder, *cls.qrels_names))

    def judgments(self) -> Qrels | None:
        if not self.files.qrels:
            return None
        return gathered((one for path in self.files.qrels for one in self.judgments_in(path)), self.notes)

    def judgments_in(self, path: str) -> Iterator[Judgment]:
        """The judgments in one file."""
        raise FormatError(f"{self.name} holds no judgments")


def judgments_of(paths: Sequence[str], options: Options) -> Qrels | None:
    """Judgments from files in any format that `read_qrels` knows, taken together."""
    if not paths:
        return None

    def read_one(path: str) -> Qrels:
        said = options.dialect
        qrels = read_qrels(
            path,
            lenient=options.lenient,
            fields=options.of_judgments,
            delimiter=said.delimiter,
            encoding=options.encoding,
            decimal=said.decimal,
            duplicates=options.duplicates,
            grades=options.grades,
        )
        skipped = len(qrels.skipped)
        say([f"{os.path.basename(path)}: {counted(skipped, 'malformed line')} skipped"] if skipped else [])
        return qrels

    if len(paths) == 1:
        return read_one(paths[0])
    read = [(path, read_one(path)) for path in paths]
    if any(len(one.label) and len(set(one.label.tolist())) > 1 for _, one in read):
        raise FormatError(f"{', '.join(paths)}: judgments by subtopic are read from one file only")
    return gathered(
        Judgment(topic, document, grade, path, 0)
        for path, one in read
        for topic, documents in one.to_dict().items()
        for document, grade in documents.items()
    )


def gathered(judgments: Iterable[Judgment], notes: list[str] | None = None) -> Qrels:
    """Judgments as qrels. A judgment that is only repeated counts once; two that differ are refused."""
    judged: dict[str, dict[str, float]] = {}
    repeated = 0
    for one in judgments:
        known = judged.setdefault(one.topic, {})
        if known.setdefault(one.document, one.grade) != one.grade:
            both = f"{known[one.document]:g} and {one.grade:g}"
            problem = f"document {one.document!r} is judged {both} for topic {one.topic!r}"
            raise DuplicateError(one.where, one.line, problem)
        repeated += 1
    repeated -= sum(map(len, judged.values()))
    if repeated and notes is not None:
        are = "judgment is" if repeated == 1 else "judgments are"
        notes.append(f"{repeated:,} {are} repeated word for word; each counts once")
    return Qrels(judged)


# files and lines


def head_of(path: str) -> bytes:
    """The first lines of a file, unpacked; empty where it is no text. A damaged file must not pass for another layout."""
    head = b""
    try:
        for line in lines(path):
            head += line
            if len(head) >= HEAD:
                break
    except FormatError:
        return b""
    except DataError:
        if not head:
            raise
    return head[:HEAD]


def named_like(folder: str, *patterns: str) -> list[str]:
    """The files of a folder whose names fit the first pattern that any fits; case and compression do not matter."""
    names = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    packed = "|".join(re.escape(ending) for ending in COMPRESSED)
    for pattern in patterns:
        fits = re.compile(rf"(?:{pattern})(?:{packed})?", re.IGNORECASE)
        paths = [os.path.join(folder, name) for name in names if fits.fullmatch(name)]
        if paths:
            return paths
    return []


def text_lines(path: str, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, less what ends them."""
    tell_used("encoding")
    advice = "old files are often latin-1: --encoding latin-1"
    for number, raw in enumerate(lines(path), 1):
        yield number, decoded(raw, encoding, path, number, advice).rstrip("\r\n")


def one_split(splits: Collection[str], wanted: str | None, path: str, usual: str = "", lacking: str = "") -> str:
    """The split that is wanted: if none is, the usual one, or the only one there is."""
    tell_used("split")
    only = next(iter(splits)) if len(splits) == 1 else None
    chosen = wanted or (usual if usual in splits else only)
    if chosen is None or chosen not in splits:
        problem = f"no split {chosen!r}{lacking}" if chosen else "several splits"
        raise FormatError(f"{path}: {problem}; there are {', '.join(splits) or 'none'} (--split NAME takes one)")
    return chosen


def squeezed(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(text.split())


def without_zeros(number: str) -> str:
    """A number without leading zeros: 001 and 1 are the same topic; other ids stay as they are.

    >>> without_zeros("001"), without_zeros("000"), without_zeros("PLAIN-02")
    ('1', '0', 'PLAIN-02')
    """
    return (number.lstrip("0") or "0") if number.isdigit() else number
