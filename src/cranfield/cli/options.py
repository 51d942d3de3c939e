"""Options that several commands share, and how a long list of options is laid out.

Choices are checked where they are defined (`Conventions`), not here: what is listed below is only how
they are shown in the help, and a test compares the two.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Words = str | Callable[[], str]


Command = TypeVar("Command", bound="Callable[..., Any]")

CONVENTIONS = {
    "ties": (
        "document-descending|document-ascending|input-order|averaged",
        "Which of two documents with equal scores comes first; averaged: the mean over all orders.",
    ),
    "scores": ("double|single", "Compare scores as doubles, or as 32-bit floats as trec_eval 9 does."),
    "missing": ("zero|skip|error", "What a judged topic that a run lacks is: 0, left out, or an error."),
    "no_relevant": ("zero|skip", "What a topic without a relevant document is: 0, or left out."),
    "unjudged": ("irrelevant|drop", "Unjudged documents stay where they are, or are taken out of the ranking."),
    "negative": ("unjudged|irrelevant", "What a negative grade is: no judgment, or grade 0."),
    "duplicates": ("error|first|last|best", "Which line counts when a run names a document twice for a topic."),
    "collapse": ("SEP", "Score passages as their document: cut ids at SEP (doc#3: '#'); the best passage counts."),
}


class Late(click.Option):
    """An option whose help, or the word for its value, is written when it is shown: it names what a room holds."""

    def __init__(self, *declared: Any, help: Words, metavar: Words, **given: Any) -> None:
        self._help, self._metavar = help, metavar
        super().__init__(*declared, **given)

    help = property(lambda self: _written(self._help), lambda self, text: None)
    metavar = property(lambda self: _written(self._metavar), lambda self, text: None)


def _written(words: Words) -> str:
    return words if isinstance(words, str) else words()


class Sectioned(click.Command):
    """A command whose help lists the conventions apart from its other options."""

    def make_parser(self, ctx: click.Context) -> Any:
        """Let -m be found at once: click looks among the long names first, and words an error with difflib meanwhile."""
        parser = super().make_parser(ctx)
        long, short = getattr(parser, "_long_opt", None), getattr(parser, "_short_opt", None)
        if isinstance(long, dict) and isinstance(short, dict):
            long.update(short)
        return parser

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write two sections of options."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Conventions": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                convention = parameter.name in (*CONVENTIONS, "preset", "drop_self")
                sections["Conventions" if convention else "Options"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def conventions(command: Command) -> Command:
    """`--as PRESET` and one option for each convention."""
    kept = "Leave out a document whose id is the topic's, or keep it."
    command = click.option("--drop-self/--keep-self", "drop_self", default=None, help=kept)(command)
    for name, (values, meaning) in reversed(CONVENTIONS.items()):
        flag = f"--{name.replace('_', '-')}"
        command = click.option(flag, name, metavar=values, help=meaning)(command)
    preset = "Follow a peer's conventions (cranfield presets lists them); the options below change single ones."
    return click.option("--as", "preset", metavar="PRESET", help=preset)(command)


def taken(options: dict[str, Any]) -> dict[str, Any]:
    """Take the conventions that were given out of a command's options."""
    given = {name: options.pop(name) for name in (*CONVENTIONS, "drop_self")}
    return {name: value for name, value in given.items() if value is not None}


def reading(command: Command) -> Command:
    """How files are read."""
    lenient = "Skip malformed lines and say how many, instead of stopping at the first."
    command = click.option("--lenient", is_flag=True, help=lenient)(command)
    detected = "format, if it is not to be detected (cranfield formats lists them)."
    command = click.option("--qrels-format", metavar="FORMAT", help=f"The judgments' {detected}")(command)
    return click.option("--run-format", metavar="FORMAT", help=f"The runs' {detected}")(command)


def output(*kinds: str) -> Callable[[Command], Command]:
    """`--format` and `-o`."""

    def add(command: Command) -> Command:
        to = "Write to a file, whole or not at all, instead of standard output."
        command = click.option("-o", "--output", metavar="FILE", help=to)(command)
        choice = click.Choice(kinds)
        kind = click.option("--format", "shape", type=choice, default=kinds[0], show_default=True, help="How to print.")
        return kind(command)

    return add


def measures_or_table(command: Command) -> Command:
    """`-m`, and `--table` for scores that are there already."""
    table = (
        "Scores per topic from a file (a row a topic, a column a run; or what eval --per-topic writes as csv) instead."
    )
    command = click.option("--table", metavar="FILE", help=table)(command)
    names = "What to compute; of a table, what its scores are called. May be repeated.  [default: nDCG@10 AP RR@10]"
    return click.option("-m", "--measures", multiple=True, metavar="MEASURES", help=names)(command)


def runs_or_table(
    qrels: str | None, runs: tuple[str, ...], table: str | None, changes: dict[str, Any] | None = None
) -> None:
    """Refuse both or neither of judgments with runs, and a table; and conventions beside a table."""
    if table is not None and changes:
        raise click.UsageError(
            f"--table holds scores already; --{next(iter(changes)).replace('_', '-')} comes too late"
        )
    if table is not None and (qrels is not None or runs):
        raise click.UsageError("--table FILE holds scores already; give no judgments or runs beside it")
    if table is None and (qrels is None or not runs):
        raise click.UsageError("expected QRELS RUN..., or --table FILE")


def without_algebra() -> None:
    """Keep NumPy's linear algebra, which scoring never uses, from starting its threads: a third of NumPy's own start."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
