from __future__ import annotations

import bz2
import contextlib
import doctest
import errno
import gzip
import importlib
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import (
    BadLineError,
    ConventionError,
    DataError,
    DuplicateError,
    FormatError,
    MissingExtraError,
)
from cranfield.base.kernels import RowTable, Strings, decode, encode
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run, TextSource
from cranfield.evaluation.evaluate import evaluate
from cranfield.formats import (
    FORMATS,
    as_qrels,
    as_runs,
    detect,
    expand,
    open_buffer,
    read_qrels,
    read_run,
    run_name,
    streams,
    write_qrels,
    write_run,
)
from cranfield.formats import (
    named_columns as named,
)
from cranfield.formats.format import Head, Strength
from cranfield.formats.pool_files import read_pool
from cranfield.formats.score_table import read_score_table
from hypotheses import examples

RUN = {"q1": {"d1": 0.5, "d2": 0.9, "d10": 0.9}, "q2": {"d3": -1e-300, "d1": 0.30000000000000004}}
QRELS = {"q1": {"d1": 1, "d2": 0, "d7": -1}, "q2": {"d3": 2.5}}

HOLDING = [(one, kind) for one in FORMATS.values() for kind in one.kinds if kind != "prefs"]
IDS = [f"{one.name}-{kind}" for one, kind in HOLDING]


def read(kind, *arguments, **options):
    return read_run(*arguments, **options) if kind == "run" else read_qrels(*arguments, **options)


def write(kind, *arguments, **options):
    return write_run(*arguments, **options) if kind == "run" else write_qrels(*arguments, **options)


def rankings(run):
    return {topic: [document for document, _ in run[topic]] for topic in run}


# promises of every format


@pytest.mark.parametrize(("one", "kind"), HOLDING, ids=IDS)
def test_written_and_read_back_is_the_same(one, kind, tmp_path):
    path = tmp_path / "file"
    given_, made = (RUN, Run(RUN, "mine", tag="t1")) if kind == "run" else (QRELS, Qrels(QRELS))
    write(kind, made, path, format=one.name)
    back = read(kind, path, format=one.name)
    assert back.topics == list(given_)
    if kind == "run":
        assert rankings(back) == rankings(made)
        assert (back.tag == "t1") == ("run" in one.labels)
    if kind == "qrels" or one.scores:
        assert back.to_dict() == given_


@pytest.mark.parametrize(("one", "kind"), HOLDING, ids=IDS)
@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".xz", ".bz2"])
def test_every_format_travels_compressed(one, kind, ending, tmp_path):
    path = tmp_path / f"file{ending}"
    write(kind, RUN if kind == "run" else QRELS, path, format=one.name)
    assert streams.packing_of(path.read_bytes()) == streams.COMPRESSED.get(ending)
    assert read(kind, path, format=one.name).topics == ["q1", "q2"]


@pytest.mark.parametrize(("one", "kind"), HOLDING, ids=IDS)
def test_a_written_file_is_recognised_by_its_content(one, kind, tmp_path):
    path = tmp_path / "file.unknown"
    write(kind, RUN if kind == "run" else QRELS, path, format=one.name)
    back = read(kind, path)
    assert back.topics == ["q1", "q2"]
    if kind == "qrels" or one.scores:
        assert back.to_dict() == (RUN if kind == "run" else QRELS)


@pytest.mark.parametrize(("one", "kind"), HOLDING, ids=IDS)
def test_labels_survive_where_the_format_claims_it(one, kind, tmp_path):
    table = RowTable(
        Strings.of([b"q1"]),
        np.zeros(2, np.int32),
        Strings.of([b"d1", b"d2"]),
        np.array([2.0, 1.0]),
        Strings.of([b"first", b"second"]),
        np.array([0, 1], np.int32),
        np.zeros(0, np.int64),
    )
    path = tmp_path / "file"
    write(kind, Run(table) if kind == "run" else Qrels(table), path, format=one.name)
    back = read(kind, path, format=one.name).table
    found = [back.labels[i] for i in back.label.tolist()] if len(back.labels) else []
    assert (found == [b"first", b"second"]) == (kind in one.labels)


NEVER_GUESSED = {("qrels_jg", "qrels"), ("qrels_prefs", "qrels"), ("msmarco", "qrels")}  # they look like trec
EXAMPLES = [(one, kind, text) for one in FORMATS.values() for kind, text in one.examples.items()]


@pytest.mark.parametrize(("one", "kind", "example"), EXAMPLES, ids=[f"{one.name}-{kind}" for one, kind, _ in EXAMPLES])
def test_every_example_is_recognised_as_itself_among_all_formats(one, kind, example):
    heard = {other.name: other.sniff(Head(example)) for other in FORMATS.values()}
    strengths = {name: evidence.strength for name, evidence in heard.items() if evidence}
    winner = "trec" if (one.name, kind) in NEVER_GUESSED else one.name
    assert [name for name, strength in strengths.items() if strength == max(strengths.values())] == [winner]
    assert kind in heard[winner].kinds
    assert (heard[one.name] is None) == ((one.name, kind) in NEVER_GUESSED)
    assert detect(example) == (winner, tuple(sorted(heard[winner].kinds)))
    if kind != "prefs":
        assert len(read(kind, example)) == len(read(kind, example, format=one.name)) >= 2


@pytest.mark.parametrize("one", FORMATS.values(), ids=FORMATS)
def test_every_format_says_what_it_is(one):
    assert one.about
    assert one.__doc__
    assert set(one.examples) == (set(one.kinds) if one.is_text else set())
    assert set(one.layouts) in (set(), set(one.kinds), {"run", "qrels"})
    if not one.is_text:
        assert detect(b"".join(one.write(Run(RUN).table, "run", "t"))) == (one.name, ("qrels", "run"))


# which of several formats


def test_the_strongest_evidence_wins():
    assert list(Strength) == sorted(Strength)
    spaced = b'{ "qid":"1", "docno":"d", "score": 1.5 }\n'  # six words, the fifth a number: it could be a line of trec
    assert FORMATS["trec"].sniff(Head(spaced)).strength < FORMATS["jsonl"].sniff(Head(spaced)).strength
    assert read_run(spaced)["1"] == [("d", 1.5)]
    for topic in (b"[1]", b"{1}", b"PAR1", b"qid,docno,score"):
        line = topic + b" Q0 d 1 0.5 t\n"
        assert detect(line) == ("trec", ("run",))
        assert read_run(line).topics == [topic.decode()]


