"""The gate: what each question fails, how often it errs, and how it tells a changed corpus from a worse ranking."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import cranfield as library
from cranfield.base.errors import ConventionError, DataError
from cranfield.comparison.gate.gate import allowed_drops, gate
from cranfield.comparison.gate.questions import QUESTIONS, GateSettings, decide, error_of_one_side
from cranfield.evaluation.measures import measures
from cranfield.stats.correction import correct
from shell import cranfield

TOPICS = [f"q{i:02}" for i in range(30)]
QRELS = {topic: {f"{topic}-r{i}": 1 for i in range(3)} | {f"{topic}-n{i}": 0 for i in range(40)} for topic in TOPICS}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "gate.md"


def settings(question: str, alpha: float = 0.05, test: str = "t") -> GateSettings:
    return GateSettings(QUESTIONS[question], alpha, test, 1000, 0)


def ranked(documents: list[str]) -> dict[str, float]:
    return {document: float(len(documents) - i) for i, document in enumerate(documents)}


def good(topic: str) -> list[str]:
    return [f"{topic}-r{i}" for i in range(3)] + [f"{topic}-n{i}" for i in range(40)]


def run(make) -> dict[str, dict[str, float]]:
    return {topic: ranked(make(topic)) for topic in TOPICS}


def worse(topic: str, by: int) -> list[str]:
    """The relevant documents pushed down by so many ranks."""
    relevant, others = good(topic)[:3], good(topic)[3:]
    return others[:by] + relevant + others[by:]


BASELINE = run(good)


def shuffled(seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return run(lambda topic: [good(topic)[i] for i in rng.permutation(43)])


def test_a_run_passes_against_itself():
    found = gate(QRELS, BASELINE, BASELINE, "nDCG@10 AP RR")
    assert found.passed
    assert [(v.state, v.drop, v.p, v.reason) for v in found.verdicts] == [("passed", 0.0, 1.0, "it did not fall")] * 3
    assert found.exit_code == 0


@pytest.mark.parametrize("test", ["t", "randomisation"])
def test_a_large_drop_on_many_topics_fails_and_is_called_quality(test):
    candidate = run(lambda topic: worse(topic, 1 + int(topic[1:]) % 4))
    found = gate(QRELS, BASELINE, candidate, "AP", test=test)
    [verdict] = found.verdicts
    assert (found.state, found.exit_code) == ("failed", 1)
    assert verdict.at_best < 0
    assert verdict.p < 0.05
    assert [cause.code for cause in verdict.causes] == ["quality"]
    assert "quality" in found.to_text()


def test_the_one_sided_interval_and_p_against_scipy():
    one, other = shuffled(1), shuffled(2)
    [verdict] = gate(QRELS, one, other, "AP", max_drop=0, alpha=0.1).verdicts
    scores = library.evaluate(QRELS, {"one": one, "other": other}, "AP")
    expected = stats.ttest_rel(scores["other"], scores["one"], alternative="less")
    assert verdict.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert verdict.at_best == pytest.approx(expected.confidence_interval(0.9).high, rel=1e-9)


@pytest.mark.parametrize("test", ["t", "randomisation"])
@pytest.mark.parametrize("seed", range(6))
def test_each_question_is_the_one_sided_test_of_its_words_against_scipy(seed, test):
    one, other = shuffled(seed), shuffled(100 + seed)
    scores = library.evaluate(QRELS, {"one": one, "other": other}, "AP")
    difference = scores["other"] - scores["one"]
    for question, allowed, side in (
        ("drop", 0.0, "less"),
        ("max-drop", 0.02, "less"),
        ("non-inferior", 0.02, "greater"),
    ):
        found = gate(QRELS, one, other, "AP", max_drop=0.02, alpha=0.2, question=question, test=test, resamples=20_000)
        theirs = stats.ttest_1samp(difference, -allowed, alternative=side)
        [verdict] = found.verdicts
        assert verdict.p == pytest.approx(theirs.pvalue, rel=1e-9 if test == "t" else 0.1)
        assert (verdict.state == "failed") == ((verdict.p <= 0.2) == (side == "less"))
        assert verdict.max_drop == allowed
        assert found.question == json.loads(found.to_json())["question"] == question
        if test == "t":
            limits = theirs.confidence_interval(0.8)
            ends = (limits.high, math.nan) if side == "less" else (math.nan, limits.low)
            assert (verdict.at_best, verdict.at_worst) == pytest.approx(ends, rel=1e-9, nan_ok=True)


def test_a_candidate_that_lost_what_is_allowed_is_judged_by_each_question_in_its_own_way():
    """A sure drop of 0.02–0.03: worse at all; not by more than 0.05; within 0.05; and by more than 0.01."""
    rng = np.random.default_rng(3)
    gain = -0.025 + rng.normal(0, 0.01, 30)

    def state(question: str, allowed: float) -> str:
        return decide([gain], [allowed], settings(question))[0].state

    assert [state("drop", 0.05), state("max-drop", 0.05), state("non-inferior", 0.05)] == ["failed", "passed", "passed"]
    assert [state("max-drop", 0.01), state("non-inferior", 0.01)] == ["failed", "failed"]


def test_a_drop_beyond_what_is_allowed_fails_only_if_the_excess_is_no_chance():
    """Surely below 0, on average by more than is allowed, but not surely by more: once a failure, with the words "more than"."""
    gain = np.linspace(-0.05, 0.026, 60)  # mean −0.012, standard error 0.0029
    [before], [now] = (decide([gain], [0.01], settings(question)) for question in ("drop", "max-drop"))
    assert (before.state, now.state) == ("failed", "passed")
    assert "more than the 0.01 allowed, but on 60 topics that may be chance" in now.reason
    assert "allowed" not in before.reason


def test_p_values_of_a_drop_are_corrected_over_measures_and_those_of_non_inferiority_are_not():
    gains = [np.random.default_rng(seed).normal(-0.03, 0.1, 40) for seed in range(3)]
    for question in ("drop", "max-drop"):
        found = decide(gains, [0.01] * 3, settings(question))
        p = [each.p for each in found]
        np.testing.assert_allclose([each.corrected for each in found], correct(p, "holm"))
        [alone] = decide(gains[:1], [0.01], settings(question, alpha=0.05 / 3))
        assert found[0].bound == alone.bound  # all intervals hold at once
    found = decide(gains, [0.1] * 3, settings("non-inferior"))
    assert [each.corrected for each in found] == [each.p for each in found]
    assert all("Holm" not in each.reason for each in found)


def test_data_say_which_correction_was_made():
    for question, correction in (("drop", "holm"), ("max-drop", "holm"), ("non-inferior", None)):
        found = gate(QRELS, shuffled(1), shuffled(2), "AP RR", question=question)
        assert json.loads(found.to_json())["correction"] == correction
        row = dict(zip(*(line.split(",") for line in found.to_csv().splitlines()[:2]), strict=True))
        assert bool(row["Holm"]) == bool(correction)
        assert ("at worst" in row) == (question == "non-inferior")


def test_the_drop_found_half_of_the_time_is_found_half_of_the_time():
    rng = np.random.default_rng(8)
    n, sd, allowed = 30, 0.1, 0.02
    [look] = decide([rng.normal(0, sd, n)], [allowed], settings("max-drop"))
    distance = np.mean(
        [decide([rng.normal(0, sd, n)], [allowed], settings("max-drop"))[0].half_found for _ in range(300)]
    )
    assert look.half_found > allowed
    trials = 1500
    drawn = rng.normal(-distance, sd, (trials, n))
    rate = np.mean([decide([gain], [allowed], settings("max-drop"))[0].state == "failed" for gain in drawn])
    assert rate == pytest.approx(0.5, abs=2 * 0.5 / trials**0.5 + 0.02)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_says_of_itself_what_it_does(question):
    asked = QUESTIONS[question]
    assert asked.about.startswith("Is it ")
    assert asked.how("t", 0.05, 1).startswith("passes where" if question == "non-inferior" else "fails where")
    assert ("Holm" in asked.how("t", 0.05, 2)) == asked.one_suffices
    help_page = cranfield("gate", "--help").out
    assert "|".join(QUESTIONS) in help_page
    assert "[default: max-drop]" in " ".join(help_page.split())


def test_what_is_allowed_is_not_looked_at_where_any_drop_is_asked_for_and_that_is_said():
    candidate = run(lambda topic: worse(topic, 1 + int(topic[1:]) % 4))
    said = "what max-drop allows is not looked at"
    assert any(said in note for note in gate(QRELS, BASELINE, candidate, "AP", question="drop", max_drop=0.1).notes())
    assert not any(said in note for note in gate(QRELS, BASELINE, candidate, "AP", question="drop").notes())
    files = "qrels.txt", "bm25.run", "dense.run"
    assert said not in cranfield("gate", *files, "--question", "drop").err
    assert said in cranfield("gate", *files, "--question", "drop", "--max-drop", "0.1").err


def test_non_inferiority_must_be_shown_so_few_topics_fail_and_a_run_against_itself_passes():
    assert gate(QRELS, BASELINE, BASELINE, "AP nDCG@10", question="non-inferior").passed
    few = {topic: QRELS[topic] for topic in TOPICS[:3]}
    assert gate(few, BASELINE, BASELINE, "AP", question="non-inferior").state == "undecided"  # 1 of 2³ signs
    one, other = shuffled(1), shuffled(2)
    for base, candidate in ((one, other), (other, one)):
        [verdict] = gate(QRELS, base, candidate, "AP", question="non-inferior").verdicts
        assert verdict.state == "failed"
        assert "that it stays within the 0.01 allowed is not shown" in verdict.reason
        assert bool(verdict.causes) == (verdict.drop > 0.01)  # no cause is looked for where nothing fell


def test_a_loss_of_just_what_is_allowed_is_within_it_whatever_the_rounding():
    gain = np.full(30, 0.1) - 0.3 + 0.1  # −0.1 but for rounding
    assert decide([gain], [0.1], settings("max-drop"))[0].state == "passed"
    assert decide([gain], [0.1], settings("non-inferior"))[0].state == "failed"


def test_a_drop_that_may_be_chance_passes_and_says_so():
    candidate = dict(BASELINE) | {"q00": ranked(worse("q00", 30))}
    found = gate(QRELS, BASELINE, candidate, "AP")
    [verdict] = found.verdicts
    assert verdict.drop > verdict.max_drop
    assert verdict.state == "passed"
    assert "may be chance" in verdict.reason
    assert verdict.half_found > verdict.max_drop
    assert any(f"a true drop of {verdict.half_found:.4f} is found half of the time" in note for note in found.notes())


def test_a_sure_drop_within_what_is_allowed_passes():
    candidate = run(lambda topic: worse(topic, 1 + int(topic[1:]) % 2))
    [verdict] = gate(QRELS, BASELINE, candidate, "AP", max_drop=0.6).verdicts
    assert verdict.at_best < 0
    assert (verdict.state, "within the 0.6 allowed" in verdict.reason) == ("passed", True)


def test_where_lower_is_better_a_rise_is_a_drop():
    candidate = run(lambda topic: worse(topic, 5 + int(topic[1:]) % 4))
    for one, other, state in ((BASELINE, candidate, "failed"), (candidate, BASELINE, "passed")):
        [verdict] = gate(QRELS, one, other, "FirstRel", max_drop=1).verdicts
        assert verdict.state == state
        assert np.sign(verdict.drop) == np.sign(verdict.difference)


def test_one_topic_is_undecided_unless_it_did_not_fall():
    qrels, fallen = {"q00": QRELS["q00"]}, {"q00": ranked(worse("q00", 30))}
    found = gate(qrels, {"q00": BASELINE["q00"]}, fallen, "AP")
    assert (found.state, found.exit_code) == ("undecided", 3)
    assert "one topic" in found.verdicts[0].reason
    assert gate(qrels, fallen, {"q00": BASELINE["q00"]}, "AP").passed


def test_equal_differences_are_decided_by_signs_against_exact_enumeration():
    candidate = run(lambda topic: worse(topic, 1))
    [verdict] = gate(QRELS, BASELINE, candidate, "RR").verdicts
    assert verdict.state == "failed"
    assert verdict.p < 1e-4
    few = {topic: QRELS[topic] for topic in TOPICS[:3]}
    [verdict] = gate(few, BASELINE, candidate, "RR").verdicts
    assert (verdict.state, verdict.p) == ("undecided", 0.125)  # 1 of 2³ signs


def test_the_randomisation_test_of_four_topics_can_never_fail_and_says_so():
    few = {topic: QRELS[topic] for topic in TOPICS[:4]}
    candidate = run(lambda topic: worse(topic, 5 + int(topic[1:])))
    found = gate(few, BASELINE, candidate, "AP", test="randomisation")
    assert found.passed
    assert found.verdicts[0].p == 1 / 16
    assert any("no drop can be told from chance" in note for note in found.notes())
    told = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert told["measures"][0]["at_best"] is None
    assert "inf" not in found.to_text() + found.to_csv() + found.to_markdown()


def test_another_program_s_conventions_hold_in_every_view():
    gone = {f"{topic}-r0" for topic in TOPICS[:5]}
    candidate = run(lambda topic: [d for d in worse(topic, 3 + int(topic[1:]) % 5) if d not in gone])
    found = gate(QRELS, BASELINE, candidate, "map ndcg_cut_10", documents=corpus(gone), conventions="trec_eval-9")
    names = [verdict.measure for verdict in found.verdicts]
    forgiven = gate(
        QRELS,
        BASELINE,
        candidate,
        "map ndcg_cut_10",
        documents=corpus(gone),
        conventions="trec_eval-9",
        forgive_turnover=True,
    )
    assert [verdict.measure for verdict in forgiven.verdicts] == names
    left = [verdict.causes[0].difference for verdict in found.verdicts]
    assert left == pytest.approx([verdict.difference for verdict in forgiven.verdicts])


def test_the_topics_that_fell_most_are_named_with_the_ranks_of_what_was_lost():
    candidate = run(lambda topic: worse(topic, int(topic[1:])))
    [verdict] = gate(QRELS, BASELINE, candidate, "AP", worst=3).verdicts
    assert [each.topic for each in verdict.fallen] == ["q29", "q28", "q27"]
    assert verdict.more == 26
    assert [(lost.document, lost.before, lost.after) for lost in verdict.fallen[0].lost] == [
        (f"q29-r{i}", 1 + i, 30 + i) for i in range(3)
    ]


# why it fell


def corpus(without: set[str]) -> set[str]:
    return {document for documents in QRELS.values() for document in documents} - without


def test_documents_gone_from_the_corpus_are_told_from_quality_loss():
    gone = {f"{topic}-r0" for topic in TOPICS if int(topic[1:]) % 3}
    candidate = run(lambda topic: [document for document in good(topic) if document not in gone])
    found = gate(QRELS, BASELINE, candidate, "nDCG@10", documents=corpus(gone))
    [verdict] = found.verdicts
    assert found.state == "failed"
    assert [(cause.code, cause.passes, cause.certain) for cause in verdict.causes] == [("turnover", True, True)]
    assert verdict.causes[0].difference == pytest.approx(0)
    assert set(found.turnover.gone) == gone
    assert found.turnover.relevant == len(gone) == 20
    assert any(lost.gone for lost in verdict.fallen[0].lost)
    forgiven = gate(QRELS, BASELINE, candidate, "nDCG@10", documents=corpus(gone), forgive_turnover=True)
    assert forgiven.passed
    assert forgiven.verdicts[0].difference == pytest.approx(0)


def test_gone_documents_do_not_excuse_a_worse_ranking():
    gone = {f"{topic}-r0" for topic in TOPICS[:5]}
    candidate = run(lambda topic: [d for d in worse(topic, 3 + int(topic[1:]) % 5) if d not in gone])
    found = gate(QRELS, BASELINE, candidate, "AP", documents=corpus(gone))
    assert [(cause.code, cause.passes) for cause in found.verdicts[0].causes] == [
        ("turnover", False),
        ("quality", False),
    ]
    assert gate(QRELS, BASELINE, candidate, "AP", documents=corpus(gone), forgive_turnover=True).state == "failed"


def test_without_a_list_of_the_corpus_gone_documents_are_only_suspected():
    gone = {f"{topic}-r0" for topic in TOPICS if int(topic[1:]) % 3}
    candidate = run(lambda topic: [document for document in good(topic) if document not in gone])
    found = gate(QRELS, BASELINE, candidate, "nDCG@10", k=5)
    cause, doubt = found.verdicts[0].causes
    assert (cause.code, cause.passes, cause.certain) == ("turnover", True, False)
    assert "perhaps" in cause.text
    assert (doubt.code, doubt.certain) == ("quality", False)
    assert "unless those documents are gone" in doubt.text
    assert set(found.turnover.gone) == gone


def test_the_display_in_a_notebook_holds_verdict_causes_and_topics():
    found = gate(QRELS, BASELINE, run(lambda topic: good(topic)[::-1]), "nDCG@10")
    html = found._repr_html_()
    assert "<caption>Gate failed: " in html
    assert "quality: " in html
    assert html.count('scope="row"') == 1 + len(found.verdicts[0].fallen) + bool(found.verdicts[0].more)
    assert found.verdicts[0].fallen[0].topic in html


def test_short_lists_cannot_tell_whether_documents_are_gone():
    candidate = run(lambda topic: good(topic)[3:8])
    found = gate(QRELS, BASELINE, candidate, "nDCG@10")
    assert found.turnover.shallow
    assert [cause.code for cause in found.verdicts[0].causes] == ["quality"]
    assert any("cannot be told" in note for note in found.notes())


def test_a_fall_of_judged_documents_is_told_from_quality_loss():
    def fresh(topic: str) -> list[str]:
        return [f"{topic}-new{i}" for i in range(4 + int(topic[1:]) % 4)] + good(topic)

    found = gate(QRELS, BASELINE, run(fresh), "nDCG@10")
    [cause] = found.verdicts[0].causes
    assert (cause.code, cause.passes, cause.difference) == ("unjudged", True, 0.0)
    assert found.turnover.judged_before == 1
    assert found.turnover.judged_after == pytest.approx(np.mean([(10 - 4 - i % 4) / 10 for i in range(30)]))


def test_topics_that_the_candidate_does_not_answer_are_a_cause_of_their_own():
    candidate = {topic: documents for topic, documents in BASELINE.items() if int(topic[1:]) % 3}
    found = gate(QRELS, BASELINE, candidate, "nDCG@10")
    [cause] = found.verdicts[0].causes
    assert (cause.code, cause.passes) == ("missing", True)
    assert all(each.missing for each in found.verdicts[0].fallen)
    assert gate(QRELS, BASELINE, candidate, "nDCG@10", missing="skip").passed


def test_so_many_documents_that_vanished_may_be_a_broken_ranking():
    candidate = run(lambda topic: [f"{topic}-x{i}" for i in range(60)] + good(topic)[-1:])
    [sentence] = [
        note for note in gate(QRELS, BASELINE, candidate, "nDCG@10", k=5).notes() if "returned for no" in note
    ]
    assert "so many that the ranking itself may be broken; they may have left the corpus" in sentence


def test_measures_without_a_value_in_both_runs_cannot_be_decided():
    found = gate(QRELS, BASELINE, run(lambda topic: [f"{topic}-x"]), "FirstRel AP")
    assert found.verdict("FirstRel").reason == "no topic has a value in both runs"
    assert found.verdict("map").state == found.verdicts[1].state == "failed"


# what is refused


def test_runs_over_other_topics_are_refused_rather_than_scored_zero():
    other = {f"x{topic}": documents for topic, documents in BASELINE.items()}
    for one, two in ((BASELINE, other), (other, BASELINE)):
        with pytest.raises(DataError, match=r"answers none of the 30 judged topics.*numbered alike"):
            gate(QRELS, one, two, "AP")


def test_runs_that_are_none_or_several_are_refused():
    with pytest.raises(DataError, match="empty"):
        gate(QRELS, BASELINE, {}, "AP")
    with pytest.raises(DataError, match="expected one run as the candidate, found 2"):
        gate(QRELS, BASELINE, {"x": BASELINE, "y": BASELINE}, "AP")


def test_a_list_of_another_corpus_is_refused():
    with pytest.raises(DataError, match="the list of the corpus's documents is empty"):
        gate(QRELS, BASELINE, BASELINE, "AP", documents=[])
    with pytest.raises(DataError, match="no document of the list"):
        gate(QRELS, BASELINE, BASELINE, "AP", documents=["x", "y"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": 0}, "alpha must lie between"),
        ({"alpha": 0.5}, "alpha must lie between"),
        ({"question": "worse"}, "no question 'worse'; there are drop, max-drop, non-inferior"),
        ({"test": "guess"}, "test must be one of t, randomisation"),
        ({"max_drop": -1}, "max-drop must be 0 or more"),
        ({"max_drop": "nan"}, "max-drop: expected a number"),
        ({"max_drop": "AP=x"}, "expected a number"),
        ({"max_drop": {"nDCG@10": 0.1}}, "does not look at it; it looks at AP"),
        ({"worst": -1}, "worst must be 0 or more"),
        ({"forgive_turnover": True}, "found no list"),
        ({"measures": "gmean(AP)"}, "means over topics"),
        ({"measures": "R(average=micro)@5"}, "means over topics"),
        ({"measures": "NumRelRet"}, "means over topics"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, said):
    given = {"measures": "AP", **given}
    with pytest.raises(ConventionError, match=re.escape(said)):
        gate(QRELS, BASELINE, BASELINE, **given)


def test_max_drops_are_read_for_all_and_for_one():
    known = measures("nDCG@10 AP(rel=2) RR")
    assert allowed_drops((), known) == {"nDCG@10": 0.01, "AP(rel=2)": 0.01, "RR": 0.01}
    assert allowed_drops(["AP(rel=2)=0.05", "0.02"], known) == {"nDCG@10": 0.02, "AP(rel=2)": 0.05, "RR": 0.02}
    assert allowed_drops({"ndcg_cut_10": 0.3}, known)["nDCG@10"] == 0.3
    assert allowed_drops(0, known)["RR"] == 0


# how it looks


@pytest.fixture
def failed():
    gone = {f"{topic}-r0" for topic in TOPICS[:5]}
    candidate = run(lambda topic: [d for d in worse(topic, 3 + int(topic[1:]) % 5) if d not in gone])
    return gate(QRELS, BASELINE, candidate, "AP P@1 FirstRel", max_drop={"FirstRel": 100}, documents=corpus(gone))


def test_junit_has_a_test_case_a_measure_and_counts_that_add_up(failed):
    root = ElementTree.fromstring(failed.to_junit())
    [suite] = root.findall("testsuite")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == ["AP", "P@1", "FirstRel"]
    assert root.tag == "testsuites"
    assert [len(case.findall("failure")) for case in cases] == [1, 1, 0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert all(case.get("classname") and case.get("time") for case in cases)
    failure = cases[0].find("failure")
    assert failure is not None
    assert "more than the 0.01 allowed" in (failure.get("message") or "")
    assert "quality:" in (failure.text or "")
    assert {each.get("name") for each in suite.iter("property")} >= {
        "baseline",
        "candidate",
        "question",
        "alpha",
        "test",
    }


def test_junit_calls_what_is_undecided_an_error_and_holds_any_id():
    odd = {"q\x01<&\udcff": {"d\x02": 1.0}}
    found = gate(odd, odd, {"q\x01<&\udcff": {"e": 1.0}}, "AP")
    root = ElementTree.fromstring(found.to_junit().encode())
    [error] = root.iter("error")
    assert "q\\x01<&\\udcff" in (error.text or "")


def test_markdown_is_a_table_and_keeps_odd_names_from_breaking_it(failed):
    lines = failed.to_markdown().splitlines()
    assert lines[0].startswith("### ❌")
    [head] = [i for i, line in enumerate(lines) if line.startswith("| measure")]
    for line in lines[head : head + 5]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 11
    assert sum(line.startswith("<details>") for line in lines) == sum(line == "</details>" for line in lines) == 2
    odd = {"a|b": {"d|`<e": 1.0}, "c": {"d": 1}}
    text = gate(odd, odd, {"a|b": {"x": 1.0}, "c": {"x": 1.0}}, "AP").to_markdown()
    assert "a\\|b" in text
    assert "d\\|\\`\\<e" in text


def test_json_tells_all_and_holds_no_nan(failed):
    told = json.loads(failed.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert (told["state"], told["passed"], told["exit_code"]) == ("failed", False, 1)
    ap = told["measures"][0]
    assert [cause["cause"] for cause in ap["causes"]] == ["turnover", "quality"]
    assert ap["worst_topics"][0]["lost"][0].keys() == {"document", "grade", "before", "after", "gone"}
    assert told["turnover"]["gone"] == 5
    assert told["turnover"]["certain"]


# the command


def test_the_command_passes_on_the_examples():
    answer = cranfield("gate", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP", "--max-drop", "AP=0.05")
    assert answer.code == 0
    assert answer.out.startswith("gate PASSED: dense against bm25")
    assert "0.05" in answer.out


def trec(folder: Path, name: str, given: dict[str, dict[str, float]]) -> Path:
    path = folder / name
    rows = (f"{t} Q0 {d} 0 {s} x\n" for t, documents in given.items() for d, s in documents.items())
    path.write_text("".join(rows))
    return path


@pytest.fixture
def files(tmp_path):
    rows = (f"{t} 0 {d} {g}\n" for t, documents in QRELS.items() for d, g in documents.items())
    (tmp_path / "qrels").write_text("".join(rows))
    trec(tmp_path, "base.run", BASELINE)
    trec(tmp_path, "bad.run", run(lambda topic: worse(topic, 3 + int(topic[1:]) % 5)))
    return tmp_path


def test_the_command_exits_1_and_writes_every_output_at_once(files):
    outputs = ["--junit", "j.xml", "--markdown", "c.md", "--json", "g.json"]
    answer = cranfield("gate", "qrels", "base.run", "bad.run", "-m", "AP", *outputs, folder=files)
    assert answer.code == 1
    assert "gate FAILED: bad against base" in answer.out
    assert ElementTree.parse(files / "j.xml").getroot().get("failures") == "1"
    assert (files / "c.md").read_text().startswith("### ❌")
    assert json.loads((files / "g.json").read_text())["exit_code"] == 1
    assert json.loads(cranfield("gate", "qrels", "base.run", "bad.run", "--format", "json", folder=files).out)


def test_an_output_that_cannot_be_written_leaves_none(files):
    answer = cranfield("gate", "qrels", "base.run", "bad.run", "--json", "g.json", "--junit", "no/j.xml", folder=files)
    assert (answer.code, "no/j.xml" in answer.err) == (3, True)
    assert not (files / "g.json").exists()


def test_two_outputs_into_one_file_are_refused(files):
    for outputs in (["--json", "x", "--junit", "x"], ["--json", "-"], ["-o", "x", "--markdown", "x"]):
        assert cranfield("gate", "qrels", "base.run", "bad.run", *outputs, folder=files).code == 2
    assert not (files / "x").exists()


def test_passages_are_looked_for_as_their_documents():
    cut = {topic: {f"{document}#2": score for document, score in ranked.items()} for topic, ranked in BASELINE.items()}
    found = gate(QRELS, cut, cut, "AP", documents=corpus({"q00-r0"}), collapse="#")
    assert found.turnover.gone == ("q00-r0",)
    assert found.turnover.foreign == 1


def test_the_command_exits_3_where_nothing_can_be_decided(files):
    (files / "one").write_text("q07\n")
    answer = cranfield("gate", "qrels", "base.run", "bad.run", "-m", "AP", "--topics", "one", folder=files)
    assert answer.code == 3
    assert "gate UNDECIDED" in answer.out


def test_two_files_of_one_name_are_told_apart(files):
    for folder, source in (("old", "base.run"), ("new", "bad.run")):
        (files / folder).mkdir()
        (files / folder / "run.txt").write_bytes((files / source).read_bytes())
    answer = cranfield("gate", "qrels", "old/run.txt", "new/run.txt", folder=files)
    assert "new/run against old/run" in answer.out


@pytest.mark.parametrize("shape", ["text", "json", "csv", "tsv", "markdown", "junit"])
def test_every_format_goes_to_a_file_as_to_the_screen(files, shape):
    command = ["gate", "qrels", "base.run", "bad.run", "-m", "AP RR", "--format", shape]
    printed = cranfield(*command, folder=files)
    cranfield(*command, "-o", "out", folder=files)
    if shape != "text":
        assert (files / "out").read_text() == printed.out
        return
    assert (files / "out").read_text().startswith("".join(printed.out.splitlines(keepends=True)[:6]))
    assert printed.err.splitlines()[0] in (files / "out").read_text()


def test_the_screen_names_five_topics_that_fell_unless_asked_for_more(files):
    command = ["gate", "qrels", "base.run", "bad.run", "-m", "RR"]
    rows = [len(cranfield(*command, *more, folder=files).out.splitlines()) for more in ([], ["--worst", "7"])]
    assert rows[1] - rows[0] == 2


def test_a_list_of_the_corpus_comes_from_a_file(files):
    (files / "ids").write_text("".join(f"{document}\n" for document in sorted(corpus({"q00-r0"}))))
    answer = cranfield("gate", "qrels", "base.run", "bad.run", "--corpus-ids", "ids", "--format", "json", folder=files)
    assert json.loads(answer.out)["turnover"]["gone_ids"] == ["q00-r0"]


def test_reranking_is_known_to_help_and_undoing_it_fails(shared):
    """CODEC's published table has bm25+T5 far above bm25 on nDCG@10."""
    folder = shared / "codec-document"
    plain, reranked = folder / "document_bm25-tuned.run", folder / "document_bm25-tuned+t5-maxp.run"
    down = gate(folder / "document_ndcg.qrels", reranked, plain, "nDCG@10 AP", duplicates="first")
    up = gate(folder / "document_ndcg.qrels", plain, reranked, "nDCG@10 AP", duplicates="first")
    assert [verdict.state for verdict in down.verdicts] == ["failed", "failed"]
    assert up.passed
    assert [verdict.difference for verdict in down.verdicts] == [-verdict.difference for verdict in up.verdicts]


