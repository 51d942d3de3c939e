"""What stands beside a comparison in a report: the curves of the same runs, the hashes of the files, a title."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from cranfield.compare.comparison import versions
from cranfield.compare.leaderboard import leaderboard
from cranfield.curves import curves
from cranfield.errors import CranfieldError, DataError
from cranfield.formats import qrels_in, run_name
from cranfield.report.report import Input, Report
from cranfield.report.words import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cranfield.compare.comparison import Comparison
    from cranfield.curves import Curves


READING = ("lenient", "qrels_format", "run_format")


def made(
    found: Comparison,
    options: Mapping[str, Any] | None = None,
    topics: list[str] | None = None,
    others: Iterable[str | None] = (),
    *,
    title: str | None = None,
    command: str = "",
    digits: int = 4,
) -> Report:
    """A report of a comparison. Of files, `options` say how they were read; `others` are further files that were."""
    asked: dict[str, Any] = {"alpha": found.alpha, "level": found.level, "seed": found.seed}
    compared = {pair.measure for pair in found.pairs}
    boards = {name: leaderboard(found.scores, sort=name, **asked) for name in found.scores.measures if name in compared}
    return Report(
        found,
        title=title or titled(found),
        leaderboards=boards,
        curves=curves_beside(found, topics, options or {}) if "qrels" in found.inputs else None,
        inputs=hashed(found, others),
        command=command,
        versions=versions(),
        digits=digits,
    )


def curves_beside(found: Comparison, topics: list[str] | None, options: Mapping[str, Any]) -> Curves | None:
    """Precision at eleven recall levels of the runs compared; a remark instead where the judgments give none."""
    reading = {name: options[name] for name in READING if options.get(name) is not None}
    changes = options.get("changes") or {}
    rel = options.get("rel")
    try:
        return curves(
            found.inputs["qrels"],
            found.inputs["runs"],
            "pr11",
            rel=1 if rel is None else rel,
            topics=topics,
            conventions=options.get("preset"),
            **reading,
            **changes,
        )
    except CranfieldError as error:
        found.remarks.append(f"no precision-recall curves: {error}")
        return None


def hashed(found: Comparison, others: Iterable[str | None] = ()) -> tuple[Input, ...]:
    """The files that were read, as they lie on the disk, with their SHA-256."""
    runs = found.inputs.get("runs", {})
    files = [("table", found.inputs.get("table")), ("qrels", found.inputs.get("qrels"))]
    files += [(f"run {name}", path) for name, path in runs.items()]
    files += [("option", path) for path in others]
    return tuple(_hashed(role, path) for role, path in files if path is not None)


def _hashed(role: str, path: str) -> Input:
    real = qrels_in(path)  # a collection is named by its folder
    try:
        with open(real, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Input(role, path, os.path.getsize(real), digest)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def titled(found: Comparison) -> str:
    """A title that says which runs, if they are few, and on what."""
    what = found.inputs.get("qrels") or found.inputs.get("table")
    runs = found.scores.runs
    start = joined(runs) if len(runs) <= 3 else f"{len(runs)} runs"
    return f"{start} on {run_name(what)}" if what else start
