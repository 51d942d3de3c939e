"""Make a collection's folder from files in another layout.

SOURCE is a folder, a file of documents, or ir_datasets:ID. The layout is recognised by names and content. DEST must
not exist; it is written whole or not at all. How topics were numbered and grades were read is kept in
DEST/collection.toml.

\b
$ cranfield import smart bees --title "Questions of beekeepers"
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli import names, options
from cranfield.cli.options import INPUT, option
from cranfield.cli.output import notes, put
from cranfield.columns import legible

PLACE = 10


def _new_folder(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """A folder that is there already is refused by the verb, in its own words."""
    from os.path import lexists

    if not lexists(value):
        options.writable_folder(ctx, parameter, value)
    return value


@options.command(__doc__)
@click.argument("source", metavar="SOURCE")
@click.argument("dest", metavar="DEST", callback=_new_folder)
@option("--from", "The layout, if it is not to be detected.", name="layout", metavar=names.layouts)
@option(
    "--grades",
    "What the codes are worth: turned round (5 - code, source papers 5), 1 or 0, as they stand, or one by one, such as "
    "1=0,2=0,3=1.  [default: raw; cranfield-corrected where SMART files hold Cranfield's codes]",
    metavar="cranfield-corrected|binary|raw|THEIRS=OURS,...",
    callback=None,
)
@option(
    "--topic-ids",
    "Number topics as their file does, or by position.  "
    "[default: given; ordinal where the judgments of SMART files count by position]",
    metavar="given|ordinal",
)
@option("--relevant-from", "The lowest relevant grade.", type=float, default=1, metavar="GRADE")
@click.option(
    "--documents", multiple=True, type=INPUT, metavar="FILE", help="Take the documents from here; may be repeated."
)
@click.option("--topics", multiple=True, type=INPUT, metavar="FILE", help="Take the topics from here; may be repeated.")
@click.option(
    "--qrels", multiple=True, type=INPUT, metavar="FILE", help="Take the judgments from here; may be repeated."
)
@option("--subtopics", "Judgments by subtopic, for measures of diversity.", type=INPUT, metavar="FILE")
@option("--split", "Which split of BEIR or MS MARCO: test, dev, train, dev.small.", metavar="NAME")
@option(
    "--strict",
    "Refuse the copies of NPL, LISA and TIME that differ from their layout; without it they are read, with a note.",
    is_flag=True,
)
@option("--encoding", "The files' encoding.  [default: utf-8; of CSV and TSV, detected]")
@option("--delimiter")
@option("--decimal")
@option("--duplicates", "Which line counts when judgments name a document twice for a topic.", default="error")
@option("--ignore-case")
@option("--lenient")
@option(
    "--field",
    "Another name of a column: id, title, text of documents, topic, query, description, narrative of topics, "
    "document, grade of judgments.",
    name="fields",
    multiple=True,
    metavar="OURS=THEIRS",
)
@option("--name", "What to call the collection.  [default: DEST's name]", metavar="NAME")
@option("--title", "Its title, for people.", metavar="TEXT")
@option("--licence", "Under which licence it may be used.", metavar="TEXT")
@option("--provenance", "Where it came from.", metavar="TEXT")
@options.shape("table", "json")
def command(source: str, dest: str, shape: str, fields: tuple[str, ...], **how: Any) -> None:
    from cranfield.answer import as_json
    from cranfield.cli.progress import progress
    from cranfield.workspace.collecting import import_collection

    how["fields"] = dict(options.pairs(fields, "text=body"))
    how["meta"] = {key: how.pop(key) for key in ("name", "title", "licence", "provenance")}
    how["files"] = {key: how.pop(key) for key in ("documents", "topics", "qrels")}
    options.expect_use("chooses one of the splits of BEIR or MS MARCO, and none is read", "split")
    with progress("documents") as tell:
        done = import_collection(source, dest, progress=tell, **how)
    counts, conventions = done.collection.meta["counts"], done.collection.meta["conventions"]
    if shape == "json":
        facts = {"layout": done.layout, **counts, "conventions": conventions, "notes": done.notes}
        put(as_json({"path": dest, **facts}))
        return
    put(f"{legible(dest)}: {', '.join(_n(n, what) for what, n in counts.items())}, from {done.layout} files")
    notes(done.notes)


def _n(count: int, many: str) -> str:
    return f"{count:,} {many[:-1] if count == 1 and many.endswith('s') else many}"
