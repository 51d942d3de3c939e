"""Topics from logs: drawn with the stated probabilities, from queries that a second count confirms, and written to be read.

The oracles are exact probabilities, counts by plain loops over the events, and simulations of drawing and of drift.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError
from cranfield.commands import topics as commands
from cranfield.evaluation.topics import CERTAIN, DesignWeights
from cranfield.experiments.log import EventLog
from cranfield.experiments.query_traffic import read_traffic
from cranfield.formats.query_text import luhn, normalised, personal_data
from cranfield.formats.topic_tables import read_topic_table
from cranfield.inputs.topics import topic_table
from cranfield.pooling.topic_coverage import topic_coverage
from cranfield.pooling.topic_sampling import (
    COLUMNS,
    TOPIC_DESIGNS,
    QueryTraffic,
    TrafficStrata,
    allocate,
    sample_topics,
    share_text,
    topic_id,
)
from cranfield.stats.count_drift import CountsOfTwoPeriods, drift_distance, later_total, shifted_shares
from hypotheses import examples
from online_events import Trail
from shell import EXAMPLES, cranfield

PROPORTIONAL = [name for name, design in TOPIC_DESIGNS.items() if design.proportional]
RANDOM = [name for name, design in TOPIC_DESIGNS.items() if design.reaches_all]
FREQUENCIES = np.array([60, 20, 9, 7, 5, 5, 3, 2, 1, 1, 1, 1])


def traffic_of(frequency, where="log", **more) -> QueryTraffic:
    forms = tuple(f"q{i:05d}" for i in range(len(frequency)))
    return QueryTraffic(where, forms, forms, np.asarray(frequency, np.int64), **more)


def zipf(exponent: float, number: int = 20_000, searches: int = 1_000_000) -> np.ndarray:
    share = 1 / np.arange(1, number + 1) ** exponent
    return np.maximum(np.round(searches * share / share.sum()), 1).astype(np.int64)


# probabilities


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_probabilities_by_hand_with_certain_topics_found_in_turn(name):
    # 4 · 60/115 > 1, so 60 is certain; then 3 · 20/55 > 1, so 20 is certain; 2 topics are left for the other 35.
    expected = [1, 1, *(2 * f / 35 for f in FREQUENCIES[2:])]
    assert TOPIC_DESIGNS.named(name).probabilities(FREQUENCIES, 4) == pytest.approx(expected)


@examples(60)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60), st.data())
def test_probabilities_add_up_to_n_and_are_proportional_below_1(frequency, data):
    n = data.draw(st.integers(1, len(frequency)))
    for name, cls in TOPIC_DESIGNS.items():
        probability = cls().probabilities(frequency, n)
        assert probability.sum() == pytest.approx(n), name
        assert (probability >= 0).all()
        assert (probability <= 1 + 1e-12).all()
        below = probability < CERTAIN
        if cls.proportional and below.any():
            assert (probability > 0).all()
            ratios = probability[below] / np.array(frequency)[below]
            assert ratios == pytest.approx(ratios[0])
            assert min(np.array(frequency)[~below], default=10**9) >= max(np.array(frequency)[below])


@examples(60)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), st.integers(0, 10**6), st.data())
def test_every_sample_has_n_different_queries_and_all_certain_ones(frequency, seed, data):
    n = data.draw(st.integers(1, len(frequency)))
    for cls in TOPIC_DESIGNS.values():
        probability = cls().probabilities(frequency, n)
        drawn = cls().draw(probability, np.random.default_rng(seed))
        assert len(set(drawn.tolist())) == len(drawn) == n
        assert set(np.flatnonzero(probability >= CERTAIN)) <= set(drawn.tolist())


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("draws", [8_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_queries_are_drawn_as_often_as_their_probability_says(name, draws):
    design, rng = TOPIC_DESIGNS.named(name), np.random.default_rng(5)
    probability = design.probabilities(FREQUENCIES, 5)
    times = np.zeros(len(FREQUENCIES))
    for _ in range(draws):
        times[design.draw(probability, rng)] += 1
    error = np.sqrt(probability * (1 - probability) / draws)
    bias = (
        0.008 if name == "pareto" else 0
    )  # its probabilities are approximate: in 150,000 draws they were off by 0.0055
    assert (np.abs(times / draws - probability) <= 4.5 * error + bias).all()


def test_systematic_probabilities_against_all_starting_points():
    """Every start between 0 and 1 for a fixed order: the lengths of the intervals are the probabilities."""

    class Fixed:
        def __init__(self, start):
            self.start = start

        def random(self):
            return self.start

        def permutation(self, number):
            return np.arange(number)[::-1]

    design = TOPIC_DESIGNS.named("systematic")
    probability = design.probabilities(FREQUENCIES, 4)
    starts = (np.arange(3500) + 0.5) / 3500
    times = np.zeros(len(FREQUENCIES))
    for start in starts:
        times[design.draw(probability, Fixed(start))] += 1
    assert times / len(starts) == pytest.approx(probability, abs=1e-3)


def test_systematic_sampling_shuffles_first_so_that_neighbours_can_meet():
    design = TOPIC_DESIGNS.named("systematic")
    probability, pairs = np.full(6, 1 / 3), set()
    for seed in range(200):
        pairs.add(tuple(design.draw(probability, np.random.default_rng(seed)).tolist()))
    assert len(pairs) == 15


def hajek(values, frequency, probability):
    """The traffic-weighted mean with its 95 % interval, written out: only topics that are not certain add variance."""
    from scipy.stats import t

    weight = frequency / probability
    mean = (weight * values).sum() / weight.sum()
    c = 1 - probability
    chance = c > 0
    e, c = (weight * (values - mean))[chance], c[chance]
    centre = (c * e).sum() / c.sum()
    variance = len(c) / (len(c) - 1) * (c * (e - centre) ** 2).sum()
    half = t.ppf(0.975, len(c) - 1) * np.sqrt(variance) / weight.sum()
    return mean, mean - half, mean + half


def coverage_of(name: str, exponent: float, scores: str, samples: int, seed: int) -> float:
    frequency, rng = zipf(exponent), np.random.default_rng(seed)
    ranks = np.arange(len(frequency)) / len(frequency)
    if scores == "zeros":
        values = np.where(rng.random(len(frequency)) < 0.8, 0.0, rng.random(len(frequency)))
    else:
        values = np.clip(0.9 - 0.6 * ranks + rng.normal(0, 0.15, len(ranks)), 0, 1)
    truth = (frequency * values).sum() / frequency.sum()
    design = TOPIC_DESIGNS.named(name)
    probability = design.probabilities(frequency, 200)
    covered = 0
    for _ in range(samples):
        drawn = design.draw(probability, rng)
        _, low, high = hajek(values[drawn], frequency[drawn], np.minimum(probability[drawn], 1))
        covered += low <= truth <= high
    return covered / samples


@pytest.mark.parametrize(("exponent", "scores"), [(0.7, "zeros"), (1.3, "falling")])
@pytest.mark.parametrize("name", PROPORTIONAL)
def test_intervals_cover_the_traffic_weighted_mean_in_a_short_simulation(name, exponent, scores):
    assert 0.91 <= coverage_of(name, exponent, scores, 500, 1) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["zeros", "falling"])
@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("name", PROPORTIONAL)
def test_intervals_cover_the_traffic_weighted_mean_in_95_of_100_samples(name, exponent, scores):
    assert 0.93 <= coverage_of(name, exponent, scores, 5000, 2) <= 0.97


# strata


@examples(40)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=80))
def test_equally_frequent_queries_share_a_stratum_and_strata_follow_frequency(frequency):
    strata = TrafficStrata().of(frequency)
    by_frequency = dict(zip(frequency, strata, strict=True))
    assert [by_frequency[f] for f in frequency] == strata
    order = [by_frequency[f] for f in sorted(by_frequency, reverse=True)]
    assert order == sorted(order, key=["head", "torso", "tail"].index)


def test_head_torso_and_tail_by_hand():
    # Traffic 40 + 6 · 5 + 30 · 1 = 100: the middles of the groups are at .20, .55 and .85.
    frequency = [40, *[5] * 6, *[1] * 30]
    assert Counter(TrafficStrata().of(frequency)) == {"head": 1, "torso": 6, "tail": 30}
    assert Counter(TrafficStrata(head=0.6, tail=0.1).of(frequency)) == {"head": 7, "torso": 30}
    assert Counter(TrafficStrata().of([40, *[1] * 60])) == {"head": 1, "tail": 60}  # the middles are at .20 and .70
    with pytest.raises(ConventionError, match=r"head \+ tail must be below 1, got 1\.2"):
        TrafficStrata(head=0.6, tail=0.6).of(frequency)


@examples(40)
@given(
    st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(1, 30), st.integers(1, 1000)), min_size=1),
    st.data(),
)
def test_topics_are_allocated_in_full_and_within_the_strata(strata, data):
    sizes = {name: size for name, (size, _) in strata.items()}
    searches = {name: size * each for name, (size, each) in strata.items()}
    n = data.draw(st.integers(len(sizes), sum(sizes.values())))
    counts = allocate(n, searches, sizes, {})
    assert sum(counts.values()) == n
    assert all(1 <= counts[name] <= size for name, size in sizes.items())


def test_probabilities_within_strata_are_those_of_their_own_traffic():
    traffic = traffic_of(FREQUENCIES, columns={"kind": ["a", "b"] * 6})
    drawn = sample_topics(traffic, 6, strata="kind", allocation={"a": 2, "b": 4}, seed=1)
    assert Counter(topic.stratum for topic in drawn.topics) == {"a": 2, "b": 4}
    rest = FREQUENCIES[2::2].sum()  # 60 is certain in a
    for topic in drawn.topics:
        if topic.stratum == "a":
            assert topic.probability == pytest.approx(1 if topic.frequency == 60 else topic.frequency / rest)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strata": "kind", "allocation": {"a": 2}}, "no stratum 'a'; there are x"),
        ({"strata": "kind", "allocation": {"x": 20}}, "x has 12 queries, so 1 to 12 topics, got 20"),
        ({"strata": "kind", "allocation": {"x": 4}}, "the strata have 4 topics, and n is 5"),
        ({"strata": "shape"}, "log: no column 'shape' for strata; it has kind; traffic makes head, torso and tail"),
        ({"allocation": {"x": 5}}, "allocation is for strata"),
        (
            {"design": "lottery"},
            "no design of a sample of topics 'lottery'; there are systematic, pareto, uniform, top",
        ),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, says):
    traffic = traffic_of(FREQUENCIES, columns={"kind": ["x"] * 12})
    with pytest.raises((DataError, ConventionError), match=says):
        sample_topics(traffic, 5, **options)


def test_more_topics_than_queries_are_refused():
    with pytest.raises(
        DataError, match=r"log: expected 13 queries or more to draw from, found 12; draw 12 topics or fewer"
    ):
        sample_topics(traffic_of(FREQUENCIES), 13)


@pytest.mark.parametrize(
    ("n", "advice"),
    [
        (
            2,
            r"found 1 \(3 more were left out\); draw 1 topic, or add some of the 2 that fewer than 5 units searched for",
        ),
        (3, r"2 that fewer than 5 units searched for: --min-units N$"),
        (4, r"draw 1 topic$"),  # the mail address stays out
    ],
)
def test_too_few_queries_of_enough_units_name_the_option_if_it_helps(n, advice, tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,frequency,units\nmug,9,5\npan,9,4\njug,1,1\nann@example.org,9,9\n", encoding="utf-8")
    found = cranfield("topics", "sample", path, "-n", n)
    assert found.code == 3
    assert re.search(advice, found.err.strip())
    assert cranfield("topics", "sample", path, "-n", n, "--min-units", 1).code == (0 if n < 4 else 3)


def test_a_table_is_read_from_standard_input():
    found = cranfield("topics", "sample", "-", "-n", 1, stdin=b"query,frequency\nmug,3\n")
    assert found.out.startswith(
        "1 topic drawn from 1 query (systematic): it represents 100 % of the searches in <stdin>"
    )
    found = cranfield("topics", "sample", "-", "-n", 1, stdin=b"query,frequency\nmug,-3\n")
    assert (found.code, "<stdin>:2: expected the number of searches" in found.err) == (3, True)


# samples


def test_the_same_seed_draws_the_same_topics_and_another_seed_others():
    samples = [
        [topic.topic for topic in sample_topics(traffic_of(zipf(1, 500)), 20, seed=seed).topics] for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]


def test_all_queries_as_topics_are_all_certain():
    for name in TOPIC_DESIGNS:
        drawn = sample_topics(traffic_of(FREQUENCIES), len(FREQUENCIES), design=name)
        assert [topic.probability for topic in drawn.topics] == [1.0] * len(FREQUENCIES)


def test_the_top_is_the_most_frequent_and_says_that_it_represents_no_others():
    drawn = sample_topics(traffic_of(FREQUENCIES), 4, design="top")
    assert [topic.frequency for topic in drawn.topics] == [60, 20, 9, 7]
    assert drawn.verdict().endswith("they are 83 % of the searches in log and represent no others.")
    assert "does not describe all traffic; --design systematic" in drawn.notes(shell=True)[-1]


def test_a_query_keeps_its_topic_id_whatever_its_spelling_and_the_sample():
    assert topic_id(normalised("USB  Cable")) == topic_id(normalised("usb cable")) == "t2dfe5099a8b0"
    some, more = (sample_topics(traffic_of(zipf(1, 300)), n, seed=n) for n in (20, 100))
    ids = {topic.query: topic.topic for topic in more.topics}
    assert all(ids.get(topic.query, topic.topic) == topic.topic for topic in some.topics)


# queries of logs


def shop_log(folder) -> EventLog:
    """Searches of units for queries in several spellings, with personal data among them."""
    trail, number = Trail(), 0
    for query, units in [
        ("Mug", "abcdef"), ("mug", "abg"), ("  MUG ", "h"), ("Straße", "abcde"), ("STRASSE", "f"),
        ("ann@example.org", "abcdefg"), ("4111 1111 1111 1111", "abcdefg"), ("my secret", "ab"), ("red rug", "abcdeaa"),
    ]:  # fmt: skip
        for unit in units:
            number += 1
            trail.search(unit, f"s{number}", number / 100, query=query, clicks=[(1, 5, 9)])
    trail.add("impression", "a", 9, search="browse", shown=("d1",))
    trail.add(
        "click", "a", 9.5, search="s1", document="d1", query="another text"
    )  # a page has the text of its first event
    log = EventLog(folder, create=True)
    log.append(trail.events)
    return log


def test_an_event_log_is_counted_by_search_and_by_unit(tmp_path):
    shop_log(tmp_path / "log").close()
    traffic = read_traffic(str(tmp_path / "log"))
    assert dict(zip(traffic.queries, traffic.searches.tolist(), strict=True)) == {"Mug": 10, "red rug": 7, "Straße": 6}
    assert traffic.forms == ("mug", "red rug", "strasse")
    assert traffic.spellings == {"mug": {"Mug": 6, "mug": 3, "MUG": 1}, "strasse": {"Straße": 5, "STRASSE": 1}}
    reasons = {each.reason: (each.queries, each.searches) for each in traffic.left_out}
    assert reasons == {
        "fewer than 5 units searched for the query": (1, 2),
        "the query looks like a card number": (1, 7),
        "the query looks like a mail address": (1, 7),
        "the search has no query": (1, 1),
    }
    # a and b searched twice for mugs, a three times for a rug; the other searches are of different units
    assert traffic.repeats == pytest.approx((4 + 4 + 6 + 6 + 9 + 4) / 23)


def test_what_is_left_out_is_counted_and_never_shown(tmp_path):
    shop_log(tmp_path / "log").close()
    traffic = read_traffic(str(tmp_path / "log"))
    drawn = sample_topics(traffic, 3)
    shown = [
        drawn.to_text(limits=True, verbose=True),
        drawn.to_json(),
        drawn.to_csv(),
        drawn.to_html(page=True),
        drawn.to_markdown(),
    ]
    for text in shown:
        assert not any(each in text for each in ("ann@", "4111", "secret"))
    assert "1 query left out (18 % of searches): the query looks like a mail address" in shown[0]
    assert f"they represent {share_text(23 / 40)} of the searches" in shown[0]


def test_ubi_queries_against_a_loop_over_the_rows(shared):
    path = shared / "ubi-esci" / "ubi_queries_events.ndjson"
    searches: dict[str, set[str]] = defaultdict(set)
    units: dict[str, set[str]] = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "user_query" in row and "action_name" not in row and row["user_query"]:
            form = normalised(row["user_query"])
            searches[form].add(row["query_id"])
            units[form].add(row["client_id"])
    traffic = read_traffic(str(path), min_units=2)
    expected = {form: len(ids) for form, ids in searches.items() if len(units[form]) >= 2}
    assert dict(zip(traffic.forms, traffic.searches.tolist(), strict=True)) == expected
    assert not [form for form in searches if personal_data(form)]  # no false alarm in 174 queries of a shop


def test_plain_sessions_are_read(shared):
    traffic = read_traffic(str(shared / "retrotech-sessions" / "dryer_sessions.gz"))
    assert (traffic.queries, traffic.total) == (("dryer",), 5000)


def test_rows_for_searches_and_rows_for_queries_give_the_same_frame(tmp_path):
    rows = [("Red mug", "a"), ("red mug", "b"), ("red mug", "a"), ("iron pan", "a"), ("iron pan", "c")]
    by_search, by_query = tmp_path / "searches.csv", tmp_path / "queries.csv"
    by_search.write_text("query,user\n" + "".join(f"{query},{user}\n" for query, user in rows), encoding="utf-8")
    by_query.write_text("query,frequency,units\nRed mug,1,1\nred mug,2,2\niron pan,2,2\n", encoding="utf-8")
    one, other = (read_traffic(str(path), min_units=2) for path in (by_search, by_query))
    assert one.queries == other.queries == ("red mug", "iron pan")
    assert one.searches.tolist() == other.searches.tolist() == [3, 2]
    with pytest.raises(DataError, match=r"no query is left to draw from \(2: fewer than 5 units .*min_units=1 keeps"):
        read_traffic(str(by_query))


def test_a_table_without_units_says_that_it_cannot_leave_out_queries_of_few_units(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,frequency\nred mug,3\n", encoding="utf-8")
    assert "does not say who searched" in read_traffic(str(path)).notes()[-1]
    with pytest.raises(DataError, match=r"expected a column of units \(units, users, clients, sessions\)"):
        read_traffic(str(path), min_units=2)
    path.write_text("query\nred mug\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"expected a column of units \(unit, user, .* for min_units=2, found none"):
        read_traffic(str(path), min_units=2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("query,frequency\n", "expected a row for each query or for each search, found none"),
        ("name,frequency\nmug,3\n", "1: expected a header with a column query"),
        (
            "query,frequency\nmug,-3\n",
            "2: expected the number of searches of the query, a whole number of 1 or more, found '-3'",
        ),
        ("query,frequency\nmug,nan\n", "2: .* found 'nan'"),
        ("query,frequency\nmug,0\n", "2: .* found '0'; leave queries without searches out"),
        ("query,frequency\nmug,1e300\n", "2: .* found '1e300'"),
        ("query,frequency\nmug,3\npan,4\nmug,2\n", "4: expected each query once, found 'mug' here and in line 2"),
        ("query,frequency\nmug\n", "2: expected 2 columns, found 1"),
        ("query,frequency,units\nmug,3,4\n", r"2: expected at most as many units as searches \(3\), found 4"),
        ("query,frequency\n ,3\n", "no query is left to draw from"),
        ("query,frequency\nann@example.org,3\n", "no query is left to draw from"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_by_row(content, says, tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=says):
        read_traffic(str(path))


def test_a_log_without_queries_is_refused(tmp_path):
    trail = Trail().add("conversion", "a", value=3.0)
    with EventLog(tmp_path / "log", create=True) as log:
        log.append(trail.events)
    with pytest.raises(DataError, match="expected searches"):
        read_traffic(str(tmp_path / "log"))


# personal data


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("mail ann.miller@example.co.uk", "mail address"), ("jürgen@müller.de", "mail address"),
        ("4111 1111 1111 1111", "card number"), ("visa 4111-1111-1111-1111 limit", "card number"),
        ("378282246310005", "card number"), ("5555555555554444", "card number"), ("6011111111111117", "card number"),
        ("+44 20 7946 0958", "phone number"), ("+1 (415) 555-2671", "phone number"), ("415-555-2672", "phone number"),
        ("(415) 555-2672 reviews", "phone number"), ("0171 1234567", "phone number"), ("06 12 34 56 78", "phone number"),
        ("030/1234567", "phone number"), ("0049 171 1234567", "phone number"),
    ],
)  # fmt: skip
def test_card_numbers_phone_numbers_and_mail_addresses_are_personal(query, kind):
    assert personal_data(normalised(query)) == kind


@pytest.mark.parametrize(
    "query",
    [
        "monitor 1920x1080", "1920 x 1080", "iphone 12 128gb", "2019-2020 calendar", "2010 2020", "12-12-2020",
        "2024-01-15 10:30", "lego 75192 10179", "205/55 r16", "195/65r15 205/55 16", "192.168.178.1", "3.14159265358979",
        "10.1016/j.ipm.2020.102034", "9780306406157", "978-0-306-40615-7", "0-306-40615-2", "4006381333931",
        "036000291452", "490154203237518", "b00005n5pf", "100 200 300 mm", "tv @ home", "user@home", "4111111111111112",
    ],
)  # fmt: skip
def test_sizes_years_codes_and_part_numbers_are_not_personal(query):
    assert personal_data(normalised(query)) is None


def ean(length: int, coin: random.Random, head: str = "") -> str:
    digits = head + "".join(str(coin.randrange(10)) for _ in range(length - 1 - len(head)))
    total = sum(int(digit) * (3, 1)[i % 2] for i, digit in enumerate(reversed(digits)))
    return f"{digits}{-total % 10}"


def test_digits_of_other_scripts_count_as_digits():
    arabic = str.maketrans("0123456789", "".join(chr(0x0660 + digit) for digit in range(10)))
    for query, kind in (("4111 1111 1111 1111", "card number"), ("0501234567", "phone number"), ("1920x1080", None)):
        assert personal_data(normalised(query.translate(arabic))) == kind


def test_the_repr_of_traffic_never_names_queries_that_were_left_out(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,frequency\nmug,9\nann@example.org,9\n", encoding="utf-8")
    assert repr(read_traffic(str(path))) == f"<QueryTraffic of {path}: 1 query with 9 searches>"


def test_codes_of_products_are_not_taken_for_personal_data():
    coin = random.Random(3)
    for length in (8, 12, 13):
        assert not [code for code in (ean(length, coin) for _ in range(2000)) if personal_data(code)]
    assert not [code for code in (ean(13, coin, "978") for _ in range(2000)) if personal_data(code)]


def test_luhn_s_check_finds_every_single_wrong_digit():
    number = "4111111111111111"
    wrong = [number[:i] + str(d) + number[i + 1 :] for i in range(16) for d in range(10) if str(d) != number[i]]
    assert luhn(number)
    assert not any(map(luhn, wrong))


# files and commands


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_a_topics_file_reads_back_as_topics_with_their_design(ending, tmp_path):
    path = tmp_path / f"topics.{ending}"
    done = cranfield("topics", "sample", "traffic/march.csv", "-n", 15, "--strata", "department", "-o", path)
    assert done.code == 0, done.err
    table = read_topic_table(str(path))
    drawn = commands.sample(str(EXAMPLES / "traffic/march.csv"), n=15, strata="department")
    assert table.queries == {topic.topic: topic.query for topic in drawn.topics}
    assert table.numbers("frequency") == {topic.topic: topic.frequency for topic in drawn.topics}
    assert table.numbers("inclusion_probability") == {topic.topic: topic.probability for topic in drawn.topics}
    assert set(table.columns["design"].values()) == {"systematic"}
    assert table.columns["stratum"] == table.columns["department"]


def test_queries_with_quotes_tabs_and_other_scripts_read_back(tmp_path):
    queries = ['7" tablet', "検索 エンジン", "=1+1", "a,b", "half\u00a0space", "'quoted'"]
    path = tmp_path / "queries.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["query", "frequency"], *([query, 5] for query in queries)])
    for ending in ("tsv", "csv", "jsonl"):
        done = cranfield("topics", "sample", path, "-n", len(queries), "-o", tmp_path / f"topics.{ending}")
        assert done.code == 0, done.err
        table = topic_table(str(tmp_path / f"topics.{ending}"), None)
        assert sorted(table.queries.values()) == sorted(" ".join(query.split()) for query in queries)


def test_jsonl_topics_are_those_of_a_collection_s_folder(tmp_path):
    (tmp_path / "documents.jsonl").write_text('{"id": "d1", "title": "", "text": "mug"}\n', encoding="utf-8")
    assert cranfield("topics", "sample", "traffic/march.csv", "-n", 5, "-o", tmp_path / "topics.jsonl").code == 0
    table = topic_table(str(tmp_path), None)
    assert len(table.queries) == len(table.numbers("inclusion_probability")) == 5


def test_the_formats_of_a_sample_hold_the_same_topics():
    line = ["topics", "sample", "traffic/march.csv", "-n", 10, "--format"]
    rows = list(csv.DictReader(cranfield(*line, "csv").out.splitlines()))
    values = json.loads(cranfield(*line, "json").out)
    assert list(rows[0])[: len(COLUMNS)] == list(COLUMNS)
    assert [row["query"] for row in rows] == [each["query"] for each in values["topics"]]
    assert [float(row["inclusion_probability"]) for row in rows] == [
        each["inclusion_probability"] for each in values["topics"]
    ]
    assert values["merged"] == [{"query": "seed tray", "spellings": {"seed tray": 2146, "Seed Tray": 210}}]


def test_designs_are_listed_and_explained():
    listed = json.loads(cranfield("topics", "designs", "--format", "json").out)
    assert [each["name"] for each in listed] == list(TOPIC_DESIGNS)
    assert "Rosén (1997)" in cranfield("topics", "designs", "Pareto").out


@pytest.mark.parametrize("options", [{}, {"strata": "department"}, {"design": "pareto", "strata": "traffic"}])
def test_a_topics_file_gives_evaluations_their_design_weights(options, tmp_path):
    """The weighted mean of a census is the mean over all searches, and that of a sample has its probabilities."""
    path, log = tmp_path / "topics.tsv", str(EXAMPLES / "traffic/march.csv")
    drawn = commands.sample(log, n=40, dest=str(path), **options)
    weights = DesignWeights.read(path)
    assert weights.values == pytest.approx({each.topic: each.frequency / each.probability for each in drawn.topics})
    sample = weights.fitted([each.topic for each in drawn.topics]).sample([each.topic for each in drawn.topics])
    assert sample.drawn.tolist() == [not each.certain for each in drawn.topics]
    assert sample.no_interval == ""
    assert sum(weights.values.values()) == pytest.approx(drawn.traffic.total)
    commands.sample(log, n=40, dest=str(path), design="top")
    with pytest.raises(DataError, match="no mean of them describes all traffic"):
        DesignWeights.read(path)


# coverage and drift


def counts_of(frequency, later, name, rng, least=1, repeats=1.0, n=100):
    """A sample of the queries with a frequency of at least `least`, with the later counts, and the later total."""
    frame = np.flatnonzero(frequency >= least)
    design = TOPIC_DESIGNS.named(name)
    probability = design.probabilities(frequency[frame], n)
    drawn = design.draw(probability, rng)
    p = np.where(probability[drawn] >= CERTAIN, 1.0, probability[drawn])
    places = frame[drawn]
    counts = CountsOfTwoPeriods(frequency[places].astype(float), later[places].astype(float), p, p < 1, least, repeats)
    return counts, int(later[frame].sum())


def drift_of(samples: int, name: str, seed: int, draws: int, least: int = 5, queries: int = 4000) -> dict[str, float]:
    """Over simulated logs without drift: coverage of the later total, false alarms of both tests, distance beyond noise."""
    from scipy.stats import t

    rng = np.random.default_rng(seed)
    rate = 1 / np.arange(1, queries + 1)
    rate *= 60_000 / rate.sum()
    covered, alarms, topics, beyond = 0, 0, 0, []
    for _ in range(samples):
        counts, truth = counts_of(rng.poisson(rate), rng.poisson(rate), name, rng, least)
        total = later_total(counts)
        covered += abs(total.total - truth) <= t.ppf(0.975, total.freedom) * total.error
        distance = drift_distance(counts, rng, draws)
        alarms += distance.p <= 0.05
        beyond.append(distance.distance - distance.noise)
        p = shifted_shares(counts)[1]
        topics += p.min() * len(p) < 0.05  # Holm's first step
    return {
        "cover": covered / samples,
        "alarm": alarms / samples,
        "topic": topics / samples,
        "beyond": float(np.mean(beyond)),
    }


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_no_drift_is_found_in_traffic_that_varies_by_chance_in_a_short_simulation(name):
    rates = drift_of(100, name, 3, 99)
    assert rates["cover"] >= 0.88
    assert rates["alarm"] <= 0.12
    assert rates["topic"] <= 0.12
    assert abs(rates["beyond"]) < 0.004


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPORTIONAL)
def test_drift_is_found_in_at_most_5_of_100_logs_that_vary_by_chance(name):
    rates = drift_of(1000, name, 4, 199)
    assert 0.93 <= rates["cover"] <= 0.975
    assert rates["alarm"] <= 0.065
    assert rates["topic"] <= 0.065
    assert abs(rates["beyond"]) < 0.002


def test_drawn_counts_are_compared_without_the_search_that_drew_them():
    """Without the correction, topics that were drawn in proportion to chance counts always seem to lose traffic."""
    rng = np.random.default_rng(8)
    rate = np.full(20_000, 1.5)
    counts, _ = counts_of(rng.poisson(rate), rng.poisson(rate), "systematic", rng, n=4000)
    assert counts.then.mean() - counts.now.mean() == pytest.approx(1, abs=0.1)
    assert counts.earlier.mean() == pytest.approx(counts.now.mean(), abs=0.1)


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 400)), min_size=2, max_size=8))
def test_p_values_of_shares_against_scipy_s_hypergeometric_tails(pairs):
    from scipy.stats import hypergeom

    now, then = (np.array(each, float) for each in zip(*pairs, strict=True))
    counts = CountsOfTwoPeriods(then, now, np.ones(len(now)), np.zeros(len(now), bool))
    whole, later = now.sum() + then.sum(), now.sum()
    both = [(a, whole, a + b, later) for a, b in zip(now, then, strict=True)]
    tails = [min(hypergeom.cdf(*each), hypergeom.sf(each[0] - 1, *each[1:])) for each in both]
    assert shifted_shares(counts)[1] == pytest.approx(np.minimum(2 * np.array(tails), 1), abs=1e-9)


def test_queries_that_just_reached_the_least_count_do_not_look_as_if_they_lost_traffic():
    """With a rate of 3 and at least 5 searches, all counts of the frame were high by chance."""
    rng = np.random.default_rng(10)
    rate = np.where(np.arange(20_000) < 200, 300.0, 3.0)
    counts, _ = counts_of(rng.poisson(rate), rng.poisson(rate), "systematic", rng, least=5, n=2000)
    assert drift_distance(counts, rng, 200).p > 0.05
    counts, _ = counts_of(rng.poisson(rate), rng.poisson(rate), "systematic", rng, least=5, n=2000)
    assert drift_distance(replace(counts, least=1), rng, 200).p < 0.05


def test_two_strata_have_mirrored_intervals():
    """One stratum's share is 1 minus the other's, so what is uncertain in one is uncertain in the other."""
    frequency = np.array([50, 40, 30, 20, 10, 9, 8, 7, 6, 5] * 4)
    traffic = traffic_of(frequency, columns={"kind": ["a"] * 20 + ["b"] * 20})
    later = traffic_of(np.concatenate([frequency[:20], np.random.default_rng(2).permutation(frequency[20:])]))
    a, b = topic_coverage(_table(sample_topics(traffic, 16, strata="kind", seed=2)), later).strata
    assert a.now.low < a.now.share < a.now.high
    assert (a.now.low, a.now.high) == pytest.approx((1 - b.now.high, 1 - b.now.low))


def test_a_query_whose_share_has_doubled_is_found():
    rng = np.random.default_rng(9)
    rate = 6000 / np.arange(1, 1001)
    later = rate.copy()
    later[4] *= 2
    counts, _ = counts_of(rng.poisson(rate), rng.poisson(later), "pareto", rng)
    ratio, p = shifted_shares(counts)
    assert int(np.argmin(p)) == 4
    assert p[4] < 1e-6
    assert ratio[4] == pytest.approx(2, rel=0.15)


def test_the_same_log_is_represented_in_full_and_has_not_drifted():
    path = str(EXAMPLES / "traffic/march.csv")
    drawn = commands.sample(path, n=30)
    coverage = topic_coverage(_table(drawn), drawn.traffic)
    everything = drawn.traffic.covered
    assert coverage.represented.share == pytest.approx(everything)
    assert coverage.own == pytest.approx(drawn.own_share)
    assert coverage.distance.p == 1
    assert not coverage.changed


def _table(drawn):
    from cranfield.formats.topic_tables import TopicTable

    head, *rows = drawn.table()
    columns = {name: {row[0]: str(row[i]) for row in rows} for i, name in enumerate(head) if i > 0}
    return TopicTable("topics.tsv", columns["query"], columns)


def test_a_census_estimates_the_later_traffic_exactly():
    march = read_traffic(str(EXAMPLES / "traffic/march.csv"))
    june = read_traffic(str(EXAMPLES / "traffic/june.csv"))
    coverage = topic_coverage(_table(sample_topics(march, len(march))), june)
    shared = sum(june.of(form) for form in march.forms) / june.everything
    assert coverage.represented == pytest.approx((shared, shared, shared))
    assert coverage.own == pytest.approx(shared)


def test_coverage_of_june_finds_the_drift_and_the_queries_that_are_new():
    """The garden's queries were made 1.6 times as frequent in the example, and six queries were added."""
    done = cranfield("topics", "coverage", "traffic/topics.tsv", "traffic/june.csv", "--format", "json")
    values = json.loads(done.out)
    march = read_traffic(str(EXAMPLES / "traffic/march.csv"))
    june = read_traffic(str(EXAMPLES / "traffic/june.csv"))
    truth = sum(june.of(form) for form in march.forms) / june.everything
    assert values["represented"]["low"] <= truth <= values["represented"]["high"]
    assert values["drift"]["p"] < 0.01


