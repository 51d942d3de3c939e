"""What `judge agree` and `judge aggregate` say: figures of published data, and what nobody may be left in the dark about."""

from __future__ import annotations

import csv
import json

import pytest

from cranfield import read_qrels
from cranfield.errors import ConventionError, DataError
from cranfield.formats.folder import BUNDLED
from cranfield.formats.pools import read_pool
from cranfield.judge import Event, open_log, standing
from cranfield.judge.policy import decide, policies
from shell import cranfield

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
    assert answer.err == f"cranfield: labels.jsonl: no agreement to speak of: {said}\n"


def test_no_document_in_common_is_no_agreement(tmp_path):
    (tmp_path / "a.txt").write_text("q 0 d1 1\n")
    (tmp_path / "b.txt").write_text("q 0 d2 1\n")
    answer = cranfield("judge", "agree", "a.txt", "b.txt", folder=tmp_path)
    assert answer.code == 3
    assert "no agreement to speak of" in answer.err


def test_one_grade_alone_says_why_a_coefficient_is_not_there(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("q 0 d1 1\nq 0 d2 1\n")
    answer = cranfield("judge", "agree", "a.txt", "b.txt", folder=tmp_path)
    assert answer.code == 0
    assert "one label only, 1" in answer.both


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
    from cranfield.judge.agreeing import agreements
    from cranfield.judge.policy import labels_of

    stand = standing(events)
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
    assert decide(standing(events), policy).grades == {"q": {"d0": 0, "d1": 1, "d2": 2}}


@pytest.mark.parametrize("policy", [name for name in policies() if name not in ("bradley-terry", "win-rate")])
def test_an_adjudication_decides_whatever_the_policy(policy):
    events = [*said(0, 0, 2), Event(topic="q", document="d", grade=1, kind="adjudication", assessor="eve")]
    gold = {("q", "d"): 0.0} if policy == "gold-weighted" else None
    assert decide(standing(events), policy, gold=gold).grades == {"q": {"d": 1}}


@pytest.mark.parametrize(
    ("policy", "grade"), [("latest", 2), ("majority", 0), ("mean", 2 / 3), ("median", 0), ("max", 2), ("min", 0)]
)
def test_one_document_by_several_policies(policy, grade):
    events = [
        Event(topic="q", document="d", grade=grade, assessor=who, time=f"2026-01-0{day}")
        for who, grade, day in (("ann", 0, 1), ("bob", 0, 2), ("cat", 2, 3))
    ]
    decided = decide(standing(events), policy)
    assert decided.grades["q"]["d"] == pytest.approx(grade)
    assert decided.contradictions == 1
    assert f"1 document has labels that contradict each other; resolved by {decided.policy}" in decided.notes()[0]


def test_what_nobody_has_decided_is_left_out_and_said():
    decided = decide(standing(said(0, 2)), "adjudicated")
    assert (decided.grades, decided.undecided) == ({}, [("q", "d")])
    assert "1 documents are left out: people disagree and nobody has decided" in decided.notes()


def test_labels_of_models_count_only_where_they_are_named():
    events = [*said(0), *said(3, source="model", aspect="relevance")]
    events[1] = Event(**{**events[1].row(), "assessor": "gpt", "id": ""})
    from cranfield.judge.policy import Settings

    alone = decide(standing(events), "max")
    assert alone.grades == {"q": {"d": 0}}
    assert alone.left_out == {"they are a model's (--sources names who counts)": 1}
    assert decide(standing(events), "max", Settings(sources=("human", "model"))).grades == {"q": {"d": 3}}


def test_an_undefeated_document_has_no_finite_strength():
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    events = [Event(topic="q", document=x, other=y, grade=1, kind="preference", assessor="ann") for x, y in pairs]
    with pytest.raises(DataError, match=r"topic 'q': 3 groups of documents are not linked by wins both ways"):
        decide(standing(events), "bradley-terry(prior=0)")
    decided = decide(standing(events), "bradley-terry(prior=1)")
    assert "1 of 1 topics: documents are not all linked by wins both ways" in decided.notes()[0]
    grades = decided.grades["q"]
    assert grades["a"] > grades["b"] > grades["c"] == 0


def test_an_unknown_policy_names_those_there_are():
    with pytest.raises(ConventionError, match=r"no policy 'vote'; there are latest, adjudicated, .*majority"):
        decide(standing(said(1)), "vote")
    with pytest.raises(DataError, match="goes by preferences, and there are none"):
        decide(standing(said(1)), "bradley-terry")


CROWDS = [("d_jn-product", "majority", 0.8966, 0.8966), ("d_jn-product", "dawid-skene", 0.939, 1)]


@pytest.mark.parametrize(("folder", "policy", "low", "high"), CROWDS)
def test_a_crowd_against_its_truth(shared, tmp_path, folder, policy, low, high):
    found = sorted(path for path in shared.rglob("answer.csv") if folder in str(path))
    if not found:
        pytest.skip(f"needs {folder}/answer.csv in ../shared/data")
    home = found[0].parent
    log = tmp_path / "work.db"
    assert cranfield("judge", "add", log, home / "answer.csv").code == 0
    answer = cranfield("judge", "aggregate", log, "--by", policy, "--format", "json")
    grades = json.loads(answer.out)["grades"]["-"]
    with open(home / "truth.csv", encoding="utf-8") as file:
        truth = {row["question"]: float(row["truth"]) for row in csv.DictReader(file)}
    right = sum(grades[question] == grade for question, grade in truth.items()) / len(truth)
    assert low <= round(right, 4) <= high


def test_json_has_posteriors_and_confusion(tmp_path):
    log = open_log(tmp_path / "l.jsonl")
    log.add([*said(0, 1, 1)])
    answer = json.loads(
        cranfield("judge", "aggregate", tmp_path / "l.jsonl", "--by", "dawid-skene", "--format", "json").out
    )
    assert sum(answer["posteriors"][0]["posterior"]) == pytest.approx(1)
    assert set(answer["confusion"]) == {"a0", "a1", "a2"}
