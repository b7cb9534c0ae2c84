# SPDX-License-Identifier: Apache-2.0
"""Users who attack a collector of root together, and one who acts under many IDs."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hostile.attacks.segment import acting_as
from tests.hostile.conftest import NOBODY, attack
from tests.hostile.test_budgets import EVENTS, awaited, go_on, numbers
from tests.log.conftest import compiled
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS

__all__ = ["compiled"]

USERS = range(60_000, 60_040)


@pytest.mark.exhaustive
def test_program_that_starts_beside_a_flood_of_many_users_is_served_in_time(
    compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """All users together have one share of a turn: turns do not get longer with their number."""
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    with (
        collecting(open_to_all) as collector,
        attack("changes", open_to_all / "socket", *USERS),
    ):
        with awaited(program, "root") as victim:
            go_on(victim)
        ended(collector)
    assert len(numbers(open_to_all / "events.log", victim.pid)) == EVENTS


@contextmanager
def collecting_with_subordinate_ids(folder: Path) -> "Iterator[subprocess.Popen[str]]":
    """A collector for which all `USERS` are IDs of user nobody: it alone sees another file
    /etc/subuid."""
    if not Path("/etc/subuid").exists():
        pytest.skip("there is no file /etc/subuid to hide")
    ranges = folder / "subuid"
    ranges.write_text(f"{NOBODY}:{USERS.start}:{len(USERS)}\n")
    script = f'mount --bind {ranges} /etc/subuid && exec "$@"'
    hidden = ["unshare", "--mount", "sh", "-c", script, "hidden"]
    with collecting(folder, "events.log", *hidden) as collector:
        yield collector


def test_user_has_one_limit_of_lines_for_all_subordinate_ids(open_to_all: Path) -> None:
    begin = time.monotonic()
    with collecting_with_subordinate_ids(open_to_all) as collector:
        for user in USERS:
            for _ in range(10):
                with acting_as(user), socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(open_to_all / "socket"))
                    connection.send(b"no segment")
                    connection.settimeout(SECONDS)
                    connection.recv(1)
        told = ended(collector).splitlines()
    seconds = time.monotonic() - begin
    refused = [line for line in told if "it sent no descriptor, or several" in line]
    assert 0 < len(refused) <= 5 * (seconds + 1)


def test_user_has_one_budget_for_all_subordinate_ids(open_to_all: Path) -> None:
    with collecting_with_subordinate_ids(open_to_all) as collector:
        with attack("many_rings", open_to_all / "socket", *USERS[:8]):
            assert collector.stderr is not None
            limited = collector.stderr.readline()
            mappings = Path(f"/proc/{collector.pid}/maps").read_text().count("memfd:tare-log")
        ended(collector)
    assert (
        f"of user {NOBODY} gets no further rings: its user reached the limit of memory mappings"
        in limited
    )
    # Half of them are left for others.
    assert mappings <= int(Path("/proc/sys/vm/max_map_count").read_text()) / 2
