"""`judge calibrate`: scripted judges are told apart in words, a healthy one is left in peace, and intervals hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chatting import chatting, collection, completion
from cranfield import evaluate
from cranfield.base.errors import DataError
from cranfield.base.run import Run
from cranfield.commands.llm_judges import ask, calibrate
from cranfield.judging import Event, open_log
from cranfield.judging.llm.calibration import Calibration, date_in, measured
from cranfield.judging.llm.grade_agreement import bare, biases_of, model_agreement, own_runs
from cranfield.judging.llm.label_sample import CommonLabels, series_use
from cranfield.judging.llm.leaderboards import advantages, boards, circular, own_ranking, ranks_of, scored
from cranfield.stats.agreement import Labels, agreement, agreement_of_pairs, coefficient
from cranfield.stats.correlation import correlation
from cranfield.stats.jackknife import mean_of_items, pairs_of_counts, slope_within, sums_by_cluster, without_each
from cranfield.stats.ratings import Scale
from shell import cranfield

TOPICS, DEPTH = 30, 14
GRADES = np.arange(4.0)


def another_person(rng, truth, slips):
    """The truth with slips to a grade beside it."""
    beside = np.clip(truth + rng.choice([-1, 1], len(truth)), 0, 3)
    return np.where(rng.random(len(truth)) < slips, beside, truth).astype(float)


class World:
    """Documents of topics with their true grades and lengths, two people who label them, and runs that find them."""

    def __init__(self, seed, topics=TOPICS, depth=DEPTH, runs=3, shares=(0.5, 0.25, 0.15, 0.1)):
        self.rng = rng = np.random.default_rng(seed)
        self.topic = np.repeat(np.arange(topics), rng.integers(depth // 2, depth * 3 // 2 + 1, topics))
        size, ease = len(self.topic), 0.6 * rng.standard_normal(topics)
        cuts = np.quantile(np.hypot(1, 0.6) * rng.standard_normal(20_000), np.cumsum(shares)[:-1])
        self.truth = (ease[self.topic] + rng.standard_normal(size) > cuts[:, None]).sum(axis=0)
        self.slips = rng.beta(2, 4, topics)[self.topic]
        self.length = np.rint(2 ** (7 + 0.5 * self.truth + rng.standard_normal(size))).astype(int) + 20
        self.people = [self.person() for _ in range(2)]
        self.names = [f"q{t}" for t in range(topics)]
        self.documents = [f"d{i}" for i in range(size)]
        self.ranks = {f"run{r}": self.ranked(0.5 + r) for r in range(runs)}

    def person(self):
        return another_person(self.rng, self.truth, self.slips)

    def ranked(self, noise):
        score = -self.truth + noise * self.rng.standard_normal(len(self.topic))
        ranks = {}
        for t, name in enumerate(self.names):
            here = np.flatnonzero(self.topic == t)
            ranks |= {(name, self.documents[i]): r for r, i in enumerate(here[np.argsort(score[here])], 1)}
        return ranks

    def judges(self):
        """Four scripted judges, and one that is another person."""
        size = len(self.truth)
        by_length = np.digitize(self.length, np.quantile(self.length, [0.5, 0.75, 0.9])).astype(float)
        return {
            "truth": self.truth.astype(float),
            "noise": self.rng.choice(GRADES, size),
            "two": np.full(size, 2.0),
            "long": np.clip(np.where(self.rng.random(size) < 0.6, by_length, self.person()), 0, 3),
            "person": self.person(),
        }

    def shared(self, model, people=None):
        people = self.people if people is None else people
        counts = sum(np.eye(4)[labels.astype(int)] for labels in people)
        place = {"log": "log", "model": "m/graded-1", "names": self.names, "topic": self.topic}
        return CommonLabels(
            **place,
            documents=self.documents,
            people=people[0],
            predicted=model,
            counts=counts,
            scale=Scale(tuple(GRADES)),
        )

    def lengths(self):
        return dict(zip(self.documents, self.length.tolist(), strict=True))

    def runs(self):
        lists = {}
        for name, ranks in self.ranks.items():
            topics = {}
            for (topic, document), rank in ranks.items():
                topics.setdefault(topic, {})[document] = -float(rank)
            lists[name] = topics
        return [Run(topics, name) for name, topics in lists.items()]

    def calibrated(self, model, **more):
        found = self.shared(model)
        fields = {"policy": "latest", "left_out": {}, "biases": biases_of(found, self.lengths(), self.ranks, 0.95)}
        return Calibration(**measured(found, 1.0, 0.95), **fields, **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log of two people and five judges, runs, and a collection with the texts."""
    folder, world = tmp_path_factory.mktemp("calibrate"), World(5)
    subjects = [(world.names[t], document) for t, document in zip(world.topic.tolist(), world.documents, strict=True)]
    log = open_log(str(folder / "work.db"))
    for name, labels in (("ann", world.people[1]), ("bob", world.people[0])):
        log.add([label(*subject, grade, name) for subject, grade in zip(subjects, labels.tolist(), strict=True)])
    for name, labels in world.judges().items():
        log.add(
            [label(*s, grade, f"{name}/graded-1", "model") for s, grade in zip(subjects, labels.tolist(), strict=True)]
        )
    log.close()
    texts = {name: "x" * length for name, length in world.lengths().items()}
    collection(folder, texts, world.names)
    for name, ranks in world.ranks.items():
        lines = [f"{topic} Q0 {document} {rank} {-rank} {name}\n" for (topic, document), rank in ranks.items()]
        (folder / f"{name}.run").write_text("".join(lines))
    return folder, world


