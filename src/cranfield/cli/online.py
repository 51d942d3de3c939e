"""Let real users decide: mix the lists of systems, assign users to variants, keep what they do in a log.

The library is what a search service calls (cranfield.online); these commands show what it does. PLANS are TOML files or
folders of them, LOG is a folder.

\b
$ cranfield online interleave bm25.run dense.run --topic q1 -k 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import INPUT, OUTPUT, OneOf, option
from cranfield.cli.output import note, show
from cranfield.errors import DataError

if TYPE_CHECKING:
    from cranfield.answer import Answer

PLACE = 195


@click.group(help=__doc__)
def command() -> None:
    pass


command.command_class = options.Worded

key_option = option(
    "--key", "Units under pseudonyms: a keyed hash by the key in this file.", type=INPUT, metavar="FILE"
)


def _show_after(log: str, answer: Answer, **shown: Any) -> None:
    """Show what was done to a log; if that cannot be written, say that it is done."""
    try:
        show(answer, **shown)
    except DataError as error:
        raise DataError(f"{error}; only this answer is missing: the work in {log} is done") from error


@command.command("interleave")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("--topic", "Whose lists.", required=True, metavar="TOPIC")
@option("-k --depth", "How many documents.", type=click.IntRange(min=1), default=10, metavar="K")
@option(
    "--method",
    lambda: f"How: {names.interleavings()}; parameters in brackets, as in 'probabilistic(tau=1)'.",
    default="team-draft",
    metavar="METHOD",
)
@option("--seed", "Where the coin starts.")
@option("--run-format", "The runs' format, if it is not to be detected.")
@option("--field fields")
@options.answer("table", "json", "csv", "tsv")
def _interleave(depth: int, **typed: Any) -> None:
    """Mix the lists of two runs or more for one topic, and show what a click on each document would earn.

    \b
    $ cranfield online interleave bm25.run dense.run --topic q1 -k 5 --seed 7
    """
    from cranfield.workspace.online import interleave

    inputs, shown, how = options.split(typed)
    show(interleave(inputs, k=depth, **how), **shown)


@command.command("methods")
@click.argument("name", required=False)
@options.output("table", "json")
def _methods(name: str | None, **shown: Any) -> None:
    """List the methods of interleaving, or explain one.

    \b
    $ cranfield online methods team-draft
    """
    from cranfield.workspace.listing import interleaving, interleavings

    show(interleavings() if name is None else interleaving(name), **shown)


@command.command("assign")
@click.argument("plans", metavar="PLANS")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@options.output("table", "json", "csv", "tsv")
def _assign(plans: str, units: tuple[str, ...], **shown: Any) -> None:
    """Say which experiments units are in, and which variants they get.

    \b
    $ cranfield online assign online/plans alice bob
    """
    from cranfield.workspace.traffic import assign

    show(assign([plans], units), **shown)


@command.command("ingest")
@click.argument("log", callback=options.writable_folder)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--from", "The files' format, if it is not to be detected.", name="format", type=OneOf(names.event_formats))
@option("--time", "When it was, for files that do not say.", metavar="TIME")
@option("--lenient")
@key_option
@options.answer("table", "json", "csv", "tsv")
def _ingest(log: str, files: tuple[str, ...], lenient: bool, **typed: Any) -> None:
    """Add the events of files to a log: every row of them, or nothing. The same file again adds nothing.

    \b
    $ cranfield online ingest log online/events.jsonl
    """
    from cranfield.workspace.traffic import ingest

    _, shown, how = options.split(typed)
    _show_after(log, ingest(log, files, lenient=lenient, **how), **shown)


@command.command("export")
@click.argument("log")
@option(
    "--to",
    "The format to write.  [default: by the ending, else jsonl]",
    name="format",
    type=OneOf(names.written_event_formats),
)
@option("-o --output")
def _export(log: str, output: str | None, format: str | None) -> None:
    """Write all events of a log by time: JSON lines, Parquet, or bulk lines of OpenSearch's UBI.

    \b
    $ cranfield online export online/log --to ubi
    """
    from cranfield.formats.streams import write_bytes
    from cranfield.workspace.traffic import export

    write_bytes(output or "-", export(log, format=format, output=output or "-"))


@command.command("erase")
@click.argument("log")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@key_option
@options.answer("table", "json")
def _erase(log: str, units: tuple[str, ...], **typed: Any) -> None:
    """Take all events of units out of a log, packed or not, and say what was done.

    \b
    $ cranfield online erase online/log u2
    """
    from cranfield.workspace.traffic import erase

    _, shown, how = options.split(typed)
    _show_after(log, erase(log, units, **how), **shown)


@command.command("retain")
@click.argument("log")
@option("--days", "How many days are kept.", type=click.IntRange(min=1), required=True, metavar="N")
@options.answer("table", "json")
def _retain(log: str, days: int, **typed: Any) -> None:
    """Take all events out of a log that are older than so many days.

    \b
    $ cranfield online retain online/log --days 365
    """
    from cranfield.workspace.traffic import retain

    _, shown, _ = options.split(typed)
    _show_after(log, retain(log, days), **shown)


@command.command("design")
@option("--proportion", "The proportion of units, as it is now.", type=float, metavar="P")
@option("--mean", "The mean over units, as it is now; needs --sd.", type=float, metavar="M")
@option("--ratio", "The ratio of two sums over units, as it is now; needs --sd.", type=float, metavar="R")
@option("--sd", "The standard deviation between units; of a ratio, of its linearised values.", type=float, metavar="X")
@option("--sd-after", "The same in the second arm, if the effect changes it.", type=float, metavar="X")
@option("--wins", "Interleaving: the share of units that the one side wins.", type=float, metavar="P")
@option("--losses", "Interleaving: the share that the other wins.", type=float, metavar="P")
@option(
    "--effect",
    "The difference to find; below 0 for a decrease.  [default: of wins and losses, theirs]",
    type=float,
    metavar="D",
)
@option(
    "--relative", "The difference to find, as a share of the level; below 0 for a decrease.", type=float, metavar="R"
)
@option("--power", "How surely to find it.", default=0.8, metavar="P")
@option("--alpha", "The level, two-sided.")
@option(
    "--method",
    lambda: f"{names.schedules()}; parameters in brackets, as in 'looks(looks=3)'. May be repeated.",
    name="methods",
    multiple=True,
    default=["fixed", "looks", "sequence"],
    metavar="METHOD",
)
@option("--primaries", "How many primary metrics share the level.", type=int, default=1, metavar="N")
@option(
    "--guardrail",
    "NAME=MARGIN/SD, or NAME=MARGIN/P% for a proportion of units. May be repeated.",
    name="guardrails",
    multiple=True,
    metavar="NAME=MARGIN/SD",
)
@option("--correlation", "That of the estimates of any two metrics.", type=float, default=0.0, metavar="R")
@option(
    "--shares",
    "Of all units, in the first arm and in the second.",
    type=float,
    nargs=2,
    default=(0.5, 0.5),
    metavar="A B",
)
@option("--per-day", "New units a day.", type=float, metavar="N")
@option("--units", "How many units are at hand.", name="n", type=int, metavar="N")
@option("--sizes", "Numbers of units for the power curve.  [default: round ones]", metavar="N,N,...")
@options.answer("text", "json", "csv", "tsv")
def _design(methods: tuple[str, ...], **typed: Any) -> None:
    """Say how many units an experiment takes, how long, and what the units at hand can find.

    \b
    $ cranfield online design --proportion 0.3 --relative 0.05 --per-day 4000
    """
    from cranfield.workspace.experiments import design

    _, shown, how = options.split(typed)
    if not how["guardrails"]:
        options.refuse_idle("goes with --guardrail", "correlation")
    show(design(methods=" ".join(methods), **how), **shown)


@command.command("serve")
@click.argument("plans", metavar="PLANS")
@click.argument("log")
@option("--host", "The address to listen at.", default="127.0.0.1", show_default=True, metavar="ADDRESS")
@option("--port", "The port; 0 takes a free one.", type=click.IntRange(0, 65535), default=8766, show_default=True)
@option("--tls-cert", "The certificate for https, with --tls-key.", name="certificate", type=INPUT, metavar="FILE")
@option("--tls-key", "The certificate's key.", name="tls_key", type=INPUT, metavar="FILE")
@option("--behind-proxy", "The address of the proxy that speaks TLS.", name="proxy", metavar="ADDRESS")
@option("--insecure", "Serve other machines without TLS: tokens and events can be read on the way.", is_flag=True)
@option(
    "--allow-host",
    "A name by which programs and pages call it; may be repeated.",
    name="hosts",
    multiple=True,
    metavar="NAME",
)
@option(
    "--allow-origin",
    "The origin of pages that may call it from a browser, as https://shop.example; may be repeated.",
    name="origins",
    multiple=True,
    metavar="ORIGIN",
)
@option(
    "--run",
    "A run whose lists /interleave mixes by name; may be repeated.",
    name="runs",
    multiple=True,
    type=INPUT,
    metavar="FILE",
)
@option(
    "--pseudonymise", "Keep units under pseudonyms: a keyed hash by the key in this file.", type=INPUT, metavar="FILE"
)
@option(
    "--pack",
    "Seconds from one packing of segments to the next.  [default: 300]",
    type=click.FloatRange(min=0.1),
    metavar="S",
)
@options.server_limits
@option("--new-token", "Print a new token for an application, and end; the one that it had is void.", metavar="NAME")
@option("--drop-token", "Make the token of an application void, and end.", metavar="NAME")
def _serve(plans: str, log: str, new_token: str | None, drop_token: str | None, **how: Any) -> None:
    """Serve HTTP: assign units, interleave lists, take events into a log, health.

    Only this machine can reach it unless --host says otherwise; any other address demands TLS, and a token for each
    application. Events are confirmed when they are on disk. Stop it with Ctrl-C.

    \b
    $ cranfield online serve online/plans log --new-token shop
    """
    from cranfield.http.serving import Manner
    from cranfield.web.applications import Applications
    from cranfield.web.service_serving import PACK, Setting, serve

    if new_token is not None:
        click.echo(Applications(log).new(new_token))
        return
    if drop_token is not None:
        Applications(log).drop(drop_token)
        note(f"the token of {drop_token} is void")
        return
    setting = Setting([plans], log, how["runs"], how["origins"], how["pseudonymise"], how["pack"] or PACK)
    manner = Manner(host=how["host"], port=how["port"], proxy=how["proxy"] or "", names=how["hosts"])
    serve(
        setting,
        manner,
        note,
        certificate=how["certificate"],
        key=how["tls_key"],
        insecure=how["insecure"],
        limits=options.limits_of(how),
    )


@command.command("analyze")
@click.argument("log")
@click.argument("plan")
@option("--gate", "Exit code 0: ship; 1: stop, same, not shown; 3: broken or still running.", is_flag=True)
@option("--at", "What it was at an earlier time.  [default: now]", metavar="TIME")
@option("--hash", "What the plan's hash was when it began; another one is broken.", name="expected", metavar="HASH")
@option("--history", "Also the interval over time, and by day since exposure; html has it anyway.", is_flag=True)
@option("--memory", "The most that DuckDB takes, as in 3GB.", metavar="SIZE")
@option("--seed", "Where the bootstrap starts.")
@options.answer("text", "json", "csv", "tsv", "markdown", "html")
@click.pass_context
def _analyze(ctx: click.Context, /, log: str, plan: str, gate: bool, history: bool, **typed: Any) -> None:
    """Say what an experiment shows, by its plan: ship, stop, same, continue, not shown or broken, and why.

    Health comes first: a sample ratio that is wrong, units in two variants, repeats, clocks. Then every metric by
    randomised unit, under the one method that the plan names.

    \b
    $ cranfield online analyze online/shop-log online/shop.toml
    """
    from cranfield.cli.output import FOR_PEOPLE, limits, notes, put, written
    from cranfield.workspace.experiments import analyze

    _, shown, how = options.split(typed)
    shape, output = shown.pop("shape"), shown.pop("output")
    verdict = analyze(log, plan, history=history or shape == "html", **how)
    put(written(verdict, shape, output, **shown), output)
    if shape in FOR_PEOPLE:
        limits(verdict, shown["verbose"], output)
    elif shape not in ("markdown", "html"):
        notes(verdict.notes(shell=True))
    if verdict.verdict == "broken" or gate:
        ctx.exit(verdict.exit_code)


@command.command("metrics")
@click.argument("name", required=False)
@options.output("table", "json")
def _metrics(name: str | None, **shown: Any) -> None:
    """List the metrics of experiments, or explain one.

    \b
    $ cranfield online metrics success
    """
    from cranfield.workspace.listing import online_metric, online_metrics

    show(online_metrics() if name is None else online_metric(name), **shown)


users_option = option(
    "--users",
    lambda: f"Who they are: {names.users()}; parameters in brackets, as in 'perfect(click_relevant=0.8)'.",
    default="navigational",
    metavar="USERS",
)


def _planned(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A plan is read if there is one, else written."""
    from os.path import exists

    return value if value is None or exists(value) else options.writable(ctx, parameter, value)


