"""A served workspace: what all pages share.

The index of documents is built in a thread. Until it is ready, pages that need a text show the progress.
"""

from __future__ import annotations

import getpass
import os
import re
import sys
import threading
import time
from concurrent.futures import Future, wait
from functools import cached_property
from typing import TYPE_CHECKING

from cranfield.base.parameters import shortened
from cranfield.commands.workspaces import StagingArea
from cranfield.http.connections import ClientLimits
from cranfield.http.refusal import Refusal
from cranfield.judging.event_intake import KnownIds
from cranfield.store.accounts import Accounts, is_name
from cranfield.workbench.sign_in import Passwords, SignInThrottle
from cranfield.workbench.tasks import ModelTrainer, Tasks

if TYPE_CHECKING:
    from cranfield.base.collection import Document
    from cranfield.formats.document_index import Shelf
    from cranfield.http.serving import ServerSettings
    from cranfield.inputs.workspace import Bench
    from cranfield.workbench.jobs import Jobs


PATIENCE = 1.0  # seconds that a page waits: an existing index opens at once
AGAIN = 3.0  # seconds after which a page reloads


class IndexLoader:
    """Opens the index of documents in a thread, and again when the file of documents changes."""

    def __init__(self, bench: Bench, patience: float = PATIENCE) -> None:
        self.bench = bench
        self.patience = patience
        self._lock = threading.Lock()
        self._index: Future[Shelf | None] | None = None
        self._done, self._all = 0, 0

    def start(self) -> Future[Shelf | None]:
        """Open the index in a thread; after a failure, or when the file of documents has changed, open it again."""
        with self._lock:
            if self._index is None or (self._index.done() and self._is_outdated(self._index)):
                self._done, self._all = 0, 0
                self._index = Future()
                threading.Thread(target=self._open, args=[self._index], name="cranfield-shelf", daemon=True).start()
            return self._index

    def shelf(self) -> Shelf | None:
        """The index, or None if there are no documents; Refusal with the progress while the index is built."""
        if self.bench.collection is None:
            return None
        index = self.start()
        if wait([index], self.patience).done:
            return index.result()
        raise Refusal(
            f"the documents are being indexed{self.progress}",
            503,
            safe="",
            advice="Pages with texts open when that is done. This page reloads by itself.",
            wait=AGAIN,
            reload=True,
        )

    @property
    def progress(self) -> str:
        """The share of the documents that are indexed, as the end of a sentence."""
        return f": {min(99, 100 * self._done // self._all)} %" if self._all else ""

    @staticmethod
    def _is_outdated(index: Future[Shelf | None]) -> bool:
        shelf = None if index.exception() else index.result()
        return shelf is None or shelf.changed

    def _open(self, index: Future[Shelf | None]) -> None:
        try:
            index.set_result(self.bench.shelf(self._tell))
        except BaseException as error:  # raised for the pages that wait for a document
            index.set_exception(error)

    def _tell(self, done: int, all: int | None) -> None:
        self._done, self._all = done, all or 0


SERVER = re.compile(r"connection (failed: connection )?(to|on) [^;\n]*")  # in messages of PostgreSQL's driver
REPEAT = 60.0  # seconds


class Site:
    """A served workspace: its accounts, jobs, limits and index of documents."""

    def __init__(self, bench: Bench, jobs: Jobs, manner: ServerSettings, limits: ClientLimits | None = None) -> None:
        self.bench = bench
        self.jobs = jobs
        self.manner = manner
        self.limits = limits or ClientLimits()
        self.accounts = Accounts(bench.database)
        self.throttle = SignInThrottle(time.monotonic)
        self.index_loader = IndexLoader(bench)
        self.uploads = StagingArea(bench.state)
        self.tasks = Tasks(self.public_text)
        self.trainer = ModelTrainer(jobs)
        self._printed: dict[str, float] = {}

    @cached_property
    def passwords(self) -> Passwords:
        """The password hasher, built when first needed."""
        return Passwords()

    def shelf(self) -> Shelf | None:
        """The index of documents by id; None if there are no documents."""
        return self.index_loader.shelf()

    def public_text(self, text: str) -> str:
        """A message for browsers: without the path of the workspace and the server of its database."""
        bench = self.bench
        if os.sep not in text:
            return text
        text = self.uploads.plain_text(text)
        for folder in dict.fromkeys((os.path.realpath(bench.folder), bench.folder)):
            text = text.replace(f"{folder}{os.sep}", "").replace(folder, bench.name)
        name = bench.database.name
        if os.path.dirname(name) or "://" in name:
            text = text.replace(name, "the database")
        return SERVER.sub("no connection to its server", text)

    def log_once(self, text: str) -> None:
        """Print a message on the server's own output, at most once a minute."""
        now = time.monotonic()
        if self._printed.get(text, -REPEAT) + REPEAT <= now:
            self._printed = {past: at for past, at in self._printed.items() if at + REPEAT > now} | {text: now}
            print(f"cranfield serve: {text}", file=sys.stderr)

    def document(self, id: str) -> Document | None:
        """A document by its id; None if the collection does not have it."""
        shelf = self.shelf()
        return None if shelf is None else shelf.get(id)

    def known_ids(self) -> KnownIds:
        """The topics and documents that exist; Refusal while the documents are being indexed."""
        shelf = self.shelf()
        return KnownIds(self.bench.topic_ids(), None if shelf is None else shelf.has)

    def query_of(self, topic: str) -> str:
        """The query of a topic; empty if it is unknown."""
        topics = self.bench.topics()
        return "" if topics is None else topics.queries.get(topic, "")

    def begin_local_session(self) -> str:
        """Sign in the person who started the server; return the secret of the session."""
        name = local_name()
        if self.accounts.find(name) is None:
            self.accounts.create(name, "lead", None)
        return self.accounts.begin(name, local=True)

    def unclosed_work(self, name: str) -> str:
        """A round or comparison of an assessor that is open or paused, such as "round 'pilot'"; empty if there is none."""
        from cranfield.judging.comparisons import unclosed_comparisons
        from cranfield.judging.round_plan import CLOSED

        with self.bench.log.reading() as transaction:
            for plan, state in transaction.all_rounds():
                if state != CLOSED and (not plan.assessors or name in plan.assessors):
                    return f"round {shortened(plan.name)!r}"
            for comparison in unclosed_comparisons(transaction):
                if not comparison.assessors or name in comparison.assessors:
                    return f"comparison {shortened(comparison.name)!r}"
        return ""


def local_name() -> str:
    """The name of the user of this machine, if an account may have it; else "me"."""
    try:
        name = getpass.getuser()
        return name if is_name(name) else "me"
    except (KeyError, OSError):
        return "me"
