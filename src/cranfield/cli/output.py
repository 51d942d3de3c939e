"""Output: data goes to standard output or a file, everything else to standard error.

`show` writes every answer, so one place knows the formats. Text is UTF-8 whatever the locale. In data (CSV, TSV, TREC) ids
keep their bytes; in text for people, and on a terminal, control characters and bytes that are not UTF-8 are escaped.

A progress bar shows on a terminal while anything takes more than a second. It is one line of standard error, and it is gone
when the command prints its answer. A timer draws it first, so that a command which ends within a second draws nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cranfield.base.notifications import checked_before_writing, notes_to, tell_writing, used_options, written_files
from cranfield.base.parameters import masked
from cranfield.base.text_layout import folded, for_screen, in_bytes, legible
from cranfield.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cranfield.base.results import Answer
    from cranfield.cli.command_classes import CranfieldCommand

Shown = TypeVar("Shown", bound="Answer")
COLOURS = {"head": {"bold": True}, "best": {"fg": "green", "bold": True}, "dim": {"dim": True}}
DIGITS = 4  # default number of decimals for people; programs get all of them
FEWEST_LIMITS = 2  # lines about the limits of an answer, however many warnings come before it
FOR_PEOPLE = ("text", "table")  # two names of the same format
BARE = ("csv", "tsv", "trec")  # shapes that have no room for anything but data
CHART_ENDINGS = (".svg", ".png", ".pdf", ".html", ".vl.json")
PATIENCE = 1.0  # seconds before the bar is drawn
PAUSE = 0.1  # seconds from one drawing to the next
CELLS = 40  # width of the bar itself
ERASE_LINE = "\r\x1b[K"


def show(answer: Answer, shape: str, output: str | None = None, **how: Any) -> None:
    """Write an answer to a file or standard output, and its notes to standard error.

    A file with the ending of a chart gets the chart, if such an answer has one. `how` goes to `rendered`.
    """
    if not draw_chart(answer, output):
        put(rendered(answer, shape, output, **how), output)
        for line in answer.basis() if shape in BARE else []:
            note(line)
    if shape in FOR_PEOPLE:
        limits(answer, how.get("verbose", False), output)
    elif shape not in ("markdown", "html") and not answer.ends_with_notes:
        notes(answer.notes(shell=True))


def show_answer(function: Callable[..., Shown], *arguments: Any, counting: str = "", **typed: Any) -> Shown:
    """Call a function with the options of a command, show its answer, and return it.

    `counting` says what a progress bar counts, for a function that reports its progress.
    """
    display = {name: typed.pop(name) for name in options.DISPLAY if name in typed}
    if counting:
        with progress(counting) as tell:
            answer = function(*arguments, progress=tell, **typed)
    else:
        answer = function(*arguments, **typed)
    show(answer, **display)
    return answer


def listing(help: str | None, all_members: str, one_member: str = "") -> CranfieldCommand:
    """A command that lists the members of a kind, or explains one; both arguments name functions of `commands.listings`."""

    def show_members(name: str | None = None, **display: Any) -> None:
        from cranfield.commands import listings

        show(getattr(listings, all_members)() if name is None else getattr(listings, one_member)(name), **display)

    argument = [click.argument("name", required=False)] if one_member else []
    return options.command(help)(options.together(*argument, options.output("table", "json"))(show_members))


def add_listing(
    group: click.Group, name: str, all_members: str, one_member: str = ""
) -> Callable[[Callable[[], None]], None]:
    """Add such a command to a group. The decorated function has the help as its docstring, and does nothing."""
    return lambda function: group.add_command(listing(function.__doc__, all_members, one_member), name)


def limits(answer: Answer, verbose: bool = False, output: str | None = None) -> None:
    """Print the limits of an answer below its text, after a blank line if one screen shows both."""
    from cranfield.base.results import MOST_LIMITS, limited

    sentences = [] if answer.ends_with_notes else answer.limits(shell=True, verbose=verbose)
    room = max(FEWEST_LIMITS, MOST_LIMITS - len(_warned))
    _warned.clear()
    lines = limited(sentences, terminal_width(sys.stderr), verbose, most=room)
    if lines and output in (None, "-") and sys.stdout.isatty() and sys.stderr.isatty():
        lines = ["", *lines]
    for line in lines:
        click.echo(line, err=True)


def rendered(
    answer: Any,
    shape: str,
    output: str | None = None,
    *,
    per_topic: bool = False,
    digits: int | None = None,
    every: bool = False,
    bars: bool | None = None,
    spreadsheet: bool = False,
    verbose: bool = False,
) -> str:
    """An answer in one of its formats, fitted to the screen if it does not go to a file."""
    places = DIGITS if digits is None else digits
    if shape in FOR_PEOPLE:
        width = terminal_width(sys.stdout) if output is None else None
        screen = {"limit": width, "style": style(output), "ascii_only": ascii_only(output)}
        to_file = output not in (None, "-")  # a file is read later, by people who do not know the command
        whole = {"verbose": verbose or to_file, "limits": False}
        text = str(answer.to_text(per_topic, places, every=every, bars=bars, **whole, **screen))
        limiting = answer.limits(shell=True, verbose=True) if to_file and not answer.ends_with_notes else []
        return "\n".join([text, "", *map(legible, limiting)]) if limiting else text
    if shape == "markdown":
        return str(answer.to_markdown(per_topic, places, every=every))
    if shape == "html":
        return str(answer.to_html(per_topic, places, every=every, page=True))
    if shape == "junit":
        return str(answer.to_junit())
    if shape == "json":
        return str(answer.to_json(per_topic, digits))
    if shape == "trec":
        data = str(answer.to_trec(per_topic, places))
    else:
        write = answer.to_csv if shape == "csv" else answer.to_tsv
        data = str(write(per_topic, digits, spreadsheet=spreadsheet))
    return data if output not in (None, "-") else for_screen(data, sys.stdout)


def draw_chart(answer: Any, path: str | None) -> bool:
    """Write a chart if the file has the ending of a chart and such an answer has a chart; return whether it did."""
    if path is None or not is_chart(path):
        return False
    from cranfield.base.results import Both
    from cranfield.formats.streams import write_bytes
    from cranfield.reports.charts import rendered as rendered_chart
    from cranfield.reports.result_charts import chart

    if isinstance(answer, Both):
        answer = answer.first
    if chart.dispatch(type(answer)) is chart.dispatch(object):
        return False
    write_bytes(path, [rendered_chart(chart(answer), path.rpartition(".")[2])])
    return True


def is_chart(path: str | None) -> bool:
    """Whether a file has the ending of a chart."""
    return path is not None and path.endswith(CHART_ENDINGS)


def put(text: str, path: str | None = None) -> None:
    """Write the data of a command, with a newline at the end."""
    tell_writing()
    raw = encoded(text)
    if path is not None and path != "-":
        from cranfield.formats.streams import write_bytes

        write_bytes(path, [raw])
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def encoded(text: str) -> bytes:
    """The bytes of a text, with a newline at the end."""
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogateescape")


def note(text: str) -> None:
    """Print a message that is not data, without passwords; it is wrapped between words on a terminal."""
    click.echo(folded(legible(masked(text)), terminal_width(sys.stderr), 2), err=True)


def notes(sentences: Iterable[str]) -> None:
    """Print notes about an answer, one sentence per line."""
    for sentence in sentences:
        note(f"note: {sentence}")


_warned: list[str] = []  # lines of warnings before an answer; its limits then get fewer lines


def warning(text: str) -> None:
    """Print, before an answer, a problem that may make it meaningless."""
    _warned.extend(folded(f"warning: {legible(text)}", terminal_width(sys.stderr), 2).splitlines())
    note(f"warning: {text}")


_about: dict[str, str] = {}


def about(path: str, words: str) -> None:
    """Add words about a file to the line that reports the written files; for standard output, print them at once."""
    if path == "-":
        note(words)
    else:
        _about[path] = words


@contextmanager
def reporting_files() -> Iterator[None]:
    """Report the files that a command has written, in one line at its end; print notes about logs at once.

    If an option was typed that changes nothing, the command stops before it writes anything.
    """
    _about.clear()
    with (
        written_files() as files,
        notes_to(lambda sentence: note(f"note: {sentence}")),
        used_options() as used,
        checked_before_writing(lambda: options.refuse_unused(used)),
    ):
        try:
            yield
        finally:
            if files:
                note(f"wrote {', '.join(map(_with_size, files))}")


def _with_size(path: str) -> str:
    """A file or folder with its size, and its content if that is known."""
    inside = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
    size = in_bytes(sum(map(os.path.getsize, inside)))
    words = f": {_about[path]}" if path in _about else ""
    return f"{path} ({f'{len(inside)} files, ' if os.path.isdir(path) else ''}{size}){words}"


def style(path: str | None = None) -> Callable[[str, str], str] | None:
    """A function that colours text for standard output; None unless it is a terminal and NO_COLOR is unset."""
    plain = path is not None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return None
    return lambda kind, text: click.style(text, **COLOURS[kind])  # type: ignore[arg-type]


def terminal_width(stream: Any) -> int | None:
    """The width of a stream's terminal; None if the stream is not a terminal."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def ascii_only(path: str | None = None) -> bool:
    """Whether the output cannot show block characters."""
    encoding = (sys.stdout.encoding or "ascii") if path is None else "utf-8"
    try:
        "█▏░│".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False


