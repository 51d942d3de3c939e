"""The verbs: what the command line and the web app both call. Each takes plain values and returns plain ones.

A verb opens files and puts the library's parts together; how its answer looks is the caller's affair.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError, MeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cranfield.check import Finding
    from cranfield.correlate import Correlations
    from cranfield.curves import Curves
    from cranfield.explain import Explanation, Views
    from cranfield.formats.convert import Converted
    from cranfield.measures import Measure
    from cranfield.reproduce import Reproduction
    from cranfield.scores import Scores
    from cranfield.slices import Slices

__all__ = [
    "check_",
    "convert_",
    "correlate_",
    "correlate_systems",
    "curve_",
    "draw",
    "eval_",
    "explain_",
    "explain_as_",
    "explain_measure",
    "list_formats",
    "list_measures",
    "presets",
    "read_topics",
    "reproduce_",
    "slice_",
]


def eval_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    rel: float | None = None,
    topics: str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
    threads: int | None = None,
    collection_size: int | None = None,
    aggregate: str | None = None,
    bounds: str | None = None,
    seed: int = 0,
    baseline: str | None = None,
    preferences: str | None = None,
    groups: str | None = None,
    aspect: str | None = None,
    costs: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Scores:
    """Score run files (or patterns of them, or `-`) against a qrels file. `topics` is a file of topic ids.

    With `bounds` (ties or unjudged) the scores carry theirs: `scores.bounds`.
    """
    from cranfield.collection import Extras
    from cranfield.evaluate import Evaluator
    from cranfield.formats import expand

    files = expand(runs)
    if [qrels, *files, baseline, preferences, groups, aspect, costs].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    evaluator = Evaluator(
        qrels,
        measures,
        rel=rel,
        topics=None if topics is None else read_topics(topics),
        conventions=preset,
        threads=threads,
        lenient=lenient,
        qrels_format=qrels_format,
        run_format=run_format,
        extras=Extras(
            size=collection_size,
            preferences=_preferences(preferences),
            groups=_groups(groups),
            aspect=_aspect(aspect),
            costs=_costs(costs),
        ),
        baseline=baseline,
        aggregate=aggregate,
        **(changes or {}),
    )
    if bounds is None:
        return evaluator.evaluate(_labelled(files), progress)
    from cranfield.bounds import bounds_of

    found = bounds_of(evaluator, _labelled(files), bounds, seed=seed)
    found.scores.bounds = found
    return found.scores


def curve_(
    qrels: str,
    runs: Sequence[str],
    kind: str = "pr",
    *,
    rel: float = 1,
    depth: int = 1000,
    level: str = "exact",
    topic: str | None = None,
    collection_size: int | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> Curves:
    """The curves of run files against a qrels file, of one topic or the mean over all."""
    from cranfield.collection import Extras
    from cranfield.curves import curves
    from cranfield.formats import expand

    files = expand(runs)
    if [qrels, *files].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    return curves(
        qrels,
        _labelled(files),
        kind,
        rel=rel,
        depth=depth,
        level=level,
        topics=None if topic is None else [topic],
        extras=Extras(size=collection_size),
        conventions=preset,
        **options,
        **(changes or {}),
    )


def draw(curves: Curves, path: str) -> bool:
    """Write a chart if the file's ending is that of one, and say whether it was."""
    from cranfield.formats.streams import write_bytes
    from cranfield.report.charts import chart, rendered

    ending = "json" if path.endswith(".vl.json") else path.rpartition(".")[2]
    if ending not in ("svg", "png", "html") and not path.endswith(".vl.json"):
        return False
    write_bytes(path, [rendered(chart(curves), ending)])
    return True


def slice_(scores: Scores, topics_file: str, column: str) -> Slices:
    """Scores split by a column of a topics file."""
    from cranfield.slices import categories, slices

    return slices(scores, categories(topics_file, column), column)


def explain_(
    measure: str,
    qrels: str,
    run: str,
    topic: str | None = None,
    *,
    rel: float | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    full: bool = False,
    **options: Any,
) -> Explanation:
    """How a run file came by its score on one topic. `options` are those of `Evaluator` that say how files are read."""
    from cranfield.explain import explain

    _once(qrels, run, options.get("baseline"))
    return explain(
        qrels, run, measure, topic, rel=rel, conventions=preset, full=full, **_known(options), **(changes or {})
    )


