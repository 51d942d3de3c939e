"""Questions that may take a while: a page asks, and shows the answer, how far it is, or why there is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.judge.policy import policies
from cranfield.web.render import link
from cranfield.workspace.jobs import Failed, Ready, Running

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.web.visit import Visit


@dataclass(frozen=True)
class Asked:
    """What became of a question; `again` is the address that asks for newer labels too."""

    state: Ready | Running | Failed
    again: str
    public: Callable[[str], str] = str  # a text without what is nobody's business

    @property
    def kind(self) -> str:
        """ready, running or failed."""
        return type(self.state).__name__.lower()

    @property
    def status(self) -> int:
        """Of the page's twins: 202 while it is being worked out, 422 where it cannot be."""
        return {"ready": 200, "running": 202, "failed": 422}[self.kind]

    def told(self, visit: Visit) -> int:
        """The status of a page: its twins' in JSON, and 200 where people read what became of it."""
        return self.status if visit.twin == "json" else 200

    @property
    def table(self) -> str | None:
        """The answer as CSV."""
        return self.state.answer.csv if isinstance(self.state, Ready) else None

    @property
    def answer(self) -> Any:
        """The answer as plain values; None while there is none."""
        return _told(json.loads(self.state.answer.json), self.public) if isinstance(self.state, Ready) else None

    @property
    def notes(self) -> list[str]:
        """What limits the answer."""
        return [self.public(each) for each in self.state.answer.notes] if isinstance(self.state, Ready) else []

    @property
    def why(self) -> str:
        """Why there is no answer."""
        return self.public(self.state.why) if isinstance(self.state, Failed) else ""

    def values(self) -> dict[str, Any]:
        """For the JSON twin."""
        state = self.state
        if isinstance(state, Ready):
            told = {"place": state.place, "newer": state.newer, "made": state.made, "notes": self.notes}
            return {"state": self.kind, **told, "answer": self.answer}
        if isinstance(state, Running):
            return {"state": self.kind, "progress": state.progress, "told": state.told, "since": state.since}
        return {"state": self.kind, "error": self.why}


MEASURES = "nDCG@10 AP RR@10"


def judged(visit: Visit) -> dict[str, Any]:
    """Which judgments count, as the query says, and which there are: what a form offers."""
    bench = visit.site.bench
    there = ["log", *(f"log@{each.name}" for each in bench.versions()), *(["collection"] if bench.qrels else [])]
    return {
        "judgments": visit.text("judgments"),
        "policy": visit.text("policy", "latest"),
        "policies": policies(),
        "sources": there,
    }


def ask_scores(visit: Visit, verb: str, **parameters: Any) -> Asked:
    """Ask for something that scores: by the measures, judgments and policy of the query unless told otherwise."""
    given = {"measures": visit.text("measures") or MEASURES}
    given |= {name: visit.text(name) for name in ("judgments", "policy") if visit.text(name)}
    return ask(visit, verb, **{**given, **parameters})


def ask(visit: Visit, verb: str, **parameters: Any) -> Asked:
    """Ask the jobs; `of` in the query is the place of the log that the answer must reach."""
    wanted = visit.whole("of", 0, 0, 2**62)
    return _asked(visit, visit.site.jobs.ask(verb, refresh=wanted if wanted else False, **parameters))


def look(visit: Visit, verb: str, **parameters: Any) -> Asked | None:
    """The answer that is there already; None where nobody has asked yet."""
    state = visit.site.jobs.look(verb, **parameters)
    return None if state is None else _asked(visit, state)


def _asked(visit: Visit, state: Ready | Running | Failed) -> Asked:
    now = state.now if isinstance(state, Ready) else 0
    query = {name: values for name, values in visit.query.items() if name != "of"}
    return Asked(state, link(visit.path, **query, of=now), visit.site.told)


def _told(value: Any, told: Callable[[str], str]) -> Any:
    """Plain values with every text in them told so."""
    if isinstance(value, str):
        return told(value)
    if isinstance(value, list):
        return [_told(each, told) for each in value]
    return {name: _told(each, told) for name, each in value.items()} if isinstance(value, dict) else value
