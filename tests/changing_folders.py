# SPDX-License-Identifier: Apache-2.0
"""Searching folders in which other processes create and remove entries."""

import glob
from pathlib import Path


def matches(folder: Path, pattern: str) -> list[Path]:
    """What matches below a folder. `Path.glob` fails if a folder is removed during the search."""
    found = glob.glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207
    return [folder / name for name in found]
