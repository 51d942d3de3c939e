"""What the tests share: reference data, folders to write to, and how Hypothesis draws its examples."""

from __future__ import annotations

import asyncio
import datetime
import gc
import ipaddress
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule

import hypotheses  # noqa: F401 (it sets how examples are drawn)
import one_core
from browsers import chromium, event_loop_set
from cranfield.judging import open_log
from databases import KINDS, location_of, share_compiled_statements, start_server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from cranfield.judging import Log

share_compiled_statements()

collect_ignore = ["plugins"]  # a package that test_extensions.py installs, and tests that it runs elsewhere


def pytest_runtest_setup() -> None:
    """Importing the provider for ir_measures installs it, and then ir_measures would be compared with cranfield by itself."""
    provider = sys.modules.get("cranfield.compat.ir_measures")
    if provider is not None:
        provider.uninstall()


class DoctestsWhereThereAre:
    """Only files that hold `>>>` are searched for doctests: a search imports a module and looks through all that it holds."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[Any], list[Any]]:
        collectors = yield
        return [
            each
            for each in collectors
            if not isinstance(each, DoctestModule) or ">>>" in file_path.read_text(encoding="utf-8")
        ]


def pytest_configure(config: pytest.Config) -> None:
    """A plugin, because the hooks of this file are not asked about files in src/."""
    config.pluginmanager.register(DoctestsWhereThereAre())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PostgreSQL runs in `make test` where a module promises something of every database; `make test-all` runs it everywhere.

    What the code above a log does is the same on each kind of log, and the promise suites hold the kinds to that.
    """
    for item in items:
        parameters = getattr(item, "callspec", None)
        values = parameters.params.values() if parameters is not None else ()
        on_server = any(isinstance(value, str) and value == "postgresql" for value in values)
        if on_server and not item.get_closest_marker("every_database"):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end: the garbage collector need not walk through them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the end what was skipped and why, so that a missing browser or package is never overlooked."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        terminalreporter.section("skipped")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:4} skipped: {reason}")


SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Public collections with known answers. They lie beside the checkout, never in it."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data; a test that asks for it is skipped where the folder is missing."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data")
    return SHARED


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what one example of Hypothesis writes and the next writes over."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder with what is costly to make, once for all workers: the first one makes it, the others wait."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if one_core.IS_WORKER else own

    def folder_of(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = root / name, root / f"{name}.done"
        try:
            folder.mkdir()
        except FileExistsError:
            while not done.exists():
                time.sleep(0.05)
            assert done.read_text() == "made", f"another worker could not make {name}"
            return folder
        outcome = "failed"
        try:
            make(folder)
            outcome = "made"
        finally:
            done.with_suffix(".new").write_text(outcome)
            done.with_suffix(".new").rename(done)
        return folder

    return folder_of


@pytest.fixture(scope="session", autouse=True)
def _executions_of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Names the folder in which tests/executions.py stores what commands showed."""
    own = tmp_path_factory.getbasetemp()
    os.environ["CRANFIELD_EXECUTIONS"] = str((own.parent if one_core.IS_WORKER else own) / "executions")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that this worker starts and stops."""
    yield from start_server()


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509", reason="needs cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).add_extension(address, False)
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    path.chmod(0o600)
    return path


@pytest.fixture(params=KINDS)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new log goes: each kind in turn."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def log(location: str) -> Iterator[Log]:
    """A new log of each kind."""
    opened = open_log(location)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def browser_of_worker() -> Iterator[tuple[Any, asyncio.AbstractEventLoop | None]]:
    """The one browser that a worker starts, and the event loop that drives it, which rests between tests."""
    with chromium() as opened:
        loop = asyncio._get_running_loop()
        with event_loop_set(None):
            yield opened, loop


@pytest.fixture
def browser(browser_of_worker: tuple[Any, asyncio.AbstractEventLoop | None]) -> Iterator[Any]:
    """A real browser without a context; every context that a test opens is closed behind it."""
    opened, loop = browser_of_worker
    with event_loop_set(loop):
        yield opened
        for context in opened.contexts:
            context.close()
