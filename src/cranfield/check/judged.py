"""A run seen through qrels: topics in one of them only, documents that nobody judged, what the order of ties could change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.check.file import keys, spread
from cranfield.check.rows import DEEP
from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.conventions import Conventions
from cranfield.doubts import (
    RULES,
    Meeting,
    in_words,
    little_judged,
    looks_like_grades,
    looks_like_scores,
    misfits,
    swapped,
    would_match,
)
from cranfield.evaluate import Evaluator
from cranfield.findings import SHOWN, Finding
from cranfield.formats import as_qrels
from cranfield.kernels import Strings, Table, encode
from cranfield.measures import measure
from cranfield.orders import tied
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.check.file import Array, File
    from cranfield.hits import Hits


def judgments(qrels: Any, files: list[File]) -> Qrels | None:
    """The judgments to check runs against: what was given, or the one qrels file among several files."""
    if qrels is not None and not isinstance(qrels, (str, os.PathLike)):
        return as_qrels(qrels)
    judged = [file for file in files if file.kind == "qrels" and len(file.rows.topic)]
    if qrels is not None:
        judged = [file for file in judged if file.where == os.fspath(qrels)][-1:]
    if len(judged) != 1:
        return None
    again, _ = judged[0].repeats()
    return Qrels(_without(judged[0].rows, again), judged[0].where)


def _without(rows: Table, again: Array) -> Table:
    """The rows less some of them."""
    if not len(again):
        return rows
    kept = np.setdiff1d(np.arange(len(rows.topic)), again)
    nothing = np.zeros(0, np.int32)
    documents = rows.documents.take(kept)
    return Table(
        rows.topics, rows.topic[kept], documents, rows.value[kept], Strings.of([]), nothing, np.zeros(0, np.int64)
    )


def look_through(file: File, qrels: Qrels) -> Iterator[Finding]:
    """What a run and judgments have to do with each other."""
    evaluator, run = Evaluator(qrels, "nDCG@10", duplicates="first", warn=False), Run(file.rows, file.where)
    if looks_like_scores(qrels) and looks_like_grades(run):
        yield swapped(run, qrels)
    found = run.hits(qrels.index, evaluator.conventions.order)
    met = Meeting.of(found, evaluator.judgments)
    yield from misfits(run, qrels, met)
    if not met.answered:
        return
    answered = file.rows.topics.text()
    common = set(answered) & set(qrels.topics)
    missing = [topic for topic in qrels.topics if topic not in common]
    others = [topic for topic in answered if topic not in common]
    hint = would_match(others, missing)
    for code, names, all_names in (("topics-missing", missing, qrels.topics), ("topics-not-judged", others, answered)):
        if names:
            yield Finding.of(
                code, file.where, f"{counted(len(names), 'topic')} of {len(all_names):,}{hint}", names=names
            )
    hits = evaluator.hits(run)
    yield from _look_for_unjudged(file, qrels, hits)
    yield from () if met.ids_apart else little_judged(run, hits, evaluator.wanted)
    yield from _look_at_tie_order(file, hits)


def _look_for_unjudged(file: File, qrels: Qrels, hits: Hits) -> Iterator[Finding]:
    returned = int(hits.retrieved.sum())
    judged = hits.judged()
    if 0 < len(judged) < returned:
        shares = []
        for k in (10, DEEP):
            top = judged.top(k)
            shares.append(f"{len(top) / max(int(top.retrieved.sum()), 1):.1%} of the top {k:,}")
        what = (
            f"judged are {' and '.join(shares)}; {returned - len(judged):,} of {counted(returned, 'document')} are not"
        )
        code = "documents-not-judged"
        if hits.judgments.only_relevant():  # what is not named need not be unjudged
            code, what = "documents-not-named", f"{returned - len(judged):,} of {counted(returned, 'document')}"
        start = file.rows.start
        rows = _unjudged_rows(file, qrels)[:SHOWN]
        at = [(int(start[row]), file.pair(int(row))) for row in rows] if len(start) else []
        yield file.finding(code, what, returned - len(judged), at)


def _unjudged_rows(file: File, qrels: Qrels) -> Array:
    """The rows of judged topics whose document has no judgment."""
    number = {encode(topic): i for i, topic in enumerate(qrels.topics)}
    of_topic = np.array([number.get(topic, -1) for topic in file.rows.topics], np.int64)
    topic = of_topic[file.rows.topic]
    good = qrels.grade >= 0
    known = spread(keys(qrels.documents), qrels.topic.astype(np.uint64))[good]
    here = spread(file.keys, np.maximum(topic, 0).astype(np.uint64))
    return np.flatnonzero((topic >= 0) & ~np.isin(here, known))


def _look_at_tie_order(file: File, hits: Hits) -> Iterator[Finding]:
    ndcg = measure("nDCG@10")
    low, now, high = (ndcg.score(order) for order in (tied(hits, best=False), hits, tied(hits, best=True)))
    moved = int((high - low > 1e-12).sum())
    if moved:
        means = float(low.mean()), float(now.mean()), float(high.mean())
        what = in_words("nDCG@10", *means, RULES[Conventions().ties], high - low)
        yield file.finding("tie-order", what, moved)
