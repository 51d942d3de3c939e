"""A member of a registry is one class in one place: whoever defines one finds it everywhere else by its own words.

Each test defines a throw-away member, looks for it in all places that show such members, and takes it back.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from cranfield import Scores, compare
from cranfield.stats.correction import CORRECTIONS, Correction
from cranfield.stats.many import Pairwise, TestOfMany
from cranfield.stats.method import SignificanceTest
from cranfield.stats.test import Figures
from cranfield.stats.testing import TESTS, TESTS_OF_MANY, Test
from shell import cranfield, generator

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = np.random.default_rng(3).normal([0.3, 0.5, 0.8], 0.2, (12, 3))


@contextmanager
def restored(*registries: dict) -> Iterator[None]:
    """Registries as they were, whatever happens inside."""
    before = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, members in zip(registries, before, strict=True):
            registry.clear()
            registry.update(members)


def scores() -> Scores:
    return Scores.from_table(VALUES, ["one", "other", "third"], measure="AP")


def test_a_test_of_two_samples_is_one_class():
    with restored(TESTS, SignificanceTest.everywhere):

        class Weather(Test):
            """Was it a sunny day for the second sample? A name for an example."""

            name = "weather"
            title = "test of the weather forecast"
            short = "weather forecast"
            reference = "nobody (2026)"
            aliases = ("sunshine",)
            p_from = "formula"
            interval = "sunny"

            def compute(self, a, b, question):
                mean = (b - a).mean(axis=1)
                return Figures(np.full(len(a), 0.03125), mean, mean - 1, mean + 1)

        found = compare(scores(), tests="sunshine weather t", correction="none", interval="sunny")
        assert list(TESTS).index("weather") < list(TESTS).index("mcnemar")  # among those of any pairs
        assert "weather forecast p = 0.031" in found.sentences()[0]
        assert "weather forecast  0.031  formula" in found.to_text()
        assert "test: weather forecast" in found.to_text()
        pair = found.to_dict()["pairs"][0]
        assert pair["test"] == "weather"
        assert pair["outcomes"]["weather"]["p"] == 0.03125
        assert (pair["low"], pair["high"]) == (pair["difference"] - 1, pair["difference"] + 1)
        for help_of in (["compare", "--help"], ["leaderboard", "--help"], ["stability", "--help"]):
            assert "weather" in cranfield(*help_of).out
        assert "sunny" in cranfield("compare", "--help").out
        assert "Was it a sunny day" in cranfield("tests").out
        assert "test of the weather forecast" in cranfield("tests", "sunshine").out
        assert "weather" in [page["name"] for page in json.loads(cranfield("tests", "--format", "json").out)]
        assert "\n### weather\n\ntest of the weather forecast. Was it" in generator("generate_tests").page()
    assert "weather" not in TESTS


def test_a_test_of_many_groups_is_one_class():
    with restored(TESTS_OF_MANY, SignificanceTest.everywhere):

        class Moon(TestOfMany):
            """Every pair, by the phase of the moon. A name for an example."""

            name = "moon"
            title = "test of the moon"
            reference = "nobody (2026)"
            p_from = "formula"

            def __call__(self, table, *, level=0.95, **options):
                means = table.mean(axis=0)
                square = np.full((len(means), len(means)), 0.03125)
                apart = means[None] - means[:, None]
                return Pairwise(self.name, means, apart, apart, square, apart - 1, apart + 1, 0.5, level)

        found = compare(scores(), tests="moon")
        assert "test of the moon p = 0.031" in found.sentences()[0]
        assert "test of the moon, AP: critical difference 0.5, smallest p of a pair = 0.031" in found.to_text()
        assert found.to_dict()["many"]["AP"]["moon"]["critical"] == 0.5
        for command in ("compare", "leaderboard", "stability"):
            assert "moon" in cranfield(command, "--help").out
        assert "by the phase of the moon" in cranfield("tests", "moon").out
        assert "\n### moon\n" in generator("generate_tests").page()


def test_a_correction_is_one_class():
    with restored(CORRECTIONS):

        class Doubled(Correction):
            """Twice every p-value, however many there are. A name for an example."""

            name = "doubled"
            title = "Doubling"
            short = "doubled"
            reference = "nobody (2026)"
            aliases = ("twice",)
            controls = "family-wise error"

            def corrected(self, p):
                return 2 * p

        found = compare(scores(), correction="twice", resamples=30)
        assert found.pairs[0].corrected == min(1.0, 2 * found.pairs[0].p)
        assert ", doubled " in found.sentences()[0]
        assert "correction: doubled over 3 p-values" in found.to_text()
        assert "doubled" in found.to_text().splitlines()[0].split()
        assert found.to_dict()["correction"] == "doubled"
        assert [caution.code for caution in found.cautions if caution.code == "coarse"]  # a bound of any false alarm
        for command in ("compare", "leaderboard"):
            assert "doubled (twice)" in " ".join(cranfield(command, "--help").out.split())
        assert "Twice every p-value" in cranfield("corrections").out
        assert "Doubling" in cranfield("corrections", "twice").out
        assert "\n### doubled\n\nDoubling. Twice" in generator("generate_tests").page()
