"""The topics of a workspace, and one document of a topic as somebody sees it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import DataError
from cranfield.judge.event import RELEVANCE, Event

if TYPE_CHECKING:
    from cranfield.workspace.bench import Bench


def topics_of(bench: Bench) -> list[dict[str, Any]]:
    """Every topic with its query, and how many documents of it people have labelled in the log."""
    from sqlalchemy import func, literal_column, select

    from cranfield.store.tables import events, standing

    table = bench.topics()
    count = func.count(standing.c.document.distinct())
    models = select(events.c.id).where(events.c.source == literal_column("'model'"))  # as the index says it
    query = (
        select(standing.c.topic, count)
        .where(standing.c.side.in_(["label", "adjudication"]), standing.c.aspect == RELEVANCE)
        .where(standing.c.event.not_in(models))
        .group_by(standing.c.topic)
    )
    with bench.database.reading() as connection:
        labelled = {row[0]: row[1] for row in connection.execute(query)}
    queries = {} if table is None else dict(table.queries)
    return [
        {"topic": topic, "query": queries.get(topic, ""), "labelled": labelled.get(topic, 0)}
        for topic in dict.fromkeys([*queries, *sorted(labelled)])
    ]


def categories_of(bench: Bench) -> dict[str, list[str]]:
    """The columns that sort topics into a few kinds, each with its values."""
    from cranfield.report.texts import categories

    table = bench.topics()
    if table is None:
        return {}
    topics = list(dict.fromkeys([*table.queries, *(topic for column in table.columns.values() for topic in column)]))
    return {name: sorted(set(column.values()) - {""}) for name, column in categories(table, topics).items()}


def judge_now(bench: Bench, assessor: str, topic: str, document: str, grade: float, id: str = "") -> bool:
    """Label a document outside any round; False where this person has labelled it with the same grade already."""
    scale = bench.grades()
    if scale and grade not in scale:
        shown = ", ".join(f"{each:g}" for each in scale)
        raise DataError(f"expected a grade of {shown}, found {grade:g}")
    event = Event(topic=topic, document=document, grade=grade, assessor=assessor, list="topic", id=id)

    def is_new(said: list[Event]) -> bool:
        return not any(each.assessor == assessor and each.grade == grade and not each.repeat for each in said)

    return bench.log.add_if(event, is_new)
