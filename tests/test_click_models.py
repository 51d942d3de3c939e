"""Click models that are fitted by counts, and their exact fits.

The oracles are PyClick's parameters, the grades that a book prints for its sessions, every hidden state of short lists one
by one, and simulated users whose parameters are known.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from click_enumeration import World, chain_worlds, click_chances, expected, total, with_clicks
from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.clicks.cascade import CM, DCM, SDBN, FittedCM, FittedDCM, FittedSDBN
from cranfield.experiments.clicks.click_log import read_pages
from cranfield.experiments.clicks.click_through import CTR, DocumentCTR, FittedClickThrough, RankCTR
from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.experiments.clicks.result_pages import ClickCounts, QueryDocuments, ResultPages
from cranfield.experiments.ingest import ingest
from cranfield.experiments.log import EventLog
from hypotheses import examples

if TYPE_CHECKING:
    from pathlib import Path

COUNTED = {"GCTR": CTR, "RCTR": RankCTR, "DCTR": DocumentCTR, "CM": CM, "DCM": DCM, "SDBN": SDBN}
EXACT = [DCM(exact=True), SDBN(exact=True)]
NONE = np.zeros(0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


# PyClick


@pytest.fixture(scope="module")
def pyclick(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "peer-cases" / "clickmodels.json").read_text())


@pytest.fixture(scope="module")
def sessions(pyclick: dict[str, Any]) -> tuple[ResultPages, ResultPages]:
    """The sessions that PyClick was fitted to, and those that it predicted."""
    pages = ResultPages.of(pyclick["sessions"])
    return pages.some(np.arange(1500)), pages.some(np.arange(1500, 2000))


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_against_pyclick(name, pyclick, sessions):
    fitted, answer = COUNTED[name]().fit(sessions[0]), pyclick["models"][name]["parameters"]
    of_pairs = {"attr": fitted.attractiveness, "sat": fitted.satisfaction}
    if name == "DCTR":
        answer = {"attr": answer["ctr"]}
    for kind, values in answer.items():
        if kind in of_pairs:
            assert len(fitted.pairs) == sum(map(len, values.values()))
            wanted = [values[query][document] for query, document in fitted.pairs.names()]
            assert of_pairs[kind] == pytest.approx(wanted, abs=1e-9)
        else:
            [own] = fitted.parameters().values()
            assert own == pytest.approx(np.atleast_1d(values)[: len(own)], abs=1e-9)


@pytest.mark.parametrize("name", COUNTED)
def test_predictions_of_held_out_sessions_against_pyclick(name, pyclick, sessions):
    fitted, answer = COUNTED[name]().fit(sessions[0]), pyclick["models"][name]
    perplexity = fitted.perplexity(sessions[1])
    assert perplexity == pytest.approx(answer["perplexity_at_rank"], abs=1e-9)
    assert perplexity.mean() == pytest.approx(answer["perplexity"], abs=1e-9)
    wanted = -np.inf if answer["log_likelihood"] is None else answer["log_likelihood"]
    assert fitted.log_likelihood(sessions[1]) == pytest.approx(wanted, abs=1e-9)


def test_the_models_that_need_only_ranks_give_the_same_from_counts_without_the_other_clicks(sessions):
    counts = ClickCounts.of(sessions[0])
    table = ClickCounts.of_ranks(counts.pairs, counts.pair, counts.rank, counts.views, counts.clicks)
    for cls in CLICK_MODELS.built_in().values():
        if not cls.reads_other_clicks:
            assert cls().fit(table).attractiveness == pytest.approx(cls().fit(counts).attractiveness, abs=1e-12)


# sessions of a book


@pytest.fixture(scope="module")
def book(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ResultPages]:
    """The result pages of two queries of the book."""
    folder = shared / "retrotech-sessions"
    answer = {}
    for query in ("dryer", "transformers dark of the moon"):
        with EventLog(tmp_path_factory.mktemp("log") / "log", create=True) as log:
            ingest(log, [str(folder / f"{query}_sessions.gz")], now=NOW, time="2024-01-01")
            answer[query] = read_pages(log).pages
    return answer


def printed_grades(shared: Path, query: str) -> list[tuple[str, int, int, float]]:
    """Document, clicks, examined views and grade of each row that the book prints for a query."""
    text = (shared / "retrotech-sessions" / "2.sdbn-judgments-to-overcome-position-bias.outputs.txt").read_text()
    block = text.split(f'>>> query = "{query}"')[1].split(">>> render")[0]
    rows = re.findall(r"^(\d+) +(\d+) +(\d+) +(\d\.\d{6}) ", block, re.MULTILINE)
    return [(document, int(clicks), int(views), float(grade)) for document, clicks, views, grade in rows]


def printed(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs as the book prints them: it reads ids as numbers, without their leading zeros."""
    return [(query, document.lstrip("0")) for query, document in names]


