"""Guidelines and grades: versions in every kind of log, edits that lose nothing, their pages, and what assessors see of them."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import tomllib
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsers import EVIL, Watched
from cranfield.base.collection import Grade
from cranfield.base.errors import DataError
from cranfield.commands import guidelines as commands
from cranfield.commands.guidelines import EditConflictError, edit_guidelines
from cranfield.formats.collection_folder import toml_with_grades
from cranfield.inputs.workspace import open_bench
from cranfield.judging import Event, open_log
from cranfield.judging.guidelines import GradeMeaning, Guidelines, changed_lines
from cranfield.judging.guidelines_history import guidelines_history, keep_guidelines, store_guidelines, versions_by_hash
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round, set_state
from cranfield.workbench.markdown import markdown
from hypotheses import examples
from shell import cranfield
from test_web_judge import GRADES, workspace
from workbench import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging import Log

OLD = Guidelines("Read.", (GradeMeaning(0, "no"), GradeMeaning(1, "yes", "It helps.")))
NEW = Guidelines("Read twice.", (GradeMeaning(0, "no"), GradeMeaning(1, "yes", "It answers.")))
ODD = "line\r\n\ttab \udcff \0 é"


def versions(log: Log) -> list[tuple[str, str]]:
    with log.reading() as transaction:
        return [(each.version.text, each.author) for each in guidelines_history(transaction)]


# versions in a log


def test_a_version_is_stored_once_by_its_hash_and_read_back_from_every_log(log: Log, location: str) -> None:
    assert keep_guidelines(log, OLD) == keep_guidelines(log, OLD) == OLD.hash
    assert keep_guidelines(log, NEW) == NEW.hash != OLD.hash
    assert keep_guidelines(log, Guidelines()) == ""
    again = open_log(location)
    try:
        with again.reading() as transaction:
            assert versions_by_hash(transaction, [OLD.hash, NEW.hash, "none"]) == {OLD.hash: OLD, NEW.hash: NEW}
        assert versions(again) == [("Read twice.", ""), ("Read.", "")]
        again.verify()
    finally:
        again.close()


def test_going_back_to_a_version_is_an_entry_of_the_history_of_its_own(log: Log) -> None:
    for version, author in ((OLD, None), (NEW, "lea"), (NEW, "lea"), (OLD, "kim"), (NEW, None), (NEW, "")):
        log.write(lambda transaction, it=version, who=author: store_guidelines(transaction, it, who))
    assert versions(log) == [("Read twice.", ""), ("Read.", "kim"), ("Read twice.", "lea"), ("Read.", "")]


def test_a_text_alone_has_the_hash_of_its_bytes_as_it_always_had(log: Log) -> None:
    content = ODD.encode("utf-8", "surrogateescape")
    assert Guidelines(ODD).hash == f"sha256:{hashlib.sha256(content).hexdigest()}"
    keep_guidelines(log, Guidelines(ODD))
    assert versions(log) == [(ODD, "")]


@pytest.mark.parametrize(
    "other",
    [
        Guidelines("Read!", OLD.grades),
        Guidelines("Read.", (GradeMeaning(0, "no"), GradeMeaning(1, "yes", "It helps!"))),
        Guidelines("Read.", (GradeMeaning(0, "no"), GradeMeaning(2, "yes", "It helps."))),
        Guidelines("Read.", OLD.grades, 0),
        Guidelines("Read."),
    ],
)
def test_the_hash_covers_text_grades_and_the_lowest_relevant_grade(other: Guidelines) -> None:
    assert other.hash != OLD.hash


def test_a_version_that_was_changed_in_the_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = open_log(str(path))
    keep_guidelines(log, OLD)
    log.close()
    path.write_text(path.read_text().replace("It helps.", "It does not."))
    with pytest.raises(DataError, match="their hash is another"), open_log(str(path)).reading() as transaction:
        guidelines_history(transaction)
    answer = cranfield("judge", "verify", "log.jsonl", folder=tmp_path)
    assert (answer.code, "their hash is another" in answer.err) == (3, True)


def test_blame_says_what_a_grade_meant_when_it_was_given(location: str) -> None:
    log = open_log(location)
    for version, who in ((OLD, "ann"), (NEW, "bob")):
        hash_of_version = keep_guidelines(log, version)
        log.add([Event(topic="q", document="d", grade=1, assessor=who, guideline=hash_of_version)])
    log.add([Event(topic="q", document="d", grade=1, assessor="cy", guideline="sha256:of before")])
    log.close()
    rows = json.loads(cranfield("judge", "blame", location, "q", "d", "--format", "json").out)["events"]
    assert [row.get("meant", {}).get("meaning") for row in rows] == ["It helps.", "It answers.", None]
    assert re.search(r"ann +judgment +1 +yes", cranfield("judge", "blame", location, "q", "d").out)


def test_terminal_and_rounds_store_the_version_that_labels_record(location: str, tmp_path: Path) -> None:
    (tmp_path / "read.md").write_text("Read it all.")
    (tmp_path / "pool.jsonl").write_text('{"topic": "101", "document": "d299", "priority": 1}\n')
    words = ["--pool", str(tmp_path / "pool.jsonl"), "--guidelines", str(tmp_path / "read.md")]
    assert cranfield("judge", "round", location, *words).code == 0
    desk = ["pool", "judge", *words, "--judgments", location, "--collection", "allotment", "--assessor", "ann"]
    assert cranfield(*desk, stdin=b"2\nq\n").code == 0
    log = open_log(location)
    try:
        with log.reading() as transaction:
            stored = {each.hash: each.version for each in guidelines_history(transaction)}
            plan, _ = transaction.find_round()
        [event] = log.events()
        assert stored[plan.guideline] == Guidelines("Read it all.")
        meaning = stored[event.guideline].meaning(2)
        assert meaning is not None
        assert (stored[event.guideline].text, meaning.label) == ("Read it all.", "highly relevant")
    finally:
        log.close()


def test_labels_that_are_added_to_another_log_bring_the_versions_they_refer_to(location: str, tmp_path: Path) -> None:
    first = str(tmp_path / "first.jsonl")
    desk = ["pool", "judge", "--search", "101", "--collection", "allotment", "--judgments", first, "--assessor", "ann"]
    assert cranfield(*desk, stdin=b"2\nq\n").code == 0
    assert cranfield("judge", "add", location, first).code == 0
    assert cranfield("judge", "add", location, first).code == 0
    [row] = json.loads(cranfield("judge", "blame", location, "101", "d299", "--format", "json").out)["events"]
    assert row["meant"]["label"] == "highly relevant"
    log = open_log(location)
    assert len(versions(log)) == 1
    log.close()


# what changed


def test_the_difference_has_the_changed_lines_and_two_around_them() -> None:
    text = [f"line {number}" for number in range(12)]
    old, new = Guidelines("\n".join(text)), Guidelines("\n".join([*text[:5], "new", *text[6:]]))
    lines = changed_lines(old, new)
    assert [f"{each.sign}{each.line}" for each in lines] == [
        " line 3",
        " line 4",
        "-line 5",
        "+new",
        " line 6",
        " line 7",
    ]
    assert changed_lines(new, new) == []
    grades = changed_lines(OLD, NEW)
    assert [each.line for each in grades if each.sign == "+"] == ["grade 1: yes: It answers.", "Read twice."]


# Markdown


class Tags(HTMLParser):
    """The tags, attributes and text of a fragment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


