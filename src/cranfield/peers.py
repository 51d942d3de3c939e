"""What other programs do: a preset is a program's conventions plus the parameters it gives to measures.

Plain data, so that the same table drives `--as`, `explain --as all` and the documentation. A measure
that a program lacks is None there. docs/explain.md says how each was found out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.conventions import PRESETS, Conventions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cranfield.measures import Measure


HIGHEST = "highest"  # stands for the highest grade of the judgments


@dataclass(frozen=True)
class Rule:
    """How one program computes one measure: the parameters it fixes, and where it leaves its own conventions."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    conventions: Mapping[str, Any] = field(default_factory=dict)
    only_cut: bool = False  # the other conventions are those of the measure with a cut-off only
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """A program: conventions, and the measures it has. `spelling` is its name in `Measure.peers`, which name more."""

    conventions: Conventions
    rules: Mapping[str, Rule] | None = None  # None: a convention of ours, which goes with every measure
    spelling: str = ""
    note: str = ""
    lacks: tuple[str, ...] = ()  # measures that only another version of it has
    families: Mapping[str, Rule] = field(default_factory=dict)  # of which it has every measure

    def rule(self, measure: Measure) -> Rule | None:
        """How it computes a measure; None if it has no such measure."""
        if self.rules is None:
            return Rule()
        if measure.name in self.rules:
            return self.rules[measure.name]
        if measure.family in self.families:
            return self.families[measure.family]
        has = self.spelling in measure.peers and measure.name not in self.lacks
        return Rule() if has else None

    def exceptions(self, measure: Measure) -> dict[str, Any]:
        """Where it leaves its conventions when it computes this measure."""
        rule = self.rule(measure)
        if rule is None or (rule.only_cut and measure.values.get("k") is None):
            return {}
        return {key: value for key, value in rule.conventions.items() if getattr(self.conventions, key) != value}

    def conventions_for(self, measure: Measure) -> Conventions:
        """Its conventions where it computes this measure."""
        return replace(self.conventions, **self.exceptions(measure))

    def measure(self, measure: Measure, highest: float) -> Measure | None:
        """The measure as it computes it; `highest` is the highest grade of the judgments."""
        rule = self.rule(measure)
        if rule is None:
            return None
        fixed = {key: highest if value == HIGHEST else value for key, value in rule.parameters.items()}
        return measure.with_values(**fixed) if fixed else measure


SIGNED = {"gain": "signed-exp2"}
BY_ID_ASCENDING = {"ties": "document-ascending", "scores": "double"}
OWN_IDEAL = "itself takes the ideal from the documents passed and refuses negative grades"
AS_GIVEN = {"ties": "input-order"}
DIVERSITY = {"diversity": Rule()}


def _same(*names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, Rule())


def _as_given(*names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, Rule(conventions=AS_GIVEN))


IN_PYTHON = Rule(conventions=AS_GIVEN | {"scores": "double"})  # sorted by a list's own sort


TREC_EVAL = {
    **_same(
        "AP", "Bpref", "infAP", "IPrec", "nDCG", "P", "R", "RR", "Rprec", "SetAP", "SetF", "SetP", "SetR", "Success"
    ),
    **_same("NumQ", "NumRel", "NumRelRet", "NumRet"),
}

