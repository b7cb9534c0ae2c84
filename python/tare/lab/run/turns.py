# SPDX-License-Identifier: Apache-2.0
"""Turns of the conditions of an alternating block: their order, and what was measured in each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


@dataclass(frozen=True)
class Turn:
    """The measured part of one turn, in ns since the Unix epoch."""

    start_ns: int
    end_ns: int


def order_of_turns(seed: str, conditions: Sequence[str], turns: int) -> list[str]:
    """`turns` rounds, in each of which every condition has one turn, in random order."""
    chance = random.Random(seed)
    mixed = [chance.sample(list(conditions), len(conditions)) for _ in range(turns)]
    return [condition for order in mixed for condition in order]


def of_turns(table: pa.Table, machine: pa.Table, turns: Sequence[Turn]) -> pa.Table:
    """The rows of a table whose slices lie within turns.

    `machine` has the start and the length of every slice. `samples` and `machine` of a load are
    both cut by slices, so that they are about the same requests.
    """
    import pyarrow as pa

    inside = _slices_within(machine, turns)
    slices = table["slice"].fill_null(-1).to_numpy()
    return table.filter(pa.array(np.isin(slices, inside)))


def metrics_of_turns(table: pa.Table, turns: Sequence[Turn]) -> pa.Table:
    """The rows of readings whose middle lies within turns: a reading ends where a turn does."""
    import pyarrow as pa

    middle = table["start_ns"].to_numpy() + table["duration_ns"].to_numpy() // 2
    within = np.zeros(middle.size, dtype=np.bool_)
    for turn in turns:
        within |= (middle >= turn.start_ns) & (middle <= turn.end_ns)
    return table.filter(pa.array(within))


def numbered(samples: pa.Table) -> pa.Table:
    """The samples of one run with `seq` from 0."""
    import pyarrow as pa

    if "seq" not in samples.column_names:
        return samples
    at = samples.schema.get_field_index("seq")
    order = np.argsort(samples["seq"].to_numpy(), kind="stable")
    seq = np.empty(order.size, dtype=np.int64)
    seq[order] = np.arange(order.size)
    return samples.set_column(at, samples.schema.field(at), pa.array(seq))


def errors_by_kind(samples: pa.Table) -> Mapping[str, int]:
    """The failed requests of some samples, by what went wrong."""
    import pyarrow as pa
    import pyarrow.compute as pc

    failed = samples.filter(pc.invert(samples["ok"]))
    kinds = failed["error"].cast(pa.string()).value_counts().to_pylist()
    return {str(kind["values"]): kind["counts"] for kind in kinds}


def _slices_within(machine: pa.Table, turns: Sequence[Turn]) -> npt.NDArray[np.int64]:
    slices = machine["slice"].fill_null(-1).to_numpy()
    start = machine["start_ns"].to_numpy()
    end = start + machine["duration_ns"].to_numpy()
    within = np.zeros(slices.size, dtype=np.bool_)
    for turn in turns:
        within |= (start >= turn.start_ns) & (end <= turn.end_ns)
    found: npt.NDArray[np.int64] = np.unique(slices[within & (slices >= 0)])
    return found
