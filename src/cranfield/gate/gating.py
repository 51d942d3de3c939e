"""A gate for continuous integration: may this candidate replace the baseline?

It asks one of three questions, each by a one-sided test of the mean loss against what it says: worse by more than is
allowed (the default), worse at all, or not shown to be within what is allowed. Where a drop is looked for, one that
could be chance lets the candidate pass, and the gate says which drop it finds half of the time. Where nothing can be
said (one topic) the verdict is `undecided`, which is neither.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.columns import listed
from cranfield.compare.scored import Progress, comparable
from cranfield.compare.settings import refuse_unweighable
from cranfield.errors import ConventionError, DataError
from cranfield.evaluate import Evaluator, distinct
from cranfield.formats import as_runs
from cranfield.gate.causes import Suspects, forgiven, gain_weights, gains, turnover
from cranfield.gate.decision import Decision, Settings, decided
from cranfield.gate.question import GateQuestion
from cranfield.gate.verdict import Fallen, Gate, Lost, Verdict
from cranfield.kernels import decode
from cranfield.measures import Measure
from cranfield.measures import measure as _measure
from cranfield.parameters import real, refuse_below
from cranfield.stats.testing import test as named_test
from cranfield.weights import as_weights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from cranfield.evaluate import OptionsWithoutBaseline
    from cranfield.hits import Hits
    from cranfield.run import Run
    from cranfield.scores import Scores


USUAL_DROP = 0.01


def gate(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    measures: str | Measure | Iterable[str | Measure] = "nDCG@10",
    *,
    max_drop: float | str | Iterable[str] | Mapping[str, float] | None = None,
    question: str = "max-drop",
    alpha: float = 0.05,
    test: str = "t",
    documents: Iterable[str] | None = None,
    forgive_turnover: bool = False,
    worst: int = 10,
    k: int = 10,
    resamples: int = 100_000,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Unpack[OptionsWithoutBaseline],
) -> Gate:
    """May the candidate replace the baseline? Fails where a one-sided test shows that it is worse by more than is allowed.

    `max_drop` is what may be lost of the mean, one number or one a measure (`{"AP": 0.02}`; the others get 0.01).
    `question` "drop" asks whether it is worse at all, and fails where that is shown; "non-inferior" whether it is within
    what is allowed, and fails unless that is shown by every measure. P-values of the drops that fail a gate are
    corrected for the number of measures (Holm).
    `documents` are the ids that are in the corpus now: they tell documents gone from documents ranked lower; with
    `forgive_turnover` those that are gone are taken out of judgments and baseline before the verdict. `worst` is how
    many of the topics that fell are named, `k` the depth of judged@k. `options` are those of `evaluate`; with `weights`
    the means by weights decide.

    >>> qrels = {topic: {"a": 1} for topic in "12345678"}
    >>> good, bad = {topic: {"a": 2, "b": 1} for topic in qrels}, {topic: {"a": 1, "b": 2} for topic in qrels}
    >>> gate(qrels, good, bad, "RR").verdicts[0].sentence()
    'RR failed: it fell by 0.5000, more than the 0.01 allowed; all 8 differences are equal, and by signs alone p = 0.0039'
    """
    asked = GateQuestion.named(question)
    _refuse(alpha, test, forgive_turnover, documents)
    refuse_below(0, worst=worst, seed=seed)
    refuse_below(1, k=k)
    refuse_below(100, resamples=resamples)
    scoring: dict[str, Any] = {**options}
    if scoring.get("weights") is not None:
        scoring["weights"] = as_weights(scoring["weights"], qrels)
        refuse_unweighable([named_test(test)], scoring["weights"].by)
    tell = progress or (lambda done, total: None)
    evaluator = Evaluator(qrels, measures, **scoring)
    _refuse_measures(evaluator.measures)
    drops = allowed_drops(max_drop, evaluator.measures)
    one, other = _two_runs(evaluator, baseline, candidate)
    hits = evaluator.hits(one), evaluator.hits(other)
    _refuse_strangers(evaluator, one, hits[0])
    _refuse_strangers(evaluator, other, hits[1])
    tell(1, 3)
    judged = _judged(evaluator, hits, k)
    moved = turnover(*hits, other, judged, k, documents, evaluator.conventions.order.collapse)
    if forgive_turnover and moved.gone:
        evaluator, one = forgiven(evaluator, one, moved, scoring)
        hits = evaluator.hits(one), evaluator.hits(other)
    scores = evaluator.evaluate([one, other])
    tell(2, 3)
    settings = Settings(asked, alpha, test, resamples, seed)
    suspects = Suspects(evaluator, one, other, moved, scoring, scores, settings, tuple(drops.values()))
    decisions = decided(gains(scores), suspects.max_drops, settings, gain_weights(scores))
    verdicts = tuple(_verdict(suspects, m, decision, hits, worst) for m, decision in enumerate(decisions))
    remarks = _remarks(scores, len(moved.gone) if forgive_turnover else None, asked, max_drop is not None, drops)
    facts = (verdicts, moved, asked.name, alpha, test, resamples, seed, scores, forgive_turnover, tuple(remarks))
    return Gate(one.name, other.name, *facts)


def _remarks(
    scores: Scores, forgiven: int | None, asked: GateQuestion, given: bool, drops: Mapping[str, float]
) -> list[str]:
    """What must be said beside the verdicts; `forgiven` documents were taken out, `given` is whether drops were."""
    remarks = [] if float(np.nanmax(np.abs(scores.values[0]), initial=0)) else ["the baseline scores 0 on every topic"]
    if scores.weights is not None:
        remarks.append(scores.weights.in_words(scores.topics))
    if forgiven is not None:
        remarks.append(f"{forgiven} documents that are gone were taken out of the judgments and the baseline")
    if given and any(drops.values()) and not any(map(asked.allowed, drops.values())):
        remarks.append(f"question {asked.name} asks for any drop; what max-drop allows is not looked at")
    return remarks


def allowed_drops(
    max_drop: float | str | Iterable[str] | Mapping[str, float] | None, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """What each measure may lose: from a number, `{measure: number}`, or texts such as "0.02" and "AP=0.03".

    >>> from cranfield.measures import measures
    >>> allowed_drops(["0.02", "map=0.03"], measures("nDCG@10 AP"))
    {'nDCG@10': 0.02, 'AP': 0.03}
    """
    drops = dict.fromkeys(measures, USUAL_DROP)
    items: list[tuple[str, Any]] = []
    if max_drop is None:
        return drops
    if isinstance(max_drop, (int, float)):
        items = [("", max_drop)]
    elif hasattr(max_drop, "items"):
        items = list(max_drop.items())
    else:
        parts = [text.rpartition("=") for text in ([max_drop] if isinstance(max_drop, str) else max_drop)]
        items = [(name.strip(), number) for name, _, number in parts]
    for name, number in sorted(items, key=lambda item: bool(item[0])):  # the one for all first
        allowed = _drop(name, number)
        for known in [_known(name, measures)] if name else list(drops):
            drops[known] = allowed
    return drops


def _drop(name: str, number: Any) -> float:
    where = f"max-drop of {name}" if name else "max-drop"
    try:
        value = real(number)
    except (TypeError, ValueError):
        raise ConventionError(f"{where}: expected a number, as in 0.01 or AP=0.02, found {number!r}") from None
    if value < 0:
        raise ConventionError(f"{where} must be 0 or more, got {value:g}")
    return value


def _known(name: str, measures: Mapping[str, Measure]) -> str:
    if name in measures:
        return name
    meant = _measure(name)
    for known, each in measures.items():
        if each == meant:
            return known
    raise ConventionError(f"max-drop of {name}: the gate does not look at it; it looks at {', '.join(measures)}")


# what is refused


def gate_tests() -> list[str]:
    """Tests on whose one-sided interval a gate may rest: of pairs, and never too sure."""
    from cranfield.stats.testing import intervals

    return [one.name for one in intervals().values() if one.paired and not one.too_sure]


def _refuse(alpha: float, test: str, forgive: bool, documents: Iterable[str] | None) -> None:
    if not 0 < alpha < 0.5:
        raise ConventionError(f"alpha must lie between 0 and 0.5, got {alpha:g}")
    if test not in gate_tests():
        raise ConventionError(f"test must be one of {', '.join(gate_tests())}, got {test!r}")
    if forgive and documents is None:
        raise ConventionError("turnover is forgiven only where documents lists the corpus's ids; found no list")


def _refuse_measures(measures: Mapping[str, Measure]) -> None:
    for name, each in measures.items():
        if each.aggregate != "mean" or not comparable(each):
            raise ConventionError(f"a gate compares means over topics, and {name} is not one; take another measure")


def _two_runs(evaluator: Evaluator, baseline: Any, candidate: Any) -> tuple[Run, Run]:
    runs = []
    for role, source in (("baseline", baseline), ("candidate", candidate)):
        read = as_runs(source, evaluator.run_format, evaluator.lenient, evaluator.fields)
        if len(read) != 1:
            raise DataError(f"expected one run as the {role}, found {len(read)}")
        nameless = not isinstance(source, str) and not hasattr(source, "name") and not hasattr(source, "__fspath__")
        run = evaluator.with_ids(read[0])
        runs.append(run.renamed(role) if nameless and run.name == "run" else run)
    names = distinct([run.name for run in runs])
    return runs[0].renamed(names[0]), runs[1].renamed(names[1])


def _refuse_strangers(evaluator: Evaluator, run: Run, hits: Hits) -> None:
    """A run that answers other topics than the judged ones scores 0 everywhere; that is no evidence of anything."""
    if hits.retrieved[evaluator.wanted].any():
        return
    if not run.topics:
        raise DataError(f"{run.name} is empty")
    raise DataError(
        f"{run.name} answers none of the {int(evaluator.wanted.sum())} judged topics of {evaluator.qrels.name}; it has "
        f"{listed(run.topics, most=3)}, judged are {listed(evaluator.qrels.topics, most=3)}; are the topics numbered alike?"
    )


# the verdict


def _verdict(suspects: Suspects, m: int, decision: Decision, hits: tuple[Hits, Hits], worst: int) -> Verdict:
    scores, asked = suspects.scores, suspects.settings.question
    max_drop = asked.allowed(suspects.max_drops[m])
    name, measure = list(scores.measures.items())[m]
    up = -1.0 if measure.lower_is_better else 1.0
    before, after = scores.values[0, m], scores.values[1, m]
    both = ~(np.isnan(before) | np.isnan(after))
    n = int(both.sum())
    weights = None if scores.weights is None else scores.weights.of(scores.topics)[both]
    means = [float(np.average(values[both], weights=weights)) if n else math.nan for values in (before, after)]
    gain = up * (after - before)[both]
    drop = -float(np.average(gain, weights=weights)) if n else math.nan
    best, worst_end = (up * decision.bound, math.nan) if asked.end == "at best" else (math.nan, up * decision.bound)
    topics = np.flatnonzero(both)[np.argsort(gain, kind="stable")]
    topics = topics[up * (after - before)[topics] < 0]
    rel = float(measure.values.get("rel", 1) or 1)
    fallen = tuple(_fallen(scores, m, int(t), hits, rel, suspects.gone) for t in topics[:worst])
    return Verdict(
        name,
        decision.state,
        decision.reason,
        n,
        before=means[0],
        after=means[1],
        difference=means[1] - means[0],
        drop=drop,
        max_drop=max_drop,
        at_best=best,
        at_worst=worst_end,
        p=decision.p,
        corrected=decision.corrected,
        half_found=decision.half_found,
        caution=decision.caution,
        fallen=fallen,
        more=len(topics) - len(fallen),
        risen=int((gain > 0).sum()),
        causes=suspects.causes(m) if decision.state == "failed" and drop > max_drop else (),
        unweighted=None if weights is None or not n else up * float(gain.mean()),
    )


def _fallen(scores: Scores, m: int, t: int, hits: tuple[Hits, Hits], rel: float, gone: set[str]) -> Fallen:
    before, after = (float(scores.values[r, m, t]) for r in (0, 1))
    topic = scores.topics[t]
    qrels = hits[0].judgments.qrels
    place = qrels.topics.index(topic)
    ranks = [_ranks(each, place, rel) for each in hits]
    lost = []
    for row, (rank, grade) in ranks[0].items():
        now = ranks[1].get(row, (None, grade))[0]
        if now is None or now > rank:
            document = decode(qrels.documents[row])
            lost.append(Lost(document, grade, rank, now, document in gone))
    lost.sort(key=lambda each: each.before)
    missing = not int(hits[1].retrieved[place])
    return Fallen(topic, before, after, after - before, missing, tuple(lost[:3]), scores.queries.get(topic, ""))


def _ranks(hits: Hits, place: int, rel: float) -> dict[int, tuple[int, float]]:
    here = np.flatnonzero((hits.topic == place) & (hits.grade >= rel))
    rows = zip(hits.row[here].tolist(), hits.rank[here].tolist(), hits.grade[here].tolist(), strict=True)
    return {row: (rank, grade) for row, rank, grade in rows}


def _judged(evaluator: Evaluator, hits: tuple[Hits, Hits], k: int) -> tuple[float, float]:
    """judged@k of both runs, the mean over the topics that each answers."""
    share = _measure(f"Judged@{k}")
    means = []
    for each in hits:
        answered = evaluator.wanted & (each.retrieved > 0)
        means.append(float(share(each)[answered].mean()) if answered.any() else math.nan)
    return means[0], means[1]
