"""Compare runs: by how much one is better, and how sure that is.

For every pair of runs, or each against the baselines: means, difference with its interval, effect size d_z, topics
won, tied and lost (W/T/L), p-value and corrected p-value; the same in a sentence; and what to beware of. --table
FILE takes scores per topic (topics × runs) in place of judgments and runs.

\b
$ cranfield compare qrels.txt bm25.run dense.run -m "nDCG@10 AP"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import option
from cranfield.cli.output import FOR_PEOPLE, notes, show

PLACE = 120

question = options.together(
    options.runs_or_table("RUN RUN..."),
    option(
        "--baseline",
        "Compare the others with this run instead of each with each. May be repeated.",
        name="baselines",
        multiple=True,
        metavar="NAME",
    ),
    option(
        "--test",
        lambda: f"The first decides; all makes each. Of pairs: {names.all_tests()}. May be repeated.",
        name="tests",
        multiple=True,
        default=["randomisation"],
        metavar="NAME|all",
    ),
    option("--correction", lambda: f"Over all pairs and measures: {names.corrections()}."),
    option("--alpha", "Significant is p <= A."),
    option("--level", "The level of the intervals."),
    option("--interval", "How the interval of the mean difference is made.", default="t", metavar=names.intervals),
    option("--resamples", "Random draws of a test.  [default: 100000, or as many as the correction needs]"),
    option("--seed"),
    option(
        "--alternative",
        "What the test looks for, of the other run against the baseline.",
        default="two-sided",
        metavar="two-sided|better|worse|greater|less",
    ),
    option("--simultaneous", "Intervals that hold all at once, as the correction does.", is_flag=True),
    option("--rope", "For bayes: differences up to X do not matter.", type=float, metavar="X"),
    option("--margin", "Test for equivalence and non-inferiority within X as well (TOST).", type=float, metavar="X"),
    option(
        "--group",
        "Runs of one system that differ by chance, such as 'dense.seed*.run': compared over topics and seeds at once.",
        name="run_groups",
        multiple=True,
        metavar="[NAME=]PATTERN",
    ),
    option("--rel"),
    option("--topics"),
    option("--weigh-by"),
    option("--topics-file"),
    option("--collection-size"),
    option("--preferences"),
    option("--groups"),
    option("--aspect"),
    option("--costs"),
)


def _policies() -> str:
    from cranfield.judge.policy import OWN
    from cranfield.stats.consensus.method import METHODS

    return f"With --label-noise: how grades are decided: {', '.join([*OWN, *METHODS])}.  [default: majority, or the version's]"


@options.command(__doc__)
@question
@option(
    "--label-noise", "QRELS is a log of judgments: redraw labels of several people, and allow for them.", is_flag=True
)
@option("--by", _policies, name="policy", metavar="POLICY")
@option("--label-draws", "How often labels are redrawn.  [default: 200]", type=int, metavar="N")
@option("--bars/--no-bars", "Draw each topic's difference.  [default: for a single pair]", default=None)
@option("--all-pairs", "Show every pair, however many there are.", name="every", is_flag=True)
@option("--per-topic", "In json, csv and tsv: the difference of each topic.")
@option("--digits")
@options.answer("text", "json", "csv", "tsv", "markdown")
@options.rules
@option("--threads")
def command(**typed: Any) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace.comparing import compare

    inputs, shown, how = options.split(typed)
    options.refuse_both(inputs, how["run_groups"], conventions=False)
    _refuse_without_noise(inputs.table, how)
    with progress("comparing") as tell:
        comparison = compare(inputs, progress=tell, **how)
    show(comparison, **shown)
    if shown["shape"] not in FOR_PEOPLE:
        notes(comparison.scores.notes(shell=True))


def _refuse_without_noise(table: str | None, how: dict[str, Any]) -> None:
    """Refuse what goes with --label-noise alone, and that where there are no labels."""
    if how["label_draws"] is None:
        del how["label_draws"]
    if how["label_noise"] and table is not None:
        raise click.UsageError("--table holds scores; --label-noise redraws labels and needs a log and runs")
    if how["label_noise"] and how["run_groups"]:
        raise click.UsageError("--group goes by topics and seeds, --label-noise by topics and labels; give one of them")
    if not how["label_noise"] and (how["policy"] is not None or "label_draws" in how):
        raise click.UsageError("--by and --label-draws go with --label-noise")
