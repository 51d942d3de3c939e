"""Labels: who gave which item which label on a scale; the input of agreement and consensus.

`Labels` is immutable: three columns of codes, one entry per label. Missing labels have no entry, so items may have
different numbers of raters. Entries are sorted by item, then by rater; repeats, where a rater labels an item again,
keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from cranfield.stats.ties import Bools, Floats, Ints

    Names: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True)
class Scale:
    """The possible labels, from the lowest to the highest if they have an order."""

    names: Names

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def values(self) -> Floats | None:
        """The labels as numbers; None if one of them is a name.

        >>> Scale((0, 1, 3)).values.tolist(), Scale(("no", "yes")).values
        ([0.0, 1.0, 3.0], None)
        """
        if not all(isinstance(name, (int, float, np.number)) for name in self.names):
            return None
        return np.array(self.names, np.float64)

    @property
    def places(self) -> Floats:
        """The labels as numbers, or the positions of names on the scale: 0, 1, 2 …"""
        return np.arange(len(self), dtype=np.float64) if self.values is None else self.values


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
        """Labels from three columns of equal length; None or NaN is a missing label. Default scale: all labels seen."""
        columns = [_plain(column) for column in (raters, items, labels)]
        if len(set(map(len, columns))) > 1:
            raise DataError(
                f"expected three columns of one length, found {', '.join(str(len(one)) for one in columns)}"
            )
        (rater_names, rater), (item_names, item), (label_names, label) = map(encode, _without_missing(columns))
        if scale is not None:
            names = tuple(scale)
            label = _on(names, label_names)[label]
            label_names = names
        return cls.sorted(rater, item, label, (rater_names, item_names), Scale(label_names))

    @classmethod
    def sorted(cls, rater: Ints, item: Ints, label: Ints, names: tuple[Names, Names], scale: Scale) -> Labels:
        """Labels from codes, in any order."""
        order = np.lexsort((rater, item))
        return cls(rater[order], item[order], label[order], *names, scale)

    @classmethod
    def of_table(cls, rows: Sequence[Sequence[Any]], scale: Iterable[Hashable] | None = None) -> Labels:
        """Labels from one row per rater and one column per item; None or NaN is a missing label.

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
        """Labels from a square table: how often one rater gave the row's label and the other the column's.

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
        """Labels from the number of raters who gave each item (row) each label (column); the raters are unknown."""
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
        """The number of unlabelled items, summed over the raters."""
        return len(self.raters) * len(self.items) - int((~self._again).sum())

    @cached_property
    def _again(self) -> Bools:
        """Which labels follow another label of the same rater for the same item."""
        same = (np.diff(self.item, prepend=-1) == 0) & (np.diff(self.rater, prepend=-1) == 0)
        return np.asarray(same, np.bool_)

    @property
    def repeated(self) -> int:
        """The number of labels by raters who had labelled the item before."""
        return int(self._again.sum())

    def once(self) -> Labels:
        """Without repeats: the first label that each rater gave an item."""
        return self.only(~self._again) if self.repeated else self

    def repeats(self) -> tuple[Labels, Ints]:
        """The labels of items that a rater labelled more than once, and the rater of each such item.

        In these labels, an item is the pair of a rater and an item, and the raters are the occasions 1, 2, …
        """
        start = np.flatnonzero(~self._again)
        unit = np.cumsum(~self._again) - 1
        occasion = np.arange(len(self)) - start[unit]
        several = np.bincount(unit, minlength=len(start))[unit] > 1
        names: Names = tuple(range(1, int(occasion.max(initial=0)) + 2))
        units = zip(self.rater[start].tolist(), self.item[start].tolist(), strict=True)
        items = tuple((self.raters[rater], self.items[item]) for rater, item in units)
        every = Labels(occasion, unit, self.label, names, items, self.scale)
        return every.only(several), self.rater[start[np.unique(unit[several])]]

    def only(self, lines: Bools | Ints) -> Labels:
        """Some of the labels, by a mask or by ascending positions, with their raters and items; the scale stays."""
        raters, rater = np.unique(self.rater[lines], return_inverse=True)
        items, item = np.unique(self.item[lines], return_inverse=True)
        names = tuple(self.raters[code] for code in raters), tuple(self.items[code] for code in items)
        return Labels(rater, item, self.label[lines], *names, self.scale)

    def of_raters(self, *names: Hashable) -> Labels:
        """The labels of these raters."""
        return self.only(np.isin(self.rater, [self._code(name) for name in names]))

    def without(self, name: Hashable) -> Labels:
        """The labels of all other raters."""
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
        """The labels of two raters, by their codes."""
        return self.only(np.sort(np.r_[self._of_rater[one], self._of_rater[other]]))

    @cached_property
    def _of_rater(self) -> list[Ints]:
        """The positions of each rater's labels."""
        return _lines_of(self.rater, len(self.raters))

    def counts(self) -> Ints:
        """How often each item was given each label: items × labels."""
        return _cross(self.item, self.label, len(self.items), len(self.scale))


