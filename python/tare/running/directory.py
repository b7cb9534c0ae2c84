# SPDX-License-Identifier: Apache-2.0
"""Where processes of Tare find each other."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def make_runtime_directory() -> Path:
    """Creates the directory unless it exists, as `tare_command::runtime` does.

    Every user may reach the sockets of root.
    """
    path = runtime_directory()
    with suppress(FileExistsError):
        mode = 0o755 if os.geteuid() == 0 else 0o700
        path.mkdir(mode)
        path.chmod(mode)  # whatever the umask is
    return path


def runtime_directory() -> Path:
    """The directory of sockets, as `tare_command::runtime` has it. It need not exist."""
    user = os.geteuid()
    if user == 0:
        return Path("/run/tare")
    session = Path(os.environ.get("XDG_RUNTIME_DIR") or ".")
    with suppress(OSError):
        status = session.lstat()
        if session.is_absolute() and stat.S_ISDIR(status.st_mode) and status.st_uid == user:
            return session / "tare"
    return Path(f"/tmp/tare-{user}")
