"""The names that options take. They come from the registries when the help is shown, so that there is no second list."""

from __future__ import annotations


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


def gate_tests() -> str:
    """The tests that a gate can use."""
    from cranfield.comparison.gate.gate import gate_tests as fit

    return "|".join(fit())


def gate_questions() -> str:
    """The values that `gate --question` accepts, from the registry."""
    from cranfield.comparison.gate.questions import QUESTIONS

    return "|".join(QUESTIONS)


def power_tests() -> str:
    """The tests whose power is computed by formula, then those whose power is simulated."""
    from cranfield.stats.power import power_tests as names_of_power_tests

    by_formula, simulated = (", ".join(names) for names in names_of_power_tests())
    return f"{by_formula}; by simulation also {simulated}"


def schedules() -> str:
    """The schedules of interim looks at an experiment."""
    from cranfield.stats.sequential import SCHEDULES

    return ", ".join(SCHEDULES)


def corrections() -> str:
    """Every correction, its short name in brackets."""
    from cranfield.stats.correction import CORRECTIONS

    return ", ".join(f"{one.name} ({one.aliases[0]})" if one.aliases else one.name for one in CORRECTIONS.values())


def intervals() -> str:
    """The intervals of a mean difference."""
    from cranfield.stats.tests_by_name import intervals as of_tests

    return "|".join(of_tests())


def rank_intervals() -> str:
    """The kinds of rank intervals, each with its coverage."""
    from cranfield.stats.rank_intervals import RANK_INTERVALS

    return "; ".join(f"{one.name} ({one.promise})" for one in RANK_INTERVALS.values())


def fusions(*claims: str) -> str:
    """All fusion methods, or a sentence with those that make one of these claims."""
    from cranfield.retrieval.fusion import METHODS, methods_that

    return methods_that(*claims) if claims else ", ".join(METHODS)


def interleavings() -> str:
    """All methods of interleaving; those for exactly two rankings come last."""
    from cranfield.experiments.interleaving import METHODS

    many, two = ([name for name, one in METHODS.items() if one.many == so] for so in (True, False))
    return f"{', '.join(many)}; for two runs also {', '.join(two)}"


def users() -> str:
    """All models of simulated users."""
    from cranfield.experiments.user_models import USERS

    return ", ".join(USERS)


def norms() -> str:
    """The normalisations of scores before fusion."""
    from cranfield.retrieval.fusion import NORMS

    return "|".join(NORMS)


def layouts() -> str:
    """The layouts that a collection can be imported from."""
    from cranfield.formats.importers.source import SOURCES

    return "|".join(SOURCES)


def systems() -> str:
    """The specifications of systems under test."""
    from cranfield.retrieval import specs

    return ", ".join(specs())


def sources() -> list[str]:
    """The sources of labels."""
    from cranfield.judging.event import SOURCES

    return list(SOURCES)


def prompts() -> list[str]:
    """The bundled prompts for LLM judges."""
    from cranfield.judging.llm.questions import bundled

    return bundled()


def exports() -> list[str]:
    """The formats that a log of judgments can be written in."""
    from cranfield.judging.label_import import WRITERS

    return [*WRITERS, "qrels"]


def event_formats() -> list[str]:
    """The formats of event files."""
    from cranfield.formats.event_files.format import EVENT_FORMATS

    return list(EVENT_FORMATS)


def written_event_formats() -> list[str]:
    """The formats that a log of events can be written in."""
    from cranfield.formats.event_files.format import writable

    return writable()


def round_states() -> list[str]:
    """The values that `judge set` accepts: open, paused, closed."""
    from cranfield.judging.round_plan import STATES

    return list(STATES)


def tie_rules() -> list[str]:
    """The rules for grades that tie."""
    from cranfield.stats.consensus.method import TIES

    return list(TIES)


def agreement_views() -> list[str]:
    """The detailed views of agreement."""
    from cranfield.judging.agreement import VIEWS

    return list(VIEWS)
