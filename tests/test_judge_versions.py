"""Frozen versions: computed from a snapshot while others judge, cached by their hash, and noticed where they were changed."""

from __future__ import annotations

import json
import random
import threading
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.judging import Event, current_events, open_log, versions
from cranfield.judging.current_labels import graded_labels
from cranfield.judging.policies import PolicySettings, decide_by_topic, decide_labels
from cranfield.judging.version_cache import VersionCache, hash_of, summary_of
from cranfield.judging.versions import all_versions, freeze, thaw
from databases import KINDS, location_of
from hypotheses import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cranfield.judging import Log
    from cranfield.judging.policies import DecidedGrades

pytestmark = pytest.mark.every_database

ODD_IDS = ["d1", "d2", "é", "a\\b", "\udc80", "-x", 'd"1', "\u2028"]


@pytest.fixture(params=KINDS)
def place(request, tmp_path) -> str:
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    return location_of(request.param, tmp_path, server)


@pytest.fixture
def log(place) -> Iterator[Log]:
    opened = open_log(place)
    yield opened
    opened.close()


def judged(document: str, grade: float, assessor: str = "ann", topic: str = "q", **more: Any) -> Event:
    return Event(topic=topic, document=document, grade=grade, assessor=assessor, **more)


def history(seed: int, n: int = 120) -> list[Event]:
    """Labels in any order of time, adjudications, labels of models and imports, preferences, and withdrawals of a tenth."""
    draw = random.Random(seed)
    events = []
    for number in range(n):
        kind = draw.choice(["judgment"] * 6 + ["cannot-judge", "adjudication", "preference", "skip"])
        one, other = draw.sample(ODD_IDS, 2)
        grade = {"cannot-judge": None, "skip": None, "preference": draw.choice([-1.0, 0.0, 1.0])}
        events.append(
            Event(
                kind=kind,
                topic=draw.choice(["q1", "q2", "q\\3", "é"]),
                document=one,
                other=other if kind == "preference" else "",
                grade=grade.get(kind, float(draw.randrange(4))),
                assessor=draw.choice(["ann", "bob", "c\\d"]),
                time=f"2026-01-{draw.randrange(1, 4):02d}",  # many at the same time
                source="human" if kind == "adjudication" else draw.choice(["human", "human", "model", "import"]),
                repeat=draw.random() < 0.1,
                aspect=draw.choice(["relevance"] * 5 + ["trust"]),
                id=f"{draw.choice(ODD_IDS)}{number}",
            )
        )
    gone = draw.sample(events, n // 10)
    return [*events, *(Event(kind="withdrawal", refers=event.id, assessor=event.assessor) for event in gone)]


@pytest.mark.parametrize("seed", range(3))
def test_current_grades_by_topic_are_those_of_the_pure_function(log, seed):
    events = history(seed)
    for start in range(0, len(events), 7):
        log.add(events[start : start + 7])
    with log.reading() as transaction:
        for aspect in ("relevance", "trust"):
            topics = list(transaction.grades_by_topic(aspect))
            assert sorted(chain.from_iterable(topics)) == sorted(graded_labels(current_events(log.events()), aspect))
            assert [len({each.topic for each in topic}) for topic in topics] == [1] * len(topics)


@pytest.mark.parametrize("policy", ["latest", "adjudicated", "majority", "mean"])
def test_grades_decided_topic_by_topic_are_those_decided_at_once(policy):
    for seed in range(5):
        labels = graded_labels(current_events(history(seed)), "relevance")
        by_topic: dict[str, list[Any]] = {}
        for each in labels:
            by_topic.setdefault(each.topic, []).append(each)
        apart = decide_by_topic(by_topic.values(), policy, PolicySettings())
        at_once = decide_labels(labels, policy, PolicySettings())
        for name in ("policy", "grades", "labels", "contradictions", "adjudicated", "undecided", "left_out"):
            assert getattr(apart, name) == getattr(at_once, name), name
        assert list(apart.grades) == list(at_once.grades)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    )
)
@examples(50)
def test_the_hash_is_over_the_lines_that_json_writes(grades):
    """The first release hashed these lines; a version that it froze must keep its hash."""
    rows = sorted(((topic, document), grade) for topic, own in grades.items() for document, grade in own.items())
    lines = "\n".join(json.dumps([*subject, grade]) for subject, grade in rows)
    assert hash_of(grades) == f"sha256:{sha256(lines.encode()).hexdigest()}"


def during(monkeypatch, act) -> None:
    """Run something while a freeze computes its qrels, once."""
    usual, done = versions.decide_by_topic, []

    def decide(*given: Any) -> DecidedGrades:
        if not done:
            done.append(True)
            act()
        return usual(*given)

    monkeypatch.setattr(versions, "decide_by_topic", decide)


