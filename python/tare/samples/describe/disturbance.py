# SPDX-License-Identifier: Apache-2.0
"""Slices of a result in which something else had the CPU; docs/internals/statistics.md says why so.

Only steal, run-queue wait and CPU time are read, never a latency: what is left out cannot favour
a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tare.stats.disturbance import FLOOR, clearly_above, quieter_half

if TYPE_CHECKING:
    from pathlib import Path

    from tare.samples.manifest import Manifest
    from tare.samples.sql.table import Database

Booleans = npt.NDArray[np.bool_]
TICK_NS = 10_000_000
"""The kernel counts the CPU time of all tasks in ticks."""
MANY_REQUESTS = 10
"""Requests per slice of a run from which hardly any of its slices has none."""


@dataclass(frozen=True)
class LeftOut:
    """`slices` as (run, slice), the share of each run's slices, and what to tell."""

    slices: frozenset[tuple[int, int]]
    shares: dict[int, float]
    warnings: tuple[str, ...]
    disturbed: frozenset[int] = frozenset()
    """Runs that were hit for more than half of their load: stalls are in what is left of them."""


@dataclass(frozen=True)
class _Readings:
    """One row a slice of one run: arrays of shape (n,)."""

    run: npt.NDArray[np.int64]
    slice: npt.NDArray[np.int64]
    steal: npt.NDArray[np.float64]
    waiting: npt.NDArray[np.float64]
    """Run-queue wait of generator and service, as a share of the slice's length."""
    length: npt.NDArray[np.int64]
    busy: npt.NDArray[np.float64]
    """CPU time of all tasks on their CPUs, in ticks; 0 where it is not known."""
    own: npt.NDArray[np.float64]
    """CPU time of generator and service."""
    used: Booleans
    """Whether a request of the run started in the slice."""


def find_left_out(backend: Database, folder: Path, manifest: Manifest) -> LeftOut:
    """The slices to leave out of every run of a result folder.

    A round is one slice of every condition of an interleaved block, or one slice of a run when
    conditions ran one after the other or in turns. A hit anywhere in a round leaves the whole
    round out. In turns only steal is a hit. Waiting counts in slices with requests only, and only
    rounds with requests are part of the half that stays.
    """
    readings = _read(backend, folder, manifest)
    if readings is None:
        return LeftOut(frozenset(), {}, _unseen(manifest))
    # In turns the layers are other tasks on the same CPUs: that a service waits is their cost.
    alternating = manifest.design == "alternating"
    waited = (_waited(readings, manifest) | _waited_for_others(readings)) & readings.used
    if alternating:
        waited[:] = False
    slices: set[tuple[int, int]] = set()
    shares: dict[int, float] = {}
    disturbed: set[int] = set()
    capped = 0
    groups = _groups(manifest, set(np.unique(readings.run).tolist()))
    for runs in groups:
        here = np.isin(readings.run, runs)
        rounds = readings.slice[here] // len(runs)
        if alternating:  # slices between the turns are of no run
            rounds = np.unique(rounds, return_inverse=True)[1]
        used = readings.used[here]
        if not used.any():
            continue
        waiting = np.where(used, readings.waiting[here], 0)
        out, over = _rounds_out(rounds, readings.steal[here], waited[here], waiting, used)
        capped += over
        disturbed.update(runs if over else ())
        pairs = zip(readings.run[here].tolist(), readings.slice[here].tolist(), strict=True)
        hit = out[rounds]
        slices.update(pair for pair, is_hit in zip(pairs, hit.tolist(), strict=True) if is_hit)
        shares.update(dict.fromkeys(runs, float(hit[used].mean())))
    warnings: tuple[str, ...] = ()
    if capped:
        warnings = (
            f"in {capped} of {len(groups)} blocks more than half of the load was hit by other users"
            " of the CPU: the most disturbed half is left out, and p95, p99 and mean have no"
            " verdict; stop other programs, or give service and load their own CPUs",
        )
    return LeftOut(frozenset(slices), shares, warnings, frozenset(disturbed))


def _unseen(manifest: Manifest) -> tuple[str, ...]:
    """What to tell where the lab should have recorded the machine, and nothing is there."""
    if not manifest.has_own_load or not any(run.valid for run in manifest.runs):
        return ()
    return ("no record of the machine (machine/): disturbed slices are not excluded",)


