"""A pooling strategy, a design of samples of topics, a fusion method, a normalisation and a system under test."""

import numpy as np

from cranfield.base.parameters import Whole
from cranfield.pooling.strategies.fixed import ByPriority
from cranfield.pooling.topic_sampling import TopDesign
from cranfield.retrieval import System
from cranfield.retrieval.fusion.method import OfScores
from cranfield.retrieval.fusion.normalisations import Norm


class Alphabet(ByPriority):
    """Documents by the alphabet, whatever the runs say. A name for an example."""

    name = "alphabet"
    reference = "nobody (2026)"
    start_at = Whole(0, "how many letters are passed over", low=0)

    def priority(self, candidates, rng):
        return -np.argsort(np.argsort(candidates.documents)).astype(float)


class Rarest(TopDesign):
    """The rarest queries. A name for an example."""

    name = "rarest"
    reference = "nobody (2026)"

    def probabilities(self, frequency, n):
        return super().probabilities(-np.asarray(frequency), n)


class Loudest(OfScores):
    """The sum of all scores, squared. A name for an example."""

    name = "loudest"
    formula = "(Σ s)²"
    reference = "nobody (2026)"

    def combine(self, votes):
        return votes.total() ** 2


class Tripled(Norm):
    """Three times the score. A name for an example."""

    name = "tripled"
    formula = "3 s"

    def rows(self, lists):
        return 3 * lists.score


class Echo(System):
    """Answers with the first documents it was given. A name for an example."""

    name = "echo"
    times = Whole(1, "how often it says so", low=1)

    def index(self, documents, folder):
        self.ids = [document.id for document in documents]

    def search(self, query, k):
        return [(name, -float(i)) for i, name in enumerate(self.ids[:k])]
