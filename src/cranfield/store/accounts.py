"""Accounts of the workbench, with their sessions, invitations, one-time keys of local links, and tokens.

Every secret is generated here, shown once, and stored only as its SHA-256. A secret that can be used once is deleted by
the statement that uses it, so that only one of two simultaneous requests succeeds. The account is read with every
request: a changed role counts at once, and a disabled account has no access.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, Table, bindparam, delete, func, insert, or_, select, update

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.store.roles import ROLES
from cranfield.store.tables import Exact, accounts, invitations, link_keys, sessions, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy.engine import Connection

    from cranfield.store import Database


LIFETIME = timedelta(days=30)  # maximum age of a session
IDLE = timedelta(days=7)  # an unused session ends after this time
SEEN = timedelta(minutes=5)  # the recorded time of the last use may be this old
MARKS = "._-@+"  # characters allowed in names besides letters and digits
LONGEST = 64  # characters of a name or a label
MOST_TOKENS = 50  # of one account
MOST_SETTINGS = 8000  # characters, as JSON
NOBODY: Mapping[str, Any] = MappingProxyType({})


class Account(NamedTuple):
    """An account and its settings."""

    name: str
    role: str
    active: bool = True
    created: str = ""
    settings: Mapping[str, Any] = NOBODY

    def may(self, role: str) -> bool:
        """Whether the account has the permissions of a role."""
        return self.active and ROLES.index(self.role) >= ROLES.index(role)


class Invitation(NamedTuple):
    """A link that creates an account or resets its password; `name` is empty if the invited person chooses it."""

    id: int
    role: str
    name: str
    by: str
    created: str
    until: str
    reset: bool = False


class Token(NamedTuple):
    """A token of a program, without its secret."""

    id: int
    label: str
    created: str
    seen: str | None
    until: str | None


def key_of(name: str) -> str:
    """The key by which names are compared: case and Unicode variants of letters do not count.

    >>> key_of("Ann") == key_of("ANN")
    True
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def hash_of(secret: str) -> str:
    """The stored hash of a secret. Secrets have 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts:
    """The accounts of a workspace."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._queries: dict[tuple[str, bool | None], Select[Any]] = {}

    def all(self) -> list[Account]:
        """All accounts, by name."""
        query = select(accounts).order_by(accounts.c.key)
        with self.database.reading() as connection:
            return [_account(row) for row in connection.execute(query)]

    def find(self, name: str) -> Account | None:
        """The account of a name, whatever its case; None if it does not exist."""
        with self.database.reading() as connection:
            row = connection.execute(select(accounts).where(accounts.c.key == key_of(name))).first()
        return None if row is None else _account(row)

    def create(self, name: str, role: str, password_hash: str | None) -> Account:
        """Create an account; without a password only the link of this machine opens it."""
        name = _named(name)
        _refuse_role(role)
        return self.database.write(lambda connection: self._create(connection, name, role, password_hash))

    def _create(self, connection: Connection, name: str, role: str, password_hash: str | None) -> Account:
        self._refuse_taken(connection, name)
        created = self.database.now(connection)
        row = {"key": key_of(name), "name": name, "role": role, "active": True, "settings": "{}", "created": created}
        connection.execute(insert(accounts), row | {"password": password_hash})
        return Account(name, role, created=created)

    def _refuse_taken(self, connection: Connection, name: str) -> None:
        owner = connection.execute(select(accounts.c.name).where(accounts.c.key == key_of(name))).scalar()
        if owner is not None:
            raise DataError(f"the name {owner!r} is taken; choose another")

    def set_role(self, name: str, role: str) -> None:
        """Change the role of an account from its next request on; sessions and tokens stay."""
        _refuse_role(role)

        def work(connection: Connection) -> None:
            self._keep_a_lead(connection, name, role == "lead")
            self._change(connection, name, role=role)

        self.database.write(work)

    def set_active(self, name: str, active: bool) -> None:
        """Switch an account on or off; switching it off ends its sessions and tokens."""

        def work(connection: Connection) -> None:
            self._keep_a_lead(connection, name, active)
            self._change(connection, name, active=active)
            if not active:
                self._end_access(connection, name)
                connection.execute(delete(tokens).where(tokens.c.account == key_of(name)))

        self.database.write(work)

    def _keep_a_lead(self, connection: Connection, name: str, stays: bool) -> None:
        """Refuse a change that leaves no active lead; the rows are locked, so that two leads cannot remove each other."""
        lead = select(accounts.c.key).where(accounts.c.role == "lead", accounts.c.active).order_by(accounts.c.key)
        leads = connection.execute(lead.with_for_update()).scalars().all()
        if not stays and leads == [key_of(name)]:
            raise DataError(f"{name} is the only lead; make somebody else a lead first")

    def set_password(self, name: str, hash: str) -> None:
        """Set a password; earlier sessions and links to choose a password end."""
        self.database.write(lambda connection: self._set_password(connection, name, hash))

    def _set_password(self, connection: Connection, name: str, hash: str) -> None:
        self._change(connection, name, password=hash)
        self._end_access(connection, name)

    def rehash(self, name: str, old: str, new: str) -> None:
        """Store a new hash of the same password, unless the password has changed meanwhile."""
        same = (accounts.c.key == key_of(name)) & (accounts.c.password == old)
        self.database.write(lambda connection: connection.execute(update(accounts).where(same).values(password=new)))

    def password_hash(self, name: str) -> str | None:
        """The hash of an account's password; None without password or account, or if the account is switched off."""
        query = select(accounts.c.password).where(accounts.c.key == key_of(name), accounts.c.active)
        with self.database.reading() as connection:
            return connection.execute(query).scalar()

    def settings(self, name: str) -> Mapping[str, Any]:
        """The settings of a person, such as theme and keys; empty by default."""
        account = self.find(name)
        if account is None:
            raise _unknown(name)
        return account.settings

    def set_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Replace the settings of an account."""
        text = json.dumps(dict(settings))
        if len(text) > MOST_SETTINGS:
            raise DataError(f"expected settings of at most {MOST_SETTINGS} characters, found {len(text)}")
        self.database.write(lambda connection: self._change(connection, name, settings=text))

    def _change(self, connection: Connection, name: str, **values: Any) -> None:
        changed = update(accounts).where(accounts.c.key == key_of(name)).values(**values)
        if not connection.execute(changed).rowcount:
            raise _unknown(name)

    def begin(
        self, name: str, *, local: bool = False, lifetime: timedelta = LIFETIME, checked: str | None = None
    ) -> str:
        """Begin a session and return its secret; with `checked`, only if that is still the account's password hash."""
        secret = secrets.token_urlsafe(32)

        def work(connection: Connection) -> None:
            if checked not in (None, self._locked(connection, name).password):
                raise DataError(f"the password of {name} was changed meanwhile; sign in again")
            now = self.database.now(connection)
            over = or_(sessions.c.until <= now, sessions.c.seen <= _later(now, -IDLE))
            connection.execute(delete(sessions).where(over))
            new = {"hash": hash_of(secret), "account": key_of(name), "local": local, "created": now, "seen": now}
            connection.execute(insert(sessions), new | {"until": _later(now, lifetime)})

        self.database.write(work)
        return secret

    def who(self, secret: str, *, local: bool | None = None) -> Account | None:
        """The account of a session; None if it has ended. `local` requires or excludes sessions from this machine's link."""
        return self._holder(sessions, secret, local)

    def _holder(self, table: Table, secret: str, local: bool | None = None) -> Account | None:
        """The account of a session or token, whose use is noted; None if the secret is not valid."""
        query = self._queries.get((table.name, local))
        if query is None:  # built once, because every request needs it
            query = self._queries[table.name, local] = self._query(table, local)
        now = {} if self.database.tells_time else {"now": self.database.own_time()}
        row = self.database.first(query, {"secret": hash_of(secret)} | now)
        if row is None or (table is sessions and row.seen <= _later(row.now, -IDLE)):
            return None
        self._note(table, secret, row)
        return _account(row)

    def _query(self, table: Table, local: bool | None) -> Select[Any]:
        tells = self.database.tells_time
        now: ColumnElement[str] = self.database.moment() if tells else bindparam("now", type_=Exact())
        holders = select(accounts, table.c.seen, now.label("now")).join(table, accounts.c.key == table.c.account)
        valid = or_(table.c.until.is_(None), table.c.until > now)
        mine = holders.where(table.c.hash == bindparam("secret"), accounts.c.active, valid)
        return mine if local is None else mine.where(table.c.local == local)

    def _note(self, table: Table, secret: str, row: Row[Any]) -> None:
        """Record the last use from time to time; a full disk does not block the request."""
        if row.seen is not None and row.seen > _later(row.now, -SEEN):
            return
        used = update(table).where(table.c.hash == hash_of(secret)).values(seen=row.now)
        with suppress(DataError):
            self.database.write(lambda connection: connection.execute(used))

    def end(self, secret: str) -> None:
        """End a session."""
        ended = delete(sessions).where(sessions.c.hash == hash_of(secret))
        self.database.write(lambda connection: connection.execute(ended))

    def _end_access(self, connection: Connection, name: str) -> None:
        """End the sessions of an account and its links to choose a password."""
        connection.execute(delete(sessions).where(sessions.c.account == key_of(name)))
        self._close_resets(connection, name)

    def invite(self, role: str, by: str, name: str = "", days: float = 7) -> str:
        """Create an invitation and return its secret; without `name` the invited person chooses one."""
        _refuse_role(role)
        named = _named(name) if name else ""

        def values(connection: Connection, now: str) -> dict[str, Any]:
            if named:
                self._refuse_taken(connection, named)
            until = _later(now, _days(days))
            return {"role": role, "name": named, "inviter": by, "created": now, "until": until, "reset": False}

        return self._hand_out(invitations, values)

    def reset(self, name: str, by: str, days: float = 7) -> str:
        """Create an invitation to choose a new password, in place of earlier ones, and return its secret."""

        def values(connection: Connection, now: str) -> dict[str, Any]:
            row = self._locked(connection, name)
            self._close_resets(connection, name)
            until = _later(now, _days(days))
            return {"role": row.role, "name": row.name, "inviter": by, "created": now, "until": until, "reset": True}

        return self._hand_out(invitations, values)

    def _locked(self, connection: Connection, name: str) -> Row[Any]:
        """The row of an active account, locked until the transaction ends."""
        query = select(accounts).where(accounts.c.key == key_of(name), accounts.c.active)
        row = connection.execute(query.with_for_update()).first()
        if row is None:
            raise _unknown(name)
        return row

    def _close_resets(self, connection: Connection, name: str) -> None:
        own = select(accounts.c.name).where(accounts.c.key == key_of(name)).scalar_subquery()
        connection.execute(delete(invitations).where(invitations.c.reset, invitations.c.name == own))

    def invitation(self, secret: str) -> Invitation | None:
        """The invitation of a secret; None if it was used or revoked, or has expired."""
        return next(iter(self._open_invitations(invitations.c.hash == hash_of(secret))), None)

    def _open_invitations(self, *where: ColumnElement[bool]) -> list[Invitation]:
        columns = (invitations.c[name] for name in ("id", "role", "name", "inviter", "created", "until", "reset"))
        query = select(*columns).where(invitations.c.until > self.database.moment(), *where)
        with self.database.reading() as connection:
            return [Invitation(*row) for row in connection.execute(query.order_by(invitations.c.id))]

    def accept(self, secret: str, name: str, password_hash: str) -> Account:
        """Use an invitation and return its account. The invitation stays open if the name is refused."""
        account_name = _named(name)

        def work(connection: Connection) -> Account:
            now = self.database.now(connection)
            open_one = (invitations.c.hash == hash_of(secret)) & (invitations.c.until > now)
            row = connection.execute(delete(invitations).where(open_one).returning(invitations)).first()
            if row is None:
                raise DataError("this invitation was used, or has expired; ask for another")
            if row.name and key_of(row.name) != key_of(account_name):
                raise DataError(f"this invitation is for {row.name!r}, found {account_name!r}")
            if row.reset:
                account = _account(self._locked(connection, row.name))
                self._set_password(connection, row.name, password_hash)
                return account
            return self._create(connection, row.name or account_name, row.role, password_hash)

        return self.database.write(work)

    def accept_as(self, secret: str, name: str) -> Account:
        """Use an invitation for somebody whom a proxy has signed in: the account gets its role, and is made if necessary."""

        def work(connection: Connection) -> Account:
            now = self.database.now(connection)
            open_one = (invitations.c.hash == hash_of(secret)) & (invitations.c.until > now)
            row = connection.execute(delete(invitations).where(open_one).returning(invitations)).first()
            if row is None or row.reset:
                raise DataError("this invitation was used, has expired, or is for a password; ask for another")
            if row.name and key_of(row.name) != key_of(name):
                raise DataError(f"this invitation is for {row.name!r}, found {name!r}")
            there = connection.execute(select(accounts).where(accounts.c.key == key_of(name))).first()
            if there is None:
                return self._create(connection, _named(name), row.role, None)
            self._keep_a_lead(connection, name, row.role == "lead")
            self._change(connection, name, role=row.role)
            return _account(there)._replace(role=row.role)

        return self.database.write(work)

    def invitations(self) -> list[Invitation]:
        """The open invitations."""
        return self._open_invitations()

    def revoke_invitation(self, id: int) -> None:
        """Delete an open invitation, so that its link no longer works."""
        gone = delete(invitations).where(invitations.c.id == id)
        self.database.write(lambda connection: connection.execute(gone))

    def new_key(self, minutes: float = 10) -> str:
        """Create a one-time key for a link on this machine."""
        return self._hand_out(link_keys, lambda _, now: {"until": _later(now, timedelta(minutes=minutes))})

    def use_key(self, secret: str) -> bool:
        """Use a one-time key; False if it is not valid."""

        def work(connection: Connection) -> bool:
            fits = (link_keys.c.hash == hash_of(secret)) & (link_keys.c.until > self.database.now(connection))
            return bool(connection.execute(delete(link_keys).where(fits)).rowcount)

        return self.database.write(work)

    def new_token(self, name: str, label: str, days: float | None = None) -> str:
        """Create a token and return its secret, which is shown once. The token has the permissions of the account."""
        label = label.strip()
        if not 0 < len(label) <= LONGEST or not label.isprintable():
            raise DataError(f"expected a token's label of 1 to {LONGEST} characters, found {shortened(label)!r}")

        def values(connection: Connection, now: str) -> dict[str, Any]:
            self._locked(connection, name)
            own = tokens.c.account == key_of(name)
            held = connection.execute(select(func.count()).select_from(tokens).where(own)).scalar_one()
            if held >= MOST_TOKENS:
                raise DataError(f"{name} has {held} tokens; revoke one first")
            until = None if days is None else _later(now, _days(days))
            return {"account": key_of(name), "label": label, "created": now, "until": until}

        return self._hand_out(tokens, values, "cranfield_")

    def by_token(self, secret: str) -> Account | None:
        """The account of a token; None if it is not valid."""
        return self._holder(tokens, secret)

    def tokens(self, name: str) -> list[Token]:
        """The valid tokens of an account."""
        valid = or_(tokens.c.until.is_(None), tokens.c.until > self.database.moment())
        columns = (tokens.c[field] for field in Token._fields)
        query = select(*columns).where(tokens.c.account == key_of(name), valid).order_by(tokens.c.id)
        with self.database.reading() as connection:
            return [Token(*row) for row in connection.execute(query)]

    def revoke_token(self, name: str, id: int) -> None:
        """Delete a token, so that programs can no longer use it."""
        own = (tokens.c.account == key_of(name)) & (tokens.c.id == id)
        self.database.write(lambda connection: connection.execute(delete(tokens).where(own)))

    def _hand_out(self, table: Table, values: Callable[[Connection, str], dict[str, Any]], prefix: str = "") -> str:
        """Store the hash of a new secret with some values, delete expired rows, and return the secret."""
        secret = prefix + secrets.token_urlsafe(32)

        def work(connection: Connection) -> None:
            now = self.database.now(connection)
            connection.execute(delete(table).where(table.c.until <= now))
            connection.execute(insert(table), {"hash": hash_of(secret), **values(connection, now)})

        self.database.write(work)
        return secret


