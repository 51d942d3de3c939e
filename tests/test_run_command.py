"""`cranfield run`: a run and what it cost, whole, partial, cut short and taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cranfield
import engines
from cranfield.base.collection import Document, Topic
from cranfield.base.errors import DataError
from cranfield.base.kernels import Order
from cranfield.base.qrels import Qrels
from cranfield.formats.collection_folder import BUNDLED, write_collection
from cranfield.formats.run_files import VERSION, RunStats, read_run_stats, stats_path, write_run_stats
from cranfield.retrieval.produce_run import falling, falls
from engines import serving
from shell import cranfield as shell


@pytest.fixture
def folder(tmp_path):
    documents = [Document(name, text=text) for name, text in engines.DOCUMENTS.items()]
    topics = [
        Topic("1", "wing flutter", "What makes a wing flutter?"),
        Topic("2", "boundary layer", "heat"),
        Topic("3", "heat", fields={"place": "wing"}),
        Topic("4", "zzz"),
    ]
    write_collection(str(tmp_path / "papers"), documents, topics, Qrels({"1": {"d1": 1}, "2": {"d3": 1, "d4": 1}}))
    return tmp_path


def run(folder, *arguments, system="sqlite"):
    return shell("run", "papers", "--system", system, "-o", "x.run", *arguments, folder=folder)


def stats(folder) -> RunStats:
    found = read_run_stats(folder / "x.run")
    assert found is not None
    return found


def test_a_run_and_its_statistics_are_written(folder):
    answer = run(folder, "-k", 3, "--price-per-hour", 3.6, "--repeat", 2)
    assert answer.code == 0, answer.err
    made = cranfield.read_run(folder / "x.run")
    assert made.tag == "x"
    assert made["2"][0][0] in ("d3", "d4")
    assert "4" not in made.topics
    found = stats(folder)
    assert found.complete
    assert found.topics == {"asked": 4, "answered": 4, "empty": 1, "failed": {}}
    assert found.index["documents"] == 4
    assert found.index["bytes"] > 0
    assert found.queries["count"] == 8
    assert found.queries["loop"] == "closed"
    assert found.queries["warmup"]["count"] == 4
    assert sum(found.queries["histogram"]["counts"]) == 8
    assert found.latency("p99") >= found.latency("median") > 0
    assert found.cost_per_thousand == pytest.approx(3.6 / 3600 * 1000 / found.throughput, rel=1e-4)
    assert found.memory["peak_bytes"] > 0
    assert {"cranfield", "python", "sqlite"} <= set(found.versions)
    assert {"cores", "processor", "system"} <= set(found.machine)
    assert found.made_at
    assert "no document was found for 1 topic" in answer.err
    assert not (folder / "x.run.journal").exists()


def test_what_is_printed_names_what_was_measured(folder):
    printed = run(folder).out
    for word in ("index", "latency", "throughput", "memory", "median", "p99", "4 documents"):
        assert word in printed
    as_json = json.loads(run(folder, "--format", "json").out)
    assert as_json["version"] == VERSION
    assert as_json == json.loads((folder / "x.run.stats.json").read_text())


def test_fields_choose_what_is_searched_for(folder):
    assert run(folder, "--fields", "title, description", "--name", "long").code == 0
    made = cranfield.read_run(folder / "x.run")
    assert made.tag == "long"
    assert {document for document, _ in made["2"]} == {"d3", "d4"}
    wrong = run(folder, "--fields", "place")
    assert wrong.code == 2
    assert "topic '1' has no field 'place'; it has title, description, narrative" in wrong.err


def test_topics_choose_what_is_asked(folder):
    (folder / "some.txt").write_text("3\n1\n")
    assert run(folder, "--topics", "some.txt").code == 0
    assert cranfield.read_run(folder / "x.run").topics == ["3", "1"]
    (folder / "some.txt").write_text("77\n")
    wrong = run(folder, "--topics", "some.txt")
    assert wrong.code == 3
    assert "no topic '77'" in wrong.err


FLAKY = """
import os
def search(text, k):
    if "flutter" in text and not os.path.exists("mended"):
        raise RuntimeError("the index for that is on fire")
    return [("d1", 2.0), ("d2", 1.0)]
