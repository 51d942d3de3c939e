"""Stored data against its declared shape: every reader of TOML and JSON, on files that were changed at random."""

from __future__ import annotations

import copy
import json
import random
import tomllib
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cranfield.base.errors import BadLineError, CranfieldError, DataError
from cranfield.base.package_files import folder
from cranfield.base.schemas import DEEPEST, Count, Id, Share, Text, TomlFile, check, parse_json, read_toml
from cranfield.experiments.plan import read_plan
from cranfield.formats.pool_files import read_pool
from cranfield.judging.llm import questions as prompts
from cranfield.judging.log_location import open_log
from cranfield.judging.round_plan import find_round
from cranfield.retrieval import http_template as templates
from cranfield.studies.plan import read_study
from shell import EXAMPLES, cranfield


class Inner(NamedTuple):
    """A pair."""

    name: Text
    share: Share = 0.5


@dataclass
class Outer:
    """A table with all that shapes may hold."""

    id: Id
    size: Count = 1
    on: bool = False
    inner: tuple[Inner, ...] = ()
    names: dict[str, float] | None = None
    more: Any = None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "expected id as text, found none"),
        ({"id": None}, "expected id as text, found null"),
        ({"id": "a\0b"}, r"expected id as text, found 'a\x00b'"),
        ({"id": True}, "expected id as text, found true"),
        (
            {"id": "a", "szie": 3},
            "expected keys of id, size, on, inner, names, more, found 'szie'; did you mean 'size'?",
        ),
        ({"id": "a", "size": True}, "expected size as a whole number of 1 or more, found true"),
        ({"id": "a", "size": 0}, "expected size as a whole number of 1 or more, found 0"),
        ({"id": "a", "size": 10**5000}, "found a number of thousands of digits"),
        ({"id": "a", "on": 1}, "expected on as true or false, found 1"),
        ({"id": "a", "inner": {}}, "expected inner as a list, found {}"),
        ({"id": "a", "inner": [["x"], ["y", 2]]}, "expected inner#2.share as a number from 0 to 1, found 2"),
        ({"id": "a", "inner": [{"nam": "x"}]}, "in [inner#1], found 'nam'; did you mean 'name'?"),
        ({"id": "a", "names": {"b": float("nan")}}, "expected names.b as a number, found nan"),
        ({"id": "a", "more": [[[float("inf")]]]}, "expected more#1 as a finite number, found inf"),
        ({"id": "a", "more": [[date(2026, 3, 1)]]}, "as what JSON can hold"),
    ],
)
def test_a_table_that_does_not_have_its_shape_is_refused_with_the_key(table, says):
    with pytest.raises(DataError) as caught:
        check(table, Outer, "file")
    assert str(caught.value).startswith("file: ")
    assert says in str(caught.value)


def test_a_table_of_its_shape_is_read_as_declared():
    table = {"id": 7, "inner": [["x"], {"name": "y", "share": 1}], "names": {"b": 2}, "more": {"c": [1, "d", None]}}
    assert check(table, Outer, "file") == Outer("7", 1, False, (Inner("x"), Inner("y", 1.0)), {"b": 2.0}, table["more"])


