"""Add entries to bad_inputs.toml: a refused value for each slot that no entry there has a case of.

    python tests/hostile_entries.py

The values are those of hostile.py. A value counts if it is refused with exit 2 or 3 and a message that names the value or the
slot, so that the entry shows that this slot was looked at; read the lines before they are kept.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from hostile import Slot, _serve_nothing, bases, commands, places, slots
from hostile_values import UNUSABLE_NAME
from shell import EXAMPLES
from shell import cranfield as run_command
from test_bad_inputs import covered_slots, fill, held, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES_TO_REFUSE = ("none/such", "binary.run", "cut.run.gz", "broken.parquet", "deep.json", "zeros.run", "smart")
NUMBERS = ("nan", "-1", "1e400", "zero", "0", "{digits}")
ODD = ("a=b=c", "1970-13-45", "101%", "http://[::1", "P@0", "[", "")
IN_PLACE_OF_A_DATABASE = {"work.db": "labels.jsonl", "new.db": "work.db"}
PLAIN = {
    "online position-bias": "online/clicks-log",
    "import": "smart bees",
    "collection check": "allotment",
    "collection diff": "allotment allotment",
    "collection stamp": "allotment",
    "pool thin": "qrels.txt bm25.run dense.run",
    "judge add": "work.db labels.jsonl",
    "judge agree": "labels.jsonl bob.csv",
    "judge blame": "labels.jsonl q1 doc-003",
    "judge export": "labels.jsonl",
    "judge models": "asked.jsonl",
    "judge status": "labels.jsonl",
    "judge verify": "labels.jsonl",
    "judge versions": "labels.jsonl",
    "judge ask": "new.db --pool two.jsonl --collection allotment --endpoint http://localhost:9 --model m --prompt passage",
    "judge calibrate": "drawn.jsonl",
    "judge diff": "labels.jsonl one two",
    "judge estimate": "drawn.jsonl bm25.run",
    "judge freeze": "labels.jsonl spring",
    "judge next": "labels.jsonl --assessor ann",
    "judge pseudonymise": "labels.jsonl ann",
    "judge round": "work.db --pool pool.jsonl",
    "judge set": "labels.jsonl 1 paused",
    "judge change": "labels.jsonl 1 --overlap 2",
    "judge withdraw": "labels.jsonl --assessor bob",
    "serve": ". --port 0",
    "backup": ". -o monday.zip",
    "restore": "monday.zip new",
    "fuse": "bm25.run dense.run",
    "eval": "qrels.txt bm25.run",
    "compare": "qrels.txt bm25.run dense.run",
    "leaderboard": "qrels.txt bm25.run dense.run",
    "stability": "qrels.txt bm25.run dense.run",
    "report": "qrels.txt bm25.run dense.run",
    "design": "qrels.txt bm25.run dense.run",
    "gate": "qrels.txt bm25.run dense.run",
    "explain": "qrels.txt bm25.run --topic q1",
    "online analyze": "online/shop-log online/shop.toml",
    "online erase": "online/log u2",
    "online ingest": "log online/events.jsonl",
    "online retain": "online/log --days 36500",
    "online export": "online/log",
    "online serve": "online/plans log --port 0",
    "online simulate": "qrels.txt bm25.run dense.run -o log",
    "run": "allotment --system sqlite -o x.run",
}
"""Command lines whose other slots are right, where golden ones read what earlier lines wrote or take long."""


class Entry(NamedTuple):
    slot: Slot
    value: str
    words: str
    code: int
    says: str

    def __str__(self) -> str:
        _, *rest = self.slot.command.split()
        run = " ".join([*rest, self.words]).strip()
        title = f"{self.slot.command} {self.slot.name}: {self.value.strip() or 'blank'}"
        values = {"slot": self.slot.name, "run": run, "code": self.code, "says": self.says}
        written = ", ".join(
            f"{key} = {value if key == 'code' else _quoted(str(value))}" for key, value in values.items()
        )
        return f"{_quoted(title)} = {{ {written} }}"


def _quoted(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    import json

    return json.dumps(text, ensure_ascii=False)


@cache
def _working(command: str) -> tuple[tuple[str, ...], ...]:
    """Command lines that need nothing but examples/."""
    lines = {tuple(IN_PLACE_OF_A_DATABASE.get(word, word) for word in base.words) for base in bases()[command]}
    chosen = (
        [tuple(shlex.split(PLAIN[command]))] if command in PLAIN else sorted(lines, key=lambda line: (len(line), line))
    )
    return tuple(line for line in chosen[:6] if command in PLAIN or _works(command, line))


def _works(command: str, words: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(EXAMPLES, name, dirs_exist_ok=True)
        return run_command(*command.split(), *words, folder=Path(name)).code in (0, 1)


def _lines(slot: Slot) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """Command lines, and where the slot's values stand in them."""
    command = dict(commands())[slot.command]
    lines = [(words, places(command, words).get(str(slot.parameter.name), [])) for words in _working(slot.command)]
    return iter(sorted(lines, key=lambda line: not line[1])[:2])


