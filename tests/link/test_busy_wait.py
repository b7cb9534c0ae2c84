# SPDX-License-Identifier: Apache-2.0
"""Whether a thread looks for a message before it sleeps."""

import subprocess
import sys

import pytest
from tests.link import linked

SCRIPT = f"""{linked.PAIR}
import threading
near, far = linked()
def echo():
    while message := far.recv(8):
        far.sendall(message)
thread = threading.Thread(target=echo)
thread.start()
for _ in range(200):
    near.sendall(b"question")
    assert near.recv(8) == b"question"
near.close()
thread.join()
"""


@pytest.mark.parametrize("options", [[], ["--no-spin"]])
def test_threads_look_before_they_sleep_unless_told_not_to(options: list[str]) -> None:
    words = [linked.LINK, "--eager", *options, "--json", "--", sys.executable, "-c", SCRIPT]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run = linked.ended(process)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 2)
    looks = run.counts["spins"] + run.counts["vain_spins"]
    assert (looks == 0) == ("--no-spin" in options)
