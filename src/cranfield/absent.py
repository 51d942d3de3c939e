"""Topics and lines that are not what one expects, by reason, and the sentences that say so.

Nothing vanishes silently: what the conventions score 0 or leave out is kept here and reported. A
single topic is named; of several the first are named and all counted; many runs share a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.columns import listed
from cranfield.formats.by_text import joined_in_words

if TYPE_CHECKING:
    from cranfield.conventions import Conventions


MANY = 5  # more runs than this share a sentence
ZERO = "scores 0", "score 0"
SKIP = "is left out", "are left out"


@dataclass
class Absent:
    """What is missing or was passed over, by reason."""

    missing: dict[str, list[str]] = field(default_factory=dict)  # run → topics judged but not answered
    empty: dict[str, list[str]] = field(default_factory=dict)  # run → judged topics answered with an empty list
    unjudged: dict[str, list[str]] = field(default_factory=dict)  # run → topics answered but not judged
    no_relevant: list[str] = field(default_factory=list)  # topics without a relevant document
    skipped: dict[str, int] = field(default_factory=dict)  # run → malformed lines passed over (lenient reading)
    skipped_qrels: int = 0  # the same for the judgments
    not_judged: list[str] = field(default_factory=list)  # topics asked for that are not judged (lenient reading)
    by_text: dict[str, int] = field(default_factory=dict)  # file → topics that it names by what they ask

    def to_dict(self) -> dict[str, Any]:
        """The reasons that apply, as plain values."""
        return {reason: what for reason, what in vars(self).items() if what}

    def select(self, runs: list[str], topics: list[str]) -> Absent:
        """What applies to some runs and topics."""
        kept = set(topics)
        missing, empty = (
            {run: [topic for topic in of.get(run, []) if topic in kept] for run in runs}
            for of in (self.missing, self.empty)
        )
        return replace(
            self,
            missing={run: topics for run, topics in missing.items() if topics},
            empty={run: topics for run, topics in empty.items() if topics},
            unjudged={run: self.unjudged[run] for run in runs if run in self.unjudged},
            no_relevant=[topic for topic in self.no_relevant if topic in kept],
            skipped={run: self.skipped[run] for run in runs if run in self.skipped},
        )

    def in_words(self, conventions: Conventions, judged: int, shell: bool = False) -> list[str]:
        """A sentence for each reason. Hints name Python arguments, or options where `shell` is set."""
        then, hint = _treatment("missing", conventions.missing, shell)
        notes = [joined_in_words(name, number) for name, number in self.by_text.items()]
        notes += _missing(self.missing, judged, then, hint)
        notes += _empty(self.empty)
        if self.no_relevant:
            then, hint = _treatment("no_relevant", conventions.no_relevant, shell)
            notes.append(_topics(self.no_relevant, "has no relevant document", "have no relevant document", then, hint))
        notes += _unjudged(self.unjudged)
        for name, number in {"the judgments": self.skipped_qrels, **self.skipped}.items():
            if number:
                notes.append(f"{number} malformed line{'s' if number > 1 else ''} of {name} skipped")
        if self.not_judged:
            asked = "was asked for but is not judged", "were asked for but are not judged"
            notes.append(_topics(self.not_judged, *asked, SKIP))
        return notes


def _treatment(name: str, value: str, shell: bool) -> tuple[tuple[str, str], str]:
    """What becomes of such topics, and how to have it otherwise."""
    other, to = ("zero", "to score {} 0") if value == "skip" else ("skip", "to leave {} out")
    use = f"use --{name.replace('_', '-')} {other}" if shell else f'use {name}="{other}"'
    return (SKIP if value == "skip" else ZERO), f"{use} {to}"


def _topics(topics: list[str], one: str, many: str, then: tuple[str, str], hint: str = "", whose: str = "") -> str:
    alone = len(topics) == 1
    what = f"topic {topics[0]!r}{whose} {one}; it {then[0]}"
    if not alone:
        what = f"{len(topics)} topics{whose} {many} ({listed(topics)}); they {then[1]}"
    return f"{what} ({hint.format('it' if alone else 'them')})" if hint else what


def _missing(missing: dict[str, list[str]], judged: int, then: tuple[str, str], hint: str) -> list[str]:
    if len(missing) > MANY:
        sizes = sorted(map(len, missing.values()))
        span = f"{sizes[0]} to {sizes[-1]} each" if sizes[0] != sizes[-1] else f"{sizes[0]} each"
        name, topics = next(iter(missing.items()))
        first = f"{name} lacks {listed(topics, most=3)}"
        return [f"{len(missing)} runs lack judged topics ({span}; {first}); they {then[1]} ({hint.format('them')})"]
    notes = []
    for run, topics in missing.items():
        if len(topics) == judged:
            notes.append(f"{run} answers none of the {judged} judged topics; is it a run for these judgments?")
        else:
            lack = f"is judged but missing from {run}", f"are judged but missing from {run}"
            notes.append(_topics(topics, *lack, then, hint))
    return notes


def _empty(empty: dict[str, list[str]]) -> list[str]:
    if len(empty) > MANY:
        name, topics = next(iter(empty.items()))
        first = f"{name} for {listed(topics, most=3)}"
        return [f"{len(empty)} runs answer judged topics with an empty list ({first}); they score 0"]
    return [
        _topics(topics, f"is answered by {run} with an empty list", f"are answered by {run} with empty lists", ZERO)
        for run, topics in empty.items()
    ]


def _unjudged(unjudged: dict[str, list[str]]) -> list[str]:
    if len(unjudged) > MANY:
        name, topics = next(iter(unjudged.items()))
        every = len({topic for each in unjudged.values() for topic in each})
        first = f"{name} has {listed(topics, most=3)}"
        return [f"{len(unjudged)} runs answer topics that are not judged ({every} in all; {first}); they are left out"]
    return [
        _topics(topics, "is not judged", "are not judged", SKIP, whose=f" of {run}") for run, topics in unjudged.items()
    ]
