"""Ingest files of events into a log: either every row is valid, or nothing is added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import BadLineError, DataError
from cranfield.base.results import Answer, Cell, Layout, Table
from cranfield.base.results import plain as plain_values
from cranfield.base.text_layout import counted
from cranfield.experiments.event import UserEvent, refuse_ahead
from cranfield.experiments.log import EventLog, connect, find_new_events
from cranfield.experiments.privacy import Pseudonyms, agree_on_units, refuse_other_key
from cranfield.formats.event_files.format import EventReading, event_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from cranfield.base.results import Part

MOST_NAMED = 20  # skipped rows that are reported one by one


@dataclass(frozen=True)
class IngestResult(Answer):
    """The result of an ingest: events read, new, known before, skipped, and by kind."""

    files: tuple[str, ...]
    format: tuple[str, ...]
    read: int
    new: int
    repeats: int
    passed_over: tuple[str, ...]
    kinds: dict[str, int]
    days: tuple[str, ...]
    known: tuple[str, ...]  # notes of the readers

    def content(self, how: Layout) -> Iterable[Part]:
        again = f", {self.repeats:,} were there already" if self.repeats else ""
        over = f", {counted(len(self.passed_over), 'row')} passed over" if self.passed_over else ""
        span = f"; days {self.days[0]} to {self.days[-1]}" if self.days else ""
        yield f"{counted(self.new, 'event')} added of {self.read:,} read{again}{over}{span}."
        if self.kinds:
            rows: list[list[Cell | str]] = [[kind, Cell(f"{n:,}", n)] for kind, n in self.kinds.items()]
            yield Table(["kind", "events read"], rows)

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return [["kind", "events"], *([kind, n] for kind, n in self.kinds.items())]

    def plain(self, how: Layout) -> Any:
        return plain_values(self)

    def notes(self, shell: bool = False) -> list[str]:
        more = len(self.passed_over) - MOST_NAMED
        rest = [f"{more:,} more rows were passed over"] if more > 0 else []
        return [*self.known, *self.passed_over[:MOST_NAMED], *rest]


def read_events(
    reading: EventReading, format: str | None = None, *, now: datetime, lenient: Callable[[str], object] | None = None
) -> Iterator[tuple[int, UserEvent]]:
    """The events of a file with their row numbers; `lenient` is called with the problem of each skipped row."""
    for number, row in event_format(reading.path, format).rows(reading):
        try:
            event = UserEvent.of({name: value for name, value in row.items() if value is not None})
            refuse_ahead(event, now)
            event.line()
        except DataError as error:
            problem = BadLineError(reading.path, number, str(error))
            if lenient is None:
                raise problem from None
            lenient(str(problem))
            continue
        yield number, event


def ingest(
    log: EventLog,
    paths: Sequence[str],
    format: str | None = None,
    *,
    now: datetime,
    time: str | None = None,
    lenient: bool = False,
    pseudonyms: Pseudonyms | None = None,
) -> IngestResult:
    """Add the events of files to a log, all or none. Idempotent: the same file again adds nothing.

    `time` is the time of events in formats without times; `lenient` skips invalid rows and reports them.
    """
    refuse_other_key(log, pseudonyms)
    passed_over: list[str] = []
    readings = [EventReading(path, time) for path in paths]

    def events() -> Iterator[tuple[str, int, UserEvent]]:
        for reading in readings:
            for number, event in read_events(reading, format, now=now, lenient=passed_over.append if lenient else None):
                yield reading.path, number, event if pseudonyms is None else pseudonyms.event(event)

    kinds: Counter[str] = Counter()
    lines = []
    for _, _, event in events():
        kinds[event.kind] += 1
        lines.append(f"{event.line()}\n".encode())
    notes, skipped = tuple(note for reading in readings for note in reading.notes), tuple(passed_over)
    log.pack()
    _refuse_reused(log, lines, events)
    agree_on_units(log, pseudonyms)
    log.append_lines(lines)
    log.seal()
    packed = log.pack()
    files = (tuple(paths), tuple(event_format(path, format).name for path in paths))
    counts = (len(lines), packed.new, packed.repeats)
    return IngestResult(*files, *counts, skipped, dict(kinds.most_common()), packed.days, notes)


def _refuse_reused(
    log: EventLog, lines: Sequence[bytes], events: Callable[[], Iterator[tuple[str, int, UserEvent]]]
) -> None:
    """Raise BadLineError for the first event whose id belongs to another event, in the files or in the log."""
    waiting = log.waiting()
    with log.in_words():
        repeats = find_new_events(connect(), [*waiting, *lines], log.checked_parts(quick=True))
    reused = [each for each in repeats.reused if each.row >= len(waiting)]
    if reused:
        path, number, event = next(islice(events(), reused[0].row - len(waiting), None))
        more = f" (so do {len(reused) - 1:,} more)" if reused[1:] else ""
        problem = f"event_id {event.event_id!r} belongs to another event of {event.day} already{more}"
        raise BadLineError(path, number, f"{problem}; an id is for one event, and nothing was added")
