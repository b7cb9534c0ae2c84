# SPDX-License-Identifier: Apache-2.0
"""Result folders: what is read, what is left out, and what invalid runs become."""

import json
import re
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples import read_both, read_result

SLICES = 40
"""Slices of a block, 20 rounds of two conditions."""
A_SLICE = 5_000_000
START = 1_700_000_000_000_000_000
PLAIN_FIRST = ("plain", "hook")


def everywhere(blocks: int, value: float) -> dict[tuple[int, int], float]:
    """The same in every slice of every block."""
    return {(block, number): value for block in range(1, blocks + 1) for number in range(SLICES)}


def write_result(
    folder: Path,
    *,
    design: str = "interleaved",
    blocks: int = 2,
    steal: dict[tuple[int, int], float] | None = None,
    wait: dict[tuple[int, int], float] | None = None,
    invalid: dict[int, str] | None = None,
    intended: bool = False,
    others: float | None = None,
    used: frozenset[int] | None = None,
) -> Path:
    """A result of `blocks` blocks: a request a ms, plain 100 µs, hook 110 µs, and 10 ms where hit.

    `steal` and `wait` map (block, slice) to ns; `invalid` maps a run to its reason. `others` is the
    CPU time that other tasks have in each slice, in ns; without it no CPU time is recorded. With
    `used`, requests start in these slices only, and the manifest says how many.
    """
    steal, wait, invalid = steal or {}, wait or {}, invalid or {}
    own = {"generator": 2e6, "service": 2e6}
    cpu = {} if others is None else own | {"machine": sum(own.values()) + others}
    cpu_times = [(subject, "cpu_time", everywhere(blocks, time)) for subject, time in cpu.items()]
    runs: list[dict[str, Any]] = []
    for block in range(1, blocks + 1):
        for place, condition in enumerate(PLAIN_FIRST):
            run = len(runs) + 1
            runs.append(
                {
                    "run": run,
                    "block": block,
                    "environment": "host",
                    "condition": condition,
                    "valid": run not in invalid,
                    "reason": invalid.get(run),
                    "log_tail": [],
                    "started_ns": START + block,
                    "duration_ns": SLICES * A_SLICE,
                    "requests": None,
                    "errors": None,
                    "endpoint": f"http://127.0.0.1:{8000 + place}/",
                    "cpu": {
                        "service_ns_per_request": 50_000.0 + place,
                        "generator_ns_per_request": None,
                    },
                }
            )
            mine = [number for number in range(SLICES) if design == "blocks" or number % 2 == place]
            where = f"condition={condition}/block={block}/run={run}"
            base = 100_000 if condition == "plain" else 110_000
            hit = {number for at, number in (*steal, *wait) if at == block}
            rows = [
                {
                    "seq": seq,
                    "slice": number,
                    "intended_ns": START + number * A_SLICE - 7 if intended else None,
                    "start_ns": START + number * A_SLICE + seq,
                    "duration_ns": 10_000_000 if number in hit else base,
                    "ok": seq != 0,
                }
                for number in mine
                if used is None or number in used
                for seq in range(5)
            ]
            if used is not None:
                runs[-1]["requests"] = len(rows)
            samples = folder / "samples" / where
            samples.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), samples / "samples.parquet")
            readings = [
                {
                    "slice": number,
                    "start_ns": START + number * A_SLICE,
                    "duration_ns": A_SLICE,
                    "subject": subject,
                    "metric": metric,
                    "value": float(values.get((block, number), 0.0)),
                    "unit": "ns",
                }
                for number in mine
                for subject, metric, values in (
                    ("machine", "steal", steal),
                    ("generator", "run_delay", wait),
                    ("service", "run_delay", {}),
                    *cpu_times,
                )
            ]
            machine = folder / "machine" / where
            machine.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(readings), machine / "machine.parquet")
    manifest = {
        "format": 1,
        "design": design,
        "primary": "p50",
        "budget": 0.03,
        "alpha": 0.05,
        "baseline": "plain",
        "warnings": ["from the lab"],
        "runs": runs,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_runs_have_the_summaries_of_their_successful_requests(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path))
    assert experiment.paired
    assert experiment.baseline == "plain"
    assert experiment.warnings[0] == "from the lab"
    assert [(run.run, run.block, run.condition) for run in experiment.runs] == [
        (1, 1, "plain"),
        (2, 1, "hook"),
        (3, 2, "plain"),
        (4, 2, "hook"),
    ]
    hook = experiment.runs[1]
    assert hook.summaries == {
        "p50": 110_000,
        "p95": 110_000,
        "p99": 110_000,
        "mean": 110_000,
        "cpu_service": 50_001,
        "error_rate": 0.2,
        # 80 requests in 20 slices, of which each has load from its first start to its last end.
        "throughput": pytest.approx(80 / (20 * (110_000 + 4) / 1e9)),
    }
    assert (hook.requests, hook.errors, hook.left_out) == (100, 20, 0.0)
    assert hook.ended_ns == START + 1 + SLICES * A_SLICE


