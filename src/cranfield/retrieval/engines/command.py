"""Any command as a system: topics on standard input, TREC lines on standard output.

Topics are passed as `id<TAB>text`, one per line, with single spaces in the text. `{k}` in the command and
CRANFIELD_K in its environment are the number of documents to return. The order of the lines is the order of the run.
`command:` starts the command once for all topics, so only the total time is known; `command-each:` starts it for
each topic, and its start counts as part of the answer.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.kernels import decode
from cranfield.formats import read_run
from cranfield.retrieval.systems_under_test import Broken, Query, Ranking, System

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.base.run import Run


class Command(System):
    """a command of yours: topics on its standard input (id, tab, text), TREC lines on its standard output."""

    name = "command"
    usage = "command:CMD"
    place = 6
    needs_documents = False
    in_process = False
    batch = True
    keeps_order = True

    def __init__(self, rest: str = "") -> None:
        super().__init__()
        if not rest.strip():
            raise ConventionError("command: expected a command, as in command:./search.sh")
        try:
            self.words = shlex.split(rest)
        except ValueError as error:
            raise ConventionError(f"command: {rest!r} cannot be split into words: {str(error).lower()}") from None
        self.seconds: float | None = None

    def timeout(self, seconds: float) -> None:
        """Set the time-out: per topic, or for all topics if they are answered at once."""
        self.seconds = seconds

    def search(self, query: Query, k: int) -> Ranking:
        return self.search_all([query], k).get(query.id, [])

    def search_all(self, queries: Sequence[Query], k: int) -> dict[str, Ranking]:
        words = [word.replace("{k}", str(k)) for word in self.words]
        topics = "".join(f"{query.id}\t{' '.join(query.text.split())}\n" for query in queries)
        try:
            done = subprocess.run(
                words,
                input=topics.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=self.seconds,
                env={**os.environ, "CRANFIELD_K": str(k)},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DataError(f"{words[0]}: still running after {self.seconds:g} s (--timeout)") from None
        except OSError as error:
            raise DataError(f"{words[0]}: cannot be started: {(error.strerror or str(error)).lower()}") from error
        answers = self._answers(done.stdout, queries, k)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            problem = f"{words[0]}: exit code {done.returncode}{f': {lines[-1][:200]}' if lines else ''}"
            raise Broken(problem, answers)
        return answers

    def _answers(self, printed: bytes, queries: Sequence[Query], k: int) -> dict[str, Ranking]:
        if not printed.strip():
            return {}
        name = f"output of {self.words[0]}"
        try:
            run: Run = read_run(printed, format="trec", name=name)
        except DataError as error:
            raise DataError(str(error).replace("<bytes>", name)) from None
        topics = {query.id for query in queries}
        unknown = [topic for topic in run.topics if topic not in topics]
        if unknown:
            raise DataError(f"{run.name}: topic {unknown[0]!r} was not asked for")
        table = run.table
        lists: list[Ranking] = [[] for _ in run.topics]  # in the order of the lines
        for t, document, score in zip(table.topic.tolist(), table.documents, table.value.tolist(), strict=True):
            lists[t].append((decode(document), score))
        return {topic: ranking[:k] for topic, ranking in zip(run.topics, lists, strict=True)}


class CommandEach(Command):
    """the same, started anew for each topic, so that each answer is timed (its start included)."""

    name = "command-each"
    usage = "command-each:CMD"
    place = 7
    batch = False
