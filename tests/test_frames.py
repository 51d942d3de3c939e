from __future__ import annotations

import collections
import ctypes
import decimal
import fractions

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError, DuplicateError, FormatError
from cranfield.base.kernels import Strings, encode
from cranfield.evaluation.evaluate import evaluate
from cranfield.formats import as_qrels, as_runs, read_qrels, read_run
from cranfield.formats.frames import (
    ArrowArray,
    ArrowArrayStream,
    ArrowSchema,
    changes,
    distinct,
    of_whole_numbers,
)
from hypotheses import examples

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

QIDS = ["q2", "q2", "q10", "q2", "naïve topic", "q10"]
DOCS = ["d1", "a-document-with-a-long-id", "d1", "d3", "ünï", "a-document-with-a-long-id"]
SCORES = [0.5, 1.5, -2.0, 0.25, 1e300, 7.0]
GRADES = [1, 0, 2, 3, 0, -1]
EXPECTED = {
    "q2": {"d1": 0.5, "a-document-with-a-long-id": 1.5, "d3": 0.25},
    "q10": {"d1": -2.0, "a-document-with-a-long-id": 7.0},
    "naïve topic": {"ünï": 1e300},
}
COLUMNS = {"qid": QIDS, "docno": DOCS, "score": SCORES, "text": ["…"] * 6}


def as_table(strings=None, scores=None):
    strings, scores = strings or pa.string(), scores or pa.float64()
    return pa.table(
        {
            "qid": pa.array(QIDS).cast(strings),
            "docno": pa.array(DOCS).cast(strings),
            "score": pa.array(SCORES).cast(scores),
        }
    )


def coded(index, value=None):
    value = value or pa.string()

    def column(values):
        array = pa.array(values).cast(value)
        encoded = array.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(index), encoded.dictionary)

    return pa.table({"qid": column(QIDS), "docno": column(DOCS), "score": SCORES})


def chunked():
    return pa.concat_tables([as_table().slice(i, 1) for i in range(6)])


def categories():
    return pd.DataFrame(COLUMNS).astype({"qid": "category", "docno": "category"})


