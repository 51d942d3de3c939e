"""Names and ids from files may hold anything; what people read, and every terminal, gets only what can be seen."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from xml.etree import ElementTree as Tree

import pytest

from cranfield import Run, compare, evaluate
from cranfield.base.results import as_json, defused
from cranfield.base.text_layout import HIDDEN, in_line, legible, width
from cranfield.compat.trec_eval import main as trec_eval
from cranfield.formats.streams import write_bytes
from cranfield.reports.charts import ENDINGS, bar_chart, heat_chart, rendered
from cranfield.reports.result_charts import CHARTS
from shell import cranfield

ODD = {
    "escape": "\x1b[2J",
    "null": "\x00",
    "backspace": "\b",
    "form-feed": "\f",
    "delete": "\x7f",
    "c1": "\x9b31m",
    "next-line": "\x85",
    "line-separator": "\u2028",
    "turned-round": "\u202egnp",
    "isolate": "\u2067",
    "no-character": "\uffff",
    "no-utf-8": "\udc9b",
}
NAMES = ("a\x1b[2Jx", "b\x1b]0;title\x07")
TOPICS = ("q\x1b[31m1", "q\x9b2", "q\u202e3", "q\x084", "=q5")


@pytest.fixture
def folder(tmp_path):
    """Judgments and two runs whose names and topics are full of orders to a terminal."""
    (tmp_path / "qrels").write_text("".join(f"{topic} 0 d{i} 1\n" for i, topic in enumerate(TOPICS)), "utf-8")
    for n, name in enumerate(NAMES):
        lines = [f"{topic} Q0 d{i + (n * i) % 2} 1 1 t\n" for i, topic in enumerate(TOPICS)]
        (tmp_path / f"{name}.run").write_text("".join(lines), "utf-8")
    return tmp_path


def runs() -> list[str]:
    return [f"{name}.run" for name in NAMES]


def seen(text: str) -> bool:
    return not re.search(HIDDEN, text)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_cannot_be_seen_is_spelt_out_as_python_spells_it(odd):
    assert seen(legible(f"bm25{odd}"))
    assert legible(f"bm25{odd}") == f"bm25{odd.encode('unicode_escape').decode()}"
    assert json.loads(as_json({"run": odd})) == {"run": odd}
    assert seen(as_json({"run": odd}))


def test_letters_lines_and_tabs_stay_but_in_a_cell():
    text = "naïve 検索 \N{ZERO WIDTH JOINER} one\n\ttwo\r\n"
    assert legible(text) == text
    assert in_line("one\n\ttwo\r") == r"one\n\ttwo\r"


def test_marks_and_joiners_take_no_room():
    assert width("e\u0301") == width("a\u200db") - 1 == width("ก\u0e31") == 1


def shown(name: str) -> dict:
    return bar_chart([(name, 0.5), ("q2", 1.0)], f"topic{name}", "gain", f"By {name}")


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_chart_of_odd_names_is_drawn(odd):
    pytest.importorskip("vl_convert")
    drawing = rendered(shown(f"q{odd}1"), "svg").decode()
    assert legible(f"q{odd}1") in "".join(Tree.fromstring(drawing).itertext())
    specification = rendered(shown(f"q{odd}1"), "json")
    assert json.loads(specification)["data"]["values"][0]["name"] == legible(f"q{odd}1")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_chart_of_odd_names_is_written_as_any_file(ending):
    if ending != "json":
        pytest.importorskip("vl_convert")
    assert rendered(shown("q\x1b[2J\x00\uffff\udc9b"), ending)


def test_a_backslash_in_a_title_is_drawn_and_not_obeyed():
    pytest.importorskip("vl_convert")
    drawing = rendered(shown("\\x1b\\"), "svg").decode()
    assert seen(drawing)
    texts = [element.text for element in Tree.fromstring(drawing).iter() if element.text]
    assert "topic\\x1b\\" in texts
    heat = rendered(heat_chart([("q", "r", 0.5)], "topic", "run", r"a\x1b", "scores"), "svg").decode()
    assert r"a\x1b" in [element.text for element in Tree.fromstring(heat).iter()]


def test_a_name_does_not_end_the_script_of_a_page():
    pytest.importorskip("vl_convert")
    page, plain = (rendered(shown(name), "html").decode() for name in ("</script><b>x", "x"))
    assert page.count("</script>") == plain.count("</script>")
    assert r"\u003c/script>\u003cb>x" in page


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_of_a_report_on_odd_names_is_drawn(folder, chart):
    pytest.importorskip("vl_convert")
    answer = cranfield("report", "qrels", *runs(), "-m", "AP", "--chart", chart, "-o", "chart.svg", folder=folder)
    assert answer.code == 0, answer.err
    assert seen((folder / "chart.svg").read_text("utf-8"))


@pytest.mark.parametrize("ending", ["html", "md", "tex", "json"])
def test_a_report_on_odd_names_holds_nothing_that_cannot_be_seen(folder, ending):
    answer = cranfield("report", "qrels", *runs(), "-m", "AP", "-o", f"report.{ending}", folder=folder)
    assert answer.code == 0, answer.err
    text = (folder / f"report.{ending}").read_text("utf-8")
    assert seen(text)
    assert "x1b" in text or "u001b" in text
    assert seen(answer.err)


@pytest.mark.parametrize(
    "command",
    [
        "eval --per-topic",
        "eval --per-topic --format json",
        "eval --by length --topics-file topics.jsonl",
        "compare",
        "compare --format json",
        "compare --format markdown",
        "leaderboard",
        "leaderboard --format markdown",
        "stability",
        "curve",
        "gate",
        "gate --format junit",
        "gate --format markdown",
        "reuse",
        "pool thin",
        "explain AP --topic q\x9b2",
        "check",
    ],
)
def test_no_command_lets_through_what_cannot_be_seen(folder, command):
    (folder / "topics.jsonl").write_text("".join(json.dumps({"id": t, "title": "a"}) + "\n" for t in TOPICS), "utf-8")
    name, *rest = command.split(" ")
    if name in ("pool", "explain"):
        name, rest = f"{name} {rest[0]}", rest[1:]
    files = runs()[:1] if name.startswith("explain") else runs()
    answer = cranfield(*name.split(), "qrels", *files, *rest, folder=folder)
    assert "Traceback" not in answer.err
    assert answer.code in (0, 1, 3), answer.err
    assert seen(answer.both)
    assert "x1b" in answer.both or "u001b" in answer.both or name == "stability"


def test_columns_stay_aligned_where_names_are_odd(folder):
    table = cranfield("eval", "qrels", *runs(), "--per-topic", "-m", "AP", folder=folder).out.split("\n\n")[0]
    assert len({line.rindex(".") for line in table.splitlines()[1:]}) == 1
    scores = evaluate({"a\x1b\tb": {"d": 1}, "é\n": {"d": 1}}, {"a\x1b\tb": {"d": 1}}, "AP").to_text(per_topic=True)
    assert r"a\x1b\tb  1.0000" in scores
    assert r"é\n       0.0000" in scores


def test_data_are_byte_exact_in_a_file_or_a_pipe(folder):
    for shape in ("csv", "tsv", "trec"):
        command = ["eval", "qrels", runs()[0], "--per-topic", "--format", shape]
        out = cranfield(*command, folder=folder).out
        assert all(topic in out for topic in TOPICS)
        cranfield(*command, "-o", "data", folder=folder)
        assert (folder / "data").read_text("utf-8") == out


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is Unix's")
@pytest.mark.parametrize(
    "command",
    [
        ["eval", "qrels", *[f"{name}.run" for name in NAMES], "--format", "csv", "--per-topic"],
        ["convert", f"{NAMES[0]}.run", "-", "--to", "trec"],
        ["fuse", *[f"{name}.run" for name in NAMES]],
        ["trec_eval", "-q", "qrels", f"{NAMES[0]}.run"],
        ["eval", "qrels", "none\x1b[2J.run"],
        ["eval", "qrels", "--\x1b[2J"],
        ["\x1b[2J"],
    ],
)
def test_a_terminal_gets_no_orders_from_data(folder, command):
    main, side = pty.openpty()
    program = [sys.executable, "-m", "cranfield", *command]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(program, stdin=side, stdout=side, stderr=side, cwd=folder, env=environment) as process:
        os.close(side)
        said = b""
        try:
            while piece := os.read(main, 4096):
                said += piece
        except OSError:  # the other side is closed
            pass
        os.close(main)
    assert process.returncode in (0, 2, 3)
    assert said
    assert b"Traceback" not in said
    assert seen(said.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))


def test_what_is_written_to_a_terminal_in_pieces_is_read_as_a_whole(monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(screen, encoding="utf-8"))
    raw = "é\x9b\tx\n".encode()
    write_bytes("-", [raw[i : i + 1] for i in range(len(raw))])
    assert screen.getvalue().decode() == "é\\x9b\tx\n"


def test_trec_eval_quotes_no_escapes_and_prints_ids_as_they_are(folder):
    out, err = io.StringIO(), io.StringIO()
    assert trec_eval([str(folder / "none\x1b[2J"), "run"], out, err) != 0
    assert r"none\x1b[2J" in err.getvalue()
    trec_eval(["-q", "-m", "map", str(folder / "qrels"), str(folder / runs()[0])], out, err)
    assert f"\t{TOPICS[0]}\t" in out.getvalue()


# spreadsheets


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-bm25", "@sum", "\tx", "\rx", "＝1", "-", "-0.5x", "=0.5"])
def test_text_that_begins_a_formula_is_defused(cell):
    assert defused(cell) == f"'{cell}"


@pytest.mark.parametrize(
    "cell", ["", "bm25", "-0.5", "+0.25", "-1e-05", "-.5", "-3", "-5%", "nan", "-inf", "a=b", "'=1"]
)
def test_numbers_and_other_text_stay_in_a_spreadsheet(cell):
    assert defused(cell) == cell


def test_a_spreadsheet_is_asked_for(folder):
    command = ["eval", "qrels", runs()[0], "-m", "AP", "--per-topic", "--format"]
    for shape, mark in (("csv", ","), ("tsv", "\t")):
        assert f"{mark}=q5{mark}1.0\n" in cranfield(*command, shape, folder=folder).out
        assert f"{mark}'=q5{mark}1.0\n" in cranfield(*command, shape, "--spreadsheet", folder=folder).out
    refused = cranfield(*command, "json", "--spreadsheet", folder=folder)
    assert (refused.code, "--spreadsheet is for --format csv and tsv, not for json" in refused.err) == (2, True)
    assert cranfield("eval", "qrels", runs()[0], "--spreadsheet", folder=folder).code == 2


def test_a_difference_below_0_is_a_number_and_a_run_called_minus_is_not():
    one, other = Run({"q": {"d": 1}, "r": {"d": 1}}, "=one"), Run({"q": {"e": 1}, "r": {"d": 1}}, "-other")
    found = compare({"q": {"d": 1}, "r": {"d": 1}}, [one, other], "AP")
    sheet = found.to_csv(spreadsheet=True)
    assert ",'=one,'-other," in sheet
    assert ",-0.5," in sheet
    assert ",=one,-other," in found.to_csv()


def test_a_report_for_a_spreadsheet(folder):
    (folder / "=1.run").write_bytes((folder / runs()[0]).read_bytes())
    command = ["report", "qrels", "=1.run", runs()[1], "-m", "AP", "-o"]
    assert cranfield(*command, "r.csv", "--spreadsheet", folder=folder).code == 0
    assert "'=1" in (folder / "r.csv").read_text("utf-8")
    refused = cranfield(*command, "r.md", "--spreadsheet", folder=folder)
    assert (refused.code, "--spreadsheet is for csv, not for md" in refused.err) == (2, True)
