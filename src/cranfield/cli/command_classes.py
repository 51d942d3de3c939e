"""The classes of commands and options: help on one screen, former spellings, messages in terms of options.

An option states where it is declared whether `--help` shows it (`everyday`), in which section `--help-all` lists it, and
which spellings it had in earlier versions (`was`). `current_spellings` is the one place that reads former spellings.

Messages of the library name Python arguments: `missing="skip"`, `alpha must be …`. `in_options` replaces them by the options
of the command before a message is printed: `--missing skip`, `--alpha must be …`. Parameters in brackets, as in `AP(rel=2)`,
belong to a measure or method and stay.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.types import FloatParamType, IntParamType

from cranfield.base.errors import CranfieldError
from cranfield.base.notifications import say
from cranfield.base.parameters import LARGEST, LONGEST, real, shortened, whole
from cranfield.cli.option_values import filled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FINITE = "a finite number in plain digits"
OTHER_NAMES = {"size": "collection_size", "train": "train_qrels", "others": "other_qrels"}
ARGUMENT = (  # compiled when a message has one
    r"Extras\((?P<extra>\w+)=(?P<what>[^()]*)\)"
    r"|\w\([^()]*\)|--field \w+=|\bname=value\b|'[^' ]*=[^']*'"  # left as they are
    r"|(?<![\w.{/=?&-])(?P<name>[a-z][a-z_]+)=(?P<value>\"[^\"]*\"|'[^']*'|…|[\w-]+)"
)
SUBJECT = r"(?P<name>[a-z][a-z_ ]*?)(?= must be |: expected )"


class PlainOption(click.Option):
    """An option. A number must be finite and in plain digits, while Python also takes nan, 1_000 and other scripts' digits.

    `everyday` options are those that `--help` shows; `--help-all` shows every option. `was` are former spellings of the
    option: they are read as before, and a note names the current one. In a help text and a placeholder, `{users}` stands for
    the names of all members of that kind (`option_values`).
    """

    def __init__(
        self,
        *declarations: Any,
        everyday: bool = True,
        was: Sequence[str] = (),
        section: str = "Options",
        **settings: Any,
    ) -> None:
        self.everyday, self.was, self.section = everyday, tuple(was), section
        super().__init__(*declarations, **settings)
        if settings.get("metavar") is None and isinstance(self.type, (IntParamType, FloatParamType)):
            self.metavar = "N"  # click itself writes INTEGER RANGE

    # click sets both once; names of members are filled in when the help is shown
    help = property(lambda self: self._help and filled(self._help), lambda self, text: setattr(self, "_help", text))
    metavar = property(
        lambda self: self._metavar and filled(self._metavar, "|"), lambda self, text: setattr(self, "_metavar", text)
    )

    @property
    def spelling(self) -> str:
        """The long name, as one types it."""
        return max(self.opts, key=len)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the value; click itself refuses what cannot be read as a number."""
        numeric = isinstance(self.type, (IntParamType, FloatParamType)) and isinstance(value, str)
        converted = value if numeric and len(value) > LONGEST else super().type_cast_value(ctx, value)
        if numeric:
            is_whole = isinstance(self.type, IntParamType)
            try:
                (whole if is_whole else real)(value)
            except ValueError:
                kind = f"a whole number in plain digits, {LARGEST} at the most" if is_whole else FINITE
                raise click.BadParameter(f"expected {kind}, found {shortened(value)!r}", ctx, self) from None
        return converted


HELP_ALL = "cranfield.help_all"  # the key in a context: whether the help shows every option
SENTENCE_END = r"(?<=[\w)'\]])\. (?=[A-Z`'-])"


def _show_full_help(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


help_all = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    hidden=True,
    callback=_show_full_help,
    help="Show every option and exit.",
)


def first_sentence(text: str) -> str:
    """The first sentence of an option's help, with its default.

    >>> first_sentence("Random seed. Any whole number will do.  [default: 0]")
    'Random seed.  [default: 0]'
    """
    words, bracket, default = text.partition("  [")
    first, *rest = re.split(SENTENCE_END, words, maxsplit=1)
    return first + ("." if rest else "") + bracket + default


