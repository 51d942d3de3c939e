"""The house rules that a program can check: which room may import which, what stays lazy, what no file may say.

The map of the rooms in CONTRIBUTING.md is where they are listed, top floor first. Every import counts, at the top of a
module, inside a function or under TYPE_CHECKING: a room that names another in an annotation depends on it as well. Rooms
on one floor may import each other as long as no cycle of modules comes of it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src"
MODULES = sorted((SOURCE / "cranfield").rglob("*.py"))


class Room(NamedTuple):
    name: str
    floor: int  # the lower, the smaller
    to_come: bool
    line: str


def rooms_of(map_of_rooms: str) -> list[Room]:
    """The rooms that a map names: one to a line, floors between blank lines, a star behind one that is yet to come."""
    rooms = []
    for depth, floor in enumerate(map_of_rooms.strip().split("\n\n")):
        for line in floor.splitlines():
            name, star, said = re.fullmatch(r"(\w+)( \*)? *(.*)", line).groups()  # type: ignore[union-attr]
            rooms.append(Room(name, -depth, star is not None, said))
    return rooms


CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROOMS = rooms_of(re.search(r"^## The rooms$.*?^```\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)[1])  # type: ignore[index]
FLOOR = {room.name: room.floor for room in ROOMS}
DOORS = {"cranfield", "cranfield.__main__"}  # they hold no logic and may name any room

LIGHT = {"numpy"}  # third-party modules that any room may import at its top
AT_THE_TOP = {
    "cli": {"click"},
    "compat": {"ir_measures"},  # in the one module that puts a provider into it
    "store": {"sqlalchemy"},
    "judging": {"sqlalchemy"},
    "http": {"uvicorn", "h11", "anyio"},
    "experiments": {"starlette", "anyio"},
    "workbench": {"starlette", "jinja2", "anyio", "markupsafe"},
}
SEARCH_WORDS = re.compile(r"\b(topics?|quer(?:y|ies)|documents?|qrels?|retriev\w*|relevan\w*|judg\w*|ndcg)\b", re.I)


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    at_top: bool
    for_types: bool


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in [*MODULES, *(SOURCE / "cranfield").rglob("*.pyi")]}  # a stub stands for a C module


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def imports_of(source: str, importer: str, is_package: bool = False) -> list[Import]:
    """All that a module imports, its own package's modules by their full names."""
    homes = public_homes()
    found: list[Import] = []

    def note(name: str, node: ast.AST, at_top: bool, for_types: bool) -> None:
        found.append(Import(importer, name, getattr(node, "lineno", 0), at_top, for_types))

    def walk(node: ast.AST, at_top: bool, for_types: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                note(alias.name, node, at_top, for_types)
        elif isinstance(node, ast.ImportFrom):
            package = importer.split(".") if is_package else importer.split(".")[:-1]
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                if origin == "cranfield" and alias.name in homes:
                    note(f"cranfield.{homes[alias.name]}", node, at_top, for_types)
                else:
                    full = f"{origin}.{alias.name}"
                    note(full if full in NAMES else origin, node, at_top, for_types)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__"):
                note(str(node.args[0].value), node, at_top, for_types)
        for field, value in ast.iter_fields(node):
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and field == "body"
            types = isinstance(node, ast.If) and field == "body" and "TYPE_CHECKING" in ast.unparse(node.test)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    walk(child, at_top and not inside, for_types or types)

    walk(ast.parse(source), True, False)
    return found


@cache
def public_homes() -> dict[str, str]:
    tree = ast.parse((SOURCE / "cranfield" / "__init__.py").read_text(encoding="utf-8"))
    [value] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES"
    ]
    homes: dict[str, str] = ast.literal_eval(value)
    return homes


@cache
def all_imports() -> list[Import]:
    """What the modules of the package import; not read before a test asks for it."""
    return [
        found
        for path in MODULES
        for found in imports_of(path.read_text(encoding="utf-8"), name_of(path), path.name == "__init__.py")
    ]


