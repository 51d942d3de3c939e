"""Labels: who gave which item which label on a scale. What agreement and consensus are computed from.

A value that is built whole: three columns of codes, one entry for each label that was given. What was not given is not
there, so that raters may differ in number from item to item. Lines are kept in the order of items, then raters, whatever
order they came in; only repeats, where one rater labels an item again, keep theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cranfield.errors import DataError
from cranfield.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.stats.ties import Bools, Floats, Ints

    Names: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True)
class Scale:
    """The labels that may be given, from the lowest to the highest where they have an order."""

    names: Names

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def values(self) -> Floats | None:
        """The labels as numbers; None where one of them is a name.

        >>> Scale((0, 1, 3)).values.tolist(), Scale(("no", "yes")).values
        ([0.0, 1.0, 3.0], None)
        """
        if not all(isinstance(name, (int, float, np.number)) for name in self.names):
            return None
        return np.array(self.names, np.float64)

    @property
    def places(self) -> Floats:
        """The labels as numbers, or the places of names on the scale: 0, 1, 2 …"""
        return np.arange(len(self), dtype=np.float64) if self.values is None else self.values


class Repeats(NamedTuple):
    """Labels that raters gave to items they had labelled before."""

    occasions: Labels  # an item is a rater and what that rater labelled again, the raters are the occasions 1, 2, …
    rater: Ints  # whose each such item is


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels as codes: entry i says that `raters[rater[i]]` gave `items[item[i]]` the label `scale.names[label[i]]`.

    >>> labels = Labels.of(["ann", "bob", "ann"], ["x", "x", "y"], [2, 0, 1])
    >>> labels.raters, labels.items, labels.scale.names, labels.missing
    (('ann', 'bob'), ('x', 'y'), (0, 1, 2), 1)
    """

    rater: Ints
    item: Ints
    label: Ints
    raters: Names
    items: Names
    scale: Scale

    @classmethod
    def of(
        cls,
        raters: Iterable[Hashable],
        items: Iterable[Hashable],
        labels: Iterable[Any],
        scale: Iterable[Hashable] | None = None,
    ) -> Labels:
        """From three columns of one length; a label of None or NaN was not given. The scale is what was seen unless told."""
        columns = [_plain(column) for column in (raters, items, labels)]
        if len(set(map(len, columns))) > 1:
            raise DataError(
                f"expected three columns of one length, found {', '.join(str(len(one)) for one in columns)}"
            )
        columns = _given(columns)
        rater_names, rater = encode(columns[0])
        item_names, item = encode(columns[1])
        seen, label = encode(columns[2])
        if scale is not None:
            names = tuple(scale)
            label = _on(names, seen)[label]
            seen = names
        return cls.sorted(rater, item, label, (rater_names, item_names), Scale(seen))

    @classmethod
    def sorted(cls, rater: Ints, item: Ints, label: Ints, names: tuple[Names, Names], scale: Scale) -> Labels:
        """From codes, in any order."""
        order = np.lexsort((rater, item))
        return cls(rater[order], item[order], label[order], *names, scale)

    @classmethod
    def of_table(cls, rows: Sequence[Sequence[Any]], scale: Iterable[Hashable] | None = None) -> Labels:
        """From one row for each rater and one column for each item, None or NaN where there is no label.

        >>> Labels.of_table([[1, 2, None], [1, 3, 3]]).missing
        1
        """
        if len({len(row) for row in rows}) > 1:
            raise DataError("expected rows of one length, one label or None for each item")
        columns = len(rows[0]) if rows else 0
        raters = [rater for rater in range(len(rows)) for _ in range(columns)]
        return cls.of(raters, list(range(columns)) * len(rows), [label for row in rows for label in row], scale)

    @classmethod
    def of_confusion(cls, table: npt.ArrayLike, scale: Iterable[Hashable] | None = None) -> Labels:
        """From a square table: how often one rater gave the row's label where the other gave the column's.

        >>> confusion(Labels.of_confusion([[20, 5], [10, 15]])).tolist()
        [[20, 5], [10, 15]]
        """
        times = np.asarray(table)
        if times.ndim != 2 or times.shape[0] != times.shape[1] or (times < 0).any():
            raise DataError(f"expected a square table of counts, found {' × '.join(map(str, times.shape))}")
        row, column = (np.repeat(code.ravel(), times.ravel()) for code in np.indices(times.shape))
        items = np.arange(len(row))
        names = range(len(times)) if scale is None else scale
        rater = np.repeat([0, 1], len(row))
        both = ((0, 1), tuple(range(len(row))))
        return cls.sorted(rater, np.r_[items, items], np.r_[row, column], both, Scale(tuple(names)))

    @classmethod
    def of_counts(cls, counts: npt.ArrayLike, scale: Iterable[Hashable] | None = None) -> Labels:
        """From how many raters gave each item (row) each label (column); who they were is not known."""
        times = np.asarray(counts)
        item, label = (np.repeat(code.ravel(), times.ravel()) for code in np.indices(times.shape))
        first = np.cumsum(times.sum(axis=1)) - times.sum(axis=1)
        rater = np.arange(len(item)) - first[item]
        names = tuple(range(times.shape[1])) if scale is None else tuple(scale)
        most = int(times.sum(axis=1).max(initial=0))
        return cls.sorted(rater, item, label, (tuple(range(most)), tuple(range(len(times)))), Scale(names))

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def missing(self) -> int:
        """How many items were not labelled, summed over the raters."""
        return len(self.raters) * len(self.items) - int((~self._again).sum())

    @cached_property
    def _again(self) -> Bools:
        """Which labels stand behind another of the same rater for the same item."""
        same = (np.diff(self.item, prepend=-1) == 0) & (np.diff(self.rater, prepend=-1) == 0)
        return np.asarray(same, np.bool_)

    @property
    def repeated(self) -> int:
        """How many labels were given by a rater who had labelled the item before."""
        return int(self._again.sum())

    def once(self) -> Labels:
        """Without repeats: the first label that each rater gave an item."""
        return self.only(~self._again) if self.repeated else self

    def repeats(self) -> Repeats:
        """What raters labelled more than once, as labels of which each occasion is a rater."""
        start = np.flatnonzero(~self._again)
        unit = np.cumsum(~self._again) - 1
        occasion = np.arange(len(self)) - start[unit]
        several = np.bincount(unit, minlength=len(start))[unit] > 1
        names: Names = tuple(range(1, int(occasion.max(initial=0)) + 2))
        units = zip(self.rater[start].tolist(), self.item[start].tolist(), strict=True)
        items = tuple((self.raters[rater], self.items[item]) for rater, item in units)
        every = Labels(occasion, unit, self.label, names, items, self.scale)
        return Repeats(every.only(several), self.rater[start[np.unique(unit[several])]])

    def only(self, lines: Bools | Ints) -> Labels:
        """Some of the labels, as a mask or by their places in ascending order, with their raters and items; the scale stays."""
        raters, rater = np.unique(self.rater[lines], return_inverse=True)
        items, item = np.unique(self.item[lines], return_inverse=True)
        names = tuple(self.raters[code] for code in raters), tuple(self.items[code] for code in items)
        return Labels(rater, item, self.label[lines], *names, self.scale)

    def of_raters(self, *names: Hashable) -> Labels:
        """What these raters said."""
        return self.only(np.isin(self.rater, [self._code(name) for name in names]))

    def without(self, name: Hashable) -> Labels:
        """What all others said."""
        return self.only(self.rater != self._code(name))

    def _code(self, name: Hashable) -> int:
        if name not in self.raters:
            raise DataError(f"no rater {name!r}; there are {shortened(', '.join(map(str, self.raters)))}")
        return self.raters.index(name)

    def groups(self, group_of: Mapping[Any, Hashable]) -> dict[Hashable, Labels]:
        """The labels of each group of items; an item without a group is left out."""
        inside = np.array([item in group_of for item in self.items], np.bool_)
        names, code = encode([group_of[item] for item in self.items if item in group_of])
        group = np.full(len(self.items), -1)
        group[inside] = code
        return {names[code]: self.only(lines) for code, lines in enumerate(_lines_of(group[self.item], len(names)))}

    def pair(self, one: int, other: int) -> Labels:
        """What two raters said, by their codes."""
        return self.only(np.sort(np.r_[self._of_rater[one], self._of_rater[other]]))

    @cached_property
    def _of_rater(self) -> list[Ints]:
        """Where each rater's labels stand."""
        return _lines_of(self.rater, len(self.raters))

    def counts(self) -> Ints:
        """How often each item was given each label: items × labels."""
        return _cross(self.item, self.label, len(self.items), len(self.scale))


