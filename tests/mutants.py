"""Break functions in small ways and count the breaks that no test notices: `make mutants`, or `python tests/mutants.py NAME …`.

The functions are fixed by name in tests/mutants.txt, each with the test files that must notice a break, so that two
revisions can be compared: `--source OLD/src --tests OLD/tests` runs the same list on another checkout. A mutant lives in
a forked process, where an import hook compiles the broken function; no file is changed. The tests that call the function
come first there, because one of them is likely to fail: the others run only if all of these pass.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PER_FUNCTION = 4
CPU_SECONDS = 180  # a mutant that loops for ever counts as noticed
WAITING_SECONDS = 1800  # so does one that waits for ever; a busy machine needs long for a sound one

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Function(NamedTuple):
    """A function of the list: its file inside the package, its name there, and the tests that must notice a break."""

    file: str
    name: str
    tests: tuple[str, ...]


class Mutant(NamedTuple):
    """One break of a function, with the whole broken module."""

    function: Function
    line: int
    change: str
    module: ast.Module


def functions(path: Path, chosen: list[str]) -> list[Function]:
    """The functions of a list, or those whose name or file contains one of the chosen words."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    listed = [Function(file, name, tuple(tests)) for file, name, *tests in rows]
    return [each for each in listed if not chosen or any(word in f"{each.file}:{each.name}" for word in chosen)]


def definition(module: ast.Module, name: str) -> ast.FunctionDef:
    """The function called `name`, or `Class.method`, in a module."""
    scope: ast.AST = module
    for part in name.split("."):
        scope = next(
            node
            for node in ast.iter_child_nodes(scope)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        )
    assert isinstance(scope, ast.FunctionDef)
    return scope


def breaks(node: ast.AST) -> list[str]:
    """The ways in which one node of a function's body can be broken."""
    if isinstance(node, ast.Compare):
        return [f"op {index}" for index, operator in enumerate(node.ops) if type(operator) in SWAPS]
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return ["op"] if type(node.op) in SWAPS else []
    if isinstance(node, ast.If | ast.IfExp):
        return ["negated"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ["not dropped"]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return ["constant"]
    return []


def broken(node: ast.AST, change: str) -> None:
    """Break a node of a copied module in place."""
    if isinstance(node, ast.Compare):
        index = int(change.split()[1])
        node.ops[index] = SWAPS[type(node.ops[index])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node.operand)
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1


def mutants(function: Function, source: Path) -> list[Mutant]:
    """At most four breaks of a function, always the same ones for the same code."""
    text = (source / "cranfield" / function.file).read_text(encoding="utf-8")
    module = ast.parse(text)
    body = definition(module, function.name).body
    skipped = 1 if ast.get_docstring(definition(module, function.name)) else 0
    places = [
        (number, index, change)
        for number, statement in enumerate(body[skipped:], skipped)
        for index, node in enumerate(ast.walk(statement))
        for change in breaks(node)
    ]
    drawn = Random(f"{function.name}").sample(places, min(PER_FUNCTION, len(places)))
    answer = []
    for number, index, change in sorted(drawn):
        copy = ast.parse(text)  # ten times as quick as a copy of the tree
        node = list(ast.walk(definition(copy, function.name).body[number]))[index]
        broken(node, change)
        ast.fix_missing_locations(node)
        answer.append(Mutant(function, node.lineno, f"{type(node).__name__} {change}", copy))
    return answer


def module_name(file: str) -> str:
    """How a file of the package is imported."""
    return ".".join(["cranfield", *Path(file).with_suffix("").parts]).removesuffix(".__init__")


class ChangedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Compiles some files of the package from changed trees when they are imported."""

    def __init__(self, trees: dict[str, ast.Module], source: Path, namespace: dict[str, object]) -> None:
        self.trees = {module_name(file): (source / "cranfield" / file, tree) for file, tree in trees.items()}
        self.namespace = namespace

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """The changed modules alone."""
        if fullname not in self.trees:
            return None
        file, _ = self.trees[fullname]
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(file))
        spec.has_location = True
        if file.name == "__init__.py":
            spec.submodule_search_locations = [str(file.parent)]
        return spec

    def exec_module(self, module: Any) -> None:
        """Run the changed tree in the module's namespace."""
        file, tree = self.trees[module.__name__]
        vars(module).update(self.namespace)
        exec(compile(tree, str(file), "exec"), vars(module))


def noting(chosen: list[Function], source: Path) -> dict[str, ast.Module]:
    """The files of some functions, changed so that each of these functions first notes that a test called it."""
    trees: dict[str, ast.Module] = {}
    for function in chosen:
        if function.file not in trees:
            trees[function.file] = ast.parse((source / "cranfield" / function.file).read_text(encoding="utf-8"))
        node = definition(trees[function.file], function.name)
        call = ast.parse(f"_note_call({function.name!r})").body
        node.body[1 if ast.get_docstring(node) else 0 : 0] = call
        ast.fix_missing_locations(node)
    return trees


class CallersFirst:
    """A plugin of pytest: tests that are known to call the broken function run before the others."""

    def __init__(self, callers: set[str]) -> None:
        self.callers = callers

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the order within both groups, so that a module's fixtures are made at most twice."""
        items.sort(key=lambda item: item.nodeid not in self.callers)


def run_tests(
    files: tuple[str, ...],
    source: Path,
    tests: Path,
    changed: ChangedModules | None = None,
    callers: set[str] | None = None,
) -> bool:
    """Whether all tests of these files pass in a forked process whose package may be changed."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        try:
            os.killpg(child, signal.SIGKILL)  # servers and commands of a process that was stopped
        except ProcessLookupError:
            pass
        return os.waitstatus_to_exitcode(status) == 0
    code = 1
    try:
        os.setsid()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.alarm(WAITING_SECONDS)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        sys.path[:0] = [str(source), str(tests)]
        if changed is not None:
            sys.meta_path.insert(0, changed)
        os.chdir(tests.parent)
        import pytest

        # pytest would take the settings of any folder above, up to a stray /tmp/pyproject.toml.
        settings = tests.parent / "pyproject.toml"
        options = ["-c", str(settings if settings.exists() else os.devnull), "--rootdir", str(tests.parent)]
        options += ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
        plugins = [CallersFirst(callers or set())]
        code = int(pytest.main([*options, *(str(tests / name) for name in files)], plugins=plugins))
    except BaseException:
        code = 1
    finally:
        os._exit(code)


def find_callers(
    files: tuple[str, ...], chosen: list[Function], source: Path, tests: Path
) -> dict[str, set[str]] | None:
    """Which tests of these files call each of these functions, by the functions' names; None where a test fails."""
    with tempfile.NamedTemporaryFile("r", prefix="calls-") as notes:
        seen = set()

        def note_call(name: str) -> None:
            call = (name, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0])
            if call not in seen:
                seen.add(call)
                with open(notes.name, "a", encoding="utf-8") as file:
                    file.write("\t".join(call) + "\n")

        changed = ChangedModules(noting(chosen, source), source, {"_note_call": note_call})
        if not run_tests(files, source, tests, changed):
            return None
        callers: dict[str, set[str]] = {function.name: set() for function in chosen}
        for line in notes.read().splitlines():
            name, _, test = line.partition("\t")
            callers[name].add(test)
    return callers


