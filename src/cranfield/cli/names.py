"""The names that options take: looked up where they are defined when the help is shown, so that there is no second list."""

from __future__ import annotations


def all_tests() -> str:
    """Every test, by what it tests."""
    from cranfield.stats.testing import TESTS, TESTS_OF_MANY

    paired = [name for name, one in TESTS.items() if one.paired]
    unpaired = [name for name in TESTS if name not in paired]
    return f"{', '.join(paired)}; unpaired: {', '.join(unpaired)}; all runs at once: {', '.join(TESTS_OF_MANY)}"


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


def gate_questions() -> str:
    """The questions that a gate may ask."""
    from cranfield.gate.question import QUESTIONS

    return "|".join(QUESTIONS)


def power_tests() -> str:
    """The tests whose power is known, those that are simulated apart."""
    from cranfield.stats.power import power_tests as known

    by_formula, simulated = (", ".join(names) for names in known())
    return f"{by_formula}; simulated: {simulated}"


def schedules() -> str:
    """The methods of looking at an experiment."""
    from cranfield.stats.sequential import SCHEDULES

    return ", ".join(SCHEDULES)


def corrections() -> str:
    """Every correction, its short name in brackets."""
    from cranfield.stats.correction import CORRECTIONS

    return ", ".join(f"{one.name} ({one.aliases[0]})" if one.aliases else one.name for one in CORRECTIONS.values())


def intervals() -> str:
    """The intervals of a mean difference."""
    from cranfield.stats.testing import intervals as of_tests

    return "|".join(of_tests())


def rank_intervals() -> str:
    """The intervals of ranks, each with what it promises."""
    from cranfield.stats.ranking import RANK_INTERVALS

    return "; ".join(f"{one.name} ({one.promise})" for one in RANK_INTERVALS.values())


def fusions(*claims: str) -> str:
    """Every fusion method; or those for which one of these claims holds, as in a sentence."""
    from cranfield.fuse import METHODS, methods_that

    return methods_that(*claims) if claims else ", ".join(METHODS)


def interleavings() -> str:
    """Every method of interleaving, those for two rankings only last."""
    from cranfield.online.interleave import METHODS

    many, two = ([name for name, one in METHODS.items() if one.many == so] for so in (True, False))
    return f"{', '.join(many)}; of two runs: {', '.join(two)}"


def users() -> str:
    """Every model of simulated users."""
    from cranfield.online.users import USERS

    return ", ".join(USERS)


def norms() -> str:
    """What can be done to scores before they are fused."""
    from cranfield.fuse import NORMS

    return "|".join(NORMS)


def layouts() -> str:
    """The layouts that a collection can be imported from."""
    from cranfield.importers.registry import SOURCES

    return "|".join(SOURCES)


def systems() -> str:
    """What stands for a system under test."""
    from cranfield.systems import specs

    return ", ".join(specs())


def sources() -> list[str]:
    """Whom labels may come from."""
    from cranfield.judge.event import SOURCES

    return list(SOURCES)


def prompts() -> list[str]:
    """The prompts for models that come along."""
    from cranfield.judge.models.prompt import bundled

    return bundled()


def exports() -> list[str]:
    """What a log is written as."""
    from cranfield.judge.giving import WRITERS

    return [*WRITERS, "qrels"]


def event_formats() -> list[str]:
    """What a file of events may be in."""
    from cranfield.formats.events.format import EVENT_FORMATS

    return list(EVENT_FORMATS)


def written_event_formats() -> list[str]:
    """What a log of events is written as."""
    from cranfield.formats.events.format import writable

    return writable()


def round_states() -> list[str]:
    """What a round may be."""
    from cranfield.judge.plan import STATES

    return list(STATES)


def tie_rules() -> list[str]:
    """Which of grades that tie."""
    from cranfield.stats.consensus.method import TIES

    return list(TIES)


def agreement_views() -> list[str]:
    """How agreement can be looked at closer."""
    from cranfield.judge.agreeing import VIEWS

    return list(VIEWS)
