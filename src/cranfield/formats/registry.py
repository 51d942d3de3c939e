"""All formats, by name, in the order in which a file is tried against them.

What begins with certain bytes or names its columns comes before what is only counted columns.
A new format is one more module and one more line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.errors import FormatError
from cranfield.formats.beir import BEIR
from cranfield.formats.delimited import CSV, TSV
from cranfield.formats.format import NEITHER, Format, Kind, Kinds
from cranfield.formats.json_text import JSON, JSONL
from cranfield.formats.msmarco import MSMARCO
from cranfield.formats.parquet import PARQUET
from cranfield.formats.prels import PRELS, STRATA
from cranfield.formats.streams import plain_ending
from cranfield.formats.trec import PREFS, QRELS_JG, QRELS_PREFS, TREC, first_lines
from cranfield.kernels import decode

if TYPE_CHECKING:
    import os

    from cranfield.kernels.table import Buffer


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (PARQUET, JSON, JSONL, BEIR, CSV, TSV, TREC, MSMARCO, PRELS, STRATA, PREFS, QRELS_JG, QRELS_PREFS)
}
HEAD = 65536  # bytes that decide
NOUNS: dict[Kind, str] = {"run": "a run", "qrels": "qrels", "prefs": "preferences"}


def format_named(name: str, kind: Kind | None = None) -> Format:
    """The format of that name, if it can hold that kind."""
    if name not in FORMATS:
        raise FormatError(f"no format {name!r}; there are {', '.join(sorted(FORMATS))}")
    found = FORMATS[name]
    if kind is not None and kind not in found.kinds:
        raise FormatError(f"{name} holds {' or '.join(NOUNS[k] for k in found.kinds)}, not {NOUNS[kind]}")
    return found


def format_for(path: str | os.PathLike[str], kind: Kind) -> Format:
    """The format to write a file in, by its ending; TREC's where the ending says nothing."""
    if kind == "prefs":
        return PREFS
    ending = plain_ending(path)
    return next((one for one in FORMATS.values() if ending in one.endings and kind in one.kinds), TREC)


def kinds_in(head: bytes) -> tuple[Format | None, Kinds]:
    """The first format that a file fits, and what it may hold."""
    for one in FORMATS.values():
        kinds = one.sniff(head)
        if kinds:
            return one, kinds
    return None, NEITHER


def recognise(buffer: Buffer, kind: Kind, where: str) -> Format:
    """The format of a file that is to hold this kind; FormatError if it holds another, or nothing known."""
    head = bytes(buffer[:HEAD])
    if not first_lines(head):  # empty, or comments only
        return TREC
    found, kinds = kinds_in(head)
    if found is not None and kind in kinds:
        return found
    if found is not None:
        [other] = kinds
        shown = _columns(head) if found.words else ""
        raise FormatError(
            f"{where}: looks like {NOUNS[other]} ({found.name}{shown}), expected {NOUNS[kind]}; format=… overrules this"
        )
    count = len(first_lines(head)[0].split())
    if b"\0" not in head and kind != "prefs" and 3 <= count <= 8:
        return TREC  # which says in which line and column it is wrong
    wanted = (
        "4 columns (topic iteration document grade)"
        if kind == "qrels"
        else "6 columns (topic Q0 document rank score tag)"
    )
    shown = decode(head.lstrip().split(b"\n", 1)[0][:60])
    raise FormatError(
        f"{where}: not recognised as {NOUNS[kind]}; expected {wanted}, a header line or JSON, found {shown!r}"
    )


def _columns(head: bytes) -> str:
    return f", {len(first_lines(head)[0].split())} columns"
