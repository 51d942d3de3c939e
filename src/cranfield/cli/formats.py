"""`cranfield formats`: what files can look like."""

from __future__ import annotations

import click

from cranfield.answer import as_json
from cranfield.cli import options
from cranfield.cli.output import put, screen_width
from cranfield.columns import folded


@click.command("formats")
@options.output("table", "json")
def command(shape: str, output: str | None) -> None:
    """List the file formats that are read and written.

    A file's format is detected by its content; --run-format, --qrels-format and --from name it. The ending of a file to
    be written chooses its format; --to names it.

    \b
    $ cranfield formats
    """
    from cranfield.columns import aligned
    from cranfield.workspace import list_formats

    formats = list_formats()
    if shape == "json":
        put(as_json(formats), output)
        return
    rows = [["format", "holds", ""]] + [[each["name"], ", ".join(each["holds"]), "."] for each in formats]
    starts = [line.removesuffix(".") for line in aligned(rows, left=3)]
    texts = [each["about"] + (f" ({' '.join(each['endings'])})" if each["endings"] else "") for each in formats]
    limit, margin = screen_width(output), len(starts[1])
    pairs = zip(starts, ["what it is (endings)", *texts], strict=True)
    lines = [folded(start.ljust(margin) + text, limit, margin) for start, text in pairs]
    put("\n".join(lines), output)
