"""People who judge over HTTP: plain asyncio, a connection each, a request a judgment; what they were told is kept.

The generator runs on the same cores as the server. What was confirmed is held against the log afterwards: every confirmed
judgment once, none that nobody gave.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 30.0  # seconds
ROUND = "1"


@dataclass
class Tally:
    """What happened: seconds of each request, ids that were sent, ids that were confirmed, and what was refused."""

    seconds: list[float] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    broken: int = 0  # connections that were cut

    def share(self, quantile: float) -> float:
        """The latency that so many requests stay below."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] if ordered else float("nan")


class Connection:
    """HTTP/1.1 over a connection that is kept, and opened again when it was cut."""

    def __init__(self, host: str, port: int, headers: dict[str, str], patience: float = PATIENCE) -> None:
        self.host, self.port, self.patience = host, port, patience
        lines = {"Host": f"{host}:{port}", "Connection": "keep-alive", "Sec-Fetch-Site": "same-origin", **headers}
        self.head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, values: Any) -> tuple[int, Any]:
        """Status and JSON of an answer; ConnectionError where the connection was cut."""
        status, body = await self.ask("POST", path, json.dumps(values).encode())
        return status, json.loads(body)

    async def get(self, path: str) -> bytes:
        """The body of a page, also of one that is not computed yet."""
        status, body = await self.ask("GET", path)
        if status not in (200, 202):
            raise RuntimeError(f"{path} answers {status}: {body[:200]!r}")
        return body

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """One request; ConnectionError where the connection was cut."""
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        reader, writer = self.streams
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{self.head}{kind}\r\n".encode() + body)
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self.patience)).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].split("\r\n", 1)[0])
            answer = await reader.readexactly(length)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise ConnectionError(str(error)) from error
        return int(head.split(" ", 2)[1]), answer

    def close(self) -> None:
        """Let go."""
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


async def assessor(
    where: tuple[str, int], cookie: str, number: int, over: Callable[[], bool], tally: Tally, pause: float
) -> None:
    """Somebody who judges until a time: answers what they hold, is given more, and repeats what was not confirmed."""
    connection = Connection(*where, {"Cookie": cookie})
    waiting: dict[str, Any] | None = None
    items: list[tuple[str, str]] = []
    count, mark = 0, secrets.token_hex(4)
    await asyncio.sleep(pause * (number % 50) / 50)
    while not over() or waiting:
        began = time.monotonic()
        if waiting is None and items:
            topic, document = items[0]
            count += 1
            waiting = {
                "id": f"{mark}-{number:04d}-{count:06d}",
                "topic": topic,
                "document": document,
                "grade": count % 3,
            }
            tally.sent.add(str(waiting["id"]))
        events = [waiting] if waiting else []
        try:
            status, values = await connection.post(
                "/judge.json", {"round": ROUND, "events": events, "n": 3, "have": items[1:]}
            )
        except (OSError, ConnectionError):
            tally.broken += 1
            await asyncio.sleep(0.05)
            continue
        if status != 200:
            tally.refused.append(f"{status} {values.get('error', '')}")
            await asyncio.sleep(0.1)
            continue
        if waiting:
            tally.seconds.append(time.monotonic() - began)
            [outcome] = values["outcomes"]
            if outcome["said"] == "refused":
                tally.refused.append(outcome["why"])
            else:
                tally.confirmed.add(str(waiting["id"]))
            waiting = None
        items = (
            [*items[1:], *((each["topic"], each["document"]) for each in values["items"])]
            if events
            else [(each["topic"], each["document"]) for each in values["items"]]
        )
        if not items:
            return
        await asyncio.sleep(max(0.0, pause - (time.monotonic() - began)))
    connection.close()


def judged(
    where: tuple[str, int],
    cookies: list[str],
    seconds: float,
    pause: float,
    over: Callable[[], bool] = lambda: False,
) -> Tally:
    """Everybody at once for so many seconds, or until it is over; `pause` is from one judgment to a person's next."""
    tally = Tally()

    async def everybody() -> None:
        until = time.monotonic() + seconds

        def ended() -> bool:
            return over() or time.monotonic() > until

        people = (assessor(where, cookie, number, ended, tally, pause) for number, cookie in enumerate(cookies))
        await asyncio.gather(*people)

    asyncio.run(everybody())
    return tally
