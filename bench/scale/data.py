# SPDX-License-Identifier: Apache-2.0
"""Runs of any length whose requests take 30 µs to 30 ms, and the experiment that they are."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tare.samples.engines import Description
from tare.samples.model import REQUEST, Distances, Experiment, Run

RUNS = 20
AT = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
PIECE = 1_000_000
EVERY_NS = 1_000_000
"""From the start of a request to that of the next."""
PLAIN, CHANGED = "plain", "changed"
BUDGET = 0.01


def write(folder: Path, requests: int) -> None:
    """One Parquet file a run, the even ones 3 % slower; `requests` in all, one in 1,000 failed."""
    schema = pa.schema(
        {
            "run": pa.int32(),
            "span": pa.string(),
            "seq": pa.int64(),
            "start_ns": pa.int64(),
            "duration_ns": pa.int64(),
            "ok": pa.bool_(),
        }
    )
    for run in range(1, RUNS + 1):
        generator = np.random.default_rng([requests, run])
        shift = generator.normal(0, 0.01) + (0.03 if run % 2 == 0 else 0)
        with pq.ParquetWriter(folder / f"{run:02}.parquet", schema) as file:
            for begin in range(0, requests // RUNS, PIECE):
                size = min(PIECE, requests // RUNS - begin)
                seq = np.arange(begin, begin + size)
                columns = {
                    "run": np.full(size, run, np.int32),
                    "span": pa.repeat(REQUEST, size),
                    "seq": seq,
                    "start_ns": EVERY_NS * seq,
                    "duration_ns": _latencies(generator, shift, size),
                    "ok": np.arange(size) % 1_000 != 0,
                }
                file.write_table(pa.table(columns, schema))


def as_result(files: Path, folder: Path) -> None:
    """A result folder as the lab leaves one, whose samples are these files."""
    runs = []
    for run in range(1, RUNS + 1):
        entry = {"run": run, "block": (run + 1) // 2, "condition": _condition(run)}
        where = "/".join(f"{key}={entry[key]}" for key in ("condition", "block", "run"))
        sample = folder / "samples" / where / "samples.parquet"
        sample.parent.mkdir(parents=True)
        source = files / f"{run:02}.parquet"
        sample.hardlink_to(source)
        requests = pq.read_metadata(source).num_rows
        runs.append(entry | {"environment": "host", "valid": True, "requests": requests})
    manifest = {"runs": runs, "baseline": PLAIN, "budget": BUDGET, "design": "blocks"}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _condition(run: int) -> str:
    return CHANGED if run % 2 == 0 else PLAIN


def _latencies(generator: np.random.Generator, shift: float, size: int) -> npt.NDArray[np.int64]:
    """A fast and a slow path; a fifth is recorded in steps of 10 µs."""
    fast = np.exp(generator.normal(np.log(800_000) + shift, 0.6, size))
    slow = np.where(generator.random(size) < 0.2, 8, 1)
    found: npt.NDArray[np.int64] = np.clip(fast * slow, 30_000, 30_000_000).astype(np.int64)
    coarse = generator.random(size) < 0.2
    found[coarse] = (found[coarse] + 5_000) // 10_000 * 10_000
    return found


def experiment_of(description: Description) -> Experiment:
    """Ten blocks of a run of either condition, ready to be judged."""
    runs = [
        Run(
            environment="",
            condition=_condition(run),
            block=(run + 1) // 2,
            run=run,
            span=span,
            requests=group.requests,
            errors=group.errors,
            answered=group.requests - group.errors,
            started_ns=None,
            summaries={f"p{at * 100:.0f}": group.quantiles[at] for at in (0.5, 0.95, 0.99)}
            | {"mean": group.mean or 0.0},
            quantiles=group.quantiles,
        )
        for (run, span), group in sorted(description.groups.items())
    ]
    distances: dict[tuple[str, str], Distances] = {
        ("", span): found for span, found in description.distances.items()
    }
    return Experiment(tuple(runs), PLAIN, True, budget=BUDGET, distances=distances)
