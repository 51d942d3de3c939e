"""The judging card: templates that are refused with their line, the cards of documents, and images of the workspace."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from browsers import EVIL
from cranfield import read_collection
from cranfield.base.card import (
    LONGEST_VALUE,
    MOST_VALUES,
    READY_MADE,
    TYPE_OF_OPTION,
    CardField,
    CardTemplate,
    card_text,
    document_card,
    ready_made,
)
from cranfield.base.collection import Document
from cranfield.base.errors import DataError, TooLargeError
from cranfield.collections.check.collection_checks import check_collection
from cranfield.formats.collection_folder import stamp
from cranfield.formats.images import LARGEST, read_image
from shell import cranfield

if TYPE_CHECKING:
    from pathlib import Path

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 ",
    "image/avif": b"\0\0\0\x20ftypavif",
}


def collection(folder: Path, card: str, *documents: dict[str, Any]) -> Path:
    """A folder with documents and a template that begins in line 2."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = documents or ({"id": "d1", "title": "Tea", "text": "Black tea."},)
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "topics.jsonl").write_text('{"id": "q1", "title": "tea"}\n')
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    (folder / "collection.toml").write_text(f'name = "shop"\n{card}')
    return folder


def card(template: CardTemplate, **fields: Any) -> dict[str, list[tuple[str, str, str]]]:
    """The values of each field of a card, by label."""
    document = Document("d1", fields.pop("title", "Tea"), fields.pop("text", "Black tea."), fields)
    made = document_card(template, document, lambda name, n: f"local:{name}:{n}")
    return {part.label: [tuple(value) for value in part.values] for part in (*made.above, *made.below)}


# templates


@pytest.mark.parametrize("kind", READY_MADE)
def test_a_ready_made_template_shows_the_text_and_every_field_once(kind: str, tmp_path: Path) -> None:
    read = read_collection(collection(tmp_path / "c", f'[card]\nkind = "{kind}"\n')).card
    assert read is not None
    names = [field.name for field in read.shown_fields]
    assert "text" in names
    assert len(names) == len(set(names))
    assert all(
        getattr(field, name) in ("", None) or field.type == of
        for field in read.shown_fields
        for name, of in TYPE_OF_OPTION.items()
    )


@pytest.mark.parametrize("kind", READY_MADE)
def test_the_fields_of_a_ready_made_template_can_be_written_as_own_ones(kind: str, tmp_path: Path) -> None:
    fields = "".join(
        "[[card.fields]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in field.items())
        for field in READY_MADE[kind]["fields"]
    )
    read = read_collection(collection(tmp_path / "c", fields)).card
    assert read is not None
    assert read.shown_fields == ready_made(kind)


@pytest.mark.parametrize(
    ("toml", "line", "problem"),
    [
        ("card = 3", 2, "expected card as a table"),
        ("[card]\n", 2, "expected a kind .product, paper, web page. or a list of fields, found neither"),
        ('[card]\nkind = "shop"\n', 3, "expected card.kind as one of product, paper, web page, found 'shop'"),
        ('[card]\nkind = "paper"\n[[card.fields]]\nname = "x"\n', 2, "found both"),
        (
            '[card]\nkind = "paper"\nscript = "alert(1)"\n',
            4,
            "expected keys of kind, fields, image_hosts in .card., found 'script'",
        ),
        ('[card]\n[[card.fields]]\nname = "x"\nonclick = "alert(1)"\n', 5, "found 'onclick'"),
        (
            '[card]\n[[card.fields]]\nname = "x"\ntype = "html"\n',
            5,
            "expected card.fields#1.type as one of title, text, link",
        ),
        ('[card]\n[[card.fields]]\nname = "x"\nlabel = "<b>x</b>"\n', 5, "without HTML"),
        ('[card]\n[[card.fields]]\nname = "x"\ntype = "number"\nunit = "<script>"\n', 6, "without HTML"),
        ('[card]\n[[card.fields]]\nname = "x"\nlabel = "\\u202Ex"\n', 5, "without HTML"),
        ('[card]\n[[card.fields]]\ntype = "text"\n', 3, "expected card.fields#1.name"),
        ('[card]\n[[card.fields]]\nname = "x"\n[[card.fields]]\nname = "x"\n', 6, "'x' occurs twice"),
        ('[card]\n[[card.fields]]\nname = "text"\ntype = "link"\n', 5, "its type cannot be link"),
        ('[card]\n[[card.fields]]\nname = "x"\nunit = "EUR"\n', 5, "unit is for fields of the type number, found text"),
        ('[card]\n[[card.fields]]\nname = "x"\ntype = "number"\ndecimals = 11\n', 6, "from 0 to 10"),
        ('[card]\n[[card.fields]]\nname = "x"\ntype = "link"\nprefix = "javascript:"\n', 6, "an address such as"),
        ('[card]\nkind = "paper"\nimage_hosts = ["https://a.example"]\n', 4, "the name of a host in lower case"),
        ('[card]\nkind = "paper"\nimage_hosts = ["*"]\n', 4, "the name of a host"),
        ('[card]\nkind = "paper"\nimage_hosts = ["a.example; script-src *"]\n', 4, "the name of a host"),
        ('[card]\nkind = "paper"\nimage_hosts = ["a.example\\n"]\n', 4, "the name of a host"),
        (
            '[card]\n[[card.fields]]\nname="a"\ntype="title"\n[[card.fields]]\nname="b"\ntype="title"\n',
            None,
            "one field of the type title",
        ),
    ],
)
def test_a_template_that_does_not_fit_is_refused_with_its_line(
    toml: str, line: int | None, problem: str, tmp_path: Path
) -> None:
    folder = collection(tmp_path / "c", toml)
    with pytest.raises(DataError, match=problem) as error:
        read_collection(folder)
    if line is not None:
        assert str(error.value).startswith(f"{folder / 'collection.toml'}:{line}: ")