"""


def test_a_failing_topic_makes_a_partial_run_that_says_so_and_can_be_taken_up_again(folder):
    (folder / "flaky_engine.py").write_text(FLAKY)
    sys.modules.pop("flaky_engine", None)
    answer = run(folder, system="flaky_engine:search")
    assert answer.code == 1
    assert "PARTIAL: 1 of 4 topics failed (topic '1': the index for that is on fire)" in answer.err
    assert cranfield.read_run(folder / "x.run").topics == ["2", "3", "4"]
    assert cranfield.read_run(folder / "x.run").tag == "x-partial"
    assert not stats(folder).complete
    assert stats(folder).topics["failed"] == {"1": "the index for that is on fire"}
    refused = run(folder, system="flaky_engine:search")
    assert refused.code == 3
    assert "--resume" in refused.err
    (folder / "mended").touch()
    answer = run(folder, "--resume", system="flaky_engine:search")
    assert answer.code == 0, answer.err
    assert "3 topics came from the journal; throughput and cost are those of the 1 query asked now" in answer.err
    assert sorted(cranfield.read_run(folder / "x.run").topics) == ["1", "2", "3", "4"]
    assert cranfield.read_run(folder / "x.run").tag == "x"
    assert stats(folder).complete
    assert not (folder / "x.run.journal").exists()


def test_when_nothing_is_answered_nothing_is_written(folder):
    (folder / "x.run").write_text("old\n")
    answer = run(folder, system="command:false")
    assert answer.code == 3
    assert "no topic was answered, nothing is written" in answer.err
    assert (folder / "x.run").read_text() == "old\n"
    assert not (folder / "x.run.journal").exists()


SLOW = """
import time
def search(text, k):
    time.sleep(0.2)
    with open("asked.txt", "a") as file:
        file.write(text + "\\n")
    return [("d1", 2.0)]
