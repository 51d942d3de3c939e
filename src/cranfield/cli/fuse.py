"""Fuse runs into one.

The fused run contains every document that any run returned, ordered by the method. Methods that read ranks (RRF,
Borda …) need no normalisation.

\b
$ cranfield fuse bm25.run dense.run --method RRF -k 10
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import options
from cranfield.cli.options import COUNT, option, rare
from cranfield.cli.output import about, note, notes, progress, show

PLACE = 60


@options.command(__doc__)
@click.argument("runs", nargs=-1, metavar="RUN...")
@option(
    "--method METHOD",
    "Fusion method, such as RRF or CombSUM. It is one of {fusions}; "
    "parameters follow in brackets, as in RRF(k=10) and RBC(phi=0.9).",
    default="RRF",
)
@option("--norm", "Normalisation of the scores, for methods that read scores.  [default: min-max]", metavar="{norms}")
@option(
    "--weights W,W,…",
    "Weights of the runs. {weighted_fusions} take weights. "
    "Without them, {tuned_fusions} tune their weights on --train-qrels.",
)
@option("-k --depth K", "Number of documents to keep per topic.  [default: all]", type=COUNT)
@option("--train-qrels QRELS", "Judgments to train on. {trained_fusions} are trained.")
@rare("--train-topics FILE", "Train on the topics in this file only. The first word of each line is a topic id.")
@rare("--folds N", "Cross-validate: train on N-1 of N parts of the topics and fuse the other part.", type=int)
@option("--seed", "Seed that assigns topics to --folds.")
@rare("--measure MEASURE", "Measure that tuned weights maximise.", default="AP")
@rare("--step S", "Step between weights that are tried.", default=0.1)
@rare("--rel", "Lowest relevant grade.  [default: 1, or the grade that the collection states]", type=float)
@option("--name NAME", "Tag of the fused run.  [default: the method]")
@options.run_format
@option("--allow-unjudged")
@option("-o --output")
@option("--list listing", "List the methods and normalisations, and fuse nothing.", is_flag=True)
@options.shape("table", "json", help="Output format of --list.", everyday=False)
def command(weights: str | None, output: str | None, listing: bool, shape: str, **typed: Any) -> None:
    from cranfield.commands.listings import fusions
    from cranfield.commands.retrieval import fuse

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
    problem = "--weights expects numbers with commas between them, got"
    shares = None if weights is None else options.numbers(weights, problem)
    with progress("weights tried") as tell:
        fused = fuse(inputs, output=output or "-", weights=shares, progress=tell, **how)
    for tuned in fused.tuned:
        note(str(tuned))
    if output not in (None, "-"):
        size = f"{len(fused.run)} rows, {len(fused.run.topics)} topics"
        about(str(output), f"{size}, {how['method']} of {len(inputs.runs)} runs")
    notes(fused.notes)
