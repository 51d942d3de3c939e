"""May a candidate replace the baseline? The gate of continuous integration, its verdicts and why something fell."""

from __future__ import annotations

from cranfield.gate.gating import gate
from cranfield.gate.verdict import Gate, Verdict

__all__ = ["Gate", "Verdict", "gate"]
