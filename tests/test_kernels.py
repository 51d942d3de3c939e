"""The C core and its NumPy twin: the same rules, the same results."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import DataError
from cranfield.base.kernels import LineLayout, Order, Strings, decode, encode, twin
from cranfield.base.kernels.table import LineFault, RowTable
from cranfield.formats.files.trec import QRELS, RUN
from hypotheses import examples

native = pytest.importorskip(
    "cranfield.base.kernels.native", reason="the C core is not built here", exc_type=ImportError
)
fuzz_kernels = pytest.importorskip("fuzz_kernels", reason="the C core is not built here")

BOTH = [native, twin]
NUMBERS = LineLayout("topic document value", topic=0, document=1, value=2, most=3)


def index_of(kernel, judged: dict[bytes, list[bytes]]):
    topic = np.repeat(np.arange(len(judged), dtype=np.int32), [len(names) for names in judged.values()])
    return kernel.Index(Strings.of(judged), topic, Strings.of(name for names in judged.values() for name in names))


def test_mutated_inputs_give_equal_results_in_both_kernels(monkeypatch):
    monkeypatch.setattr(native, "SMALL", native.SMALL)  # the fuzzer changes it
    fuzz_kernels.fuzz(inputs=4000, compared=3000, seed=7)


@pytest.mark.slow
def test_a_million_mutated_inputs_neither_crash_nor_differ(monkeypatch):
    monkeypatch.setattr(native, "SMALL", native.SMALL)
    fuzz_kernels.fuzz(inputs=1_000_000, compared=30_000, seed=11)


@given(st.binary(max_size=200))
@examples(100)
def test_any_bytes_are_read_alike_by_both_kernels(text):
    for layout in (RUN, QRELS):
        left = fuzz_kernels.outcome(native.parse, text, layout, True)
        assert left == fuzz_kernels.outcome(twin.parse, text, layout, True)


def value_of(kernel, text: str) -> float:
    return float(kernel.parse(f"t d {text}\n".encode(), NUMBERS).value[0])


def random_numbers(rng: random.Random):
    for _ in range(4000):
        yield repr(struct.unpack("d", rng.randbytes(8))[0])
        yield f"{rng.uniform(-50, 50):.{rng.randint(0, 20)}f}"
        yield f"{rng.randrange(10 ** rng.randint(1, 25))}.{rng.randrange(10 ** rng.randint(1, 25))}"
        yield f"{rng.randrange(10**19)}e{rng.randint(-330, 300)}"


def test_scores_are_read_to_the_nearest_double_against_python():
    texts = [text for text in random_numbers(random.Random(3)) if "n" not in text]
    halves = [f"{2**53 + 2 * i + 1}{tail}" for i in range(50) for tail in ("", ".0", ".00000000000000000001")]
    edges = ["0", "-0", "+1", ".5", "5.", "1e22", "1e23", "9007199254740993e-10", "4.9e-324", "1.7976931348623157e308"]
    table = native.parse("".join(f"t d {text}\n" for text in texts + halves + edges).encode(), NUMBERS)
    for text, value in zip(texts + halves + edges, table.value.tolist(), strict=True):
        assert value == float(text), text
        assert math.copysign(1, value) == math.copysign(1, float(text)), text


@pytest.mark.parametrize(
    "text", ["nan", "NaN", "abc", "1e", "1e+", ".", "-", "0x10", "1_000", "1,5", "--1", "1.2.3", "infin"]
)
@pytest.mark.parametrize("kernel", BOTH)
def test_what_is_no_number_is_a_fault(kernel, text):
    with pytest.raises(twin.FaultError) as error:
        value_of(kernel, text)
    assert error.value.fault == LineFault(0, "value")


@pytest.mark.parametrize("kernel", BOTH)
def test_infinity_is_a_score_but_no_grade(kernel):
    assert value_of(kernel, "-inf") == -math.inf
    with pytest.raises(twin.FaultError):
        kernel.parse(b"q 0 d inf\n", QRELS)


RANKINGS = [
    (Order(), [b"c", b"b", b"a"]),
    (Order(ties="ascending"), [b"a", b"b", b"c"]),
    (Order(ties="input"), [b"b", b"c", b"a"]),
]


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize(("order", "expected"), RANKINGS)
def test_tied_documents_are_ordered_as_asked(kernel, order, expected):
    index = index_of(kernel, {b"q": [b"a", b"b", b"c"]})
    text = b"q Q0 x 1 9 t\nq Q0 b 2 1 t\nq Q0 c 3 1 t\nq Q0 a 4 1 t\n"
    found = kernel.hits_of_text(index, text, RUN, order)
    names = [b"a", b"b", b"c"]
    assert [names[row] for row in found.row] == expected
    assert found.rank.tolist() == [2, 3, 4]
    assert found.first.tolist() == [2, 2, 2]
    assert found.last.tolist() == [4, 4, 4]


@pytest.mark.parametrize("kernel", BOTH)
def test_scores_that_differ_only_beyond_32_bits_tie_when_compared_as_single(kernel):
    index = index_of(kernel, {b"q": [b"a", b"b"]})
    text = b"q Q0 a 1 16777217 t\nq Q0 b 2 16777216 t\n"
    assert kernel.hits_of_text(index, text, RUN, Order()).row.tolist() == [0, 1]
    assert kernel.hits_of_text(index, text, RUN, Order(single=True)).row.tolist() == [1, 0]


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize("twice", ["first", "last", "best"])
def test_of_two_equal_documents_the_one_asked_for_counts(kernel, twice):
    index = index_of(kernel, {b"q": [b"a", b"b"]})
    text = b"q Q0 a 1 1 t\nq Q0 b 2 2 t\nq Q0 a 3 3 t\nq Q0 a 4 1.5 t\n"
    found = kernel.hits_of_text(index, text, RUN, Order(duplicates=twice))
    assert found.retrieved.tolist() == [2]
    assert found.row.tolist() == {"first": [1, 0], "last": [1, 0], "best": [0, 1]}[twice]


@pytest.mark.parametrize("kernel", BOTH)
def test_a_duplicate_is_found_even_when_its_topic_is_scattered_and_nobody_judged_it(kernel):
    index = index_of(kernel, {b"q": [b"a"], b"r": [b"a"]})
    text = b"q Q0 x 1 3 t\nr Q0 x 1 3 t\nq Q0 y 2 2 t\nq Q0 x 3 1 t\n"
    with pytest.raises(twin.FaultError) as error:
        kernel.hits_of_text(index, text, RUN, Order())
    assert error.value.fault == LineFault(text.rindex(b"q Q0 x"), "duplicate")


@pytest.mark.parametrize("kernel", BOTH)
def test_a_malformed_line_is_named_before_a_duplicate(kernel):
    index = index_of(kernel, {b"q": [b"a"]})
    text = b"q Q0 a 1 3 t\nq Q0 a 2 2 t\nq Q0 b 3 x t\n"
    with pytest.raises(twin.FaultError) as error:
        kernel.hits_of_text(index, text, RUN, Order())
    assert error.value.fault == LineFault(26, "value")


@pytest.mark.parametrize("kernel", BOTH)
def test_passages_count_as_their_document_and_the_best_decides(kernel):
    index = index_of(kernel, {b"q": [b"d", b"e"]})
    text = b"q Q0 d#1 1 1 t\nq Q0 e#1 2 2 t\nq Q0 d#2 3 3 t\nq Q0 q#1 4 9 t\n"
    found = kernel.hits_of_text(index, text, RUN, Order(collapse=b"#", drop_self=True))
    assert (found.row.tolist(), found.rank.tolist(), found.retrieved.tolist()) == ([0, 1], [1, 2], [2])


def scattered_run(rng: random.Random, lines: int) -> bytes:
    rows = [f"q{rng.randrange(40)} Q0 d{i} 1 {rng.randrange(50)}.{rng.randrange(10)} t" for i in range(lines)]
    return "\n".join(rows).encode()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_scattered_topics_change_nothing_against_the_twin(threads, monkeypatch):
    monkeypatch.setattr(native, "SMALL", 0)
    rng = random.Random(5)
    text = scattered_run(rng, 3000)
    judged = {f"q{t}".encode(): [f"d{rng.randrange(3000)}".encode() for _ in range(30)] for t in range(35)}
    judged = {topic: list(dict.fromkeys(names)) for topic, names in judged.items()}
    fast = native.hits_of_text(index_of(native, judged), text, RUN, Order(), threads=threads)
    slow = twin.hits_of_text(index_of(twin, judged), text, RUN, Order())
    assert fuzz_kernels.plain(fast) == fuzz_kernels.plain(slow)
    assert sorted(fast.others) == [f"q{t}" for t in range(35, 40)]


ids = st.text(alphabet=st.characters(exclude_categories=[], exclude_characters="\0"), min_size=1, max_size=4)
scores = st.one_of(st.integers(-3, 3), st.floats(allow_nan=False), st.sampled_from([0.5, 0.25, 1e300, True]))


@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(ids, scores, max_size=8), max_size=3),
    st.sampled_from(["descending", "ascending", "input"]),
    st.booleans(),
    st.data(),
)
@examples(120)
def test_dicts_give_equal_hits_in_both_kernels_and_through_columns(run, ties, single, data):
    names = sorted({name for documents in run.values() for name in documents}, key=encode)
    judged = {b"a": [], b"b": []}
    for topic in judged:
        chosen = data.draw(st.lists(st.sampled_from([*names, "z"]), max_size=6))
        judged[topic] = list(dict.fromkeys(encode(name) for name in chosen))
    order = Order(ties=ties, single=single)
    keys = [encode(name) for name in names]
    if len(set(keys)) < len(keys) or any(encode(decode(key)) != key or decode(key) not in names for key in keys):
        return  # two ids with the same bytes are one document in a file, but two keys of a dict
    fast = native.hits_of_mapping(index_of(native, judged), run, order)
    slow = twin.hits_of_mapping(index_of(twin, judged), run, order)
    assert fuzz_kernels.plain(fast) == fuzz_kernels.plain(slow)


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize("document", ["\0", "d\0", "a longer id\0", "eight be\0", "\udcff\0", "é\0"])
@pytest.mark.parametrize("others", [1, 99])  # many of the documents are judged, or few
def test_a_document_with_nul_stops_both(kernel, document, others):
    run = {"q": {f"d{i}": 1.0 for i in range(others)} | {document: 2.0}}
    with pytest.raises(ValueError, match="NUL in an id"):
        kernel.hits_of_mapping(index_of(kernel, {b"q": [b"d0"]}), run, Order())


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize("judged", [[b"d0"], [b"d%d" % i for i in range(9)]], ids=["few judged", "many judged"])
def test_both_search_for_nul_until_20000_documents_have_been_searched(kernel, judged):
    index = index_of(kernel, {b"p": judged, b"q": judged})
    odd = {"d0": 2.0, "e\0": 1.0}
    first = {f"d{i}": 1.0 for i in range(twin.NULL_SEARCHED)}
    assert kernel.hits_of_mapping(index, {"p": first, "q": odd}, Order()).retrieved.tolist() == [len(first), 2]
    first.popitem()
    with pytest.raises(ValueError, match="NUL in an id"):
        kernel.hits_of_mapping(index, {"p": first, "q": odd}, Order())


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize("score", [math.nan, "1.5", None, 10**400, [1]])
def test_a_dict_with_a_score_that_is_no_number_names_topic_and_document(kernel, score):
    index = index_of(kernel, {b"q": [b"d"]})
    with pytest.raises(DataError, match="topic 'q', document 'd': expected a number as its score, found"):
        kernel.hits_of_mapping(index, {"q": {"d": score}}, Order())


@pytest.mark.parametrize("kernel", BOTH)
def test_many_tied_documents_in_an_unsorted_dict_are_ranked_by_id(kernel):
    names = [f"d{i:03}" for i in range(300)]
    index = index_of(kernel, {b"q": [encode(name) for name in names]})
    found = kernel.hits_of_mapping(index, {"q": {name: float(i % 2) for i, name in enumerate(names)}}, Order())
    ranked = [names[row] for row in found.row]
    assert ranked == sorted(names[1::2], reverse=True) + sorted(names[::2], reverse=True)
    assert found.rank.tolist() == list(range(1, 301))


def test_columns_with_scattered_topics_give_equal_hits_in_both_kernels():
    rng = np.random.default_rng(2)
    topic = np.r_[:5, rng.integers(0, 5, 395)].astype(np.int32)  # numbered in the order of their first row
    value = rng.integers(0, 9, 400).astype(np.float64)
    nothing = np.zeros(0, np.int32)
    table = RowTable(
        Strings.of([b"a", b"b", b"c", b"d", b"e"]),
        topic,
        Strings.of(f"x{i}".encode() for i in range(400)),
        value,
        Strings.of([]),
        nothing,
        np.zeros(0, np.int64),
    )
    judged = {b"c": [f"x{i}".encode() for i in range(0, 400, 3)], b"a": [b"x1", b"x2", b"x4"]}
    results = [fuzz_kernels.plain(k.hits_of_table(index_of(k, judged), table, Order())) for k in BOTH]
    assert results[0] == results[1]
    assert results[0]["topic"] == sorted(results[0]["topic"])


@pytest.mark.parametrize("kernel", BOTH)
def test_a_document_judged_under_two_labels_is_one_hit_from_a_dict_as_from_a_file(kernel):
    index = index_of(kernel, {b"q": [b"a", b"b", b"a", b"c", b"b"]})
    assert index.first.tolist() == [0, 1, 0, 3, 1]
    run = {"q": {"b": 2.0, "a": 1.0, "x": 0.5}}
    found = kernel.hits_of_mapping(index, run, Order())
    text = b"q Q0 b 1 2.0 t\nq Q0 a 2 1.0 t\nq Q0 x 3 0.5 t\n"
    assert found.row.tolist() == kernel.hits_of_text(index, text, RUN, Order()).row.tolist() == [1, 0]


def crafted(count: int) -> list[bytes]:
    """Ids that all had the hash 0 while the hash was seeded with constants: their first half is the first constant."""
    return [(0x9E3779B97F4A7C15).to_bytes(8, "little") + b"%08d" % i for i in range(count)]


def hash_of(text: bytes, seed: tuple[int, int]) -> int:
    """The core's hash of a text of 16 bytes."""
    a, b = (int.from_bytes(text[i : i + 8], "little") for i in (0, 8))
    product = (a ^ seed[0]) * (b ^ seed[1] ^ len(text))
    return (product ^ product >> 64) % 2**64


