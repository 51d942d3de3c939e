"""`cranfield fuse`: several runs into one."""

from __future__ import annotations

from typing import Any

import click

from cranfield.answer import as_json
from cranfield.cli.options import Late
from cranfield.cli.output import note, put


def _methods() -> str:
    from cranfield.fuse import METHODS

    return ", ".join(METHODS)


def _that(*claims: str) -> str:
    from cranfield.fuse import methods_that

    return methods_that(*claims)


def _norms() -> str:
    from cranfield.fuse import NORMS

    return "|".join(NORMS)


@click.command("fuse")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option(
    "--method",
    cls=Late,
    default="RRF",
    show_default=True,
    metavar="METHOD",
    help=lambda: f"How to fuse: {_methods()}; parameters in brackets, as in RRF(k=10), RBC(phi=0.9).",
)
@click.option(
    "--norm",
    cls=Late,
    metavar=_norms,
    help="What is done to scores first, for the Comb methods and w-sum.  [default: min-max]",
)
@click.option(
    "--weights",
    cls=Late,
    metavar="W,W,…",
    help=lambda: f"One a run, for {_that('takes_weights')}; else w-sum tunes them.",
)
@click.option("-k", "--depth", type=click.IntRange(min=1), metavar="K", help="Keep the best K documents of each topic.")
@click.option(
    "--train-qrels",
    cls=Late,
    metavar="QRELS",
    help=lambda: f"Judgments to learn from, for {_that('trained', 'needs_weights')}.",
)
@click.option("--train-topics", metavar="FILE", help="Learn from these topics only: the first word of each line.")
@click.option("--folds", type=int, metavar="N", help="Fuse each Nth of the topics by what the other topics taught.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="How --folds are drawn.")
@click.option(
    "--measure", default="AP", show_default=True, metavar="MEASURE", help="What tuned weights shall maximise."
)
@click.option("--step", type=float, default=0.1, show_default=True, metavar="S", help="How fine weights are tuned.")
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="N", help="The lowest relevant grade.")
@click.option("--name", metavar="NAME", help="The tag of the fused run.  [default: the method]")
@click.option("--run-format", metavar="FORMAT", help="The runs' format, if it is not to be detected.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to a file, whole or not at all, instead of standard output."
)
@click.option("--list", "listing", is_flag=True, help="List the methods and normalisations, and fuse nothing.")
@click.option("--format", "shape", type=click.Choice(["table", "json"]), default="table", help="How to print --list.")
def command(
    runs: tuple[str, ...], weights: str | None, output: str | None, listing: bool, shape: str, **given: Any
) -> None:
    """Fuse runs into one.

    Documents out are all that any run returned, in the order that the method gives them. Methods of ranks (RRF, Borda …)
    need no normalisation.

    \b
    $ cranfield fuse bm25.run dense.run --method RRF -k 10
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import fuse_, list_fusions

    if listing:
        put(_listed(list_fusions(), shape), output)
        return
    if len(runs) < 2:
        raise click.UsageError("give two runs or more; --list shows the methods")
    with progress("weights tried") as tell:
        done = fuse_(runs, weights=_numbers(weights), output=output or "-", progress=tell, **given)
    for tuned in done.tuned:
        note(str(tuned))
    if output not in (None, "-"):
        note(f"{output}: {len(done.run)} rows, {len(done.run.topics)} topics, {given['method']} of {len(runs)} runs")
    for sentence in done.notes:
        note(f"note: {sentence}")


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--weights expects numbers with commas between them, got {text!r}") from None


def _listed(found: dict[str, list[dict[str, str]]], shape: str) -> str:
    if shape == "json":
        return as_json(found)
    lines = []
    for title, rows in found.items():
        wide = max(len(row["usage"]) for row in rows)
        lines += [title, *(f"  {row['usage']:{wide}}  {row['about']}" for row in rows), ""]
    return "\n".join(lines).rstrip()
