# SPDX-License-Identifier: Apache-2.0
"""What is no good measurement: each gets a named warning or reason, and no confident verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tare.samples import read_files
from tare.samples.far import TIMES, middle
from tare.samples.looks import SHAPE
from tare.samples.model import Part, Run
from tare.stats.arrays import Array
from tare.verdict import Comparison, Judgement, judge, without_failing
from tare.verdict.units import apart_within

RUNS = 8
T = 1_700_000_000
Change = Callable[[Array], Array]


def latencies(seed: int, requests: int = 400, median: float = 2.0) -> Array:
    """In ms; runs scatter by 0.5 %."""
    generator = np.random.default_rng(seed)
    return median * generator.normal(1, 0.005) * generator.lognormal(0, 0.2, requests)


def written(path: Path, durations: Sequence[float] | Array, start: float | None = T) -> Path:
    lines = ["response_time" if start is None else "start_time,response_time"]
    for place, duration in enumerate(durations):
        begun = "" if start is None else f"{start + place / 100:.3f},"
        lines.append(f"{begun}{duration:.6f}")
    path.write_text("\n".join([*lines, ""]))
    return path


def judged(
    folder: Path, change: Change = lambda one: one, requests: int = 400, effect: float = 1.0
) -> Judgement:
    """8 runs a side; those of `new` have `effect`, and are changed."""
    paths: dict[str, list[Path]] = {"old": [], "new": []}
    for run in range(RUNS):
        begun = T + 1_000 * run
        old, new = (latencies(seed, requests) for seed in (run, 100 + run))
        paths["old"].append(written(folder / f"old{run}.csv", old, begun))
        paths["new"].append(written(folder / f"new{run}.csv", change(new * effect), begun + 500))
    return judge(without_failing(read_files(paths, "old", warm_up="auto"), 0.01))


def of(judgement: Judgement, metric: str = "p50") -> Comparison:
    (found,) = (one for one in judgement.comparisons if one.metric == metric)
    return found


def test_times_are_not_needed(tmp_path: Path) -> None:
    paths = {
        name: [written(tmp_path / f"{name}{run}.csv", latencies(run), None) for run in range(RUNS)]
        for name in ("old", "new")
    }
    experiment = read_files(paths, "old")
    assert {run.started_ns for run in experiment.runs} == {None}
    assert of(judge(experiment)).verdict == "unchanged"


@pytest.mark.parametrize("requests", [1, 2, 3])
def test_runs_of_a_request_or_two_have_no_shape(tmp_path: Path, requests: int) -> None:
    judgement = judged(tmp_path, requests=requests, effect=3.0)
    assert any("too few independent requests for a p99" in line for line in judgement.warnings)
    found = of(judgement)
    if requests == 1:
        assert found.shape is None
        assert found.verdict == "inconclusive"
        assert "there is one alone" in found.reason


def test_few_requests_that_are_all_equal_are_no_measurement(tmp_path: Path) -> None:
    found = of(judged(tmp_path, lambda one: np.full(one.size, 2.2), requests=90))
    assert found.verdict == "inconclusive"
    assert "exactly as long as each other" in found.reason


def every(step: int, value: float) -> Change:
    def change(one: Array) -> Array:
        changed = one.copy()
        changed[5::step] = value
        return changed

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0])
def test_runs_that_lost_many_rows_do_not_count(tmp_path: Path, value: float) -> None:
    judgement = judged(tmp_path, every(10, value))
    found = of(judgement)
    assert found.verdict == "invalid"
    assert "10.00% of the rows have no usable time, above 1.00%" in found.reason
    assert sum("40 rows without a usable time" in line for line in judgement.warnings) == RUNS
    assert sum("the run does not count" in line for line in judgement.warnings) == 5
    assert any("and 3 more that do not count" in line for line in judgement.warnings)


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_few_odd_rows_are_told(tmp_path: Path, value: float) -> None:
    judgement = judged(tmp_path, every(200, value))
    assert of(judgement).verdict == "unchanged"
    told = {True: "16 of 3,200 requests (0.50 %) took 0 ns", False: "2 rows without a usable time"}
    assert any(told[value == 0.0] in line for line in judgement.warnings), judgement.warnings


def test_requests_that_take_no_time_are_no_measurement(tmp_path: Path) -> None:
    judgement = judged(tmp_path, every(10, 0.0), effect=0.9)
    assert {one.verdict for one in judgement.comparisons} == {"invalid"}
    assert "10.00% of the requests took no time, above 1.00%" in of(judgement).reason
    assert any("'new': 320 of 3,200 requests (10.0 %) took 0 ns" in x for x in judgement.warnings)


@pytest.mark.parametrize(
    ("step", "times", "requests"),
    [(3, 1_000, 400), (2, 1_000, 400), (20, 1_000, 400), (100, 1_000, 2_000), (20, 1e-3, 400),
     (200, 1e-3, 4_000), (3, 1e-6, 400)],
)  # fmt: skip
def test_two_units_in_one_run_are_no_measurement(
    tmp_path: Path, step: int, times: float, requests: int
) -> None:
    def change(one: Array) -> Array:
        changed = one.copy()
        changed[::step] *= times
        return changed

    found = {one.verdict for one in judged(tmp_path, change, requests).comparisons}
    if times > 1e-6:  # 2 ms by a million is 2 ns, which six decimals still hold
        assert found == {"invalid"}
    assert not found & {"slower", "faster", "unchanged"}


def run_of(values: Array) -> Run:
    """A run of these latencies, which every reader would describe so."""
    quantiles = dict(zip(SHAPE, np.quantile(values, SHAPE).tolist(), strict=True))
    at = middle(quantiles)
    parts = values[values * TIMES < at], values[values > TIMES * at]
    logs = [np.log10(part) for part in parts if part.size]
    return Run(
        environment="",
        condition="new",
        block=1,
        run=1,
        span="request",
        requests=values.size,
        errors=0,
        answered=values.size,
        started_ns=None,
        summaries={},
        quantiles=quantiles,
        far=tuple(Part(one.size, float(one.mean()), float(one.std())) for one in logs),
    )


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("times", [1_000.0, 1e-3, 1e6])
def test_two_units_are_seen_whatever_their_shares(share: float, times: float) -> None:
    generator = np.random.default_rng(1)
    for values in (generator.lognormal(14, 0.3, 4_000), 1e6 * generator.gamma(5, 1, 4_000)):
        whole = values.copy()
        whole[: round(share * values.size)] *= times
        expected = 1_000_000 if times == 1e6 else 1_000
        assert apart_within(run_of(whole)) == expected


def test_a_service_that_answers_in_two_ways_has_one_unit() -> None:
    generator = np.random.default_rng(1)
    for times in (40, 300, 4_000):
        for share in (0.02, 0.5):
            parts = generator.lognormal(12, 0.3, 4_000)
            parts[: round(share * 4_000)] *= times
            assert apart_within(run_of(parts)) is None
    # Of a service of 1 ms, a time-out of 1 s: a thousand times as long, but no scatter of its own.
    values = 1e6 * generator.lognormal(0, 0.3, 4_000)
    values[:80] += 1e9
    assert apart_within(run_of(values)) is None


def test_tails_have_no_unit() -> None:
    for seed in range(100):
        generator = np.random.default_rng(seed)
        values = 1e6 * (1 + generator.pareto(0.7, 4_000))
        assert apart_within(run_of(values)) is None
