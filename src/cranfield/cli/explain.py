"""`cranfield explain`: how a score came about, and what it is under other programs' conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.cli import options
from cranfield.cli.output import put, screen_width

if TYPE_CHECKING:
    from cranfield.answer import Answer


@click.command("explain", cls=options.Sectioned)
@click.argument("measure")
@click.argument("qrels")
@click.argument("run")
@click.option("--topic", metavar="TOPIC", help="The topic to explain; may be left out where only one is judged.")
@click.option(
    "--rel", type=float, metavar="N", help="The lowest relevant grade, if the measure does not say so itself."
)
@click.option("--all-ranks", "full", is_flag=True, help="Show every rank instead of folding those that matter little.")
@click.option("--collection-size", type=int, metavar="N", help="How many documents the collection holds.")
@click.option("--baseline", metavar="RUN", help="The run to compare with, for measures of risk.")
@click.option("--preferences", metavar="FILE", help="Preference judgments, for the measures that need them.")
@click.option("--groups", metavar="FILE", help="Groups of documents (document group share), for measures of fairness.")
@click.option("--aspect", metavar="QRELS", help="Judgments of a second aspect, such as understandability.")
@click.option("--costs", metavar="FILE", help="What documents cost to read (document cost), for TBG, Umeasure and kin.")
@options.output("text", "markdown", "json", "html")
@options.conventions
@options.reading
def command(
    measure: str,
    qrels: str,
    run: str,
    topic: str | None,
    rel: float | None,
    full: bool,
    shape: str,
    output: str | None,
    preset: str | None,
    **given: Any,
) -> None:
    """Show how a score came about, rank by rank, or what it is under other programs' conventions.

    With --topic: a table of ranks, documents, grades, what each adds, the score so far and the ideal ranking. With
    --as all: the mean over topics, or that topic's score, as each of the presets has it, and what each does
    differently; --as PRESET without a topic shows that one alone.

    \b
    $ cranfield explain "nDCG@10" qrels.txt bm25.run --topic q1
    """
    options.without_algebra()
    from cranfield.workspace import explain_, explain_as_

    changes = options.taken(given)
    answer: Answer
    if preset == "all" or (preset is not None and topic is None and preset != "cranfield"):
        if changes:
            raise click.UsageError(f"--as {preset} settles the conventions; leave out --{next(iter(changes))}")
        answer = explain_as_(measure, qrels, run, topic, preset, rel=rel, **given)
    else:
        answer = explain_(measure, qrels, run, topic, rel=rel, preset=preset, changes=changes, full=full, **given)
    if shape == "json":
        put(answer.to_json(), output)
    elif shape == "html":
        put(answer.to_html(page=True), output)
    else:
        put(answer.to_markdown() if shape == "markdown" else answer.to_text(limit=screen_width(output)), output)