@command.command("simulate")
@options.qrels_and_runs
@option(
    "-o --log",
    "The log's folder; what is in it stays.",
    required=True,
    type=OUTPUT,
    metavar="LOG",
    callback=options.writable_folder,
)
@option(
    "--plan",
    "The experiment; where there is no such file, one is written there.",
    type=OUTPUT,
    metavar="FILE",
    callback=_planned,
)
@users_option
@option(
    "--method",
    lambda: f"Interleave the runs instead of splitting traffic: {names.interleavings()}.",
    metavar="METHOD",
)
@option("-k --depth", "How many documents a page shows.", type=click.IntRange(min=1), default=10, metavar="K")
@option("--units", "How many units there are.", type=int, default=1_000, metavar="N")
@option("--days", "Over how many days.", type=int, default=14, metavar="N")
@option("--before", "Days before the experiment, on the control.", type=int, default=0, metavar="N")
@option("--sessions", "A unit's sessions, on average.", type=float, default=3.0, metavar="N")
@option("--searches", "A session's searches, on average.", type=float, default=2.0, metavar="N")
@option("--interests", "Topics that a unit asks about.", type=int, default=3, metavar="N")
@option("--seed")
@options.shape("table", "json", "csv", "tsv")
@option("--run-format")
@option("--qrels-format")
@option("--field fields")
def _simulate(log: str, depth: int, **typed: Any) -> None:
    """Let simulated users search runs, and add what they do to a log: A/B of runs, A/A of one, or interleaved.

    Units return over days and ask about a few topics each. What they click on they read, and now and then they buy.

    \b
    $ cranfield online simulate qrels.txt bm25.run dense.run -o simulated --plan plan.toml --units 200
    """
    from cranfield.workspace.online import simulate

    inputs, shown, how = options.split(typed)
    show(simulate(inputs, log, k=depth, **how), **shown)


