"""The options that several commands share, and the conversion of typed values into arguments of `commands`.

A shared option is declared once, in SHARED, under its flags; a command may override its text and its settings. Choices
are checked where they are defined (`Conventions`). CONVENTIONS only lists them for the help, and a test compares both.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cranfield.base.errors import ConventionError, DataError, FormatError
from cranfield.base.parameters import real, refuse_below
from cranfield.cli import option_values
from cranfield.cli.command_classes import CranfieldCommand, CranfieldGroup, PlainOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.http.connections import ClientLimits
    from cranfield.inputs.inputs import Inputs

Command = TypeVar("Command", bound="Callable[..., Any]")

CONVENTIONS = {
    "ties": (
        "document-descending|document-ascending|input-order|averaged",
        "Order of documents with equal scores. The choice averaged takes the mean over all orders.",
    ),
    "scores": (
        "double|single|rank",
        "Number that ranks the documents. It is the score as a double, the score as a 32-bit float (as in trec_eval 9), "
        "or the rank column (as in ndeval).",
    ),
    "missing": ("zero|skip|error", "Treatment of judged topics that a run lacks: score 0, leave out, or stop."),
    "no_relevant": ("zero|skip", "Treatment of topics without relevant documents: score 0, or leave out."),
    "unjudged": (
        "irrelevant|drop",
        "Treatment of unjudged documents: count as irrelevant, or remove from the ranking.",
    ),
    "negative": ("unjudged|irrelevant", "Meaning of a negative grade: unjudged, or irrelevant (grade 0)."),
    "duplicates": ("error|first|last|best", "Line to use if a run or the judgments name a document twice for a topic."),
    "collapse": (
        "SEP",
        "Score passages as their document. Ids are cut at SEP (doc#3: '#'), and the best passage of a document counts.",
    ),
}
OF_SCORING = ("missing", "no_relevant", "unjudged", "negative")
OF_JUDGMENTS = ("qrels_format", *OF_SCORING, "grades", "ignore_case", "allow_unjudged")
UNUSED_HERE = "cranfield.unused"  # the key in a context: options that this command may leave unused
# the options that control how an answer is printed
DISPLAY = ("shape", "output", "per_topic", "digits", "every", "bars", "spreadsheet", "verbose")


@contextmanager
def _naming_option(refusal: Callable[[str], Exception]) -> Iterator[None]:
    """Turn an error about an argument, such as `seed`, into a refusal that names the option."""
    try:
        yield
    except ConventionError as error:
        raise refusal(f"--{error}") from None


def _check_limit(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Refuse a count that is below 0 or beyond its limit before anything is computed."""
    with _naming_option(click.UsageError):
        refuse_below(0, **{str(parameter.name): value})
    return value


