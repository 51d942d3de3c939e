"""Uploads into a workspace: files that wait for their import, and the import of a collection, topics or judgments.

Uploads wait in the state folder, because a collection comes as several files: documents, topics, judgments. Each upload
replaces the earlier one of its part. The files keep their own names, because layouts are recognised by names and endings.
An archive is unpacked when the files are imported.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

from cranfield.base.errors import DataError, FormatError
from cranfield.base.findings import some
from cranfield.base.parameters import shortened
from cranfield.collections.check import check
from cranfield.formats.archives import LIMITS, ArchiveLimits, is_archive, unpack
from cranfield.formats.collection_folder import META, QRELS, TOPICS, read_collection, stamp, topic_lines
from cranfield.formats.files.trec import TREC
from cranfield.formats.importers.collection_import import import_collection
from cranfield.formats.importers.source import SOURCES, Files, ImportOptions, judgments_of
from cranfield.formats.streams import reason, write_bytes
from cranfield.formats.topic_tables import joined_in_words, qrels_by_id
from cranfield.inputs.workspace import new_collection_folder, own_folder, receive, refuse_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cranfield.base.collection import Topic
    from cranfield.collections.check import Findings
    from cranfield.formats.importers.collection_import import Imported
    from cranfield.inputs.workspace import Bench

    Progress = Callable[[int, int | None], None]


PARTS = {
    "documents": "a file of documents, or an archive with the whole collection",
    "topics": "a file of topics, or an archive of them",
    "qrels": "a file of judgments, or an archive of them",
    "labels": "a file of labels with their assessors",
    "backup": "an archive that `cranfield backup` made",
}
UPLOAD = 2 << 30  # bytes of one file
UNPACKED = "unpacked"
INCOMING = "incoming-"


class StagedFile(NamedTuple):
    """An uploaded file: its part, its own name, its path and its size."""

    part: str
    name: str
    path: str
    size: int


class StagingArea:
    """The uploads of one workspace that are not imported yet."""

    def __init__(self, state: str) -> None:
        self.folder = own_folder(os.path.join(state, "staged"))

    def add(self, part: str, name: str, data: Iterable[bytes], limit: int = UPLOAD) -> StagedFile:
        """Store an upload; it replaces the earlier upload of the same part when it is complete."""
        if part not in PARTS:
            raise DataError(f"expected a part of {', '.join(PARTS)}, found {shortened(part)!r}")
        refuse_file_name(name, "an upload", "documents.jsonl")
        incoming = tempfile.mkdtemp(prefix=INCOMING, dir=self.folder)
        try:
            path = os.path.join(incoming, name)
            receive(path, name, data, limit)
            if not os.path.getsize(path):
                raise DataError(f"{name}: the file is empty")
            self.remove(part)
            os.rename(incoming, os.path.join(self.folder, part))
        except OSError as error:
            raise DataError(f"{name}: cannot be written: {reason(error)}") from None
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        return self.files()[part]

    def files(self) -> dict[str, StagedFile]:
        """The uploads by part."""
        staged = {}
        for part in PARTS:
            folder = os.path.join(self.folder, part)
            for name in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
                path = os.path.join(folder, name)
                if name != UNPACKED and os.path.isfile(path):
                    staged[part] = StagedFile(part, name, path, os.path.getsize(path))
        return staged

    def file(self, part: str) -> StagedFile:
        """The upload of a part; DataError if nothing was uploaded."""
        staged = self.files().get(part)
        if staged is None:
            raise DataError(f"there is no upload of {part} yet")
        return staged

    def remove(self, *parts: str) -> None:
        """Remove the uploads of some parts; without names, remove all, with the remains of a stopped server."""
        for name in parts or os.listdir(self.folder):
            shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def paths(
        self,
        part: str,
        limits: ArchiveLimits = LIMITS,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> list[str]:
        """The files of a part: the upload itself, or the files of its archive. Empty if nothing was uploaded."""
        staged = self.files().get(part)
        if staged is None:
            return []
        if not is_archive(staged.path):
            return [staged.path]
        folder = os.path.join(os.path.dirname(staged.path), UNPACKED)
        shutil.rmtree(folder, ignore_errors=True)
        return [os.path.join(folder, name) for name in unpack(staged.path, folder, limits, progress, staged.name)]

    def plain_text(self, text: str) -> str:
        """A message without the folders of the uploads: files are called by the names under which they were sent."""
        for part in PARTS:
            folder = os.path.join(self.folder, part)
            text = text.replace(os.path.join(folder, UNPACKED) + os.sep, "").replace(folder + os.sep, "")
        return text


def common_folder(paths: list[str]) -> str:
    """The folder that holds all files of an archive; a collection often lies in a folder inside its archive."""
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def import_uploads(bench: Bench, area: StagingArea, progress: Progress | None = None, **options: Any) -> Imported:
    """Import the uploaded documents, with topics and judgments if there are any, as the collection of a workspace.

    `options` go to `import_collection`. The collection is there as a whole or not at all.
    """
    folder = new_collection_folder(bench.folder)
    documents = area.paths("documents", progress=progress)
    if not documents:
        raise DataError("there is no upload of documents yet")
    one_file = len(documents) == 1 and documents[0] == area.file("documents").path
    source = documents[0] if one_file else common_folder(documents)
    topics, qrels = area.paths("topics"), area.paths("qrels")
    files = Files(documents if one_file else (), topics, qrels)
    meta = {"name": bench.name} | options.pop("meta", {})
    return import_collection(source, folder, files=files, meta=meta, progress=progress, **options)


def findings_in_qrels(paths: Sequence[str]) -> Findings:
    """Every problem in files of judgments, line by line; `import` itself stops at the first."""
    return check(list(paths), None, "qrels")


def read_topics(paths: Sequence[str], layout: str | None = None) -> list[Topic]:
    """The topics in files of any layout that `import` knows."""
    topics: dict[str, Topic] = {}
    for path in paths:
        named = [SOURCES.look_up(layout)] if layout else []
        classes = named or [cls for cls in reversed(list(SOURCES.values())) if cls.asks(path)]
        if not classes:
            raise FormatError(f"{path}: not recognised as topics; name the layout, such as smart or trec")
        for topic in classes[0](Files(topics=[path]), ImportOptions()).topics():
            if topic.id in topics:
                raise DataError(f"{path}: topic {topic.id!r} occurs twice")
            topics[topic.id] = topic
    if not topics:
        raise DataError(f"{', '.join(paths)}: no topics")
    return list(topics.values())


def replace_topics(bench: Bench, paths: Sequence[str], layout: str | None = None) -> int:
    """Replace the topics of a workspace's collection and return their number.

    Topics that are judged, or that a round asks about, must be among the new ones:
    otherwise their labels would belong to no topic.
    """
    folder = _collection_folder(bench)
    topics = read_topics(paths, layout)
    ids = {topic.id for topic in topics}
    missing = sorted(_topics_in_use(bench) - ids)
    if missing:
        raise DataError(
            f"the new topics lack {len(missing):,} that are judged or in a round: {some(missing)}; nothing was replaced"
        )
    write_bytes(os.path.join(folder, TOPICS), topic_lines(topics))
    _remove_packed(folder, TOPICS)
    _stamp(folder)
    return len(topics)


def replace_judgments(bench: Bench, paths: Sequence[str]) -> tuple[int, list[str]]:
    """Replace the judgments of a workspace's collection; return their number and notes."""
    folder = _collection_folder(bench)
    collection = read_collection(folder)
    topics = list(collection.topics)
    qrels, notes = judgments_of(paths, ImportOptions()), []
    assert qrels is not None
    by_id = qrels_by_id(qrels, {topic.id: topic.title for topic in topics}, False, "error")
    if by_id is not None:
        notes.append(joined_in_words(qrels.name, len(qrels.topics)))
        qrels = by_id
    stray = sorted(set(qrels.topics) - {topic.id for topic in topics})
    if topics and stray:
        raise DataError(f"{len(stray):,} judged topics are not in the collection: {some(stray)}; nothing was replaced")
    TREC.refuse(qrels.table, "qrels", qrels.name)
    write_bytes(os.path.join(folder, QRELS), TREC.write(qrels.table, "qrels", ""))
    _remove_packed(folder, QRELS)
    _stamp(folder)
    return len(qrels), notes


def _collection_folder(bench: Bench) -> str:
    folder = bench.collection
    if folder is None:
        raise DataError("there are no documents yet; import them first")
    return folder


def _topics_in_use(bench: Bench) -> set[str]:
    """The topics of labels by people and models, and of rounds."""
    from cranfield.judging.log_queries import topics_in_use

    return topics_in_use(bench.database)


def _remove_packed(folder: str, name: str) -> None:
    """Remove compressed files of the same part, which the plain one replaces."""
    from cranfield.formats.streams import COMPRESSED

    for ending in COMPRESSED:
        path = os.path.join(folder, name + ending)
        if os.path.exists(path):
            os.unlink(path)


def _stamp(folder: str) -> None:
    """Bring the counts and hashes in collection.toml up to date, if there is one."""
    if os.path.exists(os.path.join(folder, META)):
        stamp(read_collection(folder))
