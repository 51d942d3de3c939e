"""The questions of the workbench: each is a class in a file under `workbench/questions/`, found by its name.

The parameters of a question come as text from a query and are read like those of a measure. `files` lists the runs it
reads, `depends` hashes everything else its answer depends on: questions with the same hashes have the same answer, except
for new labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from cranfield.base.errors import ConventionError
from cranfield.base.parameters import Parameter, Text
from cranfield.base.registry import Registered, Registry
from cranfield.base.results import Answer, Layout, Table, html, html_text
from cranfield.inputs.inputs import DEFAULT_MEASURES
from cranfield.inputs.selection import (
    JudgmentSource,
    WorkspaceInputs,
    basis,
    inputs_of,
    judgment_source,
    of_runs,
    qrels_of,
)
from cranfield.workbench.links import link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.formats.run_files import RunFile
    from cranfield.inputs.workspace import Bench
    from cranfield.reports.charts import Chart

QUESTIONS: Registry[type[WorkbenchQuestion]] = Registry(
    "workbench question", "workbench_questions", "cranfield.workbench.questions"
)
Tell: TypeAlias = "Callable[[int, int | None], None]"  # how much is done, and of how much
DIGITS = 4
PAGE = Layout(digits=DIGITS, undefined="–", medium="html")


class Names(Parameter["tuple[str, ...]"]):
    """A parameter that holds one name or a list of names."""

    def __init__(self, meaning: str, default: Sequence[str] = ()) -> None:
        super().__init__(tuple(default), meaning)

    @property
    def range(self) -> str:
        return "names"

    def read(self, value: Any) -> tuple[str, ...]:
        names = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        return tuple(dict.fromkeys(name for name in names if name))


class Words(Names):
    """A parameter that holds words with blanks between them, or a list of such texts: measures."""

    @property
    def range(self) -> str:
        return "words with blanks between them"

    def read(self, value: Any) -> tuple[str, ...]:
        return super().read([word for text in super().read(value) for word in text.split()]) or self.default


class WorkbenchQuestion(Registered, ABC):
    """A question that pages of the workbench ask."""

    registry = QUESTIONS
    name: ClassVar[str]
    activity: ClassVar[str] = "working"  # shown while the answer is computed
    csv: ClassVar[bool] = True  # whether its answer is a table
    of_models: ClassVar[bool] = False  # whether labels of models change its answer, too

    def refuse(self, bench: Bench) -> None:
        """Raise CranfieldError for parameters that do not fit this workspace, before anything is computed."""

    def files(self, bench: Bench) -> list[RunFile]:
        """The runs that the question reads."""
        return []

    @abstractmethod
    def depends(self, bench: Bench) -> dict[str, str]:
        """Hashes of everything the answer depends on, except parameters and new labels."""

    def depends_on_labels(self, bench: Bench) -> bool:
        """Whether new labels may change the answer."""
        return False

    def place(self, bench: Bench) -> int:
        """The place of the log for an answer computed now; 0 if the log does not matter."""
        return bench.settled() if self.depends_on_labels(bench) else 0

    @abstractmethod
    def run(self, bench: Bench, tell: Tell) -> Answer:
        """Compute the answer; `tell` gets the progress."""

    def html(self, bench: Bench, answer: Answer) -> str:
        """The answer as a fragment of HTML, with its charts."""
        from cranfield.reports.result_charts import charts_of

        charts = [(chart, "The table holds the numbers.") for chart in charts_of(answer)]
        return answer_html(answer) + figures_html(charts)

    def json(self, answer: Answer) -> str:
        """The answer as JSON."""
        return answer.to_json()

    def to_csv(self, answer: Answer) -> str | None:
        """The answer as CSV; None if it has no table."""
        return answer.to_csv(spreadsheet=True) if self.csv else None


def answer_html(answer: Answer, every: bool = False) -> str:
    """The tables and sentences of an answer as HTML, without its notes; each table scrolls by itself."""
    content = answer.content(PAGE._replace(every=every))
    return "".join(scrolling_table(part) if isinstance(part, Table) else html([part]) for part in content)


def scrolling_table(table: Table) -> str:
    """A table as HTML that scrolls by itself."""
    from cranfield.reports.html import TALL, table_html

    return table_html(table, sortable=True, tall=len(table.rows) > TALL)


def verdict_html(first: str, *others: str) -> str:
    """The verdict as HTML: a sentence that stands out, and others below it."""
    rest = "".join(f"<p>{html_text(each)}</p>" for each in map(sentence, others))
    return f'<p class="verdict">{html_text(sentence(first))}</p>{rest}'


def sentence(text: str) -> str:
    """A text with a full stop at its end.

    >>> sentence("bm25 leads"), sentence("Nothing is judged.")
    ('bm25 leads.', 'Nothing is judged.')
    """
    return text if text.endswith((".", ":", "?")) else f"{text}."


def section_html(name: str, body: str, look: str = "") -> str:
    """A section with a heading; empty if its body is empty."""
    classes = f' class="{look}"' if look else ""
    return f"<section{classes}><h2>{html_text(name)}</h2>{body}</section>" if body else ""


def details_html(name: str, body: str) -> str:
    """A part of a page that is folded until the reader opens it; empty if its body is empty."""
    return f"<details><summary>{html_text(name)}</summary>{body}</details>" if body else ""


def figures_html(charts: Sequence[tuple[Chart, str]]) -> str:
    """Charts, each with a text for readers who do not see it."""
    from cranfield.reports.html import figure_html

    return "".join(figure_html(chart, f"figure-{number}", text) for number, (chart, text) in enumerate(charts))


class RunsQuestion(WorkbenchQuestion):
    """A question that reads runs: those that are named, or all."""

    runs = Names("the runs; default: all")
    measures = Words("the measures", DEFAULT_MEASURES)
    least: ClassVar[int] = 1  # runs

    def refuse(self, bench: Bench) -> None:
        import cranfield

        cranfield.measures(list(self.measures))
        if len(self.files(bench)) < self.least:
            lacking = "put run files into runs/, or add one" if not bench.runs() else "name more of them"
            raise ConventionError(f"{self.name} needs at least {self.least} run{'s' * (self.least > 1)}: {lacking}")

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(name) for name in self.runs] if self.runs else bench.runs()

    def depends(self, bench: Bench) -> dict[str, str]:
        return of_runs(bench, self.files(bench))


class PairQuestion(RunsQuestion):
    """A question about two runs."""

    one = Text(..., "the first run: the baseline, on the left")  # type: ignore[arg-type]
    other = Text(..., "the second run, on the right")  # type: ignore[arg-type]

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(self.one), bench.run(self.other)]


class ModelQuestion(RunsQuestion):
    """A question about the labels of an LLM judge, compared with those of people."""

    of_models = True
    model = Text("", "the LLM judge; default: the only one")
    policy = Text("latest", "the label that counts where people differ")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        refuse_policy(self.policy)

    def depends_on_labels(self, bench: Bench) -> bool:
        return True


class ScoringQuestion(RunsQuestion):
    """A question that scores runs by judgments: of the log by a policy, of a frozen version, or of the collection."""

    judgments = Text("", "log, log@NAME or collection; default: the log if it has labels, else the collection")
    policy = Text("latest", "the label of the log that counts where people differ")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        refuse_policy(self.policy)
        self.which(bench)

    def which(self, bench: Bench) -> JudgmentSource:
        """The source of the judgments."""
        return judgment_source(bench, self.judgments)

    def depends_on_labels(self, bench: Bench) -> bool:
        return self.which(bench).depends_on_labels

    def depends(self, bench: Bench) -> dict[str, str]:
        return super().depends(bench) | basis(bench, self.which(bench), self.policy)

    def place(self, bench: Bench) -> int:
        version = self.which(bench).version
        if not version:
            return super().place(bench)
        from cranfield.judging.versions import find_version

        return find_version(bench.log, version).place

    def link(self, path: str, **ids: Any) -> str:
        """A link to a page with the same measures and judgments."""
        policy = "" if self.policy == "latest" else self.policy
        choices = {"measures": " ".join(self.measures), "judgments": self.judgments, "policy": policy}
        return link(path, **ids, **choices)

    def inputs(self, bench: Bench, **more: Any) -> WorkspaceInputs:
        """The inputs of the command that answers the question."""
        qrels = qrels_of(bench, self.which(bench), self.policy)
        return inputs_of(bench, self.files(bench), qrels, measures=list(self.measures), **more)


def refuse_policy(policy: str) -> None:
    """Raise ConventionError for an unknown policy."""
    from cranfield.judging.policies import goes_by_labels

    goes_by_labels(policy)
