"""The keys of the pages: the one list of what can be done by a key, shown on screen and remapped on /me."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.http.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """Something that a key does."""

    name: str
    key: str
    said: str
    page: str = "judge"  # or "prefer", "topic"


USUAL = (
    Key("unsure", "u", "not sure (before a grade)"),
    Key("cannot", "x", "cannot judge"),
    Key("skip", "s", "skip"),
    Key("undo", "z", "undo"),
    Key("note", "n", "note"),
    Key("mark", "h", "mark the selection"),
    Key("guidelines", "g", "guidelines"),
    Key("find", "/", "find"),
    Key("next_hit", ".", "next hit"),
    Key("previous_hit", ",", "previous hit"),
    Key("older", "j", "my label before"),
    Key("newer", "k", "my label after"),
    Key("help", "?", "help"),
    Key("left", "ArrowLeft", "the left one", "prefer"),
    Key("right", "ArrowRight", "the right one", "prefer"),
    Key("same", "=", "neither", "prefer"),
    Key("next_topic", "n", "next topic", "topic"),
    Key("previous_topic", "p", "previous topic", "topic"),
)


SHARED = ("undo", "help")  # keys of /judge that /prefer has too


def is_on(each: Key, page: str) -> bool:
    """Whether a key does something on a page."""
    return each.page == page or (page == "prefer" and each.name in SHARED)


def keys_of(settings: Mapping[str, Any]) -> list[Key]:
    """The keys as somebody has set them."""
    own = settings.get("keys", {})
    return [each._replace(key=own.get(each.name, each.key)) for each in USUAL]


def checked(wanted: Mapping[str, str]) -> dict[str, str]:
    """The keys that differ from the usual ones, refused where two would do different things on one page."""
    known = {each.name: each for each in USUAL}
    own = {name: key for name, key in wanted.items() if name in known and key and key != known[name].key}
    for key in own.values():
        if key.isdigit() or not (len(key) == 1 or key.startswith("Arrow")) or key.isspace():
            raise Refusal(f"expected a letter, a sign or an arrow as a key, found {key[:20]!r}; digits grade")
    for page in dict.fromkeys(each.page for each in USUAL):
        taken: dict[str, Key] = {}
        for each in (each._replace(key=own.get(each.name, each.key)) for each in USUAL if is_on(each, page)):
            other = taken.setdefault(each.key.lower(), each)
            if other is not each:
                raise Refusal(f"the key {each.key!r} cannot be both: {other.said}, and {each.said}")
    return own
