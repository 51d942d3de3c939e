"""Options: those that several commands share, and how what was typed becomes the values that verbs take.

An option that is known here by its flag is declared once; a command that means a little more by it says so in its own
words. Choices are checked where they are defined (`Conventions`), not here: what is listed below is only how they are
shown in the help, and a test compares the two.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.types import FloatParamType, IntParamType

from cranfield.errors import ConventionError, CranfieldError, DataError
from cranfield.parameters import LARGEST, LONGEST, real, refuse_below, shortened, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.http.limits import Limits
    from cranfield.workspace.inputs import Inputs

    Words = str | Callable[[], str]

Command = TypeVar("Command", bound="Callable[..., Any]")

CONVENTIONS = {
    "ties": (
        "document-descending|document-ascending|input-order|averaged",
        "Which of two documents with equal scores comes first; averaged: the mean over all orders.",
    ),
    "scores": (
        "double|single|rank",
        "Compare scores as doubles, as 32-bit floats as trec_eval 9 does, or go by the rank column as ndeval does.",
    ),
    "missing": ("zero|skip|error", "What a judged topic that a run lacks is: 0, left out, or an error."),
    "no_relevant": ("zero|skip", "What a topic without a relevant document is: 0, or left out."),
    "unjudged": ("irrelevant|drop", "Unjudged documents stay where they are, or are taken out of the ranking."),
    "negative": ("unjudged|irrelevant", "What a negative grade is: no judgment, or grade 0."),
    "duplicates": (
        "error|first|last|best",
        "Which line counts when a run or judgments name a document twice for a topic.",
    ),
    "collapse": ("SEP", "Score passages as their document: cut ids at SEP (doc#3: '#'); the best passage counts."),
}
OF_JUDGMENTS = (
    "qrels_format",
    "missing",
    "no_relevant",
    "unjudged",
    "negative",
    "grades",
    "ignore_case",
    "allow_unjudged",
)
UNUSED_HERE = "cranfield.unused"  # those of one command, in its context
SHOWN = (
    "shape",
    "output",
    "per_topic",
    "digits",
    "every",
    "bars",
    "spreadsheet",
    "verbose",
)  # options that say how an answer is printed


def _within(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Refuse a count that is below 0 or beyond its limit before anything is computed."""
    try:
        refuse_below(0, **{str(parameter.name): value})
    except ConventionError as error:
        raise click.UsageError(f"--{error}", ctx) from None
    return value


