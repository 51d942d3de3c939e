"""The service of online evaluation for a test: in a thread of this process, or as a child process that can be killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cranfield.experiments.interleaving.token import Keys
from cranfield.experiments.serve import ServiceSettings, finish, prepare_service
from cranfield.experiments.service import application
from cranfield.http.serving import ServerSettings, bound, server
from shell import EXAMPLES
from workbench import Client, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.experiments.service import Service
    from cranfield.http.connections import ClientLimits

PLANS = EXAMPLES / "online" / "plans"
TIME = "2026-03-01T10:00:00.000000Z"


def event(i: object, **more: object) -> dict[str, Any]:
    """An event as a program sends it."""
    return {"event_id": f"e{i}", "time": TIME, "kind": "conversion", "unit": "u1", **more}


class Caller(Client):
    """A program: it sends JSON, and neither an origin nor where it was sent from."""

    def send(self, path: str, values: Any, **headers: str | None) -> Reply:
        """JSON."""
        body = values if isinstance(values, bytes) else json.dumps(values).encode()
        return self.ask("POST", path, body, **{"Content-Type": "application/json", **headers})


@contextmanager
def serving(
    folder: Path, accounts: bool = False, pack: float = 3600.0, limits: ClientLimits | None = None, **setting: Any
) -> Iterator[tuple[Service, Caller]]:
    """A service on a log of its own in a folder, from a thread, and a program that calls it."""
    opened, manner = bound(ServerSettings(port=0, accounts=accounts), limits)
    opened.listen()
    chosen = ServiceSettings([str(PLANS)], str(folder / "log"), pack=pack, **setting)
    service = prepare_service(chosen, manner, lambda _: None, opened.connections)
    keys = Keys.new()
    service.keys = lambda: keys
    running = server(application(service), manner, opened)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield service, Caller(manner.port)
    finally:
        running.should_exit = True
        thread.join(10)
        finish(service)
        opened.close()


class Process:
    """`cranfield online serve` as a child process, which can be killed and started again at the same port."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.folder, self.options, self.port = folder, options, port
        shutil.copytree(PLANS, folder / "plans", dirs_exist_ok=True)
        self.start()

    def start(self) -> None:
        """Start, and wait until it listens."""
        command = [sys.executable, "-m", "cranfield", "online", "serve", "plans", "log", "--port", str(self.port)]
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder)}
        self.child = subprocess.Popen(
            [*command, *self.options], stderr=subprocess.PIPE, text=True, cwd=self.folder, env=environment
        )
        assert self.child.stderr is not None
        self.said = []
        for line in self.child.stderr:
            self.said.append(line)
            if found := re.search(r"https?://[^ /]+?(?::(\d+))?/$", line):
                self.port = int(found[1] or self.port)  # behind a proxy it is not in the address
                self.caller = Caller(self.port)
                return
        raise AssertionError(f"it did not start: {''.join(self.said)}")

    def kill(self) -> None:
        """As the power going out."""
        os.kill(self.child.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        """As Ctrl-C."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        self._ended()

    def _ended(self) -> None:
        self.child.wait(30)
        if self.child.stderr is not None:
            self.child.stderr.close()
