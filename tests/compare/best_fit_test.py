# SPDX-License-Identifier: Apache-2.0
"""`tare compare --method published-bestfit` against the thesis's algorithm, written out."""

import json
from itertools import product
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from scipy import stats
from tests.in_process import tare

RUNS, REQUESTS, DROPPED = 4, 400, 30
SPANS = ("order", "payment")


def compare(*arguments: str) -> str:
    done = tare("compare", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def durations(tmp_path: Path) -> dict[tuple[str, str], list[list[int]]]:
    """µs by condition and span, a list a run; written as files of this name, too."""
    generator = np.random.default_rng(5)
    found: dict[tuple[str, str], list[list[int]]] = {}
    for condition, factor in (("bare", 1.0), ("container", 1.05)):
        (tmp_path / condition).mkdir()
        for run in range(RUNS):
            rows = ["start_us,took_us,span"]
            for at, span in enumerate(SPANS):
                typical = 2_000 * (1 + at) * factor * generator.normal(1, 0.03)
                times = [
                    round(time_us) for time_us in typical * generator.gamma(50, 1 / 50, REQUESTS)
                ]
                found.setdefault((condition, span), []).append(times)
                starts = 1_700_000_000_000_000 + np.arange(REQUESTS) * 10_000 + 5_000 * at
                rows += [
                    f"{start},{time},{span}" for start, time in zip(starts, times, strict=True)
                ]
            (tmp_path / condition / f"run{run}.csv").write_text("\n".join(rows) + "\n")
    return found


def anderson_darling(first: list[int], second: list[int]) -> float:
    with catch_warnings():
        simplefilter("ignore")
        return float(stats.anderson_ksamp([first, second], variant="midrank").statistic)


def test_the_algorithm_of_the_thesis(
    durations: dict[tuple[str, str], list[list[int]]], tmp_path: Path
) -> None:
    names = ["--baseline", f"bare={tmp_path}/bare", f"container={tmp_path}/container"]
    columns = ["--columns", "start=start_us,duration=took_us,span=span"]
    method = ["--method", "published-bestfit", "--warmup", str(DROPPED)]
    answer = json.loads(compare(*names, *columns, *method, "--json"))
    assert [published["span"] for published in answer["published"]] == [*SPANS]
    assert {comparison["role"] for comparison in answer["comparisons"]} == {
        "primary",
        "exploratory",
    }
    for published in answer["published"]:
        best = []
        for condition in ("bare", "container"):
            runs = [run[DROPPED:] for run in durations[condition, published["span"]]]
            sums = [
                sum(anderson_darling(mine, other) for other in runs if other is not mine)
                for mine in runs
            ]
            best.append((int(np.argmin(sums)), runs))
        (first, theirs), (second, ours) = best
        assert (published["baseline_run"], published["condition_run"]) == (first + 1, second + 1)
        a, b = theirs[first], ours[second]
        assert published["anderson_darling"] == pytest.approx(anderson_darling(a, b))
        assert published["kolmogorov_smirnov"] == pytest.approx(stats.ks_2samp(a, b).statistic)
        siblings = [anderson_darling(a, run) for run in theirs if run is not a]
        assert published["among_baseline"] == pytest.approx(max(siblings))
        for name, side in product(("p50", "p75", "p90", "p95", "p99", "p100"), (0, 1)):
            expected = 1_000 * np.percentile((a, b)[side], int(name[1:]))
            assert published["percentiles_ns"][name][side] == pytest.approx(expected)


def test_people_see_it_beside_the_verdict(
    durations: dict[tuple[str, str], list[list[int]]], tmp_path: Path
) -> None:
    names = [f"{tmp_path}/bare", f"{tmp_path}/container"]
    options = [
        "--columns",
        "start=start_us,duration=took_us,span=span",
        "--method",
        "published-bestfit",
    ]
    table = " ".join(compare(*names, *options).split())
    assert f"published best-fit runs of 'new', {SPANS[0]} (its run " in table
    assert "not part of the verdict): AD = " in table
    assert "comparison uses one run per condition" in table
    assert f"new, {SPANS[0]} against old, " in table
    assert "inconclusive p50" in table
    comment = compare(*names, *options, "--markdown")
    assert "<summary>Published analysis</summary>" in comment
    assert durations


def test_what_has_no_best_run_is_said(tmp_path: Path) -> None:
    for name, times in (("old", [5]), ("new", [5, 6, 7])):
        rows = [f"{1_700_000_000 + at},{time}" for at, time in enumerate(times)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["start_time,response_time", *rows, ""]))
    files = [str(tmp_path / "old.csv"), str(tmp_path / "new.csv")]
    answer = json.loads(compare(*files, "--method", "published-bestfit", "--json"))
    assert answer["published"] == []
    assert any("needs a run of both with 2 requests" in line for line in answer["warnings"])
