"""A server with OpenAI's interface /v1/chat/completions: how it is asked, and how its replies are classified.

The HTTP client is the one for systems under test, with a deadline and a size limit. It follows no redirect and never
repeats a request. The key is sent only over https or to this machine, and appears in no return value.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cranfield.base.errors import DataError, TooLargeError
from cranfield.base.parameters import real, shortened
from cranfield.base.schemas import parse_json
from cranfield.judging.llm.question_store import CUT_OFF
from cranfield.retrieval.systems_under_test import Busy, Refused, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cranfield.judging.llm.questions import Prompt

CHAT = "/chat/completions"
HIDDEN = "…"  # in the place of the key
TELLING = 8  # characters: so much of the key at the end of a text is taken out as well
KEY = re.compile(r"[\x21-\x7e]+")
FENCE = "```"
TOO_LONG = re.compile(r"context[ _-]?(length|size|window)|too (long|many tokens)|input.{0,20}exceed", re.IGNORECASE)
ODD_REQUEST = (400, 422, 501)  # what a server says to an option that it does not know
HOPELESS = (401, 402, 403, 404, 405, 501)  # the next question would fare no better
EXCERPT = 4000  # characters of an answer that is no completion
LISTED = 5  # models in a message
MOST_COUNTED = 2**53 - 1  # tokens


@dataclass(frozen=True)
class RequestOptions:
    """Optional parts of a request; a server that refuses one is asked again without it."""

    schema: bool = True
    limit: str = "max_tokens"
    temperature: bool = True

    def __str__(self) -> str:
        """The options as text for the log."""
        return " ".join([self.limit, *["temperature"] * self.temperature, *["schema"] * self.schema])

    def without(self, message: str) -> RequestOptions | None:
        """The options without the one that a refusal names, or without the schema; None if nothing is left to drop."""
        text = message.lower()
        if "max_completion_tokens" in text and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in text and self.temperature:
            return replace(self, temperature=False)
        return replace(self, schema=False) if self.schema else None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A completion, or a problem with the server or the connection."""

    problem: str = ""
    detail: str = ""
    status: int = 0
    again: bool = False  # it may be over in a moment
    after: float | None = None
    free: bool = False  # the server did not take it
    raw: str = ""
    returned: str = ""
    fingerprint: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish: str = ""
    refused: bool = False
    seconds: float = 0.0


