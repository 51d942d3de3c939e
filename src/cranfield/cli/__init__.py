"""The command line: a command is one module here, which parses, calls one verb of the workspace, and shows the answer.

A module that states its PLACE in the order of the work is a command: its file's name is the command's (a keyword has
an underscore behind it), its docstring the command's help. `cranfield --help` reads the first lines of the files and
imports none of them, so that it needs neither NumPy nor the measures. Every error ends here as one line and an exit
code; one that nobody foresaw is a crash (`cli.crash`).
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cranfield import __version__
from cranfield.columns import legible
from cranfield.errors import CranfieldError, DataError, DataWarning, UnjudgedWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["BAD_USAGE", "COMMANDS", "cli", "in_words", "main"]

BAD_USAGE, BAD_DATA, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG}  # what writing to standard output may end in


def commands_in(folders: Iterable[str], read: Callable[[str], bytes]) -> dict[str, str]:
    """Each command and the first sentence of its help, in the order of the work; `read` gives a file's bytes."""
    from pkgutil import iter_modules

    commands = []
    for finder, name, _ in iter_modules(folders):
        first, _, rest = read(os.path.join(_folder_of(finder), f"{name}.py")).partition(b"\n")
        _, stated, place = rest.partition(b"\nPLACE = ")
        if stated:
            number = int(place.split(maxsplit=1)[0])
            commands.append((number, name.removesuffix("_"), first.decode().strip('"')))
    return {name: sentence for _, name, sentence in sorted(commands)}


def _folder_of(finder: Any) -> str:
    """The folder in which a finder of modules looks: on disk, or in a zip file."""
    folder: str = finder.path if hasattr(finder, "path") else os.path.join(finder.archive, finder.prefix)
    return folder


LOADER: Any = __spec__.loader
COMMANDS = commands_in(__path__, LOADER.get_data)


