"""Say hello to a run.

\b
$ cranfield greet bm25.run
"""

import click

from cranfield.cli import options
from cranfield.cli.options import option

PLACE = 1


@options.command(__doc__)
@click.argument("run", metavar="RUN")
@option("--loudly", "Say it so that all can hear.", is_flag=True)
def command(run, loudly):
    click.echo(f"Hello {run}{'!' if loudly else '.'}")
