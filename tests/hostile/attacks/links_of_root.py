# SPDX-License-Identifier: Apache-2.0
"""links_of_root.py FOLDER TARGET: mounts a file system of FUSE at FOLDER as user nobody, in which
every name is a symbolic link to TARGET, and root its owner. Prints why commands of root do not
follow it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.hostile.attacks.hanging_files import become_nobody, mount, serve

from tare.native import native

if __name__ == "__main__":
    folder, target = map(Path, sys.argv[1:])
    device = mount(str(folder))
    server = os.fork()
    if server == 0:
        become_nobody()
        serve(device, owner=0, hangs=False, link=str(target))
    assert (folder / "way").lstat().st_uid == 0
    assert (folder / "way").readlink() == target
    try:
        plan = [
            "init",
            "--service",
            "sleep {port}",
            "--condition",
            "one=env:A=1",
            f"{folder}/way/plan",
        ]
        log = ["run", "--out", f"{folder}/way/events", "--", "true"]
        for command in ([sys.executable, "-m", "tare", *plan], [native("bin", "tare-log"), *log]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print((done.stderr or done.stdout).splitlines()[0])
    finally:
        os.close(device)
        os.kill(server, signal.SIGKILL)
