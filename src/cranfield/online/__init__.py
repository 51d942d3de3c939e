"""Real users decide: rankings interleaved, what was shown sealed into a token, clicks turned into preferences."""

from __future__ import annotations

from cranfield.online.credit import Preference, credit
from cranfield.online.interleave import Interleaved, interleave
from cranfield.online.token import Keys

__all__ = ["Interleaved", "Keys", "Preference", "credit", "interleave"]