def test_a_tie_is_an_error_that_names_both_and_the_way_out():
    header = b"qid,docno,score,a\tqid\tdocno\tscore\n"
    for reading in (detect, read_run, read_qrels):
        with pytest.raises(FormatError, match="may be csv or tsv, and nothing shows which; format=… names it"):
            reading(header)
    assert len(read_run(header, format="csv")) == 0
    mixed = b"7\t100\t1\n7\t101\t2\n1 a 1 d1 2.0\n1 a 1 d2 1\n1 a 1 d3 1\n"
    with pytest.raises(FormatError, match="may be msmarco or prefs"):
        read_qrels(mixed)
    with pytest.raises(BadLineError, match="expected 3 columns"):
        len(read_run(mixed))  # of the two, only msmarco holds runs


@pytest.mark.parametrize(
    ("one", "kind"), [pair for pair in HOLDING if pair[0].examples], ids=[i for i in IDS if "parquet" not in i]
)
def test_line_ends_and_a_missing_last_one_do_not_matter(one, kind):
    example = one.examples[kind]
    expected = read(kind, example).to_dict()
    assert read(kind, example.replace(b"\n", b"\r\n")).to_dict() == expected
    assert read(kind, example.rstrip(b"\n")).to_dict() == expected
    assert read(kind, b"\xef\xbb\xbf" + example).to_dict() == expected


def odd_ids(banned):
    free = st.binary(min_size=1, max_size=12).filter(lambda raw: not set(raw) & banned)
    text = st.text(min_size=1, max_size=8).map(encode).filter(lambda raw: not set(raw) & banned)
    return free | text


@pytest.mark.parametrize(("one", "kind"), HOLDING, ids=IDS)
@examples(15)
@given(data=st.data())
def test_ids_with_odd_characters_survive(one, kind, data, scratch):
    banned = set(b" \t\n\r\v\f\0") if one.layouts else {0}
    ids = odd_ids(banned).filter(
        lambda raw: (
            (not one.layouts or not (raw.startswith((b"#", b"\xef\xbb\xbf")) or streams.packing_of(raw)))
            and (one.any_bytes or raw.decode(errors="replace").encode() == raw)
        )
    )
    topics = data.draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    documents = data.draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    values = [float(i) for i in range(len(topics) * len(documents))]
    table = RowTable(
        Strings.of(topics),
        np.repeat(np.arange(len(topics), dtype=np.int32), len(documents)),
        Strings.of(documents * len(topics)),
        np.array(values),
        Strings.of([]),
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
    )
    path = scratch / "file"
    write(kind, Run(table) if kind == "run" else Qrels(table), path, format=one.name)
    back = read(kind, path, format=one.name).table
    assert list(back.topics) == topics
    rows = zip(back.topic.tolist(), back.documents, back.value.tolist(), strict=True)
    found = {(back.topics[t], d): v for t, d, v in rows}
    assert len(found) == len(values)
    if kind == "qrels" or one.scores:
        expected = [(t, d) for t in topics for d in documents]
        assert found == dict(zip(expected, values, strict=True))


