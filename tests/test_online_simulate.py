"""Simulated users: each model by its chances, logs that others can read, designs that err and find as they should."""

from __future__ import annotations

import json
from collections import Counter

import duckdb
import numpy as np
import pytest

from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments import credit
from cranfield.experiments.assignment import assign_one
from cranfield.experiments.event import UserEvent
from cranfield.experiments.interleaving import METHODS
from cranfield.experiments.interleaving.token import Keys, decode_contents, unseal
from cranfield.experiments.log import EventLog
from cranfield.experiments.simulated_world import DAY, USERS, Audience, World, method_named, users_named
from cranfield.experiments.simulation import false_alarms, needs, plan_for, plan_text, power, simulate
from made_runs import judged, made_qrels, runs
from shell import EXAMPLES, cranfield

KEYS = Keys((bytes(32),))
FILES = (str(EXAMPLES / "qrels.txt"), [str(EXAMPLES / "bm25.run"), str(EXAMPLES / "dense.run")])
CHANCES = {  # click and stop, if irrelevant and if relevant
    "perfect": (0, 1, 0, 0),
    "navigational": (0.05, 0.95, 0.2, 0.9),
    "informational": (0.4, 0.9, 0.1, 0.5),
    "random": (0.5, 0.5, 0, 0),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    monkeypatch.setenv("CRANFIELD_ONLINE_KEYS", KEYS.text())


def world(k: int = 10) -> World:
    return World.of(*FILES, k)


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


# models


def test_the_models_are_those_whose_chances_are_known():
    assert set(USERS) == {*CHANCES}
    for name, chances in CHANCES.items():
        assert tuple(users_named(name).values.values()) == chances


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("gain", [0.0, 1 / 3, 1.0])
def test_the_first_rank_is_clicked_and_is_the_last_as_often_as_the_model_says(name, gain):
    irrelevant, relevant, stay, end = CHANCES[name]
    clicks = users_named(name).clicks(np.array([[gain, 1.0]] * 40_000), rng())
    clicked = clicks[:, 0]
    assert clicked.mean() == pytest.approx(irrelevant + gain * (relevant - irrelevant), abs=0.012)
    if clicked.any():
        stop = stay + gain * (end - stay)
        assert clicks[clicked, 1].mean() == pytest.approx((1 - stop) * relevant, abs=0.02)
    if not clicked.all():
        assert clicks[~clicked, 1].mean() == pytest.approx(relevant, abs=0.02)


@pytest.mark.parametrize("name", USERS)
def test_nobody_clicks_behind_the_end_of_a_list_or_after_the_last_click(name):
    gains = np.tile([1.0, 0.0, 0.5, np.nan, np.nan], (2_000, 1))
    assert not users_named(name).clicks(gains, rng())[:, 3:].any()
    always = users_named(f"{name}(stop_irrelevant=1, stop_relevant=1)")
    assert always.clicks(gains, rng()).sum(axis=1).max() <= 1


def test_own_chances_are_typed_in_brackets():
    own = users_named("perfect(click_relevant=0.8, stop_relevant=0.25)")
    assert str(own) == "perfect(click_relevant=0.8, stop_relevant=0.25)"
    with pytest.raises(ConventionError, match="click_relevant must be between 0 and 1, got 2"):
        users_named("perfect(click_relevant=2)")
    with pytest.raises(ConventionError, match="no model of users 'lazy'; there are perfect"):
        users_named("lazy")


# the world


def test_documents_are_worth_their_grade_over_the_highest():
    made = World.of({"q": {"a": 4, "b": 1, "c": -2}, "other": {"a": 1}}, {"s": {"q": ["b", "x", "a", "c"]}}, 5)
    assert made.gains[0, 0].tolist()[:4] == [0.25, 0.0, 1.0, 0.0]
    assert np.isnan(made.gains[0, 0, 4])
    assert made.passed_over == ("other",)


@pytest.mark.parametrize(
    ("qrels", "systems", "says"),
    [
        ({"q": {"a": 0}}, {"s": {"q": ["a"]}}, "contain no relevant document"),
        ({"q": {"a": 1}}, {"s": {"p": ["a"]}}, "no judged topic is answered by s"),
    ],
)
def test_a_world_without_anything_to_click_on_is_refused(qrels, systems, says):
    with pytest.raises(DataError, match=says):
        World.of(qrels, systems)


@pytest.mark.parametrize("method", METHODS)
def test_perfect_users_prefer_the_list_with_the_relevant_document_by_every_method(method):
    made = World.of({"q": {"a": 1}}, {"good": {"q": ["a", "x", "y", "z"]}, "bad": {"q": ["x", "y", "z", "a"]}}, 4)
    topics = np.zeros(400, int)
    values = made.preferences(users_named("perfect"), (0, 1), topics, rng(), method_named(method))
    assert values.mean() > 0.2
    assert made.preferences(users_named("perfect"), (1, 0), topics, rng(), method_named(method)).mean() < -0.2


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if each.blind_user_prefers_neither])
def test_blind_users_prefer_neither_by_any_fair_method(method):
    values = world(4).preferences(users_named("random"), (0, 1), np.arange(3_000) % 6, rng(), method_named(method))
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(len(values))


