"""Fail if a candidate run is worse than the baseline.

By default the candidate must not be worse by more than --max-drop. The gate uses a one-sided test per measure, and
corrects the p-values for the number of measures (Holm). Exit code 0 means passed, 1 failed, 3 too few topics or
unusable data. The report names the topics that fell most, and says whether their documents rank lower, are unjudged,
or left the corpus.

\b
$ cranfield gate qrels.txt bm25.run dense.run -m "nDCG@10 AP" --max-drop 0.02 --max-drop AP=0.05
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cranfield.base.notifications import tell_used
from cranfield.base.parameters import masked
from cranfield.cli import BAD_USAGE, in_words, options
from cranfield.cli.command_classes import in_options
from cranfield.cli.crash import EXIT_CODE as CRASH
from cranfield.cli.options import NEW_FILE, option, rare
from cranfield.cli.output import FOR_PEOPLE, encoded, limits, notes, progress, put, rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = 180


@options.command(__doc__)
@click.argument("qrels")
@click.argument("baseline")
@click.argument("candidate")
@option("-m --measures", "Measures to guard; the gate fails if one of them fails.", default=["nDCG@10"])
@option(
    "--max-drop N|MEASURE=N",
    "Largest drop of the mean that is allowed, for all measures or for one.  [default: 0.01]",
    multiple=True,
)
@option(
    "--question",
    "Condition that fails the gate. With max-drop, the candidate is worse by more than --max-drop; with drop, it is worse at "
    "all. With non-inferior, it is not shown to be within --max-drop.",
    default="max-drop",
    metavar="{gate_questions}",
)
@option("--alpha", "Significance level: how often the gate may fail a run that is no worse.")
@option("--test", "One-sided test of the mean difference that decides.", default="t", metavar="{gate_tests}")
@rare(
    "--corpus-ids FILE documents",
    "File with the ids of all documents now in the corpus, one per line. The report then separates documents that left the "
    "corpus from documents that rank lower.",
    was=["--documents"],
)
@rare(
    "--forgive-turnover",
    "Remove documents that left the corpus from judgments and baseline before the verdict; needs --corpus-ids.",
    is_flag=True,
)
@rare("--worst N", "Number of topics with the largest drop to list.", default=10)
@option("--judged", name="k")
@option("--resamples", "Number of sign flips of --test randomisation.", default=100_000)
@option("--seed", "Seed for the random numbers of --test randomisation.")
@rare("--rel")
@option("--topics")
@option("--weigh-by")
@option("--design-weights")
@option("--topics-file")
@option(
    "--junit FILE",
    "Write JUnit XML as well. It has a test case per measure, or the error that stopped the gate.",
    type=NEW_FILE,
)
@option("--markdown FILE", "Write Markdown as well, for a comment on a pull request.", type=NEW_FILE)
@option("--json FILE", "Write JSON as well.", type=NEW_FILE)
@options.answer("text", "json", "csv", "tsv", "markdown", "junit")
@options.rules
@click.pass_context
def command(ctx: click.Context, /, baseline: str, candidate: str, shape: str, output: str | None, **typed: Any) -> None:
    from cranfield.commands.comparison import gate
    from cranfield.formats.streams import write_together

    inputs, display, how = options.split(typed, runs=[baseline, candidate])
    how["max_drop"] = how["max_drop"] or None
    display["every"] = ctx.get_parameter_source("worst") is not ParameterSource.DEFAULT
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
    write_together({path: encoded(rendered(verdict, kind, path, **display)) for kind, path in files})
    if output in (None, "-"):
        put(rendered(verdict, shape, **display))
    if shape in FOR_PEOPLE:
        limits(verdict, display["verbose"], output)
    else:
        notes(verdict.notes(shell=True))
    if verdict.exit_code:
        ctx.exit(verdict.exit_code)


@contextmanager
def _error_in_junit(ctx: click.Context, reports: list[str | None], candidate: str) -> Iterator[None]:
    """Write JUnit XML for an error too, unless the command line itself is wrong, so that the report shows the reason."""
    try:
        yield
    except click.ClickException:
        raise
    except Exception as error:
        from cranfield.comparison.gate.gate import junit_error

        problem, code = in_words(error) or (f"a mistake in cranfield ({type(error).__name__})", CRASH)
        if code != BAD_USAGE:
            sentence = in_options(masked(problem), ctx.command.params, getattr(error, "kind", None))
            tell_used(*options.UNUSED)  # what was not read yet is no reason to hide the error
            for path in reports:
                put(junit_error(candidate, sentence), path)
        raise
