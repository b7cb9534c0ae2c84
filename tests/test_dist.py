# SPDX-License-Identifier: Apache-2.0
"""What `make dist` refuses to hand out, and what its archives have in them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from setup import dist

PROGRAM = "int main(void) { return 0; }"
# Of glibc 2.36.
NEWER = "int pidfd_open(int, unsigned); int main(void) { return pidfd_open(1, 0); }"


def compiled(folder: Path, source: str, *options: str) -> bytes:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    program = folder / "program"
    command = ["cc", "-x", "c", "-", "-o", str(program), *options]
    # Without the start files, whose symbols are as new as this machine's glibc.
    subprocess.run([*command, "-nostartfiles"], input=source, text=True, check=True)
    return program.read_bytes()


def test_a_program_for_the_oldest_glibc(tmp_path: Path) -> None:
    dist.check("program", compiled(tmp_path, PROGRAM))


def test_a_newer_glibc_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"bin/x needs glibc 2\.36; 2\.28 is promised"):
        dist.check("bin/x", compiled(tmp_path, NEWER))


def test_a_library_that_not_every_system_has_is_refused(tmp_path: Path) -> None:
    content = compiled(tmp_path, PROGRAM, "-Wl,--no-as-needed", "-l:libstdc++.so.6")
    with pytest.raises(SystemExit, match=r"bin/x needs libstdc\+\+\.so\.6"):
        dist.check("bin/x", content)


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(SystemExit, match="bin/x is no program: "):
        dist.check("bin/x", b"#!/bin/sh\n")


def test_an_archive_can_be_unpacked_and_run(tmp_path: Path) -> None:
    path = tmp_path / "tare-native.tar.gz"
    dist.pack(path, {"bin/hello": b"#!/bin/sh\necho hello\n"})
    subprocess.run(["tar", "--extract", "--file", path], cwd=tmp_path, check=True)
    folder = tmp_path / "tare-native"
    assert subprocess.check_output([folder / "bin" / "hello"]) == b"hello\n"
    assert (folder / "LICENSE").read_bytes() == (dist.ROOT / "LICENSE").read_bytes()
