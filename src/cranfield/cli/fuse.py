"""Fuse runs into one.

Documents out are all that any run returned, in the order that the method gives them. Methods of ranks (RRF, Borda …)
need no normalisation.

\b
$ cranfield fuse bm25.run dense.run --method RRF -k 10
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import COLLECTION, INPUT, option
from cranfield.cli.output import about, note, notes, show
from cranfield.parameters import real

PLACE = 60


@options.command(__doc__)
@click.argument("runs", nargs=-1, metavar="RUN...")
@option(
    "--method",
    lambda: f"How to fuse: {names.fusions()}; parameters in brackets, as in RRF(k=10), RBC(phi=0.9).",
    default="RRF",
    metavar="METHOD",
)
@option(
    "--norm",
    "How scores are normalised first, for methods that read scores.  [default: min-max]",
    metavar=names.norms,
)
@option(
    "--weights",
    lambda: (
        f"One weight per run, for {names.fusions('takes_weights')}. Without them, {names.fusions('needs_weights')} tune "
        "their weights on --train-qrels."
    ),
    metavar="W,W,…",
)
@option("-k --depth", "Keep the best K documents of each topic.", type=click.IntRange(min=1), metavar="K")
@option(
    "--train-qrels",
    lambda: f"Judgments to learn from, for {names.fusions('trained', 'needs_weights')}.",
    type=COLLECTION,
    metavar="QRELS",
)
@option("--train-topics", "Learn from these topics only: the first word of each line.", type=INPUT, metavar="FILE")
@option("--folds", "Fuse each Nth of the topics by what the other topics taught.", type=int, metavar="N")
@option("--seed", "How --folds are drawn.")
@option("--measure", "What tuned weights shall maximise.", default="AP", metavar="MEASURE")
@option("--step", "How fine weights are tuned.", default=0.1, metavar="S")
@option("--rel", "The lowest relevant grade.  [default: 1, or what the collection says]", type=float)
@option("--name", "The tag of the fused run.  [default: the method]", metavar="NAME")
@option("--run-format", "The runs' format, if it is not to be detected.")
@option("--field fields")
@option("--allow-unjudged")
@option("-o --output")
@option("--list", "List the methods and normalisations, and fuse nothing.", name="listing", is_flag=True)
@options.shape("table", "json", help="How to print --list.", show_default=False)
def command(weights: str | None, output: str | None, listing: bool, shape: str, **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.listing import fusions
    from cranfield.workspace.running import fuse

    if listing:
        show(fusions(), shape, output)
        return
    inputs, _, how = options.split(typed)
    if len(inputs.runs) < 2:
        raise click.UsageError("give two runs or more; --list shows the methods")
    if how["train_qrels"] is None:
        options.refuse_idle(
            "is for learning: give --train-qrels",
            *("train_topics", "folds", "seed", "measure", "step", "rel", "allow_unjudged"),
        )
    with progress("weights tried") as tell:
        fused = fuse(inputs, output=output or "-", weights=_numbers(weights), progress=tell, **how)
    for tuned in fused.tuned:
        note(str(tuned))
    if output not in (None, "-"):
        size = f"{len(fused.run)} rows, {len(fused.run.topics)} topics"
        about(str(output), f"{size}, {how['method']} of {len(inputs.runs)} runs")
    notes(fused.notes)


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [real(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--weights expects numbers with commas between them, got {text!r}") from None
