"""uvicorn's HTTP/1.1 with timeouts for headers, for the rest of an unwanted body, and for clients that do not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cranfield.http.connections import Connection, Connections, plain_answer

if TYPE_CHECKING:
    import asyncio

LINGER = 2.0  # seconds in which the rest of an unwanted body is discarded, so that the client reads the response
PARTING = 1.0  # seconds for the last bytes to leave
LATE = plain_answer("408 Request Timeout", "the headers did not come in time")


class LimitedProtocol(H11Protocol):
    """One connection; `connections` knows its limits."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connections = connections
        self._connection: Connection | None = None
        self._parting: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._lingers = False  # whether the rest of an unwanted body is being discarded

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The connection is open, after a TLS handshake if there is one."""
        super().connection_made(transport)
        opened = transport.get_extra_info("socket")
        self._connection = None if opened is None else self._connections.of(opened.fileno())
        if self._connection is not None:
            self._connection.end = self._end

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        for timer in (self._parting, self._stuck):
            if timer is not None:
                timer.cancel()
        if self._connection is not None:
            self._connection.answer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request arrived."""
        super().data_received(data)
        self._look(begun=True)

    def on_response_complete(self) -> None:
        """The response was sent."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._part()
            return
        if self._connection is not None:
            self._connection.served = True
        self._look(begun=False)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP, unless the request was already answered before its body came, such as with 401."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:  # the application of this request would answer again and log a traceback
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._part()

    def pause_writing(self) -> None:
        """The client does not read; start a timer."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(self._connections.limits.body_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        super().resume_writing()

    def _look(self, begun: bool) -> None:
        """Note which side the connection waits for, and start the matching timer."""
        connection = self._connection
        if connection is None or self.transport.is_closing():
            return
        theirs = self.conn.their_state
        if theirs is h11.IDLE:
            if not connection.waits or connection.reads_body or self._lingers:
                connection.wait()
            self._lingers = False
            if begun:  # between two requests the time of a kept connection runs, which is uvicorn's
                connection.end_after(self._connections.limits.header_seconds)
        elif theirs is h11.SEND_BODY and self.conn.our_state is h11.DONE:
            if not self._lingers:  # however much of it still comes
                self._lingers = True
                connection.wait()
                connection.end_after(LINGER)
        elif theirs is h11.SEND_BODY:
            if not connection.reads_body:
                connection.wait(for_body=True)
        else:
            self._lingers = False
            connection.answer()

    def _end(self) -> None:
        """Close a connection after a timeout or to make room for another."""
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(LATE)
        self.transport.close()
        self._part()

    def _part(self) -> None:
        """Wait a limited time for the last bytes to leave."""
        if self._parting is None:
            self._parting = self.loop.call_later(PARTING, self.transport.abort)
