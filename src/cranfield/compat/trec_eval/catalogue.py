"""The 57 measures in the order in which they are printed, their nicknames, and how their parameters are read.

A measure is asked for as `-m name` or `-m name.parameters`. The first parameters given win, also over
the defaults of a nickname that names the same measure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cranfield.compat.trec_eval.options import StopError
from cranfield.parameters import real, shortened, whole

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


def chosen(texts: list[str], version: int) -> list[tuple[Kind, str | None]]:
    """The measures that `-m` options name, in the order of printing, with their parameters as typed.

    >>> [(kind.name, parameters) for kind, parameters in chosen(["P.5,10", "map", "P.20"], 10)]
    [('map', None), ('P', '5,10')]
    """
    known = {kind.name: kind for kind in MEASURES if kind.since <= version}
    wanted: set[str] = set()
    typed: dict[str, str] = {}
    for text in texts or ["official"]:
        name, dot, parameters = text.partition(".")
        if name not in known and name not in NICKNAMES:
            raise StopError(1, f"no measure {name!r}{_hint(name, known)}")
        if dot and not parameters:
            raise StopError(1, f"-m {text}: expected parameters after the dot")
        if dot:
            typed.setdefault(name, parameters)
        wanted.update(NICKNAMES.get(name, (name,)))
    return [(kind, typed.get(kind.name)) for kind in known.values() if kind.name in wanted]


def _hint(name: str, known: dict[str, Kind]) -> str:
    import difflib

    later = [kind.name for kind in MEASURES if kind.name == name]
    if later:
        return "; it came with version 10 (leave out --as 9)"
    near = difflib.get_close_matches(name, [*known, *NICKNAMES], n=2, cutoff=0.6)
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
        allowed = (key.isascii() and key.isdecimal() and len(key) <= GRADE_DIGITS) or (
            key == "p" and name.startswith("rbp")
        )
        if not allowed:
            expected = "a grade of 0 or more" + (", or p," if name.startswith("rbp") else "")
            raise StopError(2, f"-m {name}: expected {expected} before the =, found {shortened(key)!r}")
        pairs.append((key, _number(name, value)))
    return tuple(pairs)
