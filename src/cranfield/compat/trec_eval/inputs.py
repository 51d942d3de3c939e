"""The files as trec_eval reads them: what is a line, what is fatal at once, and what only when its topic is reached.

A malformed line stops at once (exit code 2). A document named twice stops when its topic is evaluated
(exit code 4), and only if it stands above the cut of `-M`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.collection import Qrels
from cranfield.compat.trec_eval.options import StopError
from cranfield.errors import CranfieldError, DuplicateError
from cranfield.formats.preferences import Preferences, read_preferences, read_qrels_preferences
from cranfield.formats.streams import open_buffer
from cranfield.kernels import Found, Index, Layout, Order, encode, hits_of_table, processors
from cranfield.run import Run, Text
from cranfield.workspace.logs import judgments_of

if TYPE_CHECKING:
    from cranfield.compat.trec_eval.options import Options
    from cranfield.kernels.table import Buffer


RUN = Layout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5)
QRELS = Layout(
    "topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True, blanks=False
)
UNREADABLE = 255

ZScores = dict[bytes, dict[str, tuple[float, float]]]


@dataclass
class Inputs:
    """Judgments of one kind, what the run found of them, and the topics in which a document stands twice."""

    judged: Qrels | Preferences
    found: Found
    tag: str
    twice: dict[int, str] = field(default_factory=dict)  # topic → the reason why it cannot be evaluated


def read(options: Options, stdin: Any) -> Inputs:
    """Read both files; StopError with exit code 2 where trec_eval stops at once."""
    twice: dict[int, str] = {}
    try:
        judged = _judgments(options, twice)
        run = _run(options, stdin)
        ties: Any = "ascending" if isinstance(judged, Preferences) else "descending"
        order = Order(ties=ties, single=options.version == 9)
        try:
            found = run.hits(judged.index, order, processors())
        except DuplicateError as error:
            reason = f"{error.where}:{error.line}: {error.problem}"
            found = _without_repeats(run, judged.index, order, options, reason, twice)
        if run.tag is None:
            raise StopError(2, f"{options.files[1]}: no results in it")
    except CranfieldError as error:
        raise StopError(2, str(error)) from error
    return Inputs(judged, found, run.tag, twice)


def _content(path: str) -> Buffer:
    buffer = open_buffer(os.path.join(".", path) if path.startswith("-") else path)
    if not len(buffer):
        raise StopError(2, f"{path}: the file is empty")
    return buffer


def _run(options: Options, stdin: Any) -> Run:
    path = options.files[1]
    layout = RUN._replace(comments=options.version >= 10)
    if options.version >= 10 and path.startswith("-"):
        source = sys.stdin if stdin is None else stdin
        content = getattr(source, "buffer", source).read()
        buffer = encode(content) if isinstance(content, str) else content
        if not buffer:
            raise StopError(2, "<stdin>: nothing came in")
        return Run(Text(buffer, layout, "<stdin>"))
    return Run(Text(_content(path), layout, path))


def _judgments(options: Options, twice: dict[int, str]) -> Qrels | Preferences:
    path, comments = options.files[0], options.version >= 10
    readers = {"prefs": read_preferences, "qrels_prefs": read_qrels_preferences}
    if options.judgments in readers:
        _content(path)
        return readers[options.judgments](os.path.join(".", path) if path.startswith("-") else path, comments)
    opened = judgments_of(path) if options.judgments == "qrels" else path
    if not isinstance(opened, str):
        return opened
    text = Text(_content(path), QRELS._replace(comments=comments), path)
    if options.judgments == "qrels_jg":
        return Qrels(text)
    try:
        qrels = Qrels(text)
    except DuplicateError as error:
        return _judged_once(text, str(error), twice)
    again = np.flatnonzero(qrels.index.first != np.arange(len(qrels)))
    for topic in sorted(set(qrels.topic[again].tolist())):
        twice[topic] = f"{path}: a document is judged twice for topic {qrels.topics[topic]!r}"
    return qrels


def _judged_once(text: Text, reason: str, twice: dict[int, str]) -> Qrels:
    """Qrels less the repeated judgments, whose topics are noted: they matter only when such a topic is reached."""
    table = text.table()
    table = table.take(np.argsort(table.topic, kind="stable"))
    first = Index(table.topics, table.topic, table.documents).first
    once = first == np.arange(len(first))
    twice.update(dict.fromkeys(table.topic[~once].tolist(), reason))
    return Qrels(table.take(np.flatnonzero(once)), text.where)


def _without_repeats(
    run: Run, index: Index, order: Order, options: Options, reason: str, twice: dict[int, str]
) -> Found:
    """What a run with repeated documents finds, cut first; topics that still repeat one are noted and left empty."""
    from cranfield.kernels.twin import rank

    table = run.table
    number = {name: i for i, name in enumerate(index.topics)}
    documents = list(table.documents)
    deepest = None if options.deepest is None else max(options.deepest, 1)  # one row shows that the topic is there
    by_topic = np.argsort(table.topic, kind="stable")
    bounds = np.searchsorted(table.topic[by_topic], np.arange(len(table.topics) + 1))
    kept: list[Any] = []
    broken = []
    for t, name in enumerate(table.topics):
        rows = by_topic[bounds[t] : bounds[t + 1]]
        if name not in number:
            kept.append(rows[:1])
            continue
        names = [documents[i] for i in rows.tolist()]
        best = rank(names, table.value[rows], order)[0][:deepest]
        if len({names[i] for i in best}) == len(best):
            kept.append(rows[best])
        else:
            broken.append(number[name])
            kept.append(rows[:1])
    found: Found = hits_of_table(index, table.take(np.sort(np.concatenate(kept))), order)
    twice.update({topic: twice.get(topic, reason) for topic in broken})
    return found


def read_zscores(path: str) -> ZScores:
    """The mean and standard deviation of each measure for each topic: lines of `topic measure mean sd`."""
    try:
        lines = bytes(_content(path)).removesuffix(b"\n").split(b"\n")
    except (CranfieldError, StopError) as error:
        raise StopError(UNREADABLE, str(error)) from error
    answer: ZScores = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        try:
            topic, measure, mean, spread = fields
            answer.setdefault(topic, {}).setdefault(measure.decode("utf-8"), (float(mean), float(spread)))
        except ValueError:
            shown = line.decode("utf-8", "replace")[:60]
            raise StopError(
                UNREADABLE, f"{path}:{number}: expected 4 columns (topic measure mean sd), found {shown!r}"
            ) from None
    return answer
