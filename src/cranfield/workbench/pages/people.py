"""Accounts: signing in and out, invitations, one's own settings and tokens, and the list of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from cranfield.base.errors import DataError
from cranfield.http.refusal import NotFound, Refusal
from cranfield.reports.qr_code import qr_svg
from cranfield.store.roles import ROLES
from cranfield.workbench.access_control import LEAD, NOBODY, PROXY, VIEWER, refuse_role
from cranfield.workbench.keyboard_shortcuts import USUAL, changed_keys, keys_of
from cranfield.workbench.links import link
from cranfield.workbench.pages.guidelines import READ
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, action, page
from cranfield.workbench.sign_in import SHORTEST

if TYPE_CHECKING:
    from cranfield.judging.pseudonyms import Pseudonymisation

DAYS = 7  # until an invitation expires
LONGEST_PATH = 2000  # characters of a path to return to
MOST = 2**31 - 1  # largest id


def own_path(typed: str, prefix: str = "") -> str:
    """A path of this workspace without the prefix of the workspace; any other path or host becomes `/`."""
    path = typed.removeprefix(prefix) if typed.startswith(f"{prefix}/") else ""
    safe = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if safe and path.isprintable() and len(path) <= LONGEST_PATH else "/"


@page("/enter", NOBODY, "accounts.use_key", reveals=NOTHING)
def enter(request: PageRequest) -> ActionResult:
    """Sign in the person who started the server, with the key of the printed link."""
    accounts, manner = request.site.accounts, request.site.manner
    if manner.accounts or not accounts.use_key(request.text("key")):
        advice = "cranfield serve FOLDER --link prints a new one."
        raise Refusal("this link was used, or is older than ten minutes", 403, safe="", advice=advice)
    return ActionResult("/", cookie=request.site.begin_local_session())


@page("/login", NOBODY, reveals=NOTHING)
def login(request: PageRequest) -> Page | ActionResult:
    """Ask for name and password."""
    if request.account is None and not request.site.manner.accounts:
        refuse_role(request.path, VIEWER, None, request.site.manner)
    if request.site.manner.auth_header:
        refuse_role(request.path, VIEWER, request.account, request.site.manner)
        return ActionResult("/")
    return _login(request, own_path(request.text("next", "/"), request.site.manner.path))


def _login(request: PageRequest, back: str, name: str = "", problem: str = "", status: int = 200) -> Page:
    values = {"next": request.site.manner.path + back, "problem": problem}
    return Page("Sign in", "login.html", values, {"name": name}, status=status)


@action("/login", NOBODY, "accounts.begin", reveals=NOTHING)
async def sign_in(request: PageRequest) -> Page | ActionResult:
    """Sign in with name and password."""
    site = request.site
    name, password = request.form_field("name").strip(), request.form_field("password")
    back = own_path(request.form_field("next", "/"), site.manner.path)
    if not site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, safe="")
    if site.manner.auth_header:
        raise Refusal("nobody signs in with a password here", 403, safe="", advice=PROXY)
    stored = await _checked_hash(request, name, password, "too many attempts to sign in")
    if stored is None:
        problem = "Name and password do not match."
        if request.twin == "json":
            raise Refusal(problem, 401, safe="")
        return _login(request, back, name, problem, 401)
    if site.passwords.outdated(stored) and len(password) >= SHORTEST:
        fresh = await site.passwords.hash(password)
        await run_sync(site.accounts.rehash, name, stored, fresh)
        stored = fresh
    secret = await run_sync(lambda: site.accounts.begin(name, checked=stored))
    return ActionResult(back, {"name": name}, cookie=secret)


async def _checked_hash(request: PageRequest, name: str, password: str, too_many: str) -> str | None:
    """The stored hash of a password, None if the password is wrong; Refusal `too_many` after many failures."""
    site, who = request.site, (name, request.address)
    wait = site.throttle.wait(*who)
    if wait > 0:
        raise Refusal(too_many, 429, advice=f"Try again in {wait:.0f} seconds.", wait=wait)
    stored = await run_sync(site.accounts.password_hash, name)
    fits = await site.passwords.check(stored, password)
    (site.throttle.succeeded if fits else site.throttle.failed)(*who)
    return stored if fits else None


@action("/logout", VIEWER, "accounts.end", reveals=NOTHING)
def sign_out(request: PageRequest) -> ActionResult:
    """End this session."""
    request.site.accounts.end(request.secret)
    manner = request.site.manner
    return ActionResult("/me" if manner.auth_header else "/login" if manner.accounts else "/", cookie="")


@page("/join", NOBODY, "accounts.invitation", reveals=NOTHING)
def join(request: PageRequest) -> Page:
    """Show an invitation; opening the page does not use it up."""
    return _join(request, request.text("invitation"))


def _join(request: PageRequest, secret: str, name: str = "", problem: str = "") -> Page:
    invitation = request.site.accounts.invitation(secret)
    if invitation is None:
        problem = "This invitation was used, has expired or was withdrawn. Ask a lead of the workspace for another."
        return Page("Join", "join.html", {"problem": problem, "role": ""}, {"forwarded": ""}, status=410)
    values = {"role": invitation.role, "problem": problem}
    fixed = invitation.name
    context = {"invitation": secret, "name": fixed or name, "fixed": bool(fixed), "shortest": SHORTEST}
    context["forwarded"] = request.forwarded
    return Page("Join", "join.html", values, context, status=400 if problem else 200)


@action("/join", NOBODY, "accounts.accept", reveals=NOTHING)
async def accept(request: PageRequest) -> Page | ActionResult:
    """Use an invitation: create the account and sign in."""
    accounts, secret, name = request.site.accounts, request.form_field("invitation"), request.form_field("name").strip()
    if not request.site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, safe="")
    if await run_sync(accounts.invitation, secret) is None:
        return await run_sync(_join, request, secret)
    if request.site.manner.auth_header:
        if not request.forwarded:
            raise Refusal("the proxy did not say who you are", 403, advice=PROXY)
        account = await run_sync(accounts.accept_as, secret, request.forwarded)
        return ActionResult("/", {"name": account.name, "role": account.role})
    try:
        hashed = await request.site.passwords.hash(request.form_field("password"))
        account = await run_sync(accounts.accept, secret, name, hashed)
    except DataError as error:
        if request.twin == "json":
            raise
        return await run_sync(_join, request, secret, name, str(error))
    session = await run_sync(accounts.begin, account.name)
    return ActionResult("/", {"name": account.name, "role": account.role}, cookie=session)


@page("/me", VIEWER, "accounts.settings", reveals=NOTHING)
def me(request: PageRequest, token: str = "") -> Page:
    """One's own theme, keys, password and tokens."""
    accounts = request.site.accounts
    settings = accounts.settings(request.name)
    tokens = [each._asdict() | {"until": each.until or "ended"} for each in accounts.tokens(request.name)]
    values = {
        "name": request.name,
        "role": request.role,
        "theme": settings.get("theme", ""),
        "single_keys": settings.get("single_keys", True),
        "keys": [each._asdict() for each in keys_of(settings)],
        "tokens": tokens,
    }
    has_password = request.site.manner.accounts and accounts.password_hash(request.name) is not None
    by_proxy = bool(request.site.manner.auth_header)
    context = {"has_password": has_password and not by_proxy, "by_proxy": by_proxy, "token": token}
    return Page(request.name, "me.html", values, context, scripts=("sign-out.js",))


