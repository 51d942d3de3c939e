"""A data set of the BEIR benchmark: corpus.jsonl, queries.jsonl and qrels/train|dev|test.tsv."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.errors import FormatError
from cranfield.formats.sources.json_lines import objects
from cranfield.formats.sources.rows import RowSource
from cranfield.formats.sources.source import Files, Options, named_like
from cranfield.formats.streams import run_name

if TYPE_CHECKING:
    from collections.abc import Iterator


class Beir(RowSource):
    """One split of a BEIR data set: all its documents, the judgments of the split and the topics that they judge."""

    name = "beir"
    about = "BEIR: corpus.jsonl, queries.jsonl and qrels/*.tsv, of which --split takes one (test, if there is one)"
    family = "beir"
    judged_only = True

    @classmethod
    def find(cls, path: str, options: Options) -> Files | None:
        """A folder with those names."""
        if not os.path.isdir(path):
            return None
        corpus, queries = named_like(path, r"corpus\.jsonl"), named_like(path, r"queries\.jsonl")
        folder = os.path.join(path, "qrels")
        splits = {run_name(name).removesuffix(".tsv"): name for name in _tables(folder)}
        if not corpus or not queries or (not splits and options.split is None):
            return None
        return Files(corpus, queries, [splits[_split(splits, options.split, path)]])

    def rows(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file; what stands in `metadata` is raised to the row, and an empty one dropped."""
        for number, row in objects(path, self.options.encoding):
            extra = row.pop("metadata", None)
            if isinstance(extra, dict):
                row.update({key: value for key, value in extra.items() if key not in row})
            yield number, row


def _tables(folder: str) -> list[str]:
    return named_like(folder, r".*\.tsv") if os.path.isdir(folder) else []


def _split(splits: dict[str, str], wanted: str | None, path: str) -> str:
    if wanted is None and "test" in splits:
        return "test"
    if wanted is None and len(splits) == 1:
        return next(iter(splits))
    if wanted not in splits:
        known = ", ".join(splits) or "none"
        found = f"no split {wanted!r}" if wanted else "several splits"
        raise FormatError(f"{path}: {found}; there are {known} (--split NAME takes one)")
    return wanted
