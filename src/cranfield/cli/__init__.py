"""The command line. A command is one module here: it parses, calls one function of `commands`, and shows the answer.

A module with a PLACE (its position in the order of the work) is a command. Its file name is the command's name (a keyword
has an underscore after it), and its docstring is the help. `cranfield --help` reads the first lines of the files and
imports none of them, so it needs neither NumPy nor the measures. Every error ends here as one line and an exit
code; an unforeseen error is a crash (`cli.crash`).
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
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from cranfield import __version__
from cranfield.base.errors import CranfieldError, DataError, DataWarning, PluginWarning, UnjudgedWarning
from cranfield.base.registry import Registry
from cranfield.base.text_layout import legible
from cranfield.cli.command_classes import Helped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["BAD_USAGE", "COMMANDS", "cli", "in_words", "main"]

BAD_USAGE, BAD_DATA, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG}  # errors of writing to standard output


class CommandEntry(NamedTuple):
    """A command: its name, the first sentence of its help, its place in the order of the work, and its click command."""

    name: str
    sentence: str
    place: int
    command: click.Command | None = None  # None: the module of that name here

    def load(self) -> click.Command:
        """The click command; its module is imported at the first use."""
        command = self.command
        if command is None:
            from importlib import import_module
            from keyword import iskeyword

            command = import_module(f"{__name__}.{self.name}{'_' * iskeyword(self.name)}").command
        command.name = self.name
        return command


def commands_in(folders: Iterable[str], read: Callable[[str], bytes]) -> Iterator[CommandEntry]:
    """The commands among the modules of these folders; `read` returns the bytes of a file."""
    from pkgutil import iter_modules

    for finder, name, _ in iter_modules(folders):
        entry = _entry_of(name, read(os.path.join(_folder_of(finder), f"{name}.py")))
        if entry is not None:
            yield entry


def _entry_of(module: str, source: bytes) -> CommandEntry | None:
    """The command in a module; None if the module has no PLACE."""
    first, _, rest = source.partition(b"\n")
    _, is_command, place = rest.partition(b"\nPLACE = ")
    if not is_command:
        return None
    return CommandEntry(module.removesuffix("_"), first.decode().strip('"'), int(place.split(maxsplit=1)[0]))


def _folder_of(finder: Any) -> str:
    """The folder in which a finder of modules looks: on disk, or in a zip file."""
    folder: str = finder.path if hasattr(finder, "path") else os.path.join(finder.archive, finder.prefix)
    return folder


def _of_package(name: str, value: Any) -> CommandEntry:
    """The command of another package: a click command, or a module that holds one as `command`."""
    command = value if isinstance(value, click.Command) else getattr(value, "command", None)
    if not isinstance(command, click.Command):
        raise TypeError("expected a click command, or a module that holds one as `command`")
    return CommandEntry(name, command.get_short_help_str(100), getattr(value, "PLACE", LAST), command)


LAST = 1000  # the place of a command that states none
LOADER: Any = __spec__.loader


class CommandRegistry(Registry[CommandEntry]):
    """The commands by name. A command that is typed as its module is called is found without reading the other files."""

    def load(self) -> None:
        """Read the first lines of all files, once."""
        if not self._loaded:
            for entry in commands_in(__path__, LOADER.get_data):
                self.add(entry, module=__name__)
        super().load()

    def find(self, name: str, installed: bool = True) -> CommandEntry | None:
        """The command of that name, in its own file or among all."""
        if not self._loaded and name.isidentifier():
            try:
                source = LOADER.get_data(os.path.join(__path__[0], f"{name}.py"))
            except OSError:
                source = b""
            if (entry := _entry_of(name, source)) is not None:
                return entry
        return super().find(name, installed)


COMMANDS = CommandRegistry("command", "commands", order=lambda each: (each.place, each.name), accept=_of_package)


class Commands(Helped, click.Group):
    """The commands, each imported when it is first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of this name, imported; None if the name is unknown."""
        entry = COMMANDS.find(name)
        return None if entry is None else entry.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest a similar one."""
        name = args[0]
        if name.startswith("-") or COMMANDS.find(name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(str(COMMANDS.unknown(name)), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing the built-in ones."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.sentence) for name, each in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before the command; --help-all shows no more than --help here."""
        return super().parse_args(ctx, ["--help"] if args[:1] == ["--help-all"] else args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _ending_in_words(), _legible(), _warning():
            from cranfield.cli.output import reporting_files

            with reporting_files(), _reporting_core():
                answer = super().invoke(ctx)
            sys.stdout.flush()
        return answer

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the arguments; error messages contain no terminal escapes."""
        with _ending_in_words(), _legible():
            return super().make_context(*arguments, **options)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line. No exception ends in a traceback, not even one of click itself."""
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
    """The message about an error, and the exit code; None for a crash."""
    if isinstance(error, UnjudgedWarning):
        return f"{error} (--allow-unjudged goes on)", BAD_DATA
    if isinstance(error, CranfieldError):
        return str(error), BAD_DATA if isinstance(error, DataError) else BAD_USAGE
    if isinstance(error, MemoryError):
        return "not enough memory", BAD_DATA
    if isinstance(error, OSError):
        return _of_the_system(error), BAD_DATA
    if isinstance(error, ImportError):
        from cranfield.base.optional_packages import advice

        if (missing := advice(error)) is not None:
            return str(missing), BAD_USAGE
    return None


def _crashed(error: Exception) -> tuple[str, int]:
    from cranfield.cli import crash

    return crash.sentence(error), crash.EXIT_CODE


def _of_the_system(error: OSError) -> str:
    """An error of the operating system as a sentence, with the name of the file."""
    message = error.strerror or str(error) or type(error).__name__
    where = error.filename or ("standard output" if error.errno in FULL else None)
    name = os.fsdecode(where) if isinstance(where, (str, bytes)) else where
    return message if name is None else f"{name}: {message}"


def _say(problem: str) -> None:
    from cranfield.cli.output import note

    note(f"cranfield: {' '.join(problem.splitlines())}")


@contextmanager
def _legible() -> Iterator[None]:
    """Escape invisible characters in click's messages, which quote the arguments."""
    try:
        yield
    except click.ClickException as error:
        error.message = legible(error.message)  # type: ignore[misc]  # it is what show prints
        raise


@contextmanager
def _warning() -> Iterator[None]:
    """Print each warning about the data once. An UnjudgedWarning is an error unless --allow-unjudged is given."""
    printed: set[str] = set()

    def say(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if not issubclass(category, (DataWarning, PluginWarning)):
            others(message, category, *where)
        elif str(message) not in printed:
            printed.add(str(message))
            from cranfield.cli.output import warning

            warning(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.simplefilter("always", PluginWarning)
        warnings.simplefilter("error", UnjudgedWarning)
        others: Any = warnings.showwarning
        warnings.showwarning = say  # type: ignore[assignment]
        yield


_core_reported: list[bool] = []


@contextmanager
def _reporting_core() -> Iterator[None]:
    """Report once that the NumPy core computed the numbers, unless CRANFIELD_KERNEL chose it. Help uses neither core."""
    try:
        yield
    except click.exceptions.Exit as stop:
        if stop.exit_code:  # a verdict; help leaves with 0
            _report_core()
        raise
    _report_core()


def _report_core() -> None:
    kernels = sys.modules.get("cranfield.base.kernels")
    if kernels is None or kernels.NATIVE or os.environ.get("CRANFIELD_KERNEL") or _core_reported:
        return
    _core_reported.append(True)
    from cranfield.cli.output import notes

    notes(["cranfield runs without its native core, with the same numbers; installed with a C compiler it is faster"])


def _close_stdout() -> None:
    """Discard buffered output, so that Python reports no error when it exits."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"cranfield {__version__}", color=ctx.color)
        ctx.exit()


@click.command(
    "cranfield", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(  # click's own would search for a translation of this text
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Measure how good a search system is, and whether a new one is better.

    \b
    $ cranfield eval qrels.txt bm25.run dense.run -m "nDCG@10 AP RR@10"
    """


def _open_closed() -> None:
    """Replace closed standard streams, so that no file that is opened later takes their number.

    Reading from such a stream or writing data to it is still an error of the system; messages are discarded.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            access = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)[number]
            null = os.open(os.devnull, access)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    _open_closed()
    gc.set_threshold(100_000, 20, 20)  # the objects of a command live until its end, so garbage is rare
    cli.main(None if arguments is None else list(arguments), prog_name="cranfield")
    raise SystemExit(0)


def program() -> NoReturn:
    """Run as a process of its own, and exit without freeing memory object by object."""
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
    """Report the crash of a thread, whose exception nobody catches."""
    if crash.exc_value is not None and not issubclass(crash.exc_type, SystemExit):
        from cranfield.cli.crash import sentence

        _say(sentence(crash.exc_value))


def _leave(code: int) -> None:
    """End the process at once, after the exit functions; return if the streams cannot be flushed."""
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return  # Python reports it
    os._exit(code)
