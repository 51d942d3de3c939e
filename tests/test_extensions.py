"""Every kind of member can come from another installed package, and a package that fails breaks nothing else.

The package demo-plugins (tests/plugins) adds one member of each kind. It is made into a wheel and installed into a folder
of its own; tests/plugins/members.py then tries each member in one process. Members that a script or a notebook defines
use the same registry: the last tests here define some in this process.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import ConventionError, DataError, MeasureError
from cranfield.base.registry import Registry
from cranfield.cli.plugins import registries
from cranfield.evaluation.measures import REGISTRY
from cranfield.pooling.strategy import STRATEGIES
from cranfield.stats.correction import CORRECTIONS, Correction, Holm, correct
from cranfield.stats.tests_by_name import find_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "tests" / "plugins"
TRIALS = [
    each.name
    for each in ast.parse((DEMO / "members.py").read_text(encoding="utf-8")).body
    if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
]

BROKEN = {
    "broken_plugins/__init__.py": "",
    "broken_plugins/failing.py": "raise OSError('no such model')\n",
    "broken_plugins/leaving.py": "raise SystemExit(7)\n",
    "broken_plugins/empty.py": "",
    "broken_plugins/clashing.py": (
        "from cranfield.stats.correction import Holm\n\n\n"
        "class Mine(Holm):\n    name = 'H_olm'\n    title = 'mine'\n\n\n"
        "class Fine(Holm):\n    name = 'fine'\n    title = 'fine'\n"
    ),
}
BROKEN_POINTS = """
[cranfield.measures]
failing = broken_plugins.failing
leaving = broken_plugins.leaving
empty = broken_plugins.empty

[cranfield.corrections]
clashing = broken_plugins.clashing

[cranfield.commands]
empty = broken_plugins.empty

[cranfield.systems]
missing = broken_plugins.nowhere:Engine
"""


def install(folder: Path, name: str, version: str, files: dict[str, str], points: str) -> None:
    """Make a wheel of these files, and install it into a folder with pip."""
    package = f"{name.replace('-', '_')}-{version}"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": points,
    }
    files = files | {f"{package}.dist-info/{path}": text for path, text in about.items()}
    record = f"{package}.dist-info/RECORD"
    files[record] = "".join(f"{path},,\n" for path in [*files, record])
    wheel = folder / f"{package}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    pip = [*"-m pip install --quiet --no-index --no-deps --no-compile --target".split(), str(folder / "target")]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run([sys.executable, *pip, str(wheel)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(target: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of Python in which the packages of a folder are installed."""
    path = os.pathsep.join([str(target), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "250"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=300
    )


@pytest.fixture(scope="module")
def trials(made_once: Callable[..., Path]) -> dict[str, str]:
    """What became of each test of tests/plugins/members.py."""

    def make(folder: Path) -> None:
        package = DEMO / "demo_plugins"
        paths = [path for path in package.rglob("*") if path.suffix in (".py", ".html")]
        files = {path.relative_to(DEMO).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        points = (DEMO / "entry_points.txt").read_text(encoding="utf-8")
        install(folder, "demo-plugins", "1.2", files, points)
        options = ["-q", "-rA", "-n0", "-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}"]
        done = run(folder / "target", "-m", "pytest", *options, str(DEMO / "members.py"))
        (folder / "outcome.txt").write_text(done.stdout + done.stderr, encoding="utf-8")

    text = (made_once("demo-plugins", make) / "outcome.txt").read_text(encoding="utf-8")
    outcomes = dict(re.findall(r"^PASSED \S+::(\w+)()", text, re.MULTILINE))
    return {name: outcomes.get(name, text) for name in TRIALS}


@pytest.mark.parametrize("name", TRIALS)
def test_a_member_of_an_installed_package_works_like_a_built_in_one(name, trials):
    assert trials[name] == ""


def test_every_kind_has_a_trial():
    points = (DEMO / "entry_points.txt").read_text(encoding="utf-8")
    groups = {registry.group for registry in registries()} - {"cranfield.rank_intervals"}
    assert groups == set(re.findall(r"^\[(.*)\]$", points, re.MULTILINE))
    assert len(groups) >= 21


def test_every_registry_is_listed():
    made = re.compile(r"(?<!class )\b\w*Registry\((?:$|\")", re.MULTILINE)
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "cranfield").rglob("*.py")]
    assert len({id(registry) for registry in registries()}) == sum(len(made.findall(source)) for source in sources)


