"""What `judge calibrate`, `judge estimate` and `judge models` do: compare, combine and list the labels of LLM judges."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.text_layout import counted
from cranfield.formats.collection_folder import read_collection
from cranfield.inputs.inputs import DEFAULT_MEASURES, Inputs
from cranfield.judging.event import RELEVANCE
from cranfield.judging.llm import label_sample, usage
from cranfield.judging.llm.calibration import Calibration, Candidate, Doubted, date_in, measured, read_date
from cranfield.judging.llm.drift import drift_checks
from cranfield.judging.llm.estimate import PredictedScores, estimates
from cranfield.judging.llm.grade_agreement import biases_of, model_agreement, own_runs
from cranfield.judging.llm.label_sample import CommonLabels, LogLabels, SeriesUse, series_use
from cranfield.judging.llm.leaderboards import advantages, boards, circular, ranks_of, scored
from cranfield.judging.llm.probes import probes_of
from cranfield.judging.log_location import open_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.run import Run
    from cranfield.judging.llm.usage import ModelFailures, ModelRuns
    from cranfield.judging.log import Log


def model_runs(location: str, model: str = "") -> ModelRuns:
    """The calls of `judge ask`, newest first, and the cost of each model; with `model`, only those of one model."""
    with closing(open_log(location, new=False)) as log:
        return usage.model_runs(log, model)


def model_failures(
    location: str, model: str = "", *, reason: str = "", skip: int = 0, n: int = 50, whole: bool = False
) -> ModelFailures:
    """Questions that got no label, and the model's replies: `n` after the first `skip`; `whole` shows replies in full."""
    with closing(open_log(location, new=False)) as log:
        failures = usage.model_failures(log, model, reason, skip, n, None if whole else usage.EXCERPT)
    if reason and reason not in failures.reasons:
        there = ", ".join(map(repr, failures.reasons)) or "none"
        raise DataError(f"{failures.log}: nothing failed for the reason {shortened(reason)!r}; there are: {there}")
    return failures


OF_DOCUMENTS = ("P@10", "DCG@10")  # the default for a sample of documents: measures that are sums over documents


def estimate(
    location: str,
    runs: Sequence[str],
    measures: Sequence[str] = (),
    *,
    round: str = "",
    model: str = "",
    policy: str = "latest",
    aspect: str = RELEVANCE,
    level: float = 0.95,
) -> PredictedScores:
    """Prediction-powered scores and differences of runs, from the sample of a round and a model's labels."""
    with closing(open_log(location, new=False)) as log:
        sample = label_sample.label_sample(log, round, model, policy, aspect)
    names = list(measures) or list(DEFAULT_MEASURES if sample.by_topics else OF_DOCUMENTS)
    return estimates(sample, Inputs(runs=runs).open_runs(), names, level)


STRANGE = 0.1  # share of grades outside people's range from which a model may use another scale
LEAST_TO_CHOOSE = 4  # topics, two for each half


