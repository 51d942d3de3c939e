"""Which format a file is in: by name, by the file's ending, or by its first lines.

Each format says how well the first lines fit it, and the strongest evidence wins. A tie is refused, never guessed.
Detection loads every format, so a plain TREC file is recognised without this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.errors import FormatError
from cranfield.base.kernels import decode
from cranfield.formats.csv_tables import DETECTED, Dialect
from cranfield.formats.files.trec import TREC
from cranfield.formats.format import FORMATS, NOUNS, USUAL, Fields, Format, Head, Kind, Kinds
from cranfield.formats.streams import plain_ending

if TYPE_CHECKING:
    import os

    from cranfield.base.kernels.table import Buffer


def format_named(name: str, kind: Kind | None = None, fields: Fields = USUAL, dialect: Dialect = DETECTED) -> Format:
    """The format of that name; FormatError if it cannot hold that kind."""
    format = FORMATS.look_up(name)
    if kind is not None and kind not in format.kinds:
        raise FormatError(f"{format.name} holds {' or '.join(NOUNS[k] for k in format.kinds)}, not {NOUNS[kind]}")
    return format.naming(fields, dialect)


def format_for(path: str | os.PathLike[str], kind: Kind, name: str | None = None) -> Format:
    """The format to write a file in: by `name`, else by the file's ending, else TREC."""
    if name is not None:
        return format_named(name, kind)
    ending = plain_ending(path)
    return next((each for each in FORMATS.values() if ending in each.endings and kind in each.kinds), TREC)


def strongest(
    head: Head, where: str, kind: Kind | None = None, fields: Fields = USUAL, dialect: Dialect = DETECTED
) -> tuple[Format, Kinds] | None:
    """The format that fits best, and what the file may hold; a tie is broken by the kind that is expected."""
    named = [each.naming(fields, dialect) for each in FORMATS.values()]
    matches = [(each, evidence) for each in named if (evidence := each.sniff(head)) is not None]
    most = max((evidence.strength for _, evidence in matches), default=None)
    equal = [(each, evidence.kinds) for each, evidence in matches if evidence.strength == most]
    fitting = [(each, kinds) for each, kinds in equal if kind in kinds] if len(equal) > 1 else equal
    if len(fitting) != 1 and equal:
        names = " or ".join(each.name for each, _ in equal)
        raise FormatError(f"{where}: may be {names}, and nothing shows which; format=… names it", kind)
    return fitting[0] if fitting else None


def recognise(buffer: Buffer, kind: Kind, where: str, fields: Fields = USUAL, dialect: Dialect = DETECTED) -> Format:
    """The format of a file that should hold this kind; FormatError if it holds another kind or is unknown."""
    head = Head(buffer)
    if not head.lines:  # empty, or comments only
        return TREC
    columns = len(head.rows[0])
    match = strongest(head, where, kind, fields, dialect)
    if match is not None:
        format, kinds = match
        if kind in kinds:
            return format
        looks = f"{format.name}, {columns} columns" if format.layouts else format.name
        problem = f"looks like {NOUNS[min(kinds)]} ({looks}), expected {NOUNS[kind]}"
        raise FormatError(f"{where}: {problem}; format=… overrules this", kind)
    if b"\0" not in head.raw and 3 <= columns <= 8:
        return TREC  # its reader reports the line and column that are wrong
    layout, line = TREC.layouts[kind], decode(head.raw.lstrip().split(b"\n", 1)[0][:60])
    expected = f"{layout.fewest} columns ({layout.columns}), a header line or JSON"
    raise FormatError(f"{where}: not recognised as {NOUNS[kind]}; expected {expected}, found {line!r}")
