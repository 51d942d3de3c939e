"""The plan of a study: systems, tasks and questionnaires in a TOML file, and who does what in which order.

Everybody does every task once. Tasks come in as many groups as there are systems, one group with each system, one system
after the other. Orders of systems are rows of a square, and so are those of groups; within a group tasks take turns.
"""

from __future__ import annotations

import string
import tomllib
from collections import Counter
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.answer import Layout, Lines, Part, Rows, Table, plain
from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.formats.streams import reason
from cranfield.online.study.questionnaire import MOST, SUS, Questionnaire
from cranfield.online.study.squares import graeco_latin, latin, williams
from cranfield.parameters import refuse_below, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ORDERS = ("williams", "graeco-latin")
KNOWN = {SUS.name: SUS}
TASK_QUESTIONS = ("success", "seconds")
KEYS = ("name", "systems", "participants", "order", "questionnaires", "task", "questionnaire")


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


def read_study(path: str, participants: int | None = None) -> Study:
    """The study in a TOML file; DataError that names what is wrong."""
    try:
        with open(path, "rb") as file:
            data = tomllib.loads(file.read().decode())
    except OSError as error:
        raise DataError(f"{path}: {reason(error)}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: expected TOML in utf-8 ({error})") from None
    if unknown := [key for key in data if key not in KEYS]:
        raise DataError(f"{path}: expected keys of {', '.join(KEYS)}, found {shortened(unknown[0])!r}")
    systems = _texts(path, data, "systems")
    tasks = tuple(_task(path, number, each) for number, each in enumerate(_tables(path, data, "task"), 1))
    own = {each.name: each for each in (_own(path, table) for table in _tables(path, data, "questionnaire"))}
    asked = {name: name for name in _texts(path, data, "questionnaires", ())} | dict.fromkeys(own)
    for name in asked:
        if name not in KNOWN | own:
            raise DataError(f"{path}: no questionnaire {name!r}; there are {', '.join(KNOWN | own)}")
    number = data.get("participants") if participants is None else participants
    if type(number) is not int or not 1 <= number <= 10_000:
        raise DataError(f"{path}: expected participants as a whole number from 1 to 10000, found {shortened(number)}")
    order = data.get("order", ORDERS[0])
    if order not in ORDERS:
        raise DataError(f"{path}: expected order of {', '.join(ORDERS)}, found {shortened(order)!r}")
    name = data.get("name", "study")
    study = Study(str(name), systems, tasks, number, order, tuple((KNOWN | own)[each] for each in asked))
    _refuse(path, study)
    return study


def _refuse(path: str, study: Study) -> None:
    if not 2 <= len(study.systems) <= len(string.ascii_uppercase):
        raise DataError(f"{path}: expected 2 to 26 systems, found {len(study.systems)}")
    if not study.tasks or len(study.tasks) % len(study.systems):
        wanted = f"a multiple of {len(study.systems)}, as many with each system"
        raise DataError(f"{path}: expected tasks [[task]] in {wanted}, found {len(study.tasks)}")
    for kind, names in (("system", study.systems), ("task", [task.id for task in study.tasks])):
        if twice := [name for name, n in Counter(names).items() if n > 1]:
            raise DataError(f"{path}: expected each {kind} once, found {twice[0]!r} twice")
    letters = study.letters
    if clash := [name for name in study.systems if name in letters.values() and letters[name] != name]:
        raise DataError(f"{path}: system {clash[0]!r} is called as participants call another; give it a longer name")
    if study.order == "graeco-latin" and graeco_latin(len(study.systems)) is None:
        raise DataError(f"{path}: no Graeco-Latin square of {len(study.systems)} systems is known here; take williams")


def _texts(path: str, data: Mapping[str, Any], key: str, otherwise: Sequence[str] | None = None) -> tuple[str, ...]:
    values = data.get(key, otherwise)
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) and each.strip() for each in values):
        raise DataError(f'{path}: expected {key} as a list of texts, as in ["a", "b"], found {shortened(values)}')
    return tuple(values)


def _tables(path: str, data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise DataError(f"{path}: expected tables [[{key}]], found {shortened(tables)}")
    return tables


def _task(path: str, number: int, table: Mapping[str, Any]) -> Task:
    text, name = table.get("text"), table.get("id", f"t{number}")
    if not isinstance(text, str) or not text.strip() or not isinstance(name, str) or not name.strip():
        raise DataError(f"{path}: task {number}: expected a text, and an id if any, found {shortened(dict(table))}")
    return Task(name, text)


def _own(path: str, table: Mapping[str, Any]) -> Questionnaire:
    name = table.get("name")
    where = f"{path}: questionnaire {shortened(name)!r}"
    if not isinstance(name, str) or not name.isalpha() or name in (*TASK_QUESTIONS, *KNOWN):
        raise DataError(f"{where}: expected a name of letters, other than {', '.join((*TASK_QUESTIONS, *KNOWN))}")
    items = _texts(where, table, "items")
    low, high, percent = table.get("low", 1), table.get("high", 5), table.get("percent", False)
    if type(low) is not int or type(high) is not int or not 1 <= high - low < MOST:
        raise DataError(f"{where}: expected low and high as whole numbers, 2 to {MOST} steps, found {low} and {high}")
    turned = table.get("reversed", [])
    if not isinstance(turned, list) or not all(type(each) is int and 1 <= each <= len(items) for each in turned):
        raise DataError(f"{where}: expected reversed as numbers of items, 1 to {len(items)}, found {shortened(turned)}")
    ends = _texts(where, table, "ends", Questionnaire.ends)
    if len(ends) != 2 or not isinstance(percent, bool):
        raise DataError(f"{where}: expected two ends of the scale in words, and percent as true or false")
    return Questionnaire(name, items, low, high, tuple(turned), percent, (ends[0], ends[1]))


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
