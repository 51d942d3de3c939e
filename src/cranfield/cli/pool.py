"""Choose what to judge next from the tops of runs.

A run may be a quoted pattern. A file that is called like a subcommand goes in as ./judge.

\b
$ cranfield pool bm25.run dense.run --depth 10
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.cli import options
from cranfield.cli.options import COLLECTION, INPUT, OUTPUT, option, scale_option
from cranfield.cli.output import about, note, show
from cranfield.columns import counted
from cranfield.parameters import real, shortened, whole

if TYPE_CHECKING:
    from cranfield.workspace.pooling import Depths

PLACE = 70


class Default(click.Group):
    """A group whose first word may be left out: what is no subcommand's name belongs to `make`."""

    command_class = options.Worded

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` in front where a run or an option comes first."""
        if args and args[0] not in (*self.commands, "--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Default, help=__doc__)
def command() -> None:
    pass


def depths_of(typed: tuple[str, ...]) -> Depths:
    """`--depth 100 --depth bm25.run=200` as the depth of all and the depths of some."""
    from cranfield.workspace.pooling import Depths

    depth, some = 100, {}
    for text in typed:
        name, equals, number = text.rpartition("=")
        n = _counted(number)
        if n is None or (equals and not name):
            raise click.UsageError(f"--depth: expected N or RUN=N with N of 1 or more, found {shortened(text)!r}")
        if equals:
            some[name] = n
        else:
            depth = n
    return Depths(depth, some)


def _counted(text: str) -> int | None:
    """A whole number of 1 or more; None if it is none."""
    try:
        number = whole(text)
    except ValueError:
        return None
    return number if number >= 1 else None


def pairs_of(flag: str, typed: tuple[str, ...], expected: str) -> dict[str, str]:
    """`name=value` options as a mapping."""
    pairs = {}
    for text in typed:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{flag}: expected {expected}, found {text!r}")
        pairs[name] = value
    return pairs


SCORING = ("missing", "no_relevant", "unjudged", "negative")
NO_SCORES = "is for scores, and a pool has none"
lenient = option("--lenient", "Skip malformed lines instead of stopping at the first.")
run_format = options.together(
    option("--run-format", "The runs' format, if it is not to be detected."), option("--field fields")
)
rel = option("--rel", "The lowest relevant grade.", default=1, metavar=None)
seed = option("--seed", "For all that is left to chance.", metavar=None)
tops = options.together(
    option(
        "--depth",
        "How many documents of each run, or of one run.  [default: 100]",
        name="depths",
        multiple=True,
        metavar="N|RUN=N",
    ),
    run_format,
    lenient,
    options.conventions,
)
contributing = options.together(click.argument("runs", nargs=-1, required=True, metavar="RUN..."), tops)
choosing = options.together(
    option(
        "--strategy",
        "How documents are chosen (cranfield pool strategies); options in brackets: 'rbp(p=0.9)'.",
        default="depth",
        metavar="NAME",
    ),
    option(
        "--priority",
        "Pool what these runs or teams returned first (1) or later (2, 3 …).",
        name="priorities",
        multiple=True,
        metavar="PATTERN=N",
    ),
    option("--team", "Which runs a team sent in.", name="teams", multiple=True, metavar="PATTERN=TEAM"),
    option("--budget", "The most documents, labels so far included.", type=click.IntRange(min=1), metavar="N"),
    rel,
    option(
        "--collection",
        "The documents' texts, for strategies that read them and for sheets.",
        type=COLLECTION,
        metavar="FOLDER",
    ),
    option("--topics", "Only these topics: the first word of each line."),
    option(
        "--topics-file", "What the topics ask, for assessors to see: a table of topics, TREC's topics, or a collection."
    ),
    seed,
)


def chosen(typed: dict[str, Any]) -> dict[str, Any]:
    """The options of `choosing` and `contributing` as the verbs take them."""
    from cranfield.pool.strategy import STRATEGIES

    options.refuse_idle(NO_SCORES, *SCORING)
    inputs, _, how = options.split(typed)
    typed_priorities = pairs_of("--priority", how.pop("priorities"), "PATTERN=N")
    priorities = {pattern: _counted(number) for pattern, number in typed_priorities.items()}
    if None in priorities.values():
        raise click.UsageError("--priority: expected PATTERN=N with N of 1 or more")
    how["priorities"] = priorities
    how["teams"] = pairs_of("--team", how.pop("teams"), "PATTERN=TEAM")
    if how["judgments"] is None and not STRATEGIES.named(how["strategy"]).adaptive:
        options.refuse_idle("goes with --judgments LOG or a strategy that adapts to labels", "rel")
    return {"inputs": inputs, **how, "depths": depths_of(how["depths"])}


@command.command("make")
@contributing
@choosing
@option("--cap", "The most documents a topic.", type=click.IntRange(min=1), metavar="N")
@option("--next", "Hand out so many a topic, for adaptive strategies.", type=click.IntRange(min=1), metavar="N")
@option(
    "--judgments",
    "The labels so far: a log (cranfield judge --help), a filled-in sheet, or qrels.",
    type=INPUT,
    metavar="LOG",
)
@option("--qrels", "Judgments from before; their documents are not asked for again.", type=COLLECTION, metavar="QRELS")
@option("--keep-judged", "Ask for the documents in --qrels again.", is_flag=True)
@option("--order", "How each topic's documents are laid out.", metavar="shuffled|priority|document")
@option("--assessors", "Give whole topics to assessors, evenly.", metavar="NAME,NAME…")
@option("-o --output")
@option(
    "--format",
    "JSON lines, or CSV for a spreadsheet with an empty column for grades; texts by --collection.  [default: by ending, jsonl]",
    name="layout",
    type=click.Choice(("jsonl", "csv")),
)
def _make(output: str | None, layout: str | None, assessors: str | None, **typed: Any) -> None:
    """Write a pool: one JSON line for each document to judge, or a row of a sheet.

    Strategies that adapt are called again and again: --next 5 --judgments labels.jsonl writes the next five of each
    topic, given the labels so far. A sheet that was filled in is read wherever labels are: cranfield convert pool.csv judged.txt.

    \b
    $ cranfield pool bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.formats.streams import write_bytes
    from cranfield.pool.make import uncollected
    from cranfield.workspace.pooling import pool, queries_in, sheet

    if typed["qrels"] is None:
        options.refuse_idle("goes with --qrels", "keep_judged")
    how = chosen(typed)
    if not how["priorities"]:
        options.refuse_idle("goes with --priority, which may name teams", "teams")
    queries = queries_in(how["inputs"], how["collection"])
    names = [name.strip() for name in assessors.split(",") if name.strip()] if assessors else []
    layout = layout or ("csv" if (output or "").endswith((".csv", ".csv.gz")) else "jsonl")
    with uncollected():
        with progress("runs read") as tell:
            pooled = pool(assessors=names, progress=tell, **how)
        asks = how["inputs"].topics_file is None and any(topic in queries for topic in pooled.topics)
        if layout == "jsonl" and not asks and not pooled.session.strategy.reads:
            texts = "strategies that read texts, for sheets, and for queries of topics that no --topics-file names"
            options.refuse_idle(f"is for {texts}; this pool uses none of them", "collection")
        lines = sheet(pooled, how["collection"]) if layout == "csv" else pooled.lines(queries)
        write_bytes(output or "-", lines)
    for sentence in pooled.notes():
        note(sentence)
    if layout == "csv" and pooled.session.strategy.samples:
        note(
            "note: a sheet does not say how the sample was drawn; keep the pool as .jsonl as well, for statAP and xinfAP"
        )


@command.command("statistics")
@contributing
@option("--seconds", "What a judgment takes.", type=click.FloatRange(min=0), default=60.0)
@options.answer("table", "json")
def _statistics(depths: tuple[str, ...], seconds: float, **typed: Any) -> None:
    """Say how large a depth pool will be, how much its runs overlap, and how long judging takes.

    \b
    $ cranfield pool statistics bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace.pooling import statistics

    options.refuse_idle(NO_SCORES, *SCORING)
    inputs, shown, _ = options.split(typed)
    with progress("runs read") as tell:
        counts = statistics(inputs, depths_of(depths), seconds, tell)
    show(counts, **shown)


@command.command("strategies")
@options.output("table", "json")
def _strategies(**shown: Any) -> None:
    """List the strategies."""
    from cranfield.workspace.listing import strategies

    show(strategies(), **shown)


@command.command("judge")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option(
    "--pool",
    "Judge this pool file instead of the tops of runs: what is yours, if it assigns documents.",
    type=INPUT,
    metavar="FILE",
)
@option("--round", "Judge what this round of the log has for you (cranfield judge round).", metavar="NAME")
@option(
    "--judgments",
    "Where labels are kept: labels.jsonl, work.db or postgresql://…",
    required=True,
    type=OUTPUT,
    metavar="LOG",
)
@option("--assessor", "Who judges.", default="", show_default=False, metavar="NAME")
@option("--overlap", "How many people are to judge each document.", type=click.IntRange(1, 1000), default=1)
@option("--adjudicate", "Decide as a third person: shows who said what, and your word binds.", is_flag=True)
@scale_option
@option(
    "--guidelines",
    "What you were told; its hash is kept with each label.",
    name="guideline",
    type=INPUT,
    metavar="FILE",
)
@tops
@choosing
def _judge(**typed: Any) -> None:
    """Judge at the terminal: shows the next document, takes its grade, and goes on until you stop (q).

    Each label is on disk before the next document is shown; call it again to go on. The log is read before each document:
    several people may judge at once, and none is asked what another has judged.

    \b
    $ cranfield pool judge bm25.run dense.run --strategy maxmean --judgments labels.jsonl
    """
    from cranfield.cli.terminal import sit
    from cranfield.workspace.desk import desk

    if typed["pool"] is not None or typed["round"] is not None:
        elsewhere = f"chooses from the tops of runs; --{'pool' if typed['pool'] is not None else 'round'} has chosen"
        idle = ("depths", "strategy", "priorities", "teams", "budget", "topics", "rel", "seed", "preset", "drop_self")
        options.refuse_idle(elsewhere, *idle, *options.CONVENTIONS)
    at_work = desk(**chosen(typed))
    try:
        sit(at_work)
    finally:
        at_work.close()


@command.command("simulate")
@click.argument("qrels")
@contributing
@option("-m --measures", "By which runs are ranked.", default=["AP"], metavar=None)
@option("--strategy", "Which ones; may be repeated.  [default: all]", name="strategies", multiple=True, metavar="NAME")
@option("--collection", "The documents' texts, for strategies that read them (cal).", type=COLLECTION, metavar="FOLDER")
@option("--recall", "The recall whose effort is measured.", default=0.95)
@option("--sampling", "Instead: how well infAP, xinfAP and statAP estimate AP at these rates.", metavar="RATE,RATE…")
@option("--draws", "Samples drawn for --sampling.", type=click.IntRange(min=1), default=20)
@rel
@seed
@option("--allow-unjudged")
@options.answer("table", "json", "csv", "tsv")
def _simulate(depths: tuple[str, ...], sampling: str | None, draws: int, **typed: Any) -> None:
    """Replay strategies on a judged collection: what each finds, and when the ranking of the runs settles.

    -o FILE ending in .svg, .png, .pdf, .html or .vl.json draws relevant documents found by effort.

    \b
    $ cranfield pool simulate qrels.txt bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace.pooling import estimates, simulate

    inputs, shown, how = options.split(typed)
    if sampling is None:
        options.refuse_idle("goes with --sampling", "draws")
    else:
        options.refuse_idle("does not go with --sampling", "strategies", "collection", "recall")
    if sampling is None:
        with progress("strategies replayed") as tell:
            show(simulate(inputs, depths_of(depths), progress=tell, **how), **shown)
        return
    try:
        rates = [real(rate) for rate in sampling.split(",")]
    except ValueError:
        raise click.UsageError(f"--sampling: expected rates such as 0.05,0.1, found {sampling!r}") from None
    if shown["shape"] not in ("table", "json"):
        raise click.UsageError("--sampling is printed as a table or as json")
    with progress("samples drawn") as tell:
        errors = estimates(inputs, depths_of(depths), rates, draws=draws, seed=how["seed"], progress=tell)
    show(errors, **shown)


@command.command("thin")
@options.qrels_and_runs
@option("-m --measures", "What to read.", default=["AP nDCG@10"], metavar=None)
@option(
    "--holes",
    "Write a pool of the unjudged documents in the runs' tops.",
    type=OUTPUT,
    metavar="FILE",
    callback=options.writable,
)
@option("--holes-depth", "How deep tops are.")
@lenient
@run_format
@option("--allow-unjudged")
@options.answer("table", "json")
@options.conventions
def _thin(**typed: Any) -> None:
    """Read runs on thin judgments in several ways: as they are, condensed, bpref, infAP, bounds; says which to trust.

    \b
    $ cranfield pool thin qrels.txt bm25.run dense.run
    """
    from cranfield.formats.streams import all_or_none
    from cranfield.workspace.pooling import thin

    inputs, shown, how = options.split(typed)
    if not how["holes"]:
        options.refuse_idle("goes with --holes FILE", "holes_depth")
    with all_or_none():
        readings, written = thin(inputs, **how)
        if how["holes"]:
            about(how["holes"], f"{written} documents to judge")
        show(readings, **shown)


@command.command("stop")
@click.argument("judgments", type=INPUT, metavar="LOG")
@option("--pool", "The pool that is being judged.", required=True, type=INPUT, metavar="FILE")
@option("--target", "The recall to reach.", default=0.95)
@rel
@option("--level", "Of the intervals.", metavar=None)
@option("--seconds", "What a judgment takes, for hours.", type=click.FloatRange(min=0), metavar="FLOAT")
@option("--price", "What a judgment costs.", type=click.FloatRange(min=0), metavar="FLOAT")
@options.answer("table", "json")
def _stop(shape: str, output: str | None, verbose: bool, **how: Any) -> None:
    """Estimate how many relevant documents are still unfound, topic by topic, and say which topics can stop.

    \b
    $ cranfield pool stop labels.jsonl --pool pool.jsonl
    """
    from cranfield.workspace.pooling import stopping

    show(stopping(**how), shape, output, verbose=verbose)


@command.command("qrels")
@click.argument("pool")
@click.argument("judgments", type=INPUT, metavar="LOG")
@option("-o --output", "Where to write.", required=True)
@option(
    "--to", "trec, prels (for statAP), strata (for xinfAP) …  [default: by ending]", name="format", metavar="FORMAT"
)
def _qrels(pool: str, judgments: str, output: str, format: str | None) -> None:
    """Make qrels of a pool and its labels; of a sample they say how likely each document was to be drawn.

    \b
    $ cranfield pool qrels pool.jsonl labels.jsonl -o judged.txt
    """
    from cranfield.workspace.pooling import collect

    collected = collect(pool, judgments, output, format)
    missing = f"; {collected.missing} documents of the pool have no label" if collected.missing else ""
    about(output, f"{collected.labels} judgments{missing}")
    if collected.strange:
        topic, document = collected.strange[0]
        some = f"{counted(len(collected.strange), 'label')} of documents that are not in the pool"
        note(f"note: {some}, such as {document!r} of topic {topic!r} (a spreadsheet may have changed ids)")
