"""Judgments and runs that name a topic by what it asks: joined with the topics, or refused by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cranfield import Evaluator, evaluate
from cranfield.base.errors import DataError
from cranfield.base.qrels import Qrels
from cranfield.formats.importers.collection_import import import_collection
from cranfield.formats.importers.source import Files
from cranfield.formats.topic_tables import ids_of_texts, qrels_by_id
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = {"q7": "usb cable", "q8": "red shoes"}
FILES = {
    "products.csv": "sku,title,description,brand\nA1,usb cable,two metres,Acme\nA2,red shoes,leather,Foo\n",
    "queries.csv": "query,traffic\nusb cable,120\nred shoes,5\n",
    "topics.csv": "id,query\nq7,usb cable\nq8,red shoes\n",
    "same.csv": "id,query\nq7,usb cable\nq9,usb cable\nq8,red shoes\n",
    "labels.csv": "query,sku,rating\nusb cable,A1,3\nred  shoes,A2,2\nusb cable,A2,0\n",
    "more.csv": "query,sku,rating\nusb cable,A1,3\nred shoes,A2,2\ngreen hat,A2,0\n",
    "texts.csv": "query,sku,score\nusb cable,A2,3\nusb cable,A1,2\nred shoes,A2,1\n",
    "ids.run": "q7 Q0 A2 1 3 x\nq7 Q0 A1 2 2 x\nq8 Q0 A2 1 1 x\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def test_a_text_is_joined_exactly_or_else_with_white_space_squeezed():
    assert ids_of_texts(["usb cable", " red\tshoes"], QUERIES, "f") == {"usb cable": "q7", " red\tshoes": "q8"}
    spaced = {"a": "usb cable", "b": "usb  cable"}  # two topics that differ in white space alone
    assert ids_of_texts(["usb  cable", "usb cable"], spaced, "f") == {"usb  cable": "b", "usb cable": "a"}


def test_names_that_are_ids_stay():
    assert ids_of_texts(["q7", "q8"], QUERIES, "f") is None
    assert ids_of_texts(["301", "302"], QUERIES, "f") is None  # neither: said by others
    assert ids_of_texts(["7"], {"7": "8", "8": "7"}, "f") is None  # both: an id


def test_a_query_that_is_a_number_does_not_hide_that_the_others_are_texts():
    assert ids_of_texts(["7", "usb cable", "red shoes"], {**QUERIES, "7": "9", "9": "7"}, "f") == {
        "7": "9",
        "usb cable": "q7",
        "red shoes": "q8",
    }


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["usb cable", "green hat"], r"f: no topic asks 'green hat' \(1 of the 2 queries join none\)"),
        (["USB cable", "red shoes"], "f: no topic asks 'USB cable'"),  # case may tell two queries apart
    ],
)
def test_what_joins_nothing_is_an_error_that_names_the_first(names, problem):
    with pytest.raises(DataError, match=problem):
        ids_of_texts(names, QUERIES, "f")


def test_two_topics_with_one_text_are_an_error_that_names_both():
    with pytest.raises(DataError, match="topics 'q7' and 'q9' both ask 'usb cable'; name them by their ids"):
        ids_of_texts(["usb cable"], {**QUERIES, "q9": "usb cable"}, "f")


def test_two_spellings_of_one_query_are_one_topic():
    joined = qrels_by_id(Qrels({"usb cable": {"A1": 1}, "usb  cable": {"A2": 0}}), QUERIES)
    assert joined is not None
    assert joined.to_dict() == {"q7": {"A1": 1.0, "A2": 0.0}}


def test_scores_are_those_by_id():
    judged, run = {"usb cable": {"A1": 3}}, {"usb cable": {"A2": 2, "A1": 1}}
    by_id = evaluate({"q7": {"A1": 3}}, {"q7": {"A2": 2, "A1": 1}}, "RR")
    for qrels, answers in ((judged, run), (judged, {"q7": run["usb cable"]}), ({"q7": {"A1": 3}}, run)):
        scores = evaluate(qrels, answers, "RR", queries=QUERIES)
        assert scores.topics == ["q7"]
        assert scores.mean() == by_id.mean() == 0.5


def test_topics_are_not_read_for_judgments_and_runs_of_trec(folder):
    class Unread(dict):
        def __iter__(self):
            raise AssertionError("read")

        items = __contains__ = __iter__

    (folder / "qrels.txt").write_text("q7 0 A1 1\n")
    evaluator = Evaluator(str(folder / "qrels.txt"), "RR", queries=Unread())
    assert evaluator.evaluate(str(folder / "ids.run")).mean() == 0.5


def test_import_joins_labels_by_text_and_numbers_queries_without_ids(folder):
    files = Files(topics=[str(folder / "queries.csv")], qrels=[str(folder / "labels.csv")])
    done = import_collection(folder / "products.csv", folder / "shop", files=files)
    assert done.collection.qrels.to_dict() == {"1": {"A1": 3.0, "A2": 0.0}, "2": {"A2": 2.0}}
    assert [(topic.id, topic.title, topic.fields) for topic in done.collection.topics] == [
        ("1", "usb cable", {"traffic": "120"}),
        ("2", "red shoes", {"traffic": "5"}),
    ]
    assert done.notes == [
        "queries.csv: no column has the topics' ids; they are numbered 1, 2, 3 …",
        "labels.csv names its 2 topics by what they ask; they are joined with the topics by that text",
    ]
    [first, _] = done.collection.documents()
    assert (first.id, first.title, first.text, first.fields) == ("A1", "usb cable", "two metres", {"brand": "Acme"})


@pytest.mark.parametrize("options", [[], ["--field", "topic=query"]], ids=["by its usual name", "said"])
def test_eval_joins_labels_and_runs_with_a_topics_file(folder, options):
    typed = ("labels.csv", "ids.run", "texts.csv", "--topics-file", "topics.csv", "-m", "RR", *options)
    answer = cranfield("eval", *typed, "--format", "csv", folder=folder)
    assert [line.split(",")[:2] for line in answer.out.splitlines()[1:]] == [["ids", "0.75"], ["texts.csv", "0.75"]]
    assert "labels.csv names its 2 topics by what they ask" in answer.err
    assert "texts.csv names its 2 topics by what they ask" in answer.err
    assert "ids names" not in answer.err


@pytest.mark.parametrize("verb", ["compare", "leaderboard", "report", "gate", "explain", "curve"])
def test_every_verb_reads_runs_by_text_where_the_collection_is_known(folder, verb):
    cranfield("import", "products.csv", "shop", "--topics-file", "topics.csv", "--qrels", "labels.csv", folder=folder)
    runs = {"explain": ["texts.csv", "--topic", "q7"], "curve": ["texts.csv"]}.get(verb, ["ids.run", "texts.csv"])
    output = ["-o", "report.html"] if verb == "report" else []
    answer = cranfield(verb, "shop", *runs, *output, folder=folder)
    assert answer.code == 0, answer.both
    assert "none of the" not in answer.both


def test_what_joins_nothing_stops_import_and_eval(folder):
    for typed in (
        ("import", "products.csv", "shop", "--topics-file", "topics.csv", "--qrels", "more.csv"),
        ("eval", "more.csv", "ids.run", "--topics-file", "topics.csv"),
    ):
        answer = cranfield(*typed, folder=folder)
        assert answer.code == 3
        assert "more.csv: no topic asks 'green hat' (1 of the 3 queries join none)" in answer.err
    assert not (folder / "shop").exists()
    answer = cranfield("eval", "labels.csv", "ids.run", "--topics-file", "same.csv", folder=folder)
    assert answer.code == 3
    assert "topics 'q7' and 'q9' both ask 'usb cable'" in answer.err


ASKED = [{"search": "q7", "asks": "usb cable", "traffic": "9"}, {"search": "q8", "asks": "red shoes", "traffic": "1"}]


def write_topics(path):
    """The same two topics, in the format that the ending says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ASKED))
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").Table.from_pylist(ASKED), path
        )
    else:
        sign = "\t" if path.suffix == ".tsv" else ";" if path.stem == "half" else ","
        path.write_text("".join(sign.join(row) + "\n" for row in [list(ASKED[0]), *(row.values() for row in ASKED)]))


