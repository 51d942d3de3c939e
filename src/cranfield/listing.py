"""Every document that a run returned, judged or not: for the few measures that ask for more than hits.

It costs as much as reading the run once more, and is read once for all measures of a run. Lists that no run gave (the
ideal one) and lists of judged documents (the condensed one) are made of the hits themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.kernels import decode

if TYPE_CHECKING:
    from cranfield.hits import Hits, Origin
    from cranfield.kernels import Found, Index
    from cranfield.kernels.table import Ints


class Listing(NamedTuple):
    """All that a run returned for the judged topics, by topic and then by rank."""

    topic: Ints
    rank: Ints
    documents: list[str]


def listing(hits: Hits) -> Listing:
    """Every document returned for a judged topic."""
    origin, qrels = hits.origin, hits.judgments.qrels
    if origin is None or origin.condensed:
        if (hits.row < 0).any():
            raise TypeError("these hits do not come from a run")
        return Listing(hits.topic, hits.rank, [decode(qrels.documents[row]) for row in hits.row.tolist()])
    if "listing" not in origin.kept:
        origin.kept["listing"] = _read(origin, qrels.topics)
    answer: Listing = origin.kept["listing"]
    return answer


def _read(origin: Origin, topics: list[str]) -> Listing:
    answered = set(origin.run.topics)
    ranked = [origin.run.ranking(name, origin.order) if name in answered else [] for name in topics]
    sizes = [len(documents) for documents in ranked]
    topic = np.repeat(np.arange(len(topics), dtype=np.int32), sizes)
    rank = np.concatenate([np.zeros(0, np.int32), *(np.arange(1, size + 1, dtype=np.int32) for size in sizes)])
    return Listing(topic, rank, [document for documents in ranked for document, _ in documents])


def search(hits: Hits, index: Index) -> Found:
    """Where the same run has other documents than the judged ones: those of a second index, such as preferences."""
    origin = hits.origin
    if origin is None:
        raise TypeError("these hits do not come from a run")
    if origin.kept.get("index") is not index:
        origin.kept.update(index=index, found=origin.run.hits(index, origin.order))
    answer: Found = origin.kept["found"]
    return answer