@given(scores=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@examples(25)
@pytest.mark.parametrize("name", ["trec", "csv", "tsv", "json", "jsonl", "parquet"])
def test_scores_read_back_to_the_same_double(name, scores, scratch):
    path = scratch / "file"
    given_ = {"q": {f"d{i}": score for i, score in enumerate(scores)}}
    write_run(given_, path, format=name)
    back = read_run(path, format=name).to_dict()
    assert {d: v.hex() for d, v in back["q"].items()} == {d: v.hex() for d, v in given_["q"].items()}


@pytest.mark.parametrize(
    "one", [one for one in FORMATS.values() if one.layouts and "prefs" not in one.kinds], ids=lambda one: one.name
)
@pytest.mark.parametrize("bad", ["a b", "a\tb", "a\nb", "", "a\x0cb"])
def test_white_space_in_an_id_is_refused_where_columns_are_separated_by_it(one, bad, tmp_path):
    path = tmp_path / "file"
    for kind in one.kinds:
        for rows in ({bad: {"d": 1.0}}, {"q": {bad: 1.0}}):
            with pytest.raises(FormatError, match=f"{one.name} cannot hold; use csv or jsonl"):
                write(kind, rows, path, format=one.name)
    assert not path.exists()


def test_a_first_topic_that_would_read_back_as_a_packed_file_is_refused(tmp_path):
    with pytest.raises(
        FormatError, match="would be read back as a comment, a byte order mark or a packed file in trec"
    ):
        write_run({"PK\x03\x04": {"d": 1.0}, "q": {"d": 1.0}}, tmp_path / "a.run")
    write_run({"q": {"d": 1.0}, "PK\x03\x04": {"d": 1.0}}, tmp_path / "a.run")
    assert read_run(tmp_path / "a.run").topics == ["q", "PK\x03\x04"]


def test_a_topic_that_would_read_back_as_a_comment_is_refused(tmp_path):
    with pytest.raises(FormatError, match="topic '#1' would be read back as a comment"):
        write_run({"#1": {"d": 1.0}}, tmp_path / "a.run")
    write_run({"#1": {"d": 1.0}}, tmp_path / "a.csv")
    assert read_run(tmp_path / "a.csv").topics == ["#1"]


def test_a_tag_with_a_space_is_refused_and_a_name_with_one_is_not(tmp_path):
    with pytest.raises(FormatError, match="tag 'my tag' holds white space"):
        write_run(read_run(b"qid,docno,score,tag\nq,d,1,my tag\n"), tmp_path / "a.run")
    write_run(Run(RUN, "my run"), tmp_path / "a.run")
    assert read_run(tmp_path / "a.run").tag == "my_run"


# TREC


def test_a_trec_run_is_written_in_rank_order_with_ranks_from_one(tmp_path):
    write_run(Run(RUN, "mine"), tmp_path / "a.run")
    assert (tmp_path / "a.run").read_text().splitlines() == [
        "q1 Q0 d2 1 0.9 mine",
        "q1 Q0 d10 2 0.9 mine",
        "q1 Q0 d1 3 0.5 mine",
        "q2 Q0 d1 1 0.30000000000000004 mine",
        "q2 Q0 d3 2 -1e-300 mine",
    ]


def test_whole_grades_are_written_without_a_point(tmp_path):
    write_qrels(QRELS, tmp_path / "a.qrels")
    assert (tmp_path / "a.qrels").read_text().splitlines() == ["q1 0 d1 1", "q1 0 d2 0", "q1 0 d7 -1", "q2 0 d3 2.5"]


def test_any_run_of_spaces_and_tabs_separates_columns():
    run = read_run(b"  q1\t Q0 \t d1  1\t\t0.5  tag \r\n# a comment\r\n\r\nq1 Q0 d2 2 0.4 tag")
    assert run["q1"] == [("d1", 0.5), ("d2", 0.4)]


def test_bytes_that_are_no_utf8_stay_as_they_are(tmp_path):
    raw = b"q\xe9 Q0 d\xff 1 0.5 t\xfc\n"
    run = read_run(raw)
    assert [encode(topic) for topic in run.topics] == [b"q\xe9"]
    write_run(run, tmp_path / "a.run")
    assert (tmp_path / "a.run").read_bytes() == raw


def test_a_trec_file_stays_unread_until_it_is_needed(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(FORMATS["trec"].examples["run"])
    assert isinstance(read_run(path).source, TextSource)
    assert isinstance(read_run(FORMATS["msmarco"].examples["run"]).source, TextSource)


def test_a_malformed_line_stops_with_file_line_expected_and_found(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 t\n")
    with pytest.raises(
        BadLineError, match=r"a\.run:2: expected 6 columns \(topic Q0 document rank score tag\), found 5"
    ):
        len(read_run(path))
    assert len(read_run(path, lenient=True)) == 1


def test_a_malformed_first_line_does_not_hide_the_format():
    with pytest.raises(BadLineError, match=":1: expected 6 columns"):
        len(read_run(b"q1 Q0 d1 1 t\nq1 Q0 d2 2 0.5 t\nq1 Q0 d3 3 0.25 t\n"))


def test_ranks_decide_in_a_msmarco_run():
    run = read_run(b"7\t100\t2\n7\t300\t1\n7\t200\t10\n")
    assert run["7"] == [("300", -1.0), ("100", -2.0), ("200", -10.0)]
    assert run.tag is None


def test_judgment_groups_are_read_by_name():
    qrels = read_qrels(b"1 a d1 1\n1 b d1 0\n", format="qrels_jg")
    assert [qrels.labels[i] for i in qrels.label.tolist()] == [b"a", b"b"]


# the wrong kind


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("qrels", b"q1 Q0 d1 1 0.5 t\n", r"looks like a run \(trec, 6 columns\), expected qrels"),
        ("run", b"q1 0 d1 1\n", r"looks like qrels \(trec, 4 columns\), expected a run"),
        ("qrels", b"7\t100\t1\n", r"looks like a run \(msmarco, 3 columns\), expected qrels"),
        ("run", b"query-id\tcorpus-id\tscore\nq\td\t1\n", r"looks like qrels \(beir\), expected a run"),
        ("qrels", b"qid,docno,rank,score\nq,d,1,0.5\n", r"looks like a run \(csv\), expected qrels"),
        ("run", b'{"qid": "q", "docno": "d", "label": 1}\n', r"looks like qrels \(jsonl\), expected a run"),
        (
            "run",
            b'[{"qid": "q", "docno": "d", "label": 1}]',
            "looks like qrels .*expected a run with a column 'score' or 'rank'",
        ),
        ("qrels", b"1 a 1 d1 2.0\n1 a 1 d2 1\n", r"looks like preferences \(prefs, 5 columns\), expected qrels"),
        ("qrels", b"1 28 0 0.000000\n1 35 0 0.000000\n1 38 0 0.000000\n", "looks like a SMART relevance file"),
        ("run", b"one\ntwo\n", "not recognised as a run; expected 6 columns .*found 'one'"),
        ("run", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not recognised as a run"),
        ("run", b"PK\x03\x04rest", "zip archive"),
        ("run", b'{"qid": "1", "query": "what"}\n', r"no column for the document .*found qid, query"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(kind, text, expected):
    with pytest.raises(FormatError, match=expected):
        read(kind, text)


def test_the_option_overrules_what_a_file_looks_like():
    run = read_run(b"query-id\tcorpus-id\tscore\nq\td\t1\n", format="tsv")
    assert run["q"] == [("d", 1.0)]
    with pytest.raises(ConventionError, match="no format 'xls'; there are parquet, json"):
        read_run(b"", format="xls")
    with pytest.raises(FormatError, match="beir holds qrels, not a run"):
        read_run(b"", format="beir")


# CSV, TSV, JSON


def test_columns_are_found_by_their_names_in_any_order():
    text = b"score,query,DOC-ID,qid,docid,text\n0.5,what is ir,D1,q1,7,hello\n0.7,what is ir,D2,q1,8,x\n"
    assert read_run(text)["q1"] == [("D2", 0.7), ("D1", 0.5)]


def test_ranks_decide_where_there_is_no_score():
    assert read_run(b"qid,docno,rank\nq,a,2\nq,b,1\n")["q"] == [("b", -1.0), ("a", -2.0)]


def test_quoted_fields_hold_commas_quotes_and_line_ends():
    text = b'qid,docno,score\n"q,1","a ""b""\nc",1\n\n"q,1",d,2\n'
    assert read_run(text).to_dict() == {"q,1": {'a "b"\nc': 1.0, "d": 2.0}}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (b"qid,docno,score\nq,d,1\nq,e\n", 3, r"expected 3 columns \(qid, docno, score\), found 2"),
        (b"qid,docno,score\nq,d,high\n", 2, r"expected a number in column 3 \(score\), found 'high'"),
        (b"qid,docno,score\nq,d,nan\n", 2, "expected a number in column 3"),
        (b'qid,docno,score\nq,"d"x,1\n', 2, "expected cells with commas between them"),
        (b'{"qid": "q", "docno": "d", "score": 1}\n{"qid": "q", "docno": "e"}\n', 2, "expected a field 'score'"),
        (b'{"qid": "q", "docno": "d", "score": "1"}\n', 1, "expected a number as its score, found '1'"),
        (b'{"qid": "q", "docno": 1.5, "score": 1}\n', 1, "expected an id"),
        (b'{"qid": "q", "docno": "d", "score": NaN}\n', 1, "expected a number as its score, found nan"),
        (b'{"qid": "q", "docno": "d", "score": 1}\nnot json\n', 2, "expected a JSON object"),
        (b'{"qid": "q", "qid": "d", "score": 1}\n', 1, "field 'qid' occurs twice"),
        (b'{"q": {"d": 1},\n "r" {}}', 2, "expected JSON, found a mistake at column 6"),
        (b'[{"qid": "q", "docno": "d", "score": 1}, {"qid": null, "docno": "d", "score": 1}]', 2, "expected an id"),
    ],
)
def test_a_bad_row_stops_with_its_line(text, line, words):
    with pytest.raises(BadLineError, match=words) as caught:
        read_run(text)
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_odd_rows_among_many_are_read_like_the_others(name, tmp_path):
    odd = {"a\nb": 1e-5, "cÿ" if name == "csv" else "c\udcff": -0.0, "d": 1e308, "e": -1e400}
    rows = {"q": {**{f"d{i}": i / 7 for i in range(6000)}, **odd, **{f"e{i}": float(i) for i in range(6000)}}}
    write_run(rows, tmp_path / "a", format=name)
    back = read_run(tmp_path / "a")
    assert {document: value.hex() for document, value in back.to_dict()["q"].items()} == {
        document: value.hex() for document, value in rows["q"].items()
    }
    raw = (tmp_path / "a").read_bytes()
    lines = raw.count(b"\n") + 1
    (tmp_path / "a").write_bytes(raw + (b"q,d,1,high,t\n" if name == "csv" else b'{"query_id": "q"}\n'))
    with pytest.raises(BadLineError) as caught:
        read_run(tmp_path / "a")
    assert caught.value.line == lines


def test_lenient_reading_passes_over_bad_rows_and_counts_them():
    text = b"qid,docno,score\nq,d,1\nq,e\nq,f,high\nq,g,2\n"
    run = read_run(text, lenient=True)
    assert run["q"] == [("g", 2.0), ("d", 1.0)]
    assert len(run.table.skipped) == 2
    scores = evaluate({"q": {"d": 1}}, run, "RR")
    assert scores.absent.skipped == {run.name: 2}


def test_a_document_that_stands_twice_in_a_json_object_is_found_out():
    text = b'{"q": {"d": 1, "e": 2, "d": 3}}'
    with pytest.raises(DuplicateError, match="document 'd' occurs twice for topic 'q'"):
        evaluate({"q": {"d": 1}}, read_run(text), "AP")
    assert evaluate({"q": {"d": 1}}, read_run(text), "RR", duplicates="last").mean("RR") == 1
    with pytest.raises(FormatError, match="document 'd' is judged twice for topic 'q'"):
        read_qrels(text)
    with pytest.raises(FormatError, match="topic 'q' occurs twice"):
        read_qrels(b'{"q": {"d": 1}, "q": {"d": 3}}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"q": {"d": "1"}}', "topic 'q', document 'd': expected a number as its grade, found '1'"),
        (b'{"q": {"d": null}}', "found None"),
        (b'{"q": {"d": Infinity}}', "found inf"),
        (b'{"q": {"d": 1}, "r": 3}', "for topic 'r', found 3"),
        (b'{"q": {"d": 1e400}}', "found inf"),
        (b"[" * 100_000, "no JSON that can be read"),
    ],
)
def test_json_that_holds_no_grades_is_refused(text, words):
    with pytest.raises(DataError, match=words):
        read_qrels(text)


def test_parquet_without_pyarrow_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cranfield\[parquet\]'"):
        write_run(RUN, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_zstd_without_its_module_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, streams.MODULES["zstd"], None)
    with pytest.raises(MissingExtraError, match=r"pip install backports\.zstd"):
        write_run(RUN, tmp_path / "a.run.zst")
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_parquet_file_is_refused():
    with pytest.raises(DataError, match=r"<bytes>: corrupt Parquet file"):
        read_run(b"PAR1" + bytes(100))


# bytes


PACKERS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda raw: streams._codec("zstd").compress(raw),
}
BIG = b"".join(b"q%d Q0 d%d 1 0.5 t\n" % (i, i * 7919 % 10007) for i in range(20_000))


