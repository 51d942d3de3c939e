"""Silence means health: what could make scores meaningless is said first and once by every verb, and sound data is quiet."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as library
from cranfield import Evaluator, evaluate
from cranfield.base.collection import Document, Topic
from cranfield.base.errors import DataError, DataWarning, UnjudgedWarning
from cranfield.base.qrels import Qrels
from cranfield.collections.check import check
from cranfield.compat import pytrec_eval
from cranfield.evaluation.sanity_checks import FEW, IdOverlap
from cranfield.evaluation.tie_orders import DecisiveTies, extreme_order
from cranfield.formats.collection_folder import write_collection
from hypotheses import examples
from shell import cranfield

TOPICS = [str(number) for number in range(1, 21)]


def written(path, rows) -> None:
    path.write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))


def run_rows(document, score=lambda r: 30 - r, topic=str):
    """Thirty documents a topic; `document` names them by topic and rank."""
    return [
        (topic(t), "Q0", document(int(t), r), r + 1, score(r), "tag") for t, r in itertools.product(TOPICS, range(30))
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Judgments of 20 documents a topic, and runs: sound, with other ids, tied, of other topics, …"""
    folder = tmp_path_factory.mktemp("silence")
    chance = random.Random(1)
    grades = [(t, 0, f"d{int(t) * 100 + d}", chance.choice([0, 0, 1, 2])) for t in TOPICS for d in range(20)]
    written(folder / "qrels.txt", grades)
    own = lambda t, r: f"d{t * 100 + r * 7 % 30}"  # noqa: E731
    other = lambda t, r: f"doc-{t * 100 + r}"  # noqa: E731
    written(folder / "good.run", run_rows(own))
    written(folder / "better.run", run_rows(lambda t, r: f"d{t * 100 + r * 11 % 30}"))
    written(folder / "bad.run", run_rows(other))
    written(folder / "small.run", [row for row in run_rows(other) if row[3] <= 4])
    written(folder / "few.run", run_rows(lambda t, r: "d304" if (t, r) == (3, 4) else other(t, r)))
    written(folder / "tied.run", run_rows(own, lambda r: (30 - r) // 5))
    written(folder / "padded.run", run_rows(own, topic=lambda t: f"q{int(t):03}"))
    written(folder / "shifted.run", run_rows(own, topic=lambda t: str(int(t) + 15)))
    return folder


VERBS = {
    "eval": ("eval", "qrels.txt", "RUN"),
    "compare": ("compare", "qrels.txt", "good.run", "RUN"),
    "leaderboard": ("leaderboard", "qrels.txt", "good.run", "RUN"),
    "gate": ("gate", "qrels.txt", "good.run", "RUN"),
    "report": ("report", "qrels.txt", "good.run", "RUN", "--format", "md"),
    "explain": ("explain", "qrels.txt", "RUN", "--topic", "3"),
    "explain two": ("explain", "qrels.txt", "good.run", "RUN", "--topic", "3"),
    "explain as": ("explain", "qrels.txt", "RUN", "--as", "all"),
    "curve": ("curve", "qrels.txt", "RUN"),
    "stability": ("stability", "qrels.txt", "good.run", "RUN", "--of", "measures"),
    "design": ("design", "qrels.txt", "good.run", "RUN", "--test", "t"),
    "reproduce": ("reproduce", "qrels.txt", "good.run", "RUN"),
    "reuse": ("reuse", "qrels.txt", "good.run", "RUN"),
    "pool simulate": ("pool", "simulate", "qrels.txt", "good.run", "RUN", "--strategy", "depth"),
    "pool sample": ("pool", "simulate", "qrels.txt", "good.run", "RUN", "--sampling", "0.5", "--draws", "1"),
    "pool thin": ("pool", "thin", "qrels.txt", "RUN"),
    "fuse": ("fuse", "good.run", "RUN", "--method", "w-sum", "--train-qrels", "qrels.txt", "--step", "0.5"),
}


def said(files, verb, run, *more):
    typed = [run if word == "RUN" else word for word in VERBS[verb]]
    return cranfield(*typed, *more, folder=files)


def warned(answer) -> list[str]:
    return [line for line in answer.err.splitlines() if line.startswith("warning: ")]


# ids


@pytest.mark.parametrize("verb", VERBS)
def test_ids_of_which_none_is_judged_stop_every_verb(files, verb):
    answer = said(files, verb, "bad.run")
    assert (answer.code, answer.out) == (3, "")
    [line] = answer.err.splitlines()
    assert line.startswith("cranfield: bad: the run returns no judged document at all: it returns 'doc-100'")
    assert "judged are 'd100'" in line
    assert line.endswith("do both use the same document ids? (--allow-unjudged goes on)")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_told_to_goes_on_and_warns_first_and_once(files, verb):
    answer = said(files, verb, "bad.run", "--allow-unjudged")
    assert answer.code == (1 if verb == "gate" else 0), answer.err
    [line] = warned(answer)
    assert line.endswith("do both use the same document ids?")
    assert answer.both.startswith(line)


def test_fewer_than_a_hundred_documents_of_which_none_is_judged_are_a_warning(files):
    answer = said(files, "eval", "small.run")
    assert answer.code == 0
    assert len(warned(answer)) == 1
    assert answer.both.startswith("warning: small: the run returns no judged document at all")


def test_few_judged_documents_are_a_warning(files):
    answer = said(files, "eval", "few.run")
    assert answer.code == 0
    assert warned(answer)[0].startswith(
        "warning: few: hardly any returned document is judged: 1 of 600, where 400 could be"
    )


def test_the_threshold_is_one_in_a_hundred_of_what_could_be_found():
    judged = Evaluator({"q": {f"d{i}": 1 for i in range(1000)}}, "AP")
    for found, apart in ((0, True), (9, True), (10, False)):
        run = library.Run({"q": {**{f"d{i}": 2 for i in range(found)}, **{f"x{i}": 1 for i in range(1000)}}})
        met = IdOverlap.of(run.hits(judged.qrels.index, judged.conventions.order), judged.judgments)
        assert met.ids_apart is apart is (found < FEW * met.judgeable)


def test_check_says_the_same_of_ids_and_topics(files):
    for run in ("bad", "small", "few", "padded", "shifted"):
        lines = warned(said(files, "eval", f"{run}.run", "--allow-unjudged"))
        assert lines
        found = {finding.message for finding in check([files / f"{run}.run", files / "qrels.txt"])}
        assert {line.removeprefix(f"warning: {run}: ") for line in lines} <= found


# topics


@pytest.mark.parametrize("verb", ["eval", "explain as", "curve"])
def test_topics_of_which_none_matches_stop(files, verb):
    answer = said(files, verb, "padded.run")
    assert answer.code == 3
    assert "share no topic: it answers 'q001', 'q002', 'q003' …; judged are '1', '2', '3' …" in answer.err
    assert "(20 would match by their digits alone)" in answer.err
    assert said(files, verb, "padded.run", "--allow-unjudged").code == 0


def test_few_topics_that_match_are_a_warning_and_a_missing_one_is_a_note(files):
    answer = said(files, "eval", "shifted.run", "--allow-unjudged")
    assert answer.code == 0
    assert "share few topics: 5 of 20 answered and 20 judged; it answers '21'" in warned(answer)[0]
    rows = (files / "good.run").read_text().splitlines(keepends=True)
    (files / "lacks.run").write_text("".join(row for row in rows if not row.startswith("7 ")))
    answer = said(files, "eval", "lacks.run")
    assert warned(answer) == []
    assert "note: topic '7' is judged but missing from lacks" in answer.err


# ties


def test_ties_that_move_a_mean_or_swap_runs_are_told_with_their_rule(files):
    for verb in ("eval", "compare", "leaderboard", "report"):
        answer = said(files, verb, "tied.run", *([] if verb != "eval" else ["good.run"]))
        first, second = warned(answer)
        assert answer.both.startswith(first)
        assert first.startswith("warning: tied: tied documents can move a mean: mean ")
        assert "with ties by document id, descending" in first
        assert "can swap runs: 0.3074 and 0.2811 (from 0.2375 to 0.3730) by nDCG@10" in second
    answer = said(files, "eval", "tied.run", "--ties", "input-order")
    assert "with ties in the order given" in warned(answer)[0]
    for quiet in (["--ties", "averaged"], ["--bounds", "ties"]):
        assert warned(said(files, "eval", "tied.run", *quiet)) == []


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_the_ends_of_a_mean_over_ties_against_bounds(seed):
    rng = np.random.default_rng(seed)
    qrels = {f"t{t}": {f"d{d}": int(rng.integers(-1, 4)) for d in range(8)} for t in range(4)}
    run = {t: {f"d{d}": float(rng.integers(0, 4)) for d in rng.permutation(12)} for t in qrels}
    for measure in ("nDCG@5", "AP", "RR@3", "P@4"):
        evaluator = Evaluator(qrels, measure, warn=False)
        opened = evaluator.open(run)[0]
        values = evaluator.evaluate(opened).values[0]
        moved = evaluator._tie_range(evaluator.hits(opened), values)
        found = library.bounds(qrels, run, measure, over="ties")
        low, high = (0, 0) if moved is None else moved[:, 0]
        assert np.allclose(values[0] + low, found.low[0, 0])
        assert np.allclose(values[0] + high, found.high[0, 0])


def test_ties_without_anything_to_choose_are_not_loose():
    hits = lambda run: Evaluator({"q": {"a": 1, "b": 1, "c": 0}}, "AP").hits(run)  # noqa: E731
    assert len(DecisiveTies.of(hits({"q": {"a": 2, "b": 2, "c": 1}})).topic) == 0  # two alike
    assert len(DecisiveTies.of(hits({"q": {"a": 3, "c": 2, "x": 2}})).topic) == 0  # nothing relevant
    assert DecisiveTies.of(hits({"q": {"a": 3, "b": 2, "c": 2}})).first.tolist() == [2]
    moved = hits({"q": {"a": 2, "c": 2, "x": 2}})
    assert [extreme_order(moved, best).rank.tolist() for best in (True, False)] == [[1, 2], [2, 3]]
    assert [extreme_order(moved, best).grade.tolist() for best in (True, False)] == [[1, 0], [0, 1]]


# grades


@pytest.mark.parametrize(
    ("measure", "heard"),
    [
        ("RBP(gain=grade)", 1),
        ("RBP(gain=grade, max=2)", 0),
        ("RBP", 0),
        ("INST", 1),
        ("INST(max=1)", 0),
        ("pFound(gain=grade)", 1),
        ("pFound", 0),
        ("nDCG@10", 0),
    ],
)
def test_grades_above_the_maximum_of_a_measure_are_told(files, measure, heard):
    answer = said(files, "eval", "good.run", "-m", measure)
    assert len(warned(answer)) == heard
    assert all("grades above a measure's maximum" in line and "set max=2" in line for line in warned(answer))


def test_err_refuses_grades_above_its_maximum(files):
    answer = said(files, "eval", "good.run", "-m", "ERR(max=1)@10")
    assert answer.code == 2
    assert "a grade of 2 is above max=1" in answer.err


# a collection


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    documents = [Document(f"p{i}", text=f"thing {i}") for i in range(300)]
    topics = [Topic(str(t), f"thing {t}") for t in range(5)]
    judged = Qrels({str(t): {f"p{t * 10 + d}": d % 2 for d in range(10)} for t in range(5)})
    write_collection(str(folder / "shop"), documents, topics, judged)
    write_collection(str(folder / "bare"), documents, topics, Qrels({}))
    written(folder / "inside.run", [(t, "Q0", f"p{200 + r}", r + 1, -r, "x") for t in range(5) for r in range(40)])
    written(folder / "outside.run", [(t, "Q0", f"x{r}", r + 1, -r, "x") for t in range(5) for r in range(40)])
    (folder / "strange_ids.py").write_text(
        "def strange(text, k):\n    return [(f'x{i}', -float(i)) for i in range(k)]\n"
        "def mostly(text, k):\n    return [('p7', 1.0)] + [(f'x{i}', -float(i)) for i in range(k - 1)]\n"
    )
    return folder


def test_ids_that_the_collection_has_do_not_stop(shop):
    answer = cranfield("eval", "shop", "inside.run", folder=shop)
    assert answer.code == 0
    assert "0 of 200, where 50 could be" in warned(answer)[0]
    assert "of the first 40 ids that it returns the collection has 40" in warned(answer)[0]
    answer = cranfield("eval", "shop", "outside.run", folder=shop)
    assert answer.code == 3
    assert "of the first 40 ids that it returns the collection has 0" in answer.err


@pytest.mark.parametrize("collection", ["shop", "bare"])
def test_a_run_that_is_made_of_strange_ids_is_written_and_stops(shop, collection, monkeypatch):
    monkeypatch.syspath_prepend(str(shop))
    asked = ("run", collection, "--system", "python:strange_ids:strange", "-o", "x.run", "-k", 50)
    answer = cranfield(*asked, folder=shop)
    assert answer.code == 3, answer.err
    assert "do both use the same document ids?" in answer.err
    assert len((shop / "x.run").read_text().splitlines()) == 250
    answer = cranfield(*asked, "--allow-unjudged", folder=shop)
    assert answer.code == 0, answer.err
    assert len(warned(answer)) == 1


def test_a_run_of_which_the_collection_has_hardly_anything_is_a_warning(shop, monkeypatch):
    monkeypatch.syspath_prepend(str(shop))
    asked = ("run", "bare", "--system", "python:strange_ids:mostly", "-o", "y.run", "-k", 150)
    assert "hardly any returned document is in the collection: 1 of the first" in cranfield(*asked, folder=shop).err
    sound = cranfield("run", "bare", "--system", "sqlite", "-o", "z.run", folder=shop)
    assert (sound.code, warned(sound)) == (0, [])


# the gate


def test_the_gate_names_ids_as_the_cause(files):
    answer = said(files, "gate", "bad.run", "--allow-unjudged", "--format", "json")
    assert answer.code == 1
    [verdict] = json.loads(answer.out)["measures"]
    assert [(cause["cause"], cause["certain"]) for cause in verdict["causes"]] == [("ids", True)]
    answer = said(files, "gate", "few.run", "--format", "json")
    [verdict] = json.loads(answer.out)["measures"]
    assert [cause["cause"] for cause in verdict["causes"]] == ["ids", "unjudged", "quality"]
    assert not verdict["causes"][0]["certain"]


# the library


def test_the_library_warns_where_it_was_called():
    with pytest.warns(DataWarning, match="no judged document") as heard:
        evaluate({"q": {"a": 1}}, {"q": {"x": 1}}, "AP")
    assert [str(warning.filename) for warning in heard] == [__file__]
    strange = {topic: {f"x{i}": i for i in range(50)} for topic in "qr"}
    with pytest.warns(UnjudgedWarning, match="same document ids"):
        library.compare({"q": {"a": 1}, "r": {"a": 1}}, {"x": strange, "y": strange})
    assert library.DataWarning is DataWarning


@pytest.mark.filterwarnings("error")
def test_one_who_asks_for_silence_gets_it():
    assert evaluate({"q": {"a": 1}}, {"q": {"x": 1}}, "AP", warn=False).mean() == 0


@pytest.mark.filterwarnings("error")
def test_the_faces_of_other_programs_are_silent(files):
    from cranfield.compat.trec_eval import main

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"map"}).evaluate({"q": {"x": 1.0}})
        with contextlib.suppress(SystemExit):
            main([str(files / "qrels.txt"), str(files / "bad.run")])


