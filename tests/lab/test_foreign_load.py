# SPDX-License-Identifier: Apache-2.0
"""Runs whose requests another load generator sends, known by the file that it leaves."""

import os
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment

WRK2 = """\
  Value   Percentile   TotalCount 1/(1-Percentile)
  1.000     0.500000           50         2.00
  2.000     1.000000          100          inf
  Non-2xx or 3xx responses: 1
"""


def test_a_foreign_load_generator(experiment: Experiment) -> None:
    generator = Path(__file__).with_name("foreign_load.py")
    experiment.write_plan(
        load=f'type = "command"\ncommand = ["{sys.executable}", "{generator}", "{{url}}",'
        ' "{output}"]\noutput = "stats.csv"\nformat = "locust"\nduration = "1s"'
    )
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    assert experiment.manifest["design"] == "blocks"
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["requests"] == 50
        assert run["cpu"]["generator_ns_per_request"] > 0
        # Less than a tick is unknown where there are no cgroups, as for an ordinary user.
        if os.geteuid() == 0 or "service_ns_per_request" in run["cpu"]:
            assert run["cpu"]["service_ns_per_request"] > 0


def test_a_foreign_load_generator_that_keeps_a_histogram(experiment: Experiment) -> None:
    table = experiment.folder / "table"
    table.write_text(WRK2)
    experiment.write_plan(
        load=f'type = "command"\ncommand = ["cp", "{table}", "{{output}}"]\n'
        'output = "wrk2.txt"\nformat = "wrk2"\nduration = "1s"'
    )
    done = experiment.run(report=True)
    assert done.returncode == 0, done.stderr
    assert (experiment.result / "report.html").exists()
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["requests"] == 100
        assert run["errors"] == 1
        assert run["started_ns"] is None
    warnings = experiment.manifest["warnings"]
    assert any("1 answers other than 2xx and 3xx" in warning for warning in warnings), warnings


def test_a_foreign_file_of_any_columns(experiment: Experiment) -> None:
    table = experiment.folder / "table"
    table.write_text("began;took\n" + "".join(f"{n};{n + 1}\n" for n in range(20)))
    load = (
        f'type = "command"\ncommand = ["cp", "{table}", "{{output}}"]\noutput = "a.csv"\n'
        'format = "locust"\nunit = "us"\ncolumns = { start = "began", duration = "took" }\n'
    )
    experiment.write_plan(load=load)
    assert experiment.measure(blocks=1).returncode == 0
    assert [run["requests"] for run in experiment.manifest["runs"]] == [20, 20, 20]
    (found, *_) = experiment.folder.glob("**/samples.parquet")
    assert pq.read_table(found)["duration_ns"].to_pylist()[:2] == [1_000, 2_000]
    experiment.write_plan(load=load.replace("duration =", "latency ="))
    done = experiment.measure(blocks=1)
    assert done.returncode == 2
    assert re.search(r"plan.toml:\d+: load.columns: .*expected duration, or start", done.stderr)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([f"{n},{1 if n % 4 else -1}" for n in range(100)], "25.00% of the rows have no usable"),
        ([f"{5_000 + n - 3_600 * (n > 50)},1" for n in range(100)], "its clock was set back by"),
    ],
)
def test_a_foreign_file_whose_times_say_nothing_is_no_run(
    experiment: Experiment, rows: list[str], says: str
) -> None:
    table = experiment.folder / "table"
    table.write_text("\n".join(["began,took", *rows, ""]))
    experiment.write_plan(
        load=f'type = "command"\ncommand = ["cp", "{table}", "{{output}}"]\noutput = "a.csv"\n'
        'format = "locust"\nunit = "s"\ncolumns = { start = "began", duration = "took" }\n'
    )
    experiment.measure(blocks=1)
    assert all(says in str(run["reason"]) for run in experiment.manifest["runs"])


def test_a_warm_up_needs_times(experiment: Experiment) -> None:
    table = experiment.folder / "table"
    table.write_text(WRK2)
    experiment.write_plan(
        load=f'type = "command"\ncommand = ["cp", "{table}", "{{output}}"]\n'
        'output = "wrk2.txt"\nformat = "wrk2"\nduration = "1s"\nwarmup = "1s"'
    )
    assert experiment.measure(blocks=1).returncode == 1
    assert all("no times" in run["reason"] for run in experiment.manifest["runs"])
