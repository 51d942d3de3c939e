"""The golden commands: what every command prints and writes today, recorded in tests/golden/ and compared by a test.

commands.toml lists them; each runs in a folder of its own that holds examples/, and tests/golden/inputs/ and the bundled
runs (as runs/) if its lines name them. What a command answered is one readable file: exit code, stdout, stderr, and the
files that belong to the answer. screens.toml lists what commands show on a terminal, recorded at two widths. Whatever
differs from machine to machine and from day to day is replaced by `masked`.

A layout may change where people read, a number never: `violations` compares two recordings exactly where programs read
(kind = "data", and files of data), and by their words and numbers where people do (kind = "words", messages, pages).
"""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import layouts
from cranfield.formats.collection_folder import BUNDLED
from executions import executed
from pages import ROOT
from shell import EXAMPLES, copy_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = ROOT / "tests" / "golden"
SCREENS, WIDTHS = GOLDEN / "screens", (80, 120)
INPUTS = sorted(path.name for path in (GOLDEN / "inputs").iterdir() if path.name != "__pycache__")
LAYOUTS = ("smart", "time", "npl", "lisa", "trec", "beir", "msmarco", "jsonl", "csv", "parquet")
FOR_PEOPLE = (".html", ".md", ".tex", ".svg")
"""Endings of files whose layout is free; of .html and .svg only the text is recorded, as fonts move the rest."""


class Command(NamedTuple):
    name: str
    kind: str  # of stdout: "data", or "words" where only words and numbers count
    lines: tuple[str, ...]  # run one after the other in one folder
    files: tuple[str, ...] = ()  # written by them, and part of the answer
    stdin: str = ""
    timed: bool = False  # prints what it took

    @property
    def record(self) -> Path:
        return GOLDEN / f"{self.name}.txt"


class Screen(NamedTuple):
    """What commands show on a terminal of so many columns."""

    name: str
    columns: int
    lines: tuple[str, ...]
    stdin: str = ""
    timed: bool = False
    most_lines: int | None = None  # that the last command may show

    @property
    def record(self) -> Path:
        return SCREENS / f"{self.name}-{self.columns}.txt"


class Section(NamedTuple):
    title: str
    text: str


def golden_commands() -> list[Command]:
    listed = tomllib.loads((GOLDEN / "commands.toml").read_text(encoding="utf-8"))["command"]
    return [
        Command(
            each["name"],
            each["kind"],
            tuple(each["run"].strip().splitlines()),
            tuple(each.get("files", ())),
            each.get("stdin", ""),
            each.get("timed", False),
        )
        for each in listed
    ]


def golden_screens() -> list[Screen]:
    listed = tomllib.loads((GOLDEN / "screens.toml").read_text(encoding="utf-8"))["screen"]
    return [
        Screen(
            each["name"],
            columns,
            tuple(each["run"].strip().splitlines()),
            each.get("stdin", ""),
            each.get("timed", False),
            each.get("most_lines"),
        )
        for each in listed
        for columns in WIDTHS
    ]


def shown(screen: Screen, folder: Path) -> str:
    """What commands show one after the other in a new folder: data and messages as they come."""
    return recorded_screen(screen, seen(screen, folder), folder)


def seen(screen: Screen, folder: Path) -> list[str]:
    """What each command shows, to the letter."""
    fill_folder(folder, screen)
    answers = []
    for line in screen.lines:
        _, *arguments = shlex.split(line)
        answers.append(executed(*arguments, stdin=screen.stdin.encode(), folder=folder, columns=screen.columns).both)
    return answers


def recorded_screen(screen: Screen, answers: list[str], folder: Path) -> str:
    """The same as it is recorded; a line that was wrapped because of a time is one line again."""
    text = ""
    for line, answer in zip(screen.lines, answers, strict=True):
        unwrapped = re.sub(r"\n {2,}", " ", answer) if screen.timed else answer
        text += f"$ {line}\n{masked(unwrapped, folder, screen.timed)}"
    return text


def answered(command: Command, folder: Path) -> str:
    """What a command answers in a new folder, as it is recorded."""
    fill_folder(folder, command)
    sections = []
    for line in command.lines:
        program, *arguments = shlex.split(line)
        assert program == "cranfield", line
        answer = executed(*arguments, stdin=command.stdin.encode(), folder=folder)
        sections += [
            Section(f"$ {line}", f"exit code {answer.code}\n"),
            Section(f"stdout ({command.kind})", answer.out),
            Section("stderr", answer.err),
        ]
    sections += [Section(f"file {name}", _content(folder / name)) for name in command.files]
    return "".join(f"===== {title}\n{_ended(text)}" for title, text in _masked(sections, folder, command.timed) if text)


def fill_folder(folder: Path, command: Command | Screen) -> None:
    """Put what a command reads into a folder."""
    copy_folder(EXAMPLES, folder)
    lines = "\n".join(command.lines)
    if any(name.partition(".")[0] in lines for name in INPUTS):
        copy_folder(GOLDEN / "inputs", folder)
    if "runs/" in lines:
        copy_folder(Path(BUNDLED) / "allotment" / "runs", folder / "runs")
    for layout in LAYOUTS:
        if f"layouts/{layout} " in lines:
            layouts.WRITERS[layout](folder / "layouts" / layout)
    if "ir_datasets:" in lines:
        layouts.ir_datasets(folder)


def _content(path: Path) -> str:
    if not path.exists():
        return "(not written)\n"
    if path.is_dir():
        return "".join(f"{each.name}\n" for each in sorted(path.iterdir()))
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return _text_of(text) if path.suffix in (".html", ".svg") else text