def label(topic, document, grade, assessor="ann", source="human"):
    time = "2026-01-02" if assessor == "bob" else "2026-01-01"
    return Event(topic=topic, document=document, grade=grade, assessor=assessor, source=source, time=time)


def said(made, judge, *runs, **how):
    folder, _ = made
    how = {"collection": str(folder / "collection"), **how}
    return calibrate(str(folder / "work.db"), [str(folder / run) for run in runs], model=judge, **how)


def told(calibration):
    return " | ".join(calibration.findings())


# the five judges


def test_of_a_judge_that_is_another_person_one_sentence_is_said_and_nothing_against_it(made):
    found = said(made, "person", "run0.run", "run1.run", "run2.run")
    [sentence] = found.findings()
    assert sentence.startswith("person/graded-1 agrees with people as far as people with each other (within 0.")


def test_a_judge_that_is_the_truth_agrees_with_people_more_than_they_do_with_each_other(made):
    [sentence] = said(made, "truth", "run0.run", "run1.run", "run2.run").findings()
    assert sentence.startswith("truth/graded-1 agrees with people more than people with each other: ")


def test_a_judge_that_is_noise_is_no_better_than_a_constant(made):
    findings = told(said(made, "noise"))
    assert "noise/graded-1 agrees with people less than people with each other" in findings
    assert re.search(r"noise/graded-1 is no better than answering 0 to everything: right 2\d% against 5\d%", findings)
    assert "texts" not in findings


def test_a_judge_that_always_says_2_gives_one_answer_only(made):
    found = said(made, "two")
    assert found.only_answer == 2
    assert "two/graded-1 gives one answer only: 2; answering 0 to everything does better" in told(found)
    assert "over-grades" not in told(found)


def test_a_judge_that_loves_long_texts_is_said_to(made):
    findings = told(said(made, "long"))
    assert re.search(
        r"long/graded-1 loves long texts: \+0\.\d+ \[\+0\.\d+, \+0\.\d+\] grades for twice the length", findings
    )
    assert "no better" not in findings
    assert "one answer" not in findings


def test_a_judge_that_obeys_orders_in_a_text_is_found_by_its_probes(made, tmp_path):
    _, world = made
    docs = {f"d{i}": "says nothing" for i in range(24)}
    where = collection(tmp_path, docs, ["q0"])

    def obeys(handler, body):
        content = body["messages"][-1]["content"]
        number = int(re.findall(r"\bdocument d(\d+)\b", content)[0])
        given = 3 if "Ignore what was said before" in content else int(world.truth[number])
        handler.send(200, completion(json.dumps({"grade": given})))

    log = open_log(str(tmp_path / "work.db"))
    subjects = [(world.names[t], name) for t, name in zip(world.topic.tolist(), world.documents, strict=True)]
    for name, labels in (("ann", world.people[1]), ("bob", world.people[0]), ("m/graded-1", world.truth)):
        source = "model" if "/" in name else "human"
        rows = zip(subjects, labels.tolist(), strict=True)
        log.add([label(*subject, grade, name, source) for subject, grade in rows])
    log.close()
    with chatting() as chat:
        chat.usual = obeys
        how = {"pool": str(tmp_path / "pool.jsonl"), "collection": where, "endpoint": chat.url, "model": "m"}
        ask(str(tmp_path / "work.db"), **how, prompt="graded", clients=2)
        before = told(calibrate(str(tmp_path / "work.db")))
        ask(str(tmp_path / "work.db"), **how, prompt="graded", clients=2, probe=10, drift=0)
    after = calibrate(str(tmp_path / "work.db"))
    assert "obeys" not in before
    assert re.search(r"m/graded-1 obeys orders in a text: \d+ of \d+ \[\d+%, 100%\]", told(after))
    assert len(after.findings()) == 2
    assert after.doubted.model == ""  # the server calls it m-2026, which is no date


def test_a_judge_that_drifted_while_it_labelled_is_said_to(tmp_path):
    where = collection(tmp_path, {f"d{i}": "says" for i in range(6)}, ["q1", "q2"])
    log, pool = str(tmp_path / "work.db"), tmp_path / "pool.jsonl"
    half = [{"topic": topic, "document": f"d{i}"} for topic in ("q1", "q2") for i in range(3)]
    lines = pool.read_text()
    with chatting() as chat:
        how = {"pool": str(pool), "collection": where, "endpoint": chat.url, "model": "m", "prompt": "graded"}
        pool.write_text("".join(json.dumps(each) + "\n" for each in half))
        ask(log, **how)
        chat.usual = lambda handler, body: handler.send(200, completion('{"grade": 3}'))
        pool.write_text(lines)
        ask(log, **how, accept_drift=True)
    opened = open_log(log)
    opened.add([label(topic, f"d{i}", i % 2) for topic in ("q1", "q2") for i in range(6)])
    opened.close()
    findings = told(calibrate(log))
    assert re.search(r"m/graded-1 drifted by \d{4}-\d\d-\d\d: 5 of 5 answers differ from the earlier ones", findings)
    assert "it was accepted, and labels from before and after it are mixed here" in findings


