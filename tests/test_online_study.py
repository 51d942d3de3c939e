"""User studies: squares by counting, SUS by its published examples, results by SciPy, forms in a real browser."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from browsers import EVIL, Watched
from cranfield.base.errors import DataError
from cranfield.studies.forms import HEAD, form, questions, read_answers, template, write_forms
from cranfield.studies.plan import (
    ORDERS,
    SUS,
    Questionnaire,
    Study,
    StudyTask,
    cronbach,
    graeco_latin,
    latin,
    read_study,
    schedule,
    williams,
)
from cranfield.studies.results import analyze
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

STUDY, ANSWERS = str(EXAMPLES / "online/study.toml"), str(EXAMPLES / "online/answers.csv")


def study(systems: int = 2, tasks: int = 4, participants: int = 8, order: str = "williams", **more) -> Study:
    names = tuple(f"system{n}" for n in range(systems))
    return Study("s", names, tuple(StudyTask(f"t{n}", f"do {n}") for n in range(tasks)), participants, order, **more)


# squares


@pytest.mark.parametrize("n", range(1, 10))
def test_everything_comes_in_every_place_equally_often(n):
    squares = [latin(n), williams(n), *(graeco_latin(n) or ())]
    for square in squares:
        for places in zip(*square, strict=True):
            assert {*places} == {*range(n)}
            assert len({*Counter(places).values()}) == 1
        assert all(sorted(row) == [*range(n)] for row in square)


@pytest.mark.parametrize("n", range(2, 10))
def test_in_a_williams_square_everything_comes_right_before_everything_else_equally_often(n):
    before = Counter(pair for row in williams(n) for pair in pairwise(row))
    assert len(before) == n * (n - 1)
    assert len({*before.values()}) == 1
    assert len(williams(n)) == (n if n % 2 == 0 else 2 * n)


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 9, 16])
def test_orthogonal_squares_have_every_pair_once(n):
    one, other = graeco_latin(n)
    assert len({pair for rows in zip(one, other, strict=True) for pair in zip(*rows, strict=True)}) == n * n


def test_there_are_no_orthogonal_squares_of_2_and_6():
    assert graeco_latin(2) is graeco_latin(6) is None


@pytest.mark.parametrize(
    ("order", "systems", "size"),
    [
        (order, systems, size)
        for systems, size in [(2, 1), (2, 3), (3, 1), (3, 2), (4, 2), (5, 1), (6, 1)]
        for order in ORDERS
        if order == "williams" or graeco_latin(systems)
    ],
)
def test_a_schedule_is_balanced_with_as_many_participants_as_it_says(order, systems, size):
    made = study(systems, systems * size, 1, order)
    plan = schedule(replace(made, participants=schedule(made).balanced))
    assert plan.uneven() == []
    for name, kinds in (("system", systems), ("task", systems * size)):
        by_place = Counter((getattr(turn, name), turn.position) for turn in plan)
        assert len({*by_place.values()}) == 1
        assert len(by_place) == kinds * systems * size
    met = Counter((turn.task, turn.system) for turn in plan)
    assert len({*met.values()}) == 1
    twice = schedule(replace(made, participants=2 * plan.balanced))
    assert twice.uneven() == []


def test_everybody_does_every_task_once_and_as_many_with_each_system():
    plan = schedule(study(3, 6, 7))
    for person in plan.study.people:
        turns = plan.of(person)
        assert sorted(turn.task for turn in turns) == [f"t{n}" for n in range(6)]
        assert {*Counter(turn.system for turn in turns).values()} == {2}
        assert [turn.position for turn in turns] == [*range(1, 7)]
    assert any("a task with each system" in said for said in plan.uneven())
    assert "it is with 36 participants or a multiple" in plan.to_text()


# questionnaires


@pytest.mark.parametrize(
    ("answers", "score"),
    [([5, 1] * 5, 100), ([4, 2] * 5, 75), ([5] * 10, 50), ([1, 5] * 5, 0), ([3] * 10, 50)],
)
def test_sus_against_its_published_scoring(answers, score):
    assert SUS.score(answers) == score
    by_hand = sum(x - 1 if n % 2 == 0 else 5 - x for n, x in enumerate(answers)) * 2.5
    assert SUS.score(answers) == by_hand


def test_an_own_questionnaire_is_the_mean_of_its_items_turned():
    own = Questionnaire("trust", ("a", "b", "c"), 1, 7, reversed=(2,))
    assert own.score([7, 1, 4]) == 6
    assert replace(own, percent=True).score([7, 1, 4]) == pytest.approx(100 * 5 / 6)
    assert math.isnan(own.score([7, math.nan, 4]))


@pytest.mark.parametrize(
    ("answers", "says"), [([1, 2], "expected 10 answers, found 2"), ([0] * 10, "found 0"), ([2.5] * 10, "2.5")]
)
def test_answers_off_the_scale_are_refused(answers, says):
    with pytest.raises(DataError, match=says):
        SUS.score(answers)


def test_cronbachs_alpha_against_its_bounds():
    rng = np.random.default_rng(1)
    common = rng.normal(size=(2_000, 1))
    assert cronbach(common + np.zeros((2_000, 4))) == pytest.approx(1)
    assert cronbach(rng.normal(size=(2_000, 4))) == pytest.approx(0, abs=0.1)
    # parallel items with reliability 1/2 each: 4 · ½ / (1 + 3 · ½), by Spearman and Brown
    assert cronbach(common + rng.normal(size=(2_000, 4))) == pytest.approx(0.8, abs=0.02)
    assert math.isnan(cronbach([[1.0, 2.0]]))
    assert math.isnan(cronbach([[1.0, 2.0], [1.0, 2.0]]))


# files


def wrong(tmp_path: Path, text: str) -> str:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return str(path)


GOOD = 'systems = ["one", "two"]\nparticipants = 4\n[[task]]\ntext = "x"\n[[task]]\ntext = "y"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("systems = [", "study.toml:1: expected TOML"),
        (f"colour = 1\n{GOOD}", "study.toml:1: expected keys of systems, .*, found 'colour'"),
        (GOOD.replace('["one", "two"]', '"one"'), "expected systems as a list of texts"),
        (GOOD.replace('"two"', '"one"'), "expected each system once, found 'one' twice"),
        (GOOD.replace(', "two"', ""), "expected 2 to 26 systems, found 1"),
        (GOOD.replace('"one"', '"B"'), "system 'B' has the letter of another system as its name"),
        (GOOD.replace("4", "0"), "expected participants as a whole number from 1 to 10000, found 0"),
        (GOOD.replace('[[task]]\ntext = "y"\n', ""), "in a multiple of 2, as many with each system, found 1"),
        (GOOD.replace('"y"', '"y"\nid = "t1"'), "expected each task once, found 't1' twice"),
        (GOOD.replace('"y"', "3"), "study.toml:6: expected task#2.text as text, found 3"),
        (f'order = "any"\n{GOOD}', "expected order as one of williams, graeco-latin, found 'any'"),
        (f'order = "graeco-latin"\n{GOOD}', "no Graeco-Latin square of 2 systems"),
        (f'questionnaires = ["tlx"]\n{GOOD}', "no questionnaire 'tlx'; there are sus"),
        (f'{GOOD}[[questionnaire]]\nname = "sus"\nitems = ["a"]\n', "expected a name of letters, other than"),
        (f'{GOOD}[[questionnaire]]\nname = "q"\nitems = []\nreversed = [1]\n', "expected reversed as numbers of items"),
        (
            f'{GOOD}[[questionnaire]]\nname = "q"\nitems = ["a", "b"]\nreverse = [2]\n',
            r"study.toml:10: .* in \[questionnaire#1\], found 'reverse'; did you mean 'reversed'\?",
        ),
        (f'{GOOD}[[questionnaire]]\nname = "q"\nitems = ["a"]\nhigh = 1\n', "expected low and high as whole numbers"),
        (
            f'{GOOD}[[questionnaire]]\nname = "q"\nitems = ["a"]\nends = ["a"]\n',
            "study.toml:10: expected questionnaire#1.ends as two ends of the scale",
        ),
    ],
)
def test_a_study_that_cannot_be_is_refused_in_words(tmp_path, text, says):
    with pytest.raises(DataError, match=says):
        read_study(wrong(tmp_path, text))


def test_a_study_that_is_not_there_is_refused():
    with pytest.raises(DataError, match="nowhere.toml"):
        read_study("nowhere.toml")


def filled(tmp_path: Path, plan, answer, name: str = "answers.csv") -> str:
    """A file of answers, by a function of a question."""
    path = tmp_path / name
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        writer.writerows([*question, answer(question)] for question in questions(plan))
    return str(path)


def test_the_template_asks_everything_once_and_without_answers_there_is_no_result(tmp_path):
    plan = schedule(study(2, 2, 4, questionnaires=(SUS,)))
    (tmp_path / "empty.csv").write_text(template(plan))
    assert template(plan).count("\n") == 1 + 4 * (2 * 2 + 2 * 10)
    with pytest.raises(DataError, match="no answer is filled in"):
        read_answers(plan, [str(tmp_path / "empty.csv")])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("P99,t0,system0,success,yes", "answers.csv:2: no participant 'P99'; there are P01"),
        ("P01,t0,system9,success,yes", "no system 'system9'"),
        ("P01,t9,system0,success,yes", "no task 't9'"),
        ("P01,t0,system1,success,yes", "P01 was to do t0 with system0, found system1"),
        ("P01,t0,system0,joy,1", "no question 'joy' about a task; there are success, seconds"),
        ("P01,,system0,joy,1", "no question 'joy' about a system; there are sus1"),
        ("P01,t0,system0,success,perhaps", "expected yes or no as success, found 'perhaps'"),
        ("P01,t0,system0,seconds,0", "expected seconds above 0, found 0"),
        ("P01,t0,system0,seconds,nan", "expected a number as seconds, found 'nan'"),
        ("P01,,system0,sus1,6", "expected a whole number from 1 to 5 as sus1, found 6"),
        ("P01,t0,system0", "expected 5 columns"),
        (
            "P01,t0,A,success,yes\nP01,t0,system0,success,no",
            "answers.csv:3: P01 answered success before, as 1; found 0",
        ),
    ],
)
def test_an_answer_that_fits_no_question_is_refused_with_its_line(tmp_path, row, says):
    (tmp_path / "answers.csv").write_text(f"{','.join(HEAD)}\n{row}\n")
    with pytest.raises(DataError, match=says):
        read_answers(schedule(study(questionnaires=(SUS,))), [str(tmp_path / "answers.csv")])


def test_files_that_hold_no_answers_are_refused(tmp_path):
    plan = schedule(study())
    with pytest.raises(DataError, match=r"no answers; expected files that end in \.csv"):
        read_answers(plan, [str(tmp_path)])
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="x.csv:1: expected columns participant, task"):
        read_answers(plan, [str(tmp_path)])
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="expected utf-8"):
        read_answers(plan, [str(tmp_path)])


# results


def example():
    return read_answers(schedule(read_study(STUDY)), [ANSWERS])


def table(answers, outcome: str, succeeded: bool) -> np.ndarray:
    rows = []
    for person in answers.schedule.study.people:
        cells = []
        for system in answers.schedule.study.systems:
            turns = [turn for turn in answers.schedule.of(person) if turn.system == system]
            known = [answers.of(turn, outcome) for turn in turns if not succeeded or answers.of(turn, "success")]
            cells.append(np.mean(np.log(known) if outcome == "seconds" else known) if known else np.nan)
        rows.append(cells)
    return np.array(rows)


def test_times_are_geometric_means_with_students_interval_against_scipy():
    found = {(each.outcome, each.system): each for each in analyze(example()).levels}
    logs = table(example(), "seconds", True)[:, 1]
    own = found["seconds", "dense"]
    low, high = stats.t.interval(0.95, len(logs) - 1, np.mean(logs), stats.sem(logs))
    assert (own.value, own.low, own.high) == pytest.approx(np.exp([np.mean(logs), low, high]))
    assert own.value == pytest.approx(stats.gmean(np.exp(logs)))


def test_success_has_the_adjusted_wald_interval_worked_by_hand():
    own = next(each for each in analyze(example()).levels if (each.outcome, each.system) == ("success", "bm25"))
    assert (own.value, own.number) == (0.75, 16)
    z = 1.959964
    p = (12 + z**2 / 2) / (16 + z**2)
    reach = z * math.sqrt(p * (1 - p) / (16 + z**2))
    assert (own.low, own.high) == pytest.approx((p - reach, p + reach), abs=1e-5)


@pytest.mark.parametrize("every_time", [False, True])
def test_systems_are_compared_within_participants_against_scipy(every_time):
    found = {each.outcome: each for each in analyze(example(), every_time=every_time).pairs}
    times = table(example(), "seconds", not every_time)
    times = times[~np.isnan(times).any(axis=1)]
    said = stats.ttest_rel(times[:, 1], times[:, 0])
    own = found["seconds"]
    assert (own.p, own.participants) == (pytest.approx(said.pvalue), len(times))
    low, high = said.confidence_interval()
    assert (own.low, own.high) == pytest.approx((math.expm1(low), math.expm1(high)))
    share = table(example(), "success", False)
    assert found["success"].p == pytest.approx(stats.ttest_rel(share[:, 1], share[:, 0]).pvalue)


def test_an_answer_that_is_missing_leaves_its_participant_out_of_that_score_only():
    found = analyze(example())
    trust = {each.system: each for each in found.levels if each.outcome == "trust"}
    assert (trust["bm25"].number, trust["dense"].number) == (8, 7)
    assert next(each for each in found.pairs if each.outcome == "trust").participants == 7
    assert "1 question not answered" in found.notes()


def test_learning_is_found_where_it_is(tmp_path):
    plan, rng = schedule(study(2, 4, 16)), np.random.default_rng(2)
    position = {(turn.participant, turn.task): turn.position for turn in plan}

    def answer(question):
        if question.name == "success":
            return "yes"
        return round(100 * 0.8 ** position[question.participant, question.task] * math.exp(rng.normal(0, 0.1)), 2)

    found = analyze(read_answers(plan, [filled(tmp_path, plan, answer)]))
    assert found.learning.low < -0.2 < found.learning.high < -0.15
    assert "people get faster" in found.to_text()
    assert not found.uneven
    assert found.pairs[1].low < 0 < found.pairs[1].high  # balanced orders keep it out of the difference
    seconds = [each.seconds for each in found.places]
    assert seconds == sorted(seconds, reverse=True)


def test_three_systems_are_corrected_by_holm_and_no_spread_is_said(tmp_path):
    plan = schedule(study(3, 3, 18))
    values = {"system0": 10, "system1": 20, "system2": 20}
    answer = lambda question: "yes" if question.name == "success" else values[question.system]  # noqa: E731
    found = analyze(read_answers(plan, [filled(tmp_path, plan, answer)]), test="wilcoxon")
    assert len(found.pairs) == 6
    times = [each for each in found.pairs if each.outcome == "seconds"]
    assert times[0].difference == pytest.approx(1.0)
    assert times[0].corrected == pytest.approx(min(1, 3 * times[0].p))
    assert any("differences are 0" in note for note in found.notes())
    assert found.learning is None


@pytest.mark.parametrize(("test", "level"), [("t", 0.999), ("randomisation", 0.95), ("bootstrap-t", 0.95)])
def test_an_interval_without_finite_ends_is_none(test, level, tmp_path):
    plan = schedule(study(2, 2, 2))
    values = iter([5, 3000, 9, 100])
    answer = lambda question: "yes" if question.name == "success" else next(values)  # noqa: E731
    found = analyze(read_answers(plan, [filled(tmp_path, plan, answer)]), test=test, level=level)
    (seconds,) = (each for each in found.pairs if each.outcome == "seconds")
    assert math.isfinite(seconds.difference)
    assert math.isnan(seconds.low)
    assert math.isnan(seconds.high)
    assert f"intervals of {100 * level:g}%" in found.to_text()
    assert "inf" not in found.to_text()


@pytest.mark.parametrize(
    ("how", "says"), [({"test": "welch"}, "paired"), ({"level": 1.0}, "level"), ({"test": "x"}, "no test")]
)
def test_a_question_that_makes_no_sense_is_refused(how, says):
    with pytest.raises(DataError, match=says):
        analyze(example(), **how)


# forms and commands


def test_forms_hide_systems_and_escape_everything(tmp_path):
    own = Questionnaire("q", (EVIL,), ends=(EVIL, EVIL))
    plan = schedule(
        Study(EVIL, ("secret one", "secret two"), (StudyTask(EVIL, EVIL), StudyTask("b", "c")), 4, "williams", (own,))
    )
    page = form(plan, "P01")
    assert "secret" not in page
    assert "<img" not in page
    assert page.count("<fieldset") == 2 * 2 + 2
    names = write_forms(plan, str(tmp_path / "forms"))
    assert names == ["P01.html", "P02.html", "P03.html", "P04.html", "answers.csv"]
    with pytest.raises(DataError, match="expected a folder that is empty or not there"):
        write_forms(plan, str(tmp_path / "forms"))


def test_a_form_filled_in_in_a_browser_is_read_back(tmp_path, browser):
    plan = schedule(read_study(STUDY))
    write_forms(plan, str(tmp_path / "forms"))
    context = browser.new_context(accept_downloads=True)
    watched = Watched(context)
    page = watched.page
    page.goto((tmp_path / "forms/P03.html").as_uri())
    for box in page.locator("input[type=number]").all():
        box.fill("42")
    for radio in page.locator("fieldset label:first-of-type input[type=radio]").all():
        radio.check()
    page.locator("input[type=radio][value=no]").first.check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my answers").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert page.locator("#said").inner_text() == "Saved as P03.csv"
    assert not watched.said
    assert all(url.startswith(("file:", "blob:")) for url in watched.requests)
    answers = read_answers(plan, [str(saved)])
    turns = plan.of("P03")
    assert [answers.of(turn, "success") for turn in turns] == [0, 1, 1, 1]
    assert {answers.of(turn, "seconds") for turn in turns} == {42}
    assert len(answers.values) == 4 * 2 + 2 * 12
    assert saved.name == "P03.csv"


def test_the_commands_plan_print_and_analyze(tmp_path):
    told = json.loads(cranfield("online", "study", "plan", STUDY, "--participants", "3", "--format", "json").out)
    assert len(told["turns"]) == 12
    assert told["uneven"]
    assert cranfield("online", "study", "plan", STUDY, "--format", "csv").out.startswith("participant,position,part")
    made = cranfield("online", "study", "forms", STUDY, "-o", "forms", folder=tmp_path)
    assert made.code == 0, made.err
    assert "forms/answers.csv (" in made.err
    answer = cranfield("online", "study", "analyze", STUDY, ANSWERS)
    assert answer.out.startswith("seconds: dense differs from bm25 by -25.5% (p = 0.0494)\n")
    assert "corrected over the pairs of an outcome, not over outcomes" in answer.err
    page = cranfield("online", "study", "analyze", STUDY, ANSWERS, "--format", "html").out
    assert page.startswith("<!doctype html>")
    assert cranfield("online", "study", "analyze", STUDY, "nowhere.csv").code == 3
    assert cranfield("online", "study", "analyze", STUDY, ANSWERS, "--participants", "4").code == 3
