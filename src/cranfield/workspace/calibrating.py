"""The verb behind `judge calibrate`: a model's labels measured against people's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.judge.event import RELEVANCE
from cranfield.judge.opening import open_log
from cranfield.workspace.inputs import DEFAULT_MEASURES, Inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judge.log import Log
    from cranfield.judge.models.calibrating import Calibration, Candidate
    from cranfield.judge.models.shared import Asked, Labelled, Shared
    from cranfield.run import Run

STRANGE = 0.1  # of a model's grades, from which on it may have a scale of its own
LEAST_TO_CHOOSE = 4  # topics: two for each half


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
    """How far a model's labels in a log are people's, and what they do to the order of runs; nothing is written.

    `chosen_on` names a file of what was looked at when the prompt was chosen; with `choose`, one of several prompts is chosen
    on one half of the topics and calibrated on the other.
    """
    from cranfield.judge.models.biases import biased
    from cranfield.judge.models.calibrating import Calibration, Doubted, date_in, measured, read_date
    from cranfield.judge.models.shared import Labelled, refuse_little

    dates = [
        "" if date is None else read_date(date, option)
        for date, option in ((public, "--public"), (model_date, "--model-date"))
    ]
    opened = Inputs(runs=runs).open_runs() if runs else []
    log = open_log(location, new=False)
    try:
        labelled = Labelled.of(log, policy, aspect)
        chosen = _chosen(log, labelled, model, choose, chosen_on, level, seed)
        probed = _probed(log, chosen.shared.model)
    finally:
        log.close()
    found, asked = chosen.shared, chosen.asked
    refuse_little(found)
    lengths = _lengths(collection, found) if collection is not None else asked.lengths
    names = [*asked.returned, found.model.rpartition("/")[0] or found.model]
    with_runs, ranks = _with_runs(found, opened, list(measures) or list(DEFAULT_MEASURES), own, names, level)
    return Calibration(
        **measured(found, rel, level),
        **with_runs,
        policy=labelled.policy,
        left_out=chosen.left_out,
        candidates=chosen.candidates,
        biases=biased(found, lengths, ranks, level),
        doubted=Doubted(dates[0], dates[1] or date_in(names)),
        probed=probed,
        remarks=[*labelled.notes, *_beside(labelled, chosen)],
    )


def _beside(labelled: Labelled, chosen: Chosen) -> list[str]:
    """What the documents that both labelled do not show."""
    found, said = chosen.shared, []
    lacking = len(labelled.people) - len(found) - sum(chosen.left_out.values())
    if lacking:
        told = f"{counted(lacking, 'document')} that people labelled have no label of {found.model}"
        said.append(f"{told}: nothing tells how it judges those")
    theirs = np.array(found.scale.names)[found.counts.sum(axis=0) > 0]
    beyond = float(((found.predicted < theirs.min()) | (found.predicted > theirs.max())).mean())
    if beyond >= STRANGE:
        told = f"{beyond:.0%} of its grades lie beyond all that people gave ({theirs.min():g} to {theirs.max():g})"
        said.append(f"{told}: does {found.model} use their scale?")
    return said


class Chosen(NamedTuple):
    """What a model is calibrated on, and what was left out of it."""

    shared: Shared
    asked: Asked
    left_out: dict[str, int]
    candidates: list[Candidate]


def _chosen(
    log: Log, labelled: Labelled, model: str, choose: bool, chosen_on: str | None, level: float, seed: int
) -> Chosen:
    from cranfield.judge.models.shared import FIRST_HALF, LOOKED_AT, USED, asked_of, looked_at

    candidates: list[Candidate] = []
    first: set[str] = set()
    name = ""
    if choose:
        name, first, candidates = _best(log, labelled, model, level, seed)
    name = name or labelled.model(model)
    whole, asked = labelled.shared(name), asked_of(log, name)
    left_out: dict[str, int] = {}
    found = whole
    away = looked_at(chosen_on, whole.subjects) if chosen_on is not None else set()
    for why, some in (
        (USED, asked.used),
        (LOOKED_AT, away),
        (FIRST_HALF, {subject for subject in whole.subjects if subject[0] in first}),
    ):
        rest = found.without(some) if some else found
        left_out[why], found = len(found) - len(rest), rest
    return Chosen(found, asked, left_out, candidates)


def _best(log: Log, labelled: Labelled, model: str, level: float, seed: int) -> tuple[str, set[str], list[Candidate]]:
    """The judge that agrees best with people on the first half of the topics, that half, and all judges there."""
    from cranfield.judge.models.calibrating import Candidate
    from cranfield.judge.models.figures import agreed
    from cranfield.judge.models.shared import asked_of, halves

    names = labelled.models(model)
    if len(names) < 2:
        raise DataError(
            f"{log.name}: --choose needs two judges or more, found {names[0]!r} alone; ask with another prompt"
        )
    every = {name: labelled.shared(name).without(asked_of(log, name).used) for name in names}
    common = set.intersection(*(set(found.subjects) for found in every.values()))
    topics = sorted({topic for topic, _ in common})
    if len(topics) < LEAST_TO_CHOOSE:
        shared = f"{counted(len(common), 'document')} of {counted(len(topics), 'topic')}" if common else "no document"
        told = f"people and all of {len(names)} judges share {shared}"
        more = f"expected {LEAST_TO_CHOOSE} topics or more to choose on one half; have them label the same documents"
        raise DataError(f"{log.name}: {told}, {more}")
    first, _ = halves(topics, seed)
    on = {subject for subject in common if subject[0] in first}
    candidates = []
    for name, found in every.items():
        there = found.without(set(found.subjects) - on)
        candidates.append(Candidate(name, len(there), agreed(there, level)[-1].every))
    if any(each.agreement.value != each.agreement.value for each in candidates):
        told = f"people gave one grade only to the {counted(len(on), 'document')} that are to choose"
        raise DataError(f"{log.name}: {told}; have more documents labelled, or split by another --seed")
    candidates.sort(key=lambda each: (-each.agreement.value, each.model))
    return candidates[0].model, first, candidates


def _lengths(collection: str, found: Shared) -> dict[str, int]:
    """How long the texts of documents are."""
    from cranfield.formats.folder import read_collection

    wanted = set(found.documents)
    lengths = {each.id: len(each.text) for each in read_collection(collection).documents() if each.id in wanted}
    if not lengths:
        told = f"none of the {len(wanted):,} documents that people and {found.model!r} labelled is in it"
        raise DataError(f"{collection}: {told}, such as {found.documents[0]!r}; name the collection that was judged")
    return lengths


def _probed(log: Log, assessor: str) -> list[str]:
    """What probes and checks of drift show against a model, a sentence each."""
    if not log.has_records():
        return []
    from cranfield.judge.models.drifting import drift_checks
    from cranfield.judge.models.probed import probes_of

    said = [f"{assessor} {finding}" for finding in probes_of(log, assessor).findings()]
    for check in drift_checks(log, assessor):
        if check.accepted:  # one that was not has labelled nothing
            told = f"{'; '.join(check.said())}; it was accepted, and labels of both are mixed here"
            said.append(f"{assessor} drifted by {check.at[:10]}: {told}")
    return said


def _with_runs(
    found: Shared, runs: Sequence[Run], measures: Sequence[str], own: Sequence[str], names: Sequence[str], level: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a calibration that need runs, and where the runs have the documents."""
    from cranfield.judge.models.biases import own_runs

    built = own_runs(names, runs, own)
    if not runs:
        return {}, {}
    from cranfield.judge.models.boards import advantages, boards, circular, ranks_of, scored

    ranks = ranks_of(found, runs)
    people, model = scored(found, runs, measures)
    fields = {
        "boards": boards(people, model) if len(runs) > 1 else [],
        "own": built,
        "by_name": [name for name in built if name not in own],
        "advantages": advantages(people, model, built, level),
        "circular": circular(found, runs, measures, ranks),
    }
    return fields, ranks
