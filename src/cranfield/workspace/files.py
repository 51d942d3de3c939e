"""Files by name: patterns, standard input once only, names that tell runs apart; checking and converting them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cranfield.errors import ConventionError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cranfield.check import Findings
    from cranfield.formats.convert import Converted


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
    from cranfield.formats import open_buffer
    from cranfield.kernels import decode

    lines = (line.split(maxsplit=1) for line in bytes(open_buffer(path)).removeprefix(b"\xef\xbb\xbf").splitlines())
    topics = list(dict.fromkeys(decode(words[0]) for words in lines if words and not words[0].startswith(b"#")))
    if not topics:
        raise DataError(f"{path}: expected a topic's id on each line, found none")
    return topics


def opened_once(runs: Sequence[str], *others: str | None) -> list[str] | dict[str, str]:
    """The run files under distinct names; standard input can be one of them or of the others, once."""
    from cranfield.formats import expand

    files = expand(runs)
    if [*files, *others].count("-") > 1:
        raise DataError("standard input can be read once only, found - twice")
    return labelled(files)


def draw_chart(make: Callable[[], dict[str, Any]], path: str) -> bool:
    """Write a chart if the file's ending is that of one, and say whether it was."""
    from cranfield.formats.streams import write_bytes
    from cranfield.report.charts import rendered

    ending = "json" if path.endswith(".vl.json") else path.rpartition(".")[2]
    if ending not in ("svg", "png", "pdf", "html") and not path.endswith(".vl.json"):
        return False
    write_bytes(path, [rendered(make(), ending)])
    return True


def write_together(files: Mapping[str, str]) -> None:
    """Write several files of text: all of them, or none."""
    from cranfield.formats import streams

    ended = {path: text if text.endswith("\n") else f"{text}\n" for path, text in files.items()}
    streams.write_together({path: text.encode("utf-8", "surrogateescape") for path, text in ended.items()})


def check_(files: Sequence[str], qrels: str | None = None, kind: Any = None) -> Findings:
    """What is wrong or suspicious in files (or patterns of them)."""
    from cranfield.check import check
    from cranfield.formats import expand

    return check(expand(files), qrels, kind)


def convert_(
    sources: Sequence[str],
    target: str,
    from_format: str | None = None,
    to_format: str | None = None,
    kind: Any = None,
    merge: Any = None,
    lenient: bool = False,
) -> Converted:
    """Write files (or patterns of them) in another format."""
    from cranfield.formats import expand
    from cranfield.formats.convert import convert

    if kind not in (None, "run", "qrels"):
        raise ConventionError(f"kind must be run or qrels, got {kind!r}")
    return convert(expand(sources), target, from_format, to_format, kind, merge, lenient)
