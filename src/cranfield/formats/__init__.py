"""Files and frames → Run and Qrels, and back. One self-describing module per format; detected by content."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from cranfield.collection import Qrels
from cranfield.formats import trec
from cranfield.run import Run, Text

__all__ = ["as_qrels", "as_runs", "read_qrels", "read_run", "run_name"]

ENDINGS = (".run", ".txt", ".res", ".trec")
COMPRESSED = (".gz", ".zst", ".xz", ".bz2")


def run_name(path: str | os.PathLike[str]) -> str:
    """A run's name: its file name less folder, compression and `.run`/`.txt`/`.res`/`.trec`."""
    name = Path(path).name
    for endings in (COMPRESSED, ENDINGS):
        for ending in endings:
            if name.endswith(ending) and name != ending:
                name = name.removesuffix(ending)
                break
    return name


def _open(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            return b""


def read_run(path: str | os.PathLike[str], lenient: bool = False) -> Run:
    """Read a run from a file."""
    return Run(Text(_open(path), trec.RUN, os.fspath(path), lenient), run_name(path))


def read_qrels(path: str | os.PathLike[str], lenient: bool = False) -> Qrels:
    """Read judgments from a file."""
    return Qrels(Text(_open(path), trec.QRELS, os.fspath(path), lenient), run_name(path))


def as_qrels(given: Any) -> Qrels:
    """Qrels from whatever holds judgments."""
    if isinstance(given, Qrels):
        return given
    if isinstance(given, (str, os.PathLike)):
        return read_qrels(given)
    return Qrels(given)


def as_runs(given: Any) -> list[Run]:
    """Runs from whatever holds one or several."""
    if isinstance(given, Run):
        return [given]
    if isinstance(given, (str, os.PathLike)):
        return [read_run(given)]
    if isinstance(given, (list, tuple)):
        return [run for item in given for run in as_runs(item)]
    return [Run(given)]
