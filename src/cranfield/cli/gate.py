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

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cranfield.cli import BAD_USAGE, in_words, names, options
from cranfield.cli.crash import EXIT_CODE as CRASH
from cranfield.cli.options import INPUT, OUTPUT, option
from cranfield.cli.output import FOR_PEOPLE, encoded, limits, notes, put, written
from cranfield.hearing import tell_used
from cranfield.parameters import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    type=INPUT,
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
@option("--weigh-by")
@option("--topics-file")
@option(
    "--junit",
    "Write JUnit XML as well: a test case per measure, or the error that stopped the gate.",
    type=OUTPUT,
    metavar="FILE",
    callback=options.writable,
)
@option(
    "--markdown",
    "Write Markdown as well, for a comment on a pull request.",
    type=OUTPUT,
    metavar="FILE",
    callback=options.writable,
)
@option("--json", "Write JSON as well.", type=OUTPUT, metavar="FILE", callback=options.writable)
@options.answer("text", "json", "csv", "tsv", "markdown", "junit")
@options.rules
@click.pass_context
def command(ctx: click.Context, /, baseline: str, candidate: str, shape: str, output: str | None, **typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.formats.streams import write_together
    from cranfield.workspace.comparing import gate

    inputs, shown, how = options.split(typed, runs=[baseline, candidate])
    how["max_drop"] = how["max_drop"] or None
    shown["every"] = ctx.get_parameter_source("worst") is not ParameterSource.DEFAULT
    files = [(kind, path) for kind in ("junit", "markdown", "json") if (path := how.pop(kind)) is not None]
    paths = [path for _, path in files]
    if output is not None:
        paths.append(output)
    if len(set(paths)) < len(paths) or "-" in paths[: len(files)]:
        raise click.UsageError("each output needs a file of its own; --format chooses what goes to standard output")
    reports = [path for kind, path in [*files, (shape, output)] if kind == "junit"]
    with _error_in_junit(ctx, reports, candidate), progress("steps") as tell:
        verdict = gate(inputs, progress=tell, **how)
    if output not in (None, "-"):
        files.append((shape, str(output)))
    write_together({path: encoded(written(verdict, kind, path, **shown)) for kind, path in files})
    if output in (None, "-"):
        put(written(verdict, shape, **shown))
    if shape in FOR_PEOPLE:
        limits(verdict, shown["verbose"], output)
    else:
        notes(verdict.notes(shell=True))
    if verdict.exit_code:
        ctx.exit(verdict.exit_code)


@contextmanager
def _error_in_junit(ctx: click.Context, reports: list[str | None], candidate: str) -> Iterator[None]:
    """Write JUnit XML of an error too, unless the command line itself is wrong: who reads the report sees the reason."""
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:
        from cranfield.cli.wording import in_options
        from cranfield.gate.verdict import junit_error

        problem, code = in_words(error) or (f"a mistake in cranfield ({type(error).__name__})", CRASH)
        if code != BAD_USAGE:
            sentence = in_options(masked(problem), ctx.command.params, getattr(error, "kind", None))
            tell_used(*options.UNUSED)  # what was not read yet is no reason to hide the error
            for path in reports:
                put(junit_error(candidate, sentence), path)
        raise
