"""Images of documents: raster files in the folder `images` of a workspace or a collection.

The first bytes of a file decide whether it is an image, whatever its name. SVG is refused, because it can hold scripts. A
path is looked up below the folder only; one that leads out of it, by its parts or by a symbolic link, is refused.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from cranfield.base.errors import DataError, TooLargeError
from cranfield.base.parameters import shortened
from cranfield.formats.streams import reason

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = "images"
LARGEST = 10 << 20  # bytes
FORMATS = "PNG, JPEG, GIF, WebP or AVIF"
HEAD = 16  # bytes that tell the format


class ImageFile(NamedTuple):
    """An image: its media type and its bytes."""

    kind: str
    body: bytes


def media_type(head: bytes) -> str:
    """The media type of a raster image by its first bytes; empty for other files.

    >>> media_type(b"\\x89PNG\\r\\n\\x1a\\n"), media_type(b"<svg xmlns=")
    ('image/png', '')
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if head[4:12] in (b"ftypavif", b"ftypavis") else ""


def read_image(homes: Iterable[str], path: str, most: int = LARGEST) -> ImageFile:
    """The image at a path below `images` in the first of some folders that has it; DataError if it is refused.

    `most` limits the bytes that are read, for a check of the format alone.
    """
    parts = path.split("/")
    parts = parts[1:] if parts[0] == FOLDER else parts
    if not _is_text(path) or "\\" in path or any(part in ("", ".", "..") for part in parts):
        raise DataError(f"expected the path of an image below {FOLDER}/, found {shortened(path)!r}")
    label = "/".join((FOLDER, *parts))
    for home in homes:
        folder = os.path.join(home, FOLDER)
        target = os.path.realpath(os.path.join(folder, *parts))
        if os.path.lexists(os.path.join(folder, *parts)):
            if not target.startswith(os.path.join(os.path.realpath(folder), "")):
                raise DataError(f"{shortened(label)}: a link that leads out of {FOLDER}/")
            return _read(target, label, most)
    raise DataError(f"{shortened(label)}: no such file")


def _is_text(path: str) -> bool:
    """Whether a path is text that a file system can hold."""
    try:
        return b"\0" not in path.encode()
    except UnicodeEncodeError:
        return False


def _read(target: str, label: str, most: int) -> ImageFile:
    """The image in a file; the file is opened once, so that what was checked is what is read."""
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DataError(f"{shortened(label)}: expected a file")
            if status.st_size > LARGEST:
                size = f"{status.st_size / 1e6:,.0f} MB"
                raise TooLargeError(f"{shortened(label)}: an image has at most {LARGEST >> 20} MB, found {size}")
            body = file.read(most)
    except OSError as error:
        raise DataError(f"{shortened(label)}: {reason(error)}") from None
    kind = media_type(body[:HEAD])
    if not kind:
        raise DataError(f"{shortened(label)}: expected an image ({FORMATS}) by its first bytes, found another file")
    return ImageFile(kind, body)
