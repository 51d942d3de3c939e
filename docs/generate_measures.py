"""Writes docs/measures.md: every measure's page, from its class. `make docs` runs it, a test checks the result.

What a measure is checked against comes from the tests: those marked `@proves("AP", …)` in tests/.
"""

from __future__ import annotations

import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from cranfield.commands.listings import measures
from cranfield.evaluation.measures import REGISTRY

PAGE = Path(__file__).with_name("measures.md")
TESTS = Path(__file__).parents[1] / "tests"
EVERYWHERE = "judged_only"  # a parameter that every measure has

HEAD = """# Measures

<!-- Written by docs/generate_measures.py; change the classes, then `make docs`. -->

Measures have the usual names of the field: `nDCG@10`, `AP(rel=2)@100`, `RBP(p=0.8)`; `nDCG@1,5,10` is three. The names
that trec_eval, ir_measures, ranx and gdeval give it are read as well (`ndcg_cut_10`, `map@100`,
`nDCG(dcg='exp-log2')@10`), whatever the case of letters where only one measure can be meant. `cranfield measures NAME`
shows the same as this page.

- `rel` is the lowest grade that counts as relevant; `--rel 2` (or `rel=2` in Python) sets it for all measures whose
  name does not.
- `judged_only=True` goes with every measure: the list is scored without its unjudged documents (the condensed list).
- Topics are averaged alike (macro). Ratios of counts can be pooled instead: `micro(SetP)` adds up the numerators and the
  denominators over all topics, and then divides; a topic's own value does not change.
- Grades are real numbers. The treatment of ties, missing topics and negative grades does not belong to a measure: see
  [conventions.md](conventions.md).
- Each promise named below is tested on random runs: *ideal is best* (no ranking of the same documents scores higher
  than the one by grade), *normalised* (all relevant documents and no others, best first, score 1), *monotone* (moving
  a better document up never lowers the score), *an empty list scores 0*.
- `lecture 000` to `lecture 004` are lectures on information retrieval; tests compute the figures of their examples.

"""


def page() -> str:
    """The whole page."""
    proofs = oracles()
    pages = measures().values
    families: dict[str, list[dict[str, Any]]] = {}
    for each in pages:
        families.setdefault(each["family"], []).append(each)
    lines = [HEAD + "| family | measures |\n|---|---|"]
    for family, members in families.items():
        links = ", ".join(f"[{each['name']}](#{each['name'].lower()})" for each in members)
        lines.append(f"| {family} | {links} |")
    for family, members in families.items():
        lines.append(f"\n## {family[0].upper()}{family[1:]}")
        lines += [section(each, proofs.get(each["name"], [])) for each in members]
    return "\n".join(lines) + "\n"


def section(each: dict[str, Any], proofs: list[str]) -> str:
    """One measure: definition, formula, parameters, other names, promises, reference, example, oracles."""
    parts = [f"\n### {each['name']}", f"`{each['usage']}`, {each['summary']}. {each['definition']}", *each["details"]]
    parts.append(f"    {each['formula']}")
    own = [parameter for parameter in each["parameters"] if parameter["name"] != EVERYWHERE]
    if own:
        parts.append("\n".join(["| parameter | meaning | values | default |", "|---|---|---|---|", *map(row, own)]))
    if each["peers"]:
        peers = [f"{peer}: {', '.join(f'`{name}`' for name in names)}" for peer, names in each["peers"].items()]
        parts.append(f"Also known as — {'; '.join(peers)}.")
    parts.append(f"{promises(each['name'])} Reference: {each['reference']}.")
    parts.append(f"```python\n{each['example']}\n```")
    if proofs:
        parts.append("\n".join(["Checked by these tests:", "", *(f"- {proof}" for proof in proofs)]))
    return "\n\n".join(parts)


def row(parameter: dict[str, Any]) -> str:
    """One parameter as a row of a table."""
    given = "must be given" if parameter["required"] else parameter["default"] or "none"
    values = parameter["range"].replace("|", "\\|")
    return f"| `{parameter['name']}` | {parameter['meaning']} | {values} | {given} |"


def promises(name: str) -> str:
    """What the class claims, in words."""
    cls = REGISTRY[name]
    ends = [f"{end:g}" if math.isfinite(end) else "∞" if end > 0 else "−∞" for end in (cls.low, cls.high)]
    claims = {
        "ideal is best": cls.ideal_is_best,
        "normalised": cls.normalised,
        "monotone": cls.monotone,
        "an empty list scores 0": cls.empty_is_zero,
    }
    held = ["lower is better"] * cls.lower_is_better + [claim for claim, holds in claims.items() if holds]
    text = f"From {ends[0]} to {ends[1]}" + (f"; {', '.join(held)}." if held else ".")
    return f"{text} Undefined where {cls.undefined}." if cls.undefined else text


def oracles() -> dict[str, list[str]]:
    """For each measure, the tests that compare it with an oracle, as sentences."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    found: dict[str, list[str]] = {}
    for source in sorted(TESTS.glob("test_*.py")):
        if "@proves(" not in source.read_text(encoding="utf-8"):
            continue
        for name, test in vars(import_module(source.stem)).items():
            for measure in getattr(test, "proves", ()) if name.startswith("test_") else ():
                sentence = in_words(name.removeprefix("test_").replace("_", " "))
                found.setdefault(measure, []).append(f"{sentence} ([{source.name}](../tests/{source.name}))")
    return found


NAMES = (  # of programs and people, as they are written
    *(
        (name.replace("_", " "), name)
        for name in ("pytrec_eval", "trec_eval", "ir_measures", "cwl_eval", "sample_eval")
    ),
    *((f"{owner} s ", f"{owner}'s ") for owner in ("paper", "track")),
    ("authors ", "authors' "),
    ("papers formula", "paper's formula"),
    ("scikit learn", "scikit-learn"),
    ("cut off", "cut-off"),
)


def in_words(sentence: str) -> str:
    """The name of a test as a sentence, with names of programs as they are written."""
    for typed, written in NAMES:
        sentence = sentence.replace(typed, written)
    return sentence


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
