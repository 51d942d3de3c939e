"""The commands besides eval, and what all commands promise: help, examples, exit codes, quiet ends."""

from __future__ import annotations

import doctest
import importlib
import io
import json
import os
import pkgutil
import pty
import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import cranfield.cli as cranfield_cli
from cranfield import PRESETS, __version__
from cranfield.base.registry import Registry
from cranfield.cli import COMMANDS, CommandRegistry, cli, commands_in
from cranfield.cli.output import PATIENCE, progress
from cranfield.evaluation.measures import REGISTRY
from cranfield.formats import FORMATS
from shell import EXAMPLES, cranfield

CONTEXT = click.Context(cli, info_name="cranfield")
CLI_PAGE = (EXAMPLES.parent / "docs" / "cli.md").read_text(encoding="utf-8")


def command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def process(*arguments: str, **options) -> subprocess.Popen:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": EXAMPLES, **options}
    return subprocess.Popen([sys.executable, "-m", "cranfield", *arguments], **options)


# promises of every command


def test_a_file_that_states_its_place_is_a_command(tmp_path):
    (tmp_path / "later.py").write_text('"""Do this."""\n\nPLACE = 20\n')
    (tmp_path / "with_.py").write_text('"""Do that.\n\nAnd how.\n"""\n\nPLACE = 3  # first\n')
    (tmp_path / "shared.py").write_text('"""No command."""\n')
    assert list(commands_in([str(tmp_path)], lambda path: Path(path).read_bytes())) == [
        ("later", "Do this.", 20, None),
        ("with", "Do that.", 3, None),
    ]


def test_a_command_is_found_in_its_own_file_and_other_spellings_among_all(monkeypatch):
    paths: list[str] = []
    usual = cranfield_cli.LOADER

    def get_data(path: str) -> bytes:
        paths.append(os.path.basename(path))
        return usual.get_data(path)

    monkeypatch.setattr(cranfield_cli, "LOADER", SimpleNamespace(get_data=get_data))
    monkeypatch.setattr(Registry, "kinds", [])
    commands = CommandRegistry("command", order=lambda each: each.place)
    assert commands.find("eval") == COMMANDS["eval"]
    assert paths == ["eval.py"]
    assert [commands.find(name) for name in ("nothing", "options", "../eval")] == [None] * 3  # options.py has no PLACE
    assert commands.find("import") == commands.find("Import") == COMMANDS["import"]
    assert list(commands.loaded()) == [name for name in COMMANDS if COMMANDS.origin(name).built_in]


def test_every_module_with_a_command_has_a_place_of_its_own():
    names = [module.name for module in pkgutil.iter_modules(cranfield_cli.__path__)]
    modules = [importlib.import_module(f"cranfield.cli.{name}") for name in names]
    commands = [module for module in modules if isinstance(getattr(module, "command", None), click.Command)]
    assert len({module.PLACE for module in commands}) == len(commands) == len(COMMANDS)
    assert [module.command for module in sorted(commands, key=lambda module: module.PLACE)] == list(
        map(command, COMMANDS)
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_is_the_first_sentence_of_the_command_s_own(name):
    text = command(name).help or ""
    assert text.split("\n")[0] == COMMANDS[name].sentence
    assert COMMANDS[name].sentence.endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example_that_runs(name):
    """It stands on docs/cli.md, and all that stands there is run by test_docs.py."""
    help_text = cranfield(name, "--help")
    assert help_text.code == 0
    [line] = [line.strip() for line in help_text.out.splitlines() if line.strip().startswith("$ ")]
    dollar, program, *_ = shlex.split(line)
    assert (dollar, program) == ("$", "cranfield")
    assert f"```console\n{line}\n```" in CLI_PAGE


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "trec_eval"])
def test_every_option_says_what_it_means(name):
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.partition("  [default")[0].endswith((".", "…")), parameter.help


WITHOUT_TABLE = ("trec_eval", "convert", "serve", "backup", "restore")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_TABLE])
def test_whatever_prints_a_table_prints_json_too(name):
    found = command(name)
    parts = list(found.commands.values()) if isinstance(found, click.Group) else [found]
    shapes = [p.type for part in parts for p in part.params if p.name == "shape"]
    assert shapes
    assert all(isinstance(shape, click.Choice) and "json" in shape.choices for shape in shapes)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_wrong_usage(name):
    if name != "trec_eval":
        assert cranfield(name, "--nonsense").code == 2


