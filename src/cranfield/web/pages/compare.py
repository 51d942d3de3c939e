"""Two runs compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.web.asking import MEASURES, ask_scores, judged
from cranfield.web.entry import Page, page
from cranfield.web.roles import VIEWER
from cranfield.workspace.looking import categories_of

if TYPE_CHECKING:
    from cranfield.web.visit import Visit


@page("/compare", VIEWER, "workspace.compare", table=True, menu=(70, "Compare"))
def compare(visit: Visit) -> Page:
    """Two runs: the sentence, differences by topic, scatter, curves, cost; some topics only by a category."""
    bench = visit.site.bench
    names = [run.name for run in bench.runs()]
    one, other = visit.text("one") or "".join(names[:1]), visit.text("other") or "".join(names[1:2])
    column, _, value = visit.text("category").partition("=")
    asked = None
    if one and other and one != other:
        asked = ask_scores(visit, "compare", one=one, other=other, column=column, value=value)
    values = {"one": one, "other": other, "category": visit.text("category"), **(asked.values() if asked else {})}
    shown = {
        "asked": asked,
        "names": names,
        "columns": categories_of(bench),
        "measures": visit.text("measures") or MEASURES,
        **judged(visit),
    }
    table, status = (asked.table, asked.told(visit)) if asked else (None, 200)
    return Page("Compare", "compare.html", values, shown, table, ("live.js", "sort.js"), status)
