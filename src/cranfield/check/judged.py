"""A run seen through qrels: topics in one of them only, documents that nobody judged, what the order of ties could change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.check.file import keys, spread
from cranfield.check.rows import DEEP
from cranfield.collection import Qrels
from cranfield.columns import counted
from cranfield.evaluate import Evaluator
from cranfield.findings import SHOWN, Finding, some
from cranfield.formats import as_qrels
from cranfield.kernels import Strings, Table, decode, encode
from cranfield.measures import measure
from cranfield.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    answered = file.rows.topics.text()
    common = set(answered) & set(qrels.topics)
    if not common:
        hint = _would_match(answered, qrels.topics)
        what = f"it answers {some(answered, 3)}; judged are {some(qrels.topics, 3)}{hint}"
        yield file.finding("no-common-topic", what)
        return
    missing = [topic for topic in qrels.topics if topic not in common]
    others = [topic for topic in answered if topic not in common]
    hint = _would_match(others, missing)
    for code, names, all_names in (("topics-missing", missing, qrels.topics), ("topics-not-judged", others, answered)):
        if names:
            yield Finding.of(
                code, file.where, f"{counted(len(names), 'topic')} of {len(all_names):,}{hint}", names=names
            )
    hits = Evaluator(qrels, "nDCG@10", duplicates="first").hits(Run(file.rows, file.where))
    yield from _look_for_unjudged(file, qrels, hits)
    yield from _look_at_tie_order(file, hits)


def _would_match(answered: Sequence[str], judged: Sequence[str]) -> str:
    """Say what would make the topics of both sides match, if something simple would."""
    ways: dict[str, Callable[[str], str]] = {
        "ignoring case": str.casefold,
        "without leading zeros": lambda topic: topic.lstrip("0"),
        "by their digits alone": lambda topic: "".join(filter(str.isdigit, topic)).lstrip("0"),
    }
    for words, fold in ways.items():
        both = {fold(topic) for topic in answered} & {fold(topic) for topic in judged} - {""}
        if both:
            return f" ({len(both):,} would match {words})"
    return ""


def _look_for_unjudged(file: File, qrels: Qrels, hits: Hits) -> Iterator[Finding]:
    returned = int(hits.retrieved.sum())
    judged = hits.judged()
    if not len(judged):
        ids = some([file.document(row) for row in range(min(4, len(file.rows.topic)))], 3)
        known = some([decode(qrels.documents[i]) for i in range(min(4, len(qrels)))], 3)
        yield file.finding("no-judged-document", f"it returns {ids}; judged are {known}")
    elif len(judged) < returned:
        shares = []
        for k in (10, DEEP):
            top = judged.top(k)
            shares.append(f"{len(top) / max(int(top.retrieved.sum()), 1):.1%} of the top {k:,}")
        what = (
            f"judged are {' and '.join(shares)}; {returned - len(judged):,} of {counted(returned, 'document')} are not"
        )
        start = file.rows.start
        rows = _unjudged_rows(file, qrels)[:SHOWN]
        at = [(int(start[row]), file.pair(int(row))) for row in rows] if len(start) else []
        yield file.finding("documents-not-judged", what, returned - len(judged), at)


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
        what = (
            f"mean nDCG@10 lies between {low.mean():.4f} and {high.mean():.4f} ({now.mean():.4f} with ties by document id, "
            f"descending); the order of ties moves {counted(moved, 'topic')} of {hits.size:,}, one by {(high - low).max():.4f}"
        )
        yield file.finding("tie-order", what, moved)


def tied(hits: Hits, best: bool) -> Hits:
    """The same hits with each tie group in its best order, or in its worst: what nDCG could be at most, or at least.

    Within the ranks that a group covers, its gains stand from high to low at the top, or from low to high at the bottom;
    the unjudged documents of the group take the other ranks.
    """
    order = np.lexsort((-hits.grade, hits.tied_from, hits.topic))
    topic, first, last = hits.topic[order], hits.tied_from[order], hits.tied_to[order]
    new = np.r_[True, (topic[1:] != topic[:-1]) | (first[1:] != first[:-1])][: len(topic)]
    start = np.flatnonzero(new)
    nth = np.arange(len(topic)) - np.repeat(start, np.diff(np.r_[start, len(topic)]))
    rank = (first + nth if best else last - nth).astype(np.int32)
    down = np.lexsort((rank, topic))
    return type(hits)(
        hits.judgments, topic[down], rank[down], hits.grade[order][down], first[down], last[down], hits.retrieved
    )
