"""What the tests share: where the reference data lies and how it is skipped, and how Hypothesis draws its examples."""

from __future__ import annotations

from pathlib import Path

import pytest

import hypotheses  # noqa: F401 (it sets how examples are drawn)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Public collections with known answers. They lie beside the checkout, never in it."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data; a test that asks for it is skipped where the folder is missing."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data")
    return SHARED
