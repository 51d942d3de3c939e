"""Whole collections in other layouts → a folder of ours. One self-describing file per layout, in `layouts/`."""

from __future__ import annotations

from cranfield.importers.importing import Imported, import_collection

__all__ = ["Imported", "import_collection"]
