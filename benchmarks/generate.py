"""Makes the data sets: judgments and runs that look like TREC's and MS MARCO's, the same on every machine.

Each document of a topic gets a latent quality that the topic's runs share, and each run adds its own noise: so runs
agree as much as real ones do, and the judged documents gather near the top. Distinct scores lie at least 1e-5 apart
and below 64, so that a peer that compares 32-bit floats sees the same order as one that compares doubles.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.sets import Spec, stamp

if TYPE_CHECKING:
    import numpy.typing as npt

NEWS = 528_000  # documents, about as many as on TREC disks 4 and 5
PASSAGES = 8_841_823  # as in MS MARCO
GRADES = (0.85, 0.09, 0.04, 0.02)  # shares of the grades 0 to 3 among judged news
GAP = 10  # the least distance of distinct scores, in millionths


def news_id(n: int) -> str:
    """The id of a news document, in the style of its source.

    >>> news_id(24689), news_id(150000), news_id(300000), news_id(527999)
    ('FBIS4-12345', 'FT915-2001', 'LA071389-0001', 'FR941222-0-00400')
    """
    source, k = divmod(n, NEWS // 4)
    if source == 0:
        return f"FBIS{3 + k % 2}-{k // 2 + 1}"
    if source == 1:
        return f"FT9{11 + k // 4000}-{k % 4000 + 1}"
    day, item = divmod(k, 200 if source == 2 else 400)
    year, day = divmod(day, 12 * 28)
    date = f"{1 + day // 28:02d}{1 + day % 28:02d}"
    return f"LA{date}{89 + year}-{item + 1:04d}" if source == 2 else f"FR94{date}-0-{item + 1:05d}"


@dataclass
class Topic:
    """A topic's candidates: the judged ones first, and how good each is to every system."""

    name: str
    ids: list[str]
    grades: npt.NDArray[np.int64]
    quality: npt.NDArray[np.float64]


def topics(spec: Spec) -> list[Topic]:
    """All topics of a set."""
    names = topic_names(spec)
    make = news_topic if spec.kind == "news" else passage_topic
    code = 0 if spec.kind == "news" else 1  # S, L and the five topics share their judgments
    return [make(name, np.random.default_rng([spec.seed, code, i])) for i, name in enumerate(names)]


def topic_names(spec: Spec) -> list[str]:
    """TREC numbers its topics from 301 on, MS MARCO's are numbers up to a million."""
    if spec.kind == "news":
        return [str(301 + i) for i in range(spec.topics)]
    drawn = np.random.default_rng([spec.seed, 2]).choice(1_102_400, spec.topics, replace=False)
    return [str(n) for n in np.sort(drawn)]


def news_topic(name: str, rng: np.random.Generator) -> Topic:
    """150 to 500 judged documents and 3,000 others; better grades are likelier to be found."""
    judged = int(rng.integers(150, 501))
    grades = rng.choice(4, judged, p=GRADES)
    drawn = rng.choice(NEWS, judged + 3000, replace=False)
    quality = rng.standard_normal(len(drawn))
    quality[:judged] += np.array([0.7, 2.0, 2.7, 3.4])[grades]
    return Topic(name, [news_id(n) for n in drawn.tolist()], grades, quality)


def passage_topic(name: str, rng: np.random.Generator) -> Topic:
    """One relevant passage, seldom more, among 1,150 others."""
    judged = int(rng.choice(4, p=(0.945, 0.047, 0.007, 0.001))) + 1
    drawn = rng.choice(PASSAGES, judged + 1150, replace=False)
    quality = rng.standard_normal(len(drawn))
    quality[:judged] = 2.2 + 1.8 * quality[:judged]
    return Topic(name, [str(n) for n in drawn.tolist()], np.ones(judged, np.int64), quality)


