"""Make a collection folder from files in another layout.

SOURCE is a folder, a file of documents, or ir_datasets:ID. The layout is detected from names and content. DEST must
not exist; it is written as a whole or not at all. If DEST is a workspace without a collection, DEST/collection is
written. Its collection.toml records how topics were numbered and grades read.

\b
$ cranfield import smart bees --title "Questions of beekeepers"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.base.text_layout import legible
from cranfield.cli import options
from cranfield.cli.options import INPUT, NEW_FOLDER, option, rare
from cranfield.cli.output import notes, progress, put

PLACE = 10


def _new_folder(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a folder that cannot be written. `import_collection` itself refuses one that exists."""
    from os.path import lexists

    if not lexists(value):  # a folder that exists may be a workspace
        NEW_FOLDER.convert(value, parameter, ctx)
    return value


@options.command(__doc__)
@click.argument("source", metavar="SOURCE")
@click.argument("dest", metavar="DEST", callback=_new_folder)
@option("--from layout", "Layout of SOURCE.  [default: detected]", metavar="{import_layouts}")
@option(
    "--grades",
    "Conversion of the relevance codes. The choice cranfield-corrected reverses them (5 - code; source papers get 5). The "
    "choice binary makes them 1 or 0, raw keeps them, and 1=0,2=0,3=1 replaces single codes.  "
    "[default: raw; cranfield-corrected for SMART files with Cranfield's codes]",
    metavar="cranfield-corrected|binary|raw|THEIRS=OURS,...",
    callback=None,
)
@rare(
    "--topic-ids",
    "Ids of the topics: as given in the file, or their position in it.  "
    "[default: given; ordinal for SMART files whose judgments count positions]",
    metavar="given|ordinal",
)
@option("--rel GRADE", "Lowest relevant grade.", name="relevant_from", default=1, was=["--relevant-from"])
@option("--documents-file FILE documents", "File to read the documents from.", multiple=True, was=["--documents"])
@option(
    "--topics-file",
    "File to read the topics from.",
    name="topics",
    multiple=True,
    type=INPUT,
    everyday=True,
    was=["--topics"],
)
@option("--qrels FILE", "File to read the judgments from.", multiple=True)
@rare("--subtopics FILE", "File to read judgments by subtopic from, for measures of diversity.")
@option("--split NAME", "Split of BEIR or MS MARCO: test, dev, train or dev.small.  [default: test, or the only one]")
@rare(
    "--strict",
    "Refuse copies of NPL, LISA and TIME that differ from their layout. By default they are read, with a note.",
    is_flag=True,
)
@option("--encoding", "Encoding of the files.  [default: utf-8; detected for CSV and TSV]")
@option("--delimiter")
@option("--decimal")
@option("--duplicates", "Line to use if the judgments name a document twice for a topic.", default="error")
@option("--ignore-case")
@option("--lenient")
@rare(
    "--field OURS=THEIRS",
    "Name of a column or key, such as text=body. OURS is id, title or text of documents; topic, query, description or "
    "narrative of topics; document or grade of judgments.",
    name="fields",
    multiple=True,
)
@option("--name NAME", "Name of the collection.  [default: the name of DEST]")
@rare("--title TEXT", "Title of the collection.")
@rare("--licence TEXT", "Licence of the collection.")
@rare("--provenance TEXT", "Origin of the collection.")
@options.shape("table", "json")
def command(source: str, dest: str, shape: str, fields: tuple[str, ...], **how: Any) -> None:
    from os.path import abspath, join

    from cranfield.base.results import as_json
    from cranfield.commands.collections import import_collection

    how["fields"] = {ours: theirs[-1] for ours, theirs in options.column_names(fields, "text=body").items()}
    how["meta"] = {key: how.pop(key) for key in ("name", "title", "licence", "provenance")}
    how["files"] = {key: how.pop(key) for key in ("documents", "topics", "qrels")}
    options.expect_use("chooses one of the splits of BEIR or MS MARCO, and none is read", "split")
    with progress("documents") as tell:
        done = import_collection(source, dest, progress=tell, **how)
    inside = abspath(str(done.collection.path)) != abspath(dest)  # of a workspace
    path = join(dest, "collection") if inside else dest
    counts, conventions = done.collection.meta["counts"], done.collection.meta["conventions"]
    if shape == "json":
        facts = {"layout": done.layout, **counts, "conventions": conventions, "notes": done.notes}
        put(as_json({"path": path, **facts}))
        return
    put(f"{legible(path)}: {', '.join(_n(n, what) for what, n in counts.items())}, from {done.layout} files")
    notes(done.notes)


def _n(count: int, many: str) -> str:
    return f"{count:,} {many[:-1] if count == 1 and many.endswith('s') else many}"
