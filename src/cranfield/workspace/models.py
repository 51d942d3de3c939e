"""Verbs on models that label."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.errors import DataError
from cranfield.judge.models.kept import LABEL, NO_LIMIT, Budget
from cranfield.judge.opening import is_database, open_log
from cranfield.parameters import masked
from cranfield.workspace.inputs import once

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.judge.log import Log
    from cranfield.judge.models.asking import Terms
    from cranfield.judge.models.questioning import Questioning
    from cranfield.judge.models.questions import Asker, Question

TEXT_LIMIT = 12_000  # characters
DRIFT = 5  # questions of before that are asked again first


def ask(
    location: str,
    *,
    pool: str,
    collection: str,
    endpoint: str,
    model: str,
    prompt: str,
    key_env: str | None = None,
    budget: Budget | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    max_tokens: int | None = None,
    text_limit: int = TEXT_LIMIT,
    neighbours: int = 1,
    seed: int = 0,
    probe: int | None = None,
    drift: int = DRIFT,
    timeout: float = 120.0,
    max_answer: float = 1.0,
    dry_run: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    **more: Any,
) -> Questioning:
    """Have a model label the pairs of a pool, and write labels, answers and failures into a log.

    With `probe`, ask so many probes of each kind about pairs that it has labelled, and no label. Nothing is written before
    the server has been reached. `more` are clients, retries, give_up, schema, drift_allowed and accept_drift of `Terms`.
    """
    from cranfield.judge.models.alone import alone
    from cranfield.judge.models.asking import Terms, ask, refuse_other_prompt
    from cranfield.judge.models.chat import Endpoint
    from cranfield.judge.models.prompt import read_prompt

    once(pool, prompt)
    asked, limit = read_prompt(prompt), budget or NO_LIMIT
    _refuse_prices(limit, price_in, price_out)
    _refuse_counts(probe, drift, more.get("drift_allowed", 0))
    prices: dict[str, Any] = {"price_in": price_in or 0.0, "price_out": price_out or 0.0}
    terms = Terms(**prices, budget=limit, max_tokens=max_tokens or asked.max_tokens, drift=drift, **more)
    server = Endpoint(endpoint, model, _key(key_env), timeout, int(max_answer * 1e6))
    with ExitStack() as stack:
        stack.callback(server.close)
        asker, questions, empty = _questions(stack, model, asked, pool, collection, text_limit, neighbours, seed)
        given = {
            "pool": {"file": os.path.basename(pool), "hash": _hash(pool)},
            "collection": os.path.basename(collection),
        }
        definition = given | {"endpoint": server.where, "seed": seed} | _definition(asker, terms)
        about = _About(asker, questions, definition, collection, {"empty": empty})
        if dry_run:
            return _foreseen(location, about, terms, probe)
        server.check()
        log = open_log(location, new=probe is None)
        stack.callback(log.close)
        stack.enter_context(alone(log, model))
        refuse_other_prompt(log, asker)
        if probe is not None:
            about = _probing(log, about, probe)
        done = ask(log, about.asker, server, about.questions, terms, about.definition, progress=progress)
        return _told(log, replace(done, **about.beside))


class _About(NamedTuple):
    """What a series asks, and what is told beside what came of it."""

    asker: Asker
    questions: list[Question]
    definition: dict[str, Any]
    collection: str
    beside: dict[str, Any]


def _foreseen(location: str, about: _About, terms: Terms, probe: int | None) -> Questioning:
    """What would be asked; a log that is not there is not made."""
    from cranfield.judge.models.asking import foresee

    there = "://" in location or os.path.exists(location) or not is_database(location) or probe is not None
    log = open_log(location, new=probe is None) if there else None
    try:
        if log is not None and probe is not None:
            about = _probing(log, about, probe)
        foreseen = foresee(log, about.asker, about.questions, terms, about.definition)
        return replace(foreseen, **about.beside, log=masked(location))
    finally:
        if log is not None:
            log.close()


def _probing(log: Log, about: _About, n: int) -> _About:
    """Probes in the place of labels, drawn from the pairs that the model has graded."""
    import cranfield
    from cranfield.judge.models.drifting import accepted_at
    from cranfield.judge.models.kept import answered
    from cranfield.judge.models.probed import Probes
    from cranfield.judge.models.probing import PROBE, changes, draw, either_side, graded_pairs, irrelevant_by_people

    asker = replace(about.asker, changes=changes())
    asked = either_side(asker, about.questions)
    with log.reading() as transaction:
        known = answered(transaction.connection, [each.hash for each in asked])
        since = accepted_at(transaction.connection, asker.assessor)
    pairs = graded_pairs(asked, known, since)
    if not pairs:
        told = f"{log.name}: {asker.assessor} has graded none of the pool's pairs{' since drift was accepted' if since else ''}"
        raise DataError(f"{told}; probes are held against such grades: ask without --probe first")
    low = irrelevant_by_people(log, cranfield.read_collection(about.collection).relevant_from)
    drawn = draw(asker, pairs, n, about.definition["seed"], low)
    definition = about.definition | {"purpose": PROBE, "probe": n, "bases": drawn.bases}
    beside = {"remarks": drawn.remarks, "probes": Probes(asker.assessor, [])}
    return _About(asker, drawn.questions, definition, about.collection, beside)


def _told(log: Log, done: Questioning) -> Questioning:
    """What came of it with all probes of the model so far, where they matter."""
    from cranfield.judge.models.probed import probes_of

    unsteady = done.drift is not None and bool(done.drift.changed) and not done.drift.passed
    if done.probes is None and not unsteady:
        return done
    probes = probes_of(log, done.assessor)
    again = probes.of("again")
    if unsteady and again.missed:
        told = (
            f"asked the same question twice, it has answered differently {again.missed:,} of {again.answered:,} times"
        )
        done = replace(done, remarks=[*done.remarks, f"{told}: such answers need not be drift (--drift-allowed K)"])
    return done if done.probes is None else replace(done, probes=probes)


def _definition(asker: Asker, terms: Terms) -> dict[str, Any]:
    """How a series is asked, for the log."""
    kept = ("price_in", "price_out", "max_tokens", "clients", "retries", "schema")
    return {
        "assessor": asker.assessor,
        "purpose": LABEL,
        "prompt": _described(asker.prompt),
        "text_limit": asker.limit,
        "terms": {name: getattr(terms, name) for name in kept},
        "budget": terms.budget._asdict(),
    }


def _described(prompt: Any) -> dict[str, Any]:
    from cranfield.formats.format import whole

    return {
        **asdict(prompt),
        "grades": {str(whole(grade)): text for grade, text in prompt.grades.items()},
        "hash": prompt.hash,
    }


def _hash(path: str) -> str:
    from cranfield.workspace.judging import hash_of_file

    return hash_of_file(path)


def _key(name: str | None) -> str | None:
    """The key of the environment; it is never part of a message."""
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise DataError(f"--key-env {name}: the environment has no such variable, or it is empty; set it to the key")
    return key


def _refuse_prices(budget: Budget, price_in: float | None, price_out: float | None) -> None:
    for name, price in (("--price-in", price_in), ("--price-out", price_out)):
        if price is not None and not 0 <= price < math.inf:
            raise DataError(f"{name}: expected a price of 0 or more for a million tokens, found {price:g}")
    for limit in budget:
        if limit is not None and not 0 < limit < math.inf:
            raise DataError(f"--budget: expected a number above 0, found {limit:g}")
    if budget.money is not None and (price_in is None or price_out is None):
        raise DataError(
            "a budget in money needs --price-in and --price-out, each for a million tokens; or give it in tokens, as in "
            "--budget 200000tokens"
        )


def _refuse_counts(probe: int | None, drift: int, allowed: int) -> None:
    if probe is not None and probe < 1:
        raise DataError(f"--probe: expected 1 pair or more, found {probe}")
    for name, count in (("--drift", drift), ("--drift-allowed", allowed)):
        if count < 0:
            raise DataError(f"{name}: expected 0 questions or more, found {count}")


def _questions(
    stack: ExitStack, model: str, prompt: Any, pool: str, collection: str, text_limit: int, neighbours: int, seed: int
) -> tuple[Asker, list[Question], int]:
    """What the pool asks about, and how many pairs have no text."""
    from tempfile import TemporaryDirectory

    import cranfield
    from cranfield.formats.pools import read_pool
    from cranfield.formats.shelf import open_shelf
    from cranfield.judge.models.questions import Asker, refuse_unknown, subjects

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
