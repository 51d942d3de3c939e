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

from cranfield import Extras, Measure, Run, Scores, evaluate, measure, measures
from cranfield.base.parameters import Choice, Depth, Flag, Parameter, Real, Whole
from cranfield.evaluation.measures import REGISTRY
from cranfield.evaluation.measures.definition import Gain, Inner
from hypotheses import examples

CLOSE = 1e-9

PHASES = [Phase.explicit, Phase.generate, Phase.shrink]
promise = settings(examples(3, thorough=30), phases=PHASES)  # on several topics each
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
    if isinstance(parameter, Inner):
        return st.sampled_from([measure("nDCG@5"), measure("RR"), measure("RBP(p=0.5)")])
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


def several(m: Measure, whole: bool = False) -> st.SearchStrategy[list[Topic]]:
    """A few topics to be scored at once: that each scores as it does alone is a promise of its own."""
    return st.lists(topics(m, whole), min_size=3, max_size=3)


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


def needed(measure: Measure, qrels: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What the measure must know beyond judgments and run, made up from the judgments."""
    known: dict[str, Any] = {}
    if "baseline" in measure.needs:
        known["baseline"] = Run({t: {d: -float(i) for i, d in enumerate(grades)} for t, grades in qrels.items()})
    if {"size", "probabilities"} & set(measure.needs):
        sampled = {(t, d): (1 / (1 + g), f"{g:g}") for t, grades in qrels.items() for d, g in grades.items()}
        known["extras"] = Extras(size=1000, probabilities=sampled)
    if "costs" in measure.needs:
        known["extras"] = Extras(costs={})  # every document costs the measure's `cost`
    return known


def scored(measure: Measure, qrels: dict[str, dict[str, float]], run: Any, **conventions: Any) -> Scores:
    if {"labels", "groups", "aspect"} & set(measure.needs):
        given, run = _apart(qrels), _apart(run)
        known = _known_of_documents(given, run)
        return evaluate(
            _labelled(given) if "labels" in measure.needs else given, run, [measure], extras=known, **conventions
        )
    return evaluate(qrels, run, [measure], **needed(measure, qrels), **conventions)


def _apart(given: Any) -> Any:
    """Documents named after their topic too, so that what is known of one follows from its grade there."""
    if not isinstance(given, dict):
        return given
    return {topic: {f"{topic}/{name}": value for name, value in values.items()} for topic, values in given.items()}


def _known_of_documents(qrels: dict[str, dict[str, float]], run: Any) -> Extras:
    """Groups that go with the grade, unjudged documents in one of them; the grade as a second aspect."""
    mixed = {0: {"low": 1.0}, 1: {"low": 0.25, "high": 0.75}, 2: {"high": 1.0}}
    groups = {"elsewhere": {"low": 1.0, "high": 1.0, "nobody": 1.0}}
    for topic in run if isinstance(run, dict) else {}:
        groups |= dict.fromkeys(run[topic], mixed[0])
    for grades in qrels.values():
        groups |= {name: mixed[min(int(grade), 2)] for name, grade in grades.items()}
    return Extras(groups=groups, aspect=qrels)


def _labelled(qrels: dict[str, dict[str, float]]) -> bytes:
    """Subtopic 1 is answered by all documents, 2 by the better ones: higher grades answer more, so that claims hold."""
    lines = [
        f"{topic} {label} {name} {grade}\n"
        for topic, grades in qrels.items()
        for name, grade in grades.items()
        for label in ((1, 2) if grade >= 2 else (1,))
    ]
    return "".join(lines).encode()


def score(measure: Measure, *given: Topic, **conventions: Any) -> list[float]:
    qrels = {f"t{i}": topic.grades for i, topic in enumerate(given)}
    run = {f"t{i}": topic.run for i, topic in enumerate(given)}
    return np.asarray(scored(measure, qrels, run, **conventions)).reshape(-1).tolist()  # type: ignore[no-any-return]


# what is promised


@every_measure
@promise
@given(data=st.data())
def test_a_score_stays_within_the_bounds_stated(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    for value in score(m, *data.draw(several(m))):
        if math.isnan(value):
            assert cls.undefined, "a class says when it has no value"
        else:
            assert math.isfinite(value)
            assert m.low - CLOSE <= value <= m.high + CLOSE


@claiming("ideal_is_best")
@promise
@given(data=st.data())
def test_no_ranking_of_the_same_documents_beats_the_ideal_one(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls, numbers))
    company = data.draw(several(m))
    ideals = [Topic(each.grades, sorted(each.ranking, key=each.grade, reverse=True)) for each in company]
    for value, best in zip(score(m, *company), score(m, *ideals), strict=True):
        assert value <= best + CLOSE


@claiming("normalised")
@promise
@given(data=st.data())
def test_all_relevant_documents_and_no_others_best_first_score_1(cls: type[Measure], data: st.DataObject) -> None:
    needed = {name: data.draw(numbers(p)) for name, p in cls.parameters.items() if p.required}
    if "k" in needed:
        needed["k"] = 20
    m = cls(**needed)
    ideals = []
    for topic in data.draw(several(m, whole=True)):
        relevant = [document for document in topic.grades if topic.grade(document) >= 1]
        if relevant:
            ideals.append(Topic(topic.grades, sorted(relevant, key=topic.grade, reverse=True)))
    assume(ideals)
    assert score(m, *ideals) == pytest.approx([1] * len(ideals), abs=CLOSE)


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
    before, after = [], []
    for topic in data.draw(several(m)):
        ranking, places = topic.ranking, range(len(topic.ranking))
        swaps = [(i, j) for i in places for j in places if i < j and better(topic, m, ranking[j], ranking[i])]
        if swaps:
            i, j = data.draw(st.sampled_from(swaps))
            improved = list(ranking)
            improved[i], improved[j] = improved[j], improved[i]
            before.append(topic)
            after.append(Topic(topic.grades, improved))
    assume(before)
    for old, new in zip(score(m, *before), score(m, *after), strict=True):
        assert new >= old - CLOSE


@claiming("empty_is_zero")
@promise
@given(data=st.data())
def test_a_judged_topic_without_an_answer_scores_0(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    if not m.empty_is_zero:
        m = data.draw(drawn(cls, numbers))
    topic, *others = data.draw(several(m))
    silent = {f"silent{i}": other.grades for i, other in enumerate(others)}
    scores = scored(m, {"q": topic.grades, **silent}, {"q": topic.run})
    assert [scores[name] for name in silent] == [0] * len(silent)
    assert scored(m, silent, Run({})).mean() == 0


@every_measure
@promise
@given(data=st.data())
def test_a_topic_scores_the_same_alone_and_in_company(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    company = data.draw(st.lists(topics(m), min_size=2, max_size=4))
    np.testing.assert_equal(score(m, *company), [score(m, topic)[0] for topic in company])


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
    one = scored(m, qrels, run)
    other = scored(m, {name: qrels[name] for name in shuffled}, {name: run[name] for name in reversed(shuffled)})
    np.testing.assert_equal([one[name] for name in names], [other[name] for name in names])
    np.testing.assert_equal(one.mean(), other.mean())  # a measure may have no summary of topics that are all alike


@every_measure
@promise
@given(data=st.data())
def test_the_names_of_documents_do_not_matter(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    company = data.draw(several(m))
    documents = sorted({name for topic in company for name in (*topic.grades, *topic.ranking)})
    order = np.random.default_rng(data.draw(st.integers(0, 999))).permutation(len(documents))
    aliases = {document: f"n{i}" for document, i in zip(documents, order, strict=True)}
    renamed = [
        Topic({aliases[d]: g for d, g in topic.grades.items()}, [aliases[d] for d in topic.ranking])
        for topic in company
    ]
    np.testing.assert_equal(score(m, *renamed), score(m, *company))


@every_measure
@promise
@given(data=st.data())
def test_topics_that_were_never_judged_do_not_matter(cls: type[Measure], data: st.DataObject) -> None:
    m = data.draw(drawn(cls))
    company = {f"t{i}": topic for i, topic in enumerate(data.draw(several(m)))}
    run = {"never judged": {"d0": 1.0}, **{name: topic.run for name, topic in company.items()}}
    more = scored(m, {name: topic.grades for name, topic in company.items()}, run)
    np.testing.assert_equal([more[name] for name in company], score(m, *company.values()))
    assert more.topics == list(company)


@every_measure
@promise
@given(data=st.data())
def test_judged_only_is_the_score_of_the_list_without_its_unjudged_documents(
    cls: type[Measure], data: st.DataObject
) -> None:
    m = data.draw(drawn(cls))
    company = [topic for topic in data.draw(several(m)) if {*topic.ranking} & {*topic.grades}]
    assume(company)
    condensed = [Topic(topic.grades, [d for d in topic.ranking if d in topic.grades]) for topic in company]
    without = cls(**{**m.values, "judged_only": False})
    values = score(cls(**{**m.values, "judged_only": True}), *company)
    np.testing.assert_equal(values, score(without, *condensed))
    np.testing.assert_equal(values, score(without, *company, unjudged="drop"))


@every_measure
@settings(examples(4, thorough=50), phases=PHASES)
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
    for peer, spellings in cls.peers.items():
        preset = peer.removeprefix("--as ") if peer.startswith("--as ") else ""
        for spelling in spellings:
            shape = spelling.partition(" = ")[0].strip()
            text = shape.replace("{", "\0").replace("}", "\0").split("\0")
            typed = "".join(
                part if i % 2 == 0 else "0.5" if part in ("recall", "p", "multiple") and not preset else "7"
                for i, part in enumerate(text)
            )
            needs = [name for name, p in cls.parameters.items() if p.required and f"{{{name}}}" not in shape]
            typed += "".join(f"@{'0.5' if name == 'recall' else '7'}" for name in needs)
            assert type(measure(typed, preset=preset)) is cls, typed


def test_every_public_measure_class_is_registered_under_the_name_it_prints() -> None:
    for name, cls in REGISTRY.items():
        assert cls.name == name
        assert cls.__module__.startswith("cranfield.evaluation.measures.")
