"""What every measure promises, as far as its class claims it. Adding a measure adds its tests.

Grades run from 0 to the measure's `max` where it has one, else to 4; scores are distinct, so that ties play no part.
Where a claim holds "for the first of each choice" (see `Measure`), numbers are drawn and choices left alone.
"""

from __future__ import annotations

import doctest
import inspect
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from cranfield import Measure, Run, evaluate, measure, measures
from cranfield.measures import REGISTRY
from cranfield.measures.measure import Choice, Depth, Flag, Gain, Parameter, Real, Whole

CLOSE = 1e-9

promise = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
every_measure = pytest.mark.parametrize("cls", list(REGISTRY.values()), ids=list(REGISTRY))


def claiming(claim: str) -> Any:
    """Only the measures whose class claims this."""
    claimants = {name: cls for name, cls in REGISTRY.items() if getattr(cls, claim)}
    return pytest.mark.parametrize("cls", list(claimants.values()), ids=list(claimants))


# what is drawn


def numbers(parameter: Parameter[Any]) -> st.SearchStrategy[Any]:
    """Values of a parameter that is a number; its default where it is not."""
    if isinstance(parameter, Whole):
        return st.integers(parameter.low, parameter.low + 15)
    if isinstance(parameter, Depth):
        return st.none() | st.integers(1, 15)
    if isinstance(parameter, Real):
        if parameter.name == "rel":
            return st.sampled_from([0.5, 1, 1.5, 2, 3])
        low, high = max(parameter.low, -4), min(parameter.high, 4)
        return (
            st.floats(low, high, exclude_min=parameter.open, exclude_max=parameter.open)
            .map(lambda x: round(x, 3))
            .filter(lambda x: not parameter.open or parameter.low < x < parameter.high)
        )
    return st.just(parameter.default)


def anything(parameter: Parameter[Any]) -> st.SearchStrategy[Any]:
    """Any value of a parameter."""
    if isinstance(parameter, Choice):
        return st.sampled_from(parameter.choices)
    if isinstance(parameter, Flag):
        return st.booleans()
    if isinstance(parameter, Gain):
        table = st.dictionaries(st.sampled_from([0, 1, 2, 2.5, 3, 4]), st.sampled_from([0, 0.5, 1, 3, 10]), min_size=1)
        return st.sampled_from(["linear", "exp2"]) | table
    return numbers(parameter)


@cache
def drawn(cls: type[Measure], values: Any = anything) -> st.SearchStrategy[Measure]:
    """The measure with random parameters."""
    return st.fixed_dictionaries({name: values(p) for name, p in cls.parameters.items()}).map(
        lambda given: cls(**given)
    )


@dataclass
class Topic:
    """One topic: its grades, and its documents as returned, best first. Names of unjudged documents start with u."""

    grades: dict[str, float]
    ranking: list[str]

    def grade(self, document: str) -> float:
        return self.grades.get(document, 0)

    @property
    def run(self) -> dict[str, float]:
        return {document: float(-rank) for rank, document in enumerate(self.ranking)}


def topics(m: Measure, whole: bool = False) -> st.SearchStrategy[Topic]:
    """Random topics whose grades fit the measure's scale."""
    return _topics(float(m.values.get("max", 4)), whole)


@cache
def _topics(highest: float, whole: bool) -> st.SearchStrategy[Topic]:
    scale = [grade for grade in (0, 1, 2, 3, 4) if grade <= highest]
    scale += [] if whole else [grade for grade in (0.25, 1.5, 2.75) if grade <= highest]
    # One byte a document, because Hypothesis draws bytes at once: its grade (or none), and whether it was returned.
    return (
        st.binary(min_size=1, max_size=12)
        .map(lambda text: _topic(text, scale))
        .filter(lambda topic: bool(topic.grades))
    )


def _topic(text: bytes, scale: list[float]) -> Topic:
    kinds = [divmod(byte % (2 * len(scale) + 2), 2) for byte in text]
    names = [f"{'u' if kind == len(scale) else 'd'}{i}" for i, (kind, _) in enumerate(kinds)]
    grades = {name: scale[kind] for name, (kind, _) in zip(names, kinds, strict=True) if kind < len(scale)}
    returned = [name for name, (_, missed) in zip(names, kinds, strict=True) if not missed]
    return Topic(grades, returned or names)


