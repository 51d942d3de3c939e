"""Show and edit the guidelines of a workspace, and the meanings of its grades.

An edit replaces `guidelines.md` and the grades of `collection.toml`, and stores the new version in the log: all of it or
nothing. It names the version that its author has read; if the files hold another one by now, it is refused.
"""

from __future__ import annotations

import math
import os
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Grade
from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Entries, Layout, Part, Table
from cranfield.base.text_layout import counted
from cranfield.formats.collection_folder import DOCUMENTS, META, file_in, toml_with_grades
from cranfield.formats.streams import all_or_none, read_errors, write_bytes
from cranfield.inputs.workspace import LONGEST_GUIDELINE, is_workspace, open_bench
from cranfield.judging.guidelines import GradeMeaning, Guidelines, changed_lines
from cranfield.judging.guidelines_history import grade_uses, guidelines_history, store_guidelines
from cranfield.judging.log_location import open_log
from cranfield.judging.round_plan import CLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cranfield.inputs.workspace import Bench
    from cranfield.judging.guidelines import ChangedLine
    from cranfield.judging.guidelines_history import GuidelinesEntry
    from cranfield.judging.log import Transaction

MOST_GRADES = 20
LONGEST_LABEL, LONGEST_MEANING = 100, 2000  # characters


class EditConflictError(DataError):
    """Somebody else has edited in the meantime; `current` is their version."""

    def __init__(self, current: Guidelines) -> None:
        super().__init__("somebody else has changed the guidelines or the grades in the meantime; nothing was written")
        self.current = current


def refuse_guidelines(version: Guidelines) -> None:
    """Raise DataError for a version that no workspace can have."""
    grades = [each.grade for each in version.grades]
    if len(version.text.encode("utf-8", "surrogatepass")) > LONGEST_GUIDELINE:
        raise DataError(f"guidelines have at most {LONGEST_GUIDELINE >> 10:,} KB")
    if "\0" in version.text:
        raise DataError("expected guidelines without NUL")
    if not all(map(math.isfinite, grades)):
        raise DataError("expected finite numbers as grades")
    if len(grades) > MOST_GRADES or len(grades) == 1:
        raise DataError(f"expected 2 to {MOST_GRADES} grades, found {len(grades)}")
    repeated = next((grade for grade in grades if grades.count(grade) > 1), None)
    if repeated is not None:
        raise DataError(f"grade {repeated:g} occurs twice")
    for each in version.grades:
        if len(each.label) > LONGEST_LABEL or len(each.meaning) > LONGEST_MEANING:
            most = f"{LONGEST_LABEL} characters, its meaning {LONGEST_MEANING:,}"
            raise DataError(f"the label of grade {each.grade:g} has at most {most}")
        if "\0" in each.label + each.meaning:
            raise DataError(f"expected a label of grade {each.grade:g} without NUL")
    if grades and version.relevant_from not in grades:
        known = ", ".join(f"{grade:g}" for grade in sorted(grades))
        raise DataError(f"expected the lowest relevant grade to be one of {known}, found {version.relevant_from:g}")


def edit_guidelines(bench: Bench, version: Guidelines, before: str, author: str) -> Guidelines:
    """Replace the guidelines and grades of a workspace; return the version that is now in force.

    `before` is the hash of the version that the author has seen. EditConflictError if the files hold another version,
    DataError if a grade would be removed that labels or an open round use.
    """
    refuse_guidelines(version)
    if version.grades and bench.collection is None:
        raise DataError("there is no collection whose grades could be named; import one first")

    def work(transaction: Transaction) -> None:
        transaction.alone()
        current = bench.guidelines()
        if current.hash not in (before, version.hash):  # a transaction that is tried again finds its own version
            raise EditConflictError(current)
        _refuse_removal(bench, transaction, current, version)
        store_guidelines(transaction, current)
        store_guidelines(transaction, version, author)
        with all_or_none():
            _write(bench, current, version)

    bench.log.write(work)
    return bench.guidelines()


def _refuse_removal(bench: Bench, transaction: Transaction, current: Guidelines, version: Guidelines) -> None:
    """Raise DataError if labels, judgments of the collection or an open round use a grade that would go."""
    stay = {each.grade for each in version.grades}
    gone = {each.grade for each in current.grades} - stay
    if not gone:
        return
    for plan, state in transaction.all_rounds():
        if state != CLOSED and (asked := gone & set(plan.scale)):
            raise DataError(f"round {shortened(plan.name)!r} asks for grade {min(asked):g}; close it first")
    uses = grade_uses(transaction)
    qrels = None if bench.qrels is None else _qrels(bench)
    for grade in sorted(gone):
        own = 0 if qrels is None else int((qrels.grade == grade).sum())
        counts = [counted(uses[grade], "label")] if grade in uses else []
        counts += [f"{counted(own, 'judgment')} of the collection"] if own else []
        if counts:
            have = "has" if uses.get(grade, 0) + own == 1 else "have"
            problem = f"{' and '.join(counts)} {have} grade {grade:g}, so it cannot be removed"
            raise DataError(f"{problem}; change its label or meaning instead")


def _qrels(bench: Bench) -> Any:
    opened = bench.open_collection()
    return None if opened is None else opened.qrels