@contextmanager
def progress(
    what: str, timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function that takes the steps done and the steps in all; None where no bar can be drawn."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _Bar(what)
    waiting = timer(PATIENCE, bar.start)
    waiting.daemon = True
    waiting.start()
    try:
        yield bar.update
    finally:
        waiting.cancel()
        waiting.join()
        bar.stop()


class _Bar:
    """One line: what is counted, a bar if the total is known, the count, and the time so far."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.done = 0
        self.total: int | None = None
        self.began = time.monotonic()
        self.last_drawing: float | None = None  # None until the bar is visible
        self.lock = threading.Lock()  # the timer and several workers may draw at once

    def start(self) -> None:
        """Make the bar visible."""
        with self.lock:
            self._draw()

    def update(self, done: int, total: int | None) -> None:
        """Count; draw again if the bar is visible and was not drawn just now."""
        with self.lock:
            self.done, self.total = done, total
            if self.last_drawing is not None and (time.monotonic() - self.last_drawing >= PAUSE or done == total):
                self._draw()

    def stop(self) -> None:
        """Show the last count, and take the bar away."""
        with self.lock:
            if self.last_drawing is not None:
                self._draw()
                sys.stderr.write(ERASE_LINE)
                sys.stderr.flush()

    def _draw(self) -> None:
        self.last_drawing = time.monotonic()
        minutes, seconds = divmod(int(self.last_drawing - self.began), 60)
        count = f"{self.done}/{self.total}" if self.total else str(self.done)
        line = " ".join(filter(None, (self.what, self._cells(), count, f"{minutes}:{seconds:02}")))
        from shutil import get_terminal_size  # it imports what a small command does without

        sys.stderr.write(ERASE_LINE + line[: get_terminal_size().columns - 1])
        sys.stderr.flush()

    def _cells(self) -> str:
        """The bar: full cells for steps that are done; nothing where the total is unknown."""
        if not self.total:
            return ""
        full = round(CELLS * min(self.done / self.total, 1))
        try:
            "━".encode(sys.stderr.encoding or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return f"[{'#' * full}{' ' * (CELLS - full)}]"
        return "━" * full + "─" * (CELLS - full)
