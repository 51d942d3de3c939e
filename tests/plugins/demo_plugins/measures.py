"""A measure."""

from cranfield.evaluation.measures import Measure, Real


class Firstness(Measure):
    """Whether the first document is relevant, in percent. A name for an example."""

    family = "precision and recall"
    formula = "100 if the document at rank 1 is relevant, else 0"
    reference = "nobody (2026)"
    peers = {"sometool": ("first_one",)}
    at = None
    high = 100
    rel = Real(1, "the lowest relevant grade")

    def score(self, hits):
        return 100.0 * hits.top(1).relevant(self.rel).count()
