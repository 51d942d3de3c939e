"""Verbs on models that label."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.judge.models.kept import LABEL, NO_LIMIT, Budget
from cranfield.judge.opening import is_database, open_log
from cranfield.parameters import masked
from cranfield.workspace.inputs import once

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.judge.models.asking import Terms
    from cranfield.judge.models.questioning import Questioning
    from cranfield.judge.models.questions import Asker, Question

TEXT_LIMIT = 12_000  # characters


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
    timeout: float = 120.0,
    max_answer: float = 1.0,
    dry_run: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    **more: Any,
) -> Questioning:
    """Have a model label the pairs of a pool, and write labels, answers and failures into a log.

    Nothing is written before the server has been reached. `more` are clients, retries, give_up and schema of `Terms`.
    """
    from cranfield.judge.models.alone import alone
    from cranfield.judge.models.asking import Terms, ask, refuse_other_prompt
    from cranfield.judge.models.chat import Endpoint
    from cranfield.judge.models.prompt import read_prompt

    once(pool, prompt)
    asked, limit = read_prompt(prompt), budget or NO_LIMIT
    _refuse_prices(limit, price_in, price_out)
    prices: dict[str, Any] = {"price_in": price_in or 0.0, "price_out": price_out or 0.0}
    terms = Terms(**prices, budget=limit, max_tokens=max_tokens or asked.max_tokens, **more)
    server = Endpoint(endpoint, model, _key(key_env), timeout, int(max_answer * 1e6))
    with ExitStack() as stack:
        stack.callback(server.close)
        asker, questions, empty = _questions(stack, model, asked, pool, collection, text_limit, neighbours, seed)
        if dry_run:
            return replace(_foreseen(location, asker, questions, terms), empty=empty)
        server.check()
        log = open_log(location)
        stack.callback(log.close)
        stack.enter_context(alone(log, model))
        refuse_other_prompt(log, asker)
        given: dict[str, Any] = {
            "pool": {"file": os.path.basename(pool), "hash": _hash(pool)},
            "collection": os.path.basename(collection),
        }
        given |= {"endpoint": server.where, "seed": seed, "pairs": len(questions)}
        definition = given | _definition(asker, terms)
        return replace(ask(log, asker, server, questions, terms, definition, progress=progress), empty=empty)


def _foreseen(location: str, asker: Asker, questions: list[Question], terms: Terms) -> Questioning:
    """What would be asked; a log that is not there is not made."""
    from cranfield.judge.models.asking import foresee

    there = "://" in location or os.path.exists(location) or not is_database(location)
    log = open_log(location) if there else None
    try:
        return replace(foresee(log, asker, questions, terms), log=masked(location))
    finally:
        if log is not None:
            log.close()


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
    return {
        **asdict(prompt),
        "grades": {f"{grade:g}": text for grade, text in prompt.grades.items()},
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
        if price is not None and price < 0:
            raise DataError(f"{name}: expected a price of 0 or more for a million tokens, found {price:g}")
    if budget.money is not None and (price_in is None or price_out is None):
        raise DataError(
            "a budget in money needs --price-in and --price-out, each for a million tokens; or give it in tokens, as in "
            "--budget 200000tokens"
        )


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
