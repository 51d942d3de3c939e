"""Exports of Quepid, Label Studio and doccano become labels of the people who gave them, checked as any other labels.

The samples are small ones of our own, in the layouts that the tools document or write.
"""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from cranfield import Document, Qrels, Topic
from cranfield.base.collection import Grade
from cranfield.base.errors import CranfieldError
from cranfield.commands.judging import add
from cranfield.formats.collection_folder import write_collection
from cranfield.judging import open_log
from cranfield.judging.label_import import read_events
from shell import cranfield
from workbench import served

if TYPE_CHECKING:
    from pathlib import Path

GRADES = {0: Grade("Not relevant"), 1: Grade("Relevant"), 2: Grade("Highly relevant")}
CASE = "query,docid,rating\nusb cable,d1,2\nusb cable,d2,0\nred shoes,,\n -5 degrees,d3,1\n"
BOOK = "query,docid,Ann Bee,bob@shop.example,Unknown\nusb cable,d1,2,1,\nusb cable,d2,,0,0\nred shoes,d3,1,,\n"
BOOK_JSON = {
    "name": "Shop",
    "show_rank": False,
    "query_doc_pairs": [
        {
            "query_text": "usb cable",
            "doc_id": "d1",
            "position": 1,
            "document_fields": "{}",
            "judgements": [
                {"rating": 2.0, "unrateable": False, "judge_later": False, "user_email": "ann@shop.example"},
                {"rating": None, "unrateable": True, "judge_later": False, "user_email": "bob@shop.example"},
                {"rating": None, "unrateable": False, "judge_later": True, "user_email": "cy@shop.example"},
            ],
        },
        {
            "query_text": "red shoes",
            "doc_id": "d3",
            "judgements": [{"rating": 1.0, "user_email": "bob@shop.example", "explanation": "the colour fits"}],
        },
    ],
}
CASE_JSON = {
    "case_name": "Shop",
    "queries": [{"query_text": "usb cable", "ratings": {"d1": 2, "d2": 0}}, {"query_text": "red shoes", "ratings": {}}],
}


def studio(choice: Any, person: Any, document: str = "d1", **more: Any) -> dict[str, Any]:
    """A task of Label Studio with one annotation."""
    kind, value = choice
    result = {"from_name": "relevance", "to_name": "text", "type": kind, "value": {kind: value}, "id": "x1"}
    annotation = {
        "id": 7,
        "completed_by": person,
        "result": [result],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-03-01T10:00:00.000000Z",
        "updated_at": "2026-03-01T11:00:00.000000Z",
        "lead_time": 4.5,
    }
    data = {"query": "usb cable", "doc_id": document, "text": "a cable"}
    return {"id": 1, "data": data, "annotations": [{**annotation, **more}], "predictions": [{"result": [result]}]}


STUDIO = [
    studio(("choices", ["Highly relevant"]), {"id": 3, "email": "ann@shop.example"}),
    studio(("rating", 1), 5),
    studio(("choices", ["Relevant"]), 5, was_cancelled=True),
    {"id": 4, "data": {"query": "usb cable", "doc_id": "d2"}, "annotations": []},
]
STUDIO_MIN = [
    {
        "query": "usb cable",
        "doc_id": "d1",
        "id": 1,
        "relevance": "Highly relevant",
        "annotator": 3,
        "annotation_id": 9,
        "created_at": "2026-03-01T10:00:00.000000Z",
        "updated_at": "2026-03-01T10:00:00.000000Z",
        "lead_time": 4.5,
    },
    {"query": "usb cable", "doc_id": "d2", "relevance": [{"rating": 0}], "annotator": 3, "annotation_id": 10},
]
STUDIO_CSV = (
    "annotation_id,annotator,created_at,doc_id,id,lead_time,query,relevance,updated_at\n"
    '9,"3","2026-03-01T10:00:00.000000Z",d1,1,4.5,usb cable,Highly relevant,"2026-03-01T10:00:00.000000Z"\n'
)
DOCCANO = [
    {"id": 1, "text": "a cable", "query": "usb cable", "doc_id": "d1", "label": ["Highly relevant"]},
    {"id": 2, "text": "another", "query": "usb cable", "doc_id": "d2", "label": ["0"]},
    {"id": 3, "text": "not yet", "query": "usb cable", "doc_id": "d3", "label": []},
]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