# visits


def test_units_return_over_days_in_sessions_about_few_topics():
    audience = Audience(units=500, days=7, sessions=4, searches=2.5, interests=2)
    visits = audience.visits(40, rng())
    assert set(visits.unit.tolist()) == {*range(500)}
    assert 0 <= visits.time.min() <= visits.time.max() < 7 * DAY
    sessions = len(set(visits.session.tolist()))
    assert sessions / 500 == pytest.approx(4, rel=0.1)
    assert len(visits.unit) / sessions == pytest.approx(2.5, rel=0.1)
    topics = Counter(map(tuple, {*zip(visits.unit.tolist(), visits.topic.tolist(), strict=True)}))
    by_unit = Counter(unit for unit, _ in topics)
    assert max(by_unit.values()) <= 2
    days = {(unit, int(time // DAY)) for unit, time in zip(visits.unit.tolist(), visits.time.tolist(), strict=True)}
    assert len(days) > 2 * 500


@pytest.mark.parametrize("wrong", [{"units": 0}, {"days": 0}, {"sessions": 0.5}, {"searches": float("nan")}])
def test_an_audience_of_nobody_is_refused(wrong):
    with pytest.raises(ConventionError, match=next(iter(wrong))):
        Audience(**wrong)


# logs


def simulated(tmp_path, name="log", method=None, systems=2, **how):
    made = World.of(FILES[0], FILES[1][:systems], 5)
    people = Audience(units=60, days=5)
    plan = plan_for(str(tmp_path / f"{name}.toml"), made, people, method)
    with EventLog(tmp_path / name, create=True) as log:
        return made, plan, simulate(made, log, plan, "navigational", people, **how), list(log.events())


def test_a_log_tells_of_an_experiment_as_a_service_would(tmp_path):
    made, plan, answer, rows = simulated(tmp_path)
    events = [UserEvent.of(row) for row in rows]
    assert Counter(event.kind for event in events) == answer.events
    assert set(answer.events) == {"exposure", "impression", "click", "dwell", "conversion"}
    exposures = [event for event in events if event.kind == "exposure"]
    assert len({event.unit for event in exposures}) == len(exposures) == 60
    for event in exposures:
        assert event.variant == assign_one(plan, event.unit).variant
    variant = {event.unit: event.variant for event in exposures}
    pages = {event.search: event for event in events if event.kind == "impression"}
    for page in pages.values():
        system = made.systems.index(variant[page.unit])
        assert page.shown == made.rankings[system][made.topics.index(page.query)]
    for event in events:
        if event.kind in ("click", "dwell"):
            assert pages[event.search].shown[event.position - 1] == event.document
            assert pages[event.search].time < event.time
    assert {event.day for event in events} == {f"2025-01-{day:02}" for day in range(6, 11)}
    assert [tally.units for tally in answer.tallies] == [
        sum(each == name for each in variant.values()) for name in plan.variants
    ]


def test_the_same_seed_adds_nothing_to_a_log_and_another_other_people(tmp_path):
    _, _, first, _ = simulated(tmp_path, method="team-draft", keys=KEYS)
    _, _, again, rows = simulated(tmp_path, method="team-draft", keys=KEYS)
    assert again == first
    assert len(rows) == sum(first.events.values())
    with EventLog(tmp_path / "log") as log:
        assert not log.reused()
    _, _, other, rows = simulated(tmp_path, method="team-draft", keys=KEYS, seed=1)
    assert len(rows) == sum(first.events.values()) + sum(other.events.values())


@pytest.mark.parametrize("method", ["team-draft", "probabilistic(tau=1)", "optimised"])
def test_tokens_in_a_log_give_credit(tmp_path, method):
    made, _, answer, rows = simulated(tmp_path, method=method)
    assert answer.design.startswith(method)
    pages = {row["search"]: row for row in rows if row["kind"] == "impression"}
    clicks: dict[str, list[int]] = {search: [] for search in pages}
    for row in rows:
        if row["kind"] == "click":
            clicks[row["search"]].append(row["position"])
    totals = Counter()
    for search, page in pages.items():
        totals.update(credit(page["credit"], clicks[search], keys=KEYS, search=search).credits)
    assert set(totals) == {*made.systems}
    assert totals["dense"] > totals["bm25"]  # by RR and nDCG as well


def test_before_the_start_all_see_the_control_and_nobody_is_exposed(tmp_path):
    made, _, answer, rows = simulated(tmp_path, before=3)
    assert answer.days == ("2025-01-03", "2025-01-10")
    early = [row for row in rows if row["time"] < "2025-01-06"]
    assert early
    assert {row["kind"] for row in early} <= {"impression", "click", "dwell", "conversion"}
    for row in early:
        if row["kind"] == "impression":
            assert tuple(row["shown"]) == made.rankings[0][made.topics.index(row["query"])]


def test_one_run_makes_it_a_against_a(tmp_path):
    made, plan, answer, rows = simulated(tmp_path, systems=1)
    assert plan.aa
    assert answer.design == "A/A of bm25"
    pages = {(row["query"], tuple(row["shown"])) for row in rows if row["kind"] == "impression"}
    assert len(pages) == len({query for query, _ in pages}) <= len(made.topics)


def test_the_log_is_packed_and_duckdb_reads_it(tmp_path):
    _, _, answer, _ = simulated(tmp_path)
    with EventLog(tmp_path / "log") as log:
        assert not log.waiting()
        relation = log.relation(duckdb.connect())
        assert relation.filter("kind = 'click'").aggregate("count(*)").fetchall() == [(answer.events["click"],)]


def test_a_plan_that_is_there_is_followed_and_units_outside_its_traffic_are_in_no_experiment(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'name = "mine"\nstart = 2025-02-01\ntraffic = 0.5\n[variants]\nold = 0.5\nnew = 0.5\n[overrides]\n"u0-3" = "new"\n'
    )
    made, people = world(), Audience(units=80, days=3)
    plan = plan_for(str(path), made, people)
    with EventLog(tmp_path / "log", create=True) as log:
        answer = simulate(made, log, plan, audience=people)
        exposed = {row["unit"]: row for row in log.events() if row["kind"] == "exposure"}
    assert answer.design == "A/B, old shows bm25, new shows dense"
    assert answer.days == ("2025-02-01", "2025-02-03")
    assert 20 < len(exposed) < 60
    assert exposed["u0-3"]["attributes"] == {"override": "true", "plan": plan.hash}


@pytest.mark.parametrize(
    ("text", "method", "says"),
    [
        (
            "[variants]\na = 0.4\nb = 0.3\nc = 0.3\n",
            None,
            "expected a run for each of a, b, c, or one for all of them; found 2",
        ),
        ("aa = true\n[variants]\na = 0.5\nb = 0.5\n", None, "shows one system to all, found 2 runs"),
        ("[variants]\na = 0.5\nb = 0.5\n", "team-draft", "expected a plan that interleaves"),
        (
            '[variants]\na = 1\n[horizon]\ndays = 7\n[interleave]\nsystems = ["x", "y"]\n',
            None,
            "expected runs of the systems x, y; found bm25, dense",
        ),
    ],
)
def test_a_plan_that_does_not_fit_the_runs_is_refused_before_anything_is_written(tmp_path, text, method, says):
    path = tmp_path / "plan.toml"
    path.write_text(f'name = "x"\n{text}')
    made = world()
    with EventLog(tmp_path / "log", create=True) as log, pytest.raises(DataError, match=says):
        simulate(made, log, plan_for(str(path), made, Audience(), method))
    assert not (tmp_path / "log").exists()


def test_balanced_takes_two_runs():
    made = World.of(made_qrels(5), runs(made_qrels(5), [0.1, 1.0, 2.0]))
    with pytest.raises(DataError, match="balanced takes two runs, found 3"):
        plan_for(None, made, Audience(), "balanced")


def test_a_made_plan_reads_back(tmp_path):
    for systems, method in ((["a"], None), (['odd "name"', "ü"], None), (["a", "b", "c"], "team-draft")):
        path = tmp_path / f"{len(systems)}.toml"
        path.write_text(plan_text(systems, Audience(days=9), method))
        plan = plan_for(str(path), world(), Audience())
        assert plan.days == 9
        assert (plan.interleave is not None) == (method is not None)
        assert plan.systems == (tuple(systems) if method else ())


def test_a_plan_that_interleaves_says_by_which_parameters_and_what_is_shown_before(tmp_path):
    path = tmp_path / "plan.toml"
    more = 'method = "probabilistic"\ntau = 1\nsystems = ["bm25", "dense"]\ncontrol = "dense"\n'
    path.write_text(f'name = "x"\nstart = 2025-01-06\n[variants]\nboth = 1\n[horizon]\ndays = 7\n[interleave]\n{more}')
    made = world()
    with EventLog(tmp_path / "log", create=True) as log:
        answer = simulate(
            made, log, plan_for(str(path), made, Audience()), audience=Audience(units=20), before=2, keys=KEYS
        )
        pages = [row for row in log.events() if row["kind"] == "impression"]
    assert answer.design.startswith("probabilistic(tau=1)")
    for row in pages:
        if row["time"] < "2025-01-06":
            assert tuple(row["shown"]) == made.rankings[1][made.topics.index(row["query"])]
        else:
            assert decode_contents(unseal(row["credit"], KEYS, row["search"])).plan == "x"


# many experiments


def test_tests_by_unit_err_as_often_as_they_may_and_those_by_search_far_more():
    found = {each.test: each for each in false_alarms(world(), audience=Audience(units=400), replicates=300).rates}
    for name in ("click-through", "reciprocal-rank"):
        assert abs(found[f"A/B, {name}, by unit"].share - 0.05) < 0.04
        assert found[f"A/B, {name}, by search (naive)"].share > 0.12


def test_blind_users_are_found_to_prefer_a_system_as_rarely_as_they_may():
    found = power(world(4), "random", Audience(units=60), replicates=150)
    [mixed] = [each for each in found.rates if each.test.startswith("interleaved")]
    assert mixed.share < 0.05 + 4 * 0.018
    assert "for dense" in found.to_text()


def test_interleaving_finds_more_than_click_through_does_and_needs_fewer_searches():
    qrels = judged()
    made = World.of(qrels, runs(qrels, [1.0, 1.2]))
    found = {each.test: each for each in power(made, audience=Audience(units=60), replicates=40).rates}
    mixed, split = found["interleaved, team-draft, by unit"], found["A/B, click-through, by unit"]
    assert mixed.first > split.first + 10
    assert mixed.second <= 1
    needed = {each.design: each for each in needs(made, searches=4_000).rows}
    assert not 2 * needed["interleaved, team-draft"].needed >= needed["A/B, click-through"].needed  # or it is unknown
    assert needed["interleaved, team-draft"].effect < 0


@pytest.mark.slow
def test_the_searches_needed_are_those_that_give_the_power_stated():
    qrels = judged()
    made = World.of(qrels, runs(qrels, [1.0, 1.2]))
    rows = {each.design: each for each in needs(made, searches=40_000).rows}
    n, generator = int(rows["interleaved, team-draft"].needed), rng()
    topics = generator.integers(len(made.topics), size=(400, n))
    values = made.preferences(
        users_named("navigational"), (0, 1), topics.ravel(), generator, method_named("team-draft")
    )
    values = values.reshape(400, n)
    found = values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(n)) > 1.96
    assert found.mean() == pytest.approx(0.8, abs=0.08)


def test_what_is_not_told_apart_is_said(capsys):
    made = World.of({"q": {"a": 1}}, {"s": {"q": ["a", "b"]}, "t": {"q": ["a", "b"]}})
    answer = needs(made, searches=100)
    assert all(np.isnan(each.needed) for each in answer.rows)
    assert "simulate more searches" in answer.notes()[0]
    with pytest.raises(ConventionError, match="two systems or more, found one"):
        needs(World.of({"q": {"a": 1}}, {"s": {"q": ["a"]}}))
    with pytest.raises(ConventionError, match="power: expected two systems"):
        power(World.of({"q": {"a": 1}}, {"s": {"q": ["a"]}}))
    with pytest.raises(ConventionError, match="alpha and power must be between 0 and 1"):
        needs(made, power=1.0)


# the command


def test_the_command_writes_log_and_plan_and_says_so(tmp_path):
    typed = ["online", "simulate", FILES[0], *FILES[1], "-o", "log", "--plan", "plan.toml", "--units", "30"]
    answer = cranfield(*typed, folder=tmp_path)
    assert answer.code == 0, answer.err
    assert "Experiment simulated: A/B" in answer.out
    assert "wrote plan.toml" in answer.err
    assert "1 judged topic missing from a run" in answer.err
    told = json.loads(cranfield(*typed, "--format", "json", folder=tmp_path).out)
    assert sum(told["events"].values()) == len(EventLog(tmp_path / "log"))
    assert {each["variant"] for each in told["variants"]} == {"bm25", "dense"}


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--users", "lazy"], 2, "no model of users 'lazy'"),
        (["--method", "mixed"], 2, "no interleaving method 'mixed'"),
        (["--units", "0"], 2, "units must be 1 or more"),
        (["--plan", str(EXAMPLES / "qrels.txt")], 3, "expected TOML"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(tmp_path, more, code, says):
    answer = cranfield("online", "simulate", FILES[0], *FILES[1], "-o", "log", *more, folder=tmp_path)
    assert answer.code == code
    assert says in answer.err
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("more", [[], ["--method", "team-draft"]])
def test_what_is_simulated_can_be_analyzed(tmp_path, more):
    typed = ["online", "simulate", FILES[0], *FILES[1], "-o", "log", "--plan", "plan.toml", "--units", "240", *more]
    assert cranfield(*typed, folder=tmp_path).code == 0
    answer = cranfield("online", "analyze", "log", "plan.toml", "--format", "json", folder=tmp_path)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["verdict"] in ("ship", "stop", "same", "not shown")


def test_a_simulation_that_fails_leaves_no_plan_behind(tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise DataError("the disk is full")

    words = f"online simulate {EXAMPLES}/qrels.txt {EXAMPLES}/bm25.run {EXAMPLES}/dense.run -o log --plan new.toml --units 5"
    with monkeypatch.context() as patched:
        patched.setattr("cranfield.experiments.simulation.simulate", fail)
        assert cranfield(*words.split(), folder=tmp_path).code == 3
    assert not (tmp_path / "new.toml").exists()
    assert cranfield(*words.split(), folder=tmp_path).code == 0
    assert (tmp_path / "new.toml").exists()
