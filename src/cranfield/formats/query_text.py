"""Query texts: the rule by which two of them are the same query."""

from __future__ import annotations

import unicodedata


def normalised(query: str) -> str:
    """A query text in one Unicode form, without differences of case and of blanks.

    >>> normalised(" Blue\\u00a0 RAY ")
    'blue ray'
    """
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())
