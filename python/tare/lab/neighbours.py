# SPDX-License-Identifier: Apache-2.0
"""Other runs of tare on this machine: two at once work, but they disturb each other.

Every run holds a lock on a file of its own in the runtime directory; the kernel lets go of it
however the run ends, so a file that can be locked is one that the dead left.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def runtime_folder() -> Path:
    """Where running parts of tare leave their marks: /run/tare for root, else the user's own."""
    if os.geteuid() == 0:
        return Path("/run/tare")
    own = os.environ.get("XDG_RUNTIME_DIR")
    return Path(own, "tare") if own else Path(f"/tmp/tare-{os.geteuid()}")


@contextmanager
def announced() -> Iterator[Path | None]:
    """Marks this process as running an experiment; None where the mark cannot be made."""
    path = runtime_folder() / f"run-{os.getpid()}.lock"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def others(own: Path | None) -> list[int]:
    """Process ids of the other runs that are under way; what the dead left is removed."""
    running = []
    for path in runtime_folder().glob("run-*.lock") if own else ():
        if path == own:
            continue
        with suppress(OSError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                running.append(int(path.stem.removeprefix("run-")))
    return sorted(running)
