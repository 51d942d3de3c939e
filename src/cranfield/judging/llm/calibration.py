"""Whether the labels of an LLM judge can be trusted: compared with people's labels, in sentences and in numbers.

Every sentence claims what an interval shows and no more; a judge that is as good as another person gets only one
sentence. A weakness is reported if its interval rules out a judge without that weakness, and an error in grades only if it is
also large enough to matter (`LEAST_ERROR`, `LEAST_EFFECT`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Layout, Lines, Part, Table, as_dicts, plain
from cranfield.base.text_layout import counted, name_list
from cranfield.judging.agreement import MAIN
from cranfield.judging.llm import grade_agreement
from cranfield.judging.llm.grade_agreement import DATE, LENGTH, RANK, RUN, Bias, ModelAgreement, ValueInterval
from cranfield.judging.llm.leaderboards import FIRST, Advantage, BoardPair, OwnRanking, RunRanks
from cranfield.judging.versions import in_words
from cranfield.stats.agreement import coefficient
from cranfield.stats.jackknife import sums_by_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.judging.llm.label_sample import CommonLabels

WITHIN = 0.1  # of a coefficient: a difference that lies within this is none to speak of
SLIGHT = 0.2  # agreement beyond chance below which a judge says next to nothing
LEAST_ERROR = 0.1  # of a step of the scale: a smaller mean error is not spoken of
LEAST_EFFECT = 0.05  # the same, for errors that go with length, rank or a run
SHOWN = 3  # runs, of those that are favoured
NOTHING = 1e-9  # of a difference: rounding
FEW = 10  # topics, below which coverage was not measured


class Candidate(NamedTuple):
    """A prompt to choose from, and its agreement with people on the choosing half of the topics."""

    model: str
    documents: int
    agreement: ValueInterval


class Doubted(NamedTuple):
    """The dates when the judgments became public and when the model was made; an unknown date is empty."""

    public: str = ""
    model: str = ""

    def finding(self) -> str:
        """A warning if the model may have read the judgments."""
        if not (self.public and self.model and _day(self.public) <= _day(self.model, LAST)):
            return ""
        were = "were" if _day(self.public, LAST) < _day(self.model) else "may have been"
        sentence = f"the judgments {were} public ({self.public}) before the model was made ({self.model})"
        return f"caution: {sentence}: it may have read them, and agree with people for that reason"

    def note(self) -> str:
        """Which of the dates are unknown."""
        if self.public and self.model:
            return ""
        lacking = "the model's date (--model-date)" if self.public else "when the judgments became public (--public)"
        return f"{lacking} is not known, so that nothing tells whether the model may have read them"


NO_DATES = Doubted()
FIRST_DAY, LAST = (1, 1), (12, 31)  # of a year: month and day


def _day(date: str, rest: tuple[int, int] = FIRST_DAY) -> tuple[int, ...]:
    """Year, month and day of a date; a missing month or day is taken from `rest`."""
    numbers = [int(part) for part in date.split("-")]
    return (*numbers, *rest[len(numbers) - 1 :])


def read_date(text: str, option: str) -> str:
    """Check a date: a year, a year and a month, or a day.

    >>> read_date("2024-08", "--public")
    '2024-08'
    """
    parts = text.split("-")
    sizes = [len(part) for part in parts] in ([4], [4, 2], [4, 2, 2]) and all(part.isdecimal() for part in parts)
    if not sizes or not text.isascii() or not DATE.fullmatch(text if len(parts) > 1 else f"{text}-01"):
        raise DataError(f"{option}: expected a date such as 2024, 2024-08 or 2024-08-06, found {shortened(text)!r}")
    return text


def date_in(names: Sequence[str]) -> str:
    """The latest date in a model's name; empty if there is none.

    >>> date_in(["gpt-4o-2024-08-06", "m-20230613"])
    '2024-08-06'
    """
    dates = ["-".join(part for part in match.groups() if part) for name in names for match in DATE.finditer(name)]
    return max(dates, default="", key=_day)


@dataclass(frozen=True, repr=False, kw_only=True)
class Calibration(Answer):
    """The result of `judge calibrate` for one model."""

    log: str
    model: str
    policy: str
    level: float
    rel: float
    documents: int  # that both labelled, less those left out
    topics: int
    twice: int  # of them, labelled by two people or more
    topics_twice: int  # that these are of
    lone: str  # the one topic without which two people gave one grade only; empty where there is none
    only_answer: float | None  # where the model gives one alone
    step: float  # of the scale
    left_out: dict[str, int]  # documents, by why
    agreed: list[ModelAgreement]
    constants: list[grade_agreement.ConstantAnswer]
    errors: list[grade_agreement.GradeError]
    mistaken: list[grade_agreement.ErrorRate]
    shares: dict[str, dict[str, float]]  # people's grade → at least this grade → share of the model's
    biases: list[Bias] = field(default_factory=list)
    boards: list[BoardPair] = field(default_factory=list)
    own: list[str] = field(default_factory=list)  # runs built on the judge's own model
    by_name: list[str] = field(default_factory=list)  # those of them of which only their name says so
    advantages: list[Advantage] = field(default_factory=list)
    circular: list[OwnRanking] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    doubted: Doubted = NO_DATES
    probed: list[str] = field(default_factory=list)  # what probes and drift show
    remarks: list[str] = field(default_factory=list)

    def findings(self) -> list[str]:
        """The findings, the most important first: agreement always, the others if they count against the judge."""
        findings = [self._choice(), self._constant(), *self.probed, self._agreement(), self._error(), *self._biased()]
        findings += [*self._favoured(), *self._boards(), *self._circularity(), self.doubted.finding()]
        return [sentence for sentence in findings if sentence]

    @property
    def _main(self) -> ModelAgreement:
        return next(each for each in self.agreed if each.coefficient == str(coefficient(MAIN)))

    def _choice(self) -> str:
        if not self.candidates:
            return ""
        best = max(each.agreement.value for each in self.candidates)
        alike = [each.model for each in self.candidates if each.agreement.value == best and each.model != self.model]
        and_others = f" ({name_list(alike)} as well)" if alike else ""
        sentence = f"{self.model} agrees best of {len(self.candidates)}{and_others} on one half of the topics"
        return f"{sentence}; all that follows is from the other half"

    def _agreement(self) -> str:
        main, name = self._main, self.model
        title = f"{coefficient(MAIN).title} ({coefficient(MAIN).metric})"  # type: ignore[attr-defined]
        if not self.twice:
            return f"{self._alone(title)}; no document was labelled by two people, so that nothing tells how far people agree"
        if math.isnan(main.people.value):
            sentence = f"two people gave {counted(self.twice, 'document')} one grade only"
            return f"{self._alone(title)}; {sentence}, so that nothing tells how far people agree beyond chance"
        value = f"{title} {main.model.value:.2f}"
        beside = f"{value} against {main.people.value:.2f}, difference {_of(main.difference, True)}"
        low, high = main.difference.low, main.difference.high
        if math.isnan(low):
            return self._without_interval(value, beside)
        if main.difference.below():
            return f"{name} agrees with people less than people with each other: {beside}"
        if main.difference.above():
            return f"{name} agrees with people more than people with each other: {beside}"
        apart = max(-low, high)
        if apart <= WITHIN:
            return f"{name} agrees with people as far as people with each other (within {apart:.2f}): {beside}"
        return f"agreement of {name} with people and of people with each other are not told apart: {beside}"

    def _alone(self, title: str) -> str:
        """The model's agreement with people, without the agreement among people."""
        if math.isnan(self._main.every.value):
            return f"{self.model} and people gave one grade only, which tells nothing of agreement beyond chance"
        return f"{self.model} agrees with people to {_of(self._main.every)} by {title}"

    def _without_interval(self, value: str, beside: str) -> str:
        """The difference from people, and why it has no interval."""
        if self.topics_twice < 2:
            return f"two people labelled documents of 1 topic only, which gives no interval: {beside}"
        if self.lone:
            return f"without topic {self.lone} two people gave one grade only, which gives no interval: {beside}"
        if abs(self._main.difference.value) < NOTHING:
            return f"{self.model} agrees with people as far as people with each other: {value}"
        less = "less" if self._main.difference.value < 0 else "more"
        sentence = f"{self.model} agrees with people {less} than people with each other"
        return f"{sentence}, by as much whichever topic is left out, which gives no interval: {beside}"

    def _constant(self) -> str:
        right, off = self.constants
        beside = f"right {right.model.value:.0%} against {right.constant.value:.0%}, difference {_of(right.difference, True)}"
        if self.only_answer is not None:
            worse = right.difference.value < 0
            best = f"; answering {right.answer:g} to everything does better" if worse else ""
            return f"{self.model} gives one answer only: {self.only_answer:g}{best}: {beside}"
        agreement = self._main.every
        if agreement.above() or math.isnan(agreement.low):
            return ""
        worse = right.difference.below() or off.difference.above()
        sentence = f"answering {right.answer:g} to everything: {beside}"
        if worse and agreement.below(SLIGHT):
            return f"{self.model} is no better than {sentence}"
        better = right.difference.above() or off.difference.below()
        return "" if better else f"{self.model} is not shown to be better than {sentence}"

    def _error(self) -> str:
        error = self.errors[0].error
        # a model that agrees better errs less than people do: slips from an end of the scale go one way
        if self._main.difference.above():
            return ""
        alike = math.isnan(error.low)  # no topic differs from another
        if self.only_answer is not None or abs(error.value) < LEAST_ERROR * self.step or not (alike or error.apart):
            return ""
        where = " in every topic" if alike else ""
        return f"{self.model} {'over' if error.value > 0 else 'under'}-grades by {_of(error, True)} grades{where}"

    def _biased(self) -> Iterator[str]:
        notable = [each for each in self.biases if self.only_answer is None and self._notable(each.effect)]
        for each in notable:
            up, size = each.effect.value > 0, _of(each.effect, True)
            if each.kind == LENGTH:
                words = f"{'loves' if each.sure else 'may love'} {'long' if up else 'short'} texts"
                yield f"{self.model} {words}: {size} grades for twice the length"
            elif each.kind == RANK:
                words = f"{'is' if each.sure else 'may be'} lenient with what runs rank {'low' if up else 'high'}"
                yield f"{self.model} {words}: {size} grades for twice the rank"
        runs = sorted((each for each in notable if each.kind == RUN), key=lambda each: -abs(each.effect.value))
        for up, sure, unsure in ((True, "favours", "may favour"), (False, "is hard on", "may be hard on")):
            some = [each for each in runs if (each.effect.value > 0) == up]
            if some:
                more = f", and {len(some) - 1} more" if len(some) > 1 else ""
                words = f"{sure if some[0].sure else unsure} what {some[0].name} returns"
                yield f"{self.model} {words}: {_of(some[0].effect, True)} grades beside what other runs return{more}"

    def _notable(self, effect: ValueInterval) -> bool:
        return effect.apart and abs(effect.value) >= LEAST_EFFECT * self.step

    def _favoured(self) -> Iterator[str]:
        for run in self.own:
            gains = [each for each in self.advantages if each.run == run and each.gain.above()]
            if gains:
                also = f" (and by {name_list([each.measure for each in gains[1:]])})" if len(gains) > 1 else ""
                sentence = f"{self._built(run)} and gains {_of(gains[0].gain, True)} {gains[0].measure}{also}"
                yield f"{sentence} on the others by the judge's labels beyond people's"

    def _built(self, run: str) -> str:
        return f"{run} is{' by its name' if run in self.by_name else ''} built on the judge's own model"

    def _boards(self) -> Iterator[str]:
        for board in self.boards:
            if board.reversed:
                first = board.reversed[0]
                such = f"{first.people} is better by people, {first.model} by {self.model}"
                yield f"{len(board.reversed)} of {board.pairs} verdicts by {board.measure} are reversed, as {such}"

    def _circularity(self) -> Iterator[str]:
        for each in self.circular:
            if each.beaten_by:
                places = f"{_place(each.model_place)} by its own labels and {_place(each.people_place)} by people's"
                beaten = f"{places} of {each.runs} by {each.measure}, where {name_list(each.beaten_by[:3])} beat it"
                yield f"the judge's own ranking comes {beaten}: it cannot judge systems that rank as it does"

    def content(self, how: Layout) -> Iterator[Part]:
        yield Lines(self.findings())
        left = "".join(f"; {count:,} {why} left out" for why, count in self.left_out.items() if count)
        twice = f", {self.twice:,} of them labelled by two people or more" if self.twice else ""
        about = f"{counted(self.documents, 'document')} of {counted(self.topics, 'topic')} that people and {self.model} labelled"
        yield f"{about}{twice}{left}; intervals of {self.level:.0%} over topics"
        if self.candidates:
            rows = [[each.model, f"{each.documents:,}", *_cells(each.agreement, how)] for each in self.candidates]
            yield Table(["judge, on the half that chose", "documents", MAIN, "low", "high"], rows)
        yield from self._tables_of_agreement(how)
        yield from self._tables_of_errors(how)
        yield from self._tables_of_bias(how)
        yield from self._tables_of_boards(how)

    def _tables_of_agreement(self, how: Layout) -> Iterator[Part]:
        coefficients = self.agreed if how.every else [self._main]
        if self.twice:
            head = ["agreement", "model", "low", "high", "people", "low", "high", "difference", "low", "high"]
            rows = [
                [one.coefficient, *_cells(one.model, how), *_cells(one.people, how), *_cells(one.difference, how, True)]
                for one in coefficients
            ]
            yield Table(head, rows, spare=(5, 6), title="agreement where two people labelled")
        if not self.twice or how.every:
            rows = [[each.coefficient, *_cells(each.every, how)] for each in coefficients]
            yield Table(["agreement on all documents", "model", "low", "high"], rows)
        if not (how.every or self._constant()):
            return
        rows = []
        for one in self.constants:
            values = map(how.number, (one.model.value, one.constant.value))
            rows.append([one.figure, f"{one.answer:g}", *values, *_cells(one.difference, how, True)])
        yield Table(["best constant answer", "answer", "model", "constant", "difference", "low", "high"], rows)

    def _tables_of_errors(self, how: Layout) -> Iterator[Part]:
        grades = list(next(iter(self.shares.values()), {}))
        head = ["by people", "documents", "error", "low", "high", *["a person's"] * bool(self.twice)]
        rows = []
        for each in self.errors:
            name = _grade_name(each.grade)
            person = [how.number(each.person, True)] if self.twice else []
            shares = [f"{self.shares[name][grade]:.0%}" for grade in grades]
            rows.append([name, f"{each.documents:,}", *_cells(each.error, how, True), *person, *shares])
        yield "error: the model's grade minus people's; ≥: the share of documents that the model grades this high or higher"
        yield Table([*head, *(f"≥ {grade}" for grade in grades)], rows)
        if how.every:
            rows, signs = [], {"false positives": "≥", "false negatives": "<"}
            for wrong in self.mistaken:
                what = [wrong.kind, f"{signs[wrong.kind]} {wrong.grade:g}", f"{wrong.documents:,}"]
                rows.append([*what, *_cells(wrong.share, how), how.number(wrong.person)])
            yield Table(["mistakes", "model", "documents", "share", "low", "high", "a person's"], rows, names=2)

    def _tables_of_bias(self, how: Layout) -> Iterator[Part]:
        runs = [each for each in self.biases if each.kind == RUN and (how.every or self._notable(each.effect))]
        runs = runs if how.every else sorted(runs, key=lambda each: -abs(each.effect.value))[:SHOWN]
        biases = [each for each in self.biases if each.kind != RUN and (how.every or self._notable(each.effect))] + runs
        names = {LENGTH: "twice the length", RANK: "twice the best rank"}
        if biases:
            rows = [
                [names.get(one.kind, f"in the top of {one.name}"), f"{one.documents:,}", *_cells(one.effect, how, True)]
                for one in biases
            ]
            yield Table(["bias, in grades", "documents", "effect", "low", "high"], rows)
        if self.advantages:
            rows = []
            for run in self.advantages:
                ahead = (how.number(value, True) for value in (run.people, run.model))
                rows.append([run.run, run.measure, *ahead, *_cells(run.gain, how, True)])
            head = ["run on its own model", "measure", "ahead by people", "by model", "gain", "low", "high"]
            yield Table(head, rows, names=2)

    def _tables_of_boards(self, how: Layout) -> Iterator[Part]:
        if self.boards:
            head = ["boards", "tau", "tau-ap", "reversed", "by people alone", "by model alone", "pairs", "top 5"]
            rows = []
            for board in self.boards:
                alone = sum(not each.model for each in board.turned), sum(not each.people for each in board.turned)
                counts = len(board.reversed), *alone, board.pairs
                taus = map(how.number, (board.tau, board.tau_ap))
                rows.append([board.measure, *taus, *map(str, counts), _moved(board)])
            yield Table(head, rows, tail=True)
        if self.circular and how.every:
            head = ["the judge's own ranking", "runs", "place by people", "score", "by its own labels", "score"]
            rows = [[each.measure, str(each.runs), *_two_places(each, how)] for each in self.circular]
            yield Table(head, rows)
        if self.circular:
            first = self.circular[0]
            sentence = f"by its own labels nothing beats the judge's own ranking: {first.measure} {first.model:.2f}, by people's"
            yield f"{sentence} {first.people:.2f} in place {first.people_place} of {first.runs}"
        for board in self.boards if how.every else ():
            rows = [[each.run, *_two_places(each, how)] for each in board.places]
            yield Table([board.measure, "place by people", "score", "by model", "score"], rows)
            if board.turned:
                rows = [[*each[:2], *map(in_words, each[2:])] for each in board.turned]
                yield Table([f"verdicts by {board.measure}", "and", "by people", "by model"], rows, names=2, left=4)

    def plain(self, how: Layout) -> Any:
        boards = [
            as_dicts(board) | {"turned": [each._asdict() | {"reversed": each.reversed} for each in board.turned]}
            for board in self.boards
        ]
        return plain({"findings": self.findings(), **as_dicts(self), "boards": boards}, how.digits)

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        """One row per figure."""
        yield "figure", "of", "value", "low", "high"
        for one in self.agreed:
            yield from ((one.coefficient, of, *getattr(one, of)) for of in ("every", "model", "people", "difference"))
        for figure, answer, *intervals in self.constants:
            names = "model", f"constant {answer:g}", "difference"
            yield from ((figure, of, *interval) for of, interval in zip(names, intervals, strict=True))
        yield from (("mean error", _grade_name(each.grade), *each.error) for each in self.errors)
        yield from ((each.kind, f"{each.grade:g}", *each.share) for each in self.mistaken)
        yield from ((f"bias by {each.kind}", each.name, *each.effect) for each in self.biases)
        yield from ((f"advantage by {each.measure}", each.run, *each.gain) for each in self.advantages)
        for board in self.boards:
            values = {"tau": board.tau, "tau-ap": board.tau_ap, "reversed verdicts": len(board.reversed)}
            yield from ((name, board.measure, value, None, None) for name, value in values.items())
        for own in self.circular:
            yield "own ranking by people", own.measure, own.people, None, None
            yield "own ranking by model", own.measure, own.model, None, None

    def notes(self, shell: bool = False) -> list[str]:
        notes = list(self.remarks)
        if self.topics < FEW:
            notes.append(f"{self.topics} topics are few: intervals were validated from {FEW} on")
        elif self.twice and self.topics_twice < FEW:
            labelled = f"two people labelled documents of {counted(self.topics_twice, 'topic')} only"
            notes.append(f"{labelled}: too few to rely on")
        if any(self._notable(each.effect) and not each.sure for each in self.biases):
            one_label = "with one label of a person for each document"
            notes.append(f"{one_label}, a judge that is sharper than people may seem biased")
        gaining = {each.run for each in self.advantages if each.gain.above()}
        notes += [
            f"{self._built(name)}: {'if so, ' * (name in self.by_name)}its scores by these labels are no evidence"
            for name in self.own
            if name not in gaining
        ]
        return [*notes, *filter(None, [self.doubted.note()])]


