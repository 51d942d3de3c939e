"""Analysis of interleaved lists: which system users prefer, by the credit of their clicks.

The lists come from the log: their tokens are opened, clicks are placed on them, and unusable ones are counted. More than
1 % unusable lists or clicks break an experiment, as the rest could be biased. Credit goes to systems by name, so the order
in which a token names them does not matter.

A search prefers the system with more credit. A unit prefers the system that more of its searches prefer. Wins, ties and
losses count units, as these are the randomisation units. Δ_AB is the share of wins, ties by half, less one half (Chapelle,
Joachims, Radlinski and Yue, 2012): 0 if neither is preferred.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cranfield.base.errors import TokenError
from cranfield.base.results import Cell, Layout, Table
from cranfield.base.text_layout import counted
from cranfield.experiments.click_credit import Preference, preference_from, worth_of
from cranfield.experiments.decision import interval_of, round_up
from cranfield.experiments.health_checks import BROKEN, NOTE, OK, HealthCheck
from cranfield.experiments.interleaving.token import Keys, TokenContents, decode_contents, open_token
from cranfield.stats.arms import against_0, level
from cranfield.stats.interval_limits import EffectInterval
from cranfield.stats.moments import Moments
from cranfield.stats.sample_ratio import SIGN_CONCENTRATION, anytime_p, anytime_share, sign_p
from cranfield.stats.sequential import FIXED, LookRule
from cranfield.stats.unit_effects import DistinctRows, bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.random import Generator

    from cranfield.experiments.plan import Plan
    from cranfield.experiments.unit_queries import UnitQueries


MOST_UNUSABLE = 0.01  # share of lists, and of clicks
MOST_RUN_OUT = 0.1  # share of clicks above which an A/B test sees more than interleaving
NAMES = {"dwell": "dwell times", "conversion": "conversions"}  # the kinds of events that earn credit, beside clicks
REMEDIES = {
    "unreadable": "analyze with the keys that sealed them (CRANFIELD_ONLINE_KEYS), older ones too",
    "foreign": "seal with the plan and systems of this experiment, and filter out pages of others",
    "expired": "seal without expiry, or with a later one",
    "repeated": "seal a token for each search, and log it with that search only",
}


class TokenCounts(NamedTuple):
    """Lists with a token; those left out, by reason; and used ones whose token names no plan (`unnamed`)."""

    lists: int = 0
    unreadable: int = 0  # no known key opens the token for this search
    foreign: int = 0  # names another plan, or a system that is not the plan's
    expired: int = 0  # shown after its expiry
    repeated: int = 0  # used by an earlier search, or the second of its search
    unnamed: int = 0

    @property
    def left_out(self) -> int:
        """The number of lists that are not used."""
        return self.unreadable + self.foreign + self.expired + self.repeated


class ClickCounts(NamedTuple):
    """Clicks (or dwell times, or conversions) on the used lists; those that earn no credit, by reason."""

    clicks: int = 0
    outside: int = 0  # on a document or rank that the list does not have
    empty: int = 0  # on a list without documents
    late: int = 0  # after the token's expiry
    run_out: int = 0  # at a rank where a ranking had run out

    @property
    def left_out(self) -> int:
        """The number of clicks that are outside their list or after the expiry of its token."""
        return self.outside + self.empty + self.late


class ListReading(NamedTuple):
    """The lists of a log: the systems, the control first; the preference of each search; counts and checks."""

    systems: tuple[str, ...]
    searches: tuple[tuple[str, Preference], ...]  # unit and preference of each search
    tokens: TokenCounts
    clicks: ClickCounts
    checks: tuple[HealthCheck, ...]


class _Page(NamedTuple):
    """A logged list with its opened token."""

    unit: str
    search: str
    contents: TokenContents
    expires: int | None
    shown: list[str] | None
    time: datetime


class _Click(NamedTuple):
    document: str | None
    position: int | None
    value: float | None
    time: datetime


def read_lists(queries: UnitQueries, keys: Keys | None) -> ListReading:
    """The preference of each search, and the counts of unusable tokens and clicks."""
    plan = queries.plan
    by = str((plan.interleave or {}).get("credit", "clicks"))
    opened, counts = _open_lists(queries, keys)
    systems, named = (plan.systems, []) if plan.systems else _systems_from_lists(plan, opened)
    pages, why = [], ""
    for page in opened:
        if strange := _foreign_name(page.contents, plan, systems):
            counts["foreign"] += 1
            why = why or strange
        elif _after(page.time, page.expires):
            counts["expired"] += 1
        else:
            counts["unnamed"] += not page.contents.plan
            pages.append(page)
    searches, clicks = _search_preferences(sorted(pages, key=lambda page: page[:2]), _clicks(queries, by), by)
    tokens = TokenCounts(**counts)
    on_lists = (_token_check(tokens, why), *_without_token(queries))
    checks = (*named, *on_lists, _click_check(clicks, by), _run_out_check(clicks, by))
    return ListReading(systems, tuple(searches), tokens, clicks, checks)


def _open_lists(queries: UnitQueries, keys: Keys | None) -> tuple[list[_Page], Counter[str]]:
    """The lists by time, each search and each token once; and the counts of the others."""
    rows = queries.rows(
        "SELECT n.unit, search, credit, arg_min(shown, time), min(time) FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = 'impression' AND credit IS NOT NULL AND since >= 0 "
        "GROUP BY n.unit, search, credit ORDER BY min(time), n.unit, search, credit"
    )
    pages: list[_Page] = []
    counts = Counter(lists=len(rows))
    tokens: set[str] = set()
    searches: set[tuple[str, str]] = set()
    all_keys = (keys or Keys.usual()) if rows else None
    for unit, search, token, documents, time in rows:
        if token in tokens or (unit, search) in searches:
            counts["repeated"] += 1
        elif all_keys is None or (content := _open(token, all_keys, search)) is None:
            counts["unreadable"] += 1
        else:
            pages.append(_Page(unit, search, *content, documents, time))
            tokens.add(token)
            searches.add((unit, search))
    return pages, counts


def _without_token(queries: UnitQueries) -> list[HealthCheck]:
    """A note with the number of searches without a token, in variants whose other searches have one."""
    searches = (
        "SELECT n.variant, n.unit, search, count(credit) > 0 AS sealed FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = 'impression' AND since >= 0 GROUP BY ALL"
    )
    by_variant = f"SELECT count(*) AS pages, count_if(NOT sealed) AS bare FROM ({searches}) GROUP BY variant"
    pages, bare = queries.one(f"SELECT sum(pages), sum(bare) FROM ({by_variant}) WHERE bare < pages")
    if not bare:
        return []
    return [HealthCheck("lists", NOTE, f"{_share(bare, pages, 'searches')} carry no token and are left out")]


def _open(token: str, keys: Keys, search: str) -> tuple[TokenContents, int | None] | None:
    """The contents and expiry of a token, sealed for its search or for any; None if it cannot be opened."""
    for sealed_for in (search, ""):
        try:
            content, expires = open_token(token, keys, sealed_for)
            return decode_contents(content), expires
        except TokenError:
            continue
    return None


def _foreign_name(contents: TokenContents, plan: Plan, systems: Sequence[str]) -> str:
    """The first plan or system named by a token that this experiment does not have; empty if it has all."""
    if contents.plan and contents.plan != plan.name:
        return f"plan {contents.plan!r}"
    return next((f"system {name!r}" for name in contents.systems if name not in systems), "")


def _systems_from_lists(plan: Plan, pages: Iterable[_Page]) -> tuple[tuple[str, ...], list[HealthCheck]]:
    """The systems as most lists name them, for a plan that names none; broken if the lists disagree on their order."""
    orders = Counter(page.contents.systems for page in pages if page.contents.plan in ("", plan.name))
    if not orders:
        return (), []
    systems, most = orders.most_common(1)[0]
    others = sum(n for order, n in orders.items() if order != systems and set(order) == set(systems))
    remedy = f"write systems = {list(systems)} into [interleave], the control first"
    if others > MOST_UNUSABLE * (most + others):
        words = f"and {others:,} of {most + others:,} lists name their systems in another order"
        return systems, [HealthCheck("systems", BROKEN, f"the plan names no control, {words}; in a new plan, {remedy}")]
    words = f"the plan names no control: it is {systems[0]!r}, which lists name first"
    return systems, [HealthCheck("systems", NOTE, f"{words}; in the next plan, {remedy}")]


def _after(time: datetime, expires: int | None) -> bool:
    return expires is not None and time.replace(tzinfo=UTC).timestamp() > expires


# clicks


def _clicks(queries: UnitQueries, by: str) -> Mapping[tuple[str, str], list[_Click]]:
    """The events that earn credit, by unit and search, in order of time."""
    clicks: dict[tuple[str, str], list[_Click]] = defaultdict(list)
    for unit, search, *rest in queries.rows(
        "SELECT n.unit, search, document, position, value, time FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = ? AND search IS NOT NULL AND since >= 0 ORDER BY time",
        by if by in NAMES else "click",
    ):
        clicks[unit, search].append(_Click(*rest))
    return clicks


def _search_preferences(
    pages: Iterable[_Page], clicks: Mapping[tuple[str, str], list[_Click]], by: str
) -> tuple[list[tuple[str, Preference]], ClickCounts]:
    """The preference of each search; a search without a click is a tie."""
    searches = []
    counts: Counter[str] = Counter()
    for page in pages:
        method, systems, evidence, _ = page.contents
        values = _clicked_ranks(page, clicks.get((page.unit, page.search), ()), counts)
        worth: dict[int, float] = {}
        for rank, value in values:
            for place, one in worth_of({rank: value}, by, len(evidence.marks)).items():
                worth[place] = max(one, worth.get(place, 0.0))
        gone = method.run_out(evidence, len(systems)) if values else ()
        counts["run_out"] += sum(rank - 1 in gone for rank, _ in values)
        searches.append((page.unit, preference_from(page.contents, worth)))
    return searches, ClickCounts(**counts)


def _clicked_ranks(page: _Page, clicks: Iterable[_Click], counts: Counter[str]) -> list[tuple[int, float | None]]:
    """The ranks of clicks, from 1, and their values; unusable clicks are counted by reason."""
    length = len(page.contents.evidence.marks)
    last = length if page.shown is None else min(length, len(page.shown))
    values: list[tuple[int, float | None]] = []
    for click in clicks:
        counts["clicks"] += 1
        place = _place(click, page.shown)
        if not length:
            counts["empty"] += 1
        elif place is None or place > last:
            counts["outside"] += 1
        elif _after(click.time, page.expires):
            counts["late"] += 1
        else:
            values.append((place, click.value))
    return values


def _place(click: _Click, documents: list[str] | None) -> int | None:
    """The rank of a click: of its document in the list, or its position if list or document is unknown."""
    if documents is None or click.document is None:
        return click.position
    return documents.index(click.document) + 1 if click.document in documents else None


# health checks


def _token_check(tokens: TokenCounts, why: str) -> HealthCheck:
    reasons = {name: n for name, n in tokens._asdict().items() if n and name in REMEDIES}
    if not reasons:
        return HealthCheck("tokens", OK, f"{tokens.lists:,} lists, all with a valid token")
    first = {"foreign": f" (the first names {why})"}
    words = ", ".join(f"{n:,} {name}{first.get(name, '')}" for name, n in reasons.items())
    sentence = f"{_share(tokens.left_out, tokens.lists, 'lists')} have a token that cannot be used: {words}"
    remedy = "; ".join(f"{name}: {REMEDIES[name]}" for name in reasons)
    return _left_out("tokens", tokens.left_out > MOST_UNUSABLE * tokens.lists, sentence, remedy)


def _click_check(clicks: ClickCounts, by: str) -> HealthCheck:
    name = NAMES.get(by, "clicks")
    if not clicks.left_out:
        return HealthCheck("clicks on lists", OK, f"{clicks.clicks:,} {name}, all on their lists")
    parts = ("outside the list", "on an empty list", "after the token expired")
    counts = (clicks.outside, clicks.empty, clicks.late)
    words = ", ".join(f"{n:,} {part}" for n, part in zip(counts, parts, strict=True) if n)
    sentence = f"{_share(clicks.left_out, clicks.clicks, name)} earn nothing as they are on no list: {words}"
    remedy = "log documents in the order shown, and clicks with the same ids"
    return _left_out("clicks on lists", clicks.left_out > MOST_UNUSABLE * clicks.clicks, sentence, remedy)


def _share(number: int, total: int, what: str) -> str:
    return f"{number:,} of {total:,} {what} ({100 * number / total:.1f} %)"


def _left_out(name: str, too_many: bool, sentence: str, remedy: str) -> HealthCheck:
    if too_many:
        return HealthCheck(name, BROKEN, f"{sentence}; more than 1 % break an experiment. What to do: {remedy}")
    return HealthCheck(name, NOTE, f"{sentence}; they are left out")


def _run_out_check(clicks: ClickCounts, by: str) -> HealthCheck:
    name = NAMES.get(by, "clicks")
    if not clicks.run_out:
        return HealthCheck("credit", OK, f"no {name} lie where a ranking had run out")
    share = _share(clicks.run_out, clicks.clicks - clicks.left_out, name)
    return HealthCheck("credit", NOTE, f"{share} earn no credit because a ranking had run out")


class SystemPreference(NamedTuple):
    """A system against the control: how many units prefer it (wins), the control (losses) or neither (ties)."""

    system: str
    control: str
    wins: int
    losses: int
    ties: int
    searches: int
    delta: EffectInterval  # over units, by the plan's method; this decides
    by_search: EffectInterval  # over searches, by the bootstrap of units
    p: float  # of delta
    sign: float  # p-value of the sign test over units
    sequential: tuple[float, float]  # anytime interval of the share of wins among wins and losses
    anytime: float  # anytime p-value
    margin: float | None
    inner: tuple[float, float]  # the 1 − 2α interval of delta
    detectable: float

    @property
    def same(self) -> bool:
        """Whether the preference is equivalent to 0, that is, within the margin."""
        return self.delta.exists and EffectInterval(self.delta.value, *self.inner).inside(self.margin)

    def verdict(self, ended: bool) -> str:
        """The verdict on this system."""
        if self.delta.above():
            return "ship"
        if self.delta.below():
            return "stop"
        return "same" if self.same else "not shown" if ended else "continue"

    def sentence(self, verdict: str = "") -> str:
        """A sentence on the preference; with the verdict on this system if it differs from the overall one."""
        value, low, high = self.delta
        interval = f"[{low:+.4f}, {high:+.4f}]" if self.delta.exists else "without an interval"
        return (
            f"{self.system} against {self.control}{f' ({verdict})' if verdict else ''}: Δ {value:+.4f} {interval}, "
            f"{self.wins:,} units prefer it, {self.losses:,} the other, {self.ties:,} neither"
        )

    def could(self) -> str:
        """The preference that could have been detected, and how many units a new plan needs."""
        target = self.margin or self.detectable / 2
        units = round_up((self.wins + self.losses + self.ties) * (self.detectable / target) ** 2)
        what = f"its margin of {target:.4g}" if self.margin else "half of that"
        could = f"it could have detected {self.detectable:.4g} (power 0.8)"
        return f"{could}; a new plan with about {units:,} units would detect {what}"


def effect_cells(effect: EffectInterval, how: Layout) -> list[Cell | str]:
    """An effect and its interval as two cells of a table."""
    return [how.cell(effect.value, signed=True), how.interval(effect.low, effect.high, signed=True)]


@dataclass(frozen=True)
class ListPreferences:
    """The preferences of units, for each system against the control, with the counts of lists and clicks."""

    pairs: tuple[SystemPreference, ...]
    tokens: TokenCounts
    clicks: ClickCounts
    broken: str = ""

    def blind(self) -> str:
        """A caution if many clicks earn no credit because a ranking had run out; else empty."""
        share = self.clicks.run_out / max(self.clicks.clicks - self.clicks.left_out, 1)
        if share <= MOST_RUN_OUT:
            return ""
        sentence = f"{100 * share:.0f} % of clicks earn no credit because a ranking had run out"
        return f"{sentence}: an A/B test can see what interleaving cannot"

    def reason(self, verdict: str, ended: bool) -> str:
        """The evidence on each system: those with the overall verdict come first, undecided systems last."""
        verdicts = {each.system: each.verdict(ended) for each in self.pairs}
        settled = [each for each in self.pairs if verdicts[each.system] != "continue"]
        sentences = []
        for each in sorted(settled, key=lambda each: verdicts[each.system] != verdict):
            own = verdicts[each.system]
            sentences.append(each.sentence("" if own == verdict else own))
            sentences += [each.could()] if own == verdict == "not shown" else []
        open_yet = [name for name, own in verdicts.items() if own == "continue"]
        if open_yet and len(self.pairs) > 1:
            sentences.append(f"{' and '.join(open_yet)}: no preference so far")
        return "; ".join(sentences)

    def undecided(self) -> str:
        """The systems without an interval, in a sentence; empty if all have one."""
        lacking = [each.system for each in self.pairs if not each.delta.exists]
        return f"{', '.join(lacking)}: too few units for a finite interval" if lacking else ""

    def parts(self, how: Layout) -> Iterator[Table]:
        """A table with one row per system; none if there are no preferences yet."""
        if not self.pairs:
            return
        numbers = ["Δ by unit", "interval", "p", "sign test", "Δ by search", "interval"]
        head = ["system", "wins", "losses", "ties", *numbers]
        rows: list[list[Cell | str]] = []
        for each in self.pairs:
            names = [f"{each.system} against {each.control}", *(f"{n:,}" for n in (each.wins, each.losses, each.ties))]
            chances = [Cell(f"{p:.2g}", p) for p in (each.p, each.sign)]
            rows.append([*names, *effect_cells(each.delta, how), *chances, *effect_cells(each.by_search, how)])
        yield Table(head, rows, title="which system units prefer", spare=(8, 9, 7))


def preferences(reading: ListReading, plan: Plan, rule: LookRule, rng: Generator) -> ListPreferences:
    """The preferences of units, by the credit of every search with a usable list."""
    tokens, clicks = reading.tokens, reading.clicks
    if not tokens.lists:
        words = "no impression of these units carries the token of an interleaved list"
        return ListPreferences((), tokens, clicks, words)
    control, *others = reading.systems
    outcomes = _outcomes(reading)
    pairs = []
    for system in others:
        own = [values[system] for values in outcomes.values() if system in values]
        pair = _pair(system, control, own, plan, plan.alpha / len(others), rule, rng)
        if isinstance(pair, str):
            return ListPreferences((), tokens, clicks, pair)
        pairs.append(pair)
    return ListPreferences(tuple(pairs), tokens, clicks)


def _outcomes(reading: ListReading) -> dict[str, dict[str, list[float]]]:
    """Per unit and system, the sign of each search's preference over the control; 0 for searches without a click."""
    outcomes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    control, *others = reading.systems
    for unit, preference in reading.searches:
        for other in others:
            if other in preference.credits and control in preference.credits:
                outcomes[unit][other].append(float(np.sign(preference.difference(other, control))))
    return outcomes