def _read(backend: Database, folder: Path, manifest: Manifest) -> _Readings | None:
    from tare.samples.engines.hive import read_hive

    table = read_hive(backend, folder, "machine")
    if table is None:
        return None
    value: Any = table.value
    is_own: Any = table.subject.isin(["generator", "service"])
    is_machine: Any = table.subject == "machine"
    is_cpu: Any = table.metric == "cpu_time"
    per_slice = (
        table.filter(table.slice.notnull())
        .group_by(["run", "slice"])
        .aggregate(
            steal=value.sum(where=(table.metric == "steal") & is_machine),
            wait=value.sum(where=(table.metric == "run_delay") & is_own),
            length=table.duration_ns.max(),
            busy=value.sum(where=is_cpu & is_machine),
            own=value.sum(where=is_cpu & is_own),
        )
        .order_by(["run", "slice"])
        .to_pyarrow()
    )
    if per_slice.num_rows == 0:
        return None
    run, slices, steal, wait, length, busy, own = (
        per_slice[name].fill_null(0).to_numpy() for name in per_slice.column_names
    )
    busy = np.where(np.isin(run, _watched(manifest)), busy, 0.0)
    used = _used(backend, folder, manifest, run, slices)
    return _Readings(run, slices, steal, wait / np.maximum(length, 1), length, busy, own, used)


def _used(
    backend: Database,
    folder: Path,
    manifest: Manifest,
    run: npt.NDArray[np.int64],
    slices: npt.NDArray[np.int64],
) -> Booleans:
    """Which slices have requests; samples are only read where some may have none."""
    from tare.samples.engines.hive import read_hive

    recorded = dict(zip(*(of.tolist() for of in np.unique(run, return_counts=True)), strict=True))
    few = [
        entry.run
        for entry in manifest.runs
        if entry.requests is not None
        and entry.requests < MANY_REQUESTS * recorded.get(entry.run, 0)
    ]
    samples = read_hive(backend, folder, "samples") if few else None
    if samples is None or "slice" not in samples.columns:
        return np.ones(run.size, dtype=np.bool_)
    started = (
        samples.filter(samples.run.isin(few) & samples.slice.notnull())
        .group_by(["run", "slice"])
        .aggregate(requests=samples.run.count())
        .to_pyarrow()
    )
    with_requests = set(zip(*(started[name].to_pylist() for name in ("run", "slice")), strict=True))
    pairs = zip(run.tolist(), slices.tolist(), strict=True)
    return np.array([number not in few or (number, at) in with_requests for number, at in pairs])


def _watched(manifest: Manifest) -> list[int]:
    """The runs of whose service all CPU time is known: of others some looks like another task's."""
    return [run.run for run in manifest.runs if run.cpu.get("service_ns_per_request") is not None]


def _waited_for_others(readings: _Readings) -> Booleans:
    """Slices with any waiting, in runs during which other tasks surely had the CPUs for a part.

    A tick is the time of whichever task it meets: N ticks are right to within sqrt(N) / 2.
    """
    _, at = np.unique(readings.run, return_inverse=True)
    busy, own, length = (
        np.bincount(at, weights=values) for values in (readings.busy, readings.own, readings.length)
    )
    others_ran: Booleans = busy - own > FLOOR * length + 2 * np.sqrt(TICK_NS * busy)
    waits: Booleans = others_ran[at] & (readings.waiting > FLOOR)
    return waits


def _waited(readings: _Readings, manifest: Manifest) -> Booleans:
    """Slices with unusual waiting, each condition against its own level in its environment.

    A layer that makes its service wait for the CPU all the time costs that; it is no disturbance.
    """
    runs_of: dict[tuple[str, str], list[int]] = {}
    for run in manifest.runs:
        runs_of.setdefault((run.environment, run.condition), []).append(run.run)
    waited = np.zeros(readings.run.size, dtype=np.bool_)
    for runs in runs_of.values():
        here = np.isin(readings.run, runs) & readings.used
        waited[here] = clearly_above(readings.waiting[here])
    return waited


def _groups(manifest: Manifest, recorded: set[int]) -> list[list[int]]:
    """Runs whose slices share rounds."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    interleaved = manifest.design == "interleaved"
    for run in manifest.runs:
        if run.run in recorded:
            key = (run.environment, run.block) if interleaved else (run.run,)
            groups.setdefault(key, []).append(run.run)
    return list(groups.values())


def _rounds_out(
    rounds: npt.NDArray[np.int64],
    steal: npt.NDArray[np.float64],
    waited: Booleans,
    waiting: npt.NDArray[np.float64],
    used: Booleans,
) -> tuple[Booleans, bool]:
    """Which rounds 0 ... are left out, and whether it would have been more than half of those used.

    A round without requests is never left out.
    """
    count = int(rounds.max()) + 1
    stolen = np.bincount(rounds, weights=steal, minlength=count)
    # The kernel counts steal in ticks of 10 ms: the time behind a tick may lie in the round before.
    stolen[:-1] += stolen[1:].copy()
    worst = np.zeros(count)
    np.maximum.at(worst, rounds, waiting)
    hit = (stolen > 0) | (np.bincount(rounds, weights=waited, minlength=count) > 0)
    asked = np.bincount(rounds, weights=used, minlength=count) > 0
    out = np.zeros(count, dtype=np.bool_)
    out[asked] = quieter_half(hit[asked], stolen[asked], worst[asked])
    return out, bool(hit[asked].mean() > 0.5)
