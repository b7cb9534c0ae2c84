# SPDX-License-Identifier: Apache-2.0
"""No crate of one part imports a crate of another part; import-linter does the same for Python."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = {"shm", "clock", "hist", "interpose", "tables", "command"}
# Compiled into preload libraries: neither std nor an allocator may come in.
NO_STD = ["shm", "clock", "hist", "interpose", "hook/segment", "hook/preload"]
NO_STD += ["link/segment", "link/preload"]
NO_STD += ["log/segment", "log/producer", "log/library"]


@pytest.fixture(scope="module")
def dependencies() -> dict[str, set[str]]:
    """For every crate of the workspace, by its folder, the folders that it depends on."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=ROOT))["packages"]
    crates = ROOT / "crates"
    return {
        str(Path(package["manifest_path"]).parent.relative_to(crates)): {
            str(Path(dependency["path"]).relative_to(crates))
            for dependency in package["dependencies"]
            if "path" in dependency and dependency["kind"] != "dev"
        }
        for package in packages
    }


# Decision 0155: tare map reads the list of links.
READ_BY_OTHERS = {("map", "link/segment")}


def part(folder: str) -> str:
    return folder.split("/", maxsplit=1)[0]


def test_no_part_imports_another(dependencies: dict[str, set[str]]) -> None:
    for folder, imported in dependencies.items():
        allowed = SHARED if part(folder) in SHARED else SHARED | {part(folder)}
        others = {other for other in imported if (folder, other) not in READ_BY_OTHERS}
        assert {part(other) for other in others} <= allowed, folder


def test_shared_crates_import_each_other_in_one_direction(
    dependencies: dict[str, set[str]],
) -> None:
    def reaches(folder: str) -> set[str]:
        found = set(dependencies[folder])
        for other in dependencies[folder]:
            found |= reaches(other)
        return found

    for folder in dependencies:
        assert folder not in reaches(folder)


@pytest.mark.parametrize("folder", NO_STD)
def test_what_preload_libraries_are_made_of_has_no_std(folder: str) -> None:
    lines = (ROOT / "crates" / folder / "src" / "lib.rs").read_text().splitlines()
    assert any(
        line.startswith(("#![no_std]", "#![cfg_attr(")) and "no_std" in line for line in lines
    )
    for before, line in pairwise(lines):
        # For tests, and for tare-hook, which compiles rules with the same crate.
        allowed = ("#[cfg(test)]", '#[cfg(any(test, feature = "build"))]')
        assert not line.startswith("extern crate") or before in allowed
