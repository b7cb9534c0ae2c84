# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from tare.calibration.detection import Detection
from tare.calibration.repetitions import check_blocks, detect
from tare.errors import InputError, TareError
from tare.samples.model import SpanKey
from tare.samples.read.latencies import Runs

US = 1000
STEPS = {0: "again", 20 * US: "20us", 400 * US: "400us"}
PLACE = ("host", "request")


def simulated(blocks: int, follows: float = 1.0, seed: int = 1) -> Runs:
    """Runs around 1 ms that scatter by 1 %, in blocks that drift by 5 %."""
    chance = np.random.default_rng(seed)
    runs: Runs = {}
    for block in range(1, blocks + 1):
        drift = chance.normal(0, 0.05)
        for delay, name in {**STEPS, -1: "plain"}.items():
            level = 1e6 * np.exp(drift + chance.normal(0, 0.01)) + max(delay, 0) * follows
            runs[name, block] = level * chance.lognormal(0, 0.1, 200)
    return runs


def detected(runs: Runs, place: SpanKey = PLACE, blocks: int = 6) -> dict[str, Detection]:
    found = detect({place: runs}, STEPS, "plain", blocks, 0.05)
    return {detection.statistic: detection for detection in found}


def test_a_large_delay_is_detected_and_no_delay_is_not() -> None:
    found = detected(simulated(30))
    for name in ("p50", "p95", "mean", "ks", "ad"):
        assert [step.repetitions for step in found[name].steps] == [5, 5, 5]
        assert found[name].limit_ns == 400 * US, name
        assert found[name].steps[0].detected <= 1, name
    assert found["p50"].level_ns == pytest.approx(1e6, rel=0.05)
    value = found["p50"].steps[2].value
    assert value is not None
    assert value.mean == pytest.approx(400 * US, rel=0.1)


def test_single_pairs_of_runs_are_pairs_of_a_block() -> None:
    runs = simulated(12)
    steps = detected(runs)["ks-pair"].steps
    assert [step.repetitions for step in steps] == [12, 12, 12]
    from scipy.stats import ks_2samp

    expected = [ks_2samp(runs["plain", b], runs["again", b]).statistic for b in range(1, 13)]
    value = steps[0].value
    assert value is not None
    assert (value.least, value.most) == (min(expected), max(expected))
    assert value.mean == pytest.approx(np.mean(expected))


def test_a_repetition_without_enough_valid_blocks_does_not_count() -> None:
    runs = simulated(18)
    del runs["400us", 3], runs["plain", 12]
    steps = detected(runs)["p50"].steps
    # Block 3 lacks the slow run, block 12 has nothing to compare with.
    assert [step.repetitions for step in steps] == [2, 2, 1]
    assert [step.repetitions for step in detected(runs)["ad-pair"].steps] == [17, 17, 16]


def test_what_gets_faster_is_no_delay_that_was_detected() -> None:
    runs = simulated(6)
    runs |= {("20us", block): runs["plain", block] * 0.8 for block in range(1, 7)}
    step = detected(runs)["p50"].steps[1]
    assert step.p is not None
    assert (step.p.most <= 0.05, step.detected) == (True, 0)


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        (0.0, r"does not follow.*400 µs more changed its p50 by .*; does it read the variable"),
        (1000.0, r"does not follow.*are microseconds meant by the variable"),
    ],
)
def test_a_service_that_ignores_the_delay_is_told(follows: float, message: str) -> None:
    with pytest.raises(TareError, match=message):
        detected(simulated(6, follows))


def test_a_span_that_the_busy_wait_is_not_in_may_stay_as_it_is() -> None:
    assert detected(simulated(6, follows=0.0), ("host", "database"))["p50"].limit_ns is None


def test_runs_that_all_took_equally_long_are_no_error() -> None:
    runs = {key: np.full(50, 1e6 + (400 * US if key[0] == "400us" else 0)) for key in simulated(6)}
    found = detected(runs)
    assert found["p50"].limit_ns == 400 * US
    # Values that are all equal have no such test.
    assert [step.repetitions for step in found["ad-pair"].steps] == [0, 0, 6]


@pytest.mark.parametrize(
    "runs",
    [
        {},
        simulated(5),
        {("plain", 1): np.ones(9)},
        {key: np.ones(1) for key in simulated(6)},
        # The service refuses every delay.
        {key: of for key, of in simulated(6).items() if key[0] in ("plain", "again")},
    ],
)
def test_nothing_to_compare_is_an_error(runs: Runs) -> None:
    with pytest.raises(TareError, match="no repetition with a delay has enough valid blocks"):
        detected(runs)


def test_too_few_blocks_are_refused_before_anything_is_measured() -> None:
    check_blocks(6, 0.05)
    with pytest.raises(InputError, match=r"5 blocks .* give --blocks 6 or more"):
        check_blocks(5, 0.05)
    with pytest.raises(InputError, match="give --blocks 8 or more"):
        check_blocks(7, 0.01)
    # No verdict rests on fewer, whatever alpha is.
    with pytest.raises(InputError, match="give --blocks 6 or more"):
        check_blocks(5, 0.1)


def test_a_delay_that_the_service_refuses_says_nothing_of_the_smaller_ones() -> None:
    runs = {key: of for key, of in simulated(30).items() if key[0] != "400us"}
    runs |= {("20us", block): runs["plain", block] + 20 * US for block in range(1, 31)}
    found = detected(runs)["p50"]
    assert [step.repetitions for step in found.steps] == [5, 5, 0]
    assert (found.limit_ns, found.undetected_ns) == (20 * US, 20 * US)


def test_a_service_is_followed_at_the_largest_delay_that_was_measured() -> None:
    runs = {key: of for key, of in simulated(30, follows=0.0).items() if key[0] != "400us"}
    runs |= {("20us", block): runs["plain", block] for block in range(1, 31)}
    with pytest.raises(TareError, match=r"does not follow the delay: 20\.0 µs more"):
        detected(runs)


def test_a_run_whose_median_is_zero_has_no_ratio_and_is_no_error() -> None:
    runs = simulated(6)
    runs |= {(n, b): np.where(np.arange(200) < 110, 0.0, of) for (n, b), of in runs.items()}
    runs |= {("400us", b): runs["400us", b] + 400 * US for b in range(1, 7)}
    found = detected(runs)
    assert (found["p50"].said, found["p50"].undetected_ns) == ("not measured", None)
    assert found["p95"].limit_ns == 400 * US


def test_what_is_detected_excludes_zero_as_a_verdict_does() -> None:
    runs = simulated(6)
    # By sign flips 2 of 64, but one block is so far off that the interval has zero in it.
    factors = [1.01, 1.01, 1.01, 1.01, 1.01, 1.5]
    runs |= {("20us", b): runs["plain", b] * factors[b - 1] for b in range(1, 7)}
    step = detected(runs)["p50"].steps[1]
    assert step.p is not None
    assert (step.p.most <= 0.05, step.detected) == (True, 0)


def test_each_environment_has_limits_of_its_own() -> None:
    here, there = ("host", "request"), ("netns", "request")
    slow = {key: of * 20 for key, of in simulated(30, follows=0.05, seed=2).items()}
    found = detect({here: simulated(30), there: slow}, STEPS, "plain", 6, 0.05)
    p50 = {detection.environment: detection for detection in found if detection.statistic == "p50"}
    assert p50["host"].limit_ns == 400 * US
    assert p50["netns"].level_ns == pytest.approx(20e6, rel=0.1)
    assert p50["netns"].limit_ns is None
