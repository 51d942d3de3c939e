"""A policy of a log, a method of preferences and a probe of LLM judges."""

from cranfield.judging.llm.probes import GRADED, Probe
from cranfield.judging.policies import LogPolicy
from cranfield.stats.consensus.preference import WinRate


class Earliest(LogPolicy):
    """The first label counts. A name for an example."""

    name = "earliest"

    @staticmethod
    def grades(labels):
        return {(each.topic, each.document): each.grade for each in reversed(labels)}


class Elo(WinRate):
    """The share of wins under another name. A name for an example."""

    name = "elo"
    title = "Elo"


class Whispered(Probe):
    """Does the judge hear small letters? A name for an example."""

    name = "whispered"
    title = "the same text in small letters"
    miss = "changed"
    kinds = GRADED

    def change_text(self, values, prompt):
        return {name: text.lower() for name, text in values.items()}

    def finding(self, tried, again):
        return "does not hear small letters"
