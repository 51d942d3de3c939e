"""What was typed: options as getopt reads them, before or after the two files, in short or long form.

One option is ours: `--as 9` or `--as 10` says which trec_eval to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from getopt import GetoptError, gnu_getopt

from cranfield.parameters import shortened, whole

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
    """Ends the program: an exit code and, for the user, a reason."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass
class Options:
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


def parse(argv: list[str]) -> Options:
    """Read the command line; StopError with exit code 1 if it makes no sense."""
    options = Options()
    short = "".join([*FLAGS, *(f"{letter}:" for letter in (*TEXTS, *WHOLES, "m", "D"))])
    try:
        typed, options.files = gnu_getopt(argv, short, [f"{name}{'' if LONG[name] in FLAGS else '='}" for name in LONG])
    except GetoptError as error:
        raise StopError(1, f"{error.msg}\n{USAGE}") from None
    for name, value in typed:
        _set(options, LONG[name[2:]] if name.startswith("--") else name[1:], value)
    return options


def _set(options: Options, letter: str, value: str) -> None:
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
        options.version = _version(value)
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


def _version(value: str) -> int:
    if value not in map(str, VERSIONS):
        raise StopError(1, f"--as expects 9 or 10, found {value!r}")
    return int(value)


def _one_topic(value: str, before: str | None) -> str | None:
    """The topic of `-D level.topic`; the level itself only made the original talkative."""
    match = LEVEL_AND_TOPIC.fullmatch(value)
    if match is None:
        raise StopError(1, f"-D expects a level or level.topic, found {value!r}")
    return before if match[2] is None else match[2]
