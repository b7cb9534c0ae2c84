# SPDX-License-Identifier: Apache-2.0
"""What the user says about a file that does not say it itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tare.errors import InputError

UNITS = ("ns", "us", "ms", "s")
ROLES = (
    "start", "end", "intended", "duration", "ok", "status", "error", "bytes", "span", "condition",
)  # fmt: skip


@dataclass(frozen=True)
class ImportOptions:
    """`columns` maps one of `ROLES` to a column of the file; `unit` is one of `UNITS`.

    `units` has the unit of each condition that has a unit of its own. `group_by` is an attribute;
    spans with different values of it are different spans.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    group_by: str | None = None

    def __post_init__(self) -> None:
        for unit in (*filter(None, [self.unit]), *self.units.values()):
            if unit not in UNITS:
                raise InputError(f"--unit: found '{unit}', expected one of {', '.join(UNITS)}")
        for role in self.columns:
            if role not in ROLES:
                raise InputError(f"--columns: found '{role}', expected some of {', '.join(ROLES)}")
        if self.group_by == "":
            raise InputError("--group-by: is empty; give the name of an attribute of spans")
        if self.columns and not ({"duration", "end"} & self.columns.keys()):
            raise InputError("--columns: no duration; add duration=COLUMN, or start= and end=")
        if "end" in self.columns and "duration" not in self.columns and "start" not in self.columns:
            raise InputError("--columns: end=COLUMN needs start=COLUMN too")

    def of(self, condition: str) -> ImportOptions:
        """The same for the files of one condition, with its own unit."""
        return replace(self, unit=self.units.get(condition, self.unit), units={})


NOTHING = ImportOptions()


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


def parse_units(
    texts: Sequence[str], conditions: Collection[str]
) -> tuple[str | None, dict[str, str]]:
    """Of `ms` and `new=us`, the unit of all files, and those of single conditions.

    Raises InputError for a condition that does not exist, and where a condition has two units.
    """
    units: dict[str, str] = {}
    for text in texts:
        name, separator, unit = text.rpartition("=")
        if separator and name not in conditions:
            raise InputError(
                f"--unit: no condition '{name}'; expected UNIT, or NAME=UNIT where NAME is one of"
                f" {', '.join(conditions)}"
            )
        if name in units:
            raise InputError(
                f"--unit: found '{unit}' after '{units[name]}'; give one unit for all files,"
                " and NAME=UNIT for a"
                " condition with another unit"
            )
        units[name] = unit
    return units.pop("", None), units
