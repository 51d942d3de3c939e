"""The command line without a process: run a command, and get its exit code, data and messages."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

from cranfield.cli import cli

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


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


def cranfield(*arguments: object, stdin: bytes = b"", folder: Path = EXAMPLES, columns: int | None = None) -> Answer:
    """Run a command in a folder; on a terminal without colours if so many `columns` are given, else into pipes."""
    if columns is not None:
        terminal = {"COLUMNS": str(columns), "NO_COLOR": "1"}
        with patch.dict(os.environ, terminal), patch("cranfield.cli.progress.PATIENCE", 3600):
            return _run(_Screen, arguments, stdin, folder)
    return _run(io.TextIOWrapper, arguments, stdin, folder)


def _run(kind: type[io.TextIOWrapper], arguments: tuple[object, ...], stdin: bytes, folder: Path) -> Answer:
    shared = io.BytesIO()
    out, err = _Both(shared), _Both(shared)
    streams = {
        "stdout": kind(out, encoding="utf-8", write_through=True),
        "stderr": kind(err, encoding="utf-8", errors="backslashreplace", write_through=True),
        "stdin": io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"),
    }
    here, code = Path.cwd(), 0
    os.chdir(folder)
    try:
        with patch.multiple(sys, **streams):
            try:
                cli.main([str(argument) for argument in arguments], prog_name="cranfield")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os.chdir(here)
    return Answer(code, text(out), text(err), text(shared))


def generator(name: str) -> ModuleType:
    """A program of docs/ that writes a page."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES.parent / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