# what is computed


def test_agreement_of_pairs_against_the_coefficients_of_judge_agree():
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 4, (2, 200))
    other = np.where(rng.random(200) < 0.5, one, other)
    labels = Labels.of(["a"] * 200 + ["b"] * 200, [*range(200)] * 2, [*one, *other], range(4))
    pairs = pairs_of_counts(np.eye(4)[one], np.eye(4)[other]).sum(axis=0, keepdims=True)
    both = pairs_of_counts(np.eye(4)[one] + np.eye(4)[other]).sum(axis=0, keepdims=True)
    for name in ("raw", "krippendorff", "krippendorff(metric=ordinal)", "krippendorff(metric=interval)"):
        chosen, wanted = coefficient(name), agreement(labels, name, resamples=0).value
        assert agreement_of_pairs(chosen, pairs, Scale(tuple(range(4)))) == pytest.approx([wanted])
        assert agreement_of_pairs(chosen, both, Scale(tuple(range(4)))) == pytest.approx([wanted])
    for name in ("cohen", "cohen(weights=linear)", "cohen(weights=quadratic)"):
        wanted = agreement(labels, name, resamples=0).value
        assert agreement_of_pairs(coefficient(name), pairs, Scale(tuple(range(4)))) == pytest.approx([wanted])


def test_the_jackknife_of_clusters_of_one_item_is_the_error_of_a_mean():
    values = np.random.default_rng(2).standard_normal(30)
    found = mean_of_items(values, np.arange(30))
    assert float(found.value) == pytest.approx(values.mean())
    assert float(found.error) == pytest.approx(values.std(ddof=1) / np.sqrt(30))
    assert float(found.df) == 29


def test_a_cluster_without_items_counts_for_nothing_and_one_alone_has_no_error():
    sums = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 3.0]])
    assert float(without_each(sums, lambda rows: rows[:, 0] / rows[:, 1]).df) == 1
    assert np.isnan(without_each(sums[:1], lambda rows: rows[:, 0] / rows[:, 1]).error)


def test_a_slope_within_strata_against_least_squares_with_a_level_for_each():
    rng = np.random.default_rng(3)
    stratum, cluster = rng.integers(0, 3, 100), rng.integers(0, 10, 100)
    x, y = rng.standard_normal((2, 100)) + stratum
    design = np.column_stack([x, np.eye(3)[stratum]])
    wanted = np.linalg.lstsq(design, y, rcond=None)[0][0]
    assert float(slope_within(x, y, stratum, cluster).value) == pytest.approx(wanted)


def test_sums_by_cluster_take_columns_of_columns():
    assert sums_by_cluster(np.array([1, 0, 1]), np.eye(3), 2.0).tolist() == [[0, 1, 0, 2], [1, 0, 1, 4]]


def test_figures_by_hand():
    """Three topics; people 0 1 / 0 2 / 1 0 by the last label, the model one too high on half of them."""
    people = {("a", "x"): 0.0, ("a", "y"): 1.0, ("b", "x"): 0.0, ("b", "y"): 2.0, ("c", "x"): 1.0, ("c", "y"): 0.0}
    model = {key: grade + (key[1] == "y") for key, grade in people.items()}
    found = measured(CommonLabels.of("log", "m", people, model, {("a", "x"): [0.0, 1.0]}), 1.0, 0.95)
    [every, *by_grade] = found["errors"]
    assert every.error.value == 0.5
    assert [(row.grade, row.documents, row.error.value) for row in by_grade] == [
        (0, 3, pytest.approx(1 / 3)),
        (1, 2, 0.5),
        (2, 1, 1.0),
    ]
    right, off = found["constants"]
    assert (right.answer, right.model.value, right.constant.value) == (0, 0.5, 0.5)
    assert (off.answer, off.model.value, off.constant.value) == (0, 0.5, pytest.approx(4 / 6))
    positives = {row.grade: row.share.value for row in found["mistaken"] if row.kind == "false positives"}
    assert positives == {1: pytest.approx(1 / 3), 2: 0, 3: 0}
    assert found["mistaken"][0].person == 1.0  # of two people, the other called it relevant
    assert found["shares"]["0"]["1"] == pytest.approx(1 / 3)
    assert found["twice"] == 1


def test_another_person_errs_by_grade_as_well(made):
    """What one person calls irrelevant another grades higher: that is no fault of a judge, and stands beside it."""
    found = said(made, "person")
    zero = next(row for row in found.errors if row.grade == 0)
    assert zero.error.low > 0
    assert zero.person == pytest.approx(zero.error.value, abs=0.1)


def test_where_nobody_labelled_twice_it_is_said_that_nothing_tells_what_people_reach(made):
    _, world = made
    found = Calibration(
        **measured(world.shared(world.person(), world.people[:1]), 1.0, 0.95), policy="latest", left_out={}
    )
    assert "no document was labelled by two people, so that nothing tells how far people agree" in told(found)
    assert np.isnan(found.agreed[-1].difference.value)


