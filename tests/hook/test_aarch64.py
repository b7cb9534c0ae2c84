# SPDX-License-Identifier: Apache-2.0
"""The library for aarch64, under qemu: `make test-aarch64` builds it and runs this file.

qemu has no process_vm_readv, by which the hook reads what a program sends (decision 0019): that is
not searched there, and the hook says so.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests import aarch64
from tests.hook.conftest import CASES
from tests.hook.hooked import Seen, hooked, plain, rules
from tests.hook.test_conformance import RULES

LIBRARY = f"{aarch64.FOLDER}/libtare_hook.so"
# They execute programs, which would be this machine's.
LEFT_OUT = {"execs", "vforks", "vforks_first"}
UNSEARCHED = re.compile(r"tare-hook: \d+ calls? sent bytes unsearched.* process_vm_readv\..*\n")

if why := aarch64.missing():
    pytest.skip(why, allow_module_level=True)


def alone(name: str, folder: Path) -> list[str | Path]:
    """A case compiled for aarch64, and what runs it."""
    source = CASES / f"{name}.c"
    flags = re.findall(r"^// cc: (.*)", source.read_text(), re.M)
    options = ["-O1", "-pthread", *" ".join(flags).split(), "-w"]
    return aarch64.compiled(folder / name, *options, source)


def under_the_hook(command: list[str | Path], folder: Path, text: str) -> Seen:
    """Inside of qemu its own library, which takes the rules that tare-hook shares."""
    qemu, *rest = command
    seen = hooked([qemu, "-E", f"LD_PRELOAD={LIBRARY}", *rest], folder, text)
    # qemu itself, a program of this machine, is the first.
    assert seen.stats["programs"] > 1
    errors = UNSEARCHED.sub("", seen.behaviour.err)
    return replace(seen, behaviour=replace(seen.behaviour, err=errors))


@pytest.mark.parametrize("name", sorted({path.stem for path in CASES.glob("*.c")} - LEFT_OUT))
def test_a_call_does_what_it_does_without_the_hook(name: str, tmp_path: Path) -> None:
    command = alone(name, tmp_path)
    expected = plain(command, tmp_path)
    assert expected.code != 99, expected.err
    assert under_the_hook(command, tmp_path, RULES).behaviour == expected


def test_what_is_read_is_searched(tmp_path: Path) -> None:
    command = alone("partial", tmp_path)
    expected = plain(command, tmp_path)
    # The case reads ten digits with calls for 4, 4 and more.
    text = rules("2345", "89", "ck", "no such text")
    seen = under_the_hook(command, tmp_path, text)
    assert seen.behaviour == expected
    assert seen.keywords("in") == [("2345", 2), ("89", 8), ("ck", 2)]


def test_a_keyword_is_blocked(tmp_path: Path) -> None:
    text = rules("2345", scope="tcp", action="block")
    seen = under_the_hook(alone("partial", tmp_path), tmp_path, text)
    assert "recv(pair[1], buffer + 4, 4, 0) = -1, errno 104" in seen.behaviour.out