def explain_as_(
    measure: str, qrels: str, run: str, topic: str | None = None, preset: str = "all", **options: Any
) -> Views:
    """A run file's score under each program's conventions, or under one's."""
    from cranfield.explain import explain_as

    _once(qrels, run, options.get("baseline"))
    return explain_as(qrels, run, measure, topic, preset, **_known(options))


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with what is known of the collection put together."""
    from cranfield.collection import Extras

    extras = Extras(
        size=options.pop("collection_size", None),
        preferences=_preferences(options.pop("preferences", None)),
        groups=_groups(options.pop("groups", None)),
        aspect=_aspect(options.pop("aspect", None)),
        costs=_costs(options.pop("costs", None)),
    )
    return {**options, "extras": extras}


def _once(*files: str | None) -> None:
    if files.count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")


def _preferences(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.preferences import as_preferences

    return as_preferences(path)


def _groups(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.groups import read_groups

    return read_groups(path)


def _costs(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats.costs import read_costs

    return read_costs(path)


def _aspect(path: str | None) -> Any:
    if path is None:
        return None
    from cranfield.formats import read_qrels

    return read_qrels(path).to_dict()


def _labelled(files: list[str]) -> list[str] | dict[str, str]:
    """The files, by name where two would get the same: with as much of the folder as tells them apart, or #2."""
    from cranfield.evaluate import distinct
    from cranfield.formats import run_name

    names = ["stdin" if file == "-" else run_name(file) for file in files]
    if len(set(names)) == len(names):
        return files
    folders = [os.path.dirname(os.path.abspath(file)).split(os.sep) for file in files]
    labels = []
    for name, folder in zip(names, folders, strict=True):
        same = [other for other, known in zip(folders, names, strict=True) if known == name]
        depths = [] if len(same) == 1 else range(1, len(folder))
        depth = next((d for d in depths if [other[-d:] for other in same].count(folder[-d:]) == 1), 0)
        labels.append("/".join([*folder[len(folder) - depth :], name]))
    return dict(zip(distinct(labels), files, strict=True))


def read_topics(path: str) -> list[str]:
    """The topics that a file lists: the first word of each line; empty lines and # comments are passed over."""
    from cranfield.formats import open_buffer
    from cranfield.kernels import decode

    lines = (line.split(maxsplit=1) for line in bytes(open_buffer(path)).removeprefix(b"\xef\xbb\xbf").splitlines())
    topics = list(dict.fromkeys(decode(words[0]) for words in lines if words and not words[0].startswith(b"#")))
    if not topics:
        raise DataError(f"{path}: expected a topic's id on each line, found none")
    return topics


