"""Hostile values for every kind of slot: words that are no numbers, files that are no data, valid files made worse.

`worse` changes valid bytes a little, so that readers come far before they meet the fault. What is listed as UNUSABLE can
never be right where its kind of slot stands; everything else may be accepted by one slot and refused by another.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from typing import TYPE_CHECKING, Any

import odd_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

UNUSABLE_NUMBERS = ("nan", "inf", "-inf", "1e400", "zero", "0x10", "1_000", "٣", "1,5", "1 000", "9" * 400, "--", "½")
ODD_NUMBERS = ("", "-1", "0", "-0", "0.5", "1.5", "1e-300", "-1e300", "1e300", "1e12", "9" * 18, "9" * 20)
UNUSABLE_NAME = "nosuchname"
TEXTS = (
    *("", " ", "\t", "a\nb", "\x1b[31mred", "\udcff", "é\u202e", "%s%n%d", "{0.__class__}", "{x}", "$HOME", "~nobody"),
    *(
        "-",
        "--",
        "=",
        "a=",
        "=b",
        "a=b=c",
        ",",
        "a,,b",
        "a=1/0",
        "x" * 10_000,
        "../../..",
        "/",
        "*",
        "[",
        "(?P<",
        "a:b:c",
    ),
    *("nan", "-1", "0", "1e400", "101%", "-5%", "nan%", "1970-13-45", "9999-12-31", "http://[::1", "0-99999", "3-1"),
    *(
        "P@0",
        "RBP(p=2)",
        "nDCG@10(",
        "gmean(" * 30 + "AP" + ")" * 30,
        "None",
        "null",
        "q1",
        "'; drop table judgments; --",
    ),
)
MISSING_FOLDER = "no/such/folder/out"
UNUSABLE_OUTPUTS = (MISSING_FOLDER, "qrels.txt/out", "/dev/full", "o" * 5_000)
ODD_OUTPUTS = (
    "",
    ".",
    "..",
    "smart",
    "out.nosuchending",
    "-",
    "/dev/null",
    "\udcff",
    "a\nb",
    "qrels.txt",
    "x.gz",
    "x.zip",
)
UNUSABLE_PATHS = ("no-such-file", "no/such/folder/file", "qrels.txt/file", "p" * 5_000, "\udcff", "no-such*.run")
ODD_PATHS = (
    "",
    ".",
    "smart",
    "-",
    "/dev/null",
    "/dev/zero",
    "a=",
    "=a",
    "work.db@",
    "@v1",
    "https://",
    "qrels.txt",
    "bm25.run",
)

TEXT_OF_A_RUN = odd_files.RUN


def _parquet() -> bytes:
    import io

    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"query_id": ["q1"], "doc_id": ["doc-003"], "score": [1.0]}), file)
    return file.getvalue()


def _database() -> bytes:
    import sqlite3

    held = sqlite3.connect(":memory:")
    held.execute("create table judgments (topic text, document text, grade real)")
    held.execute("insert into judgments values ('q1', 'doc-003', 1)")
    held.commit()
    return held.serialize()


UNUSABLE_FILES: dict[str, Callable[[], bytes]] = {
    "noise.run": odd_files.noise,
    "zeros.run": odd_files.zeros,
    "cut.run.gz": odd_files.cut_gzip,
    "broken.run.gz": odd_files.broken_gzip,
    "broken.run.xz": odd_files.broken_xz,
    "broken.run.bz2": odd_files.broken_bzip2,
    "cut.run.xz": lambda: lzma.compress(TEXT_OF_A_RUN)[:70],
    "cut.run.bz2": lambda: bz2.compress(TEXT_OF_A_RUN)[:70],
    "cut.run.zip": lambda: odd_files.archive()[:-30],
    "broken.parquet": odd_files.broken_parquet,
    "cut.parquet": lambda: _parquet()[:-40],
    "noise.parquet": odd_files.noise,
    "deep.json": odd_files.deep_json,
    "deep.jsonl": odd_files.deep_jsonl,
    "deep.toml": odd_files.deep_toml,
    "noise.db": odd_files.noise,
    "cut.db": lambda: _database()[:600],
    "other.db": _database,
    "noise.toml": odd_files.noise,
    "noise.csv": odd_files.noise,
    "noise.jsonl": odd_files.noise,
    "nulls.csv": lambda: b"query_id,doc_id,score\nq\x001,doc\x00,1\x00\n",
}
ODD_FILES: dict[str, Callable[[], bytes]] = {
    "empty": bytes,
    "empty.json": bytes,
    "empty.jsonl": bytes,
    "empty.csv": bytes,
    "empty.toml": bytes,
    "empty.db": bytes,
    "empty.parquet": bytes,
    "newline.txt": lambda: b"\n",
    "mark.txt": lambda: b"\xef\xbb\xbf",
    "utf-16.run": odd_files.utf_16,
    "utf-16-only-marked.csv": lambda: b"\xff\xfe",
    "windows.csv": lambda: "query_id;doc_id;score\nq1;Gr\xfcn;1,5\n".encode("cp1252"),
    "digits.jsonl": odd_files.digits_jsonl,  # a column that a table of topics may have
    "long-line.txt": lambda: b"x" * 2_000_000,
    "long-line.jsonl": lambda: b'{"topic": "' + b"x" * 2_000_000 + b'"}\n',
    "null.json": lambda: b"null",
    "list.json": lambda: b"[[1]]",
    "scalar.jsonl": lambda: b"3\n",
    "surrogate.jsonl": lambda: b'{"topic": "\\ud800", "document": "\\ud800", "grade": 1, "query_id": "\\ud800"}\n',
    "infinite.jsonl": lambda: b'{"topic": "q1", "document": "d", "grade": Infinity, "score": 1e999}\n',
    "null-id.jsonl": lambda: b'{"topic": "q1", "document": null, "grade": 1, "doc_id": null}\n',
    "twice.jsonl": lambda: b'{"topic": "q1", "topic": "q2", "document": "d", "grade": 1}\n',
    "unknown.toml": lambda: b"nosuch = 1\n[nosuch2]\nx = nan\n",
    "typed.toml": lambda: b'name = 3\nvariants = "a"\nmetric = []\ntasks = 1\nurl = []\n',
    "one-column.csv": lambda: b"topic\nq1\n",
    "quote.csv": lambda: b'topic,document,grade\n"q1,doc-003,1\n',
    "packed.gz": lambda: gzip.compress(b"", mtime=0),
}


def worse(rng: Random, content: bytes) -> bytes:
    """Valid bytes after one change that a disk, an editor or an export makes."""
    return rng.choice(CHANGES)(rng, content)


def _cut(rng: Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flipped(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 3, 30))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _other_encoding(rng: Random, content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037")), "replace")


def _line_changed(rng: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    place = rng.randrange(len(lines))
    pieces = re.split(rb"([\s,;:=]+)", lines[place])
    odd = rng.choice(
        (b"", b"\0", b"nan", b"-1", b"1e999", b"null", b"[]", b"{}", b'"', b"\xff", b"x" * 70_000, b"9" * 500)
    )
    kind = rng.choice(("word", "word", "twice", "gone", "joined"))
    if kind == "word":
        pieces[rng.randrange(0, len(pieces), 2)] = odd
        lines[place] = b"".join(pieces)
    elif kind == "twice":
        lines.insert(place, lines[place])
    elif kind == "gone":
        del lines[place]
    else:
        lines[place] = lines[place].rstrip(b"\r\n")
    return b"".join(lines)


def _value_changed(rng: Random, content: bytes) -> bytes:
    """A value inside JSON, or of a key of TOML, of another type."""
    lines = content.splitlines()
    if not lines:
        return content
    place = rng.randrange(len(lines))
    try:
        record = json.loads(lines[place])
    except ValueError:
        odd = rng.choice(("[]", "{}", "-1", "nan", "true", '""', "[[1]]", "1e400", "9" * 30, "1979-05-27"))
        head, sign, _ = lines[place].partition(b"=")
        lines[place] = head + sign + b" " + odd.encode() if sign else head
        return b"\n".join(lines) + b"\n"
    lines[place] = json.dumps(_retyped(rng, record)).encode()
    return b"\n".join(lines) + b"\n"


def _retyped(rng: Random, record: Any) -> Any:
    odd = rng.choice(
        (None, True, -1, 1e308, float("nan"), 10**30, "", "\0", "\ud800", [], {}, [[1]], {"a": {"b": None}}, "x")
    )
    if isinstance(record, dict) and record and rng.random() < 0.9:
        key = rng.choice(sorted(record))
        if rng.random() < 0.2:
            return {name: value for name, value in record.items() if name != key}
        return {**record, key: _retyped(rng, record[key]) if rng.random() < 0.5 else odd}
    if isinstance(record, list) and record and rng.random() < 0.7:
        place = rng.randrange(len(record))
        return [*record[:place], _retyped(rng, record[place]), *record[place + 1 :]]
    return odd


def _packed_and_cut(rng: Random, content: bytes) -> bytes:
    packed = rng.choice((gzip.compress, bz2.compress, lzma.compress))(content)
    return packed[: -rng.randrange(1, 30)]


def _inserted(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    return (
        content[:place]
        + rng.choice((b"\0", b"\xff\xfe", b"\r", b'"', b"\n\n", b"\x1b[2J", b"\xed\xa0\x80"))
        + content[place:]
    )


CHANGES = (
    _cut,
    _flipped,
    _other_encoding,
    _line_changed,
    _line_changed,
    _value_changed,
    _value_changed,
    _packed_and_cut,
    _inserted,
)
