"""The normal form of a query: spellings that differ only in case, spaces or Unicode form are one query.

The rule is fixed, so that the same query has the same form in every log: Unicode NFKC (full-width letters, ligatures and
composed accents become the usual characters), case folding, and each run of white space as one blank, none at the ends.
Accents, punctuation and the order of words stay, as they may change what a user means.
"""

from __future__ import annotations

import unicodedata

RULE = "Unicode NFKC, case ignored, white space squeezed"


def normalised(query: str) -> str:
    """The normal form of a query.

    >>> normalised("  USB\\u00a0Cable\\t"), normalised("Straße"), normalised("ｉＰｏｄ")
    ('usb cable', 'strasse', 'ipod')
    >>> normalised("café") == normalised("CAFE\\u0301"), normalised("cafe") == normalised("café")
    (True, False)
    """
    if query.isascii():  # NFKC leaves ASCII as it is
        return " ".join(query.casefold().split())
    text = unicodedata.normalize("NFKC", query)
    # Folding can undo the normal form, and the normal form can yield capitals; Unicode (3.13) folds twice.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.split())
