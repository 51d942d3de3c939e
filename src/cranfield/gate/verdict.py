"""What a gate says: a verdict a measure, why it fell and where; also as a comment on a pull request and as JUnit XML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree as Tree

from cranfield.answer import Answer, Cell, Layout, Lines, Part, Table, fitted, markdown_table, markdown_text, plain
from cranfield.columns import in_line, legible
from cranfield.gate.question import QUESTIONS, GateQuestion, State, shown_p
from cranfield.stats.testing import test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.gate.causes import Cause, Turnover
    from cranfield.scores import Scores


EXIT_CODES = {"passed": 0, "failed": 1, "undecided": 3}
ON_A_SCREEN = 5  # topics that fell
SIGNS = {"passed": "✅", "failed": "❌", "undecided": "⚠️"}


@dataclass(frozen=True)
class Lost:
    """A relevant document and its ranks in both runs; None where it is not returned."""

    document: str
    grade: float
    before: int
    after: int | None
    gone: bool = False  # it is not in the corpus any more

    def __str__(self) -> str:
        after = "gone" if self.gone else "not returned" if self.after is None else str(self.after)
        return f"{self.document}: {self.before} → {after}"


@dataclass(frozen=True)
class Fallen:
    """A topic on which the candidate is worse, and the relevant documents that lost ranks."""

    topic: str
    before: float
    after: float
    difference: float  # after − before
    missing: bool = False  # the candidate does not answer the topic
    lost: tuple[Lost, ...] = ()
    query: str = ""  # what the topic asks, where that is known

    @property
    def why(self) -> str:
        """What the candidate did to the topic."""
        return "the candidate does not answer it" if self.missing else ", ".join(map(str, self.lost))

    def __str__(self) -> str:
        asked = f" ({self.query})" if self.query else ""
        return f"{self.topic}{asked}: {self.before:.4f} → {self.after:.4f}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class Verdict:
    """What the gate says by one measure."""

    measure: str
    state: State
    reason: str  # a sentence: why
    n: int  # topics with a value in both runs
    before: float
    after: float
    difference: float  # after − before
    drop: float  # how much worse, above 0 where it is worse; where lower is better a rise is a drop
    max_drop: float  # what may be lost; 0 where the gate asks whether it is worse at all
    at_best: float  # the good end of the one-sided interval of the difference, where a drop is looked for
    at_worst: float  # the bad end, where it is to be shown that there is none
    p: float  # of the one-sided test against what may be lost
    corrected: float  # after correction for the number of measures, where one of them suffices to fail
    half_found: float  # the true drop that would have been found half of the time
    caution: str = ""  # why the test may err more often than alpha says
    fallen: tuple[Fallen, ...] = ()
    more: int = 0  # topics that fell beyond those listed
    risen: int = 0
    causes: tuple[Cause, ...] = ()
    unweighted: float | None = None  # the difference if all topics counted alike, where they are weighed

    @property
    def end(self) -> float:
        """The end of the interval of the difference that belongs to the question."""
        return self.at_worst if math.isnan(self.at_best) else self.at_best

    @property
    def blind(self) -> bool:
        """Whether only drops well beyond what is allowed would have been found."""
        return self.half_found > 2 * self.max_drop

    def sentence(self) -> str:
        """The verdict in one line."""
        return f"{self.measure} {self.state}: {self.reason}"

    def fallen_tables(self, how: Layout) -> list[Table]:
        """The topics that fell most, a row a topic; no table where the measure passed."""
        if self.state == "passed" or not self.fallen:
            return []
        rows: list[list[Cell | str]] = []
        shown = self.fallen if how.told or how.every else self.fallen[:ON_A_SCREEN]
        asked, text = any(each.query for each in shown), how.medium == "text"
        for each in shown:
            numbers = how.cell(each.before), how.cell(each.after), how.cell(each.difference, signed=True)
            query = [each.query] if asked else []
            rows.append([each.topic, *query, *numbers, f"({each.why})" if each.missing else each.why])
        more = self.more + len(self.fallen) - len(shown)
        rest = f"and {more} more" if more else ""
        if rest and not text:
            rows.append([rest, *([""] if asked else []), "", "", "", ""])
        head = ["topic", *(["query"] if asked else []), "before", "after", "difference"]
        head.append("relevant documents that lost ranks")
        title = f"Topics that fell most by {self.measure}"
        table = Table(head, rows, 1 + asked, title=title, tail=True)
        if not text:
            return [table]
        table = table._replace(names=1, left=1 + asked, caption=title, rest=rest)  # a query is cut at its end
        return [fitted(table, 1, how.limit, 16) if asked else table]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an undefined one is None."""
        numbers = ("before", "after", "difference", "at_best", "at_worst", "drop", "max_drop", "p", "corrected")
        return {
            "measure": self.measure,
            "state": self.state,
            "reason": self.reason,
            "topics": self.n,
            **{name: plain(getattr(self, name)) for name in numbers},
            **({} if self.unweighted is None else {"unweighted_difference": plain(self.unweighted)}),
            "drop_found_half_of_the_time": plain(self.half_found),
            "caution": self.caution,
            "topics_fallen": len(self.fallen) + self.more,
            "topics_risen": self.risen,
            "causes": [cause.to_dict() for cause in self.causes],
            "worst_topics": [_without_nothing(plain(each)) for each in self.fallen],
        }


