"""The plan of a study: systems, tasks and questionnaires in a TOML file, and who does what in which order.

Every participant does every task once. There are as many groups of tasks as systems: a participant does one group with each
system, one system after the other. The orders of systems, and of groups, are the rows of a square. The order of the tasks
within a group rotates.

In a Latin square each element comes at each position equally often. In a Williams square each element also comes directly
before each other one equally often; an odd number of elements needs twice as many orders. A pair of orthogonal squares
(Graeco-Latin) has each pair of elements equally often; none exists for 2 or 6 elements.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import refuse_below, shortened
from cranfield.base.results import Layout, Lines, Part, Rows, Table
from cranfield.base.schemas import Between, Expected, OneOf, Text, Texts, TomlFile, value_text
from cranfield.base.text_layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt


MOST = 11  # steps of a scale


@dataclass(frozen=True)
class Questionnaire:
    """Items answered by whole numbers from `low` to `high`; `reversed` are the numbers of items where low is good."""

    name: Text
    items: Texts
    low: int = 1
    high: int = 5
    reversed: tuple[int, ...] = ()
    percent: bool = False  # whether the score is from 0 to 100
    ends: Annotated[tuple[Text, Text], Expected("two ends of the scale in words")] = (
        "strongly disagree",
        "strongly agree",
    )

    @property
    def questions(self) -> list[str]:
        """The names of the items in files of answers."""
        return [f"{self.name}{number}" for number in range(1, len(self.items) + 1)]

    def turned(self, answers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The answers with reversed items recoded, so that high is good; items are the last dimension."""
        values = np.asarray(answers, np.float64)
        if values.shape[-1:] != (len(self.items),):
            raise DataError(f"{self.name}: expected {len(self.items)} answers, found {values.shape[-1]}")
        numbers = values[~np.isnan(values)]
        wrong = numbers[(numbers < self.low) | (numbers > self.high) | (numbers != np.round(numbers))]
        if wrong.size:
            expected = f"whole numbers from {self.low} to {self.high}"
            raise DataError(f"{self.name}: expected answers as {expected}, found {wrong[0]:g}")
        signs = np.isin(np.arange(1, len(self.items) + 1), self.reversed)
        return np.where(signs, self.low + self.high - values, values)

    def score(self, answers: npt.ArrayLike) -> float:
        """The score of all items; NaN if one is missing.

        >>> SUS.score([5, 1] * 5), SUS.score([4, 2] * 5), SUS.score([5] * 10)
        (100.0, 75.0, 50.0)
        """
        mean = float(np.mean(self.turned(answers)))
        return 100 * (mean - self.low) / (self.high - self.low) if self.percent else mean


SUS = Questionnaire(
    "sus",
    (
        "I think that I would like to use this system frequently.",
        "I found the system unnecessarily complex.",
        "I thought the system was easy to use.",
        "I think that I would need the support of a technical person to be able to use this system.",
        "I found the various functions in this system were well integrated.",
        "I thought there was too much inconsistency in this system.",
        "I would imagine that most people would learn to use this system very quickly.",
        "I found the system very cumbersome to use.",
        "I felt very confident using the system.",
        "I needed to learn a lot of things before I could get going with this system.",
    ),
    reversed=(2, 4, 6, 8, 10),
    percent=True,
)
"""The System Usability Scale: Brooke, SUS: a quick and dirty usability scale, 1996."""


