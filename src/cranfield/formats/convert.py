"""From one format to another, and several qrels into one.

Whether a file holds a run or qrels is decided by its content, then by what the target can hold, and
never guessed: an object {topic: {document: 1}} may be either. What a format cannot keep is said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cranfield.collection import Qrels
from cranfield.errors import DataError, FormatError
from cranfield.formats import as_qrels, as_runs, write_qrels, write_run
from cranfield.formats.registry import FORMATS, HEAD, NOUNS, format_for, format_named, kinds_in
from cranfield.formats.streams import Opened, is_source, opened, plain_ending
from cranfield.kernels import Strings, Table, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.formats.format import Format, Kind, Kinds

__all__ = ["Converted", "Merge", "convert", "merge_qrels"]

Merge = Literal["latest", "max", "error"]
MERGES = ("latest", "max", "error")
PLAIN = {b"0", b"Q0", b"q0"}  # what stands in column 2 when it means nothing


@dataclass
class Converted:
    """What was converted, and what got lost on the way."""

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
) -> Converted:
    """Write a run or qrels in another format; several qrels are merged into one.

    `merge` says what happens where two files judge a document differently: the `latest` file counts, the `max` grade
    counts, or it is an `error` (the default).
    """
    sources = list(source) if isinstance(source, (list, tuple)) else [source]
    if not sources:
        raise FormatError("nothing to convert")
    if merge is not None and merge not in MERGES:
        raise FormatError(f"merge must be one of {', '.join(MERGES)}, got {merge!r}")
    if from_format is not None:
        format_named(from_format)
    files = [opened(one) if is_source(one) else one for one in sources]
    chosen = _kind(files, target, from_format, to_format, kind)
    if chosen == "qrels":
        return _convert_qrels(files, target, from_format, to_format, merge, lenient)
    if len(files) > 1:
        raise FormatError(f"{len(files)} runs cannot be merged into one; convert them one by one")
    return _convert_run(files[0], target, from_format, to_format, lenient)


def _content(file: Any) -> Any:
    """What `as_runs` and `as_qrels` take: the file, already read."""
    return _Again(file) if isinstance(file, Opened) else file


class _Again:
    """A file that has been opened before, to be read under its own name."""

    def __init__(self, file: Opened) -> None:
        self.file = file
        self.name = file.where

    def read(self) -> Any:
        """The content."""
        return self.file.buffer


def _convert_run(
    file: Any, target: str | os.PathLike[str], from_format: str | None, to_format: str | None, lenient: bool
) -> Converted:
    [run] = as_runs(_content(file), from_format, lenient)
    chosen = format_named(to_format, "run") if to_format else format_for(target, "run")
    answer = Converted("run", chosen.name, len(run), len(run.table.topics), _skipped(run.table))
    if not chosen.scores:
        answer.notes.append(f"scores are not kept: {chosen.name} holds ranks only")
    elif _ranks_only(file, from_format):
        answer.notes.append("the source holds ranks and no scores: a score is the rank with a minus sign")
    if "run" not in chosen.labels and run.tag:
        answer.notes.append(f"the tag {run.tag!r} is not kept: {chosen.name} has no place for it")
    if not chosen.twice:
        _refuse_twice(run.table, run.name, chosen)
    write_run(run, target, to_format)
    return answer


def _convert_qrels(
    files: list[Any],
    target: str | os.PathLike[str],
    from_format: str | None,
    to_format: str | None,
    merge: Merge | None,
    lenient: bool,
) -> Converted:
    read = [as_qrels(_content(file), from_format, lenient) for file in files]
    names = [file.where if isinstance(file, Opened) else one.name for file, one in zip(files, read, strict=True)]
    qrels, notes = merge_qrels(read, merge or "error", names) if len(read) > 1 else (read[0], [])
    chosen = format_named(to_format, "qrels") if to_format else format_for(target, "qrels")
    skipped = [note for one in read for note in _skipped(one.table)]
    answer = Converted("qrels", chosen.name, len(qrels), len(qrels.topics), skipped + notes)
    if "qrels" not in chosen.labels and not set(qrels.labels) <= PLAIN:
        answer.notes.append(f"labels (column 2) are not kept: {chosen.name} has no place for them")
    if any(_sampled(one) for one in read) and (len(read) > 1 or chosen.name not in KEEPING):
        answer.notes.append("how documents were sampled is not kept: only prels and strata say it, of one file")
    if not chosen.twice:
        _refuse_twice(qrels.table, qrels.name, chosen)
    write_qrels(qrels, target, to_format)
    return answer


KEEPING = ("prels", "strata")


def _sampled(qrels: Qrels) -> bool:
    return any(chance < 1 for chance, _ in (qrels.extras.probabilities or {}).values())


def _skipped(table: Table) -> list[str]:
    return [f"{len(table.skipped)} malformed lines were left out"] if table.skipped else []


def _refuse_twice(table: Table, where: str, chosen: Format) -> None:
    seen: set[tuple[int, bytes]] = set()
    for topic, document in zip(table.topic.tolist(), table.documents, strict=True):
        if (topic, document) in seen:
            raise FormatError(
                f"{where}: document {decode(document)!r} stands twice for topic {decode(table.topics[topic])!r}, "
                f"which {chosen.name} cannot hold; use trec, csv or jsonl"
            )
        seen.add((topic, document))


def _ranks_only(file: Any, from_format: str | None) -> bool:
    if not isinstance(file, Opened):
        return False
    found = FORMATS[from_format] if from_format else kinds_in(bytes(file.buffer[:HEAD]))[0]
    return found is not None and not found.scores


def _kind(
    files: list[Any],
    target: str | os.PathLike[str],
    from_format: str | None,
    to_format: str | None,
    kind: Kind | None,
) -> Kind:
    """Run or qrels: as told, by content, or by what the target can hold."""
    if kind is not None:
        return kind
    possible: Kinds = frozenset({"run", "qrels"})
    for file in files:
        kinds = _possible(file, from_format)
        if kinds == {"prefs"}:
            raise FormatError(f"{_where(file)}: looks like preferences (prefs), which no other format can hold")
        if kinds and not kinds & possible:
            raise FormatError(
                f"{_where(file)}: looks like {NOUNS[min(kinds)]}, the other files hold {NOUNS[min(possible)]}"
            )
        possible &= kinds or possible
    if len(possible) > 1 and to_format:
        possible &= frozenset(format_named(to_format).kinds)
    if len(possible) > 1:
        hints = {_hint(path) for path in (target, *(file.where for file in files if isinstance(file, Opened)))}
        possible &= (hints - {None}) or possible
    if len(possible) != 1:
        raise FormatError(f"{_where(files[0])}: may be a run or qrels; say kind='run' or kind='qrels'")
    return min(possible)


def _possible(file: Any, from_format: str | None) -> Kinds:
    if isinstance(file, Opened):
        found, kinds = kinds_in(bytes(file.buffer[:HEAD]))
        return (
            kinds
            if from_format is None or (found and found.name == from_format)
            else frozenset(FORMATS[from_format].kinds)
        )
    if isinstance(file, Qrels):
        return frozenset({"qrels"})
    return frozenset({"run"}) if type(file).__name__ == "Run" else frozenset({"run", "qrels"})


def _where(file: Any) -> str:
    return file.where if isinstance(file, Opened) else type(file).__name__


def _hint(path: str | os.PathLike[str]) -> Kind | None:
    """What a file's name says it holds: `bm25.run.gz`, `dev.qrels`."""
    parts = os.path.basename(os.fspath(path)).lower().split(".")
    if "qrels" in parts or "qrel" in parts:
        return "qrels"
    return "run" if "run" in parts or plain_ending(path) == ".res" else None