@pytest.fixture(params=["the quickest module", "Python's own"])
def unpacked_by(request, monkeypatch):
    if request.param == "Python's own":
        monkeypatch.setattr(streams, "QUICKER", {})


def test_gzip_is_unpacked_by_isal_where_that_is_installed(monkeypatch):
    assert streams.unpacker("gzip").__name__ == "isal.igzip"
    monkeypatch.setitem(sys.modules, "isal.igzip", None)
    assert streams.unpacker("gzip") is gzip


@pytest.mark.usefixtures("unpacked_by")
@pytest.mark.parametrize("packing", PACKERS)
def test_a_truncated_file_is_refused(packing, tmp_path):
    path = tmp_path / "bm25.run.packed"
    whole = PACKERS[packing](BIG)
    path.write_bytes(whole)
    assert len(read_run(path)) == 20_000
    for cut in (len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=rf"bm25\.run\.packed: {packing} stream ends early \(truncated file\?\)"):
            read_run(path)


@pytest.mark.usefixtures("unpacked_by")
@pytest.mark.parametrize("packing", PACKERS)
def test_a_corrupt_file_is_refused(packing, tmp_path):
    path = tmp_path / "bm25.run.packed"
    raw = bytearray(PACKERS[packing](BIG))
    raw[len(raw) // 2 : len(raw) // 2 + 40] = bytes(40)
    path.write_bytes(raw)
    with pytest.raises(DataError, match=rf"bm25\.run\.packed: (corrupt )?{packing} stream"):
        read_run(path)


@pytest.mark.usefixtures("unpacked_by")
@pytest.mark.parametrize("packing", PACKERS)
def test_lines_come_one_by_one_from_a_packed_file_and_stop_where_it_is_damaged(packing, tmp_path):
    path = tmp_path / "packed"
    whole = PACKERS[packing](BIG)
    path.write_bytes(whole)
    assert b"".join(streams.lines(path)) == BIG
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=f"{packing} stream ends early"):
        list(streams.lines(path))
    assert BIG.startswith(streams.salvaged(str(path)))
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(40) + whole[middle + 40 :])
    with pytest.raises(DataError, match=f"{packing} stream"):
        list(streams.lines(path))


def test_lines_of_what_is_no_text_are_refused(tmp_path):
    path = tmp_path / "a"
    for content, problem in (("x y\n" * 9).encode("utf-16"), "UTF-16"), (b"PK\x03\x04", "zip archive"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=problem):
            list(streams.lines(path))
    assert streams.salvaged(str(path)) == b""
    path.write_bytes(b"[" * 100_000 + b"\n")
    with pytest.raises(BadLineError, match="nested too deeply"):
        list(streams.json_rows(str(path)))
    with pytest.raises(DataError, match="none: no such file or directory"):
        list(streams.lines(tmp_path / "none"))


@pytest.mark.usefixtures("unpacked_by")
def test_several_gzip_members_are_one_file():
    assert len(read_run(gzip.compress(b"q Q0 d1 1 2 t\n") + gzip.compress(b"q Q0 d2 2 1 t\n"))) == 2


