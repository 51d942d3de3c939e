"""`cranfield gate`: may a candidate replace the baseline? For continuous integration."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.output import note, put, screen_width


@click.command("gate", cls=options.Sectioned)
@click.argument("qrels")
@click.argument("baseline")
@click.argument("candidate")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    default=["nDCG@10"],
    show_default=True,
    metavar="MEASURES",
    help="What must not fall. May be repeated; the gate fails if one of them does.",
)
@click.option(
    "--max-drop",
    multiple=True,
    metavar="N|MEASURE=N",
    help="How much of the mean may be lost, for all measures or for one. May be repeated.  [default: 0.01]",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    metavar="A",
    help="How often an equal candidate may seem worse.",
)
@click.option(
    "--test",
    default="t",
    show_default=True,
    cls=names.Named,
    names=names.gate_tests,
    metavar="{names}",
    help="Which one-sided interval of the mean difference decides.",
)
@click.option(
    "--documents",
    metavar="FILE",
    help="The ids that are in the corpus now, one a line: tells documents gone from documents ranked lower.",
)
@click.option(
    "--forgive-turnover",
    is_flag=True,
    help="With --documents: take documents that are gone out of judgments and baseline before the verdict.",
)
@click.option(
    "--worst", type=int, default=10, show_default=True, metavar="N", help="How many topics that fell to name."
)
@click.option("--judged", "k", type=int, default=10, show_default=True, metavar="K", help="The depth of judged@K.")
@click.option(
    "--resamples", type=int, default=100_000, show_default=True, metavar="N", help="Sign flips of --test randomisation."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="For --test randomisation.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--topics", metavar="FILE", help="Look only at these topics: the first word of each line.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML as well: a test case a measure.")
@click.option("--markdown", metavar="FILE", help="Write Markdown as well, for a comment on a pull request.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON as well.")
@options.output("text", "json", "csv", "tsv", "markdown", "junit")
@options.conventions
@options.reading
@click.pass_context
def command(
    ctx: click.Context,
    /,
    qrels: str,
    baseline: str,
    candidate: str,
    measures: tuple[str, ...],
    junit: str | None,
    markdown: str | None,
    json_file: str | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Fail if a candidate run is worse than the baseline by more than is allowed, and not by chance.

    Exit code 1 means that by some measure the mean fell by more than --max-drop and that the one-sided interval of the
    difference lies below 0; 3 that it fell by more but cannot be told from chance for want of topics, or that the
    data cannot be used; 0 everything else. The report names the topics that fell most, and says whether documents
    left the corpus or are unjudged rather than ranked lower.

    \b
    $ cranfield gate qrels.txt bm25.run dense.run -m "nDCG@10 AP" --max-drop 0.02 --max-drop AP=0.05
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import gate_, write_together

    named = [path for path in (junit, markdown, json_file, output) if path is not None]
    if len(set(named)) < len(named) or "-" in (junit, markdown, json_file):
        raise click.UsageError("each output needs a file of its own; --format chooses what goes to standard output")
    changes = options.taken(given)
    with progress("steps") as tell:
        found = gate_(qrels, baseline, candidate, measures, changes=changes, progress=tell, **given)
    write = {
        "text": lambda: found.to_text(limit=screen_width(output)),
        "json": found.to_json,
        "csv": found.to_csv,
        "tsv": found.to_tsv,
        "markdown": found.to_markdown,
        "junit": found.to_junit,
    }
    files = {junit: "junit", markdown: "markdown", json_file: "json", output: shape}
    write_together({path: write[kind]() for path, kind in files.items() if path is not None and path != "-"})
    if output in (None, "-"):
        put(write[shape]())
    for sentence in found.notes(shell=True):
        note(f"note: {sentence}")
    if found.exit_code:
        ctx.exit(found.exit_code)
