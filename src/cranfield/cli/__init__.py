"""The command line: one module per command, each of which parses, calls one verb of the workspace, and prints.

A command's module is imported when that command runs, so that `cranfield --help` needs neither NumPy
nor the measures; the short help below is what it prints, and a test compares it with the commands'
own. Every error that is the user's to mend ends here as one line and an exit code.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cranfield import __version__
from cranfield.errors import CranfieldError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = {
    "import": "Make a collection's folder from files in another layout.",
    "collection": "Look at a collection of documents, topics and judgments.",
    "check": "Say what is wrong or suspicious in run and qrels files.",
    "convert": "Convert runs or judgments from one format into another, or merge judgments.",
    "run": "Produce a run from a system under test, and time it.",
    "fuse": "Fuse runs into one.",
    "pool": "Choose what to judge next from the tops of runs.",
    "reuse": "Say whether judgments can score a run that did not contribute, by leaving out each run or team in turn.",
    "eval": "Score runs against judgments.",
    "explain": "Show how a score came about, rank by rank, or what it is under other programs' conventions.",
    "curve": "Draw precision-recall and other curves of runs, or print their points.",
    "compare": "Compare runs: by how much one is better, and how sure that is.",
    "leaderboard": "Rank runs by a measure, and say how sure the ranks are.",
    "stability": "Say how stable the ranking of the runs is: under other measures, judgments and topics.",
    "correlate": "Compare runs by their result lists, or measures by how they rank systems.",
    "reproduce": "Say how close a reproduction comes to the original experiment.",
    "design": "Say how many topics it takes to find a difference, and what the topics at hand can find.",
    "gate": "Fail if a candidate run is worse than the baseline by more than is allowed, and not by chance.",
    "report": "Write a report: a page that opens offline, tables for a paper, data, or one chart.",
    "measures": "List the measures, or explain one.",
    "tests": "List the significance tests, or explain one.",
    "corrections": "List the corrections for many tests, or explain one.",
    "presets": "List the presets of conventions and their answers.",
    "formats": "List the file formats that are read and written.",
    "trec_eval": "Do what trec_eval does, with its own options, byte for byte.",
}

MODULES = {"import": "import_"}  # a keyword is no module's name
BAD_USAGE, BAD_DATA, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141


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

        command: click.Command = import_module(f"cranfield.cli.{MODULES.get(name, name)}").command
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
        """Run a command; turn errors into one line on stderr and an exit code."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()
        except CranfieldError as error:
            _stop(ctx, str(error), BAD_DATA if isinstance(error, DataError) else BAD_USAGE)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _close_stdout()
            ctx.exit(BROKEN_PIPE)
        except MemoryError:
            _stop(ctx, "not enough memory", BAD_DATA)
        return answer

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run, help and version included; a disk that is full is no reason for a traceback."""
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            _close_stdout()
            click.echo(f"cranfield: {error.filename or 'standard output'}: {error.strerror or error}", err=True)
            sys.exit(BAD_DATA)


def _stop(ctx: click.Context, problem: str, code: int) -> NoReturn:
    click.echo(f"cranfield: {' '.join(problem.splitlines())}", err=True)
    ctx.exit(code)


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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    cli.main(None if arguments is None else list(arguments), prog_name="cranfield")
    raise SystemExit(0)
