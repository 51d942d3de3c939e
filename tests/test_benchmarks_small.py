"""A hundredth of every benchmark: each section of each program runs to its end and prints its rows.

Programs and sections are found, not listed: a new one is run here too. Whether bars are met is not for a test.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

import benchmarks
from benchmarks import __main__ as against_peers
from benchmarks import (
    clicks,
    events,
    judging,
    large_workspace,
    looks,
    online,
    peers,
    sets,
    significance,
    suite,
    timing,
    web,
)
from hypothesis import settings

from hypotheses import QUICK
from shell import cranfield

if TYPE_CHECKING:
    from types import ModuleType

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

SCALE = 0.01
HASTY = settings.get_current_profile_name() == QUICK
SETS = "S,L" if HASTY else "S,M,L"  # M is S with more topics and other ids: test_benchmarks.py makes and scores both
COMMAND = ("env", "OPENBLAS_NUM_THREADS=1", sys.executable, "-m", "cranfield")
OPTIONS: dict[str, list[str]] = {
    "benchmarks.__main__": ["--sets", SETS, "--threads", "1", "--starts", "1", "--peer-repeats", "1"],
    "benchmarks.judging": ["--no-peers"],
    "benchmarks.online": ["--seconds", "0.5"],
}
ELSEWHERE = {("benchmarks.web", "documents")}  # the rows of benchmarks.shelf
QUICKER = {  # sections that the test file of their program runs, smaller still, and looks at closer
    *(("benchmarks.shelf", section) for section in ("documents", "passages")),
    *(("benchmarks.online", section) for section in ("analysis", "interleaving", "service")),
    *(("benchmarks.judging", section) for section in ("coefficients", "consensus")),
}
PROCESSES = {("benchmarks.online", "click models")}  # a process for each click model
SERVED = {("benchmarks.web", section) for section in ("assessors", "large", "learning")}
"""Sections that put load on a served workspace for seconds; `browser` serves one in the same way."""


def programs() -> Iterator[ModuleType]:
    """Every module of the benchmarks that has sections."""
    for found in pkgutil.iter_modules(benchmarks.__path__, "benchmarks."):
        module = importlib.import_module(found.name)
        if hasattr(module, "SECTIONS"):
            yield module


CASES = [
    pytest.param(
        module,
        section,
        id=f"{module.__name__.removeprefix('benchmarks.')}-{section}",
        marks=[pytest.mark.slow] if (module.__name__, section) in QUICKER | SERVED | PROCESSES else [],
    )
    for module in programs()
    for section in module.SECTIONS
    if (module.__name__, section) not in ELSEWHERE
]


@pytest.fixture(scope="module")
def prepared() -> Callable[..., None]:
    """Finds out once which contenders run, for all sections."""
    usable: set[str] = set()
    prepare = suite.prepare

    def once(plan: suite.Plan, installed: Iterable[str], five: sets.DataSet) -> None:
        plan.usable = usable
        if not usable:
            prepare(plan, installed, five)

    return once


def without_process(contenders: Sequence[timing.Contender], title: str) -> dict[str, list[timing.Sample]]:
    """Commands of cranfield run in this process, which costs no start; other contenders as ever."""
    [first, *others] = contenders
    if others or first.command[: len(COMMAND)] != COMMAND:
        return timing.interleave(contenders, title)
    answer = cranfield(*first.command[len(COMMAND) :])
    assert answer.code == 0, answer.err
    return {first.name: [timing.Sample(1.0, 1.0, 1, answer.out)]}


@pytest.fixture
def small(prepared: Callable[..., None], made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Everything at a hundredth of its size, with the peers of the tests' own environment; the folder of the sets."""

    def make(folder: Path) -> None:
        for name in sets.SPECS:
            sets.ensure(sets.spec(name, SCALE), folder)

    @contextmanager
    def no_server() -> Iterator[None]:
        yield None  # PostgreSQL is timed by the sections of benchmarks.judging

    installed = {name: wanted for name, wanted in peers.WANTED.items() if name != "ranx"}
    monkeypatch.setattr(peers, "HOME", Path(sys.prefix))
    monkeypatch.setattr(peers, "ensure", lambda: peers.versions(installed))
    monkeypatch.setattr(judging, "PRODUCT", tmp_path / "nowhere")
    monkeypatch.setattr(web, "postgres", no_server)
    monkeypatch.setattr(large_workspace, "LABELS", 10_000)
    monkeypatch.setattr(large_workspace, "RETURNED", 200)
    monkeypatch.setattr(suite, "prepare", prepared)
    monkeypatch.setattr(significance, "interleave", without_process)
    monkeypatch.setattr(significance, "PAIRS", 1)
    if HASTY:
        monkeypatch.setattr(looks, "server", no_server)
    monkeypatch.setattr(online, "PAIRS", 2)
    monkeypatch.setattr(online, "DRAWS", 5)
    monkeypatch.setattr(online, "EVENTS", (3_000,))
    monkeypatch.setattr(clicks, "SEARCHES", (2_000,))
    monkeypatch.setattr(events, "LOADS", {"batches of 5": (20.0, 5)})
    monkeypatch.setattr(events, "SECONDS", events.SECONDS)
    monkeypatch.chdir(tmp_path)
    return made_once("benchmark-sets", make)


@pytest.mark.parametrize(("program", "section"), CASES)
def test_a_hundredth_of_every_benchmark_runs(
    program: ModuleType, section: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if section == "browser" and not any(map(shutil.which, web.BROWSERS)):
        pytest.skip("needs a browser")
    size = [] if program is online else ["--scale", str(SCALE)]
    data = ["--data", str(small)] if program is against_peers else []
    options = ["--only", section, "--repeats", "1", *size, *data, *OPTIONS.get(program.__name__, [])]
    assert program.main(options) == 0
    head, *rows = capsys.readouterr().out.partition("what ")[2].splitlines()
    assert head.split()[:3] == ["set", "cranfield", "against"]
    assert rows


def test_a_program_that_fails_stops_the_benchmark_and_is_named(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise timing.FailedError("cranfield eval: exit 3: no judged document")

    monkeypatch.setattr(against_peers.driving, "driving", fail)
    options = ["--only", "driving", "--no-peers", "--sets", "S", "--scale", str(SCALE), "--data", str(small)]
    assert against_peers.main(options) == 3
    assert "stopped: cranfield eval: exit 3: no judged document" in capsys.readouterr().err
