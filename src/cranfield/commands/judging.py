"""What the `judge` commands do with a log: add, export, withdraw, lease, aggregate, freeze, compare."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import say, tell_writing
from cranfield.base.parameters import masked, shortened
from cranfield.base.qrels import Qrels
from cranfield.base.text_layout import counted
from cranfield.formats import as_runs, collection_folder
from cranfield.formats.collection_folder import collection_home
from cranfield.formats.csv_tables import Dialect
from cranfield.formats.files.trec import TREC
from cranfield.formats.log_kind import WORK_DB
from cranfield.formats.pool_files import pool_lines, read_pool
from cranfield.formats.runs_and_qrels import as_qrels
from cranfield.formats.streams import open_buffer, write_bytes
from cranfield.formats.topic_tables import topic_ids_in
from cranfield.inputs.inputs import DEFAULT_MEASURES, Inputs, refuse_second_stdin
from cranfield.inputs.logs import Named, file_or_qrels, import_collection, named, own_judgments, workspace_at
from cranfield.inputs.topics import queries_of
from cranfield.judging import log_queries
from cranfield.judging.collection_judgments import with_own_events
from cranfield.judging.current_labels import LabelKey, current_events, rated_labels
from cranfield.judging.event import CLICKS, RELEVANCE, SOURCES, Event, instant
from cranfield.judging.event_intake import KnownIds, new_events
from cranfield.judging.guidelines import Guidelines
from cranfield.judging.guidelines_history import keep_guidelines
from cranfield.judging.label_import import (
    PREFS,
    WRITERS,
    LabelReading,
    grades_by_label,
    guidelines_in,
    read_files,
    refuse_off,
)
from cranfield.judging.log import AddedEvents, Log
from cranfield.judging.log_location import open_log
from cranfield.judging.log_queries import decide_log
from cranfield.judging.policies import ONE_SET, PEOPLE, PolicySettings, decide, labels_of, preferences_of
from cranfield.judging.round_changes import ChangeRequest, assign_topics, change_round, round_documents
from cranfield.judging.round_plan import (
    DOCUMENTS,
    PRIORITY,
    SHUFFLED,
    TOPICS,
    Lease,
    NoLease,
    Round,
    frame_of,
    plan_items,
    without_judged,
)
from cranfield.judging.round_status import Status, gold_answers, status
from cranfield.judging.rounds import lease, open_round, refuse_round, set_state, topic_choices, topic_sizes
from cranfield.pooling.strategy import STRATEGIES, rankings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cranfield.comparison.label_noise import LabelUncertainty
    from cranfield.judging.aggregation import AggregationResult
    from cranfield.judging.agreement import Agreements
    from cranfield.judging.assignments import Version
    from cranfield.judging.current_labels import RatedLabel
    from cranfield.judging.log_queries import Blame
    from cranfield.judging.pseudonyms import Pseudonymisation
    from cranfield.judging.round_plan import RoundItem
    from cranfield.judging.rounds import TopicChoice
    from cranfield.judging.versions import VersionChanges, Versions


WITHOUT_CLICKS = tuple(source for source in SOURCES if source != CLICKS)
RANKED_BY = "nDCG@10"  # the default measure that ranks runs by each person's labels


def add(
    location: str,
    files: Sequence[str],
    *,
    topics_file: str | None = None,
    scale: Sequence[float] = (),
    collection: str | None = None,
    **options: Any,
) -> AddedEvents:
    """Add the labels of files to a log; if one label is refused, none is added.

    Labels that name a topic by its query are matched with the topics file, or with the collection. `options` are those of
    `LabelReading` and `Dialect`; the others are fields of every event, such as assessor and aspect.
    """
    refuse_second_stdin(*files, topics_file)
    dialect = Dialect(*(options.pop(name, None) for name in ("delimiter", "encoding", "decimal")))
    how = {name: options.pop(name) for name in LabelReading._fields if name in options}
    own_collection = collection or _collection_with(location)
    queries = queries_of(topics_file, own_collection, None, dialect, how.get("lenient", False))
    reading = LabelReading(**how, dialect=dialect, queries=queries, grade_names=_grade_names(own_collection))
    fields_of_all = {name: value for name, value in options.items() if value is not None}
    events: list[Event] = []
    where: dict[str, str] = {}
    for file, read in read_files(files, reading, **fields_of_all).items():
        where |= {event.id: f"{file}:{event.origin.rpartition(' ')[2]}: " if event.origin else "" for event in read}
        events += read
    refuse_off(events, where, set(scale), _known_ids(location, collection))
    new_events(events, {}, masked(location))  # files that contradict each other make no log
    tell_writing()
    if not events:
        return AddedEvents(0, 0)
    versions = [version for file in files if file != "-" for version in guidelines_in(file)]
    with _opened(location) as log:
        added = log.add(events)
        for version in versions:
            keep_guidelines(log, version)
    return added


def _known_ids(location: str, collection: str | None) -> KnownIds:
    """The topics and documents of a collection: the one that is named, or that of the workspace that a log belongs to."""
    import cranfield

    folder = collection if collection is not None else workspace_at(location)
    if folder is None:
        return KnownIds()
    files = {} if collection is not None else collection_home(folder)[1]
    table = files.get(collection_folder.TOPICS)
    table = table if table is not None and os.path.getsize(table) else None
    if collection is None and collection_folder.DOCUMENTS not in files:
        return KnownIds() if table is None else KnownIds(topic_ids_in(table))
    opened = cranfield.read_collection(folder)
    documents = {document.id for document in opened.documents()}
    topics = frozenset(topic.id for topic in opened.topics)
    return KnownIds(topics if collection is not None or table is not None else None, documents.__contains__)


def _grade_names(collection: str | None) -> dict[str, float] | None:
    """The grades of a collection by their labels."""
    import cranfield

    return None if collection is None else grades_by_label(cranfield.read_collection(collection).grades)


def _collection_with(location: str) -> str | None:
    """The collection of the workspace that a log belongs to; None for any other log, or without documents."""
    workspace = workspace_at(location)
    files = {} if workspace is None else collection_home(workspace)[1]
    return workspace if collection_folder.DOCUMENTS in files and collection_folder.TOPICS in files else None


def _opened(location: str, new: bool = True) -> closing[Log]:
    return closing(open_log(location, new=new))


def export(
    location: str,
    format: str,
    *,
    all_events: bool = False,
    policy: str = "latest",
    sources: Sequence[str] | None = None,
) -> bytes:
    """The current events, or all, as JSON lines, CSV or trec_eval's prefs; or the grades by a policy as qrels.

    `sources` chooses whose labels are written. By default JSON lines and CSV hold all labels with their sources, except
    judgments from clicks, which come only with `all_events`; prefs hold only people's labels; qrels also hold the
    collection's own judgments of documents that no person labelled.
    """
    if format == "qrels":
        decided = aggregate(location, policy, sources=sources or ONE_SET).decided
        say(decided.notes())
        return b"".join(TREC.write(Qrels(decided.grades, location).table, "qrels", ""))
    with _opened(location, new=False) as log:
        events = log.events()
        if not all_events:
            current = {event.id for event in log.current_events().values()}
            events = [event for event in events if event.id in current]
    whose = sources or (PEOPLE if format == PREFS else SOURCES if all_events else WITHOUT_CLICKS)
    others = sum(event.source not in whose and event.kind == "preference" for event in events)
    if others and not sources:
        say([f"{others:,} preferences are left out: they are a model's (--sources names who counts)"])
    return WRITERS[format]([event for event in events if event.source in whose])


def withdraw(
    location: str,
    *,
    since: str | None = None,
    until: str | None = None,
    ids: Sequence[str] = (),
    by: str = "",
    note: str = "",
    **subject: str | None,
) -> int:
    """Withdraw every event that matches all filters, and return their number.

    `subject` has the filters assessor, topic, document and round.
    """
    start, end = (None if when is None else instant(when) for when in (since, until))
    filters = {name: value for name, value in subject.items() if value is not None}
    if not (filters or start or end or ids):
        raise DataError("say what to withdraw: --assessor, --since, --topic, --document, --round or --id")
    with _opened(location, new=False) as log:
        events = log.events()
        gone = {event.refers for event in events if event.kind == "withdrawal"}
        fitting = [
            event
            for event in events
            if event.kind != "withdrawal"
            and event.id not in gone
            and all(getattr(event, name) == value for name, value in filters.items())
            and (start is None or event.time >= start)
            and (end is None or event.time < end)
            and (not ids or event.id in ids)
        ]
        unknown = set(ids) - {event.id for event in events}
        if unknown:
            raise DataError(f"{log.name}: there is no event {shortened(min(unknown))!r}")
        who = {event.id: by or event.assessor for event in fitting}
        log.add([Event(kind="withdrawal", refers=id, assessor=name, note=note) for id, name in who.items()])
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
    order: str = SHUFFLED,
    spread_topics: bool = False,
    guideline: str | None = None,
    **options: Any,
) -> Status:
    """Open a round on a pool file, or on runs from which a strategy chooses as labels arrive.

    With `spread_topics`, topics are assigned to the assessors evenly.
    """
    refuse_second_stdin(pool, gold, *runs)
    by_lot = sample is not None or sample_topics is not None
    _refuse_round(pool or gold, runs, strategy, by_lot)
    items = [] if pool is None or strategy else read_pool(pool)
    gold_qrels = {} if gold is None else as_qrels(file_or_qrels(gold)).to_dict()
    draw = {"sample": sample, "sample_topics": sample_topics, "seed": seed}
    round_items = plan_items(items, overlap=overlap, double=double, gold=gold_qrels, **draw)  # type: ignore[arg-type]
    lists = unjudged(location, lists_of(runs, depth, pool)) if strategy else {}
    note_judged(location, round_items)
    version = Guidelines() if guideline is None else Guidelines(read_guidelines(guideline))
    frame = frame_of(items) if by_lot or any(each.probability < 1 for each in round_items) else {}
    plan = Round(
        name=name,
        overlap=overlap,
        seed=seed,
        order=PRIORITY if strategy else order,
        strategy=strategy,
        lists=lists,
        depth=depth if strategy else 0,
        sample=_sample_text(frame, sample, sample_topics, seed),
        unit=DOCUMENTS if sample_topics is None else TOPICS,
        frame=frame,
        guideline=version.hash,
        **options,
    )
    if spread_topics:
        plan = spread_over_people(plan, round_items)
    refuse_round(plan, round_items)  # before a log is made
    with _opened(location, new=not plan.after) as log:
        open_round(log, plan, round_items)
        keep_guidelines(log, version)
        return status(log, name)


def spread_over_people(plan: Round, round_items: Sequence[RoundItem]) -> Round:
    """The plan with its topics assigned to its people, so that all have about the same number of documents."""
    if not plan.assessors:
        raise DataError(f"round {plan.name!r}: name the people to whom topics are assigned")
    sizes = topic_sizes(plan, [(each.topic, each.document) for each in round_items if each.role == "pool"])
    return replace(plan, topic_people=assign_topics(sizes, plan.assessors, plan.overlap))


def change(
    location: str,
    name: str,
    *,
    by: str = "",
    pool: str | None = None,
    runs: Sequence[str] = (),
    depth: int | None = None,
    topics_file: str | None = None,
    **wishes: Any,
) -> Status:
    """Change a round that is open or paused.

    Documents come from a pool file or from the top of runs; `wishes` are further fields of `ChangeRequest`.
    """
    refuse_second_stdin(pool, topics_file, *runs)
    with _opened(location, new=False) as log:
        with log.reading() as transaction:
            plan, _ = transaction.find_round(name)
        if topics_file is not None:
            wishes["topics"] = tuple(Inputs(topics=topics_file).chosen_topics() or ())
        request = ChangeRequest(**wishes, **_documents_of(log, location, plan, pool, runs, depth))
        change_round(log, plan.name, request, by)
        return status(log, plan.name)


def _documents_of(
    log: Log, location: str, plan: Round, pool: str | None, runs: Sequence[str], depth: int | None
) -> dict[str, Any]:
    """The fields of a change that say which documents a round asks about; no judged documents of a workspace are added."""
    if pool is not None:
        documents = [(each.topic, each.document) for each in plan_items(read_pool(pool))]
        return {"pool": documents} | ({} if depth is None else {"depth": depth})
    if depth is None and not runs:
        return {}
    deep = depth or plan.depth or 100
    if plan.strategy and not runs:
        if deep > plan.depth:
            raise DataError(f"round {plan.name!r} knows the runs to depth {plan.depth}: name the runs with --run")
        lists = {topic: {run: top[:deep] for run, top in own.items()} for topic, own in plan.lists.items()}
        return {"lists": lists, "depth": deep}
    if not runs:
        raise DataError(f"round {plan.name!r} does not know its runs: name them with --run, or a pool with --pool")
    there = {topic: {name for own in lists.values() for name in own} for topic, lists in plan.lists.items()}
    for topic, document in round_documents(log, plan.name):
        there.setdefault(topic, set()).add(document)
    lists = unjudged(location, lists_of(runs, deep, None), there)
    if plan.strategy:
        return {"lists": lists, "depth": deep}
    documents = [(topic, each) for topic, own in lists.items() for each in _merged(own)]
    return {"pool": documents, "depth": deep}


def _merged(lists: Mapping[str, Sequence[str]]) -> list[str]:
    """The documents of several lists, each once, ordered by rank."""
    deepest = max(map(len, lists.values()), default=0)
    return list(dict.fromkeys(top[rank] for rank in range(deepest) for top in lists.values() if rank < len(top)))


def _refuse_round(file: str | None, runs: Sequence[str], strategy: str, by_lot: bool) -> None:
    """Raise DataError for a round without documents, with an unknown strategy, or with two ways of choosing."""
    if strategy:
        STRATEGIES.named(strategy)
    if strategy and not runs:
        raise DataError(f"--strategy {strategy} chooses from the top documents of runs: name the runs with --run")
    if strategy and by_lot:
        raise DataError(
            "--sample draws documents at random, --strategy chooses them by the labels so far: give one of them"
        )
    if not (file or runs):
        raise DataError("a round needs documents: --pool FILE, or --run FILE … with --strategy, or --gold FILE")


def _sample_text(frame: Mapping[str, Sequence[str]], sample: int | None, sample_topics: int | None, seed: int) -> str:
    """How the documents of a round were sampled, as text."""
    if sample is not None:
        return f"{sample} of {sum(map(len, frame.values()))} documents at random, seed {seed}"
    if sample_topics is not None:
        return f"{sample_topics} of {len(frame)} topics at random, seed {seed}"
    return "with the pool" if frame else ""


def hash_of_file(path: str) -> str:
    """The SHA-256 of the bytes of a file, unpacked if it is compressed."""
    return f"sha256:{hashlib.sha256(bytes(open_buffer(path))).hexdigest()}"


def read_guidelines(path: str) -> str:
    """The text of a file with guidelines; bytes that are not UTF-8 stay as they are."""
    return bytes(open_buffer(path)).decode("utf-8", "surrogateescape")


def lists_of(runs: Sequence[str], depth: int, pool: str | None) -> dict[str, dict[str, list[str]]]:
    """The top documents of each run by topic, for a strategy to choose from; with a pool, only documents of the pool."""
    tops = rankings(as_runs(Inputs(runs=runs).files()), depth)
    inside = None if pool is None else {(item.topic, item.document) for item in read_pool(pool)}
    lists: dict[str, dict[str, list[str]]] = {}
    for topic, each in tops.candidates.items():
        names = {n: name for n, name in enumerate(each.documents) if inside is None or (topic, name) in inside}
        ranked = zip(each.runs, each.lists, strict=True)
        lists[topic] = {run: [names[number] for number in top if number in names] for run, top in ranked}
    return lists


def next_item(
    location: str, assessor: str, name: str = "", n: int = 1, topic: str = "", collection: str | None = None
) -> tuple[list[Lease] | NoLease, list[TopicChoice]]:
    """The next documents for an assessor, leased to them, or why there are none; and the topics that they may choose.

    With a collection, the models of a round whose strategy reads documents are trained before.
    """
    with _opened(location, new=False) as log:
        if collection is not None:
            _train(log, name, collection)
        answer = lease(log, assessor, name, n, topic)
        choices = topic_choices(log, assessor, name) if isinstance(answer, NoLease) else []
        with log.reading() as transaction:
            adaptive = isinstance(answer, list) and transaction.find_round(answer[0].round)[0].strategy
        if adaptive:  # the strategy chose by the current labels
            say(log_queries.decide_log(log).notes())
        return answer, choices


def _train(log: Log, name: str, collection: str) -> None:
    import cranfield
    from cranfield.judging.adaptive_choice import train_models
    from cranfield.pooling.text_features import DocumentTexts

    with log.reading() as transaction:
        plan, _ = transaction.find_round(name)
    train_models(log, plan.name, DocumentTexts.of(cranfield.read_collection(collection)))


def set_round(location: str, name: str, state: str) -> None:
    """Pause, reopen or close a round."""
    with _opened(location, new=False) as log:
        set_state(log, name, state)


def rounds_status(location: str, name: str = "") -> Status:
    """The progress of the rounds of a log."""
    with _opened(location, new=False) as log:
        return status(log, name)


def blame(location: str, topic: str, document: str) -> Blame:
    """The history of a document: who labelled it how, and which labels are current."""
    with _opened(location, new=False) as log:
        return log_queries.blame(log, topic, document)


def aggregate(
    location: str,
    policy: str,
    *,
    aspect: str = RELEVANCE,
    sources: Sequence[str] = ONE_SET,
    ties: str = "lower",
    gold: str | None = None,
    at: str | None = None,
) -> AggregationResult:
    """One grade per document by a policy. Gold grades come from rounds and, with `gold`, from a qrels file."""
    from cranfield.judging.aggregation import AggregationResult
    from cranfield.judging.versions import gold_grades

    settings = PolicySettings(aspect=aspect, sources=tuple(sources), ties=ties)  # type: ignore[arg-type]
    with _opened(location, new=False) as log:
        until = None if at is None else instant(at)
        current = log.current_events()
        if until is not None:
            current = current_events([event for event in log.events() if event.time < until])
        current = _with_collection(location, current)
        gold_by_subject = gold_grades(log)
        name = log.name
    if gold is not None:
        gold_by_subject |= {(topic, document): grade for topic, document, grade in _rows(gold)}
    decided = decide(current, policy, settings, gold_by_subject)
    counted = preferences_of if decided.strengths else labels_of
    if not len(decided):
        raise DataError(f"{name}: no current label counts under {policy} (aspect {aspect}, from {', '.join(sources)})")
    return AggregationResult(name, decided, counted(current, aspect, tuple(sources)))


def _with_collection(location: str, current: dict[LabelKey, Event]) -> dict[LabelKey, Event]:
    """The current events, with the judgments in the file of the workspace's collection, imported or not."""
    own = own_judgments(workspace_at(location))
    return current if own is None else with_own_events(current, own)