def answer(topic: Topic, depth: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Which candidates a system returns, best first."""
    return np.argsort(-(topic.quality + rng.standard_normal(len(topic.quality))), kind="stable")[:depth]


def scores(count: int, ties: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Descending scores in millionths; some equal to the one above."""
    gaps = GAP + rng.exponential(10_000, count).astype(np.int64)
    gaps[rng.random(count) < ties] = 0
    fallen = np.cumsum(gaps)
    return np.asarray(4_000_000 + fallen[-1] - fallen)


def tied(values: npt.NDArray[np.int64]) -> int:
    """How many of a topic's documents share their score with another."""
    same = values[1:] == values[:-1]
    return int((np.r_[same, False] | np.r_[False, same]).sum())


def write_run(path: Path, spec: Spec, given: list[Topic], system: int) -> tuple[int, int, int]:
    """Write one system's run; count its lines, its tied documents and its judged ones."""
    tag = f"system-{system:03d}"
    lines: list[str] = []
    count = shared = judged = 0
    with path.open("w") as file:
        for i, topic in enumerate(given):
            rng = np.random.default_rng([spec.seed, 3, system, i])
            best = answer(topic, spec.depth, rng)
            values = scores(len(best), spec.ties, rng)
            start, ids = f"{topic.name} Q0 ", topic.ids
            ranked = zip(best.tolist(), (values / 1e6).tolist(), strict=True)
            block = [f"{start}{ids[d]} {r} {s:.6f} {tag}\n" for r, (d, s) in enumerate(ranked, 1)]
            count += len(block)
            shared += tied(values)
            judged += int((best < len(topic.grades)).sum())
            if spec.order == "within":
                block = [block[j] for j in rng.permutation(len(block))]
            if spec.order == "scattered":
                lines += block
            else:
                file.write("".join(block))
        if lines:
            order = np.random.default_rng([spec.seed, 4, system]).permutation(len(lines)).tolist()
            file.write("".join([lines[j] for j in order]))
    return count, shared, judged


def write_qrels(path: Path, given: list[Topic], tab: bool) -> None:
    """Write the judgments, each topic's by document id as TREC's are."""
    gap = "\t" if tab else " "
    with path.open("w") as file:
        for topic in given:
            rows = sorted(zip(topic.ids, topic.grades.tolist(), strict=False))
            file.write("".join(gap.join((topic.name, "0", document, f"{grade}\n")) for document, grade in rows))


def generate(spec: Spec, root: Path) -> Path:
    """Make a set in `root`, whole or not at all."""
    root.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".making-", dir=root))
    try:
        given = topics(spec)
        write_qrels(fresh / "qrels.txt", given, tab=spec.kind == "passages")
        systems = range(spec.first, spec.first + spec.runs)
        counts = [write_run(fresh / f"system-{system:03d}.run", spec, given, system) for system in systems]
        text = json.dumps({**stamp(spec), "facts": facts(spec, fresh, given, counts)}, indent=1)
        (fresh / "stamp.json").write_text(text + "\n")
        folder = root / spec.folder
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def facts(spec: Spec, folder: Path, given: list[Topic], counts: list[tuple[int, int, int]]) -> dict[str, Any]:
    """What the tables say of a set."""
    judged = [len(topic.grades) for topic in given]
    grades = np.concatenate([topic.grades for topic in given])
    lines = sum(count for count, _, _ in counts)
    low, high = int(grades.min()), int(grades.max())
    return {
        "topics": len(given),
        "runs": spec.runs,
        "lines": lines,
        "example": given[0].ids[0],
        "judged_least": min(judged),
        "judged_most": max(judged),
        "judged_mean": sum(judged) / len(judged),
        "grades": str(low) if low == high else f"{low}–{high}",
        "relevant_mean": float((grades > 0).sum()) / len(given),
        "judged_retrieved": sum(count for _, _, count in counts) / sum(judged) / spec.runs,
        "tied": sum(count for _, count, _ in counts) / lines,
        "order": spec.order,
        "qrels_bytes": (folder / "qrels.txt").stat().st_size,
        "run_bytes": sum(path.stat().st_size for path in folder.glob("*.run")),
    }


if __name__ == "__main__":
    generate(Spec(**json.loads(sys.argv[1])), Path(sys.argv[2]))