class Commands(click.Group):
    """The commands, each loaded when it is first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the one module that is needed."""
        if name not in COMMANDS:
            return None
        from importlib import import_module
        from keyword import iskeyword

        command: click.Command = import_module(f"cranfield.cli.{name}{'_' * iskeyword(name)}").command
        command.name = name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        raise click.UsageError(f"no command {name!r}; {hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _ending_in_words(), _legible(), _warning():
            from cranfield.cli.output import telling_where

            with telling_where(), _saying_which_core():
                answer = super().invoke(ctx)
            sys.stdout.flush()
        return answer

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read what was typed; what cannot be understood is told without escapes for the terminal."""
        with _ending_in_words(), _legible():
            return super().make_context(*arguments, **options)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run, help and version included; nothing that click itself raises ends in a traceback either."""
        with _ending_in_words():
            return super().main(*arguments, **options)


@contextmanager
def _ending_in_words() -> Iterator[None]:
    """The boundary of the command line: every exception ends as one line on standard error and an exit code."""
    try:
        yield
    except (click.exceptions.Exit, click.ClickException):
        raise
    except BrokenPipeError:
        _close_stdout()
        sys.exit(BROKEN_PIPE)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(INTERRUPTED)
    except Exception as error:
        problem, code = in_words(error) or _crashed(error)
        if isinstance(error, OSError):
            _close_stdout()
        _say(problem)
        raise SystemExit(code) from error


def in_words(error: Exception) -> tuple[str, int] | None:
    """What to say about an error, and the exit code; None for a crash."""
    if isinstance(error, UnjudgedWarning):
        return f"{error} (--allow-unjudged goes on)", BAD_DATA
    if isinstance(error, CranfieldError):
        return str(error), BAD_DATA if isinstance(error, DataError) else BAD_USAGE
    if isinstance(error, MemoryError):
        return "not enough memory", BAD_DATA
    if isinstance(error, OSError):
        return _of_the_system(error), BAD_DATA
    if isinstance(error, ImportError):
        from cranfield.extras import advice

        if (missing := advice(error)) is not None:
            return str(missing), BAD_USAGE
    return None


def _crashed(error: Exception) -> tuple[str, int]:
    from cranfield.cli import crash

    return crash.sentence(error), crash.EXIT_CODE


def _of_the_system(error: OSError) -> str:
    """An error of the operating system as a sentence: a file's name, or what cannot be written."""
    said = error.strerror or str(error) or type(error).__name__
    where = error.filename or ("standard output" if error.errno in FULL else None)
    name = os.fsdecode(where) if isinstance(where, (str, bytes)) else where
    return said if name is None else f"{name}: {said}"


def _say(problem: str) -> None:
    from cranfield.cli.output import note

    note(f"cranfield: {' '.join(problem.splitlines())}")


@contextmanager
def _legible() -> Iterator[None]:
    """Spell out what cannot be seen in click's own complaints, which quote what was typed."""
    try:
        yield
    except click.ClickException as error:
        error.message = legible(error.message)  # type: ignore[misc]  # it is what show prints
        raise


@contextmanager
def _warning() -> Iterator[None]:
    """Print each warning about the data once; stop at one that leaves nothing to score, unless --allow-unjudged is there."""
    said: set[str] = set()

    def say(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if not issubclass(category, DataWarning):
            others(message, category, *where)
        elif str(message) not in said:
            said.add(str(message))
            from cranfield.cli.output import warning

            warning(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.simplefilter("error", UnjudgedWarning)
        others: Any = warnings.showwarning
        warnings.showwarning = say  # type: ignore[assignment]
        yield


_said_which_core: list[bool] = []


@contextmanager
def _saying_which_core() -> Iterator[None]:
    """Say once that numbers came from the NumPy twin, unless that was asked for; help and listings use neither core."""
    try:
        yield
    except click.exceptions.Exit as stop:
        if stop.exit_code:  # a verdict; help leaves with 0
            _say_which_core()
        raise
    _say_which_core()


def _say_which_core() -> None:
    kernels = sys.modules.get("cranfield.kernels")
    if kernels is None or kernels.NATIVE or os.environ.get("CRANFIELD_KERNEL") or _said_which_core:
        return
    _said_which_core.append(True)
    from cranfield.cli.output import notes

    notes(["cranfield runs without its native core, with the same numbers; installed with a C compiler it is faster"])


def _close_stdout() -> None:
    """Let what is still buffered go nowhere, so that Python has nothing to complain about at its end."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


@click.command(
    "cranfield",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="cranfield %(version)s")
def cli() -> None:
    """Find out how good a search system is, and whether a new one is really better.

    \b
    $ cranfield eval qrels.txt bm25.run dense.run -m "nDCG@10 AP RR@10"
    """


def _open_closed() -> None:
    """Put something in place of standard streams that are closed, or the first file opened would stand there.

    Reading from or writing data to one is an error of the system, as it would be without this; messages go nowhere.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            access = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)[number]
            there = os.open(os.devnull, access)
            if there != number:
                os.dup2(there, number)
                os.close(there)
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    _open_closed()
    gc.set_threshold(100_000, 20, 20)  # what a command makes is used to its end; garbage is looked for seldom
    cli.main(None if arguments is None else list(arguments), prog_name="cranfield")
    raise SystemExit(0)


def program() -> NoReturn:
    """Run as a process of its own, and leave without taking apart piece by piece what is given back as a whole anyway."""
    threading.excepthook = _report_thread
    try:
        main()
    except KeyboardInterrupt:  # before or after the command itself
        _leave(INTERRUPTED)
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as stop:
        if isinstance(stop.code, int) and threading.active_count() == 1:
            _leave(stop.code)
        raise


def _report_thread(crash: Any) -> None:
    """Report the crash of a thread whose exception reaches nobody."""
    if crash.exc_value is not None and not issubclass(crash.exc_type, SystemExit):
        from cranfield.cli.crash import sentence

        _say(sentence(crash.exc_value))


def _leave(code: int) -> None:
    """End the process at once, all that is to be done at its end done; return where the last words cannot be said."""
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return  # Python says so, in its own words
    os._exit(code)