ALLOWED = set("h2 h3 h4 h5 h6 p ul ol li strong em code pre blockquote hr a".split())
PIECES = ["<script>", "</p>", "<img src=x onerror=alert(1)>", "[a](", "javascript:x", "https://x.org/", ")", "]("]
PIECES += [
    "**",
    "*",
    "_",
    "`",
    "```",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "# ",
    "> ",
    "    ",
    '"',
    "'",
    "&amp;",
    "\\",
    "word",
    "é",
]
PIECES += ["\u202e", "<!--", "]]>"]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@examples(200)
def test_markdown_makes_no_tag_and_no_address_but_its_own(source: str) -> None:
    page = Tags(markdown(source, 2))
    assert page.tags <= ALLOWED
    assert {name for name, _ in page.attributes} <= {"href", "rel", "target"}
    assert all(
        value.startswith(("https://", "http://", "mailto:")) for name, value in page.attributes if name == "href"
    )


def test_html_in_guidelines_is_text() -> None:
    assert Tags(markdown(EVIL)).text == EVIL
    assert markdown("<b>bold</b>") == "<p>&lt;b&gt;bold&lt;/b&gt;</p>"


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("# One\n## Two", "<h3>One</h3>\n<h4>Two</h4>"),
        ("a\nb\n\nc", "<p>a\nb</p>\n<p>c</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b\n<ul><li>c</li></ul></li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("> a", "<blockquote><p>a</p></blockquote>"),
        ("```\n<x>\n```", "<pre><code>&lt;x&gt;</code></pre>"),
        ("**a** *b* _c_ `d` a_b_c 2*3*4", "<p><strong>a</strong> <em>b</em> <em>c</em> <code>d</code> a_b_c 2*3*4</p>"),
        ("\\*a\\*", "<p>*a*</p>"),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>"),
        (
            "[a](https://x.org/?a&b)",
            '<p><a href="https://x.org/?a&amp;b" rel="noopener noreferrer" target="_blank">a</a></p>',
        ),
    ],
)
def test_the_common_part_of_markdown(source: str, html: str) -> None:
    assert markdown(source) == html


