"""`cranfield pool`: runs → what to judge next. Its subcommands count, judge and simulate; without one it makes a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.answer import as_json
from cranfield.cli import options
from cranfield.cli.output import note, put, screen_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.answer import Answer
    from cranfield.pool.session import Session


class Default(click.Group):
    """A group whose first word may be left out: what is no subcommand's name belongs to `make`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `make` in front where a run or an option comes first."""
        if args and args[0] not in (*self.commands, "--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group("pool", cls=Default)
def command() -> None:
    """Choose what to judge next from the tops of runs.

    A run may be a quoted pattern. A file that is called like a subcommand goes in as ./judge.

    \b
    $ cranfield pool bm25.run dense.run --depth 10
    """


def depth_of(given: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    """`--depth 100 --depth bm25.run=200` as the depth of all and the depths of some."""
    depth, some = 100, {}
    for text in given:
        name, equals, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1 or (equals and not name):
            raise click.UsageError(f"--depth: expected N or RUN=N with N of 1 or more, found {text!r}")
        if equals:
            some[name] = int(number)
        else:
            depth = int(number)
    return depth, some


def pairs_of(option: str, given: tuple[str, ...], shape: str) -> dict[str, str]:
    """`name=value` options as a mapping."""
    answer = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{option}: expected {shape}, found {text!r}")
        answer[name] = value
    return answer


def contributing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The runs, their depths, and how they are read."""
    for decorate in (
        options.conventions,
        click.option("--lenient", is_flag=True, help="Skip malformed lines instead of stopping at the first."),
        click.option("--run-format", metavar="FORMAT", help="The runs' format, if it is not to be detected."),
        click.option(
            "--depth",
            "depth_",
            multiple=True,
            metavar="N|RUN=N",
            help="How many documents of each run, or of one run.  [default: 100]",
        ),
        click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
    ):
        function = decorate(function)
    return function


def choosing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which documents, in which order."""
    for decorate in (
        click.option("--seed", type=int, default=0, show_default=True, help="For all that is left to chance."),
        click.option("--topics", metavar="FILE", help="Only these topics: the first word of each line."),
        click.option("--collection", metavar="FOLDER", help="The documents' texts, for strategies that read them."),
        click.option("--rel", type=float, default=1, show_default=True, help="The lowest relevant grade."),
        click.option(
            "--budget", type=click.IntRange(min=1), metavar="N", help="The most documents, labels so far included."
        ),
        click.option("--team", "teams", multiple=True, metavar="PATTERN=TEAM", help="Which runs a team sent in."),
        click.option(
            "--priority",
            "priorities",
            multiple=True,
            metavar="PATTERN=N",
            help="Pool what these runs or teams returned first (1) or later (2, 3 …).",
        ),
        click.option(
            "--strategy",
            default="depth",
            show_default=True,
            metavar="NAME",
            help="How documents are chosen (cranfield pool strategies); options in brackets: 'rbp(p=0.9)'.",
        ),
    ):
        function = decorate(function)
    return function


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `choosing` and `contributing` as the verbs take them."""
    given["depth"], given["depths"] = depth_of(given.pop("depth_"))
    given["changes"] = options.taken(given)
    if "priorities" in given:
        wanted = pairs_of("--priority", given["priorities"], "PATTERN=N")
        if not all(number.isdecimal() and int(number) > 0 for number in wanted.values()):
            raise click.UsageError("--priority: expected PATTERN=N with N of 1 or more")
        given["priorities"] = {pattern: int(number) for pattern, number in wanted.items()}
        given["teams"] = pairs_of("--team", given["teams"], "PATTERN=TEAM")
    return given


def _put(answer: Answer, shape: str, output: str | None) -> None:
    text = answer.to_text(limit=screen_width(output)) if shape == "table" else getattr(answer, f"to_{shape}")()
    put(text, output)


@command.command("make")
@contributing
@choosing
@click.option("--cap", type=click.IntRange(min=1), metavar="N", help="The most documents a topic.")
@click.option(
    "--next", type=click.IntRange(min=1), metavar="N", help="Hand out so many a topic, for adaptive strategies."
)
@click.option("--judgments", metavar="FILE", help="The labels so far: qrels, or JSON lines of topic, document, grade …")
@click.option("--qrels", metavar="FILE", help="Judgments from before; their documents are not asked for again.")
@click.option("--keep-judged", is_flag=True, help="Ask for the documents in --qrels again.")
@click.option("--order", metavar="shuffled|priority|document", help="How each topic's documents are laid out.")
@click.option("--assessors", metavar="NAME,NAME…", help="Give whole topics to assessors, evenly.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to a file, whole or not at all, instead of standard output."
)
def make(output: str | None, assessors: str | None, **given: Any) -> None:
    """Write a pool: one JSON line for each document to judge.

    Strategies that adapt are called again and again: --next 5 --judgments labels.jsonl writes the next five of each
    topic, given the labels so far.

    \b
    $ cranfield pool bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.formats.streams import write_bytes
    from cranfield.pool.make import uncollected
    from cranfield.workspace import pool_

    names = [name.strip() for name in assessors.split(",") if name.strip()] if assessors else []
    with uncollected():
        with progress("runs read") as tell:
            pool = pool_(assessors=names, progress=tell, **chosen(given))
        write_bytes(output or "-", pool.lines())
    session = pool.session
    drawn = sum(item.priority > 0 for item in pool) if session.strategy.samples else len(pool)
    of = f" drawn of {len(pool)}" if drawn < len(pool) else ""
    note(
        f"{drawn} documents{of} for {len(pool.topics)} of {len(session.rankings.topics)} topics from "
        f"{len(session.rankings.runs)} runs by {session.strategy}; seed {given['seed']}"
    )
    if session.judged:
        note(f"labels so far: {session.judged}, {session.relevant} of them relevant")


@command.command("statistics")
@contributing
@click.option("--seconds", type=click.FloatRange(min=0), default=60.0, show_default=True, help="What a judgment takes.")
@options.output("table", "json")
def statistics(shape: str, output: str | None, **given: Any) -> None:
    """Say how large a depth pool will be, how much its runs overlap, and how long judging takes.

    \b
    $ cranfield pool statistics bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import pool_statistics

    with progress("runs read") as tell:
        found = pool_statistics(progress=tell, **chosen(given))
    _put(found, shape, output)


@command.command("strategies")
@options.output("table", "json")
def strategies(shape: str, output: str | None) -> None:
    """List the strategies."""
    from cranfield.workspace import list_strategies

    found = list_strategies()
    if shape == "json":
        put(as_json(found), output)
        return
    for each in found:
        marks = ", ".join(
            mark for mark, is_so in (("adapts to labels", each["adaptive"]), ("reads texts", each["reads"])) if is_so
        )
        put(f"{each['name']}{f' ({marks})' if marks else ''}\n  {each['about']}")
        for option, (default, meaning) in each["options"].items():
            put(f"    {option}={default}: {meaning}")


@command.command("judge")
@contributing
@choosing
@click.option(
    "--judgments", required=True, metavar="FILE", help="Where labels are kept: JSON lines, added to as you go."
)
@click.option("--assessor", default="", metavar="NAME", help="Who judges.")
def judge(judgments: str, assessor: str, **given: Any) -> None:
    """Judge at the terminal: shows the next document, takes its grade, and goes on until you stop (q).

    Every label is on disk before the next document is shown; call it again to go on.

    \b
    $ cranfield pool judge bm25.run dense.run --strategy maxmean --judgments labels.jsonl
    """
    from cranfield.workspace import judging

    session, keep, show = judging(judgments=judgments, assessor=assessor, **chosen(given))
    note(
        f"{session.judged} labels so far, {session.relevant} relevant; {session.left} documents left. q stops, s skips."
    )
    _loop(session, keep, show)
    note(f"{session.judged} labels, {session.relevant} relevant, in {judgments}")


def _loop(session: Session, keep: Callable[[str, str, float], None], show: Callable[[str, str], str]) -> None:
    while (item := session.next()) is not None:
        note(f"\n{show(item.topic, item.document)}")
        while True:
            try:
                answer = click.prompt("grade", prompt_suffix=" > ", err=True).strip()
            except (click.Abort, EOFError):
                return
            if answer in ("q", "quit"):
                return
            if answer in ("s", "skip"):
                break
            try:
                grade = float(answer)
            except ValueError:
                note("a number, s to skip, q to stop")
                continue
            if grade != grade or abs(grade) == float("inf"):
                note("a finite number, s to skip, q to stop")
                continue
            keep(item.topic, item.document, grade)
            break


@command.command("simulate")
@click.argument("qrels")
@contributing
@click.option("-m", "--measures", multiple=True, default=["AP"], show_default=True, help="By which runs are ranked.")
@click.option(
    "--strategy", "strategies", multiple=True, metavar="NAME", help="Which ones; may be repeated.  [default: all]"
)
@click.option("--collection", metavar="FOLDER", help="The documents' texts, for strategies that read them (cal).")
@click.option("--recall", type=float, default=0.95, show_default=True, help="The recall whose effort is measured.")
@click.option(
    "--sampling", metavar="RATE,RATE…", help="Instead: how well infAP, xinfAP and statAP estimate AP at these rates."
)
@click.option(
    "--draws", type=click.IntRange(min=1), default=20, show_default=True, help="Samples drawn for --sampling."
)
@click.option("--rel", type=float, default=1, show_default=True, help="The lowest relevant grade.")
@click.option("--seed", type=int, default=0, show_default=True, help="For all that is left to chance.")
@options.output("table", "json", "csv", "tsv")
def simulate(qrels: str, shape: str, output: str | None, sampling: str | None, draws: int, **given: Any) -> None:
    """Replay strategies on a judged collection: what each finds, and when the ranking of the runs settles.

    -o FILE ending in .svg, .png, .pdf, .html or .vl.json draws relevant documents found by effort.

    \b
    $ cranfield pool simulate qrels.txt bm25.run dense.run --depth 10
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import draw_simulation, simulate_

    given = chosen(given)
    if sampling is not None:
        _put_estimates(qrels, sampling, draws, shape, output, given)
        return
    with progress("strategies replayed") as tell:
        found = simulate_(qrels, progress=tell, **given)
    if output is not None and draw_simulation(found, output):
        return
    _put(found, shape, output)


def _put_estimates(
    qrels: str, sampling: str, draws: int, shape: str, output: str | None, given: dict[str, Any]
) -> None:
    from cranfield.cli.progress import progress
    from cranfield.workspace import estimates_

    try:
        rates = [float(rate) for rate in sampling.split(",")]
    except ValueError:
        raise click.UsageError(f"--sampling: expected rates such as 0.05,0.1, found {sampling!r}") from None
    if shape not in ("table", "json"):
        raise click.UsageError("--sampling is printed as a table or as json")
    unused = ("measures", "strategies", "collection", "recall")
    kept = {name: value for name, value in given.items() if name not in unused}
    with progress("samples drawn") as tell:
        found = estimates_(qrels, rates=rates, draws=draws, progress=tell, **kept)
    _put(found, shape, output)


@command.command("thin")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-m", "--measures", multiple=True, default=["AP nDCG@10"], show_default=True, help="What to read.")
@click.option("--holes", metavar="FILE", help="Write a pool of the unjudged documents in the runs' tops.")
@click.option("--holes-depth", type=click.IntRange(min=1), default=10, show_default=True, help="How deep tops are.")
@click.option("--lenient", is_flag=True, help="Skip malformed lines instead of stopping at the first.")
@click.option("--run-format", metavar="FORMAT", help="The runs' format, if it is not to be detected.")
@options.output("table", "json")
@options.conventions
def thin(shape: str, output: str | None, **given: Any) -> None:
    """Read runs on thin judgments in several ways: as they are, condensed, bpref, infAP, bounds; says which to trust.

    \b
    $ cranfield pool thin qrels.txt bm25.run dense.run
    """
    from cranfield.workspace import thin_

    changes = options.taken(given)
    found, written = thin_(changes=changes, **given)
    _put(found, shape, output)
    if given["holes"]:
        note(f"{written} documents to judge in {given['holes']}")


@command.command("stop")
@click.argument("judgments")
@click.option("--pool", required=True, metavar="FILE", help="The pool that is being judged.")
@click.option("--target", type=float, default=0.95, show_default=True, help="The recall to reach.")
@click.option("--rel", type=float, default=1, show_default=True, help="The lowest relevant grade.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seconds", type=float, help="What a judgment takes, for hours.")
@click.option("--price", type=float, help="What a judgment costs.")
@options.output("table", "json")
def stop(shape: str, output: str | None, **given: Any) -> None:
    """Estimate how many relevant documents are still unfound, topic by topic, and say which topics can stop.

    \b
    $ cranfield pool stop labels.jsonl --pool pool.jsonl
    """
    from cranfield.workspace import stopping_

    _put(stopping_(**given), shape, output)


@command.command("qrels")
@click.argument("pool")
@click.argument("judgments")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write.")
@click.option(
    "--to", "format", metavar="FORMAT", help="trec, prels (for statAP), strata (for xinfAP) …  [default: by ending]"
)
def qrels(pool: str, judgments: str, output: str, format: str | None) -> None:
    """Make qrels of a pool and its labels; of a sample they say how likely each document was to be drawn.

    \b
    $ cranfield pool qrels pool.jsonl labels.jsonl -o judged.txt
    """
    from cranfield.workspace import pool_qrels

    labels, missing = pool_qrels(pool, judgments, output, format)
    note(f"{labels} judgments in {output}" + (f"; {missing} documents of the pool have no label" if missing else ""))