EXPECTED: dict[str, tuple[str, list[tuple[str, str, float | None, str]]]] = {
    "case.csv": (CASE, [("t1", "d1", 2, "case"), ("t1", "d2", 0, "case"), ("t3", "d3", 1, "case")]),
    "book.csv": (
        BOOK,
        [
            ("t1", "d1", 2, "Ann Bee"),
            ("t1", "d1", 1, "bob@shop.example"),
            ("t1", "d2", 0, "bob@shop.example"),
            ("t1", "d2", 0, "Unknown"),
            ("t2", "d3", 1, "Ann Bee"),
        ],
    ),
    "book.json": (
        json.dumps(BOOK_JSON),
        [
            ("t1", "d1", 2, "ann@shop.example"),
            ("t1", "d1", None, "bob@shop.example"),
            ("t2", "d3", 1, "bob@shop.example"),
        ],
    ),
    "case.json": (json.dumps(CASE_JSON, indent=1), [("t1", "d1", 2, "case"), ("t1", "d2", 0, "case")]),
    "studio.json": (json.dumps(STUDIO), [("t1", "d1", 2, "ann@shop.example"), ("t1", "d1", 1, "5")]),
    "min.json": (json.dumps(STUDIO_MIN, indent=2), [("t1", "d1", 2, "3"), ("t1", "d2", 0, "3")]),
    "studio.csv": (STUDIO_CSV, [("t1", "d1", 2, "3")]),
    "ann.jsonl": (lines(DOCCANO), [("t1", "d1", 2, "ann"), ("t1", "d2", 0, "ann")]),
    "bob.json": (json.dumps(DOCCANO), [("t1", "d1", 2, "bob"), ("t1", "d2", 0, "bob")]),
    "cy.csv": ("id,text,query,doc_id,label\n1,a cable,usb cable,d1,Relevant\n", [("t1", "d1", 1, "cy")]),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A workspace with three topics, three documents and named grades."""
    folder = tmp_path / "shop"
    topics = [Topic("t1", "usb cable"), Topic("t2", "red shoes"), Topic("t3", "-5 degrees")]
    documents = [Document(name, name, f"the text of {name}") for name in ("d1", "d2", "d3")]
    write_collection(folder, documents, topics, Qrels({"t1": {"d1": 1}}), grades=GRADES)
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_labels_arrive_under_the_names_of_people_with_topics_by_query_and_grades_by_label(
    shop: Path, name: str
) -> None:
    text, expected = EXPECTED[name]
    path = shop.parent / name
    path.write_text(text, encoding="utf-8")
    where = str(shop / "work.db")
    added = add(where, [str(path)], scale=[0, 1, 2])
    assert added.new == len(expected)
    with closing(open_log(where)) as log:
        events = log.events()
    assert [(each.topic, each.document, each.grade, each.assessor) for each in events] == expected
    assert {each.source for each in events} == {"import"}
    assert add(where, [str(path)], scale=[0, 1, 2]) == (0, len(expected))  # the same file adds nothing


def test_more_than_the_grade_arrives(shop: Path) -> None:
    path = shop.parent / "book.json"
    path.write_text(json.dumps(BOOK_JSON))
    _, unrateable, noted = read_events(str(path))
    assert unrateable.kind == "cannot-judge"
    assert noted.note == "the colour fits"
    path.write_text(json.dumps(STUDIO[1:2]))
    [event] = read_events(str(path))
    assert (event.seconds, event.time) == (4.5, "2026-03-01T10:00:00.000000Z")


REFUSED: dict[str, tuple[str, str]] = {
    "grade.jsonl": (lines([{**DOCCANO[0], "label": ["excellent"]}]), "1: expected a number as grade, or a label of"),
    "two.jsonl": (lines([DOCCANO[1], {**DOCCANO[0], "label": ["0", "1"]}]), "2: doccano: expected one label"),
    "torn.jsonl": (lines(DOCCANO[:1]) + '{"id": 2, "te', "2: doccano: expected an example with its labels"),
    "document.json": (json.dumps([{**STUDIO_MIN[0], "doc_id": ""}]), "no document in the data of the task"),
    "lost.csv": (BOOK.replace(",d3,", ",d9,"), "lost.csv:4: there is no document 'd9' in the collection"),
    "topic.csv": (CASE.replace("usb cable", "usb cables"), "no topic asks 'usb cables'"),
    "off.json": (json.dumps([studio(("rating", 5), 3)]), "expected a grade of 0, 1, 2, found 5"),
    "pair.json": (json.dumps({"query_doc_pairs": [{"query_text": "usb cable"}]}), "expected a pair with judgements"),
    "deep.json": ("[" * 100_000, ""),
    "questions.json": (
        json.dumps(
            [
                {
                    **STUDIO[0],
                    "annotations": [
                        {"completed_by": 1, "result": [{"from_name": n, "value": {"rating": 1}} for n in ("a", "b")]}
                    ],
                }
            ]
        ),
        "several answers (a, b)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_fault_is_named_with_its_line_and_nothing_is_added(shop: Path, name: str) -> None:
    text, problem = REFUSED[name]
    path = shop.parent / name
    path.write_text(text)
    with pytest.raises(CranfieldError) as refused:
        add(str(shop / "work.db"), [str(path)], scale=[0, 1, 2])
    assert problem in str(refused.value)
    assert not (shop / "work.db").exists()


def test_a_task_is_named_by_the_line_where_it_begins(shop: Path) -> None:
    path = shop.parent / "min.json"
    path.write_text(json.dumps([STUDIO_MIN[1], {**STUDIO_MIN[1], "query": None}], indent=0))
    line = path.read_text().splitlines().index("{", 10) + 1
    with pytest.raises(CranfieldError, match=rf"min\.json:{line}: Label Studio: no topic"):
        read_events(str(path))


def test_the_question_of_the_grade_is_named_as_a_column(shop: Path) -> None:
    path = shop.parent / "questions.json"
    path.write_text(REFUSED["questions.json"][0])
    answer = cranfield("judge", "add", shop / "work.db", path, "--field", "grade=b")
    assert answer.code == 0, answer.err
    assert "read as an export of Label Studio with 1 label" in answer.err


def test_plain_tables_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("query,docid,relevance\nq1,d1,2\n")
    [event] = read_events(str(path))
    assert (event.topic, event.document, event.grade) == ("q1", "d1", 2)


def test_an_uploaded_archive_of_doccano_has_a_file_per_person(shop: Path) -> None:
    """Two people may say the same, and one may have nothing to say."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, rows in (("ann", DOCCANO), ("bob", DOCCANO), ("cy", DOCCANO[2:])):
            archive.writestr(f"{name}.jsonl", lines(rows))
    with served(shop) as site:
        lead = site.client("zoe")
        uploaded = lead.ask(
            "POST", "/import/file.json?part=labels&name=all.zip", packed.getvalue(), Sec_Fetch_Site="same-origin"
        )
        assert uploaded.status == 200, uploaded.text
        assert lead.send("/import.json", {"do": "labels"}).status == 200
        while (state := lead.get("/import.json").json()["import"])["state"] == "running":
            pass
        assert state["state"] == "done", state
        assert "ann.jsonl: read as an export of doccano with 2 labels" in state["notes"]
        events = [each for each in site.bench.log.events() if each.source == "import"]
    assert sorted((each.assessor, each.document, each.grade) for each in events) == [
        ("ann", "d1", 2),
        ("ann", "d2", 0),
        ("bob", "d1", 2),
        ("bob", "d2", 0),
    ]


def test_a_lead_names_the_question_of_the_grade_in_the_browser(shop: Path, browser: Any) -> None:
    path = shop.parent / "questions.json"
    path.write_text(REFUSED["questions.json"][0])
    with served(shop) as site:
        context = site.context(browser, "zoe", "lead")
        page = context.new_page()
        page.goto("/import")
        page.get_by_label("File of labels").set_input_files(path)
        page.get_by_role("button", name="Check and add").click()
        page.get_by_text("several answers (a, b)").wait_for()
        page.get_by_text("Names of the columns").click()
        page.get_by_label("Grade, or the question").fill("b")
        page.get_by_role("button", name="Check and add").click()
        page.get_by_text("Added 1 label").wait_for()
        page.get_by_text("read as an export of Label Studio").wait_for()
        context.close()
