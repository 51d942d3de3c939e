"""The interleaved lists in a log: tokens opened, clicks placed on them, and what cannot be used counted.

Credit goes to systems by name, so that the order in which a token names them says nothing. More than 1 % of lists or of clicks
that cannot be used break an experiment: what is left could be a biased part of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

from cranfield.errors import TokenError
from cranfield.online.credit import preferred, worth_of
from cranfield.online.health import BROKEN, NOTE, OK, Check
from cranfield.online.interleave.packed import unpacked
from cranfield.online.token import Keys, open_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from cranfield.online.credit import Preference
    from cranfield.online.gather import Gathering
    from cranfield.online.interleave.packed import Contents
    from cranfield.online.plan import Plan

MOST_UNUSABLE = 0.01  # of lists, and of clicks
MOST_RUN_OUT = 0.1  # of clicks, above which interleaving cannot see what an A/B test can
EVENTS = {"dwell": "dwell", "conversion": "conversion"}  # the kind of event that earns credit, if not a click
NAMES = {"dwell": "dwell times", "conversion": "conversions"}
REMEDIES = {
    "unreadable": "analyze with the keys that sealed them (CRANFIELD_ONLINE_KEYS), older ones too",
    "foreign": "seal with the plan and systems of this experiment, and filter out pages of others",
    "expired": "seal without an end, or with a later one",
    "repeated": "seal a token for each search, and log it with that search only",
}


class TokenCounts(NamedTuple):
    """Lists with a token, those that are left out by why, and those used whose token names no plan."""

    lists: int = 0
    unreadable: int = 0  # no key here opens it, or not for this search
    foreign: int = 0  # names another plan, or a system that is not the plan's
    expired: int = 0  # shown after its end
    repeated: int = 0  # used by a search before, or the second of its search
    unnamed: int = 0

    @property
    def left_out(self) -> int:
        """Lists that are not used."""
        return self.unreadable + self.foreign + self.expired + self.repeated


class ClickCounts(NamedTuple):
    """Clicks (or dwell times, or conversions) on lists that are used, and those that earn nothing by why."""

    clicks: int = 0
    outside: int = 0  # on a document or rank that the list does not have
    empty: int = 0  # on a list without documents
    late: int = 0  # after the end of the token
    run_out: int = 0  # where a ranking had run out

    @property
    def left_out(self) -> int:
        """Clicks that are not on the list while its token is good."""
        return self.outside + self.empty + self.late

    @property
    def run_out_share(self) -> float:
        """The share of clicks on lists that earn nothing because a ranking had run out."""
        return self.run_out / max(self.clicks - self.left_out, 1)


class ListReading(NamedTuple):
    """What the lists of a log say: the systems, the control first; the preference of each search, by unit and search."""

    systems: tuple[str, ...]
    searches: tuple[tuple[str, Preference], ...]  # and their units
    tokens: TokenCounts
    clicks: ClickCounts
    checks: tuple[Check, ...]


class _Page(NamedTuple):
    """A list as it was logged, its token opened."""

    unit: str
    search: str
    contents: Contents
    expires: int | None
    shown: list[str] | None
    time: datetime


class _Click(NamedTuple):
    document: str | None
    position: int | None
    value: float | None
    time: datetime


def read_lists(gathering: Gathering, keys: Keys | None) -> ListReading:
    """The preference of each search of the units that are in, and what of tokens and clicks could not be used."""
    plan = gathering.plan
    by = str((plan.interleave or {}).get("credit", "clicks"))
    opened, counts = _opened(gathering, keys)
    systems, named = (plan.systems, []) if plan.systems else _unnamed(plan, opened)
    pages, why = [], ""
    for page in opened:
        if strange := _strange(page.contents, plan, systems):
            counts["foreign"] += 1
            why = why or strange
        elif _after(page.time, page.expires):
            counts["expired"] += 1
        else:
            counts["unnamed"] += not page.contents.plan
            pages.append(page)
    searches, clicks = _credited(sorted(pages, key=lambda page: page[:2]), _clicks(gathering, by), by)
    tokens = TokenCounts(**counts)
    checks = (
        *named,
        _token_check(tokens, why),
        *_without_token(gathering),
        _click_check(clicks, by),
        _run_out_check(clicks, by),
    )
    return ListReading(systems, tuple(searches), tokens, clicks, checks)


def _opened(gathering: Gathering, keys: Keys | None) -> tuple[list[_Page], Counter[str]]:
    """Lists in the order of time, each search and each token once; and how many others there were."""
    rows = gathering.rows(
        "SELECT n.unit, search, credit, arg_min(shown, time), min(time) FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = 'impression' AND credit IS NOT NULL AND since >= 0 "
        "GROUP BY n.unit, search, credit ORDER BY min(time), n.unit, search, credit"
    )
    pages: list[_Page] = []
    counts = Counter(lists=len(rows))
    tokens: set[str] = set()
    searches: set[tuple[str, str]] = set()
    known = (keys or Keys.usual()) if rows else None
    for unit, search, token, shown, time in rows:
        if token in tokens or (unit, search) in searches:
            counts["repeated"] += 1
        elif known is None or (content := _open(token, known, search)) is None:
            counts["unreadable"] += 1
        else:
            pages.append(_Page(unit, search, *content, shown, time))
            tokens.add(token)
            searches.add((unit, search))
    return pages, counts


def _without_token(gathering: Gathering) -> list[Check]:
    """Searches that carry no token, in variants whose other searches do: nobody knows why, so a note counts them."""
    searches = (
        "SELECT n.variant, n.unit, search, count(credit) > 0 AS sealed FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = 'impression' AND since >= 0 GROUP BY ALL"
    )
    by_variant = f"SELECT count(*) AS pages, count_if(NOT sealed) AS bare FROM ({searches}) GROUP BY variant"
    pages, bare = gathering.one(f"SELECT sum(pages), sum(bare) FROM ({by_variant}) WHERE bare < pages")
    if not bare:
        return []
    return [Check("lists", NOTE, f"{_share(bare, pages, 'searches')} carry no token, and are left out")]


def _open(token: str, keys: Keys, search: str) -> tuple[Contents, int | None] | None:
    """What a token says, whether it was sealed for its search or for any; None where it cannot be opened."""
    for sealed_for in (search, ""):
        try:
            content, expires = open_token(token, keys, sealed_for)
            return unpacked(content), expires
        except TokenError:
            continue
    return None


def _strange(contents: Contents, plan: Plan, systems: Sequence[str]) -> str:
    """What a token names that is not this plan's."""
    if contents.plan and contents.plan != plan.name:
        return f"plan {contents.plan!r}"
    return next((f"system {name!r}" for name in contents.systems if name not in systems), "")


