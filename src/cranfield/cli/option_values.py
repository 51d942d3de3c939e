"""The names that options take. They come from the registries when the help is shown, so that there is no second list."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MEMBERS = {  # the module that has the names, and what holds them: a registry, a tuple, or a function
    "agreement_views": "judging.agreement:VIEWS",
    "click_models": "experiments.clicks.model:CLICK_MODELS",
    "click_values": "experiments.clicks.values:CLICK_VALUES",
    "collections": "formats.collection_folder:bundled_names",
    "counterfactual_estimators": "experiments.counterfactual.estimator:ESTIMATORS",
    "event_formats": "formats.event_files.format:EVENT_FORMATS",
    "fusions": "retrieval.fusion:METHODS",
    "gate_questions": "comparison.gate.questions:QUESTIONS",
    "gate_tests": "comparison.gate.gate:gate_tests",
    "grade_ties": "stats.consensus.method:TIES",
    "import_layouts": "formats.importers.source:SOURCES",
    "intervals": "stats.tests_by_name:intervals",
    "label_formats": "judging.label_import:WRITERS",
    "label_sources": "judging.event:SOURCES",
    "norms": "retrieval.fusion:NORMS",
    "policies": "judging.policies:policies",
    "preference_rules": "experiments.clicks.preferences:PREFERENCE_RULES",
    "position_bias_methods": "experiments.clicks.position_bias_methods:POSITION_BIAS_METHODS",
    "prompts": "judging.llm.questions:bundled",
    "roles": "store.roles:ROLES",
    "round_orders": "judging.round_plan:ORDERS",
    "round_states": "judging.round_plan:STATES",
    "schedules": "stats.sequential:SCHEDULES",
    "systems": "retrieval:specs",
    "topic_designs": "pooling.topic_sampling:TOPIC_DESIGNS",
    "users": "experiments.simulated_world:USERS",
    "written_event_formats": "formats.event_files.format:writable",
}


def names(kind: str) -> list[str]:
    """The names of one kind in MEMBERS; its module is imported only now."""
    module, _, holder = MEMBERS[kind].partition(":")
    members = getattr(import_module(f"cranfield.{module}"), holder)
    return list(members() if callable(members) else members)


def all_tests() -> str:
    """All tests: paired ones, unpaired ones, and those of all runs."""
    from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY

    paired = [name for name, one in TESTS.items() if one.paired]
    unpaired = [name for name in TESTS if name not in paired]
    return f"{', '.join(paired)}; unpaired: {', '.join(unpaired)}; all runs at once: {', '.join(TESTS_OF_MANY)}"


def separating_tests() -> str:
    """The tests that can separate runs: paired tests, and tests of all runs."""
    from cranfield.comparison.leaderboard import tests_of_pairs
    from cranfield.stats.tests_by_name import Test

    paired, joint = ([one.name for one in tests_of_pairs() if isinstance(one, Test) == so] for so in (True, False))
    return f"a paired test ({', '.join(paired)}), or {', '.join(joint)}"


def power_tests() -> str:
    """The tests whose power is computed by formula, then those whose power is simulated."""
    from cranfield.stats.power import power_tests as names_of_power_tests

    by_formula, simulated = (", ".join(names) for names in names_of_power_tests())
    return f"{by_formula}; by simulation also {simulated}"


def corrections() -> str:
    """Every correction, its short name in brackets."""
    from cranfield.stats.correction import CORRECTIONS

    return ", ".join(f"{one.name} ({one.aliases[0]})" if one.aliases else one.name for one in CORRECTIONS.values())


def rank_intervals() -> str:
    """The kinds of rank intervals, each with its coverage."""
    from cranfield.stats.rank_intervals import RANK_INTERVALS

    return "; ".join(f"{one.name} ({one.promise})" for one in RANK_INTERVALS.values())


def noisy_policies() -> str:
    """The policies that `compare --label-noise` can use."""
    from cranfield.judging.policies import LOG_POLICIES
    from cranfield.stats.consensus.method import METHODS

    return ", ".join([*LOG_POLICIES, *METHODS])


def fusions_that(*claims: str) -> str:
    """The fusion methods with one of these properties, such as takes_weights."""
    from cranfield.retrieval.fusion import methods_that

    return methods_that(*claims)


def interleavings() -> str:
    """All methods of interleaving; those for exactly two rankings come last."""
    from cranfield.experiments.interleaving import METHODS

    many, two = ([name for name, one in METHODS.items() if one.many == so] for so in (True, False))
    return f"{', '.join(many)}; for two runs also {', '.join(two)}"


DESCRIPTIONS: dict[str, Callable[[], str]] = {  # names with something about them
    "all_tests": all_tests,
    "corrections": corrections,
    "interleavings": interleavings,
    "noisy_policies": noisy_policies,
    "power_tests": power_tests,
    "rank_intervals": rank_intervals,
    "separating_tests": separating_tests,
    "trained_fusions": partial(fusions_that, "trained", "needs_weights"),
    "tuned_fusions": partial(fusions_that, "needs_weights"),
    "weighted_fusions": partial(fusions_that, "takes_weights"),
}


class _Names(dict[str, str]):
    """The names of every kind, each looked up when a text needs it."""

    def __init__(self, separator: str) -> None:
        self.separator = separator

    def __missing__(self, kind: str) -> str:
        return self.separator.join(names(kind)) if kind in MEMBERS else DESCRIPTIONS[kind]()


def filled(text: str, separator: str = ", ") -> str:
    """A text of the help in which {kind} is replaced by the names of that kind.

    >>> filled("Rule for ties: {grade_ties}.")
    'Rule for ties: lower, higher, open.'
    """
    return text.format_map(_Names(separator))
