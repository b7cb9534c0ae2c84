# SPDX-License-Identifier: Apache-2.0
"""setup/audit with a cargo of the test's, and without a network."""

import os
import subprocess
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / "setup" / "audit"


@pytest.mark.parametrize(
    ("fetched", "checked", "code", "told"),
    [(1, 0, 0, "the database of RustSec cannot be reached"), (0, 0, 0, None), (0, 1, 1, None)],
)
def test_what_is_found_fails_and_what_cannot_be_looked_up_is_told(
    tmp_path: Path, fetched: int, checked: int, code: int, told: str | None
) -> None:
    for name in ("cargo", "cargo-deny"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\n[ "$2" = fetch ] && exit {fetched}\nexit {checked}\n')
        program.chmod(0o755)
    done = subprocess.run(
        [AUDIT],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "https_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    crates = [f"audit: crates are not checked: {told}"] if told else []
    unreachable = "audit: packages from PyPI are not checked: its database cannot be reached"
    assert done.stderr.splitlines() == [*crates, unreachable]
    assert done.returncode == code