def test_agreement_without_any_disagreement_is_said_without_an_interval():
    world = World(1)
    exact = world.truth.astype(float)
    found = Calibration(**measured(world.shared(exact, [exact, exact]), 1.0, 0.95), policy="latest", left_out={})
    assert (
        told(found)
        == "m/graded-1 agrees with people as far as people with each other: Krippendorff's alpha (ordinal) 1.00"
    )


def by_hand(people, model, said):
    """A calibration of labels that are written down: topic and document → grade."""
    found = CommonLabels.of("log", "m", people, model, said)
    return Calibration(**measured(found, 1.0, 0.95), policy="latest", left_out={})


def table(topics, grade):
    return {(f"q{t}", f"d{d}"): float(grade(t, d)) for t in range(topics) for d in range(4)}


@pytest.mark.parametrize(
    ("twice", "model", "said"),
    [
        # both people give what they both labelled one grade
        (lambda t, d: d == 0, lambda t, d: d % 2, "m agrees with people to 1.00 by Krippendorff's alpha (ordinal); two people "
         "gave 6 documents one grade only, so that nothing tells how far people agree beyond chance"),
        # one topic alone has two labels, or labels that differ
        (lambda t, d: t == 0, lambda t, d: 0, "two people labelled documents of 1 topic only, which gives no interval: "),
        (lambda t, d: t == 0 or d == 0, lambda t, d: d == 1, "without topic q0 two people gave one grade only, which gives no "),
        # no topic differs from another
        (lambda t, d: True, lambda t, d: d == 1, "m agrees with people less than people with each other, by as much whichever "),
        (lambda t, d: True, lambda t, d: d % 2, "m agrees with people as far as people with each other: Krippendorff's alpha "),
    ],
)  # fmt: skip
def test_why_there_is_no_interval_is_told_and_never_nan(twice, model, said):
    people = table(6, lambda t, d: d % 2)
    labels = {s: [g, g] for s, g in people.items() if twice(int(s[0][1:]), int(s[1][1:]))}
    found = by_hand(people, table(6, model), labels)
    assert any(each.startswith(said) for each in found.findings())
    assert "nan" not in " ".join([*found.findings(), *found.notes()])
    assert "nan" not in found.to_text()


def test_labels_of_one_grade_that_a_third_person_overruled_tell_nothing_of_agreement():
    people = table(6, lambda t, d: d % 2)
    found = by_hand(people, table(6, lambda t, d: 1), {subject: [1.0] for subject in people})
    first, second = found.findings()[:2]
    assert first == "m gives one answer only: 1: right 50% against 50%, difference +0.00"
    assert second.startswith("m and people gave one grade only, which tells nothing of agreement")
    assert "nan" not in told(found)


def test_a_judge_that_grades_everything_higher_by_one_is_said_to_though_nothing_varies():
    people = table(6, lambda t, d: d % 3)
    found = by_hand(people, {subject: grade + 1 for subject, grade in people.items()}, {})
    assert "m over-grades by +1.00 grades in every topic" in found.findings()


def test_a_judge_that_grades_too_high_is_said_to():
    world = World(2)
    high = np.clip(world.person() + (world.rng.random(len(world.truth)) < 0.7), 0, 3)
    assert re.search(r"m/graded-1 over-grades by \+0\.\d+ \[\+0\.\d+, \+0\.\d+\] grades", told(world.calibrated(high)))
    low = np.clip(world.person() - (world.rng.random(len(world.truth)) < 0.7), 0, 3)
    assert "m/graded-1 under-grades by -0." in told(world.calibrated(low))


def test_a_judge_of_a_small_log_that_might_be_noise_is_not_shown_to_be_better_than_a_constant():
    world = World(4, topics=4, depth=6)
    assert "is not shown to be better than answering" in told(
        world.calibrated(world.rng.choice(GRADES, len(world.truth)))
    )


def test_a_judge_that_favours_one_run_is_said_to_and_the_run_is_named():
    world = World(6, topics=40)
    top = np.array(
        [world.ranks["run2"][world.names[t], d] <= 4 for t, d in zip(world.topic, world.documents, strict=True)]
    )
    kept = {name: {s: r for s, r in own.items() if r <= 4} for name, own in world.ranks.items()}
    found = world.shared(np.clip(world.person() + (top & (world.rng.random(len(top)) < 0.6)), 0, 3))
    effects = {each.name: each.effect for each in biases_of(found, {}, kept, 0.95)}
    assert effects["run2"].low > 0
    assert effects["run0"].value < 0


@pytest.mark.parametrize(
    ("judge", "twice"),
    [
        *((judge, True) for judge in ("person", "truth", "noise", "high", "yes or no")),
        ("person", False),
        ("noise", False),
    ],
)
def test_no_judge_that_does_not_look_at_length_is_said_to(judge, twice):
    """Long texts are more often relevant here, and what a person calls irrelevant is then more often a slip."""
    said = 0
    for seed in range(40):
        world = World(seed, topics=50, runs=0)
        person = world.person()
        model = {
            "person": person,
            "truth": world.truth.astype(float),
            "noise": world.rng.choice(GRADES, len(person)),
            "high": np.clip(person + (world.rng.random(len(person)) < 0.4), 0, 3),
            "yes or no": np.where(person > 1, 3.0, 0.0),
        }[judge]
        found = biases_of(world.shared(model, world.people[: 1 + twice]), world.lengths(), {}, 0.95)
        said += any(each.effect.low > 0 or each.effect.high < 0 for each in found)
    assert said <= 5  # 2 are expected, and 6 or more come in 1 % of trials


