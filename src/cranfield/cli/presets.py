"""`cranfield presets`: the peers' conventions."""

from __future__ import annotations

import click

from cranfield.answer import as_json
from cranfield.cli import options
from cranfield.cli.output import put, screen_width


@click.command("presets")
@options.output("table", "json")
def command(shape: str, output: str | None) -> None:
    """List the presets of conventions and their answers.

    A preset repeats what another tool does by default: which of two tied documents comes first, what a missing topic
    is worth, and so on. Choose one with --as, change single answers with the options of the same name.

    \b
    $ cranfield presets
    """
    from cranfield.columns import aligned
    from cranfield.workspace import presets

    given = presets()
    if shape == "json":
        put(as_json(given), output)
        return
    names = list(next(iter(given.values())))
    rows = [["preset", *names]]
    rows += [[preset, *(_shown(value) for value in answers.values())] for preset, answers in given.items()]
    put("\n".join(aligned(rows, left=len(rows[0]), limit=screen_width(output))), output)


def _shown(value: object) -> str:
    return {True: "yes", False: "no", "": "-"}.get(value, str(value))