def rename_account(connection: Connection, name: str, pseudonym: str) -> int:
    """Give an account a pseudonym, switch it off and end its access; return how many accounts had the name."""
    key, new = key_of(name), key_of(pseudonym)
    own = select(accounts).where(accounts.c.key == key)
    row = connection.execute(own).first()
    if connection.execute(select(accounts.c.key).where(accounts.c.key == new)).first() is not None:
        raise DataError(f"there is an account {shortened(pseudonym)!r} already; choose another pseudonym")
    if row is None:
        return 0
    leads = (
        connection.execute(select(accounts.c.key).where(accounts.c.role == "lead", accounts.c.active)).scalars().all()
    )
    if leads == [key]:
        raise DataError(f"{row.name} is the only lead; make somebody else a lead first")
    for table in (sessions, tokens):
        connection.execute(delete(table).where(table.c.account == key))
    nobody = {"key": new, "name": pseudonym, "active": False, "password": None, "settings": "{}"}
    return connection.execute(update(accounts).where(accounts.c.key == key).values(nobody)).rowcount


def _account(row: Row[Any]) -> Account:
    return Account(row.name, row.role, row.active, row.created, MappingProxyType(json.loads(row.settings)))


def is_name(name: str) -> bool:
    """Whether a text is a valid account name."""
    letters = all(char in MARKS or unicodedata.category(char)[0] in "LMN" for char in name)
    return 0 < len(name) <= LONGEST and letters and name[0].isalnum()


def _named(name: str) -> str:
    """The normalised name; DataError if it is not valid."""
    name = unicodedata.normalize("NFC", name.strip())
    if not is_name(name):
        problem = f"expected a name of 1 to {LONGEST} letters, digits and {' '.join(MARKS)}, a letter or digit first"
        raise DataError(f"{problem}; found {shortened(name)!r}")
    return name


def _refuse_role(role: str) -> None:
    if role not in ROLES:
        raise DataError(f"expected a role of {', '.join(ROLES)}; found {shortened(role)!r}")


def _unknown(name: str) -> DataError:
    return DataError(f"there is no account {shortened(name)!r}")


def _days(days: float) -> timedelta:
    if not 0 < days <= 3660:
        raise DataError(f"expected days between 0 and 3660, found {days:g}")
    return timedelta(days=days)


def _later(time: str, by: timedelta) -> str:
    """The time `by` later, in the format of event times."""
    then = (datetime.fromisoformat(time) + by).astimezone(UTC)
    return then.isoformat(timespec="microseconds").replace("+00:00", "Z")