@command.command("users")
@click.argument("name", required=False)
@options.output("table", "json")
def _users(name: str | None, **shown: Any) -> None:
    """List the models of simulated users, or explain one.

    Chances are those of a click if irrelevant and if relevant, and of stopping after such a click.

    \b
    $ cranfield online users navigational
    """
    from cranfield.workspace.listing import user, users

    show(users() if name is None else user(name), **shown)


@command.command("bridge")
@options.qrels_and_runs
@option("-m --measures", "What to compare with users. May be repeated.  [default: nDCG@10 AP RR@10]")
@option(
    "--preferred",
    "What real users prefer, in place of simulated ones: CSV of system, against, preference, and topic and signal.",
    name="preferences_file",
    type=INPUT,
    metavar="FILE",
)
@users_option
@option(
    "--method",
    lambda: (
        f"How simulated users' lists are interleaved: {names.interleavings()}. May be repeated.  [default: team-draft]"
    ),
    name="methods",
    multiple=True,
    metavar="METHOD",
)
@option("-k --depth", "How many documents a page shows.", type=click.IntRange(min=1), default=10, metavar="K")
@option("--searches", "Simulated searches of each topic, by each design.", type=int, default=100, metavar="N")
@option("--by", "Also by the classes of topics in a column of theirs.", metavar="COLUMN")
@option("--topics-file")
@option("--least", "Leave out pairs whose means differ by less.", type=float, default=0.0, metavar="D")
@option("--seed")
@options.answer("table", "json", "csv", "tsv")
@option("--digits")
@option("--run-format")
@option("--qrels-format")
@option("--field fields")
def _bridge(depth: int, preferences_file: str | None, methods: tuple[str, ...], **typed: Any) -> None:
    """Say which offline measure agrees with what users prefer, by interleaving and by A/B, over pairs of runs.

    \b
    $ cranfield online bridge qrels.txt bm25.run dense.run tied.run --users perfect -m "nDCG@10 RR@10"
    """
    from cranfield.workspace.online import bridge

    inputs, shown, how = options.split(typed)
    show(bridge(inputs, preferences=preferences_file, methods=methods, k=depth, **how), **shown)