def test_the_members_to_copy_are_where_contributing_says():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| ([^|]*) in \[(\S+)\]\((\S+)\) \| (`\w+`(?:; `\w+`)*) \|$", text, re.MULTILINE)
    assert len(rows) >= 14
    for names, file, path, groups in rows:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert path.endswith(f"/{file}")
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(class|def) {name}\(", source, re.MULTILINE), name
        assert {f"cranfield.{each}" for each in re.findall(r"`(\w+)`", groups)} <= {each.group for each in registries()}


@pytest.fixture(scope="module")
def broken(made_once: Callable[..., Path]) -> Path:
    """A package whose plugins cannot be used."""
    return (
        made_once("broken-plugins", lambda folder: install(folder, "broken-plugins", "3", BROKEN, BROKEN_POINTS))
        / "target"
    )


def test_a_plugin_that_fails_is_named_and_nothing_else_breaks(broken):
    done = run(broken, "-m", "cranfield", "plugins", "--format", "json")
    assert done.returncode == 0, done.stderr
    listing = json.loads(done.stdout)
    problems = {(each["group"], each["plugin"].split(" ")[0]): each for each in listing["problems"]}
    assert {key: each["error"].partition(" (")[0] for key, each in problems.items()} == {
        ("cranfield.measures", "failing"): "OSError: no such model",
        ("cranfield.measures", "leaving"): "SystemExit: 7",
        ("cranfield.measures", "empty"): "it defines no measure",
        ("cranfield.corrections", "clashing"): "a correction holm exists already, in cranfield",
        ("cranfield.commands", "empty"): "TypeError: expected a click command, or a module that holds one as `command`",
        ("cranfield.systems", "missing"): "ModuleNotFoundError: No module named 'broken_plugins.nowhere'",
    }
    assert {(each["package"], each["version"]) for each in problems.values()} == {("broken-plugins", "3")}
    assert "warning: broken-plugins 3: plugin failing = broken_plugins.failing in cranfield.measures" in done.stderr
    [corrections] = [each for each in listing["kinds"] if each["group"] == "cranfield.corrections"]
    assert corrections["members"][-1] == {"name": "fine", "package": "broken-plugins", "version": "3"}


def test_a_built_in_name_is_found_without_a_search_for_packages(broken):
    code = (
        "import sys, cranfield\n"
        "from cranfield.stats.correction import correction\n"
        "cranfield.evaluate({'q': {'a': 1}}, {'q': {'a': 1}}, 'nDCG@10 map')\n"
        "assert correction('Holm').name == 'holm'\n"
        "assert not {'importlib.metadata', 'broken_plugins'} & set(sys.modules)\n"
    )
    done = run(broken, "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr


def test_names_are_folded_in_the_same_way_for_all_kinds():
    for registry in registries():
        for name, member in registry.items():
            for typed in (name, name.upper(), name.replace("-", "_"), name.replace("-", "")):
                assert registry.find(typed) is member, (registry.kind, typed)
    assert find_test("SignedRank").name == "wilcoxon"
    assert STRATEGIES.named("movetofront").name == "move-to-front"


def test_an_unknown_name_is_answered_with_all_names_and_the_nearest():
    for registry in registries():
        assert registry.find("nosuchname") is None
        error = str(registry.unknown("nosuchname"))
        assert error.startswith(f"no {registry.kind} 'nosuchname'")
        assert registry.listing in error if registry.listing else ", ".join(registry) in error
    with pytest.raises(DataError, match=r"no test 'wilcoxn'; there are .*; did you mean wilcoxon\?"):
        find_test("wilcoxn")


# members that a script or a notebook defines


@pytest.fixture
def restored() -> Iterator[None]:
    """Takes the members out again that a test defines."""
    before = {id(registry): set(registry) for registry in Registry.kinds}
    yield
    for registry in Registry.kinds:
        for name in set(registry.loaded()) - before.get(id(registry), set(registry.loaded())):
            registry.remove(name)


@pytest.mark.usefixtures("restored")
def test_a_member_that_a_script_defines_works_at_once_and_can_be_defined_again():
    for factor in (2, 3):

        class Times(Correction):
            """A name for an example."""

            name, title, controls, times = "times", "Times", "family-wise error", factor

            def corrected(self, p):
                return self.times * p

        assert correct([0.1], "TIMES").tolist() == [pytest.approx(factor * 0.1)]
    assert CORRECTIONS.origin("times").package == __name__


@pytest.mark.usefixtures("restored")
def test_a_script_cannot_take_a_built_in_name():
    with pytest.raises(DataError, match=rf"{__name__}: a correction holm exists already, in cranfield"):

        class Mine(Holm):
            name = "HOLM"

    with pytest.raises(MeasureError, match=r"a measure AP exists already, in cranfield \(cranfield\.evaluation\."):

        class Ap(REGISTRY["AP"]):
            pass

    with pytest.raises(ConventionError, match="a pooling strategy move-to-front exists already, in cranfield"):

        class Depth(STRATEGIES["depth"]):
            name = "move-to-front"

    assert REGISTRY["AP"].__name__ == "AP"
