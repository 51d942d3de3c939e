"""The trec_eval drop-in against NIST's own test files, 52 recorded outputs, and small files for every odd rule."""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SHARED
from cranfield.compat.trec_eval import main
from cranfield.compat.trec_eval.catalogue import MEASURES, NICKNAMES
from cranfield.evaluation.measures import REGISTRY


def trec_eval(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(list(arguments), stdout=out, stderr=err, stdin=None if stdin is None else io.BytesIO(stdin))
    return code, out.getvalue(), err.getvalue()


# what others recorded


def recorded() -> list[tuple[str, str, str, int, str]]:
    """(version, folder, arguments, exit code, file with the output)."""
    found = []
    for folder, version in (("trec_eval-test", "10"), ("trec_eval-9.0.7-test", "9")):
        for line in commands(folder):
            arguments, output = line.split("|")
            found.append((version, folder, arguments, 0, f"{folder}/{output.strip()}"))
    for line in commands("trec_eval-golden"):
        version, code, arguments, output = line.split("|")
        found.append((version.strip(), "", arguments, int(code), f"trec_eval-golden/{output.strip()}"))
    return found


def commands(folder: str) -> list[str]:
    path = SHARED / folder / "COMMANDS.txt"
    if not path.is_file():
        return []
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def but_rbp(text: str) -> list[str]:
    """All lines but those of rbp, which in the recorded builds reads memory that nobody set."""
    return [line for line in text.splitlines(keepends=True) if not re.match(r"Z?rbp\s", line)]


@pytest.mark.parametrize(
    ("version", "folder", "arguments", "code", "output"),
    [
        pytest.param(*case, id=f"{case[0]} {case[1]} {' '.join(case[2].split())}".replace("::", ":"))
        for case in recorded()
    ],
)
def test_the_output_is_the_same_byte_for_byte_against_trec_eval(
    shared, monkeypatch, version, folder, arguments, code, output
):
    monkeypatch.chdir(shared / folder)
    found, text, _ = trec_eval("--as", version, *arguments.split())
    expected = (shared / output).read_text()
    assert found == code
    if output.startswith("trec_eval-golden"):
        assert but_rbp(text) == but_rbp(expected)
    else:
        assert text == expected


def test_every_recorded_command_is_tried(shared):
    assert len(recorded()) == 15 + 11 + 52


def test_the_program_writes_the_same_bytes_to_a_real_standard_output(shared):
    folder = shared / "trec_eval-test"
    code = "import sys; from cranfield.compat.trec_eval import main; sys.exit(main(sys.argv[1:]))"
    files = ["qrels.test", "-"]
    answer = subprocess.run(
        [sys.executable, "-c", code, *files],
        cwd=folder,
        input=(folder / "results.test").read_bytes(),
        capture_output=True,
        timeout=60,
    )
    assert (answer.returncode, answer.stdout) == (0, (folder / "out.test").read_bytes())


# small files


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two topics: in q1 a (2), b (1), c (0) are judged and x is not; q2 is judged but may be missing."""
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq2 0 d 1\n")
    Path("run").write_text("q1 Q0 x 1 4 tag\nq1 Q0 b 2 3 tag\nq1 Q0 c 3 2 tag\n")
    Path("both").write_text("q1 Q0 x 1 4 tag\nq1 Q0 b 2 3 tag\nq1 Q0 c 3 2 tag\nq2 Q0 d 1 1 last\n")
    return tmp_path


def values(text: str, topic: str = "all") -> dict[str, str]:
    rows = [line.split("\t") for line in text.splitlines()]
    return {name.strip(): value for name, where, value in rows if where == topic}


def ask(*arguments: str, topic: str = "all") -> dict[str, str]:
    code, text, err = trec_eval(*arguments)
    assert code == 0, err
    return values(text, topic)


def test_measures_are_printed_in_the_order_of_the_list_and_topics_in_byte_order(files):
    Path("qrels").write_text("9 0 a 1\n10 0 a 1\nß 0 a 1\n")
    Path("run").write_text("9 Q0 a 1 1 t\nß Q0 a 1 1 t\n10 Q0 a 1 1 t\n")
    _, text, _ = trec_eval("-q", "-m", "P.5", "-m", "map", "qrels", "run")
    assert [tuple(line.split("\t")[:2]) for line in text.splitlines()] == [
        (name.ljust(22), topic) for topic in ("10", "9", "ß", "all") for name in ("map", "P_5")
    ]


def test_a_name_of_more_than_22_characters_is_not_cut(files):
    Path("prefs").write_text("q1 1 1 a 2\nq1 1 1 b 1\n")
    _, text, _ = trec_eval("-R", "prefs", "-m", "prefs_num_prefs_ful_ret", "prefs", "run")
    assert text == "prefs_num_prefs_ful_ret\tall\t0\n"


def test_ids_keep_bytes_that_are_no_utf_8(files):
    Path("qrels").write_bytes(b"q\xff 0 a 1\n")
    Path("run").write_bytes(b"q\xff Q0 a 1 1 t\xe9\n")
    stream = io.TextIOWrapper(io.BytesIO())
    assert main(["-q", "-m", "map", "-m", "runid", "qrels", "run"], stdout=stream) == 0
    expected = b"map                   \tq\xff\t1.0000\nrunid                 \tall\tt\xe9\nmap                   \tall\t1.0000\n"
    assert stream.buffer.getvalue() == expected


def test_summaries_only_and_topics_only(files):
    _, text, _ = trec_eval(
        "-q",
        *["-m", "runid", "-m", "num_q", "-m", "gm_map", "-m", "gm_bpref", "-m", "relstring", "-m", "map"],
        "qrels",
        "both",
    )
    assert set(values(text, "q1")) == {"relstring", "map"}
    assert set(values(text)) == {"runid", "num_q", "gm_map", "gm_bpref", "map"}
    assert values(text, "q1")["relstring"] == "'-10'"


def test_runid_is_the_last_line_s_tag_and_topics_only_in_the_run_are_ignored(files):
    Path("run").write_text("q1 Q0 a 1 1 first\nq2 Q0 d 1 1 mid\nq3 Q0 d 1 1 last\n")
    assert ask("-m", "runid", "-m", "num_q", "-m", "num_ret", "qrels", "run") == {
        "runid": "last",
        "num_q": "2",
        "num_ret": "2",
    }


def test_n_drops_the_summary(files):
    assert trec_eval("-n", "qrels", "both")[:2] == (0, "")
    assert set(values(trec_eval("-n", "-q", "-m", "map", "qrels", "both")[1], "all")) == set()


def test_o_does_nothing_and_options_may_follow_the_files(files):
    assert trec_eval("qrels", "both", "-o", "-q", "-mmap") == trec_eval("-qm", "map", "qrels", "both")


def test_long_options_and_their_beginnings_are_read(files):
    short = trec_eval("-q", "-c", "-l2", "-M2", "-J", "-mmap", "qrels", "run")
    long = trec_eval(
        *[
            "--query_eval_wanted",
            "--complete",
            "--level_for_rel",
            "2",
            "--Max=2",
            "--Judged_docs_only",
            "--measure",
            "map",
        ],
        "qrels",
        "run",
    )
    assert short == long
    assert short[0] == 0


# parameters


def test_the_first_parameters_win_also_inside_a_nickname(files):
    found = ask("-m", "official", "-m", "P.3", "-m", "P.7", "qrels", "both")
    assert [name for name in found if name.startswith("P_")] == ["P_3"]
    assert len(found) == 9 + 11 + 1 + 1


def test_cut_offs_are_read_up_to_the_first_sign_that_is_no_digit_and_sorted(files):
    assert list(ask("-m", "P.23.4,7", "qrels", "both")) == ["P_7", "P_23"]
    assert list(ask("-m", "Rprec_mult.2,.5", "qrels", "both")) == ["Rprec_mult_0.50", "Rprec_mult_2.00"]


@pytest.mark.parametrize(
    "measure", ["P.5,5", "P.0", "P.-3", "P.x", "P.5,,7", "iprec_at_recall..1,.10", "ndcg.3", "ndcg.a=1", "set_F.x"]
)
def test_cut_offs_and_parameters_that_make_no_sense_exit_2(files, measure):
    code, text, err = trec_eval("-m", measure, "qrels", "both")
    assert (code, text) == (2, "")
    assert measure.split(".")[0] in err


def test_other_parameters_are_appended_as_written(files):
    found = ask("-m", "ndcg.1=3,2=9", "-m", "set_F.0.5", "-m", "utility.2,-1,0,0", "-m", "11pt_avg..5", "qrels", "both")
    assert list(found) == ["utility_2,-1,0,0", "11pt_avg_.5", "ndcg_1=3,2=9", "set_F_0.5"]


def test_parameters_of_a_measure_that_takes_none_change_nothing(files):
    assert ask("-m", "map.5", "qrels", "both") == ask("-m", "map", "qrels", "both")


def test_utility_with_other_than_four_weights_exits_4(files):
    assert trec_eval("-m", "utility.1,2", "qrels", "both")[0] == 4


def test_n_matters_only_to_the_fourth_weight_of_utility(files):
    # q1: 1 relevant and 2 others returned, 1 relevant not; 100 - 3 - 1 = 96 others not. q2: 1 relevant; 99 others not.
    assert ask("-N", "100", "-m", "utility.0,0,0,1", "qrels", "both")["utility_0,0,0,1"] == "97.5000"
    assert ask("-N", "100", "-m", "utility.1,-1,-1,0", "qrels", "both") == ask(
        "-m", "utility.1,-1,-1,0", "qrels", "both"
    )


def test_fractional_gains_are_sorted_as_trec_eval_sorts_them(files):
    """Gains 0.5 and 1.5 and the 0 of grade 0: the 0 lands between them, so the ideal ranking ends after grade 2."""
    Path("run").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\n")
    dcg = 1.5 + 0.5 / math.log2(3)
    assert ask("--as", "9", "-m", "ndcg.1=0.5,2=1.5", "qrels", "run")["ndcg_1=0.5,2=1.5"] == f"{dcg / 1.5:.4f}"


def test_set_f_takes_x_for_the_square_of_beta(files):
    # q1: P = 1/3, R = 1/2
    assert ask("-q", "-m", "set_F.4", "qrels", "both", topic="q1")["set_F_4"] == f"{5 / 6 / (1 / 2 + 4 / 3):.4f}"


def test_dcg_and_ideal_dcg_take_gains_without_falling_over(files):
    found = ask("-q", "-m", "dcg.1=4", "-m", "ideal_dcg.1=4", "qrels", "both", topic="q1")
    assert found == {
        "dcg_1=4": f"{4 / math.log2(3):.4f}",
        "ideal_dcg_1=4": f"{4 + 2 / math.log2(3):.4f}",
    }


# nicknames and versions


def names_printed(*arguments: str) -> set[str]:
    return {re.sub(r"_\d+(\.\d+)?$", "", name) for name in ask("-q", *arguments)} | {
        re.sub(r"_\d+(\.\d+)?$", "", name) for name in ask("-q", *arguments, topic="q1")
    }


def test_there_are_57_measures_and_52_in_version_9():
    assert len(MEASURES) == 57
    assert len([kind for kind in MEASURES if kind.since == 9]) == 52


@pytest.mark.parametrize("nickname", ["official", "set", "all_trec"])
def test_a_nickname_prints_its_measures(files, nickname):
    assert names_printed("-m", nickname, "qrels", "both") == set(NICKNAMES[nickname])


def test_all_trec_has_no_dcg_and_in_version_9_no_rbp(files):
    ten, nine = (
        names_printed("-m", "all_trec", "qrels", "both"),
        names_printed("--as", "9", "-mall_trec", "qrels", "both"),
    )
    assert ten - nine == {"rbp", "rbp_resid", "unj"}
    assert not {"dcg", "ideal_dcg", "yaap"} & ten


@pytest.mark.parametrize("measure", ["dcg", "ideal_dcg", "rbp", "rbp_resid", "unj"])
def test_version_9_does_not_know_the_measures_of_version_10(files, measure):
    assert trec_eval("-m", measure, "qrels", "both")[0] == 0
    code, text, err = trec_eval("--as", "9", "-m", measure, "qrels", "both")
    assert (code, text) == (1, "")
    assert "version 10" in err


def test_version_9_compares_scores_as_32_bit_floats_and_version_10_as_doubles(files):
    Path("qrels").write_text("q 0 a 1\n")
    Path("run").write_text("q Q0 a 1 1.00000001 t\nq Q0 b 2 1.0 t\n")
    assert ask("-m", "recip_rank", "qrels", "run")["recip_rank"] == "1.0000"
    assert ask("--as", "9", "-m", "recip_rank", "qrels", "run")["recip_rank"] == "0.5000"


def test_recall_levels_are_rounded_in_version_10_and_nearly_always_up_in_version_9(files):
    """Of 7 relevant documents 4 were found: recall .6 is 4.2 documents, which 10 takes for 4 and 9 for 5."""
    Path("qrels").write_text("".join(f"q 0 d{i} 1\n" for i in range(7)))
    Path("run").write_text("".join(f"q Q0 d{i} 1 {9 - i} t\n" for i in range(4)))
    assert ask("-m", "iprec_at_recall..6", "qrels", "run")["iprec_at_recall_0.60"] == "1.0000"
    assert ask("--as", "9", "-m", "iprec_at_recall..6", "qrels", "run")["iprec_at_recall_0.60"] == "0.0000"


def test_comments_are_read_by_version_10_only(files):
    Path("qrels").write_text("# judged\nq1 0 a 1\n")
    Path("run").write_text("# ran\nq1 Q0 a 1 1 t\n")
    assert ask("-m", "map", "qrels", "run")["map"] == "1.0000"
    assert trec_eval("--as", "9", "-m", "map", "qrels", "run")[0] == 2


def test_a_comment_at_the_end_of_qrels_is_no_trouble(files):
    Path("qrels").write_text("q1 0 a 1\n# the end")
    Path("run").write_text("q1 Q0 a 1 1 t\n")
    assert ask("-m", "map", "qrels", "run")["map"] == "1.0000"


def test_standard_input_is_read_by_version_10_only(files):
    assert trec_eval("-m", "map", "qrels", "-", stdin=Path("both").read_bytes()) == trec_eval("-mmap", "qrels", "both")
    assert trec_eval("--as", "9", "-m", "map", "qrels", "-", stdin=Path("both").read_bytes())[0] == 2
    assert trec_eval("-m", "map", "qrels", "-", stdin=b"")[0] == 2


# missing topics


def test_version_10_stops_at_a_missing_topic_after_printing_the_earlier_ones(files):
    code, text, err = trec_eval("-q", "-m", "num_ret", "qrels", "run")
    assert (code, text) == (4, "num_ret               \tq1\t3\n")
    assert "'q2' is judged but missing from run" in err


def test_version_9_averages_over_the_topics_in_both_files(files):
    assert ask("--as", "9", "-m", "num_q", "-m", "map", "qrels", "run") == {"num_q": "1", "map": "0.2500"}


def test_c_divides_by_all_judged_topics(files):
    for version in ("9", "10"):
        found = ask("--as", version, "-c", "-m", "num_q", "-m", "map", "-m", "num_rel", "qrels", "run")
        assert found == {"num_q": "2", "num_rel": "3", "map": "0.1250"}


def test_c_prints_missing_topics_in_version_10_only(files):
    assert values(trec_eval("-c", "-q", "-m", "map", "qrels", "run")[1], "q2") == {"map": "0.0000"}
    assert values(trec_eval("--as", "9", "-c", "-q", "-m", "map", "qrels", "run")[1], "q2") == {}


def test_num_rel_under_c_ignores_l(files):
    assert ask("-c", "-l2", "-m", "num_rel", "qrels", "run")["num_rel"] == "3"
    assert ask("-c", "-q", "-l2", "-m", "num_rel", "qrels", "run", topic="q1")["num_rel"] == "1"
    assert ask("-l2", "-m", "num_rel", "qrels", "both")["num_rel"] == "1"


def test_a_missing_topic_is_one_unjudged_document_that_only_unparameterised_names_take_back(files):
    asked = [f"-m{name}" for name in ("num_ret", "utility", "relstring", "rbp_resid", "unj")]
    found = ask("-c", "-q", *asked, "qrels", "run", topic="q2")
    assert found == {
        "num_ret": "0",
        "relstring": "''",
        "utility": "0.0000",
        "rbp_resid": "0.0000",
        "unj_5": "0.0000",
        "unj_10": "0.0000",
        "unj_20": "0.0000",
    }
    asked = [f"-m{name}" for name in ("utility.2,-1,0,0", "relstring.5", "rbp_resid.p=0.8", "unj.1")]
    assert ask("-c", "-q", *asked, "qrels", "run", topic="q2") == {
        "relstring_5": "'-'",
        "utility_2,-1,0,0": "-1.0000",
        "rbp_resid_p=0.8": "1.0000",
        "unj_1": "0.0000",
    }


def test_yaap_adds_a_missing_topic_in_version_10_and_0_in_version_9(files):
    found = math.log(1.5 / 2.5)  # q1: the second of two documents found at rank 2
    assert ask("-c", "-m", "yaap", "qrels", "run")["yaap"] == f"{(found - math.log(2)) / 2:.4f}"
    assert ask("--as", "9", "-c", "-m", "yaap", "qrels", "run")["yaap"] == f"{found / 2:.4f}"


def test_geometric_means_count_a_missing_topic_as_a_hundred_thousandth(files):
    for version in ("9", "10"):
        found = ask("--as", version, "-c", "-m", "gm_map", "qrels", "run")["gm_map"]
        assert found == f"{math.sqrt(0.25 * 1e-5):.4f}"


def test_no_common_topic_exits_7_in_version_9_and_4_or_0_in_version_10(files):
    Path("run").write_text("q9 Q0 a 1 1 t\n")
    assert trec_eval("--as", "9", "qrels", "run")[:2] == (7, "")
    assert trec_eval("--as", "9", "-c", "qrels", "run")[:2] == (7, "")
    assert trec_eval("qrels", "run")[:2] == (4, "")
    assert ask("-c", "-m", "map", "qrels", "run")["map"] == "0.0000"


def test_d_evaluates_one_topic(files):
    assert ask("-D", "1.q1", "-m", "num_q", "-m", "map", "qrels", "both") == {"num_q": "1", "map": "0.2500"}
    assert trec_eval("-D", "1.q7", "-m", "map", "qrels", "both")[0] == 7


# what is looked at


def test_m_cuts_after_sorting_and_before_judged_only(files):
    Path("run").write_text("q1 Q0 a 1 1 t\nq1 Q0 x 2 3 t\nq1 Q0 b 3 2 t\n")
    assert ask("--as", "9", "-M2", "-J", "-m", "num_ret", "-m", "num_rel_ret", "qrels", "run") == {
        "num_ret": "1",
        "num_rel_ret": "1",
    }


def test_m_cuts_before_repeated_documents_are_looked_for(files):
    Path("run").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\n")
    assert trec_eval("--as", "9", "-m", "map", "qrels", "run")[0] == 4
    assert ask("--as", "9", "-M2", "-m", "map", "qrels", "run")["map"] == "1.0000"
    assert ask("--as", "9", "-M0", "-m", "num_ret", "qrels", "run")["num_ret"] == "0"


def test_j_drops_unjudged_documents_and_negative_grades(files):
    Path("qrels").write_text("q 0 a 1\nq 0 b -1\nq 0 c 0\n")
    Path("run").write_text("q Q0 x 1 4 t\nq Q0 b 2 3 t\nq Q0 c 3 2 t\nq Q0 a 4 1 t\n")
    found = ask("-q", "-J", "-m", "num_ret", "-m", "relstring", "-m", "recip_rank", "qrels", "run", topic="q")
    assert found == {"num_ret": "2", "recip_rank": "0.5000", "relstring": "'01'"}


def test_l_does_not_touch_the_measures_of_gain(files):
    asked = [f"-m{name}" for name in ("ndcg", "ndcg_cut", "G", "ndcg_rel", "rbp")]
    assert trec_eval("-l2", *asked, "qrels", "both") == trec_eval(*asked, "qrels", "both")
    assert trec_eval("-l2", "-mmap", "qrels", "both") != trec_eval("-mmap", "qrels", "both")


def test_an_empty_list_has_no_interpolated_precision(files):
    Path("qrels").write_text("q 0 a 1\nq 0 b 1\n")
    Path("run").write_text("q Q0 x 1 1 t\n")
    found = ask("-J", "-m", "iprec_at_recall.0,.1,.9", "-m", "11pt_avg", "-m", "map", "-m", "P.5", "qrels", "run")
    assert found == {
        "map": "0.0000",
        "iprec_at_recall_0.00": "  -nan",
        "iprec_at_recall_0.10": "  -nan",
        "iprec_at_recall_0.90": "0.0000",
        "P_5": "0.0000",
        "11pt_avg": "  -nan",
    }


def test_relstring_shows_what_was_not_pooled_not_judged_or_graded_above_9(files):
    Path("qrels").write_text("q 0 a 1\nq 0 b -1\nq 0 c 10\nq 0 d 9\n")
    Path("run").write_text("".join(f"q Q0 {d} 1 {9 - i} t\n" for i, d in enumerate("xbcda")))
    found = ask("-q", "-m", "relstring.4", "qrels", "run", topic="q")
    assert found == {"relstring_4": "'-.>9'"}


def test_grades_lose_their_decimals(files):
    Path("qrels").write_text("q 0 a 1.9\nq 0 b 0.9\n")
    Path("run").write_text("q Q0 a 1 1 t\n")
    assert ask("-m", "num_rel", "-m", "dcg", "qrels", "run") == {"num_rel": "1", "dcg": "1.0000"}


def test_rndcg_takes_no_notice_of_a_last_document_just_behind_the_ideal_list(files):
    Path("qrels").write_text("q 0 a 1\nq 0 b 0\n")
    Path("run").write_text("q Q0 b 1 2 t\nq Q0 a 2 1 t\n")
    assert ask("-m", "Rndcg", "qrels", "run")["Rndcg"] == "0.0000"
    Path("run").write_text("q Q0 b 1 2 t\nq Q0 a 2 1 t\nq Q0 c 2 0 t\n")
    assert ask("-m", "Rndcg", "qrels", "run")["Rndcg"] == f"{1 / math.log2(3) / 2:.4f}"


def test_rbp_brings_gains_into_0_to_1_topic_by_topic(files):
    found = ask("-q", "-m", "rbp.p=0.5", "qrels", "both", topic="q1")
    assert found == {"rbp_p=0.5": f"{0.5 * 0.5 * 0.5:.4f}"}  # b: grade 1 of 2 at rank 2
    assert ask("-q", "-m", "rbp.p=0.5,1=4", "qrels", "both", topic="q1") == {"rbp_p=0.5,1=4": "0.2500"}


def test_rbp_residual_is_0_where_all_is_judged(files):
    found = ask("-q", "-m", "rbp_resid.p=0.5", "qrels", "both", topic="q1")["rbp_resid_p=0.5"]
    assert found == f"{0.5**3 + 0.5:.4f}"
    assert ask("-q", "-m", "rbp_resid.p=0.5", "qrels", "both", topic="q2")["rbp_resid_p=0.5"] == "0.0000"


# judgment groups; their measures are in test_trec_eval_oracle.py


def test_a_document_twice_in_one_judgment_group_is_refused(files):
    Path("groups").write_text("q1 judge1 a 1\nq1 judge2 a 0\n")
    assert ask("--as", "9", "-R", "qrels_jg", "-m", "map_avgjg", "groups", "run") == {"map_avgjg": "0.0000"}
    Path("groups").write_text("q1 judge1 a 1\nq1 judge1 a 0\n")
    code, text, err = trec_eval("-R", "qrels_jg", "-m", "map_avgjg", "groups", "run")
    assert (code, text) == (2, "")
    assert "groups:2: document 'a' is judged twice for topic 'q1'" in err


# z-scores


def test_z_scores_take_the_place_of_values(files):
    Path("z").write_text(
        "q1 map 0.5 0.25\nq1 num_ret 1 2\nq1 P_5 0.2 0\nq1 recip_rank 0.1 0\nq1 gm_map -1 2\n"
        "q2 map 0.5 0.25\nq2 num_ret 1 2\nq2 P_5 0.2 0\nq2 gm_map -1 2\n"
    )
    asked = [f"-m{name}" for name in ("runid", "num_q", "num_ret", "map", "gm_map", "recip_rank", "P.5", "relstring")]
    code, text, _ = trec_eval("-q", "-Z", "z", *asked, "qrels", "both")
    assert code == 0
    assert text.splitlines()[0] == "Znum_ret               \tq1\t1.0000"
    assert values(text, "q1") == {
        "Znum_ret": "1.0000",
        "Zmap": "-1.0000",
        "Zrecip_rank": "-1000000.0000",
        "ZP_5": "0.0000",
        "relstring": "'-10'",
    }
    gm = ((math.log(0.25) + 1) / 2 + (0 + 1) / 2) / 2
    assert values(text) == {
        "runid": "last",
        "Znum_q": "2.0000",
        "Znum_ret": "1.0000",
        "Zmap": "0.5000",
        "Zgm_map": f"{math.exp(gm):.4f}",
        "Zrecip_rank": "-1000000.0000",
        "ZP_5": "0.0000",
    }


def test_a_z_score_file_that_cannot_be_read_exits_255(files):
    assert trec_eval("-Z", "no-such-file", "qrels", "both")[:2] == (255, "")
    Path("z").write_text("q1 map 0.5\n")
    code, _, err = trec_eval("-Z", "z", "qrels", "both")
    assert code == 255
    assert "z:1: expected 4 columns" in err


# input


def test_run_lines_have_six_columns_or_more_and_may_be_blank(files):
    Path("run").write_text("\nq1 Q0 a 1 1 t and more\n  \nq2 Q0 d 1 1 t")
    assert ask("-m", "num_ret", "-m", "runid", "qrels", "run") == {"runid": "t", "num_ret": "2"}
    Path("run").write_text("q1 Q0 a 1 1\n")
    code, _, err = trec_eval("qrels", "run")
    assert code == 2
    assert "run:1: expected 6 columns" in err


@pytest.mark.parametrize("line", ["", "q1 0 b", "q1 0 b 1 2", "q1 0 b x"])
def test_a_qrels_line_has_exactly_four_columns_and_is_never_blank(files, line):
    Path("qrels").write_text(f"q1 0 a 1\n{line}\nq2 0 d 1\n")
    code, text, err = trec_eval("qrels", "both")
    assert (code, text) == (2, "")
    assert "qrels:2:" in err


def test_a_score_that_is_no_number_is_refused(files):
    Path("run").write_text("q1 Q0 a 1 high t\n")
    code, _, err = trec_eval("qrels", "run")
    assert code == 2
    assert "run:1: expected a number in column 5 (score), found 'high'" in err


@pytest.mark.parametrize("name", ["qrels", "both"])
def test_an_empty_file_exits_2(files, name):
    Path(name).write_text("")
    assert trec_eval("qrels", "both")[:2] == (2, "")


def test_compressed_files_are_read(files):
    for name in ("qrels", "both"):
        Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    assert trec_eval("qrels.gz", "both.gz") == trec_eval("qrels", "both")


def test_a_run_without_results_exits_2(files):
    Path("run").write_text("# nothing\n\n")
    assert trec_eval("qrels", "run")[:2] == (2, "")


def test_a_repeated_document_exits_4_when_its_topic_is_reached(files):
    Path("run").write_text("q2 Q0 d 1 2 t\nq2 Q0 d 2 1 t\nq1 Q0 a 1 1 t\n")
    code, text, err = trec_eval("-q", "-m", "num_ret", "qrels", "run")
    assert (code, text) == (4, "num_ret               \tq1\t1\n")
    assert "'d' occurs twice for topic 'q2'" in err
    assert ask("-m", "runid", "-m", "num_q", "qrels", "run") == {"runid": "t", "num_q": "2"}


def test_a_repeated_document_in_a_topic_that_is_not_judged_is_no_trouble(files):
    Path("run").write_text("q9 Q0 d 1 2 t\nq9 Q0 d 2 1 t\nq1 Q0 a 1 1 t\n")
    assert ask("--as", "9", "-m", "num_ret", "qrels", "run") == {"num_ret": "1"}


@pytest.mark.parametrize("iteration", ["0", "1"])
def test_a_document_judged_twice_exits_4_when_its_topic_is_reached(files, iteration):
    with open("qrels", "a") as file:
        file.write(f"q2 {iteration} d 0\n")
    code, text, _ = trec_eval("-q", "-m", "num_ret", "qrels", "both")
    assert (code, text) == (4, "num_ret               \tq1\t3\n")
    assert ask("-m", "num_q", "qrels", "both") == {"num_q": "2"}


def test_a_topic_with_negative_grades_only_exits_4_if_it_comes_first(files):
    Path("qrels").write_text("q1 0 a -1\nq2 0 d 1\n")
    assert trec_eval("-m", "map", "qrels", "both")[:2] == (4, "")
    assert ask("-m", "num_q", "qrels", "both") == {"num_q": "2"}
    Path("qrels").write_text("q1 0 a 1\nq2 0 d -1\n")
    assert ask("-m", "map", "-m", "num_rel", "qrels", "both") == {"num_rel": "1", "map": "0.0000"}


def test_ties_are_broken_by_document_id_descending_as_bytes(files):
    Path("qrels").write_text("q 0 d9 1\n")
    Path("run").write_text("q Q0 d10 1 1 t\nq Q0 d9 2 1 t\nq Q0 é 3 1 t\n")
    assert ask("-m", "recip_rank", "qrels", "run") == {"recip_rank": "0.5000"}


# preferences; the measures themselves are in test_trec_eval_oracle.py


def prefer(*lines: str) -> tuple[str, ...]:
    Path("prefs").write_text("".join(f"{line}\n" for line in lines))
    return ("-q", "-R", "prefs", "-m", "prefs_simp", "prefs", "run")


def test_ties_are_broken_by_document_id_ascending_in_preferences(files):
    Path("run").write_text("q1 Q0 a 1 1 t\nq1 Q0 b 2 1 t\n")
    assert ask(*prefer("q1 1 1 a 2", "q1 1 1 b 1"), topic="q1") == {"prefs_simp": "1.0000"}


def test_preferences_take_no_notice_of_j_and_l(files):
    Path("run").write_text("q1 Q0 b 1 2 t\nq1 Q0 x 2 1 t\n")
    arguments = prefer("q1 1 1 a 2", "q1 1 1 b 1", "q1 1 1 c 0")
    assert trec_eval("-J", "-l", "2", *arguments) == trec_eval(*arguments)


def test_m_cuts_a_run_before_preferences_are_looked_at(files):
    Path("run").write_text("q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\n")
    arguments = prefer("q1 1 1 a 2", "q1 1 1 b 1", "q1 1 1 c 0")
    assert ask(*arguments, topic="q1")["prefs_simp"] == "0.6667"
    assert ask("-M1", *arguments, topic="q1")["prefs_simp"] == "0.3333"


def test_a_group_that_contradicts_itself_aborts_and_prints_nothing(files):
    Path("run").write_text("q0 Q0 a 1 1 t\nq1 Q0 a 1 1 t\n")
    lines = [
        "q0 1 1 a 2",
        "q0 1 1 b 1",
        "q1 1 1 a 2",
        "q1 1 1 b 1",
        "q1 1 2 b 2",
        "q1 1 2 c 1",
        "q1 1 3 c 2",
        "q1 1 3 a 1",
    ]
    code, text, err = trec_eval(*prefer(*lines))
    assert (code, text) == (134, "")
    assert "topic 'q1': a judgment group prefers each of two documents to the other" in err


def test_two_groups_may_contradict_each_other(files):
    arguments = prefer("q1 1 1 a 2", "q1 1 1 b 1", "q1 2 1 a 1", "q1 2 1 b 2")
    assert ask(*arguments, topic="q1") == {"prefs_simp": "0.5000"}


@pytest.mark.parametrize(
    "lines",
    [
        ["q1 1 1 a 2", "q1 1 1 a 1"],
        ["q1 1 1 a 2", "q1 1 1 b 0", "q1 1 2 a 0", "q1 1 2 c 1"],
    ],
    ids=["two levels", "relevant and not"],
)
def test_a_document_at_two_levels_exits_4_after_the_earlier_topics(files, lines):
    Path("run").write_text("q0 Q0 a 1 1 t\nq1 Q0 a 1 1 t\n")
    code, text, _ = trec_eval(*prefer("q0 1 1 a 2", "q0 1 1 b 1", *lines))
    assert (code, text) == (4, "prefs_simp            \tq0\t1.0000\n")


def test_levels_are_32_bit_floats_in_version_9(files):
    arguments = prefer("q1 1 1 b 1.00000001", "q1 1 1 c 1")
    assert ask("--as", "10", *arguments, topic="q1") == {"prefs_simp": "1.0000"}
    assert ask("--as", "9", *arguments, topic="q1") == {"prefs_simp": "0.0000"}


def test_a_line_of_preferences_has_exactly_five_columns(files):
    code, _, err = trec_eval(*prefer("q1 1 1 a 2", "q1 1 a 2"))
    assert code == 2
    assert "prefs:2: expected 5 columns (topic group subgroup document level), found 4" in err


def test_a_repeated_document_exits_4_in_preferences_too(files):
    Path("run").write_text("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
    assert trec_eval(*prefer("q1 1 1 a 2"))[:2] == (4, "")


# exit codes of the command line


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["qrels"], 1),
        (["qrels", "both", "more"], 1),
        (["-x", "qrels", "both"], 1),
        (["--nonsense", "qrels", "both"], 1),
        (["--quer=1", "qrels", "both"], 1),
        (["qrels", "both", "-m"], 1),
        (["qrels", "both", "--measure"], 1),
        (["-m", "P.", "qrels", "both"], 1),
        (["-m", "nosuch", "qrels", "both"], 1),
        (["-l", "x", "qrels", "both"], 1),
        (["-M", "-1", "qrels", "both"], 1),
        (["-D", "x", "qrels", "both"], 1),
        (["--as", "8", "qrels", "both"], 1),
        (["-R", "nonsense", "qrels", "both"], 2),
        (["-T", "nonsense", "qrels", "both"], 2),
        (["no-such-file", "both"], 2),
        (["qrels", "no-such-file"], 2),
        (["-m", "P.5,5", "qrels"], 1),
        (["-m", "prefs_simp", "qrels", "both"], 4),
        (["-m", "map_avgjg", "qrels", "both"], 4),
        (["-R", "qrels_jg", "-m", "map", "qrels", "both"], 4),
        (["-R", "prefs", "-m", "runid", "prefs", "both"], 0),
        (["-h"], 0),
        (["-v"], 0),
        (["-h", "-m", "nosuch"], 1),
    ],
)
def test_exit_codes_of_the_command_line_against_trec_eval(files, arguments, code):
    Path("prefs").write_text("q1 1 1 a 2\nq2 1 1 d 1\n")
    found, text, err = trec_eval(*arguments)
    assert found == code, err
    assert (text == "") == (code > 0 or arguments == ["-v"])
    assert err.startswith("trec_eval: ") or code == 0


def test_an_unknown_measure_is_met_with_a_guess(files):
    assert "did you mean ndcg_cut" in trec_eval("-m", "ndcg_cutt", "qrels", "both")[2]


def test_help_explains_every_measure():
    code, text, _ = trec_eval("-h", *[f"-m{kind.name}" for kind in MEASURES])
    assert code == 0
    for kind in MEASURES:
        assert re.search(rf"^{kind.name}\n  \S", text, re.M), kind.name
    assert all(kind.name in trec_eval("-h")[1] for kind in MEASURES)


def test_version_is_said_on_standard_error():
    assert trec_eval("-v")[1:] == ("", trec_eval("-v")[2])
    assert "version 9" in trec_eval("--as=9", "-v")[2]


def test_every_measure_that_is_ours_is_in_the_registry():
    assert {kind.ours for kind in MEASURES if kind.ours} <= set(REGISTRY)


def test_a_reader_who_has_seen_enough_ends_the_program_quietly(files):
    code = "import sys; from cranfield.compat.trec_eval import main; sys.exit(main(sys.argv[1:]))"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", code, "qrels", "both"], stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writer)
    assert (answer.returncode, answer.stderr) == (141, b"")


def test_the_drop_in_loads_neither_click_nor_rich(files):
    code = (
        "import sys; from cranfield.compat.trec_eval import main; main(['qrels', 'both'])\n"
        "heavy = {'click', 'scipy', 'pyarrow', 'pandas', 'json', 'csv'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_the_page_about_the_drop_in_names_every_option_and_every_exit_code():
    page = (Path(__file__).resolve().parents[1] / "docs" / "trec_eval.md").read_text(encoding="utf-8")
    assert all(f"`-{letter}" in page for letter in "qncmlMJNZRTDohv")
    assert all(f"`{nickname}`" in page for nickname in NICKNAMES)
    assert all(f"\n| {code} |" in page for code in (0, 1, 2, 4, 7, 134, 141, 255))
