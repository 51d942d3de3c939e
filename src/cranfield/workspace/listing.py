"""Verbs that say what there is: presets, formats, fusions, systems, strategies, interleavings, users, metrics, tests …"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cranfield.answer import Answer, Entries, Layout, Lines, Part, Table
from cranfield.errors import ConventionError, DataError, MeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.measures import Measure
    from cranfield.stats.method import Method


@dataclass(frozen=True)
class Listing(Answer):
    """What there is, as plain values and laid out for people."""

    values: Any
    layout: Sequence[Part]

    def content(self, how: Layout) -> Iterable[Part]:
        return self.layout

    def plain(self, how: Layout) -> Any:
        return self.values

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        """The rows of all tables, words beside what they mean."""
        for part in self.layout:
            if isinstance(part, Table):
                yield from part.texts()
            elif isinstance(part, Entries):
                yield from part.entries
            elif isinstance(part, Lines):
                yield from ([line] for line in part.lines)


def presets() -> Listing:
    """Each preset's conventions."""
    from cranfield.conventions import PRESETS

    answers = {name: conventions.to_dict() for name, conventions in PRESETS.items()}
    words = {True: "yes", False: "no", "": "-"}
    head = ["preset", *next(iter(answers.values()))]
    rows = [[name, *(words.get(value, str(value)) for value in rules.values())] for name, rules in answers.items()]
    return Listing(answers, [Table(head, rows, left=len(head))])


def formats() -> Listing:
    """The formats: name, what they hold, endings, and what they are."""
    from cranfield.formats import FORMATS

    pages: list[dict[str, Any]] = [
        {"name": name, "holds": list(each.kinds), "endings": list(each.endings), "about": each.about}
        for name, each in FORMATS.items()
    ]
    rows = [["format", "holds", "what it is (endings)"]]
    for page in pages:
        endings = f" ({' '.join(page['endings'])})" if page["endings"] else ""
        rows.append([page["name"], ", ".join(page["holds"]), f"{page['about']}{endings}"])
    return Listing(pages, [_described(rows)])


def _described(rows: Sequence[Sequence[str]]) -> Table:
    """A head and rows whose last column is a description, which may be long."""
    head, *body = rows
    return Table(head, body, left=len(head), tail=True, spare=range(len(head) - 2, 1, -1))


def fusions() -> Listing:
    """Every fusion method and normalisation: how it is typed, and what it does."""
    from cranfield.fuse.method import catalogue

    kinds = catalogue()
    parts = [Entries([(row["usage"], row["about"]) for row in rows], title) for title, rows in kinds.items()]
    return Listing(kinds, parts)


def systems() -> Listing:
    """The systems under test that a SPEC may name, with their options."""
    from cranfield.systems import catalogue

    rows = catalogue()
    entries: list[tuple[str, str]] = []
    for row in rows:
        options = (f"  {name}={one['default']}  {one['meaning']}" for name, one in row["options"].items())
        entries += [(row["system"], row["about"]), *(("", option) for option in options)]
    return Listing(rows, [Entries(entries, indent=0)])


def strategies() -> Listing:
    """What is said about each pooling strategy."""
    from cranfield.pool.strategy import catalogue

    rows, lines = catalogue(), []
    for row in rows:
        marks = [mark for mark, so in (("adapts to labels", row["adaptive"]), ("reads texts", row["reads"])) if so]
        lines += [f"{row['name']} ({', '.join(marks)})" if marks else row["name"], f"  {row['about']}"]
        lines += [f"    {name}={default}: {meaning}" for name, (default, meaning) in row["options"].items()]
    return Listing(rows, [Lines(lines)])


def interleavings() -> Listing:
    """The methods of interleaving: what each takes, whether blind users are fair to both sides, and what it does."""
    from cranfield.online.interleave.method import catalogue

    rows = catalogue()
    head = ["method", "rankings", "blind users", "what it does"]
    body = [[row["name"], row["rankings"], _blind(row), row["about"]] for row in rows]
    return Listing(rows, [_described([head, *body])])


def interleaving(name: str) -> Listing:
    """All that is said about one method of interleaving, by any of its names."""
    from cranfield.online.interleave.method import METHODS, page

    row = page(type(METHODS.named(name)))
    facts = [(key, _fact(row[key])) for key in ("rankings", "formula", "reference", "aliases")]
    facts.insert(1, ("blind users", _blind(row)))
    facts += _parameters(row)
    return Listing(row, [Entries([], row["name"]), row["about"], Entries(facts, indent=0)])


