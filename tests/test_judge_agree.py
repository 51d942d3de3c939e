"""What `judge agree` and `judge aggregate` say: figures of published data, and what nobody may be left in the dark about."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest

from cranfield import evaluate, read_qrels
from cranfield.base.errors import ConventionError, DataError
from cranfield.formats.collection_folder import BUNDLED
from cranfield.formats.pool_files import read_pool
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.policies import decide, policies
from shell import EXAMPLES, cranfield

ALLOTMENT = f"{BUNDLED}/allotment"


def said(*grades: float, kind: str = "judgment", **more: object) -> list[Event]:
    """One label of each person for the same document."""
    return [
        Event(topic="q", document="d", grade=grade, assessor=f"a{number}", kind=kind, **more)
        for number, grade in enumerate(grades)
    ]


def test_the_second_pass_of_the_bundled_collection_against_the_lecture():
    answer = cranfield("judge", "agree", f"{ALLOTMENT}/qrels.txt", f"{ALLOTMENT}/second-pass.txt", "--format", "json")
    found = {each["coefficient"]: each["value"] for each in json.loads(answer.out)["coefficients"]}
    assert round(found["cohen"], 3) == 0.964
    assert round(found["cohen(weights=linear)"], 3) == 0.982
    assert round(found["cohen(weights=quadratic)"], 3) == 0.992


def test_kappa_never_comes_without_base_rates():
    answer = cranfield(
        "judge", "agree", f"{ALLOTMENT}/qrels.txt", f"{ALLOTMENT}/second-pass.txt", "--coefficient", "cohen"
    )
    assert "assessor     labels  grade 0  grade 1  grade 2  grade 3" in answer.out
    assert "note: 1,969 of 5,788 labels are missing" in answer.err


def test_one_person_alone_is_told_why_there_is_nothing():
    answer = cranfield("judge", "agree", "labels.jsonl")
    assert answer.code == 3
    said = "expected two people who labelled the same documents, found one rater only, ann"
    assert answer.err == f"cranfield: labels.jsonl: agreement cannot be computed: {said}\n"


def test_no_document_in_common_is_no_agreement(tmp_path):
    (tmp_path / "a.txt").write_text("q 0 d1 1\n")
    (tmp_path / "b.txt").write_text("q 0 d2 1\n")
    answer = cranfield("judge", "agree", "a.txt", "b.txt", folder=tmp_path)
    assert answer.code == 3
    assert "agreement cannot be computed" in answer.err


def test_one_grade_alone_says_why_a_coefficient_is_not_there(tmp_path):
    (tmp_path / "a.txt").write_text("q 0 d1 1\nq 0 d2 1\n")
    (tmp_path / "b.txt").write_text("q 0 d2 1\nq 0 d1 1\n")
    answer = cranfield("judge", "agree", "a.txt", "b.txt", folder=tmp_path)
    assert answer.code == 0
    assert "one label only, 1" in answer.both


def written(folder, name, labels):
    """A qrels file of (topic, document, grade)."""
    (folder / name).write_text("".join(f"{topic} 0 {document} {grade}\n" for topic, document, grade in labels))


def test_two_people_s_files_of_equal_bytes_are_refused_and_both_are_named(tmp_path):
    for name in ("ann.txt", "bob.txt"):
        written(tmp_path, name, [("q", "d1", 1), ("q", "d2", 0)])
    refused = "bob.txt: the same bytes as ann.txt: a copy does not hold a second person's labels"
    for verb in (("agree",), ("add", "work.db")):
        answer = cranfield("judge", *verb, "ann.txt", "bob.txt", folder=tmp_path)
        assert (answer.code, answer.err) == (3, f"cranfield: {refused}\n")
    assert not (tmp_path / "work.db").exists()


@pytest.mark.parametrize("log", ["work.db", "labels.jsonl"])
def test_a_copy_of_a_file_is_refused_later_too_and_the_same_file_adds_nothing(tmp_path, log):
    for name in ("ann.txt", "bob.txt"):
        written(tmp_path, name, [("q", "d1", 1), ("q", "d2", 0)])
    assert cranfield("judge", "add", log, "ann.txt", folder=tmp_path).code == 0
    answer = cranfield("judge", "add", log, "bob.txt", folder=tmp_path)
    assert answer.code == 3
    assert "bob.txt: the same bytes as ann.txt, added before as labels of 'ann'" in answer.err
    again = cranfield("judge", "add", log, "ann.txt", "./ann.txt", folder=tmp_path)
    assert (again.code, again.err) == (0, f"0 labels added to {log}; 4 were there already\n")


def two_people(folder, topics, documents=12, seed=3):
    """Files of two people who differ on some documents of each topic."""
    coin = np.random.default_rng(seed)
    first = {(f"q{t}", f"d{d}"): int(coin.integers(0, 3)) for t in range(topics) for d in range(documents)}
    second = {key: grade if coin.random() < 0.7 else int(coin.integers(0, 3)) for key, grade in first.items()}
    for name, grades in (("ann.txt", first), ("bob.txt", second)):
        written(folder, name, [(*key, grade) for key, grade in grades.items()])


def test_intervals_leave_out_each_topic_against_coefficients_of_the_rest(tmp_path):
    from scipy.special import stdtrit

    two_people(tmp_path, topics=6)
    typed = ["judge", "agree", "ann.txt", "bob.txt", "--coefficient", "cohen", "--format", "json"]
    answer = json.loads(cranfield(*typed, folder=tmp_path).out)
    [whole] = answer["coefficients"]
    assert (answer["intervals_over"], whole["topics"], whole["resamples"]) == ("topics", 6, 0)
    files = [[line.split() for line in (tmp_path / name).read_text().splitlines()] for name in ("ann.txt", "bob.txt")]
    rest = []
    for left_out in range(6):
        for name, lines in zip(("a.txt", "b.txt"), files, strict=True):
            written(tmp_path, name, [(t, d, grade) for t, _, d, grade in lines if t != f"q{left_out}"])
        typed[2:4] = ["a.txt", "b.txt"]
        rest.append(json.loads(cranfield(*typed, folder=tmp_path).out)["coefficients"][0]["value"])
    logs = np.log1p(-np.array(rest))
    error = np.sqrt(5 / 6 * np.square(logs - logs.mean()).sum())
    by_error = 3 * np.square(logs - logs.mean()).sum() ** 2 / ((logs - logs.mean()) ** 4).sum()
    reach = -stdtrit(min(6, by_error) - 1, 0.025) * error
    assert [whole["low"], whole["high"]] == pytest.approx(
        [1 - (1 - whole["value"]) * np.exp(s * reach) for s in (1, -1)]
    )


def test_the_text_names_the_topics_that_intervals_are_over(tmp_path):
    two_people(tmp_path, topics=6)
    answer = cranfield("judge", "agree", "ann.txt", "bob.txt", folder=tmp_path)
    assert "2 people on 72 documents of 6 topics with two labels or more: Krippendorff's alpha" in answer.out
    assert "independent" not in answer.both
    same = [
        cranfield("judge", "agree", "ann.txt", "bob.txt", *more, folder=tmp_path).out for more in ((), ("--seed", 5))
    ]
    assert same[0] == same[1]  # nothing is drawn


def test_one_topic_only_is_told_that_documents_are_taken_for_independent(tmp_path):
    told = "one topic only: intervals are over its documents, as if these were independent"
    two_people(tmp_path, topics=1, documents=60)
    typed = ["judge", "agree", "ann.txt", "bob.txt"]
    answer = cranfield(*typed, folder=tmp_path)
    assert f"note: {told}\n" in answer.err
    assert json.loads(cranfield(*typed, "--format", "json", folder=tmp_path).out)["intervals_over"] == "documents"
    rows = ["question,worker,answer"] + [f"x{i},w{i % 3 + j},{(i * j) % 2}" for i in range(40) for j in (0, 1)]
    (tmp_path / "crowd.csv").write_text("\n".join(rows) + "\n")
    assert cranfield("judge", "add", "crowd.db", "crowd.csv", folder=tmp_path).code == 0
    assert told in cranfield("judge", "agree", "crowd.db", folder=tmp_path).err


def test_a_look_at_each_topic_is_told_that_its_intervals_are_over_documents(tmp_path):
    two_people(tmp_path, topics=3)
    typed = ["judge", "agree", "ann.txt", "bob.txt"]
    told = "by topic, 3 intervals are of one topic only: over its documents, as if these were independent"
    assert told in cranfield(*typed, "--by", "topic", folder=tmp_path).err
    pair = cranfield(*typed, "--by", "pair", "--format", "json", folder=tmp_path)
    assert "independent" not in pair.err
    assert json.loads(pair.out)["by"]["pair"]["ann and bob"]["topics"] == 3


def test_disagreements_go_into_a_pool_the_widest_apart_first(tmp_path):
    pool = tmp_path / "third.jsonl"
    typed = [f"{ALLOTMENT}/qrels.txt", f"{ALLOTMENT}/second-pass.txt", "--disagreements", pool]
    assert cranfield("judge", "agree", *typed).code == 0
    first, second = (read_qrels(f"{ALLOTMENT}/{name}.txt").to_dict() for name in ("qrels", "second-pass"))
    apart = [abs(first[item.topic][item.document] - second[item.topic][item.document]) for item in read_pool(pool)]
    assert apart == sorted(apart, reverse=True)
    assert min(apart) > 0
    assert len(apart) == 10


def test_the_ranking_of_the_runs_by_each_persons_labels():
    from pathlib import Path

    runs = [word for path in sorted(Path(ALLOTMENT, "runs").glob("*.run")) for word in ("--run", path)]
    answer = cranfield(
        "judge", "agree", f"{ALLOTMENT}/qrels.txt", f"{ALLOTMENT}/second-pass.txt", *runs, "--format", "json"
    )
    rankings = json.loads(answer.out)["rankings"]
    assert {each["assessor"] for each in rankings} == {"qrels", "second-pass"}
    assert all(-1 <= each["tau"] <= 1 for each in rankings)


@pytest.mark.parametrize("view", ["topic", "pair", "assessor", "self"])
def test_a_closer_look(view):
    typed = [f"{ALLOTMENT}/qrels.txt", f"{ALLOTMENT}/second-pass.txt", "--by", view, "--format", "json"]
    found = json.loads(cranfield("judge", "agree", *typed).out)["by"]
    assert set(found) == {view}
    assert bool(found[view]) == (view != "self")


def test_people_agree_with_themselves_by_repeats():
    events = [
        Event(topic="q", document=f"d{i}", grade=i % 2, assessor="ann", repeat=repeat)
        for i in range(6)
        for repeat in (False, True)
    ]
    from cranfield.judging.agreement import agreements
    from cranfield.judging.policies import labels_of

    stand = current_events(events)
    again = [event for event in labels_of(stand, repeats=True) if event.repeat]
    found = agreements("log", labels_of(stand), repeats=again, view="self", resamples=0)
    assert found.parts["ann"].value == 1


# policies


@pytest.mark.parametrize(
    "policy", [name for name in policies() if name not in ("bradley-terry", "win-rate", "gold-weighted")]
)
def test_unanimity_stays_under_every_policy(policy):
    events = [event for grade in (0, 1, 2) for event in said(grade, grade, grade)]
    events = [Event(**{**event.row(), "id": "", "document": f"d{i // 3}"}) for i, event in enumerate(events)]
    assert decide(current_events(events), policy).grades == {"q": {"d0": 0, "d1": 1, "d2": 2}}


@pytest.mark.parametrize("policy", [name for name in policies() if name not in ("bradley-terry", "win-rate")])
def test_an_adjudication_decides_whatever_the_policy(policy):
    events = [*said(0, 0, 2), Event(topic="q", document="d", grade=1, kind="adjudication", assessor="eve")]
    gold = {("q", "d"): 0.0} if policy == "gold-weighted" else None
    assert decide(current_events(events), policy, gold=gold).grades == {"q": {"d": 1}}


@pytest.mark.parametrize(
    ("policy", "grade"),
    [("latest", 2), ("majority", 0), ("mean", 0), ("mean(round=no)", 2 / 3), ("median", 0), ("max", 2), ("min", 0)],
)
def test_one_document_by_several_policies(policy, grade):
    events = [
        Event(topic="q", document="d", grade=grade, assessor=who, time=f"2026-01-0{day}")
        for who, grade, day in (("ann", 0, 1), ("bob", 0, 2), ("cat", 2, 3))
    ]
    decided = decide(current_events(events), policy)
    assert decided.grades["q"]["d"] == pytest.approx(grade)
    assert decided.contradictions == 1
    assert f"1 document has labels that contradict each other; resolved by {decided.policy}" in decided.notes()[0]


def test_a_mean_is_the_nearest_grade_so_that_two_of_three_make_a_document_relevant(tmp_path):
    log = tmp_path / "log.jsonl"
    open_log(log).add(said(1, 1, 0))
    (tmp_path / "a.run").write_text("q Q0 d 1 1.0 a\n")
    for policy, grade, precision in (("mean", 1, 1), ("average", 1, 1), ("mean(round=no)", 2 / 3, 0)):
        answer = cranfield("judge", "aggregate", log, "--policy", policy, "-o", tmp_path / "q.txt", "--format", "json")
        assert json.loads(answer.out)["grades"]["q"]["d"] == pytest.approx(grade)
        assert float((tmp_path / "q.txt").read_text().split()[3]) == pytest.approx(grade)
        assert evaluate(tmp_path / "q.txt", tmp_path / "a.run", "P@1").mean() == precision


def test_half_way_between_two_grades_the_rule_of_ties_decides():
    from cranfield.judging.policies import PolicySettings

    found = {
        ties: decide(current_events(said(1, 0)), "mean", PolicySettings(ties=ties)).grades
        for ties in ("lower", "higher", "open")
    }
    assert found == {"lower": {"q": {"d": 0}}, "higher": {"q": {"d": 1}}, "open": {}}


def test_a_version_that_was_frozen_when_a_mean_kept_fractions_comes_out_as_it_was(tmp_path, monkeypatch):
    from cranfield.judging import versions

    log = open_log(tmp_path / "work.db")
    log.add(said(1, 1, 0))
    usual = versions.decide_by_topic
    monkeypatch.setattr(
        versions, "decide_by_topic", lambda labels, policy, *more: usual(labels, "mean(round=no)", *more)
    )
    versions.freeze(log, "old", "mean")
    monkeypatch.undo()
    versions.freeze(log, "new", "mean")
    assert versions.thaw(log, "old").grades["q"]["d"] == pytest.approx(2 / 3)
    assert versions.thaw(log, "old").policy == "mean(round=no)"
    assert versions.thaw(log, "new").grades["q"]["d"] == 1
    log.close()
    assert cranfield("judge", "verify", tmp_path / "work.db").code == 0


def test_what_nobody_has_decided_is_left_out_and_said():
    decided = decide(current_events(said(0, 2)), "adjudicated")
    assert (decided.grades, decided.undecided) == ({}, [("q", "d")])
    assert "1 documents are left out: people disagree and nobody has decided" in decided.notes()


def test_labels_of_models_count_only_where_they_are_named():
    events = [*said(0), *said(3, source="model", aspect="relevance")]
    events[1] = Event(**{**events[1].row(), "assessor": "gpt", "id": ""})
    from cranfield.judging.policies import PolicySettings

    alone = decide(current_events(events), "max")
    assert alone.grades == {"q": {"d": 0}}
    assert alone.left_out == {"they are a model's (--sources names who counts)": 1}
    assert decide(current_events(events), "max", PolicySettings(sources=("human", "model"))).grades == {"q": {"d": 3}}


def test_an_undefeated_document_has_no_finite_strength():
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    events = [Event(topic="q", document=x, other=y, grade=1, kind="preference", assessor="ann") for x, y in pairs]
    with pytest.raises(DataError, match=r"topic 'q': 3 groups of documents are not linked by wins both ways"):
        decide(current_events(events), "bradley-terry(prior=0)")
    decided = decide(current_events(events), "bradley-terry(prior=1)")
    assert "1 of 1 topics: documents are not all linked by wins both ways" in decided.notes()[0]
    grades = decided.grades["q"]
    assert grades["a"] > grades["b"] > grades["c"] == 0


def test_an_unknown_policy_names_those_there_are():
    with pytest.raises(ConventionError, match=r"no policy 'vote'; there are latest, adjudicated, .*majority"):
        decide(current_events(said(1)), "vote")
    with pytest.raises(DataError, match="uses preferences, and the log has none"):
        decide(current_events(said(1)), "bradley-terry")


CROWDS = [("d_jn-product", {"majority": (0.8966, 0.8966), "dawid-skene": (0.939, 1)})]


@pytest.mark.slow  # test_stats_consensus.py holds the same shares of the same crowd in make test, without a log
@pytest.mark.parametrize(("folder", "policies"), CROWDS)
def test_a_crowd_against_its_truth(shared, tmp_path, folder, policies):
    found = sorted(path for path in shared.rglob("answer.csv") if folder in str(path))
    if not found:
        pytest.skip(f"needs {folder}/answer.csv in ../shared/data")
    home = found[0].parent
    log = tmp_path / "work.db"
    assert cranfield("judge", "add", log, home / "answer.csv").code == 0
    with open(home / "truth.csv", encoding="utf-8") as file:
        truth = {row["question"]: float(row["truth"]) for row in csv.DictReader(file)}
    for policy, (low, high) in policies.items():
        answer = cranfield("judge", "aggregate", log, "--policy", policy, "--format", "json")
        grades = json.loads(answer.out)["grades"]["-"]
        right = sum(grades[question] == grade for question, grade in truth.items()) / len(truth)
        assert low <= round(right, 4) <= high, policy


def test_json_has_posteriors_and_confusion(tmp_path):
    log = open_log(tmp_path / "l.jsonl")
    log.add([*said(0, 1, 1)])
    answer = json.loads(
        cranfield("judge", "aggregate", tmp_path / "l.jsonl", "--policy", "dawid-skene", "--format", "json").out
    )
    assert sum(answer["posteriors"][0]["posterior"]) == pytest.approx(1)
    assert set(answer["confusion"]) == {"a0", "a1", "a2"}


def test_a_log_with_a_frozen_version_is_compared_with_a_file_by_the_labels_that_stand(tmp_path):
    for name in ("labels.jsonl", "bob.csv"):
        shutil.copy(f"{EXAMPLES}/{name}", tmp_path)
    before = cranfield("judge", "agree", "labels.jsonl", "bob.csv", "--format", "json", folder=tmp_path)
    assert cranfield("judge", "freeze", "labels.jsonl", "v1", folder=tmp_path).code == 0
    after = cranfield("judge", "agree", "labels.jsonl", "bob.csv", "--format", "json", folder=tmp_path)
    assert (after.code, after.out) == (0, before.out)
    answer = cranfield("judge", "agree", "labels.jsonl", "bob.csv", "--sources", "model", folder=tmp_path)
    assert answer.code == 3
    assert "labels.jsonl: no current label counts (aspect relevance, from model)" in answer.err


def test_the_ranking_by_a_persons_labels_is_that_of_evaluating_them_alone():
    """People without a common topic and with the same grades are scored together; the others are not."""
    from cranfield.base.run import Run
    from cranfield.judging.agreement import rankings
    from cranfield.stats.correlation import correlation

    draw = np.random.default_rng(5)
    topics = {"ann": "1 2 3", "bob": "4 5", "cat": "2 4 6", "dan": "1 3", "eve": "5 6"}
    scales = {"eve": [0, 1, 2, 3]}  # ERR looks at the highest grade of all
    events = [
        Event(topic=topic, document=f"d{d}", grade=float(draw.choice(scales.get(who, [0, 1, 2]))), assessor=who)
        for who, own in topics.items()
        for topic in own.split()
        for d in range(12)
    ]
    runs = [
        Run({f"{t}": {f"d{d}": float(draw.random()) for d in range(20)} for t in range(1, 7)}, name) for name in "xyz"
    ]
    found = {(each.assessor, each.measure): each for each in rankings(events, runs, ["nDCG@10", "ERR@10"])}
    everybody = {e.topic: {} for e in events}
    for e in events:
        everybody[e.topic][e.document] = e.grade
    reference = evaluate(everybody, runs, "nDCG@10 ERR@10")
    for who in topics:
        mine = [e for e in events if e.assessor == who]
        own = {t: {e.document: e.grade for e in mine if e.topic == t} for t in topics[who].split()}
        alone = evaluate(own, runs, "nDCG@10 ERR@10")
        for measure in alone.measures:
            pair = [[each.mean(measure, run) for run in "xyz"] for each in (reference, alone)]
            assert found[who, measure].tau == float(correlation("tau", *pair))
            assert found[who, measure].documents == len(mine)


def test_each_persons_agreement_against_a_count_of_every_label():
    """In any order of labels, with a person who labelled a document twice and grades that are no whole numbers."""
    import math
    from statistics import fmean

    from cranfield.judging.agreement import drift_of, people_of

    draw = np.random.default_rng(7)
    events = [
        Event(
            topic=f"{draw.integers(3)}",
            document=f"d{draw.integers(12)}",
            grade=float(draw.choice([0, 0.1, 0.7, 2])),
            assessor=str(draw.choice(["ann", "bob", "cat"])),
            time=f"2026-01-01T00:{i * 37 % 60:02d}:00Z",
        )
        for i in range(150)
    ]
    events.append(Event(topic="alone", document="d", grade=1, assessor="dan", time="2026-01-01"))
    people = {each.assessor: each for each in people_of(events)}
    for name in ("ann", "bob", "cat", "dan"):
        mine = sorted((e for e in events if e.assessor == name), key=lambda e: (e.time, e.id))
        others = [[e.grade for e in events if e.subject == own.subject and e.assessor != name] for own in mine]
        shared = [(own, them) for own, them in zip(mine, others, strict=True) if them]
        found = people[name]
        assert (found.labels, found.shared) == (len(mine), len(shared))
        for value, part in ((found.agree, slice(None)), (found.second, slice(len(mine) // 2, None))):
            same = sum(them.count(own.grade) for own, them in zip(mine[part], others[part], strict=True))
            count = sum(map(len, others[part]))
            assert value == same / count if count else math.isnan(value)
        if shared:
            assert found.mean == fmean(own.grade for own, _ in shared)
            assert found.others == fmean([fmean(them) for _, them in shared])
            spans = drift_of(events)[name]
            assert sum(span.pairs for span in spans) == sum(map(len, others))
            assert spans[-1].time == shared[-1][0].time


@pytest.mark.parametrize("kind", ["log.jsonl", "work.db"])
def test_labels_for_agreement_are_those_of_the_current_events(tmp_path, kind):
    from cranfield.judging.current_labels import rated_labels

    log = open_log(tmp_path / kind)
    first = [*said(1, 0, 2), *said(0, 1, kind="judgment", repeat=True, sure=False, seconds=4.5, round="")]
    log.add(
        [*first, *said(1, kind="adjudication"), Event(kind="cannot-judge", topic="q", document="\\d", assessor="z")]
    )
    log.add([Event(kind="withdrawal", refers=first[0].id)])
    labels = log.rated_labels()
    assert sorted(labels, key=lambda each: each.id) == sorted(
        rated_labels(current_events(log.events())), key=lambda each: each.id
    )
    assert len(labels) == 5
    log.close()
