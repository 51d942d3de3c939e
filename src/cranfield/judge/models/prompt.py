"""Prompts: files that say how a model is asked, with a version, a scale and a hash over all that they say.

name = "graded"                    # the file's own unless said
version = "1"                      # another text is another version
kind = "graded"                    # or "passage", "pairwise"
system = "…"                       # may be left out
user = "… {query} … {text} …"
max_tokens = 64                    # of an answer
used = [["101", "d002"]]           # topics and documents that were shown to whoever wrote it, or stand in it
[grades]                           # of the scale, with what each means
0 = "does not help"

Names in braces are filled in, in one pass: braces in a text stay as they are. A line whose names all stand for nothing is
left out. `PLACEHOLDERS` says which a kind must have.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cranfield.errors import DataError
from cranfield.packaged import folder
from cranfield.shapes import Between, Expected, OneOf, Text, TomlFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "judge/models/prompts"
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
    """How a model is asked, and which answers there are."""

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
        """Over all that the file says, however it is laid out."""
        return f"sha256:{hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()}"

    @property
    def key(self) -> str:
        """The name of the one value of an answer."""
        return "better" if self.kind == "pairwise" else "grade"

    @property
    def answers(self) -> dict[Any, float]:
        """The values that an answer may have, and the grade of the label that each is."""
        if self.kind == "pairwise":
            return dict(PREFERRED)
        return {int(grade) if grade == int(grade) else grade: grade for grade in sorted(self.grades)}

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """What is sent, with the values filled in."""
        meanings = "\n".join(f"{value}: {self.grades[grade]}" for value, grade in self.answers.items() if self.grades)
        known = {"grades": meanings, **values}
        parts = (("system", self.system), ("user", self.user))
        return [{"role": role, "content": _filled(text, known)} for role, text in parts if text.strip()]

    def schema(self) -> dict[str, Any]:
        """The answers as a JSON schema."""
        kind = "string" if self.kind == "pairwise" else "number"
        values = list(self.answers)
        one = {"type": "integer" if all(type(value) is int for value in values) else kind, "enum": values}
        body = {"type": "object", "properties": {self.key: one}, "required": [self.key], "additionalProperties": False}
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": body}}


def _filled(text: str, known: Mapping[str, str]) -> str:
    lines = []
    for line in text.split("\n"):
        names = NAME.findall(line)
        if not names or any(known.get(name, "") for name in names):
            lines.append(NAME.sub(lambda found: known.get(found[1], ""), line))
    return "\n".join(lines).strip()


def bundled() -> list[str]:
    """The prompts that come along, by name."""
    return sorted(os.path.splitext(name)[0] for name in os.listdir(folder(FOLDER)))


def read_prompt(path: str) -> Prompt:
    """A prompt from a TOML file, or one that comes along by its name.

    >>> read_prompt("graded").answers
    {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}
    """
    where = os.path.join(folder(FOLDER), f"{path}.toml") if path in bundled() and not os.path.exists(path) else path
    if where == path and not os.path.exists(path):
        known = ", ".join(bundled())
        raise DataError(f"{path}: no such file; name a prompt's file, or one that comes along ({known})")
    file = TomlFile(where, Prompt, name=os.path.splitext(os.path.basename(where))[0])
    for problem, key in (*_bad_grades(file.value), *_misplaced(file.value)):
        file.refuse(problem, key)
    return file.value


def _bad_grades(prompt: Prompt) -> Iterator[tuple[str, str]]:
    """What is wrong with the grades, and the key where."""
    if prompt.kind == "pairwise":
        if prompt.grades:
            yield "a pairwise prompt has no [grades]: its answers are a, b and neither", "grades"
    elif len(prompt.grades) < 2:
        yield f"expected [grades] with two grades or more, found {len(prompt.grades)}", "grades"


def _misplaced(prompt: Prompt) -> Iterator[tuple[str, str]]:
    """Names in braces that are missing, or that nothing is known to fill."""
    needed, allowed = PLACEHOLDERS[prompt.kind]
    names = NAME.findall(f"{prompt.system}\n{prompt.user}")
    lacking = [name for name in needed if name not in names]
    if lacking:
        yield f"a {prompt.kind} prompt needs {{{'}, {'.join(needed)}}}; there is no {{{lacking[0]}}}", "user"
    unknown = [name for name in names if name not in (*needed, *allowed)]
    if unknown:
        every = dict.fromkeys((*needed, *allowed))
        yield f"nothing fills {{{unknown[0]}}}; a {prompt.kind} prompt may have {{{'}, {'.join(every)}}}", "user"
