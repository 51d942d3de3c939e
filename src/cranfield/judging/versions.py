"""Frozen qrels: a name for a policy and a position in the log, with the hash of the qrels; changes between versions.

The log holds no copy. The qrels are computed again from the events up to that place and compared with the hash. So a log
that was edited by hand, or a policy that gives other grades today, is noticed. A workspace caches the qrels by their hash
(`judging.version_cache`), so that it computes each version once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.base.results import Answer, Layout, Lines, Part, Table, as_dicts
from cranfield.base.schemas import check, read_json
from cranfield.comparison.compare import evidence_of
from cranfield.comparison.score_tables import ScoredRuns
from cranfield.evaluation.evaluate import evaluate
from cranfield.judging.assignments import ANOTHER_NAME, Version, record, taken
from cranfield.judging.current_labels import LabelKey, current_events, graded_labels
from cranfield.judging.policies import (
    DecidedGrades,
    Grades,
    PolicySettings,
    Subject,
    decide,
    decide_by_topic,
    flat,
    goes_by_labels,
    meanings,
)
from cranfield.judging.version_cache import hash_of
from cranfield.store.hashes import VERSION, refuse_changed, refuse_changed_documents
from cranfield.store.tables import items, versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.base.run import Run
    from cranfield.evaluation.scores import Scores
    from cranfield.judging.event import Event
    from cranfield.judging.log import Log
    from cranfield.judging.table_changes import Transaction
    from cranfield.judging.version_cache import VersionSummary


SHOWN = 10
MOST = 500  # on a page, where a table scrolls


@dataclass(frozen=True)
class ScoreChange:
    """A run's mean by a measure under both versions."""

    run: str
    measure: str
    before: float
    after: float


@dataclass(frozen=True)
class VerdictChange:
    """A pair of runs whose verdict differs."""

    measure: str
    one: str
    other: str
    before: str
    after: str


@dataclass(frozen=True, repr=False)
class VersionChanges(Answer):
    """The grades that differ between two versions; with runs also their scores, and the verdicts that differ."""

    a: str
    b: str
    added: list[tuple[str, str, float]]
    removed: list[tuple[str, str, float]]
    changed: list[tuple[str, str, float, float]]
    same: int
    scores: list[ScoreChange] = field(default_factory=list)
    verdicts: list[VerdictChange] = field(default_factory=list)
    compared: bool = False  # whether verdicts were looked for

    def content(self, how: Layout) -> Iterator[Part]:
        counts = f"{len(self.changed):,} grades changed, {len(self.added):,} added, {len(self.removed):,} removed"
        yield f"{self.a} → {self.b}: {counts}, {self.same:,} the same"
        pairs = Counter((before, after) for _, _, before, after in self.changed)
        if pairs:
            rows = [[f"{before:g}", f"{after:g}", f"{n:,}"] for (before, after), n in sorted(pairs.items())]
            yield Table(["grade before", "after", "documents"], rows)
        if self.scores:
            rows = []
            for one in self.scores:
                values = map(how.number, (one.before, one.after))
                rows.append([one.run, one.measure, *values, f"{one.after - one.before:+.4f}"])
            yield Table(["run", "measure", "before", "after", "change"], rows)
        if self.compared:
            lines = [
                f"{each.one} and {each.other} by {each.measure}: {each.before} before, {each.after} now"
                for each in self.verdicts
            ]
            yield Lines(lines or ["no verdict between two runs changes"])
        changes = self.changed if how.every else self.changed[: MOST if how.medium == "html" else SHOWN]
        if changes:
            rows = [[topic, document, f"{before:g}", f"{after:g}"] for topic, document, before, after in changes]
            yield Table(["topic", "document", "before", "after"], rows)
        if len(self.changed) > len(changes):
            where = "its JSON" if how.medium == "html" else "--format json"
            yield f"and {len(self.changed) - len(changes):,} more ({where} has them all)"

    def plain(self, how: Layout) -> dict[str, Any]:
        return {name: as_dicts(value) for name, value in vars(self).items() if name != "compared"}

    def records(self, how: Layout) -> Iterator[tuple[Any, ...]]:
        yield "topic", "document", "before", "after"
        yield from self.changed
        yield from ((topic, document, None, grade) for topic, document, grade in self.added)
        yield from ((topic, document, grade, None) for topic, document, grade in self.removed)


