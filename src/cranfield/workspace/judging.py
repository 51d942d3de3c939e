"""Verbs on logs of judgments: add, export, take back, hand out, look back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError
from cranfield.hearing import say, tell_writing
from cranfield.judge.event import RELEVANCE, SOURCES, Event, instant
from cranfield.judge.opening import open_log
from cranfield.judge.policy import PEOPLE, Settings
from cranfield.parameters import masked, shortened
from cranfield.workspace.inputs import DEFAULT_MEASURES, Inputs, once
from cranfield.workspace.logs import Named, judgments_of, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collection import Duplicates, Qrels
    from cranfield.compare.label_noise import Doubt
    from cranfield.judge.adding import Added
    from cranfield.judge.aggregated import Aggregated
    from cranfield.judge.agreeing import Agreements
    from cranfield.judge.blame import Blame
    from cranfield.judge.changes import Changes
    from cranfield.judge.gold import GoldAnswer
    from cranfield.judge.log import Log
    from cranfield.judge.places import Version
    from cranfield.judge.plan import Lease, Nothing
    from cranfield.judge.status import Status
    from cranfield.judge.versions import Versions

RANKED_BY = "nDCG@10"  # runs by each person's labels, unless told


def add(
    location: str,
    files: Sequence[str],
    *,
    fields: Mapping[str, Sequence[str]] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    lenient: bool = False,
    duplicates: Duplicates | None = None,
    grades: Mapping[float, float] | None = None,
    ignore_case: bool = False,
    topics_file: str | None = None,
    scale: Sequence[float] = (),
    collection: str | None = None,
    **more: Any,
) -> Added:
    """Add the labels of files to a log, all or none; `more` are fields of every event, such as assessor and aspect.

    Labels that name topics by what they ask are joined with those of the topics file, or of the collection.
    """
    from cranfield.formats.tables import Dialect
    from cranfield.judge.adding import Added, sorted_out
    from cranfield.judge.taking import Reading, read_files, refuse_off
    from cranfield.workspace.topics import queries_of

    once(*files, topics_file)
    dialect = Dialect(delimiter, encoding, decimal)
    queries = queries_of(topics_file, collection, None, dialect, lenient)
    reading = Reading(fields, format, dialect, lenient, duplicates, grades, queries, ignore_case)
    given = {name: value for name, value in more.items() if value is not None}
    events: list[Event] = []
    where: dict[str, str] = {}
    for file, read in read_files(files, reading, **given).items():
        where |= {event.id: f"{file}:{event.origin.rpartition(' ')[2]}: " if event.origin else "" for event in read}
        events += read
    refuse_off(events, where, scale=set(scale), **_known(collection))
    sorted_out(events, {}, masked(location))  # files that contradict each other make no log
    tell_writing()
    if not events:
        return Added(0, 0)
    with _opened(location) as log:
        return log.add(events)


def _known(collection: str | None) -> dict[str, Any]:
    """The topics and documents of a collection."""
    if collection is None:
        return {}
    import cranfield

    opened = cranfield.read_collection(collection)
    return {
        "topics": {topic.id for topic in opened.topics},
        "documents": {document.id for document in opened.documents()},
    }


class _opened:
    """A log that is closed again."""

    def __init__(self, location: str, new: bool = True) -> None:
        self.log = open_log(location, new=new)

    def __enter__(self) -> Log:
        return self.log

    def __exit__(self, *_: object) -> None:
        self.log.close()


def export(
    location: str,
    format: str,
    *,
    all_events: bool = False,
    policy: str = "latest",
    sources: Sequence[str] | None = None,
) -> bytes:
    """The events that stand, or all, as JSON lines, CSV or trec_eval's prefs; or the grades by a policy as qrels.

    Unless `sources` says whose, lines and CSV hold everybody's, which they name, and prefs and qrels those of people.
    """
    from cranfield.judge.giving import PREFS, WRITERS

    if format == "qrels":
        from cranfield.collection import Qrels
        from cranfield.formats.known.trec import TREC

        decided = aggregate(location, policy, sources=sources or PEOPLE).decided
        say(decided.notes())
        return b"".join(TREC.write(Qrels(decided.grades, location).table, "qrels", ""))
    with _opened(location, new=False) as log:
        events = log.events()
        if not all_events:
            stand = {event.id for event in log.standing().values()}
            events = [event for event in events if event.id in stand]
    whose = sources or (PEOPLE if format == PREFS else SOURCES)
    others = sum(event.source not in whose and event.kind == "preference" for event in events)
    if others and not sources:
        say([f"{others:,} preferences are left out: they are a model's (--sources names who counts)"])
    return WRITERS[format]([event for event in events if event.source in whose])


def withdraw(
    location: str,
    *,
    assessor: str | None = None,
    since: str | None = None,
    until: str | None = None,
    topic: str | None = None,
    document: str | None = None,
    round: str | None = None,
    ids: Sequence[str] = (),
    by: str = "",
    note: str = "",
) -> int:
    """Take back what fits all that is said; how many events that were."""
    start, end = (None if when is None else instant(when) for when in (since, until))
    wanted = {"assessor": assessor, "topic": topic, "document": document, "round": round}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if not (wanted or start or end or ids):
        raise DataError("say what to withdraw: --assessor, --since, --topic, --document, --round or --id")
    with _opened(location, new=False) as log:
        events = log.events()
        gone = {event.refers for event in events if event.kind == "withdrawal"}
        fitting = [
            event
            for event in events
            if event.kind != "withdrawal"
            and event.id not in gone
            and all(getattr(event, name) == value for name, value in wanted.items())
            and (start is None or event.time >= start)
            and (end is None or event.time < end)
            and (not ids or event.id in ids)
        ]
        unknown = set(ids) - {event.id for event in events}
        if unknown:
            raise DataError(f"{log.name}: there is no event {shortened(min(unknown))!r}")
        log.add(
            [Event(kind="withdrawal", refers=event.id, assessor=by or event.assessor, note=note) for event in fitting]
        )
    return len(fitting)


def begin_round(
    location: str,
    *,
    name: str,
    pool: str | None = None,
    gold: str | None = None,
    runs: Sequence[str] = (),
    strategy: str = "",
    depth: int = 100,
    overlap: int = 1,
    double: float = 0.0,
    sample: int | None = None,
    sample_topics: int | None = None,
    seed: int = 0,
    guideline: str | None = None,
    **options: Any,
) -> Status:
    """Begin a round on a pool file, or on runs where a strategy chooses as labels come."""
    from cranfield.formats.pools import read_pool
    from cranfield.formats.reading import as_qrels
    from cranfield.judge.plan import DOCUMENTS, TOPICS, Round
    from cranfield.judge.planning import frame_of, planned
    from cranfield.judge.rounds import open_round, refuse_round
    from cranfield.judge.status import status

    once(pool, gold, *runs)
    by_lot = sample is not None or sample_topics is not None
    _refuse_round(pool or gold, runs, strategy, by_lot)
    items = [] if pool is None or strategy else read_pool(pool)
    known = {} if gold is None else as_qrels(judgments_of(gold)).to_dict()
    draw = {"sample": sample, "sample_topics": sample_topics, "seed": seed}
    asked = planned(items, overlap=overlap, double=double, gold=known, **draw)  # type: ignore[arg-type]
    lists = lists_of(runs, depth, pool) if strategy else {}
    frame = frame_of(items) if by_lot or any(each.probability < 1 for each in asked) else {}
    plan = Round(
        name=name,
        overlap=overlap,
        seed=seed,
        strategy=strategy,
        lists=lists,
        sample=_drawn(frame, sample, sample_topics, seed),
        unit=DOCUMENTS if sample_topics is None else TOPICS,
        frame=frame,
        guideline="" if guideline is None else hash_of_file(guideline),
        **options,
    )
    refuse_round(plan, asked)  # before a log is made
    with _opened(location, new=not plan.after) as log:
        open_round(log, plan, asked)
        return status(log, name)


def _refuse_round(file: str | None, runs: Sequence[str], strategy: str, by_lot: bool) -> None:
    """Refuse a round without documents, one of an unknown strategy, and one that is to be drawn in two ways."""
    from cranfield.pool.strategy import STRATEGIES

    if strategy:
        STRATEGIES.named(strategy)
    if strategy and not runs:
        raise DataError(f"--strategy {strategy} chooses from the tops of runs: name them with --run")
    if strategy and by_lot:
        raise DataError("--sample draws at random, --strategy by what was found: give one of them")
    if not (file or runs):
        raise DataError("a round needs documents: --pool FILE, or --run FILE … with --strategy, or --gold FILE")


def _drawn(frame: Mapping[str, Sequence[str]], sample: int | None, sample_topics: int | None, seed: int) -> str:
    """How a round's documents were drawn, in words."""
    if sample is not None:
        return f"{sample} of {sum(map(len, frame.values()))} documents at random, seed {seed}"
    if sample_topics is not None:
        return f"{sample_topics} of {len(frame)} topics at random, seed {seed}"
    return "with the pool" if frame else ""


