"""Who comes in: hosts, origins, sessions and tokens; and what every answer says of itself to the browser.

The one place of these rules. A request passes the host first, then who it is from, then, if it would change something,
where it was sent from: `Sec-Fetch-Site: same-origin`, or where a browser sends none an Origin equal to our own, or a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal
from cranfield.web.roles import NOBODY, may

if TYPE_CHECKING:
    from collections.abc import Container

    from starlette.requests import Request

    from cranfield.http.serving import Manner
    from cranfield.store.accounts import Account
    from cranfield.web.entry import Entry
    from cranfield.web.site import Site

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LINK = "Open the link that cranfield serve printed; cranfield serve FOLDER --link prints a new one."


def refuse_host(request: Request, manner: Manner) -> None:
    """Refuse a request for another host, as one from a name that was pointed at this address would be."""
    host = request.headers.get("host", "").lower()
    if host not in manner.hosts and not (manner.everywhere and host == _reached(request)):
        raise Refusal(
            f"this server does not answer for the host {host[:80]!r}",
            421,
            advice="Call it by the address that it printed, or start it with --allow-host NAME.",
        )


def _reached(request: Request) -> str:
    """The address of ours that a connection came to, as a browser writes it: no name that was pointed here looks so."""
    address, port = request.scope.get("server") or ("", 0)
    address = str(address).removeprefix("::ffff:")
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def who(request: Request, site: Site) -> tuple[Account | None, str, bool]:
    """The account behind a request, the secret of its session, and whether it was a token, which no browser adds."""
    token = bearer(request)
    if token is not None:
        account = site.accounts.by_token(token)
        if account is None:
            raise Refusal("this token is not known, or no longer", 401, advice="Make a new one on the page /me.")
        return account, "", True
    secret = request.cookies.get(site.manner.cookie, "")
    account = site.accounts.who(secret, local=not site.manner.accounts) if secret else None
    return account, secret, False


def bearer(request: Request) -> str | None:
    """The token that a program sends, if any."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def refuse_role(entry: Entry, account: Account | None, manner: Manner) -> None:
    """Refuse whoever may not."""
    role = NOBODY if account is None else account.role
    if may(role, entry.role):
        return
    if account is None and not manner.accounts:
        raise Refusal("this workspace is open to whoever started it", 403, safe="", advice=LINK)
    if account is None:
        raise Refusal("sign in first", 401, safe="")
    raise Refusal(
        f"{entry.path} is for the role {entry.role}; {account.name} is a {account.role}",
        403,
        advice="Ask a lead of this workspace to change your role on the page /people.",
    )


def refuse_origin(request: Request, manner: Manner) -> None:
    """Refuse to change anything for another site, other ports of this host included."""
    if not _is_own(request, manner):
        raise Refusal(
            "this came from another site, which may change nothing here",
            403,
            advice="Do it on a page of this workspace; a program sends its token in Authorization: Bearer …",
        )


def _is_own(request: Request, manner: Manner) -> bool:
    """Whether a page of ours sent it, as the browser says."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = f"{manner.scheme}://{request.headers.get('host', '').lower()}"
    return site == "same-origin" if site is not None else origin is not None and origin.lower() == own


def elsewhere(request: Request, manner: Manner, named: Container[str]) -> str:
    """The origin, one of those named, of a page of another site; empty for programs and pages of ours. Others are refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if _is_own(request, manner) or (origin is None and site in (None, "none")):
        return ""
    if origin is not None and origin.lower() in named:
        return origin
    raise Refusal(
        f"this came from a page of {origin or 'another site'!r:.100}, which is not named here",
        403,
        advice="Start the service with --allow-origin and the origin of the page, such as https://shop.example.",
    )


def cookie(manner: Manner, secret: str) -> str:
    """The header that begins a session, or ends it where there is no secret."""
    age = "Max-Age=0" if not secret else "Max-Age=2592000"
    secure = "; Secure" if manner.tls else ""
    return f"{manner.cookie}={secret}; Path=/; HttpOnly; SameSite=Lax; {age}{secure}"
