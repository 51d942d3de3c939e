"""Writes docs/cli.md: every command's help, from the commands themselves. `make docs` runs it, a test checks the result."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from cranfield.cli import COMMANDS, cli
from cranfield.cli.options import CONVENTIONS
from cranfield.parameters import LIMITS

PAGE = Path(__file__).with_name("cli.md")

HEAD = """# The command line

<!-- Written by docs/generate_cli.py; change the commands, then `make docs`. -->

Data goes to standard output, everything else to standard error. Exit codes: 0 fine, 1 a gate failed, 2 wrong usage,
3 bad data, 70 a mistake of cranfield's own, 130 Ctrl-C, 141 a pipe that its reader closed. Colour only on a terminal, and
not where `NO_COLOR` is set. The examples run in the folder `examples/`.

Exit code 70 never means a verdict. One sentence names a file in the temporary folder that only you can read. It holds the
traceback, the version and the command line without passwords: attach it to a bug report. `CRANFIELD_TRACEBACK=1` also prints it.

A number is finite and in plain digits: `nan`, `inf`, `1_000` and the digits of other scripts are refused, and so is a
parameter that is given twice. A whole number fits into 64 bits, a seed is 0 or more. What is counted has a limit: {limits}.
A file is written beside its place under another name and moved there when it is whole; what a killed process left of it is
removed when the same file is written again.

"""


def page() -> str:
    """The whole page."""
    context = click.Context(cli, info_name="cranfield")
    commands = [(name, cli.get_command(context, name)) for name in COMMANDS]
    contents = "".join(f"- [`cranfield {name}`](#cranfield-{name}): {short}\n" for name, short in COMMANDS.items())
    limits = ", ".join(f"{name.replace('_', ' ')} {most:,}" for name, most in LIMITS.items())
    return (
        HEAD.replace("{limits}", limits)
        + contents
        + "".join(section(name, command) for name, command in commands if command is not None)
    )


def section(name: str, command: click.Command) -> str:
    """One command: usage, what it does, an example, options."""
    prose, _, example = inspect.cleandoc(command.help or "").partition("\b\n")
    settings = {**cli.context_settings, **command.context_settings}  # a command keeps the help option it first made
    context = click.Context(command, info_name=f"cranfield {name}", **settings)
    usage = " ".join(command.collect_usage_pieces(context))
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    conventions = [option for option in options if option.name in (*CONVENTIONS, "preset", "drop_self")]
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
    default = f" Default: `{shown(option)}`." if option.show_default else ""
    return f"- `{names}{metavar}`: {' '.join((option.help or '').split())}{default}"


def values(option: click.Option) -> str:
    """The choices of an option that has no other name for its value."""
    choices = option.type.choices if isinstance(option.type, click.Choice) else [option.type.name.upper()]
    return "|".join(choices)


def shown(option: click.Option) -> str:
    """An option's default as one would type it."""
    return " ".join(map(str, option.default)) if isinstance(option.default, (list, tuple)) else str(option.default)


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
