"""The base class of import layouts: files that are read as documents, topics and judgments.

A source only reads. `import_collection` decides how topics are numbered and what a grade is worth, and records it.
Every error names its file and line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cranfield.base.errors import BadLineError, DataError, DuplicateError, FormatError
from cranfield.base.notifications import say, tell_used
from cranfield.base.qrels import Qrels
from cranfield.base.registry import Member, Registry
from cranfield.base.text_layout import counted
from cranfield.formats.csv_tables import DETECTED, Dialect
from cranfield.formats.runs_and_qrels import read_qrels
from cranfield.formats.streams import COMPRESSED, decoded, lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.collection import Document, Grade, Topic
    from cranfield.base.qrels import Duplicates
    from cranfield.formats.format import Fields


HEAD = 4096  # bytes that a layout is recognised by


@dataclass(frozen=True)
class Files:
    """The files of documents, topics and judgments."""

    documents: Sequence[str] = ()
    topics: Sequence[str] = ()
    qrels: Sequence[str] = ()
    unread: Sequence[str] = ()  # further files of judgments that are not read

    def __iter__(self) -> Iterator[str]:
        return iter([*self.documents, *self.topics, *self.qrels])


@dataclass(frozen=True)
class ImportOptions:
    """How to read: the encoding, one of several splits, other names of the fields, whether oddities are refused."""

    encoding: str | None = None  # None: UTF-8, or detected for tables
    split: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)  # our name → the name in the file
    strict: bool = False
    dialect: Dialect = DETECTED  # the dialect of tables
    lenient: bool = False  # malformed rows of tables are skipped and counted
    duplicates: Duplicates = "error"  # which grade counts if a document is judged twice
    grades: Mapping[float, float] | None = None  # grade in the file → grade in the collection

    @property
    def of_judgments(self) -> Fields:
        """The column names of judgments; a usual name given for `topic` refers to the topics file."""
        from cranfield.formats.named_columns import TOPIC

        named = {ours: [theirs] for ours, theirs in self.fields.items() if ours in ("document", "grade", "iteration")}
        return named | ({"topic": [self.fields["topic"], *TOPIC]} if "topic" in self.fields else {})


class ImportedJudgment(NamedTuple):
    """One judgment with its file and line."""

    topic: str
    document: str
    grade: float
    where: str
    line: int


SOURCES: Registry[type[CollectionSource]] = Registry(
    "layout", "import_layouts", "cranfield.formats.importers.layouts", order=lambda each: (each.place, each.name)
)


class CollectionSource(Member):
    """A layout of collections. A subclass says how it is recognised and how its files are read."""

    registry = SOURCES
    about: ClassVar[str]
    place: ClassVar[float] = 100  # its place in the order of detection and in lists
    family: ClassVar[str] = ""  # another name for --from
    prefix: ClassVar[str] = ""  # the prefix of identifiers, if identifiers instead of paths name collections
    endings: ClassVar[str] = ""  # a pattern of endings, for tables
    own_tables: ClassVar[bool] = False  # its tables have the endings of other layouts but are read differently
    grades: ClassVar[str] = "raw"  # the default convention
    topic_ids: ClassVar[str] = "given"
    judged_only: ClassVar[bool] = False  # whether topics of other splits are left out

    def __init__(self, files: Files, options: ImportOptions | None = None) -> None:
        self.files = files
        self.options = options or ImportOptions()
        self.notes: list[str] = []
        self.at: tuple[str, int] | None = None  # the file and line of the last document

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """The files of this layout at a path (a folder or a file); None if it has another layout."""
        return None

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        """The topics and judgments of this layout in a folder, wherever the documents are."""
        return Files()

    @classmethod
    def asks(cls, path: str) -> bool:
        """Whether a file clearly contains topics in this layout."""
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
        """The judgments as they are in the files, or None."""
        return judgments_of(self.files.qrels, self.options)

    def documents_in(self, path: str) -> Iterator[Document]:
        """The documents in one file."""
        raise FormatError(f"{self.name} holds no documents")

    def topics_in(self, path: str) -> Iterator[Topic]:
        """The topics in one file."""
        return iter(())

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The numbered lines of a file, without line ends."""
        return text_lines(path, self.options.encoding or "utf-8")

    def encoding_of(self, path: str) -> str:
        """The encoding that a file is read in."""
        return self.options.encoding or "utf-8"

    def odd(self, path: str, line: int, problem: str, reading: str) -> None:
        """Report a known deviation from the layout: a note says how it is read; with --strict it is an error."""
        if self.options.strict:
            raise BadLineError(path, line, problem)
        self.notes.append(f"{os.path.basename(path)}:{line}: {problem}; {reading}")

    def labels(self) -> dict[float, Grade]:
        """The meanings of the grades, if the layout defines them."""
        return {}

    def metadata(self) -> dict[str, Any]:
        """Facts for collection.toml: title, licence, provenance."""
        return {}


