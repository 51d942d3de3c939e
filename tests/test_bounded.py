"""What has no end, or a line without one, is refused within bounded memory and by file and line; so are answers of engines."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import BadLineError, DataError, TooLargeError
from cranfield.formats import streams
from cranfield.formats.streams import lines, open_buffer, opened, read_small
from cranfield.retrieval.http_client import Client
from shell import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST = 500  # megabytes above the start
LONG = 300_000_000  # bytes
PEAK = """
import json, resource, sys
from cranfield.cli import main
import cranfield.formats.runs_and_qrels, cranfield.formats.format_registry

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

start, codes = peak(), []
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit as end:
        codes.append(end.code)
print(json.dumps({"codes": codes, "above": peak() - start}))
"""


def peak_of(commands: list[list[str]], folder: Path) -> tuple[list[int], int, str]:
    """Exit codes of commands in one process, its peak of memory in megabytes above the start, and what it said."""
    # a limit of the system's, so that a test that fails does not take the machine along
    guard = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
    done = subprocess.run(
        [sys.executable, "-c", guard + PEAK, json.dumps(commands)],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    values = json.loads(done.stdout.splitlines()[-1])
    return values["codes"], values["above"], done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of two lines, the second of 300 MB, which takes no room on the disk."""
    with open(tmp_path / "long.txt", "wb") as file:
        file.write(b"1 Q0 d1 1 1.0 tag\n")
        file.truncate(LONG)
    return tmp_path


def reading(path: str) -> list[list[str]]:
    """Commands that read a file in every way there is."""
    run, qrels, topics = (str(EXAMPLES / name) for name in ("bm25.run", "qrels.txt", "topics.tsv"))
    return [
        ["eval", path, run],
        ["eval", qrels, path],
        ["check", path],
        ["convert", path, "out.run"],
        ["fuse", run, path, "-o", "out.run"],
        ["pool", "make", run, "--judgments", path],
        ["judge", "status", path],
        ["judge", "add", "work.db", path],
        ["compare", "--table", path],
        ["trec_eval", qrels, path],
        ["online", "ingest", "log", path, "--from", "jsonl"],
        ["online", "assign", path, "unit"],
        ["online", "ingest", "log", str(EXAMPLES / "online" / "events.jsonl"), "--pseudonym-key", path],
        ["run", topics, "--system", f"http:{path}", "-o", "out.run"],
    ]


def test_a_device_without_end_is_refused_within_bounded_memory_by_every_reader(folder):
    commands = reading("/dev/zero")
    codes, above, said = peak_of(commands, folder)
    assert [code for code in codes if code not in (2, 3)] == []
    assert len(codes) == len(commands)
    assert "Traceback" not in said
    assert "/dev/zero:1: expected lines of at most 64 MB" in said
    assert "/dev/zero: expected a TOML file of 16 MB at the most" in said
    assert "/dev/zero: others can read it" in said  # as the file of a key
    assert above <= MOST
    assert not (folder / "out.run").exists()


def test_a_line_of_300_mb_is_refused_by_file_and_line_within_bounded_memory(folder):
    commands = reading("long.txt")
    codes, above, said = peak_of(commands, folder)
    assert [code for code in codes if code not in (2, 3)] == []
    assert len(codes) == len(commands)
    assert said.count("long.txt:2: expected lines of at most 64 MB") >= 8
    assert above <= MOST


def test_a_device_with_lines_but_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "DEVICE", 1_000_000)
    with pytest.raises(DataError, match="a device that has not ended after 1 MB"):
        opened("/dev/urandom")
    assert bytes(open_buffer("/dev/null")) == b""


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_limit_of_lines_names_the_line_and_can_be_raised(ending, tmp_path, monkeypatch):
    import gzip

    path = str(tmp_path / f"some.jsonl{ending}")
    content = b"short\n" * 3 + b"x" * 1500 + b"\n" + b"short\n"
    with gzip.open(path, "wb") if ending else open(path, "wb") as file:
        file.write(content)
    monkeypatch.setenv(streams.LIMIT_NAME, "8k")
    for read in (lambda: [*lines(path)], *([] if ending else [lambda: opened(path)])):
        with pytest.raises(BadLineError, match=r"some.jsonl(.gz)?:4: expected lines of at most 0.001 MB"):
            read()
    monkeypatch.setenv(streams.LIMIT_NAME, "16k")
    assert b"".join(lines(path)) == content == bytes(opened(path).buffer)


def test_json_and_parquet_need_no_lines(tmp_path, monkeypatch):
    monkeypatch.setenv(streams.LIMIT_NAME, "8k")
    for head in (b'{"q": ', b" [", b"PAR1"):
        (tmp_path / "one").write_bytes(head + b"x" * 5000)
        assert len(opened(str(tmp_path / "one")).buffer) == len(head) + 5000


def test_lines_of_a_pipe_are_counted_against_the_limit(monkeypatch):
    monkeypatch.setenv(streams.LIMIT_NAME, "8k")
    for content, number in ((b"a\n" * 5000, 0), (b"a\nb\n" + b"x" * 3000, 3)):
        ours, theirs = os.pipe()
        os.write(theirs, content)
        os.close(theirs)
        with open(ours, "rb") as file:
            if not number:
                assert streams.read_stream(file, "<pipe>") == content
            else:
                with pytest.raises(BadLineError, match=f"<pipe>:{number}: "):
                    streams.read_stream(file, "<pipe>")


def test_a_small_file_is_read_and_a_larger_one_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "SMALL", 10)
    (tmp_path / "a").write_bytes(b"0123456789")
    with open(tmp_path / "a", "rb") as file:
        assert read_small(file, "a") == b"0123456789"
    (tmp_path / "a").write_bytes(b"0123456789x")
    with open(tmp_path / "a", "rb") as file, pytest.raises(DataError, match="a: expected a file of at most"):
        read_small(file, "a")


# answers


@contextmanager
def answering(piece: bytes, count: int) -> Iterator[str]:
    """An engine whose every answer is so many pieces."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n[" % (len(piece) * count + 3))
                        for _ in range(count):
                            connection.sendall(piece)
                        connection.sendall(b"0]")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


CROWDED = b"[]," * 100_000


@pytest.mark.parametrize("options", [[], ["--max-answer", "200"]])
def test_an_answer_of_90_mb_is_refused_within_bounded_memory(options, tmp_path):
    """One of thirty million empty lists, which would take two gigabytes."""
    (tmp_path / "engine.toml").write_text('url = "{base}/"\nhits = "hits"\nid = "id"\n[options]\nbase = ""\n')
    with answering(CROWDED, 300) as url:
        engine = f"http:engine.toml,base={url}"
        usual = ["-o", "out.run", "-k", "5", "--timeout", "20", "--retries", "0", "--warmup", "0", "--give-up", "1"]
        command = ["run", "allotment", "--system", engine, *usual, *options]
        [code], above, said = peak_of([command], tmp_path)
    assert code == 3, said
    assert "larger than" in said or "60,000,001 values" in said
    assert above <= MOST


def test_values_of_an_answer_are_counted_before_they_are_read():
    with answering(b'{"id": "d", "score": 1.5},', 10_000) as url:
        client = Client(url, timeout=30)
        assert len(client.ask("GET", "/", {}, {}, None)) == 10_001
        client.close()
    with answering(CROWDED, 16) as url:
        client = Client(url, timeout=30)
        with pytest.raises(TooLargeError, match="3,200,001 values"):
            client.ask("GET", "/", {}, {}, None)
        client.close()