def test_a_template_survives_a_stamp(tmp_path: Path) -> None:
    toml = '[card]\nimage_hosts = ["img.example:8443"]\n[[card.fields]]\nname = "price"\ntype = "number"\nunit = "€"\n'
    folder = collection(tmp_path / "c", toml)
    before = read_collection(folder)
    stamp(before)
    assert read_collection(folder).card == before.card
    assert before.card == CardTemplate(None, (CardField("price", "number", unit="€"),), ("img.example:8443",))


# cards


def test_a_card_has_the_order_labels_and_formats_of_its_template() -> None:
    fields = [
        CardField("name", "title"),
        CardField("price", "number", "Preis", unit_from="currency", decimals=2),
        CardField("stock", "number"),
        CardField("added", "date"),
        CardField("text", label="Beschreibung"),
        CardField("tags"),
        CardField("ean_code"),
    ]
    row = {"name": "Assam", "price": "1234.5", "currency": "EUR", "stock": 12000, "added": "2026-03-01"}
    row |= {"tags": ["black", "loose", 3, True], "ean_code": 4006381333931, "other": "not shown"}
    made = document_card(CardTemplate(fields=tuple(fields)), Document("d1", "Tea", "Black tea.", row))
    assert (made.title, made.text_label) == ("Assam", "Beschreibung")
    assert [(part.label, part.values[0].text) for part in made.above] == [
        ("Preis", "1,234.50 EUR"),
        ("Stock", "12,000"),
        ("Added", "1 March 2026"),
    ]
    assert [(part.label, part.values[0].text) for part in made.below] == [
        ("Tags", "black, loose, 3, yes"),
        ("Ean code", "4006381333931"),
    ]
    assert card_text(made, "Black tea.").splitlines() == [
        "Assam",
        "Preis: 1,234.50 EUR",
        "Stock: 12,000",
        "Added: 1 March 2026",
        "Black tea.",
        "Tags: black, loose, 3, yes",
        "Ean code: 4006381333931",
    ]


def test_a_title_is_never_cut_and_a_field_without_value_is_left_out() -> None:
    long = "word " * 40_000
    made = document_card(CardTemplate("paper"), Document("d1", long, "", {"venue": "", "authors": [], "year": None}))
    assert made == (long, [], [], "")


