# SPDX-License-Identifier: Apache-2.0
"""What the user says about a file that does not say it itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.errors import InputError

UNITS = ("ns", "us", "ms", "s")
ROLES = (
    "start", "end", "intended", "duration", "ok", "status", "error", "bytes", "span", "condition",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """`columns` maps one of `ROLES` to a column of the file; `unit` is one of `UNITS`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            raise InputError(f"--unit: found '{self.unit}', expected one of {', '.join(UNITS)}")
        for role in self.columns:
            if role not in ROLES:
                raise InputError(f"--columns: found '{role}', expected some of {', '.join(ROLES)}")
        if self.columns and not ({"duration", "end"} & self.columns.keys()):
            raise InputError("--columns: no duration; add duration=COLUMN, or start= and end=")
        if "end" in self.columns and "duration" not in self.columns and "start" not in self.columns:
            raise InputError("--columns: end=COLUMN needs start=COLUMN too")


NOTHING = Asked()


def parse_columns(text: str) -> dict[str, str]:
    """`start=ts,duration=ms` as a mapping. Raises InputError for anything else."""
    columns: dict[str, str] = {}
    for part in text.split(","):
        role, separator, column = part.partition("=")
        if not separator or not role.strip() or not column.strip():
            raise InputError(f"--columns: found '{part}', expected ROLE=COLUMN,ROLE=COLUMN...")
        if role.strip() in columns:
            raise InputError(f"--columns: '{role.strip()}' is named twice; a role has one column")
        columns[role.strip()] = column.strip()
    return columns
