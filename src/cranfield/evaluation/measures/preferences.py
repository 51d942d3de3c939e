"""Preference measures: how often a run ranks the preferred of two documents higher.

A preference is fulfilled if the preferred document ranks higher, or if it alone was returned. Where judges disagree,
each of them counts. `PreferenceCounts` holds the counts of one judgment group of a topic; the measures are ratios of
such counts. Buckley (2008), trec_eval 9.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cranfield.base.errors import ContradictionError, DataError
from cranfield.base.parameters import Choice
from cranfield.evaluation.hits import Hits, match_index, ratio
from cranfield.evaluation.measures.definition import Inner, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.kernels import HitRows, Strings
    from cranfield.base.kernels.table import Floats, Ints
    from cranfield.formats.extras import PreferenceLevels


Matrix = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.integer]


class PreferenceGroup(NamedTuple):
    """The preferences of one judgment group: `prefers[i, j]` means that document i is preferred to document j.

    Documents are numbered by rank: 0 for the first returned, those not returned last. For a group with one subgroup,
    `copies` holds each document once per line, by level (best first) and rank; with several subgroups it is None.
    """

    prefers: Matrix
    level: Floats  # of each document; NaN if this group has no line about it
    copies: tuple[Ints, Floats] | None


class PreferenceCounts(NamedTuple):
    """The number of preferences of a group, and of those that a run fulfils, by how many of both documents it returned."""

    fulfilled_both: int
    possible_both: int
    fulfilled_one: int
    possible_one: int
    possible_none: int
    relevant: int
    nonrelevant: int
    relevant_returned: int
    nonrelevant_returned: int

    def fulfilled(self, only: str = "") -> int:
        """The number of fulfilled preferences; with `only="ret"`, those between documents that were both returned."""
        return self.fulfilled_both + (self.fulfilled_one if only != "ret" else 0)

    def possible(self, only: str = "") -> int:
        """The number of preferences; with `only="ret"` both documents were returned, with `only="imp"` at least one."""
        if only == "ret":
            return self.possible_both
        return self.possible_both + self.possible_one + (self.possible_none if only != "imp" else 0)

    def relevant_among(self, only: str = "") -> int:
        """The number of relevant documents; with `only="ret"`, of those returned."""
        return self.relevant_returned if only == "ret" else self.relevant

    def filled_up(self, only: str = "") -> tuple[int, int] | None:
        """Fulfilled and possible preferences with as many nonrelevant as relevant documents; None if there are too many.

        Missing nonrelevant documents count as not returned, so every returned relevant document is above them.
        """
        spare = self.relevant_among(only) - (self.nonrelevant_returned if only == "ret" else self.nonrelevant)
        if spare < 0:
            return None
        return self.fulfilled(only) + self.relevant_returned * spare, self.possible(only) + self.relevant * spare


def prefer(place: Ints, level: Floats, subgroup: Ints, size: int) -> PreferenceGroup:
    """The preferences of one group, from its lines; `place` numbers their documents by rank.

    Several subgroups give only part of the order; preferences that follow via a third document are added.

    >>> group = prefer(np.array([0, 1, 1, 2]), np.array([2.0, 1.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), 3)
    >>> group.prefers.astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    levels = np.full(size, np.nan)
    prefers = np.zeros((size, size), bool)
    if (subgroup == subgroup[0]).all():
        order = np.lexsort((place, -level))
        place, level = place[order], level[order]
        levels[place] = level
        if (levels[place] != level).any():
            raise DataError("a judgment group gives one document two levels")
        prefers[np.ix_(place, place)] = level[:, None] > level[None, :]
        return PreferenceGroup(prefers, levels, (place, level))
    for inner in np.unique(subgroup):
        here = subgroup == inner
        _note_levels(levels, place[here], level[here])
        higher = level[here][:, None] > level[here][None, :]
        above, below = np.nonzero(higher)
        prefers[place[here][above], place[here][below]] = True
    prefers = _closure(prefers)
    if (prefers & prefers.T).any():
        raise ContradictionError("a judgment group prefers each of two documents to the other")
    return PreferenceGroup(prefers, levels, None)


def _note_levels(levels: Floats, place: Ints, level: Floats) -> None:
    """Store the levels of documents; a document that is relevant in one subgroup only is an error."""
    for where, now in zip(place.tolist(), level.tolist(), strict=True):
        before = levels[where]
        if (before > 0 and now == 0) or (before == 0 and now > 0):
            raise DataError("a judgment group calls one document both relevant and not relevant")
        levels[where] = now


def _closure(prefers: Matrix) -> Matrix:
    """The transitive closure: if a is preferred to b and b to c, then a to c."""
    while True:
        further = prefers | (prefers.astype(np.float32) @ prefers.astype(np.float32) > 0)
        np.fill_diagonal(further, False)
        if (further == prefers).all():
            return further
        prefers = further


def count_preferences(group: PreferenceGroup, returned: int) -> PreferenceCounts:
    """Count a group's preferences; the first `returned` documents were returned by the run.

    >>> counts = count_preferences(prefer(np.array([0, 1, 2]), np.array([1.0, 0.0, 1.0]), np.zeros(3, int), 3), returned=2)
    >>> counts.fulfilled(), counts.possible(), counts.possible("ret")
    (1, 2, 1)
    """
    stated = times(group)
    both, alone = stated[:returned, :returned], stated[:returned, returned:].sum()
    place, level = group.copies or (np.flatnonzero(~np.isnan(group.level)), group.level[~np.isnan(group.level)])
    relevant, nonrelevant = level > 0, (level <= 0 if group.copies else level == 0)
    return PreferenceCounts(
        int(np.triu(both).sum()),
        int(both.sum()),
        int(alone),
        int(alone + stated[returned:, :returned].sum()),
        int(stated[returned:, returned:].sum()),
        int(relevant.sum()),
        int(nonrelevant.sum()),
        int((relevant & (place < returned)).sum()),
        int((nonrelevant & (place < returned)).sum()),
    )


def times(group: PreferenceGroup) -> Counts | Matrix:
    """How often each preference occurs: once, unless a group with one subgroup repeats a line."""
    if group.copies is None:
        return group.prefers
    lines = np.bincount(group.copies[0], minlength=len(group.level))
    return group.prefers if lines.max() == 1 else group.prefers * np.outer(lines, lines)


def with_first_nonrelevant(
    group: PreferenceGroup, nonrelevant: Matrix, most: int, returned: int, only: str
) -> tuple[int, int]:
    """Fulfilled and possible preferences if only the first `most` nonrelevant documents count."""
    nonrelevant = nonrelevant[:returned] if only == "ret" else nonrelevant
    rows = np.flatnonzero(~nonrelevant | (np.cumsum(nonrelevant) <= most))
    above, below = np.nonzero(group.prefers[np.ix_(rows, rows)])
    return int(((above < below) & (rows[above] < returned)).sum()), len(above)


class TopicPreferences(NamedTuple):
    """One topic's preferences and the run: groups, their counts, and the number of judged documents returned."""

    groups: list[PreferenceGroup]
    counts: list[PreferenceCounts]
    returned: int


@dataclass(frozen=True)
class PreferenceLines:
    """Lines of preferences, and which of their documents a run returned. Topics are handled one by one to save memory."""

    topic: Ints
    group: Ints
    subgroup: Ints
    level: Floats
    first: Ints  # for each line, the first line about its document
    nth: Ints  # the order in which a topic's documents were returned, by that first line; -1 if not returned
    returned: Ints
    names: Strings | None = None  # if set, documents not returned are numbered by id, as in trec_eval

    def topic_preferences(self, topic: int) -> TopicPreferences | None:
        """One topic's preferences and how the run fulfils them; None if it has no preferences."""
        rows = slice(*np.searchsorted(self.topic, [topic, topic + 1]).tolist())
        if rows.start == rows.stop:
            return None
        returned, first = int(self.returned[topic]), self.first[rows]
        place = self.nth[first]
        absent = place < 0
        unseen = self._unseen(first[absent])
        order = np.argsort(unseen)
        place[absent] = returned + order[np.searchsorted(unseen[order], first[absent])]
        ends = np.flatnonzero(np.diff(self.group[rows])) + 1  # rows are ordered by group
        places, levels = np.split(place, ends), np.split(self.level[rows], ends)
        inner = np.split(self.subgroup[rows], ends)
        size = int(place.max()) + 1
        groups = [prefer(*part, size) for part in zip(places, levels, inner, strict=True)]
        return TopicPreferences(groups, [count_preferences(group, returned) for group in groups], returned)

    def _unseen(self, first: Ints) -> Ints:
        """The documents that were not returned, as first lines, in the order in which they are numbered."""
        lines = np.unique(first)
        return lines if self.names is None else np.array(sorted(lines, key=self.names.__getitem__), first.dtype)


def lines_of_run(preferences: PreferenceLevels, found: HitRows, deepest: int | None = None) -> PreferenceLines:
    """Preference lines with the ranks of their documents in a run, down to rank `deepest`."""
    within = np.ones(len(found.rank), bool) if deepest is None else found.rank <= deepest
    topic, row = found.topic[within], found.row[within]
    returned = np.bincount(topic, minlength=len(preferences.topics))
    nth = np.full(len(preferences), -1, np.int32)
    nth[row] = np.arange(len(row)) - (np.cumsum(returned) - returned)[topic]
    return PreferenceLines(
        preferences.topic,
        preferences.group,
        preferences.subgroup,
        preferences.level,
        preferences.index.first,
        nth,
        returned.astype(np.int32),
    )


def lines_of_grades(hits: Hits) -> PreferenceLines:
    """Preference lines from grades: within a group (qrels column 2), the higher grade is preferred."""
    qrels, judged = hits.judgments.qrels, hits.judged()
    label = qrels.label if len(qrels.label) else np.zeros(len(qrels.grade), np.int32)
    rows = np.flatnonzero(hits.judgments.of_row >= 0)
    order = rows[np.lexsort((label[rows], qrels.topic[rows]))]
    nth = np.full(len(qrels.grade), -1, np.int32)
    nth[judged.row] = judged.nth - 1
    nothing = np.zeros(len(order), np.int32)
    level, first = np.maximum(qrels.grade[order], 0), qrels.index.first[order]
    return PreferenceLines(qrels.topic[order], label[order], nothing, level, first, nth, judged.count())


def _of_topics(hits: Hits) -> Iterator[tuple[int, TopicPreferences]]:
    """Each topic with preferences and how the run fulfils them; without a preference file they come from grades."""
    preferences: PreferenceLevels | None = hits.judgments.extras.preferences
    if preferences is None:
        lines, number = lines_of_grades(hits), list(range(hits.size))
    else:
        lines = lines_of_run(preferences, match_index(hits, preferences.index))
        numbers = {name: i for i, name in enumerate(preferences.topics)}
        number = [numbers.get(name, -1) for name in hits.judgments.qrels.topics]
    for topic, at in enumerate(number):
        compared = lines.topic_preferences(at) if at >= 0 else None
        if compared is not None:
            yield topic, compared


HERE_OR_THERE = (
    "Carterette, Bennett, Chickering & Dumais (2008), Here or there: preference judgments for relevance, ECIR"
)
ONLY = {"all": "", "returned": "ret", "implied": "imp"}


class _Fulfilled(Measure):
    """Base of the preference measures. They use only documents in preferences, so `judged_only` has no effect."""

    family = "preferences"
    reference = HERE_OR_THERE
    at = None
    monotone = False  # a document that passes an unjudged one may pass a better one on the way
    pairs = Choice(
        "all",
        "the preferences that count: all, those with both documents returned, or with at least one",
        *list(ONLY)[1:],
    )
    rewrites = {
        "pairs=returned": ("", ",  preferences: those of which both documents were returned"),
        "pairs=implied": ("", ",  preferences: those of which at least one document was returned"),
    }

    @abstractmethod
    def value(self, topic: TopicPreferences, only: str) -> float:
        """One topic's value."""

    def score(self, hits: Hits) -> Floats:
        """One value per topic; NaN if there are no preferences."""
        answer = np.full(hits.size, np.nan)
        for topic, compared in _of_topics(hits):
            answer[topic] = self.value(compared, ONLY[self.pairs])
        return answer


def _narrowed(trec_eval: str, ours: str) -> dict[str, tuple[str, ...]]:
    """trec_eval's three names of a measure: for all preferences, and for the other values of `pairs`."""
    narrower = [f"{trec_eval}_{end} = {ours}(pairs={pairs})" for pairs, end in ONLY.items() if end]
    return {"trec_eval": (trec_eval, *narrower)}


class PrefSimple(_Fulfilled):
    """Preferences fulfilled: the share of all preferences of a topic that the ranking follows.

    A preference is fulfilled if the preferred document ranks higher or alone was returned. Preferences are those of
    `--preferences FILE`; without one they follow from the grades within each judgment group (qrels column 2).

    Use it when judges compared documents instead of grading them; not to measure the top of the list, because a pair at
    the end counts as much as a pair at the top.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 2, "c": 0, "d": 0}}, run, "PrefSimple").mean()  # all but b before a
    0.8
    """

    formula = "preferences fulfilled / preferences"
    peers = _narrowed("prefs_simp", "PrefSimple")

    def value(self, topic: TopicPreferences, only: str) -> float:
        possible = sum(one.possible(only) for one in topic.counts)
        return sum(one.fulfilled(only) for one in topic.counts) / possible if possible else 0.0


class PrefPair(_Fulfilled):
    """Preferences fulfilled by document pairs: for each pair the share of its judges that the ranking follows, averaged.

    Every pair counts once, however many judges compared it.

    Use it when popular pairs were compared by many judges and should not outweigh the others; not with a single judge,
    where it equals PrefSimple.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 2, "c": 0, "d": 0}}, run, "PrefPair").mean()
    0.8
    """

    formula = "mean over pairs of documents of (judges whose preference is fulfilled / judges with a preference)"
    peers = _narrowed("prefs_pair", "PrefPair")

    def value(self, topic: TopicPreferences, only: str) -> float:
        returned, first, *others = topic.returned, *(times(group).astype(np.int32) for group in topic.groups)
        counts = sum(others, first)
        right, stated = np.triu(counts), np.triu(counts + counts.T)
        # Added up as trec_eval does: both returned, then one of them; a pair of which neither was returned counts as 0.
        areas = [np.s_[:returned, :returned], np.s_[:returned, returned:], np.s_[returned:, returned:]]
        areas = areas[: {"ret": 1, "imp": 2}.get(only, 3)]
        pairs = sum(int(np.count_nonzero(stated[area])) for area in areas)
        total = 0.0
        for area in areas[:2]:
            some = stated[area] > 0
            total = float(np.cumsum(np.r_[total, right[area][some] / stated[area][some]])[-1])
        return total / pairs if pairs else 0.0


class PrefGroups(_Fulfilled):
    """Preferences fulfilled by judges: for each judgment group the share that the ranking follows, averaged over groups.

    Every judge (or every reading of the query) counts once, however many pairs each compared.

    Use it when judges disagree about what is wanted and each deserves the same weight; not where a group has only a few
    pairs, because these weigh as much as hundreds of pairs in another group.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 2, "c": 0, "d": 0}}, run, "PrefGroups").mean()
    0.8
    """

    formula = "mean over judgment groups of (preferences fulfilled / preferences)"
    peers = _narrowed("prefs_avgjg", "PrefGroups")

    def value(self, topic: TopicPreferences, only: str) -> float:
        shares = [one.fulfilled(only) / one.possible(only) if one.possible(only) else 0.0 for one in topic.counts]
        return sum(shares) / len(shares)


class PrefBalanced(_Fulfilled):
    """PrefGroups with as many nonrelevant documents in each group as there are relevant ones: the first of them by rank.

    Where there are too few, documents that were not returned stand in for the missing ones. trec_eval's
    prefs_avgjg_Rnonrel also pairs every nonrelevant document with those kept, contrary to its own description, and its
    `_ret` changes when the same preferences are written as several subgroups; the command `cranfield
    trec_eval` repeats that, this measure does not.

    Use it when groups hold hundreds of nonrelevant documents that are easy to beat; not to compare with trec_eval's
    published values.

    >>> from cranfield import evaluate
    >>> run = {"q": {"x": 4, "a": 3, "y": 2, "z": 1}}
    >>> evaluate({"q": {"a": 1, "x": 0, "y": 0, "z": 0}}, run, "PrefBalanced PrefGroups").means()
    {'PrefBalanced': 0.0, 'PrefGroups': 0.6666666666666666}
    """

    formula = "mean over judgment groups of (preferences fulfilled / preferences), R of the nonrelevant documents kept"
    reference = "Buckley (2009), trec_eval 9, m_prefs_avgjg_Rnonrel"
    peers = {"trec_eval": ("prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret = PrefBalanced(pairs=returned)")}
    pairs = Choice("all", "the preferences that count: all, or those with both documents returned", "returned")

    def value(self, topic: TopicPreferences, only: str) -> float:
        total = 0.0
        for group, counts in zip(topic.groups, topic.counts, strict=True):
            most = counts.relevant_among(only)
            both = counts.filled_up(only) or with_first_nonrelevant(group, group.level <= 0, most, topic.returned, only)
            fulfilled, possible = both
            total += fulfilled / possible if possible else 0.0
        return total / len(topic.groups)


class NumPref(_Fulfilled):
    """The number of preferences that a topic has; `pairs` narrows them to those the run could follow.

    Use it to see how much evidence a share of preferences rests on; it says nothing about the quality of the run.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 2, "c": 0, "d": 0}}, run, "NumPref NumPref(pairs=returned)").means()
    {'NumPref': 5.0, 'NumPref(pairs=returned)': 3.0}
    """

    formula = "preferences, all judgment groups together"
    reference = "Buckley (2009), trec_eval 9, m_prefs_num_prefs_poss"
    peers = {"trec_eval": ("prefs_num_prefs_poss",)}
    aggregate = "sum"
    high = np.inf
    ideal_is_best = False
    empty_is_zero = False

    def value(self, topic: TopicPreferences, only: str) -> float:
        return float(sum(one.possible(only) for one in topic.counts))


class NumPrefFul(_Fulfilled):
    """The number of preferences that the ranking follows; with `pairs=returned` those between two documents returned.

    Use it together with NumPref to add up shares over topics by hand; not to compare topics, because these differ in
    the number of preferences.

    >>> from cranfield import evaluate
    >>> run = {"q": {"a": 3, "b": 2, "c": 1}}
    >>> evaluate({"q": {"a": 1, "b": 2, "c": 0, "d": 0}}, run, "NumPrefFul NumPrefFul(pairs=returned)").means()
    {'NumPrefFul': 4.0, 'NumPrefFul(pairs=returned)': 2.0}
    """

    formula = "preferences fulfilled, all judgment groups together"
    reference = "Buckley (2009), trec_eval 9, m_prefs_num_prefs_ful"
    peers = {"trec_eval": ("prefs_num_prefs_ful", "prefs_num_prefs_ful_ret = NumPrefFul(pairs=returned)")}
    aggregate = "sum"
    high = np.inf
    pairs = Choice("all", "the preferences that count: all, or those with both documents returned", "returned")

    def value(self, topic: TopicPreferences, only: str) -> float:
        return float(sum(one.fulfilled(only) for one in topic.counts))


class GroupMean(Measure):
    """A measure's mean over judgment groups: scored by each judge's grades alone (qrels column 2), then averaged.

    Without several judges (one value in column 2), it equals the measure itself.

    Use it when several judges graded the same topics and disagree: each judge then counts equally. Do not use it where
    column 2 holds subtopics, because a document need not answer every subtopic (use AP_IA or ERR_IA).

    >>> from cranfield import evaluate
    >>> qrels = b"q judge1 a 1\\nq judge1 b 0\\nq judge2 a 0\\nq judge2 b 1\\n"
    >>> evaluate(qrels, {"q": {"a": 2, "b": 1}}, "RR GroupMean(of=RR)").means()
    {'RR': 1.0, 'GroupMean(of=RR)': 0.75}
    """

    family = "preferences"
    formula = "mean over judgment groups of the measure under the group's judgments"
    reference = "Buckley (2009), trec_eval 9, m_map_avgjg"
    peers = {
        "trec_eval": (
            "map_avgjg = GroupMean(of=AP)",
            "P_avgjg_{k} = GroupMean(of=P@{k})",
            "Rprec_mult_avgjg_{multiple} = GroupMean(of=RprecMult@{multiple})",
        )
    }
    at = None
    low, high = -np.inf, np.inf
    empty_is_zero = False  # all of this as far as the measure inside promises it
    monotone = False
    of = Inner("AP", "the measure that each group's judgments are scored with")

    def score(self, hits: Hits) -> Floats:
        total, groups = np.zeros(hits.size), np.zeros(hits.size)
        for group in range(max(len(hits.judgments.qrels.labels), 1)):
            view = _by_group(hits, group)
            judged = view.judgments.count(view.judgments.grade >= 0) > 0
            total += np.where(judged, self.of(view), 0.0)
            groups += judged
        return ratio(total, groups)


def _by_group(hits: Hits, group: int) -> Hits:
    """The hits of the run under the judgments of one group."""
    whole, labelled = hits.judgments, hits.labelled
    qrels = whole.qrels
    rows = np.flatnonzero(qrels.label == group if len(qrels.label) else np.ones(len(qrels.topic), bool))
    lowest = 0.0 if whole.of_row.min(initial=0) >= 0 else -np.inf  # negative grades may count as 0
    judgments = whole.only(qrels.index.first[rows], qrels.topic[rows], np.maximum(qrels.grade[rows], lowest))
    mine = labelled.label == group
    columns = hits.columns.part(labelled.hit[mine], grade=np.maximum(labelled.grade[mine], lowest))
    return Hits.of(judgments, columns, hits.retrieved)
