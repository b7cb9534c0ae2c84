# SPDX-License-Identifier: Apache-2.0
"""What a reader hands over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tare.samples.sql.table import Table


@dataclass(frozen=True)
class Source:
    """One file as it stands: nothing sorted, nothing left out.

    `samples` has `row` (place in the file, from 0) and columns of the samples table, at least
    `duration_ns` and `ok`; a `duration_ns` that is null marks a row that could not be read, unless
    `unanswered`, which it may have, says that the request failed without a duration.
    """

    samples: Table
    rejected: int = 0
    """Rows that could not even be taken apart: too many fields, broken quotes or text."""
    duplicates: int = 0
    """Rows equal to an earlier row in every field of the file."""
    since_start: bool = False
    """Whether `start_ns` counts from the beginning of the run, not of 1970."""
    notes: tuple[str, ...] = ()
    ungrouped: str | None = None
    """That no span has the attribute by which spans are separated; None if some have it."""
    assumed_unit: str | None = None
    """The unit that durations were read in, where neither the file nor the user states a unit."""
