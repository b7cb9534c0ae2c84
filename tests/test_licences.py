# SPDX-License-Identifier: Apache-2.0
"""Every file of the repository begins with its licence."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LICENCE = "SPDX-License-Identifier: Apache-2.0"
# Programs in the kernel call functions that only GPL-compatible ones may call.
KERNEL_LICENCE = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
KERNEL = ("crates/map/bpf/", "bench/link/sockmap.bpf.c")
# A result as an older version wrote it; the README beside it states the licence.
OLD_RESULT = "tests/data/old-result/result/"
# The licence itself, files that tools write whole, and files that have no comments.
WITHOUT = {
    "LICENSE",
    "Cargo.lock",
    "bench/log/calls/rust/Cargo.lock",
    "fuzz/Cargo.lock",
    "uv.lock",
    "setup/peers/fortio/go.sum",
    "setup/peers/jaeger/go.sum",
    "setup/peers/otelcol/go.sum",
    "docs/images/report.png",
    "python/tare/py.typed",
}


def test_every_file_begins_with_its_licence() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout: nothing says which files belong to the repository")
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    # A file that is removed and not yet committed is still listed.
    files = {name for name in listed if name and (ROOT / name).exists()}
    # JSON has no comments, and Parquet is binary: a README beside it states the licence.
    tables = {name for name in files if name.endswith(".parquet")}
    files -= {name for name in files if name.startswith(OLD_RESULT)}
    files -= tables | {name for name in files if name.endswith(".jsonl")}
    described = {name for name in tables if not name.startswith(OLD_RESULT)} | {OLD_RESULT}
    assert files >= {str(Path(name).with_name("README.md")) for name in described}
    assert files >= WITHOUT
    assert [
        name for name in sorted(files - WITHOUT) if _licence(name) not in _beginning(name)
    ] == []


def _licence(name: str) -> str:
    return KERNEL_LICENCE if name.startswith(KERNEL) else LICENCE


def _beginning(name: str) -> str:
    """The first line, after what says how the file is to be read or run."""
    with (ROOT / name).open(encoding="utf-8") as file:
        first = file.readline()
        return file.readline() if first.startswith(("#!", "<?xml")) else first
