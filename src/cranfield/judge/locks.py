"""How those who write into one log on a server keep out of each other's way, and how far the log is complete.

Numbers of events are given out before transactions commit: number 10 may come to light after 11. Whoever adds therefore
holds a lock, to the end of the transaction, whose key is the highest number that was there when it began; all its own are
higher. The log is complete up to the lowest key that anybody holds. A server lets go of locks after what was written can
be seen, so that what is looked for after the locks is there. SQLite has one writer at a time and needs none of it.
"""

from __future__ import annotations

ADDING = 1668440430  # shared by all who add, had alone by who freezes a version
FLOOR = ADDING + 1  # its second key is the number above which somebody adds

TOGETHER = f"pg_advisory_xact_lock_shared({ADDING})"
ABOVE = f"pg_advisory_xact_lock_shared({FLOOR}, (SELECT coalesce(max(seq), 0) FROM events))"
ALONE = f"pg_advisory_xact_lock({ADDING})"

COMPLETE = f"""SELECT least(
    (SELECT coalesce(max(seq), 0) FROM events),
    (SELECT min(objid::bigint) FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {FLOOR} AND objsubid = 2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))"""
"""The place up to which every event can be seen by who looks after this; numbers come from before the look at locks."""
