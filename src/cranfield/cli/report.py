"""Write a report: offline page, paper tables, data, or a chart.

The ending of -o FILE chooses the format. report.html is one page that needs no network: summary, leaderboard,
comparison, charts, topics, conventions, versions, and the hashes of all files. .md, .tex (booktabs), .json and .csv
hold the same as text. --chart writes a single chart as .svg, .png, .pdf or .vl.json.

\b
$ cranfield report qrels.txt bm25.run dense.run -m "nDCG@10 AP" --format md
"""

from __future__ import annotations

import shlex
from typing import Any

import click

from cranfield.base.text_layout import in_bytes
from cranfield.cli import options
from cranfield.cli.compare import question
from cranfield.cli.options import option, rare
from cranfield.cli.output import about, limits, progress

PLACE = 190
PARTS = ("means", "pairs", "both")
ENDINGS = ("html", "md", "tex", "json", "csv", "svg", "png", "pdf", "vl.json")


@options.command(__doc__)
@question
@options.rules
@option("--threads")
@option("-o --output", "File to write, as a whole or not at all; its ending chooses the format.")
@option("--format shape", "Output format.  [default: the ending of -o, or md]", type=click.Choice(ENDINGS))
@option("--spreadsheet", "Put an apostrophe before text that a spreadsheet would run as a formula. This is for csv.")
@rare(
    "--latex",
    "Tables to write with tex: the means with raised letters for significant differences, the pairs, or both.  "
    "[default: both]",
    type=click.Choice(PARTS),
)
@option("--title TEXT", "Title of the report.  [default: run names]")
@rare(
    "--chart",
    "Write a single chart of the first measure. The file is svg, png, pdf, or vl.json (Vega-Lite).",
    metavar="differences|scatter|pr|distribution|ranks|topics|intervals",
)
@rare(
    "--pair", "Two runs to show in a chart of two runs.  [default: those that differ most]", nargs=2, metavar="RUN RUN"
)
@option(
    "--collection PATH",
    "Texts of the documents, for an html report. It is a collection, or JSON lines with id, title and text.",
    name="documents",
    was=["--documents"],
)
@rare("--no-texts", "Leave the texts of documents out of an html report; ids stay.", is_flag=True)
@rare(
    "--clicks LOG",
    "Event log, to show clicks and examination by rank, and click-through by judged grade, in html, md or json.",
    type=options.INPUT,
)
@rare("--click-model MODEL", "Click model that says how far users look, for --clicks.  [default: PBM]")
@option("--digits", "Number of decimals.", type=click.IntRange(0, 12), default=4)
@rare("--verbose", "Print all caveats here as well; the report has them anyway.")
@click.pass_context
def command(ctx: click.Context, /, output: str | None, no_texts: bool, verbose: bool, **typed: Any) -> None:
    from cranfield.commands.comparison import report
    from cranfield.formats.streams import write_bytes
    from cranfield.reports.writers import render

    how = options.with_inputs(typed)
    options.refuse_both(how["inputs"], how["run_groups"], conventions=False)
    shape, chart, pair, spreadsheet, latex = map(how.pop, ("shape", "chart", "pair", "spreadsheet", "latex"))
    ending = shape or ("tex" if latex and output in (None, "-") else _ending(output))
    documents = how["documents"]
    _refuse_unwritable(ending, chart)
    if spreadsheet and ending != "csv":
        raise click.UsageError(f"--spreadsheet is for csv, not for {ending}")
    if latex and ending != "tex":
        raise click.UsageError(f"--latex is for tex, not for {ending}")
    if (documents or no_texts) and ending != "html":
        raise click.UsageError(f"{'--collection' if documents else '--no-texts'} is for html, not for {ending}")
    _refuse_clicks(ending, how["clicks"])
    if how["click_model"] and not how["clicks"]:
        raise click.UsageError("--click-model is for --clicks LOG; give that too")
    if documents and no_texts:
        raise click.UsageError("--no-texts leaves out the texts that --collection gives; give one of them")
    with progress("runs scored") as tell:
        page = report(command=as_typed(ctx), texts=ending == "html" and not no_texts, progress=tell, **how)
    data = render(page, ending, chart, pair or None, spreadsheet=spreadsheet, latex=latex or "both")
    if page.documents is not None:
        about(output or "-", f"{in_bytes(page.size_of_texts)} of it what documents say (--no-texts leaves that out)")
    write_bytes("-" if output is None else output, [data])
    limits(page.comparison, verbose, output)


def _ending(path: str | None) -> str:
    """The ending of a file; md for standard output, because people can read it."""
    from cranfield.reports.writers import ending_of

    return "md" if path is None or path == "-" else ending_of(path)


def _refuse_unwritable(ending: str, chart: str | None) -> None:
    """Refuse formats and charts that cannot be written, before anything is computed."""
    from cranfield.reports.result_charts import CHARTS
    from cranfield.reports.writers import CHART_ENDINGS

    if ending not in ENDINGS:
        raise click.UsageError(f"-o FILE must end in {', '.join(f'.{each}' for each in ENDINGS)} (or give --format)")
    if chart is not None and chart not in CHARTS:
        raise click.UsageError(f"--chart must be one of {', '.join(CHARTS)}, got {chart!r}")
    if (chart is not None) != (ending in CHART_ENDINGS):
        endings = ", ".join(f".{each}" for each in CHART_ENDINGS)
        raise click.UsageError(f"--chart NAME and a file that ends in {endings} go together")


def _refuse_clicks(ending: str, clicks: str | None) -> None:
    """Refuse clicks in a format that does not show them."""
    from cranfield.reports.writers import WITH_CLICKS

    if clicks and ending not in WITH_CLICKS:
        raise click.UsageError(f"--clicks is for {', '.join(WITH_CLICKS)}, not for {ending}")


def as_typed(ctx: click.Context) -> str:
    """The command line without defaults, quoted for a shell; the password of a log is masked."""
    from cranfield.base.parameters import masked

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
