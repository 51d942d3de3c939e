"""What a SPEC may name, for help and docs: each kind with its options, and the HTTP engines with their templates."""

from __future__ import annotations

import importlib
from typing import Any

from cranfield.systems.http.template import packaged
from cranfield.systems.system import HTTP_ENGINES, SYSTEMS, System


def catalogue() -> list[dict[str, Any]]:
    """A row for each system: how it is typed, what it is, its options with their defaults and meanings."""
    rows = []
    for home in SYSTEMS.values():
        module, _, name = home.partition(":")
        cls: type[System] = getattr(importlib.import_module(module), name)
        options = {
            key: {"default": option.default, "meaning": option.meaning, "words": list(option.words)}
            for key, option in cls.options.items()
        }
        rows.append({"system": cls.name, "about": cls.about, "options": options})
    for name in HTTP_ENGINES:
        template = packaged(name)
        options = {
            key: {"default": value, "meaning": template.meanings.get(key, ""), "words": []}
            for key, value in template.options.items()
        }
        rows.append({"system": f"{name}:URL", "about": template.about, "options": options})
    return rows