def test_sdbn_against_all_grades_that_the_book_prints(book, shared):
    rows = {query: printed_grades(shared, query) for query in book}
    assert sum(len({row[0] for row in each}) for each in rows.values()) == 35
    for query, pages in book.items():
        fitted = SDBN(no_click="unexamined", pseudo_clicks=0, pseudo_views=0).fit(pages)
        grades = dict(zip(printed(pages.pairs.names()), fitted.attractiveness.tolist(), strict=True))
        views = dict(zip(printed(pages.pairs.names()), fitted.examined.tolist(), strict=True))
        assert len(grades) == len({row[0] for row in rows[query]})
        for document, clicks, examined, grade in rows[query]:
            assert round(grades[query, document], 6) == grade
            assert views[query, document] == examined
            assert grades[query, document] == pytest.approx(clicks / examined, abs=1e-12)


def test_a_dryer_has_804_clicks_in_2541_views_or_in_4317_with_pages_without_clicks(book):
    pages = book["dryer"]
    place = pages.pairs.names().index(("dryer", "84691226727"))
    for no_click, views in (("unexamined", 2541), ("examined", 4317)):
        fitted = SDBN(no_click=no_click, pseudo_clicks=0, pseudo_views=0).fit(pages)
        assert fitted.attractiveness[place] == pytest.approx(804 / views, abs=1e-12)


def test_click_through_of_the_book_is_0824(book):
    pages = book["transformers dark of the moon"]
    fitted = DocumentCTR(pseudo_clicks=0, pseudo_views=0).fit(pages)
    place = pages.pairs.names().index(("transformers dark of the moon", "97360810042"))
    assert round(float(fitted.attractiveness[place]), 4) == 0.0824


def test_a_prior_of_3_in_10_with_weight_100_turns_14_of_34_into_the_328358_of_the_book():
    pairs = QueryDocuments(("blue ray",), ("827396513927",), np.zeros(1, np.int64), np.zeros(1, np.int64))
    one = [np.array([each]) for each in (0, 1, 34, 14)]
    fitted = DocumentCTR(pseudo_clicks=30, pseudo_views=100).fit(ClickCounts.of_ranks(pairs, *one))
    assert round(float(fitted.attractiveness[0]), 6) == 0.328358
    lists = [(["a"], [1])] * 14 + [(["a"], [0])] * 20 + [(["b", "a"], [1, 1]), (["b", "a"], [1, 0])]
    pages = ResultPages.of([("q", *each) for each in lists])
    fitted = SDBN(pseudo_clicks=30, pseudo_views=100).fit(pages)
    assert fitted.attractiveness[0] == pytest.approx((30 + 15) / (100 + 35))  # below the last click it does not count


# the hidden states, one by one


def true_model(model: Any, pages: ResultPages, seed: int) -> Any:
    """A model with random parameters."""
    rng = np.random.default_rng(seed)
    pairs, ranks = len(pages.pairs), int(pages.lengths.max())
    known = model, pages.pairs, rng.uniform(0.05, 0.6, pairs), NONE, 0.0
    if isinstance(model, CM):
        return FittedCM(*known)
    if isinstance(model, DCM):
        return FittedDCM(*known, rng.uniform(0.3, 0.8, ranks))
    if isinstance(model, SDBN):
        return FittedSDBN(*known, rng.uniform(0.2, 0.8, pairs))
    size = {CTR: 1, RankCTR: ranks, DocumentCTR: pairs}[type(model)]
    return FittedClickThrough(*known, rng.uniform(0.05, 0.6, size))


