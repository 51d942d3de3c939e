"""A question of the gate."""

from cranfield.comparison.gate.questions import MaxDrop


class Halved(MaxDrop):
    """Is it worse by more than half of what is allowed?"""

    name = "half-drop"
    title = "worse by half?"
    shows = "the mean fell by more than half of what is allowed"

    def allowed(self, max_drop):
        return max_drop / 2
