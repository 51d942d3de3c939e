"""Charts: one description, drawn by Vega for files and by our own marks for the page, and the same in both."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.evaluation.curves import curves
from cranfield.reports.charts import (
    Chart,
    bar_chart,
    heat_chart,
    histogram_chart,
    interval_chart,
    line_chart,
    rendered,
    scatter_chart,
    strip_chart,
    ticks,
)
from cranfield.reports.marks import DASHES, SHAPES
from cranfield.reports.result_charts import chart
from cranfield.reports.svg import COLOURS

SPACE = "{http://www.w3.org/2000/svg}"
rng = np.random.default_rng(7)
CHARTS: dict[str, Chart] = {
    "line": line_chart(
        {"t": ([10, 20, 50], [0.2, 0.4, 0.9]), "sign": ([10, 20, 50], [0.1, 0.3, 0.7])},
        "topics",
        "power",
        "Power",
        y_domain=(0, 1),
        bands={"sign": ([0.05, 0.2, 0.6], [0.2, 0.4, 0.8])},
        rules={"80 %": 0.8},
    ),
    "interval": interval_chart([("dense", 0.04, 0.03, 0.05), ("none", *[math.nan] * 3)], "difference", "T", rule=0.0),
    "ranks": interval_chart([("a", 1, 1, 2), ("b", 2, 1, 3)], "rank", "T", domain=(0.5, 3.5), whole=True),
    "bar": bar_chart([("q1", 0.2), ("q2", 0.0), ("q3", -0.1)], "topic", "gain", "T", signs=("up", "equal", "down")),
    "many bars": bar_chart([(f"q{i}", float(v)) for i, v in enumerate(rng.normal(size=200))], "topic", "gain", "T"),
    "scatter": scatter_chart([("q1", 0.2, 0.4), ("q2", 0.9, math.nan)], "bm25", "dense", "T", domain=(0, 1)),
    "histogram": histogram_chart(rng.normal(size=99), "z", "T", rules={"mean": 0}),
    "strip": strip_chart(
        {"a": [0.1, 0.4, math.nan], "b": [0.3]}, {"a": (0.1, 0.2, 0.3, 0.25), "b": (0.3,) * 4}, "AP", "T"
    ),
    "heat": heat_chart([("q1", "a", 0.5), ("q2", "a", math.nan)], "topic", "run", "AP", "T"),
    "odd names": bar_chart([("<&>\"'", 0.5), ("検索", -0.5)], "to<pic>", "a & b", "<script>", signs=("x", "y", "z")),
}


def marks(text: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(text).iter() if "mark" in element.get("class", "").split()]


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_drawn_by_vega_and_for_a_page(name: str) -> None:
    drawing = CHARTS[name]
    json.dumps(drawing.vega_lite(), allow_nan=False)
    assert rendered(drawing, "svg").startswith(b"<svg")
    drawn = ET.fromstring(drawing.svg("id"))
    numbers = re.findall(r"-?\d+\.?\d*", drawn.get("viewBox", ""))
    assert [float(n) > 0 for n in numbers[2:]] == [True, True]
    assert drawn.get("role") == "img"
    assert drawn.find(f"{SPACE}title") is not None or drawn.find("title") is not None
    assert marks(drawing.svg("id"))


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_drawn_outside_of_a_chart(name: str) -> None:
    text = CHARTS[name].svg("id")
    assert "nan" not in re.sub(r">[^<]*<", "><", text).lower()
    drawn = ET.fromstring(text)
    _, _, width, height = map(float, drawn.get("viewBox", "").split())
    for mark in marks(text):
        if mark.tag.endswith("rect"):
            assert 0 <= float(mark.get("x", -1)) <= width
            assert 0 <= float(mark.get("y", -1)) <= height
            assert 0 <= float(mark.get("x", -1)) + float(mark.get("width", -1)) <= width


def test_bars_are_as_high_as_vega_draws_them() -> None:
    drawing = CHARTS["bar"]
    ours = [float(m.get("height", 0)) for m in marks(drawing.svg("id")) if m.tag.endswith("rect")]
    text = rendered(drawing, "svg").decode()
    theirs = [float(h) for h in re.findall(r'aria-roledescription="bar" d="M[\d.,-]+h[\d.-]+v([\d.]+)', text)]
    assert len(theirs) == 3
    assert [h for h in ours if h > 1] == pytest.approx([h for h in theirs if h > 1], abs=0.1)


def test_points_stand_where_vega_draws_them() -> None:
    points = [("q1", 0.2, 0.4), ("q2", 0.5, 0.9), ("q3", 1.0, 0.0)]
    drawing = scatter_chart(points, "a", "b", "T", domain=(0, 1))
    ours = [
        (float(m.get("cx", 0)), float(m.get("cy", 0))) for m in marks(drawing.svg("id")) if m.tag.endswith("circle")
    ]
    text = rendered(drawing, "svg").decode()
    theirs = re.findall(r'transform="translate\(([\d.]+),([\d.]+)\)" d="M3', text)
    assert len(theirs) == 3
    assert ours == [pytest.approx((float(x), float(y)), abs=0.06) for x, y in theirs]


def test_an_undefined_value_is_no_mark() -> None:
    assert len([m for m in marks(CHARTS["scatter"].svg("id")) if m.tag.endswith("circle")]) == 1
    assert len([m for m in marks(CHARTS["interval"].svg("id")) if m.tag.endswith("circle")]) == 1


def test_a_chart_says_in_words_what_it_shows() -> None:
    text = CHARTS["bar"].svg("id", "dense gains on one topic")
    assert 'aria-labelledby="id-t id-d"' in text
    assert '<desc id="id-d">dense gains on one topic</desc>' in text
    assert "<title>q1: gain 0.2</title>" in text


def test_odd_names_are_text_in_a_chart() -> None:
    text = CHARTS["odd names"].svg("id") + CHARTS["odd names"].legend()
    assert "<script>" not in text
    assert "&lt;&amp;&gt;" in text
    assert "検索" in text


def test_lines_without_points_have_a_legend_of_strokes() -> None:
    curves = {"AP": ([1, 2], [1.0, 0.2]), "RR": ([1, 2], [0.9, 0.1])}
    drawn = line_chart(curves, "pairs", "p", "Levels", points=False).vega_lite()["layer"][0]["encoding"]
    assert drawn["color"]["legend"] == drawn["strokeDash"]["legend"]
    assert drawn["color"]["legend"]["symbolType"] == "stroke"
    assert drawn["color"]["legend"]["symbolStrokeWidth"] > 0
    with_points = line_chart(curves, "pairs", "p", "Levels").vega_lite()["layer"][1]["encoding"]
    assert "symbolType" not in with_points["shape"]["legend"]


def test_a_legend_names_what_is_there_and_nothing_else() -> None:
    assert re.findall(r"</svg>(\w+)</li>", CHARTS["bar"].legend()) == ["up", "equal", "down"]
    assert re.findall(r"</svg>(\w+)</li>", CHARTS["line"].legend()) == ["t", "sign"]
    assert CHARTS["line"].legend().count("stroke-dasharray") == 1
    assert CHARTS["scatter"].legend() == ""


def test_fourteen_runs_differ_by_colour_dash_or_shape() -> None:
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    drawing = chart(curves(qrels, {f"run{i:02}": run for i in range(14)}, "pr11"))
    line, points = (layer["encoding"] for layer in drawing.vega_lite()["layer"])
    looks = zip(line["color"]["scale"]["range"], line["strokeDash"]["scale"]["range"], strict=True)
    assert len({(colour, *dash) for colour, dash in looks}) == 14
    shapes = zip(points["color"]["scale"]["range"], points["shape"]["scale"]["range"], strict=True)
    assert len(set(shapes)) == 14
    assert len(COLOURS) == len(DASHES) == len(SHAPES) == 7


def test_a_chart_goes_to_a_pdf() -> None:
    assert rendered(CHARTS["bar"], "pdf").startswith(b"%PDF")
    with pytest.raises(DataError, match=r"a chart is written as \.svg, \.png, \.pdf, \.html, \.json, not as 'gif'"):
        rendered(CHARTS["bar"], "gif")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low: float, width: float) -> None:
    high = low + width
    if high <= low:
        return
    places = ticks(low, high)
    assert len(places) <= 10
    slack = 1e-6 * width + 1e-11
    assert all(low - slack <= place <= high + slack for place in places)


def test_a_histogram_counts_every_value_once() -> None:
    values = [0.0, 0.5, 1.0, math.nan]
    rows = histogram_chart(values, "x", "T", bins=4, domain=(0, 1)).rows
    assert sum(row["count"] for row in rows) == 3
