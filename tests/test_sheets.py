"""A pool as a sheet for assessors: written for spreadsheets, filled in, and read back as judgments."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import evaluate, pool, read_collection, read_qrels
from cranfield.base.errors import BadLineError, DataError, FormatError
from cranfield.base.results import BEGINS_FORMULA
from cranfield.formats.label_files import read_judgments
from cranfield.formats.pool_files import LONGEST, SheetTexts, graded, guarded, read_pool, read_sheet, sheet_lines
from hypotheses import examples
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

ODD = [
    "007",
    "1e5",
    "2024-01-02",
    "=1+1",
    "@x",
    "-3",
    "'quoted",
    "a,b;c",
    'say "x"',
    "検索",
    "SEPT2",
    "true",
    "a\nb",
    " x ",
    "1" * 17,
]
RUNS = (EXAMPLES / "bm25.run", EXAMPLES / "dense.run")


def cells(raw: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), delimiter=delimiter))


def filled(raw: bytes, grades: list[str], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    """A sheet after a spreadsheet: grades typed, saved with its own delimiter and encoding."""
    head, *rows = cells(raw)
    for row, grade in zip(rows, grades, strict=False):
        row[head.index("grade")] = grade
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([head, *rows])
    return file.getvalue().encode(encoding)


def sheet(documents: list[str], texts: SheetTexts | None = None) -> bytes:
    return b"".join(sheet_lines([("q1", document, "") for document in documents], texts))


# writing


def test_a_sheet_has_a_byte_order_mark_a_header_and_a_row_a_document():
    raw = sheet(["d1"], SheetTexts({"q1": "when to sow"}, {"d1": ("Sowing", "In\nspring.")}))
    assert raw.startswith(b"\xef\xbb\xbftopic,query,document,title,text,grade,note\r\n")
    assert cells(raw)[1] == ["q1", "when to sow", "d1", "Sowing", "In spring.", "", ""]
    assert cells(sheet(["d1"])) == [["topic", "document", "grade", "note"], ["q1", "d1", "", ""]]


def test_no_cell_is_a_formula_and_long_texts_are_cut_between_words():
    evil = '=HYPERLINK("http://x")'
    raw = sheet([evil], SheetTexts({"q1": evil}, {evil: (evil, "word " * 5000)}))
    for cell in cells(raw)[1]:
        assert not cell.startswith(BEGINS_FORMULA)
    text = cells(raw)[1][4]
    assert text.endswith("word …")
    assert len(text) <= LONGEST + 2


def test_what_was_not_drawn_is_not_asked_for():
    made = pool({"a": {"q": {f"d{i}": 20.0 - i for i in range(20)}}}, strategy="sample(rate=0.25)")
    drawn = [item.document for item in made if item.priority > 0]
    assert len(drawn) < len(made)
    assert [row[1] for row in cells(b"".join(made.sheet()))[1:]] == drawn


def test_ids_that_are_no_utf8_are_refused_by_name():
    with pytest.raises(FormatError, match=r"caf.*not UTF-8.*use jsonl"):
        sheet(["caf\udce9"])


# and back


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_odd_ids_come_back_byte_for_byte(delimiter, encoding, tmp_path):
    path = tmp_path / "filled.csv"
    path.write_bytes(filled(sheet(ODD), ["2"] * len(ODD), delimiter, encoding))
    assert read_qrels(path).to_dict() == {"q1": dict.fromkeys(ODD, 2.0)}
    assert [label.document for label in read_judgments(path)] == ODD
    assert [item.document for item in read_pool(path)] == ODD


@examples(60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, unique=True))
def test_any_ids_come_back(ids):
    marks = graded(filled(sheet(ids), ["1"] * len(ids)), "sheet")
    assert [mark.document for mark in marks] == ids


def as_a_spreadsheet_would(cell: str) -> str:
    """What is left of a cell that was taken for a number, as Excel does it."""
    try:
        return f"{float(cell):.15g}"
    except ValueError:
        return cell


def test_a_spreadsheet_that_takes_cells_for_numbers_changes_no_id():
    ids = [*ODD, "42", "0", "123456789012345", "1234567890123456", "0.50", "1.", "+7", "inf", "nan", "1_0"]
    assert [as_a_spreadsheet_would(guarded(each)).removeprefix("'") for each in ids if each.strip() == each] == [
        each for each in ids if each.strip() == each
    ]


def test_rows_without_a_grade_are_left_out(tmp_path):
    path = tmp_path / "filled.csv"
    path.write_bytes(filled(sheet(["a", "b", "c"]), ["2", " ", "0"]) + b",,,\r\n\r\n")
    assert read_qrels(path).to_dict() == {"q1": {"a": 2.0, "c": 0.0}}
    path.write_bytes(sheet(["a"]))
    with pytest.raises(DataError, match="no row has a grade yet"):
        read_qrels(path)


@pytest.mark.parametrize(("typed", "read"), [("2,5", 2.5), ("2.5", 2.5), ("-1", -1.0), (" 3 ", 3.0)])
def test_grades_may_have_a_decimal_comma_where_semicolons_separate(typed, read):
    [mark] = graded(filled(sheet(["a"]), [typed], ";"), "sheet")
    assert mark.grade == read


@pytest.mark.parametrize("typed", ["good", "2?", "nan", "inf", "1,500"])
def test_a_bad_grade_is_named_with_its_line(typed):
    with pytest.raises(BadLineError, match=rf"filled.csv:4: expected a number or nothing.*'{typed[0]}"):
        list(graded(filled(sheet(["a", "b", "c"]), ["1", "2", typed]), "filled.csv"))


def test_the_line_is_right_below_a_cell_of_two_lines():
    with pytest.raises(BadLineError, match="x.csv:4: expected a number"):
        list(graded(filled(sheet(["a\nb", "c"]), ["1", "bad"]), "x.csv"))


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "cp1252"), ("\t", "utf-16")])
def test_a_sheet_that_a_spreadsheet_saved_in_its_own_encoding_is_read(tmp_path, delimiter, encoding):
    path = tmp_path / "filled.csv"
    path.write_bytes(filled(sheet(["a", "café"]), ["1", "2"], delimiter, encoding))
    assert read_qrels(path).to_dict() == {"q1": {"a": 1.0, "café": 2.0}}
    assert [label.document for label in read_judgments(path)] == ["a", "café"]
    assert [item.document for item in read_pool(path)] == ["a", "café"]


def test_a_sheet_of_two_encodings_is_refused_with_its_line(tmp_path):
    path = tmp_path / "filled.csv"
    raw = filled(sheet(["a", "café"]), ["1", "2"])
    path.write_bytes(raw + "q1,été,1,\r\n".encode("cp1252"))
    with pytest.raises(BadLineError, match=r"filled.csv:4: expected UTF-8 as elsewhere in the file, found byte 0xe9"):
        read_qrels(path)


def test_two_grades_of_one_document_are_refused_and_the_same_twice_is_not():
    twice = filled(sheet(["a", "a"]), ["1", "1"])
    assert len(list(graded(twice, "x"))) == 1
    with pytest.raises(BadLineError, match="x:3: document 'a' of topic 'q1' has grade 2 here, and 1 on line 2"):
        list(graded(filled(sheet(["a", "a"]), ["1", "2"]), "x"))


def test_an_empty_id_and_a_file_that_is_no_sheet_are_refused():
    with pytest.raises(BadLineError, match="x:2: expected a document, found an empty cell"):
        list(read_sheet(b"topic,document,grade,note\nq,,1,\n", "x"))
    with pytest.raises(FormatError, match="expected a sheet with columns topic, document, grade, note"):
        list(read_sheet(b"topic,document,grade\nq,a,1\n", "x"))


def test_plain_csv_of_judgments_is_read_as_before(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("topic,document,grade\nq,'a,1\n")
    assert read_qrels(path).to_dict() == {"q": {"'a": 1.0}}


# the command


def test_the_whole_round_by_commands(tmp_path: Path):
    made = cranfield("pool", *RUNS, "--depth", 3, "--assessors", "ann,bob", "-o", "pool.csv", folder=tmp_path)
    assert "wrote pool.csv (1 kB)" in made.err
    raw = (tmp_path / "pool.csv").read_bytes()
    assert cells(raw)[0] == ["topic", "document", "grade", "note", "assessor"]
    (tmp_path / "filled.csv").write_bytes(filled(raw, ["1", "", "2"] * 99, ";"))
    told = cranfield("pool", "qrels", "pool.csv", "filled.csv", "-o", "judged.txt", folder=tmp_path)
    count = len(cells(raw)) - 1
    empty = len(range(1, count, 3))
    assert f"{count - empty} judgments; {empty} documents of the pool have no label" in told.err
    assert cranfield("convert", "filled.csv", "same.txt", folder=tmp_path).code == 0
    same = read_qrels(tmp_path / "same.txt")
    assert same.to_dict() == read_qrels(tmp_path / "judged.txt").to_dict()
    assert evaluate(tmp_path / "filled.csv", RUNS[0], "AP").means() == evaluate(same, RUNS[0], "AP").means()
    assert {label.assessor for label in read_judgments(tmp_path / "filled.csv")} == {"ann", "bob"}


def test_ids_that_the_pool_does_not_know_are_named(tmp_path: Path):
    cranfield("pool", *RUNS, "--depth", 1, "-o", "pool.jsonl", folder=tmp_path)
    (tmp_path / "filled.csv").write_text("topic,document,grade,note\nq1,7,1,\n")
    told = cranfield("pool", "qrels", "pool.jsonl", "filled.csv", "-o", "judged.txt", folder=tmp_path)
    assert "note: 1 label of documents that are not in the pool, such as '7' of topic 'q1'" in told.err


def test_a_sheet_has_the_texts_of_its_collection(tmp_path: Path):
    shop = read_collection("allotment")
    topic, document = shop.topics[0], next(shop.documents())
    made = pool({"one": {topic.id: {document.id: 1.0}}})
    [head, row] = cells(b"".join(made.sheet(shop)))
    assert dict(zip(head, row, strict=True))["query"] == topic.title
    assert dict(zip(head, row, strict=True))["title"] == document.title


def test_a_sampled_pool_says_that_its_sheet_knows_no_chances(tmp_path: Path):
    made = cranfield("pool", *RUNS, "--depth", 5, "--strategy", "sample(rate=0.5)", "-o", "pool.csv", folder=tmp_path)
    assert "keep the pool as .jsonl as well" in made.err
