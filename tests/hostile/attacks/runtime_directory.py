# SPDX-License-Identifier: Apache-2.0
"""runtime_directory.py FOLDER: mounts a file system of FUSE at FOLDER/tare as user nobody, which
says that a victim owns it alone. Then prints, as the victim whose runtime directory that would be,
what tare says of it: the Python commands, and a copy of tare-log in FOLDER."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.hostile.attacks.hanging_files import become_nobody, mount, serve

from tare.running import runtime_directory_fault
from tare.running.directory import runtime_directory

VICTIM = 65_533


def victim(folder: Path) -> None:
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    os.setgid(VICTIM)
    os.setuid(VICTIM)
    assert runtime_directory() == folder / "tare"
    print(runtime_directory_fault(), flush=True)
    command = [f"{folder}/tare-log", "run", "--out", f"{folder}/events.log", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    print(done.stderr, end="", flush=True)


if __name__ == "__main__":
    device = mount(f"{sys.argv[1]}/tare")
    server = os.fork()
    if server == 0:
        become_nobody()
        serve(device, owner=VICTIM)
    if (child := os.fork()) == 0:
        victim(Path(sys.argv[1]))
        sys.exit()
    os.waitpid(child, 0)
    os.close(device)
    os.kill(server, signal.SIGKILL)
