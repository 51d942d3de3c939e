"""The token of an interleaved list: what credit needs, encoded in few bytes and sealed by authenticated encryption.

A client can neither read a token nor make one. The cipher is AES-SIV (RFC 5297) with an 8-byte nonce: short, and a repeated
nonce does no harm, so a key may seal any number of tokens. A token is a version, the nonce and the ciphertext; the search
that it was made for is associated data. Several keys may be in use: the first seals tokens, all can open them.

Contents: the name of the plan, if there is one; the method's letter and the parameters that differ from its defaults; the
systems' names; then whole numbers. Each number of a rank takes as many bits as the largest one needs, others take seven bits
per byte.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, DataError, TokenError
from cranfield.base.optional_packages import missing
from cranfield.base.parameters import read_pairs
from cranfield.experiments.interleaving.method import METHODS, InterleavingMethod, ListEvidence
from cranfield.formats.streams import read_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


VERSION = 1
NONCE = 8  # bytes
KEY = 32  # bytes
SEAL = 16  # bytes, of the cipher
LONGEST = 2**20  # bytes of content, and characters of a token
KEYS_VARIABLE, FILE_VARIABLE = "CRANFIELD_ONLINE_KEYS", "CRANFIELD_ONLINE_KEYS_FILE"
PLAIN, EXPIRING = 0, 1  # the first byte inside: whether four bytes of expiry follow


@dataclass(frozen=True, repr=False)
class Keys:
    """Secret keys, the newest first: the first seals tokens, all can open them. To rotate keys, put a new one in front."""

    secrets: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if not self.secrets or any(len(secret) != KEY for secret in self.secrets):
            raise ConventionError(f"expected at least one key, each of {KEY} bytes")

    def __repr__(self) -> str:
        return f"Keys({len(self.secrets)} keys)"  # never the keys themselves

    @cached_property
    def ciphers(self) -> list[Any]:
        """One AES-SIV cipher per key, in the order of the keys."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        except ImportError as error:
            raise missing("cryptography", "tokens need", error) from error
        return [AESSIV(secret) for secret in self.secrets]

    @classmethod
    def new(cls) -> Keys:
        """A new random key."""
        return cls((secrets.token_bytes(KEY),))

    @classmethod
    def parse(cls, text: str, where: str) -> Keys:
        """Keys from a text, separated by spaces, commas or line ends; a comment begins with #."""
        words = re.sub(r"#.*", "", text).replace(",", " ").split()
        try:
            return cls(tuple(map(_bytes, words)))
        except ValueError:
            expected = f"keys of {KEY} bytes in URL-safe base64 ({len(_text(bytes(KEY)))} characters each)"
            raise DataError(f"{where}: expected {expected}; Keys.new().text() makes one") from None

    def text(self) -> str:
        """The keys as text that `parse` reads, one per line."""
        return "\n".join(map(_text, self.secrets))

    @classmethod
    def of_file(cls, path: str | Path) -> Keys:
        """The keys in a file that only its owner can read; a missing file is made with a new key."""
        path = Path(path)
        if not path.exists():
            _write_new_key(path, f"{cls.new().text()}\n")
        return cls.parse(read_secret(path).decode("ascii", "replace"), str(path))

    @classmethod
    def usual(cls, environment: Mapping[str, str] | None = None) -> Keys:
        """The keys in CRANFIELD_ONLINE_KEYS, else in the file CRANFIELD_ONLINE_KEYS_FILE, else in the user's key file."""
        variables = os.environ if environment is None else environment
        if text := variables.get(KEYS_VARIABLE):
            return cls.parse(text, KEYS_VARIABLE)
        home = variables.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return cls.of_file(variables.get(FILE_VARIABLE) or Path(home) / "cranfield" / "online.keys")


