"""Presets: the conventions of other programs, and the parameters that they give to measures.

This is plain data, so one table drives `--as`, `explain --as all` and the documentation. A preset gives the program's
number, or `differs` says where it does not, and every command that scores reports that. docs/explain.md says how each
entry was found out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cranfield.base.conventions import PRESETS, Conventions
from cranfield.evaluation.measures.definition import aggregated

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from cranfield.evaluation.measures import Measure


HIGHEST = "highest"  # placeholder for the highest grade of the judgments


TIES, STRANGE_TOPICS, NO_RELEVANT = "ties", "topics that are not judged", "no relevant documents"
EMPTY, NEGATIVE = "empty answers", "negative grades"


@dataclass(frozen=True)
class Difference:
    """A difference between a program's number and its preset's: the end of a sentence, and when it applies."""

    words: str
    fact: str = ""  # one of the above that must hold for the data; empty: it always applies
    where: Callable[[Measure], bool] = lambda measure: True  # which parameters of the measure are concerned

    def applies(self, measure: Measure, facts: Container[str] | None) -> bool:
        """Whether it applies to a measure, given the facts of runs and judgments; None stands for all facts."""
        return self.where(measure) and (facts is None or not self.fact or self.fact in facts)

    @property
    def in_number(self) -> bool:
        """Whether the program gives a different number; False if it fails or gives NaN."""
        return not self.words.startswith(("stops", "gives no number"))


@dataclass(frozen=True)
class MeasureRule:
    """How one program computes one measure: the parameters it fixes, and exceptions from its own conventions."""

    parameters: Mapping[str, Any] = field(default_factory=dict)  # a function maps the requested value to the program's
    conventions: Mapping[str, Any] = field(default_factory=dict)
    where: Callable[[Measure], bool] = lambda measure: True  # parameters for which these conventions hold
    aggregate: str = ""  # its aggregate over topics, if it is not ours
    note: str = ""
    differs: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Peer:
    """A program: its preset's name and its measures. `spelling` is its key in `Measure.peers`, which may list more measures."""

    name: str
    rules: Mapping[str, MeasureRule] | None = None  # None: a set of conventions of ours, for every measure
    spelling: str = ""
    note: str = ""
    differs: tuple[Difference, ...] = ()  # for every measure
    lacks: tuple[str, ...] = ()  # measures that only another version of the program has
    families: Mapping[str, MeasureRule] = field(default_factory=dict)  # families of which it has every measure

    @property
    def conventions(self) -> Conventions:
        """The conventions of the preset."""
        return PRESETS[self.name]

    def rule(self, measure: Measure) -> MeasureRule | None:
        """How the program computes a measure; None if it has no such measure."""
        if self.rules is None:
            return MeasureRule()
        if measure.name in self.rules:
            return self.rules[measure.name]
        if measure.family in self.families:
            return self.families[measure.family]
        has = self.spelling in measure.peers and measure.name not in self.lacks
        return MeasureRule() if has else None

    def exceptions(self, measure: Measure) -> dict[str, Any]:
        """The program's exceptions from its own conventions for this measure."""
        rule = self.rule(measure)
        if rule is None or not rule.where(measure):
            return {}
        return {key: value for key, value in rule.conventions.items() if getattr(self.conventions, key) != value}

    def conventions_for(self, measure: Measure) -> Conventions:
        """The program's conventions for this measure."""
        return replace(self.conventions, **self.exceptions(measure))

    def measure(self, measure: Measure, highest: float) -> Measure | None:
        """The measure as the program computes it; `highest` is the highest grade of the judgments."""
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
        """How the program's number for a measure differs from ours: ends of sentences (`Difference.words`)."""
        rule = self.rule(measure)
        if rule is None:
            own = self.name in measure.peers
            why = "computes it in its own way, which is not repeated here" if own else "has no such measure"
            return [f"{why}; the number is ours under its conventions"]
        return [each.words for each in (*rule.differs, *self.differs) if each.applies(measure, facts)]

    def has_another_number(self, measure: Measure) -> bool:
        """Whether our number can differ from the program's for some data, or the program has no such measure."""
        rule = self.rule(measure)
        if rule is None:
            return True
        return any(each.in_number and each.applies(measure, None) for each in (*rule.differs, *self.differs))


SIGNED = {"gain": "signed-exp2"}
BY_ID_ASCENDING = {"ties": "document-ascending", "scores": "double"}
AS_GIVEN = {"ties": "input-order"}
DIVERSITY = {"diversity": MeasureRule()}


def _same(*names: str) -> dict[str, MeasureRule]:
    return dict.fromkeys(names, MeasureRule())


def _cut(measure: Measure) -> bool:
    return measure.values.get("k") is not None