STANDARD = sys.stdlib_module_names | {"compression"}  # the standard library's since Python 3.14


def inner() -> list[Import]:
    """Those of the package's own modules."""
    return [i for i in all_imports() if i.imported.split(".")[0] == "cranfield"]


def outer() -> list[Import]:
    """Those of other people's modules."""
    return [i for i in all_imports() if i.imported.split(".")[0] not in {"cranfield"} | STANDARD]


def upward(imports: list[Import]) -> list[str]:
    return [
        f"{i.importer}:{i.line} imports {i.imported}, which lies above it"
        for i in imports
        if i.importer not in DOORS
        and i.imported.startswith("cranfield.")
        and FLOOR.get(room_of(i.imported), 1) > FLOOR.get(room_of(i.importer), 1)
    ]


def across(imports: list[Import]) -> list[str]:
    return [
        f"{i.importer}:{i.line} imports {i.imported}"
        for i in imports
        if re.fullmatch(r"cranfield\.evaluation\.measures\.\w+", i.importer)
        and i.imported.startswith("cranfield.evaluation.measures")
        and i.imported != "cranfield.evaluation.measures.definition"
    ]


def standing_rooms() -> set[str]:
    """The folders and modules there are; a folder that only holds compiled modules is what git left of a room."""
    inside = [path for path in (SOURCE / "cranfield").iterdir() if not path.name.startswith(("__", "."))]
    folders = [path for path in inside if path.is_dir() and any(each.name != "__pycache__" for each in path.iterdir())]
    return {path.stem for path in [*folders, *(path for path in inside if path.suffix == ".py")]}


def test_the_map_names_every_room_once_and_none_that_is_gone():
    assert len(FLOOR) == len(ROOMS)
    assert standing_rooms() == {room.name for room in ROOMS if not room.to_come}


def test_the_map_says_of_every_room_what_it_is():
    assert [room.name for room in ROOMS if len(room.line.split()) < 3] == []


def test_a_map_is_read_floor_by_floor():
    assert rooms_of("a    the attic\nb *  a room\n\nc  the cellar\n") == [
        Room("a", 0, False, "the attic"),
        Room("b", 0, True, "a room"),
        Room("c", -1, False, "the cellar"),
    ]


def test_no_import_points_up():
    assert upward(inner()) == []


@pytest.mark.parametrize(
    "line",
    [
        "from cranfield.evaluation.evaluate import evaluate",
        "from cranfield import evaluate",
        "import cranfield.cli",
        "def late():\n    from cranfield.evaluation.scores import Scores",
        "if TYPE_CHECKING:\n    from cranfield.evaluation.measures import Measure",
        "from ..evaluation.evaluate import evaluate",
        "import importlib\nimportlib.import_module('cranfield.commands')",
    ],
)
def test_an_import_that_points_up_is_noticed(line):
    assert upward(imports_of(line, "cranfield.base.errors"))


def graph_of(imports: list[Import]) -> dict[str, set[str]]:
    """Which modules each imports, whether at its top, in a function or for its types."""
    graph: dict[str, set[str]] = {name: set() for name in NAMES - DOORS}
    for i in imports:
        if i.importer in graph and i.imported in graph:
            graph[i.importer].add(i.imported)
    return graph


def cycles_in(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that reach each other (strongly connected components of more than one), by Tarjan's method."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            start = stack.index(name)
            if stack[start + 1 :]:
                cycles.append(set(stack[start:]))
            del stack[start:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return cycles


def test_no_module_imports_itself_over_others():
    assert cycles_in(graph_of(inner())) == []


def test_a_cycle_is_noticed():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"g"}, "g": {"e", "a"}}
    assert cycles_in(graph) == [{"b", "c"}, {"e", "f", "g"}]
    assert cycles_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def hidden_modules(package: str) -> list[str]:
    """Submodules that another value of the package hides: `import package.name` would give that value."""
    loaded = importlib.import_module(package)
    names = [each.name for each in pkgutil.iter_modules(loaded.__path__) if hasattr(loaded, each.name)]
    return [
        f"{package}.{name}"
        for name in names
        if getattr(loaded, name) is not importlib.import_module(f"{package}.{name}")
    ]


