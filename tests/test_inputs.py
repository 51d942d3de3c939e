"""What every command does with paths that do not exist, options that change nothing, empty runs and ids with NUL."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pandas
import pytest

from cranfield import Qrels, Run, evaluate, read_qrels, read_run
from cranfield.base.errors import DataError, DataWarning
from cranfield.cli import cli
from cranfield.cli.options import InputPath, OutputPath
from cranfield.judging import Event
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = ("FILE", "LOG", "QRELS", "FOLDER", "PATH")


def commands(group: click.Command = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield name, group
        return
    context = click.Context(group)
    for each in group.list_commands(context):
        yield from commands(group.get_command(context, each), f"{name} {each}".strip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("inputs") / "examples"))


def test_every_option_that_names_a_path_says_whether_it_is_read_or_written():
    undecided = [
        f"{name} {option.opts[0]}"
        for name, command in commands()
        for option in command.params
        if isinstance(option, click.Option)
        and option.metavar in PATHS
        and not isinstance(option.type, (InputPath, OutputPath))
    ]
    assert undecided == []


def reading_options() -> list[tuple[str, str]]:
    return [
        (name, option.opts[0])
        for name, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, InputPath)
    ]


@pytest.mark.parametrize(("name", "flag"), reading_options())
def test_a_missing_path_is_an_error_in_every_option(name, flag, folder):
    before = sorted(path.name for path in folder.iterdir())
    command = dict(commands())[name]
    given = [
        word
        for parameter in command.params
        if parameter.required and flag not in parameter.opts
        for word in needed(parameter)
    ]
    answer = cranfield(*name.split(), *given, flag, "lables.jsonl", folder=folder)
    assert (answer.code, answer.out) == (3, "")
    assert f"lables.jsonl: no such file or directory ({flag})" in answer.err
    assert sorted(path.name for path in folder.iterdir()) == before


def needed(parameter: click.Parameter) -> list[str]:
    """Something for an argument or option that must be there."""
    value = "qrels.txt" if isinstance(parameter.type, InputPath) else "bm25.run"
    if isinstance(parameter, click.Option):
        return [parameter.opts[0], value]
    return [value] * max(1, parameter.nargs)


def test_paths_may_have_a_name_before_them_or_a_version_behind_them(folder):
    one, two = "first=bm25.run", "--other-qrels"
    assert cranfield("eval", "qrels.txt", one, folder=folder).code == 0
    assert "lables" in cranfield("stability", "qrels.txt", one, "dense.run", two, "lables.db@v1", folder=folder).err
    assert cranfield("judge", "freeze", "labels.jsonl", "v1", folder=folder).code == 0
    answer = cranfield("check", "bm25.run", "--qrels", "labels.jsonl@v1", folder=folder)
    assert "no such file or directory (--qrels)" not in answer.both


JUDGE = "pool judge --pool pool.jsonl --judgments labels.jsonl"
OF_RUNS = "is for documents of runs, not for those of --pool"
IDLE = {
    "fuse bm25.run dense.run --seed 4": "--seed is for learning: give --train-qrels",
    "pool make bm25.run --keep-judged": "--keep-judged goes with --qrels",
    "pool make bm25.run --team bm=one": "--team goes with --priority",
    f"{JUDGE} --depth 3": f"--depth {OF_RUNS}",
    f"{JUDGE} --topics topics.tsv": f"--topics {OF_RUNS}",
    f"{JUDGE} --ties input-order": f"--ties {OF_RUNS}",
    "pool simulate qrels.txt bm25.run dense.run --draws 3": "--draws goes with --sampling",
    "pool simulate qrels.txt bm25.run dense.run --sampling 0.5 --recall 0.5": "--recall does not go with --sampling",
    "pool thin qrels.txt bm25.run dense.run --holes-depth 2": "--holes-depth goes with --holes FILE",
    "reuse qrels.txt bm25.run dense.run --holes-depth 2": "--holes-depth goes with --holes FILE",
    "judge round new.jsonl --pool pool.jsonl --depth 3": "--depth goes with --strategy",
    "judge round new.jsonl --pool pool.jsonl --run bm25.run": "--run goes with --strategy",
    "judge round new.jsonl --strategy maxmean --run bm25.run --double-share 20%": "--double-share does not go with --strategy",
    "eval qrels.txt bm25.run --seed 3": "--seed goes with --bounds",
    "stability qrels.txt bm25.run dense.run --other-table topics.tsv": "--other-table goes with --table",
    "stability qrels.txt bm25.run dense.run --of halves --reliability 0.9": "--reliability is for --of generalisability",
    "stability qrels.txt bm25.run dense.run --of measures --seed 3": "--seed is for --of qrels and halves and discrimination",
    "correlate bm25.run dense.run --unjudged drop": "--unjudged goes with --qrels",
    "correlate bm25.run dense.run --allow-unjudged": "--allow-unjudged goes with --qrels",
    "design --sd 0.1 --difference 0.05 -m AP": "--measures is for judgments and runs, and --sd reads none",
    "design --sd 0.1 --difference 0.05 --ignore-case": "--ignore-case is for judgments and runs, and --sd reads none",
    "pool make bm25.run dense.run --missing skip": "--missing is for scores, and a pool has none",
    "pool statistics bm25.run dense.run --no-relevant skip": "--no-relevant is for scores, and a pool has none",
    "judge models asked.jsonl --count 3": "--count goes with --failures",
    "judge calibrate drawn.jsonl -m AP": "--measures goes with runs",
    "eval qrels.txt bm25.run --delimiter semicolon": "--delimiter is for tables such as CSV and TSV",
    "eval qrels.txt bm25.run --encoding latin-1": "--encoding is for tables such as CSV and TSV",
    "eval qrels.txt bm25.run --decimal comma": "--decimal is for tables such as CSV and TSV",
    "eval qrels.txt bm25.run --ignore-case": "--ignore-case is for topics that are named by",
    "eval qrels.txt bm25.run --topics-file topics.tsv --per-topic --ignore-case": "--ignore-case is for topics that are named by",
    "compare qrels.txt bm25.run dense.run --ignore-case": "--ignore-case is for topics that are named by",
    "gate qrels.txt bm25.run dense.run --decimal comma -o new.jsonl": "--decimal is for tables such as CSV and TSV",
    "check bm25.run --encoding latin-1": "--encoding is for tables such as CSV and TSV",
    "check bm25.run --ignore-case": "--ignore-case is for topics that are named by",
    "check bm25.run --grades 1=0": "--grades is for judgments, and none are checked",
    "check bm25.run --topics-file topics.tsv": "--topics-file joins files by the text of a query",
    "convert bm25.run new.jsonl --decimal comma": "--decimal is for tables such as CSV and TSV",
    "convert qrels.txt new.jsonl --merge max": "--merge goes with two or more files of judgments",
    "import smart new.jsonl --split test": "--split chooses one of the splits of BEIR",
    "import smart new.jsonl --from smart --delimiter semicolon": "--delimiter is for tables such as CSV and TSV",
    "import smart new.jsonl --decimal comma": "--decimal is for tables such as CSV and TSV",
    "import smart new.jsonl --ignore-case": "--ignore-case is for topics that are named by",
    "judge add new.jsonl qrels.txt --encoding latin-1": "--encoding is for tables such as CSV and TSV",
    "judge add new.jsonl qrels.txt --ignore-case": "--ignore-case is for topics that are named by",
    "eval qrels.txt bm25.run --topics-file topics.tsv": "--topics-file goes with --by, --weigh-by",
    "eval qrels.txt bm25.run -m AP --collection-size 100": "--collection-size is for measures that count",
    "eval qrels.txt bm25.run -m AP --baseline dense.run": "--baseline is for measures that compare",
    "explain AP qrels.txt bm25.run --topic q1 --baseline dense.run": "--baseline is for measures that compare with a run",
    "judge aggregate labels.jsonl --grade-ties higher": "--grade-ties is for policies that weigh the labels",
    "judge aggregate labels.jsonl --gold qrels.txt": "--gold is for policies that weigh the labels",
    "judge aggregate labels.jsonl --by adjudicated --gold qrels.txt": "--gold is for policies that weigh the labels",
    "judge freeze labels.jsonl v9 --grade-ties higher": "--grade-ties is for policies that weigh the labels of a document",
    "judge round new.jsonl --pool pool.jsonl --order priority --seed 3": "--seed goes with --sample, --sample-topics",
    "pool make bm25.run --rel 2": "--rel goes with --judgments LOG or a strategy that adapts to labels",
    "pool make bm25.run --strategy rbp --rel 2": "--rel goes with --judgments LOG or a strategy that adapts to labels",
    "pool make bm25.run --collection allotment -o new.jsonl": "--collection is for strategies that read texts",
    "online design --proportion 0.3 --relative 0.05 --correlation 0.3": "--correlation goes with --guardrail",
    "run --list -k 4": "--depth does not go with --list",
}


@pytest.mark.parametrize("typed", IDLE)
def test_an_option_that_would_change_nothing_is_refused(typed, folder):
    answer = cranfield(*typed.split(), folder=folder)
    assert (answer.code, answer.out) == (2, "")
    assert IDLE[typed] in answer.err
    assert not (folder / "new.jsonl").exists()


USED = [
    "eval shop/labels.csv ranked.csv --topics-file asked.csv --ignore-case",
    "eval qrels.txt comma.csv --decimal comma",
    "eval qrels.txt bm25.run --by category --topics-file topics.tsv --encoding utf-8",
    "eval qrels.txt bm25.run --topics-file topics.tsv --per-topic",
    "eval qrels.txt bm25.run --topics-file weights.tsv --weigh-by traffic",
    "eval qrels.txt bm25.run -m AUROC --collection-size 100",
    "eval qrels.txt bm25.run -m URisk(of=AP) --baseline dense.run",
    "eval qrels.txt bm25.run -m Utility(rest=1) --collection-size 100",
    "curve qrels.txt bm25.run --kind roc --collection-size 100",
    "stability --table scores.csv --delimiter comma --of halves --trials 10",
    "check qrels.txt bm25.run --grades 0=0,1=1,2=1,3=1",
    "check shop/labels.csv --topics-file asked.csv --ignore-case --delimiter comma",
    "convert comma.csv converted.run --decimal comma",
    "import smart latin --encoding latin-1",
    "import shop/products.csv shopped --qrels shop/labels.csv --topics shop/queries.csv --delimiter comma",
    "judge add csv.jsonl bob.csv --delimiter comma",
    "judge aggregate labels.jsonl --by majority --ties higher --gold qrels.txt",
    "judge round csv.jsonl --pool pool.jsonl --seed 3",
    "judge round csv.jsonl --name again --pool pool.jsonl --seed 3 --order priority --repeat-share 5%",
    "pool make bm25.run --rel 2 --judgments labels.jsonl",
    "pool make bm25.run --rel 2 --strategy move-to-front --next 2",
    "pool make bm25.run --depth 2 --collection allotment --format csv",
    "online design --proportion 0.3 --relative 0.05 --correlation 0.3 --guardrail wait=10/50",
]


@pytest.mark.parametrize("typed", USED)
def test_an_option_that_changes_something_is_taken(typed, folder):
    """Tables that are read through another argument count too."""
    (folder / "comma.csv").write_text("topic;document;score\nq1;doc-003;2,5\nq2;doc-019;1,5\n")
    (folder / "scores.csv").write_text("topic,one,two\n" + "".join(f"q{i},0.{i},0.3\n" for i in range(1, 7)))
    (folder / "weights.tsv").write_text("topic\ttraffic\n" + "".join(f"q{i}\t{i}\n" for i in range(1, 9)))
    (folder / "ranked.csv").write_text("topic,document,score\nRED MUG,MU011,1\n")
    queries = (folder / "shop/queries.csv").read_text().splitlines()[1:]
    (folder / "asked.csv").write_text(
        "id,query\n" + "".join(f"t{n},{row.split(',')[0]}\n" for n, row in enumerate(queries))
    )
    assert cranfield(*typed.split(), folder=folder).code == 0


EMPTY = [
    "convert empty.run out.csv",
    "fuse empty.run dense.run -o out.run",
    "pool make empty.run dense.run -o pool.jsonl",
    "pool statistics empty.run dense.run",
    "pool simulate qrels.txt empty.run dense.run --strategy depth",
    "pool thin qrels.txt empty.run dense.run",
    "reuse qrels.txt bm25.run dense.run --new empty.run",
    "eval qrels.txt empty.run",
    "explain nDCG@10 qrels.txt empty.run --topic q1",
    "curve qrels.txt empty.run",
    "stability qrels.txt empty.run dense.run --of halves --trials 5",
    "design qrels.txt empty.run dense.run",
    "judge estimate drawn.jsonl empty.run",
]


@pytest.mark.parametrize("typed", EMPTY)
def test_every_verb_reports_an_empty_run(typed, folder):
    (folder / "empty.run").write_text("# nothing was found\n" if typed.startswith("eval") else "")
    assert (
        "empty.run: the run is empty: it returns no document for any topic"
        in cranfield(*typed.split(), folder=folder).err
    )


def test_a_frame_without_rows_is_an_empty_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        with pytest.raises(DataWarning, match="the run is empty"):
            read_run(pandas.DataFrame({"topic": [], "document": [], "score": []}))
        read_run(b"q1 Q0 d 1 2.5 tag\n")


NUL = {
    "trec": b"q Q0 d 1 2.5 tag\nq Q0 e\0f 2 1.5 tag\n",
    "csv": b"topic,document,score\nq,d,2\nq,e\0f,1\n",
    "jsonl": b'{"topic": "q", "document": "e\\u0000f", "score": 1}\n',
    "json": b'{"q\\u0000": {"d": 1.0}}',
}


@pytest.mark.parametrize("content", NUL.values(), ids=NUL)
def test_nul_in_an_id_is_refused_in_every_format(content):
    with pytest.raises(DataError, match="expected ids without NUL"):
        evaluate({"q": {"d": 1}}, read_run(content), "AP")


def test_nul_in_an_id_is_refused_in_qrels_with_the_line():
    with pytest.raises(DataError, match="<bytes>:2: expected ids without NUL"):
        read_qrels(b"q 0 d 1\nq 0 e\0 1\n")


JUDGED = {"q": {f"d{i}": i % 2 for i in range(9)}}
NUL_DICTS = {
    "many judged": ({"q": {"d1": 1.0, "d2\0": 2.0}}, "document 'd2.x00'"),
    "few judged": ({"q": {f"e{i}": 1.0 for i in range(99)} | {"long enough\0d": 2.0}}, "document 'long enough.x00d'"),
    "whole numbers": ({"q": {"d1": 1, "\0": 2}}, "document '.x00'"),
    "lone surrogates": ({"q": {"d1": 1.0, "\udcff\0": 2.0}}, r"document '.udcff.x00'"),
    "a topic that is not judged": ({"q": {"d1": 1.0}, "r": {"d\0": 1.0}}, "document 'd.x00'"),
    "a topic": ({"q": {"d1": 1.0}, "r\0": {"d": 1.0}}, "topic 'r.x00'"),
}


@pytest.mark.parametrize(("run", "found"), NUL_DICTS.values(), ids=NUL_DICTS)
def test_nul_in_an_id_is_refused_in_dicts_that_are_scored(run, found):
    for given in (run, {"mine": run}):
        with pytest.raises(DataError, match=f"^(run|mine): expected ids without NUL, found {found}"):
            evaluate(JUDGED, given, "AP")
        with pytest.raises(DataError, match=f"expected ids without NUL, found {found}"):
            evaluate(JUDGED, given, "AP", collapse="#")  # another way, by the table


@pytest.mark.parametrize("make", [Run, Qrels])
def test_nul_in_an_id_is_refused_in_mappings_and_frames(make):
    with pytest.raises(DataError, match=r"expected ids without NUL, found document 'e\\x00'"):
        make({"q": {"d": 1, "e\0": 2}})
    with pytest.raises(DataError, match=r"expected ids without NUL, found topic '\\x00q'"):
        make({"\0q": {"d": 1}})
    value = "score" if make is Run else "grade"
    with pytest.raises(DataError, match="found document 'e.x00'"):
        evaluate(
            *(
                pandas.DataFrame({"topic": ["q"], "document": ["e\0"], value: [1]}) if each is make else {"q": {"d": 1}}
                for each in (Qrels, Run)
            ),
            "AP",
        )


def test_nul_in_an_id_of_a_collection_or_a_table_of_topics_is_refused(folder):
    (folder / "nul.jsonl").write_text('{"id": "d\\u0000", "text": "x"}\n')
    (folder / "nul.tsv").write_text("topic\tquery\nq\0x\thello\n")
    answer = cranfield("import", "nul.jsonl", "made", "--from", "jsonl", folder=folder)
    assert (answer.code, "without NUL" in answer.err, (folder / "made").exists()) == (3, True, False)
    answer = cranfield("eval", "qrels.txt", "bm25.run", "--topics-file", "nul.tsv", "--per-topic", folder=folder)
    assert answer.code == 3
    assert r"nul.tsv: expected ids without NUL, found topic 'q\x00x'" in answer.err


def test_nul_in_an_event_is_refused():
    with pytest.raises(DataError, match="expected text without NUL as document"):
        Event(topic="q", document="d\0", grade=1)
