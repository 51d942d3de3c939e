"""One request as a page sees it: who asks, in which workspace, and for what."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cranfield.http.refusal import Refusal
from cranfield.web.roles import ASSESSOR, NOBODY, may

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.store.accounts import Account
    from cranfield.web.site import Site


@dataclass(frozen=True)
class Visit:
    """Parameters of the query, fields of the form, the account; ids come only from these, never from the path."""

    site: Site
    path: str
    account: Account | None
    query: Mapping[str, Sequence[str]]
    form: Mapping[str, Any] = field(default_factory=dict)
    file: Any = None  # an upload, where the route takes one
    secret: str = ""  # of the session, if there is one
    address: str = ""
    twin: str = "html"

    @property
    def name(self) -> str:
        """Who asks; empty for nobody."""
        return "" if self.account is None else self.account.name

    @property
    def role(self) -> str:
        """What they may do."""
        return NOBODY if self.account is None else self.account.role

    def may(self, role: str) -> bool:
        """Whether they may do what a role may."""
        return may(self.role, role)

    @cached_property
    def blind(self) -> bool:
        """Whether grades and labels of others must not be shown: to an assessor with a round that is not closed."""
        return self.role == ASSESSOR and self.site.has_unclosed_round(self.name)

    def text(self, name: str, usual: str = "") -> str:
        """A parameter of the query."""
        return (self.query.get(name) or [usual])[-1]

    def texts(self, name: str) -> list[str]:
        """A parameter that may be given several times."""
        return [each for each in self.query.get(name, []) if each]

    def needed(self, name: str) -> str:
        """A parameter without which there is no page."""
        value = self.text(name)
        if not value:
            raise Refusal(f"{self.path} needs the parameter {name}: {self.path}?{name}=…", 400, safe="")
        return value

    def whole(self, name: str, usual: int, least: int = 0, most: int = 10**6) -> int:
        """A parameter that is a whole number."""
        return _whole(self.text(name), name, usual, least, most)

    def whole_said(self, name: str, usual: int, least: int = 0, most: int = 10**6) -> int:
        """A field of the form that is a whole number."""
        return _whole(self.said(name).strip(), name, usual, least, most)

    def said(self, name: str, usual: str = "") -> str:
        """A field of the form."""
        value = self.form.get(name, usual)
        if isinstance(value, list):
            value = value[-1] if value else usual
        return value if isinstance(value, str) else usual if value is None else str(value)

    def all_said(self, name: str) -> list[str]:
        """A field of the form that may be given several times."""
        value = self.form.get(name, [])
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]

    def number(self, name: str, usual: float | None = None) -> float | None:
        """A field of the form that is a finite number; `usual` where it is empty."""
        text = self.said(name).strip()
        if not text:
            return usual
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise Refusal(f"expected a number as {name}, found {text[:60]!r}")
        return value


def _whole(text: str, name: str, usual: int, least: int, most: int) -> int:
    try:
        value = int(text) if text else usual
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise Refusal(f"expected a whole number of {least} to {most:,} as {name}, found {text[:60]!r}")
    return value