@pytest.mark.parametrize("name", ["asked.csv", "asked.tsv", "half.csv", "asked.jsonl", "asked.parquet"])
def test_fields_name_the_columns_of_topics_in_every_format(folder, name):
    write_topics(folder / name)
    fields = ("--field", "topic=search", "--field", "query=asks")
    typed = ("eval", "labels.csv", "ids.run", "--topics-file", name, *fields, "--field", "topic=query", "-m", "RR")
    answer = cranfield(*typed, "--format", "csv", folder=folder)
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[1].startswith("ids,0.75,")
    done = cranfield(
        "import", "products.csv", "shop", "--topics-file", name, "--qrels", "labels.csv", *fields, folder=folder
    )
    assert done.code == 0, done.err
    assert [json.loads(line)["id"] for line in (folder / "shop" / "topics.jsonl").read_text().splitlines()] == [
        "q7",
        "q8",
    ]
    assert (folder / "shop" / "qrels.txt").read_text().split()[0] == "q7"


def test_what_is_said_of_labels_that_go_by_text_leaves_the_ids_of_topics(folder):
    (folder / "searched.csv").write_text(FILES["labels.csv"].replace("query", "typed", 1))
    options = ("--topics-file", "topics.csv", "--field", "topic=typed", "-m", "RR", "--format", "csv")
    answer = cranfield("eval", "searched.csv", "ids.run", *options, folder=folder)
    assert answer.out.splitlines()[1].startswith("ids,0.75,"), answer.both


def test_a_topic_without_an_id_among_others_that_have_one_is_refused(folder):
    (folder / "odd.jsonl").write_text('{"id": "q7", "query": "usb cable"}\n{"query": "red shoes"}\n')
    answer = cranfield("import", "products.csv", "shop", "--topics-file", "odd.jsonl", folder=folder)
    assert answer.code == 3
    assert "odd.jsonl:2: expected columns with a topic's id, found query" in answer.err
