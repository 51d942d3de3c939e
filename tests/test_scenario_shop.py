"""What a shop has, from its files to a report: products, queries and labels in CSV, two functions and an endpoint.

Nothing is written for it but the description of the endpoint: the rankers are the shop's own. The same again in a
notebook, which is executed as it stands in examples/shop.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from pages import SHOP, shop_served
from shell import EXAMPLES, cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TITLES, EVERYTHING, BOX = "titles.run", "everything.run", "box=endpoint.run"
COMMANDS = [
    "import shop/products.csv catalogue --topics shop/queries.csv --qrels shop/labels.csv",
    "run catalogue --system shop.rankers:titles -o titles.run -k 50",
    "run catalogue --system shop.rankers:everything -o everything.run -k 50",
    f"run catalogue --system http:shop/endpoint.toml,base=http://{SHOP} -o endpoint.run -k 50",
    f"eval catalogue {TITLES} {EVERYTHING} {BOX}",
    f"compare catalogue {TITLES} {EVERYTHING} {BOX} -m nDCG@10 --baseline titles",
    f"gate catalogue {TITLES} {EVERYTHING}",
    f"report catalogue {TITLES} {EVERYTHING} {BOX} -o report.html",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the examples, whose modules are forgotten afterwards."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    _forget_shop()
    yield tmp_path
    _forget_shop()


def _forget_shop() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def test_a_shop_gets_from_its_files_to_a_report_in_eight_commands(folder):
    assert len(COMMANDS) <= 8
    with shop_served(folder) as address:
        answers = [cranfield(*line.replace(SHOP, address).split(), folder=folder) for line in COMMANDS]
    assert [answer.code for answer in answers] == [0] * len(COMMANDS), [answer.both for answer in answers]
    imported, *_, scored, compared, gated, _ = answers
    assert "96 documents, 40 topics, 781 judgments" in imported.out
    assert "labels.csv names its 40 topics by what they ask" in imported.err
    assert [line.split()[0] for line in scored.out.splitlines()[1:4]] == ["titles", "everything", "box"]
    assert "everything" in compared.out
    assert "PASSED" in gated.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("titles", "everything", "box"))


def test_the_scores_are_those_of_labels_that_go_by_topic_ids(folder):
    """The oracle: the same labels, with numbers for queries put in by hand."""
    for line in COMMANDS[:3]:
        assert cranfield(*line.split(), folder=folder).code == 0
    with (folder / "shop" / "queries.csv").open(newline="") as file:
        numbers = {row["query"]: str(place) for place, row in enumerate(csv.DictReader(file), 1)}
    with (folder / "shop" / "labels.csv").open(newline="") as file:
        rows = [f"{numbers[row['query']]} 0 {row['sku']} {row['rating']}\n" for row in csv.DictReader(file)]
    (folder / "by-hand.txt").write_text("".join(rows))
    joined, by_hand = (
        cranfield("eval", qrels, TITLES, EVERYTHING, "--format", "csv", "--per-topic", folder=folder).out
        for qrels in ("catalogue", "by-hand.txt")
    )
    rows, others = (
        [{name: value for name, value in row.items() if name != "query"} for row in csv.DictReader(answer.splitlines())]
        for answer in (joined, by_hand)
    )
    assert len(rows) >= 80
    assert rows == others


def test_a_gate_fails_where_the_old_ranker_comes_back(folder):
    for line in COMMANDS[:3]:
        cranfield(*line.split(), folder=folder)
    assert cranfield("gate", "catalogue", EVERYTHING, TITLES, folder=folder).code == 1


def test_the_cells_of_the_notebook_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    names: dict[str, object] = {}
    for cell in json.loads((folder / "shop" / "shop.ipynb").read_text(encoding="utf-8"))["cells"]:
        lines = cell["source"].splitlines() if cell["cell_type"] == "code" else []
        exec("\n".join(lines), names)
    assert names["verdict"].passed
    assert names["scores"].runs == ["titles", "everything", "box"]


@pytest.mark.slow
def test_the_same_in_a_notebook(folder, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(folder / ".ipython"))
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(EXAMPLES.parent / "src")]))
    monkeypatch.setenv("PYTHONPATH", path)
    notebook = nbformat.read(folder / "shop" / "shop.ipynb", as_version=4)
    done = NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = "".join(str(output) for cell in done.cells if cell.cell_type == "code" for output in cell.outputs)
    assert "labels.csv names its 40 topics by what they ask" in shown
    assert "everything beats titles" in shown
    assert "PASSED" in shown
    assert (folder / "report.html").stat().st_size > 10_000
