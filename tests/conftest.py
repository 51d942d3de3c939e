"""What the tests share: where the reference data lies and how it is skipped, and how Hypothesis draws its examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `make test` draws the same examples every time, `make test-all` others each time. A slow machine fails no test.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("other", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("same")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Public collections with known answers. They lie beside the checkout, never in it."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data; a test that asks for it is skipped where the folder is missing."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data")
    return SHARED
