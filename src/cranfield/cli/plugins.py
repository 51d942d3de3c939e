"""List the plugins: members that other packages add.

Each kind of member (measures, tests, formats, commands …) is listed with its group of entry points, its members, and the
package of each member. A plugin that cannot be used is named with its error.

\b
$ cranfield plugins --format json
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.cli import options
from cranfield.cli.output import show

if TYPE_CHECKING:
    from cranfield.base.registry import Registry
    from cranfield.commands.listings import MemberListing

PLACE = 225


@options.command(__doc__)
@options.output("table", "json")
def command(**display: Any) -> None:
    show(plugins(), **display)


def registries() -> list[Registry[Any]]:
    """The registry of each kind; kinds whose optional packages are missing are reported and left out."""
    from cranfield.base.registry import OURS, Origin, Problem, problems
    from cranfield.cli import COMMANDS
    from cranfield.comparison.gate.questions import QUESTIONS
    from cranfield.comparison.score_tables import OverSeeds
    from cranfield.evaluation.measures import REGISTRY as MEASURES
    from cranfield.experiments.interleaving.method import METHODS as INTERLEAVINGS
    from cranfield.experiments.metrics.metric import METRICS
    from cranfield.experiments.user_models import USERS
    from cranfield.formats.event_files.format import EVENT_FORMATS
    from cranfield.formats.format import FORMATS
    from cranfield.formats.importers.source import SOURCES
    from cranfield.pooling.strategy import STRATEGIES
    from cranfield.retrieval.fusion.method import METHODS as FUSIONS
    from cranfield.retrieval.fusion.normalisations import NORMS
    from cranfield.retrieval.systems_under_test import SYSTEMS
    from cranfield.stats.agreement import COEFFICIENTS
    from cranfield.stats.consensus.method import METHODS as CONSENSUSES
    from cranfield.stats.consensus.preference import METHODS_OF_PREFERENCES
    from cranfield.stats.correction import CORRECTIONS
    from cranfield.stats.rank_intervals import RANK_INTERVALS
    from cranfield.stats.sequential import SCHEDULES, SPENDINGS
    from cranfield.stats.tests_by_name import TESTS, TESTS_OF_MANY

    kinds: list[Registry[Any]] = [MEASURES, TESTS, TESTS_OF_MANY, OverSeeds.registry, CORRECTIONS, RANK_INTERVALS]
    kinds += [SPENDINGS, SCHEDULES, COEFFICIENTS, CONSENSUSES, METHODS_OF_PREFERENCES, QUESTIONS, STRATEGIES]
    kinds += [FUSIONS, NORMS, SYSTEMS, INTERLEAVINGS, METRICS, USERS, FORMATS, EVENT_FORMATS, SOURCES, COMMANDS]
    for optional in (_judging, _workbench):
        try:
            kinds += optional()
        except ImportError as error:
            if (error.name or "").startswith(OURS):
                raise  # a mistake of our own
            problems[Problem("", Origin(OURS), optional.__name__.strip("_"), str(error))] = None
    return sorted(kinds, key=lambda each: each.group)


def _judging() -> list[Registry[Any]]:
    from cranfield.judging.llm.probes import PROBES
    from cranfield.judging.policies import LOG_POLICIES

    return [PROBES, LOG_POLICIES]


def _workbench() -> list[Registry[Any]]:
    from cranfield.workbench.question import QUESTIONS
    from cranfield.workbench.routes import PAGES

    return [QUESTIONS, PAGES]


def plugins() -> MemberListing:
    """All kinds with their members and packages, and the plugins that cannot be used."""
    from cranfield import __version__
    from cranfield.base.registry import problems
    from cranfield.base.results import Part, Table
    from cranfield.base.text_layout import counted
    from cranfield.commands.listings import MemberListing

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
