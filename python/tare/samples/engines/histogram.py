# SPDX-License-Identifier: Apache-2.0
"""Latencies counted in the project's bins, which any engine can: what is kept of too many to sort.

Histograms are merged by putting their rows together, in one table or in several files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.samples.sql.column import functions_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.sql.column import Column
    from tare.samples.sql.table import Table

OCTAVE = 9
"""2^9 bins an octave, as in crates/hist: half a bin is less than 0.1 % of its values."""


def histogram(samples: Table) -> Table:
    """A row for each run, span and bin: `requests`, and of their `latency_ns` sum, least and most.

    Failed requests are in the rows whose `bin` is null.
    """
    sql = functions_of(samples)
    ok: Any = samples.ok & samples.latency_ns.notnull()
    counted = samples.select(
        run=samples.run,
        span=samples.span,
        bin=ok.ifelse(bin_of(samples.latency_ns), sql.null("int64")),
        latency_ns=ok.ifelse(samples.latency_ns, sql.null("int64")),
    )
    latency: Any = counted.latency_ns
    return counted.group_by(["run", "span", "bin"]).aggregate(
        requests=counted.count(),
        sum_ns=latency.sum().cast("int64"),
        least_ns=latency.min(),
        most_ns=latency.max(),
    )


def bin_of(latency: Column) -> Column:
    """The bin of a latency in ns; those below 1 are in bin 0.

    Where the logarithm is a bit off next to a power of 2 the bin is the same from either side.
    """
    sql = functions_of(latency)
    value: Any = sql.greatest(latency, 1)
    shift = sql.greatest(value.log2().floor().cast("int32") - OCTAVE, 0)
    found = shift.cast("int64") * (1 << OCTAVE) + (value >> shift)
    within: Column = (latency < 1).ifelse(0, found)
    return within


def bounds(bins: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Least values of bins (n,), and of those that follow them, in ns."""
    shift = np.maximum((bins >> OCTAVE) - 1, 0)
    part = bins - (shift << OCTAVE)
    return part << shift, (part + 1) << shift


def merged(rows: pa.Table) -> pa.Table:
    """One row for each run, span and bin of several histograms, in this order."""
    by = ["span", "bin", "run"]
    return (
        rows.group_by(by)
        .aggregate(
            [("requests", "sum"), ("sum_ns", "sum"), ("least_ns", "min"), ("most_ns", "max")]
        )
        .rename_columns([*by, "requests", "sum_ns", "least_ns", "most_ns"])
        .sort_by([(name, "ascending") for name in by])
    )
