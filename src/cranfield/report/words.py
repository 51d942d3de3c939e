"""The summary of a report: what was compared, who is ahead by each measure, and how sure that is.

A mean that is highest is never called "best" without the share of the others that it is significantly better than.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cranfield.columns import joined
from cranfield.report.tables import number
from cranfield.report.texts import first_words

if TYPE_CHECKING:
    from cranfield.report.reporting import Report


QUERY = 60  # letters of what was asked within a sentence
NAMED = re.compile(r"'([^']+)'(?! \()")  # a topic's id, as sentences quote it, that nobody has explained yet


def summary(report: Report) -> list[str]:
    """A sentence about what was compared, then one or two a measure."""
    comparison = report.comparison
    topics = len(comparison.scores.topics)
    what = f"{_counted(len(report.systems), 'system')} on {_counted(topics, 'topic')} by {joined(report.measures)}"
    against = f", against {joined(comparison.baselines)}" if comparison.baselines else ""
    return [f"This report compares {what}{against}.", *(_leader(report, measure) for measure in report.measures)]


def limits(report: Report) -> list[list[str]]:
    """The cautions by their kind, each said once; topics in them with what was asked."""
    kinds: dict[str, list[str]] = {}
    for caution in report.comparison.cautions:
        text = asked(report, caution.text)
        known = kinds.setdefault(caution.code, [])
        known.extend([text] if text not in known else [])
    return list(kinds.values())


def asked(report: Report, text: str) -> str:
    """A sentence whose topics are followed by what was asked, where that is known."""

    def followed(name: re.Match[str]) -> str:
        query = first_words(report.queries.get(name[1], ""), QUERY)
        return f"{name[0]} ({query})" if query else name[0]

    return NAMED.sub(followed, text) if report.queries else text


def _leader(report: Report, measure: str) -> str:
    turn = 1 if report.lower_is_better(measure) else -1
    known = [name for name in report.systems if report.mean(name, measure) == report.mean(name, measure)]
    if not known:
        return f"By {measure} no system has a value."
    order = sorted(known, key=lambda name: turn * report.mean(name, measure))
    leader = order[0]
    lead = "lowest (lower is better)" if report.lower_is_better(measure) else "highest"
    start = f"By {measure}, {leader} has the {lead} mean{_by(report)}, {number(report.mean(leader, measure), report.digits)}"
    rivals = [name for name in order[1:] if report.pair(measure, name, leader) is not None]
    beaten = [name for name in rivals if report.better(measure, name, leader) > 0]
    torn = [name for name in rivals if report.torn(measure, name, leader)]
    open_ = [name for name in rivals if name not in beaten]
    if len(rivals) == 1:
        pair = report.pair(measure, rivals[0], leader)
        assert pair is not None
        return f"{start}: {report.sentence(pair)}."
    if not rivals:
        return f"{start}."
    if not open_:
        return (
            f"{start}; it is significantly better than each of the {_counted(len(rivals), 'system')} compared with it."
        )
    if not beaten:
        return f"{start}, but it is significantly better than none of the {_counted(len(rivals), 'system')} compared with it."
    open_ = [name for name in open_ if name not in torn]
    few = f" ({joined(open_)})" if len(open_) <= 4 else ""
    rest = [f"against {len(open_)}{few} the data do not settle it"] if open_ else []
    rest += [f"against {len(torn)} the mean and the test point apart"] if torn else []
    return (
        f"{start}; it is significantly better than {len(beaten)} of the {len(rivals)} systems compared with it, "
        f"and {' and '.join(rest)}."
    )


def _by(report: Report) -> str:
    return f" by {report.comparison.weighed_by}" if report.comparison.weighed_by else ""


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
