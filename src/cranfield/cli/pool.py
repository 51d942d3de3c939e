"""Choose documents to judge from the top of the runs.

A run may be a quoted pattern. If a file has the name of a subcommand, write ./judge.

\b
$ cranfield pool bm25.run dense.run --depth 10
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from cranfield.base.parameters import real, shortened, whole
from cranfield.base.text_layout import counted
from cranfield.cli import options
from cranfield.cli.command_classes import CranfieldGroup
from cranfield.cli.options import COUNT, INPUT, NEW_FILE, OUTPUT, option, rare, scale_option
from cranfield.cli.output import about, add_listing, note, progress, show, show_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.results import Answer
    from cranfield.commands.pooling import Depths
    from cranfield.commands.terminal_session import JudgingTask, TerminalSession


HELP = """a number is the grade; a ? after it says that you are not sure (2?)
x    cannot judge it (x WHY says why)
s    skip it; it comes again next time
n    note something about it (n TEXT), and go on with it
u    undo your last answer, and show its document again (z does the same)
t    show the topic in full
c    choose another topic, in a round in which people choose
/    search again with other words (/ WORDS), where documents come from --search
q    stop; call again to go on"""
WORDS = {"quit": "q", "skip": "s", "undo": "u", "z": "u", "help": "?", "note": "n", "topic": "t", "choose": "c"}


def sit(desk: TerminalSession) -> None:
    """Ask for grades until every document is judged or the person stops."""
    from cranfield.commands.terminal_session import JudgingTask

    note(f"{desk.status()}. ? helps, q stops.")
    for line in desk.need.meanings():
        note(line)
    topic, task = None, desk.next()
    while True:
        if isinstance(task, JudgingTask):
            note(f"\n{desk.need.topic(task.topic, task.topic != topic)}\n{desk.need.document(task.document)}")
            topic = task.topic
            if opinions := desk.opinions(task):
                note(opinions)
            after = _judge_one(desk, task)
        else:
            note(f"\n{task}")
            after = _choose(desk) if desk.source.choices() else _finish(desk)
        if after == "q":
            break
        task = after if isinstance(after, JudgingTask) else desk.next()
    note(f"{desk.label_count} {'label' if desk.label_count == 1 else 'labels'} kept in {desk.log.name}")


def _judge_one(desk: TerminalSession, task: JudgingTask) -> JudgingTask | str:
    """Record answers about a document. Return `q` to stop, the document to show again, or nothing for the next."""
    began = time.monotonic()
    scale = desk.need.range()
    while True:
        word, text = _word(f"grade {scale}".rstrip())
        seconds = time.monotonic() - began
        if word == "q":
            return "q"
        if word == "u":
            again = _undo(desk)
            if again is not None:
                return again
        elif word == "?":
            note("\n".join([*desk.need.meanings(), HELP]))
        elif word == "t":
            note(desk.need.topic(task.topic, True))
        elif word == "c":
            if desk.source.choices():
                return _choose(desk)
            note("people do not choose topics here, or no other topic is left")
        elif word == "n" and text:
            desk.answer(task, "note", seconds, note=text)
        elif word.startswith("/"):
            if not (problem := desk.search(f"{word[1:]} {text}")):
                return ""
            note(problem)
        elif word in ("s", "x"):
            note_of = {"note": text} if text else {}
            return _report(desk.answer(task, "skip" if word == "s" else "cannot-judge", seconds, **note_of))
        elif (grade := _grade(desk, word)) is not None:
            label = {"grade": grade, "sure": not word.endswith("?"), **({"note": text} if text else {})}
            return _report(desk.answer(task, "judgment", seconds, **label))


def _word(prompt: str) -> tuple[str, str]:
    """The first word of the typed line, and the rest; `q` at the end of the input."""
    try:
        typed = click.prompt(prompt, prompt_suffix=" > ", err=True).strip()
    except (click.Abort, EOFError, OSError):  # or there is no standard input
        return "q", ""
    word, _, text = typed.partition(" ")
    return WORDS.get(word.lower(), word), text.strip()


def _grade(desk: TerminalSession, word: str) -> float | None:
    """The typed grade, or None and a message about what is expected."""
    try:
        grade = real(word.removesuffix("?"))
    except ValueError:
        note(f"expected a number, s to skip, q to stop or ? for help, found {shortened(word)!r}")
        return None
    problem = desk.refuse(grade)
    if problem:
        note(problem)
    return None if problem else grade


def _report(problem: str) -> str:
    """Print a problem, if there is one, and return the empty text, which means the next document."""
    if problem:
        note(problem)
    return ""


def _finish(desk: TerminalSession) -> JudgingTask | str:
    """Let the person undo the last label when no document is left. Return its document, or `q` to stop."""
    if not desk.label_count and not desk.source.searches:
        return "q"
    while True:
        word, text = _word("u undoes the last label, q stops")
        if word == "q":
            return "q"
        if word.startswith("/") and not desk.search(f"{word[1:]} {text}"):
            return ""
        if word == "u" and (again := _undo(desk)) is not None:
            return again


def _choose(desk: TerminalSession) -> JudgingTask | str:
    """Let the person choose a topic. Return the document to show again, `q` to stop, or nothing for the next."""
    topics = {each.topic: each.in_words() for each in desk.source.choices()}
    note("\n".join(topics.values()))
    while True:
        word, text = _word("topic, u undoes the last label, q stops")
        topic = " ".join(filter(None, (word, text)))
        if topic in topics:
            desk.source.choose(topic)
            return ""
        if word == "q":
            return "q"
        if word == "u" and (again := _undo(desk)) is not None:
            return again
        if word != "u":
            note(f"expected one of these topics, found {shortened(topic)!r}")


def _undo(desk: TerminalSession) -> JudgingTask | None:
    """Undo the last label, and return its document, if there is one."""
    undone = desk.undo()
    task, words = (None, "there is nothing to undo") if undone is None else undone
    note(words)
    return task


PLACE = 70


class PoolGroup(CranfieldGroup):
    """A group whose default command is `make`: a first word that names no command is a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `make` if a run or an option comes first."""
        if args and args[0] not in (*self.commands, "--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


command = PoolGroup(help=__doc__)


def depths_of(typed: tuple[str, ...]) -> Depths:
    """Read `--depth 100 --depth bm25.run=200` as the depth of all runs and of single runs."""
    from cranfield.commands.pooling import Depths

    depths: dict[str, int] = {}  # by the name of a run; empty: all runs
    for text in typed:
        name, equals, number = text.rpartition("=")
        n = _count(number)
        if n is None or (equals and not name):
            raise click.UsageError(f"--depth: expected N or RUN=N with N of 1 or more, found {shortened(text)!r}")
        depths[name] = n
    return Depths(depths.pop("", 100), depths)


def _count(text: str) -> int | None:
    """The text as a whole number of 1 or more, or None."""
    try:
        number = whole(text)
    except ValueError:
        return None
    return number if number >= 1 else None


def pairs_of(flag: str, typed: tuple[str, ...], expected: str) -> dict[str, str]:
    """Read `name=value` options into a mapping."""
    pairs = {}
    for text in typed:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{flag}: expected {expected}, found {text!r}")
        pairs[name] = value
    return pairs


NO_SCORES = "is for scores, and a pool has none"
rel = rare("--rel", "Lowest relevant grade.", default=1)
seed = option("--seed")
tops = options.together(
    option(
        "--depth N|RUN=N depths",
        "Number of documents to pool from each run, or from one run.  [default: 100]",
        multiple=True,
    ),
    options.run_format,
    option("--lenient"),
    options.conventions,
)
contributing = options.together(click.argument("runs", nargs=-1, required=True, metavar="RUN..."), tops)
choosing = options.together(
    option(
        "--strategy NAME",
        "Strategy that chooses documents; cranfield pool strategies lists them. Parameters follow in brackets: 'rbp(p=0.9)'.",
        default="depth",
    ),
    rare(
        "--priority PATTERN=N priorities",
        "Priority of the runs or teams that match a pattern: 1 is pooled first, then 2, 3 … in turn.",
        multiple=True,
    ),
    rare("--team PATTERN=TEAM teams", "Team of the runs that match a pattern.", multiple=True),
    option(
        "--budget N", "Maximum number of documents, including those that are labelled.  [default: no limit]", type=COUNT
    ),
    rel,
    option("--collection", "Collection with the texts of documents, for sheets and for strategies that read texts."),
    option("--topics"),
    option(
        "--topics-file",
        "File with the texts of the topics, for assessors. It is a table, a file of TREC topics, or a collection.",
    ),
    seed,
)


def pooling_options(typed: dict[str, Any]) -> dict[str, Any]:
    """The options of `choosing` and `contributing`, as the functions of `commands.pooling` take them."""
    from cranfield.pooling.strategy import STRATEGIES

    options.refuse_idle(NO_SCORES, *options.OF_SCORING)
    inputs, _, how = options.split(typed)
    typed_priorities = pairs_of("--priority", how.pop("priorities"), "PATTERN=N")
    priorities = {pattern: _count(number) for pattern, number in typed_priorities.items()}
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
@option("--cap N", "Maximum number of documents per topic.  [default: no limit]", type=COUNT)
@option("--next N", "Number of documents to choose per topic now; adaptive strategies need it.", type=COUNT)
@option("--judgments LOG", "Labels so far: a log (cranfield judge --help), a sheet with grades, or qrels.", type=INPUT)
@option("--qrels QRELS", "Earlier judgments. Their documents are left out of the pool.")
@rare("--keep-judged", "Pool the documents of --qrels again.", is_flag=True)
@rare(
    "--order",
    "Order of the documents of a topic.  [default: shuffled; priority for adaptive strategies]",
    metavar="shuffled|priority|document",
)
@option("--assessors NAME,NAME…", "Assessors to divide the topics among.  [default: nobody]")
@option("-o --output")
@option(
    "--format layout",
    "Format of the pool: JSON lines, or CSV with an empty column for grades.  [default: by the ending of -o, else jsonl]",
    type=click.Choice(("jsonl", "csv")),
)
def _make(output: str | None, layout: str | None, assessors: str | None, **typed: Any) -> None:
    """Write a pool: the documents to judge.

    A pool has one JSON line per document, or one row of a sheet. Adaptive strategies are called repeatedly: --next 5
    --judgments labels.jsonl writes the next five documents of each topic, given the labels so far. A sheet with grades
    can be read like qrels: cranfield convert pool.csv judged.txt.

    \b
    $ cranfield pool bm25.run dense.run --depth 10
    """
    from cranfield.commands.pooling import pool, queries_in, sheet
    from cranfield.formats.streams import write_bytes
    from cranfield.pooling.pool import uncollected

    if typed["qrels"] is None:
        options.refuse_idle("goes with --qrels", "keep_judged")
    how = pooling_options(typed)
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
@option("--seconds S", "Time per judgment, in seconds.", type=click.FloatRange(min=0), default=60.0)
@options.answer("table", "json")
def _statistics(depths: tuple[str, ...], **typed: Any) -> None:
    """Predict the size, overlap and effort of a depth pool.

    \b
    $ cranfield pool statistics bm25.run dense.run --depth 10
    """
    from cranfield.commands.pooling import statistics

    options.refuse_idle(NO_SCORES, *options.OF_SCORING)
    show_answer(statistics, depths=depths_of(depths), counting="runs read", **options.with_inputs(typed))


@add_listing(command, "strategies", "strategies")
def _strategies() -> None:
    """List the pooling strategies."""


@command.command("judge")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option("--pool FILE", "Pool to judge, instead of runs. If it assigns documents, you get yours.")
@option("--round NAME", "Round of the log to judge in; cranfield judge round begins one.")
@option("--search TOPIC", "Topic to search the documents of --collection for, instead of judging runs.")
@option("--query WORDS", "Query to begin a search with.  [default: the title of the topic]")
@option(
    "--judgments LOG",
    "Log to write labels to, such as labels.jsonl, work.db or postgresql://user@host/name.",
    required=True,
    type=OUTPUT,
)
@option("--assessor NAME", "Name of the assessor.", default="")
@option("--overlap", "Number of people who judge each document.", type=click.IntRange(1, 1000), default=1)
@option("--adjudicate", "Decide as a third person. You see all labels, and yours is final.", is_flag=True)
@scale_option
@option("--guidelines FILE guideline", "Guidelines for the assessor. Each label records their hash.")
@tops
@choosing
def _judge(**typed: Any) -> None:
    """Judge documents at the terminal.

    It shows a document, asks for its grade, and goes on until you stop with q. Each label is on disk before the next document
    is shown; the same command continues later. Several people can judge at once: the log is read before each
    document, and nobody is shown a document that enough others have judged.

    \b
    $ cranfield pool judge bm25.run dense.run --strategy maxmean --judgments labels.jsonl
    """
    from cranfield.commands.terminal_session import open_session

    if typed["search"] is None:
        options.refuse_idle("goes with --search", "query")
    else:
        options.refuse_idle("does not go with --search, which passes over your own labels alone", "overlap")
    source = next((name for name in ("pool", "round", "search") if typed[name] is not None), None)
    if source is not None:
        elsewhere = f"is for documents of runs, not for those of --{source}"
        idle = ("depths", "strategy", "priorities", "teams", "budget", "topics", "rel", "seed", "preset", "drop_self")
        options.refuse_idle(elsewhere, *idle, *options.CONVENTIONS)
    with closing(open_session(**pooling_options(typed))) as desk:
        sit(desk)


@command.command("simulate")
@click.argument("qrels")
@contributing
@option("-m --measures", "Measures that rank the runs.", default=["AP"])
@option("--strategy NAME strategies", "Strategy to replay.  [default: all]", multiple=True)
@rare("--collection", "Collection with the texts of documents, for strategies that read texts (cal).")
@option("--recall", "Recall to reach; the answer is the effort it takes.", default=0.95)
@option(
    "--sampling RATE,RATE…",
    "Sampling rates. The command then measures how well infAP, xinfAP and statAP estimate AP, instead of strategies.",
)
@rare("--draws", "Number of samples per rate, for --sampling.", type=COUNT, default=20)
@rel
@seed
@option("--allow-unjudged")
@options.answer("table", "json", "csv", "tsv")
def _simulate(depths: tuple[str, ...], sampling: str | None, draws: int, **typed: Any) -> None:
    """Replay strategies on a judged collection.

    The answer is how many relevant documents each strategy finds, and when the ranking of the runs settles. -o FILE.svg
    (.png, .pdf, .html, .vl.json) draws relevant documents by effort.

    \b
    $ cranfield pool simulate qrels.txt bm25.run dense.run --depth 10
    """
    from cranfield.commands.pooling import estimates, simulate

    inputs, display, how = options.split(typed)
    if sampling is None:
        options.refuse_idle("goes with --sampling", "draws")
        show_answer(simulate, inputs, depths_of(depths), counting="strategies replayed", **how, **display)
        return
    options.refuse_idle("does not go with --sampling", "strategies", "collection", "recall")
    rates = options.numbers(sampling, "--sampling: expected rates such as 0.05,0.1, found")
    if display["shape"] not in ("table", "json"):
        raise click.UsageError("--sampling is printed as a table or as json")
    how = {"draws": draws, "seed": how["seed"]}
    show_answer(estimates, inputs, depths_of(depths), rates, counting="samples drawn", **how, **display)


def show_with_holes(function: Callable[..., tuple[Answer, int]], typed: dict[str, Any], **more: Any) -> None:
    """Call a function of `commands.pooling` and show its answer.

    The function also writes the unjudged documents to --holes, and their number is reported.
    """
    from cranfield.formats.streams import all_or_none

    inputs, display, how = options.split(typed, **more)
    if not how["holes"]:
        options.refuse_idle("goes with --holes FILE", "holes_depth")
    with all_or_none():
        answer, to_judge = function(inputs, **how)
        if how["holes"]:
            about(how["holes"], f"{to_judge} documents to judge")
        show(answer, **display)


@command.command("thin")
@options.qrels_and_runs
@option("-m --measures", "Measures to compute.", default=["AP nDCG@10"])
@option("--holes FILE", "Write a pool of the unjudged documents at the top of the runs.", type=NEW_FILE)
@option("--holes-depth")
@option("--lenient")
@options.run_format
@option("--allow-unjudged")
@options.answer("table", "json")
@options.conventions
def _thin(**typed: Any) -> None:
    """Score runs in several ways on incomplete judgments.

    The ways are: as usual, condensed lists, bpref, infAP, and bounds. The answer says which of them to trust.

    \b
    $ cranfield pool thin qrels.txt bm25.run dense.run
    """
    from cranfield.commands.pooling import thin

    show_with_holes(thin, typed)


@command.command("stop")
@click.argument("judgments", type=INPUT, metavar="LOG")
@option("--pool FILE", "Pool that is being judged.")
@option("--round NAME", "Round of the log that is being judged, instead of a pool.")
@option("--recall target", "Recall to reach.", default=0.95, was=["--target"])
@rare("--rel", "Lowest relevant grade.  [default: 1, or that of the round]", type=float)
@option("--confidence level")
@option("--seconds S", "Time per judgment, in seconds.", type=click.FloatRange(min=0))
@option("--price P", "Price per judgment.", type=click.FloatRange(min=0))
@options.answer("table", "json")
def _stop(**typed: Any) -> None:
    """Estimate which topics need no further judgments.

    The estimate is the number of relevant documents not yet found, per topic. With --round it also shows what a strategy
    that reads documents has learned.

    \b
    $ cranfield pool stop labels.jsonl --pool pool.jsonl
    """
    from cranfield.commands.pooling import stopping

    show_answer(stopping, **typed)


@command.command("qrels")
@click.argument("pool")
@click.argument("judgments", type=INPUT, metavar="LOG")
@option("-o --output", "File to write.", required=True)
@option(
    "--to FORMAT format",
    "Format of the file: trec, prels (for statAP), strata (for xinfAP) or another.  [default: by its ending]",
)
def _qrels(pool: str, judgments: str, output: str, format: str | None) -> None:
    """Write qrels from a pool and its labels.

    The qrels of a sample state the inclusion probability of each document.

    \b
    $ cranfield pool qrels pool.jsonl labels.jsonl -o judged.txt
    """
    from cranfield.commands.pooling import collect

    collected = collect(pool, judgments, output, format)
    missing = f"; {collected.missing} documents of the pool have no label" if collected.missing else ""
    about(output, f"{collected.labels} judgments{missing}")
    if collected.strange:
        topic, document = collected.strange[0]
        some = f"{counted(len(collected.strange), 'label')} of documents that are not in the pool"
        note(f"note: {some}, such as {document!r} of topic {topic!r} (a spreadsheet may have changed ids)")
