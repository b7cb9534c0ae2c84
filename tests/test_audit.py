# SPDX-License-Identifier: Apache-2.0
"""setup/audit with a git and a cargo of the test's, and without a network."""

import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / "setup" / "audit"


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
    for name, lines in {"git": f"exit {reached}", "cargo": cargo}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
    done = subprocess.run(
        [AUDIT],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "CARGO_INSTALL_ROOT": str(tmp_path / "tools"),
            "https_proxy": "http://127.0.0.1:9",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    crates = [f"audit: crates are not checked: {told}"] if told else []
    unreachable = "audit: packages from PyPI are not checked: its database cannot be reached"
    assert done.stderr.splitlines() == [*crates, unreachable]
    assert done.returncode == found
