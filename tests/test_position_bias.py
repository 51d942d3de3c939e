"""Position bias: examination by swaps, harvested interventions and EM, against known curves, formulas and simulations."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.clicks.position_based import PBM
from cranfield.experiments.clicks.position_bias import _disagreements, in_words, position_bias
from cranfield.experiments.clicks.position_bias_methods import POSITION_BIAS_METHODS
from cranfield.experiments.clicks.ranked_pages import RankedPages, read_ranked_pages
from cranfield.experiments.clicks.result_pages import ResultPages
from cranfield.experiments.event import UserEvent
from cranfield.experiments.log import EventLog
from cranfield.stats.rate_ratios import RateRatios
from ranked_worlds import RankedWorld
from shell import cranfield

EVIDENCE = {
    "swaps": "swaps",
    "harvested": "variants",
    "all-pairs": "variants",
    "adjacent-chain": "variants",
    "em": "order",
}
START = datetime(2025, 3, 1, tzinfo=UTC)


def examined(method: str, log: RankedPages) -> np.ndarray:
    """The examination of each rank relative to rank 1."""
    return np.exp(POSITION_BIAS_METHODS.named(method).checked_estimate(log).log)


def pages_of(*searches: tuple[str, str, str], **columns) -> ResultPages:
    """Pages from (query, documents, clicked documents), each document a letter."""
    pages = ResultPages.of([(query, [*shown], [one in clicks for one in shown]) for query, shown, clicks in searches])
    return ResultPages(pages.pairs, pages.start, pages.pair, pages.clicked, **columns)


def in_two_variants(*searches: tuple[int, str, str, str]) -> RankedPages:
    """Pages from (variant, query, documents, clicked documents)."""
    variant = np.array([each[0] for each in searches], np.int32)
    return RankedPages(pages_of(*(each[1:] for each in searches), variant=variant, variants=("a", "b")))


# recovery of a known curve


@pytest.mark.parametrize("method", POSITION_BIAS_METHODS.built_in())
def test_each_method_recovers_the_examination_that_the_clicks_were_simulated_with(method):
    world = RankedWorld(EVIDENCE[method], queries=60, ranks=5, units=20_000)
    margin = 0.06 if method == "adjacent-chain" else 0.03  # errors add up along the chain
    assert examined(method, world.draw(1)) == pytest.approx(world.examination, abs=margin)


@pytest.mark.parametrize("method", ["harvested", "em"])
def test_interleaved_lists_give_the_examination_that_the_clicks_were_simulated_with(method):
    world = RankedWorld("order", queries=60, ranks=5, units=20_000)
    assert examined(method, world.draw(2)) == pytest.approx(world.examination, abs=0.02)


# formulas by hand


def test_harvested_compares_the_two_ranks_of_each_document_against_a_count_by_hand():
    log = in_two_variants(
        *[(0, "q", "xy", "x")] * 4, *[(0, "q", "xy", "")] * 4, (0, "q", "xy", "y"),
        *[(1, "q", "yx", "x")] * 2, *[(1, "q", "yx", "")] * 6, *[(1, "q", "yx", "y")] * 2,
    )  # fmt: skip
    # x: 4 of 9 at rank 1 and 2 of 10 at rank 2; y: 2 of 10 at rank 1 and 1 of 9 at rank 2
    ratio = examined("harvested", log)[1]
    by_hand = [(4, 9, 2, 10), (2, 10, 1, 9)]
    score = [second - (first + second) * n2 * ratio / (n1 + n2 * ratio) for first, n1, second, n2 in by_hand]
    assert sum(score) == pytest.approx(0, abs=1e-9)
    assert 2 / 10 / (4 / 9) < ratio < 1 / 9 / (2 / 10)


def test_all_pairs_against_clicks_weighted_by_the_pages_of_each_ranker_by_hand():
    log = in_two_variants(
        *[(0, "q", "xy", "x")] * 3, *[(0, "q", "xy", "")] * 3, *[(0, "r", "vw", "v")] * 2,
        *[(1, "q", "yx", "x")] * 1, *[(1, "q", "yx", "y")] * 2, *[(1, "r", "vw", "w")] * 1,
    )  # fmt: skip
    # 8 pages of a and 4 of b; v and w are at one rank only. At rank 1: x 3 / 8, y 2 / 4; at rank 2: x 1 / 4, y 0 / 8
    clicks, views = (3 / 8 + 2 / 4, 1 / 4), (6 / 8 + 3 / 4, 3 / 4 + 6 / 8)
    assert examined("all-pairs", log)[1] == pytest.approx(clicks[1] / views[1] / (clicks[0] / views[0]))


def test_the_adjacent_chain_is_the_product_of_the_ratios_of_neighbours():
    log = RankedWorld("variants", queries=30, ranks=4, units=3_000).draw(3)
    chain = examined("adjacent-chain", log)
    rows, arm = log.rows(log.by_variant), log.arm[log.by_variant]
    weight = 1 / np.bincount(log.arm[log.rank == 0])[arm]  # two rankers: each document is at a rank by one of them
    for upper in range(3):
        places = {pair: {*rows.level[rows.stratum == pair].tolist()} for pair in np.unique(rows.stratum).tolist()}
        both = np.isin(rows.stratum, [pair for pair, ranks in places.items() if {upper, upper + 1} <= ranks])
        rate = [
            float((weight * rows.counts)[both & (rows.level == rank)].sum() / weight[both & (rows.level == rank)].sum())
            for rank in (upper, upper + 1)
        ]
        assert chain[upper + 1] / chain[upper] == pytest.approx(rate[1] / rate[0])


def test_swaps_against_the_mean_of_both_arms_when_the_coin_is_fair():
    shown = ["xyz", "zyx"] * 50
    clicks = ["x"] * 40 + ["z"] * 12 + [""] * 48
    swapped = np.array([False, True] * 50)
    log = RankedPages(pages_of(*(("q", *each) for each in zip(shown, clicks, strict=True))), None,
                      np.tile([1, 3], (100, 1)), swapped)  # fmt: skip
    by_rank = [sum(page[rank] in click for page, click in zip(shown, clicks, strict=True)) for rank in (0, 2)]
    assert examined("swaps", log)[2] == pytest.approx(by_rank[1] / by_rank[0])
    assert math.isnan(examined("swaps", log)[1])


def test_em_against_the_position_based_model_of_online_clicks():
    log = RankedWorld("order", queries=20, ranks=5, units=2_000).draw(4)
    fitted = PBM(iterations=5000, tolerance=1e-4, pseudo_clicks=0.1, pseudo_views=0.2).fit(log.pages)
    assert examined("em", log) == pytest.approx(fitted.relative(), rel=1e-9)


# what is compared


def test_documents_that_move_under_one_variant_are_not_harvested_and_counted():
    fixed = [(0, "q", "xy", "x"), (1, "q", "yx", "x"), (1, "q", "yx", "y"), (0, "q", "xy", "y")] * 5
    log = in_two_variants(*fixed, (0, "r", "vw", "v"), (0, "r", "wv", "w"), (1, "r", "vw", "v"))
    assert set(log.pages.pairs.query[log.harvested().stratum].tolist()) == {0}
    assert log.notes() == [
        "2 pairs of query and document were at several ranks under one variant and were not harvested: chance did not "
        "decide these ranks"
    ]


def test_a_log_with_one_ranker_only_is_refused():
    one = RankedPages(pages_of(*[("q", "xy", "x"), ("r", "yz", "y")] * 9))
    for methods in ([], ["harvested"], ["all-pairs"], ["em"]):
        with pytest.raises(DataError, match="a log with one ranker only"):
            position_bias(one, methods)
    with pytest.raises(DataError, match="swaps: no impression has the attributes swap and swapped"):
        position_bias(one, ["swaps"])
    moved = RankedPages(pages_of(*[("q", "xy", "x"), ("q", "yx", "x"), ("q", "yx", "y")] * 9))
    assert position_bias(moved).methods == ("em",)
    assert any("chance decided no rank" in note for note in position_bias(moved).notes())


def test_all_pairs_is_refused_for_interleaved_lists():
    with pytest.raises(DataError, match="all-pairs: needs an A/B test"):
        position_bias(RankedWorld("order", ranks=3, units=50).draw(1), ["all-pairs"])


def test_a_log_without_clicks_is_refused():
    with pytest.raises(DataError, match="no clicks"):
        position_bias(in_two_variants((0, "q", "xy", ""), (1, "q", "yx", "")))


def test_an_em_that_does_not_converge_is_refused():
    with pytest.raises(DataError, match="does not converge: after 3 iterations"):
        position_bias(RankedWorld("order", ranks=3, units=50).draw(1), ["em(iterations=3)"])


# gaps


def with_a_gap() -> RankedPages:
    """Ranks 1 and 2 share documents, and ranks 4 and 5; nothing connects them, and rank 3 has a document of its own."""
    rng, searches = np.random.default_rng(5), []
    for number in range(400):
        arm = number % 2
        shown = ["abcde", "bacde", "abced", "baced"][arm * 3]
        clicks = "".join(d for rank, d in enumerate(shown) if rng.random() < 0.6 / (rank + 1))
        searches.append((arm, "q", shown, clicks))
    return in_two_variants(*searches)


def test_no_curve_crosses_a_gap():
    bias = position_bias(with_a_gap())
    harvested = {row.rank: row for row in bias.rows if row.method == "harvested"}
    assert [harvested[rank].relative_to for rank in range(1, 6)] == [1, 1, None, 4, 4]
    assert (harvested[4].examination, harvested[4].low, harvested[4].high) == (1.0, 1.0, 1.0)
    assert bias.examination.keys() == {1, 2}
    assert "ranks 1–2, rank 3 and ranks 4–5 are not connected: no document was seen at two of them" in bias.notes()
    [_, *rows] = bias.file_rows()
    assert [row[1] == "" for row in rows] == [False, False, True, True, True]


def test_ranks_with_too_few_clicks_are_named():
    rows = [
        (0, "q", "xy", "x"),
        (1, "q", "yx", "y"),
        (0, "r", "vwu", "v"),
        (1, "r", "vuw", "u"),
        (1, "r", "vuw", "v"),
    ] * 4
    with pytest.raises(
        DataError, match="too few clicks on documents that were seen at both; rank 3 has no clicks|no clicks"
    ):
        position_bias(in_two_variants(*rows), ["harvested"])


@pytest.mark.parametrize("randomised", ["variants", "order", "swaps"])
def test_the_first_ranks_alone_against_pages_that_end_there(randomised):
    whole = RankedWorld(randomised, ranks=5, units=400).draw(14)
    rows = whole.rank < 3
    pages = ResultPages(
        whole.pages.pairs,
        np.arange(len(whole.pages) + 1) * 3,
        whole.pages.pair[rows],
        whole.pages.clicked[rows],
        whole.pages.unit,
        whole.pages.variant,
        whole.pages.variants,
    )
    swap = None if whole.swap is None else np.where(whole.swap.max(axis=1, keepdims=True) > 3, 0, whole.swap)
    cut = RankedPages(pages, whole.interleaved, swap, whole.swapped)
    assert position_bias(whole, depth=3).to_dict() == position_bias(cut).to_dict()
    with pytest.raises(ConventionError, match="depth must be 1 or more"):
        position_bias(whole, depth=0)


def test_too_many_units_times_ranks_are_refused(monkeypatch):
    monkeypatch.setattr("cranfield.experiments.clicks.position_bias.MOST_CELLS", 1_000)
    log = RankedWorld("variants", ranks=5, units=400).draw(15)
    with pytest.raises(DataError, match="found 400 times 5; compare fewer ranks with depth"):
        position_bias(log)
    assert position_bias(log, depth=2).examination.keys() == {1, 2}


def test_ranks_in_words():
    assert in_words([1, 2, 5, 7, 8]) == "ranks 1–2, 5 and 7–8"


# the answer


def test_the_answer_comes_from_the_method_that_assumes_least():
    bias = position_bias(RankedWorld("variants", ranks=4).draw(6), ["em", "adjacent-chain", "harvested"])
    assert bias.methods == ("harvested", "adjacent-chain", "em")
    assert bias.to_text().startswith(f"Rank 4 is examined {bias.examination[4]:.3f} [")


def test_every_writer_has_the_same_numbers():
    bias = position_bias(RankedWorld("order", ranks=4).draw(7))
    values = bias.to_dict()
    table = [*csv.DictReader(io.StringIO(bias.to_csv()))]
    assert [float(row["examination"]) for row in table] == [row["examination"] for row in values["examination"]]
    assert [row["rank"] for row in values["trust_bias"]] == [1, 2, 3, 4]
    assert float(table[3]["beta"]) == values["trust_bias"][3]["beta"]
    assert json.loads(bias.to_json())["notes"] == bias.notes()
    [head, *rows] = bias.file_rows()
    assert {row[head.index("method")] for row in rows} == {"harvested"}


def test_em_has_no_interval_if_pairs_have_few_views():
    bias = position_bias(RankedWorld("order", queries=400, ranks=3, units=300).draw(8))
    assert all(row.low is None for row in bias.rows if row.method == "em" and row.rank > 1)
    assert any("em has no interval" in note for note in bias.notes())


# disagreement and trust bias


def confounded(seed: int) -> RankedPages:
    """Pages with swaps; a second half, without swaps, where documents rose because they became more attractive."""
    rng, world = np.random.default_rng(seed), RankedWorld("swaps", queries=40, ranks=4, units=2_000)
    log = world.draw(seed)
    rank = log.rank.reshape(-1, 4)
    later = rng.random(len(rank)) < 0.5
    pair, clicked = (each.reshape(-1, 4).copy() for each in (log.pages.pair, log.pages.clicked))
    pair[later] = pair[later, ::-1]
    clicked[later] = rng.random((int(later.sum()), 4)) < 0.75 * (rank[later] + 1.0) ** -1.6
    swap = np.where(later[:, None], 0, log.swap)
    pages = ResultPages(log.pages.pairs, log.pages.start, pair.ravel(), clicked.ravel(), log.pages.unit)
    return RankedPages(pages, None, swap, log.swapped & ~later)


def test_methods_disagree_where_relevance_changed_with_the_rank():
    bias = position_bias(confounded(9))
    assert (bias.method, bias.examination[4]) == ("swaps", pytest.approx(4**-0.8, abs=0.1))
    assert {(each.one, each.other) for each in bias.disagreements} == {("swaps", "em")}
    assert any(note.startswith("swaps and em disagree by more than 5%") for note in bias.notes())


def test_methods_are_compared_by_the_units_that_both_use_against_their_difference_by_hand():
    rng = np.random.default_rng(1)
    shared, own = rng.normal(0, 0.05, (100, 2)), rng.normal(0, 0.002, (100, 2))
    zeros, log = np.zeros(2, int), np.array([0.0, -1.0])
    one = RateRatios(log, zeros, zeros, shared)
    other = RateRatios(log - [0, 0.12], zeros, zeros, shared + own)
    assert one.error[1] > 0.4  # each interval is far wider than the difference
    methods = [POSITION_BIAS_METHODS.named(name) for name in ("harvested", "em")]
    [found], comparisons = _disagreements(methods, [one, other], 0.05)
    z = (0.12 - math.log(1.05)) / math.sqrt((own[:, 1] ** 2).sum())
    assert (found.rank, found.one, found.other) == (2, "harvested", "em")
    assert found.p == pytest.approx(2 * math.erfc(z / math.sqrt(2)))  # Holm over two comparisons
    assert comparisons == 2


def test_trust_bias_is_found_and_alpha_and_beta_are_those_of_the_simulation():
    beta = (0.2, 0.12, 0.06, 0.0)
    world = RankedWorld("order", queries=150, ranks=4, units=12_000, beta=beta)
    bias = position_bias(world.draw(10), ["harvested"])
    for each in bias.trust[1:]:
        alpha = world.examination[each.rank - 1]
        assert each.alpha == pytest.approx(alpha, abs=0.06)
        assert each.beta == pytest.approx(beta[each.rank - 1] - alpha * beta[0], abs=0.02)
    assert any(note.startswith("trust bias at rank") for note in bias.notes())


def test_trust_bias_is_not_estimated_from_few_queries():
    assert position_bias(RankedWorld("order", queries=15, ranks=3).draw(1)).trust == ()


# simulations: coverage and false alarms

SIMULATED = {
    "swaps": RankedWorld("swaps", ranks=5, units=600),
    "variants": RankedWorld("variants", ranks=5, units=600),
    "interleaving": RankedWorld("order", ranks=5, units=600),
    "few views": RankedWorld("order", queries=2_000, ranks=4, units=600),
    "small": RankedWorld("swaps", queries=10, ranks=5, units=500, searches=4),
    "ten ranks": RankedWorld("order"),
}


def tally(world: RankedWorld, runs: int) -> dict[str, float]:
    """The coverage of each kind of interval, and how often a run has a false sentence."""
    held: dict[str, list[bool]] = {}
    disagree = trust = 0
    for seed in range(runs):
        bias = position_bias(world.draw(seed))
        truth = world.examination
        for row in bias.rows:
            if row.rank > 1 and row.relative_to == 1 and row.low is not None:
                held.setdefault(row.method, []).append(row.low <= truth[row.rank - 1] <= row.high)
        for each in bias.trust[1:]:
            held.setdefault("alpha", []).append(each.alpha_low <= truth[each.rank - 1] <= each.alpha_high)
            held.setdefault("beta", []).append(each.beta_low <= 0 <= each.beta_high)
        disagree += bool(bias.disagreements)
        trust += any(note.startswith("trust bias at") for note in bias.notes())
    return {name: float(np.mean(each)) for name, each in held.items()} | {
        "disagree": disagree / runs,
        "trust": trust / runs,
    }


@pytest.mark.parametrize("world", ["swaps", "variants", "interleaving", "few views"])
def test_intervals_cover_and_false_sentences_are_rare_in_a_simulation(world):
    shares = tally(SIMULATED[world], 25)
    assert shares.pop("disagree") <= 0.15
    assert shares.pop("trust") <= 0.2
    assert shares
    assert all(0.88 <= share <= 0.99 for share in shares.values()), shares


@pytest.mark.slow
@pytest.mark.parametrize("world", SIMULATED)
def test_intervals_cover_and_false_sentences_are_rare_in_the_whole_simulation(world):
    shares = tally(SIMULATED[world], 200 if world == "ten ranks" else 500)
    assert shares.pop("disagree") <= 0.06
    assert shares.pop("trust") <= 0.08
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares


# logs


def write_log(folder, log: RankedPages, **exposure) -> str:
    """An event log of pages: their impressions with tokens and swaps, clicks, and exposures of units to variants."""
    pages, events = log.pages, []
    names = pages.pairs.names()
    for number in range(len(pages)):
        rows = slice(pages.start[number], pages.start[number + 1])
        shown = [names[pair] for pair in pages.pair[rows]]
        about = {"unit": f"u{pages.unit[number]}", "time": (START + timedelta(seconds=number)).isoformat()}
        if pages.variant is not None:
            own = {"experiment": "ranker", "variant": pages.variants[pages.variant[number]]}
            events.append(UserEvent(event_id=f"x{number}", kind="exposure", **about, **own))
        attributes = {}
        if log.swap is not None and log.swap[number].any():
            attributes = {"swap": "-".join(map(str, log.swap[number])), "swapped": str(log.swapped[number]).lower()}
        token = "sealed" if log.interleaved is not None and log.interleaved[number] else None
        about["time"] = (START + timedelta(seconds=number + 0.5)).isoformat()
        impression = {"query": shown[0][0], "shown": tuple(d for _, d in shown), "credit": token}
        about["search"] = f"s{number:06}"
        events.append(
            UserEvent(event_id=f"i{number}", kind="impression", attributes=attributes or None, **impression, **about)
        )
        clicks = (
            (rank, {"document": shown[rank][1], "position": int(rank) + 1})
            for rank in np.flatnonzero(pages.clicked[rows])
        )
        events += [UserEvent(event_id=f"c{number}-{rank}", kind="click", **what, **about) for rank, what in clicks]
    with EventLog(folder, create=True) as opened:
        opened.append(events)
    return str(folder)


@pytest.mark.parametrize("randomised", ["variants", "order", "swaps"])
def test_a_log_gives_the_answer_of_the_pages_that_it_was_written_from(tmp_path, randomised):
    pages = RankedWorld(randomised, queries=25, ranks=4, units=150, searches=4).draw(11)
    with EventLog(write_log(tmp_path / "log", pages)) as log:
        read = read_ranked_pages(log)
    own, theirs = (position_bias(each).to_dict() for each in (pages, read.pages))
    assert {**own, "examination": 0, "trust_bias": 0} == {**theirs, "examination": 0, "trust_bias": 0}
    for kind in ("examination", "trust_bias"):
        for one, other in zip(own[kind], theirs[kind], strict=True):
            assert one == pytest.approx(other, abs=1e-9)


def test_the_command_prints_the_answer_and_writes_the_curve(tmp_path):
    log = write_log(tmp_path / "log", RankedWorld("variants", queries=15, ranks=3, units=200).draw(12))
    path = tmp_path / "bias.csv"
    answer = cranfield("online", "position-bias", log, "-o", path)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("Rank 3 is examined 0.")
    with open(path, encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    plain = json.loads(cranfield("online", "position-bias", log, "--format", "json").out)
    curve = [row["examination"] for row in plain["examination"] if row["method"] == "harvested"]
    assert [float(row["examination"]) for row in rows] == curve
    assert "harvested" in cranfield("online", "bias-methods").out
    assert "Intrusive" in cranfield("online", "bias-methods", "harvested").out


def test_counterfactual_reads_the_curve(tmp_path):
    from cranfield.experiments.counterfactual.examination import read_examination

    log = write_log(tmp_path / "log", RankedWorld("variants", queries=15, ranks=3, units=200).draw(12))
    assert cranfield("online", "position-bias", log, "-o", tmp_path / "bias.csv").code == 0
    curve = read_examination(str(tmp_path / "bias.csv"))
    rows = json.loads(cranfield("online", "position-bias", log, "--method", "harvested", "--format", "json").out)[
        "examination"
    ]
    assert curve.keys() == {1, 2, 3}
    assert (curve[1].value, curve[1].error) == (1, 0)
    errors = [math.log(row["high"] / row["low"]) / 2 / 1.959964 for row in rows]
    assert [curve[rank].covariances[rank - 1] ** 0.5 for rank in (1, 2, 3)] == pytest.approx(errors, abs=1e-6)
    assert curve[2].covariances[2] == curve[3].covariances[1] > 0


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"swap": "1-9", "swapped": "true"}, "expected two different ranks from 1 to 2"),
        ({"swap": "1-1", "swapped": "true"}, "expected two different ranks"),
        ({"swap": "one", "swapped": "true"}, "expected two ranks as attribute swap, such as 1-4, found 'one'"),
        ({"swapped": "true"}, "expected two ranks as attribute swap, such as 1-4, found none"),
        ({"swap": "1-2"}, "expected true or false as attribute swapped"),
        ({"swap": "1-2", "swapped": "yes"}, "found 'yes'"),
    ],
)
def test_a_swap_that_cannot_be_read_names_its_search(tmp_path, attributes, says):
    about = {"time": START.isoformat(), "unit": "u", "search": "s1"}
    events = [
        UserEvent(event_id="i", kind="impression", query="q", shown=("x", "y"), attributes=attributes, **about),
        UserEvent(event_id="c", kind="click", document="x", position=1, **about),
    ]
    with EventLog(tmp_path / "log", create=True) as log:
        log.append(events)
    answer = cranfield("online", "position-bias", tmp_path / "log")
    assert answer.code == 3
    assert f"search 's1': {says}" in answer.err or says in answer.err


def test_wrong_options_are_refused(tmp_path):
    log = write_log(tmp_path / "log", RankedWorld("variants", queries=5, ranks=3, units=60).draw(13))
    for line, code, says in (
        (["--method", "guess"], 2, "no method of position bias 'guess'"),
        (["--alpha", "2"], 2, "alpha must be between 0 and 1"),
        (["-o", tmp_path / "bias.run"], 2, "expected a file that ends in csv, tsv or jsonl"),
        (["--experiment", "other"], 3, "no exposures to experiment"),
    ):
        answer = cranfield("online", "position-bias", log, *line)
        assert (answer.code, says in answer.err) == (code, True), answer.err
    with pytest.raises(ConventionError):
        position_bias(RankedWorld("variants", ranks=3, units=60).draw(1), alpha=math.nan)