# collection.toml


TOML = """# kept
name = "toy"
[grades]  # gone
relevant_from = 1
0 = "no"
[grades.1]
label = "yes"

[[aspects]]
name = "trust"  # kept too
question = "?"
grades = {0 = "no", 1 = "yes"}
"""


def test_only_the_grades_of_a_collection_change() -> None:
    text = toml_with_grades(TOML, {0: Grade("bad"), 1: Grade("good", 'so "good"'), 2.5: Grade("best")}, 2.5, "x")
    assert "# kept\n" in text
    assert "# kept too" in text
    assert "# gone" not in text
    before, after = tomllib.loads(TOML), tomllib.loads(text)
    assert {name: value for name, value in after.items() if name != "grades"} == {
        name: value for name, value in before.items() if name != "grades"
    }
    assert after["grades"]["1"] == {"label": "good", "meaning": 'so "good"'}
    assert after["grades"]["relevant_from"] == 2.5


OTHER_WAYS = ['grades.relevant_from = 1\nname = "x"', 'name = "x"\ngrades = {0 = "no"}', "", 'a = """\n[grades]\n"""']


@pytest.mark.parametrize("source", OTHER_WAYS)
def test_grades_that_are_written_in_another_way_are_replaced_too(source: str) -> None:
    after = tomllib.loads(toml_with_grades(source, {0: Grade("no"), 1: Grade("yes")}, 1, "x"))
    grades = {"0": {"label": "no", "meaning": ""}, "1": {"label": "yes", "meaning": ""}}
    assert after == {**tomllib.loads(source), "grades": {"relevant_from": 1, **grades}}


# edits


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Any]:
    opened = open_bench(workspace(tmp_path / "toy", documents=5))
    yield opened
    opened.close()


def changed(version: Guidelines, **more: Any) -> Guidelines:
    return Guidelines(
        **{"text": version.text, "grades": version.grades, "relevant_from": version.relevant_from, **more}
    )


