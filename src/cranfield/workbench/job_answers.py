"""Answers of jobs as pages show them: the result, its progress, or why it failed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.judging.policies import policies
from cranfield.workbench.jobs import Failed, Ready, Running
from cranfield.workbench.links import link
from cranfield.workbench.routes import Page, PageRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class JobAnswer:
    """The state of a question on a page; `again` is the address that includes the newest labels."""

    state: Ready | Running | Failed
    again: str
    public: Callable[[str], str] = str  # removes paths and server names from a text

    @property
    def kind(self) -> str:
        """The state as a word: ready, running or failed."""
        return type(self.state).__name__.lower()

    def page_status(self, request: PageRequest) -> int:
        """The HTTP status of a page: 200 for people; for the JSON twin 202 while the answer is computed, 422 if it failed."""
        return {"running": 202, "failed": 422}.get(self.kind, 200) if request.twin == "json" else 200

    @property
    def table(self) -> str | None:
        """The answer as CSV."""
        return self.state.answer.csv if isinstance(self.state, Ready) else None

    @property
    def answer(self) -> Any:
        """The answer as plain values; None if it is not ready."""
        return _public(json.loads(self.state.answer.json), self.public) if isinstance(self.state, Ready) else None

    @property
    def notes(self) -> list[str]:
        """The notes on the answer."""
        return [self.public(each) for each in self.state.answer.notes] if isinstance(self.state, Ready) else []

    @property
    def why(self) -> str:
        """Why the question failed."""
        return self.public(self.state.why) if isinstance(self.state, Failed) else ""

    def values(self) -> dict[str, Any]:
        """The state as values of the JSON twin."""
        state = self.state
        if isinstance(state, Ready):
            about = {"place": state.place, "newer": state.newer, "made": state.created, "notes": self.notes}
            return {"state": self.kind, **about, "answer": self.answer}
        if isinstance(state, Running):
            return {"state": self.kind, "progress": state.progress, "told": state.activity, "since": state.since}
        return {"state": self.kind, "error": self.why}


MEASURES = "nDCG@10 AP RR@10"


def judgment_options(request: PageRequest) -> dict[str, Any]:
    """The measures, the judgments and the policy of the query, and the choices that a form offers."""
    bench = request.site.bench
    sources = ["log", *(f"log@{each.name}" for each in bench.versions()), *(["collection"] if bench.qrels else [])]
    policy = request.text("policy", "latest")
    return {
        "measures": request.text("measures") or MEASURES,
        "judgments": request.text("judgments"),
        "policy": policy,
        "policies": list(dict.fromkeys([*policies(), policy])),  # a policy with parameters is in no list
        "sources": sources,
    }


def answer_page(
    request: PageRequest,
    title: str,
    template: str,
    values: dict[str, Any],
    context: dict[str, Any],
    job: JobAnswer | None,
    scripts: Sequence[str] = ("live.js", "sort.js"),
) -> Page:
    """A page around the answer of a job; without a job, the page alone."""
    context = {**context, "job": job}
    if job is None:
        return Page(title, template, values, context, scripts=scripts)
    return Page(title, template, {**values, **job.values()}, context, job.table, scripts, job.page_status(request))


def ask_scores(request: PageRequest, verb: str, **parameters: Any) -> JobAnswer:
    """Ask a question that scores runs, with the measures, judgments and policy of the query as defaults."""
    defaults = {"measures": request.text("measures") or MEASURES}
    defaults |= {name: request.text(name) for name in ("judgments", "policy") if request.text(name)}
    return ask(request, verb, **{**defaults, **parameters})


def ask(request: PageRequest, verb: str, **parameters: Any) -> JobAnswer:
    """Ask a question; `of` in the query is the place of the log that the answer must include."""
    place = request.whole("of", 0, 0, 2**62)
    return _answer(request, request.site.jobs.ask(verb, refresh=place if place else False, **parameters))


def look(request: PageRequest, verb: str, **parameters: Any) -> JobAnswer | None:
    """The cached answer; None if nobody has asked yet."""
    state = request.site.jobs.look(verb, **parameters)
    return None if state is None else _answer(request, state)


def _answer(request: PageRequest, state: Ready | Running | Failed) -> JobAnswer:
    now = state.now if isinstance(state, Ready) else 0
    query = {name: values for name, values in request.query.items() if name != "of"}
    return JobAnswer(state, link(request.path, **query, of=now), request.site.public_text)


def _public(value: Any, public: Callable[[str], str]) -> Any:
    """Plain values with `public` applied to every text."""
    if isinstance(value, str):
        return public(value)
    if isinstance(value, list):
        return [_public(each, public) for each in value]
    return {name: _public(each, public) for name, each in value.items()} if isinstance(value, dict) else value
