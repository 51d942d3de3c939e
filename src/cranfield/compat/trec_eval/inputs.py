"""The command line and the input files as trec_eval reads them.

Options are read as getopt reads them: before or after the two files, in short or long form. One option is ours: `--as 9` or
`--as 10` selects the version of trec_eval. Some errors are fatal at once, others only when a topic is reached.
A malformed line stops at once (exit code 2). A document named twice stops when its topic is evaluated
(exit code 4), and only if its rank is within the limit of `-M`.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from getopt import GetoptError, gnu_getopt
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.errors import CranfieldError, DuplicateError
from cranfield.base.kernels import HitRows, Index, LineLayout, Order, encode, hits_of_table, processors
from cranfield.base.parameters import shortened, whole
from cranfield.base.qrels import Qrels
from cranfield.base.run import Run, TextSource
from cranfield.formats.extras import PreferenceLevels, read_preferences, read_qrels_preferences
from cranfield.formats.streams import open_buffer
from cranfield.inputs.logs import file_or_qrels

if TYPE_CHECKING:
    from cranfield.base.kernels.table import Buffer


VERSIONS = (9, 10)
ABORTED = 134  # the exit code of a program that stops itself
LEVEL_AND_TOPIC = re.compile(r"([+-]?\d*)(?:\.(.*))?", re.DOTALL)
FLAGS = {"h": "help", "v": "show_version", "q": "per_topic", "c": "complete", "J": "judged_only", "n": "", "o": ""}
TEXTS = {"R": "judgments", "T": "results", "Z": "zscores"}
WHOLES = {"l": "rel", "N": "documents", "M": "deepest"}
LONG = {
    "help": "h",
    "version": "v",
    "query_eval_wanted": "q",
    "measure": "m",
    "complete_rel_info_wanted": "c",
    "level_for_rel": "l",
    "nosummary": "n",
    "Debug_level": "D",
    "Judged_docs_only": "J",
    "Number_docs_in_coll": "N",
    "Max_retrieved_per_topic": "M",
    "Rel_info_format": "R",
    "Results_format": "T",
    "Output_old_results_format": "O",
    "Zscore": "Z",
    "as": "as",
}
USAGE = """\
usage: cranfield trec_eval [--as 9|10] [-q] [-c] [-m MEASURE[.PARAMETERS]]... QRELS RUN
  -q  print every topic, not only the summary    -c  count judged topics that the run lacks as 0
  -m  print this measure or group of measures    -h  explain all options and the measures chosen with -m"""


class StopError(Exception):
    """Ends the program with an exit code and a reason for the user."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass
class TrecEvalOptions:
    """The options with trec_eval's defaults, and the two files."""

    version: int = 10
    per_topic: bool = False
    summary: bool = True
    complete: bool = False
    judged_only: bool = False
    help: bool = False
    show_version: bool = False
    rel: int = 1
    documents: int = 0
    deepest: int | None = None
    only: str | None = None  # -D level.topic: that topic alone
    measures: list[str] = field(default_factory=list)
    judgments: str = "qrels"  # -R
    results: str = "trec_results"  # -T
    zscores: str | None = None
    files: list[str] = field(default_factory=list)


def parse(argv: list[str]) -> TrecEvalOptions:
    """Read the command line; StopError with exit code 1 if it is invalid."""
    options = TrecEvalOptions()
    short = "".join([*FLAGS, *(f"{letter}:" for letter in (*TEXTS, *WHOLES, "m", "D"))])
    try:
        typed, options.files = gnu_getopt(argv, short, [f"{name}{'' if LONG[name] in FLAGS else '='}" for name in LONG])
    except GetoptError as error:
        raise StopError(1, f"{error.msg}\n{USAGE}") from None
    for name, value in typed:
        _set(options, LONG[name[2:]] if name.startswith("--") else name[1:], value)
    return options


def _set(options: TrecEvalOptions, letter: str, value: str) -> None:
    if letter in TEXTS:
        setattr(options, TEXTS[letter], value)
    elif letter in WHOLES:
        setattr(options, WHOLES[letter], _whole(letter, value))
    elif letter == "n":
        options.summary = False
    elif letter == "m":
        options.measures.append(value)
    elif letter == "D":
        options.only = _one_topic(value, options.only)
    elif letter == "as":
        if value not in map(str, VERSIONS):
            raise StopError(1, f"--as expects 9 or 10, found {value!r}")
        options.version = int(value)
    elif FLAGS.get(letter):
        setattr(options, FLAGS[letter], True)


def _whole(letter: str, value: str) -> int:
    try:
        number = whole(value)
    except ValueError:
        raise StopError(1, f"-{letter} expects a whole number, found {shortened(value)!r}") from None
    if number < 0:
        raise StopError(1, f"-{letter} expects a whole number, 0 or more, found {value}")
    return number


def _one_topic(value: str, before: str | None) -> str | None:
    """The topic of `-D level.topic`; the level only controls debug output of the original."""
    match = LEVEL_AND_TOPIC.fullmatch(value)
    if match is None:
        raise StopError(1, f"-D expects a level or level.topic, found {value!r}")
    return before if match[2] is None else match[2]


