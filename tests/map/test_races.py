# SPDX-License-Identifier: Apache-2.0
"""Two BPF programs that change one connection at once, on two CPUs that take turns at any of their
steps. The programs are compiled as functions of a test (user_space/races.c)."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "user_space"
RACES = HERE / "races.c"
PROGRAMS = Path(__file__).parents[2] / "crates" / "map" / "bpf"


@pytest.fixture(scope="module")
def races(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("clang") is None:
        pytest.skip("clang is missing")
    place = tmp_path_factory.mktemp("races") / "races"
    headers = [f"-I{HERE}", f"-I{PROGRAMS}", f"-I/usr/include/{platform.machine()}-linux-gnu"]
    # Attributes that only the target bpf has are ignored.
    command = ["clang", "-g", "-w", *headers, str(RACES), "-o", str(place)]
    subprocess.run(command, check=True)
    return place


@pytest.mark.parametrize("race", re.findall(r"^\t\{ \"(\w+)\"", RACES.read_text(), re.MULTILINE))
def test_edges_are_right_whatever_another_cpu_does(races: Path, race: str) -> None:
    done = subprocess.run([races, race], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout
