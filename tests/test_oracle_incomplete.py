"""Measures that say how much was judged, against counting documents one by one, and the names of the whole family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Run, evaluate, measure
from cranfield.evaluation.measures import REGISTRY
from hypotheses import examples
from oracles import proves

documents = st.sampled_from([f"d{i}" for i in range(10)])
qrels_of_three = st.fixed_dictionaries(
    {topic: st.dictionaries(documents, st.integers(-1, 2), min_size=1, max_size=4) for topic in ("q1", "q2", "q3")}
)
runs_of_three = st.fixed_dictionaries({topic: st.lists(documents, min_size=1, unique=True) for topic in ("q1", "q2")})


@proves("Hole", "Unjudged", "Judged")
@examples(30)
@given(qrels_of_three, runs_of_three, st.integers(1, 12))
def test_holes_and_unjudged_documents_against_counting_them_as_beir_does(
    qrels: dict[str, dict[str, int]], ranking: dict[str, list[str]], k: int
) -> None:
    """BEIR gathers the documents of all topics first, whatever their grade, and divides by k and by all topics."""
    run = Run({topic: {d: 100.0 - i for i, d in enumerate(listed)} for topic, listed in ranking.items()})
    annotated = {document for grades in qrels.values() for document in grades}
    scores = evaluate(qrels, run, f"Hole@{k} Unjudged@{k} Judged@{k}")
    for topic, listed in ranking.items():
        top = listed[:k]
        judged = [d for d in top if qrels[topic].get(d, -1) >= 0]
        assert scores[f"Hole@{k}", topic] == pytest.approx(sum(d not in annotated for d in top) / k)
        assert scores[f"Unjudged@{k}", topic] == pytest.approx((len(top) - len(judged)) / k)
        assert scores[f"Judged@{k}", topic] == pytest.approx(len(judged) / len(top))
    holes = sum(d not in annotated for listed in ranking.values() for d in listed[:k])
    assert scores.mean(f"Hole@{k}") == pytest.approx(holes / k / len(qrels))


def test_a_condensed_list_has_no_holes() -> None:
    run = {"q": {"x": 2.0, "a": 1.0}}
    assert evaluate({"q": {"a": 1}}, run, "Hole@2").mean() == 0.5
    assert evaluate({"q": {"a": 1}}, run, "Hole(judged_only=True)@2").mean() == 0
    assert evaluate({"q": {"a": 1}}, run, "Hole@2", unjudged="drop").mean() == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("bpref", "Bpref"),
        ("BPref", "Bpref"),
        ("infAP", "infAP"),
        ("InfAP", "infAP"),
        ("Judged@10", "Judged"),
        ("unj_10", "Unjudged"),
        ("Unjudged@10", "Unjudged"),
        ("Hole@10", "Hole"),
        ("rbp_resid", "RBPresidual"),
    ],
)
def test_every_name_for_incomplete_judgments_is_read(typed: str, meant: str) -> None:
    assert type(measure(typed)) is REGISTRY[meant]


@pytest.mark.parametrize("cls", REGISTRY.values(), ids=list(REGISTRY))
def test_every_measure_has_a_version_for_the_condensed_list(cls: type) -> None:
    assert "judged_only" in cls.parameters  # type: ignore[attr-defined]
