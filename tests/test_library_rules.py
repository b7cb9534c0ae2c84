# SPDX-License-Identifier: Apache-2.0
"""What goes into other people's programs: needs libc alone, exports its table alone, is small.

`make lint` runs this file.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.hook import table

from tare.native import native

NEWEST_GLIBC = (2, 28)
LARGEST = 256 * 1024
ROOT = Path(__file__).parents[1]
HEADER = ROOT / "crates" / "log" / "library" / "include" / "tare_log.h"
NATIVE_JAVA = ROOT / "java" / "tare-log" / "src" / "main" / "java" / "tare" / "log" / "Native.java"


@dataclass(frozen=True)
class Library:
    """A library, and the names that it may export."""

    path: str
    exports: frozenset[str]

    def output(self, *command: str) -> str:
        return subprocess.check_output([*command, self.path], text=True)

    @property
    def symbols(self) -> list[tuple[str, str]]:
        """Type and name (with its version) of every dynamic symbol."""
        return [
            (line.split()[-2], line.split()[-1])
            for line in self.output("nm", "-D").split("\n")
            if line
        ]

    @property
    def needed(self) -> set[str]:
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", self.output("readelf", "-d")))


def declared() -> frozenset[str]:
    """The functions of the header that are not there inline."""
    declarations = re.findall(
        r"^(?!static|typedef|__|#| ).*?(\w+)\(", HEADER.read_text(), re.MULTILINE
    )
    return frozenset(declarations)


def native_methods() -> frozenset[str]:
    """What a JVM looks for in the library."""
    names = re.findall(r"static native [\w\[\]]+ (\w+)\(", NATIVE_JAVA.read_text())
    return frozenset(f"Java_tare_log_Native_{name}" for name in names)


HOOK = Library(native("lib", "libtare_hook.so"), frozenset(table.symbols(table.HOOK)))
LOG = Library(
    native("lib", "libtare_log.so"),
    declared() | native_methods() | frozenset(table.symbols(table.LOG)),
)
each = pytest.mark.parametrize("library", [HOOK, LOG], ids=["hook", "log"])


@each
def test_it_needs_nothing_but_libc(library: Library) -> None:
    allowed = {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert library.needed <= allowed


def test_the_hook_looks_for_dlsym_where_it_was_before() -> None:
    assert "libdl.so.2" in HOOK.needed


@each
def test_it_exports_its_table_and_nothing_else(library: Library) -> None:
    assert {name for kind, name in library.symbols if kind not in "Uw"} == library.exports


def test_each_function_is_in_one_group() -> None:
    groups = table.groups()
    symbols = [symbol for group in groups.values() for symbol in group]
    assert len(symbols) == len({*symbols})
    assert all(groups.values())


@each
def test_no_symbol_is_newer_than_the_oldest_glibc(library: Library) -> None:
    needed = [name.rpartition("@GLIBC_")[2] for _, name in library.symbols if "@GLIBC_" in name]
    newest = max((tuple(map(int, version.split("."))) for version in needed), default=(0,))
    assert newest <= NEWEST_GLIBC


@each
def test_it_is_small(library: Library) -> None:
    assert Path(library.path).stat().st_size <= LARGEST


@each
def test_thread_state_is_initial_exec(library: Library) -> None:
    """`__tls_get_addr` allocates on a thread's first use, which may be in a signal handler."""
    assert "__tls_get_addr" not in library.output("nm", "-D")


def test_the_hook_says_that_its_thread_state_is_static() -> None:
    assert "STATIC_TLS" in HOOK.output("readelf", "-d")
