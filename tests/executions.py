"""One execution of a command line for all who ask: golden records, screens of both widths, pages and help.

An execution is known by its arguments, its standard input and every file of the folder it starts in. It shows its output
on three terminals at once (a pipe, 80 and 120 columns), because every function of `cranfield.cli.output` that writes is
called once per terminal. What it showed and which files it wrote are stored in a folder that all workers share; whoever
asks again gets the stored output, and the files are laid into the folder.

A command that writes past `cranfield.cli.output` (help, prompts, errors of click) is executed once per terminal instead.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import pkgutil
import shutil
import sys
import tempfile
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import cranfield.cli as cli
import cranfield.cli.output as output
from shell import Answer, cranfield, run_with, stream_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIPE = None
TERMINALS = (PIPE, 80, 120)
WRITERS = ("show", "limits", "put", "note", "notes", "warning")
PLACEHOLDER = "\0folder\0"  # stands for the path of the folder in what is stored

Files = dict[str, bytes]


class Execution(NamedTuple):
    answers: dict[int | None, Answer]  # by the columns of the terminal; only the one asked for if the output is its own
    files: dict[str, bytes | None]  # written or changed; None: deleted


class Store:
    """Executions by key, in a folder that several processes share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Execution | None:
        try:
            return Execution(*pickle.loads((self.folder / key).read_bytes()))
        except FileNotFoundError:
            return None

    def put(self, key: str, execution: Execution) -> None:
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(pickle.dumps(tuple(execution)))
        os.replace(file.name, self.folder / key)


_own: list[Any] = []  # the store of this process, for programs that are no pytest worker


def store() -> Store:
    """The store of all workers (conftest.py names its folder), or one of this process alone."""
    if "CRANFIELD_EXECUTIONS" in os.environ:
        return Store(Path(os.environ["CRANFIELD_EXECUTIONS"]))
    if not _own:
        _own.append(tempfile.TemporaryDirectory())
    return Store(Path(_own[0].name))


def executed(*arguments: str, folder: Path, stdin: bytes = b"", columns: int | None = PIPE) -> Answer:
    """What a command shows in a folder on a terminal; the folder then holds what the command wrote."""
    before, executions = files_in(folder), store()
    key = key_of(arguments, stdin, before)
    for each in (key, f"{key}-{columns}"):
        execution = executions.get(each)
        if execution is not None and columns in execution.answers:
            write_files(folder, execution.files)
            return with_folder(execution.answers[columns], PLACEHOLDER, str(folder))
    answers = on_all_terminals(arguments, stdin, folder)
    if answers is None:  # its output depends on the terminal: once more, from the start
        write_files(folder, difference(files_in(folder), before))
        key = f"{key}-{columns}"
        answers = {columns: cranfield(*arguments, stdin=stdin, folder=folder, columns=columns)}
    changes = difference(before, files_in(folder))
    stored = {where: with_folder(answer, str(folder), PLACEHOLDER) for where, answer in answers.items()}
    executions.put(key, Execution(stored, changes))
    return answers[columns]


