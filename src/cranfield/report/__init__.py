"""Reports: what was computed elsewhere, for people to look at. Nothing is computed here."""

from __future__ import annotations

from cranfield.report.making import Reported, report

__all__ = ["Reported", "report"]
