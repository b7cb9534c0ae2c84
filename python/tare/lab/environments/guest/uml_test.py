# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.lab.environments.guest import uml


@pytest.mark.parametrize(
    ("flags", "version", "works"),
    [
        ("avx512f amx_tile", "6.1.176", False),
        ("avx512f amx_tile", "6.13.1", True),
        ("avx512f", "6.1.176", True),
    ],
)
def test_an_early_kernel_does_not_run_on_a_cpu_with_amx(
    flags: str, version: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, cpus = tmp_path / uml.KERNEL, tmp_path / "cpuinfo"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    cpus.write_text(f"flags\t\t: fpu {flags}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(uml, "CPUS", cpus)
    if works:
        uml.UserModeLinux().check()
    else:
        with pytest.raises(ValueError, match=r"6\.13 or later, as this CPU has AMX"):
            uml.UserModeLinux().check()