"""


def test_a_killed_process_loses_no_answer(folder):
    (folder / "slow_engine.py").write_text(SLOW)
    command = [sys.executable, "-m", "cranfield", "run", "papers", "--system", "slow_engine:search", "-o", "x.run"]
    process = subprocess.Popen([*command, "--warmup", "0"], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    journal = folder / "x.run.journal"
    end = time.monotonic() + 60
    while time.monotonic() < end and (not journal.exists() or journal.read_bytes().count(b"\n") < 3):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (folder / "x.run").exists()
    kept = journal.read_bytes().count(b"\n") - 1
    assert kept >= 2
    (folder / "asked.txt").unlink()
    done = subprocess.run(
        [*command, "--warmup", "0", "--resume"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert len((folder / "asked.txt").read_text().splitlines()) == 4 - kept
    assert len(cranfield.read_run(folder / "x.run").topics) == 4


def test_an_engine_over_http_is_driven_from_the_command_line(folder):
    with serving(engines.elasticsearch) as (url, _):
        answer = run(folder, "--clients", 2, "--rate", 200, "--repeat", 3, system=f"elasticsearch:{url}/papers")
    assert answer.code == 0, answer.err
    found = stats(folder)
    assert found.queries["loop"] == "open"
    assert found.queries["clients"] == 2
    assert found.index == {}
    assert found.memory == {}
    assert cranfield.read_run(folder / "x.run")["1"][0][0] in ("d1", "d2")


def big(method, path, query, headers, body):
    """64-bit scores that are one number as doubles, as Typesense has them."""
    answer = engines.typesense(method, path, query, headers, body)
    for place, hit in enumerate(answer["hits"]):
        hit["text_match"] = 578730123365187705 - place
    return answer


@pytest.mark.parametrize("order", [Order(), Order(single=True)])
def test_an_engine_s_order_is_kept_where_its_scores_lose_their_last_digits(order, folder):
    with serving(big) as (url, _):
        spec = f"typesense:{url}/collections/papers,header.X-TYPESENSE-API-KEY=secret"
        answer = run(folder, system=spec)
    assert answer.code == 0, answer.err
    made = cranfield.read_run(folder / "x.run").ranking("1", order)
    assert [document for document, _ in made] == ["d1", "d2", "d4"]
    assert stats(folder).order == {"by": "list", "tied_topics": 2, "rising_topics": 0}
    assert "scores tie in 2 topics and rise in 0 topics; the order of the list was kept" in answer.err


def test_a_function_s_list_keeps_its_order_and_the_statistics_say_so(folder):
    (folder / "listing_engine.py").write_text("def f(text, k): return [('b', 1.0), ('a', 2.0), ('c', 0.5), ('d', 0.5)]")
    answer = run(folder, system="listing_engine:f")
    assert answer.code == 0, answer.err
    made = cranfield.read_run(folder / "x.run")
    assert [document for document, _ in made["1"]] == ["b", "a", "c", "d"]
    assert stats(folder).order == {"by": "list", "tied_topics": 0, "rising_topics": 4}
    run(folder)
    assert stats(folder).order == {"by": "score"}


def test_a_function_s_mapping_has_no_order_to_keep(folder):
    (folder / "mapping_engine.py").write_text("def f(text, k): return {'a': 1.0, 'c': 1.0, 'b': 2.0}")
    answer = run(folder, system="mapping_engine:f")
    assert cranfield.read_run(folder / "x.run")["1"] == [("b", 2.0), ("c", 1.0), ("a", 1.0)]
    assert stats(folder).order == {"by": "score"}
    assert "order" not in answer.err


@given(scores=st.lists(st.floats(allow_nan=False), max_size=12))
@example(scores=[-3.402823364973241e38, 0.0])
def test_lowered_scores_fall_in_32_bits_and_scores_that_fall_stay(scores):
    lowered = falling(scores)
    with np.errstate(over="ignore"):
        short = np.array(lowered, np.float64).astype(np.float32)
    assert (short[1:] < short[:-1]).all()
    if falls(scores):
        assert lowered == scores
    assert len(lowered) == len(scores)


def test_a_command_answers_all_topics_at_once(folder):
    code = 'import sys\nfor line in sys.stdin: print(line.split()[0], "Q0 d1 1 0.5 me")'
    answer = run(folder, system=f"command:{sys.executable} -c '{code}'")
    assert answer.code == 0, answer.err
    assert len(cranfield.read_run(folder / "x.run").topics) == 4
    assert stats(folder).queries["latency_ms"] is None
    assert stats(folder).throughput > 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run",), 2, "give a COLLECTION"),
        (("run", "papers"), 2, "give --system SPEC"),
        (("run", "papers", "--system", "sqlite"), 2, "give -o RUN"),
        (("run", "nothing", "--system", "sqlite", "-o", "x.run"), 3, "nothing: no such folder"),
        (("run", "papers", "--system", "sqlite", "-o", "x.run", "-k", "0"), 2, "--depth must be 1 or more"),
        (("run", "papers", "--system", "sqlite", "-o", "x.run", "--clients", "0"), 2, "clients must be 1 or more"),
        (("run", "papers", "--system", "sqlite", "-o", "no/x.run"), 3, "no/x.run"),
        (("run", "papers", "--system", "sqlite", "-o", "x.run", "--price-per-hour", "-1"), 2, "must be 0 or more"),
        (("run", "papers", "--system", "command:'x", "-o", "x.run"), 2, "no closing quotation"),
        (("run", "papers", "--system", "sqlite", "-o", "-"), 2, "a run is written to a file"),
    ],
)
def test_wrong_use_is_told_in_words(arguments, code, message, folder):
    answer = shell(*arguments, folder=folder)
    assert answer.code == code
    assert message in answer.err
    assert not (folder / "x.run").exists()
    assert not (folder / "x.run.journal").exists()


@pytest.mark.parametrize(("documents", "topics", "message"), [(1, 0, "no topics"), (0, 1, "no documents")])
def test_a_collection_with_nothing_to_ask_or_to_find_is_refused(documents, topics, message, tmp_path):
    write_collection(
        str(tmp_path / "papers"), [Document("d", text="x")][:documents], [Topic("1", "x")][:topics], Qrels({})
    )
    answer = run(tmp_path)
    assert (answer.code, answer.out) == (3, "")
    assert f"papers: {message}" in answer.err
    assert os.listdir(tmp_path) == ["papers"]


def test_a_class_that_fails_to_index_is_told_in_words(folder):
    (folder / "broken_engine.py").write_text(
        "class Engine:\n    def index(self, documents): raise OSError(28, 'No space left on device')\n"
        "    def search(self, text, k): return []\n"
    )
    answer = run(folder, system="broken_engine:Engine")
    assert answer.code == 3
    assert "broken_engine:Engine: indexing failed: OSError: [Errno 28] No space left on device" in answer.err
    assert not (folder / "x.run.journal").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on the size of files")
@pytest.mark.parametrize("content", [b"", b'{"journal', b"\0\0\0"])
def test_an_empty_journal_is_resumed(folder, content):
    (folder / "x.run.journal").write_bytes(content)
    assert run(folder, "--resume").code == 0
    assert not (folder / "x.run.journal").exists()


def test_a_damaged_journal_is_told(folder):
    (folder / "x.run.journal").write_bytes(b"\x1b[2Jnonsense\n")
    answer = run(folder, "--resume")
    assert answer.code == 3
    assert "x.run.journal: not a journal, or its first line is damaged" in answer.err
    assert "delete it to start anew" in answer.err
    assert "\x1b" not in answer.err


def test_a_full_disk_under_the_journal_is_told_and_taken_up_again(folder):
    (folder / "wordy_engine.py").write_text("def search(text, k): return [f'{text[:1]}{i}' for i in range(200)]\n")
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); "
    limited += "from cranfield.cli import main; main(sys.argv[1:])"
    given = ["run", "papers", "--system", "wordy_engine:search", "-o", "x.run", "--allow-unjudged"]
    done = subprocess.run([sys.executable, "-c", limited, *given], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 3
    assert "x.run.journal: cannot be written: file too large; --resume" in done.stderr
    again = subprocess.run([sys.executable, "-m", "cranfield", *given, "--resume"], cwd=folder, capture_output=True)
    assert again.returncode == 0
    assert cranfield.read_run(folder / "x.run").topics == ["1", "2", "3", "4"]


def test_the_bundled_runs_are_what_their_commands_make(tmp_path):
    """Scores to six digits: another SQLite may round otherwise."""
    kept = Path(BUNDLED, "allotment", "runs")
    asked = {"bm25": (), "phrase": ("--system", "sqlite:mode=phrase"), "description": ("--fields", "description")}
    for name, more in asked.items():
        made = shell("run", "allotment", "--system", "sqlite", *more, "-k", 100, "-o", f"{name}.run", folder=tmp_path)
        assert made.code == 0, made.err
    given = [f"{name}.run" for name in asked]
    assert shell("fuse", *given, "-k", 100, "--name", "fusion", "-o", "fusion.run", folder=tmp_path).code == 0
    for name in ("bm25", "phrase", "fusion"):
        made, expected = (cranfield.read_run(at / f"{name}.run") for at in (tmp_path, kept))
        assert made.topics == expected.topics
        assert made.to_dict() == {t: pytest.approx(rows, rel=1e-6) for t, rows in expected.to_dict().items()}


def test_the_systems_are_listed():
    printed = shell("run", "--list").out
    assert all(name in printed for name in ("bm25s", "sqlite", "mode=any", "elasticsearch:URL", "command-each"))
    assert json.loads(shell("run", "--list", "--format", "json").out)[0]["system"] == "bm25s"


# the statistics' file


def test_statistics_written_and_read_back_are_the_same(tmp_path):
    made = RunStats("bm25", "bm25s:k1=0.9", queries={"latency_ms": {"median": 1.5}, "throughput_per_second": 9.0})
    write_run_stats(made, tmp_path / "x.run")
    assert read_run_stats(tmp_path / "x.run") == made
    assert read_run_stats(tmp_path / "other.run") is None
    assert (made.latency("median"), made.latency("p99"), made.throughput, made.cost_per_thousand) == (
        1.5,
        None,
        9.0,
        None,
    )


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"version": 99}', '{"version": 1}'])
def test_statistics_that_cannot_be_read_are_refused(text, tmp_path):
    (tmp_path / "x.run.stats.json").write_text(text)
    with pytest.raises(DataError, match=stats_path("x.run")):
        read_run_stats(tmp_path / "x.run")


def test_a_function_that_indexes_nothing_gets_no_rate_of_indexing(folder):
    (folder / "plain_function.py").write_text("def search(text, k):\n    return ['d1']\n")
    answer = run(folder, system="plain_function:search")
    assert answer.code == 0, answer.err
    assert "per second" not in answer.out.split("throughput")[0]
    assert "index" not in answer.out
    assert stats(folder).index == {}
    (folder / "own_index.py").write_text(
        "class Engine:\n    def index(self, documents): self.ids = [each.id for each in documents]\n"
        "    def search(self, text, k): return self.ids[:k]\n"
    )
    assert run(folder, system="own_index:Engine").code == 0
    assert stats(folder).index["documents"] == 4


def test_a_class_whose_index_takes_no_document_runs_and_gets_no_rate_of_indexing(folder):
    (folder / "empty_index.py").write_text(
        "class Engine:\n    def index(self, documents): pass\n    def search(self, text, k): return ['d1']\n"
    )
    answer = run(folder, system="empty_index:Engine")
    assert answer.code == 0, answer.err
    assert "index  " not in answer.out
    assert stats(folder).index == {}
