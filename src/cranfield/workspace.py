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
    from cranfield.formats.convert import Converted
    from cranfield.measures import Measure
    from cranfield.scores import Scores

__all__ = [
    "check_",
    "convert_",
    "eval_",
    "explain_measure",
    "list_formats",
    "list_measures",
    "presets",
    "read_topics",
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
    progress: Callable[[int, int | None], None] | None = None,
) -> Scores:
    """Score run files (or patterns of them, or `-`) against a qrels file. `topics` is a file of topic ids."""
    from cranfield.evaluate import Evaluator
    from cranfield.formats import expand

    files = expand(runs)
    if [qrels, *files].count("-") > 1:
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
        **(changes or {}),
    )
    return evaluator.evaluate(_labelled(files), progress)


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
        "summary": "sum over topics" if cls.aggregate == "sum" else "mean over topics",
        "peers": {peer: list(names) for peer, names in cls.peers.items()},
        "reference": cls.reference,
        "example": example,
    }


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
