"""The package as a user gets it: one abi3 wheel where there is a C compiler, a pure one where not, equal results.

One wheel is built from the checkout, with the core, the other from the source archive, without. But for the core they hold
the same bytes, so that pages, reports and data are opened from one of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

from workbench import Client, Process

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

REPOSITORY = Path(__file__).resolve().parents[1]
CORE_SOURCES = {"cranfield/base/kernels/core.c", "cranfield/base/kernels/usual.h"}
CACHES = {"__pycache__", "build", "dist", ".git"}


def why_no_core() -> str:
    """Why the native core cannot be built here; empty if it can."""
    compiler = (os.environ.get("CC") or "cc").split()[0]
    if not any(shutil.which(name) for name in (compiler, "gcc", "clang")):
        return "needs a C compiler"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "needs Python's headers"
    return ""


needs_compiler = pytest.mark.skipif(bool(why_no_core()), reason=why_no_core() or "a compiler is there")


def clean_environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CRANFIELD_", "PIP_", "PYTHON"))}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"} | more


def call(*command: str, cwd: Path, **more: str) -> str:
    answer = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=clean_environment(**more), capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, f"{' '.join(command)}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout


def repository_files() -> list[str]:
    """Every file of the project: what git tracks or would track, or all but caches in an unpacked source archive."""
    if (REPOSITORY / ".git").exists():
        git = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(git, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        return [name for name in listing.splitlines() if (REPOSITORY / name).exists()]
    built = (".so", ".pyd", ".pyc", "PKG-INFO", "setup.cfg")
    return [
        str(path.relative_to(REPOSITORY))
        for path in REPOSITORY.rglob("*")
        if path.is_file() and not path.name.endswith(built)
        if not any(
            part in CACHES or part.startswith(".venv") or "_cache" in part or "egg-info" in part for part in path.parts
        )
    ]


def package_files() -> set[str]:
    return {name.removeprefix("src/") for name in repository_files() if name.startswith("src/cranfield/")}


def source_in(folder: Path) -> Path:
    """A copy of the source, with leftovers of an older build that must get into no archive."""
    copy = folder / "source"
    for name in repository_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, copy / name)
    for leftover in (
        "base/kernels/_core.pyd",
        "__pycache__/run.cpython-311.pyc",
        "workbench/templates/__pycache__/home.pyc",
    ):
        path = copy / "src" / "cranfield" / leftover
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"an older build")
    return copy


def make_archive(folder: Path) -> None:
    """Build the source archive."""
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    call("-c", code, cwd=source_in(folder), CRANFIELD_NO_NATIVE="1")


def install(folder: Path, source: Path | None = None, **environment: str) -> None:
    """Build a wheel from a source archive or from the checkout, and install it into a folder."""
    source = source or source_in(folder)
    pip = ["-m", "pip", "--no-input"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder / "wheels")]
    call(*build, str(source), cwd=folder, **environment)
    [wheel] = (folder / "wheels").iterdir()
    if environment.get("CRANFIELD_REQUIRE_NATIVE"):  # unpacked: that pip installs a wheel is seen from the other one
        zipfile.ZipFile(wheel).extractall(folder / "target")
    else:
        into = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(folder / "target")]
        call(*pip, "install", *into, str(wheel), cwd=folder)
    write_collection(folder)
    (folder / "watch").mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(
        WATCH.format(package=f"{folder / 'target' / 'cranfield'}{os.sep}")
    )


WATCH = """
import os, sys

def note_absent(event, arguments):
    path = arguments[0] if event == "open" else None
    if isinstance(path, str) and path.startswith({package!r}) and "__pycache__" not in path and not os.path.exists(path):
        os.write(2, f"absent: {{path}}\\n".encode())

sys.addaudithook(note_absent)
"""
"""Reports every file that is opened in the installed package and is not there."""


class Installed:
    """A wheel that was built from the source, and a folder it was installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "target"
        [self.wheel] = (folder / "wheels").iterdir()

    @property
    def names(self) -> set[str]:
        """The files of the wheel."""
        return {name for name in zipfile.ZipFile(self.wheel).namelist() if not name.endswith("/")}

    def python(self, *command: str) -> str:
        return call(*command, cwd=self.folder, PYTHONPATH=str(self.target))

    def watched(self, *command: str) -> list[str]:
        """The files of the package that a Python command opened and did not find."""
        environment = self.watching()
        answer = subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300
        )
        absent = re.findall("^absent: (.*)", answer.stderr, re.MULTILINE)
        assert answer.returncode == 0 or absent, answer.stderr
        return absent

    def watching(self) -> dict[str, str]:
        """The environment of a command whose files are watched."""
        return clean_environment(PYTHONPATH=os.pathsep.join([str(self.target), str(self.folder / "watch")]))

    @cached_property
    def said(self) -> dict[str, Any]:
        """What a process of Python finds in the installed package."""
        return json.loads(self.python("-c", TOLD))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def with_compiler(made_once: MadeOnce) -> Installed:
    return Installed(made_once("with-compiler", partial(install, CRANFIELD_REQUIRE_NATIVE="1")))


