"""What other programs do: a preset is a program's conventions plus the parameters it gives to measures.

Plain data, so that the same table drives `--as`, `explain --as all` and the documentation. A measure
that a program lacks is None there. A preset gives the program's number, or `differs` says where it does
not, and every command that scores says so too. docs/explain.md says how each was found out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.conventions import PRESETS, Conventions
from cranfield.measures.measure import aggregated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from cranfield.measures import Measure


HIGHEST = "highest"  # stands for the highest grade of the judgments


TIES, STRANGE_TOPICS, NO_RELEVANT = "ties", "topics that are not judged", "no relevant documents"
EMPTY, NEGATIVE = "empty answers", "negative grades"


@dataclass(frozen=True)
class Difference:
    """Where a preset's number is not, or need not be, its program's: a verb for the program, and the fact it takes."""

    words: str
    fact: str = ""  # one of the above; without one it is always said
    where: Callable[[Measure], bool] = lambda measure: True  # which of the measure

    def applies(self, measure: Measure, facts: Container[str] | None) -> bool:
        """Whether to say it of a measure, given what is known of runs and judgments; None: whatever they are."""
        return self.where(measure) and (facts is None or not self.fact or self.fact in facts)

    @property
    def in_number(self) -> bool:
        """Whether the program has another number, rather than none because it stops or gives NaN."""
        return not self.words.startswith(("stops", "gives no number"))


@dataclass(frozen=True)
class Rule:
    """How one program computes one measure: the parameters it fixes, and where it leaves its own conventions."""

    parameters: Mapping[str, Any] = field(default_factory=dict)  # a function takes the value that was typed
    conventions: Mapping[str, Any] = field(default_factory=dict)
    where: Callable[[Measure], bool] = lambda measure: True  # which of the measure has these other conventions
    aggregate: str = ""  # how it makes one number of all topics, where that is not our way
    note: str = ""
    differs: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Peer:
    """A program: conventions, and the measures it has. `spelling` is its name in `Measure.peers`, which name more."""

    name: str
    conventions: Conventions
    rules: Mapping[str, Rule] | None = None  # None: a convention of ours, which goes with every measure
    spelling: str = ""
    note: str = ""
    differs: tuple[Difference, ...] = ()  # of every measure
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
        if rule is None or not rule.where(measure):
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
        own = measure.values
        fixed = {key: value(own[key]) if callable(value) else value for key, value in rule.parameters.items()}
        fixed = {key: highest if value == HIGHEST else value for key, value in fixed.items()}
        theirs = measure.with_values(**fixed) if fixed else measure
        usual = measure.aggregate == type(measure).aggregate
        return aggregated(theirs, rule.aggregate) if rule.aggregate and usual else theirs

    def differences(self, measure: Measure, facts: Container[str] | None = None) -> list[str]:
        """Where a measure's number is not this program's, in words that follow its name; see `Difference.applies`."""
        rule = self.rule(measure)
        if rule is None:
            own = self.name in measure.peers
            why = "computes it in a way of its own that is not followed here" if own else "has no such measure"
            return [f"{why}; this is ours under its conventions"]
        return [each.words for each in (*rule.differs, *self.differs) if each.applies(measure, facts)]

    def has_another_number(self, measure: Measure) -> bool:
        """Whether some runs and judgments give a measure another number than this program's, or it has no such measure."""
        rule = self.rule(measure)
        if rule is None:
            return True
        return any(each.in_number and each.applies(measure, None) for each in (*rule.differs, *self.differs))


SIGNED = {"gain": "signed-exp2"}
BY_ID_ASCENDING = {"ties": "document-ascending", "scores": "double"}
AS_GIVEN = {"ties": "input-order"}
DIVERSITY = {"diversity": Rule()}


def _same(*names: str) -> dict[str, Rule]:
    return dict.fromkeys(names, Rule())


def _cut(measure: Measure) -> bool:
    return measure.values.get("k") is not None


