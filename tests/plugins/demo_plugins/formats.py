"""A file format, a format of events and a layout of collections."""

from pathlib import Path

from cranfield.base.collection import Document, Topic
from cranfield.formats.event_files.format import EventFormat
from cranfield.formats.format import Format, Strength, rows_of
from cranfield.formats.importers.source import CollectionSource


class Shouted(Format):
    """A run in capital letters, for the hard of hearing."""

    name = "shouted"
    about = "a first line that says SHOUT, then topic document score"
    kinds = ("run",)
    endings = (".shout",)

    def sniff(self, head):
        return Strength.SIGNATURE.of("run") if head.raw.startswith(b"SHOUT") else None

    def read(self, buffer, kind, where, lenient=False):
        rows = [line.split() for line in bytes(buffer).decode().splitlines()[1:]]
        return {topic: {d: float(s) for t, d, s in rows if t == topic} for topic, _, _ in rows}

    def write(self, table, kind, tag):
        yield b"SHOUT\n"
        for topic, document, _, score, _ in rows_of(table, "run", tag):
            yield b"%b %b %r\n" % (topic, document.upper(), score)


class Diary(EventFormat):
    """A line a conversion: when, and who. A name for an example."""

    name = "diary"
    endings = (".diary",)

    def begins(self, head):
        return head.startswith("dear diary")

    def rows(self, reading):
        for number, line in enumerate(Path(reading.path).read_text().splitlines()[1:], 2):
            time, unit = line.split()
            yield number, {"event_id": line, "time": time, "kind": "conversion", "unit": unit}

    def write(self, rows):
        yield b"dear diary\n"
        for row in rows:
            yield f"{row['time']} {row['unit']}\n".encode()


class Shopping(CollectionSource):
    """A document a line; the last line is a topic."""

    name = "shopping"
    about = "a shopping list: a document a line, the last line is what was forgotten"

    def documents_in(self, path):
        return (Document(str(number), text, text) for number, text in list(self.lines(path))[:-1])

    def topics(self):
        [path] = self.files.documents
        yield Topic("1", list(self.lines(path))[-1][1])
