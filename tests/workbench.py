"""A workspace served for a test: a real server in a thread of this process, or as a child process that can be killed."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from argon2 import PasswordHasher

from cranfield.http.serving import ServerSettings, bound, server
from cranfield.inputs.workspace import make_example, open_bench
from cranfield.workbench.app import application
from cranfield.workbench.jobs import Jobs
from cranfield.workbench.many_workspaces import WorkspaceServer, prefix_of
from cranfield.workbench.sign_in import Passwords
from cranfield.workbench.site import Site
from cranfield.workbench.worker_pool import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cranfield.http.connections import ClientLimits, Listener
    from cranfield.inputs.workspace import Bench
    from cranfield.workbench.worker_pool import WorkerTask

PASSWORD = "correct horse battery staple"
PASSWORD_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)  # cheap


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Somebody at a server, with a session or a token, as a browser's own pages would send it."""

    def __init__(self, port: int, cookie: str = "", host: str = "127.0.0.1", token: str = "", prefix: str = "") -> None:
        self.port, self.prefix = port, prefix
        self.headers = {"Host": f"{host}:{port}"}
        self.headers |= {"Cookie": cookie} if cookie else {}
        self.headers |= {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> Reply:
        """One request; a header of None is left out, underscores in names are hyphens."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in {**self.headers, **given}.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, self.prefix + path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            got = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, got, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Reply:
        """A page; ids in its path are already quoted."""
        return self.ask("GET", path, **headers)

    def post(self, path: str, values: dict[str, Any] | None = None, **headers: str | None) -> Reply:
        """A form, as a page of ours sends it."""
        body = urlencode(values or {}, doseq=True).encode()
        usual = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        return self.ask("POST", path, body, **{**usual, **headers})

    def send(self, path: str, values: Any, **headers: str | None) -> Reply:
        """JSON, as a script of ours sends it."""
        usual = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
        return self.ask("POST", path, json.dumps(values).encode(), **{**usual, **headers})


class Served:
    """A site and where it is found."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.bench = site.bench
        self.port = site.manner.port
        self.url = site.manner.url

    def account(self, name: str, role: str) -> str:
        """A session of somebody, made here: the cookie to send."""
        if self.site.accounts.find(name) is None:
            self.site.accounts.create(name, role, PASSWORD_HASH)
        secret = self.site.accounts.begin(name, local=not self.site.manner.accounts)
        return f"{self.site.manner.cookie}={secret}"

    def client(self, name: str = "", role: str = "lead") -> Client:
        """Somebody of a role, or nobody."""
        return Client(self.port, self.account(name, role) if name else "", prefix=self.site.manner.path)

    def context(self, browser: Any, name: str, role: str, **options: Any) -> Any:
        """A browser in which somebody is signed in."""
        made = browser.new_context(base_url=self.url, **options)
        key, _, value = self.account(name, role).partition("=")
        made.add_cookies([{"name": key, "value": value, "url": self.url, "httpOnly": True, "sameSite": "Lax"}])
        return made


@dataclass
class OwnTask:
    """A question of one workspace, which is told nothing more once its workers are closed."""

    workers: SharedWorkers
    tell: Callable[[dict[str, Any]], None]

    def __call__(self, message: dict[str, Any]) -> None:
        with self.workers.lock:
            if not self.workers.closed:
                self.tell(message)


class PoolOfAll(WorkerPool):
    """One worker process for all workspaces of this test process: starting one costs more than most questions."""

    def _next(self) -> WorkerTask | None:
        """The next question of a workspace that is still open."""
        while (task := super()._next()) is not None and isinstance(task.tell, OwnTask) and task.tell.workers.closed:
            pass
        return task


@cache
def pool_of_all() -> PoolOfAll:
    """The pool, which ends with this process."""
    pool = PoolOfAll(at_once=1)
    atexit.register(pool.close)
    return pool


class SharedWorkers(WorkerPool):
    """What one workspace uses instead of workers of its own: closing it leaves the process to the next workspace."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.lock = threading.Lock()

    def put(self, task: WorkerTask) -> None:
        pool_of_all().put(task._replace(tell=OwnTask(self, task.tell)))

    def close(self) -> None:
        with self.lock:
            self.closed = True


@contextmanager
def served(
    folder: Path,
    db: str | None = None,
    accounts: bool = True,
    pem: Path | None = None,
    limits: ClientLimits | None = None,
    clock: Callable[[], str] | None = None,
    **manner: Any,
) -> Iterator[Served]:
    """Serve a folder from a thread; `pem` holds a certificate and its key, `clock` replaces the database's clock."""
    bench = open_bench(folder, db, clock)
    opened, how = bound(
        ServerSettings(port=0, accounts=accounts, tls=pem is not None or bool(manner.get("proxy")), **manner), limits
    )
    site = site_for_tests(bench, how, opened)
    try:
        with running(application(site), how, opened, pem):
            yield Served(site)
    finally:
        site.jobs.close()
        bench.close()


@contextmanager
def served_together(
    *folders: Path, parent: Path | None = None, accounts: bool = True, **manner: Any
) -> Iterator[tuple[WorkspaceServer, dict[str, Served]]]:
    """Serve several folders from a thread, each under its prefix."""
    opened, how = bound(ServerSettings(port=0, accounts=accounts, tls=bool(manner.get("proxy")), **manner))
    sites: list[Site] = []

    def open_site(folder: str | Path) -> Site:
        own = replace(how, path=prefix_of(str(folder)))
        sites.append(site_for_tests(open_bench(folder), own, opened))
        return sites[-1]

    together = WorkspaceServer(how, [open_site(each) for each in folders], [], parent and str(parent), open_site)
    try:
        with running(together, how, opened):
            yield together, {site.bench.name: Served(site) for site in sites}
    finally:
        for site in sites:
            site.jobs.close()
            site.bench.close()


def site_for_tests(bench: Bench, manner: ServerSettings, opened: Listener) -> Site:
    """A workspace whose questions are answered by the one worker process of all tests."""
    jobs = Jobs(bench)
    jobs.workers = SharedWorkers()
    site = Site(bench, jobs, manner, opened.connections.limits)
    site.passwords = Passwords(memory=8, rounds=1)  # the usual ones take a tenth of a second each
    site.index_loader.patience = 30  # a machine at work on other tests takes its time
    return site


@contextmanager
def running(app: Any, manner: ServerSettings, opened: Listener, pem: Path | None = None) -> Iterator[None]:
    """An application at work in a thread."""
    opened.listen()
    certificate = None if pem is None else str(pem)
    uvicorn = server(app, manner, opened, certificate, certificate)
    thread = threading.Thread(target=uvicorn.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not uvicorn.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield
    finally:
        uvicorn.should_exit = True
        thread.join(10)
        opened.close()


def waited(site: Served, path: str, *parts: str, who: tuple[str, str] = ("vic", "viewer")) -> Any:
    """The JSON of a page when its jobs are done, those of some parts too; it is asked by a viewer, or by somebody else."""
    client = site.client(*who)
    for _ in range(600):
        values = client.get(path).json()
        if all(each.get("state") != "running" for each in (values, *(values[part] for part in parts))):
            return values
    raise AssertionError("it is still being worked out")


def example(folder: Path) -> Path:
    """The bundled collection with its runs as a workspace."""
    make_example(folder)
    return folder


class Process:
    """`cranfield serve` as a child process, which can be killed and started again at the same port."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        port: int = 0,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.options, self.port = folder, options, port
        self.cwd, self.environment = cwd, environment
        self.rest = ""  # what it wrote after its link, once it has stopped
        self.start()

    def start(self) -> None:
        """Start, and read the link that it prints."""
        command = [
            sys.executable,
            "-m",
            "cranfield",
            "serve",
            str(self.folder),
            "--port",
            str(self.port),
            *self.options,
        ]
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=self.cwd, env=self.environment)
        assert self.child.stderr is not None
        self.said = []
        for line in self.child.stderr:
            self.said.append(line)
            found = re.search(r"https?://[^ \n]+", line)
            if found:
                self.link = found[0]
                self.port = int(re.search(r":(\d+)/", f"{self.link}/")[1])  # type: ignore[index]
                return
        raise AssertionError(f"it did not start: {''.join(self.said)}")

    def kill(self) -> None:
        """As the power going out."""
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.wait()
        if self.child.stderr is not None:
            self.child.stderr.close()

    def stop(self) -> None:
        """As Ctrl-C."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.child.stderr is not None and not self.child.stderr.closed:
            self.rest = self.child.stderr.read()
            self.child.stderr.close()
