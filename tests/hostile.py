"""Hostile inputs for every slot of every command: what no input may cause.

    python tests/hostile.py --cases 10000 --seed 0

A case takes a command line that works (from tests/golden/commands.toml) and puts a hostile value into one slot: an
argument or an option, found by walking the tree of commands. Each case runs in a process forked from this one, with
limits on memory and time, in a folder of its own. Faults are: a traceback, exit 70 or any exit code that does not exist, an
exit 1 without the words of a verdict, numbers printed for an input that cannot be used, files left behind, more than
10 seconds of processor time, more than 1 GB of memory. `--case N` runs one case again and shows everything.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib
import os
import pkgutil
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import hostile_values as values
from cranfield.cli import cli
from cranfield.cli import main as command_line
from recorded import Command, fill_folder, golden_commands, sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST, LARGEST = 10.0, 1_000.0  # seconds of processor time, MB of memory
PATIENCE = 60  # seconds until a case is taken to hang
OWN_MISTAKE = 70

OUTPUTS = {"output", "holes", "disagreements", "junit", "markdown", "json", "folder", "log", "dest"}
PATHS = re.compile(r"\b(FILE|QRELS|RUN|PATH|FOLDER|LOG|STUDY|PLANS|COLLECTION|SOURCE|FROM|ANSWERS|A|B)\b")
PATH_ARGUMENTS = set("qrels runs log pool collection baseline candidate files source sources folder plan plans".split())
NAMES = {
    "PRESET",
    "FORMAT",
    "METHOD",
    "MEASURE",
    "MEASURES",
    "KINDS",
    "POLICY",
    "TESTS",
    "TEST",
    "FAMILY",
    "USERS",
    "COLUMN",
}
MADE = {(command, "LOG") for command in ("judge add", "judge ask", "judge round", "online ingest", "online serve")}
MADE |= {
    ("import", "DEST"),
    ("pool judge", "--judgments"),
    ("serve", "FOLDER"),
    ("online simulate", "--log"),
    ("online simulate", "--plan"),
    ("online study forms", "--folder"),
}
"""Paths of what is made if it is not there, folders with those above them."""
FREE = {("judge round", "--guidelines"), ("pool judge", "--guidelines")}
FREE |= {("online erase", "--key"), ("online ingest", "--key"), ("online serve", "--pseudonymise")}
"""Files that may hold anything: texts for people, keys."""

PACED = {("run", "--rate", "0.5"), ("run", "--rate", "1.5")}
"""Values that are right and make a command wait for about as long as the patience: 74 queries, one every two seconds."""

STATES = {"import", "judge", "online", "convert", "pool", "collection"}
"""Commands whose earlier lines in a golden entry write what its later lines read."""
SERVERS = {
    "serve": ("serve", "serve . --port 0"),
    "online serve": ("online-serve", "online serve online/plans log --port 0"),
}
"""Commands that golden entries only refuse, since they would not end; here the server itself does nothing."""

VERDICTS = {
    "gate": r"(?i)fail",
    "online analyze": r"(?i)stop|same|not shown",
    "run": r"(?i)failed",
    "judge ask": r"(?i)without|failed|no label|not answered",
    "trec_eval": r"",
}
"""What an exit 1 says, by the commands that have one; trec_eval's codes are trec_eval's."""
FINDINGS = {"check", "collection check", "judge verify", "judge calibrate", "gate", "online analyze", "trec_eval"}
"""Commands whose answer may be that the data are wrong: they print it and exit with 3."""
CODES = {0, 1, 2, 3}
UNFINISHED = re.compile(r"(^|/)\.[^/]+\.\d+\.[0-9a-f]{8}\w{8}$|^\.\./tmp/")
"""Files as `formats.streams` calls them while it writes them, and files in the temporary folder."""


class Slot(NamedTuple):
    """An argument or an option of a command."""

    command: str
    name: str  # as the command line calls it: --ties, QRELS
    parameter: click.Parameter

    @property
    def kind(self) -> str:
        """What belongs there: flag, number, choice, name, output, path or text."""
        parameter, metavar = self.parameter, self.parameter.metavar or ""
        if isinstance(parameter, click.Option) and parameter.is_flag:
            return "flag"
        if isinstance(parameter.type, (click.types.IntParamType, click.types.FloatParamType)):
            return "number"
        if (
            parameter.type.name in ("choice", "name")
            or metavar in NAMES
            or re.fullmatch(r"[a-z][\w|.-]*\|[\w|.-]+", metavar)
        ):
            return "choice"
        if parameter.name in OUTPUTS and self._is_written():
            return "output"
        is_argument = isinstance(parameter, click.Argument)
        return "path" if PATHS.search(metavar) or (is_argument and parameter.name in PATH_ARGUMENTS) else "text"

    def _is_written(self) -> bool:
        return isinstance(self.parameter, click.Option) or self.parameter.name == "dest"


class Base(NamedTuple):
    """A command line that works, and the golden entry in whose folder it does."""

    entry: Command
    line: int  # of the entry; -1: after none of its lines
    words: tuple[str, ...]  # behind the words of the command


class Case(NamedTuple):
    number: int
    slot: Slot
    base: Base
    words: tuple[str, ...]  # of the whole command line
    unusable: bool  # whatever is done with it, the value cannot be right
    files: dict[str, bytes]  # that stand in the folder for this case

    def __str__(self) -> str:
        words = [word if len(word) < 200 else f"{word[:20]}…({len(word)} characters)" for word in self.words]
        return f"{self.number}: cranfield {shlex.join(words)}"


class Outcome(NamedTuple):
    code: int  # below 0: the signal that ended it
    seconds: float
    megabytes: float
    out: str
    err: str
    changed: list[str]  # files that are new, gone or other than before
    written: str = ""  # what small new files hold


# The tree of commands


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that can be called, with its words."""
    return _below("", cli)


