"""The documents that a workspace has judged already, by people or by its collection: rounds leave them out."""

from __future__ import annotations

import os
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from cranfield.base.notifications import say
from cranfield.base.text_layout import counted
from cranfield.formats.log_kind import WORK_DB
from cranfield.inputs.logs import own_judgments, workspace_at
from cranfield.judging.log_location import open_log
from cranfield.judging.log_queries import decide_log
from cranfield.judging.round_plan import without_judged

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cranfield.judging.round_plan import RoundItem


def judged_in(location: str) -> dict[str, dict[str, float]]:
    """The one set of judgments of the workspace that a log belongs to; empty for any other log."""
    workspace = workspace_at(location)
    if workspace is None:
        return {}
    own = own_judgments(workspace)
    if not os.path.exists(os.path.join(workspace, WORK_DB)):
        return {} if own is None else own.to_dict()
    with closing(open_log(location, new=False)) as log:
        return decide_log(log, own=own).grades


def unjudged(
    location: str,
    lists: Mapping[str, Mapping[str, Sequence[str]]],
    there: Mapping[str, Collection[str]] | None = None,
) -> dict[str, dict[str, list[str]]]:
    """Lists of runs by topic without the documents that a workspace has judged; those that are `there` already stay."""
    stays = there or {}
    judged = {
        topic: {document: grade for document, grade in grades.items() if document not in stays.get(topic, ())}
        for topic, grades in judged_in(location).items()
    }
    answer = without_judged(lists, judged)
    count = sum(len({*chain(*lists[topic].values())}) - len({*chain(*own.values())}) for topic, own in answer.items())
    if count:
        say([f"{counted(count, 'document')} left out: the workspace has judgments of them"])
    return answer


def note_judged(location: str, round_items: Sequence[RoundItem]) -> None:
    """Say how many documents of a pool a workspace has judged already."""
    judged = judged_in(location) if round_items else {}
    count = sum(each.role == "pool" and each.document in judged.get(each.topic, ()) for each in round_items)
    if count:
        say([f"{counted(count, 'document')} of the pool judged already: pool make --qrels leaves such documents out"])
