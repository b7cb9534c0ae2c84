# SPDX-License-Identifier: Apache-2.0
"""The programs of this bench, compiled where they are needed."""

import subprocess
from functools import cache
from pathlib import Path

from tare.native import native

SOURCES = Path(__file__).parent / "calls"
LANGUAGES = {".c": ("cc", "-std=gnu11"), ".cpp": ("c++", "-std=c++17")}


@cache
def build_program(folder: Path, source: str, *options: str) -> Path:
    """What the compiler makes of a source, linked with libtare_log.a."""
    path = SOURCES / source
    compiler, standard = LANGUAGES[path.suffix]
    target = folder / path.name.replace(".", "-")
    words = [compiler, standard, "-O2", "-I", native("include", ""), "-I", str(SOURCES)]
    words += [str(path), "-o", str(target), native("lib", "libtare_log.a"), *options]
    subprocess.run(words, check=True)
    return target


def has_header(name: str) -> bool:
    """Whether the C++ compiler finds it."""
    words = ["c++", "-std=c++17", "-x", "c++", "-fsyntax-only", "-include", name, "/dev/null"]
    return subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == 0


@cache
def build_with_cargo(folder: Path) -> Path:
    """The programs in Rust."""
    manifest = SOURCES / "rust" / "Cargo.toml"
    words = ["cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", str(manifest)]
    subprocess.run([*words, "--target-dir", str(folder / "rust")], check=True)
    return folder / "rust" / "release" / "calls"


@cache
def build_for_java(folder: Path, home: Path) -> Path:
    """The native part of what is Cloudprofiler-like, for a JDK."""
    target = folder / f"libcloudprofiler_like-{home.name}.so"
    includes = ["-I", str(home / "include"), "-I", str(home / "include" / "linux")]
    words = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", *includes, "-o", str(target)]
    words += [str(Path(__file__).parent / "cloudprofiler_like.c"), "-lzstd", "-pthread"]
    subprocess.run(words, check=True)
    return target