def key_of(arguments: tuple[str, ...], stdin: bytes, files: Files) -> str:
    contents = [(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(files.items())]
    return hashlib.sha256(repr((arguments, stdin, contents)).encode("utf-8", "surrogatepass")).hexdigest()


def files_in(folder: Path) -> Files:
    """Each file with its bytes; a folder has a slash behind its name and no bytes."""
    files, start = {}, len(str(folder)) + 1
    for where, folders, names in os.walk(folder):
        for name in folders:
            files[os.path.join(where, name)[start:] + "/"] = b""
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb", buffering=0) as file:
                files[path[start:]] = file.read()
    return files


def difference(before: Files, after: Files) -> dict[str, bytes | None]:
    """What turns one listing into the other."""
    changed: dict[str, bytes | None] = {name: data for name, data in after.items() if before.get(name) != data}
    return changed | dict.fromkeys(before.keys() - after.keys())


def write_files(folder: Path, files: dict[str, bytes | None]) -> None:
    for name, data in sorted(files.items(), key=lambda item: (item[1] is not None, item[0])):
        path = folder / name
        if data is None:
            shutil.rmtree(path, ignore_errors=True) if name.endswith("/") else path.unlink(missing_ok=True)
        elif name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def with_folder(answer: Answer, old: str, new: str) -> Answer:
    code, *texts = answer
    return Answer(code, *(text.replace(old, new) for text in texts))


# One execution, three terminals


class Terminal:
    """What one terminal shows, and the state of the output room that belongs to it."""

    def __init__(self, columns: int | None) -> None:
        self.columns = columns
        self.streams = stream_pair(columns is not None)
        self.warned: list[str] = []

    @contextmanager
    def current(self) -> Iterator[None]:
        size = {} if self.columns is None else {"COLUMNS": str(self.columns), "NO_COLOR": "1"}
        with (
            patch.dict(os.environ, size),
            patch.multiple(sys, stdout=self.streams.stdout, stderr=self.streams.stderr),
            patch.object(output, "_warned", self.warned),
        ):
            yield


class Renderings(str):
    """A text as the pipe shows it, which knows how each other terminal shows it."""

    by_terminal: dict[int | None, str]


class Tripwire(io.TextIOWrapper):
    """A standard stream outside `cranfield.cli.output`: nothing can be shared once it is written to."""

    touched = False

    def write(self, text: str) -> int:
        self.touched = True
        return super().write(text)

    @property
    def buffer(self) -> Any:
        self.touched = True
        return super().buffer


def on_all_terminals(arguments: tuple[str, ...], stdin: bytes, folder: Path) -> dict[int | None, Answer] | None:
    """What each terminal shows of one execution; None if the command writes past the output room."""
    terminals = [Terminal(columns) for columns in TERMINALS]
    direct = {name: Tripwire(io.BytesIO(), encoding="utf-8", write_through=True) for name in ("stdout", "stderr")}
    with rendered_on(terminals), patch("cranfield.cli.output.PATIENCE", 3600):
        code = run_with(direct, arguments, stdin, folder)
    if any(stream.touched for stream in direct.values()):
        return None
    return {each.columns: each.streams.answer(code) for each in terminals}


@contextmanager
def rendered_on(terminals: list[Terminal]) -> Iterator[None]:
    """Meanwhile each function that writes is called once per terminal, wherever it was imported."""
    inside = False

    def once_each(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal inside
            if inside:
                return function(*arguments, **options)
            inside, results = True, {}
            try:
                for each in terminals:
                    with each.current():
                        own = [a.by_terminal[each.columns] if isinstance(a, Renderings) else a for a in arguments]
                        results[each.columns] = function(*own, **options)
            finally:
                inside = False
            return results[PIPE]

        return call

    def rendered(function: Callable[..., str]) -> Callable[..., str]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> str:
            if inside:
                return function(*arguments, **options)
            texts = {}
            for each in terminals:
                with each.current():
                    texts[each.columns] = function(*arguments, **options)
            answer = Renderings(texts[PIPE])
            answer.by_terminal = texts
            return answer

        return call

    _load_commands()
    new = {getattr(output, name): once_each(getattr(output, name)) for name in WRITERS}
    new[output.rendered] = rendered(output.rendered)
    modules = tuple(name for name in sys.modules if name.startswith(cli.__name__))
    places = [each for each in _places(modules, frozenset(new)) if vars(each[0]).get(each[1]) is each[2]]
    for loaded, name, value in places:
        setattr(loaded, name, new[value])
    try:
        yield
    finally:
        for loaded, name, value in places:
            setattr(loaded, name, value)


@cache
def _places(modules: tuple[str, ...], functions: frozenset[FunctionType]) -> list[tuple[ModuleType, str, FunctionType]]:
    """Where these modules hold these functions, and under which name."""
    return [
        (module, name, value)
        for module in map(sys.modules.__getitem__, modules)
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value in functions
    ]


@cache
def _load_commands() -> None:
    """A module that is loaded while functions are patched would keep the patched ones."""
    for module in pkgutil.iter_modules(cli.__path__):
        importlib.import_module(f"{cli.__name__}.{module.name}")