def test_no_value_of_a_package_hides_a_module_of_the_same_name():
    packages = [name_of(path) for path in MODULES if path.name == "__init__.py"]
    assert [hidden for package in packages for hidden in hidden_modules(package)] == []


def test_a_hidden_module_is_noticed(monkeypatch):
    monkeypatch.setattr("cranfield.base.errors", lambda: None)
    assert hidden_modules("cranfield.base") == ["cranfield.base.errors"]


def test_a_measure_imports_no_other_measure():
    assert across(inner()) == []


def test_a_measure_that_imports_another_is_noticed():
    assert across(
        imports_of("from cranfield.evaluation.measures.gain import nDCG", "cranfield.evaluation.measures.user_models")
    )


def test_no_measure_reads_or_writes_files():
    doors = {"os", "io", "pathlib", "mmap", "socket", "subprocess", "urllib", "tempfile", "shutil"}
    measures = [i for i in all_imports() if i.importer.startswith("cranfield.evaluation.measures")]
    assert measures
    assert [i for i in measures if i.imported.split(".")[0] in doors] == []


SQL_ROOMS = ("store", "judging")


def sql_outside(imports: list[Import]) -> list[str]:
    """Imports of what SQL on work.db needs, in rooms that go through a log's interface."""
    return [
        f"{i.importer}:{i.line} imports {i.imported}"
        for i in imports
        if room_of(i.importer) not in SQL_ROOMS
        and (i.imported.split(".")[0] == "sqlalchemy" or i.imported == "cranfield.store.tables")
    ]


def test_sql_on_a_log_stays_inside_store_and_judging():
    assert sql_outside(all_imports()) == []
    for path in MODULES:
        if room_of(name_of(path)) not in SQL_ROOMS:
            assert "transaction.connection" not in path.read_text(encoding="utf-8"), path


def test_sql_elsewhere_is_noticed():
    assert sql_outside(imports_of("from sqlalchemy import select", "cranfield.inputs.selection"))
    assert sql_outside(imports_of("from cranfield.store.tables import events", "cranfield.commands.judging"))


def test_statistics_know_no_search_words():
    assert SEARCH_WORDS.search("the mean over topics")
    assert not SEARCH_WORDS.search("the mean over pairs, in one run of the test")
    for path in MODULES:
        if room_of(name_of(path)) == "stats":
            assert not SEARCH_WORDS.search(path.read_text(encoding="utf-8")), path


def test_third_party_modules_other_than_numpy_are_imported_where_they_are_used():
    heavy = [
        f"{i.importer}:{i.line} imports {i.imported} when it is loaded"
        for i in outer()
        if i.at_top
        and not i.for_types
        and i.imported.split(".")[0] not in LIGHT | AT_THE_TOP.get(room_of(i.importer), set())
    ]
    assert heavy == []