def _unnamed(plan: Plan, pages: Iterable[_Page]) -> tuple[tuple[str, ...], list[Check]]:
    """The systems where the plan names none: as the lists name them, if they agree on the order."""
    orders = Counter(page.contents.systems for page in pages if page.contents.plan in ("", plan.name))
    if not orders:
        return (), []
    systems, most = orders.most_common(1)[0]
    others = sum(n for order, n in orders.items() if order != systems and set(order) == set(systems))
    remedy = f"write systems = {list(systems)} into [interleave], the control first"
    if others > MOST_UNUSABLE * (most + others):
        said = (
            f"the plan names no control, and {others:,} of {most + others:,} lists name their systems in another order"
        )
        return systems, [Check("systems", BROKEN, f"{said}; in a new plan, {remedy}")]
    said = f"the plan names no control: it is {systems[0]!r}, which lists name first"
    return systems, [Check("systems", NOTE, f"{said}; in the next plan, {remedy}")]


def _after(time: datetime, expires: int | None) -> bool:
    return expires is not None and time.replace(tzinfo=UTC).timestamp() > expires


# clicks


def _clicks(gathering: Gathering, by: str) -> Mapping[tuple[str, str], list[_Click]]:
    clicks: dict[tuple[str, str], list[_Click]] = defaultdict(list)
    for unit, search, *rest in gathering.rows(
        "SELECT n.unit, search, document, position, value, time FROM cranfield_seen "
        "JOIN cranfield_entered n USING (number) WHERE kind = ? AND search IS NOT NULL AND since >= 0 ORDER BY time",
        EVENTS.get(by, "click"),
    ):
        clicks[unit, search].append(_Click(*rest))
    return clicks


