# SPDX-License-Identifier: Apache-2.0
"""setup/audit with tools of the test's, and without a network."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATABASE_OF_PYPI = "audit: packages from PyPI are not checked: its database cannot be reached"


def audit(folder: Path, **tools: str) -> "subprocess.CompletedProcess[str]":
    """Runs it with these tools, each the lines of a shell script."""
    for name, lines in tools.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
    return subprocess.run(
        [ROOT / "setup" / "audit"],
        env={
            "PATH": f"{folder}:/usr/bin:/bin",
            "CARGO_INSTALL_ROOT": str(folder / "tools"),
            "https_proxy": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("reached", "installed", "found", "told"),
    [
        (1, 0, 0, "the database of RustSec cannot be reached"),
        (0, 1, 0, "cargo-deny cannot be installed"),
        (0, 0, 0, None),
        (0, 0, 1, None),
    ],
)
def test_what_is_found_fails_and_what_cannot_be_looked_up_is_told(
    tmp_path: Path, reached: int, installed: int, found: int, told: str | None
) -> None:
    cargo = f'[ "$1" = install ] && exit {installed}\nexit {found}'
    done = audit(tmp_path, git=f"exit {reached}", cargo=cargo)
    crates = [f"audit: crates are not checked: {told}"] if told else []
    assert done.stderr.splitlines() == [*crates, DATABASE_OF_PYPI]
    assert done.returncode == found


def test_crates_of_every_lock_file_are_checked(tmp_path: Path) -> None:
    """Also after a vulnerability was found in one of them."""
    cargo = '[ "$1" = install ] || echo "$*"\n[ "$3" != ./Cargo.toml ]'
    done = audit(tmp_path, git="exit 0", cargo=cargo)
    listed = subprocess.check_output(["git", "ls-files", "*Cargo.lock"], cwd=ROOT, text=True)
    expected = {
        f"deny --manifest-path {Path(lock).parent}/Cargo.toml check advisories"
        for lock in listed.split()
    }
    assert {*done.stdout.splitlines()} == expected
    assert done.returncode == 1


@pytest.mark.parametrize("found", [0, 1])
def test_packages_of_all_extras_and_groups_are_checked(tmp_path: Path, found: int) -> None:
    # The list is the last argument of both.
    uv = f"""
for list; do :; done
case $1 in
export) echo "$*" >"$list" ;;
tool) echo "$*"; cat "$list"; exit {found} ;;
esac"""
    done = audit(tmp_path, git="exit 1", python3="exit 0", uv=uv)
    checked, exported = (line.split() for line in done.stdout.splitlines())
    assert checked[:4] == ["tool", "run", "--quiet", "pip-audit"]
    assert checked[-2:] == ["--requirement", exported[-1]]
    assert {"--locked", "--all-extras", "--all-groups"} <= {*exported}
    assert DATABASE_OF_PYPI not in done.stderr
    assert done.returncode == found
