# SPDX-License-Identifier: Apache-2.0
"""The library works with the segments of its own build, and with no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND, LIBRARY
from tests.waiting import SECONDS

# Runs `true` with copies of the segments of tare-hook (bare ones: header and size), whose
# version is their own or the one given; prints how many programs attached.
SCRIPT = """
import fcntl, os, struct, subprocess, sys

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
*owner, control, shared = os.environ["TARE_HOOK"].split(":")

def copy(fd):
    header = bytearray(os.pread(fd, 64, 0))
    if sys.argv[1:]:
        struct.pack_into("=I", header, 8, int(sys.argv[1]))
    new = os.memfd_create("copy", os.MFD_ALLOW_SEALING)
    os.fchmod(new, 0o644)
    os.ftruncate(new, os.fstat(fd).st_size)
    os.pwrite(new, header, 0)
    fcntl.fcntl(new, fcntl.F_ADD_SEALS, SEALS)
    return new

copies = [copy(int(fd)) for fd in (control, shared)]
os.environ["TARE_HOOK"] = ":".join([*owner, *map(str, copies)])
subprocess.run(["true"], pass_fds=copies, check=True)
print(int.from_bytes(os.pread(copies[1], 8, 64), sys.byteorder))
"""


@pytest.mark.parametrize(
    ("version", "attached"),
    # Numbers counted by hand said nothing of the layout: 1 was every build's.
    [([], 1), (["1"], 0)],
)
def test_a_segment_of_another_build_is_refused(version: list[str], attached: int) -> None:
    command = [COMMAND, "--", sys.executable, "-c", SCRIPT, *version]
    assert int(subprocess.check_output(command, text=True)) == attached


def test_a_pipe_under_the_number_of_the_segment_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        # The child finds its parent, and by its number a pipe that nobody writes to.
        hook = f"{os.getpid()}:1:{pipe}:{pipe}"
        env = os.environ | {"LD_PRELOAD": LIBRARY, "TARE_HOOK": hook}
        subprocess.run(["true"], env=env, timeout=SECONDS, check=True)
    finally:
        os.close(pipe)
