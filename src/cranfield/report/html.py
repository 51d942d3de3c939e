"""The report as one HTML file that opens offline: no request leaves it, and a Content-Security-Policy sees to that.

Style and script stand in the page and are allowed by their hashes; everything else is forbidden. The page says all it
has to say without the script, which adds choosers, sorting and a filter. Charts are SVG drawn by `report.svg`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from cranfield.answer import Cell, Table, html_list, html_table, html_text
from cranfield.columns import in_bytes, joined, legible, p_value
from cranfield.report import figures, near
from cranfield.report.svg import legend, svg
from cranfield.report.tables import board_table, comparison_table, cost_table, inputs_table, number
from cranfield.report.texts import categories, first_words
from cranfield.report.words import asked, limits, summary
from cranfield.scores import conventions_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.report.reporting import Report


ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%230072b2' d='M1 9h4v6H1zM6 1h4v14H6zM11 5h4v10h-4z'/%3E%3C/svg%3E"
)
SECTIONS = {
    "summary": "Verdict",
    "leaderboard": "Leaderboard",
    "limits": "What limits this",
    "comparison": "Comparison",
    "two": "Two systems",
    "topic-scores": "Topics",
    "efficiency": "Effectiveness and cost",
    "curves": "Precision and recall",
    "distributions": "Distributions",
    "made": "How this was made",
}
SIZE = "\ue000\ue001\ue002"  # stands where the page says how large it is
BESIDE = (
    '<dialog id="beside" aria-labelledby="beside-h"><div class="beside-bar"><button type="button" id="previous">'
    '‹ Previous</button><button type="button" id="next">Next ›</button><span id="beside-where" role="status"></span>'
    '<button type="button" id="close" class="push">Close</button></div><h2 id="beside-h"></h2>'
    '<div id="beside-body"></div></dialog>\n'
)
QUERY = 160  # letters of what was asked in a table
SHOWN = 5  # kinds of cautions that are not folded away
WIDE = 440  # of a chart between its axes, so that it can still be read where a phone makes it smaller
TALL = 30  # rows of a leaderboard that are shown without scrolling
FEW = 21  # so many pairs by a measure are shown without being asked for


def page(report: Report) -> str:
    """The whole file."""
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    bodies = {
        "summary": _summary(report),
        "leaderboard": _leaderboard(report),
        "limits": limits_html(report),
        "comparison": _comparison(report),
        "two": _two(report),
        "topic-scores": _topics(report),
        "efficiency": efficiency_html(report),
        "curves": curves_html(report),
        "distributions": _distributions(report),
        "made": _made(report),
    }
    present = {name: body for name, body in bodies.items() if body}
    sections = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{SECTIONS[name]}</h2>\n{body}</section>'
        for name, body in present.items()
    )
    links = "".join(f'<li><a href="#{name}">{SECTIONS[name]}</a></li>' for name in present)
    scores = report.comparison.scores
    version = html_text(report.versions.get("cranfield", ""))
    lead = f"{len(report.systems)} systems · {len(scores.topics)} topics · {joined(report.measures)}"
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
        f"<footer><p>Made by cranfield {version}. This file needs no network; it holds {SIZE}{_of_texts(report)}.</p></footer>\n"
        f'<script type="application/json" id="data">{_data(report)}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )
    return text.replace(SIZE, in_bytes(len(text.encode("utf-8", "backslashreplace"))), 1)


def _of_texts(report: Report) -> str:
    size = report.size_of_texts
    return f", {in_bytes(size)} of it what documents say" if size else ""


def _resource(name: str) -> str:
    from importlib.resources import files

    return (files("cranfield.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(report: Report) -> str:
    """What the script draws from: every value of every system, and a sentence a pair."""
    systems, measures = report.systems, report.measures
    place = {name: i for i, name in enumerate(systems)}
    values = [[[None if v != v else v for v in report.values(s, m).tolist()] for s in systems] for m in measures]
    sentences = {
        f"{measures.index(pair.measure)} {place[pair.one]} {place[pair.other]}": legible(f"{report.sentence(pair)}.")
        for pair in report.listed
    }
    topics = report.comparison.scores.topics
    given = {
        "systems": [legible(name) for name in systems],
        "topics": [legible(topic) for topic in topics],
        "queries": [legible(report.queries.get(topic, "")) for topic in topics] if report.queries else None,
        "measures": [{"name": m, "lower": report.lower_is_better(m), "domain": report.domain(m)} for m in measures],
        "values": values,
        "sentences": sentences,
        "unlisted": _unlisted(report),
        "reference": place[report.reference],
        "digits": report.digits,
        "near": near.lists(report),
    }
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _unlisted(report: Report) -> str:
    """What is said of a pair that has no sentence here."""
    if len(report.listed) < len(report.pairs):
        return "the comparison of this pair is in the reports with the endings .csv and .json"
    return "this pair was not compared"


def _options(names: Sequence[str], chosen: str) -> str:
    return "".join(
        f'<option value="{i}"{" selected" if name == chosen else ""}>{html_text(name)}</option>'
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
    """Who is ahead by the first measure, then by the others; what was compared stands last."""
    what, first, *rest = summary(report)
    said = "".join(f"<p>{html_text(sentence)}</p>" for sentence in rest)
    return f'<p class="verdict">{html_text(first)}</p>{said}<p class="lead">{html_text(what)}</p>'


def limits_html(report: Report) -> str:
    """Cautions by their kind, the first few open and the others folded, then the notes."""
    kinds = [_caution(texts) for texts in limits(report)]
    boxed = ""
    if kinds:
        shown, folded = "".join(kinds[:SHOWN]), "".join(kinds[SHOWN:])
        more = f"<details><summary>{len(kinds) - SHOWN} more</summary><ul>{folded}</ul></details>" if folded else ""
        boxed = f'<div class="cautions"><ul>{shown}</ul>{more}</div>'
    notes = [*report.comparison.remarks, *report.comparison.scores.notes()]
    return boxed + _notes([asked(report, note) for note in notes])


def _caution(texts: Sequence[str]) -> str:
    first, *rest = texts
    more = f"<details><summary>{len(rest)} more of this kind</summary>{html_list(rest)}</details>" if rest else ""
    return f"<li>{html_text(first)}{more}</li>"


def _notes(lines: Sequence[str]) -> str:
    return html_list(lines, "plain note")


def _leaderboard(report: Report) -> str:
    parts = []
    for m, measure in enumerate(report.measures):
        if measure not in report.leaderboards:
            continue
        board = board_table(report, measure)
        table = table_html(board, sortable=True, tall=len(board.rows) > TALL)
        spec = figures.figure(report, "ranks", measure)
        said = f"A row a run: its rank by {measure} and the interval of that rank. The table above holds the numbers."
        parts.append(f'<div data-of="{html_text(measure)}">{table}{figure_html(spec, f"ranks-{m}", said)}</div>')
    if report.comparison.groups and parts:
        parts.append('<p class="note">The leaderboard ranks single runs; the comparison below takes groups as one.</p>')
    return "".join(parts)


def _comparison(report: Report) -> str:
    table = comparison_table(report)
    place = {name: i for i, name in enumerate(report.systems)}
    rows = [
        {
            "measure": str(report.measures.index(key["measure"])),
            "one": str(place[key["one"]]),
            "other": str(place[key["other"]]),
        }
        for key in table.keys
    ]
    many = len(rows) > FEW * len(report.measures)
    every = (
        f'<div class="controls"{" data-script" if many else ""} hidden><label><input type="checkbox" id="every-pair"'
        f"{'' if many else ' checked'}> all pairs, not only those with {html_text(report.reference)}</label></div>"
    )
    parts = [every, table_html(table._replace(keys=rows), sortable=True, identity="pairs", tall=many)]
    for m, measure in enumerate(report.measures):
        if figures.interval_rows(report, measure):
            spec = figures.figure(report, "intervals", measure)
            said = f"A row a system: the mean difference to {report.reference}. The table above holds the numbers."
            parts.append(f'<div data-of="{html_text(measure)}">{figure_html(spec, f"intervals-{m}", said)}</div>')
    return "".join([*parts, *_many(report)])


def _many(report: Report) -> list[str]:
    """What tests of all systems at once say."""
    lines = []
    for measure, found in report.comparison.many.items():
        for test, result in found.items():
            p = getattr(result, "p", float("nan"))
            if isinstance(p, float) and p == p:
                lines.append(f"{measure}: {test} over all systems, p {p_value(p)}")
    return [_notes(lines)]


def _two(report: Report) -> str:
    one, other = report.shown_pair()
    measure = report.measures[0]
    pair = report.pair(measure, one, other)
    said = f"{report.sentence(pair)}." if pair else f"{measure}, {one} and {other}: {_unlisted(report)}."
    bars, points = (figures.figure(report, name, measure, one, other) for name in ("differences", "scatter"))
    choosers = (
        '<div class="controls" data-script hidden>'
        f'<label>One <select id="one">{_options(report.systems, one)}</select></label>'
        f'<label>Other <select id="other">{_options(report.systems, other)}</select></label>'
        '<button type="button" id="swap">Swap</button></div>'
    )
    return (
        f'{choosers}<p class="said" id="sentence" aria-live="polite">{html_text(said)}</p><div class="pair">'
        f"{_drawing(bars, 'differences', said)}{_drawing(points, 'scatter', said)}</div>"
        '<p class="note">The <a href="#topic-scores">table of topics</a> holds the numbers of both charts.</p>'
    )


def _drawing(spec: dict[str, Any], identity: str, said: str) -> str:
    """A figure that the script draws anew when another pair is chosen."""
    caption = f'<figcaption id="{identity}-caption">{html_text(spec["title"]["text"])}</figcaption>'
    drawn = f'<div class="scroll" id="{identity}" tabindex="0" role="group" aria-labelledby="{identity}-caption">'
    return f"<figure>{caption}{drawn}{svg(spec, identity, said)}{legend(spec)}</div></figure>"


def figure_html(spec: dict[str, Any], identity: str, said: str) -> str:
    """A chart with its caption and legend; `said` is for those who do not see it."""
    spec = {**spec, "width": min(spec["width"], WIDE)}
    title, below = spec["title"]["text"], " ".join(spec["title"].get("subtitle", []))
    more = f"<span>{html_text(below)}</span>" if below else ""
    drawn = f'<div class="scroll" tabindex="0" role="group" aria-labelledby="{identity}-c">{svg(spec, identity, said)}</div>'
    return f'<figure><figcaption id="{identity}-c">{html_text(title)}{more}</figcaption>{drawn}{legend(spec)}</figure>'


def efficiency_html(report: Report) -> str:
    """What the runs cost, as a table and a chart; nothing where nobody measured it."""
    efficiency = report.comparison.efficiency
    if efficiency is None:
        return ""
    table = table_html(cost_table(efficiency, report.digits), sortable=True)
    said = "A point a run: its score against its latency; the line joins the Pareto front. The table holds the numbers."
    return table + figure_html(figures.chart(efficiency), "efficiency", said) + _notes(efficiency.notes())


def curves_html(report: Report) -> str:
    """Precision at recall, as a chart with its table; nothing where only scores are known."""
    if report.curves is None:
        return ""
    spec = figures.figure(report, "pr")
    spec["title"]["subtitle"] = spec["title"]["subtitle"][:1]  # where curves cross is said below
    left = len(report.curves.curves) - len(figures.shown_curves(report))
    more = (
        f"The chart shows the best {len(figures.shown_curves(report))} runs; the table below has all." if left else ""
    )
    points = report.curves.curves
    head = ["run", *(f"{x:g}" for x in points[0].x), "area"]
    rows = [[Cell(c.run), *(Cell(f"{y:.3f}") for y in c.y), Cell(f"{c.area:.4f}")] for c in points]
    table = table_html(Table(head, rows, caption="Interpolated precision at recall"))
    notes = report.curves.notes()[:5] if len(points) < 4 else []
    said = "Precision falls as recall grows; a line a run. The table below holds the numbers."
    below = f'<p class="note">{html_text(more)}</p>' if more else ""
    below += _notes(notes)
    return f"{figure_html(spec, 'pr', said)}{below}<details><summary>Data of this chart</summary>{table}</details>"


def _distributions(report: Report) -> str:
    parts = []
    for m, measure in enumerate(report.measures):
        spec = figures.figure(report, "distribution", measure)
        head = ["run", "lower quartile", "median", "upper quartile", "mean"]
        rows = [
            [Cell(name), *(Cell(number(value, report.digits), value) for value in box)]
            for name, box in figures.quartiles(report, measure).items()
        ]
        table = table_html(Table(head, rows, caption=f"{measure} over topics"))
        drawn = figure_html(spec, f"spread-{m}", "A row a system; the table below holds the quartiles.")
        details = f"<details><summary>Data of this chart</summary>{table}</details>"
        parts.append(f'<div data-of="{html_text(measure)}">{drawn}{details}</div>')
    return "".join(parts)


def _topics(report: Report) -> str:
    """Every topic's scores, largest gain first; with the lists at hand a row opens them side by side."""
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
    first = (
        '<th scope="col" aria-sort="descending"><span id="topics-difference">'
        f"{html_text(other)} − {html_text(one)}</span></th>"
    )
    return (
        f"{_filters(report, kinds)}"
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Scores by topic">'
        f'<table id="topics" class="sortable"><caption><span id="topics-measure">{html_text(measure)}</span> by topic</caption>'
        f'<thead><tr><th scope="col" class="n">topic</th>{first}{heads}</tr></thead>'
        f"<tbody>{''.join(rows[t] for t in order)}</tbody></table></div>"
    )


