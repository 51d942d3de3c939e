"""The judging card: the images that it shows, and the page on which leads choose its template with a preview.

The template is the table [card] of collection.toml; nothing else holds it. A form names the template that its author has
seen: if the file holds another one by now, nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from cranfield.base.card import (
    IMAGE,
    READY_MADE,
    CardField,
    CardTemplate,
    document_card,
    field_of,
    image_paths,
    is_address,
    template_problem,
    template_table,
)
from cranfield.base.errors import DataError
from cranfield.base.schemas import check
from cranfield.formats.collection_folder import META, toml_text, toml_with_table
from cranfield.formats.streams import read_errors, write_bytes
from cranfield.http.refusal import IMAGE_POLICY, NotFound, Refusal
from cranfield.workbench.access_control import LEAD, VIEWER
from cranfield.workbench.assessment import image_link
from cranfield.workbench.routes import NOTHING, ActionResult, Page, PageRequest, RawBody, action, page

if TYPE_CHECKING:
    from cranfield.inputs.workspace import Bench
    from cranfield.judging.log import Transaction

MOST_IMAGES = 10_000  # of a field
OWN = "own fields"  # instead of a kind
MOST_FIELDS, MOST_HOSTS = 100, 50
LONGEST_PREVIEW = 2_000  # characters of the text


@page("/image", VIEWER, "bench.image", menu=("look", 30, ""), reveals=NOTHING)
def image(request: PageRequest) -> Page:
    """An image of the workspace that the card of a document shows, by the document, the field and its position there."""
    identity, name = request.required("id"), request.required("field")
    number = request.whole("n", 0, most=MOST_IMAGES)
    template, content = request.site.bench.card(), request.site.document(identity)
    fields = () if template is None else template.shown_fields
    on_card = any((each.name, each.type) == (name, IMAGE) for each in fields) or request.may(
        LEAD
    )  # who may preview others
    paths = image_paths(content, CardField(name, IMAGE)) if content is not None and on_card else []
    if number >= len(paths) or is_address(paths[number]):
        raise NotFound(f"the document {identity[:100]!r} has no such image in the workspace")
    file = request.site.bench.image(paths[number])
    values = {"id": identity, "field": name, "n": number, "type": file.kind, "bytes": len(file.body)}
    return Page("Image", "", values, raw=RawBody(file.body, file.kind, IMAGE_POLICY))


@page("/card", LEAD, "bench.card", menu=("manage", 46, "Judging card"))
def card(request: PageRequest) -> Page:
    """Choose which fields of a document assessors see; a preview shows a document as they will see it."""
    template = request.site.bench.card()
    return _form(request, template, _hash(template), request.text("id"))


def _form(
    request: PageRequest,
    template: CardTemplate | None,
    before: str,
    document: str,
    *,
    problem: str = "",
    status: int = 200,
) -> Page:
    """The page with a template in its form; `before` is the hash of the one that the author has seen."""
    table = {} if template is None else template_table(template)
    values = {"card": table, "before": before, "problem": problem}
    posted = bool(problem)
    fields = "\n".join(_field_line(each) for each in table.get("fields", ()))
    hosts = () if template is None else template.image_hosts
    context = {
        "kinds": [*READY_MADE, OWN],
        "kind": request.form_field("kind") if posted else table.get("kind", OWN if fields else ""),
        "fields": request.form_field("fields") if posted else fields,
        "hosts": request.form_field("image_hosts") if posted else "\n".join(hosts),
        "toml": toml_text({"card": table}) if table else "",
        "examples": {kind: "\n".join(map(_field_line, READY_MADE[kind]["fields"])) for kind in READY_MADE},
        "has_collection": request.site.bench.collection is not None,
        **_preview(request, template, document),
    }
    return Page(
        "Judging card", "card_edit.html", values, context, scripts=("card.js",), image_hosts=hosts, status=status
    )


def _field_line(field: dict[str, Any]) -> str:
    """A field as one line of TOML."""
    return f"{{{', '.join(line for line in toml_text(field).splitlines())}}}"


def _preview(request: PageRequest, template: CardTemplate | None, document: str) -> dict[str, Any]:
    """The template values of a document as assessors would see it: the requested one, else the first."""
    shelf = request.site.shelf()
    identity = document or (next(shelf.ids(), "") if shelf is not None else "")
    content = request.site.document(identity) if identity else None
    if content is None:
        return {"document": document, "preview": None, "preview_text": "", "keys_of_document": []}
    text = content.text[:LONGEST_PREVIEW] + ("…" if len(content.text) > LONGEST_PREVIEW else "")
    preview = document_card(template, content, partial(image_link, identity))
    return {"document": identity, "preview": preview, "preview_text": text, "keys_of_document": list(content.fields)}


@action("/card", LEAD, "card.save_card")
def change_card(request: PageRequest) -> Page | ActionResult:
    """Save the template of the judging card (do=save), or show a document with it (do=preview)."""
    what, before, document = request.form_field("do") or "save", request.form_field("before"), request.form_field("id")
    if what not in ("save", "preview"):
        raise Refusal(f"expected do=save or do=preview, found {what[:20]!r}")
    bench = request.site.bench
    try:
        template = _template(request)
        if what == "preview":
            return _form(request, template, before, document)
        save_card(bench, template, before)
    except DataError as error:
        if request.twin == "json":
            raise
        return _form(request, bench.card(), before, document, problem=request.site.public_text(str(error)), status=400)
    saved = bench.card()
    table = {} if saved is None else template_table(saved)
    return ActionResult("/card", {"card": table, "before": _hash(saved)})


def _template(request: PageRequest) -> CardTemplate | None:
    """The template that a form describes; None for title and text alone."""
    kind, hosts = request.form_field("kind"), request.form_field("image_hosts").split()
    lines = [line for line in request.form_field("fields").splitlines() if line.strip()] if kind == OWN else []
    if not kind:
        return None
    if len(lines) > MOST_FIELDS or len(hosts) > MOST_HOSTS:
        raise DataError(f"expected at most {MOST_FIELDS} fields and {MOST_HOSTS} hosts")
    values = {"image_hosts": hosts} | ({} if kind == OWN else {"kind": kind})
    fields = tuple(field_of(line, f"field {number}") for number, line in enumerate(lines, 1))
    checked = check(values, CardTemplate, "the card")
    template = CardTemplate(checked.kind, fields, checked.image_hosts)
    if (problem := template_problem(template)) is not None:
        raise DataError(problem[0])
    return template


def save_card(bench: Bench, template: CardTemplate | None, before: str) -> None:
    """Write a template into collection.toml; DataError if it holds another one than the author has seen."""
    if bench.collection is None:
        raise DataError("there is no collection whose documents could be shown; import one first")
    path = os.path.join(bench.collection, META)

    def work(transaction: Transaction) -> None:
        transaction.alone()  # nobody edits grades in the same file meanwhile
        if _hash(bench.card()) not in (before, _hash(template)):
            raise DataError(
                "somebody else has changed the card in the meantime; nothing was written, load the page again"
            )
        source = ""
        if os.path.exists(path):
            with read_errors(path), open(path, encoding="utf-8") as file:
                source = file.read()
        table = {} if template is None else template_table(template)
        write_bytes(path, [toml_with_table(source, "card", table, path).encode()])

    bench.log.write(work)


def _hash(template: CardTemplate | None) -> str:
    """The hash of a template, to notice that somebody has changed it."""
    table = {} if template is None else template_table(template)
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()[:16]