FRAMES = {
    "a pandas frame of objects": lambda: pd.DataFrame(COLUMNS).astype({"qid": object, "docno": object}),
    "a pandas frame of default texts": lambda: pd.DataFrame(COLUMNS),
    "a pandas frame of Arrow texts": lambda: pd.DataFrame(COLUMNS).astype(
        {"qid": "string[pyarrow]", "docno": "string[pyarrow]"}
    ),
    "a pandas frame of categories": categories,
    "a pandas frame with an index": lambda: pd.DataFrame(COLUMNS).set_index("text").iloc[:6],
    "a sliced pandas frame": lambda: pd.concat([pd.DataFrame(COLUMNS)] * 2).iloc[6:],
    "a Polars frame": lambda: pl.DataFrame(COLUMNS),
    "a Polars frame of categories": lambda: pl.DataFrame(COLUMNS).cast(
        {"qid": pl.Categorical, "docno": pl.Categorical}
    ),
    "a sliced Polars frame": lambda: pl.concat([pl.DataFrame(COLUMNS)] * 3, rechunk=True)[6:12],
    "a Polars frame of chunks": lambda: pl.concat([pl.DataFrame(COLUMNS)[i : i + 1] for i in range(6)], rechunk=False),
    "a Polars frame of categories in chunks": lambda: pl.concat(
        [pl.DataFrame(COLUMNS).cast({"qid": pl.Categorical})[i : i + 2] for i in (0, 2, 4)], rechunk=False
    ),
    "a Polars query": lambda: pl.LazyFrame(COLUMNS),
    "a pyarrow table": as_table,
    "a pyarrow table of large strings": lambda: as_table(pa.large_string()),
    "a pyarrow table of string views": lambda: as_table(pa.string_view()),
    "a pyarrow table of bytes": lambda: as_table(pa.binary()),
    "a pyarrow table of large bytes": lambda: as_table(pa.large_binary()),
    "a pyarrow table of byte views": lambda: as_table(pa.binary_view()),
    "a pyarrow table of dictionaries": lambda: coded(pa.int32()),
    "a pyarrow table of small dictionaries": lambda: coded(pa.uint8()),
    "a pyarrow table of large dictionaries": lambda: coded(pa.int64(), pa.large_string()),
    "a sliced pyarrow table": lambda: pa.concat_tables([as_table()] * 3).combine_chunks().slice(6, 6),
    "a sliced table of views": lambda: pa.concat_tables([as_table(pa.string_view())] * 3).combine_chunks().slice(6, 6),
    "a sliced table of dictionaries": lambda: pa.concat_tables([coded(pa.int8())] * 3).combine_chunks().slice(6, 6),
    "a pyarrow table of chunks": chunked,
    "a record batch": lambda: as_table().to_batches()[0],
    "a sliced record batch": lambda: pa.concat_tables([as_table()] * 2).combine_chunks().to_batches()[0].slice(6),
    "a record batch reader": lambda: as_table().to_reader(max_chunksize=2),
    "a struct array": lambda: as_table().to_struct_array().combine_chunks(),
    "a sliced struct array": lambda: (
        pa.concat_tables([as_table()] * 2).combine_chunks().to_struct_array().chunk(0).slice(6)
    ),
    "a DuckDB relation": lambda: duckdb.connect().from_arrow(as_table()).filter("true"),
    "a DuckDB execution": lambda: executed(),
    "a mapping of lists": lambda: COLUMNS,
    "a mapping of arrays": lambda: {name: np.array(values) for name, values in COLUMNS.items()},
    "a mapping of objects": lambda: {name: np.array(values, object) for name, values in COLUMNS.items()},
    "a structured array": lambda: np.array(
        list(zip(QIDS, DOCS, SCORES, strict=True)), [("qid", "U20"), ("docno", "U40"), ("score", "f8")]
    ),
    "a list of mappings": lambda: [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    "a list of scored documents": lambda: [ir_measures.ScoredDoc(*row) for row in zip(QIDS, DOCS, SCORES, strict=True)],
    "scored documents one by one": lambda: (
        ir_measures.ScoredDoc(*row) for row in zip(QIDS, DOCS, SCORES, strict=True)
    ),
}


def executed():
    connection = duckdb.connect()
    connection.register("t", as_table())
    return connection.execute("select * from t")


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_holds_the_run_that_the_mapping_holds(name):
    [run] = as_runs(FRAMES[name]())
    assert run.to_dict() == EXPECTED
    assert run.topics == list(EXPECTED)
    qrels = {"q2": {"d3": 1}, "q10": {"d1": 2, "d9": 1}}
    found, expected = (evaluate(qrels, one, "nDCG AP RR P@2") for one in (FRAMES[name](), EXPECTED))
    assert found.values.tolist() == expected.values.tolist()


def graded(kind):
    names = {"query_id": QIDS, "doc_id": DOCS, "relevance": GRADES, "iteration": ["0"] * 6}
    return {
        "pandas": lambda: pd.DataFrame(names),
        "polars": lambda: pl.DataFrame(names),
        "pyarrow": lambda: pa.table(names),
        "duckdb": lambda: duckdb.connect().from_arrow(pa.table(names)),
        "mapping": lambda: names,
        "rows": lambda: [ir_measures.Qrel(*row) for row in zip(QIDS, DOCS, GRADES, ["0"] * 6, strict=True)],
    }[kind]()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb", "mapping", "rows"])
def test_every_frame_holds_the_qrels_that_the_mapping_holds(kind):
    qrels = as_qrels(graded(kind))
    expected = {topic: dict.fromkeys(documents) for topic, documents in EXPECTED.items()}
    for topic, document, grade in zip(QIDS, DOCS, GRADES, strict=True):
        expected[topic][document] = grade
    assert qrels.to_dict() == expected
    assert list(qrels.labels) == [b"0"]


@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)
def test_numbers_of_every_width_are_scores_and_whole_ones_ids(kind):
    numbers = np.array([3, 3, 1, 100], kind)
    ids = np.array([7, 7, 0, 7], "int64" if kind.startswith("float") else kind)
    for frame in (
        pa.table({"qid": ids, "docno": numbers.astype("int32"), "score": numbers}),
        pd.DataFrame({"qid": ids, "docno": numbers.astype("int32"), "score": numbers}),
        {"qid": ids, "docno": numbers.astype("int32"), "score": numbers},
    ):
        run = read_run(frame)
        assert run.topics == ["7", "0"]
        assert list(run.table.documents) == [b"3", b"3", b"1", b"100"]
        assert run.table.value.tolist() == [3, 3, 1, 100]


