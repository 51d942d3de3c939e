"""Columns with names: which of them is the topic, the document, the score, by the words that people use.

The same names serve CSV, JSON rows, Parquet and frames. Where a frame holds two candidates the one that
holds an id wins over the one that may hold text: PyTerrier's frames have `qid` and `query`, `docno` and `docid`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import FormatError
from cranfield.formats.format import BOTH, NEITHER, QRELS_ONLY, RUN_ONLY, Kind, Kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


TOPIC = ("query_id", "qid", "q_id", "queryid", "topic_id", "topicid", "topic", "query")
DOCUMENT = ("docno", "doc_id", "docid", "document_id", "corpus_id", "passage_id", "pid", "doc", "document")
SCORE = ("score", "sim", "similarity")
RANK = ("rank",)
GRADE = ("relevance", "grade", "label", "rel", "gain", "judgment", "judgement", "score")
TAG = ("tag", "run_tag", "runtag", "run_id", "runid")
ITERATION = ("iteration", "iter", "subtopic", "subtopic_id", "intent", "group")

HEADERS: dict[Kind, tuple[str, ...]] = {
    "run": ("query_id", "doc_id", "rank", "score", "tag"),
    "qrels": ("query_id", "iteration", "doc_id", "relevance"),
}


class Columns(NamedTuple):
    """The columns of a table that hold what an evaluation needs, by their own names."""

    topic: str
    document: str
    value: str
    label: str | None
    descending: bool  # False where the value is a rank

    @property
    def used(self) -> list[str]:
        """The names: topic, document, value and, where there is one, label."""
        return [name for name in self[:4] if name is not None]


def _plain(name: object) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def _pick(wanted: Sequence[str], plain: dict[str, str]) -> str | None:
    return next((plain[name] for name in wanted if name in plain), None)


def kinds_of(names: Iterable[object]) -> Kinds:
    """What a table with these columns may hold.

    >>> sorted(kinds_of(["qid", "docno", "label"]))
    ['qrels']
    """
    plain = {_plain(name): str(name) for name in names}
    if _pick(TOPIC, plain) is None or _pick(DOCUMENT, plain) is None:
        return NEITHER
    graded = _pick(GRADE[:-1], plain) is not None
    scored = _pick((*SCORE, *RANK), plain) is not None
    if not graded and not scored:
        return NEITHER
    if graded and scored:
        return BOTH
    if graded:
        return QRELS_ONLY
    return BOTH if "score" in plain and not {*RANK, *TAG} & plain.keys() else RUN_ONLY


def find(names: Iterable[object], kind: Kind, where: str) -> Columns:
    """The columns that hold a run or qrels; FormatError says which is missing and what was found.

    >>> find(["qid", "query", "docid", "docno", "rank", "score"], "run", "frame")[:3]
    ('qid', 'docno', 'score')
    """
    given = [str(name) for name in names]
    plain: dict[str, str] = {}
    for name in given:
        if _plain(name) in plain:
            raise FormatError(f"{where}: two columns are called {_plain(name)!r}; keep one of them")
        plain[_plain(name)] = name
    topic = _needed("topic", TOPIC, plain, where)
    document = _needed("document", DOCUMENT, plain, where)
    if kind == "qrels":
        if kinds_of(given) == RUN_ONLY:
            raise FormatError(
                f"{where}: looks like a run ({', '.join(given)}), expected qrels with a column 'relevance'"
            )
        grade = _needed("grade", GRADE, plain, where)
        return Columns(topic, document, grade, _pick(ITERATION, plain), True)
    if kinds_of(given) == QRELS_ONLY:
        raise FormatError(
            f"{where}: looks like qrels ({', '.join(given)}), expected a run with a column 'score' or 'rank'"
        )
    score = _pick(SCORE, plain)
    value = score or _needed("score", (*SCORE, *RANK), plain, where)
    return Columns(topic, document, value, _pick(TAG, plain), score is not None)


def _needed(what: str, wanted: Sequence[str], plain: dict[str, str], where: str) -> str:
    found = _pick(wanted, plain)
    if found is None:
        shown = ", ".join(plain.values()) or "none"
        raise FormatError(f"{where}: no column for the {what} (one of {', '.join(wanted)}); found {shown:.200}")
    return found
