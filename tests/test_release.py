"""What a release is made with and comes with: tested versions that CI installs, and a list of all that is installed."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = REPOSITORY / ".ci" / "constraints.txt"


@pytest.fixture(scope="module")
def release():
    specification = importlib.util.spec_from_file_location("release", REPOSITORY / ".ci" / "release.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_constraints_are_names_and_versions_without_an_address():
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 50
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_ci_installs_the_tested_versions():
    assert 'export PIP_CONSTRAINT="$PWD/.ci/constraints.txt"' in (REPOSITORY / ".ci" / "run").read_text()


def test_every_package_that_cranfield_and_its_tests_ask_for_has_a_tested_version_that_suits(release):
    asked = [*PROJECT["dependencies"], *release.extras_of("all"), *release.extras_of("test")]
    tested = release.tested_versions()
    for requirement in map(Requirement, asked):
        version = tested.get(release.normalised(requirement.name))
        assert version is not None, f"{requirement}: run .ci/release.py --constraints when the tests have passed"
        assert requirement.specifier.contains(version), requirement


def test_the_bill_of_materials_lists_what_an_installation_with_all_extras_needs(release):
    bill = release.bill_of_materials("9.9")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/cranfield@9.9"
    scopes = {each["name"]: each["scope"] for each in bill["components"]}
    assert scopes["numpy"] == scopes["click"] == "required"
    assert scopes["duckdb"] == scopes["h11"] == scopes["psycopg-binary"] == "optional"
    assert not {"pytest", "ruff", "cranfield"} & set(scopes)
    references = {each["bom-ref"] for each in bill["components"]} | {"pkg:pypi/cranfield@9.9"}
    assert {each["ref"] for each in bill["dependencies"]} == references
    assert {name for each in bill["dependencies"] for name in each["dependsOn"]} <= references


def test_versions_and_licences_of_the_bill_are_those_of_the_installed_packages(release):
    components = {each["name"]: each for each in release.bill_of_materials("9.9")["components"]}
    assert components["numpy"]["version"] == release.tested_versions()["numpy"]
    assert components["jinja2"]["licenses"] == [{"license": {"name": "BSD License"}}]
    assert [name for name, each in components.items() if not each["licenses"]] == []