@pytest.mark.parametrize(
    ("repeats", "least", "tested"),
    [(1.5, 5, True), (1.6, 5, False), (1.3, 2, False), (1.1, 2, True), (1.0, None, True)],
)
def test_drift_is_tested_only_where_simulations_showed_that_the_test_holds(repeats, least, tested):
    drawn = sample_topics(traffic_of(zipf(1, 500, 20_000)), 50)
    coverage = topic_coverage(_table(drawn), traffic_of(zipf(1, 500, 20_000), repeats=repeats, min_units=least))
    assert (coverage.distance is not None) == tested
    assert ("drift is tested up to" in coverage.to_text(limits=True)) == (not tested)


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_intervals_of_strata_hold_the_later_shares_in_a_short_simulation(name):
    """Strata of a column, whose first third of the queries becomes 1.6 times as frequent."""
    rng, covered = np.random.default_rng(6), 0
    rate = 60_000 / np.arange(1, 3001) / 8.6
    kind = rng.integers(0, 3, len(rate))
    for seed in range(40):
        then, now = rng.poisson(rate), rng.poisson(rate * np.where(kind == 0, 1.6, 1))
        frame = np.flatnonzero(then >= 5)
        traffic = traffic_of(then[frame], columns={"kind": [str(each) for each in kind[frame]]})
        drawn = sample_topics(traffic, 90, design=name, strata="kind", seed=seed)
        later = traffic_of(np.maximum(now[frame], 1))
        coverage = topic_coverage(_table(drawn), later)
        for each in coverage.strata:
            truth = later.searches[kind[frame] == int(each.name)].sum() / later.total
            covered += each.now.low <= truth <= each.now.high
    assert 0.88 <= covered / 120 <= 0.99


