# SPDX-License-Identifier: Apache-2.0
"""Response times that were counted in bins: no single requests, no order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.errors import InputError, NoRequestsError
from tare.samples.model import REQUEST, Distances, SpanKey
from tare.stats.distances import Pairs, kinds_from

if TYPE_CHECKING:
    import pyarrow as pa

QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
MOST = 100_000_000
BEYOND = 1 << 63


@dataclass(frozen=True)
class Histogram:
    """The bins of one span in rising order: arrays of shape (n,), ends in ns.

    The `requests` of a bin lie evenly between `low` and `high`, which are equal where the source
    knows one value.
    """

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    requests: npt.NDArray[np.int64]
    errors: int = 0
    """Failed requests: they are in no bin."""
    stated: Mapping[str, float] = field(default_factory=dict)
    """Metrics in ns that the source itself states, from more than its bins."""
    span: str = REQUEST
    started_ns: int | None = None
    ended_ns: int | None = None
    binned: bool = False
    """Whether quantiles that the source states are interpolated in its bins, too."""

    @property
    def answered(self) -> int:
        """Requests in the bins."""
        return int(self.requests.sum())

    def is_sound(self) -> bool:
        """Whether no count is below zero, and all times are numbers of ns in 64 bits."""
        ends = [end for end in (self.started_ns, self.ended_ns) if end is not None]
        times = (self.low, self.high, [*self.stated.values()])
        return bool(
            self.errors >= 0
            and (self.requests >= 0).all()
            and all((np.abs(values) < BEYOND).all() for values in times)
            and all(abs(end) < BEYOND for end in ends)
        )

    def summaries(self) -> dict[str, float]:
        """`p50`, `p95`, `p99` and `mean` in ns; none without requests.

        A quantile is interpolated linearly inside of its bin.
        """
        if not self.answered:
            return {}
        found = dict(zip(QUANTILES, self.quantiles([*QUANTILES.values()]).values(), strict=True))
        found["mean"] = float(np.average(self.middle, weights=self.requests))
        return found | dict(self.stated)

    def quantiles(self, at: Sequence[float]) -> dict[float, float]:
        """Durations in ns at probabilities, each interpolated inside of its bin; of no request,
        an IndexError."""
        until = np.cumsum(self.requests)
        found = {}
        for share in at:
            wanted = share * until[-1]
            place = int(np.searchsorted(until, wanted))
            inside = (wanted - until[place] + self.requests[place]) / self.requests[place]
            found[share] = float(self.low[place] + inside * (self.high[place] - self.low[place]))
        return found

    def steps(self) -> dict[str, float]:
        """Of each metric, the width in ns of the bin that it lies in: less cannot be told apart.

        None of what the source states from more than its bins.
        """
        if not self.answered:
            return {}
        until, width = np.cumsum(self.requests), self.high - self.low
        found = {
            name: float(width[np.searchsorted(until, share * until[-1])])
            for name, share in QUANTILES.items()
            if self.binned or name not in self.stated
        }
        if "mean" not in self.stated:
            found["mean"] = float(np.average(width, weights=self.requests))
        return found

    @property
    def middle(self) -> npt.NDArray[np.float64]:
        """Of each bin, (n,) in ns."""
        return (self.low + self.high) / 2

    def values(self) -> npt.NDArray[np.float64]:
        """Durations in ns, shape (answered,), rising: what the bins say of each request."""
        within = np.arange(self.answered) - np.repeat(
            np.cumsum(self.requests) - self.requests, self.requests
        )
        share = (within + 0.5) / np.repeat(self.requests, self.requests)
        low, high = (np.repeat(ends, self.requests) for ends in (self.low, self.high))
        return low + share * (high - low)


@dataclass(frozen=True)
class Counted:
    """One file of histograms, a histogram a span, and what was odd about it."""

    histograms: tuple[Histogram, ...]
    notes: tuple[str, ...] = ()

    def checked(self, name: str) -> Counted:
        """Itself. Raises NoRequestsError for no request, InputError for what nobody can send."""
        # As floats, since the sum may have more than 64 bits.
        answered = sum(
            float(histogram.requests.sum(dtype=np.float64)) for histogram in self.histograms
        )
        counts = [answered, *(histogram.errors for histogram in self.histograms)]
        if max(counts) > MOST * 1_000:
            most = f"{MOST * 1_000:,}"
            raise InputError(
                f"{name}: counts more than {most} requests; expected a load test's file"
            )
        if not all(histogram.is_sound() for histogram in self.histograms):
            raise InputError(
                f"{name}: has counts below zero, or times beyond 64 bits of ns; expected a load"
                " test's file, and its unit"
            )
        if sum(counts) == 0:
            raise NoRequestsError(f"{name}: no request was counted in it")
        return self

    def require_few(self, name: str) -> None:
        """Raises InputError where the requests are too many to be listed one by one."""
        if sum(histogram.answered + histogram.errors for histogram in self.histograms) > MOST:
            raise InputError(f"{name}: counts more than {MOST:,} requests, too many to list them")

    def samples(self, name: str) -> pa.Table:
        """A row a request: `span`, `duration_ns` (null where it failed), `ok`."""
        import pyarrow as pa

        self.require_few(name)
        tables = []
        for histogram in self.histograms:
            durations = pa.chunked_array(
                [
                    pa.array(histogram.values().round().astype(np.int64)),
                    pa.nulls(histogram.errors, pa.int64()),
                ]
            )
            tables.append(
                pa.table(
                    {
                        "span": pa.repeat(histogram.span, len(durations)),
                        "duration_ns": durations,
                        "ok": durations.is_valid(),
                    }
                )
            )
        return pa.concat_tables(tables)


def distances(histograms: Sequence[tuple[int, Histogram]]) -> dict[SpanKey, Distances]:
    """Between runs by number, of each span; a bin counts as its middle."""
    found = {}
    for span in dict.fromkeys(histogram.span for _, histogram in histograms):
        mine = [
            (run, histogram)
            for run, histogram in histograms
            if histogram.span == span and histogram.answered
        ]
        if len(mine) < 2:
            continue
        values = np.concatenate([histogram.middle for _, histogram in mine])
        counts = np.concatenate([histogram.requests for _, histogram in mine])
        index = np.repeat(np.arange(len(mine)), [histogram.middle.size for _, histogram in mine])
        order = np.lexsort((index, values))
        pairs = Pairs([histogram.answered for _, histogram in mine], kinds_from(values.min()))
        pairs.add(values[order], index[order], counts[order])
        runs = tuple(run for run, _ in mine)
        found["", span] = Distances(runs, pairs.matrices())
    return found


def points(values: npt.ArrayLike, requests: npt.ArrayLike) -> dict[str, Any]:
    """The bins of values that are known by themselves, as arguments of `Histogram`."""
    at = np.asarray(values, dtype=np.float64)
    return {"low": at, "high": at, "requests": np.asarray(requests, dtype=np.int64)}
