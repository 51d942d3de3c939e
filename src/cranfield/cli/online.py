"""Run online experiments: interleaving, A/B tests, user studies.

A search service calls the library (cranfield.experiments); these commands show what it does. PLANS are TOML files or
folders of them, LOG is a folder.

\b
$ cranfield online interleave bm25.run dense.run --topic q1 -k 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.base.errors import DataError
from cranfield.cli import options
from cranfield.cli.options import COUNT, NEW_FILE, NEW_FOLDER, OUTPUT, RegistryName, option, rare
from cranfield.cli.output import (
    FOR_PEOPLE,
    add_listing,
    is_chart,
    limits,
    note,
    notes,
    put,
    rendered,
    show,
    show_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.base.results import Answer

PLACE = 195


command = options.group(__doc__)

KEY = "File with the key that turns ids of units into pseudonyms (a keyed hash)."
key_option = option("--pseudonym-key FILE key", KEY, was=["--key"])


def _change(log: str, function: Callable[..., Answer], *arguments: Any, **typed: Any) -> None:
    """Change a log and show the answer; if the answer cannot be written, say that the log is changed all the same."""
    display = {name: typed.pop(name) for name in options.DISPLAY if name in typed}
    answer = function(log, *arguments, **typed)
    try:
        show(answer, **display)
    except DataError as error:
        raise DataError(f"{error}; only this answer is missing: the work in {log} is done") from error


@command.command("interleave")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("--topic TOPIC", "Topic whose lists to interleave.", required=True)
@option("-k --depth K k", "Number of documents in the list.", type=COUNT, default=10)
@option(
    "--interleaving METHOD method",
    "Method of interleaving. It is one of {interleavings}; "
    "parameters follow in brackets, as in 'probabilistic(tau=1)'.",
    default="team-draft",
    was=["--method"],
)
@option("--seed")
@options.run_format
@options.answer("table", "json", "csv", "tsv")
def _interleave(**typed: Any) -> None:
    """Interleave the lists of runs for one topic.

    The table shows the credit for a click on each document.

    \b
    $ cranfield online interleave bm25.run dense.run --topic q1 -k 5 --seed 7
    """
    from cranfield.commands.experiments import interleave

    show_answer(interleave, **options.with_inputs(typed))


@add_listing(command, "methods", "interleavings", "interleaving")
def _methods() -> None:
    """List the methods of interleaving, or explain one.

    \b
    $ cranfield online methods team-draft
    """


@command.command("assign")
@click.argument("plans", metavar="PLANS")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@options.output("table", "json", "csv", "tsv")
def _assign(plans: str, units: tuple[str, ...], **display: Any) -> None:
    """Show the experiments and variants of units.

    \b
    $ cranfield online assign online/plans alice bob
    """
    from cranfield.commands.experiments import assign

    show(assign([plans], units), **display)


@command.command("ingest")
@click.argument("log", type=NEW_FOLDER)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--from format", "Format of the files.  [default: detected]", type=RegistryName("event_formats"))
@option("--time TIME", "Time of the events, for files that do not state it.")
@option("--lenient")
@key_option
@options.answer("table", "json", "csv", "tsv")
def _ingest(log: str, files: tuple[str, ...], **typed: Any) -> None:
    """Add the events of files to a log.

    Either every row is added or none. Adding the same file again changes nothing.

    \b
    $ cranfield online ingest log online/events.jsonl
    """
    from cranfield.commands.experiments import ingest

    _change(log, ingest, files, **typed)


@command.command("export")
@click.argument("log")
@option(
    "--to format",
    "Format to write.  [default: by the ending of -o, else jsonl]",
    type=RegistryName("written_event_formats"),
)
@option("-o --output")
def _export(log: str, output: str | None, format: str | None) -> None:
    """Write all events of a log, ordered by time.

    The formats are JSON lines, Parquet, and bulk lines of OpenSearch's UBI.

    \b
    $ cranfield online export online/log --to ubi
    """
    from cranfield.commands.experiments import export
    from cranfield.formats.streams import write_bytes

    write_bytes(output or "-", export(log, format=format, output=output or "-"))


@command.command("erase")
@click.argument("log")
@click.argument("units", nargs=-1, required=True, metavar="UNIT...")
@key_option
@options.answer("table", "json")
def _erase(log: str, units: tuple[str, ...], **typed: Any) -> None:
    """Delete all events of units from a log.

    \b
    $ cranfield online erase online/log u2
    """
    from cranfield.commands.experiments import erase

    _change(log, erase, units, **typed)


@command.command("retain")
@click.argument("log")
@option("--days N", "Age up to which events are kept, in days.", type=COUNT, required=True)
@options.answer("table", "json")
def _retain(log: str, days: int, **typed: Any) -> None:
    """Delete events that are older than a number of days.

    \b
    $ cranfield online retain online/log --days 365
    """
    from cranfield.commands.experiments import retain

    _change(log, retain, days, **typed)


@command.command("design")
@option("--proportion P", "Current proportion of units, for a proportion metric.", type=float)
@option("--mean M", "Current mean over units, for a mean metric; needs --sd.", type=float)
@option("--ratio R", "Current ratio of two sums over units; needs --sd.", type=float)
@option("--sd X", "Standard deviation between units; for a ratio, of its linearised values.", type=float)
@rare("--sd-after X", "Standard deviation in the second arm, if the effect changes it.", type=float)
@option("--wins P", "Share of units that the first system wins, for interleaving.", type=float)
@option("--losses P", "Share of units that the second system wins, for interleaving.", type=float)
@option(
    "--difference D effect",
    "Difference to find; below 0 for a decrease.  [default: --wins minus --losses, if given]",
    type=float,
    was=["--effect"],
)
@option("--relative R", "Difference to find, as a share of the current value; below 0 for a decrease.", type=float)
@option("--power P", "Probability of finding the difference.", default=0.8)
@option("--alpha", "Significance level of two-sided tests.")
@option(
    "--schedule NAME methods",
    "Schedule of interim looks at the data. "
    "It is one of {schedules}; parameters follow in brackets, as in 'looks(looks=3)'.",
    multiple=True,
    default=["fixed", "looks", "sequence"],
    was=["--method"],
)
@rare("--primaries N", "Number of primary metrics that share the significance level.", default=1)
@rare(
    "--guardrail guardrails",
    "Guardrail metric: NAME=MARGIN/SD, or NAME=MARGIN/P% for a proportion of units.",
    multiple=True,
    metavar="NAME=MARGIN/SD",
)
@rare("--correlation R", "Correlation between the estimates of any two metrics.", default=0.0)
@rare(
    "--shares",
    "Shares of all units in the first and in the second arm.",
    type=float,
    nargs=2,
    default=(0.5, 0.5),
    metavar="A B",
)
@option("--per-day N", "Number of new units per day.", type=float)
@option("--units N n", "Number of units that are available.", type=int)
@rare("--sizes N,N,...", "Numbers of units for the power curve.  [default: round numbers]")
@options.answer("text", "json", "csv", "tsv")
def _design(methods: tuple[str, ...], **typed: Any) -> None:
    """Plan how many units and days an experiment takes.

    The answer also says which difference the available units can find.

    \b
    $ cranfield online design --proportion 0.3 --relative 0.05 --per-day 4000
    """
    from cranfield.commands.experiments import design

    if not typed["guardrails"]:
        options.refuse_idle("goes with --guardrail", "correlation")
    show_answer(design, methods=" ".join(methods), **typed)


@command.command("serve")
@click.argument("plans", metavar="PLANS")
@click.argument("log")
@options.serving(8766, "Tokens and events")
@rare("--allow-host NAME hosts", "Host name that programs and pages may use.", multiple=True)
@option(
    "--allow-origin ORIGIN origins",
    "Origin of pages that may call the service, such as https://shop.example.",
    multiple=True,
)
@option("--run FILE runs", "Run whose lists /interleave can use by name.", multiple=True)
@option("--pseudonym-key FILE pseudonymise", KEY, was=["--pseudonymise"])
@rare(
    "--compact-every S pack",
    "Time between compactions of the log, in seconds.  [default: 300]",
    type=click.FloatRange(min=0.1),
    was=["--pack"],
)
@option("--new-token NAME", "Print a new token for an application, and exit. An earlier token becomes void.")
@option("--drop-token NAME", "Make the token of an application void, and exit.")
def _serve(plans: str, log: str, new_token: str | None, drop_token: str | None, **how: Any) -> None:
    """Serve HTTP: assign units, interleave lists, log events.

    Only this machine can connect unless --host says otherwise; other addresses require TLS, and a token for each
    application. The service confirms events when they are on disk. Stop it with Ctrl-C.

    \b
    $ cranfield online serve online/plans log --new-token shop
    """
    from cranfield.experiments.serve import PACK, ServiceSettings, serve
    from cranfield.experiments.service_tokens import ApplicationTokens
    from cranfield.http.serving import ServerSettings

    if new_token is not None:
        click.echo(ApplicationTokens(log).new(new_token))
        return
    if drop_token is not None:
        ApplicationTokens(log).drop(drop_token)
        note(f"the token of {drop_token} is void")
        return
    setting = ServiceSettings([plans], log, how["runs"], how["origins"], how["pseudonymise"], how["pack"] or PACK)
    manner = ServerSettings(host=how["host"], port=how["port"], proxy=how["proxy"] or "", names=how["hosts"])
    protection = {"certificate": how["certificate"], "key": how["tls_key"], "insecure": how["insecure"]}
    serve(setting, manner, note, limits=options.limits_of(how), **protection)


@command.command("analyze")
@click.argument("log")
@click.argument("plan")
@option(
    "--gate", "Exit with 0 for ship, 1 for stop, same or not shown, and 3 for broken or still running.", is_flag=True
)
@option("--at TIME", "Use the log as it was at this time.  [default: now]")
@option(
    "--hash HASH expected",
    "Hash of the plan when the experiment began. If the plan has changed, the verdict is broken.",
)
@option(
    "--history", "Show intervals over time, and by day since exposure. An html answer always has them.", is_flag=True
)
@option("--memory SIZE", "Memory limit of DuckDB, such as 3GB.  [default: DuckDB's own]")
@option("--seed", "Seed for the random numbers of the bootstrap.")
@options.answer("text", "json", "csv", "tsv", "markdown", "html")
@click.pass_context
def _analyze(ctx: click.Context, /, log: str, plan: str, gate: bool, history: bool, **typed: Any) -> None:
    """Analyze an experiment by its plan, and give a verdict.

    The verdict is ship, stop, same, continue, not shown or broken. Health checks come first: sample ratio mismatch (SRM), units
    in two variants, repeated events, clocks. Then follows each metric per randomisation unit, by the plan's method.

    \b
    $ cranfield online analyze online/shop-log online/shop.toml
    """
    from cranfield.commands.experiments import analyze

    _, display, how = options.split(typed)
    shape, output = display.pop("shape"), display.pop("output")
    verdict = analyze(log, plan, history=history or shape == "html", **how)
    put(rendered(verdict, shape, output, **display), output)
    if shape in FOR_PEOPLE:
        limits(verdict, display["verbose"], output)
    elif shape not in ("markdown", "html"):
        notes(verdict.notes(shell=True))
    if verdict.verdict == "broken" or gate:
        ctx.exit(verdict.exit_code)


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, ...]:
    """The numbers in a list with commas."""
    flag = max(parameter.opts, key=len)
    return () if value is None else tuple(options.numbers(value, f"{flag}: expected numbers such as 0.1,0.3, found"))


@command.command("clicks")
@click.argument("log", type=options.INPUT)
@option(
    "--model MODEL",
    "Click model to fit, or all to compare all of them. It is one of {click_models}; parameters follow in brackets, as in "
    "'SDBN(no_click=unexamined)'.",
    default="PBM",
)
@option("--exact", "Fit DCM and SDBN by EM. Their published counts give values that are too high.", is_flag=True)
@option(
    "--holdout P",
    "Share of units whose searches are held out to test the model; 0 skips the test.  [default: 0.25]",
    type=click.FloatRange(0, 1, max_open=True),
)
@option(
    "--min-sessions N",
    "Minimum number of sessions per query. Queries with fewer are left out.  [default: a query with one session is an error]",
    type=COUNT,
)
@option("--lenient", "Leave out clicks and pages that contradict each other, and report their number.")
@option("--seed", "Seed for the choice of the units that are held out.")
@option("--memory")
@options.answer("text", "json", "csv", "tsv", "markdown", "html")
def _clicks(log: str, **typed: Any) -> None:
    """Fit click models to a log.

    A click model separates the attractiveness of a document from the effect of its rank. LOG may also be a table of counts with
    the columns query, document, rank, views and clicks (- reads standard input); CTR models and PBM can be fitted to it. -o
    FILE.svg (png, pdf, html, vl.json) draws clicks and examination by rank; click-summary adds judgments.

    \b
    $ cranfield online clicks online/clicks-log --model all
    """
    from cranfield.commands.clicks import ALL, click_models, click_summary, is_table_of_counts
    from cranfield.inputs.inputs import Inputs

    if not is_chart(typed["output"]):
        show_answer(click_models, log, **typed)
        return
    if typed["model"].casefold() == ALL:
        raise click.UsageError("a chart shows one click model; name it with --model")
    if is_table_of_counts(log):
        raise click.UsageError(f"{log}: a chart needs a log; this is a table of counts")
    options.refuse_idle("does not change a chart", "exact", "holdout", "seed")
    how = {name: typed[name] for name in ("shape", "output", "verbose", "model", "memory")}
    how |= {} if typed["min_sessions"] is None else {"min_sessions": typed["min_sessions"]}
    show_answer(click_summary, log, Inputs(lenient=typed["lenient"]), **how)


@add_listing(command, "click-models", "click_models", "click_model")
def _click_models() -> None:
    """List the click models, or explain one.

    \b
    $ cranfield online click-models DBN
    """


@command.command("qrels")
@click.argument("log", type=options.INPUT)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option(
    "--model MODEL",
    "Click model that the values come from; parameters follow in brackets.  [default: 'SDBN(exact=yes)']",
)
@option(
    "--of VALUE value",
    "Value of a document. It is one of {click_values}. They are the probability of a click on an examined document, that of "
    "satisfaction after a click, their product, and clicks over expected clicks.",
    default="attractiveness",
)
@option(
    "-o --output FILE",
    "File of qrels to write. The ending decides: csv, tsv and jsonl contain intervals, other formats only grades.",
    name="path",
    type=NEW_FILE,
)
@option(
    "--min-views N",
    "Minimum number of views of a document for a query. Documents with fewer are left out.",
    type=COUNT,
    default=10,
)
@option("--thresholds X,X,...", "Values at which the grades 1, 2, … begin, such as 0.05,0.15,0.3.", callback=_numbers)
@option(
    "--quantiles X,X,...",
    "Shares of all judgments below which the grades 0, 1, … end, such as 0.5,0.8,0.95.",
    callback=_numbers,
)
@option(
    "--topics-file", "File with the queries of topics. Judgments are then named by topic; other queries are left out."
)
@option(
    "--against QRELS",
    "Judgments by people. The answer compares the order of the runs (tau), the order of documents (AUC), and grades (kappa).",
)
@option("-m --measures", "Measures that rank the runs, with --against.  [default: nDCG@10]")
@rare("--rel", "Lowest relevant grade of people, with --against.  [default: 1, or the collection's]")
@rare("--seed", "Seed for the random numbers of the bootstrap, with --against.")
@option("--lenient")
@option("--memory")
@options.shape("text", "json", "csv", "tsv")
@option("--verbose")
def _qrels(log: str, against: str | None, **typed: Any) -> None:
    """Turn clicks into judgments with intervals.

    Each query and document gets a value and its 95% interval. eval, compare and report take the file as qrels; judge add adds
    its judgments to a log under the source clicks.

    \b
    $ cranfield online qrels online/clicks-log -o clicks.csv
    """
    from cranfield.commands.clicks import click_qrels

    if typed["thresholds"]:
        options.refuse_idle("does not go with --thresholds", "quantiles")
    reading = {name: typed.pop(name) for name in ("runs", "measures", "rel")}
    if against is None:
        if reading["runs"]:
            raise click.UsageError("runs are ranked by clicks and by people: --against QRELS names people's judgments")
        options.refuse_idle("goes with --against", "measures", "rel", "seed")
    else:
        reading = options.with_inputs({**reading, "qrels": against, "topics_file": typed["topics_file"]})
    show_answer(click_qrels, log, against=reading.get("inputs"), **typed)


@command.command("preferences")
@click.argument("log", type=options.INPUT)
@option(
    "--rule RULE",
    "Rule that makes a click a preference. It is one of {preference_rules}.",
    default="skip-above",
)
@option(
    "-o --output FILE",
    "File of preferences to write, which --preferences of eval reads.",
    name="path",
    type=NEW_FILE,
)
@option("--min-votes N", "Minimum number of votes per pair of documents.", type=COUNT, default=3)
@option(
    "--topics-file", "File with the queries of topics. Preferences are then named by topic; other queries are left out."
)
@option("--lenient")
@option("--memory")
@options.shape("text", "json", "csv", "tsv")
@option("--verbose")
def _preferences(log: str, **typed: Any) -> None:
    """Turn clicks into preferences between documents.

    If users click a document and skip one above it, that is a vote for the clicked document. The majority of votes decides.

    \b
    $ cranfield online preferences online/clicks-log
    """
    from cranfield.commands.clicks import click_preferences

    show_answer(click_preferences, log, **typed)


@command.command("position-bias")
@click.argument("log", type=options.INPUT)
@option(
    "--method METHOD methods",
    "Method of estimation. It is one of {position_bias_methods}; parameters follow in brackets, as in "
    "'em(iterations=10000)'.  [default: those of swaps, harvested and em that the log allows]",
    multiple=True,
)
@option("--experiment NAME", "Experiment whose variants are the rankers.  [default: the only one of the log]")
@option("-k --depth K depth", "Number of ranks to compare.  [default: all]", type=COUNT)
@option("--alpha", "Significance level of the tests for disagreement and for trust bias.")
@option(
    "-o --output FILE",
    "File for the curve (csv, tsv or jsonl). counterfactual --position-bias reads it.",
    name="path",
    type=NEW_FILE,
)
@option("--lenient")
@option("--memory")
@options.shape("text", "json", "csv", "tsv")
@option("--verbose")
def _position_bias(log: str, **typed: Any) -> None:
    """Estimate how often users examine each rank.

    The estimate compares clicks on the same document at several ranks. Swaps and rankers assigned at random (A/B tests,
    interleaving) need no model; em fits one. Each curve is relative to its first rank, which is rank 1 if documents connect it.

    \b
    $ cranfield online position-bias online/clicks-log
    """
    from cranfield.commands.clicks import estimate_position_bias

    show_answer(estimate_position_bias, log, **typed)


@add_listing(command, "bias-methods", "position_bias_methods", "position_bias_method")
def _bias_methods() -> None:
    """List the methods of position bias, or explain one.

    \b
    $ cranfield online bias-methods harvested
    """


@command.command("click-summary")
@click.argument("log", type=options.INPUT)
@click.argument("qrels", required=False, type=options.COLLECTION)
@option(
    "--model MODEL",
    "Click model for examination; parameters follow in brackets.  [default: PBM, if it can be fitted to the log]",
)
@option("--topics-file")
@option("-k --depth K ranks", "Number of ranks to show.", type=COUNT, default=10)
@option(
    "--min-views N",
    "Minimum number of views of a document for a query. Documents with fewer are left out of the table of grades.",
    type=COUNT,
    default=10,
)
@option(
    "--min-sessions N",
    "Minimum number of sessions per query. The click model is not fitted to queries with fewer.",
    type=COUNT,
    default=2,
)
@option("--lenient", "Leave out clicks and pages that contradict each other, and report their number.")
@option("--memory")
@options.answer("table", "json", "csv", "tsv", "markdown", "html")
@option("--digits")
def _click_summary(**typed: Any) -> None:
    """Summarise clicks by rank and by judged grade.

    The table of ranks shows the share of pages with a click, and how often users examine the rank. With QRELS, a second
    table shows the click-through rate per grade, observed and corrected for position. -o FILE.svg draws both as charts.

    \b
    $ cranfield online click-summary online/clicks-log qrels.txt --topics-file topics.tsv
    """
    from cranfield.commands.clicks import click_summary

    show_answer(click_summary, **options.with_inputs(typed))


@add_listing(command, "metrics", "online_metrics", "online_metric")
def _metrics() -> None:
    """List the metrics of experiments, or explain one.

    \b
    $ cranfield online metrics success
    """


users_option = option(
    "--users USERS",
    "Model of the simulated users. It is one of {users}; "
    "parameters follow in brackets, as in 'perfect(click_relevant=0.8)'.",
    default="navigational",
)


def _plan_path(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The path of a plan, which is read if the file exists and written if not."""
    from os.path import exists

    return value if value is None or exists(value) else NEW_FILE.convert(value, parameter, ctx)