def score(measure: Measure, *given: Topic, **conventions: Any) -> list[float]:
    qrels = {f"t{i}": topic.grades for i, topic in enumerate(given)}
    run = {f"t{i}": topic.run for i, topic in enumerate(given)}
    return np.asarray(evaluate(qrels, run, [measure], **conventions)).reshape(-1).tolist()  # type: ignore[no-any-return]


# what is promised


@every_measure
@promise
@given(data=st.data())
def test_a_score_stays_within_the_bounds_stated(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    [value] = score(m, data.draw(topics(m)))
    assert math.isfinite(value)
    assert cls.low - CLOSE <= value <= cls.high + CLOSE


@claiming("ideal_is_best")
@promise
@given(data=st.data())
def test_no_ranking_of_the_same_documents_beats_the_ideal_one(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls, numbers))
    topic = data.draw(topics(m))
    ideal = Topic(topic.grades, sorted(topic.ranking, key=topic.grade, reverse=True))
    assert score(m, topic)[0] <= score(m, ideal)[0] + CLOSE


@claiming("normalised")
@promise
@given(data=st.data())
def test_all_relevant_documents_and_no_others_best_first_score_1(cls: type[Measure], data: st.DataObject) -> None:
    needed = {name: data.draw(numbers(p)) for name, p in cls.parameters.items() if p.required}
    if "k" in needed:
        needed["k"] = 20
    m = cls(**needed)
    topic = data.draw(topics(m, whole=True))
    relevant = [document for document in topic.grades if topic.grade(document) >= 1]
    assume(relevant)
    ideal = Topic(topic.grades, sorted(relevant, key=topic.grade, reverse=True))
    assert score(m, ideal)[0] == pytest.approx(1, abs=CLOSE)


def better(topic: Topic, m: Measure, one: str, other: str) -> bool:
    """Of a higher grade; than an unjudged document only a relevant one is better (Bpref punishes the judged others)."""
    if other not in topic.grades:
        return topic.grade(one) >= m.values.get("rel", 1)
    return topic.grade(one) > topic.grade(other)


@claiming("monotone")
@promise
@given(data=st.data())
def test_moving_a_better_document_up_never_lowers_the_score(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls, numbers))
    topic = data.draw(topics(m))
    ranking, places = topic.ranking, range(len(topic.ranking))
    swaps = [(i, j) for i in places for j in places if i < j and better(topic, m, ranking[j], ranking[i])]
    assume(swaps)
    i, j = data.draw(st.sampled_from(swaps))
    improved = list(ranking)
    improved[i], improved[j] = improved[j], improved[i]
    assert score(m, Topic(topic.grades, improved))[0] >= score(m, topic)[0] - CLOSE


