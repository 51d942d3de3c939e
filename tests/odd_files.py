"""Contents that are too large or too odd to stand in bad_inputs.toml; each function there is named by `make`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile

DEEP = 100_000
RUN = b"".join(b"q1 Q0 doc-%03d %d %d a\n" % (n, n, 100 - n) for n in range(99))


def strange_ids() -> bytes:
    return b"".join(b"q1 Q0 x%d %d %d a\n" % (n, n, -n) for n in range(120))


def strange_topics() -> bytes:
    return b"".join(b"301 Q0 doc-%03d %d %d a\n" % (n, n, -n) for n in range(120))


def noise() -> bytes:
    return random.Random(5).randbytes(4096)


def zeros() -> bytes:
    return bytes(4096)


def utf_16() -> bytes:
    return RUN.decode().encode("utf-16")


def cut_gzip() -> bytes:
    return gzip.compress(RUN, mtime=0)[:60]


def broken_gzip() -> bytes:
    return _broken(gzip.compress(RUN, mtime=0))


def broken_xz() -> bytes:
    return _broken(lzma.compress(RUN))


def broken_bzip2() -> bytes:
    return _broken(bz2.compress(RUN))


def _broken(packed: bytes) -> bytes:
    return packed[:-20] + bytes(12) + packed[-8:]


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("a.run", RUN)
    return file.getvalue()


def broken_parquet() -> bytes:
    return b"PAR1" + bytes(64) + b"PAR1"


def deep_json() -> bytes:
    return b'{"q1":' * DEEP + b"1" + b"}" * DEEP


def deep_jsonl() -> bytes:
    return b'{"query_id": "q1", "doc_id": "a", "score": ' + b"[" * DEEP + b"]" * DEEP + b"}\n"


def digits_json() -> bytes:
    return b'{"q1": {"doc-003": ' + b"9" * 400 + b"}}"


def digits_jsonl() -> bytes:
    return b'{"query_id": "q1", "doc_id": "doc-003", "score": ' + b"9" * 400 + b"}\n"


def digits_labels() -> bytes:
    return b'{"topic": "q1", "document": "doc-003", "grade": ' + b"9" * 400 + b"}\n"


def thousands_json() -> bytes:
    """More digits than Python turns into a whole number."""
    return b'{"q1": {"doc-003": ' + b"9" * 5000 + b"}}"


def thousands_toml() -> bytes:
    return b"url = 'http://localhost/'\nhits = 'hits'\nid = 'id'\nplace = " + b"9" * 5000 + b"\n"


def deep_toml() -> bytes:
    return b"url = " + b"[" * DEEP + b"]" * DEEP + b"\n"


def long_cell() -> bytes:
    return b"x" * 200_000
