"""A gate's verdicts as JUnit XML, which every continuous-integration service reads: a test case a measure.

A measure that failed is a `failure`, one that cannot be decided an `error`. Control characters that XML cannot hold
are spelt out: ids come from files and may hold anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Tree

if TYPE_CHECKING:
    from cranfield.compare.verdict import Gate, Verdict


UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate) -> str:
    """The report as text."""
    failed = sum(each.state == "failed" for each in gate.verdicts)
    undecided = sum(each.state == "undecided" for each in gate.verdicts)
    counts = {"tests": str(len(gate.verdicts)), "failures": str(failed), "errors": str(undecided)}
    root = Tree.Element("testsuites", counts)
    suite = Tree.SubElement(root, "testsuite", {"name": "cranfield gate", **counts, "skipped": "0", "time": "0"})
    properties = Tree.SubElement(suite, "properties")
    facts = {
        "baseline": gate.baseline,
        "candidate": gate.candidate,
        "alpha": f"{gate.alpha:g}",
        "test": gate.test,
        "seed": str(gate.seed),
    }
    for name, value in facts.items():
        Tree.SubElement(properties, "property", {"name": name, "value": _fit(value)})
    for verdict in gate.verdicts:
        _case(suite, verdict, gate)
    Tree.SubElement(suite, "system-out").text = _fit("\n".join([gate.how(), *gate.notes(shell=True)]))
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _case(suite: Tree.Element, verdict: Verdict, gate: Gate) -> None:
    case = Tree.SubElement(
        suite, "testcase", {"classname": _fit(gate.candidate), "name": _fit(verdict.measure), "time": "0"}
    )
    if verdict.state != "passed":
        what = "failure" if verdict.state == "failed" else "error"
        told = Tree.SubElement(case, what, {"message": _fit(verdict.reason), "type": verdict.state})
        causes = [f"{cause.code}: {cause.text}" for cause in verdict.causes]
        told.text = _fit("\n".join([verdict.sentence(), *causes, *map(str, verdict.fallen)]))
    else:
        Tree.SubElement(case, "system-out").text = _fit(verdict.sentence())


def _fit(text: str) -> str:
    return UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