def test_an_edit_changes_the_files_and_the_history(bench: Any) -> None:
    before = bench.guidelines()
    grades = (*before.grades[:2], GradeMeaning(2, "splendid", "All of it."), GradeMeaning(3, "perfect"))
    saved = edit_guidelines(bench, Guidelines("New.\n", grades, 2), before.hash, "lea")
    assert saved == bench.guidelines() == Guidelines("New.\n", grades, 2)
    assert (bench.grades()[2].meaning, bench.relevant_from, bench.guideline()) == ("All of it.", 2, "New.\n")
    assert versions(bench.log) == [("New.\n", "lea"), (before.text, "")]


def test_the_second_of_two_editors_gets_a_conflict_and_nothing_is_lost(bench: Any) -> None:
    before = bench.guidelines()
    edit_guidelines(bench, changed(before, text="First."), before.hash, "lea")
    with pytest.raises(EditConflictError) as error:
        edit_guidelines(bench, changed(before, text="Second."), before.hash, "kim")
    assert error.value.current.text == "First."
    assert bench.guideline() == "First."
    assert [author for _, author in versions(bench.log)] == ["lea", ""]
    edit_guidelines(bench, changed(before, text="Second."), error.value.current.hash, "kim")
    assert bench.guideline() == "Second."


def test_of_many_editors_at_once_one_wins(bench: Any) -> None:
    before, outcomes = bench.guidelines(), []

    def edit(number: int) -> None:
        try:
            edit_guidelines(bench, changed(before, text=f"Text {number}."), before.hash, f"lead {number}")
            outcomes.append(number)
        except EditConflictError:
            outcomes.append(-1)

    threads = [threading.Thread(target=edit, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = [number for number in outcomes if number >= 0]
    assert bench.guideline() == f"Text {winner}."
    assert [author for _, author in versions(bench.log)] == [f"lead {winner}", ""]


def test_a_grade_that_labels_use_stays_and_the_count_is_named(bench: Any) -> None:
    version = bench.guidelines()
    without = changed(version, grades=version.grades[:2])
    bench.log.add([Event(topic="q1", document=f"d0{n}", grade=2, assessor="ann") for n in range(3)])
    with pytest.raises(DataError, match="3 labels have grade 2, so it cannot be removed"):
        edit_guidelines(bench, without, version.hash, "lea")
    assert bench.guidelines() == version
    for event in bench.log.events():
        bench.log.add([Event(kind="withdrawal", refers=event.id, assessor="ann")])
    open_round(bench.log, Round(name="r", scale=(0, 1, 2)), [RoundItem("q1", "d00")])
    with pytest.raises(DataError, match="round 'r' asks for grade 2"):
        edit_guidelines(bench, without, version.hash, "lea")
    set_state(bench.log, "r", "closed")
    assert edit_guidelines(bench, without, version.hash, "lea") == without


def test_judgments_of_the_collection_use_a_grade_too(bench: Any) -> None:
    with open(f"{bench.folder}/qrels.txt", "w", encoding="utf-8") as file:
        file.write("q1 0 d00 2\nq1 0 d01 0\n")
    version = bench.guidelines()
    with pytest.raises(DataError, match="1 judgment of the collection has grade 2"):
        edit_guidelines(bench, changed(version, grades=version.grades[:2]), version.hash, "lea")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (Guidelines("x", (GradeMeaning(1),)), "2 to 20 grades, found 1"),
        (Guidelines("x", tuple(GradeMeaning(n) for n in range(21))), "2 to 20 grades, found 21"),
        (Guidelines("x", (GradeMeaning(1), GradeMeaning(1))), "grade 1 occurs twice"),
        (Guidelines("x", (GradeMeaning(0), GradeMeaning(1)), 2), "one of 0, 1, found 2"),
        (Guidelines("x", (GradeMeaning(0, "l" * 101), GradeMeaning(1))), "label of grade 0"),
        (Guidelines("x", (GradeMeaning(0, "", "m" * 2001), GradeMeaning(1))), "label of grade 0"),
        (Guidelines("x" * (1 << 21)), "at most 1,024 KB"),
        (Guidelines("a\0b"), "without NUL"),
        (Guidelines("x", (GradeMeaning(float("nan")), GradeMeaning(1))), "finite"),
    ],
)
def test_what_no_workspace_can_have_is_refused(bench: Any, version: Guidelines, why: str) -> None:
    before = bench.guidelines()
    with pytest.raises(DataError, match=why):
        edit_guidelines(bench, version, before.hash, "lea")
    assert bench.guidelines() == before