ADDRESSES = {  # whether a page may link to them
    "https://a.example/x?y=1#z": True,
    "HTTP://a.example": True,
    "https://[2001:db8::1]/x": True,
    "javascript:alert(1)": False,
    "JaVaScRiPt:alert(1)": False,
    " javascript:alert(1)": False,
    "data:text/html,<script>alert(1)</script>": False,
    "//a.example/x": False,
    "https://user@a.example/": False,
    "https:\\\\a.example": False,
    "https://a.example/\n": True,  # blanks at the ends are none of the address
    "https://a.exa\nmple/": False,
    "https://[bad/": False,
    "https://a.example:port/": False,
    "https://" + "a" * 3000: False,
    "ftp://a.example/": False,
    EVIL: False,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_links_lead_to_http_and_everything_else_is_text(address: str) -> None:
    [(text, url, image)] = card(CardTemplate(fields=(CardField("url", "link"),)), url=address)["Url"]
    assert (text, image) == (address.strip(), "")
    assert url == (address.strip() if ADDRESSES[address] else "")


def test_a_prefix_makes_an_address_of_what_is_none() -> None:
    doi = (CardField("doi", "link", prefix="https://doi.org/"),)
    assert card(CardTemplate(fields=doi), doi="10.1000/a b#c")["Doi"] == [
        ("10.1000/a b#c", "https://doi.org/10.1000/a%20b%23c", "")
    ]
    assert card(CardTemplate(fields=doi), doi="javascript:alert(1)")["Doi"] == [("javascript:alert(1)", "", "")]


IMAGES = {  # where an image comes from
    "tea.jpg": "local:image:0",
    "images/a b.jpg": "local:image:0",
    "https://img.example/tea.jpg": "https://img.example/tea.jpg",
    "https://IMG.example/tea.jpg": "https://IMG.example/tea.jpg",
    "http://img.example/tea.jpg": "",
    "https://img.example.evil.example/tea.jpg": "",
    "https://img.example@evil.example/tea.jpg": "",
    "https://img.example:8443/tea.jpg": "",
    "https://evil.example/img.example": "",
    "//img.example/tea.jpg": "",
    "data:image/png;base64,AAAA": "",
    "javascript:alert(1)": "",
}


@pytest.mark.parametrize("path", IMAGES)
def test_images_come_from_the_workspace_or_from_named_hosts_and_others_are_links_or_text(path: str) -> None:
    template = CardTemplate(fields=(CardField("image", "image"),), image_hosts=("img.example",))
    [(text, url, image)] = card(template, image=path)["Image"]
    assert image == IMAGES[path]
    assert text == ("Image: Tea" if image else path)
    assert url == (path if not image and re.match("https?://[^@]*$", path) else "")


def test_images_have_an_alternative_text_each_and_a_list_is_limited() -> None:
    template = CardTemplate(fields=(CardField("photos", "image", alt="captions"),))
    values = card(template, photos=["a.png", "b.png", "", 3], captions=["A cup"])["Photos"]
    assert values == [("A cup", "", "local:photos:0"), ("Photos 2 of 2: Tea", "", "local:photos:1")]
    assert len(card(template, photos=["a.png"] * 50)["Photos"]) == MOST_VALUES


@pytest.mark.parametrize("type", ["text", "link", "image", "number", "date"])
@pytest.mark.parametrize(
    "value",
    [
        EVIL,
        "\ud800",
        "\0",
        "x" * 50_000,
        [[1], {"a": EVIL}],
        {"b": 2},
        True,
        1e300,
        float("inf"),
        10**400,
        -0.0,
        "٣",
        "9" * 400,
    ],
)
def test_a_card_is_made_of_whatever_a_field_holds(type: Any, value: Any) -> None:
    template = CardTemplate(fields=(CardField("x", type, alt="x" if type == "image" else ""),))
    for values in card(template, x=value).values():
        assert all(len(text) <= LONGEST_VALUE + 1 and not url for text, url, _ in values)


def test_a_check_names_missing_fields_refused_images_and_the_hosts_that_see_assessors(tmp_path: Path) -> None:
    toml = """[card]
image_hosts = ["img.example"]
[[card.fields]]
name = "photo"
type = "image"
[[card.fields]]
name = "prise"
type = "number"
"""
    photos = ["good.png", "../collection.toml", "https://img.example/a.png", "https://other.example/b.png", "evil.svg"]
    rows = [{"id": f"d{n}", "title": "Tea", "text": f"Tea {n}", "photo": photo} for n, photo in enumerate(photos)]
    folder = collection(tmp_path / "c", toml, *rows)
    (folder / "images").mkdir()
    (folder / "images" / "good.png").write_bytes(HEADS["image/png"])
    (folder / "images" / "evil.svg").write_text("<svg/>")
    findings = {each.code: each for each in check_collection(str(folder)) if each.code.startswith("card-")}
    assert {code: (each.severity, each.count) for code, each in findings.items()} == {
        "card-image-hosts": ("note", 1),
        "card-field-missing": ("warning", 1),
        "card-image-refused": ("warning", 2),
        "card-image-elsewhere": ("note", 1),
    }
    assert "'img.example'" in findings["card-image-hosts"].message
    assert "IP addresses of assessors" in findings["card-image-hosts"].message
    assert "'prise'" in findings["card-field-missing"].message
    assert "d4: images/evil.svg: expected an image" in findings["card-image-refused"].message
    assert not [each for each in check_collection("allotment") if each.code.startswith("card-")]


def test_the_terminal_shows_the_card_as_text(tmp_path: Path) -> None:
    row = {"id": "d1", "title": "Tea", "text": "Black tea.", "price": 3, "currency": "EUR", "image": "tea.png"}
    folder = collection(tmp_path / "c", '[card]\nkind = "product"\n', row)
    (tmp_path / "pool.jsonl").write_text('{"topic": "q1", "document": "d1"}\n')
    line = ["pool", "judge", "--pool", str(tmp_path / "pool.jsonl"), "--collection", str(folder)]
    answer = cranfield(*line, "--judgments", str(tmp_path / "work.db"), "--assessor", "ann", stdin=b"1\n")
    assert answer.code == 0, answer.err
    assert "document d1\nTea\nImage: Tea (tea.png)\nPrice: 3.00 EUR\nBlack tea.\n" in answer.err


# images


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "w" / "images" / "sub").mkdir(parents=True)
    (tmp_path / "w" / "work.db").write_bytes(HEADS["image/png"])
    return tmp_path / "w"


