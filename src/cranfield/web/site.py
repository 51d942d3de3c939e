"""A workspace that is served: what every page shares."""

from __future__ import annotations

import os
import re
import sys
import time
from functools import cached_property
from typing import TYPE_CHECKING

from cranfield.http.limits import Limits
from cranfield.store.accounts import Accounts
from cranfield.web.shelving import Shelving
from cranfield.web.throttle import Throttle

if TYPE_CHECKING:
    from cranfield.collection import Document
    from cranfield.formats.shelf import Shelf
    from cranfield.http.serving import Manner
    from cranfield.web.passwords import Passwords
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.jobs import Jobs


SERVER = re.compile(r"connection (failed: connection )?(to|on) [^;\n]*")  # as PostgreSQL's driver names it
NOTED = 60.0  # seconds


class Site:
    """A workspace, who may come in, and what is being worked out."""

    def __init__(self, bench: Bench, jobs: Jobs, manner: Manner, limits: Limits | None = None) -> None:
        self.bench = bench
        self.jobs = jobs
        self.manner = manner
        self.limits = limits or Limits()
        self.accounts = Accounts(bench.database)
        self.throttle = Throttle(time.monotonic)
        self.shelving = Shelving(bench)
        self._noted: dict[str, float] = {}

    @cached_property
    def passwords(self) -> Passwords:
        """Hashes and checks, two at a time."""
        from cranfield.web.passwords import Passwords

        return Passwords()

    def shelf(self) -> Shelf | None:
        """The documents by id, opened once and again when they have changed; None where there are none."""
        return self.shelving.shelf()

    def told(self, text: str) -> str:
        """A message without what is nobody's business: where the workspace lies, and which server its database is on."""
        bench = self.bench
        if os.sep not in text:
            return text
        for folder in dict.fromkeys((os.path.realpath(bench.folder), bench.folder)):
            text = text.replace(f"{folder}{os.sep}", "").replace(folder, bench.name)
        name = bench.database.name
        if os.path.dirname(name) or "://" in name:
            text = text.replace(name, "the database")
        return SERVER.sub("no connection to its server", text)

    def note(self, text: str) -> None:
        """The same message with all of that, for whoever runs the server: on its own output, once a minute."""
        now = time.monotonic()
        if self._noted.get(text, -NOTED) + NOTED <= now:
            self._noted = {known: at for known, at in self._noted.items() if at + NOTED > now} | {text: now}
            print(f"cranfield serve: {text}", file=sys.stderr)

    def document(self, id: str) -> Document | None:
        """A document; None where the collection does not have it."""
        shelf = self.shelf()
        return None if shelf is None else shelf.get(id)

    def query_of(self, topic: str) -> str:
        """What a topic asks for; empty where nobody knows."""
        topics = self.bench.topics()
        return "" if topics is None else topics.queries.get(topic, "")

    def has_unclosed_round(self, name: str) -> bool:
        """Whether there is a round, open or paused, in which somebody may judge or will again."""
        from cranfield.judge.plan import CLOSED, plans

        with self.bench.log.reading() as transaction:
            return any(
                state != CLOSED and (not plan.assessors or name in plan.assessors)
                for plan, state in plans(transaction.connection)
            )
