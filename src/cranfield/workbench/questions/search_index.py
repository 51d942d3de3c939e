"""The question `search-index`: the index behind /search. Its answer is that the index exists; pages read the index itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import DataError
from cranfield.base.results import Answer, Layout, Part
from cranfield.inputs.workspace import own_folder
from cranfield.retrieval.document_search import build_index, index_folder
from cranfield.workbench.question import Tell, WorkbenchQuestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cranfield.inputs.workspace import Bench


def search_folder(bench: Bench) -> str:
    """The folder of the search indexes of a workspace."""
    return own_folder(os.path.join(bench.state, "search"))


def ready_index(bench: Bench) -> str | None:
    """The folder of the index of the documents as they are now; None if it is not built yet, or there are no documents."""
    folder = None if bench.collection is None else index_folder(bench.collection, search_folder(bench))
    return folder if folder is not None and os.path.isdir(folder) else None


@dataclass(frozen=True, repr=False)
class SearchIndex(Answer):
    """The name of the index that was built."""

    name: str

    def content(self, how: Layout) -> Iterator[Part]:
        yield f"the documents can be searched ({self.name})"

    def plain(self, how: Layout) -> Any:
        return {"index": self.name}


class SearchIndexQuestion(WorkbenchQuestion):
    """The search index of the documents, built once and again when they change."""

    name = "search-index"
    activity = "indexing the documents for search"
    csv = False

    def refuse(self, bench: Bench) -> None:
        if bench.collection is None:
            raise DataError("there are no documents to search; import a collection first")

    def depends(self, bench: Bench) -> dict[str, str]:
        assert bench.collection is not None
        where = search_folder(bench)  # its time changes when somebody removes an index, so that it is built again
        index = os.path.basename(index_folder(bench.collection, where))
        return {"index": index, "folder": f"{os.stat(where).st_mtime_ns}"}

    def run(self, bench: Bench, tell: Tell) -> Answer:
        assert bench.collection is not None
        return SearchIndex(os.path.basename(build_index(bench.collection, search_folder(bench), tell)))
