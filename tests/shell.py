"""The command line without a process: run a command, and get its exit code, data and messages."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from cranfield.cli import cli
from cranfield.cli.crash import EXIT_CODE

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@cache
def _read_folder(source: Path) -> tuple[list[str], dict[str, bytes]]:
    paths = sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts)
    folders = [str(path.relative_to(source)) for path in paths if path.is_dir()]
    return folders, {str(path.relative_to(source)): path.read_bytes() for path in paths if path.is_file()}


def copy_folder(source: Path, folder: Path) -> None:
    """Write the files of a folder that never changes, such as examples/, into another; they are read once."""
    folders, files = _read_folder(source)
    folder.mkdir(parents=True, exist_ok=True)
    for name in folders:
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    for name, content in files.items():
        with open(f"{folder}/{name}", "wb", buffering=0) as file:
            file.write(content)


class Answer(NamedTuple):
    code: int
    out: str
    err: str
    both: str


class _Both(io.BytesIO):
    """Keeps what is written to it, and passes it on to what both streams share."""

    def __init__(self, shared: io.BytesIO) -> None:
        super().__init__()
        self.shared = shared

    def write(self, data) -> int:
        self.shared.write(data)
        return super().write(data)


def text(stream: io.BytesIO) -> str:
    return stream.getvalue().decode("utf-8", "surrogateescape")


class _Screen(io.TextIOWrapper):
    """A stream that a terminal shows."""

    def isatty(self) -> bool:
        return True


def cranfield(
    *arguments: object,
    stdin: bytes = b"",
    folder: Path = EXAMPLES,
    columns: int | None = None,
    crashes: bool = False,
) -> Answer:
    """Run a command in a folder; on a terminal without colours if so many `columns` are given, else into pipes.

    What the command line would report as a crash (exit code 70) is raised, unless a test expects it by `crashes`.
    """
    if columns is not None:
        terminal = {"COLUMNS": str(columns), "NO_COLOR": "1"}
        with patch.dict(os.environ, terminal), patch("cranfield.cli.output.PATIENCE", 3600):
            return _run(True, arguments, stdin, folder, crashes)
    return _run(False, arguments, stdin, folder, crashes)


def _run(terminal: bool, arguments: tuple[object, ...], stdin: bytes, folder: Path, crashes: bool) -> Answer:
    streams = stream_pair(terminal)
    pair = {"stdout": streams.stdout, "stderr": streams.stderr}
    return streams.answer(run_with(pair, arguments, stdin, folder, crashes))


class StreamPair(NamedTuple):
    """Standard output and standard error, and what was written to each and to both."""

    stdout: io.TextIOWrapper
    stderr: io.TextIOWrapper
    out: io.BytesIO
    err: io.BytesIO
    both: io.BytesIO

    def answer(self, code: int) -> Answer:
        return Answer(code, text(self.out), text(self.err), text(self.both))


def stream_pair(terminal: bool) -> StreamPair:
    """New streams: of a terminal, or of pipes."""
    kind, both = _Screen if terminal else io.TextIOWrapper, io.BytesIO()
    out, err = _Both(both), _Both(both)
    stdout = kind(out, encoding="utf-8", write_through=True)
    stderr = kind(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    return StreamPair(stdout, stderr, out, err, both)


def run_with(
    streams: dict[str, Any], arguments: tuple[object, ...], stdin: bytes, folder: Path, crashes: bool = False
) -> int:
    """The exit code of a command that writes to these streams in a folder; a crash is raised unless `crashes` expects it."""
    here, code = Path.cwd(), 0
    os.chdir(folder)
    try:
        with patch.multiple(sys, stdin=io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"), **streams):
            try:
                cli.main([str(argument) for argument in arguments], prog_name="cranfield")
            except SystemExit as end:
                if end.code == EXIT_CODE and not crashes and end.__cause__ is not None:
                    raise end.__cause__ from None
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os.chdir(here)
    return code


def generator(name: str) -> ModuleType:
    """A program of docs/ that writes a page."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES.parent / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
