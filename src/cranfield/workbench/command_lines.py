"""The command that does what a page does: every page names its own, so that the command line stays an equal alternative.

COMMANDS has templates for each page; the parameters of the page fill the first one whose fields outside brackets have values.
`{name}` stands for a parameter, or for a part of the workspace; a group in brackets is left out if one of its parameters is
empty. Values are quoted for a shell. Commands run in the folder that holds the workspace.

>>> fill("cranfield judge status {log} [--round {round}]", {"log": "w/work.db", "round": ""})
'cranfield judge status w/work.db'
>>> fill("cranfield judge status {log} [--round {round}]", {"log": "w/work.db", "round": "round 1"})
"cranfield judge status w/work.db --round 'round 1'"
"""

from __future__ import annotations

import os
import re
from shlex import quote
from typing import TYPE_CHECKING

from cranfield.inputs.selection import nothing_judged
from cranfield.workbench.questions.labels import RANKABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.inputs.workspace import Bench
    from cranfield.workbench.routes import PageRequest

FIELD = re.compile(r"\{(\w+)\}")
GROUP = re.compile(r"\s*\[([^\]]*)\]")
EXPORTED = "judgments.txt"
PAIRS = ("/compare", "/topic")  # pages of two runs
ELSEWHERE = "LOG"  # stands for a log that is not in the folder: its address is not shown


ASSESS = "--collection {collection} --assessor {me}"
COMMANDS: dict[str, tuple[str, ...]] = {
    "/": ("cranfield judge status {log}",),
    "/adjudicate": (
        "cranfield judge agree {log} --disagreements pool.jsonl && "
        f"cranfield pool judge --pool pool.jsonl --judgments {{log}} --adjudicate {ASSESS}",
    ),
    "/agreement": ("cranfield judge agree {log} [--round {round}] [--view {by}] [{ranked_runs}] [-m {ranked_by}]",),
    "/backup": ("cranfield backup {ws} -o backup.tar.gz",),
    "/card": ("cranfield collection show {collection}",),
    "/clicks": ("cranfield online click-summary {ws}/events [{qrels}] [--model {model}]",),
    "/compare": (
        "cranfield compare {qrels} {one_path} {other_path} [-m {measures}] [--topics {topics_of_category}]",
        "cranfield compare {qrels} {run_paths} [-m {measures}]",
    ),
    "/diff": ("cranfield judge diff {log} {a} [{b}] [{diff_runs}] [--policy {policy_of_a}]",),
    "/document": ("cranfield collection show {collection} --document {id}",),
    "/guidelines": ("cranfield judge guidelines {ws}",),
    "/guidelines/edit": ("cranfield judge guidelines {ws} --guidelines {file}",),
    "/import": ("cranfield import {source} {ws}",),
    "/judge": (f"cranfield pool judge --judgments {{log}} --round {{round}} {ASSESS}",),
    "/judge/topics": ("cranfield judge status {log} [--round {round}]",),
    "/judgments": ("cranfield judge export {log} --to qrels [--policy {policy}]",),
    "/label": ("cranfield judge blame {log} {topic} {document}",),
    "/models": ("cranfield judge models {log}",),
    "/people": ("cranfield serve {ws} --invite assessor",),
    "/prefer": ("cranfield judge add {log} {file}",),
    "/preferences": ("cranfield judge export {log} --to prefs",),
    "/recall": ("cranfield pool stop {log} --round {round}", "cranfield pool stop {log} --round {name}"),
    "/report": (
        "cranfield report {qrels} {run_paths} [-m {measures}] [--title {title}] "
        "[--clicks {ws}/events --click-model {clicks}] -o {report_file}",
    ),
    "/round": ("cranfield judge status {log} --round {name}",),
    "/rounds": ("cranfield judge status {log}",),
    "/rounds/new": (
        "cranfield pool {run_paths} [--depth {depth}] -o pool.jsonl && "
        "cranfield judge round {log} --pool pool.jsonl [--name {name}]",
    ),
    "/runs": ("cranfield leaderboard {qrels} {run_paths} [-m {measures}]",),
    "/search": (f"cranfield pool judge --search {{topic}} [--query {{query}}] --judgments {{log}} {ASSESS}",),
    "/topic": (
        "cranfield explain {qrels} {one_path} {other_path} --topic {topic} [-m {measure}]",
        "cranfield collection show {collection} --topic {topic}",
        "cranfield collection show {collection}",
    ),
    "/version": ("cranfield eval {log}@{name} {run_paths}",),
    "/versions": ("cranfield judge versions {log}",),
}
WITHOUT = (
    "/api",
    "/backup/file",
    "/enter",
    "/image",
    "/jobs",
    "/join",
    "/login",
    "/me",
    "/report/file",
)  # no command is the same


