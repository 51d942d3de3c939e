"""What a page says instead of an answer: what happened, what is safe, what to do; the same words in JSON."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError, MissingExtraError, TooLargeError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

SAFE = "Nothing was changed."
STORED = "Judgments that were confirmed are stored; those not yet sent wait in the browser. Try again."
DISK = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "the server's disk is full") | {
    errno.EROFS: "the server's disk is read-only",
    errno.EIO: "the server's disk reports an error",
}


class Refusal(CranfieldError):
    """A request that is not answered; `status` says to programs why."""

    def __init__(
        self,
        said: str,
        status: int = 400,
        *,
        safe: str = SAFE,
        advice: str = "",
        wait: float = 0,
        more: Mapping[str, Any] | None = None,
        reload: bool = False,
    ) -> None:
        super().__init__(said)
        self.said = said
        self.status = status
        self.safe = safe
        self.advice = advice
        self.wait = wait  # seconds after which to try again
        self.reload = reload  # whether the page does so by itself
        self.more = more or {}  # what a program is told beside the words

    def values(self) -> dict[str, Any]:
        """As JSON."""
        parts = {"error": self.said, "safe": self.safe, "advice": self.advice}
        return {**{name: text for name, text in parts.items() if text}, **self.more}


class NotFound(Refusal):
    """Something that is not there."""

    def __init__(self, said: str, advice: str = "") -> None:
        super().__init__(said, 404, safe="", advice=advice)


def refusal_of(error: CranfieldError | OSError | UnicodeError) -> Refusal:
    """What an error of the rooms below, or of a disk as in `DISK`, is to a browser."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, UnavailableError):
        return Refusal(str(error), 503, advice=STORED, wait=5)
    if isinstance(error, OSError):
        return Refusal(DISK[error.errno or 0], 503, advice=STORED, wait=5)
    if isinstance(error, UnicodeError):
        return Refusal("a text that was sent holds half a character, which no database keeps", 400)
    if isinstance(error, MissingExtraError):
        return Refusal(str(error), 501)
    if isinstance(error, TooLargeError):
        return Refusal(str(error), 413)
    return Refusal(str(error), 400)
