"""Which files a command reads, under which names and by which rules: the one value that all commands take.

No file is opened before a command needs it. Standard input (`-`) can be any one of the files, but only one of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.notifications import say, tell_used
from cranfield.base.qrels import Queries
from cranfield.base.text_layout import counted
from cranfield.inputs.logs import file_or_qrels, judgments_of, named
from cranfield.inputs.topics import queries_of, topic_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.base.conventions import Conventions
    from cranfield.base.qrels import Extras, Qrels
    from cranfield.base.run import Run
    from cranfield.evaluation.topics import TopicWeights
    from cranfield.formats.csv_tables import Dialect
    from cranfield.formats.format import Fields
    from cranfield.formats.topic_tables import TopicTable


DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10")


@dataclass(frozen=True, eq=False, repr=False)
class Inputs:
    """Files and rules. Runs may be patterns of files; `topics` is a file of ids; `changes` are single conventions."""

    qrels: str | None = None
    runs: Sequence[str] = ()
    measures: Sequence[str] = ()
    table: str | None = None  # a table of scores instead of judgments and runs
    topics: str | None = None
    weigh_by: str | None = None  # a column of the topics
    design_weights: bool = False  # whether the topics are a sample whose design gives the weights
    topics_file: str | None = None  # a table of topics: queries, and columns to split or weight by

    rel: float | None = None
    preset: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    lenient: bool = False
    qrels_format: str | None = None
    run_format: str | None = None
    fields: Fields | None = None  # names of columns
    delimiter: str | None = None  # the dialect of tables; None means detected
    encoding: str | None = None
    decimal: str | None = None
    grades: Mapping[float, float] | None = None  # a mapping of grades
    ignore_case: bool = False  # for topics joined by query text
    threads: int | None = None

    # further data that some measures need
    baseline: str | None = None
    collection_size: int | None = None
    preferences: str | None = None
    groups: str | None = None
    aspect: str | None = None
    costs: str | None = None

    @property
    def others(self) -> tuple[str | None, ...]:
        """The files besides judgments and runs."""
        return self.topics, self.topics_file, self.baseline, self.preferences, self.groups, self.aspect, self.costs

    @property
    def collection(self) -> str | None:
        """The collection's folder or name, if it names the judgments."""
        if self.qrels is None:
            return None
        from cranfield.formats.runs_and_qrels import qrels_in

        folder = self.qrels
        if self.workspace is not None:
            from cranfield.formats.collection_folder import DOCUMENTS, collection_home

            folder = self.workspace
            if DOCUMENTS not in collection_home(folder)[1]:
                return None
        return None if qrels_in(folder) == folder else folder

    @cached_property
    def workspace(self) -> str | None:
        """The workspace that the judgments belong to: it has runs, topics and texts; None for other judgments."""
        log = named(self.qrels)
        if log is not None:
            return log.workspace
        return self.qrels if self.qrels is not None and os.path.isdir(self.qrels) else None

    @cached_property
    def judgments(self) -> str | Qrels:
        """The qrels file, or the qrels themselves if a log is named."""
        if self.qrels is None:
            raise DataError("expected judgments and runs, or a table of scores")
        return judgments_of(self.qrels)

    def files(self, *more: str | None) -> list[str] | dict[str, str]:
        """The run files by distinct names. Raise DataError if standard input occurs twice among all files, including `more`."""
        arguments = run_arguments(self.runs, self.workspace)
        refuse_second_stdin(
            *(path_of(one) for one in more if one is not None),
            *(one.file for one in arguments),
            self.qrels,
            *self.others,
        )
        return labelled(arguments)

    def just(self, number: int) -> list[Any]:
        """Exactly `number` run files, each with its name if it has one."""
        files = self.files()
        if len(files) != number:
            raise DataError(f"expected {counted(number, 'run')}, found {len(files)}: {', '.join(self.runs)}")
        return [{name: file} for name, file in files.items()] if isinstance(files, dict) else list(files)

    @property
    def streams(self) -> bool:
        """Whether one of the files is standard input."""
        return "-" in (self.qrels, self.table, *map(path_of, self.runs), *self.others)

    def open_runs(self, *more: str | None) -> list[Run]:
        """The runs, opened and ordered by the conventions; see `files`."""
        from cranfield.formats import as_runs

        rules = self.conventions()
        opened = as_runs(self.files(*more), self.run_format, self.lenient, self.fields, **self.dialect.options)
        return [rules.ordered(self.with_ids(run)) for run in opened]

    def with_ids(self, run: Run) -> Run:
        """The run; if it names topics by query and the queries are known, with topic ids instead."""
        from cranfield.formats.topic_tables import run_by_id

        return run if self.queries is None else run_by_id(run, self.queries, self.ignore_case) or run

    @property
    def dialect(self) -> Dialect:
        """The dialect of tables, as far as the user gave it."""
        from cranfield.formats.csv_tables import Dialect

        return Dialect(self.delimiter, self.encoding, self.decimal)

    def open_qrels(self) -> Qrels:
        """The judgments, opened."""
        from cranfield.formats.runs_and_qrels import as_qrels
        from cranfield.formats.topic_tables import qrels_by_id

        duplicates = self.changes.get("duplicates", "error")
        options: dict[str, Any] = {**self.dialect.options, "duplicates": duplicates, "grades": self.grades}
        qrels = as_qrels(self.judgments, self.qrels_format, self.lenient, fields=self.fields, **options)
        if self.queries is None:
            return qrels
        return qrels_by_id(qrels, self.queries, self.ignore_case, duplicates) or qrels

    def conventions(self) -> Conventions:
        """The preset with its changes."""
        from cranfield.base.conventions import conventions

        return conventions(self.preset, **self.changes)

    def chosen_topics(self) -> list[str] | None:
        """The ids in the file of topics, or None for all topics."""
        return None if self.topics is None else read_topics(self.topics)

    def topic_table(self, asking: str) -> TopicTable:
        """The queries and columns of the topics, from the topics file or the collection; `asking` is the option that needs it."""
        tell_used("topics_file")
        table = self._topics_in_file or topic_table(None, self.collection)
        if table is None:
            advice = "name a collection in place of QRELS, or give --topics-file FILE"
            raise ConventionError(f"{asking}: nothing is known of the topics but their ids; {advice}")
        return table

    @cached_property
    def _topics_in_file(self) -> TopicTable | None:
        """The topics file, read once (it may be standard input); None without one."""
        if self.topics_file is None:
            return None
        return topic_table(self.topics_file, None, self.fields, self.dialect, self.lenient)

    def weights(self) -> TopicWeights | None:
        """The weight of each topic, from the named column or from the design of the sample; None without weights."""
        if self.weigh_by is not None and self.design_weights:
            raise ConventionError("--weigh-by and --design-weights cannot be combined; give one of them")
        if self.weigh_by is None and not self.design_weights:
            self._note_sample()
            return None
        from cranfield.evaluation.topics import DesignWeights, weights_of_column

        if self.weigh_by is None:
            return DesignWeights.of_table(self.topic_table("--design-weights"))
        return weights_of_column(self.topic_table(f"--weigh-by {self.weigh_by}"), self.weigh_by)

    def _note_sample(self) -> None:
        """Note that the plain mean does not describe all traffic, if the topics file is a sample that has certain topics."""
        if self._topics_in_file is None:
            return
        from cranfield.evaluation.topics import unweighted_sample_in_words

        note = unweighted_sample_in_words(self._topics_in_file)
        say([note] if note else [])

    @cached_property
    def queries(self) -> Queries | None:
        """The query of each topic; None if queries are unknown."""
        table = self._topics_in_file
        return queries_of(None, self.collection) if table is None else Queries(lambda: table.queries)

    def options(self) -> dict[str, Any]:
        """The options for `Evaluator`, as far as the user gave them."""
        options = {
            "rel": self.rel,
            "topics": self.chosen_topics(),
            "conventions": self.preset,
            "lenient": self.lenient or None,
            "qrels_format": self.qrels_format,
            "run_format": self.run_format,
            "fields": self.fields,
            **self.dialect.options,
            "grades": self.grades,
            "ignore_case": self.ignore_case or None,
            "threads": self.threads,
            "extras": self._extras(),
            "baseline": self.baseline,
            "weights": self.weights(),
            "queries": self.queries,
        }
        return {name: value for name, value in options.items() if value is not None} | dict(self.changes)

    def _extras(self) -> Extras | None:
        """Further data on the collection, read from its files."""
        names = ("preferences", "groups", "aspect", "costs")
        files = {name: path for name in names if (path := getattr(self, name)) is not None}
        if not files and self.collection_size is None:
            return None
        from cranfield.base.qrels import Extras
        from cranfield.formats.extras import as_preferences, read_costs, read_groups
        from cranfield.formats.runs_and_qrels import as_qrels

        def read_aspect(path: str) -> Any:
            return as_qrels(file_or_qrels(path)).to_dict()

        readers = zip(names, (as_preferences, read_groups, read_aspect, read_costs), strict=True)
        return Extras(self.collection_size, **{name: read(files[name]) for name, read in readers if name in files})