def test_an_edit_that_cannot_be_written_changes_nothing(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.guidelines()

    def full(*_: Any) -> str:
        raise DataError("the disk is full")

    monkeypatch.setattr(commands, "toml_with_grades", full)  # behind the text, which is written first
    with pytest.raises(DataError, match="the disk is full"):
        edit_guidelines(bench, Guidelines("New.", before.grades, 2), before.hash, "lea")
    assert bench.guidelines() == before
    assert versions(bench.log) == []


# the command


def test_the_command_shows_edits_and_compares(tmp_path: Path) -> None:
    open_bench(workspace(tmp_path / "toy", documents=3)).close()
    (tmp_path / "new.md").write_text("Judge **all**.\n")
    words = [
        "--guidelines",
        "new.md",
        "--grade",
        "2=great: All of it.",
        "--grade",
        "3=perfect",
        "--rel",
        "2",
        "--changed-by",
        "lea",
    ]
    answer = cranfield("judge", "guidelines", "toy", *words, folder=tmp_path)
    assert answer.code == 0, answer.err
    assert "Judge **all**." in answer.out
    values = json.loads(cranfield("judge", "guidelines", "toy", "--format", "json", folder=tmp_path).out)
    assert [each["label"] for each in values["grades"]] == ["not relevant", "relevant", "great", "perfect"]
    assert values["relevant_from"] == 2
    assert [each["author"] for each in values["history"]] == ["lea", ""]
    first = values["history"][1]["hash"]
    shown = cranfield("judge", "guidelines", "toy/work.db", "--changes-since", first[7:17], folder=tmp_path)
    assert "+ Judge **all**." in shown.out
    assert "relevant from  1" in cranfield("judge", "guidelines", "toy", "--hash", first, folder=tmp_path).out
    assert cranfield("judge", "guidelines", "toy", "--remove-grade", 3, "--rel", 1, folder=tmp_path).code == 0


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["toy", "--hash", "abc"], 3, "there is no version 'abc'"),
        (["toy", "--remove-grade", "7"], 3, "there is no grade 7"),
        (["toy", "--grade", "x"], 2, "expected GRADE=LABEL"),
        (["toy", "--changed-by", "lea"], 2, "--changed-by goes with"),
        (["toy/work.db", "--rel", "2"], 3, "expected the folder of a workspace"),
        (["toy", "--rel", "9"], 3, "one of 0, 1, 2"),
        ([".", "--rel", "1"], 3, "is not a workspace"),
    ],
)
def test_what_the_command_refuses(tmp_path: Path, words: list[str], code: int, why: str) -> None:
    open_bench(workspace(tmp_path / "toy", documents=3)).close()
    answer = cranfield("judge", "guidelines", *words, folder=tmp_path)
    assert (answer.code, why in answer.err) == (code, True), answer.err


# the pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(workspace(tmp_path_factory.mktemp("guidelines") / "toy", GRADES, documents=12)) as opened:
        yield opened


def form_of(site: Served, **fields: Any) -> dict[str, Any]:
    """What the form of the page sends."""
    version = site.bench.guidelines()
    values: dict[str, Any] = {
        "before": version.hash,
        "text": version.text,
        "relevant_from": f"{version.relevant_from:g}",
    }
    for row, each in enumerate(version.grades):
        values |= {f"grade-{row}": f"{each.grade:g}", f"label-{row}": each.label, f"meaning-{row}": each.meaning}
    return {**values, "do": "save", **fields}


