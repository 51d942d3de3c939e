"""Query slices: scores split by a column of a topics file, against selecting the topics by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cranfield import evaluate, slices
from cranfield.base.errors import BadLineError, DataError
from cranfield.evaluation.slices import categories
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

TSV = "topic\tcategory\tquery\nq1\tnavigational\tbbc news\nq2\tinformational\thow do wings lift\nq9\tnavigational\tx\n"
QRELS = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
RUN = {"q1": {"a": 1}, "q2": {"x": 2, "b": 1}, "q3": {"x": 3, "y": 2, "z": 1.5, "c": 1}}


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("tsv", TSV),
        ("csv", TSV.replace("\t", ",")),
        (
            "jsonl",
            '{"qid": "q1", "category": "navigational", "query": "bbc news"}\n'
            '{"qid": "q2", "category": "informational", "query": "how do wings lift"}\n'
            '{"qid": "q9", "category": "navigational", "query": "x"}\n',
        ),
    ],
)
def test_a_topics_file_is_read_alike_in_all_formats(tmp_path: Path, ending: str, text: str) -> None:
    path = tmp_path / f"topics.{ending}"
    path.write_text(text)
    kinds = {"q1": "navigational", "q2": "informational", "q9": "navigational"}
    assert categories(str(path), "category") == kinds
    assert categories(str(path), "length") == {"q1": "2 words", "q2": "4 words", "q9": "1 word"}


def test_each_slice_scores_as_its_topics_alone() -> None:
    scores = evaluate(QRELS, {"a": RUN, "b": RUN}, "RR P@1")
    found = slices(scores, {"q1": "short", "q2": "long", "q3": "long"})
    assert [row[:3] for row in found.rows()] == [
        (run, value, n) for run in "ab" for value, n in (("long", 2), ("short", 1), ("all", 3))
    ]
    alone = evaluate(QRELS, {"a": RUN, "b": RUN}, "RR P@1", topics=["q2", "q3"])
    assert found.parts["long"].means("a") == alone.means("a")
    assert found.parts["long"].mean("RR", "a") == pytest.approx((1 / 2 + 1 / 4) / 2)


def test_topics_without_a_category_and_categories_without_a_topic_are_reported() -> None:
    found = slices(evaluate(QRELS, RUN, "RR"), {"q1": "short", "q7": "short"}, "length")
    assert list(found.parts) == ["short", "(none)"]
    assert found.uncategorised == ["q2", "q3"]
    assert found.unknown == ["q7"]
    assert found.notes() == [
        "2 topics ('q2', 'q3') without length: see the slice (none)",
        "the topics file names topic 'q7' without judgments, which are ignored",
    ]


def test_lengths_are_listed_by_number() -> None:
    found = slices(evaluate(QRELS, RUN, "RR"), {"q1": "12 words", "q2": "3 words", "q3": "1 word"}, "length")
    assert list(found.parts) == ["1 word", "3 words", "12 words"]


def test_a_file_that_cannot_be_split_by_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "topics.tsv"
    path.write_text(TSV)
    with pytest.raises(DataError, match="no column 'kind' to split by; it has category, query and length"):
        categories(str(path), "kind")
    path.write_text("topic\tcategory\nq1\n")
    with pytest.raises(BadLineError, match=r"topics\.tsv:2: expected 2 columns, found 1"):
        categories(str(path), "category")
    path.write_text("q1 navigational\n")
    with pytest.raises(DataError, match="expected a header"):
        categories(str(path), "category")


def test_the_command_splits_its_table_and_its_json() -> None:
    asked = ("eval", "qrels.txt", "bm25.run", "-m", "RR", "--by", "category", "--topics-file", "topics.tsv")
    table = cranfield(*asked)
    assert [line.split()[:3] for line in table.out.splitlines()[:5]] == [
        ["run", "category", "topics"],
        ["bm25", "informational", "3"],
        ["bm25", "navigational", "2"],
        ["bm25", "transactional", "2"],
        ["bm25", "all", "7"],
    ]
    data = json.loads(cranfield(*asked, "--format", "json").out)
    assert [part["value"] for part in data["by"]["slices"]] == ["informational", "navigational", "transactional"]
    plain = json.loads(cranfield("eval", "qrels.txt", "bm25.run", "-m", "RR", "--format", "json").out)
    assert data["runs"] == plain["runs"]
    assert cranfield(*asked, "--format", "csv").out.startswith("run,category,topics,RR\nbm25,informational,3,")
    assert (EXAMPLES / "topics.tsv").read_text().startswith("topic\tcategory\tquery\n")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--by", "category"),
        ("--by", "category", "--topics-file", "topics.tsv", "--format", "trec"),
        ("--by", "category", "--topics-file", "topics.tsv", "--per-topic"),
        ("--by", "category", "--topics-file", "topics.tsv", "--bounds", "ties"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(wrong: tuple[str, ...]) -> None:
    answer = cranfield("eval", "qrels.txt", "bm25.run", *wrong)
    assert (answer.code, answer.out) == (2, "")