@command.command("simulate")
@options.qrels_and_runs
@option("-o --output LOG", "Folder of the log to add to.", name="log", required=True, type=NEW_FOLDER, was=["--log"])
@option(
    "--plan FILE",
    "Plan of the experiment. If the file is missing, a plan is written to it.",
    type=OUTPUT,
    callback=_plan_path,
)
@users_option
@option(
    "--interleaving METHOD method",
    "Method of interleaving, instead of an A/B test. It is one of {interleavings}.",
    was=["--method"],
)
@option("-k --depth K k", "Number of documents on a page.", type=COUNT, default=10)
@option("--units N", "Number of simulated units (users).", default=1_000)
@option("--days N", "Length of the experiment, in days.", default=14)
@option("--before N", "Number of days before the experiment, in which every unit gets the control.", default=0)
@option("--sessions N", "Mean number of sessions per unit.", default=3.0)
@option("--searches N", "Mean number of searches per session.", default=2.0)
@option("--interests N", "Number of topics that a unit searches for.", default=3)
@option("--seed")
@options.shape("table", "json", "csv", "tsv")
@options.formats
def _simulate(**typed: Any) -> None:
    """Simulate users who search runs, and log what they do.

    Two or more runs make an A/B test, one run an A/A test; --interleaving interleaves the runs. Units return over days and search
    for a few topics each. They read what they click on, and sometimes buy.

    \b
    $ cranfield online simulate qrels.txt bm25.run dense.run -o simulated --plan plan.toml --units 200
    """
    from cranfield.commands.experiments import simulate

    show_answer(simulate, **options.with_inputs(typed))