# health


@pytest.mark.parametrize("verb", VERBS)
def test_sound_data_is_silent(files, verb):
    answer = said(files, verb, "better.run")
    assert answer.code in (0, 1)
    assert warned(answer) == []


def test_the_bundled_collection_is_silent(tmp_path):
    for name in ("sqlite", "sqlite:stem=no"):
        made = cranfield("run", "allotment", "--system", name, "-o", f"{name[7:]}x.run", "-k", 100, folder=tmp_path)
        assert (made.code, warned(made)) == (0, []), made.err
    for verb in ("eval", "compare", "leaderboard"):
        answer = cranfield(verb, "allotment", "x.run", "stem=nox.run", folder=tmp_path)
        assert (answer.code, warned(answer)) == (0, []), answer.err


HEALTHY = [
    ("trec-covid-r3/qrels.covid-round3.txt", "trec-covid-r3/runs/*"),
    ("codec-document/document_ndcg.qrels", "codec-document/*.run"),
    ("webtrack2012-baselines/qrels.web.151-200.txt", "webtrack2012-baselines/*.results-*.txt"),
    ("diversity-wt09-10/2009.diversity.qrels", "diversity-wt09-10/indri.wt2009.run"),
    ("cranfield-runs-rerank/cranqrel.tcd-corrected", "cranfield-runs-rerank/cran_results*"),
    ("cacm/cacm.qrels", "cacm/bm25_results.res"),
]


