"""The prompts and questions of an LLM judge: about a topic and a document, or about two documents of a topic.

A prompt is a TOML file with a version, a scale and a hash over its content:

    name = "graded"                    # default: the file's name
    version = "1"                      # another text is another version
    kind = "graded"                    # or "passage", "pairwise"
    system = "…"                       # optional
    user = "… {query} … {text} …"
    max_tokens = 64                    # of an answer
    used = [["101", "d002"]]           # topics and documents that the prompt's author saw, or that the prompt contains
    [grades]                           # the scale, and what each grade means
    0 = "does not help"

Names in braces are filled in, in one pass: braces in a text stay as they are. A line is left out if all its names are
empty. `PLACEHOLDERS` says which names a kind needs.

A text is cut to its first `limit` characters, at the last space if one is near. A question is identified by a hash over the
model, the prompt and all texts, so that the same text is asked about once, whatever its id.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.package_files import folder
from cranfield.base.parameters import shortened
from cranfield.base.passages import best_passage
from cranfield.base.schemas import Between, Expected, OneOf, Text, TomlFile
from cranfield.judging.event import RELEVANCE, Event
from cranfield.judging.llm.question_store import LABEL, StoredAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.collection import Document, Topic
    from cranfield.formats.pool_files import PoolItem

    Change = Callable[[dict[str, str], "Prompt"], dict[str, str]]  # of what is filled in


FOLDER = "judging/llm/prompts"
NAME = re.compile(r"\{([a-z_]+)\}")
TOPIC = ("query", "description", "narrative", "grades")
PLACEHOLDERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # those that must be there, and those that may
    "graded": (("query", "text"), (*TOPIC, "title")),
    "passage": (("query", "passage"), (*TOPIC, "title")),
    "pairwise": (("query", "text_a", "text_b"), (*TOPIC, "title_a", "title_b")),
}
PREFERRED = {"a": 1.0, "b": -1.0, "neither": 0.0}
MOST_TOKENS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt: its texts and the possible answers."""

    name: Text
    version: Text
    kind: Annotated[str, OneOf(tuple(PLACEHOLDERS))]
    user: str
    system: str = ""
    grades: dict[float, str] = field(default_factory=dict)
    max_tokens: Annotated[int, Between(1, MOST_TOKENS)] = 64
    used: Annotated[tuple[tuple[str, str], ...], Expected("pairs of topic and document")] = ()

    @property
    def hash(self) -> str:
        """The hash over the content of the file, whatever its layout."""
        return f"sha256:{hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()}"

    @property
    def key(self) -> str:
        """The name of the value in an answer."""
        return "better" if self.kind == "pairwise" else "grade"

    @property
    def answers(self) -> dict[Any, float]:
        """The possible values of an answer, and the grade of each."""
        if self.kind == "pairwise":
            return dict(PREFERRED)
        return {int(grade) if grade == int(grade) else grade: grade for grade in sorted(self.grades)}

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """The messages to send, with the values filled in."""
        meanings = "\n".join(f"{value}: {self.grades[grade]}" for value, grade in self.answers.items() if self.grades)
        values_and_grades = {"grades": meanings, **values}
        parts = (("system", self.system), ("user", self.user))
        return [{"role": role, "content": _filled(text, values_and_grades)} for role, text in parts if text.strip()]

    def schema(self) -> dict[str, Any]:
        """The answers as a JSON schema."""
        kind = "string" if self.kind == "pairwise" else "number"
        values = list(self.answers)
        one = {"type": "integer" if all(type(value) is int for value in values) else kind, "enum": values}
        body = {"type": "object", "properties": {self.key: one}, "required": [self.key], "additionalProperties": False}
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": body}}


def _filled(text: str, values: Mapping[str, str]) -> str:
    lines = ((line, NAME.findall(line)) for line in text.split("\n"))
    parts = [line for line, names in lines if not names or any(values.get(name) for name in names)]
    return NAME.sub(lambda match: values.get(match[1], ""), "\n".join(parts)).strip()


def bundled() -> list[str]:
    """The names of the bundled prompts."""
    return sorted(os.path.splitext(name)[0] for name in os.listdir(folder(FOLDER)))


def read_prompt(path: str) -> Prompt:
    """A prompt from a TOML file, or a bundled one by its name.

    >>> read_prompt("graded").answers
    {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}
    """
    where = os.path.join(folder(FOLDER), f"{path}.toml") if path in bundled() and not os.path.exists(path) else path
    if where == path and not os.path.exists(path):
        names = ", ".join(bundled())
        raise DataError(f"{path}: no such file; name a prompt's file, or one that comes along ({names})")
    file = TomlFile(where, Prompt, name=os.path.splitext(os.path.basename(where))[0])
    for problem, key in _faults(file.value):
        file.refuse(problem, key)
    return file.value


def _faults(prompt: Prompt) -> Iterator[tuple[str, str]]:
    """What is wrong with the grades, and with the names in braces; each with the key of the file."""
    if prompt.kind == "pairwise":
        if prompt.grades:
            yield "a pairwise prompt has no [grades]: its answers are a, b and neither", "grades"
    elif len(prompt.grades) < 2:
        yield f"expected [grades] with two grades or more, found {len(prompt.grades)}", "grades"
    needed, allowed = PLACEHOLDERS[prompt.kind]
    names = NAME.findall(f"{prompt.system}\n{prompt.user}")
    lacking = [name for name in needed if name not in names]
    if lacking:
        yield f"a {prompt.kind} prompt needs {{{'}, {'.join(needed)}}}; there is no {{{lacking[0]}}}", "user"
    unknown = [name for name in names if name not in (*needed, *allowed)]
    if unknown:
        every = dict.fromkeys((*needed, *allowed))
        yield f"nothing fills {{{unknown[0]}}}; a {prompt.kind} prompt may have {{{'}, {'.join(every)}}}", "user"


