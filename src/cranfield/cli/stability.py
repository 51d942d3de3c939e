"""`cranfield stability`: would other judgments, other topics or another measure rank the runs alike?"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.output import note, put, screen_width

PARTS = "measures, qrels, halves, discrimination, generalisability"


@click.command("stability", cls=options.Sectioned)
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="RUN...")
@options.measures_or_table
@click.option(
    "--of",
    "parts",
    multiple=True,
    metavar="PARTS",
    help=f"What to look at: {PARTS}; lists compares the result lists by RBO. May be repeated.  [default: all but lists]",
)
@click.option("--other-qrels", metavar="QRELS", help="For qrels: compare with the ranking by these judgments.")
@click.option("--other-table", metavar="FILE", help="The same for --table: scores under other judgments.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KINDS",
    help="How rankings are compared: tau, tau-ap, tau-ap-b, spearman, rbo …; lists alone also by overlap@10 …  "
    "[default: tau tau-ap-b rbo; of lists rbo]",
)
@click.option("--p", type=float, default=0.9, show_default=True, metavar="P", help="The patience of rbo, 0 to 1.")
@click.option(
    "--test",
    default="randomised-tukey",
    show_default=True,
    metavar="NAME",
    cls=names.Named,
    names=names.tests_that_tell,
    help="What tells runs apart: {names}. Paired tests are not corrected.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="A", help="Its level.")
@click.option("--level", type=float, default=0.95, show_default=True, metavar="L", help="That of intervals.")
@click.option(
    "--target", type=float, default=0.95, show_default=True, metavar="R", help="The reliability to count topics for."
)
@click.option("--trials", type=int, default=500, show_default=True, metavar="N", help="Random splits of the topics.")
@click.option("--resamples", type=int, default=10_000, show_default=True, metavar="N", help="Shuffles of the test.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Where chance starts.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, where a measure does not say so itself."
)
@click.option("--topics", metavar="FILE", help="Look only at these topics: the first word of each line.")
@options.output("text", "json", "csv", "tsv")
@options.conventions
@options.reading
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    parts: tuple[str, ...],
    shape: str,
    output: str | None,
    **given: Any,
) -> None:
    """Say how stable the ranking of the runs is: under other measures, judgments and topics.

    Rankings are compared by Kendall's tau and AP correlation; halves splits the topics at random again and again;
    discrimination counts the pairs of runs that a measure tells apart; generalisability says how many topics make
    the ranking reliable. csv and tsv hold one part, its curve where it has one. -o FILE ending in .svg, .png, .pdf,
    .html or .vl.json draws one part: achieved significance levels, agreement by number of topics, reliability.

    \b
    $ cranfield stability qrels.txt bm25.run dense.run -m "nDCG@10 AP" --of "discrimination halves"
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import draw_stability, stability_

    changes = options.taken(given)
    options.runs_or_table(qrels, runs, given["table"], changes)
    with progress("parts") as tell:
        found, lists = stability_(qrels, runs, parts=parts, changes=changes, progress=tell, **given)
    if found is None and output is not None and output.endswith((".svg", ".png", ".pdf", ".html", ".vl.json")):
        raise click.UsageError("lists have no chart; choose halves, discrimination, generalisability or qrels")
    if output is not None and found is not None and draw_stability(found, output):
        pass
    elif shape == "text":
        texts = [found.to_text(limit=screen_width(output))] if found is not None else []
        texts += [f"lists: do the runs return the same documents?\n{lists.to_text()}"] if lists is not None else []
        put("\n\n".join(texts), output)
    elif shape == "json":
        from cranfield.answer import as_json

        told = {} if found is None else found.to_dict()
        put(as_json(told if lists is None else {**told, "lists": lists.to_dict()}), output)
    elif lists is not None:
        if found is not None:
            raise click.UsageError(f"--format {shape} holds one part; choose one with --of")
        put(lists.to_csv() if shape == "csv" else lists.to_tsv(), output)
    elif found is not None:
        put(found.to_csv() if shape == "csv" else found.to_tsv(), output)
    for sentence in [*(found.notes() if found is not None else []), *(lists.notes() if lists is not None else [])]:
        note(f"note: {sentence}")