def hash_of_file(path: str) -> str:
    """The hash of what assessors are told."""
    import hashlib

    from cranfield.formats.streams import open_buffer

    return f"sha256:{hashlib.sha256(bytes(open_buffer(path))).hexdigest()}"


def lists_of(runs: Sequence[str], depth: int, pool: str | None) -> dict[str, dict[str, list[str]]]:
    """The tops of runs, topic by topic, for a strategy to choose from; those of a pool alone if there is one."""
    from cranfield.formats import as_runs
    from cranfield.formats.pools import read_pool
    from cranfield.pool.rankings import rankings
    from cranfield.workspace.inputs import Inputs

    tops = rankings(as_runs(Inputs(runs=runs).files()), depth)
    inside = None if pool is None else {(item.topic, item.document) for item in read_pool(pool)}
    return {
        topic: {
            run: [
                each.documents[number]
                for number in ranked
                if inside is None or (topic, each.documents[number]) in inside
            ]
            for run, ranked in zip(each.runs, each.lists, strict=True)
        }
        for topic, each in tops.candidates.items()
    }


def next_item(location: str, assessor: str, name: str = "", n: int = 1) -> list[Lease] | Nothing:
    """What somebody is to judge next, leased to them; or why there is nothing."""
    from cranfield.judge.looking import decided
    from cranfield.judge.plan import find_round
    from cranfield.judge.rounds import lease

    with _opened(location, new=False) as log:
        answer = lease(log, assessor, name, n)
        with log.reading() as transaction:
            adaptive = isinstance(answer, list) and find_round(transaction.connection, answer[0].round)[0].strategy
        if adaptive:  # the strategy went by the labels that stand
            say(decided(log).notes())
        return answer


