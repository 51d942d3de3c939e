"""`python -m tests.golden` (make golden) records all golden commands, and writes the console blocks of the pages, again.

`python -m tests.golden REV` compares the recordings with those of a git revision instead: data must be the same, what
people read must have the same words and numbers.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]  # this checkout's, whatever is installed

from pages import PAGES, rewrite  # noqa: E402
from recorded import GOLDEN, answered, golden_commands, recorded_at, rounded, violations  # noqa: E402


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
    problems = []
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            problems += rewrite(page, Path(folder))
    return problems


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


problems = compare(sys.argv[1]) if len(sys.argv) > 1 else record()
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(bool(problems))
