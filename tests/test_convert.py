from __future__ import annotations

import gzip
import itertools

import pytest

from cranfield.base.errors import ConventionError, DataError, FormatError
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run
from cranfield.evaluation.evaluate import evaluate
from cranfield.formats import FORMATS, read_qrels, read_run, write_qrels, write_run
from cranfield.formats.convert import convert, merge_qrels

RUN = {"q1": {"d1": 0.5, "d2": 0.9}, "q2": {"d3": -1.25}}
QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2.5}}
NAMES = {kind: [one.name for one in FORMATS.values() if kind in one.kinds] for kind in ("run", "qrels")}


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NAMES["run"], repeat=2)))
def test_a_run_goes_from_every_format_to_every_other(source, target, tmp_path):
    write_run(Run(RUN, "mine", tag="t"), tmp_path / "a", format=source)
    done = convert(tmp_path / "a", tmp_path / "b", from_format=source, to_format=target, kind="run")
    back = read_run(tmp_path / "b", format=target)
    assert (done.kind, done.format, done.rows, done.topics) == ("run", target, 3, 2)
    assert [[document for document, _ in back[topic]] for topic in back] == [["d2", "d1"], ["d3"]]
    if FORMATS[source].scores and FORMATS[target].scores:
        assert back.to_dict() == RUN
    noted = " ".join(done.notes)
    assert ("scores are not kept" in noted) == (not FORMATS[target].scores)
    assert ("a score is the rank" in noted) == (not FORMATS[source].scores and FORMATS[target].scores)
    assert ("the tag 't' is not kept" in noted) == (
        "run" in FORMATS[source].labels and "run" not in FORMATS[target].labels
    )


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NAMES["qrels"], repeat=2)))
def test_qrels_go_from_every_format_to_every_other(source, target, tmp_path):
    write_qrels(QRELS, tmp_path / "a", format=source)
    done = convert(tmp_path / "a", tmp_path / "b", from_format=source, to_format=target, kind="qrels")
    assert read_qrels(tmp_path / "b", format=target).to_dict() == QRELS
    assert done.notes == []


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        ("a.run", "b.json", "run"),
        ("a.qrels", "b.jsonl.zst", "qrels"),
        ("a.run.json", "b.csv", "run"),
        ("a.json", "b.qrels", "qrels"),
        ("a.json", "b.run.gz", "run"),
        ("a.qrels.json", "b.tsv", "qrels"),
        ("a.csv", "b.parquet", "run"),
        ("a.json", "b.res", "run"),
    ],
)
def test_names_and_content_say_what_is_what(source, target, kind, tmp_path):
    given = RUN if kind == "run" else QRELS
    (write_run if kind == "run" else write_qrels)(given, tmp_path / source)
    assert convert(tmp_path / source, tmp_path / target).kind == kind
    back = (read_run if kind == "run" else read_qrels)(tmp_path / target)
    assert back.to_dict() == given


