"""The systems under test, one file per engine. Every class in this folder is registered.

The functions here are for engines without a tokeniser of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.base.passages import STOP

if TYPE_CHECKING:
    from cranfield.base.collection import Document

__all__ = ["STOP", "text_of", "words"]

WORD = re.compile(r"\w+")


def text_of(document: Document) -> str:
    """Title and text of a document, joined."""
    return f"{document.title}\n{document.text}" if document.title else document.text


def words(text: str) -> list[str]:
    """The words of a text in lower case.

    >>> words("Flow-field of a Wing")
    ['flow', 'field', 'of', 'a', 'wing']
    """
    return WORD.findall(text.lower())
