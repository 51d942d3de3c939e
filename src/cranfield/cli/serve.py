"""Serve a workspace in the browser: judge together, look closely, decide.

FOLDER holds a collection, a folder runs/ and work.db, which is made if it is missing. Only this machine can reach it
unless --host says otherwise; any other address demands accounts and TLS.

\b
$ cranfield serve garden --example
"""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli.options import INPUT, OneOf, limits_of, option, server_limits
from cranfield.cli.output import note

PLACE = 78


def roles() -> list[str]:
    """What somebody may be."""
    from cranfield.store.roles import ROLES

    return list(ROLES)


@click.command(help=__doc__)
@click.argument("folder")
@option("--db", "The log of judgments, if it is not FOLDER/work.db.", metavar="postgresql://…")
@option("--host", "The address to listen at.", default="127.0.0.1", show_default=True, metavar="ADDRESS")
@option("--port", "The port; 0 takes a free one.", type=click.IntRange(0, 65535), default=8765, show_default=True)
@option("--accounts", "Ask for name and password on this machine too.", is_flag=True)
@option("--tls-cert", "The certificate for https, with --tls-key.", name="certificate", type=INPUT, metavar="FILE")
@option("--tls-key", "The certificate's key.", name="key", type=INPUT, metavar="FILE")
@option(
    "--behind-proxy",
    "The address of the proxy that speaks TLS; its X-Forwarded-For is believed.",
    name="proxy",
    metavar="ADDRESS",
)
@option("--insecure", "Serve other machines without TLS: passwords and labels can be read on the way.", is_flag=True)
@option(
    "--allow-host",
    "A name by which browsers call it; may be repeated, the first stands in links.",
    name="hosts",
    multiple=True,
    metavar="NAME",
)
@server_limits
@option("--link", "Print a new link to the server that is running, and end.", is_flag=True)
@option("--invite", "Print an invitation to the server that is running, and end.", type=OneOf(roles))
@option("--example", "Fill a new FOLDER with the bundled collection and its runs.", is_flag=True)
def command(folder: str, link: bool, invite: str | None, example: bool, db: str | None, **how: Any) -> None:
    refuse_missing()
    from cranfield.http.serving import Manner, checked
    from cranfield.web.serving import new_link, serve, server_of
    from cranfield.workspace.bench import make_example, open_bench

    told = {name: how[name] for name in ("host", "port", "accounts")}
    manner = Manner(**told, proxy=how["proxy"] or "", names=how["hosts"])
    manner = checked(manner, how["certificate"], how["key"], how["insecure"])
    if link or invite:
        server_of(folder)  # before a workspace is made where none is
    if example:
        make_example(folder)
    bench = open_bench(folder, db)
    try:
        if link or invite:
            click.echo(new_link(bench, invite))
        else:
            serve(bench, manner, note, how["certificate"], how["key"], limits_of(how))
    finally:
        bench.close()


def refuse_missing() -> None:
    """Stop where what serves is not installed."""
    from cranfield.extras import modules_of, needed

    for module in modules_of("store", "web"):
        needed(module, "the workbench needs", "web")