class Endpoint:
    """One model at one server; `ask` may be called by several threads."""

    def __init__(self, url: str, model: str, key: str | None = None, timeout: float = 120.0, most: int = 10**6) -> None:
        from cranfield.retrieval.http_client import Client  # which loads ssl

        plain = re.split(r"[?#]", url, maxsplit=1)[0]
        if "@" in plain.partition("//")[2].partition("/")[0]:
            raise DataError("the endpoint holds a user or a password; give the key in the environment (--key-env)")
        if plain != url:
            raise DataError(f"{plain}: expected an endpoint such as http://localhost:8080/v1, without ? and #")
        self.client = Client(url, timeout, most, once=True, hide=self._masked, parse=parse_json)
        self.path = urlsplit(url).path.rstrip("/").removesuffix(CHAT) or "/v1"
        self.where = f"{self.client.where}{self.path}"
        self.model = model
        self._key = key
        if key is not None and not KEY.fullmatch(key):
            raise DataError("the key holds what no header can: expected printable ASCII without spaces")
        if key is not None and not self.client.secure and not is_local(self.client.host):
            raise DataError(f"{self.where}: the key is sent over https or to this machine alone; name an https:// URL")
        self._forms = None if key is None else _forms(key)

    def _masked(self, text: str) -> str:
        """The text with the API key masked, also where the end of the text cuts the key off."""
        if self._forms is None or self._key is None:
            return text
        text, key = self._forms.sub(HIDDEN, text), self._key.lower()
        end = text[-len(key) :].lower()
        tail = next((size for size in range(len(key) - 1, TELLING - 1, -1) if end.endswith(key[:size])), 0)
        return f"{text[:-tail]}{HIDDEN}" if tail else text

    def _exchange(self, method: str, path: str, body: Any) -> Any:
        headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        return self.client.ask(method, f"{self.path}{path}", {}, headers, body)

    def check(self) -> None:
        """Raise DataError if the server does not answer, refuses the key, or lacks the model."""
        nothing = "Nothing was asked or written"
        try:
            answer = self._exchange("GET", "/models", None)
        except Refused as error:
            raise DataError(f"{self._masked(str(error)).replace('engine', 'server')} {nothing}") from None
        except Busy as busy:
            if busy.kind.startswith("status"):  # it may be over when the first question is asked
                return
            problem = f"{self._masked(str(busy))}; is this an OpenAI-compatible endpoint"
            raise DataError(f"{problem}, such as http://localhost:8080/v1? {nothing}") from None
        except Rejected as rejected:
            if rejected.status in (404, 405, 501):  # not every server lists its models
                return
            raise DataError(f"{self._masked(str(rejected))}. {nothing}") from None
        except TooLargeError:
            return
        models = [self._masked(name) for name in _listed(answer)]
        if models and not any(self.model in (name, name.partition(":")[0]) for name in models):
            some = ", ".join(shortened(name) for name in models[:LISTED]) + (", …" if len(models) > LISTED else "")
            raise DataError(f"{self.where}: there is no model {shortened(self.model)!r}; there are {some}. {nothing}")

    def ask(self, messages: Sequence[dict[str, str]], prompt: Prompt, manner: RequestOptions, max_tokens: int) -> Reply:
        """The server's reply to one question, asked once."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages), manner.limit: max_tokens}
        if manner.temperature:
            body["temperature"] = 0
        if manner.schema:
            body["response_format"] = prompt.schema()
        start = time.perf_counter()
        fields = self._reply_fields(body)
        for name, value in fields.items():
            if isinstance(value, str):  # without the key, and without characters that a log cannot store
                fields[name] = self._masked(value).encode("utf-8", "replace").decode()
        return Reply(**fields, seconds=time.perf_counter() - start)

    def _reply_fields(self, body: dict[str, Any]) -> dict[str, Any]:
        """The fields of a reply; an error becomes a reply with a problem, so that other questions go on."""
        try:
            return _completion(self._exchange("POST", CHAT, body), self._masked)
        except Busy as busy:
            free = isinstance(busy, Refused) or busy.kind.startswith("status 4")
            fields = {"problem": busy.kind, "detail": str(busy)}
            return fields | {"again": True, "after": busy.after, "free": free}
        except Rejected as rejected:
            fields = {"problem": f"status {rejected.status}", "detail": str(rejected), "raw": rejected.excerpt}
            return fields | {"status": rejected.status, "free": rejected.status < 500}
        except TooLargeError as error:
            return {"problem": "too large", "detail": str(error)}
        except Exception as error:
            return {"problem": "unexpected", "detail": f"{type(error).__name__}: {error}"}

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def is_local(host: str) -> bool:
    """Whether a host is this machine, by its name or address.

    >>> is_local("localhost"), is_local("127.0.0.2"), is_local("::1"), is_local("example.org")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listed(answer: Any) -> list[str]:
    """The models that a server lists."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []


def _forms(key: str) -> re.Pattern[str]:
    """A regular expression for the API key in upper or lower case, plain or escaped as in JSON or a URL."""
    spelt = (rf"(?:\\{{0,4}}(?:{re.escape(each)}|u{ord(each):04x})|%{ord(each):02x})" for each in key)
    return re.compile("".join(spelt), re.IGNORECASE)


def _completion(answer: Any, masked: Callable[[str], str]) -> dict[str, Any]:
    """The parts of a completion."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message.get("content")
    except (LookupError, TypeError, AttributeError):
        raw = masked(json.dumps(answer))[:EXCERPT]
        return {"problem": "no completion", "detail": "no choices with a message", "raw": raw}
    if isinstance(content, list):  # of parts
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    refusal = message.get("refusal")
    finish = str(choice.get("finish_reason") or "")
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return {
        "raw": str(content or refusal or ""),
        "returned": str(answer.get("model") or ""),
        "fingerprint": str(answer.get("system_fingerprint") or ""),
        "tokens_in": _count(usage.get("prompt_tokens")),
        "tokens_out": _count(usage.get("completion_tokens")),
        "finish": finish,
        "refused": bool(refusal) or finish == "content_filter",
    }


def _count(value: Any) -> int | None:
    if type(value) is float and value.is_integer():
        value = int(value)
    return min(value, MOST_COUNTED) if type(value) is int and value >= 0 else None


def _unfenced(text: str) -> str:
    """The text between code fences, or the text itself."""
    if not (text.startswith(FENCE) and text.endswith(FENCE)):
        return text
    return text[len(FENCE) : -len(FENCE)].removeprefix("json").strip()


def read_answer(prompt: Prompt, reply: Reply) -> tuple[float | None, str]:
    """The grade that a completion names, or why there is none: the text must be the answer alone.

    >>> from cranfield.judging.llm.questions import read_prompt
    >>> graded = read_prompt("graded")
    >>> [read_answer(graded, Reply(raw=raw)) for raw in ('{"grade": 2}', "2", "I'd say 2", '{"grade": 7}')]
    [(2.0, ''), (2.0, ''), (None, 'unparsed'), (None, 'off the scale')]
    """
    if reply.refused:
        return None, "refusal"
    text = reply.raw.strip()
    try:
        value = parse_json(_unfenced(text))
    except ValueError:  # or a key that occurs twice: nobody knows which of the two grades is meant
        return None, CUT_OFF if reply.finish == "length" else "unparsed" if text else "empty"
    if isinstance(value, dict):
        value = value.get(prompt.key)
    if isinstance(value, str):
        value = value.strip().lower()
        if prompt.kind != "pairwise":
            try:
                value = real(value)
            except ValueError:
                return None, "unparsed"
    if value is None or isinstance(value, (bool, dict, list)):
        return None, "unparsed"
    grade = prompt.answers.get(value)
    return grade, "" if grade is not None else "off the scale"
