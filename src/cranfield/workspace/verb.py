"""What the workbench can ask for, found by name: one class in one file under `workspace/verbs/`.

A verb's parameters come as text from a query and are read as those of a measure are. `files` says what it reads,
`depends` what else its answer depends on: a question whose hashes are the same has the same answer, new labels apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from cranfield.answer import Layout, Table, html, html_text
from cranfield.errors import ConventionError
from cranfield.parameters import Parameter, Text
from cranfield.registry import Registered, Registry
from cranfield.workspace.chosen import Chosen, Judged, basis, chosen, judged, of_runs, qrels_of
from cranfield.workspace.inputs import DEFAULT_MEASURES
from cranfield.workspace.links import link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.answer import Answer
    from cranfield.workspace.bench import Bench
    from cranfield.workspace.run_files import RunFile

    Tell = Callable[[int, "int | None"], None]  # how much is done, and of how much

VERBS: Registry[Verb] = Registry("verb", "cranfield.workspace.verbs")
DIGITS = 4
PAGE = Layout(digits=DIGITS, undefined="–", medium="html")


class Names(Parameter["tuple[str, ...]"]):
    """Names, each as it is: one, or a list of them."""

    def __init__(self, meaning: str) -> None:
        super().__init__((), meaning)

    @property
    def range(self) -> str:
        return "names"

    def read(self, given: Any) -> tuple[str, ...]:
        names = (given,) if isinstance(given, str) else tuple(given)
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        return tuple(dict.fromkeys(name for name in names if name))


class Words(Parameter["tuple[str, ...]"]):
    """Words with blanks between them, or a list of such texts: measures."""

    def __init__(self, default: Sequence[str], meaning: str) -> None:
        super().__init__(tuple(default), meaning)

    @property
    def range(self) -> str:
        return "words with blanks between them"

    def read(self, given: Any) -> tuple[str, ...]:
        texts = (given,) if isinstance(given, str) else tuple(given)
        return tuple(dict.fromkeys(word for text in texts for word in text.split())) or tuple(self.default)


class Verb(Registered, ABC):
    """One question that the workbench asks."""

    registry = VERBS
    name: ClassVar[str]
    told: ClassVar[str] = "working"  # what it does, for those who wait
    csv: ClassVar[bool] = True  # whether its answer is a table
    of_models: ClassVar[bool] = False  # whether labels of models change its answer as people's do

    def refuse(self, bench: Bench) -> None:
        """Stop at parameters that make no sense here, before anything is computed."""

    def files(self, bench: Bench) -> list[RunFile]:
        """The runs that it reads."""
        return []

    @abstractmethod
    def depends(self, bench: Bench) -> dict[str, str]:
        """Hashes of all that its answer depends on, but for its parameters and new labels."""

    def moves(self, bench: Bench) -> bool:
        """Whether new labels may change its answer."""
        return False

    def place(self, bench: Bench) -> int:
        """The place of the log that an answer worked out now is of; 0 where the log does not matter."""
        return bench.settled() if self.moves(bench) else 0

    @abstractmethod
    def run(self, bench: Bench, tell: Tell) -> Answer:
        """The answer."""

    def html(self, bench: Bench, answer: Answer) -> str:
        """The answer as a piece of a page, with its charts."""
        from cranfield.report.notebook import specifications

        drawn = [(spec, "The table holds the numbers.") for spec in specifications(answer)]
        return shown(answer) + figures(drawn)

    def json(self, answer: Answer) -> str:
        """The answer for programs."""
        return answer.to_json()

    def to_csv(self, answer: Answer) -> str | None:
        """The answer for spreadsheets; None where it is no table."""
        return answer.to_csv(spreadsheet=True) if self.csv else None


def shown(answer: Answer, every: bool = False) -> str:
    """The answer's tables, each scrolling by itself, and its sentences; notes are said elsewhere."""
    content = answer.content(PAGE._replace(every=every))
    return "".join(shown_table(part) if isinstance(part, Table) else html([part]) for part in content)


def shown_table(table: Table) -> str:
    """A table that scrolls by itself."""
    from cranfield.report.html import TALL, table_html

    return table_html(table, sortable=True, tall=len(table.rows) > TALL)


