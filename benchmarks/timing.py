"""Processes started, timed and weighed, by turns.

Everything is measured from outside, in a fresh process: seconds from its start to its end, and the most memory it held
(`ru_maxrss`). Contenders take turns, so that a slow minute of the machine hits all of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


class FailedError(RuntimeError):
    """A contender that ended with an error."""


@dataclass(frozen=True)
class Contender:
    """A program to measure: its command, and how often."""

    name: str
    command: tuple[str, ...]
    repeats: int = 5


@dataclass(frozen=True)
class Sample:
    """One process: how long it took, the processor's share of that, the most memory it held, what it printed."""

    seconds: float
    cpu: float
    peak: int
    output: str


@dataclass(frozen=True)
class Spread:
    """Several samples of one quantity."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Median, least and most."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def plain(self) -> dict[str, Any]:
        """As plain values, for the history."""
        digits = {name: float(f"{getattr(self, name):.7g}") for name in ("median", "low", "high")}
        return {**digits, "count": self.count}


def _environment() -> dict[str, str]:
    """This process's environment, with bytecode kept: an installed package has it, and so shall a checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(command: Sequence[str]) -> Sample:
    """Run one process to its end. Its output goes to a file: no terminal, and no reader that takes time."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=_environment())
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            said = err.read().strip().splitlines()
            raise FailedError(f"{' '.join(command)[:200]}: exit {child.returncode}: {said[-1] if said else 'silent'}")
        return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KILOBYTE, out.read())


def interleave(contenders: Sequence[Contender], title: str) -> dict[str, list[Sample]]:
    """Measure all of them by turns: each once, each a second time, until every one has had its number."""
    samples: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    for turn in range(max((contender.repeats for contender in contenders), default=0)):
        for contender in contenders:
            if turn < contender.repeats:
                sample = run(contender.command)
                samples[contender.name].append(sample)
                said = f"{title}: {contender.name} {turn + 1}/{contender.repeats} {sample.seconds:.3f} s"
                print(said, file=sys.stderr, flush=True)
    return samples


def seconds(samples: Sequence[Sample]) -> Spread:
    """How long."""
    return Spread.of([sample.seconds for sample in samples])


def cpu(samples: Sequence[Sample]) -> Spread:
    """How long on all processors together."""
    return Spread.of([sample.cpu for sample in samples])


def peak(samples: Sequence[Sample]) -> Spread:
    """How much memory, in bytes."""
    return Spread.of([sample.peak for sample in samples])
