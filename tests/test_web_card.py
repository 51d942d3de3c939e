"""Cards on the pages: products, papers and web pages, images of the workspace and of named hosts, hostile values, axe."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from markupsafe import escape

from browsers import EVIL, Watched
from cranfield import read_collection
from cranfield.base.card import CardField, CardTemplate
from cranfield.http.refusal import POLICY
from cranfield.judging.event import Event
from cranfield.judging.round_plan import Round, RoundItem
from cranfield.judging.rounds import open_round
from cranfield.workbench.pages.prefer import open_comparison_of_runs
from cranfield.workbench.rendering import statics
from test_web_access import SMALL, SMALLEST, problems
from workbench import Served, served, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "img.shop.example"
GRADES = '[grades]\n0 = "not relevant"\n1 = "relevant"\n2 = "highly relevant"\n'
LONG = "A title that is far longer than any list of results would ever show, and is never cut on the card " * 4
PRODUCT = {
    "id": "p1",
    "title": f"Assam first flush. {LONG}",
    "text": "A strong black tea from the first harvest of the year.\n\nBrew it for three minutes.",
    "image": "tea.png",
    "images": ["images/sub/cup.png", f"https://{HOST}/box.png", "https://elsewhere.example/box.png"],
    "image_alt": "A cup of tea on a table",
    "price": 12.5,
    "currency": "EUR",
    "brand": "Leaf & Co",
    "category": ["Tea", "Black tea", "Assam"],
    "rating": 4.6,
    "availability": "in stock",
    "url": "https://shop.example/tea?id=1",
}
PAPER = {
    "id": "p2",
    "title": "The flutter of heated wings",
    "text": "We study the flutter of tea leaves in heated wind tunnels.",
    "authors": ["A. Author", "B. Author"],
    "venue": "Journal of Tea",
    "year": 1958,
    "doi": "10.1000/182",
    "pdf": "https://papers.example/182.pdf",
}
PAGE = {
    "id": "p3",
    "title": "How to brew tea",
    "text": "Boil water. Pour it on the tea.",
    "url": "https://tea.example/how-to?x=<b>",
    "site": "tea.example",
    "date": "2026-03-01",
    "description": "Water of 95 degrees, three minutes, a warm pot; with milk, with sugar, or with neither of them.",
    "image": "tea.png",
}
ODD = {
    "id": EVIL,
    "title": EVIL,
    "text": EVIL,
    "image": ["../work.db", EVIL, "evil.svg", "gone.png", "huge.png", f"https://{HOST}.evil.example/x.png"],
    "image_alt": [EVIL] * 6,
    "price": EVIL,
    "currency": EVIL,
    "brand": [EVIL, {EVIL: [EVIL]}],
    "rating": float("1e308"),
    "url": "javascript:alert(1)",
}


def png(width: int, height: int, red: int) -> bytes:
    """A small picture."""
    rows = b"".join(
        b"\0" + bytes((red, x * 255 // width, y * 255 // height)[c] for x in range(width) for c in range(3))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def workspace(folder: Path, card: str, *documents: dict[str, Any]) -> Path:
    """A workspace whose documents are shown by a template."""
    (folder / "images" / "sub").mkdir(parents=True)
    (folder / "images" / "tea.png").write_bytes(png(320, 200, 200))
    (folder / "images" / "sub" / "cup.png").write_bytes(png(200, 260, 80))
    (folder / "images" / "evil.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    with open(folder / "images" / "huge.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(50_000_000)
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in documents))
    (folder / "topics.jsonl").write_text(
        json.dumps({"id": "q1", "title": "strong tea", "description": "Which tea is strong?"}) + "\n"
    )
    (folder / "runs").mkdir()
    for name, ranking in (("a", ["p1"]), ("b", ["p3"])):
        scores = {"q1": {each: 2.0 - place for place, each in enumerate(ranking)}}
        (folder / "runs" / f"{name}.json").write_text(json.dumps(scores))
    (folder / "collection.toml").write_text(f'name = "shop"\n{GRADES}[card]\n{card}\n')
    return folder


def site_of(tmp: Path, card: str, *documents: dict[str, Any]) -> Any:
    return served(workspace(tmp / "shop", card, *documents))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    card = f'kind = "product"\nimage_hosts = ["{HOST}"]'
    with site_of(tmp_path_factory.mktemp("card"), card, PRODUCT, PAPER, PAGE, ODD) as opened:
        open_round(
            opened.bench.log,
            Round(name="all", scale=(0, 1, 2)),
            [RoundItem("q1", each["id"]) for each in (PRODUCT, PAGE, ODD, PAPER)],
        )
        open_comparison_of_runs(opened.bench, "pairs", "documents", "a.json", "b.json", depth=2)
        opened.bench.log.add(
            [Event(topic="q1", document="p1", grade=n, assessor=who) for n, who in enumerate(("cy", "dee"))]
        )
        yield opened


def image(document: str, field: str = "image", n: int = 0) -> str:
    return f"/image?{urlencode({'id': document, 'field': field, 'n': n})}"


# images


def test_an_image_is_sent_with_its_type_and_can_run_nothing(site: Served) -> None:
    reply = site.client("ann", "assessor").get(image("p1"))
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, "image/png", png(320, 200, 200))
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.headers["cache-control"] == "private, no-cache"
    again = site.client("ann", "assessor").get(image("p1"), If_None_Match=reply.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    values = site.client("ann", "assessor").get(image("p1", "images").replace("/image?", "/image.json?")).json()
    assert values == {"id": "p1", "field": "images", "n": 0, "type": "image/png", "bytes": len(png(200, 260, 80))}


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (image(EVIL, n=0), 400),  # ../work.db
        (image(EVIL, n=1), 400),
        (image(EVIL, n=2), 400),  # an SVG
        (image(EVIL, n=3), 400),  # no such file
        (image(EVIL, n=4), 413),  # 50 MB
        (image(EVIL, n=5), 404),  # of a host
        (image("p1", "images", 1), 404),
        (image("p1", "title"), 404),
        (image("p1", "no such"), 404),
        (image("p1", n=7), 404),
        (image("p1", n=-1), 400),
        (image("no such"), 404),
        ("/image?id=p1", 400),
    ],
)
def test_what_is_no_image_of_a_document_in_the_workspace_is_refused(site: Served, address: str, status: int) -> None:
    reply = site.client("ann", "assessor").get(address)
    assert reply.status == status
    assert reply.headers["content-security-policy"] == POLICY
    assert reply.headers["content-type"].startswith("text/html")
    assert site.bench.folder not in reply.text
    assert site.client().get(address).status in (303, 401)


def test_a_page_loads_images_of_named_hosts_and_of_no_others(site: Served, tmp_path: Path) -> None:
    client = site.client("ann", "assessor")
    for path in ("/judge?round=all", "/document?id=p1", "/prefer?comparison=pairs"):
        reply = client.get(path)
        assert reply.headers["content-security-policy"] == POLICY.replace(
            "img-src 'self'", f"img-src 'self' https://{HOST}"
        )
        assert reply.headers["referrer-policy"] == "no-referrer"
    assert f"https://{HOST}" in site.client("zoe").get("/adjudicate").headers["content-security-policy"]
    assert client.get("/me").headers["content-security-policy"] == POLICY
    with site_of(tmp_path, 'kind = "product"', PRODUCT) as other:
        reply = other.client("ann", "assessor").get("/document?id=p1")
        assert reply.headers["content-security-policy"] == POLICY
        assert f'<a href="https://{HOST}/box.png" target="_blank" rel="noopener noreferrer"' in reply.text
        assert f'src="https://{HOST}' not in reply.text


# the page of the template


def test_a_lead_chooses_a_template_with_a_preview_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    with served(workspace(tmp_path / "shop", 'kind = "paper"', PRODUCT, PAPER)) as site:
        lead, path = site.client("zoe"), tmp_path / "shop" / "collection.toml"
        path.write_text(f"# ours\n{path.read_text()}\n[provenance]\nfrom = 'us'  # who\n")
        before = lead.get("/card.json").json()
        assert before["card"] == {"kind": "paper"}
        own = '{name = "price", type = "number", label = "Costs", unit = "EUR"},\n\n{name = "brand"}'
        form = {"kind": "own fields", "fields": own, "image_hosts": f"{HOST}\n", "before": before["before"], "id": "p1"}
        shown = lead.post("/card", {**form, "do": "preview"})
        assert shown.status == 200
        assert "12.5 EUR" in shown.text
        assert "sees the IP address of every assessor" in shown.text
        assert f"https://{HOST}" in shown.headers["content-security-policy"]
        assert read_collection(tmp_path / "shop").card == CardTemplate("paper")
        saved = lead.send("/card.json", form)
        assert saved.status == 200, saved.text
        assert saved.json()["card"]["fields"][0] == {"name": "price", "type": "number", "label": "Costs", "unit": "EUR"}
        text = path.read_text()
        assert text.startswith("# ours\n")
        assert "from = 'us'  # who" in text
        assert read_collection(tmp_path / "shop").card == CardTemplate(
            None, (CardField("price", "number", "Costs", "EUR"), CardField("brand")), (HOST,)
        )
        assert "Costs" in site.client("ann", "assessor").get("/document?id=p1").text
        again = lead.post("/card", form | {"kind": ""})
        assert again.status == 400
        assert "somebody else has changed the card" in again.text.casefold()
        assert lead.send("/card.json", {"kind": "", "before": saved.json()["before"]}).status == 200
        assert read_collection(tmp_path / "shop").card is None
        assert "[card" not in path.read_text()


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"kind": "shop"}, "one of product, paper, web page"),
        ({"kind": "own fields", "fields": ""}, "or a list of fields, found neither"),
        (
            {"kind": "own fields", "fields": '{name = "x"}\n{name = "x", onclick = "alert(1)"}'},
            "field 2: expected keys of",
        ),
        ({"kind": "own fields", "fields": "name"}, "field 1: expected a field such as"),
        ({"kind": "own fields", "fields": '{name = "x"}\nscript = 1'}, "field 2: expected a field such as"),
        ({"kind": "own fields", "fields": f'{{name = "x", label = {json.dumps(EVIL)}}}'}, "without HTML"),
        ({"kind": "own fields", "fields": '{name = "x", unit = "EUR"}'}, "unit is for fields of the type number"),
        ({"kind": "own fields", "fields": '{name = "x"}\n' * 101}, "at most 100 fields"),
        ({"kind": "paper", "image_hosts": "https://a.example"}, "the name of a host in lower case"),
        ({"kind": "paper", "image_hosts": "a.example;script-src"}, "the name of a host in lower case"),
        ({"kind": "paper", "image_hosts": "*"}, "the name of a host in lower case"),
        ({"kind": "paper", "do": "erase"}, "expected do=save or do=preview"),
    ],
)
def test_a_template_of_the_form_that_does_not_fit_is_refused_and_nothing_is_written(
    site: Served, form: dict[str, str], problem: str
) -> None:
    lead, path = site.client("zoe"), Path(site.bench.folder) / "collection.toml"
    before = path.read_text()
    form = {"before": lead.get("/card.json").json()["before"], **form}
    assert problem in lead.send("/card.json", form).json()["error"]
    page = lead.post("/card", form)
    assert page.status == 400
    assert EVIL not in page.text
    assert path.read_text() == before
    for name, role in (("ann", "assessor"), ("vic", "viewer")):
        assert site.client(name, role).send("/card.json", form).status == 403
        assert site.client(name, role).get("/card").status == 403


def test_only_leads_preview_images_that_the_card_does_not_show(site: Served) -> None:
    address = image("p1", "images").replace("field=images", "field=photo")
    assert site.client("zoe").get(address).status == 404  # the document has no such field
    with_images = image("p3", "image")
    assert site.client("ann", "assessor").get(with_images).status == 200


# in a browser


DRAWN = """() => {  // the fields above and below the text
  const value = (dd) => {
    const image = dd.querySelector("img"), link = dd.querySelector("a");
    if (image) return `[${image.alt}] ${image.getAttribute("src")}`;
    if (link) return `${link.textContent.trim()} -> ${link.getAttribute("href")} ${link.target} ${link.rel}`;
    return dd.textContent.trim();
  };
  const values = (div) => [...div.querySelectorAll("dd")].map(value).join(" | ");
  const part = (div) => `${div.className} ${div.querySelector("dt").textContent}: ${values(div)}`;
  const name = (box) => box.hidden ? `${box.id} hidden` : box.id;
  return [...document.querySelectorAll("#above, #below")].flatMap((box) => [name(box), ...[...box.children].map(part)]);
}"""
RUNNING = "a[href^='javascript'], .fields-of-card img, main [onerror], main [onload], main script:not([type='application/json'])"


def at(site: Served, browser: Any, name: str, **options: Any) -> Watched:
    watched = Watched(site.context(browser, "ann", "assessor", **options))
    picture = png(64, 48, 128)
    watched.page.route(f"https://{HOST}/**", lambda route: route.fulfill(body=picture, content_type="image/png"))
    watched.page.goto(f"/judge?{urlencode({'round': name})}")
    watched.page.locator("#form[data-ready]").wait_for(state="attached")
    return watched


def test_the_script_draws_the_card_that_the_server_draws(site: Served, browser: Any) -> None:
    watched = at(site, browser, "all")
    page = watched.page
    assert page.locator("#title").inner_text() == PRODUCT["title"].strip()
    drawn = page.evaluate(DRAWN)
    title, elsewhere = PRODUCT["title"], "https://elsewhere.example/box.png"
    assert drawn == [
        "above",
        "of-image Image: [A cup of tea on a table] /image?id=p1&field=image&n=0",
        f"of-image Images: [Images 1 of 3: {title}] /image?id=p1&field=images&n=0"
        f" | [Images 2 of 3: {title}] https://{HOST}/box.png | {elsewhere} -> {elsewhere} _blank noopener noreferrer",
        "of-number Price: 12.50 EUR",
        "of-text Brand: Leaf & Co",
        "of-text Category: Tea, Black tea, Assam",
        "of-number Rating: 4.6 of 5",
        "of-text Availability: in stock",
        "below",
        "of-link Page: https://shop.example/tea?id=1 -> https://shop.example/tea?id=1 _blank noopener noreferrer",
    ]
    shown = "() => [...document.querySelectorAll('#above img')].every((each) => each.complete && each.naturalWidth > 0)"
    page.wait_for_function(shown)
    page.keyboard.press("s")
    page.locator("#doc-id", has_text="p3").wait_for()
    assert "of-image Image: [Image: How to brew tea] /image?id=p3&field=image&n=0" in page.evaluate(DRAWN)
    assert f"of-text long Description: {PAGE['description']}" in page.evaluate(DRAWN)  # over the whole width
    page.keyboard.press("z")
    page.locator("#doc-id", has_text="p1").wait_for()
    assert page.evaluate(DRAWN) == drawn
    page.wait_for_function(shown)
    assert all("Failed to load resource" in said for said in watched.said)  # of the hostile document to come
    assert {url.split("/")[2] for url in watched.requests} == {f"127.0.0.1:{site.port}", HOST}


def test_the_server_adds_no_blank_to_a_value(site: Served) -> None:
    assert (
        '<div class="of-text long"><dt>Description</dt>' in site.client("ann", "assessor").get("/document?id=p3").text
    )
    page = site.client("ann", "assessor").get("/document?id=p1").text
    assert '<dt>Price</dt><dd><span dir="auto">12.50 EUR</span></dd>' in page
    assert '<dd><a href="https://shop.example/tea?id=1" target="_blank" rel="noopener noreferrer" dir="auto">' in page


def test_lists_name_a_document_by_the_title_of_its_card_uncut(tmp_path: Path) -> None:
    card = 'fields = [{name = "product", type = "title"}]'
    with site_of(tmp_path, card, *({"id": f"p{n}", "text": "Tea.", "product": f"{n} {LONG}"} for n in (1, 3))) as site:
        open_round(site.bench.log, Round(name="all", scale=(0, 1, 2)), [RoundItem("q1", "p1")])
        open_comparison_of_runs(site.bench, "lists", "lists", "a.json", "b.json", depth=2)
        ann = site.client("ann", "assessor")
        event = {"id": "e1", "topic": "q1", "document": "p1", "grade": 1}
        ann.get("/judge.json?round=all")
        ann.send("/judge.json", {"round": "all", "events": [event], "n": 0})
        assert ann.get("/judge.json?round=all").json()["labels"][0]["title"] == f"1 {LONG}".strip()
        sides = ann.get("/prefer.json?comparison=lists").json()["pairs"][0]
        titles = {entry["title"] for side in ("left", "right") for entry in sides[side]["entries"]}
        assert titles == {f"1 {LONG}".strip(), f"3 {LONG}".strip()}
        page = site.client("lea", "lead").get("/topic?topic=q1&one=a.json&other=b.json&document=p1").text
        assert f"1 {LONG}".strip() in page  # in the pane


def test_the_script_asks_for_images_under_the_prefix_of_the_workspace() -> None:
    script = statics("/garden")["card.js"].body.decode()
    assert 'const IMAGE = "/garden/image";' in script
    assert r"image.replace(/^\/image(?=\?)/, IMAGE)" in script  # the address in a value has no prefix


def test_a_search_shows_the_fields_of_each_result(site: Served) -> None:
    client = site.client("ann", "assessor")
    waited(site, "/search.json?topic=q1&query=tea", who=("ann", "assessor"))
    reply = client.get("/search?topic=q1&query=assam+harvest")
    assert "12.50 EUR" in reply.text
    assert f'<img src="{escape(image("p1"))}" alt="A cup of tea on a table"' in reply.text
    assert f"https://{HOST}" in reply.headers["content-security-policy"]


def test_hostile_values_of_every_type_are_shown_and_not_run(site: Served, browser: Any) -> None:
    rows = [RoundItem("q1", each["id"]) for each in (PAGE, ODD)]
    open_round(site.bench.log, Round(name="odd", scale=(0, 1, 2)), rows)
    watched = at(site, browser, "odd")
    page = watched.page
    for path in (
        None,
        f"/document?{urlencode({'id': EVIL})}",
        f"/judge?{urlencode({'topic': 'q1', 'document': EVIL})}",
    ):
        if path is None:
            page.keyboard.press("x")
            page.locator("#doc-id", has_text="onerror").wait_for()
        else:
            page.goto(path)
        page.locator("h1", has_text=EVIL).wait_for()
        page.locator(".fields-of-card .note", has_text=f"No image: {EVIL}").nth(4).wait_for()  # all five are refused
        text = page.locator(".fields-of-card").all_inner_texts()
        assert "javascript:alert(1)" in "".join(text)
        assert "".join(text).count(EVIL) >= 8
        assert page.locator(RUNNING).count() == 0
    assert all("Failed to load resource" in said for said in watched.said)
    assert {url.split("/")[2] for url in watched.requests} == {f"127.0.0.1:{site.port}"}


def test_a_comparison_and_a_decision_show_the_cards(site: Served, browser: Any) -> None:
    watched = Watched(site.context(browser, "zoe", "lead"))
    watched.page.route(f"https://{HOST}/**", lambda route: route.fulfill(body=png(4, 4, 1), content_type="image/png"))
    watched.page.goto("/prefer?comparison=pairs")
    side = watched.page.locator(".choice", has_text="Assam")
    watched.page.wait_for_function("() => document.querySelector('.choice .fields-of-card a')")
    assert side.locator(".of-number").first.inner_text().split() == ["Price", "12.50", "EUR"]
    assert side.locator(".of-link a").get_attribute("href") == PRODUCT["url"]
    assert "12.50 EUR" in site.client("zoe").get("/prefer?comparison=pairs").text
    watched.page.goto("/adjudicate")
    watched.page.locator("#above", has_text="12.50 EUR").wait_for()
    assert any("of-number Price: 12.50 EUR" in line for line in watched.page.evaluate(DRAWN))


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "dark"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [(390, "light"), (1280, "dark"), (1280, "light")]),
    ],
)
def test_cards_have_no_serious_finding_and_nothing_small(site: Served, browser: Any, width: int, scheme: str) -> None:
    size = {"width": width, "height": 800}
    page = site.context(browser, "ann", "assessor", viewport=size, color_scheme=scheme, bypass_csp=True).new_page()
    page.route(f"https://{HOST}/**", lambda route: route.fulfill(body=png(4, 4, 1), content_type="image/png"))
    found = []
    for path in (
        "/judge?topic=q1&document=p1",
        f"/judge?{urlencode({'topic': 'q1', 'document': EVIL})}",
        "/document?id=p1",
    ):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        found += [f"{path}: {each}" for each in (*problems(page), *page.evaluate(SMALL, SMALLEST))]
    page.context.close()
    lead = site.context(browser, "zoe", "lead", viewport=size, color_scheme=scheme, bypass_csp=True)
    page = lead.new_page()
    page.goto(f"/card?{urlencode({'id': EVIL})}")
    found += [f"/card: {each}" for each in (*problems(page), *page.evaluate(SMALL, SMALLEST))]
    lead.close()
    assert not found, "\n".join(found)