def verdict_html(first: str, *others: str) -> str:
    """What it comes to, before anything else: a sentence, and others below it."""
    said = "".join(f"<p>{html_text(each)}</p>" for each in map(sentence, others))
    return f'<p class="verdict">{html_text(sentence(first))}</p>{said}'


def sentence(text: str) -> str:
    """With a full stop at its end.

    >>> sentence("bm25 leads"), sentence("Nothing is judged.")
    ('bm25 leads.', 'Nothing is judged.')
    """
    return text if text.endswith((".", ":", "?")) else f"{text}."


def section(name: str, body: str, look: str = "") -> str:
    """A part of a page below a heading; nothing where there is nothing in it."""
    classes = f' class="{look}"' if look else ""
    return f"<section{classes}><h2>{html_text(name)}</h2>{body}</section>" if body else ""


def folded(name: str, body: str) -> str:
    """A part of a page that opens when somebody asks."""
    return f"<details><summary>{html_text(name)}</summary>{body}</details>" if body else ""


def figures(drawn: Sequence[tuple[dict[str, Any], str]]) -> str:
    """Charts with what is said of them to those who do not see them."""
    from cranfield.report.html import figure_html

    return "".join(figure_html(spec, f"figure-{number}", said) for number, (spec, said) in enumerate(drawn))


class OfRuns(Verb):
    """What reads runs, all that there are unless some are named, and judgments."""

    runs = Names("the runs; all unless some are named")
    measures = Words(DEFAULT_MEASURES, "the measures")
    least: ClassVar[int] = 1  # runs

    def refuse(self, bench: Bench) -> None:
        import cranfield

        cranfield.measures(list(self.measures))
        found = self.files(bench)
        if len(found) < self.least:
            lacking = "put run files into runs/, or add one" if not bench.runs() else "name more of them"
            raise ConventionError(f"{self.name} needs {self.least} run{'s' * (self.least > 1)} at the least: {lacking}")

    def files(self, bench: Bench) -> list[RunFile]:
        return [bench.run(name) for name in self.runs] if self.runs else bench.runs()

    def depends(self, bench: Bench) -> dict[str, str]:
        return of_runs(bench, self.files(bench))


class OfModel(OfRuns):
    """What is told of a model's labels beside people's."""

    of_models = True
    model = Text("", "whose labels; the only model's unless told")
    policy = Text("latest", "which label stands where people differ")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        refuse_policy(self.policy)

    def moves(self, bench: Bench) -> bool:
        return True


class Scoring(OfRuns):
    """What scores runs by judgments: those that a word names, by a policy where it is the log."""

    judgments = Text("", "log, log@NAME or collection; the log once a label stands in it, the collection before")
    policy = Text("latest", "which label stands where people differ, for judgments of the log")

    def refuse(self, bench: Bench) -> None:
        super().refuse(bench)
        refuse_policy(self.policy)
        self.which(bench)

    def which(self, bench: Bench) -> Judged:
        """The judgments that are meant."""
        return judged(bench, self.judgments)

    def moves(self, bench: Bench) -> bool:
        return self.which(bench).moves

    def depends(self, bench: Bench) -> dict[str, str]:
        return super().depends(bench) | basis(bench, self.which(bench), self.policy)

    def place(self, bench: Bench) -> int:
        version = self.which(bench).version
        if not version:
            return super().place(bench)
        from cranfield.judge.versions import find_version

        return find_version(bench.log, version).place

    def link(self, path: str, **ids: Any) -> str:
        """A page that asks by the same measures and judgments."""
        policy = "" if self.policy == "latest" else self.policy
        asked = {"measures": " ".join(self.measures), "judgments": self.judgments, "policy": policy}
        return link(path, **ids, **asked)

    def inputs(self, bench: Bench, **more: Any) -> Chosen:
        """What the verb of the workspace reads."""
        qrels = qrels_of(bench, self.which(bench), self.policy)
        return chosen(bench, self.files(bench), qrels, measures=list(self.measures), **more)


def refuse_policy(policy: str) -> None:
    """Stop at a policy that does not exist."""
    from cranfield.judge.policy import policies

    if policy not in policies():
        raise ConventionError(f"policy must be one of {', '.join(policies())}, got {policy!r:.60}")
