"""What the library says of its arguments, said of the options of the command that was typed.

The library knows one wording, that of Python: `missing="skip"`, `alpha must be …`. A command knows its own options, so
that the sentence is turned here, in one place, as it leaves: `--missing skip`, `--alpha must be …`. What stands in brackets
behind a name, as in `AP(rel=2)`, is a measure's or a method's own and stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

OTHER_NAMES = {"size": "collection_size", "train": "train_qrels", "others": "other_qrels"}
ARGUMENT = re.compile(
    r"Extras\((?P<extra>\w+)=(?P<what>[^()]*)\)"
    r"|\w\([^()]*\)|--field \w+=|\bname=value\b|'[^' ]*=[^']*'"  # left as they are
    r"|(?<![\w.{/=?&-])(?P<name>[a-z][a-z_]+)=(?P<value>\"[^\"]*\"|'[^']*'|…|[\w-]+)"
)
SUBJECT = re.compile(r"(?P<name>[a-z][a-z_ ]*?)(?= must be |: expected )")


def in_options(sentence: str, parameters: Iterable[click.Parameter], kind: str | None = None) -> str:
    """A sentence of the library with the options that can be typed in place of arguments; `kind` says whose format it is of.

    >>> missing = click.Option(["--missing"], metavar="zero|skip")
    >>> in_options('it scores 0 (missing="skip" leaves it out)', [missing])
    'it scores 0 (--missing skip leaves it out)'
    """
    known = {
        name: one
        for one in parameters
        if isinstance(one, click.Option)
        for name in {str(one.name), one.opts[-1].lstrip("-").replace("-", "_")}
    }
    formats = [f"{kind}_format", "from_format", "run_format"] if kind else ["from_format"]

    def option(name: str) -> click.Option | None:
        names = formats if name == "format" else [OTHER_NAMES.get(name, name)]
        return next((known[each] for each in names if each in known), None)

    def typed(match: re.Match[str]) -> str:
        name, value = match["extra"] or match["name"], match["what"] or match["value"]
        one = option(name) if name else None
        if one is None:
            return match[0]
        shown = (one.metavar or "VALUE") if value == "…" else value.strip("\"'")
        return f"{one.opts[-1]} {shown}"

    subject = SUBJECT.match(sentence)
    one = option(subject["name"].replace(" ", "_")) if subject is not None else None
    if subject is not None and one is not None:
        sentence = one.opts[-1] + sentence[subject.end() :]
    return ARGUMENT.sub(typed, sentence)
