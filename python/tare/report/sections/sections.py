# SPDX-License-Identifier: Apache-2.0
"""Sections of the report below the first screen, their order, and which of them begin open."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tare.report.pictures import Picture

GROUPS: Mapping[str, Sequence[str]] = {
    "Result": (
        "warnings",
        "failed",
        "effects",
        "over-time",
        "runs-by-block",
        "metrics",
        "recommendations",
    ),
    "Requests": (
        "percentiles",
        "boxes",
        "lag",
        "slowest",
        "spans",
        "span-percentiles",
        "collected",
        "critical-path",
        "waterfalls",
        "round-trip",
        "processor",
        "own-time",
        "micro-macro",
    ),
    "Machine": ("environments", "machine", "services"),
    "Statistics": (
        "numbers",
        "pooled-t",
        "shift",
        "distances",
        "warm-up",
        "power",
        "control",
        "calibration",
        "left-out",
    ),
    "Record": ("notes", "runs", "settings", "plan", "terms"),
}
"""The menu: anchors by group. The sections of the first group are open as far as there is room."""
ROOM = 4_000
"""Height of all open sections, in CSS pixels on a wide screen."""
_TITLE, _FIGURE, _TABLE, _ROW, _LINE = 150, 100, 90, 36, 30


@dataclass(frozen=True)
class Table:
    """Rows of text; the first `names` columns are no numbers."""

    label: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True)
class Figures:
    """The pictures of one kind, with the caption of each of them."""

    pictures: Sequence[Picture]
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Left out if it is empty: `absent` is the reason."""

    anchor: str
    name: str
    """In the menu, and its heading."""
    gist: str
    """What it shows, in one short line that is seen while it is folded."""
    how: str = ""
    """How to read it."""
    figures: Sequence[Figures] = ()
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    """Names and values."""
    text: str = ""
    """Shown as it is."""
    rows: int = 0
    """Of what the template adds, for the height."""
    absent: str = ""
    open: bool = False

    @property
    def shown(self) -> bool:
        """Whether it has any content."""
        return bool(self.lines or self.facts or self.text or self.rows) or any(
            [
                *(figures.pictures for figures in self.figures),
                *(table.rows for table in self.tables),
            ]
        )

    @property
    def height(self) -> float:
        """About its height in CSS pixels on a wide screen."""
        drawn = [picture.drawings for of in self.figures for picture in of.pictures]
        heights = (re.search(r'viewBox="0 0 960 ([\d.]+)"', drawing) for drawing in drawn)
        tables = [table for table in self.tables if table.rows]
        rows = self.rows + sum(len(table.rows) for table in tables)
        return (
            _TITLE
            + sum(_FIGURE + float(found[1]) for found in heights if found)
            + _TABLE * len(tables)
            + _ROW * rows
            + _LINE * len(self.lines)
        )


def in_groups(sections: Iterable[Section]) -> dict[str, list[Section]]:
    """The sections that are shown by group, in the order of the menu."""
    shown = {section.anchor: section for section in sections if section.shown}
    room: float = ROOM
    found: dict[str, list[Section]] = {}
    for group, anchors in GROUPS.items():
        for anchor in anchors:
            if (section := shown.get(anchor)) is None:
                continue
            opened = group == next(iter(GROUPS)) and section.height <= room
            room -= section.height if opened else 0
            found.setdefault(group, []).append(replace(section, open=opened))
    return found
