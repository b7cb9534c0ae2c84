# SPDX-License-Identifier: Apache-2.0
"""The latencies of a result folder themselves, for what summaries of runs cannot tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tare.samples.model import Place
from tare.samples.result import open_result, readable

if TYPE_CHECKING:
    from tare.stats.arrays import Array

Runs = dict[tuple[str, int], "Array"]
"""Of each run, by condition and block, its latencies in ns, (n,) with n at least 1."""


def latencies(folder: Path) -> dict[Place, Runs]:
    """Of every valid run, without failed requests and slices that are left out, by place.

    All of them are held in memory, 8 bytes each. Raises InputError when the folder is no result.
    """
    with readable(folder):
        result = open_result(folder)
        samples = result.samples()
        if samples is None:
            return {}
        kept = samples.filter(samples.ok & ~samples.left_out & samples.latency_ns.notnull())
        table = kept.select("run", "span", "latency_ns").order_by("run", "span").to_pyarrow()
    if table.num_rows == 0:
        return {}
    runs = table["run"].to_numpy()
    spans = table["span"].combine_chunks().dictionary_encode()
    values = table["latency_ns"].to_numpy().astype(np.float64)
    entries = {entry["run"]: entry for entry in result.manifest["runs"] if entry["valid"]}
    codes = spans.indices.to_numpy()
    starts = np.flatnonzero(np.diff(runs, prepend=-1).astype(bool) | np.diff(codes, prepend=-1))
    found: dict[Place, Runs] = {}
    for start, part in zip(starts, np.split(values, starts[1:]), strict=True):
        entry = entries.get(int(runs[start]))
        if entry is not None:
            place = entry["environment"], spans.dictionary[int(codes[start])].as_py()
            found.setdefault(place, {})[entry["condition"], entry["block"]] = part
    return found