def _credited(
    pages: Iterable[_Page], clicks: Mapping[tuple[str, str], list[_Click]], by: str
) -> tuple[list[tuple[str, Preference]], ClickCounts]:
    """The preference of each search; one without a click ties."""
    searches = []
    counts: Counter[str] = Counter()
    for page in pages:
        method, systems, evidence, _ = page.contents
        values = _placed(page, clicks.get((page.unit, page.search), ()), counts)
        worth: dict[int, float] = {}
        for rank, value in values:
            for place, one in worth_of({rank: value}, by, len(evidence.marks)).items():
                worth[place] = max(one, worth.get(place, 0.0))
        if values:
            gone = method.run_out(evidence, len(systems))
            counts["run_out"] += sum(rank - 1 in gone for rank, _ in values)
        searches.append((page.unit, preferred(page.contents, worth)))
    return searches, ClickCounts(**counts)


def _placed(page: _Page, clicks: Iterable[_Click], counts: Counter[str]) -> list[tuple[int, float | None]]:
    """The ranks of clicks, from 1, and their values; clicks without a rank are counted by why."""
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


def _place(click: _Click, shown: list[str] | None) -> int | None:
    """The rank of a click: that of its document in the list, or its position where list or document is not known."""
    if shown is None or click.document is None:
        return click.position
    return shown.index(click.document) + 1 if click.document in shown else None


# in words


def _token_check(tokens: TokenCounts, why: str) -> Check:
    reasons = {name: getattr(tokens, name) for name in REMEDIES if getattr(tokens, name)}
    if not reasons:
        return Check("tokens", OK, f"{tokens.lists:,} lists, each with a token that is opened")
    words = ", ".join(
        f"{n:,} {name}{f' (the first names {why})' if name == 'foreign' else ''}" for name, n in reasons.items()
    )
    said = f"{_share(tokens.left_out, tokens.lists, 'lists')} have a token that cannot be used: {words}"
    remedy = "; ".join(f"{name}: {REMEDIES[name]}" for name in reasons)
    return _left_out("tokens", tokens.left_out > MOST_UNUSABLE * tokens.lists, said, remedy)


def _click_check(clicks: ClickCounts, by: str) -> Check:
    name = NAMES.get(by, "clicks")
    if not clicks.left_out:
        return Check("clicks on lists", OK, f"{clicks.clicks:,} {name}, all on their lists")
    parts = ("outside the list", "on an empty list", "after the token expired")
    counts = (clicks.outside, clicks.empty, clicks.late)
    words = ", ".join(f"{n:,} {part}" for n, part in zip(counts, parts, strict=True) if n)
    said = f"{_share(clicks.left_out, clicks.clicks, name)} earn nothing as they are on no list: {words}"
    remedy = "log documents in the order shown, and clicks with the same ids"
    return _left_out("clicks on lists", clicks.left_out > MOST_UNUSABLE * clicks.clicks, said, remedy)


def _share(number: int, total: int, what: str) -> str:
    return f"{number:,} of {total:,} {what} ({100 * number / total:.1f} %)"


def _left_out(name: str, too_many: bool, said: str, remedy: str) -> Check:
    if too_many:
        return Check(name, BROKEN, f"{said}; more than 1 % break an experiment. What to do: {remedy}")
    return Check(name, NOTE, f"{said}; they are left out")


def _run_out_check(clicks: ClickCounts, by: str) -> Check:
    name = NAMES.get(by, "clicks")
    if not clicks.run_out:
        return Check("credit", OK, f"no {name} lie where a ranking had run out")
    said = _share(clicks.run_out, clicks.clicks - clicks.left_out, name)
    return Check("credit", NOTE, f"{said} earn no credit because a ranking had run out")
