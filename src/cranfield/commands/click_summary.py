"""The command that summarises a log of clicks; the report and the page of clicks call it as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.commands.clicks import fit
from cranfield.experiments.clicks.click_summary import (
    FEWEST_VIEWS,
    LEVEL,
    RANKS,
    ClickSummary,
    grades_of_pairs,
    summarise_clicks,
)
from cranfield.experiments.log import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.base.qrels import Qrels

MODEL = "PBM"


def click_summary(
    log: str,
    *,
    model: str = MODEL,
    judgments: Qrels | None = None,
    queries: Mapping[str, str] | None = None,
    ranks: int = RANKS,
    fewest_views: int = FEWEST_VIEWS,
    level: float = LEVEL,
    lenient: bool = False,
    memory: str | None = None,
) -> ClickSummary:
    """Clicks by rank and by judged grade in an event log, with the examination of ranks by a click model.

    `queries` are the texts of the topics that the judgments belong to.
    """
    from cranfield.experiments.clicks.click_log import read_pages

    with EventLog(log) as opened:
        read = read_pages(opened, lenient=lenient, memory=memory)
    fitted = fit(model, read.pages)
    grades = None if judgments is None else grades_of_pairs(read.pages.pairs, judgments.to_dict(), queries)
    return summarise_clicks(
        read.pages,
        fitted,
        grades,
        model=model,
        ranks=ranks,
        fewest_views=fewest_views,
        level=level,
        remarks=[*read.notes, *fitted.check()],
    )
