"""What a simulated user is: a class that reads lists and clicks.

A user sees how good each document is, from 0 (irrelevant) to 1 (the highest grade there is), and nothing else; grades in
between lie in between. Lists are rows, all of one length; NaN stands behind the end of a shorter one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from cranfield.registry import Registered, Registry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cranfield.kernels.table import Floats

USERS: Registry[User] = Registry("model of users", "cranfield.online.users")


class User(Registered, ABC):
    """A way to read a list and to click.

    >>> str(USERS.named("Navigational(stop_relevant=1)"))
    'navigational(stop_relevant=1)'
    """

    registry = USERS
    formula: ClassVar[str]
    reference: ClassVar[str]

    @abstractmethod
    def clicks(self, gains: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        """Which documents are clicked: searches × ranks, as the gains are."""
