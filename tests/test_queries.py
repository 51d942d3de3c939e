"""Queries beside ids: wherever a collection or a topics file is known, and nowhere else."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path

import pytest

import cranfield
from cranfield.base.collection import Topic
from cranfield.base.errors import DataError
from cranfield.base.qrels import Queries
from cranfield.base.text_layout import width
from cranfield.formats.topic_tables import table_of_topics
from cranfield.inputs.inputs import Inputs
from shell import EXAMPLES
from shell import cranfield as shell

BUNDLED = Path(cranfield.__file__).parent / "collections" / "bundled" / "allotment"
BM25, FUSION, PHRASE = (str(BUNDLED / "runs" / f"{name}.run") for name in ("bm25", "fusion", "phrase"))
BESIDE = ("--topics-file", "topics.tsv")
SLIPSTREAM = "effects of a wing in a slipstream"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# where they are known


def test_a_collection_puts_its_queries_beside_the_topics() -> None:
    table = shell("eval", "allotment", BM25, "--per-topic", "-m", "AP").out.splitlines()
    assert table[0].split() == ["run", "topic", "query", "AP"]
    assert table[1].split() == ["bm25", "101", "blossom", "end", "rot", "0.5990"]
    data = rows(shell("eval", "allotment", BM25, "--per-topic", "-m", "AP", "--format", "csv").out)
    assert (data[0]["topic"], data[0]["query"]) == ("101", "blossom end rot")
    told = json.loads(shell("eval", "allotment", BM25, "--per-topic", "--format", "json").out)
    assert told["queries"]["101"] == "blossom end rot"
    assert set(told["queries"]) == set(told["runs"][0]["topics"])


def test_a_topics_file_does_the_same_for_judgments_alone() -> None:
    table = shell("eval", "qrels.txt", "bm25.run", "--per-topic", "-m", "AP", *BESIDE).out
    assert SLIPSTREAM in table.splitlines()[1]


def test_nothing_changes_where_nothing_is_known() -> None:
    for shape in ("table", "json", "csv", "trec"):
        with_file = ("eval", "qrels.txt", "bm25.run", "--format", shape)
        assert "query" not in shell(*with_file, "--per-topic").out
        refused = shell(*with_file, *BESIDE)  # means name no topic
        assert (refused.code, refused.out) == (2, "")
        assert "--topics-file goes with --by, --weigh-by, --design-weights, --per-topic" in refused.err
    plain = ("eval", "qrels.txt", "bm25.run", "--per-topic", "--format", "trec")
    assert shell(*plain, *BESIDE).out == shell(*plain).out


def test_a_topic_without_a_query_is_its_id_alone(tmp_path: Path) -> None:
    file = tmp_path / "some.tsv"
    file.write_text("qid\tquery\nq1\twing\n")
    lines = shell("eval", "qrels.txt", "bm25.run", "--per-topic", "-m", "AP", "--topics-file", file).out.splitlines()
    assert lines[1].split()[:3] == ["bm25", "q1", "wing"]
    assert len(lines[2].split()) == 3


def test_queries_are_read_when_they_are_first_looked_up() -> None:
    reads = []

    def read() -> dict[str, str]:
        reads.append(1)
        return {"q1": "wing"}

    queries = Queries(read)
    scores = cranfield.evaluate(b"q1 0 a 1\n", b"q1 Q0 a 1 1.0 x\n", "AP", queries=queries)
    scores.to_text()
    scores.to_json()
    assert reads == []
    assert "wing" in scores.to_text(per_topic=True)
    assert pickle.loads(pickle.dumps(scores)).queries == {"q1": "wing"}
    assert reads == [1]
    assert Inputs(qrels="qrels.txt").queries is None


def test_a_missing_topics_file_is_named() -> None:
    answer = shell("eval", "qrels.txt", "bm25.run", "--per-topic", "--topics-file", "nowhere.tsv")
    assert (answer.code, "nowhere.tsv" in answer.err) == (3, True)


def test_a_screen_cuts_queries_and_never_the_data(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"_id": "q1", "text": "wing " * 60}) + "\n")
    scores = cranfield.evaluate(
        EXAMPLES / "qrels.txt", EXAMPLES / "bm25.run", "AP", queries=Inputs(topics_file=str(file)).queries
    )
    text = scores.to_text(per_topic=True, limit=80).partition("\n\n")[0]
    assert max(map(width, text.splitlines())) <= 80
    assert "…" in text
    assert rows(scores.to_csv(per_topic=True))[0]["query"] == "wing " * 60


# by column


def test_a_collection_needs_no_file_to_be_split_by() -> None:
    answer = shell("eval", "allotment", BM25, "-m", "AP", "--by", "length")
    assert answer.out.splitlines()[1].split()[:3] == ["bm25", "1", "word"]
    wrong = shell("eval", "allotment", BM25, "--by", "kind")
    assert wrong.code == 3
    assert "no column 'kind' to split by; it has title, description, narrative, subtopics and length" in wrong.err


def test_columns_are_categories_and_numbers() -> None:
    topics = [Topic("q1", "wing", fields={"traffic": 12, "kind": "head"}), Topic("q2", "", fields={"kind": None})]
    table = table_of_topics(topics, "toy")
    assert table.queries == {"q1": "wing"}
    assert table.column("kind") == {"q1": "head", "q2": ""}
    assert table.numbers("traffic") == {"q1": 12.0}
    with pytest.raises(DataError, match="toy: column 'kind': expected a number for topic 'q1', found 'head'"):
        table.numbers("kind")
    with pytest.raises(DataError, match="no column 'x' to weigh by; it has title, traffic, kind and length"):
        table.numbers("x")


def test_without_topics_an_option_that_needs_them_says_what_to_do() -> None:
    answer = shell("eval", "qrels.txt", "bm25.run", "--by", "category")
    assert answer.code == 2
    assert "name a collection in place of QRELS, or give --topics-file FILE" in answer.err


# the other verbs


def test_compare_names_queries_in_bars_cautions_and_data() -> None:
    text = shell("compare", "allotment", BM25, FUSION, "-m", "nDCG@10", "--bars").out
    assert "147  bonfire rules" in text
    few = ("compare", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", *BESIDE)
    decided = [line for line in shell(*few).out.splitlines() if "without topic" in line]
    assert all("' (" in line for line in decided)
    data = rows(shell(*few, "--per-topic", "--format", "csv").out)
    assert data[0]["query"] == SLIPSTREAM
    assert json.loads(shell(*few, "--per-topic", "--format", "json").out)["queries"]["q1"] == SLIPSTREAM
    assert "queries" not in json.loads(shell(*few, "--format", "json").out)


def test_a_caution_names_the_query_of_the_topic_that_decides() -> None:
    table = [[0.5, 0.5 + d] for d in (0.9, -0.05, -0.05, -0.06, -0.04)]
    scores = cranfield.Scores.from_table(table, ["a", "b"], list("vwxyz"), "AP")
    scores.queries = {"v": "wing flutter"}
    texts = [caution.text for caution in cranfield.compare(scores).cautions]
    assert any("without topic 'v' (wing flutter) the difference" in text for text in texts)


def test_the_gate_names_queries_in_its_causes_and_its_topics() -> None:
    answer = shell("gate", "allotment", FUSION, PHRASE)
    assert answer.code == 1
    assert "'105' (stop slugs eating lettuce)" in answer.out
    assert "attract frogs and hedge" in answer.out
    worst = json.loads(shell("gate", "allotment", FUSION, PHRASE, "--format", "json").out)["measures"][0][
        "worst_topics"
    ]
    assert worst[0]["query"].startswith("attract frogs")
    unknown = json.loads(shell("gate", "qrels.txt", "bm25.run", "dense.run", "--format", "json").out)
    assert all("query" not in topic for topic in unknown["measures"][0]["worst_topics"])


def test_a_pool_shows_assessors_what_is_asked(tmp_path: Path) -> None:
    pool = shell("pool", "bm25.run", "dense.run", "--depth", 2, *BESIDE, "-o", tmp_path / "pool.jsonl")
    assert pool.code == 0
    lines = (tmp_path / "pool.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["query"] == SLIPSTREAM
    labels = tmp_path / "labels.jsonl"
    judging = shell("pool", "judge", "bm25.run", "dense.run", "--judgments", labels, *BESIDE, stdin=b"q\n")
    assert SLIPSTREAM in judging.err


def test_scores_that_were_written_with_queries_are_read_back(tmp_path: Path) -> None:
    asked = ("eval", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", "--per-topic", "--format", "csv", *BESIDE)
    file = tmp_path / "scores.csv"
    shell(*asked, "-o", file)
    told = json.loads(shell("compare", "--table", file, "--per-topic", "--format", "json").out)
    assert told["measures"] == ["AP"]
    assert told["queries"]["q1"] == SLIPSTREAM


# real files


def test_the_topics_of_trec_are_read_as_they_are(shared: Path, tmp_path: Path) -> None:
    folder = shared / "cranfield-trec"
    run = tmp_path / "a.run"
    run.write_text("1 Q0 184 1 2 a\n2 Q0 12 1 2 a\n")
    topics = ("--topics-file", folder / "cran.qry.xml")
    data = rows(shell("eval", folder / "cranqrel.trec.txt", run, "--per-topic", "--format", "csv", *topics).out)
    assert data[0]["query"].startswith("what similarity laws must be obeyed")


def test_a_collection_that_was_imported_knows_its_queries(shared: Path, tmp_path: Path) -> None:
    shell("import", shared / "cranfield", tmp_path / "cran")
    run = tmp_path / "a.run"
    run.write_text("1 Q0 184 1 2 a\n2 Q0 12 1 2 a\n")
    table = shell("explain", tmp_path / "cran", run, "--topic", "1").out
    assert "(what similarity laws must be obeyed" in table.splitlines()[0]
