"""A collection's distributions as one picture: a histogram for each, one above the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.report.charts import histogram_chart

if TYPE_CHECKING:
    from cranfield.describe import CollectionStats, Distribution


SHARED = ("$schema", "config", "background")  # said once for the whole picture


def collection_chart(stats: CollectionStats) -> dict[str, Any]:
    """The Vega-Lite specification of all distributions that hold anything."""
    charts = [_histogram(one, stats.name) for one in stats.distributions.values() if len(one.values)]
    shared = {key: charts[0][key] for key in SHARED if charts and key in charts[0]}
    inner = [{key: value for key, value in chart.items() if key not in SHARED} for chart in charts]
    return {**shared, "vconcat": inner, "spacing": 28}


def _histogram(one: Distribution, name: str) -> dict[str, Any]:
    bins = one.bins()
    low, width = bins[0][0], (bins[1][0] - bins[0][0]) if len(bins) > 1 else 1
    high = low + width * len(bins)
    beyond = bins[-1][1] >= high
    quantiles = one.quantiles()
    said = f"{one.unit}; mean {one.mean:.1f}, median {quantiles['median']:g}, maximum {quantiles['maximum']:g}"
    return histogram_chart(
        [min(value, bins[-1][0]) for value in one.values.tolist()],
        one.name,
        f"{name}: {one.name}",
        subtitle=[said, *(["the last bar holds all beyond it"] if beyond else [])],
        bins=len(bins),
        domain=(low, high),
    )
