"""The systems under test, a file for each kind; a class in a file of this folder is all that a new one takes.

Here stand the text of a document and the words of a text, for the engines that do not cut texts into words themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cranfield.collection import Document

__all__ = ["STOP", "text_of", "words"]

WORD = re.compile(r"\w+")

STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its may of on or "
    "such than that the their them then there these they this to was were what when where which who why will with would "
    "you your".split()
)
"""Words too common to tell documents apart; English."""


def text_of(document: Document) -> str:
    """Title and text, as one."""
    return f"{document.title}\n{document.text}" if document.title else document.text


def words(text: str) -> list[str]:
    """The words of a text, in small letters.

    >>> words("Flow-field of a Wing")
    ['flow', 'field', 'of', 'a', 'wing']
    """
    return WORD.findall(text.lower())
