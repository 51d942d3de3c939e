"""The systems under test, a file for each kind; a class in a file of this folder is all that a new one takes.

Here stand the text of a document and the words of a text, for the engines that do not cut texts into words themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.passages import STOP

if TYPE_CHECKING:
    from cranfield.collection import Document

__all__ = ["STOP", "text_of", "words"]

WORD = re.compile(r"\w+")


def text_of(document: Document) -> str:
    """Title and text, as one."""
    return f"{document.title}\n{document.text}" if document.title else document.text


def words(text: str) -> list[str]:
    """The words of a text, in small letters.

    >>> words("Flow-field of a Wing")
    ['flow', 'field', 'of', 'a', 'wing']
    """
    return WORD.findall(text.lower())
