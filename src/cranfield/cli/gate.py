"""Fail if a candidate run is shown to be worse than the baseline by more than is allowed, or by another question.

--question max-drop fails where a one-sided test shows that by some measure the mean fell by more than --max-drop; drop
where it shows that the mean fell at all; non-inferior unless it shows by every measure that the mean fell by no more
than --max-drop. Where one measure suffices to fail, p-values are corrected for their number (Holm). Exit code 0 means
passed, 1 failed, 3 that there are too few topics to test, or that the data cannot be used. The report names the topics
that fell most, and says whether documents left the corpus or are unjudged rather than ranked lower.

\b
$ cranfield gate qrels.txt bm25.run dense.run -m "nDCG@10 AP" --max-drop 0.02 --max-drop AP=0.05
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import option
from cranfield.cli.output import encoded, notes, put, written

PLACE = 180


@options.command(__doc__)
@click.argument("qrels")
@click.argument("baseline")
@click.argument("candidate")
@option(
    "-m --measures",
    "What must not fall. May be repeated; the gate fails if one of them fails.",
    default=["nDCG@10"],
)
@option(
    "--max-drop",
    "How much of the mean may be lost, for all measures or for one. May be repeated.  [default: 0.01]",
    multiple=True,
    metavar="N|MEASURE=N",
)
@option(
    "--question",
    "What fails the gate: worse by more than is allowed, worse at all, or not shown to be within what is allowed.",
    default="max-drop",
    metavar=names.gate_questions,
)
@option("--alpha", "How often the gate may take for shown what is not so.")
@option("--test", "Which one-sided test of the mean difference decides.", default="t", metavar=names.gate_tests)
@option(
    "--documents",
    "The ids that are in the corpus now, one a line: tells documents gone from documents ranked lower.",
    metavar="FILE",
)
@option(
    "--forgive-turnover",
    "With --documents: take documents that are gone out of judgments and baseline before the verdict.",
    is_flag=True,
)
@option("--worst", "How many topics that fell to name.", default=10, metavar="N")
@option("--judged", name="k")
@option("--resamples", "Sign flips of --test randomisation.", default=100_000)
@option("--seed", "For --test randomisation.")
@option("--rel")
@option("--topics")
@option("--topics-file")
@option("--junit", "Write JUnit XML as well: a test case a measure.", metavar="FILE")
@option("--markdown", "Write Markdown as well, for a comment on a pull request.", metavar="FILE")
@option("--json", "Write JSON as well.", metavar="FILE")
@options.output("text", "json", "csv", "tsv", "markdown", "junit")
@options.rules
@click.pass_context
def command(ctx: click.Context, /, baseline: str, candidate: str, shape: str, output: str | None, **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.formats.streams import write_together
    from cranfield.workspace.comparing import gate

    inputs, shown, how = options.split(typed, runs=[baseline, candidate])
    how["max_drop"] = how["max_drop"] or None
    files = [(kind, path) for kind in ("junit", "markdown", "json") if (path := how.pop(kind)) is not None]
    paths = [path for _, path in files]
    if output is not None:
        paths.append(output)
    if len(set(paths)) < len(paths) or "-" in paths[: len(files)]:
        raise click.UsageError("each output needs a file of its own; --format chooses what goes to standard output")
    with progress("steps") as tell:
        verdict = gate(inputs, progress=tell, **how)
    if output not in (None, "-"):
        files.append((shape, str(output)))
    write_together({path: encoded(written(verdict, kind, path, **shown)) for kind, path in files})
    if output in (None, "-"):
        put(written(verdict, shape, **shown))
    notes(verdict.notes(shell=True))
    if verdict.exit_code:
        ctx.exit(verdict.exit_code)