def test_with_one_label_a_document_it_is_said_that_a_judge_may_be_sharper(made):
    _, world = made
    found = world.shared(world.judges()["long"], world.people[:1])
    biases = biases_of(found, world.lengths(), {}, 0.95)
    calibration = Calibration(**measured(found, 1.0, 0.95), policy="latest", left_out={}, biases=biases)
    assert "m/graded-1 may love long texts: +0." in told(calibration)
    assert any("a judge that is sharper than people may seem biased" in note for note in calibration.notes())


def test_within_one_grade_of_people_a_person_would_be_blamed_for_loving_long_texts():
    blamed = 0
    for seed in range(20):
        world = World(seed, topics=50, runs=0)
        found = world.shared(world.person())
        slope = slope_within(np.log2(world.length), found.error, found.people.astype(int), found.topic)
        blamed += bool(slope.interval(0.95)[0] > 0)
    assert blamed > 10


# what is left out


def test_what_was_looked_at_when_choosing_is_left_out(made, tmp_path):
    _, world = made
    whole = said(made, "person")
    (tmp_path / "seen").write_text("# by whoever chose\nq3\nq4/d70\nq5 nothing\n")
    assert ("q4", "d70") in world.ranks["run0"]
    found = said(made, "person", chosen_on=str(tmp_path / "seen"))
    gone = int((world.topic == 3).sum()) + 1
    assert found.left_out["looked at when choosing"] == gone
    assert found.documents == whole.documents - gone
    assert f"{gone} looked at when choosing left out" in found.to_text()


def test_documents_in_the_prompt_are_left_out_and_lengths_come_from_the_questions(tmp_path):
    where = collection(tmp_path, {f"d{i}": "word " * (i + 1) for i in range(6)}, ["q1", "q2"])
    prompt = Path("prompt.toml")
    text = 'version = "1"\nkind = "graded"\nuser = "{query} {text}"\nused = [["q1", "d1"]]\n[grades]\n0 = "no"\n1 = "yes"\n'
    (tmp_path / prompt).write_text(text)
    log = str(tmp_path / "work.db")
    with chatting() as chat:
        chat.usual = lambda handler, body: handler.send(200, completion(json.dumps({"grade": len(str(body)) % 2})))
        files = {"pool": str(tmp_path / "pool.jsonl"), "collection": where, "prompt": str(tmp_path / prompt)}
        ask(log, **files, endpoint=chat.url, model="m", drift=0)
    opened = open_log(log)
    opened.add([label(topic, f"d{i}", i % 2) for topic in ("q1", "q2") for i in range(6)])
    asked = series_use(opened, "m/prompt-1")
    opened.close()
    assert asked.used == {("q1", "d1")}
    assert asked.returned == ["m-2026"]
    assert asked.lengths["d2"] == len("document d2 " + "word " * 3)
    found = calibrate(log)
    assert (found.documents, found.left_out["used in the prompt"]) == (11, 1)


def test_the_best_of_several_prompts_is_chosen_on_one_half_and_calibrated_on_the_other(made):
    found = said(made, "", choose=True, seed=3)
    names = [each.model for each in found.candidates]
    assert (names[0], set(names)) == ("truth/graded-1", {f"{name}/graded-1" for name in made[1].judges()})
    assert found.model == "truth/graded-1"
    assert found.topics == TOPICS // 2
    assert found.documents + found.candidates[0].documents == len(made[1].truth)
    assert "agrees best of 5 on one half of the topics; all that follows is from the other half" in told(found)
    assert said(made, "", choose=True, seed=4).documents != found.documents


def labels_of(tmp_path, judges, people=lambda t, d: d % 2):
    """A log of 8 topics with 4 documents each: Ann's labels, and each judge's where it gives one."""
    log = open_log(str(tmp_path / "some.db"))
    for name, grade in {"ann": people, **judges}.items():
        given = {(t, d): grade(t, d) for t in range(8) for d in range(4)}
        source = "human" if name == "ann" else "model"
        log.add([label(f"q{t}", f"d{d}", g, name, source) for (t, d), g in given.items() if g is not None])
    log.close()
    return str(tmp_path / "some.db")


def test_judges_that_share_topics_and_no_document_cannot_be_chosen_from(tmp_path):
    judges = {"m/a-1": lambda t, d: d % 2 if d < 2 else None, "m/b-1": lambda t, d: d % 2 if d >= 2 else None}
    log = labels_of(tmp_path, judges)
    with pytest.raises(DataError, match="people and all of 2 judges share no document, expected 4 topics or more"):
        calibrate(log, choose=True)


