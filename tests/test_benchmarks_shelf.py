"""The benchmark of documents by id: what it measures runs, and a wrong document stops it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the benchmarks are not installed with the package

from benchmarks import shelf
from benchmarks.suite import SCRIPTS
from benchmarks.timing import FailedError, run


def test_a_small_run_prints_rows_of_both_sections(capsys):
    assert shelf.main(["--repeats", "1", "--scale", "0.001"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "one by id, p99 1,000 documents, plain get" in printed
    assert "memory, open 1,000 documents, packed open_shelf" in printed
    assert "best_passage (CPU) 5,000 letters" in printed or "best_passage (CPU) 4," in printed


def test_a_document_that_is_not_there_stops_the_benchmark(tmp_path):
    (tmp_path / "documents.jsonl").write_text('{"id": "other"}\n')
    with pytest.raises(FailedError, match="d0: expected the document, found None"):
        run((sys.executable, str(SCRIPTS / "shelf.py"), str(tmp_path), str(tmp_path / "state"), "1"))
