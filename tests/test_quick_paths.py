"""Quick ways through what is usual, and the careful ways beside them: where the quick one answers, both say the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from cranfield.base import run as run_room
from cranfield.base import top_k as tops_room
from cranfield.base.errors import CranfieldError
from cranfield.base.kernels import Order, Strings, twin
from cranfield.base.kernels.table import RowTable
from cranfield.formats import FORMATS, read_run
from cranfield.formats.files import delimited, json_text

native = pytest.importorskip(
    "cranfield.base.kernels.native", reason="the C core is not built here", exc_type=ImportError
)

ODD = [
    "", " ", '"', '""', "é", "\\u00e9", "\\", "1e3", "-0", "+1", ".5", "5.", "nan", "inf", "1_000", "0x1f", "1" * 25, "1" * 400,
    "\t", ",", ";", "\r", "{", "}", "[1]", "null", "true", "\ud800", "\x00", "\x1b", "q 1", " q", "01", "1e400", "-1e-400",
]  # fmt: skip


def rows(rng: random.Random, odd: float) -> list[list[str]]:
    """Topic, document, value and label, some of them odd."""
    answer = []
    for i in range(rng.randint(1, 12)):
        value = rng.choice(
            [f"{rng.uniform(-9, 99):.{rng.randint(0, 17)}f}", str(rng.randint(-3, 9)), repr(rng.random())]
        )
        row = [f"q{i // 4}", f"d{i}", value, "tag"]
        if rng.random() < odd:
            row[rng.randrange(4)] = rng.choice(ODD)
        answer.append(row)
    return answer


def plain(table: RowTable) -> list[object]:
    columns = (table.topic.tolist(), [repr(value) for value in table.value.tolist()], table.label.tolist())
    return [list(table.topics), list(table.documents), list(table.labels), *columns]


def outcome(read, *given) -> object:
    try:
        return plain(read(*given))
    except CranfieldError as error:
        return type(error), str(error)


def quick_equals_careful(content: bytes, kind: str, name: str, quick, careful) -> bool:
    """Whether the quick way answered; if so, the careful one must give the same."""
    try:
        found = quick(content, kind, name)
    except CranfieldError as error:
        found = error
    if found is None:
        return False
    expected = outcome(careful, content, kind, name)
    assert (plain(found) if isinstance(found, RowTable) else (type(found), str(found))) == expected, content
    return True


@pytest.mark.parametrize("name", ["csv", "tsv"])
@pytest.mark.parametrize("odd", [0.0, 0.15])
def test_separated_values_are_read_alike_by_the_quick_and_the_careful_way(name, odd):
    rng, form, quick = random.Random(f"{name} {odd}"), FORMATS[name], 0
    names = {"run": ["topic", "document", "score", "tag"], "qrels": ["topic", "document", "relevance", "iteration"]}
    for _ in range(600):
        kind = rng.choice(["run", "qrels"])
        end = rng.choice(["\n", "\r\n"])
        lines = [names[kind], *rows(rng, odd)]
        if rng.random() < 0.05:
            lines.insert(rng.randrange(len(lines)), rng.choice([[""], ["a", "b"], list("abcdefg")]))
        text = end.join(form.gaps[0].join(line) for line in lines) + rng.choice([end, ""])
        content = text.encode("utf-8", "surrogatepass")
        quick += quick_equals_careful(
            content,
            kind,
            "file",
            lambda raw, kind, where: form._quick(form._open(raw, where), kind),
            lambda raw, kind, where: form._careful(form._open(raw, where), kind, lenient=False),
        )
    assert quick > (300 if odd == 0 else 100)


@pytest.mark.parametrize("odd", [0.0, 0.15])
def test_objects_in_lines_are_read_alike_by_the_quick_and_the_careful_way(odd, monkeypatch):
    rng, form, quick = random.Random(f"json {odd}"), FORMATS["jsonl"], 0

    def careful(raw: bytes, kind: str, where: str) -> RowTable:
        with monkeypatch.context() as patched:
            patched.setattr(json_text, "quick_table", lambda *_: None)
            return form.read(raw, kind, where)

    for _ in range(600):
        kind = rng.choice(["run", "qrels"])
        names = ["topic", "document", "score" if kind == "run" else "relevance", "extra"]
        rng.shuffle(names)
        lines = []
        for topic, document, value, label in rows(rng, odd):
            value = value if rng.random() > odd / 4 else rng.choice(ODD)
            fields = {"topic": json.dumps(topic), "document": json.dumps(document, ensure_ascii=rng.random() < 0.5)}
            fields |= {
                "score": value,
                "relevance": value,
                "extra": rng.choice([json.dumps(label), "1", "null", "true"]),
            }
            gap = rng.choice(["", " "])
            lines.append("{" + f",{gap}".join(f'"{name}":{gap}{fields[name]}' for name in names) + "}")
        text = "\n".join(lines) + rng.choice(["\n", "", "\n\n"])
        quick += quick_equals_careful(text.encode("utf-8", "surrogatepass"), kind, "file", form._quick, careful)
    assert quick > (300 if odd == 0 else 60)


def runs_in_text(rng: random.Random) -> bytes:
    scores = [f"{rng.uniform(0, 9):.{rng.randint(0, 6)}f}" for _ in range(rng.randint(1, 200))]
    lines = [f"q{rng.randint(0, 3)} Q0 d{i} {i} {rng.choice([score, scores[0]])} tag" for i, score in enumerate(scores)]
    if rng.random() < 0.5:
        lines.sort(key=lambda line: line.split()[0])
    if rng.random() < 0.1:
        lines.insert(
            rng.randrange(len(lines)), rng.choice(["q1 Q0 d0 1 1 tag", "q1 Q0 x 1 oops tag", "q1 Q0 x", "", lines[0]])
        )
    return ("\n".join(lines) + "\n").encode()


def test_the_tops_of_a_run_are_the_same_from_the_kernel_and_from_the_ranking(monkeypatch):
    rng, quick = random.Random(3), 0
    for _ in range(300):
        content, depth = runs_in_text(rng), rng.choice([None, 1, 3, 10, 1000])
        order = Order(ties=rng.choice(["descending", "ascending", "input"]))

        def found(depth=depth, order=order, content=content) -> object:
            try:
                return [
                    np.asarray(part).tolist() if not isinstance(part, Strings) else list(part)
                    for part in top(content, order, depth)
                ]
            except CranfieldError as error:
                return type(error), str(error)

        def top(content, order, depth):
            return tops_room.top(read_run(content), depth, order)

        mine = found()
        with monkeypatch.context() as patched:
            patched.setattr(run_room, "top_documents", twin.top_documents)
            assert found() == mine, content
        quick += (
            native.top_documents(content, read_run(b"q Q0 d 1 1 t\n").source.layout, order, depth) is not None
            if isinstance(mine, list)
            else 0
        )
    assert quick > 100


def test_dicts_become_the_same_columns_either_way(monkeypatch):
    rng, quick = random.Random(5), 0
    odd = [True, 3, 10**30, 2.5, -0.0, float("inf"), np.float64(1.5), np.int32(2), "1", None, float("nan")]
    for _ in range(600):
        source = {
            rng.choice([f"q{i}", "é", "\ud800", ""]): {
                f"d{j}": rng.choice(odd) if rng.random() < 0.1 else rng.random() for j in range(rng.randint(0, 5))
            }
            for i in range(rng.randint(0, 4))
        }
        value = rng.choice(["score", "grade"])
        mine = outcome(run_room.table_of, source, "a run", value)
        quick += native.rows_of_mapping(source, value == "grade") is not None
        with monkeypatch.context() as patched:
            patched.setattr(run_room, "rows_of_mapping", twin.rows_of_mapping)
            assert outcome(run_room.table_of, source, "a run", value) == mine, source
    assert quick > 200


def test_lines_of_a_run_are_written_alike_by_both_kernels():
    rng = np.random.default_rng(0)
    scores = [
        *rng.normal(0, 1, 500),
        *10.0 ** rng.integers(-320, 308, 500),
        0.0,
        -0.0,
        1.0,
        1e16,
        1e22,
        123456789.125,
        np.inf,
        -np.inf,
    ]
    names = Strings.of([b"q1", "é".encode(), b"\xff", b"x" * 300])
    columns = [
        rng.integers(0, 4, len(scores)).astype(np.int32),
        rng.integers(0, 4, len(scores)),
        np.arange(1, len(scores) + 1, dtype=np.int32),
        np.array(scores),
        rng.integers(0, 4, len(scores)).astype(np.int32),
    ]
    assert native.run_lines(names, names, names, columns) == twin.run_lines(names, names, names, columns)


def test_what_the_quick_way_leaves_is_told_by_the_careful_one():
    good = b"topic,document,score\nq,a,1\n"
    csv = delimited.CsvFormat()
    assert csv._quick(csv._open(good, "x"), "run") is not None
    for bad in (good + b"q,b,oops\n", good + b"q,b\n", good + b'q,"b",1\n', good + b"q,b,nan\n"):
        assert csv._quick(csv._open(bad, "x"), "run") is None


def test_a_command_loads_nothing_heavy_before_it_says_what_it_needs():
    code = "import sys; from cranfield.cli.output import reporting_files\nwith reporting_files(): print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
