"""Coming in and going out, oneself and the others: accounts, sessions, invitations, tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.errors import DataError
from cranfield.http.refusal import NotFound, Refusal
from cranfield.store.roles import ROLES
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.keys import USUAL, checked, keys_of
from cranfield.web.passwords import SHORTEST
from cranfield.web.render import link
from cranfield.web.roles import LEAD, NOBODY, VIEWER
from cranfield.web.serving import local_name

if TYPE_CHECKING:
    from cranfield.web.visit import Visit

DAYS = 7  # for which an invitation is open
LONGEST_WAY = 2000  # characters of a path to go back to
MOST = 2**31 - 1  # ids


def own_path(typed: str) -> str:
    """A path of this site, whatever was typed: never another host."""
    safe = typed.startswith("/") and not typed.startswith("//") and "\\" not in typed
    return typed if safe and typed.isprintable() and len(typed) <= LONGEST_WAY else "/"


@page("/enter", NOBODY, "accounts.use_key")
def enter(visit: Visit) -> Done:
    """Let the person in who started the server: the key of the printed link becomes a session."""
    accounts, manner = visit.site.accounts, visit.site.manner
    if manner.accounts or not accounts.use_key(visit.text("key")):
        raise Refusal(
            "this link was used, or is older than ten minutes",
            403,
            safe="",
            advice="cranfield serve FOLDER --link prints a new one.",
        )
    return Done("/", cookie=accounts.begin(local_name(), local=True))


@page("/login", NOBODY)
def login(visit: Visit) -> Page:
    """Ask for name and password."""
    if not visit.site.manner.accounts and visit.account is None:
        from cranfield.web.door import LINK

        raise Refusal("this workspace is open to whoever started it", 403, safe="", advice=LINK)
    return _login(visit, own_path(visit.text("next", "/")))


def _login(visit: Visit, back: str, name: str = "", problem: str = "", status: int = 200) -> Page:
    values = {"next": back, "problem": problem}
    return Page("Sign in", "login.html", values, {"name": name}, status=status)


@action("/login", NOBODY, "accounts.begin")
async def sign_in(visit: Visit) -> Page | Done:
    """Begin a session by name and password."""
    from anyio.to_thread import run_sync

    site = visit.site
    name, password, back = visit.said("name").strip(), visit.said("password"), own_path(visit.said("next", "/"))
    if not site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, safe="")
    wait = site.throttle.wait(name, visit.address)
    if wait > 0:
        raise Refusal("too many attempts to sign in", 429, advice=f"Try again in {wait:.0f} seconds.", wait=wait)
    known = await run_sync(site.accounts.password_hash, name)
    if not await site.passwords.check(known, password):
        site.throttle.failed(name, visit.address)
        problem = "Name and password do not fit."
        if visit.twin == "json":
            raise Refusal(problem, 401, safe="")
        return _login(visit, back, name, problem, 401)
    site.throttle.succeeded(name, visit.address)
    if known is not None and site.passwords.outdated(known) and len(password) >= SHORTEST:
        fresh = await site.passwords.hash(password)
        await run_sync(site.accounts.rehash, name, known, fresh)
        known = fresh
    secret = await run_sync(lambda: site.accounts.begin(name, checked=known))
    return Done(back, {"name": name}, cookie=secret)


@action("/logout", VIEWER, "accounts.end")
def sign_out(visit: Visit) -> Done:
    """End this session."""
    visit.site.accounts.end(visit.secret)
    return Done("/login" if visit.site.manner.accounts else "/", cookie="")


@page("/join", NOBODY, "accounts.invitation")
def join(visit: Visit) -> Page:
    """Show an invitation; opening it does not use it."""
    return _join(visit, visit.text("invitation"))


def _join(visit: Visit, secret: str, name: str = "", problem: str = "") -> Page:
    found = visit.site.accounts.invitation(secret)
    if found is None:
        problem = "This invitation was used, has expired or was taken back. Ask a lead of the workspace for another."
        return Page("Join", "join.html", {"problem": problem, "role": ""}, status=410)
    values = {"role": found.role, "problem": problem}
    shown = {"invitation": secret, "name": found.name or name, "fixed": bool(found.name), "shortest": SHORTEST}
    return Page("Join", "join.html", values, shown, status=400 if problem else 200)


@action("/join", NOBODY, "accounts.accept")
async def accept(visit: Visit) -> Page | Done:
    """Use an invitation: make the account and sign in."""
    from anyio.to_thread import run_sync

    accounts, secret, name = visit.site.accounts, visit.said("invitation"), visit.said("name").strip()
    if not visit.site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, safe="")
    if await run_sync(accounts.invitation, secret) is None:
        return await run_sync(_join, visit, secret)
    try:
        hashed = await visit.site.passwords.hash(visit.said("password"))
        account = await run_sync(accounts.accept, secret, name, hashed)
    except DataError as error:
        if visit.twin == "json":
            raise
        return await run_sync(_join, visit, secret, name, str(error))
    return Done("/", {"name": account.name, "role": account.role}, cookie=await run_sync(accounts.begin, account.name))


@page("/me", VIEWER, "accounts.settings")
def me(visit: Visit) -> Page:
    """Theme, keys, password and tokens of whoever asks."""
    return _me(visit)


def _me(visit: Visit, token: str = "", told: str = "") -> Page:
    accounts = visit.site.accounts
    settings = accounts.settings(visit.name)
    tokens = [each._asdict() | {"until": each.until or "ended"} for each in accounts.tokens(visit.name)]
    values = {
        "name": visit.name,
        "role": visit.role,
        "theme": settings.get("theme", ""),
        "single_keys": settings.get("single_keys", True),
        "keys": [each._asdict() for each in keys_of(settings)],
        "tokens": tokens,
    }
    has_password = visit.site.manner.accounts and accounts.password_hash(visit.name) is not None
    return Page(visit.name, "me.html", values, {"has_password": has_password, "token": token, "told": told})


@action("/me", VIEWER, "accounts.set_settings")
def set_me(visit: Visit) -> Done:
    """Keep theme and keys."""
    theme = visit.said("theme")
    if theme not in ("", "light", "dark"):
        raise Refusal(f"expected a theme of light, dark or none, found {theme[:20]!r}")
    wanted = {each.name: visit.said(f"key-{each.name}").strip() for each in USUAL}
    settings = {
        "theme": theme,
        "single_keys": visit.said("single_keys") in ("on", "true", "True"),
        "keys": checked(wanted),
    }
    visit.site.accounts.set_settings(visit.name, settings)
    return Done("/me", settings)


@action("/me/password", VIEWER, "accounts.set_password")
async def set_password(visit: Visit) -> Page | Done:
    """Change the password; every other session ends."""
    from anyio.to_thread import run_sync

    site = visit.site
    wait = site.throttle.wait(visit.name, visit.address)
    if wait > 0:
        raise Refusal("too many attempts", 429, advice=f"Try again in {wait:.0f} seconds.", wait=wait)
    known = await run_sync(site.accounts.password_hash, visit.name)
    if known is None or not await site.passwords.check(known, visit.said("old")):
        site.throttle.failed(visit.name, visit.address)
        raise Refusal("the password now is another", 403)
    site.throttle.succeeded(visit.name, visit.address)
    hashed = await site.passwords.hash(visit.said("new"))
    await run_sync(site.accounts.set_password, visit.name, hashed)
    return Done("/me", cookie=await run_sync(site.accounts.begin, visit.name))


@action("/me/token", VIEWER, "accounts.new_token")
def new_token(visit: Visit) -> Page | Done:
    """Make a token for programs; it is shown this once."""
    token = visit.site.accounts.new_token(visit.name, visit.said("label"))
    return Done("/me", {"token": token}) if visit.twin == "json" else _me(visit, token)


@action("/me/token/end", VIEWER, "accounts.revoke_token")
def end_token(visit: Visit) -> Done:
    """End one of one's tokens."""
    visit.site.accounts.revoke_token(visit.name, visit.whole_said("id", 0, 0, MOST))
    return Done("/me")


