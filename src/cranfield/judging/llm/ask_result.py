"""The result of asking a model: its labels, the failures with their reasons, and the cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.results import Answer, Layout, Lines, Part, Table, as_dicts, fitted
from cranfield.judging.llm.drift import WHAT_TO_DO, DriftCheck
from cranfield.judging.llm.question_store import NO_LIMIT, Budget, Spent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.judging.llm.probes import ProbeResults

FIRST = 10  # failures that a text lists
EXCERPT = 200  # characters of what a model said


class AskFailure(NamedTuple):
    """A pair without a label: the reason, and the raw reply."""

    topic: str
    document: str
    other: str
    problem: str
    raw: str


@dataclass(frozen=True, repr=False, kw_only=True)
class AskResult(Answer):
    """The result of one call of `judge ask`."""

    log: str
    series: str
    assessor: str
    prompt: str  # its hash
    pairs: int  # that were to have a label
    known: int = 0  # of them, answered before
    earlier: dict[str, int] = field(default_factory=dict)  # of them, earlier answers that are not labels, by reason
    from_cache: int = 0  # labels made of answers from before
    labelled: int = 0
    sent: int = 0  # questions, those asked again too
    problems: dict[str, int] = field(default_factory=dict)
    failures: list[AskFailure] = field(default_factory=list)
    left: int = 0  # not asked
    empty: int = 0  # pairs without a text
    cut: int = 0  # pairs whose text was cut
    replaced: int = 0  # pairs that were to be asked although they had a label, by another text
    lost: int = 0  # earlier questions without a reply
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    spent_tokens: float = 0.0  # of all series of the model in this log
    spent: float = 0.0
    unpriced: float = 0.0  # of it, for questions that had no price when they were asked
    budget: Budget = NO_LIMIT
    returned: list[tuple[str, str, int]] = field(default_factory=list)  # model, fingerprint, answers
    schema: str = "used"  # or refused by the server, or not asked for
    stopped: str = ""
    foreseen: Spent | None = None  # the most that it would take; nothing was asked
    asked_first: int = 0  # earlier questions that would be asked again first
    drift: DriftCheck | None = None  # whether the model still answered as before
    probes: ProbeResults | None = None  # all of the model's so far, where probes were asked and not labels
    remarks: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every pair has a label."""
        return not (self.problems or self.earlier or self.left or self.empty)

    def content(self, how: Layout) -> Iterator[Part]:
        if self.foreseen is not None:
            money = f", cost {self.foreseen.cost:.6g}" if self.foreseen.cost else ""
            most = f"at most {self.foreseen.tokens:,.0f} tokens{money}"
            yield f"{self.left:,} of {self.pairs:,} {self._unit} would be asked as {self.assessor}: {most}; nothing was sent"
            yield Lines(list(self._sentences()))
            return
        if self.probes is not None:
            yield from self.probes.content(how)
        deed, done = "labelled" if self.probes is None else "answered", self.known + self.labelled
        now = f", {self.labelled:,} of them now" if self.known and self.labelled else ""
        rest = f", {self.pairs - done:,} have none" if self.pairs > done else "" if self.sent else "; nothing was asked"
        yield f"{self.log}: {done:,} of {self.pairs:,} {self._unit} are {deed} by {self.assessor}{now}{rest}"
        yield Lines(list(self._sentences()))
        if self.drift is not None and self.drift.changed:
            yield _changed(self.drift)
        causes = Counter(self.problems) + Counter(self.earlier)
        if causes:
            rows = [[why, str(count), meaning(why)] for why, count in sorted(causes.items())]
            yield Table(["no label", "pairs", "which is"], rows, tail=True)
        if self.failures:
            some = self.failures if how.every else self.failures[:FIRST]
            rows = [[*each[:2], *[each.other] * self._paired, each.problem, each.raw[:EXCERPT]] for each in some]
            head = ["topic", "document", *["other"] * self._paired, "no label", "what came back"]
            yield fitted(Table(head, rows, names=2, tail=True), len(head) - 1, how.limit)

    @property
    def _unit(self) -> str:
        return "pairs" if self.probes is None else "probes"

    @property
    def _paired(self) -> bool:
        return any(each.other for each in self.failures)

    def _sentences(self) -> Iterator[str]:
        if self.stopped:
            yield f"stopped: {self.stopped}; {self.left:,} {self._unit} were not asked"
        if self.drift is not None and self.drift.drifted:
            yield "drift was accepted" if self.drift.accepted else WHAT_TO_DO
        if self.asked_first:
            yield f"this includes {self.asked_first:,} earlier questions, which are asked again first (--drift)"
        yield from self.remarks
        money = f", cost {self.cost:.6g}" if self.cost else ""
        if self.sent:
            tokens = f"{self.tokens_in:,} tokens in, {self.tokens_out:,} out"
            yield f"{self.sent:,} questions sent: {tokens}{money}, {self.seconds:.1f} s of waiting, all clients together"
        limit = self.budget
        if limit.money is not None:
            early = f", {self.unpriced:.6g} of it by questions that were asked without prices" if self.unpriced else ""
            yield f"{self.spent:.6g} of the budget of {limit.money:g} is spent in this log{early}"
        if limit.tokens is not None:
            yield f"{self.spent_tokens:,.0f} of the budget of {limit.tokens:,.0f} tokens are spent in this log"
        if self.lost and (self.sent or self.left):
            yield f"{self.lost:,} earlier questions have no reply: they count as spent, and are asked again"
        if self.sent and self.schema == "refused":
            yield "the server refused a JSON schema, and was asked without"
        if self.cut:
            yield f"{self.cut:,} pairs had a text that was cut (--text-limit)"
        if self.replaced:
            reason = "had a label of this model and prompt by another text, or another --text-limit"
            yield f"{self.replaced:,} pairs {reason}: a new label replaces it"
        if self.empty:
            yield f"{self.empty:,} pairs have no text, and were not asked"
        if len(self.returned) > 1:
            names = "; ".join(f"{model} {mark}".strip() for model, mark, _ in self.returned)
            yield f"answers came from more than one model or fingerprint: {names}"

    def records(self, how: Layout) -> Iterator[Sequence[Any]]:
        """One row per failure; for probes one row per probe."""
        if self.probes is not None:
            yield from self.probes.records(how)
            return
        yield ["topic", "document", "other", "problem", "raw"]
        yield from self.failures

    def plain(self, how: Layout) -> Any:
        return {
            **as_dicts(self),
            "returned": [dict(zip(("model", "fingerprint", "answers"), each, strict=True)) for each in self.returned],
            "drift": None if self.drift is None else self.drift.plain(),
            "probes": None if self.probes is None else self.probes.plain(how),
            "complete": self.complete,
        }


def meaning(problem: str) -> str:
    """Why there is no label, in words."""
    return MEANINGS.get(problem, "the server's status")


def _changed(check: DriftCheck) -> Table:
    """The earlier questions that the model now answers differently."""
    paired = any(each.other for each in check.changed)
    rows = [[*each[:2], *[each.other] * paired, *each.grades_in_words] for each in check.changed]
    return Table(["topic", "document", *["other"] * paired, "before", "now"], rows, names=2)


MEANINGS = {
    "unparsed": "an answer that is not the JSON that was asked for",
    "off the scale": "a grade that the prompt's scale does not have",
    "refusal": "the model refused to answer",
    "cut off": "the answer was cut off at --max-tokens",
    "empty": "an empty answer",
    "silence": "no answer within --timeout",
    "dropped": "the connection was cut or refused",
    "not JSON": "the server's reply is not JSON",
    "no completion": "the server's reply holds no message of the model",
    "unexpected": "a reply that could not be processed",
    "too large": "an answer larger than --max-answer",
    "status 429": "the server asked to wait",
}
