"""The data files of the package, whether it is installed in a folder or run from a zip file.

A file is read through the loader of the package. Code that needs paths gets a folder: the package's own, or a copy of
it that lives as long as the process.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

LOADER: Any = __spec__.loader
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the folder of `cranfield`


def data(name: str) -> bytes:
    """The bytes of a file of the package: `base/findings.toml`."""
    content: bytes = LOADER.get_data(os.path.join(HERE, name))
    return content


@cache
def folder(name: str) -> str:
    """The path of a folder of the package: `collections/bundled`, or `judging/llm/prompts`."""
    place = os.path.join(HERE, *name.split("/"))
    archive = getattr(LOADER, "archive", None)
    if archive is None:
        return place
    return _copy(archive, f"{os.path.relpath(place, archive)}/".replace(os.sep, "/"), _temporary())


@cache
def _temporary() -> str:
    """A folder that is removed when the process ends."""
    import atexit
    import shutil
    from tempfile import mkdtemp

    place = mkdtemp(prefix="cranfield-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def _copy(archive: str, inside: str, target: str) -> str:
    """Unpack one folder of a zip file; the path of the copy."""
    from zipfile import ZipFile

    with ZipFile(archive) as packed:
        packed.extractall(target, [name for name in packed.namelist() if name.startswith(inside)])
    return os.path.join(target, *inside.rstrip("/").split("/"))
