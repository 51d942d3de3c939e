"""Import of collections in other layouts. One class per layout, in `layouts/`."""

from __future__ import annotations

from cranfield.formats.importers.collection_import import Imported, import_collection

__all__ = ["Imported", "import_collection"]
