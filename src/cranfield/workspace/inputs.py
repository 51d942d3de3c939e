"""Which files a verb reads, by name, and by which rules: the one value that all verbs take.

Nothing is opened before a verb asks for it. Standard input (`-`) can be any one of the files, and only one of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.columns import counted
from cranfield.errors import ConventionError, DataError
from cranfield.hearing import tell_used
from cranfield.workspace.logs import judgments_of
from cranfield.workspace.topics import queries_of, topic_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collection import Extras, Qrels, Queries
    from cranfield.conventions import Conventions
    from cranfield.formats.format import Fields
    from cranfield.formats.tables import Dialect
    from cranfield.formats.topics import TopicTable
    from cranfield.run import Run
    from cranfield.weights import Weights

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10")


@dataclass(frozen=True)
class Inputs:
    """Files and rules. Runs may be patterns of files; `topics` is a file of ids; `changes` are single conventions."""

    qrels: str | None = None
    runs: Sequence[str] = ()
    measures: Sequence[str] = ()
    table: str | None = None  # scores, in place of judgments and runs
    topics: str | None = None
    weigh_by: str | None = None  # a column of the topics
    topics_file: str | None = None  # a table of topics: what was asked, and columns to split or weigh by

    rel: float | None = None
    preset: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    lenient: bool = False
    qrels_format: str | None = None
    run_format: str | None = None
    fields: Fields | None = None  # what columns with names are called
    delimiter: str | None = None  # how tables are written; None is detected
    encoding: str | None = None
    decimal: str | None = None
    grades: Mapping[float, float] | None = None  # what the grades of judgments count as
    ignore_case: bool = False  # where topics are joined by what they ask
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

    @cached_property
    def judgments(self) -> str | Qrels:
        """The qrels file; the qrels themselves where a log is named."""
        if self.qrels is None:
            raise DataError("expected judgments and runs, or a table of scores")
        return judgments_of(self.qrels)

    def files(self, *more: str | None) -> list[str] | dict[str, str]:
        """The run files under distinct names; standard input can be one of them, of the others or of `more`, once."""
        given = given_runs(self.runs)
        once(*(path_of(one) for one in more if one is not None), *(one.file for one in given), self.qrels, *self.others)
        return labelled(given)

    def just(self, number: int) -> list[Any]:
        """So many run files one by one, each under its name where it has been given one."""
        files = self.files()
        if len(files) != number:
            raise DataError(f"expected {counted(number, 'run')}, found {len(files)}: {', '.join(self.runs)}")
        return [{name: file} for name, file in files.items()] if isinstance(files, dict) else list(files)

    @property
    def streams(self) -> bool:
        """Whether anything is read from standard input."""
        return "-" in (self.qrels, self.table, *map(path_of, self.runs), *self.others)

    def open_runs(self, *more: str | None) -> list[Run]:
        """The runs, opened and ordered as the conventions say; see `files`."""
        from cranfield.formats import as_runs

        rules = self.conventions()
        opened = as_runs(self.files(*more), self.run_format, self.lenient, self.fields, **self._said_of_tables)
        return [rules.ordered(self.with_ids(run)) for run in opened]

    def with_ids(self, run: Run) -> Run:
        """A run by the ids of its topics, where it goes by what they ask and that is known."""
        from cranfield.formats.by_text import run_by_id

        queries = self.queries()
        return run if queries is None else run_by_id(run, queries, self.ignore_case) or run

    @property
    def dialect(self) -> Dialect:
        """How tables are written, as far as somebody said so."""
        from cranfield.formats.tables import Dialect

        return Dialect(self.delimiter, self.encoding, self.decimal)

    @property
    def _said_of_tables(self) -> dict[str, str | None]:
        return {"delimiter": self.delimiter, "encoding": self.encoding, "decimal": self.decimal}

    def open_qrels(self) -> Qrels:
        """The judgments, opened."""
        from cranfield.formats.by_text import qrels_by_id
        from cranfield.formats.reading import as_qrels

        duplicates = self.changes.get("duplicates", "error")
        said = {**self._said_of_tables, "duplicates": duplicates, "grades": self.grades}
        qrels = as_qrels(self.judgments, self.qrels_format, self.lenient, fields=self.fields, **said)
        queries = self.queries()
        return qrels if queries is None else qrels_by_id(qrels, queries, self.ignore_case, duplicates) or qrels

    def conventions(self) -> Conventions:
        """The preset with its changes."""
        from cranfield.conventions import conventions

        return conventions(self.preset, **self.changes)

    def chosen_topics(self) -> list[str] | None:
        """The ids in the file of topics, or None for all topics."""
        return None if self.topics is None else read_topics(self.topics)

    def topic_table(self, asking: str) -> TopicTable:
        """The queries and columns of the topics, from the topics file or the collection, for an option that needs them."""
        tell_used("topics_file")
        table = topic_table(self.topics_file, self.collection, self.fields, self.dialect, self.lenient)
        if table is None:
            advice = "name a collection in place of QRELS, or give --topics-file FILE"
            raise ConventionError(f"{asking}: nothing is known of the topics but their ids; {advice}")
        return table

    def weights(self) -> Weights | None:
        """How much each topic counts, by the column that was named; None where none was."""
        if self.weigh_by is None:
            return None
        from cranfield.weights import Weights

        table = self.topic_table(f"--weigh-by {self.weigh_by}")
        return Weights(self.weigh_by, table.numbers(self.weigh_by), table.where)

    def queries(self) -> Queries | None:
        """What each topic asks; None where nobody can know."""
        return self._queries

    @cached_property
    def _queries(self) -> Queries | None:
        return queries_of(self.topics_file, self.collection, self.fields, self.dialect, self.lenient)

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
            **self._said_of_tables,
            "grades": self.grades,
            "ignore_case": self.ignore_case or None,
            "threads": self.threads,
            "extras": self._extras(),
            "baseline": self.baseline,
            "weights": self.weights(),
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
            from cranfield.formats.reading import as_qrels

            known["aspect"] = as_qrels(judgments_of(self.aspect)).to_dict()
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


class Given(NamedTuple):
    """A run's file, and what it is to be called where that was said."""

    label: str
    file: str


