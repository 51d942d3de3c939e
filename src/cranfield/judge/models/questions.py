"""What a model is asked about: pairs of topic and document, or two documents of a topic, with the texts it is shown.

A text is cut to its first `limit` characters, back to the last space if one is near. A question is known by its hash over the
model, the prompt and all that is filled in, so that the same text is asked about once, whatever its id is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import DataError
from cranfield.judge.event import RELEVANCE, Event
from cranfield.judge.models.kept import LABEL
from cranfield.parameters import shortened
from cranfield.passages import best_passage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.collection import Document, Topic
    from cranfield.formats.pools import Item
    from cranfield.judge.models.kept import Known
    from cranfield.judge.models.prompt import Prompt

    Change = Callable[[dict[str, str], Prompt], dict[str, str]]  # of what is filled in

NEAR = 0.8  # of the limit: a space behind it ends a cut text
LEAST = 200  # characters: a text is not cut below


class Subject(NamedTuple):
    """What a question is about."""

    topic: str
    document: str
    other: str = ""


class Question(NamedTuple):
    """A subject, its hash, how long its texts are and how much of them is shown."""

    subject: Subject
    hash: str
    length: int
    shown: int
    purpose: str = LABEL

    def event(self, asker: Asker, known: Known) -> Event:
        """The label that an answer is: the same whenever it is made of the same answer."""
        name = hashlib.sha256(json.dumps([known.id, *self.subject]).encode()).hexdigest()
        return Event(
            id=f"model-{name[:32]}",
            **self.subject._asdict(),
            kind="preference" if self.subject.other else "judgment",
            grade=known.grade,
            assessor=asker.assessor,
            time=known.answered,
            source="model",
            seconds=known.seconds,
            guideline=asker.prompt.hash,
            passage=self._passage(asker, known.shown),
            aspect=RELEVANCE,
            origin=f"question {known.id}",
        )

    def shorter(self, limit: int) -> int | None:
        """The limit after one that was too long for the server; None where little would be left."""
        half = min(limit, max(self.shown, 1)) // 2
        return half if half >= LEAST else None

    def _passage(self, asker: Asker, shown: int) -> str:
        """The passage of which so many characters were shown, by the first limit that leaves as many."""
        limit: int | None = asker.limit
        while limit is not None:
            values, _, left = asker.values(self.subject, limit)
            if left == shown or "passage" not in values:
                return values.get("passage", "")
            limit = self.shorter(limit)
        return asker.values(self.subject)[0]["passage"]


@dataclass(frozen=True)
class Asker:
    """A model, a prompt, and the texts that they are given."""

    model: str
    prompt: Prompt
    topics: Mapping[str, Topic]
    text_of: Callable[[str], Document | None]
    limit: int
    changes: Mapping[str, Change] = field(default_factory=dict)  # of the texts that a probe shows, by its purpose

    @property
    def assessor(self) -> str:
        """Whose labels the answers are."""
        return f"{self.model}/{self.prompt.name}-{self.prompt.version}"

    def values(
        self, subject: Subject, limit: int | None = None, purpose: str = LABEL
    ) -> tuple[dict[str, str], int, int]:
        """What is filled into the prompt; how long the texts are, and how much of them that is."""
        topic, most = self.topics[subject.topic], limit or self.limit
        values = {"query": topic.title, "description": topic.description, "narrative": topic.narrative}
        length = shown = 0
        sides = (("_a", subject.document), ("_b", subject.other)) if subject.other else (("", subject.document),)
        for side, name in sides:
            document = self.text_of(name)
            text, title = ("", "") if document is None else (document.text, document.title)
            part = cut(text, most)
            if self.prompt.kind == "passage":
                start, end = best_passage(text, topic.title, size=min(most, PASSAGE)) if text else (0, 0)
                part = values["passage"] = text[start:end]
            values |= {f"title{side}": title, f"text{side}": part}
            length, shown = length + len(text), shown + len(part)
        change = self.changes.get(purpose)
        return values if change is None else change(values, self.prompt), length, shown

    def question(self, subject: Subject, purpose: str = LABEL) -> Question | None:
        """A question; None where there is no text to ask about."""
        values, length, shown = self.values(subject, purpose=purpose)
        if not any(values[name].strip() for name in values if name.startswith(("text", "title", "passage"))):
            return None
        said = json.dumps([self.model, self.prompt.hash, purpose, values], sort_keys=True)
        return Question(subject, f"sha256:{hashlib.sha256(said.encode()).hexdigest()}", length, shown, purpose)


PASSAGE = 1200  # characters


def cut(text: str, limit: int) -> str:
    """The first characters of a text, back to the last space if it is near.

    >>> cut("all that is known", 12), cut("all", 12)
    ('all that is', 'all')
    """
    if len(text) <= limit:
        return text
    start = text[:limit]
    space = start.rfind(" ")
    return start[:space] if space >= NEAR * limit else start


def subjects(items: Sequence[Item], prompt: Prompt, neighbours: int = 1, seed: int = 0) -> list[Subject]:
    """What a pool asks about, in its order: its documents, or each with the next few of its topic, sides by lot."""
    drawn = [item for item in items if item.priority or not any(each.priority for each in items)]
    drawn.sort(key=lambda item: item.priority)
    single = dict.fromkeys(Subject(item.topic, item.document) for item in drawn)
    if prompt.kind != "pairwise":
        return list(single)
    by_topic: dict[str, list[str]] = {}
    for subject in single:
        by_topic.setdefault(subject.topic, []).append(subject.document)
    return [
        _sides(topic, one, other, seed)
        for topic, documents in by_topic.items()
        for place, one in enumerate(documents)
        for other in documents[place + 1 : place + 1 + neighbours]
    ]


def _sides(topic: str, one: str, other: str, seed: int) -> Subject:
    """Which of two documents comes first: by lot, and the same whenever it is asked."""
    first, second = sorted((one, other))
    lot = hashlib.sha256(json.dumps([seed, topic, first, second]).encode()).digest()[0] % 2
    return Subject(topic, *((first, second) if lot else (second, first)))


def refuse_unknown(
    asked: Iterable[Subject], topics: Mapping[str, Topic], has: Callable[[str], bool], pool: str, collection: str
) -> None:
    """Stop at a pool that asks about what the collection does not have."""
    strange = list(_strangers(asked, topics, has))
    if strange:
        told = f"{len(strange):,} topics or documents are not in {collection}, such as {strange[0]}"
        raise DataError(f"{pool}: {told}; name the collection that the pool was made of")


def _strangers(asked: Iterable[Subject], topics: Mapping[str, Topic], has: Callable[[str], bool]) -> Iterator[str]:
    known: set[tuple[str, str]] = set()
    for subject in asked:
        for kind, name in (("topic", subject.topic), ("document", subject.document), ("document", subject.other)):
            if not name or (kind, name) in known:
                continue
            known.add((kind, name))
            if not (name in topics if kind == "topic" else has(name)):
                yield f"{kind} {shortened(name)!r}"