def test_an_id_may_look_like_the_start_of_a_compressed_file():
    assert read_run(b"BZh9 Q0 d 1 1 t\n").topics == ["BZh9"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused_with_advice(encoding):
    with pytest.raises(FormatError, match="the text is UTF-16; convert it first"):
        read_run("q1 Q0 d1 1 0.5 t\n".encode(encoding))


def test_an_empty_file_is_a_run_without_lines_and_no_qrels(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_bytes(b"")
    assert len(read_run(path)) == 0
    with pytest.raises(DataError, match=r"empty\.txt: no judgments \(the file is empty\)"):
        read_qrels(path)
    path.write_bytes(b"# only a comment\n\n")
    assert len(read_run(path)) == 0
    with pytest.raises(DataError, match=r"empty\.txt: no judgments$"):
        read_qrels(path)


def test_a_missing_file_a_folder_and_an_unreadable_one_are_said_so(tmp_path):
    with pytest.raises(DataError, match=r"none\.run: no such file or directory"):
        read_run(tmp_path / "none.run")
    with pytest.raises(DataError, match="no file's name"):
        read_run("a\0b")
    with pytest.raises(DataError, match="is a directory"):
        read_run(tmp_path)


def test_standard_input_files_and_paths_give_the_same_run(tmp_path, monkeypatch):
    raw = FORMATS["trec"].examples["run"]
    path = tmp_path / "bm25.run.gz"
    path.write_bytes(gzip.compress(raw))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(raw))))
    with path.open("rb") as file:
        runs = [read_run(path), read_run(str(path)), read_run("-"), read_run(file), read_run(io.StringIO(raw.decode()))]
    assert [run.name for run in runs] == ["bm25", "bm25", "stdin", "bm25", "run"]
    assert all(run.to_dict() == runs[0].to_dict() for run in runs)


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen([sys.executable, "-c", f"open({str(path)!r}, 'wb').write(b'q Q0 d 1 1 t\\n')"]):
        assert len(read_run(path)) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/bm25.run.gz", "bm25"),
        ("bm25.txt", "bm25"),
        ("a.b.res.zst", "a.b"),
        ("x.trec", "x"),
        ("x.json", "x.json"),
        (".run", ".run"),
        ("covidex.r3.t5_lr", "covidex.r3.t5_lr"),
    ],
)
def test_a_run_s_name_is_its_file_name_less_what_says_nothing(path, name):
    assert run_name(path) == run_name(Path(path)) == name