def test_a_version_holds_every_event_before_its_place_and_none_after(place, log, monkeypatch):
    log.add([judged("d1", 1), judged("d2", 2)])

    def judge() -> None:
        other = open_log(place)
        other.add([judged("d1", 3, "bob"), judged("d3", 1)])
        other.add([Event(kind="withdrawal", refers=other.events()[1].id, assessor="ann")])
        other.close()

    thread = threading.Thread(target=judge)
    during(monkeypatch, lambda: (thread.start(), thread.join(60)))
    version, decided = freeze(log, "v1", "latest")
    thread.join(60)
    assert decided.grades == {"q": {"d1": 1.0, "d2": 2.0}}
    assert version.place == 2
    assert thaw(log, "v1").grades == decided.grades
    assert freeze(log, "v2", "latest")[1].grades == {"q": {"d1": 3.0, "d3": 1.0}}


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_a_freeze_counts_an_event_that_was_being_added_or_numbers_it_later(place, log):
    """On a server the event may have got its number already: the freeze waits for it. In a file it comes after."""
    log.add([judged("d1", 1)])
    added, go_on = threading.Event(), threading.Event()

    def add_slowly() -> None:
        other = open_log(place)

        def work(transaction: Any) -> None:
            transaction.add([judged("d2", 2)], "log")
            added.set()
            go_on.wait(60)

        other.write(work)
        other.close()

    outcomes: list[Any] = []
    writer = threading.Thread(target=add_slowly)
    freezer = threading.Thread(target=lambda: outcomes.append(freeze(log, "v", "latest")))
    writer.start()
    assert added.wait(60)
    freezer.start()
    freezer.join(0.2)
    go_on.set()
    writer.join(60)
    freezer.join(60)
    [(version, decided)] = outcomes
    assert len(decided) == len(log.events(up_to=version.place))
    assert thaw(log, "v").grades == decided.grades
    if log.database.dialect == "postgresql":
        assert len(decided) == 2


def test_of_two_freezes_of_one_name_one_is_refused(place, log, monkeypatch):
    log.add([judged("d1", 1)])

    def freeze_too() -> None:
        other = open_log(place)
        other.add([judged("d2", 2)])
        freeze(other, "v", "latest")
        other.close()

    during(monkeypatch, freeze_too)
    with pytest.raises(
        DataError, match="there is a version 'v' already; a frozen one does not change: choose another name"
    ):
        freeze(log, "v", "latest")
    assert [(each.name, each.documents) for each in all_versions(log)] == [("v", 2)]


def test_a_freeze_that_is_cut_off_leaves_nothing(log, monkeypatch):
    log.add([judged("d1", 1)])

    def stop() -> None:
        raise KeyboardInterrupt

    during(monkeypatch, stop)
    with pytest.raises(KeyboardInterrupt):
        freeze(log, "v", "latest")
    assert all_versions(log) == []
    freeze(log, "v", "latest")
    assert [each.name for each in all_versions(log)] == ["v"]


def cached(tmp_path: Path, log: Log) -> tuple[VersionCache, Path]:
    """The cache of a log, and its only file after a freeze."""
    log.version_cache = VersionCache(str(tmp_path / "versions"))
    log.add(
        [judged("d1", 1), judged("d\\2", 2), judged("d1", 3, "bob", time="2020-01-01"), judged("\udc80", 1, topic="é")]
    )
    freeze(log, "v", "latest")
    [file] = (tmp_path / "versions").iterdir()
    return log.version_cache, file


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_cached_version_is_that_of_the_log(tmp_path, log):
    cache, file = cached(tmp_path, log)
    [version] = all_versions(log)
    assert version.hash == f"sha256:{file.name}"
    assert file.read_bytes().partition(b"\n")[2].count(b"\n") == version.documents - 1
    from_cache, from_log = thaw(log, "v"), thaw(log, "v", whole=True)
    for name in ("policy", "settings", "grades", "labels", "contradictions", "adjudicated", "undecided", "left_out"):
        assert getattr(from_cache, name) == getattr(from_log, name), name
    assert cache.summary(version.hash) == summary_of(from_log)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("before", "after"), [(b", 2.0]", b", 3.0]"), (b'"contradictions": 1', b'"contradictions": 0')]
)
def test_a_cached_version_that_was_changed_is_noticed_and_computed_again(tmp_path, log, before, after):
    cache, file = cached(tmp_path, log)
    grades, content = thaw(log, "v").grades, file.read_bytes()
    assert content.count(before) == 1
    file.write_bytes(content.replace(before, after))
    assert cache.summary(f"sha256:{file.name}") is None
    assert not file.exists()
    assert thaw(log, "v").grades == grades
    assert file.read_bytes() == content


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_cache_that_cannot_be_written_does_not_prevent_a_version(tmp_path, log):
    (tmp_path / "versions").write_text("a file, not a folder")
    log.version_cache = VersionCache(str(tmp_path / "versions"))
    log.add([judged("d1", 1)])
    freeze(log, "v", "latest")
    assert thaw(log, "v").grades == {"q": {"d1": 1.0}}
