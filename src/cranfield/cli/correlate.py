"""`cranfield correlate`: how alike are result lists, or the rankings of systems that measures give?"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width

KINDS = "rbo, rbo-min, rbo-max, rbo-res, rbo-cut, overlap, average-overlap, jaccard, ktu, ktu-by-name"
COEFFICIENTS = "tau, tau-a, tau-b, tau-ap, tau-ap-a, tau-ap-b, spearman, weighted-tau, pearson"


@click.command("correlate", cls=options.Sectioned)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KINDS",
    help=f"Of result lists: {KINDS}, each also as overlap@10; of lists and of systems: {COEFFICIENTS}. "
    "May be repeated; without it, rbo of lists, tau and tau-ap of systems.",
)
@click.option("--p", type=float, default=0.9, show_default=True, metavar="P", help="The patience of rbo, 0 to 1.")
@click.option("--depth", type=int, metavar="K", help="Compare the first K documents only.")
@click.option(
    "--tied",
    metavar="a|b|w|order",
    default="a",
    show_default=True,
    help="Documents of equal score: expected over their orders (a), corrected for ties (b), equals (w), or in the order "
    "that the conventions give them.",
)
@click.option(
    "--documents",
    metavar="union|both",
    default="union",
    show_default=True,
    help="What to correlate where lists differ: all documents, those that a list lacks behind its end, or those in both.",
)
@click.option(
    "--systems", "qrels", metavar="QRELS", help="Compare how measures rank the runs, scored by these judgments."
)
@click.option("-m", "--measures", multiple=True, metavar="MEASURES", help="With --systems: two measures or more.")
@click.option("--other-qrels", metavar="QRELS", help="With --systems: compare with the rankings by these judgments.")
@click.option("--per-topic", is_flag=True, help="A row for each topic as well.")
@click.option(
    "--digits", type=int, metavar="N", help="Decimals to print.  [default: 4; all of them in json, csv and tsv]"
)
@options.output("table", "json", "csv", "tsv")
@options.conventions
@options.reading
def command(
    runs: tuple[str, ...],
    kinds: tuple[str, ...],
    qrels: str | None,
    measures: tuple[str, ...],
    other_qrels: str | None,
    per_topic: bool,
    digits: int | None,
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Compare runs by their result lists, or measures by how they rank systems.

    Two runs or more are compared each with each, topic by topic. With --systems the question is another: do two
    measures, or two sets of judgments, put the same runs into the same order?

    \b
    $ cranfield correlate bm25.run dense.run --kind "rbo tau jaccard@10"
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import correlate_, correlate_systems

    if digits is not None and digits < 0:
        raise click.UsageError(f"--digits must be 0 or more, got {digits}")
    changes = options.taken(given)
    if qrels is None:
        if measures or other_qrels:
            raise click.UsageError("-m and --other-qrels need judgments: --systems QRELS")
        del given["qrels_format"]
        with progress("pairs compared") as tell:
            found = correlate_(runs, kinds, changes=changes, progress=tell, **given)
    else:
        if not measures:
            raise click.UsageError('--systems needs measures: -m "AP nDCG@10"')
        for name in ("p", "depth", "tied", "documents"):
            del given[name]
        found = correlate_systems(qrels, runs, measures, kinds, other_qrels, changes=changes, **given)
    if shape == "table":
        put(found.to_text(per_topic, 4 if digits is None else digits, screen_width(output)), output)
    else:
        put({"json": found.to_json, "csv": found.to_csv, "tsv": found.to_tsv}[shape](per_topic, digits), output)
    for sentence in found.notes():
        note(f"note: {sentence}")