@add_listing(command, "users", "users", "user")
def _users() -> None:
    """List the models of simulated users, or explain one.

    The probabilities are those of a click on an irrelevant and on a relevant document, and of stopping after such a click.

    \b
    $ cranfield online users navigational
    """


@command.command("bridge")
@options.qrels_and_runs
@option("-m --measures", "Measures to compare with users.  [default: nDCG@10 AP RR@10]")
@option(
    "--user-preferences FILE preferences_file",
    "CSV of the preferences of real users, instead of simulated users. Its columns are system, against, preference, and "
    "optionally topic and signal.",
    was=["--preferred"],
)
@users_option
@option(
    "--interleaving METHOD methods",
    "Method of interleaving for simulated users. It is one of {interleavings}.  [default: team-draft]",
    multiple=True,
    was=["--method"],
)
@option("-k --depth K k", "Number of documents on a page.", type=COUNT, default=10)
@option(
    "--searches-per-topic N searches",
    "Number of simulated searches per topic and design.",
    default=100,
    was=["--searches"],
)
@option("--by")
@option("--topics-file")
@option("--least D", "Smallest difference of means between two runs; closer pairs are left out.", default=0.0)
@option("--seed")
@options.answer("table", "json", "csv", "tsv")
@option("--digits")
@options.formats
def _bridge(preferences_file: str | None, **typed: Any) -> None:
    """Find the offline measure that agrees best with users.

    Measures and users are compared over pairs of runs, by interleaving and by A/B tests.

    \b
    $ cranfield online bridge qrels.txt bm25.run dense.run tied.run --users perfect -m "nDCG@10 RR@10"
    """
    from cranfield.commands.experiments import bridge

    show_answer(bridge, preferences=preferences_file, **options.with_inputs(typed))


