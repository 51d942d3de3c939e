"""Stems and their weights: against Porter's stemmer, against scikit-learn's TF-IDF, in memory and on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import cranfield
from cranfield.base.errors import DataError
from cranfield.pooling import text_features
from cranfield.pooling.text_features import DocumentTexts, TermCounts, open_features, stem, words_of

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["the wing lifts the wings", "lifting wing", "a stone falls", ""]


def test_stems_against_the_snowball_stemmer_of_porter() -> None:
    peer = pytest.importorskip("Stemmer").Stemmer("porter")
    words = {word for each in cranfield.read_collection("allotment").documents() for word in words_of(each.text)}
    words |= set(
        "relational conditional hopefulness electriciti formalize revival adjustment falling filing agreed".split()
    )
    english = sorted(word for word in words if text_features.ENGLISH.fullmatch(word))
    assert [stem(word) for word in english] == peer.stemWords(english)


def test_weights_against_scikit_learn() -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    counts = CountVectorizer(tokenizer=lambda text: [stem(word) for word in words_of(text)], token_pattern=None)
    table = counts.fit_transform(TEXTS).toarray()
    rarity = np.log(len(TEXTS) / (table > 0).sum(axis=0))
    weights = np.where(table > 0, 1 + np.log(np.maximum(table, 1)), 0) * rarity
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    expected = weights / np.where(lengths > 0, lengths, 1)
    rows = TermCounts.of(TEXTS).rows(range(len(TEXTS))).matrix.toarray()
    assert rows @ rows.T == pytest.approx(expected @ expected.T, abs=1e-6)


def test_words_that_no_document_contains_are_ignored() -> None:
    counts = TermCounts.of(TEXTS)
    alone, with_others = (counts.rows([], [text]).matrix for text in ("stone", "stone zebra"))
    assert (alone.toarray() == with_others.toarray()).all()


def test_an_index_on_disk_has_the_rows_of_memory(tmp_path: Path) -> None:
    collection = cranfield.read_collection("allotment")
    memory, disk = DocumentTexts.of(collection), open_features("allotment", str(tmp_path))
    names = list(memory.documents)[:40]
    assert memory.rows(names) == disk.rows(names)
    topic = next(iter(memory.topics))
    assert memory.topic(topic) == disk.topic(topic)
    assert memory.text(names[0]) == disk.text(names[0])
    ours, theirs = (each.terms.rows(each.rows(names), [each.topic(topic)]) for each in (memory, disk))
    assert (ours.columns == theirs.columns).all()
    assert (ours.matrix != theirs.matrix).nnz == 0


def test_an_index_is_made_once_and_again_when_the_documents_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "documents.jsonl").write_text('{"id": "a", "text": "one wing"}\n')
    assert len(open_features(str(home), str(tmp_path / "index")).terms) == 1
    with monkeypatch.context() as patch:
        patch.setattr(text_features, "_write_counts", lambda *_: pytest.fail("made again"))
        assert len(open_features(str(home), str(tmp_path / "index")).terms) == 1
    (home / "documents.jsonl").write_text('{"id": "a", "text": "one wing"}\n{"id": "b", "text": "two"}\n')
    features = open_features(str(home), str(tmp_path / "index"))
    assert (len(features.terms), features.row("b"), features.row("c")) == (2, 1, None)


def test_texts_that_are_missing_are_named() -> None:
    texts = DocumentTexts({"a": "wing"}, {"1": "lift"})
    with pytest.raises(DataError, match="'b' is not among the 1 of the collection"):
        texts.rows(["a", "b"])
    with pytest.raises(DataError, match="topic '2' is not among"):
        texts.topic("2")
    assert texts.text("b") == ""


def test_remembered_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_features, "KNOWN_WORDS", 2)
    columns = text_features.WordColumns()
    assert [columns[word] for word in "abcab"] == [text_features.column_of(word) for word in "abcab"]
    assert len(columns) <= 2