def test_a_preview_shows_card_text_and_changes_and_saves_nothing(site: Served) -> None:
    before = site.bench.guidelines()
    fields = form_of(site, do="preview", text=f"# Anew\r\n{EVIL}", **{"label-2": "splendid"})
    reply = site.client("lea").post("/guidelines/edit", fields)
    assert reply.status == 200
    assert "<h3>Anew</h3>" in reply.text
    assert "<kbd>2</kbd> splendid" in reply.text
    assert "<img" not in reply.text
    assert '<p class="new"><ins># Anew</ins></p>' in reply.text
    assert site.bench.guidelines() == before


def test_a_saved_version_is_in_force_and_in_the_history_and_labels_keep_theirs(site: Served) -> None:
    ann, lea = site.client("ann", "assessor"), site.client("lea")
    open_round(site.bench.log, Round(name="keeps", scale=(0, 1, 2)), [RoundItem("q1", f"d0{n}") for n in range(4)])
    before = site.bench.guidelines()

    def label(document: str, **more: Any) -> dict[str, Any]:
        return {"id": f"keeps-{document}", "topic": "q1", "document": document, "grade": 2, **more}

    ann.get("/judge?round=keeps")
    ann.send("/judge.json", {"round": "keeps", "events": [label("d00")], "n": 3})
    reply = lea.post("/guidelines/edit", form_of(site, **{"meaning-2": "It answers all.", "text": "Judge anew."}))
    assert (reply.status, reply.headers["location"]) == (303, "/guidelines")
    after = site.bench.guidelines()
    late = label("d01", guideline=before.hash)  # of a page that still showed the version before
    odd = [label("d02", guideline="sha256:none"), label("d03", guideline=["x"])]
    ann.send("/judge.json", {"round": "keeps", "events": [late, *odd], "n": 0})
    found = {event.document: event.guideline for event in site.bench.log.events() if event.round == "keeps"}
    assert found == {"d00": before.hash, "d01": before.hash, "d02": after.hash, "d03": after.hash}
    page = lea.get("/label?topic=q1&document=d02").text
    assert "It answers all." in page
    assert "It answers all." not in lea.get("/label?topic=q1&document=d00").text
    history = lea.get("/guidelines.json").json()["history"]
    assert (history[0]["hash"], history[0]["author"], history[1]["hash"]) == (after.hash, "lea", before.hash)
    assert "Judge anew." in site.client("vic", "viewer").get("/guidelines").text
    assert "Judge by the narrative." in lea.get(f"/guidelines?version={before.hash}").text
    assert lea.get("/guidelines?version=none").status == 404
    set_state(site.bench.log, "keeps", "closed")


def test_an_assessor_is_told_what_changed_until_they_have_read_it(site: Served) -> None:
    bob, lea = site.client("bob", "assessor"), site.client("lea")
    open_round(site.bench.log, Round(name="told", scale=(0, 1, 2)), [RoundItem("q1", f"d0{n}") for n in range(4)])
    row = {"id": "told-1", "topic": "q1", "document": "d00", "grade": 1}
    assert "The guidelines changed" not in bob.get("/judge?round=told").text
    bob.send("/judge.json", {"round": "told", "events": [row], "n": 3})
    lea.post("/guidelines/edit", form_of(site, text="Something new."))
    for path in ("/judge?round=told", "/search?topic=q1"):
        text = bob.get(path).text
        assert "The guidelines changed: read what is new" in text
        assert "<ins>Something new.</ins>" in text
    assert bob.post("/guidelines/read").status == 303
    assert bob.post("/me", {"theme": "dark"}).status == 303  # other settings do not bring it back
    assert "The guidelines changed: read" not in bob.get("/judge?round=told").text
    set_state(site.bench.log, "told", "closed")


