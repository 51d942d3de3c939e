"""The pages of the documentation and their examples: what tests run and `make golden` writes again.

A ```console block holds `$ cranfield …` lines, each followed by what it prints (on stdout, or on both streams) if that is
shown. `...` alone on a line stands for anything; what is shown with it is never written again, as nobody but its author
knows what it may leave out.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from difflib import SequenceMatcher
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from executions import executed
from shell import EXAMPLES, Answer, cranfield

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path.exists()
]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n?", re.MULTILINE)
SHOP = "localhost:8000"  # where pages say that the shop of the examples answers
ELLIPSIS = re.compile(r"^\.\.\.$\n?", re.MULTILINE)


class Block(NamedTuple):
    line: int
    language: str
    text: str
    printed: str | None  # a bare block right below


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    answer = []
    for i, match in enumerate(found):
        below = found[i + 1] if i + 1 < len(found) else None
        follows = below is not None and not below[1] and not text[match.end() : below.start()].strip()
        printed = below[2] if follows and below is not None else None
        answer.append(Block(text[: match.start()].count("\n") + 1, match[1], match[2], printed))
    return answer


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, and what is shown below each."""
    parts = COMMAND.split(text)
    assert not parts[0].strip(), "a console block starts with $"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run(line: str, folder: Path) -> Answer:
    """Run a command as a page spells it, in a folder."""
    program, *arguments = shlex.split(line.replace("\\\n", " "))
    assert program == "cranfield", line
    if arguments[0] == "serve" and "--link" not in arguments:
        return served_and_stopped(arguments, folder)
    if SHOP not in line:
        return executed(*arguments, folder=folder)
    with shop_served(folder) as address:
        return cranfield(*(argument.replace(SHOP, address) for argument in arguments), folder=folder)


def served_and_stopped(arguments: list[str], folder: Path) -> Answer:
    """Run a command that serves until it is stopped: up to the link that it prints, then as Ctrl-C would stop it."""
    command = [sys.executable, "-m", "cranfield", *arguments, "--port", "0"]
    child = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    said = []
    for line in child.stderr:
        said.append(line)
        if "http" in line:
            child.send_signal(signal.SIGINT)
    child.stderr.close()
    text = "".join(said)
    return Answer(child.wait(60), "", text, text)


@contextmanager
def shop_served(folder: Path) -> Iterator[str]:
    """The address of the example shop's endpoint, which is there meanwhile."""
    spec = importlib.util.spec_from_file_location("served", folder / "shop" / "rankers.py")
    assert spec is not None
    assert spec.loader is not None
    served = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(served)
    with ThreadingHTTPServer(("127.0.0.1", 0), served.Endpoint) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def same(shown: str, printed: str) -> bool:
    """Whether what the page shows is what was printed, `...` on a line being anything."""
    parts = ELLIPSIS.split(shown)
    return re.fullmatch("(?s:.*)".join(map(re.escape, parts)).rstrip("\\\n") + r"\s*", printed) is not None


def fits(shown: str, answer: Answer) -> bool:
    """Whether a page may show this below a command that answered so; it may show nothing where all went well."""
    if not shown.strip():
        return answer.code == 0
    return same(shown, answer.out) or same(shown, answer.both)


def current(shown: str, answer: Answer) -> str:
    """What a page should show below a command; as it is where it fits, is left out, or leaves something out."""
    if not shown.strip() or ELLIPSIS.search(shown) or fits(shown, answer):
        return shown
    blank = shown[len(shown.rstrip("\n")) + 1 :]
    nearer = max((answer.out, answer.both), key=lambda text: SequenceMatcher(None, shown, text).ratio())
    return nearer.rstrip("\n") + "\n" + blank


def rewrite(page: Path, folder: Path) -> list[str]:
    """Write a page's console blocks again, run in a copy of examples/; what must be mended by hand is returned."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    problems = []

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        written = ""
        for line, shown in commands(match[2]):
            answer = run(line, folder)
            now = current(shown, answer)
            if not fits(now, answer):
                problems.append(f"{page.relative_to(ROOT)}: `{line}` no longer prints what is shown; mend it by hand")
            written += f"$ {line}\n{now}"
        head, tail = match[0][: match.start(2) - match.start()], match[0][match.end(2) - match.start() :]
        return head + written + tail

    text = page.read_text(encoding="utf-8")
    now = FENCE.sub(block, text)
    if now != text:
        page.write_text(now, encoding="utf-8")
    return problems
