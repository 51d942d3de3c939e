"""The second run of tests that failed: what passes alone is named, what fails again fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = Path(__file__).with_name("again.py")

TESTS = """
from pathlib import Path

def test_waits():
    seen = Path("seen")
    known = seen.exists()
    seen.touch()
    assert known

def test_adds():
    assert 1 + 1 == {total}
"""


@pytest.mark.parametrize(("total", "code"), [(2, 0), (3, 1)])
def test_a_test_that_passes_alone_is_named_and_one_that_fails_again_fails_the_run(
    tmp_path: Path, total: int, code: int
) -> None:
    (tmp_path / "test_two.py").write_text(TESTS.format(total=total), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    first = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"], cwd=tmp_path, capture_output=True)
    assert first.returncode == 1
    second = subprocess.run([sys.executable, AGAIN], cwd=tmp_path, capture_output=True, text=True)
    assert second.returncode == code, second.stdout
    assert ("passed alone, failed beside others: test_two.py::test_waits" in second.stdout) == (code == 0)


def test_a_run_that_failed_without_a_failed_test_stays_failed(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, AGAIN], cwd=tmp_path, capture_output=True).returncode == 1