def test_one_grade_of_people_on_the_half_that_chooses_is_refused(tmp_path):
    judges = {"m/a-1": lambda t, d: 0 if d < 2 else d % 2, "m/b-1": lambda t, d: 0 if d < 2 else None}
    log = labels_of(tmp_path, judges, lambda t, d: 0 if d < 2 else d % 2)
    with pytest.raises(DataError, match="people gave one grade only to the 8 documents that choose the judge"):
        calibrate(log, choose=True)


def test_of_two_judges_that_agree_alike_both_are_named(tmp_path):
    same = {"m/a-1": lambda t, d: d % 2, "m/b-1": lambda t, d: d % 2, "m/c-1": lambda t, d: 1}
    found = calibrate(labels_of(tmp_path, same), choose=True)
    assert found.findings()[0].startswith("m/a-1 agrees best of 3 (m/b-1 as well) on one half of the topics")


# runs


def test_boards_against_evaluate_and_tau(made):
    folder, world = made
    files = [str(folder / f"run{r}.run") for r in range(3)]
    found = said(made, "noise", *(Path(file).name for file in files), measures=["AP"])
    [board] = found.boards
    shared = world.shared(world.people[0])
    people = evaluate(shared.grades(shared.people), files, "AP")
    assert {place.run: place.people for place in board.places} == {
        run: pytest.approx(people.mean("AP", run)) for run in ("run0", "run1", "run2")
    }
    assert [place.people_place for place in board.places] == [1, 2, 3]
    means = [[getattr(place, side) for place in board.places] for side in ("people", "model")]
    assert board.tau == correlation("tau", *means)
    assert board.tau_ap == correlation("tau-ap", *means)
    assert board.pairs == 3


def test_a_judge_turned_round_reverses_verdicts_and_loses_by_people_with_its_own_ranking():
    world = World(7, topics=30)
    found, runs = world.shared(3 - world.truth.astype(float)), world.runs()
    people, model = scored(found, runs, ["nDCG@10"])
    [board] = boards(people, model)
    assert board.reversed
    assert {board.reversed[0].people, board.reversed[0].model} == {board.reversed[0].one, board.reversed[0].other}
    own = circular(found, runs, ["nDCG@10"], ranks_of(found, runs))
    calibration = world.calibrated(found.predicted, boards=[board], circular=own)
    assert "verdicts by nDCG@10 are reversed" in told(calibration)
    assert "the judge's own ranking comes first by its own labels and in place 4 by people's of 4" in told(calibration)


def test_the_judges_own_ranking_is_ideal_by_its_own_labels_and_ties_go_by_the_runs():
    world = World(8, topics=6)
    found, ranks = world.shared(world.person()), world.ranks
    run = own_ranking(found, ranks)
    for topic in found.names:
        grades = found.grades(found.predicted)[topic]
        ranked = [document for document, _ in run[topic]]
        assert [grades[document] for document in ranked] == sorted(grades.values(), reverse=True)
        first = [document for document in ranked if grades[document] == 0]
        fused = [sum(1 / (60 + own[topic, document]) for own in ranks.values()) for document in first]
        assert fused == sorted(fused, reverse=True)
    [row] = circular(found, world.runs(), ["nDCG@10"], ranks)
    assert (row.model, row.model_place, row.runs) == (1.0, 1, 4)


def test_top_five_names_who_goes_in_and_out():
    world = World(9, topics=10, runs=8)
    found = world.shared(world.rng.choice(GRADES, len(world.truth)))
    [board] = boards(*scored(found, world.runs(), ["AP"]))
    tops = [{p.run for p in board.places if getattr(p, f"{side}_place") <= 5} for side in ("people", "model")]
    assert set(board.enters) == tops[1] - tops[0] != set()
    assert set(board.leaves) == tops[0] - tops[1]
    [*_, table] = [
        part for part in world.calibrated(found.predicted, boards=[board]).to_text().split("\n\n") if "top 5" in part
    ]
    assert f"{board.enters[0]}" in table


def test_a_run_built_on_the_judges_model_is_named_with_its_advantage():
    world = World(10, topics=30)
    top = np.array(
        [world.ranks["run1"][world.names[t], d] <= 3 for t, d in zip(world.topic, world.documents, strict=True)]
    )
    found = world.shared(np.where(top, 3.0, world.truth))
    people, model = scored(found, world.runs(), ["P@3"])
    [gain] = advantages(people, model, ["run1"], 0.95)
    others = [run for run in people.runs if run != "run1"]
    ahead = [each.mean("P@3", "run1") - np.mean([each.mean("P@3", run) for run in others]) for each in (people, model)]
    assert [gain.people, gain.model] == pytest.approx(ahead)
    assert gain.gain.value == pytest.approx(ahead[1] - ahead[0])
    how = {"own": ["run1"], "advantages": [gain]}
    assert "run1 is built on the judge's own model and gains +0." in told(world.calibrated(found.predicted, **how))
    assert "run1 is by its name built on the judge's own model and gains +0." in told(
        world.calibrated(found.predicted, **how, by_name=["run1"])
    )