def refuse_second_stdin(*files: str | None) -> None:
    """Raise DataError if standard input would be read twice."""
    if files.count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")


class RunArgument(NamedTuple):
    """A run file, and its name if the user gave one."""

    label: str
    file: str


def run_arguments(typed: Sequence[str], workspace: str | None = None) -> list[RunArgument]:
    """The run files in the arguments: paths, patterns, or NAME=path; a file with an = in its name wins.

    With a workspace, an argument that is not a path may name one of its runs.
    """
    from cranfield.formats import expand

    arguments = []
    for text in typed:
        path = path_of(text)
        label = text[: -len(path)].removesuffix("=") if path != text else ""
        if workspace is not None and not os.path.lexists(path):
            from cranfield.formats.run_files import run_named

            if (run := run_named(workspace, path)) is not None:
                arguments.append(RunArgument(label or run.name, run.path))
                continue
        files = expand([path])
        if label and len(files) > 1:
            raise ConventionError(f"{text}: {label!r} stands for {len(files)} runs, expected one")
        arguments += [RunArgument(label, file) for file in files]
    for label in (labels := [one.label for one in arguments if one.label]):
        if labels.count(label) > 1:
            raise ConventionError(f"two runs are called {label!r}; give each a name of its own")
    return arguments


def path_of(typed: str) -> str:
    """An argument without its name: NAME=path, unless a file has this name.

    >>> path_of("new=runs/a.run"), path_of("./k=3.run"), path_of("a.run")
    ('runs/a.run', './k=3.run', 'a.run')
    """
    label, _, path = typed.partition("=")
    if not label or not path or {"/", os.sep} & set(label) or os.path.lexists(typed):
        return typed
    import glob

    return typed if glob.glob(typed) else path


