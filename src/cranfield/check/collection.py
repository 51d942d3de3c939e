"""What ruins experiments with a collection: each problem found, none of them fatal to the search.

Findings have the form of those about files, and the judgments' file is checked as one too. The documents are read
once; what is kept of them is a number a document and the words of those that are judged.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.catalogue import CATALOGUE
from cranfield.check.closeness import Closeness, Sample, words
from cranfield.check.file import n_of, show
from cranfield.check.findings import SEVERITIES, Code, Finding
from cranfield.collection import Collection, Qrels
from cranfield.errors import DataError
from cranfield.formats.folder import BUNDLED, DOCUMENTS, META, QRELS, TOPICS, file_in, hash_of, read_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.catalogue import Entry


FEW, BETTER = 50, 200  # topics, as the lectures have it
SPARSE, DENSE = 5, 50  # judgments a topic
ABREAST = 0.1  # own text among so many of the closest: as it should be
SHIFTED = 0.4  # fewer topics abreast than this: the judgments belong to other texts
FITS_BETTER = 0.3  # another numbering has to win by so much
REVERSED, SURE = -0.1, -3.0  # mean concordance, and how many standard errors below 0
OUTLYING = 3.5  # robust standard deviations: Iglewicz & Hoaglin (1993)
SHOWN = 5
ENOUGH = 100  # documents, to say of a word that none has it

COLLECTION_CODES: dict[str, Code] = {
    "hash-changed": Code(
        "warning",
        "a file that is not the one collection.toml was written for",
        "Scores on it are not those of the original; if the change is meant, write the new hashes with collection stamp.",
    ),
    "count-changed": Code(
        "warning",
        "counts other than those in collection.toml",
        "Something was added or lost; if the change is meant, write the new counts with collection stamp.",
    ),
    "catalogue-differs": Code(
        "note", "counts other than those known of this collection", "Copies differ; say which one you used."
    ),
    "documents-empty": Code(
        "note", "documents without a word", "No system can find them; a judged one among them costs everybody recall."
    ),
    "documents-duplicate-id": Code(
        "error", "documents with the same id", "A judgment cannot say which of them is meant; give each its own."
    ),
    "documents-duplicate-text": Code(
        "note",
        "documents with the same words",
        "A system is rewarded or punished twice for one text; judge them alike or remove one.",
    ),
    "ids-with-space": Code(
        "error", "ids with white space in them", "They cannot stand in TREC files; replace the white space."
    ),
    "no-documents": Code("error", "no documents", "There is nothing to find; is the file the right one?"),
    "no-topics": Code("warning", "no topics", "Nothing is asked of the documents yet; write some, with descriptions."),
    "no-judgments": Code(
        "warning", "no judgments", "Nothing can be scored yet; pool some runs and judge what they return."
    ),
    "topics-duplicate": Code(
        "warning", "topics that ask the same", "They count twice in every mean; are their judgments meant to be merged?"
    ),
    "topics-empty": Code("error", "topics without a word", "Nothing can be searched for them."),
    "topics-without-need": Code(
        "note",
        "topics with neither description nor narrative",
        "Assessors judge the words then, and not the need behind them.",
    ),
    "topics-unjudged": Code("note", "topics that nobody judged", "They are left out of every score."),
    "judged-topics-unknown": Code(
        "error",
        "judgments for topics that the collection has not got",
        "No system can answer them; are topics and judgments numbered alike?",
    ),
    "judged-documents-unknown": Code(
        "error",
        "judgments for documents that the collection has not got",
        "The relevant ones among them can never be found, which lowers every recall.",
    ),
    "judgments-shifted": Code(
        "error",
        "judgments that look as if they belonged to other topics",
        "Relevant documents share words with their topic; these do not. Every score would be noise: find the right numbering.",
    ),
    "topics-off-text": Code(
        "note",
        "topics whose relevant documents are closer to most other topics' words",
        "Look whether the judgments are theirs; hard topics without common words look like this too.",
    ),
    "grades-against-text": Code(
        "warning",
        "grades that look reversed: the lower the grade, the closer to the topic",
        "Higher is better here. Turn the scale round, or look what the lowest grade stands for.",
    ),
    "grades-without-name": Code(
        "note", "grades without a name", "Say in collection.toml what each grade means, so that assessors judge alike."
    ),
    "few-topics": Code(
        "warning",
        f"fewer than {FEW} judged topics",
        "Differences between systems will hardly be significant, and single topics decide.",
    ),
    "not-many-topics": Code(
        "note", f"fewer than {BETTER} judged topics", "Enough for large differences; small ones want more topics."
    ),
    "judged-sparsely": Code(
        "note",
        "sparse judging",
        "Unless every document was looked at, most relevant ones are unjudged: prefer many topics and measures of the "
        "first hit (RR, Success), and mistrust small differences.",
    ),
    "only-relevant-judged": Code(
        "note",
        "only relevant documents are judged",
        "What was looked at and rejected is unknown: bpref and the share of judged documents say little.",
    ),
    "relevant-imbalance": Code(
        "note",
        "a few topics hold most of the relevant documents",
        "Sums over topics (micro-averages, relevant retrieved) speak for those few; means over topics do not.",
    ),
    "judged-imbalance": Code(
        "note",
        "relevant and other judgments are out of balance",
        "Of what was judged nearly all, or nearly nothing, is relevant: the pool was too shallow, or too easy.",
    ),
    "topics-outlying": Code(
        "note", "topics far longer or shorter than the others", "They are hardly representative of what is asked."
    ),
    "topics-foreign": Code(
        "warning",
        "topics most of whose words no document has",
        "They are in another language or about something else; systems that match words have no chance.",
    ),
}


def check_collection(
    collection: Collection | str, progress: Callable[[int, int | None], None] | None = None
) -> list[Finding]:
    """Look for whatever would ruin experiments with a collection, gravest first."""
    opened = read_collection(collection) if isinstance(collection, str) else collection
    about = _Examined(_readable(opened))
    about.look_at_documents(progress)
    about.look_at_files()
    about.look_at_topics()
    about.look_at_judgments_file()
    if len(about.qrels):
        about.look_at_judgments()
        about.look_at_words()
    about.look_at_catalogue()
    return sorted(about.findings, key=lambda found: SEVERITIES.index(found.severity))


def _readable(collection: Collection) -> Collection:
    """The collection itself; without judgments where these cannot be read, so that the rest is looked at all the same."""
    try:
        _ = collection.qrels
    except DataError:
        return Collection(
            collection.name,
            documents=collection.documents,
            topics=lambda: collection.topics,
            qrels=lambda: Qrels({}),
            grades=collection.grades,
            relevant_from=collection.relevant_from,
            meta={key: value for key, value in collection.meta.items() if key not in ("counts", "catalogue")},
            path=collection.path,
        )
    return collection


class _Examined:
    """A collection under examination, and what was found."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.folder = collection.path or collection.name
        self.shown = collection.name if self.folder.startswith(BUNDLED) else self.folder
        self.topics = collection.topics
        self.ids = {topic.id for topic in self.topics}
        self.qrels = collection.qrels
        self.sample = Sample(collection)
        self.findings: list[Finding] = []
        self.n_documents = 0
        self.unknown = {name.decode("utf-8", "surrogateescape") for name in set(self.qrels.documents)}

    def add(
        self, code: str, file: str, detail: str, count: int, named: Sequence[str] = (), line: int | None = None
    ) -> None:
        """Report a problem, with the first few names it concerns."""
        known = COLLECTION_CODES[code]
        shown = ": " + ", ".join(show(name) for name in named[:SHOWN]) if named else ""
        more = " …" if len(named) > SHOWN else ""
        message = f"{known.what}: {detail}{shown}{more}. {known.advice}"
        where = os.path.join(self.shown, file) if file else self.shown
        self.findings.append(Finding(where, line, known.severity, code, message, count))

    # documents, in one pass

    def look_at_documents(self, progress: Callable[[int, int | None], None] | None) -> None:
        """Read them all once: empty, repeated, oddly named."""
        empty: list[str] = []
        spaced: list[str] = []
        ids, texts = array("q"), array("q")
        total = self.collection.meta.get("counts", {}).get("documents")
        for document in self.collection.documents():
            self.n_documents += 1
            if progress is not None and not self.n_documents & 0x3FF:
                progress(self.n_documents, total)
            self.unknown.discard(document.id)
            text = words(f"{document.title} {document.text}")
            self.sample.add(document, text)
            ids.append(hash(document.id))
            texts.append(hash(" ".join(text)) if text else -self.n_documents)
            if not text:
                empty.append(document.id)
            if len(document.id.split()) != 1:
                spaced.append(document.id)
        if empty:
            judged = set(self.qrels.documents)
            among = sum(name.encode("utf-8", "surrogateescape") in judged for name in empty)
            detail = f"{n_of(len(empty), 'document')}, {among} of them judged"
            self.add("documents-empty", DOCUMENTS, detail, len(empty), empty)
        if spaced:
            self.add("ids-with-space", DOCUMENTS, n_of(len(spaced), "document"), len(spaced), spaced)
        for code, keys in (("documents-duplicate-id", ids), ("documents-duplicate-text", texts)):
            again = self._repeated(np.frombuffer(keys, np.int64), code == "documents-duplicate-id")
            if again:
                self.add(code, DOCUMENTS, n_of(len(again), "pair"), len(again), again)

    def _repeated(self, keys: Any, by_id: bool) -> list[str]:
        """The repetitions, by name; equal numbers are looked up in the documents themselves."""
        ordered = np.sort(keys)
        again = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        if not again:
            return []
        places = np.flatnonzero(np.isin(keys, list(again)))
        wanted = set(places.tolist())
        first: dict[str, str] = {}
        found = []
        for place, document in enumerate(self.collection.documents()):
            if place in wanted:
                key = document.id if by_id else " ".join(words(f"{document.title} {document.text}"))
                if key in first:
                    found.append(document.id if by_id else f"{first[key]} = {document.id}")
                first.setdefault(key, document.id)
        return found

    # files against collection.toml

    def look_at_files(self) -> None:
        """Hashes and counts as written down."""
        for name, expected in self.collection.meta.get("hashes", {}).items():
            path = os.path.join(self.folder, name)
            found = hash_of(path) if os.path.exists(path) else "no such file"
            if found != expected:
                self.add("hash-changed", name, f"expected {expected[:19]}…, found {found[:19]}…", 1)
        relevant = int((self.qrels.grade >= self.collection.relevant_from).sum())
        now = {
            "documents": self.n_documents,
            "topics": len(self.topics),
            "judgments": len(self.qrels),
            "relevant": relevant,
        }
        said = self.collection.meta.get("counts", {})
        changed = [
            f"{n_of(now[key], key.removesuffix('s'))} instead of {said[key]:,}"
            for key in now
            if said.get(key, now[key]) != now[key]
        ]
        if changed:
            self.add("count-changed", META, ", ".join(changed), len(changed))

    # topics

    def look_at_topics(self) -> None:
        """Empty, repeated, without a stated need, outlying."""
        if not self.n_documents:
            self.add("no-documents", DOCUMENTS, n_of(len(self.topics), "topic"), 1)
        if not self.topics:
            self.add("no-topics", TOPICS, n_of(self.n_documents, "document"), 1)
        texts = {topic.id: words(f"{topic.title} {topic.description}") for topic in self.topics}
        empty = [name for name, text in texts.items() if not text]
        if empty:
            self.add("topics-empty", TOPICS, n_of(len(empty), "topic"), len(empty), empty)
        spaced = [name for name in texts if len(name.split()) != 1]
        if spaced:
            self.add("ids-with-space", TOPICS, n_of(len(spaced), "topic"), len(spaced), spaced)
        first: dict[str, str] = {}
        again = []
        for name, text in texts.items():
            key = " ".join(text)
            if text and first.setdefault(key, name) != name:
                again.append(f"{first[key]} = {name}")
        if again:
            self.add("topics-duplicate", TOPICS, n_of(len(again), "pair"), len(again), again)
        bare = [topic.id for topic in self.topics if not topic.description and not topic.narrative]
        if bare:
            self.add("topics-without-need", TOPICS, f"{len(bare):,} of {n_of(len(self.topics), 'topic')}", len(bare))
        self._look_at_lengths({topic.id: words(topic.title) for topic in self.topics})
        self._look_at_vocabulary()

    def _look_at_lengths(self, titles: dict[str, list[str]]) -> None:
        if len(titles) < 10:
            return
        lengths = np.log1p([len(text) for text in titles.values()])
        middle = np.median(lengths)
        spread = max(float(np.median(np.abs(lengths - middle))) / 0.6745, 0.15)
        far = [
            f"{name} ({n_of(len(text), 'word')})"
            for (name, text), score in zip(titles.items(), (lengths - middle) / spread, strict=True)
            if abs(score) > OUTLYING and text
        ]
        if far:
            usual = f"{np.expm1(middle):.0f} words are usual"
            self.add("topics-outlying", TOPICS, f"{n_of(len(far), 'topic')}, where {usual}", len(far), far)

    def _look_at_vocabulary(self) -> None:
        sample = self.sample
        if sample.n_documents < ENOUGH:
            return
        known = {word for word, i in sample.vocabulary.items() if sample.frequency[i]}
        foreign = [
            topic.id
            for topic, text in zip(sample.topics, sample.texts, strict=True)
            if text and 2 * len(text.keys() & known) < len(text)
        ]
        if foreign:
            self.add("topics-foreign", TOPICS, n_of(len(foreign), "topic"), len(foreign), foreign)

    # judgments

    def look_at_judgments_file(self) -> None:
        """As any file of judgments."""
        from cranfield.check import check

        path = file_in(self.folder, QRELS)
        if os.path.exists(path) and os.path.getsize(path):
            shown = os.path.join(self.shown, os.path.basename(path))
            self.findings += [replace(found, file=shown) for found in check(path, kind="qrels")]
        else:
            self.add("no-judgments", QRELS, n_of(len(self.topics), "topic"), 1)

    def look_at_judgments(self) -> None:
        """Against topics and documents, then how densely and evenly they are judged."""
        stray = [name for name in self.qrels.topics if name not in self.ids]
        if stray:
            rows = int(
                np.isin(self.qrels.topic, [i for i, name in enumerate(self.qrels.topics) if name not in self.ids]).sum()
            )
            detail = f"{n_of(len(stray), 'topic')} of {len(self.qrels.topics):,} with {n_of(rows, 'judgment')}"
            self.add("judged-topics-unknown", QRELS, detail, len(stray), stray)
        if self.unknown:
            self.add(
                "judged-documents-unknown",
                QRELS,
                n_of(len(self.unknown), "document"),
                len(self.unknown),
                sorted(self.unknown),
            )
        judged = set(self.qrels.topics)
        unjudged = [name for name in (topic.id for topic in self.topics) if name not in judged]
        if unjudged:
            self.add(
                "topics-unjudged",
                TOPICS,
                f"{len(unjudged):,} of {n_of(len(self.topics), 'topic')}",
                len(unjudged),
                unjudged,
            )
        self._look_at_density(len(judged))
        nameless = [f"{grade:g}" for grade in sorted(set(self.qrels.grade.tolist())) if not self._named(grade)]
        if nameless:
            self.add("grades-without-name", META, n_of(len(nameless), "grade"), len(nameless), nameless)

    def _named(self, grade: float) -> bool:
        said = self.collection.grades.get(grade)
        return said is not None and bool(said.label or said.meaning)

    def _look_at_density(self, topics: int) -> None:
        per_topic = len(self.qrels) / topics
        relevant = self.qrels.grade >= self.collection.relevant_from
        counts = np.bincount(self.qrels.topic[relevant], minlength=topics)
        if topics < FEW:
            self.add("few-topics", TOPICS, f"{topics:,}", topics)
        elif topics < BETTER and per_topic >= SPARSE:
            dense = "densely" if per_topic >= DENSE else "moderately"
            self.add("not-many-topics", TOPICS, f"{topics:,}, judged {dense} ({per_topic:.1f} judgments each)", topics)
        if per_topic < SPARSE:
            self.add("judged-sparsely", QRELS, f"{per_topic:.1f} judgments a topic", len(self.qrels))
        if relevant.all() and len(set(self.qrels.grade.tolist())) > 1:  # of one grade alone the file's check has spoken
            self.add("only-relevant-judged", QRELS, n_of(len(self.qrels), "judgment"), len(self.qrels))
        elif len(relevant) >= 100 and not 0.01 <= relevant.mean() <= 0.9:
            self.add("judged-imbalance", QRELS, f"{relevant.mean():.1%} are relevant", int(relevant.sum()))
        if topics >= 10 and counts.sum():
            ordered = np.sort(counts)[::-1]
            few = int(np.searchsorted(np.cumsum(ordered), counts.sum() / 2) + 1)
            if few <= topics / 10:
                detail = f"half of {n_of(int(counts.sum()), 'relevant document')} are those of {n_of(few, 'topic')} of {topics:,}"
                self.add("relevant-imbalance", QRELS, detail, few)

    # words

    def look_at_words(self) -> None:
        """Whether the judged documents are about their topics, and better grades more so."""
        close = Closeness(self.sample, self.collection.relevant_from)
        names, similarity = close.of_topics()
        if len(names) < 5 or len(self.topics) < 5:
            return
        column = {name: close.column[name] for name in names if name in close.column}
        ranks = close.ranks(column, names, similarity)
        share = _abreast(ranks)
        best, better, fits = "", column, share * len(ranks) / len(names)
        if self.sample.whole:
            for way, other in close.numberings(names).items():
                found = close.ranks(other, names, similarity)
                if _abreast(found) * len(found) / len(names) > fits:
                    best, better, fits = way, other, _abreast(found) * len(found) / len(names)
        wins = fits - share * len(ranks) / len(names) >= FITS_BETTER
        if share < SHIFTED or wins:
            detail = (
                f"{share:.0%} of {n_of(len(ranks), 'topic')} are among the texts closest to their relevant documents"
            )
            if wins:
                detail += f"; read {best}, {fits:.0%} would be"
            self.add("judgments-shifted", QRELS, detail, sum(rank > ABREAST for rank in ranks.values()))
        else:
            off = [name for name, rank in ranks.items() if rank > 0.5]
            if off:
                self.add("topics-off-text", TOPICS, f"{n_of(len(off), 'topic')} of {len(ranks):,}", len(off), off)
        self._look_at_order(close, better if wins else column)

    def _look_at_order(self, close: Closeness, column: dict[str, int]) -> None:
        found = np.array(list(close.concordance(column).values()))
        if len(found) < 5:
            return
        spread = float(found.std()) or 1e-9
        if found.mean() <= REVERSED and found.mean() / (spread / np.sqrt(len(found))) <= SURE:
            shown = ", ".join(f"grade {grade:g}: {value:+.2f}" for grade, value in close.by_grade(column).items())
            detail = f"in {n_of(len(found), 'topic')} with several grades; closeness by grade, in standard deviations: {shown}"
            self.add("grades-against-text", QRELS, detail, len(found))

    # what is known elsewhere

    def look_at_catalogue(self) -> None:
        """Against the catalogue, if it knows the collection."""
        entry = CATALOGUE.get(str(self.collection.meta.get("catalogue", self.collection.name)).casefold())
        if entry is None:
            return
        now = {"documents": self.n_documents, "topics": len(self.topics), "judgments": len(self.qrels)}
        odd = list(_differences(entry, now))
        if odd:
            self.add("catalogue-differs", META, f"{entry.title}: {'; '.join(odd)}", len(odd))


def _abreast(ranks: dict[str, float]) -> float:
    return sum(rank <= ABREAST for rank in ranks.values()) / max(len(ranks), 1)


def _differences(entry: Entry, now: dict[str, int]) -> Iterable[str]:
    for what, count in now.items():
        said = {"taught": entry.lecture.get(what), "published": entry.published.get(what)}
        known = {who: value for who, value in said.items() if value is not None}
        here = n_of(count, what.removesuffix("s"))
        if known and count not in known.values():
            yield f"{here}, where {' and '.join(f'{value:,.0f} are {who}' for who, value in known.items())}"
        elif len(set(known.values())) > 1:
            yield f"{here} ({', '.join(f'{value:,.0f} {who}' for who, value in known.items())})"