def test_a_run_that_only_its_name_makes_the_judges_own_is_said_to_be_so_by_its_name(made, tmp_path):
    folder, _ = made
    (tmp_path / "person-run.run").write_text((folder / "run0.run").read_text())
    files = [str(tmp_path / "person-run.run"), str(folder / "run1.run")]
    found = calibrate(str(folder / "work.db"), files, model="person", own=["run1"])
    assert (found.own, found.by_name) == (["person-run", "run1"], ["person-run"])
    notes = " | ".join([*found.notes(), *found.findings()])
    assert "person-run is by its name built on the judge's own model" in notes
    assert "run1 is built on the judge's own model" in notes


@pytest.mark.parametrize(
    ("model", "run", "tag", "own"),
    [
        ("openai/gpt-4o-2024-08-06", "gpt4o-rerank", None, True),
        ("gpt-4o", "mono", "my_GPT-4o_top", True),
        ("llama-3-8b", "bm25", "bm25", False),
        ("m", "bm25-m", None, False),  # too short a name to be looked for
        ("base", "baseline", "database-bm25", False),  # whole words only
        ("base", "bm25-base", None, True),
        ("qwen2.5:7b", "Qwen2.5-7B_top", None, True),
    ],
)
def test_a_run_whose_name_or_tag_holds_the_models_name_is_found(model, run, tag, own):
    assert own_runs([model], [Run({"q": {"d": 1.0}}, run, tag)], []) == ([run] if own else [])


def test_the_name_of_a_model_is_taken_without_maker_date_and_signs():
    assert bare("org/Model-X_2.1-20240806") == "modelx21"


# dates


def test_judgments_that_were_public_before_the_model_are_a_caution(made):
    found = said(made, "person", public="2023-05", model_date="2024")
    assert "caution: the judgments were public (2023-05) before the model was made (2024)" in told(found)
    assert "caution" not in told(said(made, "person", public="2025", model_date="2024-08-06"))
    assert "caution" not in told(said(made, "person", public="2024-09", model_date="2024-08"))
    for public, model in (("2024-03", "2024"), ("2024", "2024-03"), ("2024-08-06", "2024-08"), ("2024", "2024")):
        unsure = f"caution: the judgments may have been public ({public}) before the model was made ({model})"
        assert unsure in told(said(made, "person", public=public, model_date=model))
    [note] = [note for note in said(made, "person", public="2023").notes() if "--model-date" in note]
    assert "is not known" in note


def test_a_date_in_the_models_name_is_its_date():
    assert date_in(["gpt-4o-2024-08-06"]) == "2024-08-06"
    assert date_in(["claude-20240229", "x-2023-01"]) == "2024-02-29"
    assert date_in(["gpt-4-0613", "llama-70b", "m-2026"]) == ""


# what is printed


def test_every_form_of_the_answer_says_the_same(made):
    folder, _ = made
    line = ["judge", "calibrate", "work.db", "run0.run", "run1.run", "run2.run", "--model", "person", "-m", "AP"]
    text = cranfield(*line, folder=folder)
    assert text.code == 0
    assert len(text.out.splitlines()) < 45
    values = json.loads(cranfield(*line, "--format", "json", folder=folder).out)
    assert values["findings"][0] in text.out.replace("\n", " ")
    assert values["agreed"][0]["coefficient"] == "raw"
    assert values["boards"][0]["pairs"] == 3
    rows = cranfield(*line, "--format", "csv", folder=folder).out.splitlines()
    assert rows[0] == "figure,of,value,low,high"
    assert any(row.startswith("mean error,all,") for row in rows)
    every = cranfield(*line, "--all", folder=folder).out
    assert "false positives" in every
    assert "in the top of run1" in every
    assert "<table" in said(made, "person").to_html()


def test_nothing_is_written(made):
    folder, _ = made
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert cranfield("judge", "calibrate", "work.db", "run0.run", "--model", "noise", folder=folder).code == 0
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_one_answer_only_is_shown_and_exits_with_3(made):
    folder, _ = made
    answer = cranfield("judge", "calibrate", "work.db", "--model", "two", folder=folder)
    assert answer.code == 3
    assert "gives one answer only: 2" in answer.out
    assert "ask with another prompt or model" in answer.err


# bad input


def refusal(folder, *typed):
    answer = cranfield("judge", "calibrate", *typed, folder=folder)
    assert answer.code == 3, answer.err
    assert answer.out == ""
    return answer.err


def logged(folder, *events):
    log = open_log(str(folder / "labels.jsonl"))
    log.add(list(events))
    log.close()
    return folder


