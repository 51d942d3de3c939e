"""Label tables as shops export them: one reader for import, eval, check, judge add and topics, in commands and in Python."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import evaluate, read_qrels, read_run
from cranfield.base.errors import BadLineError, ConventionError, DataError, DuplicateError, FormatError
from cranfield.base.notifications import notes_to
from cranfield.collections.check import check
from cranfield.formats.csv_tables import (
    DELIMITERS,
    Dialect,
    NumberReader,
    SeparatedValues,
    choose_delimiter,
    detect_encoding,
    dialect_in_words,
)
from cranfield.formats.grade_scales import grade_map
from cranfield.formats.importers.collection_import import import_collection
from cranfield.formats.importers.source import Files
from cranfield.formats.topic_tables import read_topic_table
from hypotheses import examples
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

STARS = "1=0,2=0,3=1,4=2,5=3"
MAPPED = {1: 0, 2: 0, 3: 1, 4: 2, 5: 3}

# one shop's files: each department saved its tables with another program
PRODUCTS = 'sku;title;description;price\nA1;Müsli;mit Äpfeln;4,99\nA2;Röstkaffee;"kräftig;\nlang geröstet";12,50\n'
QUERIES = "id\tquery\ttraffic\nq1\tMüsli\t1200\nq2\tKaffee\t266,5\n"
LABELS = "query;sku;rating\nmüsli;A1;5\nMÜSLI;A2;1\nKaffee;A2;4\nkaffee;A2;3\nkaffee;A1;2\n"
RUN = "query|sku|score\nMüsli|A1|2,5\nMüsli|A2|1,75\nKaffee|A1|9,5\nKaffee|A2|0,5\n"
JOINED = {
    "q1": {"A1": 3.0, "A2": 0.0},
    "q2": {"A2": 1.0, "A1": 0.0},
}  # by hand: the last label of Kaffee and A2 has 3 stars


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "products.csv").write_bytes(PRODUCTS.encode("cp1252"))
    (tmp_path / "queries.txt").write_bytes(QUERIES.encode("utf-16"))
    (tmp_path / "labels.csv").write_bytes(LABELS.encode("cp1252"))
    (tmp_path / "search.csv").write_bytes(RUN.encode("utf-8-sig"))
    return tmp_path


def notes(read, *args, **keywords) -> list[str]:
    """What is said while a function reads."""
    sentences: list[str] = []
    with notes_to(sentences.append):
        read(*args, **keywords)
    return sentences


# the shop, by commands alone and in Python

SETTLED = ("--grades", STARS, "--duplicates", "last", "--ignore-case")


def test_import_reads_the_files_of_the_shop_as_they_are(shop):
    typed = ("import", "products.csv", "shop", "--topics-file", "queries.txt", "--qrels", "labels.csv", *SETTLED)
    answer = cranfield(*typed, "--from", "csv", folder=shop)
    assert answer.code == 0, answer.err
    assert read_qrels(shop / "shop").to_dict() == JOINED
    documents = [json.loads(line) for line in (shop / "shop" / "documents.jsonl").read_text().splitlines()]
    assert documents[1] == {"id": "A2", "title": "Röstkaffee", "text": "kräftig;\nlang geröstet", "price": "12,50"}
    assert (
        "products.csv: detected semicolons between columns, encoding Windows-1252, line breaks in quotes" in answer.err
    )
    assert "queries.txt: detected encoding UTF-16" in answer.err
    assert "labels.csv: detected semicolons between columns, encoding Windows-1252" in answer.err
    meta = (shop / "shop" / "collection.toml").read_text()
    assert 'grades = "1=0, 2=0, 3=1, 4=2, 5=3"' in meta
    assert 'encoding = "windows-1252, utf-16-le"' in meta


def test_eval_reads_labels_topics_and_a_run_of_the_shop_as_they_are(shop):
    typed = ("eval", "labels.csv", "search.csv", "--topics-file", "queries.txt", "-m", "RR nDCG@10", *SETTLED)
    answer = cranfield(*typed, "--format", "json", "--per-topic", folder=shop)
    assert answer.code == 0, answer.err
    plain = evaluate(JOINED, {"q1": {"A1": 2.5, "A2": 1.75}, "q2": {"A1": 9.5, "A2": 0.5}}, "RR nDCG@10")
    [run] = json.loads(answer.out)["runs"]
    assert run["topics"]["q2"]["RR"] == 0.5
    for topic, values in run["topics"].items():
        assert values["nDCG@10"] == plain.at(measure="nDCG@10", topic=topic)
    assert answer.err.count("search.csv: detected pipes between columns, decimal commas") == 1


@pytest.mark.parametrize("verb", ["compare", "leaderboard", "gate", "explain", "report"])
def test_every_verb_that_scores_takes_the_options_of_tables(shop, verb):
    (shop / "other.csv").write_bytes(RUN.replace("0,5", "99,5").encode("cp1252"))
    runs = ["search.csv"] if verb == "explain" else ["search.csv", "other.csv"]
    more = {"explain": ["--topic", "q1"], "report": ["-o", "page.html"]}.get(verb, [])
    said = ("--decimal", "comma")  # which the tables agree with
    typed = (verb, "labels.csv", *runs, "--topics-file", "queries.txt", *SETTLED, *said, *more)
    answer = cranfield(*typed, folder=shop)
    assert answer.code in (0, 3 if verb == "gate" else 0), answer.both
    assert "Traceback" not in answer.both
    assert "none of the" not in answer.both


def test_check_sees_the_labels_of_the_shop_as_eval_does(shop):
    answer = cranfield("check", "labels.csv", "--topics-file", "queries.txt", *SETTLED, folder=shop)
    assert answer.code == 0, answer.both
    assert "utf" not in answer.out
    assert "labels.csv: detected semicolons between columns, encoding Windows-1252" in answer.err
    strict = cranfield("check", "labels.csv", "--topics-file", "queries.txt", "--ignore-case", folder=shop)
    assert strict.code == 3
    assert "judged-in-conflict" in strict.out  # Kaffee and kaffee are one topic


def test_judge_add_takes_the_labels_of_the_shop(shop):
    typed = ("judge", "add", "labels.jsonl", "labels.csv", "--topics-file", "queries.txt", *SETTLED)
    answer = cranfield(*typed, "--assessor", "ann", folder=shop)
    assert answer.code == 0, answer.err
    assert "4 labels added" in answer.err
    exported = cranfield("judge", "export", "labels.jsonl", "--to", "qrels", folder=shop)
    rows = {tuple(line.split()[::2]): float(line.split()[3]) for line in exported.out.splitlines()}
    assert rows == {(topic, document): grade for topic, grades in JOINED.items() for document, grade in grades.items()}
    again = cranfield(*typed, "--assessor", "ann", folder=shop)
    assert "0 labels added" in again.err


def test_convert_makes_plain_qrels_of_the_labels(shop):
    answer = cranfield("convert", "labels.csv", "labels.jsonl", "--kind", "qrels", "--grades", STARS, folder=shop)
    assert answer.code == 0, answer.err
    assert read_qrels(shop / "labels.jsonl")["müsli"] == {"A1": 3.0}


def test_the_same_in_python_with_the_same_keywords(shop):
    topics = read_topic_table(str(shop / "queries.txt"))
    assert topics.queries == {"q1": "Müsli", "q2": "Kaffee"}
    assert topics.numbers("traffic") == {"q1": 1200.0, "q2": 266.5}
    said = {"grades": MAPPED, "duplicates": "last", "ignore_case": True}
    labels, run = str(shop / "labels.csv"), str(shop / "search.csv")
    scores = evaluate(labels, run, "RR", queries=topics.queries, **said)
    assert [scores.at(topic=topic) for topic in ("q1", "q2")] == [1.0, 0.5]
    assert not [each for each in check(labels, queries=topics.queries, **said) if each.severity == "error"]
    files = Files(topics=[str(shop / "queries.txt")], qrels=[labels])
    done = import_collection(shop / "products.csv", shop / "made", layout="csv", files=files, **said)
    assert done.collection.qrels.to_dict() == JOINED


# delimiters


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_every_delimiter_and_encoding_reads_as_the_plain_file(delimiter, encoding):
    text = "query,sku,rating\nMüsli,A1,3\nred mug,A2,0\n".replace(",", delimiter)
    assert read_qrels(text.encode(encoding)).to_dict() == {"Müsli": {"A1": 3.0}, "red mug": {"A2": 0.0}}
    assert read_qrels(gzip.compress(text.encode(encoding))).topics == ["Müsli", "red mug"]


def test_a_plain_file_is_not_reported(tmp_path):
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        (tmp_path / name).write_text("query,sku,rating\nMüsli,A1,3.5\n".replace(",", delimiter))
        assert notes(read_qrels, tmp_path / name) == []
    (tmp_path / "b.csv").write_text("query\tsku\trating\na\tA1\t3\n")
    assert notes(read_qrels, tmp_path / "b.csv") == [f"{tmp_path / 'b.csv'}: detected tabs between columns"]


def test_what_two_delimiters_fit_is_refused_and_an_option_settles_it():
    text = b"query;sku,rating;grade,sku;query\nq;a,1;2,b;c\n"
    with pytest.raises(
        FormatError, match=r"<bytes>:1: commas or semicolons may separate the columns; delimiter=… says"
    ):
        choose_delimiter(b"query;rating,old\na;4,5\n", "<bytes>", lambda names: True, Dialect(), DELIMITERS)
    with pytest.raises(FormatError):
        read_qrels(
            text, fields={"topic": "query", "document": ["sku", "sku,rating"], "grade": ["grade", "rating;grade"]}
        )
    table = b"query;sku;rating,old\nq;a;4,5\n"
    fields = {"grade": "rating,old"}
    assert read_qrels(table, fields=fields, delimiter="semicolon").to_dict() == {"q": {"a": 4.5}}


def test_the_delimiter_is_settled_by_the_rows_where_the_header_fits_two():
    head = b"id;query,text\nq1;red, blue\nq2;green\n"
    assert choose_delimiter(head, "f", lambda names: True, Dialect(), DELIMITERS) == ";"


@pytest.mark.parametrize("option", [{"delimiter": ":"}, {"encoding": "utf-99"}, {"decimal": "'"}])
def test_an_unknown_option_is_refused_with_what_there_is(option, shop):
    with pytest.raises(ConventionError, match=next(iter(option)) if "encoding" not in option else "no encoding"):
        Dialect(**option)
    [(name, value)] = option.items()
    answer = cranfield("eval", "labels.csv", "search.csv", f"--{name}", value, folder=shop)
    assert answer.code == 2, answer.both


# encodings


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (
            b"query,sku\ncaf\xe9,A1\n\xc3\xa9t\xc3\xa9,A2\n",
            "f:2: expected UTF-8 as elsewhere in the file, found byte 0xe9",
        ),
        (b"query,sku\nok,A0\n\xcf\xf0\xe8\xe2\xe5\xf2,A1\n", "f:3: expected UTF-8, UTF-16 or Windows-1252, found byte"),
        (b"query,sku\ncaf\x8e,A1\n", "f:2: expected UTF-8, UTF-16 or Windows-1252, found byte 0x8e"),  # Mac Roman
        (b"query,sku\n\x82t\x82,A1\n", None),  # DOS: only quotes in Windows-1252, so it cannot be told
    ],
)
def test_an_encoding_that_is_not_plain_is_refused_with_its_line(raw, found):
    if found is None:
        assert detect_encoding(raw, "f") == "windows-1252"
        return
    with pytest.raises(BadLineError, match=found):
        detect_encoding(raw, "f")


def test_a_wrong_guess_is_overridden():
    raw = "query;sku;rating\nПривет;A1;3\n".encode("cp1251")
    with pytest.raises(BadLineError, match=r"<bytes>:2: .*encoding=… names another"):
        read_qrels(raw)
    assert read_qrels(raw, encoding="cp1251").to_dict() == {"Привет": {"A1": 3.0}}
    with pytest.raises(BadLineError, match=r"<bytes>:2: expected utf-8, found byte 0xcf"):
        read_qrels(raw, encoding="utf-8")


@examples(60)
@given(st.text("aäöüßéèçñÄÉ ", min_size=1, max_size=12))  # which are never UTF-8 by chance
def test_western_texts_in_windows_1252_are_read_or_refused_never_changed(text):
    raw = f"query;sku;rating\n{text};A1;3\n".encode("cp1252")
    try:
        topics = read_qrels(raw).topics
    except BadLineError as error:
        topics = [text] if error.line == 2 else []
    assert topics == [text]


def test_a_byte_far_behind_the_first_block_is_read_in_the_encoding_of_the_file():
    rows = "".join(f"q{i};A{i};1\n" for i in range(20_000))
    assert read_qrels(f"query;sku;rating\n{rows}Müsli;A1;3\n".encode("cp1252"))["Müsli"] == {"A1": 3.0}


# numbers


def test_the_first_decimal_sign_decides_and_the_other_is_refused_with_both_lines():
    with pytest.raises(BadLineError, match=r"<bytes>:4: .*found '2.5', expected a decimal comma as on line 3"):
        read_qrels(b"query;sku;rating\nq;a;4\nq;b;4,5\nq;c;2.5\n")
    with pytest.raises(BadLineError, match=r"<bytes>:3: .*found '4,5', expected a decimal point as on line 2"):
        read_qrels(b"query;sku;rating\nq;b;2.5\nq;c;4,5\n")
    assert read_qrels(b'query,sku,rating\nq,b,"2,5"\n')["q"] == {"b": 2.5}


def test_a_number_that_may_have_thousands_is_refused_and_an_option_settles_it():
    raw = b"query;sku;score\nq;a;1,234\nq;b;0,5\n"
    with pytest.raises(BadLineError, match=r"<bytes>:2: .*'1,234' may be 1\.234 or 1234; decimal=… says which"):
        read_run(raw)
    assert read_run(raw, decimal="comma")["q"] == [("a", 1.234), ("b", 0.5)]
    assert NumberReader().read("0,125", 1) == 0.125  # no thousands begin with 0
    with pytest.raises(BadLineError, match="found '4.5', expected a decimal comma"):
        read_run(b"query;sku;score\nq;a;4.5\n", decimal=",")


@pytest.mark.parametrize("odd", ["1.234,5", "1,2,3", "4;5", "vier", ",", "4,"])
def test_what_is_no_number_is_refused_with_its_line(odd):
    with pytest.raises(BadLineError, match=r"<bytes>:2: expected "):
        read_qrels(f'query;sku;rating\nq;a;"{odd}"\n'.encode())


# quotes


def test_the_line_of_an_error_is_right_below_a_cell_of_three_lines():
    raw = b'query;sku;note;rating\nq;a;"one\ntwo\nthree";3\nq;b;x;bad\n'
    with pytest.raises(BadLineError, match=r"<bytes>:5: expected a number in column 4 \(rating\), found 'bad'"):
        read_qrels(raw)
    assert notes(read_qrels, raw.replace(b"bad", b"1")) == [
        "<bytes>: detected semicolons between columns, line breaks in quotes"
    ]
    with pytest.raises(BadLineError, match=r"<bytes>:2: expected cells with semicolons between them"):
        read_qrels(b'query;sku;rating\nq;"a;3\nq;b;1\n')


@examples(60)
@given(
    st.lists(st.lists(st.text('ab;,"\n\t|é ', max_size=5), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from(list(DELIMITERS)),
)
def test_any_cells_come_back_in_every_dialect(cells, delimiter):
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in cells]
    text = "\n".join(delimiter.join(row) for row in [["query", "sku", "rating"], *quoted]) + "\n"
    table = SeparatedValues(text.encode(), "f", lambda names: names == ["query", "sku", "rating"])
    assert (table.names, [row.cells for row in table]) == (["query", "sku", "rating"], cells)


# grades, duplicates, case, lenient


@pytest.mark.parametrize("said", ["", "1", "1=", "=1", "1=a", "1=0,1=1", "a=0"])
def test_a_bad_mapping_of_grades_is_refused(said, shop):
    with pytest.raises(ConventionError, match="grades"):
        grade_map(said)
    answer = cranfield("eval", "labels.csv", "search.csv", "--grades", said, folder=shop)
    assert answer.code == 2


def test_a_grade_that_is_not_named_is_refused_with_its_line(shop):
    text = b"query;sku;rating\nq;a;5\nq;b;6\n"
    with pytest.raises(
        BadLineError, match=r"<bytes>:3: grade 6 is not among those that grades names \(1, 2, 3, 4, 5\)"
    ):
        read_qrels(text, grades=MAPPED)
    with pytest.raises(BadLineError, match=r"<bytes>:2: grade 6 is not"):
        read_qrels(b"q 0 a 5\nq 0 b 6\n", grades=STARS)
    (shop / "six.csv").write_bytes(text)
    for typed in (
        ("eval", "six.csv", "search.csv"),
        ("check", "six.csv"),
        ("judge", "add", "log.jsonl", "six.csv", "--assessor", "ann"),
        ("convert", "six.csv", "six.txt", "--kind", "qrels"),
        ("import", "products.csv", "made", "--qrels", "six.csv"),
    ):
        answer = cranfield(*typed, "--grades", STARS, folder=shop)
        assert answer.code == 3, typed
        assert "grade" in answer.both
        assert "6" in answer.both
    assert not (shop / "log.jsonl").exists()
    assert not (shop / "made").exists()


@pytest.mark.parametrize(("which", "grade"), [("first", 2.0), ("last", 1.0), ("best", 3.0)])
@pytest.mark.parametrize(
    "text",
    [
        b"query;sku;rating\nq;a;2\nq;a;3\nq;a;1\nq;b;0\n",
        b"q 0 a 2\nq 0 a 3\nq 0 a 1\nq 0 b 0\n",
        b"topic,document,grade,note\nq,a,2,\nq,a,3,\nq,a,1,\nq,b,0,\n",
    ],
    ids=["csv", "trec", "sheet"],
)
def test_the_grade_that_counts_twice_is_chosen_in_every_format(text, which, grade):
    assert read_qrels(text, duplicates=which).to_dict() == {"q": {"a": grade, "b": 0.0}}
    with pytest.raises(BadLineError):
        read_qrels(text)


def test_two_labels_of_one_document_are_named_with_both_lines(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('query;sku;note;rating\nz;a;x;1\nq;a;"two\nlines";2\nz;b;x;1\nq;a;x;3\n')
    with pytest.raises(
        DuplicateError, match=r"labels\.csv:6: document 'a' is judged twice for topic 'q', first on line 3"
    ):
        read_qrels(path)
    path.write_text("query;sku;rating\nMug;a;1\nmug;a;2\n")
    with pytest.raises(
        DuplicateError, match=r"labels\.csv:3: document 'a' is judged twice for topic 'q1', first on line 2"
    ):
        evaluate(str(path), {"q1": {"a": 1.0}}, "RR", queries={"q1": "mug"}, ignore_case=True)


def test_case_is_ignored_only_if_asked_and_the_very_text_comes_first():
    run, queries = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, {"q1": "mug", "q2": "Mug", "q3": "red mug"}
    labels = {"Mug": {"a": 1}, "RED mug": {"a": 1}}
    with pytest.raises(DataError, match="no topic asks 'RED mug' .*; ignore_case=True joins it"):
        evaluate(labels, run, "RR", queries=queries)
    assert evaluate(labels, run, "RR", queries=queries, ignore_case=True).topics == ["q2", "q3"]
    with pytest.raises(DataError, match="topics 'q1' and 'q2' both ask 'MUG'"):
        evaluate({"MUG": {"a": 1}}, run, "RR", queries=queries, ignore_case=True)


def test_lenient_reading_passes_over_bad_rows_in_every_command(shop):
    with (shop / "labels.csv").open("ab") as file:
        file.write(b"kaffee;A1;?\nkaffee;A1\n")
    with (shop / "queries.txt").open("ab") as file:
        file.write("q3\tTee\n".encode("utf-16-le"))
    with (shop / "products.csv").open("ab") as file:
        file.write(b"A3;Tee\n")
    commands = {
        "eval": ("eval", "labels.csv", "search.csv", "--topics-file", "queries.txt"),
        "check": ("check", "labels.csv", "--topics-file", "queries.txt"),
        "judge": ("judge", "add", "log.jsonl", "labels.csv", "--assessor", "ann", "--topics-file", "queries.txt"),
        "import": (
            "import",
            "products.csv",
            "made",
            "--from",
            "csv",
            "--topics-file",
            "queries.txt",
            "--qrels",
            "labels.csv",
        ),
    }
    for verb, typed in commands.items():
        strict = cranfield(*typed, *SETTLED, folder=shop)
        assert strict.code == 3, (verb, strict.both)
        answer = cranfield(*typed, *SETTLED, "--lenient", folder=shop)
        assert answer.code == 0, (verb, answer.both)
        assert "2 " in answer.both, (verb, answer.both)
    assert read_qrels(shop / "made").to_dict() == JOINED


def test_a_note_has_nothing_to_say_of_the_usual_way():
    assert dialect_in_words("a.csv", ",", "utf-8") == []
    assert dialect_in_words("a.txt", "\t", "utf-8", line_breaks=True) == []
