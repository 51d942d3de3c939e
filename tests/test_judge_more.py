"""What logs come to, in every shape, and the corners of planning, reading and telling that few logs reach."""

from __future__ import annotations

import json

import pytest

from cranfield.base.errors import DataError, FormatError
from cranfield.judging import Event, open_log
from cranfield.judging.label_import import LabelReading, as_preferences, read_events
from cranfield.judging.log import AddedEvents
from cranfield.judging.round_plan import NoLease, Round, RoundItem, plan_items
from cranfield.judging.rounds import lease, open_round
from cranfield.judging.versions import freeze
from shell import cranfield


def label(document: str = "d", grade: float = 1.0, who: str = "ann", **more: object) -> Event:
    return Event(**{"topic": "q", "document": document, "grade": grade, "assessor": who, **more})


@pytest.fixture
def crowd(tmp_path):
    """Three people on six documents, who mostly agree; one label of a model, one that is unsure, repeats."""
    path = tmp_path / "work.db"
    log = open_log(path)
    truth = [0, 1, 2, 0, 1, 2]
    events = [
        label(
            f"d{i}", (grade + (who == "cat" and i == 2)) % 3, who, time=f"2026-01-0{i + 1}T10:00:00Z", seconds=3.0 + i
        )
        for who in ("ann", "bob", "cat")
        for i, grade in enumerate(truth)
    ]
    again = [label(f"d{i}", grade, "ann", repeat=True) for i, grade in enumerate(truth[:3])]
    log.add([*events, *again, label("d0", 2, "gpt", source="model"), label("d9", 1, "bob", sure=False)])
    log.add([Event(kind="cannot-judge", topic="q", document="d8", assessor="cat")])
    log.close()
    return path


@pytest.mark.parametrize("shape", ["table", "json", "csv", "tsv"])
@pytest.mark.parametrize("policy", ["majority", "dawid-skene", "mace", "adjudicated"])
def test_every_shape_of_what_a_policy_makes(crowd, shape, policy):
    answer = cranfield("judge", "aggregate", crowd, "--policy", policy, "--format", shape)
    assert answer.code == 0, answer.err
    if shape == "json":
        found = json.loads(answer.out)
        assert found["grades"]["q"]["d1"] == 1
        assert (policy == "mace") == ("reliability" in found)
    if shape == "csv":
        assert answer.out.startswith("topic,document,grade\n")
    if policy == "adjudicated":
        assert "1 documents are left out: people disagree and nobody has decided" in answer.err


def test_preferences_have_components_and_no_table_of_people(tmp_path):
    log = open_log(tmp_path / "p.jsonl")
    pairs = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("a", "x", 1)]
    log.add([Event(kind="preference", topic="q", document=a, other=b, grade=g, assessor="ann") for a, b, g in pairs])
    answer = cranfield(
        "judge", "aggregate", tmp_path / "p.jsonl", "--policy", "bradley-terry(prior=1)", "--format", "json"
    )
    assert sorted(map(len, json.loads(answer.out)["components"]["q"])) == [1, 3]
    assert "as decided" not in cranfield("judge", "aggregate", tmp_path / "p.jsonl", "--policy", "win-rate").out


@pytest.mark.parametrize("view", ["topic", "pair", "assessor", "self"])
@pytest.mark.parametrize("shape", ["table", "json", "csv"])
def test_every_view_of_agreement(crowd, view, shape):
    answer = cranfield("judge", "agree", crowd, "--view", view, "--resamples", "20", "--all", "--format", shape)
    assert answer.code == 0, answer.err
    assert answer.out


def test_agreement_needs_labels(tmp_path):
    log = open_log(tmp_path / "empty.jsonl")
    log.add([Event(kind="note", topic="q", note="begin here")])
    answer = cranfield("judge", "agree", tmp_path / "empty.jsonl")
    assert (answer.code, "there are no labels" in answer.err) == (3, True)
    frozen = cranfield("judge", "freeze", tmp_path / "empty.jsonl", "v")
    assert (frozen.code, "there is nothing to freeze: the log has no current label" in frozen.err) == (3, True)


@pytest.mark.parametrize("shape", ["table", "json"])
def test_what_changed_is_counted_and_listed(tmp_path, shape):
    path = tmp_path / "work.db"
    log = open_log(path)
    log.add([label(f"d{i}", 0, time="2026-01-01") for i in range(15)])
    freeze(log, "a", "latest")
    log.add([label(f"d{i}", 1 + i % 2, time="2026-01-02") for i in range(13)] + [label("new", 1)])
    freeze(log, "b", "latest")
    log.close()
    answer = cranfield("judge", "diff", path, "a", "b", "--format", shape)
    if shape == "table":
        assert "13 grades changed, 1 added, 0 removed, 2 the same" in answer.out
        assert "and 3 more (--format json has them all)" in answer.out
    else:
        assert len(json.loads(answer.out)["changed"]) == 13
    assert "grade before" not in cranfield("judge", "diff", path, "a", "a").out


