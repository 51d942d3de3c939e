"""`cranfield compare`: differences between runs, with intervals, p-values and plain sentences."""

from __future__ import annotations

import sys
from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.output import note, put, screen_width, style

ASKED = (
    "baselines",
    "tests",
    "correction",
    "alpha",
    "level",
    "interval",
    "resamples",
    "seed",
    "alternative",
    "rope",
    "margin",
    "groups",
)


@click.command("compare", cls=options.Sectioned)
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="RUN RUN...")
@options.measures_or_table
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    help="Compare the others with this run instead of each with each. May be repeated.",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    default=["randomisation"],
    show_default=True,
    metavar="NAME|all",
    cls=names.Named,
    names=names.all_tests,
    help="The first decides; all makes each. Of pairs: {names}. May be repeated.",
)
@click.option(
    "--correction",
    default="holm",
    show_default=True,
    metavar="NAME",
    cls=names.Named,
    names=names.corrections,
    help="Over all pairs and measures: {names}.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="A", help="Significant is p <= A.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="The level of the intervals.")
@click.option(
    "--interval",
    default="t",
    show_default=True,
    cls=names.Named,
    names=names.intervals,
    metavar="{names}",
    help="How the interval of the mean difference is made.",
)
@click.option(
    "--resamples",
    type=int,
    metavar="N",
    help="Random draws of a test.  [default: 100000, or as many as the correction needs]",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Where chance starts.")
@click.option(
    "--alternative",
    default="two-sided",
    show_default=True,
    metavar="two-sided|better|worse|greater|less",
    help="What the test looks for, of the other run against the baseline.",
)
@click.option("--rope", type=float, metavar="X", help="For bayes: differences up to X do not matter.")
@click.option(
    "--margin", type=float, metavar="X", help="Test for equivalence and non-inferiority within X as well (TOST)."
)
@click.option(
    "--group",
    "run_groups",
    multiple=True,
    metavar="[NAME=]PATTERN",
    help="Runs of one system that differ by chance, such as 'dense.seed*.run': compared over topics and seeds at once.",
)
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--topics", metavar="FILE", help="Look only at these topics: the first word of each line.")
@click.option(
    "--collection-size", type=click.IntRange(min=1), metavar="N", help="How many documents the collection holds."
)
@click.option("--preferences", metavar="FILE", help="Preference judgments, for PrefSimple and its kin.")
@click.option("--groups", metavar="FILE", help="Groups of documents, for measures of fairness.")
@click.option("--aspect", metavar="QRELS", help="Judgments of a second aspect (uRBP, uBpref).")
@click.option("--costs", metavar="FILE", help="What documents cost to read, for TBG, Umeasure and kin.")
@click.option("--bars/--no-bars", default=None, help="Draw each topic's difference.  [default: for a single pair]")
@click.option("--all-pairs", "every", is_flag=True, help="Show every pair, however many there are.")
@click.option("--per-topic", is_flag=True, help="In json, csv and tsv: the difference of each topic.")
@click.option(
    "--digits", type=int, metavar="N", help="Decimals to print.  [default: 4; all of them in json, csv and tsv]"
)
@options.output("text", "json", "csv", "tsv", "markdown")
@options.conventions
@options.reading
@click.option("--threads", type=int, metavar="N", help="How many cores to score with.  [default: all]")
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    run_groups: tuple[str, ...],
    bars: bool | None,
    every: bool,
    per_topic: bool,
    digits: int | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Compare runs: by how much one is better, and how sure that is.

    For every pair of runs, or each against the baselines: means, difference with its interval, effect size d_z, topics
    won, tied and lost (W/T/L), p-value and corrected p-value; the same in a sentence; and what to beware of. --table
    FILE takes scores per topic (topics × runs) in place of judgments and runs.

    \b
    $ cranfield compare qrels.txt bm25.run dense.run -m "nDCG@10 AP"
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import compare_

    if digits is not None and digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    options.runs_or_table(qrels, (*runs, *run_groups), given["table"])
    changes = options.taken(given)
    asked = {name: given.pop(name) for name in ASKED if name in given and name != "groups"}
    asked |= {"groups": run_groups or None, "baselines": asked["baselines"] or None}
    with progress("comparing") as tell:
        found = compare_(qrels, runs, asked=asked, changes=changes, progress=tell, **given)
    places = 4 if digits is None else digits
    if shape == "text":
        put(
            found.to_text(
                bars=bars,
                digits=places,
                limit=screen_width(output),
                every=every,
                ascii_only=_ascii_only(output),
                style=style(output),
            ),
            output,
        )
    elif shape == "markdown":
        put(found.to_markdown(digits=places, every=every), output)
    else:
        put({"json": found.to_json, "csv": found.to_csv, "tsv": found.to_tsv}[shape](per_topic, digits), output)
    if shape in ("csv", "tsv"):
        for sentence in found.notes():
            note(sentence)
    for sentence in found.scores.notes(shell=True):
        note(f"note: {sentence}")


def _ascii_only(output: str | None) -> bool:
    """Whether what shows the text can show no blocks."""
    encoding = (sys.stdout.encoding or "ascii") if output is None else "utf-8"
    try:
        "█▏░│".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False
