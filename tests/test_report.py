"""Reports as HTML, Markdown, LaTeX, JSON, CSV and charts: what they say, and that they can be made again."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cranfield import compare, evaluate, report
from cranfield.base.errors import ConventionError, DataError, MissingExtraError
from cranfield.base.text_layout import in_bytes
from cranfield.comparison.cautions import Caution
from cranfield.evaluation.scores import Scores
from cranfield.reports.html import compact_lists
from cranfield.reports.report_content import report_of
from cranfield.reports.result_charts import CHARTS, figure
from cranfield.reports.tables import board_table, comparison_table, leaderboard_table, letter, summary
from cranfield.reports.writers import CHART_ENDINGS, TEXT_ENDINGS, escaped, render
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from pathlib import Path

    from cranfield.reports.report_content import Report

ASKED = ("report", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP RR@10")
EVIL = "<b>&_|#$%{x}\\^~`*\"'[]"


def scored(values: Any, names: list[str] | None = None, measure: str = "AP", **options: Any) -> Scores:
    return Scores.from_table(values, names, None, measure, **options)


@pytest.fixture(scope="module")
def three() -> Report:
    """Three systems: good beats both others on each of twelve topics; fair and poor differ little."""
    topics = np.linspace(0.1, 0.6, 12)
    jitter = np.array([0.01, -0.012] * 6)
    values = np.stack([topics, topics + jitter, topics + 0.3 + jitter / 2], axis=1)
    return report_of(compare(scored(values, ["poor", "fair", "good"]), tests="t"))


@pytest.fixture(scope="module")
def wide() -> Report:
    """Ten systems, 250 topics, three measures."""
    rng = np.random.default_rng(1)
    easy = rng.beta(2, 2, (250, 1))
    tables = {name: np.clip(easy + rng.normal(0, 0.2, (250, 10)), 0, 1) for name in ("nDCG@10", "AP", "RR@10")}
    scores = Scores.from_table(tables, [f"a-system-of-the-year-{r}" for r in range(10)])
    return report_of(compare(scores, tests="t"))


class Outline(HTMLParser):
    """What a page is made of: elements in order, with their attributes and the text inside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.stack: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self.stack.append(tag)
        self.inside.setdefault(tag, []).append("")

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] in self.inside:
            self.inside[self.stack[-1]][-1] += data

    def handle_endtag(self, tag: str) -> None:
        while self.stack and self.stack.pop() != tag:
            pass

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "report.html"
    assert cranfield(*ASKED, "-o", target).code == 0
    return target.read_text(encoding="utf-8")


# the page