IN_PYTHON = AS_GIVEN | {"scores": "double"}  # sorted by a list's own sort
BY_GDEVAL = {"scores": "double"}
BY_CWL = Rule(conventions=IN_PYTHON)
STOPS = Difference("stops at a topic that is not judged", STRANGE_TOPICS)
BY_BEIR = Rule(conventions=IN_PYTHON | {"missing": "zero"}, differs=(STOPS,))
FAR = 0.97  # beyond this p, RBP's users read on past rank 1,000
NO_LEVELS = Difference("gives no number (NaN) to an empty answer at recall 0", EMPTY)
UNORDERED = Difference("leaves the order of ties open", TIES)
POSITIVE = Difference("takes a document of score 0 or less for one that was not returned")
BARREN_STOPS = Difference("stops at a topic without relevant documents (division by zero)", NO_RELEVANT)
KNOWS_LITTLE = Difference("knows no other documents than those passed to it")


TREC_EVAL = {
    "Rndcg": Rule({"end": "trec_eval"}),
    **_same(
        "AP", "Bpref", "infAP", "IPrec", "nDCG", "P", "R", "RR", "Rprec", "SetAP", "SetF", "SetP", "SetR", "Success"
    ),
    **_same("NumQ", "NumRel", "NumRelRet", "NumRet"),
}