def version_changes(a: str, before: Grades, b: str, after: Grades) -> VersionChanges:
    """The differences between two versions."""
    one, other = flat(before), flat(after)
    added = [(*subject, grade) for subject, grade in other.items() if subject not in one]
    removed = [(*subject, grade) for subject, grade in one.items() if subject not in other]
    both = [(*subject, one[subject], grade) for subject, grade in other.items() if subject in one]
    changed = [each for each in both if each[2] != each[3]]
    return VersionChanges(a, b, added, removed, changed, same=len(both) - len(changed))


def with_scores(
    changes: VersionChanges, before: Grades, after: Grades, runs: list[Run], measures: list[str]
) -> VersionChanges:
    """The changes with the scores of runs under both versions, and the verdicts that differ."""
    scores = [evaluate(grades, runs, measures) for grades in (before, after)]
    rows = [
        ScoreChange(run, measure, *(each.mean(measure, run) for each in scores))
        for measure in scores[0].measures
        for run in scores[0].runs
    ]
    if len(runs) < 2:
        return replace(changes, scores=rows)
    winners = [who_is_better(each) for each in scores]
    verdicts = [
        VerdictChange(*pair, in_words(verdict), in_words(winners[1][pair]))
        for pair, verdict in winners[0].items()
        if winners[1][pair] != verdict
    ]
    return replace(changes, scores=rows, verdicts=verdicts, compared=True)


def who_is_better(scores: Scores, baselines: str | None = None) -> dict[tuple[str, str, str], str]:
    """The significantly better run of every pair by every measure (with `baselines`, of every run and a baseline), or ""."""
    evidence = evidence_of(ScoredRuns(scores, {}, {}), "randomisation", "holm", baselines=baselines, alpha=0.05, seed=0)
    answer = {}
    for pair in evidence.pairs:
        significant = evidence.significant(pair) and pair.better != "neither"
        winner = pair.one if pair.better == "one" else pair.other
        answer[pair.measure, pair.one, pair.other] = winner if significant else ""
    return answer


def in_words(winner: str) -> str:
    """A verdict in words."""
    return f"{winner} better" if winner else "not told apart"


@dataclass(frozen=True, repr=False)
class Versions(Answer):
    """The frozen versions of a log."""

    log: str
    rows: list[Version]
    wrong: dict[str, str] | None = None  # by name: why a version does not come out; None: not looked at

    def content(self, how: Layout) -> Iterator[Part]:
        if not self.rows:
            yield f"{self.log}: no version is frozen yet (cranfield judge freeze makes one)"
            return
        if self.wrong is not None:
            broken = len(self.wrong)
            yield f"{self.log}: {len(self.rows) - broken} of {len(self.rows)} versions come out as they were frozen"
        rows = [
            [one.name, one.created[:16].replace("T", " "), one.policy, f"{one.documents:,}", one.hash[7:19], one.note]
            for one in self.rows
        ]
        yield Table(["version", "frozen", "by", "documents", "hash", "note"], rows)

    def plain(self, how: Layout) -> Any:
        wrong = self.wrong
        return [vars(each) | ({} if wrong is None else {"verified": each.name not in wrong}) for each in self.rows]

    def notes(self, shell: bool = False) -> list[str]:
        return list((self.wrong or {}).values())


def gold_grades(log: Log) -> dict[Subject, float]:
    """The gold grades of all rounds of a log."""
    if not log.has_records():  # a file of lines without rounds needs no tables
        return {}
    with log.reading() as transaction:
        return gold_of(transaction)


def gold_of(transaction: Transaction, rounds: Sequence[str] | None = None) -> dict[Subject, float]:
    """The known grades of gold in these rounds, or in all."""
    query = select(items.c.topic, items.c.document, items.c.grade).where(items.c.role == "gold")
    if rounds is not None:
        query = query.where(items.c.round.in_(rounds))
    rows = transaction.connection.execute(query.order_by(items.c.round, items.c.item))
    return {(row.topic, row.document): row.grade for row in rows}


