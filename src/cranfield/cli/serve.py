"""Serve a workspace in the browser, to judge and compare.

FOLDER holds a collection, a folder runs/ and work.db, which is created if it is missing. Only this machine can
connect unless --host says otherwise; other addresses require accounts and TLS.

\b
$ cranfield serve garden --example
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from cranfield.base.optional_packages import modules_of, needed
from cranfield.cli import options
from cranfield.cli.options import RegistryName, limits_of, option
from cranfield.cli.output import note

PLACE = 78


@options.command(__doc__)
@click.argument("folder")
@option("--db", "Log of judgments.  [default: FOLDER/work.db]", metavar="postgresql://…")
@options.serving(8765, "Passwords and labels")
@option("--accounts", "Require name and password on this machine too.", is_flag=True)
@option("--allow-host NAME hosts", "Host name that browsers may use. Links contain the first.", multiple=True)
@option("--link", "Print a new link to the running server, and exit.", is_flag=True)
@option("--invite", "Print an invitation for this role to the running server, and exit.", type=RegistryName("roles"))
@option("--example", "Fill a new FOLDER with the bundled collection and its runs.", is_flag=True)
def command(folder: str, link: bool, invite: str | None, example: bool, db: str | None, **how: Any) -> None:
    for module in modules_of("store", "web"):
        needed(module, "the workbench needs", "web")
    from cranfield.http.serving import ServerSettings, checked
    from cranfield.inputs.workspace import make_example, open_bench
    from cranfield.workbench.serve import new_link, serve, server_of

    address = {name: how[name] for name in ("host", "port", "accounts")}
    manner = ServerSettings(**address, proxy=how["proxy"] or "", names=how["hosts"])
    manner = checked(manner, how["certificate"], how["tls_key"], how["insecure"])
    if link or invite:
        server_of(folder)  # before a workspace is made where none is
    if example:
        make_example(folder)
    with closing(open_bench(folder, db)) as bench:
        if link or invite:
            click.echo(new_link(bench, invite))
        else:
            serve(bench, manner, note, how["certificate"], how["tls_key"], limits_of(how))
