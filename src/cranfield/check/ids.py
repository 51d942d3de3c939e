"""Ids: odd characters, spellings that differ in nothing a person would notice, topics in several places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cranfield.check.file import SHOWN, byte_counts, bytes_among, n_of, show
from cranfield.check.keys import keys
from cranfield.kernels import Strings, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.check.file import Array, File


PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/#"
IS_ODD = bytes_among(set(range(33, 127)) - set(PLAIN))


def look_at_ids(file: File) -> None:
    """Report ids that are odd, or too much like others."""
    rows = file.rows
    _, first = np.unique(rows.topic, return_index=True)
    _look_for_odd(file, "topic", rows.topics, first)
    _look_for_odd(file, "document", rows.documents, np.arange(len(rows.topic)))
    if file.kind == "run" and len(rows.labels):
        _, tagged = np.unique(rows.label, return_index=True)
        _look_for_odd(file, "tag", rows.labels, tagged)
    _look_for_alike(file, "topic", list(rows.topics))
    _look_for_alike(file, "document", _suspects(file))


def _look_for_odd(file: File, name: str, strings: Strings, row: Array) -> None:
    block = np.frombuffer(strings.block, np.uint8)
    counts = byte_counts(block)
    odd = np.flatnonzero(IS_ODD & (counts > 0))
    if not len(odd):
        return
    where = np.unique(np.searchsorted(strings.offsets, np.flatnonzero(bytes_among(odd)[block]), "right") - 1)
    which = " ".join(chr(byte) for byte in odd)
    what = f"{n_of(len(where), name + ' id' if name != 'tag' else 'tag')} with {which}"
    ids = {int(row[i]): decode(strings[int(i)]) for i in where[:SHOWN]}
    file.add_rows("odd-characters", what, row[where], lambda r: f"{name} {show(ids[r])}")


def _suspects(file: File) -> list[bytes]:
    """The document ids among which two may be spellings of one: equal but for case, beyond ASCII, or with leading zeros."""
    documents = file.rows.documents
    block = np.frombuffer(documents.block, np.uint8)
    counts = byte_counts(block)
    mixed = bool(counts[ord("A") : ord("Z") + 1].any() and counts[ord("a") : ord("z") + 1].any())
    long = np.flatnonzero(np.diff(documents.offsets) > 1)
    zero = long[block[documents.offsets[long]] == ord("0")]
    if not (mixed or counts[128:].any() or len(zero)):
        return []
    _, once = np.unique(file.keys, return_index=True)
    chosen = _case_twins(file, once) if mixed else set()
    if counts[128:].any():
        rows = np.unique(np.searchsorted(documents.offsets, np.flatnonzero(block >= 128), "right") - 1)
        chosen.update(documents[int(row)] for row in np.intersect1d(rows, once))
    led = [raw for raw in (documents[int(row)] for row in np.intersect1d(zero, once)) if raw.isdigit()]
    bare = [raw.lstrip(b"0") or b"0" for raw in led]
    known = np.isin(keys(Strings.of(bare)), file.keys) if bare else np.zeros(0, bool)
    return sorted({*chosen, *led, *(raw for raw, there in zip(bare, known.tolist(), strict=True) if there)})


def _case_twins(file: File, once: Array) -> set[bytes]:
    """Ids that another equals but for case; `once` is a row of each id."""
    folded = keys(file.rows.documents, folded=True)[once]
    order = np.argsort(folded)
    same = folded[order][1:] == folded[order][:-1]
    twins = np.r_[same, False] | np.r_[False, same]
    return {file.rows.documents[int(row)] for row in once[order[twins]]}


def _look_for_alike(file: File, name: str, ids: Sequence[bytes]) -> None:
    import unicodedata

    texts = [decode(raw) for raw in ids]
    foldings: dict[str, Callable[[str], str]] = {
        "unicode": lambda text: unicodedata.normalize("NFC", text),
        "case": str.casefold,
        "zeros": lambda text: (text.lstrip("0") or "0") if text.isdigit() else text,
    }
    for kind, fold in foldings.items():
        groups: dict[str, list[str]] = {}
        for text in texts:
            groups.setdefault(fold(text), []).append(text)
        pairs = [" and ".join(map(ascii, group)) for group in groups.values() if len(group) > 1]
        if pairs:
            what = f"{n_of(len(pairs), 'group')} of {name} ids that differ in nothing else: {'; '.join(pairs[:SHOWN])}"
            file.report(f"ids-differ-in-{kind}", what, len(pairs), None, [])


def look_for_scattered(file: File) -> None:
    """Report topics whose lines stand in several places."""
    topic = file.rows.topic
    starts = np.flatnonzero(np.r_[True, topic[1:] != topic[:-1]])
    if len(starts) == len(file.rows.topics):
        return
    again = starts[np.setdiff1d(np.arange(len(starts)), np.unique(topic[starts], return_index=True)[1])]
    what = f"{n_of(len(np.unique(topic[again])), 'topic')} in several places"
    file.add_rows("topics-scattered", what, again, lambda row: f"topic {show(file.topic(row))} again")


def look_at_second(file: File, values: dict[bytes, tuple[int, int]], code: str, usual: tuple[bytes, ...]) -> None:
    """Report values of the second column other than the usual; `values` holds how often each occurs and its first row."""
    other = {value: found for value, found in values.items() if value not in usual}
    if other:
        count = sum(n for n, _ in other.values())
        shown = ", ".join(show(decode(value)) for value in list(other)[:SHOWN]) + (" …" if len(other) > SHOWN else "")
        first = min(row for _, row in other.values())
        at = [(int(file.rows.start[first]), "")] if len(file.rows.start) else []
        file.add(code, f"{n_of(count, 'line')} with {shown}", count, at)
