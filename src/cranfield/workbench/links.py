"""Addresses of the workbench's pages: ids travel in the query, never in the path."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode


def link(path: str, **parameters: Any) -> str:
    """A path with ids in its query; empty values are left out.

    >>> link("/topic", topic="a/b", one="bm25", other="")
    '/topic?topic=a%2Fb&one=bm25'
    """
    query = {name: value for name, value in parameters.items() if value not in ("", None)}
    return f"{path}?{urlencode(query, doseq=True, errors='surrogateescape')}" if query else path