def _rows(judgments: str) -> list[tuple[str, str, float]]:
    """Topic, document and grade of each judgment of a file."""
    grades = as_qrels(file_or_qrels(judgments)).to_dict()
    return [(topic, document, grade) for topic, own in grades.items() for document, grade in own.items()]


def pseudonymise(location: str, name: str, pseudonym: str = "", by: str = "") -> Pseudonymisation:
    """Replace the name of an assessor by a pseudonym, everywhere in a log."""
    from cranfield.judging.pseudonyms import pseudonymise

    with _opened(location, new=False) as log:
        return pseudonymise(log, name, pseudonym, by)


def graded(location: str, policy: str | None = None) -> tuple[Qrels, LabelUncertainty]:
    """The qrels of a log by a policy (default: majority), or of a version (LOG@NAME), and their uncertainty."""
    from cranfield.judging.aggregation import uncertainty_of, uncertainty_of_version
    from cranfield.judging.versions import gold_grades

    word = named(location) or Named(location)
    where, version = word.log, word.version or ""
    if version and policy is not None:
        raise ConventionError(f"version {version!r} has a policy of its own; leave --policy out, or name the log alone")
    with _opened(where, new=False) as log:
        if version:
            decided, uncertainty = uncertainty_of_version(log, version)
        else:
            current = _with_collection(where, log.current_events())
            decided = decide(current, policy or "majority", PolicySettings(), gold_grades(log))
            if not len(decided):
                raise DataError(f"{log.name}: no current label of a person")
            uncertainty = uncertainty_of(current, decided)
        return Qrels(decided.grades, f"{log.name}@{version}" if version else log.name), uncertainty


