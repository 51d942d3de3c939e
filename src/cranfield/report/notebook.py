"""What a notebook shows above an answer's tables: its chart, where there is one, drawn as in the report's page.

The colours travel with the picture, on white paper: a notebook has themes of its own, and no style sheet of ours.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from cranfield.answer import Both, html_text
from cranfield.errors import ConventionError
from cranfield.report.charts import COLOURS, GREY
from cranfield.report.figures import chart
from cranfield.report.svg import legend, svg

if TYPE_CHECKING:
    from cranfield.answer import Answer
    from cranfield.report.charts import Spec


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
    """The chart of an answer as a piece of HTML; nothing where there is none, as of an answer of several parts."""
    drawn = "".join(map(_figure, specifications(answer)))
    return f"<style>{STYLE}</style>{drawn}" if drawn else ""


def specifications(answer: Answer | None) -> list[Spec]:
    """The charts of an answer, one after the other, the ends of their axes said; of several parts those of the first."""
    if isinstance(answer, Both):
        return specifications(answer.first)
    if chart.dispatch(type(answer)) is chart.dispatch(object):
        return []
    try:
        spec = chart(answer)
    except ConventionError:
        return []
    return [_bounded(one) for one in spec.get("vconcat", [spec])]


def _figure(spec: Spec) -> str:
    identity = f"cranfield-{zlib.crc32(json.dumps(spec, sort_keys=True).encode()):08x}"  # many stand on a page
    title, below = spec["title"]["text"], " ".join(spec["title"].get("subtitle", []))
    more = f"<span>{html_text(below)}</span>" if below else ""
    caption = f"<figcaption>{html_text(title)}{more}</figcaption>"
    return f'<figure class="{OURS[1:]}">{caption}{svg(spec, identity)}{legend(spec)}</figure>'


def _bounded(spec: Spec) -> Spec:
    """The specification with the ends of both axes said: those of another layer, or of what is drawn."""
    layers = [{**layer, "encoding": {**spec.get("encoding", {}), **layer["encoding"]}} for layer in spec["layer"]]
    for channel in ("x", "y"):
        axes = [layer["encoding"][channel] for layer in layers if channel in layer["encoding"]]
        said = [axis["scale"]["domain"] for axis in axes if "domain" in axis.get("scale", {})]
        domain = (
            said[0] if said else _ends([row.get(axis.get("field")) for axis in axes for row in spec["data"]["values"]])
        )
        for layer in layers:
            axis = layer["encoding"].get(channel, {})
            if axis.get("type") == "quantitative" and "domain" not in axis.get("scale", {}):
                layer["encoding"][channel] = {**axis, "scale": {**axis.get("scale", {}), "domain": domain}}
    return {**spec, "encoding": {}, "layer": layers}


def _ends(values: list[Any]) -> list[float]:
    """From the lowest to the highest number, or to a bit above where they are one."""
    known = [float(value) for value in values if isinstance(value, (int, float))] or [0.0]
    low, high = min(known), max(known)
    return [low if low < 0 or low >= 1 else 0.0, high if high > low else low + 1]
