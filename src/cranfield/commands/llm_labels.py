"""What `judge ask` does: have an LLM judge label a pool, or answer probes."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import cranfield
from cranfield.base.errors import DataError
from cranfield.base.parameters import masked
from cranfield.commands.judging import hash_of_file
from cranfield.formats.format import whole
from cranfield.formats.pool_files import read_pool
from cranfield.inputs.inputs import refuse_second_stdin
from cranfield.judging.llm import ask as asking
from cranfield.judging.llm import probes
from cranfield.judging.llm.chat_client import Endpoint
from cranfield.judging.llm.drift import answers_so_far
from cranfield.judging.llm.question_store import LABEL, NO_LIMIT, Budget
from cranfield.judging.llm.questions import Asker, LlmQuestion, Prompt, read_prompt, refuse_unknown, subjects
from cranfield.judging.log_location import is_database, open_log

if TYPE_CHECKING:
    from cranfield.evaluation.evaluate import Progress
    from cranfield.judging.llm.ask_result import AskResult
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
