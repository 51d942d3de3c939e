"""`cranfield curve`: runs × judgments → precision-recall and other curves, as data or as a picture."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width


@click.command("curve", cls=options.Sectioned)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--kind",
    default="pr",
    show_default=True,
    metavar="pr|pr11|roc|recall|gain",
    help="Which curve: precision-recall, at eleven recall levels, ROC, recall or gain by rank.",
)
@click.option("--rel", type=float, default=1, metavar="N", help="The lowest relevant grade; 1 if not given.")
@click.option("--depth", type=int, default=1000, show_default=True, metavar="N", help="How many ranks are looked at.")
@click.option(
    "--level", default="exact", metavar="exact|trec_eval-9|trec_eval-10", help="How pr11 counts recall levels."
)
@click.option("--topic", metavar="TOPIC", help="The curve of one topic, instead of the mean over all.")
@click.option(
    "--collection-size", type=click.IntRange(min=1), metavar="N", help="Documents in the collection, for roc."
)
@options.output("table", "json", "csv", "tsv")
@options.conventions
@options.reading
def command(
    qrels: str, runs: tuple[str, ...], shape: str, output: str | None, rel: float, kind: str, **given: Any
) -> None:
    """Draw precision-recall and other curves of runs, or print their points.

    -o FILE with the ending .svg, .png, .html (which needs no network) or .vl.json (the Vega-Lite specification) draws a
    chart of all runs with their areas in the legend; anything else gets the points. Charts need: pip install
    'cranfield[plots]'.

    \b
    $ cranfield curve qrels.txt bm25.run dense.run --kind pr11
    """
    from cranfield.workspace import curve_, draw

    changes = options.taken(given)
    curves = curve_(qrels, runs, kind, rel=rel, changes=changes, **given)
    if output is not None and draw(curves, output):
        pass
    elif shape == "table":
        put(curves.to_text(limit=screen_width(output)), output)
    elif shape == "json":
        put(curves.to_json(), output)
    else:
        put(curves.to_csv() if shape == "csv" else curves.to_tsv(), output)
    for sentence in curves.notes():
        note(f"note: {sentence}")