def test_help_and_version_need_no_numpy():
    code = (
        "import sys\nfrom cranfield.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'json', 'scipy', 'pyarrow', 'dataclasses'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    for arguments in (["--help"], ["--version"], []):
        answer = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr


def test_a_table_needs_no_json():
    code = (
        "import sys\nfrom cranfield.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'json', 'csv', 'scipy', 'pyarrow', 'difflib', 'glob', 'pathlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    arguments = ["eval", "qrels.txt", "bm25.run", "-m", "nDCG@10"]
    answer = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, cwd=EXAMPLES
    )
    assert answer.returncode == 0, answer.stderr


def test_the_version_is_the_package_s():
    assert cranfield("--version").out == f"cranfield {__version__}\n"


def test_help_lists_every_command():
    text = cranfield("--help").out
    assert all(f"\n  {name} " in text for name in COMMANDS)


def test_a_mistyped_command_is_guessed():
    answer = cranfield("evla")
    assert answer.code == 2
    assert "no command 'evla'; there are import, " in answer.err
    assert "; did you mean eval" in answer.err
    assert "there are import, collection, " in cranfield("xyzzy").err


# ends


def test_a_closed_pipe_is_no_error_message():
    with process("measures") as run:
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(60) == 141


def test_an_interrupt_is_quiet(tmp_path):
    fifo = tmp_path / "slow.run"
    os.mkfifo(fifo)
    # A shell that runs the tests in the background has them ignore interrupts, and commands would inherit that.
    heeds = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with process("eval", "qrels.txt", str(fifo), preexec_fn=heeds) as run:
        writer = os.open(fifo, os.O_WRONLY)  # returns when the command has opened its end
        try:
            run.send_signal(signal.SIGINT)
            assert run.wait(60) == 130
        finally:
            run.kill()  # if it has not ended, so that nobody waits for it
            os.close(writer)
        assert run.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["eval", "qrels.txt", "bm25.run"], ["measures"], ["--help"]])
def test_a_full_disk_is_one_line_and_not_success(arguments):
    with open("/dev/full", "wb") as full, process(*arguments, stdout=full) as run:
        _, err = run.communicate(timeout=60)
    assert run.returncode != 0
    assert b"No space left on device" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_can_be_written_to_and_says_when_it_is_full():
    answer = cranfield("eval", "qrels.txt", "bm25.run", "-m", "RR@10", "-o", "/dev/full")
    assert answer.code == 3
    assert answer.err == "cranfield: /dev/full: cannot be written: no space left on device\n"
    assert os.path.exists("/dev/full")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("work", ["ingest log {events}", "erase log u2", "retain log --days 1"])
def test_a_log_that_was_changed_before_the_disk_was_full_is_said_to_be(work, tmp_path):
    events = os.path.join(EXAMPLES, "online", "events.jsonl")
    if not work.startswith("ingest"):
        assert cranfield("online", "ingest", "log", events, folder=tmp_path).code == 0
    answer = cranfield("online", *work.format(events=events).split(), "-o", "/dev/full", folder=tmp_path)
    assert answer.code == 3
    full = "cranfield: /dev/full: cannot be written: no space left on device"
    assert answer.err == f"{full}; only this answer is missing: the work in log is done\n"


