"""Run trec_eval: its options, its output, byte for byte.

Version 10 is the default; --as 9 as the first option chooses version 9. Options, measures, output and exit codes are
trec_eval's; -h lists them.

\b
$ cranfield trec_eval -m map -m ndcg_cut.10 qrels.txt bm25.run
"""

from __future__ import annotations

import click

from cranfield.cli.options import without_algebra

PLACE = 230


class Untouched(click.Command):
    """A command that passes its arguments to trec_eval unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they are; only --help and --help-all are ours."""
        if {"--help", "--help-all"} & {*args}:
            return super().parse_args(ctx, ["--help"])
        ctx.params["arguments"] = list(args)
        return []


@click.command(cls=Untouched, help=__doc__, context_settings={"help_option_names": ["--help"]}, options_metavar="")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[TREC_EVAL'S OPTIONS] QRELS RUN")
@click.pass_context
def command(ctx: click.Context, arguments: list[str]) -> None:
    without_algebra()
    from cranfield.compat.trec_eval import main

    ctx.exit(main(arguments))