def given_runs(typed: Sequence[str]) -> list[Given]:
    """The run files that were typed: paths, patterns of them, or NAME=path; a file whose name has an = in it comes first."""
    from cranfield.formats import expand

    given = []
    for text in typed:
        path = path_of(text)
        label = text[: -len(path)].removesuffix("=") if path != text else ""
        files = expand([path])
        if label and len(files) > 1:
            raise ConventionError(f"{text}: {label!r} stands for {len(files)} runs, expected one")
        given += [Given(label, file) for file in files]
    for label in (labels := [one.label for one in given if one.label]):
        if labels.count(label) > 1:
            raise ConventionError(f"two runs are called {label!r}; give each a name of its own")
    return given


def path_of(typed: str) -> str:
    """What was typed without the name before it: NAME=path, unless there is a file that is called so.

    >>> path_of("new=runs/a.run"), path_of("./k=3.run"), path_of("a.run")
    ('runs/a.run', './k=3.run', 'a.run')
    """
    label, _, path = typed.partition("=")
    if not label or not path or {"/", os.sep} & set(label) or os.path.lexists(typed):
        return typed
    import glob

    return typed if glob.glob(typed) else path


def labelled(given: Sequence[Given]) -> list[str] | dict[str, str]:
    """The files, by name where one was given or two would be the same: with as much of the folder as tells them apart, or #2."""
    from cranfield.evaluate import distinct
    from cranfield.formats import run_name

    files = [one.file for one in given]
    names = [one.label or ("stdin" if one.file == "-" else run_name(one.file)) for one in given]
    if len(set(names)) == len(names):
        return dict(zip(names, files, strict=True)) if any(one.label for one in given) else files
    folders = [os.path.dirname(os.path.abspath(file)).split(os.sep) for file in files]
    labels, said = [], {one.label for one in given}
    for name, folder in zip(names, folders, strict=True):
        same = [other for other, known in zip(folders, names, strict=True) if known == name]
        depths = [] if len(same) == 1 or name in said else range(1, len(folder))
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
