"""Commands on LLM judges: have one label a pool or answer probes; compare, combine and list the labels of LLM judges."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import cranfield
from cranfield.base.errors import DataError
from cranfield.base.parameters import masked, shortened
from cranfield.base.text_layout import counted
from cranfield.commands.judging import hash_of_file
from cranfield.formats.collection_folder import read_collection
from cranfield.formats.format import whole
from cranfield.formats.pool_files import read_pool
from cranfield.inputs.inputs import DEFAULT_MEASURES, Inputs, refuse_second_stdin
from cranfield.judging.event import RELEVANCE
from cranfield.judging.llm import ask as asking
from cranfield.judging.llm import label_sample, probes, usage
from cranfield.judging.llm.calibration import Calibration, Candidate, Doubted, date_in, measured, read_date
from cranfield.judging.llm.chat_client import Endpoint
from cranfield.judging.llm.drift import answers_so_far, drift_checks
from cranfield.judging.llm.estimate import PredictedScores, estimates
from cranfield.judging.llm.grade_agreement import biases_of, model_agreement, own_runs
from cranfield.judging.llm.label_sample import CommonLabels, LogLabels, SeriesUse, series_use
from cranfield.judging.llm.leaderboards import advantages, boards, circular, ranks_of, scored
from cranfield.judging.llm.probes import probes_of
from cranfield.judging.llm.question_store import LABEL, NO_LIMIT, Budget
from cranfield.judging.llm.questions import Asker, LlmQuestion, Prompt, read_prompt, refuse_unknown, subjects
from cranfield.judging.log_location import is_database, open_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.run import Run
    from cranfield.evaluation.evaluate import Progress
    from cranfield.judging.llm.ask_result import AskResult
    from cranfield.judging.llm.usage import ModelFailures, ModelRuns
    from cranfield.judging.log import Log


TEXT_LIMIT = 12_000  # characters
DRIFT = 5  # earlier questions that are repeated first


def ask(
    location: str,
    *,
    pool: str,
    collection: str,
    endpoint: str,
    model: str,
    prompt: str,
    key_env: str | None = None,
    text_limit: int = TEXT_LIMIT,
    neighbours: int = 1,
    seed: int = 0,
    probe: int | None = None,
    timeout: float = 120.0,
    max_answer: float = 1.0,
    dry_run: bool = False,
    progress: Progress | None = None,
    **terms: Any,
) -> AskResult:
    """Have a model label the pairs of a pool, and write labels, answers and failures into a log.

    With `probe`, ask this many probes of each kind about pairs that the model has labelled, instead of labels. Nothing is
    written before the server has been reached. `terms` are budget, price_in, price_out, max_tokens and drift, and clients,
    retries, give_up, schema, drift_allowed and accept_drift of `Terms`.
    """
    refuse_second_stdin(pool, prompt)
    template = read_prompt(prompt)
    how = _terms(template, **terms)
    if probe is not None and probe < 1:
        raise DataError(f"--probe: expected 1 pair or more, found {probe}")
    server = Endpoint(endpoint, model, _key(key_env), timeout, int(max_answer * 1e6))
    with ExitStack() as stack:
        stack.callback(server.close)
        asker, questions, empty = _questions(stack, model, template, pool, collection, text_limit, neighbours, seed)
        pool_file = {"file": os.path.basename(pool), "hash": hash_of_file(pool)}
        files = {"pool": pool_file, "collection": os.path.basename(collection)}
        definition = files | {"endpoint": server.where, "seed": seed} | _definition(asker, how)
        about = _About(asker, questions, definition, collection, {"empty": empty})
        if dry_run:
            return _foreseen(location, about, how, probe)
        server.check()
        log = open_log(location, new=probe is None)
        stack.callback(log.close)
        stack.enter_context(asking.alone(log, model))
        asking.refuse_other_prompt(log, asker)
        if probe is not None:
            about = _probing(log, about, probe)
        done = asking.ask(log, about.asker, server, about.questions, how, about.definition, progress=progress)
        return _with_probes(log, replace(done, **about.beside))


class _About(NamedTuple):
    """A series: who asks which questions, its definition for the log, and `beside`, further fields of its result."""

    asker: Asker
    questions: list[LlmQuestion]
    definition: dict[str, Any]
    collection: str
    beside: dict[str, Any]


def _foreseen(location: str, about: _About, terms: asking.Terms, probe: int | None) -> AskResult:
    """The result of a dry run: the questions that would be asked. A missing log is not created."""
    there = "://" in location or os.path.exists(location) or not is_database(location) or probe is not None
    with closing(open_log(location, new=probe is None)) if there else nullcontext() as log:
        if log is not None and probe is not None:
            about = _probing(log, about, probe)
        foreseen = asking.foresee(log, about.asker, about.questions, terms, about.definition)
        return replace(foreseen, **about.beside, log=masked(location))


def _probing(log: Log, about: _About, n: int) -> _About:
    """The same series with probes instead of labels, drawn from the pairs that the model has graded."""
    asker = replace(about.asker, changes=probes.changes())
    questions = probes.either_side(asker, about.questions)
    answers, since = answers_so_far(log, asker.assessor, questions)
    pairs = probes.graded_pairs(questions, answers, since)
    if not pairs:
        accepted = " since drift was accepted" if since else ""
        problem = f"{log.name}: {asker.assessor} has graded none of the pool's pairs{accepted}"
        raise DataError(f"{problem}; probes are compared with such grades: ask without --probe first")
    low = probes.irrelevant_by_people(log, cranfield.read_collection(about.collection).relevant_from)
    lot = probes.draw(asker, pairs, n, about.definition["seed"], low)
    definition = about.definition | {"purpose": probes.PROBE, "probe": n, "bases": lot.bases}
    beside = {"remarks": lot.remarks, "probes": probes.ProbeResults(asker.assessor, [])}
    return _About(asker, lot.questions, definition, about.collection, beside)


def _with_probes(log: Log, done: AskResult) -> AskResult:
    """The result; with all probes of the model so far after probing, and with a remark if its answers changed."""
    unsteady = done.drift is not None and bool(done.drift.changed) and not done.drift.passed
    if done.probes is None and not unsteady:
        return done
    so_far = probes.probes_of(log, done.assessor)
    again = so_far.of("again")
    if unsteady and again.missed:
        times = f"{again.missed:,} of {again.answered:,} times"
        remark = f"asked the same question twice, it has answered differently {times}"
        done = replace(done, remarks=[*done.remarks, f"{remark}: such answers need not be drift (--drift-allowed K)"])
    return done if done.probes is None else replace(done, probes=so_far)


def _definition(asker: Asker, terms: asking.Terms) -> dict[str, Any]:
    """The definition of a series, for the log."""
    names = ("price_in", "price_out", "max_tokens", "clients", "retries", "schema")
    grades = {str(whole(grade)): text for grade, text in asker.prompt.grades.items()}
    return {
        "assessor": asker.assessor,
        "purpose": LABEL,
        "prompt": {**asdict(asker.prompt), "grades": grades, "hash": asker.prompt.hash},
        "text_limit": asker.limit,
        "terms": {name: getattr(terms, name) for name in names},
        "budget": terms.budget._asdict(),
    }


def _key(name: str | None) -> str | None:
    """The API key from the environment; it never appears in a message."""
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise DataError(f"--key-env {name}: the environment has no such variable, or it is empty; set it to the key")
    return key


def _terms(
    template: Prompt,
    budget: Budget | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    max_tokens: int | None = None,
    drift: int = DRIFT,
    **more: Any,
) -> asking.Terms:
    """The terms of a series. Raise DataError for an impossible price, budget or number of questions."""
    limits = budget or NO_LIMIT
    for name, price in (("--price-in", price_in), ("--price-out", price_out)):
        if price is not None and not 0 <= price < math.inf:
            raise DataError(f"{name}: expected a price of 0 or more for a million tokens, found {price:g}")
    for limit in limits:
        if limit is not None and not 0 < limit < math.inf:
            raise DataError(f"--max-cost: expected a number above 0, found {limit:g}")
    if limits.money is not None and (price_in is None or price_out is None):
        raise DataError(
            "a budget in money needs --price-in and --price-out, each for a million tokens; or give it in tokens, as in "
            "--max-cost 200000tokens"
        )
    for name, count in (("--drift", drift), ("--drift-allowed", more.get("drift_allowed", 0))):
        if count < 0:
            raise DataError(f"{name}: expected 0 questions or more, found {count}")
    prices: dict[str, Any] = {"price_in": price_in or 0.0, "price_out": price_out or 0.0}
    return asking.Terms(**prices, budget=limits, max_tokens=max_tokens or template.max_tokens, drift=drift, **more)


def _questions(
    stack: ExitStack, model: str, prompt: Any, pool: str, collection: str, text_limit: int, neighbours: int, seed: int
) -> tuple[Asker, list[LlmQuestion], int]:
    """The asker, the questions of a pool, and the number of pairs without text."""
    from cranfield.formats.document_index import open_shelf

    about = subjects(read_pool(pool), prompt, neighbours, seed)
    if not about:
        raise DataError(f"{pool}: nothing to ask: no topic has two documents to compare; name another pool or prompt")
    topics = {topic.id: topic for topic in cranfield.read_collection(collection).topics}
    shelf = stack.enter_context(open_shelf(collection, stack.enter_context(TemporaryDirectory(prefix="cranfield-"))))
    refuse_unknown(about, topics, shelf.has, pool, collection)
    asker = Asker(model, prompt, topics, shelf.get, text_limit)
    questions = [question for subject in about if (question := asker.question(subject)) is not None]
    if not questions:
        raise DataError(f"{pool}: nothing to ask: none of its {len(about):,} pairs has a text in {collection}")
    return asker, questions, len(about) - len(questions)


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
