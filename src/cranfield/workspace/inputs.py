"""Which files a verb reads, by name, and by which rules: the one value that all verbs take.

Nothing is opened before a verb asks for it. Standard input (`-`) can be any one of the files, and only one of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError
from cranfield.workspace.topics import queries_of, topic_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collection import Extras, Qrels, Queries
    from cranfield.conventions import Conventions
    from cranfield.formats.format import Fields
    from cranfield.formats.topics import TopicTable
    from cranfield.run import Run

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10")


@dataclass(frozen=True)
class Inputs:
    """Files and rules. Runs may be patterns of files; `topics` is a file of ids; `changes` are single conventions."""

    qrels: str | None = None
    runs: Sequence[str] = ()
    measures: Sequence[str] = ()
    table: str | None = None  # scores, in place of judgments and runs
    topics: str | None = None
    topics_file: str | None = None  # a table of topics: what was asked, and columns to split or weigh by

    rel: float | None = None
    preset: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    lenient: bool = False
    qrels_format: str | None = None
    run_format: str | None = None
    fields: Fields | None = None  # what columns with names are called
    threads: int | None = None

    # what some measures need to know
    baseline: str | None = None
    collection_size: int | None = None
    preferences: str | None = None
    groups: str | None = None
    aspect: str | None = None
    costs: str | None = None

    @property
    def others(self) -> tuple[str | None, ...]:
        """The files beside judgments and runs."""
        return self.topics, self.topics_file, self.baseline, self.preferences, self.groups, self.aspect, self.costs

    @property
    def collection(self) -> str | None:
        """The collection's folder or name, where that is what names the judgments."""
        if self.qrels is None:
            return None
        from cranfield.formats.reading import qrels_in

        return None if qrels_in(self.qrels) == self.qrels else self.qrels

    @property
    def judgments(self) -> str:
        """The qrels file."""
        if self.qrels is None:
            raise DataError("expected judgments and runs, or a table of scores")
        return self.qrels

    def files(self, *more: str | None) -> list[str] | dict[str, str]:
        """The run files under distinct names; standard input can be one of them, of the others or of `more`, once."""
        from cranfield.formats import expand

        files = expand(self.runs)
        once(*files, self.qrels, *self.others, *more)
        return labelled(files)

    def open_runs(self, *more: str | None) -> list[Run]:
        """The runs, opened and ordered as the conventions say; see `files`."""
        from cranfield.formats import as_runs

        rules = self.conventions()
        opened = as_runs(self.files(*more), self.run_format, self.lenient, self.fields)
        return [rules.ordered(run) for run in opened]

    def open_qrels(self) -> Qrels:
        """The judgments, opened."""
        from cranfield.formats import read_qrels

        return read_qrels(self.judgments, self.qrels_format, self.lenient, fields=self.fields)

    def conventions(self) -> Conventions:
        """The preset with its changes."""
        from cranfield.conventions import conventions

        return conventions(self.preset, **self.changes)

    def chosen_topics(self) -> list[str] | None:
        """The ids in the file of topics, or None for all topics."""
        return None if self.topics is None else read_topics(self.topics)

    def topic_table(self, asking: str) -> TopicTable:
        """The queries and columns of the topics, from the topics file or the collection, for an option that needs them."""
        table = topic_table(self.topics_file, self.collection, self.fields)
        if table is None:
            advice = "name a collection in place of QRELS, or give --topics-file FILE"
            raise ConventionError(f"{asking}: nothing is known of the topics but their ids; {advice}")
        return table

    def queries(self) -> Queries | None:
        """What each topic asks, read when it is first looked up; None where nobody can know."""
        return queries_of(self.topics_file, self.collection, self.fields)

    def options(self) -> dict[str, Any]:
        """What `Evaluator` takes beside judgments and measures, as far as anything was said."""
        known = {
            "rel": self.rel,
            "topics": self.chosen_topics(),
            "conventions": self.preset,
            "lenient": self.lenient or None,
            "qrels_format": self.qrels_format,
            "run_format": self.run_format,
            "fields": self.fields,
            "threads": self.threads,
            "extras": self._extras(),
            "baseline": self.baseline,
            "queries": self.queries(),
        }
        return {name: value for name, value in known.items() if value is not None} | dict(self.changes)

    def _extras(self) -> Extras | None:
        """What is known of the collection, read from its files."""
        known: dict[str, Any] = {}
        if self.collection_size is not None:
            known["size"] = self.collection_size
        if self.preferences is not None:
            from cranfield.formats.preferences import as_preferences

            known["preferences"] = as_preferences(self.preferences)
        if self.groups is not None:
            from cranfield.formats.groups import read_groups

            known["groups"] = read_groups(self.groups)
        if self.aspect is not None:
            from cranfield.formats import read_qrels

            known["aspect"] = read_qrels(self.aspect).to_dict()
        if self.costs is not None:
            from cranfield.formats.costs import read_costs

            known["costs"] = read_costs(self.costs)
        if not known:
            return None
        from cranfield.collection import Extras

        return Extras(**known)


def once(*files: str | None) -> None:
    """Stop where standard input is to be read twice."""
    if files.count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")


def labelled(files: list[str]) -> list[str] | dict[str, str]:
    """The files, by name where two would get the same: with as much of the folder as tells them apart, or #2."""
    from cranfield.evaluate import distinct
    from cranfield.formats import run_name

    names = ["stdin" if file == "-" else run_name(file) for file in files]
    if len(set(names)) == len(names):
        return files
    folders = [os.path.dirname(os.path.abspath(file)).split(os.sep) for file in files]
    labels = []
    for name, folder in zip(names, folders, strict=True):
        same = [other for other, known in zip(folders, names, strict=True) if known == name]
        depths = [] if len(same) == 1 else range(1, len(folder))
        depth = next((d for d in depths if [other[-d:] for other in same].count(folder[-d:]) == 1), 0)
        labels.append("/".join([*folder[len(folder) - depth :], name]))
    return dict(zip(distinct(labels), files, strict=True))


def read_topics(path: str) -> list[str]:
    """The topics that a file lists: the first word of each line; empty lines and # comments are passed over."""
    from cranfield.formats.streams import opened
    from cranfield.kernels import decode

    content = bytes(opened(path).buffer)
    if b"\0" in content:
        raise DataError(f"{path}: expected an id on each line, found null bytes; is it a text?")
    lines = (line.split(maxsplit=1) for line in content.splitlines())
    topics = list(dict.fromkeys(decode(words[0]) for words in lines if words and not words[0].startswith(b"#")))
    if not topics:
        raise DataError(f"{path}: expected a topic's id on each line, found none")
    return topics
