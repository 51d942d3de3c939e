"""The verdict of a comparison: what can be claimed of two systems, measure by measure, or who leads among many.

A verdict claims what the sentence of a pair claims and no more: "beats" only where the corrected p-value says so and
the test points where the mean does. The numbers stand in the table below it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from cranfield.columns import counted, joined
from cranfield.compare.evidence import QUESTIONS
from cranfield.compare.pair import Pair, amount, chances, named
from cranfield.compare.scored import lists_nonrelevant
from cranfield.doubts import LITTLE_JUDGED
from cranfield.stats.testing import any_test

if TYPE_CHECKING:
    from cranfield.compare.evidence import Evidence

NAMED_RUNS = 3  # where more beat a baseline, the others are counted


class Claim(NamedTuple):
    """What is said of a pair by a measure; pairs that begin and end alike are said in one line."""

    start: str
    what: str
    end: str


def verdict(evidence: Evidence) -> list[str]:
    """What the comparison comes to, in a line or a few; where little of a run is judged, that comes first."""
    return [*_little_judged(evidence), *_claims(evidence)]


def _little_judged(evidence: Evidence) -> list[str]:
    """The runs of which too little is judged for a verdict."""
    for name, shares in evidence.judged.items() if lists_nonrelevant(evidence.scores) else ():
        little = [f"{run} {share:.0%}" for run, share in shares.items() if share < LITTLE_JUDGED]
        if little:
            return [f"too little is judged for a verdict: {name} is {_some(little)}; as far as is judged:"]
    return []


def _claims(evidence: Evidence) -> list[str]:
    if len({(pair.one, pair.other) for pair in evidence.pairs}) == 1:
        return _of_two(evidence)
    if evidence.one_sided:
        return [_of_a_question(evidence)]
    return _against_baselines(evidence) if evidence.baselines else [_of_all(evidence)]


# two systems


def _of_two(evidence: Evidence) -> list[str]:
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in evidence.pairs:
        claim = _claim(evidence, pair)
        lines[claim.start, claim.end].append(claim.what)
    return [f"{start} {joined(what)}{end}" for (start, end), what in lines.items()]


def _claim(evidence: Evidence, pair: Pair) -> Claim:
    both = f"{pair.other} and {pair.one}"
    lower = evidence.lower_is_better(pair.measure)
    if pair.n == 0:
        return Claim(f"{both} have no topic in common with a value of", pair.measure, ": nothing to compare")
    if pair.ties == pair.n and pair.n > 1:
        return Claim(f"{both} score the same", pair.measure, f" on each of {counted(pair.n, 'topic')}: nothing to test")
    where = f" on {counted(pair.n, 'topic')}"
    if pair.ahead == "neither":
        return Claim(f"{both} have the same mean", pair.measure, where + _reservation(evidence, pair, lower))
    winner, loser = (pair.one, pair.other) if pair.ahead == "one" else (pair.other, pair.one)
    settled = evidence.significant(pair)
    claimed = "beats" if settled and not pair.torn else "is ahead of"
    what = f"{amount(abs(pair.difference))} {pair.mean_of}{' (lower is better)' if lower else ''}"
    mean = " in the mean" if settled and pair.torn else ""
    return Claim(f"{winner} {claimed} {loser} by", what, mean + where + _reservation(evidence, pair, lower))


def _reservation(evidence: Evidence, pair: Pair, lower_is_better: bool) -> str:
    """What must be said behind the difference: that it is not settled, and why; or what was asked, and the answer."""
    settled, answer = evidence.significant(pair), evidence.answer(pair)
    said = ""
    if settled and pair.torn:
        said = f", but the {any_test(pair.test).short} favours {named(pair, pair.favoured)}: neither beats the other"
    elif not settled and pair.corrected == pair.corrected and pair.ahead != "neither" and not answer:
        said = ", but the data do not settle it"
    said += evidence.doubt_in_words(pair)
    probable = chances(pair, lower_is_better)
    if probable:
        return f"{said}; {probable}"
    if pair.corrected != pair.corrected:
        return f"{said}; no p-value: {pair.reason}"
    return f"{said}; is {pair.other} {QUESTIONS[evidence.alternative]}? {answer}" if answer else said


# more than two


def _of_all(evidence: Evidence) -> str:
    """Who leads by which measure, and how many of the others it beats."""
    led: dict[str, list[str]] = defaultdict(list)
    for measure in evidence.scores.measures:
        pairs = [pair for pair in evidence.pairs if pair.measure == measure]
        leader = _leader(evidence, measure, pairs)
        beaten = sum(_beats(evidence, pair) == leader for pair in pairs)
        others = len(evidence.contenders()) - 1
        first = not any(led.values())
        number = f"{beaten or 'none'} of {others}"
        by = pairs[0].mean_of if pairs else measure
        led[leader].append(f"{by} ({f'beats {number} others' if first else number})")
    settled = sum(evidence.significant(pair) for pair in evidence.pairs)
    share = f"{settled:,} of {counted(len(evidence.pairs), 'difference')} {'is' if settled == 1 else 'are'} significant"
    leads = "; ".join(f"{leader} leads by {joined(measures)}" for leader, measures in led.items())
    return f"{leads}; {share}"


def _leader(evidence: Evidence, measure: str, pairs: list[Pair]) -> str:
    means = {name: mean for pair in pairs for name, mean in ((pair.one, pair.mean_one), (pair.other, pair.mean_other))}
    known = {name: mean for name, mean in means.items() if mean == mean} or means
    best = min if evidence.lower_is_better(measure) else max
    return best(known, key=lambda name: known[name])


def _beats(evidence: Evidence, pair: Pair) -> str:
    """Who beats the other; empty where nobody does."""
    if not evidence.significant(pair) or pair.better == "neither":
        return ""
    return named(pair, pair.better)


def _against_baselines(evidence: Evidence) -> list[str]:
    """Of each baseline and measure, who beats it, and whom it beats."""
    lines = []
    for baseline in evidence.baselines:
        for measure in evidence.scores.measures:
            pairs = [pair for pair in evidence.pairs if (pair.one, pair.measure) == (baseline, measure)]
            winners = [_beats(evidence, pair) for pair in pairs]
            above = [winner for winner in winners if winner not in ("", baseline)]
            below = [pair.other for pair, winner in zip(pairs, winners, strict=True) if winner == baseline]
            open_ = winners.count("")
            said = [f"{_some(above)} beat{'s' if len(above) == 1 else ''} {baseline}"] if above else []
            said += [f"{baseline} beats {_some(below)}"] if below else []
            said += [f"{open_ if said else f'{open_} of {len(pairs)}'} not settled"] if open_ else []
            lines += [f"{pairs[0].mean_of}: {'; '.join(said)}"] if said else []
    return lines


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_RUNS
    return joined(names) if rest < 1 else f"{', '.join(names[:NAMED_RUNS])} and {rest} more"


def _of_a_question(evidence: Evidence) -> str:
    answers = [evidence.answer(pair) or "no answer" for pair in evidence.pairs]
    counts = {word: answers.count(word) for word in ("yes", "no", "not shown", "no answer") if word in answers}
    said = ", ".join(f"{word} for {number:,}" for word, number in counts.items())
    return f"is other {QUESTIONS[evidence.alternative]} than one? {said} of {counted(len(answers), 'pair')}"