def command_of(request: PageRequest) -> str:
    """The command that does what a page does, with the parameters of the request; empty if there is none."""
    templates = COMMANDS.get(request.path, ())
    values = _values(request)
    fitting = (each for each in templates if all(values.get(name) for name in FIELD.findall(GROUP.sub("", each))))
    template = next(fitting, templates[-1] if templates else "")
    if "{qrels}" in template and _by_policy(request):
        template = f"cranfield judge export {{log}} --to qrels --policy {{policy}} -o {EXPORTED} && {template}"
    return fill(template, values)


def _by_policy(request: PageRequest) -> bool:
    """Whether the page scores by another policy than the one that commands use for a log."""
    return request.text("judgments") in ("", "log") and request.text("policy") not in ("", "latest")


def _values(request: PageRequest) -> dict[str, str | list[str]]:
    """The values for a template: the parts of the workspace, the parameters of the page, and the files of its runs."""
    bench = request.site.bench
    names = {name: request.text(name) for name in request.query}
    places: dict[str, str | list[str]] = {**names, **places_of(bench), "me": request.name}
    paths = {run.name: f"{bench.name}/runs/{os.path.relpath(run.path, bench.runs_folder)}" for run in bench.runs()}
    selected = [paths[each] for each in request.texts("runs") if each in paths]
    places["run_paths"] = selected or list(paths.values())
    # Without names in the address the page shows the first two runs.
    if request.path in PAIRS and not request.blind and not nothing_judged(bench):
        for field, first in zip(("one", "other"), paths, strict=False):
            names[field] = names.get(field) or first
    for field in ("one", "other"):
        name = names.get(field, "")
        places[f"{field}_path"] = paths.get(name) or paths.get(os.path.splitext(name)[0], "")
    places |= _of_results(request, [*paths.values()])
    source = names.get("judgments", "")
    places["qrels"] = bench.name
    if _by_policy(request):
        places["qrels"] = EXPORTED
    elif source.startswith("log"):
        places["qrels"] = f"{places['log']}{source.removeprefix('log')}"
    elif source and bench.qrels is not None:
        places["qrels"] = f"{bench.name}/{os.path.relpath(bench.qrels, bench.folder)}"
    if request.path == "/clicks" and not source and nothing_judged(bench):
        places["qrels"] = ""  # the command takes the log of clicks alone
    return places


def _of_results(request: PageRequest, runs: list[str]) -> dict[str, str | list[str]]:
    """What commands need for the numbers of a page: its measure, the runs that it ranks or scores, its file."""
    measure, options = request.text("measure"), [word for path in runs for word in ("--run", path)]
    ranked = options if len(runs) >= RANKABLE else []
    return {
        "measure": measure or request.text("measures").partition(" ")[0],
        "ranked_runs": ranked,
        "ranked_by": measure if ranked else "",
        "diff_runs": options,
        "report_file": f"report.{request.text('ending') or 'html'}",
        "policy_of_a": _policy_of(request),
        "topics_of_category": "TOPICS" if request.text("category") else "",
    }


def _policy_of(request: PageRequest) -> str:
    """The policy for the current labels where /diff compares a version with them: that of the version."""
    if request.path != "/diff" or request.text("b"):
        return ""
    policies = {each.name: each.policy for each in request.site.bench.versions()}
    return policies.get(request.text("a"), "")


def fill(template: str, values: Mapping[str, str | list[str]]) -> str:
    """A template with its values; a parameter without a value is written in capitals, or leaves out its group."""

    def group(match: re.Match[str]) -> str:
        return f" {match[1]}" if all(values.get(name) for name in FIELD.findall(match[1])) else ""

    def value(match: re.Match[str]) -> str:
        texts = values.get(match[1])
        return " ".join(map(quote, [texts] if isinstance(texts, str) else texts)) if texts else match[1].upper()

    return FIELD.sub(value, GROUP.sub(group, template))


def places_of(bench: Bench) -> dict[str, str]:
    """The parts of a workspace as a command names them: its folder, log, collection and runs."""
    name = bench.name
    inside = os.path.join(bench.folder, "work.db") == bench.location
    home = bench.home
    collection = name if home is None or os.path.samefile(home, bench.folder) else f"{name}/collection"
    log = f"{name}/work.db" if inside else ELSEWHERE
    return {"ws": name, "log": log, "collection": collection, "runs": f"{name}/runs"}