def confusion(labels: Labels) -> Ints:
    """Two raters' labels of the items that both labelled: the first rater's in rows, the second's in columns."""
    first, second = two_columns(labels)
    return _cross(first, second, len(labels.scale), len(labels.scale))


def two_columns(labels: Labels) -> tuple[Ints, Ints]:
    """What two raters said of the items that both labelled, item by item."""
    if len(labels.raters) != 2:
        raise DataError(f"expected two raters, found {len(labels.raters)}: choose two with of_raters")
    once = labels.once()
    both = np.bincount(once.item, minlength=len(once.items))[once.item] == 2
    return once.label[both & (once.rater == 0)], once.label[both & (once.rater == 1)]


def coincidences(labels: Labels) -> Ints:
    """How often two raters gave an item these two labels, over all pairs of raters; whose label is whose is not told apart.

    >>> coincidences(Labels.of(["a", "b", "c"], ["d", "d", "d"], [0, 1, 1])).tolist()
    [[0, 2], [2, 1]]
    """
    once = labels.once()
    given = _cross(once.item, once.label, len(once.items), len(once.scale))
    pairs = given.T @ given
    np.fill_diagonal(pairs, (given * (given - 1)).sum(axis=0) // 2)
    return pairs


def base_rates(labels: Labels) -> Ints:
    """How often each rater (row) gave each label (column)."""
    return _cross(labels.rater, labels.label, len(labels.raters), len(labels.scale))


def _lines_of(code: Ints, number: int) -> list[Ints]:
    """Where each of the codes from 0 on stands, in ascending order."""
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(number + 1))
    return [order[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def _cross(row: Ints, column: Ints, rows: int, columns: int) -> Ints:
    return np.bincount(row * columns + column, minlength=rows * columns).reshape(rows, columns)


def encode(names: Sequence[Any] | npt.NDArray[Any]) -> tuple[Names, Ints]:
    """The distinct names in order, and which of them each entry is.

    >>> encode(["b", "a", "b"])
    (('a', 'b'), array([1, 0, 1]))
    """
    if isinstance(names, np.ndarray):
        distinct, codes = np.unique(names, return_inverse=True)
        return tuple(distinct.tolist()), codes.astype(np.int64)
    try:
        ordered = sorted(set(names))
    except TypeError:  # names of different types
        ordered = sorted(set(names), key=lambda name: (type(name).__name__, str(name)))
    place = {name: code for code, name in enumerate(ordered)}
    return tuple(ordered), np.fromiter(map(place.__getitem__, names), np.int64, len(names))


def _plain(column: Iterable[Any]) -> Sequence[Any] | npt.NDArray[Any]:
    """A column as it is if it is an array of numbers or words, else as a list."""
    return column if isinstance(column, np.ndarray) and column.dtype.kind in "iufbU" else list(column)


def _given(columns: list[Sequence[Any] | npt.NDArray[Any]]) -> list[Sequence[Any] | npt.NDArray[Any]]:
    """The columns without the lines whose label is None or NaN."""
    labels = columns[2]
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "f":
        return columns
    given = [label is not None and label == label for label in labels]
    if all(given):
        return columns
    lists = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns]
    return [[name for name, kept in zip(column, given, strict=True) if kept] for column in lists]


def _on(names: Names, seen: Names) -> Ints:
    """Where each label that was seen stands on a scale."""
    if len(set(names)) < len(names):
        raise DataError(f"the scale names a label twice: {shortened(', '.join(map(str, names)))}")
    place = {name: code for code, name in enumerate(names)}
    off = [name for name in seen if name not in place]
    if off:
        raise DataError(f"label {shortened(off[0])} is not on the scale {shortened(', '.join(map(str, names)))}")
    return np.array([place[name] for name in seen], np.int64)
