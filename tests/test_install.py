"""The package as a user gets it: one abi3 wheel where there is a C compiler, a pure one where not, equal results."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

REPOSITORY = Path(__file__).resolve().parents[1]
NEEDED = ["pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "src"]


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


def source_in(folder: Path) -> Path:
    """A copy of the source without anything built in it."""
    copy = folder / "source"
    copy.mkdir()
    for name in NEEDED:
        if (REPOSITORY / name).is_dir():
            without = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.egg-info")
            shutil.copytree(REPOSITORY / name, copy / name, ignore=without)
        else:
            shutil.copy(REPOSITORY / name, copy)
    return copy


def install(folder: Path, **environment: str) -> None:
    """Build a wheel from the source, and install it into a folder."""
    source = source_in(folder)
    pip = ["-m", "pip", "--no-input"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder / "wheels")]
    call(*build, str(source), cwd=folder, **environment)
    [wheel] = (folder / "wheels").iterdir()
    into = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(folder / "target")]
    call(*pip, "install", *into, str(wheel), cwd=folder)
    write_collection(folder)


class Installed:
    """A wheel that was built from the source, and a folder it was installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "target"
        [self.wheel] = (folder / "wheels").iterdir()

    def python(self, *command: str) -> str:
        return call(*command, cwd=self.folder, PYTHONPATH=str(self.target))

    def ask(self, expression: str) -> str:
        return self.python("-c", f"import cranfield, cranfield.kernels; print({expression})").strip()


@pytest.fixture(scope="module")
def with_compiler(made_once: MadeOnce) -> Installed:
    return Installed(made_once("with-compiler", partial(install, CRANFIELD_REQUIRE_NATIVE="1")))


@pytest.fixture(scope="module")
def without_compiler(made_once: MadeOnce) -> Installed:
    return Installed(made_once("without-compiler", partial(install, CC="false", CXX="false")))


def test_the_build_needs_nothing_but_setuptools():
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert [re.match(r"[\w-]+", one)[0] for one in build["requires"]] == ["setuptools"]  # type: ignore[index]


@needs_compiler
def test_with_a_compiler_one_abi3_wheel_serves_every_python_from_3_11(with_compiler):
    assert re.fullmatch(r"cranfield-[\d.]+-cp311-abi3-\w+\.whl", with_compiler.wheel.name)
    names = zipfile.ZipFile(with_compiler.wheel).namelist()
    assert [name for name in names if "_core" in name and not name.endswith(".pyi")] in (
        ["cranfield/kernels/_core.abi3.so"],
        ["cranfield/kernels/_core.pyd"],
    )


def test_without_a_compiler_the_wheel_is_a_pure_one(without_compiler):
    assert re.fullmatch(r"cranfield-[\d.]+-py3-none-any\.whl", without_compiler.wheel.name)
    assert not [name for name in zipfile.ZipFile(without_compiler.wheel).namelist() if name.endswith((".so", ".pyd"))]


@needs_compiler
def test_with_a_compiler_the_native_kernel_runs(with_compiler):
    assert with_compiler.ask("cranfield.kernels.NATIVE") == "True"


def test_without_a_compiler_the_numpy_twin_runs(without_compiler):
    assert without_compiler.ask("cranfield.kernels.NATIVE") == "False"


def test_what_runs_is_what_was_installed(without_compiler):
    assert without_compiler.ask("cranfield.__file__").startswith(str(without_compiler.target))


def test_the_wheel_carries_the_licence_and_the_type_marker_and_no_source_of_the_core(without_compiler):
    names = zipfile.ZipFile(without_compiler.wheel).namelist()
    assert "cranfield/py.typed" in names
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]
    assert not [name for name in names if name.endswith((".c", ".h")) or name.startswith("tests")]


SCORE = """
import json, sys
import cranfield

scores = cranfield.evaluate("qrels.txt", ["a.run", "b.run"], "AP nDCG@10 nDCG P@10 R@1000 RR@10 RBP ERR@20 Bpref")
run = cranfield.read_run("b.run").to_dict()
mapped = cranfield.evaluate("qrels.txt", run, "AP nDCG@10", missing="skip")
print(json.dumps([scores.to_dict(per_topic=True), mapped.to_dict(per_topic=True)]))
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
    native, twin = (json.loads(installed.python("-c", SCORE)) for installed in (with_compiler, without_compiler))
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


def test_the_source_archive_holds_the_core_s_source_and_the_licence(tmp_path):
    source = source_in(tmp_path)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    call("-c", code, cwd=source, CRANFIELD_NO_NATIVE="1")
    [archive] = tmp_path.glob("cranfield-*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"LICENSE", "README.md", "setup.py", "src/cranfield/kernels/core.c", "src/cranfield/py.typed"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
