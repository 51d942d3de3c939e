"""Labels and who gave them: the event log, rounds, agreement, aggregation, frozen versions."""

from cranfield.judging.current_labels import current_events
from cranfield.judging.event import Event
from cranfield.judging.log import Log
from cranfield.judging.log_location import open_log
from cranfield.judging.log_queries import qrels

__all__ = ["Event", "Log", "current_events", "open_log", "qrels"]
