"""One set of judgments: a collection's own judgments are events of the log, and count where no person has judged."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import cranfield as cf
from cranfield.base.errors import DataError
from cranfield.commands.judging import agree
from cranfield.formats.importers.collection_import import import_collection
from cranfield.inputs.workspace import Bench, make_example, open_bench
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.collection_judgments import ImportedJudgments, JudgmentFile, import_judgments
from cranfield.judging.log_queries import decide_log, has_labels_of_people, qrels
from cranfield.judging.policies import PEOPLE, PolicySettings, policies
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import freeze, hash_of, thaw
from cranfield.workbench.question import QUESTIONS
from shell import cranfield
from workbench import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.judging import Log

pytestmark = pytest.mark.every_database
TOPIC, DOCUMENT = "101", "d002"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    make_example(tmp_path / "w")
    opened = open_bench(tmp_path / "w")
    yield opened
    opened.close()


def file_of(text: str) -> JudgmentFile:
    content = text.encode("utf-8", "surrogateescape")
    return JudgmentFile("qrels.txt", sha256(content).hexdigest(), lambda: cf.read_qrels(content) if text else None)


def judged(log: Log) -> dict[str, dict[str, float]]:
    return decide_log(log).grades


def label(grade: float, document: str = DOCUMENT, **more: Any) -> Event:
    return Event(topic=TOPIC, document=document, grade=grade, **{"assessor": "ann", **more})


def test_a_file_is_imported_once_and_only_its_changes_after_that(log: Log) -> None:
    first = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 3\n"
    assert import_judgments(log, file_of(first)) == (3, 0)
    assert import_judgments(log, file_of(first)) == (0, 0)
    assert judged(log) == {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d1": 3.0}}
    assert import_judgments(log, file_of("q1 0 d1 1\nq1 0 d2 2\nq3 0 d1 1\n")) == (2, 2)
    assert judged(log) == {"q1": {"d1": 1.0, "d2": 2.0}, "q3": {"d1": 1.0}}
    assert import_judgments(log, file_of(first)) == (2, 2)
    assert judged(log) == {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d1": 3.0}}
    assert import_judgments(log, file_of("")) == ImportedJudgments(0, 3)
    assert judged(log) == {}
    assert current_events(log.events()) == log.current_events() == {}
    log.verify()


def test_every_event_names_its_file_hash_and_line(log: Log) -> None:
    file = file_of("q1 0 d1 1\n\nq1 0 d2 0\n")
    import_judgments(log, file)
    origins = {event.document: event.origin for event in log.events()}
    assert origins == {name: f"qrels.txt sha256:{file.digest} line {n}" for name, n in (("d1", 1), ("d2", 3))}
    assert {(event.source, event.assessor, event.kind) for event in log.events()} == {("collection", "", "judgment")}


def test_logs_that_imported_the_same_file_can_be_merged(log: Log, tmp_path: Path) -> None:
    other = open_log(tmp_path / "other.jsonl")
    for each in (log, other):
        import_judgments(each, file_of("q1 0 d1 1\nq1 0 d2 0\n"))
    assert other.add(log.events()) == (0, 2)


@pytest.mark.parametrize("odd", ["-d", "@d", "=1+1", "a\\b", "\udcff", "ü"])
def test_odd_ids_are_imported_exactly(log: Log, odd: str) -> None:
    import_judgments(log, file_of(f"{odd} 0 {odd} 2\n"))
    assert judged(log) == {odd: {odd: 2.0}}
    assert import_judgments(log, file_of(f"{odd} 0 {odd} 2\n \n")) == (0, 0)  # other bytes, same judgments


@pytest.mark.parametrize("policy", ["latest", "adjudicated", "majority", "dawid-skene"])
def test_an_adjudication_goes_before_people_and_people_before_the_collection(log: Log, policy: str) -> None:
    assert policy in policies()
    import_judgments(log, file_of("101 0 d002 3\n101 0 d003 3\n101 0 d004 3\n"))
    log.add([label(1), label(1, "d003"), label(0, "d003", kind="adjudication"), label(1, "d004", source="model")])
    decided = decide_log(log, policy)
    assert decided.grades == {"101": {"d002": 1.0, "d003": 0.0, "d004": 3.0}}
    assert (decided.labels, decided.of_collection) == (2, 1)


def test_a_document_on_which_people_disagree_is_not_decided_by_the_collection(log: Log) -> None:
    import_judgments(log, file_of("101 0 d002 3\n"))
    log.add([label(1), label(0, assessor="bob")])
    assert decide_log(log, "adjudicated").undecided == [(TOPIC, DOCUMENT)]


def test_agreement_and_counts_of_people_ignore_the_collection(log: Log, tmp_path: Path) -> None:
    import_judgments(log, file_of("101 0 d002 3\n101 0 d003 3\n"))
    assert log.labels() == []
    with pytest.raises(DataError, match="there are no labels"):
        agree([log.name])
    log.add([label(1), label(1, assessor="bob")])
    [alpha, *_] = agree([log.name]).coefficients
    assert alpha.items == 1
    assert len(log.labels()) == 2


def test_frozen_versions_keep_their_hash_and_new_ones_hold_the_collections_judgments(log: Log) -> None:
    log.add([label(1)])
    before, _ = freeze(log, "old", "latest", PolicySettings(sources=PEOPLE))
    import_judgments(log, file_of("101 0 d002 3\n101 0 d003 3\n"))
    version, decided = freeze(log, "new", "latest")
    assert thaw(log, "old").grades == {"101": {"d002": 1.0}}
    assert hash_of(thaw(log, "old").grades) == before.hash
    assert decided.grades == thaw(log, "new").grades == {"101": {"d002": 1.0, "d003": 3.0}}
    assert version.settings["sources"] == ("human", "import", "collection")
    again, _ = freeze(log, "people", "latest", PolicySettings(sources=PEOPLE))
    assert again.hash == before.hash


def test_nobody_can_give_or_decide_labels_in_the_name_of_the_collection() -> None:
    with pytest.raises(DataError, match="the collection gives judgments"):
        label(1, kind="adjudication", source="collection")


# a workspace


def test_a_workspace_imports_when_its_file_changes(bench: Bench) -> None:
    bench.import_judgments()
    own = cf.read_qrels("allotment").to_dict()
    assert judged(bench.log) == {topic: dict(sorted(own[topic].items())) for topic in sorted(own)}
    assert not has_labels_of_people(bench.database)
    path = Path(str(bench.qrels))
    path.write_text(path.read_text() + "101 0 brand-new 2\n")
    bench.import_judgments()
    assert judged(bench.log)["101"]["brand-new"] == 2
    path.unlink()
    bench.import_judgments()
    assert judged(bench.log) == {}


def test_a_folder_without_a_collection_withdraws_nothing_from_a_log_it_shares(bench: Bench, tmp_path: Path) -> None:
    bench.import_judgments()
    (tmp_path / "empty").mkdir()
    other = open_bench(tmp_path / "empty", db=bench.location)
    other.import_judgments()
    other.close()
    assert len(decide_log(bench.log)) == len(cf.read_qrels("allotment"))


def test_one_label_changes_the_leaderboard_by_the_effect_of_one_label(tmp_path: Path) -> None:
    make_example(tmp_path / "w")
    _one_more_label(tmp_path / "w", "101", "d299", 0)


@pytest.mark.slow
def test_one_label_added_to_cranfields_1837_judgments_has_the_effect_of_one_label(tmp_path: Path, shared: Path) -> None:
    folder = tmp_path / "w"
    import_collection(shared / "cranfield", folder)
    own = cf.read_qrels(folder)
    assert len(own) == 1837
    (folder / "runs").mkdir()
    for name, salt in (("one", 1), ("other", 2), ("third", 3)):
        write_random_run(folder / "runs" / f"{name}.run", own, salt)
    topic = own.topics[0]
    _one_more_label(folder, topic, next(iter(own[topic])), 0)


def write_random_run(path: Path, judgments: Any, seed: int) -> None:
    """A run that ranks half of the judged documents of each topic in a random order, between others."""
    random = Random(seed)
    lines = []
    for topic, grades in judgments.to_dict().items():
        documents = [*random.sample(sorted(grades), (len(grades) + 1) // 2), *(f"none-{n}" for n in range(10))]
        random.shuffle(documents)
        lines += [f"{topic} Q0 {name} {n} {100 - n} {path.stem}\n" for n, name in enumerate(documents, 1)]
    path.write_text("".join(lines))


def _one_more_label(folder: Path, topic: str, document: str, grade: float) -> None:
    """One label changes the leaderboard as if the grade were edited in the file, and the scores of its topic alone."""
    bench, question = open_bench(folder), QUESTIONS["leaderboard"](measures="nDCG@10 AP")
    before, own = question.run(bench, lambda done, of: None).to_dict(), cf.read_qrels(folder).to_dict()
    bench.log.add([Event(topic=topic, document=document, grade=grade, assessor="ann")])
    after = question.run(bench, lambda done, of: None).to_dict()
    edited = {**own, topic: {**own[topic], document: grade}}
    runs = [run.path for run in bench.runs()]
    expected = cf.evaluate(edited, runs, "nDCG@10 AP")
    assert [(row["run"], row["means"]) for row in after["rows"]] != [
        (row["run"], row["means"]) for row in before["rows"]
    ]
    for row in after["rows"]:
        for measure in ("nDCG@10", "AP"):
            assert row["means"][measure] == pytest.approx(expected.mean(measure, row["run"]), abs=1e-12)
    old = cf.evaluate(own, runs, "nDCG@10 AP")
    moved = {
        name for name, changed in zip(old.topics, (old.values != expected.values).any((0, 1)), strict=True) if changed
    }
    assert moved == {topic}
    bench.close()


# wherever judgments are named


def test_a_workspace_a_log_and_a_version_are_judgments_for_commands_and_python(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fresh = cf.evaluate("w", "bm25", "AP").mean()
    assert fresh == cf.evaluate("allotment", "w/runs/bm25.run", "AP").mean()  # nothing is labelled yet
    bench.log.add([label(0, "d299")])
    labelled = cf.evaluate("w", "bm25", "AP").mean()
    assert labelled < fresh
    assert {cf.evaluate(word, "bm25", "AP").mean() for word in ("w", "w/work.db")} == {labelled}
    assert bench.log.place() == 1  # reading imported nothing
    assert cranfield("judge", "freeze", "w", "v1", folder=tmp_path).code == 0
    assert bench.log.place() == 1 + len(cf.read_qrels("allotment"))
    bench.log.add([label(3, "d299")])
    frozen = {cf.evaluate(word, "bm25", "AP").mean() for word in ("w@v1", "w/work.db@v1")}
    assert frozen == {labelled}
    assert str(cf.explain("w", "bm25", "AP", "101").title()).startswith("AP of bm25, topic 101 (blossom end rot)")
    assert cf.compare("w@v1", ["bm25", "fusion"], "AP").scores.mean("AP", "bm25") == labelled
    assert cf.gate("w@v1", "bm25", "fusion").passed
    out = cranfield("eval", "w@v1", "bm25", "new=fusion", "-m", "AP", "--digits", "12", folder=tmp_path).out
    assert f"{labelled:.12f}" in out
    assert "new" in out


@pytest.mark.parametrize(
    "line",
    [
        "compare {} bm25 fusion",
        "leaderboard {} bm25 fusion",
        "explain {} bm25 -m AP --topic 101",
        "curve {} bm25",
        "gate {} bm25 fusion",
        "report {} bm25 fusion --format csv",
        "reuse {} bm25 fusion phrase",
        "design {} bm25 fusion --test t",
        "pool thin {} bm25 fusion",
        "pool simulate {} bm25 fusion --depth 5",
        "reproduce {} bm25 fusion",
        "stability {} bm25 fusion phrase --of measures",
    ],
)
@pytest.mark.usefixtures("bench")
def test_a_workspace_gives_what_its_files_give(tmp_path: Path, line: str) -> None:
    words = line.format("w").split()
    paths = [f"w/runs/{word}.run" if word in ("bm25", "fusion", "phrase") else word for word in words]
    by_name, by_path = (cranfield(*each, folder=tmp_path) for each in (words, paths))
    assert (by_name.code, by_name.out) == (by_path.code, by_path.out)
    assert by_name.code in (0, 1), by_name.err


@pytest.mark.parametrize(
    "line",
    [
        "trec_eval {} w/runs/bm25.run",
        "convert {} out.txt",
        "check {}",
        "check w/runs/bm25.run --qrels {}",
        "pool make w/runs/bm25.run --depth 5 --strategy move-to-front --next 2 --judgments {}",
        "pool stop {} --pool pool.jsonl",
        "pool qrels pool.jsonl {} -o out.txt",
    ],
)
def test_a_workspace_is_judged_alike_before_and_after_its_log_knows_it(bench: Bench, tmp_path: Path, line: str) -> None:
    """Commands that read files of judgments, or labels in their order: a folder without a log, and each state of a log."""
    make_example(tmp_path / "new")
    cranfield("pool", "make", "w/runs/bm25.run", "--depth", "3", "-o", "pool.jsonl", folder=tmp_path)
    said = []
    for word in ("new", "w", "w/work.db", "w@v1", "w/work.db"):  # the last one after the import
        if word == "w@v1":
            assert cranfield("judge", "freeze", "w", "v1", folder=tmp_path).code == 0
        answer = cranfield(*line.format(word).split(), folder=tmp_path)
        out = tmp_path / "out.txt"
        written = sorted(out.read_text().splitlines()) if out.exists() else []
        named = r"(?<![\w.])(new|w)(/work\.db)?(@v1)?(?![\w/])"
        said.append((answer.code, re.sub(named, "", answer.out), written))
        out.unlink(missing_ok=True)
    assert said[0][0] == 0, said[0]
    assert said == [said[0]] * 5
    assert bench.log.place() == len(cf.read_qrels("allotment"))


@pytest.mark.parametrize("imported", [False, True])
def test_commands_know_that_the_file_of_judgments_is_gone(bench: Bench, tmp_path: Path, imported: bool) -> None:
    bench.log.add([label(2)])
    if imported:
        bench.import_judgments()
    Path(str(bench.qrels)).unlink()
    for line in ("convert w out.txt", "pool qrels pool.jsonl w -o out.txt", "judge aggregate w -o out.txt"):
        (tmp_path / "pool.jsonl").write_text(json.dumps({"topic": TOPIC, "document": DOCUMENT}) + "\n")
        assert cranfield(*line.split(), folder=tmp_path).code == 0
        assert (tmp_path / "out.txt").read_text().split() == [TOPIC, "0", DOCUMENT, "2"], line


def test_the_log_of_a_folder_whose_collection_is_gone_keeps_what_it_holds(bench: Bench, tmp_path: Path) -> None:
    bench.import_judgments()
    for name in ("collection.toml", "documents.jsonl", "topics.jsonl", "qrels.txt"):
        (tmp_path / "w" / name).unlink()
    assert cranfield("judge", "freeze", "w", "v1", folder=tmp_path).code == 0
    assert len(thaw(bench.log, "v1")) == len(cf.read_qrels("allotment"))


def test_a_folder_that_happens_to_hold_judgments_is_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qrels.txt").write_text("q1 0 d1 1\n")
    opened = open_log("work.db")
    opened.add([Event(topic="q1", document="d2", grade=1, assessor="ann")])
    opened.close()
    assert qrels("work.db").to_dict() == cf.Evaluator("work.db", "AP").qrels.to_dict() == {"q1": {"d2": 1.0}}


# in the browser


ODD = ("-d", "@d", "=1+1", "+d", "'d", "plain")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    """A workspace whose topics and documents have ids that a spreadsheet would take for formulas."""
    folder = tmp_path / "odd"
    folder.mkdir()
    rows = {
        "documents.jsonl": [{"id": name, "text": name} for name in ODD],
        "topics.jsonl": [{"id": n, "title": n} for n in ODD],
    }
    for name, each in rows.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in each))
    (folder / "qrels.txt").write_text("".join(f"{t} 0 {d} {n}\n" for t in ODD for n, d in enumerate(ODD[:4])))
    (folder / "runs").mkdir()
    (folder / "runs" / "one.run").write_text(
        "".join(f"{t} Q0 {d} {n} {9 - n} one\n" for t in ODD for n, d in enumerate(ODD, 1))
    )
    with served(folder) as opened:
        yield opened


def test_the_browser_delivers_qrels_that_score_as_the_log_does(site: Served, tmp_path: Path) -> None:
    lead = site.client("ann")
    site.bench.log.add([Event(topic="-d", document="=1+1", grade=0, assessor="bob")])
    assert lead.send("/versions.json", {"name": "v 1", "policy": "latest"}).status == 200
    site.bench.log.add([Event(topic="-d", document="plain", grade=3, assessor="bob")])
    run = str(Path(site.bench.folder) / "runs" / "one.run")
    for path, word in (("/judgments.qrels", ""), ("/version.qrels?name=v%201", "@v 1")):
        reply = lead.get(path)
        assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        (tmp_path / "download").write_bytes(reply.body)
        expected = cf.evaluate(f"{site.bench.folder}{word}", run, "AP nDCG").to_dict()
        downloaded = cf.evaluate(str(tmp_path / "download"), run, "AP nDCG").to_dict()
        assert downloaded["runs"] == expected["runs"]
        assert cf.read_qrels(reply.body).to_dict() == cf.Evaluator(f"{site.bench.folder}{word}", "AP").qrels.to_dict()
        assert b"'=" not in reply.body
    assert lead.get("/judgments.qrels").headers["content-disposition"] == 'attachment; filename="Judgments.qrels"'
    assert "filename*=UTF-8''v%201.qrels" in lead.get("/version.qrels?name=v%201").headers["content-disposition"]
    page = lead.get("/version?name=v%201").text
    assert 'href="/version.qrels?name=v+1"' in page
    assert "CSV for spreadsheets" in page
    assert lead.get("/judgments.json").json()["counts"] == {
        "label": 2,
        "adjudication": 0,
        "collection": 24,
        "topics": 6,
    }
    assert "Download as TREC qrels" in lead.get("/judgments").text
    said = "2 labels of people and 24 judgments of the collection"
    assert f"{said}, on 6 topics" in lead.get("/versions").text
    assert "1 label of people" not in lead.get("/topic?topic=%40d").text
    assert lead.get("/topic.json?topic=-d").json()["judged"] == "2 labels of people and 4 judgments of the collection"


def test_nothing_judged_is_no_download(site: Served) -> None:
    Path(str(site.bench.qrels)).unlink()
    reply = site.client("ann").get("/judgments.qrels")
    assert reply.status == 400
    assert "nothing is judged yet" in reply.text


def test_no_route_takes_a_label_of_a_topic_or_document_that_does_not_exist(site: Served) -> None:
    lead, place = site.client("ann"), site.bench.log.place()
    for topic, document, words in (
        ("none", "-d", "there is no topic 'none'"),
        ("-d", "none", "there is no document 'none'"),
    ):
        about = {"topic": topic, "document": document, "grade": 1}
        reply = lead.send("/topic.json", about)
        assert (reply.status, words in reply.text) == (400, True)
        [outcome] = lead.send("/judge.json", {"events": [{"id": "e1", **about}]}).json()["outcomes"]
        assert (outcome["said"], outcome["reason"], outcome["why"]) == ("refused", words.split()[3], words)
        [outcome] = lead.send("/adjudicate.json", {"events": [{"id": "e2", **about}]}).json()["outcomes"]
        assert (outcome["said"], outcome["why"]) == ("refused", words)
    assert site.bench.log.place() == place


def test_a_label_in_a_round_of_a_document_that_is_gone_is_refused(site: Served) -> None:
    open_round(site.bench.log, Round(name="r"), [RoundItem("-d", "gone")])
    lead = site.client("ann")
    assert lead.get("/judge.json?round=r").json()["items"]
    event = {"id": "e1", "topic": "-d", "document": "gone", "grade": 1}
    [outcome] = lead.send("/judge.json", {"round": "r", "events": [event]}).json()["outcomes"]
    assert (outcome["said"], outcome["reason"]) == ("refused", "document")
    passed = {**event, "id": "e2", "grade": None, "kind": "cannot-judge"}
    [outcome] = lead.send("/judge.json", {"round": "r", "events": [passed]}).json()["outcomes"]
    assert outcome["said"] == "kept"


def test_without_documents_and_topics_nothing_can_be_checked(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(tmp_path / "w") as opened:
        assert opened.client("ann").send("/topic.json", {"topic": "t", "document": "d", "grade": 1}).status == 200


def test_labels_that_a_command_adds_to_a_workspace_are_checked_too(site: Served, tmp_path: Path) -> None:
    (tmp_path / "bob.txt").write_text("-d 0 none 1\n")
    reply = cranfield("judge", "add", site.bench.location, tmp_path / "bob.txt")
    assert (reply.code, "there is no document 'none' in the collection" in reply.err) == (3, True)


# rounds


def test_a_plan_leaves_out_what_the_collection_or_a_person_has_judged(site: Served) -> None:
    lead = site.client("ann")
    site.bench.log.add([Event(topic="-d", document="'d", grade=1, assessor="bob")])
    form = {"runs": ["one"], "depth": "6", "name": "r"}
    assert lead.send("/rounds/new.json", form).status == 200
    [row] = (lead.get("/round.json?name=r").json(),)
    assert row["documents"] == len(ODD) * 2 - 1
    assert lead.send("/rounds/new.json", {**form, "name": "all", "again": "yes"}).status == 200
    assert lead.get("/round.json?name=all").json()["documents"] == len(ODD) ** 2


@pytest.mark.parametrize("imported", [False, True])
def test_a_command_plans_an_adaptive_round_without_judged_documents(site: Served, imported: bool) -> None:
    folder = Path(site.bench.folder)
    site.bench.log.add([Event(topic="-d", document="'d", grade=1, assessor="bob")])
    if imported:
        site.bench.import_judgments()
    run = folder / "runs" / "one.run"
    how = ("--strategy", "move-to-front", "--run", run, "--depth", "5")
    answer = cranfield("judge", "round", folder, "--name", "r", *how)
    assert answer.code == 0, answer.err
    assert "25 documents left out: the workspace has judgments of them" in answer.err

    def lists() -> dict[str, set[str]]:
        with site.bench.log.reading() as transaction:
            plan, _ = transaction.find_round("r")
        return {topic: {name for names in own.values() for name in names} for topic, own in plan.lists.items()}

    assert lists() == {topic: set() if topic == "-d" else {"'d"} for topic in ODD}
    changed = cranfield("judge", "change", folder, "r", "--run", run, "--depth", "6")
    assert changed.code == 0, changed.err
    assert lists() == {topic: {"plain"} if topic == "-d" else {"'d", "plain"} for topic in ODD}


def test_a_pool_of_judged_documents_is_told(site: Served, tmp_path: Path) -> None:
    rows = [{"topic": "-d", "document": name} for name in ("-d", "plain")]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = cranfield("judge", "round", site.bench.folder, "--pool", tmp_path / "pool.jsonl")
    assert answer.code == 0
    assert "1 document of the pool judged already: pool make --qrels leaves such documents out" in answer.err


def test_a_deeper_adaptive_round_keeps_the_documents_that_it_has_asked_about(site: Served) -> None:
    lead = site.client("ann")
    form = {"runs": ["one"], "depth": "5", "name": "r", "strategy": "move-to-front"}
    assert lead.send("/rounds/new.json", form).status == 200
    [item] = lead.get("/judge.json?round=r").json()["items"]
    event = {"id": "e", "topic": item["topic"], "document": item["document"], "grade": 1}
    assert lead.send("/judge.json", {"round": "r", "events": [event]}).json()["outcomes"][0]["said"] == "kept"
    assert lead.send("/round/change.json", {"name": "r", "depth": "6"}).status == 200
    with site.bench.log.reading() as transaction:
        plan, _ = transaction.find_round("r")
    assert plan.lists[item["topic"]] == {"one": ["'d", "plain"]}


def test_an_adaptive_round_leaves_out_what_is_judged(site: Served) -> None:
    lead = site.client("ann")
    form = {"runs": ["one"], "depth": "6", "name": "r", "strategy": "move-to-front"}
    assert lead.send("/rounds/new.json", form).status == 200
    asked = set()
    for number in range(len(ODD) * 2):
        [item] = lead.get("/judge.json?round=r").json()["items"]
        asked.add((item["topic"], item["document"]))
        event = {"id": f"e{number}", "topic": item["topic"], "document": item["document"], "grade": 0}
        assert lead.send("/judge.json", {"round": "r", "events": [event]}).json()["outcomes"][0]["said"] == "kept"
    assert asked == {(topic, document) for topic in ODD for document in ODD[4:]}
    assert not lead.get("/judge.json?round=r").json()["items"]