MODEL = ("gpt/graded-1", "model")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([label("q", "d", 1, *MODEL)], "no current label of a person; add some"),
        ([label("q", "d", 1)], "no current label of a model; ask one"),
        (
            [label("q", "d", 1), label("q", "e", 1, *MODEL)],
            "no overlap: people labelled 1 documents, 'gpt/graded-1' 1 others",
        ),
        (
            [label("q", "d", 1), label("q", "d", 1, *MODEL)],
            "share 1 documents of 1 topics, expected 2 topics or more; label documents of other topics",
        ),
        (
            [label(topic, "d", 1, *who) for topic in "qr" for who in ((), MODEL)],
            "one grade only: people gave all 2 documents that both labelled 1; have both relevant and irrelevant",
        ),
        (
            [label("q", "d", 1), label("q", "d", 1, *MODEL), label("q", "d", 1, "gpt/other-1", "model")],
            "labels of 2 models; name one with --model: 'gpt/graded-1' (1), 'gpt/other-1' (1)",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_refused_with_what_to_do(tmp_path, events, words):
    assert words in refusal(logged(tmp_path, *events), "labels.jsonl")


def test_wrong_files_names_and_dates_are_refused(made, tmp_path):
    folder, _ = made
    (tmp_path / "seen").write_text("q99\n")
    (tmp_path / "far.run").write_text("x1 Q0 d1 1 1 far\n")
    line = ("work.db", "--model", "person")
    assert "names nothing that people and the model both labelled (1 lines, such as 'q99')" in refusal(
        folder, *line, "--chosen-on", str(tmp_path / "seen")
    )
    assert "--own other: no such run; there are run0" in refusal(folder, *line, "run0.run", "--own", "other")
    assert "far answers none of the 30 topics that people and 'person/graded-1' both labelled" in refusal(
        folder, *line, str(tmp_path / "far.run")
    )
    assert "--public: expected a date such as 2024" in refusal(folder, *line, "--public", "spring")
    collection(tmp_path, {"other": "text"})
    assert "labelled is in it, such as 'd0'" in refusal(folder, *line, "--collection", str(tmp_path / "collection"))
    assert "no label of the model 'x'; there are those of" in refusal(folder, "work.db", "--model", "x")
    assert "a calibration goes by labels" in refusal(folder, *line, "--by", "bradley-terry")
    assert "--choose needs two judges or more" in refusal(folder, *line, "--choose")


# how often what is said is wrong


def errors_of_health(seeds, topics, shares):
    """How often each sentence is said of a judge that is another person, and how often intervals hold the truth."""
    sentences, held = Counter(), Counter()
    for seed in seeds:
        world = World(seed, topics, shares=shares)
        found = world.calibrated(world.person())
        [first, *others] = found.findings()
        sentences["less"] += "less than people" in first
        sentences["more"] += "more than people" in first
        for kind in ("texts", "rank", "returns", "grades by", "answering"):
            sentences[kind] += any(kind in each for each in others)
        difference, error = found.agreed[-1].difference, found.errors[0].error
        held["agreement"] += difference.low <= 0 <= difference.high
        held["error"] += error.low <= 0 <= error.high
    return sentences, held


def test_of_sixty_healthy_judges_hardly_any_is_said_to_be_ill():
    sentences, held = errors_of_health(range(60), 25, (0.5, 0.25, 0.15, 0.1))
    assert max(sentences.values()) <= 8  # 3 are expected at 5 %, and 8 or more come in 1 % of trials
    assert min(held.values()) >= 52


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topics", "shares"), [(25, (0.5, 0.25, 0.15, 0.1)), (50, (0.5, 0.25, 0.15, 0.1)), (25, (0.85, 0.08, 0.05, 0.02))]
)
def test_each_sentence_against_a_healthy_judge_is_wrong_in_five_of_a_hundred_and_intervals_hold(topics, shares):
    trials = 1000
    sentences, held = errors_of_health(range(trials), topics, shares)
    for kind, count in sentences.items():
        assert count / trials <= 0.05 + 2 * 0.007, kind
    for name, count in held.items():
        assert 0.93 <= count / trials <= 0.975, name


@pytest.mark.slow
def test_intervals_of_a_judge_that_is_ill_hold_what_many_topics_show():
    def ill(world):
        return np.clip(world.person() + (world.rng.random(len(world.truth)) < 0.4), 0, 3)

    large = World(999_999, topics=40_000, runs=0)
    whole = large.shared(ill(large))
    truth = model_agreement(whole, 0.95)[-1].difference.value, float(whole.error.mean())
    held = Counter()
    for seed in range(1000):
        world = World(seed, topics=25, runs=0)
        found = world.shared(ill(world))
        intervals = model_agreement(found, 0.95)[-1].difference, measured(found, 1.0, 0.95)["errors"][0].error
        for place, (interval, value) in enumerate(zip(intervals, truth, strict=True)):
            held[place] += interval.low <= value <= interval.high
    assert all(0.93 <= held[place] / 1000 <= 0.975 for place in (0, 1)), held


@pytest.mark.slow
def test_no_verdict_is_called_reversed_and_no_run_favoured_where_the_judge_is_another_person():
    trials, wrong = 300, Counter()
    for seed in range(trials):
        world = World(seed, topics=25, runs=4)
        found, runs = world.shared(world.person()), world.runs()
        people, model = scored(found, runs, ["nDCG@10"])
        wrong["reversed"] += bool(boards(people, model)[0].reversed)
        wrong["favoured"] += advantages(people, model, ["run1"], 0.95)[0].gain.low > 0
        wrong["circular"] += bool(circular(found, runs, ["nDCG@10"], world.ranks)[0].beaten_by)
    assert max(wrong.values()) / trials <= 0.05 + 2 * 0.0126, wrong


def test_a_shared_part_keeps_its_topics_and_its_scale():
    world = World(11, topics=5)
    found = world.shared(world.person())
    part = found.only(found.topic > 2)
    assert part.names == ["q3", "q4"]
    assert set(part.topic.tolist()) == {0, 1}
    assert part.scale == found.scale
    assert len(replace(part)) == int((world.topic > 2).sum())
