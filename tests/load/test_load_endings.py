# SPDX-License-Identifier: Apache-2.0
"""However a measurement ends, what was recorded can be read."""

import json
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.load.conftest import TARE_LOAD, Nginx, rows


def _start(nginx: Nginx, out: Path) -> subprocess.Popen[str]:
    command = [TARE_LOAD, "http", nginx.url(), "--json", "--warmup", "0s", "--duration", "60s"]
    return subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_batches(out: Path) -> None:
    deadline = time.monotonic() + 20
    while not (out.exists() and len(rows(out)) > 1000):
        assert time.monotonic() < deadline, "nothing was written"
        time.sleep(0.1)


def test_after_kill_9_the_file_is_readable(nginx: Nginx, tmp_path: Path) -> None:
    out = tmp_path / "samples.arrow"
    with _start(nginx, out) as process:
        _wait_for_batches(out)
        killed = time.time_ns()
        process.kill()
    samples = rows(out)
    assert samples[-1]["start_ns"] > killed - 1_000_000_000
    assert [row["seq"] for row in samples] == list(range(len(samples)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_measurement_and_keeps_it(
    nginx: Nginx, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "samples.arrow"
    with _start(nginx, out) as process:
        _wait_for_batches(out)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=10)
    assert process.returncode == 128 + number, stderr
    assert stderr == ""
    assert json.loads(stdout)["targets"][0]["requests"] == len(rows(out))


def test_a_full_disk_is_one_line_and_keeps_what_was_written(nginx: Nginx, tmp_path: Path) -> None:
    out = tmp_path / "samples.arrow"
    command = [TARE_LOAD, "http", nginx.url(), "--json", "--warmup", "0s", "--duration", "60s"]
    done = subprocess.run(
        [*command, "--out", str(out)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)),
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert str(out) in done.stderr
    samples = rows(out)
    assert samples
    assert f"{len(samples)} rows" in done.stderr
