"""A workspace whose event log has clicks: simulated users who look at few ranks, and click what is judged relevant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog
from cranfield.formats import read_run
from cranfield.formats.collection_folder import read_collection
from cranfield.formats.runs_and_qrels import read_qrels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

START = datetime(2025, 3, 1, tzinfo=UTC)


def write_searches(folder: Path, searches: Iterable[tuple[str, str, Sequence[str], Sequence[int]]]) -> str:
    """An event log of searches: (unit, query, documents, ranks that were clicked) each."""
    events = []
    for number, (unit, query, shown, clicks) in enumerate(searches):
        time, search = START + timedelta(minutes=number), f"s{number}"
        about = {"unit": unit, "search": search}
        events.append(
            UserEvent(
                event_id=f"i{number}",
                time=time.isoformat(),
                kind="impression",
                query=query,
                shown=tuple(shown),
                **about,
            )
        )
        for rank in clicks:
            after = (time + timedelta(seconds=rank)).isoformat()
            key = f"c{number}-{rank}"
            events.append(
                UserEvent(event_id=key, time=after, kind="click", document=shown[rank - 1], position=rank, **about)
            )
    with EventLog(folder, create=True) as log:
        log.append(events)
        log.seal()
        log.pack()
    return str(folder)


def clicked(folder: Path, searches: int = 400, seed: int = 4) -> Path:
    """The workspace in a folder (an example), with clicks on the lists of its runs; examination is 1 / rank."""
    rng, grades = np.random.default_rng(seed), read_qrels(str(folder / "qrels.txt")).to_dict()
    queries = {topic.id: topic.title for topic in read_collection(str(folder)).topics}
    runs = [read_run(str(path)) for path in sorted((folder / "runs").iterdir())]
    topics = sorted(set(grades).intersection(queries, *(run.topics for run in runs)))
    rows = []
    for number in range(searches):
        topic, run = topics[rng.integers(len(topics))], runs[rng.integers(len(runs))]
        shown = [document for document, _ in run.ranking(topic)][:10]
        chances = [
            (0.05 + 0.2 * min(3, max(0, grades[topic].get(each, 0)))) / rank for rank, each in enumerate(shown, 1)
        ]
        clicks = [rank for rank, chance in enumerate(chances, 1) if rng.random() < chance]
        rows.append((f"u{number // 3}", queries[topic].upper(), shown, clicks))
    write_searches(folder / "events", rows)
    return folder
