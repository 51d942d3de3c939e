"""Where output goes: data to standard output or a file, everything else to standard error.

Every answer is written by `show`: one place that knows the shapes. Text is written as UTF-8 whatever the locale. In data
(CSV, TSV, TREC) ids go out byte for byte as they came in; what people read, and everything on a terminal, has control
characters and bytes that are no UTF-8 spelt out.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cranfield.columns import folded, for_screen, in_bytes, legible
from cranfield.hearing import checked_before_writing, heard, tell_writing, used_options, written_files
from cranfield.parameters import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cranfield.answer import Answer

COLOURS = {"head": {"bold": True}, "best": {"fg": "green", "bold": True}, "dim": {"dim": True}}
DIGITS = 4  # decimals for people, unless told otherwise; programs get all of them
FEWEST_LIMITS = 2  # lines of what limits an answer, however many warnings stand before it
FOR_PEOPLE = ("text", "table")  # the same in two words
BARE = ("csv", "tsv", "trec")  # shapes that have no room for anything but data
CHART_ENDINGS = (".svg", ".png", ".pdf", ".html", ".vl.json")


def show(answer: Answer, shape: str, output: str | None = None, **how: Any) -> None:
    """Write an answer to a file or standard output, and to standard error what to know beside it.

    A file whose ending is a chart's gets the chart, if there is one of such an answer. `how` goes to `written`.
    """
    if not drawn(answer, output):
        put(written(answer, shape, output, **how), output)
        for line in answer.basis() if shape in BARE else []:
            note(line)
    if shape in FOR_PEOPLE:
        limits(answer, how.get("verbose", False), output)
    elif shape not in ("markdown", "html") and not answer.ends_with_notes:
        notes(answer.notes(shell=True))


def limits(answer: Answer, verbose: bool = False, output: str | None = None) -> None:
    """Tell below the text of an answer what limits it; a blank line between where a screen shows both."""
    from cranfield.answer import MOST_LIMITS, limited

    sentences = [] if answer.ends_with_notes else answer.limits(shell=True, verbose=verbose)
    room = max(FEWEST_LIMITS, MOST_LIMITS - len(_warned))
    _warned.clear()
    lines = limited(sentences, terminal_width(sys.stderr), verbose, most=room)
    if lines and output in (None, "-") and sys.stdout.isatty() and sys.stderr.isatty():
        lines = ["", *lines]
    for line in lines:
        click.echo(line, err=True)


def written(
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
    """An answer in one of its shapes: for the screen, if it does not go to a file."""
    places = DIGITS if digits is None else digits
    if shape in FOR_PEOPLE:
        screen = {"limit": screen_width(output), "style": style(output), "ascii_only": ascii_only(output)}
        kept = output not in (None, "-")  # a file is read later, by those who do not know what was typed
        whole = {"verbose": verbose or kept, "limits": False}
        text = str(answer.to_text(per_topic, places, every=every, bars=bars, **whole, **screen))
        limiting = answer.limits(shell=True, verbose=True) if kept and not answer.ends_with_notes else []
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


def drawn(answer: Any, path: str | None) -> bool:
    """Write a chart if the file's ending is that of one and there is one of such an answer; say whether it was."""
    if path is None or not is_chart(path):
        return False
    from cranfield.answer import Both
    from cranfield.formats.streams import write_bytes
    from cranfield.report.charts import rendered
    from cranfield.report.figures import chart

    if isinstance(answer, Both):
        answer = answer.first
    if chart.dispatch(type(answer)) is chart.dispatch(object):
        return False
    write_bytes(path, [rendered(chart(answer), path.rpartition(".")[2])])
    return True


def is_chart(path: str | None) -> bool:
    """Whether a file's ending is that of a chart."""
    return path is not None and path.endswith(CHART_ENDINGS)


def put(text: str, path: str | None = None) -> None:
    """Write the command's data, ended by a newline."""
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
    """The bytes of a text that ends with a newline."""
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogateescape")


def note(text: str) -> None:
    """Tell the user something that is not data, wrapped between words where a terminal shows it; passwords are masked."""
    click.echo(folded(legible(masked(text)), terminal_width(sys.stderr), 2), err=True)


def notes(sentences: Iterable[str]) -> None:
    """Tell what to know beside an answer, a sentence a line."""
    for sentence in sentences:
        note(f"note: {sentence}")


_warned: list[str] = []  # lines of warnings that stand before an answer: what limits it then takes fewer


def warning(text: str) -> None:
    """Tell, before an answer, what may make it meaningless."""
    _warned.extend(folded(f"warning: {legible(text)}", terminal_width(sys.stderr), 2).splitlines())
    note(f"warning: {text}")


_about: dict[str, str] = {}


def about(path: str, words: str) -> None:
    """Say what a file holds, in the line that says that it was written; of standard output, in a line of its own."""
    if path == "-":
        note(words)
    else:
        _about[path] = words


@contextmanager
def telling_where() -> Iterator[None]:
    """Say at the end which files a command has written, in one line; and at once what there is to know of logs it reads.

    Nothing is written if an option was typed that changes nothing.
    """
    _about.clear()
    with (
        written_files() as files,
        heard(lambda sentence: note(f"note: {sentence}")),
        used_options() as used,
        checked_before_writing(lambda: _refuse_unused(used)),
    ):
        try:
            yield
        finally:
            if files:
                note(f"wrote {', '.join(map(_as_written, files))}")


def _refuse_unused(used: set[str]) -> None:
    from cranfield.cli.options import refuse_unused  # which takes longer to import than help to print

    refuse_unused(used)


def _as_written(path: str) -> str:
    """A file or folder with its size, and what it holds where that is known."""
    inside = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
    size = in_bytes(sum(map(os.path.getsize, inside)))
    words = f": {_about[path]}" if path in _about else ""
    return f"{path} ({f'{len(inside)} files, ' if os.path.isdir(path) else ''}{size}){words}"


def style(path: str | None = None) -> Callable[[str, str], str] | None:
    """How to colour what goes to standard output: only on a terminal, and not where NO_COLOR is set."""
    plain = path is not None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return None
    return lambda kind, text: click.style(text, **COLOURS[kind])  # type: ignore[arg-type]


def screen_width(path: str | None = None) -> int | None:
    """How wide a line may be: a terminal has an edge, a file or a pipe has none."""
    return None if path is not None else terminal_width(sys.stdout)


def terminal_width(stream: Any) -> int | None:
    """How wide a stream's terminal is; None where it is none."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def ascii_only(path: str | None = None) -> bool:
    """Whether what shows the text can show no blocks."""
    encoding = (sys.stdout.encoding or "ascii") if path is None else "utf-8"
    try:
        "█▏░│".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False
