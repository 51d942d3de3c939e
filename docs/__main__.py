"""`python -m docs` (make docs) writes the generated pages again: every docs/generate_*.py has a `write`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

for source in sorted(Path(__file__).parent.glob("generate_*.py")):
    import_module(f"docs.{source.stem}").write()
