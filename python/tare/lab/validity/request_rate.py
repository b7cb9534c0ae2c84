# SPDX-License-Identifier: Apache-2.0
"""Whether a condition got the requests a second that its plan asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tare.samples.model import OTHER_LOAD

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = 20
"""Stretches of a run of which each has a rate."""


def invalid_reason(
    asked: float, samples: pa.Table, machine: pa.Table, slice_ns: int | None = None
) -> str | None:
    """Why a run had another load than `asked` requests a second, or None.

    The rate is that of the median twentieth of its slices: what stops the machine once costs a
    load that does not catch up some requests, and is no load that was too much. `slice_ns` is how
    long a slice had load, where that is less than what was read of the machine around it.
    """
    import pyarrow.compute as pc

    one_a_slice = machine.filter(pc.equal(machine["metric"].cast("string"), "steal"))
    slices = one_a_slice["slice"].to_numpy()
    lengths = one_a_slice["duration_ns"].to_numpy()
    if slice_ns is not None:
        lengths = np.full(slices.size, slice_ns)
    sent = np.bincount(samples["slice"].to_numpy(), minlength=slices.max() + 1)[slices]
    parts = np.array_split(np.argsort(slices), min(PARTS, slices.size))
    seconds = np.array([lengths[part].sum() for part in parts]) / 1e9
    rates = np.array([sent[part].sum() for part in parts]) / seconds
    found = float(np.median(rates))
    # Where a part begins, one more request is in it or not.
    if abs(found - asked) <= OTHER_LOAD * asked + 1 / float(np.median(seconds)):
        return None
    return (
        f"{found:,.0f} requests/s were sent instead of {asked:,.0f}: lower the rate, or give the"
        f" load more users"
    )
