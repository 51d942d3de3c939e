"""Archives from outside: what they may hold, and that a refused one leaves nothing behind."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from random import Random
from typing import TYPE_CHECKING

import pytest

from cranfield.base.errors import CranfieldError
from cranfield.formats.archives import ArchiveLimits, is_archive, unpack

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"w/documents.jsonl": b'{"id": "1", "text": "bees"}\n', "w/runs/a.run": b"q Q0 d 1 1 a\n", "w/empty": b""}
MODES = {"a.tar": "w", "a.tar.gz": "w:gz", "a.tar.bz2": "w:bz2", "a.tar.xz": "w:xz"}


def zipped(path: Path, files: dict[str, bytes], attributes: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            about = zipfile.ZipInfo(name)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, attributes
            archive.writestr(about, content)
    return path


def tarred(path: Path, files: dict[str, bytes], mode: str = "w:gz", **more: object) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            for field, value in more.items():
                setattr(about, field, value)
            archive.addfile(about, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.zip", *MODES])
def test_an_archive_unpacks_to_the_files_that_were_packed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "upload"  # its ending says nothing
    _ = zipped(path, FILES) if name == "a.zip" else tarred(path, FILES, MODES[name])
    assert is_archive(str(path))
    out = tmp_path / "out"
    assert sorted(unpack(str(path), str(out))) == sorted(FILES)
    assert {name: (out / name).read_bytes() for name in FILES} == FILES


def test_a_single_compressed_file_is_no_archive(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "documents.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "1", "text": "bees"}\n' * 100))
    assert not is_archive(str(path))
    with pytest.raises(CranfieldError, match="no archive|found another|damaged|expected"):
        unpack(str(path), str(tmp_path / "out"))
    assert os.listdir(tmp_path) == ["documents.jsonl.gz"]


@pytest.mark.parametrize(
    "name", ["../out.txt", "a/../../out.txt", "/etc/out.txt", "..", "C:/out.txt", "a\\..\\..\\out.txt", "x" * 300]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_that_writes_outside_its_folder_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, kind: str
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = (zipped if kind == "zip" else tarred)(inside / "upload", {"fine.txt": b"1", name: b"2"})
    with pytest.raises(CranfieldError, match="outside its folder|too long"):
        unpack(str(path), str(inside / "out"))
    assert os.listdir(inside) == ["upload"]
    assert os.listdir(tmp_path) == ["inside"]


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)):
        path = tarred(tmp_path / f"{number}.tar", {"link": b""}, "w", type=kind, linkname="/etc/passwd")
        with pytest.raises(CranfieldError, match="a link or a device"):
            unpack(str(path), str(tmp_path / "out"))
    path = zipped(tmp_path / "a.zip", {"link": b"/etc/passwd"}, attributes=0o120777 << 16)
    with pytest.raises(CranfieldError, match="a link or a device"):
        unpack(str(path), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_archive_that_unpacks_beyond_the_limit_is_refused_by_what_comes_out_of_it(tmp_path: Path, kind: str) -> None:
    path = (zipped if kind == "zip" else tarred)(tmp_path / "bomb", {"a": b"\0" * 3_000_000, "b": b"\0" * 3_000_000})
    assert path.stat().st_size < 20_000
    with pytest.raises(CranfieldError, match="unpacks to more than 5 MB"):
        unpack(str(path), str(tmp_path / "out"), ArchiveLimits(5_000_000))
    assert os.listdir(tmp_path) == ["bomb"]
    assert len(unpack(str(path), str(tmp_path / "out"), ArchiveLimits(6_000_000))) == 2


def test_an_archive_of_many_files_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "many.zip", {f"{number}": b"" for number in range(11)})
    with pytest.raises(CranfieldError, match="more than 10 files"):
        unpack(str(path), str(tmp_path / "out"), ArchiveLimits(files=10))


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        about = tarfile.TarInfo("a")
        about.pax_headers = {"comment": "x" * 2_000_000}
        archive.addfile(about, io.BytesIO(b""))
    with pytest.raises(CranfieldError, match="a header of"):
        unpack(str(path), str(tmp_path / "out"))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_are_one_file_on_some_systems_are_refused(tmp_path: Path, kind: str) -> None:
    path = (zipped if kind == "zip" else tarred)(tmp_path / "upload", {"A.txt": b"1", "a.TXT": b"2"})
    with pytest.raises(CranfieldError, match="twice"):
        unpack(str(path), str(tmp_path / "out"))
    path = (zipped if kind == "zip" else tarred)(tmp_path / "upload", {"a": b"1", "a/b": b"2"})
    with pytest.raises(CranfieldError, match="a file and a folder"):
        unpack(str(path), str(tmp_path / "out"))


@pytest.mark.parametrize("name", ["a.zip", *MODES])
def test_a_damaged_archive_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / "whole"
    noise = {name: Random(name).randbytes(40_000) for name in "ab"}
    _ = zipped(path, noise) if name == "a.zip" else tarred(path, noise, MODES[name])
    raw = path.read_bytes()
    for number, damaged in enumerate((raw[: len(raw) // 2], raw[:600] + b"\xff" * 9000 + raw[9600:])):
        broken = tmp_path / f"broken{number}"
        broken.write_bytes(damaged)
        if number == 1 and name == "a.tar":  # a plain tar archive has no checksum of its contents
            continue
        with pytest.raises(CranfieldError, match="damaged|expected"):
            unpack(str(broken), str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()