def set_round(location: str, name: str, state: str) -> None:
    """Pause a round, go on with it or close it."""
    from cranfield.judge.rounds import set_state

    with _opened(location, new=False) as log:
        set_state(log, name, state)


def rounds_status(location: str, name: str = "") -> Status:
    """How far the rounds of a log are."""
    from cranfield.judge.status import status

    with _opened(location, new=False) as log:
        return status(log, name)


def blame(location: str, topic: str, document: str) -> Blame:
    """Who said what about a document, and what of it stands."""
    from cranfield.judge.blame import blame

    with _opened(location, new=False) as log:
        return blame(log, topic, document)


def aggregate(
    location: str,
    policy: str,
    *,
    aspect: str = RELEVANCE,
    sources: Sequence[str] = PEOPLE,
    ties: str = "lower",
    gold: str | None = None,
    at: str | None = None,
) -> Aggregated:
    """One grade for each document, by a policy; gold is that of rounds and of a qrels file."""
    from cranfield.formats.reading import as_qrels
    from cranfield.judge.aggregated import Aggregated
    from cranfield.judge.policy import decide, labels_of, preferences_of
    from cranfield.judge.standing import standing

    settings = Settings(aspect=aspect, sources=tuple(sources), ties=ties)  # type: ignore[arg-type]
    with _opened(location, new=False) as log:
        if at is None:
            stand = log.standing()
        else:
            until = instant(at)
            stand = standing([event for event in log.events() if event.time < until])
        known = _gold_of(log)
        name = log.name
    if gold is not None:
        known |= {
            (topic, document): grade
            for topic, grades in as_qrels(judgments_of(gold)).to_dict().items()
            for document, grade in grades.items()
        }
    decided = decide(stand, policy, settings, known)
    labels = labels_of(stand, aspect, tuple(sources))
    if decided.strengths:
        labels = preferences_of(stand, aspect, tuple(sources))
    if not len(decided):
        raise DataError(f"{name}: no label stands that counts by {policy} (aspect {aspect}, from {', '.join(sources)})")
    return Aggregated(name, decided, labels)


