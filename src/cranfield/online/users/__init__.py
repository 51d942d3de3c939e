"""Simulated users, each model one class: from how good the documents of a list are to which of them are clicked."""

from __future__ import annotations

from cranfield.online.users.model import USERS, User

__all__ = ["USERS", "User"]
