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
    from zipfile import ZipFile

    inside = f"{os.path.relpath(place, archive)}/".replace(os.sep, "/")
    with ZipFile(archive) as packed:
        packed.extractall(_temporary(), [name for name in packed.namelist() if name.startswith(inside)])
    return os.path.join(_temporary(), *inside.rstrip("/").split("/"))


@cache
def _temporary() -> str:
    """A folder that is removed when the process ends."""
    import atexit
    import shutil
    from tempfile import mkdtemp

    place = mkdtemp(prefix="cranfield-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
