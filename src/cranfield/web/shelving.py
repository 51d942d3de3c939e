"""The documents by id: their index is made in a thread, and pages that need a text say meanwhile how far it is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal

if TYPE_CHECKING:
    from cranfield.formats.shelf import Shelf
    from cranfield.workspace.bench import Bench

PATIENCE = 1.0  # seconds that a page waits: an index that is there opens at once
AGAIN = 3.0  # seconds after which a page looks again


class Shelving:
    """One shelf at a time, opened again when the file of documents has changed."""

    def __init__(self, bench: Bench, patience: float = PATIENCE) -> None:
        self.bench = bench
        self.patience = patience
        self._lock = threading.Lock()
        self._shelf: Shelf | None = None
        self._failure: BaseException | None = None
        self._over: threading.Event | None = None  # of the thread at work
        self._done, self._all = 0, 0

    def begin(self) -> threading.Event | None:
        """Begin to open it, unless it is open or being opened; what is set when that is over."""
        with self._lock:
            if self._over is None and (self._shelf is None or self._shelf.changed):
                self._shelf, self._done, self._all = None, 0, 0
                self._over = threading.Event()
                threading.Thread(target=self._open, name="cranfield-shelf", daemon=True).start()
            return self._over

    def shelf(self) -> Shelf | None:
        """The shelf, None where there are no documents; while it is being made, a refusal that says how far it is."""
        if self.bench.collection is None:
            return None
        over = self.begin()
        ended = over is None or over.wait(self.patience)
        with self._lock:
            failure, self._failure = self._failure, None
            if ended and failure is not None:
                raise failure
            if ended and self._shelf is not None:
                return self._shelf
        raise Refusal(
            f"the documents are being indexed{self.progress}",
            503,
            safe="",
            advice="Pages with texts open when that is done; this one looks again by itself.",
            wait=AGAIN,
            reload=True,
        )

    @property
    def progress(self) -> str:
        """How far it is, as the end of a sentence."""
        return f": {min(99, 100 * self._done // self._all)} %" if self._all else ""

    def _open(self) -> None:
        shelf, failure = None, None
        try:
            shelf = self.bench.shelf(self._tell)
        except BaseException as error:  # told to whoever asks for a document
            failure = error
        with self._lock:
            self._shelf, self._failure = shelf, failure
            over, self._over = self._over, None
        if over is not None:
            over.set()

    def _tell(self, done: int, all: int | None) -> None:
        self._done, self._all = done, all or 0
