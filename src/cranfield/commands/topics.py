"""The commands of `cranfield topics`: topics drawn from a log, and the traffic that they cover later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.base.collection import Topic
from cranfield.base.errors import ConventionError
from cranfield.base.parameters import whole
from cranfield.formats.collection_folder import topic_lines
from cranfield.formats.streams import plain_ending, write_bytes
from cranfield.pooling.topic_sampling import sample_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.pooling.topic_coverage import TopicCoverage
    from cranfield.pooling.topic_sampling import TopicSample


def sample(
    log: str,
    *,
    n: int,
    dest: str | None = None,
    min_units: int | None = None,
    allocation: Sequence[str] = (),
    design: str = "systematic",
    strata: str | None = None,
    seed: int = 0,
) -> TopicSample:
    """Draw topics from a log, and write them to the topics file `dest` if it is named.

    `allocation` has the number of topics of strata as STRATUM=N.
    """
    from cranfield.experiments.query_traffic import read_traffic

    counts = _allocation(allocation)
    traffic = read_traffic(log, min_units=min_units)
    drawn = sample_topics(traffic, n, design=design, strata=strata, allocation=counts, seed=seed)
    if dest is not None:
        write_bytes(dest, topics_bytes(drawn, dest))
    return drawn


def topics_bytes(drawn: TopicSample, path: str) -> Iterable[bytes]:
    """The content of a topics file; its ending decides: .csv, .jsonl (as a collection has it), or tabs for any other."""
    ending = plain_ending(path)
    if ending == ".jsonl":
        head, *rows = drawn.table()
        fields = [dict(zip(head, row, strict=True)) for row in rows]
        return topic_lines(Topic(each.pop("topic"), each.pop("query"), fields=each) for each in fields)
    return [(drawn.to_csv() if ending == ".csv" else drawn.to_tsv()).encode("utf-8", "surrogateescape")]


def _allocation(typed: Sequence[str]) -> Mapping[str, int]:
    counts = {}
    for text in typed:
        name, _, number = text.rpartition("=")
        try:
            counts[name] = whole(number)
        except ValueError:
            raise ConventionError(f"allocation: expected STRATUM=N, as in head=50, found {text!r}") from None
    return counts


def coverage(topics: str, log: str, *, min_units: int | None = None, seed: int = 0) -> TopicCoverage:
    """The share of the searches in a log that topics cover, and where traffic has moved since they were drawn."""
    from cranfield.experiments.query_traffic import read_traffic
    from cranfield.inputs.inputs import refuse_second_stdin
    from cranfield.inputs.topics import topic_table
    from cranfield.pooling.topic_coverage import topic_coverage

    refuse_second_stdin(topics, log)
    table = topic_table(topics, None)
    assert table is not None  # only without a file
    return topic_coverage(table, read_traffic(log, min_units=min_units), seed=seed)