def test_decimals_become_the_nearest_double():
    relation = duckdb.connect().sql("select 'q' qid, 'd' docno, 0.1 score union all select 'q', 'e', -12345.678901")
    assert read_run(relation).to_dict() == {"q": {"d": 0.1, "e": -12345.678901}}
    numbers = [
        decimal.Decimal("0.30000000000000004"),
        decimal.Decimal("-1e-9"),
        decimal.Decimal("12345678901234567890.5"),
    ]
    for kind in (pa.decimal128(38, 17), pa.decimal256(60, 20)):
        table = pa.table({"qid": ["q"] * 3, "docno": ["a", "b", "c"], "score": pa.array(numbers).cast(kind)})
        assert read_run(table).table.value.tolist() == [float(number) for number in numbers]


def test_true_and_false_are_grades_and_no_scores():
    columns = {"qid": ["q"] * 9, "docno": list("abcdefghi"), "label": [True, False] * 4 + [True]}
    for frame in (pa.table(columns), pd.DataFrame(columns), columns):
        assert read_qrels(frame)["q"] == {name: float(i % 2 == 0) for i, name in enumerate("abcdefghi")}
    assert read_qrels(pa.table(columns).slice(3))["q"]["d"] == 0
    columns["score"] = columns.pop("label")
    for frame in (pa.table(columns), columns):
        with pytest.raises(FormatError, match="column 'score' holds true and false, expected numbers"):
            read_run(frame)


def test_ranks_decide_where_a_frame_has_no_score():
    frame = pl.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "rank": [2, 1]})
    assert read_run(frame)["q"] == [("b", -1.0), ("a", -2.0)]


def test_a_tag_column_is_kept_as_the_tag():
    assert read_run(pl.DataFrame({"qid": ["q"], "docno": ["a"], "score": [1.0], "tag": ["bm25"]})).tag == "bm25"
    assert read_run(pl.DataFrame({"qid": ["q"], "docno": ["a"], "score": [1.0]})).tag is None


def test_a_connection_without_a_result_is_refused():
    with pytest.raises(DataError, match="the result could not be read"):
        read_run(duckdb.connect())


def test_a_fixed_width_column_is_a_column_of_ids():
    table = pa.table({"qid": ["q", "q"], "docno": pa.array([b"aa", b"bb"], pa.binary(2)), "score": [1.0, 2.0]})
    assert read_run(table).to_dict() == {"q": {"aa": 1.0, "bb": 2.0}}


def test_an_empty_frame_is_a_run_without_rows():
    for frame in (
        as_table().slice(0, 0),
        pl.DataFrame(COLUMNS)[:0],
        pd.DataFrame(COLUMNS)[:0],
        {"qid": [], "docno": [], "score": []},
    ):
        run = read_run(frame)
        assert len(run) == 0
        assert run.topics == []


