# SPDX-License-Identifier: Apache-2.0
"""What a map does not have, and kernels that refuse programs."""

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.map.hosts import Host
from tests.map.test_tcp import SERVER
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

SECCOMP_DENY_BPF = Path(__file__).parent / "seccomp_deny_bpf.py"
PROG_LOAD, RAW_TRACEPOINT_OPEN, ENABLE_STATS, LINK_CREATE = 5, 17, 32, 28
ALWAYS_POLLING = {"short_connections", "failed_connects", "last_bytes", "udp_messages"}


def map_once(
    *options: str, duration: str = "10ms", before: tuple[str | Path, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    command = [*before, native("bin", "tare-map"), "--duration", duration, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


def refused(error: int, *commands: int) -> tuple[str | Path, ...]:
    numbers = ",".join(str(command) for command in commands)
    return sys.executable, SECCOMP_DENY_BPF, str(error), numbers


def parts(found: dict[str, Any]) -> set[str]:
    assert found["complete"] == (not found["missing"] and not any(found["completeness"].values()))
    assert all(missing["reason"] for missing in found["missing"])
    return {missing["part"] for missing in found["missing"]}


def test_polling_is_never_complete() -> None:
    done = map_once("--method", "poll", "--json")
    assert parts(json.loads(done.stdout)) >= ALWAYS_POLLING
    assert done.stderr == ""


@pytest.mark.parametrize("option", ["--csv", "--dot", "--mermaid", "table"])
def test_outputs_that_are_not_json_are_followed_by_a_line_on_stderr(option: str) -> None:
    done = map_once("--method", "poll", *[option][: int(option != "table")])
    (line,) = done.stderr.splitlines()
    assert line.startswith("tare-map: not complete: short connections (")
    assert "failed connects" in line


def test_stream_of_set_ups_lacks_bytes_and_ends_of_tcp() -> None:
    assert "tcp_bytes" in parts(json.loads(map_once("--method", "stream", "--json").stdout))
    done = map_once("--method", "stream", "--events", "all", "--json")
    assert "tcp_bytes" not in parts(json.loads(done.stdout))


def test_intervals_that_were_missed_are_missing() -> None:
    done = map_once("--jsonl", "--interval", "1ms", duration="500ms")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    for line in lines:
        assert ("intervals" in parts(line)) == (line["missed_intervals"] > 0)


def test_line_with_bytes_of_an_earlier_reading_is_not_complete(
    hosts: Hosts, program: Program
) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    client.ask("open", "one", SERVER["4"], int(server.ask("listen", SERVER["4"])))
    lines: list[dict[str, Any]] = []

    def omits_a_reading() -> bool:
        """A reading takes more than 5 us, so it is omitted at most intervals of 1 ms; but a busy
        machine may print few lines."""
        done = map_once("--jsonl", "--interval", "1ms", duration="500ms")
        lines[:] = [json.loads(line) for line in done.stdout.splitlines()]
        return any("open_bytes" in parts(line) for line in lines[:-1])

    wait_for(omits_a_reading, "a line without bytes")
    # The last line has all bytes, but for namespaces that cannot be entered.
    last = [
        missing["reason"] for missing in lines[-1]["missing"] if missing["part"] == "open_bytes"
    ]
    assert all("namespaces" in reason for reason in last)


@pytest.mark.parametrize("how", ["mounted", "hidden"])
def test_without_cgroup2_peers_of_unconnected_sockets_are_missing(how: str) -> None:
    hidden = ["unshare", "--mount", "sh", "-c"]
    script = 'umount --all --types cgroup2; exec "$@"'
    done = map_once("--json", before=(*hidden, script, "sh") if how == "hidden" else ())
    assert ("udp_peers" in parts(json.loads(done.stdout))) == (how == "hidden")


@pytest.mark.parametrize(
    ("error", "command"),
    [
        (errno.EPERM, PROG_LOAD),
        (errno.EACCES, PROG_LOAD),
        (errno.EINVAL, PROG_LOAD),
        (errno.ENOMEM, RAW_TRACEPOINT_OPEN),
        (errno.EINVAL, LINK_CREATE),
    ],
)
def test_kernel_that_refuses_a_program_is_polled(error: int, command: int) -> None:
    before = refused(error, command)
    done = map_once("--json", before=before)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["method"], found["complete"]) == ("poll", False)
    (line,) = done.stderr.splitlines()
    assert line.startswith("tare-map: using --method poll, because ")
    done = map_once("--json", "--method", "bundle", before=before)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tare-map: ")


def test_statistics_that_are_refused_are_an_error() -> None:
    done = map_once("--json", "--tracer-stats", before=refused(errno.EPERM, ENABLE_STATS))
    assert (done.returncode, done.stdout) == (1, "")
    assert "statistics of BPF programs" in done.stderr
