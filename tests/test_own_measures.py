"""Measures of one's own: the page's example as a real package in an environment, and what becomes of bad ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cranfield import Measure, evaluate, measure
from cranfield.base.errors import MeasureError
from cranfield.evaluation.measure_promises import check
from cranfield.evaluation.measures import REGISTRY, Real, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., type[Measure]]

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "own-measures.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples"


def block(language: str, holding: str) -> str:
    """The page's block that holds a text."""
    [found] = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if holding in text]
    return found


def install(folder: Path) -> None:
    """The page's package, built and installed into a folder of its own."""
    source = folder / "source"
    source.mkdir()
    (source / "pyproject.toml").write_text(block("toml", "entry-points"), encoding="utf-8")
    (source / "click_measures.py").write_text(block("python", "class ClickP"), encoding="utf-8")
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--no-compile"]
    done = call(*pip, "--target", str(folder / "target"), str(source), path=None)
    assert done.returncode == 0, done.stderr


def changed(installed: Path, folder: Path, code: str) -> Path:
    """A copy of an installed package with other code in it."""
    shutil.copytree(installed, folder)
    (folder / "click_measures.py").write_text(code, encoding="utf-8")
    return folder


def call(*command: str, path: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHONPATH"))}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PYTHONIOENCODING": "utf-8"}
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, *command], cwd=EXAMPLES, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )


def cranfield(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call("-m", "cranfield", *arguments, path=path)


@pytest.fixture(scope="module")
def clicks(made_once: Callable[..., Path]) -> Path:
    return made_once("click-measures", install) / "target"


def test_the_measure_of_an_installed_package_is_explained_listed_and_scored_with(clicks: Path) -> None:
    page = cranfield(clicks, "measures", "ClickP")
    assert page.returncode == 0, page.stderr
    assert "Precision at k with rank r weighed by 1/r" in page.stdout
    everything = json.loads(cranfield(clicks, "measures", "--format", "json").stdout)
    assert [each["usage"] for each in everything if each["family"] == "our own"] == ["ClickP@k"]
    scored = cranfield(clicks, "eval", "qrels.txt", "bm25.run", "-m", "ClickP@2 P@2 clickp@2", "--format", "json")
    assert scored.returncode == 0, scored.stderr
    means = json.loads(scored.stdout)["runs"][0]["mean"]
    assert 0 < means["ClickP@2"] == means["clickp@2"] <= 1


def test_a_known_name_is_read_without_looking_at_packages(clicks: Path) -> None:
    code = (
        "import sys, cranfield\n"
        "cranfield.measure('nDCG@10'); cranfield.measure('ndcg_cut_10'); cranfield.measure('AP(rel=2)@5')\n"
        "assert 'importlib.metadata' not in sys.modules and 'click_measures' not in sys.modules\n"
        "cranfield.measure('ClickP@5')\n"
        "assert 'click_measures' in sys.modules\n"
    )
    done = call("-c", code, path=clicks)
    assert done.returncode == 0, done.stderr


def test_without_the_package_the_name_is_unknown() -> None:
    done = cranfield(EXAMPLES, "measures", "ClickP")
    assert done.returncode == 2
    assert "no measure 'ClickP'" in done.stderr


def test_a_package_that_fails_to_import_is_left_out_with_a_warning(clicks: Path, tmp_path: Path) -> None:
    target = changed(clicks, tmp_path / "target", "raise OSError('no such model')\n")
    done = cranfield(target, "measures", "--family", "set")
    assert done.returncode == 0
    assert "plugin clicks = click_measures in cranfield.measures is left out: OSError: no such model" in done.stderr


def test_a_package_cannot_replace_a_measure(clicks: Path, tmp_path: Path) -> None:
    target = changed(clicks, tmp_path / "target", block("python", "class ClickP").replace("ClickP", "nDCG"))
    done = cranfield(target, "measures", "--format", "json")
    assert "a measure nDCG exists already, in cranfield (cranfield.evaluation.measures.gain)" in done.stderr
    [page] = [each for each in json.loads(done.stdout) if each["name"] == "nDCG"]
    assert page["family"] == "gain"


# promises


@pytest.fixture
def own() -> Iterator[Make]:
    """Makes measures called Mine, and takes them out of the registry again."""

    def make(score: object, **claims: object) -> type[Measure]:
        body = {
            "__doc__": "A measure of our own, for this test.",
            "family": "own",
            "formula": "x",
            "reference": "us",
            "rel": Real(1, "the lowest relevant grade"),
            "k": Whole(..., "the number of ranks that count (cut-off)"),
            "score": score,
        }
        return type("Mine", (Measure,), {**body, **claims})

    yield make
    REGISTRY.remove("Mine")


def precision(self: Measure, hits: object) -> object:
    return hits.top(self.k).relevant(self.rel).count() / self.k  # type: ignore[attr-defined]


BROKEN = {
    "a score lies outside 0 to 1": lambda self, hits: precision(self, hits) * 2,
    "a ranking beats the ideal one (ideal_is_best)": lambda self, hits: 1 - precision(self, hits),
    "moving a better document up lowers the score (monotone)": lambda self, hits: 1 - precision(self, hits),
    "a topic without an answer scores something (empty_is_zero)": lambda self, hits: 1 - precision(self, hits),
    "a topic scores differently alone and with other topics": lambda self, hits: precision(self, hits) / hits.size,
    "the order of topics matters": lambda self, hits: np.arange(hits.size) / hits.size,
    "the names of documents matter": lambda self, hits: np.full(
        hits.size, hits.judgments.qrels.documents.text()[0] == "n0"
    ),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_promise_is_found_and_named(own: Make, sentence: str) -> None:
    mine = own(BROKEN[sentence])
    assert any(f"Mine: {sentence} (Mine" in each for each in check(mine))


def test_a_promise_that_is_not_made_is_not_broken(own: Make) -> None:
    claims = {"ideal_is_best": False, "monotone": False, "empty_is_zero": False}
    assert check(own(BROKEN["moving a better document up lowers the score (monotone)"], **claims)) == []


def test_a_class_that_does_not_say_what_it_is_is_found(own: Make) -> None:
    assert check(own(precision, __doc__=None, formula="", at="depth"), tries=1)[:3] == [
        "Mine: the docstring must begin with a paragraph that defines the measure",
        "Mine: it has no formula",
        "Mine: its parameters lack 'depth', which follows the @ (or set at = None)",
    ]


ONE_EACH = {cls.family: name for name, cls in REGISTRY.items() if not set(cls.needs) - {"baseline"}}


@pytest.mark.parametrize("name", ONE_EACH.values(), ids=list(ONE_EACH))
def test_the_last_measure_of_each_family_keeps_its_promises(name: str) -> None:
    assert check(REGISTRY[name], tries=6, seed=1) == []


def test_what_random_runs_do_not_have_is_said(own: Make) -> None:
    with pytest.raises(MeasureError, match="Mine needs costs, which random runs lack"):
        check(own(precision, needs=("costs",)))


def test_an_own_measure_works_at_once_and_again_when_a_notebook_runs_its_cell_again(own: Make) -> None:
    for _ in range(2):
        mine = own(precision)
        assert evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, "Mine@1").mean() == 1
        assert type(measure("Mine@1")) is mine
