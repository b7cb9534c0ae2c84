# SPDX-License-Identifier: Apache-2.0
"""However a measurement ends, what was recorded can be read."""

import contextlib
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.load.conftest import TARE_LOAD, Measure, Nginx, rows, rows_of_a_part
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for


def _start(nginx: Nginx, out: Path) -> subprocess.Popen[str]:
    command = [TARE_LOAD, "http", nginx.url(), "--json", "--warmup", "0s", "--duration", "60s"]
    return subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_batches(out: Path) -> None:
    wait_for(lambda: out.stat().st_size and len(rows_of_a_part(out)) > 1000)


def test_after_kill_9_the_file_is_readable(nginx: Nginx, tmp_path: Path) -> None:
    out = tmp_path / "samples.arrow"
    with _start(nginx, out) as process:
        _wait_for_batches(out)
        # Batches go on coming while it measures.
        seen = len(rows_of_a_part(out))
        wait_for(lambda: len(rows_of_a_part(out)) > seen)
        process.kill()
    samples = rows_of_a_part(out)
    assert len(samples) > seen
    assert [row["seq"] for row in samples] == list(range(len(samples)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_measurement_and_keeps_it(
    nginx: Nginx, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "samples.arrow"
    with _start(nginx, out) as process:
        _wait_for_batches(out)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number, stderr
    assert stderr == ""
    assert json.loads(stdout)["targets"][0]["requests"] == len(rows(out))


@pytest.mark.parametrize("users", ["1", "2"])
def test_a_time_out_is_given_up_soon_after_it(silent: str, measure: Measure, users: str) -> None:
    measured = measure(silent, "--timeout", "110ms", "--requests", "6", "--users", users)
    assert {row["error"] for row in measured.samples} == {"timeout"}
    durations = [row["duration_ns"] for row in measured.samples]
    # Not after the 5 s that it has by default, however late a busy machine wakes them.
    assert 110e6 <= min(durations) < 5e9


def test_a_terminal_sees_the_warm_up_and_an_error_on_a_line_of_its_own(
    nginx: Nginx, tmp_path: Path
) -> None:
    command = [TARE_LOAD, "http", nginx.url(), "--warmup", "2s", "--duration", "60s"]
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "samples.arrow")],
        stdout=subprocess.DEVNULL,
        stderr=its_end,
    ) as process:
        os.close(its_end)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (500_000, 500_000))
        seen = b""
        # A terminal that nobody writes to any more is an error, not the end of a file.
        with contextlib.suppress(OSError):
            while more := os.read(terminal, 4096):
                seen += more
        assert process.wait(SECONDS) == 1
    os.close(terminal)
    assert b" s  warm-up" in seen
    assert b"\r\x1b[Ktare-load: --out" in seen


def test_a_full_disk_is_one_line_and_keeps_what_was_written(nginx: Nginx, tmp_path: Path) -> None:
    out, machine = tmp_path / "samples.arrow", tmp_path / "machine.arrow"
    command = [TARE_LOAD, "http", nginx.url(), "--json", "--warmup", "0s", "--duration", "60s"]
    # At full speed, what is written first could already be too long.
    slowly = ["--mode", "constant", "--rate", "5000"]
    done = subprocess.run(
        [*command, *slowly, "--out", str(out), "--machine", str(machine)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert str(out) in done.stderr
    samples = rows_of_a_part(out)
    assert samples
    assert f"{len(samples)} rows" in done.stderr
    # The other file still gets the slices up to then.
    assert max(row["slice"] for row in rows(machine)) > samples[-1]["slice"]


def test_a_file_that_fails_takes_no_row_from_the_other(nginx: Nginx, tmp_path: Path) -> None:
    out, machine = tmp_path / "samples.arrow", tmp_path / "machine.pipe"
    os.mkfifo(machine)
    reader = os.open(machine, os.O_RDONLY | os.O_NONBLOCK)
    command = [TARE_LOAD, "http", nginx.url(), "--json", "--warmup", "0s", "--duration", "60s"]
    with subprocess.Popen(
        [*command, "--out", str(out), "--machine", str(machine)], stderr=subprocess.PIPE, text=True
    ) as process:
        _wait_for_batches(out)
        os.close(reader)
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert str(machine) in errors
    # The end may have cut one request short.
    requests = nginx.logged()[0]
    assert requests - 1 <= len(rows(out)) <= requests


TEN_PORTS = """
import pathlib, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40009")
listener = socket.create_server(("127.0.0.1", 8000), backlog=64)
load = ["--users", "20", "--requests", "20", "--timeout", "200ms", *sys.argv[2:]]
sys.exit(subprocess.run([sys.argv[1], "http", "http://127.0.0.1:8000/", *load]).returncode)
"""


@pytest.mark.parametrize("load", [[], ["--mode", "open", "--rate", "1000"]], ids=["closed", "open"])
def test_no_port_left_is_no_error_of_the_service(load: list[str]) -> None:
    if not may_make_namespaces():
        pytest.skip("no right to make network namespaces")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", TEN_PORTS, TARE_LOAD, *load],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "no free local port for another connection" in done.stderr


def test_no_further_thread_is_one_line(silent: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # The limit does not hold for root, and others may not look into root's folders.
        Path(folder).chmod(0o755)
        program = shutil.copy(TARE_LOAD, folder)
        done = subprocess.run(
            [program, "http", silent, "--users", "8", "--threads", "8"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (4, 4)),
            user=54321 if os.geteuid() == 0 else None,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "ulimit -u" in done.stderr
