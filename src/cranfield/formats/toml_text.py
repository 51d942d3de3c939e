"""TOML out: the few kinds of values that collection.toml and its kin hold. Python reads TOML but does not write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def toml_text(values: Mapping[str, Any]) -> str:
    """A mapping as TOML: plain values first, then a table for each mapping; None is left out.

    >>> print(toml_text({"name": "toy", "counts": {"documents": 3}, "hashes": {"qrels.txt": "sha256:…"}}), end="")
    name = "toy"
    <BLANKLINE>
    [counts]
    documents = 3
    <BLANKLINE>
    [hashes]
    "qrels.txt" = "sha256:…"
    """
    return "\n".join(_lines(values, ())).lstrip("\n") + "\n"


def _lines(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in values.items() if value is not None and not isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(map(_key, path))}]"] if path and (plain or not values) else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _lines(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return key if BARE.match(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, save that TOML wants the delete character escaped too."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
