# SPDX-License-Identifier: Apache-2.0
"""What the peers make of an experiment that was really carried out."""

from pathlib import Path

import numpy as np
from bench.verdict import peers

from tare.samples.model import REQUEST
from tare.samples.read.result import open_result
from tare.stats.arrays import Array
from tare.stats.distances import between


def judged(folder: Path) -> dict[str, int]:
    """The verdict of each peer on the baseline and the condition of a result of two conditions.

    They get every successful request in the order of time: to leave out a warm-up, or slices in
    which the CPU was away, is Tare's own idea. The hidden control is no part of what they see.
    """
    first, second = sides(folder)
    found = peers.in_process(first, second, between([*first, *second], ("ad",))["ad"])
    means = peers.means_of(first), peers.means_of(second)
    return found | {name: word for name, (word,) in peers.programs([means]).items()}


def sides(folder: Path) -> tuple[list[Array], list[Array]]:
    """The latencies in ns of the valid runs of the baseline, and of the condition's."""
    result = open_result(folder)
    manifest, samples = result.manifest, result.samples()
    if samples is None:
        raise SystemExit(f"{folder}: no samples; the peers have nothing to judge")
    ok = samples.filter(samples.ok & samples.latency_ns.notnull() & (samples.span == REQUEST))
    table = ok.select("run", "latency_ns", "start_ns").order_by("run", "start_ns").to_pyarrow()
    run, latency = (table[name].to_numpy() for name in ("run", "latency_ns"))
    found: dict[bool, list[Array]] = {True: [], False: []}
    for entry in manifest.runs:
        if entry.valid and entry.condition != manifest.control:
            of_run = latency[run == entry.run].astype(np.float64)
            found[entry.condition == manifest.baseline].append(of_run)
    return found[True], found[False]
