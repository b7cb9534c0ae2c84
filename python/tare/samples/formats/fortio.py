# SPDX-License-Identifier: Apache-2.0
"""fortio's JSON result (`fortio load -json FILE`): a histogram in s, and its percentiles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tare.errors import InputError
from tare.samples.counted import Counted, Histogram
from tare.samples.formats.json_file import summary

if TYPE_CHECKING:
    from tare.samples.sql.table import Database


def read(backend: Database, path: Path) -> Counted:  # noqa: ARG001
    """Reads the bins, of which those of failed requests are taken off."""
    found = summary(path)
    try:
        every = found["DurationHistogram"]
        failures = found.get("ErrorsDurationHistogram") or {"Count": 0}
        low, high, requests = _bins(every)
        failed, answered = int(failures["Count"]), int(every["Count"]) - int(failures["Count"])
        stated: dict[str, float] = {}
        if failed:
            at = _places(low, high, *_bins(failures)[:2])
            requests -= np.bincount(at, _bins(failures)[2], low.size).astype(np.int64)
        else:
            known = {row["Percentile"]: row["Value"] for row in every.get("Percentiles") or ()}
            stated = {f"p{at}": known[at] * 1e9 for at in (50, 95, 99) if at in known}
        if answered:
            stated["mean"] = (every["Sum"] - failures.get("Sum", 0)) / answered * 1e9
        begun = datetime.fromisoformat(found["StartTime"]) - datetime.fromtimestamp(0, UTC)
        start = begun // timedelta(microseconds=1) * 1_000
        times = start, start + int(found["ActualDuration"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: not what fortio load -json writes: {error!r}") from error
    width = found.get("Resolution")
    notes = ["fortio counts in bins: quantiles are interpolated inside of one"]
    if isinstance(width, float) and width >= 0.001:
        notes.append(f"fortio's bins are {width * 1e3:g} ms wide or more; -r 1e-6 makes them finer")
    if (requests < 0).any():
        raise InputError(f"{path}: counts more failed requests than requests; it is damaged")
    histogram = Histogram(low, high, requests, failed, stated, "request", *times, binned=True)
    return Counted((histogram,), (*notes,))


def _bins(histogram: dict[str, Any]) -> tuple[Any, Any, Any]:
    data = histogram["Data"] or []
    low, high = (
        np.array([bucket[end] for bucket in data], dtype=np.float64) for end in ("Start", "End")
    )
    return low * 1e9, high * 1e9, np.array([bucket["Count"] for bucket in data], dtype=np.int64)


def _places(low: Any, high: Any, its_low: Any, its_high: Any) -> Any:
    """The bins that hold others: the outermost ends are the fastest and slowest request's."""
    return np.clip(np.searchsorted(high, (its_low + its_high) / 2), 0, low.size - 1)
