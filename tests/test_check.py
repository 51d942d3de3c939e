"""What is wrong or suspicious in a file is found, named, counted and placed; and a sound file is left in peace."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import Strings
from cranfield.collections.check import CODES, Finding, Findings, check, render, to_dict
from cranfield.collections.check.file import byte_counts, keys
from cranfield.evaluation.evaluate import Evaluator
from cranfield.evaluation.tie_orders import extreme_order
from cranfield.formats import write_run
from hypotheses import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RUN = b"1 Q0 a 1 9.5 bm25\n1 Q0 b 2 8.25 bm25\n1 Q0 c 3 7 bm25\n2 Q0 a 1 4 bm25\n2 Q0 b 2 3 bm25\n2 Q0 c 3 2 bm25\n"
QRELS = b"1 0 a 1\n1 0 b 0\n1 0 c 2\n2 0 a 0\n2 0 b 1\n2 0 c 1\n"


@pytest.fixture
def examine(tmp_path: Path) -> Callable[..., Findings]:
    def examine(content: bytes, qrels: bytes | None = None, kind: Any = None) -> Findings:
        path = tmp_path / "file"
        path.write_bytes(content)
        if qrels is None:
            return check(path, kind=kind)
        judged = tmp_path / "qrels"
        judged.write_bytes(qrels)
        return Findings(finding for finding in check(path, judged, kind) if finding.file == str(path))

    return examine


def codes(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings}


def grave(findings: Iterable[Finding]) -> set[str]:
    return {finding.code for finding in findings if finding.severity != "note"}


def only(findings: Iterable[Finding], code: str) -> Finding:
    [finding] = [finding for finding in findings if finding.code == code]
    return finding


# every code has a case: the file, and the line of the first example or None

CASES: dict[str, tuple[bytes, int | None]] = {
    "empty": (b"\n \n", None),
    "unknown-kind": (b"one two\nthree four\n", None),
    "utf-16": ("1 Q0 a 1 2 x\n".encode("utf-16"), None),
    "byte-order-mark": (b"\xef\xbb\xbf" + RUN, 1),
    "not-utf-8": (RUN.replace(b"2 Q0 b", b"2 Q0 caf\xe9"), 5),
    "nul": (RUN.replace(b"2 Q0 b", b"2 Q0 b\0"), 5),
    "control-characters": (RUN.replace(b"2 Q0 b", b"2 Q0 b\x01"), 5),
    "lone-cr": (RUN.replace(b"bm25\n2 Q0 b", b"bm25\r2 Q0 b"), 4),
    "crlf": (RUN.replace(b"\n", b"\r\n"), None),
    "mixed-line-ends": (RUN.replace(b"4 bm25\n", b"4 bm25\r\n"), 4),
    "no-final-newline": (RUN[:-1], 6),
    "blank-lines": (RUN + b"\n", 7),
    "comments": (b"# made by hand\n" + RUN, 1),
    "columns": (RUN + b"3 Q0 a 1 2\n3 Q0 b 2 1 x y\n", 7),
    "bad-rows": (b"query_id,doc_id,score\n1,a,2\n1,b,high\n", 3),
    "header": (b"qid Q0 docno rank score tag\n" + RUN, 1),
    "score-not-a-number": (RUN + b"3 Q0 a 1 nan bm25\n3 Q0 b 2 0x1p3 bm25\n3 Q0 c 3 high bm25\n", 7),
    "grade-not-a-number": (QRELS + b"3 0 a yes\n3 0 b inf\n", 7),
    "duplicate-documents": (RUN + b"2 Q0 a 4 1 bm25\n", 7),
    "judged-twice": (QRELS + b"1 0 a 1\n", 7),
    "judged-in-conflict": (QRELS + b"1 0 a 2\n", 7),
    "odd-characters": (RUN.replace(b" b ", b" b% "), 2),
    "invisible-characters": (RUN.replace(b"2 Q0 b", "2 Q0 b\u00a0".encode()), 5),
    "ids-differ-in-case": (RUN.replace(b"2 Q0 b", b"2 Q0 A"), None),
    "ids-differ-in-unicode": (
        RUN.replace(b"1 Q0 b", "1 Q0 é".encode()).replace(b"2 Q0 b", "2 Q0 e\u0301".encode()),
        None,
    ),
    "ids-differ-in-zeros": (RUN.replace(b"2 Q0", b"01 Q0"), None),
    "ranks-not-whole": (RUN.replace(b"b 2 3", b"b 2.5 3"), 5),
    "ranks-not-ascending": (RUN.replace(b"b 2 3", b"b 9 3"), 6),
    "ranks-not-consecutive": (RUN.replace(b"c 3 2", b"c 4 2"), 6),
    "ranks-tied": (RUN.replace(b"c 3 2", b"c 2 2"), 6),
    "ranks-start": (RUN.replace(b"2 Q0 a 1", b"2 Q0 a 0"), 4),
    "ranks-contradict-scores": (RUN.replace(b"c 3 2", b"c 3 3.5"), 6),
    "scores-not-descending": (RUN.replace(b"c 3 2", b"c 3 3.5"), 6),
    "scores-reversed": (b"1 Q0 a 1 0.1 x\n1 Q0 b 2 0.2 x\n2 Q0 c 1 0.1 x\n2 Q0 d 2 0.4 x\n", 2),
    "scores-infinite": (RUN.replace(b"a 1 4", b"a 1 inf"), 4),
    "scores-scientific": (RUN.replace(b"9.5", b"9.5E0"), None),
    "tied-scores": (RUN.replace(b"c 3 2", b"c 3 3"), None),
    "tied-at-32-bits": (RUN.replace(b"b 2 3", b"b 2 2.0000000001"), None),
    "topics-scattered": (RUN + b"1 Q0 d 4 1 bm25\n", 7),
    "mixed-tags": (RUN.replace(b"3 bm25", b"3 bm26"), 5),
    "q0-column": (RUN.replace(b"2 Q0 b", b"2 Q1 b"), 5),
    "shallow-run": (RUN, None),
    "shallow-topics": (RUN + b"3 Q0 a 1 1 bm25\n", None),
    "grades-negative": (QRELS + b"2 0 d -2\n", 7),
    "grades-fractional": (QRELS + b"2 0 d 1.5\n", 7),
    "grades-below-one": (b"1 0 a 0.2\n1 0 b 0.9\n1 0 c 0\n", None),
    "grades-constant": (b"1 0 a 1\n1 0 b 1\n2 0 a 1\n2 0 b 1\n", None),
    "grades-large": (QRELS + b"2 0 d 184\n", 7),
    "grades-reversed": (b"1 0 a 1\n1 0 b 2\n1 0 c 2\n1 0 d 3\n1 0 e 3\n1 0 f 3\n1 0 g -1\n", None),
    "grades-without-zero": (b"1 0 a 5\n1 0 b 4\n1 0 c 1\n1 0 d 1\n", None),
    "grades-lone": (b"".join(b"1 0 d%d %d\n" % (i, i % 2) for i in range(120)) + b"1 0 z 3\n", 121),
    "topics-without-relevant": (QRELS + b"3 0 a 0\n", None),
    "topics-with-one-relevant": (QRELS + b"3 0 a 1\n", None),
    "iteration-column": (QRELS.replace(b"2 0 c", b"2 1 c"), 6),
}
AGAINST: dict[str, tuple[bytes, int | None]] = {
    "no-common-topic": (RUN.replace(b"1 Q0", b"q1 Q0").replace(b"2 Q0", b"q2 Q0"), None),
    "topics-missing": (RUN[: RUN.index(b"2 Q0")], None),
    "topics-not-judged": (RUN + b"3 Q0 a 1 1 bm25\n", None),
    "documents-not-judged": (RUN.replace(b"2 Q0 b", b"2 Q0 z"), 5),
    "no-judged-document": (re.sub(rb" Q0 (\w)", rb" Q0 x\1", RUN), None),
    "tie-order": (RUN.replace(b"b 2 3", b"b 2 4"), None),
}
ELSEWHERE = {"unreadable", "truncated", "wrong-kind"} | {  # and in test_silence.py
    "few-common-topics",
    "few-judged-documents",
    "documents-not-named",
    "little-judged",
    "swapped-arguments",
    "beyond-single-precision",
    "few-documents-of-collection",
    "no-document-of-collection",
    "tie-swap",
    "grades-beyond-scale",
}


@pytest.mark.parametrize("code", CASES)
def test_a_file_with_a_problem_has_it_named_and_placed(code: str, examine: Callable[..., Findings]) -> None:
    content, line = CASES[code]
    finding = only(examine(content), code)
    assert finding.line == line
    assert finding.severity == CODES[code].severity
    assert CODES[code].what in finding.message
    assert CODES[code].advice in finding.message


@pytest.mark.parametrize("code", AGAINST)
def test_a_run_that_does_not_fit_its_qrels_has_it_named(code: str, examine: Callable[..., Findings]) -> None:
    content, line = AGAINST[code]
    assert code not in codes(examine(content))
    assert code not in codes(examine(RUN, QRELS))
    assert only(examine(content, QRELS), code).line == line


def test_every_code_has_a_case() -> None:
    assert {*CASES, *AGAINST, *ELSEWHERE} == set(CODES)


def test_no_case_but_its_own_shows_a_code(examine: Callable[..., Findings]) -> None:
    """A code that fired everywhere would pass the test above."""
    for sound in (RUN, QRELS):
        found = codes(examine(sound))
        assert found <= {"shallow-run"}


def test_a_sound_run_and_its_qrels_give_no_error_and_no_warning(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(RUN)
    (tmp_path / "qrels").write_bytes(QRELS)
    assert codes(check([tmp_path / "run", tmp_path / "qrels"])) == {"shallow-run"}


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["doc1", "DOC1"], "ids-differ-in-case"),
        (["doc1", "DOC2"], None),
        (["007", "7"], "ids-differ-in-zeros"),
        (["007", "07"], "ids-differ-in-zeros"),
        (["007", "8"], None),
        (["0", "00"], "ids-differ-in-zeros"),
        (["a07", "a7"], None),
        (["École", "école"], "ids-differ-in-case"),
        (["ñ", "n\u0303"], "ids-differ-in-unicode"),
        (["ñ", "n"], None),
    ],
    ids=str,
)
def test_ids_that_are_almost_the_same(ids: list[str], code: str | None, examine: Callable[..., Findings]) -> None:
    filler = "".join(f"1 Q0 x{i} {i + 3} {9 - i} t\n" for i in range(5))
    found = examine(f"1 Q0 {ids[0]} 1 99 t\n1 Q0 {ids[1]} 2 98 t\n{filler}".encode())
    assert {c for c in codes(found) if c.startswith("ids-")} == ({code} if code else set())
    if code:
        assert all(ascii(one) in only(found, code).message for one in ids)


# where, how often, in which words


def test_each_bad_line_is_counted_and_the_first_five_are_shown(examine: Callable[..., Findings]) -> None:
    bad = b"".join(b"3 Q0 d%d 1 2\n" % i for i in range(8))
    finding = only(examine(RUN + bad), "columns")
    assert (finding.line, finding.count, len(finding.examples)) == (7, 8, 5)
    assert finding.examples[0] == "line 7: '3 Q0 d0 1 2'"
    assert "8 lines of 5 columns; expected 6 (topic Q0 document rank score tag)" in finding.message


def test_a_bad_line_does_not_hide_the_next_problem(examine: Callable[..., Findings]) -> None:
    content = b"1 Q0 a 1 2\n1 Q0 b x nan bm25\n" + RUN + b"2 Q0 a 4 1 bm26\n"
    assert {"columns", "score-not-a-number", "duplicate-documents", "mixed-tags"} <= codes(examine(content))


def test_errors_come_first_and_notes_last(examine: Callable[..., Findings]) -> None:
    found = [finding.severity for finding in examine(CASES["duplicate-documents"][0].replace(b"9.5", b"inf"))]
    assert found == sorted(found, key=["error", "warning", "note"].index)
    assert {"error", "warning", "note"} == set(found)


def test_a_duplicate_names_the_line_that_it_repeats(examine: Callable[..., Findings]) -> None:
    finding = only(examine(RUN + b"2 Q0 a 4 1 bm25\n1 Q0 b 4 1 bm25\n"), "duplicate-documents")
    assert finding.examples == (
        "line 7: topic '2', document 'a', as on line 4",
        "line 8: topic '1', document 'b', as on line 2",
    )


def test_conflicting_judgments_show_both_grades(examine: Callable[..., Findings]) -> None:
    finding = only(examine(QRELS + b"1 0 c 0\n"), "judged-in-conflict")
    assert finding.examples == ("line 7: topic '1', document 'c': 0, and 2 on line 3",)


def test_a_document_judged_for_several_subtopics_is_no_duplicate(examine: Callable[..., Findings]) -> None:
    assert not {"judged-twice", "judged-in-conflict"} & codes(examine(b"1 1 a 1\n1 2 a 0\n1 1 b 1\n"))


def test_an_equal_document_of_another_topic_is_no_duplicate(examine: Callable[..., Findings]) -> None:
    assert "duplicate-documents" not in codes(examine(b"1 Q0 23 1 2 x\n12 Q0 3 1 2 x\n"))


def test_line_numbers_count_comments_blank_lines_and_bad_lines(examine: Callable[..., Findings]) -> None:
    content = b"# one\n\n1 Q0 a 1\n" + RUN.replace(b"9.5", b"oops")
    found = examine(content)
    assert [only(found, code).line for code in ("comments", "blank-lines", "columns", "score-not-a-number")] == [
        1,
        2,
        3,
        4,
    ]


def test_a_line_of_white_space_is_a_blank_line(examine: Callable[..., Findings]) -> None:
    finding = only(examine(b" \t\n" + RUN + b"\r\n"), "blank-lines")
    assert (finding.line, finding.count) == (1, 2)


def test_rank_gaps_are_not_blamed_on_lines_that_could_not_be_read(examine: Callable[..., Findings]) -> None:
    content = RUN.replace(b"1 Q0 b 2 8.25", b"1 Q0 b 2 high").replace(b"2 Q0 a 1 4", b"2 Q0 a 1 high")
    assert not {"ranks-not-consecutive", "ranks-start"} & codes(examine(content))


def test_ranks_from_0_and_ranks_from_1_are_both_fine(examine: Callable[..., Findings]) -> None:
    zero = re.sub(rb"(\w) (\d) ([\d.]+) bm25", lambda m: b"%s %d %s bm25" % (m[1], int(m[2]) - 1, m[3]), RUN)
    assert zero != RUN
    assert not grave(examine(zero))
    assert not grave(examine(RUN))


def test_tied_ranks_in_order_of_score_contradict_nothing(examine: Callable[..., Findings]) -> None:
    content = b"".join(b"1 Q0 d%d 0 %d x\n" % (i, 9 - i) for i in range(5))
    assert {"ranks-tied"} == grave(examine(content))


def test_topics_missing_because_of_leading_zeros_come_with_a_hint(examine: Callable[..., Findings]) -> None:
    finding = only(examine(RUN.replace(b"1 Q0", b"001 Q0").replace(b"2 Q0", b"002 Q0"), QRELS), "no-common-topic")
    assert "2 would match without leading zeros" in finding.message


def test_documents_of_another_id_scheme_are_shown_beside_the_judged_ones(examine: Callable[..., Findings]) -> None:
    message = only(examine(*[AGAINST["no-judged-document"][0], QRELS]), "no-judged-document").message
    assert "'xa', 'xb', 'xc'" in message
    assert "judged are 'a', 'b', 'c'" in message


def test_the_share_of_judged_documents_by_hand(examine: Callable[..., Findings]) -> None:
    rows = b"".join(
        b"1 Q0 %s %d %d x\n" % (d, r, 30 - r) for r, d in enumerate([b"a", b"b", *[b"u%d" % i for i in range(18)]], 1)
    )
    finding = only(examine(rows, b"1 0 a 1\n1 0 b 0\n1 0 u17 -1\n"), "documents-not-judged")
    assert "judged are 20.0% of the top 10 and 10.0% of the top 1,000; 18 of 20 documents are not" in finding.message
    assert finding.count == 18
    assert finding.examples[0] == "line 3: topic '1', document 'u0'"


def test_a_run_shorter_than_another_is_compared_with_it(tmp_path: Path) -> None:
    for name, depth in (("long", 1000), ("short", 20)):
        rows = b"".join(b"1 Q0 d%d %d %d x\n" % (i, i, 2000 - i) for i in range(1, depth + 1))
        (tmp_path / name).write_bytes(rows)
    finding = only(check([tmp_path / "long", tmp_path / "short"]), "shallow-run")
    assert finding.file == str(tmp_path / "short")
    assert "no topic has more than 20 documents; another run goes down to 1,000" in finding.message


def test_windows_line_ends_and_a_mark_change_nothing_else(examine: Callable[..., Findings]) -> None:
    found = codes(examine(b"\xef\xbb\xbf" + RUN.replace(b"\n", b"\r\n")))
    assert found == {"byte-order-mark", "crlf", "shallow-run"}


def test_a_line_break_in_quotes_ends_no_line(examine: Callable[..., Findings]) -> None:
    """Spreadsheets write LF within quotes and CR LF after each row."""
    table = b'topic,document,grade\r\n"red\nmug",d1,1\r\n"red\nmug","d""2",0\r\n'
    assert {"crlf", "mixed-line-ends"} & codes(examine(table)) == {"crlf"}
    assert {"crlf", "mixed-line-ends"} & codes(examine(table + b"pan,d1,1\n")) == {"mixed-line-ends"}
    inches = table + b'20" pan,d1,1\r\n20" pan,d2,0\r\n'
    assert only(examine(inches), "crlf").count == 5  # rows, the header among them


def test_mixed_encodings_are_told_from_a_wrong_one(examine: Callable[..., Findings]) -> None:
    latin = RUN.replace(b"1 Q0 b", b"1 Q0 caf\xe9")
    assert "mixes" not in only(examine(latin), "not-utf-8").message
    assert "mixes encodings" in only(examine(latin.replace(b"2 Q0 c", "2 Q0 ü".encode())), "not-utf-8").message


# what kind of file it is


@pytest.mark.parametrize(("kind", "content"), [("run", QRELS), ("qrels", RUN)])
def test_a_file_of_the_other_kind_is_an_error(kind: str, content: bytes, examine: Callable[..., Findings]) -> None:
    assert "wrong-kind" in codes(examine(content, kind=kind))
    assert "wrong-kind" not in codes(examine(content, kind={"run": "qrels", "qrels": "run"}[kind]))


def test_a_run_given_as_qrels_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(RUN)
    (tmp_path / "other").write_bytes(RUN)
    assert only(check(tmp_path / "run", qrels=tmp_path / "other"), "wrong-kind").file == str(tmp_path / "other")


def test_qrels_may_be_a_mapping() -> None:
    with pytest.raises(ConventionError, match="kind must be run or qrels, got 'runs'"):
        check([], kind="runs")  # type: ignore[arg-type]
    assert check([], qrels={"1": {"a": 1}}) == []


def test_a_mapping_of_judgments_serves_as_well_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(RUN)
    assert "topics-missing" in codes(check(tmp_path / "run", qrels={"1": {"a": 1}, "9": {"b": 1}}))


OTHER_RUNS = {
    "msmarco": b"1\ta\t1\n1\tb\t2\n1\ta\t3\n",
    "csv": b"query_id,doc_id,score\n1,a,3\n1,b,2\n1,a,1\n",
    "jsonl": b'{"query_id":"1","doc_id":"a","score":3}\n{"query_id":"1","doc_id":"b","score":2}\n'
    b'{"query_id":"1","doc_id":"a","score":1}\n',
}


@pytest.mark.parametrize("name", OTHER_RUNS)
def test_a_run_in_another_format_is_checked_by_its_rows(name: str, examine: Callable[..., Findings]) -> None:
    finding = only(examine(OTHER_RUNS[name], b"1 0 a 1\n2 0 a 1\n"), "duplicate-documents")
    assert finding.count == 1
    assert "topic '1', document 'a'" in finding.examples[0]
    assert "topics-missing" in codes(examine(OTHER_RUNS[name], b"1 0 a 1\n2 0 a 1\n"))


def test_json_that_could_be_either_is_qrels_if_its_name_says_so(tmp_path: Path) -> None:
    for name, code in (("dev.qrels.json", "grades-constant"), ("bm25.json", "shallow-run")):
        (tmp_path / name).write_text('{"1": {"a": 1, "b": 1}}')
        assert code in codes(check(tmp_path / name))


def test_beir_qrels_are_qrels_whatever_their_name(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t-1\n")
    assert "grades-negative" in codes(check(tmp_path / "test.tsv"))
    assert "wrong-kind" in codes(check(tmp_path / "test.tsv", kind="run"))


def test_broken_json_cannot_be_read(examine: Callable[..., Findings]) -> None:
    assert "unreadable" in codes(examine(b'{"1": {"a": 1,\n'))


def test_a_missing_file_is_a_finding_and_the_others_are_still_checked(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(RUN + b"x\n")
    found = check([tmp_path / "none", tmp_path / "run"])
    assert [(f.code, f.file) for f in found if f.severity == "error"] == [
        ("unreadable", str(tmp_path / "none")),
        ("columns", str(tmp_path / "run")),
    ]


def packers() -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return {"gz": gzip, "bz2": bz2, "xz": lzma, "zst": zstd}


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_a_packed_file_is_checked_like_a_plain_one(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.run.{ending}"
    path.write_bytes(packers()[ending].compress(RUN + b"2 Q0 a 4 1 bm25\n"))
    assert only(check(path), "duplicate-documents").line == 7


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_a_truncated_file_is_an_error_and_what_is_left_is_checked(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    rows = b"".join(b"1 Q0 d%d 1 %d x\n" % (rng.integers(1e9), 90000 - i) for i in range(30000))
    path = tmp_path / f"a.run.{ending}"
    path.write_bytes(packers()[ending].compress(rows)[:-500])
    found = check(path)
    assert only(found, "truncated").severity == "error"
    assert only(found, "ranks-tied").count > 10000


def test_a_packed_file_without_a_whole_block_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.run.bz2"
    path.write_bytes(bz2.compress(RUN * 500)[:-20])
    assert codes(check(path)) == {"unreadable"}


# ties


def ndcg_over_all_tie_orders(grades: dict[str, int], run: dict[str, float]) -> set[float]:
    """nDCG@10 for each order of the run that its scores allow."""
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:10]) if g > 0)
    values = set()
    for order in itertools.permutations(run):
        if all(run[a] >= run[b] for a, b in itertools.pairwise(order)):
            gained = sum(max(grades.get(d, 0), 0) / math.log2(i + 2) for i, d in enumerate(order[:10]))
            values.add(gained / ideal if ideal else 0.0)
    return values


@given(
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(-1, 3), min_size=1),
    st.dictionaries(st.sampled_from("abcdefg"), st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=7),
)
@examples(30)
def test_best_and_worst_tie_order_against_exhaustive_enumeration(grades: dict[str, int], run: dict[str, float]) -> None:
    evaluator = Evaluator({"q": grades}, "nDCG@10")
    hits = evaluator.hits({"q": run})
    [ndcg] = evaluator.measures.values()
    values = ndcg_over_all_tie_orders(grades, run)
    assert ndcg.score(extreme_order(hits, best=True))[0] == pytest.approx(max(values), abs=1e-12)
    assert ndcg.score(extreme_order(hits, best=False))[0] == pytest.approx(min(values), abs=1e-12)


def test_a_tie_across_the_cut_off_by_hand(examine: Callable[..., Findings]) -> None:
    """The only relevant document ties with all twenty: it may stand first (1.0) or last (0.0); id order puts it at rank 2."""
    rows = b"".join(b"1 Q0 d%02d %d 1 x\n" % (i, i) for i in range(1, 21))
    finding = only(examine(rows, b"1 0 d19 1\n1 0 d20 0\n"), "tie-order")
    assert (
        "mean nDCG@10 lies between 0.0000 and 1.0000 (0.6309 with ties by document id, descending; 1 topic of 1)"
        in finding.message
    )


def test_ties_that_cannot_move_ndcg_are_only_a_note(examine: Callable[..., Findings]) -> None:
    found = examine(RUN.replace(b"b 2 8.25", b"b 2 7"), b"1 0 a 1\n1 0 b 1\n1 0 c 1\n")
    assert "tied-scores" in codes(found)
    assert "tie-order" not in codes(found)


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 4), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=12
    )
)
@examples(30)
def test_ranks_scores_and_ties_against_a_plain_loop(rows: list[tuple[int, int, float]], scratch: Path) -> None:
    path = scratch / "run"
    path.write_text("".join(f"{t} Q0 d{i} {r} {s} x\n" for i, (t, r, s) in enumerate(rows)))
    found = {finding.code: finding.count for finding in check(path)}
    topics: dict[int, list[tuple[int, float]]] = {}
    for t, r, s in rows:
        topics.setdefault(t, []).append((r, s))
    pairs = [pair for answers in topics.values() for pair in itertools.pairwise(answers)]
    every = [pair for answers in topics.values() for pair in itertools.combinations(answers, 2)]
    tie_sizes = [sum(s == other for _, other in answers) for answers in topics.values() for _, s in answers]
    assert found.get("ranks-not-ascending", 0) == sum(b[0] < a[0] for a, b in pairs)
    rising = found.get("scores-not-descending", 0) + found.get("scores-reversed", 0)
    assert rising == sum(b[1] > a[1] for a, b in pairs)
    assert found.get("tied-scores", 0) == sum(size > 1 for size in tie_sizes)
    assert found.get("ranks-tied", 0) == sum(len(a) - len({r for r, _ in a}) for a in topics.values())
    assert ("ranks-contradict-scores" in found) == any((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in every)


# the parts below


@given(st.lists(st.binary(max_size=20), max_size=30))
@examples(40)
def test_equal_strings_and_only_they_have_equal_keys(strings: list[bytes]) -> None:
    found = keys(Strings.of(strings)).tolist()
    assert all(
        (a == b) == (x == y) for a, x in zip(strings, found, strict=True) for b, y in zip(strings, found, strict=True)
    )
    folded = keys(Strings.of(strings), folded=True).tolist()
    assert folded == keys(Strings.of([s.lower() for s in strings])).tolist()


@given(st.binary(max_size=200))
def test_byte_counts_against_a_counter(data: bytes) -> None:
    assert byte_counts(np.frombuffer(data, np.uint8)).tolist() == [data.count(bytes([b])) for b in range(256)]


PIECES = [
    b"1 Q0 a 1 2 x\n",
    b"1 0 a 1\n",
    b"\r",
    b"\n",
    b"#",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"nan ",
    b"1",
    b"\xc2\xa0",
    b"0x1 ",
]


@given(content=st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=5)), max_size=12).map(b"".join))
@examples(60)
def test_any_bytes_are_checked_without_an_exception(content: bytes, scratch: Path) -> None:
    path = scratch / "file"
    path.write_bytes(content)
    for kind in (None, "run", "qrels"):
        found = check(path, qrels={"1": {"a": 1}}, kind=kind)  # type: ignore[arg-type]
        json.dumps(to_dict(found))
        assert render(found)


@pytest.mark.parametrize("name", ["run", "qrels"])
def test_nul_in_a_run_or_in_judgments_is_an_error_and_no_exception(name: str, tmp_path: Path) -> None:
    for each, content in {"run": RUN, "qrels": QRELS}.items():
        (tmp_path / each).write_bytes(
            content + b"\x001 Q0 a 1 2 x\n" * (name == each == "run") + b"1 0 \0b 1\n" * (name == each == "qrels")
        )
    codes = {finding.code for finding in check(tmp_path / "run", qrels=tmp_path / "qrels")}
    assert "nul" in codes


def test_what_an_evaluation_refuses_is_an_error_here(examine: Callable[..., Findings], tmp_path: Path) -> None:
    for content in (RUN + b"1 Q0 z 1\n", RUN + b"1 Q0 z 1 x t\n", RUN + RUN[:19], QRELS):
        (tmp_path / "refused").write_bytes(content)
        with pytest.raises(DataError):
            Evaluator({"1": {"a": 1}}, "AP").evaluate(tmp_path / "refused")
        assert "error" in {finding.severity for finding in examine(content, kind="run")}


# other formats


def test_a_file_that_may_be_two_formats_is_of_no_known_kind(examine: Callable[..., Findings]) -> None:
    found = examine(b"qid,docno,score,a\tqid\tdocno\tscore\n")
    assert "may be csv or tsv, and nothing shows which" in only(found, "unknown-kind").message


def test_what_is_no_text_is_checked_by_its_rows_only(examine: Callable[..., Findings], tmp_path: Path) -> None:
    write_run({"q1": {"d1": 1.0, "d2": 1.0}}, tmp_path / "a.parquet")
    assert codes(examine((tmp_path / "a.parquet").read_bytes())) == {"shallow-run", "tied-scores"}


def test_preferences_have_neither_grades_nor_scores_to_look_at(examine: Callable[..., Findings]) -> None:
    assert examine(b"1 a 1 d1 2.0\n1 a 1 d2 1\n") == []


# what people and programs get


def test_findings_as_text_name_place_severity_and_code(examine: Callable[..., Findings], tmp_path: Path) -> None:
    text = render(examine(RUN + b"2 Q0 a 4 1 bm25\n"))
    first, finding, *_ = text.splitlines()
    assert first == "1 error, 2 notes"
    assert finding.startswith(f"{tmp_path / 'file'}:7: error [duplicate-documents] a document that a run returns twice")
    assert "\n    line 7: topic '2', document 'a', as on line 4\n" in text
    assert render([]) == "nothing to report"
    many = examine(RUN + b"".join(b"3 Q0 d%d 1 2\n" % i for i in range(8)))
    assert "\n    … 3 more\n" in render(many)
    assert repr(many) == render(many)
    assert many.to_csv().startswith("file,line,severity,code,message,count\n")


def test_findings_as_plain_values_are_json(examine: Callable[..., Findings]) -> None:
    plain = json.loads(json.dumps(to_dict(examine(RUN + b"2 Q0 a 4 1 bm25\n"))))
    assert (plain["errors"], plain["warnings"], plain["notes"]) == (1, 0, 2)
    assert set(plain["findings"][0]) == {"file", "line", "severity", "code", "message", "count", "examples"}


def test_the_documentation_lists_every_code_as_the_program_does() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (.*) \| (.*) \|$", page, re.M)
    assert rows == [(name, code.severity, code.what, code.advice) for name, code in CODES.items()]


# real files

MALFORMED = {
    "invalid_less_columns": "columns",
    "invalid_more_columns": "columns",
    "invalid_multiple_tags": "mixed-tags",
    "warning_consistency": "ranks-contradict-scores",
    "warning_docid_not_in_qrels": "documents-not-named",
    "warning_docid_special_chars": "odd-characters",
    "warning_ignored_column_wrong": "q0-column",
    "warning_qid_not_asc": "topics-scattered",
    "warning_qid_not_in_qrels": "topics-not-judged",
    "warning_qid_special_chars": "odd-characters",
    "warning_rank_not_asc": "ranks-not-ascending",
    "warning_rank_not_consecutive": "ranks-not-consecutive",
    "warning_rank_not_int": "ranks-not-whole",
    "warning_rank_not_num": "ranks-not-whole",
    "warning_rank_ties": "ranks-tied",
    "warning_score_not_desc": "scores-not-descending",
    "warning_score_not_num": "score-not-a-number",
    "warning_score_scientific": "scores-scientific",
    "warning_score_ties": "tied-scores",
    "warning_tag_special_chars": "odd-characters",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_peers_malformed_run_shows_what_its_name_says(name: str, shared: Path) -> None:
    folder = shared / "peer-cases" / "malformed-trec"
    qrels = folder / "qrels_sample_valid.txt"
    assert MALFORMED[name] in codes(check(folder / f"run_sample_{name}.txt", qrels))
    assert MALFORMED[name] not in codes(check(folder / "run_sample_valid.txt", qrels))


@pytest.mark.parametrize("name", ["run_sample_valid", "run_sample_warning_rank_not_start_at_0", "qrels_sample_valid"])
def test_a_peers_valid_file_and_one_with_ranks_from_1_are_clean(name: str, shared: Path) -> None:
    folder = shared / "peer-cases" / "malformed-trec"
    assert not grave(check(folder / f"{name}.txt", folder / "qrels_sample_valid.txt"))


def test_a_peers_empty_file_and_its_topics_are_neither_run_nor_qrels(shared: Path) -> None:
    folder = shared / "peer-cases" / "malformed-trec"
    assert codes(check(folder / "empty_file.txt")) == {"empty"}
    assert {"error"} <= {finding.severity for finding in check(folder / "topics_sample_valid.jsonl")}


def test_every_malformed_run_of_the_peer_is_tried(shared: Path) -> None:
    found = {
        path.stem.removeprefix("run_sample_") for path in (shared / "peer-cases" / "malformed-trec").glob("run_*.txt")
    }
    assert found == {*MALFORMED, "valid", "warning_rank_not_start_at_0"}


def test_the_circulating_conversions_of_cranfield_show_their_mistakes(shared: Path) -> None:
    folder = shared / "cranfield-qrels-variants"
    corrected = check(folder / "QRelsCorrectedforTRECeval.crlf")
    assert "crlf" in codes(corrected)
    assert "grades-reversed" not in codes(corrected)
    # a line with a double space escaped the scripts that made these binary
    for binary in (folder / "cranqrel.trec_new.txt", shared / "cranfield-trec" / "cranqrel.trec.txt"):
        assert only(check(binary), "grades-lone").examples == ("line 316: topic '40', document '85': 3",)


def test_cranfields_own_codes_look_reversed(shared: Path, tmp_path: Path) -> None:
    rows = [line.split() for line in (shared / "cranfield" / "cranqrel").read_text().splitlines()]
    (tmp_path / "qrels").write_text("".join(f"{row[0]} 0 {row[1]} {row[2]}\n" for row in rows))
    found = check(tmp_path / "qrels")
    assert {"grades-reversed", "grades-negative"} <= codes(found)
    assert only(found, "grades-negative").count == 225


def test_web_track_qrels_have_negative_grades_that_are_noted_only(shared: Path) -> None:
    found = check(shared / "webtrack2012-baselines" / "qrels.web.151-200.txt")
    assert only(found, "grades-negative").count == 858
    assert "lowest: -2" in only(found, "grades-negative").message
    assert "grades-reversed" not in codes(found)


def test_codec_runs_with_a_document_twice_are_found(shared: Path) -> None:
    runs = sorted((shared / "codec-document").glob("*.run"))
    twice = {Path(finding.file).name for finding in check(runs) if finding.code == "duplicate-documents"}
    assert len(twice) == 2
    for name in twice:
        rows = [line.split() for line in (shared / "codec-document" / name).read_text().splitlines()]
        repeated = len(rows) - len({(row[0], row[2]) for row in rows})
        assert only(check(shared / "codec-document" / name), "duplicate-documents").count == repeated


def test_trec_covid_runs_have_no_error(shared: Path) -> None:
    folder = shared / "trec-covid-r3"
    found = check(sorted((folder / "runs").iterdir()), folder / "qrels.covid-round3.txt")
    assert not {finding.code for finding in found if finding.severity == "error"}
    narrow = {Path(finding.file).name for finding in found if finding.code == "tied-at-32-bits"}
    assert "UIowaS_Rd3MLReRank" in narrow  # its official score needs 32-bit comparison
