"""pt.Experiment of PyTerrier over ir_measures' own providers and over cranfield's: `make bench-frameworks`.

Systems are made-up lists of a realistic size, so that PyTerrier has nothing to do but to evaluate them. Both providers take
turns, best of `--repeats`; a run whose numbers differ by more than rounding stops the benchmark.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

MEASURES = "nDCG@10 AP RR R@100 P@10"


def main(arguments: list[str] | None = None) -> int:
    asked = _options().parse_args(arguments)
    try:
        import_module("pyterrier")
    except ImportError as error:
        print(f"{error.name} is missing: pip install '.[peers]'", file=sys.stderr)
        return 2
    qrels, systems = made_up(asked.topics, asked.depth, asked.systems, np.random.default_rng(asked.seed))
    own, ours = timed(qrels, systems, asked.measures, asked.repeats)
    size = f"{asked.systems} systems × {asked.topics:,} topics × {asked.depth:,} documents, {len(qrels):,} judgments"
    print(f"pt.Experiment: {size}; {asked.measures}")
    print(f"  ir_measures' own providers  {own:8.2f} s")
    print(f"  cranfield's                 {ours:8.2f} s   {own / ours:.1f} × as fast, same numbers")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frameworks", description=__doc__)
    sizes = {"topics": 1000, "depth": 1000, "systems": 2, "repeats": 3, "seed": 7}
    for name, usual in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--measures", default=MEASURES, help="names that ir_measures knows")
    return parser


def made_up(topics: int, depth: int, systems: int, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Judgments of fifty documents per topic and runs that hold half of them, as PyTerrier's frames."""
    pd: Any = import_module("pandas")

    names = np.array([f"q{t}" for t in range(topics)])
    judged = min(50, depth)
    documents = np.array([f"doc{d:07d}" for d in range(depth * 4)])
    picks = np.stack([rng.choice(len(documents), judged, replace=False) for _ in names])
    qrels = pd.DataFrame(
        {
            "qid": names.repeat(judged),
            "docno": documents[picks.ravel()],
            "label": rng.choice([0, 0, 0, 1, 2], topics * judged),
        }
    )
    return qrels, [_run(names, documents, picks[:, : judged // 2], depth, rng) for _ in range(systems)]


def _run(names: Any, documents: Any, some: Any, depth: int, rng: np.random.Generator) -> Any:
    pd: Any = import_module("pandas")

    rows = []
    for known in some:
        others = np.setdiff1d(rng.choice(len(documents), depth * 2, replace=False), known)[: depth - len(known)]
        rows.append(rng.permutation(np.concatenate([known, others])))
    length = len(rows[0])
    scores = -np.sort(-rng.gamma(2, 5, (len(names), length)), axis=1).ravel()
    ranks = np.tile(np.arange(length), len(names))
    columns = {"qid": names.repeat(length), "docno": documents[np.concatenate(rows)], "score": scores, "rank": ranks}
    return pd.DataFrame(columns)


def timed(qrels: Any, systems: list[Any], measures: str, repeats: int) -> tuple[float, float]:
    """The best times of pt.Experiment without and with cranfield's provider, which take turns."""
    import ir_measures

    pd: Any = import_module("pandas")
    pt: Any = import_module("pyterrier")

    from cranfield.compat import ir_measures as provider

    topics = qrels[["qid"]].drop_duplicates().assign(query="made up")
    asked = [ir_measures.parse_measure(name) for name in measures.split()]
    times: dict[Any, list[float]] = {provider.uninstall: [], provider.install: []}
    numbers: dict[Any, Any] = {}
    for _ in range(repeats):
        for change, seconds in times.items():
            change()
            start = time.process_time()
            numbers[change] = pt.Experiment(systems, topics, qrels, asked)
            seconds.append(time.process_time() - start)
    theirs, ours = numbers.values()
    pd.testing.assert_frame_equal(theirs, ours[theirs.columns], check_exact=False, rtol=0, atol=1e-12)
    own, mine = (min(seconds) for seconds in times.values())
    return own, mine


if __name__ == "__main__":
    sys.exit(main())
