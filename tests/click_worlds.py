"""Simulated users whose parameters are known: the models that made the clicks of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cranfield.experiments.clicks.model import CLICK_MODELS
from cranfield.experiments.clicks.result_pages import ClickCounts, QueryDocuments, ResultPages

CONTINUATION = {"DBN": np.array([0.85]), "CCM": np.array([0.9, 0.8, 0.4])}


def random_pages(size: int, rng: np.random.Generator, queries: int = 20, documents: int = 10) -> ResultPages:
    """Pages without clicks: all documents of a query in random order."""
    query = rng.integers(0, queries, size)
    shuffled = np.argsort(rng.random((size, documents)), axis=1)
    each = np.arange(queries * documents)
    names = (tuple(f"{kind}{number}" for number in range(count)) for kind, count in (("q", queries), ("d", documents)))
    pairs = QueryDocuments(*names, each // documents, each % documents)
    pair = (query[:, None] * documents + shuffled).astype(np.int32).ravel()
    return ResultPages(pairs, np.arange(size + 1) * documents, pair, np.zeros(len(pair), np.bool_))


def true_model(name: str, pages: ResultPages, rng: np.random.Generator) -> Any:
    """A fitted model of that name whose parameters are known: attractiveness uniform from .05 to .6."""
    pairs, ranks = len(pages.pairs), int(pages.lengths.max())
    known: dict[str, Any] = {"attractiveness": rng.uniform(0.05, 0.6, pairs)}
    if name == "PBM":
        known["examination"] = 1 / np.arange(1, ranks + 1) ** 0.7
    if name == "UBM":
        rank, previous = np.meshgrid(np.arange(1, ranks + 1), np.arange(ranks), indexing="ij")
        known["examination"] = np.where(previous == 0, rank**-0.5, 0.9 ** np.maximum(rank - previous, 0))
    if name == "DCM":
        known["continuation"] = 0.8 * 0.9 ** np.arange(ranks)
    if name in ("DBN", "SDBN"):
        known["satisfied"] = rng.uniform(0.1, 0.7, pairs)
    if name in CONTINUATION:
        known["continuation"] = CONTINUATION[name]
    model = CLICK_MODELS.named(f"{name}(iterations=1)" if "iterations" in CLICK_MODELS[name].parameters else name)
    return replace(fit(model, pages.with_clicks(rng.random(len(pages.pair)) < 0.3)), **known)


def fit(model: Any, pages: ResultPages) -> Any:
    """A model fitted to pages or to their counts."""
    return model.fit(pages if model.needs_pages else ClickCounts.of(pages))


def simulated(name: str, size: int, seed: int) -> tuple[ResultPages, Any]:
    """Pages with the clicks of users of a model, and that model."""
    rng = np.random.default_rng(seed)
    pages = random_pages(size, rng)
    truth = true_model(name, pages, rng)
    return pages.with_clicks(truth.simulate(pages, rng)), truth
