"""The report as one HTML file that opens offline. A Content-Security-Policy forbids every request.

Style and script are part of the page and allowed by their hashes. The page is complete without the script, which adds
choosers, sorting and a filter. Charts are SVG drawn by `reports.charts`.

The ranked lists at the end are compact: each document is named once, and lists are numbers separated by blanks. The
explanations are finished text, so that the script computes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cranfield.base.results import Cell, Layout, Table, html_list, html_table, html_text
from cranfield.base.text_layout import in_bytes, legible, name_list, p_value
from cranfield.evaluation.scores import conventions_in_words
from cranfield.reports import result_charts
from cranfield.reports.tables import (
    board_table,
    comparison_table,
    cost_table,
    inputs_table,
    limits,
    number,
    summary,
    with_query,
)
from cranfield.reports.texts import categories, first_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.evaluation.topic_view import RankColumns, RunTopics
    from cranfield.reports.charts import Chart
    from cranfield.reports.report_content import Report


ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%230072b2' d='M1 9h4v6H1zM6 1h4v14H6zM11 5h4v10h-4z'/%3E%3C/svg%3E"
)
SIZE = "\ue000\ue001\ue002"  # a placeholder for the size of the page
BESIDE = (
    '<dialog id="beside" aria-labelledby="beside-h"><div class="beside-bar"><button type="button" id="previous">'
    '‹ Previous</button><button type="button" id="next">Next ›</button><span id="beside-where" role="status"></span>'
    '<button type="button" id="close" class="push">Close</button></div><h2 id="beside-h"></h2>'
    '<div id="beside-body"></div></dialog>\n'
)
QUERY = 160  # letters of a query in a table
SHOWN = 5  # kinds of cautions that are visible at once
WIDE = 440  # the plot area of a chart, small enough for a phone
TALL = 30  # rows of a leaderboard that are visible without scrolling
FEW = 21  # the maximum number of pairs per measure that are visible at once


def page(report: Report) -> str:
    """The whole file."""
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    present = [(name, title, body) for name, title, write in SECTIONS if (body := write(report))]
    sections = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{title}</h2>\n{body}</section>'
        for name, title, body in present
    )
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in present)
    scores = report.comparison.scores
    version = html_text(report.versions.get("cranfield", ""))
    size = report.size_of_texts
    of_texts = f", {in_bytes(size)} of it what documents say" if size else ""
    lead = f"{len(report.systems)} systems · {len(scores.topics)} topics · {name_list(report.measures)}"
    text = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="cranfield {version}">\n'
        f'<title>{html_text(report.title)}</title>\n<link rel="icon" href="{ICON}">\n<style>{style}</style>\n</head>\n<body>\n'
        f'<a class="skip" href="#summary">Skip to the verdict</a>\n'
        f'<header><h1>{html_text(report.title)}</h1><p class="lead">{html_text(lead)}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n'
        f"<main>\n{_bar(report)}\n{sections}\n</main>\n{BESIDE if report.closeups else ''}"
        f"<footer><p>Made by cranfield {version}. This file needs no network; it holds {SIZE}{of_texts}.</p></footer>\n"
        f'<script type="application/json" id="data">{_data(report)}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )
    return text.replace(SIZE, in_bytes(len(text.encode("utf-8", "backslashreplace"))), 1)


def _resource(name: str) -> str:
    from importlib.resources import files

    return (files("cranfield.reports") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(report: Report) -> str:
    """The data of the script: every value of every system, and one sentence per pair."""
    systems, measures = report.systems, report.measures
    place = {name: i for i, name in enumerate(systems)}
    values = [[[None if v != v else v for v in report.values(s, m).tolist()] for s in systems] for m in measures]
    sentences = {
        f"{measures.index(pair.measure)} {place[pair.one]} {place[pair.other]}": legible(f"{report.sentence(pair)}.")
        for pair in report.listed
    }
    topics = report.comparison.scores.topics
    data = {
        "systems": [legible(name) for name in systems],
        "topics": [legible(topic) for topic in topics],
        "queries": [legible(report.queries.get(topic, "")) for topic in topics] if report.queries else None,
        "measures": [{"name": m, "lower": report.lower_is_better(m), "domain": report.domain(m)} for m in measures],
        "values": values,
        "sentences": sentences,
        "unlisted": _unlisted(report),
        "reference": place[report.reference],
        "digits": report.digits,
        "near": compact_lists(report),
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _unlisted(report: Report) -> str:
    """The sentence for a pair that has no sentence of its own."""
    if len(report.listed) < len(report.pairs):
        return "the comparison of this pair is in the reports with the endings .csv and .json"
    return "this pair was not compared"


def _options(names: Sequence[str], default: str) -> str:
    return "".join(
        f'<option value="{i}"{" selected" if name == default else ""}>{html_text(name)}</option>'
        for i, name in enumerate(names)
    )


def _bar(report: Report) -> str:
    themes = "".join(f'<option value="{name}">{name}</option>' for name in ("automatic", "light", "dark"))
    return (
        '<div class="bar" data-script hidden>'
        f'<label>Measure <select id="measure">{_options(report.measures, report.measures[0])}</select></label>'
        f'<label class="push">Theme <select id="theme">{themes}</select></label></div>'
    )


def _summary(report: Report) -> str:
    """The leader by the first measure, then by the others, then what was compared."""
    what, first, *rest = summary(report)
    sentences = "".join(f"<p>{html_text(sentence)}</p>" for sentence in rest)
    return f'<p class="verdict">{html_text(first)}</p>{sentences}<p class="lead">{html_text(what)}</p>'


def limits_html(report: Report) -> str:
    """Cautions by kind, the first few open and the others folded, then the notes."""
    kinds = []
    for first, *rest in limits(report):
        more = _details(html_list(rest), f"{len(rest)} more of this kind") if rest else ""
        kinds.append(f"<li>{html_text(first)}{more}</li>")
    boxed = ""
    if kinds:
        visible, folded = "".join(kinds[:SHOWN]), "".join(kinds[SHOWN:])
        more = _details(f"<ul>{folded}</ul>", f"{len(kinds) - SHOWN} more") if folded else ""
        boxed = f'<div class="cautions"><ul>{visible}</ul>{more}</div>'
    notes = [*report.comparison.remarks, *report.comparison.scores.notes()]
    return boxed + _notes([with_query(report, note) for note in notes])


def _notes(lines: Sequence[str]) -> str:
    return html_list(lines, "plain note")


def _leaderboard(report: Report) -> str:
    parts = []
    for m, measure in enumerate(report.measures):
        if measure not in report.leaderboards:
            continue
        board = board_table(report, measure)
        table = table_html(board, sortable=True, tall=len(board.rows) > TALL)
        chart = result_charts.figure(report, "ranks", measure)
        description = f"One row per run: its rank by {measure} with its interval. The table above has the numbers."
        parts.append(_of_measure(measure, table + figure_html(chart, f"ranks-{m}", description)))
    if report.comparison.groups and parts:
        parts.append(
            '<p class="note">The leaderboard ranks single runs; the comparison treats each group as one system.</p>'
        )
    return "".join(parts)


def _of_measure(measure: str, body: str) -> str:
    """A part of the page that is visible while a measure is chosen."""
    return f'<div data-of="{html_text(measure)}">{body}</div>'


def _details(body: str, summary: str = "Data of this chart") -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


def _comparison(report: Report) -> str:
    table = comparison_table(report)
    place = {name: i for i, name in enumerate(report.systems)}
    places = {"measure": {name: i for i, name in enumerate(report.measures)}, "one": place, "other": place}
    rows = [{side: str(places[side][name]) for side, name in key.items()} for key in table.keys]
    many = len(rows) > FEW * len(report.measures)
    every = (
        f'<div class="controls"{" data-script" if many else ""} hidden><label><input type="checkbox" id="every-pair"'
        f"{'' if many else ' checked'}> all pairs, not only those with {html_text(report.reference)}</label></div>"
    )
    parts = [every, table_html(table._replace(keys=rows), sortable=True, identity="pairs", tall=many)]
    for m, measure in enumerate(report.measures):
        if result_charts.interval_rows(report, measure):
            chart = result_charts.figure(report, "intervals", measure)
            shown = f"One row per system: the mean difference to {report.reference}"
            figure = figure_html(chart, f"intervals-{m}", f"{shown}. The table above has the numbers.")
            parts.append(_of_measure(measure, figure))
    return "".join([*parts, _many(report)])


def _many(report: Report) -> str:
    """The results of tests of all systems at once."""
    tests = [(m, test, each) for m, results in report.comparison.many.items() for test, each in results.items()]
    values = [(m, test, p) for m, test, each in tests if isinstance(p := getattr(each, "p", None), float) and p == p]
    return _notes([f"{measure}: {test} over all systems, p {p_value(p)}" for measure, test, p in values])


def _two(report: Report) -> str:
    one, other = report.shown_pair()
    measure = report.measures[0]
    pair = report.pair(measure, one, other)
    description = f"{report.sentence(pair)}." if pair else f"{measure}, {one} and {other}: {_unlisted(report)}."
    bars, points = (result_charts.figure(report, name, measure, one, other) for name in ("differences", "scatter"))
    choosers = (
        '<div class="controls" data-script hidden>'
        f'<label>One <select id="one">{_options(report.systems, one)}</select></label>'
        f'<label>Other <select id="other">{_options(report.systems, other)}</select></label>'
        '<button type="button" id="swap">Swap</button></div>'
    )
    return (
        f'{choosers}<p class="said" id="sentence" aria-live="polite">{html_text(description)}</p><div class="pair">'
        f"{_drawing(bars, 'differences', description)}{_drawing(points, 'scatter', description)}</div>"
        '<p class="note">The <a href="#topic-scores">table of topics</a> holds the numbers of both charts.</p>'
    )


def _drawing(chart: Chart, identity: str, description: str) -> str:
    """A figure that the script draws again when another pair is chosen."""
    caption = f'<figcaption id="{identity}-caption">{html_text(chart.title)}</figcaption>'
    figure = f'<div class="scroll" id="{identity}" tabindex="0" role="group" aria-labelledby="{identity}-caption">'
    return f"<figure>{caption}{figure}{chart.svg(identity, description)}{chart.legend()}</div></figure>"


def figure_html(chart: Chart, identity: str, description: str) -> str:
    """A chart with its caption and legend; `description` is for readers who cannot see it."""
    chart, below = replace(chart, width=min(chart.width, WIDE)), " ".join(chart.subtitle)
    more = f"<span>{html_text(below)}</span>" if below else ""
    drawing = chart.svg(identity, description)
    figure = f'<div class="scroll" tabindex="0" role="group" aria-labelledby="{identity}-c">{drawing}</div>'
    return f'<figure><figcaption id="{identity}-c">{html_text(chart.title)}{more}</figcaption>{figure}{chart.legend()}</figure>'


def efficiency_html(report: Report) -> str:
    """The costs of the runs as a table and a chart; "" if nothing was measured."""
    efficiency = report.comparison.efficiency
    if efficiency is None:
        return ""
    table = table_html(cost_table(efficiency, report.digits), sortable=True)
    shown = "One point per run: its score against its latency; the line is the Pareto front"
    chart = result_charts.efficiency_chart(efficiency)
    return table + figure_html(chart, "efficiency", f"{shown}. The table has the numbers.") + _notes(efficiency.notes())


def curves_html(report: Report) -> str:
    """Precision at recall levels as a chart with its table; "" if only scores are known."""
    if report.curves is None:
        return ""
    chart = result_charts.figure(report, "pr")
    chart.subtitle = chart.subtitle[:1]  # the note on crossings comes below
    points, shown = report.curves.curves, len(result_charts.shown_curves(report))
    more = f"The chart shows the best {shown} runs; the table below has all." if shown < len(points) else ""
    head = ["run", *(f"{x:g}" for x in points[0].x), "area"]
    rows = [[Cell(c.run), *(Cell(f"{y:.3f}") for y in c.y), Cell(f"{c.area:.4f}")] for c in points]
    table = table_html(Table(head, rows, caption="Interpolated precision at recall"))
    notes = report.curves.notes()[:5] if len(points) < 4 else []
    description = "Precision at recall levels, one line per run. The table below has the numbers."
    below = f'<p class="note">{html_text(more)}</p>' if more else ""
    return figure_html(chart, "pr", description) + below + _notes(notes) + _details(table)


def clicks_html(report: Report) -> str:
    """Clicks by rank and by judged grade as charts with their tables; "" without a log of clicks."""
    summary = report.clicks
    if summary is None:
        return ""
    how = Layout(digits=report.digits, undefined="–", medium="html")
    text = "The tables below hold the numbers."
    drawings = [figure_html(each, f"clicks-{n}", text) for n, each in enumerate(result_charts.charts_of(summary))]
    tables = table_html(summary.rank_table(how)) + (table_html(summary.grade_table(how)) if summary.grades else "")
    sentences = "".join(f"<p>{html_text(each)}.</p>" for each in summary.verdict())
    return f'{sentences}<div class="pair">{"".join(drawings)}</div>{tables}{_notes(summary.notes())}'


def _distributions(report: Report) -> str:
    parts = []
    for m, measure in enumerate(report.measures):
        chart = result_charts.figure(report, "distribution", measure)
        head = ["run", "lower quartile", "median", "upper quartile", "mean"]
        rows = [
            [Cell(name), *(Cell(number(value, report.digits), value) for value in box)]
            for name, box in result_charts.quartiles(report, measure).items()
        ]
        table = table_html(Table(head, rows, caption=f"{measure} over topics"))
        figure = figure_html(chart, f"spread-{m}", "One row per system; the table below has the quartiles.")
        parts.append(_of_measure(measure, figure + _details(table)))
    return "".join(parts)


def _topics(report: Report) -> str:
    """The scores of every topic, largest gain first; if the lists are known, a row opens them side by side."""
    measure, (one, other) = report.measures[0], report.shown_pair()
    topics = report.comparison.scores.topics
    columns = [report.values(name, measure).tolist() for name in report.systems]
    gain = (report.values(other, measure) - report.values(one, measure)).tolist()
    kinds = {} if report.topics is None else categories(report.topics, topics)
    rows = {
        t: f'<tr data-topic="{t}">{_topic(report, topic)}<td>{number(gain[t], report.digits, signed=True)}</td>'
        + "".join(f'<td class="n">{html_text(column.get(topic, ""))}</td>' for column in kinds.values())
        + "".join(f"<td>{number(column[t], report.digits)}</td>" for column in columns)
        + "</tr>"
        for t, topic in enumerate(topics)
    }
    order = sorted(rows, key=lambda t: -gain[t] if gain[t] == gain[t] else float("inf"))
    heads = "".join(f'<th scope="col" class="n">{html_text(name)}</th>' for name in kinds)
    heads += "".join(f'<th scope="col">{html_text(name)}</th>' for name in report.systems)
    gains = f'<span id="topics-difference">{html_text(other)} − {html_text(one)}</span>'
    first = f'<th scope="col" aria-sort="descending">{gains}</th>'
    return (
        f"{_filters(report, kinds)}"
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Scores by topic">'
        f'<table id="topics" class="sortable"><caption><span id="topics-measure">{html_text(measure)}</span> by topic</caption>'
        f'<thead><tr><th scope="col" class="n">topic</th>{first}{heads}</tr></thead>'
        f"<tbody>{''.join(rows[t] for t in order)}</tbody></table></div>"
    )


def _topic(report: Report, topic: str) -> str:
    """A topic's id and query as the head of its row."""
    query = report.queries.get(topic, "")
    query_html = f'<span class="q">{html_text(first_words(query, QUERY))}</span>' if query else ""
    return f'<th scope="row" class="n"><span class="id">{html_text(topic)}</span>{query_html}</th>'


