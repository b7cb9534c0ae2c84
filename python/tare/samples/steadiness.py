# SPDX-License-Identifier: Apache-2.0
"""How each run went over its time, from means of batches: samples stay in the engine."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from tare.stats.steady import Steadiness, classify

if TYPE_CHECKING:
    from ibis.expr.types import Table

BATCHES = 1_000
"""At most so many batches a run and span."""
FEWEST = 5
"""Requests that a batch has at least, MSER-5's."""


def steadiness(samples: Table) -> dict[tuple[int, str], Steadiness]:
    """How each run and span went; those that are too short for it are absent.

    `samples` is as for `batch_means`.
    """
    rows = batch_means(samples).order_by("run", "span", "place").to_pyarrow().to_pylist()
    found = {}
    for key, group in groupby(rows, key=lambda row: (row["run"], row["span"])):
        batches = list(group)
        edges = [*(row["place"] for row in batches), batches[0]["places"]]
        one = classify([row["level"] for row in batches], edges)
        if one is not None:
            found[key] = one
    return found


def batch_means(samples: Table) -> Table:
    """The mean log latency (`level`, ln ns) of each batch, with its first `place`.

    `samples` has `run`, `span`, `place` (0, 1 ... in time order), `latency_ns` and `ok`; rows may
    be missing. The `places` of a run and span, one more than the highest, are divided into at most
    1,000 batches of equal length, of at least five. A batch of which less than half is there and
    ok is left out: its mean would be noisier than the others.
    """
    import ibis

    by = ["run", "span"]
    sizes = samples.group_by(by).aggregate(places=samples.place.max() + 1)
    batches: Any = ibis.least(BATCHES, ibis.greatest(sizes.places // FEWEST, 1))
    joined = samples.join(sizes.mutate(batches=batches), by)
    batch: Any = joined.place * joined.batches // joined.places
    there: Any = joined.ok & (joined.latency_ns > 0)
    # The engine may look at every row, and a logarithm of 0 is an error.
    level: Any = ibis.greatest(joined.latency_ns, 1).ln()
    means = joined.group_by([*by, "places", "batches", batch.name("batch")]).aggregate(
        level=level.mean(where=there), there=there.sum()
    )
    enough = means.filter(means.there * means.batches * 2 >= means.places)
    first: Any = (enough.batch * enough.places + enough.batches - 1) // enough.batches
    return enough.select(*by, "places", "level", place=first)


def with_place(samples: Table) -> Table:
    """Samples of a result folder with `place`, 0, 1 ... in time order within a run and span.

    The load numbers its requests as they end, so only spans, which have no `seq`, are sorted.
    """
    import ibis

    window = ibis.window(group_by=["run", "span"], order_by="start_ns")
    if "seq" not in samples.columns:
        return samples.mutate(place=ibis.row_number().over(window))
    numbered = samples.filter(samples.seq.notnull())
    others = samples.filter(samples.seq.isnull())
    return ibis.union(
        numbered.mutate(place=numbered.seq.cast("int64")),
        others.mutate(place=ibis.row_number().over(window)),
    )
