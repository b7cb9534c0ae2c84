# SPDX-License-Identifier: Apache-2.0
"""System calls that pass no function of libc's, on linked connections and with --seccomp."""

import json
import platform
import subprocess
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled
from tests.waiting import SECONDS

SOURCE = Path(__file__).parent / "raw_syscalls.c"
STATUS = ["grep", "-E", "^(NoNewPrivs|Seccomp):", "/proc/self/status"]


@pytest.fixture(scope="module")
def raw() -> str:
    if platform.machine() != "x86_64":
        pytest.skip("the inline system call is of x86-64")
    return str(compiled("raw_syscalls", "cc", "-O1", "-w", "-o", OUT, SOURCE))


def test_inline_read_finds_no_byte_of_the_ring(raw: str) -> None:
    run = linked.run(raw, "read")
    assert run.output.splitlines() == ["inline read: EAGAIN", "read: 4 ring"]
    assert (run.code, run.counts["reset"]) == (0, 0)


def test_inline_write_resets_the_connection_behind_the_bytes_of_the_ring(raw: str) -> None:
    run = linked.run(raw, "write")
    assert run.output.splitlines() == ["inline write: 3", "read: 4 ring", "read: ECONNRESET"]
    assert (run.code, run.counts["reset"]) == (0, 1)


def test_seccomp_refuses_io_uring_to_inline_calls(raw: str) -> None:
    refused = "io_uring_setup: ENOSYS\n"
    if linked.run(raw, "setup").output == refused:
        pytest.skip("this kernel has no io_uring")
    command = [linked.LINK, "--seccomp", "--", raw, "setup"]
    assert subprocess.check_output(command, text=True, timeout=SECONDS) == refused


def test_seccomp_sets_no_new_privs_and_links_go_on() -> None:
    command = [linked.LINK, "--seccomp", "--", *STATUS]
    status = subprocess.check_output(command, text=True, timeout=SECONDS)
    assert status.splitlines() == ["NoNewPrivs:\t1", "Seccomp:\t2"]
    python = ["/usr/bin/python3", "-c", f"{linked.PAIR}\nlinked()"]
    command = [linked.LINK, "--seccomp", "--eager", "--json", "--", *python]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    linked.assert_carried(json.loads(done.stderr.splitlines()[-1]), 2)


def with_ring(raw: str, how: str) -> linked.Linked:
    run = linked.run(raw, how)
    if not run.output.startswith("io_uring\n"):
        pytest.skip(f"io_uring cannot be used here: {run.output}")
    assert run.code == 0
    return run


def test_connections_of_a_program_with_an_io_uring_stay_tcp(raw: str) -> None:
    run = with_ring(raw, "uring")
    assert run.counts["links"] == 0
    assert run.reasons["stayed_tcp"] == {"io_uring": 2}


def test_ring_made_after_a_link_resets_it_when_it_sends(raw: str) -> None:
    run = with_ring(raw, "uring-late")
    assert run.output.splitlines()[1:] == ["sent: 3", "read: 4 ring", "read: ECONNRESET"]
    assert (run.counts["links"], run.counts["reset"]) == (2, 1)


def test_libc_and_liburing_set_up_no_ring(raw: str) -> None:
    lines = linked.run(raw, "libc").output.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["ENOSYS"] * 5
