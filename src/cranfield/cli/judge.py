"""Keep judgments in a log: who said what, who is asked next, and what stands.

LOG is a file of JSON lines (labels.jsonl), a SQLite file (work.db) or postgresql://user@host/name; the password comes
from PGPASSWORD or .pgpass.

\b
$ cranfield judge add work.db qrels.txt
"""

from __future__ import annotations

import re
from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import COLLECTION, INPUT, OUTPUT, InputPath, OneOf, option, scale_option
from cranfield.cli.output import note, show
from cranfield.parameters import masked, real

PLACE = 75


@click.group(help=__doc__)
def command() -> None:
    pass


log_argument = click.argument("log")


def share(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float:
    """`20%` or `0.2` as a share."""
    if value is None:
        return 0.0
    try:
        number = real(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise click.BadParameter(f"expected a share such as 5% or 0.05, found {value!r}", ctx, parameter)
    return number


def duration(ctx: click.Context, parameter: click.Parameter, value: str) -> float:
    """`30m`, `2h`, `90s` or `1d` in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", value)
    if not found or not real(found[1]):
        raise click.BadParameter(f"expected a time such as 30m, 2h or 1d, found {value!r}", ctx, parameter)
    return real(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


@command.command("add")
@log_argument
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--assessor", "Who said it, where the file does not.  [default: the name of a qrels file]", metavar="NAME")
@option("--aspect", "What was judged.  [default: relevance]", type=str, metavar="NAME")
@option("--source", "Who labels come from.", type=OneOf(names.sources), default="import")
@option("--time", "When, where the file does not say.", metavar="TIME")
@scale_option
@option(
    "--collection", "Refuse topics and documents that this collection does not have.", type=COLLECTION, metavar="FOLDER"
)
@option("--format", "The qrels' format, if it is not to be detected.", metavar="FORMAT")
@option(
    "--field",
    "What a column of CSV is called: topic, document, grade, assessor, time, seconds, note, aspect …, as in "
    "document=question; may be repeated.",
    name="typed_fields",
    multiple=True,
    metavar="OURS=THEIRS",
)
@options.labels
@option("--topics-file", "What the topics ask, to join labels by that text: a table, or a collection.")
@option(
    "--duplicates",
    "Which line counts when a person labels a document twice for a topic.  [default: all are kept, the last counts]",
)
@option("--lenient")
def _add(log: str, files: tuple[str, ...], typed_fields: tuple[str, ...], **how: Any) -> None:
    """Add labels from files: qrels, JSON lines, or CSV of who answered what. The same file again adds nothing.

    Columns question, worker, answer are known: the question is the document, and the topic is -.

    \b
    $ cranfield judge add work.db qrels.txt
    """
    from cranfield.workspace.judging import add

    fields: dict[str, list[str]] = {}
    for ours, theirs in options.pairs(typed_fields, "document=question"):
        fields.setdefault(ours, []).append(theirs)
    added = add(log, files, fields=fields or None, **how)
    again = f"; {added.known:,} were there already" if added.known else ""
    note(f"{added.new:,} labels added to {masked(log)}{again}")


def _listed(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Sources with commas between them."""
    if value is None:
        return None
    typed = tuple(name.strip() for name in value.split(",") if name.strip())
    unknown = set(typed) - set(names.sources())
    if unknown or not typed:
        raise click.BadParameter(f"expected {', '.join(names.sources())}, found {value!r}", ctx, parameter)
    return typed


_whose = "Whose.  [default: all that lines and CSV name; human,import for prefs and qrels]"


@command.command("export")
@log_argument
@option("--to", "What to write.", name="format", type=OneOf(names.exports), default="jsonl")
@option("--all", "All events, not only those that stand.", name="all_events", is_flag=True)
@option(
    "--by", "With qrels: the policy (judge aggregate lists them).", name="policy", default="latest", metavar="POLICY"
)
@option("--sources", _whose, metavar="LIST", callback=_listed)
@option("-o --output")
def _export(log: str, output: str | None, **how: Any) -> None:
    """Write the events that stand as JSON lines, CSV or trec_eval's prefs, or the grades by a policy as qrels.

    \b
    $ cranfield judge export labels.jsonl --to csv
    """
    from cranfield.formats.streams import write_bytes
    from cranfield.workspace.judging import export

    if how["format"] != "qrels":
        options.refuse_idle("goes with --to qrels", "policy")
    write_bytes(output or "-", [export(log, **how)])


@command.command("withdraw")
@log_argument
@option("--assessor", "What this person said.", metavar="NAME")
@option("--since", "What was said from this time on.", metavar="TIME")
@option("--until", "What was said before this time.", metavar="TIME")
@option("--topic", "What was said about this topic.", metavar="ID")
@option("--document", "What was said about this document.", metavar="ID")
@option("--round", "What was said in this round.", metavar="NAME")
@option("--id", "These events.", name="ids", multiple=True, metavar="ID")
@option("--by", "Who takes it back.  [default: who said it]", default="", show_default=False, metavar="NAME")
@option("--note", "Why.", default="", show_default=False, metavar="TEXT")
def _withdraw(log: str, **what: Any) -> None:
    """Take back what fits all that is said here; what stood before stands again, and the log keeps both.

    \b
    $ cranfield judge withdraw work.db --assessor ann --since 2026-03-01
    """
    from cranfield.workspace.judging import withdraw

    count = withdraw(log, **what)
    note(f"{count:,} events withdrawn in {masked(log)}")


@command.command("round")
@log_argument
@option("--name", "What the round is called.", default="1", metavar="NAME")
@option("--pool", "The documents, in the order of their priority.", type=INPUT, metavar="FILE")
@option("--assessors", "Who may judge.  [default: everybody]", metavar="NAME,NAME…")
@option("--overlap", "How many people judge each document.", type=click.IntRange(1, 1000), default=1)
@option("--double", "The share of documents that gets one label more.", metavar="20%", callback=share)
@option(
    "--gold",
    "Qrels whose grades are known to be right: everybody is asked, beside the count.",
    type=INPUT,
    metavar="FILE",
)
@option("--gold-share", "How often gold is asked.", metavar="5%", callback=share)
@option("--repeat", "How often somebody is asked again.", name="repeat_share", metavar="5%", callback=share)
@option("--sample", "Draw so many documents of the pool at random.", type=click.IntRange(min=1), metavar="N")
@option(
    "--sample-topics", "Draw so many topics at random, all their documents.", type=click.IntRange(min=1), metavar="N"
)
@option("--seed")
@option("--strategy", "Choose as labels come (cranfield pool strategies), from --run.", default="", metavar="NAME")
@option(
    "--run",
    "A run whose top the strategy chooses from; may be repeated.",
    name="runs",
    multiple=True,
    type=INPUT,
    metavar="RUN",
)
@option("--depth", "How deep tops are.", type=click.IntRange(min=1), default=100)
@option("--rel", "The lowest relevant grade, for the strategy.", default=1.0, metavar="N")
@option("--lease", "How long a document is somebody's.", default="30m", metavar="TIME", callback=duration)
@option("--pass", "Make it a qualifying round: the share of gold to get right.", name="passing", metavar="80%")
@option("--after", "The qualifying round to pass first.", default="", show_default=False, metavar="NAME")
@option("--guidelines", "What assessors are told; its hash is kept.", name="guideline", type=INPUT, metavar="FILE")
@scale_option
def _round(log: str, assessors: str | None, passing: str | None, **how: Any) -> None:
    """Begin a round: who is asked about what, and how often.

    \b
    $ cranfield judge round work.db --pool pool.jsonl --assessors ann,bob,cat --overlap 2
    """
    from cranfield.workspace.judging import begin_round

    if how["strategy"]:
        options.refuse_idle("does not go with --strategy", "double")
    else:
        options.refuse_idle("goes with --strategy", "runs", "depth", "rel")
    drawing = ("strategy", "sample", "sample_topics", "double", "gold_share", "repeat_share")
    if not any(how[name] for name in drawing):
        options.refuse_idle(
            "goes with --sample, --sample-topics, --double, --gold-share, --repeat or --strategy", "seed"
        )
    people = tuple(dict.fromkeys(name.strip() for name in (assessors or "").split(",") if name.strip()))
    if passing is not None:
        how["passing"] = share(click.get_current_context(), _passing(), passing)
    show(begin_round(log, assessors=people, **how), "table")


def _passing() -> click.Parameter:
    return next(each for each in _round.params if each.name == "passing")


@command.command("next")
@log_argument
@option("--assessor", "Who asks.", required=True, metavar="NAME")
@option("--round", "Which round.  [default: the one that is open]", default="", show_default=False, metavar="NAME")
@option("--count", "How many documents.", name="n", type=click.IntRange(1, 1000), default=1)
@options.shape("text", "json")
def _next(log: str, assessor: str, round: str, n: int, shape: str) -> None:
    """Say what somebody is to judge next, and keep it for them for the time of a lease.

    \b
    $ cranfield judge next work.db --assessor ann
    """
    import json

    from cranfield.cli.output import put
    from cranfield.judge.plan import Nothing
    from cranfield.workspace.judging import next_item

    answer = next_item(log, assessor, round, n)
    if isinstance(answer, Nothing):
        when = f"; ask again at {answer.free_at[:19].replace('T', ' ')} UTC" if answer.free_at else ""
        note(f"{answer.why}{when}")
        if shape == "json":
            put(json.dumps({"items": [], **answer._asdict()}))
        return
    if shape == "json":
        put(json.dumps({"items": [each._asdict() for each in answer]}))
        return
    for each in answer:
        put(f"{each.topic}\t{each.document}")
        note(f"yours until {each.until[:19].replace('T', ' ')} UTC")


@command.command("status")
@log_argument
@option("--round", "One round only.", default="", show_default=False, metavar="NAME")
@options.output("table", "json")
def _status(log: str, round: str, shape: str, output: str | None) -> None:
    """Say how far rounds are: who is where, what is out, what is left.

    \b
    $ cranfield judge status work.db
    """
    from cranfield.workspace.judging import rounds_status

    show(rounds_status(log, round), shape, output)


@command.command("set")
@log_argument
@click.argument("round")
@click.argument("state", type=OneOf(names.round_states))
def _set(log: str, round: str, state: str) -> None:
    """Pause a round, go on with it (open) or close it; labels of what is out are still taken.

    \b
    $ cranfield judge set work.db 1 paused
    """
    from cranfield.workspace.judging import set_round

    set_round(log, round, state)
    note(f"round {round} is {state}")


@command.command("blame")
@log_argument
@click.argument("topic")
@click.argument("document")
@options.output("table", "json")
def _blame(log: str, topic: str, document: str, shape: str, output: str | None) -> None:
    """Show every event about one document of a topic, and which of them stand.

    \b
    $ cranfield judge blame labels.jsonl q1 doc-003
    """
    from cranfield.workspace.judging import blame

    show(blame(log, topic, document), shape, output)


def _policies() -> str:
    from cranfield.judge.policy import policies

    return f"How: {', '.join(policies())}; options in brackets: 'bradley-terry(prior=1)'."


deciding = options.together(
    option("--by", _policies, name="policy", default="latest", metavar="POLICY"),
    option("--aspect", "What was judged.", default="relevance", type=str, metavar="NAME"),
    option(
        "--sources",
        "Whose labels count; a model's only if it is named here.",
        default="human,import",
        metavar="LIST",
        callback=_listed,
    ),
    option("--ties", "Which of grades that tie.", type=OneOf(names.tie_rules), default="lower"),
)


def _refuse_of_methods(policy: str) -> None:
    """Refuse options for policies that weigh several labels of a document, beside one that does not."""
    from cranfield.judge.policy import weighs_labels

    if not weighs_labels(policy):
        options.refuse_idle(
            f"is for policies that weigh the labels of a document, and {policy} does not", "ties", "gold"
        )


@command.command("aggregate")
@log_argument
@deciding
@option("--gold", "Qrels whose grades are known, beside the gold of rounds.", type=INPUT, metavar="FILE")
@option("--at", "As it stood at this time.", metavar="TIME")
@option("--to", "The qrels' format.  [default: by ending]", name="qrels_format", metavar="FORMAT")
@option("-o --output", "Write qrels to this file.")
@options.shape("table", "json", "csv", "tsv", help="How to print what was decided.")
def _aggregate(
    log: str, output: str | None, qrels_format: str | None, shape: str, spreadsheet: bool, **how: Any
) -> None:
    """Make one grade of several for each document, and write qrels.

    \b
    $ cranfield judge aggregate labels.jsonl --by majority -o stands.txt
    """
    from cranfield.workspace.judging import aggregate

    if output is None:
        options.refuse_idle("goes with -o FILE", "qrels_format")
    _refuse_of_methods(how["policy"])
    aggregated = aggregate(log, **how)
    if output is not None:
        from cranfield.formats import write_qrels

        write_qrels(aggregated.decided.grades, output, qrels_format)
    show(aggregated, shape, None, spreadsheet=spreadsheet)


@command.command("freeze")
@log_argument
@click.argument("name")
@deciding
@option("--note", "Why.", default="", show_default=False, metavar="TEXT")
def _freeze(log: str, name: str, **how: Any) -> None:
    """Freeze the qrels of the moment under a name; LOG@NAME then stands wherever qrels do.

    \b
    $ cranfield judge freeze work.db spring --by majority
    """
    from cranfield.cli.output import notes
    from cranfield.workspace.judging import freeze

    _refuse_of_methods(how["policy"])
    version, said = freeze(log, name, **how)
    note(
        f"{version.name}: {version.documents:,} documents by {version.policy}, {version.hash}; use it as {masked(log)}@{name}"
    )
    notes(said)


@command.command("versions")
@log_argument
@options.output("table", "json")
def _versions(log: str, shape: str, output: str | None) -> None:
    """List what is frozen.

    \b
    $ cranfield judge versions work.db
    """
    from cranfield.workspace.judging import versions

    show(versions(log), shape, output)


@command.command("verify")
@log_argument
@options.output("table", "json")
@click.pass_context
def _verify(ctx: click.Context, log: str, shape: str, output: str | None) -> None:
    """Look for damage, and work every frozen version out again; exit 3 if anything differs.

    A SQLite file is checked by SQLite itself. Rounds and their documents, versions, comparisons and questions are held
    against the hashes they were written with.

    \b
    $ cranfield judge verify work.db
    """
    from cranfield.workspace.judging import verify

    found = verify(log)
    show(found, shape, output)
    if found.wrong:
        ctx.exit(3)


@command.command("diff")
@log_argument
@click.argument("a")
@click.argument("b", required=False)
@option("--run", "A run to score by both; may be repeated.", name="runs", multiple=True, type=INPUT, metavar="RUN")
@option("-m --measures", "What to compute.  [default: nDCG@10 AP RR@10]")
@option("--by", "What stands now, where there is no B.", name="policy", default="latest", metavar="POLICY")
@options.output("table", "json", "csv", "tsv")
def _diff(log: str, a: str, b: str | None, shape: str, output: str | None, spreadsheet: bool, **how: Any) -> None:
    """Say what changed from version A to B, or to what stands now; with runs, which scores and verdicts change.

    \b
    $ cranfield judge diff work.db spring --run bm25.run --run dense.run
    """
    from cranfield.workspace.judging import diff

    if b is not None:
        options.refuse_idle("does not go with B", "policy")
    if not how["runs"]:
        options.refuse_idle("goes with --run", "measures")
    show(diff(log, a, b, **how), shape, output, spreadsheet=spreadsheet)


@command.command("agree")
@click.argument("sources", nargs=-1, required=True, metavar="LOG|QRELS QRELS...")
@option(
    "--coefficient",
    "Only this one, such as 'cohen(weights=linear)' (docs/agreement.md lists them); may be repeated.",
    name="coefficients",
    multiple=True,
    metavar="NAME",
)
@option("--by", "Look closer.", name="view", type=OneOf(names.agreement_views))
@option(
    "--run",
    "A run to rank by each person's labels; may be repeated.",
    name="runs",
    multiple=True,
    type=INPUT,
    metavar="RUN",
)
@option("-m --measures", "What to rank runs by.  [default: nDCG@10]")
@option(
    "--disagreements",
    "Write the documents that people disagree about as a pool for a third.",
    type=OUTPUT,
    metavar="FILE",
    callback=options.writable,
)
@option("--aspect", "What was judged.", default="relevance", type=str, metavar="NAME")
@option("--sources", "Whose labels count.", name="whose", default="human,import", metavar="LIST", callback=_listed)
@option(
    "--resamples",
    "Resamples of the documents, where intervals are within one topic; 0 leaves out all intervals.",
    default=1000,
)
@option("--level", "Of the intervals.")
@option("--seed", "Seed of these resamples.")
@option("--all", "Everything: all people, and how each changed over time.", name="every", is_flag=True)
@options.output("table", "json", "csv", "tsv")
def _agree(sources: tuple[str, ...], disagreements: str | None, view: str | None, **typed: Any) -> None:
    """Say how far people agree: those of a log, or several qrels, each of one person.

    Intervals leave out each topic in turn. Files of two people with equal bytes are refused.

    \b
    $ cranfield judge agree labels.jsonl bob.csv
    """
    from cranfield.formats.streams import all_or_none
    from cranfield.judge.event import RELEVANCE
    from cranfield.workspace.judging import agree

    if not typed["runs"]:
        options.refuse_idle("goes with --run", "measures")
    inputs, printed, how = options.split(typed)
    with all_or_none():
        found = agree(
            sources,
            runs=inputs.runs,
            measures=inputs.measures,
            disagreements=disagreements,
            view=view or "",
            aspect=inputs.aspect or RELEVANCE,
            **how,
        )
        show(found, **printed)
    if disagreements is not None:
        note(f"documents that people disagree about are in {disagreements}")


@command.command("estimate")
@log_argument
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("-m --measures", "What to compute.  [default: nDCG@10 AP RR@10; where documents were drawn P@10 DCG@10]")
@option("--round", "Which round drew.  [default: the only one]", default="", show_default=False, metavar="NAME")
@option("--model", "Whose labels predict.  [default: the only model's]", default="", show_default=False, metavar="NAME")
@option("--by", "What stands of people's labels (judge aggregate lists how).", name="policy", default="latest")
@option("--aspect", "What was judged.", default="relevance", type=str, metavar="NAME")
@option("--level", "Of the intervals.")
@option("--all", "Every difference, not only those from the run that leads.", name="every", is_flag=True)
@options.answer("table", "json", "csv", "tsv")
def _estimate(log: str, runs: tuple[str, ...], measures: tuple[str, ...], **typed: Any) -> None:
    """Estimate scores and differences of runs from few labels of people and many of a model.

    People label topics (any measure) or documents (sums over documents: P, CG, DCG, RBP) that a round drew at random; a
    model labels the whole pool.

    \b
    $ cranfield judge estimate drawn.jsonl bm25.run dense.run -m P@10
    """
    from cranfield.workspace.estimating import estimate

    shown = {name: typed.pop(name) for name in options.SHOWN if name in typed}
    show(estimate(log, runs, measures, **typed), **shown)


@command.command("calibrate")
@log_argument
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option("-m --measures", "What to rank runs by.  [default: nDCG@10 AP RR@10]")
@option("--model", "Whose labels.  [default: the only model's]", default="", show_default=False, metavar="NAME")
@option(
    "--by",
    "What stands of people's labels (judge aggregate lists how).",
    name="policy",
    default="latest",
    metavar="POLICY",
)
@option("--aspect", "What was judged.", default="relevance", type=str, metavar="NAME")
@option("--rel", "The lowest relevant grade.", default=1.0, metavar="N")
@option(
    "--collection",
    "Where texts are, for bias by length.  [default: lengths as asked]",
    type=COLLECTION,
    metavar="FOLDER",
)
@option("--own", "A run that is built on the judge's own model; may be repeated.", multiple=True, metavar="RUN")
@option(
    "--chosen-on",
    "Leave out what was looked at when the prompt was chosen: a topic, or a topic and a document, on each line.",
    type=INPUT,
    metavar="FILE",
)
@option("--choose", "Choose the best of several prompts on half of the topics, calibrate on the others.", is_flag=True)
@option("--public", "When the judgments became public.", metavar="DATE")
@option("--model-date", "When the model was made.  [default: the date in its name]", metavar="DATE")
@option("--level", "Of the intervals.")
@option("--seed")
@option("--all", "Everything: all runs, both boards, shares with intervals.", name="every", is_flag=True)
@options.answer("table", "json", "csv", "tsv")
@click.pass_context
def _calibrate(ctx: click.Context, /, log: str, runs: tuple[str, ...], measures: tuple[str, ...], **typed: Any) -> None:
    """Measure a model's labels against people's, in words and then in numbers; exit 3 if it gives one answer only.

    On documents that both labelled: agreement beside that of two people, the best constant answer, errors by grade, bias by
    length. With runs: bias by rank and run, the order of runs by both, the judge's own ranking.

    \b
    $ cranfield judge calibrate drawn.jsonl bm25.run dense.run
    """
    from cranfield.workspace.calibrating import calibrate

    if not runs:
        options.refuse_idle("goes with runs", "measures")
    shown = {name: typed.pop(name) for name in options.SHOWN if name in typed}
    answer = calibrate(log, runs, measures, **typed)
    show(answer, **shown)
    if answer.only_answer is not None:
        note("one answer only: ask with another prompt or model, or go by the labels of people alone")
        ctx.exit(3)


def _budget(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """`2.50` in money or `200000tokens`."""
    from cranfield.judge.models.kept import Budget

    if value is None:
        return Budget()
    number, in_tokens = value.removesuffix("tokens").strip(), value.endswith("tokens")
    try:
        most = real(number)
    except ValueError:
        most = -1.0
    if most <= 0:
        raise click.BadParameter(f"expected money such as 2.50, or 200000tokens, found {value!r}", ctx, parameter)
    return Budget(tokens=most) if in_tokens else Budget(money=most)


@command.command("ask")
@log_argument
@option("--pool", "The pairs to label, in the order of their priority.", required=True, type=INPUT, metavar="FILE")
@option(
    "--collection", "Where the topics and the documents' texts are.", required=True, type=COLLECTION, metavar="FOLDER"
)
@option("--endpoint", "An OpenAI-compatible server, such as http://localhost:8080/v1.", required=True, metavar="URL")
@option("--model", "The model, as the server calls it.", required=True, metavar="NAME")
@option(
    "--prompt",
    lambda: f"How to ask: a file, or {', '.join(names.prompts())}.",
    required=True,
    type=InputPath(names.prompts),
    metavar="FILE",
)
@option("--key-env", "The variable of the environment that holds the key.  [default: no key]", metavar="NAME")
@option(
    "--budget",
    "The most that the model may cost in this log, in money (2.50, with prices) or as 200000tokens.",
    metavar="MOST",
    callback=_budget,
)
@option("--price-in", "Of a million tokens that are sent.", type=float, metavar="P")
@option("--price-out", "Of a million tokens that come back.", type=float, metavar="P")
@option("--max-tokens", "Of an answer.  [default: the prompt's]", type=click.IntRange(1, 1_000_000), metavar="N")
@option(
    "--text-limit", "Characters of a text; what is behind them is cut.", type=click.IntRange(min=200), default=12000
)
@option(
    "--neighbours",
    "Pairwise: with how many next documents of the pool each is compared.",
    type=click.IntRange(1, 1000),
    default=1,
)
@option("--seed")
@option(
    "--probe",
    "Ask no labels, but N probes of each kind about pairs that were labelled: docs/model-judges.md says which.",
    type=click.IntRange(min=1),
    metavar="N",
)
@option(
    "--drift",
    "First ask N questions of before again; stop if answers changed.",
    type=click.IntRange(0, 1000),
    default=5,
)
@option(
    "--drift-allowed",
    "How many of these may be answered differently.",
    type=click.IntRange(min=0),
    metavar="K",
    default=0,
)
@option("--accept-drift", "Go on though answers changed, and compare with the new ones from now on.", is_flag=True)
@option("--clients", "How many questions are under way at the same time.", type=click.IntRange(1, 256), default=4)
@option("--retries", "Tries after a failure that may pass.", type=click.IntRange(0, 100), default=3)
@option(
    "--timeout", "Seconds an answer may take.", type=click.FloatRange(min=0, min_open=True), default=120.0, metavar="S"
)
@option(
    "--max-answer",
    "Megabytes that an answer may have.",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    metavar="MB",
)
@option("--give-up", "Stop when N pairs one after the other get no answer.", type=click.IntRange(min=1), default=10)
@option("--schema/--no-schema", "Ask for JSON of a schema, where the server takes one.", default=True)
@option("--dry-run", "Say what would be asked and what it may cost, and ask nothing.", is_flag=True)
@options.output("table", "json", "csv", "tsv")
@click.pass_context
def _ask(ctx: click.Context, /, log: str, shape: str, output: str | None, spreadsheet: bool, **how: Any) -> None:
    """Have a model label the pairs of a pool; exit 1 if some have no label. The same command goes on where it stopped.

    The labels count as a model's: no qrels hold them unless --sources names them. With --probe: how the model answers when a
    question is asked twice, turned round, or meddled with; exit 1 if some were not answered.

    \b
    $ cranfield judge ask my.db --pool two.jsonl --collection allotment --endpoint http://gpu --model m --prompt graded --dry-run
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace.models import ask

    with progress("questions") as tell:
        done = ask(log, progress=tell, **how)
    show(done, shape, output, spreadsheet=spreadsheet)
    if not done.complete and done.foreseen is None:
        ctx.exit(1)


@command.command("models")
@log_argument
@option("--model", "One model only: NAME, or NAME/PROMPT-VERSION.", default="", show_default=False, metavar="NAME")
@option("--failures", "What is no label, and what came back instead.", is_flag=True)
@option("--reason", "Failures of one kind, such as unparsed.", default="", show_default=False, metavar="KIND")
@option("--count", "How many failures.", name="n", type=click.IntRange(1, 1_000_000), default=50)
@option("--skip", "Failures to pass over first.", type=click.IntRange(min=0), default=0)
@options.output("table", "json", "csv", "tsv")
def _models(log: str, shape: str, output: str | None, spreadsheet: bool, **how: Any) -> None:
    """Say what models were asked, what it cost, and what failed.

    \b
    $ cranfield judge models asked.jsonl
    """
    from cranfield.workspace.model_runs import model_failures, model_runs

    failures, model = how.pop("failures") or bool(how["reason"]), how.pop("model")
    if not failures:
        options.refuse_idle("goes with --failures", "n", "skip")
    answer = model_failures(log, model, whole=shape != "table", **how) if failures else model_runs(log, model)
    show(answer, shape, output, spreadsheet=spreadsheet)