def _filters(report: Report, kinds: Mapping[str, Mapping[str, str]]) -> str:
    """The controls that filter topics: words, the better system, a category."""
    topics = report.comparison.scores.topics
    sides = zip(("up", "down", "equal"), ("other better", "one better", "equal"), strict=True)
    options_html = "".join(f'<option value="{value}">{text}</option>' for value, text in sides)
    boxes = [
        '<label>Words or id <input id="filter" type="search" autocomplete="off" spellcheck="false"></label>',
        f'<label>Difference <select id="side"><option value="">any</option>{options_html}</select></label>',
    ]
    groups = ""
    for c, (name, column) in enumerate(kinds.items()):
        values = sorted({column.get(topic, "") for topic in topics} - {""})
        options = "".join(f'<option value="{c} {html_text(value)}">{html_text(value)}</option>' for value in values)
        groups += f'<optgroup label="{html_text(name)}">{options}</optgroup>'
    if groups:
        boxes.append(f'<label>Category <select id="category"><option value="">any</option>{groups}</select></label>')
    boxes.append(f'<span id="filtered" role="status">{len(topics)} of {len(topics)} topics</span>')
    opens = "Click a topic, or press Enter on it, to see both ranked lists side by side." if report.closeups else ""
    hint = f'<p class="note" data-script hidden>{opens}</p>' if opens else ""
    return f'<div class="controls" data-script hidden>{"".join(boxes)}</div>{hint}'


