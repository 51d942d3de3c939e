"""Reports: what was computed elsewhere, for people to look at. Nothing is computed here."""

from __future__ import annotations

from cranfield.report.reporting import Report, report

__all__ = ["Report", "report"]
