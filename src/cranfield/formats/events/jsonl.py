"""Events as JSON lines: an event a line, under the names of the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cranfield.formats.events.format import EventFormat, Reading
from cranfield.formats.streams import json_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class JSONLines(EventFormat):
    """JSON lines, an event a line: `{"event_id": …, "time": …, "kind": "click", "unit": …, "search": …}`."""

    name = "jsonl"
    endings = (".jsonl", ".ndjson", ".json")

    def begins(self, head: str) -> bool:
        return head.startswith("{")

    def rows(self, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
        return json_rows(reading.path, "an event as a JSON object")

    def write(self, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        for row in rows:
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"
