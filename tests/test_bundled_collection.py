"""The bundled collection keeps what its README says: real prose, whole judgments, subtopics that agree with them."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import cranfield

FOLDER = Path(cranfield.__file__).parent / "collections" / "bundled" / "allotment"
GRAM = 6  # words
SHARED_BY_CHANCE = 2  # word 6-grams that two different documents may have in common
SHARED_BY_REPRINT = 10  # and that a reprint has at least


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def columns(name: str) -> list[list[str]]:
    return [line.split() for line in (FOLDER / name).read_text("utf-8").splitlines()]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def grams(text: str) -> set[tuple[str, ...]]:
    said = words(text)
    return {tuple(said[i : i + GRAM]) for i in range(len(said) - GRAM + 1)}


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows("documents.jsonl")}


@pytest.fixture(scope="module")
def topics() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows("topics.jsonl")}


@pytest.fixture(scope="module")
def judged() -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for topic, iteration, document, grade in columns("qrels.txt"):
        assert iteration == "0"
        assert document not in grades[topic], f"{topic} {document} is judged twice"
        grades[topic][document] = int(grade)
    return grades


def test_the_collection_is_as_large_as_promised(documents, topics, judged):
    assert len(documents) == len(rows("documents.jsonl")) >= 300
    assert len(topics) == len(rows("topics.jsonl")) >= 60
    assert sum(map(len, judged.values())) >= 1500


def test_documents_are_short_titled_prose(documents):
    for document in documents.values():
        assert set(document) - {"reprint_of"} == {"id", "title", "text", "kind"}
        assert re.fullmatch(r"d\d{3}", document["id"])
        assert document["title"].strip() == document["title"] != ""
        assert 60 <= len(document["text"].split()) <= 130, document["id"]


def test_no_two_documents_have_the_same_title_or_text(documents):
    for field in ("title", "text"):
        assert max(Counter(document[field] for document in documents.values()).values()) == 1


def test_only_declared_reprints_share_their_wording(documents):
    phrases = {name: grams(document["text"]) for name, document in documents.items()}
    for one, other in combinations(documents, 2):
        shared = len(phrases[one] & phrases[other])
        reprint = documents[one].get("reprint_of") == other or documents[other].get("reprint_of") == one
        if reprint:
            assert shared >= SHARED_BY_REPRINT, f"{one} and {other} are declared a reprint but share {shared}"
        else:
            assert shared <= SHARED_BY_CHANCE, f"{one} and {other} share {shared}"


def test_a_reprint_names_an_original(documents):
    reprints = [document for document in documents.values() if "reprint_of" in document]
    assert 15 <= len(reprints) <= 20
    for reprint in reprints:
        assert "reprint_of" not in documents[reprint["reprint_of"]]


def test_the_documents_do_not_open_alike(documents):
    texts = (re.sub(r"^(Q\.|Dear \w+,)\s*", "", document["text"]) for document in documents.values())
    openings = Counter(" ".join(words(text)[:4]) for text in texts)
    assert openings.most_common(1)[0][1] <= 3


def test_topics_have_a_need_and_not_only_words(topics):
    for topic in topics.values():
        assert 1 <= len(topic["title"].split()) <= 6, topic["id"]
        assert len(topic["description"].split()) >= 7, topic["id"]
        assert len(topic["narrative"].split()) >= 20, topic["id"]
        assert re.search(r"\bnot\b", topic["narrative"]), topic["id"]
    assert len({topic["title"] for topic in topics.values()}) == len(topics)


def test_every_judged_topic_and_document_exists(documents, topics, judged):
    assert set(judged) == set(topics)
    for grades in judged.values():
        assert set(grades) <= set(documents)


def test_every_topic_has_relevant_and_other_documents(judged):
    for topic, grades in judged.items():
        assert set(grades.values()) <= {0, 1, 2, 3}
        assert sum(grade > 0 for grade in grades.values()) >= 3, topic
        assert sum(grade == 0 for grade in grades.values()) >= 10, topic
        assert 3 in grades.values(), topic


def test_a_reprint_is_graded_as_its_original(documents, judged):
    for topic, grades in judged.items():
        for document, grade in grades.items():
            original = documents[document].get("reprint_of")
            assert grades.get(original, grade) == grade, f"{topic}: {document} is a reprint of {original}"


def test_grades_are_used_and_not_bunched(judged):
    used = Counter(grade for grades in judged.values() for grade in grades.values())
    assert all(used[grade] >= 50 for grade in (0, 1, 2, 3))


def test_subtopics_agree_with_topics_and_judgments(topics, judged):
    named = {name: [part["id"] for part in topic.get("subtopics", [])] for name, topic in topics.items()}
    assert sum(bool(parts) for parts in named.values()) >= 25
    covered: dict[str, set[str]] = defaultdict(set)
    for topic, subtopic, document, grade in columns("subtopics.txt"):
        assert grade == "1"
        assert subtopic in named[topic]
        assert judged[topic].get(document, 0) > 0, f"{topic} {document} covers a subtopic but is not relevant"
        covered[topic].add(subtopic)
    for topic, parts in named.items():
        assert len(parts) in {0, 2, 3, 4, 5}, topic
        assert covered[topic] == set(parts), topic


def test_a_pair_is_listed_once_for_a_subtopic():
    listed = Counter(tuple(row[:3]) for row in columns("subtopics.txt"))
    assert max(listed.values()) == 1


def test_the_grades_have_names_and_meanings():
    said = tomllib.loads((FOLDER / "collection.toml").read_text("utf-8"))
    assert said["name"] == FOLDER.name
    assert said["licence"] == "Apache-2.0"
    grades = said["grades"]
    assert grades.pop("relevant_from") == 1
    assert sorted(grades) == ["0", "1", "2", "3"]
    assert all(grade["label"] and grade["meaning"] for grade in grades.values())


def test_the_readme_counts_what_is_there(documents, topics, judged):
    readme = (FOLDER / "README.md").read_text("utf-8")
    relevant = sum(grade > 0 for grades in judged.values() for grade in grades.values())
    total = sum(map(len, judged.values()))
    head = f"{len(documents)} short documents, {len(topics)} topics, {total:,}\ngraded judgments ({relevant} of them relevant"
    assert head in readme


@pytest.fixture(scope="module")
def second_pass() -> dict[tuple[str, str], int]:
    return {(topic, document): int(grade) for topic, _, document, grade in columns("second-pass.txt")}


def kappa(pairs: list[tuple[int, int]], weighted: bool = False) -> float:
    """Cohen's kappa of two readers' grades, by its definition: 1 - observed / expected disagreement."""

    def apart(one: int, other: int) -> int:
        return abs(one - other) if weighted else int(one != other)

    observed = sum(apart(*pair) for pair in pairs) / len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(apart(one, other) * first[one] * second[other] for one in first for other in second)
    return 1 - observed / (expected / len(pairs) ** 2)


def test_the_second_pass_covers_the_pool_of_every_third_topic(topics, judged, second_pass):
    chosen = list(topics)[1::3]
    pool = [(topic, document) for topic in chosen for document in sorted(judged[topic])]
    assert [(topic, document) for topic, _, document, _ in columns("second-pass.txt")] == pool
    assert {iteration for _, iteration, _, _ in columns("second-pass.txt")} == {"0"}
    assert set(second_pass.values()) == {0, 1, 2, 3}


def test_kappa_against_a_table_worked_by_hand():
    pairs = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15  # agree 0.7, by chance 0.5
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa(pairs, weighted=True) == pytest.approx(0.4)
    # apart by 0, 0, 2 and 0, 0.5 on average; by chance, margins (2, 1, 1) and (1, 1, 2) give 16 / 16
    assert kappa([(0, 0), (1, 1), (0, 2), (2, 2)], weighted=True) == pytest.approx(0.5)


def test_the_readme_tells_how_far_the_two_passes_agree(judged, second_pass):
    readme = (FOLDER / "README.md").read_text("utf-8")
    pairs = [(judged[topic][document], grade) for (topic, document), grade in second_pass.items()]
    found = [(int(one > 0), int(other > 0)) for one, other in pairs]
    four, two = (100 * sum(one == other for one, other in some) / len(some) for some in (pairs, found))
    assert f"| four grades | {four:.1f} % | {kappa(pairs):.2f} (linearly weighted {kappa(pairs, True):.2f}) |" in readme
    assert f"| relevant or not | {two:.1f} % | {kappa(found):.2f} |" in readme
    times = Counter(pairs)
    for one in range(4):
        assert f"| {one} | " + " | ".join(str(times[one, other]) for other in range(4)) + " |" in readme
    either = [(one, other) for one, other in pairs if one or other]
    same = sum(one == other for one, other in either)
    assert f"of the {len(either)} that either reader found relevant, {same} have\nthe same grade" in readme
    assert max(abs(one - other) for one, other in pairs) == 1