PEERS: dict[str, Peer] = {
    "trec_eval-9": Peer(
        PRESETS["trec_eval-9"],
        TREC_EVAL | {"IPrec": Rule({"level": "trec_eval-9"}), "11pt": Rule({"level": "trec_eval-9"})},
        "trec_eval",
        lacks=("DCG", "IdealDCG", "RBP", "RBPresidual", "Unjudged"),
    ),
    "trec_eval-10": Peer(
        PRESETS["trec_eval-10"],
        TREC_EVAL
        | dict.fromkeys(("IPrec", "11pt"), Rule({"level": "trec_eval-10"}))
        | {"RBP": Rule({"gain": "topic"})},
        "trec_eval",
    ),
    "trec_eval-ndcg": Peer(PRESETS["trec_eval-ndcg"], {"nDCG": Rule({"ideal": "all", "k": None})}),
    "gdeval": Peer(
        PRESETS["gdeval"],
        {"nDCG": Rule({"gain": "exp2"}), "ERR": Rule({"max": 4})},
        note="prints 5 decimals",
    ),
    "ir_measures": Peer(
        PRESETS["ir_measures"],
        TREC_EVAL
        | {
            "ERR": Rule({"max": 4}, {"scores": "double"}),
            "RBP": Rule({"gain": "binary"}, IN_PYTHON.conventions),
            "RR": Rule(conventions=BY_ID_ASCENDING, only_cut=True),
            "Judged": Rule(conventions=BY_ID_ASCENDING | {"negative": "irrelevant"}),
            "Accuracy": IN_PYTHON,
            "Compat": Rule(conventions=BY_ID_ASCENDING, note="an ideal list orders ties of one grade as the qrels do"),
        },
        "ir_measures",
        families={"diversity": Rule(conventions=BY_ID_ASCENDING)},
    ),
    "ranx": Peer(
        PRESETS["ranx"], {"RBP": Rule({"gain": "grade", "max": 1})}, "ranx", "the order of many ties is undefined"
    ),
    "scikit-learn": Peer(PRESETS["scikit-learn"], _same("nDCG", "DCG"), note=OWN_IDEAL),
    "torchmetrics": Peer(
        PRESETS["torchmetrics"],
        _as_given("P", "R", "RR", "Rprec", "Success")
        | {"nDCG": Rule(note=OWN_IDEAL), "AP": Rule({"divide": "found"}, AS_GIVEN)},
    ),
    "beir": Peer(
        PRESETS["beir"],
        _same("nDCG", "AP", "R", "P") | {"RR": IN_PYTHON, "Success": IN_PYTHON},
        note="prints 5 decimals",
    ),
    "elasticsearch": Peer(
        PRESETS["elasticsearch"],
        _same("R", "RR")
        | {
            "nDCG": Rule({**SIGNED, "ideal": "hits"}),
            "DCG": Rule(SIGNED),
            "P": Rule({"divide": "returned"}),
            "ERR": Rule(note="the highest grade must be given"),
        },
    ),
    "opensearch": Peer(
        PRESETS["opensearch"],
        _same("R", "RR")
        | {
            "nDCG": Rule({**SIGNED, "ideal": "cut"}),
            "DCG": Rule(SIGNED),
            "AP": Rule({"divide": "relevant"}),
            "P": Rule({"divide": "returned"}),
        },
        note="then rounds each topic to 2 decimals",
    ),
    "quepid": Peer(
        PRESETS["quepid"],
        {
            "nDCG": Rule({**SIGNED, "ideal": "all"}, note="the ideal holds every rated document"),
            "DCG": Rule(SIGNED),
            "CG": Rule({"gain": "signed"}),
            "AP": Rule({"divide": "relevant"}),
            "P": Rule({"divide": "returned"}),
            "RR": Rule(),
            "ERR": Rule({"max": 3}),
        },
    ),
    "quepid-cut": Peer(PRESETS["quepid-cut"], {"nDCG": Rule({**SIGNED, "ideal": "cut"}, note="its scorer NDCG_CUT")}),
    "ntcireval": Peer(
        PRESETS["ntcireval"],
        _same("AP", "RR", "P", "Success")
        | {
            "nDCG": Rule({"discount": "jk", "base": 2}),
            "RBP": Rule({"gain": "grade", "max": HIGHEST}),
            "ERR": Rule({"stop": "linear", "max": HIGHEST}),
        },
        "ntcireval",
        "reads lists without scores",
    ),
    "ndeval": Peer(PRESETS["ndeval"], {}, families=DIVERSITY, note="stops where a rank stands twice"),
    "ndeval-traditional": Peer(PRESETS["ndeval-traditional"], {}, families=DIVERSITY),
    "pyndeval": Peer(PRESETS["pyndeval"], {}, families=DIVERSITY),
    "insertion-order": Peer(PRESETS["insertion-order"]),
}


def as_peer(preset: str, measures: dict[str, Measure], highest: float) -> dict[str, Measure]:
    """The measures with a preset's parameters, under the names they were given; those it lacks stay as they are."""
    if preset not in PEERS:
        return measures
    return {name: PEERS[preset].measure(measure, highest) or measure for name, measure in measures.items()}


def exceptions(
    preset: str, measures: Mapping[str, Measure], settled: Mapping[str, Any]
) -> dict[Measure, dict[str, Any]]:
    """The conventions that a program leaves for single measures, but for those that are settled otherwise."""
    if preset not in PEERS:
        return {}
    peer = PEERS[preset]
    own = {measure: peer.exceptions(measure) for measure in measures.values()}
    left = {measure: {key: value for key, value in each.items() if key not in settled} for measure, each in own.items()}
    return {measure: each for measure, each in left.items() if each}
