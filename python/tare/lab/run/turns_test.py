# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa

from tare.lab.run.turns import (
    Turn,
    errors_by_kind,
    metrics_of_turns,
    numbered,
    of_turns,
    order_of_turns,
)

MACHINE = pa.table(
    {
        "slice": pa.array([0, 0, 1, 1, 2, 2, 3, 3, None], pa.int32()),
        "start_ns": [100, 100, 110, 110, 120, 120, 130, 130, 100],
        "duration_ns": [10, 10, 10, 10, 10, 10, 10, 10, 40],
        "metric": ["steal", "requests"] * 4 + ["throttled_time"],
    }
)
SAMPLES = pa.table(
    {
        "slice": pa.array([0, 1, 1, 2, 3], pa.int32()),
        "seq": [0, 2, 1, 3, 4],
        "ok": [True, True, False, True, False],
        "error": pa.array([None, None, "timeout", None, "timeout"]).dictionary_encode(),
    }
)


def test_every_round_has_each_condition_once_in_random_order() -> None:
    order = order_of_turns("seed", ["a", "b", "c"], 8)
    rounds = [order[at : at + 3] for at in range(0, 24, 3)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1
    assert order == order_of_turns("seed", ["a", "b", "c"], 8)
    assert order != order_of_turns("another seed", ["a", "b", "c"], 8)


def test_only_slices_that_lie_within_a_turn_are_of_its_run() -> None:
    turns = [Turn(105, 125), Turn(130, 140)]
    assert of_turns(SAMPLES, MACHINE, turns)["seq"].to_pylist() == [2, 1, 4]
    assert of_turns(MACHINE, MACHINE, turns)["slice"].to_pylist() == [1, 1, 3, 3]
    assert of_turns(SAMPLES, MACHINE, []).num_rows == 0


def test_requests_of_a_run_are_numbered_in_their_order() -> None:
    run = of_turns(SAMPLES, MACHINE, [Turn(110, 140)])
    assert numbered(run)["seq"].to_pylist() == [1, 0, 2, 3]
    assert errors_by_kind(run) == {"timeout": 2}
    assert errors_by_kind(SAMPLES.slice(0, 1)) == {}


def test_a_reading_belongs_to_the_turn_of_its_middle() -> None:
    # The last sample of a turn is taken after its end, and the first sample before its start.
    starts, lengths = [90, 195, 301, 400], [106, 106, 99, 50]
    table = pa.table({"start_ns": starts, "duration_ns": lengths})
    kept = metrics_of_turns(table, [Turn(100, 200), Turn(300, 400)])
    assert kept["start_ns"].to_pylist() == [90, 301]
