"""What the probes of a model show, read from a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Lines, Table, plain
from cranfield.columns import counted
from cranfield.judge.log import Log
from cranfield.judge.models.kept import ANSWERED, rows_of, series_of
from cranfield.judge.models.probing import PROBES, Outcome, Tried, top_of
from cranfield.store.tables import questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.engine import Connection, Row

    from cranfield.answer import Cell, Layout, Part
    from cranfield.judge.models.kept import Series

DIGITS = 2  # of shares of a few dozen answers
NO_ANSWER = "no answer"


@dataclass(frozen=True, repr=False)
class Probes(Answer):
    """What is wrong with a model by its probes, and what came of each kind of them."""

    assessor: str
    tried: list[Tried]

    def findings(self) -> list[str]:
        """What is wrong, a sentence each; nothing where nothing is."""
        again = self.of("again")
        return [said for each in self.tried if (said := each.finding(again))]

    def of(self, name: str) -> Tried:
        """The probes of a kind; none of them where none was asked."""
        return next((each for each in self.tried if each.probe.name == name), Tried(PROBES[name], (), 0.0))

    @property
    def asked(self) -> int:
        """How many probes were asked."""
        return sum(each.asked for each in self.tried)

    @property
    def answered(self) -> int:
        """How many of them were answered by a grade."""
        return sum(each.answered for each in self.tried)

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.asked:
            yield f"no probe of {self.assessor} was asked"
            return
        found = self.findings()
        if found:
            yield Lines([f"{self.assessor} {said}" for said in found])
        else:
            yield f"{counted(self.answered, 'probe')} of {self.assessor} show no fault beyond chance"
        head = ["probe", "asked", "answered", "missed", "share", "95 %", "change", "95 %", "what is asked"]
        yield Table(head, [self._cells(each, how) for each in self.tried], tail=True, spare=(8, 7))
        yield Lines([f"missed: {', '.join(f'{each.probe.name} {each.probe.miss}' for each in self.tried)}"], dim=True)

    def _cells(self, tried: Tried, how: Layout) -> list[Cell | str]:
        short = how if how.digits is None else how._replace(digits=min(how.digits, DIGITS))
        cells: list[Cell | str] = [tried.probe.name, *map(str, (tried.asked, tried.answered, tried.missed))]
        for (value, low, high), signed in ((tried.share, False), (tried.mean_change, True)):
            span = how.undefined if low != low else f"{short.number(low, signed)} to {short.number(high, signed)}"
            cells += [short.cell(value, signed), span]
        return [*cells, tried.probe.title]

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """A row a probe."""
        yield Outcome._fields
        for each in self.tried:
            yield from each.outcomes

    def plain(self, how: Layout) -> Any:
        rows = [
            {
                "probe": each.probe.name,
                "title": each.probe.title,
                "miss": each.probe.miss,
                "asked": each.asked,
                "answered": each.answered,
                "missed": each.missed,
                "share": each.share._asdict(),
                "change": each.mean_change._asdict(),
                "outcomes": [outcome._asdict() for outcome in each.outcomes],
            }
            for each in self.tried
        ]
        return plain({"assessor": self.assessor, "findings": self.findings(), "probes": rows}, how.digits)


def probes_of(source: Log | Connection, assessor: str) -> Probes:
    """All probes of a model with a prompt (MODEL/PROMPT-VERSION) in a log, each held against the answer of before."""
    if isinstance(source, Log):
        with source.reading() as transaction:
            return probes_of(transaction.connection, assessor)
    series = {each.id: each for each in series_of(source, assessor) if each.definition.get("bases")}
    rows = rows_of(source, "series", series, questions.c.purpose.in_(list(PROBES)))
    probes: dict[str, list[Row[Any]]] = {}
    for row in rows:
        probes.setdefault(row.question, []).append(row)
    bases = {
        row.id: row
        for row in rows_of(
            source, "id", {base for each in series.values() for base in each.definition["bases"].values()}
        )
    }
    outcomes = [_outcome(tries, series, bases) for tries in probes.values()]
    top = next((_top(each) for each in series.values()), 0.0)
    tried = [
        Tried(probe, tuple(each for each in outcomes if each.probe == name), top) for name, probe in PROBES.items()
    ]
    return Probes(assessor, [each for each in tried if each.asked])


def _outcome(tries: list[Row[Any]], series: dict[str, Series], bases: dict[str, Row[Any]]) -> Outcome:
    """What came of a probe: its first answer, or that there is none."""
    row = next((each for each in tries if each.state == ANSWERED), tries[-1])
    base = bases[series[row.series].definition["bases"][row.question]]
    problem = "" if row.grade is not None else row.problem or NO_ANSWER
    subject = (row.topic, row.document, row.other)
    return Outcome(row.purpose, *subject, base.grade, row.grade, problem, row.asked, row.series)


def _top(series: Series) -> float:
    prompt = series.definition["prompt"]
    return top_of(prompt["kind"], map(float, prompt["grades"]))
