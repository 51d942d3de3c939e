"""Verbs from scores to a decision: compare, leaderboard, stability, design, gate, report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError
from cranfield.workspace.files import draw_chart, labelled, once, opened_once, read_topics
from cranfield.workspace.scoring import _known, correlate_, eval_

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cranfield.compare import Comparison
    from cranfield.compare.leaderboard import Leaderboard
    from cranfield.correlate import Correlations
    from cranfield.design import Plans
    from cranfield.gate import Gate
    from cranfield.report.report import Report
    from cranfield.scores import Scores
    from cranfield.stability import Stability


USUAL = ("nDCG@10", "AP", "RR@10")


def scored(
    qrels: str | None, runs: Sequence[str], measures: Iterable[str], table: str | None = None, **options: Any
) -> Scores:
    """The scores of run files, or those in a file of scores: a row a topic, a column a run."""
    if table is None:
        if qrels is None:
            raise DataError("expected judgments and runs, or a table of scores")
        return eval_(qrels, runs, list(measures) or USUAL, **options)
    from cranfield.formats.score_table import read_score_table
    from cranfield.scores import Scores

    found = read_score_table(table)
    topics = options.get("topics")
    chosen = None if topics is None else read_topics(topics)
    names = [name for text in measures for name in text.split()]
    if "" in found.tables:  # the file does not say what it holds
        if len(names) > 1:
            raise ConventionError(f"{table} holds one measure, found {len(names)} names for it: {' '.join(names)}")
        name = names[0] if names else _table_name(table)
        return Scores.from_table({name: found.tables[""]}, found.runs, found.topics).select(topics=chosen)
    return Scores.from_table(found.tables, found.runs, found.topics).select(measures=names or None, topics=chosen)


def compare_(
    qrels: str | None,
    runs: Sequence[str],
    measures: Iterable[str] = (),
    table: str | None = None,
    *,
    asked: Mapping[str, Any] | None = None,
    topics: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Compare run files, or the runs of a table of scores. `asked` is what `compare` takes beside the data."""
    from cranfield.compare.files import baseline_file, compared, files_of

    asked = dict(asked or {})
    chosen = None if topics is None else read_topics(topics)
    if table is not None:
        scores = scored(None, (), measures, table)
        return compared(scores if chosen is None else scores.select(topics=chosen), {"table": table}, asked)
    files = opened_once(files_of(runs, asked.get("groups")), qrels, topics)
    options = _known(options) | {"topics": chosen, "conventions": preset, **(changes or {})}
    options["baseline"] = baseline_file(files, asked.get("baselines"), list(measures))
    return compared(qrels, {"qrels": qrels, "runs": files}, asked, files, list(measures) or USUAL, **options)


def _table_name(path: str) -> str:
    """What a file's name says about the scores in it: robust2004_ap.csv.gz is robust2004_ap."""
    from cranfield.formats import run_name

    return run_name(path).removesuffix(".csv").removesuffix(".tsv")


def leaderboard_(
    qrels: str | None,
    runs: Sequence[str],
    measures: Iterable[str] = (),
    table: str | None = None,
    *,
    topics: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    rel: float | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
    **options: Any,
) -> Leaderboard:
    """Run files (or the runs of a table of scores), best first, with how sure their ranks are."""
    from cranfield.compare.leaderboard import leaderboard

    if table is not None:
        return leaderboard(scored(None, (), measures, table, topics=topics), **options)
    chosen = None if topics is None else read_topics(topics)
    options |= {"rel": rel, "lenient": lenient, "qrels_format": qrels_format, "run_format": run_format}
    options |= {"topics": chosen, "conventions": preset, **(changes or {})}
    return leaderboard(qrels, opened_once(runs, qrels, topics), list(measures) or USUAL, **options)


def stability_(
    qrels: str | None,
    runs: Sequence[str],
    measures: Iterable[str] = (),
    table: str | None = None,
    *,
    parts: Iterable[str] = (),
    kinds: Iterable[str] = (),
    other_qrels: str | None = None,
    other_table: str | None = None,
    **given: Any,
) -> tuple[Stability | None, Correlations | None]:
    """How stable the ranking of run files (or of the runs of a table) is; and how alike their lists are, if asked."""
    from cranfield.stability import stability

    asked = [part for text in parts for part in text.replace(",", " ").split()]
    named = [kind for text in kinds for kind in text.replace(",", " ").split()]
    reading = ("topics", "rel", "preset", "changes", "lenient", "qrels_format", "run_format")
    how = {key: given.pop(key) for key in reading if key in given}
    lists = None
    if "lists" in asked:
        if table is not None:
            raise ConventionError("lists: a table of scores holds no documents; give the runs themselves")
        how_lists = {key: how[key] for key in ("preset", "changes", "lenient", "run_format") if key in how}
        lists = correlate_(runs, named if asked == ["lists"] else (), p=given.get("p", 0.9), **how_lists)
        asked.remove("lists")
        if not asked:
            return None, lists
    scores, others, names = _two_scores((qrels, other_qrels), (table, other_table), runs, list(measures), how)
    given |= {"kinds": named} if named else {}
    return stability(scores, others, parts=asked or None, names=names, **given), lists


