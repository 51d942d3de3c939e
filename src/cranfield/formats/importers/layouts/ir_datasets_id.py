"""Data sets of the package ir_datasets by identifier (needs the extra `ir_datasets`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.collection import Document, Grade, Topic
from cranfield.base.errors import DataError, FormatError
from cranfield.base.optional_packages import needed
from cranfield.formats.importers.source import CollectionSource, ImportedJudgment, merged_judgments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.base.qrels import Qrels
    from cranfield.formats.importers.source import Files, ImportOptions


IDS = ("doc_id", "query_id")
TITLES = ("title", "headline")
TEXTS = ("text", "body", "abstract", "contents")
QUERIES = ("title", "query", "text", "question")
DESCRIPTIONS = ("description", "desc")


class IrDatasets(CollectionSource):
    """A data set by its identifier, such as `vaswani` or `beir/scifact/test`."""

    name = "ir_datasets"
    about = "an identifier of the package ir_datasets, such as vaswani; ir_datasets:vaswani says so without --from"
    place = 11
    prefix = "ir_datasets:"
    own_tables = True

    def __init__(self, files: Files, options: ImportOptions | None = None) -> None:
        super().__init__(files, options)
        self.identifier = files.documents[0].removeprefix(self.prefix)
        self.dataset = self._load()

    def _load(self) -> Any:
        ir_datasets = needed("ir_datasets", "ir_datasets:ID needs")
        try:
            dataset = ir_datasets.load(self.identifier)
        except KeyError:
            problem = f"ir_datasets knows no data set {self.identifier!r}"
            raise FormatError(f"{problem}; ir_datasets list names them") from None
        if not dataset.has_docs():
            raise FormatError(f"{self.identifier}: this data set of ir_datasets has no documents")
        return dataset

    def documents(self) -> Iterator[Document]:
        """The documents of ir_datasets; a document type without a text field gets its default text."""
        for document in self._iterate("docs"):
            row = _row(document)
            title, text = _take(row, TITLES), _take(row, TEXTS)
            if not text and hasattr(document, "default_text"):
                text = document.default_text()
            yield Document(document.doc_id, title, text, _plain(row))

    def topics(self) -> Iterator[Topic]:
        """One topic for each query of the data set; its text becomes the title."""
        if not self.dataset.has_queries():
            return
        for query in self._iterate("queries"):
            row = _row(query)
            title, description = _take(row, QUERIES), _take(row, DESCRIPTIONS)
            narrative = _take(row, ("narrative",))
            if not title and hasattr(query, "default_text"):
                title = query.default_text()
            yield Topic(query.query_id, title or description, description, narrative, _plain(row))

    def judgments(self) -> Qrels | None:
        """The relevance column, unchanged."""
        if not self.dataset.has_qrels():
            return None
        where, rows = f"{self.prefix}{self.identifier}", enumerate(self._iterate("qrels"), 1)
        judged = (ImportedJudgment(one.query_id, one.doc_id, one.relevance, where, number) for number, one in rows)
        return merged_judgments(judged, self.notes)

    def labels(self) -> dict[float, Grade]:
        """The meanings of the grades according to ir_datasets."""
        meanings = self.dataset.qrels_defs() if self.dataset.has_qrels() else {}
        return {grade: Grade("", str(meaning)) for grade, meaning in (meanings or {}).items()}

    def metadata(self) -> dict[str, Any]:
        """The origin of the data set."""
        return {"provenance": f"ir_datasets {self.identifier}"}

    def _iterate(self, what: str) -> Iterator[Any]:
        try:
            yield from getattr(self.dataset, f"{what}_iter")()
        except (OSError, RuntimeError) as error:
            problem = " ".join(str(error).split())
            raise DataError(f"{self.identifier}: ir_datasets could not get its {what}: {problem}") from error


def _row(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record._fields if name not in IDS}


def _take(row: dict[str, Any], names: tuple[str, ...]) -> str:
    name = next((each for each in names if isinstance(row.get(each), str)), None)
    return row.pop(name) if name else ""


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A value for JSON: named tuples become objects, bytes are left out."""
    return {
        key: _json(value) for key, value in row.items() if value not in (None, "", ()) and not isinstance(value, bytes)
    }


def _json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _json(each) for key, each in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
