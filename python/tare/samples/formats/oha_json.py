# SPDX-License-Identifier: Apache-2.0
"""oha's JSON output (`oha --output-format json`): percentiles in s of the answered requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.counted import Counted, Histogram
from tare.samples.formats.json_file import summary

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

CUT_OFF = "aborted due to deadline"


def read(backend: Database, path: Path) -> Counted:  # noqa: ARG001
    """Reads the percentiles as bins: finer than the eleven bars of oha's own histogram."""
    import numpy as np

    found = summary(path)
    try:
        statuses = {int(key): int(value) for key, value in found["statusCodeDistribution"].items()}
        errors = {key: int(value) for key, value in found["errorDistribution"].items()}
        whole, percentiles = found["summary"], found["latencyPercentiles"]
        refused = sum(count for status, count in statuses.items() if status >= 400)
        # Their latencies are among the others, nobody knows where: they are taken off evenly.
        answered = sum(statuses.values()) - refused
        failed = refused + sum(count for kind, count in errors.items() if kind != CUT_OFF)
        notes = _notes(refused, errors.get(CUT_OFF, 0))
        if not answered:
            none = np.zeros(0)
            return Counted((Histogram(none, none, none.astype(np.int64), failed),), notes)
        known = {float(key.removeprefix("p")) / 100: value for key, value in percentiles.items()}
        shares, edges = zip(*sorted(known.items()), strict=True)
        high = np.array([*edges, whole["slowest"]], dtype=np.float64) * 1e9
        until = np.round(np.array([*shares, 1.0]) * answered).astype(np.int64)
        stated = {name: percentiles[name] * 1e9 for name in ("p50", "p95", "p99")}
        stated["mean"] = whole["average"] * 1e9
        low = np.array([whole["fastest"] * 1e9, *high[:-1]])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not what oha --output-format json writes: {error!r}") from error
    bins = Histogram(low, high, np.diff(until, prepend=0), failed, stated)
    return Counted((bins,), notes)


def _notes(refused: int, cut_off: int) -> tuple[str, ...]:
    notes = ["oha's JSON has percentiles, no requests: --output-format csv lists them"]
    if refused:
        notes.append(f"{refused:,} answers of status 400 or above are among oha's latencies")
    if cut_off:
        notes.append(f"{cut_off:,} requests were cut off by the end of the run: not counted")
    return tuple(notes)
