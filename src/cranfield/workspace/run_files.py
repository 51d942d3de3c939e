"""The runs of a folder: each file one, but for hidden ones and what `cranfield run` writes beside a run."""

from __future__ import annotations

import os
import stat
from collections import Counter
from typing import NamedTuple


class RunFile(NamedTuple):
    """A file of `runs/`; `name` is the run's, with its ending where two would be called the same."""

    name: str
    path: str
    size: int
    mtime: float


def listed(folder: str) -> list[RunFile]:
    """The runs in a folder by name; none where there is no such folder."""
    from cranfield.formats import run_name
    from cranfield.formats.run_stats import ENDING
    from cranfield.systems.journal import ENDING as JOURNAL

    found = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith((ENDING, JOURNAL)):
            continue
        try:
            known = entry.stat()
        except OSError:  # gone meanwhile, or a link to nowhere
            continue
        if stat.S_ISREG(known.st_mode):
            found.append(RunFile(entry.name, entry.path, known.st_size, known.st_mtime))
    names = Counter(run_name(file.name) for file in found)
    return [file if names[run_name(file.name)] > 1 else file._replace(name=run_name(file.name)) for file in found]
