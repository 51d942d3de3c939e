"""What is measured, against whom, and the bar for each."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import agreement, peers
from benchmarks.table import Row
from benchmarks.timing import Contender, FailedError, Sample, Spread, interleave, peak, run, seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from benchmarks.sets import DataSet

SCRIPTS = Path(__file__).parent / "contenders"
FASTER = {"M": {"pytrec_eval": 30.0, "ir_measures": 55.0}, "L": {"pytrec_eval": 28.0}}  # times, from files
FLOOR = {"M": 1.75, "L": 3.0}  # times the least there is to do: `cat` and `import numpy`
IN_MEMORY = {"S": 5.0, "M": 15.0}  # times, from dicts
INDEXED = {"S": 3.0}  # times, from dicts, the judgments too
ABOVE = {"M": 150.0}  # megabytes above the file's size
MOST = {"L": 150.0}  # megabytes in all
FIRST, IMPORT, HELP = 1.5, 30.0, 150.0  # times `import numpy`; milliseconds over a bare interpreter, twice
STARTS = 15  # alternating runs where a start takes a tenth of a second


@dataclass
class Plan:
    """How often to measure, on how many threads, and against which peers."""

    repeats: int = 5
    peer_repeats: int = 3
    threads: tuple[int, ...] = (1, 2)
    starts: int = STARTS
    usable: set[str] = field(default_factory=set)

    @property
    def ours(self) -> str:
        """How cranfield is called where one way is enough: as its users do, or from Python if that fails."""
        return "cranfield eval" if "cranfield eval" in self.usable else "cranfield.evaluate"


def cranfield_command() -> list[str]:
    """The console script beside the running Python, or else the module."""
    script = Path(sys.executable).with_name("cranfield")
    return [str(script)] if script.exists() else [sys.executable, "-m", "cranfield"]


def command(kind: str, data: DataSet, threads: int = 1) -> tuple[str, ...]:
    """Files → six means, as a contender is called for it."""
    qrels, runs = str(data.qrels), [str(path) for path in data.runs]
    names = agreement.MEASURES
    if kind == "cranfield eval":
        options = ("-m", " ".join(names), "--threads", str(threads), "--format", "json")
        return (*cranfield_command(), "eval", qrels, *runs, *options)
    if kind == "cranfield.evaluate":
        return (sys.executable, str(SCRIPTS / "with_cranfield.py"), str(threads), qrels, *runs)
    if kind == "ir_measures" and len(runs) == 1:
        return (peers.program("ir_measures"), "-p", "9", qrels, runs[0], " ".join(names))
    return (peers.program(), str(SCRIPTS / f"with_{kind}.py"), qrels, *runs)


def prepare(plan: Plan, installed: Iterable[str], five: DataSet) -> None:
    """Let every contender score five topics, untimed: byte code and JIT code are then on disk. Leave out what fails."""
    for kind in ("cranfield eval", "cranfield.evaluate", *installed):
        print(f"warming up {kind} …", file=sys.stderr)
        try:
            run(command(kind, five))
        except (FailedError, OSError) as error:
            print(f"{kind} is left out: {error}", file=sys.stderr)
        else:
            plan.usable.add(kind)
    if not plan.usable & {"cranfield eval", "cranfield.evaluate"}:
        raise SystemExit("cranfield itself does not run; nothing to measure")


def threaded(kind: str, threads: int) -> str:
    """A contender's name with its threads."""
    return f"{kind}, {threads} thread{'s' if threads > 1 else ''}"


def warm(data: DataSet, rivals: Collection[str] = ()) -> None:
    """Read the files once, so that nobody pays for the disk; let ranx compile itself for ids of this length."""
    for path in (data.qrels, *data.runs):
        run(("sh", "-c", 'cat "$1" > /dev/null', "sh", str(path)))
    if "ranx" in rivals:
        print(f"{data.name}: warming up ranx …", file=sys.stderr)
        run(command("ranx", replace(data, runs=data.runs[:1])))


# Files → six means


