"""Every fusion method and normalisation of ranx against ours, on runs made here; skipped where ranx is not installed.

The table of cases is all that ranx offers. Where the two differ on purpose, `ON_PURPOSE` says why, and a test shows
where they still agree. ranx runs in a program of its own (this file), in plain Python: compiled, it takes minutes to
begin with, and numba cannot be told so once another test has loaded it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any, TypeAlias

import numpy as np
import pytest

from cranfield.base.errors import ConventionError
from cranfield.retrieval.fusion import METHODS, NORMS, fuse

Made: TypeAlias = tuple[list[dict[str, dict[str, float]]], dict[str, dict[str, int]]]

NORMS_OF_RANX = {None: "none"} | {cls.peers["ranx"]: name for name, cls in NORMS.items() if "ranx" in cls.peers}
OF_SCORES = {
    "sum": ("CombSUM", {}),
    "mnz": ("CombMNZ", {}),
    "gmnz": ("CombGMNZ(gamma=1.7)", {"gamma": 1.7}),
    "anz": ("CombANZ", {}),
    "max": ("CombMAX", {}),
    "min": ("CombMIN", {}),
    "med": ("CombMED", {}),
    "wsum": ("w-sum", {"weights": [0.5, 0.3, 0.2]}),
    "wmnz": ("WMNZ", {"weights": [0.5, 0.3, 0.2]}),
    "mixed": ("Mixed", {"weights": [0.5, 0.3, 0.2]}),
    "segfuse": ("SegFuse", {}),
}
OF_RANKS = {
    "rrf": ("RRF(k=60)", {"k": 60}),
    "isr": ("ISR", {}),
    "log_isr": ("LogISR", {}),
    "logn_isr": ("LogISR(sigma=0.01)", {"sigma": 0.01}),
    "rbc": ("RBC(phi=0.8)", {"phi": 0.8}),
    "bordafuse": ("Borda", {}),
    "w_bordafuse": ("Borda", {"weights": [0.5, 0.3, 0.2]}),
    "condorcet": ("Condorcet", {}),
    "w_condorcet": ("Condorcet", {"weights": [0.5, 0.3, 0.2]}),
    "mapfuse": ("MAPFuse", {}),
    "posfuse": ("PosFuse", {}),
    "probfuse": ("ProbFuse(segments=4)", {"n_segments": 4}),
    "slidefuse": ("SlideFuse(window=2)", {"w": 2}),
    "bayesfuse": ("BayesFuse", {}),
}
TRAINED = {"mapfuse", "posfuse", "probfuse", "slidefuse", "segfuse", "bayesfuse"}
CONDORCET = "ranx counts a run that lists neither of two documents as a vote for the second; we count pairs"
ON_PURPOSE = {
    ("condorcet", None): CONDORCET,
    ("w_condorcet", None): CONDORCET,
    (
        "segfuse",
        "min-max-inverted",
    ): "ranx learns from the order before it is turned round, and fuses by the other; refused",
    ("segfuse", "borda"): "ranx gives ranks to documents that a run did not return; we learn nothing of those",
}
CASES: list[tuple[str, str | None]] = [(method, norm) for method in OF_SCORES for norm in NORMS_OF_RANX]
CASES += [(method, None) for method in OF_RANKS]


ELECTIONS = ["condorcet", "w_condorcet"]
SAME = [{"q": {d: 9.0 - i for i, d in enumerate(each)}} for each in ("abcdef", "abdcef", "bacdfe")]


@pytest.fixture(scope="module")
def answers() -> Any:
    """What ranx makes of all cases, and of elections over the same documents."""
    if importlib.util.find_spec("ranx") is None:
        pytest.skip("the fusions of ranx are compared where it is installed")
    plainly = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    told = subprocess.run([sys.executable, __file__], env=plainly, capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


@pytest.fixture(scope="module")
def made() -> Made:
    """What both fuse."""
    return make()


def make() -> Made:
    """Three runs of six topics, of unequal lengths and overlap, without ties, and judgments."""
    rng = np.random.default_rng(5)
    topics = [f"q{i}" for i in range(6)]
    runs = []
    for _ in range(3):
        lists = {}
        for topic in topics:
            documents = rng.choice(60, rng.integers(18, 42), replace=False)
            scores = rng.permutation(np.arange(1, len(documents) + 1)) * 0.37 + rng.uniform(0, 0.1, len(documents))
            lists[topic] = {f"d{d}": float(s) for d, s in zip(documents, scores, strict=True)}
        runs.append(lists)
    qrels = {topic: {f"d{d}": int(g) for d, g in enumerate(rng.integers(0, 2, 60)) if d % 3 == 0} for topic in topics}
    return runs, qrels


def theirs(made: Made, method: str, norm: str | None) -> dict[str, dict[str, float]]:
    import ranx

    runs, qrels = made
    opened = [ranx.Run(run) for run in runs]
    parameters = dict((OF_SCORES | OF_RANKS)[method][1])
    if method in TRAINED:
        import ranx.fusion as fusion

        train = getattr(fusion, f"{method}_train")
        known = ranx.Qrels(qrels)
        learnt = train(known, opened, parameters.pop("n_segments")) if method == "probfuse" else train(known, opened)
        parameters["map_scores" if method == "mapfuse" else "log_odds" if method == "bayesfuse" else "probs"] = learnt
    fused = ranx.fuse(opened, norm=norm, method=method, params=parameters)
    return {topic: dict(documents) for topic, documents in fused.to_dict().items()}


def ours(made: Made, method: str, norm: str | None) -> dict[str, dict[str, float]]:
    runs, qrels = made
    name, parameters = (OF_SCORES | OF_RANKS)[method]
    options: dict[str, Any] = {"weights": parameters.get("weights"), "train": qrels if method in TRAINED else None}
    return fuse(runs, name, norm=NORMS_OF_RANX[norm] if method in OF_SCORES else None, **options).to_dict()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "norm"), [case for case in CASES if case not in ON_PURPOSE])
def test_fused_scores_against_ranx(answers: Any, made: Made, method: str, norm: str | None) -> None:
    there, here = answers["cases"][f"{method} {norm}"], ours(made, method, norm)
    assert set(here) == set(there)
    for topic, documents in there.items():
        assert here[topic] == pytest.approx(documents, rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ELECTIONS)
def test_elections_over_the_same_documents_with_a_clear_order_against_ranx(answers: Any, method: str) -> None:
    there, here = answers["elections"][method], ours((SAME, {}), method, None)
    assert sorted(here["q"], key=lambda d: -here["q"][d]) == sorted(there["q"], key=lambda d: -there["q"][d])


def test_what_ranx_turns_round_half_way_is_refused(made: Made) -> None:
    with pytest.raises(ConventionError, match="turns round"):
        ours(made, "segfuse", "min-max-inverted")


@pytest.mark.slow
def test_the_table_has_every_method_and_normalisation_of_ranx_and_those_that_ours_claim(answers: Any) -> None:
    assert set(answers["methods"]) == set(OF_SCORES | OF_RANKS)
    assert {name.replace("_", "-") for name in answers["norms"]} == set(filter(None, NORMS_OF_RANX))
    claimed = " ".join(cls.peers.get("ranx", "") for cls in METHODS.values()).replace(",", " ").split()
    assert set(OF_SCORES | OF_RANKS) <= set(claimed)


def test_names_of_ranx_are_accepted_with_its_defaults() -> None:
    for method, (name, _) in (OF_SCORES | OF_RANKS).items():
        assert METHODS.named(method).name == METHODS.named(name).name
    assert str(METHODS.named("logn_isr")) == str(METHODS.named("LogISR(sigma=0.01)"))
    assert str(METHODS.named("logn_isr(sigma=0.5)")) == str(METHODS.named("LogISR(sigma=0.5)"))
    assert str(METHODS.named("log_isr")) == str(METHODS.named("LogISR"))


def tell() -> None:
    """Write what ranx makes of every case, and the names that it has, as JSON."""
    import inspect
    import re

    from ranx.fusion import fusion_switch
    from ranx.normalization import norm_switch

    data = make()
    cases = {
        f"{method} {norm}": theirs(data, method, norm) for method, norm in CASES if (method, norm) not in ON_PURPOSE
    }
    elections = {method: theirs((SAME, {}), method, None) for method in ELECTIONS}
    methods, norms = (re.findall(r'"([\w-]+)"', inspect.getsource(each)) for each in (fusion_switch, norm_switch))
    print(json.dumps({"cases": cases, "elections": elections, "methods": methods, "norms": norms}))


if __name__ == "__main__":
    tell()
