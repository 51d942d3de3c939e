"""`make bench-judge`: labels of several people made one, and how far they agree, timed; logs too. Bars are shown, and never fail.

Each section is a function of a plan and a scale that returns rows; a new one is a line in SECTIONS. The bars are those of
full size on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import peers, table
from benchmarks.agreement import VoidError
from benchmarks.logs import logs
from benchmarks.looks import looks
from benchmarks.suite import SCRIPTS, Plan, faster
from benchmarks.table import Row
from benchmarks.timing import Contender, Spread, interleave

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PRODUCT = Path(__file__).resolve().parents[2] / "shared" / "data" / "crowd-truth-infer" / "d_jn-product"
FASTER = 10.0  # times crowd-kit
ITEMS, RESAMPLES, TOPICS, SECONDS = 100_000, 1_000, 50, 2.0
ALIKE = 0.01  # by so much may the shares of right labels of two programs differ


def consensus(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Dawid and Skene's model on D_Product, or on labels made from a seed, beside crowd-kit where it is installed."""
    known = PRODUCT.is_dir()
    files = (str(PRODUCT / "answer.csv"), str(PRODUCT / "truth.csv")) if known else ("-", "-")
    script = str(SCRIPTS / "consensus.py")
    ours = Contender("cranfield", (sys.executable, script, "cranfield", *files), plan.repeats)
    theirs = Contender("crowdkit", (peers.program(), script, "crowdkit", *files), plan.peer_repeats)
    rivals = [theirs] if "crowdkit" in plan.usable else []
    samples = interleave([*rivals, ours], "Dawid-Skene")
    answers = {who: [json.loads(sample.output) for sample in taken] for who, taken in samples.items()}
    agree({who: [answer["right"] for answer in given] for who, given in answers.items()})
    mine = Spread.of([answer["cpu"] for answer in answers["cranfield"]])
    right, labels = answers["cranfield"][0]["right"], answers["cranfield"][0]["labels"]
    what, data = f"Dawid-Skene, {labels:,} labels, {right:.4f} right", "D_Product" if known else "made"
    if not rivals:
        return [Row(what, data, "cranfield", mine, "crowd-kit is not installed", None, mine.median, "s of CPU")]
    other = Spread.of([answer["cpu"] for answer in answers["crowdkit"]])
    against = f"crowd-kit, {answers['crowdkit'][0]['right']:.4f} right"
    return [faster(what, data, "cranfield", mine, against, other, FASTER)]


def agree(right: dict[str, list[float]]) -> None:
    """Stop where programs that claim one model differ in how many labels are right."""
    every = [share for shares in right.values() for share in shares]
    if max(every) - min(every) > ALIKE:
        raise VoidError(
            f"Dawid-Skene: right are {', '.join(f'{who} {shares[0]:.4f}' for who, shares in right.items())}"
        )


def coefficients(plan: Plan, scale: float = 1.0) -> list[Row]:
    """Krippendorff's alpha of two raters' labels with its interval: over resamples of items, and over topics."""
    items = max(100, round(ITEMS * scale))
    bar = SECONDS if scale == 1 else None
    sign = "≤" if bar else ""
    rows = []
    for what, topics in ((f"alpha, {RESAMPLES:,} resamples", 0), (f"alpha, {TOPICS} topics", TOPICS)):
        command = (sys.executable, str(SCRIPTS / "coefficients.py"), str(items), str(RESAMPLES), str(topics))
        samples = interleave([Contender("cranfield", command, plan.repeats)], "alpha")["cranfield"]
        mine = Spread.of([json.loads(sample.output)["seconds"] for sample in samples])
        rows.append(Row(what, f"{items:,} × 2", "agreement", mine, "the bar", None, mine.median, "s", "s", sign, bar))
    return rows


SECTIONS: dict[str, Callable[[Plan, float], list[Row]]] = {
    "consensus": consensus,
    "coefficients": coefficients,
    "logs": logs,
    "looks": looks,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections asked for and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judging", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure this part only (may be repeated)")
    parser.add_argument("--repeats", type=int, default=5, help="how often cranfield is measured (5)")
    parser.add_argument("--peer-repeats", type=int, default=3, help="how often each peer is (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink what is made, to try things out (1.0)")
    parser.add_argument("--no-peers", action="store_true", help="measure cranfield alone; install nothing")
    given = parser.parse_args(arguments)
    usable = set() if given.no_peers else set(peers.ensure(wanted=peers.WANTED_BY_JUDGING))
    plan = Plan(given.repeats, given.peer_repeats, usable=usable)
    try:
        rows = [row for name in given.only or SECTIONS for row in SECTIONS[name](plan, given.scale)]
    except VoidError as error:
        print(f"void: {error}", file=sys.stderr)
        return 1
    print(table.text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