def field_of(plan: Plan, data: DataSet, rivals: Sequence[str]) -> list[Contender]:
    """Peers first, then cranfield with each number of threads: the turns of `interleave` keep that order."""
    theirs = [Contender(kind, command(kind, data), plan.peer_repeats) for kind in rivals if kind in plan.usable]
    ours = [
        Contender(threaded(kind, threads), command(kind, data, threads), plan.repeats)
        for kind in ("cranfield eval", "cranfield.evaluate")
        if kind in plan.usable
        for threads in plan.threads
    ]
    read = Contender("cat", ("sh", "-c", 'cat "$@" > /dev/null', "sh", *map(str, data.runs)), plan.repeats)
    one = ("env", "OPENBLAS_NUM_THREADS=1")  # without the threads of a matrix library, the least that can be had
    start = Contender("import numpy", (*one, sys.executable, "-c", "import numpy"), plan.repeats)
    return [*theirs, *ours, read, start]


def agree(data: DataSet, samples: dict[str, list[Sample]]) -> None:
    """Hold everybody's means against cranfield's."""
    made = run((sys.executable, str(SCRIPTS / "reference.py"), str(data.qrels), *map(str, data.runs)))
    reference = json.loads(made.output)
    for name, taken in samples.items():
        if name not in ("cat", "import numpy"):
            for sample in taken:
                agreement.check(name, agreement.read(sample.output), agreement.expected(name, reference))


def faster(
    what: str,
    data: str,
    ours: str,
    mine: Spread,
    against: str,
    other: Spread,
    bar: float | None = None,
    unit: str = "s",
) -> Row:
    """A row whose result is how many times ours is better."""
    ratio = other.median / mine.median
    return Row(what, data, ours, mine, against, other, ratio, measured=unit, sign="≥" if bar else "", bar=bar)


def files(plan: Plan, data: DataSet, rivals: Sequence[str]) -> list[Row]:
    """Process start → six means, with memory, thread scaling and the floor."""
    warm(data, plan.usable & set(rivals))
    samples = interleave(field_of(plan, data, rivals), data.name)
    agree(data, samples)
    time = {name: seconds(taken) for name, taken in samples.items()}
    most = max(plan.threads)
    best = threaded(plan.ours, most)
    what = "files → six means" if len(data.runs) == 1 else f"{len(data.runs)} runs → six means each"
    rows = [
        faster(what, data.name, best, time[best], kind, time[kind], FASTER.get(data.name, {}).get(kind))
        for kind in rivals
        if kind in time
    ]
    if "pytrec_eval" in time:
        rows += [
            faster(what, data.name, name, time[name], "pytrec_eval", time["pytrec_eval"])
            for name in time
            if name.startswith("cranfield") and name != best
        ]
    rows.append(floor(data, best, samples))
    few = threaded(plan.ours, min(plan.threads))
    if few != best:
        rows.append(faster("thread scaling", data.name, best, time[best], few, time[few]))
    return rows + memory(data, best, samples, rivals)


def floor(data: DataSet, best: str, samples: dict[str, list[Sample]]) -> Row:
    """Beside the least that any such program does: read the files and start NumPy."""
    least = Spread.of([a.seconds + b.seconds for a, b in zip(samples["cat"], samples["import numpy"], strict=True)])
    mine, bar = seconds(samples[best]), FLOOR.get(data.name)
    times = mine.median / least.median
    against = "cat to /dev/null + import numpy"
    return Row("above the floor", data.name, best, mine, against, least, times, sign="≤" if bar else "", bar=bar)