def graded(location: str, policy: str | None = None) -> tuple[Qrels, Doubt]:
    """The qrels of a log by a policy (majority unless told), or of a version of it (LOG@NAME), and how sure they are."""
    from cranfield.collection import Qrels
    from cranfield.judge.doubt import doubt_of, doubt_of_version
    from cranfield.judge.policy import decide

    word = named(location) or Named(location)
    where, version = word.log, word.version or ""
    if version and policy is not None:
        raise ConventionError(f"version {version!r} has a policy of its own; leave --by out, or name the log alone")
    with _opened(where, new=False) as log:
        if version:
            decided, doubt = doubt_of_version(log, version)
        else:
            stand = log.standing()
            decided = decide(stand, policy or "majority", Settings(), _gold_of(log))
            if not len(decided):
                raise DataError(f"{log.name}: no label of a person stands")
            doubt = doubt_of(stand, decided)
        return Qrels(decided.grades, f"{log.name}@{version}" if version else log.name), doubt


def _gold_of(log: Log) -> dict[tuple[str, str], float]:
    """The gold of a log's rounds; a file of lines without rounds is not worth a database."""
    if not log.has_records():
        return {}
    from cranfield.judge.versions import gold_of

    with log.reading() as transaction:
        return gold_of(transaction)


def freeze(location: str, name: str, policy: str, *, note: str = "", **settings: Any) -> tuple[Version, list[str]]:
    """Freeze the qrels of the moment under a name; with what to know of it."""
    from cranfield.judge.versions import freeze

    if "sources" in settings:
        settings["sources"] = tuple(settings["sources"])
    with _opened(location, new=False) as log:
        version, decided = freeze(log, name, policy, Settings(**settings), note)
        return version, decided.notes()


def versions(location: str) -> Versions:
    """What is frozen."""
    from cranfield.judge.versions import Versions, all_versions

    with _opened(location, new=False) as log:
        return Versions(log.name, all_versions(log))


def verify(location: str) -> Versions:
    """Read the whole log, hold its records against their hashes, and work every version out again."""
    from cranfield.judge.versions import Versions, all_versions, thaw

    wrong = {}
    with _opened(location, new=False) as log:
        log.verify()
        rows = all_versions(log)
        for version in rows:
            try:
                thaw(log, version.name)
            except DataError as error:
                wrong[version.name] = str(error)
        return Versions(log.name, rows, wrong)


def diff(
    location: str,
    a: str,
    b: str | None = None,
    *,
    runs: Sequence[str] = (),
    measures: Sequence[str] = (),
    policy: str = "latest",
) -> Changes:
    """What changed from one version to another, or to what stands now; with runs, which scores and verdicts."""
    from cranfield.judge.changes import changes
    from cranfield.judge.policy import decide
    from cranfield.judge.versions import thaw

    with _opened(location, new=False) as log:
        one = thaw(log, a)
        other = decide(log.standing(), policy, gold=_gold_of(log)) if b is None else thaw(log, b)
    say(one.notes() + other.notes())
    before, after = one.grades, other.grades
    found = changes(a, before, b or f"now ({policy})", after)
    if not runs:
        return found
    from cranfield.judge.changes import with_scores

    names = list(measures) or list(DEFAULT_MEASURES)
    return with_scores(found, before, after, Inputs(runs=runs).open_runs(), names)


