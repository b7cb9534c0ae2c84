# SPDX-License-Identifier: Apache-2.0
"""Programs of musl: the library of tare link needs glibc, so they stay TCP."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.link import linked
from tests.link.programs import PYTHON, free_port, serving
from tests.once import OUT, compiled
from tests.waiting import SECONDS

SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        far, _ = listener.accept()
        with far:
            while request := far.recv(100):
                far.sendall(request)
"""


@pytest.fixture
def program() -> str:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-tools is not installed")
    return str(compiled("musl", "musl-gcc", "-O1", Path(__file__).with_name("musl.c"), "-o", OUT))


def test_program_of_musl_that_a_linked_shell_starts_stays_tcp(program: str) -> None:
    port = free_port()
    with serving(PYTHON, "-c", SERVER, str(port), port=port, eager=True) as counted:
        plain = subprocess.run(
            [program, str(port)], check=True, capture_output=True, text=True, timeout=SECONDS
        )
        run = linked.run("sh", "-c", f"{program} {port}; echo $?")
    assert (run.code, run.output, run.errors) == (0, f"{plain.stdout}0\n", plain.stderr)
    for counts in (run.counts, counted[0].counts):
        assert (counts["links"], counts["reset"]) == (0, 0)


def test_program_of_musl_is_not_started(program: str) -> None:
    done = subprocess.run(
        [linked.LINK, "--", program, "1"],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is linked with musl, not with glibc" in done.stderr
