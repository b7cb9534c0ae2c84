# SPDX-License-Identifier: Apache-2.0
"""The peers on a result folder: which requests they see, and what they make of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.verdict import peers, real_peers

BLOCKS = 6
CONDITIONS = ("one", "two", "control")


def written(folder: Path, slower: float = 1.0) -> Path:
    """A result of six blocks; the last block's run of `two` is not valid."""
    generator = np.random.default_rng(1)
    runs: list[dict[str, Any]] = []
    for block in range(1, BLOCKS + 1):
        for condition in CONDITIONS:
            number = len(runs) + 1
            valid = (condition, block) != ("two", BLOCKS)
            runs.append(
                {
                    "run": number,
                    "block": block,
                    "environment": "host",
                    "condition": condition,
                    "valid": valid,
                    "reason": None if valid else "fell over",
                }
            )
            size = 1_000 + number
            scale = {"one": 1.0, "two": slower, "control": 9.0}[condition]
            table = {
                "seq": np.arange(size)[::-1],
                "start_ns": 1_000 + np.arange(size)[::-1],
                "duration_ns": (scale * generator.normal(30_000, 300, size)).astype(np.int64),
                "ok": np.arange(size) != 7,
            }
            where = folder / "samples" / f"condition={condition}/block={block}/run={number}"
            where.mkdir(parents=True)
            pq.write_table(pa.table(table), where / "samples.parquet")
    manifest = {"runs": runs, "baseline": "one", "budget": 0.03, "control": "control"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_they_see_all_that_succeeded_in_the_order_of_time(tmp_path: Path) -> None:
    first, second = real_peers.sides(written(tmp_path))
    assert [run.size for run in first] == [1_000 + 3 * block for block in range(BLOCKS)]
    assert [run.size for run in second] == [1_001 + 3 * block for block in range(BLOCKS - 1)]
    path = tmp_path / "samples/condition=one/block=1/run=1/samples.parquet"
    recorded = pq.read_table(path, partitioning=None)["duration_ns"].to_numpy()
    np.testing.assert_array_equal(first[0], np.delete(recorded, 7)[::-1])


def test_each_has_its_word(tmp_path: Path) -> None:
    (tmp_path / "alike").mkdir()
    alike = real_peers.judged(written(tmp_path / "alike"))
    assert {*alike, *peers.TOOLS} == set(peers.ABOUT)
    assert alike["pooled t"] == alike["hyperfine"] == 0
    slower = real_peers.judged(written(tmp_path / "slower", 1.5))
    assert all(slower[name] == 1 for name in slower if name not in peers.TOOLS)
    # Stored as they are.
    assert json.loads(json.dumps(slower)) == slower