def _values(slot: Slot) -> Iterator[str]:
    if slot.kind == "number":
        yield from NUMBERS
    elif slot.kind in ("path", "output"):
        shift = sum(map(ord, slot.command + slot.name)) % 3
        yield from FILES_TO_REFUSE[shift:] + FILES_TO_REFUSE[:shift]
    elif slot.kind == "choice":
        yield UNUSABLE_NAME
    yield from ODD


def _with(slot: Slot, words: tuple[str, ...], where: list[int], value: str) -> list[str]:
    if where:
        return [*words[: where[0]], value, *words[where[0] + 1 :]]
    if isinstance(slot.parameter, click.Argument):
        return [*words, value]
    return [*words, slot.name, *[value] * max(slot.parameter.nargs, 1)]


def entry_for(slot: Slot) -> Entry | None:
    """The first value that the slot refuses; an option that takes any text is given none."""
    for words, where in _lines(slot):
        if slot.kind == "flag":
            return _refused(slot, "yes", [*words, f"{slot.name}=yes"])
        for value in _values(slot):
            entry = _refused(slot, value, _with(slot, words, where, value))
            if entry is not None:
                return entry
    if isinstance(slot.parameter, click.Option):
        return _refused(slot, "nothing", [*words, slot.name])
    return None


def _refused(slot: Slot, value: str, words: list[str]) -> Entry | None:
    line = shlex.join(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder, {}, line)
        before = held(folder)
        try:
            answer = run_command(*slot.command.split(), *words_of(line), folder=folder)
        except Exception as error:
            print(f"# {slot.command} {line}: {type(error).__name__}: {error}", file=sys.stderr)
            return None
        if answer.code not in (2, 3) or held(folder) != before or re.search(r"\d", answer.out):
            return None
    *_, message = [text for text in answer.err.splitlines() if text.strip()] or [""]
    if not re.search(rf"(?<![\w.]){re.escape(value.strip() or slot.name)}(?![\w.])|(?<!\w){slot.name}(?!\w)", message):
        return None
    says = message.removeprefix("Error: ").removeprefix("cranfield: ").replace(str(folder), "")
    return Entry(slot, value, line, answer.code, says if len(says) < 90 else says[:90].rpartition(" ")[0])


def insert(entries: list[Entry]) -> None:
    """Put entries at the end of the tables of their commands."""
    path = Path(__file__).with_name("bad_inputs.toml")
    text = path.read_text(encoding="utf-8")
    for entry in entries:
        table = text.index(f"\n[{entry.slot.command.split()[0]}]\n")
        end = text.index("\n\n", table)
        text = f"{text[: end + 1]}{entry}\n{text[end + 1 :]}"
    path.write_text(text, encoding="utf-8")


def main() -> None:
    _serve_nothing()
    covered, entries = covered_slots(), []
    for slot in slots():
        if (slot.command, slot.name) not in covered:
            entry = entry_for(slot)
            if entry is None:
                print(f"no entry for {slot.command} {slot.name}", file=sys.stderr)
            else:
                entries.append(entry)
    insert(entries)
    print(f"{len(entries)} entries")


if __name__ == "__main__":
    main()
