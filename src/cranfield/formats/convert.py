"""Convert a run or qrels to another format, and merge several qrels into one.

The content of a file decides whether it is a run or qrels; if it fits both, the target format decides. Nothing is
guessed: an object {topic: {document: 1}} may be either. A note reports what the target format cannot keep.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from cranfield.base.errors import ConventionError, DataError, FormatError
from cranfield.base.kernels import RowTable, decode
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run
from cranfield.formats.csv_tables import Dialect, DialectOptions, open_table
from cranfield.formats.format import BOTH, FORMATS, NOUNS, USUAL, Head, rows_of
from cranfield.formats.format_registry import format_for, format_named, strongest
from cranfield.formats.grade_scales import grade_map
from cranfield.formats.named_columns import RowCollector
from cranfield.formats.runs_and_qrels import as_qrels, as_runs, write_qrels, write_run
from cranfield.formats.streams import is_source, plain_ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.base.qrels import Duplicates
    from cranfield.formats.format import Fields, Format, Kind, Kinds

Merge = Literal["latest", "max", "error"]
MERGES = ("latest", "max", "error")
HELD: dict[type, Kinds] = {Run: frozenset({"run"}), Qrels: frozenset({"qrels"})}
PLAIN = {b"0", b"Q0", b"q0"}  # the values of column 2 that have no meaning


@dataclass
class Converted:
    """The size of what was converted, and notes on what was lost."""

    kind: Kind
    format: str
    rows: int
    topics: int
    notes: list[str] = field(default_factory=list)


def convert(
    source: Any,
    target: str | os.PathLike[str],
    from_format: str | None = None,
    to_format: str | None = None,
    kind: Kind | None = None,
    merge: Merge | None = None,
    lenient: bool = False,
    fields: Fields | None = None,
    *,
    duplicates: Duplicates = "error",
    grades: Mapping[float, float] | str | None = None,
    **options: Unpack[DialectOptions],
) -> Converted:
    """Write a run or qrels in another format; several qrels are merged into one.

    `merge` decides when two files judge a document differently: the `latest` file counts, the `max` grade counts, or it
    is an `error` (the default). `fields` and the parameters after it are those of `read_qrels`.
    """
    sources = list(source) if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise FormatError("nothing to convert")
    if merge is not None and merge not in MERGES:
        raise ConventionError(f"merge must be one of {', '.join(MERGES)}, got {merge!r}")
    if from_format is not None:
        format_named(from_format)
    dialect = Dialect(**options)
    labels = {"duplicates": duplicates, "grades": grade_map(grades)}
    inputs = [_Input(one, from_format, lenient, fields or USUAL, dialect, labels) for one in sources]
    if (kind or _kind(inputs, target, to_format)) == "qrels":
        return _convert_qrels(inputs, target, to_format, merge or "error")
    if grades is not None or duplicates != "error":
        raise ConventionError(f"{'grades' if grades is not None else 'duplicates'}: only judgments have it, not runs")
    if len(inputs) > 1:
        raise FormatError(f"{len(inputs)} runs cannot be merged into one; convert them one by one")
    return _convert_run(inputs[0], target, to_format)


@dataclass
class _Input:
    """One of the sources: a file that is opened once, or an object that holds a run or qrels."""

    content: Any
    format: str | None
    lenient: bool
    fields: Fields
    dialect: Dialect
    labels: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.file = open_table(self.content, self.dialect.encoding) if is_source(self.content) else None
        self.where = type(self.content).__name__ if self.file is None else self.file.where
        self.head = Head(b"" if self.file is None else self.file.buffer)
        if self.file is not None:
            self.content, self.dialect = self.file, self.dialect.of(self.file)

    def kinds(self) -> Kinds:
        """What the source may hold; empty if that cannot be decided."""
        if self.file is None:
            return HELD.get(type(self.content), BOTH)
        if self.format is None:
            match = strongest(self.head, self.where, fields=self.fields, dialect=self.dialect)
            return match[1] if match else frozenset()
        evidence = format_named(self.format, fields=self.fields, dialect=self.dialect).sniff(self.head)
        return evidence.kinds if evidence else frozenset(FORMATS[self.format].kinds)

    def ranks_only(self) -> bool:
        """Whether the source is a file of a format without scores."""
        if self.format and self.file:
            return not FORMATS[self.format].scores
        match = strongest(self.head, self.where, fields=self.fields, dialect=self.dialect)
        return match is not None and not match[0].scores


def _convert_run(source: _Input, target: str | os.PathLike[str], to_format: str | None) -> Converted:
    [run] = as_runs(source.content, source.format, source.lenient, source.fields, **source.dialect.options)
    target_format = format_for(target, "run", to_format)
    notes = _skipped(run.table)
    if not target_format.scores:
        notes.append(f"scores are not kept: {target_format.name} holds ranks only")
    elif source.ranks_only():
        notes.append("the source holds ranks and no scores: a score is the rank with a minus sign")
    if "run" not in target_format.labels and run.tag:
        notes.append(f"the tag {run.tag!r} is not kept: {target_format.name} has no place for it")
    _refuse_twice(run.table, run.name, target_format)
    write_run(run, target, to_format)
    return Converted("run", target_format.name, len(run), len(run.table.topics), notes)


def _convert_qrels(
    sources: list[_Input], target: str | os.PathLike[str], to_format: str | None, merge: Merge
) -> Converted:
    read = [
        as_qrels(one.content, one.format, one.lenient, one.fields, **one.dialect.options, **one.labels)
        for one in sources
    ]
    notes = [note for one in read for note in _skipped(one.table)]
    qrels = read[0]
    if len(read) > 1:
        names = [one.name if source.file is None else source.where for source, one in zip(sources, read, strict=True)]
        qrels, settled = merge_qrels(read, merge, names)
        notes += settled
    target_format = format_for(target, "qrels", to_format)
    if "qrels" not in target_format.labels and not set(qrels.labels) <= PLAIN:
        notes.append(f"labels (column 2) are not kept: {target_format.name} has no place for them")
    chances = (chance for one in read for chance, _ in (one.extras.probabilities or {}).values())
    if (len(read) > 1 or not target_format.samples) and any(chance < 1 for chance in chances):
        keeping = " and ".join(each.name for each in FORMATS.values() if each.samples)
        notes.append(f"how documents were sampled is not kept: only {keeping} say it, of one file")
    _refuse_twice(qrels.table, qrels.name, target_format)
    write_qrels(qrels, target, to_format)
    return Converted("qrels", target_format.name, len(qrels), len(qrels.topics), notes)


def _skipped(table: RowTable) -> list[str]:
    return [f"{len(table.skipped)} malformed lines were left out"] if table.skipped else []


def _refuse_twice(table: RowTable, where: str, target_format: Format) -> None:
    if target_format.twice:
        return
    pairs: set[tuple[int, bytes]] = set()
    for topic, document in zip(table.topic.tolist(), table.documents, strict=True):
        if (topic, document) in pairs:
            raise FormatError(
                f"{where}: document {decode(document)!r} occurs twice for topic {decode(table.topics[topic])!r}, "
                f"which {target_format.name} cannot hold; use trec, csv or jsonl"
            )
        pairs.add((topic, document))


def _kind(sources: list[_Input], target: str | os.PathLike[str], to_format: str | None) -> Kind:
    """Run or qrels: decided by the content, else by what the target format can hold."""
    possible: Kinds = BOTH
    for source in sources:
        kinds = source.kinds()
        if kinds == {"prefs"}:
            raise FormatError(f"{source.where}: looks like preferences (prefs), which no other format can hold")
        if kinds and not kinds & possible:
            problem = f"looks like {NOUNS[min(kinds)]}, the other files hold {NOUNS[min(possible)]}"
            raise FormatError(f"{source.where}: {problem}")
        possible &= kinds or possible
    if len(possible) > 1 and to_format:
        possible &= frozenset(format_named(to_format).kinds)
    if len(possible) > 1:
        hints = {_hint(path) for path in (target, *(source.where for source in sources if source.file))}
        possible &= (hints - {None}) or possible
    if len(possible) != 1:
        raise FormatError(f"{sources[0].where}: may be a run or qrels; say kind='run' or kind='qrels'")
    return min(possible)


def _hint(path: str | os.PathLike[str]) -> Kind | None:
    """What a file name says it holds: `bm25.run.gz`, `dev.qrels`."""
    parts = os.path.basename(os.fspath(path)).lower().split(".")
    if "qrels" in parts or "qrel" in parts:
        return "qrels"
    return "run" if "run" in parts or plain_ending(path) == ".res" else None


def merge_qrels(
    several: Sequence[Qrels], how: Merge = "error", names: Sequence[str] | None = None
) -> tuple[Qrels, list[str]]:
    """Merge several qrels into one, with notes. Topics and documents keep their first place.

    If a file judges a document under several labels (subtopics, judges), a label counts as part of the document's name.
    If not, column 2 is ignored, and the same document in two files is one judgment.
    """
    names = names or [one.name for one in several]
    labelled = any(bool((one.index.first != np.arange(len(one))).any()) for one in several)
    merged: dict[tuple[bytes, bytes, bytes], tuple[float, bytes, str]] = {}
    same = conflicts = 0
    for name, qrels in zip(names, several, strict=True):
        for topic, label, document, grade in rows_of(qrels.table, "qrels"):
            key = (topic, document, label if labelled else b"")
            if key not in merged:
                merged[key] = grade, label, name
                continue
            before, _, other = merged[key]
            if before == grade:
                same += 1
                continue
            if how == "error":
                raise DataError(
                    f"topic {decode(topic)!r}, document {decode(document)!r}: grade {before:g} in {other}, {grade:g} in {name}; "
                    "merge='latest' takes the later file's, merge='max' the higher"
                )
            conflicts += 1
            if how == "latest" or grade > before:
                merged[key] = grade, label, name
    notes = [f"{same} judgments stand in several files with the same grade"] if same else []
    notes += [f"{conflicts} conflicting grades were settled by {how!r}"] if conflicts else []
    rows = RowCollector("qrels", "merged")
    for (topic, document, _), (grade, label, _) in merged.items():
        rows.add(topic, document, grade, label)
    return Qrels(rows.table(), "merged"), notes