def test_p_values_on_the_cranfield_collection_against_scipy(shared):
    folder = shared / "cranfield-runs-rerank"
    one, other = (folder / f"cran_results_rerank_boost{boost}_top100.txt" for boost in ("0.5", "2.0"))
    found = gate(folder / "cranqrel.tcd-corrected", one, other, "AP nDCG@10", max_drop=0, lenient=True)
    scores = library.evaluate(folder / "cranqrel.tcd-corrected", [one, other], "AP nDCG@10", lenient=True)
    for verdict in found.verdicts:
        expected = stats.ttest_rel(*(scores[run, verdict.measure] for run in reversed(scores.runs)), alternative="less")
        assert verdict.p == pytest.approx(expected.pvalue, rel=1e-9)


# the workflows on the page


def workflows() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_workflows_on_the_page_are_yaml_that_calls_the_gate():
    texts = workflows()
    assert len(texts) == 2
    yaml = pytest.importorskip("yaml")
    github, gitlab = (yaml.safe_load(text) for text in texts)
    steps = next(iter(github["jobs"].values()))["steps"]
    assert any("cranfield gate" in step.get("run", "") for step in steps)
    assert github[True]  # YAML 1.1 reads the key `on` as true
    job = gitlab["search-quality"]
    assert any("cranfield gate" in line for line in job["script"])
    assert job["artifacts"]["reports"]["junit"]


