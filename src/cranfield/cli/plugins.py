"""List the plugins: members that other packages add.

Each kind of member (measures, tests, formats, commands …) is listed with its group of entry points, its members, and the
package of each member. A plugin that cannot be used is named with its error.

\b
$ cranfield plugins --format json
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any

from cranfield import __version__
from cranfield.base.registry import OURS, Origin, Problem, Registry, problems
from cranfield.base.results import Part, Table
from cranfield.base.text_layout import counted
from cranfield.cli import options
from cranfield.cli.output import show
from cranfield.commands.listings import MemberListing

PLACE = 225
REGISTRIES = (
    "cli:COMMANDS",
    "comparison.gate.questions:QUESTIONS",
    "evaluation.measures:REGISTRY",
    "experiments.clicks.model:CLICK_MODELS",
    "experiments.clicks.preferences:PREFERENCE_RULES",
    "experiments.clicks.values:CLICK_VALUES",
    "experiments.clicks.position_bias_methods:POSITION_BIAS_METHODS",
    "experiments.counterfactual.estimator:ESTIMATORS",
    "experiments.interleaving.method:METHODS",
    "experiments.metrics.metric:METRICS",
    "experiments.simulated_world:USERS",
    "formats.event_files.format:EVENT_FORMATS",
    "formats.format:FORMATS",
    "formats.importers.source:SOURCES",
    "judging.llm.probes:PROBES",
    "judging.policies:LOG_POLICIES",
    "pooling.strategy:STRATEGIES",
    "pooling.topic_sampling:TOPIC_DESIGNS",
    "retrieval.fusion.method:METHODS",
    "retrieval.fusion.normalisations:NORMS",
    "retrieval.systems_under_test:SYSTEMS",
    "stats.agreement:COEFFICIENTS",
    "stats.consensus.method:METHODS",
    "stats.consensus.preference:METHODS_OF_PREFERENCES",
    "stats.correction:CORRECTIONS",
    "stats.rank_intervals:RANK_INTERVALS",
    "stats.sequential:SCHEDULES",
    "stats.sequential:SPENDINGS",
    "stats.tests_by_name:TESTS",
    "stats.tests_by_name:TESTS_OF_MANY",
    "comparison.score_tables:OverSeeds.registry",  # listed after the other kinds of its group
    "workbench.question:QUESTIONS",
    "workbench.routes:PAGES",
)


@options.command(__doc__)
@options.output("table", "json")
def command(**display: Any) -> None:
    show(plugins(), **display)


def registries() -> list[Registry[Any]]:
    """The registry of each kind; kinds whose optional packages are missing are reported and left out."""
    kinds: list[Registry[Any]] = []
    for place in REGISTRIES:
        module, _, name = place.partition(":")
        try:
            kinds.append(attrgetter(name)(import_module(f"cranfield.{module}")))
        except ImportError as error:
            if (error.name or "").startswith(OURS):
                raise  # a mistake of our own
            problems[Problem("", Origin(OURS), module.partition(".")[0], str(error))] = None
    return sorted(kinds, key=lambda each: each.group)


def plugins() -> MemberListing:
    """All kinds with their members and packages, and the plugins that cannot be used."""
    kinds: list[dict[str, Any]] = []
    rows: list[list[str]] = []
    packages: dict[str, int] = {}
    for registry in registries():
        members = []
        by_package: dict[str, list[str]] = {}
        for name in registry:
            origin = registry.origin(name)
            version = __version__ if origin.built_in else origin.version
            members.append({"name": name, "package": origin.package, "version": version})
            by_package.setdefault("built in" if origin.built_in else str(origin), []).append(name)
        kinds.append({"kind": registry.kind, "group": registry.group, "members": members})
        rows += [[registry.kind, registry.group, package, ", ".join(names)] for package, names in by_package.items()]
        for package, names in by_package.items():
            packages[package] = packages.get(package, 0) + len(names)
    del packages["built in"]
    added = [f"{package} adds {counted(count, 'member')}." for package, count in sorted(packages.items())]
    parts: list[Part] = [
        " ".join(added) or "No other package adds a member.",
        Table(["kind", "entry points", "from", "members"], rows, left=4, tail=True),
        *(f"left out: {problem}" for problem in problems),
    ]
    unusable = [
        {"group": each.group, "package": each.origin.package, "version": each.origin.version, "plugin": each.entry}
        | {"error": each.error}
        for each in problems
    ]
    return MemberListing({"kinds": kinds, "problems": unusable}, parts)