def _provenance(report: Report) -> str:
    comparison = report.comparison
    settings = [
        ("tests", ", ".join(comparison.tests)),
        ("correction", f"{comparison.correction}, over {comparison.family} p-values"),
        ("significance level", f"{comparison.alpha:g}"),
        ("intervals", f"{100 * comparison.level:g} %, {comparison.interval}"),
        ("resamples", f"{comparison.resamples:,}"),
        ("seed", str(comparison.seed)),
        ("alternative", comparison.alternative),
        ("baselines", name_list(comparison.baselines) if comparison.baselines else "none: every pair"),
        *[(f"group {group.name}", name_list(list(group.runs))) for group in comparison.groups],
    ]
    conventions = [(name, str(value) or "–") for name, value in comparison.scores.conventions.to_dict().items()]
    parts = []
    if report.command:
        command = f"<pre><code>{html_text(report.command)}</code></pre>"
        parts.append(f"<h3>Command</h3><p>This command makes this file again:</p>{command}")
    if report.inputs:
        parts.append(table_html(inputs_table(report)))
    rules = conventions_in_words(comparison.scores.conventions)
    named = f"Conventions ({rules.partition(' (')[0] if ' (' in rules else 'own'})"
    facts = {"Statistics": settings, named: conventions, "Versions": list(report.versions.items())}
    return "".join([*parts, '<div class="pair">', *(_facts(name, rows) for name, rows in facts.items()), "</div>"])


