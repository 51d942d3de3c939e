"""Keyboard shortcuts: the one list of them. Pages show it, and people change it on /me."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.http.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Shortcut(NamedTuple):
    """A key and what it does on a page; `said` is the text that pages show."""

    name: str
    key: str
    said: str
    page: str = "judge"  # or "prefer", "topic", "search"


USUAL = (
    Shortcut("unsure", "u", "not sure (before a grade)"),
    Shortcut("cannot", "x", "cannot judge"),
    Shortcut("skip", "s", "skip"),
    Shortcut("undo", "z", "undo"),
    Shortcut("note", "n", "note"),
    Shortcut("mark", "h", "mark the selection"),
    Shortcut("guidelines", "g", "guidelines"),
    Shortcut("find", "/", "find"),
    Shortcut("next_hit", ".", "next hit"),
    Shortcut("previous_hit", ",", "previous hit"),
    Shortcut("older", "j", "my previous label"),
    Shortcut("newer", "k", "my next label"),
    Shortcut("help", "?", "help"),
    Shortcut("left", "ArrowLeft", "the left one", "prefer"),
    Shortcut("right", "ArrowRight", "the right one", "prefer"),
    Shortcut("same", "=", "neither", "prefer"),
    Shortcut("next_topic", "n", "next topic", "topic"),
    Shortcut("previous_topic", "p", "previous topic", "topic"),
    Shortcut("next_result", "j", "next result", "search"),
    Shortcut("previous_result", "k", "previous result", "search"),
    Shortcut("open_result", "o", "show the text of a result, or hide it", "search"),
)


SHARED = {  # keys of /judge, too
    "prefer": ("undo", "help"),
    "adjudicate": ("skip", "undo", "note", "help"),
    "search": ("unsure", "cannot", "undo", "note", "find", "help"),
}


def is_on(each: Shortcut, page: str) -> bool:
    """Whether a shortcut exists on a page."""
    return each.page == page or each.name in SHARED.get(page, ())


def keys_of(settings: Mapping[str, Any]) -> list[Shortcut]:
    """The shortcuts with the keys of somebody's settings."""
    own = settings.get("keys", {})
    return [each._replace(key=own.get(each.name, each.key)) for each in USUAL]


def keys_on(settings: Mapping[str, Any], page: str) -> tuple[list[Shortcut], dict[str, Any]]:
    """The shortcuts of a page by somebody's settings, and the settings that the page's script needs."""
    keys = [each for each in keys_of(settings) if is_on(each, page)]
    return keys, {"keys": {each.name: each.key for each in keys}, "single": bool(settings.get("single_keys", True))}


def changed_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """The keys that differ from the usual ones; Refusal if one key has two meanings on a page."""
    usual = {each.name: each for each in USUAL}
    own = {name: key for name, key in keys.items() if name in usual and key and key != usual[name].key}
    for key in own.values():
        if key.isdigit() or not (len(key) == 1 or key.startswith("Arrow")) or key.isspace():
            raise Refusal(f"expected a letter, a sign or an arrow as a key, found {key[:20]!r}; digits are for grades")
    for page in dict.fromkeys(each.page for each in USUAL):
        in_use: dict[str, Shortcut] = {}
        for each in (each._replace(key=own.get(each.name, each.key)) for each in USUAL if is_on(each, page)):
            other = in_use.setdefault(each.key.lower(), each)
            if other is not each:
                raise Refusal(f"the key {each.key!r} cannot have two meanings: {other.said}, and {each.said}")
    return own