class ClassicSource(CollectionSource):
    """The base of the layouts of SMART's time: fixed file names, and judgments in formats of their own."""

    family = "smart"
    document_names: ClassVar[tuple[str, ...]]  # patterns, by priority
    topic_names: ClassVar[tuple[str, ...]]
    qrels_names: ClassVar[tuple[str, ...]]
    begins: ClassVar[re.Pattern[bytes]]  # how a file of documents begins

    @classmethod
    def find(cls, path: str, options: ImportOptions) -> Files | None:
        """A folder with the usual names, or a file of documents."""
        if not os.path.isdir(path):
            return Files([path]) if cls.begins.match(head_of(path)) else None
        documents = [name for name in named_like(path, *cls.document_names) if cls.begins.match(head_of(name))]
        if not documents:
            return None
        return replace(cls.rest(path, options), documents=documents)

    @classmethod
    def rest(cls, folder: str, options: ImportOptions) -> Files:
        return Files((), named_like(folder, *cls.topic_names), named_like(folder, *cls.qrels_names))

    def judgments(self) -> Qrels | None:
        if not self.files.qrels:
            return None
        return merged_judgments((one for path in self.files.qrels for one in self.judgments_in(path)), self.notes)

    def judgments_in(self, path: str) -> Iterator[ImportedJudgment]:
        """The judgments in one file."""
        raise FormatError(f"{self.name} holds no judgments")


def judgments_of(paths: Sequence[str], options: ImportOptions) -> Qrels | None:
    """The judgments of all files together, in any format that `read_qrels` knows."""
    if not paths:
        return None

    def read_one(path: str) -> Qrels:
        qrels = read_qrels(
            path,
            lenient=options.lenient,
            fields=options.of_judgments,
            duplicates=options.duplicates,
            grades=options.grades,
            **options.dialect.options,
        )
        skipped = len(qrels.skipped)
        say([f"{os.path.basename(path)}: {counted(skipped, 'malformed line')} skipped"] if skipped else [])
        return qrels

    if len(paths) == 1:
        return read_one(paths[0])
    read = [(path, read_one(path)) for path in paths]
    if any(len(one.label) and len(set(one.label.tolist())) > 1 for _, one in read):
        raise FormatError(f"{', '.join(paths)}: judgments by subtopic are read from one file only")
    return merged_judgments(
        ImportedJudgment(topic, document, grade, path, 0)
        for path, one in read
        for topic, documents in one.to_dict().items()
        for document, grade in documents.items()
    )


def merged_judgments(judgments: Iterable[ImportedJudgment], notes: list[str] | None = None) -> Qrels:
    """Judgments as qrels. An exact repetition counts once; two different grades are refused."""
    judged: dict[str, dict[str, float]] = {}
    repeated = 0
    for one in judgments:
        grades = judged.setdefault(one.topic, {})
        if grades.setdefault(one.document, one.grade) != one.grade:
            both = f"{grades[one.document]:g} and {one.grade:g}"
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
    """The first lines of a file, unpacked; empty if it is not text. A damaged file is an error."""
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
    """The files of a folder that fit the first pattern with any match; case and compression do not matter.

    A path that is not a folder has no files.
    """
    entries = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(name for name in entries if os.path.isfile(os.path.join(folder, name)))
    packed = "|".join(re.escape(ending) for ending in COMPRESSED)
    for pattern in patterns:
        fits = re.compile(rf"(?:{pattern})(?:{packed})?", re.IGNORECASE)
        paths = [os.path.join(folder, name) for name in names if fits.fullmatch(name)]
        if paths:
            return paths
    return []


def text_lines(path: str, encoding: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file, without line ends."""
    tell_used("encoding")
    advice = "old files are often latin-1: --encoding latin-1"
    for number, raw in enumerate(lines(path), 1):
        yield number, decoded(raw, encoding, path, number, advice).rstrip("\r\n")


def one_split(splits: Collection[str], name: str | None, path: str, usual: str = "", lacking: str = "") -> str:
    """The split of this name; by default the usual one, or the only one."""
    tell_used("split")
    only = next(iter(splits)) if len(splits) == 1 else None
    split = name or (usual if usual in splits else only)
    if split is None or split not in splits:
        problem = f"no split {split!r}{lacking}" if split else "several splits"
        raise FormatError(f"{path}: {problem}; there are {', '.join(splits) or 'none'} (--split NAME takes one)")
    return split


def squeezed(text: str) -> str:
    """A text on one line, with single spaces."""
    return " ".join(text.split())


def without_zeros(number: str) -> str:
    """A number without leading zeros, as 001 and 1 are the same topic; other ids stay as they are.

    >>> without_zeros("001"), without_zeros("000"), without_zeros("PLAIN-02")
    ('1', '0', 'PLAIN-02')
    """
    return (number.lstrip("0") or "0") if number.isdigit() else number