def one_page(clicks: tuple[int, ...]) -> ResultPages:
    return ResultPages.of([("q", list("abcd"[: len(clicks)]), clicks)])


def worlds_of(fitted: Any, size: int = 4) -> list[World]:
    """All hidden states of a user on a page of the first pairs."""
    attractiveness = fitted.attractiveness[:size].tolist()
    satisfaction = fitted.satisfied[:size].tolist() if isinstance(fitted, FittedSDBN) else [0.0] * size
    after_click = {
        FittedCM: lambda rank: 0.0,
        FittedDCM: lambda rank: float(fitted.continuation[rank - 1]),
        FittedSDBN: lambda rank: 1.0,
    }[type(fitted)]
    return chain_worlds(
        attractiveness,
        satisfaction,
        lambda rank, clicked, satisfied: 0.0 if satisfied else after_click(rank) if clicked else 1.0,
    )


@pytest.mark.parametrize("model", [CM(), DCM(), SDBN()])
def test_click_probabilities_against_all_hidden_states(model):
    for seed, clicks in enumerate(product((0, 1), repeat=4)):
        pages = one_page(clicks)
        fitted = true_model(model, pages, seed)
        worlds = worlds_of(fitted)
        assert fitted.marginal(pages) == pytest.approx(click_chances(worlds), abs=1e-12)
        possible = [total(with_clicks(worlds, clicks[:rank])) > 0 for rank in range(4)]
        if all(possible):
            assert fitted.conditional(pages) == pytest.approx(click_chances(worlds, clicks), abs=1e-12)


@pytest.mark.parametrize("model", EXACT)
def test_posteriors_of_exact_fits_against_all_hidden_states(model):
    for seed, clicks in enumerate(product((0, 1), repeat=4)):
        pages = one_page(clicks)
        fitted = true_model(model, pages, seed)
        worlds = with_clicks(worlds_of(fitted), clicks)
        after = fitted.satisfied if isinstance(fitted, FittedSDBN) else fitted.continuation
        expectations = model.tails(pages).expect(fitted.attractiveness, after)
        examined = [expected(worlds, lambda world, rank=rank: world.examined[rank]) for rank in range(4)]
        assert expectations.examined == pytest.approx(examined, abs=1e-12)
        assert expectations.log_likelihood == pytest.approx(np.log(total(worlds)), abs=1e-12)
        if isinstance(fitted, FittedSDBN):
            stops = [expected(worlds, lambda w, rank=rank: w.clicks[rank] and w.satisfied[rank]) for rank in range(4)]
            assert expectations.successes[1] == pytest.approx(stops, abs=1e-12)
        else:
            on = [expected(worlds, lambda w, rank=rank: w.clicks[rank] and w.goes_on[rank]) for rank in range(4)]
            assert expectations.successes[1] == pytest.approx(on, abs=1e-12)


@pytest.mark.parametrize("model", EXACT)
@given(st.data())
@examples(20)
def test_the_objective_of_exact_fits_never_falls(model, data):
    lists = st.permutations(["a", "b", "c", "d"]).map(lambda order: order[:3])
    page = st.tuples(st.just("q"), lists, st.tuples(*[st.booleans()] * 3))
    pages = data.draw(st.lists(page, min_size=1, max_size=8))
    pages += [("q", ["a", "b"], [1, 1])]
    weight = data.draw(st.sampled_from([(1, 2), (0, 0), (0.5, 3)]))
    cls, no_click = type(model), data.draw(st.sampled_from(["examined", "unexamined"]))
    fitted = cls(exact=True, pseudo_clicks=weight[0], pseudo_views=weight[1], no_click=no_click).fit(
        ResultPages.of(pages)
    )
    assert (np.diff(fitted.objective) >= -1e-9).all()
    assert np.isfinite(fitted.attractiveness).all()


# simulated users


def shuffled_pages(sessions: int, rng: np.random.Generator, queries: int = 20, documents: int = 10) -> ResultPages:
    """Pages without clicks: each shows all documents of a query in random order."""
    query = rng.integers(queries, size=sessions)
    order = np.argsort(rng.random((sessions, documents)), axis=1)
    pair = (query[:, None] * documents + order).ravel().astype(np.int32)
    both = np.divmod(np.arange(queries * documents), documents)
    texts = tuple(f"q{i}" for i in range(queries)), tuple(f"d{i}" for i in range(documents))
    start = np.arange(sessions + 1) * documents
    return ResultPages(QueryDocuments(*texts, *both), start, pair, np.zeros(len(pair), np.bool_))


