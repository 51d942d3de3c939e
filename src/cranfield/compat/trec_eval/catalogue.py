"""The 57 measures in the order in which they are printed, their nicknames, and how their parameters are read.

A measure is asked for as `-m name` or `-m name.parameters`. The first parameters given win, also over
the defaults of a nickname that names the same measure.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Literal

from cranfield.base.parameters import real, shortened, whole
from cranfield.compat.trec_eval.inputs import StopError

Takes = Literal["nothing", "ranks", "shares", "numbers", "pairs"]
Needs = Literal["nothing", "qrels", "qrels_jg", "prefs"]
Total = Literal["mean", "sum", "geometric", "none"]

WHOLE = re.compile(r"\s*[+-]?[0-9]+")
LARGEST = 1e300  # gains are added up and taken from one another
GRADE_DIGITS = 15  # of a grade that has a gain; a double holds no more
CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
RECALLS = tuple(tenth / 10 for tenth in range(11))
MULTIPLES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


@dataclass(frozen=True)
class Kind:
    """A measure of trec_eval: what it takes, what it needs, and how its values are added up and printed."""

    name: str
    ours: str = ""  # our name for it, where it is one of our measures
    takes: Takes = "nothing"
    defaults: tuple[float, ...] = ()
    needs: Needs = "qrels"
    total: Total = "mean"  # "sum" is for counts, which are printed without decimals
    since: int = 9


@dataclass(frozen=True)
class Request:
    """A measure that was asked for, with its parameters and the names under which its values are printed."""

    kind: Kind
    numbers: tuple[float, ...]  # cut-offs, shares or plain numbers
    pairs: tuple[tuple[str, float], ...]
    names: tuple[str, ...]


def _preferences(total: Total, *names: str) -> list[Kind]:
    return [Kind(f"prefs_{name}", needs="prefs", total=total) for name in names]


MEASURES = (
    Kind("runid", needs="nothing", total="none"),
    Kind("num_q", "NumQ", needs="nothing", total="none"),
    Kind("num_ret", "NumRet", total="sum"),
    Kind("num_rel", "NumRel", total="sum"),
    Kind("num_rel_ret", "NumRelRet", total="sum"),
    Kind("map", "AP"),
    Kind("gm_map", "AP", total="geometric"),
    Kind("Rprec", "Rprec"),
    Kind("bpref", "Bpref"),
    Kind("recip_rank", "RR"),
    Kind("iprec_at_recall", "IPrec", takes="shares", defaults=RECALLS),
    Kind("P", "P", takes="ranks", defaults=CUTS),
    Kind("relstring", takes="numbers", defaults=(10,), total="none"),
    Kind("recall", "R", takes="ranks", defaults=CUTS),
    Kind("infAP", "infAP"),
    Kind("gm_bpref", "Bpref", total="geometric"),
    Kind("Rprec_mult", "RprecMult", takes="shares", defaults=MULTIPLES),
    Kind("utility", "Utility", takes="numbers", defaults=(1, -1, 0, 0)),
    Kind("11pt_avg", "11pt", takes="numbers", defaults=RECALLS),
    Kind("binG", "binG"),
    Kind("G", "G", takes="pairs"),
    Kind("dcg", "DCG", takes="pairs", since=10),
    Kind("ideal_dcg", "IdealDCG", takes="pairs", since=10),
    Kind("ndcg", "nDCG", takes="pairs"),
    Kind("ndcg_rel", "nDCGrel", takes="pairs"),
    Kind("Rndcg", "Rndcg", takes="pairs"),
    Kind("ndcg_cut", "nDCG", takes="ranks", defaults=CUTS),
    Kind("map_cut", "AP", takes="ranks", defaults=CUTS),
    Kind("relative_P", "RelativeP", takes="ranks", defaults=CUTS),
    Kind("success", "Success", takes="ranks", defaults=(1, 5, 10)),
    Kind("set_P", "SetP"),
    Kind("set_relative_P", "SetP"),
    Kind("set_recall", "SetR"),
    Kind("set_map", "SetAP"),
    Kind("set_F", "SetF", takes="numbers", defaults=(1,)),
    Kind("num_nonrel_judged_ret", "NumNonrelRet", total="sum"),
    *_preferences("sum", "num_prefs_poss", "num_prefs_ful", "num_prefs_ful_ret"),
    *_preferences("mean", "simp", "pair", "avgjg", "avgjg_Rnonrel"),
    *_preferences("mean", "simp_ret", "pair_ret", "avgjg_ret", "avgjg_Rnonrel_ret"),
    *_preferences("mean", "simp_imp", "pair_imp", "avgjg_imp"),
    Kind("map_avgjg", "AP", needs="qrels_jg"),
    Kind("P_avgjg", "P", takes="ranks", defaults=CUTS, needs="qrels_jg"),
    Kind("Rprec_mult_avgjg", "RprecMult", takes="shares", defaults=MULTIPLES, needs="qrels_jg"),
    Kind("yaap", "YAAP"),
    Kind("rbp", "RBP", takes="pairs", since=10),
    Kind("rbp_resid", "RBPresidual", takes="pairs", since=10),
    Kind("unj", "Unjudged", takes="ranks", defaults=(5, 10, 20), since=10),
)

ORDER = [kind.name for kind in MEASURES]
HEAD = ("runid", "num_q")
COUNTS = ("num_ret", "num_rel", "num_rel_ret")
SETS = ("set_P", "set_relative_P", "set_recall", "set_map", "set_F")
PREFERENCES = tuple(name for name in ORDER if name.startswith("prefs_"))
NICKNAMES = {
    "official": tuple(ORDER[: ORDER.index("P") + 1]),
    "set": (*HEAD, *COUNTS, "utility", *SETS),
    "all_trec": (
        *(name for name in ORDER[: ORDER.index("num_nonrel_judged_ret") + 1] if name not in ("dcg", "ideal_dcg")),
        *("rbp", "rbp_resid", "unj"),
    ),
    "all_prefs": (*HEAD, *PREFERENCES),
    "prefs": (*HEAD, *PREFERENCES[:6]),
    "qrels_jg": (*HEAD, "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
}


def requested_measures(texts: list[str], version: int) -> list[tuple[Kind, str | None]]:
    """The measures that `-m` options name, in the order of printing, with their parameters as typed.

    >>> [(kind.name, parameters) for kind, parameters in requested_measures(["P.5,10", "map", "P.20"], 10)]
    [('map', None), ('P', '5,10')]
    """
    kinds = {kind.name: kind for kind in MEASURES if kind.since <= version}
    names: set[str] = set()
    typed: dict[str, str] = {}
    for text in texts or ["official"]:
        name, dot, parameters = text.partition(".")
        if name not in kinds and name not in NICKNAMES:
            raise StopError(1, f"no measure {name!r}{_hint(name, kinds)}")
        if dot and not parameters:
            raise StopError(1, f"-m {text}: expected parameters after the dot")
        if dot:
            typed.setdefault(name, parameters)
        names.update(NICKNAMES.get(name, (name,)))
    return [(kind, typed.get(kind.name)) for kind in kinds.values() if kind.name in names]


def _hint(name: str, kinds: dict[str, Kind]) -> str:
    import difflib

    if name in ORDER:
        return "; it came with version 10 (leave out --as 9)"
    near = difflib.get_close_matches(name, [*kinds, *NICKNAMES], n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def request(kind: Kind, text: str | None) -> Request:
    """A measure with its parameters read, or with its defaults; StopError with exit code 2 if they make no sense.

    >>> request(MEASURES[11], "23.4,7").names
    ('P_7', 'P_23')
    """
    if kind.takes == "nothing":
        return Request(kind, (), (), (kind.name,))
    parts, name = text.split(",") if text else [], f"{kind.name}_{text}" if text else kind.name
    if kind.takes == "pairs":
        return Request(kind, (), _pairs(kind.name, parts), (name,))
    if kind.takes == "numbers":
        return Request(kind, tuple(_number(kind.name, part) for part in parts) or kind.defaults, (), (name,))
    read, shape = (_rank, "%d") if kind.takes == "ranks" else (_number, "%.2f")
    cuts = _sorted(kind.name, [read(kind.name, part) for part in parts]) or kind.defaults
    return Request(kind, cuts, (), tuple(f"{kind.name}_{shape % cut}" for cut in cuts))


def _sorted(name: str, cuts: list[float]) -> tuple[float, ...]:
    for cut in cuts:
        if cuts.count(cut) > 1:
            raise StopError(2, f"-m {name}: the cut-off {cut:g} is given twice")
    return tuple(sorted(cuts))


def _rank(name: str, text: str) -> int:
    match = WHOLE.match(text)
    try:
        cut = whole(match[0]) if match else 0
    except ValueError:
        cut = 0
    if cut <= 0:
        raise StopError(2, f"-m {name}: expected a cut-off of 1 or more, found {shortened(text)!r}")
    return cut


def _number(name: str, text: str) -> float:
    try:
        number = real(text)
        if abs(number) > LARGEST:
            raise ValueError(text)
    except ValueError:
        expected = f"a number of {LARGEST:g} at the most"
        raise StopError(2, f"-m {name}: expected {expected}, found {shortened(text)!r}") from None
    return number


def _pairs(name: str, parts: list[str]) -> tuple[tuple[str, float], ...]:
    pairs = []
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise StopError(2, f"-m {name}: expected name=number, found {part!r}")
        grade = key.isascii() and key.isdecimal() and len(key) <= GRADE_DIGITS
        persistence = name.startswith("rbp")
        if not (grade or (persistence and key == "p")):
            expected = "a grade of 0 or more" + (", or p," if persistence else "")
            raise StopError(2, f"-m {name}: expected {expected} before the =, found {shortened(key)!r}")
        pairs.append((key, _number(name, value)))
    return tuple(pairs)


OPTIONS = """\
cranfield trec_eval [OPTIONS] QRELS RUN