def test_style_and_script_are_allowed_by_their_hashes_and_nothing_else_is(page: str) -> None:
    outline = Outline(page)
    policy = next(meta["content"] for meta in outline.of("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")
    for text in re.findall(r"<style>(.*?)</style>", page, re.DOTALL) + re.findall(
        r"<script>(.*?)</script>", page, re.DOTALL
    ):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert not any("style" in attributes for _, attributes in outline.elements)
    assert not any(name.startswith("on") for _, attributes in outline.elements for name in attributes)


def test_the_page_refers_to_nothing_outside_of_it(page: str) -> None:
    addresses = [
        attributes[name] for _, attributes in Outline(page).elements for name in ("src", "href") if attributes.get(name)
    ]
    assert addresses
    assert all(address.startswith(("#", "data:image/svg+xml")) for address in addresses if address)
    assert "url(" not in page
    assert "@import" not in page


def test_every_id_is_there_once_and_every_reference_leads_to_one(page: str) -> None:
    outline = Outline(page)
    ids = Counter(attributes["id"] for _, attributes in outline.elements if "id" in attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    wanted = [a["href"][1:] for a in outline.of("a") if a.get("href")]  # type: ignore[index]
    for _, attributes in outline.elements:
        wanted += (attributes.get("aria-labelledby") or "").split()
    assert set(wanted) <= set(ids)


def test_tables_charts_and_controls_have_names(page: str) -> None:
    outline = Outline(page)
    assert len(outline.of("caption")) == len(outline.of("table")) > 5
    assert all(head.get("scope") in ("col", "row") for head in outline.of("th"))
    charts = [chart for chart in outline.of("svg") if chart.get("class") == "chart"]
    assert len(charts) == len(outline.of("desc")) > 5
    assert all(chart.get("role") == "img" for chart in charts)
    assert all(sample.get("aria-hidden") == "true" for sample in outline.of("svg") if sample not in charts)
    assert page.count("<label") == len(outline.of("select")) + len(outline.of("input"))
    assert [tag for tag, _ in outline.elements if re.fullmatch(r"h\d", tag)][:2] == ["h1", "h2"]
    assert len(outline.of("h1")) == len(outline.of("main")) == 1
    assert outline.of("html")[0].get("lang") == "en"


def test_the_page_holds_all_that_was_promised(page: str) -> None:
    heads = [
        "Verdict",
        "Leaderboard",
        "What limits this",
        "Comparison",
        "Two systems",
        "Topics",
        "Precision and recall",
    ]
    assert re.findall(r"<h2[^>]*-h\">([^<]+)<", page) == [*heads, "Distributions", "How this was made"]
    for file in ("qrels.txt", "bm25.run", "dense.run"):
        assert hashlib.sha256((EXAMPLES / file).read_bytes()).hexdigest() in page
    for word in ("document-descending", "randomisation", "seed", "numpy", "scipy"):
        assert word in page
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    assert data["systems"] == ["dense", "bm25"]
    assert data["values"][0][0][5] == 0.0
    assert len(data["sentences"]) == 3


def test_ten_runs_on_250_topics_stay_under_two_megabytes(wide: Report) -> None:
    text = render(wide, "html")
    assert len(text) < 2_000_000
    assert text.count(b"<tr data-topic=") == 250
    assert text.count(b"<tr data-measure=") == 3 * 45


def shelf(folder: Path, systems: int, topics: int, returned: int = 15) -> tuple[Path, list[Path]]:
    """A collection and its runs, in which hardly two lists name the same document."""
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdefghijklmno"), 7)) for _ in range(500)]
    ids = [f"clueweb12-{i // 1000:04d}tw-{i % 100:02d}-{i:05d}" for i in range(systems * topics * returned)]
    spread = iter(rng.permutation(len(ids)).tolist())
    folder.mkdir()
    judged, lines = [], {f"a-system-of-the-year-{s}": [] for s in range(systems)}
    for topic in range(topics):
        for run in lines.values():
            found = [ids[next(spread)] for _ in range(returned)]
            run += [f"{topic} Q0 {document} {i + 1} {99 - i} tag" for i, document in enumerate(found)]
            judged += [f"{topic} 0 {document} {rng.integers(0, 4)}" for document in found[:3]]
    title, text = " ".join(words[:9]), " ".join(words[:60])
    with open(folder / "documents.jsonl", "w") as file:
        file.writelines(json.dumps({"id": each, "title": title, "text": text}) + "\n" for each in ids)
    asked = [
        {"id": str(t), "title": " ".join(rng.choice(words, 5)), "kind": ["brand", "need"][t % 2]} for t in range(topics)
    ]
    (folder / "topics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    (folder / "qrels.txt").write_text("\n".join(judged) + "\n")
    for name, run in lines.items():
        (folder / f"{name}.run").write_text("\n".join(run) + "\n")
    return folder, [folder / f"{name}.run" for name in lines]


@pytest.mark.slow
def test_lists_of_ten_runs_on_250_topics_keep_the_page_small(tmp_path: Path) -> None:
    folder, runs = shelf(tmp_path / "shelf", 10, 250)
    whole = report(folder, runs, tests="t", resamples=100).to_html()
    bare = report(folder, runs, tests="t", resamples=100, texts=False).to_html()
    assert len(bare.encode()) < 2_000_000
    assert len(bare.encode()) < len(whole.encode()) < 5_000_000
    assert '"depth":10,' in bare


def near(page: str) -> dict[str, Any]:
    return json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])["near"]


def test_the_page_states_its_size_and_so_does_the_command(tmp_path: Path) -> None:
    folder, runs = shelf(tmp_path / "shelf", 2, 4)
    answer = cranfield("report", folder, *runs, "-o", tmp_path / "r.html")
    size = in_bytes((tmp_path / "r.html").stat().st_size)
    assert re.search(
        rf"r\.html \({size}\): \d+ kB of it what documents say \(--no-texts leaves that out\)\n", answer.err
    )
    assert f"it holds {size}, " in (tmp_path / "r.html").read_text()
    assert near((tmp_path / "r.html").read_text())["texts"]
    answer = cranfield("report", folder, *runs, "--no-texts", "-o", tmp_path / "r.html")
    assert "what documents say" not in answer.err
    assert near((tmp_path / "r.html").read_text())["texts"] is None


def test_the_lists_of_a_page_against_explain(page: str) -> None:
    lists = near(page)
    scores = evaluate(EXAMPLES / "qrels.txt", [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"], "nDCG@10 AP RR@10")
    for m, measure in enumerate(scores.measures):
        known = lists["arithmetic"][m]
        for s, run in enumerate(lists["runs"]):
            for t, topic in enumerate(scores.topics):
                told = scores.explain(topic, measure, run)
                steps = [step for step in told.steps if step.document is not None][: lists["depth"]]
                shown = [lists["ids"][int(i)] for i in lists["lists"][s][t].split()]
                assert shown[: len(steps)] == [step.document for step in steps]
                grades = ["-" if step.grade is None else f"{step.grade:g}" for step in steps]
                assert lists["grades"][s][t].split()[: len(steps)] == grades
                assert told.worked.endswith(known["lines"][s][t])
                for step, row in zip(steps, known["steps"][s][t].split(), strict=False):
                    values = [] if row == "-" else [float(text) for text in known["rows"][int(row)] if text]
                    assert values == pytest.approx(list(step.columns.values()), abs=5.1e-5)


def test_queries_stand_beside_topics_and_categories_are_columns(tmp_path: Path) -> None:
    folder, runs = shelf(tmp_path / "shelf", 2, 6)
    text = report(folder, runs, "AP").to_html()
    asked = json.loads((folder / "topics.jsonl").read_text().splitlines()[3])
    assert f'<span class="id">3</span><span class="q">{asked["title"]}</span>' in text
    assert '<optgroup label="kind"><option value="0 brand">brand</option>' in text
    (tmp_path / "t.tsv").write_text("topic\tquery\n0\twhat is asked\n")
    assert (
        '<span class="q">what is asked</span>'
        in report(folder, runs, "AP", topics_file=str(tmp_path / "t.tsv")).to_html()
    )


def test_cautions_stand_below_the_leaderboard_and_beyond_five_kinds_are_folded(wide: Report) -> None:
    kinds = [Caution(f"kind-{i}", f"beware of {i} and 'q1'") for i in range(7)]
    many = replace(wide, comparison=replace(wide.comparison, cautions=[*kinds, Caution("kind-0", "beware of 0 again")]))
    text = render(many, "html").decode()
    assert text.index("Runs by nDCG@10") < text.index("beware of 0")
    shown, folded = text.split("<details><summary>2 more</summary>")
    assert "beware of 4" in shown
    assert "beware of 5" in folded
    assert "<summary>1 more of this kind</summary><ul><li>beware of 0 again</li></ul>" in shown


def test_the_most_different_pair_is_shown_first_and_pairs_go_one_way(wide: Report) -> None:
    means = {name: wide.mean(name, "nDCG@10") for name in wide.systems}
    assert wide.shown_pair() == (min(means, key=means.__getitem__), max(means, key=means.__getitem__))
    order = wide.systems
    assert all(order.index(pair.one) < order.index(pair.other) for pair in wide.pairs)


def test_a_report_in_python_says_where_it_was_written(tmp_path: Path) -> None:
    files = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    made = report(EXAMPLES / "qrels.txt", files, "nDCG@10 AP", tmp_path / "r.html", tests="t", title="two")
    assert repr(made) == f"<Reported two: written to {tmp_path / 'r.html'}>"
    assert (tmp_path / "r.html").read_text() == made.to_html()
    assert made._repr_html_().startswith('<iframe title="two" sandbox="allow-scripts"')
    assert [file.role for file in made.report.inputs] == ["qrels", "run bm25", "run dense"]
    assert made.write(tmp_path / "r.md").path == str(tmp_path / "r.md")
    held = report({"q1": {"a": 1}}, {"x": {"q1": ["a"]}, "y": {"q1": ["b", "a"]}}, "RR")
    assert near(held.to_html())["ids"] == ["a", "b"]
    assert held.comparison.scores.runs == ["x", "y"]


def test_many_pairs_are_hidden_until_asked_for_and_few_are_not(wide: Report, three: Report) -> None:
    assert 'data-script hidden><label><input type="checkbox" id="every-pair">' in render(wide, "html").decode()
    assert 'id="every-pair" checked>' in render(three, "html").decode()


def test_the_page_needs_no_extra(monkeypatch: pytest.MonkeyPatch, three: Report) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert render(three, "html").startswith(b"<!doctype html>")
    with pytest.raises(MissingExtraError):
        render(three, "svg", "ranks")


def test_of_thousands_of_pairs_those_with_the_reference_are_listed() -> None:
    values = np.random.default_rng(8).random((5, 46))
    report = report_of(compare(scored(values), tests="t"))
    assert (len(report.pairs), len(report.listed)) == (1035, 45)
    page = render(report, "html").decode()
    assert page.count("<tr data-measure=") == 45
    assert f"Only the 45 pairs with {report.reference} are listed" in page
    assert "have all 1,035." in page
    assert len(render(report, "csv").splitlines()) == 1036


# what it says


def test_the_summary_says_who_is_ahead_and_how_sure_that_is(three: Report) -> None:
    assert three.systems == ["good", "poor", "fair"]
    assert summary(three) == [
        "This report compares 3 systems on 12 topics by AP.",
        "By AP, good has the highest mean, 0.6495; it is significantly better than each of the 2 systems compared with it.",
    ]


def test_a_leader_that_beats_none_is_said_to(three: Report) -> None:
    rng = np.random.default_rng(0)
    report = report_of(compare(scored(rng.random((8, 3)), ["a", "b", "c"]), tests="t"))
    assert "significantly better than none of the 2 systems" in summary(report)[1]


def test_no_run_is_named_first_if_all_score_the_same() -> None:
    report = report_of(compare(scored([[1, 1, 1]] * 8, ["a", "b", "c"]), tests="t"))
    assert summary(report)[1:] == ["By AP, all systems have the same mean, 1.0000."]


def test_where_lower_is_better_the_lowest_leads() -> None:
    values = [[5, 1], [6, 2], [7, 2], [5, 1]]
    report = report_of(compare(scored(values, ["slow", "fast"], "seconds", lower_is_better=True), tests="t"))
    assert report.systems == ["fast", "slow"]
    assert report.better("seconds", "slow", "fast") == 1
    said = summary(report)
    assert said[1] == "There are too few topics to say which run is better: 4, and it takes 6."
    assert "fast has the lowest (lower is better) mean" in said[2]
    assert leaderboard_table(report).rows[0][2].best
    chart = figure(report, "differences")
    assert chart.vega_lite()["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["fast better"]


def test_raised_letters_name_the_systems_that_are_beaten(three: Report) -> None:
    rows = {row[1].text: (row[0].text, row[2].marks, row[2].best) for row in leaderboard_table(three).rows}
    assert rows == {"good": ("a", "bc", True), "poor": ("b", "", False), "fair": ("c", "", False)}


def test_letters_go_on_after_z() -> None:
    assert [letter(i) for i in (0, 25, 26, 27, 52)] == ["a", "z", "aa", "ab", "ba"]


def test_the_reference_is_the_first_of_every_pair_that_it_is_in(three: Report) -> None:
    assert three.reference == "good"
    for pair in three.pairs:
        assert pair.other != "good"
        assert pair.difference == pytest.approx(pair.mean_other - pair.mean_one)
        assert pair.low <= pair.difference <= pair.high
        gains = three.values(pair.other, "AP") - three.values(pair.one, "AP")
        assert (pair.wins, pair.losses) == ((gains > 0).sum(), (gains < 0).sum())
    assert [row[12].text for row in comparison_table(three).rows] == ["not settled", "▼ one better", "▼ one better"]


def test_a_one_sided_question_is_not_turned_round() -> None:
    values = np.stack([np.linspace(0, 0.5, 9), np.linspace(0.2, 0.9, 9), np.linspace(0.1, 0.6, 9)], axis=1)
    report = report_of(compare(scored(values, ["a", "b", "c"]), tests="t", alternative="greater"))
    assert report.pairs == report.comparison.pairs


def test_micro_averages_stand_in_the_leaderboard_as_on_the_board_of_its_own() -> None:
    files = [EXAMPLES / "bm25.run", EXAMPLES / "dense.run"]
    table = board_table(report_of(compare(EXAMPLES / "qrels.txt", files, "R@5 AP")), "R@5")
    shown = {row[0].text: row[table.head.index("micro(R@5)")].text for row in table.rows}
    assert shown == {"bm25": "0.9474", "dense": "0.7895"}
    assert "micro(AP)" not in table.head


def test_a_baseline_is_the_reference() -> None:
    values = np.random.default_rng(2).random((9, 4))
    report = report_of(compare(scored(values, list("abcd")), tests="t", baselines="c"))
    assert report.reference == "c"
    assert report.shown_pair()[0] == "c"
    assert set(figure(report, "intervals").y.domain) == {"a", "b", "d"}
    with pytest.raises(DataError, match="no system 'x'; there are"):
        report.shown_pair("x", "c")


def test_runs_of_one_system_are_one_system() -> None:
    values = np.random.default_rng(4).random((20, 5))
    scores = scored(values, ["old", "new.1", "new.2", "other.1", "other.2"])
    report = report_of(compare(scores, groups=["new=new.*", "other=other.*"]))
    assert sorted(report.systems) == ["new", "old", "other"]
    assert report.mean("new", "AP") == pytest.approx(values[:, 1:3].mean())
    assert '<th scope="row" class="n">group new</th>' in render(report, "html").decode()
    assert {key["one"] for key in comparison_table(report).keys} <= {"new", "old", "other"}
    assert any("one by one" in note for note in board_table(report, "AP").notes)


def test_equal_runs_get_no_verdict_and_a_reason() -> None:
    values = np.full((6, 2), 0.5)
    report = report_of(compare(scored(values, ["a", "b"])))
    row = comparison_table(report).rows[0]
    assert row[11].text not in ("▲ other better", "▼ one better")
    for ending in TEXT_ENDINGS:
        assert render(report, ending)


def test_one_topic_and_undefined_values_are_reported_not_hidden() -> None:
    one = report_of(compare(scored([[0.1, 0.2]], ["a", "b"])))
    some = np.random.default_rng(5).random((6, 2))
    some[2, 0] = np.nan
    gap = report_of(compare(scored(some, ["a", "b"])))
    for each in (one, gap):
        for ending in TEXT_ENDINGS:
            assert b"nan" not in render(each, ending).lower().replace(b"nano", b"")
    assert "–" in render(gap, "html").decode()


def test_the_leaderboard_shows_rank_intervals_and_tiers(three: Report) -> None:
    table = board_table(three, "AP")
    assert table.head[:6] == ["run", "AP", "rank", "ranks", "first in redraws", "tier"]
    assert [cell.text for cell in table.rows[0][2:6]] == ["1", "1", "1.00", "a"]
    assert "95 % intervals for all ranks at once (simultaneous" in table.notes[0]
    assert any("fewer than 50: first in redraws is a weak hint" in note for note in table.notes)


# files


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_the_same_command_gives_the_same_bytes(tmp_path: Path, ending: str) -> None:
    files = [tmp_path / "x" / f"r.{ending}", tmp_path / "y" / f"r.{ending}"]
    for file in files:
        shutil.copytree(EXAMPLES, file.parent)
        assert cranfield(*ASKED, "-o", file.name, folder=file.parent).code == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_printed_command_makes_the_file_again(tmp_path: Path) -> None:
    here = tmp_path / "x"
    shutil.copytree(EXAMPLES, here)
    more = ("--baseline", "bm25", "--test", "t", "--test", "sign", "--lenient", "--drop-self", "--alpha", "0.1")
    assert cranfield(*ASKED, *more, "--title", "it's", "-o", "a b.json", folder=here).code == 0
    first = (here / "a b.json").read_bytes()
    (here / "a b.json").unlink()
    program, *arguments = shlex.split(json.loads(first)["command"])
    assert program == "cranfield"
    assert {*more, "it's"} <= set(arguments)
    assert cranfield(*arguments, folder=here).code == 0
    assert (here / "a b.json").read_bytes() == first


def test_markdown_tables_are_tables_whatever_the_names() -> None:
    values = np.random.default_rng(6).random((7, 2))
    report = report_of(compare(scored(values, [EVIL, "b|c"]), tests="t"), title=EVIL)
    lines = render(report, "md").decode().splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 5
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert widths <= {len(board_table(report, "AP").head) + 1, len(comparison_table(report).head) + 1, 5}
    assert lines[0] == "# \\<b\\>&\\_\\|\\#$%\\{x\\}\\\\^\\~\\`\\*\"'\\[\\]"


def tex_problems(text: str) -> list[str]:
    """What would not compile: unbalanced groups and environments, rows with other numbers of cells, bare letters."""
    problems = []
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    plain = re.sub(r"\\[{}\\&#$%_]", "", body)
    if plain.count("{") != plain.count("}"):
        problems.append("braces")
    if plain.count("$") % 2:
        problems.append("dollars")
    begun, ended = re.findall(r"\\begin\{(\w+)\}", body), re.findall(r"\\end\{(\w+)\}", body)
    if Counter(begun) != Counter(ended):
        problems.append("environments")
    for columns, rows in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", body, re.DOTALL):
        lines = re.findall(r"^(.*) \\\\$", rows, re.MULTILINE)
        problems += [line for line in lines if len(re.findall(r"(?<!\\)&", line)) != len(columns) - 1]
    if re.search(r"(?<!\\)[#%]", plain) or not plain.isascii():
        problems.append("letters")
    return problems


def test_latex_has_booktabs_marks_and_the_best_in_bold(three: Report) -> None:
    text = render(three, "tex").decode()
    assert tex_problems(text) == []
    for word in (r"\toprule", r"\midrule", r"\bottomrule", r"\textbf{0.6495}$^{\mathrm{bc}}$", r"$^{\mathrm{*}}$"):
        assert word in text


def test_latex_is_sound_whatever_the_names(wide: Report) -> None:
    values = np.random.default_rng(6).random((7, 2))
    report = report_of(compare(scored(values, [EVIL, "[b] {c"]), tests="t"), title=f"{EVIL}\nnext")
    assert tex_problems(render(report, "tex").decode()) == []
    assert tex_problems(render(wide, "tex").decode()) == []
    text = render(wide, "tex").decode()
    assert "Only the 27 pairs with" in text
    assert "are listed, out of 135." in text
    assert escaped("a_b & 5 % of $x^2 {#} ~\\") == (
        r"a\_b \& 5 \% of \$x\textasciicircum{}2 \{\#\} \textasciitilde{}\textbackslash{}"
    )
    assert tex_problems("a & b_ {") != []


ODD = [EVIL, "[b] {c", "*star -- ``q'' ?`", "Zoë Łódź ørsted", "β-Ω ≤ 5 µs", "検索 🙂 έ þ", "a\x1b[2J\tb"]


@pytest.fixture(scope="module")
def odd() -> Scores:
    """Seven systems with names that TeX would take for something else; the last is far better, the first far worse."""
    rng = np.random.default_rng(6)
    steps = np.array([-0.2, 0, 0, 0, 0, 0, 0.2])
    tables = {name: 0.5 + steps + rng.normal(0, 0.1, (30, 7)) for name in ("AP", "nDCG@10")}
    return Scores.from_table(tables, ODD)


def test_means_alone_have_letters_against_the_baselines(odd: Scores) -> None:
    report = report_of(compare(odd, baselines=[ODD[1]], tests="t"))
    text = render(report, "tex", latex="means").decode()
    assert text.count(r"\begin{table}") == 1
    assert "tab:pairs" not in text
    rows = {line.split(" & ")[1]: line for line in text.splitlines() if line.endswith(r"\\")}
    assert rows[escaped(ODD[1])].startswith("a & ")
    assert rows[escaped(ODD[6])].count(r"$^{\mathrm{a}}$") == 2  # better by both measures
    assert rows[escaped(ODD[6])].count(r"\textbf{") == 2
    assert rows[escaped(ODD[0])].count(r"$^{\mathrm{\downarrow a}}$") == 2  # and worse
    assert r"$^" not in rows[escaped(ODD[2])]
    assert "that the run beats significantly; after $\\downarrow$, baselines that beat it (t test, Holm over 12" in text


def test_pairs_alone_name_the_one_baseline_once(odd: Scores) -> None:
    report = report_of(compare(odd, baselines=[ODD[1]], tests="t"))
    text = render(report, "tex", latex="pairs").decode()
    assert "tab:runs" not in text
    assert r"One is [b] \{c throughout." in text
    assert "measure & other & difference" in text
    both = render(report, "tex").decode()
    assert text.partition("\\begin")[2] in both
    with pytest.raises(ConventionError, match="latex must be one of means, pairs, both"):
        render(report, "tex", latex="all")


def test_the_command_writes_the_part_asked_for(tmp_path: Path) -> None:
    files = [EXAMPLES / name for name in ("qrels.txt", "bm25.run", "dense.run")]
    means = cranfield("report", *files, "-m", "AP", "--latex", "means")
    assert means.out.count(r"\begin{table}") == 1
    assert cranfield("report", *files, "-m", "AP", "--latex", "both", "-o", tmp_path / "x.tex").code == 0
    assert (tmp_path / "x.tex").read_text().count(r"\begin{table}") == 2
    wrong = cranfield("report", *files, "--latex", "means", "-o", tmp_path / "x.html")
    assert (wrong.code, "--latex is for tex, not for html" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a_b%c&d#e^f~g\\h{i}", r"a\_b\%c\&d\#e\textasciicircum{}f\textasciitilde{}g\textbackslash{}h\{i\}"),
        ("é ü ñ ő ç ß", r"\'{e} \"{u} \~{n} \H{o} \c{c} \ss{}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("e\u0301", r"\'{e}"),
        ("αΩ", r"$\alpha$$\Omega$"),
        ("検", r"\ifdefined\Umathchar 検\else[U+691C]\fi{}"),
    ],
)
def test_latex_prints_names_as_they_are_labelled(text: str, said: str) -> None:
    assert escaped(text) == said


@pytest.mark.slow
def test_latex_compiles_with_pdflatex(tmp_path: Path, wide: Report, odd: Scores) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-base and texlive-latex-recommended)")
    against = report_of(compare(odd, baselines=ODD[:2], tests="t"), title=f"{EVIL}\n検")
    every = [chr(code) for code in (*range(32, 127), *range(0xA1, 0x250), *range(0x370, 0x400), 0x691C, 0x1F642)]
    parts = {
        "a": render(against, "tex"),
        "b": render(wide, "tex"),
        "c": render(against, "tex", latex="means"),
        "d": render(report_of(compare(odd, tests="t")), "tex", latex="pairs"),
        "e": r"\par ".join(escaped("".join(every[i : i + 9])) for i in range(0, len(every), 9)).encode(),
    }
    for name, data in parts.items():
        (tmp_path / f"{name}.tex").write_bytes(data)
    body = "".join(rf"\input{{{name}}}\clearpage" for name in parts)
    start = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}\listoftables"
    (tmp_path / "doc.tex").write_text(rf"{start}{body}\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "doc.tex"]
    for _ in range(2):  # the second time with the list of tables, which repeats the captions
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100)
        assert answer.returncode == 0, answer.stdout[-2000:].decode(errors="replace")
    assert b"Missing character" not in (tmp_path / "doc.log").read_bytes()


def test_json_holds_everything_and_csv_a_row_a_pair(three: Report) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(render(three, "json"), parse_constant=refuse)
    assert found["summary"] == summary(three)
    assert len(found["comparison"]["pairs"]) == 3
    assert [row["run"] for row in found["leaderboards"]["AP"]["rows"]] == ["good", "poor", "fair"]
    rows = list(csv.DictReader(io.StringIO(render(three, "csv").decode())))
    assert len(rows) == 3
    assert {"measure", "one", "other", "p"} <= set(rows[0])


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_is_written_alone(tmp_path: Path, chart: str) -> None:
    target = tmp_path / "chart.vl.json"
    assert cranfield(*ASKED, "--chart", chart, "-o", target).code == 0
    spec = json.loads(target.read_text())
    assert spec["$schema"].endswith("vega-lite/v5.json")
    assert spec["title"]["text"]
    answer = cranfield(*ASKED, "--chart", chart, "--pair", "dense", "bm25", "-o", tmp_path / "chart.svg")
    assert answer.code == 0, answer.err
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_the_bars_of_a_chart_are_the_differences_in_order(tmp_path: Path) -> None:
    target = tmp_path / "d.vl.json"
    asked = ("--chart", "differences", "--pair", "dense", "bm25", "-o", target)
    assert cranfield("report", "qrels.txt", "bm25.run", "dense.run", "-m", "AP", *asked).code == 0
    rows = json.loads(target.read_text())["data"]["values"]
    values = [row["value"] for row in rows]
    assert values == sorted(values, reverse=True)
    scores = evaluate(EXAMPLES / "qrels.txt", [EXAMPLES / "bm25.run"], "AP")
    assert rows[0] == {"name": "q6", "value": pytest.approx(scores["AP", "q6"]), "sign": "bm25 better"}


def test_a_chart_goes_to_png_and_pdf(tmp_path: Path) -> None:
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        target = tmp_path / f"c.{ending}"
        assert cranfield(*ASKED, "--chart", "scatter", "-o", target).code == 0
        assert target.read_bytes().startswith(start)


def test_a_report_of_a_table_of_scores_has_no_curves(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("topic,a,b\n1,0.1,0.3\n2,0.4,0.5\n3,0.2,0.1\n")
    assert cranfield("report", "--table", tmp_path / "t.csv", "-m", "AP", "-o", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Precision and recall" not in page
    assert hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest() in page
    answer = cranfield("report", "--table", tmp_path / "t.csv", "--chart", "pr", "-o", tmp_path / "r.svg")
    assert (answer.code, "no precision-recall curves" in answer.err) == (3, True)
    assert not (tmp_path / "r.svg").exists()


def test_without_a_file_the_report_is_markdown_on_standard_output() -> None:
    answer = cranfield(*ASKED)
    assert answer.code == 0
    assert answer.out.startswith("# bm25 and dense on qrels\n")
    assert "caution: 7 topics are few" in answer.err
    assert cranfield(*ASKED, "--format", "csv").out.startswith("measure,one,other,")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["-o", "r.docx"], 2, "-o FILE must end in .html, .md, .tex, .json, .csv, .svg, .png, .pdf, .vl.json"),
        (
            ["-o", "r.html", "--chart", "pr"],
            2,
            "--chart NAME and a file that ends in .svg, .png, .pdf, .vl.json go together",
        ),
        (["-o", "r.svg"], 2, "--chart NAME and a file that ends in"),
        (["-o", "r.svg", "--chart", "pie"], 2, "--chart must be one of differences, scatter, pr"),
        (["-o", "r.svg", "--chart", "scatter", "--pair", "bm25", "splade"], 3, "no system 'splade'; there are"),
        (["-o", "r.html", "--digits", "-1"], 2, "--digits"),
        (["-", "-o", "r.html"], 3, "give files, found - (standard input)"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(
    tmp_path: Path, more: list[str], code: int, said: str
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "x")
    before = sorted(path.name for path in (tmp_path / "x").iterdir())
    answer = cranfield(*ASKED, *more, folder=tmp_path / "x")
    assert answer.code == code, answer.err
    assert said in answer.err
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == before


def test_endings_and_charts_fit_together(three: Report) -> None:
    with pytest.raises(ConventionError, match="a report is written as .html, .md, .tex, .json, .csv, .svg"):
        render(three, "doc")
    with pytest.raises(ConventionError, match="go together, found .svg"):
        render(three, "svg")
    with pytest.raises(ConventionError, match="chart must be one of differences"):
        figure(three, "pie")
    with pytest.raises(DataError, match="no measure 'RR'"):
        figure(three, "ranks", "RR")
    assert CHART_ENDINGS == ("svg", "png", "pdf", "vl.json")


def test_the_report_of_trec_covid_against_the_track_s_means(shared: Path, tmp_path: Path) -> None:
    folder = shared / "trec-covid-r3"
    runs = [folder / "runs" / name for name in ("covidex.r3.t5_lr", "r3.fusion1", "sab20.3.rocchio")]
    asked = ["-m", "nDCG@10 P@5", "--test", "t", "-o", tmp_path / "r.json"]
    answer = cranfield("report", folder / "qrels.covid-round3.txt", *runs, *asked)
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "r.json").read_text())
    with open(folder / "leaderboard.csv", newline="") as file:
        published = {row["run"]: row for row in csv.DictReader(file)}
    board = found["leaderboards"]["nDCG@10"]["rows"]
    assert [row["run"] for row in board] == ["covidex.r3.t5_lr", "sab20.3.rocchio", "r3.fusion1"]
    for row in board:
        assert row["means"]["nDCG@10"] == pytest.approx(float(published[row["run"]]["ndcg@10"]), abs=5.1e-5)
        assert row["means"]["P@5"] == pytest.approx(float(published[row["run"]]["P@5"]), abs=5.1e-5)


def test_a_document_below_the_top_of_the_other_run_has_its_rank_and_only_one_not_returned_is_gone() -> None:
    qrels = {"q": {"d00": 1, "d37": 1}}
    deep = {"q": {f"d{i:02}": -float(i) for i in range(40)}}
    turned = {"q": {"d37": 2.0, "only": 1.0, "d00": 0.5}}
    scores = evaluate(qrels, {"deep": deep, "turned": turned}, "AP")
    found = compact_lists(report_of(compare(scores)))
    assert found is not None
    ids = {name: str(number) for number, name in enumerate(found["ids"])}
    deeper = dict(zip(found["runs"], found["deeper"], strict=True))
    assert deeper["deep"] == [f"{ids['d37']}:38"]  # at rank 38, and "only" nowhere
    assert deeper["turned"] == [""]


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with clicks."""
    from clicked import clicked
    from workbench import example

    return clicked(example(tmp_path_factory.mktemp("report") / "garden"), searches=900)


def with_clicks(garden: Path, *options: str) -> Any:
    runs = "garden/runs/bm25.run", "garden/runs/fusion.run"
    return cranfield("report", "garden", *runs, "-m", "AP", *options, folder=garden.parent)


def test_clicks_of_a_report_against_the_summary_of_the_log(garden: Path) -> None:
    from cranfield.experiments.clicks.click_summary import click_summary
    from cranfield.formats.runs_and_qrels import read_qrels
    from cranfield.inputs.topics import topics_of_collection

    runs = "garden/runs/bm25.run", "garden/runs/fusion.run"
    asked = ("report", "garden", *runs, "-m", "AP", "--clicks", "garden/events", "--click-model", "UBM", "--format")
    values = json.loads(cranfield(*asked, "json", folder=garden.parent).out)
    judgments, topics = read_qrels(str(garden / "qrels.txt")), topics_of_collection(str(garden))
    expected = click_summary(garden / "events", judgments.to_dict(), topics.queries, model="UBM")
    assert values["clicks"] == expected.to_dict()
    [source] = [file for file in values["inputs"] if file["role"] == "clicks"]
    assert source["path"] == "garden/events"
    assert source["size"] > 1000
    text = cranfield(*asked, "md", folder=garden.parent).out
    assert "## Clicks" in text
    assert expected.verdict()[0] in text


def test_a_page_with_clicks_has_two_more_charts_and_the_same_bytes_again(garden: Path) -> None:
    for name in ("one.html", "two.html"):
        answer = with_clicks(garden, "--clicks", "garden/events", "-o", name)
        assert answer.code == 0, answer.both
    one, two = ((garden.parent / name).read_text() for name in ("one.html", "two.html"))
    assert one.replace("one.html", "two.html") == two
    section = one.split('<section id="clicks"')[1].split("</section>")[0]
    assert section.count('<svg class="chart"') == 2
    assert section.count("<table") == 2
    assert '<section id="clicks"' not in (with_clicks(garden, "--format", "html").out)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--clicks", "garden/events", "--format", "csv"), 2, "--clicks is for html, md, json, not for csv"),
        (("--click-model", "PBM"), 2, "--click-model is for --clicks LOG"),
        (("--clicks", "garden/runs"), 3, "not an event log"),
        (("--clicks", "garden/events", "--click-model", "Nope"), 2, "Nope"),
    ],
)
def test_clicks_that_cannot_be_shown_are_refused(garden: Path, options: tuple[str, ...], code: int, said: str) -> None:
    answer = with_clicks(garden, *options)
    assert said in answer.both
    assert answer.code == code, answer.both
