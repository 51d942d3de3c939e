"""Interleaved lists in a log, by the command: who is the control, which tokens and clicks count, what breaks an experiment."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest

from cranfield.base.errors import BadLineError
from cranfield.commands.experiments import analyze as verb
from cranfield.experiments import Keys, interleave
from cranfield.experiments.interleaving import METHODS
from cranfield.experiments.interleaving.method import ListEvidence
from cranfield.experiments.interleaving.token import KEYS_VARIABLE
from cranfield.experiments.log import EventLog
from cranfield.experiments.plan import read_plan
from online_events import PLAN, START, Trail, plan_file
from shell import cranfield

KEYS = Keys((bytes(range(32)),))
OLD, NEW = ["a", "b", "c", "d"], ["w", "x", "y", "z"]
MIXED = PLAN.replace("control = 0.5\nnew = 0.5", "mixed = 1.0")
TABLE = '[interleave]\nmethod = "team-draft"\nsystems = ["old", "new"]\n'
UNNAMED = '[interleave]\nmethod = "team-draft"\n'


@pytest.fixture(autouse=True)
def _usual_keys(monkeypatch):
    monkeypatch.setenv(KEYS_VARIABLE, KEYS.text())


@dataclass(frozen=True)
class Page:
    """How a page of the log is made; the ordinary one is as a service would log it."""

    rankings: dict[str, list[str]]
    plan: str = "shop"
    keys: Keys = KEYS
    expires: float | None = None
    copied: bool = False  # whether it has the token of the first page
    better: float = 0.75  # how often what the new system brought is clicked
    clicked: str | None = None  # a document that is clicked instead


USUAL = Page({"old": OLD, "new": NEW})


def write_log(folder, pages, units=100, usual=USUAL):
    """A log of two searches a unit, a click on each; `pages` are other pages by their number. It answers with its tokens."""
    trail, coin, rng, tokens = Trail(), random.Random(1), np.random.default_rng(1), []
    for number in range(2 * units):
        page, unit, search = pages.get(number, usual), f"u{number // 2}", f"s{number}"
        day = number // 2 * 12 / units
        if number % 2 == 0:
            trail.expose(unit, "mixed", day=day)
        shown = interleave(page.rankings, 4, coin)
        token = tokens[0] if page.copied else shown.seal(page.keys, search, page.expires, page.plan)
        tokens.append(token)
        about = {"search": search, "credit": token, "shown": shown.documents}
        trail.add("impression", unit, day, 1 + number % 2, **about)
        wanted = "new" if rng.random() < page.better else "old"
        ranks = [rank for rank, team in enumerate(shown.teams) if team == wanted] or [0]
        document = page.clicked or (shown.documents[ranks[0]] if shown.documents else "a")
        trail.add("click", unit, day, 5 + number % 2, search=search, document=document)
    return trail.write(folder / "log"), tokens


def analysed(folder, pages, more=TABLE, usual=USUAL):
    """What the command says on a screen, and the values of the same analysis."""
    log, _ = write_log(folder, pages, usual=usual)
    made = []

    def kept(*arguments, **options):
        made.append(verb(*arguments, **options))
        return made[-1]

    with patch("cranfield.commands.experiments.analyze", kept):
        answer = cranfield("online", "analyze", log, plan_file(folder, more, text=MIXED), columns=80)
    return answer, json.loads(made[0].to_json())


# who is the control


@pytest.mark.parametrize("first", [0, 199])
def test_a_page_that_names_its_systems_in_the_other_order_changes_no_verdict(first, tmp_path):
    swapped = Page({"new": NEW, "old": OLD})
    answer, values = analysed(tmp_path, {first: swapped})
    assert answer.out.startswith("ship: new against old: Δ +")
    assert values["preferences"]["tokens"]["lists"] == 200
    assert "lists" not in answer.err


@pytest.mark.parametrize(
    ("more", "verdict", "pair"),
    [
        ('systems = ["old", "new"]\n', "ship", "new against old"),
        ('systems = ["new", "old"]\n', "stop", "old against new"),
        ('systems = ["old", "new"]\ncontrol = "new"\n', "stop", "old against new"),
        ('systems = ["new", "old"]\ncontrol = "old"\n', "ship", "new against old"),
    ],
)
def test_the_plan_says_which_system_is_the_control(more, verdict, pair, tmp_path):
    answer, _ = analysed(tmp_path, {}, UNNAMED + more)
    assert answer.out.startswith(f"{verdict}: {pair}")


def test_a_plan_that_names_no_systems_takes_the_order_of_its_lists_if_they_agree(tmp_path):
    swapped = Page({"new": NEW, "old": OLD})
    answer, _ = analysed(tmp_path, {0: swapped}, UNNAMED)
    assert answer.out.startswith("ship: new against old")
    assert "the plan names no control: it is 'old', which lists name first" in " ".join(answer.err.split())
    (tmp_path / "half").mkdir()
    answer, values = analysed(tmp_path / "half", dict.fromkeys(range(5), swapped), UNNAMED)
    assert values["verdict"] == "broken"
    assert answer.code == 3
    assert "5 of 200 lists name their systems in another order" in values["reason"]
    assert "systems = ['old', 'new'] into [interleave], the control first" in values["reason"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            'systems = ["old"]\n',
            "expected interleave.systems as a list of two names or more, each once, the control first",
        ),
        ('systems = ["old", "old"]\n', "each once"),
        ('systems = "old, new"\n', "found 'old, new'"),
        ('systems = ["old", "new"]\ncontrol = "mid"\n', "expected a control of old, new, found 'mid'"),
        ('control = "old"\n', "expected a control with systems, found 'old'"),
        ("margin = 2\n", "expected interleave.margin as a number between 0 and 0.5, found 2"),
        ("tau = 1\n", "tau"),
        ('method = "mixed"\n', "no interleaving method 'mixed'"),
        ('method = "balanced"\nsystems = ["a", "b", "c"]\n', "balanced interleaves two systems, found 3"),
    ],
)
def test_a_table_interleave_that_makes_no_sense_is_refused_with_its_line(more, words, tmp_path):
    with pytest.raises(BadLineError) as refused:
        read_plan(plan_file(tmp_path, f"[interleave]\n{more}", text=MIXED))
    assert words in str(refused.value)
    assert "plan.toml:1" in str(refused.value)


# tokens


UNUSABLE = {
    "unreadable": (Page(USUAL.rankings, keys=Keys((bytes(32),))), "analyze with the keys that sealed them"),
    "foreign": (replace(USUAL, plan="other"), "(the first names plan 'other')"),
    "foreign, systems": (Page({"old": OLD, "newer": NEW}), "(the first names system 'newer')"),
    "expired": (replace(USUAL, expires=START.timestamp() - 1), "seal without expiry"),
}


@pytest.mark.parametrize(
    ("what", "number"), [("unreadable", 180), *((what, number) for what in UNUSABLE for number in (2, 3))]
)
def test_tokens_that_cannot_be_used_are_counted_and_break_an_experiment_above_1_percent(what, number, tmp_path):
    page, remedy = UNUSABLE[what]
    answer, values = analysed(tmp_path, dict.fromkeys(range(number), page))
    name = what.partition(",")[0]
    counts = values["preferences"]["tokens"]
    assert counts == {
        "lists": 200,
        "unreadable": 0,
        "foreign": 0,
        "expired": 0,
        "repeated": 0,
        "unnamed": 0,
        name: number,
    }
    assert f"{number} of 200 lists ({number / 2:.1f} %) have a token that cannot be used: {number} {name}" in " ".join(
        answer.both.split()
    )
    if number == 2:  # 1 % exactly
        assert answer.out.startswith("ship: new against old")
    else:
        assert (answer.code, values["verdict"]) == (3, "broken")
        assert "more than 1 % break an experiment. What to do: " in values["reason"]
        assert remedy in values["reason"]


def test_kinds_of_unusable_tokens_are_added_up(tmp_path):
    pages = [page for page, _ in UNUSABLE.values()]
    _, values = analysed(tmp_path, dict(enumerate(pages)))  # 8 of 200, none alone above 1 %
    assert values["verdict"] == "broken"
    assert ": 1 unreadable, 2 foreign (the first names plan 'other'), 1 expired;" in values["reason"]


@pytest.mark.parametrize(("number", "verdict"), [(2, "ship"), (3, "broken")])
def test_a_token_that_comes_again_counts_once(number, verdict, tmp_path):
    _, values = analysed(tmp_path, dict.fromkeys(range(1, 1 + number), replace(USUAL, copied=True)))
    assert values["preferences"]["tokens"]["repeated"] == number
    assert values["verdict"] == verdict


def test_a_second_list_of_one_search_is_left_out_and_a_page_that_is_loaded_again_is_not_counted(tmp_path):
    log, tokens = write_log(tmp_path, {})
    trail = Trail()
    other = interleave(USUAL.rankings, 4, random.Random(5)).seal(KEYS, "s0", plan="shop")
    trail.add("impression", "u0", 0, 3, search="s0", credit=other, shown=("a", "w"), event_id="second")
    trail.add("impression", "u1", 0.5, 3, search="s2", credit=tokens[2], shown=("a", "w"), event_id="again")
    trail.write(tmp_path / "log")
    plan = plan_file(tmp_path, TABLE, text=MIXED)
    values = json.loads(cranfield("online", "analyze", log, plan, "--format", "json").out)
    assert values["preferences"]["tokens"]["lists"] == 201
    assert values["preferences"]["tokens"]["repeated"] == 1


def test_a_token_that_names_no_plan_counts_if_its_systems_are_the_plans(tmp_path):
    answer, values = analysed(tmp_path, {}, usual=replace(USUAL, plan=""))
    assert answer.out.startswith("ship: new against old")
    assert values["preferences"]["tokens"]["unnamed"] == 200


def test_searches_without_a_token_are_counted_in_a_note(tmp_path):
    log, _ = write_log(tmp_path, {})
    with EventLog(log) as opened:
        bare = Trail().search("u1", "bare", 13.0).search("u2", "bare too", 13.0).events
        opened.append([replace(each, event_id=f"bare {n}") for n, each in enumerate(bare)])
    answer = cranfield("online", "analyze", log, plan_file(tmp_path, TABLE, text=MIXED))
    assert answer.out.startswith("ship: new against old")
    assert "note: lists: 2 of 202 searches (1.0 %) carry no token and are left out" in answer.err


def test_tokens_are_looked_at_before_the_horizon_too(tmp_path):
    log, _ = write_log(tmp_path, dict.fromkeys(range(20), UNUSABLE["unreadable"][0]))
    plan = plan_file(tmp_path, TABLE, text=MIXED)
    early = cranfield("online", "analyze", log, plan, "--at", "2025-03-08")
    assert early.out.startswith("broken: 20 of 1")
    sound, _ = write_log(tmp_path / "sound", {})
    assert cranfield("online", "analyze", sound, plan, "--at", "2025-03-08").out.startswith("continue: ")


# several systems


@pytest.mark.parametrize(
    ("wanted", "verdict", "parts"),
    [
        ((0.45, 0.45, 0.1), "not shown", ["new against old: ", "it could have detected", "third against old (stop): "]),
        ((0.3, 0.6, 0.1), "ship", ["new against old: ", "third against old (stop): "]),
        ((0.8, 0.1, 0.1), "stop", ["new against old: ", "third against old: "]),
    ],
)
def test_the_headline_covers_each_system(wanted, verdict, parts, tmp_path):
    log = three_systems(tmp_path, wanted)
    table = '[interleave]\nmethod = "team-draft"\nsystems = ["old", "new", "third"]\n'
    said = json.loads(cranfield("online", "analyze", log, plan_file(tmp_path, table, MIXED), "--format", "json").out)
    assert said["verdict"] == verdict
    places = [said["reason"].find(part) for part in parts]
    assert places[0] == 0
    assert places == sorted(places)
    if verdict == "not shown":
        plan = plan_file(tmp_path, f'method = "sequence"\ntuned = 300\n{table}', MIXED)
        early = cranfield("online", "analyze", log, plan, "--at", "2025-03-13", "--format", "json").out
        assert "; third against old (stop): Δ -" in json.loads(early)["reason"]
        assert json.loads(early)["reason"].endswith("; new: no preference so far")


def three_systems(folder, wanted):
    """A log of 300 units, each of which searches once and clicks on what one of three systems brought."""
    trail, coin, rng = Trail(), random.Random(1), np.random.default_rng(1)
    rankings = {name: [f"{name}{rank}" for rank in range(4)] for name in ("old", "new", "third")}
    for number in range(300):
        unit, search, day = f"u{number}", f"s{number}", number * 12 / 300
        shown = interleave(rankings, 6, coin)
        about = {"search": search, "credit": shown.seal(KEYS, search, None, "shop"), "shown": shown.documents}
        trail.expose(unit, "mixed", day=day).add("impression", unit, day, 1, **about)
        chosen = rng.choice(list(rankings), p=wanted)
        document = next(each for each, team in zip(shown.documents, shown.teams, strict=True) if team == chosen)
        trail.add("click", unit, day, 5, search=search, document=document)
    return trail.write(folder / "log")


# clicks


@pytest.mark.parametrize(("number", "verdict"), [(2, "ship"), (3, "broken")])
def test_clicks_outside_the_list_are_counted_and_break_an_experiment_above_1_percent(number, verdict, tmp_path):
    answer, values = analysed(tmp_path, dict.fromkeys(range(number), replace(USUAL, clicked="advertisement")))
    assert values["verdict"] == verdict
    assert values["preferences"]["clicks"] == {"clicks": 200, "outside": number, "empty": 0, "late": 0, "run_out": 0}
    said = f"{number} of 200 clicks ({number / 2:.1f} %) earn nothing as they are on no list: {number} outside the list"
    assert said in " ".join(answer.both.split())


def test_a_rank_below_the_list_is_outside_where_the_log_has_no_list(tmp_path):
    log, _ = write_log(tmp_path, {})
    trail = Trail().expose("v", "mixed", event_id="v0")
    token = interleave(USUAL.rankings, 4, random.Random(5)).seal(KEYS, plan="shop")
    trail.add("impression", "v", 0, 1, search="sv", credit=token, event_id="v1")
    trail.add("click", "v", 0, 2, search="sv", document="q", position=5, event_id="v2")
    trail.write(tmp_path / "log")
    answer = cranfield("online", "analyze", log, plan_file(tmp_path, TABLE, text=MIXED))
    assert answer.code == 0
    assert "1 of 201 clicks (0.5 %) earn nothing as they are on no list: 1 outside the list" in answer.err


def test_a_click_on_an_empty_list_is_counted_and_no_error(tmp_path):
    answer, values = analysed(tmp_path, dict.fromkeys(range(2), Page({"old": [], "new": []})))
    assert answer.out.startswith("ship")
    assert values["preferences"]["clicks"]["empty"] == 2
    assert "2 on an empty list" in " ".join(answer.err.split())


def test_a_click_after_the_end_of_its_token_is_left_out(tmp_path):
    ends = START.timestamp() + 3  # the page is shown in the 1st second, and clicked in the 5th
    answer, values = analysed(tmp_path, {0: replace(USUAL, expires=ends)})
    assert values["preferences"]["clicks"]["late"] == 1
    assert values["preferences"]["tokens"]["expired"] == 0
    assert "1 after the token expired" in " ".join(answer.err.split())


# what a ranking that runs out hides


@pytest.mark.parametrize(("number", "told"), [(0, False), (20, False), (21, True), (80, True)])
def test_more_than_a_tenth_of_clicks_without_credit_is_for_an_ab_test(number, told, tmp_path):
    usual = replace(USUAL, better=0.5)
    answer, values = analysed(tmp_path, dict.fromkeys(range(number), Page({"old": [], "new": NEW})), usual=usual)
    assert values["verdict"] == "not shown"
    assert values["preferences"]["clicks"]["run_out"] == number
    said = f"{number / 2:.0f} % of clicks earn no credit because a ranking had run out: an A/B test can see what"
    assert (said in " ".join(answer.out.split())) == told
    assert (f"{number} of 200 clicks ({number / 2:.1f} %) earn no credit" in " ".join(answer.err.split())) == (
        number > 0
    )


def test_a_shared_top_earns_nothing_and_hides_nothing_from_interleaving(tmp_path):
    same = Page({"old": OLD, "new": OLD})
    answer, values = analysed(tmp_path, dict.fromkeys(range(80), same))
    assert values["preferences"]["clicks"]["run_out"] == 0
    assert "A/B" not in answer.both


@pytest.mark.parametrize("name", METHODS)
def test_a_click_at_a_rank_where_a_ranking_had_run_out_earns_nothing_by_any_method(name):
    for seed in range(20):
        for lists in ([["a"], list("bcde")], [[], list("bcde")], [list("abc"), list("abc")]):
            shown = interleave(lists, 6, random.Random(seed), name)
            gone = shown.method.run_out(shown.evidence, 2)
            for rank in gone:
                assert not any(shown.earned({rank + 1: 1.0}).values())
            if name == "balanced":  # ends where a ranking does
                assert not gone
            elif lists[0] != lists[1]:
                assert gone if lists[0] else gone == set(range(4))
            else:
                assert not gone


def test_a_token_from_before_tells_a_shared_top_from_a_ranking_that_ran_out_where_it_can():
    draft = METHODS.named("team-draft")
    assert draft.run_out(ListEvidence(((0,), (1,), (2,), (0,))), 2) == {3}
    assert draft.run_out(ListEvidence(((0,), (0,))), 2) == set()  # either
    assert draft.run_out(ListEvidence(((0,), (0,)), (0,)), 2) == {0, 1}
    assert draft.run_out(ListEvidence(((0,), (0,)), (2,)), 2) == set()