def _without_nothing(fallen: dict[str, Any]) -> dict[str, Any]:
    """A topic that fell, its query left out where nobody knows it."""
    return {name: value for name, value in fallen.items() if name != "query" or value}


@dataclass(frozen=True)
class Gate(Answer):
    """What `gate` returns: a verdict a measure, what became of the documents, and what to say about it.

    >>> from cranfield import gate
    >>> same = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> found = gate(same, same, same, "RR")
    >>> found.passed, found.exit_code
    (True, 0)
    """

    ascii_json: ClassVar[bool] = True

    baseline: str
    candidate: str
    verdicts: tuple[Verdict, ...]
    turnover: Turnover
    question: str
    alpha: float
    test: str
    resamples: int
    seed: int
    scores: Scores
    forgiven: bool = False  # gone documents were taken out before the verdict
    remarks: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """The worst of the verdicts: failed, undecided, passed."""
        states = {verdict.state for verdict in self.verdicts}
        return "failed" if "failed" in states else "undecided" if "undecided" in states else "passed"

    @property
    def passed(self) -> bool:
        """Whether every measure passed."""
        return self.state == "passed"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 cannot be decided."""
        return EXIT_CODES[self.state]

    def verdict(self, measure: str) -> Verdict:
        """The verdict by one measure, by any of its names."""
        name = next(iter(self.scores.select(measures=[measure]).measures))
        return next(each for each in self.verdicts if each.measure == name)

    @property
    def asked(self) -> GateQuestion:
        """The question that decides."""
        return QUESTIONS[self.question]

    def how(self) -> str:
        """How it was decided, in one line."""
        sampled = f", {self.resamples} resamples, seed {self.seed}" if test(self.test).sampled else ""
        return self.asked.how(f"{self.test}{sampled}", self.alpha, len(self.verdicts))

    def notes(self, shell: bool = False) -> list[str]:
        notes = [
            text.replace("with documents", "with --documents") if shell else text for text in self.turnover.sentences()
        ]
        notes += [f"{each.measure}: {each.caution}" for each in self.verdicts if each.caution]
        notes += [_blindness(each) for each in self.verdicts if each.state == "passed" and each.blind]
        return [*notes, *self.remarks, *self.scores.notes(shell)]

    def table(self, how: Layout) -> Table:
        """A row a measure."""
        holm = self.asked.one_suffices and len(self.verdicts) > 1
        rows: list[list[Cell | str]] = []
        for each in self.verdicts:
            end = each.end if math.isfinite(each.end) else None
            cells = [how.cell(each.before), how.cell(each.after)]
            cells += [how.cell(difference, signed=True) for difference in (each.difference, end)]
            cells += [Cell(f"{each.max_drop:g}", each.max_drop), Cell(shown_p(each.p), each.p)]
            cells += [Cell(shown_p(each.corrected), each.corrected)] if holm else []
            if self.scores.weights is not None:
                cells.append(how.cell(each.unweighted, signed=True))
            rows.append([each.measure, *cells, Cell(str(each.n), each.n), each.state])
        title = f"Gate {self.state}: {self.candidate} against {self.baseline}"
        head = [name for name in self._columns() if holm or name != "Holm"]
        spare = [head.index(name) for name in ("verdict", "topics", "p") if name != "p" or holm]
        return Table(head, rows, title=title, spare=spare)

    def _columns(self) -> list[str]:
        found = ["measure", "before", "after", "difference", self.asked.end]
        unweighted = [] if self.scores.weights is None else ["unweighted"]
        return [*found, "max drop", "p", "Holm", *unweighted, "topics", "verdict"]

    def content(self, how: Layout) -> Iterator[Part]:
        lines = [f"gate {self.state.upper()}: {self.candidate} against {self.baseline}"]
        for verdict in self.verdicts:
            lines += [verdict.sentence(), *(f"  {cause}" for cause in verdict.causes)]
        yield Lines(lines if how.medium == "text" else lines[1:])
        yield self.table(how)
        fallen = [table for verdict in self.verdicts for table in verdict.fallen_tables(how)]
        yield from fallen if how.told else fallen[:1]
        if how.told or not self.usual:
            yield self.how()
        if how.medium == "text" and (how.told or not self.scores.usual):
            yield Lines(self.scores.basis(), dim=True)

    @property
    def usual(self) -> bool:
        """Whether it was decided as it is if nothing is said."""
        return (self.question, self.alpha, self.test, self.seed) == ("max-drop", 0.05, "t", 0)

    def plain(self, how: Layout) -> dict[str, Any]:
        facts = (
            "state",
            "passed",
            "exit_code",
            "baseline",
            "candidate",
            "question",
            "alpha",
            "test",
            "resamples",
            "seed",
        )
        return {
            **{name: getattr(self, name) for name in facts},
            "correction": "holm" if self.asked.one_suffices else None,
            "turnover_forgiven": self.forgiven,
            "measures": plain([each.to_dict() for each in self.verdicts], how.digits),
            "turnover": self.turnover.to_dict(),
            **({} if self.scores.weights is None else {"weights": self.scores.weights.plain(self.scores.topics)}),
            "notes": self.notes(),
            "conventions": self.scores.conventions.to_dict(),
        }

    def records(self, how: Layout) -> Iterator[list[Any]]:
        yield self._columns()
        for each in self.verdicts:
            corrected = each.corrected if self.asked.one_suffices else math.nan
            numbers = each.before, each.after, each.difference, each.end, each.max_drop, each.p, corrected
            cells = [value if math.isfinite(value) else None for value in numbers]
            cells += [] if self.scores.weights is None else [each.unweighted]
            yield [each.measure, *cells, each.n, each.state]

    def to_markdown(self, per_topic: bool = False, digits: int = 4, *, every: bool = False) -> str:
        """A comment on a pull request: the verdict as a heading, the topics that fell folded away."""
        how = Layout(per_topic, digits, every=every, medium="markdown")
        self._refuse(how)
        names = (in_line(name).replace("`", "'") for name in (self.candidate, self.baseline))
        blocks = [f"### {SIGNS[self.state]} Search quality gate {self.state}", "`{}` against `{}`".format(*names)]
        blocks.append(markdown_table(self.table(how)))
        reasons = []
        for verdict in self.verdicts:
            reason = f"{verdict.state}: {markdown_text(verdict.reason)}"
            reasons.append(f"- **{markdown_text(verdict.measure)}** {reason}")
            reasons += [f"  - {cause.code}: {markdown_text(cause.text)}" for cause in verdict.causes]
        blocks.append("\n".join(reasons))
        for table in (table for verdict in self.verdicts for table in verdict.fallen_tables(how)):
            folded = (
                f"<details><summary>{markdown_text(table.title)}</summary>\n\n{markdown_table(table)}\n\n</details>"
            )
            blocks.append(folded)
        blocks.append("\n".join(f"> {markdown_text(note)}  " for note in self.notes(shell=True)))
        return "\n\n".join([*filter(None, blocks), f"<sub>{markdown_text(self.how())}</sub>"]) + "\n"

    def to_junit(self) -> str:
        """JUnit XML, which every service of continuous integration reads: a test case a measure.

        A measure that failed is a `failure`, one that cannot be decided an `error`.
        """
        states = [each.state for each in self.verdicts]
        numbers = {"tests": len(states), "failures": states.count("failed"), "errors": states.count("undecided")}
        root, suite = _junit_suite(numbers)
        properties = Tree.SubElement(suite, "properties")
        names = {"baseline": self.baseline, "candidate": self.candidate}
        names["question"] = self.question
        for name, value in {**names, "alpha": f"{self.alpha:g}", "test": self.test, "seed": str(self.seed)}.items():
            Tree.SubElement(properties, "property", {"name": name, "value": legible(value)})
        for verdict in self.verdicts:
            _add_case(suite, verdict, self.candidate)
        Tree.SubElement(suite, "system-out").text = legible("\n".join([self.how(), *self.notes(shell=True)]))
        return _as_xml(root)


def junit_error(candidate: str, problem: str) -> str:
    """JUnit XML of a gate that could not be asked: one test case with an `error` that says why."""
    root, suite = _junit_suite({"tests": 1, "failures": 0, "errors": 1})
    case = Tree.SubElement(suite, "testcase", {"classname": legible(candidate), "name": "gate", "time": "0"})
    error = Tree.SubElement(case, "error", {"message": legible(problem), "type": "error"})
    error.text = legible(problem)
    return _as_xml(root)


def _junit_suite(numbers: dict[str, int]) -> tuple[Tree.Element, Tree.Element]:
    """The root and the only suite of a JUnit file, with how many tests, failures and errors there are."""
    counts = {name: str(number) for name, number in numbers.items()}
    root = Tree.Element("testsuites", counts)
    suite = Tree.SubElement(root, "testsuite", {"name": "cranfield gate", **counts, "skipped": "0", "time": "0"})
    return root, suite


def _as_xml(root: Tree.Element) -> str:
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _blindness(verdict: Verdict) -> str:
    """What the topics are too few to find."""
    where = f"{verdict.measure}: on these {verdict.n} topics"
    if math.isinf(verdict.half_found):
        return f"{where} no drop can be told from chance (cranfield design says how many topics it takes)"
    seen = f"a true drop of {verdict.half_found:.4f} is found half of the time, a smaller one less often"
    allowed = f", and {verdict.max_drop:g} is allowed" if verdict.max_drop else ""
    return f"{where} {seen}{allowed} (cranfield design says how many topics it takes)"


def _add_case(suite: Tree.Element, verdict: Verdict, candidate: str) -> None:
    names = {"classname": legible(candidate), "name": legible(verdict.measure)}
    case = Tree.SubElement(suite, "testcase", {**names, "time": "0"})
    if verdict.state == "passed":
        Tree.SubElement(case, "system-out").text = legible(verdict.sentence())
        return
    kind = "failure" if verdict.state == "failed" else "error"
    problem = Tree.SubElement(case, kind, {"message": legible(verdict.reason), "type": verdict.state})
    problem.text = legible("\n".join([verdict.sentence(), *map(str, verdict.causes), *map(str, verdict.fallen)]))
