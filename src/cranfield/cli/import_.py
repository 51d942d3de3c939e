"""`cranfield import`: a collection in somebody's layout becomes a folder of plain files."""

from __future__ import annotations

from typing import Any

import click

from cranfield.answer import as_json
from cranfield.cli.output import note, put
from cranfield.importers.registry import SOURCES

LAYOUTS = "|".join(SOURCES)


@click.command("import")
@click.argument("source", metavar="SOURCE")
@click.argument("dest", metavar="DEST")
@click.option("--from", "layout", metavar=LAYOUTS, help="The layout, if it is not to be detected.")
@click.option(
    "--grades",
    metavar="cranfield-corrected|binary|raw",
    help="What the codes are worth: turned round (5 - code, source papers 5), 1 or 0, or as they stand.  "
    "[default: raw; cranfield-corrected where SMART files hold Cranfield's codes]",
)
@click.option(
    "--topic-ids",
    metavar="given|ordinal",
    help="Number topics as their file does, or by position.  "
    "[default: given; ordinal where the judgments of SMART files count by position]",
)
@click.option(
    "--relevant-from", type=float, default=1, show_default=True, metavar="GRADE", help="The lowest relevant grade."
)
@click.option("--documents", multiple=True, metavar="FILE", help="Take the documents from here; may be repeated.")
@click.option("--topics", multiple=True, metavar="FILE", help="Take the topics from here; may be repeated.")
@click.option("--qrels", multiple=True, metavar="FILE", help="Take the judgments from here; may be repeated.")
@click.option("--subtopics", metavar="FILE", help="Judgments by subtopic, for measures of diversity.")
@click.option("--split", metavar="NAME", help="Which split of BEIR or MS MARCO: test, dev, train, dev.small.")
@click.option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="The files' encoding.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="OURS=THEIRS",
    help="Another name of a column: id, title, text of documents, topic, query, description, narrative of topics.",
)
@click.option("--name", metavar="NAME", help="What to call the collection.  [default: DEST's name]")
@click.option("--title", metavar="TEXT", help="Its title, for people.")
@click.option("--licence", metavar="TEXT", help="Under which licence it may be used.")
@click.option("--provenance", metavar="TEXT", help="Where it came from.")
@click.option(
    "--format", "shape", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)
def command(source: str, dest: str, shape: str, fields: tuple[str, ...], **given: Any) -> None:
    """Make a collection's folder from files in another layout.

    SOURCE is a folder, a file of documents, or ir_datasets:ID. The layout is recognised by names and content. DEST must
    not exist; it is written whole or not at all. How topics were numbered and grades were read is kept in
    DEST/collection.toml.

    \b
    $ cranfield import smart bees --title "Questions of beekeepers"
    """
    from cranfield.cli.progress import progress
    from cranfield.workspace import import_

    pairs = [text.partition("=") for text in fields]
    if any(not ours or not theirs for ours, _, theirs in pairs):
        raise click.UsageError("--field: expected OURS=THEIRS, as in --field text=body")
    known = {key: given.pop(key) for key in ("name", "title", "licence", "provenance")}
    files = {key: given.pop(key) for key in ("documents", "topics", "qrels")}
    columns = {ours: theirs for ours, _, theirs in pairs}
    with progress("documents") as tell:
        done = import_(source, dest, known=known, files=files, fields=columns, progress=tell, **given)
    counts = done.collection.meta["counts"]
    if shape == "json":
        said = {
            "layout": done.layout,
            **counts,
            "conventions": done.collection.meta["conventions"],
            "notes": done.notes,
        }
        put(as_json({"path": dest, **said}))
        return
    put(f"{dest}: {', '.join(_n(n, what) for what, n in counts.items())}, from {done.layout} files")
    for sentence in done.notes:
        note(f"note: {sentence}")


def _n(count: int, many: str) -> str:
    return f"{count:,} {many[:-1] if count == 1 and many.endswith('s') else many}"
