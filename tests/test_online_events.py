"""Events and the files they come in: what is sound, every format written and read back, real UBI, faults by row."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import ConventionError, DataError
from cranfield.experiments.event import KINDS, MOST_BYTES, UserEvent, instant, refuse_ahead
from cranfield.experiments.ingest import ingest, read_events
from cranfield.experiments.log import EventLog
from cranfield.formats.event_files.format import (
    EVENT_FORMATS,
    FIELDS,
    EventReading,
    arrow_schema,
    event_format,
    writable,
)
from hypotheses import examples
from shell import EXAMPLES, cranfield

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

NOW = datetime(2026, 3, 10, tzinfo=UTC)
CLICK = {
    "event_id": "e1",
    "time": "2026-03-01T10:00:00Z",
    "kind": "click",
    "unit": "u1",
    "search": "q1",
    "document": "d1",
}
FULL = {
    **CLICK,
    "session": "s1",
    "query": "leaf mould",
    "shown": ["d2", "d1"],
    "credit": "token",
    "position": 2,
    "value": 1.5,
    "experiment": "x",
    "variant": "a",
    "application": "shop",
    "attributes": {"agent": "Zoë's", "n": "5"},
}


def events_in(path, format=None, **how) -> list[UserEvent]:
    return [event for _, event in read_events(EventReading(str(path), **how), format, now=NOW)]


def written(tmp_path, events, name: str):
    path = tmp_path / f"events.{name}"
    path.write_bytes(b"".join(EVENT_FORMATS.named(name).write(event.row() for event in events)))
    return path


# an event


def test_the_fields_of_an_event_are_those_of_the_schema():
    assert [each.name for each in fields(UserEvent)] == list(FIELDS) == arrow_schema().names


def test_an_event_reads_back_from_its_line():
    event = UserEvent.of(FULL)
    assert UserEvent.of(json.loads(event.line())) == event
    assert event.day == "2026-03-01"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000000Z"),
        ("2026-03-01T00:30:00+0200", "2026-02-28T22:30:00.000000Z"),
        ("2026-03-01T10:00:00.1234567Z", "2026-03-01T10:00:00.123456Z"),
    ],
)
def test_a_time_is_utc_to_the_microsecond(typed, expected):
    assert instant(typed) == expected


def test_what_is_no_text_among_attributes_is_json_and_names_are_in_order():
    assert UserEvent.of({**CLICK, "attributes": {"b": 5, "a": [1, "x"], "c": True}}).attributes == {
        "a": '[1, "x"]',
        "b": "5",
        "c": "true",
    }
    assert UserEvent.of({**CLICK, "attributes": {}}).attributes is None


def test_ids_that_are_numbers_are_texts():
    event = UserEvent.of({**CLICK, "unit": 7, "document": 12, "shown": [12, "x"]})
    assert (event.unit, event.document, event.shown) == ("7", "12", ("12", "x"))


def test_other_kinds_are_kept():
    assert UserEvent.of({**CLICK, "kind": "add_to_cart", "search": None}).kind == "add_to_cart"


BAD = {
    "there is no search": {"search": ""},
    "a click needs event_id, time, kind, unit, search, document; there is no document": {"document": None},
    "there is no unit": {"unit": None},
    "there is no event_id": {"event_id": ""},
    "there is no experiment": {"kind": "exposure"},
    "there is no value": {"kind": "dwell"},
    "expected seconds of 0 or more": {"kind": "dwell", "value": -1},
    "expected a finite number as value, found nan": {"value": float("nan")},
    "expected a finite number as value, found inf": {"value": float("inf")},
    "expected a finite number as value, found True": {"value": True},
    "expected a finite number as value, found 1000": {"value": 10**400},
    "expected a position of 1 or more, found 0": {"position": 0},
    "expected a position of 1 or more, found 1.5": {"position": 1.5},
    "expected a time such as": {"time": "yesterday"},
    "2026-03-01T10:00:00Z, found '5.5'": {"time": 5.5},
    "expected text as unit, found ['u']": {"unit": ["u"]},
    "expected fields of event_id": {"colour": "red"},
    "expected a list of documents as shown": {"shown": "d1"},
    "expected ids of documents as shown": {"shown": ["d1", ""]},
    "expected a JSON object as attributes": {"attributes": [1]},
    "expected text, numbers or lists as attributes": {"attributes": {"a": float("nan")}},
    "expected Unicode text without NUL as unit": {"unit": "\ud800"},
    "expected Unicode text without NUL as query": {"query": "a\0b"},
    "expected Unicode text without NUL as attributes": {"attributes": {"a": "\udfff"}},
    "expected 500 characters at the most as unit, found 501": {"unit": "u" * 501},
}


@pytest.mark.parametrize(("said", "change"), BAD.items(), ids=list(BAD))
def test_an_event_that_is_wrong_is_refused_in_a_sentence(said, change):
    with pytest.raises(DataError) as caught:
        UserEvent.of({**CLICK, **change})
    assert said in str(caught.value)


def test_an_event_that_is_no_object_is_refused():
    with pytest.raises(DataError, match="expected an event as a JSON object, found list"):
        UserEvent.of([1])


def test_an_event_that_is_too_long_is_refused():
    with pytest.raises(DataError, match="expected an event of 64,000 bytes at the most"):
        UserEvent.of({**CLICK, "query": "é" * (MOST_BYTES // 2)}).line()


def test_a_clock_an_hour_ahead_passes_and_one_a_day_ahead_does_not():
    event = UserEvent.of(CLICK)
    refuse_ahead(event, datetime(2026, 3, 1, 9, tzinfo=UTC))
    with pytest.raises(DataError, match="event 'e1' is 1 day, 0:00:00 ahead of this machine's clock"):
        refuse_ahead(event, datetime(2026, 2, 28, 10, tzinfo=UTC))


# formats


def test_formats_are_these_and_say_what_they_are():
    assert list(EVENT_FORMATS) == ["open-bandit", "jsonl", "parquet", "sessions", "ubi"]
    assert writable() == ["jsonl", "parquet", "ubi"]
    assert all(each.__doc__ for each in EVENT_FORMATS.values())


SOME = [
    UserEvent.of(FULL | {"shown": None}),
    UserEvent.of({**CLICK, "event_id": "e2", "kind": "conversion", "search": None, "document": None, "value": 9}),
    UserEvent.of(
        {**CLICK, "event_id": "e3", "kind": "impression", "document": None, "shown": ["b", "a"], "session": "s"}
    ),
    UserEvent.of({**CLICK, "event_id": "e4", "kind": "exposure", "experiment": "x", "variant": "a", "search": None}),
    UserEvent.of(
        {**CLICK, "event_id": "e5", "kind": "add_to_cart", "attributes": {"object.price": "5", "message": "m"}}
    ),
]


@pytest.mark.parametrize("name", ["jsonl", "parquet", "ubi"])
def test_events_written_and_read_back_are_the_same_and_the_format_is_recognised(name, tmp_path):
    path = written(tmp_path, SOME, name)
    assert event_format(str(path)).name == name
    back = {event.event_id: event for event in events_in(path)}
    assert back == {event.event_id: event for event in SOME}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(st.lists(TEXT, min_size=1, max_size=5), TEXT, st.floats(allow_nan=False, allow_infinity=False))
@examples(20)
@pytest.mark.parametrize("name", ["jsonl", "parquet", "ubi"])
def test_odd_ids_and_numbers_survive_every_format(name, scratch, shown, unit, value):
    page = UserEvent.of({**CLICK, "kind": "impression", "document": None, "unit": unit, "shown": shown, "query": unit})
    click = UserEvent.of({**CLICK, "event_id": "e2", "unit": unit, "document": shown[0], "value": value})
    assert events_in(written(scratch, [page, click], name)) == [page, click]


def test_a_format_that_is_only_read_says_which_are_written():
    with pytest.raises(ConventionError, match="sessions is read, not written; there are jsonl, parquet, ubi"):
        list(EVENT_FORMATS.named("sessions").write([]))


def test_parquet_of_other_columns_or_none_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"event_id": ["a"], "colour": ["red"]}), path)
    with pytest.raises(DataError, match="found 'colour'"):
        events_in(path)
    path.write_bytes(b"PAR1 and no more\n")
    with pytest.raises(DataError, match="corrupt Parquet file"):
        events_in(path)


def test_a_file_of_something_else_is_not_recognised(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("301 0 FBIS3-1 1\n")
    with pytest.raises(DataError, match="no format of events is recognised in '301 0 FBIS3-1 1'; --from names one of"):
        events_in(path)
    path.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        events_in(path)
    with pytest.raises(DataError, match="a folder"):
        events_in(tmp_path)


# sessions

SESSIONS = "sess_id,query,rank,clicked_doc_id,clicked\n2,ipad,0.0,a,False\n2,ipad,1.0,b,True\n3,ipad,0.0,a,True\n"


def test_rows_of_a_session_are_an_impression_and_clicks_with_positions_from_1(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(SESSIONS)
    reading = EventReading(str(path), "2026-01-01")
    page, click, other, again = (event for _, event in read_events(reading, now=NOW))
    assert (page.kind, page.unit, page.session, page.query, page.shown) == ("impression", "2", "2", "ipad", ("a", "b"))
    assert (click.kind, click.search, click.document, click.position) == ("click", page.search, "b", 2)
    assert other.search not in (page.search, None)
    assert again.position == 1
    assert reading.notes == ["ranks are counted from 0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("1.0,b,True", "x,b,True"), ":3: expected a whole number as rank, found 'x'"),
        (("1.0,b,True", "1.0,b,perhaps"), ":3: expected true or false as clicked, found 'perhaps'"),
        (("1.0,b,True", "1.0,b"), ":3: expected 5 columns, found 4"),
        ((",clicked\n", ",hovered\n"), ":1: expected a column clicked or click"),
        (
            ("2,ipad,0.0,a,False\n2,ipad,1.0", "2,ipad,4.0,a,False\n2,ipad,5.0"),
            ":2: expected ranks from 0 or 1 on, found 4",
        ),
        (("1.0,b,True", "2.0,b,True"), ":3: expected a document at rank 1 of this search, found rank 2"),
        (("1.0,b,True", "0.0,b,True"), ":3: expected a document at rank 1 of this search, found rank 0"),
        (("3,ipad,0.0", "3,ipad,1.0"), ":4: expected a document at rank 0 of this search, found rank 1"),
    ],
)
def test_sessions_that_are_wrong_are_refused_by_row(change, said, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(SESSIONS.replace(*change))
    with pytest.raises(DataError) as caught:
        events_in(path, "sessions", time="2026-01-01")
    assert said in str(caught.value)


def test_sessions_without_times_ask_for_one(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(SESSIONS)
    with pytest.raises(DataError, match="s.csv:2: expected a column of times, found none; --time says when it was"):
        events_in(path)


def test_real_sessions_are_read(shared):
    reading = EventReading(str(shared / "retrotech-sessions" / "dryer_sessions.gz"), "2024-01-01")
    events = [event for _, event in read_events(reading, now=NOW)]
    assert Counter(event.kind for event in events)["impression"] == 5000
    assert all(len(event.shown) == 20 for event in events if event.kind == "impression")
    assert len({event.event_id for event in events}) == len(events)


# UBI


@pytest.fixture(scope="module")
def ubi(shared):
    reading = EventReading(str(shared / "ubi-esci" / "ubi_queries_events.ndjson"))
    return reading, [event for _, event in read_events(reading, now=NOW)]


def test_the_real_ubi_file_has_284_searches_and_3448_events(ubi):
    reading, events = ubi
    pages = [event for event in events if event.kind == "impression" and event.document is None]
    assert len(pages) == len({event.search for event in pages}) == 284
    assert len(events) == 284 + 3448
    assert "473 query rows are 284 searches" in reading.notes
    assert "3,448 events, 946 of them without a query row" in reading.notes


def test_ids_with_two_query_texts_are_reported_without_the_texts(ubi):
    doubtful = [note for note in ubi[0].notes if "another query text" in note]
    assert len(doubtful) == 7
    assert any(":2522: query_id 'f3510b4f-6377-4c4c-b9f9-0f789159ee8b'" in note for note in doubtful)
    assert not any("printer toner" in note for note in ubi[0].notes)


def test_the_row_with_hits_wins(ubi):
    pages = {event.search: event for event in ubi[1] if event.kind == "impression" and event.document is None}
    wall = pages["65741c0d-61cd-46bf-8ef2-0a74c9f51332"]
    assert (wall.query, len(wall.shown), wall.time) == ("wall mount", 20, "2025-01-24T07:33:56.531000Z")
    assert sum(event.shown is not None for event in pages.values()) == 78


def test_positions_count_from_1_whatever_the_application_does(ubi):
    reading, events = ubi
    assert "positions of 'esci_ubi_sample' are counted from 0" in reading.notes
    for application, kind in (("esci_ubi_sample", "impression"), ("Chorus", "click"), ("ubi-demo", "click")):
        found = [e.position for e in events if e.application == application and e.kind == kind and e.document]
        assert min(found) == 1
    sample = Counter(
        e.position for e in events if e.application == "esci_ubi_sample" and e.document and e.kind == "impression"
    )
    assert sample == dict.fromkeys(range(1, 6), 200)


def test_three_formats_of_time_are_read(ubi):
    by_id = {event.event_id: event for event in ubi[1]}
    assert by_id["adbef2c4-1223-4580-92d1-61b3718874d0"].time == "2024-12-10T00:01:29.378000Z"
    assert by_id["2"].time == "2024-06-04T19:02:42.025000Z"  # 1717527762025 ms
    assert {event.time[:4] for event in ubi[1]} == {"2024", "2025"}


def test_event_ids_are_the_bulk_ids_else_a_hash_of_file_and_line(ubi, shared, tmp_path):
    lines = (shared / "ubi-esci" / "ubi_queries_events.ndjson").read_text().splitlines()
    ids = {json.loads(line)["index"]["_id"] for line in lines[::2]}
    assert {event.event_id for event in ubi[1]} <= ids
    bare = tmp_path / "bare.ndjson"
    bare.write_text("\n".join(lines[1::2][:50]) + "\n")
    packed = tmp_path / "bare.ndjson.gz"
    packed.write_bytes(gzip.compress(bare.read_bytes()))
    one, other = events_in(bare), events_in(packed)
    assert one == other
    assert len({event.event_id for event in one}) == 50


def test_the_real_ubi_file_goes_into_a_log_once_and_out_as_ubi(shared, ubi, tmp_path):
    path = str(shared / "ubi-esci" / "ubi_queries_events.ndjson")
    with EventLog(tmp_path / "log", create=True) as log:
        first, again = (ingest(log, [path], now=NOW) for _ in range(2))
        assert (first.new, first.repeats, again.new, again.repeats) == (3732, 0, 0, 3732)
        assert log.counts()["impression"] == 284 + 1999
        out = tmp_path / "out.ndjson"
        out.write_bytes(b"".join(EVENT_FORMATS.named("ubi").write(log.events())))
        back = {event.event_id: event for event in events_in(out)}
    assert back == {event.event_id: event for event in ubi[1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"index": {"_index": "ubi_events", "_id": "1"}}\n', ":1: expected a row below the bulk action"),
        ('{"index": {"_index": "ubi_events"}}\n' * 2, ":2: expected the row of the bulk action above"),
        ('{"action_name": "click", "client_id": "u", "timestamp": "noon"}\n', ":1: expected a timestamp such as"),
        (
            '{"action_name": "click", "client_id": "u", "timestamp": 5, "event_attributes": "x"}\n',
            ":1: expected a JSON object",
        ),
        ('{"user_query": "a", "query_id": null, "timestamp": 5}\n', ":1: expected a query_id as text, found None"),
        ('{"action_name": "click", "client_id": "u", "timestamp": 5}\n', ":1: a click needs"),
        ('{"action_name": ["x"], "client_id": "u", "timestamp": 5}\n', ":1: expected text as kind"),
        ('{"action_name": "x", "timestamp": 5}\n', ":1: an event needs event_id, time, kind, unit; there is no unit"),
    ],
)
def test_ubi_that_is_wrong_is_refused_by_row(text, said, tmp_path):
    path = tmp_path / "bad.ndjson"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        events_in(path, "ubi")
    assert said in str(caught.value)


# faults, by the command


def line(**change) -> str:
    return json.dumps({**CLICK, **change}) + "\n"


FAULTS = {
    "half a line": (line() + line(event_id="e2")[:40], "bad.jsonl:2: expected an event as a JSON object, found"),
    "a click without search": (line() + line(event_id="e2", search=None), "bad.jsonl:2: a click needs event_id, time"),
    "a clock a day ahead": (
        line(time=(datetime.now(UTC) + timedelta(days=1)).isoformat()),
        "bad.jsonl:1: event 'e1' is ",
    ),
    "an id reused with other content": (
        line() + "\n" + line(event_id="e2") + line(document="d9"),
        "bad.jsonl:4: event_id 'e1' belongs to another event of 2026-03-01 already",
    ),
    "oversized": (line(query="x" * 70_000), "bad.jsonl:1: expected an event of 64,000 bytes at the most, found 70,"),
    "NaN": (line(value=float("nan")), "bad.jsonl:1: expected a finite number as value, found nan"),
    "wrong encoding": (line(query="Zoë").encode().decode("unicode_escape").encode("latin-1"), "found byte 0xeb"),
    "a list": ("[1]\n", "no format of events is recognised"),
}


@pytest.mark.parametrize(("content", "said"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_a_sentence_that_names_the_row_and_exit_3_and_nothing_is_added(content, said, tmp_path):
    (tmp_path / "bad.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    answer = cranfield("online", "ingest", "log", "bad.jsonl", folder=tmp_path)
    assert answer.code == 3, answer.both
    assert said in answer.err
    assert not (tmp_path / "log").exists()


def test_a_truncated_gzip_is_a_sentence_and_exit_3(tmp_path):
    whole = gzip.compress(b"".join(line(event_id=f"e{i}").encode() for i in range(2000)))
    (tmp_path / "bad.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    answer = cranfield("online", "ingest", "log", "bad.jsonl.gz", folder=tmp_path)
    assert answer.code == 3
    assert "bad.jsonl.gz: gzip stream ends early" in answer.err
    assert not (tmp_path / "log").exists()


def test_an_id_that_the_log_has_for_another_event_is_refused_by_row(tmp_path):
    (tmp_path / "one.jsonl").write_text(line())
    (tmp_path / "two.jsonl").write_text(line(event_id="e0") + line(document="d9"))
    assert cranfield("online", "ingest", "log", "one.jsonl", folder=tmp_path).code == 0
    answer = cranfield("online", "ingest", "log", "two.jsonl", folder=tmp_path)
    assert answer.code == 3
    assert "two.jsonl:2: event_id 'e1' belongs to another event of 2026-03-01 already" in answer.err
    with EventLog(tmp_path / "log") as log:
        assert log.counts() == {"click": 1}


def test_lenient_passes_over_bad_rows_and_names_them(tmp_path):
    (tmp_path / "some.jsonl").write_text(line() + line(event_id="e2", search=None) + line(event_id="e3"))
    answer = cranfield("online", "ingest", "log", "some.jsonl", "--lenient", folder=tmp_path)
    assert answer.code == 0
    assert "2 events added of 2 read, 1 row passed over" in answer.out
    assert "some.jsonl:2: a click needs" in answer.err


def test_events_go_in_out_and_in_again_by_command(tmp_path):
    assert cranfield("online", "ingest", tmp_path / "log", "online/events.jsonl").code == 0
    for name in ("jsonl", "parquet"):
        out = tmp_path / f"out.{name}"
        assert cranfield("online", "export", tmp_path / "log", "-o", out).code == 0
        answer = cranfield("online", "ingest", tmp_path / f"log-{name}", out, "--format", "json")
        assert json.loads(answer.out)["new"] == 7
        assert json.loads(answer.out)["format"] == [name]
        with EventLog(tmp_path / "log") as one, EventLog(tmp_path / f"log-{name}") as other:
            assert list(one.events()) == list(other.events())
    said = cranfield("online", "export", tmp_path / "log", "--to", "ubi").out
    assert '"_index": "ubi_queries"' in said


def test_units_are_pseudonyms_with_a_key_and_erased_by_it(tmp_path):
    key = tmp_path / "key"
    key.write_text("sixteen bytes or more\n")
    key.chmod(0o600)
    assert cranfield("online", "ingest", tmp_path / "log", "online/events.jsonl", "--pseudonym-key", key).code == 0
    with EventLog(tmp_path / "log") as log:
        units = {row["unit"] for row in log.events()}
    assert all(len(unit) == 64 for unit in units)
    answer = cranfield("online", "erase", tmp_path / "log", "u1", "--pseudonym-key", key)
    assert answer.out.startswith("4 events of 1 unit erased: 4 in Parquet")
    key.write_text("short")
    assert cranfield("online", "erase", tmp_path / "log", "u1", "--pseudonym-key", key).code == 3
    assert cranfield("online", "erase", tmp_path / "log", "u1", "--pseudonym-key", tmp_path / "none").code == 3


def test_every_kind_that_the_schema_names_is_in_the_page_on_logs():
    page = (EXAMPLES.parent / "docs" / "event-logs.md").read_text(encoding="utf-8")
    assert [name for name in [*FIELDS, *KINDS, *EVENT_FORMATS] if f"`{name}`" not in page] == []
