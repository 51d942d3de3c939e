"""Promises of every command's help and options: one screen, plain texts, and former spellings that are still read."""

from __future__ import annotations

import re

import click
import pytest

from cranfield.base.notifications import notes_to
from cranfield.cli import cli
from cranfield.cli.command_classes import PlainOption, current_spellings
from cranfield.cli.options import CONVENTIONS, RegistryName
from pages import ROOT
from shell import cranfield

TREC_EVAL = ("trec_eval",)  # whose options are trec_eval's own
NO_NOUN_OR_VERB = set(
    "A An The Of What How Who Whom Whose Where When Which Why That This These Those By For With As In At On From To Its It "
    "Their They Also Only Instead Say Tell".split()
)
MOST_LINES = 40
SAME_MEANING = {"--depth": {"number", "name"}}  # pooling takes N for all runs, or RUN=N for one


def tree(command: click.Command, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Every command and group by the words that call it."""
    commands = {path: command}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            commands |= tree(inner, (*path, name))
    return commands


ALL = tree(cli)
GROUPS = {path: each for path, each in ALL.items() if isinstance(each, click.Group)}
LEAVES = {path: each for path, each in ALL.items() if path not in GROUPS and path != TREC_EVAL}


def options_of(command: click.Command) -> list[PlainOption]:
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    assert all(isinstance(each, PlainOption) for each in options)
    return options  # type: ignore[return-value]


OPTIONS = [(path, option) for path, command in LEAVES.items() for option in options_of(command)]
RENAMED = [(path, option, old) for path, option in OPTIONS for old in option.was]


def help_of(path: tuple[str, ...], flag: str) -> list[str]:
    answer = cranfield(*path, flag, columns=80)
    assert answer.code == 0
    return answer.out.splitlines()


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_no_line_of_a_group_is_cut_or_wrapped(path):
    lines = help_of(path, "--help")
    commands = lines[lines.index("Commands:") + 1 :]
    assert [line for line in commands if "..." in line or "…" in line] == []
    context = click.Context(GROUPS[path])
    assert len(commands) == len(GROUPS[path].list_commands(context))


@pytest.mark.parametrize(
    "path", [path for path in ALL if path], ids=" ".join
)  # cranfield --help has a line per command
def test_help_fits_a_screen(path):
    assert len(help_of(path, "--help")) <= MOST_LINES


@pytest.mark.parametrize("path", [*GROUPS, TREC_EVAL], ids=" ".join)
def test_help_all_works_where_there_is_no_more_to_show(path):
    help_all = help_of(path, "--help-all")
    assert help_all[0].startswith(f"Usage: {' '.join(('cranfield', *path))} ")


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_all_lists_every_option(path):
    text = "\n".join(help_of(path, "--help-all"))
    names = [name for option in options_of(LEAVES[path]) for name in (*option.opts, *option.secondary_opts)]
    assert [name for name in names if not re.search(rf"(?m)(^  |, |/ ){name}\b", text)] == []
    assert "More options" not in text


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_lists_the_everyday_options_and_says_where_the_others_are(path):
    lines = help_of(path, "--help")
    typed = {word.rstrip(",") for line in lines for word in line.split()[:2] if line.startswith("  -")}
    for option in options_of(LEAVES[path]):
        assert (option.spelling in typed) == option.everyday
    full = help_of(path, "--help-all")
    assert ("More options: --help-all" in lines) == (
        [line for line in lines if line] != [line for line in full if line]
    )


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_an_option_s_text_begins_with_a_noun_or_a_verb_and_ends_with_a_period(path):
    for option in options_of(LEAVES[path]):
        text, _, default = (option.help or "").partition("  [")
        first = text.split()[0].rstrip(",:.;")
        assert re.fullmatch(r"[A-Z][\w/-]*", first), text
        assert first not in NO_NOUN_OR_VERB, text
        assert text.endswith("."), text
        assert not default or default.startswith("default: ")
        for sentence in re.split(r"\. (?=[A-Z])", text):
            without_lists = re.sub(r"[\w()@=.'-]+(, [\w()@=.'-]+){3,}", "…", sentence)
            assert len(without_lists.split()) <= 25, sentence


def kind(option: PlainOption) -> str:
    """What an option takes: a file, a number, a word, or nothing."""
    if option.is_flag or isinstance(option.type, (click.Choice, RegistryName)):
        return "flag" if option.is_flag else "name"
    numbers = {"integer", "float", "integer range", "float range"}
    return {"path": "file", "text": "name"}.get(option.type.name, "number" if option.type.name in numbers else "?")


def test_a_name_takes_the_same_kind_of_value_in_every_command():
    kinds: dict[str, set[str]] = {}
    for _, option in OPTIONS:
        kinds.setdefault(option.spelling, set()).add(kind(option))
    assert {name: each for name, each in kinds.items() if len(each) > 1} == SAME_MEANING


def test_an_old_spelling_is_no_current_one_in_its_command():
    for path, option, old in RENAMED:
        assert old not in {name for each in options_of(LEAVES[path]) for name in each.opts}, (path, old)
        assert option.spelling != old


@pytest.mark.parametrize(
    ("path", "option", "old"), RENAMED, ids=[f"{' '.join(path)} {old}" for path, _, old in RENAMED]
)
def test_an_old_spelling_is_read_with_a_note(path, option, old):
    value, notes = [] if option.is_flag else ["x"] * option.nargs, []
    with notes_to(notes.append):
        words = current_spellings(LEAVES[path], [old, *value, "rest"])
    assert words == [option.spelling, *value, "rest"]
    assert notes == [f"{old} is now {option.spelling}"]
    assert not value or current_spellings(LEAVES[path], [f"{old}=x"], quiet=True) == [f"{option.spelling}=x"]


def test_an_old_spelling_changes_neither_data_nor_exit_code():
    now = cranfield("correlate", "bm25.run", "dense.run", "--coefficient", "rbo", "--format", "csv")
    before = cranfield("correlate", "bm25.run", "dense.run", "--kind", "rbo", "--format", "csv")
    assert (before.code, before.out) == (now.code, now.out) == (0, now.out)
    assert before.err == f"note: --kind is now --coefficient\n{now.err}"


def test_a_value_that_looks_like_an_old_spelling_stays():
    correlate = LEAVES["correlate",]
    assert current_spellings(correlate, ["-o", "--kind", "--", "--kind"]) == ["-o", "--kind", "--", "--kind"]


def test_every_renamed_option_is_on_the_page_and_in_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    listed = changelog.partition("### Options renamed\n")[2].partition("\n### ")[0]
    assert [
        (old, option.spelling) for _, option, old in RENAMED if f"`{old}` → `{option.spelling}`" not in listed
    ] == []


def test_every_spelling_that_the_changelog_lists_is_read_by_each_of_its_commands():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = changelog.partition("### Options renamed\n")[2].partition("\n### ")[0]
    lines = re.findall(r"^- `(--[\w-]+)` → `(--[\w-]+)` in (.+)$", section, re.MULTILINE)
    listed = {(tuple(name.split()), old, new) for old, new, names in lines for name in names.split(", ")}
    assert listed == {(path, old, option.spelling) for path, option, old in RENAMED}


def test_an_option_that_may_be_repeated_says_so():
    for _, option in OPTIONS:
        assert ("May be repeated." in (option.help or "")) == option.multiple, option.opts


def test_the_conventions_have_a_section_of_their_own_in_the_full_help():
    text = "\n".join(help_of(("eval",), "--help-all"))
    options, _, conventions = text.partition("\nConventions:\n")
    for name in CONVENTIONS:
        assert f"  --{name.replace('_', '-')} " in conventions
        assert f"  --{name.replace('_', '-')} " not in options
