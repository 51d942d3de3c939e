"""An HTTP engine under test: a template filled in for each query, and its hits read.

The engine must be indexed already, with its own tools.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from cranfield.base.errors import ConventionError, DataError
from cranfield.base.parameters import read_pairs
from cranfield.retrieval.http_template import MISSING, at_path, filled, parameter_text, read_template, templates
from cranfield.retrieval.systems_under_test import Busy, Query, Ranking, System, id_text

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
        from cranfield.retrieval.http_client import Client  # imported late: it loads ssl

        super().__init__()
        kind, _, behind = rest.partition(":")
        if kind in templates():
            self.template = templates()[kind]
            base, _, options = behind.partition(",")
            self.labels = [f"{kind}:{_without_password(base)}"]
        else:
            path, _, options = rest.partition(",")
            if not path:
                raise ConventionError("http: expected a template, as in http:engine.toml")
            self.template, base = read_template(path), ""
            self.labels = [f"http:{os.path.basename(path)}"]
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
        """Read one `name=value` after the URL."""
        label = value
        if key.startswith("header."):
            self.headers[key.removeprefix("header.")], label = value, "…"
        elif key in self.template.options:
            self.names[key] = value.split("+") if isinstance(self.template.options[key], list) else value
        elif key == "base" and "{base}" in self.template.url:
            self.names["base"], label = value.rstrip("/"), _without_password(value)
        else:
            names = ", ".join([*self.template.options, "header.NAME"])
            raise ConventionError(f"{self.template.name}: no parameter {key!r}; it has {names}")
        self.labels.append(f"{key}={label}")

    def timeout(self, seconds: float) -> None:
        self.client.timeout = seconds

    def most_bytes(self, count: int) -> None:
        self.client.most = count

    def search(self, query: Query, k: int) -> Ranking:
        """The hits, page by page if the engine has pages."""
        most = k if self.template.paging is None else self.template.paging.most
        ranking: Ranking = []
        page = 1
        while len(ranking) < k:
            size = min(most, k - len(ranking)) if page == 1 else most
            hits = self._page(query, size, page, k)
            ranking += hits
            if len(hits) < size or k <= most:
                break
            page += 1
        if self.template.score is None:
            ranking = [(document, 1.0 / rank) for rank, (document, _) in enumerate(ranking, 1)]
        return ranking[:k]

    def _page(self, query: Query, size: int, page: int, k: int) -> Ranking:
        names = {**self.names, "query": query.text, "topic": query.id, "k": size, "page": page}
        template = self.template
        url = urlsplit(str(filled(template.url, {**names, "query": quote(query.text, safe="")})))
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        params = {key: parameter_text(value) for key, value in filled(template.params, names).items()}
        body = filled(template.body, names)
        answer = self.client.ask(template.method, path, params, filled(self.headers, names), body)
        self._refuse(answer)
        hits = at_path(answer, template.hits)
        if not isinstance(hits, list):
            raise DataError(f"{self.client.where}: no list at {template.hits!r} (hits) in the answer; {_has(answer)}")
        return self._plain(hits) or [self._hit(hit) for hit in hits]

    def _plain(self, hits: list[Any]) -> Ranking | None:
        """The hits, read without a call per hit; None if an id or a score is missing or of an unusual type."""
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
        """Ids without the prefix that an engine adds."""
        after, whole = self.template.id_after, re.compile(self.template.id_pattern or "")
        if after is not None:
            names = (name.rpartition(after)[2] for name in names)
        if self.template.id_pattern is not None:
            names = (match[1] if (match := whole.fullmatch(name)) else name for name in names)
        return names

    def _refuse(self, answer: Any) -> None:
        """Refuse an answer with status 200 that says it failed or is incomplete."""
        for failure in self.template.failures:
            value = at_path(answer, failure.path)
            if value is not MISSING and (value if failure.equals is MISSING else value == failure.equals):
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
            problem = _has(hit) if score is MISSING else f"found {score!r:.60}"
            raise DataError(f"{self.client.where}: no number at {template.score!r} (score) in a hit; {problem}")
        return text, float(score)

    def close(self) -> None:
        self.client.close()

    def described(self, spec: str) -> str:
        return ",".join(self.labels)


def _column(hits: list[Any], path: str) -> list[Any]:
    """The values at a path in all hits."""
    for part in filter(None, path.split(".")):
        hits = [hit[part] for hit in hits]
    return hits


def _secret(value: Any, key: str) -> Any:
    """The value of `$NAME` in the environment."""
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
