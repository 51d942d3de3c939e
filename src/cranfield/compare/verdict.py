"""What a gate says: a verdict a measure, why it fell and where, as text, Markdown, JSON and CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cranfield.columns import aligned
from cranfield.compare.one_sided import shown_p

if TYPE_CHECKING:
    from cranfield.compare.one_sided import State
    from cranfield.compare.turnover import Turnover
    from cranfield.scores import Scores


EXIT_CODES = {"passed": 0, "failed": 1, "undecided": 3}
COLUMNS = ["measure", "before", "after", "difference", "at best", "max drop", "p", "topics", "verdict"]


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
    lost: tuple[Lost, ...] = ()
    missing: bool = False  # the candidate does not answer the topic

    def __str__(self) -> str:
        why = "the candidate does not answer it" if self.missing else ", ".join(map(str, self.lost))
        return f"{self.topic}: {self.before:.4f} → {self.after:.4f}" + (f" ({why})" if why else "")


@dataclass(frozen=True)
class Cause:
    """Something that explains a drop: what is left of the difference without it, and whether the gate would pass then."""

    code: Literal["turnover", "unjudged", "missing", "quality"]
    text: str
    difference: float = math.nan
    passes: bool = False
    certain: bool = True


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
    max_drop: float
    at_best: float  # the good end of the one-sided interval of the difference
    p: float  # of the one-sided test that it is no worse
    visible: float  # the smallest drop that would have been told from chance
    fallen: tuple[Fallen, ...] = ()
    more: int = 0  # topics that fell beyond those listed
    risen: int = 0
    causes: tuple[Cause, ...] = ()

    def sentence(self) -> str:
        """The verdict in one line."""
        return f"{self.measure} {self.state}: {self.reason}"

    def fallen_rows(self) -> list[list[str]]:
        """The topics that fell most as text: a header, and a row a topic."""
        rows = [["topic", "before", "after", "difference", "relevant documents that lost ranks"]]
        for each in self.fallen:
            lost = "(the candidate does not answer it)" if each.missing else ", ".join(map(str, each.lost))
            rows.append([each.topic, f"{each.before:.4f}", f"{each.after:.4f}", f"{each.difference:+.4f}", lost])
        if self.more:
            rows.append([f"and {self.more} more", "", "", "", ""])
        return rows


@dataclass(frozen=True)
class Gate:
    """What `gate` returns: a verdict a measure, what became of the documents, and what to say about it.

    >>> from cranfield import gate
    >>> same = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> found = gate(same, same, same, "RR")
    >>> found.passed, found.exit_code
    (True, 0)
    """

    baseline: str
    candidate: str
    verdicts: tuple[Verdict, ...]
    turnover: Turnover
    alpha: float
    test: str
    resamples: int
    seed: int
    scores: Scores = field(repr=False)
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

    def notes(self, shell: bool = False) -> list[str]:
        """What became of the documents and what is not as one expects, a sentence each."""
        said = [
            text.replace("with documents", "with --documents") if shell else text for text in self.turnover.sentences()
        ]
        for verdict in self.verdicts:
            if verdict.state == "passed" and verdict.visible > verdict.max_drop > 0:
                least = "no drop can" if math.isinf(verdict.visible) else f"no drop below {verdict.visible:.4f} can"
                said.append(
                    f"{verdict.measure}: on these {verdict.n} topics {least} be told from chance, and {verdict.max_drop:g} is "
                    "allowed (cranfield design says how many topics it takes)"
                )
        return [*said, *self.remarks, *self.scores.notes(shell)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an undefined one is None."""
        return {
            "state": self.state,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "alpha": self.alpha,
            "test": self.test,
            "resamples": self.resamples,
            "seed": self.seed,
            "turnover_forgiven": self.forgiven,
            "measures": [_plain_verdict(each) for each in self.verdicts],
            "turnover": self.turnover.to_dict(),
            "notes": self.notes(),
            "conventions": self.scores.conventions.to_dict(),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        import json

        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self, delimiter: str = ",") -> str:
        """A header and a row a measure, numbers in full."""
        import csv
        import io

        file = io.StringIO()
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(COLUMNS)
        for each in self.verdicts:
            numbers = each.before, each.after, each.difference, each.at_best, each.max_drop, each.p
            cells = [repr(value) if math.isfinite(value) else "" for value in numbers]
            writer.writerow([each.measure, *cells, each.n, each.state])
        return file.getvalue()

    def to_text(self, limit: int | None = None) -> str:
        """The verdict for people: a table, the reasons, the topics that fell."""
        title = f"gate {self.state.upper()}: {self.candidate} against {self.baseline}"
        lines = [title, "", *aligned(self.rows(), limit=limit), ""]
        for verdict in self.verdicts:
            lines.append(verdict.sentence())
            lines += [f"  {cause.code}: {cause.text}" for cause in verdict.causes]
            if verdict.state != "passed" and verdict.fallen:
                lines += ["", *_fallen_lines(verdict), ""]
        return "\n".join(lines).rstrip()

    def to_markdown(self) -> str:
        """The same for a comment on a pull request."""
        mark = {"passed": "✅", "failed": "❌", "undecided": "⚠️"}
        lines = [
            f"### {mark[self.state]} Search quality gate {self.state}",
            "",
            f"`{_code(self.candidate)}` against `{_code(self.baseline)}`",
            "",
            _row(COLUMNS),
            _row(["---", *["---:"] * (len(COLUMNS) - 2), "---"]),
        ]
        lines += [_row([_cell(text) for text in _cells(verdict)]) for verdict in self.verdicts]
        lines.append("")
        for verdict in self.verdicts:
            lines.append(f"- **{_cell(verdict.measure)}** {verdict.state}: {_cell(verdict.reason)}")
            lines += [f"  - {cause.code}: {_cell(cause.text)}" for cause in verdict.causes]
        for verdict in self.verdicts:
            if verdict.state != "passed" and verdict.fallen:
                head, *rows = verdict.fallen_rows()
                lines += ["", f"<details><summary>Topics that fell most by {_cell(verdict.measure)}</summary>", ""]
                lines += [_row(head), _row(["---", "---:", "---:", "---:", "---"])]
                lines += [_row([_cell(text) for text in row]) for row in rows]
                lines += ["", "</details>"]
        lines += ["", *(f"> {_cell(note)}  " for note in self.notes(shell=True)), ""] if self.notes() else [""]
        lines.append(f"<sub>{_cell(self.how())}</sub>")
        return "\n".join(lines) + "\n"

    def to_junit(self) -> str:
        """The same as JUnit XML: a test case a measure."""
        from cranfield.compare.junit import junit

        return junit(self)

    def how(self) -> str:
        """How it was decided, in one line."""
        from cranfield.stats.testing import test

        sampled = f", {self.resamples} resamples, seed {self.seed}" if test(self.test).sampled else ""
        return (
            f"fails where the mean falls by more than the allowed drop and the one-sided {100 * (1 - self.alpha):g} % "
            f"interval of the difference ({self.test}{sampled}) lies below 0"
        )

    def rows(self) -> list[list[str]]:
        """The verdicts as text: a header, and a row a measure."""
        return [COLUMNS, *map(_cells, self.verdicts)]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from cranfield.compare.notebook import gate_to_html

        return gate_to_html(self)