def _pair(
    system: str, control: str, units: list[list[float]], plan: Plan, alpha: float, rule: LookRule, rng: Generator
) -> SystemPreference | str:
    """The preference for a system over the control, from the signs of each unit's searches; a sentence if all units agree."""
    signs = np.sign([sum(each) for each in units])
    wins, losses = int((signs > 0).sum()), int((signs < 0).sum())
    if len(signs) < 2 or np.ptp(signs) == 0:
        about = f"{system} against {control}, {counted(len(signs), 'unit')}"
        if not wins + losses:
            return f"{about}: none prefers either"
        return f"{about}: all prefer the same, so there is no spread to measure against"
    effect = against_0(level(Moments.of(half=signs / 2), "half"))
    inner = interval_of(effect, alpha, rule)
    sums = np.array([[sum(each) / 2, len(each)] for each in units])
    zero = DistinctRows.of(np.array([[0.0, 1.0], [0.0, 1.0]]))
    resampled = bootstrap(zero, DistinctRows.of(sums), lambda mean: mean[:, 0] / mean[:, 1], rng)
    counts = (wins, losses, len(signs) - wins - losses, int(sums[:, 1].sum()))
    intervals = (interval_of(effect, alpha / 2, rule), interval_of(resampled, alpha / 2))
    even, anytime = anytime_share(wins, losses, 1 - alpha), anytime_p([wins, losses], [0.5, 0.5], SIGN_CONCENTRATION)
    chances = (float(effect.p(rule)), sign_p(wins, losses))
    error = float(effect.error)
    detectable = error * (rule.critical(alpha / 2) + FIXED.critical(0.2)) if math.isfinite(error) else math.nan
    margin, ends = (plan.interleave or {}).get("margin"), (inner.low, inner.high)
    return SystemPreference(system, control, *counts, *intervals, *chances, even, anytime, margin, ends, detectable)
