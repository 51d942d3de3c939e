"""Writes docs/cli.md: every command's help, from the commands themselves. `make docs` runs it, a test checks the result."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cranfield.base.parameters import LIMITS
from cranfield.cli import COMMANDS, cli

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).with_name("cli.md")

HEAD = """# The command line

<!-- Written by docs/generate_cli.py; change the commands, then `make docs`. -->

Data goes to standard output, everything else to standard error. Exit codes: 0 fine, 1 a gate failed, 2 wrong usage,
3 bad data, 70 a mistake of cranfield's own, 130 Ctrl-C, 141 a pipe that its reader closed. Colour appears only on a terminal, and
only if `NO_COLOR` is not set. The examples run in the folder `examples/`.

`--help` shows the everyday options of a command, `--help-all` shows all of them, as this page does. Some options had other
names in earlier versions; the [former spellings](#former-spellings) are still read, with a note on standard error.

Exit code 70 never means a verdict. One sentence names a file in the temporary folder that only you can read. The file holds
the traceback, the version and the command line without passwords: attach it to a bug report. `CRANFIELD_TRACEBACK=1` also
prints the traceback.

Numbers must be finite and in plain digits: `nan`, `inf`, `1_000` and the digits of other scripts are refused, and so is a
parameter that is given twice. Whole numbers must fit into 64 bits, and a seed is 0 or more. Counts have limits: {limits}.
A file is written under a temporary name next to its target and renamed when it is complete. Temporary files of killed
processes are removed when the same file is written again.

"""


def page() -> str:
    """The whole page."""
    context = click.Context(cli, info_name="cranfield")
    entries = COMMANDS.built_in().values()
    commands = [(each.name, cli.get_command(context, each.name)) for each in entries]
    contents = "".join(f"- [`cranfield {each.name}`](#cranfield-{each.name}): {each.sentence}\n" for each in entries)
    limits = ", ".join(f"{name.replace('_', ' ')} {most:,}" for name, most in LIMITS.items())
    return (
        HEAD.replace("{limits}", limits)
        + contents
        + "".join(section(name, command) for name, command in commands if command is not None)
        + former_spellings([(name, command) for name, command in commands if command is not None])
    )


def former_spellings(commands: list[tuple[str, click.Command]]) -> str:
    """A table of the options that had another name, and the commands that read it."""
    renamed: dict[tuple[str, str], list[str]] = {}
    for name, command in leaves(commands):
        for option in command.params:
            for old in getattr(option, "was", ()):
                renamed.setdefault((old, option.spelling), []).append(name)
    rows = [f"| `{old}` | `{new}` | {', '.join(names)} |" for (old, new), names in sorted(renamed.items())]
    return "\n".join(["", "## Former spellings", "", "| formerly | now | in |", "|---|---|---|", *rows]) + "\n"


def leaves(commands: Iterable[tuple[str, click.Command]]) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, by its whole name."""
    for name, command in commands:
        if isinstance(command, click.Group):
            yield from leaves((f"{name} {part}", each) for part, each in command.commands.items())
        else:
            yield name, command


def section(name: str, command: click.Command) -> str:
    """One command: usage, what it does, an example, options."""
    prose, _, example = inspect.cleandoc(command.help or "").partition("\b\n")
    settings = {**cli.context_settings, **command.context_settings}  # a command keeps the help option it first made
    context = click.Context(command, info_name=f"cranfield {name}", **settings)
    usage = " ".join(command.collect_usage_pieces(context))
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    conventions = [option for option in options if getattr(option, "section", "") == "Conventions"]
    others = [option for option in options if option not in conventions]
    lines = [
        f"\n## cranfield {name}",
        f"```\ncranfield {name} {usage}\n```",
        prose.strip(),
    ]
    if example:
        lines.append(f"```console\n{example}\n```")
    if others:
        lines.append("\n".join(map(entry, others)))
    if conventions:
        lines += ["Conventions:", "\n".join(map(entry, conventions))]
    inner = command.commands.items() if isinstance(command, click.Group) else ()
    return "\n\n".join(lines) + "\n" + "".join(section(f"{name} {part}", each) for part, each in inner)


def entry(option: click.Option) -> str:
    """One option and its meaning."""
    names = ", ".join([*option.opts, *option.secondary_opts])
    metavar = "" if option.is_flag else f" {option.metavar or values(option)}"
    default = f" Default: `{default_of(option)}`." if option.show_default else ""
    return f"- `{names}{metavar}`: {' '.join((option.help or '').split())}{default}"


def values(option: click.Option) -> str:
    """The choices of an option without a placeholder."""
    choices = option.type.choices if isinstance(option.type, click.Choice) else [option.type.name.upper()]
    return "|".join(choices)


def default_of(option: click.Option) -> str:
    """An option's default as one would type it."""
    return " ".join(map(str, option.default)) if isinstance(option.default, (list, tuple)) else str(option.default)


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
