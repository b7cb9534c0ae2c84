# SPDX-License-Identifier: Apache-2.0
"""A description from a histogram: of more samples than can be sorted, or of those long gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tare.samples.engines.description import Described, Description
from tare.samples.engines.histogram import bounds, merged
from tare.samples.model import Distances
from tare.samples.sql.group_numbers import Group

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


def describe_histogram(
    rows: pa.Table, at: Sequence[float], *, with_distances: bool = True
) -> Description:
    """Describes the rows of one or of several histograms put together, as `describe` does.

    Requests lie evenly between the least and the greatest latency of their bin.
    """
    import pyarrow.compute as pc

    table = merged(rows)
    answered = table.filter(pc.field("bin").is_valid())
    groups = _failed(table.filter(pc.field("bin").is_null()))
    distances: dict[str, Distances] = {}
    errors_of: dict[str, float] = {}
    for span in pc.unique(answered["span"]).to_pylist():
        of_span = answered.filter(pc.field("span") == span)
        runs = np.unique(of_span["run"].to_numpy())
        for run in runs.tolist():
            of_run = of_span.filter(pc.field("run") == run)
            errors = groups[run, span].errors if (run, span) in groups else 0
            groups[run, span] = _described(of_run, errors, at)
        if with_distances and runs.size > 1:
            distances[span], errors_of[span] = _distances(of_span, runs)
    return Description(groups, distances, exact=False, ks_error=errors_of)


def _failed(rows: pa.Table) -> dict[Group, Described]:
    columns = (rows[name].to_pylist() for name in ("run", "span", "requests"))
    return {
        (run, span): Described(errors, errors, None)
        for run, span, errors in zip(*columns, strict=True)
    }


def _described(rows: pa.Table, errors: int, at: Sequence[float]) -> Described:
    import pyarrow.compute as pc

    counts = rows["requests"].to_numpy()
    until = np.cumsum(counts)
    # A quantile is interpolated between two ranks, which may be in bins far apart.
    ranks = np.stack([until - counts, until - 1], axis=1).ravel()
    ends = np.stack([rows["least_ns"].to_numpy(), rows["most_ns"].to_numpy()], axis=1).ravel()
    # Ranks of type 8, as `OrderedQuantiles` has them; from 0.
    quantiles = np.interp((until[-1] + 1 / 3) * np.asarray(at) - 2 / 3, ranks, ends)
    answered = int(until[-1])
    mean = pc.sum(rows["sum_ns"]).as_py() / answered
    return Described(
        answered + errors, errors, mean, dict(zip(at, quantiles.tolist(), strict=True))
    )


def _distances(rows: pa.Table, runs: npt.NDArray[np.int64]) -> tuple[Distances, float]:
    """Distances between runs, and the share of a run in its fullest bin: inside of one bin two
    distributions cannot get further apart than at its ends by more."""
    from tare.stats.distances import Pairs, kinds_from

    index = np.searchsorted(runs, rows["run"].to_numpy())
    counts = rows["requests"].to_numpy()
    sizes = np.bincount(index, counts)
    low, high = bounds(rows["bin"].to_numpy())
    middle = (low + high - 1) / 2
    pairs = Pairs(sizes, kinds_from(middle.min()))
    pairs.add(middle, index, counts)
    found = Distances(tuple(runs.tolist()), pairs.matrices())
    return found, float((counts / sizes[index]).max())