def test_what_may_be_either_is_not_guessed(tmp_path):
    (tmp_path / "a.json").write_text('{"q": {"d": 1}}')
    with pytest.raises(FormatError, match=r"a\.json: may be a run or qrels; say kind='run' or kind='qrels'"):
        convert(tmp_path / "a.json", tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()
    assert convert(tmp_path / "a.json", tmp_path / "b.csv", kind="qrels").kind == "qrels"
    assert convert(tmp_path / "a.json", tmp_path / "c.tsv", to_format="beir").kind == "qrels"


def test_preferences_and_unknown_formats_are_refused(tmp_path):
    (tmp_path / "a.prefs").write_bytes(FORMATS["prefs"].examples["prefs"])
    with pytest.raises(FormatError, match="looks like preferences"):
        convert(tmp_path / "a.prefs", tmp_path / "b.qrels")
    with pytest.raises(ConventionError, match="no format 'xls'"):
        convert(tmp_path / "a.prefs", tmp_path / "b.qrels", from_format="xls")
    with pytest.raises(FormatError, match="prefs can be read, not written|prefs holds preferences, not qrels"):
        convert(QRELS, tmp_path / "b", to_format="prefs", kind="qrels")
    with pytest.raises(FormatError, match="nothing to convert"):
        convert([], tmp_path / "b")


def test_bad_input_leaves_the_target_as_it_was(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 d 1 1 t\nq Q0 e 2\n")
    (tmp_path / "b.json").write_text("old")
    with pytest.raises(DataError, match=r"a\.run:2: expected 6 columns"):
        convert(tmp_path / "a.run", tmp_path / "b.json")
    assert (tmp_path / "b.json").read_text() == "old"
    done = convert(tmp_path / "a.run", tmp_path / "b.json", lenient=True)
    assert (done.rows, done.notes[0]) == (1, "1 malformed lines were left out")


def test_a_file_can_be_converted_onto_itself(tmp_path):
    path = tmp_path / "a.run"
    write_run(RUN, path)
    convert(path, path, to_format="csv")
    assert read_run(path).to_dict() == RUN


def test_labels_that_mean_something_are_not_lost_in_silence(tmp_path):
    (tmp_path / "a.qrels").write_text("q 1 d 1\nq 2 e 1\n")
    done = convert(tmp_path / "a.qrels", tmp_path / "b.json")
    assert done.notes == ["labels (column 2) are not kept: json has no place for them"]
    assert convert(tmp_path / "a.qrels", tmp_path / "b.jsonl").notes == []
    (tmp_path / "a.qrels").write_text("q 1 d 1\nq 2 d 0\n")
    with pytest.raises(
        FormatError, match="document 'd' occurs twice for topic 'q', which json cannot hold; use trec, csv or jsonl"
    ):
        convert(tmp_path / "a.qrels", tmp_path / "b.json")
    convert(tmp_path / "a.qrels", tmp_path / "b.csv")
    assert len(read_qrels(tmp_path / "b.csv")) == 2


def test_a_document_named_twice_in_a_run_is_not_lost_in_silence(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 d 1 2 t\nq Q0 d 2 1 t\n")
    with pytest.raises(FormatError, match="occurs twice"):
        convert(tmp_path / "a.run", tmp_path / "b.json")
    assert convert(tmp_path / "a.run", tmp_path / "b.csv").rows == 2


# merging


@pytest.fixture
def two(tmp_path):
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\nq1 0 d2 2\nq2 0 d1 0\n")
    (tmp_path / "b.qrels").write_text("q3 Q0 d9 1\nq1 Q0 d2 0\nq1 Q0 d3 1\nq1 Q0 d1 1\n")
    return [tmp_path / "a.qrels", tmp_path / "b.qrels"]


@pytest.mark.parametrize(("merge", "grade"), [("latest", 0), ("max", 2)])
def test_conflicting_grades_are_settled_as_told(two, merge, grade, tmp_path):
    done = convert(two, tmp_path / "all.qrels", merge=merge)
    expected = {"q1": {"d1": 1, "d2": grade, "d3": 1}, "q2": {"d1": 0}, "q3": {"d9": 1}}
    merged = read_qrels(tmp_path / "all.qrels")
    assert merged.to_dict() == expected
    assert list(merged.to_dict()["q1"]) == ["d1", "d2", "d3"]
    assert merged.topics == ["q1", "q2", "q3"]
    assert done.notes == [
        "1 judgments stand in several files with the same grade",
        f"1 conflicting grades were settled by {merge!r}",
    ]


@pytest.mark.parametrize("merge", ["error", None])
def test_a_conflict_names_topic_document_grades_and_both_files(two, merge, tmp_path):
    with pytest.raises(DataError, match=r"topic 'q1', document 'd2': grade 2 in \S*a\.qrels, 0 in \S*b\.qrels"):
        convert(two, tmp_path / "all.qrels", merge=merge)
    assert not (tmp_path / "all.qrels").exists()


def test_files_of_different_formats_are_merged(tmp_path):
    write_qrels({"q": {"a": 1}}, tmp_path / "a.qrels")
    write_qrels({"q": {"b": 0.5}}, tmp_path / "b.json")
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress(b"query-id\tcorpus-id\tscore\nr\tc\t2\n"))
    done = convert([tmp_path / "a.qrels", tmp_path / "b.json", tmp_path / "c.tsv.gz"], tmp_path / "all.jsonl")
    assert read_qrels(tmp_path / "all.jsonl").to_dict() == {"q": {"a": 1, "b": 0.5}, "r": {"c": 2}}
    assert (done.kind, done.rows, done.topics) == ("qrels", 3, 2)


def test_subtopics_are_kept_apart_when_they_are_merged():
    first = read_qrels(b"q 1 d 1\nq 2 d 0\n", name="first")
    second = read_qrels(b"q 1 d 0\nq 3 d 1\n", name="second")
    merged, _ = merge_qrels([first, second], "latest")
    rows = zip((merged.labels[i] for i in merged.label.tolist()), merged.grade.tolist(), strict=True)
    assert sorted(rows) == [(b"1", 0), (b"2", 0), (b"3", 1)]
    with pytest.raises(DataError, match="grade 1 in first, 0 in second"):
        merge_qrels([first, second])


def test_the_latest_of_three_files_counts():
    several = [Qrels({"q": {"d": grade}}, f"f{grade}") for grade in (1, 3, 2)]
    assert merge_qrels(several, "latest")[0]["q"] == {"d": 2.0}
    assert merge_qrels(several, "max")[0]["q"] == {"d": 3.0}


def test_runs_are_not_merged_and_kinds_not_mixed(two, tmp_path):
    write_run(RUN, tmp_path / "a.run")
    with pytest.raises(FormatError, match="2 runs cannot be merged into one"):
        convert([tmp_path / "a.run", tmp_path / "a.run"], tmp_path / "b.run")
    with pytest.raises(FormatError, match=r"a\.run: looks like a run, the other files hold qrels"):
        convert([two[0], tmp_path / "a.run"], tmp_path / "b.qrels", merge="max")
    with pytest.raises(ConventionError, match="merge must be one of latest, max, error, got 'first'"):
        convert(two, tmp_path / "b.qrels", merge="first")


# public collections


def test_a_public_run_scores_the_same_in_every_format(shared, tmp_path):
    qrels = shared / "cacm" / "cacm.qrels"
    source = shared / "cacm" / "cacm_core_1"
    expected = evaluate(qrels, source, "AP nDCG@10 RR").values.tolist()
    for one in FORMATS.values():
        if "run" in one.kinds and one.scores:
            convert(source, tmp_path / "file", to_format=one.name)
            assert evaluate(qrels, read_run(tmp_path / "file"), "AP nDCG@10 RR").values.tolist() == expected, one.name


def test_public_subtopic_qrels_are_converted_without_loss(shared, tmp_path):
    source = shared / "diversity-wt09-10" / "2010.diversity.qrels"
    for name in ("trec", "csv", "tsv", "jsonl", "parquet"):
        convert(source, tmp_path / "file", to_format=name)
        before, after = read_qrels(source).table, read_qrels(tmp_path / "file").table
        assert [list(column) for column in (before.topics, before.documents, before.labels)] == [
            list(column) for column in (after.topics, after.documents, after.labels)
        ]
        assert before.label.tolist() == after.label.tolist()
        assert before.value.tolist() == after.value.tolist()
    with pytest.raises(FormatError, match="occurs twice"):
        convert(source, tmp_path / "other", to_format="json")


@pytest.mark.parametrize("name", ["trec", "json"])
def test_a_named_format_still_says_what_a_file_holds(name, tmp_path):
    write_qrels(QRELS, tmp_path / "a", format=name)
    done = convert(tmp_path / "a", tmp_path / "b.qrels", from_format=name)
    assert (done.kind, done.rows) == ("qrels", 3)


def test_what_is_no_file_says_itself_what_it_holds(tmp_path):
    assert convert(Run(RUN, "mine"), tmp_path / "a").kind == "run"
    assert convert(Qrels(QRELS), tmp_path / "b").kind == "qrels"
    assert convert(RUN, tmp_path / "c.run").kind == "run"