@command.command("counterfactual")
@click.argument("log")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option(
    "--estimator NAME estimators",
    "Estimator. It is one of {counterfactual_estimators}; parameters follow in brackets, as in 'clipped-ips(maximum=5)'.  "
    "[default: every unbiased one that the log allows]",
    multiple=True,
)
@option("--from format", "Format of the log, if it is a file.  [default: detected]", type=RegistryName("event_formats"))
@option(
    "--propensity ATTRIBUTE",
    "Attribute of the impressions with the probability of the page: one number, or a JSON list with the probability of each "
    "document given those above.  [default: propensity, if the log has it]",
)
@option(
    "--randomised HOW",
    "Randomisation of the log, if its events have no propensities. With shuffled, the documents of each page are in random "
    "order. With lists, each search or unit drew one of several lists at random, as in an A/B test.",
    type=click.Choice(["shuffled", "lists"]),
)
@option(
    "--position-bias FILE",
    "File with the examination of each rank, written by cranfield online position-bias -o. Only the position-based estimator "
    "reads it.",
)
@option("-k --depth K depth", "Number of ranks whose clicks count.  [default: all]", type=COUNT)
@option("--confidence level", was=[])
@option("--lenient")
@option("--topics-file")
@options.run_format
@options.answer("text", "json", "csv", "tsv", "markdown", "html")
@option("--digits")
def _counterfactual(log: str, **typed: Any) -> None:
    """Estimate the clicks of a ranker that was never shown.

    LOG is the folder of a log or a file of events, such as logged bandit data. RUN is a run, a table of probabilities (query,
    document, rank, probability), or the word uniform. The answer warns if the log gives the estimate little support.

    \b
    $ cranfield online counterfactual online/bandit.csv uniform
    """
    from cranfield.commands.experiments import counterfactual

    show_answer(counterfactual, log=log, **options.with_inputs(typed))


