"""An HTTP engine under test: a template filled in for each query, and its hits read.

The engine is taken as it stands, already indexed: how documents get into it is a matter of its own tools.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from cranfield.errors import ConventionError, DataError
from cranfield.parameters import read_pairs
from cranfield.systems.http.template import MISSING, at_path, filled, read_template, templates
from cranfield.systems.system import Busy, Query, Ranking, System, id_text

if TYPE_CHECKING:
    from collections.abc import Iterable


class HttpEngine(System):
    """any engine that answers JSON over HTTP: http:FILE.toml says how to ask it and where the hits are."""

    name = "http"
    usage = "http:FILE.toml"
    place = 8
    needs_documents = False
    in_process = False
    keeps_order = True

    def __init__(self, rest: str = "") -> None:
        from cranfield.systems.http.client import Client  # which loads ssl

        super().__init__()
        kind, _, behind = rest.partition(":")
        if kind in templates():
            self.template = templates()[kind]
            base, _, options = behind.partition(",")
            self.shown = [f"{kind}:{_without_password(base)}"]
        else:
            path, _, options = rest.partition(",")
            if not path:
                raise ConventionError("http: expected a template, as in http:engine.toml")
            self.template, base = read_template(path), ""
            self.shown = [f"http:{os.path.basename(path)}"]
        self.headers = dict(self.template.headers)
        self.names = {**self.template.options, "base": base.rstrip("/")}
        for key, value in read_pairs(options, self.template.name).items():
            self._take(key, value)
        self.headers = {key: _secret(value, key) for key, value in self.headers.items()}
        self.names = {key: _secret(value, key) for key, value in self.names.items()}
        self.url = str(filled(self.template.url, self.names))
        self.id = str(filled(self.template.id, self.names))
        self.client = Client(self.url)

    def _take(self, key: str, value: str) -> None:
        """One `name=value` behind the URL."""
        shown = value
        if key.startswith("header."):
            self.headers[key.removeprefix("header.")], shown = value, "…"
        elif key in self.template.options:
            self.names[key] = value.split("+") if isinstance(self.template.options[key], list) else value
        elif key == "base" and "{base}" in self.template.url:
            self.names["base"], shown = value.rstrip("/"), _without_password(value)
        else:
            known = ", ".join([*self.template.options, "header.NAME"])
            raise ConventionError(f"{self.template.name}: no parameter {key!r}; it has {known}")
        self.shown.append(f"{key}={shown}")

    def timeout(self, seconds: float) -> None:
        self.client.timeout = seconds

    def most_bytes(self, count: int) -> None:
        self.client.most = count

    def search(self, query: Query, k: int) -> Ranking:
        """The hits, page by page where the engine has pages."""
        most = k if self.template.paging is None else self.template.paging.most
        ranking: Ranking = []
        page = 1
        while len(ranking) < k:
            wanted = min(most, k - len(ranking)) if page == 1 else most
            hits = self._page(query, wanted, page, k)
            ranking += hits
            if len(hits) < wanted or k <= most:
                break
            page += 1
        if self.template.score is None:
            ranking = [(document, 1.0 / rank) for rank, (document, _) in enumerate(ranking, 1)]
        return ranking[:k]

    def _page(self, query: Query, wanted: int, page: int, k: int) -> Ranking:
        names = {**self.names, "query": query.text, "topic": query.id, "k": wanted, "page": page}
        template = self.template
        url = urlsplit(str(filled(template.url, {**names, "query": quote(query.text, safe="")})))
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        params = {
            key: ",".join(map(str, value)) if isinstance(value, list) else value
            for key, value in filled(template.params, names).items()
        }
        body = filled(template.body, names)
        answer = self.client.ask(template.method, path, params, filled(self.headers, names), body)
        self._refuse(answer)
        hits = at_path(answer, template.hits)
        if not isinstance(hits, list):
            raise DataError(f"{self.client.where}: no list at {template.hits!r} (hits) in the answer; {_has(answer)}")
        return self._plain(hits) or [self._hit(hit) for hit in hits]

    def _plain(self, hits: list[Any]) -> Ranking | None:
        """The usual case without a call a hit: id and score are a text and a number at their paths; None if they are not."""
        score = self.template.score
        try:
            names = _column(hits, self.id)
            numbers = [0.0] * len(hits) if score is None else _column(hits, score)
        except (KeyError, TypeError, IndexError):
            return None
        if not (set(map(type, names)) <= {str, int} and set(map(type, numbers)) <= {float, int}):
            return None
        return list(zip(self._local(map(str, names)), map(float, numbers), strict=True))

    def _local(self, names: Iterable[str]) -> Iterable[str]:
        """Ids without what an engine puts before them."""
        after, whole = self.template.id_after, re.compile(self.template.id_pattern or "")
        if after is not None:
            names = (name.rpartition(after)[2] for name in names)
        if self.template.id_pattern is not None:
            names = (match[1] if (match := whole.fullmatch(name)) else name for name in names)
        return names

    def _refuse(self, answer: Any) -> None:
        """An engine may say with status 200 that it has not answered, or not all of it."""
        for failure in self.template.failures:
            value = at_path(answer, failure.path)
            by_truth = failure.equals is MISSING
            bad = value is not MISSING and bool(value) if by_truth else value == failure.equals
            if bad:
                raise Busy(f"{self.client.where}: {failure.path} is {str(value)[:200]}")

    def _hit(self, hit: Any) -> tuple[str, float]:
        template = self.template
        document = at_path(hit, self.id)
        if document is MISSING or document is None:
            raise DataError(f"{self.client.where}: no {template.id!r} (id) in a hit; {_has(hit)}")
        [text] = self._local([id_text(document, self.client.where)])
        if template.score is None:
            return text, 0.0
        score = at_path(hit, template.score)
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            found = _has(hit) if score is MISSING else f"found {score!r:.60}"
            raise DataError(f"{self.client.where}: no number at {template.score!r} (score) in a hit; {found}")
        return text, float(score)

    def close(self) -> None:
        self.client.close()

    def described(self, spec: str) -> str:
        return ",".join(self.shown)


def _column(hits: list[Any], path: str) -> list[Any]:
    """What stands at a path in every hit, step by step for all of them together."""
    for part in filter(None, path.split(".")):
        hits = [hit[part] for hit in hits]
    return hits


def _secret(value: Any, key: str) -> Any:
    """`$NAME` from the environment."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise ConventionError(f"{key}: the environment has no {value[1:]}")
    return os.environ[value[1:]]


def _without_password(url: str) -> str:
    at = url.rfind("@")
    return f"{url[: url.index('//') + 2]}…{url[at:]}" if at > 0 and "//" in url[:at] else url


def _has(value: Any) -> str:
    if isinstance(value, dict):
        return f"it has {', '.join(map(str, list(value)[:10])) or 'nothing'}"
    return f"found {value!r:.60}"
