"""The plan of a study: systems, tasks and questionnaires in a TOML file, and who does what in which order.

Everybody does every task once. Tasks come in as many groups as there are systems, one group with each system, one system
after the other. Orders of systems are rows of a square, and so are those of groups; within a group tasks take turns.
"""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

from cranfield.answer import Layout, Lines, Part, Rows, Table, plain
from cranfield.columns import counted
from cranfield.online.study.questionnaire import MOST, SUS, Questionnaire
from cranfield.online.study.squares import graeco_latin, latin, williams
from cranfield.parameters import refuse_below, shortened
from cranfield.shapes import Between, Expected, OneOf, Text, Texts, TomlFile, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ORDERS = ("williams", "graeco-latin")
KNOWN = {SUS.name: SUS}
TASK_QUESTIONS = ("success", "seconds")
MOST_PARTICIPANTS = 10_000


class Task(NamedTuple):
    """What participants are asked to do."""

    id: str
    text: str


@dataclass(frozen=True)
class Study:
    """Systems and tasks, by how many people, in which kind of order, and what they are asked after each system."""

    name: str
    systems: tuple[str, ...]
    tasks: tuple[Task, ...]
    participants: int
    order: str = ORDERS[0]
    questionnaires: tuple[Questionnaire, ...] = ()

    @property
    def letters(self) -> dict[str, str]:
        """What participants see instead of a system's name."""
        return dict(zip(self.systems, string.ascii_uppercase, strict=False))

    @property
    def people(self) -> list[str]:
        """What participants are called."""
        width = max(2, len(str(self.participants)))
        return [f"P{number:0{width}}" for number in range(1, self.participants + 1)]


@dataclass(frozen=True)
class TaskTable:
    """[[task]] of a study's file."""

    text: Text
    id: Text | None = None


@dataclass(frozen=True)
class QuestionnaireTable:
    """[[questionnaire]] of a study's file."""

    name: Text
    items: Texts
    low: int = Questionnaire.low
    high: int = Questionnaire.high
    reversed: tuple[int, ...] = ()
    percent: bool = False
    ends: Annotated[tuple[Text, Text], Expected("two ends of the scale in words")] = Questionnaire.ends


@dataclass(frozen=True)
class StudyTable:
    """All that the file of a study may say."""

    systems: Texts
    name: Text = "study"
    participants: Annotated[int, Between(1, MOST_PARTICIPANTS)] | None = None
    order: Annotated[str, OneOf(ORDERS)] = ORDERS[0]
    questionnaires: Texts = ()
    task: tuple[TaskTable, ...] = ()
    questionnaire: tuple[QuestionnaireTable, ...] = ()


File = TomlFile[StudyTable]


def read_study(path: str, participants: int | None = None) -> Study:
    """The study in a TOML file; DataError with file and line that names what is wrong."""
    file = TomlFile(path, StudyTable)
    table = file.value
    tasks = tuple(Task(each.id or f"t{number}", each.text) for number, each in enumerate(table.task, 1))
    own = {each.name: _own(file, number, each) for number, each in enumerate(table.questionnaire)}
    known = KNOWN | own
    for name in table.questionnaires:
        if name not in known:
            file.refuse(f"no questionnaire {name!r}; there are {', '.join(known)}", "questionnaires")
    number = table.participants if participants is None else participants
    if number is None or not 1 <= number <= MOST_PARTICIPANTS:
        wanted = f"participants as a whole number from 1 to {MOST_PARTICIPANTS}"
        file.refuse(f"expected {wanted}, found {'none' if number is None else number}", "participants")
    chosen = dict.fromkeys((*table.questionnaires, *own))
    study = Study(table.name, table.systems, tasks, number, table.order, tuple(known[each] for each in chosen))
    _refuse(file, study)
    return study


def _refuse(file: File, study: Study) -> None:
    if not 2 <= len(study.systems) <= len(string.ascii_uppercase):
        file.refuse(f"expected 2 to 26 systems, found {len(study.systems)}", "systems")
    if not study.tasks or len(study.tasks) % len(study.systems):
        wanted = f"a multiple of {len(study.systems)}, as many with each system"
        file.refuse(f"expected tasks [[task]] in {wanted}, found {len(study.tasks)}", "task")
    for kind, names in (("system", study.systems), ("task", [task.id for task in study.tasks])):
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            file.refuse(
                f"expected each {kind} once, found {twice[0]!r} twice", f"{kind}s" if kind == "system" else kind
            )
    letters = study.letters
    if clash := [name for name in study.systems if name in letters.values() and letters[name] != name]:
        told = f"system {clash[0]!r} is called as participants call another; give it a longer name"
        file.refuse(told, "systems")
    if study.order == "graeco-latin" and graeco_latin(len(study.systems)) is None:
        told = f"no Graeco-Latin square of {len(study.systems)} systems is known here; take williams"
        file.refuse(told, "order")