def correlate_(
    runs: Sequence[str],
    kinds: Iterable[str] = (),
    *,
    p: float = 0.9,
    depth: int | None = None,
    tied: Any = "a",
    documents: Any = "union",
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    run_format: str | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Correlations:
    """Compare the result lists of run files (or patterns of them), each with each."""
    from cranfield.conventions import conventions
    from cranfield.correlate import correlate
    from cranfield.formats import as_runs

    return correlate(
        as_runs(_opened_once(runs), run_format, lenient),
        kinds=list(kinds) or None,
        p=p,
        depth=depth,
        tied=tied,
        documents=documents,
        conventions=conventions(preset, **(changes or {})),
        progress=progress,
    )


def correlate_systems(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    kinds: Iterable[str] = (),
    other_qrels: str | None = None,
    **given: Any,
) -> Correlations:
    """Compare the rankings of run files by each two measures, or by the same measure under two qrels files."""
    from cranfield.correlate import correlate
    from cranfield.formats import run_name

    measures = list(measures)
    if other_qrels is not None and "-" in (qrels, other_qrels, *runs):
        raise DataError("standard input can be read once only, and two sets of judgments need the runs twice")
    scores = eval_(qrels, runs, measures, **given)
    others, names = None, ("", "")
    if other_qrels is not None:
        others = eval_(other_qrels, runs, measures, **given)
        names = (run_name(qrels), run_name(other_qrels))
        names = names if names[0] != names[1] else (qrels, other_qrels)
    found = correlate(scores, others, list(kinds) or None, names=names)
    said = [note for each in (scores, others) if each is not None for note in each.notes(shell=True)]
    found.remarks[:0] = list(dict.fromkeys(said))
    return found


def reproduce_(
    qrels: str,
    runs: Sequence[str],
    measures: Iterable[str],
    *,
    other_qrels: str | None = None,
    p: float = 0.9,
    depth: int | None = None,
    rel: float | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    lenient: bool = False,
    qrels_format: str | None = None,
    run_format: str | None = None,
) -> Reproduction:
    """Compare original with reproduced run files: one of each, or baseline and advanced run of each."""
    from cranfield.formats import as_runs, read_qrels
    from cranfield.reproduce import reproduce

    if len(runs) not in (2, 4):
        raise ConventionError(
            "expected ORIGINAL REPRODUCED, or ORIGINAL_BASE ORIGINAL_ADVANCED REPRODUCED_BASE REPRODUCED_ADVANCED; "
            f"found {len(runs)} runs"
        )
    opened = as_runs(_opened_once(runs, qrels, other_qrels), run_format, lenient)
    half = len(opened) // 2
    return reproduce(
        read_qrels(qrels, qrels_format, lenient),
        opened[:half],
        opened[half:],
        list(measures),
        other_qrels=None if other_qrels is None else read_qrels(other_qrels, qrels_format, lenient),
        p=p,
        depth=depth,
        rel=rel,
        conventions=preset,
        **(changes or {}),
    )


def _opened_once(runs: Sequence[str], *others: str | None) -> list[str] | dict[str, str]:
    """The run files under distinct names; standard input can be one of them or of the others, once."""
    from cranfield.formats import expand

    files = expand(runs)
    if [*files, *others].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    return _labelled(files)


def check_(files: Sequence[str], qrels: str | None = None, kind: Any = None) -> list[Finding]:
    """What is wrong or suspicious in files (or patterns of them)."""
    from cranfield.check import check
    from cranfield.formats import expand

    return check(expand(files), qrels, kind)


def convert_(
    sources: Sequence[str],
    target: str,
    from_format: str | None = None,
    to_format: str | None = None,
    kind: Any = None,
    merge: Any = None,
    lenient: bool = False,
) -> Converted:
    """Write files (or patterns of them) in another format."""
    from cranfield.formats import expand
    from cranfield.formats.convert import convert

    if kind not in (None, "run", "qrels"):
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    return convert(expand(sources), target, from_format, to_format, kind, merge, lenient)


def list_formats() -> list[dict[str, Any]]:
    """The formats: name, what they hold, endings, and what they are."""
    from cranfield.formats import FORMATS

    return [
        {"name": name, "holds": list(each.kinds), "endings": list(each.endings), "about": each.about}
        for name, each in FORMATS.items()
    ]


def presets() -> dict[str, dict[str, Any]]:
    """Each preset's conventions."""
    from cranfield.conventions import PRESETS

    return {name: conventions.to_dict() for name, conventions in PRESETS.items()}


def list_measures(family: str | None = None) -> list[dict[str, Any]]:
    """Everything said about each measure, by family."""
    from cranfield.measures import REGISTRY
    from cranfield.measures.measure import load_installed

    load_installed()
    families = list(dict.fromkeys(cls.family for cls in REGISTRY.values()))
    if family is not None:
        chosen = [name for name in families if name.casefold().startswith(family.casefold())]
        if not chosen:
            raise MeasureError(f"no family {family!r}; there are {', '.join(families)}")
        families = chosen
    return [_page(cls) for name in families for cls in REGISTRY.values() if cls.family == name]


def explain_measure(name: str) -> dict[str, Any]:
    """Everything said about one measure, by any of its names."""
    from cranfield.measures import REGISTRY, measure

    if name in REGISTRY:
        return _page(REGISTRY[name])
    try:
        return _page(type(measure(name)))
    except MeasureError:
        folded = [cls for known, cls in REGISTRY.items() if known.casefold() == name.casefold()]
        if len(folded) != 1:
            raise
        return _page(folded[0])


def _page(cls: type[Measure]) -> dict[str, Any]:
    paragraphs, example = _docstring(cls)
    parameters = [
        {
            "name": key,
            "meaning": parameter.meaning,
            "range": parameter.range,
            "default": None if parameter.required or parameter.default is None else parameter.show(parameter.default),
            "required": parameter.required,
        }
        for key, parameter in cls.parameters.items()
    ]
    return {
        "name": cls.name,
        "usage": _usage(cls),
        "family": cls.family,
        "definition": paragraphs[0],
        "details": paragraphs[1:],
        "formula": cls.formula,
        "parameters": parameters,
        "summary": _summary(cls),
        "peers": {peer: list(names) for peer, names in cls.peers.items()},
        "reference": cls.reference,
        "example": example,
    }


def _summary(cls: type[Measure]) -> str:
    """How its topics become one number."""
    from cranfield.measures import Measure

    if cls.summarise is not Measure.summarise:
        return "one number for all topics by its own formula"
    return "sum over topics" if cls.aggregate == "sum" else "mean over topics"


def _usage(cls: type[Measure]) -> str:
    """The shortest name one can type, with what must or may stand behind it: P@k, AP[@k], RBP."""
    if cls.at is None or cls.at not in cls.parameters:
        return cls.name
    return f"{cls.name}@{cls.at}" if cls.parameters[cls.at].required else f"{cls.name}[@{cls.at}]"


def _docstring(cls: type[Measure]) -> tuple[list[str], str]:
    """A docstring's paragraphs, each on one line, and its doctest."""
    import inspect

    prose: list[str] = []
    example: list[str] = []
    for paragraph in inspect.cleandoc(cls.__doc__ or "").split("\n\n"):
        if paragraph.startswith(">>>"):
            example.append(paragraph)
        else:
            prose.append(" ".join(paragraph.split()))
    return prose, "\n\n".join(example)
