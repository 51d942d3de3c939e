"""What the driver adds to a query over HTTP: a bare client loop and `cranfield.retrieval.driver`, by turns, on one server.

Arguments: queries, hits in an answer, repeats. The server is a process of its own that sends the same answer to
everything, in the layout of Elasticsearch. Both sides parse the JSON and read ids and scores; the driver besides keeps
latencies and a journal. Prints the milliseconds a query of each turn.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
from time import perf_counter


def serve(hits: int) -> None:
    """Answer whoever connects, one after the other, until killed."""
    rows = [{"_index": "b", "_id": f"doc-{i:06}", "_score": 20 - i / 997} for i in range(hits)]
    body = json.dumps({"took": 1, "timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": rows}}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    while True:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as asked:
            while asked.readline():
                length = 0
                while (line := asked.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                asked.read(length)
                connection.sendall(answer)


def bare(port: int, queries: int, hits: int) -> float:
    """As little as a client can do and still have the hits."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    answers = {}
    start = perf_counter()
    for i in range(queries):
        match = {"query": f"query {i}", "fields": ["title", "text"], "type": "best_fields"}
        body = json.dumps({"size": hits, "_source": False, "query": {"multi_match": match}})
        connection.request("POST", "/b/_search", body, {"Content-Type": "application/json"})
        found = json.loads(connection.getresponse().read())
        answers[str(i)] = [(hit["_id"], hit["_score"]) for hit in found["hits"]["hits"]]
    taken = perf_counter() - start
    connection.close()
    return taken / queries * 1e3


def driven(port: int, queries: int, hits: int) -> float:
    """The same through cranfield: template, retries, latencies, journal."""
    from cranfield.base.collection import Topic
    from cranfield.retrieval import Query, system
    from cranfield.retrieval.driver import Journal, Load, drive

    engine = system(f"elasticsearch:http://127.0.0.1:{port}/b")
    asked = [Query(str(i), f"query {i}", Topic(str(i), "")) for i in range(queries)]
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(os.path.join(folder, "journal"), {}, resume=False)
        start = perf_counter()
        done = drive(engine, asked, hits, Load(warmup=0), journal)
        taken = perf_counter() - start
        journal.discard()
    engine.close()
    if len(done.answers) != queries or done.failed:
        raise SystemExit(f"{len(done.answers)} of {queries} queries were answered")
    return taken / queries * 1e3


def main(queries: int, hits: int, repeats: int) -> None:
    """Both by turns, after one turn that is not counted."""
    server = subprocess.Popen([sys.executable, __file__, "serve", str(hits)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    try:
        turns = [(bare(port, queries, hits), driven(port, queries, hits)) for _ in range(repeats + 1)][1:]
    finally:
        server.kill()
        server.wait()
    print(json.dumps({"bare": [turn[0] for turn in turns], "driven": [turn[1] for turn in turns]}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:4]))
