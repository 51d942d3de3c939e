"""Processes that work on a log, for tests that kill them or let them race; forked from one that has imported everything."""

from __future__ import annotations

import multiprocessing
import os
import random
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import NoLease
from cranfield.judging.rounds import lease
from cranfield.judging.versions import freeze

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

NEEDED = ["workers", "sqlalchemy.dialects.sqlite", "cranfield.judging.database_log", "cranfield.judging.versions"]


def begin(work: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """A process that does some work."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(NEEDED)
    process = context.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def together(work: Callable[..., Any], *arguments: tuple[Any, ...]) -> None:
    """Several processes at once, each with its own arguments; all must end well."""
    processes = [begin(work, *each) for each in arguments]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def write_on(location: str, name: str, confirmed: str) -> None:
    """Add events without end, one or three at a time, and write down each that was confirmed."""
    log = open_log(location)
    file = os.open(confirmed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = 0
    while True:
        ids = [f"{name}-{number}-{part}" for part in range(1 if number % 2 else 3)]
        log.add([Event(topic="q", document=each, grade=1, assessor=name, id=each, note="n" * 300) for each in ids])
        os.write(file, "".join(f"{each}\n" for each in ids).encode())
        number += 1


def add_many(location: str, name: str, events: int, size: int) -> None:
    log = open_log(location)
    for number in range(events):
        log.add([Event(topic="q", document=f"{name}-{number}", grade=1, assessor=name, note="é" * (size // 2))])
    log.close()


def add_same(location: str, ids: list[str]) -> None:
    log = open_log(location)
    for each in ids:
        log.add([Event(topic="q", document=each, grade=1, assessor="ann", id=each, time="2026-01-01")])
    log.close()


def open_at_once(location: str) -> None:
    log = open_log(location)
    log.events()
    log.close()


def freeze_same(location: str, names: list[str], won: str) -> None:
    log = open_log(location)
    for name in names:
        try:
            freeze(log, name, "latest")
        except DataError as error:
            if "there is a version" not in str(error):
                raise
        else:
            with open(won, "a", encoding="utf-8") as file:
                file.write(f"{name}\n")
    log.close()


def judge(location: str, person: str, seed: int, walks_away: bool) -> None:
    """Ask for documents and grade them until there is nothing; some walk away in the middle."""
    draw = random.Random(seed)
    log = open_log(location)
    while not isinstance(got := lease(log, person, "r"), NoLease):
        if walks_away and draw.random() < 0.2:
            break
        place = got[0]
        log.add([Event(topic=place.topic, document=place.document, grade=1, assessor=person, round="r",
                       repeat=place.repeat)])  # fmt: skip
    log.close()
