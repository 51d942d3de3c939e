"""Labels, and who said them: a log of events, rounds of work, agreement, aggregation, frozen versions."""

from cranfield.judge.event import Event
from cranfield.judge.log import Log
from cranfield.judge.opening import open_log
from cranfield.judge.reading import qrels
from cranfield.judge.standing import standing

__all__ = ["Event", "Log", "open_log", "qrels", "standing"]