@pytest.mark.parametrize("column", ["qid", "docno", "score"])
@pytest.mark.parametrize(
    "make", [pa.table, pl.DataFrame, pd.DataFrame, dict], ids=["pyarrow", "polars", "pandas", "mapping"]
)
def test_a_missing_value_is_refused_with_its_row(column, make):
    columns = {name: list(values) for name, values in COLUMNS.items()}
    columns[column][3] = None
    with pytest.raises(DataError, match="frame: row 4: "):
        read_run(make(columns))


def test_a_missing_value_in_a_late_batch_a_slice_or_a_dictionary_is_refused_with_its_row():
    columns = {name: list(values) for name, values in COLUMNS.items()}
    columns["docno"][4] = None
    table = pa.table(columns)
    for frame, row in (
        (table.to_reader(max_chunksize=2), 5),
        (table.slice(2), 3),
        (table.to_struct_array().chunk(0).slice(2), 3),
        (table.set_column(1, "docno", table["docno"].dictionary_encode()), 5),
    ):
        with pytest.raises(DataError, match=f"frame: row {row}: no value in column 'docno'"):
            read_run(frame)
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    with pytest.raises(DataError, match="row 2: no value"):
        read_run(pa.table({"qid": ["q"] * 3, "docno": dictionary, "score": [1.0, 2.0, 3.0]}))
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["a", None, "b"]))
    assert read_run(pa.table({"qid": ["q"] * 2, "docno": unused, "score": [1.0, 2.0]})).to_dict() == {
        "q": {"a": 1.0, "b": 2.0}
    }
    whole = pa.array([{"qid": "q", "docno": "d", "score": 1.0}, None])
    with pytest.raises(DataError, match="row 2: no value"):
        read_run(whole)


def test_nan_is_refused_with_its_row():
    for make in (pa.table, pl.DataFrame, dict):
        with pytest.raises(DataError, match="row 3: expected a number as its score in column 'score', found nan"):
            read_run(make({"qid": ["q"] * 3, "docno": ["a", "b", "c"], "score": [1.0, 2.0, float("nan")]}))
    with pytest.raises(DataError, match="row 2: expected a number as its grade in column 'label', found inf"):
        read_qrels(pl.DataFrame({"qid": ["q"] * 2, "docno": ["a", "b"], "label": [1.0, float("inf")]}))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"qid": ["q"], "score": [1.0]}, "no column for the document .*found qid, score"),
        ({"docno": ["q"], "score": [1.0]}, "no column for the topic"),
        ({"qid": ["q"], "docno": ["d"]}, r"no column for the score \(such as score, sim, similarity, rank\)"),
        ({"qid": ["q"], "docno": ["d"], "label": [1]}, "looks like qrels .*expected a run"),
        (
            {"qid": [1.5], "docno": ["d"], "score": [1.0]},
            "column 'qid' holds ids as float64, expected text or whole numbers",
        ),
        ({"qid": ["q"], "docno": ["d"], "score": ["1"]}, "column 'score' holds text, expected numbers"),
        ({"qid": ["q"], "QID": ["q"], "docno": ["d"], "score": [1.0]}, "two columns are called 'qid'"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns, words):
    for make in (pa.table, pl.DataFrame, pd.DataFrame, dict):
        with pytest.raises(FormatError, match=words):
            read_run(make(columns))


def test_arrow_types_that_are_no_ids_are_refused():
    table = pa.table({"qid": [["q"]], "docno": ["d"], "score": [1.0]})
    with pytest.raises(FormatError, match=r"column 'qid': expected text or numbers, found Arrow type '\+l'; cast it"):
        read_run(table)
    with pytest.raises(FormatError, match="expected a table with named columns, found one Arrow column of type 'l'"):
        read_run(pa.array([1, 2]))


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(FormatError, match="not equally long"):
        read_run({"qid": ["q"], "docno": ["d", "e"], "score": [1.0]})


