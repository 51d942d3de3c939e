"""What a page says instead of an answer: what happened, what is safe, what to do; the same words in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import CranfieldError, MissingExtraError, TooLargeError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

SAFE = "Nothing was changed."


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
    ) -> None:
        super().__init__(said)
        self.said = said
        self.status = status
        self.safe = safe
        self.advice = advice
        self.wait = wait  # seconds after which to try again
        self.more = more or {}  # what a program is told beside the words

    def values(self) -> dict[str, Any]:
        """As JSON."""
        parts = {"error": self.said, "safe": self.safe, "advice": self.advice}
        return {**{name: text for name, text in parts.items() if text}, **self.more}


class NotFound(Refusal):
    """Something that is not there."""

    def __init__(self, said: str, advice: str = "") -> None:
        super().__init__(said, 404, safe="", advice=advice)


def refusal_of(error: CranfieldError) -> Refusal:
    """What an error of the rooms below is to a browser."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, UnavailableError):
        advice = "Judgments that were confirmed are stored; those not yet sent wait in the browser. Try again."
        return Refusal(str(error), 503, advice=advice, wait=5)
    if isinstance(error, MissingExtraError):
        return Refusal(str(error), 501)
    if isinstance(error, TooLargeError):
        return Refusal(str(error), 413)
    return Refusal(str(error), 400)
