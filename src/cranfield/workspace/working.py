"""A process that works questions out for another: it reads them as lines from its standard input, one after the other.

It answers with lines: how far it is, and in the end that the result is on disk, or why there is none. When the other
process ends, however that happens, its end of the pipe closes and this one ends as well. What it prints, and the trace
of a mistake, goes to the standard error of whoever started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
import warnings
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from cranfield.errors import CranfieldError, DataWarning
from cranfield.hearing import heard
from cranfield.parameters import masked

if TYPE_CHECKING:
    from collections.abc import Callable

    from cranfield.workspace.results import Kept

OFTEN = 0.1  # seconds between two words on progress
KINDNESS = 5  # what judging does at the same time comes first


def answered(folder: str, db: str | None, verb: str, parameters: dict[str, Any], tell: Callable[..., None]) -> Kept:
    """The answer to a question, with all that was said on the way."""
    from cranfield.workspace.bench import open_bench
    from cranfield.workspace.results import Kept, Result
    from cranfield.workspace.verb import VERBS

    start = time.perf_counter()
    said: list[str] = []
    bench = open_bench(folder, db)
    try:
        with warnings.catch_warnings(record=True) as warned, heard(said.append):
            warnings.simplefilter("always")
            asked = VERBS[verb](**parameters)
            place = asked.place(bench)
            answer = asked.run(bench, tell)
            said += [str(each.message) for each in warned if issubclass(each.category, DataWarning)]
            notes = [masked(note).replace(f"{bench.folder}/", "") for note in (*said, *answer.notes())]
            result = Result(
                asked.json(answer), asked.to_csv(answer), asked.html(bench, answer), list(dict.fromkeys(notes))
            )
        return Kept(verb, result, place, time.time(), time.perf_counter() - start)
    finally:
        bench.close()


def work(task: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> None:
    """Work out one question, put the result on disk and say so."""
    from cranfield.workspace.results import Results

    last = 0.0

    def tell(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            reply({"done": done, "total": total})

    try:
        kept = answered(task["folder"], task["db"], task["verb"], task["parameters"], tell)
        Results(task["results"], task["room"]).write(task["question"], kept)
    except CranfieldError as error:
        reply({"failed": masked(str(error)).replace(f"{task['folder']}/", "")})
    except MemoryError:
        reply({"failed": "there is not enough memory for this; ask for fewer runs"})
    except Exception:
        print(f"job {task['id']} ({task['verb']}): unexpected", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
        reply({"broken": True})
    else:
        reply({"ready": True})


def _listen(source: IO[str], tasks: SimpleQueue[dict[str, Any]]) -> None:
    """Take tasks in; nobody at the other end: end at once, whatever is being worked out."""
    try:
        for line in source:
            tasks.put(json.loads(line))
    finally:
        os._exit(0)


def main() -> None:
    """Answer questions until nobody asks any more."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what anybody prints is no answer
    if hasattr(os, "nice"):
        os.nice(KINDNESS)
    tasks: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, tasks), daemon=True).start()

    def reply(words: dict[str, Any]) -> None:
        try:
            out.write(json.dumps(words) + "\n")
            out.flush()
        except OSError:  # nobody listens
            os._exit(0)

    while True:
        task = tasks.get()
        reply({"begun": task["id"]})
        work(task, reply)


if __name__ == "__main__":
    main()