def _facts(caption: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    row = '<tr><th scope="row" class="n">{}</th><td class="n">{}</td></tr>'
    body = "".join(row.format(html_text(name), html_text(value)) for name, value in rows)
    return f'<table class="facts"><caption>{html_text(caption)}</caption><tbody>{body}</tbody></table>'


SECTIONS = (
    ("summary", "Verdict", _summary),
    ("leaderboard", "Leaderboard", _leaderboard),
    ("limits", "What limits this", limits_html),
    ("comparison", "Comparison", _comparison),
    ("two", "Two systems", _two),
    ("topic-scores", "Topics", _topics),
    ("efficiency", "Effectiveness and cost", efficiency_html),
    ("curves", "Precision and recall", curves_html),
    ("distributions", "Distributions", _distributions),
    ("clicks", "Clicks", clicks_html),
    ("made", "How this was made", _provenance),
)


def table_html(table: Table, sortable: bool = False, identity: str = "", tall: bool = False) -> str:
    """A scrollable table with its notes below."""
    notes = "".join(f'<p class="note">{html_text(note)}</p>' for note in table.notes)
    name = table.caption or table.title or f"Table of {', '.join(filter(None, table.head[:2]))}"
    look, body = "scroll tall" if tall else "scroll", html_table(table, identity, sortable)
    return f'<div class="{look}" tabindex="0" role="region" aria-label="{html_text(name)}">{body}</div>{notes}'


NONE = "-"  # an unjudged document, or one that does not count


def compact_lists(report: Report) -> dict[str, Any] | None:
    """The top-k of all systems: ids, texts, lists and grades, and the arithmetic of each measure."""
    views = report.closeups
    if not views:
        return None
    place: dict[str, int] = {}

    def numbers(documents: Sequence[str]) -> str:
        return " ".join(str(place.setdefault(document, len(place))) for document in documents)

    listed = [[numbers(documents) for documents in each.documents] for each in views]
    words = {document: [legible(part) for part in parts if part] for document, parts in report.shown_documents.items()}
    return {
        "depth": report.depth,
        "runs": [legible(each.run) for each in views],
        "ids": [legible(document) for document in place],
        "texts": [words.get(document, 0) for document in place] if words else None,
        "lists": listed,
        "grades": [[" ".join(map(_grade, grades)) for grades in each.grades] for each in views],
        "below": [each.below for each in views],
        "missed": [each.missed for each in views],
        "deeper": [[_places(ranks, place) for ranks in each.deeper] for each in views],
        "arithmetic": [_arithmetic(report, views, measure) for measure in report.measures],
    }


def _places(ranks: Mapping[str, int], place: Mapping[str, int]) -> str:
    """The ranks of documents below the top, each after the number of its document."""
    return " ".join(f"{place[document]}:{rank}" for document, rank in ranks.items())


def _grade(grade: float | None) -> str:
    return NONE if grade is None else f"{grade:g}".replace("-", "−")


def _arithmetic(report: Report, views: Sequence[RunTopics], measure: str) -> dict[str, Any] | None:
    """The columns of an explanation, its distinct rows, and the row of each rank."""
    if not all(measure in each.arithmetic for each in views):
        return None
    arithmetic = [each.arithmetic[measure] for each in views]
    place: dict[RankColumns, int] = {}
    steps = [
        [
            " ".join(NONE if step is None else str(place.setdefault(_rounded(step), len(place))) for step in of_topic)
            for of_topic in each.steps
        ]
        for each in arithmetic
    ]
    whole = [all(value != value or value == int(value) for value in column) for column in zip(*place, strict=True)]
    rows = [
        ["" if value != value else number(value, 0 if whole[i] else 4) for i, value in enumerate(step)]
        for step in place
    ]
    return {
        "formula": report.comparison.scores.measures[measure].formula_with_values(),
        "words": arithmetic[0].words,
        "columns": arithmetic[0].columns,
        "rows": rows,
        "steps": steps if place else None,
        "lines": [each.lines for each in arithmetic],
    }


def _rounded(step: RankColumns) -> RankColumns:
    """Round values so that equal texts are equal keys; all NaN become one object."""
    return tuple(round(value, 4) if value == value else _NAN for value in step)


_NAN = float("nan")
