"""A pool and its labels → qrels, with what the pool knows of the sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.collection import Extras, Qrels
from cranfield.errors import DataError
from cranfield.formats import write_qrels
from cranfield.formats.judgments import latest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.formats.judgments import Judgment
    from cranfield.formats.pools import Item


@dataclass(frozen=True)
class Collected:
    """Qrels made of labels; `missing` documents were to be judged and are not."""

    qrels: Qrels
    labels: int
    missing: int
    sampled: bool


def collect(pool: Sequence[Item], labels: Iterable[Judgment]) -> Collected:
    """The labels as qrels. Of a sampled pool, what was not drawn stands with grade -1, as infAP and xinfAP want it."""
    made = latest(labels)
    grades: dict[str, dict[str, float]] = {topic: dict(given) for topic, given in made.items()}
    known: dict[tuple[str, str], tuple[float, str]] = {}
    sampled = any(item.priority == 0 for item in pool)
    missing = 0
    for item in pool:
        given = grades.setdefault(item.topic, {})
        known[item.topic, item.document] = item.probability, item.stratum
        if item.document not in given:
            missing += item.priority > 0
            if sampled:
                given[item.document] = -1.0
    grades = {topic: given for topic, given in grades.items() if given}
    if not any(made.values()):
        raise DataError("no label yet, so there are no qrels to write")
    qrels = Qrels(grades)
    if sampled:
        qrels.extras = Extras(probabilities=known)
    return Collected(qrels, sum(map(len, made.values())), missing, sampled)


def write_collected(found: Collected, path: str, format: str | None = None) -> None:
    """Write the qrels. `prels`, for statAP, hold what was drawn alone; `strata`, for xinfAP, the whole pool."""
    if format == "prels":
        if found.missing:
            raise DataError(
                f"{found.missing} documents of the sample have no label: statAP needs all of them, as the probabilities are "
                "those of the whole sample (strata, for xinfAP, count what was judged)"
            )
        drawn = {
            topic: {document: grade for document, grade in grades.items() if grade >= 0}
            for topic, grades in found.qrels.to_dict().items()
        }
        part = Qrels({topic: grades for topic, grades in drawn.items() if grades})
        known = found.qrels.extras.probabilities or {}
        methods = {key: (chance, "1" if chance < 1 else "0") for key, (chance, _) in known.items()}  # drawn, or certain
        part.extras = Extras(probabilities=methods)
        write_qrels(part, path, format)
        return
    write_qrels(found.qrels, path, format)
