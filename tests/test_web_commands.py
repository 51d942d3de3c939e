"""Every page names its command, and the command runs in the folder that holds the workspace."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from clicked import clicked
from cranfield.judging import Event
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import freeze
from cranfield.workbench.command_lines import COMMANDS, WITHOUT, fill
from cranfield.workbench.routes import entries
from shell import cranfield
from workbench import Served, example, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = {
    "/clicks": ["", "model=UBM&judgments=log%40v+one", "judgments=log&policy=majority"],
    "/compare": [
        "one=bm25&other=fusion&measures=AP+RR%4010",
        "one=bm25&other=fusion&judgments=log&policy=majority",
        "",
    ],
    "/diff": ["a=v%20one"],
    "/document": ["id=d001"],
    "/judge": ["round=r+1"],
    "/judge/topics": ["round=r+1"],
    "/label": ["topic=101&document=d001"],
    "/recall": ["round=r+1"],
    "/round": ["name=r+1"],
    "/rounds/new": ["name=second&depth=5"],
    "/runs": ["", "measures=AP&judgments=log%40v+one", "judgments=collection", "judgments=log&policy=majority"],
    "/search": ["topic=101"],
    "/topic": ["", "topic=101", "topic=101&one=bm25&other=phrase"],
    "/version": ["name=v+one"],
}
ELSEWHERE = {
    "/adjudicate": "asks at the terminal",
    "/guidelines/edit": "needs a file",
    "/import": "needs a source",
    "/judge": "asks at the terminal",
    "/people": "needs a running server",
    "/prefer": "needs a file",
    "/search": "asks at the terminal",
}
"""Pages whose command cannot run without somebody: the first word after `cranfield` and its options are checked."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = clicked(example(tmp_path_factory.mktemp("commands") / "my garden"), searches=100)
    with served(folder) as opened:
        for name in ("ann", "bob"):
            opened.account(name, "assessor")
            labels = [Event(topic="101", document=f"d{n:03}", grade=n % 2, assessor=name) for n in range(1, 9)]
            opened.bench.log.add(labels)
        open_round(opened.bench.log, Round(name="r 1"), [RoundItem("101", "d001"), RoundItem("101", "d299")])
        asked = {"topic": "101", "document": "d299", "round": "r 1"}
        opened.bench.log.add([Event(**asked, grade=grade, assessor=name) for grade, name in ((1, "ann"), (0, "bob"))])
        freeze(opened.bench.log, "v one", "latest")
        yield opened


def command_on(site: Served, path: str) -> str:
    page = site.client("zoe", "lead").get(path)
    assert page.status in (200, 404), (path, page.text)
    found = re.search(r'<details class="command">.*?<code>(.*?)</code>', page.text, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def test_every_page_declares_its_command_or_that_there_is_none() -> None:
    pages = {
        entry.path for entry in entries() if entry.method == "GET" and not entry.work.__module__.startswith("greeting")
    }
    assert pages - COMMANDS.keys() - set(WITHOUT) == set()
    assert not COMMANDS.keys() & set(WITHOUT)


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_the_command_of_a_page_runs_where_the_page_says(site: Served, path: str) -> None:
    if path not in {entry.path for entry in entries()}:
        pytest.skip("no such page yet")
    for query in QUERIES.get(path, [""]):
        command = command_on(site, f"{path}?{query}" if query else path)
        assert command.startswith("cranfield "), (path, query)
        lines = [shlex.split(part) for part in command.split(" && ")]
        for words in lines if path not in ELSEWHERE else []:
            answer = cranfield(*words[1:], folder=site.bench.folder + "/..")
            assert answer.code == 0, (command, answer.both)
        for words in lines if path in ELSEWHERE else []:
            name = 3 if words[1] in ("judge", "pool") else 2
            text = cranfield(*words[1:name], "--help-all").out
            assert all(word in text for word in words if word.startswith("--")), (command, text)


def test_a_command_is_quoted_so_that_a_shell_takes_it_as_shown(site: Served) -> None:
    command = command_on(site, "/round?name=r+1")
    assert command == "cranfield judge status 'my garden/work.db' --round 'r 1'"
    shown = command_on(site, "/topic?topic=%24%28touch+evil%29")
    runs = "'my garden/runs/bm25.run' 'my garden/runs/fusion.run'"
    assert shown == f"cranfield explain 'my garden' {runs} --topic '$(touch evil)'"
    folder = os.path.dirname(site.bench.folder)
    program = shown.replace("cranfield", f"{sys.executable} -m cranfield", 1)
    subprocess.run(program, shell=True, cwd=folder, capture_output=True, check=False)
    assert not os.path.exists(os.path.join(folder, "evil"))


SAME: dict[str, str] = {
    "/clicks": "pages ranks grades judged_pairs",
    "/clicks?model=UBM&judgments=log%40v+one": "ranks grades",
    "/compare": "pairs",
    "/compare?one=bm25&other=phrase&measures=AP+RR%4010&judgments=collection": "pairs",
    "/compare?one=bm25&other=fusion&judgments=log&policy=majority&measures=AP": "pairs",
    "/runs": "rows",
    "/runs?measures=AP&judgments=log%40v+one": "rows",
    "/topic?topic=102": "lists",
    "/topic?topic=101&one=bm25&other=phrase&measure=AP": "lists",
    "/agreement?by=pair&measure=AP": "coefficients rankings",
    "/agreement?round=r+1": "documents labels",
    "/diff?a=v+one": "added changed verdicts",
}
"""Pages with the parts of their JSON that the command has, too."""


@pytest.mark.parametrize("path", SAME)
def test_the_command_of_a_page_gives_the_same_numbers(site: Served, path: str) -> None:
    twin = path.replace("?", ".json?") if "?" in path else f"{path}.json"
    values = waited(site, twin, who=("zoe", "lead"))
    page = values.get("answer", values)
    *before, last = command_on(site, path).split(" && ")
    folder = site.bench.folder + "/.."
    for command in before:
        assert cranfield(*shlex.split(command)[1:], folder=folder).code == 0
    answer = cranfield(*shlex.split(last)[1:], "--format", "json", folder=folder)
    assert answer.code == 0, answer.both
    theirs = json.loads(answer.out)
    compared = [part for part in SAME[path].split() if part in page or part in theirs]
    assert compared
    for part in compared:
        assert without_texts(page[part]) == without_texts(theirs[part]), (path, last, part)


def without_texts(value: Any) -> Any:
    """Plain values without titles of documents, which pages look up elsewhere."""
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    return (
        {name: without_texts(each) for name, each in value.items() if name != "text"}
        if isinstance(value, dict)
        else value
    )


def test_assessors_who_judge_blind_see_no_name_of_a_run(site: Served) -> None:
    page = site.client("ann", "assessor").get("/").text
    assert "On the command line" in page
    assert "bm25" not in page


def test_a_field_without_a_value_stands_in_capitals_and_a_group_is_left_out() -> None:
    assert fill("cranfield x {a} [-b {b}] {c}", {"a": ["1 2", "3"], "b": "", "c": ""}) == "cranfield x '1 2' 3 C"
