"""Make a release: the source archive, the wheel, and the software bill of materials (SBOM) beside them in dist/.

The SBOM is CycloneDX 1.6. It lists every package that cranfield installs with all of its extras, in the version that was
tested (.ci/constraints.txt). Packages of the base install are required, those of extras optional.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINTS = REPOSITORY / ".ci" / "constraints.txt"
HEAD = [line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("#")] if CONSTRAINTS.exists() else []


def normalised(name: str) -> str:
    """A package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def tested_versions() -> dict[str, str]:
    """The versions of the constraints file, by normalised name."""
    lines = (line for line in CONSTRAINTS.read_text().splitlines() if line and not line.startswith("#"))
    return {normalised(name): version for name, _, version in (line.partition("==") for line in lines)}


def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def extras_of(name: str) -> list[str]:
    """The requirements of an extra of cranfield, those of extras that it names included."""
    requirements = project()["optional-dependencies"][name]
    others = [extra for each in map(Requirement, requirements) if each.name == "cranfield" for extra in each.extras]
    own = [each for each in requirements if Requirement(each).name != "cranfield"]
    return own + [each for extra in sorted(others) for each in extras_of(extra)]


def required_packages(requirement: Requirement) -> list[Requirement]:
    """The packages that an installed package asks for, with the extras that are wanted of it."""
    extras = ["", *requirement.extras]
    wanted = map(Requirement, importlib.metadata.requires(requirement.name) or [])
    return [each for each in wanted if not each.marker or any(each.marker.evaluate({"extra": e}) for e in extras)]


def closure(requirements: list[str]) -> dict[str, list[str]]:
    """Every package that these requirements install here, by normalised name, and the packages that each asks for."""
    answer: dict[str, list[str]] = {}
    waiting = [
        each for each in map(Requirement, requirements) if not each.marker or each.marker.evaluate({"extra": ""})
    ]
    while waiting:
        requirement = waiting.pop()
        further = required_packages(requirement)
        names = answer.setdefault(normalised(requirement.name), [])
        new = [each for each in further if normalised(each.name) not in names]
        names += [normalised(each.name) for each in new]
        waiting += new
    return answer


def licence(name: str) -> list[dict[str, Any]]:
    """The licence that a package states, as CycloneDX writes it; an empty list if it states none."""
    facts = importlib.metadata.metadata(name)
    if expression := facts.get("License-Expression"):
        return [{"expression": expression}]
    classifiers = [
        each.rpartition(" :: ")[2] for each in facts.get_all("Classifier") or [] if each.startswith("License")
    ]
    stated = classifiers or [(facts.get("License") or "").strip().partition("\n")[0]]
    return [{"license": {"name": each}} for each in stated if each]


def bill_of_materials(version: str) -> dict[str, Any]:
    """The SBOM of this version."""
    facts, tested = project(), tested_versions()
    base, own = closure(facts["dependencies"]), extras_of("all")
    every = closure([*facts["dependencies"], *own])
    versions = {name: tested.get(name) or importlib.metadata.version(name) for name in sorted(every)}
    address = {name: f"pkg:pypi/{name}@{version}" for name, version in versions.items()}
    itself = f"pkg:pypi/cranfield@{version}"
    components = [
        {
            "type": "library",
            "bom-ref": address[name],
            "name": name,
            "version": versions[name],
            "scope": "required" if name in base else "optional",
            "purl": address[name],
            "licenses": licence(name),
        }
        for name in address
    ]
    direct = sorted({normalised(Requirement(each).name) for each in [*facts["dependencies"], *own]} & set(every))
    graph = {itself: direct} | {address[name]: every[name] for name in address}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": itself,
                "name": "cranfield",
                "version": version,
                "purl": itself,
                "licenses": [{"expression": facts["license"]}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(address[name] for name in names)} for ref, names in graph.items()
        ],
    }


def build(folder: Path) -> str:
    """Build the source archive and the wheel into a folder; the version."""
    from setuptools import build_meta

    os.chdir(REPOSITORY)
    archive = build_meta.build_sdist(str(folder))
    build_meta.build_wheel(str(folder))
    return str(re.fullmatch(r"cranfield-(.+)\.tar\.gz", archive)[1])  # type: ignore[index]


def write_constraints() -> None:
    """Write the versions that are installed here, after the tests have passed with them."""
    names = {normalised(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    lines = [f"{one.metadata['Name']}=={one.version}" for name, one in sorted(names.items()) if name != "cranfield"]
    CONSTRAINTS.write_text("\n".join([*HEAD, *lines]) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Write the constraints file again, or make a release."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--constraints", action="store_true", help="write .ci/constraints.txt from this environment")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "dist", help="where the files go (dist)")
    options = parser.parse_args(arguments)
    if options.constraints:
        write_constraints()
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    version = build(options.folder.resolve())
    path = options.folder / f"cranfield-{version}.cdx.json"
    path.write_text(json.dumps(bill_of_materials(version), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(*sorted(each.name for each in options.folder.iterdir()), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
