"""Collect judgments: rounds, agreement, versions, LLM judges.

LOG is a file of JSON lines (labels.jsonl), a SQLite file (work.db) or postgresql://user@host/name; the password comes
from PGPASSWORD or .pgpass.

\b
$ cranfield judge add work.db qrels.txt
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from cranfield.base.parameters import masked, real, shortened
from cranfield.cli import option_values, options
from cranfield.cli.options import COUNT, INPUT, NEW_FILE, WHOLE, InputPath, RegistryName, option, rare, scale_option
from cranfield.cli.output import note, notes, put, show, show_answer

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = 75


command = options.group(__doc__)


def log_command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command of the group, whose first argument is LOG."""
    return options.together(command.command(name), click.argument("log"))


def share(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Read `20%` or `0.2` as a share."""
    if value is None:
        return None
    try:
        number = real(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise click.BadParameter(f"expected a share such as 5% or 0.05, found {value!r}", ctx, parameter)
    return number


def duration(ctx: click.Context, parameter: click.Parameter, value: str) -> float:
    """Convert `30m`, `2h`, `90s` or `1d` to seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", value)
    if not match or not real(match[1]):
        raise click.BadParameter(f"expected a time such as 30m, 2h or 1d, found {value!r}", ctx, parameter)
    return real(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


@log_command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--assessor NAME", "Name of the assessor, if the file does not state it.  [default: the name of a qrels file]")
@option("--aspect", "Aspect that was judged.  [default: relevance]", default=None, everyday=True)
@option(
    "--source",
    "Source of the labels.  [default: import; clicks for a file of online qrels]",
    type=RegistryName("label_sources"),
)
@option("--time TIME", "Time of the labels, if the file does not state it.  [default: before all labels with a time]")
@scale_option
@option("--collection", "Collection of the labels. Labels of other topics and documents are refused.")
@option("--qrels-format", name="format", was=["--format"])
@rare(
    "--field OURS=THEIRS",
    "Name of a column in CSV, such as document=question. OURS is topic, document, grade, assessor, time, seconds, note, "
    "aspect or another.",
    name="typed_fields",
    multiple=True,
)
@options.labels
@option("--topics-file", "File with the texts of the topics, to match labels by the text of a query.")
@option(
    "--duplicates",
    "Line to use if a person labels a document twice for a topic.  [default: all are kept, and the last counts]",
)
@option("--lenient")
def _add(log: str, files: tuple[str, ...], typed_fields: tuple[str, ...], **how: Any) -> None:
    """Add labels from qrels, JSON lines or CSV.

    Adding the same file again changes nothing. The columns question, worker and answer of CSV are known: the question is the
    document, and the topic is -.

    \b
    $ cranfield judge add work.db qrels.txt
    """
    from cranfield.commands.judging import add

    fields = options.column_names(typed_fields, "document=question")
    added = add(log, files, fields=fields or None, **how)
    again = f"; {added.repeated:,} were there already" if added.repeated else ""
    note(f"{added.new:,} labels added to {masked(log)}{again}")


def _sources(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """The sources in a list with commas."""
    if value is None:
        return None
    typed = tuple(name.strip() for name in value.split(",") if name.strip())
    known = option_values.names("label_sources")
    if not typed or not {*typed} <= {*known}:
        raise click.BadParameter(f"expected {', '.join(known)}, found {value!r}", ctx, parameter)
    return typed


@log_command("export")
@option("--to format", "Format to write.", type=RegistryName("label_formats", "qrels"), default="jsonl")
@option(
    "--all-events", "Write every event, including labels that were replaced or withdrawn.", is_flag=True, was=["--all"]
)
@option("--policy", "Policy that aggregates labels into qrels; judge aggregate lists them.")
@option(
    "--sources LIST",
    "Sources of the labels to write.  [default: all but clicks for jsonl and csv; human,import for prefs; "
    "human,import,collection for qrels]",
    callback=_sources,
)
@option("-o --output")
def _export(log: str, output: str | None, **how: Any) -> None:
    """Write the current labels as JSON lines, CSV, prefs or qrels.

    \b
    $ cranfield judge export labels.jsonl --to csv
    """
    from cranfield.commands.judging import export
    from cranfield.formats.streams import write_bytes

    if how["format"] != "qrels":
        options.refuse_idle("goes with --to qrels", "policy")
    write_bytes(output or "-", [export(log, **how)])


@log_command("withdraw")
@option("--assessor NAME", "Assessor whose labels to withdraw.")
@option("--since TIME", "Time of the first label to withdraw.")
@option("--until TIME", "Time before which labels are withdrawn.")
@option("--topic ID", "Topic whose labels to withdraw.")
@option("--document ID", "Document whose labels to withdraw.")
@option("--round NAME", "Round whose labels to withdraw.")
@option("--id ID ids", "Event to withdraw.", multiple=True)
@option(
    "--withdrawn-by NAME by",
    "Name of the person who withdraws.  [default: the assessor of each label]",
    default="",
    was=["--by"],
)
@option("--note TEXT", "Reason, which the log keeps.", default="")
def _withdraw(log: str, **what: Any) -> None:
    """Withdraw every label that matches the options.

    Earlier labels count again. The log keeps both.

    \b
    $ cranfield judge withdraw work.db --assessor ann --since 2026-03-01
    """
    from cranfield.commands.judging import withdraw

    count = withdraw(log, **what)
    note(f"{count:,} events withdrawn in {masked(log)}")


@log_command("pseudonymise")
@click.argument("name")
@option("--pseudonym NAME", "Pseudonym.  [default: person-1, or the next number that is free]", default="")
@option("--changed-by NAME by", "Name of the person who replaces it, which the log keeps.", default="")
@options.shape("text", "json")
def _pseudonymise(log: str, name: str, shape: str, **how: Any) -> None:
    """Replace the name of an assessor by a pseudonym.

    The pseudonym stands everywhere in the log. Labels, agreement, qrels and versions stay as they are. The account is
    switched off. Notes that may hold the name are listed for you to read. Stop servers that have a JSON-lines log open.

    \b
    $ cranfield judge pseudonymise labels.jsonl ann
    """
    from cranfield.commands.judging import pseudonymise

    show(pseudonymise(log, name, **how), shape)


def _topic_people(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, tuple[str, ...]] | None:
    """Read `TOPIC=NAME,NAME` as the people of a topic."""
    answer = {}
    for each in value:
        topic, equals, names = each.rpartition("=")
        if not equals or not topic or not _people(names):
            raise click.BadParameter(f"expected TOPIC=NAME,NAME…, found {each!r}", ctx, parameter)
        answer[topic] = _people(names)
    return answer or None


@log_command("round")
@option("--name NAME", "Name of the round.", default="1")
@option("--pool FILE", "Pool of documents to judge, in order of priority.")
@option("--assessors NAME,NAME…", "Assessors of the round.  [default: everybody]")
@option("--overlap", "Number of people who judge each document.", type=click.IntRange(1, 1000), default=1)
@option(
    "--double-share double",
    "Share of documents that get one more label.",
    metavar="20%",
    default="0%",
    callback=share,
    was=["--double"],
)
@option("--gold FILE", "Qrels with known grades. Every assessor judges these documents in addition to the others.")
@rare("--gold-share", "Share of questions that are gold.", metavar="5%", default="0%", callback=share)
@rare(
    "--repeat-share",
    "Share of questions that an assessor gets a second time.",
    metavar="5%",
    default="0%",
    callback=share,
    was=["--repeat"],
)
@option("--sample N", "Number of documents to draw from the pool at random.", type=COUNT)
@option("--sample-topics N", "Number of topics to draw at random, with all their documents.", type=COUNT)
@option("--seed")
@option(
    "--strategy NAME",
    "Adaptive strategy that chooses from --run as labels come; cranfield pool strategies lists them.",
    default="",
)
@option("--run RUN runs", "Run that the strategy chooses from.", multiple=True, type=INPUT)
@rare("--depth", "Number of documents to take from each run.", type=COUNT, default=100)
@rare("--rel", "Lowest relevant grade, for the strategy.", default=1.0)
@option("--lease TIME", "Time for which a document is reserved for an assessor.", default="30m", callback=duration)
@rare(
    "--pass passing",
    "Share of gold that an assessor must get right, which makes this a qualifying round.",
    metavar="80%",
    callback=share,
)
@rare("--after NAME", "Qualifying round that assessors must pass first.", default="")
@option(
    "--order",
    "Order of the documents: shuffled within topics, or by the priority of the pool.  [default: shuffled]",
    type=RegistryName("round_orders"),
    default=None,
)
@option("--assign-topics", "Assign topics to the assessors evenly, each to as many people as --overlap.", is_flag=True)
@rare("--topic-people TOPIC=NAME,NAME… topic_people", "People for a topic.", multiple=True, callback=_topic_people)
@option("--choose-topics", "Let people choose their topics.", is_flag=True)
@option("--guidelines FILE guideline", "Guidelines for the assessors. The round records their hash.")
@scale_option
def _round(log: str, assessors: str | None, order: str | None, assign_topics: bool, **how: Any) -> None:
    """Begin a round of judging.

    A round states who judges which documents, and how many people judge each. cranfield judge change changes it.

    \b
    $ cranfield judge round work.db --pool pool.jsonl --assessors ann,bob,cat --overlap 2
    """
    from cranfield.commands.judging import begin_round
    from cranfield.judging.round_plan import PRIORITY

    if how["strategy"]:
        options.refuse_idle("does not go with --strategy", "double", "order")
    else:
        options.refuse_idle("goes with --strategy", "runs", "depth", "rel")
    drawing = ("strategy", "sample", "sample_topics", "double", "gold", "repeat_share")
    if order == PRIORITY and not any(how[name] for name in drawing):
        options.refuse_idle(
            "goes with --sample, --sample-topics, --double-share, --gold, --repeat-share or --order shuffled", "seed"
        )
    if assign_topics:
        options.refuse_idle("does not go with --assign-topics", "topic_people", "choose_topics")
    how |= ({"order": order} if order else {}) | {"topic_people": how["topic_people"] or {}}
    show(begin_round(log, assessors=_people(assessors or ""), spread_topics=assign_topics, **how), "table")


def _people(names: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


@log_command("change")
@click.argument("round")
@option("--assessors NAME,NAME…", "Assessors of the round from now on.")
@option("--everybody", "Let everybody judge.", is_flag=True)
@option("--overlap", "Number of people who judge each document.", type=click.IntRange(1, 1000), default=None)
@option("--topics", "Judge only the topics in this file from now on.")
@option("--all-topics", "Judge all topics of the round again.", is_flag=True)
@option("--order", "Order of the documents that are left.", type=RegistryName("round_orders"), default=None)
@option("--pool FILE", "Pool of the documents to judge from now on.")
@option("--run RUN runs", "Run whose top documents are judged from now on.", multiple=True, type=INPUT)
@option("--depth", "Number of documents to take from each run.", type=COUNT, default=None)
@option("--assign-topics", "Assign topics to the assessors anew, evenly.", is_flag=True)
@rare("--topic-people TOPIC=NAME,NAME… topic_people", "People for a topic.", multiple=True, callback=_topic_people)
@option("--choose-topics/--any-topic", "Let people choose their topics, or give them any topic.", default=None)
@option("--drop", "Document to leave out from now on.", nargs=2, multiple=True, metavar="TOPIC DOCUMENT")
@option("--offer", "Skipped document to hand out again.", nargs=2, multiple=True, metavar="TOPIC DOCUMENT")
@option("--changed-by NAME by", "Name of the person who changes the round, which the log keeps.", default="")
def _change(log: str, round: str, everybody: bool, all_topics: bool, topics: str | None, **how: Any) -> None:
    """Change a round while it is open.

    Labels stay as they are. Leases of people and topics that leave the round end. Documents that are being judged may be
    finished. The log keeps every change; judge status lists them.

    \b
    $ cranfield judge change work.db 1 --overlap 3 --order priority
    """
    from cranfield.commands.judging import change

    if everybody:
        options.refuse_idle("does not go with --everybody", "assessors")
    if all_topics:
        options.refuse_idle("does not go with --all-topics", "topics")
    if how["pool"]:
        options.refuse_idle("does not go with --pool", "runs")
    names = how.pop("assessors")
    how["assessors"] = () if everybody else None if names is None else _people(names)
    how |= {"topics": ()} if all_topics else {}
    show(change(log, round, topics_file=topics, **how), "table")


@log_command("next")
@option("--assessor NAME", "Name of the assessor.", required=True)
@option("--round NAME", "Name of the round.  [default: the open round]", default="")
@option("--count n", "Number of documents to lease.", type=click.IntRange(1, 1000), default=1)
@option("--topic ID", "Topic that the assessor chooses, if the round lets people choose.", default="")
@option("--collection", "Collection with the texts of documents, for a round whose strategy reads them.")
@options.shape("text", "json")
def _next(log: str, assessor: str, round: str, n: int, topic: str, collection: str | None, shape: str) -> None:
    """Lease the next documents to an assessor.

    \b
    $ cranfield judge next work.db --assessor ann
    """
    import json

    from cranfield.commands.judging import next_item
    from cranfield.judging.round_plan import NoLease

    answer, choices = next_item(log, assessor, round, n, topic, collection)
    leases, reason = ([], answer._asdict()) if isinstance(answer, NoLease) else (answer, {})
    reason |= {"topics": [each._asdict() for each in choices]} if choices else {}
    if isinstance(answer, NoLease):
        when = f"; ask again at {answer.free_at[:19].replace('T', ' ')} UTC" if answer.free_at else ""
        note(f"{answer.why}{when}")
        for choice in choices:
            note(f"  {choice.in_words()}")
    if shape == "json":
        put(json.dumps({"items": [each._asdict() for each in leases], **reason}))
        return
    for each in leases:
        put(f"{each.topic}\t{each.document}")
        note(f"yours until {each.until[:19].replace('T', ' ')} UTC")


@log_command("status")
@option("--round NAME", "Name of the round.  [default: all rounds]", default="")
@options.output("table", "json")
def _status(log: str, round: str, **display: Any) -> None:
    """Show the progress of rounds and assessors.

    \b
    $ cranfield judge status work.db
    """
    from cranfield.commands.judging import rounds_status

    show(rounds_status(log, round), **display)


@log_command("set")
@click.argument("round")
@click.argument("state", type=RegistryName("round_states"))
def _set(log: str, round: str, state: str) -> None:
    """Pause, reopen or close a round.

    Labels of documents that are leased are still accepted.

    \b
    $ cranfield judge set work.db 1 paused
    """
    from cranfield.commands.judging import set_round

    set_round(log, round, state)
    note(f"round {round} is {state}")


def _meaning(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[float, tuple[str, str]]:
    """Read `2=highly relevant: Answers the question.` as a grade, its label and its meaning."""
    grades = {}
    for text in value:
        grade, equals, rest = text.partition("=")
        label, _, meaning = rest.partition(":")
        try:
            grades[real(grade.strip())] = label.strip(), meaning.strip()
        except ValueError:
            equals = ""
        if not equals:
            expected = "expected GRADE=LABEL or GRADE=LABEL: MEANING"
            raise click.BadParameter(f"{expected}, found {shortened(text)!r}", ctx, parameter)
    return grades


@log_command("guidelines")
@option("--hash HASH version", "Version to show, by the beginning of its hash.  [default: the current one]", default="")
@option("--changes-since HASH since", "Version to compare the shown one with.", default="")
@option("--guidelines FILE path", "Replace the text of the guidelines with this file.", type=INPUT)
@option(
    "--grade G=LABEL grades",
    "Name a grade, or change its label: '2=highly relevant'. A meaning follows after a colon: '2=highly relevant: …'.",
    multiple=True,
    callback=_meaning,
)
@option("--remove-grade G removed", "Remove a grade that no label uses.", multiple=True, type=float)
@option("--rel GRADE relevant_from", "Lowest relevant grade of the collection.", type=float)
@option("--changed-by NAME author", "Name of the person who edits, which the history keeps.", default="")
@options.output("table", "json")
def _guidelines(
    log: str,
    version: str,
    since: str,
    path: str | None,
    grades: dict[float, tuple[str, str]],
    removed: tuple[float, ...],
    relevant_from: float | None,
    author: str,
    **display: Any,
) -> None:
    """Show or edit the guidelines and the meanings of grades.

    Instead of LOG, name the folder of a workspace to see the current guidelines, and to edit them. A log shows the versions under
    which its labels were given.

    \b
    $ cranfield judge guidelines work.db
    """
    from cranfield.commands.guidelines import guidelines_report, write_guidelines
    from cranfield.commands.judging import read_guidelines

    if path is None and not grades and not removed and relevant_from is None:
        options.refuse_idle("goes with --guidelines, --grade, --remove-grade or --rel", "author")
        show(guidelines_report(log, version, since), **display)
        return
    options.refuse_idle("does not go with an edit", "version", "since")
    edited = write_guidelines(
        log,
        author=author,
        text=None if path is None else read_guidelines(path),
        grades=grades,
        removed=removed,
        relevant_from=relevant_from,
    )
    show(edited, **display)


@log_command("blame")
@click.argument("topic")
@click.argument("document")
@options.output("table", "json")
def _blame(log: str, topic: str, document: str, **display: Any) -> None:
    """Show every event about a document, and which ones count.

    \b
    $ cranfield judge blame labels.jsonl q1 doc-003
    """
    from cranfield.commands.judging import blame

    show(blame(log, topic, document), **display)


deciding = options.together(
    option(
        "--policy",
        "Policy that aggregates the labels of a document. "
        "It is one of {policies}; parameters follow in brackets: 'bradley-terry(prior=1)'.",
    ),
    option("--aspect"),
    option(
        "--sources LIST",
        "Sources whose labels count. A judgment of the collection counts where no person labelled the document. "
        "Labels of models count only if model is in the list, and judgments from clicks only if clicks is. Clicks grade "
        "only documents that neither people nor the collection judged.",
        default="human,import,collection",
        callback=_sources,
    ),
    option(
        "--grade-ties ties",
        "Grade to use if grades tie.",
        type=RegistryName("grade_ties"),
        default="lower",
        was=["--ties"],
    ),
)


def _refuse_of_methods(policy: str) -> None:
    """Refuse --grade-ties and --gold, unless the policy weighs several labels of a document."""
    from cranfield.judging.policies import weighs_labels

    if not weighs_labels(policy):
        options.refuse_idle(
            f"is for policies that weigh the labels of a document, and {policy} does not", "ties", "gold"
        )


@log_command("aggregate")
@deciding
@option("--gold FILE", "Qrels with known grades, in addition to the gold of rounds.")
@option("--at TIME", "Use the log as it was at this time.  [default: now]")
@option("--to FORMAT qrels_format", "Format of the qrels.  [default: by the ending of -o]")
@option("-o --output", "Write qrels to this file.")
@options.shape("table", "json", "csv", "tsv")
def _aggregate(
    log: str, output: str | None, qrels_format: str | None, shape: str, spreadsheet: bool, **how: Any
) -> None:
    """Aggregate the labels of each document into one grade.

    \b
    $ cranfield judge aggregate labels.jsonl --policy majority -o majority.txt
    """
    from cranfield.commands.judging import aggregate

    if output is None:
        options.refuse_idle("goes with -o FILE", "qrels_format")
    _refuse_of_methods(how["policy"])
    aggregated = aggregate(log, **how)
    if output is not None:
        from cranfield.formats import write_qrels

        write_qrels(aggregated.decided.grades, output, qrels_format)
    show(aggregated, shape, None, spreadsheet=spreadsheet)


@log_command("freeze")
@click.argument("name")
@deciding
@option("--note TEXT", "Reason, which the log keeps.", default="")
def _freeze(log: str, name: str, **how: Any) -> None:
    """Freeze the current qrels as a named version.

    Write LOG@NAME wherever a command takes qrels.

    \b
    $ cranfield judge freeze work.db spring --policy majority
    """
    from cranfield.commands.judging import freeze

    _refuse_of_methods(how["policy"])
    version, sentences = freeze(log, name, **how)
    note(
        f"{version.name}: {version.documents:,} documents by {version.policy}, {version.hash}; use it as {masked(log)}@{name}"
    )
    notes(sentences)


@log_command("versions")
@options.output("table", "json")
def _versions(log: str, **display: Any) -> None:
    """List the frozen versions.

    \b
    $ cranfield judge versions work.db
    """
    from cranfield.commands.judging import versions

    show(versions(log), **display)


@log_command("verify")
@options.output("table", "json")
@click.pass_context
def _verify(ctx: click.Context, /, log: str, **display: Any) -> None:
    """Check a log for damage, and recompute every frozen version.

    The exit code is 3 if anything differs. SQLite checks a SQLite file itself. Rounds and their documents, versions,
    comparisons and questions are compared with the hashes that were written with them.

    \b
    $ cranfield judge verify work.db
    """
    from cranfield.commands.judging import verify

    if show_answer(verify, log, **display).wrong:
        ctx.exit(3)


@log_command("diff")
@click.argument("a")
@click.argument("b", required=False)
@option("--run RUN runs", "Run to score by both versions.", multiple=True, type=INPUT)
@option("-m --measures", "Measures to compute.  [default: nDCG@10 AP RR@10]")
@option("--policy", "Policy for the current labels, if B is left out; judge aggregate lists them.")
@options.output("table", "json", "csv", "tsv")
def _diff(log: str, a: str, b: str | None, **how: Any) -> None:
    """Compare two versions, or a version and the current labels.

    With runs, the answer also says which scores and verdicts change.

    \b
    $ cranfield judge diff work.db spring --run bm25.run --run dense.run
    """
    from cranfield.commands.judging import diff

    if b is not None:
        options.refuse_idle("does not go with B", "policy")
    if not how["runs"]:
        options.refuse_idle("goes with --run", "measures")
    show_answer(diff, log, a, b, **how)


@command.command("agree")
@click.argument("sources", nargs=-1, required=True, metavar="LOG|QRELS QRELS...")
@option(
    "--coefficient NAMES coefficients",
    "Coefficient to compute, such as 'cohen(weights=linear)'; docs/agreement.md lists them.  [default: all]",
    multiple=True,
)
@option(
    "--view",
    "Breakdown to show: by topic, by pair of people, by person, or of people with themselves.",
    type=RegistryName("agreement_views"),
    was=["--by"],
)
@option("--round NAME", "Round whose labels count.  [default: all]", default="")
@option("--run RUN runs", "Run to rank by the labels of each person.", multiple=True, type=INPUT)
@option("-m --measures", "Measures that rank the runs.  [default: nDCG@10]")
@option(
    "--disagreements FILE",
    "Write a pool of the documents that people disagree about, for a third person.",
    type=NEW_FILE,
)
@option("--aspect")
@option("--sources LIST whose", "Sources whose labels count.", default="human,import", callback=_sources)
@option(
    "--resamples",
    "Number of resamples of the documents, for intervals within one topic. With 0 there are no intervals.",
    default=1000,
)
@option("--confidence level")
@option("--seed", "Seed for the random numbers of --resamples.")
@option("--all every", "Show everybody, and how each person changed over time.", is_flag=True)
@options.output("table", "json", "csv", "tsv")
def _agree(sources: tuple[str, ...], disagreements: str | None, view: str | None, **typed: Any) -> None:
    """Measure inter-annotator agreement.

    The labels are those of a log, or of several qrels, one per person. Intervals leave out each topic in turn. Two files with
    equal bytes are refused.

    \b
    $ cranfield judge agree labels.jsonl bob.csv
    """
    from cranfield.commands.judging import agree
    from cranfield.formats.streams import all_or_none

    if not typed["runs"]:
        options.refuse_idle("goes with --run", "measures")
    if len(sources) > 1:
        options.refuse_idle("goes with one log", "round")
    with all_or_none():
        show_answer(agree, sources, disagreements=disagreements, view=view or "", **typed)
    if disagreements is not None:
        note(f"documents that people disagree about are in {disagreements}")


@log_command("estimate")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("-m --measures", "Measures to estimate.  [default: nDCG@10 AP RR@10; P@10 DCG@10 if documents were sampled]")
@option("--round NAME", "Round that drew the sample.  [default: the only one]", default="")
@option("--model NAME", "Model whose labels are used.  [default: the only one]", default="")
@option("--policy", "Policy for the labels of people; judge aggregate lists them.")
@option("--aspect")
@option("--confidence level")
@option("--all every", "Show every difference, not only those from the best run.", is_flag=True)
@options.answer("table", "json", "csv", "tsv")
def _estimate(log: str, runs: tuple[str, ...], measures: tuple[str, ...], **typed: Any) -> None:
    """Estimate scores from few human and many LLM labels.

    The estimates are prediction-powered. People label topics (any measure) or documents (sums over documents: P, CG, DCG,
    RBP) that a round drew at random; a model labels the whole pool.

    \b
    $ cranfield judge estimate drawn.jsonl bm25.run dense.run -m P@10
    """
    from cranfield.commands.llm_judges import estimate

    show_answer(estimate, log, runs, measures, **typed)


@log_command("calibrate")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option("-m --measures", "Measures that rank the runs.  [default: nDCG@10 AP RR@10]")
@option("--model NAME", "Model whose labels are used.  [default: the only one]", default="")
@option("--policy", "Policy for the labels of people; judge aggregate lists them.")
@option("--aspect")
@option("--rel", "Lowest relevant grade.", default=1.0)
@rare(
    "--collection", "Collection with the texts of documents, to measure bias by length.  [default: lengths in the log]"
)
@rare("--own RUN", "Run that uses the judge's own model.", multiple=True)
@rare(
    "--chosen-on FILE",
    "File of examples that served to choose the prompt, which are left out. Each line is a topic, or a topic and a document.",
)
@option("--choose", "Choose the best prompt on half of the topics, and calibrate on the other half.", is_flag=True)
@rare("--public DATE", "Date when the judgments became public. The command warns if the model may have read them.")
@rare("--model-date DATE", "Date when the model was made.  [default: the date in its name]")
@option("--confidence level")
@option("--seed")
@option("--all every", "Show all runs, both rankings, and shares with intervals.", is_flag=True)
@options.answer("table", "json", "csv", "tsv")
@click.pass_context
def _calibrate(ctx: click.Context, /, log: str, runs: tuple[str, ...], measures: tuple[str, ...], **typed: Any) -> None:
    """Compare an LLM judge's labels with people's.

    On documents that both labelled: agreement next to that of two people, the best constant answer, errors by grade, bias by
    length. With runs: bias by rank and run, both rankings of the runs, the judge's own ranking. The exit code is 3 if the
    judge gives every document the same grade.

    \b
    $ cranfield judge calibrate drawn.jsonl bm25.run dense.run
    """
    from cranfield.commands.llm_judges import calibrate

    if not runs:
        options.refuse_idle("goes with runs", "measures")
    if show_answer(calibrate, log, runs, measures, **typed).only_answer is not None:
        note("the judge gives one answer only: ask with another prompt or model, or use the labels of people alone")
        ctx.exit(3)


def _budget(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Read `2.50` (money) or `200000tokens`."""
    from cranfield.judging.llm.question_store import Budget

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


@log_command("ask")
@option("--pool FILE", "Pool of documents to label, in order of priority.", required=True)
@option("--collection", "Collection with the texts of topics and documents.", required=True)
@option("--endpoint URL", "OpenAI-compatible server, such as http://localhost:8080/v1.", required=True)
@option("--model NAME", "Name of the model on the server.", required=True)
@option("--prompt FILE", "Prompt: a file, or one of {prompts}.", required=True, type=InputPath("prompts"))
@option("--key-env NAME", "Environment variable that holds the API key.  [default: no key]")
@option(
    "--max-cost MOST budget",
    "Cost limit for the model in this log. It is money (2.50, which needs prices) or tokens (200000tokens).  [default: no limit]",
    callback=_budget,
    was=["--budget"],
)
@rare("--price-in P", "Price of a million input tokens.", type=float)
@rare("--price-out P", "Price of a million output tokens.", type=float)
@rare(
    "--max-tokens N",
    "Maximum number of tokens in an answer.  [default: the prompt's]",
    type=click.IntRange(1, 1_000_000),
)
@rare(
    "--text-limit",
    "Maximum number of characters of a text; the rest is cut.",
    type=click.IntRange(min=200),
    default=12000,
)
@rare(
    "--neighbours",
    "Number of following documents in the pool to compare each document with, for pairwise prompts.",
    type=click.IntRange(1, 1000),
    default=1,
)
@option("--seed")
@option(
    "--probe N",
    "Number of probes of each kind to ask, instead of labels. Probes test labelled pairs; docs/model-judges.md lists them.",
    type=COUNT,
)
@rare(
    "--drift",
    "Number of earlier questions to repeat first. The command stops if answers changed.",
    type=click.IntRange(0, 1000),
    default=5,
)
@rare("--drift-allowed K", "Number of repeated questions that may be answered differently.", type=WHOLE, default=0)
@rare(
    "--accept-drift", "Continue although answers changed, and compare with the new answers from now on.", is_flag=True
)
@rare("--clients", "Number of questions to send at a time.", type=click.IntRange(1, 256), default=4)
@rare("--retries", "Number of retries after a failure that may be temporary.", type=click.IntRange(0, 100), default=3)
@rare(
    "--timeout S", "Time limit for an answer, in seconds.", type=click.FloatRange(min=0, min_open=True), default=120.0
)
@rare(
    "--max-answer MB",
    "Size limit for an answer over HTTP, in megabytes.",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
)
@rare("--give-up", "Stop when N pairs in a row get no answer.", type=COUNT, default=10)
@rare("--schema/--no-schema", "Ask the server for answers that follow a JSON schema, or do not ask.", default=True)
@option("--dry-run", "Print what would be asked and what it may cost, and ask nothing.", is_flag=True)
@options.output("table", "json", "csv", "tsv")
@click.pass_context
def _ask(ctx: click.Context, /, log: str, **how: Any) -> None:
    """Have an LLM judge label the documents of a pool.

    The same command continues where it stopped; the exit code is 1 if some documents have no label. Qrels contain the labels
    of a model only if --sources names them. --probe asks questions twice, reversed or manipulated, and shows how
    answers change.

    \b
    $ cranfield judge ask my.db --pool two.jsonl --collection allotment --endpoint http://gpu --model m --prompt graded --dry-run
    """
    from cranfield.commands.llm_judges import ask

    answer = show_answer(ask, log, counting="questions", **how)
    if not answer.complete and answer.foreseen is None:
        ctx.exit(1)


@log_command("models")
@option("--model NAME", "Model to show: NAME, or NAME/PROMPT-VERSION.  [default: all]", default="")
@option("--failures", "Show the answers that gave no label.", is_flag=True)
@option("--reason KIND", "Kind of failures to show, such as unparsed.  [default: all]", default="")
@option("--count n", "Number of failures to show.", type=click.IntRange(1, 1_000_000), default=50)
@option("--skip", "Number of failures to skip first.", type=WHOLE, default=0)
@options.output("table", "json", "csv", "tsv")
def _models(log: str, model: str, failures: bool, reason: str, n: int, skip: int, shape: str, **display: Any) -> None:
    """Show the usage, cost and failures of LLM judges.

    \b
    $ cranfield judge models asked.jsonl
    """
    from cranfield.commands.llm_judges import model_failures, model_runs

    if failures or reason:
        show(model_failures(log, model, reason=reason, skip=skip, n=n, whole=shape != "table"), shape, **display)
    else:
        options.refuse_idle("goes with --failures", "n", "skip")
        show(model_runs(log, model), shape, **display)
