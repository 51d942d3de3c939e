"""Files of events into a log and out of it: every row sound, or nothing is added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Cell, Layout, Table
from cranfield.answer import plain as plain_values
from cranfield.columns import counted
from cranfield.errors import BadLineError, DataError
from cranfield.formats.events.format import Reading, event_format
from cranfield.online.event import Event, refuse_ahead
from cranfield.online.log import connect, sort_out
from cranfield.online.privacy import agree_on_units, refuse_other_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from cranfield.answer import Part
    from cranfield.online.log import Log
    from cranfield.online.privacy import Pseudonyms

MOST_NAMED = 20  # rows that were passed over and are told one by one


@dataclass(frozen=True)
class Ingested(Answer):
    """What came of files of events: how many were read, new, known before or passed over, by kind, and what to know."""

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
    reading: Reading,
    format: str | None = None,
    *,
    now: datetime,
    lenient: Callable[[str], object] | None = None,
) -> Iterator[tuple[int, Event]]:
    """The events of a file, each with the number of its row; `lenient` is told what is wrong with rows passed over."""
    for number, row in event_format(reading.path, format).rows(reading):
        try:
            event = Event.of({name: value for name, value in row.items() if value is not None})
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
    log: Log,
    paths: Sequence[str],
    format: str | None = None,
    *,
    now: datetime,
    time: str | None = None,
    lenient: bool = False,
    pseudonyms: Pseudonyms | None = None,
) -> Ingested:
    """Add the events of files to a log, all or none; the same file again adds nothing.

    `time` is when it was, for formats that do not say; `lenient` passes over rows that are wrong and names them.
    """
    refuse_other_key(log, pseudonyms)
    passed_over: list[str] = []
    readings = [Reading(path, time) for path in paths]

    def events() -> Iterator[tuple[str, int, Event]]:
        for reading in readings:
            for number, event in read_events(reading, format, now=now, lenient=passed_over.append if lenient else None):
                yield reading.path, number, event if pseudonyms is None else pseudonyms.event(event)

    kinds: Counter[str] = Counter()
    lines = []
    for _, _, event in events():
        kinds[event.kind] += 1
        lines.append(f"{event.line()}\n".encode())
    notes, told = tuple(note for reading in readings for note in reading.notes), tuple(passed_over)
    log.pack()
    _refuse_reused(log, lines, events)
    agree_on_units(log, pseudonyms)
    log.append_lines(lines)
    log.seal()
    packed = log.pack()
    formats = tuple(event_format(path, format).name for path in paths)
    return Ingested(
        tuple(paths),
        formats,
        len(lines),
        packed.new,
        packed.repeats,
        told,
        dict(kinds.most_common()),
        packed.days,
        notes,
    )


def _refuse_reused(log: Log, lines: Sequence[bytes], events: Callable[[], Iterator[tuple[str, int, Event]]]) -> None:
    """Stop at the first event whose id is another event's, in the files or in the log, and name its row."""
    waiting = log.waiting()
    with log.in_words():
        repeats = sort_out(connect(), [*waiting, *lines], log.checked_parts(quick=True))
    reused = [each for each in repeats.reused if each.row >= len(waiting)]
    if not reused:
        return
    first = reused[0].row - len(waiting)
    path, number, event = next(islice(events(), first, None))
    raise BadLineError(
        path,
        number,
        f"event_id {event.event_id!r} stands for another event of {event.day} already"
        f"{f' (so do {len(reused) - 1:,} more)' if reused[1:] else ''}; an id is for one event, and nothing was added",
    )