def freeze(
    log: Log, name: str, policy: str, settings: PolicySettings | None = None, note: str = ""
) -> tuple[Version, DecidedGrades]:
    """Freeze the current qrels under a name.

    Nobody waits meanwhile: the qrels are computed from a snapshot, and the version is written at the end. Of two that freeze
    the same name at once, one is refused.
    """
    how = settings or PolicySettings()
    if not name or name != name.strip() or "@" in name or "/" in name:
        raise DataError(f"a version's name has no @, no / and no blanks around it, found {name!r}")
    with log.snapshot() as transaction:
        place = transaction.place()
        if name in transaction.connection.execute(select(versions.c.name)).scalars().all():
            raise taken(VERSION, name, ANOTHER_NAME)
        decided = _decide_current(transaction, policy, how)
        if not len(decided):
            raise DataError(f"{log.name}: there is nothing to freeze: the log has no current label")
        query = select(items.c.round).where(items.c.role == "gold").distinct()
        rounds = sorted(transaction.connection.execute(query).scalars())
        for each in rounds:
            refuse_changed_documents(transaction.connection, each)
        created = transaction.now
    version = Version(
        name=name,
        policy=policy,
        settings=asdict(how),
        place=place,
        hash=hash_of(decided.grades),
        documents=len(decided),
        created=created,
        note=note,
        gold=rounds,
    )
    if log.version_cache is not None:
        log.version_cache.write(version.hash, decided)
    log.write(lambda transaction: transaction.apply(record("version", **asdict(version))))
    return version, decided


def _decide_current(transaction: Transaction, policy: str, how: PolicySettings) -> DecidedGrades:
    """The grades of the labels that are current in a snapshot."""
    gold = gold_of(transaction)
    if goes_by_labels(policy):
        return decide_by_topic(transaction.grades_by_topic(how.aspect), policy, how, gold)
    return decide(current_events(transaction.events()), policy, how, gold)


def all_versions(log: Log) -> list[Version]:
    """Every version of a log, the oldest first."""
    with log.reading() as transaction:
        rows = transaction.connection.execute(select(versions).order_by(versions.c.created, versions.c.name)).all()
        for row in rows:
            refuse_changed(transaction.connection, VERSION, row.name, row.definition)
    return [read_json(row.definition, Version, f"version {shortened(row.name)!r}") for row in rows]


def find_version(log: Log, name: str) -> Version:
    """A version by its name."""
    versions_by_name = {version.name: version for version in all_versions(log)}
    if name not in versions_by_name:
        there = ", ".join(map(repr, versions_by_name)) or "none"
        raise DataError(f"{log.name}: there is no version {name!r}; there are: {there}")
    return versions_by_name[name]


def labels_at_version(log: Log, name: str) -> dict[LabelKey, Event]:
    """The current events at the time when a version was frozen."""
    version = find_version(log, name)
    with log.reading() as transaction:
        return current_events(transaction.events(up_to=version.place))


def thaw(log: Log, name: str, whole: bool = False) -> DecidedGrades:
    """The qrels of a version, compared with their hash.

    They come from the workspace's cache, or from the events up to the place of the version. With `whole` they always come
    from the events: the cache has no verdict of a consensus method.
    """
    version = find_version(log, name)
    how = check(version.settings, PolicySettings, f"{log.name}: settings of version {name!r}")
    cache = log.version_cache
    if cache is not None and not whole and (cached := cache.read(version.hash, how)) is not None:
        return cached
    with log.reading() as transaction:
        for policy in meanings(version.policy):
            decided = _decide_before(transaction, version, policy, how)
            if hash_of(decided.grades) == version.hash:
                if cache is not None:
                    cache.write(version.hash, decided)
                return decided
    frozen = f"frozen ({version.policy}, {version.created[:10]})"
    problem = f"{log.name}: version {name!r} no longer comes out as it was {frozen}"
    raise DataError(f"{problem}: events before it were changed, or {version.policy} now gives something else")


def cached_summary(log: Log, version: Version) -> VersionSummary | None:
    """The summary of a version from the workspace's cache; None if its qrels must be computed again."""
    return None if log.version_cache is None else log.version_cache.summary(version.hash)


def _decide_before(transaction: Transaction, version: Version, policy: str, how: PolicySettings) -> DecidedGrades:
    """The grades of the labels that were current at the place of a version."""
    gold = gold_of(transaction, version.gold)
    if goes_by_labels(policy):
        topics = transaction.label_events_by_topic(version.place, how.aspect)
        labels = (graded_labels(current_events(events), how.aspect) for events in topics)
        return decide_by_topic(labels, policy, how, gold)
    return decide(current_events(transaction.events(up_to=version.place)), policy, how, gold)
