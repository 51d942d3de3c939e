"""Run the tests that failed once more, alone: `make test` does so, because a test that waits can fail on a busy machine.

A test that fails again fails the run. A test that passes is named, so that somebody mends it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(options: list[str]) -> int:
    """The exit code of the second run; 1 if nothing is known to have failed."""
    names = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if not names:
        return 1
    print(f"Once more, alone: {len(names)} that failed", flush=True)
    code = int(pytest.main(["-qq", "-p", "no:xdist", "--last-failed", *options]))
    if code == 0:
        print("\n".join(f"passed alone, failed beside others: {name}" for name in names))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
