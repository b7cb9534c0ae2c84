# SPDX-License-Identifier: Apache-2.0
"""Formats that count: bins and percentiles instead of requests."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter

from tare.errors import InputError
from tare.samples import ImportOptions, Run, read_files, read_load_output
from tare.samples.counted import Histogram
from tare.samples.read.foreign_files import open_files

MICROSECONDS = ImportOptions(unit="us")


def log(
    path: Path, recorded: list[tuple[str | None, np.ndarray[Any, Any]]], least: int = 1
) -> Path:
    """An HdrHistogram log by the library itself, an interval of a second for each (tag, values)."""
    with path.open("w") as file:
        writer = HistogramLogWriter(file)
        writer.output_log_format_version()
        file.write("#[StartTime: 1700000000.000 (seconds since epoch)]\n")
        writer.output_legend()
        for second, (tag, values) in enumerate(recorded):
            histogram = HdrHistogram(least, 3_600_000_000, 3)
            for value in values.tolist():
                histogram.record_value(value)
            if tag:
                file.write(f"Tag={tag},")
            writer.output_interval_histogram(
                histogram, 1_700_000_000 + second, 1_700_000_001 + second
            )
    return path


def test_hdr_logs_agree_with_the_library(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    values = generator.lognormal(7, 1.5, (3, 20_000)).astype(np.int64) + 1
    path = log(tmp_path / "a.hdr", [(None, durations) for durations in values])
    (run, _) = read_files({"a": [path], "b": [path]}, "a", options=MICROSECONDS).runs
    assert (run.requests, run.errors, run.answered) == (60_000, 0, 60_000)
    assert (run.started_ns, run.ended_ns) == (1_700_000_000 * 10**9, 1_700_000_003 * 10**9)
    for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
        exact = float(np.percentile(values, share)) * 1e3
        assert run.summaries[name] == pytest.approx(exact, rel=0.001)
    assert run.summaries["mean"] == pytest.approx(values.mean() * 1e3, rel=0.0005)


def test_every_bin_of_an_hdr_log_is_where_the_library_has_it(tmp_path: Path) -> None:
    values = np.unique(np.geomspace(1, 3e9, 3_000).astype(np.int64))
    for least in (1, 1_000):
        oracle = HdrHistogram(least, 3_600_000_000, 3)
        path = log(tmp_path / f"{least}.hdr", [(None, values)], least)
        (run, *_) = open_files({"a": [path]}, options=ImportOptions(unit="ns")).runs
        assert not hasattr(run.requests, "table")
        assert run.requests is not None
        (histogram,) = run.requests.histograms
        lows = np.unique([oracle.get_lowest_equivalent_value(int(value)) for value in values])
        highs = np.unique([oracle.get_highest_equivalent_value(int(value)) for value in values])
        assert histogram.low.tolist() == lows.tolist()
        assert histogram.high.tolist() == highs.tolist()
        assert histogram.answered == values.size


def test_tags_of_an_hdr_log_are_spans(tmp_path: Path) -> None:
    path = log(
        tmp_path / "a.hdr", [("A", np.array([5])), ("B", np.array([7, 7])), ("A", np.array([9]))]
    )
    runs = read_files({"a": [path], "b": [path]}, "a", options=MICROSECONDS).runs
    assert [(run.span, run.requests) for run in runs[:2]] == [("A", 2), ("B", 2)]
    assert runs[1].summaries["mean"] == 7_000
    table = read_load_output(path, "hdr", MICROSECONDS)
    assert table["span"].to_pylist() == ["A", "A", "B", "B"]
    assert table["duration_ns"].to_pylist() == [5_000, 9_000, 7_000, 7_000]


def test_damaged_intervals_are_counted(tmp_path: Path) -> None:
    path = log(tmp_path / "a.hdr", [(None, np.array([5])), (None, np.array([7]))])
    lines = path.read_text().splitlines()
    whole = lines[-1]
    start, _, packed = whole.rpartition(",")
    others = [whole[:-9], f"{start},{packed[:40]}AAAA{packed[44:]}", "nothing", f"{start},SElTVA=="]
    path.write_text("\n".join([*lines, *others]))
    experiment = read_files({"a": [path], "b": [path]}, "a", options=MICROSECONDS)
    assert experiment.runs[0].requests == 2
    assert "4 intervals could not be read: left out" in experiment.warnings[0]


def test_a_log_needs_a_unit_and_has_no_order(tmp_path: Path) -> None:
    path = log(tmp_path / "a.hdr", [(None, np.array([5]))])
    with pytest.raises(InputError, match="does not state its unit; add --unit"):
        read_files({"a": [path], "b": [path]}, "a")
    with pytest.raises(InputError, match=r"without an order of requests.*--warmup cannot be used"):
        read_files({"a": [path], "b": [path]}, "a", warm_up=1, options=MICROSECONDS)
    found = read_files({"a": [path], "b": [path]}, "a", warm_up="auto", options=MICROSECONDS)
    assert [run.requests for run in found.runs] == [1, 1]


def test_quantiles_inside_of_a_bin_are_those_of_evenly_spread_requests() -> None:
    bins = Histogram(
        np.array([0.0, 100, 500]), np.array([100.0, 200, 500]), np.array([3000, 5000, 2000])
    )
    found, values = bins.summaries(), bins.values()
    assert values.size == bins.answered == 10_000
    for name, share in (("p50", 50), ("p95", 95), ("p99", 99)):
        assert found[name] == pytest.approx(np.percentile(values, share), abs=0.1)
    assert found["mean"] == pytest.approx(values.mean())
    assert found["p50"] == pytest.approx(140)


def fortio(**more: Any) -> dict[str, Any]:
    data = [
        {"Start": 0.0005, "End": 0.001, "Percent": 50, "Count": 50},
        {"Start": 0.001, "End": 0.002, "Percent": 100, "Count": 50},
    ]
    percentiles = [{"Percentile": 50, "Value": 0.001}, {"Percentile": 99, "Value": 0.00198}]
    histogram = {"Count": 100, "Sum": 0.11, "Avg": 0.0011, "Data": data, "Percentiles": percentiles}
    return {
        "RunType": "HTTP", "StartTime": "2023-11-14T22:13:20.123456789Z", "RequestedQPS": "max",
        "ActualDuration": 10**9, "Resolution": 1e-5, "DurationHistogram": histogram,
    } | more  # fmt: skip


@pytest.mark.parametrize("start", ["14T22:13:20.123456789Z", "15T03:43:21+05:30"])
def test_fortio(tmp_path: Path, start: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(fortio(StartTime=f"2023-11-{start}")))
    run, _ = read_files({"a": [path], "b": [path]}, "a").runs
    assert (run.requests, run.errors) == (100, 0)
    second = 1_700_000_000 * 10**9
    assert run.started_ns == (second + 123_456_000 if "Z" in start else second + 10**9)
    assert times(run) == pytest.approx({"p50": 1e6, "p95": 1.9e6, "p99": 1.98e6, "mean": 1.1e6})


def test_failed_requests_are_taken_off_the_bins_of_fortio(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    slow = {"Start": 0.0018, "End": 0.00195, "Count": 50}
    path.write_text(
        json.dumps(fortio(ErrorsDurationHistogram={"Count": 50, "Sum": 0.09, "Data": [slow]}))
    )
    run, _ = read_files({"a": [path], "b": [path]}, "a").runs
    assert (run.requests, run.errors, run.answered) == (100, 50, 50)
    assert run.summaries["p50"] == pytest.approx(0.75e6)
    assert run.summaries["mean"] == pytest.approx(0.4e6)
    table = read_load_output(path)
    assert table["ok"].to_pylist() == [True] * 50 + [False] * 50


def test_coarse_bins_of_fortio_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(fortio(Resolution=0.001)))
    experiment = read_files({"a": [path], "b": [path]}, "a")
    assert any("-r 1e-6 makes them finer" in warning for warning in experiment.warnings)


def oha(**more: Any) -> dict[str, Any]:
    percentiles = dict(zip(
        ["p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99"],
        [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009], strict=True,
    ))  # fmt: skip
    return {
        "summary": {"successRate": 1.0, "slowest": 0.01, "fastest": 0.0005, "average": 0.0031},
        "latencyPercentiles": percentiles,
        "statusCodeDistribution": {"200": 90, "503": 10},
        "errorDistribution": {"connection refused": 3, "aborted due to deadline": 2},
    } | more


def test_oha_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(oha()))
    experiment = read_files({"a": [path], "b": [path]}, "a")
    run = experiment.runs[0]
    assert (run.requests, run.errors, run.answered) == (103, 13, 90)
    assert times(run) == pytest.approx({"p50": 3e6, "p95": 6e6, "p99": 7e6, "mean": 3.1e6})
    told = " ".join(experiment.warnings)
    assert "10 answers of status 400 or above are among oha's latencies" in told
    assert "2 requests were cut off by the end of the run: not counted" in told
    durations = read_load_output(path)["duration_ns"].drop_null().to_numpy()
    assert np.percentile(durations, 50) == pytest.approx(3e6, rel=0.02)


def test_a_run_of_refusals_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(oha(statusCodeDistribution={"503": 100})))
    run = read_files({"a": [path], "b": [path]}, "a").runs[0]
    assert (run.valid, run.requests, run.errors, run.summaries) == (False, 103, 103, {})


def test_a_run_without_an_answer_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(oha(statusCodeDistribution={}, latencyPercentiles={"p10": None})))
    run = read_files({"a": [path], "b": [path]}, "a").runs[0]
    assert (run.valid, run.requests, run.errors, run.summaries) == (False, 3, 3, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"latencyPercentiles": {}}', "not what oha --output-format json writes"),
        ('{"latencyPercentiles": ', "cannot be read as JSON"),
        ('{"RequestedQPS": 1}', "not what fortio load -json writes"),
        ("#[Histogram log format version 1.2]\nx\n", "no interval of 1 could be read"),
        (json.dumps(oha(statusCodeDistribution={}, errorDistribution={})), "no request was"),
        (json.dumps(oha(statusCodeDistribution={"200": 10**12})),
            "counts more than 100,000,000,000"),
    ],
)  # fmt: skip
def test_what_does_not_count_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    options = MICROSECONDS if text.startswith("#") else ImportOptions()
    with pytest.raises(InputError, match=message) as raised:
        read_files({"a": [path], "b": [path]}, "a", options=options)
    assert "\n" not in str(raised.value)


def times(run: Run) -> dict[str, float]:
    """The summaries without rates."""
    return {name: run.summaries[name] for name in ("p50", "p95", "p99", "mean")}


def test_less_than_a_bin_of_fortio_cannot_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    bins = [{"Start": 0.001, "End": 0.002, "Count": 98}, {"Start": 0.002, "End": 0.005, "Count": 2}]
    histogram = {
        "Count": 100,
        "Sum": 0.15,
        "Data": bins,
        "Percentiles": [{"Percentile": 50, "Value": 0.0015}],
    }
    path.write_text(json.dumps(fortio(DurationHistogram=histogram)))
    experiment = read_files({"a": [path], "b": [path]}, "a")
    widths = {metric: width for (_, _, metric), width in experiment.widths.items()}
    # The mean is stated from every request.
    assert widths == pytest.approx({"p50": 1e6, "p95": 1e6, "p99": 3e6})
