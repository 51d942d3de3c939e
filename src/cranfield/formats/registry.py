"""All formats, by name, and the one rule that says which of them a file is in.

The rule: each format says what speaks for it in the first lines, the strongest evidence wins, and between two that are
equally strong nobody guesses. A format is found by lying in `formats/known/`; this module loads them all, so whoever
can do without (a plain TREC file) does not import it.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from cranfield.errors import ConventionError, FormatError
from cranfield.formats import known
from cranfield.formats.format import DEFINED, NOUNS, USUAL, Fields, Format, Head, Kind, Kinds
from cranfield.formats.known.trec import TREC
from cranfield.formats.streams import plain_ending
from cranfield.formats.tables import DETECTED, Dialect
from cranfield.kernels import decode

if TYPE_CHECKING:
    import os
    from types import ModuleType

    from cranfield.kernels.table import Buffer


def load_all(package: ModuleType) -> None:
    """Import every module of a package, so that whatever is registered by being defined there is."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


load_all(known)
FORMATS: dict[str, Format] = {cls.name: cls() for cls in sorted(DEFINED, key=lambda cls: (cls.place, cls.name))}


def format_named(name: str, kind: Kind | None = None, fields: Fields = USUAL, dialect: Dialect = DETECTED) -> Format:
    """The format of that name, if it can hold that kind."""
    if name not in FORMATS:
        raise ConventionError(f"no format {name!r}; there are {', '.join(sorted(FORMATS))}")
    chosen = FORMATS[name]
    if kind is not None and kind not in chosen.kinds:
        raise FormatError(f"{name} holds {' or '.join(NOUNS[k] for k in chosen.kinds)}, not {NOUNS[kind]}")
    return chosen.naming(fields, dialect)


def format_for(path: str | os.PathLike[str], kind: Kind, name: str | None = None) -> Format:
    """The format to write a file in: the one of that name, or by the file's ending; TREC's where that says nothing."""
    if name is not None:
        return format_named(name, kind)
    ending = plain_ending(path)
    return next((each for each in FORMATS.values() if ending in each.endings and kind in each.kinds), TREC)


def strongest(
    head: Head, where: str, kind: Kind | None = None, fields: Fields = USUAL, dialect: Dialect = DETECTED
) -> tuple[Format, Kinds] | None:
    """The format that most speaks for, and what the file may hold; between equals, the one that holds what is asked for."""
    named = [each.naming(fields, dialect) for each in FORMATS.values()]
    heard = [(each, evidence) for each in named if (evidence := each.sniff(head)) is not None]
    most = max((evidence.strength for _, evidence in heard), default=None)
    equal = [(each, evidence.kinds) for each, evidence in heard if evidence.strength == most]
    fitting = [(each, kinds) for each, kinds in equal if kind in kinds] if len(equal) > 1 else equal
    if len(fitting) != 1 and equal:
        names = " or ".join(each.name for each, _ in equal)
        raise FormatError(f"{where}: may be {names}, and nothing tells which; format=… says it", kind)
    return fitting[0] if fitting else None


def recognise(buffer: Buffer, kind: Kind, where: str, fields: Fields = USUAL, dialect: Dialect = DETECTED) -> Format:
    """The format of a file that is to hold this kind; FormatError if it holds another, or nothing known."""
    head = Head(buffer)
    if not head.lines:  # empty, or comments only
        return TREC
    columns = len(head.rows[0])
    match = strongest(head, where, kind, fields, dialect)
    if match is not None:
        chosen, kinds = match
        if kind in kinds:
            return chosen
        shown = f"{chosen.name}, {columns} columns" if chosen.layouts else chosen.name
        problem = f"looks like {NOUNS[min(kinds)]} ({shown}), expected {NOUNS[kind]}"
        raise FormatError(f"{where}: {problem}; format=… overrules this", kind)
    if b"\0" not in head.raw and 3 <= columns <= 8:
        return TREC  # which says in which line and column it is wrong
    wanted, line = TREC.layouts[kind], decode(head.raw.lstrip().split(b"\n", 1)[0][:60])
    expected = f"{wanted.fewest} columns ({wanted.columns}), a header line or JSON"
    raise FormatError(f"{where}: not recognised as {NOUNS[kind]}; expected {expected}, found {line!r}")