def memory(data: DataSet, best: str, samples: dict[str, list[Sample]], rivals: Sequence[str]) -> list[Row]:
    """The most memory held, beside the file's size and the peers'."""
    mine, size = peak(samples[best]), Spread.of([data.bytes])
    above = (mine.median - size.median) / 1e6
    what, ceiling = "peak memory", ABOVE.get(data.name)
    sign = "≤" if ceiling else ""
    name = "file size" if len(data.runs) == 1 else "size of all files"
    rows = [Row(what, data.name, best, mine, name, size, above, "MB above", "MB", sign, ceiling)]
    if most := MOST.get(data.name):
        rows = [Row(what, data.name, best, mine, name, size, mine.median / 1e6, "MB", "MB", "≤", most)]
    theirs = ((kind, peak(samples[kind])) for kind in rivals if kind in samples)
    return rows + [faster(what, data.name, best, mine, kind, other, unit="MB") for kind, other in theirs]


# Dicts in memory → means


def dicts(plan: Plan, data: DataSet) -> list[Row]:
    """cranfield and pytrec_eval by turns on the same dicts, in one process."""
    if "pytrec_eval" not in plan.usable:
        return []
    warm(data)
    print(f"{data.name}: dicts in memory …", file=sys.stderr)
    script = (peers.program(), str(SCRIPTS / "in_memory.py"), str(plan.repeats), package_home())
    answer = json.loads(run((*script, str(data.qrels), str(data.run))).output)
    rows = []
    for case, measures in (("six", "six measures"), ("judged", "bpref nDCG infAP Rprec")):
        mine, theirs = answer[case]["cranfield"], answer[case]["pytrec_eval"]
        agreement.check("pytrec_eval", [theirs["means"]], [mine["means"]])
        for what, steps, limit in (
            ("dicts → means", ("evaluate",), IN_MEMORY.get(data.name)),
            ("dicts → means, judgments indexed too", ("index", "evaluate"), INDEXED.get(data.name)),
        ):
            ours, other = (
                Spread.of([sum(parts) for parts in zip(*(side[step] for step in steps), strict=True)])
                for side in (mine, theirs)
            )
            rows.append(faster(what, data.name, f"Evaluator, {measures}", ours, "pytrec_eval", other, limit, "ms"))
    return sorted(rows, key=lambda row: row.what)


def package_home() -> str:
    """The folder that holds the package `cranfield`."""
    code = "import cranfield, pathlib; print(pathlib.Path(cranfield.__file__).parents[1])"
    return run((sys.executable, "-c", code)).output.strip()


# Starting


def start(plan: Plan, five: DataSet) -> list[Row]:
    """Process start → first number on five topics, `import cranfield`, `cranfield --help`."""
    python = sys.executable
    asked: dict[str, tuple[str, ...]] = {
        "bare": (python, "-c", "pass"),
        "numpy": (python, "-c", "import numpy"),
        "import": (python, "-c", "import cranfield"),
    }
    if "cranfield eval" in plan.usable:
        measures = ("-m", "nDCG@10 AP RR@10")
        asked["first"] = (*cranfield_command(), "eval", str(five.qrels), str(five.run), *measures)
        asked["help"] = (*cranfield_command(), "--help")
    if "ir_measures" in plan.usable:
        asked["ir_measures"] = (peers.program("ir_measures"), str(five.qrels), str(five.run), "nDCG@10 AP RR@10")
    samples = interleave([Contender(name, line, plan.starts) for name, line in asked.items()], "start")
    time = {name: seconds(taken) for name, taken in samples.items()}
    rows = []
    if "first" in time:
        what, ours = "process start → first number", "cranfield eval"
        ratio = time["first"].median / time["numpy"].median
        numpy = "python -c 'import numpy'"
        rows.append(Row(what, "five", ours, time["first"], numpy, time["numpy"], ratio, "×", "ms", "≤", FIRST))
        if "ir_measures" in time:
            rows.append(faster(what, "five", ours, time["first"], "ir_measures", time["ir_measures"], unit="ms"))
    for name, ours, bar in (("import", "import cranfield", IMPORT), ("help", "cranfield --help", HELP)):
        if name in time:
            over = (time[name].median - time["bare"].median) * 1e3
            bare = "python -c pass"
            rows.append(
                Row("over a bare interpreter", "–", ours, time[name], bare, time["bare"], over, "ms", "ms", "≤", bar)
            )
    return rows
