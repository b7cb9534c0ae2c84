# SPDX-License-Identifier: Apache-2.0
"""What goes into other people's programs: needs libc alone, exports the table alone, is small.

`make lint` runs this file.
"""

import re
import subprocess
from pathlib import Path

import pytest
from tests.hook import table
from tests.hook.hooked import LIBRARY

NEWEST_GLIBC = (2, 28)
LARGEST = 256 * 1024


def output(*command: str) -> str:
    return subprocess.check_output([*command, LIBRARY], text=True)


@pytest.fixture(scope="module")
def symbols() -> list[tuple[str, str]]:
    """Type and name (with its version) of every dynamic symbol."""
    return [(line.split()[-2], line.split()[-1]) for line in output("nm", "-D").splitlines()]


def test_it_needs_nothing_but_libc() -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d")))
    assert needed <= {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    # dlsym was there before it moved to libc.
    assert "libdl.so.2" in needed


def test_it_exports_the_table_and_nothing_else(symbols: list[tuple[str, str]]) -> None:
    assert {name for kind, name in symbols if kind not in "Uw"} == set(table.symbols())


def test_no_symbol_is_newer_than_the_oldest_glibc(symbols: list[tuple[str, str]]) -> None:
    needed = [name.rpartition("@GLIBC_")[2] for kind, name in symbols if "@GLIBC_" in name]
    assert needed
    newest = max(tuple(map(int, version.split("."))) for version in needed)
    assert newest <= NEWEST_GLIBC


def test_it_is_small() -> None:
    assert Path(LIBRARY).stat().st_size <= LARGEST


def test_thread_state_is_initial_exec() -> None:
    """`__tls_get_addr` allocates on a thread's first use, which may be in a signal handler."""
    assert "__tls_get_addr" not in output("nm", "-D")
    assert "STATIC_TLS" in output("readelf", "-d")
