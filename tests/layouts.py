"""One small collection, written in every layout that is read: what a test about all of them needs."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [
    ("1", "swarming and how to prevent it", "a colony that runs out of room raises queen cells\nand swarms in may"),
    ("2", "feeding sugar syrup", "bees that have lost their honey need sugar before october"),
    ("3", "treating varroa", "oxalic acid in december kills nine of ten mites"),
    ("4", "counting mites", "a sticky board under the floor catches falling varroa"),
]
TOPICS = [("1", "how to stop bees from swarming"), ("2", "when to treat varroa mites"), ("3", "what to feed in autumn")]
QRELS = {"1": {"1": 1.0}, "2": {"3": 1.0, "4": 1.0}, "3": {"2": 1.0}}


class Plain(NamedTuple):
    """A collection as the words of its documents and topics, whatever is title and whatever text."""

    documents: dict[str, list[str]]
    topics: dict[str, list[str]]
    qrels: dict[str, dict[str, float]]


EXPECTED = Plain(
    {name: f"{title} {text}".split() for name, title, text in DOCUMENTS},
    {name: text.split() for name, text in TOPICS},
    QRELS,
)


def plain(collection) -> Plain:
    return Plain(
        {d.id: f"{d.title} {d.text}".lower().split() for d in collection.documents()},
        {t.id: t.title.lower().split() for t in collection.topics},
        collection.qrels.to_dict(),
    )


def pairs() -> list[tuple[str, str]]:
    return [(topic, document) for topic, documents in QRELS.items() for document in documents]


def write(folder: Path, **files: str) -> Path:
    """Write files, two underscores in a name for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def smart(folder: Path) -> Path:
    return write(
        folder,
        BEES__ALL="".join(f".I {i}\n.T\n{title}\n.A\nmarsh, e.\n.W\n{text}\n" for i, title, text in DOCUMENTS),
        BEES__QRY="".join(f".I {i}\n.W\n{text}\n" for i, text in TOPICS),
        BEES__REL="".join(f"     {t}     {d}\t0\t0.000000\n" for t, d in pairs()),
    )


def time(folder: Path) -> Path:
    return write(
        folder,
        TIME__ALL="".join(
            f"*TEXT 0{int(i) + 16} 01/04/63 PAGE 020\n\n{title.upper()}\n\n{text.upper()}\n\n"
            for i, title, text in DOCUMENTS
        )
        + "*STOP\n",
        TIME__QUE="".join(f"*FIND     {i}\n\n {text.upper()}\n\n" for i, text in TOPICS) + "*STOP\n",
        TIME__REL="\n\n".join(f"{t}  {' '.join(found)}" for t, found in QRELS.items()),
    )


def npl(folder: Path) -> Path:
    write(folder)
    records = {
        "doc-text": [(i, f"{title}\n{text}") for i, title, text in DOCUMENTS],
        "query-text": TOPICS,
        "rlv-ass": [(t, " " + "  ".join(found)) for t, found in QRELS.items()],
    }
    for name, rows in records.items():
        (folder / name).write_text("".join(f"{i}\n{text}\n   /\n" for i, text in rows))
    return folder


def lisa(folder: Path) -> Path:
    halves = [
        "".join(f"Document {int(i):4}\n{title}\n\n{text}\n{'*' * 44}\n" for i, title, text in part)
        for part in (DOCUMENTS[:2], DOCUMENTS[2:])
    ]
    blocks = (f"Query {t}\n{len(found)} Relevant Refs:\n{' '.join(found)} -1\n\n" for t, found in QRELS.items())
    return write(
        folder,
        LISA0__001=halves[0],
        LISA1__501=halves[1],
        LISA__QUE="".join(f"{i}\n{text} #\n" for i, text in TOPICS),
        LISA__REL="".join(blocks),
    )