@pytest.fixture(scope="module")
def source_archive(made_once: MadeOnce) -> Path:
    [path] = made_once("source-archive", make_archive).glob("cranfield-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def without_compiler(made_once: MadeOnce, source_archive: Path) -> Installed:
    return Installed(made_once("without-compiler", partial(install, source=source_archive, CC="false", CXX="false")))


@pytest.fixture(scope="module", params=[pytest.param("with_compiler", marks=needs_compiler), "without_compiler"])
def installed(request: pytest.FixtureRequest) -> Installed:
    """Each wheel: that of the checkout, and that of the source archive."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_the_build_needs_nothing_but_setuptools():
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert [re.match(r"[\w-]+", one)[0] for one in build["requires"]] == ["setuptools"]  # type: ignore[index]


@needs_compiler
def test_with_a_compiler_one_abi3_wheel_serves_every_python_from_3_11(with_compiler):
    assert re.fullmatch(r"cranfield-[\d.]+-cp311-abi3-\w+\.whl", with_compiler.wheel.name)
    names = zipfile.ZipFile(with_compiler.wheel).namelist()
    assert [name for name in names if "_core" in name and not name.endswith(".pyi")] in (
        ["cranfield/base/kernels/_core.abi3.so"],
        ["cranfield/base/kernels/_core.pyd"],
    )


def test_without_a_compiler_the_wheel_is_a_pure_one(without_compiler):
    assert re.fullmatch(r"cranfield-[\d.]+-py3-none-any\.whl", without_compiler.wheel.name)
    assert not [name for name in zipfile.ZipFile(without_compiler.wheel).namelist() if name.endswith((".so", ".pyd"))]


@needs_compiler
def test_with_a_compiler_the_native_kernel_runs(with_compiler):
    assert with_compiler.said["native"] is True


def test_without_a_compiler_the_numpy_twin_runs(without_compiler):
    assert without_compiler.said["native"] is False


def test_what_runs_is_what_was_installed(installed):
    assert installed.said["file"].startswith(str(installed.target))


def test_the_wheel_carries_the_licence_and_the_type_marker_and_no_source_of_the_core(without_compiler):
    names = zipfile.ZipFile(without_compiler.wheel).namelist()
    assert "cranfield/py.typed" in names
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]
    assert not [name for name in names if name.endswith((".c", ".h")) or name.startswith("tests")]


TOLD = """
import json, sys
import cranfield, cranfield.base.kernels
import cranfield.base.findings, cranfield.formats.catalogue
from cranfield.judging.llm.questions import bundled, read_prompt
from cranfield.retrieval.http_template import templates

scores = cranfield.evaluate("qrels.txt", ["a.run", "b.run"], "AP nDCG@10 nDCG P@10 R@1000 RR@10 RBP ERR@20 Bpref")
run = cranfield.read_run("b.run").to_dict()
mapped = cranfield.evaluate("qrels.txt", run, "AP nDCG@10", missing="skip")
print(json.dumps({
    "native": cranfield.base.kernels.NATIVE,
    "file": cranfield.__file__,
    "scores": [scores.to_dict(per_topic=True), mapped.to_dict(per_topic=True)],
    "prompts": len([read_prompt(name) for name in bundled()]),
    "templates": len(templates()),
}))
"""


def write_collection(folder: Path) -> None:
    """Topics out of order, many ties, a topic missing from each side, ids that are not UTF-8."""
    topics = [f"t{i}" for i in range(12)]
    documents = [b"d%d" % i for i in range(60)] + [b"caf\xe9", "naïve".encode()]
    qrels = [
        b"%s 0 %s %d\n" % (topic.encode(), document, (i * 7 + j * 5) % 6 - 2)
        for i, topic in enumerate(topics[:-1])
        for j, document in enumerate(documents[::2])
    ]
    (folder / "qrels.txt").write_bytes(b"".join(qrels))
    for name, step in (("a", 11), ("b", 17)):
        lines = [
            b"%s Q0 %s %d %.3f %s\n" % (topic.encode(), document, j, (i * step + j * j * step) % 19 / 7, name.encode())
            for i, topic in enumerate(topics[1:])
            for j, document in enumerate(documents)
        ]
        lines.sort(key=lambda line: line.split()[2])  # scatters the topics through the file
        (folder / f"{name}.run").write_bytes(b"".join(lines))


@needs_compiler
def test_both_wheels_give_equal_numbers(with_compiler, without_compiler):
    native, twin = with_compiler.said["scores"], without_compiler.said["scores"]
    assert native == twin
    assert 0 < native[0]["runs"][0]["mean"]["nDCG@10"] < 1


@needs_compiler
def test_both_wheels_print_the_same_table(with_compiler, without_compiler):
    command = ["-m", "cranfield", "eval", "qrels.txt", "a.run", "b.run", "-m", "nDCG@10 AP RR@10"]
    native, twin = (installed.python(*command) for installed in (with_compiler, without_compiler))
    assert native == twin
    assert "nDCG@10" in native


def test_the_installed_command_is_called_cranfield(without_compiler):
    answer = without_compiler.python(str(without_compiler.target / "bin" / "cranfield"), "--help")
    assert "eval" in answer


def test_the_wheel_holds_every_file_of_the_package_but_the_source_of_the_core(installed):
    names = {name for name in installed.names if ".dist-info/" not in name and not name.endswith((".so", ".pyd"))}
    assert names == package_files() - CORE_SOURCES


@needs_compiler
def test_both_wheels_hold_the_same_bytes(with_compiler, without_compiler):
    one, other = (
        {each.filename: (each.CRC, each.file_size) for each in zipfile.ZipFile(wheel).infolist()}
        for wheel in (with_compiler.wheel, without_compiler.wheel)
    )
    one, other = ({name: of[name] for name in of if ".dist-info/" not in name} for of in (one, other))
    assert {name: one[name] for name in other} == other
    assert all("_core" in name for name in one.keys() - other.keys())


def test_the_wheel_carries_the_readme(installed):
    [metadata] = [name for name in installed.names if name.endswith("dist-info/METADATA")]
    text = zipfile.ZipFile(installed.wheel).read(metadata).decode()
    assert text.endswith((REPOSITORY / "README.md").read_text(encoding="utf-8"))


def test_the_source_archive_holds_every_file_of_the_repository(source_archive):
    with tarfile.open(source_archive) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    made = {"PKG-INFO", "setup.cfg"}
    assert {name for name in names - made if ".egg-info/" not in name} == set(repository_files())


def test_prompts_and_templates_are_read_from_an_installed_wheel(installed):
    assert installed.said["prompts"] == len(
        [name for name in package_files() if name.startswith("cranfield/judging/llm/prompts/")]
    )
    assert installed.said["templates"] == len(
        [name for name in package_files() if name.startswith("cranfield/retrieval/http_templates/")]
    )


COMMANDS = [
    ["eval", "allotment", f"{{runs}}{os.sep}bm25.run", "-m", "nDCG@10"],
    ["report", "allotment", f"{{runs}}{os.sep}bm25.run", f"{{runs}}{os.sep}fusion.run", "-o", "report.html"],
    ["collection", "list"],
    ["collection", "check", "allotment"],
    ["run", "allotment", "--system", "sqlite", "-o", "new.run"],
    ["measures", "nDCG"],
]


ONE_BY_ONE = """
import json, sys
from cranfield.cli import cli

for words in json.loads(sys.argv[1]):
    try:
        cli.main(words, prog_name="cranfield")
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""


def test_commands_find_every_file_that_they_open_in_the_installed_package(without_compiler):
    runs = without_compiler.target / "cranfield" / "collections" / "bundled" / "allotment" / "runs"
    lines = [[word.format(runs=runs) for word in command] for command in COMMANDS]
    assert without_compiler.watched("-c", ONE_BY_ONE, json.dumps(lines)) == []


def test_a_file_that_the_installed_package_lacks_is_reported(without_compiler):
    path = without_compiler.target / "cranfield" / "report" / "no.css"
    assert without_compiler.watched("-c", f"open({str(path)!r})") == [str(path)]


LABELS = """
from cranfield.judging import Event, open_log
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.judging.versions import freeze

log = open_log("garden/work.db")
open_round(log, Round(name="first"), [RoundItem("101", "d001", 1)])
log.add([Event(topic="101", document="d001", grade=1, assessor="ann")])
freeze(log, "v1", "latest")
log.close()
"""
QUERIES = {
    "/document": "id=d001",
    "/label": "topic=101&document=d001",
    "/recall": "round=first",
    "/round": "name=first",
    "/version": "name=v1",
    "/compare": "one=bm25&other=fusion",
    "/judge/topics": "round=first",
    "/report/file": "ending=md",
}
REFUSED = {"/join": 410, "/backup/file": 404, "/image": 400}  # no such invitation, no backup yet, no document named


def test_every_page_of_an_installed_workbench_opens_with_all_that_it_links(without_compiler):
    installed = without_compiler  # the other wheel holds the same files
    process = Process(Path("garden"), "--example", cwd=installed.folder, environment=installed.watching())
    try:
        installed.python("-c", LABELS)
        entered = Client(process.port).get(process.link.partition(str(process.port))[2])
        client = Client(process.port, entered.headers["set-cookie"].partition(";")[0])
        paths = [route["path"] for route in client.get("/api.json").json()["routes"] if route["method"] == "GET"]
        assert len(paths) > 20
        while client.get("/report.json?ending=md").status == 202:
            time.sleep(0.05)
        pages = {path: client.get(f"{path}?{QUERIES.get(path, '')}") for path in paths if path != "/enter"}
        assert {path: reply.status for path, reply in pages.items() if reply.status != 200} == REFUSED
        assert pages["/report/file"].headers["content-type"].startswith("text/markdown")
        linked = {link for page in pages.values() for link in re.findall(r'"(/static/[^"]+)"', page.text)}
        assert {link: client.get(link).status for link in linked} == dict.fromkeys(linked, 200)
        assert len(linked) > 5
    finally:
        process.stop()
    assert "absent" not in process.rest