@pytest.mark.parametrize("number", [0, 1])
def test_the_command_of_each_workflow_runs(number, files):
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"cranfield gate .*", str(yaml.safe_load(workflows()[number])).replace("', '", "\n"))
    program, *arguments = shlex.split(text.partition("'")[0])
    (files / "eval").mkdir()
    (files / "eval" / "qrels.txt").write_bytes((files / "qrels").read_bytes())
    (files / "eval" / "baseline.run").write_bytes((files / "base.run").read_bytes())
    (files / "candidate.run").write_bytes((files / "bad.run").read_bytes())
    answer = cranfield(*arguments, folder=files)
    assert (program, answer.code) == ("cranfield", 1), answer.err
    assert {path.name for path in files.glob("gate.*")} == {"gate.xml", "gate.md", "gate.json"}


# how often it errs


def error_rate(question: str, n: int, trials: int, shape: str = "normal", measures: int = 3, test: str = "t") -> float:
    """How often the gate takes for shown what is not so, at the border: what is asked about is just not true.

    A drop is false by every measure; that it is within what is allowed is false by the first alone.
    """
    rng, allowed, wrong = np.random.default_rng([n, measures]), 0.02, 0
    border = 0.0 if question == "drop" else -allowed
    centres = [border, *([0.3] if question == "non-inferior" else [border]) * (measures - 1)]
    for _ in range(trials):
        common = rng.normal(0, 1, n)
        gains = [(common + rng.normal(0, 1, n)) * 0.07 for _ in centres]
        if shape == "steps":
            gains = [np.rint(gain / 0.12) * 0.12 for gain in gains]  # nearly half of the topics do not move
        gains = [gain + centre for gain, centre in zip(gains, centres, strict=True)]
        states = {each.state for each in decide(gains, [allowed] * measures, settings(question, test=test))}
        wrong += "failed" in states if question != "non-inferior" else states == {"passed"}
    return wrong / trials


