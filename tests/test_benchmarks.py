"""The benchmarks: their data are the same everywhere, they compute what their peers compute, and their report renders."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cranfield

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import __main__ as command
from benchmarks import agreement, generate, sets, table, timing
from benchmarks.suite import SCRIPTS

TINY = {
    "news": sets.Spec("S", "news", topics=4, depth=200, ties=0.1),
    "passages": sets.Spec("M", "passages", topics=40, depth=100, ties=0.1),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sets.DataSet]:
    root = tmp_path_factory.mktemp("data")
    answer = {}
    for kind, spec in TINY.items():
        generate.generate(spec, root)
        found = sets.load(spec, root)
        assert found is not None
        answer[kind] = found
    return answer


def rows_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", TINY)
def test_the_same_seed_makes_the_same_bytes(kind: str, made: dict[str, sets.DataSet], tmp_path: Path) -> None:
    again = generate.generate(TINY[kind], tmp_path)
    assert (again / "qrels.txt").read_bytes() == made[kind].qrels.read_bytes()
    assert (again / "system-000.run").read_bytes() == made[kind].run.read_bytes()
    other = generate.generate(replace(TINY[kind], seed=1), tmp_path)
    assert (other / "system-000.run").read_bytes() != made[kind].run.read_bytes()


@pytest.mark.parametrize("kind", TINY)
def test_what_is_said_of_a_set_is_true_of_its_files(kind: str, made: dict[str, sets.DataSet]) -> None:
    data = made[kind]
    run, qrels = rows_of(data.run), rows_of(data.qrels)
    judged = Counter(row[0] for row in qrels)
    counts = Counter((row[0], row[4]) for row in run)
    facts = data.facts
    assert facts["lines"] == len(run) == TINY[kind].topics * TINY[kind].depth
    assert facts["run_bytes"] == data.run.stat().st_size
    assert (facts["judged_least"], facts["judged_most"]) == (min(judged.values()), max(judged.values()))
    assert facts["tied"] == pytest.approx(sum(count for count in counts.values() if count > 1) / len(run))
    found = {(row[0], row[2]) for row in run} & {(row[0], row[2]) for row in qrels}
    assert facts["judged_retrieved"] == pytest.approx(len(found) / len(qrels))
    assert f"{len(run):,} lines" in sets.describe(data)


@pytest.mark.parametrize("kind", TINY)
def test_scores_are_tied_in_32_bits_where_and_only_where_they_are_in_64(
    kind: str, made: dict[str, sets.DataSet]
) -> None:
    scores = np.array([float(row[4]) for row in rows_of(made[kind].run)]).reshape(-1, TINY[kind].depth)
    wide, narrow = np.diff(scores), np.diff(scores.astype(np.float32))
    assert (wide <= 0).all()
    assert (wide == 0).any()
    assert ((wide == 0) == (narrow == 0)).all()


@pytest.mark.parametrize("order", ["within", "scattered"])
def test_another_order_of_lines_holds_the_same_lines_and_scores_the_same(
    order: str, made: dict[str, sets.DataSet], tmp_path: Path
) -> None:
    usual = made["news"]
    folder = generate.generate(replace(TINY["news"], order=order), tmp_path)
    lines, shuffled = usual.run.read_text().splitlines(), (folder / "system-000.run").read_text().splitlines()
    assert lines != shuffled
    assert sorted(lines) == sorted(shuffled)
    in_blocks = [line.split()[0] for line in shuffled] == [line.split()[0] for line in lines]
    assert in_blocks == (order == "within")
    wanted, found = (cranfield.evaluate(usual.qrels, run, "AP nDCG") for run in (usual.run, folder / "system-000.run"))
    assert wanted.means() == found.means()


def test_the_runs_of_a_set_differ_and_share_its_judgments(tmp_path: Path, made: dict[str, sets.DataSet]) -> None:
    folder = generate.generate(replace(TINY["news"], name="L", runs=3, first=1), tmp_path)
    runs = [path.read_bytes() for path in sorted(folder.glob("*.run"))]
    assert len(set(runs)) == 3
    assert (folder / "qrels.txt").read_bytes() == made["news"].qrels.read_bytes()


def test_a_set_is_made_once_and_again_only_when_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(TINY["passages"], topics=5)
    first = sets.ensure(spec, tmp_path)
    assert sets.ensure(spec, tmp_path).run.stat().st_mtime_ns == first.run.stat().st_mtime_ns
    assert sets.load(replace(spec, ties=0.2), tmp_path) is None
    monkeypatch.setattr(sets, "VERSION", sets.VERSION + 1)
    assert sets.load(spec, tmp_path) is None


def test_the_ids_of_news_are_all_different_and_look_like_the_documented_ones() -> None:
    assert doctest.testmod(generate).failed == 0
    assert len({generate.news_id(n) for n in range(0, generate.NEWS, 7)}) == len(range(0, generate.NEWS, 7))


@pytest.mark.parametrize("kind", TINY)
def test_both_sides_of_a_benchmark_compute_the_same_means_against_pytrec_eval_and_ir_measures(
    kind: str, made: dict[str, sets.DataSet]
) -> None:
    files = (str(made[kind].qrels), str(made[kind].run))
    reference = json.loads(timing.run((sys.executable, str(SCRIPTS / "reference.py"), *files)).output)
    ours = agreement.read(timing.run((sys.executable, str(SCRIPTS / "with_cranfield.py"), "2", *files)).output)
    agreement.check("cranfield", ours, reference["document-descending"])
    assert list(ours[0]) == list(agreement.MEASURES)
    for peer in ("pytrec_eval", "ir_measures"):
        pytest.importorskip(peer)
        theirs = timing.run((sys.executable, str(SCRIPTS / f"with_{peer}.py"), *files)).output
        agreement.check(peer, agreement.read(theirs), agreement.expected(peer, reference))


def test_dicts_in_memory_score_the_same_against_pytrec_eval(made: dict[str, sets.DataSet]) -> None:
    pytest.importorskip("pytrec_eval")
    home = str(Path(cranfield.__file__).parents[1])
    script = (sys.executable, str(SCRIPTS / "in_memory.py"), "2", home)
    answer = json.loads(timing.run((*script, str(made["news"].qrels), str(made["news"].run))).output)
    for case in ("six", "judged"):
        mine, theirs = answer[case]["cranfield"], answer[case]["pytrec_eval"]
        agreement.check("pytrec_eval", [theirs["means"]], [mine["means"]])
        assert len(mine["evaluate"]) == len(theirs["index"]) == 2


def test_a_comparison_of_different_means_is_void() -> None:
    agreement.check("pytrec_eval", [{"AP": 0.25}], [{"AP": 0.25 + 1e-7}])
    with pytest.raises(agreement.VoidError, match=r"run 1, AP: pytrec_eval says 0\.25"):
        agreement.check("pytrec_eval", [{"AP": 0.25}], [{"AP": 0.2501}])
    with pytest.raises(agreement.VoidError, match="differ by nan"):
        agreement.check("pytrec_eval", [{"AP": float("nan")}], [{"AP": 0.25}])
    with pytest.raises(agreement.VoidError, match="0 runs"):
        agreement.check("pytrec_eval", [], [{"AP": 0.25}])


def test_means_are_read_from_all_three_kinds_of_output() -> None:
    wanted = [{"AP": 0.5, "RR@10": 1.0}]
    assert agreement.read('[{"AP": 0.5, "RR@10": 1.0}]') == wanted
    assert agreement.read('{"measures": [], "runs": [{"run": "a", "mean": {"AP": 0.5, "RR@10": 1.0}}]}') == wanted
    assert agreement.read("AP\t0.500000000\nRR@10\t1.000000000\n") == wanted


WEIGHED = """import sys
from benchmarks import timing
for program in ("print('x' * 3)", "print(len(b'x' * 400_000_000))"):
    print(timing.run((sys.executable, "-c", program)).peak)