@action("/me", VIEWER, "accounts.set_settings", reveals=NOTHING)
def set_me(request: PageRequest) -> ActionResult:
    """Save theme and keys."""
    theme = request.form_field("theme")
    if theme not in ("", "light", "dark"):
        raise Refusal(f"expected a theme of light, dark or none, found {theme[:20]!r}")
    keys = {each.name: request.form_field(f"key-{each.name}").strip() for each in USUAL}
    kept = {name: value for name, value in request.site.accounts.settings(request.name).items() if name == READ}
    settings = {
        **kept,
        "theme": theme,
        "single_keys": request.form_field("single_keys") in ("on", "true", "True"),
        "keys": changed_keys(keys),
    }
    request.site.accounts.set_settings(request.name, settings)
    return ActionResult("/me", settings)


@action("/me/password", VIEWER, "accounts.set_password", reveals=NOTHING)
async def set_password(request: PageRequest) -> Page | ActionResult:
    """Change the password; every other session ends."""
    site = request.site
    if await _checked_hash(request, request.name, request.form_field("old"), "too many attempts") is None:
        raise Refusal("the current password is wrong", 403)
    hashed = await site.passwords.hash(request.form_field("new"))
    await run_sync(site.accounts.set_password, request.name, hashed)
    return ActionResult("/me", cookie=await run_sync(site.accounts.begin, request.name))