@pytest.mark.parametrize("test", ["t", "randomisation"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_errs_as_often_as_alpha_says(question, test):
    """600 gates of 25 topics by one measure: a standard error of 0.9 points."""
    assert error_rate(question, 25, 600, measures=1, test=test) == pytest.approx(0.05, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 25, 50])
@pytest.mark.parametrize("shape", ["normal", "steps"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_errs_within_two_points_of_alpha_or_less_over_three_measures(question, shape, n):
    """2,000 gates: a standard error of 0.5 points."""
    assert error_rate(question, n, 2000, shape) <= 0.05 + 0.02


@pytest.mark.parametrize("n", [10, 25, 50])
def test_the_error_on_lopsided_gains_is_as_documented(n):
    """20,000 t-tests of exponential gains, whose skewness is 2; a standard error of 0.2 points."""
    gain = np.random.default_rng(n).exponential(1, (20_000, n)) - 1
    for side, factor in (("less", 1), ("greater", -1)):
        error = (stats.ttest_1samp(gain, 0, axis=1, alternative=side).pvalue <= 0.05).mean()
        assert error == pytest.approx(
            {10: (0.133, 0.014), 25: (0.103, 0.021), 50: (0.087, 0.026)}[n][side != "less"], abs=0.01
        )
        assert error_of_one_side(0.05, 2.0 * factor, n) == pytest.approx(error, abs=0.02)


def test_lopsided_gains_are_said_where_they_make_the_test_err_more_often():
    few_gain = np.r_[np.full(22, -0.05), 0.1, 0.1, 0.15] + np.linspace(0, 0.01, 25)
    [failed], [passed] = (decide([gain], [0.0], settings("drop")) for gain in (few_gain, -few_gain))
    assert failed.state == "failed"
    assert failed.caution.startswith("gains are lopsided (skewness +2.")
    assert (passed.state, passed.caution) == ("passed", "")
    [shown] = decide([-few_gain], [0.01], settings("non-inferior"))
    assert (shown.state, shown.caution[:18]) == ("passed", "gains are lopsided")
    even = np.r_[np.full(12, -0.05), np.full(12, -0.15)]
    assert decide([even], [0.0], settings("drop"))[0].caution == ""


def test_the_headline_says_on_how_much_it_rests():
    few = gate({"q1": {"a": 1, "b": 0}}, {"q1": {"a": 1}}, {"q1": {"a": 2}}, "RR")
    assert str(few).splitlines()[0].endswith("(1 topic and 2 judgments)")
    assert "(1 topic and 2 judgments)" in few.to_markdown()
    assert "too few topics to say which run is better: 1 with a relevant document, and it takes 6" in few.notes()