def _write(bench: Bench, current: Guidelines, version: Guidelines) -> None:
    """Write the files that change."""
    if version.text != current.text:
        path = bench.guideline_file() or os.path.join(bench.folder, "guidelines.md")
        if os.path.exists(path) and os.path.getsize(path) > LONGEST_GUIDELINE:
            raise DataError(f"{path}: too long to be edited here; edit the file")
        write_bytes(path, [version.text.encode("utf-8", "replace")])
    if (version.grades, version.relevant_from) != (current.grades, current.relevant_from):
        path = os.path.join(str(bench.collection), META)
        source = ""
        if os.path.exists(path):
            with read_errors(path), open(path, encoding="utf-8") as file:
                source = file.read()
        grades = {each.grade: Grade(each.label, each.meaning) for each in version.grades}
        write_bytes(path, [toml_with_grades(source, grades, version.relevant_from, path).encode()])


# the command


@dataclass(frozen=True, repr=False)
class GuidelinesReport(Answer):
    """A version of the guidelines and grades, and the history of versions; `since` is what changed from another version."""

    name: str
    version: Guidelines
    history: Sequence[GuidelinesEntry]
    since: Sequence[ChangedLine] | None = None

    def content(self, how: Layout) -> Iterator[Part]:
        if self.since is not None:
            yield "\n".join(f"{each.sign} {each.line}".rstrip() for each in self.since) or "nothing changed"
            return
        if not self.version.hash:
            yield f"{self.name}: there are no guidelines and no meanings of grades"
        if self.version.grades:
            grades = [f"{each.grade:g}  {each.label}".rstrip() for each in reversed(self.version.grades)]
            meanings = [each.meaning for each in reversed(self.version.grades)]
            yield Entries(list(zip(grades, meanings, strict=True)), "grades")
            yield Entries([("relevant from", f"{self.version.relevant_from:g}")])
        if self.version.text:
            yield self.version.text.rstrip("\n")
        if self.history:
            rows = [
                [each.created[:19].replace("T", " "), each.author or how.undefined, each.hash[:19], self._mark(each)]
                for each in self.history
            ]
            yield Table(["stored", "by", "version", "in force"], rows, left=4)

    def _mark(self, entry: GuidelinesEntry) -> str:
        return "yes" if entry.hash == self.version.hash else ""

    def plain(self, how: Layout) -> dict[str, Any]:
        history = [
            {name: getattr(each, name) for name in ("number", "hash", "author", "created")} for each in self.history
        ]
        since = {} if self.since is None else {"changes": [each._asdict() for each in self.since]}
        return {**version_values(self.version), "history": history, **since}


def version_values(version: Guidelines) -> dict[str, Any]:
    """A version as JSON values."""
    grades = [each._asdict() for each in version.grades]
    return {"hash": version.hash, "text": version.text, "grades": grades, "relevant_from": version.relevant_from}


def guidelines_report(place: str, name: str = "", since: str = "") -> GuidelinesReport:
    """The guidelines of a workspace or a log: those in force, or the stored version whose hash begins with `name`."""
    if os.path.isdir(place):
        _refuse_no_workspace(place)
        with closing(open_bench(place)) as bench:
            with bench.log.reading() as transaction:
                history = guidelines_history(transaction)
            version = version_named(history, name) if name else bench.guidelines()
    else:
        with closing(open_log(place, new=False)) as log:
            history = []
            if log.has_records():
                with log.reading() as transaction:
                    history = guidelines_history(transaction)
        version = version_named(history, name) if name else history[0].version if history else Guidelines()
    changes = changed_lines(version_named(history, since), version) if since else None
    return GuidelinesReport(place, version, history, changes)


def version_named(history: Sequence[GuidelinesEntry], name: str) -> Guidelines:
    """The stored version whose hash is, or begins with, a name; DataError unless there is exactly one."""
    start = name if name.startswith("sha256:") else f"sha256:{name}"
    found = {each.hash: each.version for each in history if each.hash.startswith(start)}
    if len(found) != 1:
        problem = "several versions begin with" if found else "there is no version"
        raise DataError(f"{problem} {shortened(name)!r}; cranfield judge guidelines lists them")
    return next(iter(found.values()))


def _refuse_no_workspace(place: str) -> None:
    names = (os.path.join(folder, name) for folder in ("", "collection") for name in (DOCUMENTS, META))
    if not is_workspace(place) and not any(os.path.isfile(file_in(place, name)) for name in names):
        raise DataError(f"{place}: is not a workspace: it has neither a collection nor a log")


def write_guidelines(
    place: str,
    *,
    author: str = "",
    text: str | None = None,
    grades: Mapping[float, tuple[str, str]] | None = None,
    removed: Sequence[float] = (),
    relevant_from: float | None = None,
) -> GuidelinesReport:
    """Edit the guidelines of a workspace: a new text, changed or new grades, removed grades, the lowest relevant grade."""
    if not os.path.isdir(place):
        raise DataError(f"{place}: expected the folder of a workspace, whose files are edited; found a log")
    _refuse_no_workspace(place)
    with closing(open_bench(place)) as bench:
        current = bench.guidelines()
        meanings = {each.grade: each for each in current.grades}
        unknown = next((grade for grade in removed if grade not in meanings), None)
        if unknown is not None:
            raise DataError(f"there is no grade {unknown:g} to remove")
        for grade, (label, meaning) in (grades or {}).items():
            before = meanings.get(grade, GradeMeaning(grade))
            meanings[grade] = GradeMeaning(grade, label or before.label, meaning or before.meaning)
        left = tuple(meanings[grade] for grade in sorted(meanings) if grade not in removed)
        lowest = current.relevant_from if relevant_from is None else relevant_from
        version = Guidelines(current.text if text is None else text, left, lowest)
        edit_guidelines(bench, version, current.hash, author)
    return guidelines_report(place)