def trec(folder: Path) -> Path:
    texts = (
        f"<DOC>\n<DOCNO> {i} </DOCNO>\n<HEADLINE>{title}</HEADLINE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
        for i, title, text in DOCUMENTS
    )
    tops = (
        f"<top>\n<num> Number: {i}\n<title> Topic: {text}\n\n<desc> Description:\nFind it.\n</top>\n"
        for i, text in TOPICS
    )
    return write(
        folder,
        docs__sgml="".join(texts),
        topics__txt="".join(tops),
        qrels__txt="".join(f"{t} 0 {d} 1\n" for t, d in pairs()),
    )


def beir(folder: Path) -> Path:
    write(folder / "qrels", test__tsv="query-id\tcorpus-id\tscore\n" + "".join(f"{t}\t{d}\t1\n" for t, d in pairs()))
    return write(
        folder,
        corpus__jsonl=_lines({"_id": i, "title": title, "text": text, "metadata": {}} for i, title, text in DOCUMENTS),
        queries__jsonl=_lines(
            {"_id": i, "text": text, "metadata": {}} for i, text in [*TOPICS, ("99", "of another split")]
        ),
    )


def msmarco(folder: Path) -> Path:
    write(folder)
    (folder / "collection.tsv").write_text(
        "".join(f"{i}\t{title} {' '.join(text.split())}\n" for i, title, text in DOCUMENTS)
    )
    (folder / "queries.dev.small.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in TOPICS))
    (folder / "qrels.dev.small.tsv").write_text("".join(f"{t}\t0\t{d}\t1\n" for t, d in pairs()))
    return folder


def jsonl(folder: Path) -> Path:
    return write(
        folder,
        documents__jsonl=_lines({"id": i, "title": title, "text": text} for i, title, text in DOCUMENTS),
        topics__jsonl=_lines({"id": i, "title": text} for i, text in TOPICS),
        qrels__txt="".join(f"{t} 0 {d} 1\n" for t, d in pairs()),
    )


def csv_(folder: Path) -> Path:
    write(folder, qrels__txt="".join(f"{t} 0 {d} 1\n" for t, d in pairs()))
    for name, head, rows in (
        ("documents.csv", ("docno", "title", "body"), DOCUMENTS),
        ("topics.csv", ("qid", "query"), TOPICS),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows])
    return folder


def parquet(folder: Path) -> Path:
    import pyarrow
    from pyarrow import parquet as tables

    write(folder, qrels__txt="".join(f"{t} 0 {d} 1\n" for t, d in pairs()))
    for name, head, rows in (
        ("documents.parquet", ("doc_id", "title", "text"), DOCUMENTS),
        ("topics.parquet", ("query_id", "query"), TOPICS),
    ):
        columns = dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))
        tables.write_table(pyarrow.table(columns), folder / name)
    return folder


def ir_datasets(folder: Path) -> str:
    """A data set of ir_datasets, registered here: its own cannot be had without a network."""
    import ir_datasets as package
    from ir_datasets.formats import GenericDoc, GenericQuery, TrecQrel

    class Docs(package.formats.BaseDocs):
        def docs_iter(self):
            return iter([GenericDoc(i, f"{title} {text}") for i, title, text in DOCUMENTS])

        def docs_cls(self):
            return GenericDoc

    class Queries(package.formats.BaseQueries):
        def queries_iter(self):
            return iter([GenericQuery(i, text) for i, text in TOPICS])

        def queries_cls(self):
            return GenericQuery

    class Judged(package.formats.BaseQrels):
        def qrels_iter(self):
            return iter([TrecQrel(t, d, 1, "0") for t, d in pairs()])

        def qrels_cls(self):
            return TrecQrel

        def qrels_defs(self):
            return {1: "answers the question"}

    if "bees-of-the-tests" not in package.registry:
        package.registry.register("bees-of-the-tests", package.Dataset(Docs(), Queries(), Judged()))
    return "ir_datasets:bees-of-the-tests"


WRITERS = {
    "smart": smart,
    "time": time,
    "npl": npl,
    "lisa": lisa,
    "trec": trec,
    "beir": beir,
    "msmarco": msmarco,
    "jsonl": jsonl,
    "csv": csv_,
    "parquet": parquet,
    "ir_datasets": ir_datasets,
}


def _lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
