# SPDX-License-Identifier: Apache-2.0
"""The same program in every language that can log."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.once import OUT, compiled

from tare.native import native

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
INCLUDE = Path(native("include", "tare_log.h")).parent
LIBRARIES = Path(native("lib", "libtare_log.so")).parent
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-pthread"]


def command(language: str, name: str) -> list[str]:
    """What runs the program `name`, which is compiled where it has to be."""
    if language == "Python":
        return [sys.executable, str(PROGRAMS / f"{name}.py")]
    if language == "Rust":
        return [str(example(name))]
    compiler, standard, suffix = {
        "C": ("cc", "-std=c11", "c"),
        "C++": ("c++", "-std=c++17", "cpp"),
    }[language]
    needs(compiler)
    words = [compiler, standard, *STRICT, f"-I{INCLUDE}", f"{PROGRAMS / name}.{suffix}"]
    return [str(compiled(name, *words, LIBRARIES / "libtare_log.a", "-o", OUT))]


@cache
def example(name: str) -> Path:
    """An example of the Rust crate."""
    needs("cargo")
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "tare-log-rust"]
    build += ["--example", name, "--message-format", "json"]
    told = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    made = [line.split('"')[3] for line in told.split(",") if line.startswith('"executable":"')]
    return Path(made[-1])


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