def main() -> int:
    """Print each mutant that survives, and how many did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of file or function names; default: the whole list")
    parser.add_argument("--source", type=Path, default=HERE.parent / "src")
    parser.add_argument("--tests", type=Path, default=HERE)
    parser.add_argument(
        "--list", type=Path, default=HERE / "mutants.txt", help="the functions, if they have other names there"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    import numpy  # noqa: F401 (every fork has it then)
    import pytest  # noqa: F401

    source, tests = options.source.resolve(), options.tests.resolve()
    made = [mutant for function in functions(options.list, options.names) for mutant in mutants(function, source)]
    chosen = list(dict.fromkeys(mutant.function for mutant in made))
    alive = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        together: dict[tuple[str, ...], list[Function]] = {}
        for function in chosen:
            together.setdefault(function.tests, []).append(function)
        callers: dict[Function, set[str]] = {}
        answers = pool.map(lambda files: find_callers(files, together[files], source, tests), together)
        for files, calls in zip(together, answers, strict=True):
            if calls is None:
                print(f"{' '.join(files)} fails although nothing is broken: it notices no mutant", file=sys.stderr)
                return 2
            callers |= {function: calls[function.name] for function in together[files]}

        def survives(mutant: Mutant) -> bool:
            function = mutant.function
            changed = ChangedModules({function.file: mutant.module}, source, {})
            return run_tests(function.tests, source, tests, changed, callers[function])

        lived = pool.map(survives, made)
        for mutant, survived in zip(made, lived, strict=True):
            if survived:
                alive += 1
                print(
                    f"survived: {mutant.function.file}:{mutant.line} {mutant.function.name}: {mutant.change}",
                    flush=True,
                )
    print(f"{len(made)} mutants of {len(chosen)} functions, {alive} survived")
    return 0


if __name__ == "__main__":
    sys.exit(main())
