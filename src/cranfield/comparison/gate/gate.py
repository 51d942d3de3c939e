"""A gate for continuous integration: may this candidate replace the baseline?

It answers one of three questions by a one-sided test of the mean loss: is the candidate worse by more than allowed (the
default), worse at all, or not shown to be within the allowed loss? For the first two, a drop that may be chance passes,
and the gate reports the drop that it would detect half of the time. If nothing can be decided (one topic), the verdict is
`undecided`. The result also renders as a comment on a pull request and as JUnit XML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree as Tree

import numpy as np

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import decode
from cranfield.base.parameters import real, refuse_below
from cranfield.base.results import (
    Answer,
    Cell,
    Layout,
    Lines,
    Part,
    Table,
    fitted,
    markdown_table,
    markdown_text,
    plain,
)
from cranfield.base.text_layout import in_line, legible, listed
from cranfield.comparison.gate.causes import Suspects, decide_by, turnover, without_gone
from cranfield.comparison.gate.questions import (
    QUESTIONS,
    GateQuestion,
    GateSettings,
    MeasureDecision,
    State,
    p_text,
)
from cranfield.comparison.score_tables import Progress, comparable, mean_of_answered, too_few_topics
from cranfield.comparison.settings import refuse_unweighable
from cranfield.evaluation.evaluate import Evaluator, distinct
from cranfield.evaluation.measures import Measure
from cranfield.evaluation.measures import measure as _measure
from cranfield.evaluation.topics import as_weights
from cranfield.formats import as_runs
from cranfield.formats.run_files import located
from cranfield.stats.tests_by_name import intervals
from cranfield.stats.tests_by_name import test as named_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from cranfield.base.run import Run
    from cranfield.comparison.gate.causes import Cause, Turnover
    from cranfield.evaluation.hits import Hits
    from cranfield.evaluation.options import OptionsWithoutBaseline
    from cranfield.evaluation.scores import Scores
    from cranfield.evaluation.topics import TopicWeights


EXIT_CODES = {"passed": 0, "failed": 1, "undecided": 3}
ON_A_SCREEN = 5  # topics that fell
SIGNS = {"passed": "✅", "failed": "❌", "undecided": "⚠️"}


@dataclass(frozen=True)
class LostDocument:
    """A relevant document and its ranks in both runs; None if not returned."""

    document: str
    grade: float
    before: int
    after: int | None
    gone: bool = False  # whether it left the corpus

    def __str__(self) -> str:
        after = "gone" if self.gone else "not returned" if self.after is None else str(self.after)
        return f"{self.document}: {self.before} → {after}"


@dataclass(frozen=True)
class FallenTopic:
    """A topic on which the candidate is worse, and the relevant documents that lost ranks."""

    topic: str
    before: float
    after: float
    difference: float  # after − before
    missing: bool = False  # the candidate does not answer the topic
    lost: tuple[LostDocument, ...] = ()
    query: str = ""  # the text of the query, if known

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an unknown query is left out."""
        return {name: value for name, value in plain(self).items() if name != "query" or value}

    @property
    def why(self) -> str:
        """Why the topic fell: it is not answered, or the relevant documents that lost ranks."""
        return "the candidate does not answer it" if self.missing else ", ".join(map(str, self.lost))

    def __str__(self) -> str:
        query = f" ({self.query})" if self.query else ""
        return f"{self.topic}{query}: {self.before:.4f} → {self.after:.4f}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class MeasureVerdict:
    """The gate's verdict for one measure."""

    measure: str
    state: State
    reason: str  # a sentence: why
    n: int  # topics with a value in both runs
    before: float
    after: float
    difference: float  # after − before
    drop: float  # the loss, above 0 if the candidate is worse; a rise is a loss if lower is better
    max_drop: float  # the allowed loss; 0 if the question is whether it is worse at all
    at_best: float  # the good end of the one-sided interval of the difference, for questions about a drop
    at_worst: float  # the bad end, for non-inferiority
    p: float  # of the one-sided test against the allowed loss
    corrected: float  # after correction for the number of measures, if one measure suffices to fail
    half_found: float  # the true drop that would be detected half of the time
    caution: str = ""  # why the error rate of the test may exceed alpha
    fallen: tuple[FallenTopic, ...] = ()
    more: int = 0  # further topics that fell
    risen: int = 0
    causes: tuple[Cause, ...] = ()
    unweighted: float | None = None  # the unweighted difference, if there are weights

    @property
    def end(self) -> float:
        """The end of the interval of the difference that belongs to the question."""
        return self.at_worst if math.isnan(self.at_best) else self.at_best

    @property
    def blind(self) -> bool:
        """Whether only drops well beyond the allowed loss would be detected."""
        return self.half_found > 2 * self.max_drop

    def sentence(self) -> str:
        """The verdict in one line."""
        return f"{self.measure} {self.state}: {self.reason}"

    def fallen_tables(self, how: Layout) -> list[Table]:
        """The table of topics that fell most, one row per topic; no table if the measure passed."""
        if self.state == "passed" or not self.fallen:
            return []
        rows: list[list[Cell | str]] = []
        topics = self.fallen if how.states_defaults or how.every else self.fallen[:ON_A_SCREEN]
        with_queries, text = any(each.query for each in topics), how.medium == "text"
        for each in topics:
            numbers = how.cell(each.before), how.cell(each.after), how.cell(each.difference, signed=True)
            query = [each.query] if with_queries else []
            rows.append([each.topic, *query, *numbers, f"({each.why})" if each.missing else each.why])
        more = self.more + len(self.fallen) - len(topics)
        rest = f"and {more} more" if more else ""
        if rest and not text:
            rows.append([rest, *([""] if with_queries else []), "", "", "", ""])
        head = ["topic", *(["query"] if with_queries else []), "before", "after", "difference"]
        head.append("relevant documents that lost ranks")
        title = f"Topics that fell most by {self.measure}"
        table = Table(head, rows, 1 + with_queries, title=title, tail=True)
        if not text:
            return [table]
        table = table._replace(names=1, left=1 + with_queries, caption=title, rest=rest)  # a query is cut at its end
        return [fitted(table, 1, how.limit, 16) if with_queries else table]

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
            "worst_topics": [each.to_dict() for each in self.fallen],
        }