def probes(hashes: np.ndarray, size: int) -> int:
    """How many slots are looked at to enter them all into a table of this size, one after the other."""
    taken, looked = set(), 0
    for slot in (hashes % np.uint64(size)).tolist():
        while looked := looked + 1:
            if slot not in taken:
                break
            slot = (slot + 1) % size
        taken.add(slot)
    return looked


def test_ids_made_to_share_a_hash_need_no_more_probes_than_others():
    ids, others = crafted(2000), [b"%016d" % i for i in range(2000)]
    known = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
    assert {hash_of(text, known) for text in ids} == {0}
    assert probes(np.zeros(2000, np.uint64), 4096) == 2000 * 2001 // 2
    for texts in (ids, others):
        block = Strings.of(texts)
        hashes = np.frombuffer(native._core.hashes(block.block, block.offsets), np.uint64)
        assert probes(hashes, 4096) < 2 * len(texts)  # 1.5 as a rule


def test_every_process_draws_its_own_hash():
    program = (
        "from cranfield.base.kernels import _core; print(_core.hashes(b'FT911-1', bytes(8) + b'\\7' + bytes(7)).hex())"
    )
    said = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(3)}
    assert len(said) == 3


@pytest.mark.parametrize("kernel", BOTH)
def test_a_run_of_ids_made_to_share_a_hash_is_scored_as_any_other(kernel):
    ids = crafted(500)
    run = b"".join(b"q Q0 %b %d %d t\n" % (name, i, -i) for i, name in enumerate(ids, 1))
    found = kernel.hits_of_text(index_of(kernel, {b"q": ids[::7]}), run, RUN, Order())
    assert found.rank.tolist() == list(range(1, 501, 7))
