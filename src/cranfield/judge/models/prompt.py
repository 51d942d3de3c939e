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
import tomllib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.formats.streams import reason
from cranfield.parameters import real, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts")
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

    name: str
    version: str
    kind: str
    user: str
    system: str = ""
    grades: dict[float, str] = field(default_factory=dict)
    max_tokens: int = 64
    used: tuple[tuple[str, str], ...] = ()

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
    return sorted(os.path.splitext(name)[0] for name in os.listdir(FOLDER))


def read_prompt(path: str) -> Prompt:
    """A prompt from a TOML file, or one that comes along by its name.

    >>> read_prompt("graded").answers
    {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}
    """
    where = os.path.join(FOLDER, f"{path}.toml") if path in bundled() and not os.path.exists(path) else path
    try:
        with open(where, "rb") as file:
            keys = tomllib.load(file)
    except OSError as error:
        known = ", ".join(bundled())
        raise DataError(f"{path}: {reason(error)}; name a prompt's file, or one that comes along ({known})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no TOML: {error}") from error
    for problem in _problems(keys):
        raise DataError(f"{path}: {problem}")
    prompt = Prompt(
        **{
            "name": os.path.splitext(os.path.basename(where))[0],
            **keys,
            "grades": {real(grade): meaning for grade, meaning in keys.get("grades", {}).items()},
            "used": tuple((topic, document) for topic, document in keys.get("used", ())),
        }
    )
    for problem in _misplaced(prompt):
        raise DataError(f"{path}: {problem}")
    return prompt


def _problems(keys: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the keys of a file."""
    fields = Prompt.__dataclass_fields__
    for key in keys:
        if key not in fields:
            yield f"no key {key!r}; a prompt has {', '.join(fields)}"
    for key in ("version", "kind", "user"):
        if key not in keys:
            yield f"expected {key} = …, found none; a prompt needs version, kind and user"
    for key in ("name", "version", "kind", "user", "system"):
        if not isinstance(keys.get(key, ""), str):
            yield f"expected {key} as text, found {keys[key]!r:.60}"
    if keys["kind"] not in PLACEHOLDERS:
        yield f"expected a kind of {', '.join(PLACEHOLDERS)}, found {shortened(keys['kind'])!r}"
    most = keys.get("max_tokens", 1)
    if type(most) is not int or not 1 <= most <= MOST_TOKENS:
        yield f"expected max_tokens of 1 to {MOST_TOKENS:,}, found {most!r:.60}"
    used = keys.get("used", [])
    pairs = isinstance(used, list) and all(isinstance(one, list) and list(map(type, one)) == [str, str] for one in used)
    if not pairs:
        yield f"expected used as pairs of topic and document, found {used!r:.60}"
    yield from _bad_grades(keys.get("grades", {}), keys["kind"])


def _bad_grades(grades: Any, kind: str) -> Iterator[str]:
    if not isinstance(grades, dict) or not all(isinstance(meaning, str) for meaning in grades.values()):
        yield f"expected [grades] as a table of grades and their meanings, found {grades!r:.60}"
        return
    if kind == "pairwise":
        if grades:
            yield "a pairwise prompt has no [grades]: its answers are a, b and neither"
        return
    for grade in grades:
        try:
            real(grade)
        except ValueError:
            yield f"expected numbers as [grades], found {shortened(grade)!r}"
    if len(grades) < 2:
        yield f"expected [grades] with two grades or more, found {len(grades)}"


def _misplaced(prompt: Prompt) -> Iterator[str]:
    """Names in braces that are missing, or that nothing is known to fill."""
    needed, allowed = PLACEHOLDERS[prompt.kind]
    names = NAME.findall(f"{prompt.system}\n{prompt.user}")
    lacking = [name for name in needed if name not in names]
    if lacking:
        yield f"a {prompt.kind} prompt needs {{{'}, {'.join(needed)}}}; there is no {{{lacking[0]}}}"
    unknown = [name for name in names if name not in (*needed, *allowed)]
    if unknown:
        every = dict.fromkeys((*needed, *allowed))
        yield f"nothing fills {{{unknown[0]}}}; a {prompt.kind} prompt may have {{{'}, {'.join(every)}}}"
