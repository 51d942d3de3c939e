"""Comparing files: which files a pattern of a group means, which file is the baseline, and what was read."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from cranfield.compare.comparison import compare
from cranfield.compare.efficiency import beside
from cranfield.compare.systems import parsed
from cranfield.formats import expand, run_name
from cranfield.measures import measures as measures_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.compare.comparison import Comparison


def files_of(runs: Sequence[str], groups: Iterable[str] | None) -> list[str]:
    """The run files, and those of a group's pattern that are not among them: the pattern then is one of files."""
    files = expand(runs)
    for text in groups or ():
        pattern = text.partition("=")[2] or text
        [wanted] = parsed([text]).values()
        if not any(fnmatchcase(run_name(file), str(wanted)) for file in files):
            files += expand([pattern])
    return files


def baseline_file(
    files: list[str] | dict[str, str], baselines: Sequence[str] | None, measures: list[str]
) -> str | None:
    """The file of the first baseline, where a measure of risk wants to know it."""
    if not baselines or not measures or not any("baseline" in one.needs for one in measures_of(measures).values()):
        return None
    named = files if isinstance(files, dict) else {run_name(file): file for file in files}
    return named.get(baselines[0], named.get(run_name(baselines[0]), baselines[0]))


def compared(
    data: Any,
    inputs: Mapping[str, Any],
    settings: dict[str, Any],
    runs: Any = None,
    measures: Any = None,
    **options: Any,
) -> Comparison:
    """Compare, and note what was read."""
    comparison = compare(data, runs, measures, **{**settings, **options})
    files = inputs.get("runs")
    if isinstance(files, list):
        files = dict(zip(comparison.scores.runs, files, strict=False))
    read = {**inputs, "runs": files} if files is not None else dict(inputs)
    return replace(comparison, inputs=read, efficiency=beside(comparison.scores, files))
