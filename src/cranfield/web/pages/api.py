"""The list of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.web.entry import Page, entries, page
from cranfield.web.roles import VIEWER

if TYPE_CHECKING:
    from cranfield.web.visit import Visit


@page("/api", VIEWER, "web.entries")
def api(visit: Visit) -> Page:
    """Every route: who may call it, its twins, and what it does."""
    routes = [
        {
            "path": each.path,
            "method": each.method,
            "role": each.role,
            "twins": each.paths()[1:],
            "verb": each.verb,
            "said": each.said,
        }
        for each in entries()
    ]
    return Page("Routes", "api.html", {"routes": routes})
