"""A workspace of a million labels and a hundred runs, written in bulk: what a team has after years of judging.

Every document has two labels, by two people of forty, and one pair in six disagrees. Labels go into the tables through the
database driver, and the current labels are filled by one statement: adding them one by one would take minutes.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.inputs.workspace import open_bench
from cranfield.judging.event import DEFAULTS, RELEVANCE, instant
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.store import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from cranfield.store import Database

LABELS, RUNS, TOPICS, DEPTH = 1_000_000, 100, 250, 1000
DOCUMENTS, RETURNED = 20_000, 5_000  # in all, and those that runs return
PEOPLE = 40
MIXED = 0x9E3779B97F4A7C15  # the second half of ids


def make_large(folder: Path, db: str | None, scale: float = 1.0) -> None:
    """A workspace with so many labels and runs."""
    import numpy as np

    rng = np.random.default_rng(0)
    topics, labels = max(5, round(TOPICS * min(1, scale * 4))), round(LABELS * scale)
    (folder / "runs").mkdir(parents=True)
    _write_collection(folder, topics, max(RETURNED, round(DOCUMENTS * scale)))
    _write_runs(folder / "runs", topics, max(3, round(RUNS * scale)), max(10, round(DEPTH * min(1, scale * 4))), rng)
    bench = open_bench(folder, db)
    pool = [RoundItem(f"{t}", f"d{d}", 2) for t in range(topics) for d in range(20)]
    open_round(bench.log, Round(name="1", overlap=2), pool)
    _write_labels(bench.database, topics, labels // topics, rng)
    bench.close()


def _write_collection(folder: Path, topics: int, documents: int) -> None:
    grades = "".join(f'[grades.{grade}]\nlabel = "grade {grade}"\n' for grade in range(4))
    (folder / "collection.toml").write_text(f'name = "large"\n[grades]\nrelevant_from = 1\n{grades}')
    with (folder / "topics.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": f"{t}", "title": f"words of topic {t}"}) + "\n" for t in range(topics))
    with (folder / "documents.jsonl").open("w") as file:
        text = "words " * 50
        file.writelines(
            json.dumps({"id": f"d{i}", "title": f"document {i}", "text": text}) + "\n" for i in range(documents)
        )


def _write_runs(folder: Path, topics: int, runs: int, depth: int, rng: np.random.Generator) -> None:
    """Runs of different quality: the lower its number, the earlier a run returns the documents of low numbers."""
    ends = [[f" {rank} {2000 - rank} run{run}\n" for rank in range(1, depth + 1)] for run in range(runs)]
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"run{run}.run").open("w")) for run in range(runs)]
        for topic in range(topics):
            starts = [f"{topic} Q0 d{document}" for document in range(RETURNED)]
            for run, file in enumerate(files):
                order = rng.random(RETURNED)
                order[: RETURNED // 5] -= 0.5 * (runs - run) / runs
                lines = [""] * (2 * depth)
                lines[::2] = [starts[document] for document in order.argsort()[:depth].tolist()]
                lines[1::2] = ends[run]
                file.write("".join(lines))


def _write_labels(database: Database, topics: int, each: int, rng: np.random.Generator) -> None:
    """The events of all topics, and the current labels."""
    names = [*DEFAULTS, "received"]
    fill = database.engine.begin()
    with fill as connection:
        rows = _rows(names, topics, each, rng)
        cursor: Any = connection.connection.cursor()
        quoted = ", ".join(f'"{name}"' for name in names)
        if database.dialect == "sqlite":
            cursor.executemany(f"INSERT INTO events ({quoted}) VALUES ({', '.join('?' * len(names))})", rows)
        else:
            with cursor.copy(f"COPY events ({quoted}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        cursor.execute(_current_labels())
    if database.dialect != "sqlite":
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")


def _current_labels() -> str:
    """The statement that makes every label current: each is the only one of its person for its document."""
    columns = tables.standing.c.keys()
    values = [{"side": "'label'", "event": "id"}.get(name, name) for name in columns]
    return f"INSERT INTO standing ({', '.join(columns)}) SELECT {', '.join(values)} FROM events"


def _rows(names: list[str], topics: int, each: int, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """A row of the table `events` per label, one every ten seconds."""
    values: dict[str, Any] = {"kind": "judgment", "aspect": RELEVANCE, "source": "human", "seconds": 7.0, "rank": None}
    values |= {"sure": True, "repeat": False}
    same = {name: values.get(name, "") for name in names}
    number, start = 0, datetime(2020, 1, 1, tzinfo=UTC)
    for topic in range(topics):
        firsts = rng.integers(0, 4, each).tolist()
        others = (rng.random(each) < 1 / 6).tolist()
        for i in range(each):
            grade = firsts[i // 2] if i % 2 == 0 or not others[i] else (firsts[i // 2] + 1) % 4
            when = instant(start + timedelta(seconds=10 * number))
            own: dict[str, Any] = {
                "id": f"{number:016x}-{number * MIXED % 2**64:016x}",
                "topic": f"{topic}",
                "time": when,
            }
            own |= {"document": f"d{i // 2}", "grade": float(grade), "received": when}
            yield tuple((same | own | {"assessor": f"a{i % 2 + 2 * (topic % (PEOPLE // 2))}"}).values())
            number += 1


def main() -> None:
    """Make the workspace in a folder that does not exist yet."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large_workspace", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--db", help="a database instead of work.db in the folder")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink what is made, to try things out (1.0)")
    given = parser.parse_args()
    began = time.perf_counter()
    make_large(given.folder, given.db, given.scale)
    print(f"{given.folder}: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