@action("/me/token", VIEWER, "accounts.new_token", reveals=NOTHING)
def new_token(request: PageRequest) -> Page | ActionResult:
    """Create a token for programs; it is shown only once."""
    token = request.site.accounts.new_token(request.name, request.form_field("label"))
    return ActionResult("/me", {"token": token}) if request.twin == "json" else me(request, token)


@action("/me/token/end", VIEWER, "accounts.revoke_token", reveals=NOTHING)
def end_token(request: PageRequest) -> ActionResult:
    """Revoke one of one's own tokens."""
    request.site.accounts.revoke_token(request.name, request.whole_form_field("id", 0, 0, MOST))
    return ActionResult("/me")


@page("/people", LEAD, "accounts.all", menu=("manage", 90, "People"))
def people(request: PageRequest, invitation_link: str = "", renamed: Pseudonymisation | None = None) -> Page:
    """Every account, and the open invitations."""
    accounts = request.site.accounts
    names = ("name", "role", "active", "created")
    rows = [{name: getattr(each, name) for name in names} for each in accounts.all()]
    open_ones = [each._asdict() for each in accounts.invitations()]
    values = {"people": rows, "invitations": open_ones, "accounts": request.site.manner.accounts}
    code = qr_svg(invitation_link, "QR code of the link") if invitation_link else ""
    by_proxy = bool(request.site.manner.auth_header)
    context = {"by_proxy": by_proxy, "roles": ROLES, "link_to_give": invitation_link, "code": code, "days": DAYS}
    return Page("People", "people.html", values, {**context, "renamed": renamed}, scripts=("copy.js",))


@action("/people", LEAD, "accounts.set_role")
def change(request: PageRequest) -> Page | ActionResult:
    """Change the role of an account, switch it off or on, or create a link for a new password."""
    accounts, name, what = request.site.accounts, request.form_field("name"), request.form_field("do")
    if accounts.find(name) is None:
        raise NotFound(f"there is no account {name[:60]!r}")
    if what == "role":
        accounts.set_role(name, request.form_field("role"))
    elif what in ("on", "off"):
        accounts.set_active(name, what == "on")
    elif what == "reset":
        return _link_result(request, accounts.reset(name, request.name, DAYS))
    else:
        raise Refusal("expected do to be role, on, off or reset")
    return ActionResult("/people", {"name": name})


@action("/people/pseudonymise", LEAD, "judging.pseudonyms.pseudonymise")
def pseudonymise_person(request: PageRequest) -> Page | ActionResult:
    """Replace the name of a person by a pseudonym everywhere in the log, and switch the account off."""
    from cranfield.judging.pseudonyms import pseudonymise

    site, name = request.site, request.form_field("name").strip()
    if not name:
        raise Refusal("say whose name to replace")
    done = pseudonymise(site.bench.log, name, request.form_field("pseudonym").strip(), request.name)
    site.jobs.results.clear()  # they may hold the name
    if request.twin == "json":
        return ActionResult("/people", done.to_dict())
    return people(request, renamed=done) if name != request.name else ActionResult("/", cookie="")


@action("/people/invite", LEAD, "accounts.invite")
def invite(request: PageRequest) -> Page | ActionResult:
    """Create an invitation link that works once."""
    if not request.site.manner.accounts:
        raise Refusal("this workspace has no accounts", 403, advice="Start it with --accounts.")
    role, name = request.form_field("role"), request.form_field("name")
    return _link_result(request, request.site.accounts.invite(role, request.name, name, DAYS))


def _link_result(request: PageRequest, secret: str) -> Page | ActionResult:
    invitation_link = f"{request.site.manner.url}{link('/join', invitation=secret)}"
    is_json = request.twin == "json"
    return ActionResult("/people", {"link": invitation_link}) if is_json else people(request, invitation_link)


@action("/people/revoke", LEAD, "accounts.revoke_invitation")
def revoke(request: PageRequest) -> ActionResult:
    """Withdraw an invitation."""
    request.site.accounts.revoke_invitation(request.whole_form_field("id", 0, 0, MOST))
    return ActionResult("/people")