def agree(
    sources: Sequence[str],
    *,
    runs: Sequence[str] = (),
    measures: Sequence[str] = (),
    disagreements: str | None = None,
    aspect: str = RELEVANCE,
    whose: Sequence[str] = PEOPLE,
    round: str = "",
    **how: Any,
) -> Agreements:
    """How far people agree: those of a log, of one round of it, or the files of several qrels."""
    from dataclasses import replace

    from cranfield.formats.pools import pool_lines
    from cranfield.formats.streams import write_bytes
    from cranfield.judge import agreeing

    name, events, more = _opinions(sources, aspect, whose, round)
    found = agreeing.agreements(name, events, **more, **how)
    if not any(one.defined for one in (*found.found, *found.parts.values())):
        told = f"expected two people who labelled the same documents, found {found.found[0].reason}"
        raise DataError(f"{name}: no agreement to speak of: {told}")
    if disagreements is not None:
        write_bytes(disagreements, pool_lines(agreeing.disagreements(events)))
    if not runs:
        return found
    return replace(
        found, rankings=agreeing.rankings(events, Inputs(runs=runs).open_runs(), list(measures) or [RANKED_BY])
    )


def _opinions(
    sources: Sequence[str], aspect: str, whose: Sequence[str], round: str = ""
) -> tuple[str, list[Event], dict[str, Any]]:
    """The labels of a log, or of qrels that stand for a person each; with what else is known of them."""
    from cranfield.judge.policy import labels_of
    from cranfield.judge.taking import read_files
    from cranfield.judge.versions import stood_at

    once(*sources)
    if len(sources) > 1:
        found = {word: named(word) for word in sources}
        logs = {word: _opinions_in_log(one, word, aspect, whose) for word, one in found.items() if one is not None}
        read = {**logs, **read_files([word for word in sources if word not in logs])}
        events = [event for word in sources for event in read[word]]
        names = {event.assessor for event in events}
        if len(names) < len(sources):
            raise DataError(f"two of {', '.join(sources)} would have the same name; rename one")
        return " and ".join(sources) if len(sources) < 4 else f"{len(sources)} files", events, {}
    word = named(sources[0]) or Named(sources[0])
    with _opened(word.log, new=False) as log:
        stand = log.standing() if word.version is None else stood_at(log, word.version)
        answers = _answers(log, round)
        name = log.name if word.version is None else f"{log.name}@{word.version}"
    if round:
        stand = {key: event for key, event in stand.items() if event.round == round}
        name = f"{name}, round {round}"
    labels = labels_of(stand, aspect, whose)
    again = [event for event in labels_of(stand, aspect, whose, repeats=True) if event.repeat]
    cannot = sum(key.side == "label" and event.kind == "cannot-judge" for key, event in stand.items())
    return name, labels, {"repeats": again, "gold": answers, "cannot": cannot}


def _opinions_in_log(log: Named, word: str, aspect: str, whose: Sequence[str]) -> list[Event]:
    """The labels that stand in a log; the qrels of a version (LOG@NAME) as labels of one person, named as it is written."""
    if log.version is None:
        from cranfield.judge.policy import labels_of

        with _opened(log.log, new=False) as opened:
            labels = labels_of(opened.standing(), aspect, whose)
        if not labels:
            raise DataError(f"{masked(word)}: no label stands that counts (aspect {aspect}, from {', '.join(whose)})")
        return labels
    from cranfield.formats.reading import as_qrels

    return [
        Event(topic=topic, document=document, grade=grade, assessor=word, source="import", time="0001-01-01")
        for topic, grades in as_qrels(judgments_of(word)).to_dict().items()
        for document, grade in grades.items()
    ]


def _answers(log: Log, round: str = "") -> list[GoldAnswer]:
    """The answers to gold of one round, or of all."""
    if not log.has_records():
        return []
    from sqlalchemy import select

    from cranfield.judge.gold import answers
    from cranfield.store.tables import rounds

    with log.reading() as transaction:
        names = [round] if round else transaction.connection.execute(select(rounds.c.name)).scalars().all()
        return [answer for name in names for answer in answers(transaction.connection, name)]
