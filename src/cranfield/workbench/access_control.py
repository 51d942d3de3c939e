"""Access control: roles, the account behind a request, and the cookie of its session.

Each role may do what the roles before it may do. `http.refusal` checks hosts and origins.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal, bearer
from cranfield.store.roles import ROLES

if TYPE_CHECKING:
    from starlette.requests import Request

    from cranfield.http.serving import ServerSettings
    from cranfield.store.accounts import Account
    from cranfield.workbench.site import Site


NOBODY = "nobody"
RANKS = (NOBODY, *ROLES)
VIEWER, ASSESSOR, LEAD = ROLES


def may(role: str, least: str) -> bool:
    """Whether a role may do what the role `least` may do.

    >>> may("lead", "viewer"), may("viewer", "assessor")
    (True, False)
    """
    return RANKS.index(role) >= RANKS.index(least)


LINK = "Open the link that cranfield serve printed; cranfield serve FOLDER --link prints a new one."


def identify(request: Request, site: Site) -> tuple[Account | None, str, bool]:
    """The account behind a request, the secret of its session, and whether it came with a token instead of a cookie."""
    token = bearer(request)
    if token is not None:
        account = site.accounts.by_token(token)
        if account is None:
            raise Refusal("this token is not known, or no longer", 401, advice="Make a new one on the page /me.")
        return account, "", True
    secret = request.cookies.get(site.manner.cookie, "")
    account = site.accounts.who(secret, local=not site.manner.accounts) if secret else None
    return account, secret, False


def refuse_role(path: str, least: str, account: Account | None, manner: ServerSettings) -> None:
    """Raise Refusal if the account's role is below the least role of a path."""
    role = NOBODY if account is None else account.role
    if may(role, least):
        return
    if account is None and not manner.accounts:
        problem = "only the person who started the server may open this workspace"
        raise Refusal(problem, 403, safe="", advice=LINK, more={"sign_in": ""})
    if account is None:
        raise Refusal("sign in first", 401, safe="", more={"sign_in": "/login"})
    raise Refusal(
        f"{path} is for the role {least}; {account.name} is a {account.role}",
        403,
        advice="Ask a lead of this workspace to change your role on the page /people.",
    )


def account_mark(workspace: str, account: Account) -> str:
    """The name under which a browser caches pages of an account of a workspace."""
    return hashlib.sha256(f"{workspace}\0{account.name}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def blind_work(account: Account | None, site: Site) -> str:
    """The round or comparison in which an account judges blind, such as "round 'pilot'"; empty if there is none.

    Assessors judge blind from the opening of a round or comparison of theirs until it is closed. Leads plan rounds and
    decide where people differ, and viewers do not judge: both see everything.
    """
    return site.unclosed_work(account.name) if account is not None and account.role == ASSESSOR else ""


def refuse_blind(path: str, account: Account | None, site: Site, safe: str = "") -> None:
    """Raise Refusal for a path that reveals others' labels, gold or runs, if the account judges blind."""
    if work := blind_work(account, site):
        raise Refusal(
            f"{path} is hidden while you judge in {work}",
            403,
            safe=safe,
            advice="It depends on labels of others or on runs. It opens when a lead has closed your rounds and comparisons.",
        )


def cookie(manner: ServerSettings, secret: str) -> str:
    """The Set-Cookie header that begins a session, or ends it if the secret is empty."""
    age = "Max-Age=0" if not secret else "Max-Age=2592000"
    secure = "; Secure" if manner.tls else ""
    return f"{manner.cookie}={secret}; Path=/; HttpOnly; SameSite=Lax; {age}{secure}"