def _two_scores(
    qrels: tuple[str | None, str | None],
    tables: tuple[str | None, str | None],
    runs: Sequence[str],
    measures: list[str],
    how: dict[str, Any],
) -> tuple[Scores, Scores | None, tuple[str, str]]:
    """The scores, those under other judgments where these were given, and what to call the two."""
    pair = qrels if tables[0] is None else tables
    if pair[1] is not None and "-" in (*pair, *runs):
        raise DataError("standard input can be read once only, and two sets of judgments need the runs twice")
    if all(tables) and not measures:
        measures = ["score"]  # two files of one measure, whatever they are called
    places = list(zip(qrels, tables, strict=True))[: 1 + (pair[1] is not None)]
    scores = [scored(judged, runs, measures, table, **how) for judged, table in places]
    names = (_table_name(pair[0] or ""), _table_name(pair[1] or ""))
    names = names if names[0] != names[1] else (pair[0] or "", pair[1] or "")
    return scores[0], scores[1] if len(scores) > 1 else None, names


def design_(
    qrels: str | None,
    runs: Sequence[str],
    measures: Iterable[str] = (),
    table: str | None = None,
    *,
    sd: float | None = None,
    sizes: str | None = None,
    **given: Any,
) -> Plans:
    """How many topics it takes, by the variance between run files (or the runs of a table), or by a given one."""
    from cranfield.design import design

    reading = ("rel", "preset", "changes", "lenient", "qrels_format", "run_format")
    how = {key: given.pop(key) for key in reading if key in given}
    try:
        numbers = None if sizes is None else [int(size) for size in sizes.replace(",", " ").split()]
    except ValueError:
        raise ConventionError(f"sizes: expected numbers of topics, as in 25,50,100, found {sizes!r}") from None
    if sd is not None:
        return design(sd=sd, sizes=numbers, **given)
    measures = list(measures) or ["nDCG@10"] if table is None else measures
    return design(scored(qrels, runs, measures, table, **how), sizes=numbers, **given)


def report_(
    qrels: str | None,
    runs: Sequence[str],
    measures: Iterable[str] = (),
    table: str | None = None,
    *,
    title: str | None = None,
    command: str = "",
    digits: int = 4,
    **options: Any,
) -> Report:
    """Compare run files and put beside it what a report shows; `options` are those of `compare_`."""
    from cranfield.report.report import report_of

    more = [options.get(name) for name in ("topics", "preferences", "groups", "aspect", "costs")]
    if "-" in [qrels, *runs, table, *more]:
        raise DataError("a report reads its files more than once and names them; give files, found - (standard input)")
    found = compare_(qrels, runs, measures, table, **options)
    topics = None if options.get("topics") is None else read_topics(options["topics"])
    return report_of(found, options, topics, more, title=title, command=command, digits=digits)


def draw_ranks(board: Leaderboard, path: str) -> bool:
    """Write a chart of the rank intervals if the file's ending is that of one, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(board), path)


def draw_stability(found: Stability, path: str) -> bool:
    """Write a chart of one part if the file's ending is that of one, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(found), path)


def draw_power(plans: Plans, path: str) -> bool:
    """Write a chart of the power curves if the file's ending is that of one, and say whether it was."""
    from cranfield.report.figures import chart

    return draw_chart(lambda: chart(plans), path)


def gate_(
    qrels: str,
    baseline: str,
    candidate: str,
    measures: Iterable[str],
    *,
    topics: str | None = None,
    documents: str | None = None,
    max_drop: Sequence[str] = (),
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Gate:
    """Whether a candidate run file may replace the baseline. `documents` is a file of the corpus's ids."""
    from cranfield.gate import gate

    once(qrels, baseline, candidate, topics, documents)
    named = labelled([baseline, candidate])
    one, other = named if isinstance(named, list) else ({name: file} for name, file in named.items())
    options["topics"] = None if topics is None else read_topics(topics)
    options["documents"] = None if documents is None else read_topics(documents)
    return gate(qrels, one, other, list(measures), max_drop=max_drop, conventions=preset, **options, **(changes or {}))