def test_every_third_party_module_is_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name, group in project["optional-dependencies"].items() if name != "test" for one in group]
    declared = {re.match(r"[\w.-]+", one)[0].lower() for one in [*project["dependencies"], *extras]}  # type: ignore[index]
    owners = importlib.metadata.packages_distributions()
    for i in outer():
        top = i.imported.split(".")[0]
        names = {owner.lower() for owner in owners.get(top, [top])} | {i.imported.lower()}
        assert names & declared, f"{i.importer}:{i.line} imports {i.imported}, which pyproject.toml does not declare"


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh Python loads: `-X importtime` writes one line for each to stderr."""
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines() if line.startswith("import time:")}


def roots(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def test_the_list_of_loaded_modules_is_complete():
    assert {"numpy", "cranfield"} <= roots(loaded_by("-c", "from cranfield import evaluate"))


def test_import_cranfield_loads_no_other_module_of_it_and_nothing_of_others():
    extra = loaded_by("-c", "import cranfield") - loaded_by("-c", "import sys, types, typing")
    assert {name for name in extra if name.startswith("cranfield")} == {"cranfield"}
    assert roots(extra) - {"cranfield"} - STANDARD == set()


def test_the_help_of_the_command_line_loads_no_numpy():
    heavy = {"numpy", "scipy", "pyarrow", "pandas", "polars", "duckdb", "asyncio", "concurrent"}
    assert not roots(loaded_by("-m", "cranfield", "--help")) & heavy


def test_the_evaluation_of_plain_files_loads_nothing_that_it_does_not_use(tmp_path: Path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.5 a\n")
    files = str(tmp_path / "qrels.txt"), str(tmp_path / "a.run")
    others = {"locale", "numpy.typing", "zlib"} | {
        f"cranfield.{name}"
        for name in (
            "base.collection",
            "base.optional_packages",
            "evaluation.measures.precision",
            "evaluation.measures.user_models",
            "evaluation.options",
            "formats.collection_folder",
            "formats.format_registry",
            "formats.grade_scales",
            "formats.run_files",
            "stats.weighted_means",
        )
    }
    loaded = loaded_by("-m", "cranfield", "eval", *files, "-m", "nDCG@10 AP RR@10")
    assert "cranfield.evaluation.evaluate" in loaded
    assert loaded & others == set()


@pytest.mark.parametrize("command", ["compare", "leaderboard", "stability", "design", "gate"])
def test_the_help_that_lists_tests_loads_no_scipy(command):
    assert "scipy" not in roots(loaded_by("-m", "cranfield", command, "--help"))


def our_files() -> list[Path]:
    """The files of the repository, without what git ignores; all of them where there is no git."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        paths = [REPOSITORY / name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            Path(folder) / name
            for folder, inner, names in os.walk(REPOSITORY)
            for name in names
            if not any(part.startswith((".", "build", "dist")) for part in Path(folder).relative_to(REPOSITORY).parts)
        ]
    return [path for path in paths if path.suffix not in {".so", ".pyc", ".gz", ".zst", ".xz", ".bz2", ".parquet"}]


def test_no_module_has_a_name_that_says_nothing():
    empty = {"util", "utils", "core", "helper", "helpers", "common", "misc"}
    modules = [path for path in our_files() if path.suffix == ".py"]
    assert modules
    assert [path for path in modules if path.stem.lower() in empty] == []


# Put together from halves, so that this file does not hold what it looks for.
UNWANTED = re.compile(
    "|".join(
        [
            "(?<![\\w.])/" + "(?:work|root|opt)/",
            "/" + "home/\\w",
            "py" + "pi\\.org",
            "python" + "hosted",
            "--index" + "-url",
            "\\bTO" + "DO\\b",
            "\\bFIX" + "ME\\b",
            "NotImplemented" + "Error",
        ]
    )
)


def test_an_unwanted_word_is_noticed():
    assert UNWANTED.search("see /" + "root/notes")
    assert not UNWANTED.search("the root/leaf distance")


def test_no_file_holds_a_machine_s_path_an_index_host_or_unfinished_business():
    found = []
    for path in our_files():
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if UNWANTED.search(line):
                found.append(f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}")
    assert found == []


def test_the_map_of_the_documentation_names_every_page():
    folder = REPOSITORY / "docs"
    pages = {path.name for path in folder.glob("*.md")} - {"index.md"}
    folders = {path.parent.relative_to(folder).parts[0] for path in folder.glob("*/**/*.md")}
    linked = re.findall(r"\]\(([\w/.-]+)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert pages <= set(linked)
    assert folders <= {link.split("/")[0] for link in linked}