def on_a_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """What a command shows on a terminal of so many columns; its messages go elsewhere, and a progress bar with them."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a terminal: {error}")
    names = {"COLUMNS": str(columns), "TERM": "xterm", **environment}
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    run = process(*arguments, stdout=slave, stderr=subprocess.DEVNULL, stdin=slave, env={**kept, **names})
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert run.wait(60) == 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_no_line_beyond_its_edge():
    arguments = "eval", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP RR@10 P@5 R@5 RBP"
    shown = on_a_terminal(*arguments, columns=50)
    assert "\x1b[1mrun" in shown
    plain = on_a_terminal(*arguments, columns=50, NO_COLOR="1")
    assert "\x1b" not in plain
    table = plain.split("\nconventions")[0].splitlines()
    assert max(map(len, table)) <= 50
    assert sum(line.startswith("run ") for line in table) > 1


def test_a_description_is_folded_at_the_edge_of_the_terminal():
    for arguments in (["measures"], ["measures", "nDCG"], ["formats"]):
        shown = on_a_terminal(*arguments, columns=70, NO_COLOR="1")
        long = [line for line in shown.splitlines() if len(line) > 70 and not line.startswith("  >>>")]
        assert long == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Timer:
    """A timer that goes off when the test says so."""

    def __init__(self, seconds: float, go_off) -> None:
        assert seconds == PATIENCE
        self.go_off = go_off
        self.running = False
        TIMERS.append(self)

    def start(self) -> None:
        self.running = True

    def cancel(self) -> None:
        self.running = False

    def join(self) -> None:
        assert not self.running


TIMERS: list[Timer] = []


def test_a_bar_is_drawn_on_a_terminal_once_patience_is_over(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress("runs scored", Timer) as tell:
        tell(1, 2)
        assert TIMERS[-1].running
    assert shown.getvalue() == ""  # it was quick
    with progress("runs scored", Timer) as tell:
        TIMERS[-1].go_off()
        tell(1, 2)
    assert not TIMERS[-1].running
    assert "runs scored ━━━━━━━━━━━━━━━━━━━━──────────────────── 1/2 0:00" in shown.getvalue()
    assert shown.getvalue().endswith("\r\x1b[K")  # nothing of it is left before the answer


def test_a_bar_without_a_total_shows_the_count(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress("documents", Timer) as tell:
        TIMERS[-1].go_off()
        tell(7, None)
    assert "documents 7 0:00" in shown.getvalue()


def test_a_bar_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress("runs scored", Timer) as tell:
        TIMERS[-1].go_off()
        tell(1, 2)
    assert max(len(line) for line in shown.getvalue().split("\r\x1b[K")) < 30


def test_what_was_told_before_the_bar_was_drawn_is_shown(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress("runs scored", Timer) as tell:
        tell(3, 4)
        TIMERS[-1].go_off()
    assert "3/4" in shown.getvalue()


def test_a_terminal_that_cannot_erase_a_line_gets_no_bar(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress("runs scored") as tell:
        assert tell is None


def test_nobody_is_shown_a_bar_in_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress("runs scored") as tell:
        assert tell is None


# measures


def test_the_list_names_every_measure_once():
    pages = json.loads(cranfield("measures", "--format", "json").out)
    assert sorted(page["name"] for page in pages) == sorted(REGISTRY)
    text = cranfield("measures").out
    for page in pages:
        assert f"\n  {page['usage']} " in text


@pytest.mark.parametrize("name", REGISTRY)
def test_a_measure_is_explained_in_full(name):
    text = cranfield("measures", name).out
    page = json.loads(cranfield("measures", name, "--format", "json").out)
    cls = REGISTRY[name]
    assert page["formula"] == cls.formula
    assert page["definition"]
    for shown in (page["definition"], cls.formula, cls.reference, *cls.parameters, *cls.peers):
        assert shown in text
    assert {p["name"]: p["range"] for p in page["parameters"]} == {k: p.range for k, p in cls.parameters.items()}
    assert len(doctest.DocTestParser().get_examples(page["example"])) >= 2


def test_a_measure_is_found_by_any_of_its_names():
    wanted = cranfield("measures", "nDCG").out
    for name in ("ndcg_cut_10", "nDCG@10", "ndcg", "nDCG(gain=exp2)@5"):
        assert cranfield("measures", name).out == wanted
    assert cranfield("measures", "p").out == cranfield("measures", "P").out  # P alone lacks its k
    answer = cranfield("measures", "nDGC")
    assert answer.code == 2
    assert "did you mean nDCG" in answer.err


def test_a_family_is_found_by_its_first_letters():
    pages = json.loads(cranfield("measures", "--family", "prec", "--format", "json").out)
    assert {page["family"] for page in pages} == {"precision and recall"}
    answer = cranfield("measures", "--family", "nonsense")
    assert answer.code == 2
    assert "no family 'nonsense'; there are" in answer.err
    assert cranfield("measures", "AP", "--family", "gain").code == 2


# presets and formats


def test_presets_are_listed_with_their_answers():
    given = json.loads(cranfield("presets", "--format", "json").out)
    assert given == {name: preset.to_dict() for name, preset in PRESETS.items()}
    rows = [line.split() for line in cranfield("presets").out.splitlines()]
    assert [row[0] for row in rows] == ["preset", *PRESETS]
    assert rows[3][:4] == ["trec_eval-9", "document-descending", "single", "skip"]


def test_formats_are_listed():
    given = json.loads(cranfield("formats", "--format", "json").out)
    assert [each["name"] for each in given] == list(FORMATS)
    text = cranfield("formats").out
    assert all(each["about"] in text for each in given)


# convert


def test_convert_goes_there_and_back(tmp_path):
    for ending in ("jsonl", "csv", "json.gz", "tsv"):
        there = cranfield("convert", "bm25.run", tmp_path / f"bm25.run.{ending}")
        assert there.code == 0, there.err
        assert "run, 27 rows, 7 topics" in there.err
        scores = cranfield("eval", "qrels.txt", tmp_path / f"bm25.run.{ending}", "-m", "AP nDCG@10", "--format", "trec")
        wanted = cranfield("eval", "qrels.txt", "bm25.run", "-m", "AP nDCG@10", "--format", "trec")
        assert scores.out.splitlines()[1:] == wanted.out.splitlines()[1:]


def test_convert_merges_judgments(tmp_path):
    (tmp_path / "a.txt").write_text("q1 0 d1 1\nq1 0 d2 2\n")
    (tmp_path / "b.txt").write_text("q1 0 d2 0\nq2 0 d3 1\n")
    answer = cranfield("convert", "a.txt", "b.txt", "both.txt", folder=tmp_path)
    assert answer.code == 3
    assert not (tmp_path / "both.txt").exists()
    for how, grade in (("latest", 0), ("max", 2)):
        answer = cranfield("convert", "a.txt", "b.txt", "both.txt", "--merge", how, folder=tmp_path)
        assert answer.code == 0
        assert "note: 1 conflicting" in answer.err
        lines = (tmp_path / "both.txt").read_text().splitlines()
        assert [line.split()[-1] for line in lines] == ["1", str(grade), "1"]


def test_convert_needs_a_source_and_a_target(tmp_path):
    answer = cranfield("convert", "qrels.txt")
    assert answer.code == 2
    assert "give at least two files" in answer.err
    assert cranfield("convert", "qrels.txt", tmp_path / "x", "--kind", "nonsense").code == 2


def test_convert_writes_to_standard_output():
    answer = cranfield("convert", "qrels.txt", "-", "--to", "csv")
    assert answer.out.splitlines()[1].startswith("q1,")
    assert len(answer.out.splitlines()) == 29


# check


def test_check_s_exit_code_says_whether_there_is_an_error(tmp_path):
    assert cranfield("check", "bm25.run", "--qrels", "qrels.txt").code == 0
    bad = tmp_path / "bad.run"
    bad.write_text("q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\nq1 Q0\n")
    answer = cranfield("check", bad, "bm25.run")
    assert answer.code == 3
    assert "duplicate-documents" in answer.out
    given = json.loads(cranfield("check", bad, "--format", "json").out)
    assert given["errors"] >= 2
    assert given["findings"][0]["file"] == str(bad)


# trec_eval


def test_trec_eval_gets_its_arguments_untouched(monkeypatch):
    from cranfield.compat import trec_eval

    seen: list[list[str]] = []
    monkeypatch.setattr(trec_eval, "main", lambda argv: seen.append(list(argv)) or 7)
    for arguments in (
        ["-q", "-m", "P.5,10", "--", "a", "b"],
        ["-h"],
        ["--as", "9", "-c", "-M1000", "x", "-"],
        ["-v"],
        [],
    ):
        assert cranfield("trec_eval", *arguments).code == 7
        assert seen.pop() == arguments


def test_trec_eval_s_help_is_ours():
    answer = cranfield("trec_eval", "--help")
    assert answer.code == 0
    assert answer.out.startswith("Usage: cranfield trec_eval [TREC_EVAL'S OPTIONS] QRELS RUN\n")
    assert "--as 9" in answer.out


def test_the_package_runs_as_a_module():
    answer = subprocess.run(
        [sys.executable, "-m", "cranfield", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == f"cranfield {__version__}\n"
    assert Path(sys.executable).exists()


# columns of other names

FIELDS = "--field topic=search --field document=code --field grade=mark --field score=points".split()


@pytest.mark.parametrize(
    "words",
    [
        "eval labels.csv a.csv",
        "compare labels.csv a.csv b.csv",
        "leaderboard labels.csv a.csv b.csv",
        "gate labels.csv a.csv b.csv",
        "report labels.csv a.csv b.csv -o report.html",
        "explain RR labels.csv a.csv --topic q1",
        "check a.csv --qrels labels.csv",
        "convert labels.csv labels.trec --kind qrels",
    ],
)
def test_columns_are_named_by_field(words, tmp_path):
    (tmp_path / "labels.csv").write_text("search,code,mark\nq1,A1,3\nq1,B2,0\nq2,C3,2\nq3,A1,1\n")
    for name, points in (("a", (2, 1, 3, 1)), ("b", (1, 2, 3, 1))):
        rows = zip(("q1,A1", "q1,B2", "q2,C3", "q3,A1"), points, strict=True)
        text = "".join(f"{ids},{score}\n" for ids, score in rows)
        (tmp_path / f"{name}.csv").write_text(f"search,code,points\n{text}")
    with_fields = cranfield(*words.split(), *FIELDS, folder=tmp_path)
    assert with_fields.code in (0, 1), with_fields.err  # 1: the gate
    without = cranfield(*words.split(), folder=tmp_path)
    assert without.code == 3
    assert "--field topic=COLUMN" in without.both


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("topik=a", "no column is the 'topik'; fields name topic"),
        ("topic", "expected OURS=THEIRS, as in --field topic=query"),
    ],
)
def test_a_field_that_is_none_is_refused(field, says):
    ended = cranfield("eval", "qrels.txt", "bm25.run", "--field", field)
    assert ended.code == 2
    assert says in ended.err
