# SPDX-License-Identifier: Apache-2.0
"""Memory is shared with the own user and root only, and only their memory is adopted."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hostile.conftest import NOBODY, VICTIM, acting_as, attack, says
from tests.log.conftest import compile_program
from tests.waiting import SECONDS

from tare.native import native

HOOK = native("lib", "libtare_hook.so")
Hooked = Callable[[int, str], str]
SHOW_MAPS = "print(open('/proc/self/maps').read())"


victims = pytest.mark.parametrize("user", [0, VICTIM])


def logs(folder: Path, user: int = 0, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A program of the user's that logs to the socket in the folder."""
    command = [*acting_as(user), str(compile_program("payloads", folder))]
    environment = os.environ | {"TARE_LOG": str(folder / "socket")} | variables
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
    )


@victims
def test_listener_of_another_user_gets_no_segment(user: int, open_to_all: Path) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all, user)
        assert says(listener) == "0 bytes, 0 descriptors"
    assert done.stderr == (
        "tare-log: no events are sent: the collector runs as another user (expected this user or"
        " root). In a user namespace, set TARE_LOG_UID to the collector's user ID.\n"
    )


@victims
def test_listener_named_by_tare_log_uid_gets_the_segment(user: int, open_to_all: Path) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all, user, TARE_LOG_UID=str(NOBODY))
        assert says(listener) == "1 bytes, 1 descriptors"
    assert done.stderr == ""


@pytest.mark.parametrize("word", ["root", "-1", "4294967295", "1 "])
def test_invalid_tare_log_uid_is_reported_and_ignored(open_to_all: Path, word: str) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all, TARE_LOG_UID=word)
        assert says(listener) == "0 bytes, 0 descriptors"
    assert "tare-log: TARE_LOG_UID is ignored: expected a user ID, such as 1000\n" in done.stderr


def headers() -> list[str]:
    """Sizes and headers of the segments that a hook has."""
    script = (
        "import os, pathlib, re\n"
        "for fd in map(int, os.environ['TARE_HOOK'].split(':')[2:]):\n"
        "    print(os.fstat(fd).st_size, os.pread(fd, 64, 0).hex(), sep=':')\n"
    )
    command = [native("bin", "tare-hook"), "--", sys.executable, "-c", script]
    return subprocess.check_output(command, text=True, timeout=SECONDS).split()


def found(user: int, variable: str, *descriptors: int) -> str:
    """What a program of the user's maps that was told of such segments."""
    preload = [f"LD_PRELOAD={HOOK}", f"TARE_HOOK={variable}"]
    command = [*acting_as(user), "env", *preload, sys.executable, "-c", SHOW_MAPS]
    return subprocess.check_output(command, text=True, timeout=SECONDS, pass_fds=descriptors)


def inherited(user: int, variable: str) -> str:
    """The same of a program that has their descriptors."""
    pid, start, *numbers = variable.split(":")
    descriptors = [os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR) for number in numbers]
    try:
        return found(user, ":".join([pid, start, *map(str, descriptors)]), *descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


# The kernel lets only root open a descriptor of another user's process.
ways = pytest.mark.parametrize(
    ("hooked", "user"), [(found, 0), (inherited, 0), (inherited, VICTIM)]
)


@ways
def test_hook_rejects_segments_of_another_user(
    hooked: Hooked, user: int, open_to_all: Path
) -> None:
    """The PID in TARE_HOOK was reused by an attacker's process, or the program took descriptors
    from it, and they have the numbers of the hook's."""
    with attack("plant", *headers()) as planted:
        maps = hooked(user, says(planted))
    assert "libtare_hook.so" in maps
    assert not re.search("memfd:tare-hook", maps), open_to_all


@ways
def test_hook_adopts_the_same_segments_of_its_own_user(
    hooked: Hooked, user: int, open_to_all: Path
) -> None:
    """Shows that the test above fails if the owner is not checked."""
    program = Path(__file__).parent / "attacks" / "plant.py"
    command = [*acting_as(user), sys.executable, str(program), *headers()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert says(process) == "ready"
        maps = hooked(user, says(process))
        process.kill()
    assert len(re.findall("memfd:tare-hook", maps)) >= 2, open_to_all