def test_runs_are_in_the_order_of_the_plan(tmp_path: Path) -> None:
    write_result(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    declared = manifest | {"conditions": [{"name": "hook"}, {"name": "plain"}]}
    (tmp_path / "manifest.json").write_text(json.dumps(declared))
    runs = [(run.condition, run.run) for run in read_result(tmp_path).runs]
    assert runs == [("hook", 2), ("hook", 4), ("plain", 1), ("plain", 3)]


def test_latency_counts_from_the_intended_start(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, intended=True))
    # In every slice, requests 1 to 4 count and start 1 to 4 ns after the slice, 7 ns late.
    assert experiment.runs[0].summaries["mean"] == 100_000 + 7 + 2.5


def test_a_folders_name_is_no_pattern(tmp_path: Path) -> None:
    write_result(tmp_path / "r1", intended=True)
    named = write_result(tmp_path / "r[1]")
    assert read_result(named).runs[0].summaries["p50"] == 100_000


def test_an_invalid_run_stays_with_its_reason(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, invalid={3: "the service crashed"}))
    assert [run.valid for run in experiment.runs] == [True, True, False, True]
    assert experiment.runs[2].reason == "the service crashed"


def test_a_run_without_samples_is_invalid(tmp_path: Path) -> None:
    folder = write_result(tmp_path)
    (folder / "samples/condition=hook/block=1/run=2/samples.parquet").unlink()
    run = read_result(folder).runs[1]
    assert (run.valid, run.gone) == (False, True)
    assert run.reason == "its requests are not in the result"


@pytest.mark.parametrize("key", ["requests", "errors"])
@pytest.mark.parametrize("value", [0, 1, 10**6])
def test_a_run_with_other_samples_than_were_measured_is_invalid(
    tmp_path: Path, key: str, value: int
) -> None:
    folder = write_result(tmp_path, used=frozenset(range(SLICES)))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {run.valid for run in read_result(folder).runs} == {True}
    manifest["runs"][1][key] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    runs = read_result(folder).runs
    assert [run.valid for run in runs] == [True, False, True, True]
    reason = str(runs[1].reason)
    assert re.match(rf"the manifest has .* {key}, and the samples have \d+", reason)
    assert (runs[1].requests, runs[1].errors) == (runs[3].requests, runs[3].errors)


def test_requests_that_all_have_a_name_are_counted_as_the_manifest_counts_them(
    tmp_path: Path,
) -> None:
    folder = write_result(tmp_path, used=frozenset(range(SLICES)))
    for path in folder.glob("samples/**/*.parquet"):
        table = pq.ParquetFile(path).read()
        name = pa.array(["order"] * table.num_rows)
        pq.write_table(table.append_column("span", name), path)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {run.valid for run in read_result(folder).runs} == {True}
    measured = manifest["runs"][1]["requests"]
    manifest["runs"][1]["requests"] = 7
    (folder / "manifest.json").write_text(json.dumps(manifest))
    reason = read_result(folder).runs[1].reason
    assert reason == f"the manifest has 7 requests, and the samples have {measured}"


def test_rows_that_are_in_the_result_twice_make_their_run_invalid(tmp_path: Path) -> None:
    folder = write_result(tmp_path, used=frozenset(range(SLICES)))
    (file,) = folder.glob("samples/*/*/run=2/samples.parquet")
    copy(file, file.with_name("copy.parquet"))
    assert [run.valid for run in read_result(folder).runs] == [True, False, True, True]


def test_how_a_run_went_is_read_from_its_rows(tmp_path: Path) -> None:
    folder = write_result(tmp_path, blocks=1, intended=True)
    plain, hook = (run.load_stats for run in read_result(folder).runs)
    assert plain.behind == hook.behind == 0
    assert hook.lag == pytest.approx(9 / 110_009, rel=0.01)
    (path,) = folder.glob("samples/condition=hook/**/*.parquet")
    table = pq.ParquetFile(path).read().drop_columns(["slice"])
    for name, step in (("intended_ns", 1_000), ("start_ns", 1_100)):
        times = START + step * np.arange(table.num_rows)
        table = table.set_column(table.column_names.index(name), name, pa.array(times))
    pq.write_table(table, path)
    plain, hook = (run.load_stats for run in read_result(folder).runs)
    assert plain.behind == 0
    assert hook.behind == pytest.approx(1 - 1 / 1.1)


def test_a_failed_run_is_missing_in_every_span_of_its_condition(tmp_path: Path) -> None:
    folder = write_result(tmp_path, invalid={4: "the service crashed"})
    for path in folder.glob("samples/*/*/*/*.parquet"):
        table = pq.ParquetFile(path).read()
        spans = pa.array(["pay" if seq == 1 else None for seq in table["seq"].to_pylist()])
        pq.write_table(table.append_column("span", spans), path)
    (folder / "samples/condition=hook/block=2/run=4/samples.parquet").unlink()
    failed = [run for run in read_result(folder).runs if run.run == 4]
    assert [(run.span, run.valid) for run in failed] == [("pay", False), ("request", False)]
    assert {run.reason for run in failed} == {"the service crashed"}