@claiming("empty_is_zero")
@promise
@given(data=st.data())
def test_a_judged_topic_without_an_answer_scores_0(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    topic = data.draw(topics(m))
    scores = evaluate({"q": topic.grades, "silent": topic.grades}, {"q": topic.run}, [m])
    assert scores["silent"] == 0
    assert evaluate({"silent": topic.grades}, Run({}), [m]).mean() == 0


@every_measure
@promise
@given(data=st.data())
def test_a_topic_scores_the_same_alone_and_in_company(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    company = data.draw(st.lists(topics(m), min_size=2, max_size=4))
    assert score(m, *company) == [score(m, topic)[0] for topic in company]


@every_measure
@promise
@given(data=st.data())
def test_the_order_of_topics_does_not_matter(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    given_ = data.draw(st.lists(topics(m), min_size=2, max_size=4))
    names = [f"t{i}" for i in range(len(given_))]
    qrels = {name: topic.grades for name, topic in zip(names, given_, strict=True)}
    run = {name: topic.run for name, topic in zip(names, given_, strict=True)}
    shuffled = data.draw(st.permutations(names))
    one = evaluate(qrels, run, [m])
    other = evaluate({name: qrels[name] for name in shuffled}, {name: run[name] for name in reversed(shuffled)}, [m])
    assert [one[name] for name in names] == [other[name] for name in names]
    assert one.mean() == other.mean()


@every_measure
@promise
@given(data=st.data())
def test_the_names_of_documents_do_not_matter(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    topic = data.draw(topics(m))
    documents = sorted({*topic.grades, *topic.ranking})
    aliases = dict(zip(documents, data.draw(st.permutations([f"n{i}" for i in range(len(documents))])), strict=True))
    renamed = Topic({aliases[d]: g for d, g in topic.grades.items()}, [aliases[d] for d in topic.ranking])
    assert score(m, renamed) == score(m, topic)


@every_measure
@promise
@given(data=st.data())
def test_topics_that_were_never_judged_do_not_matter(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    topic = data.draw(topics(m))
    more = evaluate({"q": topic.grades}, {"never judged": {"d0": 1.0}, "q": topic.run}, [m])
    assert more.mean() == score(m, topic)[0]
    assert more.topics == ["q"]


@every_measure
@promise
@given(data=st.data())
def test_judged_only_is_the_score_of_the_list_without_its_unjudged_documents(
    cls: type[Measure], data: st.DataObject
) -> None:
    m = data.draw(drawn(cls))
    topic = data.draw(topics(m))
    condensed = Topic(topic.grades, [document for document in topic.ranking if document in topic.grades])
    assume(condensed.ranking)
    with_flag = cls(**{**m.values, "judged_only": True})
    without = cls(**{**m.values, "judged_only": False})
    assert score(with_flag, topic) == score(without, condensed) == score(without, topic, unjudged="drop")


@every_measure
@settings(promise, max_examples=25)
@given(data=st.data())
def test_a_measure_reads_back_from_its_own_name(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    again = measure(str(m))
    assert again == m
    assert hash(again) == hash(m)
    assert str(again) == str(m)
    assert list(measures(f"P@1, {m} Success@99")) == ["P@1", str(m), "Success@99"]


@every_measure
def test_a_class_says_all_that_its_page_needs(cls: type[Measure]) -> None:
    doc = inspect.getdoc(cls) or ""
    definition = doc.partition("\n\n")[0]
    assert definition.endswith("."), "the first paragraph is the definition"
    assert len(definition) > 30
    for attribute in ("family", "formula", "reference"):
        assert getattr(cls, attribute), attribute
    assert cls.low < cls.high
    for parameter in cls.parameters.values():
        assert parameter.meaning
        assert parameter.range
    assert cls.at is None or cls.at in cls.parameters
    assert cls.aggregate in ("mean", "sum")


@every_measure
def test_a_class_has_a_worked_example_that_evaluates_it_and_passes(cls: type[Measure]) -> None:
    [example] = [t for t in doctest.DocTestFinder(recurse=False).find(cls, cls.name) if t.examples]
    assert any("evaluate(" in line.source for line in example.examples)
    assert any(line.want for line in example.examples)
    assert doctest.DocTestRunner().run(example).failed == 0


@every_measure
def test_every_peer_name_is_read_as_this_measure(cls: type[Measure]) -> None:
    for spellings in cls.peers.values():
        for spelling in spellings:
            shape = spelling.partition(" = ")[0].strip()
            text = shape.replace("{", "\0").replace("}", "\0").split("\0")
            typed = "".join(
                part if i % 2 == 0 else "0.5" if part in ("recall", "p", "multiple") else "7"
                for i, part in enumerate(text)
            )
            needs = [name for name, p in cls.parameters.items() if p.required and f"{{{name}}}" not in shape]
            typed += "".join(f"@{'0.5' if name == 'recall' else '7'}" for name in needs)
            assert type(measure(typed)) is cls, typed


def test_every_public_measure_class_is_registered_under_the_name_it_prints() -> None:
    for name, cls in REGISTRY.items():
        assert cls.name == name
        assert cls.__module__.startswith("cranfield.measures.")
