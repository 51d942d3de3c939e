"""Current labels are kept up to date as events arrive: on every kind of log they are those of all events.

A story is a list of steps drawn from a seed: labels of people and models, preferences, adjudications, withdrawals, imports
of a collection's file of judgments, pseudonyms. Frozen versions come out as they were frozen, whatever follows.
"""

from __future__ import annotations

import random
import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

import cranfield as cf
from cranfield.judging import Event, current_events, open_log
from cranfield.judging.collection_judgments import JudgmentFile, import_judgments
from cranfield.judging.current_labels import graded_labels, rated_labels
from cranfield.judging.event import COLLECTION, RELEVANCE, instant
from cranfield.judging.log_queries import decide_log
from cranfield.judging.policies import ONE_SET, PEOPLE, PolicySettings, decide
from cranfield.judging.pseudonyms import pseudonymise
from cranfield.judging.versions import freeze, thaw
from databases import KINDS, location_of

if TYPE_CHECKING:
    from cranfield.judging import Log

pytestmark = pytest.mark.every_database
POLICIES = ("latest", "adjudicated", "majority")
STEPS = ["label"] * 8 + ["adjudication"] * 2 + ["preference", "cannot-judge", "note", "model", "freeze", "pseudonym"]
STEPS += ["withdraw"] * 4 + ["import", "freeze"] * 2


def file_of(text: str) -> JudgmentFile:
    content = text.encode()
    return JudgmentFile("qrels.txt", sha256(content).hexdigest(), lambda: cf.read_qrels(content) if text else None)


class Story:
    """A log, and what was done to it."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log, self.draw = log, random.Random(seed)
        self.people = ["ann", "bob", "cat"]
        self.frozen: dict[str, Any] = {}
        self.number = 0

    def subject(self) -> dict[str, Any]:
        return {"topic": f"q{self.draw.randrange(2)}", "document": f"d\\{self.draw.randrange(4)}"}

    def add(self, **fields: Any) -> None:
        self.number += 1
        time = instant(f"2026-03-01T00:00:{self.draw.randrange(4):02d}Z")  # ties, and not in the order of arrival
        name = f"e{self.draw.randrange(100):02d}-{self.number}"
        self.log.add([Event(**{"id": name, "time": time, "assessor": self.draw.choice(self.people), **fields})])

    def step(self) -> None:
        kind = self.draw.choice(STEPS)
        grade = float(self.draw.randrange(3))
        if kind == "label":
            aspect = self.draw.choice([RELEVANCE, RELEVANCE, RELEVANCE, "trust"])
            source = self.draw.choice(["human", "human", "import"])
            self.add(**self.subject(), grade=grade, aspect=aspect, source=source, repeat=self.draw.random() < 0.2)
        elif kind == "model":
            self.add(**self.subject(), grade=grade, source="model", assessor="m/graded-1")
        elif kind == "adjudication":
            self.add(**self.subject(), grade=grade, kind=kind)
        elif kind == "preference":
            self.add(topic="q0", document="d1", other=f"d{self.draw.randrange(2, 4)}", grade=grade - 1, kind=kind)
        elif kind == "cannot-judge":
            self.add(**self.subject(), kind=kind)
        elif kind == "note":
            self.add(**self.subject(), kind=kind, note="hm")
        elif kind == "withdraw":
            self.withdraw()
        elif kind == "import":
            self.import_file()
        elif kind == "pseudonym":
            self.rename()
        else:
            self.freeze()

    def withdraw(self) -> None:
        ids = sorted(event.id for event in self.log.events() if event.kind != "withdrawal")
        if ids:
            self.number += 1
            self.log.add([Event(kind="withdrawal", refers=self.draw.choice(ids), id=f"w{self.number}")])

    def import_file(self) -> None:
        rows = [
            f"q{t} 0 d\\{d} {self.draw.randrange(3)}\n" for t in range(2) for d in range(4) if self.draw.random() < 0.6
        ]
        import_judgments(self.log, file_of("".join(rows)))

    def rename(self) -> None:
        said = {event.assessor for event in self.log.events()}
        names = [name for name in self.people if name in said]
        if names:
            name = self.draw.choice(names)
            pseudonym = pseudonymise(self.log, name).pseudonym
            self.people = [pseudonym if each == name else each for each in self.people]

    def freeze(self) -> None:
        policy, sources = self.draw.choice(POLICIES), self.draw.choice([ONE_SET, PEOPLE])
        expected = decide(current_events(self.log.events()), policy, PolicySettings(sources=sources)).grades
        name = f"v{len(self.frozen)}"
        if expected:
            version, decided = freeze(self.log, name, policy, PolicySettings(sources=sources))
            assert decided.grades == expected
            self.frozen[name] = (version.hash, expected)


def check(log: Log) -> None:
    """What the log keeps is what its events say."""
    current = current_events(log.events())
    assert log.current_events() == current
    for aspect in (RELEVANCE, "trust"):
        kept, made = log.current_grades(aspect), graded_labels(current, aspect)
        assert sorted(kept) == sorted(made)
    assert log.rated_labels() == rated_labels(current)
    for policy in POLICIES:
        assert decide_log(log, policy).grades == decide(current, policy).grades, policy


def told(kind: str, place: str, seed: int, steps: int) -> list[Any]:
    """The current labels at the end of a story, and its versions, without the ids that a log makes itself."""
    log = open_log(place)
    story = Story(log, seed)
    for number in range(steps):
        story.step()
        if number % 5 == 0:
            check(log)
    check(log)
    log.close()
    again = open_log(place)
    check(again)
    for name, (_, grades) in story.frozen.items():
        assert thaw(again, name).grades == grades
    again.verify()
    answer = sorted((tuple(key), event.grade, event.time) for key, event in again.current_events().items())
    again.close()
    return [answer, {name: digest for name, (digest, _) in story.frozen.items()}]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))])
def test_current_labels_are_those_of_all_events_on_every_kind_of_log(seed, tmp_path, request) -> None:
    kinds = KINDS if seed != 1 else [kind for kind in KINDS if kind != "postgresql"]
    ends = []
    for kind in kinds:
        server = request.getfixturevalue("postgres") if kind == "postgresql" else None
        ends.append(told(kind, location_of(kind, tmp_path, server), seed, 60))
    assert ends == [ends[0]] * len(ends)
    assert any(key[0] == COLLECTION for key, *_ in ends[0][0]) or seed
    assert ends[0][1] or seed


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_whoever_imports_at_the_same_time_a_judgment_is_there_once(kind, tmp_path, request) -> None:
    """Two servers and a command that see the same new file; then each sees a change of it."""
    server = request.getfixturevalue("postgres") if kind == "postgresql" else None
    place = location_of(kind, tmp_path, server)
    open_log(place).close()
    rows = [f"q{t} 0 d{d} {d % 3}\n" for t in range(20) for d in range(20)]
    for text in ("".join(rows), "".join(rows[5:]) + "q0 0 new 2\n", ""):
        ready, failures = threading.Barrier(4), []

        def work(text: str = text, ready: threading.Barrier = ready, failures: list[Any] = failures) -> None:
            log = open_log(place)
            try:
                ready.wait(30)
                import_judgments(log, file_of(text))
            except BaseException as error:
                failures.append(error)
            log.close()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        log = open_log(place)
        check(log)
        subjects = [(event.topic, event.document) for event in log.current_events().values()]
        assert len(subjects) == len({*subjects}) == len(text.splitlines())
        added = sum(event.kind == "judgment" for event in log.events())
        log.close()
    assert added == len(rows) + 1