@pytest.mark.parametrize(("qrels", "runs"), HEALTHY)
def test_ids_and_topics_of_real_runs_are_not_doubted(shared, qrels, runs):
    evaluator = Evaluator(shared / qrels, "AP", duplicates="first", lenient=True, warn=False)
    paths = sorted(shared.glob(runs))
    assert paths
    for path in paths:
        assert evaluator.id_mismatches(evaluator.open(path)[0]) == []


def test_ties_that_decide_among_the_runs_of_trec_covid(shared):
    with pytest.warns(DataWarning) as heard:
        evaluate(shared / HEALTHY[0][0], str(shared / HEALTHY[0][1]), "nDCG@10 AP RR@10")
    moved, swapped, digits = (str(warning.message) for warning in heard)
    assert re.match(r"PRF, sab20.3.rocchio: tied documents can move a mean: mean RR@10 lies", moved)
    assert swapped.startswith("UIowaS_Rd3MLReRank, sab20.3.rocchio: tied documents can swap runs")
    assert digits.startswith(
        "UIowaS_Rd3MLReRank: digits beyond single precision decide: mean RR@10 0.8979, otherwise 0.9021"
    )


# the sanity checks of the library and of every command


GRADED = {"q1": {"d1": 1, "d2": 0, "d3": 1}, "q2": {"d1": 1}}
SCORED = {"q1": {"d1": 3.2, "d2": 2.1, "d3": 1.4}, "q2": {"d5": 2.5, "d1": 1.3}}


