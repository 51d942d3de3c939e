"""Errors name what can be typed: the library's arguments as a command's options."""

from __future__ import annotations

import click
import pytest

from cranfield.cli import cli, command_classes
from cranfield.cli.eval import command
from cranfield.cli.options import CONVENTIONS
from shell import EXAMPLES, copy_folder, cranfield


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('use missing="zero" to score it 0', "use --missing zero to score it 0"),
        ("it needs a run (baseline=…)", "it needs a run (--baseline RUN)"),
        ("it needs a size (Extras(size=N))", "it needs a size (--collection-size N)"),
        ("no_relevant must be one of zero, skip", "--no-relevant must be one of zero, skip"),
        ("aggregate: expected one of mean, gmean", "--aggregate: expected one of mean, gmean"),
        ("AP(rel=2): nothing", "AP(rel=2): nothing"),  # the measure's own
        ("ERR: a grade of 5 is above max=4; try ERR(max=5)", "ERR: a grade of 5 is above max=4; try ERR(max=5)"),
        ("name it by --field topic=COLUMN", "name it by --field topic=COLUMN"),
        ("'rel=2.run': no such file", "'rel=2.run': no such file"),
        ("runs/rel=2.run: no such file", "runs/rel=2.run: no such file"),
        ("expected name=value, found 'a'", "expected name=value, found 'a'"),
        ("merge='latest' takes the later", "merge='latest' takes the later"),  # eval has no such option
    ],
)
def test_an_argument_is_said_as_the_option(said, shown):
    assert command_classes.in_options(said, command.params) == shown


@pytest.mark.parametrize(("kind", "option"), [("run", "--run-format"), ("qrels", "--qrels-format")])
def test_a_format_is_that_of_the_file_which_was_read(kind, option):
    assert (
        command_classes.in_options("format=… overrules this", command.params, kind) == f"{option} FORMAT overrules this"
    )


def test_the_convention_scores_goes_with_every_verb_that_takes_scores():
    for verb, *options in (["compare"], ["leaderboard"], ["design", "--test", "t"]):
        assert cranfield(verb, "qrels.txt", "bm25.run", "dense.run", "--scores", "single", *options).code == 0


GIVEN = {
    "curve": ["qrels.txt", "bm25.run"],
    "compare": ["qrels.txt", "bm25.run", "dense.run"],
    "gate": ["qrels.txt", "bm25.run", "dense.run"],
    "correlate": ["bm25.run", "dense.run"],
    "check": ["bm25.run"],
    "convert": ["qrels.txt", "qrels.txt", "out.csv"],
    "fuse": ["bm25.run", "dense.run", "-o", "out.run", "--method", "CombSUM"],
    "import": ["smart", "out"],
    "eval": ["qrels.txt", "bm25.run"],
}
CHOICES = [
    (verb, one.opts[-1])
    for verb in GIVEN
    for one in cli.get_command(click.Context(cli), verb).params  # type: ignore[union-attr]
    if isinstance(one, click.Option) and "|" in str(one.metavar) and (verb == "eval" or one.name not in CONVENTIONS)
]


@pytest.mark.parametrize(("verb", "option"), CHOICES, ids=" ".join)
def test_an_unknown_value_of_an_option_is_wrong_usage(verb, option, tmp_path):
    copy_folder(EXAMPLES, tmp_path)
    answer = cranfield(verb, *GIVEN[verb], option, "nosuch", folder=tmp_path)
    assert answer.code == 2, answer.both
    assert "nosuch" in answer.err
    assert not list(tmp_path.glob("out*"))