@page("/people", LEAD, "accounts.all", menu=(100, "People"))
def people(visit: Visit) -> Page:
    """Every account, and the invitations that are open."""
    return _people(visit)


def _people(visit: Visit, to_give: str = "") -> Page:
    accounts = visit.site.accounts
    rows = [
        {"name": each.name, "role": each.role, "active": each.active, "created": each.created}
        for each in accounts.all()
    ]
    open_ones = [each._asdict() for each in accounts.invitations()]
    values = {"people": rows, "invitations": open_ones, "accounts": visit.site.manner.accounts}
    return Page("People", "people.html", values, {"roles": ROLES, "link_to_give": to_give, "days": DAYS})


@action("/people", LEAD, "accounts.set_role")
def change(visit: Visit) -> Page | Done:
    """Change somebody's role, switch an account off or on, or make a link for a new password."""
    accounts, name, what = visit.site.accounts, visit.said("name"), visit.said("do")
    if accounts.find(name) is None:
        raise NotFound(f"there is no account {name[:60]!r}")
    if what == "role":
        accounts.set_role(name, visit.said("role"))
    elif what in ("on", "off"):
        accounts.set_active(name, what == "on")
    elif what == "reset":
        return _given(visit, accounts.reset(name, visit.name, DAYS))
    else:
        raise Refusal("expected do to be role, on, off or reset")
    return Done("/people", {"name": name})


@action("/people/invite", LEAD, "accounts.invite")
def invite(visit: Visit) -> Page | Done:
    """Make an invitation link, used once."""
    if not visit.site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, advice="Start it with --accounts.")
    return _given(visit, visit.site.accounts.invite(visit.said("role"), visit.name, visit.said("name"), DAYS))


def _given(visit: Visit, secret: str) -> Page | Done:
    to_give = f"{visit.site.manner.url}{link('/join', invitation=secret)}"
    return Done("/people", {"link": to_give}) if visit.twin == "json" else _people(visit, to_give)


@action("/people/revoke", LEAD, "accounts.revoke_invitation")
def revoke(visit: Visit) -> Done:
    """Take an invitation back."""
    visit.site.accounts.revoke_invitation(visit.whole_said("id", 0, 0, MOST))
    return Done("/people")
