# SPDX-License-Identifier: Apache-2.0
"""Counts of many histograms, added up bin by bin in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np

ARRAY = 16
"""An array takes as much memory as so many bins, however few it has."""
FEW = 1 << 17
"""Bins that are not worth adding up."""
LARGEST = 10**12
"""Of a bin; more than is compared, and far from 64 bits."""


class Bins:
    """The bins of each name: lowest and highest value and count, int64 of shape (3, n)."""

    def __init__(self, most: int) -> None:
        """`most` bins of all names together are accepted."""
        self._most = most
        self._parts: dict[str, list[Any]] = {}
        self._held, self._due = 0, FEW

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, name: str, bins: Any) -> None:
        """Adds a histogram, whose bins rise. Raises OverflowError for too many bins."""
        self._parts.setdefault(name, []).append(bins)
        self._held += ARRAY + bins.shape[1]
        if self._held > self._due:
            self.sums()

    def sums(self) -> dict[str, Any]:
        """The bins of each name, rising. Raises OverflowError for too many bins."""
        found = {name: _sum(parts) for name, parts in self._parts.items()}
        bins = sum(part.shape[1] for part in found.values())
        if bins > self._most:
            raise OverflowError(f"more than {self._most:,} bins with requests")
        self._parts = {name: [part] for name, part in found.items()}
        self._held = bins + ARRAY * len(found)
        # When as much again has come, so that adding up takes no longer than reading.
        self._due = max(FEW, 2 * self._held)
        return found


def _sum(parts: list[Any]) -> Any:
    bins = np.concatenate(parts, axis=1)
    if not bins.size:
        return bins
    low, high, counts = bins[:, np.lexsort((bins[1], bins[0]))]
    first = np.concatenate(([True], (np.diff(low) != 0) | (np.diff(high) != 0)))
    starts = np.flatnonzero(first)
    sums = np.minimum(np.add.reduceat(counts, starts), LARGEST)
    return np.stack([low[starts], high[starts], sums])