@pytest.mark.parametrize("design", ["uniform", "top"])
def test_topics_not_drawn_by_traffic_estimate_nothing(design):
    drawn = commands.sample(str(EXAMPLES / "traffic/march.csv"), n=30, design=design)
    coverage = topic_coverage(_table(drawn), drawn.traffic)
    assert coverage.represented is None
    assert coverage.own == pytest.approx(drawn.own_share)
    assert f"the design is {design}" in coverage.notes()[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("topic,query\nt1,mug\nt2,MUG\n", "topics 't1' and 't2' both ask 'MUG'"),
        ("topic,kind\nt1,mug\n", "expected a column query"),
        ("topic,query,frequency,inclusion_probability,design\nt1,mug,5,0,pareto\n", "found '0' for topic 't1'"),
        ("topic,query,frequency,inclusion_probability,design\nt1,mug,5,1.5,pareto\n", "at most 1, found '1.5'"),
        ("topic,query,frequency,inclusion_probability,design\nt1,mug,-5,1,pareto\n", "above 0, found '-5'"),
        ("topic,query,frequency,inclusion_probability,design\nt1,mug,5,1,lottery\n", "no design of a sample"),
        ("topic,query,frequency,inclusion_probability,design\nt1,mug,5,1,top\nt2,pan,5,1,pareto\n", "expected one design"),
    ],
)  # fmt: skip
def test_topics_files_that_cannot_be_used_are_refused(content, says, tmp_path):
    path = tmp_path / "topics.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises((DataError, ConventionError), match=says):
        commands.coverage(str(path), str(EXAMPLES / "traffic/june.csv"))
