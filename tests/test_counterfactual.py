"""Counterfactual estimates: by hand, against enumeration, on the Open Bandit Dataset, and coverage in simulated logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from counterfactual_worlds import ChainWorld, Coverage, ItemWorld, ListWorld, coverage, log_of
from cranfield.base.errors import BadLineError, ConventionError, DataError
from cranfield.commands.experiments import counterfactual as command
from cranfield.commands.listings import estimator, estimators
from cranfield.experiments.clicks.click_log import read_pages
from cranfield.experiments.counterfactual.estimate import LEAST_CLICKS, LEAST_SIZE, Estimate, counterfactual
from cranfield.experiments.counterfactual.estimator import ESTIMATORS, Question
from cranfield.experiments.counterfactual.new_ranker import PolicyTable, RankedLists, UniformPolicy, read_policy_table
from cranfield.experiments.log import EventLog
from cranfield.formats.event_files.format import line_id
from cranfield.inputs.inputs import Inputs
from cranfield.stats.importance_weights import centred, clustered_error
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MEN = "obd-zozotown/{}/men/men.csv"
TIME = "2025-03-01T10:00:00Z"


def events(path: Path, *pages: dict[str, Any]) -> Path:
    """A file of events: each page is a search with what was shown, what was clicked, and attributes."""
    rows = []
    for number, each in enumerate(pages):
        search, unit = f"s{number}", each.get("unit", f"u{number}")
        same = {"time": TIME, "unit": unit, "search": search}
        attributes = {"attributes": {"propensity": each["propensity"]}} if "propensity" in each else {}
        shown = {"kind": "impression", "query": each.get("query", "cups"), "shown": each["shown"]}
        rows.append({"event_id": f"i{number}", **same, **shown, **attributes})
        rows += [
            {"event_id": f"c{number}-{document}", **same, "kind": "click", "document": document}
            for document in each.get("clicked", [])
        ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def run_file(path: Path, **lists: list[str]) -> Path:
    rows = [f"{query} Q0 {d} {rank} {-rank} x" for query, own in lists.items() for rank, d in enumerate(own, 1)]
    return table(path, *rows)


def estimated(log: Path, *runs: Any, **options: Any) -> dict[str, Estimate]:
    """The estimates of the first run, by estimator."""
    answer = command(Inputs(runs=[str(run) for run in runs]), str(log), now=NOW, **options)
    first = answer.estimates[0].run
    return {each.estimator: each for each in answer.estimates if each.run == first}


# by hand


FOUR = (  # w = .5 / propensity: 1, 2, 1, 2
    {"shown": ["a"], "clicked": ["a"], "propensity": 0.5},
    {"shown": ["b"], "clicked": ["b"], "propensity": 0.25},
    {"shown": ["a"], "propensity": 0.5},
    {"shown": ["b"], "propensity": 0.25},
)


def test_single_items_by_hand(tmp_path: Path) -> None:
    log = events(tmp_path / "log.jsonl", *FOUR)
    found = estimated(log, "uniform", estimators=["ips", "snips", "clipped-ips(maximum=1.5)"])
    ips, snips, clipped = found.values()
    assert ips.value == pytest.approx((1 + 2) / 4)
    assert ips.error == pytest.approx(np.std([1, 2, 0, 0], ddof=1) / 2)
    assert snips.value == pytest.approx(3 / 6)
    assert clipped.value == pytest.approx((1 + 1.5) / 4)
    assert clipped.bias_bound == 0.0  # the mean of the clipped weights is 1.25
    assert (ips.effective_size, ips.effective_clicks) == (pytest.approx(36 / 10), pytest.approx(9 / 5))
    assert (ips.largest_weight, ips.largest_share, ips.mean_weight) == (2.0, pytest.approx(1 / 3), 1.5)


def test_lists_with_the_probability_of_each_document_by_hand(tmp_path: Path) -> None:
    pages = [
        {"shown": ["a", "b"], "clicked": ["a", "b"], "propensity": [0.5, 0.8]},
        {"shown": ["a", "c"], "clicked": ["a"], "propensity": [0.5, 0.2]},
        {"shown": ["b", "a"], "clicked": ["b"], "propensity": [0.5, 1.0]},
    ]
    log = events(tmp_path / "log.jsonl", *pages)
    run = run_file(tmp_path / "new.run", cups=["a", "b"])
    found = estimated(log, run, estimators=["ips", "cascade"])
    assert found["ips"].value == pytest.approx(2 / 0.4 / 3)  # the first page alone shows the list
    assert found["cascade"].value == pytest.approx((1 / 0.5 + 1 / 0.4 + 1 / 0.5) / 3)


def test_pages_of_several_documents_with_one_propensity_allow_whole_lists_alone(tmp_path: Path) -> None:
    pages = [{"shown": ["a", "b"], "propensity": 0.5, "clicked": ["a"]}, {"shown": ["b", "a"], "propensity": 0.5}]
    log = events(tmp_path / "log.jsonl", *pages)
    run = run_file(tmp_path / "new.run", cups=["a", "b"])
    assert set(estimated(log, run)) == {"ips", "snips", "dr"}
    with pytest.raises(
        DataError, match="cascade cannot be used: it needs the probability of each document after those"
    ):
        estimated(log, run, estimators=["cascade"])
    with pytest.raises(DataError, match="item-position cannot be used: it needs .* at its rank"):
        estimated(log, run, estimators=["item-position"])
    with pytest.raises(DataError, match="pages cannot be cut; leave --depth out"):
        estimated(log, run, depth=1)


def test_the_position_based_estimate_of_a_fixed_log_by_hand(tmp_path: Path) -> None:
    pages = [{"shown": ["a", "b"], "clicked": ["b"]}] * 2 + [{"shown": ["a", "b"], "clicked": ["a"]}] * 3
    log = events(tmp_path / "log.jsonl", *pages)
    bias = table(tmp_path / "bias.csv", "rank,examination,low,high", "1,1,,", "2,0.5,.4,.6")
    run = run_file(tmp_path / "new.run", cups=["b", "c", "a"])
    found = estimated(log, run, position_bias=str(bias))["position-based"]
    assert found.value == pytest.approx(2 / 5 * 1 / 0.5)  # b moves from rank 2 to 1; c was never shown, a falls out
    assert found.never_shown == 0.5
    again = estimated(log, run_file(tmp_path / "same.run", cups=["a", "b"]), position_bias=str(bias))
    assert again["position-based"].value == pytest.approx(1.0)  # the log's own list gets the log's own clicks


def test_the_file_of_position_bias_may_be_json_lines_and_its_intervals_add_to_the_error(tmp_path: Path) -> None:
    log = events(tmp_path / "log.jsonl", *[{"shown": ["a", "b"], "clicked": ["b"]}, {"shown": ["a", "b"]}] * 50)
    run = run_file(tmp_path / "new.run", cups=["b", "a"])
    known = table(tmp_path / "known.csv", "rank,examination", "1,1", "2,0.5")
    rows = [{"rank": 1, "examination": 1.0, "low": None}, {"rank": 2, "examination": 0.5, "low": 0.402, "high": 0.598}]
    estimate = table(tmp_path / "estimate.jsonl", *map(json.dumps, rows))
    first, second = (estimated(log, run, position_bias=str(path))["position-based"] for path in (known, estimate))
    assert first.value == second.value == pytest.approx(1.0)
    by_hand = np.hypot(first.error, 1.0 * 0.05 / 0.5)  # the derivative of 0.5 / e by e is -0.5 / e²
    assert second.error == pytest.approx(by_hand, rel=0.02)


def test_shares_of_an_ab_test_give_the_mean_of_each_list(tmp_path: Path) -> None:
    pages = (
        [{"shown": ["a", "b"], "clicked": ["a"]}] * 2
        + [{"shown": ["b", "a"]}] * 4
        + [{"shown": ["b", "a"], "clicked": ["b"]}]
    )
    log = events(tmp_path / "log.jsonl", *pages)
    run = run_file(tmp_path / "new.run", cups=["b", "a"])
    found = estimated(log, run, randomised="lists")
    assert found["ips"].value == pytest.approx(1 / 5)
    assert found["ips"].mean_weight == pytest.approx(1.0)
    assert found["cascade"].value == found["item-position"].value == pytest.approx(1 / 5)


def test_counted_weights_have_the_error_of_the_mean_of_their_group() -> None:
    shown = np.array([True] * 4 + [False] * 4)
    clicks = np.array([1.0, 0, 1, 1, 0, 0, 0, 0])
    values = centred(np.where(shown, 2.0, 0.0), clicks, np.zeros(8, np.int64))
    assert values.mean() == pytest.approx(0.75)
    by_hand = np.sqrt(np.square(clicks[:4] - 0.75).sum()) / 4
    assert clustered_error(values, np.arange(8)) == pytest.approx(by_hand * np.sqrt(8 / 7))


def test_the_error_of_an_ab_test_is_that_of_the_pages_that_showed_the_list(tmp_path: Path) -> None:
    ours = [{"shown": ["b", "a"], "clicked": ["b"] if number % 3 == 0 else []} for number in range(12)]
    log = events(tmp_path / "log.jsonl", *ours, *[{"shown": ["a", "b"], "clicked": ["a"]}] * 24)
    found = estimated(log, run_file(tmp_path / "new.run", cups=["b", "a"]), randomised="lists")
    by_hand = np.sqrt(12 * (1 / 3) * (2 / 3)) / 12 * np.sqrt(36 / 35)
    for name in ("ips", "snips", "item-position", "cascade"):
        assert found[name].value == pytest.approx(1 / 3), name
        assert found[name].error == pytest.approx(by_hand), name


def test_the_share_never_shown_is_of_all_pages(tmp_path: Path) -> None:
    pages = [{"query": "hats", "shown": ["h"], "propensity": 0.5}, *FOUR[:3]]
    log = events(tmp_path / "log.jsonl", *pages)
    found = estimated(log, run_file(tmp_path / "new.run", cups=["z"], hats=["h"]), estimators=["ips"])
    assert found["ips"].never_shown == 0.75


def test_the_position_based_error_by_hand(tmp_path: Path) -> None:
    clicks = [["a"], ["b"], ["a", "b"], [], ["b"]]
    log = events(tmp_path / "log.jsonl", *[{"shown": ["a", "b"], "clicked": each} for each in clicks])
    bias = table(tmp_path / "bias.csv", "rank,examination", "1,1", "2,.5")
    run = run_file(tmp_path / "new.run", cups=["b", "a"])
    found = estimated(log, run, position_bias=str(bias))["position-based"]
    by_page = [("a" in each) * 0.5 + ("b" in each) * 2 for each in clicks]
    assert found.value == pytest.approx(np.mean(by_page))
    assert found.error == pytest.approx(np.std(by_page, ddof=1) / np.sqrt(5))


def slow_rates(rows: list[tuple[int, str, str, bool]], prior: float) -> Any:
    """The click rate of (position, query, document), computed row by row."""
    mean = sum(row[3] for row in rows) / len(rows)
    at = {
        position: (sum(r[3] for r in rows if r[0] == position) + 10 * mean) / (sum(r[0] == position for r in rows) + 10)
        for position in {row[0] for row in rows}
    }

    def rate(position: int, query: str, document: str) -> float:
        own = [row for row in rows if row[1:3] == (query, document)]
        factor = (sum(row[3] for row in own) + prior) / (sum(at[row[0]] for row in own) + prior)
        return float(at[position] * factor)

    return rate


@pytest.mark.parametrize("name", ["dr", "dr(folds=2)", "dr(prior=4)", "dm", "dm(prior=4)"])
def test_models_of_clicks_against_a_slow_computation(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(8)
    head, data = "timestamp,item_id,position,click,propensity_score", []
    for _ in range(60):
        item, position = int(rng.integers(3)), int(rng.integers(1, 4))
        data.append((position, "", "abc"[item], bool(rng.random() < 0.3 + 0.2 * item - 0.1 * position)))
    chances = {"a": 0.3, "b": 0.3, "c": 0.4}
    lines = [f"{TIME},{document},{position},{int(click)},{chances[document]}" for position, _, document, click in data]
    path = table(tmp_path / "log.csv", head, *lines)
    policy = {"a": 0.2, "b": 0.7, "c": 0.1}
    new = table(tmp_path / "new.csv", "document,probability", *(f"{each},{p}" for each, p in policy.items()))
    found = estimated(path, new, estimators=[name])
    prior = 4.0 if "4" in name else 1.0
    folds = 2 if "2" in name else 5
    units = [line_id("log.csv", number) for number in range(2, 62)]
    fold = [sorted(units).index(unit) % folds for unit in units]
    by_hand = []
    for number, (position, query, document, click) in enumerate(data):
        others = [row for row, part in zip(data, fold, strict=True) if part != fold[number]]
        rate = slow_rates(others if name.startswith("dr") else data, prior)
        promise = sum(p * rate(position, query, each) for each, p in policy.items())
        weight = policy[document] / chances[document] if name.startswith("dr") else 0.0
        by_hand.append(promise + weight * (click - rate(position, query, document)))
    [one] = found.values()
    assert one.value == pytest.approx(np.mean(by_hand))
    if name.startswith("dr"):
        assert one.error == pytest.approx(np.std(by_hand, ddof=1) / np.sqrt(60))


def test_normalised_cascade_weights_have_a_mean_of_1_at_every_rank(tmp_path: Path) -> None:
    pages = [
        {"shown": ["a", "b"], "clicked": ["a", "b"], "propensity": [0.5, 0.8]},
        {"shown": ["a", "c"], "clicked": [], "propensity": [0.5, 0.2]},
        {"shown": ["b", "a"], "clicked": ["b"], "propensity": [0.5, 1.0]},
        {"shown": ["a", "b"], "clicked": ["a"], "propensity": [0.25, 0.5]},
    ]
    log = events(tmp_path / "log.jsonl", *pages)
    run = run_file(tmp_path / "new.run", cups=["a", "b"])
    [found] = estimated(log, run, estimators=["cascade(normalised=yes)"]).values()
    first, second = (2 + 4) / (2 + 2 + 4), 2.5 / (2.5 + 8)
    assert found.value == pytest.approx(first + second)
    top = [2 / 2 * (1 - first), 2 / 2 * (0 - first), 0.0, 4 / 2 * (1 - first)]
    low = [2.5 / 2.625 * (1 - second), 0.0, 0.0, 8 / 2.625 * (0 - second)]
    by_page = np.add(top, low)
    assert found.error == pytest.approx(np.std(by_page, ddof=1) / 2)


# against enumeration


def all_orders(clicks: Any, length: int = 4) -> Any:
    """A log that shows every order of a few documents once; `clicks` says what an order gets."""
    lists = np.array(list(permutations(range(length))))
    clicked = np.array([clicks(order) for order in lists.tolist()])
    return log_of(np.zeros(len(lists), np.int64), lists, clicked)


RATES = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], bool)  # by document and rank
CLICKS = {
    "ips": lambda order: [order == [2, 0, 3, 1]] * 4,
    "item-position": lambda order: [bool(RATES[d, rank]) for rank, d in enumerate(order)],
    "cascade": lambda order: [sum(order[: rank + 1]) % 3 != 0 for rank in range(len(order))],
}


@pytest.mark.parametrize("name", CLICKS)
def test_every_order_once_gives_the_clicks_of_the_new_list_exactly_if_users_are_as_assumed(name: str) -> None:
    log = all_orders(CLICKS[name])
    new = [2, 0, 3, 1]
    ranker = RankedLists("new", {"q0": [f"d{d}" for d in new]})
    answer = counterfactual(log, [ranker], [name], randomised="shuffled")
    assert answer.estimates[0].value == pytest.approx(sum(CLICKS[name](new)))
    assert answer.estimates[0].mean_weight == pytest.approx(1.0)


def test_users_unlike_the_assumption_give_another_number_than_the_truth() -> None:
    log = all_orders(CLICKS["cascade"])
    ranker = RankedLists("new", {"q0": ["d2", "d0", "d3", "d1"]})
    answer = counterfactual(log, [ranker], ["item-position"], randomised="shuffled")
    assert abs(answer.estimates[0].value - sum(CLICKS["cascade"]([2, 0, 3, 1]))) > 0.1


def test_shuffled_pages_that_are_cut_weigh_by_their_whole_length() -> None:
    log = all_orders(CLICKS["cascade"])
    ranker = RankedLists("new", {"q0": ["d2", "d0", "d3", "d1"]})
    answer = counterfactual(log, [ranker], ["cascade", "ips"], randomised="shuffled", depth=2)
    truth = sum(CLICKS["cascade"]([2, 0, 3, 1])[:2])
    assert [each.value for each in answer.estimates] == pytest.approx([truth, truth])
    assert answer.estimates[1].largest_weight == pytest.approx(12)


WORLD, LISTS, CASCADE = ItemWorld(), ListWorld(), ListWorld(length=3, cascade=True)


@pytest.mark.parametrize(
    "name", [name for name, cls in ESTIMATORS.items() if cls.needs and name not in ("dr", "clipped-ips")]
)
def test_the_uniform_policy_on_shuffled_pages_gets_the_clicks_of_the_log(name: str) -> None:
    log = LISTS.shuffled(np.random.default_rng(3), 400)
    log = log.some(log.query < 4)
    answer = counterfactual(log, [UniformPolicy()], [name], randomised="shuffled")
    assert answer.estimates[0].value == pytest.approx(float(log.clicks.mean()), abs=1e-9)
    assert answer.estimates[0].effective_size == pytest.approx(len(log.pages))


def test_the_direct_method_against_a_table_of_rates() -> None:
    log = WORLD.log(np.random.default_rng(4), 2000)
    rows = Question(log, WORLD.ranker, log.probabilities())
    value = ESTIMATORS.named("dm(prior=1e-9)").estimate(rows).values.mean()
    query, item = log.query, log.pages.pairs.document[log.pages.pair]
    by_hand = 0.0
    for q in range(5):
        for d in range(20):
            which = (query == q) & (item == d)
            by_hand += (query == q).mean() * WORLD.new[q, d] * (log.pages.clicked[which].mean() if which.any() else 0)
    assert value == pytest.approx(by_hand, rel=1e-6)


# coverage


def logs(draw: Any, number: int, seed: int = 7) -> Any:
    return (draw(np.random.default_rng([seed, each])) for each in range(number))


CASES = {
    "items": lambda n: coverage(
        logs(lambda r: WORLD.log(r, 5000), n), WORLD.ranker, WORLD.truth, ["ips", "snips", "dr"]
    ),
    "differences from the log": lambda n: coverage(
        logs(lambda r: WORLD.log(r, 5000), n),
        WORLD.ranker,
        WORLD.truth,
        ["ips", "snips", "dr"],
        minus_log=lambda _: float((WORLD.old * WORLD.rates).sum(axis=1).mean()),
    ),
    "items of units with five pages": lambda n: coverage(
        logs(lambda r: WORLD.log(r, 5000, 5, 1.0), n), WORLD.ranker, WORLD.truth, ["ips", "snips", "dr"]
    ),
    "shuffled pages": lambda n: coverage(
        logs(lambda r: LISTS.shuffled(r, 5000), n), LISTS.ranker, LISTS.truth, ["item-position"], "shuffled"
    ),
    "shuffled pages of cascade users": lambda n: coverage(
        logs(lambda r: CASCADE.shuffled(r, 5000), n), CASCADE.ranker, CASCADE.truth, ["cascade"], "shuffled"
    ),
    "an A/B test": lambda n: coverage(
        logs(lambda r: LISTS.variants(r, 5000), n),
        LISTS.ranker,
        LISTS.truth,
        ["ips", "snips", "dr", "item-position", "cascade"],
        "lists",
    ),
    "an A/B test of units with five pages": lambda n: coverage(
        logs(lambda r: LISTS.variants(r, 5000, 3, 5), n), LISTS.ranker, LISTS.truth, ["dr", "item-position"], "lists"
    ),
    "one list per query, and an examination with an error of 5 %": lambda n: coverage(
        logs(lambda r: LISTS.fixed(r, 5000), n),
        LISTS.ranker,
        LISTS.truth,
        ["position-based"],
        examination=LISTS.noisy_curve(0.05),
    ),
    "one list per query": lambda n: coverage(
        logs(lambda r: LISTS.fixed(r, 5000), n),
        LISTS.ranker,
        LISTS.truth,
        ["position-based"],
        examination=lambda _: LISTS.curve,
    ),
}


def _check(found: dict[str, Coverage], low: float, high: float) -> None:
    for name, each in found.items():
        assert low <= each.covered <= high, (name, each)
        assert each.effective_size >= LEAST_SIZE, (name, each)
        assert each.effective_clicks >= 0.9 * LEAST_CLICKS, (name, each)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_the_truth_in_93_to_97_of_100_simulated_logs(case: str) -> None:
    _check(CASES[case](2000), 0.93, 0.97)


STOPPING, RARE = ListWorld(cascade=True), ItemWorld(spread=1.1, rate=0.04)
UNMET = {  # estimators whose conditions fail, and the most that they may cover
    "users who stop, read by ranks": (
        lambda n: coverage(
            logs(lambda r: STOPPING.shuffled(r, 5000), n),
            STOPPING.ranker,
            STOPPING.truth,
            ["item-position", "dm"],
            "shuffled",
        ),
        0.88,
    ),
    "users who stop, read by examination": (
        lambda n: coverage(
            logs(lambda r: STOPPING.fixed(r, 5000), n),
            STOPPING.ranker,
            STOPPING.truth,
            ["position-based"],
            examination=lambda _: STOPPING.curve,
        ),
        0.05,
    ),
    "clipped weights": (
        lambda n: coverage(
            logs(lambda r: WORLD.log(r, 5000), n), WORLD.ranker, WORLD.truth, ["clipped-ips(maximum=2)"]
        ),
        0.05,
    ),
    "few clicks": (
        lambda n: coverage(logs(lambda r: RARE.log(r, 5000), n), RARE.ranker, RARE.truth, ["ips", "snips", "dr"]),
        0.93,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", UNMET)
def test_intervals_cover_less_than_they_say_if_a_condition_is_not_met(case: str) -> None:
    simulate, most = UNMET[case]
    for name, each in simulate(1000).items():
        assert each.covered < most, (name, each)


@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_the_truth_in_a_twentieth_of_the_simulation(case: str) -> None:
    _check(CASES[case](100), 0.85, 1.0)


def test_intervals_with_an_estimated_examination_cover_the_truth(tmp_path: Path) -> None:
    for share in ChainWorld().coverage(20, tmp_path / "bias.csv").values():
        assert share >= 0.85


@pytest.mark.slow
def test_intervals_with_an_estimated_examination_cover_the_truth_in_the_whole_simulation(tmp_path: Path) -> None:
    for share in ChainWorld().coverage(1_000, tmp_path / "bias.csv").values():
        assert 0.93 <= share <= 0.97
    assert ChainWorld().coverage(400, tmp_path / "bias.csv", covariances=False)["the same log"] < 0.92


def test_errors_that_ranks_have_in_common_against_the_formula_by_hand(tmp_path: Path) -> None:
    pages = [{"shown": ["a", "b"], "clicked": own} for own in (["a"], ["a", "b"], [], ["a"])]
    log, run = events(tmp_path / "log.jsonl", *pages), run_file(tmp_path / "new.run", cups=["b", "a"])
    # a: 3 of 4 at rank 1 to rank 2, b: 1 of 4 at rank 2 to rank 1; the estimate is 3/4 θ2 / θ1 + 1/4 θ1 / θ2
    value, slope = 0.75 * 0.5 + 0.25 * 2, 0.75 * 0.5 - 0.25 * 2  # the slope by log θ2; by log θ1 it is the opposite
    head = "rank,examination,low,high,log_covariances"
    without = table(tmp_path / "0.csv", "rank,examination", "1,1", "2,0.5")
    error = estimated(log, run, position_bias=str(without))["position-based"].error
    for common, variance in {0.0: 0.0008, 0.0003: 0.0002, 0.0004: 0.0}.items():
        rows = ["1,1,,,0.0004 {0}", "2,0.5,,,{0} 0.0004"]
        bias = table(tmp_path / "bias.csv", head, *(row.format(common) for row in rows))
        answer = estimated(log, run, position_bias=str(bias))["position-based"]
        assert answer.value == pytest.approx(value)
        assert answer.error**2 - error**2 == pytest.approx(slope**2 * variance, rel=1e-3, abs=1e-12)


def test_units_with_several_pages_have_the_error_of_their_sums() -> None:
    log = WORLD.log(np.random.default_rng(1), 5000, 10, 1.0)
    answer = counterfactual(log, [WORLD.ranker], ["ips"])
    rewards = Question(log, WORLD.ranker, log.probabilities()).list_weights * log.clicks
    sums = rewards.reshape(-1, 10).sum(axis=1)
    assert answer.estimates[0].error == pytest.approx(sums.std(ddof=1) / np.sqrt(500) / 10)


# the Open Bandit Dataset


def test_the_uniform_policy_from_the_bts_log_of_the_open_bandit_dataset(shared: Path) -> None:
    found = estimated(shared / MEN.format("bts"), "uniform")
    ips, snips = found["ips"], found["snips"]
    assert ips.value == pytest.approx(0.0030086, abs=5e-8)
    assert ips.error == pytest.approx(0.00077, abs=5e-6)
    assert snips.value == pytest.approx(0.0031894, abs=5e-8)
    assert (ips.effective_size, ips.largest_weight) == (
        pytest.approx(655.7, abs=0.05),
        pytest.approx(178.25, abs=0.005),
    )
    assert ips.mean_weight == pytest.approx(0.943, abs=5e-4)
    assert [words.split(" (")[0] for words in ips.thin] == ["an effective size of 655.7 pages", "15.1 effective clicks"]
    random = estimated(shared / MEN.format("random"), "uniform", estimators=["ips"])["ips"]
    assert random.value == pytest.approx(0.0046)
    away = (random.value - ips.value) / np.hypot(random.error, ips.error)
    assert away == pytest.approx(1.5, abs=0.1)


def test_the_open_bandit_dataset_reads_the_same_from_a_log(shared: Path, tmp_path: Path) -> None:
    path = shared / MEN.format("bts")
    done = cranfield("online", "ingest", tmp_path / "log", path)
    assert "10,069 events added of 10,069 read" in done.out, done.both
    of_log, of_file = estimated(tmp_path / "log", "uniform"), estimated(path, "uniform")
    assert list(of_log) == list(of_file)
    for name, each in of_log.items():
        assert each.thin == of_file[name].thin
        assert np.allclose(each[2:13], of_file[name][2:13])


# support


def thin(found: dict[str, Estimate], name: str = "ips") -> str:
    return "; ".join(found[name].thin)


def test_each_condition_of_thin_support_is_said(tmp_path: Path) -> None:
    log = WORLD.log(np.random.default_rng(5), 5000)
    healthy = counterfactual(log, [WORLD.ranker], ["ips"])
    assert healthy.estimates[0].thin == ()
    assert "thin" not in healthy.to_text()
    small = thin(estimated(events(tmp_path / "log.jsonl", *FOUR), "uniform"))
    assert "an effective size of 3.6 pages (below 1,000)" in small
    assert "1.8 effective clicks (below 100)" in small
    assert "one weight is 33.3 % of their sum (above 5.0 %)" in small
    doubled = log_of(
        log.query,
        log.pages.pairs.document[log.pages.pair][:, None],
        log.pages.clicked[:, None],
        propensity=[each[0] / 2 for each in log.propensity or ()],
        documents=20,
    )
    words = counterfactual(doubled, [WORLD.ranker], ["ips"]).estimates[0].thin
    assert len(words) == 1
    assert words[0].startswith("a mean weight of 2.0")
    assert isinstance(WORLD.ranker, PolicyTable)
    unseen = {
        q: {(d if d > "d15" else f"unseen {d}", 1): p for (d, _), p in own.items()}
        for q, own in WORLD.ranker.probabilities.items()
    }
    words = counterfactual(log, [PolicyTable("unseen", unseen, False)], ["snips"]).estimates[0].thin
    assert "of the new lists never shown (above 5.0 %)" in words[-1]


def test_no_click_on_the_new_lists_gives_no_interval(tmp_path: Path) -> None:
    pages = [{"shown": ["a"], "propensity": 0.5}, {"shown": ["b"], "propensity": 0.5, "clicked": ["b"]}]
    log = events(tmp_path / "log.jsonl", *pages)
    found = estimated(log, run_file(tmp_path / "new.run", cups=["a"]))
    assert found["ips"].value == 0.0
    assert np.isnan([found["ips"].low, found["ips"].high, found["ips"].error]).all()
    answer = command(Inputs(runs=["uniform", str(tmp_path / "new.run")]), str(log), estimators=["ips"], now=NOW)
    assert np.isnan([each.low for each in answer.differences if "new" in (each.run, each.against)]).all()


def test_probabilities_beyond_reason_give_an_answer_that_is_thin(tmp_path: Path) -> None:
    rows = [f"{TIME},a,1,1,5e-324", f"{TIME},b,1,0,1e-300", f"{TIME},b,1,1,.5"]
    log = table(tmp_path / "log.csv", "timestamp,item_id,position,click,propensity_score", *rows)
    for each in estimated(log, "uniform").values():
        assert each.low <= each.value <= each.high
        assert len(each.thin) >= 3


def test_a_new_list_that_no_page_shows_has_no_estimate_by_whole_lists(tmp_path: Path) -> None:
    pages = [{"shown": ["a", "b", "c"], "clicked": ["a"]}, {"shown": ["c", "b", "a"]}]
    log = events(tmp_path / "log.jsonl", *pages)
    found = estimated(log, run_file(tmp_path / "new.run", cups=["a", "c", "b"]), randomised="shuffled")
    assert np.isnan([found[name].value for name in ("ips", "snips")]).all()
    assert found["item-position"].value == pytest.approx(1.5)


def test_the_bias_of_clipping_is_within_its_bound() -> None:
    log = WORLD.log(np.random.default_rng(6), 50_000)
    answer = counterfactual(log, [WORLD.ranker], ["clipped-ips(maximum=2)"])
    clipped = answer.estimates[0]
    assert WORLD.truth - clipped.bias_bound < clipped.value < WORLD.truth - 5 * clipped.error
    assert any("may be" in each and "too low" in each for each in answer.notes())


# what is refused


BAD = {
    "0": "found '0'",
    "-0.1": "found '-0.1'",
    "1.5": "found '1.5'",
    "NaN": "found 'NaN'",
    "high": "found 'high'",
    "true": "found 'true'",
    "": "found ''",
}


@pytest.mark.parametrize("typed", BAD)
def test_a_bad_propensity_is_named_with_its_line_or_its_event(tmp_path: Path, typed: str) -> None:
    log = events(tmp_path / "log.jsonl", FOUR[0], {"shown": ["b"], "propensity": typed})
    with pytest.raises(DataError, match=rf"log.jsonl:3: expected a propensity above 0, up to 1, {BAD[typed]}"):
        estimated(log, "uniform")
    assert cranfield("online", "ingest", tmp_path / "log", log).code == 0
    with pytest.raises(DataError, match=rf"event 'i1': expected a propensity above 0, up to 1, {BAD[typed]}"):
        estimated(tmp_path / "log", "uniform")


@pytest.mark.parametrize("typed", ["0", "-0.1", "1.5", "nan", "inf", "", "x"])
def test_a_bad_row_of_bandit_data_is_named(tmp_path: Path, typed: str) -> None:
    head = "timestamp,item_id,position,click,propensity_score"
    path = table(tmp_path / "men.csv", head, f"{TIME},1,1,0,0.5", f"{TIME},2,1,1,{typed}")
    with pytest.raises(
        BadLineError, match=rf"men.csv:3: expected a propensity_score above 0, up to 1, found '{typed}'"
    ):
        estimated(path, "uniform")
    for row, problem in {
        f"{TIME},2,1,2,0.5": "0 or 1 as click",
        f"{TIME},2,x,1,0.5": "whole number as position",
    }.items():
        with pytest.raises(BadLineError, match=f"men.csv:2: expected .*{problem}"):
            estimated(table(tmp_path / "men.csv", head, row), "uniform")


A_B = {"shown": ["a", "b"], "clicked": ["a"]}
REFUSED: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "some pages without": (
        [FOUR[0], {"shown": ["a"]}],
        {},
        r":3: no propensity, which other impressions have \(1 page of 2",
    ),
    "none at all": ([A_B] * 3, {}, "no propensities, which every estimator but position-based needs"),
    "another attribute": ([FOUR[0]], {"propensity": "pscore"}, "no impression has the attribute 'pscore'"),
    "one list per query": (
        [A_B] * 3,
        {"randomised": "shuffled"},
        r"one list for each query \(1 in all\), so a single ranker",
    ),
    "one list in no A/B test": ([A_B], {"randomised": "lists"}, "a single ranker made this log"),
    "one document in shuffled pages": ([FOUR[0], FOUR[1]], {"randomised": "shuffled"}, "every page shows one document"),
    "propensities of 1": ([{**FOUR[0], "propensity": 1}] * 2, {}, "every propensity is 1, so a single ranker"),
    "a fixed log": ([A_B] * 2, {"estimators": ["ips"]}, "ips cannot be used: it needs a randomised log"),
    "a fixed log without examination": ([A_B] * 2, {"estimators": ["position-based"]}, "it needs --position-bias FILE"),
    "too few propensities": (
        [{**A_B, "propensity": [0.5, 0.5, 0.5]}],
        {},
        "one number, or one for each of 2 documents",
    ),
    "a click on nothing": (
        [{**A_B, "clicked": ["z"]}],
        {"randomised": "lists"},
        "search 's0' has a click on 'z', which its page did not show",
    ),
    "a document twice": ([{"shown": ["a", "a"], "propensity": 0.5}], {}, "search 's0' shows document 'a' twice"),
    "propensities that one list per query contradicts": (
        [{**A_B, "propensity": 0.5}] * 25,
        {},
        "which the propensities give a chance below 1e-06; so a single ranker made this log",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_log_that_says_nothing_about_other_rankers_is_refused(tmp_path: Path, case: str) -> None:
    pages, options, problem = REFUSED[case]
    log = events(tmp_path / "log.jsonl", *pages)
    with pytest.raises(DataError, match=problem):
        estimated(log, "uniform", **options)


def test_a_click_without_its_impression_is_named_or_left_out(tmp_path: Path) -> None:
    log = events(tmp_path / "log.jsonl", *FOUR)
    click = {"event_id": "x", "time": TIME, "kind": "click", "unit": "u", "search": "elsewhere", "document": "a"}
    log.write_text(log.read_text() + json.dumps(click) + "\n")
    with pytest.raises(DataError, match=r"log.jsonl:7: search 'elsewhere' has a click on 'a', but no impression"):
        estimated(log, "uniform")
    answer = command(Inputs(runs=["uniform"], lenient=True), str(log), now=NOW)
    assert answer.notes()[0] == "left out: 1 click without an impression"
    assert answer.clicks == 2


def page(search: str, *shown: str, **more: Any) -> dict[str, Any]:
    return {"kind": "impression", "search": search, "query": "cups", "shown": shown, **more}


def alone(search: str, document: str, position: int) -> dict[str, Any]:
    return page(search, document=document, position=position)


def click(search: str, document: str, position: int | None = None) -> dict[str, Any]:
    return {"kind": "click", "search": search, "document": document, "position": position}


FAULTS = {  # each with what is left of its pages if reading is lenient
    "no impression": ([click("s9", "a")], 4),
    "not shown": ([click("s1", "z")], 4),
    "another position": ([click("s0", "a", 2)], 4),
    "a document twice": ([page("s9", "a", "a")], 4),
    "no query": ([page("s9", "a", "b", query=" ")], 4),
    "positions with a hole": ([alone("s9", "a", 1), alone("s9", "b", 3)], 4),
    "a position twice": ([alone("s9", "a", 1), alone("s9", "b", 1)], 4),
}


def file_of(path: Path, rows: list[dict[str, Any]]) -> Path:
    same = {"time": TIME, "unit": "u"}
    own = [
        {"event_id": f"e{n}", **same, **{k: v for k, v in row.items() if v is not None}} for n, row in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in own))
    return path


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_pages_have_the_words_of_the_click_models(tmp_path: Path, case: str) -> None:
    rows, pages = FAULTS[case]
    whole = [page(f"s{n}", *order) for n, order in enumerate(["ab", "ba"] * 2)]
    path = file_of(tmp_path / "log.jsonl", whole + rows)
    assert cranfield("online", "ingest", tmp_path / "log", path).code == 0
    with EventLog(str(tmp_path / "log")) as log:
        with pytest.raises(DataError) as expected:
            read_pages(log)
        left_out = read_pages(log, lenient=True).notes
    for source in (path, tmp_path / "log"):
        with pytest.raises(DataError) as refused:
            estimated(source, "uniform", randomised="shuffled")
        assert str(refused.value).endswith(str(expected.value))
        answer = command(Inputs(runs=["uniform"], lenient=True), str(source), randomised="shuffled", now=NOW)
        assert (answer.pages, [each for each in answer.notes() if "left out" in each]) == (pages, left_out)


def test_a_difference_of_rounding_errors_does_not_ask_for_decimals(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    pages = [{"shown": ["a", "b"], "clicked": [d for d in "ab" if rng.random() < 0.4]} for _ in range(60)]
    log, run = events(tmp_path / "log.jsonl", *pages), run_file(tmp_path / "new.run", cups=["a", "b"])
    bias = table(tmp_path / "bias.csv", "rank,examination,low,high", "1,1,1,1", "2,0.7,0.6,0.8")
    answer = command(Inputs(runs=[str(run)]), str(log), position_bias=str(bias), now=NOW)
    assert max(abs(each.value) for each in answer.differences) < 1e-12
    assert f"The log itself got {answer.clicks / 60:.4f} (" in answer.to_text()


def test_impressions_of_single_documents_make_a_page(tmp_path: Path) -> None:
    orders = ["ab", "ba", "ab"]
    one_by_one = [alone(f"s{n}", d, place) for n, order in enumerate(orders) for place, d in enumerate(order, 1)]
    whole = [page(f"s{n}", *order) for n, order in enumerate(orders)]
    clicks = [click("s0", "a", 1), click("s1", "a", 2)]
    one, other = (
        estimated(file_of(tmp_path / f"{n}.jsonl", rows + clicks), "uniform", randomised="shuffled")
        for n, rows in enumerate((one_by_one, whole))
    )
    assert str(one) == str(other)


POLICIES = {
    "a sum below 1": (["a,.5", "b,.4"], "sum to 1 for all documents, found a sum of 0.9"),
    "above 1": (["a,1.5", "b,0"], ":2: expected a probability from 0 to 1, found '1.5'"),
    "a word": (["a,x"], ":2: expected a probability, found 'x'"),
    "a document twice": (["a,.5", "a,.5"], ":3: expected each document once"),
    "nothing": ([], "expected a probability on each line, found none"),
    "no document": ([",1"], ":2: expected a document, found an empty cell"),
    "other documents": (["x,.5", "y,.5"], "never shows any of its documents for the same query"),
}


@pytest.mark.parametrize("case", POLICIES)
def test_a_policy_that_is_none_is_refused(tmp_path: Path, case: str) -> None:
    rows, problem = POLICIES[case]
    log = events(tmp_path / "log.jsonl", *FOUR)
    with pytest.raises(DataError, match=problem):
        estimated(log, table(tmp_path / "policy.csv", "document,probability", *rows))


def test_policies_by_query_and_rank(tmp_path: Path) -> None:
    pages = [A_B, {"shown": ["b", "a"]}, {"shown": ["b", "a"], "clicked": ["b"]}, A_B]
    log = events(tmp_path / "log.jsonl", *pages)
    rows = ["query,document,rank,probability", "Cups,a,1,0.8", "Cups,b,1,0.2", "Cups,b,2,0.8", "Cups,a,2,0.2"]
    policy = table(tmp_path / "policy.csv", *rows)
    found = estimated(log, policy, randomised="shuffled", estimators=["item-position"])
    assert found["item-position"].value == pytest.approx((1.6 + 0 + 0.4 + 1.6) / 4)
    with pytest.raises(DataError, match="policy has the probabilities of single ranks, not of whole lists"):
        estimated(log, policy, randomised="shuffled", estimators=["ips"])
    with pytest.raises(DataError, match="sum to 1 for query 'cups' at rank 2, found a sum of 0.9"):
        read_policy_table(str(table(tmp_path / "other.csv", *rows[:-1], "cups,a,2,0.1")), "other")
    without = table(tmp_path / "other.csv", "document,probability", "a,.5", "b,.5")
    with pytest.raises(DataError, match="expected a column rank, as the pages of .* show several documents"):
        estimated(log, without, randomised="shuffled")


BIASES = {
    "no column": (["rank,low", "1,1"], "expected columns rank and examination"),
    "a rank of 0": (["rank,examination", "0,1"], ":2: expected a rank of 1 or more, found '0'"),
    "a rank twice": (["rank,examination", "1,1", "1,1"], ":3: expected each rank once"),
    "an examination of 0": (["rank,examination", "1,0"], ":2: expected an examination above 0"),
    "a gap": (["rank,examination", "1,1", "2,"], "the examination of position 2 is unknown.*--depth 1 leaves out"),
    "no rank 1": (["rank,examination", "2,1"], "the examination of position 1 is unknown"),
    "limits the wrong way": (
        ["rank,examination,low,high", "1,1,1,.5"],
        ":2: expected finite limits with low below high",
    ),
    "a covariance that is none": (
        ["rank,examination,log_covariances", "1,1,0 x"],
        ":2: expected a number as log_covariances",
    ),
    "a variance below 0": (["rank,examination,log_covariances", "1,1,-1 0"], ":2: expected a variance of 0 or more"),
    "a covariance beyond reason": (["rank,examination,log_covariances", "1,1,0 1e308"], "from -1e6 to 1e6"),
    "two methods": (
        ["rank,examination,method", "1,1,em", "1,1,swaps"],
        ":3: expected one method, found 'em' and 'swaps'",
    ),
}


@pytest.mark.parametrize("case", BIASES)
def test_a_file_of_position_bias_that_is_none_is_refused(tmp_path: Path, case: str) -> None:
    rows, problem = BIASES[case]
    log = events(tmp_path / "log.jsonl", *[A_B] * 3)
    run = run_file(tmp_path / "new.run", cups=["b", "a"])
    with pytest.raises(DataError, match=problem):
        estimated(log, run, position_bias=str(table(tmp_path / "bias.csv", *rows)))


# queries and runs


def test_queries_join_by_their_normal_text_or_by_the_text_of_a_topic(tmp_path: Path) -> None:
    pages = [
        {**each, "query": query}
        for each, query in zip(FOUR, ["Red  cups", "red cups", "RED CUPS", "hats"], strict=True)
    ]
    log = events(tmp_path / "log.jsonl", *pages)
    topics = table(tmp_path / "topics.tsv", "topic\tquery", "q1\tred cups", "q2\tshoes")
    run = run_file(tmp_path / "new.run", q1=["a"], q2=["z"])
    answer = command(Inputs(runs=[str(run)], topics_file=str(topics)), str(log), now=NOW)
    assert answer.pages == 3
    assert answer.notes() == ["1 page of 1 query left out, which not every ranker answers"]
    with pytest.raises(DataError, match=r"new: no query of .* is answered \('red cups', 'hats'\)"):
        estimated(log, run)


def test_several_runs_are_compared_by_page(tmp_path: Path) -> None:
    log = events(tmp_path / "log.jsonl", *FOUR)
    one, other = (run_file(tmp_path / f"{d}.run", cups=[d]) for d in "ab")
    answer = command(Inputs(runs=[str(one), str(other)]), str(log), estimators=["ips"], now=NOW)
    pairs = {(each.run, each.against): each for each in answer.differences}
    assert list(pairs) == [("a", "the log"), ("b", "the log"), ("b", "a")]
    difference = pairs["b", "a"]
    assert difference.value == pytest.approx((4 - 2) / 4)
    assert difference.error == pytest.approx(np.std([-2, 4, 0, 0], ddof=1) / 2)
    with pytest.raises(ConventionError, match="a name of its own"):
        command(Inputs(runs=["uniform", "uniform"]), str(log), now=NOW)


# the command


def test_the_command_writes_all_its_forms(tmp_path: Path) -> None:
    log = events(tmp_path / "log.jsonl", *FOUR)
    plain = json.loads(cranfield("online", "counterfactual", log, "uniform", "--format", "json").out)
    assert [each["estimator"] for each in plain["estimates"]] == ["ips", "snips", "dr"]
    assert plain["estimates"][0]["value"] == 0.75
    rows = cranfield("online", "counterfactual", log, "uniform", "--format", "csv").out.splitlines()
    assert rows[0].startswith("run,estimator,value,error,low,high,effective_size,effective_clicks")
    text = cranfield("online", "counterfactual", log, "new=uniform", "--estimator", "ips")
    assert text.out.startswith("new would get 0.75")
    assert "Support is thin: an effective size of 3.6 pages (below 1,000)" in text.out
    both = cranfield("online", "counterfactual", log, "uniform", "--propensity", "p", "--randomised", "lists")
    assert (both.code, "found both" in both.err) == (2, True)


def test_the_listing_states_the_conditions_of_every_estimator() -> None:
    listed = {row["name"]: row for row in estimators().plain(None)}  # type: ignore[arg-type]
    assert set(listed) == set(ESTIMATORS)
    for name, row in listed.items():
        assert row["conditions"], name
        assert estimator(name).to_dict()["conditions"] == row["conditions"]
