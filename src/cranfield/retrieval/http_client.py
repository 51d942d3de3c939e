"""A small HTTP client: one persistent connection per thread, a deadline for the whole answer, and distinct failures.

The standard library's http.client lacks two things. An answer may arrive in small pieces, so the deadline holds for
the whole answer and not for each piece. An answer may never end, so its size is limited.
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

from cranfield.base.errors import ConventionError, DataError, TooLargeError
from cranfield.retrieval.systems_under_test import Busy, Refused, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

PASSING = {408, 425, 429, 500, 502, 503, 504}  # temporary statuses
PIECE = 1 << 16
MOST = 32_000_000  # largest answer in bytes
VALUES = 300_000_000  # memory of an answer's values in bytes; at least ten times the largest answer
OF_LIST, OF_VALUE = 200, 60  # approximate bytes of a list or object, and of each value in it
EXAMPLE = "http://localhost:9200/index"
EXCERPT = 4000  # bytes of a refusal that are shown
ODD = re.compile(r"[\x00-\x20\x7f]")  # characters that no host name contains


class _Response(http.client.HTTPResponse):
    """An answer read until a deadline: before each read, the socket's time-out is set to the remaining time."""

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
    """Queries one server. `ask` may be called by several threads.

    With `once` no request is sent twice, not even if a persistent connection turns out to be closed, because a request
    may cost money; the connection is checked before it is used. `hide` removes secrets from a text of the server before
    it is cut for a message.
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
        except ValueError as error:  # an invalid port, an open bracket
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
        """The answer as JSON; Busy for a temporary failure, DataError for a permanent one."""
        target = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}" if params else path
        sent = None if body is None else json.dumps(body).encode()
        all_headers = {"Accept": "application/json", **self.basic, **headers}
        if sent is not None:
            all_headers.setdefault("Content-Type", "application/json")
        deadline = time.perf_counter() + self.timeout
        try:
            status, answered, content = self._exchange(method, target, sent, all_headers, deadline)
            value = self._judged(status, answered, content, path)
            _left(deadline)  # parsing JSON takes time as well
            return value
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
            self._drop()  # the server had closed the persistent connection: not a failure of this query
            return self._exchange(method, target, body, headers, deadline)
        content, room = bytearray(), self.most - (answer.length or 0)
        while room >= 0 and (piece := answer.read1(PIECE)):
            content += piece
            if answer.length is None:  # not known beforehand
                room -= len(piece)
        if room < 0:
            self._drop()
            raise TooLargeError(f"{self.where}: the answer is larger than {self.most / 1e6:g} MB (--max-answer)")
        lacking = answer.length
        answer.close()  # read1 does not close it, and the connection needs it closed
        if lacking:
            raise http.client.IncompleteRead(bytes(content), lacking)
        if answer.will_close:
            self._drop()
        return answer.status, answer.headers, content

    def _masked_body(self, content: bytearray) -> bytes:
        return bytes(content) if self.hide is None else self.hide(content.decode("utf-8", "replace")).encode()

    def _judged(self, status: int, headers: Any, content: bytearray, path: str) -> Any:
        if status in PASSING:
            why = f"{self.where}{path}: status {status}{_excerpt(self._masked_body(content))}"
            raise Busy(why, _pause(headers.get("Retry-After", "")), f"status {status}")
        if not 200 <= status < 300:
            text = self._masked_body(content)
            moved = f" to {headers.get('Location')}; name that URL" if 300 <= status < 400 else _excerpt(text)
            excerpt = text[:EXCERPT].decode("utf-8", "replace")
            raise Rejected(f"{self.where}{path}: status {status}{moved}", status, excerpt)
        self._refuse_crowded(content)
        try:
            return self.parse(content)
        except (ValueError, RecursionError):
            body_start = self._masked_body(content)[:60]
            raise Busy(f"{self.where}{path}: expected JSON, found {body_start!r}", kind="not JSON") from None

    def _refuse_crowded(self, content: bytearray) -> None:
        """Refuse an answer with so many small values that they would take far more memory and time than its bytes."""
        lists, others = content.count(b"[") + content.count(b"{"), content.count(b",")
        size = OF_LIST * lists + OF_VALUE * others
        if size > max(VALUES, 10 * self.most):
            what = f"an answer of {len(content) / 1e6:,.4g} MB with {lists + others:,} values"
            raise TooLargeError(f"{self.where}: {what} is too large; ask for fewer hits, or allow more (--max-answer)")

    def _connection(self, deadline: float) -> tuple[http.client.HTTPConnection, bool]:
        """This thread's connection with the time-out of the deadline, and whether it is new."""
        connection: http.client.HTTPConnection | None = getattr(self.local, "connection", None)
        if self.once and connection is not None and _closed(connection):
            self._drop()
            connection = None
        fresh = connection is None
        if connection is None:
            kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            connection = self.local.connection = kind(self.host, self.port)
            self.opened.append(connection)
        connection.timeout = _left(deadline)  # for connecting; an open connection has its socket's time-out
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        connection.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]
        return connection, fresh

    def _drop(self) -> None:
        connection = getattr(self.local, "connection", None)
        if connection is not None:
            connection.close()
            self.opened.remove(connection)
            self.local.connection = None

    def close(self) -> None:
        """Close every thread's connection."""
        for connection in self.opened:
            connection.close()
        self.opened.clear()


def _closed(connection: http.client.HTTPConnection) -> bool:
    """Whether the server closed a persistent connection: there is something to read though nothing was asked."""
    import select

    try:
        return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def _pause(after: str) -> float | None:
    """The seconds of a Retry-After header, given as a number or a date."""
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
