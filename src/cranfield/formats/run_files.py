"""The runs of a workspace: the files in its folder `runs/`, each with a name."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

RUNS = "runs"  # the folder of a workspace's runs
JOURNAL = ".journal"  # the ending of what `cranfield run` writes next to a run until it is complete


class RunFile(NamedTuple):
    """A file of `runs/`; `name` is the run's name, with the ending of the file if two names would be the same."""

    name: str
    path: str
    size: int
    mtime: float


def run_named(workspace: str, name: str) -> RunFile | None:
    """A run of a workspace by its name or its file name; None if there is none of that name."""
    files = listed(os.path.join(workspace, RUNS))
    return next((file for file in files if name in (file.name, os.path.basename(file.path))), None)


def listed(folder: str) -> list[RunFile]:
    """The runs in a folder by name, without hidden files and files that `cranfield run` adds; empty without a folder."""
    from cranfield.formats.run_stats import ENDING
    from cranfield.formats.streams import run_name

    files = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith((ENDING, JOURNAL)):
            continue
        try:
            status = entry.stat()
        except OSError:  # deleted meanwhile, or a broken link
            continue
        if stat.S_ISREG(status.st_mode):
            files.append(RunFile(entry.name, entry.path, status.st_size, status.st_mtime))
    names = Counter(run_name(file.name) for file in files)
    return [file if names[run_name(file.name)] > 1 else file._replace(name=run_name(file.name)) for file in files]


def located(runs: Any, workspace: str) -> Any:
    """The same runs, with the path of the file in place of each name of a run of the workspace; a path that exists wins."""
    if isinstance(runs, Mapping):
        return {name: located(run, workspace) for name, run in runs.items()} if _are_names(runs.values()) else runs
    if isinstance(runs, (list, tuple)):
        return [located(run, workspace) for run in runs] if _are_names(runs) else runs
    if not isinstance(runs, str) or os.path.lexists(runs):
        return runs
    file = run_named(workspace, runs)
    return runs if file is None else file.path


def _are_names(runs: Any) -> bool:
    return all(isinstance(run, str) for run in runs)