def calibrate(
    location: str,
    runs: Sequence[str] = (),
    measures: Sequence[str] = (),
    *,
    model: str = "",
    policy: str = "latest",
    aspect: str = RELEVANCE,
    rel: float = 1.0,
    collection: str | None = None,
    own: Sequence[str] = (),
    chosen_on: str | None = None,
    choose: bool = False,
    public: str | None = None,
    model_date: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """How well a model's labels in a log match people's, and how they change the order of runs; nothing is written.

    `chosen_on` is a file with the topics or documents that served to choose the prompt. With `choose`, the best prompt on one
    half of the topics is calibrated on the other half.
    """
    options = {"--public": public, "--model-date": model_date}
    dates = ["" if date is None else read_date(date, option) for option, date in options.items()]
    opened = Inputs(runs=runs).open_runs() if runs else []
    with closing(open_log(location, new=False)) as log:
        labelled = LogLabels.of(log, policy, aspect)
        calibration = _calibration_labels(log, labelled, model, choose, chosen_on, level, seed)
        probed = _probed(log, calibration.shared.model)
    common, series = calibration.shared, calibration.series
    label_sample.refuse_little(common)
    lengths = _lengths(collection, common) if collection is not None else series.lengths
    names = [*series.returned, common.model.rpartition("/")[0] or common.model]
    with_runs, ranks = _with_runs(common, opened, list(measures) or list(DEFAULT_MEASURES), own, names, level)
    return Calibration(
        **measured(common, rel, level),
        **with_runs,
        policy=labelled.policy,
        left_out=calibration.left_out,
        candidates=calibration.candidates,
        biases=biases_of(common, lengths, ranks, level),
        doubted=Doubted(dates[0], dates[1] or date_in(names)),
        probed=probed,
        remarks=[*labelled.notes, *_beside(labelled, calibration)],
    )


def _beside(labelled: LogLabels, calibration: CalibrationLabels) -> list[str]:
    """Notes on documents that only people labelled, and on grades that people never gave."""
    common, notes = calibration.shared, []
    lacking = len(labelled.people) - len(common) - sum(calibration.left_out.values())
    if lacking:
        note = f"{counted(lacking, 'document')} that people labelled have no label of {common.model}"
        notes.append(f"{note}: nothing tells how it judges those")
    theirs = np.array(common.scale.names)[common.counts.sum(axis=0) > 0]
    beyond = float(((common.predicted < theirs.min()) | (common.predicted > theirs.max())).mean())
    if beyond >= STRANGE:
        note = f"{beyond:.0%} of the grades of {common.model} are outside those of people ({theirs.min():g} to {theirs.max():g})"
        notes.append(f"{note}: does it use their scale?")
    return notes


class CalibrationLabels(NamedTuple):
    """The labels that a model is calibrated on, and the number of labels left out by reason."""

    shared: CommonLabels
    series: SeriesUse
    left_out: dict[str, int]
    candidates: list[Candidate]


def _calibration_labels(
    log: Log, labelled: LogLabels, model: str, choose: bool, chosen_on: str | None, level: float, seed: int
) -> CalibrationLabels:
    name, first, candidates = _best(log, labelled, model, level, seed) if choose else (labelled.model(model), set(), [])
    common, series = labelled.shared(name), series_use(log, name)
    inspected = set() if chosen_on is None else label_sample.inspected_documents(chosen_on, common.subjects)
    choosing = {subject for subject in common.subjects if subject[0] in first}
    reasons = label_sample.USED, label_sample.INSPECTED, label_sample.FIRST_HALF
    left_out: dict[str, int] = {}
    for why, some in zip(reasons, (series.used, inspected, choosing), strict=True):
        rest = common.without(some) if some else common
        left_out[why], common = len(common) - len(rest), rest
    return CalibrationLabels(common, series, left_out, candidates)


def _best(log: Log, labelled: LogLabels, model: str, level: float, seed: int) -> tuple[str, set[str], list[Candidate]]:
    """The judge that agrees best with people on the first half of the topics, that half, and all candidates."""
    names = labelled.models(model)
    if len(names) < 2:
        problem = f"--choose needs two judges or more, found {names[0]!r} alone"
        raise DataError(f"{log.name}: {problem}; ask with another prompt")
    every = {name: labelled.shared(name).without(series_use(log, name).used) for name in names}
    common = set.intersection(*(set(labels.subjects) for labels in every.values()))
    topics = sorted({topic for topic, _ in common})
    if len(topics) < LEAST_TO_CHOOSE:
        shared = f"{counted(len(common), 'document')} of {counted(len(topics), 'topic')}" if common else "no document"
        problem = f"people and all of {len(names)} judges share {shared}"
        more = f"expected {LEAST_TO_CHOOSE} topics or more to choose on one half; have them label the same documents"
        raise DataError(f"{log.name}: {problem}, {more}")
    first, _ = label_sample.halves(topics, seed)
    on = {subject for subject in common if subject[0] in first}
    candidates = []
    for name, labels in every.items():
        there = labels.without(set(labels.subjects) - on)
        candidates.append(Candidate(name, len(there), model_agreement(there, level)[-1].every))
    if any(each.agreement.value != each.agreement.value for each in candidates):
        problem = f"people gave one grade only to the {counted(len(on), 'document')} that choose the judge"
        raise DataError(f"{log.name}: {problem}; have more documents labelled, or split by another --seed")
    candidates.sort(key=lambda each: (-each.agreement.value, each.model))
    return candidates[0].model, first, candidates


def _lengths(collection: str, common: CommonLabels) -> dict[str, int]:
    """The number of characters of each labelled document in the collection."""
    ids = set(common.documents)
    lengths = {each.id: len(each.text) for each in read_collection(collection).documents() if each.id in ids}
    if not lengths:
        problem = f"none of the {len(ids):,} documents that people and {common.model!r} labelled is in it"
        such = f"such as {common.documents[0]!r}"
        raise DataError(f"{collection}: {problem}, {such}; name the collection that was judged")
    return lengths


def _probed(log: Log, assessor: str) -> list[str]:
    """Findings from probes and drift checks against a model, one sentence each."""
    if not log.has_records():
        return []
    sentences = [f"{assessor} {finding}" for finding in probes_of(log, assessor).findings()]
    for check in drift_checks(log, assessor):
        if check.accepted:  # after a drift that was not accepted, nothing is labelled
            sentence = (
                f"{'; '.join(check.differences())}; it was accepted, and labels from before and after it are mixed here"
            )
            sentences.append(f"{assessor} drifted by {check.at[:10]}: {sentence}")
    return sentences


def _with_runs(
    common: CommonLabels,
    runs: Sequence[Run],
    measures: Sequence[str],
    own: Sequence[str],
    names: list[str],
    level: float,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a calibration that need runs, and the ranks of the documents in the runs."""
    built = own_runs(names, runs, own)
    if not runs:
        return {}, {}
    ranks = ranks_of(common, runs)
    people, model = scored(common, runs, measures)
    fields = {
        "boards": boards(people, model) if len(runs) > 1 else [],
        "own": built,
        "by_name": [name for name in built if name not in own],
        "advantages": advantages(people, model, built, level),
        "circular": circular(common, runs, measures, ranks),
    }
    return fields, ranks