@add_listing(command, "estimators", "estimators", "estimator")
def _estimators() -> None:
    """List the counterfactual estimators, or explain one.

    \b
    $ cranfield online estimators snips
    """


@command.group("study")
def study() -> None:
    """Plan, run and analyze a user study.

    STUDY is a TOML file with systems, tasks and questionnaires.

    \b
    $ cranfield online study plan online/study.toml
    """


participants_option = option("--participants N", "Number of participants.  [default: the number in STUDY]", type=int)


@study.command("plan")
@click.argument("file", metavar="STUDY")
@participants_option
@options.answer("table", "json", "csv", "tsv")
def _study_plan(file: str, **typed: Any) -> None:
    """Assign tasks and systems to participants by Latin squares.

    \b
    $ cranfield online study plan online/study.toml
    """
    from cranfield.commands.experiments import plan_study

    show_answer(plan_study, file, **typed)


@study.command("forms")
@click.argument("file", metavar="STUDY")
@option(
    "-o --output FOLDER",
    "Folder to write to, which must be empty or missing.",
    name="folder",
    required=True,
    type=NEW_FOLDER,
    was=["--folder"],
)
@participants_option
def _study_forms(file: str, folder: str, participants: int | None) -> None:
    """Write a form for each participant, which works offline.

    A CSV template for answers on paper is written as well.

    \b
    $ cranfield online study forms online/study.toml -o forms
    """
    from cranfield.commands.experiments import write_study_forms

    write_study_forms(file, folder, participants)


@study.command("analyze")
@click.argument("file", metavar="STUDY")
@click.argument("answers", nargs=-1, required=True, metavar="ANSWERS...")
@participants_option
@option("--test TEST", "Test of systems within participants, such as t, wilcoxon or randomisation.", default="t")
@option("--confidence level")
@option("--every-time", "Use the times of all tasks, not only of successful ones.", is_flag=True)
@options.answer("table", "json", "csv", "tsv", "html")
@option("--digits")
def _study_analyze(file: str, answers: tuple[str, ...], **typed: Any) -> None:
    """Compare systems by success, time and questionnaires.

    Effects of the order of tasks are reported as well.

    \b
    $ cranfield online study analyze online/study.toml online/answers.csv
    """
    from cranfield.commands.experiments import analyze_study

    show_answer(analyze_study, file, answers, **typed)
