"""How close the judged documents are to the topics, word by word: enough to see judgments that belong to other topics.

A system that only matches words finds most relevant documents. So the documents judged relevant to a topic are closer
to its text than to the texts of the other topics, and better grades are closer than worse ones. Where that fails for a
whole collection, the numbers of the topics or the order of the grades are wrong, hardly the language. Similarity is that of
BM25 on titles and texts, set against the mean and spread of each topic's text, so that a long or vague topic wins nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cranfield.collection import Collection, Document


Array = npt.NDArray[Any]

WORD = re.compile(r"[^\W_]+")
TOPICS = 400  # judged topics that are looked at, at the most
TEXTS = 2000  # topics whose texts are all compared; of more, only those that are looked at
PER_TOPIC = 30  # documents of a topic, at the most
K1, B = 1.2, 0.75
TOO_COMMON = 0.25  # a word in more documents than this says nothing


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> words("Wing-body flutter, 1958.")
    ['wing', 'body', 'flutter', '1958']
    """
    return WORD.findall(text.lower())


class Sample:
    """Some judged topics, some documents of each, and what the topics' words weigh; filled while documents stream by."""

    def __init__(self, collection: Collection, seed: int = 0) -> None:
        self.judged = _judged(collection, np.random.default_rng(seed))
        self.whole = len(collection.topics) <= TEXTS
        self.topics = [topic for topic in collection.topics if self.whole or topic.id in self.judged]
        texts = [words(f"{topic.title} {topic.description}") for topic in self.topics]
        self.vocabulary = {word: i for i, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        self.texts = [Counter(text) for text in texts]
        self.wanted = {document for documents in self.judged.values() for document in documents}
        self.held: dict[str, tuple[Counter[str], int]] = {}
        self.frequency = np.zeros(len(self.vocabulary), np.int64)
        self.n_documents = self.n_words = 0

    def add(self, document: Document, text: Sequence[str]) -> None:
        """Take note of a document and of its words."""
        self.n_documents += 1
        self.n_words += len(text)
        known = self.vocabulary.keys() & set(text)
        for word in known:
            self.frequency[self.vocabulary[word]] += 1
        if document.id in self.wanted:
            self.held[document.id] = Counter(word for word in text if word in known), len(text)


def _judged(collection: Collection, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Documents of each judged topic; the same number of each grade where there are too many."""
    judged = collection.qrels.to_dict()
    names = list(judged)
    if len(names) > TOPICS:
        names = [names[i] for i in sorted(rng.choice(len(names), TOPICS, replace=False).tolist())]
    answer = {}
    for name in names:
        rows = list(judged[name].items())
        if len(rows) > PER_TOPIC:
            turn: Counter[float] = Counter()
            turns = []
            for i in rng.permutation(len(rows)).tolist():
                turn[rows[i][1]] += 1
                turns.append((turn[rows[i][1]], rows[i]))
            rows = [row for _, row in sorted(turns, key=lambda each: each[0])[:PER_TOPIC]]
        answer[name] = dict(rows)
    return answer


class Closeness:
    """Each judged topic's relevant documents against each topic's text, and each topic's grades against closeness."""

    def __init__(self, sample: Sample, relevant_from: float) -> None:
        self.sample = sample
        self.relevant_from = relevant_from
        self.column = {topic.id: i for i, topic in enumerate(sample.topics)}
        self._pairs = [(t, d) for t, documents in sample.judged.items() for d in documents if d in sample.held]
        self._grades = np.array([sample.judged[t][d] for t, d in self._pairs])
        self.silent: set[int] = set()  # texts that share no word with any judged document
        self._similarity = self._measured([d for _, d in self._pairs])

    def _measured(self, documents: list[str]) -> Array:
        """Documents × topics' texts: BM25, then less the mean and over the spread of each text."""
        sample = self.sample
        n = max(sample.n_documents, 1)
        idf = np.log(1 + (n - sample.frequency + 0.5) / (sample.frequency + 0.5))
        idf[sample.frequency > max(TOO_COMMON * n, 1)] = 0
        mean_length = max(sample.n_words / n, 1)
        cells: tuple[list[int], list[int], list[float]] = [], [], []
        for row, document in enumerate(documents):
            counts, length = sample.held[document]
            for word, count in counts.items():
                column = sample.vocabulary[word]
                cells[0].append(row)
                cells[1].append(column)
                cells[2].append(count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean_length)) * idf[column])
        from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

        weights = csr_array((cells[2], cells[:2]), shape=(len(documents), len(sample.vocabulary)))
        inside = [(sample.vocabulary[word], i) for i, text in enumerate(sample.texts) for word in text]
        shape = (len(sample.vocabulary), len(sample.texts))
        texts = csr_array((np.ones(len(inside)), tuple(np.array(inside).reshape(-1, 2).T)), shape=shape)
        scores: Array = np.asarray((weights @ texts).todense(), float)
        if not len(scores):
            return scores
        spread = scores.std(0)
        self.silent = set(np.flatnonzero(spread == 0).tolist())
        standard: Array = (scores - scores.mean(0)) / np.where(spread > 0, spread, 1)
        return standard

    def of_topics(self) -> tuple[list[str], Array]:
        """The judged topics that have relevant documents, and how close these are on average to each topic's text."""
        rows = self._by_topic(np.flatnonzero(self._grades >= self.relevant_from))
        if not rows:
            return [], np.zeros((0, len(self.column)))
        return list(rows), np.stack([self._similarity[which].mean(0) for which in rows.values()])

    def _by_topic(self, rows: Array) -> dict[str, list[int]]:
        by_topic: dict[str, list[int]] = {}
        for row in rows.tolist():
            by_topic.setdefault(self._pairs[row][0], []).append(row)
        return by_topic

    def ranks(self, column: Mapping[str, int], names: Sequence[str], close: Array) -> dict[str, float]:
        """For each judged topic, the share of texts that its documents are closer to than to the one in its column."""
        others = max(close.shape[1] - 1, 1)
        return {
            name: 1.0 if column[name] in self.silent else float((row > row[column[name]]).sum() / others)
            for name, row in zip(names, close, strict=True)
            if name in column
        }

    def concordance(self, column: Mapping[str, int]) -> dict[str, float]:
        """For each topic with several grades: how often the better of two grades is the closer, less how often it is not."""
        answer = {}
        for topic, rows in self._by_topic(np.arange(len(self._pairs))).items():
            grade = self._grades[rows]
            better = grade[:, None] > grade[None, :]
            if topic in column and better.any():
                close = self._similarity[rows, column[topic]]
                answer[topic] = float(np.sign(close[:, None] - close[None, :])[better].mean())
        return answer

    def by_grade(self, column: Mapping[str, int]) -> dict[float, float]:
        """How close the documents of each grade are to their topic, on average."""
        closeness: dict[float, list[float]] = {}
        for row, (topic, _) in enumerate(self._pairs):
            if topic in column:
                closeness.setdefault(float(self._grades[row]), []).append(self._similarity[row, column[topic]])
        return {grade: float(np.mean(values)) for grade, values in sorted(closeness.items())}

    def numberings(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Other ways to read the judgments' topic numbers: which text each name would stand for."""
        listed = self.sample.topics
        own = {str(topic.fields.get("given_id", topic.id)): i for i, topic in enumerate(listed)}
        numbers = {name: int(name) for name in names if name.isdigit() and len(name) < 10}
        answer = {
            "by position in the topics' file, counted from 1": {n: i - 1 for n, i in numbers.items()},
            "by position in the topics' file, counted from 0": dict(numbers),
            "by the ids that the topics came with": {n: own[n] for n in names if n in own},
        }
        for shift in (-3, -2, -1, 1, 2, 3):
            way = f"{abs(shift)} {'higher' if shift > 0 else 'lower'}"
            answer[f"by numbers {way}"] = {
                n: self.column[str(i + shift)] for n, i in numbers.items() if str(i + shift) in self.column
            }
            way = f"{abs(shift)} place{'s' if abs(shift) > 1 else ''} {'further down' if shift > 0 else 'further up'}"
            answer[way] = {n: self.column[n] + shift for n in names if n in self.column}
        return {way: {n: i for n, i in held.items() if 0 <= i < len(listed)} for way, held in answer.items()}
