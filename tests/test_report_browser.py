"""The report in a real browser: offline, without a message, by keyboard, in the dark and on paper.

Chromium comes from the system (Debian: chromium, fonts-dejavu-core); Playwright only drives it. Where there is none the
tests are skipped with the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cranfield as bundled
from browsers import EVIL
from cranfield import compare
from cranfield.evaluation.scores import Scores
from cranfield.reports.report_content import Report
from cranfield.reports.result_charts import figure
from cranfield.reports.writers import render
from shell import cranfield


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report as the command writes it, of two runs."""
    target = tmp_path_factory.mktemp("small") / "report.html"
    answer = cranfield("report", "qrels.txt", "bm25.run", "dense.run", "-m", "nDCG@10 AP RR@10", "-o", target)
    assert answer.code == 0, answer.err
    return target


@pytest.fixture(scope="module")
def odd() -> Report:
    """Systems with dangerous names; a measure that may be any number, one where lower is better, and gaps."""
    rng = np.random.default_rng(3)
    bounded, free = rng.beta(2, 2, (70, 3)), rng.normal(5, 40, (70, 3))
    bounded[4, 1] = free[8, 2] = np.nan
    bounded[5] = 0.25
    topics = [EVIL, *(f"q{t}" for t in range(1, 70))]
    scores = Scores.from_table({"AP": bounded, "seconds": free}, [EVIL, "b & c", "d"], topics, lower_is_better=True)
    return Report(
        compare(scores, tests=["t", "sign", "wilcoxon", "bayes", "bootstrap", "anova", "friedman"]), title=EVIL
    )


