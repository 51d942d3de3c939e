"""Online evaluation, where real users decide: interleave, assign, log, credit, decide."""

from __future__ import annotations

from cranfield.experiments.click_credit import Preference, credit
from cranfield.experiments.interleaving import Interleaved, interleave
from cranfield.experiments.interleaving.token import Keys

__all__ = ["Interleaved", "Keys", "Preference", "credit", "interleave"]
