"""Write a report: a page that opens offline, tables for a paper, data, or one chart.

The ending of -o FILE says which: -o report.html is one page that needs no network, with summary, leaderboard,
comparison, per-topic differences, curves, distributions, topics, conventions, versions and the hashes of all files;
.md, .tex (booktabs), .json and .csv hold the same as text; with --chart a single chart goes to .svg, .png, .pdf or
.vl.json.

\b
$ cranfield report qrels.txt bm25.run dense.run -m "nDCG@10 AP" --format md
"""

from __future__ import annotations

import shlex
from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.compare import question
from cranfield.cli.options import COLLECTION, option
from cranfield.cli.output import about, limits
from cranfield.columns import in_bytes

PLACE = 190
PARTS = ("means", "pairs", "both")
ENDINGS = ("html", "md", "tex", "json", "csv", "svg", "png", "pdf", "vl.json")


@options.command(__doc__)
@question
@options.rules
@option("--threads")
@option("-o --output", "The file to write, whole or not at all; its ending says what it is.")
@option(
    "--format", "What to write; md to standard output if nothing says it.", name="shape", type=click.Choice(ENDINGS)
)
@option("--spreadsheet", "With csv: put an apostrophe before text that a spreadsheet would take for a formula.")
@option(
    "--latex",
    "With tex: the means, with raised letters for what is significant, the pairs, or both.",
    type=click.Choice(PARTS),
)
@option("--title", "The title.  [default: the runs and the judgments]", metavar="TEXT")
@option(
    "--chart",
    "One chart of the first measure alone, as svg, png, pdf or vl.json (the Vega-Lite specification).",
    metavar="differences|scatter|pr|distribution|ranks|topics|intervals",
)
@option("--pair", "The two systems of a chart of two.", nargs=2, metavar="ONE OTHER")
@option(
    "--documents",
    "What documents say, for a page: a collection's folder, or JSON lines with id, title, text.",
    type=COLLECTION,
    metavar="PATH",
)
@option("--no-texts", "With html: leave out what documents say; their ids stay.", is_flag=True)
@option("--digits", "Decimals to show.", type=click.IntRange(0, 12), default=4)
@option("--verbose", "Say here as well all that limits it; the report says it anyway.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str | None,
    shape: str | None,
    chart: str | None,
    pair: tuple[str, str] | None,
    digits: int,
    spreadsheet: bool,
    no_texts: bool,
    documents: str | None,
    verbose: bool,
    latex: str | None,
    **typed: Any,
) -> None:
    from cranfield.cli.progress import progress
    from cranfield.formats.streams import write_bytes
    from cranfield.report.write import written
    from cranfield.workspace.comparing import report

    inputs, _, how = options.split(typed)
    options.refuse_both(inputs, how["run_groups"], conventions=False)
    ending = shape or ("tex" if latex and output in (None, "-") else _ending(output))
    _fitting(ending, chart)
    if spreadsheet and ending != "csv":
        raise click.UsageError(f"--spreadsheet is for csv, not for {ending}")
    if latex and ending != "tex":
        raise click.UsageError(f"--latex is for tex, not for {ending}")
    if (documents or no_texts) and ending != "html":
        raise click.UsageError(f"{'--documents' if documents else '--no-texts'} is for html, not for {ending}")
    if documents and no_texts:
        raise click.UsageError("--no-texts leaves out what --documents says; give one of them")
    with progress("runs scored") as tell:
        words: dict[str, Any] = {"documents": documents, "texts": ending == "html" and not no_texts}
        page = report(inputs, command=as_typed(ctx), digits=digits, progress=tell, **words, **how)
    data = written(page, ending, chart, pair or None, spreadsheet=spreadsheet, latex=latex or "both")
    if page.documents is not None:
        about(output or "-", f"{in_bytes(page.size_of_texts)} of it what documents say (--no-texts leaves that out)")
    write_bytes("-" if output is None else output, [data])
    limits(page.comparison, verbose, output)


def _ending(path: str | None) -> str:
    """What a file's ending says; Markdown is what people can read where there is no file."""
    from cranfield.report.write import ending_of

    return "md" if path is None or path == "-" else ending_of(path)


def _fitting(ending: str, chart: str | None) -> None:
    """Refuse what cannot be written before anything is computed."""
    from cranfield.report.figures import CHARTS
    from cranfield.report.write import CHART_ENDINGS

    if ending not in ENDINGS:
        raise click.UsageError(f"-o FILE must end in {', '.join(f'.{each}' for each in ENDINGS)} (or give --format)")
    if chart is not None and chart not in CHARTS:
        raise click.UsageError(f"--chart must be one of {', '.join(CHARTS)}, got {chart!r}")
    if (chart is not None) != (ending in CHART_ENDINGS):
        endings = ", ".join(f".{each}" for each in CHART_ENDINGS)
        raise click.UsageError(f"--chart NAME and a file that ends in {endings} go together")


def as_typed(ctx: click.Context) -> str:
    """The command as it was typed, without what was left at its default, ready for a shell; a log's password is masked."""
    from cranfield.parameters import masked

    words, flags = ["cranfield", "report"], []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value: Any = ctx.params.get(name)
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Argument):
            words += [value] if isinstance(value, str) else list(value)
        elif isinstance(parameter, click.Option):
            flags += _option_as_typed(parameter, value)
    return shlex.join(map(masked, [*words, *flags]))


def _option_as_typed(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        return [(option.opts if value or not option.secondary_opts else option.secondary_opts)[-1]]
    if option.multiple:
        return [word for each in value for word in (option.opts[0], str(each))]
    return [option.opts[0], *(map(str, value) if option.nargs > 1 else [str(value)])]
