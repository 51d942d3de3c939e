"""A drop-in for pytrec_eval: with `from cranfield.compat import pytrec_eval`, existing scripts run unchanged, but faster.

The same names, signatures, results and kinds of errors as pytrec_eval 0.5.11, which is trec_eval 9 inside: scores are
compared as 32-bit floats, ties go by document id descending, only topics in both are evaluated, and
geometric measures are logarithms until `compute_aggregated_measure`. Where pytrec_eval crashes (a cut-off
of 0) or returns what happened to be in memory (runid), this raises ValueError or returns 0.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.conventions import Conventions
from cranfield.base.errors import BadLineError, DataError, DuplicateError, MeasureError
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run
from cranfield.compat.trec_eval.catalogue import MEASURES, NICKNAMES, Request, request
from cranfield.compat.trec_eval.inputs import StopError
from cranfield.compat.trec_eval.values import MeasureInput, values
from cranfield.evaluation.hits import Judgments, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cranfield.base.kernels.table import Floats

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

__version__ = "0.5.11"  # of pytrec_eval; programs check it
VERSION = 9  # of trec_eval
MOST = 1 << 53  # beyond, whole numbers are no longer exact
_KNOWN = {kind.name: kind for kind in MEASURES if kind.since <= VERSION}

supported_measures: set[str] = {
    name for name, kind in _KNOWN.items() if kind.needs in ("nothing", "qrels") and name != "yaap"
}
supported_nicknames: dict[str, set[str]] = {nick: set(names) & set(_KNOWN) for nick, names in NICKNAMES.items()}

_PARAMETERS = re.compile(r"(.+?)[._](\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)")
_SINGLE = ("numbers", "pairs")  # measures whose name in the results stays the same whatever their parameters


class InputError(DataError, TypeError):
    """Judgments or a run that are not {text: {text: number}}; a TypeError, as in pytrec_eval."""


class RepeatedError(DuplicateError, AssertionError):
    """A document twice for one topic; an AssertionError, as in pytrec_eval."""


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a TREC run into `{topic: {document: score}}`.

    >>> dict(parse_run(["q1 Q0 d1 1 9.5 bm25", "q1 Q0 d2 2 7 bm25"]))
    {'q1': {'d1': 9.5, 'd2': 7.0}}
    """
    return _parse(f_run, "topic Q0 document rank score tag", 4, float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read the lines of TREC qrels into `{topic: {document: grade}}`.

    >>> dict(parse_qrel(["q1 0 d1 1", "q2 0 d1 0"]))
    {'q1': {'d1': 1}, 'q2': {'d1': 0}}
    """
    return _parse(f_qrel, "topic iteration document grade", 3, int)


def _parse(lines: Iterable[str], columns: str, value: int, read: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    where = str(getattr(lines, "name", "<lines>"))
    number_of_columns = len(columns.split())
    answer: dict[str, dict[str, Any]] = defaultdict(dict)
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != number_of_columns:
            raise BadLineError(where, number, f"expected {number_of_columns} columns ({columns}), found {len(fields)}")
        documents, document = answer[fields[0]], fields[2]
        if document in documents:
            raise RepeatedError(where, number, f"document {document!r} occurs twice for topic {fields[0]!r}")
        try:
            documents[document] = read(fields[value])
        except ValueError:
            kind = "a whole number" if read is int else "a number"
            problem = f"expected {kind} in column {value + 1} ({columns.split()[value]}), found {fields[value]!r}"
            raise BadLineError(where, number, problem) from None
    return answer


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """One number for all topics: the sum for counts, the geometric mean for `gm_` measures, the mean for the others.

    >>> compute_aggregated_measure("num_ret", [3, 4]), compute_aggregated_measure("map", [0.25, 0.75])
    (7.0, 0.5)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


class RelevanceEvaluator:
    """Judgments and measures, ready to score runs.

    >>> evaluator = RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "ndcg_cut.10"})
    >>> evaluator.evaluate({"q1": {"d1": 0.5, "d2": 0.9}, "q2": {"d1": 1.0}})
    {'q1': {'map': 0.5, 'ndcg_cut_10': 0.6309297535714575}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        self._requests = _requests(measures)
        self._names = [name for one in self._requests for name in _names(one)]
        self._rel = _level(relevance_level)
        judged = {topic: documents for topic, documents in query_relevance.items() if len(documents)}
        _refuse_other_types(judged)
        self._conventions = Conventions(scores="single", unjudged="drop" if judged_docs_only_flag else "irrelevant")
        self._qrels = Qrels(judged)
        self._judgments = Judgments.of(self._qrels)
        self._number = {topic: i for i, topic in enumerate(judged)}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Score a run: `{topic: {measure: value}}` for the topics that it shares with the judgments, in its own order."""
        if not scores:
            return {}
        _refuse_other_shapes(scores)
        try:
            match = Run(scores).hits(self._qrels.index, self._conventions.order)
        except DataError as error:
            raise InputError(str(error)) from None
        view = MeasureInput(join(match, self._judgments, self._conventions), self._rel, VERSION, 0)
        columns = [column for one in self._requests for column in _columns(one, view)]
        shared = [topic for topic in scores if topic in self._number]
        rows = np.array(columns).reshape(len(columns), len(self._number))[:, [self._number[t] for t in shared]]
        names = self._names
        return {topic: dict(zip(names, row, strict=True)) for topic, row in zip(shared, rows.T.tolist(), strict=True)}


def _columns(one: Request, view: MeasureInput) -> list[Floats]:
    if one.kind.name in ("runid", "relstring"):
        return [np.zeros(view.hits.size)]
    return values(one, view)


def _names(one: Request) -> tuple[str, ...]:
    return (one.kind.name,) if one.kind.takes in _SINGLE else one.names


def _requests(measures: Iterable[str]) -> list[Request]:
    """Read names, nicknames and names with parameters (`P_5`, `ndcg_cut.5,10`); parameters of one measure are combined."""
    parameters: dict[str, set[str]] = {}
    for text in measures:
        for name in supported_nicknames.get(text, {text}):
            base, numbers = _split(name)
            parameters.setdefault(base, set()).update(numbers)
    requests = []
    for name in [name for name in _KNOWN if name in parameters]:  # in trec_eval's order
        try:
            requests.append(request(_KNOWN[name], ",".join(sorted(parameters[name])) or None))
        except StopError as error:
            raise MeasureError(error.reason.removeprefix("-m ")) from None
        if name == "utility" and len(requests[-1].numbers) != 4:
            raise MeasureError(f"utility: expected 4 weights, all different, found {len(requests[-1].numbers)}")
    return requests


def _split(text: str) -> tuple[str, list[str]]:
    if text in supported_measures:
        return text, []
    match = _PARAMETERS.match(text)
    if match is None or match[1] not in supported_measures:
        raise MeasureError(f"unsupported measure {text}")
    return match[1], match[2].split(",")


def _level(value: Any) -> int:
    try:
        level = operator.index(value)
    except TypeError:
        raise InputError(f"relevance_level must be a whole number, got {value!r}") from None
    if level < 1:
        raise InputError(f"relevance_level must be 1 or more, got {value!r}")
    return level


def _refuse_other_shapes(data: Any) -> None:
    if not isinstance(data, Mapping):
        raise InputError(f"expected {{topic: {{document: number}}}}, found {type(data).__name__}")
    for topic, documents in data.items():
        if not (isinstance(topic, str) and (type(documents) is dict or isinstance(documents, Mapping))):
            raise InputError(f"expected a topic (text) and {{document: number}}, found {topic!r}: {documents!r:.60}")


def _refuse_other_types(judged: Mapping[str, Mapping[Any, Any]]) -> None:
    _refuse_other_shapes(judged)
    for topic, documents in judged.items():
        for document, grade in documents.items():
            if not isinstance(document, str) or not hasattr(grade, "__index__") or not -MOST < grade < MOST:
                expected = "expected a document (text) and a whole number"
                raise InputError(f"topic {topic!r}: {expected}, found {document!r}: {grade!r}")
