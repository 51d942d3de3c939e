"""Verbs that say what there is: measures, presets, formats, fusions, systems, strategies, tests, corrections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError, MeasureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.measures import Measure
    from cranfield.stats.method import Method


def list_systems() -> list[dict[str, Any]]:
    """The systems under test that a SPEC may name, with their options."""
    from cranfield.systems import catalogue

    return catalogue()


def list_fusions() -> dict[str, list[dict[str, str]]]:
    """Every fusion method and normalisation: how it is typed, and what it does."""
    from cranfield.fuse.method import catalogue

    return catalogue()


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


def list_strategies() -> list[dict[str, Any]]:
    """What is said about each pooling strategy."""
    from cranfield.pool.strategy import catalogue

    return catalogue()


def list_tests() -> list[dict[str, Any]]:
    """All that is said about each significance test, those of all systems at once last."""
    from cranfield.stats.testing import TESTS, TESTS_OF_MANY

    return [one.page() for one in (*TESTS.values(), *TESTS_OF_MANY.values())]


def explain_test(name: str) -> dict[str, Any]:
    """All that is said about one significance test, by any of its names."""
    from cranfield.stats.testing import find_test

    return _explained(find_test, name)


def list_corrections() -> list[dict[str, Any]]:
    """All that is said about each correction for many tests."""
    from cranfield.stats.correction import CORRECTIONS

    return [one.page() for one in CORRECTIONS.values()]


def explain_correction(name: str) -> dict[str, Any]:
    """All that is said about one correction, by any of its names."""
    from cranfield.stats.correction import correction

    return _explained(correction, name)


def _explained(find: Callable[[str], Method], name: str) -> dict[str, Any]:
    try:
        return find(name).page()
    except DataError as error:
        raise ConventionError(str(error)) from None