def _topic(report: Report, topic: str) -> str:
    """A topic's id as the head of its row, with what was asked."""
    query = report.queries.get(topic, "")
    asked = f'<span class="q">{html_text(first_words(query, QUERY))}</span>' if query else ""
    return f'<th scope="row" class="n"><span class="id">{html_text(topic)}</span>{asked}</th>'


def _filters(report: Report, kinds: Mapping[str, Mapping[str, str]]) -> str:
    """What chooses topics: words, who is better, a category."""
    topics = report.comparison.scores.topics
    sides = zip(("up", "down", "equal"), ("other better", "one better", "equal"), strict=True)
    chosen = "".join(f'<option value="{value}">{text}</option>' for value, text in sides)
    boxes = [
        '<label>Words or id <input id="filter" type="search" autocomplete="off" spellcheck="false"></label>',
        f'<label>Difference <select id="side"><option value="">any</option>{chosen}</select></label>',
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


def _made(report: Report) -> str:
    comparison = report.comparison
    settings = [
        ("tests", ", ".join(comparison.tests)),
        ("correction", f"{comparison.correction}, over {comparison.family} p-values"),
        ("significance level", f"{comparison.alpha:g}"),
        ("intervals", f"{100 * comparison.level:g} %, {comparison.interval}"),
        ("resamples", f"{comparison.resamples:,}"),
        ("seed", str(comparison.seed)),
        ("alternative", comparison.alternative),
        ("baselines", joined(comparison.baselines) if comparison.baselines else "none: every pair"),
        *[(f"group {group.name}", joined(list(group.runs))) for group in comparison.groups],
    ]
    conventions = [(name, str(value) or "–") for name, value in comparison.scores.conventions.to_dict().items()]
    parts = []
    if report.command:
        parts.append(
            f"<h3>Command</h3><p>This command makes this file again:</p><pre><code>{html_text(report.command)}</code></pre>"
        )
    if report.inputs:
        parts.append(table_html(inputs_table(report)))
    said = conventions_in_words(comparison.scores.conventions)
    parts.append('<div class="pair">')
    parts.append(_facts("Statistics", settings))
    parts.append(_facts(f"Conventions ({said.partition(' (')[0] if ' (' in said else 'own'})", conventions))
    parts.append(_facts("Versions", list(report.versions.items())))
    return "".join([*parts, "</div>"])


def _facts(caption: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr><th scope="row" class="n">{html_text(a)}</th><td class="n">{html_text(b)}</td></tr>' for a, b in rows
    )
    return f'<table class="facts"><caption>{html_text(caption)}</caption><tbody>{body}</tbody></table>'


def _scrolled(table: str, name: str, tall: bool = False) -> str:
    look = "scroll tall" if tall else "scroll"
    return f'<div class="{look}" tabindex="0" role="region" aria-label="{html_text(name)}">{table}</div>'


def table_html(table: Table, sortable: bool = False, identity: str = "", tall: bool = False) -> str:
    """A table that scrolls by itself, with its notes below."""
    notes = "".join(f'<p class="note">{html_text(note)}</p>' for note in table.notes)
    name = table.caption or table.title or f"Table of {', '.join(filter(None, table.head[:2]))}"
    return _scrolled(html_table(table, identity, sortable), name, tall) + notes