def _own(file: File, number: int, table: QuestionnaireTable) -> Questionnaire:
    def refuse(problem: str, key: str) -> NoReturn:
        file.refuse(f"questionnaire {shortened(table.name)!r}: {problem}", "questionnaire", number, key)

    if not table.name.isalpha() or table.name in (*TASK_QUESTIONS, *KNOWN):
        refuse(f"expected a name of letters, other than {', '.join((*TASK_QUESTIONS, *KNOWN))}", "name")
    if table.name in [each.name for each in file.value.questionnaire[:number]]:
        refuse("expected each questionnaire once, found two of this name", "name")
    if not 1 <= table.high - table.low < MOST:
        told = f"expected low and high as whole numbers, 2 to {MOST} steps"
        refuse(f"{told}, found {table.low} and {table.high}", "high")
    if not all(1 <= each <= len(table.items) for each in table.reversed):
        told = f"expected reversed as numbers of items, 1 to {len(table.items)}"
        refuse(f"{told}, found {shown(list(table.reversed))}", "reversed")
    return Questionnaire(**vars(table))


# who does what


class Turn(NamedTuple):
    """One task of one participant."""

    participant: str
    position: int  # from 1
    part: int  # the how-manieth system, from 1
    system: str
    task: str


@dataclass(frozen=True)
class Schedule(Rows[Turn]):
    """Who does which task with which system, in which order."""

    study: Study
    rows: tuple[Turn, ...]
    balanced: int  # participants that it takes for all to be balanced

    def of(self, participant: str) -> list[Turn]:
        """A participant's turns, in order."""
        return [turn for turn in self.rows if turn.participant == participant]

    def uneven(self) -> list[str]:
        """What does not come equally often, in words."""
        counts: dict[str, Counter[Any]] = {
            "a system in each part": Counter((turn.system, turn.part) for turn in self.rows),
            "a task with each system": Counter((turn.task, turn.system) for turn in self.rows),
            "a task at each position": Counter((turn.task, turn.position) for turn in self.rows),
        }
        tasks, systems = len(self.study.tasks), len(self.study.systems)
        kinds = dict(zip(counts, (systems**2, tasks * systems, tasks**2), strict=True))
        said = []
        for what, count in counts.items():
            least = min(count.values()) if len(count) == kinds[what] else 0
            if least < max(count.values()):
                said.append(f"{what}: {least} to {max(count.values())} times")
        return said

    def content(self, how: Layout) -> Iterable[Part]:
        study, uneven = self.study, self.uneven()
        people = counted(study.participants, "participant")
        order = f"{people}, {counted(len(study.tasks), 'task')} each, {len(study.systems)} systems; order {study.order}"
        verdict = (
            "All is balanced" if not uneven else f"Not balanced; it is with {self.balanced} participants or a multiple"
        )
        yield Lines([f"{order}.", f"{verdict}."])
        head = ["participant", *(f"{n}" for n in range(1, len(study.tasks) + 1))]
        rows = [
            [person, *(f"{turn.task} {study.letters[turn.system]}" for turn in self.of(person))]
            for person in study.people
        ]
        yield Table(head, rows, left=len(head), title="tasks in their order, and the system of each")
        yield Lines([f"{letter} is {system}" for system, letter in study.letters.items()])

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return [list(Turn._fields), *(list(turn) for turn in self.rows)]

    def notes(self, shell: bool = False) -> list[str]:
        uneven = self.uneven()
        return [f"not equally often: {'; '.join(uneven)}"] if uneven else []

    def plain(self, how: Layout) -> dict[str, Any]:
        turns = [turn._asdict() for turn in self.rows]
        facts = {"study": self.study.name, "balanced": self.balanced, "uneven": self.uneven(), "turns": turns}
        answer: dict[str, Any] = plain(facts, how.digits)
        return answer


def schedule(study: Study) -> Schedule:
    """Who does what: rows of squares in turn, so that any number of participants is about balanced."""
    refuse_below(1, participants=study.participants)
    systems, tasks = len(study.systems), len(study.tasks)
    size = tasks // systems
    pairs = list(_rows(study.order, systems))
    turns = []
    for number, person in enumerate(study.people):
        order, groups = pairs[number % len(pairs)]
        turn = number // len(pairs) % size  # within a group, tasks take turns
        position = 0
        for part in range(systems):
            for place in range(size):
                task = study.tasks[groups[part] * size + (place + turn) % size]
                position += 1
                turns.append(Turn(person, position, part + 1, study.systems[order[part]], task.id))
    return Schedule(study, tuple(turns), len(pairs) * size)


def _rows(order: str, n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Orders of systems, each with an order of groups of tasks, until all is balanced."""
    both = graeco_latin(n) if order == "graeco-latin" else None
    if both is not None:
        yield from zip(*both, strict=True)
        return
    systems, groups = williams(n), latin(n)
    together = lcm(len(systems), n)  # rows until the same two meet again; then the groups go one further
    for number in range(len(systems) * n):
        yield systems[number % len(systems)], groups[(number + number // together) % n]
