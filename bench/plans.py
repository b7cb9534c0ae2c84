# SPDX-License-Identifier: Apache-2.0
"""Plans that differ from those of plans/ in a few lines."""

from collections.abc import Mapping
from pathlib import Path


def changed(plan: Path, changes: Mapping[str, str]) -> str:
    """The text of a plan with some lines replaced. Raises SystemExit where it has no such line."""
    lines = plan.read_text().splitlines()
    for old, new in changes.items():
        if lines.count(old) != 1:
            raise SystemExit(f"{plan}: expected one line {old!r}, found {lines.count(old)}")
        lines[lines.index(old)] = new
    return "\n".join([*lines, ""])
