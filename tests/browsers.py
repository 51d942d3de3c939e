"""A real browser for tests: Chromium of the system, driven by Playwright; skipped with the reason where there is none.

The headless build of Chromium comes first: the same tests take it a quarter less time.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --disable-background-networking --disable-component-update --disable-sync --no-first-run "
    "--disable-dev-shm-usage --disable-gpu"
).split()
EVIL = '</script><img src=x onerror=alert(1)> & "o\'k"'


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser for as long as the block lasts; tests take the fixture `browser`, which starts one per worker."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs a browser: one of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


class Watched:
    """A page of a context, what it asked of the network, and what it said in the console."""

    def __init__(self, context: Any) -> None:
        self.requests: list[str] = []
        self.said: list[str] = []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))


@contextmanager
def event_loop_set(loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Set this thread's running event loop for a while.

    Playwright leaves its own loop set while its browser is open, and `asyncio.run` refuses to start beside it.
    """
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)
