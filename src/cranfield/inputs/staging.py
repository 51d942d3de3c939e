"""Uploaded files that wait in the state folder of a workspace until they are imported together.

A collection comes as several files: documents, topics, judgments. Each upload replaces the earlier one of its part. The
files keep their own names, because layouts are recognised by names and endings. An archive is unpacked when the files
are imported.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import DataError
from cranfield.base.parameters import shortened
from cranfield.formats.archives import LIMITS, ArchiveLimits, is_archive, unpack
from cranfield.formats.streams import reason
from cranfield.inputs.workspace import own_folder, receive, refuse_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
