"""What an adaptive round asks next, on every kind of log: by runs at once, by the last trained model otherwise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import DataError
from cranfield.judging.adaptive_choice import TopicModel, by_fused_rank, find_models, train_models
from cranfield.judging.event import Event
from cranfield.judging.round_plan import Round
from cranfield.judging.round_recall import round_recall
from cranfield.judging.rounds import answer, lease, open_round
from cranfield.pooling.text_features import DocumentTexts
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.judging import Log
    from cranfield.judging.round_plan import Lease

pytestmark = pytest.mark.every_database
WORDS = {"r": "growing tomatoes under glass", "n": "mending a puncture on the road"}
OTHERS = {f"x{i}": f"other matters of number {i}" for i in range(30)}
TEXTS = DocumentTexts(
    {f"{kind}{i}": WORDS[kind] for kind in "rn" for i in range(8)} | OTHERS, {"q": "tomatoes under glass", "p": "road"}
)
LISTS = {
    "q": {"a": [f"n{i}" for i in range(8)] + [f"r{i}" for i in range(8)]},
    "p": {"a": [f"n{i}" for i in range(4)], "b": ["r0", "n0"]},
}


def begin(log: Log, strategy: str = "cal", **more: object) -> Round:
    plan = Round(name="1", strategy=strategy, lists=LISTS, **more)  # type: ignore[arg-type]
    open_round(log, plan, [])
    return plan


def models(log: Log) -> dict[str, TopicModel]:
    with log.reading() as transaction:
        return {each.topic: each for each in find_models(transaction, "1")}


def leases(log: Log, assessor: str = "ann", n: int = 1) -> list[Lease]:
    found = lease(log, assessor, "1", n)
    assert isinstance(found, list), found
    return found


def say(log: Log, one: Lease, grade: float) -> None:
    event = Event(topic=one.topic, document=one.document, grade=grade, assessor=one.assessor, round="1")
    [outcome], _ = answer(log, [event], one.assessor, "1", 0)
    assert outcome.said == "kept", outcome


def test_documents_come_by_fused_rank_until_a_model_is_trained(log: Log) -> None:
    plan = begin(log)
    assert [one.document for one in leases(log)] == by_fused_rank(plan.rankings["q"])[:1] == ["n0"]
    assert train_models(log, "1", TEXTS) == 2
    assert {topic: each.order[0] for topic, each in models(log).items()} == {"q": "r0", "p": "n0"}
    [bob] = leases(log, "bob")
    assert (bob.topic, bob.document) == ("p", "n0")  # the topic with fewer documents so far
    say(log, leases(log)[0], 0)
    assert [one.document for one in leases(log)] == ["r0"]


def test_only_topics_with_other_labels_are_trained_again(log: Log) -> None:
    begin(log)
    assert train_models(log, "1", TEXTS) == 2
    assert train_models(log, "1", TEXTS) == 0
    [one] = leases(log)
    say(log, one, 1)
    assert train_models(log, "1", TEXTS, ["p"]) == 0
    assert train_models(log, "1", TEXTS, [one.topic, "nothing"]) == 1
    trained = models(log)[one.topic]
    assert (trained.labels, trained.relevant) == (1, 1)
    assert one.document not in trained.order
    assert {word for word, _ in trained.words} <= {*WORDS["r"].split(), *WORDS["n"].split()}


def test_a_withdrawn_label_is_unlearned(log: Log) -> None:
    begin(log)
    train_models(log, "1", TEXTS)
    before = models(log)["q"]
    event = Event(topic="q", document="n3", grade=1, assessor="ann")
    log.add([event])
    train_models(log, "1", TEXTS)
    assert models(log)["q"].order != before.order
    log.add([Event(kind="withdrawal", refers=event.id, assessor="ann")])
    train_models(log, "1", TEXTS)
    after = models(log)["q"]
    assert (after.order, after.words, after.labels) == (before.order, before.words, 0)


def test_a_model_leases_two_documents_and_a_follower_of_runs_one(log: Log) -> None:
    begin(log)
    assert len(leases(log, n=3)) == 2
    open_round(log, Round(name="2", strategy="maxmean", lists=LISTS), [])
    assert len(lease(log, "ann", "2", 3)) == 1


def test_documents_and_topics_without_text_do_not_stop_a_round(log: Log) -> None:
    begin(log)
    few = DocumentTexts({name: text for name, text in TEXTS.documents.items() if name != "r0"}, TEXTS.topics)
    train_models(log, "1", few)
    assert "r0" not in models(log)["q"].order
    judged = set()
    for _ in range(16):
        [one] = leases(log)
        judged.add(one.document)
        say(log, one, 0)
    assert judged == set(LISTS["q"]["a"])
    with pytest.raises(DataError, match="topic 'q' is not among"):
        train_models(log, "1", DocumentTexts(TEXTS.documents, {}))


def test_the_maximum_per_topic_holds_for_every_strategy(log: Log) -> None:
    begin(log, cap=2)
    asked = []
    for _ in range(4):
        [one] = leases(log)
        asked.append(one.topic)
        say(log, one, 1)
    assert sorted(asked) == ["p", "p", "q", "q"]
    assert not isinstance(lease(log, "ann", "1"), list)


def test_recall_counts_topics_with_enough_labels(log: Log) -> None:
    begin(log)
    for _ in range(10):
        [one] = leases(log)
        say(log, one, float(one.document[0] == "r"))
        train_models(log, "1", TEXTS, [one.topic])
    recall = round_recall(log, "1")
    assert [each.topic for each in recall.bounded] == ["q"]
    assert (recall.judged, recall.curve[-1][0]) == (10, 10)
    assert recall.relevant >= 7
    assert recall.expected_left <= recall.most_left
    assert "1 of 2 topics have fewer than 10 labels" in recall.verdict()[1]
    assert round_recall(log, "1", topic="p").verdict() == [
        "1 of 1 topics have fewer than 10 labels, which say nothing yet"
    ]
    with pytest.raises(DataError, match="no topic 'x'"):
        round_recall(log, "1", topic="x")


def collection(folder: Path) -> str:
    """The texts as a collection folder."""
    folder.mkdir()
    rows = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.documents.items()]
    (folder / "documents.jsonl").write_text("\n".join(rows) + "\n")
    topics = [json.dumps({"id": name, "title": text}) for name, text in TEXTS.topics.items()]
    (folder / "topics.jsonl").write_text("\n".join(topics) + "\n")
    return str(folder)


def test_commands_train_with_a_collection_and_go_by_the_last_model_without(
    log: Log, location: str, tmp_path: Path
) -> None:
    begin(log)
    texts = collection(tmp_path / "texts")
    first = cranfield("judge", "next", location, "--assessor", "ann", "--collection", texts)
    assert (first.code, first.out) == (0, "q\tr0\n")
    typed = cranfield(
        *("pool", "judge", "--round", "1", "--judgments", location, "--assessor", "bob", "--collection", texts),
        stdin=b"1\n1\n1\n1\nq\n",
    )
    assert typed.code == 0, typed.err
    shown = [line.split()[1] for line in typed.err.splitlines() if line.startswith("document ")]
    assert shown == ["n0", "n1", "n2", "n3", "r0"]  # of the topic "road"
    assert cranfield("pool", "stop", location, "--round", "1").code == 0
