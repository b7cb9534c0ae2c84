# SPDX-License-Identifier: Apache-2.0
"""A root file system that has a shell and little else."""

import shutil
import subprocess
from pathlib import Path


def make_root(folder: Path) -> None:
    """Copies a shell, some programs and their libraries, and writes /etc/only."""
    programs = [str(shutil.which(name)) for name in ("sh", "sleep", "cat", "id")]
    linked = subprocess.check_output(["ldd", *programs], text=True)
    lines = [line.split() for line in linked.splitlines() if "/lib" in line and "(" in line]
    for file in sorted({*programs, *(line[-2] for line in lines)}):
        copy = folder / file[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(file).resolve(), copy)
    (folder / "etc").mkdir()
    (folder / "etc/only").write_text("in the image\n")
