"""How much of each room the tests run through: `make coverage` prints it, `make test-all` fails where it is too little.

Statements and branches are counted apart, as a mean of both hides what was never decided the other way. `python
tests/covered.py ROOM …` lists the lines and branches of rooms that no test reached, from the last `make coverage`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

LEAST = 95  # per cent
WATCHED = "base comparison evaluation experiments formats judging pooling stats store".split()
"""Rooms where a branch that no test takes is a number that nobody checked."""


class Count(NamedTuple):
    """How many there are, and how many of them were reached."""

    reached: int = 0
    all: int = 0

    def __add__(self, other: object) -> Count:
        """Both together."""
        assert isinstance(other, Count)
        return Count(self.reached + other.reached, self.all + other.all)

    @property
    def percent(self) -> float:
        """The share that was reached; of nothing, all."""
        return 100 * self.reached / self.all if self.all else 100.0


def measured() -> dict[str, Any]:
    """What coverage.py knows of each file, by its path inside the package."""
    import coverage

    data = coverage.Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        data.json_report(outfile=str(path))
        files: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["files"]
    return {name.replace("\\", "/").rpartition("src/cranfield/")[2]: facts for name, facts in files.items()}


def room_of(path: str) -> str:
    """The folder or module of the package that a file belongs to."""
    return path.partition("/")[0].removesuffix(".py")


def by_room(files: dict[str, Any]) -> dict[str, tuple[Count, Count]]:
    """Statements and branches of each room."""
    rooms: dict[str, tuple[Count, Count]] = defaultdict(lambda: (Count(), Count()))
    for path, facts in files.items():
        summary = facts["summary"]
        statements, branches = rooms[room_of(path)]
        rooms[room_of(path)] = (
            statements + Count(summary["covered_lines"], summary["num_statements"]),
            branches + Count(summary["covered_branches"], summary["num_branches"]),
        )
    return dict(rooms)


def missing(files: dict[str, Any], rooms: list[str]) -> list[str]:
    """One line for each file of some rooms that was not reached everywhere."""
    lines = []
    for path, facts in sorted(files.items()):
        if room_of(path) in rooms and (facts["missing_lines"] or facts["missing_branches"]):
            never = " ".join(map(str, facts["missing_lines"]))
            ways = " ".join(f"{start}→{'end' if stop < 0 else stop}" for start, stop in facts["missing_branches"])
            lines.append(f"{path}: lines {never or 'all'}; branches {ways or 'all'}")
    return lines


def main(asked: list[str]) -> int:
    """Print the table, or what was missed in some rooms; 1 where a watched room has too little."""
    files = measured()
    rooms = by_room(files)
    if asked:
        print("\n".join(missing(files, asked)))
        return 0
    poor = []
    print("room          statements    branches")
    for room, (statements, branches) in sorted(rooms.items()):
        watched = room in WATCHED
        if watched and min(statements.percent, branches.percent) < LEAST:
            poor.append(room)
        mark = " *" if watched else ""
        print(f"{room + mark:12}  {statements.percent:8.1f} %  {branches.percent:8.1f} %")
    print(f"* at least {LEAST} % of both")
    if poor:
        print(f"\nToo little in {', '.join(poor)}; missed there:", *missing(files, poor), sep="\n")
    return bool(poor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
