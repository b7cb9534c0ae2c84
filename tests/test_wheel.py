# SPDX-License-Identifier: Apache-2.0
"""`pip install` of the built wheel gives the same `tare`, native parts and tables inside.

`make dist` runs this file on the wheel that it made, named by TARE_WHEEL.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatch_build import HEADERS

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).parent / "uv"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if made := os.environ.get("TARE_WHEEL"):
        return Path(made).resolve()
    folder = tmp_path_factory.mktemp("dist")
    # The build backend stands in this environment already: no second download of it.
    options = ["--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable]
    # Other tests use the native parts meanwhile, and the commit that they name.
    environment = os.environ | {"TARE_AS_BUILT": "1"}
    command = [str(UV), "build", *options, "--out-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return next(folder.glob("*.whl"))


def test_it_serves_every_python_of_one_architecture(wheel: Path) -> None:
    assert wheel.name.startswith("tare-")
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"tare/_native/bin/tare-load", "tare/_native/bin/tare-hook"} <= names
    assert {"tare/_native/bin/tare-log", "tare/_native/include/tare_log.h"} <= names
    if shutil.which("clang"):
        assert "tare/_native/bin/tare-map" in names
    assert {"tare/_native/lib/libtare_hook.so", "tare/_tables/samples.toml"} <= names
    include = {path.name for folder in HEADERS for path in folder.rglob("*.h*")}
    assert include <= {
        Path(name).name for name in names if name.startswith("tare/_native/include/")
    }
    libraries = ("libtare_log.so", "libtare_log.so.1", "libtare_log.a", "tare_log.abi3.so")
    assert {f"tare/_native/lib/{name}" for name in (*libraries, "pkgconfig/tare_log.pc")} <= names
    assert {"tare/log.py", "tare/log.pyi", "tare/py.typed"} <= names
    if shutil.which("mvn") and shutil.which("javac"):
        assert {f"tare/_native/java/tare-log{which}.jar" for which in ("", "-agent")} <= names


def test_the_installed_command_works(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    python = environment / "bin" / "python"
    # Compiling thousands of files of which few are used takes most of the time.
    options = ["--quiet", "--no-compile-bytecode", "--python", str(python)]
    subprocess.run([str(UV), "pip", "install", *options, str(wheel)], check=True)
    tare = environment / "bin" / "tare"
    for command in (
        ["--version"],
        ["load", "--help"],
        ["hook", "--", "true"],
        ["doctor", "--json"],
    ):
        subprocess.run([tare, *command], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    program = "from tare.log import Channel; Channel('numbers').log(42)"
    run = [str(tare), "log", "run", "--out", "events.log", "--", str(python), "-c", program]
    subprocess.run(run, cwd=tmp_path, check=True)
    dump = [str(tare), "log", "dump", "events.log"]
    assert b"numbers,42," in subprocess.check_output(dump, cwd=tmp_path)
