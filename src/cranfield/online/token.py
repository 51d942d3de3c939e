"""Tokens: bytes sealed by authenticated encryption, so that a client can neither read what is inside nor make its own.

AES-SIV (RFC 5297) with eight random bytes: short, and no harm is done where two tokens get the same eight bytes, so that a
key may seal as many tokens as a service shows pages. A token is a version, the random bytes, and what the cipher makes of the
rest; the search it was made for is sealed in without standing there. Several keys may be in use: the first seals, all open.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import ConventionError, DataError, TokenError
from cranfield.extras import missing
from cranfield.formats.secrets import read_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VERSION = 1
NONCE = 8  # bytes
KEY = 32  # bytes
SEAL = 16  # bytes, of the cipher
LONGEST = 2**20  # bytes inside, and characters of a token: no page is that long
KEYS_VARIABLE, FILE_VARIABLE = "CRANFIELD_ONLINE_KEYS", "CRANFIELD_ONLINE_KEYS_FILE"
PLAIN, EXPIRING = 0, 1  # the first byte inside: whether four bytes of expiry follow


@dataclass(frozen=True, repr=False)
class Keys:
    """Secrets, the newest first: it seals, and all of them open. To rotate, put a new one in front and let old tokens expire."""

    secrets: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if not self.secrets or any(len(secret) != KEY for secret in self.secrets):
            raise ConventionError(f"expected keys of {KEY} bytes each, and one at least")

    def __repr__(self) -> str:
        return f"Keys({len(self.secrets)} keys)"  # and never the keys themselves

    @cached_property
    def ciphers(self) -> list[Any]:
        """What seals and opens."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        except ImportError as error:
            raise missing("cryptography", "tokens need", error) from error
        return [AESSIV(secret) for secret in self.secrets]

    @classmethod
    def new(cls) -> Keys:
        """One key that nobody else has."""
        return cls((secrets.token_bytes(KEY),))

    @classmethod
    def parse(cls, text: str, where: str) -> Keys:
        """Keys as text, with spaces, commas or ends of lines between them; what follows a # is a comment."""
        words = re.sub(r"#.*", "", text).replace(",", " ").split()
        try:
            found = tuple(_bytes(word) for word in words)
        except (ValueError, binascii.Error):
            found = ()
        if not found or any(len(secret) != KEY for secret in found):
            expected = f"keys of {KEY} bytes in URL-safe base64 ({len(_text(bytes(KEY)))} characters each)"
            raise DataError(f"{where}: expected {expected}; Keys.new().text() makes one")
        return cls(found)

    def text(self) -> str:
        """The keys as `parse` reads them, a line each."""
        return "\n".join(map(_text, self.secrets))

    @classmethod
    def of_file(cls, path: str | Path) -> Keys:
        """The keys in a file that only its owner can read; where there is none, one is made with a new key."""
        path = Path(path)
        if not path.exists():
            _make(path, f"{cls.new().text()}\n")
        return cls.parse(read_secret(path).decode("ascii", "replace"), str(path))

    @classmethod
    def usual(cls, environment: Mapping[str, str] | None = None) -> Keys:
        """The keys in CRANFIELD_ONLINE_KEYS, else in the file that CRANFIELD_ONLINE_KEYS_FILE names, else in the user's own."""
        known = os.environ if environment is None else environment
        if text := known.get(KEYS_VARIABLE):
            return cls.parse(text, KEYS_VARIABLE)
        home = known.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return cls.of_file(known.get(FILE_VARIABLE) or Path(home) / "cranfield" / "online.keys")


def seal(
    content: bytes,
    keys: Keys,
    search: str = "",
    expires: float | None = None,
    *,
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> str:
    """A URL-safe token of some bytes: for one `search` if it is named, until `expires` (seconds since 1970) if that is given."""
    if len(content) > LONGEST // 2:
        raise DataError(f"a token of {len(content):,} bytes is too long; show fewer documents")
    nonce = random(NONCE)
    if expires is None:
        inside = bytes([PLAIN]) + content
    elif 0 <= expires < 2**32:
        inside = bytes([EXPIRING]) + int(expires).to_bytes(4, "big") + content
    else:
        raise ConventionError(f"expires must be seconds since 1970, found {expires}")
    return _text(bytes([VERSION]) + nonce + keys.ciphers[0].encrypt(inside, _beside(VERSION, nonce, search)))


class OpenedToken(NamedTuple):
    """The bytes in a token, and until when it was good (seconds since 1970); None: without end."""

    content: bytes
    expires: int | None


def unseal(token: str, keys: Keys, search: str = "", at: float | None = None) -> bytes:
    """The bytes in a token; `at` is the time by which it may have expired, now unless given."""
    content, expires = open_token(token, keys, search)
    if expires is not None and (time.time() if at is None else at) > expires:
        said = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
        raise TokenError(f"the token has expired: it was good until {said}")
    return content


def open_token(token: str, keys: Keys, search: str = "") -> OpenedToken:
    """What is in a token, whether or not it has expired."""
    raw = _raw(token)
    version, nonce, sealed = raw[0], raw[1 : 1 + NONCE], raw[1 + NONCE :]
    if version != VERSION:
        raise TokenError(f"a token of version {version}; this cranfield opens version {VERSION}")
    inside = _opened(sealed, keys, _beside(version, nonce, search))
    if inside[0] == PLAIN:
        return OpenedToken(inside[1:], None)
    return OpenedToken(inside[5:], int.from_bytes(inside[1:5], "big"))


def _raw(token: str) -> bytes:
    try:
        raw = _bytes(token) if len(token) <= LONGEST else b""
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raw = b""
    if len(raw) <= 1 + NONCE + SEAL:
        raise TokenError("expected a token as it was sealed, found something else; was it cut or encoded twice?")
    return raw


def _opened(sealed: bytes, keys: Keys, beside: list[bytes]) -> bytes:
    from cryptography.exceptions import InvalidTag

    for cipher in keys.ciphers:
        try:
            inside: bytes = cipher.decrypt(sealed, beside)
        except InvalidTag:
            continue
        return inside
    raise TokenError(
        "the token is not one of ours: changed on the way, sealed with a key that is not here, or for another search"
    )


def _beside(version: int, nonce: bytes, search: str) -> list[bytes]:
    """What is sealed in without standing inside."""
    return [bytes([version]), nonce, *([search.encode("utf-8", "surrogatepass")] if search else [])]


def _make(path: Path, content: str) -> None:
    """Write a file that only its owner can read, whole; whoever comes first wins."""
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(made, path)
        made.unlink()
    except OSError as error:
        raise DataError(f"{path}: no key can be kept there ({error}); set {KEYS_VARIABLE} or {FILE_VARIABLE}") from None


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Strict: one text for the same bytes, so that a token cannot be written in two ways."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise ValueError(text)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(raw) != text:
        raise ValueError(text)
    return raw
