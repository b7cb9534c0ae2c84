# SPDX-License-Identifier: Apache-2.0
"""The library is found by pkg-config and links with every compiler, strict ones too."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import LIBRARIES, PROGRAMS, STRICT, needs

# With clang where it is there.
COMPILERS = [
    (compiler, standard, source)
    for compilers, standard, source in (
        (("gcc", "clang"), "-std=c11", "linked.c"),
        (("g++", "clang++"), "-std=c++17", "linked.cpp"),
        # The C header is C++ as well.
        (("g++", "clang++"), "-std=c++17", "linked.c"),
    )
    for compiler in compilers
    if compiler == compilers[0] or shutil.which(compiler)
]


def configured(package: Path, *options: str) -> list[str]:
    """What pkg-config says of the library in this folder."""
    needs("pkg-config")
    return subprocess.check_output(
        ["pkg-config", *options, "tare_log"],
        text=True,
        env=os.environ | {"PKG_CONFIG_PATH": str(package / "lib" / "pkgconfig")},
    ).split()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize(("compiler", "standard", "source"), COMPILERS)
def test_a_program_is_linked(
    compiler: str, standard: str, source: str, kind: str, tmp_path: Path
) -> None:
    needs(compiler)
    path = subprocess.check_output([TARE_LOG, "path"], text=True).strip()
    flags = configured(Path(path), "--cflags")
    if kind == "shared":
        libraries = [*configured(Path(path), "--libs"), f"-Wl,-rpath,{path}/lib"]
    else:
        libraries = [f"{path}/lib/libtare_log.a"]
    language = ["-x", "c++"] if "+" in compiler else []
    command = [compiler, standard, *STRICT, *flags, *language, str(PROGRAMS / source)]
    command += ["-x", "none"] if language else []
    program, file = tmp_path / "linked", tmp_path / "events.log"
    subprocess.run([*command, *libraries, "-o", str(program)], check=True)
    needed = subprocess.check_output(["readelf", "--dynamic", program], text=True)
    assert ("libtare_log.so.1" in needed) == (kind == "shared")
    subprocess.run([TARE_LOG, "run", "--out", file, "--", program], check=True)
    rows = [(row.channel, row.payload) for row in dump(file)]
    assert rows == [
        ("numbers", "42"),
        ("texts", "a text"),
        ("work>", "7"),
        ("numbers", "-1"),
        ("work<", "7"),
    ]


def test_files_of_cpp_share_one_writer(tmp_path: Path) -> None:
    """A library that is loaded late has little room for variables of threads."""
    needs("g++")
    path = subprocess.check_output([TARE_LOG, "path"], text=True).strip()
    library = tmp_path / "many.so"
    sources = [tmp_path / f"part{number}.cpp" for number in range(3)]
    for number, source in enumerate(sources):
        channel = "static tare_log_channel channel;"
        function = f"void part{number}(void) {{ tare_log(channel, {number}); }}"
        source.write_text(f"#include <tare_log.h>\n{channel}\n{function}\n")
    flags = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{path}/include", *map(str, sources)]
    linked = [f"-L{path}/lib", "-ltare_log", "-o", str(library)]
    subprocess.run(["g++", *flags, *linked], check=True)
    parts = subprocess.check_output(["readelf", "--wide", "--segments", library], text=True)
    (line,) = [line for line in parts.splitlines() if line.strip().startswith("TLS")]
    assert int(line.split()[5], 16) == 8


def test_the_folder_can_be_moved(tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for folder in ("lib", "include"):
        shutil.copytree(LIBRARIES.parent / folder, moved / folder)
    flags = configured(moved, "--cflags", "--libs")
    assert Path(flags[0].removeprefix("-I")).resolve() == (moved / "include").resolve()
    assert Path(flags[1].removeprefix("-L")).resolve() == (moved / "lib").resolve()
    assert flags[2] == "-ltare_log"
