"""Serve workspaces in the browser, to judge and compare.

FOLDER holds a collection, a folder runs/ and work.db, which is created if it is missing. Several folders are served
under their names, with a first page that lists them. Only this machine can connect unless --host says otherwise; other
addresses require accounts and TLS.

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

PLACE = 76


@options.command(__doc__)
@click.argument("folders", nargs=-1, metavar="FOLDER...")
@option(
    "--db databases",
    "Log of judgments; with several folders, one for each.  [default: FOLDER/work.db]",
    metavar="postgresql://…",
    multiple=True,
)
@option(
    "--workspaces FOLDER parent",
    "Serve every folder in this one. Leads may create further workspaces there.",
    type=options.INPUT,
)
@options.serving(8765, "Passwords and labels")
@option("--accounts", "Require a password on this machine too.", is_flag=True)
@option("--allow-host NAME hosts", "Host name that browsers may use. Links contain the first.", multiple=True)
@option(
    "--auth-header NAME", "Header in which the proxy names the person, such as X-Forwarded-User. Needs --behind-proxy."
)
@option(
    "--auth-role",
    "Role of new names in that header; with none, a lead creates accounts by invitation.",
    type=click.Choice(["viewer", "assessor", "none"]),
    default="assessor",
)
@option("--link", "Print a new link to the running server, and exit.", is_flag=True)
@option("--invite", "Print an invitation for this role to the running server, and exit.", type=RegistryName("roles"))
@option("--example", "Fill a new FOLDER with the bundled collection and its runs.", is_flag=True)
def command(
    folders: tuple[str, ...],
    databases: tuple[str, ...],
    parent: str | None,
    link: bool,
    invite: str | None,
    example: bool,
    **how: Any,
) -> None:
    for module in modules_of("store", "web"):
        needed(module, "the workbench needs", "web")
    from cranfield.http.serving import ServerSettings, checked
    from cranfield.inputs.workspace import make_example, open_bench
    from cranfield.workbench.serve import folders_to_serve, new_link, serve, server_of

    address = {name: how[name] for name in ("host", "port", "accounts")}
    signing = {"auth_header": how["auth_header"] or "", "auth_role": how["auth_role"].replace("none", "")}
    manner = ServerSettings(**address, proxy=how["proxy"] or "", names=how["hosts"], **signing)
    manner = checked(manner, how["certificate"], how["tls_key"], how["insecure"])
    if example and (len(folders) != 1 or parent is not None):
        raise click.UsageError("--example fills one FOLDER; name it alone")
    if link or invite:
        for folder in folders:
            server_of(folder)  # before a workspace is made where none is
    if example:
        make_example(folders[0])
    chosen = folders_to_serve(folders, databases, parent)
    if not (link or invite):
        serve(chosen, manner, note, how["certificate"], how["tls_key"], limits_of(how))
        return
    if invite and chosen.several:
        raise click.UsageError("--invite is for one workspace: name its FOLDER alone")
    server_of(chosen.folders[0])
    with closing(open_bench(chosen.folders[0], chosen.database(chosen.folders[0]))) as bench:
        click.echo(new_link(bench, invite, all=chosen.several))