def _refuse_spreadsheet(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse --spreadsheet unless the format is csv or tsv. The check runs when the second of the two options is read."""
    values = {**ctx.params, parameter.name: value}
    if values.get("spreadsheet") and values.get("shape", "csv") not in ("csv", "tsv"):
        raise click.UsageError(f"--spreadsheet is for --format csv and tsv, not for {values['shape']}")
    return value


def column_names(typed: Iterable[str], example: str) -> dict[str, list[str]]:
    """The names of each column, from all OURS=THEIRS. A column with several names has the first that occurs in the file."""
    columns: dict[str, list[str]] = {}
    for text in typed:
        ours, _, theirs = text.partition("=")
        if not ours or not theirs:
            raise click.UsageError(f"--field: expected OURS=THEIRS, as in --field {example}")
        columns.setdefault(ours, []).append(theirs)
    return columns


def _fields(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, list[str]] | None:
    """The names of columns; names that cranfield does not know are refused."""
    if not value:
        return None
    from cranfield.formats.named_columns import refuse_unknown

    fields = column_names(value, "topic=query")
    try:
        refuse_unknown(fields)
    except FormatError as error:
        raise click.UsageError(f"--field: {error}", ctx) from None
    return fields


def _grade_map(ctx: click.Context, parameter: click.Parameter, value: str | None) -> dict[float, float] | None:
    """Read `1=0,2=0,3=1` as a mapping from the grades of a file to new grades."""
    if value is None:
        return None
    from cranfield.formats.grade_scales import grade_map

    with _naming_option(click.UsageError):
        return grade_map(value)


def _check_dialect(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an unknown delimiter, encoding or decimal sign before anything is read."""
    if value is not None:
        from cranfield.formats.csv_tables import Dialect

        try:
            Dialect(**{str(parameter.name): value})
        except ConventionError as error:
            raise click.UsageError(str(error), ctx) from None
    return value


def _duplicates(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an unknown choice before files are read, even if the files have no duplicates."""
    if value is not None:
        from cranfield.base.conventions import conventions

        with _naming_option(ConventionError):
            conventions(duplicates=value)  # type: ignore[arg-type]
    return value


def _seed(ctx: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    """Refuse a negative seed, even if no random number is drawn."""
    with _naming_option(ConventionError):
        refuse_below(0, seed=value)
    return value


def _allow_unjudged(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Turn the error about a run without a judged document into a warning."""
    if value:
        from warnings import simplefilter

        from cranfield.base.errors import UnjudgedWarning

        simplefilter("always", UnjudgedWarning)


class InputPath(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file or folder that is read. A missing one is an error, even if the command would not read it.

    A run may be NAME=path, and a log may be followed by a version (work.db@v1). Names of `kind`, such as the bundled
    collections, need no file.
    """

    name = "path"

    def __init__(self, kind: str = "") -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was typed."""
        path = str(value)
        if path == "-" or "://" in path or any(map(_is_there, _readings(path))):
            return path
        names = option_values.names(self.kind) if self.kind else []
        if path in names:
            return path
        flag = f" ({param.opts[0]})" if isinstance(param, click.Option) else ""
        others = f"; known by name: {', '.join(names)}" if names else ""
        raise DataError(f"{path}: no such file or directory{flag}{others}")


class OutputPath(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file or folder that is written, and may already exist.

    `refuse` is the function of `formats.streams` that refuses a path which cannot be written, before the command does
    anything; without it, the command itself decides.
    """

    name = "path"

    def __init__(self, refuse: str = "") -> None:
        self.refuse = refuse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path as it was typed."""
        path = str(value)
        if self.refuse:
            from cranfield.formats import streams

            getattr(streams, self.refuse)(path)
        return path


def _readings(path: str) -> list[str]:
    """The paths that an argument may mean: itself, the path after NAME=, the log before @version."""
    return [part for part in (path, path.partition("=")[2], path.rpartition("@")[0]) if part]


def _is_there(path: str) -> bool:
    """Whether a file exists. A path that cannot be checked counts as existing, so that its reader reports the error."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def _usually(help: str, **settings: Any) -> dict[str, Any]:
    """The settings of a shared option with this text, which `--help` and `--help-all` show."""
    return {**settings, "help": help}


def _rarely(help: str, **settings: Any) -> dict[str, Any]:
    """The settings of a shared option with this text, which only `--help-all` shows."""
    return {**settings, "help": help, "everyday": False}


INPUT, COLLECTION = InputPath(), InputPath("collections")
OUTPUT, NEW_FILE = OutputPath(), OutputPath("refuse_unwritable")
NEW_FOLDER = OutputPath("refuse_unwritable_folder")
READ = {"FILE": INPUT, "QRELS": COLLECTION}  # placeholders of what is read, unless an option has another type
COUNT = click.IntRange(min=1)
WHOLE = click.IntRange(min=0)
DECLARED: dict[str, dict[str, Any]] = {
    # input files and how to read them
    "-m --measures MEASURES": {"multiple": True},
    "--table FILE": _rarely(
        "Read scores per topic from a file, instead of judgments and runs. The file has a row per topic and a "
        "column per run, or it is the csv of eval --per-topic."
    ),
    "--topics FILE": _usually(
        "Use only the topics in this file. The first word of each line is a topic id; # begins a comment."
    ),
    "--topics-file FILE": _rarely(
        "File with the texts of the topics. It is a table (TSV, CSV, JSON lines, Parquet), a file of TREC topics, "
        "or a collection. The other columns of a table serve --by, --weigh-by and --design-weights.  "
        "[default: the collection's topics, if QRELS is a collection]",
        type=COLLECTION,
    ),
    "--by COLUMN": _usually(
        "Column of the topics file to group topics by. The name length stands for the number of words in a query."
    ),
    "--weigh-by COLUMN": _rarely(
        "Column of the topics file with a weight per topic, such as traffic. Weighted means and tests are shown "
        "next to the unweighted ones."
    ),
    "--design-weights": _rarely(
        "Weight sampled topics so that means describe the searches for all queries that could be drawn. The columns "
        "frequency and inclusion_probability of the topics file state the sample; cranfield topics sample writes them. "
        "Intervals and the t test use the variance of the sampling design.",
        is_flag=True,
    ),
    "--rel N": _usually(
        "Lowest relevant grade, unless a measure states it.  [default: 1, or the collection's]", type=float
    ),
    "--baseline RUN": _rarely("Run to compare with, for measures of risk (URisk, TRisk, RPP …)."),
    "--collection FOLDER": {"type": COLLECTION},
    "--collection-size N": _rarely(
        "Number of documents in the collection, for measures that count true negatives (FallOut, AUROC …).", type=COUNT
    ),
    "--preferences FILE": _rarely(
        "File of preference judgments, for PrefSimple and related measures. Its columns are topic, group, "
        "subgroup, document and level.  [default: preferences that follow from the grades]"
    ),
    "--groups FILE": _rarely(
        "File of document groups, for measures of fairness (AWRF, GroupEE_L …). Its columns are document, group "
        "and share."
    ),
    "--aspect-qrels QRELS aspect": _rarely(
        "Judgments of a second aspect such as understandability, for uRBP and uBpref.", was=["--aspect"]
    ),
    "--costs FILE": _rarely(
        "File with the cost of reading each document, for TBG, Umeasure and related measures. Its columns are "
        "document and cost."
    ),
    "--run-format FORMAT": _rarely("Format of the runs; cranfield formats lists them.  [default: detected]"),
    "--qrels-format FORMAT": _rarely("Format of the judgments; cranfield formats lists them.  [default: detected]"),
    "--field OURS=THEIRS fields": _rarely(
        "Name of a column in CSV, TSV, JSON rows or Parquet, such as topic=search. OURS is topic, document, grade, "
        "score, rank, tag, iteration, or query in a table of topics.",
        multiple=True,
        callback=_fields,
    ),
    "--delimiter SIGN": _rarely(
        "Character between the columns of tables: comma, semicolon, tab or pipe.  [default: detected]",
        callback=_check_dialect,
    ),
    "--encoding NAME": _rarely(
        "Encoding of tables, such as utf-8, utf-16 or windows-1252.  [default: detected]", callback=_check_dialect
    ),
    "--decimal SIGN": _rarely(
        "Decimal sign of numbers in tables: point or comma.  [default: detected]", callback=_check_dialect
    ),
    "--grades THEIRS=OURS,...": _rarely(
        "Replace the grades of the judgments, such as 1=0,2=0,3=1,4=2,5=3.", callback=_grade_map
    ),
    "--ignore-case": _rarely(
        "Ignore upper and lower case if topics are matched by the text of their query.", is_flag=True
    ),
    "--duplicates": _rarely(CONVENTIONS["duplicates"][1], metavar=CONVENTIONS["duplicates"][0], callback=_duplicates),
    "--lenient": _rarely(
        "Skip malformed lines and report their number, instead of stopping at the first.", is_flag=True
    ),
    "--memory SIZE": _rarely("Memory limit of DuckDB, such as 3GB.  [default: DuckDB's own]"),
    "--allow-unjudged": _rarely(
        "Continue, with a warning, if 100 or more documents were returned and none is judged or in the collection.",
        is_flag=True,
        expose_value=False,
        callback=_allow_unjudged,
    ),
    "--threads N": {"type": int, "everyday": False, "help": "Number of cores to use.  [default: all]"},
    # the question
    "--alpha A": {"default": 0.05},
    "--confidence L level": _usually("Confidence level of the intervals.", default=0.95, was=["--level"]),
    "--correction NAME": {"default": "holm"},
    "--resamples N": {"type": int, "everyday": False},
    "--trials N": {"type": int, "everyday": False},
    "--seed N": _rarely("Seed for the random numbers.", default=0, callback=_seed),
    "--p P": _rarely("Persistence of rbo, from 0 to 1. A higher value looks deeper into the lists.", default=0.9),
    "--judged K": _rarely("Depth K of judged@K, the share of judged documents among the first K.", default=10),
    "--holes-depth": _rarely(
        "Number of documents to take from the top of each run for --holes.", type=COUNT, default=10
    ),
    "--policy POLICY": {"default": "latest", "was": ["--by"]},
    "--aspect NAME": {"default": "relevance", "everyday": False, "help": "Aspect that was judged."},
    # the display of the answer
    "--per-topic": {"is_flag": True, "help": "Print a row for each topic as well."},
    "--digits N": _rarely(
        "Number of decimals to print.  [default: 4; all of them in json, csv and tsv]", type=int, callback=_check_limit
    ),
    "--spreadsheet": _rarely(
        "Put an apostrophe before text that a spreadsheet would run as a formula. This is for csv and tsv.",
        is_flag=True,
    ),
    "--verbose": {"is_flag": True, "help": "Print the method and all caveats as well."},
    "-o --output FILE": _usually(
        "Write to a file instead of standard output. The file is written as a whole or not at all.", type=NEW_FILE
    ),
}


class RegistryName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A name of one `kind` (`option_values.MEMBERS`) or one of `more` names; they are read when the option is used or shown."""

    name = "name"

    def __init__(self, kind: str, *more: str) -> None:
        self.kind, self.more = kind, more

    @property
    def names(self) -> list[str]:
        """The names that are accepted, in the order of the help."""
        return [*option_values.names(self.kind), *self.more]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; refuse an unknown name and list the known ones."""
        if value not in (names := self.names):
            self.fail(f"{value!r} is not one of {', '.join(map(repr, names))}.", param, ctx)
        return str(value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """All names, for the help; in braces if the argument is required."""
        words = "|".join(self.names)
        return f"{{{words}}}" if isinstance(param, click.Argument) and param.required else f"[{words}]"


def _parts(flags: str) -> tuple[list[str], dict[str, Any]]:
    """The flags and the name of an option, and the settings that follow from its placeholder."""
    words = flags.split()
    placeholder = next((word for word in words if word[0].isupper()), None)
    if placeholder is None:
        return words, {}
    words.remove(placeholder)
    return words, {"metavar": placeholder} | ({"type": READ[placeholder]} if placeholder in READ else {})


SHARED = {tuple(words): implied | DECLARED[flags] for flags in DECLARED for words, implied in [_parts(flags)]}


def option(flags: str, help: str | None = None, **settings: Any) -> Callable[[Command], Command]:
    """An option by its flags, as one types them. SHARED settings apply unless the command overrides them.

    In `flags`, a word in capitals is the placeholder of the value (`--depth K`), and another word names the parameter.
    """
    declarations, implied = _parts(flags)
    settings = {"cls": PlainOption, **SHARED.get(tuple(declarations), {}), **implied, **settings}
    if "name" in settings:
        declarations.append(settings.pop("name"))
    if help is not None:
        settings["help"] = help
    if settings.get("multiple"):
        words, bracket, default = settings["help"].partition("  [")
        settings["help"] = f"{words} May be repeated.{bracket}{default}"
    if settings.get("default") not in (None, ""):
        settings.setdefault("show_default", True)
    return click.option(*declarations, **settings)


def rare(flags: str, help: str | None = None, **settings: Any) -> Callable[[Command], Command]:
    """An option that only `--help-all` shows."""
    return option(flags, help, everyday=False, **settings)


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator for several options, in the order of the help."""

    def add(command: Command) -> Command:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return add


conventions = together(
    option(
        "--as PRESET preset",
        "Follow the conventions of another program; cranfield presets lists them. The options below change "
        "single conventions; their defaults are those of the preset.  [default: cranfield]",
        section="Conventions",
        everyday=False,
    ),
    *(
        option(f"--{name.replace('_', '-')}", meaning, metavar=values, section="Conventions", everyday=False)
        for name, (values, meaning) in CONVENTIONS.items()
    ),
    option(
        "--drop-self/--keep-self",
        "Remove the document whose id equals the topic's id from each ranking, or keep it.",
        default=None,
        section="Conventions",
        everyday=False,
    ),
)

measure_data = together(  # what some measures need besides judgments and runs
    option("--preferences"),
    option("--groups"),
    option("--aspect-qrels aspect"),
    option("--costs"),
)

dialect = together(option("--delimiter"), option("--encoding"), option("--decimal"))
labels = together(dialect, option("--grades"), option("--ignore-case"))
run_format = together(option("--run-format"), option("--field fields"))
formats = together(option("--run-format"), option("--qrels-format"), option("--field fields"))
rules = together(conventions, formats, labels, option("--lenient"), option("--allow-unjudged"))


def _grades(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, ...]:
    """Read `0-3` or `0,1,2.5` as grades."""
    if value is None:
        return ()
    span = re.fullmatch(r"(-?\d+)(?:-|\.\.)(\d+)", value)
    try:
        if span and int(span[1]) < int(span[2]) < 1000:
            return tuple(float(grade) for grade in range(int(span[1]), int(span[2]) + 1))
        return tuple(sorted({real(grade) for grade in value.split(",")}))
    except ValueError:
        raise click.BadParameter(f"expected grades such as 0-3 or 0,1,2, found {value!r}", ctx, parameter) from None


scale_option = option("--scale", "Grades that are allowed; others are refused.", metavar="0-3|0,1,2", callback=_grades)

qrels_and_runs = together(click.argument("qrels"), click.argument("runs", nargs=-1, required=True, metavar="RUN..."))


def runs_or_table(runs: str = "RUN...", measures: str = "nDCG@10 AP RR@10") -> Callable[[Command], Command]:
    """Judgments, runs and measures, or a table of scores; `measures` are the default."""
    return together(
        click.argument("qrels", required=False),
        click.argument("runs", nargs=-1, metavar=runs),
        option(
            "-m --measures",
            f"Measures to compute. With --table: names of its scores, by default all.  [default: {measures}]",
        ),
        option("--table"),
    )


def shape(*shapes: str, help: str = "Output format.", **settings: Any) -> Callable[[Command], Command]:
    """`--format`, whose default is the first shape; and `--spreadsheet` if csv is among the shapes."""
    named = {"name": "shape", "type": click.Choice(shapes), "default": shapes[0], **settings}
    if "csv" not in shapes:
        return option("--format", help, **named)
    return together(
        option("--format", help, callback=_refuse_spreadsheet, **named),
        option("--spreadsheet", callback=_refuse_spreadsheet),
    )


def output(*shapes: str) -> Callable[[Command], Command]:
    """`--format` and `-o`."""
    return together(shape(*shapes), option("-o --output"))


def answer(*shapes: str) -> Callable[[Command], Command]:
    """`--format`, `-o` and `--verbose`, for an answer that states its limits."""
    return together(output(*shapes), option("--verbose"))


def command(help: str | None, **settings: Any) -> Callable[[Callable[..., Any]], CranfieldCommand]:
    """The command of a module, whose docstring is the help."""
    return click.command(cls=CranfieldCommand, help=help, **settings)


def group(help: str | None) -> CranfieldGroup:
    """A group of commands, with the docstring of its module as help."""
    return CranfieldGroup(help=help)


def split(typed: dict[str, Any], **more: Any) -> tuple[Inputs, dict[str, Any], dict[str, Any]]:
    """The options of a command in three parts: input files, display of the answer, and the rest."""
    rest = with_inputs({**typed, **more})
    display = {name: rest.pop(name) for name in DISPLAY if name in rest}
    return rest.pop("inputs"), display, rest


def with_inputs(typed: dict[str, Any]) -> dict[str, Any]:
    """The options of a command; those about files to read and how to read them become one value, `inputs`."""
    from cranfield.inputs.inputs import Inputs

    rest = dict(typed)
    answers = {name: rest.pop(name, None) for name in (*CONVENTIONS, "drop_self")}
    changes = {name: value for name, value in answers.items() if value is not None}
    files = {name: rest.pop(name) for name in Inputs.__dataclass_fields__ if name in rest}
    return {"inputs": Inputs(changes=changes, **files), **rest}


def numbers(typed: str, problem: str) -> list[float]:
    """The numbers in a list with commas; `problem` begins the sentence that refuses anything else."""
    try:
        return [real(number) for number in typed.split(",")]
    except ValueError:
        raise click.UsageError(f"{problem} {typed!r}") from None


def words(typed: Iterable[str]) -> list[str]:
    """The words of an option that may be repeated, and may contain several words with spaces or commas between them."""
    return [word for text in typed for word in text.replace(",", " ").split()]


def refuse_both(inputs: Inputs, groups: Sequence[str] = (), conventions: bool = True) -> None:
    """Require either judgments with runs, or a table. With `conventions`, refuse single conventions next to a table."""
    if inputs.table is not None and conventions and inputs.changes:
        late = next(iter(inputs.changes)).replace("_", "-")
        raise click.UsageError(f"--table holds scores already; --{late} comes too late")
    if inputs.table is not None and (inputs.qrels is not None or inputs.runs):
        raise click.UsageError("--table FILE holds scores already; give no judgments or runs with it")
    if inputs.table is None and (inputs.qrels is None or not (inputs.runs or groups)):
        raise click.UsageError("expected QRELS RUN..., or --table FILE")


def refuse_idle(why: str, *names: str) -> None:
    """Refuse options that were typed but would change nothing, by the names of their values; `why` ends the sentence."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        typed = ctx.get_parameter_source(str(parameter.name)) == click.core.ParameterSource.COMMANDLINE
        if typed and parameter.name in names:
            raise click.UsageError(f"{max(parameter.opts, key=len)} {why}", ctx)


UNUSED = {  # options whose use is known only after reading the files, and the end of the sentence that refuses them
    **dict.fromkeys(("delimiter", "encoding", "decimal"), "is for tables such as CSV and TSV, and none is read"),
    "collection_size": "is for measures that count the documents of the collection, and none is computed",
    "ignore_case": "is for topics that are named by the text of their query, and none is "
    "(--topics-file or a collection states the queries)",
}


COMPARES = "is for measures that compare with a run, and none is computed"


def expect_use(why: str, *names: str) -> None:
    """Refuse options, as `refuse_idle` does, unless the code that reads files reports their use (`notifications.tell_used`)."""
    click.get_current_context().meta.setdefault(UNUSED_HERE, {}).update(dict.fromkeys(names, why))


def refuse_unused(used: set[str]) -> None:
    """Refuse options that were typed and not used, after all files are read and before any is written."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:  # a thread of a server, which writes no answer of a command
        return
    for name, why in {**UNUSED, **ctx.meta.get(UNUSED_HERE, {})}.items():
        if name not in used:
            refuse_idle(why, name)


def refuse_reading(inputs: Inputs, option: str) -> None:
    """Refuse options about reading files if `option` replaces the files."""
    read = {"run_format": inputs.run_format, "qrels_format": inputs.qrels_format, "field": inputs.fields}
    late = ["as"] * (inputs.preset is not None)
    late += [*inputs.changes, *(name for name, value in read.items() if value is not None)]
    if late:
        raise click.UsageError(f"{option} reads no judgments or runs; leave out --{late[0].replace('_', '-')}")
    read_by_none = ("measures", "rel", "delimiter", "encoding", "decimal", "lenient", *OF_JUDGMENTS)
    refuse_idle(f"is for judgments and runs, and {option} reads none", *read_by_none)


def without_algebra() -> None:
    """Keep NumPy's linear algebra from starting its threads, which scoring never uses: this saves a third of NumPy's start."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _time_limit(part: str, seconds: float) -> Callable[[Command], Command]:
    """`--header-time` or `--body-time`."""
    return rare(
        f"--{part}-time S {part}_seconds",
        f"Time limit for the {'headers' if part == 'header' else part} of a request, in seconds.",
        type=click.FloatRange(min=0.1, max=3600),
        default=seconds,
    )


def serving(port: int, secrets: str) -> Callable[[Command], Command]:
    """Where a server listens (by default on this machine only), how it is protected, and what one client may use."""
    return together(
        option("--host ADDRESS", "Address to listen on.", default="127.0.0.1"),
        option("--port", "Port to listen on; 0 takes a free one.", type=click.IntRange(0, 65535), default=port),
        option("--tls-cert FILE certificate", "Certificate for https; needs --tls-key."),
        option("--tls-key FILE", "Private key of the certificate."),
        option(
            "--behind-proxy ADDRESS proxy",
            "Address of the reverse proxy that handles TLS. Its X-Forwarded-For header is trusted.",
        ),
        rare("--insecure", f"Serve other machines without TLS. {secrets} can then be read on the way.", is_flag=True),
        rare(
            "--connections N",
            "Maximum number of connections at a time.  [default: 3/4 of ulimit -n, up to 4096]",
            type=COUNT,
        ),
        rare(
            "--per-address N",
            "Maximum number of connections per client address. Behind a proxy, this limits requests.  "
            "[default: half of --connections, up to 256]",
            type=COUNT,
        ),
        _time_limit("header", 10.0),
        _time_limit("body", 30.0),
    )


def limits_of(typed: dict[str, Any]) -> ClientLimits:
    """The limits of a server."""
    from cranfield.http.connections import ClientLimits

    return ClientLimits(
        **{name: typed[name] for name in ("connections", "per_address", "header_seconds", "body_seconds")}
    )