RUN = LineLayout("topic Q0 document rank score tag", topic=0, document=2, value=4, label=5)
QRELS = LineLayout(
    "topic iteration document grade", topic=0, document=2, value=3, label=1, most=4, finite=True, blanks=False
)
UNREADABLE = 255

ZScores = dict[bytes, dict[str, tuple[float, float]]]


@dataclass
class TrecEvalInputs:
    """The judgments, their match with the run, and the topics in which a document occurs twice."""

    judged: Qrels | PreferenceLevels
    match: HitRows
    tag: str
    twice: dict[int, str] = field(default_factory=dict)  # topic → the reason why it cannot be evaluated


def read(options: TrecEvalOptions, stdin: Any) -> TrecEvalInputs:
    """Read both files; StopError with exit code 2 where trec_eval stops at once."""
    twice: dict[int, str] = {}
    try:
        judged = _judgments(options, twice)
        run = _run(options, stdin)
        ties: Any = "ascending" if isinstance(judged, PreferenceLevels) else "descending"
        order = Order(ties=ties, single=options.version == 9)
        try:
            match = run.hits(judged.index, order, processors())
        except DuplicateError as error:
            reason = f"{error.where}:{error.line}: {error.problem}"
            match = _without_repeats(run, judged.index, order, options, reason, twice)
        if run.tag is None:
            raise StopError(2, f"{options.files[1]}: no results in it")
    except CranfieldError as error:
        raise StopError(2, str(error)) from error
    return TrecEvalInputs(judged, match, run.tag, twice)


def _content(path: str) -> Buffer:
    buffer = open_buffer(os.path.join(".", path) if path.startswith("-") else path)
    if not len(buffer):
        raise StopError(2, f"{path}: the file is empty")
    return buffer


def _run(options: TrecEvalOptions, stdin: Any) -> Run:
    path = options.files[1]
    layout = RUN._replace(comments=options.version >= 10)
    if options.version >= 10 and path.startswith("-"):
        source = sys.stdin if stdin is None else stdin
        content = getattr(source, "buffer", source).read()
        buffer = encode(content) if isinstance(content, str) else content
        if not buffer:
            raise StopError(2, "<stdin>: nothing came in")
        return Run(TextSource(buffer, layout, "<stdin>"))
    return Run(TextSource(_content(path), layout, path))


def _judgments(options: TrecEvalOptions, twice: dict[int, str]) -> Qrels | PreferenceLevels:
    path, comments = options.files[0], options.version >= 10
    readers = {"prefs": read_preferences, "qrels_prefs": read_qrels_preferences}
    if options.judgments in readers:
        _content(path)
        return readers[options.judgments](os.path.join(".", path) if path.startswith("-") else path, comments)
    opened = file_or_qrels(path) if options.judgments == "qrels" else path
    if not isinstance(opened, str):
        return opened
    path = opened
    text = TextSource(_content(path), QRELS._replace(comments=comments), path)
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


def _judged_once(text: TextSource, reason: str, twice: dict[int, str]) -> Qrels:
    """Qrels without repeated judgments; their topics are noted, because the error counts only when they are reached."""
    table = text.table()
    table = table.take(np.argsort(table.topic, kind="stable"))
    first = Index(table.topics, table.topic, table.documents).first
    once = first == np.arange(len(first))
    twice.update(dict.fromkeys(table.topic[~once].tolist(), reason))
    return Qrels(table.take(np.flatnonzero(once)), text.where)


def _without_repeats(
    run: Run, index: Index, order: Order, options: TrecEvalOptions, reason: str, twice: dict[int, str]
) -> HitRows:
    """The match of a run with repeated documents, after the cut of -M; topics that still repeat one are noted and left empty."""
    from cranfield.base.kernels.twin import rank

    table = run.table
    number = {name: i for i, name in enumerate(index.topics)}
    documents = list(table.documents)
    deepest = None if options.deepest is None else max(options.deepest, 1)  # one row shows that the topic is there
    by_topic = np.argsort(table.topic, kind="stable")
    bounds = np.searchsorted(table.topic[by_topic], np.arange(len(table.topics) + 1))
    rows_of_topics: list[Any] = []
    broken = []
    for t, name in enumerate(table.topics):
        rows = by_topic[bounds[t] : bounds[t + 1]]
        if name not in number:
            rows_of_topics.append(rows[:1])
            continue
        names = [documents[i] for i in rows.tolist()]
        best = rank(names, table.value[rows], order)[0][:deepest]
        if len({names[i] for i in best}) == len(best):
            rows_of_topics.append(rows[best])
        else:
            broken.append(number[name])
            rows_of_topics.append(rows[:1])
    match: HitRows = hits_of_table(index, table.take(np.sort(np.concatenate(rows_of_topics))), order)
    twice.update({topic: twice.get(topic, reason) for topic in broken})
    return match


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
            text = line.decode("utf-8", "replace")[:60]
            problem = f"expected 4 columns (topic measure mean sd), found {text!r}"
            raise StopError(UNREADABLE, f"{path}:{number}: {problem}") from None
    return answer