def _refuse_elsewhere(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse --spreadsheet beside a format without cells; whichever of the two options is read second sees both."""
    known = {**ctx.params, parameter.name: value}
    if known.get("spreadsheet") and known.get("shape", "csv") not in ("csv", "tsv"):
        raise click.UsageError(f"--spreadsheet is for --format csv and tsv, not for {known['shape']}")
    return value


def pairs(typed: Iterable[str], example: str) -> list[tuple[str, str]]:
    """What was typed as OURS=THEIRS, in two."""
    found = [text.partition("=") for text in typed]
    if any(not ours or not theirs for ours, _, theirs in found):
        raise click.UsageError(f"--field: expected OURS=THEIRS, as in --field {example}")
    return [(ours, theirs) for ours, _, theirs in found]


def _fields(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, list[str]] | None:
    """What columns are called; where one is named twice, the first name that a file has counts."""
    if not value:
        return None
    from cranfield.errors import FormatError
    from cranfield.formats.named import refuse_unknown

    fields: dict[str, list[str]] = {}
    for ours, theirs in pairs(value, "topic=query"):
        fields.setdefault(ours, []).append(theirs)
    try:
        refuse_unknown(fields)
    except FormatError as error:
        raise click.UsageError(f"--field: {error}", ctx) from None
    return fields


def _grade_map(ctx: click.Context, parameter: click.Parameter, value: str | None) -> dict[float, float] | None:
    """`1=0,2=0,3=1` as the grades of a file and what they count as."""
    from cranfield.formats.grades import grade_map

    try:
        return grade_map(value)
    except ConventionError as error:
        raise click.UsageError(f"--{error}", ctx) from None


def _said_of_tables(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an unknown delimiter, encoding or decimal sign before anything is read."""
    if value is not None:
        from cranfield.formats.tables import Dialect

        try:
            Dialect(**{str(parameter.name): value})
        except ConventionError as error:
            raise click.UsageError(str(error), ctx) from None
    return value


def _duplicates(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an unknown word before anything is read: files without duplicates would never come to it."""
    if value is not None:
        from cranfield.conventions import conventions

        try:
            conventions(duplicates=value)  # type: ignore[arg-type]
        except ConventionError as error:
            raise ConventionError(f"--{error}") from None
    return value


def _seed(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Refuse a negative seed, whether or not anything is drawn."""
    from cranfield.parameters import refuse_below

    try:
        refuse_below(0, seed=value)
    except ConventionError as error:
        raise ConventionError(f"--{error}") from None
    return value


def _allow_unjudged(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Let a command go on where no returned document is known; the warning is printed as any other."""
    if value:
        from warnings import simplefilter

        from cranfield.errors import UnjudgedWarning

        simplefilter("always", UnjudgedWarning)


def writable(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a file that cannot be written before the command does anything."""
    if value is not None:
        from cranfield.formats.streams import refuse_unwritable

        refuse_unwritable(value)
    return value


def writable_folder(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a folder that cannot be made or written to before the command does anything."""
    if value is not None:
        from cranfield.formats.streams import refuse_unwritable_folder

        refuse_unwritable_folder(value)
    return value


class InputPath(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file or folder that is read: one that is not there is an error, whether or not anything would come to read it.

    A run may be called NAME=path, a log may have a version behind it (work.db@v1), and `named` are names that need no file.
    """

    name = "path"

    def __init__(self, named: Callable[[], Iterable[str]] | None = None) -> None:
        self.named = named

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was typed."""
        path = str(value)
        if path == "-" or "://" in path or any(map(_is_there, _readings(path))):
            return path
        names = [] if self.named is None else list(self.named())
        if path in names:
            return path
        flag = f" ({param.opts[0]})" if isinstance(param, click.Option) else ""
        known = f"; known by name: {', '.join(names)}" if names else ""
        raise DataError(f"{path}: no such file or directory{flag}{known}")


class OutputPath(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file or folder that is written, and may be there already."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was typed."""
        return str(value)


def _readings(path: str) -> list[str]:
    """What a path may mean: itself, the path behind NAME=, the log before @version."""
    return [part for part in (path, path.partition("=")[2], path.rpartition("@")[0]) if part]


def _is_there(path: str) -> bool:
    """Whether something is there; what cannot be looked at is left to whoever reads it."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def _collections() -> list[str]:
    from cranfield.formats.folder import bundled_names

    return bundled_names()


INPUT, OUTPUT, COLLECTION = InputPath(), OutputPath(), InputPath(_collections)
FINITE = "a finite number in plain digits"
DETECTED = "format, if it is not to be detected (cranfield formats lists them)."
SHARED: dict[str, dict[str, Any]] = {
    # which files are read, and how
    "-m --measures": {"multiple": True, "metavar": "MEASURES"},
    "--table": {
        "type": INPUT,
        "metavar": "FILE",
        "help": "Scores per topic from a file (a row a topic, a column a run; or what eval --per-topic writes as csv) "
        "instead.",
    },
    "--topics": {"type": INPUT, "metavar": "FILE", "help": "Look only at these topics: the first word of each line."},
    "--topics-file": {
        "type": COLLECTION,
        "metavar": "FILE",
        "help": "What the topics ask, shown beside their ids, and columns for --by and --weigh-by: a table (TSV, CSV, JSON "
        "lines, Parquet), TREC's topics, or a collection.  [default: the collection's, where QRELS is one]",
    },
    "--weigh-by": {
        "metavar": "COLUMN",
        "help": "Weigh topics by a column of theirs, such as traffic: means by weights beside the others, and their tests.",
    },
    "--rel": {
        "type": float,
        "metavar": "N",
        "help": "The lowest relevant grade, where a measure does not say so itself.",
    },
    "--baseline": {"metavar": "RUN", "help": "The run to compare with, for measures of risk."},
    "--collection-size": {
        "type": click.IntRange(min=1),
        "metavar": "N",
        "help": "How many documents the collection holds.",
    },
    "--preferences": {"type": INPUT, "metavar": "FILE", "help": "Preference judgments, for PrefSimple and its kin."},
    "--groups": {"type": INPUT, "metavar": "FILE", "help": "Groups of documents, for measures of fairness."},
    "--aspect": {"type": COLLECTION, "metavar": "QRELS", "help": "Judgments of a second aspect (uRBP, uBpref)."},
    "--costs": {"type": INPUT, "metavar": "FILE", "help": "What documents cost to read, for TBG, Umeasure and kin."},
    "--run-format": {"metavar": "FORMAT", "help": f"The runs' {DETECTED}"},
    "--qrels-format": {"metavar": "FORMAT", "help": f"The judgments' {DETECTED}"},
    "--field fields": {
        "multiple": True,
        "metavar": "OURS=THEIRS",
        "callback": _fields,
        "help": "What a column of CSV, TSV, JSON rows or Parquet is called: topic, document, grade, score, rank, tag, "
        "iteration; query in a table of topics; as in topic=search; may be repeated.",
    },
    "--delimiter": {
        "metavar": "SIGN",
        "callback": _said_of_tables,
        "help": "The sign between the columns of tables: comma, semicolon, tab or pipe.  [default: detected]",
    },
    "--encoding": {
        "metavar": "NAME",
        "callback": _said_of_tables,
        "help": "The encoding of tables, such as utf-8, utf-16 or windows-1252.  [default: detected]",
    },
    "--decimal": {
        "metavar": "SIGN",
        "callback": _said_of_tables,
        "help": "The decimal sign of numbers in tables: point or comma.  [default: detected]",
    },
    "--grades": {
        "metavar": "THEIRS=OURS,...",
        "callback": _grade_map,
        "help": "The grade that each grade of the judgments counts as, such as 1=0,2=0,3=1,4=2,5=3.",
    },
    "--ignore-case": {
        "is_flag": True,
        "help": "Join topics by the text of their query, whether in upper or lower case.",
    },
    "--duplicates": {
        "metavar": CONVENTIONS["duplicates"][0],
        "callback": _duplicates,
        "help": CONVENTIONS["duplicates"][1],
    },
    "--lenient": {
        "is_flag": True,
        "help": "Skip malformed lines and say how many, instead of stopping at the first.",
    },
    "--allow-unjudged": {
        "is_flag": True,
        "expose_value": False,
        "callback": _allow_unjudged,
        "help": "Go on, with a warning, where 100 or more documents were returned and none is judged or in the collection.",
    },
    "--threads": {"type": int, "metavar": "N", "help": "How many cores to score with.  [default: all]"},
    # what is asked of them
    "--alpha": {"default": 0.05, "metavar": "A"},
    "--level": {"default": 0.95, "metavar": "L"},
    "--correction": {"default": "holm", "metavar": "NAME"},
    "--resamples": {"type": int, "metavar": "N"},
    "--trials": {"type": int, "metavar": "N"},
    "--seed": {"default": 0, "metavar": "N", "callback": _seed, "help": "Where chance starts."},
    "--p": {"default": 0.9, "metavar": "P", "help": "The patience of rbo, 0 to 1."},
    "--judged": {"default": 10, "metavar": "K", "help": "The depth of judged@K."},
    "--holes-depth": {"type": click.IntRange(min=1), "default": 10},
    # how the answer is printed
    "--per-topic": {"is_flag": True, "help": "A row for each topic as well."},
    "--digits": {
        "type": int,
        "metavar": "N",
        "callback": _within,
        "help": "Decimals to print.  [default: 4; all of them in json, csv and tsv]",
    },
    "--spreadsheet": {
        "is_flag": True,
        "help": "In csv and tsv: put an apostrophe before text that a spreadsheet would take for a formula.",
    },
    "--verbose": {"is_flag": True, "help": "Tell also how it was made, and all that limits it."},
    "-o --output": {
        "type": OUTPUT,
        "metavar": "FILE",
        "callback": writable,
        "help": "Write to a file, whole or not at all, instead of standard output.",
    },
}


class Plain(click.Option):
    """An option; a number must be finite and in plain digits, while Python also takes nan, 1_000 and other scripts' digits."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; what is no number at all is refused in click's own words."""
        numeric = isinstance(self.type, (IntParamType, FloatParamType)) and isinstance(value, str)
        typed = value if numeric and len(value) > LONGEST else super().type_cast_value(ctx, value)
        if numeric:
            is_whole = isinstance(self.type, IntParamType)
            try:
                (whole if is_whole else real)(value)
            except ValueError:
                kind = f"a whole number in plain digits, {LARGEST} at the most" if is_whole else FINITE
                raise click.BadParameter(f"expected {kind}, found {shortened(value)!r}", ctx, self) from None
        return typed


class Late(Plain):
    """An option whose help, or the word for its value, is written when it is shown: it names what a room holds."""

    def __init__(self, *declared: Any, help: Words, metavar: Words, **settings: Any) -> None:
        self._help, self._metavar = help, metavar
        super().__init__(*declared, **settings)

    help = property(lambda self: _written(self._help), lambda self, text: None)
    metavar = property(lambda self: _written(self._metavar), lambda self, text: None)


class OneOf(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """One of some names that are listed where they are defined, and looked up when the option is used or shown."""

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name; another one is refused with all that there are."""
        if value not in (known := list(self.names())):
            self.fail(f"{value!r} is not one of {', '.join(map(repr, known))}.", param, ctx)
        return str(value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """All names, for the help; in braces where one of them must be given."""
        words = "|".join(self.names())
        return f"{{{words}}}" if isinstance(param, click.Argument) and param.required else f"[{words}]"


def _written(words: Words) -> str:
    return words if isinstance(words, str) else words()


def option(
    flags: str, help: Words | None = None, name: str | None = None, **settings: Any
) -> Callable[[Command], Command]:
    """An option by its flags as one types them; what is SHARED holds unless said otherwise, and a default is shown."""
    settings = {**SHARED.get(flags, {}), **settings}
    settings.setdefault("cls", Plain)
    if help is not None:
        settings["help"] = help
    if callable(settings.get("help")) or callable(settings.get("metavar")):
        settings["cls"] = Late
    if settings.get("default") is not None:
        settings.setdefault("show_default", True)
    return click.option(*flags.split(), *([] if name is None else [name]), **settings)


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which the help lists them."""

    def add(command: Command) -> Command:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return add


conventions = together(
    option(
        "--as",
        "Follow a peer's conventions (cranfield presets lists them); the options below change single ones.",
        name="preset",
        metavar="PRESET",
    ),
    *(
        option(f"--{name.replace('_', '-')}", meaning, metavar=values)
        for name, (values, meaning) in CONVENTIONS.items()
    ),
    option("--drop-self/--keep-self", "Leave out a document whose id is the topic's, or keep it.", default=None),
)

dialect = together(option("--delimiter"), option("--encoding"), option("--decimal"))
labels = together(dialect, option("--grades"), option("--ignore-case"))

rules = together(
    conventions,
    option("--run-format"),
    option("--qrels-format"),
    option("--field fields"),
    labels,
    option("--lenient"),
    option("--allow-unjudged"),
)


def _grades(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, ...]:
    """`0-3` or `0,1,2.5` as grades."""
    if value is None:
        return ()
    import re

    span = re.fullmatch(r"(-?\d+)(?:-|\.\.)(\d+)", value)
    try:
        if span and int(span[1]) < int(span[2]) < 1000:
            return tuple(float(grade) for grade in range(int(span[1]), int(span[2]) + 1))
        return tuple(sorted({real(grade) for grade in value.split(",")}))
    except ValueError:
        raise click.BadParameter(f"expected grades such as 0-3 or 0,1,2, found {value!r}", ctx, parameter) from None


scale_option = option("--scale", "The grades there are; others are refused.", metavar="0-3|0,1,2", callback=_grades)

qrels_and_runs = together(click.argument("qrels"), click.argument("runs", nargs=-1, required=True, metavar="RUN..."))


def runs_or_table(runs: str = "RUN...") -> Callable[[Command], Command]:
    """Judgments, runs and measures, or a table of scores."""
    return together(
        click.argument("qrels", required=False),
        click.argument("runs", nargs=-1, metavar=runs),
        option(
            "-m --measures",
            "What to compute; of a table, what its scores are called. May be repeated.  [default: nDCG@10 AP RR@10]",
        ),
        option("--table"),
    )


def shape(*shapes: str, help: str = "How to print.", **settings: Any) -> Callable[[Command], Command]:
    """`--format`, the first of which is printed if nothing is said; and `--spreadsheet` where there are cells."""
    named = {"name": "shape", "type": click.Choice(shapes), "default": shapes[0], **settings}
    if "csv" not in shapes:
        return option("--format", help, **named)
    return together(
        option("--format", help, callback=_refuse_elsewhere, **named),
        option("--spreadsheet", callback=_refuse_elsewhere),
    )


def output(*shapes: str) -> Callable[[Command], Command]:
    """`--format` and `-o`."""
    return together(shape(*shapes), option("-o --output"))


def answer(*shapes: str) -> Callable[[Command], Command]:
    """`--format`, `-o` and `--verbose`, for an answer that says what limits it."""
    return together(output(*shapes), option("--verbose"))


class Worded(click.Command):
    """A command in whose messages the library's arguments are the options that one types."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run, and put an error into the words of the command line."""
        try:
            return super().invoke(ctx)
        except CranfieldError as error:
            from cranfield.cli.wording import in_options

            error.args = (in_options(str(error), self.params, getattr(error, "kind", None)),)
            raise


class Sectioned(Worded):
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


def command(help: str | None, **settings: Any) -> Callable[[Callable[..., Any]], Sectioned]:
    """The command of a module, whose docstring is the help."""
    return click.command(cls=Sectioned, help=help, **settings)


def split(typed: dict[str, Any], **more: Any) -> tuple[Inputs, dict[str, Any], dict[str, Any]]:
    """A command's options as which files are read and how, how the answer is printed, and what is asked: the rest."""
    from cranfield.workspace.inputs import Inputs

    rest = {**typed, **more}
    answers = {name: rest.pop(name, None) for name in (*CONVENTIONS, "drop_self")}
    changes = {name: value for name, value in answers.items() if value is not None}
    files = {name: rest.pop(name) for name in Inputs.__dataclass_fields__ if name in rest}
    shown = {name: rest.pop(name) for name in SHOWN if name in rest}
    return Inputs(changes=changes, **files), shown, rest


def words(typed: Iterable[str]) -> list[str]:
    """The words of an option that may be repeated, or hold several words with spaces or commas between them."""
    return [word for text in typed for word in text.replace(",", " ").split()]


def refuse_both(inputs: Inputs, groups: Sequence[str] = (), conventions: bool = True) -> None:
    """Refuse both or neither of judgments with runs, and a table; and, if told so, `conventions` beside a table."""
    if inputs.table is not None and conventions and inputs.changes:
        late = next(iter(inputs.changes)).replace("_", "-")
        raise click.UsageError(f"--table holds scores already; --{late} comes too late")
    if inputs.table is not None and (inputs.qrels is not None or inputs.runs):
        raise click.UsageError("--table FILE holds scores already; give no judgments or runs beside it")
    if inputs.table is None and (inputs.qrels is None or not (inputs.runs or groups)):
        raise click.UsageError("expected QRELS RUN..., or --table FILE")


def refuse_idle(why: str, *names: str) -> None:
    """Refuse options, by the names of their values, that were typed and would change nothing; `why` ends the sentence."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        typed = ctx.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.COMMANDLINE
        if typed and parameter.name in names:
            raise click.UsageError(f"{max(parameter.opts, key=len)} {why}", ctx)


UNUSED = {  # options that only reading can tell the use of, and how the sentence ends that refuses them
    **dict.fromkeys(("delimiter", "encoding", "decimal"), "is for tables such as CSV and TSV, and none is read"),
    "collection_size": "is for measures that count the documents of the collection, and none is computed",
    "ignore_case": "is for topics that are named by the text of their query, and none is "
    "(--topics-file or a collection says what topics ask)",
}


COMPARES = "is for measures that compare with a run, and none is computed"


def expect_use(why: str, *names: str) -> None:
    """Refuse options, as `refuse_idle` does, if nothing that the command reads tells that it used them (`hearing.tell_used`)."""
    click.get_current_context().meta.setdefault(UNUSED_HERE, {}).update(dict.fromkeys(names, why))


def refuse_unused(used: set[str]) -> None:
    """Refuse options that were typed and not used; called when all is read and nothing is written."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:  # a thread of a server, which writes no answer of a command
        return
    for name, why in {**UNUSED, **ctx.meta.get(UNUSED_HERE, {})}.items():
        if name not in used:
            refuse_idle(why, name)


def refuse_reading(inputs: Inputs, option: str) -> None:
    """Refuse options that say how files are read, where `option` stands in place of files."""
    read = {"run_format": inputs.run_format, "qrels_format": inputs.qrels_format, "field": inputs.fields}
    late = ["as"] * (inputs.preset is not None)
    late += [*inputs.changes, *(name for name, value in read.items() if value is not None)]
    if late:
        raise click.UsageError(f"{option} reads no judgments or runs; leave out --{late[0].replace('_', '-')}")
    read_by_none = ("measures", "rel", "delimiter", "encoding", "decimal", "lenient", *OF_JUDGMENTS)
    refuse_idle(f"is for judgments and runs, and {option} reads none", *read_by_none)


def without_algebra() -> None:
    """Keep NumPy's linear algebra, which scoring never uses, from starting its threads: a third of NumPy's own start."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


server_limits = together(
    option(
        "--connections",
        "Most connections at once.  [default: 3/4 of ulimit -n, up to 4096]",
        type=click.IntRange(min=1),
        metavar="N",
    ),
    option(
        "--per-address",
        "Most connections of one address; behind a proxy, most requests at once.  [default: half of them, up to 256]",
        type=click.IntRange(min=1),
        metavar="N",
    ),
    option(
        "--header-time",
        "Seconds for the headers of a request.",
        name="header_seconds",
        type=click.FloatRange(min=0.1, max=3600),
        default=10.0,
        show_default=True,
        metavar="S",
    ),
    option(
        "--body-time",
        "Seconds for the body of a request.",
        name="body_seconds",
        type=click.FloatRange(min=0.1, max=3600),
        default=30.0,
        show_default=True,
        metavar="S",
    ),
)


def limits_of(typed: dict[str, Any]) -> Limits:
    """The limits of a server."""
    from cranfield.http.limits import Limits

    return Limits(**{name: typed[name] for name in ("connections", "per_address", "header_seconds", "body_seconds")})
