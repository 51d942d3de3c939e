"""A log as qrels: those of a frozen version, or what stands now by the last word on each document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.collection import Qrels
from cranfield.errors import DataError
from cranfield.judge.opening import open_log

if TYPE_CHECKING:
    import os


def qrels(log: str | os.PathLike[str], name: str | None = None) -> Qrels:
    """The qrels of a version of a log; without a name what stands now, the latest label of each document.

    Its `remarks` say how many documents have labels that contradict each other, and by which policy that was resolved.

    >>> import os, tempfile
    >>> from cranfield.judge import Event
    >>> path = os.path.join(tempfile.mkdtemp(), "labels.jsonl")
    >>> log = open_log(path)
    >>> _ = log.add([Event(topic="q", document="d", grade=g, assessor=who) for who, g in (("ann", 0), ("bob", 2))])
    >>> qrels(path)["q"], qrels(path).remarks
    ({'d': 2.0}, ['1 document has labels that contradict each other; resolved by latest'])
    """
    opened = open_log(log, new=False)
    try:
        if name is None:
            from cranfield.judge.looking import decided as decide

            decided, where = decide(opened), opened.name
        else:
            from cranfield.judge.versions import thaw

            decided, where = thaw(opened, name), f"{opened.name}@{name}"
    finally:
        opened.close()
    if not len(decided):
        raise DataError(f"{where}: no judgments: no label of a person stands")
    answer = Qrels(decided.grades, where)
    answer.remarks = decided.notes()
    return answer