Prints what trec_eval prints, byte for byte: lines of a measure's name, a topic or "all", and a value.
RUN may be - for standard input (version 10).

  --as 9|10     behave like this version of trec_eval (10)
  -q            print every topic before the summary
  -n            print no summary
  -m NAME[.P]   print this measure or group of measures, with parameters P; may be repeated (official)
  -c            average over all judged topics; one that the run lacks counts as 0
  -l N          the lowest relevant grade (1)
  -M N          evaluate at most N documents per topic
  -J            remove unjudged documents from the run first
  -N N          the number of documents in the collection, for utility's fourth weight
  -Z FILE       print deviations from the mean in standard deviations; FILE holds lines of: topic measure mean sd
  -R FORMAT     what QRELS is: qrels, qrels_jg, prefs or qrels_prefs (qrels)
  -T FORMAT     what RUN is: trec_results
  -D N[.TOPIC]  evaluate only this topic; the level N changes nothing
  -o            nothing; kept for old scripts
  -v            print the version
  -h            print this, and the measures chosen with -m

Exit codes: 0 fine; 1 an option or a measure that does not exist; 2 a file or a cut-off that cannot be read;
4 a topic that cannot be evaluated; 7 no topic in both files (version 9); 134 preferences that contradict each other;
255 a -Z file that cannot be read.