def _parameters(row: dict[str, Any]) -> list[tuple[str, str]]:
    meanings = (f"{each['name']}: {each['meaning']}; {each['range']}" for each in row["parameters"])
    defaults = (f" (default {each['default']})" for each in row["parameters"])
    return [("parameter", meaning + default) for meaning, default in zip(meanings, defaults, strict=True)]


def users() -> Listing:
    """The models of simulated users, with the chances that make them."""
    from cranfield.online.users.model import USERS
    from cranfield.registry import page

    rows = [page(cls) for cls in USERS.values()]
    body = [[row["name"], _chances(row), row["about"]] for row in rows]
    return Listing(rows, [_described([["users", "chances", "who they are"], *body])])


def _chances(row: dict[str, Any]) -> str:
    return " ".join(f"{each['default']:g}" for each in row["parameters"])


def user(name: str) -> Listing:
    """All that is said about one model of users, by any of its names."""
    from cranfield.online.users.model import USERS
    from cranfield.registry import page

    row = page(type(USERS.named(name)))
    facts = [(key, _fact(row[key])) for key in ("formula", "reference", "aliases")]
    return Listing(row, [Entries([], row["name"]), row["about"], Entries([*facts, *_parameters(row)], indent=0)])


def online_metrics() -> Listing:
    """The metrics of experiments: how each is averaged over units, which direction is good, and what it is."""
    from cranfield.online.metrics import catalogue

    rows = catalogue()
    head = ["metric", "kind", "good", "what it is"]
    return Listing(
        rows, [_described([head, *([row["name"], row["kind"], row["direction"], row["about"]] for row in rows)])]
    )


def online_metric(name: str) -> Listing:
    """All that is said about one metric of experiments, by any of its names."""
    from cranfield.online.metrics import metric, page

    row = page(type(metric(name)))
    facts = [(key, _fact(row[key])) for key in ("kind", "direction", "formula", "reference", "aliases") if row[key]]
    facts += _parameters(row)
    return Listing(row, [Entries([], row["name"]), row["about"], Entries(facts, indent=0)])


def _blind(row: dict[str, Any]) -> str:
    return "prefer neither" if row["blind_user_prefers_neither"] else "may prefer one"


def tests() -> Listing:
    """All that is said about each significance test, those of all systems at once last."""
    from cranfield.stats.testing import TESTS, TESTS_OF_MANY

    return _methods([*TESTS.values(), *TESTS_OF_MANY.values()], "name", "samples", "compares", "p_from")


def test(name: str) -> Listing:
    """All that is said about one significance test, by any of its names."""
    from cranfield.stats.testing import find_test

    return _method(find_test, name)


def corrections() -> Listing:
    """All that is said about each correction for many tests."""
    from cranfield.stats.correction import CORRECTIONS

    return _methods(CORRECTIONS.values(), "name", "controls")


def correction(name: str) -> Listing:
    """All that is said about one correction, by any of its names."""
    from cranfield.stats.correction import correction

    return _method(correction, name)


def _methods(methods: Iterable[Method], *columns: str) -> Listing:
    """A row a method: these columns, and what it is about."""
    pages = [method.page() for method in methods]
    head = [column.replace("_", " ") for column in (*columns, "about")]
    return Listing(pages, [_described([head, *([page[column] for column in (*columns, "about")] for page in pages)])])


def _method(find: Callable[[str], Method], name: str) -> Listing:
    """What a method is about, then whatever else is known of it."""
    try:
        page = find(name).page()
    except DataError as error:
        raise ConventionError(str(error)) from None
    facts = {key: value for key, value in page.items() if key not in ("name", "title", "about", "parameters")}
    entries = [(key.replace("_", " "), _fact(value)) for key, value in facts.items()]
    for each in page["parameters"]:
        meaning = f"{each['name']}: {each['meaning']}; {each['range']} (default {each['default']:g})"
        entries.append(("parameter", meaning))
    head = Entries([], f"{page['name']}  ({page['title']})")
    return Listing(page, [head, page["about"], Entries(entries, indent=0, margin=max(map(len, facts)) + 2)])


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (value if isinstance(value, str) else ", ".join(value)) or "-"


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