# how it looks


def _cells(verdict: Verdict) -> list[str]:
    def shown(value: float, form: str = ".4f") -> str:
        return format(value, form) if math.isfinite(value) else "-"

    return [
        verdict.measure,
        shown(verdict.before),
        shown(verdict.after),
        shown(verdict.difference, "+.4f"),
        shown(verdict.at_best, "+.4f"),
        f"{verdict.max_drop:g}",
        shown_p(verdict.p),
        str(verdict.n),
        verdict.state,
    ]


def _fallen_lines(verdict: Verdict) -> list[str]:
    """The same for the screen, the documents to the left of their column."""
    rows = verdict.fallen_rows()
    numbers = aligned([row[:-1] for row in rows])
    return [f"  {line}  {row[-1]}".rstrip() for line, row in zip(numbers, rows, strict=True)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text that Markdown leaves alone, inside a table too."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "\\`")
    return " ".join(safe.replace("*", "\\*").replace("_", "\\_").split()) if text else text


def _code(text: str) -> str:
    return text.replace("`", "'")


def _plain_verdict(verdict: Verdict) -> dict[str, Any]:
    def plain(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "measure": verdict.measure,
        "state": verdict.state,
        "reason": verdict.reason,
        "topics": verdict.n,
        "before": plain(verdict.before),
        "after": plain(verdict.after),
        "difference": plain(verdict.difference),
        "at_best": plain(verdict.at_best),
        "drop": plain(verdict.drop),
        "max_drop": verdict.max_drop,
        "p": plain(verdict.p),
        "smallest_visible_drop": plain(verdict.visible),
        "topics_fallen": len(verdict.fallen) + verdict.more,
        "topics_risen": verdict.risen,
        "causes": [
            {
                "cause": cause.code,
                "text": cause.text,
                "difference_left": plain(cause.difference),
                "passes_without": cause.passes,
                "certain": cause.certain,
            }
            for cause in verdict.causes
        ],
        "worst_topics": [
            {
                "topic": each.topic,
                "before": each.before,
                "after": each.after,
                "difference": each.difference,
                "missing": each.missing,
                "lost": [vars(lost) for lost in each.lost],
            }
            for each in verdict.fallen
        ],
    }
