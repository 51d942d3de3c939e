"""Runs: the leaderboard, a newcomer and whether the judgments can score it, one more run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal
from cranfield.web.asking import MEASURES, ask, ask_scores, judged
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.render import link
from cranfield.web.roles import LEAD, VIEWER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.web.visit import Visit

PIECE = 1 << 20  # bytes


@page("/runs", VIEWER, "workspace.leaderboard", table=True, menu=(60, "Runs"))
def runs(visit: Visit) -> Page:
    """The leaderboard: rank intervals, tiers, judged@k; with new=RUN whether that one can be scored; add a run."""
    bench = visit.site.bench
    there = [{"name": run.name, "bytes": run.size} for run in bench.runs()]
    new = bench.run(visit.text("new")).name if visit.text("new") else ""
    board = ask_scores(visit, "leaderboard") if there else None
    reuse = ask_scores(visit, "reuse", new=[new]) if new and len(there) > 1 else None
    check = ask(visit, "check", runs=[new], collection=False) if new else None
    values = {"runs": there, "new": new, **(board.values() if board else {})}
    values |= {"reuse": reuse.values()} if reuse else {}
    values |= {"check": check.values()} if check else {}
    shown = {
        "board": board,
        "reuse": reuse,
        "check": check,
        "measures": visit.text("measures") or MEASURES,
        "names": [run["name"] for run in there],
        **judged(visit),
    }
    table, status = (board.table, board.told(visit)) if board else (None, 200)
    return Page("Runs", "runs.html", values, shown, table, ("live.js", "sort.js", "runs.js"), status)


@action("/runs", LEAD, "workspace.add_run", body="file")
def add_run(visit: Visit) -> Done:
    """Add a run: the file is the body, its name the parameter name; it is checked first, and refused by line."""
    name = visit.needed("name")
    added = visit.site.bench.add_run(name, _pieces(visit))
    findings = added.findings.to_dict()
    if added.run is None:
        raise Refusal(f"{name} was not added", 422, advice="Mend the file and add it again.", more=findings)
    return Done(link("/runs", new=added.run.name), {"name": added.run.name, **findings})


def _pieces(visit: Visit) -> Iterator[bytes]:
    while piece := visit.file.read(PIECE):
        yield piece