@dataclass(frozen=True)
class Gate(Answer):
    """The result of `gate`: one verdict per measure, the fate of the documents, and remarks.

    >>> from cranfield import gate
    >>> same = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> found = gate(same, same, same, "RR")
    >>> found.passed, found.exit_code
    (True, 0)
    """

    ascii_json: ClassVar[bool] = True

    baseline: str
    candidate: str
    verdicts: tuple[MeasureVerdict, ...]
    turnover: Turnover
    question: str
    alpha: float
    test: str
    resamples: int
    seed: int
    scores: Scores
    forgiven: bool = False  # whether gone documents were removed before the verdict
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

    def verdict(self, measure: str) -> MeasureVerdict:
        """The verdict by one measure, by any of its names."""
        name = next(iter(self.scores.select(measures=[measure]).measures))
        return next(each for each in self.verdicts if each.measure == name)

    @property
    def gate_question(self) -> GateQuestion:
        """The question that decides."""
        return QUESTIONS[self.question]

    def how(self) -> str:
        """How it was decided, in one line."""
        sampled = f", {self.resamples} resamples, seed {self.seed}" if named_test(self.test).sampled else ""
        return self.gate_question.how(f"{self.test}{sampled}", self.alpha, len(self.verdicts))

    def notes(self, shell: bool = False) -> list[str]:
        sentences = self.turnover.sentences()
        notes = [text.replace("with documents", "with --corpus-ids") if shell else text for text in sentences]
        notes += [f"{each.measure}: {each.caution}" for each in self.verdicts if each.caution]
        notes += [_blindness(each) for each in self.verdicts if each.state == "passed" and each.blind]
        few = too_few_topics(self.scores, 2, self.alpha)
        return [*notes, *([few] if few else []), *self.remarks, *self.scores.notes(shell)]

    def table(self, how: Layout) -> Table:
        """One row per measure."""
        holm = self.gate_question.one_suffices and len(self.verdicts) > 1
        rows: list[list[Cell | str]] = []
        for each in self.verdicts:
            end = each.end if math.isfinite(each.end) else None
            cells = [how.cell(each.before), how.cell(each.after)]
            cells += [how.cell(difference, signed=True) for difference in (each.difference, end)]
            cells += [Cell(f"{each.max_drop:g}", each.max_drop), Cell(p_text(each.p), each.p)]
            cells += [Cell(p_text(each.corrected), each.corrected)] if holm else []
            if self.scores.weights is not None:
                cells.append(how.cell(each.unweighted, signed=True))
            rows.append([each.measure, *cells, Cell(str(each.n), each.n), each.state])
        title = f"Gate {self.state}: {self.candidate} against {self.baseline}"
        head = [name for name in self._columns() if holm or name != "Holm"]
        spare = [head.index(name) for name in ("verdict", "topics", "p") if name != "p" or holm]
        return Table(head, rows, title=title, spare=spare)

    def _columns(self) -> list[str]:
        columns = ["measure", "before", "after", "difference", self.gate_question.end]
        unweighted = [] if self.scores.weights is None else ["unweighted"]
        return [*columns, "max drop", "p", "Holm", *unweighted, "topics", "verdict"]

    def content(self, how: Layout) -> Iterator[Part]:
        against = f"{self.candidate} against {self.baseline}"
        lines = [f"gate {self.state.upper()}: {against} ({self.scores.judgments_in_words()})"]
        for verdict in self.verdicts:
            lines += [verdict.sentence(), *(f"  {cause}" for cause in verdict.causes)]
        yield Lines(lines if how.medium == "text" else lines[1:])
        yield self.table(how)
        fallen = [table for verdict in self.verdicts for table in verdict.fallen_tables(how)]
        yield from fallen if how.states_defaults else fallen[:1]
        if how.states_defaults or not self.usual:
            yield self.how()
        if how.medium == "text" and (how.states_defaults or not self.scores.usual):
            yield Lines(self.scores.basis(), dim=True)

    @property
    def usual(self) -> bool:
        """Whether all settings are defaults."""
        return (self.question, self.alpha, self.test, self.seed) == ("max-drop", 0.05, "t", 0)

    def plain(self, how: Layout) -> dict[str, Any]:
        facts = ("state", "passed", "exit_code", "baseline", "candidate", "question")
        return {
            **{name: getattr(self, name) for name in (*facts, "alpha", "test", "resamples", "seed")},
            "correction": "holm" if self.gate_question.one_suffices else None,
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
            corrected = each.corrected if self.gate_question.one_suffices else math.nan
            numbers = each.before, each.after, each.difference, each.end, each.max_drop, each.p, corrected
            cells = [value if math.isfinite(value) else None for value in numbers]
            cells += [] if self.scores.weights is None else [each.unweighted]
            yield [each.measure, *cells, each.n, each.state]

    def to_markdown(self, per_topic: bool = False, digits: int = 4, *, every: bool = False) -> str:
        """A comment on a pull request: the verdict as a heading, the topics that fell folded away."""
        how = Layout(per_topic, digits, every=every, medium="markdown")
        self._refuse(how)
        names = (in_line(name).replace("`", "'") for name in (self.candidate, self.baseline))
        blocks = [
            f"### {SIGNS[self.state]} Search quality gate {self.state}",
            "`{}` against `{}` ({})".format(*names, self.scores.judgments_in_words()),
        ]
        blocks.append(markdown_table(self.table(how)))
        reasons = []
        for verdict in self.verdicts:
            reason = f"{verdict.state}: {markdown_text(verdict.reason)}"
            reasons.append(f"- **{markdown_text(verdict.measure)}** {reason}")
            reasons += [f"  - {cause.code}: {markdown_text(cause.text)}" for cause in verdict.causes]
        blocks.append("\n".join(reasons))
        for table in (table for verdict in self.verdicts for table in verdict.fallen_tables(how)):
            title = markdown_text(table.title)
            blocks.append(f"<details><summary>{title}</summary>\n\n{markdown_table(table)}\n\n</details>")
        blocks.append("\n".join(f"> {markdown_text(note)}  " for note in self.notes(shell=True)))
        return "\n\n".join([*filter(None, blocks), f"<sub>{markdown_text(self.how())}</sub>"]) + "\n"

    def to_junit(self) -> str:
        """JUnit XML, which every CI service reads: one test case per measure.

        A measure that failed is a `failure`, one that cannot be decided an `error`.
        """
        states = [each.state for each in self.verdicts]
        numbers = {"tests": len(states), "failures": states.count("failed"), "errors": states.count("undecided")}
        root, suite = _junit_suite(numbers)
        properties = Tree.SubElement(suite, "properties")
        names = {"baseline": self.baseline, "candidate": self.candidate, "question": self.question}
        for name, value in {**names, "alpha": f"{self.alpha:g}", "test": self.test, "seed": str(self.seed)}.items():
            Tree.SubElement(properties, "property", {"name": name, "value": legible(value)})
        for verdict in self.verdicts:
            _add_case(suite, verdict, self.candidate)
        Tree.SubElement(suite, "system-out").text = legible("\n".join([self.how(), *self.notes(shell=True)]))
        return _as_xml(root)


def junit_error(candidate: str, problem: str) -> str:
    """JUnit XML of a gate that could not run: one test case with an `error` that gives the reason."""
    root, suite = _junit_suite({"tests": 1, "failures": 0, "errors": 1})
    case = Tree.SubElement(suite, "testcase", {"classname": legible(candidate), "name": "gate", "time": "0"})
    error = Tree.SubElement(case, "error", {"message": legible(problem), "type": "error"})
    error.text = legible(problem)
    return _as_xml(root)


def _junit_suite(numbers: dict[str, int]) -> tuple[Tree.Element, Tree.Element]:
    """The root and the only suite of a JUnit file, with the numbers of tests, failures and errors."""
    counts = {name: str(number) for name, number in numbers.items()}
    root = Tree.Element("testsuites", counts)
    suite = Tree.SubElement(root, "testsuite", {"name": "cranfield gate", **counts, "skipped": "0", "time": "0"})
    return root, suite


def _as_xml(root: Tree.Element) -> str:
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _blindness(verdict: MeasureVerdict) -> str:
    """Which drops the topics are too few to detect."""
    where = f"{verdict.measure}: on these {verdict.n} topics"
    if math.isinf(verdict.half_found):
        return f"{where} no drop can be told from chance (cranfield design says how many topics it takes)"
    power = f"a true drop of {verdict.half_found:.4f} is found half of the time, a smaller one less often"
    allowed = f", and {verdict.max_drop:g} is allowed" if verdict.max_drop else ""
    return f"{where} {power}{allowed} (cranfield design says how many topics it takes)"


def _add_case(suite: Tree.Element, verdict: MeasureVerdict, candidate: str) -> None:
    names = {"classname": legible(candidate), "name": legible(verdict.measure)}
    case = Tree.SubElement(suite, "testcase", {**names, "time": "0"})
    if verdict.state == "passed":
        Tree.SubElement(case, "system-out").text = legible(verdict.sentence())
        return
    kind = "failure" if verdict.state == "failed" else "error"
    problem = Tree.SubElement(case, kind, {"message": legible(verdict.reason), "type": verdict.state})
    problem.text = legible("\n".join([verdict.sentence(), *map(str, verdict.causes), *map(str, verdict.fallen)]))


USUAL_DROP = 0.01


def gate(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    measures: str | Measure | Iterable[str | Measure] = "nDCG@10",
    *,
    max_drop: float | str | Iterable[str] | Mapping[str, float] | None = None,
    question: str = "max-drop",
    alpha: float = 0.05,
    test: str = "t",
    documents: Iterable[str] | None = None,
    forgive_turnover: bool = False,
    worst: int = 10,
    k: int = 10,
    resamples: int = 100_000,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Unpack[OptionsWithoutBaseline],
) -> Gate:
    """May the candidate replace the baseline? Fails if a one-sided test shows that it is worse by more than allowed.

    `max_drop` is the allowed loss of the mean: one number, or one per measure (`{"AP": 0.02}`; the others get 0.01).
    `question` "drop" fails if the candidate is worse at all; "non-inferior" fails unless every measure shows that the
    loss is within the allowed one. P-values of drops are corrected for the number of measures (Holm).

    `documents` are the ids in the corpus now: they separate documents that are gone from documents ranked lower. With
    `forgive_turnover`, gone documents are removed from judgments and baseline before the verdict. `worst` is the number
    of fallen topics to name, `k` the depth of judged@k. `options` are those of `evaluate`; with `weights`, weighted
    means decide.

    >>> qrels = {topic: {"a": 1} for topic in "12345678"}
    >>> good, bad = {topic: {"a": 2, "b": 1} for topic in qrels}, {topic: {"a": 1, "b": 2} for topic in qrels}
    >>> gate(qrels, good, bad, "RR").verdicts[0].sentence()
    'RR failed: it fell by 0.5000, more than the 0.01 allowed; all 8 differences are equal, and by signs alone p = 0.0039'
    """
    question_class = GateQuestion.named(question)
    _refuse(alpha, test, forgive_turnover, documents)
    refuse_below(0, worst=worst, seed=seed)
    refuse_below(1, k=k)
    refuse_below(100, resamples=resamples)
    scoring: dict[str, Any] = {**options}
    if scoring.get("weights") is not None:
        scoring["weights"] = as_weights(scoring["weights"], qrels)
        refuse_unweighable([named_test(test)], scoring["weights"].by, scoring["weights"].designed)
    tell = progress or (lambda done, total: None)
    evaluator = Evaluator(qrels, measures, **scoring)
    _refuse_measures(evaluator.measures)
    _refuse_untestable(evaluator.weights)
    drops = allowed_drops(max_drop, evaluator.measures)
    one, other = _two_runs(evaluator, baseline, candidate)
    hits = evaluator.hits(one), evaluator.hits(other)
    _refuse_other_topics(evaluator, one, hits[0])
    _refuse_other_topics(evaluator, other, hits[1])
    tell(1, 3)
    judged = _judged(evaluator, hits, k)
    moved = turnover(*hits, other, judged, k, documents, evaluator.conventions.order.collapse)
    if forgive_turnover and moved.gone:
        evaluator, one = without_gone(evaluator, one, moved, scoring)
        hits = evaluator.hits(one), evaluator.hits(other)
    scores = evaluator.evaluate([one, other])
    tell(2, 3)
    settings = GateSettings(question_class, alpha, test, resamples, seed)
    suspects = Suspects(evaluator, one, other, moved, scoring, scores, settings, tuple(drops.values()))
    decisions = decide_by(scores, suspects.max_drops, settings)
    verdicts = tuple(_verdict(suspects, m, decision, hits, worst) for m, decision in enumerate(decisions))
    removed = len(moved.gone) if forgive_turnover else None
    remarks = _remarks(scores, removed, question_class, max_drop is not None, drops)
    numbers = alpha, test, resamples, seed
    facts = verdicts, moved, question_class.name, *numbers, scores, forgive_turnover, tuple(remarks)
    return Gate(one.name, other.name, *facts)


def _remarks(
    scores: Scores, without_gone: int | None, question: GateQuestion, drops_typed: bool, drops: Mapping[str, float]
) -> list[str]:
    """Remarks on the verdicts. `without_gone` is the number of removed documents, or None if none were to be removed."""
    remarks = [] if float(np.nanmax(np.abs(scores.values[0]), initial=0)) else ["the baseline scores 0 on every topic"]
    if scores.weights is not None:
        remarks.append(scores.weights.in_words(scores.topics))
    if without_gone is not None:
        remarks.append(f"{without_gone} documents that are gone were taken out of the judgments and the baseline")
    if drops_typed and any(drops.values()) and not any(map(question.allowed, drops.values())):
        remarks.append(f"question {question.name} asks for any drop; what max-drop allows is not looked at")
    return remarks


def allowed_drops(
    max_drop: float | str | Iterable[str] | Mapping[str, float] | None, measures: Mapping[str, Measure]
) -> dict[str, float]:
    """The allowed loss of each measure: from a number, `{measure: number}`, or texts such as "0.02" and "AP=0.03".

    >>> from cranfield.evaluation.measures import measures
    >>> allowed_drops(["0.02", "map=0.03"], measures("nDCG@10 AP"))
    {'nDCG@10': 0.02, 'AP': 0.03}
    """
    drops = dict.fromkeys(measures, USUAL_DROP)
    items: list[tuple[str, Any]] = []
    if max_drop is None:
        return drops
    if isinstance(max_drop, (int, float)):
        items = [("", max_drop)]
    elif hasattr(max_drop, "items"):
        items = list(max_drop.items())
    else:
        parts = [text.rpartition("=") for text in ([max_drop] if isinstance(max_drop, str) else max_drop)]
        items = [(name.strip(), number) for name, _, number in parts]
    for name, number in sorted(items, key=lambda item: bool(item[0])):  # the one for all first
        allowed = _drop(name, number)
        for measure_name in [_measure_name(name, measures)] if name else list(drops):
            drops[measure_name] = allowed
    return drops


def _drop(name: str, number: Any) -> float:
    where = f"max-drop of {name}" if name else "max-drop"
    try:
        value = real(number)
    except (TypeError, ValueError):
        raise ConventionError(f"{where}: expected a number, as in 0.01 or AP=0.02, found {number!r}") from None
    if value < 0:
        raise ConventionError(f"{where} must be 0 or more, got {value:g}")
    return value


def _measure_name(name: str, measures: Mapping[str, Measure]) -> str:
    if name in measures:
        return name
    meant = _measure(name)
    for other_name, each in measures.items():
        if each == meant:
            return other_name
    raise ConventionError(f"max-drop of {name}: the gate does not look at it; it looks at {', '.join(measures)}")


# what is refused


def gate_tests() -> list[str]:
    """The tests that a gate can use: paired tests whose one-sided intervals keep their level."""
    return [one.name for one in intervals().values() if one.paired and not one.too_sure]


def _refuse(alpha: float, test: str, forgive: bool, documents: Iterable[str] | None) -> None:
    if not 0 < alpha < 0.5:
        raise ConventionError(f"alpha must lie between 0 and 0.5, got {alpha:g}")
    if test not in gate_tests():
        raise ConventionError(f"test must be one of {', '.join(gate_tests())}, got {test!r}")
    if forgive and documents is None:
        raise ConventionError("turnover is forgiven only where documents lists the corpus's ids; found no list")


def _refuse_measures(measures: Mapping[str, Measure]) -> None:
    for name, each in measures.items():
        if each.aggregate != "mean" or not comparable(each):
            raise ConventionError(f"a gate compares means over topics, and {name} is not one; take another measure")


def _refuse_untestable(weights: TopicWeights | None) -> None:
    """Raise DataError for a sample of topics whose mean has no test."""
    sample = None if weights is None else weights.sample(list(weights.values))
    if weights is not None and sample is not None and sample.no_interval:
        reason = sample.no_interval.replace("pair", "topic")
        start = f"{weights.where}: " if weights.where else ""
        raise DataError(f"{start}the gate cannot test means by {weights.by}: {reason}; leave design weights out")


def _two_runs(evaluator: Evaluator, baseline: Any, candidate: Any) -> tuple[Run, Run]:
    runs = []
    for role, source in (("baseline", baseline), ("candidate", candidate)):
        workspace = evaluator.qrels.workspace
        file = source if workspace is None else located(source, workspace)
        read = as_runs(file, evaluator.run_format, evaluator.lenient, evaluator.fields)
        if len(read) != 1:
            raise DataError(f"expected one run as the {role}, found {len(read)}")
        nameless = not isinstance(source, str) and not hasattr(source, "name") and not hasattr(source, "__fspath__")
        run = evaluator.with_ids(read[0])
        runs.append(run.renamed(role) if nameless and run.name == "run" else run)
    names = distinct([run.name for run in runs])
    return runs[0].renamed(names[0]), runs[1].renamed(names[1])


def _refuse_other_topics(evaluator: Evaluator, run: Run, hits: Hits) -> None:
    """Raise DataError for a run that answers no judged topic: scores of 0 everywhere would be no evidence."""
    if hits.retrieved[evaluator.topic_mask].any():
        return
    if not run.topics:
        raise DataError(f"{run.name} is empty")
    raise DataError(
        f"{run.name} answers none of the {int(evaluator.topic_mask.sum())} judged topics of {evaluator.qrels.name}; it has "
        f"{listed(run.topics, most=3)}, judged are {listed(evaluator.qrels.topics, most=3)}; are the topics numbered alike?"
    )


# the verdict


def _verdict(
    suspects: Suspects, m: int, decision: MeasureDecision, hits: tuple[Hits, Hits], worst: int
) -> MeasureVerdict:
    scores, question = suspects.scores, suspects.settings.question
    max_drop = question.allowed(suspects.max_drops[m])
    name, measure = list(scores.measures.items())[m]
    up = -1.0 if measure.lower_is_better else 1.0
    before, after = scores.values[0, m], scores.values[1, m]
    both = ~(np.isnan(before) | np.isnan(after))
    n = int(both.sum())
    weights = None if scores.weights is None else scores.weights.of(scores.topics)[both]
    means = [float(np.average(values[both], weights=weights)) if n else math.nan for values in (before, after)]
    gain = up * (after - before)[both]
    drop = -float(np.average(gain, weights=weights)) if n else math.nan
    best, worst_end = (up * decision.bound, math.nan) if question.end == "at best" else (math.nan, up * decision.bound)
    topics = np.flatnonzero(both)[np.argsort(gain, kind="stable")]
    topics = topics[up * (after - before)[topics] < 0]
    rel = float(measure.values.get("rel", 1) or 1)
    fallen = tuple(_fallen(scores, m, int(t), hits, rel, suspects.gone) for t in topics[:worst])
    return MeasureVerdict(
        name,
        n=n,
        before=means[0],
        after=means[1],
        difference=means[1] - means[0],
        drop=drop,
        max_drop=max_drop,
        at_best=best,
        at_worst=worst_end,
        **{key: value for key, value in decision._asdict().items() if key != "bound"},
        fallen=fallen,
        more=len(topics) - len(fallen),
        risen=int((gain > 0).sum()),
        causes=suspects.causes(m) if decision.state == "failed" and drop > max_drop else (),
        unweighted=None if weights is None or not n else up * float(gain.mean()),
    )


def _fallen(scores: Scores, m: int, t: int, hits: tuple[Hits, Hits], rel: float, gone: set[str]) -> FallenTopic:
    before, after = (float(scores.values[r, m, t]) for r in (0, 1))
    topic = scores.topics[t]
    qrels = hits[0].judgments.qrels
    place = qrels.topics.index(topic)
    ranks = [_ranks(each, place, rel) for each in hits]
    lost = []
    for row, (rank, grade) in ranks[0].items():
        now = ranks[1].get(row, (None, grade))[0]
        if now is None or now > rank:
            document = decode(qrels.documents[row])
            lost.append(LostDocument(document, grade, rank, now, document in gone))
    lost.sort(key=lambda each: each.before)
    missing = not int(hits[1].retrieved[place])
    return FallenTopic(topic, before, after, after - before, missing, tuple(lost[:3]), scores.queries.get(topic, ""))


def _ranks(hits: Hits, place: int, rel: float) -> dict[int, tuple[int, float]]:
    here = np.flatnonzero((hits.topic == place) & (hits.grade >= rel))
    rows = zip(hits.row[here].tolist(), hits.rank[here].tolist(), hits.grade[here].tolist(), strict=True)
    return {row: (rank, grade) for row, rank, grade in rows}


def _judged(evaluator: Evaluator, hits: tuple[Hits, Hits], k: int) -> tuple[float, float]:
    """Judged@k of both runs, as the mean over the topics that each answers."""
    share = _measure(f"Judged@{k}")
    before, after = (mean_of_answered(evaluator, each, share) for each in hits)
    return before, after
