"""How Hypothesis draws its examples: the same few every time in `make test`, more and others each time in `make test-all`.

A slow machine fails no test, and there is no data base of failures: what failed is printed as a line to paste.
"""

from __future__ import annotations

from functools import cache

import hypothesis.core
from hypothesis import HealthCheck, settings

QUICK, THOROUGH = "quick", "thorough"
TIMES = 5  # as many examples in make test-all

# Hypothesis reads the source of a test anew, twice, for each of its parameters: a tenth of the time of promises.
if hasattr(hypothesis.core, "function_digest"):
    hypothesis.core.function_digest = cache(hypothesis.core.function_digest)  # type: ignore[attr-defined]

everywhere = settings(database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(QUICK, everywhere, derandomize=True, max_examples=40)
settings.register_profile(THOROUGH, everywhere, derandomize=False, max_examples=TIMES * 40, print_blob=True)
settings.load_profile(QUICK)


def examples(quick: int, thorough: int | None = None) -> settings:
    """So many examples in `make test`; in `make test-all` five times as many, or as many as are given."""
    more = TIMES * quick if thorough is None else thorough
    return settings(max_examples=quick if settings.get_current_profile_name() == QUICK else more)
