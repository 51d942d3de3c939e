"""The folder of a collection: written and read back, described, compared, listed; and what `check` finds in it."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Collection, Document, Qrels, Topic, evaluate, read_collection
from cranfield.base.collection import Grade
from cranfield.base.errors import BadLineError, DataError, TopicError
from cranfield.base.findings import COLLECTION_CODES
from cranfield.base.results import Layout
from cranfield.collections.check.collection_checks import Closeness, WordSample, check_collection, words
from cranfield.collections.describe import Distribution, diff, show, stats
from cranfield.formats.catalogue import CATALOGUE, recognised
from cranfield.formats.collection_folder import (
    bundled_names,
    hash_of,
    read_documents,
    stamp,
    toml_text,
    write_collection,
)
from cranfield.formats.importers.collection_import import import_collection
from cranfield.formats.importers.source import Files
from shell import cranfield

DOCUMENTS = [Document("d1", "Wing flutter", "a wing in a slipstream", {"year": 1958}), Document("d2", text="heat")]
TOPICS = [Topic("q1", "flutter", "What causes it?", "Theory only."), Topic("q2", "heat transfer")]
GRADES = {2: Grade("relevant", "It answers the need."), 0: Grade("not relevant")}


def toy(folder, **changes) -> Collection:
    given = {"documents": DOCUMENTS, "topics": TOPICS, "qrels": Qrels({"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 2}})}
    given |= {"grades": GRADES, "relevant_from": 2, "meta": {"title": "A toy"}}
    return write_collection(folder, **{**given, **changes})


# the folder


def test_a_collection_written_is_the_same_when_read(tmp_path):
    written = toy(tmp_path / "toy", subtopics=Qrels({"q1": {"d1": 1}}))
    read = read_collection(tmp_path / "toy")
    assert list(read.documents()) == DOCUMENTS
    assert read.topics == TOPICS
    assert read.qrels.to_dict() == {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 2}}
    assert read.subtopics is not None
    assert (read.name, read.title, read.relevant_from, read.grades) == ("toy", "A toy", 2, dict(sorted(GRADES.items())))
    assert read.n_documents == 2
    assert repr(written) == "<Collection toy: 2 documents, 2 topics, 3 judgments>"


def test_the_files_are_plain_and_their_hashes_are_right(tmp_path):
    toy(tmp_path / "toy")
    assert sorted(os.listdir(tmp_path / "toy")) == ["collection.toml", "documents.jsonl", "qrels.txt", "topics.jsonl"]
    first = (tmp_path / "toy" / "documents.jsonl").read_text().splitlines()[0]
    assert json.loads(first) == {"id": "d1", "title": "Wing flutter", "text": "a wing in a slipstream", "year": 1958}
    assert (tmp_path / "toy" / "qrels.txt").read_text() == "q1 0 d1 2\nq1 0 d2 0\nq2 0 d2 2\n"
    meta = tomllib.loads((tmp_path / "toy" / "collection.toml").read_text())
    assert meta["counts"] == {"documents": 2, "topics": 2, "judgments": 3, "relevant": 2}
    assert meta["grades"]["2"] == {"label": "relevant", "meaning": "It answers the need."}
    assert meta["hashes"]["qrels.txt"] == hash_of(tmp_path / "toy" / "qrels.txt")


def test_the_same_collection_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        toy(tmp_path / name, meta={"name": "toy"})
    for file in os.listdir(tmp_path / "a"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_collection_without_judgments_has_none(tmp_path):
    collection = toy(tmp_path / "toy", qrels=None)
    assert len(collection.qrels) == 0
    assert collection.subtopics is None


def test_a_folder_with_documents_alone_is_a_collection(tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "documents.jsonl").write_text('{"id": 7, "text": "a number is an id"}\n')
    collection = read_collection(tmp_path / "bare")
    assert [document.id for document in collection.documents()] == ["7"]
    assert (collection.topics, collection.title, len(collection.qrels)) == ([], "bare", 0)


def test_a_folder_that_exists_is_not_written_over(tmp_path):
    toy(tmp_path / "toy")
    with pytest.raises(DataError, match="exists already; nothing is overwritten"):
        toy(tmp_path / "toy", topics=[])
    assert read_collection(tmp_path / "toy").topics == TOPICS


def test_lone_surrogates_and_lists_of_facts_survive(tmp_path):
    odd = Document("d1", "half \ud83d of a sign")
    toy(tmp_path / "toy", documents=[odd], meta={"title": "A toy", "authors": ["a", "b"]}, qrels=None)
    read = read_collection(tmp_path / "toy")
    assert list(read.documents()) == [odd]
    assert read.meta["authors"] == ["a", "b"]


def test_who_waits_is_told_how_far_it_is(tmp_path):
    told: list[tuple[int, int | None]] = []
    many = (Document(str(i), "x") for i in range(5000))
    collection = toy(tmp_path / "toy", documents=many, qrels=None, progress=lambda done, of: told.append((done, of)))
    assert (4096, None) in told
    assert (5000, 5000) in told
    told.clear()
    assert sum(1 for _ in read_documents(collection, lambda done, of: told.append((done, of)))) == 5000
    assert told == [(n, 5000) for n in (1024, 2048, 3072, 4096)]


@given(st.text(), st.text(), st.dictionaries(st.text().filter(lambda k: k not in ("id", "title", "text")), st.text()))
def test_any_text_comes_back_as_it_was(scratch, title, text, fields):
    document = Document("d1", title, text, fields)
    folder = Path(tempfile.mkdtemp(dir=scratch)) / "c"
    collection = write_collection(folder, [document], [Topic("1", title, text)])
    assert list(collection.documents()) == [document]
    assert collection.topics[0].description == text


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False)))
def test_toml_against_the_standard_library_s_reader(values):
    whole = {key: value for key, value in values.items() if _is_text(key) and _is_text(value)}
    assert tomllib.loads(toml_text({**whole, "table": {"inner": whole}})) == {**whole, "table": {"inner": whole}}


def _is_text(value) -> bool:
    return not isinstance(value, str) or value.encode("utf-8", "replace").decode() == value


@pytest.mark.parametrize(
    ("file", "text", "line", "problem"),
    [
        ("documents.jsonl", "{", 1, "expected a document as a JSON object"),
        ("documents.jsonl", '\n{"title": "x"}', 2, "expected an id, found None"),
        ("documents.jsonl", '{"id": "1", "text": 5}', 1, "title and text must be text"),
        ("documents.jsonl", '{"id": "\udce9"}', 1, "expected utf-8, found byte 0xe9 at column 9"),
        ("topics.jsonl", '{"id": "1", "title": "a"}\n{"id": "1", "title": "b"}', 2, "topic '1' occurs twice"),
        ("topics.jsonl", '{"id": "1", "title": ["a"]}', 1, "must be text"),
        ("topics.jsonl", "[]", 1, "found list"),
    ],
)
def test_a_bad_line_is_named(file, text, line, problem, tmp_path):
    toy(tmp_path / "toy")
    (tmp_path / "toy" / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    collection = read_collection(tmp_path / "toy")
    with pytest.raises(BadLineError, match=problem) as error:
        _ = list(collection.documents()), collection.topics
    assert error.value.line == line
    assert error.value.where.endswith(file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = ", "no TOML"),
        ("name = '\udce9'", "expected UTF-8, found b'.xe9'"),
        ("grades = 1", "expected a table"),
        ("[grades]\nrelevant_from = 'x'", "expected a number"),
        ("[grades.best]\nlabel = 'x'", "expected a number or relevant_from, found 'best'"),
    ],
)
def test_a_bad_collection_toml_is_named(text, problem, tmp_path):
    toy(tmp_path / "toy")
    (tmp_path / "toy" / "collection.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=problem):
        read_collection(tmp_path / "toy")


def test_what_is_no_collection_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such folder, and no bundled collection of that name"):
        read_collection("no-such-collection")
    with pytest.raises(DataError, match=r"found no documents\.jsonl; cranfield import makes one"):
        read_collection(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="found a file"):
        read_collection(tmp_path / "file")


@pytest.mark.parametrize("name", bundled_names())
def test_a_bundled_collection_is_known_by_name_whole_and_sound(name):
    collection = read_collection(name)
    assert collection.name == name
    assert set(collection.meta["counts"]) == {"documents", "topics", "judgments", "relevant"}
    assert "documents.jsonl" in collection.meta["hashes"]
    assert [str(found) for found in check_collection(name) if found.severity != "note"] == []


def test_there_is_a_bundled_collection():
    assert "allotment" in bundled_names()


def test_a_stamp_makes_counts_and_hashes_true_again(tmp_path):
    toy(tmp_path / "toy")
    with (tmp_path / "toy" / "documents.jsonl").open("a") as file:
        file.write('{"id": "d3", "title": "", "text": "new"}\n')
    assert {"hash-changed", "count-changed"} <= codes(tmp_path / "toy")
    stamp(read_collection(tmp_path / "toy"))
    assert not {"hash-changed", "count-changed"} & codes(tmp_path / "toy")
    assert read_collection(tmp_path / "toy").grades[2] == GRADES[2]
    assert read_collection(tmp_path / "toy").n_documents == 3


# check


def codes(path) -> set[str]:
    return {finding.code for finding in check_collection(str(path))}


VOCABULARY = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def synthetic(folder, n_topics=60, grade=lambda rank: 1, rename=lambda i: i, **changes) -> Collection:
    """Topics of four words each; their documents hold these words, the better ones more of them."""
    rng = random.Random(0)
    documents, topics, judged = [], [], {}
    for i in range(1, n_topics + 1):
        asked = rng.sample(VOCABULARY, 4)
        topics.append(Topic(str(i), " ".join(asked), "described"))
        judged[str(rename(i))] = {}
        for rank in range(4):
            text = rng.sample(VOCABULARY, 20) + asked[: 4 - rank]
            rng.shuffle(text)
            documents.append(Document(f"{i}-{rank}", "", " ".join(text)))
            judged[str(rename(i))][f"{i}-{rank}"] = grade(rank)
    given = {"documents": documents, "topics": topics, "qrels": Qrels(judged), "grades": {1: Grade("relevant")}}
    return write_collection(folder, **{**given, **changes})


def test_a_sound_collection_has_neither_errors_nor_warnings(tmp_path):
    synthetic(tmp_path / "c", grade=lambda rank: 3 - rank, grades={g: Grade(f"grade {g}") for g in range(4)})
    assert {f.code for f in check_collection(str(tmp_path / "c")) if f.severity != "note"} == set()


@pytest.mark.parametrize(
    ("rename", "way"),
    [
        (lambda i: i + 1, "by numbers 1 lower"),
        (lambda i: i - 1, "counted from 0"),
        (lambda i: i % 60 + 1, "1"),
        (lambda i: i - 3, "by numbers 3 higher"),
    ],
)
def test_shifted_judgments_are_noticed_and_the_better_numbering_is_named(rename, way, tmp_path):
    synthetic(tmp_path / "c", rename=rename)
    [found] = [f for f in check_collection(str(tmp_path / "c")) if f.code == "judgments-shifted"]
    assert found.severity == "error"
    assert way in found.message
    assert "; read " in found.message


def test_shuffled_judgments_are_noticed_without_a_better_numbering(tmp_path):
    order = random.Random(1).sample(range(1, 61), 60)
    synthetic(tmp_path / "c", rename=lambda i: order[i - 1])
    [found] = [f for f in check_collection(str(tmp_path / "c")) if f.code == "judgments-shifted"]
    assert "; read " not in found.message


def test_reversed_grades_are_noticed_and_right_ones_are_not(tmp_path):
    synthetic(tmp_path / "right", grade=lambda rank: 4 - rank)
    synthetic(tmp_path / "wrong", grade=lambda rank: rank + 1)
    assert "grades-against-text" not in codes(tmp_path / "right")
    assert "grades-against-text" in codes(tmp_path / "wrong")


def test_concordance_is_that_of_counted_pairs(tmp_path):
    collection = toy(tmp_path / "toy", qrels=Qrels({"q1": {"d1": 2, "d2": 0}}))
    sample = WordSample(collection)
    for document in collection.documents():
        sample.add(document, words(f"{document.title} {document.text}"))
    close = Closeness(sample, 1)
    assert close.concordance({"q1": 0}) == {"q1": 1.0}  # d1 holds flutter, d2 does not: one pair, in order
    assert close.by_grade({"q1": 0})[2] > close.by_grade({"q1": 0})[0]


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("no-documents", {"documents": [], "qrels": None}),
        ("no-topics", {"topics": [], "qrels": None}),
        ("no-judgments", {"qrels": None}),
        ("documents-empty", {"documents": [*DOCUMENTS, Document("d3")]}),
        ("documents-duplicate-id", {"documents": [*DOCUMENTS, DOCUMENTS[0]]}),
        ("documents-duplicate-text", {"documents": [*DOCUMENTS, Document("d3", text="Heat.")]}),
        ("ids-with-space", {"documents": [*DOCUMENTS, Document("d 3", text="x")]}),
        ("topics-duplicate", {"topics": [*TOPICS, Topic("q3", "Heat transfer?")]}),
        ("topics-empty", {"topics": [*TOPICS, Topic("q3", "?")]}),
        ("topics-without-need", {}),
        ("topics-unjudged", {"topics": [*TOPICS, Topic("q3", "x")]}),
        ("judged-topics-unknown", {"qrels": Qrels({"q9": {"d1": 1}})}),
        ("judged-documents-unknown", {"qrels": Qrels({"q1": {"d9": 1}})}),
        ("grades-without-name", {"qrels": Qrels({"q1": {"d1": 1}})}),
        ("few-topics", {}),
        ("judged-sparsely", {}),
        ("only-relevant-judged", {"qrels": Qrels({"q1": {"d1": 2, "d2": 3}})}),
        ("topics-without-relevant", {"qrels": Qrels({"q1": {"d1": 0}})}),
        ("topics-with-one-relevant", {}),
        ("grades-negative", {"qrels": Qrels({"q1": {"d1": -1}})}),
    ],
)
def test_a_problem_is_found(code, changes, tmp_path):
    toy(tmp_path / "toy", **changes)
    assert code in codes(tmp_path / "toy")


def test_judgments_that_cannot_be_read_hide_no_other_problem(tmp_path):
    toy(tmp_path / "toy", documents=[*DOCUMENTS, Document("d3")])
    (tmp_path / "toy" / "qrels.txt").write_text("q1 0 d1 2\nq1 0\nq1 0 d1 0\n")
    assert {"columns", "judged-in-conflict", "documents-empty"} <= codes(tmp_path / "toy")


def _many(rows: dict[str, int], judged: int = 0) -> dict[str, object]:
    documents = [Document(f"d{i}", text=f"word{i} same") for i in range(400)]
    qrels = {t: {f"d{i}": 1 for i in range(n)} | {f"d{399 - i}": 0 for i in range(judged)} for t, n in rows.items()}
    topics = [Topic(name, f"word{i} same", "described") for i, name in enumerate(rows)]
    return {"documents": documents, "topics": topics, "qrels": Qrels(qrels), "relevant_from": 1}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("relevant-imbalance", _many({f"q{i}": 1 if i else 200 for i in range(20)})),
        ("judged-imbalance", _many({"q0": 2}, judged=300)),
        ("not-many-topics", _many({f"q{i}": 6 for i in range(60)})),
        (
            "topics-outlying",
            _many({f"q{i}": 1 for i in range(20)})
            | {"topics": [Topic(f"q{i}", "word1 same " * (1 if i else 40)) for i in range(20)]},
        ),
        ("topics-foreign", _many({"q0": 1}) | {"topics": [Topic("q0", "wie hoch fliegen Flugzeuge")]}),
    ],
)
def test_a_problem_of_proportions_is_found(code, changes, tmp_path):
    toy(tmp_path / "c", **changes)
    assert code in codes(tmp_path / "c")


def test_topics_without_common_words_are_named(tmp_path):
    collection = synthetic(tmp_path / "c")
    topics = [Topic(t.id, "one off topic" if t.id == "7" else t.title, "described") for t in collection.topics]
    synthetic(tmp_path / "d", topics=topics)
    [found] = [f for f in check_collection(str(tmp_path / "d")) if f.code == "topics-off-text"]
    assert "'7'" in found.message


def test_every_kind_of_problem_can_be_found_and_is_documented():
    here = "".join(Path(__file__).with_name(name).read_text() for name in ("test_collection.py", "test_card.py"))
    text = (Path(__file__).parents[1] / "docs" / "collections.md").read_text(encoding="utf-8")
    for name, code in COLLECTION_CODES.items():
        assert f'"{name}"' in here, name
        assert f"| `{name}` | {code.severity} | {code.what} | {code.advice} |" in text, name


def test_cranfield_s_mistakes_in_circulation_are_found(shared, tmp_path):
    import_collection(shared / "cranfield-trec", tmp_path / "trec")
    found = {f.code: f for f in check_collection(str(tmp_path / "trec"))}
    assert "by position in the topics' file, counted from 1, 9" in found["judgments-shifted"].message
    assert found["judged-topics-unknown"].count == 73
    assert "grade 0: +5" in found["grades-against-text"].message  # the source papers, which were given 0
    assert "topic '40', document '85': 3" in found["grades-lone"].examples[0]


@pytest.mark.parametrize("qrels", ["cranqrel.trec_new.txt", "QRelsCorrectedforTRECeval.crlf"])
def test_circulating_judgments_on_circulating_topics_are_found_to_be_shifted(qrels, shared, tmp_path):
    folder = shared / "cranfield-qrels-variants"
    files = Files(topics=[str(folder / "cran.qry.xml")], qrels=[str(folder / qrels)])
    import_collection(shared / "cranfield-trec", tmp_path / "c", files=files)
    assert {"judgments-shifted", "judged-topics-unknown"} <= codes(tmp_path / "c")


@pytest.mark.parametrize("name", ["cranfield", "cacm", "cisi", "adi", "time"])
def test_real_collections_are_not_found_to_be_shifted_or_reversed(name, shared, tmp_path):
    import_collection(shared / name, tmp_path / name)
    assert not {"judgments-shifted", "grades-against-text"} & codes(tmp_path / name)


def test_raw_codes_of_cranfield_are_found_to_be_reversed(shared, tmp_path):
    import_collection(shared / "cranfield", tmp_path / "raw", grades="raw")
    assert {"grades-against-text", "grades-reversed"} <= codes(tmp_path / "raw")


def test_counts_that_differ_from_the_catalogue_are_reported_and_not_refused(shared, tmp_path):
    import_collection(shared / "time", tmp_path / "time")
    [found] = [f for f in check_collection(str(tmp_path / "time")) if f.code == "catalogue-differs"]
    assert found.severity == "note"
    assert "253 judgments, where 324 are published" in found.message


def test_both_figures_are_shown_where_taught_and_published_differ(tmp_path):
    toy(tmp_path / "lisa", documents=[Document(f"d{i}", text=f"w{i}") for i in range(6004)])
    [found] = [f for f in check_collection(str(tmp_path / "lisa")) if f.code == "catalogue-differs"]
    assert "6,004 documents (5,872 taught, 6,004 published)" in found.message


def test_the_catalogue_as_csv_holds_one_plain_number_a_cell():
    rows = list(csv.DictReader(io.StringIO(cranfield("collection", "list", "--format", "csv").out)))
    by_name = {row["name"]: row for row in rows}
    assert (by_name["gov2"]["documents_taught"], by_name["gov2"]["documents_published"]) == ("25000000", "25205179")
    assert by_name["ait"]["judgments_published"] == ""
    assert float(by_name["cacm"]["terms_taught"]) == 24.5
    table = cranfield("collection", "list").out
    assert " >10,000 " in table
    assert "25,000,000 / 25,205,179" in table


def test_the_collection_says_from_which_grade_on_a_document_is_relevant(tmp_path):
    graded = Qrels({"q1": {"d1": 1, "d2": 2}})
    toy(tmp_path / "two", qrels=graded, relevant_from=2)
    run = {"q1": {"d1": 2.0, "d2": 1.0}}
    assert float(evaluate(graded, run, "RR")) == 1.0
    for qrels in (tmp_path / "two", read_collection(tmp_path / "two").qrels):
        scores = evaluate(qrels, run, ["RR", "RR(rel=1)"])
        assert any("the collection defines grades of 2 or more as relevant" in each for each in scores.notes())
        assert scores.means() == {"RR": 0.5, "RR(rel=1)": 1.0}
    other = evaluate(tmp_path / "two", run, "RR", rel=1)
    assert (float(other), other.notes()) == (1.0, [])


# stats


def test_the_figures_of_a_toy_are_those_counted_by_hand(tmp_path):
    found = stats(toy(tmp_path / "toy"))
    figures = found.figures()
    assert figures["documents"] == 2
    assert figures["terms per document"] == 4.0  # wing flutter a wing in a slipstream; heat
    assert figures["distinct terms per document"] == 3.0
    assert (figures["judgments"], figures["relevant"], figures["relevant per topic"]) == (3, 2, 1.0)
    assert found.grades == {0.0: 1, 2.0: 2}
    assert "2 relevant" in found.to_text()


@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_every_value_is_in_one_bin(values):
    bins = Distribution("x", "y", np.array(values)).bins()
    assert sum(count for _, _, count in bins) == len(values)
    assert bins[0][0] <= min(values)
    assert bins[-1][1] >= max(values)
    assert all(a[1] + 1 == b[0] for a, b in zip(bins, bins[1:], strict=False))
    for first, last, count in bins:
        assert count == sum(first <= value <= last for value in values)


def test_cranfield_s_figures_against_the_lecture(shared, tmp_path):
    collection = import_collection(shared / "cranfield", tmp_path / "c").collection
    found, entry = stats(collection), CATALOGUE["cranfield"]
    assert (found.documents, found.topics) == (entry.lecture["documents"], entry.lecture["topics"])
    assert round(found.megabytes) == entry.lecture["megabytes"]


# diff


def test_a_collection_does_not_differ_from_itself(tmp_path):
    toy(tmp_path / "toy")
    assert not diff(str(tmp_path / "toy"), str(tmp_path / "toy"))


def test_differences_are_those_that_were_made(tmp_path):
    toy(tmp_path / "a")
    toy(
        tmp_path / "b",
        documents=[DOCUMENTS[0], Document("d3", text="x")],
        topics=[TOPICS[0], Topic("q2", "heat and mass transfer")],
        qrels=Qrels({"q1": {"d1": 0, "d2": 0, "d3": 1}}),
    )
    found = diff(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (found.documents.added, found.documents.removed, found.documents.changed) == (["d3"], ["d2"], [])
    assert (found.topics.changed, found.topics.same) == (["q2"], 1)
    assert (found.judgments.added, found.judgments.removed) == (["q1 d3"], ["q2 d2"])
    assert found.judgments.changed == ["q1 d1"]
    assert found.grades == {("not judged", "1"): 1, ("0", "0"): 1, ("2", "not judged"): 1, ("2", "0"): 1}
    assert ("document", "added", "d3") in found.records(Layout())
    assert "judgments by grade: rows before, columns after" in found.to_text()


# the catalogue


def test_the_catalogue_holds_what_the_lectures_tabulate(shared):
    page = (shared.parent / "worked-examples.md").read_text().partition("## Test collections named")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ][1:]
    assert len(rows) == 11
    for name, *cells in rows:
        taught = CATALOGUE[name.lower()].lecture
        for what, cell in zip(("documents", "topics", "megabytes", "terms", "judgments"), cells, strict=True):
            number = cell.replace(",", "").replace(" million", "000000").lstrip(">")
            assert taught.get(what) == (float(number) if number else None), (name, what)


def test_the_catalogue_says_where_each_can_be_had():
    for entry in CATALOGUE.values():
        assert entry.source
        assert entry.about
    assert CATALOGUE["gov2"].differences() == [
        "documents: 25,000,000 taught, 25,205,179 published",
        "topics: 10,000 taught, 150 published",
        "judgments: 1,000 taught, 135,352 published",
    ]


@pytest.mark.parametrize("name", ["cranfield", "npl", "gov2"])
def test_counts_in_the_catalogue_against_ir_datasets(name):
    metadata = pytest.importorskip("ir_datasets").util.MetadataComponent
    assert metadata
    import ir_datasets

    path = os.path.join(os.path.dirname(ir_datasets.__file__), "etc", "metadata.json")
    with open(path) as file:
        known = json.load(file)
    entry = CATALOGUE[name]
    sets = [entry.ir_datasets, *(f"gov2/trec-tb-{year}" for year in (2005, 2006) if name == "gov2")]
    assert sum(known[each]["queries"]["count"] for each in sets) == entry.published["topics"]
    assert sum(known[each]["qrels"]["count"] for each in sets) == entry.published["judgments"]
    assert known[entry.ir_datasets.split("/")[0]]["docs"]["count"] == entry.published["documents"]


def test_files_of_other_layouts_are_not_taken_for_a_known_collection():
    assert recognised("jsonl", ["time.jsonl"]) == ""
    assert recognised("smart", ["MED.ALL", "MED.QRY"]) == "medline"
    assert recognised("smart", ["media.all"]) == ""
    assert recognised("ir_datasets", ["ir_datasets:vaswani"]) == "npl"


# the command


def test_show_gives_grades_and_their_meanings(tmp_path):
    toy(tmp_path / "toy")
    answer = cranfield("collection", "show", tmp_path / "toy")
    assert "  2: relevant; meaning: It answers the need." in answer.out
    topic = json.loads(cranfield("collection", "show", tmp_path / "toy", "--topic", "q1", "--format", "json").out)
    assert (topic["narrative"], topic["judgments"]) == ("Theory only.", {"2": ["d1"], "0": ["d2"]})
    assert "slipstream" in cranfield("collection", "show", tmp_path / "toy", "--document", "d1").out
    assert cranfield("collection", "show", tmp_path / "toy", "--topic", "q9").code == 3
    assert cranfield("collection", "show", tmp_path / "toy", "--document", "d9").code == 3


def test_check_exits_with_3_only_where_something_is_wrong(tmp_path):
    toy(tmp_path / "fine")
    assert cranfield("collection", "check", tmp_path / "fine").code == 0
    toy(tmp_path / "wrong", qrels=Qrels({"q9": {"d1": 1}}))
    answer = cranfield("collection", "check", tmp_path / "wrong", "--format", "json")
    assert answer.code == 3
    assert json.loads(answer.out)["errors"] >= 1


@pytest.mark.parametrize("shape", ["json", "csv", "tsv", "table"])
@pytest.mark.parametrize("verb", ["stats", "diff", "list"])
def test_every_table_comes_in_every_shape(verb, shape, tmp_path):
    toy(tmp_path / "toy")
    given = {"stats": [tmp_path / "toy"], "diff": [tmp_path / "toy"] * 2, "list": []}[verb]
    answer = cranfield("collection", verb, *given, "--format", shape)
    assert answer.code == 0, answer.err
    if shape == "json":
        json.loads(answer.out)
    elif shape != "table":
        mark = "," if shape == "csv" else "\t"
        assert mark in answer.out.splitlines()[0]


def test_distributions_are_drawn(tmp_path):
    toy(tmp_path / "toy")
    assert cranfield("collection", "stats", tmp_path / "toy", "-o", tmp_path / "toy.vl.json").code == 0
    spec = json.loads((tmp_path / "toy.vl.json").read_text())
    assert len(spec["vconcat"]) == 4
    assert "terms per document" in json.dumps(spec["vconcat"][0])


def test_a_stamp_is_written_by_the_command(tmp_path):
    toy(tmp_path / "toy")
    (tmp_path / "toy" / "qrels.txt").write_text("q1 0 d1 2\n")
    assert cranfield("collection", "stamp", tmp_path / "toy").code == 0
    assert read_collection(tmp_path / "toy").meta["counts"]["judgments"] == 1


def test_an_unknown_topic_is_an_error_of_its_kind(tmp_path):
    from cranfield.collections.describe import show_topic

    with pytest.raises(TopicError, match="no topic 'q9'; it has 2 others"):
        show_topic(toy(tmp_path / "toy"), "q9")


def test_judgments_may_be_named_by_their_collection():
    import cranfield

    collection = read_collection("allotment")
    first = collection.qrels.topics[0]
    run = {first: dict.fromkeys(collection.qrels[first], 1.0)}
    by_name = cranfield.evaluate("allotment", run, "AP R@1000")
    assert by_name == cranfield.evaluate(collection.path, run, "AP R@1000")
    assert by_name.at(measure="R@1000", topic=first) == 1.0


# as answers


def test_what_is_said_of_a_collection_is_written_in_every_way(tmp_path):
    collection = toy(tmp_path / "toy")
    other = write_collection(tmp_path / "other", DOCUMENTS[:1], TOPICS, Qrels({"q1": {"d1": 1}}))
    answers = [show(collection), stats(collection), diff(collection, other), check_collection(collection), CATALOGUE]
    for answer in answers:
        assert repr(answer) == answer.to_text()
        assert json.loads(answer.to_json()) == json.loads(json.dumps(answer.to_dict()))
        head, *rows = csv.reader(answer.to_csv().splitlines())
        assert rows
        assert {len(row) for row in rows} == {len(head)}
        assert answer.to_tsv().replace("\t", ",").split(",")[0] == head[0]
        assert answer.to_markdown().strip()
        assert answer.to_html().startswith("<")
    assert show(collection)["name"] == "toy"
    assert not diff(collection, collection)


def test_a_collection_that_lies_nowhere_cannot_be_stamped():
    nowhere = Collection("toy", documents=lambda: iter(()), topics=list, qrels=lambda: Qrels({}))
    with pytest.raises(DataError, match="toy: this collection lies in no folder"):
        stamp(nowhere)
    with pytest.raises(DataError, match="none: no such file"):
        hash_of("none")
    assert stats(nowhere).distributions["judged"].quantiles()["median"] == 0
    assert stats(nowhere).distributions["judged"].bins() == []


ASPECTS = """name = "toy"

