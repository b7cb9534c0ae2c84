# SPDX-License-Identifier: Apache-2.0
"""What killed processes of Tare left behind: sockets, data, control groups, environments."""

from __future__ import annotations

import errno
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tare.atomic_files import remove
from tare.errors import InputError
from tare.running.cgroups import remove_abandoned_cgroups
from tare.running.created_resources import remove_abandoned as remove_abandoned_environments
from tare.running.directory import opened_runtime_directory, runtime_directory
from tare.samples.sql.spill import PREFIX, remove_abandoned


def remove_leftovers() -> list[Path]:
    """Removes them and returns their paths. Only what this user's own processes made is removed."""
    environments = [*remove_abandoned_environments()]
    return [*_sockets(), *_spilled(), *environments, *remove_abandoned_cgroups()]


def _sockets() -> Iterator[Path]:
    with suppress(OSError, InputError), opened_runtime_directory() as folder:
        for path in sorted(runtime_directory().glob("*.sock")):
            if _is_being_made(path):
                continue
            with suppress(OSError):
                status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                own = stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()
                # A collector that starts gives its own socket the name of a dead one.
                if own and not _has_listener(path) and remove(path.name, status, folder):
                    yield path


def _is_being_made(path: Path) -> bool:
    """A collector that starts renames log-PID-RANDOM.sock when it listens."""
    match path.stem.split("-"):
        case [_, pid, _] if pid.isdecimal():
            return Path("/proc", pid).exists()
    return False


def _has_listener(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        # EAGAIN: the queue of a listener is full.
        return client.connect_ex(str(path)) != errno.ECONNREFUSED


def _spilled() -> Iterator[Path]:
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        if remove_abandoned(path):
            yield path