def labelled(arguments: Sequence[RunArgument]) -> list[str] | dict[str, str]:
    """The files, by name if names were given or would repeat: with as much of the folder as needed, or #2."""
    from cranfield.evaluation.evaluate import distinct
    from cranfield.formats import run_name

    files = [one.file for one in arguments]
    names = [one.label or ("stdin" if one.file == "-" else run_name(one.file)) for one in arguments]
    if len(set(names)) == len(names):
        return dict(zip(names, files, strict=True)) if any(one.label for one in arguments) else files
    folders = [os.path.dirname(os.path.abspath(file)).split(os.sep) for file in files]
    labels, own_names = [], {one.label for one in arguments}
    for name, folder in zip(names, folders, strict=True):
        same = [other for other, other_name in zip(folders, names, strict=True) if other_name == name]
        depths = [] if len(same) == 1 or name in own_names else range(1, len(folder))
        depth = next((d for d in depths if [other[-d:] for other in same].count(folder[-d:]) == 1), 0)
        labels.append("/".join([*folder[len(folder) - depth :], name]))
    return dict(zip(distinct(labels), files, strict=True))


def read_topics(path: str) -> list[str]:
    """The topic ids in a file: the first word of each line; empty lines and # comments are skipped."""
    from cranfield.base.kernels import decode
    from cranfield.formats.streams import opened

    content = bytes(opened(path).buffer)
    if b"\0" in content:
        raise DataError(f"{path}: expected an id on each line, found null bytes; is it a text?")
    lines = (line.split(maxsplit=1) for line in content.splitlines())
    topics = list(dict.fromkeys(decode(words[0]) for words in lines if words and not words[0].startswith(b"#")))
    if not topics:
        raise DataError(f"{path}: expected a topic's id on each line, found none")
    return topics
