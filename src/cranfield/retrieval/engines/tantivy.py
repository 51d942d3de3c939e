"""BM25 over an inverted index on disk, by the package tantivy: the in-process engine most like Lucene."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.optional_packages import needed
from cranfield.base.parameters import Flag
from cranfield.retrieval.engines import STOP, text_of
from cranfield.retrieval.systems_under_test import Query, Ranking, System

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cranfield.base.collection import Document


HEAP = 128 << 20  # bytes that the writer collects before it writes a segment


class Tantivy(System):
    """BM25 over an inverted index on disk, in this process (extra: engines)."""

    name = "tantivy"
    place = 2
    stem = Flag("whether words are stemmed (English)", True)
    stop = Flag("whether the commonest English words are passed over", True)
    packages = ("tantivy",)

    def __init__(self, rest: str = "") -> None:
        super().__init__(rest)
        self.package = needed("tantivy", f"system {self.name} needs")
        self.opened: Any = None
        self.ids: list[str] = []

    def _analyser(self) -> Any:
        filters = self.package.Filter
        builder = self.package.TextAnalyzerBuilder(self.package.Tokenizer.simple()).filter(filters.lowercase())
        if self.stop:
            builder = builder.filter(filters.custom_stopword(sorted(STOP)))
        if self.stem:
            builder = builder.filter(filters.stemmer("English"))
        return builder.build()

    def index(self, documents: Iterable[Document], folder: str) -> None:
        """Index with one thread, so that the same documents give the same index."""
        builder = self.package.SchemaBuilder()
        builder.add_integer_field("number", stored=True)
        builder.add_text_field("body", tokenizer_name="body", index_option="freq")
        self.opened = self.package.Index(builder.build(), path=folder)
        self.analyser = self._analyser()
        self.opened.register_tokenizer("body", self.analyser)
        writer = self.opened.writer(HEAP, 1)
        for document in documents:
            writer.add_document(self.package.Document(number=len(self.ids), body=text_of(document)))
            self.ids.append(document.id)
        writer.commit()
        writer.wait_merging_threads()
        self.opened.reload()
        self.searcher = self.opened.searcher()

    def search(self, query: Query, k: int) -> Ranking:
        schema, package = self.opened.schema, self.package
        terms = self.analyser.analyze(query.text)
        if not terms or not self.ids:
            return []
        parts = [(package.Occur.Should, package.Query.term_query(schema, "body", term)) for term in terms]
        hits = self.searcher.search(package.Query.boolean_query(parts), limit=k, count=False).hits
        return [(self.ids[self.searcher.doc(at).get_first("number")], float(score)) for score, at in hits]
