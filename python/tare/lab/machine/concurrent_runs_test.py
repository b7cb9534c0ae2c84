# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys

import pytest

from tare.lab.machine import concurrent_runs

ANNOUNCED = """
import os, sys
from tare.lab.machine.concurrent_runs import announced
if len(sys.argv) > 1:
    os.setgroups([])
    os.setuid(int(sys.argv[1]))
with announced():
    print("announced", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("user", [(), ("65534",)])
def test_a_run_sees_those_of_every_user_until_they_end(user: tuple[str, ...]) -> None:
    if user and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED, *user],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "announced\n"
        with concurrent_runs.announced():
            assert other.pid in concurrent_runs.others()
            assert os.getpid() not in concurrent_runs.others()
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert other.pid not in concurrent_runs.others()
