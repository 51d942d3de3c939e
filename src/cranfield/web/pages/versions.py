"""Frozen qrels, and what changed from one version to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.http.refusal import Refusal
from cranfield.judge.policy import Settings, policies
from cranfield.judge.versions import Versions, all_versions, find_version, freeze, thaw
from cranfield.web.asking import ask
from cranfield.web.entry import Done, Page, action, page
from cranfield.web.roles import LEAD, VIEWER
from cranfield.web.tables import csv_of

if TYPE_CHECKING:
    from cranfield.web.visit import Visit


@page("/versions", VIEWER, "judge.all_versions", table=True, menu=(90, "Versions"))
def versions(visit: Visit) -> Page:
    """Frozen qrels: name, policy, how many judgments, hash."""
    log = visit.site.bench.log
    found = Versions(log.name, all_versions(log))
    shown = {"found": found, "policies": policies(), "names": [each.name for each in found.rows]}
    table = found.to_csv(spreadsheet=True) if found.rows else "name\n"
    return Page("Versions", "versions.html", {"versions": found.to_dict()}, shown, table)


@action("/versions", LEAD, "judge.freeze")
def freeze_now(visit: Visit) -> Done:
    """Freeze what stands now under a name."""
    name, policy = visit.said("name").strip(), visit.said("policy", "latest")
    version, decided = freeze(visit.site.bench.log, name, policy, Settings(), visit.said("note"))
    told = {"name": version.name, "hash": version.hash, "documents": version.documents, "notes": decided.notes()}
    return Done("/versions", told)


@page("/version", VIEWER, "judge.thaw", table=True)
def version(visit: Visit) -> Page:
    """The qrels of a version, worked out again and held against their hash; the table has every judgment."""
    if visit.blind:
        raise Refusal(
            "you are asked to judge in a round that is not closed",
            403,
            safe="",
            advice="Qrels are shown when it is closed.",
        )
    name = visit.needed("name")
    log = visit.site.bench.log
    found, decided = find_version(log, name), thaw(log, name)
    rows = [(t, d, f"{grade:g}") for t, grades in decided.grades.items() for d, grade in grades.items()]
    counts: dict[str, int] = {}
    for _, _, grade in rows:
        counts[grade] = counts.get(grade, 0) + 1
    values = {
        "name": found.name,
        "policy": found.policy,
        "hash": found.hash,
        "created": found.created,
        "note": found.note,
        "documents": found.documents,
        "topics": len(decided.grades),
        "grades": dict(sorted(counts.items(), key=lambda each: float(each[0]))),
        "notes": decided.notes(),
    }
    return Page(name, "version.html", values, table=csv_of(["topic", "document", "grade"], rows))


@page("/diff", VIEWER, "workspace.diff", table=True)
def diff(visit: Visit) -> Page:
    """What changed from one version to another or to now, and which verdicts with it."""
    if visit.blind:
        raise Refusal(
            "you are asked to judge in a round that is not closed",
            403,
            safe="",
            advice="Changes are shown when it is closed.",
        )
    names = [each.name for each in all_versions(visit.site.bench.log)]
    a, b = visit.text("a", names[-1] if names else ""), visit.text("b")
    shown = {"names": names, "a": a, "b": b}
    if not a:
        return Page("Changes", "diff.html", {"versions": names}, {**shown, "asked": None})
    asked = ask(visit, "diff", a=a, b=b)
    values = {"versions": names, "a": a, "b": b, **asked.values()}
    return Page("Changes", "diff.html", values, {**shown, "asked": asked}, asked.table, ("live.js",), asked.told(visit))
