"""How an HTTP engine is asked, as data: a TOML file with the request and the paths into the answer.

about  = "what it is"
place  = 1                         # in listings
url    = "{base}/_search"          # {base} is the URL in the SPEC; a file of yours may name the whole URL
method = "POST"                    # GET if left out
headers.X-Key = "$KEY"             # $NAME is taken from the environment and never written down
params.q = "{query}"               # behind the ? of the URL
body   = { q = "{query}", size = "{k}" }   # sent as JSON; "{k}" alone becomes a number
hits   = "hits.hits"               # where the list of hits is
id     = "_id"                     # in a hit
score  = "_score"                  # in a hit; left out, the order decides
id_after = "::"                    # what stands before this in an id is cut off
id_pattern = "doc/(.+)"            # a regular expression: where it fits a whole id, its group is the id
[options]                          # further {names}, with defaults; SPEC,name=value sets one
[[failures]]                       # an answer that is none although its status is 200
path = "timed_out"
equals = true                      # left out: anything but nothing, 0, false and []
[paging]                           # where one answer holds no more than some hits
most = 250
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
NAME = re.compile(r"\{([^{}]*)\}")
MISSING = object()


@dataclass(frozen=True)
class Template:
    """A request and the paths into its answer."""

    name: str
    url: str
    hits: str
    id: str
    about: str = ""
    place: int = 100
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    score: str | None = None
    id_after: str | None = None
    id_pattern: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    paging: dict[str, Any] = field(default_factory=dict)


@cache
def templates() -> dict[str, Template]:
    """The templates that come with the package, by the engine's name: `elasticsearch:http://host:9200/index`."""
    every = [read_template(os.path.join(FOLDER, file)) for file in os.listdir(FOLDER)]
    return {template.name: template for template in sorted(every, key=lambda template: template.place)}


def read_template(path: str) -> Template:
    """A template from a TOML file."""
    try:
        with open(path, "rb") as file:
            keys = tomllib.load(file)
    except OSError as error:
        raise DataError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no TOML: {error}") from error
    for key in keys:
        if key not in Template.__dataclass_fields__:
            raise DataError(f"{path}: no key {key!r}; a template has {', '.join(Template.__dataclass_fields__)}")
    for expected, key, value in _misplaced(keys):
        raise DataError(f"{path}: expected {key} as {expected}, found {value!r:.60}")
    return Template(**{"name": os.path.splitext(os.path.basename(path))[0], **keys})


def _misplaced(keys: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Values of the wrong kind: they are told when a template is read, and not by the first topic that stumbles over one."""
    for key in ("url", "hits", "id"):
        if not isinstance(keys.get(key), str):
            yield "text", key, keys.get(key)
    for key in ("name", "method", "score", "id_after", "id_pattern", "about"):
        if not isinstance(keys.get(key, ""), str):
            yield "text", key, keys[key]
    for key in ("headers", "params", "options", "meanings", "paging"):
        if not isinstance(keys.get(key, {}), dict):
            yield "a table", key, keys[key]
    for key, value in keys.get("headers", {}).items():
        if not isinstance(value, str):
            yield "text", f"headers.{key}", value
    if isinstance(pattern := keys.get("id_pattern"), str) and _groups(pattern) != 1:
        yield "a regular expression with one group", "id_pattern", pattern
    most = keys.get("paging", {}).get("most", 1)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        yield "a number of 1 or more", "paging.most", most
    failures = keys.get("failures", [])
    if not isinstance(failures, list) or not all(isinstance(one, dict) and "path" in one for one in failures):
        yield "tables with a path each", "[[failures]]", failures


def _groups(pattern: str) -> int:
    try:
        return re.compile(pattern).groups
    except re.error:
        return -1


def filled(value: Any, names: dict[str, Any]) -> Any:
    """A part of a template with its {names} filled in; a text that is one name alone becomes that value as it is.

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
    # one pass, so that braces in a query stay as they are
    return NAME.sub(lambda match: _text(names[match[1]]) if match[1] in names else match[0], value)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def at_path(value: Any, path: str) -> Any:
    """What stands at a dotted path; MISSING if there is nothing.

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