def _below(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        member = command.get_command(context, name)
        assert member is not None
        yield from _below(f"{words} {name}".strip(), member)


@cache
def slots() -> tuple[Slot, ...]:
    """Every argument and option of every command."""
    return tuple(
        Slot(words, _name(parameter), parameter) for words, command in commands() for parameter in command.params
    )


def _name(parameter: click.Parameter) -> str:
    return parameter.opts[-1] if isinstance(parameter, click.Option) else str(parameter.name).upper()


def places(command: click.Command, words: tuple[str, ...]) -> dict[str, list[int]]:
    """Where the values of each parameter stand among the words of a command line."""
    where: dict[str, list[int]] = defaultdict(list)
    flags = {flag: each for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    free, place = [], 0
    while place < len(words):
        option = flags.get(words[place]) if words[place].startswith("-") else None
        if option is None:
            free.append(place)
            place += 1
            continue
        taken = 0 if isinstance(option, click.Option) and option.is_flag else option.nargs
        where[str(option.name)] += range(place + 1, place + 1 + taken)
        place += 1 + taken
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    while arguments and arguments[0].nargs == 1 and free:
        where[str(arguments.pop(0).name)].append(free.pop(0))
    while len(arguments) > 1 and free:
        where[str(arguments.pop().name)].append(free.pop())
    if arguments:
        where[str(arguments[0].name)] += free
    return where


# Command lines that work


@cache
def bases() -> dict[str, list[Base]]:
    """For each command, the lines of golden entries that work, those with the shortest way to them first."""
    known, tree = defaultdict(list), dict(commands())
    for entry in golden_commands():
        codes = _recorded_codes(entry)
        for number, line in enumerate(entry.lines):
            words = shlex.split(line)[1:]
            name = next((" ".join(words[:size]) for size in (3, 2, 1) if " ".join(words[:size]) in tree), None)
            if name is not None and not {"--help", "--list"} & {*words} and codes.get(line) in (0, 1):
                known[name].append(Base(entry, number, tuple(words[len(name.split()) :])))
    by_name = {entry.name: entry for entry in golden_commands()}
    for name, (entry_name, line) in SERVERS.items():
        known[name].append(Base(by_name[entry_name], -1, tuple(shlex.split(line)[len(name.split()) :])))
    return {name: sorted(lines, key=lambda base: base.line) for name, lines in known.items()}


def _recorded_codes(entry: Command) -> dict[str, int]:
    text = entry.record.read_bytes().decode("utf-8", "surrogateescape")
    return {title[2:]: int(body.split()[2]) for title, body in sections(text) if title.startswith("$ ")}


def _base_for(slot: Slot, rng: random.Random) -> Base:
    """A line that uses the slot, if one does."""
    command = dict(commands())[slot.command]
    lines = bases()[slot.command]
    using = [base for base in lines if places(command, base.words).get(str(slot.parameter.name))]
    return rng.choice((using or lines)[:3])


# Cases


def cases(seed: int, number: int) -> Iterator[Case]:
    """So many cases, in which every slot has its turn before one has two."""
    order = list(slots())
    random.Random(seed).shuffle(order)
    for each in range(number):
        yield make_case(seed, each, order[each % len(order)])


def make_case(seed: int, number: int, slot: Slot) -> Case:
    rng = random.Random(f"{seed} {number}")
    base = _base_for(slot, rng)
    command = dict(commands())[slot.command]
    where = places(command, base.words).get(str(slot.parameter.name), [])
    word, unusable, files = _hostile(slot, rng, [base.words[place] for place in where], base)
    words = list(base.words)
    if slot.kind == "flag":
        words.append(word)
    elif where:
        place = rng.choice(where)
        words[place] = word
        unusable &= (slot.command, slot.name, place) != ("convert", "SOURCES", where[-1])  # which is written
    elif isinstance(slot.parameter, click.Option):
        words += [slot.parameter.opts[-1], *[word] * max(slot.parameter.nargs, 1)]
    else:
        words.append(word)
    return Case(number, slot, base, (*slot.command.split(), *words), unusable, files)


def _hostile(slot: Slot, rng: random.Random, valid: list[str], base: Base) -> tuple[str, bool, dict[str, bytes]]:
    """A value for a slot, whether it is unusable, and the files that it names."""
    if slot.kind == "flag":
        flag = slot.parameter.opts[-1]
        return (f"{flag}=yes", True, {}) if rng.random() < 0.3 else (flag, False, {})
    if slot.kind == "number":
        unusable = rng.random() < 0.5
        word = rng.choice(values.UNUSABLE_NUMBERS if unusable else values.ODD_NUMBERS)
        return "25" if (slot.command, slot.name, word) in PACED else word, unusable, {}
    if slot.kind == "choice":
        return (values.UNUSABLE_NAME, True, {}) if rng.random() < 0.3 else (rng.choice(values.TEXTS), False, {})
    if slot.kind == "output":
        unusable = rng.random() < 0.3
        word = rng.choice(values.UNUSABLE_OUTPUTS if unusable else values.ODD_OUTPUTS)
        is_made = (slot.command, slot.name) in MADE and word == values.MISSING_FOLDER
        return word, unusable and not is_made, {}
    if slot.kind == "path":
        word, unusable, files = _hostile_path(rng, valid, base)
        where = slot.command, slot.name
        return word, unusable and not (where in FREE and files) and (bool(files) or where not in MADE), files
    return rng.choice(values.TEXTS), False, {}


def _hostile_path(rng: random.Random, valid: list[str], base: Base) -> tuple[str, bool, dict[str, bytes]]:
    kind = rng.choice(("worse", "worse", "worse", "unusable file", "odd file", "unusable path", "odd path"))
    if kind == "worse":
        there = [world(base) / word.partition("@")[0].rpartition("=")[2] for word in valid]
        there = [path for path in there if path.exists() and path.resolve() != world(base).resolve()]
        if there:
            return (*_worse_path(rng, rng.choice(there)),)
        kind = "odd file"
    if kind.endswith("file"):
        unusable = kind == "unusable file"
        known = values.UNUSABLE_FILES if unusable else values.ODD_FILES
        name = rng.choice(sorted(known))
        return f"hostile-{name}", unusable, {f"hostile-{name}": known[name]()}
    unusable = kind == "unusable path"
    return rng.choice(values.UNUSABLE_PATHS if unusable else values.ODD_PATHS), unusable, {}


def _worse_path(rng: random.Random, path: Path) -> tuple[str, bool, dict[str, bytes]]:
    """A copy of a valid file, or of a folder with one file, made worse."""
    name = f"hostile-{path.name}"
    if path.is_file():
        return name, False, {name: values.worse(rng, path.read_bytes())}
    inside = sorted(each for each in path.rglob("*") if each.is_file())
    if not inside:
        return name, False, {f"{name}/empty": b""}
    chosen, gone = rng.choice(inside), rng.random() < 0.1
    files = {f"{name}/{each.relative_to(path)}": each.read_bytes() for each in inside if not (gone and each == chosen)}
    if not gone:
        files[f"{name}/{chosen.relative_to(path)}"] = values.worse(rng, chosen.read_bytes())
    return name, False, files


# Folders


class _Place(NamedTuple):
    scratch: Path  # of this process
    folders: dict[tuple[str, int], Path]  # the folders of golden entries, after so many of their lines


_place: list[_Place] = []


def world(base: Base) -> Path:
    """The folder of a golden entry in which the lines before a line have been run; it stays as it is."""
    place = _place[0]
    key = base.entry.name, base.line
    if key not in place.folders:
        folder = place.scratch / f"world-{len(place.folders)}"
        folder.mkdir()
        # filling may start threads, and a process with threads is not to be forked
        os.waitpid(in_a_process(lambda: fill_folder(folder, base.entry)), 0)
        for line in base.entry.lines[: max(base.line, 0)]:
            words = tuple(shlex.split(line)[1:])
            if words[0] in STATES:
                _run(words, folder, base.entry.stdin.encode(), place.scratch)
        place.folders[key] = folder
    return place.folders[key]


def in_a_process(action: Callable[[], object]) -> int:
    """Do something in a forked process; its number, to wait for."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(OWN_MISTAKE)
    return child


def _listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for where, names, files in os.walk(folder):
        for name in (*names, *files):
            path = os.path.join(where, name)
            facts = os.lstat(path)
            is_folder = name in names
            found[path] = (facts.st_mode, 0, 0) if is_folder else (facts.st_mode, facts.st_size, facts.st_mtime_ns)
    return found


# Running a case


def run_case(case: Case) -> Outcome:
    """Run a case in a copy of its folder and compare what is there afterwards."""
    scratch = _place[0].scratch
    source, folder, temporary = world(case.base), scratch / "here", scratch / "tmp"
    for each in (folder, temporary):
        shutil.rmtree(each, ignore_errors=True)
    temporary.mkdir()
    shutil.copytree(source, folder)
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    before = _listing(folder)
    code, seconds, megabytes = _run(case.words, folder, case.base.entry.stdin.encode(), scratch)
    after = _listing(folder) | _listing(temporary)
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    out, err = ((scratch / name).read_bytes().decode("utf-8", "surrogateescape") for name in ("out", "err"))
    new = [Path(path) for path in changed if path in after and 0 < after[path][1] < 1_000_000]
    written = "".join(_text_of(path) for path in new if code == 1)
    return Outcome(code, seconds, megabytes, out, err, [os.path.relpath(path, folder) for path in changed], written)


def _text_of(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", "replace")


def _run(words: tuple[str, ...], folder: Path, stdin: bytes, scratch: Path) -> tuple[int, float, float]:
    """The exit code of a command line (or minus its signal), its seconds of processor time and its memory in MB."""
    (scratch / "in").write_bytes(stdin)
    child = os.fork()
    if child == 0:
        _child(words, folder, scratch)
    _, status, usage = os.wait4(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)  # processes that it left running
    except OSError:
        pass
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def _child(words: tuple[str, ...], folder: Path, scratch: Path) -> None:
    """Run a command line in this process, which ends with it."""
    code = OWN_MISTAKE
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_CPU, (30, 31))
        resource.setrlimit(resource.RLIMIT_AS, (6_000_000_000,) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000_000,) * 2)
        _connect(scratch)
        os.environ["TMPDIR"] = str(scratch / "tmp")
        tempfile.tempdir = None
        os.chdir(folder)
        sys.path.insert(0, "")
        _serve_nothing()
        command_line(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _connect(scratch: Path) -> None:
    """Standard streams from and to files."""
    for number, (name, how) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
        opened = os.open(scratch / name, how | (os.O_CREAT | os.O_TRUNC if number else 0), 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _serve_nothing() -> None:
    import uvicorn

    uvicorn.Server.run = lambda self, sockets=None: None  # type: ignore[method-assign]


# Faults


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What may not happen and did, each in a word or two and what tells it from others of its kind."""
    there = []
    command, said = case.slot.command, outcome.out + outcome.err
    if "Traceback (most recent call last)" in said:
        there.append(f"traceback: {_signature(said)}")
    elif outcome.code not in CODES and not (command == "trec_eval" and outcome.code > 0):
        there.append(f"ended with {outcome.code}: {command}: {outcome.err.strip()[-200:]}")
    if outcome.code == 1 and not ("Traceback" in said or _is_verdict(case, outcome)):
        there.append(f"exit 1 without a verdict: {command}")
    if case.unusable and outcome.code == 0:
        there.append(f"accepted: {command} {case.slot.name}")
    if outcome.code in (2, 3) and command not in FINDINGS and re.search(r"\d", outcome.out):
        there.append(f"numbers printed: {command}")
    left = _left_behind(case, outcome)
    if left:
        there.append(f"left behind: {command}: {' '.join(left)[:200]}")
    if outcome.seconds > LONGEST:
        there.append(f"{outcome.seconds:.0f} seconds: {command} {case.slot.name}")
    if outcome.megabytes > LARGEST or "not enough memory" in outcome.err:
        there.append(f"{outcome.megabytes:.0f} MB: {command} {case.slot.name}")
    return there


def _is_verdict(case: Case, outcome: Outcome) -> bool:
    """Whether an exit 1 is a verdict: one of a command that has verdicts, and its words are there unless thrown away."""
    command = case.slot.command
    if command not in VERDICTS:
        return False
    return "/dev/null" in case.words or re.search(VERDICTS[command], outcome.out + outcome.written) is not None


def _left_behind(case: Case, outcome: Outcome) -> list[str]:
    """Files that a refused command wrote; of one that worked, unfinished and temporary ones.

    A damaged database may be changed: its damage can lie where a command only comes after its transaction. A log stays
    changed if the disk is full only when its answer is written, and the message says so.
    """
    refused = (
        outcome.code in (2, 3)
        and case.slot.command not in FINDINGS
        and "only this answer is missing" not in outcome.err
    )
    damaged = set(case.files) if "is damaged" in outcome.err else set()
    return [path for path in outcome.changed if (refused and path not in damaged) or UNFINISHED.search(path)]


def _signature(said: str) -> str:
    frames = re.findall(r'cranfield/([\w/]+\.py)", line (\d+)', said)
    last = [
        line for line in said.strip().splitlines() if re.match(r"[\w.]+(Error|Exception|Warning|Interrupt)?(:|$)", line)
    ]
    return f"{frames[-1][0] if frames else '?'}:{frames[-1][1] if frames else '?'}: {last[-1][:160] if last else '?'}"


# The program


class Tally(NamedTuple):
    """What happened to the cases of a process."""

    codes: Counter[int]
    faults: dict[str, list[str]]  # the cases of each
    slowest: tuple[float, str]
    largest: tuple[float, str]


def work(seed: int, chosen: list[int], on_case: Callable[[Case, Outcome], None] | None = None) -> Tally:
    """Run the cases of these numbers."""
    codes: Counter[int] = Counter()
    bad: dict[str, list[str]] = defaultdict(list)
    slowest, largest = (0.0, ""), (0.0, "")
    order = list(slots())
    random.Random(seed).shuffle(order)
    with tempfile.TemporaryDirectory() as scratch:
        _place[:] = [_Place(Path(scratch).resolve(), {})]
        for number in chosen:
            case = make_case(seed, number, order[number % len(order)])
            outcome = run_case(case)
            codes[outcome.code] += 1
            for fault in faults(case, outcome):
                if fault not in bad:
                    print(f"case {case}\n    {fault}", file=sys.stderr, flush=True)
                bad[fault].append(str(case))
            slowest = max(slowest, (outcome.seconds, str(case)))
            largest = max(largest, (outcome.megabytes, str(case)))
            if on_case is not None:
                on_case(case, outcome)
    return Tally(codes, dict(bad), slowest, largest)


def load_everything() -> None:
    """Import every module once, so that a forked process need not."""
    import cranfield

    for module in pkgutil.walk_packages(cranfield.__path__, "cranfield."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("numpy", "scipy.stats", "sqlalchemy", "uvicorn", "starlette.applications"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _share(arguments: argparse.Namespace, worker: int, path: str) -> None:
    """Work through every n-th case and put the tally into a file."""
    import pickle

    chosen = list(range(worker, arguments.cases, arguments.jobs))
    Path(path).write_bytes(pickle.dumps(tuple(work(arguments.seed, chosen))))


def _all_shares(arguments: argparse.Namespace) -> list[Tally]:
    import pickle

    with tempfile.TemporaryDirectory() as folder:
        children = [
            in_a_process(lambda worker=worker: _share(arguments, worker, f"{folder}/{worker}"))
            for worker in range(arguments.jobs)
        ]
        for child in children:
            if os.waitpid(child, 0)[1]:
                sys.exit("a worker of the generator failed")
        return [Tally(*pickle.loads(Path(f"{folder}/{worker}").read_bytes())) for worker in range(arguments.jobs)]


def show(arguments: argparse.Namespace, tallies: list[Tally], seconds: float) -> int:
    """Print what happened; the number of cases with a fault."""
    codes = sum((tally.codes for tally in tallies), Counter[int]())
    bad: dict[str, list[str]] = defaultdict(list)
    for tally in tallies:
        for fault, where in tally.faults.items():
            bad[fault] += where
    ends = ", ".join(f"{count} of {code}" for code, count in sorted(codes.items()))
    print(f"{arguments.cases} hostile inputs (seed {arguments.seed}) in {seconds:.0f} s; exit codes: {ends}")
    slowest, largest = max(tally.slowest for tally in tallies), max(tally.largest for tally in tallies)
    print(f"slowest: {slowest[0]:.1f} s (at most {LONGEST:.0f}), case {slowest[1]}")
    print(f"largest: {largest[0]:.0f} MB (at most {LARGEST:.0f}), case {largest[1]}")
    for fault, where in sorted(bad.items(), key=lambda item: (item[0].partition(":")[0], -len(item[1]))):
        print(f"{len(where):6} × {fault}, first in case {where[0]}")
    number = len({each for where in bad.values() for each in where})
    print(f"\n{number} of {arguments.cases} cases have a fault" if number else "no faults")
    return number


def show_case(case: Case, outcome: Outcome) -> None:
    print(f"case {case}\nslot: {case.slot.name}, {case.slot.kind}; unusable: {case.unusable}")
    for name, content in case.files.items():
        print(f"file {name}: {len(content)} bytes: {content[:300]!r}")
    print(f"exit code {outcome.code}, {outcome.seconds:.1f} s, {outcome.megabytes:.0f} MB, changed: {outcome.changed}")
    print(f"--- stdout\n{outcome.out[:4000]}\n--- stderr\n{outcome.err[-6000:]}")
    print(f"--- faults\n{faults(case, outcome)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("--case", type=int)
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    load_everything()
    if arguments.case is not None:
        work(arguments.seed, [arguments.case], show_case)
        return 0
    start = time.monotonic()
    return int(show(arguments, _all_shares(arguments), time.monotonic() - start) > 0)


if __name__ == "__main__":
    sys.exit(main())
