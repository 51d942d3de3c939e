"""Every fusion method and normalisation of ranx against ours, on runs made here; skipped where ranx is not installed.

The table of cases is all that ranx offers. Where the two differ on purpose, `ON_PURPOSE` says why, and a test shows
where they still agree.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from cranfield.errors import ConventionError
from cranfield.fuse import METHODS, NORMS, fuse

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def ranx() -> Any:
    os.environ.setdefault(
        "NUMBA_DISABLE_JIT", "1"
    )  # a minute in plain Python; compiled, it takes several to begin with
    return pytest.importorskip("ranx", reason="the fusions of ranx are compared where it is installed")


@pytest.fixture(scope="module")
def made() -> tuple[list[dict[str, dict[str, float]]], dict[str, dict[str, int]]]:
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


def theirs(ranx: Any, made: Any, method: str, norm: str | None) -> dict[str, dict[str, float]]:
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


def ours(made: Any, method: str, norm: str | None) -> dict[str, dict[str, float]]:
    runs, qrels = made
    name, parameters = (OF_SCORES | OF_RANKS)[method]
    options: dict[str, Any] = {"weights": parameters.get("weights"), "train": qrels if method in TRAINED else None}
    return fuse(runs, name, norm=NORMS_OF_RANX[norm] if method in OF_SCORES else None, **options).to_dict()


@pytest.mark.parametrize(("method", "norm"), [case for case in CASES if case not in ON_PURPOSE])
def test_fused_scores_against_ranx(ranx: Any, made: Any, method: str, norm: str | None) -> None:
    there, here = theirs(ranx, made, method, norm), ours(made, method, norm)
    assert set(here) == set(there)
    for topic, documents in there.items():
        assert here[topic] == pytest.approx(documents, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["condorcet", "w_condorcet"])
def test_elections_over_the_same_documents_with_a_clear_order_against_ranx(ranx: Any, method: str) -> None:
    lists = ["abcdef", "abdcef", "bacdfe"]
    runs = [{"q": {d: 9.0 - i for i, d in enumerate(each)}} for each in lists]
    there, here = theirs(ranx, (runs, {}), method, None), ours((runs, {}), method, None)
    assert sorted(here["q"], key=lambda d: -here["q"][d]) == sorted(there["q"], key=lambda d: -there["q"][d])


def test_what_ranx_turns_round_half_way_is_refused(made: Any) -> None:
    with pytest.raises(ConventionError, match="turns round"):
        ours(made, "segfuse", "min-max-inverted")


def test_the_table_names_every_method_of_ranx_that_ours_claim(ranx: Any) -> None:
    from ranx.fusion import fusion_switch

    for method in OF_SCORES | OF_RANKS:
        assert callable(fusion_switch(method))
    claimed = " ".join(cls.peers.get("ranx", "") for cls in METHODS.values()).replace(",", " ").split()
    assert set(OF_SCORES | OF_RANKS) <= set(claimed)