def seal(
    content: bytes,
    keys: Keys,
    search: str = "",
    expires: float | None = None,
    *,
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> str:
    """Seal bytes into a URL-safe token: for one `search` if named, until `expires` (seconds since 1970) if set."""
    if len(content) > LONGEST // 2:
        raise DataError(f"a token of {len(content):,} bytes is too long; show fewer documents")
    nonce = random(NONCE)
    if expires is None:
        inside = bytes([PLAIN]) + content
    elif 0 <= expires < 2**32:
        inside = bytes([EXPIRING]) + int(expires).to_bytes(4, "big") + content
    else:
        raise ConventionError(f"expires must be seconds since 1970, found {expires}")
    return _text(bytes([VERSION]) + nonce + keys.ciphers[0].encrypt(inside, _associated_data(VERSION, nonce, search)))


def unseal(token: str, keys: Keys, search: str = "", at: float | None = None) -> bytes:
    """The bytes in a token; TokenError if it had expired at the time `at` (default: now)."""
    content, expires = open_token(token, keys, search)
    if expires is not None and (time.time() if at is None else at) > expires:
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
        raise TokenError(f"the token has expired: it was valid until {expiry}")
    return content


def open_token(token: str, keys: Keys, search: str = "") -> tuple[bytes, int | None]:
    """The bytes in a token, whether or not it has expired, and its expiry (seconds since 1970; None: it has none)."""
    raw = _raw(token)
    version, nonce, sealed = raw[0], raw[1 : 1 + NONCE], raw[1 + NONCE :]
    if version != VERSION:
        raise TokenError(f"a token of version {version}; this cranfield opens version {VERSION}")
    inside = _decrypt(sealed, keys, _associated_data(version, nonce, search))
    if inside[0] == PLAIN:
        return inside[1:], None
    return inside[5:], int.from_bytes(inside[1:5], "big")


def _raw(token: str) -> bytes:
    try:
        raw = _bytes(token) if len(token) <= LONGEST else b""
    except (ValueError, TypeError, AttributeError):
        raw = b""
    if len(raw) <= 1 + NONCE + SEAL:
        raise TokenError("expected a sealed token, found something else; was it cut or encoded twice?")
    return raw


def _decrypt(sealed: bytes, keys: Keys, beside: list[bytes]) -> bytes:
    from cryptography.exceptions import InvalidTag

    for cipher in keys.ciphers:
        try:
            inside: bytes = cipher.decrypt(sealed, beside)
        except InvalidTag:
            continue
        return inside
    raise TokenError(
        "the token cannot be opened: it was changed, sealed with an unknown key, or sealed for another search"
    )


def _associated_data(version: int, nonce: bytes, search: str) -> list[bytes]:
    """The associated data of the cipher: version, nonce and search."""
    return [bytes([version]), nonce, *([search.encode("utf-8", "surrogatepass")] if search else [])]


def _write_new_key(path: Path, content: str) -> None:
    """Write a new key file that only its owner can read, atomically; if two processes do so, the first wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    except OSError as error:
        advice = f"set {KEYS_VARIABLE} or {FILE_VARIABLE}"
        raise DataError(f"{path}: no key can be stored there ({error}); {advice}") from None


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Decode base64 strictly: the same bytes have one text only, so a token has one spelling."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise ValueError(text)
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(raw) != text:
        raise ValueError(text)
    return raw


PLANNED = b"\x01"  # first byte of contents that name a plan; others begin with the letter of a method


class TokenContents(NamedTuple):
    """What a token holds about one interleaved list; `plan` is empty if the token names none."""

    method: InterleavingMethod
    systems: tuple[str, ...]
    evidence: ListEvidence
    plan: str = ""


def encode_contents(
    method: InterleavingMethod, systems: Sequence[str], evidence: ListEvidence, plan: str = ""
) -> bytes:
    """The contents of a token as bytes."""
    changed = ",".join(f"{key}={value}" for key, value in method.changed().items())
    flat = [number for marks in evidence.marks for number in marks]
    each = len(evidence.marks[0]) if evidence.marks else 0
    width = max(map(int.bit_length, flat), default=0)
    bits = 0
    for number in flat:
        bits = bits << width | number
    return b"".join(
        [
            *([PLANNED, _counted_text(plan)] if plan else []),
            method.letter.encode(),
            _whole(len(systems)),
            *map(_counted_text, (changed, *systems)),
            *map(_whole, (len(evidence.marks), each, width)),
            bits.to_bytes((width * len(flat) + 7) // 8, "big"),
            *map(_whole, evidence.more),
        ]
    )


def decode_contents(content: bytes) -> TokenContents:
    """The contents of a token from its bytes."""
    try:
        return _read(content)
    except (StopIteration, UnicodeDecodeError, ConventionError) as error:
        raise TokenError("the token was sealed with this key, but by another version of cranfield") from error


def _read(content: bytes) -> TokenContents:
    plan, stream = "", iter(content)
    if content[:1] == PLANNED:
        next(stream)
        plan = _read_text(stream)
    letter = chr(next(stream))
    cls = next((each for each in METHODS.values() if each.letter == letter), None)
    if cls is None:
        raise TokenError(f"the token names a method {letter!r} that this version of cranfield does not know")
    systems = _number(stream)
    changed, *names = [_read_text(stream) for _ in range(systems + 1)]
    ranks, each, width = _number(stream), _number(stream), _number(stream)
    bits = int.from_bytes(_next_bytes(stream, (ranks * each * width + 7) // 8), "big")
    places = range(ranks * each - 1, -1, -1)
    flat = [bits >> place * width & (1 << width) - 1 for place in places]
    marks = tuple([tuple(flat[rank * each : (rank + 1) * each]) for rank in range(ranks)])
    more = tuple([_number(stream, byte) for byte in stream])
    return TokenContents(cls(**read_pairs(changed, cls.name)), tuple(names), ListEvidence(marks, more), plan)


def _counted_text(text: str) -> bytes:
    """A text with its length in bytes before it."""
    encoded = text.encode("utf-8", "surrogatepass")
    return _whole(len(encoded)) + encoded


def _whole(number: int) -> bytes:
    """A whole number in seven bits per byte, the lowest first; the eighth bit says that more follow."""
    answer = bytearray()
    while number > 127:
        answer.append(number & 127 | 128)
        number >>= 7
    answer.append(number)
    return bytes(answer)


def _number(stream: Iterator[int], first: int | None = None) -> int:
    byte = next(stream) if first is None else first
    number, shift = byte & 127, 7
    while byte & 128:
        byte = next(stream)
        number |= (byte & 127) << shift
        shift += 7
    return number


def _next_bytes(stream: Iterator[int], n: int) -> bytes:
    return bytes([next(stream) for _ in range(n)])


def _read_text(stream: Iterator[int]) -> str:
    return _next_bytes(stream, _number(stream)).decode("utf-8", "surrogatepass")
