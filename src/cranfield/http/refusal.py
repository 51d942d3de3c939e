"""Requests that are refused: the host and origin of a request, and error responses as a page or as JSON.

A request must name a host of the server. If it would change something, the browser must also say that one of our own pages
sent it: by `Sec-Fetch-Site: same-origin`, or by an Origin equal to our own if the browser does not send that header. An
error response says what happened, what is safe and what to do.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import CranfieldError, MissingExtraError, TooLargeError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from starlette.requests import Request

    from cranfield.http.serving import ServerSettings


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
IMAGE_POLICY = "default-src 'none'; sandbox"  # of an image that is opened by itself


def page_policy(image_hosts: Iterable[str]) -> str:
    """The Content-Security-Policy of a page that loads images from these hosts, over https only.

    >>> page_policy(["img.shop.example"]).split("; ")[3]
    "img-src 'self' https://img.shop.example"
    """
    return POLICY.replace("img-src 'self'", " ".join(["img-src 'self'", *(f"https://{host}" for host in image_hosts)]))


HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def refuse_host(request: Request, manner: ServerSettings) -> None:
    """Refuse a request for another host, because DNS rebinding lets a foreign name point to this address."""
    host = request.headers.get("host", "").lower()
    if host not in manner.hosts and not (manner.everywhere and host == _reached(request)):
        raise Refusal(
            f"this server does not answer for the host {host[:80]!r}",
            421,
            advice="Call it by the address that it printed, or start it with --allow-host NAME.",
        )


def _reached(request: Request) -> str:
    """The server's own IP address of a connection, as a browser writes it; DNS rebinding cannot fake it."""
    address, port = request.scope.get("server") or ("", 0)
    address = str(address).removeprefix("::ffff:")
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def bearer(request: Request) -> str | None:
    """The bearer token of a program, if any."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def refuse_origin(request: Request, manner: ServerSettings) -> None:
    """Refuse changes that another site requests, including other ports of this host."""
    if not _is_own(request, manner):
        raise Refusal(
            "the request came from another site, which may not change anything here",
            403,
            advice="Do it on a page of this workspace; a program sends its token in Authorization: Bearer …",
        )


def _is_own(request: Request, manner: ServerSettings) -> bool:
    """Whether the browser says that one of our own pages sent the request."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = f"{manner.scheme}://{request.headers.get('host', '').lower()}"
    return site == "same-origin" if site is not None else origin is not None and origin.lower() == own


def elsewhere(request: Request, manner: ServerSettings, named: Container[str]) -> str:
    """The allowed foreign origin of a request; empty for programs and our own pages. Other origins are refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if _is_own(request, manner) or (origin is None and site in (None, "none")):
        return ""
    if origin is not None and origin.lower() in named:
        return origin
    raise Refusal(
        f"the request came from a page of {origin or 'another site'!r:.100}, which is not an allowed origin",
        403,
        advice="Start the service with --allow-origin and the origin of the page, such as https://shop.example.",
    )


SAFE = "Nothing was changed."
STORED = "Judgments that were confirmed are stored; those not yet sent wait in the browser. Try again."
DISK = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "the server's disk is full") | {
    errno.EROFS: "the server's disk is read-only",
    errno.EIO: "the server's disk reports an error",
}


class Refusal(CranfieldError):
    """An error response to a request; `status` is the HTTP status."""

    def __init__(
        self,
        problem: str,
        status: int = 400,
        *,
        safe: str = SAFE,
        advice: str = "",
        wait: float = 0,
        more: Mapping[str, Any] | None = None,
        reload: bool = False,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.safe = safe
        self.advice = advice
        self.wait = wait  # seconds after which to try again
        self.reload = reload  # whether the page reloads by itself
        self.more = more or {}  # further JSON values for programs

    def values(self) -> dict[str, Any]:
        """The values of the JSON response."""
        parts = {"error": self.problem, "safe": self.safe, "advice": self.advice}
        return {**{name: text for name, text in parts.items() if text}, **self.more}


class NotFound(Refusal):
    """A response with status 404."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem, 404, safe="", advice=advice)


def refusal_of(error: CranfieldError | OSError | UnicodeError) -> Refusal:
    """The response to an error of the library, or to a disk error listed in `DISK`."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, UnavailableError):
        return Refusal(str(error), 503, advice=STORED, wait=5)
    if isinstance(error, OSError):
        return Refusal(DISK[error.errno or 0], 503, advice=STORED, wait=5)
    if isinstance(error, UnicodeError):
        return Refusal("the request contains half a character (a lone surrogate), which no database can store", 400)
    statuses = ((MissingExtraError, 501), (TooLargeError, 413))
    return Refusal(str(error), next((status for kind, status in statuses if isinstance(error, kind)), 400))
