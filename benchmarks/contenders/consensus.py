"""One label for each item by Dawid and Skene's model: cranfield or crowd-kit, each on what its users would hand it.

Arguments: cranfield or crowdkit, a CSV of question, worker, answer (or a hyphen: labels made from a fixed seed), a CSV of
question, truth (or a hyphen). Prints the seconds from rows in memory to labels, and the share of labels that are right.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from time import perf_counter, process_time
from typing import Any

ITEMS, RATERS, LABELS = 8_000, 150, 3  # of what is made: so many labels an item


def made() -> tuple[list[tuple[str, str, int]], dict[str, int]]:
    """Raters of different skill who say 0 or 1."""
    rng = random.Random(0)
    skills = [rng.uniform(0.55, 0.95) for _ in range(RATERS)]
    truth = {f"q{item}": int(rng.random() < 0.15) for item in range(ITEMS)}
    rows = [
        (question, f"w{worker}", true if rng.random() < skills[worker] else 1 - true)
        for question, true in truth.items()
        for worker in rng.sample(range(RATERS), LABELS)
    ]
    return rows, truth


def read(answers: str, truths: str) -> tuple[list[tuple[str, str, int]], dict[str, int]]:
    if answers == "-":
        return made()
    with open(answers, encoding="utf-8") as file:
        rows = [(line["question"], line["worker"], int(line["answer"])) for line in csv.DictReader(file)]
    with open(truths, encoding="utf-8") as file:
        return rows, {line["question"]: int(line["truth"]) for line in csv.DictReader(file)}


def with_cranfield(rows: list[tuple[str, str, int]]) -> Any:
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]  # noqa: F401 (loaded before the clock starts)

    from cranfield.stats.consensus.method import METHODS
    from cranfield.stats.ratings import Labels

    method = METHODS.named("dawid-skene")

    def labels() -> dict[Any, Any]:
        items, raters, given = zip(*rows, strict=True)
        return method.decide(Labels.of(raters, items, given)).labels

    return labels


def with_crowdkit(rows: list[tuple[str, str, int]]) -> Any:
    import pandas  # type: ignore[import-untyped, unused-ignore]
    from crowdkit.aggregation import DawidSkene  # type: ignore[import-not-found, unused-ignore]

    table = pandas.DataFrame(rows, columns=["task", "worker", "label"])

    def labels() -> dict[Any, Any]:
        answer: dict[Any, Any] = DawidSkene(n_iter=100).fit_predict(table).to_dict()
        return answer

    return labels


def main(who: str, answers: str, truths: str) -> None:
    rows, truth = read(answers, truths)
    labels = (with_cranfield if who == "cranfield" else with_crowdkit)(rows)
    start, cpu = perf_counter(), process_time()
    answer = labels()
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - cpu}
    right = sum(answer[question] == true for question, true in truth.items()) / len(truth)
    print(json.dumps({**taken, "right": right, "labels": len(rows)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
