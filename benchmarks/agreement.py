"""Whether two contenders computed the same: a benchmark that computes something else is void.

Peers order tied documents differently, so each is held against cranfield under the tie rule that it follows:
document ids descending (pytrec_eval, and ir_measures through it), ascending (ir_measures' RR@10), or as they stand in the
file (ranx, roughly: its sort is not stable, hence the wide tolerance).
"""

from __future__ import annotations

import json

Means = list[dict[str, float]]  # one a run

MEASURES = ("AP", "nDCG@10", "nDCG", "P@10", "R@1000", "RR@10")
TOLERANCE = 1e-6
ROUGHLY = 5e-3


class VoidError(RuntimeError):
    """Two contenders that did not compute the same."""


def read(output: str) -> Means:
    """The means that a contender printed: a list as JSON, cranfield's JSON, or ir_measures' table."""
    if output.lstrip().startswith("["):
        answers: Means = json.loads(output)
        return answers
    if output.lstrip().startswith("{"):
        return [run["mean"] for run in json.loads(output)["runs"]]
    return [{name: float(value) for name, value in (line.split("\t") for line in output.splitlines())}]


def expected(contender: str, reference: dict[str, Means]) -> Means:
    """What a contender ought to print, given the means under each tie rule."""
    if contender.startswith("ranx"):
        return reference["input-order"]
    if contender.startswith("ir_measures"):
        pairs = zip(reference["document-descending"], reference["document-ascending"], strict=True)
        return [{**usual, "RR@10": other["RR@10"]} for usual, other in pairs]
    return reference["document-descending"]


def check(contender: str, found: Means, wanted: Means) -> None:
    """Stop unless the means agree."""
    tolerance = ROUGHLY if contender.startswith("ranx") else TOLERANCE
    if len(found) != len(wanted):
        raise VoidError(f"{contender} evaluated {len(found)} runs, cranfield {len(wanted)}")
    for i, (theirs, ours) in enumerate(zip(found, wanted, strict=True)):
        for measure in ours:
            gap = abs(theirs[measure] - ours[measure])
            if not gap <= tolerance:
                raise VoidError(
                    f"run {i + 1}, {measure}: {contender} says {theirs[measure]!r}, expected {ours[measure]!r}; "
                    f"they differ by {gap:.2g}, and more than {tolerance:g} makes the comparison void"
                )
