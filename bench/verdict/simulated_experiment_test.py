# SPDX-License-Identifier: Apache-2.0
"""What the simulation hands to the judge is what Tare's readers find in the same requests."""

import ibis
import numpy as np
import pyarrow as pa
import pytest
from bench.verdict import simulated_experiment
from bench.verdict.scenarios import REQUESTS, Scenario, draw

from tare.samples.describe.warm_up_cuts import look
from tare.stats.arrays import Array

CASES = {
    "steady": Scenario(""),
    "warm-up": Scenario("", warm_up=0.5),
    "bursts": Scenario("", stolen=0.05),
    "taking turns": Scenario("", "interleaved", shifts=0.3),
}


def drawn(scenario: Scenario) -> Array:
    """Whole nanoseconds, as readers have them."""
    return np.round(draw(scenario, 3, np.random.default_rng(1)))


def requests(latencies: Array) -> ibis.Table:
    """As readers have them; runs are numbered block by block."""
    runs = latencies.shape[0] * latencies.shape[1]
    ordered = latencies.transpose(1, 0, 2).reshape(-1)
    return ibis.memtable(
        pa.table(
            {
                "run": np.repeat(np.arange(runs), REQUESTS),
                "span": ["request"] * ordered.size,
                "place": np.tile(np.arange(REQUESTS), runs),
                "latency_ns": ordered.astype(np.int64),
                "ok": np.ones(ordered.size, dtype=bool),
            }
        )
    )


def conditions(latencies: Array) -> dict[int, tuple[str, str]]:
    """The environment and the condition of each run."""
    count = latencies.shape[0]
    return {
        n: (simulated_experiment.PLACE[0], simulated_experiment.NAMES[n % count])
        for n in range(count * latencies.shape[1])
    }


@pytest.mark.parametrize("name", CASES)
def test_the_readers_find_the_same(name: str) -> None:
    latencies = drawn(CASES[name])
    design = CASES[name].design
    count, blocks = latencies.shape[:2]
    each = [list(range(count * block, count * (block + 1))) for block in range(blocks)]
    turns = {simulated_experiment.PLACE[0]: each} if design == "interleaved" else {}
    expected = look(requests(latencies), conditions(latencies), turns=turns)
    found = simulated_experiment.experiment(latencies, design)

    assert found.cuts.keys() == expected.others.keys()
    others = [(found.cuts[cut], other) for cut, other in expected.others.items()]
    for experiment, there in [(found, expected.at_cut), *others]:
        for run in experiment.runs:
            group = run.run, run.span
            assert run.steadiness == expected.kind(group)
            assert run.drift == pytest.approx(there.drifts.get(group), rel=1e-9, abs=1e-12)
            assert run.answered == there.groups[group].requests
            assert run.summaries == pytest.approx(there.summaries(group), rel=1e-12)
            assert run.quantiles == pytest.approx(there.shape(group), rel=1e-12)
    known, distances = (
        expected.at_cut.distances[simulated_experiment.PLACE],
        found.distances[simulated_experiment.PLACE],
    )
    at = [known.runs.index(run) for run in distances.runs]
    np.testing.assert_allclose(distances.of["ks"], known.of["ks"][np.ix_(at, at)])
    np.testing.assert_allclose(distances.of["ad"], known.of["ad"][np.ix_(at, at)], atol=1e-9)


def test_the_warm_up_of_one_run_is_left_out_of_all() -> None:
    latencies = drawn(CASES["steady"])
    latencies[0, 0, :100] *= 3
    found = simulated_experiment.experiment(latencies, "blocked")
    assert {run.answered for run in found.runs} == {REQUESTS - 100}
    assert [run.steadiness for run in found.runs].count("warm-up") == 1
    assert {run.answered for run in found.cuts["twice the warm-up"].runs} == {REQUESTS - 200}


def test_what_the_machine_does_to_a_whole_block_is_no_warm_up() -> None:
    latencies = drawn(CASES["steady"])
    latencies[:, 1, :300] *= 1.5
    found = simulated_experiment.experiment(latencies, "interleaved")
    assert {run.answered for run in found.runs} == {REQUESTS}
    apart = simulated_experiment.experiment(latencies, "blocked")
    assert {run.answered for run in apart.runs} == {REQUESTS - 300}