"""


def test_a_process_is_charged_for_the_memory_it_held() -> None:
    # from a small process: a child's peak begins at what its parent holds, and this one may hold much by now
    root = Path(__file__).resolve().parents[1]
    told = subprocess.run([sys.executable, "-c", WEIGHED], cwd=root, capture_output=True, text=True, check=True).stdout
    small, large = map(int, told.split())
    assert large > max(400_000_000, small)


def test_a_process_that_fails_says_so() -> None:
    with pytest.raises(timing.FailedError, match="exit 1: ValueError: no such thing"):
        timing.run((sys.executable, "-c", "raise ValueError('no such thing')"))


def test_contenders_take_turns(capsys: pytest.CaptureFixture[str]) -> None:
    pair = [timing.Contender("peer", ("true",), 2), timing.Contender("ours", ("true",), 3)]
    samples = timing.interleave(pair, "S")
    assert {name: len(taken) for name, taken in samples.items()} == {"peer": 2, "ours": 3}
    order = [line.split()[1:3] for line in capsys.readouterr().err.splitlines()]
    assert order == [["peer", "1/2"], ["ours", "1/3"], ["peer", "2/2"], ["ours", "2/3"], ["ours", "3/3"]]


FAST = table.Row(
    "files → six means",
    "M",
    "cranfield eval, 2 threads",
    timing.Spread.of([0.5, 0.4, 0.6]),
    "pytrec_eval",
    timing.Spread.of([10.0]),
    20.0,
    sign="≥",
    bar=20.0,
)


def test_a_bar_is_met_or_missed_on_its_own_side() -> None:
    assert FAST.verdict == "met"
    assert replace(FAST, result=19.9).verdict == "missed"
    assert replace(FAST, sign="≤", result=19.9).verdict == "met"
    assert replace(FAST, bar=None).verdict == ""


def test_a_row_comes_back_from_the_history_as_it_went_in() -> None:
    assert table.Row.read(json.loads(json.dumps(FAST.plain()))) == FAST


def test_the_table_says_once_what_repeats() -> None:
    text = table.text([FAST, replace(FAST, against="ranx")])
    assert text.count("files → six means") == 1
    assert "0.500 s (0.400–0.600)" in text
    assert "≥ 20 ×" in text


def test_a_small_benchmark_runs_and_its_report_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "history.jsonl"
    small = ["--no-peers", "--quick", "--only", "files", "--scale", "0.02", "--repeats", "1", "--threads", "1"]
    assert command.main([*small, "--data", str(tmp_path), "--history", str(history)]) == 0
    printed = capsys.readouterr().out
    assert "peak memory" in printed
    entry = json.loads(history.read_text())
    assert entry["version"] == cranfield.__version__
    assert {row["set"] for row in entry["rows"]} == {"S"}
    assert command.main(["--report", "--history", str(history)]) == 0
    report = capsys.readouterr().out
    assert report.startswith("Measured ")
    assert report.count("\n| ") == 1 + len(entry["rows"])


def test_a_report_of_nothing_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--report", "--history", str(tmp_path / "none.jsonl")]) == 3
    assert "make bench" in capsys.readouterr().err


def test_only_a_full_benchmark_enters_the_history() -> None:
    assert command.usual(command.options([]))
    assert command.usual(command.options(["--large"]))
    for change in (["--scale", "0.1"], ["--ties", "0.2"], ["--order", "within"], ["--no-peers"], ["--only", "dicts"]):
        assert not command.usual(command.options(change))
