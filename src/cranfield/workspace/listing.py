"""Verbs that say what there is: measures, presets, formats, strategies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Entries, Layout, Lines, Part, Table
from cranfield.errors import MeasureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cranfield.measures import Measure


@dataclass(frozen=True)
class Listing(Answer):
    """What there is, as plain values and laid out for people; `rows` are for spreadsheets."""

    values: Any
    layout: Sequence[Part]
    rows: Sequence[Sequence[Any]] = ()

    def content(self, how: Layout) -> Iterable[Part]:
        return self.layout

    def plain(self, how: Layout) -> Any:
        return self.values

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        return self.rows or super().records(how)


def presets() -> Listing:
    """Each preset's conventions."""
    from cranfield.conventions import PRESETS

    answers = {name: conventions.to_dict() for name, conventions in PRESETS.items()}
    words = {True: "yes", False: "no", "": "-"}
    head = ["preset", *next(iter(answers.values()))]
    rows = [[name, *(words.get(value, str(value)) for value in given.values())] for name, given in answers.items()]
    return Listing(answers, [Table(head, rows, left=len(head))])


def formats() -> Listing:
    """The formats: name, what they hold, endings, and what they are."""
    from cranfield.formats import FORMATS

    rows: list[dict[str, Any]] = [
        {"name": name, "holds": list(each.kinds), "endings": list(each.endings), "about": each.about}
        for name, each in FORMATS.items()
    ]
    entries = [("format", "holds", "what it is (endings)")]
    for row in rows:
        endings = f" ({' '.join(row['endings'])})" if row["endings"] else ""
        entries.append((row["name"], ", ".join(row["holds"]), f"{row['about']}{endings}"))
    wide = max(len(name) for name, _, _ in entries)
    return Listing(rows, [Entries([(f"{name:{wide}}  {holds}", about) for name, holds, about in entries], indent=0)])


def strategies() -> Listing:
    """What is said about each pooling strategy."""
    from cranfield.pool.strategy import STRATEGIES
    from cranfield.registry import about

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "about": about(each),
            "adaptive": each.adaptive,
            "reads": each.reads,
            "reference": each.reference,
            "options": {key: (parameter.default, parameter.meaning) for key, parameter in each.parameters.items()},
        }
        for name, each in STRATEGIES.items()
    ]
    lines = []
    for row in rows:
        marks = [mark for mark, so in (("adapts to labels", row["adaptive"]), ("reads texts", row["reads"])) if so]
        lines += [f"{row['name']} ({', '.join(marks)})" if marks else row["name"], f"  {row['about']}"]
        lines += [f"    {name}={default}: {meaning}" for name, (default, meaning) in row["options"].items()]
    return Listing(rows, [Lines(lines)])


def measures(family: str | None = None) -> Listing:
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
    pages = [_page(cls) for name in families for cls in REGISTRY.values() if cls.family == name]
    margin = max(len(page["usage"]) for page in pages) + 4
    parts: list[Part] = [
        Entries([(page["usage"], page["definition"]) for page in members], name, margin)
        for name, members in groupby(pages, itemgetter("family"))
    ]
    return Listing(pages, [*parts, "cranfield measures NAME explains one."])


def measure(name: str) -> Listing:
    """Everything said about one measure, by any of its names."""
    page = _page(_named(name))
    own = [(parameter["name"], _range(parameter)) for parameter in page["parameters"]]
    peers = [("", f"{peer}: {', '.join(names)}") for peer, names in page["peers"].items()]
    example = [("", line) for line in page["example"].splitlines()]
    parts = [
        Entries([], f"{page['usage']}  ({page['family']}; {page['summary']})"),
        page["definition"],
        *page["details"],
        Entries([("", page["formula"])], "formula", margin=2),
        Entries(own, "parameters") if own else "",
        Entries(peers, "also known as", margin=2) if peers else "",
        Entries([("", page["reference"])], "reference", margin=2),
        Entries(example, "worked example", margin=2),
    ]
    return Listing(page, parts)


def _named(name: str) -> type[Measure]:
    from cranfield.measures import REGISTRY, measure

    known: dict[str, type[Measure]] = REGISTRY
    if name in known:
        return known[name]
    try:
        return type(measure(name))
    except MeasureError:
        folded = [cls for other, cls in known.items() if other.casefold() == name.casefold()]
        if len(folded) != 1:
            raise
        return folded[0]


def _range(parameter: dict[str, Any]) -> str:
    """What a parameter means, its values and its default."""
    default = f"default {parameter['default']}" if parameter["default"] is not None else "optional"
    return f"{parameter['meaning']}: {parameter['range']} ({'must be given' if parameter['required'] else default})"


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
