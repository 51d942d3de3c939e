"""One test for each kind: its member comes from the installed package demo-plugins and works like a built-in one.

`tests/test_extensions.py` runs this file in a process of its own, in which the package is installed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cranfield import Scores, compare, evaluate, fuse, pool, read_run
from cranfield.base.errors import ConventionError, DataError
from cranfield.comparison.gate.gate import gate
from cranfield.experiments import Keys, credit, interleave
from cranfield.experiments.clicks.position_bias import position_bias
from cranfield.experiments.design import design, proportion
from cranfield.judging import Event, current_events
from cranfield.judging.llm.probes import PROBES, changes
from cranfield.judging.policies import decide, policies
from cranfield.stats.agreement import Labels, agreement
from cranfield.stats.consensus.method import METHODS as CONSENSUS
from cranfield.stats.consensus.preference import METHODS_OF_PREFERENCES
from cranfield.stats.sequential import spending
from cranfield.workbench.question import QUESTIONS
from ranked_worlds import RankedWorld
from shell import EXAMPLES, cranfield, generator
from test_online_metrics import example as online_example
from test_online_metrics import levels
from workbench import example, served

VALUES = np.random.default_rng(3).normal([0.3, 0.5, 0.8], 0.2, (12, 3))


def scores() -> Scores:
    return Scores.from_table(VALUES, ["one", "other", "third"], measure="AP")


def names(*line: str) -> list[str]:
    """The names that a command lists as JSON."""
    return [each["name"] for each in json.loads(cranfield(*line, "--format", "json").out)]


def test_measures():
    by_peer = cranfield("eval", "qrels.txt", "bm25.run", "-m", "first_one")
    assert by_peer.code == 0, by_peer.err
    assert "firstness" in cranfield("eval", "qrels.txt", "bm25.run", "-m", "firstness").out.splitlines()[0]
    table = evaluate(EXAMPLES / "qrels.txt", [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"], "Firstness")
    found = compare(table, resamples=30)
    assert "Firstness" in found.sentences()[0]
    assert found.to_dict()["pairs"][0]["measure"] == "Firstness"
    assert "Whether the first document is relevant" in cranfield("measures").out
    assert "100 if the document at rank 1" in cranfield("measures", "Firstness").out
    assert "Firstness" in names("measures")
    assert "Whether the first document is relevant" in generator("generate_measures").page()


def test_tests():
    found = compare(scores(), tests="sunshine weather t", correction="none", interval="sunny")
    assert "weather forecast p = 0.031" in found.sentences()[0]
    assert "weather forecast  0.031  formula" in found.to_text()
    pair = found.to_dict()["pairs"][0]
    assert pair["test"] == "weather"
    assert (pair["low"], pair["high"]) == (pair["difference"] - 1, pair["difference"] + 1)
    for command in ("compare", "leaderboard", "stability"):
        text = cranfield(command, "--help-all").out
        assert "weather" in text
        assert "moon" in text
    assert "sunny" in cranfield("compare", "--help-all").out
    assert names("tests").index("weather") < names("tests").index("mcnemar")  # among those of any pairs
    assert "test of the weather forecast" in cranfield("tests", "Sun_Shine").out
    assert "\n### weather\n\ntest of the weather forecast. Was it" in generator("generate_tests").page()
    found = compare(scores(), tests="moon")
    assert "test of the moon p = 0.031" in found.sentences()[0]
    assert found.to_dict()["many"]["AP"]["moon"]["critical"] == 0.5
    assert "by the phase of the moon" in cranfield("tests", "moon").out


def test_corrections():
    found = compare(scores(), correction="twice", resamples=30)
    assert found.pairs[0].corrected == min(1.0, 2 * found.pairs[0].p)
    assert ", doubled " in found.sentences()[0]
    assert found.to_dict()["correction"] == "doubled"
    assert [caution.code for caution in found.cautions if caution.code == "coarse"]  # a bound of any false alarm
    for command in ("compare", "leaderboard"):
        assert "doubled (twice)" in " ".join(cranfield(command, "--help-all").out.split())
    assert "doubled" in names("corrections")
    assert "Doubling" in cranfield("corrections", "twice").out


def test_spending_functions():
    plan = design(proportion(0.3), effect=0.02, methods="looks(looks=3, by=half)")
    assert plan.methods[0].needed > design(proportion(0.3), effect=0.02, methods="fixed").methods[0].needed
    with pytest.raises(DataError, match="no spending function 'all'; there are .*half"):
        spending("all")


def test_looking_methods():
    plan = design(proportion(0.3), effect=0.02, methods="monthly(looks=3)")
    assert plan.methods[0].needed == design(proportion(0.3), effect=0.02, methods="looks(looks=3)").methods[0].needed
    with pytest.raises(ConventionError, match="no method 'daily'; there are .*monthly"):
        design(proportion(0.3), effect=0.02, methods="daily")


def test_probes():
    assert changes()["whispered"]({"text": "LOUD"}, None) == {"text": "loud"}
    assert PROBES["whispered"].missed(1, 2, 3)


def test_agreement_coefficients():
    labels = Labels.of_table([[0, 1, 1], [0, 1, 0]])
    assert agreement(labels, "shake").value == agreement(labels, "fleiss").value
    with pytest.raises(DataError, match="no coefficient 'nod'; there are raw, .*handshake"):
        agreement(labels, "nod")


def test_consensus_methods():
    verdict = CONSENSUS.named("Dictator").decide(Labels.of_table([[1], [1], [0]]))
    assert (verdict.method, verdict.labels) == ("dictator", {0: 1})
    with pytest.raises(ConventionError, match="no consensus method 'coin'; there are .*dictator"):
        CONSENSUS.named("coin")


def test_preference_methods():
    assert METHODS_OF_PREFERENCES.named("ELO").title == "Elo"
    assert "elo" in policies()


def test_policies():
    events = [Event(topic="q", document="d", grade=g, assessor=who) for who, g in zip("abc", [0, 2, 2], strict=True)]
    decided = decide(current_events(events), "Earliest")
    assert (decided.policy, decided.grades) == ("earliest", {"q": {"d": 0.0}})
    assert "earliest" in " ".join(cranfield("judge", "aggregate", "--help-all").out.split())


def test_gate_questions():
    judged = {str(i): {"a": 1} for i in range(8)}
    found = gate(judged, judged, judged, "RR", question="half-drop", max_drop=0.1)
    assert (found.question, found.verdicts[0].max_drop) == ("half-drop", 0.05)
    assert "more than half of what is allowed" in found.to_text()
    assert "half-drop" in cranfield("gate", "--help-all").out


def test_pooling_strategies():
    first, *_ = pool({"a": {"1": {"y": 3.0, "x": 2.0, "z": 1.0}}}, strategy="Alphabet", next=1)
    assert first.document == "x"
    assert "letters are passed over" in cranfield("pool", "strategies").out
    assert "alphabet" in names("pool", "strategies")


def test_topic_designs():
    line = ["topics", "sample", "traffic/march.csv", "-n", 3, "--design", "rarest", "--format", "json"]
    assert [each["frequency"] for each in json.loads(cranfield(*line).out)["topics"]] == [10, 10, 10]
    assert "The rarest queries" in cranfield("topics", "designs").out
    assert "rarest" in names("topics", "designs")


def test_fusion_methods():
    fused = fuse([{"1": {"x": 3.0, "y": 1.0}}, {"1": {"x": 3.0, "y": 2.0}}], "Loudest", norm="none")
    assert fused.to_dict() == {"1": {"x": 36.0, "y": 9.0}}
    assert "loudest" in cranfield("fuse", "--help-all").out
    listed = json.loads(cranfield("fuse", "--list", "--format", "json").out)
    assert "loudest" in [each["usage"] for each in listed["methods"]]
    assert "loudest" in generator("generate_cli").page()


def test_normalisations():
    fused = fuse([{"1": {"x": 3.0, "y": 1.0}}, {"1": {"x": 3.0, "y": 2.0}}], "CombSUM", norm="Tripled")
    assert fused.to_dict() == {"1": {"x": 18.0, "y": 9.0}}
    assert "tripled" in cranfield("fuse", "--list").out


def test_interleaving_methods():
    keys = Keys.new()
    shown = interleave([["a", "b"], ["c", "d"]], 3, Random(1), "Alternate")
    assert (shown.documents, shown.teams) == (("a", "c", "b"), ("A", "B", "A"))
    assert credit(shown.seal(keys), [2], keys=keys).winner == "B"
    assert "By turns, without a coin" in " ".join(cranfield("online", "methods").out.split())
    assert "clicks on even ranks" in cranfield("online", "methods", "alternate").out
    assert "alternate" in cranfield("online", "interleave", "--help-all").out


def test_experiment_metrics(tmp_path):
    log = online_example().write(tmp_path / "log")
    ours, theirs = (levels(log, tmp_path, f'[[primary]]\nmetric = "{name}"\n') for name in ("nosiness", "ctr"))
    assert ours == theirs
    assert "under another name" in cranfield("online", "metrics", "curiosity").out


def test_user_models(tmp_path):
    files = [EXAMPLES / name for name in ("qrels.txt", "bm25.run", "dense.run")]
    line = ["online", "simulate", *files, "-o", tmp_path / "log", "--users", "top", "--units", "5", "--format", "json"]
    events = json.loads(cranfield(*line).out)["events"]
    assert events["click"] == events["impression"]
    assert "Clicks on whatever stands first" in " ".join(cranfield("online", "users").out.split())
    for verb in ("simulate", "bridge"):
        assert re.search(r"\btop\b", cranfield("online", verb, "--help-all").out)


def test_click_models():
    ours, theirs = (
        json.loads(cranfield("online", "clicks", "online/clicks-log", "--model", name, "--format", "json").out)["pairs"]
        for name in ("Patient", "DocumentCTR")
    )
    assert ours == theirs
    assert "who look at everything" in " ".join(cranfield("online", "click-models").out.split())
    assert "patient" in cranfield("online", "clicks", "--help-all").out


def test_click_values():
    answer = cranfield("online", "qrels", "online/log", "--of", "Charm", "--min-views", 1, "--format", "json")
    assert {row["value"] for row in json.loads(answer.out)["judgments"]} == {0.5}
    assert "charm" in cranfield("online", "qrels", "--help-all").out


def test_click_preference_rules():
    line = ["online", "preferences", "online/clicks-log", "--rule", "Top-click", "--format", "json"]
    assert json.loads(cranfield(*line).out)["rule"] == "top-click"
    assert "top-click" in cranfield("online", "preferences", "--help-all").out


def test_position_bias_methods():
    bias = position_bias(RankedWorld("variants", ranks=3, units=60).draw(1), ["tireless"])
    assert bias.examination == {1: 1.0, 2: 1.0, 3: 1.0}
    assert "Users who examine every rank" in " ".join(cranfield("online", "bias-methods").out.split())


def test_counterfactual_estimators():
    line = ["online", "counterfactual", "online/bandit.csv", "uniform", "--estimator", "EveryClick", "--format", "json"]
    answer = json.loads(cranfield(*line).out)
    assert answer["estimates"][0]["value"] == answer["clicks_per_page"]
    assert "Each page counts as it is" in " ".join(cranfield("online", "estimators").out.split())
    assert "every-click" in cranfield("online", "counterfactual", "--help-all").out


def test_systems(tmp_path):
    answer = cranfield("run", "allotment", "--system", "Echo:times=2", "-k", 3, "-o", tmp_path / "echo.run")
    assert answer.code == 0, answer.err
    assert {len(ranking) for ranking in read_run(tmp_path / "echo.run").to_dict().values()} == {3}
    assert "echo" in cranfield("run", "--help-all").out
    assert "how often it says so" in cranfield("run", "--list").out


def test_file_formats(tmp_path):
    loud = tmp_path / "loud.shout"
    assert cranfield("convert", "bm25.run", loud).code == 0
    assert loud.read_text().startswith("SHOUT\nq1 DOC-")
    assert cranfield("convert", loud, tmp_path / "loud.tsv").code == 0
    assert "DOC-" in (tmp_path / "loud.tsv").read_text()
    assert "loud" in cranfield("eval", "qrels.txt", loud, "-m", "NumRet").out
    assert "loud.shout: note [shallow-run]" in cranfield("check", loud).both
    assert "shouted" in names("formats")
    assert "shouted" in cranfield("convert", "bm25.run", tmp_path / "x.run", "--to", "nothing").err


def test_event_formats(tmp_path):
    (tmp_path / "my.diary").write_text("dear diary\n2025-03-01 ann\n2025-03-02 bob\n")
    assert "2 events added of 2 read" in cranfield("online", "ingest", "log", "my.diary", folder=tmp_path).out
    assert cranfield("online", "export", "log", "-o", "other.diary", folder=tmp_path).code == 0
    assert (tmp_path / "other.diary").read_text().splitlines()[2] == "2025-03-02T00:00:00.000000Z bob"
    for verb in ("ingest", "export"):
        assert "diary" in cranfield("online", verb, "--help-all").out


def test_import_layouts(tmp_path):
    (tmp_path / "list.txt").write_text("milk\nbread\nbutter\n")
    done = cranfield("import", "list.txt", "stall", "--from", "Shopping", folder=tmp_path)
    assert (tmp_path / "stall" / "topics.jsonl").read_text().count("butter") == 1, done.both
    assert "shopping" in cranfield("collection", "show", "stall", folder=tmp_path).both
    assert "|shopping" in "".join(cranfield("import", "--help-all").out.split())
    assert "shopping" in cranfield("import", "list.txt", "other", "--from", "nothing", folder=tmp_path).err


def test_workbench_questions_and_pages(tmp_path):
    with served(example(tmp_path / "w")) as site:
        reply = site.client("ann").get("/hello")
        assert reply.status == 200
        assert '<p class="greeting">Hello ann</p>' in reply.text
        assert site.client("ann").get("/hello.json").json()["greeting"] == "Hello ann"
        assert '"/hello"' in reply.text  # the menu
        assert "trec_eval" in QUESTIONS["conventions"]().run(site.bench, lambda *_: None).to_text()


def test_commands():
    assert cranfield("greet", "bm25.run", "--loudly").out == "Hello bm25.run!\n"
    assert re.search(r"^  greet +Say hello to a run\.$", cranfield("--help").out, re.MULTILINE)
    assert "Say it so that all can hear." in cranfield("greet", "--help").out
    assert "did you mean greet" in cranfield("great", "bm25.run").err


def test_the_listing_names_the_package_of_each_member():
    listing = json.loads(cranfield("plugins", "--format", "json").out)
    members = {(kind["group"], each["name"]): each for kind in listing["kinds"] for each in kind["members"]}
    declared = Path(__file__).with_name("entry_points.txt").read_text(encoding="utf-8")
    for group in re.findall(r"^\[(.*)\]$", declared, re.MULTILINE):
        ours = [name for (where, name), each in members.items() if where == group and each["package"] == "demo-plugins"]
        assert ours, group
    assert members["cranfield.measures", "Firstness"]["version"] == "1.2"
    assert members["cranfield.measures", "AP"]["package"] == "cranfield"
    assert listing["problems"] == []
    number = sum(each["package"] == "demo-plugins" for each in members.values())
    assert f"demo-plugins 1.2 adds {number} members." in cranfield("plugins").out