@pytest.fixture(scope="module")
def odd_page(odd: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("odd") / "report.html"
    target.write_bytes(render(odd, "html"))
    return target


class Opened:
    """A page, what it asked of the network, and what it said."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.requests: list[str] = []
        self.said: list[str] = []
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def texts(self, query: str) -> list[str]:
        return self.page.locator(query).all_inner_texts()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_offline_without_a_request_or_a_message(browser: Any, small: Path, scheme: str) -> None:
    with Opened(browser, small, color_scheme=scheme) as opened:
        widths = opened.page.locator("svg.chart:visible").evaluate_all("all => all.map(one => one.clientWidth)")
        assert len(widths) == 6
        assert min(widths) > 300
        assert opened.requests == [small.as_uri()]
        assert opened.said == []


def test_dangerous_names_are_names(browser: Any, odd_page: Path) -> None:
    with Opened(browser, odd_page) as opened:
        assert opened.page.locator("h1").inner_text() == EVIL
        assert EVIL in opened.page.locator("#topics tbody th").all_inner_texts()
        opened.page.select_option("#one", label="d")
        opened.page.select_option("#other", label=EVIL)
        assert opened.page.locator("#topics-difference").inner_text().startswith(EVIL)
        assert opened.page.locator("#differences title").first.text_content().startswith(f"AP: {EVIL} against d")
        assert (len(opened.requests), opened.said) == (1, [])


def test_the_policy_forbids_what_is_not_in_the_page(browser: Any, small: Path) -> None:
    with Opened(browser, small) as opened:
        refused = opened.page.evaluate(
            """() => new Promise((done) => {
                document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.body.append(script);
                setTimeout(() => done("nothing"), 1000);
            })"""
        )
        assert refused.startswith("script-src")
        assert opened.page.evaluate("window.ran") is None


@pytest.mark.parametrize("measure", ["AP", "seconds"])
def test_the_script_draws_what_python_draws(browser: Any, odd: Report, odd_page: Path, measure: str) -> None:
    same = """([id, text]) => {
        const wanted = new DOMParser().parseFromString(text, "text/html").body.innerHTML;
        const drawn = document.getElementById(id).innerHTML;
        return wanted === drawn ? "" : `${wanted}\n≠\n${drawn}`;
    }"""
    roomy = "for (const id of ['differences', 'scatter']) document.getElementById(id).style.minWidth = '60rem'"
    with Opened(browser, odd_page) as opened:
        opened.page.evaluate(roomy)  # where there is less room, the script draws less wide
        opened.page.select_option("#measure", label=measure)
        for one, other in ((EVIL, "b & c"), ("d", "b & c"), ("b & c", "d")):
            opened.page.select_option("#one", label=one)
            opened.page.select_option("#other", label=other)
            pair = odd.pair(measure, one, other)
            assert pair is not None
            said = f"{odd.sentence(pair)}."
            assert opened.page.locator("#sentence").inner_text() == said
            for name in ("differences", "scatter"):
                chart = figure(odd, name, measure, one, other)
                difference = opened.page.evaluate(same, [name, chart.svg(name, said) + chart.legend()])
                assert difference == "", name


def test_a_column_sorts_by_keyboard(browser: Any, small: Path) -> None:
    with Opened(browser, small) as opened:
        head = opened.page.locator("#topics thead th").nth(1)
        assert head.get_attribute("aria-sort") == "descending"
        falling = opened.texts("#topics tbody td:nth-child(2)")
        head.locator("button").focus()
        opened.page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        rising = opened.texts("#topics tbody td:nth-child(2)")
        opened.page.keyboard.press("Space")
        assert head.get_attribute("aria-sort") == "descending"
        values = [float(text.replace("−", "-")) for text in rising]
        assert values == sorted(values)
        assert falling == rising[::-1]
        assert opened.page.locator("#topics th[aria-sort]").count() == 1


def test_names_sort_as_people_sort_them(browser: Any, odd_page: Path) -> None:
    with Opened(browser, odd_page) as opened:
        opened.page.locator("#topics thead button").first.click()
        shown = opened.texts("#topics tbody th")
        assert shown[1:] == [f"q{t}" for t in range(1, 70)]


def test_topics_are_filtered_by_keyboard(browser: Any, odd_page: Path) -> None:
    with Opened(browser, odd_page) as opened:
        opened.page.locator("#filter").focus()
        opened.page.keyboard.type("Q1")
        shown = opened.page.locator("#topics tbody tr:visible th").all_inner_texts()
        assert sorted(shown) == ["q1", *(f"q{t}" for t in range(10, 20))]
        assert opened.page.locator("#filtered").inner_text() == "11 of 70 topics"
        opened.page.locator("#filter").fill("")
        assert opened.page.locator("#topics tbody tr:visible").count() == 70


def test_a_measure_chooses_tables_charts_and_pairs(browser: Any, small: Path) -> None:
    with Opened(browser, small) as opened:
        opened.page.locator("#measure").focus()
        opened.page.keyboard.press("ArrowDown")
        assert opened.page.locator("#leaderboard table:visible caption").all_inner_texts() == ["Runs by AP"]
        assert opened.page.locator("#topics-measure").inner_text() == "AP"
        assert " AP " in opened.page.locator("#sentence").inner_text()
        assert opened.page.locator("#pairs tbody tr:visible").count() == 1


def test_the_two_systems_are_never_the_same(browser: Any, odd_page: Path) -> None:
    with Opened(browser, odd_page) as opened:
        for name in ("d", "b & c", EVIL):
            opened.page.select_option("#one", label=name)
            assert opened.page.input_value("#one") != opened.page.input_value("#other")
        one = opened.page.input_value("#one")
        opened.page.locator("#swap").click()
        assert opened.page.input_value("#other") == one


def test_the_first_stop_of_the_keyboard_skips_to_the_verdict(browser: Any, small: Path) -> None:
    with Opened(browser, small) as opened:
        opened.page.keyboard.press("Tab")
        skip = opened.page.locator(":focus")
        assert skip.inner_text() == "Skip to the verdict"
        assert skip.bounding_box()["x"] >= 0
        opened.page.keyboard.press("Enter")
        assert opened.page.url.endswith("#summary")


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("chosen", ["light", "dark"])
def test_text_and_marks_stand_out_from_the_paper(browser: Any, small: Path, chosen: str) -> None:
    with Opened(browser, small, color_scheme="dark" if chosen == "light" else "light") as opened:
        opened.page.select_option("#theme", chosen)
        style = "([query, name]) => getComputedStyle(document.querySelector(query))[name]"
        paper = luminance(opened.page.evaluate(style, ["body", "backgroundColor"]))
        assert (paper < 0.1) == (chosen == "dark")
        wanted = {
            "#summary p": 7,
            ".lead": 4.5,
            "a:not(.skip)": 4.5,
            ".note": 4.5,
            ".chart text": 4.5,
            ".fill.c0": 3,
            ".fill.c1": 3,
        }
        for query, least in wanted.items():
            name = "fill" if query.startswith((".fill", ".chart")) else "color"
            ink = luminance(opened.page.evaluate(style, [query, name]))
            light, dark = max(ink, paper), min(ink, paper)
            assert (light + 0.05) / (dark + 0.05) >= least, query


def test_paper_is_white_and_has_no_controls(browser: Any, small: Path) -> None:
    with Opened(browser, small, color_scheme="dark") as opened:
        opened.page.emulate_media(media="print")
        style = "getComputedStyle(document.body)"
        assert opened.page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
        assert opened.page.evaluate(f"{style}.color") == "rgb(0, 0, 0)"
        assert not opened.page.locator("#theme, #filter, nav").first.is_visible()
        assert opened.page.locator("#differences svg.chart").bounding_box()["width"] > 200
        assert opened.page.pdf().startswith(b"%PDF")


RUNS = Path(bundled.__file__).parent / "collections" / "bundled" / "allotment" / "runs"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a collection with texts."""
    target = tmp_path_factory.mktemp("shop") / "report.html"
    runs = [RUNS / f"{name}.run" for name in ("bm25", "phrase", "fusion")]
    answer = cranfield("report", "allotment", *runs, "--test", "t", "-m", "nDCG@10 AP", "-o", target)
    assert answer.code == 0, answer.err
    return target


def test_a_topic_opens_side_by_side_by_keyboard_and_escape_returns(browser: Any, shop: Path) -> None:
    with Opened(browser, shop) as opened:
        page = opened.page
        page.locator("#topics .open[tabindex='0']").focus()
        page.keyboard.press("ArrowDown")
        topic = page.locator(":focus").inner_text()
        assert page.locator("#topics .open[tabindex='0']").count() == 1
        page.keyboard.press("Enter")
        assert page.locator("#beside").is_visible()
        assert page.locator("#beside-h .id").inner_text() == topic
        assert page.locator("#beside .side").count() == 2
        assert page.locator(":focus").evaluate("one => one.matches(':focus-visible')")
        page.keyboard.press("Escape")
        assert not page.locator("#beside").is_visible()
        assert page.locator(":focus").inner_text() == topic
        assert (opened.requests, opened.said) == ([shop.as_uri()], [])


def test_both_lists_show_titles_grades_moves_and_the_sum(browser: Any, shop: Path) -> None:
    with Opened(browser, shop) as opened:
        page = opened.page
        page.select_option("#one", label="bm25")
        page.locator("#filter").fill("blossom end")
        page.locator("#topics tbody tr:visible").click()
        assert page.locator("#beside-h").inner_text() == "101 blossom end rot"
        left = page.locator(".side.one tbody tr")
        assert left.count() == 10
        assert left.first.locator(".title").inner_text()
        assert left.first.locator(".grade").inner_text() == "3"
        assert page.locator(".side.one .worked").inner_text() == "DCG / ideal DCG = 6.6848 / 8.7612 = 0.7630"
        assert page.locator(".joins path").count() > 3
        moves = page.locator(".side td.move").evaluate_all("cells => cells.map((one) => [one.innerText, one.title])")
        deep = {mark: hint for mark, hint in moves if mark.startswith("at ")}
        assert deep  # documents that the other run has further down are not gone
        assert all(hint == f"below rank 10 of the other: rank {mark[3:]}" for mark, hint in deep.items())
        assert all(hint == "not returned by the other" for mark, hint in moves if mark in ("gone", "new"))
        left.first.focus()
        assert page.locator(".side.other tr.lit").count() == page.locator(".joins path.lit").count() == 1
        page.locator("#close").click()
        page.select_option("#measure", label="AP")
        page.locator("#topics .open:visible").click()
        assert "sum of precisions / relevant documents = 4.1933 / 7" in page.locator(".side.one").inner_text()


def test_topics_are_chosen_by_who_is_better_and_go_on_from_one_to_the_next(browser: Any, shop: Path) -> None:
    with Opened(browser, shop) as opened:
        page = opened.page
        page.select_option("#side", "down")
        shown = page.locator("#topics tbody tr:visible td:nth-child(2)").all_inner_texts()
        assert shown
        assert all(text.startswith("−") for text in shown)
        page.select_option("#side", "")
        page.locator("#topics .open").first.click()
        assert page.locator("#previous").is_disabled()
        page.locator("#next").click()
        assert page.locator("#beside-where").inner_text() == "2 of 74 topics"
        second = page.locator("#beside-h .id").inner_text()
        assert second == page.locator("#topics .open").nth(1).text_content()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "dark"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [(390, "light"), (1280, "dark"), (1280, "light")]),
    ],
)
def test_nothing_scrolls_sideways_and_no_label_is_cut(browser: Any, shop: Path, width: int, scheme: str) -> None:
    cut = """() => [...document.querySelectorAll("svg.chart")].filter((one) => one.clientWidth).flatMap((one) => {
        const frame = one.getBoundingClientRect();
        return [...one.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
                || box.bottom > frame.bottom + 1;
        }).map((text) => text.textContent);
    })"""
    with Opened(browser, shop, viewport={"width": width, "height": 800}, color_scheme=scheme) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.page.evaluate(cut) == []
        widths = opened.page.locator("svg.chart:visible").evaluate_all("all => all.map(one => one.clientWidth)")
        assert max(widths) <= width
        opened.page.locator("#topics .open").first.click()
        inside = (
            "(() => { const box = document.getElementById('beside'); return box.scrollWidth - box.clientWidth; })()"
        )
        assert opened.page.evaluate(inside) <= 0
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_a_screen_needs_no_sideways_scrolling(browser: Any, odd_page: Path, width: int) -> None:
    with Opened(browser, odd_page, viewport={"width": width, "height": 800}) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_is_whole_without_scripts(browser: Any, small: Path) -> None:
    with Opened(browser, small, java_script_enabled=False) as opened:
        assert not opened.page.locator("#theme").is_visible()
        assert opened.page.locator("#pairs tbody tr:visible").count() == 3
        assert opened.page.locator("#leaderboard table:visible").count() == 3
        assert opened.page.locator("#differences rect").first.is_visible()
        assert opened.said == []