[[aspects]]
name = "trust"
question = "Can it be trusted?"
from_grade = 1

[aspects.grades]
1 = "yes"
0 = {label = "no", meaning = "Nobody says who wrote it."}

[[aspects]]
name = "ease"
question = "Is it easy to read?"
grades = {1 = "hard", 2 = "easy"}
"""


def test_aspects_are_read_and_survive_a_stamp(tmp_path):
    made = toy(tmp_path / "toy")
    path = tmp_path / "toy" / "collection.toml"
    path.write_text(ASPECTS)
    stamp(read_collection(made.path))
    assert tomllib.loads(path.read_text())["aspects"] == tomllib.loads(ASPECTS)["aspects"]
    trust, ease = read_collection(made.path).aspects
    assert (trust.name, trust.from_grade, list(trust.grades.items())) == (
        "trust",
        1,
        [(0, Grade("no", "Nobody says who wrote it.")), (1, Grade("yes"))],
    )
    assert [ease.asked_at(grade) for grade in (0, 2)] == [True, True]
    assert [trust.asked_at(grade) for grade in (0, 2)] == [False, True]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("aspects = 1", r"expected \[\[aspects\]\]"),
        ("aspects = [1]", "number 1: expected a name and a question"),
        ("[[aspects]]\nname = 'a'", "expected a name and a question"),
        ("[[aspects]]\nname = 'a'\nquestion = 'b'", "two grades or more"),
        (
            "[[aspects]]\nname = 'a'\nquestion = 'b'\ngrades = {x = '1', y = '2'}",
            "grades: expected a number, found 'x'",
        ),
        ("[[aspects]]\nname = 'relevance'\nquestion = 'b'\ngrades = {0 = 'n', 1 = 'y'}", "'relevance' is taken"),
        (
            "[[aspects]]\nname = 'a'\nquestion = 'b'\nfrom_grade = 'x'\ngrades = {0 = 'n', 1 = 'y'}",
            "from_grade: expected a number",
        ),
    ],
)
def test_an_aspect_that_is_none_is_refused(tmp_path, toml, said):
    made = toy(tmp_path / "toy")
    (tmp_path / "toy" / "collection.toml").write_text(toml)
    with pytest.raises(DataError, match=said):
        read_collection(made.path)