IN_PYTHON = AS_GIVEN | {"scores": "double"}  # sorted by Python's stable sort
BY_GDEVAL = {"scores": "double"}
BY_CWL = MeasureRule(conventions=IN_PYTHON)
STOPS = Difference("stops at a topic that is not judged", STRANGE_TOPICS)
BY_BEIR = MeasureRule(conventions=IN_PYTHON | {"missing": "zero"}, differs=(STOPS,))
FAR = 0.97  # with a larger p, users of RBP read on past rank 1,000
NO_LEVELS = Difference("gives no number (NaN) to an empty answer at recall 0", EMPTY)
UNORDERED = Difference("leaves the order of ties open", TIES)
POSITIVE = Difference("takes a document of score 0 or less for one that was not returned")
BARREN_STOPS = Difference("stops at a topic without relevant documents (division by zero)", NO_RELEVANT)
KNOWS_LITTLE = Difference("knows no other documents than those passed to it")


TREC_EVAL = {
    "Rndcg": MeasureRule({"end": "trec_eval"}),
    **_same(
        "AP", "Bpref", "infAP", "IPrec", "nDCG", "P", "R", "RR", "Rprec", "SetAP", "SetF", "SetP", "SetR", "Success"
    ),
    **_same("NumQ", "NumRel", "NumRelRet", "NumRet"),
}

RATED = {  # programs that tune search engines by ratings
    "RR": MeasureRule(),
    "DCG": MeasureRule(SIGNED),
    "P": MeasureRule({"divide": "returned"}),
}

