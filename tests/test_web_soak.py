"""Many assessors at once, and a server that is killed under them: no confirmed judgment is missing, none is doubled."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from benchmarks.load import judged
from benchmarks.web import prepared

from cranfield.inputs.workspace import open_bench
from cranfield.judging.event import COLLECTION
from workbench import Process

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.load import Tally


def proven(folder: Path, db: str | None, tally: Tally) -> int:
    """How many judgments people gave, each confirmed one once; those of the collection are events too."""
    bench = open_bench(folder, db)
    judgments = [event for event in bench.log.events() if event.kind == "judgment" and event.source != COLLECTION]
    bench.close()
    ids = [event.id for event in judgments]
    places = [(event.topic, event.document) for event in judgments]
    assert len(ids) == len(set(ids))
    assert len(places) == len(set(places)), "a document was judged twice in a round without overlap"
    assert tally.confirmed <= set(ids)
    assert set(ids) <= tally.sent
    return len(ids)


def killed_under_load(
    folder: Path, db: str | None, people: int, kills: int, every: float, documents: int = 24_000
) -> Tally:
    """Assessors without pauses, and a server that is killed again and again and started at the same port."""
    secrets = prepared(folder, db, people, documents)
    options = ["--accounts", *(["--db", db] if db else [])]
    server = Process(folder, *options)
    cookies = [f"cranfield-{server.port}={secret}" for secret in secrets]
    over = threading.Event()

    def reaper() -> None:
        for _ in range(kills):
            time.sleep(every)
            server.kill()
            server.start()
        time.sleep(every)
        over.set()

    thread = threading.Thread(target=reaper)
    thread.start()
    try:
        tally = judged(("127.0.0.1", server.port), cookies, 600, 0.0, over=over.is_set)
    finally:
        thread.join()
        server.stop()
    assert tally.broken
    assert len(tally.confirmed) >= kills
    return tally


def test_a_killed_server_loses_and_doubles_nothing(tmp_path: Path) -> None:
    tally = killed_under_load(tmp_path / "w", None, 8, 1, 0.6, 8_000)
    assert proven(tmp_path / "w", None, tally) >= len(tally.confirmed)
    assert not tally.refused, tally.refused[:3]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_hundred_kills_under_load_lose_and_double_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    db = request.getfixturevalue("postgres") if kind == "postgresql" else None
    tally = killed_under_load(tmp_path / "w", db, 20, 50, 0.7)
    assert proven(tmp_path / "w", db, tally) >= len(tally.confirmed)
    assert not tally.refused, tally.refused[:3]


def test_assessors_together_get_different_documents_and_each_label_is_there(tmp_path: Path) -> None:
    secrets = prepared(tmp_path / "w", None, 12, 600)
    server = Process(tmp_path / "w", "--accounts")
    try:
        cookies = [f"cranfield-{server.port}={secret}" for secret in secrets]
        tally = judged(("127.0.0.1", server.port), cookies, 1, 0.0)
    finally:
        server.stop()
    assert proven(tmp_path / "w", None, tally) == len(tally.confirmed)
    assert not tally.refused, tally.refused[:3]
