# SPDX-License-Identifier: Apache-2.0
"""Nobody shares memory with another user but root, and finds no memory of another's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile.conftest import NOBODY, attack, says
from tests.log.conftest import compile_program
from tests.waiting import SECONDS

from tare.native import native

HOOK = native("lib", "libtare_hook.so")
SHOW_MAPS = "print(open('/proc/self/maps').read())"


def logs(folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A program of root's that logs to the socket in the folder."""
    program = compile_program("payloads", folder)
    environment = os.environ | {"TARE_LOG": str(folder / "socket")} | variables
    return subprocess.run(
        [program], env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
    )


def test_a_listener_of_another_user_gets_no_memory(open_to_all: Path) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all)
        assert says(listener) == "0 bytes, 0 descriptors"
    assert done.stderr == (
        "tare-log: no events reach the collector: it is neither this user's nor root's; in a user"
        " namespace, TARE_LOG_UID names its user\n"
    )


def test_a_listener_whom_the_starter_names_gets_it(open_to_all: Path) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all, TARE_LOG_UID=str(NOBODY))
        assert says(listener) == "1 bytes, 1 descriptors"
    assert done.stderr == ""


@pytest.mark.parametrize("word", ["root", "-1", "4294967295", "1 "])
def test_a_user_who_is_no_number_is_told(open_to_all: Path, word: str) -> None:
    with attack("listen", open_to_all / "socket") as listener:
        done = logs(open_to_all, TARE_LOG_UID=word)
        assert says(listener) == "0 bytes, 0 descriptors"
    assert "TARE_LOG_UID is not understood: expected the number of a user\n" in done.stderr


def headers() -> list[str]:
    """Sizes and headers of the segments that a hook has."""
    script = (
        "import os, pathlib, re\n"
        "for fd in map(int, os.environ['TARE_HOOK'].split(':')[2:]):\n"
        "    print(os.fstat(fd).st_size, os.pread(fd, 64, 0).hex(), sep=':')\n"
    )
    command = [native("bin", "tare-hook"), "--", sys.executable, "-c", script]
    return subprocess.check_output(command, text=True, timeout=SECONDS).split()


def hooked(variable: str) -> str:
    """What a program of root's maps that was told of such segments."""
    environment = os.environ | {"LD_PRELOAD": HOOK, "TARE_HOOK": variable}
    command = [sys.executable, "-c", SHOW_MAPS]
    return subprocess.check_output(command, env=environment, text=True, timeout=SECONDS)


def test_segments_of_another_user_are_not_taken_for_the_hooks(open_to_all: Path) -> None:
    """The number of the process that had them has become an attacker's."""
    with attack("plant", *headers()) as planted:
        maps = hooked(says(planted))
    assert "libtare_hook.so" in maps
    assert not re.search("memfd:tare-hook", maps), open_to_all


def test_segments_of_root_are(open_to_all: Path) -> None:
    """The same program, by root: else the test above would not fail."""
    program = Path(__file__).parent / "attacks" / "plant.py"
    command = [sys.executable, str(program), *headers()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert says(process) == "ready"
        maps = hooked(says(process))
        process.kill()
    assert len(re.findall("memfd:tare-hook", maps)) >= 2, open_to_all
