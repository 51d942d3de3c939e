"""`cranfield import`: every layout, the decisions on the way, and what becomes of bad input."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from cranfield import read_collection
from cranfield.base.errors import (
    BadLineError,
    ConventionError,
    CranfieldError,
    DataError,
    DuplicateError,
    FormatError,
    MissingExtraError,
)
from cranfield.formats.importers.collection_import import GRADES, MANY, TOPIC_IDS, import_collection
from cranfield.formats.importers.layouts.trec_text import TrecLayout
from cranfield.formats.importers.source import SOURCES, Files, ImportOptions
from layouts import DOCUMENTS, EXPECTED, QRELS, TOPICS, WRITERS, jsonl, plain, smart, trec, write
from shell import cranfield

SAME = list(WRITERS)


def made(name: str, folder) -> str:
    return str(WRITERS[name](folder / "source"))


# promises of every layout


def test_every_layout_is_tested():
    assert set(WRITERS) == set(SOURCES)


@pytest.mark.parametrize("name", SAME)
def test_a_layout_is_recognised_and_read_as_the_same_collection(name, tmp_path):
    done = import_collection(made(name, tmp_path), tmp_path / "bees")
    assert done.layout == name
    assert plain(done.collection) == EXPECTED
    assert plain(read_collection(tmp_path / "bees")) == EXPECTED


@pytest.mark.parametrize("name", SAME)
def test_a_layout_is_read_when_it_is_named(name, tmp_path):
    source = made(name, tmp_path)
    assert import_collection(source, tmp_path / "bees", layout=name).layout == name


@pytest.mark.parametrize("name", SAME)
def test_a_layout_says_what_it_is(name):
    assert SOURCES[name].about
    assert SOURCES[name].__doc__


@pytest.mark.parametrize("name", SAME)
def test_the_counts_and_conventions_are_written_down(name, tmp_path):
    meta = import_collection(made(name, tmp_path), tmp_path / "bees").collection.meta
    assert meta["counts"] == {"documents": 4, "topics": 3, "judgments": 4, "relevant": 4}
    assert meta["source"]["layout"] == name
    assert meta["conventions"]["grades"] in GRADES
    assert meta["conventions"]["topic_ids"] in TOPIC_IDS


@pytest.mark.parametrize("name", [name for name in SAME if name not in ("parquet", "ir_datasets", "beir")])
def test_a_packed_layout_is_read_as_well(name, tmp_path):
    source = WRITERS[name](tmp_path / "source")
    for path in list(source.iterdir()):
        (source / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert plain(import_collection(source, tmp_path / "bees").collection) == EXPECTED


TEXTS = [name for name in SAME if name not in ("parquet", "ir_datasets")]


def documents_of(name: str, source: Path) -> Path:
    found = SOURCES[name].find(str(source), ImportOptions())
    assert found is not None
    return Path(found.documents[0])


@pytest.mark.parametrize("name", TEXTS)
def test_a_truncated_packed_file_leaves_nothing(name, tmp_path):
    source = WRITERS[name](tmp_path / "source")
    first = documents_of(name, source)
    packed = gzip.compress(first.read_bytes() + b"\n" + random.Random(0).randbytes(20_000).hex().encode())
    first.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(CranfieldError, match="gzip stream ends early|not recognised"):
        import_collection(source, tmp_path / "bees")
    assert os.listdir(tmp_path) == ["source"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_wrong_encoding_is_named_with_file_and_line(name, tmp_path):
    source = WRITERS[name](tmp_path / "source")
    first = documents_of(name, source)
    text = first.read_bytes()
    wrong = b"col\xe9ny" if b"colony" in text else b"COL\xc9NY"
    text += b"" if name != "csv" else b"9,x,\xc3\xa9t\xc3\xa9\n"  # a table is read where its encoding is plain
    first.write_bytes(text.replace(b"colony", wrong).replace(b"COLONY", wrong))
    with pytest.raises(BadLineError, match=r"found byte 0x[ce]9.*(latin-1|encoding=…)") as error:
        import_collection(source, tmp_path / "bees")
    assert error.value.line == text[: text.lower().index(b"colony")].count(b"\n") + 1
    assert error.value.where == str(first)
    done = import_collection(source, tmp_path / "bees", encoding="latin-1")
    assert "colény" in plain(done.collection).documents["1"]


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "time"])
def test_a_document_that_comes_twice_is_refused_with_its_place(name, tmp_path):
    source = WRITERS[name](tmp_path / "source")
    first = documents_of(name, source)
    text = first.read_text()
    first.write_text(text + (text.split("\n", 1)[1] if name == "csv" else text))
    with pytest.raises(BadLineError, match="document '1' occurs twice"):
        import_collection(source, tmp_path / "bees")
    assert os.listdir(tmp_path) == ["source"]


@pytest.mark.parametrize("name", [name for name in SAME if name != "ir_datasets"])
def test_a_source_without_documents_is_refused(name, tmp_path):
    source = WRITERS[name](tmp_path / "source")
    found = SOURCES[name].find(str(source), ImportOptions())
    assert found is not None
    for path in found.documents:
        os.unlink(path)
    with pytest.raises(FormatError, match=r"not recognised as any known layout \(smart, time, "):
        import_collection(source, tmp_path / "bees")


# real collections


@pytest.mark.parametrize(
    ("name", "documents", "topics", "judgments"),
    [
        ("cranfield", 1400, 225, 1837),
        ("cacm", 3204, 64, 796),
        ("cisi", 1460, 112, 3114),
        ("adi", 82, 35, 170),
        ("time", 423, 83, 253),
    ],
)
def test_the_counts_of_a_real_collection_are_the_known_ones(name, documents, topics, judgments, shared, tmp_path):
    done = import_collection(shared / name, tmp_path / name)
    assert done.collection.n_documents == documents
    assert len(done.collection.topics) == topics
    assert len(done.collection.qrels) == judgments
    assert done.collection.meta["catalogue"] == name


def test_cranfield_s_topics_are_numbered_by_position_against_the_map_of_the_files(shared, tmp_path):
    collection = import_collection(shared / "cranfield", tmp_path / "cranfield").collection
    rows = [line.split("\t") for line in (shared / "cranfield" / "query_map.tsv").read_text().splitlines()[1:]]
    assert [(t.id, t.fields.get("given_id", t.id)) for t in collection.topics] == [(a, b) for a, b in rows]


def test_cranfield_s_judgments_corrected_against_the_circulating_correction(shared, tmp_path):
    collection = import_collection(shared / "cranfield", tmp_path / "cranfield").collection
    corrected: dict[str, dict[str, float]] = {}
    text = (shared / "cranfield-qrels-variants" / "QRelsCorrectedforTRECeval.crlf").read_text()
    for topic, _, document, grade in map(str.split, text.splitlines()):
        corrected.setdefault(topic, {})[document] = float(grade)
    assert collection.qrels.to_dict() == corrected
    assert collection.grades[4].label == "complete answer"
    assert "complete answer to the question" in collection.grades[4].meaning


@pytest.mark.parametrize(("grades", "relevant"), [("binary", 1612), ("cranfield-corrected", 1837), ("raw", 1612)])
def test_cranfield_s_relevant_documents_by_convention_against_the_known_counts(grades, relevant, shared, tmp_path):
    collection = import_collection(shared / "cranfield", tmp_path / "c", grades=grades).collection
    assert collection.meta["counts"]["relevant"] == relevant
    assert collection.meta["conventions"]["grades"] == grades


def test_cranfield_s_576_holds_both_of_its_texts_and_471_none(shared, tmp_path):
    done = import_collection(shared / "cranfield", tmp_path / "cranfield")
    documents = {d.id: d for d in done.collection.documents()}
    assert "viscous and inviscid" in documents["576"].text
    assert "limit characteristics" in documents["576"].text
    assert not documents["471"].text
    assert any("576 has a second .W" in note for note in done.notes)
    assert any("471, 995" in note for note in done.notes)


def test_time_s_documents_are_known_by_position_against_the_list_of_texts(shared, tmp_path):
    collection = import_collection(shared / "time", tmp_path / "time").collection
    rows = [line.split(",") for line in (shared / "time" / "TEXTids.txt").read_text().splitlines()[1:] if line.strip()]
    listed = {position.strip(): text.split()[1] for position, text in rows}
    assert {d.id: d.fields["text_number"] for d in collection.documents()} == listed


def test_cacm_s_documents_without_an_abstract_are_kept(shared, tmp_path):
    collection = import_collection(shared / "cacm", tmp_path / "cacm").collection
    first = next(collection.documents())
    assert (first.title, first.text) == ("Preliminary Report-International Algebraic Language", "")
    assert first.fields["author"] == ["Perlis, A. J.", "Samelson,K."]


def test_the_topics_of_a_web_track_bring_description_type_and_subtopics(shared, tmp_path):
    write(tmp_path / "s", docs="<DOC><DOCNO>x</DOCNO><TEXT>obama</TEXT></DOC>\n")
    topics = shared / "diversity-wt09-10" / "wt2009.topics.xml"
    done = import_collection(tmp_path / "s", tmp_path / "wt", files=Files(topics=[str(topics)]))
    assert len(done.collection.topics) == 50
    first = done.collection.topics[0]
    assert (first.id, first.title, first.fields["type"]) == ("1", "obama family tree", "faceted")
    assert first.description.startswith("Find information on President Barack Obama's family")
    assert first.fields["subtopics"][0]["text"].startswith("Find the TIME magazine photo essay")


# SMART


def test_topics_are_numbered_by_position_where_the_judgments_are(tmp_path):
    source = smart(tmp_path / "s")
    (source / "BEES.QRY").write_text("".join(f".I {i * i:03}\n.W\n{text}\n" for i, (_, text) in enumerate(TOPICS, 1)))
    done = import_collection(source, tmp_path / "bees")
    assert [(t.id, t.fields.get("given_id")) for t in done.collection.topics] == [("1", None), ("2", "4"), ("3", "9")]
    assert done.collection.meta["conventions"]["topic_ids"] == "ordinal"
    assert any("by position" in note for note in done.notes)
    given = import_collection(source, tmp_path / "given", topic_ids="given")
    assert [t.id for t in given.collection.topics] == ["1", "4", "9"]
    assert any("--topic-ids ordinal" in note for note in given.notes)


def test_a_field_that_comes_twice_is_joined_and_a_missing_one_is_empty(tmp_path):
    source = write(
        tmp_path / "s",
        X__ALL=".I 1\n.T \nA title\n.A\none\n.A\ntwo\n.W\nfirst\n.W  \nsecond\n.I 2\n.T\nonly\n.I      \n",
    )
    done = import_collection(source, tmp_path / "x")
    first, second = done.collection.documents()
    assert (first.text, first.fields["author"]) == ("first\nsecond", ["one", "two"])
    assert (second.title, second.text) == ("only", "")
    assert done.notes == ["X.ALL:10: 1 has a second .W; the two are joined"]


def test_ohsumed_s_u_is_the_id(tmp_path):
    source = write(
        tmp_path / "s", ohsumed__87=".I 1\n.U\n87049087\n.S\nAm J\n.M\nAdult; *Heart.\n.T\nHeart\n.W\nA text.\n"
    )
    [document] = import_collection(source, tmp_path / "x").collection.documents()
    assert (document.id, document.title, document.fields["subjects"]) == ("87049087", "Heart", "Adult; *Heart.")


def test_med_s_judgments_are_trec_s_columns(tmp_path):
    source = smart(tmp_path / "s")
    (source / "BEES.REL").write_text("".join(f"{t} 0 {d} 1\n" for t, found in QRELS.items() for d in found))
    assert plain(import_collection(source, tmp_path / "bees").collection) == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("BEES.ALL", "no marker\n", 1, r"expected \.I and a number, found 'no marker'"),
        ("BEES.ALL", ".I 1\nno field\n", 2, r"expected a field"),
        ("BEES.ALL", ".I\n.W\nx\n", 1, r"expected \.I and a number"),
        ("BEES.REL", "1\n", 1, "expected topic, document"),
        ("BEES.REL", "1 1 x\n", 1, "expected a code, found 'x'"),
        ("BEES.REL", "1 1 2\n1 1 3\n", 2, "document '1' is judged 2 and 3 for topic '1'"),
    ],
)
def test_a_bad_line_of_smart_files_is_named(name, text, line, problem, tmp_path):
    source = smart(tmp_path / "s")
    (source / name).write_text(text)
    with pytest.raises(BadLineError, match=problem) as error:
        import_collection(source, tmp_path / "x", layout="smart", files=Files(documents=[str(source / "BEES.ALL")]))
    assert error.value.line == line
    assert not (tmp_path / "x").exists()


def test_a_judgment_that_is_only_repeated_counts_once(tmp_path):
    source = smart(tmp_path / "s")
    with (source / "BEES.REL").open("a") as file:
        file.write("1 1 0 0.000000\n")
    done = import_collection(source, tmp_path / "bees")
    assert plain(done.collection) == EXPECTED
    assert done.notes == ["1 judgment is repeated word for word; each counts once"]


@pytest.mark.parametrize(
    ("layout", "name", "text", "problem"),
    [
        ("npl", "doc-text", "1\nx\n", "no closing line with a slash"),
        ("npl", "doc-text", "one\nx\n   /\n", "expected a number alone"),
        ("npl", "rlv-ass", "1\nx\n   /\n", "expected documents' numbers"),
        ("lisa", "LISA.REL", f"{1:12}{2:12}{1:12}\n", "topic 1: expected documents, found 1 too few"),
        (
            "lisa",
            "LISA.REL",
            f"{1:12}{1:12}{1:12}\n{2:12}\n",
            "topic 2: expected documents, found none, nor their count",
        ),
        ("lisa", "LISA.REL", f"{1:12}{1:12}\n           x\n", "expected numbers in columns of 12, found 'x'"),
        ("lisa", "LISA.REL", "1 2 -1\n", "expected Query"),
        ("lisa", "LISA.QUE", "1\nno end\n", "does not end in #"),
        ("lisa", "LISA.QUE", "one\nx #\n", "expected a topic's number"),
        ("time", "TIME.REL", "1 x\n", "expected a topic and its documents"),
        ("time", "TIME.QUE", "x\n*FIND 1\n", r"expected \*FIND"),
        ("msmarco", "collection.tsv", "1\ta\tb\n", "found 3 columns"),
        ("msmarco", "queries.dev.small.tsv", "no tab\n", "expected id and question"),
        ("beir", "corpus.jsonl", "{\n", "expected a JSON object"),
        ("beir", "corpus.jsonl", '{"_id": "1"}\n', "expected columns with a text or a title, found _id"),
        ("jsonl", "documents.jsonl", "[1]\n", "found list"),
        ("jsonl", "documents.jsonl", '{"id": "1", "text": "a"} x\n', "expected a JSON object"),
        ("jsonl", "documents.jsonl", '{"id": "1", "text": {"a": 1}}\n', "expected text in 'text'"),
        ("jsonl", "documents.jsonl", '{"id": " ", "text": ""}\n', "expected a document's id"),
        ("jsonl", "topics.jsonl", '{"id": "1"}\n', "expected columns with what it asks"),
        ("csv", "documents.csv", "docno,title,body\n1,a\n", "expected 3 columns"),
        ("csv", "documents.csv", 'docno,title,body\n1,"a"b,c\n', "expected cells with commas between them"),
        ("trec", "docs.sgml", "<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", "expected <DOCNO>"),
        ("trec", "docs.sgml", "<DOC>\n<DOCNO>1</DOCNO>\n", "is not closed"),
        ("trec", "docs.sgml", "<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\n", "before the next one starts in line 3"),
        ("trec", "topics.txt", "<top>\n<title> x\n</top>\n", "expected a number"),
        ("trec", "topics.txt", "how to stop bees\n", "expected topics in <top> … </top>, found none"),
        ("lisa", "LISA0.001", f"{'*' * 44}\nbetween two documents\n", "expected Document and a number"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(layout, name, text, problem, tmp_path):
    source = WRITERS[layout](tmp_path / "s")
    files = SOURCES[layout].find(str(source), ImportOptions())
    (source / name).write_text(text)
    with pytest.raises(BadLineError, match=problem) as error:
        import_collection(source, tmp_path / "x", layout=layout, files=files)
    assert error.value.where.endswith(name)
    assert os.listdir(tmp_path) == ["s"]


# copies that circulate: read with a note, refused by --strict


def stream() -> str:
    """Topic, count and documents in columns of twelve, six a line."""
    numbers = [n for topic, found in QRELS.items() for n in (topic, len(found), *found)]
    return "".join(f"{int(n):12}" + "\n" * (i % 6 == 0) for i, n in enumerate(numbers, 1)) + "\n"


def odd_npl(source: Path) -> str:
    whole = (source / "rlv-ass").read_text()
    (source / "rlv-ass").write_text(whole.removesuffix("   /\n"))
    return (
        "rlv-ass:7: record 3 has no closing line with a slash; is the file cut off?; it is read to the end of the file"
    )


def odd_lisa(source: Path) -> str:
    whole = (source / "LISA.REL").read_text()
    (source / "LISA.REL").write_text(whole.replace("2 Relevant Refs:", "21 Relevant Refs") + "\x1a\n")
    return "LISA.REL:7: topic 2: expected 21 documents, found 2; those that are listed count"


def odd_lisarj(source: Path) -> str:
    (source / "LISA.REL").unlink()
    (source / "LISARJ.NUM").write_text(stream())
    return (
        "LISARJ.NUM:1: expected Query and its documents' numbers, found numbers alone; they are topic, count, documents"
    )


def odd_time(source: Path) -> str:
    (source / "TIME.REL.ALL").write_text("1 1 2 3 4\n")
    return "TIME.REL.ALL:1: these are other judgments than those in TIME.REL; --qrels FILE says which are meant; TIME.REL is read"


ODD = [("npl", odd_npl), ("lisa", odd_lisa), ("lisa", odd_lisarj), ("time", odd_time)]


@pytest.mark.parametrize(("layout", "spoil"), ODD, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_copy_that_circulates_is_read_with_a_note_and_refused_where_one_is_strict(layout, spoil, tmp_path):
    source = WRITERS[layout](tmp_path / "s")
    assert import_collection(source, tmp_path / "whole", strict=True).notes == []
    note = spoil(source)
    done = import_collection(source, tmp_path / "x")
    assert plain(done.collection) == EXPECTED
    assert any(said.startswith(note) for said in done.notes), done.notes
    with pytest.raises(BadLineError, match=note.split(":", 2)[2].split(";")[0].strip()):
        import_collection(source, tmp_path / "y", strict=True)
    refused = cranfield("import", "s", "y", "--strict", folder=tmp_path)
    assert (refused.code, (tmp_path / "y").exists()) == (3, False)


def test_the_judgments_of_time_are_chosen_by_name(tmp_path):
    source = WRITERS["time"](tmp_path / "s")
    odd_time(source)
    both = (Files(qrels=[str(source / name)]) for name in ("TIME.REL", "TIME.REL.ALL"))
    few, many = (import_collection(source, tmp_path / f"{i}", files=files, strict=True) for i, files in enumerate(both))
    assert few.collection.qrels.to_dict() == QRELS
    assert many.collection.qrels["1"] == dict.fromkeys("1234", 1.0)
    (source / "TIME.REL").unlink()
    assert import_collection(source, tmp_path / "x").collection.qrels["1"] == many.collection.qrels["1"]


def test_the_two_files_of_judgments_of_time_are_noticed(shared, tmp_path):
    done = import_collection(shared / "time", tmp_path / "x")
    assert len(done.collection.qrels) == 253
    assert any(note.startswith("TIME.REL.ALL:1: these are other judgments") for note in done.notes)
    every = import_collection(
        shared / "time", tmp_path / "y", files=Files(qrels=[str(shared / "time" / "TIME.REL.ALL")])
    )
    assert len(every.collection.qrels) == 324


BY_ONE_FILE = [name for name in SAME if name not in ("beir", "msmarco", "ir_datasets")]  # recognised without a folder


@pytest.mark.parametrize(
    ("name", "named"),
    [*((name, False) for name in BY_ONE_FILE), *((name, True) for name in SAME if name != "ir_datasets")],
)
def test_documents_that_are_named_leave_topics_and_judgments_where_they_are(name, named, tmp_path):
    source = WRITERS[name](tmp_path / "s")
    found = SOURCES[name].find(str(source), ImportOptions())
    assert found is not None
    places = []
    for i, path in enumerate(found.documents):
        places.append(str(tmp_path / f"part-{i}{Path(path).suffix}"))
        os.rename(path, places[-1])
    done = import_collection(source, tmp_path / "x", files=Files(documents=places), layout=name if named else None)
    assert plain(done.collection) == EXPECTED
    assert any(note.startswith("topics are taken from ") for note in done.notes)
    assert any(note.startswith("judgments are taken from ") for note in done.notes)


def test_documents_that_are_named_in_a_folder_of_nothing_else_are_told_alone(tmp_path):
    source = WRITERS["lisa"](tmp_path / "s")
    (tmp_path / "empty").mkdir()
    named = Files(documents=[str(source / "LISA0.001")])
    done = import_collection(tmp_path / "empty", tmp_path / "x", files=named)
    assert done.notes[:2] == [
        f"no topics of lisa files in {tmp_path / 'empty'}: --topics-file FILE names them",
        f"no judgments of lisa files in {tmp_path / 'empty'}: --qrels FILE names them",
    ]


# TREC


def test_trec_s_open_tags_prefixes_and_zeros_are_read(tmp_path):
    source = write(
        tmp_path / "s",
        docs="<DOC>\n<DOCNO> A-1 </DOCNO>\n<DATE>940101</DATE>\n<HEAD>Caf&eacute; &amp; bar</HEAD>\n"
        "<TEXT>\n<P>One.</P>\n<P>Two &lt; three.</P>\n</TEXT>\n</DOC>"
        "<DOC><DOCNO>A-2</DOCNO><BODY>x</BODY></DOC>\n",
        topics="<top>\n<head> Tipster Topic Description\n<num> Number:  051\n<dom> Domain: Economics\n"
        "<title> Topic:  Airbus Subsidies\n\n<desc> Description: \nDocument will discuss\nassistance.\n\n"
        "<narr> Narrative: \nA relevant document mentions aid.\n\n<con> Concept(s):\n1. Airbus\n</top>\n",
        qrels__txt="51 0 A-1 1\n51 0 A-2 0\n",
    )
    done = import_collection(source, tmp_path / "x")
    first, second = done.collection.documents()
    assert (first.id, first.title, first.fields) == ("A-1", "Café & bar", {"date": "940101"})
    assert first.text.split() == "One. Two < three.".split()
    assert second.text == "x"
    [topic] = done.collection.topics
    assert (topic.id, topic.title) == ("51", "Airbus Subsidies")
    assert topic.description == "Document will discuss assistance."
    assert topic.narrative == "A relevant document mentions aid."
    assert topic.fields["domain"] == "Economics"
    assert any("leading zeros" in note for note in done.notes)


def test_a_long_page_of_open_tags_is_read_in_one_go(tmp_path):
    page = "<p>" * 200_000  # looked for one by one, their ends would take hours
    source = write(tmp_path / "s", docs=f"<DOC><DOCNO>1</DOCNO>{page}words<TEXT>more</TEXT></DOC>\n")
    [document] = import_collection(source, tmp_path / "x").collection.documents()
    assert document.text == "more"


def test_trec_s_judgments_by_subtopic_are_kept_apart(tmp_path):
    source = trec(tmp_path / "s")
    (source / "qrels.txt").write_text("1 1 1 1\n1 2 1 2\n1 1 2 0\n1 2 2 0\n")
    collection = import_collection(source, tmp_path / "x").collection
    assert collection.qrels.to_dict() == {"1": {"1": 2.0, "2": 0.0}}
    assert collection.subtopics is not None
    assert len(collection.subtopics) == 4


def test_documents_are_found_in_folders_of_folders(tmp_path):
    source = trec(tmp_path / "s")
    (source / "deep" / "er").mkdir(parents=True)
    (source / "docs.sgml").rename(source / "deep" / "er" / "docs.sgml")
    assert plain(import_collection(source, tmp_path / "x").collection) == EXPECTED


# splits, columns, single files


def test_a_split_must_be_chosen_where_there_are_several(tmp_path):
    source = WRITERS["beir"](tmp_path / "s")
    (source / "qrels" / "test.tsv").rename(source / "qrels" / "dev.tsv")
    write(source / "qrels", train__tsv="query-id\tcorpus-id\tscore\n99\t1\t1\n")
    with pytest.raises(FormatError, match=r"several splits; there are dev, train \(--split NAME takes one\)"):
        import_collection(source, tmp_path / "x")
    with pytest.raises(FormatError, match="no split 'test'"):
        import_collection(source, tmp_path / "x", split="test")
    train = import_collection(source, tmp_path / "x", split="train").collection
    assert ([t.id for t in train.topics], train.qrels.to_dict()) == (["99"], {"99": {"1": 1.0}})
    assert train.meta["conventions"]["split"] == "train"


def test_topics_of_other_splits_are_left_out_and_said_so(tmp_path):
    done = import_collection(WRITERS["beir"](tmp_path / "s"), tmp_path / "x")
    assert done.notes == ["of 4 topics 3 are judged in this split; the others are left out"]


def test_ms_marco_s_splits_go_by_the_names_of_their_files(tmp_path):
    source = WRITERS["msmarco"](tmp_path / "s")
    (source / "queries.train.tsv").write_text("7\tof training\n")
    (source / "qrels.train.tsv").write_text("7\t0\t1\t1\n")
    with pytest.raises(FormatError, match=r"several splits; there are dev\.small, train"):
        import_collection(source, tmp_path / "x")
    assert plain(import_collection(source, tmp_path / "x", split="dev.small").collection) == EXPECTED


def test_ms_marco_s_documents_have_url_and_title(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "msmarco-docs.tsv").write_text("D1\thttp://a.example\tA title\tIts body\n")
    [document] = import_collection(tmp_path / "s", tmp_path / "x").collection.documents()
    assert (document.id, document.title, document.text) == ("D1", "A title", "Its body")
    assert document.fields == {"url": "http://a.example"}


def test_columns_of_other_names_are_read_when_they_are_named(tmp_path):
    source = write(tmp_path / "s", docs__jsonl='{"key": "d1", "words": "wing flutter", "year": 1958}\n')
    with pytest.raises(BadLineError, match="found key, words, year; --field id=COLUMN"):
        import_collection(source, tmp_path / "x")
    [document] = import_collection(source, tmp_path / "x", fields={"id": "key", "text": "words"}).collection.documents()
    assert (document.id, document.text, document.fields) == ("d1", "wing flutter", {"year": 1958})


def test_numbers_as_ids_become_text(tmp_path):
    source = write(tmp_path / "s", docs__jsonl='{"id": 7, "text": "x"}\n', topics__jsonl='{"id": 1, "query": "x"}\n')
    collection = import_collection(source, tmp_path / "x").collection
    assert [d.id for d in collection.documents()] == ["7"]
    assert [t.id for t in collection.topics] == ["1"]


def test_a_single_file_takes_topics_and_judgments_from_elsewhere(tmp_path):
    source = jsonl(tmp_path / "s")
    files = Files(topics=[str(source / "topics.jsonl")], qrels=[str(source / "qrels.txt")])
    done = import_collection(source / "documents.jsonl", tmp_path / "x", files=files)
    assert plain(done.collection) == EXPECTED


def test_a_file_of_any_name_is_read_as_the_layout_that_is_named(tmp_path):
    source = jsonl(tmp_path / "s")
    (tmp_path / "dump").write_bytes((source / "documents.jsonl").read_bytes())
    done = import_collection(tmp_path / "dump", tmp_path / "x", layout="jsonl")
    assert [d.id for d in done.collection.documents()] == [d[0] for d in DOCUMENTS]
    with pytest.raises(FormatError, match="not recognised"):
        import_collection(tmp_path / "dump", tmp_path / "y")


def test_topics_may_be_of_another_layout_than_the_documents(tmp_path):
    source, other = jsonl(tmp_path / "s"), Path(WRITERS["trec"](tmp_path / "t"))
    named = Files(topics=[str(path) for path in other.rglob("*") if path.is_file() and TrecLayout.asks(str(path))])
    assert named.topics
    done = import_collection(source, tmp_path / "x", files=named)
    assert [(t.id, t.title) for t in done.collection.topics] == TOPICS
    assert "the documents are jsonl files, the topics trec files" in done.notes
    back = import_collection(other, tmp_path / "y", files=Files(topics=[str(source / "topics.jsonl")]))
    assert [t.title for t in back.collection.topics] == [title for _, title in TOPICS]


def test_trec_covid_s_topics_beside_a_csv_of_documents(shared, tmp_path):
    (tmp_path / "metadata.csv").write_text("cord_uid,title,abstract\nug7v899j,Origin,of the virus\n")
    files = Files(topics=[str(shared / "trec-covid-r3" / "topics.covid-round3.xml")])
    found = import_collection(tmp_path / "metadata.csv", tmp_path / "x", files=files, fields={"id": "cord_uid"})
    assert len(found.collection.topics) == 40
    assert found.collection.topics[0].description == "what is the origin of COVID-19"


def test_a_topic_without_a_title_has_its_description_in_its_place(tmp_path):
    source = jsonl(tmp_path / "s")
    (source / "topics.jsonl").write_text('{"id": "1", "description": "who flew first"}\n')
    [topic] = import_collection(source, tmp_path / "x").collection.topics
    assert (topic.title, topic.description) == ("who flew first", "who flew first")
    (source / "topics.jsonl").write_text('{"id": "1", "place": "Kitty Hawk"}\n')
    with pytest.raises(BadLineError, match=r"topics\.jsonl:1: expected columns with what it asks"):
        import_collection(source, tmp_path / "y")


def test_topics_that_come_twice_and_subtopics_from_two_places_are_refused(tmp_path):
    source = jsonl(tmp_path / "s")
    (source / "topics.jsonl").write_text('{"id": "1", "title": "a"}\n{"id": "1", "title": "b"}\n')
    with pytest.raises(DataError, match="topic '1' occurs twice"):
        import_collection(source, tmp_path / "x")
    parted = trec(tmp_path / "t")
    (parted / "qrels.txt").write_text("1 1 1 1\n1 2 1 1\n")
    with pytest.raises(DataError, match="judgments by subtopic were found already"):
        import_collection(parted, tmp_path / "x", subtopics=parted / "qrels.txt")
    (parted / "more.txt").write_text("2 0 3 1\n")
    both = Files([str(parted / "docs.sgml")], [], [str(parted / "qrels.txt"), str(parted / "more.txt")])
    with pytest.raises(FormatError, match="judgments by subtopic are read from one file only"):
        import_collection(parted, tmp_path / "x", files=both)
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]


def test_files_without_a_document_are_refused(tmp_path):
    source = jsonl(tmp_path / "s")
    files = SOURCES["jsonl"].find(str(source), ImportOptions())
    (source / "documents.jsonl").write_text("")
    with pytest.raises(DataError, match=r"documents\.jsonl: no documents"):
        import_collection(source, tmp_path / "x", layout="jsonl", files=files)


def test_a_damaged_parquet_file_is_told(tmp_path):
    source = WRITERS["parquet"](tmp_path / "s")
    files = SOURCES["parquet"].find(str(source), ImportOptions())
    assert files is not None
    Path(files.documents[0]).write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="corrupt Parquet file"):
        import_collection(source, tmp_path / "x", layout="parquet", files=files)


def test_pages_without_a_tag_of_ours_are_all_text(tmp_path):
    source = trec(tmp_path / "s")
    (source / "docs.sgml").write_text(
        "<DOC>\n<DOCNO>1</DOCNO>\n<DOCHDR>http://a\n</DOCHDR>\n<html><b>Bees</b> swarm &amp; sting</html>\n</DOC>\n"
    )
    (source / "qrels.txt").write_text("1 0 1 1\n")
    [document] = import_collection(source, tmp_path / "x").collection.documents()
    assert document.text.split() == ["Bees", "swarm", "&", "sting"]


def test_texts_may_be_lists_and_numbers(tmp_path):
    source = jsonl(tmp_path / "s")
    (source / "documents.jsonl").write_text('{"id": "1", "title": 7, "text": ["one", "two"]}\n')
    (source / "qrels.txt").unlink(missing_ok=True)
    files = Files([str(source / "documents.jsonl")])
    [document] = import_collection(source / "documents.jsonl", tmp_path / "x", files=files).collection.documents()
    assert (document.title, document.text) == ("7", "one\ntwo")


def test_a_collection_of_many_files_names_their_number(tmp_path):
    source = trec(tmp_path / "s")
    (source / "docs.sgml").unlink()
    for i, title, text in [(str(i), "a title", "a text") for i in range(1, 1 + 2 * MANY)]:
        (source / f"{i}.sgml").write_text(
            f"<DOC>\n<DOCNO>{i}</DOCNO>\n<HEADLINE>{title}</HEADLINE><TEXT>{text}</TEXT>\n</DOC>\n"
        )
    assert import_collection(source, tmp_path / "x").collection.meta["source"]["n_files"] == 2 * MANY + 2


def test_several_qrels_files_are_taken_together_unless_they_contradict(tmp_path):
    source = jsonl(tmp_path / "s")
    write(source, more__txt="1 0 2 0\n1 0 1 1\n", other__txt="1 0 1 0\n")
    both = Files(qrels=[str(source / "qrels.txt"), str(source / "more.txt")])
    assert import_collection(source, tmp_path / "x", files=both).collection.qrels["1"] == {"1": 1.0, "2": 0.0}
    worse = Files(qrels=[str(source / "qrels.txt"), str(source / "other.txt")])
    with pytest.raises(DuplicateError, match="is judged 1 and 0"):
        import_collection(source, tmp_path / "y", files=worse)


def test_ir_datasets_brings_the_meaning_of_grades(tmp_path):
    collection = import_collection(made("ir_datasets", tmp_path), tmp_path / "x").collection
    assert collection.grades[1].meaning == "answers the question"
    assert collection.meta["provenance"] == "ir_datasets bees-of-the-tests"


class Part(NamedTuple):
    heading: str
    pages: tuple[int, ...]


class OddDocument(NamedTuple):
    doc_id: str
    title: str
    parts: list[Part]
    more: dict[int, Path]
    scan: bytes

    def default_text(self) -> str:
        return "all of it"


class OddQuery(NamedTuple):
    query_id: str
    number: int

    def default_text(self) -> str:
        return f"question {self.number}"


def registered(name: str, docs: object = None, queries: object = None) -> str:
    """A data set of ir_datasets without judgments; `docs` and `queries` are lists, or the error that getting them gives."""
    import ir_datasets

    def records(kind: str, content: object) -> object:
        def each(self):
            if isinstance(content, Exception):
                raise content
            return iter(content)

        base = getattr(ir_datasets.formats, f"Base{kind.capitalize()}")
        return type(kind, (base,), {f"{kind}_iter": each, f"{kind}_cls": lambda self: OddDocument})()

    parts = [records(kind, given) for kind, given in (("docs", docs), ("queries", queries)) if given is not None]
    if name not in ir_datasets.registry:
        ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))
    return f"ir_datasets:{name}"


def test_ir_datasets_records_of_any_shape_are_kept_as_json(tmp_path):
    odd = OddDocument("d", "a title", [Part("start", (1, 2))], {3: Path("x")}, b"\0")
    source = registered("odd-of-the-tests", [odd], [OddQuery("q", 7)])
    collection = import_collection(source, tmp_path / "x").collection
    [document] = collection.documents()
    assert (document.id, document.title, document.text) == ("d", "a title", "all of it")
    assert document.fields == {"parts": [{"heading": "start", "pages": [1, 2]}], "more": {"3": "x"}}
    [topic] = collection.topics
    assert (topic.title, topic.fields) == ("question 7", {"number": 7})
    assert not len(collection.qrels)
    assert collection.grades == {}


def test_ir_datasets_that_has_no_documents_or_cannot_get_them_is_told(tmp_path, monkeypatch):
    with pytest.raises(FormatError, match="has no documents"):
        import_collection(registered("no-documents-of-the-tests", None, [OddQuery("q", 1)]), tmp_path / "x")
    broken = registered("broken-of-the-tests", RuntimeError("no\nnetwork"))
    with pytest.raises(DataError, match="could not get its docs: no network"):
        import_collection(broken, tmp_path / "x")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cranfield\[ir_datasets\]'"):
        import_collection(broken, tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_documents_alone_make_a_collection_of_ir_datasets(tmp_path):
    source = registered("documents-of-the-tests", [OddDocument("d", "t", [], {}, b"")])
    assert import_collection(source, tmp_path / "x").collection.topics == []


def test_an_unknown_identifier_of_ir_datasets_is_named(tmp_path):
    with pytest.raises(FormatError, match="knows no data set 'no-such-set'"):
        import_collection("ir_datasets:no-such-set", tmp_path / "x")
    with pytest.raises(DataError, match="no such file or folder; a data set of ir_datasets is written ir_datasets:"):
        import_collection("no-such-set", tmp_path / "x")


# conventions


def test_unknown_conventions_are_refused(tmp_path):
    with pytest.raises(ConventionError, match="grades must be cranfield-corrected, binary, raw, got 'upside-down'"):
        import_collection(".", tmp_path / "x", grades="upside-down")
    with pytest.raises(ConventionError, match="topic ids must be given, ordinal, got 'random'"):
        import_collection(".", tmp_path / "x", topic_ids="random")
    with pytest.raises(ConventionError, match="no layout 'xml'; there are smart"):
        import_collection(".", tmp_path / "x", layout="xml")
    with pytest.raises(ConventionError, match="no encoding 'klingon'"):
        import_collection(jsonl(tmp_path / "s"), tmp_path / "x", encoding="klingon")


def test_codes_that_are_not_cranfield_s_cannot_be_corrected(tmp_path):
    source = jsonl(tmp_path / "s")
    (source / "qrels.txt").write_text("1 0 1 7\n")
    with pytest.raises(DataError, match="expected codes of -1 and 1 to 5, found 7"):
        import_collection(source, tmp_path / "x", grades="cranfield-corrected")


@pytest.mark.parametrize(
    ("grades", "expected"),
    [("raw", [-1, 0.5, 1, 4]), ("binary", [0, 1, 1, 1])],
)
def test_grades_by_convention(grades, expected, tmp_path):
    source = jsonl(tmp_path / "s")
    (source / "qrels.txt").write_text("1 0 1 -1\n1 0 2 0.5\n1 0 3 1\n1 0 4 4\n")
    collection = import_collection(source, tmp_path / "x", grades=grades).collection
    assert list(collection.qrels["1"].values()) == expected


# whole or not at all


def test_an_existing_folder_is_left_alone(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(DataError, match="exists already"):
        import_collection(jsonl(tmp_path / "s"), tmp_path / "x")
    assert list((tmp_path / "x").iterdir()) == []


def test_a_killed_import_leaves_no_folder(tmp_path):
    source = tmp_path / "pipe.jsonl"
    os.mkfifo(source)
    pipe = os.open(source, os.O_RDWR)  # so that opening waits for nobody
    os.write(pipe, b'{"id": "1", "text": "x"}\n')
    run = subprocess.Popen(
        [sys.executable, "-m", "cranfield", "import", str(source), str(tmp_path / "x"), "--from", "jsonl"]
    )
    try:
        for _ in range(300):
            if run.poll() is not None or any(name.startswith(".x.") for name in os.listdir(tmp_path)):
                break
            time.sleep(0.1)
        assert run.poll() is None, "it waits for more"
        assert any(name.startswith(".x.") for name in os.listdir(tmp_path)), "and has begun to write"
    finally:
        run.kill()
        run.wait(30)
        os.close(pipe)
    assert not (tmp_path / "x").exists()
    other = tmp_path / f".x.{os.getpid()}.01234567"  # of a process that lives
    other.mkdir()
    import_collection(jsonl(tmp_path / "s"), tmp_path / "x")
    assert [name for name in os.listdir(tmp_path) if name.startswith(".x.")] == [other.name]


def test_a_pipe_needs_its_layout_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="its layout is not detected; say it with --from"):
        import_collection(tmp_path / "pipe", tmp_path / "x")


def test_a_full_disk_leaves_no_folder(tmp_path, monkeypatch):
    source = jsonl(tmp_path / "s")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="cannot be written: no space left on device"):
        import_collection(source, tmp_path / "x")
    assert os.listdir(tmp_path) == ["s"]


def test_documents_are_never_held_together(tmp_path, monkeypatch):
    """Each is written before the next is read: the reader and the writer take turns."""
    from cranfield.formats import collection_folder as folder
    from cranfield.formats.importers.layouts.tables import JsonLinesLayout

    turns: list[str] = []
    read, line = JsonLinesLayout.documents, folder._document_line

    def reading(self):
        for document in read(self):
            turns.append("read")
            yield document

    def writing(document):
        turns.append("written")
        return line(document)

    monkeypatch.setattr(JsonLinesLayout, "documents", reading)
    monkeypatch.setattr(folder, "_document_line", writing)
    import_collection(jsonl(tmp_path / "s"), tmp_path / "x")
    assert turns == ["read", "written"] * len(DOCUMENTS)


# the command


def test_the_command_tells_counts_and_notes(tmp_path):
    source = smart(tmp_path / "s")
    (source / "BEES.QRY").write_text("".join(f".I {i * i}\n.W\n{text}\n" for i, (_, text) in enumerate(TOPICS, 1)))
    answer = cranfield("import", source, tmp_path / "x", "--title", "Bees", "--licence", "CC0-1.0")
    assert answer.code == 0
    assert "4 documents, 3 topics, 4 judgments, 4 relevant, from smart files" in answer.out
    assert answer.err.startswith("note: the judgments count the topics by position")
    meta = read_collection(tmp_path / "x").meta
    assert (meta["title"], meta["licence"]) == ("Bees", "CC0-1.0")


def test_the_command_prints_json(tmp_path):
    answer = cranfield("import", jsonl(tmp_path / "s"), tmp_path / "x", "--format", "json")
    told = json.loads(answer.out)
    assert (told["layout"], told["documents"], told["notes"]) == ("jsonl", 4, [])


def test_bad_data_and_bad_usage_have_their_exit_codes(tmp_path):
    source = jsonl(tmp_path / "s")
    assert cranfield("import", source, tmp_path / "x", "--grades", "odd").code == 2
    assert cranfield("import", source, tmp_path / "x", "--field", "text").code == 2
    assert cranfield("import", tmp_path / "none", tmp_path / "x").code == 3
    (source / "documents.jsonl").write_text("{\n")
    answer = cranfield("import", source, tmp_path / "x")
    assert answer.code == 3
    assert "documents.jsonl:1: expected a JSON object" in answer.err


def test_the_choices_in_the_help_are_those_that_exist():
    assert f"--from {'|'.join(SOURCES)}" in cranfield("import", "--help").out
