# SPDX-License-Identifier: Apache-2.0
"""The library for aarch64, under qemu: `make test-aarch64` builds it and runs this file.

qemu has no process_vm_readv, without which the library links nothing: what is tested is that it is
loaded there and leaves every call alone.
"""

import subprocess
from pathlib import Path

import pytest
from tests import aarch64
from tests.link import linked, support_table
from tests.waiting import SECONDS

LIBRARY = f"{aarch64.FOLDER}/libtare_link.so"
# polls calls epoll_wait by its number, which aarch64 does not have; handed_on and exec execute
# programs, which would be this machine's; calls, close, options, syscalls and threads hang in some
# versions of qemu (7.2), also without the library; signal_masks needs epoll_pwait2, which not every
# qemu has.
HANG = {"calls", "close", "options", "syscalls", "threads"}
LEFT_OUT = {"exec", "handed_on", "polls", "signal_masks"} | HANG

if why := aarch64.missing():
    pytest.skip(why, allow_module_level=True)


@pytest.mark.parametrize(
    "source",
    [source for source in support_table.CALLS if source.stem not in LEFT_OUT],
    ids=lambda source: source.stem,
)
def test_a_call_does_what_it_does_without_the_library(source: Path, tmp_path: Path) -> None:
    qemu, *rest = map(
        str, aarch64.compiled(tmp_path / source.stem, "-O1", "-w", "-pthread", source)
    )
    plain = subprocess.run(
        [qemu, *rest], check=True, capture_output=True, text=True, timeout=SECONDS
    )
    run = linked.run(qemu, "-E", f"LD_PRELOAD={LIBRARY}", *rest)
    assert run.output.splitlines() == plain.stdout.splitlines()
    assert run.code == 0
    assert "cannot be preloaded" not in run.errors
    assert run.counts["links"] == 0