NEAR = 0.8  # of the limit: a space behind it ends a cut text
LEAST = 200  # characters: a text is not cut below


class Subject(NamedTuple):
    """The topic and document, or two documents, of a question."""

    topic: str
    document: str
    other: str = ""


class LlmQuestion(NamedTuple):
    """A subject, its hash, the length of its texts, and how much of them is shown."""

    subject: Subject
    hash: str
    length: int
    shown_length: int
    purpose: str = LABEL

    def event(self, asker: Asker, answer: StoredAnswer) -> Event:
        """The label of an answer; the same answer always gives the same event."""
        name = hashlib.sha256(json.dumps([answer.id, *self.subject]).encode()).hexdigest()
        return Event(
            id=f"model-{name[:32]}",
            **self.subject._asdict(),
            kind="preference" if self.subject.other else "judgment",
            grade=answer.grade,
            assessor=asker.assessor,
            time=answer.answered,
            source="model",
            seconds=answer.seconds,
            guideline=asker.prompt.hash,
            passage=self._passage(asker, answer.shown_length),
            aspect=RELEVANCE,
            origin=f"question {answer.id}",
        )

    def shorter(self, limit: int) -> int | None:
        """The next shorter limit after a text was too long for the server; None if little would be left."""
        half = min(limit, max(self.shown_length, 1)) // 2
        return half if half >= LEAST else None

    def _passage(self, asker: Asker, length: int) -> str:
        """The passage that was shown, found by its length: the limits of the retries are tried in turn."""
        limit: int | None = asker.limit
        while limit is not None:
            values, _, left = asker.values(self.subject, limit)
            if left == length or "passage" not in values:
                return values.get("passage", "")
            limit = self.shorter(limit)
        return asker.values(self.subject)[0]["passage"]


@dataclass(frozen=True)
class Asker:
    """A model, a prompt, and the texts for the prompt."""

    model: str
    prompt: Prompt
    topics: Mapping[str, Topic]
    text_of: Callable[[str], Document | None]
    limit: int
    changes: Mapping[str, Change] = field(default_factory=dict)  # of the texts that a probe shows, by its purpose

    @property
    def assessor(self) -> str:
        """The assessor name of the labels."""
        return f"{self.model}/{self.prompt.name}-{self.prompt.version}"

    def values(
        self, subject: Subject, limit: int | None = None, purpose: str = LABEL
    ) -> tuple[dict[str, str], int, int]:
        """The values for the prompt, the length of the texts, and how much of them is shown."""
        topic, most = self.topics[subject.topic], limit or self.limit
        values = {"query": topic.title, "description": topic.description, "narrative": topic.narrative}
        length = shown_length = 0
        sides = (("_a", subject.document), ("_b", subject.other)) if subject.other else (("", subject.document),)
        for side, name in sides:
            document = self.text_of(name)
            text, title = ("", "") if document is None else (document.text, document.title)
            part = cut(text, most)
            if self.prompt.kind == "passage":
                start, end = best_passage(text, topic.title, size=min(most, PASSAGE)) if text else (0, 0)
                part = values["passage"] = text[start:end]
            values |= {f"title{side}": title, f"text{side}": part}
            length, shown_length = length + len(text), shown_length + len(part)
        change = self.changes.get(purpose)
        return values if change is None else change(values, self.prompt), length, shown_length

    def question(self, subject: Subject, purpose: str = LABEL) -> LlmQuestion | None:
        """A question; None if there is no text to ask about."""
        values, length, shown_length = self.values(subject, purpose=purpose)
        if not any(values[name].strip() for name in values if name.startswith(("text", "title", "passage"))):
            return None
        text = json.dumps([self.model, self.prompt.hash, purpose, values], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return LlmQuestion(subject, f"sha256:{digest}", length, shown_length, purpose)


PASSAGE = 1200  # characters


def cut(text: str, limit: int) -> str:
    """The first characters of a text, cut at the last space if it is near.

    >>> cut("all that is known", 12), cut("all", 12)
    ('all that is', 'all')
    """
    if len(text) <= limit:
        return text
    start = text[:limit]
    space = start.rfind(" ")
    return start[:space] if space >= NEAR * limit else start


def subjects(items: Sequence[PoolItem], prompt: Prompt, neighbours: int = 1, seed: int = 0) -> list[Subject]:
    """The subjects of a pool in its order: its documents, or each with the next few of its topic, sides at random."""
    pool = [item for item in items if item.priority or not any(each.priority for each in items)]
    pool.sort(key=lambda item: item.priority)
    single = dict.fromkeys(Subject(item.topic, item.document) for item in pool)
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
    """The question about two documents, in an order that depends on a hash of the seed and the documents."""
    first, second = sorted((one, other))
    lot = hashlib.sha256(json.dumps([seed, topic, first, second]).encode()).digest()[0] % 2
    return Subject(topic, *((first, second) if lot else (second, first)))


def refuse_unknown(
    subjects: Iterable[Subject], topics: Mapping[str, Topic], has: Callable[[str], bool], pool: str, collection: str
) -> None:
    """Raise DataError if a pool asks about topics or documents that the collection lacks."""
    kinds = ("topic", "document", "document")
    names = dict.fromkeys(each for subject in subjects for each in zip(kinds, subject, strict=True) if each[1])
    strange = [each for each in names if not (each[1] in topics if each[0] == "topic" else has(each[1]))]
    if strange:
        kind, name = strange[0]
        such = f"such as {kind} {shortened(name)!r}"
        problem = f"{len(strange):,} topics or documents are not in {collection}, {such}"
        raise DataError(f"{pool}: {problem}; name the collection that the pool was made of")
