"""Documents and topics as JSON lines: one object a line, with an id, a title and a text under their usual names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cranfield.errors import BadLineError, FormatError
from cranfield.formats.sources.rows import RowSource
from cranfield.formats.streams import lines

if TYPE_CHECKING:
    from collections.abc import Iterator


class JsonLines(RowSource):
    """documents.jsonl, topics.jsonl, and qrels in any format."""

    name = "jsonl"
    about = "JSON lines: documents.jsonl and topics.jsonl with id, title and text (or their usual names), qrels in any format"
    family = "jsonl"
    endings = r"\.(?:jsonl|ndjson)"

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file."""
        return objects(path, self.options.encoding)


def objects(path: str, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file, each with the number of its line; empty lines are passed over."""
    decoder = json.JSONDecoder()
    decode, scan = decoder.decode, decoder.raw_decode  # the first looks for white space around, at twice the cost
    for number, line in enumerate(lines(path), 1):
        try:
            text = line.decode(encoding)
            row, end = scan(text) if text.startswith("{") else (decode(text), len(text))
            if end < len(text) - 1 and not text[end:].isspace():
                decode(text)  # which says what is wrong
        except UnicodeDecodeError as error:
            advice = "; --encoding latin-1?" if encoding == "utf-8" else ""
            raise BadLineError(
                path, number, f"expected {encoding}, found byte {line[error.start]:#04x}{advice}"
            ) from None
        except ValueError as error:
            if not line.strip():
                continue
            shown = line.strip()[:60].decode(errors="replace")
            raise BadLineError(path, number, f"expected a JSON object, found {shown!r} ({error})") from None
        except LookupError:
            raise FormatError(f"no encoding {encoding!r}; utf-8, latin-1 and cp1252 are usual ones") from None
        except RecursionError:
            raise BadLineError(path, number, "expected a JSON object, found one nested too deeply") from None
        if type(row) is not dict:
            raise BadLineError(path, number, f"expected a JSON object, found {type(row).__name__}")
        yield number, row
