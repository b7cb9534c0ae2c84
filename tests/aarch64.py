# SPDX-License-Identifier: Apache-2.0
"""Programs for aarch64, under qemu: `make test-aarch64` builds the libraries that they need, and
runs tests with their folder in TARE_AARCH64."""

import os
import shutil
import subprocess
from pathlib import Path

FOLDER = os.environ.get("TARE_AARCH64", "")
SYSTEM = f"{FOLDER}/system"
COMPILER, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def missing() -> str | None:
    """What is missing for programs to be compiled and run, said."""
    if not FOLDER:
        return "no library for aarch64: make test-aarch64 builds one"
    tools = [tool for tool in (COMPILER, QEMU) if shutil.which(tool) is None]
    return f"{tools[0]} is not installed" if tools else None


def compiled(program: Path, *words: str | Path) -> list[str | Path]:
    """What runs a program that is made of these sources, libraries and flags."""
    subprocess.run([COMPILER, *words, "-o", program], check=True)
    return [QEMU, "-L", SYSTEM, program]


def alone(program: Path, *words: str | Path) -> None:
    """The same as one program, which the kernel calls by its name, too."""
    qemu, *rest = compiled(program.with_suffix(".aarch64"), *words)
    named = program.parent / "qemu" / program.name
    named.parent.mkdir(exist_ok=True)
    named.symlink_to(shutil.which(str(qemu)) or qemu)
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(str, [named, *rest]))} "$@"\n')
    program.chmod(0o755)
