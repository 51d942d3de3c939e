"""Who may do what: each role may do what those before it may."""

from __future__ import annotations

from cranfield.store.roles import ROLES

NOBODY = "nobody"
RANKS = (NOBODY, *ROLES)
VIEWER, ASSESSOR, LEAD = ROLES


def may(role: str, least: str) -> bool:
    """Whether a role may do what another may.

    >>> may("lead", "viewer"), may("viewer", "assessor")
    (True, False)
    """
    return RANKS.index(role) >= RANKS.index(least)
