# SPDX-License-Identifier: Apache-2.0
"""What is no good measurement: each gets a named warning or reason, and no confident verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tare.samples import read_files
from tare.samples.formats.import_options import ImportOptions
from tare.stats.arrays import Array
from tare.verdict import Comparison, Judgement, judge, without_failing

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
    folder: Path, change: Change = lambda times: times, requests: int = 400, effect: float = 1.0
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
    (found,) = (comparison for comparison in judgement.comparisons if comparison.metric == metric)
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
    tail = next(comparison for comparison in judgement.comparisons if comparison.metric == "p99")
    assert tail.verdict == "inconclusive"
    if requests > 1:
        assert "too few independent requests for p99" in tail.reason
    found = of(judgement)
    if requests == 1:
        assert found.shape is None
        assert found.verdict == "inconclusive"
        assert "or it has only one" in found.reason


def test_few_requests_that_are_all_equal_are_no_measurement(tmp_path: Path) -> None:
    found = of(judged(tmp_path, lambda times: np.full(times.size, 2.2), requests=90))
    assert found.verdict == "inconclusive"
    assert "took exactly the same time" in found.reason


def every(step: int, value: float) -> Change:
    def change(times: Array) -> Array:
        changed = times.copy()
        changed[5::step] = value
        return changed

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0])
def test_runs_that_lost_many_rows_do_not_count(tmp_path: Path, value: float) -> None:
    judgement = judged(tmp_path, every(10, value))
    found = of(judgement)
    assert found.verdict == "invalid"
    assert "10.00% of the rows have no usable time, above 1.00%" in found.reason
    rows, runs = judgement.warnings[1::-1]
    assert "40 rows without a usable time" in rows
    assert "10.00% of the rows have no usable time" in runs
    for line in (rows, runs):
        assert line.startswith(f"'new': {RUNS} ")
        assert f"the first is {tmp_path}/new0.csv:" in line


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_few_odd_rows_are_told(tmp_path: Path, value: float) -> None:
    judgement = judged(tmp_path, every(200, value))
    assert of(judgement).verdict == "unchanged"
    told = {True: "16 of 3,200 requests (0.50 %) took 0 ns", False: "2 rows without a usable time"}
    assert any(told[value == 0.0] in line for line in judgement.warnings), judgement.warnings


def test_a_file_that_is_given_twice_is_told(tmp_path: Path) -> None:
    old = [written(tmp_path / f"old{run}.csv", latencies(run)) for run in range(RUNS)]
    paths = {"old": old, "new": [*old[:1], *(tmp_path / f"new{run}.csv" for run in range(1, RUNS))]}
    for run, path in enumerate(paths["new"][1:]):
        written(path, latencies(100 + run))
    copies = f"{old[0]} and {old[0]} have exactly the same requests"
    assert any(copies in line for line in judge(read_files(paths, "old")).lines)
    paths["new"][0] = written(tmp_path / "new0.csv", latencies(99))
    assert not any("exactly the same" in line for line in judge(read_files(paths, "old")).lines)


def test_a_warm_up_that_differs_is_told_and_a_long_one_forbids_unchanged(tmp_path: Path) -> None:
    def warming(share: float) -> Judgement:
        def change(times: Array) -> Array:
            return times * np.where(np.arange(times.size) < share * times.size, 1.5, 1.0)

        folder = tmp_path / f"{share}"
        folder.mkdir()
        return judged(folder, change, 2_000)

    differs = "'new': the warm-up that is left out"
    short, long, none = warming(0.1), warming(0.4), warming(0.0)
    assert [of(judgement).verdict for judgement in (short, long, none)] == [
        "unchanged",
        "inconclusive",
        "unchanged",
    ]
    assert "% with all but the first " in of(long).reason
    assert [
        any(differs in line for line in judgement.lines) for judgement in (short, long, none)
    ] == [
        True,
        True,
        False,
    ]


def test_a_tail_is_not_faster_since_its_slowest_requests_failed(tmp_path: Path) -> None:
    """0.6 % of the requests of one condition, its slowest, time out."""

    def p99(failing: float) -> Comparison:
        paths: dict[str, list[Path]] = {"old": [], "new": []}
        for run in range(RUNS):
            for name, seed in (("old", run), ("new", 100 + run)):
                took = latencies(seed, 4_000)
                late = np.sort(took)[-int(failing * took.size)]
                path = tmp_path / f"{name}{run}.csv"
                rows = (f"{duration},{name == 'old' or duration < late}" for duration in took)
                path.write_text("\n".join(["response_time,ok", *rows, ""]))
                paths[name].append(path)
        options = ImportOptions({"duration": "response_time", "ok": "ok"}, "ms")
        return of(judge(read_files(paths, "old", options=options, primary="p99")), "p99")

    found = p99(0.006)
    assert found.verdict == "inconclusive"
    assert "'new' has 0.60 % more failed requests than 'old'" in found.reason
    assert "failed requests" not in p99(0.001).reason


def test_requests_that_take_no_time_are_no_measurement(tmp_path: Path) -> None:
    judgement = judged(tmp_path, every(10, 0.0), effect=0.9)
    assert {comparison.verdict for comparison in judgement.comparisons} == {"invalid"}
    assert "10.00% of the requests took no time, above 1.00%" in of(judgement).reason
    assert any("'new': 320 of 3,200 requests (10.0 %) took 0 ns" in x for x in judgement.warnings)
