"""Checks of a collection: every problem that would ruin experiments with it is reported.

Findings have the form of those about files, and the judgments' file is checked as one too. The documents are read once;
only one number per document and the words of judged documents are kept.

Word overlap shows judgments that belong to other topics. A system that only matches words finds most relevant documents, so
the relevant documents of a topic are closer to its text than to the texts of other topics, and better grades are closer
than worse ones. If that fails for a whole collection, the topic numbers or the order of the grades are wrong. Similarity is
BM25 on titles and texts, standardised by the mean and spread of each topic's text, so that a long or vague topic gains
nothing.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cranfield.base.card import IMAGE, TEXT, TITLE, image_paths, is_address, is_named
from cranfield.base.errors import DataError
from cranfield.base.findings import Finding
from cranfield.base.qrels import Qrels
from cranfield.base.text_layout import counted
from cranfield.collections.check import Findings, by_severity, check
from cranfield.formats.catalogue import CATALOGUE
from cranfield.formats.collection_folder import (
    BUNDLED,
    DOCUMENTS,
    META,
    QRELS,
    TOPICS,
    file_in,
    hash_of,
    read_collection,
    read_documents,
)
from cranfield.formats.images import HEAD, read_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cranfield.base.card import CardTemplate
    from cranfield.base.collection import Collection, Document
    from cranfield.formats.catalogue import CatalogueEntry
    from cranfield.formats.collection_folder import Progress


Array = npt.NDArray[Any]

WORD = re.compile(r"[^\W_]+")
MOST_TOPICS = 400  # most judged topics to look at
TEXTS = 2000  # with more topics, only the texts of the topics in the sample are compared
PER_TOPIC = 30  # most documents per topic
K1, B = 1.2, 0.75
COLLECTION_FOLDER = "collection"  # of a workspace, whose images may be next to it
TOO_COMMON = 0.25  # words in a larger share of the documents are ignored


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> words("Wing-body flutter, 1958.")
    ['wing', 'body', 'flutter', '1958']
    """
    return WORD.findall(text.lower())