def test_a_duplicate_row_is_found_out():
    frame = pl.DataFrame({"qid": ["q", "q", "q"], "docno": ["d", "e", "d"], "score": [1.0, 2.0, 3.0]})
    with pytest.raises(DuplicateError, match="document 'd' occurs twice for topic 'q'"):
        evaluate({"q": {"d": 1}}, frame, "AP")
    with pytest.raises(DuplicateError, match="document 'd' is judged twice for topic 'q'"):
        read_qrels(frame.rename({"score": "label"}))


def test_pandas_without_pyarrow_is_read_by_its_columns(monkeypatch):
    def missing(self, requested_schema=None):
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", missing)
    for name in FRAMES:
        if "pandas" in name:
            assert read_run(FRAMES[name]()).to_dict() == EXPECTED
    numbers = pd.DataFrame({"qid": [1, 1], "docno": [3, 4], "score": [1, 2]})
    assert read_run(numbers).to_dict() == {"1": {"3": 1.0, "4": 2.0}}
    numbers["docno"] = pd.array([3, None], "Int64")
    with pytest.raises(DataError, match="row 2: no value in column 'docno'"):
        read_run(numbers)


def test_mixed_objects_are_ids_if_each_is_text_or_whole():
    frame = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", 7], "score": [1.0, 2.0]})
    assert read_run(frame).to_dict() == {"q": {"a": 1.0, "7": 2.0}}
    frame["docno"] = ["a", 7.5]
    with pytest.raises(DataError, match="row 2: column 'docno': expected an id"):
        read_run(frame)


def test_other_columns_of_a_pandas_frame_are_left_alone():
    frame = pd.DataFrame({**COLUMNS, "vector": [object()] * 6})
    assert read_run(frame).to_dict() == EXPECTED


def test_lone_surrogates_and_bytes_stay_as_they_are():
    frame = {"qid": ["q"], "docno": ["d\udcff"], "score": [1.0]}
    assert list(read_run(frame).table.documents) == [b"d\xff"]
    assert list(read_run(pa.table({**frame, "docno": [b"d\xff"]})).table.documents) == [b"d\xff"]


# the reader of texts


@given(st.lists(st.binary(max_size=20), max_size=60), st.data())
@examples(40)
def test_texts_are_taken_numbered_and_compared_against_plain_python(items, data):
    strings = Strings.of(items)
    rows = np.array(data.draw(st.lists(st.integers(0, max(len(items) - 1, 0)), max_size=80 if items else 0)), np.int64)
    assert list(strings.take(rows)) == [items[i] for i in rows]
    assert changes(strings).tolist() == [i for i in range(len(items)) if i == 0 or items[i] != items[i - 1]]
    first, numbers = distinct(strings)
    seen = list(dict.fromkeys(items))
    assert [items[i] for i in first] == seen
    assert [seen[i] for i in numbers] == items


@pytest.mark.parametrize("width", [1, 7, 8, 9, 20, 200])
def test_many_scattered_texts_are_numbered_against_plain_python(width):
    rng = np.random.default_rng(width)
    items = [(b"%d" % i).rjust(width, b"x") if i % 3 else b"%d" % i for i in rng.integers(0, 500, 20_000)]
    first, numbers = distinct(Strings.of(items))
    seen = list(dict.fromkeys(items))
    assert [items[i] for i in first] == seen
    assert [seen[i] for i in numbers] == items


def test_many_rows_of_every_kind_of_text_against_plain_python():
    rng = np.random.default_rng(1)
    n = 150_000  # more than one chunk
    ids = [f"{'x' * int(w)}{i}" for i, w in enumerate(rng.integers(0, 30, n))]
    ids[70_000] = "y" * 3_000  # too wide to lay out
    topics = [f"topic-{i}" for i in np.sort(rng.integers(0, 3000, n))]
    scores = rng.random(n)
    expected = [encode(i) for i in ids]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"qid": pa.array(topics).cast(kind), "docno": pa.array(ids).cast(kind), "score": scores})
        read = read_run(table).table
        assert list(read.documents) == expected
        assert [read.topics[i] for i in read.topic.tolist()] == [encode(topic) for topic in topics]
        assert (read.value == scores).all()


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@examples(40)
def test_whole_numbers_become_their_digits(numbers):
    assert list(of_whole_numbers(np.array(numbers, np.int64))) == [b"%d" % number for number in numbers]


