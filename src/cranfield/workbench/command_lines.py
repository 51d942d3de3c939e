"""The command that does what a page does: every page names its own, so that the command line stays an equal alternative.

A route declares a template; the parameters of the page fill it. `{name}` stands for a parameter, or for a part of the
workspace; a group in brackets is left out if one of its parameters is empty. Values are quoted for a shell. Commands run
in the folder that holds the workspace.

>>> fill("cranfield judge status {log} [--round {round}]", {"log": "w/work.db", "round": ""})
'cranfield judge status w/work.db'
>>> fill("cranfield judge status {log} [--round {round}]", {"log": "w/work.db", "round": "round 1"})
"cranfield judge status w/work.db --round 'round 1'"
"""

from __future__ import annotations

import os
import re
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.inputs.workspace import Bench

FIELD = re.compile(r"\{(\w+)\}")
GROUP = re.compile(r"\s*\[([^\]]*)\]")
ELSEWHERE = "LOG"  # stands for a log that is not in the folder: its address is not shown


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with its values; a parameter without a value is written in capitals, or leaves out its group."""

    def group(match: re.Match[str]) -> str:
        return f" {match[1]}" if all(values.get(name) for name in FIELD.findall(match[1])) else ""

    def value(match: re.Match[str]) -> str:
        text = values.get(match[1])
        return quote(text) if text else match[1].upper()

    return FIELD.sub(value, GROUP.sub(group, template))


def places_of(bench: Bench) -> dict[str, str]:
    """The parts of a workspace as a command names them: its folder, log, collection and runs."""
    name = bench.name
    inside = os.path.join(bench.folder, "work.db") == bench.location
    home = bench.home
    collection = name if home is None or os.path.samefile(home, bench.folder) else f"{name}/collection"
    log = f"{name}/work.db" if inside else ELSEWHERE
    return {"ws": name, "log": log, "collection": collection, "runs": f"{name}/runs"}