class WordSample:
    """A sample of judged topics and their documents, with word frequencies; filled while documents are read."""

    def __init__(self, collection: Collection, seed: int = 0) -> None:
        self.judged = _judged(collection, np.random.default_rng(seed))
        self.whole = len(collection.topics) <= TEXTS
        self.topics = [topic for topic in collection.topics if self.whole or topic.id in self.judged]
        texts = [words(f"{topic.title} {topic.description}") for topic in self.topics]
        self.vocabulary = {word: i for i, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        self.texts = [Counter(text) for text in texts]
        self.judged_ids = {document for documents in self.judged.values() for document in documents}
        self.held: dict[str, tuple[Counter[str], int]] = {}
        self.frequency = np.zeros(len(self.vocabulary), np.int64)
        self.n_documents = self.n_words = 0

    def add(self, document: Document, text: Sequence[str]) -> None:
        """Count the words of a document."""
        self.n_documents += 1
        self.n_words += len(text)
        words = self.vocabulary.keys() & set(text)
        for word in words:
            self.frequency[self.vocabulary[word]] += 1
        if document.id in self.judged_ids:
            self.held[document.id] = Counter(word for word in text if word in words), len(text)


def _judged(collection: Collection, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Documents of each judged topic; the same number of each grade where there are too many."""
    judged = collection.qrels.to_dict()
    names = list(judged)
    if len(names) > MOST_TOPICS:
        names = [names[i] for i in sorted(rng.choice(len(names), MOST_TOPICS, replace=False).tolist())]
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
    """How close relevant documents are to the texts of their own and other topics, and how closeness follows grades."""

    def __init__(self, sample: WordSample, relevant_from: float) -> None:
        self.sample = sample
        self.relevant_from = relevant_from
        self.column = {topic.id: i for i, topic in enumerate(sample.topics)}
        self._pairs = [(t, d) for t, documents in sample.judged.items() for d in documents if d in sample.held]
        self._grades = np.array([sample.judged[t][d] for t, d in self._pairs])
        self.silent: set[int] = set()  # texts that share no word with any judged document
        self._similarity = self._measured([d for _, d in self._pairs])

    def _measured(self, documents: list[str]) -> Array:
        """BM25 of documents × topic texts, standardised by the mean and the spread of each text."""
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
        """For each judged topic, the share of texts that its documents are closer to than to the text in its column."""
        others = max(close.shape[1] - 1, 1)
        return {
            name: 1.0 if column[name] in self.silent else float((row > row[column[name]]).sum() / others)
            for name, row in zip(names, close, strict=True)
            if name in column
        }

    def concordance(self, column: Mapping[str, int]) -> dict[str, float]:
        """For each topic with several grades: how often the better of two grades is closer, minus how often not."""
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
            shifted = {n: str(i + shift) for n, i in numbers.items()}
            answer[f"by numbers {way}"] = {n: self.column[to] for n, to in shifted.items() if to in self.column}
            way = f"{abs(shift)} place{'s' if abs(shift) > 1 else ''} {'further down' if shift > 0 else 'further up'}"
            answer[way] = {n: self.column[n] + shift for n in names if n in self.column}
        return {way: {n: i for n, i in held.items() if 0 <= i < len(listed)} for way, held in answer.items()}


FEW, BETTER = 50, 200  # numbers of topics that the lectures recommend
SPARSE, DENSE = 5, 50  # judgments per topic
ABREAST = 0.1  # a topic is sound if its own text is among this share of the closest texts
SHIFTED = 0.4  # with a smaller share of sound topics, the judgments belong to other texts
FITS_BETTER = 0.3  # another numbering is reported if it fits better by this share
REVERSED, SURE = -0.1, -3.0  # mean concordance, and how many standard errors below 0
OUTLYING = 3.5  # robust standard deviations: Iglewicz & Hoaglin (1993)
ENOUGH = 100  # documents; with fewer, it means little that no document has a word


def check_collection(collection: Collection | str, progress: Progress = None) -> Findings:
    """Report the problems of a collection, the most severe first."""
    opened = read_collection(collection) if isinstance(collection, str) else collection
    return Findings(by_severity(_Examined(_readable(opened)).findings(progress)))


def _readable(collection: Collection) -> Collection:
    """The collection; without judgments if these cannot be read, so that the rest is still checked."""
    try:
        _ = collection.qrels
    except DataError:
        readable = copy(collection)
        readable.qrels = Qrels({})
        readable.meta = {key: each for key, each in collection.meta.items() if key not in ("counts", "catalogue")}
        return readable
    return collection


class _Examined:
    """A collection under check."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.folder = collection.path or collection.name
        self.label = collection.name if self.folder.startswith(BUNDLED) else self.folder
        self.topics = collection.topics
        self.qrels = collection.qrels
        self.judged = set(self.qrels.documents.text())
        self.relevant = self.qrels.grade >= collection.relevant_from

    def findings(self, progress: Progress) -> Iterator[Finding]:
        """All findings; the documents are read once."""
        sample = WordSample(self.collection)
        documents = _Documents(self.collection, sample, progress)
        yield from self._look_at_documents(documents)
        yield from self._look_at_card(documents.card)
        yield from self._look_at_files(documents.count)
        if not documents.count:
            yield self._finding("no-documents", DOCUMENTS, counted(len(self.topics), "topic"), 1)
        if not self.topics:
            yield self._finding("no-topics", TOPICS, counted(documents.count, "document"), 1)
        yield from self._look_at_topics()
        yield from self._look_at_lengths()
        yield from self._look_at_vocabulary(sample)
        yield from self._look_at_judgments_file()
        if len(self.qrels):
            yield from self._look_at_judgments(self.judged - documents.ids_judged)
            yield from self._look_at_density()
            yield from self._look_at_names_of_grades()
            yield from self._look_at_words(sample)
        yield from self._look_at_catalogue(documents.count)

    def _finding(self, code: str, file: str, detail: str, count: int, names: Sequence[str] = ()) -> Finding:
        return Finding.of(code, os.path.join(self.label, file), detail, count, names=names)

    def _of(self, code: str, file: str, names: Sequence[str], noun: str, more: str = "") -> Iterator[Finding]:
        """A finding that lists the first of some names; none if there are no names."""
        if names:
            yield self._finding(code, file, f"{counted(len(names), noun)}{more}", len(names), names)

    # documents, in one pass

    def _look_at_documents(self, documents: _Documents) -> Iterator[Finding]:
        among = sum(name in self.judged for name in documents.empty)
        yield from self._of("documents-empty", DOCUMENTS, documents.empty, "document", f", {among} of them judged")
        yield from self._of("ids-with-space", DOCUMENTS, documents.spaced, "document")
        yield from self._of("documents-duplicate-id", DOCUMENTS, documents.same_id(), "pair")
        yield from self._of("documents-duplicate-text", DOCUMENTS, documents.same_text(), "pair")

    def _look_at_card(self, card: _CardUse | None) -> Iterator[Finding]:
        """Compare the template of the card with the fields and images of the documents."""
        if card is None:
            return
        hosts = list(card.template.image_hosts)
        yield from self._of("card-image-hosts", META, hosts, "host")
        yield from self._of("card-field-missing", META, card.missing(), "field")
        yield from self._of("card-image-refused", DOCUMENTS, card.refused, "image")
        yield from self._of("card-image-elsewhere", DOCUMENTS, card.elsewhere, "image")

    # files against collection.toml

    def _look_at_files(self, n_documents: int) -> Iterator[Finding]:
        """Compare hashes and counts with collection.toml."""
        for name, expected in self.collection.meta.get("hashes", {}).items():
            path = os.path.join(self.folder, name)
            now = hash_of(path) if os.path.exists(path) else "no such file"
            if now != expected:
                yield self._finding("hash-changed", name, f"expected {expected[:19]}…, found {now[:19]}…", 1)
        counts = {**self._counts(n_documents), "relevant": int(self.relevant.sum())}
        recorded = self.collection.meta.get("counts", {})
        changed = [
            f"{counted(count, what.removesuffix('s'))} instead of {recorded[what]:,}"
            for what, count in counts.items()
            if recorded.get(what, count) != count
        ]
        if changed:
            yield self._finding("count-changed", META, ", ".join(changed), len(changed))

    def _counts(self, n_documents: int) -> dict[str, int]:
        return {"documents": n_documents, "topics": len(self.topics), "judgments": len(self.qrels)}

    # topics

    def _look_at_topics(self) -> Iterator[Finding]:
        """Empty and repeated topics, and topics without description."""
        texts = {topic.id: words(f"{topic.title} {topic.description}") for topic in self.topics}
        yield from self._of("topics-empty", TOPICS, [name for name, text in texts.items() if not text], "topic")
        yield from self._of("ids-with-space", TOPICS, [name for name in texts if len(name.split()) != 1], "topic")
        first: dict[str, str] = {}
        again = []
        for name, text in texts.items():
            key = " ".join(text)
            if text and first.setdefault(key, name) != name:
                again.append(f"{first[key]} = {name}")
        yield from self._of("topics-duplicate", TOPICS, again, "pair")
        bare = sum(not topic.description and not topic.narrative for topic in self.topics)
        if bare:
            detail = f"{bare:,} of {counted(len(self.topics), 'topic')}"
            yield self._finding("topics-without-need", TOPICS, detail, bare)

    def _look_at_lengths(self) -> Iterator[Finding]:
        titles = {topic.id: words(topic.title) for topic in self.topics}
        if len(titles) < 10:
            return
        lengths = np.log1p([len(text) for text in titles.values()])
        middle = np.median(lengths)
        spread = max(float(np.median(np.abs(lengths - middle))) / 0.6745, 0.15)
        far = [
            f"{name} ({counted(len(text), 'word')})"
            for (name, text), score in zip(titles.items(), (lengths - middle) / spread, strict=True)
            if abs(score) > OUTLYING and text
        ]
        yield from self._of("topics-outlying", TOPICS, far, "topic", f", where {np.expm1(middle):.0f} words are usual")

    def _look_at_vocabulary(self, sample: WordSample) -> Iterator[Finding]:
        if sample.n_documents < ENOUGH:
            return
        vocabulary = {word for word, i in sample.vocabulary.items() if sample.frequency[i]}
        pairs = zip(sample.topics, sample.texts, strict=True)
        foreign = [topic.id for topic, text in pairs if text and 2 * len(text.keys() & vocabulary) < len(text)]
        yield from self._of("topics-foreign", TOPICS, foreign, "topic")

    # judgments

    def _look_at_judgments_file(self) -> Iterator[Finding]:
        """Check the qrels file like any qrels file."""
        path = file_in(self.folder, QRELS)
        if os.path.exists(path) and os.path.getsize(path):
            label = os.path.join(self.label, os.path.basename(path))
            explained = {"grades-without-zero"} if self.collection.explains_grades else set()
            findings = [finding for finding in check(path, kind="qrels") if finding.code not in explained]
            yield from (replace(finding, file=label) for finding in findings)
        else:
            yield self._finding("no-judgments", QRELS, counted(len(self.topics), "topic"), 1)

    def _look_at_judgments(self, unknown: set[str]) -> Iterator[Finding]:
        """Check the judgments against topics and documents."""
        ids = {topic.id for topic in self.topics}
        judgments = Counter(self.qrels.topic.tolist())
        stray = {name: judgments[i] for i, name in enumerate(self.qrels.topics) if name not in ids}
        more = f" of {len(self.qrels.topics):,} with {counted(sum(stray.values()), 'judgment')}"
        yield from self._of("judged-topics-unknown", QRELS, list(stray), "topic", more)
        yield from self._of("judged-documents-unknown", QRELS, sorted(unknown), "document")
        judged = set(self.qrels.topics)
        unjudged = [topic.id for topic in self.topics if topic.id not in judged]
        if unjudged:
            detail = f"{len(unjudged):,} of {counted(len(self.topics), 'topic')}"
            yield self._finding("topics-unjudged", TOPICS, detail, len(unjudged), unjudged)

    def _look_at_density(self) -> Iterator[Finding]:
        """How densely and evenly topics are judged."""
        topics, judgments, share = len(self.qrels.topics), len(self.qrels), self.relevant.mean()
        per_topic = judgments / topics
        if topics < FEW:
            yield self._finding("few-topics", TOPICS, f"{topics:,}", topics)
        elif topics < BETTER and per_topic >= SPARSE:
            dense = "densely" if per_topic >= DENSE else "moderately"
            detail = f"{topics:,}, judged {dense} ({per_topic:.1f} judgments each)"
            yield self._finding("not-many-topics", TOPICS, detail, topics)
        if per_topic < SPARSE:
            yield self._finding("judged-sparsely", QRELS, f"{per_topic:.1f} judgments a topic", judgments)
        if share == 1 and len(set(self.qrels.grade.tolist())) > 1:  # the check of the file reports a single grade
            yield self._finding("only-relevant-judged", QRELS, counted(judgments, "judgment"), judgments)
        elif judgments >= 100 and not 0.01 <= share <= 0.9:
            yield self._finding("judged-imbalance", QRELS, f"{share:.1%} are relevant", int(self.relevant.sum()))
        counts = np.bincount(self.qrels.topic[self.relevant], minlength=topics)
        few = int(np.searchsorted(np.cumsum(np.sort(counts)[::-1]), counts.sum() / 2) + 1)
        if topics >= 10 and counts.sum() and few <= topics / 10:
            relevant = counted(int(counts.sum()), "relevant document")
            detail = f"half of {relevant} are those of {counted(few, 'topic')} of {topics:,}"
            yield self._finding("relevant-imbalance", QRELS, detail, few)

    def _look_at_names_of_grades(self) -> Iterator[Finding]:
        named = {grade for grade, each in self.collection.grades.items() if each.label or each.meaning}
        nameless = [f"{grade:g}" for grade in sorted(set(self.qrels.grade.tolist()) - named)]
        yield from self._of("grades-without-name", META, nameless, "grade")

    # words

    def _look_at_words(self, sample: WordSample) -> Iterator[Finding]:
        """Whether the judged documents are about their topics, and better grades more so."""
        close = Closeness(sample, self.collection.relevant_from)
        names, similarity = close.of_topics()
        if len(names) < 5 or len(self.topics) < 5:
            return
        column = {name: close.column[name] for name in names if name in close.column}
        ranks = close.ranks(column, names, similarity)
        share = _abreast(ranks)
        as_given = share * len(ranks) / len(names)
        best, better, fits = "", column, as_given
        for way, other in close.numberings(names).items() if sample.whole else ():
            renumbered = close.ranks(other, names, similarity)
            would = _abreast(renumbered) * len(renumbered) / len(names)
            if would > fits:
                best, better, fits = way, other, would
        wins = fits - as_given >= FITS_BETTER
        if share < SHIFTED or wins:
            closest = "are among the texts closest to their relevant documents"
            detail = f"{share:.0%} of {counted(len(ranks), 'topic')} {closest}"
            if wins:
                detail += f"; read {best}, {fits:.0%} would be"
            yield self._finding("judgments-shifted", QRELS, detail, sum(rank > ABREAST for rank in ranks.values()))
        else:
            off = [name for name, rank in ranks.items() if rank > 0.5]
            yield from self._of("topics-off-text", TOPICS, off, "topic", f" of {len(ranks):,}")
        yield from self._look_at_order(close, better if wins else column)

    def _look_at_order(self, close: Closeness, column: dict[str, int]) -> Iterator[Finding]:
        agreement = np.array(list(close.concordance(column).values()))
        if len(agreement) < 5:
            return
        spread = float(agreement.std()) or 1e-9
        if agreement.mean() <= REVERSED and agreement.mean() / (spread / np.sqrt(len(agreement))) <= SURE:
            closeness = ", ".join(f"grade {grade:g}: {value:+.2f}" for grade, value in close.by_grade(column).items())
            several = f"in {counted(len(agreement), 'topic')} with several grades"
            detail = f"{several}; closeness by grade, in standard deviations: {closeness}"
            yield self._finding("grades-against-text", QRELS, detail, len(agreement))

    # what is known elsewhere

    def _look_at_catalogue(self, n_documents: int) -> Iterator[Finding]:
        """Compare the counts with the catalogue, if it contains the collection."""
        entry = CATALOGUE.get(str(self.collection.meta.get("catalogue", self.collection.name)).casefold())
        if entry is None:
            return
        odd = list(_differences(entry, self._counts(n_documents)))
        if odd:
            yield self._finding("catalogue-differs", META, f"{entry.title}: {'; '.join(odd)}", len(odd))


class _CardUse:
    """The fields and images of the documents that a template of cards shows."""

    def __init__(self, template: CardTemplate, folder: str) -> None:
        self.template = template
        self.seen: set[str] = {TITLE, TEXT}  # names of fields that some document has
        self.refused: list[str] = []
        self.elsewhere: list[str] = []
        inside = os.path.basename(os.path.abspath(folder)) == COLLECTION_FOLDER
        self._homes = [folder, os.path.dirname(os.path.abspath(folder))] if inside else [folder]

    def add(self, document: Document) -> None:
        """Check the fields of a document, and the first bytes of its images."""
        self.seen |= document.fields.keys()
        for field in self.template.shown_fields:
            for path in image_paths(document, field) if field.type == IMAGE else ():
                if not is_address(path):
                    self._look_at(document.id, path)
                elif not is_named(path, self.template.image_hosts):
                    self.elsewhere.append(f"{document.id}: {path}")

    def _look_at(self, document: str, path: str) -> None:
        try:
            read_image(self._homes, path, most=HEAD)
        except DataError as error:
            self.refused.append(f"{document}: {error}")

    def missing(self) -> list[str]:
        """The template's own fields that no document has; a ready-made template lists more than most collections have."""
        return [field.name for field in self.template.fields if field.name not in self.seen]


class _Documents:
    """Facts about the documents from one pass: two numbers per document, and the ids of odd ones."""

    def __init__(self, collection: Collection, sample: WordSample, progress: Progress) -> None:
        self.collection = collection
        self.count = 0
        self.empty: list[str] = []
        self.spaced: list[str] = []
        self.ids_judged: set[str] = set()
        self._ids, self._texts = array("q"), array("q")
        self.card = None if collection.card is None else _CardUse(collection.card, collection.path or "")
        judged = set(collection.qrels.documents.text())
        for document in read_documents(collection, progress):
            self.count += 1
            if document.id in judged:
                self.ids_judged.add(document.id)
            if self.card is not None:
                self.card.add(document)
            text = words(f"{document.title} {document.text}")
            sample.add(document, text)
            self._ids.append(hash(document.id))
            self._texts.append(hash(" ".join(text)) if text else -self.count)
            if not text:
                self.empty.append(document.id)
            if len(document.id.split()) != 1:
                self.spaced.append(document.id)

    def same_id(self) -> list[str]:
        """The ids that occur again."""
        return [again for _, again in self._repeated(self._ids, lambda document: document.id)]

    def same_text(self) -> list[str]:
        """The documents whose words occur again, as pairs."""
        pairs = self._repeated(self._texts, lambda document: " ".join(words(f"{document.title} {document.text}")))
        return [f"{first} = {again}" for first, again in pairs]

    def _repeated(self, numbers: array[int], key: Callable[[Document], str]) -> list[tuple[str, str]]:
        """Pairs of documents with equal keys; equal hashes are verified in the documents themselves."""
        values = np.frombuffer(numbers, np.int64)
        ordered = np.sort(values)
        again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        suspects = set(np.flatnonzero(np.isin(values, again)).tolist())
        first: dict[str, str] = {}
        pairs = []
        for place, document in enumerate(self.collection.documents() if suspects else ()):
            if place in suspects:
                same = key(document)
                if same in first:
                    pairs.append((first[same], document.id))
                first.setdefault(same, document.id)
        return pairs


def _abreast(ranks: dict[str, float]) -> float:
    return sum(rank <= ABREAST for rank in ranks.values()) / max(len(ranks), 1)


def _differences(entry: CatalogueEntry, now: dict[str, int]) -> Iterable[str]:
    for what, count in now.items():
        sides = {"taught": entry.lecture, "published": entry.published}
        references = {who: side[what] for who, side in sides.items() if what in side}
        here = counted(count, what.removesuffix("s"))
        if references and count not in references.values():
            yield f"{here}, where {' and '.join(f'{value:,.0f} are {who}' for who, value in references.items())}"
        elif len(set(references.values())) > 1:
            yield f"{here} ({', '.join(f'{value:,.0f} {who}' for who, value in references.items())})"