def test_reading_a_trec_run_loads_no_other_format():
    program = (
        "import sys, numpy; before = set(sys.modules); from cranfield.formats import read_run;"
        "read_run(b'q Q0 d 1 1 t\\nq Q0 e 2 0 t\\n').source; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("cranfield.formats.files.")] == ["cranfield.formats.files.trec"]
    unwanted = {
        "json",
        "csv",
        "gzip",
        "bz2",
        "lzma",
        "pyarrow",
        "pathlib",
        "glob",
        "tempfile",
        "cranfield.formats.format_registry",
    }
    assert unwanted & set(loaded) == set()


# writing


@pytest.fixture
def full_disk(monkeypatch):
    class File(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    real = open

    def opener(path, mode="r", *rest, **options):
        return io.BufferedWriter(File(path, mode)) if "x" in mode else real(path, mode, *rest, **options)

    monkeypatch.setattr(streams, "open", opener, raising=False)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_full_disk_leaves_the_old_file_and_no_other(ending, tmp_path, full_disk):
    path = tmp_path / f"a.run{ending}"
    path.write_bytes(b"old")
    with pytest.raises(DataError, match=rf"a\.run{ending}: cannot be written: no space left on device"):
        write_run(RUN, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    def interrupted(*arguments):
        yield b"half"
        raise KeyboardInterrupt

    monkeypatch.setattr(type(FORMATS["trec"]), "write", interrupted)
    path = tmp_path / "a.run"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_run(RUN, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "a.run", tmp_path / "link.run"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_run(RUN, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(read_run(path)) == 5


def test_a_device_is_written_to_and_not_replaced():
    write_run(RUN, "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_missing_folder_is_said_so(tmp_path):
    with pytest.raises(DataError, match="cannot be written: no such file or directory"):
        write_run(RUN, tmp_path / "none" / "a.run")


def test_a_dash_writes_to_standard_output(capfdbinary):
    write_run(Run({"q": {"d": 1.0}}, "t"), "-")
    assert capfdbinary.readouterr().out == b"q Q0 d 1 1.0 t\n"


def test_the_same_rows_give_the_same_compressed_bytes(tmp_path):
    write_run(RUN, tmp_path / "a.run.gz")
    write_run(RUN, tmp_path / "b.run.gz")
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


# whatever holds a run


def test_runs_come_from_paths_globs_mappings_and_lists(tmp_path):
    for name in ("b", "a"):
        write_run(RUN, tmp_path / f"{name}.run")
    glob = str(tmp_path / "*.run")
    assert [run.name for run in as_runs(glob)] == ["a", "b"]
    assert [run.name for run in as_runs([tmp_path / "b.run", RUN, Run(RUN, "c")])] == ["b", "run", "c"]
    named = as_runs(
        {
            "x": str(tmp_path / "a.run"),
            "y": RUN,
            "z": Run(RUN, "c"),
            "w": {"qid": ["q"], "docno": ["d"], "score": [1.0]},
        }
    )
    assert [run.name for run in named] == ["x", "y", "z", "w"]
    assert named[1].to_dict() == named[0].to_dict() == RUN
    assert named[3].to_dict() == {"q": {"d": 1.0}}
    assert [run.to_dict() for run in as_runs({"x": RUN, "y": {"q": {}}})] == [RUN, {"q": {}}]


def test_a_mapping_of_topics_is_one_run():
    for mapping in (RUN, {}, {"q": {}}, {"q": {}, "r": {"d": 1}}):
        [run] = as_runs(mapping)
        assert run.to_dict() == mapping
    assert as_qrels(QRELS).to_dict() == QRELS
    assert as_qrels(as_qrels(QRELS)).to_dict() == QRELS


@pytest.mark.parametrize(
    "wrong", [3, 1.5, object(), None, [3], {"x": 3}, {"x": [RUN, RUN]}, [("q", "d", 1.0)], [["q", "d", 1.0]]]
)
def test_everything_else_is_refused(wrong):
    with pytest.raises(DataError):
        as_runs(wrong)


@pytest.mark.parametrize("wrong", [3, object(), None, [3], {"q": 3}, {"q": {"d": "x"}}])
def test_everything_else_is_no_qrels(wrong):
    with pytest.raises(DataError):
        as_qrels(wrong)


def test_globs_are_expanded_in_sorted_order_and_must_match(tmp_path):
    for name in ("b.run", "a.run", "c[1].run", "sub/d.run"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("q Q0 d 1 1 t\n")
    base = str(tmp_path)
    assert expand([f"{base}/*.run"]) == [f"{base}/a.run", f"{base}/b.run", f"{base}/c[1].run"]
    assert expand([f"{base}/b.run", f"{base}/c[1].run", "-"]) == [f"{base}/b.run", f"{base}/c[1].run", "-"]
    assert expand([f"{base}/**/d.run"]) == [f"{base}/sub/d.run"]
    with pytest.raises(DataError, match=r"\*\.res: no file matches"):
        expand([f"{base}/*.res"])


# public collections


def rows_in(path):
    return (
        sum(1 for line in gzip.decompress(path.read_bytes()).splitlines() if line.split())
        if path.suffix == ".gz"
        else sum(1 for line in path.read_bytes().splitlines() if line.split() and not line.startswith(b"#"))
    )


RUNS = [
    "cacm/bm25_results.res",
    "cacm/cacm_core_*",
    "codec-document/*.run",
    "diversity-wt09-10/*.run",
    "trec-covid-r3/runs/*",
    "trec_eval-test/results*.test",
    "webtrack2012-baselines/*filtered.txt",
    "peer-cases/cwl/result_file",
]
QRELS_FILES = [
    "anserini-qrels/qrels.*",
    "cacm/cacm.qrels",
    "codec-document/*.qrels",
    "cranfield-qrels-variants/cranqrel.trec_new.txt",
    "cranfield-runs-rerank/cranqrel.tcd-corrected",
    "cranfield-trec/cranqrel.trec.txt",
    "diversity-wt09-10/*.qrels",
    "trec-covid-r3/qrels.covid-round3.txt",
    "trec_eval-test/qrels*",
    "webtrack2012-baselines/qrels*",
]


@pytest.mark.parametrize("pattern", RUNS)
def test_public_runs_are_recognised_and_have_a_row_for_each_line(pattern, shared):
    paths = sorted(shared.glob(pattern))
    assert paths
    for path in paths:
        assert detect(path) == ("trec", ("run",)), path
        run = read_run(path)
        assert len(run) == rows_in(path), path
        with pytest.raises(FormatError, match="looks like a run"):
            read_qrels(path)


def test_public_runs_with_ids_of_two_words_are_refused_unless_lenient(shared):
    paths = sorted(shared.glob("cranfield-runs-rerank/cran_results_*.txt"))
    assert len(paths) == 6
    for path in paths:
        with pytest.raises(BadLineError, match=r"expected 6 columns .*, found 7"):
            len(read_run(path))
        run = read_run(path, lenient=True)
        assert len(run) + len(run.table.skipped) == rows_in(path)


@pytest.mark.parametrize("pattern", QRELS_FILES)
def test_public_qrels_are_recognised_and_have_a_row_for_each_line(pattern, shared):
    paths = sorted(shared.glob(pattern))
    assert paths
    for path in paths:
        assert detect(path) == ("trec", ("qrels",)), path
        assert len(read_qrels(path)) == rows_in(path), path
        with pytest.raises(FormatError, match="looks like qrels"):
            read_run(path)


@pytest.mark.parametrize("name", ["cisi/CISI.REL", "adi/ADI.REL", "cacm/qrels.text"])
def test_smart_relevance_files_are_not_taken_for_qrels(name, shared):
    with pytest.raises(FormatError, match="looks like a SMART relevance file"):
        read_qrels(shared / name)


@pytest.mark.parametrize("name", ["cranfield/cranqrel", "time/TIME.REL", "cran.all.1400"])
def test_other_files_of_the_collections_are_refused(name, shared):
    path = shared / name if (shared / name).exists() else shared / "cranfield" / name
    with pytest.raises(DataError):
        read_qrels(path)
    with pytest.raises(DataError):
        len(read_run(path))


MALFORMED = {
    "run_sample_invalid_less_columns.txt": ":2: expected 6 columns",
    "run_sample_invalid_more_columns.txt": ":2: expected 6 columns",
    "run_sample_warning_score_not_num.txt": ":5: expected a number in column 5",
    "qrels_sample_valid.txt": "looks like qrels",
    "topics_sample_valid.jsonl": "no column for the document",
    "topics_sample_warning_qid_not_in_run.jsonl": "no column for the document",
    "topics_sample_warning_qid_not_in_qrels.jsonl": "no column for the document",
}


def test_malformed_files_of_a_peer_are_refused_or_read(shared):
    paths = sorted((shared / "peer-cases" / "malformed-trec").glob("*"))
    assert set(MALFORMED) <= {path.name for path in paths}
    for path in paths:
        if path.is_dir():
            continue
        if path.name in MALFORMED:
            with pytest.raises(DataError, match=MALFORMED[path.name]):
                len(read_run(path))
        else:
            assert len(read_run(path)) == (0 if path.name == "empty_file.txt" else 5), path


def test_a_peer_s_preferences_are_recognised(shared):
    assert detect(shared / "trec_eval-test" / "prefs.test") == ("prefs", ("prefs",))
    assert detect(shared / "trec_eval-test" / "prefs.comment.test") == ("prefs", ("prefs",))


def test_a_buffer_is_unpacked_and_otherwise_as_it_is(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfq 0 d 1\n"))
    assert bytes(open_buffer(path)) == b"\xef\xbb\xbfq 0 d 1\n"
    assert decode(bytes(open_buffer(b"x"))) == "x"


# the documentation


def test_the_documentation_lists_every_format_and_column_and_its_examples_run(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1])
    module = importlib.import_module("docs.generate_formats")
    page, text = module.PAGE, module.page()
    assert page.read_text(encoding="utf-8") == text, "run make docs"
    for one in FORMATS.values():
        assert f"| `{one.name}` | {', '.join(one.kinds)} | {one.about} |" in text
    for names in (named.TOPIC, named.DOCUMENT, named.GRADE, named.TAG, named.ITERATION):
        assert f" {', '.join(names)} |" in text
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 8
    assert result.failed == 0


# any bytes at all

SEEDS = [example for one in FORMATS.values() for example in one.examples.values()]


@examples(100)
@given(
    seed=st.sampled_from([b"", *SEEDS]),
    cut=st.integers(0, 80),
    filling=st.binary(max_size=12)
    | st.sampled_from([b'"', b"{", b"[", b"}", b",", b"\t", b"\n", b"\0", b"nan", b"1e999", b"\\u"]),
    kind=st.sampled_from(["run", "qrels"]),
    lenient=st.booleans(),
    name=st.sampled_from([None, *FORMATS]),
)
def test_any_bytes_are_read_or_refused_in_words(seed, cut, filling, kind, lenient, name):
    content = seed[:cut] + filling + seed[cut:]
    with contextlib.suppress(DataError):  # and no other error
        read(kind, content, format=name, lenient=lenient).to_dict()


# what else is refused, and how it is said


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'[{"query_id": "1", "query_id": "2", "doc_id": "a", "score": 1}]', "field 'query_id' occurs twice"),
        (b"17", "expected {topic: {document: number}} or a list of rows, found 17"),
        (b"[17]", "expected a row with named fields, found 17"),
    ],
)
def test_json_of_another_shape_is_refused(content, problem):
    with pytest.raises(DataError, match=re.escape(problem)):
        read_run(content, format="json")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[1]", "expected a JSON object, found '\\[1\\]'"),
        (b'{"query_id": "1", "doc_id": "b", "score": 1} x', "expected a JSON object"),
        (b"{" * 5 + b"}", "expected a JSON object"),
    ],
)
def test_a_json_line_of_another_shape_is_named(line, problem):
    good = b'{"query_id": "1", "doc_id": "a", "score": 1}\n'
    with pytest.raises(BadLineError, match=problem) as error:
        read_run(good + line + b"\n", format="jsonl")
    assert error.value.line == 2


def test_a_score_among_many_rows_is_read_as_it_is_alone():
    head, rows = b"query_id,doc_id,score\n", b"".join(b"q,d%d,%d\n" % (i, i) for i in range(3000))
    alone = read_run(head + b"q,x,1e999\n", format="csv").to_dict()["q"]["x"]
    assert read_run(head + rows + b"q,x,1e999\n", format="csv").to_dict()["q"]["x"] == alone
    with pytest.raises(BadLineError) as error:
        read_run(head + rows + b"q,x,1-2\n", format="csv")
    assert error.value.line == 3002


def test_preferences_are_read_and_never_written(tmp_path):
    assert repr(FORMATS["prefs"]) == "<Format prefs>"
    with pytest.raises(FormatError, match="prefs"):
        write_run(RUN, tmp_path / "a", format="prefs")
    with pytest.raises(FormatError, match="can be read, not written"):
        FORMATS["prefs"].write(Run(RUN).table, "run", "")


def test_a_name_for_several_runs_is_refused(tmp_path):
    for name in ("a", "b"):
        write_run(RUN, tmp_path / f"{name}.run")
    with pytest.raises(FormatError, match="'both' stands for 2 runs, expected one"):
        as_runs({"both": str(tmp_path / "*.run")})


def test_a_pool_without_items_and_a_table_that_is_none_are_refused(tmp_path):
    (tmp_path / "pool.jsonl").write_text("\n")
    with pytest.raises(DataError, match="no items"):
        read_pool(tmp_path / "pool.jsonl")
    (tmp_path / "table.csv").write_text('topic,a\n1,"b"c\n')
    with pytest.raises(DataError, match="table.csv:2: expected cells with commas between them"):
        read_score_table(str(tmp_path / "table.csv"))


# how much a packed file may hold


@pytest.fixture(params=["gzip", "isal", "zstd", "xz", "bzip2"])
def packing(request, monkeypatch):
    """A codec, gzip with and without what is quicker."""
    if request.param == "isal":
        pytest.importorskip("isal")
    if request.param == "gzip":
        monkeypatch.setattr(streams, "QUICKER", {})
    return streams._codec("gzip" if request.param == "isal" else request.param)


def packed_quickly(packing, content: bytes) -> bytes:
    """Packed at the lowest level: how small a file is does not matter to what reads it."""
    return packing.compress(content, preset=0) if packing.__name__ == "lzma" else packing.compress(content, 1)


@pytest.mark.parametrize("size", [0, 1, 1 << 18, (1 << 18) + 1, 1_000_000])
def test_a_packed_file_is_the_same_in_small_pieces(packing, size, monkeypatch):
    monkeypatch.setattr(streams, "PIECE", 1 << 18)
    monkeypatch.setattr(streams, "SLICE", 1 << 16)  # the first piece, which holds most files whole
    content = (b"q Q0 d 1 1 t\n" * (size // 13 + 1))[:size]
    assert bytes(streams.open_buffer(packed_quickly(packing, content))) == content


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 20, (1 << 24) + 1, 20_000_000])
def test_a_packed_file_is_the_same_in_pieces(packing, size):
    content = (b"q Q0 d 1 1 t\n" * (size // 13 + 1))[:size]
    assert bytes(streams.open_buffer(packed_quickly(packing, content))) == content


def test_members_and_padding_are_read(packing):
    members = packing.compress(b"q 0 a 1\n") + packing.compress(b"q 0 b 1\n" * 200_000) + packing.compress(b"q 0 c 1\n")
    content = b"q 0 a 1\n" + b"q 0 b 1\n" * 200_000 + b"q 0 c 1\n"
    assert bytes(streams.open_buffer(members)) == content
    if packing.__name__ == "gzip":
        assert bytes(streams.open_buffer(members + b"\0" * 2_000_000)) == content


def test_a_packed_file_that_is_cut_short_is_told(packing):
    whole = packing.compress(b"q 0 a 1\n" * 100)
    for cut in (1, 5, len(whole) // 2):
        with pytest.raises(DataError, match="stream ends early|corrupt"):
            streams.open_buffer(whole[:-cut])


def test_a_packed_file_that_holds_too_much_is_refused(packing, monkeypatch, tmp_path):
    (tmp_path / "bomb").write_bytes(packed_quickly(packing, b"\0" * 40_000_000))
    monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", "20M")
    tracemalloc.start()
    for read in (streams.open_buffer, read_run, lambda path: list(streams.lines(path))):
        with pytest.raises(
            DataError, match=r"bomb(: .*unpacks to more than (20|2.5) MB|:1: expected lines of at most (2.5|5) MB)"
        ):
            read(str(tmp_path / "bomb"))
    assert streams.salvaged(str(tmp_path / "bomb")) == b""
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80_000_000
    monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", "40000000")
    (tmp_path / "lines").write_bytes(packed_quickly(packing, (b"\0" * 999 + b"\n") * 40_000))
    assert len(streams.open_buffer(str(tmp_path / "lines"))) == 40_000_000


def test_a_packed_file_may_hold_as_many_lines_as_it_likes(packing, monkeypatch, tmp_path):
    monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", "8k")
    (tmp_path / "many").write_bytes(packing.compress(b"x" * 999 + b"\n") * 3)
    assert list(streams.lines(tmp_path / "many")) == [b"x" * 999 + b"\n"] * 3


def test_the_limit_is_a_number_of_bytes_or_grows_with_the_file(monkeypatch):
    assert streams.most_unpacked() == 512_000_000
    assert streams.most_unpacked(1_000_000_000) == 12_000_000_000
    for said, meant in (("2G", 2 * 10**9), (" 7 ", 7), ("3k", 3000), ("1T", 10**12)):
        monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", said)
        assert streams.most_unpacked(10**12) == meant
    for odd in ("much", "-1", "0", "1.5G", "G", "٣", "9" * 30, "inf"):
        monkeypatch.setenv("CRANFIELD_MAX_UNPACKED", odd)
        with pytest.raises(ConventionError, match="CRANFIELD_MAX_UNPACKED: expected a number of bytes"):
            streams.most_unpacked()


# columns of other names


@pytest.mark.parametrize(
    ("kind", "header", "chosen"),
    [
        ("qrels", "query,sku,rating", ("query", "sku", "rating")),
        ("qrels", "query_id,query,asin,stars", ("query_id", "asin", "stars")),
        ("qrels", "search_term,url,clicks", ("search_term", "url", "clicks")),
        ("qrels", "query,product_id,rating,label", ("query", "product_id", "label")),  # rating: of the product
        ("qrels", "query,sku,clicks,rating", ("query", "sku", "rating")),
        ("qrels", "query,sku,rating,position", ("query", "sku", "rating")),
        ("qrels", "qid,docno,score,relevance_grade", ("qid", "docno", "relevance_grade")),
        ("qrels", "qid,docno,score,rating", ("qid", "docno", "score")),  # as ever
        ("run", "query,sku,position", ("query", "sku", "position")),
        ("run", "query,sku,position,_score", ("query", "sku", "_score")),
        ("run", "query,sku,score,rating", ("query", "sku", "score")),
    ],
)
def test_common_names_are_columns_and_known_ones_come_first(kind, header, chosen):
    names = header.split(",")
    assert kind in named.kinds_of(names)
    assert named.find(names, kind, "file")[:3] == chosen


def test_a_product_rating_leaves_a_run_a_run():
    assert named.kinds_of(["qid", "docno", "rank", "score", "tag", "rating", "clicks"]) == {"run"}
    assert named.kinds_of(["qid", "docno", "score", "position"]) == {"run", "qrels"}  # as without it
    with pytest.raises(FormatError, match="looks like a run .*--field grade=COLUMN names another"):
        read_qrels([{"qid": "q", "docno": "d", "rank": 1, "rating": 2}])
    assert read_qrels(b"qid,docno,rank,rating\nq,d,1,2\n", fields={"grade": "rating"})["q"] == {"d": 2.0}


def test_all_missing_columns_are_named_with_those_found_and_what_to_type():
    with pytest.raises(FormatError) as caught:
        read_qrels(b"frage,artikel,note\nhat,C3,2\n")
    said = str(caught.value)
    assert "\n" not in said
    assert "no column for the topic (such as query_id, qid" in said
    assert "the document (such as docno" in said
    assert "the grade (such as relevance" in said
    assert "found frage, artikel, note; " in said
    assert said.endswith("name them by --field topic=COLUMN --field document=COLUMN --field grade=COLUMN")
    with pytest.raises(FormatError, match=r"no column for the topic \(serach\); found search, sku, grade; name it by"):
        read_qrels(b"search,sku,grade\nhat,C3,2\n", fields={"topic": "serach"})


RENAMED = {"topic": "Frage", "document": "artikel", "score": "punkte", "grade": "note"}


@pytest.mark.parametrize(
    "content",
    [
        b"frage,artikel,punkte,note\nhat,C3,2.5,1\n",
        b'"frage",artikel,punkte,note\nhat,"C3",2.5,1\n',
        b"frage\tartikel\tpunkte\tnote\nhat\tC3\t2.5\t1\n",
        b'{"frage": "hat", "artikel": "C3", "punkte": 2.5, "note": 1}\n',
        b'[{"frage": "hat", "artikel": "C3", "punkte": 2.5, "note": 1}]',
        [{"frage": "hat", "artikel": "C3", "punkte": 2.5, "note": 1}],
        {"frage": ["hat"], "artikel": ["C3"], "punkte": [2.5], "note": [1]},
    ],
)
def test_columns_are_called_as_fields_say(content):
    assert read_run(content, fields=RENAMED)["hat"] == [("C3", 2.5)]
    assert read_qrels(content, fields=RENAMED)["hat"] == {"C3": 1.0}
    assert evaluate({"hat": {"C3": 1}}, content, "RR", fields=RENAMED).mean() == 1


def test_the_tag_of_a_run_in_parquet_is_text(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_run({"q": {"d": 1.0}}, tmp_path / "bm25.parquet")
    assert {str(field.type) for field in parquet.read_schema(tmp_path / "bm25.parquet") if field.name != "rank"} == {
        "large_string",
        "double",
    }


def test_parquet_columns_are_called_as_fields_say(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"frage": ["hat"], "artikel": ["C3"], "punkte": [2.5], "note": [1]})
    parquet.write_table(table, tmp_path / "all.parquet")
    assert read_run(tmp_path / "all.parquet", fields=RENAMED)["hat"] == [("C3", 2.5)]
    assert read_qrels(tmp_path / "all.parquet", fields=RENAMED)["hat"] == {"C3": 1.0}


def test_a_named_rank_or_score_is_the_only_one():
    content = b"qid,sku,score,platz\nhat,A1,2,2\nhat,B2,1,1\n"
    assert [document for document, _ in read_run(content, fields={"rank": "platz"})["hat"]] == ["B2", "A1"]
    assert [document for document, _ in read_run(content, fields={"score": "score"})["hat"]] == ["A1", "B2"]
    with pytest.raises(FormatError, match=r"no column for the score \(points\)"):
        read_run(b"qid,sku,rank\nhat,A1,1\n", fields={"score": "points"})
    with pytest.raises(FormatError, match="no column is the 'topik'; fields name topic, document"):
        read_run(content, fields={"topik": "qid"})


def test_the_first_of_several_names_that_a_file_has_counts():
    fields = {"topic": ["frage", "search"]}
    for name in (b"frage", b"search"):
        assert read_qrels(name + b",sku,grade\nhat,C3,2\n", fields=fields)["hat"] == {"C3": 2.0}


def test_predictions_of_sentence_transformers_are_a_run_of_json_lines(tmp_path: Path) -> None:
    """As its evaluator writes them: one topic a line, its results in a list."""
    path = tmp_path / "Information-Retrieval_evaluation_predictions_cosine.jsonl"
    results = [{"corpus_id": "d2", "score": 0.5}, {"corpus_id": "d1", "score": 0.25}]
    lines = [{"query_id": q, "query": "what", "results": results} for q in ("q1", "q2")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(path).to_dict() == {"q1": {"d2": 0.5, "d1": 0.25}, "q2": {"d2": 0.5, "d1": 0.25}}
    path.write_text(
        json.dumps(lines[0]) + '\n{"query_id": "q2", "query": "x", "results": [{"corpus_id": "d1", "score": "?"}]}\n'
    )
    with pytest.raises(BadLineError, match=r"predictions_cosine.jsonl:2"):
        read_run(path)
    path.write_text(json.dumps(lines[0]) + '\n{"query_id": "q2", "query": "x", "results": [7]}\n')
    with pytest.raises(DataError, match=r"predictions_cosine.jsonl:2"):
        read_run(path)


def test_a_set_of_documents_is_judgments_of_grade_1() -> None:
    """As sentence-transformers has them; beside ordinary judgments too."""
    judged = {"q1": {"d1", "d2"}, "q2": frozenset({"d3"}), "q3": {"d4": 2}}
    expected = {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}, "q3": {"d4": 2}}
    assert Qrels(judged).to_dict() == as_qrels(judged).to_dict() == expected
    assert evaluate(judged, {"q1": {"d9": 2.0, "d2": 1.0}}, "RR", missing="skip").mean() == 0.5
    with pytest.raises(DataError, match="expected an id that is text|expected a finite grade|document 7"):
        Qrels({"q1": {7}})