_PEERS = (
    Peer(
        "trec_eval-9",
        TREC_EVAL | dict.fromkeys(("IPrec", "11pt"), MeasureRule({"level": "trec_eval-9"}, differs=(NO_LEVELS,))),
        "trec_eval",
        lacks=("DCG", "IdealDCG", "RBP", "RBPresidual", "Unjudged"),
    ),
    Peer(
        "trec_eval-10",
        TREC_EVAL
        | dict.fromkeys(("IPrec", "11pt"), MeasureRule({"level": "trec_eval-10"}, differs=(NO_LEVELS,)))
        | {"RBP": MeasureRule({"gain": "topic"})},
        "trec_eval",
    ),
    Peer("trec_eval-ndcg", {"nDCG": MeasureRule({"ideal": "all", "k": None})}),
    Peer("gdeval", {"nDCG": MeasureRule({"gain": "exp2"}), "ERR": MeasureRule({"max": 4})}, note="prints 5 decimals"),
    Peer(
        "ir_measures",
        TREC_EVAL
        | {
            "IPrec": MeasureRule({"level": "trec_eval-9"}, differs=(NO_LEVELS,)),
            "SetF": MeasureRule({"beta": math.sqrt}, note="its beta is what others call beta²"),
            "NumQ": MeasureRule(conventions={"missing": "skip"}),
            "NumRel": MeasureRule(
                conventions={"missing": "skip"},
                differs=(Difference("gives no number for another rel than 1", where=lambda m: m.values["rel"] != 1),),
            ),
            "nDCG": MeasureRule(conventions=BY_GDEVAL, where=lambda measure: measure.values["gain"] == "exp2"),
            "ERR": MeasureRule({"max": 4}, BY_GDEVAL),
            "RBP": MeasureRule(
                {"gain": "binary"},
                IN_PYTHON,
                differs=(
                    Difference(
                        "reads no further than rank 1,000, which for so high a p gives a larger number than ours",
                        where=lambda measure: measure.values["p"] > FAR,
                    ),
                ),
            ),
            "RR": MeasureRule(
                conventions=BY_ID_ASCENDING,
                where=_cut,
                differs=(
                    Difference(
                        "gives no number for judged_only with a cut-off", where=lambda m: _cut(m) and m.judged_only
                    ),
                ),
            ),
            "Judged": MeasureRule(
                conventions=BY_ID_ASCENDING | {"negative": "irrelevant"},
                differs=(Difference("stops at an empty answer (division by zero)", EMPTY),),
            ),
            "Accuracy": MeasureRule(
                {"nothing_found": "skip"},
                IN_PYTHON | {"missing": "skip"},
                differs=(Difference("stops at a list of nothing but relevant documents (division by zero)"),),
            ),
            "Compat": MeasureRule(
                conventions=BY_ID_ASCENDING,
                differs=(
                    Difference("orders ties of one grade in the ideal list as the qrels do", TIES),
                    Difference("takes the score of what was not returned for 0, above scores that are negative"),
                ),
            ),
        }
        | dict.fromkeys(("BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "SDCG"), BY_CWL),
        "ir_measures",
        families={"diversity": MeasureRule(conventions=BY_ID_ASCENDING)},
    ),
    Peer(
        "ranx",
        {
            "RBP": MeasureRule({"gain": "grade", "max": 1}),
            "NumRelRet": MeasureRule(aggregate="mean", note="the mean over topics"),
            "Bpref": MeasureRule(
                differs=(
                    Difference("gives 0 to a topic without relevant documents and to all after it", NO_RELEVANT),
                    Difference("gives no number (NaN) if all judged documents of a topic are relevant"),
                )
            ),
        },
        "ranx",
        differs=(Difference("leaves the order of ties open in lists of 16 documents and more", TIES), STOPS),
    ),
    Peer(
        "scikit-learn",
        _same("nDCG", "DCG"),
        differs=(KNOWS_LITTLE, Difference("refuses negative grades", NEGATIVE)),
    ),
    Peer(
        "torchmetrics",
        dict.fromkeys(("P", "R", "RR"), MeasureRule(conventions=AS_GIVEN, differs=(UNORDERED, POSITIVE)))
        | dict.fromkeys(("Rprec", "Success"), MeasureRule(conventions=AS_GIVEN, differs=(UNORDERED,)))
        | {
            "nDCG": MeasureRule(differs=(Difference("takes a negative grade for a loss", NEGATIVE),)),
            "AP": MeasureRule({"divide": "found"}, AS_GIVEN, differs=(UNORDERED, POSITIVE)),
        },
        differs=(KNOWS_LITTLE,),
    ),
    Peer(
        "beir",
        _same("nDCG", "AP", "R", "P")
        | dict.fromkeys(("RR", "Success", "Hole"), BY_BEIR)
        | {"RelativeP": replace(BY_BEIR, differs=(STOPS, BARREN_STOPS))},
        note="prints 5 decimals",
    ),
    Peer(
        "elasticsearch",
        RATED
        | {
            "R": MeasureRule(),
            "nDCG": MeasureRule({**SIGNED, "ideal": "hits"}),
            "ERR": MeasureRule(note="the highest grade must be given"),
        },
    ),
    Peer(
        "opensearch",
        RATED
        | {
            "R": MeasureRule(),
            "nDCG": MeasureRule({**SIGNED, "ideal": "cut"}),
            "AP": MeasureRule({"divide": "relevant"}),
        },
        note="then rounds each topic to 2 decimals",
    ),
    Peer(
        "quepid",
        RATED
        | {
            "nDCG": MeasureRule({**SIGNED, "ideal": "all"}, note="the ideal holds every rated document"),
            "CG": MeasureRule({"gain": "signed"}),
            "AP": MeasureRule({"divide": "relevant"}),
            "ERR": MeasureRule({"max": 3}),
        },
    ),
    Peer("quepid-cut", {"nDCG": MeasureRule({**SIGNED, "ideal": "cut"}, note="its scorer NDCG_CUT")}),
    Peer(
        "ntcireval",
        _same("AP", "RR", "P", "Success")
        | {
            "nDCG": MeasureRule({"discount": "jk", "base": 2}),
            "RBP": MeasureRule({"gain": "grade", "max": HIGHEST}),
            "ERR": MeasureRule({"stop": "linear", "max": HIGHEST}),
        },
        "ntcireval",
        "reads lists without scores",
    ),
    Peer("ndeval", {}, families=DIVERSITY, note="stops where a rank occurs twice"),
    Peer("ndeval-traditional", {}, families=DIVERSITY),
    Peer("pyndeval", {}, families=DIVERSITY),
    Peer("insertion-order"),
)
PEERS = {peer.name: peer for peer in _PEERS}


def as_peer(preset: str, measures: dict[str, Measure], highest: float) -> dict[str, Measure]:
    """The measures with a preset's parameters, under their requested names; measures that it lacks do not change."""
    if preset not in PEERS:
        return measures
    return {name: PEERS[preset].measure(measure, highest) or measure for name, measure in measures.items()}


def differences(
    preset: str, measures: Mapping[str, Measure], facts: Container[str] | None = None
) -> dict[str, list[str]]:
    """The measures whose number may differ from that of the preset's program, with sentences that say why.

    `facts` are the facts of the runs and judgments at hand; None stands for all facts.
    """
    if preset not in PEERS:
        return {}
    words = {name: PEERS[preset].differences(measure, facts) for name, measure in measures.items()}
    return {name: [f"{preset} {text}" for text in texts] for name, texts in words.items() if texts}


def exceptions(
    preset: str, measures: Mapping[str, Measure], settled: Mapping[str, Any]
) -> dict[Measure, dict[str, Any]]:
    """Each measure's exceptions from the preset's conventions, without those that the user set explicitly."""
    if preset not in PEERS:
        return {}
    answer = {}
    for measure in measures.values():
        own = PEERS[preset].exceptions(measure)
        answer[measure] = {key: value for key, value in own.items() if key not in settled}
    return {measure: changes for measure, changes in answer.items() if changes}