def test_the_largest_whole_numbers_become_their_digits():
    assert list(of_whole_numbers(np.array([2**64 - 1, 0, 10**19], np.uint64))) == [
        b"18446744073709551615",
        b"0",
        b"10000000000000000000",
    ]
    assert list(of_whole_numbers(np.array([-128, 127], np.int8))) == [b"-128", b"127"]


# who hands over memory gets it back


class Producer:
    """A table of three columns in Arrow's C structures, which counts what is handed back."""

    def __init__(self, batches, fail_at=None):
        self.batches = batches
        self.fail_at = fail_at
        self.released = collections.Counter()
        self.kept = []

    def _schema(self, out):
        children = (ctypes.POINTER(ArrowSchema) * 3)()
        for i, (form, name) in enumerate(((b"l", b"qid"), (b"l", b"docno"), (b"g", b"score"))):
            child = ArrowSchema(format=form, name=name)
            self.kept.append(child)
            children[i] = ctypes.pointer(child)
        self.kept.append(children)
        out.format, out.n_children = b"+s", 3
        out.children = ctypes.cast(children, type(out.children))
        out.release = self._callback(ArrowSchema, "schema")

    def _batch(self, out, rows, number):
        children = (ctypes.POINTER(ArrowArray) * 3)()
        for i in range(3):
            values = np.array([row[i] for row in rows], np.float64 if i == 2 else np.int64)
            buffers = (ctypes.c_void_p * 2)(None, values.ctypes.data)
            child = ArrowArray(
                length=len(rows), n_buffers=2, buffers=ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
            )
            self.kept += [values, buffers, child]
            children[i] = ctypes.pointer(child)
        none = (ctypes.c_void_p * 1)(None)
        self.kept += [children, none]
        out.length, out.n_children, out.n_buffers = len(rows), 3, 1
        out.buffers = ctypes.cast(none, type(out.buffers))
        out.children = ctypes.cast(children, type(out.children))
        out.release = self._callback(ArrowArray, f"batch {number}")

    def _callback(self, kind, name):
        def release(pointer):
            self.released[name] += 1
            pointer.contents.release = type(pointer.contents.release)()

        callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(kind))(release)
        self.kept.append(callback)
        return callback

    def _capsule(self, structure, name):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.kept += [structure, name]
        return make(ctypes.addressof(structure), name, None)


class StreamProducer(Producer):
    def __arrow_c_stream__(self, requested_schema=None):
        stream, given_ = ArrowArrayStream(), iter(enumerate(self.batches))

        def get_schema(_, out):
            self._schema(out.contents)
            return 0

        def get_next(_, out):
            number, rows = next(given_, (None, None))
            if number is not None and number == self.fail_at:
                return 5
            if number is not None:
                self._batch(out.contents, rows, number)
            return 0

        fields = dict(ArrowArrayStream._fields_)
        stream.get_schema, stream.get_next = fields["get_schema"](get_schema), fields["get_next"](get_next)
        words = ctypes.create_string_buffer(b"the disk is on fire")
        said = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: ctypes.addressof(words))
        stream.get_last_error = ctypes.cast(said, fields["get_last_error"])
        self.kept += [words, said]
        stream.release = self._callback(ArrowArrayStream, "stream")
        self.kept += [stream.get_schema, stream.get_next, stream.get_last_error]
        return self._capsule(stream, b"arrow_array_stream")


class ArrayProducer(Producer):
    def __arrow_c_array__(self, requested_schema=None):
        schema, array = ArrowSchema(), ArrowArray()
        self._schema(schema)
        self._batch(array, self.batches[0], 0)
        return self._capsule(schema, b"arrow_schema"), self._capsule(array, b"arrow_array")


