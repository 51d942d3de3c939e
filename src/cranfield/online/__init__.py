"""Online evaluation, where real users decide: interleave, assign, log, credit, decide."""

from __future__ import annotations

from cranfield.online.credit import Preference, credit
from cranfield.online.interleave import Interleaved, interleave
from cranfield.online.token import Keys

__all__ = ["Interleaved", "Keys", "Preference", "credit", "interleave"]
