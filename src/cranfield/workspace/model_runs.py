"""The verbs behind `judge models`: what models were asked in a log, what it cost, and what failed."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.judge.opening import open_log
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from cranfield.judge.models.told import ModelFailures, ModelRuns


def model_runs(location: str, model: str = "") -> ModelRuns:
    """Every call of `judge ask`, the newest first, and each model with what it has cost; of one model only, if named."""
    from cranfield.judge.models import told

    with closing(open_log(location, new=False)) as log:
        return told.model_runs(log, model)


def model_failures(
    location: str, model: str = "", *, reason: str = "", skip: int = 0, n: int = 50, whole: bool = False
) -> ModelFailures:
    """Questions without a label and what came back: so many, from one of them on; `whole`: however long it is."""
    from cranfield.judge.models import told

    with closing(open_log(location, new=False)) as log:
        found = told.model_failures(log, model, reason, skip, n, None if whole else told.EXCERPT)
    if reason and reason not in found.reasons:
        there = ", ".join(map(repr, found.reasons)) or "none"
        raise DataError(f"{found.log}: nothing failed for the reason {shortened(reason)!r}; there are: {there}")
    return found
