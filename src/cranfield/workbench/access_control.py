"""Access control: roles, the account behind a request, and the cookie of its session.

Each role may do what the roles before it may do. `http.refusal` checks hosts and origins.
"""

from __future__ import annotations

import hashlib
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.http.refusal import Refusal, bearer
from cranfield.http.serving import PEER
from cranfield.store.accounts import Account, is_name
from cranfield.store.roles import ROLES

if TYPE_CHECKING:
    from starlette.requests import Request

    from cranfield.http.serving import ServerSettings
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


PROXY = "A proxy signs people in here; its administrator can say how."
LINK = "Open the link that cranfield serve printed; cranfield serve FOLDER --link prints a new one."


def identify(request: Request, site: Site, enrol: bool = True) -> tuple[Account | None, str, bool]:
    """The account behind a request, the secret of its session, and whether it came with a token instead of a cookie.

    If a proxy signs people in, its header counts instead of cookies; `enrol` makes accounts for new names.
    """
    token = bearer(request)
    if token is not None:
        account = site.accounts.by_token(token)
        if account is None:
            raise Refusal("this token is not known, or no longer", 401, advice="Make a new one on the page /me.")
        return account, "", True
    if site.manner.auth_header:
        name = forwarded_name(request, site)
        return (_account_of(name, site, enrol) if name else None), "", False
    secret = request.cookies.get(site.manner.cookie, "")
    account = site.accounts.who(secret, local=not site.manner.accounts) if secret else None
    return account, secret, False


def forwarded_name(request: Request, site: Site) -> str:
    """The name in the proxy's header, empty without one; headers of others do not count. Raise Refusal for an invalid name."""
    manner = site.manner
    wanted = manner.auth_header.lower().encode()
    values = [value for name, value in request.scope["headers"] if name == wanted]
    if not values:
        return ""
    peer = str(request.scope.get(PEER, ""))
    if not manner.from_proxy(peer):
        site.log_once(f"ignored {manner.auth_header} from {peer or 'an unknown address'}, which is not the proxy")
        return ""
    if len(values) > 1:
        site.log_once(f"refused a request with {len(values)} headers {manner.auth_header}: the proxy must replace it")
        raise Refusal(f"the proxy sent {manner.auth_header} several times", 400, advice=PROXY)
    try:
        name = unicodedata.normalize("NFC", values[0].decode().strip())
    except UnicodeDecodeError:
        raise Refusal(
            f"the proxy sent {manner.auth_header} in another encoding than UTF-8", 400, advice=PROXY
        ) from None
    if name and not is_name(name):
        raise Refusal(f"the proxy sent a name that no account may have: {shortened(name)!r}", 403, advice=PROXY)
    return name


def _account_of(name: str, site: Site, enrol: bool) -> Account | None:
    """The account of somebody whom the proxy has signed in; it is created if new names are allowed, else None."""
    account = site.accounts.find(name)
    role = site.manner.auth_role
    if account is None and role:
        account = Account(name, role)
        if enrol:
            with suppress(DataError):  # another request made it at the same moment
                site.accounts.create(name, role, None)
            account = site.accounts.find(name)
    if account is not None and not account.active:
        raise Refusal(
            f"the account of {account.name} is switched off", 403, safe="", advice="Ask a lead of this workspace."
        )
    return account


def refuse_role(path: str, least: str, account: Account | None, manner: ServerSettings) -> None:
    """Raise Refusal if the account's role is below the least role of a path."""
    role = NOBODY if account is None else account.role
    if may(role, least):
        return
    if account is None and not manner.accounts:
        problem = "only the person who started the server may open this workspace"
        raise Refusal(problem, 403, safe="", advice=LINK, more={"sign_in": ""})
    if account is None and manner.auth_header:
        problem = "you have no account here, or the proxy did not say who you are"
        raise Refusal(problem, 403, safe="", advice=f"{PROXY} A lead can invite you.", more={"sign_in": ""})
    if account is None:
        raise Refusal("sign in first", 401, safe="", more={"sign_in": "/login"})
    raise Refusal(
        f"{path} is for the role {least}; {account.name} has the role {account.role}",
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