@pytest.mark.parametrize("kind", HEADS)
def test_an_image_is_recognised_by_its_first_bytes_whatever_its_name(kind: str, shop: Path) -> None:
    for name in ("a.svg", "sub/a.txt"):
        (shop / "images" / name).write_bytes(HEADS[kind] + b"rest")
        assert read_image([str(shop)], name) == (kind, HEADS[kind] + b"rest")
        assert read_image([str(shop)], f"images/{name}").kind == kind


@pytest.mark.parametrize(
    "body",
    [b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", b"", b"<html>", b"BM", b"\x89PNG"],
)
def test_what_is_no_raster_image_is_refused(body: bytes, shop: Path) -> None:
    (shop / "images" / "a.png").write_bytes(body)
    with pytest.raises(DataError, match="expected an image .PNG, JPEG, GIF, WebP or AVIF. by its first bytes"):
        read_image([str(shop)], "a.png")


@pytest.mark.parametrize(
    "path",
    [
        "../work.db",
        "images/../work.db",
        "sub/../../work.db",
        "/etc/passwd",
        "",
        ".",
        "images",
        "images/",
        "a\0b",
        "\ud800",
        "..\\work.db",
        "sub//a",
        "./a",
        "no.png",
        "sub",
        "x" * 5000,
    ],
)
def test_no_path_leads_out_of_the_folder(path: str, shop: Path) -> None:
    with pytest.raises(DataError):
        read_image([str(shop)], path)


def test_a_symbolic_link_inside_the_folder_is_followed_and_one_that_leads_out_is_refused(
    shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    for place in (shop / "images" / "a.png", tmp_path / "secret" / "b.png"):
        place.write_bytes(HEADS["image/png"])
    os.symlink("a.png", shop / "images" / "same.png")
    os.symlink(tmp_path / "secret" / "b.png", shop / "images" / "out.png")
    os.symlink(tmp_path / "secret", shop / "images" / "folder")
    os.symlink("../work.db", shop / "images" / "db.png")
    assert read_image([str(shop)], "same.png").kind == "image/png"
    for path in ("out.png", "folder/b.png", "db.png"):
        with pytest.raises(DataError, match="leads out of images/"):
            read_image([str(shop)], path)


def test_an_image_of_fifty_megabytes_is_refused_unread_and_a_pipe_does_not_block(shop: Path) -> None:
    with open(shop / "images" / "huge.png", "wb") as file:
        file.write(HEADS["image/png"])
        file.truncate(50_000_000)
    with pytest.raises(TooLargeError, match="at most 10 MB, found 50 MB"):
        read_image([str(shop)], "huge.png")
    with open(shop / "images" / "just.png", "wb") as file:
        file.write(HEADS["image/png"])
        file.truncate(LARGEST)
    assert len(read_image([str(shop)], "just.png").body) == LARGEST
    os.mkfifo(shop / "images" / "pipe.png")
    with pytest.raises(DataError, match="expected a file"):
        read_image([str(shop)], "pipe.png")