def _text_of(markup: str) -> str:
    """The text of a page or a drawing, each piece on a line; data in it too, styles and programs not."""
    markup = re.sub(r"<style.*?</style>|<script>.*?</script>", "", markup, flags=re.DOTALL)
    pieces = (html.unescape(piece).strip() for piece in re.split(r"<[^<>]*>", markup))
    return "".join(f"{piece}\n" for piece in pieces if piece)


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n\\ no newline at the end\n"


def _masked(sections: list[Section], folder: Path, timed: bool) -> Iterator[Section]:
    for title, text in sections:
        yield Section(title, text if title.startswith("$") else masked(text, folder, timed))


PROGRAMS = "cranfield|python|numpy|scipy|sqlite|bm25s|tantivy|pyarrow|polars|vl-convert|click"
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"
TIMES = r"\w*seconds|\w+_per_second|\w*bytes|mean|median|p95|p99|min|max|\w*per_thousand\w*|\w*1000\w*"


def masked(text: str, folder: Path, timed: bool = False) -> str:
    """What was printed or written, without what no refactoring can keep.

    Always: the path of the folder becomes `.` and that of the checkout CHECKOUT, a date with a time DATE, the version of
    a program VERSION, the size of a file that was written N, the id of an event ID and its seconds N. Of commands that
    take times (timed = true in commands.toml) also: every time, rate, size, price and amount of memory becomes N,
    histograms of times and facts of the machine are emptied.
    """
    for path, name in ((folder.resolve(), "."), (folder, "."), (ROOT, "CHECKOUT")):
        text = text.replace(str(path), name)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?", "DATE", text)
    text = re.sub(rf"(?i)\b({PROGRAMS})([\"':= \n]+)v?\d+\.\d+\.\d+\w*", r"\1\2VERSION", text)
    text = re.sub(r"(?m)^wrote .*", lambda line: re.sub(rf"{NUMBER} [kM]B\)", "N kB)", line[0]), text)
    text = re.sub(r'("(?:id|refers)": )"[0-9a-f]{16}-[0-9a-f]{16}"', r'\1"ID"', text)
    text = re.sub(r'("id": "ID".*?"seconds": )[\d.]+', r"\1N", text)
    if timed:
        text = re.sub(r'("(?:edges_ms|counts)": )\[[^\]]*\]', r"\1[]", text)
        text = re.sub(r'("machine": )\{[^}]*\}', r"\1{}", text)
        text = re.sub(rf'("(?:{TIMES})": )[\d.e+-]+', r"\1N", text)
        text = re.sub(rf"{NUMBER} (?:bytes|kB|MB|GB)\b", "N MB", text)
        text = re.sub(rf"{NUMBER}(?= (?:s|ms|per second|queries per second|for 1000 queries)\b)", "N", text)
        text = re.sub(rf"\b(mean|median|p95|p99) {NUMBER}", r"\1 N", text)
    return text


def rounded(text: str) -> str:
    """Numbers to twelve digits: what other processors and other versions of NumPy and SciPy agree on."""
    return re.sub(r"\d+\.\d{12,}(e[+-]?\d+)?", lambda number: f"{float(number[0]):.12g}", text)


# Comparing two recordings


def sections(record: str) -> list[Section]:
    parts = re.split(r"^===== (.*)\n", record, flags=re.MULTILINE)
    return [Section(*pair) for pair in zip(parts[1::2], parts[2::2], strict=True)]


def words(text: str) -> Counter[str]:
    """Words, numbers with their signs, and relations; markup, rules, boxes and space are layout."""
    text = html.unescape(re.sub(r"</?[a-zA-Z][^<>]*>", " ", text))
    text = re.sub(r"^\s*>", " ", text, flags=re.MULTILINE)  # a quotation in Markdown
    text = re.sub(r"\\(?:begin|end)\{\w+\*?\}(?:\{[^}]*\})?|\\[a-zA-Z]+", " ", text)  # LaTeX's commands
    text = re.sub(r"\\(?=[^\w\s]|_)", "", text).replace("−", "-")
    return Counter(re.findall(r"[-+]?\w+(?:[.,@:/'’^-]\w+)*%?|[<>≤≥=≈±]", text))


def violations(name: str, before: str, after: str) -> list[str]:
    """In what two recordings of a command differ although they must not, one line each."""
    old, new = sections(before), sections(after)
    if [each.title for each in old] != [each.title for each in new]:
        changed = Counter(each.title for each in old)
        changed.subtract(each.title for each in new)
        found = [f"{'gone' if count > 0 else 'new'}: {title}" for title, count in changed.items() if count]
        return [f"{name}: {each}" for each in found or ["the sections are in another order"]]
    answer, line = [], ""
    for one, other in zip(old, new, strict=True):
        line = one.title if one.title.startswith("$") else line
        free = one.title in ("stdout (words)", "stderr") or one.title.endswith(FOR_PEOPLE)
        if one.text == other.text:
            continue
        if not free:
            answer.append(f"{name}: {line}: {one.title} is not the same")
            continue
        gone, come = words(one.text) - words(other.text), words(other.text) - words(one.text)
        if gone or come:
            lost, won = (" ".join(list(each.elements())[:12]) or "nothing" for each in (gone, come))
            answer.append(f"{name}: {line}: {one.title} lost {lost}, won {won}")
    return answer


def recorded_at(revision: str, command: Command) -> str | None:
    """The recording of a command in a revision; None where it has none."""
    path = command.record.relative_to(ROOT).as_posix()
    answer = subprocess.run(["git", "show", f"{revision}:{path}"], cwd=ROOT, capture_output=True, check=False)
    return answer.stdout.decode("utf-8", "surrogateescape") if answer.returncode == 0 else None