def test_what_changed_as_rows(tmp_path):
    from cranfield.judging.versions import version_changes

    found = version_changes("a", {"q": {"x": 1.0, "y": 1.0}}, "b", {"q": {"x": 2.0, "z": 0.0}})
    assert found.to_csv().splitlines() == ["topic,document,before,after", "q,x,1.0,2.0", "q,z,,0.0", "q,y,1.0,"]


def test_gold_is_planned_beside_the_pool(tmp_path):
    from cranfield.formats.pool_files import PoolItem

    items = [PoolItem("q", "a", 1), PoolItem("q", "b", 2)]
    asked = plan_items(items, gold={"q": {"g": 2.0}})
    assert asked[-1] == RoundItem("q", "g", 0, 1.0, "gold", 2.0)
    with pytest.raises(DataError, match="topic 'q', document 'a' is gold and in the pool"):
        plan_items(items, gold={"q": {"a": 2.0}})
    with pytest.raises(DataError, match=r"--double-share: expected a share of 0 to 100%, found 200%"):
        plan_items(items, double=2.0)
    assert sorted(each.overlap for each in plan_items(items, double=0.5)) == [1, 2]


def test_prefs_have_no_room_for_white_space():
    blank = Event(kind="preference", topic="q 1", document="a", other="b", grade=1)
    with pytest.raises(FormatError, match="prefs cannot hold 'q 1', which has white space"):
        as_preferences([blank])
    assert as_preferences([label()]) == b""


def test_a_log_of_other_things_than_objects(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_text('{"topic": "q", "document": "d", "grade": 1}\n[1]\n')
    with pytest.raises(
        DataError, match=r"l.jsonl:2: expected a JSON object with topic, document and grade, found b'\[1\]'"
    ):
        open_log(path).events()
    path.write_text('{"topic": "q", "document": "d", "grade": 1, "id": "a", "colour": "red"}\n')
    with pytest.raises(DataError, match=r"l.jsonl:1: expected fields of topic, .*, found 'colour'"):
        open_log(path).events()
    with pytest.raises(DataError, match="expected a JSON object"):
        Event.of([1])
    with pytest.raises(
        DataError, match="expected a log or a workspace, found a folder; it has no work.db and no documents"
    ):
        open_log(tmp_path)
    with pytest.raises(DataError, match="there is no such log"):
        open_log(tmp_path / "none.jsonl", new=False)


def test_an_empty_addition_is_none(location):
    log = open_log(location)
    assert log.add([]) == AddedEvents(0, 0)
    log.close()


def test_tables_of_answers_with_blank_rows_and_more_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("topic\tdocument\tgrade\tassessor\trank\tsure\nq\td\t1\tann\t3\tno\n\t\t\t\t\t\nq\te\t0\tann\t\t\n")
    fields = {"rank": ["rank"], "sure": ["sure"]}
    first, second = read_events(str(path), LabelReading(fields=fields))
    assert (first.rank, first.sure, second.rank, second.sure) == (3, False, None, True)
    with pytest.raises(FormatError, match="--field: a label has no 'colour'"):
        read_events(str(path), LabelReading(fields={"colour": ["x"]}))
    path.write_text('topic,document,grade\nq,"d,1\n')
    with pytest.raises(DataError, match="expected cells with commas between them"):
        read_events(str(path))


def test_documents_that_a_collection_does_not_have(tmp_path):
    (tmp_path / "a.txt").write_text("q001 0 nowhere 1\n")
    topics = {"q001"}
    from cranfield.judging.event_intake import KnownIds
    from cranfield.judging.label_import import refuse_off

    events = read_events(str(tmp_path / "a.txt"))
    with pytest.raises(DataError, match="there is no document 'nowhere' in the collection; nothing was added"):
        refuse_off(events, {}, (), KnownIds(topics, {"d1"}.__contains__))


def test_an_event_of_another_kind_needs_no_place_in_its_round(log):
    open_round(log, Round(name="r"), [RoundItem("q", "d")])
    log.add([Event(kind="note", topic="q", document="d", note="hm", round="r", id="n")])
    log.add([Event(kind="adjudication", topic="q", document="elsewhere", grade=1, round="r", id="a")])
    log.add([Event(kind="withdrawal", refers="n"), Event(kind="withdrawal", refers="a")])
    assert log.labels() == []
    assert lease(log, "ann", "r")[0].document == "d"


def test_somebody_who_skipped_may_label_after_all(log):
    open_round(log, Round(name="r"), [RoundItem("q", "d")])
    log.add([Event(kind="skip", topic="q", document="d", assessor="ann", round="r", id="s")])
    log.add([Event(kind="skip", topic="q", document="d", assessor="ann", round="r")])
    log.add([label(round="r")])
    assert lease(log, "bob", "r") == NoLease("nothing is left for bob in round 'r'")
    log.add([Event(kind="skip", topic="q", document="d", assessor="ann", round="r")])
    assert len(log.labels()) == 1


def test_a_strategy_that_has_nothing_left(log):
    open_round(log, Round(name="r", strategy="move-to-front", lists={"q": {"one": ["a"], "two": ["a"]}}), [])
    log.add([label("a", round="r")] if lease(log, "ann", "r") else [])
    assert lease(log, "ann", "r") == NoLease("nothing is left for ann in round 'r'")
