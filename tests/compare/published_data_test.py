# SPDX-License-Identifier: Apache-2.0
"""`tare compare` on the published function hook latencies, 4,000 requests a file dropped."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.in_process import tare

DATA = Path(__file__).parents[1] / "data" / "hook-latency"

# environment: pooled sd, mean and median of hook - plain in ms, as published.
METRICS = ["p95", "p99", "mean", "throughput", "error_rate"]
PUBLISHED = {
    "docker": (0.496, 0.287, 0.197),
    "kind": (0.837, 0.124, 0.117),
    "eks-pod": (1.640, -0.115, 0.045),
    "eks-nodes": (1.948, 0.014, 0.018),
}
# t to the digits of the re-analysis: 87.5, 22.4, -10.7, 1.10.
STATISTIC = {"docker": 87.5, "kind": 22.4, "eks-pod": -10.7, "eks-nodes": 1.10}


def compare(environment: str, *more: str) -> dict[str, Any]:
    """The JSON of one comparison."""
    files = [f"{name}={DATA}/{environment}.{name}.parquet" for name in ("plain", "hook")]
    done = tare("compare", "--baseline", *files, "--json", *more)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module", params=PUBLISHED)
def compared(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param, compare(request.param, "--warmup", "4000", "--method", "published-t")


def test_the_published_test_is_reproduced(compared: tuple[str, dict[str, Any]]) -> None:
    environment, result = compared
    published = result["published"]
    spread, mean, median = PUBLISHED[environment]
    assert round(published["pooled_sd_ns"] / 1e6, 3) == spread
    assert round(published["mean_difference_ns"] / 1e6, 3) == mean
    assert round(published["median_difference_ns"] / 1e6, 3) == median
    assert published["n"] == 46_000
    digits = 2 if environment == "eks-nodes" else 1
    assert round(published["t"], digits) == STATISTIC[environment]
    if environment == "eks-nodes":
        assert round(published["p"], 4) == 0.2713
    else:
        assert published["p"] < 0.0001


def test_one_run_a_cell_is_inconclusive(compared: tuple[str, dict[str, Any]]) -> None:
    environment, result = compared
    primary, *exploratory = result["comparisons"]
    assert (primary["role"], primary["metric"]) == ("primary", "p50")
    assert [comparison["metric"] for comparison in exploratory] == METRICS
    assert {comparison["verdict"] for comparison in result["comparisons"]} == {"inconclusive"}
    assert primary["runs"] == {"baseline": 1, "condition": 1}
    assert primary["runs_needed"] == 5
    assert primary["interval"] == {"low": None, "high": None, "level": 0.95}
    assert (primary["p"], primary["p_adjusted"], primary["mde"]) == (None, None, None)
    median = PUBLISHED[environment][2]
    assert primary["effect"]["absolute_ns"] / 1e6 == pytest.approx(median, abs=0.0006)


def test_sign_order_and_defects_are_pointed_out(compared: tuple[str, dict[str, Any]]) -> None:
    environment, result = compared
    warnings = "\n".join(result["warnings"])
    assert "every run of 'plain' came before every run of 'hook'" in warnings
    word = "faster" if environment == "eks-pod" else "slower"
    assert f"by its mean, 'hook' is {word}" in warnings
    assert ("mean and median have opposite signs" in warnings) == (environment == "eks-pod")
    defective = environment in ("docker", "eks-nodes")
    displaced = "9 rows out of time order (place 1, 5001, 10001 …, every 5000th)"
    assert (f"{environment}.hook.parquet: {displaced}" in warnings) == defective
    assert ("1 row equal to an earlier one in every field: kept" in warnings) == defective
    assert f"{environment}.plain.parquet" not in warnings


def test_without_the_method_there_is_no_published_result() -> None:
    result = compare("kind", "--warmup", "auto")
    keys = {
        "compare", "comparisons", "controls", "traces", "round_trips", "smoke", "warnings", "notes"
    }  # fmt: skip
    assert set(result) == keys
    assert any("of every run are left out" in note for note in result["notes"])


def test_the_committed_columns_are_those_that_were_published() -> None:
    row = re.compile(r"^\| ([\w.-]+) \| `[0-9a-f]{64}` \| `([0-9a-f]{64})` \|$", re.MULTILINE)
    stated = dict(row.findall((DATA / "README.md").read_text()))
    assert sorted(stated) == sorted(path.stem for path in DATA.glob("*.parquet"))
    assert len(stated) == 2 * len(PUBLISHED)
    for name, checksum in stated.items():
        table = pq.read_table(DATA / f"{name}.parquet")
        columns = [table[column].to_numpy().astype("<i8") for column in ("start_ns", "duration_ns")]
        assert sha256(b"".join(column.tobytes() for column in columns)).hexdigest() == checksum
