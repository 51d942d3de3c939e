"""`python -m tests.golden` (make golden) records all golden commands and screens, and the console blocks of pages, again.

`python -m tests.golden screens` records the screens alone. `python -m tests.golden REV` compares the recordings with those
of a git revision instead: data must be the same, what people read must have the same words and numbers.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]  # this checkout's, whatever is installed

from pages import PAGES, rewrite  # noqa: E402
from recorded import (  # noqa: E402
    GOLDEN,
    SCREENS,
    answered,
    golden_commands,
    golden_screens,
    recorded_at,
    rounded,
    shown,
    violations,
)


def record() -> list[str]:
    """Write everything again; what must be mended by hand is returned."""
    commands = golden_commands()
    for stale in set(GOLDEN.glob("*.txt")) - {command.record for command in commands}:
        stale.unlink()
    for command in commands:
        with tempfile.TemporaryDirectory() as folder:
            text = answered(command, Path(folder))
        if not same(command.record, text):
            command.record.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    record_screens()
    problems = []
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            problems += rewrite(page, Path(folder))
    return problems


def record_screens() -> list[str]:
    """Write the screens again."""
    screens = golden_screens()
    SCREENS.mkdir(exist_ok=True)
    for stale in set(SCREENS.glob("*.txt")) - {screen.record for screen in screens}:
        stale.unlink()
    for screen in screens:
        with tempfile.TemporaryDirectory() as folder:
            text = shown(screen, Path(folder))
        if not same(screen.record, text):
            screen.record.write_text(text, encoding="utf-8", newline="")
    return []


def same(record: Path, text: str) -> bool:
    """Whether this is recorded already, up to digits that depend on the processor."""
    return record.exists() and rounded(record.read_bytes().decode("utf-8", "surrogateescape")) == rounded(text)


def compare(revision: str) -> list[str]:
    """What changed since a revision and must not have."""
    problems = []
    for command in golden_commands():
        before = recorded_at(revision, command)
        now = command.record.read_text(encoding="utf-8", errors="surrogateescape")
        problems += [f"{command.name}: new"] if before is None else violations(command.name, before, now)
    return problems


asked = sys.argv[1:]
problems = record_screens() if asked == ["screens"] else compare(asked[0]) if asked else record()
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(bool(problems))
