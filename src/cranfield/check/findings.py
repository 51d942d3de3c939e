"""What `check` reports: findings, and the table of all kinds of problems.

The severity, the meaning and the advice of a problem stand here and nowhere else; docs/check.md shows
the same table. An *error* is what an evaluation refuses or gets plainly wrong, a *warning* what changes
numbers or hints at a mistake, a *note* what is worth knowing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Code:
    """A kind of problem: how grave it is, what it is, and why it matters and what to do."""

    severity: Severity
    what: str
    advice: str


CODES: dict[str, Code] = {
    # the file
    "unreadable": Code("error", "the file cannot be opened, unpacked or read", "Its rows were not checked."),
    "truncated": Code(
        "error",
        "a compressed file that ends too early",
        "Its last lines are lost; copy or download it again. What could be unpacked was checked.",
    ),
    "empty": Code("error", "no line holds anything", "There is nothing to evaluate; was the file written to its end?"),
    "unknown-kind": Code(
        "error",
        "neither a run nor qrels",
        "A run has six columns (topic Q0 document rank score tag), qrels four (topic iteration document grade); "
        "say which it is with kind.",
    ),
    "wrong-kind": Code(
        "error",
        "a run where qrels are expected, or qrels where a run is expected",
        "The two are told apart by their number of columns; were they given in the wrong order?",
    ),
    "utf-16": Code(
        "error", "text in UTF-16 or UTF-32", "Every id would hold stray zero bytes; convert the file to UTF-8."
    ),
    "byte-order-mark": Code(
        "warning",
        "a UTF-8 byte order mark at the start",
        "It is passed over here; other readers take it for part of the first topic's id. Save the file without it.",
    ),
    "not-utf-8": Code(
        "warning",
        "bytes that are not UTF-8",
        "They are kept as they are, but match only ids in the same encoding; convert the file to UTF-8.",
    ),
    "control-characters": Code(
        "warning",
        "control characters",
        "They are invisible and part of the ids, which then match nothing; remove them.",
    ),
    "lone-cr": Code(
        "error",
        "carriage returns that end no line",
        "Lines end in a line feed here, so several lines are read as one; convert the line ends.",
    ),
    "crlf": Code(
        "note",
        "Windows line ends (CR LF)",
        "They are read here; old scripts make the carriage return part of the last column.",
    ),
    "mixed-line-ends": Code(
        "warning",
        "some lines end in CR LF, others in LF",
        "Files of two origins were put together; look whether the rest of them fits too.",
    ),
    "no-final-newline": Code(
        "note",
        "no line feed after the last line",
        "It is read here; was the file cut off? Concatenating files would join two lines.",
    ),
    "blank-lines": Code("note", "blank lines", "They are passed over here; trec_eval stops at one in qrels."),
    "comments": Code("note", "lines that start with #", "They are passed over here; trec_eval 9 stops at them."),
    # the lines
    "columns": Code(
        "error",
        "too few or too many columns",
        "Such a line stops an evaluation; correct it, or read leniently to skip it.",
    ),
    "bad-rows": Code(
        "error",
        "rows of a table or of JSON that cannot be read",
        "A column is missing or holds no number. Such a row stops an evaluation; correct it, or read leniently to skip it.",
    ),
    "header": Code("error", "a first line that names the columns", "It cannot be read as data; delete it."),
    "score-not-a-number": Code(
        "error",
        "a score that is no number",
        "Text, nan and hexadecimal numbers are none. Such a line stops an evaluation; correct it, or read leniently to "
        "skip it.",
    ),
    "grade-not-a-number": Code(
        "error",
        "a grade that is no finite number",
        "Such a line stops an evaluation; correct it, or read leniently to skip it.",
    ),
    "duplicate-documents": Code(
        "error",
        "a document that a run returns twice for one topic",
        "It would be counted twice, so an evaluation stops here; keep the better one, or choose a rule for duplicates.",
    ),
    "judged-twice": Code(
        "error",
        "a document judged twice for a topic, with the same grade",
        "Qrels hold one judgment a document, so an evaluation stops here; delete one of the lines.",
    ),
    "judged-in-conflict": Code(
        "error",
        "a document judged twice for a topic, with different grades",
        "One of the two must be wrong and nobody can tell which; decide, or merge with a rule.",
    ),
    # ids
    "odd-characters": Code(
        "note",
        "ids with characters other than letters, digits and . _ - : / #",
        "Nothing is wrong with them here; other tools may cut or quote them.",
    ),
    "invisible-characters": Code(
        "warning",
        "ids with characters that look like white space or like nothing",
        "They separate no columns and are part of the id, which then matches nothing; remove them.",
    ),
    "ids-differ-in-case": Code(
        "warning", "ids that differ only in upper and lower case", "They are different ids here; were they meant to be?"
    ),
    "ids-differ-in-unicode": Code(
        "warning",
        "ids that differ only in how Unicode spells them",
        "They look the same and are different ids; normalise them (NFC).",
    ),
    "ids-differ-in-zeros": Code(
        "warning", "ids that differ only in leading zeros", "They are different ids here; were they meant to be?"
    ),
    # runs
    "ranks-not-whole": Code(
        "warning", "ranks that are no whole numbers", "The score decides the order; are the columns in the right order?"
    ),
    "ranks-not-ascending": Code(
        "warning",
        "ranks that go down from one line to the next",
        "The score decides the order here; readers that trust the order of lines see another ranking.",
    ),
    "ranks-not-consecutive": Code(
        "warning", "ranks with gaps", "The score decides the order; were documents removed after ranking?"
    ),
    "ranks-tied": Code(
        "warning", "several documents at one rank", "The score decides the order; the ranks leave it open."
    ),
    "ranks-start": Code(
        "warning",
        "ranks that start at neither 0 nor 1, or at 0 for some topics and at 1 for others",
        "The score decides the order; is the top of the ranking missing?",
    ),
    "ranks-contradict-scores": Code(
        "warning",
        "the order by rank is not the order by score",
        "The score decides here, as in trec_eval; if the ranks are right, write scores that descend with them.",
    ),
    "scores-not-descending": Code(
        "warning",
        "scores that rise from one line to the next",
        "The order is made anew from the scores; readers that trust the order of lines see another ranking.",
    ),
    "scores-reversed": Code(
        "warning",
        "scores that rise down the ranking in every topic",
        "They look like distances: higher scores come first, so the ranking is read upside down; negate them.",
    ),
    "scores-infinite": Code(
        "warning", "infinite scores", "They are read and tie with each other; something overflowed."
    ),
    "scores-scientific": Code(
        "note", "scores in scientific notation", "They are read here; some scripts do not, or sort them as text."
    ),
    "tied-scores": Code(
        "note",
        "documents of equal score",
        "Their order is a convention: by id, descending, in trec_eval and here; by line or by chance elsewhere.",
    ),
    "tie-order": Code(
        "warning",
        "the order of tied documents can move nDCG@10",
        "Break the ties in the system, or report the conventions with the numbers.",
    ),
    "tied-at-32-bits": Code(
        "note",
        "scores that differ as doubles and are equal as 32-bit floats",
        "trec_eval 9 and pytrec_eval compare 32 bits, so they order these documents by id.",
    ),
    "topics-scattered": Code(
        "note",
        "topics whose lines do not stand together",
        "They are gathered here; readers that stream the file see several short rankings.",
    ),
    "mixed-tags": Code("warning", "more than one tag", "A run has one tag; were several runs put into one file?"),
    "q0-column": Code(
        "note", "a second column other than Q0", "It decides nothing; are the columns in the right order?"
    ),
    "shallow-run": Code(
        "note",
        "a run that ends early",
        "Measures that look deeper (AP, R@1000) cannot see what was cut off; compare runs at a depth that all reach.",
    ),
    "shallow-topics": Code(
        "note",
        "topics with fewer documents than the run's deepest",
        "Often all that matched; if not, the run was cut.",
    ),
    # qrels
    "grades-negative": Code(
        "note",
        "negative grades",
        "They count as not judged here and in trec_eval; some tools take them for negative gains.",
    ),
    "grades-fractional": Code(
        "warning", "grades that are no whole numbers", "They are used as they are here; trec_eval cuts them off."
    ),
    "grades-below-one": Code(
        "warning",
        "grades between 0 and 1, as if they were probabilities",
        "A document is relevant from grade 1 on unless you choose another rel; most of these are not.",
    ),
    "grades-constant": Code(
        "note",
        "every grade is the same",
        "Without judged non-relevant documents, bpref and the share of judged documents say little.",
    ),
    "grades-large": Code(
        "warning",
        "grades above 20",
        "They swamp all others, with 2^grade gains beyond measure; is that column the grade?",
    ),
    "grades-reversed": Code(
        "warning",
        "grades that look reversed",
        "None is 0 and the lowest is the rarest, as in Cranfield's own codes, where 1 is best; higher is better here, so "
        "turn the scale round.",
    ),
    "grades-lone": Code(
        "note",
        "a grade that occurs only once",
        "In a file of this size it may be a slip; look at the line.",
    ),
    "topics-without-relevant": Code(
        "warning",
        "topics without a relevant document",
        "Every run scores 0 there, which lowers all means; leave them out, or say that they are in.",
    ),
    "topics-with-one-relevant": Code(
        "note", "topics with a single relevant document", "Their scores jump between few values; AP equals RR there."
    ),
    "iteration-column": Code(
        "note",
        "a second column other than 0",
        "It is read as a subtopic or judgment group where a measure wants one, and passed over otherwise.",
    ),
    # a run seen through qrels
    "no-common-topic": Code(
        "error", "the run and the qrels share no topic", "Every score would be 0; are the topics numbered alike?"
    ),
    "topics-missing": Code(
        "warning",
        "topics that are judged but not answered",
        "They score 0 here; trec_eval 10 stops, trec_eval 9 leaves them out of the mean.",
    ),
    "topics-not-judged": Code(
        "warning",
        "topics that are answered but not judged",
        "They are left out everywhere; are the topics numbered alike?",
    ),
    "documents-not-judged": Code(
        "note",
        "returned documents that nobody judged",
        "They count as not relevant, so a system unlike those that were pooled is underrated.",
    ),
    "no-judged-document": Code(
        "warning", "the run returns no judged document at all", "Every score is 0; do both use the same document ids?"
    ),
}


@dataclass(frozen=True)
class Finding:
    """One kind of problem in one file: how often, where first, and what to do about it."""

    file: str
    line: int | None
    severity: Severity
    code: str
    message: str
    count: int
    examples: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**asdict(self), "examples": list(self.examples)}

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.severity} [{self.code}] {self.message}"


def render(findings: Sequence[Finding]) -> str:
    """Findings as text for people: by file, each with its first lines, and a closing count."""
    lines: list[str] = []
    for finding in findings:
        lines.append(str(finding))
        lines += [f"    {example}" for example in finding.examples]
        if finding.examples and finding.count > len(finding.examples):
            lines.append(f"    … {finding.count - len(finding.examples):,} more")
    counts = _counts(findings)
    summary = ", ".join(f"{n:,} {word if n == 1 else word + 's'}" for word, n in counts.items() if n)
    return "\n".join([*lines, summary or "nothing to report"])


def to_dict(findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings as plain values, for JSON, with how many there are of each severity."""
    counts = {f"{word}s": n for word, n in _counts(findings).items()}
    return {"findings": [finding.to_dict() for finding in findings], **counts}


def _counts(findings: Sequence[Finding]) -> dict[Severity, int]:
    return {word: sum(finding.severity == word for finding in findings) for word in SEVERITIES}