PEERS: dict[str, Peer] = {
    "trec_eval-9": Peer(
        "trec_eval-9",
        PRESETS["trec_eval-9"],
        TREC_EVAL | dict.fromkeys(("IPrec", "11pt"), Rule({"level": "trec_eval-9"}, differs=(NO_LEVELS,))),
        "trec_eval",
        lacks=("DCG", "IdealDCG", "RBP", "RBPresidual", "Unjudged"),
    ),
    "trec_eval-10": Peer(
        "trec_eval-10",
        PRESETS["trec_eval-10"],
        TREC_EVAL
        | dict.fromkeys(("IPrec", "11pt"), Rule({"level": "trec_eval-10"}, differs=(NO_LEVELS,)))
        | {"RBP": Rule({"gain": "topic"})},
        "trec_eval",
    ),
    "trec_eval-ndcg": Peer("trec_eval-ndcg", PRESETS["trec_eval-ndcg"], {"nDCG": Rule({"ideal": "all", "k": None})}),
    "gdeval": Peer(
        "gdeval",
        PRESETS["gdeval"],
        {"nDCG": Rule({"gain": "exp2"}), "ERR": Rule({"max": 4})},
        note="prints 5 decimals",
    ),
    "ir_measures": Peer(
        "ir_measures",
        PRESETS["ir_measures"],
        TREC_EVAL
        | {
            "IPrec": Rule({"level": "trec_eval-9"}, differs=(NO_LEVELS,)),
            "SetF": Rule({"beta": math.sqrt}, note="its beta is what others call beta²"),
            "NumQ": Rule(conventions={"missing": "skip"}),
            "NumRel": Rule(
                conventions={"missing": "skip"},
                differs=(Difference("gives no number for another rel than 1", where=lambda m: m.values["rel"] != 1),),
            ),
            "nDCG": Rule(conventions=BY_GDEVAL, where=lambda measure: measure.values["gain"] == "exp2"),
            "ERR": Rule({"max": 4}, BY_GDEVAL),
            "RBP": Rule(
                {"gain": "binary"},
                IN_PYTHON,
                differs=(
                    Difference(
                        "lets nobody read past rank 1,000, which for so high a p gives more than here",
                        where=lambda measure: measure.values["p"] > FAR,
                    ),
                ),
            ),
            "RR": Rule(
                conventions=BY_ID_ASCENDING,
                where=_cut,
                differs=(
                    Difference(
                        "gives no number for judged_only with a cut-off", where=lambda m: _cut(m) and m.judged_only
                    ),
                ),
            ),
            "Judged": Rule(
                conventions=BY_ID_ASCENDING | {"negative": "irrelevant"},
                differs=(Difference("stops at an empty answer (division by zero)", EMPTY),),
            ),
            "Accuracy": Rule(
                {"nothing_found": "skip"},
                IN_PYTHON | {"missing": "skip"},
                differs=(Difference("stops at a list of nothing but relevant documents (division by zero)"),),
            ),
            "Compat": Rule(
                conventions=BY_ID_ASCENDING,
                differs=(
                    Difference("orders ties of one grade in the ideal list as the qrels do", TIES),
                    Difference("takes the score of what was not returned for 0, above scores that are negative"),
                ),
            ),
        }
        | dict.fromkeys(("BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "SDCG"), BY_CWL),
        "ir_measures",
        families={"diversity": Rule(conventions=BY_ID_ASCENDING)},
    ),
    "ranx": Peer(
        "ranx",
        PRESETS["ranx"],
        {
            "RBP": Rule({"gain": "grade", "max": 1}),
            "NumRelRet": Rule(aggregate="mean", note="the mean over topics"),
            "Bpref": Rule(
                differs=(
                    Difference("gives 0 to a topic without relevant documents and to all after it", NO_RELEVANT),
                    Difference("gives no number (NaN) if all judged documents of a topic are relevant"),
                )
            ),
        },
        "ranx",
        differs=(Difference("leaves the order of ties open in lists of 16 documents and more", TIES), STOPS),
    ),
    "scikit-learn": Peer(
        "scikit-learn",
        PRESETS["scikit-learn"],
        _same("nDCG", "DCG"),
        differs=(KNOWS_LITTLE, Difference("refuses negative grades", NEGATIVE)),
    ),
    "torchmetrics": Peer(
        "torchmetrics",
        PRESETS["torchmetrics"],
        dict.fromkeys(("P", "R", "RR"), Rule(conventions=AS_GIVEN, differs=(UNORDERED, POSITIVE)))
        | dict.fromkeys(("Rprec", "Success"), Rule(conventions=AS_GIVEN, differs=(UNORDERED,)))
        | {
            "nDCG": Rule(differs=(Difference("takes a negative grade for a loss", NEGATIVE),)),
            "AP": Rule({"divide": "found"}, AS_GIVEN, differs=(UNORDERED, POSITIVE)),
        },
        differs=(KNOWS_LITTLE,),
    ),
    "beir": Peer(
        "beir",
        PRESETS["beir"],
        _same("nDCG", "AP", "R", "P")
        | dict.fromkeys(("RR", "Success", "Hole"), BY_BEIR)
        | {"RelativeP": replace(BY_BEIR, differs=(STOPS, BARREN_STOPS))},
        note="prints 5 decimals",
    ),
    "elasticsearch": Peer(
        "elasticsearch",
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
        "opensearch",
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
        "quepid",
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
    "quepid-cut": Peer(
        "quepid-cut", PRESETS["quepid-cut"], {"nDCG": Rule({**SIGNED, "ideal": "cut"}, note="its scorer NDCG_CUT")}
    ),
    "ntcireval": Peer(
        "ntcireval",
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
    "ndeval": Peer("ndeval", PRESETS["ndeval"], {}, families=DIVERSITY, note="stops where a rank stands twice"),
    "ndeval-traditional": Peer("ndeval-traditional", PRESETS["ndeval-traditional"], {}, families=DIVERSITY),
    "pyndeval": Peer("pyndeval", PRESETS["pyndeval"], {}, families=DIVERSITY),
    "insertion-order": Peer("insertion-order", PRESETS["insertion-order"]),
}


def as_peer(preset: str, measures: dict[str, Measure], highest: float) -> dict[str, Measure]:
    """The measures with a preset's parameters, under the names they were given; those it lacks stay as they are."""
    if preset not in PEERS:
        return measures
    return {name: PEERS[preset].measure(measure, highest) or measure for name, measure in measures.items()}


def differences(
    preset: str, measures: Mapping[str, Measure], facts: Container[str] | None = None
) -> dict[str, list[str]]:
    """The measures whose number is not, or need not be, that of the preset's program, and why: sentences.

    `facts` are those of runs and judgments that a difference takes; None: whatever they are.
    """
    if preset not in PEERS:
        return {}
    words = {name: PEERS[preset].differences(measure, facts) for name, measure in measures.items()}
    return {name: [f"{preset} {text}" for text in texts] for name, texts in words.items() if texts}


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
