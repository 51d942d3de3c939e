"""The description of an HTTP engine: a TOML file with the request and the paths into the answer.

about  = "what it is"
place  = 1                         # in listings
url    = "{base}/_search"          # {base} is the URL in the SPEC; a file of yours may name the whole URL
method = "POST"                    # GET if left out
headers.X-Key = "$KEY"             # $NAME is taken from the environment and never written down
params.q = "{query}"               # behind the ? of the URL
body   = { q = "{query}", size = "{k}" }   # sent as JSON; "{k}" alone becomes a number
hits   = "hits.hits"               # where the list of hits is
id     = "_id"                     # in a hit
score  = "_score"                  # in a hit; without it, the order decides
id_after = "::"                    # an id is cut after the last such text, and the end is used
id_pattern = "doc/(.+)"            # a regular expression: if it matches a whole id, its group is the id
[options]                          # further {names}, with defaults; SPEC,name=value sets one
[[failures]]                       # the sign of a failed answer whose status is 200
path = "timed_out"
equals = true                      # without it: any value but null, 0, false and []
[paging]                           # if the engine limits the hits of one answer
most = 250
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cranfield.base.package_files import folder
from cranfield.base.schemas import Count, Text, TomlFile

FOLDER = "retrieval/http_templates"
NAME = re.compile(r"\{([^{}]*)\}")
MISSING = object()


@dataclass(frozen=True)
class FailureSign:
    """A path in an answer that marks a failure; without `equals`, any value but null, 0, false and []."""

    path: Text
    equals: Any = MISSING


@dataclass(frozen=True)
class Paging:
    """The largest number of hits in one answer."""

    most: Count


@dataclass(frozen=True)
class Template:
    """A request and the paths into its answer."""

    name: Text
    url: Text
    hits: str
    id: Text
    about: str = ""
    place: int = 100
    method: Text = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    score: str | None = None
    id_after: str | None = None
    id_pattern: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)
    failures: tuple[FailureSign, ...] = ()
    paging: Paging | None = None


@cache
def templates() -> dict[str, Template]:
    """The templates that come with the package, by the engine's name: `elasticsearch:http://host:9200/index`."""
    every = [read_template(os.path.join(folder(FOLDER), file)) for file in os.listdir(folder(FOLDER))]
    return {template.name: template for template in sorted(every, key=lambda template: template.place)}


def read_template(path: str) -> Template:
    """A template from a TOML file."""
    file = TomlFile(path, Template, name=os.path.splitext(os.path.basename(path))[0])
    pattern = file.value.id_pattern
    if pattern is not None and _groups(pattern) != 1:
        file.refuse(f"expected id_pattern as a regular expression with one group, found {pattern!r:.60}", "id_pattern")
    return file.value


def _groups(pattern: str) -> int:
    try:
        return re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError):
        return -1


def filled(value: Any, names: dict[str, Any]) -> Any:
    """A part of a template with its {names} filled in; a text that is a single name becomes the value itself.

    >>> filled({"size": "{k}", "q": ["all:{query}"]}, {"k": 5, "query": "{wing}"})
    {'size': 5, 'q': ['all:{wing}']}
    """
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    if not isinstance(value, str):
        return value
    if value[1:-1] in names and value == "{" + value[1:-1] + "}":
        return names[value[1:-1]]
    # one pass, so that braces in a query are not filled in
    return NAME.sub(lambda match: parameter_text(names[match[1]]) if match[1] in names else match[0], value)


def parameter_text(value: Any) -> str:
    """A value as text; the items of a list are separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def at_path(value: Any, path: str) -> Any:
    """The value at a dotted path; MISSING if there is none.

    >>> at_path({"hits": {"hits": [{"_id": "d1"}]}}, "hits.hits.0._id")
    'd1'
    """
    for part in filter(None, path.split(".")):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value
