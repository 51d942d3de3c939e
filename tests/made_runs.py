"""Runs made of judgments and noise: the more noise, the worse."""

from __future__ import annotations

import numpy as np

from cranfield.formats.runs_and_qrels import as_qrels

Grades = dict[str, dict[str, float]]


def judged(name: str = "allotment") -> Grades:
    """The judgments of a collection."""
    return as_qrels(name).to_dict()


def made_qrels(topics: int = 40, documents: int = 30, highest: int = 3, seed: int = 5) -> Grades:
    """Judgments of a made collection: one document in four is relevant."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(1, highest + 1, (topics, documents)) * (rng.random((topics, documents)) < 0.25)
    return {f"t{t}": {f"d{d}": float(grade) for d, grade in enumerate(row)} for t, row in enumerate(grades.tolist())}


def noisy(qrels: Grades, noise: float, seed: int) -> Grades:
    """A run that scores documents by their grades and so much noise."""
    rng = np.random.default_rng(seed)
    return {
        topic: {document: grade + noise * float(rng.normal()) for document, grade in grades.items()}
        for topic, grades in qrels.items()
    }


def runs(qrels: Grades, noises: list[float]) -> dict[str, Grades]:
    """A run for each noise, by the names s0, s1, …"""
    return {f"s{n}": noisy(qrels, noise, n) for n, noise in enumerate(noises)}