def freeze(location: str, name: str, policy: str, *, note: str = "", **settings: Any) -> tuple[Version, list[str]]:
    """Freeze the current qrels under a name; return the version and notes."""
    from cranfield.judging.versions import freeze

    if "sources" in settings:
        settings["sources"] = tuple(settings["sources"])
    with _opened(location, new=False) as log:
        import_collection(location, log)
        version, decided = freeze(log, name, policy, PolicySettings(**settings), note)
        return version, decided.notes()


def versions(location: str) -> Versions:
    """The frozen versions of a log."""
    from cranfield.judging.versions import Versions, all_versions

    with _opened(location, new=False) as log:
        return Versions(log.name, all_versions(log))


def verify(location: str) -> Versions:
    """Read the whole log, check its records against their hashes, and compute every version again."""
    from cranfield.judging.versions import Versions, all_versions, thaw

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
) -> VersionChanges:
    """The changes from one version to another, or to the current labels; with runs, also of scores and verdicts."""
    from cranfield.judging.versions import gold_grades, thaw, version_changes, with_scores

    with _opened(location, new=False) as log:
        one = thaw(log, a)
        if b is None:
            own = own_judgments(workspace_at(location))
            other = log_queries.decide_log(log, policy, gold=gold_grades(log), own=own)
        else:
            other = thaw(log, b)
    say(one.notes() + other.notes())
    changes = version_changes(a, one.grades, b or f"now ({policy})", other.grades)
    if not runs:
        return changes
    names = list(measures) or list(DEFAULT_MEASURES)
    return with_scores(changes, one.grades, other.grades, Inputs(runs=runs).open_runs(), names)


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
    """Inter-annotator agreement of a log, of one of its rounds, or of several qrels files."""
    from cranfield.judging import agreement

    name, events, more = _opinions(sources, aspect, whose, round)
    table = agreement.OpinionTable.of(events)
    agreements = agreement.agreements(name, table, **more, **how)
    if not any(one.defined for one in (*agreements.coefficients, *agreements.parts.values())):
        problem = f"expected two people who labelled the same documents, found {agreements.coefficients[0].reason}"
        raise DataError(f"{name}: agreement cannot be computed: {problem}")
    if disagreements is not None:
        write_bytes(disagreements, pool_lines(agreement.disagreements(events)))
    if not runs:
        return agreements
    opened = Inputs(runs=runs).open_runs()
    return replace(agreements, rankings=agreement.rankings(table, opened, list(measures) or [RANKED_BY]))