def recovery(model: Any, sessions: int, seed: int) -> tuple[Any, Any, ClickCounts]:
    """The parameters of simulated users, and those that the model finds in their clicks."""
    rng = np.random.default_rng(seed)
    pages = shuffled_pages(sessions, rng)
    true = true_model(model, pages, seed)
    pages = pages.with_clicks(true.simulate(pages, rng))
    return true, model.fit(pages), ClickCounts.of(pages)


@pytest.mark.parametrize("model", [CM(), *EXACT])
def test_parameters_of_simulated_users_are_recovered(model):
    true, fitted, counts = recovery(model, 100_000, 1)
    assert np.corrcoef(true.attractiveness, fitted.attractiveness)[0, 1] >= 0.99
    assert abs(np.mean(fitted.attractiveness - true.attractiveness)) < 0.002
    if isinstance(model, DCM):
        assert fitted.continuation[:9] == pytest.approx(true.continuation[:9], abs=0.02)
    if isinstance(model, SDBN):
        often = counts.by(counts.pair, len(counts.pairs))[1] >= 200
        assert often.sum() > 150
        assert np.corrcoef(true.satisfied[often], fitted.satisfied[often])[0, 1] >= 0.95


@pytest.mark.parametrize("model", [DCM(), SDBN()])
def test_published_counts_give_simulated_users_too_much_attractiveness_and_exact_fits_do_not(model):
    true, counted, _ = recovery(model, 20_000, 2)
    assert np.mean(counted.attractiveness / true.attractiveness) > 1.05
    assert np.corrcoef(true.attractiveness, counted.attractiveness)[0, 1] >= 0.97
    true, exact, _ = recovery(type(model)(exact=True), 20_000, 2)
    assert np.mean(exact.attractiveness / true.attractiveness) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("model", [CTR(), RankCTR(), DocumentCTR()])
def test_click_through_of_simulated_users_is_recovered(model):
    true, fitted, _ = recovery(model, 20_000, 3)
    assert fitted.rates == pytest.approx(true.rates, abs=0.07)


# what cannot be estimated


@pytest.mark.parametrize("model", [DCM(), SDBN(), *EXACT])
def test_sessions_of_one_click_say_nothing_about_reading_on(model):
    pages = ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [0, 1])])
    with pytest.raises(DataError, match="no page of the log has two clicks, .*; fit CM or PBM"):
        model.fit(pages)


def test_an_exact_fit_needs_pages():
    pages = ResultPages.of([("q", ["a", "b"], [1, 1])])
    with pytest.raises(ConventionError, match="exact needs the pages"):
        SDBN(exact=True).fit(ClickCounts.of(pages))


@pytest.mark.parametrize("model", [CM, DCM, SDBN])
def test_pages_without_clicks_count_as_examined_or_are_left_out(model):
    pages = ResultPages.of([("q", ["a", "b"], [1, 1]), ("q", ["a", "b"], [0, 0]), ("q", ["a", "b"], [1, 0])])
    for no_click, views in (("examined", 3), ("unexamined", 2)):
        fitted = model(no_click=no_click, pseudo_clicks=0, pseudo_views=0).fit(pages)
        assert fitted.examined[0] == views
        assert fitted.attractiveness[0] == pytest.approx(2 / views)


def test_a_second_click_is_impossible_for_the_cascade_model():
    pages = ResultPages.of([("q", ["a", "b"], [1, 1]), ("q", ["a", "b"], [1, 0])])
    assert CM().fit(pages).page_log_likelihoods(pages).tolist()[0] == -np.inf


def test_no_attractiveness_is_known_of_documents_that_nobody_saw():
    pages = ResultPages.of([("q", ["a", "b"], [1, 0]), ("q", ["a", "c"], [0, 0])])
    assert DocumentCTR().fit(pages.some(np.array([0]))).attractiveness.round(4).tolist() == [0.6667, 0.3333, 0.5]
