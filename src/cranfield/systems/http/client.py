"""A small HTTP client: one kept-alive connection a thread, a deadline for the whole answer, and failures told apart.

The standard library's http.client does all that is needed but two things. An answer may arrive in drips, so the deadline
holds for all of it, from the status line on, and not for each piece. An answer may never end, so there is a limit to it.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import threading
import time
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode, urlsplit

from cranfield.errors import ConventionError, DataError, TooLargeError
from cranfield.systems.system import Busy, Refused, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

PASSING = {408, 425, 429, 500, 502, 503, 504}  # statuses that may be over in a moment
PIECE = 1 << 16
MOST = 32_000_000  # bytes of an answer
VALUES = 300_000_000  # bytes that its values may take, or ten for each byte that is allowed: small ones take far more than that
OF_LIST, OF_VALUE = 200, 60  # bytes, about: a list or an object, and each value in one
EXAMPLE = "http://localhost:9200/index"
EXCERPT = 4000  # bytes of an answer that refuses
ODD = re.compile(r"[\x00-\x20\x7f]")  # what no host's name holds


class _Response(http.client.HTTPResponse):
    """An answer that is read until a deadline: each time more is read, the socket may wait for what is left of it."""

    def __init__(self, sock: Any, *arguments: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp: Any = io.BufferedReader(_Timed(self.fp.detach(), sock, deadline))


class _Timed(io.RawIOBase):
    def __init__(self, raw: Any, sock: Any, deadline: float) -> None:
        self.raw, self.sock, self.deadline = raw, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> Any:
        self.sock.settimeout(_left(self.deadline))
        return self.raw.readinto(target)

    def close(self) -> None:
        self.raw.close()
        super().close()


def _left(deadline: float) -> float:
    left = deadline - time.perf_counter()
    if left <= 0:
        raise TimeoutError
    return left


class Client:
    """Asks one server. `ask` may be called by several threads.

    With `once` nothing is sent a second time, not even where a kept connection turns out to be closed: what costs money may
    have been taken. A kept connection is then looked at before it is used. `hide` takes what is secret out of a text of the
    server before it is cut for a message.
    """

    def __init__(
        self,
        base: str,
        timeout: float = 30.0,
        most: int = MOST,
        once: bool = False,
        hide: Callable[[str], str] | None = None,
        parse: Callable[[bytearray], Any] = json.loads,
    ) -> None:
        try:
            parts = urlsplit(base)
            port = parts.port
        except ValueError as error:  # a port that is none, an open bracket
            raise ConventionError(f"expected a URL such as {EXAMPLE}, got {base!r} ({error})") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or ODD.search(parts.netloc):
            raise ConventionError(f"expected a URL such as {EXAMPLE}, got {base!r}")
        self.secure, self.host, self.port = parts.scheme == "https", parts.hostname, port
        self.where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
        self.timeout = timeout
        self.most = most
        self.once = once
        self.hide = hide
        self.parse = parse
        self.basic: dict[str, str] = {}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.basic = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        self.local = threading.local()
        self.opened: list[http.client.HTTPConnection] = []

    def ask(self, method: str, path: str, params: dict[str, Any], headers: dict[str, str], body: Any) -> Any:
        """The answer as JSON; Busy if it may come later, DataError if it will not."""
        target = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}" if params else path
        sent = None if body is None else json.dumps(body).encode()
        all_headers = {"Accept": "application/json", **self.basic, **headers}
        if sent is not None:
            all_headers.setdefault("Content-Type", "application/json")
        deadline = time.perf_counter() + self.timeout
        try:
            status, answered, content = self._exchange(method, target, sent, all_headers, deadline)
            value = self._judged(status, answered, content, path)
            _left(deadline)  # to read JSON takes time as well
            return value
        except TooLargeError:
            raise
        except TimeoutError:
            self._drop()
            raise Busy(f"{self.where}: no answer within {self.timeout:g} s", kind="silence") from None
        except (Busy, DataError):
            raise
        except (http.client.InvalidURL, ValueError) as error:  # a method, a path or a header that cannot be sent
            self._drop()
            raise DataError(f"{self.where}: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            kind = Refused if isinstance(error, ConnectionRefusedError) else Busy
            raise kind(f"{self.where}: {_reason(error)}", kind="dropped") from None

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str], deadline: float
    ) -> tuple[int, Any, bytearray]:
        connection, fresh = self._connection(deadline)
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if fresh or self.once:
                raise
            self._drop()  # the server had closed the kept connection: that is no failure of this query
            connection, _ = self._connection(deadline)
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
        content, room = bytearray(), self.most - (answer.length or 0)
        while room >= 0 and (piece := answer.read1(PIECE)):
            content += piece
            if answer.length is None:  # not known beforehand
                room -= len(piece)
        if room < 0:
            self._drop()
            raise TooLargeError(f"{self.where}: the answer is larger than {self.most / 1e6:g} MB (--max-answer)")
        lacking = answer.length
        answer.close()  # read1 does not, and the connection waits for it
        if lacking:
            raise http.client.IncompleteRead(bytes(content), lacking)
        if answer.will_close:
            self._drop()
        return answer.status, answer.headers, content

    def _shown(self, content: bytearray) -> bytes:
        return bytes(content) if self.hide is None else self.hide(content.decode("utf-8", "replace")).encode()

    def _judged(self, status: int, headers: Any, content: bytearray, path: str) -> Any:
        if status in PASSING:
            why = f"{self.where}{path}: status {status}{_excerpt(self._shown(content))}"
            raise Busy(why, _pause(headers.get("Retry-After", "")), f"status {status}")
        if not 200 <= status < 300:
            shown = self._shown(content)
            moved = f" to {headers.get('Location')}; name that URL" if 300 <= status < 400 else _excerpt(shown)
            said = shown[:EXCERPT].decode("utf-8", "replace")
            raise Rejected(f"{self.where}{path}: status {status}{moved}", status, said)
        self._refuse_crowded(content)
        try:
            return self.parse(content)
        except (ValueError, RecursionError):
            found = self._shown(content)[:60]
            raise Busy(f"{self.where}{path}: expected JSON, found {found!r}", kind="not JSON") from None

    def _refuse_crowded(self, content: bytearray) -> None:
        """Stop at an answer of so many small values that they would take far more memory, and time, than its bytes."""
        lists, others = content.count(b"[") + content.count(b"{"), content.count(b",")
        size = OF_LIST * lists + OF_VALUE * others
        if size > max(VALUES, 10 * self.most):
            what = f"an answer of {len(content) / 1e6:,.4g} MB with {lists + others:,} values"
            raise TooLargeError(
                f"{self.where}: {what} is more than is read; ask for fewer hits, or allow more (--max-answer)"
            )

    def _connection(self, deadline: float) -> tuple[http.client.HTTPConnection, bool]:
        """This thread's connection, held to the deadline, and whether it is a new one."""
        known: http.client.HTTPConnection | None = getattr(self.local, "connection", None)
        if self.once and known is not None and _closed(known):
            self._drop()
            known = None
        fresh = known is None
        if known is None:
            kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            known = self.local.connection = kind(self.host, self.port)
            self.opened.append(known)
        known.timeout = _left(deadline)  # to connect; one that is open has its socket's
        if known.sock is not None:
            known.sock.settimeout(known.timeout)
        known.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]
        return known, fresh

    def _drop(self) -> None:
        known = getattr(self.local, "connection", None)
        if known is not None:
            known.close()
            self.opened.remove(known)
            self.local.connection = None

    def close(self) -> None:
        """Close every thread's connection."""
        for connection in self.opened:
            connection.close()
        self.opened.clear()


def _closed(connection: http.client.HTTPConnection) -> bool:
    """Whether a kept connection was closed by the server: there is something to read though nothing was asked."""
    import select

    try:
        return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def _pause(after: str) -> float | None:
    """The seconds that a Retry-After asks for, as a number or until a date."""
    if after.isascii() and after.isdigit():
        return float(after)
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _excerpt(content: bytes) -> str:
    text = " ".join(content[:400].decode("utf-8", "replace").split())
    return f": {text[:200]}" if text else ""


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; is the engine running?"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was dropped"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection was dropped in the middle of the answer"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