def _opinions(
    sources: Sequence[str], aspect: str, whose: Sequence[str], round: str = ""
) -> tuple[str, Sequence[Event | RatedLabel], dict[str, Any]]:
    """A name, labels, and options of `agreements`: from a log, or from several qrels with one assessor each."""
    from cranfield.judging.versions import labels_at_version

    refuse_second_stdin(*sources)
    if len(sources) > 1:
        log_names = {word: named(word) for word in sources}
        logs = {word: _opinions_in_log(one, word, aspect, whose) for word, one in log_names.items() if one is not None}
        files = {word: str(file_or_qrels(word)) for word in sources if word not in logs}
        labels_in_files = read_files(list(files.values()))
        read = {**logs, **{word: labels_in_files[file] for word, file in files.items()}}
        events = [event for word in sources for event in read[word]]
        names = {event.assessor for event in events}
        if len(names) < len(sources):
            raise DataError(f"two of {', '.join(sources)} would have the same name; rename one")
        return " and ".join(sources) if len(sources) < 4 else f"{len(sources)} files", events, {}
    word = named(sources[0]) or Named(sources[0])
    with _opened(word.log, new=False) as log:
        rated = log.rated_labels() if word.version is None else rated_labels(labels_at_version(log, word.version))
        if CLICKS in whose:
            at = log.current_events() if word.version is None else labels_at_version(log, word.version)
            rated = [*rated, *(each._replace(assessor=each.assessor or CLICKS) for each in rated_labels(at, CLICKS))]
        answers = gold_answers(log, round)
        name = log.name if word.version is None else f"{log.name}@{word.version}"
    if round:
        rated = [each for each in rated if each.round == round]
        name = f"{name}, round {round}"
    cannot = list(map(attrgetter("kind"), rated)).count("cannot-judge")
    graded = [each for each in rated if each.grade is not None and each.aspect == aspect and each.source in whose]
    labels, again = [each for each in graded if not each.repeat], [each for each in graded if each.repeat]
    return name, labels, {"repeats": again, "gold": answers, "cannot": cannot}


def _opinions_in_log(log: Named, word: str, aspect: str, whose: Sequence[str]) -> list[Event]:
    """The current labels of a log; the qrels of a version (LOG@NAME) count as labels of one person of that name."""
    if log.version is None:
        with _opened(log.log, new=False) as opened:
            labels = labels_of(opened.current_events(), aspect, whose)
        if not labels:
            raise DataError(f"{masked(word)}: no current label counts (aspect {aspect}, from {', '.join(whose)})")
        return labels
    return [
        Event(topic=topic, document=document, grade=grade, assessor=word, source="import", time="0001-01-01")
        for topic, document, grade in _rows(word)
    ]


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