Files
  RUN          topic Q0 document rank score tag, and whatever follows; ordered by score, then by document id, descending
  qrels        topic iteration document grade
  qrels_jg     topic group document grade: several judges, each with qrels of their own
  prefs        topic group subgroup document level: within a subgroup the higher level is preferred
  qrels_prefs  qrels read as preferences: the second column is the group
"""
ABOUT_PREFERENCES = """\
Preferences fulfilled: the preferred of two documents ranks higher, or alone was returned. simp pools the judgment
groups, pair averages over pairs of documents, avgjg over groups; num counts. With _ret both documents must have been
returned, with _imp at least one; Rnonrel keeps as many nonrelevant documents as there are relevant ones. Needs -R prefs
or -R qrels_prefs."""
OWN_WORDS = {
    "runid": "The tag of the run's last line.",
    "relstring": "The grades of the first documents, one sign each: 0 to 9, > above, - not judged, . negative.",
}
TAKES = {
    "ranks": "cut-offs, sorted",
    "shares": "numbers, sorted",
    "numbers": "numbers, in this order",
    "pairs": "grade=gain",
}


def manual(kinds: list[Kind]) -> str:
    """The text of `-h`: the options and formats, and the chosen measures or the list of all."""
    if not kinds:
        groups = "".join(f"  {name:<10} {_wrapped(' '.join(names), 13)}\n" for name, names in NICKNAMES.items())
        every = textwrap.indent(textwrap.fill(" ".join(ORDER), 114), "  ")
        return f"{OPTIONS}\nGroups of measures\n{groups}\nMeasures (-h -m NAME explains one)\n{every}\n"
    return OPTIONS + "".join(f"\n{_entry(kind)}\n" for kind in kinds)


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, 116 - indent, subsequent_indent=" " * indent)


def _entry(kind: Kind) -> str:
    lines = [kind.name, textwrap.indent(_about(kind), "  ")]
    if kind.takes != "nothing":
        defaults = ",".join(f"{number:g}" for number in kind.defaults)
        lines.append(f"  parameters: {TAKES[kind.takes]}" + (f" ({defaults})" if defaults else ""))
    if kind.needs == "qrels_jg":
        lines.append("  averaged over judgment groups; needs -R qrels_jg")
    if kind.total == "geometric":
        lines.append("  as a geometric mean over topics, none below 0.00001")
    return "\n".join(lines)


def _about(kind: Kind) -> str:
    import inspect

    from cranfield.evaluation.measures import REGISTRY

    if kind.needs == "prefs":
        return ABOUT_PREFERENCES
    if not kind.ours:
        return OWN_WORDS[kind.name]
    cls = REGISTRY[kind.ours]
    return inspect.getdoc(cls).split("\n\n")[0] + f"\n{cls.formula}"  # type: ignore[union-attr]
