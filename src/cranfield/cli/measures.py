"""`cranfield measures`: what can be computed. Everything shown comes from the measures' classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cranfield.answer import as_json
from cranfield.cli import options
from cranfield.cli.output import put, screen_width, style
from cranfield.columns import folded

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command("measures")
@click.argument("name", required=False)
@click.option("--family", metavar="FAMILY", help="Only the measures of one family (the first letters will do).")
@options.output("table", "json")
def command(name: str | None, family: str | None, shape: str, output: str | None) -> None:
    """List the measures, or explain one.

    A measure is explained by its definition, formula, parameters and their ranges, the names other tools give it, a
    reference and a worked example. NAME may be another tool's: ndcg_cut_10 explains nDCG.

    \b
    $ cranfield measures nDCG
    """
    from cranfield.workspace import explain_measure, list_measures

    if name is not None and family is not None:
        raise click.UsageError("give either a measure's name or --family, not both")
    if name is None:
        pages = list_measures(family)
        text = as_json(pages) if shape == "json" else _list(pages, screen_width(output), style(output))
    else:
        page = explain_measure(name)
        text = as_json(page) if shape == "json" else _page(page, screen_width(output), style(output))
    put(text, output)


def _list(pages: list[dict[str, Any]], limit: int | None, paint: Callable[[str, str], str] | None) -> str:
    margin = max(len(page["usage"]) for page in pages) + 4
    lines: list[str] = []
    family = ""
    for page in pages:
        if page["family"] != family:
            family = page["family"]
            lines += ["", paint("head", family) if paint else family]
        lines.append(folded(f"  {page['usage']}".ljust(margin) + page["definition"], limit, margin))
    return "\n".join([*lines[1:], "", "cranfield measures NAME explains one."])


def _page(page: dict[str, Any], limit: int | None, paint: Callable[[str, str], str] | None) -> str:
    def head(text: str) -> str:
        return paint("head", text) if paint else text

    lines = [f"{head(page['usage'])}  ({page['family']}; {page['summary']})", ""]
    for paragraph in (page["definition"], *page["details"]):
        lines += [folded(paragraph, limit), ""]
    lines += [head("formula"), folded("  " + page["formula"], limit, 4), ""]
    if page["parameters"]:
        lines += [head("parameters"), *_parameters(page["parameters"], limit), ""]
    if page["peers"]:
        lines.append(head("also known as"))
        lines += [f"  {peer}: {', '.join(names)}" for peer, names in page["peers"].items()]
        lines.append("")
    lines += [head("reference"), folded("  " + page["reference"], limit, 4), ""]
    lines += [head("worked example"), *("  " + line for line in page["example"].splitlines())]
    return "\n".join(lines)


def _parameters(parameters: list[dict[str, Any]], limit: int | None) -> list[str]:
    margin = max(len(parameter["name"]) for parameter in parameters) + 4
    lines = []
    for parameter in parameters:
        default = "must be given" if parameter["required"] else f"default {parameter['default']}"
        if parameter["default"] is None and not parameter["required"]:
            default = "optional"
        text = f"{parameter['meaning']}: {parameter['range']} ({default})"
        lines.append(folded(f"  {parameter['name']}".ljust(margin) + text, limit, margin))
    return lines