def cronbach(answers: Sequence[Sequence[float]] | npt.NDArray[np.float64]) -> float:
    """Cronbach's alpha (internal consistency); rows are people. NaN with fewer than two rows or items, or without variance.

    >>> round(cronbach([[1, 2], [2, 3], [4, 4], [5, 4]]), 4)
    0.8791
    """
    values = np.asarray(answers, np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        return math.nan
    total = float(values.sum(axis=1).var(ddof=1))
    n = values.shape[1]
    return n / (n - 1) * (1 - float(values.var(axis=0, ddof=1).sum()) / total) if total > 0 else math.nan


Square = list[tuple[int, ...]]


def latin(n: int) -> Square:
    """The cyclic Latin square.

    >>> latin(3)
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    return [tuple((row + place) % n for place in range(n)) for row in range(n)]


def williams(n: int) -> Square:
    """A square balanced for first-order carry-over (Williams, 1949); two squares if n is odd.

    >>> williams(4)
    [(0, 3, 1, 2), (1, 0, 2, 3), (2, 1, 3, 0), (3, 2, 0, 1)]
    """
    zigzag = [(place // 2) if place % 2 == 0 else n - 1 - place // 2 for place in range(n)]
    square = [tuple((row + first) % n for first in zigzag) for row in range(n)]
    return square if n % 2 == 0 or n == 1 else [*square, *(tuple(reversed(row)) for row in square)]


def graeco_latin(n: int) -> tuple[Square, Square] | None:
    """Two orthogonal squares for odd n and for 4, 8 and 16; None for other n.

    >>> graeco_latin(3)
    ([(0, 1, 2), (1, 2, 0), (2, 0, 1)], [(0, 2, 1), (1, 0, 2), (2, 1, 0)])
    """
    if n % 2:
        return latin(n), [tuple((row + 2 * place) % n for place in range(n)) for row in range(n)]
    if n not in POLYNOMIALS:
        return None
    one, other = (
        [tuple(row ^ _product(factor, place, n) for place in range(n)) for row in range(n)] for factor in (1, 2)
    )
    return one, other


POLYNOMIALS = {4: 0b111, 8: 0b1011, 16: 0b10011}  # irreducible over GF(2), by the order of their fields


def _product(a: int, b: int, n: int) -> int:
    """The product in the field of n elements."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
        a ^= POLYNOMIALS[n] if a & n else 0
    return product


ORDERS = ("williams", "graeco-latin")
KNOWN = {SUS.name: SUS}
TASK_QUESTIONS = ("success", "seconds")
MOST_PARTICIPANTS = 10_000


class StudyTask(NamedTuple):
    """What participants have to do: an id and its text."""

    id: str
    text: str


@dataclass(frozen=True)
class Study:
    """A study: systems, tasks, number of participants, kind of order, and questionnaires after each system."""

    name: str
    systems: tuple[str, ...]
    tasks: tuple[StudyTask, ...]
    participants: int
    order: str = ORDERS[0]
    questionnaires: tuple[Questionnaire, ...] = ()

    @property
    def letters(self) -> dict[str, str]:
        """The letter of each system, which participants see instead of its name."""
        return dict(zip(self.systems, string.ascii_uppercase, strict=False))

    @property
    def people(self) -> list[str]:
        """The ids of the participants."""
        width = max(2, len(str(self.participants)))
        return [f"P{number:0{width}}" for number in range(1, self.participants + 1)]


@dataclass(frozen=True)
class TaskTable:
    """[[task]] of a study's file."""

    text: Text
    id: Text | None = None


@dataclass(frozen=True)
class StudyTable:
    """The schema of a study's file."""

    systems: Texts
    name: Text = "study"
    participants: Annotated[int, Between(1, MOST_PARTICIPANTS)] | None = None
    order: Annotated[str, OneOf(ORDERS)] = ORDERS[0]
    questionnaires: Texts = ()
    task: tuple[TaskTable, ...] = ()
    questionnaire: tuple[Questionnaire, ...] = ()


File = TomlFile[StudyTable]


def read_study(path: str, participants: int | None = None) -> Study:
    """The study in a TOML file; errors name file and line."""
    file = TomlFile(path, StudyTable)
    table = file.value
    tasks = tuple(StudyTask(each.id or f"t{number}", each.text) for number, each in enumerate(table.task, 1))
    for number, each in enumerate(table.questionnaire):
        _refuse_questionnaire(file, number, each)
    own = {each.name: each for each in table.questionnaire}
    questionnaires = KNOWN | own
    for name in table.questionnaires:
        if name not in questionnaires:
            file.refuse(f"no questionnaire {name!r}; there are {', '.join(questionnaires)}", "questionnaires")
    people = table.participants if participants is None else participants
    if people is None or not 1 <= people <= MOST_PARTICIPANTS:
        expected = f"participants as a whole number from 1 to {MOST_PARTICIPANTS}"
        file.refuse(f"expected {expected}, found {'none' if people is None else people}", "participants")
    names = dict.fromkeys((*table.questionnaires, *own))
    study = Study(table.name, table.systems, tasks, people, table.order, tuple(questionnaires[each] for each in names))
    _refuse(file, study)
    return study


def _refuse(file: File, study: Study) -> None:
    if not 2 <= len(study.systems) <= len(string.ascii_uppercase):
        file.refuse(f"expected 2 to 26 systems, found {len(study.systems)}", "systems")
    if not study.tasks or len(study.tasks) % len(study.systems):
        expected = f"a multiple of {len(study.systems)}, as many with each system"
        file.refuse(f"expected tasks [[task]] in {expected}, found {len(study.tasks)}", "task")
    for kind, key, names in (("system", "systems", study.systems), ("task", "task", [task.id for task in study.tasks])):
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            file.refuse(f"expected each {kind} once, found {twice[0]!r} twice", key)
    letters = study.letters
    if clash := [name for name in study.systems if name in letters.values() and letters[name] != name]:
        problem = f"system {clash[0]!r} has the letter of another system as its name; give it a longer name"
        file.refuse(problem, "systems")
    if study.order == "graeco-latin" and graeco_latin(len(study.systems)) is None:
        problem = f"no Graeco-Latin square of {len(study.systems)} systems is known here; take williams"
        file.refuse(problem, "order")


def _refuse_questionnaire(file: File, number: int, table: Questionnaire) -> None:
    def refuse(problem: str, key: str) -> NoReturn:
        file.refuse(f"questionnaire {shortened(table.name)!r}: {problem}", "questionnaire", number, key)

    if not table.name.isalpha() or table.name in (*TASK_QUESTIONS, *KNOWN):
        refuse(f"expected a name of letters, other than {', '.join((*TASK_QUESTIONS, *KNOWN))}", "name")
    if table.name in [each.name for each in file.value.questionnaire[:number]]:
        refuse("expected each questionnaire once, found two of this name", "name")
    if not 1 <= table.high - table.low < MOST:
        expected = f"expected low and high as whole numbers, 2 to {MOST} steps"
        refuse(f"{expected}, found {table.low} and {table.high}", "high")
    if not all(1 <= each <= len(table.items) for each in table.reversed):
        expected = f"expected reversed as numbers of items, 1 to {len(table.items)}"
        refuse(f"{expected}, found {value_text(list(table.reversed))}", "reversed")


# who does what


class Turn(NamedTuple):
    """One task of one participant."""

    participant: str
    position: int  # from 1
    part: int  # the number of the system in the participant's order, from 1
    system: str
    task: str


@dataclass(frozen=True)
class StudySchedule(Rows[Turn]):
    """Who does which task with which system, in which order."""

    study: Study
    rows: tuple[Turn, ...]
    balanced: int  # number of participants for a balanced design

    def of(self, participant: str) -> list[Turn]:
        """A participant's turns, in order."""
        return [turn for turn in self.rows if turn.participant == participant]

    def uneven(self) -> list[str]:
        """A sentence for each pairing (of system, task and position) that is not balanced."""
        tasks, systems = len(self.study.tasks), len(self.study.systems)
        pairs: dict[str, tuple[int, list[Any]]] = {  # how many pairs there should be, and those of all turns
            "a system in each part": (systems**2, [(turn.system, turn.part) for turn in self.rows]),
            "a task with each system": (tasks * systems, [(turn.task, turn.system) for turn in self.rows]),
            "a task at each position": (tasks**2, [(turn.task, turn.position) for turn in self.rows]),
        }
        sentences = []
        for what, (number, own) in pairs.items():
            counts = Counter(own).values()
            least = min(counts) if len(counts) == number else 0
            if least < max(counts):
                sentences.append(f"{what}: {least} to {max(counts)} times")
        return sentences

    def content(self, how: Layout) -> Iterable[Part]:
        study, uneven = self.study, self.uneven()
        people = counted(study.participants, "participant")
        order = f"{people}, {counted(len(study.tasks), 'task')} each, {len(study.systems)} systems; order {study.order}"
        unbalanced = f"Not balanced; it is with {self.balanced} participants or a multiple"
        yield Lines([f"{order}.", f"{unbalanced if uneven else 'All is balanced'}."])
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
        return {"study": self.study.name, "balanced": self.balanced, "uneven": self.uneven(), "turns": turns}


def schedule(study: Study) -> StudySchedule:
    """The schedule of a study. It takes the rows of the squares in turn, so that any number of people is nearly balanced."""
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
    return StudySchedule(study, tuple(turns), len(pairs) * size)


def _rows(order: str, n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Orders of systems, each with an order of task groups, until the design is balanced."""
    both = graeco_latin(n) if order == "graeco-latin" else None
    if both is not None:
        yield from zip(*both, strict=True)
        return
    systems, groups = williams(n), latin(n)
    together = math.lcm(len(systems), n)  # rows until the same pair comes again; then the groups shift by one
    for number in range(len(systems) * n):
        yield systems[number % len(systems)], groups[(number + number // together) % n]
