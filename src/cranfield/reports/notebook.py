"""The chart that a notebook shows above an answer's tables, drawn as in the report's page.

The style is part of the picture, on a white background, because a notebook has its own themes.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError
from cranfield.base.results import Both, html_text
from cranfield.reports.charts import Chart, Panels
from cranfield.reports.result_charts import chart
from cranfield.reports.svg import COLOURS, GREY

if TYPE_CHECKING:
    from cranfield.base.results import Answer


OURS = ".cranfield-chart"
STYLE = (
    f"{OURS}{{background:#fff;color:#1a1f26;margin:0 0 1em;padding:.5em;display:inline-block}}"
    f"{OURS} figcaption{{font-weight:bold}}{OURS} figcaption span{{display:block;font-weight:normal;font-size:.9em}}"
    f"{OURS} svg.chart{{max-width:100%;height:auto;overflow:visible}}{OURS} text{{font:12px sans-serif;fill:#56606d}}"
    f"{OURS} text.name{{font-size:13px;fill:#1a1f26}}{OURS} .grid{{stroke:#d9dee5;fill:none}}"
    f"{OURS} .edge{{stroke:#8a8f96;fill:none}}{OURS} .line{{fill:none;stroke:var(--c)}}{OURS} .fill{{fill:var(--c)}}"
    f"{OURS} .legend{{display:flex;flex-wrap:wrap;gap:.2em 1.2em;list-style:none;padding:0;margin:.3em 0 0}}"
    + "".join(f"{OURS} .c{i}{{--c:{colour}}}" for i, colour in enumerate(COLOURS))
    + f"{OURS} .grey{{--c:{GREY}}}"
)


def picture(answer: Answer | None) -> str:
    """The charts of an answer as a piece of HTML; "" if it has none."""
    figures = "".join(map(_figure, charts_of(answer)))
    return f"<style>{STYLE}</style>{figures}" if figures else ""


def charts_of(answer: Answer | None) -> list[Chart]:
    """The charts of an answer, one below the other; of several answers, those of the first."""
    if isinstance(answer, Both):
        return charts_of(answer.first)
    if chart.dispatch(type(answer)) is chart.dispatch(object):
        return []
    try:
        result = chart(answer)
    except ConventionError:
        return []
    return result.charts if isinstance(result, Panels) else [result]


def _figure(chart: Chart) -> str:
    content = json.dumps(chart.vega_lite(), sort_keys=True).encode()
    identity = f"cranfield-{zlib.crc32(content):08x}"  # a page may have many charts
    below = " ".join(chart.subtitle)
    more = f"<span>{html_text(below)}</span>" if below else ""
    caption = f"<figcaption>{html_text(chart.title)}{more}</figcaption>"
    return f'<figure class="{OURS[1:]}">{caption}{chart.svg(identity)}{chart.legend()}</figure>'
