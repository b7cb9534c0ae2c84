# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from bench.log.loops import Loop, Reading, for_github, read, verdicts


def loop(nanoseconds: npt.ArrayLike, complete: float | None = None) -> Loop:
    durations = np.asarray(nanoseconds, np.int64)
    return Loop(durations, np.full(durations.size, 1 << 20), 1, complete)


def test_the_second_half_of_each_thread_is_read(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    rows = [(thread, 1000 * thread + call, 5, call % 2) for thread in (0, 1) for call in range(4)]
    raw.write_text("".join(f"thread{a};{b};{c};{d}\n" for a, b, c, d in rows))
    found = read(raw, 2, 0.5)
    assert found.nanoseconds.tolist() == [2, 3, 1002, 1003]
    assert (found.heap.tolist(), found.collections, found.complete) == ([5], 2, 0.5)


def test_both_readings() -> None:
    found = Reading.of([loop([1000, 3000], 1.0), loop([2000, 6000], 0.5)])
    assert (found.least, found.median, found.mean) == (1.0, 2.5, 3.0)
    assert found.sd == pytest.approx(np.std([1, 3, 2, 6], ddof=1))
    # As MooBench's script: qnorm(0.975) * sd / sqrt(n) of the last repetition.
    assert found.last_mean == 4.0
    assert found.last_sd == pytest.approx(8**0.5)
    assert found.last_ci95 == pytest.approx(1.96 * 2, rel=1e-4)
    assert (found.heap, found.heap_variation) == (1 << 20, 0)
    assert (found.collections, found.complete) == (2, 0.5)


def test_the_json_for_github_has_the_loops_means() -> None:
    [entry] = for_github({"a": [loop([1, 3]), loop([4, 8])]})
    assert entry == {"name": "a", "unit": "ns", "value": 4.0, "range": pytest.approx(8**0.5)}


def test_a_loop_is_a_run() -> None:
    generator = np.random.default_rng(1)
    taken = {
        name: [loop(level * generator.normal(1, 0.002, 999)) for _ in range(8)]
        for name, level in (("plain", 10_000), ("same", 10_000), ("slow", 12_000))
    }
    found = verdicts(taken, "plain")
    assert {name: comparison.verdict for name, comparison in found.items()} == {
        "same": "unchanged",
        "slow": "slower",
    }
    assert found["slow"].relative == pytest.approx(0.2, abs=0.01)
    assert found["slow"].runs_condition == 8
