"""What every pooling strategy promises, and what each is known to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Run
from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import Order
from cranfield.formats import as_runs
from cranfield.formats.label_files import Judgment
from cranfield.pooling.pool import Session, pool, session
from cranfield.pooling.simulation import simulate
from cranfield.pooling.strategies.learn import Learn, RelevanceModel, expected_left, regression
from cranfield.pooling.strategy import STRATEGIES, Candidates, rankings
from cranfield.pooling.text_features import DocumentTexts
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {
    "good": {"q": {f"r{i}": 20.0 - i for i in range(10)}},
    "fair": {"q": {f"{'r' if i % 2 else 'n'}{i}": 20.0 - i for i in range(10)}},
    "poor": {"q": {f"n{i}": 20.0 - i for i in range(10)}},
}
WORDS = {"r": "growing tomatoes under glass", "n": "mending a puncture on the road"}
TEXTS = DocumentTexts({f"{kind}{i}": WORDS[kind] for kind in "rn" for i in range(10)}, {"q": "tomatoes", "p": "glass"})
RUN = st.dictionaries(st.sampled_from(list(TEXTS.documents)), st.integers(0, 5).map(float), min_size=1)
ANY_RUNS = st.lists(RUN, min_size=1, max_size=4)


def candidates(runs: dict[str, Any] = RUNS, depth: int = 10) -> Candidates:
    return rankings(as_runs(runs), depth)["q"]


def relevant(document: str) -> bool:
    return document.startswith("r")


def asked(name: str, given: Candidates, seed: int = 0, told: bool = True) -> list[str]:
    """The documents in the order in which a strategy asks for them, labels coming back one by one."""
    picker = STRATEGIES.named(name).start(given, np.random.default_rng(seed), TEXTS)
    order = []
    while (number := picker.pick()) is not None:
        order.append(given.documents[number])
        if told:
            picker.tell(number, relevant(given.documents[number]))
    return order


@pytest.mark.parametrize("name", STRATEGIES)
@examples(15)
@given(runs=ANY_RUNS, depth=st.integers(1, 10), told=st.booleans())
def test_a_strategy_names_every_document_once(name: str, runs: list[dict[str, float]], depth: int, told: bool) -> None:
    given = rankings([Run({"q": run}, f"run{i}") for i, run in enumerate(runs)], depth)["q"]
    order = asked(name, given, told=told)
    assert len(set(order)) == len(order)
    if STRATEGIES[name].samples:
        assert set(order) <= set(given.documents)
    else:
        assert sorted(order) == sorted(given.documents)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_repeats_itself_with_the_same_seed(name: str) -> None:
    assert asked(name, candidates(), seed=3) == asked(name, candidates(), seed=3)


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if not each.adaptive and not each.samples])
def test_a_strategy_that_does_not_adapt_takes_no_notice_of_labels(name: str) -> None:
    assert asked(name, candidates()) == asked(name, candidates(), told=False)


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if each.adaptive])
def test_a_strategy_that_adapts_finds_relevant_documents_earlier_than_chance(name: str) -> None:
    found = np.cumsum([relevant(document) for document in asked(name, candidates())])
    chance = np.arange(1, len(found) + 1) * found[-1] / len(found)
    assert found.mean() > chance.mean()


@pytest.mark.parametrize("name", STRATEGIES)
def test_many_picked_at_once_are_those_picked_one_by_one(name: str) -> None:
    given = candidates()
    one = STRATEGIES.named(name).start(given, np.random.default_rng(0), TEXTS)
    many = STRATEGIES.named(name).start(given, np.random.default_rng(0), TEXTS)
    assert [one.pick() for _ in range(2)] == many.pick_many(2)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_is_known_is_not_asked_for(name: str) -> None:
    given = candidates()
    picker = STRATEGIES.named(name).start(given, np.random.default_rng(0), TEXTS)
    picker.know(given.number["r0"], True)
    named = []
    while (number := picker.pick()) is not None:
        named.append(given.documents[number])
    assert "r0" not in named


@pytest.mark.parametrize("name", STRATEGIES)
def test_chances_are_probabilities(name: str) -> None:
    chances = STRATEGIES.named(name).chances(candidates(), 5)
    assert ((chances >= 0) & (chances <= 1)).all()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_session_goes_on_where_it_stopped(name: str) -> None:
    """Stopped after every label and started again from the labels alone, it asks for the same documents."""
    runs = {**RUNS, "other": {"p": {"r1": 2.0, "n1": 1.0}, "q": {"n9": 1.0}}}
    tops = rankings(as_runs(runs), 10)

    def going(labels: list[Judgment]) -> Session:
        return Session(tops, name, labels=labels, texts=TEXTS)

    straight, whole = going([]), []
    while (item := straight.next("q")) is not None:
        straight.judge("q", item.document, float(relevant(item.document)))
        whole.append(item.document)
    broken: list[Judgment] = []
    while (item := going(broken).next("q")) is not None:
        broken.append(Judgment("q", item.document, float(relevant(item.document))))
    assert [label.document for label in broken] == whole


def test_depth_goes_rank_by_rank() -> None:
    order = asked("depth", candidates(depth=3))
    assert {"r0", "n0"} == set(order[:2])
    assert [document[1:] for document in order] == sorted(document[1:] for document in order)


def test_rrf_by_hand() -> None:
    given = candidates({"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 1.0}}})
    priority = STRATEGIES.named("rrf").priority(given, np.random.default_rng(0))  # type: ignore[attr-defined]
    assert dict(zip(given.documents, priority, strict=True)) == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61})


def test_rbp_by_hand() -> None:
    given = candidates({"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 1.0}}})
    priority = STRATEGIES.named("rbp(p=0.5)").priority(given, np.random.default_rng(0))  # type: ignore[attr-defined]
    assert dict(zip(given.documents, priority, strict=True)) == pytest.approx({"a": 0.5, "b": 0.75})


def test_combmnz_by_hand() -> None:
    given = candidates({"one": {"q": {"a": 4.0, "b": 3.0, "c": 2.0}}, "two": {"q": {"b": 9.0}}})
    priority = STRATEGIES.named("combmnz").priority(given, np.random.default_rng(0))  # type: ignore[attr-defined]
    assert dict(zip(given.documents, priority, strict=True)) == pytest.approx({"a": 1.0, "b": 3.0, "c": 0.0})


def test_move_to_front_stays_with_a_run_until_it_fails() -> None:
    runs = {"good": {"q": {"r1": 3.0, "r2": 2.0, "n3": 1.0}}, "poor": {"q": {"n5": 3.0, "r6": 2.0, "r7": 1.0}}}
    order = asked("move-to-front", candidates(runs))
    good_first = ["r1", "r2", "n3", "n5", "r6", "r7"]  # its two finds and its failure, then the other run
    poor_first = ["n5", "r1", "r2", "n3", "r6", "r7"]  # a failure at once, so the other is followed to its own
    assert order in (good_first, poor_first)


def test_maxmean_follows_the_run_with_the_best_record() -> None:
    """Once every run has been tried, nothing but the best run is followed to its end."""
    given = candidates()
    picker: Any = STRATEGIES.named("maxmean").start(given, np.random.default_rng(0))
    picker.good[:], picker.bad[:] = [3, 2, 1], [1, 2, 3]
    named = []
    for _ in range(5):
        number = picker.pick()
        named.append(given.documents[number])
        picker.tell(number, relevant(given.documents[number]))
    assert named == ["r0", "r1", "r2", "r3", "r4"]


def test_hedge_moves_weight_to_the_run_that_was_right() -> None:
    given = candidates()
    picker: Any = STRATEGIES.named("hedge").start(given, np.random.default_rng(0))
    picker.know(given.number["r0"], True)
    picker.know(given.number["n0"], False)
    good, fair, poor = picker.log_weight
    assert good > 0 > poor
    assert good > fair


def test_effect_asks_first_for_what_tells_two_runs_apart() -> None:
    """Both runs agree on the first document: its label moves both alike, so another is asked for first."""
    runs = {"one": {"q": {"r0": 3.0, "r1": 2.0}}, "two": {"q": {"r0": 3.0, "r2": 2.0}}}
    assert asked("effect", candidates(runs))[-1] == "r0"


def test_effect_counts_what_a_label_adds_to_average_precision_against_enumeration() -> None:
    """With all other labels known, the document that is asked for next changes the difference of AP · R the most."""
    runs = {
        "one": {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}},
        "two": {"q": {"c": 4.0, "d": 3.0, "b": 2.0, "a": 1.0}},
    }
    given = candidates(runs)
    picker: Any = STRATEGIES.named("effect").start(given, np.random.default_rng(0))
    for document in ("a", "b"):
        picker.know(given.number[document], document == "a")
    picker.belief[~picker.labelled] = 0.0

    def precisions(ranked: list[int], labels: set[str]) -> float:
        hits = np.array([given.documents[i] in labels for i in ranked])
        return float((hits * np.cumsum(hits) / np.arange(1, len(hits) + 1)).sum())

    for document in ("c", "d"):
        for ranked in given.lists:
            added = picker._added(ranked)[given.number[document]]
            assert added == pytest.approx(precisions(ranked, {"a", document}) - precisions(ranked, {"a"}))


def test_cal_brings_up_what_resembles_the_topic_and_what_was_found() -> None:
    assert all(map(relevant, asked("cal", candidates())[:10]))


def test_cal_names_a_document_that_has_no_text() -> None:
    given = candidates({"one": {"q": {"missing": 1.0}}})
    with pytest.raises(DataError, match="'missing' is not among"):
        STRATEGIES.named("cal").start(given, np.random.default_rng(0), TEXTS)
    with pytest.raises(ConventionError, match="--collection"):
        session(RUNS, strategy="cal")


@examples(15)
@given(order=st.permutations([*(f"r{i}" for i in range(5)), *(f"n{i}" for i in range(5))]), between=st.booleans())
def test_the_same_labels_in_any_order_give_the_same_next_documents(order: list[str], between: bool) -> None:
    """Also if the model is trained between two labels."""
    orders = []
    for names in (order, sorted(order)):
        picker = STRATEGIES.named("cal").start(candidates(), np.random.default_rng(0), TEXTS)
        for name in names:
            picker.know(picker.candidates.number[name], relevant(name))
            if between and names is order:
                picker.choose()
        orders.append(picker.pick_many(20))
    assert orders[0] == orders[1]


def learned(labels: dict[str, bool]) -> tuple[RelevanceModel, dict[int, bool]]:
    model = RelevanceModel(candidates(), np.random.default_rng(0), TEXTS, Learn())
    return model, {model.candidates.number[document]: label for document, label in labels.items()}


def test_the_words_of_a_model_speak_for_and_against() -> None:
    model, labels = learned({"r0": True, "r1": True, "n0": False, "n1": False})
    words = dict(model.words(model.trained(labels), labels))
    assert words["glass"] > 0 > words["puncture"]


def test_what_is_left_is_expected_from_calibrated_scores() -> None:
    assert expected_left(np.zeros(5), {0: True}) is None
    labels = {number: number < 4 for number in range(12)}
    separate = np.array([9.0] * 4 + [0.0] * 8 + [9.0] * 3 + [0.0] * 85)
    left = expected_left(separate, labels)
    assert left is not None
    assert 2 < left < 15


def test_the_regression_behind_cal_against_scikit_learn() -> None:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 5))
    answers = (rows[:, 0] + rng.normal(size=60) > 0.7).astype(float)
    peer = LogisticRegression(C=2.0, fit_intercept=False, class_weight="balanced", tol=1e-10, max_iter=1000)
    ours = regression(csr_matrix(rows), answers, strength=2.0)
    assert ours == pytest.approx(peer.fit(rows, answers).coef_[0], abs=1e-3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing", "no pooling strategy 'nothing'"),
        ("rbp(p=2)", "p must be between 0 and 1"),
        ("rbp(q=1)", "rbp: no parameter 'q'; it has p"),
        ("rbp(p)", "expected name=value"),
        ("rbp(p=x)", "p must be between 0 and 1, got x"),
        ("stratified(strata=5:2)", r"rates lie in \(0, 1\]"),
        ("stratified(strata=5:1/3:1)", "depths rise"),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConventionError, match=problem):
        STRATEGIES.named(text)


@pytest.mark.parametrize("text", ["rbp(p=0.9)", "stratified(strata=5:1/20:0.5)", "sample(rate=0.2)", "depth"])
def test_a_strategys_name_reads_back(text: str) -> None:
    assert str(STRATEGIES.named(text)) == text
    assert str(STRATEGIES.named(str(STRATEGIES.named(text)))) == text


# samples


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if each.samples])
def test_documents_are_drawn_as_often_as_their_probability_says(name: str) -> None:
    given = candidates()
    chosen = STRATEGIES.named(name)
    chances = chosen.chances(given, 0)
    drawn = np.zeros(len(given))
    for seed in range(4000):
        drawn[chosen.draw(given, np.random.default_rng(seed))] += 1  # type: ignore[attr-defined]
    tolerance = 4 * np.sqrt(np.maximum(chances * (1 - chances), 1e-9) / 4000)
    assert (np.abs(drawn / 4000 - chances) <= tolerance + 1e-12).all()


def test_a_sample_lists_what_was_not_drawn_and_is_never_capped() -> None:
    made = pool(RUNS, strategy="sample(rate=0.3)")
    drawn = [item for item in made if item.priority]
    assert len(drawn) == round(0.3 * len(made))
    assert {item.probability for item in made} == {len(drawn) / len(made)}
    for option in ("cap", "next", "budget"):
        with pytest.raises(ConventionError, match="would spoil the sample"):
            pool(RUNS, strategy="sample", **{option: 1})  # type: ignore[arg-type]


def test_strata_are_cut_by_the_best_rank() -> None:
    made = pool(RUNS, strategy="stratified(strata=2:1/5:0.5)")
    assert {item.stratum: item.rank <= 2 for item in made} == {"1": True, "2": False}
    assert max(item.rank for item in made) == 5
    assert all(item.priority for item in made if item.stratum == "1")


# the published ordering

AREAS = {  # measured; the trial of the author: depth .760/.787/.638, move-to-front .805/.802/.668, MaxMean .807/.812/.698
    "trec-covid-r3": (0.762, 0.805, 0.807),
    "codec-document": (0.788, 0.804, 0.812),
    "webtrack2012-baselines": (0.643, 0.663, 0.698),
}
FILES = {
    "trec-covid-r3": ("qrels.covid-round3.txt", "runs/*"),
    "codec-document": ("document_ndcg.qrels", "*.run"),
    "webtrack2012-baselines": ("qrels.web.151-200.txt", "*.results-*[a-z].txt"),
}


@pytest.mark.parametrize(
    "folder", [pytest.param(name, marks=pytest.mark.slow if name == "trec-covid-r3" else ()) for name in AREAS]
)
def test_bandits_and_move_to_front_find_relevant_documents_earlier_than_depth_against_the_literature(
    folder: str, shared: Path
) -> None:
    qrels, pattern = FILES[folder]
    runs = as_runs(str(shared / folder / pattern))
    order = Order(duplicates="first")
    found = simulate(
        str(shared / folder / qrels),
        runs,
        ["depth", "move-to-front", "maxmean", "thompson", "hedge"],
        tops=rankings(runs, 100, order=order),
        duplicates="first",
    )
    areas = [found[name].area for name in ("depth", "move-to-front", "maxmean")]
    assert areas == sorted(areas)
    assert areas == pytest.approx(AREAS[folder], abs=0.006)
    assert min(found["thompson"].area, found["hedge"].area) > found["depth"].area