def test_the_second_editor_on_the_page_keeps_what_they_typed(site: Served) -> None:
    first, second = form_of(site, text="Of the first."), form_of(site, text="Of the second.")
    assert site.client("lea").post("/guidelines/edit", first).status == 303
    reply = site.client("kim").post("/guidelines/edit", second)
    assert reply.status == 409
    assert "Of the second.</textarea>" in reply.text
    assert "<ins>Of the first.</ins>" in reply.text
    assert site.client("kim").send("/guidelines/edit.json", second).status == 409
    assert site.bench.guideline() == "Of the first."
    again = re.search(r'name="before" value="([^"]+)"', reply.text)
    assert again is not None
    assert site.client("kim").post("/guidelines/edit", {**second, "before": again[1]}).status == 303
    assert site.bench.guideline() == "Of the second."


def test_only_leads_edit_and_a_wrong_form_says_why(site: Served) -> None:
    for role in ("assessor", "viewer"):
        client = site.client(f"no-{role}", role)
        assert client.get("/guidelines/edit").status == 403
        assert client.post("/guidelines/edit", form_of(site)).status == 403
    reply = site.client("lea").post("/guidelines/edit", form_of(site, **{"grade-1": "0"}))
    assert (reply.status, "Grade 0 occurs twice. Nothing was changed." in reply.text) == (400, True)
    assert site.client("lea").send("/guidelines/edit.json", form_of(site, relevant_from="7")).status == 400


def test_html_in_guidelines_is_shown_as_text_on_every_page(site: Served, browser: Any) -> None:
    site.client("lea").post("/guidelines/edit", form_of(site, text=f"# {EVIL}\n\n- {EVIL}\n\n[{EVIL}](https://x.org)"))
    open_round(site.bench.log, Round(name="evil", scale=(0, 1, 2)), [RoundItem("q1", "d05")])
    context = site.context(browser, "lea", "lead")
    seen = Watched(context)
    for path in ("/guidelines", "/guidelines/edit", "/judge?round=evil"):
        seen.page.goto(path)
        assert EVIL in (seen.page.locator("main").text_content() or ""), path
    assert seen.said == []
    assert all(request.startswith(site.url) for request in seen.requests)
    context.close()
    set_state(site.bench.log, "evil", "closed")


def test_an_open_page_notices_an_edit_and_its_labels_keep_the_version_it_shows(site: Served, browser: Any) -> None:
    open_round(site.bench.log, Round(name="open", scale=(0, 1, 2)), [RoundItem("q1", f"d0{n}") for n in range(6)])
    before = site.bench.guidelines()
    context = site.context(browser, "eva", "assessor")
    page = context.new_page()
    page.goto("/judge?round=open")
    page.wait_for_selector("form[data-ready]")
    site.client("lea").post("/guidelines/edit", form_of(site, text="Edited while somebody judges."))
    page.wait_for_timeout(1500)
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.locator("#guidelines-changed").get_by_text("read what is new").wait_for()
    page.keyboard.press("1")
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('cranfield/'))")
    [event] = [each for each in site.bench.log.events() if each.round == "open"]
    assert event.guideline == before.hash
    page.reload()
    page.get_by_role("button", name="I have read it").click()
    page.wait_for_url("**/judge")
    assert page.locator(".news").count() == 0
    context.close()
    set_state(site.bench.log, "open", "closed")


def test_guidelines_are_edited_with_preview_in_a_browser_without_scripts(site: Served, browser: Any) -> None:
    context = site.context(browser, "lea", "lead", java_script_enabled=False)
    page = context.new_page()
    page.goto("/guidelines")
    page.get_by_role("link", name="Edit guidelines and grades").click()
    page.get_by_label("Guidelines, in Markdown").fill("# Short\n\n- one\n- two")
    page.get_by_role("button", name="Preview").click()
    assert page.locator(".preview li").all_inner_texts() == ["one", "two"]
    page.get_by_role("button", name="Save").click()
    assert page.locator(".markdown li").all_inner_texts() == ["one", "two"]
    context.close()