def merge_qrels(
    several: Sequence[Qrels], how: Merge = "error", names: Sequence[str] | None = None
) -> tuple[Qrels, list[str]]:
    """One qrels from several, and what there is to say about it. Topics and documents keep their first place.

    Where a document is judged under several labels in one file (subtopics, judges), labels count as part of its name;
    otherwise column 2 says nothing, and the same document in two files is one judgment.
    """
    names = names or [one.name for one in several]
    labelled = any(bool((one.index.first != np.arange(len(one))).any()) for one in several)
    merged: dict[tuple[bytes, bytes, bytes], tuple[float, bytes, str]] = {}
    same = conflicts = 0
    for name, qrels in zip(names, several, strict=True):
        for topic, document, label, grade in _judgments(qrels):
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
    return _qrels_of(merged), notes


def _judgments(qrels: Qrels) -> Any:
    table = qrels.table
    topics, labels = list(table.topics), list(table.labels) or [b"0"]
    label = table.label.tolist() if len(table.labels) else [0] * len(table.value)
    for t, document, which, grade in zip(
        table.topic.tolist(), table.documents, label, table.value.tolist(), strict=True
    ):
        yield topics[t], document, labels[which], grade


def _qrels_of(merged: dict[tuple[bytes, bytes, bytes], tuple[float, bytes, str]]) -> Qrels:
    topics: dict[bytes, int] = {}
    labels: dict[bytes, int] = {}
    topic = [topics.setdefault(key[0], len(topics)) for key in merged]
    label = [labels.setdefault(value[1], len(labels)) for value in merged.values()]
    table = Table(
        Strings.of(topics),
        np.array(topic, np.int32),
        Strings.of(key[1] for key in merged),
        np.array([value[0] for value in merged.values()], np.float64),
        Strings.of(labels),
        np.array(label, np.int32),
        np.zeros(0, np.int64),
    )
    return Qrels(table, "merged")