@command.group("study")
def study() -> None:
    """Ask people in a study: who does what in which order, forms to fill in, and what the answers say.

    STUDY is a TOML file with systems, tasks and questionnaires.

    \b
    $ cranfield online study plan online/study.toml
    """


study.command_class = options.Worded
participants_option = option("--participants", "How many.  [default: as STUDY says]", type=int, metavar="N")


@study.command("plan")
@click.argument("file", metavar="STUDY")
@participants_option
@options.answer("table", "json", "csv", "tsv")
def _study_plan(file: str, **typed: Any) -> None:
    """Say who does which task with which system, in an order by Latin squares.

    \b
    $ cranfield online study plan online/study.toml
    """
    from cranfield.workspace.studies import plan

    _, shown, how = options.split(typed)
    show(plan(file, **how), **shown)


@study.command("forms")
@click.argument("file", metavar="STUDY")
@option(
    "-o --folder",
    "Where to write them: a folder that is empty or not there.",
    required=True,
    type=OUTPUT,
    metavar="FOLDER",
    callback=options.writable_folder,
)
@participants_option
def _study_forms(file: str, folder: str, participants: int | None) -> None:
    """Write a page for each participant, which opens offline, and a CSV template for answers by hand.

    \b
    $ cranfield online study forms online/study.toml -o forms
    """
    from cranfield.workspace.studies import forms

    forms(file, folder, participants)


@study.command("analyze")
@click.argument("file", metavar="STUDY")
@click.argument("answers", nargs=-1, required=True, metavar="ANSWERS...")
@participants_option
@option("--test", "Of systems within participants: t, wilcoxon, randomisation …", default="t", metavar="TEST")
@option("--level", "The level of intervals.")
@option("--every-time", "Times of all tasks, not only of those that succeeded.", is_flag=True)
@options.answer("table", "json", "csv", "tsv", "html")
@option("--digits")
def _study_analyze(file: str, answers: tuple[str, ...], **typed: Any) -> None:
    """Say what answers say: success, time and questionnaires by system, systems compared, and what order did.

    \b
    $ cranfield online study analyze online/study.toml online/answers.csv
    """
    from cranfield.workspace.studies import analyze

    _, shown, how = options.split(typed)
    show(analyze(file, answers, **how), **shown)