BATCHES = [[(1, 10, 0.5), (1, 11, 0.25)], [(2, 10, 1.0)], [(1, 12, 3.0)]]


def test_every_batch_the_schema_and_the_stream_are_released_once():
    producer = StreamProducer(BATCHES)
    assert read_run(producer).to_dict() == {"1": {"10": 0.5, "11": 0.25, "12": 3.0}, "2": {"10": 1.0}}
    assert producer.released == {"schema": 1, "stream": 1, "batch 0": 1, "batch 1": 1, "batch 2": 1}


def test_an_array_and_its_schema_are_released_once():
    producer = ArrayProducer(BATCHES)
    assert read_run(producer).to_dict() == {"1": {"10": 0.5, "11": 0.25}}
    assert producer.released == {"schema": 1, "batch 0": 1}


def test_everything_is_released_once_when_a_value_cannot_be_used():
    producer = StreamProducer([BATCHES[0], [(1, 1, float("nan"))], BATCHES[2]])
    with pytest.raises(DataError, match="row 3: expected a number"):
        read_run(producer)
    assert producer.released == {"schema": 1, "stream": 1, "batch 0": 1, "batch 1": 1}


def test_everything_is_released_once_when_a_column_is_missing():
    producer = StreamProducer(BATCHES)
    with pytest.raises(FormatError, match="expected qrels"):
        read_qrels(_with_ranks(producer))
    assert producer.released == {"schema": 1, "stream": 1}


def _with_ranks(producer):
    schema = producer._schema

    def without_score(out):
        schema(out)
        out.children[2].contents.name = b"rank"

    producer._schema = without_score
    return producer


def test_what_a_producer_says_is_wrong_is_passed_on():
    producer = StreamProducer(BATCHES, fail_at=1)
    with pytest.raises(DataError, match="frame: the frame could not be read: the disk is on fire"):
        read_run(producer)
    assert producer.released == {"schema": 1, "stream": 1, "batch 0": 1}


def test_a_reader_that_fails_is_reported():
    def broken():
        yield as_table().to_batches()[0]
        raise ValueError("lost the rest")

    reader = pa.RecordBatchReader.from_batches(as_table().schema, broken())
    with pytest.raises(DataError, match="lost the rest"):
        read_run(reader)


def frame(**columns):
    """Columns of any kind that have a name and nothing else: no Arrow, no pandas."""
    return type("Frame", (), {"columns": list(columns), "__getitem__": lambda self, name: columns[name]})()


def test_columns_without_arrow_are_read_as_arrays():
    scores = [decimal.Decimal("0.5"), fractions.Fraction(1, 4)]
    run = as_runs(frame(qid=["q", "q"], docno=[b"a", "b"], score=scores))[0]
    assert run.to_dict() == {"q": {"a": 0.5, "b": 0.25}}


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "row 2"),
        (np.zeros((2, 2)), "has 2 dimensions, expected one"),
        ([object(), object()], "expected text or numbers"),
    ],
)
def test_a_column_that_is_no_column_is_refused(scores, words):
    with pytest.raises(DataError, match=words):
        as_runs(frame(qid=["q", "q"], docno=["a", "b"], score=scores))


def test_a_column_of_nothing_and_coded_numbers_are_read():
    nothing = pa.table({"qid": pa.nulls(0), "docno": pa.array([], pa.string()), "score": pa.nulls(0)})
    assert as_runs(nothing)[0].to_dict() == {}
    grades = pa.array([1.0, 2.5, 1.0]).dictionary_encode()
    table = pa.table({"qid": ["q"] * 3, "docno": ["a", "b", "c"], "relevance": grades})
    assert as_qrels(table).to_dict() == {"q": {"a": 1.0, "b": 2.5, "c": 1.0}}


def test_a_class_is_no_frame():
    with pytest.raises(FormatError):
        as_runs([pd.DataFrame])
