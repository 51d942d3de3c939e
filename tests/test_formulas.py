"""The formula that `explain` prints is that of the measure with its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from cranfield.base.errors import MeasureError
from cranfield.base.parameters import Choice, Depth, Flag, Parameter, Real, Whole
from cranfield.evaluation.measures.definition import REGISTRY, Gain, Inner, Measure, measure
from shell import cranfield as shell

MEASURES = list(REGISTRY.values())


def default(cls: type[Measure]) -> Measure:
    """A measure of the class with all parameters as usual."""
    return cls(**{key: each.example for key, each in cls.parameters.items() if each.required})


def others(parameter: Parameter[Any], usual: Any) -> list[Any]:
    """Values of a parameter other than the usual one."""
    if isinstance(parameter, Choice):
        values: list[Any] = list(parameter.choices)
    elif isinstance(parameter, Flag):
        values = [True, False]
    elif isinstance(parameter, Gain):
        values = [*Gain.NAMES, {1: 3, 2: 9}]
    elif isinstance(parameter, Inner):
        values = ["nDCG@10", "RR"]
    else:
        assert isinstance(parameter, Real | Whole | Depth), type(parameter)
        values = [0.25, 0.75, 1, 2, 7]
    return [value for value in values if value != usual]


def typed(parameter: Parameter[Any]) -> tuple[str, ...]:
    """The words that a choice or a flag takes."""
    return parameter.choices if isinstance(parameter, Choice) else ("True", "False")


def variants(cls: type[Measure]) -> list[tuple[str, Any, Measure]]:
    """The class with each parameter changed alone, as far as its range allows."""
    usual = default(cls)
    answer = []
    for key, parameter in cls.parameters.items():
        for value in others(parameter, usual.values[key]):
            try:
                answer.append((key, value, usual.with_values(**{key: value})))
            except MeasureError:  # beyond the range
                continue
    return [each for each in answer if each[2] != usual]


@pytest.mark.parametrize("cls", MEASURES, ids=lambda cls: cls.name)
def test_every_parameter_changes_the_formula_or_is_named_in_it(cls: type[Measure]) -> None:
    usual = default(cls).formula_with_values()
    for key, _, changed in variants(cls):
        formula = changed.formula_with_values()
        assert formula != usual, key
        parameter = cls.parameters[key]
        if not isinstance(parameter, Choice | Flag):
            assert f"= {parameter.in_formula(changed.values[key])}" in formula


@pytest.mark.parametrize("cls", MEASURES, ids=lambda cls: cls.name)
def test_every_choice_has_a_formula_of_its_own_and_no_sentence_beside_it(cls: type[Measure]) -> None:
    for key, parameter in cls.parameters.items():
        if isinstance(parameter, Choice):
            cut = {"k": 5} if isinstance(cls.parameters.get("k"), Depth) else {}
            formulas = [default(cls).with_values(**{**cut, key: value}) for value in parameter.choices]
            written = [each.formula_with_values() for each in formulas]
            assert len(set(written)) == len(written)
            assert not any(parameter.meaning in text for text in written), key


def test_rewrites_name_parameters_and_values_that_exist() -> None:
    allowed = {
        f"{key}={value}" for cls in MEASURES for key, parameter in cls.parameters.items() for value in typed(parameter)
    }
    for cls in MEASURES:
        for key in cls.rewrites:
            assert key.partition("=")[0] in cls.parameters, (cls.name, key)
            assert "=" not in key or key in allowed, (cls.name, key)


@pytest.mark.parametrize(
    ("typed", "formula"),
    [
        ("nDCG", "DCG / DCG of the ideal ranking"),
        ("nDCG@10", "DCG@k / DCG@k of the ideal ranking,  k = 10"),
        ("nDCG(ideal=all)@10", "DCG@k / DCG of the whole ideal ranking,  k = 10"),
        ("DCG", "Σ over all ranks of gain / log2(rank + 1),  gain = grade"),
        ("DCG(discount=jk)", "Σ over all ranks of gain / max(1, log(rank) / log(base)),  gain = grade,  base = 2"),
        (
            "AP(divide=found)",
            "Σ over relevant documents found (relevant documents down to here / rank) / relevant documents found",
        ),
        (
            "AP(divide=cut, rel=2)@5",
            "Σ over relevant documents found (relevant documents down to here / rank) / min(k, relevant documents)"
            ",  rel = 2 (the lowest relevant grade),  k = 5",
        ),
        ("RBP(output=ED)", "1 / (1 − p),  "),
        (
            "ERR(stop=linear)",
            "Σ over ranks r of 1/r · R(r) · Π over j < r of (1 − R(j)),  R = grade / (max + 1),  max = 4",
        ),
        ("P@5", "relevant documents at ranks 1…k / k,  k = 5"),
        ("Success", "1 if a relevant document is at any rank, else 0"),
        ("StRecall", "subtopics answered at any rank / N subtopics"),
    ],
)
def test_formulas_against_those_written_by_hand(typed: str, formula: str) -> None:
    assert measure(typed).formula_with_values().startswith(formula)


def test_explain_and_the_report_print_the_formula_of_the_parameters() -> None:
    answer = shell("explain", "qrels.txt", "bm25.run", "--topic", "q1", "-m", "DCG(discount=jk)@5", "--format", "json")
    assert answer.code == 0, answer.err
    assert "max(1, log(rank) / log(base))" in answer.out
    assert "log2(rank + 1)" not in answer.out
