# SPDX-License-Identifier: Apache-2.0
"""Control groups of runs whose supervisor was killed: it makes a group for each command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tare.proc import proc_lines

# tare-PID-NUMBER, as `tare.lab.processes.supervisor` names them.
_NAME = re.compile(r"tare-(\d+)-\d+")


def remove_abandoned_cgroups(mounts: Path = Path("/proc/self/mounts")) -> Iterator[Path]:
    """Removes those of this user that are empty, wherever a supervisor ran; yields their paths."""
    for line in proc_lines(mounts.read_bytes()):
        _, where, kind, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2"):
            yield from _below(Path(where))


def _below(root: Path) -> Iterator[Path]:
    # A stack of its own, for groups of a stranger may be nested deeper than Python calls.
    unseen = [str(root)]
    while unseen:
        for entry in _folders(unseen.pop()):
            name = _NAME.fullmatch(entry.name)
            if name is None:
                unseen.append(entry.path)
            elif not Path("/proc", name[1]).exists():
                # The kernel removes no control group that has a process or another group.
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                        Path(entry.path).rmdir()
                        yield Path(entry.path)


def _folders(path: str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(path) as entries:
        return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []
