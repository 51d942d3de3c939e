"""Fairness and aspects beyond relevance: who gets attention, and can readers use what they find?

A run is one fixed ranking, that is, a stochastic policy that always shows the same list. Its exposure is compared with
that of an ideal policy, under which documents of the same grade take turns. Judged documents that were not returned get
no exposure; unjudged documents deserve none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cranfield.base.kernels import decode
from cranfield.base.parameters import Choice, Depth, Real
from cranfield.evaluation.hits import ratio, returned_documents
from cranfield.evaluation.measures.definition import Binary, Measure

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.evaluation.hits import Hits, Judgments

    Longs = npt.NDArray[np.int64]

DIAZ = "Diaz, Mitra, Ekstrand, Biega & Carterette (2020), Evaluating stochastic rankings with expected exposure, CIKM"
AWRF_SOURCE = (
    "Sapiezynski, Zeng, Robertson et al. (2019), Quantifying the impact of user attention on fair group representation"
)
ZUCCON = "Zuccon (2016), Understandability biased evaluation for information retrieval, ECIR"
PALOTTI = (
    "Palotti, Zuccon & Hanbury (2018), MM: a new framework for multidimensional evaluation of search engines, CIKM"
)


EXPOSURE = "p^(r−1) at rank r"
GERR_EXPOSURE = "p^(r−1) · (1−u)^(relevant documents above) at rank r"


class _Exposure(Measure):
    """Measures of expected exposure. A user continues with probability p; with gerr, past a relevant document only
    with p · (1 − u).
    """

    family = "fairness"
    reference = DIAZ
    at = None
    high = math.inf
    ideal_is_best = False
    monotone = False
    model = Choice(
        "rbp", "how users browse: on with probability p (rbp), less often past relevant documents (gerr)", "gerr"
    )
    p = Real(0.5, "the probability of going on to the next rank (patience)", low=0, high=1, open=True)
    u = Real(0.5, "the probability of stopping at a relevant document (gerr)", low=0, high=1)
    rel = Real(1, "the lowest relevant grade")
    rewrites = {"model=rbp": ("", f",  ε = {EXPOSURE}"), "model=gerr": ("", f",  ε = {GERR_EXPOSURE}")}

    @property
    def past(self) -> float:
        """The probability of continuing past a relevant document."""
        return 1 - self.u if self.model == "gerr" else 1.0

    def exposure(self, place: npt.NDArray[np.integer], relevant_above: npt.NDArray[np.integer]) -> Floats:
        """The probability of being seen, at places counted from 0."""
        return np.asarray(self.p ** place.astype(float) * self.past ** relevant_above.astype(float), np.float64)

    def targets(self, judgments: Judgments) -> Floats:
        """The exposure that each row of the qrels' index deserves: the mean over the places of its grade."""
        return judgments.once(("exposure", self.p, self.past, self.rel), lambda: self._targets(judgments))

    def _targets(self, judgments: Judgments) -> Floats:
        order = np.lexsort((-judgments.grade, judgments.topic))
        order = order[judgments.grade[order] >= 0]
        topic, grade = judgments.topic[order], judgments.grade[order]
        counts = np.bincount(topic, minlength=judgments.size)
        place = np.arange(len(topic)) - (np.cumsum(counts) - counts)[topic]
        at_place = self.exposure(place, np.minimum(place, judgments.relevant(self.rel)[topic]))
        changes = (topic[1:] != topic[:-1]) | (grade[1:] != grade[:-1])
        level = np.cumsum(np.r_[False, changes][: len(topic)])
        mean = np.bincount(level, weights=at_place) / np.maximum(np.bincount(level), 1)
        target = np.zeros(len(judgments.of_row))
        target[judgments.row[order]] = mean[level]
        return target

    def disparity(self, hits: Hits) -> Floats:
        """Σ of squared exposures over all returned documents: a geometric series between two relevant documents."""
        found = hits.relevant(self.rel)
        past, square = self.past**2, self.p**2
        before = np.where(found.nth > 1, np.r_[0, found.rank[:-1]][: len(found)], 0)
        last = np.zeros(hits.size, np.int64)
        last[found.topic] = found.rank  # the last assignment is the deepest rank
        upto = found.sum(past ** (found.nth - 1.0) * (square**before - square ** found.rank.astype(float)))
        after = past ** found.count().astype(float) * (square**last - square ** hits.retrieved.astype(float))
        return np.asarray((upto + after) / (1 - square), np.float64)

    def shared(self, hits: Hits) -> Floats:
        """Σ of exposure × deserved exposure over the returned judged documents."""
        judged = hits.judged()
        above = judged.above(hits.relevant(self.rel))
        return judged.sum(self.exposure(judged.rank - 1, above) * self.targets(hits.judgments)[judged.row])


class _GroupExposure(_Exposure):
    """Measures of the exposure of groups of documents."""

    needs = ("groups",)

    def exposures(self, hits: Hits) -> tuple[Floats, Floats]:
        """The exposure that each group's relevant documents get and deserve, topics × groups."""
        judgments, found = hits.judgments, hits.relevant(self.rel)
        relevant = judgments.row[judgments.grade >= self.rel]
        deserved = _by_group(judgments, relevant, self.targets(judgments)[relevant])
        return _by_group(judgments, found.row, self.exposure(found.rank - 1, found.nth - 1)), deserved


class EE_D(_Exposure):
    """Expected exposure disparity: the sum of squared exposures; how unevenly attention falls on documents.

    Lower is fairer. One fixed list has the highest disparity there is; only a system that varies its order can lower
    it. Use it with EE_R to place a system between even and accurate exposure; not alone: an empty list scores 0.
    Lecture 003 names fairness among the goals beyond relevance.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2, "b": 1}}, "EE_D").mean()  # 1² + 0.5²
    1.25
    """

    formula = f"Σ over documents of ε²,  ε = {EXPOSURE} (gerr: · (1−u)^(relevant documents above))"
    rewrites = {
        "model=rbp": (" (gerr: · (1−u)^(relevant documents above))", ""),
        "model=gerr": (f"{EXPOSURE} (gerr: · (1−u)^(relevant documents above))", GERR_EXPOSURE),
    }
    peers = {"expeval": ("EE-D",)}

    def score(self, hits: Hits) -> Floats:
        return self.disparity(hits)


class EE_R(_Exposure):
    """Expected exposure relevance: how far exposure goes where it is deserved.

    The deserved exposure ε* of a document is what it gets when documents of higher grades are above it and those of
    its own grade take turns. Higher is better. Use it with EE_D; not to compare topics, since the most that can be
    reached depends on their judgments.

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1, "c": 0}}, {"q": {"c": 3, "a": 2}}, "EE_R").mean()  # 1·¼ + ½·¾
    0.625
    """

    formula = "Σ over judged documents of ε·ε*,  ε* = mean of ε over the ideal ranks of the document's grade"
    peers = {"expeval": ("EE-R",)}
    monotone = True

    def score(self, hits: Hits) -> Floats:
        return self.shared(hits)


class EE_L(_Exposure):
    """Expected exposure loss: the squared distance between the exposure that documents get and the one they deserve.

    Lower is better, and 0 is equal exposure for equal grades. A fixed list cannot reach 0 when two documents share a
    grade. Judged documents of grade 0 deserve what the relevant ones leave, unjudged ones nothing. Use it to ask
    whether equally good documents are treated alike; not to judge relevance alone (nDCG), nor groups (GroupEE_L).

    >>> from cranfield import evaluate
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2, "b": 1}}, "EE_L").mean()  # (1 − ¾)² + (½ − ¾)²
    0.125
    """

    formula = "Σ over documents of (ε − ε*)² = EE-D − 2·EE-R + Σ ε*²"
    peers = {"expeval": ("EE-L",)}
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        judgments = hits.judgments
        deserved = judgments.sum(judgments.topic, self.targets(judgments)[judgments.row] ** 2)
        return np.maximum(self.disparity(hits) - 2 * self.shared(hits) + deserved, 0.0)


# groups of documents


class _Members(NamedTuple):
    """Each judged document once per group: row of the qrels' index, group and share."""

    row: Longs
    group: Longs
    share: Floats


def _numbers(judgments: Judgments) -> dict[str, int]:
    """The groups, numbered in the order of their names."""

    def work() -> dict[str, int]:
        groups = judgments.extras.groups or {}
        return {name: i for i, name in enumerate(sorted({group for labels in groups.values() for group in labels}))}

    return judgments.once("group numbers", work)


def _members(judgments: Judgments) -> _Members:
    def work() -> _Members:
        groups, numbers = judgments.extras.groups or {}, _numbers(judgments)
        rows = [
            (row, numbers[group], share)
            for row in judgments.row.tolist()
            for group, share in groups.get(decode(judgments.qrels.documents[row]), {}).items()
        ]
        row, group, share = zip(*rows, strict=True) if rows else ((), (), ())
        return _Members(np.array(row, np.int64), np.array(group, np.int64), np.array(share, np.float64))

    return judgments.once("groups", work)


def _by_group(judgments: Judgments, row: npt.NDArray[np.integer], exposure: Floats) -> Floats:
    """The total exposure of each group of these judged documents, topics × groups."""
    at_row = np.zeros(len(judgments.of_row))
    at_row[row] = exposure
    members, groups = _members(judgments), len(_numbers(judgments))
    place = judgments.qrels.topic[members.row].astype(np.int64) * groups + members.group
    total = np.bincount(place, weights=at_row[members.row] * members.share, minlength=judgments.size * groups)
    return np.asarray(total.reshape(judgments.size, groups), np.float64)


class GroupEE_D(_GroupExposure):
    """Group exposure disparity: the sum over groups of the squared exposure that their relevant documents get.

    Lower is more even. Use it with GroupEE_R; not alone, as an empty list scores 0.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(groups={"a": {"x": 1}, "b": {"y": 1}, "c": {"y": 1}})
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 1, "c": 1}}, run, "GroupEE_D", extras=extras).mean()  # 1² + (½ + ¼)²
    1.5625
    """

    formula = "Σ over groups of E²,  E = Σ over the group's relevant documents of ε · share"

    def score(self, hits: Hits) -> Floats:
        gets, _ = self.exposures(hits)
        return np.asarray((gets**2).sum(axis=1), np.float64)


class GroupEE_R(_GroupExposure):
    """Group exposure relevance: how far the exposure of groups goes where it is deserved.

    Use it with GroupEE_D; not to compare topics, since the most that can be reached depends on their judgments.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(groups={"a": {"x": 1}, "b": {"y": 1}})
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2, "b": 1}}, "GroupEE_R", extras=extras).mean()  # 1·¾ + ½·¾
    1.125
    """

    formula = "Σ over groups of E·E*,  E* = Σ over the group's relevant documents of ε* · share"

    def score(self, hits: Hits) -> Floats:
        gets, deserves = self.exposures(hits)
        return np.asarray((gets * deserves).sum(axis=1), np.float64)


class GroupEE_L(_GroupExposure):
    """Group exposure loss: the squared distance between the exposure that groups get and the one they deserve.

    Lower is better; 0 when every group gets what its relevant documents deserve, however these are ordered inside the
    group. Use it to ask whether groups of authors or sources are treated alike at equal relevance; not with only a few
    relevant documents, where a single rank decides.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(groups={"a": {"x": 1}, "b": {"y": 1}})
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2, "b": 1}}, "GroupEE_L", extras=extras).mean()  # 2 · ¼²
    0.125
    """

    formula = "Σ over groups of (E − E*)²"
    empty_is_zero = False

    def score(self, hits: Hits) -> Floats:
        gets, deserves = self.exposures(hits)
        return np.asarray(((gets - deserves) ** 2).sum(axis=1), np.float64)


class AWRF(Measure):
    """Attention-weighted rank fairness: how close the groups' shares of attention come to their target shares.

    1 is perfectly fair. Attention falls with rank: `log` is 1 / log2(max(r, 2)), the weight of TREC's Fair Ranking
    tracks; `dcg` 1 / log2(r + 1); `geometric` p^(r − 1). A document in several groups is split among them; one without
    a known group takes up its rank and is left out. The target is the mix among the topic's `relevant` documents or
    `uniform` over all groups. `js` is the Jensen-Shannon divergence in nats as those tracks compute it, so that the
    worst score is 1 − ln 2 = 0.307. With `js2` (in bits) and `absolute` (half the absolute differences) it is 0. Use it
    for fairness to groups whatever the relevance, next to a measure of relevance (the tracks multiply it by nDCG); not
    alone, because irrelevant documents can be shown fairly too.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(groups={"a": {"x": 1}, "b": {"y": 1}, "c": {"y": 1}})
    >>> scores = evaluate(
    ...     {"q": {"a": 1, "b": 1}}, {"q": {"a": 3, "b": 2}}, "AWRF AWRF(attention=dcg, distance=absolute)", extras=extras
    ... )
    >>> [round(value, 4) for value in scores.summary[0].tolist()]  # ½ : ½ and 0.6131 : 0.3869
    [1.0, 0.8869]
    """

    family = "fairness"
    formula = "1 − distance(shares, target),  share of group g = Σ attention(r)·share of g at r / Σ attention(r)"
    reference = AWRF_SOURCE
    peers = {"fair-trec": ("awrf",)}
    needs = ("groups",)
    ideal_is_best = False
    monotone = False
    attention = Choice("log", "how attention falls with rank", "dcg", "geometric")
    target = Choice("relevant", "the target shares of the groups", "uniform")
    distance = Choice("js", "the distance between shares", "js2", "absolute")
    p = Real(0.5, "the probability of going on to the next rank (attention=geometric)", low=0, high=1, open=True)
    rel = Real(1, "the lowest relevant grade (target=relevant)")
    k = Depth()
    rewrites = {
        "attention=log": ("", ",  attention(r) = 1 / log2(max(r, 2))"),
        "attention=dcg": ("", ",  attention(r) = 1 / log2(r + 1)"),
        "attention=geometric": ("", ",  attention(r) = p^(r − 1)"),
        "target=relevant": ("", ",  target: the shares among relevant documents"),
        "target=uniform": ("", ",  target: equal shares"),
        "distance=js": ("", ",  distance: Jensen-Shannon divergence in nats"),
        "distance=js2": ("", ",  distance: Jensen-Shannon divergence in bits"),
        "distance=absolute": ("", ",  distance = Σ over groups of |share − target| / 2"),
    }

    def score(self, hits: Hits) -> Floats:
        shares, targets = _as_shares(self._attended(hits)), _as_shares(self._targets(hits.judgments))
        both = (shares.sum(axis=1) > 0) & (targets.sum(axis=1) > 0)
        return np.where(both, np.clip(1 - self._distance(shares, targets), 0, 1), 0.0)

    def _attended(self, hits: Hits) -> Floats:
        """The attention that each group gets, topics × groups."""
        topic, rank, documents = returned_documents(hits)
        groups, numbers, weight = hits.judgments.extras.groups or {}, _numbers(hits.judgments), self._weight(rank)
        total = np.zeros((hits.size, len(numbers)))
        for i in np.flatnonzero(rank <= (self.k or math.inf)).tolist():
            labels = groups.get(documents[i], {})
            whole = sum(labels.values())
            if whole > 0:
                for group, share in labels.items():
                    total[topic[i], numbers[group]] += weight[i] * share / whole
        return total

    def _weight(self, rank: Ints) -> Floats:
        if self.attention == "geometric":
            return np.asarray(self.p ** (rank - 1.0), np.float64)
        return np.asarray(1 / np.log2(np.maximum(rank, 2) if self.attention == "log" else rank + 1.0), np.float64)

    def _targets(self, judgments: Judgments) -> Floats:
        """The target of each group, topics × groups, before normalisation."""
        if self.target == "uniform":
            return np.ones((judgments.size, len(_numbers(judgments))))
        members = _members(judgments)
        whole = np.bincount(members.row, weights=members.share, minlength=len(judgments.of_row))
        relevant = judgments.row[(judgments.grade >= self.rel) & (whole[judgments.row] > 0)]
        return _by_group(judgments, relevant, 1 / whole[relevant])

    def _distance(self, shares: Floats, targets: Floats) -> Floats:
        if self.distance == "absolute":
            return np.asarray(np.abs(shares - targets).sum(axis=1) / 2, np.float64)
        middle = (shares + targets) / 2
        nats = (_divergence(shares, middle) + _divergence(targets, middle)) / 2
        return nats if self.distance == "js" else nats / math.log(2)


def _as_shares(weight: Floats) -> Floats:
    return ratio(weight, weight.sum(axis=1, keepdims=True))


def _divergence(shares: Floats, other: Floats) -> Floats:
    """Kullback-Leibler divergence, row by row; a share of 0 adds nothing."""
    logs = np.log(np.where(shares > 0, ratio(shares, other), 1.0))
    return np.asarray((shares * logs).sum(axis=1), np.float64)


# a second aspect of relevance


class _SecondAspect(Measure):
    """Measures that weight a relevant document by its worth for a second aspect."""

    family = "multi-aspect"
    needs = ("aspect",)
    rewrites = {
        "worth=graded": ("", ",  worth = grade / max"),
        "worth=binary": ("", ",  worth = 1 for grades of max or more, else 0"),
    }

    def worths(self, judgments: Judgments) -> Floats:
        """The worth of each row of the qrels' index for the aspect, from 0 to 1; 0 if that was not judged."""
        grade, top = judgments.once("aspect", lambda: self._grades(judgments)), self.values["max"]
        share: Floats = (grade >= top).astype(np.float64) if self.values["worth"] == "binary" else grade / top
        return np.clip(share, 0, 1)

    def _grades(self, judgments: Judgments) -> Floats:
        aspect, topics, names = judgments.extras.aspect or {}, judgments.qrels.topics, judgments.qrels.documents
        grade = np.zeros(len(judgments.of_row))
        for row, topic in zip(judgments.row.tolist(), judgments.topic.tolist(), strict=True):
            grade[row] = aspect.get(topics[topic], {}).get(decode(names[row]), 0.0)
        return grade


class uRBP(_SecondAspect):
    """Understandability-biased RBP: rank-biased precision where a relevant document counts by how understandable it is.

    A second file of judgments grades the other aspect (understandability, trust, quality …); a grade of `max` is worth
    1. `worth=graded` takes grade / max; with `worth=binary` lower grades are worth 0. A document without such a grade is worth 0.
    Use it when a relevant document that its reader cannot use should not count (lecture 003: quality, credibility and
    effort beyond relevance); not when the second aspect was judged for few documents only.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(aspect={"q": {"a": 1, "b": 0.5}})
    >>> evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2, "b": 1}}, "uRBP(p=0.5)", extras=extras).mean()  # ½·1 + ¼·½
    0.625
    """

    formula = "(1 − p) · Σ over relevant documents at ranks r of p^(r − 1) · worth of the second aspect"
    reference = ZUCCON
    peers = {"trectools": ("urbp",), "papers": ("uRBPgr",)}
    p = Real(0.8, "the probability of going on to the next rank", low=0, high=1, open=True)
    rel = Real(1, "the lowest relevant grade")
    worth = Choice("graded", "the worth of a grade of the second aspect: grade / max, or 1 from max on", "binary")
    max = Real(1, "the grade of the second aspect that is worth 1", low=0, open=True)
    k = Depth()

    def score(self, hits: Hits) -> Floats:
        found = hits.top(self.k).relevant(self.rel)
        return (1 - self.p) * found.sum(self.worths(hits.judgments)[found.row] * self.p ** (found.rank - 1.0))


class uBpref(_SecondAspect, Binary):
    """Understandability-biased bpref: binary preference where a relevant document counts by how understandable it is.

    The second aspect is read as for uRBP. Judged nonrelevant documents count against those below them whether or not
    their second aspect was judged (trectools ignores those without such a judgment). Use it like Bpref where judgments are
    incomplete; not when the second aspect was judged for few documents only.

    >>> from cranfield import Extras, evaluate
    >>> extras = Extras(aspect={"q": {"a": 1, "c": 0.5}})
    >>> run = {"q": {"a": 4, "x": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, run, "uBpref", extras=extras).mean()  # (1·1 + ½·½) / 2
    0.625
    """

    formula = (
        "1/R · Σ over relevant documents found of (1 − min(n, R) / min(N, R)) · worth, n of N judged nonrelevant above"
    )
    reference = PALOTTI
    peers = {"trectools": ("ubpref",)}
    at = None
    worth = Choice("graded", "the worth of a grade of the second aspect: grade / max, or 1 from max on", "binary")
    max = Real(1, "the grade of the second aspect that is worth 1", low=0, open=True)

    def score(self, hits: Hits) -> Floats:
        found, wrong = hits.relevant(self.rel), hits.nonrelevant(self.rel)
        relevant = hits.n_relevant(self.rel)
        bound = np.minimum(hits.judgments.nonrelevant(self.rel), relevant)[found.topic]
        above = np.minimum(found.above(wrong), relevant[found.topic])
        worth = self.worths(hits.judgments)[found.row]
        return ratio(found.sum((1 - ratio(above, bound)) * worth), relevant)
