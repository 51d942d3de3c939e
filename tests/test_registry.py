"""One registry for every kind: members of this process and of other packages. test_extensions.py installs real packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from cranfield.base import registry as registry_module
from cranfield.base.errors import ConventionError, PluginWarning
from cranfield.base.registry import Origin, Registry, _Announced, load_group

GROUP = "cranfield.test_fruits"
FRUIT = "class Fruit:\n    name = {!r}\n\n\nvalue = Fruit()\n"


class Fruit:
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def fruits():
    before = list(Registry.kinds)
    yield Registry("fruit", group="test_fruits", accept=lambda _, value: value)
    Registry.kinds[:] = before


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Announce modules of a made-up package: name of the module → its text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry_module, "_loaded_groups", set())
    monkeypatch.setattr(registry_module, "problems", {})

    def announce(**texts: str) -> None:
        entries = []
        for name, text in texts.items():
            tmp_path.joinpath(f"{name}.py").write_text(text)
            entries.append(_Announced(EntryPoint(name, f"{name}:value", GROUP), Origin("orchard", "2.1")))
        monkeypatch.setattr(registry_module, "installed", lambda: {GROUP: entries})

    return announce


def test_a_member_of_another_package_is_there_under_its_name_and_origin(fruits, installed):
    installed(fruit_pear=FRUIT.format("pear"))
    fruits.load_installed()
    fruits.load_installed()  # a group is loaded once
    assert list(fruits.loaded()) == ["pear"]
    assert fruits._origins["pear"] == (Origin("orchard", "2.1"), "fruit_pear")
    assert not registry_module.problems


def test_an_entry_point_that_fails_is_named_and_the_others_are_loaded(fruits, installed):
    installed(fruit_bad="raise RuntimeError('rotten')", fruit_plum=FRUIT.format("plum"))
    with pytest.warns(PluginWarning, match="RuntimeError: rotten"):
        fruits.load_installed()
    assert list(fruits.loaded()) == ["plum"]
    assert [(each.origin.package, each.entry) for each in registry_module.problems] == [
        ("orchard", "fruit_bad = fruit_bad:value")
    ]


def test_a_name_that_is_taken_is_refused_for_other_packages_and_for_this_process(fruits, installed):
    fruits.add(Fruit("fig"), module="cranfield.fruits")
    installed(fruit_fig=FRUIT.format("fig"))
    with pytest.warns(PluginWarning, match="a fruit fig exists already, in cranfield"):
        fruits.load_installed()
    with pytest.raises(ConventionError, match="a fruit fig exists already"):
        fruits.add(Fruit("fig"))


def test_an_entry_point_without_a_member_is_named(installed):
    before = list(Registry.kinds)
    silent = Registry("fruit", group="test_fruits")
    installed(fruit_none="value = 3")
    try:
        with pytest.warns(PluginWarning, match="it defines no fruit"):
            load_group(silent.group)
    finally:
        Registry.kinds[:] = before


def test_a_member_imported_before_its_entry_point_is_credited_to_its_package(installed):
    before = list(Registry.kinds)
    own = Registry("fruit", group="test_fruits")
    installed(fruit_lime=FRUIT.format("lime"))
    try:
        import fruit_lime

        own.add(fruit_lime.value)
        assert own._origins["lime"][0] == Origin("fruit_lime")
        load_group(GROUP)
        assert own._origins["lime"][0] == Origin("orchard", "2.1")
    finally:
        Registry.kinds[:] = before


def test_entry_points_are_read_from_folders_and_zip_files(monkeypatch, tmp_path):
    from zipfile import ZipFile

    names = {"METADATA": "Metadata-Version: 2.1\nName: {}\nVersion: 1\n", "entry_points.txt": f"[{GROUP}]\na = b:c\n"}
    folder = tmp_path / "site" / "quince-1.dist-info"
    folder.mkdir(parents=True)
    for name, text in names.items():
        folder.joinpath(name).write_text(text.format("quince"))
    with ZipFile(tmp_path / "medlar.zip", "w") as archive:
        for name, text in names.items():
            archive.writestr(f"medlar-1.dist-info/{name}", text.format("medlar"))
    (tmp_path / "site" / "broken-1.dist-info").mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path / "site"), str(tmp_path / "medlar.zip"), str(tmp_path / "missing")])
    registry_module.installed.cache_clear()
    try:
        found = registry_module.installed()
    finally:
        registry_module.installed.cache_clear()
    assert [(each.origin.package, each.text) for each in found[GROUP]] == [("medlar", "a = b:c"), ("quince", "a = b:c")]
