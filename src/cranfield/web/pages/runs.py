"""Runs: the leaderboard, a newcomer and whether the judgments can score it, two runs compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.answer import plain
from cranfield.judge.policy import policies
from cranfield.web.asking import ask
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.refusal import Refusal
from cranfield.web.render import link
from cranfield.web.roles import LEAD, VIEWER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.web.asking import Asked
    from cranfield.web.visit import Visit

MEASURES = "nDCG@10 AP RR@10"
PIECE = 1 << 20  # bytes


def judgments_of(visit: Visit) -> dict[str, Any]:
    """Which judgments count, as the query says, and which there are."""
    bench = visit.site.bench
    there = ["log", *(f"log@{each.name}" for each in bench.versions()), *(["collection"] if bench.qrels else [])]
    return {"judgments": visit.text("judgments"), "policy": visit.text("policy", "latest"), "sources": there}


def _asked(visit: Visit, verb: str, **parameters: Any) -> Asked:
    given = {"measures": visit.text("measures", MEASURES)}
    given |= {name: visit.text(name) for name in ("judgments", "policy") if visit.text(name)}
    return ask(visit, verb, **given, **parameters)


@page("/runs", VIEWER, "workspace.leaderboard", table=True)
def runs(visit: Visit) -> Page:
    """The leaderboard: rank intervals, tiers, judged@k; with new=RUN whether that one can be scored; add a run."""
    bench = visit.site.bench
    there = [{"name": run.name, "bytes": run.size} for run in bench.runs()]
    asked = _asked(visit, "leaderboard") if there else None
    new = visit.text("new")
    verdict = _asked(visit, "reuse", new=[new]) if new and len(there) > 1 else None
    values = {"runs": there, "new": new, **(asked.values() if asked else {})}
    values |= {"reuse": verdict.values()} if verdict else {}
    shown = {
        "asked": asked,
        "verdict": verdict,
        "measures": visit.text("measures", MEASURES),
        "policies": policies(),
        "names": [run["name"] for run in there],
        **judgments_of(visit),
    }
    return Page("Runs", "runs.html", values, shown, asked.table if asked else None, ("live.js", "runs.js"))


@action("/runs", LEAD, "workspace.add_run", body="file")
def add_run(visit: Visit) -> Page | Done:
    """Add a run: the file is the body, its name the parameter name; it is checked first, and refused by line."""
    name = visit.needed("name")
    added = visit.site.bench.add_run(name, _pieces(visit))
    findings = [plain(vars(each)) for each in added.findings]
    if added.run is None:
        worst = [each for each in findings if each["severity"] == "error"]
        raise Refusal(
            f"{name} was not added: {worst[0]['message']}" if worst else f"{name} was not added",
            422,
            advice="Mend the file and add it again.",
        )
    return Done(link("/runs", new=added.run.name), {"name": added.run.name, "findings": findings})


def _pieces(visit: Visit) -> Iterator[bytes]:
    while piece := visit.file.read(PIECE):
        yield piece


@page("/compare", VIEWER, "workspace.compare", table=True)
def compare(visit: Visit) -> Page:
    """Two runs: the sentence, differences by topic, scatter, curves, cost; some topics only by a category."""
    bench = visit.site.bench
    names = [run.name for run in bench.runs()]
    one = visit.text("one") or (names[0] if names else "")
    other = visit.text("other") or (names[-1] if names else "")
    table = bench.topics()
    columns = {} if table is None else _categories(table.columns)
    column, _, value = visit.text("category").partition("=")
    asked = None
    if one and other and one != other:
        category = {"column": column, "value": value} if column else {}
        asked = _asked(visit, "compare", one=one, other=other, **category)
    values = {"one": one, "other": other, "category": visit.text("category"), **(asked.values() if asked else {})}
    shown = {
        "asked": asked,
        "names": names,
        "columns": columns,
        "measures": visit.text("measures", MEASURES),
        "policies": policies(),
        "topics": (asked.answer or {}).get("topics", []) if asked else [],
        **judgments_of(visit),
    }
    return Page("Compare", "compare.html", values, shown, asked.table if asked else None, ("live.js",))


FEW = 30  # values that make a column a category


def _categories(columns: Any) -> dict[str, list[str]]:
    """The columns of the topics that sort them into a few groups."""
    found = {name: sorted({value for value in texts.values() if value}) for name, texts in columns.items()}
    return {name: values for name, values in found.items() if 1 < len(values) <= FEW}
