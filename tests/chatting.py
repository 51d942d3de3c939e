"""An OpenAI-compatible server that does what a test tells it, document by document, and counts what it is asked."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TOKENS_IN, TOKENS_OUT = 100, 5
DOCUMENT = re.compile(r"\bdocument (d\d+)\b")

Deed = "Callable[[Handler, dict[str, Any]], None]"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the receipt of its headers
    server: Chat

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.heard.append(dict(self.headers))
        if self.server.models is None:
            self.send(404, {"error": {"message": "no such page"}})
        else:
            self.send(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        about = DOCUMENT.findall(body["messages"][-1]["content"])
        name = about[0] if about else ""
        with self.server.lock:
            self.server.count += 1
            self.server.heard.append(dict(self.headers))
            self.server.bodies.append(body)
            self.server.asked[name] += 1
            deeds = self.server.script.get(name, [])
            deed = deeds.pop(0) if deeds else self.server.usual
        deed(self, body)

    def send(self, status: int, content: Any, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True


class Chat(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.count = 0
        self.asked: Counter[str] = Counter()
        self.heard: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.script: dict[str, list[Any]] = {}
        self.models: Sequence[str] | None = ("m",)
        self.usual: Any = grade(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def chatting() -> Iterator[Chat]:
    server = Chat()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def completion(content: str | None, finish: str = "stop", usage: bool = True, **message: Any) -> dict[str, Any]:
    counted = {"usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT}} if usage else {}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return {"id": "x", "model": "m-2026", "system_fingerprint": "fp_1", "choices": [choice], **counted}


def says(content: str | None, finish: str = "stop", **more: Any) -> Any:
    return lambda handler, body: handler.send(200, completion(content, finish, **more))


def grade(value: object) -> Any:
    return says(json.dumps({"grade": value}))


def status(code: int, said: str = "no", **headers: str) -> Any:
    return lambda handler, body: handler.send(code, {"error": {"message": said}}, **headers)


def body(data: bytes) -> Any:
    return lambda handler, body: handler.send(200, data)


def silence(seconds: float) -> Any:
    def deed(handler: Handler, body: dict[str, Any]) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return deed


def cut(handler: Handler, body: dict[str, Any]) -> None:
    """Half an answer, and the end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')
    handler.wfile.flush()
    handler.close_connection = True


def dropped(handler: Handler, body: dict[str, Any]) -> None:
    handler.close_connection = True


def refuses(option: str) -> Any:
    """A server that does not know an option, and answers without it."""

    def deed(handler: Handler, body: dict[str, Any]) -> None:
        if option in body:
            handler.send(400, {"error": {"message": f"unknown option {option}"}})
        else:
            grade(2)(handler, body)

    return deed


def collection(folder: Path, texts: dict[str, str], topics: Sequence[str] = ("q1",)) -> str:
    """A collection of documents, each of which says its name, and a pool of them all for each topic."""
    here = folder / "collection"
    here.mkdir()
    (here / "collection.toml").write_text('name = "toy"\n')
    rows = [{"id": name, "title": "", "text": f"document {name} {text}"} for name, text in texts.items()]
    (here / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"id": name, "title": f"what is {name}"} for name in topics]
    (here / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (here / "qrels.txt").write_text("")
    pairs = [{"topic": topic, "document": name} for topic in topics for name in texts]
    (folder / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    return str(here)