def test_what_is_no_result_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json: no such file"):
        read_result(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        read_result(tmp_path)
    (tmp_path / "manifest.json").write_text('{"runs": []}')
    with pytest.raises(InputError, match="budget: found nothing, expected this key"):
        read_result(tmp_path)


def test_two_results_have_the_larger_limit_of_both(tmp_path: Path) -> None:
    limits = {"old": {"p50": 300.0, "p99": 9.0}, "new": {"p50": 200.0, "p99": 700.0, "mean": 5.0}}
    for side, of_side in limits.items():
        path = write_result(tmp_path / side) / "manifest.json"
        known = {"environment": "host", "span": "request", "shares": {}, "date": "2026-11-21"}
        listed = [known | {"statistic": m, "undetected_ns": ns} for m, ns in of_side.items()]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"limits": listed}))
    found = read_both(tmp_path / "old", tmp_path / "new").limits
    assert {metric: ns for (_, _, metric), ns in found.items()} == {
        "p50": 300.0,
        "p99": 700.0,
        "mean": 5.0,
    }


def test_a_table_cut_short_is_named(tmp_path: Path) -> None:
    folder = write_result(tmp_path)
    path = folder / "samples/condition=hook/block=1/run=2/samples.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="a table of the result cannot be read"):
        read_result(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"runs": "many"}, 'runs: found "many", expected a list'),
        ({"runs": ["a"]}, 'runs[1]: found "a", expected a table'),
        ({"runs": [{"run": 1}]}, "runs[1].block: found nothing, expected this key"),
        ({"budget": None}, "budget: found nothing, expected this key"),
        ({"primary": []}, "primary: found [], expected a text"),
        ({"conditions": [{}]}, "conditions[1].name: found nothing, expected this key"),
    ],
)
def test_manifests_of_other_types_are_named(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    write_result(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"primary": None, "unknown": [{}]}))
    assert read_result(tmp_path).primary == "p50"
    path.write_text(json.dumps(manifest | change))
    with pytest.raises(InputError, match=re.escape(says)):
        read_result(tmp_path)
    path.write_text(json.dumps(manifest | {"runs": manifest["runs"][:1] * 2}))
    with pytest.raises(InputError, match="every run once, not run 1 twice"):
        read_result(tmp_path)
    again = {**manifest["runs"][0], "run": 9}
    path.write_text(json.dumps(manifest | {"runs": [*manifest["runs"], again]}))
    with pytest.raises(InputError, match="each condition once in a block, not again as run 9"):
        read_result(tmp_path)


def test_requests_in_order_need_no_times(tmp_path: Path) -> None:
    folder = write_result(tmp_path, design="blocks")
    expected = read_result(folder).runs
    for path in folder.glob("samples/**/*.parquet"):
        table = pq.ParquetFile(path).read()
        seq = pa.array(range(table.num_rows))
        table = table.drop_columns(["start_ns", "intended_ns", "seq"]).append_column("seq", seq)
        pq.write_table(table, path)
    timeless = [dict(run.summaries) for run in expected]
    assert all(summaries.pop("throughput") for summaries in timeless)
    assert [run.summaries for run in read_result(folder).runs] == timeless


def test_samples_of_runs_that_the_manifest_does_not_name_are_in_none(tmp_path: Path) -> None:
    folder = write_result(tmp_path)
    known = read_result(folder)
    whole = json.loads((folder / "manifest.json").read_text())
    cut = {**whole, "runs": whole["runs"][:-2]}
    (folder / "manifest.json").write_text(json.dumps(cut))
    assert [run.run for run in read_result(folder).runs] == [run.run for run in known.runs][:-2]


@pytest.mark.parametrize("bad", [-5_000, -(10**15)])
def test_rows_that_are_no_requests_are_left_out_as_of_files(tmp_path: Path, bad: int) -> None:
    folder = write_result(tmp_path / "result", blocks=1)
    (path,) = folder.glob("samples/condition=hook/**/*.parquet")
    table = pq.ParquetFile(path).read()
    column = table.column_names.index("duration_ns")
    durations = [0 if n == 1 else bad if n < 12 else 110_000 for n in range(table.num_rows)]
    pq.write_table(table.set_column(column, "duration_ns", pa.array(durations)), path)
    experiment = read_result(folder)
    plain, hook = experiment.runs
    assert (plain.lost, plain.zeros) == (0, 0)
    assert hook.lost == 11 / 100
    assert hook.zeros == 1
    assert "11 rows without a usable time (run 2): left out" in experiment.warnings
