"""Commands that list what is available: presets, formats, fusions, systems, strategies, interleavings, metrics, tests …"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from cranfield.base import registry
from cranfield.base.errors import ConventionError, DataError, MeasureError
from cranfield.base.results import Answer, Entries, Layout, Lines, Part, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.evaluation.measures import Measure
    from cranfield.stats.method import StatisticalMethod


@dataclass(frozen=True)
class MemberListing(Answer):
    """A list of available members, as plain values and as a layout for the screen."""

    values: Any
    layout: Sequence[Part]

    def content(self, how: Layout) -> Iterable[Part]:
        return self.layout

    def plain(self, how: Layout) -> Any:
        return self.values

    def records(self, how: Layout) -> Iterable[Sequence[Any]]:
        """The rows of all tables and entries."""
        for part in self.layout:
            if isinstance(part, Table):
                yield from part.texts()
            elif isinstance(part, Entries):
                yield from part.entries
            elif isinstance(part, Lines):
                yield from ([line] for line in part.lines)


def presets() -> MemberListing:
    """The conventions of each preset."""
    from cranfield.base.conventions import PRESETS

    answers = {name: conventions.to_dict() for name, conventions in PRESETS.items()}
    words = {True: "yes", False: "no", "": "-"}
    head = ["preset", *next(iter(answers.values()))]
    rows = [[name, *(words.get(value, str(value)) for value in rules.values())] for name, rules in answers.items()]
    return MemberListing(answers, [Table(head, rows, left=len(head))])


def formats() -> MemberListing:
    """The file formats: name, content, endings and description."""
    from cranfield.formats import FORMATS

    pages: list[dict[str, Any]] = [
        {"name": name, "holds": list(each.kinds), "endings": list(each.endings), "about": each.about}
        for name, each in FORMATS.items()
    ]
    rows = []
    for page in pages:
        endings = f" ({' '.join(page['endings'])})" if page["endings"] else ""
        rows.append([page["name"], ", ".join(page["holds"]), f"{page['about']}{endings}"])
    return _listing(pages, ["format", "holds", "what it is (endings)"], rows)


def _listing(values: Any, head: list[str], rows: Iterable[Sequence[str]]) -> MemberListing:
    """Members in a table whose last column is a long description."""
    table = Table(head, list(rows), left=len(head), tail=True, spare=range(len(head) - 2, 1, -1))
    return MemberListing(values, [table])


def fusions() -> MemberListing:
    """Every fusion method and normalisation, with its usage and description."""
    from cranfield.retrieval.fusion.method import catalogue

    kinds = catalogue()
    parts = [Entries([(row["usage"], row["about"]) for row in rows], title) for title, rows in kinds.items()]
    return MemberListing(kinds, parts)


def systems() -> MemberListing:
    """The systems under test that a SPEC may name, with their options."""
    from cranfield.retrieval import catalogue

    rows = catalogue()
    entries: list[tuple[str, str]] = []
    for row in rows:
        options = (f"  {name}={one['default']}  {one['meaning']}" for name, one in row["options"].items())
        entries += [(row["system"], row["about"]), *(("", option) for option in options)]
    return MemberListing(rows, [Entries(entries, indent=0)])


def strategies() -> MemberListing:
    """The descriptions of the pooling strategies."""
    from cranfield.pooling.strategy import catalogue

    rows, lines = catalogue(), []
    for row in rows:
        marks = [mark for mark, so in (("adapts to labels", row["adaptive"]), ("reads texts", row["reads"])) if so]
        lines += [f"{row['name']} ({', '.join(marks)})" if marks else row["name"], f"  {row['about']}"]
        lines += [f"    {name}={default}: {meaning}" for name, (default, meaning) in row["options"].items()]
    return MemberListing(rows, [Lines(lines)])


def interleavings() -> MemberListing:
    """The interleaving methods: number of rankings, whether random clicks favour a system, and description."""
    from cranfield.experiments.interleaving.method import catalogue

    rows = catalogue()
    head = ["method", "rankings", "blind users", "what it does"]
    return _listing(rows, head, ([row["name"], row["rankings"], _blind(row), row["about"]] for row in rows))


def interleaving(name: str) -> MemberListing:
    """The full description of one interleaving method, by any of its names."""
    from cranfield.experiments.interleaving.method import METHODS, page

    row = page(type(METHODS.named(name)))
    facts = [(key, _fact(row[key])) for key in ("rankings", "formula", "reference", "aliases")]
    facts.insert(1, ("blind users", _blind(row)))
    return _member(row, facts)


def _member(row: dict[str, Any], facts: list[tuple[str, str]]) -> MemberListing:
    """The full description of a member: what it is about, its facts, its parameters."""
    return MemberListing(row, [Entries([], row["name"]), row["about"], Entries(facts + _parameters(row), indent=0)])


def _parameters(row: dict[str, Any]) -> list[tuple[str, str]]:
    """A line for each parameter: its name, meaning, range and default."""
    lines = ("{name}: {meaning}; {range} (default {default})".format_map(each) for each in row["parameters"])
    return [("parameter", line) for line in lines]


def users() -> MemberListing:
    """The models of simulated users with their probabilities."""
    from cranfield.experiments.simulated_world import USERS

    rows = [registry.page(cls) for cls in USERS.values()]
    chances = [" ".join(f"{each['default']:g}" for each in row["parameters"]) for row in rows]
    body = ([row["name"], own, row["about"]] for row, own in zip(rows, chances, strict=True))
    return _listing(rows, ["users", "chances", "who they are"], body)


def user(name: str) -> MemberListing:
    """The full description of one user model, by any of its names."""
    from cranfield.experiments.simulated_world import USERS

    row = registry.page(type(USERS.named(name)))
    return _member(row, [(key, _fact(row[key])) for key in ("formula", "reference", "aliases")])


def click_models() -> MemberListing:
    """The click models: how each is fitted, and its description."""
    from cranfield.experiments.clicks.model import CLICK_MODELS, page

    rows = [page(cls) for cls in CLICK_MODELS.values()]
    return _listing(
        rows, ["model", "fitted by", "what it is"], ([row["name"], row["fitted"], row["about"]] for row in rows)
    )


def click_model(name: str) -> MemberListing:
    """The full description of one click model, by any of its names."""
    from cranfield.experiments.clicks.model import CLICK_MODELS, page

    row = page(type(CLICK_MODELS.named(name)))
    return _member(row, [(key, _fact(row[key])) for key in ("fitted", "formula", "reference", "aliases")])


def online_metrics() -> MemberListing:
    """The metrics of experiments: kind, good direction and description."""
    from cranfield.experiments.metrics import catalogue

    rows = catalogue()
    head = ["metric", "kind", "good", "what it is"]
    return _listing(rows, head, ([row["name"], row["kind"], row["direction"], row["about"]] for row in rows))


def online_metric(name: str) -> MemberListing:
    """The full description of one metric of experiments, by any of its names."""
    from cranfield.experiments.metrics import metric_named, page

    row = page(type(metric_named(name)))
    keys = ("kind", "direction", "formula", "reference", "aliases")
    return _member(row, [(key, _fact(row[key])) for key in keys if row[key]])


def topic_designs() -> MemberListing:
    """The designs of samples of topics: what their mean describes, probability and description."""
    from cranfield.pooling.topic_sampling import TOPIC_DESIGNS, design_page

    rows = [design_page(design) for design in TOPIC_DESIGNS.values()]
    head = ["design", "the mean describes", "what it does"]
    return _listing(rows, head, ([row["name"], row["represents"], row["about"]] for row in rows))


def topic_design(name: str) -> MemberListing:
    """The full description of one design of samples of topics."""
    from cranfield.pooling.topic_sampling import TOPIC_DESIGNS, design_page

    row = design_page(type(TOPIC_DESIGNS.named(name)))
    return _member(row, [(key, _fact(row[key])) for key in ("represents", "formula", "reference")])


def position_bias_methods() -> MemberListing:
    """The methods of position bias: what separates rank from relevance, and description."""
    from cranfield.experiments.clicks.position_bias_methods import POSITION_BIAS_METHODS, page

    rows = [page(cls) for cls in POSITION_BIAS_METHODS.values()]
    head = ["method", "evidence", "what it does"]
    return _listing(rows, head, ([row["name"], row["evidence"], row["about"]] for row in rows))


def position_bias_method(name: str) -> MemberListing:
    """The full description of one method of position bias, by any of its names."""
    from cranfield.experiments.clicks.position_bias_methods import POSITION_BIAS_METHODS, page

    row = page(type(POSITION_BIAS_METHODS.named(name)))
    return _member(row, [(key, _fact(row[key])) for key in ("evidence", "formula", "reference", "aliases")])


def estimators() -> MemberListing:
    """The counterfactual estimators with their conditions."""
    from cranfield.experiments.counterfactual.estimator import ESTIMATORS, page

    rows = [page(cls) for cls in ESTIMATORS.values()]
    return _listing(
        rows, ["estimator", "reads", "what it does"], ([row["name"], row["reads"], row["about"]] for row in rows)
    )


def estimator(name: str) -> MemberListing:
    """The full description of one counterfactual estimator, by any of its names."""
    from cranfield.experiments.counterfactual.estimator import ESTIMATORS, page

    row = page(type(ESTIMATORS.named(name)))
    return _member(row, [(key, _fact(row[key])) for key in ("reads", "conditions", "formula", "reference", "aliases")])


def _blind(row: dict[str, Any]) -> str:
    return "prefer neither" if row["blind_user_prefers_neither"] else "may prefer one"


def tests() -> MemberListing:
    """The descriptions of all significance tests; tests of all systems at once come last."""
    from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY

    return _methods([*TESTS.values(), *TESTS_OF_MANY.values()], "name", "samples", "compares", "p_from")


def test(name: str) -> MemberListing:
    """The full description of one significance test, by any of its names."""
    from cranfield.stats.tests_by_name import find_test

    return _method(find_test, name)


def corrections() -> MemberListing:
    """The descriptions of all corrections for multiple tests."""
    from cranfield.stats.correction import CORRECTIONS

    return _methods(CORRECTIONS.values(), "name", "controls")


def correction(name: str) -> MemberListing:
    """The full description of one correction, by any of its names."""
    from cranfield.stats.correction import correction

    return _method(correction, name)


def _methods(methods: Iterable[StatisticalMethod], *columns: str) -> MemberListing:
    """One row per method: these columns and the description."""
    pages = [method.page() for method in methods]
    head = [column.replace("_", " ") for column in (*columns, "about")]
    return _listing(pages, head, ([page[column] for column in (*columns, "about")] for page in pages))


def _method(find: Callable[[str], StatisticalMethod], name: str) -> MemberListing:
    """The description of a method, then its other facts."""
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
    return MemberListing(page, [head, page["about"], Entries(entries, indent=0, margin=max(map(len, facts)) + 2)])


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (value if isinstance(value, str) else ", ".join(value)) or "-"


def measures(family: str | None = None) -> MemberListing:
    """The descriptions of all measures, by family."""
    from cranfield.evaluation.measures import REGISTRY

    families = list(dict.fromkeys(cls.family for cls in REGISTRY.values()))
    if family is not None:
        matching = [name for name in families if name.casefold().startswith(family.casefold())]
        if not matching:
            raise MeasureError(f"no family {family!r}; there are {', '.join(families)}")
        families = matching
    pages = [_page(cls) for name in families for cls in REGISTRY.values() if cls.family == name]
    margin = max(len(page["usage"]) for page in pages) + 4
    parts: list[Part] = [
        Entries([(page["usage"], page["definition"]) for page in members], name, margin)
        for name, members in groupby(pages, itemgetter("family"))
    ]
    return MemberListing(pages, [*parts, "cranfield measures NAME explains one."])


def measure(name: str) -> MemberListing:
    """The full description of one measure, by any of its names."""
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
    return MemberListing(page, parts)


def _named(name: str) -> type[Measure]:
    from cranfield.evaluation.measures import REGISTRY, measure

    if name in REGISTRY:
        return REGISTRY[name]
    try:
        return type(measure(name))
    except MeasureError:
        cls = REGISTRY.find(name)
        if cls is None:
            raise
        return cls


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
    """How the measure combines topics into one number."""
    from cranfield.evaluation.measures import Measure

    if cls.summarise is not Measure.summarise:
        return "one number for all topics by its own formula"
    return "sum over topics" if cls.aggregate == "sum" else "mean over topics"


def _usage(cls: type[Measure]) -> str:
    """The shortest name of a measure with its required or optional cut-off: P@k, AP[@k], RBP."""
    if cls.at is None or cls.at not in cls.parameters:
        return cls.name
    return f"{cls.name}@{cls.at}" if cls.parameters[cls.at].required else f"{cls.name}[@{cls.at}]"


def _docstring(cls: type[Measure]) -> tuple[list[str], str]:
    """The paragraphs of a docstring, each on one line, and its doctest."""
    prose: list[str] = []
    example: list[str] = []
    for paragraph in inspect.cleandoc(cls.__doc__ or "").split("\n\n"):
        if paragraph.startswith(">>>"):
            example.append(paragraph)
        else:
            prose.append(" ".join(paragraph.split()))
    return prose, "\n\n".join(example)
