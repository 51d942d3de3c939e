"""trec_eval's command line with the same options and byte-identical output, as version 10 or version 9.

Numbers come from the same kernels, hits and measures as everything else. This package adds what makes the output
trec_eval's: the order of the lines, the rounding, the effect of `-c` on missing topics, and known bugs that the output
must repeat. Lines printed before a topic that cannot be evaluated stay, as in the original. NumPy is loaded only when
there is something to evaluate.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from cranfield.base.text_layout import for_screen, legible
from cranfield.compat.trec_eval.catalogue import manual, request, requested_measures
from cranfield.compat.trec_eval.inputs import ABORTED, USAGE, StopError, parse, read, read_zscores

__all__ = ["main"]

BROKEN_PIPE = 141


def main(argv: list[str], stdout: Any = None, stderr: Any = None, stdin: Any = None) -> int:
    """Run trec_eval on these arguments; the exit code is trec_eval's.

    >>> import io
    >>> main(["-m", "nosuch", "qrels", "run"], stderr=io.StringIO())
    1
    """
    lines: list[str] = []
    code = 0
    try:
        _run(argv, lines, stdin)
    except StopError as stop:
        code = stop.code
        if stop.reason:
            print(f"trec_eval: {legible(stop.reason)}", file=sys.stderr if stderr is None else stderr)
    if code == ABORTED:  # an aborted program loses its buffered output
        return code
    try:
        _write(sys.stdout if stdout is None else stdout, "".join(lines))
    except BrokenPipeError:  # `| head` has seen enough
        if stdout is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _write(stream: Any, text: str) -> None:
    """Write ids as the bytes that were read; on a terminal, control characters are removed."""
    text = for_screen(text, stream)
    if hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "surrogateescape"))
    else:
        stream.write(text)
    stream.flush()


def _run(argv: list[str], lines: list[str], stdin: Any) -> None:
    options = parse(argv)
    if options.show_version:
        from cranfield import __version__

        raise StopError(0, f"version {options.version}, as printed by cranfield {__version__}")
    kinds = requested_measures(options.measures, options.version)
    if options.help:
        lines.append(manual([kind for kind, _ in kinds] if options.measures else []))
        return
    if len(options.files) != 2:
        raise StopError(1, f"expected 2 files, judgments and a run, found {len(options.files)}\n{USAGE}")
    if options.judgments not in ("qrels", "qrels_jg", "prefs", "qrels_prefs"):
        raise StopError(2, f"-R expects qrels, qrels_jg, prefs or qrels_prefs, found {options.judgments!r}")
    if options.results != "trec_results":
        raise StopError(2, f"-T expects trec_results, found {options.results!r}")
    from cranfield.compat.trec_eval.evaluation import Evaluation, summary, topic_lines

    requests = [request(kind, parameters) for kind, parameters in kinds]
    inputs = read(options, stdin)
    zscores = None if options.zscores is None else read_zscores(options.zscores)
    evaluation = Evaluation(options, requests, inputs, zscores)
    if options.per_topic:
        lines += topic_lines(evaluation)
    if evaluation.stop is not None:
        raise evaluation.stop
    if options.summary:
        lines += summary(evaluation)