def heard(call, *args, **options) -> list[str]:
    """What the sanity checks say during a call."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(*args, **options)
    return [str(each.message) for each in said if issubclass(each.category, DataWarning)]


@pytest.mark.parametrize(
    "run",
    [SCORED, {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}, {"q1": {"d1": 0.9, "d2": 0.8}}, {"q1": {"d1": 90, "d2": 80}}],
)
def test_swapped_mappings_are_told_and_those_in_order_are_not(run):
    for call in (evaluate, library.compare):
        options = {"measures": "AP"} if call is evaluate else {}
        two = {"a": GRADED, "b": GRADED} if call is library.compare else GRADED
        said = heard(call, run, two, **options)
        assert said
        assert all("the judgments look like scores and the run like grades" in line for line in said)
    assert heard(evaluate, GRADED, run, "AP") == []


def test_swapped_files_say_so_once_for_a_command_too(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(SCORED))
    (tmp_path / "qrels.json").write_text(json.dumps(GRADED))
    answer = cranfield("eval", "run.json", "qrels.json", folder=tmp_path)
    assert len(warned(answer)) == 1
    assert "Are the two swapped?" in warned(answer)[0]
    assert warned(cranfield("eval", "qrels.json", "run.json", folder=tmp_path)) == []


def test_whole_numbers_of_many_levels_in_place_of_judgments_are_told():
    ranks = {"q1": {f"d{i}": 10 - i for i in range(10)}}
    [line] = heard(evaluate, ranks, {"q1": {"d1": 1, "d2": 0, "d3": 1}}, "AP")
    assert "Are the two swapped?" in line
    assert heard(evaluate, {"q1": {f"d{i}": i % 10 for i in range(40)}}, {"q1": {"d1": 1, "d2": 0}}, "P@1") == []


def test_check_knows_swapped_files(tmp_path):
    run, qrels = tmp_path / "a.json", tmp_path / "b.json"
    run.write_text(json.dumps(SCORED))
    qrels.write_text(json.dumps(GRADED))
    assert "swapped-arguments" in {finding.code for finding in check([qrels], qrels=run)}
    assert "swapped-arguments" not in {finding.code for finding in check([run], qrels=qrels)}


@pytest.mark.parametrize("call", [evaluate, library.curves])
def test_a_run_in_place_of_judgments_is_an_error_that_says_the_order(call):
    options = ["AP"] if call is evaluate else []
    for qrels, run in (
        (library.Run(SCORED), GRADED),
        (GRADED, library.Qrels(GRADED)),
        (GRADED, [library.Qrels(GRADED)]),
        ({"q1": ["d1", "d2"]}, GRADED),
        ({"bm25": SCORED, "dense": SCORED}, GRADED),
        ([SCORED, SCORED], GRADED),
        ([library.Run(SCORED)], GRADED),
    ):
        with pytest.raises(DataError, match="the judgments come first, as in evaluate"):
            call(qrels, run, *options)


def test_judgments_with_fractions_and_runs_of_whole_scores_are_not_taken_for_swapped():
    soft = {"q1": {"d1": 0.25, "d2": 1.0}}
    assert heard(evaluate, soft, {"q1": {"d1": 3, "d2": 2, "d3": 1}}, "AP") == []
    assert heard(evaluate, {"q1": {"d1": 1.0, "d2": 0.0}}, {"q1": {"d1": 2, "d2": 1}}, "AP") == []


@pytest.fixture(scope="module")
def upside_down(files):
    """The sound run with its rank in the score column, and the same with its worst line first."""
    rows = run_rows(lambda t, r: f"d{t * 100 + r}", lambda r: r + 1)
    written(files / "reversed.run", rows)
    written(files / "worst_first.run", run_rows(lambda t, r: f"d{t * 100 + 29 - r}", lambda r: r + 1))
    return files


@pytest.mark.parametrize("verb", VERBS)
def test_a_rank_in_the_score_column_is_told_by_every_verb(upside_down, verb):
    line, *_ = warned(said(upside_down, verb, "reversed.run"))
    assert line.startswith(
        "warning: reversed: scores that rise down the ranking in every topic: 20 topics; binary DCG is"
    )
    assert [each for each in warned(said(upside_down, verb, "worst_first.run")) if "rise down" in each] == []


def test_upside_down_scores_in_a_mapping_a_table_and_a_file_against_check(upside_down):
    run = Evaluator(upside_down / "qrels.txt", "AP").open(upside_down / "reversed.run")[0]
    for same in (run, run.to_dict(), library.Run(run.table)):
        assert len(heard(evaluate, upside_down / "qrels.txt", same, "AP")) == 1
    assert "scores-reversed" in {finding.code for finding in check(upside_down / "reversed.run")}
    assert heard(evaluate, {"q": {"a": 1}}, {"q": {"a": 1, "b": 2, "c": 3}}, "AP") == []  # an accident


def test_stars_without_a_zero_are_told_unless_somebody_says_what_is_relevant():
    stars = {"q1": {"p1": 5, "p2": 3, "p3": 1}, "q2": {"p1": 4, "p2": 1}}
    run = {"q1": {"p3": 2.5, "p1": 1.5}, "q2": {"p2": 0.5}}
    [line] = heard(evaluate, stars, run, "AP nDCG@10")
    assert line.startswith("qrels: grades without a 0: 5 judgments from 1 to 5. Every judged document is relevant")
    assert heard(evaluate, stars, run, "AP", rel=3) == heard(evaluate, stars, run, "AP(rel=3)") == []
    assert heard(evaluate, stars, run, "AP", rel=1) == []
    two = {"a": run, "b": run}
    for call in (library.reuse, library.simulate):
        assert len(heard(call, stars, two, measures="AP")) == 1
        assert heard(call, stars, two, measures="AP", rel=3) == []
    assert len(heard(library.tune, [run, run], stars)) == 1
    assert heard(library.tune, [run, run], stars, rel=3) == []
    binary = {"q1": {"p1": 1, "p2": 2, "p3": 3}}
    assert heard(evaluate, binary, run, "AP") == heard(evaluate, {"q1": {**stars["q1"], "p9": 0}}, run, "AP") == []


@pytest.fixture(scope="module")
def sparse(files):
    """A run of which one document in twenty is judged at the top; and judgments without the non-relevant ones."""
    rows = run_rows(lambda t, r: f"d{t * 100 + r}" if r == 12 or (r == 0 and t % 2) else f"x{t}-{r}")
    written(files / "sparse.run", rows)
    lines = (files / "qrels.txt").read_text().splitlines(keepends=True)
    (files / "relevant.txt").write_text("".join(line for line in lines if line.split()[3] != "0"))
    return files


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_of_which_little_is_judged_is_told_by_every_verb_first(sparse, verb):
    answer = said(sparse, verb, "sparse.run")
    line = warned(answer)[0]
    assert answer.both.startswith(line)
    assert line.startswith("warning: sparse: little of what the run returns is judged: 5.0% of the first 10")


def test_a_comparison_says_that_little_is_judged_before_it_says_who_beats_whom(sparse):
    answer = said(sparse, "compare", "sparse.run")
    lines = [line for line in answer.out.splitlines() if line]
    assert lines[0].startswith("too little is judged for a verdict: Judged@10 is sparse 5%")
    assert "beats" in lines[1]
    cautions = [line for line in answer.err.splitlines() if line.startswith("caution: ")]
    assert cautions[0].startswith("caution: Judged@10 is low for sparse 5%")


def test_judgments_of_relevant_documents_only_say_nothing_of_what_nobody_judged(sparse):
    for verb in ("eval", "compare", "leaderboard", "gate"):
        words = [word.replace("qrels.txt", "relevant.txt").replace("RUN", "sparse.run") for word in VERBS[verb]]
        both = cranfield(*words, folder=sparse).both
        assert "judged@10" not in both
        assert "Judged@10 is" not in both
        assert "nobody judged" not in both
        assert "little" not in both
    for runs in (["sparse.run"], ["sparse.run", "good.run"]):
        both = cranfield("explain", "relevant.txt", *runs, "--topic", "3", folder=sparse).both
        assert "judged" not in both
        assert "unjudged" in cranfield("explain", "qrels.txt", *runs, "--topic", "3", folder=sparse).both
    findings = check([sparse / "sparse.run"], qrels=sparse / "relevant.txt")
    assert "documents-not-judged" not in {finding.code for finding in findings}
    assert "documents-not-named" in {finding.code for finding in findings}
    assert "little-judged" not in {finding.code for finding in findings}
    assert not [finding for finding in findings if "nobody judged" in finding.message]
    assert "little-judged" in {f.code for f in check([sparse / "sparse.run"], qrels=sparse / "qrels.txt")}


def test_digits_beyond_single_precision_are_told_with_the_mean_of_trec_eval_9():
    qrels = {"q": {"a": 1, "b": 0}}
    run = {"q": {"a": 1.00000001, "b": 1.0}}
    [line] = heard(evaluate, qrels, run, "AP")
    tied = evaluate(qrels, run, "AP", conventions="trec_eval-9", warn=False).mean()
    assert f"mean AP 1.0000, otherwise {tied:.4f} (1 topic). trec_eval 9 ties them: --as trec_eval-9" in line
    told = library.explain(qrels, run, "AP", "q")
    assert f"digits beyond single precision decide: the score would be {tied:.4f} in trec_eval 9" in str(told.notes())
    assert "single" not in str(library.explain(qrels, run, "AP", "q", conventions="trec_eval-9").notes())
    none = {"q": {"a": 1.00000001, "b": 1.0, "c": 1.0}}
    assert "mean RR@1 1.0000, otherwise 0.0000 (1 topic)" in heard(evaluate, qrels, none, "RR@1")[-1]
    for quiet in ({"conventions": "trec_eval-9"}, {"scores": "single"}, {"ties": "input-order"}, {"warn": False}):
        assert [each for each in heard(evaluate, qrels, run, "AP", **quiet) if "single" in each] == []
    assert heard(evaluate, qrels, {"q": {"b": 1.00000001, "a": 1.0}}, "AP") == []  # ties would not change it


@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_what_single_precision_moves_against_scores_in_single_precision(seed):
    rng = np.random.default_rng(seed)
    qrels = {f"t{t}": {f"d{d}": int(rng.integers(0, 3)) for d in range(8)} for t in range(4)}
    run = {t: {f"d{d}": 1.0 + 1e-9 * float(rng.integers(0, 50)) for d in rng.permutation(12)} for t in qrels}
    for measure in ("nDCG@5", "AP", "RR@3"):
        evaluator = Evaluator(qrels, measure, warn=False)
        opened = evaluator.open(run)[0]
        values = evaluator.evaluate(opened).values[0]
        found = opened.hits(evaluator.qrels.index, evaluator.conventions.order)
        of_table = library.Run(opened.table).hits(evaluator.qrels.index, evaluator.conventions.order)
        assert found.single.tolist() == of_table.single.tolist()
        moved = evaluator._single(found, opened, values)
        single = evaluate(qrels, run, measure, scores="single", warn=False).values[0]
        assert np.allclose(values + (0 if moved is None else moved), single)


@pytest.mark.parametrize(("qrels", "runs"), HEALTHY)
def test_real_runs_are_neither_swapped_nor_upside_down_nor_too_little_judged(shared, qrels, runs):
    evaluator = Evaluator(shared / qrels, "AP", duplicates="first", lenient=True)
    for path in sorted(shared.glob(runs)):
        run = evaluator.open(path)[0]
        assert evaluator._run_findings(run, *evaluator._match(run, 1, evaluator.conventions)) == []