def _grade_name(grade: float) -> str:
    return "all" if math.isnan(grade) else f"{grade:g}"


def _cells(interval: ValueInterval, how: Layout, signed: bool = False) -> list[Any]:
    return [how.cell(number, signed) for number in interval]


def _of(interval: ValueInterval, signed: bool = False) -> str:
    value, low, high = (f"{number:{'+' if signed else ''}.2f}" for number in interval)
    return value if math.isnan(interval.low) else f"{value} [{low}, {high}]"


def _two_places(each: RunRanks | OwnRanking, how: Layout) -> list[str]:
    return [str(each.people_place), how.number(each.people), str(each.model_place), how.number(each.model)]


def _place(place: int) -> str:
    return "first" if place == 1 else f"in place {place}"


def _moved(board: BoardPair) -> str:
    if len(board.places) <= FIRST:
        return ""
    if not board.enters:
        return "the same"
    return f"{name_list(board.enters)} in, {name_list(board.leaves)} out"


def _lone(common: CommonLabels) -> str:
    """The first topic without which the documents that two people labelled have a single grade; empty if there is none."""
    has_grade = sums_by_cluster(common.topic, common.counts * common.twice[:, None]) > 0
    without = (has_grade.sum(axis=0) - has_grade > 0).sum(axis=1)
    alone = np.flatnonzero((without == 1) & has_grade.any(axis=1))
    return common.names[int(alone[0])] if len(alone) else ""


def measured(common: CommonLabels, rel: float, level: float) -> dict[str, Any]:
    """The fields of a calibration that need no runs."""
    grades = np.unique(common.predicted)
    scale = np.array(common.scale.names, np.float64)
    high = scale[scale >= rel]
    parts = {"all": common.predicted}
    parts |= {f"{grade:g}": common.predicted[common.people == grade] for grade in np.unique(common.people)}
    shares = {name: {f"{at:g}": float((own >= at).mean()) for at in high} for name, own in parts.items()}
    return {
        "log": common.log,
        "model": common.model,
        "level": level,
        "rel": rel,
        "documents": len(common),
        "topics": len(common.names),
        "twice": int(common.twice.sum()),
        "topics_twice": len(np.unique(common.topic[common.twice])),
        "lone": _lone(common),
        "only_answer": float(grades[0]) if len(grades) == 1 else None,
        "step": float(scale[-1] - scale[0]) / max(len(scale) - 1, 1),
        "agreed": grade_agreement.model_agreement(common, level),
        "constants": grade_agreement.constants(common, level),
        "errors": grade_agreement.errors(common, level),
        "mistaken": grade_agreement.error_rates(common, rel, level),
        "shares": shares,
    }
