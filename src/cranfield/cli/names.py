"""Options that take the name of a test or a correction: which names there are is looked up when the help is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Named(click.Option):
    """An option in whose help, or in whose value's name, `{names}` stands for what `names` says."""

    def __init__(
        self, declarations: Sequence[str] | None = None, *, names: Callable[[], str], **attributes: Any
    ) -> None:
        self._names = names
        super().__init__(declarations, **attributes)

    @property
    def help(self) -> str | None:
        """What it means, with the names there are."""
        return self._filled(self._help)

    @help.setter
    def help(self, value: str | None) -> None:
        self._help = value

    @property
    def metavar(self) -> str | None:
        """What stands for its value, with the names there are."""
        return self._filled(self._metavar)

    @metavar.setter
    def metavar(self, value: str | None) -> None:
        self._metavar = value

    def _filled(self, text: str | None) -> str | None:
        return text.replace("{names}", self._names()) if text and "{names}" in text else text


def all_tests() -> str:
    """Every test, by what it tests."""
    from cranfield.stats.testing import TESTS, TESTS_OF_MANY

    paired = [name for name, one in TESTS.items() if one.paired]
    unpaired = [name for name in TESTS if name not in paired]
    return f"{', '.join(paired)}; unpaired: {', '.join(unpaired)}; all runs at once: {', '.join(TESTS_OF_MANY)}"


def corrections() -> str:
    """Every correction, its short name in brackets."""
    from cranfield.stats.correction import CORRECTIONS

    return ", ".join(f"{one.name} ({one.aliases[0]})" if one.aliases else one.name for one in CORRECTIONS.values())


def intervals() -> str:
    """The intervals of a mean difference."""
    from cranfield.stats.testing import intervals as of_tests

    return "|".join(of_tests())


def tests_that_tell() -> str:
    """The tests that tell runs apart: of all runs at once, or paired."""
    from cranfield.compare.leaderboard import telling_tests
    from cranfield.stats.testing import Test

    paired, joint = ([one.name for one in telling_tests() if isinstance(one, Test) == so] for so in (True, False))
    return f"a paired test ({', '.join(paired)}), or {', '.join(joint)}"


def gate_tests() -> str:
    """The tests that a gate may rest on."""
    from cranfield.gate.gating import gate_tests as fit

    return "|".join(fit())


def power_tests() -> str:
    """The tests whose power is known, those that are simulated apart."""
    from cranfield.stats.power import power_tests as known

    by_formula, simulated = (", ".join(names) for names in known())
    return f"{by_formula}; simulated: {simulated}"