def _show_help(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


help_option = click.Option(  # click makes one for each command, and searches for a translation of its text each time
    ["-h", "--help"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help,
    help="Show this message and exit.",
)


class Helped(click.Command):
    """A command or group with the option --help."""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """The option, the same for all commands."""
        return help_option


class HelpAll(Helped):
    """A command or group with the options --help and --help-all."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with --help-all before --help."""
        *params, last = super().get_params(ctx)
        return [*params, help_all, last]


class CranfieldCommand(HelpAll):
    """A command: its short help, its former spellings, and its error messages in terms of options.

    `--help` shows the first sentence of each everyday option; `--help-all` shows every option in full, by section.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, which may use former spellings of options."""
        return super().parse_args(ctx, current_spellings(self, args, quiet=ctx.resilient_parsing))

    def make_parser(self, ctx: click.Context) -> Any:
        """Make -m fast: click looks for short names among the long ones first, and composes an error message that nobody sees."""
        parser = super().make_parser(ctx)
        long, short = getattr(parser, "_long_opt", None), getattr(parser, "_short_opt", None)
        if isinstance(long, dict) and isinstance(short, dict):
            long.update(short)
        return parser

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an error of the library names options instead of Python arguments."""
        try:
            return super().invoke(ctx)
        except CranfieldError as error:
            error.args = (in_options(str(error), self.params, getattr(error, "kind", None)),)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the everyday options, or all of them in their sections."""
        everyday: list[tuple[str, str]] = []
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is None:
                continue
            sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
            if getattr(parameter, "everyday", True):
                everyday.append((record[0], first_sentence(record[1])))
        full = sections if ctx.meta.get(HELP_ALL, False) else {"Options": everyday}
        for title, records in full.items():
            with formatter.section(title):
                formatter.write_dl(records)
        if full is not sections and {"Options": everyday} != sections:
            formatter.write_paragraph()
            formatter.write_text("More options: --help-all")


class CranfieldGroup(HelpAll, click.Group):
    """A group whose commands are CranfieldCommands."""

    command_class = CranfieldCommand
    group_class = type


def current_spellings(command: click.Command, args: Sequence[str], quiet: bool = False) -> list[str]:
    """The arguments with the current spelling of each option; a note on standard error names both spellings."""
    options = [each for each in command.params if isinstance(each, PlainOption)]
    by_name = {name: each for each in options for name in (*each.opts, *each.secondary_opts, *each.was)}
    former = {name: each.spelling for each in options for name in each.was}
    words, rest, notices = [], iter(args), {}
    for word in rest:
        if word == "--":
            words += [word, *rest]
            break
        name, equals, value = word.partition("=")
        if name in former:
            notices[name] = f"{name} is now {former[name]}"
            word = former[name] + equals + value
        words.append(word)
        if name in by_name and not by_name[name].is_flag and not equals:
            words += islice(rest, by_name[name].nargs)  # a value may look like an option
    if not quiet:
        say(notices.values())
    return words


def in_options(sentence: str, parameters: Iterable[click.Parameter], kind: str | None = None) -> str:
    """A sentence of the library with options in place of arguments; `kind` says which file a format belongs to.

    >>> missing = click.Option(["--missing"], metavar="zero|skip")
    >>> in_options('it scores 0 (missing="skip" leaves it out)', [missing])
    'it scores 0 (--missing skip leaves it out)'
    """
    options = {
        name: one
        for one in parameters
        if isinstance(one, click.Option)
        for name in {str(one.name), one.opts[-1].lstrip("-").replace("-", "_")}
    }
    formats = [f"{kind}_format", "from_format", "run_format"] if kind else ["from_format"]

    def option(name: str) -> click.Option | None:
        names = formats if name == "format" else [OTHER_NAMES.get(name, name)]
        return next((options[each] for each in names if each in options), None)

    def typed(match: re.Match[str]) -> str:
        name, value = match["extra"] or match["name"], match["what"] or match["value"]
        one = option(name) if name else None
        if one is None:
            return match[0]
        word = (one.metavar or "VALUE") if value == "…" else value.strip("\"'")
        return f"{one.opts[-1]} {word}"

    subject = re.match(SUBJECT, sentence)
    one = option(subject["name"].replace(" ", "_")) if subject is not None else None
    if subject is not None and one is not None:
        sentence = one.opts[-1] + sentence[subject.end() :]
    return re.sub(ARGUMENT, typed, sentence)
