# SPDX-License-Identifier: Apache-2.0
"""A part of the report below the first screen: how to read it, figures, tables, lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.pictures import Picture


@dataclass(frozen=True)
class Table:
    """Rows of text; the first `names` columns are no numbers."""

    label: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True)
class Figures:
    """The pictures of one kind, with what is said below each of them."""

    pictures: Sequence[Picture]
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Left out where it has neither figures nor tables nor lines: `absent` says why."""

    anchor: str
    name: str
    """In the list of contents."""
    heading: str
    how: str
    """One sentence: how to read it."""
    figures: Sequence[Figures] = ()
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    absent: str

    @property
    def there(self) -> bool:
        """Whether it shows anything."""
        return bool(self.lines) or any(
            [*(one.pictures for one in self.figures), *(one.rows for one in self.tables)]
        )
