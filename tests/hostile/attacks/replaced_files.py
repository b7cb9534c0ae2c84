# SPDX-License-Identifier: Apache-2.0
"""replaced_files.py FOLDER: as user nobody, when it has read a line, puts links in place of
`events.log` and `socket` in the folder. They lead to a file system of FUSE whose server never
answers who looks at them. Started as root to mount it, in the mount namespace of the collector."""

import os
import sys
from pathlib import Path

from tests.hostile.attacks.hanging_files import become_nobody, mount, serve


def replace(folder: Path) -> None:
    print(os.getpid(), flush=True)
    if not sys.stdin.readline():
        return
    for name in ("events.log", "socket"):
        (folder / name).rename(folder / f"old.{name}")
        (folder / name).symlink_to(folder / "files" / "slow")
    print("replaced", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    device = mount(str(folder / "files"))
    if os.fork() == 0:
        os.close(device)
        become_nobody()
        replace(folder)
    else:
        become_nobody()
        serve(device)