def confusion(labels: Labels) -> Ints:
    """Two raters' labels of the items that both labelled: the first rater's in rows, the second's in columns."""
    first, second = two_columns(labels)
    return _cross(first, second, len(labels.scale), len(labels.scale))


def two_columns(labels: Labels) -> tuple[Ints, Ints]:
    """Two raters' labels of the items that both labelled, item by item."""
    if len(labels.raters) != 2:
        raise DataError(f"expected two raters, found {len(labels.raters)}: choose two with of_raters")
    once = labels.once()
    both = np.bincount(once.item, minlength=len(once.items))[once.item] == 2
    return once.label[both & (once.rater == 0)], once.label[both & (once.rater == 1)]


def coincidences(labels: Labels) -> Ints:
    """How often two raters gave an item these two labels, over all pairs of raters, in either order.

    >>> coincidences(Labels.of(["a", "b", "c"], ["d", "d", "d"], [0, 1, 1])).tolist()
    [[0, 2], [2, 1]]
    """
    once = labels.once()
    counts = _cross(once.item, once.label, len(once.items), len(once.scale))
    pairs = counts.T @ counts
    np.fill_diagonal(pairs, (counts * (counts - 1)).sum(axis=0) // 2)
    return pairs


def base_rates(labels: Labels) -> Ints:
    """How often each rater (row) gave each label (column)."""
    return _cross(labels.rater, labels.label, len(labels.raters), len(labels.scale))


def _lines_of(code: Ints, number: int) -> list[Ints]:
    """The positions of each code from 0 on, in ascending order."""
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(number + 1))
    return [order[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def _cross(row: Ints, column: Ints, rows: int, columns: int) -> Ints:
    return np.bincount(row * columns + column, minlength=rows * columns).reshape(rows, columns)


def encode(names: Sequence[Any] | npt.NDArray[Any]) -> tuple[Names, Ints]:
    """The distinct names in order, and the number of each entry's name.

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
    """A column unchanged if it is an array of numbers or words, else as a list."""
    return column if isinstance(column, np.ndarray) and column.dtype.kind in "iufbU" else list(column)


def _without_missing(columns: list[Sequence[Any] | npt.NDArray[Any]]) -> list[Sequence[Any] | npt.NDArray[Any]]:
    """The columns without the rows whose label is None or NaN."""
    labels = columns[2]
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "f":
        return columns
    present = [label is not None and label == label for label in labels]
    if all(present):
        return columns
    lists = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns]
    return [[name for name, there in zip(column, present, strict=True) if there] for column in lists]


def _on(names: Names, labels: Names) -> Ints:
    """The position of each label on a scale."""
    if len(set(names)) < len(names):
        raise DataError(f"the scale names a label twice: {shortened(', '.join(map(str, names)))}")
    place = {name: code for code, name in enumerate(names)}
    off = [name for name in labels if name not in place]
    if off:
        raise DataError(f"label {shortened(off[0])} is not on the scale {shortened(', '.join(map(str, names)))}")
    return np.array([place[name] for name in labels], np.int64)
