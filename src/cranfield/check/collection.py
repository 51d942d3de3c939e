"""What ruins experiments with a collection: each problem found, none of them fatal to the search.

Findings have the form of those about files, and the judgments' file is checked as one too. The documents are read
once; what is kept of them is a number a document and the words of those that are judged.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.catalogue import CATALOGUE
from cranfield.check.closeness import Closeness, Sample, words
from cranfield.check.findings import Findings, by_severity
from cranfield.collection import Collection, Qrels
from cranfield.columns import counted
from cranfield.errors import DataError
from cranfield.findings import Finding
from cranfield.formats import folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cranfield.catalogue import Entry
    from cranfield.collection import Document
    from cranfield.formats.folder import Progress


FEW, BETTER = 50, 200  # topics, as the lectures have it
SPARSE, DENSE = 5, 50  # judgments a topic
ABREAST = 0.1  # own text among so many of the closest: as it should be
SHIFTED = 0.4  # fewer topics abreast than this: the judgments belong to other texts
FITS_BETTER = 0.3  # another numbering has to win by so much
REVERSED, SURE = -0.1, -3.0  # mean concordance, and how many standard errors below 0
OUTLYING = 3.5  # robust standard deviations: Iglewicz & Hoaglin (1993)
ENOUGH = 100  # documents, to say of a word that none has it


def check_collection(collection: Collection | str, progress: Progress = None) -> Findings:
    """Look for whatever would ruin experiments with a collection, gravest first."""
    opened = folder.read_collection(collection) if isinstance(collection, str) else collection
    return Findings(by_severity(_Examined(_readable(opened)).findings(progress)))


def _readable(collection: Collection) -> Collection:
    """The collection itself; without judgments where these cannot be read, so that the rest is looked at all the same."""
    try:
        _ = collection.qrels
    except DataError:
        readable = copy(collection)
        readable.qrels = Qrels({})
        readable.meta = {key: each for key, each in collection.meta.items() if key not in ("counts", "catalogue")}
        return readable
    return collection


class _Examined:
    """A collection under examination."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.folder = collection.path or collection.name
        self.shown = collection.name if self.folder.startswith(folder.BUNDLED) else self.folder
        self.topics = collection.topics
        self.qrels = collection.qrels
        self.judged = set(self.qrels.documents.text())
        self.relevant = self.qrels.grade >= collection.relevant_from

    def findings(self, progress: Progress) -> Iterator[Finding]:
        """All that is found; the documents are read once."""
        sample = Sample(self.collection)
        documents = _Documents(self.collection, sample, progress)
        yield from self._look_at_documents(documents)
        yield from self._look_at_files(documents.count)
        if not documents.count:
            yield self._finding("no-documents", folder.DOCUMENTS, counted(len(self.topics), "topic"), 1)
        if not self.topics:
            yield self._finding("no-topics", folder.TOPICS, counted(documents.count, "document"), 1)
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
        return Finding.of(code, os.path.join(self.shown, file), detail, count, names=names)

    def _of(self, code: str, file: str, names: Sequence[str], noun: str, more: str = "") -> Iterator[Finding]:
        """A problem of some things, with the first few of their names; none where there are no such things."""
        if names:
            yield self._finding(code, file, f"{counted(len(names), noun)}{more}", len(names), names)

    # documents, in one pass

    def _look_at_documents(self, documents: _Documents) -> Iterator[Finding]:
        among = sum(name in self.judged for name in documents.empty)
        yield from self._of(
            "documents-empty", folder.DOCUMENTS, documents.empty, "document", f", {among} of them judged"
        )
        yield from self._of("ids-with-space", folder.DOCUMENTS, documents.spaced, "document")
        yield from self._of("documents-duplicate-id", folder.DOCUMENTS, documents.same_id(), "pair")
        yield from self._of("documents-duplicate-text", folder.DOCUMENTS, documents.same_text(), "pair")

    # files against collection.toml

    def _look_at_files(self, n_documents: int) -> Iterator[Finding]:
        """Hashes and counts as written down."""
        for name, expected in self.collection.meta.get("hashes", {}).items():
            path = os.path.join(self.folder, name)
            now = folder.hash_of(path) if os.path.exists(path) else "no such file"
            if now != expected:
                yield self._finding("hash-changed", name, f"expected {expected[:19]}…, found {now[:19]}…", 1)
        counts = {**self._counts(n_documents), "relevant": int(self.relevant.sum())}
        written = self.collection.meta.get("counts", {})
        changed = [
            f"{counted(count, what.removesuffix('s'))} instead of {written[what]:,}"
            for what, count in counts.items()
            if written.get(what, count) != count
        ]
        if changed:
            yield self._finding("count-changed", folder.META, ", ".join(changed), len(changed))

    def _counts(self, n_documents: int) -> dict[str, int]:
        return {"documents": n_documents, "topics": len(self.topics), "judgments": len(self.qrels)}

    # topics

    def _look_at_topics(self) -> Iterator[Finding]:
        """Empty, repeated, without a stated need."""
        texts = {topic.id: words(f"{topic.title} {topic.description}") for topic in self.topics}
        yield from self._of("topics-empty", folder.TOPICS, [name for name, text in texts.items() if not text], "topic")
        yield from self._of(
            "ids-with-space", folder.TOPICS, [name for name in texts if len(name.split()) != 1], "topic"
        )
        first: dict[str, str] = {}
        again = []
        for name, text in texts.items():
            key = " ".join(text)
            if text and first.setdefault(key, name) != name:
                again.append(f"{first[key]} = {name}")
        yield from self._of("topics-duplicate", folder.TOPICS, again, "pair")
        bare = sum(not topic.description and not topic.narrative for topic in self.topics)
        if bare:
            detail = f"{bare:,} of {counted(len(self.topics), 'topic')}"
            yield self._finding("topics-without-need", folder.TOPICS, detail, bare)

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
        yield from self._of(
            "topics-outlying", folder.TOPICS, far, "topic", f", where {np.expm1(middle):.0f} words are usual"
        )

    def _look_at_vocabulary(self, sample: Sample) -> Iterator[Finding]:
        if sample.n_documents < ENOUGH:
            return
        known = {word for word, i in sample.vocabulary.items() if sample.frequency[i]}
        foreign = [
            topic.id
            for topic, text in zip(sample.topics, sample.texts, strict=True)
            if text and 2 * len(text.keys() & known) < len(text)
        ]
        yield from self._of("topics-foreign", folder.TOPICS, foreign, "topic")

    # judgments

    def _look_at_judgments_file(self) -> Iterator[Finding]:
        """As any file of judgments."""
        from cranfield.check import check

        path = folder.file_in(self.folder, folder.QRELS)
        if os.path.exists(path) and os.path.getsize(path):
            shown = os.path.join(self.shown, os.path.basename(path))
            explained = {"grades-without-zero"} if self.collection.explains_grades else set()
            findings = [found for found in check(path, kind="qrels") if found.code not in explained]
            yield from (replace(found, file=shown) for found in findings)
        else:
            yield self._finding("no-judgments", folder.QRELS, counted(len(self.topics), "topic"), 1)

    def _look_at_judgments(self, unknown: set[str]) -> Iterator[Finding]:
        """Against topics and documents."""
        ids = {topic.id for topic in self.topics}
        judgments = Counter(self.qrels.topic.tolist())
        stray = {name: judgments[i] for i, name in enumerate(self.qrels.topics) if name not in ids}
        more = f" of {len(self.qrels.topics):,} with {counted(sum(stray.values()), 'judgment')}"
        yield from self._of("judged-topics-unknown", folder.QRELS, list(stray), "topic", more)
        yield from self._of("judged-documents-unknown", folder.QRELS, sorted(unknown), "document")
        judged = set(self.qrels.topics)
        unjudged = [topic.id for topic in self.topics if topic.id not in judged]
        if unjudged:
            detail = f"{len(unjudged):,} of {counted(len(self.topics), 'topic')}"
            yield self._finding("topics-unjudged", folder.TOPICS, detail, len(unjudged), unjudged)

    def _look_at_density(self) -> Iterator[Finding]:
        """How densely and evenly topics are judged."""
        topics, judgments, share = len(self.qrels.topics), len(self.qrels), self.relevant.mean()
        per_topic = judgments / topics
        if topics < FEW:
            yield self._finding("few-topics", folder.TOPICS, f"{topics:,}", topics)
        elif topics < BETTER and per_topic >= SPARSE:
            dense = "densely" if per_topic >= DENSE else "moderately"
            detail = f"{topics:,}, judged {dense} ({per_topic:.1f} judgments each)"
            yield self._finding("not-many-topics", folder.TOPICS, detail, topics)
        if per_topic < SPARSE:
            yield self._finding("judged-sparsely", folder.QRELS, f"{per_topic:.1f} judgments a topic", judgments)
        if share == 1 and len(set(self.qrels.grade.tolist())) > 1:  # of one grade alone the file's check has spoken
            yield self._finding("only-relevant-judged", folder.QRELS, counted(judgments, "judgment"), judgments)
        elif judgments >= 100 and not 0.01 <= share <= 0.9:
            yield self._finding("judged-imbalance", folder.QRELS, f"{share:.1%} are relevant", int(self.relevant.sum()))
        counts = np.bincount(self.qrels.topic[self.relevant], minlength=topics)
        few = int(np.searchsorted(np.cumsum(np.sort(counts)[::-1]), counts.sum() / 2) + 1)
        if topics >= 10 and counts.sum() and few <= topics / 10:
            relevant = counted(int(counts.sum()), "relevant document")
            detail = f"half of {relevant} are those of {counted(few, 'topic')} of {topics:,}"
            yield self._finding("relevant-imbalance", folder.QRELS, detail, few)

    def _look_at_names_of_grades(self) -> Iterator[Finding]:
        named = {grade for grade, each in self.collection.grades.items() if each.label or each.meaning}
        nameless = [f"{grade:g}" for grade in sorted(set(self.qrels.grade.tolist()) - named)]
        yield from self._of("grades-without-name", folder.META, nameless, "grade")

    # words

    def _look_at_words(self, sample: Sample) -> Iterator[Finding]:
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
            detail = (
                f"{share:.0%} of {counted(len(ranks), 'topic')} are among the texts closest to their relevant documents"
            )
            if wins:
                detail += f"; read {best}, {fits:.0%} would be"
            yield self._finding(
                "judgments-shifted", folder.QRELS, detail, sum(rank > ABREAST for rank in ranks.values())
            )
        else:
            off = [name for name, rank in ranks.items() if rank > 0.5]
            yield from self._of("topics-off-text", folder.TOPICS, off, "topic", f" of {len(ranks):,}")
        yield from self._look_at_order(close, better if wins else column)

    def _look_at_order(self, close: Closeness, column: dict[str, int]) -> Iterator[Finding]:
        agreement = np.array(list(close.concordance(column).values()))
        if len(agreement) < 5:
            return
        spread = float(agreement.std()) or 1e-9
        if agreement.mean() <= REVERSED and agreement.mean() / (spread / np.sqrt(len(agreement))) <= SURE:
            shown = ", ".join(f"grade {grade:g}: {value:+.2f}" for grade, value in close.by_grade(column).items())
            several = f"in {counted(len(agreement), 'topic')} with several grades"
            detail = f"{several}; closeness by grade, in standard deviations: {shown}"
            yield self._finding("grades-against-text", folder.QRELS, detail, len(agreement))

    # what is known elsewhere

    def _look_at_catalogue(self, n_documents: int) -> Iterator[Finding]:
        """Against the catalogue, if it knows the collection."""
        entry = CATALOGUE.get(str(self.collection.meta.get("catalogue", self.collection.name)).casefold())
        if entry is None:
            return
        odd = list(_differences(entry, self._counts(n_documents)))
        if odd:
            yield self._finding("catalogue-differs", folder.META, f"{entry.title}: {'; '.join(odd)}", len(odd))


class _Documents:
    """What is kept of the documents, which are read once: two numbers each, and the names of odd ones."""

    def __init__(self, collection: Collection, sample: Sample, progress: Progress) -> None:
        self.collection = collection
        self.count = 0
        self.empty: list[str] = []
        self.spaced: list[str] = []
        self.ids_judged: set[str] = set()
        self._ids, self._texts = array("q"), array("q")
        judged = set(collection.qrels.documents.text())
        for document in folder.read_documents(collection, progress):
            self.count += 1
            if document.id in judged:
                self.ids_judged.add(document.id)
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
        """Documents with equal keys; equal numbers are looked up in the documents themselves."""
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


def _differences(entry: Entry, now: dict[str, int]) -> Iterable[str]:
    for what, count in now.items():
        sides = {"taught": entry.lecture, "published": entry.published}
        known = {who: side[what] for who, side in sides.items() if what in side}
        here = counted(count, what.removesuffix("s"))
        if known and count not in known.values():
            yield f"{here}, where {' and '.join(f'{value:,.0f} are {who}' for who, value in known.items())}"
        elif len(set(known.values())) > 1:
            yield f"{here} ({', '.join(f'{value:,.0f} {who}' for who, value in known.items())})"