def test_depth_is_limited_where_any_value_may_stand():
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = [deep]
    with pytest.raises(DataError, match=f"nested {DEEPEST} deep at the most"):
        check({"id": "a", "more": deep}, Outer, "file")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[" * 100_000, "1" * 5000, "{", ""])
def test_json_that_says_a_thing_twice_or_cannot_be_parsed_is_refused(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_an_error_names_the_line_of_its_key_in_tables_of_tables(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text('id = """\nsize = 2\n"""\nsize = 3\n[[inner]]\nname = "x"\n[[inner]]\nname = "y"\n"share" = 2\n')
    with pytest.raises(BadLineError, match="t.toml:9: expected inner#2.share"):
        read_toml(path, Outer)
    path.write_text("[names]\na = 1\n")
    with pytest.raises(DataError, match="t.toml: expected id as text, found none"):
        TomlFile(path, Outer)


# every reader, on valid files changed at random

PLAN = (EXAMPLES / "online" / "plans" / "ranker.toml").read_text() + (
    '[winsorise]\nabandonment = 0.9\n[[metric]]\nname = "own"\nevent = "scroll"\nfield = "attributes.px"\n'
    'each = "max"\nwhere = {field = "application", equals = ["web"]}\n'
)
READERS = {
    "plan": (PLAN, read_plan),
    "study": ((EXAMPLES / "online" / "study.toml").read_text(), read_study),
    "prompt": (Path(folder(prompts.FOLDER), "graded.toml").read_text(), prompts.read_prompt),
    "template": (Path(folder(templates.FOLDER), "elasticsearch.toml").read_text(), templates.read_template),
}
ODD = [None, True, 0, -1, 1.5, float("nan"), 10**30, 10**400, "", "a\0b", "x", [], [1], {}, {"x": 1}, [["a"]], "a(?!b)"]


def changed(value: Any, rng: random.Random, odd: list[Any]) -> Any:
    """A value with one thing in it swapped, dropped, added or buried."""
    value = copy.deepcopy(value)
    spots = [
        (holder, key)
        for holder in tables_in(value)
        for key in (holder if isinstance(holder, dict) else range(len(holder)))
    ]
    holder, key = rng.choice(spots)
    what = rng.randrange(4)
    if what == 0:
        holder[key] = rng.choice(odd)
    elif what == 1:
        del holder[key]
    elif what == 2 and isinstance(holder, dict):
        holder[f"{key}s"] = holder[key]
    else:
        for _ in range(rng.choice((1, 40))):
            holder[key] = [holder[key]]
    return value


def tables_in(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, (dict, list)) and value else []
    return [*own, *(table for each in inside for table in tables_in(each))]


def toml(value: Any) -> str:
    """A value as TOML writes it inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return "nan" if value != value else json.dumps(value)


@pytest.mark.parametrize("name", READERS)
def test_no_change_of_a_valid_file_ends_in_a_traceback(name, tmp_path):
    text, read = READERS[name]
    path, rng, valid = tmp_path / "file.toml", random.Random(25), tomllib.loads(text)
    refused: list[str] = []
    odd = [each for each in ODD if each is not None]
    for _ in range(150):
        table = changed(valid, rng, odd)
        path.write_text("".join(f"{json.dumps(key)} = {toml(each)}\n" for key, each in table.items()))
        try:
            read(str(path))
        except CranfieldError as error:
            refused.append(str(error))
    assert len(refused) > 60
    assert [error for error in refused if not error.startswith(f"{path}:")] == []


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 5000, "a = 0x" + "f" * 9000, "\0", "a = 2026-99-99"]
)
def test_a_toml_file_that_cannot_be_parsed_is_refused_by_every_reader(name, text, tmp_path):
    (tmp_path / "file.toml").write_text(text)
    with pytest.raises(DataError, match="file.toml"):
        READERS[name][1](str(tmp_path / "file.toml"))


def test_no_change_of_a_pool_ends_in_a_traceback(tmp_path):
    rows = [json.loads(line) for line in (EXAMPLES / "pool.jsonl").read_text().splitlines()[:5]]
    path, rng = tmp_path / "pool.jsonl", random.Random(25)
    refused: list[str] = []
    for _ in range(150):
        path.write_text("\n".join(map(json.dumps, changed(rows, rng, ODD))))
        try:
            read_pool(path)
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 60
    assert [error for error in refused if not error.startswith(f"{path}:")] == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"topic": "q", "document": null}', "expected document as text, found null"),
        ('{"topic": "q", "document": "d", "probability": 0}', r"expected probability as a probability in \(0, 1\]"),
        ('{"topic": "q", "document": "d", "rnak": 3}', "did you mean 'rank'"),
        ('{"topic": "q", "document": "d", "topic": "p"}', "the key 'topic' occurs twice"),
    ],
)
def test_a_pool_never_reads_null_as_an_id(line, says, tmp_path):
    (tmp_path / "pool.jsonl").write_text(f'{{"topic": "q", "document": "a"}}\n{line}\n')
    with pytest.raises(BadLineError, match=f"pool.jsonl:2: .*{says}"):
        read_pool(tmp_path / "pool.jsonl")


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> list[dict[str, Any]]:
    """The records of a log with a round of a sample, a lease and a version."""
    folder = tmp_path_factory.mktemp("log")
    log, pool = folder / "log.jsonl", EXAMPLES / "pool.jsonl"
    assert cranfield("judge", "round", log, "--pool", pool, "--sample", 9, "--overlap", 2).code == 0
    assert cranfield("judge", "next", log, "--assessor", "ann").code == 0
    assert cranfield("judge", "add", log, EXAMPLES / "qrels.txt", "--assessor", "ann").code == 0
    assert cranfield("judge", "freeze", log, "v1").code == 0
    assert cranfield("judge", "change", log, "1", "--overlap", 1, "--changed-by", "lea").code == 0
    assert cranfield("judge", "set", log, "1", "paused").code == 0
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return [row for row in rows if "record" in row]


def test_no_change_of_a_log_s_records_ends_in_a_traceback(records, tmp_path):
    path, rng = tmp_path / "log.jsonl", random.Random(25)
    refused: list[str] = []
    assert {row["record"] for row in records} == {"round", "lease", "version", "change", "state"}
    for _ in range(60):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in changed(records, rng, ODD)))
        log = open_log(path, new=False)
        try:
            with log.reading() as transaction:
                find_round(transaction.connection, "1")
        except DataError as error:
            refused.append(str(error))
        finally:
            log.close()
    assert len(refused) > 20


@pytest.mark.parametrize("key", ["terms", "pool", "drift", "budget", "bases"])
def test_null_in_a_series_is_a_key_that_is_not_there(key, tmp_path):
    rows = [json.loads(line) for line in (EXAMPLES / "asked.jsonl").read_text().splitlines()]
    for row in rows:
        if row.get("record") == "series":
            row["definition"][key] = None
            del row["sha256"]
    path = tmp_path / "asked.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert cranfield("judge", "models", path).code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"frame": {"q1": "doc-003"}}, "expected frame.q1 as a list, found 'doc-003'"),
        ({"frame": {"q1": ["doc-003", None]}}, "expected frame.q1#2 as text, found null"),
        ({"gold_shar": 0.1}, "found 'gold_shar'; did you mean 'gold_share'?"),
        ({"overlap": "2"}, "expected overlap as a whole number from 0 to 2147483647, found '2'"),
    ],
)
def test_a_round_s_record_is_checked_when_it_is_read_back(records, change, says, tmp_path):
    path = tmp_path / "log.jsonl"
    unsealed = {name: value for name, value in (records[0] | change).items() if name != "sha256"}
    path.write_text(json.dumps(unsealed) + "\n")
    answer = cranfield("judge", "status", path)
    assert answer.code == 3
    assert f"{path}:1: " in answer.err
    assert says in answer.err
